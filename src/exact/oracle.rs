//! Exact sums of floats by a big integer, written to be obvious: tests compare [`ExactSum`](crate::ExactSum) with
//! them.

use crate::{Element, ElementType};

/// A summand `size * 2^exponent`, negated if `negative`.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    negative: bool,
    size: u128,
    exponent: i32,
}

impl Term {
    /// A finite number.
    pub fn of(x: f64) -> Self {
        let bits = x.to_bits();
        let (field, fraction) = (bits >> 52 & 0x7ff, bits << 12 >> 12);
        let (size, exponent) = if field == 0 { (fraction, -1074) } else { (fraction + (1 << 52), field as i32 - 1075) };
        Self { negative: x.is_sign_negative(), size: size.into(), exponent }
    }

    /// The product of two finite numbers.
    pub fn product(a: f64, b: f64) -> Self {
        let (a, b) = (Self::of(a), Self::of(b));
        Self { negative: a.negative != b.negative, size: a.size * b.size, exponent: a.exponent + b.exponent }
    }
}

/// `words += size << shift`, with carries.
fn add(words: &mut [u64], size: u128, shift: usize) {
    let mut carry = 0;
    for (i, word) in words.iter_mut().enumerate().skip(shift / 64) {
        // The bits of `size << shift` in this word.
        let low = 64 * i as i64 - shift as i64;
        let part = match low {
            128.. => 0,
            0.. => (size >> low) as u64,
            _ => (size << -low) as u64,
        };
        let sum = u128::from(*word) + u128::from(part) + carry;
        (*word, carry) = (sum as u64, sum >> 64);
        if low >= 128 && carry == 0 {
            return;
        }
    }
    assert_eq!(carry, 0);
}

/// The sum of the terms, rounded to the nearest number of type `S`, ties to even.
pub fn rounded_sum<S: Element>(terms: &[Term]) -> S {
    S::from_f64(rounded_quotient(terms, 1, S::TYPE))
}

/// The sum of the terms divided by `divisor`, rounded to the nearest number of type `to`, ties to even. The function
/// adds positive and negative terms separately, then subtracts the two sums.
fn rounded_quotient(terms: &[Term], divisor: u64, to: ElementType) -> f64 {
    let (precision, least) = (to.precision(), to.least_exponent());
    // The unit is 128 bits below the last place of the sum. A divisor and a number of type `to` have fewer bits
    // together.
    let unit = terms.iter().map(|term| term.exponent).min().unwrap_or(0) - 128;
    let most = terms.iter().map(|term| term.exponent - unit).max().unwrap_or(0) as usize;
    let mut sides = [0, 1].map(|_| vec![0; (most + 128 + 64) / 64 + 1]);
    for term in terms {
        add(&mut sides[usize::from(term.negative)], term.size, (term.exponent - unit) as usize);
    }
    let [mut plus, mut minus] = sides;
    let negative = plus.iter().rev().lt(minus.iter().rev());
    if negative {
        std::mem::swap(&mut plus, &mut minus);
    }
    let mut borrow = 0;
    for (x, y) in plus.iter_mut().zip(minus) {
        let difference = i128::from(*x) - i128::from(y) - borrow;
        (*x, borrow) = (difference as u64, i128::from(difference < 0));
    }
    let mut remainder = 0;
    for word in plus.iter_mut().rev() {
        let part = remainder << 64 | u128::from(*word);
        (*word, remainder) = ((part / u128::from(divisor)) as u64, part % u128::from(divisor));
    }
    let bit = |i: usize| plus.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1);
    let Some(highest) = (0..64 * plus.len()).rev().find(|&i| bit(i)) else { return 0.0 };
    // The lowest bit that is kept.
    let low = (highest as i64 - i64::from(precision) + 1).max(i64::from(least - unit)).max(0) as usize;
    let kept = (low..=highest).rev().fold(0u64, |kept, i| 2 * kept + u64::from(bit(i)));
    let half = low > 0 && bit(low - 1);
    let rest = remainder != 0 || (low > 1 && (0..low - 1).any(bit));
    let kept = kept + u64::from(half && (rest || kept % 2 == 1));
    // Each step is exact, since the result is a number of the type or out of its range.
    let exponent = low as i32 + unit;
    let first = exponent.clamp(-1000, 1000);
    let second = (exponent - first).clamp(-1000, 1000);
    let third = exponent - first - second;
    let size = kept as f64 * 2f64.powi(first) * 2f64.powi(second) * 2f64.powi(third);
    if negative { -size } else { size }
}

/// The sum of floats, rounded to type `S`: the rules for special values, and the big integer for the rest.
pub fn exact_sum<T: Element, S: Element>(x: &[T]) -> S {
    exact_quotient(x, 1)
}

/// The mean of floats, rounded to type `S`; NaN for none.
pub fn exact_mean<T: Element, S: Element>(x: &[T]) -> S {
    if x.is_empty() { S::from_f64(f64::NAN) } else { exact_quotient(x, x.len() as u64) }
}

fn exact_quotient<T: Element, S: Element>(x: &[T], divisor: u64) -> S {
    let mut wide = Vec::with_capacity(x.len());
    for x in x {
        wide.push(x.to_f64());
    }
    S::from_f64(exact_quotient_of(&wide, &|| wide.iter().map(|&x| Term::of(x)).collect(), divisor, S::TYPE))
}

/// The sum of the products `x[i] * y[i]`, rounded to their type. Rules give the result of special values; a big integer
/// adds all others.
pub fn exact_product_sum<T: Element>(x: &[T], y: &[T]) -> T {
    let pairs: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x.to_f64(), y.to_f64())).collect();
    // A product of finite nonzero numbers may round to 0 or overflow, so 1 stands for it.
    let is_ordinary = |x: f64| x.is_finite() && x != 0.0;
    let kinds: Vec<f64> =
        pairs.iter().map(|&(x, y)| if is_ordinary(x) && is_ordinary(y) { 1.0 } else { x * y }).collect();
    let terms = || pairs.iter().map(|&(x, y)| Term::product(x, y)).collect();
    T::from_f64(exact_quotient_of(&kinds, &terms, 1, T::TYPE))
}

/// The result by the rules for special values among `x`; without such values, the sum of `terms` divided by `divisor`.
fn exact_quotient_of(x: &[f64], terms: &dyn Fn() -> Vec<Term>, divisor: u64, to: ElementType) -> f64 {
    let any = |test: fn(f64) -> bool| x.iter().any(|&x| test(x));
    let (plus, minus) = (any(|x| x == f64::INFINITY), any(|x| x == f64::NEG_INFINITY));
    if any(f64::is_nan) || (plus && minus) {
        return f64::NAN;
    }
    if plus || minus {
        return if plus { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    if !x.is_empty() && !any(|x| x.to_bits() != (-0f64).to_bits()) {
        return -0.0;
    }
    rounded_quotient(&terms(), divisor, to)
}
