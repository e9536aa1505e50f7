//! Stable sorts: of keys, also [with values](Source::with) ([`Device::sort`]), and of indices by key
//! ([`Device::argsort`]). Submodules sort each segment ([`segmented`]), each line along axes ([`lines`]), keys with
//! several columns of values ([`columns`]), or keys in place ([`in_place`]).
//!
//! | property | |
//! |---|---|
//! | work | one pass per 8 bits in which keys differ. With look-back, a pass reads and writes each key and value once, and all passes share one more read of the keys. Without look-back, each pass reads each key twice |
//! | keys | integers of up to 16 bytes and floats, ascending or descending, by all bits or by [some](Order::bits) |
//! | order of floats | as in NumPy: -0 equals 0, and all NaN are equal and larger than infinity. Each key keeps its bits. [`Order::total_order`] compares all bits |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | n keys (2 n without an output of keys), n values, and about 256 counters per work-group |
//! | limits | any n that fits the device |
//!
//! This is a least-significant-digit radix sort (Merrill and Grimshaw 2011). On a GPU, one kernel counts the digits of
//! all passes. In a pass, a work-group sorts a tile of keys in local memory. Decoupled look-back yields the number of
//! earlier keys with each digit, and so the output offsets (Adinets and Merrill 2022). On devices without look-back,
//! each pass counts its digits per work-group and scans the counts. The device skips a pass whose digit is the same in
//! all keys, without the host.
//!
//! On the CPU, the most significant digits distribute keys to buckets, in parallel. One thread then sorts each bucket
//! in its cache. The crate `rdst` sorts keys without values. Keys of 16 bytes are sorted by a merge sort.

pub mod columns;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod in_place;
pub mod lines;
pub mod segmented;

use bytemuck::Pod;

pub use crate::keys::{Key, Order};
pub use crate::merge::sort::{Merging, Sorting};

use crate::{
    Buffer, Device, Error, Input, Offset, Output, Result, Scratch, Source,
    counted::{Count, Firsts, on_device},
    keys::Keys,
    memory,
    runtime::Backend,
    source::{PairOutput, Sequence, With, finite},
};
use crate::{
    layout::copy::gather::{Way, gpu as gather},
    runtime::{ClInput, opencl::ClDevice},
};

/// The largest number of keys whose indices fit `u32`.
pub(crate) const NARROW: usize = 1 << 32;

/// Returns an error if the indices of n keys do not fit `I`.
pub(crate) fn expect_indices<I: Offset>(n: usize) -> Result<()> {
    if size_of::<I>() == 4 && n > NARROW {
        return Err(Error::invalid(format!("the indices of {n} keys do not fit u32: at most 2^32 keys do")));
    }
    Ok(())
}

fn as_many(keys: usize, values: usize) -> Result<()> {
    if keys == values {
        return Ok(());
    }
    Err(Error::invalid(format!("sorting {keys} keys needs as many values, got {values}")))
}

/// An input of a sort by an order of type `C`: a [`Source`], its first elements [by a count](Source::take),
/// [segments](Source::segments) of it, [runs of equal keys](Source::by_key), or [lines](crate::NdView::along). A source
/// can have [values](Source::with) or [columns](Source::with_columns) of values, and its first elements can have
/// [values](crate::source::Counted::with). Segments and runs can have values, and lines can have those of [another
/// view](crate::source::Along::with).
///
/// A source takes any order: an [`Order`], a user's [`Less`](crate::op::Less), or [`Merging`]. Groups and columns take
/// an [`Order`]. The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, Order, Source, sort::Sortable};
///
/// fn sorted<I: Sortable<Order, Sorted = Buffer<u8>>>(input: I) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.sort(input, Order::ascending())?.to_vec()
/// }
/// let x = [3u8, 1, 2];
/// assert_eq!((sorted(&x)?, sorted(x.segments(&[0u32, 1, 3]))?), (vec![1, 2, 3], vec![3, 1, 2]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a sort by `{C}`",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "the order is an `Order`, or for elements of any plain type a `&Less`; groups and columns take an `Order`"
)]
pub trait Sortable<C>: Sized {
    /// A buffer of keys, also with values.
    type Sorted;
    /// The outputs of keys, also with values.
    type Out<'o>;

