//! Exact scans: every prefix is correctly rounded.

mod common;
#[path = "common/hard.rs"]
mod hard;

use oclprim::internals::scan::{Scan, in_scan};
use oclprim::{
    Determinism::Exact,
    Device, ErrorKind, ExactSum, Float, Layout, NdView, Source, Tuning, bf16, f16,
    internals::{data::Rng, oracle::exact_sum},
    op::{Max, Operator, Product, Sum, Usage},
};

use self::hard::{KINDS, bits, format_of, hard, same};

/// Number of elements of a tile on devices.
const TILE: usize = 4096;
/// Number of neighbouring records that have one record on the next level.
const LEVEL: usize = 64;

/// Every device in its own geometry, as a GPU, as a small one, and with 64-bit offsets.
fn devices() -> Vec<(String, Device)> {
    let mut all = Vec::new();
    for (name, device) in common::devices() {
        if device.capabilities().unwrap().is_some() {
            let mut add = |kind: &str, tuning: Tuning| {
                all.push((format!("{name}{kind}"), device.with_tuning(tuning).unwrap()));
            };
            add(" as a GPU", common::gpu());
            if !common::tiny() {
                add(" as a small GPU", common::gpu().local_bytes(8192));
                add(" with 64-bit offsets", common::gpu().wide_offsets());
            }
        }
        all.push((name, device));
    }
    all
}

/// The prefix sums of `x`. An initial value counts as an element before the others, so there is one more sum. The oracle
/// computes them, or [`ExactSum`] if there are many.
fn prefixes<T: Float, U: Float + From<T>>(x: &[T], initial: Option<U>) -> Vec<U> {
    let x: Vec<U> = initial.into_iter().chain(x.iter().map(|&x| x.into())).collect();
    if x.len() <= 400 {
        return (1..=x.len()).map(|end| exact_sum::<U, U>(&x[..end])).collect();
    }
    let mut sum = ExactSum::new();
    let add = |x: &U| {
        sum.add(*x);
        sum.round()
    };
    x.iter().map(add).collect()
}

fn reversed<T: Copy>(x: &[T]) -> Vec<T> {
    x.iter().rev().copied().collect()
}

/// All kinds of scans of `x`.
fn all_scans<T: Float>(device: &Device, x: &[T], initial: T, what: &str) {
    let (inclusive, exclusive) = (Scan::<T>::inclusive().with(Exact), Scan::exclusive(initial).with(Exact));
    let n = x.len();
    let (want, after) = (prefixes::<T, T>(x, None), prefixes::<T, T>(x, Some(initial)));
    let got = device.scan(x, in_scan(Sum, inclusive)).unwrap().to_vec().unwrap();
    same(&got, &want, &format!("{what}, inclusive"));
    let got = device.scan(x, in_scan(Sum, exclusive)).unwrap().to_vec().unwrap();
    same(&got, &after[..n], &format!("{what}, exclusive"));
    let mut got = vec![T::ONE; n + 1];
    device.scan_into(x, in_scan(Sum, exclusive), &mut got).unwrap();
    same(&got, &after, &format!("{what}, with the sum of all"));
    let back = reversed(x);
    device.scan_into(&back, in_scan(Sum, exclusive.reversed()), &mut got).unwrap();
    same(&got, &reversed(&after), &format!("{what}, reversed"));
    let mut there = device.upload(&back).unwrap();
    device.scan_in_place(&mut there, in_scan(Sum, inclusive.reversed())).unwrap();
    same(&there.to_vec().unwrap(), &reversed(&want), &format!("{what}, reversed in place"));
    let mut there = device.upload(x).unwrap();
    device.scan_in_place(&mut there, in_scan(Sum, exclusive)).unwrap();
    same(&there.to_vec().unwrap(), &after[..n], &format!("{what}, in place"));
}

fn initials<T: Float>() -> [T; 4] {
    [T::ZERO, T::ADD_IDENTITY, T::from_f64(3.0), T::from_f64(f64::INFINITY)]
}

