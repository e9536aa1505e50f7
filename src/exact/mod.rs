//! Exact sums of floats: `x[0] + ... + x[n - 1]` as a real number, rounded once. [`ExactSum`] is the accumulator.
//!
//! | property | |
//! |---|---|
//! | result | the number of the type nearest to the real sum, ties to even |
//! | determinism | same bits for every order, every split into parts and every machine |
//! | work | constant for each element; [`add_slice`](ExactSum::add_slice) reads memory about as fast as a plain sum |
//! | bytes | `f16` 24, `bf16` 80, `f32` 84, `f64` 540 as [bytes](ExactSum::to_bytes); about twice as many in memory |
//! | limits | sums up to 2^64 times the largest product of two numbers of the type |
//!
//! # Special values
//!
//! The rules hold for all orders and splits, because each depends only on which values occur:
//!
//! - A NaN gives NaN, with the bits of the type's plain NaN.
//! - Infinities of one sign give that infinity; infinities of both signs give NaN.
//! - Partial sums do not overflow: `MAX + MAX - MAX` is `MAX`. The result is infinite if the rounded sum is out of
//!   range.
//! - A subnormal result is correctly rounded, too. A sum of numbers of the type is a multiple of the least positive
//!   number, so a subnormal sum of them is exact.
//! - A sum of 0 is -0 if there are summands and all are -0. Else it is +0, also for no summand. A sum that is not 0 but
//!   rounds to 0 keeps its sign; only sums of products are that small.
//!
//! # Design
//!
//! The accumulator is Kulisch's fixed-point number: its unit is the square of the least positive number. It is stored
//! as 32-bit digits in 64-bit words with delayed carries, as in Neal's small superaccumulator. An addition changes two
//! words, one by less than 2^32 and the next by at most 2^52. A carry leaves a digit below 2^32, so after 2,047 more
//! additions it is below 2^32 + 2047 * 2^52 < 2^63 - 2^51. So carries can wait for 2,047 additions; the 2,048th could
//! overflow.
//!
//! # Sums of chunks
//!
//! A slice is summed in chunks of at most 2^k = 512 elements, in `f64` registers. Let p be the precision of the type.
//! Over the elements that are not 0, let 2^e <= max |x| < 2^(e + 1) and 2^m <= min |x|. Then each element is a
//! multiple of u = 2^(m - p + 1).
//!
//! - **One register.** All partial sums are multiples of u, and at most 2^(e + 1 + k). They are exact in 53 bits if
//!   e + 1 + k - (m - p + 1) <= 53, that is if **e - m <= 53 - p - k**.
//! - **Two registers.** Let s = 1.5 * 2^(e + k), q = (s + x) - s and r = x - q, as in Rump, Ogita and Oishi's
//!   extraction. Both differences are exact. q is a multiple of 2^(e + k - 52), and |q| <= 2^(e + 1). So sums of 2^k of
//!   them need at most 53 bits. r is a multiple of u, and |r| <= 2^(e + k - 53). Sums of 2^k of them are exact if
//!   e + 2 k - 53 - (m - p + 1) <= 53, that is if **e - m <= 107 - 2 k - p**.
//!
//! The first bound is 20 for `f32`, 36 for `bf16` and 33 for `f16`. The second is 65 for `f32` and 36 for `f64`, which
//! always needs two registers. A chunk beyond its bound is added element by element. The path changes only the time.
//!
//! # References
//!
//! - U. Kulisch, *Computer Arithmetic and Validity*, 2nd edition, 2013: the exact accumulator.
//! - R. M. Neal, *Fast exact summation using small and large superaccumulators*, 2015, arXiv:1505.05571.
//! - S. Collange, D. Defour, S. Graillat, R. Iakymchuk, *Numerical reproducibility for the parallel reduction on multi-
//!   and many-core architectures*, Parallel Computing 49, 2015.
//! - S. M. Rump, T. Ogita, S. Oishi, *Accurate floating-point summation part I*, SIAM J. Sci. Comput. 31, 2008.

mod chunks;
mod digits;
#[doc(hidden)]
pub(crate) mod oracle;

use digits::signed_parts;
pub(crate) use digits::{Digits, nearest, parts};

use crate::{Element, ElementType, Error, Float, Result, element};

/// Elements of a chunk (`CHUNK`), and elements that are added side by side (`LANES`).
pub(crate) const CHUNK: usize = chunks::LEN;
pub(crate) const LANES: usize = chunks::LANES;

