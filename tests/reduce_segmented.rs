//! Segmented reductions: cases that `oclprim-checks` does not cover.

mod common;

use oclprim::{
    Device, ErrorKind, ExactSum, Source, f16,
    internals::data::{Data, Rng},
    op::{Map, Max, Mean, Operator, Sum, Usage},
};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of a GPU with each kind of sub-groups.
fn devices() -> Vec<(String, Device)> {
    common::with_sub_groups()
}

/// Every device as a GPU with much and little local memory, and OpenCL devices with 64-bit offsets.
fn more_devices() -> Vec<(String, Device)> {
    let mut all = common::tuned(&[("a GPU", common::gpu()), ("a small GPU", common::gpu().local_bytes(8192))]);
    all.extend(common::wide());
    all
}

#[test]
fn empty_inputs_give_the_identity_and_invalid_offsets_are_refused() {
    let nothing: [f32; 0] = [];
    for (name, device) in devices() {
        let none: [u32; 0] = [];
        let error = device.reduce([1.0f32].segments(&none), Sum).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(device.reduce([1.0f32].segments(&[0u32]), Sum).unwrap().len(), 0, "{name}");
        let empty = device.reduce(nothing.segments(&[0u64; 4]), Max).unwrap();
        assert_eq!(empty.to_vec().unwrap(), [f32::NEG_INFINITY; 3], "{name}");
        let mut out = device.zeroed::<f32>(2).unwrap();
        let error = device.reduce_into([1.0].segments(&[0u32, 1]), Sum, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "reduce of segments needs an output of 1 elements, got 2", "{name}");
    }
}

#[test]
fn the_first_wrong_offset_is_named() {
    for (name, device) in devices() {
        let mut offsets: Vec<u32> = (0..70_000).collect();
        // The host checks a slice, the device a buffer.
        let check = |offsets: &[u32], n| {
            let results =
                [device.check_segments(offsets, n), device.check_segments(&device.upload(offsets).unwrap(), n)];
            let [slice, buffer] = results.map(|result| result.map_err(|error| error.to_string()));
            assert_eq!(slice, buffer, "{name}");
            slice
        };
        check(&offsets, 69_999).unwrap();
        let text = |offsets: &[u32], n| check(offsets, n).unwrap_err();
        assert_eq!(text(&offsets, 69_998), "offset 69999 is 69999, beyond the 69998 elements", "{name}");
        (offsets[40_000], offsets[50_000]) = (3, 60_000);
        assert_eq!(text(&offsets, 80_000), "offset 39999 is 39999, beyond the next one, 3", "{name}");
        let wide = device.upload(&[5u64 << 40, 1]).unwrap();
        let message = format!("offset 0 is {}, beyond the 9 elements", 5u64 << 40);
        assert_eq!(device.check_segments(&wide, 9).unwrap_err().to_string(), message, "{name}");
        assert_eq!(device.check_segments(&[5u64 << 40, 1], 9).unwrap_err().to_string(), message, "{name}");
    }
}

#[test]
fn a_segment_does_not_depend_on_the_other_segments() {
    let x: Vec<f32> = Data::Random.generate(60_000, 5);
    let want = Device::cpu().reduce(x.segments(&[1000u32, 59_000]), Sum).unwrap().to_vec().unwrap()[0];
    for (name, device) in devices() {
        let buffer = device.upload(&x).unwrap();
        let mut offsets = vec![0u32, 1000, 59_000, 59_000, 60_000];
        for round in 0..100u32 {
            offsets.insert(1, 9 * round);
            offsets.sort_unstable();
            let got = device.reduce(buffer.segments(&offsets), Sum).unwrap().to_vec().unwrap();
            assert_eq!(got[round as usize + 2].to_bits(), want.to_bits(), "{name}: round {round}");
        }
    }
}

