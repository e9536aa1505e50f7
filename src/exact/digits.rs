//! A fixed-point number that holds every sum of floats and of products of two floats, and its rounding to the nearest
//! float.

use bytemuck::Zeroable;

use crate::{Element, Float};

/// Additions that a digit holds before its carry must be resolved.
///
/// A digit is below 2^32 after a carry. An addition changes it by at most 2^52: see [`Digits::add`]. So a digit stays
/// below 2^32 + 2047 * 2^52 < 2^63 - 2^51, which leaves room for the carry of the digit below. One addition more could
/// overflow: 2048 (2^52 - 1) + 2^32 - 1 >= 2^63.
const MOST_ADDED: u32 = 2047;

/// Bits of the integer that one addition takes.
const PART: u32 = 53;

/// The number `sum(digits[k] * 2^(32 k)) * 2^LEAST`, modulo 2^(32 N) units, for N digits.
///
/// The digits are signed and carries are delayed. After a carry each digit is in `0..2^32`, and the last one in
/// `-2^31..2^31`: these are the digits of a two's complement number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits<T: Float> {
    digits: T::Digits,
    /// Additions since the last carry.
    added: u32,
}

impl<T: Float> Digits<T> {
    /// The exponent of the unit: the square of the least positive number of `T`.
    pub(crate) const LEAST: i32 = 2 * T::TYPE.least_exponent();
    /// Bytes of the canonical two's complement number.
    pub(crate) const BYTES: usize = size_of::<T::Digits>() / 2;

    pub(crate) fn new() -> Self {
        Self { digits: T::Digits::zeroed(), added: 0 }
    }

    /// Adds `size * 2^exponent`, for |size| < 2^53. Bits below the unit are dropped.
    ///
    /// The number is split at a multiple of 32 bits. The lower digit changes by less than 2^32, and the next one by at
    /// most 2^53 * 2^31 / 2^32 = 2^52. No other digit changes.
    #[inline]
    pub(crate) fn add(&mut self, size: i64, exponent: i32) {
        self.add_uncounted(size, exponent);
        self.count();
    }

    /// [`add`](Self::add) for each of `len` numbers, where `len` is below 2,047.
    #[inline]
    pub(crate) fn add_each(&mut self, numbers: impl Iterator<Item = (i64, i32)>, len: usize) {
        let len = len as u32;
        debug_assert!(len < MOST_ADDED);
        // Between calls there is room for one addition.
        if self.added + len >= MOST_ADDED {
            self.carry();
        }
        numbers.for_each(|(size, exponent)| self.add_uncounted(size, exponent));
        self.added += len;
    }

    #[inline(always)]
    fn add_uncounted(&mut self, size: i64, exponent: i32) {
        debug_assert!(size.unsigned_abs() >> PART == 0);
        // An `f64` that holds a sum or a product of narrower floats may have zeros below the unit.
        let below = if T::TYPE.needs_fp64() { 0 } else { (Self::LEAST - exponent).clamp(0, 63) };
        let (size, bit) = (size >> below, (exponent + below - Self::LEAST) as u32);
        let (k, shift) = ((bit / 32) as usize, bit % 32);
        // One bounds check for both digits.
        if let Some([low, high]) = self.digits.as_mut().get_mut(k..k + 2) {
            *low += i64::from(((size as u64) << shift) as u32);
            *high += size >> (32 - shift);
        } else {
            debug_assert_eq!(size, 0, "a number out of range");
        }
    }

    /// Adds `size * 2^exponent`, or subtracts it if `negative`. The exponent is at least [`LEAST`](Self::LEAST).
    pub(crate) fn add_wide(&mut self, size: u128, exponent: i32, negative: bool) {
        let (mut left, mut exponent) = (size, exponent);
        while left != 0 {
            let part = (left & ((1 << PART) - 1)) as i64;
            self.add(if negative { -part } else { part }, exponent);
            left >>= PART;
            exponent += PART as i32;
        }
    }

    /// Adds another number, or subtracts it if `negative`.
    pub(crate) fn merge(&mut self, other: &Self, negative: bool) {
        let other = other.canonical();
        for (digit, &more) in self.digits.as_mut().iter_mut().zip(other.digits.as_ref()) {
            *digit += if negative { -more } else { more };
        }
        // Each digit changed by at most 2^32, as by an addition.
        self.count();
    }

    #[inline]
    fn count(&mut self) {
        self.added += 1;
        if self.added == MOST_ADDED {
            self.carry();
        }
    }

    /// Makes the digits those of a two's complement number.
    fn carry(&mut self) {
        let mut carry = 0;
        if let Some((last, digits)) = self.digits.as_mut().split_last_mut() {
            for digit in digits {
                carry += *digit;
                *digit = carry & 0xffff_ffff;
                carry >>= 32;
            }
            *last = i64::from((*last + carry) as i32);
        }
        self.added = 0;
    }

    fn canonical(&self) -> Self {
        let mut canonical = *self;
        canonical.carry();
        canonical
    }

