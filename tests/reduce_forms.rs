//! Statistics, counts, products and operators: whole tiles, 64-bit offsets, and the ends of the range.

mod common;

use oclprim::{
    Device, Element, ErrorKind, Source, Statistics, StatisticsRecord, bf16, f16,
    internals::data::{Data, Rng},
    op::{EqualTo, Max, Min, NonZero, Operator, Sum},
};

/// The OpenCL devices in the geometry of a GPU, also with 64-bit offsets.
fn gpus() -> Vec<(String, Device)> {
    let mut all = common::tuned(&[("a GPU", common::gpu()), ("a wide GPU", common::gpu().wide_offsets())]);
    all.retain(|(name, _)| name.ends_with("GPU"));
    if all.is_empty() {
        common::skip("reduce_forms", "no OpenCL device");
    }
    all
}

/// A full tile of 64 KiB, in which a work-item has all its loads in flight at once, and one element in a partial tile.
const ELEMENTS: usize = (64 << 10) / 4 + 1;

fn same<T: Element>(got: &Statistics<T>, want: &Statistics<T>, what: &str) {
    let places = |found: &Statistics<T>| [found.count, found.nan, found.min.index, found.max.index];
    assert_eq!(places(got), places(want), "{what}: count, NaN, indices");
    assert!(got.min.value.same(want.min.value) && got.max.value.same(want.max.value), "{what}: {got:?} {want:?}");
    assert_eq!(got.integer_sum, want.integer_sum, "{what}");
    for (got, want) in [(got.sum, want.sum), (got.mean, want.mean), (got.variance, want.variance)] {
        assert!(got.same(want), "{what}: {got:e} instead of {want:e}");
    }
}

fn statistics_of<T: Element>(data: Data) {
    let x: Vec<T> = data.generate(ELEMENTS, 1);
    let want = Device::cpu().statistics(&x).unwrap();
    for (name, device) in gpus() {
        same(&device.statistics(&device.upload(&x).unwrap()).unwrap(), &want, &name);
    }
}

#[test]
fn statistics_of_a_full_tile_of_floats_equal_the_cpu() {
    statistics_of::<f32>(Data::Random);
    statistics_of::<f32>(Data::Special);
}

#[test]
fn statistics_of_a_full_tile_of_integers_equal_the_cpu() {
    statistics_of::<i32>(Data::Random);
}

/// The input has so many tiles that an additional launch joins their moments before the last launch.
#[test]
fn statistics_of_more_tiles_than_one_group_joins_equal_the_cpu() {
    let x: Vec<f64> = Data::Random.generate(1024 * (64 << 10) / 8 + 17, 5);
    let want = Device::cpu().statistics(&x).unwrap();
    for (name, device) in gpus() {
        if !common::runs_kernels_at_once(&device) {
            common::skip("statistics of many tiles", "an interpreter takes minutes");
            continue;
        }
        match device.statistics(&device.upload(&x).unwrap()) {
            Err(error) if error.kind() == ErrorKind::Unsupported => common::skip(&name, &error.to_string()),
            found => same(&found.unwrap(), &want, &name),
        }
    }
}

#[test]
fn min_max_of_a_full_tile_equals_the_cpu() {
    let x: Vec<f32> = Data::Special.generate(ELEMENTS, 2);
    let x: Vec<f32> = x.into_iter().map(|x| if x.is_nan() { 2.0 } else { x }).collect();
    let want = Device::cpu().min_max(&x).unwrap();
    for (name, device) in gpus() {
        assert_eq!(device.min_max(&device.upload(&x).unwrap()).unwrap(), want, "{name}");
    }
}

