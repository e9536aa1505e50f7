//! The order of floats: -0 equals 0, and every NaN is the largest value and equals every other NaN. Each primitive that
//! compares is tested on the CPU and on every OpenCL device, in its own geometry and in that of GPUs. Elements keep their bits.

mod common;

use std::cmp::Ordering;
use std::sync::{Mutex, MutexGuard};

use common::{a_form_of_each_kernel, gpu, opencl_devices, runs_kernels_at_once, tuned};
use oclprim::{
    Bound, Columns, Device, Element, ElementType, Extreme, Interpolation, Order, SetOp, Source, SubGroupBackend, Top,
    Tuning, bf16, f16,
    op::{Max, Sum},
    sort::Merging,
    tuning::{Primitive, parameters},
};

/// Runs one test at a time, because Oclgrind runs one kernel at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Geometries of GPUs: with everything, and without look-back, sub-groups or local memory; fewer if time is short.
fn tunings() -> Vec<(&'static str, Tuning)> {
    let mut tunings = vec![("a GPU", gpu()), ("a GPU without local memory", gpu().local_bytes(1024))];
    if !a_form_of_each_kernel() {
        tunings.push(("a GPU without look-back", gpu().without_look_back()));
        tunings.push(("a GPU without sub-groups", gpu().sub_groups(SubGroupBackend::Local)));
    }
    tunings
}

/// Returns true at the level `tiny`, and if an interpreter runs the kernels. The other short levels use the full sizes,
/// because building the kernels takes longer than running them.
fn tiny() -> bool {
    std::env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("tiny")
        || opencl_devices().iter().any(|(_, device)| !runs_kernels_at_once(device))
}

fn bits<T: Element>(x: T) -> u64 {
    oclprim::internals::data::bits(x)
}

