//! Histograms of groups: [`Device::histogram`] of [`x.segments(&offsets)`](Source::segments) and of
//! [`view.along(axes)`](crate::NdView::along) returns a histogram for each segment or line, also
//! [with weights](Segments::weighted).
//!
//! | property | |
//! |---|---|
//! | work | one read of the input, one count per sample, one write per counter. If a row of counters does not fit local memory: up to 8 reads, or atomics in global memory |
//! | determinism | same bits everywhere, as for [whole inputs](crate::histogram) |
//! | scratch | none without weights. Lines that do not follow one another in memory are copied first, and so are expressions other than a map of memory |
//! | limits | 1 to 2^24 bins. Any number of groups whose counters fit the device |
//!
//! Work-groups get parts of equal cost for groups of any lengths, as in merge-based products of sparse matrices and
//! vectors (Merrill and Garland 2016). A sample costs 1, and the row of counters of a group has a further cost. So one
//! segment of all samples and many segments of few samples are both balanced.
//!
//! A work-group counts in local memory: a long group with replicas, or as many short groups as fit. If a group lies
//! wholly in the part, the work-group writes the group's row. It adds the counts of the other groups, at most two, by
//! atomics.
//!
//! With weights, a first kernel writes the number of each sample's slot among the slots of all groups: 4 bytes per
//! sample. The weighted histogram of these numbers has the sums, with the accuracy of [`Source::weighted`] and the
//! scratch of [`histogram`](crate::histogram). If the slots exceed 2^31, several such histograms are made, each of whole
//! groups.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::{
    Accumulate, Bins, Counter, Samples, SamplesInto,
    cpu::BLOCK,
    form::{Form, Mapped},
    slots::OUTSIDE,
    weighted::{self, Weight},
};
use crate::{
    Buffer, Device, Element, ElementType, Error, Input, NdView, Offset, Output, Result, Source,
    runtime::{AnyInput, Backend},
    segments::{Offsets, segments},
    source::{Along, Axes, Erased, Segments, Shaped, Weighted, finite, load::Load, transform::written_load},
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

/// Sums of the weights of groups, in the layout of [`Histograms`].
///
/// ```
/// use oclprim::{Bins, Device, Source};
///
/// let samples = [1u8, 1, 9, 0].segments(&[0u32, 3, 4]);
/// let found = Device::best()?.histogram(samples.weighted(&[1i8, 2, 3, -4]), &Bins::ids(2)?)?;
/// assert_eq!(found.sums.to_vec()?, [0, 3, -4, 0]);
/// assert_eq!(found.outside.to_vec()?, [0, 3, 0, 0, 0, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct WeightedHistograms<S: Element> {
    /// The sum of weights in each bin of the first group, then of the next.
    pub sums: Buffer<S>,
    /// For each group three sums: weights of samples below the first bin, above the last bin, and NaN.
    pub outside: Buffer<S>,
}

/// Maximum slots of groups that the CPU sums at once, 16 bytes each.
const MOST_SLOTS: usize = 1 << 20;

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
    type Counts<'o> = Output<'o, C>;
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
        device.histograms(self.view.converted(samples.input()).erased(), Groups::Lines { count, len }, bins)
    }
}

impl<V: Shaped, A: Axes, C: Counter> SamplesInto<C> for Along<V, A> {
    type Counts<'o> = Output<'o, C>;
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
        device.histograms_into(self.view.converted(samples.input()).erased(), groups, bins, outputs, accumulate)
    }
}

impl<S, O, W> Samples for Weighted<Segments<S, O>, W>
where
    S: Source<Item: Element>,
    O: Source<Item: Offset>,
    W: Source<Item: Weight>,
{
    type Bins = Bins<S::Item>;
    type Found = WeightedHistograms<<W::Item as Weight>::Sum>;

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Self::Found> {
        let offsets = self.source.offsets.held(device)?;
        let (samples, weights) = (self.source.source.held(device)?, self.weights.held(device)?);
        device.check_segments(offsets.input(), samples.input().len())?;
        let groups = Groups::of(device, offsets.input())?;
        device.weighted_histograms((samples.input(), weights.input()), groups, bins)
    }
}

impl<S, O, W, C> SamplesInto<C> for Weighted<Segments<S, O>, W>
where
    S: Source<Item: Element>,
    O: Source<Item: Offset>,
    W: Source<Item: Weight<Sum = C>>,
    C: Element,
{
    type Counts<'o> = Output<'o, C>;
    type Outside = C;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        outputs: (Output<'_, C>, Output<'_, C>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let offsets = self.source.offsets.held(device)?;
        let (samples, weights) = (self.source.source.held(device)?, self.weights.held(device)?);
        let groups = Groups::of(device, offsets.input())?;
        device.weighted_histograms_into((samples.input(), weights.input()), groups, bins, outputs, accumulate)
    }
}

