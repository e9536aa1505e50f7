//! Histograms of segments and lines: inputs and errors that `oclprim-checks` does not cover.

mod common;

use oclprim::{
    Accumulate, Bins, Device, Element, ErrorKind, Input, Source,
    histogram::{Histograms, Samples},
    internals::data::Rng,
    op::Map,
};
use proptest::prelude::*;

/// Every device, in its own geometry and in those of GPUs with much and with little local memory. Further devices have
/// parts of few samples.
fn devices() -> Vec<(String, Device)> {
    let mut all = common::with_geometries();
    all.extend(common::wide());
    all
}

/// The counts and the counts outside the bins of each group.
fn plain<T: Element>(groups: &[Vec<T>], bins: &Bins<T>) -> (Vec<u64>, Vec<u64>) {
    let (mut counts, mut outside) = (vec![0; groups.len() * bins.len()], vec![0; 3 * groups.len()]);
    for (group, samples) in groups.iter().enumerate() {
        let mut slots = vec![0; samples.len()];
        bins.slots(samples, &mut slots);
        for slot in slots {
            match (slot as usize).checked_sub(bins.len()) {
                None => counts[group * bins.len() + slot as usize] += 1,
                Some(which) => outside[3 * group + which] += 1,
            }
        }
    }
    (counts, outside)
}

fn found<I: Samples<Found = Histograms>>(device: &Device, input: I, bins: &I::Bins) -> (Vec<u64>, Vec<u64>) {
    let found = device.histogram(input, bins).unwrap_or_else(|error| panic!("{device:?}: {error}"));
    (found.counts.to_vec().unwrap(), found.outside.to_vec().unwrap())
}

fn samples(n: usize) -> Vec<f32> {
    let mut rng = Rng::new(n as u64);
    (0..n).map(|i| [f32::NAN, -0.0, 2.0, -1.0][i % 4] * (i % 3) as f32 + rng.below(1000) as f32 / 1000.0).collect()
}

#[test]
fn expressions_in_segments_equal_their_elements() {
    let x = samples(3000);
    let offsets = [0u32, 0, 5, 900, 2500, 2500, 3000];
    let bins = Bins::even(-0.25f32, 1.25, 30).unwrap();
    let squares = Map::new(|x: f32| x * x, "x * x");
    let indices: Vec<u32> = (0..3000).rev().collect();
    let groups = |element: &dyn Fn(usize) -> f32| -> Vec<Vec<f32>> {
        offsets.windows(2).map(|pair| (pair[0] as usize..pair[1] as usize).map(element).collect()).collect()
    };
    for (name, device) in devices() {
        let there = device.upload(&x).unwrap();
        let there = there.view(..).unwrap();
        let got = found(&device, there.map(&squares).segments(&offsets), &bins);
        assert_eq!(got, plain(&groups(&|i| x[i] * x[i]), &bins), "{name}: squares");
        let got = found(&device, there.gathered(&indices).segments(&offsets), &bins);
        assert_eq!(got, plain(&groups(&|i| x[2999 - i]), &bins), "{name}: gathered");
        let got = found(&device, there.reversed().segments(offsets.map(u64::from).as_slice()), &bins);
        assert_eq!(got, plain(&groups(&|i| x[2999 - i]), &bins), "{name}: reversed");
        // Offsets that the device computes.
        let offsets = device.upload(&offsets).unwrap();
        let got = found(&device, there.segments(offsets.map(Map::new(|x: u32| x / 2, "x / 2"))), &bins);
        let halves: Vec<_> =
            [0, 0, 2, 450, 1250, 1250, 1500].windows(2).map(|pair| x[pair[0]..pair[1]].to_vec()).collect();
        assert_eq!(got, plain(&halves, &bins), "{name}: computed offsets");
    }
}

