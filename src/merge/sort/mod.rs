//! Stable sorts by any order: of elements ([`Device::merge_sort`]), and of keys with values
//! ([`Device::merge_sort_pairs`]).
//!
//! | property | |
//! |---|---|
//! | work | n log n comparisons. The sort of tiles of a few thousand elements reads and writes each element once, and so does each pass, which merges pairs of sorted ranges |
//! | order | the order of [`sort`](crate::sort), or a custom order: [`Compare`]. Stable: equal elements keep their order |
//! | elements | integers and floats; with a custom order, any plain type of 1 to 64 bytes. Values: any plain type |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | n elements, n values, and 4 or 8 bytes per tile |
//! | limits | any n that fits the device |
//!
//! On a GPU, work-groups sort tiles in local memory. Each work-item sorts its own elements by odd-even transposition
//! (Knuth, volume 3, 5.3.4), and merges combine them. Then pairs of sorted ranges are merged as in
//! [`merge`](crate::merge). For elements in their natural order, the radix [`sort`](crate::sort) is faster.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::check_values;
use super::form;
use crate::{Buffer, Device, Input, Output, Result, Scratch, op::Compare, runtime::Backend};

/// # Sorts by any order
///
/// These methods sort by an [`Order`](crate::Order) or by a user's [`Less`](crate::op::Less), also over structs.
/// Module: [`merge::sort`](crate::merge::sort).
impl Device {
    /// Stable sort by any order: a sorted copy, in which equal elements keep their order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result and as much scratch do not fit the
    /// device; [`ErrorKind::Build`](crate::ErrorKind::Build) if the source of a custom order does not compile;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if elements have more than [64
    /// bytes](crate::op::Less::MAX_BYTES), or the device lacks fp64 and a custom order is for `f64`.
    ///
    /// ```
    /// use oclprim::{Device, op::Less};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[5i32, -3, 4, 3, -1])?;
    /// let by_size = Less::new("by size", |a: &i32, b: &i32| a.abs() < b.abs(), "abs(a) < abs(b)");
    /// assert_eq!(device.merge_sort(&x, &by_size)?.to_vec()?, [-1, -3, 3, 4, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_sort<'a, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        order: C,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.merge_sort_one(input, Output::from(&mut output), &order, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::merge_sort`] into a slice, buffer or view of the same length. Waits for the result only if `output`
    /// is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge_sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths
    /// differ, or if the arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut out = device.zeroed(3)?;
    /// device.merge_sort_into(&[5i32, -7, 3], &mut out, Order::ascending())?;
    /// assert_eq!(out.to_vec()?, [-7, 3, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_sort_into<'a, 'b, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        output: impl Into<Output<'b, T>>,
        order: C,
    ) -> Result<()> {
        self.merge_sort_one(input.into(), output.into(), &order, &mut Scratch::new())
    }

    /// Body of [`Device::merge_sort_into`], compiled once per type and order.
    #[inline(never)]
    fn merge_sort_one<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        input: Input<'_, T>,
        output: Output<'_, T>,
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(input.len(), "a merge sort")?;
        match self.backend() {
            Backend::Cpu => {
                let mut none = vec![(); input.len()];
                let (from, to, less) = ((input.host()?, &none.clone()[..]), output.host()?, order.function()?);
                cpu::sort(from, (to, &mut none), &less)
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                gpu::sort(device, &form, input.any(), output.any(), scratch)
            }
        }
    }

    /// [`Device::merge_sort`] of keys with values: the sorted keys, and the values in the order of their keys.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge_sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the numbers
    /// of keys and values differ; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the values are
    /// zero-sized.
    ///
    /// ```
    /// use oclprim::{Device, op::Less};
    ///
    /// let device = Device::best()?;
    /// let by_size = Less::new("by size", |a: &f32, b: &f32| a.abs() < b.abs(), "fabs(a) < fabs(b)");
    /// let (keys, places) = device.merge_sort_pairs(&[2.0f32, -1.0, 1.0], &[0u32, 1, 2], &by_size)?;
    /// assert_eq!((keys.to_vec()?, places.to_vec()?), (vec![-1.0, 1.0, 2.0], vec![1, 2, 0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_sort_pairs<'a, 'b, K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        keys: impl Into<Input<'a, K>>,
        values: impl Into<Input<'b, V>>,
        order: C,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (keys, values) = (keys.into(), values.into());
        let (mut keys_out, mut values_out) = (self.uninit(keys.len())?, self.uninit(values.len())?);
        let outputs = (Output::from(&mut keys_out), Output::from(&mut values_out));
        self.merge_sort_pairs_one((keys, values), outputs, &order, &mut Scratch::new())?;
        Ok((keys_out, values_out))
    }

    /// [`Device::merge_sort_pairs`] into slices, buffers or views. Waits for the result only if one of them is a host
    /// slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge_sort_pairs`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if a
    /// length does not match, or two arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let (mut keys, mut values) = ([0i64; 3], [0.0f32; 3]);
    /// Device::best()?.merge_sort_pairs_into(
    ///     &[5i64, -1, 5], &[0.5f32, 1.5, 2.5], &mut keys, &mut values, Order::ascending(),
    /// )?;
    /// assert_eq!((keys, values), ([-1, 5, 5], [1.5, 0.5, 2.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_sort_pairs_into<'a, 'b, 'c, 'd, K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        keys: impl Into<Input<'a, K>>,
        values: impl Into<Input<'b, V>>,
        keys_out: impl Into<Output<'c, K>>,
        values_out: impl Into<Output<'d, V>>,
        order: C,
    ) -> Result<()> {
        let (inputs, outputs) = ((keys.into(), values.into()), (keys_out.into(), values_out.into()));
        self.merge_sort_pairs_one(inputs, outputs, &order, &mut Scratch::new())
    }

    /// Body of [`Device::merge_sort_pairs_into`], compiled once per pair of types and order.
    #[inline(never)]
    fn merge_sort_pairs_one<K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        (keys, values): (Input<'_, K>, Input<'_, V>),
        (keys_out, values_out): (Output<'_, K>, Output<'_, V>),
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        check_values(keys.len(), values.len(), size_of::<V>(), "sorting")?;
        keys_out.expect_len(keys.len(), "a merge sort of keys")?;
        values_out.expect_len(keys.len(), "a merge sort of values")?;
        match self.backend() {
            Backend::Cpu => {
                let (from, to) = ((keys.host()?, values.host()?), (keys_out.host()?, values_out.host()?));
                cpu::sort(from, to, &order.function()?)
            }
            Backend::OpenCl(device) => {
                let form = form(order, size_of::<V>())?;
                let (inputs, outputs) = ([keys.any(), values.any()], [keys_out.any(), values_out.any()]);
                gpu::sort_pairs(device, &form, inputs, outputs, scratch)
            }
        }
    }
}
