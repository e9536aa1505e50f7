//! Groups of an input: segments, runs of equal keys, flagged ranges, lines along axes.

use std::{marker::PhantomData, ops::Range};

use bytemuck::Pod;

use super::{
    Function, Item, Sequence, Source,
    leaf::Plain,
    transform::{Held, written},
};
#[allow(unused_imports, reason = "for the documentation")]
use crate::Device;
use crate::{
    Buffer, Element, Error, ErrorKind, Input, Layout, NdView, NdViewMut, Offset, Output, Result, runtime::Extent,
};

/// An input of a primitive: a [`Source`], whole or in groups.
///
/// | input | groups | results |
/// |---|---|---|
/// | a [`Source`] | one: all elements | a value |
/// | [`x.take(&count)`](Source::take) | one: as many elements as a count on the device says | a value |
/// | [`x.segments(&offsets)`](Source::segments) | `x[offsets[s]..offsets[s + 1]]` for each s | a buffer, an element for each group |
/// | [`x.by_key(&keys)`](Source::by_key) | each run of equal keys | a buffer of the keys, and one of the results |
/// | [`x.flagged(&flags)`](Source::flagged) | from each flag that is not 0 to the next one | none: reductions do not take flags |
/// | [`view.along(axes)`](NdView::along) | each line along an axis or several | a buffer, an element for each line |
///
/// These are the results of a reduction. A scan has a result for each element.
#[doc = include_str!("groupings.md")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input",
    label = "expected `&[T]`, `&Vec<T>`, `&Buffer<T>`, a `View`, an expression over them, or groups of one of these",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for an N-dimensional view, say along which axes: `view.along(0)` or `view.along([0, 1])`",
    note = "an array of `ndarray` converts by `Input::try_from(&array)?`, with the feature `ndarray`"
)]
pub trait Grouped: Sized {
    /// The type of an element.
    type Item: Copy + Send + Sync + 'static;
    /// The results of a reduction of each group to an `R`.
    type Of<R: Pod>;
    /// The output for these results.
    type Out<'o, R: Pod>;
}

impl<S: Sequence> Grouped for S {
    type Item = S::Item;
    type Of<R: Pod> = R;
    type Out<'o, R: Pod> = Output<'o, R>;
}

/// Segments of a source; see [`Source::segments`].
#[derive(Clone, Copy, Debug)]
pub struct Segments<S, O> {
    pub(crate) source: S,
    pub(crate) offsets: O,
}

/// Runs of equal keys; see [`Source::by_key`].
#[derive(Clone, Copy, Debug)]
pub struct ByKey<S, K> {
    pub(crate) source: S,
    pub(crate) keys: K,
}

/// Ranges that start at flags; see [`Source::flagged`].
#[derive(Clone, Copy, Debug)]
pub struct Flagged<S, F> {
    pub(crate) source: S,
    pub(crate) flags: F,
}

/// Lines along axes; see [`NdView::along`].
#[derive(Clone, Copy, Debug)]
pub struct Along<V, A> {
    pub(crate) view: V,
    pub(crate) axes: A,
}

impl<V: Shaped, A: Axes> Along<V, A> {
    /// Calls `read` with the elements in memory and the offsets of the lines. Lines without elements are an error,
    /// whose message begins with `what`.
    pub(crate) fn as_segments<R>(
        &self,
        device: &Device,
        what: &str,
        read: impl FnOnce(Input<'_, V::To>, Input<'_, u64>) -> Result<R>,
    ) -> Result<R> {
        let (elements, rows, len) = self.in_memory(device)?;
        if rows > 0 && len == 0 {
            return Err(Error::new(ErrorKind::Empty, format!("{what} along an axis of 0 elements have no answer")));
        }
        let elements = self.view.converted(elements.input());
        let (elements, offsets) = (elements.held(device)?, device.iota(rows + 1, 0, len as u64)?);
        read(elements.input(), Input::from(&offsets))
    }
}

impl<V: Viewed, A: Axes> Along<V, A> {
    /// [`Viewed::in_memory`] along the axes.
    pub(crate) fn in_memory(&self, device: &Device) -> Result<(Held<'_, V::From>, usize, usize)> {
        self.view.in_memory(device, self.axes.list())
    }

    /// The memory from which the elements are computed.
    pub(crate) fn extents(&self) -> [Extent; 2] {
        [self.view.view().extent(), self.view.other().extent()]
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.view.view().len()
    }

    /// The lengths of the axes.
    pub(crate) fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    /// Returns whether the lines are contiguous in the row-major order of the view.
    pub(crate) fn adjoin(&self) -> Result<bool> {
        adjoin(self.shape(), self.axes.list())
    }

