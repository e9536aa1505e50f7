//! Stable sorts: of keys ([`Device::sort`]), of keys with values ([`Device::sort_pairs`]), and of indices by key
//! ([`Device::argsort`]). Submodules sort each segment ([`segmented`]), keys with several columns of values
//! ([`columns`]), or keys in place ([`in_place`]).
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
pub mod segmented;

use bytemuck::Pod;

pub use crate::keys::{Key, Order};

use crate::{
    Buffer, Device, Error, Input, Offset, Output, Result, Scratch, Source,
    keys::Keys,
    memory,
    runtime::Backend,
    source::{Grouped, finite},
};
use crate::{
    layout::copy::gather::{Way, gpu as gather},
    runtime::{ClInput, opencl::ClDevice},
};

/// The largest number of keys whose indices fit `u32`.
pub(crate) const NARROW: usize = 1 << 32;

fn as_many(keys: usize, values: usize) -> Result<()> {
    if keys == values {
        return Ok(());
    }
    Err(Error::invalid(format!("sorting {keys} keys with {values} values")))
}

/// An input of a sort: a [`Source`], or [segments](Source::segments) of one.
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Order, Source, sort::Sortable};
///
/// fn sorted<I: Sortable>(input: I) -> oclprim::Result<Vec<I::Item>> {
///     Device::best()?.sort(input, Order::ascending())?.to_vec()
/// }
/// let x = [3u8, 1, 2];
/// assert_eq!((sorted(&x)?, sorted(x.segments(&[0u32, 1, 3]))?), (vec![1, 2, 3], vec![3, 1, 2]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a sort",
    label = "expected a source, or segments of one: `x.segments(&offsets)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Sortable: Grouped<Item: Key> {
    /// The number of keys. Checks the offsets of segments.
    #[doc(hidden)]
    fn checked(&self, device: &Device) -> Result<usize>;

    #[doc(hidden)]
    fn sort_into(self, device: &Device, output: Output<'_, Self::Item>, order: &Order) -> Result<()>;

    #[doc(hidden)]
    fn sort_pairs_into<V: Pod + Send + Sync>(
        self,
        device: &Device,
        values: Input<'_, V>,
        outputs: (Output<'_, Self::Item>, Output<'_, V>),
        order: &Order,
    ) -> Result<()>;

    #[doc(hidden)]
    fn argsort_into<P: Offset>(self, device: &Device, output: Output<'_, P>, order: &Order) -> Result<()>;
}

impl<S: Source<Item: Key>> Sortable for S {
    fn checked(&self, _: &Device) -> Result<usize> {
        finite(self)
    }

    fn sort_into(self, device: &Device, output: Output<'_, S::Item>, order: &Order) -> Result<()> {
        device.sort_one(self.held(device)?.input(), output, order, &mut Scratch::new())
    }

    fn sort_pairs_into<V: Pod + Send + Sync>(
        self,
        device: &Device,
        values: Input<'_, V>,
        outputs: (Output<'_, S::Item>, Output<'_, V>),
        order: &Order,
    ) -> Result<()> {
        device.sort_pairs_one((self.held(device)?.input(), values), outputs, order, &mut Scratch::new())
    }

    fn argsort_into<P: Offset>(self, device: &Device, output: Output<'_, P>, order: &Order) -> Result<()> {
        device.argsort_one(self.held(device)?.input(), output, order, &mut Scratch::new())
    }
}

/// # Sorts
///
/// These methods return the sorted keys, with or without values, or the indices that sort the keys. Module:
/// [`sort`](crate::sort).
impl Device {
    /// Stable sort: a copy of the keys in `order`, in which equal keys keep their order.
    ///
    /// Each [segment](Source::segments) is sorted separately, in its own range. Keys before the first offset, and from
    /// the last offset on, belong to no segment and keep their indices. The keys of an expression are written to memory
    /// first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result and as much scratch do not fit the
    /// device; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the order selects bits that the keys do
    /// not have. The same error if an offset is beyond the next one or beyond the input, or if there are no offsets.
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
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort<I: Sortable>(&self, input: I, order: Order) -> Result<Buffer<I::Item>> {
        let mut output = self.uninit(input.checked(self)?)?;
        input.sort_into(self, Output::from(&mut output), &order)?;
        Ok(output)
    }

    /// [`Device::sort`] into a slice, buffer or view of the same length. Waits for the result only if `output` is a
    /// host slice, or if the input has a [gather](Source::gathered).
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
    ///     device.sort_into(&x, &mut out, Order::ascending())?;
    /// }
    /// assert_eq!(out.to_vec()?, [0, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_into<'b, I: Sortable>(
        &self,
        input: I,
        output: impl Into<Output<'b, I::Item>>,
        order: Order,
    ) -> Result<()> {
        input.sort_into(self, output.into(), &order)
    }

    /// Body of [`Device::sort_into`], compiled once per type.
    #[inline(never)]
    fn sort_one<T: Key>(
        &self,
        input: Input<'_, T>,
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
                gpu::sort(device, &keys, input.any(), output.any(), scratch)?;
            }
        }
        Ok(())
    }

    /// Stable sort of keys with values: the sorted keys, and the values in the order of their keys.
    ///
    /// Each [segment](Source::segments) of the keys is sorted separately, with its values. Values are plain data of any
    /// size. Values of 1, 2, 4, 8 and 16 bytes move with the keys. Values of other sizes are gathered by the sorted
    /// indices at the end.
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the numbers of
    /// keys and values differ; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the values are zero-sized.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (ages, names) = (device.upload(&[41u8, 7, 41])?, device.upload(&[*b"Ida", *b"Bo ", *b"Lu "])?);
    /// let (ages, names) = device.sort_pairs(&ages, &names, Order::descending())?;
    /// assert_eq!((ages.to_vec()?, names.to_vec()?), (vec![41, 41, 7], vec![*b"Ida", *b"Lu ", *b"Bo "]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_pairs<'b, I: Sortable, V: Pod + Send + Sync>(
        &self,
        keys: I,
        values: impl Into<Input<'b, V>>,
        order: Order,
    ) -> Result<(Buffer<I::Item>, Buffer<V>)> {
        let values = values.into();
        let (mut keys_out, mut values_out) = (self.uninit(keys.checked(self)?)?, self.uninit(values.len())?);
        let outputs = (Output::from(&mut keys_out), Output::from(&mut values_out));
        keys.sort_pairs_into(self, values, outputs, &order)?;
        Ok((keys_out, values_out))
    }

    /// [`Device::sort_pairs`] into slices, buffers or views. Waits for the result only if an output is a host slice, or
    /// if the keys have a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::sort_pairs`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if a length
    /// does not match, or two arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let (mut keys, mut values) = (device.zeroed(3)?, device.zeroed(3)?);
    /// device.sort_pairs_into(
    ///     &[5i64, -1, 5], &[0.5f32, 1.5, 2.5], &mut keys, &mut values, Order::ascending(),
    /// )?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![-1, 5, 5], vec![1.5, 0.5, 2.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_pairs_into<'b, 'c, 'd, I: Sortable, V: Pod + Send + Sync>(
        &self,
        keys: I,
        values: impl Into<Input<'b, V>>,
        keys_out: impl Into<Output<'c, I::Item>>,
        values_out: impl Into<Output<'d, V>>,
        order: Order,
    ) -> Result<()> {
        keys.sort_pairs_into(self, values.into(), (keys_out.into(), values_out.into()), &order)
    }

    /// Body of [`Device::sort_pairs_into`], compiled once per pair of types.
    #[inline(never)]
    fn sort_pairs_one<K: Key, V: Pod>(
        &self,
        (input, values): (Input<'_, K>, Input<'_, V>),
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
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                let (values, values_out) = (values.cl(device)?, values_out.cl(device, false)?);
                crate::runtime::apart(&[&input, &values], &[&output, &values_out])?;
                let caps = gpu::capabilities(device, &keys, &input)?;
                self.with_values(device, size, n, (&values, &values_out), |with| {
                    gpu::run(device, &caps, &keys, &input, Some(&output), Some(with), scratch)
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
    /// [segments](Source::segments), they count from the start of the whole input.
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
    pub fn argsort<I: Sortable, P: Offset>(&self, input: I, order: Order) -> Result<Buffer<P>> {
        let mut output = self.uninit(input.checked(self)?)?;
        input.argsort_into(self, Output::from(&mut output), &order)?;
        Ok(output)
    }

    /// [`Device::argsort`] into a slice, buffer or view of the same length. Waits for the result only if `output` is a
    /// host slice, or if the input has a [gather](Source::gathered).
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
    /// Device::best()?.argsort_into(&[2.0f64, 3.0, 1.0], &mut places, Order::descending())?;
    /// assert_eq!(places, [1, 0, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort_into<'b, I: Sortable, P: Offset>(
        &self,
        input: I,
        output: impl Into<Output<'b, P>>,
        order: Order,
    ) -> Result<()> {
        input.argsort_into(self, output.into(), &order)
    }

    /// Body of [`Device::argsort_into`], compiled once per pair of types.
    #[inline(never)]
    fn argsort_one<T: Key, I: Offset>(
        &self,
        input: Input<'_, T>,
        output: Output<'_, I>,
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        output.expect_len(n, "an argsort")?;
        let keys = Keys::new::<T>(order)?;
        if size_of::<I>() == 4 && n > NARROW {
            return Err(Error::invalid(format!("the indices of {n} keys do not fit u32: at most 2^32 keys do")));
        }
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
                gpu::argsort(device, &keys, input.any(), (output.any(), size_of::<I>()), scratch)?;
            }
        }
        Ok(())
    }
}