#[test]
fn prefixes_of_hard_numbers_are_correctly_rounded() {
    fn all<T: Float>(device: &Device, name: &str) {
        let mut rng = Rng::new(1);
        for kind in 0..KINDS as usize {
            for n in [1, 37, 300] {
                let x = hard::<T>(kind, n, &mut rng);
                let initial = initials::<T>()[rng.below(4) as usize];
                all_scans(device, &x, initial, &format!("{name}: {n} {}, kind {kind}", T::TYPE));
            }
        }
    }
    for (name, device) in devices() {
        all::<f32>(&device, &name);
        all::<f16>(&device, &name);
        all::<bf16>(&device, &name);
        if common::has_doubles(&device) {
            all::<f64>(&device, &name);
        }
    }
}

/// Tiles, and groups of tiles.
#[test]
fn prefixes_of_many_numbers_are_correctly_rounded() {
    fn some<T: Float>(device: &Device, name: &str, sizes: &[usize], kinds: &[usize]) {
        let mut rng = Rng::new(2);
        for &n in sizes {
            for &kind in kinds {
                let x = hard::<T>(kind, n, &mut rng);
                all_scans(device, &x, T::ZERO, &format!("{name}: {n} {}, kind {kind}", T::TYPE));
            }
        }
    }
    for (name, device) in devices() {
        let (sizes, kinds): (&[usize], &[usize]) = match common::tiny() {
            true => (&[TILE + 1], &[0, 1]),
            false => (&[TILE - 1, TILE, TILE + 1, 9000], &[0, 1, 2, 3, 4, 6, 8, 10, 14]),
        };
        some::<f32>(&device, &name, sizes, kinds);
        some::<f16>(&device, &name, &sizes[..1], &kinds[..1]);
        let many = LEVEL * TILE + 5000;
        some::<f32>(&device, &name, &[many], &[1]);
        if common::has_doubles(&device) {
            some::<f64>(&device, &name, sizes, kinds);
            some::<f64>(&device, &name, &[many], &[1]);
        }
    }
}

/// A few small elements, a large one, and later the negative of the large one. Between these two, the bits of the small
/// elements can lie below the window of a tile. After them, only the small elements remain.
#[test]
fn prefixes_that_cancel_keep_their_lowest_bits() {
    fn all<T: Float>(device: &Device, name: &str) {
        let (precision, infinity) = format_of::<T>();
        let mut rng = Rng::new(3);
        let any = |rng: &mut Rng| T::from_bits_lossy(rng.next() % infinity);
        let large = |rng: &mut Rng| T::from_bits_lossy(infinity - 1 - (rng.next() % (3 << (precision - 1))));
        let negated = |x: T| T::from_f64(-x.to_f64());
        for (first, second) in [(0, 1), (TILE - 1, TILE), (100, TILE + 7), (0, 2 * TILE + 1), (3, 4000)] {
            for smalls in [1, 5, 40] {
                let mut x = vec![T::ZERO; 2 * TILE + 200];
                for _ in 0..smalls {
                    let at = rng.below(second as u64 + 60) as usize;
                    x[at] = any(&mut rng);
                }
                x[first] = large(&mut rng);
                x[second] = negated(x[first]);
                all_scans(device, &x, T::ZERO, &format!("{name}: {}, {first} and {second}", T::TYPE));
            }
        }
    }
    for (name, device) in devices() {
        all::<f32>(&device, &name);
        if common::has_doubles(&device) {
            all::<f64>(&device, &name);
        }
        if !common::tiny() {
            all::<f16>(&device, &name);
            all::<bf16>(&device, &name);
        }
    }
}

