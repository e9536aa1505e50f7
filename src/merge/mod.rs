//! Merges of two sorted ranges, also [with values](Source::with): [`Device::merge`]. Submodules sort by any
//! order ([`sort`]), combine sets ([`set`]) and search sorted ranges ([`search`]).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element, and a binary search per tile of a few thousand elements |
//! | order | the order of [`sort`](crate::sort): for floats, -0 equals 0, and all NaN are equal and larger than infinity. Or a custom order: [`Compare`]. Among equal elements, those of the first range come first |
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

use crate::{
    Buffer, Device, Error, Input, Output, Result, Scratch, Source,
    op::Compare,
    runtime::Backend,
    source::{Held, PairOutput, With},
};

/// Returns an error if values are zero-sized, or if the numbers of keys and values differ.
fn check_values(keys: usize, values: usize, size: usize, what: &str) -> Result<()> {
    if size == 0 {
        return Err(Error::unsupported("values must have at least 1 byte"));
    }
    if keys == values {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} {keys} keys needs as many values, got {values}")))
}

/// The form of a merge of `T` by `order`, with values of `value_bytes` bytes.
#[doc(hidden)]
pub fn form<T: Pod>(order: &impl Compare<T>, value_bytes: usize) -> Result<gpu::Form> {
    // Checks the element size; the returned function is not used.
    let _known = order.function()?;
    Ok(gpu::Form { order: order.source()?, size: size_of::<T>(), value_bytes })
}

/// Keys and values of a sorted range.
type Range<'a, K, V> = (Input<'a, K>, Input<'a, V>);
/// A [`Range`], or memory of its own.
type HeldRange<'a, K, V> = (Held<'a, K>, Held<'a, V>);

/// A sorted range that [`Device::merge`] merges with another: a [`Source`], also [with values](Source::with).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Order, Source, merge::Mergeable};
///
/// fn keys<M: Mergeable<Key = u8, Merged = oclprim::Buffer<u8>>>(a: M, b: M) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.merge(a, b, Order::ascending())?.to_vec()
/// }
/// assert_eq!(keys(&[1u8, 4], &[2u8, 3])?, [1, 2, 3, 4]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range that can be merged",
    label = "expected a source, or one with values: `keys.with(&values)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for `x.take(&count)`, read the count, which waits, and take that number: the call does not read it on the device"
)]
pub trait Mergeable: Sized {
    /// The type of a key.
    type Key: Pod + Send + Sync;
    /// The type of a value; `()` without values.
    type Value: Pod + Send + Sync;
    /// A buffer of keys, also with values.
    type Merged;
    /// The outputs of keys, also with values.
    type Out<'o>;