/// Known answers for floats: elements, minimum with the index of arg-min, maximum with the index of arg-max. NaN is both
/// extremes. -0 is below +0 as a value, but arg-min and arg-max treat them as equal.
const KNOWN: &[(&[f64], Found, Found)] = &[
    (&[0.0, -0.0], (-0.0, 0), (0.0, 0)),
    (&[-0.0, 0.0], (-0.0, 0), (0.0, 0)),
    (&[-0.0], (-0.0, 0), (-0.0, 0)),
    (&[1.0, 0.0, -0.0, 0.0], (-0.0, 1), (1.0, 0)),
    (&[-1.0, -0.0, 0.0, -0.0], (-1.0, 0), (0.0, 1)),
    (&[2.0, INF, -INF, INF, -INF], (-INF, 2), (INF, 1)),
    (&[INF, 5.0, INF], (5.0, 1), (INF, 0)),
    (&[-INF, 5.0, -INF], (-INF, 0), (5.0, 1)),
    (&[INF, INF], (INF, 0), (INF, 0)),
    (&[-INF, -INF], (-INF, 0), (-INF, 0)),
    (&[NAN], (NAN, 0), (NAN, 0)),
    (&[INF, NAN, -INF, NAN], (NAN, 1), (NAN, 1)),
    (&[3.0, -INF, -NAN], (NAN, 2), (NAN, 2)),
    (&[-NAN, NAN, 1.0], (NAN, 0), (NAN, 0)),
];
type Found = (f64, usize);
const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// Checks minimum, maximum, arg-min, arg-max and min-max of these elements on a device.
fn extremes_are<T: Element>((name, device): &(String, Device), x: &[T], min: (T, usize), max: (T, usize)) {
    let what = || format!("{name}: {} of {}, {:?}", T::TYPE, x.len(), &x[..x.len().min(6)]);
    let on_device = device.upload(x).unwrap();
    let least = match device.arg_min(&on_device) {
        Err(error) if error.kind() == ErrorKind::Unsupported => return common::skip(&what(), &error.to_string()),
        least => least.unwrap(),
    };
    let most = device.arg_max(&on_device).unwrap();
    assert_eq!((least.index, most.index), (min.1, max.1), "{}: indices", what());
    assert!(least.value.same(x[min.1]) && most.value.same(x[max.1]), "{}: {least:?}, {most:?}", what());
    let ends = device.min_max(&on_device).unwrap();
    assert_eq!((ends.min.index, ends.max.index), (min.1, max.1), "{}: indices of min-max", what());
    assert!(ends.min.value.same(x[min.1]) && ends.max.value.same(x[max.1]), "{}: {ends:?}", what());
    let (low, high) = (device.reduce(&on_device, Min).unwrap(), device.reduce(&on_device, Max).unwrap());
    assert!(low.same(min.0) && high.same(max.0), "{}: {low:?}, {high:?}", what());
}

fn extremes_by_hand<T: Element>() {
    let of = |x: f64| T::from_f64(x);
    for device in common::tuned(&[("a GPU", common::gpu())]) {
        for (x, min, max) in KNOWN {
            let x: Vec<T> = x.iter().map(|&x| of(x)).collect();
            extremes_are(&device, &x, (of(min.0), min.1), (of(max.0), max.1));
        }
        // Two zeros are among other elements: in one lane, adjacent, or far apart.
        for (i, j) in [(0, 4999), (17, 18), (255, 256), (1024, 3000)] {
            for (a, b) in [(-0.0, 0.0), (0.0, -0.0)] {
                let among = |others: f64| {
                    let mut x = vec![of(others); 5000];
                    (x[i], x[j]) = (of(a), of(b));
                    x
                };
                extremes_are(&device, &among(7.0), (of(-0.0), i), (of(7.0), usize::from(i == 0)));
                extremes_are(&device, &among(-7.0), (of(-7.0), usize::from(i == 0)), (of(0.0), i));
            }
            let mut x = vec![of(INF); 5000];
            (x[i], x[j]) = (of(-NAN), of(NAN));
            extremes_are(&device, &x, (of(NAN), i), (of(NAN), i));
            (x[i], x[j]) = (of(-INF), of(-INF));
            extremes_are(&device, &x, (of(-INF), i), (of(INF), usize::from(i == 0)));
        }
    }
}

#[test]
fn extremes_of_f16_have_the_known_values() {
    extremes_by_hand::<f16>();
}

#[test]
fn extremes_of_bf16_have_the_known_values() {
    extremes_by_hand::<bf16>();
}

#[test]
fn extremes_of_f32_have_the_known_values() {
    extremes_by_hand::<f32>();
}

#[test]
fn extremes_of_f64_have_the_known_values() {
    extremes_by_hand::<f64>();
}