#[test]
fn lines_of_any_view_are_counted() {
    let bytes: Vec<u8> = (0..4 * 30 * 7).map(|i| (i * 37 % 251) as u8).collect();
    let at = |i: usize, j: usize, k: usize| bytes[(i * 30 + j) * 7 + k];
    let bins = Bins::ids(100).unwrap();
    for (name, device) in devices() {
        let there = device.upload(&bytes).unwrap();
        let view = there.nd(&[4, 30, 7]).unwrap();
        let columns: Vec<Vec<u8>> = (0..30).map(|j| (0..28).map(|l| at(l / 7, j, l % 7)).collect()).collect();
        assert_eq!(found(&device, view.along([0, 2]), &bins), plain(&columns, &bins), "{name}: two axes");
        let permuted = view.permute(&[2, 0, 1]).unwrap();
        let lines: Vec<Vec<u8>> = (0..28).map(|l| (0..30).map(|j| at(l % 4, j, l / 4)).collect()).collect();
        assert_eq!(found(&device, permuted.along(2), &bins), plain(&lines, &bins), "{name}: permuted");
        let repeated = there.view(..7).unwrap();
        let repeated = Input::from(repeated).nd(&[1, 7]).unwrap().broadcast_to(&[3, 7]).unwrap();
        let lines = vec![bytes[..7].to_vec(); 3];
        assert_eq!(found(&device, repeated.along(1), &bins), plain(&lines, &bins), "{name}: broadcast");
        let wide: Vec<Vec<i32>> = (0..120).map(|l| (0..7).map(|k| at(l / 30, l % 30, k).into()).collect()).collect();
        let bins = Bins::even(-5i32, 300, 61).unwrap();
        assert_eq!(found(&device, view.cast::<i32>().along(2), &bins), plain(&wide, &bins), "{name}: cast");
        // No line has elements, or there is no line.
        let none = there.view(..0).unwrap();
        let none = Input::from(none);
        let bins = Bins::ids(2).unwrap();
        let got = found(&device, none.nd(&[2, 0]).unwrap().along(1), &bins);
        assert_eq!(got, (vec![0; 4], vec![0; 6]), "{name}");
        let got = found(&device, none.nd(&[2, 0]).unwrap().along(0), &bins);
        assert_eq!(got, (Vec::new(), Vec::new()), "{name}");
    }
}

/// A long group is counted by several work-groups, which add to the same counters.
#[test]
fn counters_of_64_bits_carry_and_those_of_32_wrap() {
    let (n, last) = (40_000u32, u32::MAX);
    let x: Vec<u8> = (0..n).map(|i| (i % 3) as u8).collect();
    let offsets = [1u32, 1, n, n];
    let bins = Bins::ids(2).unwrap();
    for (name, device) in devices() {
        let mut wide = device.upload(&[u64::from(last); 6]).unwrap();
        let mut narrow = device.upload(&[last; 6]).unwrap();
        let mut outside = device.upload(&[u64::from(last) << 1; 9]).unwrap();
        let input = || x.segments(&offsets);
        device.histogram_into(input(), &bins, &mut wide, &mut outside, Accumulate::Add).unwrap();
        let base = u64::from(last);
        assert_eq!(wide.to_vec().unwrap(), [base, base, base + 13_333, base + 13_333, base, base], "{name}");
        let base = base << 1;
        let want = [base, base, base, base, base + 13_333, base, base, base, base];
        assert_eq!(outside.to_vec().unwrap(), want, "{name}");
        device.histogram_into(input(), &bins, &mut narrow, &mut outside, Accumulate::Add).unwrap();
        assert_eq!(narrow.to_vec().unwrap(), [last, last, 13_332, 13_332, last, last], "{name}");
    }
}

/// One group has nearly all samples, and very many groups have none. The counters held other values before.
#[test]
fn empty_groups_have_counts_of_0() {
    let x = vec![1u8; 50_000];
    let offsets: Vec<u32> = [vec![0; 3000], vec![7; 2000], vec![49_000; 4000], vec![50_000; 999]].concat();
    for (name, device) in devices() {
        let bins = Bins::ids(3).unwrap();
        let groups = offsets.len() - 1;
        let mut counts = device.filled(3 * groups, 77u32).unwrap();
        let mut outside = device.filled(3 * groups, 77u64).unwrap();
        device.histogram_into(x.segments(&offsets), &bins, &mut counts, &mut outside, Accumulate::Overwrite).unwrap();
        let mut want = vec![0; 3 * groups];
        (want[3 * 2999 + 1], want[3 * 4999 + 1], want[3 * 8999 + 1]) = (7, 48_993, 1000);
        assert!(counts.to_vec().unwrap() == want, "{name}");
        assert!(outside.to_vec().unwrap() == vec![0; 3 * groups], "{name}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let x = [1u8, 2, 3];
    let bins = Bins::ids(4).unwrap();
    for (name, device) in devices() {
        let none: [u32; 0] = [];
        let error = device.histogram(x.segments(&none), &bins).unwrap_err();
        assert_eq!(error.to_string(), "n segments need n + 1 offsets, got 0", "{name}");
        let error = device.histogram(x.segments(&[0u64, 3, 1, 3]), &bins).unwrap_err();
        assert_eq!(error.to_string(), "offset 1 is 3, beyond the next one, 1", "{name}");
        let error = device.histogram(x.segments(&[0u32, 4]), &bins).unwrap_err();
        assert_eq!(error.to_string(), "offset 1 is 4, beyond the 3 elements", "{name}");
        let view = || Input::from(&x).nd(&[1, 3]).unwrap();
        let error = device.histogram(view().along(2), &bins).unwrap_err();
        assert_eq!(error.to_string(), "axis 2 is out of range for an array of shape [1, 3]", "{name}");
        let into = |counts: usize, outside: usize| {
            let (mut counts, mut outside) = (vec![0u32; counts], vec![0; outside]);
            let input = x.segments(&[0u32, 1, 3]);
            let result = device.histogram_into(input, &bins, &mut counts, &mut outside, Accumulate::Overwrite);
            result.map(|()| (counts, outside)).map_err(|error| error.to_string())
        };
        assert_eq!(into(8, 6), Ok((vec![0, 1, 0, 0, 0, 0, 1, 1], vec![0; 6])), "{name}");
        let text = "histogram of counts of groups needs an output of 8 elements, got 4";
        assert_eq!(into(4, 6), Err(text.into()), "{name}");
        let text = "histogram of samples of groups outside the bins needs an output of 6 elements, got 3";
        assert_eq!(into(8, 3), Err(text.into()), "{name}");
        // Lines without elements take no memory, but each has counters.
        if usize::BITS == 64 {
            let many = Input::from(&x[..0]).nd(&[1 << 40, 1 << 22, 0]).unwrap();
            let error = device.histogram(many.along(2), &bins).unwrap_err();
            let text = "the counters of 4611686018427387904 groups with 4 bins overflow the address space";
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text.into()), "{name}");
        }
    }
}