/// The version of the format of [`ExactSum::to_bytes`].
const VERSION: u8 = 1;
/// Bytes before the digits.
const HEAD: usize = 4;

/// The kind of a sum. When two sums are added, the result has the larger kind, or NaN for infinities of both signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Empty,
    /// Only -0.
    MinusZeros,
    Finite,
    PlusInfinity,
    MinusInfinity,
    Nan,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Empty, Self::MinusZeros, Self::Finite, Self::PlusInfinity, Self::MinusInfinity, Self::Nan];

    /// The least upper bound, so the operation is associative and commutative.
    #[inline]
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::PlusInfinity, Self::MinusInfinity) | (Self::MinusInfinity, Self::PlusInfinity) => Self::Nan,
            _ => Ord::max(self, other),
        }
    }

    /// The kind of the negated sum, for differences. [`MinusZeros`](Self::MinusZeros) becomes [`Finite`](Self::Finite),
    /// since a difference of zeros is +0.
    fn negated(self) -> Self {
        match self {
            Self::MinusZeros => Self::Finite,
            Self::PlusInfinity => Self::MinusInfinity,
            Self::MinusInfinity => Self::PlusInfinity,
            same => same,
        }
    }

    /// Returns whether the digits are part of the value.
    fn has_digits(self) -> bool {
        self == Self::Finite
    }
}

/// Exact sum of floats: `x[0] + ... + x[n - 1]`, for `f16`, `bf16`, `f32` or `f64`.
///
/// The value is the real number. [`round`](Self::round) returns the nearest float, ties to even. Order and split do not
/// matter: sums of the same values are equal, and have equal [bytes](Self::to_bytes). So threads, processes of a
/// cluster or readers of parts of a file can exchange this value. The module has the rules for [special
/// values](crate::exact#special-values), the [design](crate::exact#design) and the papers.
///
/// An addition takes constant time. A merge or a rounding visits all digits: 5 for `f16`, 19 for `bf16`, 20 for `f32`
/// and 134 for `f64`. A digit takes 8 bytes in memory.
///
/// The value may be as large as 2^64 times the largest product of two numbers. Beyond it, the value wraps to another
/// one. That takes more than 2^64 additions, or 64 merges of a sum with itself.
///
/// ```
/// use oclprim::ExactSum;
///
/// let x = [1e100f64, 1.0, -1e100];
/// assert_eq!(x.iter().sum::<f64>(), 0.0);
/// assert_eq!(x.iter().collect::<ExactSum<f64>>().round(), 1.0);
///
/// let mut left: ExactSum<f64> = [1e100, 1.0].into_iter().collect();
/// let right = ExactSum::from_bytes(&ExactSum::from_iter([-1e100]).to_bytes())?;
/// left.merge(&right);
/// assert_eq!(left.round(), 1.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExactSum<T: Float> {
    digits: Digits<T>,
    kind: Kind,
}

impl<T: Float> ExactSum<T> {
    /// The length of [`to_bytes`](Self::to_bytes).
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// assert_eq!(ExactSum::<f32>::BYTES, ExactSum::<f32>::new().to_bytes().len());
    /// ```
    pub const BYTES: usize = HEAD + Self::INTEGER_BYTES;
    /// Bytes of the integer in [`to_bytes`](Self::to_bytes).
    pub(crate) const INTEGER_BYTES: usize = Digits::<T>::BYTES;

    /// The empty sum, which rounds to +0.
    ///
    /// ```
    /// assert_eq!(oclprim::ExactSum::<f32>::new().round().to_bits(), 0);
    /// ```
    pub fn new() -> Self {
        Self { digits: Digits::new(), kind: Kind::Empty }
    }

    /// Adds a number: `sum + x`.
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// let mut sum = ExactSum::new();
    /// (0..10).for_each(|_| sum.add(0.1f64));
    /// assert_eq!(sum.round(), 1.0); // one by one in f64: 0.9999999999999999
    /// ```
    #[inline]
    pub fn add(&mut self, x: T) {
        self.add_f64(x.widen().to_f64());
    }

