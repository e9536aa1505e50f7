//! Decoding of moments from the words of a record.

use crate::ElementType;

/// The result of [`Device::moments`](crate::Device::moments) for a line or a segment.
///
/// ```
/// use oclprim::Device;
///
/// let device = Device::best()?;
/// let x = device.upload(&[1i32, 3])?;
/// let found = device.moments(x.nd(&[1, 2])?.along(1))?.to_vec()?[0].get();
/// assert_eq!((found.count, found.sum, found.integer_sum), (2, 4.0, Some(4)));
/// assert_eq!((found.mean, found.variance, found.sample_variance()), (2.0, 1.0, 2.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Moments {
    /// The number of elements.
    pub count: usize,
    /// The sum.
    pub sum: f64,
    /// The exact sum of integers; `None` for floats.
    pub integer_sum: Option<i128>,
    /// The mean.
    pub mean: f64,
    /// The population variance: the mean of the squared distances to the mean.
    pub variance: f64,
}

/// A number that the host or a device computes from moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// The mean.
    Mean,
    /// The population variance.
    Variance,
}

impl Figure {
    pub(crate) fn of(self, moments: &Moments) -> f64 {
        match self {
            Self::Mean => moments.mean,
            Self::Variance => moments.variance,
        }
    }
}

impl Moments {
    /// The sample variance, with the divisor `count - 1`. NaN for fewer than two elements.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1u8, 2, 6])?;
    /// assert_eq!(device.moments(x.nd(&[3])?.along(0))?.to_vec()?[0].get().sample_variance(), 7.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sample_variance(&self) -> f64 {
        of_a_sample(self.count, self.variance)
    }
}

/// Converts a population variance to a sample variance: the divisor is `count - 1` instead of `count`.
pub(super) fn of_a_sample(count: usize, variance: f64) -> f64 {
    let n = count as f64;
    if count > 1 { variance * (n / (n - 1.0)) } else { f64::NAN }
}

/// Decodes the words of a record of `count` elements. A record that was never written has no elements, so its mean is
/// NaN.
pub(super) fn moments(element: ElementType, count: u64, words: [u64; 5]) -> Moments {
    let n = count as f64;
    let (sum, integer_sum, mean, variance) = if element.is_float() {
        let [mean, rest, m2] = [0, 1, 2].map(|i| match element {
            ElementType::F64 => f64::from_bits(words[i]),
            _ => f64::from(f32::from_bits(words[i] as u32)),
        });
        // A negative `m2` encodes a sum of squares beyond the type's range: `-m2` is that sum times `Real::DOWN²`.
        let up = 2f64.powi(if element == ElementType::F64 { 530 } else { 82 });
        let variance = if m2 < 0.0 { -m2 / n * up * up } else { m2 / n };
        (mean * n + rest * n, None, mean + rest, variance)
    } else {
        let [sum0, sum1, squares @ ..] = words;
        let sum = (u128::from(sum0) | u128::from(sum1) << 64) as i128;
        (sum as f64, Some(sum), sum as f64 / n, integer_variance(count, sum, squares))
    };
    let mean = if count > 0 { mean } else { f64::NAN };
    Moments { count: count as usize, sum, integer_sum, mean, variance }
}

/// The variance of `n` integers from their sum and their sum of squares, which has three words, lowest first.
fn integer_variance(n: u64, sum: i128, squares: [u64; 3]) -> f64 {
    if n == 0 {
        return f64::NAN;
    }
    // Let m be the integer nearest to the mean, and sum = m n + r. Then Σ(x - m)² = squares - m (sum + r), exactly. The
    // sum of squared distances to the mean is smaller by r²/n, and r²/n is at most half of Σ(x - m)².
    let count = i128::from(n);
    let m = (sum + (count / 2)).div_euclid(count);
    let r = sum - m * count;
    let shifted = minus(squares, product(limbs(m), limbs(sum + r)));
    let about = shifted.iter().rev().fold(0.0, |high, &word| high * 2f64.powi(64) + word as f64);
    (about - r as f64 * (r as f64 / n as f64)) / n as f64
}

/// `x` modulo 2^192, lowest word first.
fn limbs(x: i128) -> [u64; 3] {
    [x as u64, (x >> 64) as u64, (x >> 127) as u64]
}

/// `a * b` modulo 2^192.
fn product(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    let mut out = [0u64; 3];
    for i in 0..3 {
        let mut carry = 0u128;
        for j in 0..3 - i {
            let sum = u128::from(a[i]) * u128::from(b[j]) + u128::from(out[i + j]) + carry;
            out[i + j] = sum as u64;
            carry = sum >> 64;
        }
    }
    out
}

/// `a - b` modulo 2^192.
fn minus(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (x, first) = a[i].overflowing_sub(b[i]);
        let (x, second) = x.overflowing_sub(u64::from(borrow));
        borrow = first || second;
        x
    })
}
