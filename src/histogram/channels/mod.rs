//! Histograms of the channels of interleaved pixels.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::{Accumulate, Bins, Counter, Histogram, Outside, slots::OUTSIDE};
use crate::{Device, Element, Error, Input, Output, Result, Scratch, Source, memory, runtime::Backend};

/// The maximum number of channels per pixel.
const MAX_CHANNELS: usize = 4;

/// The number of pixels. Checks that the last pixel is complete and that at least one channel has bins.
fn pixels<T: Element>(n: usize, channels: usize, bins: &[Bins<T>]) -> Result<usize> {
    if channels == 0 || channels > MAX_CHANNELS {
        return Err(Error::invalid(format!("pixels have 1 to {MAX_CHANNELS} channels, not {channels}")));
    }
    if bins.is_empty() || bins.len() > channels {
        return Err(Error::invalid(format!(
            "bins were given for {} channels, but a pixel has {channels}: give bins for 1 to {channels} channels",
            bins.len()
        )));
    }
    if !n.is_multiple_of(channels) {
        return Err(Error::invalid(format!("{n} samples are no whole number of pixels of {channels} channels")));
    }
    Ok(n / channels)
}

/// The number of bins in all channels together.
fn total<T: Element>(bins: &[Bins<T>]) -> usize {
    bins.iter().map(Bins::len).sum()
}

/// # Histograms of interleaved channels
///
/// These methods return a histogram per channel of interleaved pixels. Module: [`histogram`](crate::histogram).
impl Device {
    /// A histogram per channel of interleaved pixels: sample `c` of pixel `i` is `input[i * channels + c]`, and its
    /// bins are `bins[c]`.
    ///
    /// On an OpenCL device, neighbouring channels with bins of one kind share a pass over the input. The kinds are
    /// [`ids`](Bins::ids) and [`even`](Bins::even); each channel with [given edges](Bins::edges) takes its own pass.
    /// The CPU takes a pass per channel.
    ///
    /// If there are fewer bins than channels, the last channels are not counted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `channels` is not 1 to 4, or if the last pixel is
    /// incomplete. The same error if `bins` is empty or has more entries than there are channels. Otherwise same as
    /// [`Device::histogram`].
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let rgba = [255u8, 0, 10, 255, 200, 1, 20, 255];
    /// let found = Device::best()?.histogram_channels(&rgba, 4, &vec![Bins::ids(256)?; 3])?;
    /// assert_eq!((found[0].counts[200], found[1].counts[0], found[2].counts[20]), (1, 1, 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_channels<T: Element>(
        &self,
        input: impl Source<Item = T>,
        channels: usize,
        bins: &[Bins<T>],
    ) -> Result<Vec<Histogram>> {
        let mut counts = memory::zeroed::<u64>(total(bins))?;
        let mut outside = memory::zeroed(OUTSIDE * bins.len())?;
        let replace = Accumulate::Overwrite;
        self.histogram_channels_into(input, channels, bins, &mut counts, &mut outside, replace)?;
        let mut rest = &counts[..];
        let found = bins.iter().zip(outside.chunks(OUTSIDE)).map(|(bins, outside)| {
            let (counts, others) = rest.split_at(bins.len());
            rest = others;
            Ok(Histogram {
                counts: memory::copied(counts)?,
                outside: Outside { below: outside[0], above: outside[1], nan: outside[2] },
            })
        });
        found.collect()
    }

    /// [`Device::histogram_channels`] into counters that can stay on the device.
    ///
    /// `counts` has the bins of the first channel, then those of the next. For each channel, `outside` has three
    /// counters: samples below the bins, samples above, and NaN. Waits for the result only if an output is a host
    /// slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::histogram_channels`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an
    /// output has the wrong length.
    ///
    /// ```
    /// use oclprim::{Accumulate, Bins, Device};
    ///
    /// let device = Device::best()?;
    /// let bins = [Bins::even(0.0f32, 1.0, 2)?, Bins::even(-1.0, 1.0, 4)?];
    /// let mut counts = device.zeroed::<u32>(2 + 4)?;
    /// let mut outside = device.zeroed(2 * 3)?;
    /// let points = [0.25, -0.75, 0.75, 2.0];
    /// device.histogram_channels_into(
    ///     &points, 2, &bins, &mut counts, &mut outside, Accumulate::Overwrite,
    /// )?;
    /// assert_eq!(counts.to_vec()?, [1, 1, 1, 0, 0, 0]);
    /// assert_eq!(outside.to_vec()?, [0, 0, 0, 0, 1, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn histogram_channels_into<'b, 'c, T: Element, C: Counter>(
        &self,
        input: impl Source<Item = T>,
        channels: usize,
        bins: &[Bins<T>],
        counts: impl Into<Output<'b, C>>,
        outside: impl Into<Output<'c, u64>>,
        accumulate: Accumulate,
    ) -> Result<()> {
        self.histogram_channels_one(
            input.held(self)?.input(),
            channels,
            bins,
            counts.into(),
            outside.into(),
            accumulate,
            &mut Scratch::new(),
        )
    }

    /// Body of [`Device::histogram_channels_into`], compiled once for each set of types.
    #[allow(clippy::too_many_arguments, reason = "as `histogram_into`, and the channels")]
    #[inline(never)]
    fn histogram_channels_one<T: Element, C: Counter>(
        &self,
        input: Input<'_, T>,
        channels: usize,
        bins: &[Bins<T>],
        counts: Output<'_, C>,
        outside: Output<'_, u64>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let pixels = pixels(input.len(), channels, bins)?;
        counts.expect_len(total(bins), "histogram of counts")?;
        outside.expect_len(OUTSIDE * bins.len(), "histogram of samples outside the bins")?;
        match self.backend() {
            Backend::Cpu => {
                cpu::channels(input.host()?, pixels, channels, bins, counts.host()?, outside.host()?, accumulate)?;
            }
            Backend::OpenCl(device) => {
                let keep = accumulate == Accumulate::Add;
                let maps: Vec<_> = bins.iter().map(|bins| (bins.map(), bins.len())).collect();
                let (types, outputs) = ((T::TYPE, C::TYPE), [counts.any(), outside.any()]);
                gpu::channels(device, types, channels, &maps, input.any(), outputs, keep, scratch)?;
            }
        }
        Ok(())
    }
}
