//! Searches in sorted ranges ([`Device::search`]), and tests for sorted ranges ([`Device::first_unsorted`]).
//!
//! | property | |
//! |---|---|
//! | work | a search makes log2 n comparisons per needle; a test reads each element once |
//! | elements, order | as for [`merge`](crate::merge). Indices are `u32` or `u64` |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | none |
//! | limits | any n that fits the device; with `u32` indices, n below 2^32 |
//!
//! On a GPU, a work-group copies some elements of the range, evenly apart, to local memory. The first steps of all
//! searches read only these. Each work-item searches for several needles at once. Sorted needles are faster, because
//! neighbours read the same cache lines.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::form;
use crate::{Buffer, Device, Error, Input, Offset, Output, Result, op::Compare, runtime::Backend};

/// The lower or the upper bound among equal elements; see [`Device::search`].
///
/// ```
/// use oclprim::{Bound, Device, Order};
///
/// let [first, last] = [Bound::Lower, Bound::Upper].map(|bound| {
///     Device::best()?.search::<u8, u32, _>(&[3, 5, 5], &[5], bound, Order::ascending())?.to_vec()
/// });
/// assert_eq!((first?, last?), (vec![1], vec![3]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The first index at which an element can be inserted.
    Lower,
    /// The last index at which an element can be inserted.
    Upper,
}

/// The result for a sorted range.
const NONE: u64 = u64::MAX;

/// # Searches in sorted ranges
///
/// These methods return insertion indices in a sorted range, and test whether a range is sorted. Module:
/// [`merge::search`](crate::merge::search).
impl Device {
    /// Bound of each needle in a sorted range: an index at which the needle can be inserted. Indices are `u32` or `u64`.
    ///
    /// | bound | `out[i]` |
    /// |---|---|
    /// | [`Bound::Lower`] | the number of elements that come before `needles[i]`: the first such index |
    /// | [`Bound::Upper`] | the number of elements that do not come after `needles[i]`: the last such index |
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if indices are `u32`
    /// and there are 2^32 elements or more.
    ///
    /// ```
    /// use oclprim::{Bound, Buffer, Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[10i32, 20, 20, 30])?;
    /// let lower: Buffer<u32> = device.search(&x, &[20, 5, 25, 31], Bound::Lower, Order::ascending())?;
    /// let upper: Buffer<u32> = device.search(&x, &[20, 5, 25, 31], Bound::Upper, Order::ascending())?;
    /// assert_eq!((lower.to_vec()?, upper.to_vec()?), (vec![1, 0, 3, 4], vec![3, 0, 3, 4]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn search<'a, 'b, T: Pod + Send + Sync, I: Offset, C: Compare<T>>(
        &self,
        range: impl Into<Input<'a, T>>,
        needles: impl Into<Input<'b, T>>,
        bound: Bound,
        order: C,
    ) -> Result<Buffer<I>> {
        self.bounds(bound, range.into(), needles.into(), &order)
    }

    /// [`Device::search`] into a slice, buffer or view with one element per needle. Waits for the result only if `output`
    /// is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::search`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths
    /// differ, or `output` overlaps another argument in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Bound, Device, op::Less};
    ///
    /// let by_tens = Less::new("by tens", |a: &u32, b: &u32| a / 10 < b / 10, "a / 10 < b / 10");
    /// let mut indices = [0u32; 2];
    /// Device::best()?.search_into(&[5, 14, 12, 20], &[10, 29], Bound::Upper, &by_tens, &mut indices)?;
    /// assert_eq!(indices, [3, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn search_into<'a, 'b, 'c, T: Pod + Send + Sync, I: Offset, C: Compare<T>>(
        &self,
        range: impl Into<Input<'a, T>>,
        needles: impl Into<Input<'b, T>>,
        bound: Bound,
        order: C,
        output: impl Into<Output<'c, I>>,
    ) -> Result<()> {
        self.bounds_into(bound, range.into(), needles.into(), output.into(), &order)
    }

    fn bounds<T: Pod + Send + Sync, I: Offset, C: Compare<T>>(
        &self,
        bound: Bound,
        range: Input<'_, T>,
        needles: Input<'_, T>,
        order: &C,
    ) -> Result<Buffer<I>> {
        let mut output = self.uninit(needles.len())?;
        self.bounds_into(bound, range, needles, Output::from(&mut output), order)?;
        Ok(output)
    }

    /// Body of both searches, compiled once per pair of types and order.
    #[inline(never)]
    fn bounds_into<T: Pod + Send + Sync, I: Offset, C: Compare<T>>(
        &self,
        bound: Bound,
        range: Input<'_, T>,
        needles: Input<'_, T>,
        output: Output<'_, I>,
        order: &C,
    ) -> Result<()> {
        let n = range.len();
        output.expect_len(needles.len(), "a search")?;
        if size_of::<I>() == 4 && n > u32::MAX as usize {
            return Err(Error::invalid(format!("indices among {n} elements do not fit u32: the limit is 2^32 - 1")));
        }
        match self.backend() {
            Backend::Cpu => {
                cpu::bounds(bound, range.host()?, needles.host()?, output.host()?, &order.ranks()?);
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                gpu::bounds(device, bound, size_of::<I>(), &form, [range.any(), needles.any()], output.any())
            }
        }
    }

    /// Index of the first element that comes before its predecessor in the order; `None` if the input is sorted. Waits
    /// for the result.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`].
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.first_unsorted(&[1u32, 3, 3, 2, 1], Order::ascending())?, Some(3));
    /// assert_eq!(device.first_unsorted(&[1u32, 3, 3], Order::ascending())?, None);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn first_unsorted<'a, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        order: C,
    ) -> Result<Option<usize>> {
        let mut found = [0];
        self.first_unsorted_one(input.into(), Output::from(&mut found), &order)?;
        Ok(if found[0] == NONE { None } else { Some(found[0] as usize) })
    }

    /// [`Device::first_unsorted`] into the single element of `output`, which can stay on the device. The element
    /// becomes [`u64::MAX`] if the input is sorted. Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` does not
    /// have one element, or overlaps `input` in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut found = device.zeroed::<u64>(1)?;
    /// device.first_unsorted_into(&[2u16, 1], Order::ascending(), &mut found)?;
    /// assert_eq!(found.to_vec()?, [1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn first_unsorted_into<'a, 'b, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        order: C,
        output: impl Into<Output<'b, u64>>,
    ) -> Result<()> {
        self.first_unsorted_one(input.into(), output.into(), &order)
    }

    /// Body of [`Device::first_unsorted_into`], compiled once per type and order.
    #[inline(never)]
    fn first_unsorted_one<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        input: Input<'_, T>,
        output: Output<'_, u64>,
        order: &C,
    ) -> Result<()> {
        output.expect_len(1, "the first element out of order")?;
        match self.backend() {
            Backend::Cpu => {
                let found = cpu::first_unsorted(input.host()?, &order.function()?)?;
                output.host()?[0] = found.map_or(NONE, |found| found as u64);
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                gpu::first_unsorted(device, &form, input.any(), output.any())
            }
        }
    }
}
