//! Arg-min and arg-max: an extreme element and its index.

use super::{End, Ends, Extreme, cpu, statistics};
#[allow(unused_imports, reason = "for the documentation")]
use crate::Source;
use crate::{
    Buffer, Device, Element, Output, Result, Scratch,
    counted::Firsts,
    runtime::Backend,
    source::{Grouped, Sequence},
};

/// The extremes of groups: segments, runs of equal keys or lines.
///
/// The results have the order of the groups. Lines are in row-major order of the other axes.
///
/// ```
/// use oclprim::Device;
///
/// let device = Device::best()?;
/// let x = device.upload(&[3u8, 1, 2, 1, 5, 5])?;
/// let found = device.arg_max(x.nd(&[2, 3])?.along(1))?;
/// assert_eq!((found.values.to_vec()?, found.indices.to_vec()?), (vec![3, 5], vec![0, 1]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Extremes<T: Element> {
    /// The extremes.
    pub values: Buffer<T>,
    /// The index of each extreme in its group; the lowest one of equal elements.
    pub indices: Buffer<u64>,
}

/// An input of [`Device::arg_min`], [`Device::arg_max`] and [`Device::min_max`]: a [`Source`], its first elements [by a
/// count](Source::take), or groups of it ([`segments`](Source::segments), [`by_key`](Source::by_key),
/// [`along`](crate::NdView::along)).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, reduce::Extremal};
///
/// let x = [3u8, 1, 2];
/// fn least<I: Extremal>(input: I) -> oclprim::Result<I::One> {
///     Device::best()?.arg_min(input)
/// }
/// assert_eq!((least(&x)?.index, least(oclprim::NdView::from(&x).along(0))?.indices.to_vec()?), (1, vec![1]));
/// assert_eq!(least(x.segments(&[0u32, 1, 3]))?.indices.to_vec()?, [0, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no extremes",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Extremal: Grouped<Item: Element> {
    /// The result at one end: the [`Extreme`] of a source, or the [`Extremes`] of groups; by key, the keys and
    /// [`Extremes`].
    type One;
    /// The result at both ends: the [`MinMax`](super::statistics::MinMax) of a source, or the [`Extremes`] of groups;
    /// by key, the keys and [`Extremes`].
    type Both;

    #[doc(hidden)]
    fn one(self, device: &Device, end: End) -> Result<Self::One>;

    #[doc(hidden)]
    fn one_into(
        self,
        device: &Device,
        end: End,
        values: Self::Out<'_, Self::Item>,
        indices: Output<'_, u64>,
    ) -> Result<()>;

    #[doc(hidden)]
    fn both(self, device: &Device) -> Result<Self::Both>;

    #[doc(hidden)]
    fn both_into(self, device: &Device, values: Self::Out<'_, Self::Item>, indices: Output<'_, u64>) -> Result<()>;
}

impl<S: Sequence<Item: Element>> Extremal for S {
    type One = Extreme<S::Item>;
    type Both = statistics::MinMax<S::Item>;

    fn one(self, device: &Device, end: End) -> Result<Extreme<S::Item>> {
        let (held, count) = self.held_on(device)?;
        device.arg_reduce((held.input(), count), end)
    }

    fn one_into(self, device: &Device, end: End, value: Output<'_, S::Item>, index: Output<'_, u64>) -> Result<()> {
        let (held, count) = self.held_on(device)?;
        if S::BY_COUNT && held.input().is_empty() {
            return put(device, &[end.empty()], value, index, end.name());
        }
        device.arg_reduce_into((held.input(), count), end, value, index, &mut Scratch::new())
    }

    fn both(self, device: &Device) -> Result<statistics::MinMax<S::Item>> {
        let (held, count) = self.held_on(device)?;
        device.min_max_of((held.input(), count))
    }

    fn both_into(self, device: &Device, values: Output<'_, S::Item>, indices: Output<'_, u64>) -> Result<()> {
        let (held, count) = self.held_on(device)?;
        if S::BY_COUNT && held.input().is_empty() {
            return put(device, &[End::Min.empty(), End::Max.empty()], values, indices, Ends::Both.name());
        }
        device.min_max_one((held.input(), count), values, indices, &mut Scratch::new())
    }
}

/// Writes the results for a count of 0.
fn put<T: Element>(
    device: &Device,
    empty: &[T],
    values: Output<'_, T>,
    indices: Output<'_, u64>,
    what: &str,
) -> Result<()> {
    values.expect_len(empty.len(), what)?;
    indices.expect_len(empty.len(), what)?;
    device.copy(empty, values)?;
    device.copy(&[u64::MAX; 2][..empty.len()], indices)
}