    /// Copies `lines`, in which the lines follow one another, to the row-major order of the view.
    pub(crate) fn put<R: Pod>(&self, device: &Device, lines: &Buffer<R>, output: Output<'_, R>) -> Result<()> {
        put_lines(device, self.shape(), self.axes.list(), lines, output)
    }

    /// Samples of lines with a weight for each, as [`Source::weighted`]. The view of the weights has the shape of the
    /// samples.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let device = Device::best()?;
    /// let (x, weights) = (device.upload(&[0u8, 1, 1, 1])?, device.upload(&[1u32, 2, 3, 4])?);
    /// let (x, weights) = (x.nd(&[2, 2])?, weights.nd(&[2, 2])?);
    /// let found = device.histogram(x.along(0).weighted(weights), &Bins::ids(2)?)?;
    /// assert_eq!(found.sums.to_vec()?, [1, 3, 0, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn weighted<W: Element>(self, weights: NdView<'_, W>) -> Weighted<Self, NdView<'_, W>> {
        Weighted { source: self, weights }
    }

    /// The elements of lines with a value for each, from a view of the same shape.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (x, y) = (device.upload(&[3u8, 1, 2, 9, 7, 8])?, device.upload(&[0.5f32, 1.5, 2.5, 3.5, 4.5, 5.5])?);
    /// let rows = x.nd(&[2, 3])?.along(1).with(y.nd(&[2, 3])?);
    /// let (keys, values) = device.sort(rows, Order::ascending())?;
    /// assert_eq!(keys.to_vec()?, [1, 2, 3, 7, 8, 9]);
    /// assert_eq!(values.to_vec()?, [1.5, 2.5, 0.5, 4.5, 5.5, 3.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with<T: Element>(self, values: NdView<'_, T>) -> With<Self, NdView<'_, T>> {
        With { keys: self, values }
    }

    /// The lines of another view along the same axes. The views have the same shape.
    pub(crate) fn beside<'a, T: Element>(&self, other: NdView<'a, T>) -> Result<Along<NdView<'a, T>, A>> {
        let view = self.view.view();
        let [keys, values] = [view.shape(), other.shape()];
        if keys != values {
            return Err(Error::invalid(format!("keys of shape {keys:?} need values of that shape, got {values:?}")));
        }
        Ok(Along { view: other, axes: self.axes })
    }

    /// The elements of lines with their indices, as [`Source::indexed`]. Indices count from the start of the line.
    ///
    /// ```
    /// use oclprim::{Device, Top};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3, 9, 1, 7, 2, 8])?;
    /// let (keys, indices) = device.top_k(x.nd(&[2, 3])?.along(1).indexed::<u32>(), Top::largest(1))?;
    /// assert_eq!((keys.to_vec()?, indices.to_vec()?), (vec![9, 8], vec![1, 2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn indexed<I: Offset>(self) -> Indexed<Self, I> {
        Indexed { keys: self, index: PhantomData }
    }
}

/// Returns whether lines are contiguous in the row-major order of this shape: `axes` are the last ones, in order.
pub(crate) fn adjoin(shape: &[usize], axes: &[usize]) -> Result<bool> {
    let [kept, taken] = kept_and_taken(shape, axes)?;
    Ok(kept.iter().chain(&taken).is_sorted())
}

/// Copies `lines`, in which lines along `axes` follow one another, to the row-major order of `shape`.
pub(crate) fn put_lines<R: Pod>(
    device: &Device,
    shape: &[usize],
    axes: &[usize],
    lines: &Buffer<R>,
    output: Output<'_, R>,
) -> Result<()> {
    let [kept, taken] = kept_and_taken(shape, axes)?;
    let order: Vec<_> = kept.into_iter().chain(taken).collect();
    let of_lines: Vec<_> = order.iter().map(|&axis| shape[axis]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
    let to = NdViewMut::new(output, Layout::contiguous(shape)?)?;
    device.copy(lines.nd(&of_lines)?.permute(&back)?, to)
}

/// The elements of a view in memory, one line after another, then the number of lines and their length. Lines that
/// already have this order in memory stay where they are. Others are copied.
#[inline(never)]
pub(crate) fn in_memory<'a, T: Pod>(
    device: &Device,
    view: NdView<'a, T>,
    axes: &[usize],
) -> Result<(Held<'a, T>, usize, usize)> {
    let (order, rows, len) = order_of_lines(view.shape(), axes)?;
    let view = view.permute(&order)?;
    if view.layout().is_contiguous() {
        let first = view.layout().offset();
        return Ok((Held::There(view.input().part(first, view.len())), rows, len));
    }
    let mut lines = device.temporary(view.len())?;
    let whole = Layout::contiguous(view.shape())?;
    device.copy(view, NdViewMut::new(Output::from(&mut lines), whole)?)?;
    Ok((Held::Written(lines), rows, len))
}

