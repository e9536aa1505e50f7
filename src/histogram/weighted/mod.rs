//! Weighted histograms: the sum of the weights in each bin.

mod cpu;
#[cfg(feature = "opencl")]
pub(crate) mod gpu;
#[cfg(any(test, feature = "checks"))]
pub(super) mod spec;

use super::{Accumulate, Bins, bins::OUTSIDE};
use crate::{Device, Element, ElementType, Error, Input, Output, Result, Scratch, bf16, f16, memory, runtime::Backend};

/// The types of weights, and of their sums.
///
/// ```
/// use oclprim::{Bins, Device, Weight};
///
/// fn in_all<W: Weight>(weights: &[W]) -> oclprim::Result<W::Sum> {
///     let samples = vec![0u8; weights.len()];
///     Ok(Device::best()?.histogram_weighted(&samples, weights, &Bins::ids(1)?)?.sums[0])
/// }
///
/// assert_eq!(in_all(&[200u8, 100])?, 300u64);
/// assert_eq!(in_all(&[0.5f32, -2.0])?, -1.5f32);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub trait Weight: Element {
    /// `i64` for signed integers, `u64` for unsigned ones, `f64` for `f64`, and `f32` for other floats.
    type Sum: Element;
}

macro_rules! weights {
    ($($ty:ident $sum:ident),*) => { $( impl Weight for $ty { type Sum = $sum; } )* };
}
weights!(i8 i64, i16 i64, i32 i64, i64 i64, u8 u64, u16 u64, u32 u64, u64 u64, f16 f32, bf16 f32, f32 f32, f64 f64);

/// Sums of weights.
///
/// ```
/// use oclprim::{Bins, Device};
///
/// let bins = Bins::even(0.0f32, 2.0, 2)?;
/// let found = Device::best()?.histogram_weighted(&[0.5f32, 1.5, 9.0], &[3u32, 4, 5], &bins)?;
/// assert_eq!((found.sums, found.below, found.above, found.nan), (vec![3, 4], 0, 5, 0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WeightedHistogram<S> {
    /// The weight of each bin.
    pub sums: Vec<S>,
    /// The weight of the samples below the first bin.
    pub below: S,
    /// The weight of the samples above the last bin.
    pub above: S,
    /// The weight of the samples that are NaN.
    pub nan: S,
}

/// The units in which float weights are added up, as integers: powers of two.
///
/// Every weight is below `2^e`, with `e` in steps of four, so that a few weights mostly tell it; there are at most `2^log_n`.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// The bits of a sum.
    limit: i32,
    /// The least exponent of the type.
    least: i32,
    /// The power of two above weights with exponent field 0 is `2^-bias`.
    bias: i32,
}

impl Unit {
    const F32: Self = Self { limit: 62, least: -149, bias: 126 };
    const F64: Self = Self { limit: 126, least: -1074, bias: 1022 };

    fn of(weight: ElementType) -> Self {
        if weight.needs_fp64() { Self::F64 } else { Self::F32 }
    }

    /// The exponent of the unit, from the largest exponent field of a weight.
    fn exponent(self, field: u32, log_n: u32) -> i32 {
        let least = field as i32 - self.bias;
        Ord::max(least + (3 - least).rem_euclid(4) + log_n as i32 - self.limit, self.least)
    }
}