/// # Arg-min and arg-max
///
/// These methods return an extreme element and its index. Modules: [`reduce`](crate::reduce),
/// [`reduce::segmented::extremes`](crate::reduce::segmented::extremes),
/// [`reduce::axis::extremes`](crate::reduce::axis::extremes).
impl Device {
    /// Arg-min: the smallest element and its index; for groups, those of each [segment](Source::segments), [run of equal
    /// keys](Source::by_key) or [line](crate::NdView::along).
    ///
    /// Ties yield the lowest index; -0 equals +0. If there is a NaN, the result is the first NaN. For groups, the index
    /// counts from the start of the group. The results of lines are in row-major order of the other axes, and the call
    /// does not wait for them. For segments it checks the offsets, and waits if they are on the device. By key it waits
    /// for the number of runs.
    ///
    /// An empty segment has the index `u64::MAX`. Its value is that of a [reduction](Device::reduce) by
    /// [`Min`](crate::op::Min): the type's highest value. In contrast, an empty input or line is an error: its length
    /// is known without a wait for the device. For the first elements [by a count](Source::take), a count of 0 is an
    /// error, too. Work, scratch and limits of segments:
    /// [`reduce::segmented::extremes`](crate::reduce::segmented::extremes).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`](crate::ErrorKind::Empty) if the input or a line is empty; otherwise same as
    /// [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let device = Device::best()?;
    /// let least = device.arg_min(&[3, 1, 2, 1])?;
    /// assert_eq!((least.index, least.value), (1, 1));
    ///
    /// let x = device.upload(&[3.0f32, 1.0, 2.0, 1.5, -5.0, 2.0])?;
    /// let least = device.arg_min(x.nd(&[2, 3])?.along(0))?;
    /// assert_eq!(least.values.to_vec()?, [1.5, -5.0, 2.0]);
    /// assert_eq!(least.indices.to_vec()?, [1, 1, 0]);
    ///
    /// let least = device.arg_min(x.segments(&[0u32, 4, 4, 6]))?;
    /// assert_eq!(least.values.to_vec()?, [1.0, f32::INFINITY, -5.0]);
    /// assert_eq!(least.indices.to_vec()?, [1, u64::MAX, 0]);
    ///
    /// let (keys, least) = device.arg_min(x.by_key(&[7u8, 7, 8, 8, 8, 9]))?;
    /// assert_eq!((keys.to_vec()?, least.indices.to_vec()?), (vec![7, 8, 9], vec![1, 2, 0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min<I: Extremal>(&self, input: I) -> Result<I::One> {
        input.one(self, End::Min)
    }

    /// [`Device::arg_min`] into `values` and `indices`. These have one element for a source, or one for each group.
    ///
    /// For [runs of keys](Source::by_key), `values` is a tuple of the keys, the values and the count, as in
    /// [`Device::reduce_into`].
    ///
    /// If a [count](Source::take) of elements is 0, the results are those of an empty segment.
    ///
    /// Waits for the result only if an output is a host slice, or if the input has a [gather](Source::gathered). Does
    /// not check the offsets of segments; see [`Device::reduce_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min`], except those for invalid offsets and for a count of 0.
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an output has another number of elements.
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, -1.0, 4.0])?;
    /// let (mut value, mut index) = (device.zeroed::<f32>(1)?, device.zeroed::<u64>(1)?);
    /// device.arg_min_into(&x, &mut value, &mut index)?;
    /// assert_eq!((value.to_vec()?, index.to_vec()?), (vec![-1.0], vec![1]));
    ///
    /// let (mut keys, mut values, mut count, mut indices) = ([0u8; 2], [0.0; 2], [0], [0; 2]);
    /// device.arg_min_into(x.by_key(&[5u8, 5, 6]), (&mut keys, &mut values, &mut count), &mut indices)?;
    /// assert_eq!((keys, values, count, indices), ([5, 6], [-1.0, 4.0], [2], [1, 0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min_into<'b, 'c, I: Extremal>(
        &self,
        input: I,
        values: impl Into<I::Out<'b, I::Item>>,
        indices: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        input.one_into(self, End::Min, values.into(), indices.into())
    }

    /// Arg-max: the largest element and its index; for groups, those of each group. Ties, NaN and order are as
    /// in [`Device::arg_min`]. The value of an empty segment is the type's lowest value.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let most = device.arg_max(&[0.5f32, 2.5, 2.5])?;
    /// assert_eq!((most.index, most.value), (1, 2.5));
    ///
    /// let x = device.upload(&[0.5f32, f32::NAN, 0.5, 0.0, 0.25, 2.0])?;
    /// let scores = x.nd(&[2, 3])?;
    /// assert_eq!(device.arg_max(scores.along(0))?.indices.to_vec()?, [0, 0, 1]);
    /// assert_eq!(device.arg_max(scores.along(1))?.indices.to_vec()?, [1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max<I: Extremal>(&self, input: I) -> Result<I::One> {
        input.one(self, End::Max)
    }

    /// [`Device::arg_max`] into `values` and `indices`, as [`Device::arg_min_into`].
    ///
    /// Waits for the result only if an output is a host slice, or if the input has a [gather](Source::gathered). Does
    /// not check the offsets of segments; see [`Device::reduce_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let (mut value, mut index) = ([0], [0]);
    /// Device::best()?.arg_max_into(&[3u8, 9, 9], &mut value, &mut index)?;
    /// assert_eq!((value, index), ([9], [1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max_into<'b, 'c, I: Extremal>(
        &self,
        input: I,
        values: impl Into<I::Out<'b, I::Item>>,
        indices: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        input.one_into(self, End::Max, values.into(), indices.into())
    }

    /// The smallest and the largest element and their indices, in one pass; for groups, those of each group.
    ///
    /// Each is the result of [`Device::arg_min`] or [`Device::arg_max`]. If there is a NaN, both results are the first
    /// NaN. For groups, the smallest elements of all groups come first, then the largest ones.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min`].
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let device = Device::best()?;
    /// let ends = device.min_max(&[2.5f32, -1.0, 7.0])?;
    /// assert_eq!((ends.min.value, ends.max.index), (-1.0, 2));
    ///
    /// let x = device.upload(&[3, 1, 2, 1, 5, 5])?;
    /// let ends = device.min_max(x.nd(&[2, 3])?.along(1))?;
    /// assert_eq!(ends.values.to_vec()?, [1, 1, 3, 5]);
    /// assert_eq!(ends.indices.to_vec()?, [1, 0, 0, 1]);
    ///
    /// let ends = device.min_max(x.segments(&[0u32, 2, 6]))?;
    /// assert_eq!(ends.values.to_vec()?, [1, 1, 3, 5]);
    /// assert_eq!(ends.indices.to_vec()?, [1, 1, 0, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn min_max<I: Extremal>(&self, input: I) -> Result<I::Both> {
        input.both(self)
    }

    /// [`Device::min_max`] into `values` and `indices`, which have two elements for a source, or two for each group. The
    /// smallest elements are first.
    ///
    /// For [runs of keys](Source::by_key), `values` is a tuple of the keys, the values and the count. There are twice as
    /// many values and indices as keys. The largest values begin in the middle of the output.
    ///
    /// Waits for the result only if an output is a host slice, or if the input has a [gather](Source::gathered). Does
    /// not check the offsets of segments; see [`Device::reduce_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let (mut values, mut indices) = (device.zeroed::<f32>(2)?, device.zeroed::<u64>(2)?);
    /// device.min_max_into(&[0.5f32, -1.0, 4.0], &mut values, &mut indices)?;
    /// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![-1.0, 4.0], vec![1, 2]));
    ///
    /// let x = device.upload(&[0.5f32, 2.5, -1.0, 4.0])?;
    /// let (mut values, mut indices) = ([0.0; 4], [0; 4]);
    /// device.min_max_into(x.nd(&[2, 2])?.along(0), &mut values, &mut indices)?;
    /// assert_eq!((values, indices), ([-1.0, 2.5, 0.5, 4.0], [1, 0, 0, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn min_max_into<'b, 'c, I: Extremal>(
        &self,
        input: I,
        values: impl Into<I::Out<'b, I::Item>>,
        indices: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        input.both_into(self, values.into(), indices.into())
    }

    fn arg_reduce<T: Element>(&self, input: Firsts<'_, T>, end: End) -> Result<Extreme<T>> {
        let (mut value, mut index) = ([T::ZERO], [0]);
        self.arg_reduce_into(input, end, (&mut value).into(), (&mut index).into(), &mut Scratch::new())?;
        if index[0] == u64::MAX {
            return Err(statistics::of_nothing(end.name()));
        }
        Ok(Extreme { index: index[0] as usize, value: value[0] })
    }

    #[inline(never)]
    fn arg_reduce_into<T: Element>(
        &self,
        (input, count): Firsts<'_, T>,
        end: End,
        value: Output<'_, T>,
        index: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        value.expect_len(1, end.name())?;
        index.expect_len(1, end.name())?;
        statistics::not_empty(&input, end.name())?;
        match self.backend() {
            Backend::Cpu => {
                let found = cpu::arg_reduce(input.host()?, end)?;
                value.host()?[0] = found.value;
                index.host()?[0] = found.index as u64;
            }
            Backend::OpenCl(device) => {
                let find = statistics::gpu::Find::One(end);
                statistics::gpu::extremes(device, find, (input, count), value, index, scratch)?;
            }
        }
        Ok(())
    }
}