/// An order of the axes in which lines along `axes` are contiguous, the number of lines, and their length.
fn order_of_lines(shape: &[usize], axes: &[usize]) -> Result<(Vec<usize>, usize, usize)> {
    let [kept, taken] = kept_and_taken(shape, axes)?;
    let (rows, len) = sizes(shape, &kept, &taken)?;
    Ok((kept.into_iter().chain(taken).collect(), rows, len))
}

/// The axes of a shape that `axes` does not name, and those that it names, both in ascending order.
pub(crate) fn kept_and_taken(shape: &[usize], axes: &[usize]) -> Result<[Vec<usize>; 2]> {
    if let Some(axis) = axes.iter().find(|&&axis| axis >= shape.len()) {
        return Err(Error::invalid(format!("axis {axis} is out of range for an array of shape {shape:?}")));
    }
    if let Some(k) = (1..axes.len()).find(|&k| axes[..k].contains(&axes[k])) {
        return Err(Error::invalid(format!("axis {} is named twice", axes[k])));
    }
    let (kept, taken) = (0..shape.len()).partition(|axis| !axes.contains(axis));
    Ok([kept, taken])
}

/// The number of lines, and their length. Only if one of the two is 0 can the other overflow. A length that overflows
/// counts as 0; a number of lines that overflows is an error.
fn sizes(shape: &[usize], kept: &[usize], taken: &[usize]) -> Result<(usize, usize)> {
    let product = |axes: &[usize]| {
        let lengths = || axes.iter().map(|&axis| shape[axis]);
        if lengths().any(|n| n == 0) { Some(0) } else { lengths().try_fold(1usize, usize::checked_mul) }
    };
    match (product(kept), product(taken)) {
        (Some(rows), Some(len)) => Ok((rows, len)),
        (Some(_), None) => Ok((0, 0)),
        (None, _) => Err(Error::invalid(format!(
            "the results along axes {taken:?} of a shape of {shape:?} overflow the address space"
        ))),
    }
}

/// The lines along several axes, as lines along one axis. They are in the memory of the view, or in a copy.
pub(crate) struct AlongOne<'a, T: Pod> {
    elements: Held<'a, T>,
    layout: Layout,
    pub(crate) axis: usize,
}

impl<'a, T: Element> AlongOne<'a, T> {
    #[inline(never)]
    pub(crate) fn new(device: &Device, view: NdView<'a, T>, axes: &[usize]) -> Result<Self> {
        let there = Held::There(view.input());
        if let [axis] = *axes {
            return Ok(Self { elements: there, layout: *view.layout(), axis });
        }
        if let Some(layout) = joined(view.layout(), axes)? {
            let axis = layout.ndim() - 1;
            return Ok(Self { elements: there, layout, axis });
        }
        let (elements, rows, len) = in_memory(device, view, axes)?;
        let [kept, _] = kept_and_taken(view.shape(), axes)?;
        // The other axes, then the lines, as in `joined`. If that is one axis too many, or the view is empty, two axes
        // suffice.
        let shape: Vec<_> = if view.is_empty() || kept.len() == Layout::MAX_DIMS {
            vec![rows, len]
        } else {
            kept.iter().map(|&axis| view.shape()[axis]).chain([len]).collect()
        };
        Ok(Self { elements, layout: Layout::contiguous(&shape)?, axis: shape.len() - 1 })
    }
}

impl<T: Pod> AlongOne<'_, T> {
    pub(crate) fn view(&self) -> Result<NdView<'_, T>> {
        NdView::new(self.elements.input(), self.layout)
    }
}

/// A layout of the same memory in which the lines along `axes` are the lines along the last axis; `None` if there is no
/// such layout.
fn joined(layout: &Layout, axes: &[usize]) -> Result<Option<Layout>> {
    let (shape, strides) = (layout.shape(), layout.strides());
    let [kept, taken] = kept_and_taken(shape, axes)?;
    let (_, len) = sizes(shape, &kept, &taken)?;
    // Axes of one element have no neighbours, whatever their strides.
    let long: Vec<_> = taken.iter().copied().filter(|&axis| shape[axis] != 1).collect();
    let even = long.windows(2).all(|pair| strides[pair[0]] == strides[pair[1]] * shape[pair[1]] as isize);
    if !even || layout.is_empty() || kept.len() == Layout::MAX_DIMS {
        return Ok(None);
    }
    let stride = long.last().map_or(1, |&axis| strides[axis]);
    let joined: Vec<_> = kept.iter().map(|&axis| shape[axis]).chain([len]).collect();
    let strides: Vec<_> = kept.iter().map(|&axis| strides[axis]).chain([stride]).collect();
    Ok(Some(Layout::strided(&joined, &strides, layout.offset())?))
}

