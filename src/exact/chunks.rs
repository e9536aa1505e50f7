//! Sums of chunks in `f64` registers, where the spread of exponents shows that they are exact. The module
//! [`exact`](crate::exact#sums-of-chunks) has the proof of the two bounds.

use crate::{Element, Float, sys::lines};

/// Elements of a chunk: `1 << LOG_LEN`.
pub(super) const LEN: usize = 1 << LOG_LEN;
const LOG_LEN: i32 = 9;
/// Partial sums, which fit in registers.
pub(super) const LANES: usize = 8;
/// Chunks by which the prefetch runs ahead.
pub(super) const AHEAD: usize = 2;
/// The largest exponent for which two registers are used. Beyond it, the extractor, or its sum with an element, could
/// overflow.
const LARGEST: i32 = 1022 - LOG_LEN;

/// The largest difference of exponents for which one register is exact.
const fn one_register(precision: i32) -> i32 {
    53 - precision - LOG_LEN
}

/// The largest difference of exponents for which two registers are exact.
const fn two_registers(precision: i32) -> i32 {
    107 - 2 * LOG_LEN - precision
}

/// Two numbers whose exact sum is the sum of the chunk, which has at most [`LEN`] elements. `None` if the bounds do not
/// prove that they are exact, if an element is not finite, or if all elements are 0. Also prefetches `later`, unless that
/// has another length. Without a prefetch, loads from memory would wait for the additions, and take twice as long.
#[inline(never)]
pub(super) fn sum<T: Float>(rows: &[[T; LANES]], later: &[[T; LANES]]) -> Option<[f64; 2]> {
    let later = if later.len() == rows.len() { later } else { rows };
    if const { T::TYPE.needs_fp64() } {
        let (least, most) = extremes(rows, later)?;
        let exact = most - least <= two_registers(53) && most <= LARGEST;
        return if exact { finite(two(rows, most)) } else { None };
    }
    let (total, least, most) = one(rows, later)?;
    let precision = T::TYPE.precision();
    if most - least <= one_register(precision) {
        return Some([total, 0.0]);
    }
    if most - least <= two_registers(precision) { finite(two(rows, most)) } else { None }
}

fn finite(sums: [f64; 2]) -> Option<[f64; 2]> {
    sums.iter().all(|sum| sum.is_finite()).then_some(sums)
}

/// The exponent of a number in 2^exponent..2^(exponent + 1); for a subnormal, a lower bound.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52) as i32 - 1023
}

/// The exponents of the smallest and the largest magnitude except 0; `None` for only zeros. NaNs are skipped.
fn extremes<T: Float>(rows: &[[T; LANES]], later: &[[T; LANES]]) -> Option<(i32, i32)> {
    let (mut least, mut most) = ([f64::INFINITY; LANES], [0f64; LANES]);
    for (row, later) in rows.iter().zip(later) {
        lines::fetch(bytemuck::bytes_of(later));
        let size = row.map(|x| x.widen().to_f64().abs());
        most = each(&size, &most, |x, most| if x > most { x } else { most });
        // A zero counts as infinity, so it is never the smallest.
        let size = size.map(|x| f64::from_bits(x.to_bits() | if x == 0.0 { f64::INFINITY.to_bits() } else { 0 }));
        least = each(&size, &least, |x, least| if x < least { x } else { least });
    }
    let (least, most) = (least.into_iter().fold(f64::INFINITY, f64::min), most.into_iter().fold(0.0, f64::max));
    (most > 0.0).then(|| (exponent(least), exponent(most)))
}

/// The sum in `f64`, and the exponents of the smallest and the largest magnitude except 0. `None` for only zeros, or if
/// an element is not finite. `T` is narrower than `f64`.
fn one<T: Float>(rows: &[[T; LANES]], later: &[[T; LANES]]) -> Option<(f64, i32, i32)> {
    let mut sums = [0f64; LANES];
    let (mut least, mut most) = ([f32::INFINITY; LANES], [0f32; LANES]);
    for (row, later) in rows.iter().zip(later) {
        lines::fetch(bytemuck::bytes_of(later));
        let row: [f32; LANES] = row.map(|x| bytemuck::cast(x.widen()));
        sums = each(&sums, &row, |sum, x| sum + f64::from(x));
        let size = row.map(f32::abs);
        most = each(&size, &most, |x, most| if x > most { x } else { most });
        // A zero counts as infinity, so it is never the smallest.
        let size = size.map(|x| f32::from_bits(x.to_bits() | if x == 0.0 { f32::INFINITY.to_bits() } else { 0 }));
        least = each(&size, &least, |x, least| if x < least { x } else { least });
    }
    let (least, most) = (least.into_iter().fold(f32::INFINITY, f32::min), most.into_iter().fold(0.0, f32::max));
    // Finite elements have a finite sum, since the range of `f64` is larger.
    let sum = total(&sums);
    (most > 0.0 && sum.is_finite()).then(|| (sum, exponent(least.into()), exponent(most.into())))
}

/// The sums of the high and of the low parts, for magnitudes below `2^(most + 1)`.
fn two<T: Float>(rows: &[[T; LANES]], most: i32) -> [f64; 2] {
    let extractor = 1.5 * power_of_two(most + LOG_LEN);
    let (mut high, mut low) = ([0f64; LANES], [0f64; LANES]);
    for row in rows {
        let row = row.map(|x| x.widen().to_f64());
        let parts = row.map(|x| (extractor + x) - extractor);
        high = each(&high, &parts, |sum, part| sum + part);
        low = each(&low, &each(&row, &parts, |x, part| x - part), |sum, rest| sum + rest);
    }
    [total(&high), total(&low)]
}

/// Applies `f` to each pair of lanes.
#[inline(always)]
fn each<T: Copy, U: Copy, R>(a: &[T; LANES], b: &[U; LANES], f: impl Fn(T, U) -> R) -> [R; LANES] {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

/// The sum of the lanes. If it were inlined, the compiler would put one lane of two sums in each vector, and the loops
/// would take three times as long.
#[inline(never)]
fn total(lanes: &[f64; LANES]) -> f64 {
    lanes.iter().sum()
}

/// `2^exponent`, for an exponent of at least -1023 + [`LOG_LEN`] and at most 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