/// The expected order.
fn compare<T: Element>(a: T, b: T) -> Ordering {
    let (x, y) = (a.to_f64(), b.to_f64());
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// The total order. Of two negative floats, the one with the larger bits is less.
fn compare_bits<T: Element>(a: T, b: T) -> Ordering {
    let (a, b, sign) = (bits(a), bits(b), 1u64 << (8 * size_of::<T>() - 1));
    match (a < sign, b < sign) {
        (true, true) => a.cmp(&b),
        (false, false) => b.cmp(&a),
        (positive, _) => positive.cmp(&!positive),
    }
}

fn equal<T: Element>(a: T, b: T) -> bool {
    compare(a, b) == Ordering::Equal
}

/// A pseudo-random number for each index.
fn mixed(i: usize) -> u64 {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Zeros, NaN of several payloads, infinities, the smallest and largest subnormals and normals, and ones, of either sign.
fn special<T: Element>() -> Vec<T> {
    let sign = 1u64 << (8 * size_of::<T>() - 1);
    let infinity = bits(T::from_f64(f64::INFINITY));
    let unit = infinity & infinity.wrapping_neg();
    let sizes = [
        0,
        1,
        unit - 1,
        unit,
        bits(T::ONE),
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + unit / 2,
        infinity + unit / 2 + 3,
        sign - 1,
    ];
    sizes.iter().flat_map(|&size| [size, size | sign]).map(T::from_bits_lossy).collect()
}

/// Half special floats, a third random bits, and the rest from a few small integers.
fn floats<T: Element>(n: usize, seed: usize) -> Vec<T> {
    let special = special::<T>();
    let of = |i: usize| {
        let x = mixed(i + 7919 * seed);
        match x % 6 {
            0..3 => special[(x >> 8) as usize % special.len()],
            3..5 => T::from_bits_lossy(x >> 8),
            _ => T::from_f64(f64::from((x >> 8) as u32 % 9) - 4.0),
        }
    };
    (0..n).map(of).collect()
}

fn bytes<T: Element>(x: &[T]) -> &[u8] {
    bytemuck::cast_slice(x)
}

/// Asserts that two arrays have the same bits.
fn same<T: Element>(got: &[T], want: &[T], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    // This compares all bytes in one call, because a loop over elements is slow without optimisation.
    if bytes(got) == bytes(want) {
        return;
    }
    let differs = got.iter().zip(want).position(|(a, b)| bits(*a) != bits(*b));
    let at = differs.expect("other bytes are other bits");
    panic!("{what}: element {at} is {:#x}, not {:#x}", bits(got[at]), bits(want[at]));
}

type Comparison<T> = fn(T, T) -> Ordering;

/// The orders: name, order, comparison, and true for a descending order.
fn orders<T: Element>() -> [(&'static str, Order, Comparison<T>, bool); 4] {
    [
        ("up", Order::ascending(), compare, false),
        ("down", Order::descending(), compare, true),
        ("up in the total order", Order::ascending().total_order(), compare_bits, false),
        ("down in the total order", Order::descending().total_order(), compare_bits, true),
    ]
}

/// The stable sorting permutation in the expected order.
fn places<T: Element>(x: &[T], compare: Comparison<T>, down: bool) -> Vec<u32> {
    let mut places: Vec<u32> = (0..x.len() as u32).collect();
    let of = |place: &u32| x[*place as usize];
    places.sort_by(|a, b| if down { compare(of(b), of(a)) } else { compare(of(a), of(b)) });
    places
}

fn taken<T: Copy>(x: &[T], places: &[u32]) -> Vec<T> {
    places.iter().map(|&place| x[place as usize]).collect()
}

/// A length of several tiles for each work-group.
const MANY: usize = 40_009;

/// Lengths below a tile and of several tiles; f32, which stands for the types of its size, has more of them.
fn lengths<T: Element>() -> &'static [usize] {
    let all = &[0, 1, 301, 5003, 20_011];
    match T::TYPE {
        _ if tiny() => &all[..3],
        ElementType::F32 => all,
        _ => &all[1..4],
    }
}

/// Runs a generic test on the devices: f32 in each geometry, other types in a device's own geometry and in that of a GPU. If
/// time is short, other types run only in a device's own. For each element type, one call of the test gets all devices,
/// so it computes the expected results once.
macro_rules! each_type {
    ($test:ident) => {{
        let _alone = alone();
        let mut devices = tuned(&tunings());
        $test::<f32>(&devices);
        let left_out = if a_form_of_each_kernel() { "as a GPU" } else { "as a GPU without" };
        devices.retain(|(name, _)| !name.contains(left_out));
        $test::<f16>(&devices);
        $test::<f64>(&devices);
        $test::<bf16>(&devices);
    }};
}

fn sorts<T: Element>(devices: &[(String, Device)]) {
    for &n in lengths::<T>() {
        let x: Vec<T> = floats(n, 1);
        for (way, order, compare, down) in orders::<T>() {
            let places = places(&x, compare, down);
            let want = taken(&x, &places);
            let numbers: Vec<u32> = (0..n as u32).collect();
            let bytes: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let bytes_wanted = taken(&bytes, &places);
            for (name, device) in devices {
                let what = format!("{name}: {n} keys of {} {way}", T::TYPE);
                same(&device.sort(&x, order.clone()).unwrap().to_vec().unwrap(), &want, &format!("{what}, sort"));
                let found = device.argsort::<_, u32, _>(&x, order.clone()).unwrap().to_vec().unwrap();
                assert!(found == places, "{what}, argsort");
                let (keys, values) = device.sort(x.with(&numbers), order.clone()).unwrap();
                same(&keys.to_vec().unwrap(), &want, &format!("{what}, sort_pairs"));
                assert!(values.to_vec().unwrap() == places, "{what}, values of sort_pairs");
                let (mut keys, mut values, mut more) = (vec![T::ONE; n], vec![0u32; n], vec![0u8; n]);
                let columns = Columns::new().with(&numbers, &mut values[..]).with(&bytes, &mut more[..]);
                device.sort_into(x.with_columns(columns), order.clone(), &mut keys[..]).unwrap();
                same(&keys, &want, &format!("{what}, sort_columns"));
                assert!(values == places && more == bytes_wanted, "{what}, columns of sort_columns");
                let merged = device.sort(&x, Merging(&order)).unwrap().to_vec().unwrap();
                same(&merged, &want, &format!("{what}, merge_sort"));
                let (keys, values) = device.sort(x.with(&numbers), Merging(&order)).unwrap();
                same(&keys.to_vec().unwrap(), &want, &format!("{what}, merge_sort_pairs"));
                assert!(values.to_vec().unwrap() == places, "{what}, values of merge_sort_pairs");
            }
        }
    }
}

#[test]
fn sorts_treat_zeros_and_nans_as_equal_and_keep_their_bits() {
    each_type!(sorts);
}

/// Zeros alone and NaN alone: stable operations leave equal elements as they are.
fn stays<T: Element>(devices: &[(String, Device)]) {
    let n = if tiny() { 300 } else { 20_011 };
    let all = special::<T>();
    let nan: Vec<T> = all.iter().copied().filter(|x| x.is_nan()).collect();
    for (what, pool) in [("zeros", &all[..2]), ("NaN", &nan[..])] {
        let x: Vec<T> = (0..n).map(|i| pool[mixed(i) as usize % pool.len()]).collect();
        for (name, device) in devices {
            for order in [Order::ascending(), Order::descending()] {
                let sorted = device.sort(&x, order.clone()).unwrap().to_vec().unwrap();
                same(&sorted, &x, &format!("{name}: {what} of {}, sort", T::TYPE));
                let merged = device.sort(&x, Merging(&order)).unwrap().to_vec().unwrap();
                same(&merged, &x, &format!("{name}: {what} of {}, merge_sort", T::TYPE));
                assert!(device.first_unsorted(&x, &order).unwrap().is_none(), "{name}: {what} of {}", T::TYPE);
            }
            assert_eq!(device.unique(&x).unwrap().len(), 1, "{name}: {what} of {}", T::TYPE);
        }
    }
}

#[test]
fn equal_floats_keep_their_order() {
    each_type!(stays);
}

fn sorts_by_bits<T: Element>(devices: &[(String, Device)]) {
    let n = if tiny() { 300 } else { 9001 };
    let (x, width): (Vec<T>, u32) = (floats(n, 2), 8 * size_of::<T>() as u32);
    let half = 1u64 << (width - 1);
    let infinity = bits(T::from_f64(f64::INFINITY));
    let number = |x: T| match bits(x) {
        _ if x.is_nan() => half + infinity + 1,
        bits if bits >= half => half - (bits - half),
        bits => half + bits,
    };
    for (begin, end) in [(width - 1, width), (width - 8, width), (0, 9), (3, width - 1), (4, 4), (width / 2, width)] {
        let digit = |x: &T| match end - begin {
            0 => 0,
            count => number(*x) >> begin & (u64::MAX >> (64 - count)),
        };
        let digits: Vec<u64> = x.iter().map(digit).collect();
        for down in [false, true] {
            let mut places: Vec<u32> = (0..n as u32).collect();
            let digit = |place: &u32| digits[*place as usize];
            places.sort_by(|a, b| if down { digit(b).cmp(&digit(a)) } else { digit(a).cmp(&digit(b)) });
            let want = taken(&x, &places);
            let order = if down { Order::descending() } else { Order::ascending() }.bits(begin..end);
            for (name, device) in devices {
                let what = format!("{name}: bits {begin}..{end} of {}, down: {down}", T::TYPE);
                same(&device.sort(&x, order.clone()).unwrap().to_vec().unwrap(), &want, &what);
                let found = device.argsort::<_, u32, _>(&x, order.clone()).unwrap().to_vec().unwrap();
                assert!(found == places, "{what}, argsort");
                let merged = device.sort(&x, Merging(&order)).unwrap().to_vec().unwrap();
                same(&merged, &want, &format!("{what}, merge_sort"));
            }
        }
    }
}

#[test]
fn bit_ranges_of_floats_sort_by_their_ordered_numbers() {
    each_type!(sorts_by_bits);
}

fn sorts_segments<T: Element>(devices: &[(String, Device)]) {
    let n = if tiny() { 400 } else { 40_009 };
    let x: Vec<T> = floats(n, 3);
    let mut offsets: Vec<u32> = vec![2, 2, 5, 36, 100];
    offsets.extend((1..9).map(|i| 100 + i * n as u32 / 300));
    offsets.extend([n as u32 - 40, n as u32 - 1]);
    offsets.sort_unstable();
    for (way, order, compare, down) in orders::<T>() {
        let mut all: Vec<u32> = (0..n as u32).collect();
        for pair in offsets.windows(2) {
            let (begin, end) = (pair[0] as usize, pair[1] as usize);
            let own = places(&x[begin..end], compare, down);
            all[begin..end].copy_from_slice(&own.iter().map(|place| place + pair[0]).collect::<Vec<_>>());
        }
        let (want, numbers) = (taken(&x, &all), (0..n as u32).collect::<Vec<_>>());
        for (name, device) in devices {
            let what = format!("{name}: segments of {} {way}", T::TYPE);
            let sorted = device.sort(x.segments(&offsets), order.clone()).unwrap().to_vec().unwrap();
            same(&sorted, &want, &format!("{what}, sort_segments"));
            let found = device.argsort::<_, u32, _>(x.segments(&offsets), order.clone()).unwrap().to_vec().unwrap();
            assert!(found == all, "{what}, argsort_segments");
            let (keys, values) = device.sort(x.segments(&offsets).with(&numbers), order.clone()).unwrap();
            same(&keys.to_vec().unwrap(), &want, &format!("{what}, sort_segments_pairs"));
            assert!(values.to_vec().unwrap() == all, "{what}, values of sort_segments_pairs");
        }
    }
}

#[test]
fn segments_are_sorted_in_the_order_of_floats() {
    each_type!(sorts_segments);
}

/// Equal keys may come in any order, but in the same one on every device, and no bits change.
fn sorts_in_place<T: Element>(devices: &[(String, Device)]) {
    for &n in lengths::<T>() {
        let x: Vec<T> = floats(n, 4);
        for (way, order, compare, down) in orders::<T>() {
            let mut want = x.clone();
            Device::cpu().sort_in_place(&mut want[..], order.clone()).unwrap();
            let fits = |pair: &[T]| {
                let order = if down { compare(pair[1], pair[0]) } else { compare(pair[0], pair[1]) };
                order != Ordering::Greater
            };
            let what = format!("{n} keys of {} {way}, sort_in_place", T::TYPE);
            assert!(want.windows(2).all(fits), "{what}: in order");
            let all = |x: &[T]| {
                let mut all: Vec<u64> = x.iter().map(|&x| bits(x)).collect();
                all.sort_unstable();
                all
            };
            assert!(all(&want) == all(&x), "{what}: the same bits");
            // All devices give the bits of the CPU's result, which is in order.
            for (name, device) in devices {
                let mut there = device.upload(&x).unwrap();
                device.sort_in_place(&mut there, order.clone()).unwrap();
                same(&there.to_vec().unwrap(), &want, &format!("{name}: {what}"));
            }
        }
    }
}

#[test]
fn sorts_in_place_keep_bits_and_put_nan_last() {
    each_type!(sorts_in_place);
}

fn sorted<T: Element>(x: &[T], compare: Comparison<T>, down: bool) -> Vec<T> {
    taken(x, &places(x, compare, down))
}

fn merges<T: Element>(devices: &[(String, Device)]) {
    let (len_a, len_b) = if tiny() { (200, 150) } else { (7001, 5003) };
    for (way, order, compare, down) in orders::<T>() {
        let (a, b) = (sorted(&floats::<T>(len_a, 5), compare, down), sorted(&floats::<T>(len_b, 6), compare, down));
        let both = [&a[..], &b[..]].concat();
        let places = places(&both, compare, down);
        let merged_wanted = taken(&both, &places);
        let numbers: Vec<u32> = (0..both.len() as u32).collect();
        let (first, second) = numbers.split_at(len_a);
        let before = |x: T, y: T| compare(x, y) == if down { Ordering::Greater } else { Ordering::Less };
        let needles: Vec<T> = special::<T>().into_iter().chain(floats(200, 7)).collect();
        let bounds = needles.iter().map(|&needle| {
            let lower = a.partition_point(|&x| before(x, needle));
            (lower, a.partition_point(|&x| !before(needle, x)))
        });
        let bounds: Vec<_> = bounds.collect();
        let unsorted = (1..both.len()).find(|&i| before(both[i], both[i - 1]));
        for (name, device) in devices {
            let what = format!("{name}: {} {way}", T::TYPE);
            let merged = device.merge(&a, &b, &order).unwrap().to_vec().unwrap();
            same(&merged, &merged_wanted, &format!("{what}, merge"));
            let (keys, values) = device.merge(a.with(first), b.with(second), &order).unwrap();
            same(&keys.to_vec().unwrap(), &merged_wanted, &format!("{what}, merge_pairs"));
            assert!(values.to_vec().unwrap() == places, "{what}, values of merge_pairs");
            let lower = device.search::<T, u32, _>(&a, &needles, Bound::Lower, &order).unwrap().to_vec().unwrap();
            let upper = device.search::<T, u32, _>(&a, &needles, Bound::Upper, &order).unwrap().to_vec().unwrap();
            for (i, &(want_lower, want_upper)) in bounds.iter().enumerate() {
                assert_eq!(lower[i] as usize, want_lower, "{what}, lower_bound of {:#x}", bits(needles[i]));
                assert_eq!(upper[i] as usize, want_upper, "{what}, upper_bound of {:#x}", bits(needles[i]));
            }
            assert!(device.first_unsorted(&a, &order).unwrap().is_none(), "{what}, is_sorted");
            assert_eq!(device.first_unsorted(&both, &order).unwrap(), unsorted, "{what}, first_unsorted");
        }
    }
}

#[test]
fn merges_and_searches_treat_zeros_and_nans_as_equal() {
    each_type!(merges);
}

/// The definition: a set operation keeps an element depending on its rank among equal elements.
fn set<T: Element>(op: SetOp, a: &[T], b: &[T], compare: Comparison<T>) -> Vec<T> {
    let both = sorted(&[a, b].concat(), compare, false);
    // Each element becomes the number of lesser elements in both inputs. These numbers are compared faster than floats.
    let number = |y: &T| both.partition_point(|&x| compare(x, *y) == Ordering::Less);
    let numbers = |x: &[T]| x.iter().map(number).collect::<Vec<_>>();
    let (of_a, of_b) = (numbers(a), numbers(b));
    let count = |x: &[usize], y: usize| x.iter().filter(|&&x| x == y).count();
    let rank = |x: &[usize], i: usize| count(&x[..i], x[i]);
    let kept_a = |i: usize| match op {
        SetOp::Union => true,
        SetOp::Intersection => rank(&of_a, i) < count(&of_b, of_a[i]),
        _ => rank(&of_a, i) >= count(&of_b, of_a[i]),
    };
    let kept_b = |i: usize| match op {
        SetOp::Union | SetOp::SymmetricDifference => rank(&of_b, i) >= count(&of_a, of_b[i]),
        _ => false,
    };
    let first = (0..a.len()).filter(|&i| kept_a(i)).map(|i| a[i]);
    let all: Vec<T> = first.chain((0..b.len()).filter(|&i| kept_b(i)).map(|i| b[i])).collect();
    sorted(&all, compare, false)
}

fn sets<T: Element>(devices: &[(String, Device)]) {
    let (len_a, len_b) = if tiny() { (120, 90) } else { (900, 1300) };
    for (way, order, compare, down) in orders::<T>() {
        if down {
            continue;
        }
        let (a, b) = (sorted(&floats::<T>(len_a, 8), compare, down), sorted(&floats::<T>(len_b, 9), compare, down));
        for op in [SetOp::Union, SetOp::Intersection, SetOp::Difference, SetOp::SymmetricDifference] {
            let want = set(op, &a, &b, compare);
            for (name, device) in devices {
                let got = device.set_operation(&a, &b, op, &order).unwrap().to_vec().unwrap();
                same(&got, &want, &format!("{name}: {op:?} of {} {way}", T::TYPE));
            }
        }
    }
}

#[test]
fn sets_treat_zeros_and_nans_as_equal() {
    each_type!(sets);
}

/// The start index of each run of equal elements.
fn heads<T: Element>(x: &[T]) -> Vec<usize> {
    (0..x.len()).filter(|&i| i == 0 || !equal(x[i - 1], x[i])).collect()
}

fn runs<T: Element>(devices: &[(String, Device)]) {
    for &n in lengths::<T>() {
        // The first half is sorted, so runs hold equal elements of different bits; the second half is random.
        let x: Vec<T> = floats::<T>(n, 10);
        let x: Vec<T> = sorted(&x[..n / 2], compare, false).into_iter().chain(x[n / 2..].iter().copied()).collect();
        let heads = heads(&x);
        let starts: Vec<u32> = heads.iter().map(|&i| i as u32).collect();
        let (want, ends) = (heads.iter().map(|&i| x[i]).collect::<Vec<_>>(), heads.iter().skip(1));
        let lengths: Vec<u32> = heads.iter().zip(ends.chain([&n])).map(|(begin, end)| (end - begin) as u32).collect();
        let long = || heads.iter().zip(&lengths).filter(|&(_, &length)| length > 1);
        let (long_starts, long_lengths): (Vec<u32>, Vec<u32>) = long().map(|(&i, &length)| (i as u32, length)).unzip();
        let (numbers, ones) = ((0..n as u32).collect::<Vec<_>>(), vec![1u32; n]);
        let ranks_wanted: Vec<u32> = lengths.iter().flat_map(|&length| 1..=length).collect();
        for (name, device) in devices {
            let what = format!("{name}: {n} of {}", T::TYPE);
            same(&device.unique(&x).unwrap().to_vec().unwrap(), &want, &format!("{what}, unique"));
            let (keys, values) = device.unique(numbers.by_key(&x)).unwrap();
            same(&keys.to_vec().unwrap(), &want, &format!("{what}, unique_by_key"));
            assert!(values.to_vec().unwrap() == starts, "{what}, unique_by_key");
            let (values, found) = device.run_length_encode::<T, u32>(&x).unwrap();
            same(&values.to_vec().unwrap(), &want, &format!("{what}, run_length_encode"));
            assert!(found.to_vec().unwrap() == lengths, "{what}, lengths of run_length_encode");
            let (offsets, found) = device.non_trivial_runs::<T, u32>(&x).unwrap();
            assert!(offsets.to_vec().unwrap() == long_starts, "{what}, runs");
            assert!(found.to_vec().unwrap() == long_lengths, "{what}, lengths of runs");
            let (keys, sums) = device.reduce(ones.by_key(&x), Sum).unwrap();
            same(&keys.to_vec().unwrap(), &want, &format!("{what}, reduce_by_key"));
            assert!(sums.to_vec().unwrap() == lengths, "{what}, sums of reduce_by_key");
            let ranks = device.scan(ones.by_key(&x), Sum).unwrap();
            assert!(ranks.to_vec().unwrap() == ranks_wanted, "{what}, scan_by_key");
        }
    }
}

#[test]
fn runs_continue_across_zeros_of_either_sign_and_across_nans() {
    each_type!(runs);
}

/// The indices of the first k elements in the expected order.
fn best<T: Element>(x: &[T], k: usize, largest: bool, total: bool) -> Vec<u32> {
    let mut places = places(x, if total { compare_bits } else { compare }, largest);
    places.truncate(k);
    places
}

/// The devices with another tuning: the bounds of a threshold come from few samples, and few work-groups have several
/// tiles each. So a selection from few keys runs all paths.
fn with_few_samples(devices: &[(String, Device)]) -> Vec<(String, Device)> {
    let tuned = |(name, device): &(String, Device)| {
        let groups = 2 * device.info().compute_units as usize;
        let geometry = tunings().into_iter().find(|(kind, _)| name.ends_with(kind));
        let tuning = geometry.map_or(Tuning::default(), |(_, tuning)| tuning);
        let mut tuning = tuning.set(Primitive::TopK, "each", 16).set(Primitive::TopK, "max_groups", groups);
        // Small work-groups have few samples anyway.
        let caps = device.capabilities().unwrap();
        if caps.is_some_and(|caps| parameters(Primitive::TopK, &caps, 4).iter().any(|known| known.name == "sample")) {
            tuning = tuning.set(Primitive::TopK, "sample", 1024);
        }
        (format!("{name}, few samples"), device.with_tuning(tuning).unwrap())
    };
    devices.iter().map(tuned).collect()
}

fn selects<T: Element>(devices: &[(String, Device)]) {
    let all = [1, 300, 5003, MANY];
    let few = match T::TYPE {
        _ if tiny() => &all[1..2],
        ElementType::F32 => &all[..],
        _ => &all[..3],
    };
    for &n in few {
        let tuned = if n == MANY { with_few_samples(devices) } else { Vec::new() };
        let devices = if n == MANY { &tuned } else { devices };
        let x: Vec<T> = floats(n, 11);
        // `rare` has few NaN and zeros, so its sampled bounds hold. This tests that case, too.
        let rare: Vec<T> = (0..n)
            .map(|i| if mixed(i).is_multiple_of(50) { x[i] } else { T::from_bits_lossy(mixed(i) >> 5) })
            .collect();
        for x in [&x, &rare] {
            for (largest, total) in [(true, false), (false, false), (true, true)] {
                let all = best(x, n, largest, total);
                for k in [1, n / 100, n / 2, n].into_iter().filter(|&k| k > 0) {
                    let top = if largest { Top::largest(k) } else { Top::smallest(k) };
                    let top = if total { top.total_order() } else { top };
                    let ordered = &all[..k];
                    let mut places = ordered.to_vec();
                    places.sort_unstable();
                    let (ordered_keys, want) = (taken(x, ordered), taken(x, &places));
                    for (name, device) in devices {
                        let what = format!("{name}: {k} of {n} {}, largest: {largest}, total: {total}", T::TYPE);
                        let (keys, found) = device.top_k(x.indexed::<u32>(), top.sorted()).unwrap();
                        assert!(found.to_vec().unwrap() == ordered, "{what}, sorted indices");
                        same(&keys.to_vec().unwrap(), &ordered_keys, &format!("{what}, sorted"));
                        let (keys, found) = device.top_k(x.indexed::<u32>(), top).unwrap();
                        assert!(found.to_vec().unwrap() == places, "{what}, indices");
                        same(&keys.to_vec().unwrap(), &want, &what);
                        same(&device.top_k(x, top).unwrap().to_vec().unwrap(), &want, &format!("{what}, alone"));
                    }
                }
            }
            let sorted = sorted(x, compare, false);
            let zero = |x: &T| x.to_f64() == 0.0;
            let zeros = [sorted.iter().position(zero), sorted.iter().rposition(zero)];
            let nan = sorted.iter().position(|x| x.is_nan());
            let mut ranks: Vec<usize> =
                [0, n / 3, n / 2, n - 1].into_iter().chain(zeros.into_iter().flatten()).collect();
            ranks.extend(nan.into_iter().flat_map(|at| [at, at.saturating_sub(1), (at + n) / 2]));
            for (name, device) in devices {
                for ranks in [&ranks[..], &ranks.iter().cycle().take(20).copied().collect::<Vec<_>>()] {
                    let mut found = vec![T::ONE; ranks.len()];
                    device.nth_element_into(x, ranks, &mut found[..]).unwrap();
                    let want: Vec<T> = ranks.iter().map(|&rank| sorted[rank]).collect();
                    same(&found, &want, &format!("{name}: {} ranks of {n} {}", ranks.len(), T::TYPE));
                }
                let got = device.nth_element(x, n / 2).unwrap();
                same(&[got], &sorted[n / 2..=n / 2], &format!("{name}: nth_element of {n} {}", T::TYPE));
            }
        }
    }
}

#[test]
fn selections_treat_nan_as_largest_and_take_the_first_of_equal_keys() {
    each_type!(selects);
}

fn rows<T: Element>(devices: &[(String, Device)]) {
    let (rows, len, k) = (if tiny() { 3 } else { 40 }, 301, 60);
    let x: Vec<T> = floats(rows * len, 12);
    for (largest, sorted) in [(true, true), (false, false)] {
        let top = if largest { Top::largest(k) } else { Top::smallest(k) }.in_rows(len);
        let of = |row: &[T]| {
            let mut places = best(row, k, largest, false);
            if !sorted {
                places.sort_unstable();
            }
            places
        };
        let want: Vec<u32> = x.chunks(len).flat_map(of).collect();
        for (name, device) in devices {
            let (_, found) = device.top_k(x.indexed::<u32>(), if sorted { top.sorted() } else { top }).unwrap();
            assert!(found.to_vec().unwrap() == want, "{name}: rows of {}, largest: {largest}", T::TYPE);
        }
    }
}

#[test]
fn selections_from_rows_treat_nan_as_largest() {
    each_type!(rows);
}

fn quantiles<T: Element>(devices: &[(String, Device)]) {
    let n = if tiny() { 301 } else { 20_001 };
    let x: Vec<T> = floats::<T>(n, 13).into_iter().map(|x| if x.is_nan() { T::ONE } else { x }).collect();
    let want = sorted(&x, compare, false)[n / 2].to_f64();
    for (name, device) in devices {
        let median = device.median(&x).unwrap();
        assert_eq!(median.to_bits(), want.to_bits(), "{name}: {n} of {}", T::TYPE);
    }
    for nan in special::<T>().into_iter().filter(|x| x.is_nan()) {
        let mut x = x.clone();
        x[n / 3] = nan;
        for (name, device) in devices {
            let what = format!("{name}: {n} of {}", T::TYPE);
            for q in [0.0, 0.3, 1.0] {
                let got = device.quantile(&x, q, Interpolation::Lower).unwrap();
                assert!(got.is_nan(), "{what}: quantile {q} with NaN {:#x} is {got}", bits(nan));
            }
        }
    }
}

#[test]
fn quantiles_with_nan_of_either_sign_are_nan() {
    each_type!(quantiles);
}

/// `arg_max` treats NaN as `top_k` does; of zeros, both take the first.
fn agrees<T: Element>(devices: &[(String, Device)]) {
    let with_nan: Vec<T> = floats(301, 14);
    let without: Vec<T> = with_nan.iter().copied().filter(|x| !x.is_nan()).collect();
    let zeros = [0.0, -0.0, 0.0, -1.0].map(T::from_f64);
    let minus_first = [-0.0, 0.0, -1.0].map(T::from_f64);
    for (name, device) in devices {
        if T::TYPE.needs_fp64() && device.capabilities().unwrap().is_some_and(|caps| !caps.fp64) {
            let error = device.arg_max(&[T::ONE]).unwrap_err();
            assert_eq!(error.kind(), oclprim::ErrorKind::Unsupported, "{name}");
            continue;
        }
        for x in [&with_nan[..], &without, &zeros, &minus_first] {
            let Extreme { index, value, .. } = device.arg_max(x).unwrap();
            let (keys, places) = device.top_k(x.indexed::<u32>(), Top::largest(1)).unwrap();
            assert_eq!(index as u32, places.to_vec().unwrap()[0], "{name}: {} {x:?}", T::TYPE);
            assert!(equal(value, keys.to_vec().unwrap()[0]), "{name}: {} {x:?}", T::TYPE);
            let max = device.reduce(x, Max).unwrap();
            assert!(equal(max, value), "{name}: {} {x:?}", T::TYPE);
        }
        // `arg_min` finds NaN. The smallest key of `top_k` is not NaN, because NaN is the largest key.
        assert!(device.arg_min(&with_nan).unwrap().value.is_nan(), "{name}");
        assert!(!device.top_k(&with_nan, Top::smallest(1)).unwrap().to_vec().unwrap()[0].is_nan(), "{name}");
        let place = device.top_k(without.indexed::<u32>(), Top::smallest(1)).unwrap().1.to_vec().unwrap()[0];
        assert_eq!(device.arg_min(&without).unwrap().index as u32, place, "{name}: {}", T::TYPE);
    }
}

#[test]
fn arg_max_is_the_index_of_the_first_of_top_k() {
    each_type!(agrees);
}

#[test]
fn x86_nan_of_zero_by_zero_sorts_last_and_is_the_largest() {
    let _alone = alone();
    // x86 returns this NaN, whose sign is set, for 0 / 0.
    let x = [1.0f32, f32::from_bits(0xffc0_0000), -2.0, f32::INFINITY];
    for (name, device) in tuned(&tunings()) {
        let sorted = device.sort(&x, Order::ascending()).unwrap().to_vec().unwrap();
        same(&sorted, &[-2.0, 1.0, f32::INFINITY, x[1]], &name);
        let down = device.sort(&x, Order::descending()).unwrap().to_vec().unwrap();
        same(&down, &[x[1], f32::INFINITY, 1.0, -2.0], &name);
        let (_, place) = device.top_k(x.indexed::<u32>(), Top::largest(1)).unwrap();
        assert_eq!(place.to_vec().unwrap(), [1], "{name}");
        assert_eq!(device.arg_max(&x).unwrap().index, 1, "{name}");
    }
}

#[test]
fn arrays_sorted_by_numpy_are_sorted_and_zeros_intersect() {
    let _alone = alone();
    let up = Order::ascending();
    for (name, device) in tuned(&tunings()) {
        assert!(device.first_unsorted(&[0.0f64, -0.0, 1.0, f64::NAN, -f64::NAN], &up).unwrap().is_none(), "{name}");
        assert!(device.first_unsorted(&[-f64::NAN, 1.0], &up).unwrap().is_some(), "{name}");
        let both = device.set_operation(&[-0.0f32], &[0.0], SetOp::Intersection, &up).unwrap().to_vec().unwrap();
        same(&both, &[-0.0], &name);
        assert_eq!(bytes(&device.unique(&[-0.0f32, 0.0]).unwrap().to_vec().unwrap()), bytes(&[-0.0f32]), "{name}");
        let total = up.clone().total_order();
        assert!(device.first_unsorted(&[0.0f64, -0.0], &total).unwrap().is_some(), "{name}");
        assert!(device.set_operation(&[-0.0f32], &[0.0], SetOp::Intersection, &total).unwrap().is_empty(), "{name}");
    }
}