/// The known answers for each line of a matrix and each segment. Each repeats its last element up to `LEN` elements.
#[test]
fn extremes_of_lines_and_segments_have_the_known_values() {
    const LEN: usize = 6;
    let rows = KNOWN.len();
    let lines = KNOWN.iter().flat_map(|(x, ..)| x.iter().chain(std::iter::repeat_n(&x[x.len() - 1], LEN - x.len())));
    let x: Vec<f32> = lines.map(|&x| x as f32).collect();
    let turned: Vec<f32> = (0..x.len()).map(|i| x[i % rows * LEN + i / rows]).collect();
    let offsets: Vec<u32> = (0..=rows).map(|row| (row * LEN) as u32).collect();
    let value = |line: usize, end: usize| if end == 0 { KNOWN[line].1.0 } else { KNOWN[line].2.0 } as f32;
    let place = |line: usize, end: usize| if end == 0 { KNOWN[line].1.1 } else { KNOWN[line].2.1 };
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let (by_rows, by_columns) = (device.upload(&x).unwrap(), device.upload(&turned).unwrap());
        for (axis, view) in [(1, by_rows.nd(&[rows, LEN]).unwrap()), (0, by_columns.nd(&[LEN, rows]).unwrap())] {
            let ends = device.min_max(view.along(axis)).unwrap();
            let reduced = [device.reduce(view.along(axis), Min), device.reduce(view.along(axis), Max)];
            let found = [device.arg_min(view.along(axis)).unwrap(), device.arg_max(view.along(axis)).unwrap()];
            let (both, both_at) = (ends.values.to_vec().unwrap(), ends.indices.to_vec().unwrap());
            for (end, (reduced, found)) in reduced.into_iter().zip(found).enumerate() {
                let reduced = reduced.unwrap().to_vec().unwrap();
                let (values, places) = (found.values.to_vec().unwrap(), found.indices.to_vec().unwrap());
                for line in 0..rows {
                    let what = format!("{name}: end {end} of {:?} along axis {axis}", KNOWN[line].0);
                    let at = place(line, end);
                    let there = x[line * LEN + at];
                    assert!(reduced[line].same(value(line, end)), "{what}: {}", reduced[line]);
                    assert!(values[line].same(there) && places[line] == at as u64, "{what}: {}", values[line]);
                    let k = end * rows + line;
                    assert!(both[k].same(there) && both_at[k] == at as u64, "{what}: {} at {}", both[k], both_at[k]);
                }
            }
        }
        for (end, reduced) in
            [device.reduce(by_rows.segments(&offsets), Min), device.reduce(by_rows.segments(&offsets), Max)]
                .into_iter()
                .enumerate()
        {
            for (line, got) in reduced.unwrap().to_vec().unwrap().into_iter().enumerate() {
                assert!(got.same(value(line, end)), "{name}: end {end} of segment {:?}: {got}", KNOWN[line].0);
            }
        }
        let ends = device.min_max(by_rows.segments(&offsets)).unwrap();
        let (values, places) = (ends.values.to_vec().unwrap(), ends.indices.to_vec().unwrap());
        for k in 0..2 * rows {
            let (line, end) = (k % rows, k / rows);
            let at = place(line, end);
            let what = format!("{name}: end {end} of segment {:?}: {} at {}", KNOWN[line].0, values[k], places[k]);
            assert!(places[k] == at as u64 && values[k].same(x[line * LEN + at]), "{what}");
        }
    }
}

#[test]
fn counts_of_a_full_tile_are_exact() {
    let mut rng = Rng::new(3);
    let x: Vec<u32> = (0..ELEMENTS).map(|_| rng.next() as u32 % 3).collect();
    let non_zero = x.iter().filter(|&&x| x != 0).count();
    let twos = x.iter().filter(|&&x| x == 2).count();
    for (name, device) in gpus() {
        let x = device.upload(&x).unwrap();
        assert_eq!(
            (device.count(&x, NonZero).unwrap(), device.count(&x, EqualTo(2)).unwrap()),
            (non_zero as u64, twos as u64),
            "{name}"
        );
    }
}