    /// Adds all elements: `sum + x[0] + ... + x[n - 1]`.
    ///
    /// Chunks of the slice are summed in registers where that is exact, so a slice takes less time than its elements one
    /// by one.
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// let mut sum = ExactSum::new();
    /// sum.add_slice(&[0.1f32; 1 << 20]);
    /// assert_eq!(sum.round(), 0.1 * (1 << 20) as f32);
    /// ```
    pub fn add_slice(&mut self, x: &[T]) {
        let (rows, rest) = x.as_chunks::<{ chunks::LANES }>();
        let mut later = rows.chunks(chunks::LEN / chunks::LANES).skip(chunks::AHEAD);
        for chunk in rows.chunks(chunks::LEN / chunks::LANES) {
            match chunks::sum(chunk, later.next().unwrap_or_default()) {
                Some(parts) => {
                    self.kind = self.kind.join(Kind::Finite);
                    parts.into_iter().for_each(|part| self.add_finite(part));
                }
                None => self.add_chunk(chunk.as_flattened()),
            }
        }
        rest.iter().for_each(|&x| self.add(x));
    }

    /// Adds the exact product of two numbers: `sum + a * b`. So the sum of the products is an exact dot product.
    ///
    /// Special products are those of IEEE 754: 0 times infinity is NaN, and -0 times 1 is -0.
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// let (x, y) = ([1e8f32, 1.0, -1e8], [1e8f32, 0.5, 1e8]);
    /// let mut dot = ExactSum::new();
    /// x.iter().zip(y).for_each(|(&x, y)| dot.add_product(x, y));
    /// assert_eq!(dot.round(), 0.5);
    /// ```
    #[inline]
    pub fn add_product(&mut self, a: T, b: T) {
        let (a, b) = (a.widen().to_f64(), b.widen().to_f64());
        // Only products of `f64` may have more bits than an `f64`.
        if !T::TYPE.needs_fp64() || a == 0.0 || b == 0.0 || !a.is_finite() || !b.is_finite() {
            return self.add_f64(a * b);
        }
        let ((a_size, a_exponent), (b_size, b_exponent)) = (parts(a), parts(b));
        let size = u128::from(a_size) * u128::from(b_size);
        self.kind = self.kind.join(Kind::Finite);
        self.digits.add_wide(size, a_exponent + b_exponent, a.is_sign_negative() != b.is_sign_negative());
    }

    /// Adds another sum: `sum + other`. Merges are associative and commutative.
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// let mut parts = [[1e30f32, 1.0], [3.0, -1e30]].map(ExactSum::from_iter);
    /// let [left, right] = &mut parts;
    /// left.merge(right);
    /// assert_eq!(left.round(), 4.0);
    /// ```
    pub fn merge(&mut self, other: &Self) {
        self.kind = self.kind.join(other.kind);
        self.digits.merge(&other.digits, false);
    }

    /// Subtracts another sum: `sum - other`. This undoes a [`merge`](Self::merge) of finite numbers, unless what remains is empty
    /// or only -0.
    ///
    /// A difference of 0 is +0, except that an empty `other` changes nothing. The infinities of `other` change their
    /// sign, so subtracting them does not remove them: infinity - infinity is NaN.
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// let x = [0.1f64, 0.2, 0.3, 0.4];
    /// let mut window = ExactSum::from_iter(x);
    /// window.subtract(&ExactSum::from_iter([x[0]]));
    /// assert_eq!(window, ExactSum::from_iter([0.2, 0.3, 0.4]));
    /// ```
    pub fn subtract(&mut self, other: &Self) {
        self.kind = self.kind.join(other.kind.negated());
        self.digits.merge(&other.digits, true);
    }

    /// The nearest number of type `T`, ties to even.
    ///
    /// ```
    /// use oclprim::{ExactSum, f16};
    ///
    /// let sum = |x: [f32; 3]| ExactSum::from_iter(x.map(f16::from_f32)).round().to_f32();
    /// assert_eq!(sum([2048.0, 1.0, 0.0]), 2048.0);
    /// assert_eq!(sum([2048.0, 1.0, 2.0f32.powi(-24)]), 2050.0);
    /// assert_eq!(sum([65504.0, 65504.0, -65504.0]), 65504.0);
    /// ```
    pub fn round(&self) -> T {
        self.rounded()
    }

    /// The nearest `f64`, ties to even.
    ///
    /// ```
    /// let sum = oclprim::ExactSum::from_iter([16777216.0f32, 1.0]);
    /// assert_eq!((sum.round(), sum.round_f64()), (16777216.0, 16777217.0));
    /// ```
    pub fn round_f64(&self) -> f64 {
        self.rounded()
    }