/// Keys with a value for each; see [`Source::with`].
#[derive(Clone, Copy, Debug)]
pub struct With<S, V> {
    pub(crate) keys: S,
    pub(crate) values: V,
}

/// Keys with several columns of values; see [`Source::with_columns`].
#[derive(Clone, Copy, Debug)]
pub struct WithColumns<S, T> {
    pub(crate) keys: S,
    pub(crate) table: T,
}

/// Samples with weights; see [`Source::weighted`].
#[derive(Clone, Copy, Debug)]
pub struct Weighted<S, W> {
    pub(crate) source: S,
    pub(crate) weights: W,
}

/// Channels of interleaved pixels; see [`Source::channels`].
#[derive(Clone, Copy, Debug)]
pub struct Channels<S> {
    pub(crate) source: S,
    pub(crate) channels: usize,
}

/// Ranges of memory, and the index of each in the output; see [`Source::ranges`].
#[derive(Clone, Copy, Debug)]
pub struct Ranges<'r, S> {
    pub(crate) source: S,
    pub(crate) ranges: &'r [(Range<usize>, usize)],
}

/// Keys with their indices; see [`Source::indexed`].
#[derive(Clone, Copy, Debug)]
pub struct Indexed<S, I> {
    pub(crate) keys: S,
    pub(crate) index: PhantomData<fn() -> I>,
}

impl<S: Source, O: Source> Segments<S, O> {
    /// Samples of segments with a weight for each, as [`Source::weighted`].
    ///
    /// ```
    /// use oclprim::{Bins, Device, Source};
    ///
    /// let samples = [0u8, 1, 1].segments(&[0u32, 2, 3]);
    /// let found = Device::best()?.histogram(samples.weighted(&[0.5f32, 2.0, 4.0]), &Bins::ids(2)?)?;
    /// assert_eq!(found.sums.to_vec()?, [0.5, 2.0, 0.0, 4.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn weighted<W: Source<Item: Element>>(self, weights: W) -> Weighted<Self, W> {
        Weighted { source: self, weights }
    }

    /// The elements of segments with a value for each, as [`Source::with`].
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let keys = [3u8, 1, 2];
    /// let (keys, values) = Device::best()?.sort(keys.segments(&[0u32, 2, 3]).with(&[10, 11, 12]), Order::ascending())?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![1, 3, 2], vec![11, 10, 12]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with<V: Source<Item: Pod>>(self, values: V) -> With<Self, V> {
        With { keys: self, values }
    }

    /// The elements of segments with their indices, as [`Source::indexed`]. Indices count from the start of the whole input.
    ///
    /// ```
    /// use oclprim::{Device, Source, Top};
    ///
    /// let x = [3, 9, 1, 7];
    /// let (_, indices) = Device::best()?.top_k(x.segments(&[0u32, 3, 4]).indexed::<u64>(), Top::largest(1))?;
    /// assert_eq!(indices.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn indexed<I: Offset>(self) -> Indexed<Self, I> {
        Indexed { keys: self, index: PhantomData }
    }
}

impl<S: Source, K: Source<Item: Element>> ByKey<S, K> {
    /// Samples in runs of equal keys with a weight for each, as [`Source::weighted`].
    ///
    /// ```
    /// use oclprim::{Bins, Device, Source};
    ///
    /// let samples = [0u8, 1, 1].by_key(&[5u32, 5, 8]);
    /// let (keys, found) = Device::best()?.histogram(samples.weighted(&[0.5f32, 2.0, 4.0]), &Bins::ids(2)?)?;
    /// assert_eq!((keys.to_vec()?, found.sums.to_vec()?), (vec![5, 8], vec![0.5, 2.0, 0.0, 4.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn weighted<W: Source<Item: Element>>(self, weights: W) -> Weighted<Self, W> {
        Weighted { source: self, weights }
    }

    /// The elements of runs with a value for each, as [`Source::with`].
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let x = [3u8, 1, 2].by_key(&[7u32, 7, 4]);
    /// let (x, values) = Device::best()?.sort(x.with(&[10, 11, 12]), Order::ascending())?;
    /// assert_eq!((x.to_vec()?, values.to_vec()?), (vec![1, 3, 2], vec![11, 10, 12]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with<V: Source<Item: Pod>>(self, values: V) -> With<Self, V> {
        With { keys: self, values }
    }

    /// The elements of runs with their indices, as [`Source::indexed`]. Indices count from the start of the whole
    /// input.
    ///
    /// ```
    /// use oclprim::{Device, Source, Top};
    ///
    /// let x = [3, 9, 1, 7].by_key(&[2u8, 2, 2, 6]);
    /// let (keys, (_, indices)) = Device::best()?.top_k(x.indexed::<u64>(), Top::largest(1))?;
    /// assert_eq!((keys.to_vec()?, indices.to_vec()?), (vec![2, 6], vec![1, 3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn indexed<I: Offset>(self) -> Indexed<Self, I> {
        Indexed { keys: self, index: PhantomData }
    }
}

