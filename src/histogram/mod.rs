//! Histograms: the number of samples in each bin.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one count per sample; with `r` ranges of bins, `r` reads (see below) |
//! | determinism | same bits everywhere: counts and sums of weights are equal on every run, every device and the CPU. For float samples, the device must keep subnormals |
//! | scratch | tables of 4-byte counters, at most 256 MiB. If samples are partitioned, 2 bytes per sample, at most 1 GiB. With weights, up to 292 bytes per bin, and more if there are several tables, at most 1 GiB |
//! | limits | 1 to 2^24 bins, any n that fits the device |
//!
//! [`Bins`] defines the bin of a sample. Samples outside the bins are counted separately; they never change another
//! counter.
//!
//! On an OpenCL device, each work-group counts in its own table in local memory. If local memory has room, each lane
//! has a replica of the table (Gómez-Luna et al. 2013). A second kernel, or the last work-group, sums the tables. If
//! local memory does not hold all bins, the bins form a few ranges. Each range is counted in its own read of the input.
//!
//! With more ranges, the samples are first partitioned by range, as 16-bit numbers. The input is processed in rounds,
//! so that the scratch stays below 1 GiB and below a sixteenth of the device's memory. If samples are few, or if the
//! device has no sub-groups, atomics in global memory count them instead. PoCL without sub-groups would compile the
//! partition wrongly.
//!
//! Without weights and channels, kernels apply the `f` of [`x.map(f)`](Source::map) as they load a sample. For this,
//! `x` must be memory, or memory cast to a type that holds all its values, and `f` must capture nothing. Also without
//! weights and channels, the CPU backend computes every expression in cached chunks. In all other cases the elements
//! are written to memory first.
//!
//! The search among given edges starts from a table over the range, so evenly spaced edges take about one comparison
//! per sample. [Weights](Source::weighted) are summed as integers, and sums of floats are exact. Floats are summed in
//! a unit of which most weights are whole multiples. In each bin, a few words hold the sum of these weights.
//! Further words cover the whole range of the type, and hold the sum of the other weights.

#[doc(hidden)]
pub(crate) mod bins;
pub(crate) mod channels;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod edges;
#[doc(hidden)]
pub(crate) mod form;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod groups;
mod held;
#[doc(hidden)]
pub(crate) mod partition;
#[doc(hidden)]
pub(crate) mod slots;
pub(crate) mod weighted;

pub use bins::Bins;
pub use groups::{Histograms, WeightedHistograms};
pub use weighted::{Weight, WeightedHistogram};

use self::form::Mapped;
use crate::{
    Device, Element, Input, Integer, Output, Result, Scratch, Source,
    counted::Count,
    memory,
    runtime::{Arriving, Backend},
    source::{Counted, Erased, Expression, load::Load, transform::written_load},
};

/// A type of counters for [`Device::histogram_into`]: `u32` or `u64`. Both wrap.
///
/// A `u32` counter holds the count modulo 2^32.
///
/// ```
/// use oclprim::{Accumulate, Bins, Counter, Device};
///
/// fn counts<C: Counter>(x: &[u8]) -> oclprim::Result<Vec<C>> {
///     let mut counts = vec![C::ZERO; 256];
///     let bins = Bins::ids(256)?;
///     Device::best()?.histogram_into(x, &bins, &mut counts, &mut [0; 3], Accumulate::Overwrite)?;
///     Ok(counts)
/// }
///
/// assert_eq!((counts::<u32>(&[7, 7])?[7], counts::<u64>(&[7, 7])?[7]), (2, 2));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of counters",
    label = "expected `u32` or `u64`",
    note = "pass counters of `u64` for `usize`, and convert them on the host"
)]
pub trait Counter: Integer + From<u32> {}
impl Counter for u32 {}
impl Counter for u64 {}

/// The effect of new values on an output: they replace its present values, or add to them.
///
/// ```
/// use oclprim::{Accumulate, Bins, Device};
///
/// let (device, bins, mut outside) = (Device::best()?, Bins::ids(2)?, [0; 3]);
/// let mut counts = [10u32, 10];
/// for (accumulate, want) in [(Accumulate::Add, [11, 12]), (Accumulate::Overwrite, [1, 2])] {
///     device.histogram_into(&[0u8, 1, 1], &bins, &mut counts, &mut outside, accumulate)?;
///     assert_eq!(counts, want);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// New values replace the present ones.
    #[default]
    Overwrite,
    /// New values add to the present ones.
    Add,
}

