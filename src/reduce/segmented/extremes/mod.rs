//! The smallest and the largest element of each segment, and their indices: [`Device::arg_min`], [`Device::arg_max`] and
//! [`Device::min_max`] of [`x.segments(&offsets)`](Source::segments).
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and of the offsets; one more read of an element and an offset for each result |
//! | order | as [`Device::arg_min`]: the lowest index on ties, where -0 equals +0; the first NaN, if any |
//! | index | counts from the start of the segment, as in CUB's `DeviceSegmentedReduce` |
//! | empty segment | the index is `u64::MAX`; the value is that of `Min` or `Max` of an empty segment |
//! | determinism | same bits everywhere |
//! | scratch | about 48 bytes for each tile, 80 for [`Device::min_max`]. A tile has 960 to 16,384 elements and offsets, fewer if the device has little local memory |
//! | limits | any n and any number of segments that fit the device |
//!
//! The offsets are merged with the indices of the elements (Merrill and Garland 2016). Work-groups get equal parts of this
//! merge, whether segments are long, short or empty. So the work depends only on the number of elements and of segments.
//! A tree over the tiles completes the segments that cross tile boundaries.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use crate::{
    Device, Element, Input, Offset, Output, Result, Scratch, Source,
    reduce::{End, Ends, Extremal, Extremes},
    runtime::Backend,
    segments::{Offsets, segments},
    source::{Segments, finite},
};

impl<S: Source<Item: Element>, C: Source<Item: Offset>> Extremal for Segments<S, C> {
    type One = Extremes<S::Item>;
    type Both = Extremes<S::Item>;

    fn one(self, device: &Device, end: End) -> Result<Extremes<S::Item>> {
        checked(&self, device, Ends::of(end))
    }

    fn one_into(self, device: &Device, end: End, values: Output<'_, S::Item>, indices: Output<'_, u64>) -> Result<()> {
        unchecked(&self, device, Ends::of(end), values, indices)
    }

    fn both(self, device: &Device) -> Result<Extremes<S::Item>> {
        checked(&self, device, Ends::Both)
    }

    fn both_into(self, device: &Device, values: Output<'_, S::Item>, indices: Output<'_, u64>) -> Result<()> {
        unchecked(&self, device, Ends::Both, values, indices)
    }
}

/// The extremes in new buffers. Checks the offsets.
fn checked<S: Source<Item: Element>, C: Source<Item: Offset>>(
    of: &Segments<S, C>,
    device: &Device,
    ends: Ends,
) -> Result<Extremes<S::Item>> {
    let offsets = of.offsets.held(device)?;
    device.check_segments(offsets.input(), finite(&of.source)?)?;
    device.segment_extremes(of.source.held(device)?.input(), offsets.input(), ends)
}

fn unchecked<S: Source<Item: Element>, C: Source<Item: Offset>>(
    of: &Segments<S, C>,
    device: &Device,
    ends: Ends,
    values: Output<'_, S::Item>,
    indices: Output<'_, u64>,
) -> Result<()> {
    let (input, offsets) = (of.source.held(device)?, of.offsets.held(device)?);
    device.segment_extremes_into(input.input(), offsets.input(), ends, values, indices, &mut Scratch::new())
}

impl Device {
    #[inline(never)]
    pub(crate) fn segment_extremes<T: Element, C: Offset>(
        &self,
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        ends: Ends,
    ) -> Result<Extremes<T>> {
        let results = ends.list().len() * segments(offsets.len())?;
        let (mut values, mut indices) = (self.uninit(results)?, self.uninit(results)?);
        let (to, places) = (Output::from(&mut values), Output::from(&mut indices));
        self.segment_extremes_into(input, offsets, ends, to, places, &mut Scratch::new())?;
        Ok(Extremes { values, indices })
    }

    #[inline(never)]
    fn segment_extremes_into<T: Element, C: Offset>(
        &self,
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        ends: Ends,
        values: Output<'_, T>,
        indices: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let segments = segments(offsets.len())?;
        let results = ends.list().len() * segments;
        let what = format!("{} of segments", ends.name());
        values.expect_len(results, &what)?;
        indices.expect_len(results, &what)?;
        match self.backend() {
            Backend::Cpu => {
                let offsets = Offsets::of(offsets.host()?);
                cpu::find(input.host()?, offsets, ends.list(), segments, values.host()?, indices.host()?)
            }
            Backend::OpenCl(device) => {
                let (form, inputs) = (gpu::Form::of::<T>(ends, C::TYPE), [input.any(), offsets.any()]);
                gpu::find(
                    device,
                    &form,
                    bytemuck::cast_slice(&empties::<T>(ends)),
                    inputs,
                    values.any(),
                    indices.any(),
                    scratch,
                )
            }
        }
    }
}

/// The value of an empty segment at each end.
pub(crate) fn empties<T: Element>(ends: Ends) -> Vec<T> {
    ends.list().iter().map(|&end| end.empty()).collect()
}
