//! Merges of two sorted ranges ([`Device::merge`]), also with values ([`Device::merge_pairs`]). Submodules sort by any
//! order ([`sort`]), combine sets ([`set`]) and search sorted ranges ([`search`]).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element, and a binary search per tile of a few thousand elements |
//! | order | the order of [`sort`](crate::sort): for floats, -0 equals 0, and all NaN are equal and the largest. Or a custom order: [`Compare`]. Among equal elements, those of the first range come first |
//! | elements | integers and floats; with a custom order, any plain type of 1 to 64 bytes. Values: any plain type |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | 4 or 8 bytes per tile |
//! | limits | any n that fits the device |
//!
//! This is merge path (Green, McColl and Bader 2012). The result is cut into equal tiles. Binary searches find the
//! parts of both ranges that make up a tile. In local memory, each work-item finds its own part of the tile and merges
//! some elements in registers. So every work-item has the same load for any ranges. On the CPU, each thread merges
//! parts of the result.
//!
//! If a range is not sorted, the result is unspecified. The call still ends and writes all of its outputs.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod search;
pub mod set;
pub mod sort;

use bytemuck::Pod;

use crate::{Buffer, Device, Error, Input, Output, Result, Scratch, op::Compare, runtime::Backend};

/// Returns an error if values are zero-sized, or if the numbers of keys and values differ.
fn check_values(keys: usize, values: usize, size: usize, what: &str) -> Result<()> {
    if size == 0 {
        return Err(Error::unsupported("values must have at least 1 byte"));
    }
    if keys == values {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} {keys} keys with {values} values")))
}

/// The form of a merge of `T` by `order`, with values of `value_bytes` bytes.
#[doc(hidden)]
pub fn form<T: Pod>(order: &impl Compare<T>, value_bytes: usize) -> Result<gpu::Form> {
    // Checks the element size; the returned function is not used.
    let _known = order.function()?;
    Ok(gpu::Form { order: order.source()?, size: size_of::<T>(), value_bytes })
}