/// The outputs of keys and of their values. A tuple of two outputs converts to it.
///
/// ```
/// use oclprim::{Device, Order, Source};
///
/// let (mut keys, mut values) = ([0u8; 2], [0.0f32; 2]);
/// Device::best()?.sort_into([9u8, 4].with(&[1.5f32, 2.5]), Order::ascending(), (&mut keys, &mut values))?;
/// assert_eq!((keys, values), ([4, 9], [2.5, 1.5]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
pub struct PairOutput<'o, K: Pod, V: Pod> {
    pub(crate) keys: Output<'o, K>,
    pub(crate) values: Output<'o, V>,
}

impl<'o, K: Pod, V: Pod, A: Into<Output<'o, K>>, B: Into<Output<'o, V>>> From<(A, B)> for PairOutput<'o, K, V> {
    fn from((keys, values): (A, B)) -> Self {
        Self { keys: keys.into(), values: values.into() }
    }
}

/// The outputs for runs of keys: the first key of each run, the results in an output `O`, and the number of runs.
///
/// A tuple of three outputs converts to it. If a call has two results for each run, its second output is a pair.
///
/// ```
/// use oclprim::{Device, Source, op::Max};
///
/// let (mut keys, mut values, mut count) = ([0u32; 2], [0i16; 2], [0]);
/// Device::best()?.reduce_into([-3i16, 4, 1].by_key(&[5u32, 5, 8]), Max, (&mut keys, &mut values, &mut count))?;
/// assert_eq!((keys, values, count), ([5, 8], [4, 1], [2]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
pub struct Keyed<'o, K: Pod, O> {
    pub(crate) keys: Output<'o, K>,
    pub(crate) values: O,
    pub(crate) count: Output<'o, u64>,
}

/// The outputs for runs of keys with one result of the type `R` for each.
pub type KeyedOutput<'o, K, R> = Keyed<'o, K, Output<'o, R>>;

impl<'o, K: Pod, O, A, B, C> From<(A, B, C)> for Keyed<'o, K, O>
where
    A: Into<Output<'o, K>>,
    B: Into<O>,
    C: Into<Output<'o, u64>>,
{
    fn from((keys, values, count): (A, B, C)) -> Self {
        Self { keys: keys.into(), values: values.into(), count: count.into() }
    }
}

impl<S: Source, O: Source> Grouped for Segments<S, O> {
    type Item = S::Item;
    type Of<R: Pod> = Buffer<R>;
    type Out<'o, R: Pod> = Output<'o, R>;
}

impl<S: Source, K: Source<Item: Pod>> Grouped for ByKey<S, K> {
    type Item = S::Item;
    type Of<R: Pod> = (Buffer<K::Item>, Buffer<R>);
    type Out<'o, R: Pod> = KeyedOutput<'o, K::Item, R>;
}

impl<S: Source, F: Source> Grouped for Flagged<S, F> {
    type Item = S::Item;
    type Of<R: Pod> = Buffer<R>;
    type Out<'o, R: Pod> = Output<'o, R>;
}

impl<V: Viewed, A: Axes> Grouped for Along<V, A> {
    type Item = V::To;
    type Of<R: Pod> = Buffer<R>;
    type Out<'o, R: Pod> = Output<'o, R>;
}

/// One axis, `usize`, or several, `[usize; N]`.
#[diagnostic::on_unimplemented(message = "`{Self}` does not name axes", label = "expected `usize` or `[usize; N]`")]
pub trait Axes: Copy {
    /// The axes.
    #[doc(hidden)]
    fn list(&self) -> &[usize];
}

impl Axes for usize {
    fn list(&self) -> &[usize] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> Axes for [usize; N] {
    fn list(&self) -> &[usize] {
        self
    }
}

/// An N-dimensional view of elements or structs, or an expression of one view or two.
#[doc(hidden)]
pub trait Viewed {
    type From: Plain;
    type To: Plain;

    /// The view; of products, the first factor.
    fn view(&self) -> NdView<'_, Self::From>;

