//! Random numbers: uniform bits, floats in [0, 1), and integers and floats in a range.
//!
//! | property | |
//! |---|---|
//! | work | one write of each element, and ten rounds of the generator per 16 bytes of a stream |
//! | an element | is a function of seed, stream, index in the stream, type and range |
//! | determinism | same bits everywhere; for floats in a range, if the device keeps subnormals |
//! | scratch | none |
//! | limits | 2^64 streams of 2^64 elements per seed |
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011), which has no state. A block of 16 bytes is a
//! function of the block's number, the stream and the seed. Element `i` takes the bytes `[i * d, (i + 1) * d)` of its
//! stream, in little-endian order:
//!
//! | | d | value |
//! |---|---|---|
//! | integers | the type's size | these bytes |
//! | floats in [0, 1) | the type's size | the highest 11 (`f16`), 8 (`bf16`), 24 (`f32`) or 53 (`f64`) bits, as a fraction |
//! | floats in a..b | the type's size | a + u (b - a) with u as above. If rounding gives b, the value is the largest number below b. If b - a overflows the type, the value is 2 (a/2 + u (b/2 - a/2)) |
//! | integers of up to 4 bytes in a range | 8 | the lowest value of the range, plus the high half of the 128-bit product of these bytes and the number of values |
//! | integers of 8 bytes in a range | 16 | likewise, with the highest 64 bits of the 192-bit product |
//!
//! In a range of integers, the probabilities of two values have a relative difference of at most 2^-32.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use std::ops::{Bound, RangeBounds};

use crate::{Buffer, Device, Element, ElementType, Error, Output, Result, element, op::Arithmetic, runtime::Backend};

/// A stream of random numbers, and an index in it.
///
/// ```
/// use oclprim::{Device, Philox};
///
/// let device = Device::best()?;
/// let numbers = Philox::new(42);
/// let all: Vec<u32> = device.random(1000, numbers)?.to_vec()?;
/// // Any part of it, on any device.
/// assert_eq!(Device::cpu().random::<u32>(10, numbers.skip(990))?.to_vec()?, all[990..]);
/// assert_ne!(device.random::<u32>(1000, numbers.stream(1))?.to_vec()?, all);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Philox {
    #[doc(hidden)]
    pub seed: u64,
    #[doc(hidden)]
    pub stream: u64,
    #[doc(hidden)]
    pub skipped: u64,
}

impl Philox {
    /// Stream 0 of a seed, from its first element on.
    ///
    /// ```
    /// use oclprim::{Device, Philox};
    ///
    /// let device = Device::best()?;
    /// let [a, b] = [1, 2].map(|seed| device.random::<u64>(2, Philox::new(seed)));
    /// assert_ne!(a?.to_vec()?, b?.to_vec()?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn new(seed: u64) -> Self {
        Self { seed, stream: 0, skipped: 0 }
    }

    /// Another stream of the same seed, independent of the others.
    ///
    /// ```
    /// use oclprim::{Device, Philox};
    ///
    /// let device = Device::best()?;
    /// let [a, b] = [0, 1].map(|stream| device.random::<u64>(2, Philox::new(7).stream(stream)));
    /// assert_ne!(a?.to_vec()?, b?.to_vec()?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn stream(self, stream: u64) -> Self {
        Self { stream, ..self }
    }

    /// The stream from element `count` on. After a call that made `n` elements, `skip(n)` continues the stream in the
    /// same type. The count begins at the stream's start, so a second `skip` replaces the first.
    ///
    /// ```
    /// use oclprim::{Device, Philox};
    ///
    /// let device = Device::best()?;
    /// let all = device.random::<u8>(100, Philox::new(7))?.to_vec()?;
    /// assert_eq!(device.random::<u8>(40, Philox::new(7).skip(60))?.to_vec()?, all[60..]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn skip(self, count: u64) -> Self {
        Self { skipped: count, ..self }
    }

    /// Elements within a range: integers of `a..b`, `a..=b` or a range without a bound, such as `a..`; floats of
    /// `a..b`.
    ///
    /// An integer comes from a product with 64 random bits, or 128 bits for types of 8 bytes. Nothing is rejected, so
    /// an element is a function of its index. The probability of each value has a relative error of at most 2^-32.
    ///
    /// A float is `a + u * (b - a)`, with `u` as in [`Device::random`], and is at least `a` and below `b`. The
    /// arithmetic is that of the type, or `f32` for `f16` and `bf16`. If `b - a` overflows, the float is
    /// `2 * (a / 2 + u * (b / 2 - a / 2))`.
    ///
    /// ```
    /// use oclprim::{Device, Philox};
    ///
    /// let device = Device::best()?;
    /// let dice = device.random(1000, Philox::new(3).within(1..=6u8))?.to_vec()?;
    /// assert!((1..=6).all(|side| dice.contains(&side)) && dice.iter().all(|side| (1..=6).contains(side)));
    /// let x = device.random(1000, Philox::new(3).within(-0.5f64..0.25));
    /// # if x.as_ref().is_err_and(|error| error.kind() == oclprim::ErrorKind::Unsupported) { return Ok(()) }
    /// assert!(x?.to_vec()?.iter().all(|x| (-0.5..0.25).contains(x)));
    /// assert!(device.random(1, Philox::new(3).within(5..5)).is_err());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn within<R>(self, range: R) -> Within<R> {
        Within { numbers: self, range }
    }

    /// Returns an error if `n` elements exceed the stream.
    fn has(&self, n: usize) -> Result<()> {
        if u128::from(self.skipped) + n as u128 <= 1 << 64 {
            return Ok(());
        }
        Err(Error::invalid(format!("a stream of 2^64 elements has fewer than {n} from index {} on", self.skipped)))
    }
}

