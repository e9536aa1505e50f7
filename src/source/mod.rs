//! Sources: inputs that are expressions over slices, buffers and views, computed where they are read.
//!
//! | source | element i | length |
//! |---|---|---|
//! | `&[T]`, `&[T; N]`, `&Vec<T>`, `&PinnedVec<T>`, `&Buffer<T>`, [`View`], [`Input`] | `x[i]` | that of `x` |
//! | [`counting`]`(start)` | `start + i` | endless |
//! | [`constant`]`(value)` | `value` | endless |
//! | [`x.map(f)`](Source::map) | `f(x[i])` | that of `x` |
//! | [`x.zip(y)`](Source::zip), [`zip`]`((x, y, z))` | `(x[i], y[i])` | the common length of all sources; an endless source fits any length |
//! | [`x.cast::<U>()`](Source::cast) | `x[i] as U` | that of `x` |
//! | [`x.times(y)`](Source::times) | `x[i] * y[i]`, whose sum can be exact | the common length of both; an endless source fits any length |
//! | [`x.gathered(index)`](Source::gathered) | `x[index[i]]` | that of `index` |
//! | [`x.reversed()`](Source::reversed) | `x[n - 1 - i]` | that of `x` |
//! | [`x.strided(k)`](Source::strided) | `x[i * k]` | `⌈n / k⌉` |
//! | [`x.take(n)`](Source::take) | `x[i]` | `n`; or a count on the device, if `take` is the outermost source |
//! | [`x.neighbours::<3>()`](Source::neighbours) | `(x[i], x[i + 1], x[i + 2])` | `n - 2` |
//! | [`x.shuffled(seed)`](Source::shuffled) | `x[p(i)]` for a random permutation p | that of `x` |
//!
//! | reader | cost of a source that is not in memory |
//! |---|---|
//! | [`Device::reduce`], [`Device::transform`], [`Device::scan`] and its variants without segments | none: a kernel computes an element when it reads it, and the CPU backend computes blocks that stay in the cache |
//! | [`Device::transpose`] of one matrix | none |
//! | [`Device::histogram`] | none on the CPU backend. On a device none for `x.map(f)` if `x` is memory and `f` captures nothing: see [`histogram`](crate::histogram). For any other source as below |
//! | reductions and scans by a user-defined operator, also of structs, exact scans, scans in segments, sorts, merges, selections, partitions, runs, counts, extremes, statistics, other histograms, top-k, quantiles; also the offsets of segments, the keys of `by_key`, flags, values and weights | one more pass, which writes n elements to temporary memory |
//!
//! Set operations, searches and copies take only arrays. [`Device::transform`] writes an array from a source.
//!
//! | property | |
//! |---|---|
//! | work | each element needs one read of each array and one call of each function. Inside `neighbours::<N>` it needs N of both. An array that occurs several times at index i is read once |
//! | determinism | with `Fixed`, a source gives the same bits as the array that [`Device::transform`] writes from it |
//! | builds | one for each expression, and for the alignment of its arrays; lengths, strides and captured values are arguments of the kernel |
//! | limits | any n that fits 64 bits; the arguments of the kernel fit 1 KiB: about 60 arrays, each counted once |
//!
//! ```
//! use oclprim::{Device, Source, op::{Map, Sum}};
//!
//! let device = Device::best()?;
//! let x = device.upload(&[1.0f32, -2.0, 3.0])?;
//! let y = device.upload(&[4.0f32, 5.0, 6.0])?;
//! let product = Map::new(|(a, b): (f32, f32)| a * b, "a * b");
//! assert_eq!(device.reduce(x.zip(&y).map(&product), Sum)?, 12.0);
//! # Ok::<(), oclprim::Error>(())
//! ```

#[doc(hidden)]
pub(crate) mod converted;
mod function;
#[doc(hidden)]
pub(crate) mod gpu;
pub(crate) mod group;
mod item;
mod leaf;
mod length;
#[doc(hidden)]
pub(crate) mod load;
mod nodes;
mod order;
pub(crate) mod transform;

use std::ops::Range;

use bytemuck::Pod;