/// Calls `run` with the samples, the weights and the number and length of lines.
fn weighted_lines<V: Shaped, A: Axes, W: Element, R>(
    input: &Weighted<Along<V, A>, NdView<'_, W>>,
    device: &Device,
    run: impl FnOnce(Input<'_, V::To>, Input<'_, W>, Groups<'static>) -> Result<R>,
) -> Result<R> {
    let lines = &input.source;
    let [of, shape] = [lines.shape(), input.weights.shape()];
    if of != shape {
        return Err(Error::invalid(format!("weights of lines need the shape of the samples, {of:?}, got {shape:?}")));
    }
    let (samples, count, len) = lines.in_memory(device)?;
    let weights = Along { view: input.weights, axes: lines.axes };
    let (weights, ..) = weights.in_memory(device)?;
    let samples = lines.view.converted(samples.input());
    run(samples.held(device)?.input(), weights.input(), Groups::Lines { count, len })
}

impl<V: Shaped, A: Axes, W: Weight> Samples for Weighted<Along<V, A>, NdView<'_, W>> {
    type Bins = Bins<V::To>;
    type Found = WeightedHistograms<W::Sum>;

    fn histogram(self, device: &Device, bins: &Bins<V::To>) -> Result<Self::Found> {
        weighted_lines(&self, device, |samples, weights, groups| {
            device.weighted_histograms((samples, weights), groups, bins)
        })
    }
}

impl<V: Shaped, A: Axes, W: Weight<Sum = C>, C: Element> SamplesInto<C> for Weighted<Along<V, A>, NdView<'_, W>> {
    type Counts<'o> = Output<'o, C>;
    type Outside = C;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<V::To>,
        outputs: (Output<'_, C>, Output<'_, C>),
        accumulate: Accumulate,
    ) -> Result<()> {
        weighted_lines(&self, device, |samples, weights, groups| {
            device.weighted_histograms_into((samples, weights), groups, bins, outputs, accumulate)
        })
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

    /// Weighted histograms of groups, compiled once for each set of types.
    #[inline(never)]
    fn weighted_histograms<T: Element, W: Weight>(
        &self,
        inputs: (Input<'_, T>, Input<'_, W>),
        groups: Groups<'_>,
        bins: &Bins<T>,
    ) -> Result<WeightedHistograms<W::Sum>> {
        let [sums, outside] = groups.counters(bins.len())?;
        let (mut sums, mut outside) = (self.uninit::<W::Sum>(sums)?, self.uninit(outside)?);
        let outputs = (Output::from(&mut sums), Output::from(&mut outside));
        self.weighted_histograms_into(inputs, groups, bins, outputs, Accumulate::Overwrite)?;
        Ok(WeightedHistograms { sums, outside })
    }

    /// Weighted histograms of groups, compiled once for each set of types.
    #[inline(never)]
    fn weighted_histograms_into<T: Element, W: Weight>(
        &self,
        (input, weights): (Input<'_, T>, Input<'_, W>),
        groups: Groups<'_>,
        bins: &Bins<T>,
        (sums, outside): (Output<'_, W::Sum>, Output<'_, W::Sum>),
        accumulate: Accumulate,
    ) -> Result<()> {
        let (n, [bin_sums, others]) = (input.len(), groups.counters(bins.len())?);
        if n != weights.len() {
            let m = weights.len();
            return Err(Error::invalid(format!("weighted histograms of {n} samples need as many weights, got {m}")));
        }
        sums.expect_len(bin_sums, "weighted histogram of sums of groups")?;
        outside.expect_len(others, "weighted histogram of samples of groups outside the bins")?;
        match self.backend() {
            Backend::Cpu => {
                let (input, outputs) = (input.host()?, (sums.host()?, outside.host()?));
                let slots = |start: usize, out: &mut [u32]| bins.slots(&input[start..start + out.len()], out);
                let how = (accumulate, MOST_SLOTS);
                cpu::sums::<W>(groups.starts(), weights.host()?, &slots, bins.len(), outputs, how)
            }
            Backend::OpenCl(device) => {
                let form = weighted::gpu::Form { samples: Form::of(bins), weight: W::TYPE, sum: W::Sum::TYPE };
                let (input, weights) = (input.cl(device)?, weights.cl(device)?);
                let (outputs, keep) = ([sums.any(), outside.any()], accumulate == Accumulate::Add);
                gpu::sums(device, form, bins.map(), [&input, &weights], groups, outputs, keep)
            }
        }
    }
}