    /// The number of type `T` nearest to the sum divided by `count`, ties to even: the correctly rounded mean of `count`
    /// summands. NaN for a count of 0.
    ///
    /// ```
    /// use oclprim::{Device, ExactSum};
    ///
    /// let x = [1e300f64, 1.0, 0.5, -1e300];
    /// assert_eq!(ExactSum::from_iter(x).mean(4), 0.375);
    /// assert_eq!(ExactSum::of(&Device::best()?, &[f32::MAX; 3])?.mean(3), f32::MAX);
    /// assert!(ExactSum::<f32>::new().mean(0).is_nan());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean(&self, count: u64) -> T {
        self.rounded_quotient(count)
    }

    /// The number of type `S` nearest to the sum divided by `divisor`, ties to even. NaN for a divisor of 0.
    pub(crate) fn rounded_quotient<S: Element>(&self, divisor: u64) -> S {
        match self.kind {
            _ if divisor == 0 => S::from_f64(f64::NAN),
            Kind::Finite if divisor > 1 => self.digits.rounded_quotient(divisor),
            _ => self.rounded(),
        }
    }

    /// The nearest number of type `S`, ties to even.
    pub(crate) fn rounded<S: Element>(&self) -> S {
        match self.kind {
            Kind::Empty => S::ZERO,
            Kind::MinusZeros => S::ADD_IDENTITY,
            Kind::Finite => self.digits.rounded(),
            Kind::PlusInfinity => S::HIGHEST,
            Kind::MinusInfinity => S::LOWEST,
            Kind::Nan => S::from_f64(f64::NAN),
        }
    }

    /// The value as bytes, the same on every machine. Equal sums have equal bytes.
    ///
    /// | bytes | |
    /// |---|---|
    /// | 0 | version of the format: 1 |
    /// | 1 | type: 1 `f16`, 2 `bf16`, 3 `f32`, 4 `f64` |
    /// | 2 | kind: 0 no summand, 1 only -0, 2 finite, 3 +infinity, 4 -infinity, 5 NaN |
    /// | 3 | 0 |
    /// | 4.. | the value in units, a two's complement integer, little-endian; 0 unless the kind is 2 |
    ///
    /// | type | unit | bytes of the integer | bytes in all |
    /// |---|---|---|---|
    /// | `f16` | 2^-48 | 20 | 24 |
    /// | `bf16` | 2^-266 | 76 | 80 |
    /// | `f32` | 2^-298 | 80 | 84 |
    /// | `f64` | 2^-2148 | 536 | 540 |
    ///
    /// A later version of the crate reads the bytes of an earlier one.
    ///
    /// ```
    /// use oclprim::{ExactSum, f16};
    ///
    /// let bytes = ExactSum::from_iter([f16::from_f32(1.5), f16::from_f32(-0.5)]).to_bytes();
    /// assert_eq!(bytes[..4], [1, 1, 2, 0]);
    /// assert_eq!(u128::from_le_bytes(bytes[4..20].try_into().unwrap()), 1 << 48);
    /// assert_eq!(ExactSum::<f16>::from_bytes(&bytes)?.round(), f16::ONE);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend([VERSION, code(T::TYPE), self.kind as u8, 0]);
        if self.kind.has_digits() {
            bytes.extend(self.digits.bytes());
        }
        bytes.resize(Self::BYTES, 0);
        bytes
    }

    /// The sum with these [bytes](Self::to_bytes), which may be from an untrusted source.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the bytes are not those of a sum of `T`.
    ///
    /// ```
    /// use oclprim::ExactSum;
    ///
    /// let bytes = ExactSum::from_iter([0.1f32, 0.2]).to_bytes();
    /// assert_eq!(ExactSum::<f32>::from_bytes(&bytes)?.to_bytes(), bytes);
    /// assert!(ExactSum::<f64>::from_bytes(&bytes).is_err());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let invalid = |what: String| Err(Error::invalid(format!("exact sum of {}: {what}", T::TYPE)));
        let len = Self::BYTES;
        let Some((&[version, ty, kind, reserved], digits)) = bytes.split_first_chunk::<HEAD>() else {
            return invalid(format!("{} bytes instead of {len}", bytes.len()));
        };
        if version != VERSION {
            return invalid(format!("version {version} of the format; this crate reads version {VERSION}"));
        }
        if ty != code(T::TYPE) {
            return invalid(format!("type {ty} instead of {}", code(T::TYPE)));
        }
        if bytes.len() != len {
            return invalid(format!("{} bytes instead of {len}", bytes.len()));
        }
        let Some(&kind) = Kind::ALL.get(usize::from(kind)) else {
            return invalid(format!("kind {kind} instead of 0 to {}", Kind::ALL.len() - 1));
        };
        if reserved != 0 {
            return invalid(format!("byte 3 is {reserved} instead of 0"));
        }
        if !kind.has_digits() && digits.iter().any(|&byte| byte != 0) {
            return invalid(format!("digits with kind {}, which has none", kind as u8));
        }
        Ok(Self { digits: Digits::from_bytes(digits), kind })
    }

    /// The sum of two finite `f64`, both multiples of the least positive `T`. The pair (-0, 0) has the sum -0.
    pub(crate) fn of_pair(pair: [f64; 2]) -> Self {
        let is_minus_zero = element::bits(pair[0]) == element::bits(f64::ADD_IDENTITY) && pair[1] == 0.0;
        let kind = if is_minus_zero { Kind::MinusZeros } else { Kind::Finite };
        let mut sum = Self { digits: Digits::new(), kind };
        pair.into_iter().for_each(|part| sum.add_finite(part));
        sum
    }

    /// Two `f64` with exactly this sum. `None` if there are none, or if the sum overflows `f64`.
    pub(crate) fn pair(&self) -> Option<[f64; 2]> {
        match self.kind {
            Kind::Empty | Kind::MinusZeros => Some([f64::ADD_IDENTITY, 0.0]),
            Kind::Finite => {
                let (mut rest, mut parts) = (self.digits, [0.0; 2]);
                for part in &mut parts {
                    *part = rest.rounded::<f64>();
                    if !part.is_finite() {
                        return None;
                    }
                    let (size, exponent) = signed_parts(*part);
                    rest.add(-size, exponent);
                }
                rest.bytes().all(|byte| byte == 0).then_some(parts)
            }
            _ => None,
        }
    }

    /// Adds a number that is a whole number of units, or not finite.
    #[inline]
    fn add_f64(&mut self, x: f64) {
        let kind = if x.is_finite() {
            if x == 0.0 {
                let kind = if x.is_sign_negative() { Kind::MinusZeros } else { Kind::Finite };
                self.kind = self.kind.join(kind);
                return;
            }
            self.add_finite(x);
            Kind::Finite
        } else if x.is_nan() {
            Kind::Nan
        } else if x > 0.0 {
            Kind::PlusInfinity
        } else {
            Kind::MinusInfinity
        };
        self.kind = self.kind.join(kind);
    }

    /// Adds up to 512 numbers one by one.
    fn add_chunk(&mut self, x: &[T]) {
        if !x.iter().all(|x| x.widen().to_f64().is_finite()) {
            return x.iter().for_each(|&x| self.add(x));
        }
        let minus_zeros = x.iter().all(|&x| element::bits(x) == element::bits(T::ADD_IDENTITY));
        self.kind = self.kind.join(if minus_zeros { Kind::MinusZeros } else { Kind::Finite });
        self.digits.add_each(x.iter().map(|x| signed_parts(x.widen().to_f64())), x.len());
    }

    /// Adds a finite number to the digits.
    #[inline]
    fn add_finite(&mut self, x: f64) {
        let (size, exponent) = signed_parts(x);
        self.digits.add(size, exponent);
    }
}

