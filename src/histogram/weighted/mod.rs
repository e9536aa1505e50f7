//! Weighted histograms: the sum of the weights in each bin.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::{Accumulate, Bins, Outside, Samples, SamplesInto, slots::OUTSIDE};
use crate::{
    Device, Element, Error, Input, Output, Result, Scratch, Source, bf16,
    counted::Firsts,
    f16, memory,
    runtime::Backend,
    source::{Sequence, Weighted, finite},
};

/// A type of weights, with the type of their sums.
///
/// ```
/// use oclprim::{Bins, Device, Source, Weight};
///
/// fn in_all<W: Weight>(weights: &[W]) -> oclprim::Result<W::Sum> {
///     let samples = vec![0u8; weights.len()];
///     Ok(Device::best()?.histogram(samples.weighted(weights), &Bins::ids(1)?)?.sums[0])
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
/// use oclprim::{Bins, Device, Source};
///
/// let bins = Bins::even(0.0f32, 2.0, 2)?;
/// let found = Device::best()?.histogram([0.5f32, 1.5, 9.0].weighted(&[3u32, 4, 5]), &bins)?;
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

impl<S: Sequence<Item: Element>, W: Source<Item: Weight>> Samples for Weighted<S, W> {
    type Bins = Bins<S::Item>;
    type Found = WeightedHistogram<<W::Item as Weight>::Sum>;

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Self::Found> {
        let mut sums = memory::zeroed::<<W::Item as Weight>::Sum>(bins.len())?;
        let mut outside = [<W::Item as Weight>::Sum::ZERO; OUTSIDE];
        let outputs = (Output::from(&mut sums), Output::from(&mut outside));
        self.histogram_into(device, bins, outputs, Accumulate::Overwrite)?;
        let [below, above, nan] = outside;
        Ok(WeightedHistogram { sums, outside: Outside { below, above, nan } })
    }
}

impl<S: Sequence<Item: Element>, W: Source<Item: Weight<Sum = C>>, C: Element> SamplesInto<C> for Weighted<S, W> {
    type Counts<'o> = Output<'o, C>;
    type Outside = C;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        (sums, outside): (Output<'_, C>, Output<'_, C>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let (n, m) = (self.source.most()?, finite(&self.weights)?);
        if n != m {
            return Err(Error::invalid(format!("a weighted histogram of {n} samples needs as many weights, got {m}")));
        }
        let ((samples, count), weights) = (self.source.held_on(device)?, self.source.values_on(&self.weights, device)?);
        let inputs = ((samples.input(), count), weights.input());
        device.histogram_weighted(inputs, bins, (sums, outside), accumulate, &mut Scratch::new())
    }
}

impl Device {
    /// A histogram with weights, compiled once for each set of types. Only OpenCL devices read a count.
    #[inline(never)]
    fn histogram_weighted<T: Element, W: Weight>(
        &self,
        ((input, count), weights): (Firsts<'_, T>, Input<'_, W>),
        bins: &Bins<T>,
        (sums, outside): (Output<'_, W::Sum>, Output<'_, W::Sum>),
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
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
                let inputs = ([input.any(), weights.any()], count);
                let outputs = [sums.any(), outside.any()];
                gpu::weighted(device, form, bins.map(), inputs, outputs, keep, scratch)?;
            }
        }
        Ok(())
    }
}