/// Results for the samples outside the bins: counts, or in a [`WeightedHistogram`] sums of weights.
///
/// ```
/// use oclprim::{Bins, Device};
///
/// let bins = Bins::even(0.0f32, 1.0, 4)?;
/// let outside = Device::best()?.histogram(&[-1.0, 0.5, 2.0, 3.0, f32::NAN], &bins)?.outside;
/// assert_eq!((outside.below, outside.above, outside.nan), (1, 2, 1));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outside<S = u64> {
    /// Samples below the first bin.
    pub below: S,
    /// Samples above the last bin.
    pub above: S,
    /// Samples that are NaN.
    pub nan: S,
}

/// The counts of a histogram.
///
/// ```
/// use oclprim::{Bins, Device};
///
/// let found = Device::best()?.histogram(&[1u8, 1, 200], &Bins::even(0, 100, 2)?)?;
/// assert_eq!((&found.counts[..], found.outside.above), (&[2, 0][..], 1));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Histogram {
    /// The number of samples in each bin.
    pub counts: Vec<u64>,
    /// The number of samples outside the bins.
    pub outside: Outside,
}

/// An input of [`Device::histogram`]: a [`Source`], its first elements [by a count](Source::take), one [with
/// weights](Source::weighted), of [channels](Source::channels), or in groups ([`segments`](Source::segments),
/// [`by_key`](Source::by_key), [`along`](crate::NdView::along)).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Bins, Device, Histogram, histogram::Samples};
///
/// fn found<I: Samples<Bins = Bins<u8>, Found = Histogram>>(input: I) -> oclprim::Result<Vec<u64>> {
///     Ok(Device::best()?.histogram(input, &Bins::ids(3)?)?.counts)
/// }
/// assert_eq!(found(&[1u8, 1, 2])?, [0, 2, 1]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a histogram",
    label = "expected a source, `x.weighted(&weights)`, `pixels.channels(3)`, or groups: `x.segments(&offsets)`, \
             `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Samples: Sized {
    /// The bins: [`Bins`], or a slice of them for channels.
    type Bins: ?Sized;
    /// A [`Histogram`] or a [`WeightedHistogram`]. For channels, a `Vec` of histograms. For groups, [`Histograms`] or
    /// [`WeightedHistograms`]. By key, the keys and one of the latter.
    type Found;

    #[doc(hidden)]
    fn histogram(self, device: &Device, bins: &Self::Bins) -> Result<Self::Found>;
}

/// [`Samples`] whose counts or sums can have the type `C`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a histogram of `{Self}` has no results of type `{C}`",
    note = "counts are `u32` or `u64`; sums of weights are those of `Weight::Sum`"
)]
pub trait SamplesInto<C: Element>: Samples {
    /// The output of the results for bins. By key, also the outputs of the keys and of the number of runs.
    type Counts<'o>;
    /// The type of the results for samples outside the bins.
    type Outside: Element;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Self::Bins,
        outputs: (Self::Counts<'_>, Output<'_, Self::Outside>),
        accumulate: Accumulate,
    ) -> Result<()>;
}

impl<S: Source<Item: Element>> Samples for S {
    type Bins = Bins<S::Item>;
    type Found = Histogram;

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Histogram> {
        found(bins.len(), |outputs| self.histogram_into(device, bins, outputs, Accumulate::Overwrite))
    }
}

impl<S: Source<Item: Element>, C: Counter> SamplesInto<C> for S {
    type Counts<'o> = Output<'o, C>;
    type Outside = u64;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        outputs: (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        device.histogram_of((self.erased(), None), bins, outputs, accumulate)
    }
}

impl<S: Source<Item: Element>> Samples for Counted<'_, S> {
    type Bins = Bins<S::Item>;
    type Found = Histogram;

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Histogram> {
        found(bins.len(), |outputs| self.histogram_into(device, bins, outputs, Accumulate::Overwrite))
    }
}