    #[doc(hidden)]
    fn sort(self, device: &Device, order: &C) -> Result<Self::Sorted>;

    #[doc(hidden)]
    fn sort_into(self, device: &Device, order: &C, output: Self::Out<'_>) -> Result<()>;
}

/// Keys that [`Device::argsort`] sorts by an order of type `C`: a [`Source`], its first elements [by a
/// count](Source::take), [segments](Source::segments) of it, [runs of equal keys](Source::by_key), or
/// [lines](crate::NdView::along).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Order, sort::Argsortable};
///
/// fn sorted<I: Argsortable<Order>>(input: I) -> oclprim::Result<Vec<u32>> {
///     Device::best()?.argsort(input, Order::ascending())?.to_vec()
/// }
/// assert_eq!(sorted(&[3u8, 1, 2])?, [1, 2, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of an argsort by `{C}`",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Argsortable<C>: Sized {
    #[doc(hidden)]
    fn argsort<P: Offset>(self, device: &Device, order: &C) -> Result<Buffer<P>>;

    #[doc(hidden)]
    fn argsort_into<P: Offset>(self, device: &Device, order: &C, output: Output<'_, P>) -> Result<()>;
}

impl<K: Key> Sorting<K> for Order {
    fn keys(&self, device: &Device, input: Firsts<'_, K>, output: Output<'_, K>) -> Result<()> {
        device.sort_one(input, output, self, &mut Scratch::new())
    }

    fn pairs<V: Pod + Send + Sync>(
        &self,
        device: &Device,
        inputs: (Firsts<'_, K>, Input<'_, V>),
        outputs: (Output<'_, K>, Output<'_, V>),
    ) -> Result<()> {
        device.sort_pairs_one(inputs, outputs, self, &mut Scratch::new())
    }

    fn indices<P: Offset>(&self, device: &Device, input: Firsts<'_, K>, output: Output<'_, P>) -> Result<()> {
        device.argsort_one(input, output, self, &mut Scratch::new())
    }
}

impl<S: Sequence<Item: Pod>, C: Sorting<S::Item>> Sortable<C> for S {
    type Sorted = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn sort(self, device: &Device, order: &C) -> Result<Buffer<S::Item>> {
        let (n, mut output) = (self.len_on(device)?, device.uninit(self.most()?)?);
        self.sort_into(device, order, Output::from(&mut output))?;
        output.truncate(n);
        Ok(output)
    }

    fn sort_into(self, device: &Device, order: &C, output: Output<'_, S::Item>) -> Result<()> {
        let (keys, count) = self.held_on(device)?;
        let output = self.output_on(output, keys.input().len(), "a sort")?;
        order.keys(device, (keys.input(), count), output)
    }
}

impl<S: Sequence<Item: Pod>, V: Source<Item: Pod>, C: Sorting<S::Item>> Sortable<C> for With<S, V> {
    type Sorted = (Buffer<S::Item>, Buffer<V::Item>);
    type Out<'o> = PairOutput<'o, S::Item, V::Item>;

    fn sort(self, device: &Device, order: &C) -> Result<Self::Sorted> {
        let (mut keys, mut values) = (device.uninit(self.keys.most()?)?, device.uninit(finite(&self.values)?)?);
        let n = self.keys.len_on(device)?;
        self.sort_into(device, order, (&mut keys, &mut values).into())?;
        keys.truncate(n);
        values.truncate(n);
        Ok((keys, values))
    }

    fn sort_into(self, device: &Device, order: &C, to: Self::Out<'_>) -> Result<()> {
        let (keys, count) = self.keys.held_on(device)?;
        let (keys, values) = (keys.input(), self.keys.values_on(&self.values, device)?);
        let keys_out = self.keys.output_on(to.keys, keys.len(), "a sort of keys")?;
        let values_out = self.keys.output_on(to.values, keys.len(), "a sort of values")?;
        order.pairs(device, ((keys, count), values.input()), (keys_out, values_out))
    }
}

impl<S: Sequence<Item: Pod>, C: Sorting<S::Item>> Argsortable<C> for S {
    fn argsort<P: Offset>(self, device: &Device, order: &C) -> Result<Buffer<P>> {
        let (n, mut output) = (self.len_on(device)?, device.uninit(self.most()?)?);
        self.argsort_into(device, order, Output::from(&mut output))?;
        output.truncate(n);
        Ok(output)
    }