use self::load::{Component, Index, Text};
#[doc(hidden)]
pub use self::transform::Held;
pub use self::{
    function::Function,
    group::{
        Along, Axes, ByKey, Channels, Flagged, Grouped, Indexed, Keyed, KeyedOutput, NdCast, NdMap, NdTimes,
        PairOutput, Ranges, Segments, Shaped, Viewed, Weighted, With, WithColumns,
    },
    item::{Computed, Item, Returned, Testable},
    leaf::{Constant, Counting, Plain, constant, counting},
    length::{Counted, Length, Sequence},
    nodes::{Cast, Gathered, Map, Reversed, Strided, Take, Times, Zip, zip},
    order::{Neighbours, Shuffled},
    transform::{Outputs, Split, Transformable, Whole, Written},
};
pub(crate) use self::{
    group::{AlongOne, in_memory},
    nodes::Arguments,
};
#[allow(unused_imports, reason = "for the documentation")]
use crate::{Device, View};
use crate::{
    Element, ElementType, Error, Input, Integer, Offset, Result,
    counted::Count,
    runtime::{AnyInput, opencl::ClDevice},
};

/// An input of a primitive: elements in memory, or an expression over them. The [module](crate::source) lists all.
///
/// The crate alone implements this trait. Its methods borrow slices, vectors and buffers, so `x.map(..)` needs no `&x`.
/// They compute nothing: errors come from the call that reads the source.
///
/// ```
/// use oclprim::{Device, Source, op::Sum};
///
/// let device = Device::best()?;
/// let bytes = [200u8, 100, 50, 25];
/// assert_eq!(device.reduce((&bytes).cast::<u64>().reversed().strided(2), Sum)?, 125);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input",
    label = "expected `&[T]`, `&Vec<T>`, `&Buffer<T>`, a `View`, or an expression over them",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for an N-dimensional view, say along which axes: `view.along(0)`",
    note = "an array of `ndarray` converts by `Input::try_from(&array)?`, with the feature `ndarray`",
    note = "`take(&count)` comes last, and few calls take it: the documentation of `source::Grouped` has the table"
)]
pub trait Source: Sized + Sync {
    /// The type of an element: an [`Element`], a plain struct, or a tuple of these.
    type Item: Copy + Send + Sync + 'static;

    /// Maps each element: `f(x[0]), f(x[1]), ...`
    ///
    /// `f` is made by [`map!`](crate::map) or [`op::Map::new`](crate::op::Map::new). A tuple is one argument in Rust.
    /// In the text of `Map::new`, the components of a tuple are `a`, `b`, ..., `z`, `a_1`, `b_1` and so on. An item
    /// that is no tuple is `x`. With `map!`, arguments and the result may also be structs.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, Sum}};
    ///
    /// let square = Map::new(|x: i32| x * x, "x * x");
    /// assert_eq!(Device::best()?.reduce([1, 2, 3][..].map(&square), Sum)?, 14);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn map<F: Function<Self::Item>>(self, f: F) -> Map<Self, F>
    where
        Self::Item: Item,
    {
        Map { source: self, function: f }
    }