impl<S: Source<Item: Element>, C: Counter> SamplesInto<C> for Counted<'_, S> {
    type Counts<'o> = Output<'o, C>;
    type Outside = u64;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        outputs: (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        if device.is_cpu() {
            return self.known(device)?.histogram_into(device, bins, outputs, accumulate);
        }
        device.histogram_of((self.source.erased(), Some(self.count)), bins, outputs, accumulate)
    }
}

/// The histogram that `count` writes: the counts of `bins` bins, and the counts outside the bins.
fn found(bins: usize, count: impl FnOnce((Output<'_, u64>, Output<'_, u64>)) -> Result<()>) -> Result<Histogram> {
    let mut counts = memory::zeroed::<u64>(bins)?;
    let mut outside = [0; slots::OUTSIDE];
    count((Output::from(&mut counts), Output::from(&mut outside)))?;
    let [below, above, nan] = outside;
    Ok(Histogram { counts, outside: Outside { below, above, nan } })
}

/// # Histograms
///
/// These methods return the number of samples in each bin. Module: [`histogram`](crate::histogram).
impl Device {
    /// Histogram: `counts[k]` is the number of samples in bin `k`, and `outside` counts the samples outside the bins.
    ///
    /// For samples [with weights](Source::weighted), returns the sum of the weights in each bin. For
    /// [channels](Source::channels) of interleaved pixels, returns a histogram for each channel. For
    /// [segments](Source::segments) and [lines along axes](crate::NdView::along), returns a histogram for each
    /// ([`histogram::groups`](crate::histogram::groups)). For [runs of equal keys](Source::by_key), returns the keys
    /// and the histograms.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the tables do not fit the device;
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of samples and weights differ. The
    /// same error if pixels do not have 1 to 4 channels, or if the last pixel is incomplete. The same error if there
    /// are bins for no channel, or for more channels than a pixel has. The same error if there are no offsets, or if an
    /// offset exceeds the next one or the number of samples. The same error if a view has no such axis.
    ///
    /// ```
    /// use oclprim::{Bins, Device, Source};
    ///
    /// let device = Device::best()?;
    /// let heights = device.upload(&[1.62f32, 1.75, 1.71, 1.98, f32::NAN])?;
    /// let found = device.histogram(&heights, &Bins::even(1.5, 2.0, 5)?)?;
    /// assert_eq!(found.counts, [0, 1, 2, 0, 1]);
    /// assert_eq!(found.outside.nan, 1);
    ///
    /// // A histogram for each column.
    /// let image = device.upload(&[0u8, 1, 2, 0, 1, 1])?;
    /// let found = device.histogram(image.nd(&[2, 3])?.along(0), &Bins::ids(3)?)?;
    /// assert_eq!(found.counts.to_vec()?, [2, 0, 0, 0, 2, 0, 0, 1, 1]);
    ///
    /// // A histogram for each run of equal keys.
    /// let (keys, found) = device.histogram([0u8, 1, 1, 0].by_key(&[7u32, 7, 5, 5]), &Bins::ids(2)?)?;
    /// assert_eq!((keys.to_vec()?, found.counts.to_vec()?), (vec![7, 5], vec![1, 1, 1, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram<I: Samples>(&self, input: I, bins: &I::Bins) -> Result<I::Found> {
        input.histogram(self, bins)
    }

    /// [`Device::histogram`] into counters that can stay on the device.
    ///
    /// `counts` has a counter per bin. `outside` has three counters: samples below the bins, samples above, and NaN.
    /// For samples with weights, both have sums. [`Accumulate::Add`] adds the new values to the present ones, in the
    /// arithmetic of their type.
    ///
    /// For channels, `counts` has the bins of the first channel, then those of the next. For each channel, `outside`
    /// has three counters. The same holds for groups. For [runs of keys](Source::by_key), `counts` is a tuple as in
    /// [`select::by_key::groups`](crate::select::by_key::groups). This method does not check the offsets of segments;
    /// [`Device::check_segments`] does.
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::histogram`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an output has
    /// the wrong length. After an error of the driver, the outputs may have counts of some samples.
    ///
    /// ```
    /// use oclprim::{Accumulate, Bins, Device};
    ///
    /// let device = Device::best()?;
    /// let bins = Bins::ids(3)?;
    /// let mut counts = device.zeroed::<u32>(3)?;
    /// let mut outside = device.zeroed(3)?;
    /// for block in [[0i32, 1, 1], [2, -1, 1]] {
    ///     device.histogram_into(&block, &bins, &mut counts, &mut outside, Accumulate::Add)?;
    /// }
    /// assert_eq!(counts.to_vec()?, [1, 3, 1]);
    /// assert_eq!(outside.to_vec()?, [1, 0, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_into<'b, 'c, I: SamplesInto<C>, C: Element>(
        &self,
        input: I,
        bins: &I::Bins,
        counts: impl Into<I::Counts<'b>>,
        outside: impl Into<Output<'c, I::Outside>>,
        accumulate: Accumulate,
    ) -> Result<()> {
        input.histogram_into(self, bins, (counts.into(), outside.into()), accumulate)
    }

    /// The histogram of a source, compiled once for each set of types.
    fn histogram_of<T: Element, C: Counter>(
        &self,
        (input, count): (Erased<'_, T>, Option<Count<'_>>),
        bins: &Bins<T>,
        (counts, outside): (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let scratch = &mut Scratch::new();
        match input {
            Erased::Memory(input) => self.histogram_one((input, count), bins, counts, outside, accumulate, scratch),
            Erased::Expression(source) => {
                self.histogram_computed((source, count), bins, counts, outside, accumulate, scratch)
            }
        }
    }

    /// Body of [`Device::histogram_into`], compiled once for each set of types. Only OpenCL devices read a count.
    #[inline(never)]
    fn histogram_one<T: Element, C: Counter>(
        &self,
        (input, count): (Input<'_, T>, Option<Count<'_>>),
        bins: &Bins<T>,
        counts: Output<'_, C>,
        outside: Output<'_, u64>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        counts.expect_len(bins.len(), "histogram of counts")?;
        outside.expect_len(slots::OUTSIDE, "histogram of samples outside the bins")?;
        match self.backend() {
            Backend::Cpu => cpu::histogram(input.host()?, bins, counts.host()?, outside.host()?, accumulate)?,
            Backend::OpenCl(device) => {
                let (input, host) =
                    if count.is_some() { (input.cl(device)?, None) } else { input.any().arriving(device)? };
                let input = (Arriving::new(&input, host), count);
                gpu::histogram(device, input, None, bins, counts, outside, accumulate, scratch)?;
            }
        }
        Ok(())
    }

    /// Body of [`Device::histogram_into`] for computed samples, compiled once for each set of types. Only OpenCL
    /// devices read a count.
    #[inline(never)]
    fn histogram_computed<T: Element, C: Counter>(
        &self,
        (source, count): (&dyn Expression<T>, Option<Count<'_>>),
        bins: &Bins<T>,
        counts: Output<'_, C>,
        outside: Output<'_, u64>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = source.finite_len()?;
        counts.expect_len(bins.len(), "histogram of counts")?;
        outside.expect_len(slots::OUTSIDE, "histogram of samples outside the bins")?;
        match self.backend() {
            Backend::Cpu => {
                let (counts, outside) = (counts.host()?, outside.host()?);
                source.read(&mut |samples| {
                    let slots = |start: usize, out: &mut [u32]| {
                        let mut block = [T::ZERO; cpu::BLOCK];
                        let block = &mut block[..out.len()];
                        samples.block(start, block);
                        bins.slots(block, out);
                    };
                    cpu::count(n, &slots, counts, outside, accumulate)
                })
            }
            Backend::OpenCl(device) => {
                let (load, caps) = (Load::of(source, device)?, device.capabilities()?);
                if let Some((memory, from, prelude)) = load.mapped(&caps)? {
                    let (mapped, input) = (Mapped { from, prelude: prelude.to_owned() }, memory.part(0, n));
                    let input = ((&input).into(), count);
                    gpu::histogram(device, input, Some(&mapped), bins, counts, outside, accumulate, scratch)
                } else if let Some(some) = count {
                    let samples = Erased::Expression(source).held_counted(self, some)?;
                    self.histogram_one((samples.input(), count), bins, counts, outside, accumulate, scratch)
                } else {
                    let samples = written_load(self, source, &load, n)?;
                    self.histogram_one(((&samples).into(), None), bins, counts, outside, accumulate, scratch)
                }
            }
        }
    }
}
