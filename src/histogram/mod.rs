//! Histograms: how many samples fall into each bin.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one count a sample; with `r` ranges of bins `r` reads, see below |
//! | determinism | everywhere, of float samples where the device keeps subnormals: counts and sums of weights are bit-equal on every run, every device and the CPU |
//! | scratch | tables of 4-byte counters, at most 256 MiB, and two bytes a sample where samples are shared out, at most 1 GiB: [`Device::histogram_scratch`]; of weights up to 292 bytes a bin and more for several tables, at most 1 GiB |
//! | limits | 1 to 2^24 bins, any n that fits the device |
//!
//! Which bin a sample is in is defined by [`Bins`]. Samples outside are counted apart, and never written anywhere else.
//!
//! On an OpenCL device each work-group counts in a table of its own in local memory, with a replica for each lane where
//! they fit (Gómez-Luna et al. 2013), and a second kernel adds the tables up. More bins than local memory holds are
//! counted in a few ranges, each of which reads the input once. Beyond that samples are shared out by ranges first, as
//! numbers of 16 bits, in rounds that keep scratch below 1 GiB and a sixteenth of the device's memory, or counted with
//! atomics in global memory where they are few, or the driver has no sub-groups: PoCL, before it had them, gets loops of
//! that kind wrong.
//!
//! What a [function of the user's](Device::map_histogram) gives for each sample is counted in the same kernels, as the sample
//! is loaded.
//!
//! The search among given edges starts from a table over the range, so that evenly spaced edges take about one comparison a
//! sample. [Weights](Device::histogram_weighted) are added up as integers. Those of floats are exact: most are whole
//! multiples of one unit within a few words, and the others go to words for the whole range of the type, some for each bin.

#[doc(hidden)]
pub(crate) mod bins;
pub(crate) mod channels;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod edges;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;
pub(crate) mod mapped;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod partition;
pub(crate) mod weighted;

pub use bins::Bins;
pub use weighted::{Weight, WeightedHistogram};

use crate::{Device, Element, Input, Integer, Output, Result, Scratch, runtime::Backend};

/// The counters of [`Device::histogram_into`]: `u32` or `u64`. Both wrap.
///
/// A `u32` count is right below 2^32 samples a bin, and modulo 2^32 beyond.
///
/// ```
/// use oclprim::{Accumulate, Bins, Counter, Device, Scratch};
///
/// fn counts<C: Counter>(x: &[u8]) -> oclprim::Result<Vec<C>> {
///     let mut counts = vec![C::ZERO; 256];
///     let (bins, mut scratch) = (Bins::ids(256)?, Scratch::new());
///     Device::best()?.histogram_into(x, &bins, &mut counts, &mut [0; 3], Accumulate::Overwrite, &mut scratch)?;
///     Ok(counts)
/// }
///
/// assert_eq!((counts::<u32>(&[7, 7])?[7], counts::<u64>(&[7, 7])?[7]), (2, 2));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub trait Counter: Integer + From<u32> {}
impl Counter for u32 {}
impl Counter for u64 {}

/// What becomes of the counts that are there already.
///
/// ```
/// use oclprim::{Accumulate, Bins, Device, Scratch};
///
/// let (device, bins, mut outside) = (Device::best()?, Bins::ids(2)?, [0; 3]);
/// let mut counts = [10u32, 10];
/// for (accumulate, want) in [(Accumulate::Add, [11, 12]), (Accumulate::Overwrite, [1, 2])] {
///     device.histogram_into(&[0u8, 1, 1], &bins, &mut counts, &mut outside, accumulate, &mut Scratch::new())?;
///     assert_eq!(counts, want);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// They are replaced.
    #[default]
    Overwrite,
    /// The new counts are added to them.
    Add,
}

/// What lies outside the bins: counts of samples, or in a [`WeightedHistogram`] sums of their weights.
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
    /// Below the first bin.
    pub below: S,
    /// Above the last bin.
    pub above: S,
    /// NaN.
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
    /// Samples in each bin.
    pub counts: Vec<u64>,
    /// Samples in none.
    pub outside: Outside,
}

impl Device {
    /// Counts the samples in each bin, and those in none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the tables do not fit it.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let device = Device::best()?;
    /// let heights = device.upload(&[1.62f32, 1.75, 1.71, 1.98, f32::NAN])?;
    /// let found = device.histogram(&heights, &Bins::even(1.5, 2.0, 5)?)?;
    /// assert_eq!(found.counts, [0, 1, 2, 0, 1]);
    /// assert_eq!(found.outside.nan, 1);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram<'a, T: Element>(&self, input: impl Into<Input<'a, T>>, bins: &Bins<T>) -> Result<Histogram> {
        let mut counts = vec![0u64; bins.len()];
        let mut outside = [0; bins::OUTSIDE];
        self.histogram_into(input, bins, &mut counts, &mut outside, Accumulate::Overwrite, &mut Scratch::new())?;
        let [below, above, nan] = outside;
        Ok(Histogram { counts, outside: Outside { below, above, nan } })
    }

    /// [`Device::histogram`] into counters that can stay on the device.
    ///
    /// `counts` has a counter for each bin; `outside` the counts below, above and of NaN. Does not wait for the result,
    /// unless an output is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::histogram`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an output has another
    /// length.
    ///
    /// ```
    /// use oclprim::{Accumulate, Bins, Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let bins = Bins::ids(3)?;
    /// let mut counts = device.zeroed::<u32>(3)?;
    /// let mut outside = device.zeroed(3)?;
    /// let mut scratch = Scratch::new();
    /// for block in [[0i32, 1, 1], [2, -1, 1]] {
    ///     device.histogram_into(&block, &bins, &mut counts, &mut outside, Accumulate::Add, &mut scratch)?;
    /// }
    /// assert_eq!(counts.to_vec()?, [1, 3, 1]);
    /// assert_eq!(outside.to_vec()?, [1, 0, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_into<'a, 'b, 'c, T: Element, C: Counter>(
        &self,
        input: impl Into<Input<'a, T>>,
        bins: &Bins<T>,
        counts: impl Into<Output<'b, C>>,
        outside: impl Into<Output<'c, u64>>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.histogram_one(input.into(), bins, counts.into(), outside.into(), accumulate, scratch)
    }

    /// [`Device::histogram_into`], built once for each set of types.
    #[inline(never)]
    fn histogram_one<T: Element, C: Counter>(
        &self,
        input: Input<'_, T>,
        bins: &Bins<T>,
        counts: Output<'_, C>,
        outside: Output<'_, u64>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        counts.expect_len(bins.len(), "histogram of counts")?;
        outside.expect_len(bins::OUTSIDE, "histogram of what is outside")?;
        match self.backend() {
            Backend::Cpu => cpu::histogram(input.host()?, bins, counts.host()?, outside.host()?, accumulate),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                gpu::histogram(device, input.cl(device)?, None, bins, counts, outside, accumulate, scratch)?;
            }
        }
        Ok(())
    }

    /// The bytes of scratch that histograms of `n` samples with these bins use.
    ///
    /// # Errors
    ///
    /// As [`Device::histogram`].
    ///
    /// ```
    /// use oclprim::{Bins, Device, Scratch};
    ///
    /// let (device, bins) = (Device::best()?, Bins::<u8>::ids(256)?);
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.histogram_scratch(1 << 16, &bins)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_scratch<T: Element>(&self, n: usize, bins: &Bins<T>) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::scratch_bytes(device, n, bins),
        }
    }
}
