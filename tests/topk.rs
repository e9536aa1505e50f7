//! Selections of the largest: in every geometry, with right and wrong bounds, and compared with the standard library's sort.

mod common;

use common::{
    gpu,
    memory::{Counting, allocated},
    tuned,
};
use oclprim::{Device, Interpolation, Source, Top};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of GPUs with much, little and no local memory.
fn devices() -> Vec<(String, Device)> {
    tuned(&[
        ("a GPU", gpu()),
        ("a GPU of 32 KiB", gpu().local_bytes(32 << 10)),
        ("a small GPU", gpu().local_bytes(12 << 10)),
        ("a GPU without local memory", gpu().local_bytes(1024)),
    ])
}

/// A number of keys for which bounds are sampled, unless time is short.
fn many() -> usize {
    if common::tiny() { 3_001 } else { 280_001 }
}

/// The expected indices, from a sort of all keys.
fn places(keys: &[u32], k: usize, largest: bool, sorted: bool) -> Vec<u32> {
    let mut places: Vec<u32> = (0..keys.len() as u32).collect();
    places.sort_by_key(|&place| if largest { !keys[place as usize] } else { keys[place as usize] });
    places.truncate(k);
    if !sorted {
        places.sort_unstable();
    }
    places
}

fn top(k: usize, largest: bool, sorted: bool) -> Top {
    let top = if largest { Top::largest(k) } else { Top::smallest(k) };
    if sorted { top.sorted() } else { top }
}

fn selects((name, device): &(String, Device), keys: &[u32], k: usize, largest: bool, sorted: bool) {
    let want = places(keys, k, largest, sorted);
    let (got, found) = device.top_k(keys.indexed::<u32>(), top(k, largest, sorted)).unwrap();
    let what = format!("{name}: {k} of {}, largest: {largest}, sorted: {sorted}", keys.len());
    let (got, found) = (got.to_vec().unwrap(), found.to_vec().unwrap());
    let wrong = found.iter().zip(&want).position(|(a, b)| a != b);
    assert!(found == want, "indices of {what}: the first difference is at {wrong:?}");
    assert!(got == want.iter().map(|&place| keys[place as usize]).collect::<Vec<_>>(), "keys of {what}");
    if k > 0 {
        let mut rank = [0];
        let at = if largest { keys.len() - k } else { k - 1 };
        device.nth_element_into(keys, &[at], &mut rank).unwrap();
        let mut all = keys.to_vec();
        assert_eq!(rank[0], *all.select_nth_unstable(at).1, "rank {at} of {what}");
    }
}

#[test]
fn offsets_of_64_bits_give_the_same_results() {
    let keys: Vec<u32> = common::random(many(), 6);
    for device in common::wide() {
        for k in [20, keys.len() / 2] {
            selects(&device, &keys, k, true, false);
        }
    }
}

#[test]
fn keys_of_any_distribution_are_selected() {
    let n = many();
    let random: Vec<u32> = common::random(n, 1);
    let ramp: Vec<u32> = (0..n as u32).collect();
    let skewed: Vec<u32> = random.iter().map(|x| x >> (x % 32)).collect();
    let two: Vec<u32> = random.iter().map(|x| x & 0x1000).collect();
    let back: Vec<u32> = ramp.iter().rev().copied().collect();
    for device in devices() {
        for keys in [&random, &ramp, &back, &skewed, &two, &vec![7; n]] {
            selects(&device, keys, 30, true, true);
            selects(&device, keys, n / 2, false, false);
        }
        selects(&device, &random, n / 9, false, true);
        selects(&device, &random, n - 1, true, false);
        selects(&device, &random, n, true, false);
    }
}