/// The number of type `S` nearest to the sum of `x[..len]` divided by `divisor`, for at most [`CHUNK`] elements; NaN for a
/// divisor of 0. The length of `x` is a multiple of [`LANES`], and the elements from `len` on are -0.
///
/// Most blocks need no accumulator: their sum is that of two `f64`, which is rounded.
pub(crate) fn rounded_block<T: Float, S: Element>(x: &[T], len: usize, divisor: u64) -> S {
    let (rows, _) = x.as_chunks::<LANES>();
    match chunks::sum(rows, &[]) {
        Some([high, low]) if divisor == 1 => rounded_pair(high, low),
        Some([high, low]) if divisor > 1 => quotient_of_pair(high, low, divisor),
        _ => ExactSum::from_iter(&x[..len]).rounded_quotient(divisor),
    }
}

/// The number of type `S` nearest to `a + b`, ties to even; +0 for 0. The sum must not overflow.
fn rounded_pair<S: Element>(a: f64, b: f64) -> S {
    let (sum, error) = (a + b, error_of(a, b));
    let (size, exponent) = parts(sum);
    let (size, negative) = (u128::from(size) << 64, sum < 0.0);
    // The error is at most half of the last place of `sum`. So it matters only if `sum` is halfway between two numbers.
    let (size, more) = match error {
        0.0 => (size, false),
        _ if (error < 0.0) == negative => (size, true),
        _ => (size - 1, true),
    };
    nearest(size, more, exponent - 64, negative)
}