    /// Pairs of elements: `(x[0], y[0]), (x[1], y[1]), ...`
    ///
    /// The call that reads the source returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the lengths
    /// differ.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, Max}};
    ///
    /// let (x, y) = (vec![1.0f32, 5.0], vec![4.0f32, -5.0]);
    /// let distance = Map::new(|(a, b): (f32, f32)| (a - b).abs(), "fabs(a - b)");
    /// assert_eq!(Device::best()?.reduce(x.zip(&y).map(&distance), Max)?, 10.0);
    /// let error = Device::best()?.reduce(x.zip(&y[1..]).map(&distance), Max).unwrap_err();
    /// assert_eq!(error.to_string(), "zip needs sources of equal length, got 2 and 1 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn zip<S: Source>(self, other: S) -> Zip<(Self, S)> {
        Zip((self, other))
    }

    /// Casts each element: `x[0] as U, x[1] as U, ...`, as in [`Element::cast`].
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum};
    ///
    /// assert_eq!(Device::best()?.reduce(vec![200u8; 1000].cast::<u64>(), Sum)?, 200_000);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn cast<U: Element>(self) -> Cast<Self, U>
    where
        Self::Item: Element,
    {
        Cast::new(self)
    }

    /// Products: `x[0] * y[0], x[1] * y[1], ...` The sum of these products is the dot product of `x` and `y`.
    ///
    /// Integers wrap, and floats round. For sums of all elements, of segments and by key,
    /// [`Determinism::Exact`](crate::Determinism::Exact) adds the exact products and rounds only the sum.
    /// [`ExactSum::of`](crate::ExactSum::of) returns the exact sum of all products. This holds if `times` is the
    /// outermost source, or only [`take`](Source::take) is applied to it. Any other source applied to the products, such
    /// as [`reversed`](Source::reversed) or a second `times`, gets rounded products. For products in a wider type,
    /// [`cast`](Source::cast) both factors first: `x.cast::<U>().times(y.cast())`. For products of N-dimensional views,
    /// see [`NdView::times`](crate::NdView::times).
    ///
    /// The call that reads the source returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the lengths
    /// differ.
    ///
    /// ```
    /// use oclprim::{Determinism::Exact, Device, Source, op::{Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// let (x, y) = (vec![1e8f32, 1.0, -1e8], vec![1e8f32, 0.5, 1e8]);
    /// assert_eq!(device.reduce(x.times(&y), Sum.exact())?, 0.5);
    /// let (bytes, weights) = (vec![200u8, 100], vec![250u8, 3]);
    /// assert_eq!(device.reduce(bytes.cast::<u64>().times(weights.cast()), Sum)?, 50_300);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn times<S: Source<Item = Self::Item>>(self, other: S) -> Times<Self, S>
    where
        Self::Item: Element,
    {
        Times(self, other)
    }

    /// Elements at given indices: `x[index[0]], x[index[1]], ...`
    ///
    /// Indices are integers of any type. On an OpenCL device, a call that reads the source waits. Every call returns
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an index is out of range. Its output then has
    /// unspecified values.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum};
    ///
    /// let (x, index) = (vec![10, 20, 30], vec![2u8, 0, 2]);
    /// let device = Device::best()?;
    /// assert_eq!(device.reduce(x.gathered(&index), Sum)?, 70);
    /// let error = device.reduce(x.gathered(&vec![0u8, 3]), Sum).unwrap_err();
    /// assert_eq!(error.to_string(), "index 1 is 3, beyond the 3 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn gathered<I: Source<Item: Integer>>(self, indices: I) -> Gathered<Self, I> {
        Gathered { table: self, indices }
    }

    /// The elements in reverse order: `x[n - 1], ..., x[0]`. The source must not be endless.
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// assert_eq!(Device::best()?.transform(vec![1, 2, 3].reversed())?.to_vec()?, [3, 2, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn reversed(self) -> Reversed<Self> {
        Reversed(self)
    }

    /// Every `step`-th element: `x[0], x[step], x[2 * step], ...`
    ///
    /// The call that reads the source returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `step` is 0.
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// assert_eq!(Device::best()?.transform(vec![1, 2, 3, 4, 5].strided(2))?.to_vec()?, [1, 3, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn strided(self, step: usize) -> Strided<Self> {
        Strided { source: self, step }
    }

    /// The first `n` elements: `x[0], ..., x[n - 1]`. It gives an endless source a length.
    ///
    /// The call that reads the source returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `x` has fewer.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum, source::counting};
    ///
    /// assert_eq!(Device::best()?.reduce(counting(1u32).take(100), Sum)?, 5050);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    ///
    /// # A count on the device
    ///
    /// `n` may also be a count in the memory of the device: a [`Buffer`](crate::Buffer) or a [`View`] of one `u32` or
    /// `u64`. [`Device::select_into`] writes such a count. The elements are then the first `min(count, len)` of the
    /// source, and a count of 0 is an empty input. Most calls read the count on the device and do not wait for it; the
    /// [table](crate::source::Grouped) lists the others. So a selection and calls on its result follow one another
    /// without a wait:
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, Max}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[4.0f32, -1.0, 9.0, 2.0])?;
    /// let (mut small, mut count) = (device.zeroed::<f32>(4)?, device.zeroed::<u64>(1)?);
    /// device.select_into(&x, Map::new(|x: f32| x < 5.0, "x < 5"), &mut small, &mut count)?;
    /// let mut most = device.zeroed::<f32>(1)?;
    /// device.reduce_into(small.take(&count), Max, &mut most)?;
    /// assert_eq!(most.to_vec()?, [4.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    ///
    /// The result has the same bits as that of the call on the shorter array, except for `Fast` sums and products of
    /// floats. Kernels start for `len` elements, the capacity, and work-groups without elements end at once. So the time
    /// depends mostly on the count. Scratch depends on the capacity.
    ///
    /// The count comes last: write `x.map(f).take(&count)`, since the result of `take(&count)` is no source. The
    /// [table](crate::source::Grouped) lists the calls that take it; all others do not compile. For those, read the
    /// count, which waits, and take that number.
    ///
    /// The call returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the count does not have one element, or if
    /// the source is endless.
    fn take<L: Length>(self, n: L) -> L::Of<Self> {
        n.of(self)
    }

    /// Tuples of `N` neighbours, 2 to 4: `(x[0], x[1]), (x[1], x[2]), ...` There are none if `x` has fewer than `N` elements.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Map};
    ///
    /// let slope = Map::new(|(a, b): (f32, f32)| b - a, "b - a");
    /// assert_eq!(Device::best()?.transform(vec![1.0f32, 3.0, 4.0].neighbours::<2>().map(&slope))?.to_vec()?, [2.0, 1.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn neighbours<const N: usize>(self) -> Neighbours<Self, N>
    where
        Neighbours<Self, N>: Source,
    {
        Neighbours(self)
    }

    /// The elements in a random order, each once. The order depends on `seed` and the length alone, and is the same on every
    /// device. The source must not be endless.
    ///
    /// A keyed bijection, a network of 24 rounds, computes the index of each element on its own. It needs no memory, and
    /// constant time on average. There are at most 2^64 orders, one for each seed. Algorithm: Mitchell, Stokes, Frank and
    /// Holmes 2022, "Bandwidth-optimal random shuffling for GPUs".
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum, source::counting};
    ///
    /// let device = Device::best()?;
    /// let cards = device.transform(counting(1u8).take(52).shuffled(7))?;
    /// assert_eq!(device.reduce(cards.cast::<u32>(), Sum)?, 52 * 53 / 2);
    /// assert_ne!(cards.to_vec()?, (1..=52).collect::<Vec<u8>>());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn shuffled(self, seed: u64) -> Shuffled<Self> {
        Shuffled { source: self, seed }
    }

    /// Segments, as the input of a primitive: segment s is `x[offsets[s]..offsets[s + 1]]`.
    ///
    /// Offsets are `u32` or `u64` and ascending; n segments have n + 1 offsets, and may be empty. A call that allocates
    /// its result checks the offsets, and waits for the device. A call that ends in `_into` does not check them;
    /// [`Device::check_segments`] does. Reads and writes stay in bounds for any offsets.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
    /// assert_eq!(device.reduce(x.segments(&[0u32, 2, 2, 5]), Sum)?.to_vec()?, [3.0, 0.0, 12.0]);
    /// assert_eq!(device.scan(x.segments(&[0u32, 2, 2, 5]), Sum)?.to_vec()?, [1.0, 3.0, 3.0, 7.0, 12.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    ///
    /// A gather repeats the result of a segment for each of its elements, like NumPy's `repeat`. The segment of element
    /// i is the number of segments that end at or before i.
    ///
    /// ```
    /// use oclprim::{Bound, Buffer, Device, Order, Source, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let (x, offsets) = ([1.0f32, 2.0, 3.0, 4.0, 5.0], device.upload(&[0u32, 2, 2, 5])?);
    /// let sums = device.reduce(x.segments(&offsets), Sum)?;
    /// let (ends, places) = (offsets.view(1..)?, device.iota(5, 0u32, 1)?);
    /// let segments: Buffer<u32> = device.search(ends, &places, Bound::Upper, Order::ascending())?;
    /// assert_eq!(device.transform(sums.gathered(&segments))?.to_vec()?, [3.0, 3.0, 12.0, 12.0, 12.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn segments<O: Source<Item: Offset>>(self, offsets: O) -> Segments<Self, O> {
        Segments { source: self, offsets }
    }

    /// Runs of equal keys, as the input of a primitive: a group starts wherever `keys[i] != keys[i - 1]`.
    ///
    /// Float keys compare as in [sorts](crate::sort): -0 equals +0, and all NaN are equal. The call returns
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are not as many keys as elements.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum};
    ///
    /// let (device, x) = (Device::best()?, [0.5f32, 2.0, 4.0, 8.0]);
    /// let (keys, sums) = device.reduce(x.by_key(&[3u8, 3, 1, 3]), Sum)?;
    /// assert_eq!((keys.to_vec()?, sums.to_vec()?), (vec![3, 1, 3], vec![2.5, 4.0, 8.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn by_key<K: Source<Item: Element>>(self, keys: K) -> ByKey<Self, K> {
        ByKey { source: self, keys }
    }

    /// Elements with a flag for each, as the input of a scan, a selection or a partition.
    ///
    /// A scan restarts at each element whose flag is not 0. The elements before the first such flag are a range, too.
    /// In [`Device::select`] and [`Device::partition`], the condition tests the flags, and the elements are plain data.
    ///
    /// The call returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are not as many flags as
    /// elements.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Sum};
    ///
    /// let sums = Device::best()?.scan([1u64, 2, 3, 4, 5].flagged(&[0u8, 0, 1, 1, 0]), Sum)?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 3, 4, 9]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn flagged<F: Source<Item = u8>>(self, flags: F) -> Flagged<Self, F> {
        Flagged { source: self, flags }
    }

    /// Keys with a value for each, as the input of a sort, a merge or top-k. Values are plain data of any size.
    ///
    /// The call returns [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are not as many values as
    /// keys.
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let (ages, names) = ([41u8, 7], [*b"Ida", *b"Bo "]);
    /// let (ages, names) = Device::best()?.sort(ages.with(&names), Order::ascending())?;
    /// assert_eq!((ages.to_vec()?, names.to_vec()?), (vec![7, 41], vec![*b"Bo ", *b"Ida"]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn with<V: Source<Item: Pod>>(self, values: V) -> With<Self, V> {
        With { keys: self, values }
    }

    /// Keys with several columns of values, each of its own type, as the input of a sort: a tuple of
    /// sources, or [`Columns`](crate::Columns) with their outputs.
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let table = (&[*b"Ida", *b"Bo "], &[1.5f32, 0.5]);
    /// let (ages, (names, sizes)) = Device::best()?.sort([41u8, 7].with_columns(table), Order::ascending())?;
    /// assert_eq!((ages.to_vec()?, names.to_vec()?, sizes.to_vec()?), (vec![7, 41], vec![*b"Bo ", *b"Ida"], vec![0.5, 1.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn with_columns<T>(self, table: T) -> WithColumns<Self, T> {
        WithColumns { keys: self, table }
    }

    /// Samples with a weight for each, as the input of [`Device::histogram`]: `sums[k]` is the sum of `weights[i]` over all
    /// `x[i]` in bin `k`.
    ///
    /// # The sum of weights
    ///
    /// Sums of integers have 64 bits and wrap. The sum of floats is the exact sum of the bin's own weights, rounded
    /// once to the sum's type, ties to even:
    ///
    /// ```text
    /// |sum - (w[1] + ... + w[m])| <= u * |w[1] + ... + w[m]|     u = 2^-24, for f64 2^-53; subnormal sums are exact
    /// ```
    ///
    /// So a small weight is not lost among large ones, and the order does not matter. The result has the same bits on
    /// every run, on every device and on the CPU, even on devices that flush subnormals. A sum is infinite if the
    /// rounded exact sum is out of range, or if a weight of the bin is infinite. A sum is NaN if a weight of the bin is
    /// NaN, or if the bin has weights of both infinity and -infinity. A sum of 0 is +0.
    ///
    /// A device sums most weights in a window of 64 bits, or 128 for `f64`. The largest of a sample of the weights
    /// defines the upper end of the window. Weights with bits outside the window cost more: they are summed in global
    /// memory.
    ///
    /// ```
    /// use oclprim::{Bins, Device, Source};
    ///
    /// let (energies, weights) = ([0.5f32, 1.5, 1.75, 9.0], [1.0f32, 0.25, 0.5, 2.0]);
    /// let found = Device::best()?.histogram(energies.weighted(&weights), &Bins::even(0.0, 2.0, 2)?)?;
    /// assert_eq!((found.sums, found.outside.above), (vec![1.0, 0.75], 2.0));
    /// // Bins do not affect one another.
    /// let found = Device::best()?.histogram([0u8, 1].weighted(&[1e12f32, 1e-7]), &Bins::ids(2)?)?;
    /// assert_eq!(found.sums, [1e12, 1e-7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn weighted<W: Source<Item: Element>>(self, weights: W) -> Weighted<Self, W> {
        Weighted { source: self, weights }
    }

    /// Channels of interleaved pixels, as the input of [`Device::histogram`]: sample `c` of pixel `i` is
    /// `x[i * channels + c]`, and its bins are `bins[c]`. If there are fewer bins than channels, the last channels are not
    /// counted.
    ///
    /// On an OpenCL device, neighbouring channels with bins of one kind share a pass over the input. The kinds are
    /// [`ids`](crate::Bins::ids) and [`even`](crate::Bins::even); each channel with [given edges](crate::Bins::edges)
    /// takes its own pass. The CPU takes a pass per channel.
    ///
    /// ```
    /// use oclprim::{Bins, Device, Source};
    ///
    /// let rgba = [255u8, 0, 10, 255, 200, 1, 20, 255];
    /// let found = Device::best()?.histogram(rgba.channels(4), &vec![Bins::ids(256)?; 3])?;
    /// assert_eq!((found[0].counts[200], found[1].counts[0], found[2].counts[20]), (1, 1, 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn channels(self, channels: usize) -> Channels<Self> {
        Channels { source: self, channels }
    }

    /// Keys with their indices, `u32` or `u64`, as the input of [`Device::top_k`].
    ///
    /// ```
    /// use oclprim::{Device, Source, Top};
    ///
    /// let (keys, indices) = Device::best()?.top_k([3, 9, 1].indexed::<u32>(), Top::largest(1))?;
    /// assert_eq!((keys.to_vec()?, indices.to_vec()?), (vec![9], vec![1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn indexed<I: Offset>(self) -> Indexed<Self, I> {
        Indexed { keys: self, index: std::marker::PhantomData }
    }

    /// Ranges of memory with the index of each in the output, as the input of [`Device::copy`]:
    /// `output[to + i] = x[range.start + i]` for each pair `(range, to)`.
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let device = Device::best()?;
    /// let mut y = device.zeroed(6)?;
    /// device.copy([1u8, 2, 3, 4, 5].ranges(&[(3..5, 0), (0..3, 3)]), &mut y)?;
    /// assert_eq!(y.to_vec()?, [4, 5, 0, 1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn ranges(self, ranges: &[(Range<usize>, usize)]) -> Ranges<'_, Self> {
        Ranges { source: self, ranges }
    }

    /// The number of elements; `None` if the source is endless.
    #[doc(hidden)]
    fn length(&self) -> Result<Option<usize>>;

    /// The elements for the CPU backend.
    #[doc(hidden)]
    fn host(&self) -> Result<impl Values<Item = Self::Item>>;

    /// Adds the text that computes the element at `index` to a load, and returns its components.
    #[doc(hidden)]
    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>>;

    /// The elements, if they are contiguous in memory; `T` is the type of an element.
    #[doc(hidden)]
    fn plain<T: Pod>(&self) -> Option<Input<'_, T>> {
        None
    }

    /// The memory, in its own order, if the source is contiguous memory in reverse order.
    #[doc(hidden)]
    fn backwards(&self) -> Option<Input<'_, Self::Item>>
    where
        Self::Item: Pod,
    {
        None
    }

    /// The type-erased source.
    #[doc(hidden)]
    fn erased(&self) -> Erased<'_, Self::Item>
    where
        Self::Item: Pod,
    {
        self.plain().map_or(Erased::Expression(self), Erased::Memory)
    }

    /// The elements in memory. Those of an array stay where they are.
    #[doc(hidden)]
    fn held<'a>(&'a self, device: &Device) -> Result<Held<'a, Self::Item>>
    where
        Self::Item: Pod,
    {
        self.erased().held(device)
    }

    /// The factors of the first `n` elements in memory, if the elements are [products](Self::times).
    #[doc(hidden)]
    fn held_factors<'a>(&'a self, _n: usize, _device: &Device) -> Result<Option<[Held<'a, Self::Item>; 2]>>
    where
        Self::Item: Pod,
    {
        Ok(None)
    }

    /// The memory and the type of the elements, if they are in memory in this type or in a narrower one.
    #[doc(hidden)]
    fn narrow(&self) -> Option<Narrow<'_>> {
        None
    }

    /// Returns an error if an index of a gather is out of range among the first `n` elements. It runs after a kernel found
    /// such an index.
    #[doc(hidden)]
    fn search(&self, device: &ClDevice, n: usize) -> Result<()>;
}