    /// The number in units, as a two's complement integer of [`BYTES`](Self::BYTES) bytes, little-endian.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> {
        let digits = self.canonical().digits;
        (0..Self::BYTES).map(move |i| (digits.as_ref()[i / 4] as u32).to_le_bytes()[i % 4])
    }

    /// The inverse of [`bytes`](Self::bytes), for a slice of that length.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut found = Self::new();
        for (digit, word) in found.digits.as_mut().iter_mut().zip(bytes.as_chunks::<4>().0) {
            *digit = u32::from_le_bytes(*word).into();
        }
        found.carry();
        found
    }

    /// The magnitude, and true if the number is negative. Only the low 32 bits of each digit count. The reason is the
    /// lowest number: the last digit of its magnitude is 2^31, and a carry makes that digit negative.
    fn magnitude(&self) -> (Self, bool) {
        let mut sum = self.canonical();
        let negative = sum.digits.as_ref().last().is_some_and(|&digit| digit < 0);
        if negative {
            sum.digits.as_mut().iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
        (sum, negative)
    }

    /// The nearest number of type `S` to the number divided by `divisor`; ties to even, +0 for 0.
    pub(crate) fn rounded_quotient<S: Element>(&self, divisor: u64) -> S {
        let (sum, negative) = self.magnitude();
        let (size, more, exponent) = quotient(sum.digits.as_ref(), divisor);
        nearest(size, more, Self::LEAST + exponent, negative)
    }

    /// The nearest number of type `S`; ties to even, +0 for 0. A negative number that rounds to 0 becomes -0.
    pub(crate) fn rounded<S: Element>(&self) -> S {
        let (sum, negative) = self.magnitude();
        let (size, more, exponent) = leading(sum.digits.as_ref());
        nearest(size, more, Self::LEAST + exponent, negative)
    }
}

/// The leading bits of `sum(digits[k] * 2^(32 k)) / divisor`, as the arguments `size`, `more` and `exponent` of
/// [`nearest`].
fn quotient(digits: &[i64], divisor: u64) -> (u128, bool, i32) {
    let divisor = u128::from(divisor);
    let mut exponent = 32 * digits.len() as i32;
    let (mut leading, mut more, mut remainder) = (0, false, 0);
    // Long division. Four digits more make a quotient of at least 64 bits, since the divisor has at most 64.
    for digit in digits.iter().rev().map(|&digit| u128::from(digit as u32)).chain([0; 4]) {
        let part = remainder << 32 | digit;
        let quotient = part / divisor;
        remainder = part % divisor;
        if leading >> 64 == 0 {
            leading = leading << 32 | quotient;
            exponent -= 32;
        } else {
            more |= quotient != 0;
        }
    }
    (leading, more || remainder != 0, exponent)
}

/// The leading bits of `sum(digits[k] * 2^(32 k))`, as the arguments `size`, `more` and `exponent` of [`nearest`].
fn leading(digits: &[i64]) -> (u128, bool, i32) {
    let Some(lead) = digits.iter().rposition(|&digit| digit != 0) else { return (0, false, 0) };
    let digit = |below: usize| lead.checked_sub(below).map_or(0, |k| u128::from(digits[k] as u32));
    let more = digits[..lead.saturating_sub(2)].iter().any(|&digit| digit != 0);
    (digit(0) << 64 | digit(1) << 32 | digit(2), more, 32 * (lead as i32 - 2))
}

/// The integer significand of the magnitude of a finite number, below 2^53, and its exponent.
#[inline]
pub(crate) fn parts(x: f64) -> (u64, i32) {
    let field = (x.to_bits() >> 52) as u32 & 0x7ff;
    let fraction = x.to_bits() & ((1 << 52) - 1);
    (fraction | u64::from(field > 0) << 52, -1074 + Ord::max(field, 1) as i32 - 1)
}

/// The integer significand of a finite number, and its exponent.
#[inline]
pub(crate) fn signed_parts(x: f64) -> (i64, i32) {
    let (size, exponent) = parts(x);
    // Without a branch, since signs are hard to predict.
    let sign = x.to_bits() as i64 >> 63;
    ((size as i64 ^ sign) - sign, exponent)
}

/// The float nearest to `size * 2^exponent` with the given sign; ties to even, +0 for a size of 0. If `more`, the exact
/// magnitude is larger by less than one unit.
pub(crate) fn nearest<S: Element>(size: u128, more: bool, exponent: i32, negative: bool) -> S {
    if size == 0 {
        return S::ZERO;
    }
    let zeros = size.leading_zeros();
    let leading = size << zeros;
    // The 64 leading bits; the last one is also set if any lower bit is set.
    let top = (leading >> 64) as u64 | u64::from(more || leading as u64 != 0);
    let above = 127 - zeros as i32 + exponent - S::TYPE.least_exponent();
    let sign = u64::from(negative) << (8 * size_of::<S>() - 1);
    S::from_bits_lossy(magnitude(top, above, S::TYPE.precision(), S::TYPE.infinity().unwrap_or(0)) | sign)
}

