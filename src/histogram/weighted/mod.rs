//! Weighted histograms: the sum of the weights in each bin.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::{Accumulate, Bins, Outside, slots::OUTSIDE};
use crate::{Device, Element, Error, Input, Output, Result, Scratch, Source, bf16, f16, memory, runtime::Backend};

/// A type of weights, with the type of their sums.
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of weights",
    label = "expected an element type, such as `f32` or `u32`",
    note = "use `u8` for `bool`, and `u64` for `usize`"
)]
pub trait Weight: Element {
    /// `i64` for signed integers, `u64` for unsigned ones, `f64` for `f64`, and `f32` for other floats.
    type Sum: Element;
}

macro_rules! weights {
    ($($ty:ident $sum:ident),*) => { $( impl Weight for $ty { type Sum = $sum; } )* };
}
weights!(i8 i64, i16 i64, i32 i64, i64 i64, u8 u64, u16 u64, u32 u64, u64 u64, f16 f32, bf16 f32, f32 f32, f64 f64);

/// Sums of weights, in the layout of a [`Histogram`](super::Histogram).
///
/// ```
/// use oclprim::{Bins, Device};
///
/// let bins = Bins::even(0.0f32, 2.0, 2)?;
/// let found = Device::best()?.histogram_weighted(&[0.5f32, 1.5, 9.0], &[3u32, 4, 5], &bins)?;
/// assert_eq!((found.sums, found.outside.above), (vec![3, 4], 5));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WeightedHistogram<S> {
    /// The sum of weights in each bin.
    pub sums: Vec<S>,
    /// The sums of the weights outside the bins.
    pub outside: Outside<S>,
}

/// Binary logarithm of `n`, rounded up.
fn log_n(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

/// # Weighted histograms
///
/// These methods return the sum of the weights in each bin. Module: [`histogram`](crate::histogram).
impl Device {
    /// Weighted histogram: `sums[k]` is the sum of `weights[i]` over all `input[i]` in bin `k`, and `outside` has the
    /// sums for samples outside the bins.
    ///
    /// # The sum of weights
    ///
    /// Sums of integers have 64 bits and wrap. The sum of floats is the exact sum of the bin's own weights, rounded
    /// once to the sum's type, ties to even:
    ///
    /// ```text
    /// |sum - (w[1] + ... + w[m])| <= u * |w[1] + ... + w[m]|     u = 2^-24, for f64 2^-53; subnormal sums are exact
    /// ```
    ///
    /// So a small weight is not lost among large ones, and the order does not matter. The result has the same bits on
    /// every run, on every device and on the CPU, even on devices that flush subnormals. A sum is infinite if the
    /// rounded exact sum is out of range, or if a weight of the bin is infinite. A sum is NaN if a weight of the bin is
    /// NaN, or if the bin has weights of both infinity and -infinity. A sum of 0 is +0.
    ///
    /// A device sums most weights in a window of 64 bits, or 128 for `f64`. The largest of a sample of the weights
    /// defines the upper end of the window. Weights with bits outside the window cost more: they are summed in global
    /// memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of samples and weights differ;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` or `W` needs it;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the tables do not fit the device.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let energies = [0.5f32, 1.5, 1.75, 9.0];
    /// let found = Device::best()?.histogram_weighted(&energies, &[1.0f32, 0.25, 0.5, 2.0], &Bins::even(0.0, 2.0, 2)?)?;
    /// assert_eq!((found.sums, found.outside.above), (vec![1.0, 0.75], 2.0));
    /// // Bins do not affect one another.
    /// let found = Device::best()?.histogram_weighted(&[0u8, 1], &[1e12f32, 1e-7], &Bins::ids(2)?)?;
    /// assert_eq!(found.sums, [1e12, 1e-7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_weighted<T: Element, W: Weight>(
        &self,
        input: impl Source<Item = T>,
        weights: impl Source<Item = W>,
        bins: &Bins<T>,
    ) -> Result<WeightedHistogram<W::Sum>> {
        let mut sums = memory::zeroed::<W::Sum>(bins.len())?;
        let mut outside = [W::Sum::ZERO; OUTSIDE];
        let replace = Accumulate::Overwrite;
        self.histogram_weighted_into(input, weights, bins, &mut sums, &mut outside, replace)?;
        let [below, above, nan] = outside;
        Ok(WeightedHistogram { sums, outside: Outside { below, above, nan } })
    }

    /// [`Device::histogram_weighted`] into sums that can stay on the device.
    ///
    /// `sums` has a sum per bin. `outside` has three sums: samples below the bins, samples above, and NaN.
    /// [`Accumulate::Add`] adds the new sums to the present ones, in the arithmetic of their type. Waits for the result
    /// only if an output is a host slice, or if an input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::histogram_weighted`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an
    /// output has the wrong length.
    ///
    /// ```
    /// use oclprim::{Accumulate, Bins, Device};
    ///
    /// let device = Device::best()?;
    /// let bins = Bins::ids(3)?;
    /// let mut sums = device.zeroed::<i64>(3)?;
    /// let mut outside = device.zeroed::<i64>(3)?;
    /// for weights in [[5i16, -1, 2], [1, 1, 1]] {
    ///     device.histogram_weighted_into(
    ///         &[0u8, 2, 2], &weights, &bins, &mut sums, &mut outside, Accumulate::Add,
    ///     )?;
    /// }
    /// assert_eq!(sums.to_vec()?, [6, 0, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_weighted_into<'c, 'd, T: Element, W: Weight>(
        &self,
        input: impl Source<Item = T>,
        weights: impl Source<Item = W>,
        bins: &Bins<T>,
        sums: impl Into<Output<'c, W::Sum>>,
        outside: impl Into<Output<'d, W::Sum>>,
        accumulate: Accumulate,
    ) -> Result<()> {
        self.histogram_weighted_one(
            input.held(self)?.input(),
            weights.held(self)?.input(),
            bins,
            sums.into(),
            outside.into(),
            accumulate,
            &mut Scratch::new(),
        )
    }

    /// Body of [`Device::histogram_weighted_into`], compiled once for each set of types.
    #[allow(clippy::too_many_arguments, reason = "two inputs, two outputs")]
    #[inline(never)]
    fn histogram_weighted_one<T: Element, W: Weight>(
        &self,
        input: Input<'_, T>,
        weights: Input<'_, W>,
        bins: &Bins<T>,
        sums: Output<'_, W::Sum>,
        outside: Output<'_, W::Sum>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if input.len() != weights.len() {
            let (n, m) = (input.len(), weights.len());
            return Err(Error::invalid(format!("a weighted histogram of {n} samples needs as many weights, got {m}")));
        }
        sums.expect_len(bins.len(), "weighted histogram of sums")?;
        outside.expect_len(OUTSIDE, "weighted histogram of samples outside the bins")?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let slots = |start: usize, out: &mut [u32]| bins.slots(&input[start..start + out.len()], out);
                cpu::weighted::<W>(&slots, weights.host()?, sums.host()?, outside.host()?, accumulate)?;
            }
            Backend::OpenCl(device) => {
                let keep = accumulate == Accumulate::Add;
                let form = gpu::Form { samples: super::form::Form::of(bins), weight: W::TYPE, sum: W::Sum::TYPE };
                let (inputs, outputs) = ([input.any(), weights.any()], [sums.any(), outside.any()]);
                gpu::weighted(device, form, bins.map(), inputs, outputs, keep, scratch)?;
            }
        }
        Ok(())
    }
}
