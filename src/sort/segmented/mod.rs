//! Segmented sorts: each segment of an array is sorted alone. There are sorts of keys ([`Device::sort_segments`]), of
//! keys with values ([`Device::sort_segments_pairs`]), and of indices by key ([`Device::argsort_segments`]). All are
//! stable.
//!
//! | property | |
//! |---|---|
//! | work | for short segments, one read and one write of each key and value, and log(length) comparisons per key in local memory; for long ones as [`sort`](crate::sort) |
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
//! the window. One work-group then sorts each listed segment that fits a tile. One radix sort takes all longer
//! segments, in tiles of their own. The host does not wait.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::gpu::Values;
use super::{Key, NARROW, Order, as_many};
use crate::keys::Keys;
use crate::{
    Buffer, Device, Error, Input, Offset, Output, Result, Scratch,
    runtime::Backend,
    segments::{Offsets, segments},
};

/// # Segmented sorts
///
/// These methods sort each segment separately. Module: [`sort::segmented`](crate::sort::segmented).
impl Device {
    /// Segmented sort: a copy of the keys in which each segment `input[offsets[s]..offsets[s + 1]]` is sorted, and
    /// keeps its range.
    ///
    /// Keys before the first offset, and from the last offset on, belong to no segment and keep their indices.
    ///
    /// The call checks the offsets, and waits for this check; [`Device::sort_segments_into`] does not check.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an offset is
    /// beyond the next one or beyond the input, or if there are no offsets.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3.0f32, 1.0, 2.0, -1.0, 5.0, 4.0])?;
    /// let sorted = device.sort_segments(&x, &[0u32, 2, 2, 5], Order::descending())?;
    /// assert_eq!(sorted.to_vec()?, [3.0, 1.0, 5.0, 2.0, -1.0, 4.0]);
    ///
    /// let error = device.sort_segments(&x, &[0u32, 7], Order::ascending()).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 1 is 7, beyond the 6 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_segments<'a, 'b, T: Key, C: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        order: Order,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.into(), offsets.into());
        self.check_segments(offsets, input.len())?;
        let mut output = self.uninit(input.len())?;
        self.sort_segments_one(input, offsets, Output::from(&mut output), &order, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::sort_segments`] into a slice, buffer or view of the same length.
    ///
    /// Waits for the result only if `output` is a host slice. The call does not check the offsets: see
    /// [`Device::check_segments`]. An offset beyond the input counts as its end. If an offset is beyond the next one,
    /// the result is unspecified. In all cases, nothing is read or written out of bounds.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort_into`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are no
    /// offsets.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut rows = [0u16; 5];
    /// device.sort_segments_into(&[2u16, 1, 9, 8, 7], &[0u64, 2, 5], &mut rows, Order::ascending())?;
    /// assert_eq!(rows, [1, 2, 7, 8, 9]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_segments_into<'a, 'b, 'c, T: Key, C: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        output: impl Into<Output<'c, T>>,
        order: Order,
    ) -> Result<()> {
        self.sort_segments_one(input.into(), offsets.into(), output.into(), &order, &mut Scratch::new())
    }

    /// Body of [`Device::sort_segments_into`], compiled once per pair of types.
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

    /// [`Device::sort_segments`] with values: copies of keys and values, with the values in the order of their keys.
    /// Values are plain data of any size, as in [`Device::sort_pairs`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort_segments`] and [`Device::sort_pairs`].
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (keys, values) = device.sort_segments_pairs(
    ///     &[2u8, 1, 1, 3], &[*b"two", *b"one", *b"uno", *b"tre"], &[0u32, 2, 4], Order::ascending(),
    /// )?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![1, 2, 1, 3], vec![*b"one", *b"two", *b"uno", *b"tre"]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_segments_pairs<'a, 'b, 'c, K: Key, V: Pod + Send + Sync, C: Offset>(
        &self,
        keys: impl Into<Input<'a, K>>,
        values: impl Into<Input<'b, V>>,
        offsets: impl Into<Input<'c, C>>,
        order: Order,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (keys, values, offsets) = (keys.into(), values.into(), offsets.into());
        self.check_segments(offsets, keys.len())?;
        let (mut keys_out, mut values_out) = (self.uninit(keys.len())?, self.uninit(values.len())?);
        let outputs = (Output::from(&mut keys_out), Output::from(&mut values_out));
        self.sort_segments_pairs_one((keys, values), offsets, outputs, &order, &mut Scratch::new())?;
        Ok((keys_out, values_out))
    }