/// The rounding error of `a + b`.
#[inline]
pub(crate) fn error_of(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let added = sum - a;
    (a - (sum - added)) + (b - added)
}

/// The number of type `S` nearest to the sum of a pair of finite numbers, ties to even. A sum of 0 is -0 only if the
/// first number is -0 and the second is 0.
#[inline]
pub(crate) fn nearest_of_pair<S: Element>([a, b]: [f64; 2]) -> S {
    let sum = if b == 0.0 { a } else { a + b };
    if const { S::TYPE.needs_fp64() } {
        return S::from_f64(sum);
    }
    if sum == 0.0 {
        return if sum.is_sign_negative() { S::ADD_IDENTITY } else { S::ZERO };
    }
    if const { size_of::<S>() < 4 } {
        return rounded_pair(a, b);
    }
    let error = error_of(a, b);
    // Round to odd: of the two `f64` around the exact sum, the one with an odd significand. So rounding it to `S` equals
    // rounding the exact sum.
    let bits = sum.to_bits();
    let bits = match error {
        0.0 => bits,
        _ if bits & 1 == 1 => bits,
        _ if (error < 0.0) == (sum < 0.0) => bits + 1,
        _ => bits - 1,
    };
    S::from_f64(f64::from_bits(bits))
}

/// The number of type `S` nearest to `(a + b) / divisor`, ties to even; +0 for 0. The sum must not overflow.
fn quotient_of_pair<S: Element>(a: f64, b: f64, divisor: u64) -> S {
    let (sum, error) = (a + b, error_of(a, b));
    if sum == 0.0 {
        return S::ZERO;
    }
    let ((size, exponent), (part, place), negative) = (parts(sum), parts(error), sum < 0.0);
    // The sum, left-aligned in 128 bits. By the bounds, the sum of a chunk has at most 107 bits.
    let zeros = size.leading_zeros() as i32;
    let (size, exponent) = (u128::from(size << zeros) << 64, exponent - zeros - 64);
    let ends = if part == 0 { 0 } else { part.trailing_zeros() as i32 };
    let error_size = if part == 0 { 0 } else { u128::from(part >> ends) << (place + ends - exponent) };
    let size = if (error < 0.0) == negative { size + error_size } else { size - error_size };
    let divisor = u128::from(divisor);
    nearest(size / divisor, size % divisor != 0, exponent, negative)
}

/// The type byte.
fn code(ty: ElementType) -> u8 {
    match ty {
        ElementType::F16 => 1,
        ElementType::Bf16 => 2,
        ElementType::F32 => 3,
        _ => 4,
    }
}

impl<T: Float> Default for ExactSum<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal values: the same real number, infinity or NaN. A sum of 0 differs from an empty sum and from a sum of -0.
impl<T: Float> PartialEq for ExactSum<T> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && (!self.kind.has_digits() || self.digits.bytes().eq(other.digits.bytes()))
    }
}

impl<T: Float> Eq for ExactSum<T> {}

impl<T: Float> Extend<T> for ExactSum<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, x: I) {
        let (mut chunk, mut len) = ([T::ZERO; chunks::LEN], 0);
        for x in x {
            chunk[len] = x;
            len += 1;
            if len == chunk.len() {
                self.add_slice(&chunk);
                len = 0;
            }
        }
        self.add_slice(&chunk[..len]);
    }
}

impl<'a, T: Float> Extend<&'a T> for ExactSum<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, x: I) {
        self.extend(x.into_iter().copied());
    }
}

impl<T: Float> FromIterator<T> for ExactSum<T> {
    fn from_iter<I: IntoIterator<Item = T>>(x: I) -> Self {
        let mut sum = Self::new();
        sum.extend(x);
        sum
    }
}

impl<'a, T: Float> FromIterator<&'a T> for ExactSum<T> {
    fn from_iter<I: IntoIterator<Item = &'a T>>(x: I) -> Self {
        x.into_iter().copied().collect()
    }
}

#[cfg(test)]
mod tests;
