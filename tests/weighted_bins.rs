//! Weighted histograms: each sum is the exact sum of its bin's own weights, rounded once.

mod common;

use oclprim::{Accumulate, Bins, Device, Element, Source, Weight, WeightedHistogram, bf16, f16};

/// The devices that compute with `T`.
fn devices_with<T: Element>() -> impl Iterator<Item = (String, Device)> {
    common::with_geometries().into_iter().filter(|(_, device)| !T::TYPE.needs_fp64() || common::has_doubles(device))
}

fn random_bits() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// The bits of all sums, with one bit pattern for every NaN.
fn bits<S: Element>(found: &WeightedHistogram<S>) -> Vec<u64> {
    let outside = [found.outside.below, found.outside.above, found.outside.nan];
    let bits = |x: &S| if x.is_nan() { u64::MAX } else { x.to_f64().to_bits() };
    found.sums.iter().chain(&outside).map(bits).collect()
}

fn ids(n: usize, bins: usize) -> Vec<u32> {
    let mut next = random_bits();
    (0..n).map(|_| (next() % (bins as u64 + 1)) as u32).collect()
}

#[track_caller]
fn sums_are<W: Weight>(weights: &[W], want: W::Sum) {
    for (name, device) in devices_with::<W>() {
        for bins in [1, 2000] {
            let found =
                device.histogram(vec![0u32; weights.len()].weighted(weights), &Bins::ids(bins).unwrap()).unwrap();
            let right = found.sums[0].to_f64().to_bits() == want.to_f64().to_bits()
                || (found.sums[0].is_nan() && want.is_nan());
            assert!(right, "{name}, {bins} bins: {} instead of {want} for {weights:?}", found.sums[0]);
        }
    }
}

#[test]
fn small_weights_are_not_lost_beside_other_bins() {
    for (name, device) in common::with_geometries() {
        let found = device.histogram([0u32, 1].weighted(&[1e12f32, 1e-7]), &Bins::ids(2).unwrap()).unwrap();
        assert_eq!(found.sums, [1e12, 1e-7], "{name}");
        let least = f32::from_bits(1);
        let found = device.histogram([0u32, 1, 2, 9].weighted(&[f32::MAX, least, 1.0, -least]), &Bins::ids(3).unwrap());
        let found = found.unwrap();
        assert_eq!((found.sums, found.outside.above), (vec![f32::MAX, least, 1.0], -least), "{name}");
    }
    for (name, device) in devices_with::<f64>() {
        let found = device.histogram([0u32, 1].weighted(&[f64::MAX, 5e-324]), &Bins::ids(2).unwrap()).unwrap();
        assert_eq!(found.sums, [f64::MAX, 5e-324], "{name}");
    }
}

#[test]
fn small_weights_are_not_lost_beside_large_ones_of_their_bin() {
    sums_are(&[1e30f32, 1.0, -1e30], 1.0);
    sums_are(&[1e300f64, 1.0, -1e300], 1.0);
    sums_are(&[f32::MAX, f32::from_bits(1), -f32::MAX], f32::from_bits(1));
    sums_are(&[f64::MAX, 5e-324, -f64::MAX], 5e-324);
    sums_are(&[f16::MAX, f16::from_bits(1), f16::MIN], f32::from(f16::from_bits(1)));
    sums_are(&[bf16::MAX, bf16::from_bits(1), bf16::MIN], f32::from(bf16::from_bits(1)));
}

#[test]
fn sums_are_rounded_once_to_the_nearest_even() {
    let u = f32::EPSILON / 2.0;
    sums_are(&[1.0, u], 1.0);
    sums_are(&[1.0, u, f32::from_bits(1)], 1.0 + 2.0 * u);
    sums_are(&[1.0 + 2.0 * u, u], 1.0 + 4.0 * u);
    sums_are(&[-1.0, -u, -f32::from_bits(1)], -1.0 - 2.0 * u);
    sums_are(&[1.0, u, -f32::from_bits(1)], 1.0);
    let u = f64::EPSILON / 2.0;
    sums_are(&[1.0, u], 1.0);
    sums_are(&[1.0, u, 5e-324], 1.0 + 2.0 * u);
    sums_are(&[-1.0, -u, -5e-324], -1.0 - 2.0 * u);
}