/// # Merges
///
/// These methods merge two sorted ranges, also with values. Module: [`merge`](crate::merge).
impl Device {
    /// Merge of two sorted ranges: all elements of `a` and `b`, sorted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device;
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the source of a custom order does not compile;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if elements have more than [64
    /// bytes](crate::op::Less::MAX_BYTES), or the device lacks fp64 and a custom order is for `f64`.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (a, b) = (device.upload(&[1u32, 4, 6])?, device.upload(&[2u32, 3, 4, 9])?);
    /// assert_eq!(device.merge(&a, &b, Order::ascending())?.to_vec()?, [1, 2, 3, 4, 4, 6, 9]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge<'a, 'b, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        a: impl Into<Input<'a, T>>,
        b: impl Into<Input<'b, T>>,
        order: C,
    ) -> Result<Buffer<T>> {
        let (a, b) = (a.into(), b.into());
        let mut output = self.uninit(a.len() + b.len())?;
        self.merge_one(a, b, Output::from(&mut output), &order, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::merge`] into a slice, buffer or view of `a.len() + b.len()` elements. Waits for the result only if
    /// `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` has the
    /// wrong length, or overlaps a range in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut out = device.zeroed(4)?;
    /// device.merge_into(&[2.5f32, -1.0], &[3.0, 0.5], &mut out, Order::descending())?;
    /// assert_eq!(out.to_vec()?, [3.0, 2.5, 0.5, -1.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_into<'a, 'b, 'c, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        a: impl Into<Input<'a, T>>,
        b: impl Into<Input<'b, T>>,
        output: impl Into<Output<'c, T>>,
        order: C,
    ) -> Result<()> {
        self.merge_one(a.into(), b.into(), output.into(), &order, &mut Scratch::new())
    }

    /// Body of [`Device::merge_into`], compiled once per type and order.
    #[inline(never)]
    fn merge_one<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        a: Input<'_, T>,
        b: Input<'_, T>,
        output: Output<'_, T>,
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(a.len() + b.len(), "a merge")?;
        match self.backend() {
            Backend::Cpu => {
                let (less, to) = (order.function()?, output.host()?);
                let none = vec![(); to.len()];
                let (a, b) = (a.host()?, b.host()?);
                cpu::merge((a, &none[..a.len()]), (b, &none[..b.len()]), (to, &mut none.clone()), &less)?;
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                gpu::merge(device, &form, [a.any(), b.any()], output.any(), scratch)?;
            }
        }
        Ok(())
    }

    /// [`Device::merge`] of keys with values: the merged keys, and the values in the order of their keys.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the numbers of
    /// keys and values differ; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the values are zero-sized.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (old, new) = ((&[1u32, 5], &[*b"Ida", *b"Bo "]), (&[1u32, 3], &[*b"Lu ", *b"Ann"]));
    /// let (ids, names) = device.merge_pairs(old, new, Order::ascending())?;
    /// assert_eq!(ids.to_vec()?, [1, 1, 3, 5]);
    /// assert_eq!(names.to_vec()?, [*b"Ida", *b"Lu ", *b"Ann", *b"Bo "]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_pairs<'a, 'b, 'c, 'd, K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        a: (impl Into<Input<'a, K>>, impl Into<Input<'b, V>>),
        b: (impl Into<Input<'c, K>>, impl Into<Input<'d, V>>),
        order: C,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (a, b) = ((a.0.into(), a.1.into()), (b.0.into(), b.1.into()));
        let n = a.0.len() + b.0.len();
        let (mut keys, mut values) = (self.uninit(n)?, self.uninit(n)?);
        let outputs = (Output::from(&mut keys), Output::from(&mut values));
        self.merge_pairs_one(a, b, outputs, &order, &mut Scratch::new())?;
        Ok((keys, values))
    }

    /// [`Device::merge_pairs`] into slices, buffers or views. Waits for the result only if one of them is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge_pairs`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if a length
    /// does not match, or two arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let (mut keys, mut values) = ([0i8; 3], [0u64; 3]);
    /// Device::best()?.merge_pairs_into(
    ///     (&[-4i8, 2], &[10u64, 11]), (&[2i8], &[12u64]), (&mut keys, &mut values), Order::ascending(),
    /// )?;
    /// assert_eq!((keys, values), ([-4, 2, 2], [10, 11, 12]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_pairs_into<'a, 'b, 'c, 'd, 'e, 'f, K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        a: (impl Into<Input<'a, K>>, impl Into<Input<'b, V>>),
        b: (impl Into<Input<'c, K>>, impl Into<Input<'d, V>>),
        outputs: (impl Into<Output<'e, K>>, impl Into<Output<'f, V>>),
        order: C,
    ) -> Result<()> {
        let (a, b) = ((a.0.into(), a.1.into()), (b.0.into(), b.1.into()));
        self.merge_pairs_one(a, b, (outputs.0.into(), outputs.1.into()), &order, &mut Scratch::new())
    }

    /// Body of [`Device::merge_pairs_into`], compiled once per pair of types and order.
    #[inline(never)]
    fn merge_pairs_one<K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        a: (Input<'_, K>, Input<'_, V>),
        b: (Input<'_, K>, Input<'_, V>),
        (keys, values): (Output<'_, K>, Output<'_, V>),
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = a.0.len() + b.0.len();
        for range in [&a, &b] {
            check_values(range.0.len(), range.1.len(), size_of::<V>(), "merging")?;
        }
        keys.expect_len(n, "a merge of keys")?;
        values.expect_len(n, "a merge of values")?;
        match self.backend() {
            Backend::Cpu => {
                let (a, b) = ((a.0.host()?, a.1.host()?), (b.0.host()?, b.1.host()?));
                cpu::merge(a, b, (keys.host()?, values.host()?), &order.function()?)?;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = form(order, size_of::<V>())?;
                let inputs = [a.0.any(), b.0.any(), a.1.any(), b.1.any()];
                gpu::merge_pairs(device, &form, inputs, [keys.any(), values.any()], scratch)
            }
        }
    }
}