/// Every key that any geometry samples for its bounds has the smallest value.
#[test]
fn wrong_bounds_do_not_change_results() {
    let n = many();
    let mut keys: Vec<u32> = common::random::<u32>(n, 2).iter().map(|x| x | 1 << 8).collect();
    let mixed = |mut x: u32| {
        x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
        x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
        x ^ x >> 16
    };
    for sample in [256, 512, 1024, 2048, 4096] {
        let piece = (n / sample) as u64;
        for i in 0..sample as u64 {
            keys[(i * piece + ((u64::from(mixed(i as u32 + 1)) * piece) >> 32)) as usize] = 0;
        }
    }
    for device in devices() {
        selects(&device, &keys, 100, true, false);
        selects(&device, &keys, 100, false, true);
        selects(&device, &keys, n / 2, true, false);
    }
}

/// The result takes all keys between the bounds. They share their higher digits with keys beyond the bounds.
#[test]
fn bounds_within_clusters_do_not_change_results() {
    // Each block of 256 keys has four clusters, which begin at 0, 1024, 2048 and 4096. The results take 16 or 248 keys
    // of a block. The 16 end within the second cluster, before its largest key. The 248 are the first three clusters.
    let blocks = if common::tiny() { 12 } else { 1100 };
    let key = |i: u32| match i * 151 % 256 {
        x @ 0..13 => x,
        x @ 13..16 => 1024 + x,
        16..32 => 1024 + 16,
        x @ 32..248 => 2048 + x,
        x => 4096 + x,
    };
    let keys: Vec<u32> = (0..256 * blocks).map(key).collect();
    let mirrored: Vec<u32> = keys.iter().map(|key| !key).collect();
    // The keys have 128 values. Groups of 16 values differ only in their lowest ten bits.
    let few: Vec<u32> = (0..1 << 20).map(|i: u64| (((i * 2_654_435_761) >> 7) % 128 * 64) as u32).collect();
    for device in devices() {
        for below in [16, 248] {
            let k = below * blocks as usize;
            selects(&device, &keys, k, false, false);
            selects(&device, &mirrored, k, true, false);
        }
        if !common::tiny() {
            selects(&device, &few, few.len() / 8, false, false);
            selects(&device, &few, few.len() / 8, true, false);
        }
    }
}

