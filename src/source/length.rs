//! Lengths of sources: a number on the host, or a count in the memory of a device.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::{Indexed, Source, Take, Weighted, With, finite, transform::Held};
use crate::{Buffer, Device, Element, Offset, Output, Result, View, arguments::expect_beside, counted::Count};

/// A length for [`Source::take`]: a `usize`, or a count of one `u32` or `u64` in a [`Buffer`] or a [`View`].
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, op::Sum, source::{Counted, Length}};
///
/// fn total<'c, L>(x: &'c [u64], n: L) -> oclprim::Result<u64>
/// where
///     L: Length<Of<&'c [u64]> = Counted<'c, &'c [u64]>>,
/// {
///     Device::best()?.reduce(x.take(n), Sum)
/// }
///
/// let counts = Device::best()?.upload(&[2u32, 9])?;
/// assert_eq!(total(&[3, 4, 5], counts.view(..1)?)?, 7);
/// assert_eq!(total(&[3, 4, 5], counts.view(1..)?)?, 12);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A number of another type does not compile:
///
/// ```compile_fail,E0277
/// use oclprim::{Device, Source, op::Sum};
///
/// Device::cpu().reduce([1u8, 2].take(1u32), Sum)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a length",
    label = "expected `usize`, or `&Buffer` or `View` of one `u32` or `u64`",
    note = "write `n as usize` for a number, and `count.view(i..=i)?` for one of several counts"
)]
pub trait Length: Copy {
    /// The first elements of a source: a [`Take`] for a number, and a [`Counted`] for a count.
    type Of<S: Source>;

    #[doc(hidden)]
    fn of<S: Source>(self, source: S) -> Self::Of<S>;
}

impl Length for usize {
    type Of<S: Source> = Take<S>;

    fn of<S: Source>(self, source: S) -> Take<S> {
        Take { source, len: self }
    }
}

impl<'c, C: Offset> Length for &'c Buffer<C> {
    type Of<S: Source> = Counted<'c, S>;

    fn of<S: Source>(self, source: S) -> Counted<'c, S> {
        View::from(self).of(source)
    }
}

impl<'c, C: Offset> Length for View<'c, C> {
    type Of<S: Source> = Counted<'c, S>;

    fn of<S: Source>(self, source: S) -> Counted<'c, S> {
        Counted { source, count: Count::of(self) }
    }
}

/// The first elements of a source, as many as a count in memory says; see [`Source::take`].
#[derive(Clone, Copy, Debug)]
pub struct Counted<'c, S> {
    pub(crate) source: S,
    pub(crate) count: Count<'c>,
}

impl<S: Source> Counted<'_, S> {
    /// The elements as a source with a length on the host. On an OpenCL device, waits for the count.
    pub(crate) fn known(self, device: &Device) -> Result<Take<S>> {
        Ok(Take { len: self.len_on(device)?, source: self.source })
    }
}

/// All elements of a [`Source`], or its first elements [by a count](Source::take).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, source::Sequence};
///
/// fn runs(x: impl Sequence<Item = u8>) -> oclprim::Result<Vec<u32>> {
///     Device::best()?.run_length_encode(x)?.1.to_vec()
/// }
/// let count = Device::best()?.upload(&[3u64])?;
/// assert_eq!((runs(b"aabbb")?, runs(b"aabbb".take(&count))?), (vec![2, 3], vec![2, 1]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a source nor the first elements of one by a count",
    label = "expected `&[T]`, `&Vec<T>`, `&Buffer<T>`, a `View`, an expression over them, or `x.take(&count)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Sequence: Sized {
    /// The type of an element.
    type Item: Copy + Send + Sync + 'static;

    /// True if the number of elements is a count in memory.
    #[doc(hidden)]
    const BY_COUNT: bool;

    /// The number of elements of the whole source, an upper bound of the count.
    #[doc(hidden)]
    fn most(&self) -> Result<usize>;

    /// The number of elements. With a count on an OpenCL device, this waits for it.
    #[doc(hidden)]
    fn len_on(&self, device: &Device) -> Result<usize>;

    /// The elements in memory, and the count, if a device has to read it. Then only the first elements are valid. The
    /// CPU backend reads the count itself, and returns exactly the counted elements.
    #[doc(hidden)]
    fn held_on<'a>(&'a self, device: &Device) -> Result<(Held<'a, Self::Item>, Option<Count<'a>>)>
    where
        Self::Item: Pod;

    /// The values in memory: as many as the elements that [`Self::held_on`] returns.
    #[doc(hidden)]
    fn values_on<'a, V: Source<Item: Pod>>(&self, values: &'a V, device: &Device) -> Result<Held<'a, V::Item>>;

    /// The part of `output` for the `n` elements that [`Self::held_on`] returns. With a count, `output` has the length
    /// of the whole source.
    #[doc(hidden)]
    fn output_on<'o, R: Pod>(&self, output: Output<'o, R>, n: usize, what: &str) -> Result<Output<'o, R>>;
}