    fn argsort_into<P: Offset>(self, device: &Device, order: &C, output: Output<'_, P>) -> Result<()> {
        let (keys, count) = self.held_on(device)?;
        let output = self.output_on(output, keys.input().len(), "an argsort")?;
        order.indices(device, (keys.input(), count), output)
    }
}

/// # Sorts
///
/// These methods return the sorted keys, with or without values, or the indices that sort the keys. Module:
/// [`sort`](crate::sort).
impl Device {
    /// Stable sort: a copy of the keys in `order`, in which equal keys keep their order.
    ///
    /// An [`Order`] sorts numbers by their digits. A user's [`Less`](crate::op::Less) sorts elements of any plain type,
    /// also structs, by [merges](crate::merge::sort). [`Merging`] sorts by merges in any order.
    ///
    /// For keys [with values](Source::with), returns the sorted keys, and the values in the order of their keys. Values
    /// are plain data of any size. Values of 1, 2, 4, 8 and 16 bytes move with the keys. Values of other sizes are
    /// gathered by the sorted indices at the end. For keys [with columns](Source::with_columns), returns the keys and a
    /// buffer of each column: [`columns`].
    ///
    /// Each [line](crate::NdView::along) is sorted separately, also [with values](crate::source::Along::with):
    /// [`lines`]. Each [segment](Source::segments) is sorted separately, with its values, in its own range. Keys before
    /// the first offset, and from the last offset on, belong to no segment and keep their indices. Each [run of equal
    /// keys](Source::by_key) is sorted separately, too: [`select::by_key::groups`](crate::select::by_key::groups). The
    /// keys of an expression are written to memory first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result and as much scratch do not fit the
    /// device; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the order selects bits that the keys do
    /// not have. The same error if an offset is beyond the next one or beyond the input, or if there are no offsets.
    /// The same error if the numbers of keys and values differ. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)
    /// if values are zero-sized, or if the elements of a custom order have more than [64
    /// bytes](crate::op::Less::MAX_BYTES). [`ErrorKind::Build`](crate::ErrorKind::Build) if the source of a custom order
    /// does not compile.
    ///
    /// ```
    /// use oclprim::{Device, Order, Source};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[2.5f32, -0.0, f32::NAN, 0.0, -1.0])?;
    /// let sorted = device.sort(&x, Order::ascending())?.to_vec()?;
    /// // -0 and 0 are equal and keep their order; NaN is the largest.
    /// assert_eq!(sorted[..4], [-1.0, -0.0, 0.0, 2.5]);
    /// assert!(sorted[1].is_sign_negative() && sorted[4].is_nan());
    /// assert_eq!(device.sort(&[3u8, 1, 2], Order::descending())?.to_vec()?, [3, 2, 1]);
    /// let rows = device.sort([3u8, 1, 2, 9, 5, 4].segments(&[0u32, 2, 2, 5]), Order::descending())?;
    /// assert_eq!(rows.to_vec()?, [3, 1, 9, 5, 2, 4]);
    /// let (ages, names) = (device.upload(&[41u8, 7, 41])?, device.upload(&[*b"Ida", *b"Bo ", *b"Lu "])?);
    /// let (ages, names) = device.sort(ages.with(&names), Order::descending())?;
    /// assert_eq!((ages.to_vec()?, names.to_vec()?), (vec![41, 41, 7], vec![*b"Ida", *b"Lu ", *b"Bo "]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort<I: Sortable<C>, C>(&self, input: I, order: C) -> Result<I::Sorted> {
        input.sort(self, &order)
    }