/// The least power of two that is not below `n`.
fn log_n(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

/// The sums of floats; integers wrap into the type.
fn narrow<S: Element>(sum: i128, exponent: i32) -> S {
    if !S::TYPE.is_float() {
        return S::from_bits_lossy(sum as u64);
    }
    let part = exponent / 2;
    let power = |k: i32| f64::from_bits(((k + 1023) as u64) << 52);
    if S::TYPE.needs_fp64() {
        S::from_f64(sum as f64 * power(part) * power(exponent - part))
    } else {
        S::from_f64(f64::from(sum as f32 * power(part) as f32 * power(exponent - part) as f32))
    }
}

impl Device {
    /// Adds up the weights of the samples in each bin, and of those in none: `weights[i]` is that of `input[i]`.
    ///
    /// # The sum of weights
    ///
    /// Integers are added up in 64 bits, wrapping. The result is the same on every run, on every device and on the CPU;
    /// so it is for floats, whose order would matter: they are added up as whole multiples of a unit, which is exact.
    /// Each weight is rounded to the nearest multiple, and each sum once more to the type. With all finite weights below
    /// `2^e`, `e` being the least of ..., -1, 3, 7, ..., and at most `2^l` of them, the unit is `2^(e + l - 62)`
    /// (`2^(e + l - 126)` for `f64`), or the type's least subnormal if that is larger. So for 2^20 weights, an `f32` sum is off
    /// by at most the rounding of the result and, for each weight, 2^-39 of the largest one. A GPU finds `e` from some of the
    /// weights, and counts anew where others are 16 times as large or, by chance, less. A sum with NaN, or with both infinities, is NaN; with one, infinite.
    /// (A device that flushes subnormals takes subnormal weights for 0, and gives 0 for subnormal sums.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are more samples than weights, or less;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` or `W` needs it;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the tables do not fit it.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let energies = [0.5f32, 1.5, 1.75, 9.0];
    /// let found = Device::best()?.histogram_weighted(&energies, &[1.0f32, 0.25, 0.5, 2.0], &Bins::even(0.0, 2.0, 2)?)?;
    /// assert_eq!((found.sums, found.above), (vec![1.0, 0.75], 2.0));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_weighted<'a, 'b, T: Element, W: Weight>(
        &self,
        input: impl Into<Input<'a, T>>,
        weights: impl Into<Input<'b, W>>,
        bins: &Bins<T>,
    ) -> Result<WeightedHistogram<W::Sum>> {
        let mut sums = memory::zeroed::<W::Sum>(bins.len())?;
        let mut outside = [W::Sum::ZERO; OUTSIDE];
        let (replace, mut scratch) = (Accumulate::Overwrite, Scratch::new());
        self.histogram_weighted_into(input, weights, bins, &mut sums, &mut outside, replace, &mut scratch)?;
        let [below, above, nan] = outside;
        Ok(WeightedHistogram { sums, below, above, nan })
    }

    /// [`Device::histogram_weighted`] into sums that can stay on the device.
    ///
    /// `sums` has one for each bin; `outside` those below, above and of NaN. [`Accumulate::Add`] adds the new sums to those
    /// that are there. Does not wait for the result, unless an output is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::histogram_weighted`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an output has
    /// another length.
    ///
    /// ```
    /// use oclprim::{Accumulate, Bins, Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let (bins, mut scratch) = (Bins::ids(3)?, Scratch::new());
    /// let mut sums = device.zeroed::<i64>(3)?;
    /// let mut outside = device.zeroed::<i64>(3)?;
    /// for weights in [[5i16, -1, 2], [1, 1, 1]] {
    ///     device.histogram_weighted_into(
    ///         &[0u8, 2, 2], &weights, &bins, &mut sums, &mut outside, Accumulate::Add, &mut scratch,
    ///     )?;
    /// }
    /// assert_eq!(sums.to_vec()?, [6, 0, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[allow(clippy::too_many_arguments, reason = "two inputs, two outputs")]
    pub fn histogram_weighted_into<'a, 'b, 'c, 'd, T: Element, W: Weight>(
        &self,
        input: impl Into<Input<'a, T>>,
        weights: impl Into<Input<'b, W>>,
        bins: &Bins<T>,
        sums: impl Into<Output<'c, W::Sum>>,
        outside: impl Into<Output<'d, W::Sum>>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (input, weights, sums, outside) = (input.into(), weights.into(), sums.into(), outside.into());
        if input.len() != weights.len() {
            let (n, m) = (input.len(), weights.len());
            return Err(Error::invalid(format!("a weighted histogram of {n} samples needs as many weights, got {m}")));
        }
        sums.expect_len(bins.len(), "weighted histogram of sums")?;
        outside.expect_len(OUTSIDE, "weighted histogram of what is outside")?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let slots = |start: usize, out: &mut [u32]| bins.slots(&input[start..start + out.len()], out);
                cpu::weighted::<W>(&slots, weights.host()?, sums.host()?, outside.host()?, accumulate)?;
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let keep = accumulate == Accumulate::Add;
                let form = gpu::Form { samples: super::gpu::Form::of(bins), weight: W::TYPE, sum: W::Sum::TYPE };
                let (input, weights) = (input.cl(device)?, weights.cl(device)?);
                let (sums, outside) = (sums.cl(device, keep)?, outside.cl(device, keep)?);
                crate::runtime::apart(&[&input, &weights], &[&sums, &outside])?;
                gpu::weighted(device, form, bins.map(), [&input, &weights], [&sums, &outside], keep, scratch)?;
                sums.finish(device)?;
                outside.finish(device)?;
            }
        }
        Ok(())
    }

    /// The bytes of scratch that weighted histograms of `n` samples with these bins use.
    ///
    /// # Errors
    ///
    /// As [`Device::histogram_weighted`].
    ///
    /// ```
    /// use oclprim::{Bins, Device, Scratch};
    ///
    /// let (device, bins) = (Device::best()?, Bins::<u8>::ids(256)?);
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.histogram_weighted_scratch::<u8, f32>(1 << 16, &bins)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_weighted_scratch<T: Element, W: Weight>(&self, n: usize, bins: &Bins<T>) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let form = gpu::Form { samples: super::gpu::Form::of(bins), weight: W::TYPE, sum: W::Sum::TYPE };
                let caps = device.capabilities_for("histogram", size_of::<T>(), n)?;
                Ok(gpu::plan(n, form, true, &caps, device.tuning().wide(n))?.scratch_bytes)
            }
        }
    }
}
