//! Floats that are hard to add, and comparisons of bits.

use oclprim::{Float, internals::data::Rng};

/// The precision of a type, and the bits of its infinity.
pub(crate) fn format_of<T: Float>() -> (i32, u64) {
    match (size_of::<T>(), T::from_f64(1e30).to_f64().is_finite()) {
        (2, false) => (11, 0x7c00),
        (2, true) => (8, 0x7f80),
        (4, _) => (24, 0x7f80_0000),
        _ => (53, 0x7ff << 52),
    }
}

/// `n` numbers that are hard to add; `kind` is one of [`KINDS`].
pub(crate) fn hard<T: Float>(kind: usize, n: usize, rng: &mut Rng) -> Vec<T> {
    let ((precision, infinity), sign) = (format_of::<T>(), 1u64 << (8 * size_of::<T>() - 1));
    let float = T::from_bits_lossy;
    let negated = |x: T| T::from_f64(-x.to_f64());
    let finite = |rng: &mut Rng| float((rng.next() % infinity) | (rng.next() & sign));
    let near_one = |rng: &mut Rng| {
        let one = bits(&[T::ONE])[0];
        float((one - (3 << (precision - 1)) + rng.next() % (5 << (precision - 1))) | (rng.next() & sign))
    };
    // Rising and falling exponents, in this order.
    if kind >= 14 {
        let most = if precision == 11 { 12 } else { 100 };
        let exponent = |i: usize| (if kind == 14 { i } else { n - i } / 4).min(most) as i32;
        return (0..n).map(|i| T::from_f64(near_one(rng).to_f64() * 2f64.powi(exponent(i)))).collect();
    }
    let mut x: Vec<T> = match kind {
        // Random bits; numbers near 1; numbers near 1 with some random bits among them.
        0 => (0..n).map(|_| finite(rng)).collect(),
        1 => (0..n).map(|_| near_one(rng)).collect(),
        2 => (0..n).map(|i| if i % 7 == 0 { finite(rng) } else { near_one(rng) }).collect(),
        // All but a few numbers cancel.
        3 => {
            let half: Vec<T> = (0..n / 2).map(|_| finite(rng)).collect();
            let mut x: Vec<T> = half.iter().flat_map(|&x| [x, negated(x)]).collect();
            x.extend((x.len()..n).map(|_| float(3)));
            x
        }
        // A tie, with a number far below it that is positive, 0 or negative.
        4 => {
            let base = infinity / 2 + (rng.next() & 0xff);
            let place = float(base + 1).to_f64() - float(base).to_f64();
            let least = [0.0, 1.0, -1.0][rng.below(3) as usize];
            // The third number is the least positive one, or so large that a sum of `f32` fits in one `f64`, or in two.
            let distance = [float(1).to_f64(), place / 256.0, place * 2f64.powi(-60)][rng.below(3) as usize];
            let least = T::from_f64(least * distance);
            let all = [float(base), T::from_f64(place / 2.0), least];
            (0..n).map(|i| all.get(i).copied().unwrap_or(float(sign))).collect()
        }
        // Subnormal numbers; numbers whose partial sums overflow.
        5 => (0..n).map(|_| float((rng.next() % (3 << (precision - 1))) | (rng.next() & sign))).collect(),
        6 => (0..n).map(|i| float((infinity - 1) | if i % 2 == 1 { sign } else { 0 })).collect(),
        // Zeros: all -0, one +0 among them, or +0 alone.
        7 => vec![float(sign); n],
        8 => (0..n).map(|i| float(if i == n / 2 { 0 } else { sign })).collect(),
        9 => vec![float(0); n],
        // Infinities, and NaN.
        10 => (0..n).map(|i| if i == n / 3 { float(infinity | (rng.next() & sign)) } else { near_one(rng) }).collect(),
        11 => (0..n).map(|i| float(infinity | if i % 2 == 1 { sign } else { 0 })).collect(),
        12 => (0..n).map(|i| if i == n / 2 { float(infinity | 1) } else { near_one(rng) }).collect(),
        // Large numbers that cancel, and the lowest bits of small ones `spread` below them.
        _ => {
            let spread = 53 - precision - 6 + rng.below(5) as i32 + [0, 53][rng.below(2) as usize];
            let scaled = |size: i64, exponent: i32| T::from_f64(size as f64 * 2f64.powi(exponent));
            let (large, small) = ((1i64 << precision) - 1, (1i64 << (precision - 1)) + 1);
            let high = if precision == 11 { 1 - precision } else { 20 - precision };
            (0..n)
                .map(|i| match (i % 16, i % 2) {
                    (0, _) => scaled(small, (high - spread).max(-1000)),
                    (_, 0) => scaled(large, high),
                    _ => scaled(-large, high),
                })
                .collect()
        }
    };
    for i in (1..x.len()).rev() {
        x.swap(i, rng.below(i as u64 + 1) as usize);
    }
    x
}

pub(crate) const KINDS: u64 = 16;

pub(crate) fn bits<T: Float>(x: &[T]) -> Vec<u64> {
    x.iter().map(|x| bytemuck::bytes_of(x).iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))).collect()
}

/// Compares with the sums that are wanted; names the first difference.
#[track_caller]
pub(crate) fn same<T: Float>(got: &[T], want: &[T], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (a, b)) in bits(got).into_iter().zip(bits(want)).enumerate() {
        assert_eq!(a, b, "{what}: sum {i} is {:?} instead of {:?}", got[i], want[i]);
    }
}