    /// The keys and the values in memory.
    #[doc(hidden)]
    fn held<'a>(&'a self, device: &Device) -> Result<HeldRange<'a, Self::Key, Self::Value>>;

    #[doc(hidden)]
    fn merged(device: &Device, n: usize, merge: impl FnOnce(Self::Out<'_>) -> Result<()>) -> Result<Self::Merged>;

    #[doc(hidden)]
    fn merge_into<C: Compare<Self::Key>>(
        device: &Device,
        ranges: [Range<'_, Self::Key, Self::Value>; 2],
        order: &C,
        output: Self::Out<'_>,
    ) -> Result<()>;
}

impl<S: Source<Item: Pod>> Mergeable for S {
    type Key = S::Item;
    type Value = ();
    type Merged = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn held<'a>(&'a self, device: &Device) -> Result<HeldRange<'a, S::Item, ()>> {
        Ok((Source::held(self, device)?, Held::There(Input::Host(&[]))))
    }

    fn merged(
        device: &Device,
        n: usize,
        merge: impl FnOnce(Output<'_, S::Item>) -> Result<()>,
    ) -> Result<Self::Merged> {
        let mut output = device.uninit(n)?;
        merge(Output::from(&mut output))?;
        Ok(output)
    }

    fn merge_into<C: Compare<S::Item>>(
        device: &Device,
        [a, b]: [Range<'_, S::Item, ()>; 2],
        order: &C,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        device.merge_one(a.0, b.0, output, order, &mut Scratch::new())
    }
}

impl<S: Source<Item: Pod>, V: Source<Item: Pod>> Mergeable for With<S, V> {
    type Key = S::Item;
    type Value = V::Item;
    type Merged = (Buffer<S::Item>, Buffer<V::Item>);
    type Out<'o> = PairOutput<'o, S::Item, V::Item>;

    fn held<'a>(&'a self, device: &Device) -> Result<HeldRange<'a, S::Item, V::Item>> {
        Ok((self.keys.held(device)?, self.values.held(device)?))
    }

    fn merged(device: &Device, n: usize, merge: impl FnOnce(Self::Out<'_>) -> Result<()>) -> Result<Self::Merged> {
        let (mut keys, mut values) = (device.uninit(n)?, device.uninit(n)?);
        merge((&mut keys, &mut values).into())?;
        Ok((keys, values))
    }

    fn merge_into<C: Compare<S::Item>>(
        device: &Device,
        [a, b]: [Range<'_, S::Item, V::Item>; 2],
        order: &C,
        to: Self::Out<'_>,
    ) -> Result<()> {
        device.merge_pairs(a, b, (to.keys, to.values), order, &mut Scratch::new())
    }
}

/// # Merges
///
/// These methods merge two sorted ranges, also with values. Module: [`merge`](crate::merge).
impl Device {
    /// Merge of two sorted ranges: all elements of `a` and `b`, sorted. For keys [with values](Source::with), returns
    /// the sorted keys, and the values in the order of their keys.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device;
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the source of a custom order does not compile;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if elements have more than [64
    /// bytes](crate::op::Less::MAX_BYTES), if values are zero-sized, or if the device lacks fp64 and a custom order is for
    /// `f64`; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of keys and values differ.
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let device = Device::best()?;
    /// let (a, b) = (device.upload(&[1u32, 4, 6])?, device.upload(&[2u32, 3, 4, 9])?);
    /// assert_eq!(device.merge(&a, &b, Order::ascending())?.to_vec()?, [1, 2, 3, 4, 4, 6, 9]);
    /// let (old, new) = ([*b"Ida", *b"Bo "], [*b"Lu ", *b"Ann"]);
    /// let (ids, names) = device.merge([1u32, 5].with(&old), [1u32, 3].with(&new), Order::ascending())?;
    /// assert_eq!(ids.to_vec()?, [1, 1, 3, 5]);
    /// assert_eq!(names.to_vec()?, [*b"Ida", *b"Lu ", *b"Ann", *b"Bo "]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge<A: Mergeable, B: Mergeable<Key = A::Key, Value = A::Value>, C: Compare<A::Key>>(
        &self,
        a: A,
        b: B,
        order: C,
    ) -> Result<A::Merged> {
        let (a, b) = (a.held(self)?, b.held(self)?);
        let ranges = [(a.0.input(), a.1.input()), (b.0.input(), b.1.input())];
        let n = ranges[0].0.len() + ranges[1].0.len();
        A::merged(self, n, |output| A::merge_into(self, ranges, &order, output))
    }

    /// [`Device::merge`] into a slice, buffer or view of `a.len() + b.len()` elements. For keys with values, the output
    /// is a pair of these.
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an output has the
    /// wrong length, or overlaps another argument in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut out = device.zeroed(4)?;
    /// device.merge_into(&[2.5f32, -1.0], &[3.0, 0.5], Order::descending(), &mut out)?;
    /// assert_eq!(out.to_vec()?, [3.0, 2.5, 0.5, -1.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn merge_into<'o, A: Mergeable, B: Mergeable<Key = A::Key, Value = A::Value>, C: Compare<A::Key>>(
        &self,
        a: A,
        b: B,
        order: C,
        output: impl Into<A::Out<'o>>,
    ) -> Result<()> {
        let (a, b) = (a.held(self)?, b.held(self)?);
        let ranges = [(a.0.input(), a.1.input()), (b.0.input(), b.1.input())];
        A::merge_into(self, ranges, &order, output.into())
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
                cpu::merge::<T, ()>((a.host()?, &[]), (b.host()?, &[]), (to, &mut []), &less)?;
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                gpu::merge(device, &form, [a.any(), b.any()], output.any(), scratch)?;
            }
        }
        Ok(())
    }

    /// [`Device::merge`] of keys with values, compiled once per pair of types and order.
    #[inline(never)]
    fn merge_pairs<K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
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