    /// Of products, the second factor; else the view.
    fn other(&self) -> NdView<'_, Self::From> {
        self.view()
    }

    /// The lengths of the axes.
    fn shape(&self) -> &[usize];

    /// The elements in memory before their conversion, one line along `axes` after another, then the number of lines
    /// and their length.
    fn in_memory(&self, device: &Device, axes: &[usize]) -> Result<(Held<'_, Self::From>, usize, usize)> {
        in_memory(device, self.view(), axes)
    }

    /// The elements as a primitive takes them: cast, mapped or unchanged.
    fn converted(&self, elements: impl Source<Item = Self::From>) -> impl Source<Item = Self::To>;
}

/// An N-dimensional view or expression whose results are elements.
#[doc(hidden)]
pub trait Shaped: Viewed<To: Element> {}
impl<V: Viewed<To: Element>> Shaped for V {}

impl<T: Plain> Viewed for NdView<'_, T> {
    type From = T;
    type To = T;

    fn view(&self) -> NdView<'_, T> {
        *self
    }

    fn shape(&self) -> &[usize] {
        NdView::shape(self)
    }

    fn converted(&self, elements: impl Source<Item = T>) -> impl Source<Item = T> {
        elements
    }
}

/// An N-dimensional view with elements of a wider type; see [`NdView::cast`].
#[derive(Clone, Copy, Debug)]
pub struct NdCast<'a, T: Pod, U> {
    view: NdView<'a, T>,
    to: PhantomData<fn() -> U>,
}

impl<T: Element, U: Element + From<T>> Viewed for NdCast<'_, T, U> {
    type From = T;
    type To = U;

    fn view(&self) -> NdView<'_, T> {
        self.view
    }

    fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    fn converted(&self, elements: impl Source<Item = T>) -> impl Source<Item = U> {
        elements.cast::<U>()
    }
}

impl<'a, T: Element, U: Element + From<T>> NdCast<'a, T, U> {
    /// The lines along axes, as [`NdView::along`].
    ///
    /// ```
    /// use oclprim::{Source, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[200u8, 100, 1, 2])?;
    /// assert_eq!(device.reduce(x.nd(&[2, 2])?.cast::<u32>().along(1), Sum)?.to_vec()?, [300, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn along<A: Axes>(self, axes: A) -> Along<Self, A> {
        Along { view: self, axes }
    }
}

/// The products of two N-dimensional views; see [`NdView::times`].
#[derive(Clone, Copy, Debug)]
pub struct NdTimes<'a, T: Pod>(NdView<'a, T>, NdView<'a, T>);

impl<'a, T: Element> NdTimes<'a, T> {
    /// The lines along axes, as [`NdView::along`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// let (x, y) = ([1e8f32, 1.0, -1e8, 3.0, 4.0, 5.0], [1e8f32, 0.5, 1e8, 1.0, 2.0, 3.0]);
    /// let device = Device::best()?;
    /// let (x, y) = (device.upload(&x)?, device.upload(&y)?);
    /// let products = x.nd(&[2, 3])?.times(y.nd(&[2, 3])?);
    /// assert_eq!(device.reduce(products.along(1), Sum.exact())?.to_vec()?, [0.5, 26.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn along<A: Axes>(self, axes: A) -> Along<Self, A> {
        Along { view: self, axes }
    }

    fn check(&self) -> Result<()> {
        let [x, y] = [self.0.shape(), self.1.shape()];
        if x != y {
            return Err(Error::invalid(format!("times needs views of equal shapes, got {x:?} and {y:?}")));
        }
        Ok(())
    }

    /// The lines of both factors. They have the same shape.
    pub(crate) fn lines(&self, device: &Device, axes: &[usize]) -> Result<[AlongOne<'a, T>; 2]> {
        self.check()?;
        Ok([AlongOne::new(device, self.0, axes)?, AlongOne::new(device, self.1, axes)?])
    }

    /// The rounded products, in memory.
    pub(crate) fn written(&self, device: &Device) -> Result<AlongOne<'_, T>> {
        let (elements, ..) = self.in_memory(device, &[])?;
        Ok(AlongOne { elements, layout: Layout::contiguous(self.0.shape())?, axis: 0 })
    }
}

impl<T: Element> Viewed for NdTimes<'_, T> {
    type From = T;
    type To = T;

    fn view(&self) -> NdView<'_, T> {
        self.0
    }

    fn other(&self) -> NdView<'_, T> {
        self.1
    }

    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// The rounded products.
    #[inline(never)]
    fn in_memory(&self, device: &Device, axes: &[usize]) -> Result<(Held<'_, T>, usize, usize)> {
        self.check()?;
        let (x, rows, len) = in_memory(device, self.0, axes)?;
        let (y, ..) = in_memory(device, self.1, axes)?;
        Ok((written(device, &x.input().times(y.input()), self.0.len())?, rows, len))
    }

    fn converted(&self, elements: impl Source<Item = T>) -> impl Source<Item = T> {
        elements
    }
}

