//! Merges, merge sorts, sets and searches: in every geometry, over many tiles, and compared with the standard library.

mod common;

use bytemuck::{Pod, Zeroable};
use common::{gpu, tuned};
use oclprim::{
    Bound, Device, ErrorKind, Order, SetOp, Source,
    internals::testing::guarded,
    op::{Compare, Less},
    sort::Merging,
};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of GPUs with much, little and no local memory.
fn devices() -> Vec<(String, Device)> {
    tuned(&[
        ("a GPU", gpu()),
        ("a small GPU", gpu().local_bytes(9 << 10)),
        ("a GPU without local memory", gpu().local_bytes(1024)),
    ])
}

/// Every device, in its own geometry and in that of a GPU.
fn few_devices() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu())])
}

/// A number of elements with many tiles; with several tiles if time is short.
fn many() -> usize {
    if common::tiny() { 1_300 } else { 70_003 }
}

/// Random numbers; few distinct ones; skewed ones; rising then falling ones; all equal.
fn kinds(n: usize, seed: u64) -> Vec<Vec<u32>> {
    let random: Vec<u32> = common::random(n, seed);
    let few = random.iter().map(|x| x & 0x0010_0100).collect();
    let skewed = random.iter().map(|x| x >> (x % 32)).collect();
    let pipe = (0..n).map(|i| i.min(n - i) as u32).collect();
    vec![random, few, skewed, pipe, vec![7; n]]
}

fn sorted(mut x: Vec<u32>) -> Vec<u32> {
    x.sort_unstable();
    x
}

fn up() -> Order {
    Order::ascending()
}

fn places(first: usize, n: usize) -> Vec<u32> {
    (first as u32..(first + n) as u32).collect()
}

/// Merges both ranges with indices as values; compares with a stable sort of their concatenation.
fn merges((name, device): &(String, Device), a: &[u32], b: &[u32]) {
    let both = [a, b].concat();
    let mut want = places(0, both.len());
    want.sort_by_key(|&place| both[place as usize]);
    let (keys, values) = device.merge(a.with(&places(0, a.len())), b.with(&places(a.len(), b.len())), up()).unwrap();
    let what = format!("{name}: {} and {}", a.len(), b.len());
    assert!(values.to_vec().unwrap() == want, "{what}: values");
    let want: Vec<u32> = want.iter().map(|&place| both[place as usize]).collect();
    assert!(keys.to_vec().unwrap() == want, "{what}: keys");
    assert!(device.merge(a, b, up()).unwrap().to_vec().unwrap() == want, "{what}: without values");
}

fn sorts((name, device): &(String, Device), x: &[u32]) {
    let mut want = places(0, x.len());
    want.sort_by_key(|&place| std::cmp::Reverse(x[place as usize]));
    let order = Order::descending();
    let (keys, values) = device.sort(x.with(&places(0, x.len())), Merging(&order)).unwrap();
    assert!(values.to_vec().unwrap() == want, "{name}: values of {}", x.len());
    let want: Vec<u32> = want.iter().map(|&place| x[place as usize]).collect();
    assert!(keys.to_vec().unwrap() == want, "{name}: keys of {}", x.len());
    assert!(device.sort(x, Merging(&order)).unwrap().to_vec().unwrap() == want, "{name}: {} alone", x.len());
}

/// The definition: how often an element that occurs m times in a and n times in b is kept.
fn obvious(op: SetOp, a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut counts = std::collections::BTreeMap::<u32, (usize, usize)>::new();
    a.iter().for_each(|&x| counts.entry(x).or_default().0 += 1);
    b.iter().for_each(|&x| counts.entry(x).or_default().1 += 1);
    let kept = |(m, n): (usize, usize)| match op {
        SetOp::Union => m.max(n),
        SetOp::Intersection => m.min(n),
        SetOp::Difference => m.saturating_sub(n),
        SetOp::SymmetricDifference => m.abs_diff(n),
    };
    counts.into_iter().flat_map(|(x, both)| std::iter::repeat_n(x, kept(both))).collect()
}

