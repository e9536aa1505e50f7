//! The mean and the variance of each segment: [`Device::moments`], [`Device::mean`] and [`Device::variance`] of
//! [`x.segments(&offsets)`](Source::segments).
//!
//! | property | |
//! |---|---|
//! | work | one read of the elements, and two of the offsets |
//! | determinism | same bits everywhere, if the device keeps subnormals: the order depends only on the length of the segment |
//! | scratch | if the input has more than 4,096 elements, up to 640 bytes for each 4,096 of them |
//! | limits | any n and any number of segments that fit the device |
//!
//! The record of a segment has the bits of the record of a line of the same elements. So
//! [`reduce::axis::moments`](crate::reduce::axis::moments) has the order of float operations. Types, error bounds and
//! special values are those of [`statistics`](crate::reduce::statistics). The record of an empty segment has the count
//! 0; its mean and its variance are NaN.
//!
//! A segment of many elements is divided into parts of equal length, which work-groups share. Each part but the first
//! begins in a tile of the input, and at most one such part begins in a tile. So tiles number the parts, and a
//! work-group finds its part by a binary search of the offsets. Therefore any mix of lengths is balanced, and the host
//! does not wait.
//!
//! The correctly rounded mean of float segments is [`Device::reduce`] with [`Mean`](crate::op::Mean). It has the
//! element type, whereas [`Device::mean`] returns an `f64`.

#[doc(hidden)]
pub(crate) mod gpu;

use crate::{
    Buffer, Device, Element, Input, Output, Result, Source,
    reduce::axis::moments::{self, MeasurableGroups, MomentsRecord},
    runtime::Backend,
    segments::{Offset, Offsets, segments},
    source::Segments,
};

impl<S: Source<Item: Element>, C: Source<Item: Offset>> MeasurableGroups for Segments<S, C> {
    fn moments(self, device: &Device) -> Result<Buffer<MomentsRecord<S::Item>>> {
        let (elements, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        let (elements, offsets) = (elements.input(), offsets.input());
        device.check_segments(offsets, elements.len())?;
        let mut out = device.uninit(segments(offsets.len())?)?;
        device.moments_of_segments(elements, offsets, (&mut out).into())?;
        Ok(out)
    }

    fn moments_into(self, device: &Device, output: Output<'_, MomentsRecord<S::Item>>) -> Result<()> {
        let (elements, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        device.moments_of_segments(elements.input(), offsets.input(), output)
    }
}

impl Device {
    /// The records of segments, compiled once for each set of types.
    #[inline(never)]
    fn moments_of_segments<T: Element, C: Offset>(
        &self,
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        output: Output<'_, MomentsRecord<T>>,
    ) -> Result<()> {
        output.expect_len(segments(offsets.len())?, "moments of segments")?;
        match self.backend() {
            Backend::Cpu => {
                let records = bytemuck::cast_slice_mut(output.host()?);
                moments::cpu::segments(input.host()?, Offsets::of(offsets.host()?), records)
            }
            Backend::OpenCl(device) => {
                let (input, offsets, output) = (input.cl(device)?, offsets.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input, &offsets], &[&output])?;
                gpu::moments(device, &moments::gpu::Form::of::<T>(), &input, (&offsets, C::TYPE), &output)?;
                output.finish(device)
            }
        }
    }
}