/// The mapped elements of an N-dimensional view; see [`NdView::map`].
#[derive(Clone, Copy, Debug)]
pub struct NdMap<'a, T: Pod, F> {
    view: NdView<'a, T>,
    function: F,
}

impl<T: Item + Plain, F: Function<T, Output: Plain>> NdMap<'_, T, F> {
    /// The lines along axes, as [`NdView::along`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Map, Max}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i32, -2, -3, 4, -5, 6])?;
    /// let size = Map::new(|x: i32| x.abs(), "x < 0 ? -x : x");
    /// assert_eq!(device.reduce(x.nd(&[3, 2])?.map(size).along([0]), Max)?.to_vec()?, [5, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn along<A: Axes>(self, axes: A) -> Along<Self, A> {
        Along { view: self, axes }
    }

    /// The mapped elements in memory, with their layout. A view without gaps is mapped in the order of memory, so an
    /// element that is broadcast is mapped once. Other views are copied first, since `f` may not be defined for
    /// elements in gaps.
    pub(crate) fn written(&self, device: &Device) -> Result<AlongOne<'static, F::Output>> {
        let (view, layout) = (self.view, self.view.layout());
        if let Some((low, high)) = layout.span().filter(|_| has_no_gaps(layout)) {
            let source = view.input().part(low, high - low + 1).map(&self.function);
            let layout = Layout::strided(layout.shape(), layout.strides(), layout.offset() - low)?;
            return Ok(AlongOne { elements: written(device, &source, high - low + 1)?, layout, axis: 0 });
        }
        let (x, ..) = in_memory(device, view, &[])?;
        let (source, layout) = (x.input().map(&self.function), Layout::contiguous(view.shape())?);
        Ok(AlongOne { elements: written(device, &source, layout.len())?, layout, axis: 0 })
    }
}

/// Returns whether each offset in the `span` of a layout belongs to an element. The layout is not empty.
fn has_no_gaps(layout: &Layout) -> bool {
    let mut axes: Vec<_> = layout.strides().iter().map(|stride| stride.unsigned_abs()).zip(layout.shape()).collect();
    axes.sort_unstable();
    let mut reach = 1;
    axes.into_iter().filter(|&(_, &n)| n > 1).all(|(stride, n)| {
        let whole = stride <= reach;
        reach += stride * (n - 1);
        whole
    })
}

impl<T: Item + Plain, F: Function<T, Output: Plain>> Viewed for NdMap<'_, T, F> {
    type From = T;
    type To = F::Output;

    fn view(&self) -> NdView<'_, T> {
        self.view
    }

    fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    fn converted(&self, elements: impl Source<Item = T>) -> impl Source<Item = F::Output> {
        elements.map(&self.function)
    }
}

/// Implements a trait for lines of [`NdMap`], whose elements have the given bounds, and of [`NdTimes`]. Each method
/// writes the elements to memory first.
macro_rules! lines_of_expressions {
    ($Trait:ident[$($bound:tt)+] $body:tt) => {
        $crate::source::group::lines_of_expressions! {
            @one $Trait [T: $crate::Element] [$crate::source::NdTimes<'_, T>] $body
        }
        $crate::source::group::lines_of_expressions! {
            @one $Trait
            [T: $crate::source::Item + $crate::source::Plain, F: $crate::source::Function<T, Output: $($bound)+>]
            [$crate::source::NdMap<'_, T, F>]
            $body
        }
    };
    (@one $Trait:ident [$($generics:tt)+] [$View:ty] {
        $(type $Name:ident = $Type:ty;)*
        $(fn $method:ident $(<$Generic:ident: $of:path>)? ($($name:ident: $Argument:ty),*) -> $Of:ty;)*
    }) => {
        impl<$($generics)+, A: $crate::source::Axes> $Trait for $crate::source::Along<$View, A> {
            $(type $Name = $Type;)*
            $(
                fn $method $(<$Generic: $of>)?(self, device: &$crate::Device, $($name: $Argument),*) -> $crate::Result<$Of> {
                    self.view.written(device)?.view()?.along(self.axes).$method(device, $($name),*)
                }
            )*
        }
    };
}
pub(crate) use lines_of_expressions;

/// # Lines
///
/// These methods choose the axes along which a primitive computes.
impl<T: Plain> NdView<'_, T> {
    /// The lines along one axis, `along(0)`, or several, `along([0, 2])`, as the input of a primitive.
    ///
    /// There is a line for each index of the other axes, in row-major order. Within a line along several axes, the
    /// elements are in row-major order of these axes. If these elements are not equally spaced in memory, they are
    /// copied first, which costs one more read and write.
    ///
    /// The call that reads the lines returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no
    /// such axis, or if an axis is named twice.
    ///
    /// ```
    /// use oclprim::{Device, op::{Max, Sum}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let rows = x.nd(&[2, 3])?;
    /// assert_eq!(device.reduce(rows.along(0), Sum)?.to_vec()?, [5.0, 7.0, 9.0]);
    /// assert_eq!(device.scan(rows.along(1), Max)?.to_vec()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!(device.reduce(rows.along([0, 1]), Sum)?.to_vec()?, [21.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn along<A: Axes>(self, axes: A) -> Along<Self, A> {
        Along { view: self, axes }
    }
}

