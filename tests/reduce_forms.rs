//! Statistics, counts, products and operators: whole tiles, wide numbers, the ends of the range.

#![cfg(feature = "checks")]

mod common;

use oclprim::{
    Device, Element, Scratch, Statistics, StatisticsRecord,
    check::data::{Data, Rng},
    op::Operator,
};

/// The OpenCL devices in the geometry of a GPU, also with 64-bit numbers.
fn gpus() -> Vec<(String, Device)> {
    let mut all = common::tuned(&[("a GPU", common::gpu()), ("a wide GPU", common::gpu().wide_offsets())]);
    all.retain(|(name, _)| name.ends_with("GPU"));
    if all.is_empty() {
        common::skip("reduce_forms", "no OpenCL device");
    }
    all
}

/// One element more than a tile, of 64 KiB: all loads of a GPU's item are in flight at once, and then there is a rest.
const ELEMENTS: usize = (64 << 10) / 4 + 1;

fn same<T: Element>(got: &Statistics<T>, want: &Statistics<T>, what: &str) {
    let places = |found: &Statistics<T>| [found.count, found.nan, found.min.index, found.max.index];
    assert_eq!(places(got), places(want), "{what}: count, NaN, places");
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
fn statistics_of_a_tile_of_floats() {
    statistics_of::<f32>(Data::Random);
    statistics_of::<f32>(Data::Special);
}

#[test]
fn statistics_of_a_tile_of_integers() {
    statistics_of::<i32>(Data::Random);
}

#[test]
fn min_max_of_a_tile() {
    let x: Vec<f32> = Data::Special.generate(ELEMENTS, 2);
    let x: Vec<f32> = x.into_iter().map(|x| if x.is_nan() { 2.0 } else { x }).collect();
    let want = Device::cpu().min_max(&x).unwrap();
    for (name, device) in gpus() {
        assert_eq!(device.min_max(&device.upload(&x).unwrap()).unwrap(), want, "{name}");
    }
}

#[test]
fn counts_of_a_tile() {
    let mut rng = Rng::new(3);
    let x: Vec<u32> = (0..ELEMENTS).map(|_| rng.next() as u32 % 3).collect();
    let non_zero = x.iter().filter(|&&x| x != 0).count();
    let twos = x.iter().filter(|&&x| x == 2).count();
    for (name, device) in gpus() {
        let x = device.upload(&x).unwrap();
        assert_eq!((device.count(&x).unwrap(), device.count_of(&x, 2).unwrap()), (non_zero, twos), "{name}");
    }
}

#[test]
fn operators_over_a_tile() {
    let sum = Operator::new("sum", -0.0f32, |a, b| a + b, "a + b");
    let x: Vec<f32> = Data::Random.generate(ELEMENTS, 4);
    let want = Device::cpu().reduce_by(&x, &sum).unwrap();
    for (name, device) in gpus() {
        let got = device.reduce_by(&device.upload(&x).unwrap(), &sum).unwrap();
        assert_eq!(got.to_bits(), want.to_bits(), "{name}");
    }
}

#[test]
fn products_of_a_tile() {
    let x: Vec<f32> = Data::Random.generate(2 * ELEMENTS, 5);
    let want: f32 = Device::cpu().dot(&x[..ELEMENTS], &x[ELEMENTS..]).unwrap();
    for (name, device) in gpus() {
        // One input aligned, then both.
        let (left, both) = (device.upload(&x[..ELEMENTS]).unwrap(), device.upload(&x).unwrap());
        let got: f32 = device.dot(both.view(..ELEMENTS).unwrap(), both.view(ELEMENTS..).unwrap()).unwrap();
        let aligned: f32 = device.dot(&left, &x[ELEMENTS..]).unwrap();
        assert_eq!([got.to_bits(), aligned.to_bits()], [want.to_bits(); 2], "{name}");
    }
}

/// Elements that are as far from one another as their type allows: what the unit tests say of the CPU, on devices.
#[test]
fn statistics_at_the_ends_of_the_range() {
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
fn a_record_of_nothing_is_left_as_it_was() {
    for (name, device) in common::devices() {
        let mut record = device.zeroed::<StatisticsRecord<i32>>(1).unwrap();
        let nothing: [i32; 0] = [];
        assert!(device.statistics_into(&nothing, &mut record, &mut Scratch::new()).is_err(), "{name}");
        let found = record.to_vec().unwrap()[0].get();
        assert!(found.count == 0 && found.mean.is_nan() && found.variance.is_nan(), "{name}: {found:?}");
    }
}