/// A stream of random numbers within a range; see [`Philox::within`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Within<R> {
    numbers: Philox,
    range: R,
}

/// Random elements of type `T`: a [`Philox`], or one [within a range](Philox::within).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Philox, random::Numbers};
///
/// fn some(numbers: impl Numbers<u8>) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.random(3, numbers)?.to_vec()
/// }
/// assert!(some(Philox::new(1).within(5..=5))? == [5; 3] && some(Philox::new(1))?.len() == 3);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not give random elements of type `{T}`",
    label = "expected a `Philox`, or one within a range of `{T}`: `Philox::new(1).within(0..6)`"
)]
pub trait Numbers<T: Element> {
    #[doc(hidden)]
    fn draw(&self) -> Result<(Philox, Draw<T>)>;
}

impl<T: Element> Numbers<T> for Philox {
    fn draw(&self) -> Result<(Philox, Draw<T>)> {
        Ok((*self, Draw::Whole))
    }
}

impl<T: Element, R: RangeBounds<T>> Numbers<T> for Within<R> {
    fn draw(&self) -> Result<(Philox, Draw<T>)> {
        Ok((self.numbers, Draw::within(&self.range)?))
    }
}

/// The mapping from an element's bytes of the stream to its value.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw<T: Element> {
    /// Any value of an integer type; floats in [0, 1).
    Whole,
    /// The bits of the lowest value, and the number of values (0 for 2^64).
    Integers { lower: u64, span: u64 },
    /// `(lower + u * width) * scale`. The scale is 1; if the width of the range overflows the type, the ends are halved
    /// and the scale is 2.
    Floats { lower: T::Acc, width: T::Acc, scale: T::Acc, upper: T::Acc, last: T },
}

impl<T: Element> Draw<T> {
    /// Bytes of the stream per element.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Integers { .. } => {
                if size_of::<T>() == 8 {
                    16
                } else {
                    8
                }
            }
            _ => size_of::<T>(),
        }
    }

    fn within(range: &impl RangeBounds<T>) -> Result<Self> {
        let (start, end) = (range.start_bound(), range.end_bound());
        if !T::TYPE.is_float() {
            let bits = |x: &T| element::bits(*x);
            let (lower, span) = integers(T::TYPE, start.map(bits), end.map(bits))?;
            return Ok(Self::Integers { lower, span });
        }
        match (start, end) {
            (Bound::Included(&lower), Bound::Excluded(&upper)) => Self::floats(lower, upper),
            _ => Err(Error::invalid("a range of random floats must be half-open: a..b")),
        }
    }

    fn floats(lower: T, upper: T) -> Result<Self> {
        let (a, b) = (lower.widen(), upper.widen());
        let finite = |x: T::Acc| x.to_f64().is_finite();
        // False for NaN.
        let rises = lower < upper;
        if !rises || ![a, b].into_iter().all(finite) {
            return Err(Error::invalid(format!("{lower:?}..{upper:?} is not a range of finite {}", T::TYPE)));
        }
        let scaled = |scale: f64| {
            let part = |x: T::Acc, by: f64| x.mul(T::Acc::from_f64(by / scale));
            (part(a, 1.0), part(b, 1.0).add(part(a, -1.0)), T::Acc::from_f64(scale))
        };
        let whole = scaled(1.0);
        let (lower, width, scale) = if finite(whole.1) { whole } else { scaled(2.0) };
        Ok(Self::Floats { lower, width, scale, upper: b, last: below(upper) })
    }
}

/// The `lower` and `span` of [`Draw::Integers`] for a range. The bounds are the bits of integers of type `element`.
fn integers(element: ElementType, start: Bound<u64>, end: Bound<u64>) -> Result<(u64, u64)> {
    let unused = 64 - 8 * element.size() as u32;
    let value = |bits: u64| match element.is_signed() {
        true => i128::from((bits << unused).cast_signed() >> unused),
        false => i128::from(bits),
    };
    let highest = value(u64::MAX >> (unused + u32::from(element.is_signed())));
    let lowest = match start {
        Bound::Included(bits) => value(bits),
        Bound::Excluded(bits) => value(bits) + 1,
        Bound::Unbounded if element.is_signed() => -highest - 1,
        Bound::Unbounded => 0,
    };
    let highest = match end {
        Bound::Included(bits) => value(bits),
        Bound::Excluded(bits) => value(bits) - 1,
        Bound::Unbounded => highest,
    };
    if lowest > highest {
        return Err(Error::invalid(format!("there is no integer from {lowest} to {highest}")));
    }
    Ok((lowest as u64, (highest - lowest + 1) as u64))
}