/// Prefixes that are ties, and prefixes that a far smaller element moves off a tie.
#[test]
fn ties_are_broken_by_elements_below_the_window() {
    fn all<T: Float>(device: &Device, name: &str) {
        let (precision, infinity) = format_of::<T>();
        let float = T::from_bits_lossy;
        let base = infinity / 8 * 7;
        let place = float(base + 1).to_f64() - float(base).to_f64();
        let sign = 1u64 << (8 * size_of::<T>() - 1);
        let small = [0, 1, sign | 1, infinity >> 3, sign | (infinity >> 3)];
        // The small number before the tile of the tie, or in it.
        for (at, tie) in [(2, 10), (2, TILE + 10), (TILE + 5, TILE + 10)] {
            for least in small {
                for odd in [0, 1] {
                    let mut x = vec![float(sign); TILE + 300];
                    x[0] = float(base + odd);
                    x[at] = float(least);
                    for k in 0..40 {
                        // The prefixes alternate between ties and floats.
                        x[tie + 2 * k] = T::from_f64(place / 2.0);
                    }
                    x[tie + 100] = T::from_f64(-place * 2f64.powi(precision - 2));
                    all_scans(device, &x, T::ADD_IDENTITY, &format!("{name}: {}, {at} {tie} {least:x}", T::TYPE));
                }
            }
        }
    }
    for (name, device) in devices() {
        all::<f32>(&device, &name);
        if common::has_doubles(&device) {
            all::<f64>(&device, &name);
        }
    }
}

/// The lowest bit of the numbers is `least` positions above the least positive float. The highest bit is `spread`
/// positions above the lowest. Kernels add in 64 bits only if the spread is small and the unit is a normal float. The
/// prefixes rise for some tiles, then fall until only a sum of lowest bits is left.
#[test]
fn prefixes_at_the_bounds_of_64_bit_units_are_correctly_rounded() {
    fn one<T: Float>(device: &Device, name: &str, (least, spread, tiles): (i32, i32, usize)) {
        let precision = format_of::<T>().0;
        let scaled = |size: i64, position: i32| T::from_f64(size as f64 * 2f64.powi(position - 149));
        let mut rng = Rng::new(least as u64);
        let mut small = |most: u64| scaled((2 * rng.below(most) as i64 + 1) * (1 - 2 * rng.below(2) as i64), least);
        // An initial value with the same lowest bit, or the next lower one.
        for (sign, below) in [(1, 0), (-1, 1)] {
            let large = |sign: i64| scaled(sign * ((1 << precision) - 1), least + spread - precision);
            let mut x = vec![large(sign); tiles * TILE];
            x.resize(2 * tiles * TILE, large(-sign));
            // In both halves, one of 64 large elements is replaced by a small one. So the remaining large ones still cancel.
            x.chunks_mut(64).for_each(|chunk| chunk[5] = small(1 << (precision - 1)));
            x.extend((0..100).map(|_| small(8)));
            let what = format!("{name}: {} of {least} + {spread} bits, {tiles} tiles, {sign}", T::TYPE);
            all_scans(device, &x, scaled(1, least - below), &what);
        }
    }
    for (name, device) in devices() {
        // The sum of a tile and its prefix has 61 to 64 bits.
        let mut bounds = vec![(22, 48, 2), (23, 48, 2), (23, 51, 2), (23, 49, 5)];
        if !common::tiny() {
            let spreads = |least| (47..52).map(move |spread| (least, spread, 2));
            bounds.extend([22, 23, 100, 226].into_iter().flat_map(spreads));
            // Some prefixes need a unit at position 231, one above the last that kernels take.
            bounds.push((230, 47, 8));
        }
        bounds.into_iter().for_each(|bounds| one::<f32>(&device, &name, bounds));
        [22, 23].into_iter().for_each(|least| one::<bf16>(&device, &name, (least, 48, 1)));
    }
}