fn sets((name, device): &(String, Device), ops: &[SetOp], a: &[u32], b: &[u32]) {
    for &op in ops {
        let got = device.set_operation(a, b, op, up()).unwrap().to_vec().unwrap();
        assert!(got == obvious(op, a, b), "{name}: {} of {} and {}", op.name(), a.len(), b.len());
    }
}

fn searches((name, device): &(String, Device), range: &[u32], needles: &[u32]) {
    let what = format!("{name}: {} needles in {}", needles.len(), range.len());
    let want: Vec<u64> = needles.iter().map(|x| range.partition_point(|y| y < x) as u64).collect();
    assert!(
        device.search::<_, u64, _>(range, needles, Bound::Lower, up()).unwrap().to_vec().unwrap() == want,
        "{what}"
    );
    let want: Vec<u32> = needles.iter().map(|x| range.partition_point(|y| y <= x) as u32).collect();
    assert!(
        device.search::<_, u32, _>(range, needles, Bound::Upper, up()).unwrap().to_vec().unwrap() == want,
        "{what}"
    );
}

/// A comparator is true where its expression is not 0, for any type of the expression in OpenCL C.
#[test]
fn comparators_are_not_truncated_to_int() {
    let x = [1 << 63, 5, 1 << 63 | 1, 3];
    let top = Less::new("top bit", |a: &u64, b: &u64| (b & !a) >> 63 != 0, "b & ~a & (1ul << 63)");
    for (name, device) in devices() {
        let sorted = device.sort(&x, Merging(&top)).unwrap().to_vec().unwrap();
        assert_eq!(sorted, [5, 3, 1 << 63, 1 << 63 | 1], "{name}");
    }
}

#[test]
fn merges_and_sorts_of_many_tiles_equal_the_standard_library() {
    let n = many();
    for device in devices() {
        for (a, b) in kinds(n, 1).into_iter().zip(kinds(n / 2 + 5, 2)) {
            sorts(&device, &a);
            merges(&device, &sorted(a), &sorted(b));
        }
    }
}

/// Defect B18 of the original kernels: only half of a merge was compared, splits left their ranges, and quotients
/// were rounded up in floats. Here every element is compared, with lengths at which both ranges end within a tile.
#[test]
fn b18_every_element_of_a_merge_is_compared() {
    for (name, device) in devices() {
        for (m, n) in [(0, 1), (1, 1), (511, 514), (1025, 7), (3, 2047), (2049, 2050)] {
            let below = sorted(common::random::<u32>(m, 14).iter().map(|x| x >> 1).collect());
            let above: Vec<u32> = sorted(common::random::<u32>(n, 15).iter().map(|x| x | 1 << 31).collect());
            let among = sorted(common::random::<u32>(n, 16).iter().map(|x| x >> 1).collect());
            // Splits lie within both ranges, or at the end of one range.
            for (a, b) in [(&below, &among), (&below, &above), (&above, &below)] {
                let want = sorted([&a[..], b].concat());
                let (x, y) = (device.upload(a).unwrap(), device.upload(b).unwrap());
                let got = guarded(&device, m + n, 1, |out| Ok(device.merge_into(&x, &y, up(), out)?));
                assert!(got.unwrap() == want, "{name}: {} and {}", a.len(), b.len());
            }
        }
    }
}

#[test]
fn ranges_of_very_different_lengths_are_merged() {
    let n = many();
    let long = sorted(common::random(n, 3));
    for device in few_devices() {
        for short in [0, 1, 2, 100] {
            let short = sorted(common::random(short, 4));
            merges(&device, &long, &short);
            merges(&device, &short, &long);
            // All of one range comes before or after the other.
            merges(&device, &vec![u32::MAX; short.len()], &long);
            sets(&device, &SetOp::ALL[..2], &long, &short);
            sets(&device, &SetOp::ALL[..2], &short, &long);
        }
    }
}

