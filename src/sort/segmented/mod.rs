//! Segmented sorts: [`Device::sort`] and [`Device::argsort`] of [`keys.segments(&offsets)`](Source::segments), also
//! [with values](Segments::with), sort each segment separately. All are stable.
//!
//! | property | |
//! |---|---|
//! | work | for short segments, one read and one write of each key and value, and log(length) comparisons per key in local memory. For long segments as [`sort`](crate::sort) |
//! | keys | as for `sort`, ascending or descending, by all bits or by [some](Order::bits) |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | as for `sort`, and about one byte more per key |
//! | limits | any n and any number of segments that fit the device |
//!
//! Work-groups share the keys, not the segments, so any mix of lengths is balanced. A window is a few thousand keys. A
//! work-group sorts all segments that begin in its window, by merges in local memory. These merges never cross the end
//! of a segment (after Baxter's segmented sort of 2013).
//!
//! The device lists the segments that do not end within their work-group's tile, which is about a quarter longer than
//! the window. One work-group then sorts each listed segment that fits a tile. One radix sort processes all longer
//! segments. Each of its tiles holds keys of one segment. The host does not wait.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::gpu::Values;
use super::{Argsortable, Key, Order, Sortable, as_many, expect_indices};
use crate::keys::Keys;
use crate::{
    Buffer, Device, Error, Input, Offset, Output, Result, Scratch, Source,
    runtime::Backend,
    segments::{Offsets, segments},
    source::{PairOutput, Segments, With, finite},
};

impl<S: Source<Item: Key>, O: Source<Item: Offset>> Segments<S, O> {
    /// Calls `sort` with the keys and the offsets in memory. Each source is evaluated once. If `checked`, the offsets
    /// are checked first.
    fn held<R>(
        &self,
        device: &Device,
        checked: bool,
        sort: impl FnOnce(Input<'_, S::Item>, Input<'_, O::Item>) -> Result<R>,
    ) -> Result<R> {
        let offsets = self.offsets.held(device)?;
        if checked {
            device.check_segments(offsets.input(), finite(&self.source)?)?;
        }
        sort(self.source.held(device)?.input(), offsets.input())
    }
}

impl<S: Source<Item: Key>, O: Source<Item: Offset>> Sortable<Order> for Segments<S, O> {
    type Sorted = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn sort(self, device: &Device, order: &Order) -> Result<Buffer<S::Item>> {
        self.held(device, true, |keys, offsets| {
            let mut output = device.uninit(keys.len())?;
            device.sort_segments_one(keys, offsets, Output::from(&mut output), order, &mut Scratch::new())?;
            Ok(output)
        })
    }

    fn sort_into(self, device: &Device, order: &Order, output: Output<'_, S::Item>) -> Result<()> {
        self.held(device, false, |keys, offsets| {
            device.sort_segments_one(keys, offsets, output, order, &mut Scratch::new())
        })
    }
}

impl<S: Source<Item: Key>, O: Source<Item: Offset>, V: Source<Item: Pod>> Sortable<Order> for With<Segments<S, O>, V> {
    type Sorted = (Buffer<S::Item>, Buffer<V::Item>);
    type Out<'o> = PairOutput<'o, S::Item, V::Item>;

    fn sort(self, device: &Device, order: &Order) -> Result<Self::Sorted> {
        let values = self.values.held(device)?;
        let values = values.input();
        self.keys.held(device, true, |keys, offsets| {
            let (mut keys_out, mut values_out) = (device.uninit(keys.len())?, device.uninit(values.len())?);
            let outputs = (Output::from(&mut keys_out), Output::from(&mut values_out));
            device.sort_segments_pairs_one((keys, values), offsets, outputs, order, &mut Scratch::new())?;
            Ok((keys_out, values_out))
        })
    }

    fn sort_into(self, device: &Device, order: &Order, to: Self::Out<'_>) -> Result<()> {
        let values = self.values.held(device)?;
        self.keys.held(device, false, |keys, offsets| {
            let outputs = (to.keys, to.values);
            device.sort_segments_pairs_one((keys, values.input()), offsets, outputs, order, &mut Scratch::new())
        })
    }
}