#[test]
fn only_the_final_sum_overflows() {
    sums_are(&[f32::MAX, f32::MAX], f32::INFINITY);
    sums_are(&[f32::MAX, f32::MAX, -f32::MAX], f32::MAX);
    let half_a_unit = 2f32.powi(103);
    sums_are(&[f32::MAX, half_a_unit], f32::INFINITY);
    sums_are(&[f32::MAX, half_a_unit.next_down()], f32::MAX);
    sums_are(&[-f64::MAX, -f64::MAX], f64::NEG_INFINITY);
    sums_are(&[f64::MAX, f64::MAX, -f64::MAX], f64::MAX);
}

#[test]
fn infinities_and_nan_propagate_as_in_a_sum() {
    sums_are(&[1.0f32, f32::INFINITY], f32::INFINITY);
    sums_are(&[1.0f32, f32::NEG_INFINITY], f32::NEG_INFINITY);
    sums_are(&[f32::INFINITY, f32::NEG_INFINITY], f32::NAN);
    sums_are(&[1.0f64, f64::NAN, f64::INFINITY], f64::NAN);
    sums_are(&[f16::INFINITY, f16::ONE], f32::INFINITY);
}

#[test]
fn sums_of_zero_are_positive() {
    sums_are(&[-0.0f32, -0.0], 0.0);
    sums_are(&[1.5f32, -1.5], 0.0);
    sums_are::<f32>(&[], 0.0);
}

#[test]
fn subnormal_weights_and_sums_are_exact() {
    let tiny = f32::from_bits;
    sums_are(&[tiny(3), tiny(5), -tiny(1)], tiny(7));
    sums_are(&[f32::MIN_POSITIVE, -tiny(1)], tiny(0x007f_ffff));
    sums_are(&[tiny(0x007f_ffff), tiny(1)], f32::MIN_POSITIVE);
    sums_are(&[f64::MIN_POSITIVE, -5e-324], f64::from_bits((1 << 52) - 1));
}

/// Weights whose exponents fit 128 bits, so integers give the exact sum.
fn sums_by_integers<W: Weight>(n: usize, bins: usize, spread: u64, nearest: fn(i128) -> W::Sum) {
    const UNIT: i32 = -80;
    let (samples, mut next) = (ids(n, bins), random_bits());
    let mut want = vec![0i128; bins + 1];
    let weights: Vec<W> = samples
        .iter()
        .map(|&bin| {
            let size = (next() % (1 << 20)) as i64 - (1 << 19);
            let exponent = (next() % spread) as i32 + UNIT;
            want[bin as usize] += i128::from(size) << (exponent - UNIT);
            let weight = W::from_f64(size as f64 * 2f64.powi(exponent));
            assert_eq!(weight.to_f64(), size as f64 * 2f64.powi(exponent));
            weight
        })
        .collect();
    let want: Vec<W::Sum> = want.into_iter().map(nearest).collect();
    for (name, device) in devices_with::<W>() {
        let found = device.histogram(samples.weighted(&weights), &Bins::ids(bins).unwrap()).unwrap();
        let right = found.sums == want[..bins] && found.outside.above == want[bins];
        assert!(right, "{name}: {} in {bins} bins, {spread} powers of two", W::TYPE);
    }
}

#[test]
fn sums_equal_exact_integer_sums() {
    let (f32s, f64s) = (|sum: i128| sum as f32 * 2f32.powi(-80), |sum: i128| sum as f64 * 2f64.powi(-80));
    for (n, bins) in [(1000, 3), (20_011, 100), (6000, 20_000)] {
        for spread in [1, 20, 90] {
            sums_by_integers::<f32>(n, bins, spread, f32s);
            sums_by_integers::<f64>(n, bins, spread, f64s);
        }
    }
}

