//! Histograms of the channels of interleaved pixels.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::{Accumulate, Bins, Counter, Histogram, Outside, Samples, SamplesInto, slots::OUTSIDE};
use crate::{
    Device, Element, Error, Input, Output, Result, Scratch, Source, memory, runtime::Backend, source::Channels,
};

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
        return Err(Error::invalid(format!("{n} samples are not a whole number of pixels of {channels} channels")));
    }
    Ok(n / channels)
}

/// The number of bins in all channels together.
fn total<T: Element>(bins: &[Bins<T>]) -> usize {
    bins.iter().map(Bins::len).sum()
}

impl<S: Source<Item: Element>> Samples for Channels<S> {
    type Bins = [Bins<S::Item>];
    type Found = Vec<Histogram>;

    fn histogram(self, device: &Device, bins: &[Bins<S::Item>]) -> Result<Vec<Histogram>> {
        let mut counts = memory::zeroed::<u64>(total(bins))?;
        let mut outside = memory::zeroed(OUTSIDE * bins.len())?;
        let outputs = (Output::from(&mut counts), Output::from(&mut outside));
        self.histogram_into(device, bins, outputs, Accumulate::Overwrite)?;
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
}

impl<S: Source<Item: Element>, C: Counter> SamplesInto<C> for Channels<S> {
    type Counts<'o> = Output<'o, C>;
    type Outside = u64;

    fn histogram_into(
        self,
        device: &Device,
        bins: &[Bins<S::Item>],
        outputs: (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let samples = self.source.held(device)?;
        device.histogram_channels(samples.input(), self.channels, bins, outputs, accumulate, &mut Scratch::new())
    }
}

impl Device {
    /// A histogram of channels, compiled once for each set of types.
    #[inline(never)]
    fn histogram_channels<T: Element, C: Counter>(
        &self,
        input: Input<'_, T>,
        channels: usize,
        bins: &[Bins<T>],
        (counts, outside): (Output<'_, C>, Output<'_, u64>),
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