/// The largest float below a finite float.
fn below<T: Element>(x: T) -> T {
    let sign = 1u64 << (8 * size_of::<T>() - 1);
    T::from_bits_lossy(match element::bits(x) {
        zero if zero & !sign == 0 => sign | 1,
        negative if negative & sign != 0 => negative + 1,
        positive => positive - 1,
    })
}

/// # Random numbers
///
/// These methods return random numbers that depend only on a seed and an index. Module: [`random`](crate::random).
impl Device {
    /// `n` random elements: integers of all values, floats in [0, 1), or elements [within a range](Philox::within).
    ///
    /// Floats are multiples of 2^-11 (`f16`), 2^-8 (`bf16`), 2^-24 (`f32`) or 2^-53 (`f64`), all equally likely.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the elements do not fit the device;
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the stream has fewer elements left or if a
    /// [range](Philox::within) is empty. It also fails if a range of floats is not finite, or not half-open like
    /// `a..b`.
    ///
    /// ```
    /// use oclprim::{Device, Philox};
    ///
    /// let device = Device::best()?;
    /// let first: Vec<u32> = device.random(4, Philox::new(0))?.to_vec()?;
    /// assert_eq!(first, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    /// let x: Vec<f32> = device.random(1000, Philox::new(1))?.to_vec()?;
    /// assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn random<T: Element>(&self, n: usize, numbers: impl Numbers<T>) -> Result<Buffer<T>> {
        let (numbers, draw) = numbers.draw()?;
        let mut out = self.uninit(n)?;
        self.draw(numbers, draw, Output::from(&mut out))?;
        Ok(out)
    }

    /// [`Device::random`] into a slice, buffer or view. Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::random`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` belongs
    /// to another device.
    ///
    /// ```
    /// use oclprim::{Device, Philox};
    ///
    /// let (mut bytes, mut words) = ([0u8; 8], [0u64; 1]);
    /// Device::best()?.random_into(Philox::new(7), &mut bytes)?;
    /// Device::best()?.random_into(Philox::new(7), &mut words)?;
    /// assert_eq!(words[0].to_le_bytes(), bytes); // the same bytes of one stream
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn random_into<'a, T: Element>(
        &self,
        numbers: impl Numbers<T>,
        output: impl Into<Output<'a, T>>,
    ) -> Result<()> {
        let (numbers, draw) = numbers.draw()?;
        self.draw(numbers, draw, output.into())
    }

    #[inline(never)]
    fn draw<T: Element>(&self, numbers: Philox, draw: Draw<T>, output: Output<'_, T>) -> Result<()> {
        numbers.has(output.len())?;
        match self.backend() {
            Backend::Cpu => cpu::fill(numbers, &draw, output.host()?),
            Backend::OpenCl(device) => gpu::fill(device, numbers, &draw, output)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_gives_the_next_smaller_float() {
        assert_eq!((below(1.0f32), below(0.0f64), below(-0.0f32)), (1.0f32.next_down(), -5e-324, -1e-45));
        assert_eq!((below(-1.0f64), below(f32::from_bits(1))), ((-1.0f64).next_down(), 0.0));
    }

    #[test]
    fn invalid_ranges_are_refused() {
        let text = |draw: Result<Draw<i8>>| draw.unwrap_err().to_string();
        assert_eq!(text(Draw::within(&(5i8..5))), "there is no integer from 5 to 4");
        assert_eq!(text(Draw::within(&(..i8::MIN))), "there is no integer from -128 to -129");
        let text = |draw: Result<Draw<f32>>| draw.unwrap_err().to_string();
        let no_range = |range: &str| format!("{range} is not a range of finite f32");
        assert_eq!(text(Draw::within(&(1.0f32..1.0))), no_range("1.0..1.0"));
        assert_eq!(text(Draw::within(&(0.0..f32::NAN))), no_range("0.0..NaN"));
        assert_eq!(text(Draw::within(&(0.0..f32::INFINITY))), no_range("0.0..inf"));
        assert!(text(Draw::within(&(0.0f32..=1.0))).contains("a..b"));
        assert_eq!(Draw::within(&(..)).unwrap(), Draw::<u64>::Integers { lower: 0, span: 0 });
        let last = Philox::new(0).skip(u64::MAX);
        assert!(last.has(0).is_ok() && last.has(1).is_ok() && last.has(2).is_err());
    }
}
