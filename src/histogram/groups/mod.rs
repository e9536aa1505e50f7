//! Histograms of groups: [`Device::histogram`] of [`x.segments(&offsets)`](Source::segments) and of
//! [`view.along(axes)`](crate::NdView::along) returns a histogram for each segment or line.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input, one count per sample, and one write per counter; if a row of counters does not fit local memory, up to 8 reads or atomics in global memory |
//! | determinism | same bits everywhere, as for [whole inputs](crate::histogram) |
//! | scratch | none. Lines that do not follow one another in memory are copied first, and so are expressions other than a map of memory |
//! | limits | 1 to 2^24 bins. Any number of groups whose counters fit the device |
//!
//! Work-groups get parts of equal cost, whatever the groups, as in merge-based sparse products (Merrill and Garland
//! 2016). A sample costs 1, and a group costs more for its row of counters. So one segment of all samples and many
//! segments of few samples are both balanced.
//!
//! A work-group counts in local memory: a long group with replicas, or as many short groups as fit. It writes the row of
//! a group that is in its part as a whole. Of the at most two other groups it adds the counts by atomics.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::{
    Accumulate, Bins, Counter, Samples, SamplesInto,
    cpu::BLOCK,
    form::{Form, Mapped},
    slots::OUTSIDE,
};
use crate::{
    Buffer, Device, Element, ElementType, Error, Input, Offset, Output, Result, Source,
    runtime::{AnyInput, Backend},
    segments::{Offsets, segments},
    source::{Along, Axes, Erased, Segments, Shaped, finite, load::Load, transform::written_load},
};

/// The histograms of groups.
///
/// ```
/// use oclprim::{Bins, Device, Source};
///
/// let found = Device::best()?.histogram([1u8, 1, 9, 0].segments(&[0u32, 3, 4]), &Bins::ids(2)?)?;
/// assert_eq!(found.counts.to_vec()?, [0, 2, 1, 0]);
/// assert_eq!(found.outside.to_vec()?, [0, 1, 0, 0, 0, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Histograms {
    /// The number of samples in each bin of the first group, then of the next: `counts[group * bins + bin]`.
    pub counts: Buffer<u64>,
    /// For each group three numbers: samples below the first bin, samples above the last bin, and NaN.
    pub outside: Buffer<u64>,
}

/// Groups, on the backend of a call.
enum Groups<'a> {
    OnHost(Offsets<'a>),
    OnDevice { offsets: AnyInput<'a>, element: ElementType, count: usize },
    Lines { count: usize, len: usize },
}

impl<'a> Groups<'a> {
    fn of<O: Offset>(device: &Device, offsets: Input<'a, O>) -> Result<Self> {
        let count = segments(offsets.len())?;
        Ok(match device.backend() {
            Backend::Cpu => Self::OnHost(Offsets::of(offsets.host()?)),
            Backend::OpenCl(_) => Self::OnDevice { offsets: offsets.any(), element: O::TYPE, count },
        })
    }

    fn count(&self) -> usize {
        match self {
            Self::OnHost(offsets) => offsets.len() - 1,
            Self::OnDevice { count, .. } | Self::Lines { count, .. } => *count,
        }
    }

    /// The starts of the groups, on the CPU backend.
    fn starts(&self) -> cpu::Starts<'a> {
        match *self {
            Self::OnHost(offsets) => cpu::Starts::Offsets(offsets),
            Self::Lines { count, len } => cpu::Starts::Lines { count, len },
            Self::OnDevice { .. } => unreachable!("the offsets are on the backend of the call"),
        }
    }

    /// The numbers of counters for bins and for samples outside of them.
    fn counters(&self, bins: usize) -> Result<[usize; 2]> {
        let count = self.count();
        let all = |each: usize| {
            count.checked_mul(each).ok_or_else(|| {
                Error::invalid(format!("the counters of {count} groups with {bins} bins overflow the address space"))
            })
        };
        Ok([all(bins)?, all(OUTSIDE)?])
    }
}

impl<S: Source<Item: Element>, O: Source<Item: Offset>> Samples for Segments<S, O> {
    type Bins = Bins<S::Item>;
    type Found = Histograms;

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Histograms> {
        let offsets = self.offsets.held(device)?;
        device.check_segments(offsets.input(), finite(&self.source)?)?;
        device.histograms(self.source.erased(), Groups::of(device, offsets.input())?, bins)
    }
}