#[test]
fn operators_over_a_full_tile_equal_the_cpu() {
    let sum = Operator::new("sum", -0.0f32, |a, b| a + b, "a + b");
    let x: Vec<f32> = Data::Random.generate(ELEMENTS, 4);
    let want = Device::cpu().reduce(&x, &sum).unwrap();
    for (name, device) in gpus() {
        let got = device.reduce(&device.upload(&x).unwrap(), &sum).unwrap();
        assert_eq!(got.to_bits(), want.to_bits(), "{name}");
    }
}

#[test]
fn dot_products_of_a_full_tile_equal_the_cpu() {
    let x: Vec<f32> = Data::Random.generate(2 * ELEMENTS, 5);
    let want = Device::cpu().reduce(x[..ELEMENTS].times(&x[ELEMENTS..]), Sum).unwrap();
    for (name, device) in gpus() {
        // In the first product one input is aligned, and in the second both are.
        let (left, both) = (device.upload(&x[..ELEMENTS]).unwrap(), device.upload(&x).unwrap());
        let (first, second) = (both.view(..ELEMENTS).unwrap(), both.view(ELEMENTS..).unwrap());
        let got = device.reduce(first.times(second), Sum).unwrap();
        let aligned = device.reduce(left.times(&x[ELEMENTS..]), Sum).unwrap();
        assert_eq!([got.to_bits(), aligned.to_bits()], [want.to_bits(); 2], "{name}");
    }
}

/// Elements as far apart as their type allows, on devices; unit tests cover the CPU.
#[test]
fn statistics_at_the_ends_of_the_range_equal_the_cpu() {
    fn check<T: Element>(device: &Device, most: f64, name: &str) {
        let m = 0.9 * most;
        let lanes = 4096 / size_of::<T>();
        let rows = |rows: &[f64]| rows.iter().flat_map(|&x| vec![x; lanes]).collect::<Vec<f64>>();
        let whole = rows(&[m, m, -m, 0.0, m, -m, -m, m, m, 1.0, m, m, -m, -m, m, m]);
        let inputs = [
            vec![-m, m],
            vec![m, m, -m],
            rows(&[m, m, -m]),
            rows(&[m, -m, -m])[1..].to_vec(),
            rows(&[most / 77.0; 16]),
            [whole.clone(), vec![f64::INFINITY]].concat(),
            whole,
        ];
        for x in inputs.into_iter().chain((1..=16).map(|n| rows(&vec![most; n]))) {
            let finite = x.iter().all(|x| x.is_finite());
            let x: Vec<T> = x.into_iter().map(T::from_f64).collect();
            let want = Device::cpu().statistics(&x).unwrap();
            assert_eq!(want.mean.is_finite(), finite, "{} elements up to {most}", x.len());
            same(&device.statistics(&device.upload(&x).unwrap()).unwrap(), &want, &format!("{name}: {}", x.len()));
        }
    }
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        check::<f32>(&device, f32::MAX.into(), &name);
        if device.capabilities().unwrap().is_none_or(|caps| caps.fp64) {
            check::<f64>(&device, f64::MAX, &name);
        }
    }
}

#[test]
fn records_fit_little_local_memory() {
    let x: Vec<f32> = Data::Random.generate(40_000, 6);
    let ids: Vec<i64> = Data::Random.generate(20_000, 6);
    let want = (Device::cpu().statistics(&x).unwrap(), Device::cpu().statistics(&ids).unwrap());
    for (name, device) in common::tuned(&[("a small GPU", common::gpu().local_bytes(8192))]) {
        same(&device.statistics(&x).unwrap(), &want.0, &name);
        same(&device.statistics(&ids).unwrap(), &want.1, &name);
        assert_eq!(device.min_max(&x).unwrap().max, want.0.max, "{name}");
    }
}

#[test]
fn statistics_of_empty_input_leave_the_record_unwritten() {
    for (name, device) in common::devices() {
        let mut record = device.zeroed::<StatisticsRecord<i32>>(1).unwrap();
        let nothing: [i32; 0] = [];
        assert!(device.statistics_into(&nothing, &mut record).is_err(), "{name}");
        let found = record.to_vec().unwrap()[0].get();
        assert!(found.count == 0 && found.mean.is_nan() && found.variance.is_nan(), "{name}: {found:?}");
    }
}