/// Random bits: all exponents of the type, with subnormal and infinite weights and NaN.
fn sums_of_all_exponents<W: Weight>(n: usize, bins: usize) {
    let (samples, mut next) = (ids(n, bins), random_bits());
    let finite = |w: &W| w.to_f64().is_finite();
    let mut weights: Vec<W> = (0..n).map(|_| W::from_bits_lossy(next())).collect();
    weights.iter_mut().skip(9).filter(|w| !finite(w)).for_each(|w| *w = W::ONE);
    let layout = Bins::ids(bins).unwrap();
    let want = bits(&Device::cpu().histogram(samples.weighted(&weights), &layout).unwrap());
    // Each bin's weights are summed alone, in another order.
    for bin in (0..bins).step_by(bins.div_ceil(100)) {
        let own: Vec<W> =
            samples.iter().zip(&weights).filter(|&(&id, _)| id as usize == bin).map(|(_, &w)| w).rev().collect();
        let alone = Device::cpu().histogram(vec![0u8; own.len()].weighted(&own), &Bins::ids(1).unwrap()).unwrap();
        assert_eq!(bits(&alone)[0], want[bin], "{} in bin {bin}", W::TYPE);
    }
    for (name, device) in devices_with::<W>() {
        let found = device.histogram(samples.weighted(&weights), &layout).unwrap();
        assert!(bits(&found) == want, "{name}: {} in {bins} bins", W::TYPE);
    }
}

#[test]
fn bins_are_independent_of_one_another_and_of_order() {
    for (n, bins) in [(700, 1), (20_000, 64), (5000, 12_000)] {
        sums_of_all_exponents::<f32>(n, bins);
        sums_of_all_exponents::<f64>(n, bins);
        sums_of_all_exponents::<f16>(n, bins);
        sums_of_all_exponents::<bf16>(n, bins);
    }
}

#[test]
fn many_bins_are_counted_in_ranges() {
    // A device's scratch has fewer slots than bins, because a slot for doubles takes hundreds of bytes.
    let (n, bins) = (3000, (1 << 22) + 5);
    let samples: Vec<u32> = (0..n).map(|i: u32| i.wrapping_mul(2_654_435_761) >> 9).collect();
    let weights: Vec<f64> = (0..n).map(|i| 2f64.powi((i % 2000) as i32 - 1000) * f64::from(i)).collect();
    let layout = Bins::ids(bins).unwrap();
    let want = Device::cpu().histogram(samples.weighted(&weights), &layout).unwrap();
    for (name, device) in
        devices_with::<f64>().filter(|(name, _)| !name.contains("Oclgrind") && !name.contains(" as a "))
    {
        let found = device.histogram(samples.weighted(&weights), &layout).unwrap();
        assert!(found == want, "{name}");
    }
}

#[test]
fn integer_sums_wrap() {
    sums_are(&[i64::MAX, 1, 1], i64::MIN + 1);
    sums_are(&[u64::MAX, 3], 2);
    sums_are(&[200u8, 100], 300u64);
    sums_are(&[-100i8, -100], -200i64);
}

#[test]
fn sums_accumulate_into_existing_ones() {
    for (name, device) in common::with_geometries() {
        let (mut sums, mut outside) = ([1.0f32, 2.0], [0.5; 3]);
        let layout = Bins::ids(2).unwrap();
        let weights = [1e10f32, 1.0, 0.25];
        let add = Accumulate::Add;
        device.histogram_into([0u8, 1, 7].weighted(&weights), &layout, &mut sums, &mut outside, add).unwrap();
        assert_eq!((sums, outside), ([1e10 + 1.0, 3.0], [0.5, 0.75, 0.5]), "{name}");
    }
}