/// The bits of the float nearest to `top * 2^(above - 63)` times the least positive float. The highest bit of `top` is
/// set. The lowest bit of `top` is sticky: it is also set if a bit below it, which `top` lacks, is set.
fn magnitude(top: u64, above: i32, precision: i32, infinity: u64) -> u64 {
    if above < 0 {
        // Half of the least float is a tie, and 0 is even.
        return u64::from(above == -1 && top > 1 << 63);
    }
    // A subnormal has fewer bits.
    let kept = Ord::min(precision, above + 1);
    let (whole, part) = (top >> (64 - kept), top << kept);
    let up = part > 1 << 63 || (part == 1 << 63 && whole % 2 == 1);
    // The leading bit of `whole` adds 1 to the exponent, and so does a carry to the next power of two.
    let field = Ord::min((above + 1 - kept) as u64, infinity >> (precision - 1));
    Ord::min((field << (precision - 1)) + whole + u64::from(up), infinity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bf16, f16};

    /// A sum whose digits, except the last, have the largest values that a carry leaves.
    fn full<T: Float>() -> Digits<T> {
        let mut sum = Digits::<T>::new();
        sum.digits.as_mut().fill(0xffff_ffff);
        sum.digits.as_mut()[size_of::<T::Digits>() / 8 - 1] = 0;
        sum
    }

    /// The largest size that one addition takes. At an exponent of 31 modulo 32, its upper part, `LARGEST >> 1`, is
    /// added to one digit. No addition changes a digit by more.
    const LARGEST: i64 = (1 << PART) - 1;

    fn adds_largest<T: Float>(sign: i64, times: u32) -> bool {
        let mut sum = full::<T>();
        let digits = sum.digits.as_mut();
        for _ in 0..times {
            let Some(next) = digits[1].checked_add((sign * LARGEST) >> 1) else { return false };
            digits[1] = next;
        }
        // The carry of digit 0 must fit, too.
        digits[0].checked_add((sign * LARGEST) >> 1).is_some() && digits[1].checked_add(i64::from(u32::MAX)).is_some()
    }

    #[test]
    fn carries_are_resolved_just_before_a_digit_can_overflow() {
        for sign in [1, -1] {
            assert!(adds_largest::<f64>(sign, MOST_ADDED - 1));
            assert!(adds_largest::<f64>(sign, MOST_ADDED));
        }
        assert!(!adds_largest::<f64>(1, MOST_ADDED + 1));
    }

    /// Adds numbers to the fullest digits. An overflow panics in a debug build, and gives a wrong sum in
    /// any other.
    fn survives<T: Float>() {
        // The upper part lands in digit 2, shifted by 31 bits.
        let exponent = Digits::<T>::LEAST + 32 + 31;
        for (start, size) in [(full::<T>(), LARGEST), (Digits::new(), -LARGEST), (full::<T>(), -LARGEST)] {
            for times in [MOST_ADDED - 1, MOST_ADDED, MOST_ADDED + 1, 3 * MOST_ADDED] {
                let (mut sum, mut steps) = (start, start);
                for _ in 0..times {
                    sum.add(size, exponent);
                    steps.add(size, exponent);
                    steps.carry();
                }
                assert!(sum.bytes().eq(steps.bytes()), "{times} times {size}");
                // Chunks of `MOST_ADDED` numbers in all, and then `times` numbers one by one.
                let mut sum = start;
                for len in [511, 512, 512, 512] {
                    sum.add_each((0..len).map(|_| (size, exponent)), len);
                }
                (0..times).for_each(|_| sum.add(size, exponent));
                (0..MOST_ADDED).for_each(|_| {
                    steps.add(size, exponent);
                    steps.carry();
                });
                assert!(sum.bytes().eq(steps.bytes()), "{} times {size}", times);
            }
        }
    }

    #[test]
    fn sums_at_the_bound_of_delayed_carries_are_exact() {
        survives::<f16>();
        survives::<f32>();
        survives::<f64>();
    }

    /// 2^64 times the largest product fits, with a sign, and one digit fewer would not do.
    fn has_room<T: Float>() {
        let largest = match T::TYPE.needs_fp64() {
            true => 1024,
            false if size_of::<T>() == 2 && T::TYPE.precision() == 11 => 16,
            false => 128,
        };
        let bits = (2 * largest - Digits::<T>::LEAST) as usize + 64 + 1;
        assert_eq!(Digits::<T>::BYTES, 4 * bits.div_ceil(32), "{}", T::TYPE);
    }

    #[test]
    fn digits_have_room_for_2_to_the_64_products() {
        has_room::<f16>();
        has_room::<bf16>();
        has_room::<f32>();
        has_room::<f64>();
    }

    #[test]
    fn the_lowest_number_is_rounded_and_not_negated_in_place() {
        let mut lowest = vec![0; Digits::<f16>::BYTES];
        lowest[Digits::<f16>::BYTES - 1] = 0x80;
        let found = Digits::<f16>::from_bytes(&lowest);
        assert!(found.bytes().eq(lowest));
        assert_eq!(found.rounded::<f16>(), f16::NEG_INFINITY);
        assert_eq!(found.rounded::<f64>(), -2f64.powi(159 - 48));
    }
}