impl<S: Source> Sequence for S {
    type Item = S::Item;
    const BY_COUNT: bool = false;

    fn most(&self) -> Result<usize> {
        finite(self)
    }

    fn len_on(&self, _: &Device) -> Result<usize> {
        finite(self)
    }

    fn held_on<'a>(&'a self, device: &Device) -> Result<(Held<'a, S::Item>, Option<Count<'a>>)>
    where
        S::Item: Pod,
    {
        Ok((self.held(device)?, None))
    }

    fn values_on<'a, V: Source<Item: Pod>>(&self, values: &'a V, device: &Device) -> Result<Held<'a, V::Item>> {
        values.held(device)
    }

    fn output_on<'o, R: Pod>(&self, output: Output<'o, R>, _: usize, _: &str) -> Result<Output<'o, R>> {
        Ok(output)
    }
}

impl<S: Source> Sequence for Counted<'_, S> {
    type Item = S::Item;
    const BY_COUNT: bool = true;

    fn most(&self) -> Result<usize> {
        finite(&self.source)
    }

    fn len_on(&self, device: &Device) -> Result<usize> {
        self.count.read(device, self.most()?)
    }

    fn held_on<'a>(&'a self, device: &Device) -> Result<(Held<'a, S::Item>, Option<Count<'a>>)>
    where
        S::Item: Pod,
    {
        if device.is_cpu() {
            return Ok((self.source.erased().first(self.len_on(device)?, device)?, None));
        }
        let count = self.count.expect_one()?;
        Ok((self.source.erased().held_counted(device, count)?, Some(count)))
    }

    fn values_on<'a, V: Source<Item: Pod>>(&self, values: &'a V, device: &Device) -> Result<Held<'a, V::Item>> {
        expect_beside(self.most()?, finite(values)?, "keys need as many values")?;
        if device.is_cpu() {
            return values.erased().first(self.len_on(device)?, device);
        }
        values.erased().held_counted(device, self.count)
    }

    fn output_on<'o, R: Pod>(&self, output: Output<'o, R>, n: usize, what: &str) -> Result<Output<'o, R>> {
        output.expect_len(self.most()?, what)?;
        Ok(output.part(0, n))
    }
}

impl<S: Source> Counted<'_, S> {
    /// The first elements with a value for each, as [`Source::with`]. `values` has the length of the whole source.
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let count = Device::best()?.upload(&[2u32])?;
    /// let keys = [3u8, 1, 0].take(&count).with(&[10, 11, 12]);
    /// let (keys, values) = Device::best()?.sort(keys, Order::ascending())?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![1, 3], vec![11, 10]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with<V: Source<Item: Pod>>(self, values: V) -> With<Self, V> {
        With { keys: self, values }
    }

    /// The first samples, each with a weight, as in [`Source::weighted`]. `weights` has the length of the whole source.
    ///
    /// ```
    /// use oclprim::{Bins, Device, Source};
    ///
    /// let count = Device::best()?.upload(&[2u32])?;
    /// let samples = [1u8, 0, 1].take(&count).weighted(&[0.5f32, 2.0, 4.0]);
    /// assert_eq!(Device::best()?.histogram(samples, &Bins::ids(2)?)?.sums, [2.0, 0.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn weighted<W: Source<Item: Element>>(self, weights: W) -> Weighted<Self, W> {
        Weighted { source: self, weights }
    }

    /// The first elements with their indices, as [`Source::indexed`].
    ///
    /// ```
    /// use oclprim::{Device, Source, Top};
    ///
    /// let count = Device::best()?.upload(&[3u32])?;
    /// let x = [3, 1, 7, 9].take(&count).indexed::<u64>();
    /// let (keys, indices) = Device::best()?.top_k(x, Top::largest(1))?;
    /// assert_eq!((keys.to_vec()?, indices.to_vec()?), (vec![7], vec![2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn indexed<I: Offset>(self) -> Indexed<Self, I> {
        Indexed { keys: self, index: PhantomData }
    }
}