/// In one scan, a kernel with 64-bit units writes some tiles, and one with windows of 128 bits the others.
#[test]
fn narrow_and_wide_tiles_of_one_scan_are_correctly_rounded() {
    let integers = |i: usize| ((i * 7919) % 2001) as f32 - 700.0;
    let of = |change: &dyn Fn(usize, usize, &mut f32)| {
        let mut x: Vec<f32> = (0..5 * TILE + 100).map(integers).collect();
        x.iter_mut().enumerate().for_each(|(i, x)| change(i / TILE, i % TILE, x));
        x
    };
    let large = 2f32.powi(100);
    // Only the wide kernel keeps the prefix while large elements cancel.
    let cancel = of(&|tile, at, x| match (tile % 3, at) {
        (1, 5) => *x = large,
        (1, 6) => *x = 1.0 / large,
        (1, 4000) => *x = -large,
        _ => {}
    });
    // In two tiles, prefixes above 2^24 would be ties without a tiny element before them. This element decides the
    // rounding. The other tiles have no ties.
    let ties = of(&|tile, at, x| match (tile, at) {
        (0, 3) => *x = 2f32.powi(24),
        (1, 7) => *x = 1.0 / large,
        (4, 9) => *x = -1.0 / large,
        (1 | 4, _) => *x = (*x as i32 | 1) as f32,
        _ => *x = 4.0 * x.trunc(),
    });
    // A prefix of more than 64 bits comes before tiles of integers, and is cancelled after them.
    let prefix = of(&|tile, at, x| match (tile, at) {
        (0, 3) => *x = large + large / 1024.0,
        (0, 4) | (3, 8) => *x = 2f32.powi(-40),
        (3, 7) => *x = -large - large / 1024.0,
        _ => {}
    });
    // Elements below half a unit, which together exceed a tie.
    let below = of(&|tile, at, x| {
        *x = match (tile, at) {
            (0, 0) => 2f32.powi(60),
            (0, 1) => 2f32.powi(36),
            (0, 2) => -819.0,
            (0, _) => 0.0,
            _ => 0.4,
        }
    });
    // The first tile has only -0, so its results are -0.
    let zeros = of(&|tile, at, x| {
        if tile == 0 || at < 9 {
            *x = -0.0
        }
    });
    let mut all = vec![("cancellation", cancel), ("ties", ties), ("a wide prefix", prefix)];
    all.extend([("elements below a unit", below), ("zeros", zeros)]);
    for (name, special) in [("infinity", f32::INFINITY), ("-infinity", f32::NEG_INFINITY), ("NaN", f32::NAN)] {
        let one = of(&|tile, at, x| {
            if (tile, at) == (2, 77) {
                *x = special
            }
        });
        all.push((name, one));
    }
    let subnormal = of(&|tile, at, x| {
        if (tile, at) == (1, 70) {
            *x = f32::from_bits(3)
        }
    });
    all.push(("a subnormal number", subnormal));
    for (device_name, device) in devices() {
        let initials: &[f32] = if common::tiny() { &[-0.0] } else { &[0.0, -0.0, 2f32.powi(-30)] };
        for (name, x) in &all {
            for &initial in initials {
                all_scans(&device, x, initial, &format!("{device_name}: {name}, from {initial:e}"));
            }
        }
    }
}

/// A device with little local memory gets work-groups smaller than a sub-group.
#[test]
fn work_groups_smaller_than_a_sub_group_have_exact_scans() {
    fn one<T: Float>(device: &Device, name: &str) {
        let x = hard::<T>(1, TILE + 300, &mut Rng::new(6));
        let got = device.scan(&x, in_scan(Sum, Scan::exclusive(T::ONE).with(Exact))).unwrap().to_vec().unwrap();
        same(&got, &prefixes::<T, T>(&x, Some(T::ONE))[..x.len()], &format!("{name}: {}", T::TYPE));
    }
    for (name, device) in common::devices() {
        let Some(caps) = device.capabilities().unwrap() else {
            common::skip(&name, "the CPU backend has no work-groups");
            continue;
        };
        for group in &caps.sub_groups {
            let device = device.with_tuning(common::gpu().sub_groups(group.backend).local_bytes(3000)).unwrap();
            let name = format!("{name}, sub-groups {}", group.backend.name());
            one::<f32>(&device, &name);
            if !common::tiny() && caps.fp64 {
                one::<f64>(&device, &name);
            }
        }
    }
}