/// Equal elements that fill many tiles, more of them in one range, and other elements around them.
#[test]
fn sets_of_many_equals_follow_the_definition() {
    let n = many();
    let equals = |less: usize, of_five: usize, more: usize| {
        let parts = [vec![3; less], vec![5; of_five], vec![9; more]];
        parts.concat()
    };
    for device in devices() {
        sets(&device, &SetOp::ALL, &equals(n / 7, n, 3), &equals(n / 5, n / 3, 1));
        sets(&device, &SetOp::ALL, &equals(0, n / 3, 0), &equals(1, n, n / 2));
        // The first range has fewer equal elements and other elements before them.
        sets(&device, &SetOp::ALL, &equals(n / 2, n / 7, 0), &equals(1, n / 3, 2));
    }
}

#[test]
fn sets_of_any_data_follow_the_definition() {
    let n = many() / 2;
    for device in few_devices() {
        for (a, b) in kinds(n, 5).into_iter().zip(kinds(2 * n / 3, 6)) {
            sets(&device, &SetOp::ALL, &sorted(a), &sorted(b));
        }
    }
}

#[test]
fn searches_of_any_kind_equal_the_standard_library() {
    let n = many();
    for device in devices() {
        for (range, needles) in kinds(n, 7).into_iter().zip(kinds(n / 3, 8)) {
            let range = sorted(range);
            searches(&device, &range, &needles);
            searches(&device, &range, &sorted(needles));
            searches(&device, &range[..700], &range[..300]);
        }
        for n in [0, 1, 2, 31, 255, 511, 512, 513] {
            searches(&device, &places(1, n), &[0, 1, 2, 200, 600]);
        }
    }
}