    /// [`Device::sort`] into a slice, buffer or view of the same length. For keys with values, the output is a pair of
    /// these.
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered).
    ///
    /// For the first elements [by a count](Source::take), outputs have the length of the whole source. Their elements
    /// from the count on do not change. A sort by a [`Less`](crate::op::Less) or by [`Merging`] waits for the count. So
    /// does a sort of values of another size than 1, 2, 4, 8 or 16 bytes.
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. With invalid offsets, results are
    /// unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths
    /// differ, or if the arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut out = device.zeroed(3)?;
    /// for x in [[5i32, -7, 3], [2, 1, 0]] {
    ///     device.sort_into(&x, Order::ascending(), &mut out)?;
    /// }
    /// assert_eq!(out.to_vec()?, [0, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_into<'b, I: Sortable<C>, C>(&self, input: I, order: C, output: impl Into<I::Out<'b>>) -> Result<()> {
        input.sort_into(self, &order, output.into())
    }

    /// Body of [`Device::sort_into`], compiled once per type.
    #[inline(never)]
    fn sort_one<T: Key>(
        &self,
        (input, count): Firsts<'_, T>,
        output: Output<'_, T>,
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(input.len(), "a sort")?;
        let keys = Keys::new::<T>(order)?;
        match self.backend() {
            Backend::Cpu => {
                cpu::keys(&keys, bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?))?;
            }
            Backend::OpenCl(device) => {
                gpu::sort(device, &keys, (input.any(), count), output.any(), scratch)?;
            }
        }
        Ok(())
    }

    /// [`Device::sort`] of keys with values, compiled once per pair of types.
    #[inline(never)]
    fn sort_pairs_one<K: Key, V: Pod>(
        &self,
        ((input, count), values): (Firsts<'_, K>, Input<'_, V>),
        (output, values_out): (Output<'_, K>, Output<'_, V>),
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (n, size) = (input.len(), size_of::<V>());
        as_many(n, values.len())?;
        output.expect_len(n, "a sort of keys")?;
        values_out.expect_len(n, "a sort of values")?;
        if size == 0 {
            return Err(Error::unsupported("values must have at least 1 byte"));
        }
        // A gather of values does not read the count on the device.
        let (known, count) = if gpu::VALUE_SIZES.contains(&size) { (None, count) } else { (count, None) };
        let n = Count::known(known, self, n)?;
        let (input, values) = (input.part(0, n), values.part(0, n));
        let (output, values_out) = (output.part(0, n), values_out.part(0, n));
        let keys = Keys::new::<K>(order)?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
                let (values, values_out) = (values.host()?, values_out.host()?);
                if cpu::pairs(&keys, (input, &mut *output), (values, &mut *values_out))? {
                    Ok(())
                } else if n <= NARROW {
                    let mut places = memory::zeroed::<u32>(n)?;
                    cpu::places(&keys, input, Some(output), &mut places)?;
                    self.gather_into(values, &places, values_out, &mut [0])
                } else {
                    let mut places = memory::zeroed::<u64>(n)?;
                    cpu::places(&keys, input, Some(output), &mut places)?;
                    self.gather_into(values, &places, values_out, &mut [0])
                }
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, count.is_some())?);
                let (values, values_out) = (values.cl(device)?, values_out.cl(device, count.is_some())?);
                crate::runtime::apart(&[&input, &values], &[&output, &values_out])?;
                let count = on_device(device, count, &[&output, &values_out])?;
                let caps = gpu::capabilities(device, &keys, &input)?;
                self.with_values(device, size, n, (&values, &values_out), |with| {
                    gpu::run(device, &caps, &keys, (&input, count.as_ref()), Some(&output), Some(with), scratch)
                })?;
                values_out.finish(device)?;
                output.finish(device)
            }
        }
    }

    /// Gathers values of any size by `places`, which are all in bounds.
    pub(crate) fn gather_values<I: Offset>(
        &self,
        device: &ClDevice,
        size: usize,
        values: &ClInput,
        places: &Buffer<I>,
        to: &ClInput,
    ) -> Result<()> {
        let mut outside = self.uninit::<u64>(1)?;
        let outside = Output::from(&mut outside).cl(device, false)?;
        let form = gather::Form { way: Way::Gather, size, index_size: size_of::<I>() };
        gather::run(device, form, values, &Input::from(places).cl(device)?, to, &outside)
    }

    /// Calls `sort` with the values. If a sort cannot move values of this size, calls `sort` with indices, then gathers
    /// the values.
    fn with_values(
        &self,
        device: &ClDevice,
        size: usize,
        n: usize,
        (values, to): (&ClInput, &ClInput),
        sort: impl FnOnce(gpu::Values<'_>) -> Result<()>,
    ) -> Result<()> {
        if gpu::VALUE_SIZES.contains(&size) {
            sort(gpu::Values { bytes: size, from: Some(values), to })
        } else if n <= NARROW {
            let places = self.places_by::<u32>(device, n, sort)?;
            self.gather_values(device, size, values, &places, to)
        } else {
            let places = self.places_by::<u64>(device, n, sort)?;
            self.gather_values(device, size, values, &places, to)
        }
    }

    /// The indices that `sort` writes.
    fn places_by<I: Offset>(
        &self,
        device: &ClDevice,
        n: usize,
        sort: impl FnOnce(gpu::Values<'_>) -> Result<()>,
    ) -> Result<Buffer<I>> {
        let mut places = self.temporary(n)?;
        let to = Output::from(&mut places).cl(device, false)?;
        sort(gpu::Values { bytes: size_of::<I>(), from: None, to: &to })?;
        to.finish(device)?;
        Ok(places)
    }

    /// Indices that sort the keys: `sorted[i] = input[output[i]]`, stable. Indices are `u32` or `u64`. For
    /// [segments](Source::segments) and [runs of equal keys](Source::by_key), they count from the start of the whole
    /// input; for [lines](crate::NdView::along), from the start of the line.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are more
    /// than 2^32 keys and indices are `u32`.
    ///
    /// ```
    /// use oclprim::{Buffer, Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[30i16, -10, 20, -10])?;
    /// let places: Buffer<u32> = device.argsort(&x, Order::ascending())?;
    /// assert_eq!(places.to_vec()?, [1, 3, 2, 0]);
    /// assert_eq!(device.gather(&x, &places)?.to_vec()?, [-10, -10, 20, 30]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort<I: Argsortable<C>, P: Offset, C>(&self, input: I, order: C) -> Result<Buffer<P>> {
        input.argsort(self, &order)
    }

    /// [`Device::argsort`] into a slice, buffer or view of the same length. Waits for the result only if `output` is a
    /// host slice, or if an input has a [gather](Source::gathered). A count of elements is as in [`Device::sort_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::argsort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths
    /// differ, or if the arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let mut places = [0u64; 3];
    /// Device::best()?.argsort_into(&[2.0f64, 3.0, 1.0], Order::descending(), &mut places)?;
    /// assert_eq!(places, [1, 0, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort_into<'b, I: Argsortable<C>, P: Offset, C>(
        &self,
        input: I,
        order: C,
        output: impl Into<Output<'b, P>>,
    ) -> Result<()> {
        input.argsort_into(self, &order, output.into())
    }

    /// Body of [`Device::argsort_into`], compiled once per pair of types.
    #[inline(never)]
    fn argsort_one<T: Key, I: Offset>(
        &self,
        (input, count): Firsts<'_, T>,
        output: Output<'_, I>,
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        output.expect_len(n, "an argsort")?;
        let keys = Keys::new::<T>(order)?;
        expect_indices::<I>(n)?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (bytemuck::cast_slice(input.host()?), output.host()?);
                if size_of::<I>() == 4 {
                    cpu::places::<u32>(&keys, input, None, bytemuck::cast_slice_mut(output))?;
                } else {
                    cpu::places::<u64>(&keys, input, None, bytemuck::cast_slice_mut(output))?;
                }
            }
            Backend::OpenCl(device) => {
                gpu::argsort(device, &keys, (input.any(), count), (output.any(), size_of::<I>()), scratch)?;
            }
        }
        Ok(())
    }
}