    /// [`Device::sort_segments_pairs`] into slices, buffers or views. Like [`Device::sort_segments_into`], the call
    /// does not check the offsets, and waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort_segments_into`] and [`Device::sort_pairs_into`].
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (mut keys, mut values) = (device.zeroed(3)?, device.zeroed(3)?);
    /// device.sort_segments_pairs_into(
    ///     &[5i32, -1, 7], &[0.5f64, 1.5, 2.5], &[0u32, 1, 3], &mut keys, &mut values, Order::descending(),
    /// )?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![5, 7, -1], vec![0.5, 2.5, 1.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_segments_pairs_into<'a, 'b, 'c, 'd, 'e, K: Key, V: Pod + Send + Sync, C: Offset>(
        &self,
        keys: impl Into<Input<'a, K>>,
        values: impl Into<Input<'b, V>>,
        offsets: impl Into<Input<'c, C>>,
        keys_out: impl Into<Output<'d, K>>,
        values_out: impl Into<Output<'e, V>>,
        order: Order,
    ) -> Result<()> {
        let (inputs, outputs) = ((keys.into(), values.into()), (keys_out.into(), values_out.into()));
        self.sort_segments_pairs_one(inputs, offsets.into(), outputs, &order, &mut Scratch::new())
    }

    /// Body of [`Device::sort_segments_pairs_into`], compiled once per set of types.
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

    /// Indices in the whole input that sort the keys of each segment: `output[offsets[s]]` is the index of the key of
    /// segment `s` that comes first in `order`.
    ///
    /// A key in no segment has its own index. Indices are `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort_segments`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are
    /// more than 2^32 keys and indices are `u32`.
    ///
    /// ```
    /// use oclprim::{Buffer, Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[30i16, -10, 20, -10, 50])?;
    /// let places: Buffer<u32> = device.argsort_segments(&x, &[0u32, 2, 5], Order::ascending())?;
    /// assert_eq!(places.to_vec()?, [1, 0, 3, 2, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort_segments<'a, 'b, T: Key, C: Offset, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        order: Order,
    ) -> Result<Buffer<I>> {
        let (input, offsets) = (input.into(), offsets.into());
        self.check_segments(offsets, input.len())?;
        let mut output = self.uninit(input.len())?;
        self.argsort_segments_one(input, offsets, Output::from(&mut output), &order, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::argsort_segments`] into a slice, buffer or view of the same length. Like
    /// [`Device::sort_segments_into`], the call does not check the offsets, and waits for the result only if an output
    /// is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort_segments_into`] and [`Device::argsort_into`].
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let (mut places, order) = ([0u64; 3], Order::ascending());
    /// let device = Device::best()?;
    /// device.argsort_segments_into(&[2.0f64, 3.0, 1.0], &[1u32, 3], &mut places, order)?;
    /// assert_eq!(places, [0, 2, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort_segments_into<'a, 'b, 'c, T: Key, C: Offset, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        output: impl Into<Output<'c, I>>,
        order: Order,
    ) -> Result<()> {
        self.argsort_segments_one(input.into(), offsets.into(), output.into(), &order, &mut Scratch::new())
    }

    /// Body of [`Device::argsort_segments_into`], compiled once per set of types.
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
        if size_of::<I>() == 4 && n > NARROW {
            return Err(Error::invalid(format!("the indices of {n} keys do not fit u32: at most 2^32 keys do")));
        }
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