impl<'a, T: Item + Plain> NdView<'a, T> {
    /// Maps each element or struct: `f(x[i, j, ..])`, with an `f` as in [`Source::map`]. Along axes, the mapped view is
    /// an input of each primitive that takes [lines](NdView::along).
    ///
    /// Counts map elements as they read lines. So do histograms without weights, if `f` captures no values. For all
    /// other calls, the mapped elements are written to memory first: one more read of the view, and a write.
    ///
    /// ```
    /// use oclprim::{Device, op::{Map, Sum}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let square = Map::new(|x: f32| x * x, "x * x");
    /// let squares = x.nd(&[2, 3])?.map(&square);
    /// assert_eq!(device.reduce(squares.along(0), Sum)?.to_vec()?, [17.0, 29.0, 45.0]);
    /// assert_eq!(device.scan(squares.along(1), Sum)?.to_vec()?, [1.0, 5.0, 14.0, 16.0, 41.0, 77.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map<F: Function<T>>(self, f: F) -> NdMap<'a, T, F> {
        NdMap { view: self, function: f }
    }
}

impl<'a, T: Element> NdView<'a, T> {
    /// The view with elements of a wider type: `x[i, j, ..] as U`. Kernels convert elements as they read them.
    ///
    /// ```
    /// use oclprim::{Source, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[200u8, 100, 1, 2])?;
    /// assert_eq!(device.reduce(x.nd(&[2, 2])?.cast::<u32>().along(0), Sum)?.to_vec()?, [201, 102]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn cast<U: Element + From<T>>(self) -> NdCast<'a, T, U> {
        NdCast { view: self, to: PhantomData }
    }

    /// Products: `x[i, j, ..] * y[i, j, ..]`, an input of the same calls as [`map`](NdView::map). The sums of these
    /// products along an axis are the dot products of the lines of `x` and `y`.
    ///
    /// Integers wrap, and floats round. With [`Determinism::Exact`](crate::Determinism::Exact) and for the operator
    /// [`Mean`](crate::op::Mean), the exact products are added, and only the sum or the mean is rounded. All other
    /// calls write the products to memory first.
    ///
    /// Exact sums read both views where they are, with their own strides. So a matrix times a vector, which is
    /// [broadcast](NdView::broadcast_to) to the shape of the matrix, needs no copy. Along several axes,
    /// [`NdView::along`] says when a view is copied.
    ///
    /// The call that reads the products returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the
    /// shapes differ.
    ///
    /// ```
    /// use oclprim::{Device, Input, op::{Mean, Sum, Usage}};
    ///
    /// // A matrix times a vector.
    /// let device = Device::best()?;
    /// let (a, v) = (device.upload(&[1e8f32, 1.0, -1e8, 3.0, 4.0, 5.0])?, device.upload(&[1e8f32, 0.5, 1e8])?);
    /// let (a, v) = (a.nd(&[2, 3])?, v.nd(&[3])?.broadcast_to(&[2, 3])?);
    /// assert_eq!(device.reduce(a.times(v).along(1), Sum.exact())?.to_vec()?, [0.5, 8e8]);
    ///
    /// // The means of the products in columns. The rounded products of column 0 would cancel.
    /// let (x, y) = ([134_217_729.0f64, 3.0, 1.0, 4.0], [134_217_729.0, 3.0, -18_014_398_777_917_440.0, 4.0]);
    /// let [x, y] = [&x, &y].map(|values| Input::from(values).nd(&[2, 2]));
    /// assert_eq!(Device::cpu().reduce(x?.times(y?).along(0), Mean)?.to_vec()?, [0.5, 12.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn times(self, other: NdView<'a, T>) -> NdTimes<'a, T> {
        NdTimes(self, other)
    }
}