impl<S: Source<Item: Key>, O: Source<Item: Offset>> Argsortable<Order> for Segments<S, O> {
    fn argsort<P: Offset>(self, device: &Device, order: &Order) -> Result<Buffer<P>> {
        self.held(device, true, |keys, offsets| {
            let mut output = device.uninit(keys.len())?;
            device.argsort_segments_one(keys, offsets, Output::from(&mut output), order, &mut Scratch::new())?;
            Ok(output)
        })
    }

    fn argsort_into<P: Offset>(self, device: &Device, order: &Order, output: Output<'_, P>) -> Result<()> {
        self.held(device, false, |keys, offsets| {
            device.argsort_segments_one(keys, offsets, output, order, &mut Scratch::new())
        })
    }
}

/// Bodies of sorts of segments; each is compiled once for each set of types.
impl Device {
    #[inline(never)]
    fn sort_segments_one<T: Key, C: Offset>(
        &self,
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        output: Output<'_, T>,
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        segments(offsets.len())?;
        output.expect_len(input.len(), "a sort of segments")?;
        let keys = Keys::new::<T>(order)?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
                cpu::keys(&keys, input, Offsets::of(offsets.host()?), output)
            }
            Backend::OpenCl(device) => {
                let (input, offsets, output) = (input.cl(device)?, offsets.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input, &offsets], &[&output])?;
                gpu::run(device, &keys, &input, (&offsets, C::TYPE), Some(&output), None, scratch)?;
                output.finish(device)
            }
        }
    }

    #[inline(never)]
    fn sort_segments_pairs_one<K: Key, V: Pod + Send + Sync, C: Offset>(
        &self,
        (input, values): (Input<'_, K>, Input<'_, V>),
        offsets: Input<'_, C>,
        (output, values_out): (Output<'_, K>, Output<'_, V>),
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        segments(offsets.len())?;
        as_many(n, values.len())?;
        output.expect_len(n, "a sort of keys")?;
        values_out.expect_len(n, "a sort of values")?;
        if size_of::<V>() == 0 {
            return Err(Error::unsupported("values must have at least 1 byte"));
        }
        let keys = Keys::new::<K>(order)?;
        match self.backend() {
            Backend::Cpu => {
                let pair = (bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
                let values = (values.host()?, values_out.host()?);
                cpu::pairs(&keys, Offsets::of(offsets.host()?), pair, values)
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                let (values, values_out) = (values.cl(device)?, values_out.cl(device, false)?);
                let offsets = (&offsets.cl(device)?, C::TYPE);
                crate::runtime::apart(&[&input, &values, offsets.0], &[&output, &values_out])?;
                let size = size_of::<V>();
                self.with_values(device, size, n, (&values, &values_out), |with| {
                    gpu::run(device, &keys, &input, offsets, Some(&output), Some(with), scratch)
                })?;
                values_out.finish(device)?;
                output.finish(device)
            }
        }
    }

    #[inline(never)]
    fn argsort_segments_one<T: Key, C: Offset, I: Offset>(
        &self,
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        output: Output<'_, I>,
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        segments(offsets.len())?;
        output.expect_len(n, "an argsort of segments")?;
        let keys = Keys::new::<T>(order)?;
        expect_indices::<I>(n)?;
        match self.backend() {
            Backend::Cpu => {
                let input = bytemuck::cast_slice(input.host()?);
                cpu::places(&keys, input, Offsets::of(offsets.host()?), output.host()?)
            }
            Backend::OpenCl(device) => {
                let (input, offsets, output) = (input.cl(device)?, offsets.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input, &offsets], &[&output])?;
                let with = Values { bytes: size_of::<I>(), from: None, to: &output };
                gpu::run(device, &keys, &input, (&offsets, C::TYPE), None, Some(with), scratch)?;
                output.finish(device)
            }
        }
    }
}