/// Short and very long runs of empty segments at one offset, in tiles with few or many other segments.
#[test]
fn empty_segments_yield_the_identity() {
    const N: usize = 200_000;
    const MIDDLE: usize = N / 2;
    let x: Vec<f32> = Data::Random.generate(N, 5);
    let places =
        [(0, 20_000), (1, 3), (MIDDLE, 3), (MIDDLE, 900), (MIDDLE, 4100), (MIDDLE, 17_000), (N, 3), (N, 40_000)];
    for step in [5, 9000] {
        for (place, run) in places {
            let mut places: Vec<_> = (5..=N).step_by(step).chain(std::iter::repeat_n(place, run)).chain([N]).collect();
            places.sort_unstable();
            let offsets: Vec<u32> = places.iter().map(|&place| place as u32).collect();
            let wide: Vec<u64> = places.iter().map(|&place| place as u64).collect();
            let results = |device: &Device| {
                [false, true].map(|is_wide| {
                    // The output holds other values before the call, so that an unwritten element is noticed.
                    let mut out = device.upload(&vec![7.0f32; places.len() - 1]).unwrap();
                    if is_wide {
                        device.reduce_into(x.segments(&wide), Sum, &mut out).unwrap();
                    } else {
                        device.reduce_into(x.segments(&offsets), Sum, &mut out).unwrap();
                    }
                    out.to_vec().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                })
            };
            let want = results(&Device::cpu());
            assert!(want[0] == want[1]);
            assert!(places.windows(2).zip(&want[0]).all(|(pair, want)| pair[0] < pair[1] || *want == 0));
            for (name, device) in more_devices() {
                assert!(results(&device) == want, "{name}: every {step}, {run} at {place}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn any_segments_equal_the_cpu(n in 0usize..50_000, cuts in 0usize..3000, seed: u64, offset in 0usize..5) {
        let mut rng = Rng::new(seed);
        let x: Vec<f32> = Data::Random.generate(n + offset, seed);
        let mut offsets: Vec<u32> = (0..=cuts).map(|_| rng.below(n as u64 + 1) as u32).collect();
        offsets.sort_unstable();
        let want = Device::cpu().reduce(x[offset..].segments(&offsets), Sum).unwrap().to_vec().unwrap();
        for (pair, want) in offsets.windows(2).zip(&want) {
            let part = &x[offset..][pair[0] as usize..pair[1] as usize];
            let exact: f64 = part.iter().map(|&x| f64::from(x)).sum();
            let size: f64 = part.iter().map(|&x| f64::from(x.abs())).sum();
            prop_assert!((f64::from(*want) - exact).abs() <= size * 32.0 * f64::from(f32::EPSILON));
        }
        for (name, device) in more_devices() {
            let buffer = device.upload(&x).unwrap();
            let got = device.reduce(buffer.view(offset..).unwrap().segments(&offsets), Sum).unwrap().to_vec().unwrap();
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&got), bits(&want), "{}", name);
        }
    }
}

/// A cast of an array is read in place if the order does not matter; else the order is that of the wider type.
#[test]
fn groups_of_an_expression_have_the_bits_of_the_array() {
    let n = 5_003;
    let bytes: Vec<u8> = (0..n).map(|i| (i * 31 % 251) as u8).collect();
    let floats: Vec<f32> = (0..n).map(|i| (i % 97) as f32 * 0.1 - 3.0).collect();
    let offsets = [0u32, 17, 17, 2000, 4999, n as u32];
    let keys: Vec<u16> = (0..n).map(|i| (i / 300) as u16).collect();
    let words: Vec<u64> = bytes.iter().map(|&x| x.into()).collect();
    let scaled: Vec<f32> = bytes.iter().map(|&x| f32::from(x) * 0.3).collect();
    let half = Map::new(|x: u8| f32::from(x) * 0.3, "x * 0.3f");
    for (name, device) in devices() {
        let (x, y) = (device.upload(&bytes).unwrap(), device.upload(&floats).unwrap());
        let same = |got: oclprim::Result<oclprim::Buffer<u64>>, want: oclprim::Result<oclprim::Buffer<u64>>, what| {
            assert_eq!(got.unwrap().to_vec().unwrap(), want.unwrap().to_vec().unwrap(), "{name}: {what}");
        };
        let bits = |got: oclprim::Result<oclprim::Buffer<f32>>, want: oclprim::Result<oclprim::Buffer<f32>>, what| {
            let [got, want] = [got, want].map(|x| x.unwrap().to_vec().unwrap());
            assert!(got.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}: {what}");
            assert_eq!(got.len(), want.len(), "{name}: {what}");
        };
        same(
            device.reduce(x.cast::<u64>().segments(&offsets), Sum),
            device.reduce(words.segments(&offsets), Sum),
            "segments",
        );
        same(device.scan(x.cast::<u64>().segments(&offsets), Sum), device.scan(words.segments(&offsets), Sum), "scan");
        same(device.scan(x.cast::<u64>(), Sum), device.scan(&words, Sum), "whole scan");
        same(
            device.reduce(x.cast::<u64>().by_key(&keys), Sum).map(|(_, sums)| sums),
            device.reduce(words.by_key(&keys), Sum).map(|(_, sums)| sums),
            "by key",
        );
        // Sums of these round, so the order shows.
        let halves: Vec<f16> = (0..n).map(|i| f16::from_f32((i % 89) as f32 * 7.13 + 0.013)).collect();
        let copy: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
        let halves = device.upload(&halves).unwrap();
        bits(
            device.reduce(halves.cast::<f32>().segments(&offsets), Sum),
            device.reduce(copy.segments(&offsets), Sum),
            "floats",
        );
        bits(
            device.scan(halves.cast::<f32>().by_key(&keys), Sum),
            device.scan(copy.by_key(&keys), Sum),
            "floats by key",
        );
        bits(device.scan(halves.cast::<f32>(), Sum), device.scan(&copy, Sum), "whole scan of floats");
        bits(device.reduce(x.map(&half).segments(&offsets), Sum), device.reduce(scaled.segments(&offsets), Sum), "map");
        bits(
            device.scan(x.map(&half).segments(&offsets), Sum),
            device.scan(scaled.segments(&offsets), Sum),
            "scan of a map",
        );
        bits(
            device.reduce(y.cast::<f32>().segments(&offsets), Sum.exact()),
            device.reduce(floats.segments(&offsets), Sum.exact()),
            "exact",
        );
        // A user-defined operator also takes segments of an expression, and the offsets may be an expression.
        let larger = Operator::new("larger", f32::NEG_INFINITY, |a: f32, b| a.max(b), "fmax(a, b)");
        bits(
            device.reduce(x.map(&half).segments(offsets.cast::<u64>()), &larger),
            device.reduce(scaled.segments(&offsets), Max),
            "an operator",
        );
        let mean = device.reduce(&floats, Mean).unwrap();
        let exact = ExactSum::of(&device, &floats).unwrap().mean(n as u64);
        assert_eq!(mean.to_bits(), exact.to_bits(), "{name}: mean");
        let mut out = device.zeroed::<f32>(1).unwrap();
        device.reduce_into(y.reversed(), Mean, &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), [mean], "{name}: mean of an expression");
        assert!(device.reduce(&[0f32; 0], Mean).unwrap().is_nan(), "{name}: mean of empty input");
    }
}