#[test]
fn rows_of_any_length_are_selected() {
    for device in tuned(&[("a GPU", gpu())]) {
        let (name, device) = device;
        for (rows, len, k) in [(70, 31, 31), (3, many() / 3, 40), (if common::tiny() { 9 } else { 300 }, 700, 13)] {
            let keys: Vec<u32> = common::random::<u32>(rows * len, 3).iter().map(|x| x % 5000).collect();
            for sorted in [false, true] {
                let want: Vec<u32> = keys.chunks(len).flat_map(|row| places(row, k, true, sorted)).collect();
                let (got, found) = device.top_k(keys.indexed::<u32>(), top(k, true, sorted).in_rows(len)).unwrap();
                assert!(found.to_vec().unwrap() == want, "{name}: indices of {k} of {rows} x {len}");
                let row = |i: usize| i / k * len;
                let of = |(i, place): (usize, &u32)| keys[row(i) + *place as usize];
                let keys_wanted: Vec<u32> = want.iter().enumerate().map(of).collect();
                assert!(got.to_vec().unwrap() == keys_wanted, "{name}: keys of {k} of {rows} x {len}");
                let numbers: Vec<u64> = (0..keys.len() as u64).collect();
                let (_, values) = device.top_k(keys.with(&numbers), top(k, true, sorted).in_rows(len)).unwrap();
                let values_wanted: Vec<u64> =
                    want.iter().enumerate().map(|(i, &place)| row(i) as u64 + u64::from(place)).collect();
                assert!(values.to_vec().unwrap() == values_wanted, "{name}: values of {k} of {rows} x {len}");
            }
        }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The CPU backend's memory for selections from rows does not grow with the number of rows.
#[test]
fn many_rows_on_the_cpu_take_little_memory() {
    let (len, rows, k) = (1000, 1000, 3);
    let keys: Vec<u32> = common::random(rows * len, 5);
    let (mut best, mut found) = (vec![0; rows * k], vec![0u32; rows * k]);
    for sorted in [false, true] {
        let top = top(k, true, sorted).in_rows(len);
        let taken = allocated(|| {
            let (best, found) = (&mut best[..], &mut found[..]);
            Device::cpu().top_k_into(keys.indexed(), top, (best, found)).unwrap();
        });
        assert!(taken < 200_000, "{taken} bytes for {rows} rows of {len} keys");
        let want: Vec<u32> = keys.chunks(len).flat_map(|row| places(row, k, true, sorted)).collect();
        assert!(found == want, "sorted: {sorted}");
    }
}

#[test]
fn quantiles_of_floats_equal_sorted_elements() {
    let n = many();
    let keys: Vec<f32> = common::random::<u32>(n, 4).iter().map(|&x| x as f32 - 1e9).collect();
    let mut sorted = keys.clone();
    sorted.sort_by(f32::total_cmp);
    for (name, device) in tuned(&[("a GPU", gpu())]) {
        let x = device.upload(&keys).unwrap();
        let ends = device.quantile(&x, &[0.0, 1.0], Interpolation::Linear).unwrap();
        assert_eq!(ends, [f64::from(sorted[0]), f64::from(sorted[n - 1])], "{name}");
        assert_eq!(device.median(&x).unwrap(), f64::from(sorted[n / 2]), "{name}");
        let mut with_nan = keys.clone();
        with_nan[n / 3] = -f32::NAN;
        assert!(device.median(&with_nan).unwrap().is_nan(), "{name}");
    }
}

/// Quantiles of doubles also work on devices without doubles.
#[test]
fn quantiles_of_doubles_are_given_on_every_device() {
    let keys: Vec<f64> = (0..5003).map(|i| f64::from(i * 1009 % 5003)).collect();
    for (name, device) in tuned(&[("a GPU", gpu())]) {
        // These numbers of quantiles take each path: one selection, two selections (the second for NaN), and a sort.
        for count in [1, 7, 8, 20] {
            let q: Vec<f64> = (0..count).map(|i| (f64::from(i) + 0.3) / f64::from(count)).collect();
            let of = |keys: &[f64]| {
                device.quantile(keys, &q, Interpolation::Linear).unwrap_or_else(|error| panic!("{name}: {error}"))
            };
            for (got, q) in of(&keys).iter().zip(&q) {
                assert!((got - 5002.0 * q).abs() < 1e-9, "{name}: {q} is {got}");
            }
            for nan in [f64::NAN, -f64::NAN] {
                let mut keys = keys.clone();
                keys[1234] = nan;
                assert!(of(&keys).iter().all(|x| x.is_nan()), "{name}: {count} with NaN");
            }
        }
    }
}

/// Quantiles of groups need no doubles either.
#[test]
fn quantiles_of_groups_have_the_bits_of_those_of_each_group() {
    fn check<T: oclprim::Element>() {
        // With these keys, sums, products and positions are subnormal or as large as the type allows.
        let mut keys: Vec<T> = oclprim::internals::data::Data::Bits.generate(3000, 7);
        keys.extend(oclprim::internals::data::Data::Extremes.generate::<T>(1000, 8));
        keys.retain(|key| !key.is_nan());
        keys.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let n = keys.len();
        let (mut offsets, mut mixed) = (vec![0u64], Vec::new());
        // Groups of neighbouring keys, of keys far apart, and of more and more keys.
        for i in 0..50 {
            let len = if i % 20 == 0 { 1 + 5 * i } else { 1 + i % 4 };
            let step = [1, 1, n / 3, n / 7][i / 4 % 4];
            mixed.extend((0..len).map(|k| keys[(i * 31 + k * step) % n]));
            offsets.push(mixed.len() as u64);
        }
        let q = [5e-324, 1e-300, 0.1, 0.25, 1.0 / 3.0, 0.5f64.next_down(), 0.5, 0.75, 1f64.next_down(), -0.0];
        for how in Interpolation::ALL {
            let want: Vec<u64> = offsets
                .windows(2)
                .flat_map(|ends| Device::cpu().quantile(&mixed[ends[0] as usize..ends[1] as usize], &q, how).unwrap())
                .map(f64::to_bits)
                .collect();
            for (name, device) in tuned(&[("a GPU", gpu())]) {
                let found = device.quantile(mixed.segments(&offsets), &q, how).unwrap().to_vec().unwrap();
                for (i, (found, want)) in found.iter().zip(&want).enumerate() {
                    let (group, want) = (i / q.len(), f64::from_bits(*want));
                    let own = &mixed[offsets[group] as usize..offsets[group + 1] as usize];
                    assert!(
                        found.to_bits() == want.to_bits(),
                        "{name}: {how:?} {} of {own:?}: {found:e}, not {want:e}",
                        q[i % q.len()]
                    );
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
    check::<oclprim::f16>();
    check::<oclprim::bf16>();
    check::<i8>();
    check::<u16>();
    check::<i32>();
    check::<i64>();
    check::<u64>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_keys_are_selected(keys in prop::collection::vec(any::<u32>(), 1..600), narrow in 0u32..32, part in 0.0f64..=1.0) {
        let keys: Vec<u32> = keys.into_iter().map(|key| key >> narrow).collect();
        let k = (part * keys.len() as f64) as usize;
        for device in tested() {
            selects(device, &keys, k, narrow % 2 == 0, narrow % 3 == 0);
        }
    }
}

/// The devices in their own geometry, opened once.
fn tested() -> &'static [(String, Device)] {
    static DEVICES: std::sync::OnceLock<Vec<(String, Device)>> = std::sync::OnceLock::new();
    DEVICES.get_or_init(common::devices)
}

/// The k keys of each segment and of each line are those of the segment or line alone.
#[test]
fn top_k_of_groups_equals_that_of_each_group() {
    let x: Vec<i32> = common::random::<i16>(900, 5).into_iter().map(|x| i32::from(x % 40)).collect();
    let offsets = [0u32, 5, 9, 500, 897];
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let there = device.upload(&x).unwrap();
        for top in [Top::largest(3), Top::smallest(4), Top::largest(2).sorted(), Top::smallest(0)] {
            let (mut keys, mut indices) = (vec![], vec![]);
            for ends in offsets.windows(2) {
                let part = &x[ends[0] as usize..ends[1] as usize];
                let (own, at) = Device::cpu().top_k(part.indexed::<u32>(), top).unwrap();
                keys.extend(own.to_vec().unwrap());
                indices.extend(at.to_vec().unwrap().into_iter().map(|at| at + ends[0]));
            }
            let (got, at) = device.top_k(there.segments(&offsets).indexed::<u32>(), top).unwrap();
            assert_eq!((got.to_vec().unwrap(), at.to_vec().unwrap()), (keys.clone(), indices), "{name}: {top:?}");
            assert_eq!(device.top_k(there.segments(&offsets), top).unwrap().to_vec().unwrap(), keys, "{name}: {top:?}");
            let columns = there.nd(&[100, 9]).unwrap().along(0);
            let turned = device.transpose(&there, (100, 9)).unwrap();
            let (want, want_at) = device.top_k(turned.indexed::<u64>(), top.in_rows(100)).unwrap();
            let (got, at) = device.top_k(columns.indexed::<u64>(), top).unwrap();
            assert_eq!(
                (got.to_vec().unwrap(), at.to_vec().unwrap()),
                (want.to_vec().unwrap(), want_at.to_vec().unwrap()),
                "{name}: {top:?}"
            );
        }
        let few = device.top_k(there.segments(&offsets), Top::largest(5)).unwrap_err();
        assert_eq!(few.to_string(), "group 1: 4 keys are fewer than the 5 largest to select", "{name}");
        // Four segments of 2^62 keys would have 2^64.
        let many = device.top_k(there.segments(&offsets), Top::largest(1 << 62)).unwrap_err();
        assert!(
            many.to_string().starts_with("group 1: 4 keys are fewer than the 4611686018427387904 largest"),
            "{name}: {many}"
        );
        let twice = device.top_k(there.segments(&offsets), Top::largest(1).in_rows(3)).unwrap_err();
        assert_eq!(twice.to_string(), "rows of 3 keys are for a whole input", "{name}");
    }
}