/// Memory, and the type of its elements.
#[doc(hidden)]
pub struct Narrow<'a>(pub(crate) AnyInput<'a>, pub(crate) ElementType);

/// Elements in memory, for kernels that convert them as they read.
pub(crate) enum Wide<'a, U: Pod> {
    Own(Held<'a, U>),
    /// Elements of the same or a narrower type, on an OpenCL device, and their number.
    Narrow(Narrow<'a>, usize),
    /// The two factors of each element.
    Factors([Held<'a, U>; 2]),
}

impl<'a, U: Element> Wide<'a, U> {
    /// The elements of a source. With `any_order`, elements of a narrower type stay where they are. Otherwise they are
    /// converted to memory first, because kernels on narrower elements combine in another order.
    pub(crate) fn of(source: &'a impl Source<Item = U>, device: &Device, any_order: bool) -> Result<Self> {
        if !device.is_cpu()
            && let Some(narrow) = source.narrow().filter(|narrow| any_order || narrow.1 == U::TYPE)
        {
            return Ok(Self::Narrow(narrow, finite(source)?));
        }
        source.held(device).map(Self::Own)
    }

    /// The summands of a reduction by groups. For an exact reduction of products, the result has the two factors of
    /// each product.
    pub(crate) fn summands(
        source: &'a impl Source<Item = U>,
        device: &Device,
        exact: bool,
        any_order: bool,
    ) -> Result<Self> {
        match if exact { source.held_factors(finite(source)?, device)? } else { None } {
            Some(factors) => Ok(Self::Factors(factors)),
            None => Self::of(source, device, exact || any_order),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Own(held) | Self::Factors([held, _]) => held.input().len(),
            Self::Narrow(_, len) => *len,
        }
    }

    /// The elements for a kernel, or their first factors.
    pub(crate) fn any(&self) -> Narrow<'_> {
        match self {
            Self::Own(held) | Self::Factors([held, _]) => Narrow(held.input().any(), U::TYPE),
            Self::Narrow(Narrow(memory, element), _) => Narrow(*memory, *element),
        }
    }

    /// The elements for the CPU backend, or their first factors.
    pub(crate) fn host(&self) -> Result<&[U]> {
        match self {
            Self::Own(held) | Self::Factors([held, _]) => held.input().host(),
            Self::Narrow(..) => unreachable!("only OpenCL devices convert as they read"),
        }
    }

    /// The second factors of the elements.
    pub(crate) fn other(&self) -> Option<Input<'_, U>> {
        match self {
            Self::Factors([_, other]) => Some(other.input()),
            _ => None,
        }
    }
}

/// A type-erased source. Code that reads it is compiled once for each element type.
#[doc(hidden)]
pub enum Erased<'a, T: Pod> {
    /// Contiguous elements in memory. For them no code of an expression is compiled.
    Memory(Input<'a, T>),
    Expression(&'a dyn Expression<T>),
}

impl<'a, T: Pod + Send + Sync> Erased<'a, T> {
    /// The number of elements; an error if the source is endless.
    pub(crate) fn len(&self) -> Result<usize> {
        match self {
            Self::Memory(input) => Ok(input.len()),
            Self::Expression(source) => source.finite_len(),
        }
    }

    /// As [`Source::held`].
    pub(crate) fn held(self, device: &Device) -> Result<Held<'a, T>> {
        let n = self.len()?;
        self.first(n, device)
    }

    /// The elements in memory. Those of an expression are written there first, as many as `count` says. `device` is an
    /// OpenCL device.
    pub(crate) fn held_counted(self, device: &Device, count: Count<'_>) -> Result<Held<'a, T>> {
        match self {
            Self::Memory(input) => Ok(Held::There(input)),
            Self::Expression(source) => Ok(Held::Written(transform::written_firsts(device, source, Some(count))?)),
        }
    }

    /// The first `n` elements in memory.
    fn first(self, n: usize, device: &Device) -> Result<Held<'a, T>> {
        match self {
            Self::Memory(input) => Ok(Held::There(input.part(0, n))),
            Self::Expression(source) => transform::written(device, source, n),
        }
    }
}

/// Type-erased interface of an expression, for the code that reads it.
#[doc(hidden)]
pub trait Expression<T>: Sync {
    /// The number of elements; an error if the source is endless.
    fn finite_len(&self) -> Result<usize>;

    /// CPU backend: calls `read` with the elements. Returns an error if an index of a gather was out of range.
    fn read(&self, read: &mut dyn FnMut(&dyn Blocks<T>) -> Result<()>) -> Result<()>;

    /// Adds to a load the text that computes the element at index `i` of the kernel, and returns its components.
    fn emitted(&self, text: &mut Text<'_>) -> Result<Vec<Component>>;

    /// As [`Source::narrow`].
    fn narrower(&self) -> Option<Narrow<'_>>;

    /// As [`Source::search`].
    fn find(&self, device: &ClDevice, n: usize) -> Result<()>;
}

impl<S: Source> Expression<S::Item> for S {
    fn finite_len(&self) -> Result<usize> {
        finite(self)
    }

    fn read(&self, read: &mut dyn FnMut(&dyn Blocks<S::Item>) -> Result<()>) -> Result<()> {
        let values = self.host()?;
        let result = read(&values);
        values.checked().and(result)
    }

    fn emitted(&self, text: &mut Text<'_>) -> Result<Vec<Component>> {
        self.emit(text, &Index::Own)
    }

    fn narrower(&self) -> Option<Narrow<'_>> {
        self.narrow()
    }

    fn find(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.search(device, n)
    }
}

/// The number of elements of a source, which is not endless.
pub(crate) fn finite(source: &impl Source) -> Result<usize> {
    not_endless(source.length())
}

fn not_endless(length: Result<Option<usize>>) -> Result<usize> {
    length?.ok_or_else(|| Error::invalid("an endless source needs a length: write `take(n)`"))
}

/// The error for an index out of range of a table of `len` elements.
fn outside(position: usize, index: i128, len: usize) -> Error {
    Error::invalid(format!("index {position} is {index}, beyond the {len} elements"))
}

/// The elements of a source on the host.
#[doc(hidden)]
pub trait Values: Sync {
    type Item: Copy;

    /// Element `i`, which must exist.
    fn at(&self, i: usize) -> Self::Item;

    /// The elements of a range, which must exist.
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = Self::Item> + ExactSizeIterator;

    /// Writes the elements from index `first` on.
    fn fill(&self, first: usize, out: &mut [Self::Item]) {
        let end = first + out.len();
        out.iter_mut().zip(self.values(first..end)).for_each(|(to, value)| *to = value);
    }

    /// Returns an error if an index of a gather was out of range.
    fn checked(&self) -> Result<()>;

    /// The factors of the elements, if they are products.
    fn factors(&self) -> Option<[&dyn Blocks<Self::Item>; 2]> {
        None
    }
}

/// Elements that are computed in blocks. One loop for each expression computes a block; all other loops depend on the
/// element type alone.
#[doc(hidden)]
pub trait Blocks<T>: Sync {
    /// The elements from index `first` on.
    fn block(&self, first: usize, out: &mut [T]);

    /// As [`Values::factors`].
    fn factors(&self) -> Option<[&dyn Blocks<T>; 2]>;
}

impl<V: Values> Blocks<V::Item> for V {
    #[inline(never)]
    fn block(&self, first: usize, out: &mut [V::Item]) {
        self.fill(first, out);
    }

    fn factors(&self) -> Option<[&dyn Blocks<V::Item>; 2]> {
        Values::factors(self)
    }
}
