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
    counted::Count,
    op::Compare,
    runtime::Backend,
    source::{Held, PairOutput, Sequence, With},
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

/// Keys and values of a sorted range, and the count in memory that is the number of both, if a device reads one.
#[doc(hidden)]
pub type Range<'a, K, V> = (Input<'a, K>, Input<'a, V>, Option<Count<'a>>);
/// A [`Range`], or memory of its own.
#[doc(hidden)]
pub type HeldRange<'a, K, V> = (Held<'a, K>, Held<'a, V>, Option<Count<'a>>);

fn range<'a, K: Pod, V: Pod>((keys, values, count): &'a HeldRange<'_, K, V>) -> Range<'a, K, V> {
    (keys.input(), values.input(), *count)
}

/// A sorted range that [`Device::merge`] merges with another: a [`Source`], or its first elements [by a
/// count](Source::take), also [with values](Source::with).
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
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
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

    /// The number of keys of the whole range, an upper bound of the count.
    #[doc(hidden)]
    fn capacity(&self) -> Result<usize>;

    /// The number of keys. With a count on an OpenCL device, this waits for it.
    #[doc(hidden)]
    fn length_on(&self, device: &Device) -> Result<usize>;

    /// The keys and the values in memory.
    #[doc(hidden)]
    fn held<'a>(&'a self, device: &Device) -> Result<HeldRange<'a, Self::Key, Self::Value>>;

    /// Calls `merge` with an output of `most` elements, and returns the first `n`.
    #[doc(hidden)]
    fn merged(
        device: &Device,
        most: usize,
        n: usize,
        merge: impl FnOnce(Self::Out<'_>) -> Result<()>,
    ) -> Result<Self::Merged>;

    #[doc(hidden)]
    fn merge_into<C: Compare<Self::Key>>(
        device: &Device,
        ranges: [Range<'_, Self::Key, Self::Value>; 2],
        most: usize,
        order: &C,
        output: Self::Out<'_>,
    ) -> Result<()>;
}

impl<S: Sequence<Item: Pod>> Mergeable for S {
    type Key = S::Item;
    type Value = ();
    type Merged = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn capacity(&self) -> Result<usize> {
        Sequence::most(self)
    }

    fn length_on(&self, device: &Device) -> Result<usize> {
        Sequence::len_on(self, device)
    }

    fn held<'a>(&'a self, device: &Device) -> Result<HeldRange<'a, S::Item, ()>> {
        let (keys, count) = self.held_on(device)?;
        Ok((keys, Held::There(Input::Host(&[])), count))
    }

    fn merged(
        device: &Device,
        most: usize,
        n: usize,
        merge: impl FnOnce(Output<'_, S::Item>) -> Result<()>,
    ) -> Result<Self::Merged> {
        let mut output = device.uninit(most)?;
        merge(Output::from(&mut output))?;
        output.truncate(n);
        Ok(output)
    }

    fn merge_into<C: Compare<S::Item>>(
        device: &Device,
        ranges: [Range<'_, S::Item, ()>; 2],
        most: usize,
        order: &C,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        output.expect_len(most, "a merge")?;
        device.merge_one(ranges, output, order, &mut Scratch::new())
    }
}

impl<S: Sequence<Item: Pod>, V: Source<Item: Pod>> Mergeable for With<S, V> {
    type Key = S::Item;
    type Value = V::Item;
    type Merged = (Buffer<S::Item>, Buffer<V::Item>);
    type Out<'o> = PairOutput<'o, S::Item, V::Item>;

    fn capacity(&self) -> Result<usize> {
        Sequence::most(&self.keys)
    }

    fn length_on(&self, device: &Device) -> Result<usize> {
        Sequence::len_on(&self.keys, device)
    }

    fn held<'a>(&'a self, device: &Device) -> Result<HeldRange<'a, S::Item, V::Item>> {
        let (keys, count) = self.keys.held_on(device)?;
        Ok((keys, self.keys.values_on(&self.values, device)?, count))
    }

    fn merged(
        device: &Device,
        most: usize,
        n: usize,
        merge: impl FnOnce(Self::Out<'_>) -> Result<()>,
    ) -> Result<Self::Merged> {
        let (mut keys, mut values) = (device.uninit(most)?, device.uninit(most)?);
        merge((&mut keys, &mut values).into())?;
        keys.truncate(n);
        values.truncate(n);
        Ok((keys, values))
    }

    fn merge_into<C: Compare<S::Item>>(
        device: &Device,
        ranges: [Range<'_, S::Item, V::Item>; 2],
        most: usize,
        order: &C,
        to: Self::Out<'_>,
    ) -> Result<()> {
        to.keys.expect_len(most, "a merge of keys")?;
        to.values.expect_len(most, "a merge of values")?;
        device.merge_pairs(ranges, (to.keys, to.values), order, &mut Scratch::new())
    }
}

/// # Merges
///
/// These methods merge two sorted ranges, also with values. Module: [`merge`](crate::merge).
impl Device {
    /// Merge of two sorted ranges: all elements of `a` and `b`, sorted. For keys [with values](Source::with), returns
    /// the sorted keys, and the values in the order of their keys. The length of each range may be a [count on the
    /// device](Source::take). The call then waits for the count.
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
        let n = a.length_on(self)?.saturating_add(b.length_on(self)?);
        let most = a.capacity()?.saturating_add(b.capacity()?);
        let (a, b) = (a.held(self)?, b.held(self)?);
        A::merged(self, most, n, |output| A::merge_into(self, [range(&a), range(&b)], most, &order, output))
    }

    /// [`Device::merge`] into a slice, buffer or view of `a.len() + b.len()` elements. For keys with values, the output
    /// is a pair of these.
    ///
    /// If a range has the first elements [by a count](Source::take), an output still has the length of both whole
    /// sources. Its elements after the merged ones do not change.
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
        let most = a.capacity()?.saturating_add(b.capacity()?);
        let (a, b) = (a.held(self)?, b.held(self)?);
        A::merge_into(self, [range(&a), range(&b)], most, &order, output.into())
    }

    /// Body of [`Device::merge_into`], compiled once for each type and order. The output has room for both ranges.
    #[inline(never)]
    fn merge_one<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        [a, b]: [Range<'_, T, ()>; 2],
        output: Output<'_, T>,
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let output = output.part(0, a.0.len() + b.0.len());
        match self.backend() {
            Backend::Cpu => {
                let (less, to) = (order.function()?, output.host()?);
                cpu::merge::<T, ()>((a.0.host()?, &[]), (b.0.host()?, &[]), (to, &mut []), &less)?;
            }
            Backend::OpenCl(device) => {
                let inputs: &[_] = &[a.0.any(), b.0.any()];
                gpu::merge(device, &form(order, 0)?, (inputs, [a.2, b.2]), vec![output.any()], scratch)?;
            }
        }
        Ok(())
    }

    /// [`Device::merge`] of keys with values, compiled once per pair of types and order.
    #[inline(never)]
    fn merge_pairs<K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        [a, b]: [Range<'_, K, V>; 2],
        (keys, values): (Output<'_, K>, Output<'_, V>),
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for range in [&a, &b] {
            check_values(range.0.len(), range.1.len(), size_of::<V>(), "merging")?;
        }
        let n = a.0.len() + b.0.len();
        let (keys, values) = (keys.part(0, n), values.part(0, n));
        match self.backend() {
            Backend::Cpu => {
                let (a, b) = ((a.0.host()?, a.1.host()?), (b.0.host()?, b.1.host()?));
                cpu::merge(a, b, (keys.host()?, values.host()?), &order.function()?)?;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let inputs: &[_] = &[a.0.any(), b.0.any(), a.1.any(), b.1.any()];
                let outputs = vec![keys.any(), values.any()];
                gpu::merge(device, &form(order, size_of::<V>())?, (inputs, [a.2, b.2]), outputs, scratch)
            }
        }
    }
}
