//! Segmented reductions: cases that `oclprim-checks` does not cover.

mod common;

use oclprim::{
    Device, Element, ErrorKind, ExactSum, Extremes, Offset, Source, bf16, f16,
    internals::data::{Data, Rng},
    op::{Map, Max, Mean, Min, Operator, Sum, Usage},
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

/// If the order of additions does not matter, a cast is read as its narrow array. Otherwise the order is that of the wide type.
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

/// Values and indices in host memory.
fn contents<T: Element>(found: oclprim::Result<Extremes<T>>) -> (Vec<T>, Vec<u64>) {
    let found = found.unwrap();
    (found.values.to_vec().unwrap(), found.indices.to_vec().unwrap())
}

/// The first NaN of a segment; without NaN, its first smallest element or, with `most`, its first largest one.
fn first_extreme<T: Element>(segment: &[T], most: bool) -> (T, u64) {
    let mut best = (if most { T::LOWEST } else { T::HIGHEST }, u64::MAX);
    for (i, &x) in segment.iter().enumerate() {
        let exceeds = if most { x > best.0 } else { x < best.0 };
        if best.1 == u64::MAX || !best.0.is_nan() && (x.is_nan() || exceeds) {
            best = (x, i as u64);
        }
    }
    best
}

fn bits_of<T: Element>((values, indices): &(Vec<T>, Vec<u64>)) -> (&[u8], &[u64]) {
    (bytemuck::cast_slice(values), indices)
}

/// Both extremes of each segment on each device, by all three methods, equal those of a loop.
fn extremes_equal_a_loop<T: Element, C: Offset>(devices: &[(String, Device)], x: &[T], offsets: &[C], what: &str) {
    let starts: Vec<_> = offsets.iter().map(|x| x.to_i128() as usize).collect();
    let ends = [false, true].map(|most| {
        starts.windows(2).map(|pair| first_extreme(&x[pair[0]..pair[1]], most)).unzip::<_, _, Vec<_>, Vec<_>>()
    });
    let both = ([&*ends[0].0, &*ends[1].0].concat(), [&*ends[0].1, &*ends[1].1].concat());
    for (name, device) in devices {
        let (x, there) = (device.upload(x).unwrap(), device.upload(offsets).unwrap());
        let least = contents(device.arg_min(x.segments(&there)));
        assert!(bits_of(&least) == bits_of(&ends[0]), "{name}: arg-min of {what}: {least:?}, not {:?}", ends[0]);
        let most = contents(device.arg_max(x.segments(&there)));
        assert!(bits_of(&most) == bits_of(&ends[1]), "{name}: arg-max of {what}: {most:?}, not {:?}", ends[1]);
        let found = contents(device.min_max(x.segments(&there)));
        assert!(bits_of(&found) == bits_of(&both), "{name}: min-max of {what}: {found:?}, not {both:?}");
    }
}

#[test]
fn extremes_of_segments_take_the_first_and_keep_nan() {
    let x = [3.0f32, f32::NAN, 1.0, f32::NAN, -0.0, 0.0, 7.0, 7.0, -2.0];
    let mut devices = devices();
    devices.extend(more_devices());
    for (name, device) in &devices {
        let there = device.upload(&x).unwrap();
        // Gaps before the first segment and after the last, and empty segments anywhere.
        let offsets = [1u64, 1, 4, 6, 6, 8, 8];
        let (values, indices) = contents(device.min_max(there.segments(&offsets)));
        let none = u64::MAX;
        assert_eq!(indices, [none, 0, 0, none, 0, none, none, 0, 0, none, 0, none], "{name}");
        assert_eq!(values[0], f32::INFINITY, "{name}: {values:?}");
        assert_eq!(values[6], f32::NEG_INFINITY, "{name}: {values:?}");
        assert!(values[1].is_nan() && values[7].is_nan(), "{name}: {values:?}");
        assert!([2, 8].map(|i| values[i].to_bits()) == [(-0.0f32).to_bits(); 2], "{name}: {values:?}");
        // The values of empty segments are those of reductions.
        let reduced = [device.reduce(there.segments(&offsets), Min), device.reduce(there.segments(&offsets), Max)];
        let reduced = reduced.map(|buffer| buffer.unwrap().to_vec().unwrap()).concat();
        assert!((0..12).all(|i| reduced[i].is_nan() && values[i].is_nan() || reduced[i] == values[i]), "{name}");

        let nothing: [f32; 0] = [];
        let (values, indices) = contents(device.arg_max(nothing.segments(&[0u32; 4])));
        assert_eq!((values, indices), (vec![f32::NEG_INFINITY; 3], vec![none; 3]), "{name}");
        assert_eq!(contents(device.min_max(x.segments(&[0u32]))), (vec![], vec![]), "{name}");
        // An expression of elements, and one of offsets.
        let least = contents(device.arg_min(there.reversed().cast::<f64>().segments([0u32, 3, 9].cast::<u64>())));
        assert_eq!(least.1, [0, 2], "{name}");
        assert!(least.0[0] == -2.0 && least.0[1].is_nan(), "{name}: {least:?}");
    }
}

#[test]
fn extremes_of_segments_refuse_wrong_arguments() {
    for (name, device) in devices() {
        let none: [u32; 0] = [];
        let error = device.arg_min([1.0f32].segments(&none)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(error.to_string(), "n segments need n + 1 offsets, got 0", "{name}");
        let error = device.min_max([1u8, 2, 3].segments(&[0u32, 2, 1])).unwrap_err();
        assert_eq!(error.to_string(), "offset 1 is 2, beyond the next one, 1", "{name}");
        let there = device.upload(&[0u64, 4]).unwrap();
        let error = device.arg_max([1u8, 2, 3].segments(&there)).unwrap_err();
        assert_eq!(error.to_string(), "offset 1 is 4, beyond the 3 elements", "{name}");
        let (mut values, mut indices) = ([0u8; 4], [0; 2]);
        let error = device.min_max_into([1u8, 2].segments(&[0u32, 1, 2]), &mut values, &mut indices).unwrap_err();
        assert_eq!(error.to_string(), "min-max of segments needs an output of 4 elements, got 2", "{name}");
    }
}

/// Segments that cross many tiles, tiles of very many segments, and runs of empty ones.
#[test]
fn extremes_of_any_segments_equal_a_loop() {
    const N: usize = 70_000;
    let x: Vec<f32> = Data::Special.generate(N, 5);
    let mut devices = more_devices();
    devices.truncate(if common::tiny() { 3 } else { usize::MAX });
    let cuts: [(&str, Vec<usize>); 7] = [
        ("one segment", vec![0, N]),
        ("segments of one", (0..=N).collect()),
        ("a long segment among empty ones", [vec![0; 5000], vec![3; 4000], vec![N - 2; 9000], vec![N; 4000]].concat()),
        ("empty segments", vec![N / 2; 9001]),
        ("gaps", vec![N / 3, N / 3 + 1, N - 20_000]),
        ("whole tiles", (0..=N / 1920).map(|i| i * 1920).chain([N]).collect()),
        ("short and long ones", (0..=300).map(|i| (i * i * i) / 387 + 7).collect()),
    ];
    for (what, cut) in cuts {
        let offsets: Vec<u32> = cut.iter().map(|&x| x as u32).collect();
        extremes_equal_a_loop(&devices, &x, &offsets, what);
    }
    // The first of equal elements wins, even if no element differs from a start value.
    for fill in [0u8, 255] {
        extremes_equal_a_loop(&devices, &vec![fill; N], &[0u32, 1, 30_000, N as u32], "equal elements");
    }
}

#[test]
fn extremes_by_key_equal_those_of_segments() {
    const N: usize = 20_000;
    let x: Vec<f32> = Data::Special.generate(N, 8);
    for runs in [1, 7, 3000, N] {
        let mut rng = Rng::new(runs as u64);
        let mut offsets: Vec<_> = (1..runs).map(|_| 1 + rng.below(N as u64 - 1) as usize).chain([0, N]).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let found = offsets.len() - 1;
        let keys: Vec<u16> = (0..N).map(|i| offsets.partition_point(|&offset| offset <= i) as u16 % 3).collect();
        let want_keys: Vec<u16> = (1..=found).map(|run| run as u16 % 3).collect();
        let offsets: Vec<u32> = offsets.iter().map(|&x| x as u32).collect();
        let want = contents(Device::cpu().min_max(x.segments(&offsets)));
        for (name, device) in more_devices() {
            let what = format!("{name}: {found} runs");
            let (there, keys_there) = (device.upload(&x).unwrap(), device.upload(&keys).unwrap());
            let (keys_got, both) = device.min_max(there.by_key(&keys_there)).unwrap();
            assert!(keys_got.to_vec().unwrap() == want_keys, "{what}");
            assert!(bits_of(&contents(Ok(both))) == bits_of(&want), "{what}");
            let (_, most) = device.arg_max(there.by_key(&keys_there)).unwrap();
            assert!(most.indices.to_vec().unwrap() == want.1[found..], "{what}");

            // Too little room, enough, and more than enough; what follows the results stays as it is.
            for room in [found / 2, found, found + 100] {
                let kept = room.min(found);
                let (mut keys_out, mut values) =
                    (device.filled(room, 9u16).unwrap(), device.filled(2 * room, 9.5f32).unwrap());
                let (mut indices, mut count) =
                    (device.filled(2 * room, 9u64).unwrap(), device.zeroed::<u64>(1).unwrap());
                let to = (&mut keys_out, &mut values, &mut count);
                device.min_max_into(there.by_key(&keys_there), to, &mut indices).unwrap();
                assert_eq!(count.to_vec().unwrap(), [found as u64], "{what}");
                assert!(keys_out.to_vec().unwrap()[..kept] == want_keys[..kept], "{what}");
                let (values, indices) = (values.to_vec().unwrap(), indices.to_vec().unwrap());
                for end in 0..2 {
                    let (got, wanted) = (end * room..end * room + kept, end * found..end * found + kept);
                    let values_equal = values[got.clone()].iter().zip(&want.0[wanted.clone()]);
                    assert!(values_equal.clone().all(|(a, b)| a.to_bits() == b.to_bits()), "{what}, room for {room}");
                    assert!(indices[got] == want.1[wanted], "{what}, room for {room}");
                    let rest = end * room + kept..(end + 1) * room;
                    assert!(values[rest.clone()].iter().all(|&x| x == 9.5) && indices[rest].iter().all(|&x| x == 9));
                }
            }
        }
    }
    for (name, device) in devices() {
        let nothing: [f32; 0] = [];
        let no_keys: [u8; 0] = [];
        let (keys, found) = device.arg_min(nothing.by_key(&no_keys)).unwrap();
        assert_eq!((keys.len(), found.values.len(), found.indices.len()), (0, 0, 0), "{name}");
        let error = device.arg_min([1.0f32].by_key(&[1u8, 2])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        let (mut keys, mut values, mut count, mut indices) = ([0u8; 1], [0.0f32; 1], [0], [0; 1]);
        let to = (&mut keys, &mut values, &mut count);
        let error = device.arg_min_into([1.0, 2.0].by_key(&[1u8, 2]), to, &mut indices).unwrap_err();
        assert_eq!(error.to_string(), "the result has 2 elements, the output has room for 1", "{name}");
    }
}

#[test]
fn extremes_of_segments_take_all_types() {
    fn of<T: Element>(devices: &[(String, Device)]) {
        for data in [Data::Random, Data::Special] {
            let mut rng = Rng::new(3);
            let mut offsets: Vec<u64> = (0..400).map(|_| rng.below(9001)).collect();
            offsets.sort_unstable();
            extremes_equal_a_loop(
                devices,
                &data.generate::<T>(9000, 7),
                &offsets,
                &format!("{} {}", data.name(), T::TYPE),
            );
        }
    }
    let devices = common::tuned(&[("a GPU", common::gpu())]);
    let with_doubles: Vec<_> = devices.iter().filter(|(_, device)| common::has_doubles(device)).cloned().collect();
    of::<u8>(&devices);
    of::<i64>(&devices);
    of::<f16>(&devices);
    if common::a_form_of_each_kernel() {
        return;
    }
    of::<i16>(&devices);
    of::<u16>(&devices);
    of::<i32>(&devices);
    of::<u64>(&devices);
    of::<bf16>(&devices);
    of::<f64>(&with_doubles);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn extremes_of_random_segments_equal_a_loop(n in 0usize..30_000, cuts in 0usize..3000, seed: u64) {
        let mut rng = Rng::new(seed);
        // Few values, so that many elements are equal.
        let x: Vec<i32> = (0..n).map(|_| rng.below(9) as i32 - 4).collect();
        let mut offsets: Vec<u32> = (0..=cuts).map(|_| rng.below(n as u64 + 1) as u32).collect();
        offsets.sort_unstable();
        extremes_equal_a_loop(&more_devices(), &x, &offsets, "random segments");
    }
}