impl<S: Source<Item: Element>, O: Source<Item: Offset>, C: Counter> SamplesInto<C> for Segments<S, O> {
    type Outside = u64;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        outputs: (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let offsets = self.offsets.held(device)?;
        let groups = Groups::of(device, offsets.input())?;
        device.histograms_into(self.source.erased(), groups, bins, outputs, accumulate)
    }
}

impl<V: Shaped, A: Axes> Samples for Along<V, A> {
    type Bins = Bins<V::To>;
    type Found = Histograms;

    fn histogram(self, device: &Device, bins: &Bins<V::To>) -> Result<Histograms> {
        let (samples, count, len) = self.in_memory(device)?;
        device.histograms(samples.input().cast().erased(), Groups::Lines { count, len }, bins)
    }
}

impl<V: Shaped, A: Axes, C: Counter> SamplesInto<C> for Along<V, A> {
    type Outside = u64;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<V::To>,
        outputs: (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let (samples, count, len) = self.in_memory(device)?;
        let groups = Groups::Lines { count, len };
        device.histograms_into(samples.input().cast().erased(), groups, bins, outputs, accumulate)
    }
}

impl Device {
    /// Histograms of groups, compiled once for each type.
    #[inline(never)]
    fn histograms<T: Element>(&self, input: Erased<'_, T>, groups: Groups<'_>, bins: &Bins<T>) -> Result<Histograms> {
        let [counts, outside] = groups.counters(bins.len())?;
        let (mut counts, mut outside) = (self.uninit::<u64>(counts)?, self.uninit(outside)?);
        let outputs = (Output::from(&mut counts), Output::from(&mut outside));
        self.histograms_into(input, groups, bins, outputs, Accumulate::Overwrite)?;
        Ok(Histograms { counts, outside })
    }

    /// Histograms of groups, compiled once for each set of types.
    #[inline(never)]
    fn histograms_into<T: Element, C: Counter>(
        &self,
        input: Erased<'_, T>,
        groups: Groups<'_>,
        bins: &Bins<T>,
        (counts, outside): (Output<'_, C>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let (n, [bin_counters, others]) = (input.len()?, groups.counters(bins.len())?);
        counts.expect_len(bin_counters, "histogram of counts of groups")?;
        outside.expect_len(others, "histogram of samples of groups outside the bins")?;
        let Backend::OpenCl(device) = self.backend() else {
            let (starts, counts, outside) = (groups.starts(), counts.host()?, outside.host()?);
            let mut count = |slots: super::cpu::Slots<'_>| {
                let outputs = (&mut *counts, &mut *outside);
                cpu::histograms(starts, n, slots, bins.len(), outputs, accumulate)
            };
            return match input {
                Erased::Memory(input) => {
                    let input = input.host()?;
                    count(&|start: usize, out: &mut [u32]| bins.slots(&input[start..start + out.len()], out))
                }
                Erased::Expression(source) => source.read(&mut |samples| {
                    count(&|start: usize, out: &mut [u32]| {
                        let mut block = [T::ZERO; BLOCK];
                        let block = &mut block[..out.len()];
                        samples.block(start, block);
                        bins.slots(block, out);
                    })
                }),
            };
        };
        let (types, keep) = ((Form::of(bins), C::TYPE), accumulate == Accumulate::Add);
        let (map, outputs) = (bins.map(), [counts.any(), outside.any()]);
        match input {
            Erased::Memory(input) => {
                gpu::histograms(device, types, None, map, &input.cl(device)?, groups, outputs, keep)
            }
            Erased::Expression(source) => {
                let (load, caps) = (Load::of(source, device)?, device.capabilities()?);
                if let Some((memory, from, prelude)) = load.mapped(&caps)? {
                    let (mapped, input) = (Mapped { from, prelude: prelude.to_owned() }, memory.part(0, n));
                    gpu::histograms(device, types, Some(&mapped), map, &input, groups, outputs, keep)
                } else {
                    let samples = written_load(self, source, &load, n)?;
                    let samples = Input::from(&samples).cl(device)?;
                    gpu::histograms(device, types, None, map, &samples, groups, outputs, keep)
                }
            }
        }
    }
}