#[test]
fn offsets_of_64_bits_give_the_same_results() {
    let (a, b) = (kinds(many() / 2, 9), kinds(many() / 3, 10));
    for device in common::wide() {
        sorts(&device, &a[2]);
        let (a, b) = (sorted(a[2].clone()), sorted(b[2].clone()));
        merges(&device, &a, &b);
        sets(&device, &[SetOp::SymmetricDifference], &a, &b);
        searches(&device, &a, &b);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Particle {
    at: [f32; 3],
    cell: u32,
}

/// The comparator reads the cell only, so equal elements must keep their order.
#[test]
fn structs_are_merged_by_a_users_comparator() {
    let types = "typedef struct { float at[3]; uint cell; } Particle;";
    let less = |a: &Particle, b: &Particle| a.cell < b.cell;
    let by_cell = Less::of_struct("by cell", "Particle", types, less, "a.cell < b.cell");
    let cells: Vec<u32> = common::random::<u32>(many() / 3, 11).iter().map(|x| x % 100).collect();
    let particle = |(i, &cell): (usize, &u32)| Particle { at: [i as f32, 0.5, -1.0], cell };
    let x: Vec<Particle> = cells.iter().enumerate().map(particle).collect();
    let mut want = x.clone();
    want.sort_by_key(|particle| particle.cell);
    for (name, device) in devices() {
        assert!(device.sort(&x, Merging(&by_cell)).unwrap().to_vec().unwrap() == want, "{name}");
        let needles = [Particle { cell: 50, ..x[0] }];
        let found = device.search::<_, u32, _>(&want, &needles, Bound::Lower, &by_cell).unwrap().to_vec().unwrap();
        assert_eq!(found[0] as usize, want.partition_point(|x| x.cell < 50), "{name}");
        assert_eq!(device.first_unsorted(&x, &by_cell).unwrap().is_none(), x == want, "{name}");
        assert!(device.first_unsorted(&want, &by_cell).unwrap().is_none(), "{name}");
    }
}

/// One reservation serves every operation, repeatedly.
#[test]
fn one_reservation_serves_every_operation() {
    let n = many() / 4;
    let x: Vec<u32> = common::random(n, 12);
    let want = sorted(x.clone());
    for ((name, device), (_, tried)) in few_devices().into_iter().zip(few_devices()) {
        let run = |device: &Device| {
            let mut got = vec![0; n];
            device.sort_into(&x, Merging(up()), &mut got).unwrap();
            assert!(got == want, "{name}");
            let mut values = vec![0; n];
            device.sort_into(x.with(&x), Merging(up()), (&mut got, &mut values)).unwrap();
            assert!(values == want, "{name}");
            let (a, b) = want.split_at(n / 3);
            device.merge_into(a, b, up(), &mut got).unwrap();
            assert!(got == want, "{name}");
            let mut count = [0];
            device.set_operation_into(a, b, SetOp::Union, up(), &mut got, &mut count).unwrap();
            assert!(got[..count[0] as usize] == obvious(SetOp::Union, a, b), "{name}");
        };
        common::reserve_and_repeat(&name, &tried, &device, run);
    }
}

/// With any comparator, calls terminate and write only their outputs.
#[test]
fn invalid_comparators_terminate_in_bounds() {
    let n = many() / 3;
    let x: Vec<f32> = common::random::<u32>(n, 13).into_iter().map(f32::from_bits).collect();
    // By this comparator NaN equals every number, but the numbers do not equal one another.
    let order = Less::new("with NaN", |a: &f32, b: &f32| a < b, "a < b");
    for (name, device) in devices() {
        let (a, b) = (device.upload(&x[..n / 2]).unwrap(), device.upload(&x[n / 2..]).unwrap());
        let (a, b) = (&a, &b);
        let ran = guarded(&device, n, 1, |out| Ok(device.merge_into(a, b, &order, out)?));
        ran.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        let ran = guarded(&device, a.len(), 3, |out| Ok(device.sort_into(a, Merging(&order), out)?));
        ran.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        let ran = guarded(&device, 100, 1, |out| {
            let mut count = device.zeroed::<u64>(1)?;
            let op = SetOp::SymmetricDifference;
            Ok(device.set_operation_into(a, b, op, &order, out, &mut count)?)
        });
        ran.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    }
}

/// A comparator that does not compile gives the line, and wrong lengths give their numbers.
#[test]
fn invalid_comparators_and_lengths_are_refused() {
    for (name, device) in common::opencl_devices() {
        let wrong = Less::new("wrong", |a: &u32, b: &u32| a < b, "a < b / no_such_name");
        let error = device.merge(&[1u32], &[2], &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}");
        let log = error.build_log().unwrap_or_default();
        let wanted = ("order wrong:1", 9, "a < b / no_such_name");
        assert!(common::names_line(&device, log, wanted), "{name}: {log}");
        let types = "typedef struct { uint x, y; } Two;";
        let size = Less::of_struct("size", "Two", types, |a: &u32, b: &u32| a < b, "a.x < b.x");
        assert_eq!(device.sort(&[1u32], Merging(&size)).unwrap_err().kind(), ErrorKind::Build, "{name}");
    }
    let device = Device::cpu();
    let error = device.search_into(&[1u8], &[1, 2], Bound::Lower, up(), &mut [0u32; 3]).unwrap_err();
    assert_eq!(error.to_string(), "a search needs an output of 2 elements, got 3");
    let error = device.sort([1u8, 2].with(&[1u8]), Merging(up())).unwrap_err();
    assert_eq!(error.to_string(), "sorting 2 keys needs as many values, got 1");
    assert!(Compare::<u8>::function(&up().bits(3..9)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_ranges_equal_the_standard_library(
        a in prop::collection::vec(0u32..30, 0..400), b in prop::collection::vec(0u32..30, 0..400),
        needles in prop::collection::vec(0u32..32, 0..50),
    ) {
        for device in tested() {
            sorts(device, &a);
            let (a, b) = (sorted(a.clone()), sorted(b.clone()));
            merges(device, &a, &b);
            sets(device, &SetOp::ALL, &a, &b);
            searches(device, &a, &needles);
        }
    }
}

/// The devices in their own geometry, opened once.
fn tested() -> &'static [(String, Device)] {
    static DEVICES: std::sync::OnceLock<Vec<(String, Device)>> = std::sync::OnceLock::new();
    DEVICES.get_or_init(common::devices)
}