#[test]
fn sources_and_other_types_have_exact_scans() {
    for (name, device) in devices() {
        let bytes: Vec<u8> = (0..5000).map(|i| (i * i % 251) as u8).collect();
        let got = device.scan(bytes.cast::<f32>(), Sum.exclusive().starting(0.5).exact()).unwrap().to_vec().unwrap();
        let want = prefixes::<f32, f32>(&bytes.iter().map(|&x| x.into()).collect::<Vec<_>>(), Some(0.5));
        same(&got, &want[..5000], &format!("{name}: u8"));
        let mut rng = Rng::new(4);
        let x = hard::<f32>(2, 5000, &mut rng);
        let got = device.scan((&x).reversed(), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &prefixes::<f32, f32>(&reversed(&x), None), &format!("{name}: a source"));
        if common::has_doubles(&device) {
            let got = device.scan(x.cast::<f64>(), Sum.exact()).unwrap().to_vec().unwrap();
            same(&got, &prefixes::<f32, f64>(&x, None), &format!("{name}: f32 in f64"));
        }
        let none = device.scan(&[0f32; 0], Sum.exact()).unwrap();
        assert_eq!(none.len(), 0, "{name}");
        let mut initial = [0f32];
        let exclusive = Scan::exclusive(7.0).with(Exact);
        device.scan_into(&[0f32; 0], in_scan(Sum, exclusive), &mut initial).unwrap();
        assert_eq!(bits(&initial), bits(&[7f32]), "{name}");
        let from_nan = Scan::exclusive(f32::from_bits(0xffc0_1234)).with(Exact);
        device.scan_into(&[0f32; 0], in_scan(Sum, from_nan), &mut initial).unwrap();
        assert_eq!(bits(&initial), bits(&[f32::NAN]), "{name}");
    }
}

/// Records of three levels. The sums are integers, which `f64` holds.
#[test]
fn prefixes_of_three_levels_are_correctly_rounded() {
    let n = LEVEL * LEVEL * TILE + 5000;
    for (name, device) in common::devices() {
        if device.capabilities().unwrap().is_none_or(|caps| caps.checker) {
            common::skip(&name, "the CPU backend has no levels, and a checker takes too long");
            continue;
        }
        let x: Vec<f32> = (0..n).map(|i| ((i * 7919) % 2001) as f32).collect();
        let got = device.scan(&x, Sum.exact()).unwrap().to_vec().unwrap();
        let mut sum = 0.0f64;
        let wrong = got.iter().zip(&x).position(|(&got, &x)| {
            sum += f64::from(x);
            got != sum as f32
        });
        assert_eq!(wrong, None, "{name}");
    }
}

#[test]
fn exact_scans_refuse_other_float_sums_products_and_operators() {
    let (x, ones) = ([1e30f32, 1.0, -1e30], [1u8; 3]);
    let kind = Scan::<f32>::inclusive().with(Exact);
    for (name, device) in common::devices() {
        let errors = [
            device.scan(&x, in_scan(Product, kind)).unwrap_err(),
            device.scan(x.by_key(&ones), in_scan(Sum, kind)).unwrap_err(),
            device.scan(x.segments(&[0u32, 3]), in_scan(Sum, kind)).unwrap_err(),
            device.scan(x.flagged(&ones), in_scan(Sum, kind)).unwrap_err(),
            device
                .scan(NdView::new(&x, Layout::contiguous(&[3]).unwrap()).unwrap().along(0), in_scan(Sum, kind))
                .unwrap_err(),
            device.scan(&x, in_scan(&Operator::new("sum", 0f32, |a, b| a + b, "a + b"), kind)).unwrap_err(),
        ];
        let union = Operator::new("union", 0u32, |a, b| a | b, "a | b");
        let in_place = device.scan_in_place(&mut [1u32, 2], (&union).exact()).unwrap_err();
        for error in errors.into_iter().chain([device.scan(&[1u32, 2], (&union).exact()).unwrap_err(), in_place]) {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
        }
        assert_eq!(device.scan(&x, in_scan(Max, kind)).unwrap().to_vec().unwrap(), [1e30; 3], "{name}");
        let wrapped = device.scan(&[i32::MAX, 1], Sum.exact()).unwrap();
        assert_eq!(wrapped.to_vec().unwrap(), [i32::MAX, i32::MIN], "{name}");
    }
}