#[test]
fn weights_of_groups_are_summed() {
    let (x, w) = ([0u8, 1, 1, 7, 0, 1], [1.0f32, 1e30, 1.0, -0.0, f32::INFINITY, -1e30]);
    let bins = Bins::ids(2).unwrap();
    for (name, device) in devices() {
        let (mut sums, mut outside) = (device.filled(6, 2.0f32).unwrap(), device.filled(9, 2.0f32).unwrap());
        let input = || x.segments(&[0u32, 3, 3, 6]).weighted(&w);
        device.histogram_into(input(), &bins, &mut sums, &mut outside, Accumulate::Overwrite).unwrap();
        assert_eq!(sums.to_vec().unwrap(), [1.0, 1e30, 0.0, 0.0, f32::INFINITY, -1e30], "{name}");
        assert!(outside.to_vec().unwrap().iter().all(|sum| sum.to_bits() == 0), "{name}");
        device.histogram_into(input(), &bins, &mut sums, &mut outside, Accumulate::Add).unwrap();
        assert_eq!(sums.to_vec().unwrap()[..2], [2.0, 2e30], "{name}");
        let rows = |of: &'static [u16; 6]| Input::from(of).nd(&[2, 3]).unwrap();
        let view = Input::from(&x).nd(&[2, 3]).unwrap().cast::<i32>();
        let found =
            device.histogram(view.along(0).weighted(rows(&[1, 2, 3, 4, 5, 6])), &Bins::ids(2).unwrap()).unwrap();
        assert_eq!(found.sums.to_vec().unwrap(), [1, 0, 5, 2, 0, 9], "{name}");
        assert_eq!(found.outside.to_vec().unwrap(), [0, 4, 0, 0, 0, 0, 0, 0, 0], "{name}");
        let error = device.histogram(x.segments(&[0u32, 6]).weighted(&w[..5]), &bins).unwrap_err();
        let text = "weighted histograms of 6 samples need as many weights, got 5";
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text.into()), "{name}");
        let flat = Input::from(&w).nd(&[3, 2]).unwrap();
        let error = device.histogram(Input::from(&x).nd(&[2, 3]).unwrap().along(0).weighted(flat), &bins).unwrap_err();
        let text = "weights of lines need the shape of the samples, [2, 3], got [3, 2]";
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text.into()), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_segments_equal_a_plain_loop(
        n in 0usize..30_000,
        cuts in 0usize..400,
        bins in 1usize..3000,
        seed: u64,
        at in 0usize..5,
        add: bool,
    ) {
        let mut rng = Rng::new(seed);
        let x: Vec<u16> = (0..n + at).map(|_| rng.below(bins as u64 + 9) as u16).collect();
        let mut offsets: Vec<u32> = (0..cuts + 1).map(|_| rng.below(n as u64 + 1) as u32).collect();
        offsets.sort_unstable();
        let bins = Bins::ids(bins).unwrap();
        let groups: Vec<_> =
            offsets.windows(2).map(|pair| x[at + pair[0] as usize..at + pair[1] as usize].to_vec()).collect();
        let (mut want, mut want_outside) = plain(&groups, &bins);
        if add {
            want.iter_mut().chain(&mut want_outside).for_each(|count| *count += 5);
        }
        let accumulate = if add { Accumulate::Add } else { Accumulate::Overwrite };
        for (name, device) in devices() {
            let there = device.upload(&x).unwrap();
            let mut counts = device.filled(want.len(), 5u64).unwrap();
            let mut outside = device.filled(want_outside.len(), 5u64).unwrap();
            let input = there.view(at..).unwrap().segments(&offsets);
            device.histogram_into(input, &bins, &mut counts, &mut outside, accumulate).unwrap();
            prop_assert!(counts.to_vec().unwrap() == want, "{name}: counts");
            prop_assert!(outside.to_vec().unwrap() == want_outside, "{name}: outside");
        }
    }
}
