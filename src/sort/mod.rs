//! Sorting: keys ([`Device::sort`]), values with them ([`Device::sort_pairs`]), or the places of the keys in their order
//! ([`Device::argsort`]). All are stable: equal keys stay in their order. Segments each by itself: [`segmented`];
//! several columns of values: [`columns`]. In their own memory: [`in_place`].
//!
//! | property | |
//! |---|---|
//! | work | a pass for each 8 bits in which keys differ: one read and one write of each key and each value, and one read of the keys for all passes; where work-groups do not wait for one another, two reads of each key in each pass |
//! | keys | integers of up to 16 bytes and floats, ascending or descending, by all bits or [some](Order::bits) |
//! | order of floats | as NumPy's: -0 equals 0, and every NaN equals every other one and is larger than infinity. Each key keeps its bits. [`Order::total_order`] has all bits count |
//! | determinism | everywhere: the result is a function of the input |
//! | scratch | n keys (2 n without an output of keys) and n values, and some 256 counters for each work-group: [`Device::sort_scratch`] |
//! | limits | any n that fits the device |
//!
//! This is radix sort from the least significant digit on (Merrill and Grimshaw 2011). On a GPU the digits of all passes are
//! counted first; in a pass a work-group puts a tile of keys in order in local memory, learns from those before it how many of
//! each digit precede them, and moves each key to its place (Adinets and Merrill 2022). Where work-groups do not wait for one
//! another, each pass counts its digits for each work-group and adds the counts up. Passes over digits that are the same in all keys are left out without asking the host. On the
//! CPU the most significant digits put keys into buckets, in parallel, each of which one thread sorts in its cache; keys alone
//! are sorted by `rdst`. Keys of 16 bytes are sorted by merges there.

pub mod columns;
#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;
pub mod in_place;
pub(crate) mod keys;
pub mod segmented;

use bytemuck::Pod;

pub use keys::{Key, Order};

use crate::{Buffer, Device, Error, Input, Offset, Output, Result, Scratch, runtime::Backend};
#[cfg(feature = "opencl")]
use crate::{
    copy::gather::{Way, gpu as gather},
    runtime::{ClInput, opencl::ClDevice},
};
use keys::Keys;

/// The most keys whose places are `u32`.
pub(crate) const NARROW: usize = 1 << 32;

/// Bytes that a value of `size` goes along by: itself, or its place.
fn moved_bytes(size: usize, n: usize) -> usize {
    match size {
        1 | 2 | 4 | 8 | 16 => size,
        _ if n <= NARROW => 4,
        _ => 8,
    }
}

fn as_many(keys: usize, values: usize) -> Result<()> {
    if keys == values {
        return Ok(());
    }
    Err(Error::invalid(format!("sorting {keys} keys with {values} values")))
}

impl Device {
    /// The keys in order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device does not hold the result and as much scratch;
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the order names bits that keys have not.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[2.5f32, -0.0, f32::NAN, 0.0, -1.0])?;
    /// let sorted = device.sort(&x, Order::ascending())?.to_vec()?;
    /// // -0 and 0 are equal, and stay in their order; NaN is the largest.
    /// assert_eq!(sorted[..4], [-1.0, -0.0, 0.0, 2.5]);
    /// assert!(sorted[1].is_sign_negative() && sorted[4].is_nan());
    /// assert_eq!(device.sort(&[3u8, 1, 2], Order::descending())?.to_vec()?, [3, 2, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort<'a, T: Key>(&self, input: impl Into<Input<'a, T>>, order: Order) -> Result<Buffer<T>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.sort_one(input, Output::from(&mut output), &order, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::sort`] into a caller's slice, buffer or view of the same length. Does not wait, unless `output` is a host
    /// slice.
    ///
    /// # Errors
    ///
    /// As [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths differ, or both
    /// are over one memory of a user's and overlap.
    ///
    /// ```
    /// use oclprim::{Device, Order, Scratch};
    ///
    /// let device = Device::best()?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.sort_scratch::<i32>(3)?)?;
    /// let mut out = device.zeroed(3)?;
    /// for x in [[5i32, -7, 3], [2, 1, 0]] {
    ///     device.sort_into(&x, &mut out, Order::ascending(), &mut scratch)?;
    /// }
    /// assert_eq!(out.to_vec()?, [0, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_into<'a, 'b, T: Key>(
        &self,
        input: impl Into<Input<'a, T>>,
        output: impl Into<Output<'b, T>>,
        order: Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.sort_one(input.into(), output.into(), &order, scratch)
    }

    /// [`Device::sort_into`], built once for each type.
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
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input], &[&output])?;
                gpu::run(
                    device,
                    &*gpu::capabilities(device, &keys, &input)?,
                    &keys,
                    &input,
                    Some(&output),
                    None,
                    scratch,
                )?;
                output.finish(device)?;
            }
        }
        Ok(())
    }

    /// The bytes of scratch that sorts of `n` keys by all bits use.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the device cannot be asked what it can do.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// println!("{} bytes", device.sort_scratch::<f64>(1 << 20)?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_scratch<T: Key>(&self, n: usize) -> Result<usize> {
        self.sort_scratch_of(n, size_of::<T>(), 0, true)
    }

    fn sort_scratch_of(&self, n: usize, key_bytes: usize, value_bytes: usize, keys: bool) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::scratch_bytes(
                device,
                n,
                gpu::Form { key_bytes, value_bytes, passes: key_bytes, keys, floats: false },
            ),
        }
    }

    /// The keys in order, and each key's value at its place.
    ///
    /// Values are plain data of any size. Those of 1, 2, 4, 8 and 16 bytes go along with the keys; others are gathered by the
    /// places of the keys in the end.
    ///
    /// # Errors
    ///
    /// As [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there is not one value for
    /// each key; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if values have no bytes.
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
    pub fn sort_pairs<'a, 'b, K: Key, V: Pod>(
        &self,
        keys: impl Into<Input<'a, K>>,
        values: impl Into<Input<'b, V>>,
        order: Order,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (keys, values) = (keys.into(), values.into());
        let (mut keys_out, mut values_out) = (self.uninit(keys.len())?, self.uninit(values.len())?);
        let outputs = (Output::from(&mut keys_out), Output::from(&mut values_out));
        self.sort_pairs_one((keys, values), outputs, &order, &mut Scratch::new())?;
        Ok((keys_out, values_out))
    }

    /// [`Device::sort_pairs`] into a caller's slices, buffers or views. Does not wait, unless one of them is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::sort_pairs`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if a length differs, or
    /// two arguments are over one memory of a user's and overlap.
    ///
    /// ```
    /// use oclprim::{Device, Order, Scratch};
    ///
    /// let device = Device::best()?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.sort_pairs_scratch::<i64, f32>(3)?)?;
    /// let (mut keys, mut values) = (device.zeroed(3)?, device.zeroed(3)?);
    /// device.sort_pairs_into(
    ///     &[5i64, -1, 5], &[0.5f32, 1.5, 2.5], &mut keys, &mut values, Order::ascending(), &mut scratch,
    /// )?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![-1, 5, 5], vec![1.5, 0.5, 2.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_pairs_into<'a, 'b, 'c, 'd, K: Key, V: Pod>(
        &self,
        keys: impl Into<Input<'a, K>>,
        values: impl Into<Input<'b, V>>,
        keys_out: impl Into<Output<'c, K>>,
        values_out: impl Into<Output<'d, V>>,
        order: Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (inputs, outputs) = ((keys.into(), values.into()), (keys_out.into(), values_out.into()));
        self.sort_pairs_one(inputs, outputs, &order, scratch)
    }

    /// [`Device::sort_pairs_into`], built once for each pair of types.
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
            return Err(Error::unsupported("values of 0 bytes have no places"));
        }
        let keys = Keys::new::<K>(order)?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
                let (values, values_out) = (values.host()?, values_out.host()?);
                if cpu::pairs(&keys, (input, &mut *output), (values, &mut *values_out))? {
                    Ok(())
                } else if n <= NARROW {
                    let mut places = cpu::room::<u32>(n)?;
                    cpu::places(&keys, input, Some(output), &mut places)?;
                    self.gather_into(values, &places, values_out, &mut [0])
                } else {
                    let mut places = cpu::room::<u64>(n)?;
                    cpu::places(&keys, input, Some(output), &mut places)?;
                    self.gather_into(values, &places, values_out, &mut [0])
                }
            }
            #[cfg(feature = "opencl")]
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

    /// Values of any size from their places, which are all within.
    #[cfg(feature = "opencl")]
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

    /// Lets `sort` take values along; of other sizes than it can, it takes places, by which they are gathered.
    #[cfg(feature = "opencl")]
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

    /// The places that `sort` writes.
    #[cfg(feature = "opencl")]
    fn places_by<I: Offset>(
        &self,
        device: &ClDevice,
        n: usize,
        sort: impl FnOnce(gpu::Values<'_>) -> Result<()>,
    ) -> Result<Buffer<I>> {
        let mut places = self.uninit(n)?;
        let to = Output::from(&mut places).cl(device, false)?;
        sort(gpu::Values { bytes: size_of::<I>(), from: None, to: &to })?;
        to.finish(device)?;
        Ok(places)
    }

    /// The bytes of scratch that [`Device::sort_pairs_into`] uses for `n` keys by all bits, beside 4 or 8 for each value whose
    /// size is not 1, 2, 4, 8 or 16.
    ///
    /// # Errors
    ///
    /// As [`Device::sort_scratch`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// Scratch::new().reserve(&device, device.sort_pairs_scratch::<f32, u32>(1 << 16)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_pairs_scratch<K: Key, V: Pod>(&self, n: usize) -> Result<usize> {
        self.sort_scratch_of(n, size_of::<K>(), moved_bytes(size_of::<V>(), n), true)
    }

    /// The places of the keys in their order: `input[output[0]]` is the first key, `input[output[1]]` the next one. Indices are
    /// `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// As [`Device::sort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are more than 2^32 keys
    /// and indices are `u32`.
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
    pub fn argsort<'a, T: Key, I: Offset>(&self, input: impl Into<Input<'a, T>>, order: Order) -> Result<Buffer<I>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.argsort_one(input, Output::from(&mut output), &order, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::argsort`] into a caller's slice, buffer or view of the same length. Does not wait, unless `output` is a host
    /// slice.
    ///
    /// # Errors
    ///
    /// As [`Device::argsort`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths differ, or
    /// both are over one memory of a user's and overlap.
    ///
    /// ```
    /// use oclprim::{Device, Order, Scratch};
    ///
    /// let mut places = [0u64; 3];
    /// Device::best()?.argsort_into(&[2.0f64, 3.0, 1.0], &mut places, Order::descending(), &mut Scratch::new())?;
    /// assert_eq!(places, [1, 0, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort_into<'a, 'b, T: Key, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        output: impl Into<Output<'b, I>>,
        order: Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.argsort_one(input.into(), output.into(), &order, scratch)
    }

    /// [`Device::argsort_into`], built once for each pair of types.
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
            return Err(Error::invalid(format!("the places of {n} keys are no u32: there are 2^32")));
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
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input], &[&output])?;
                let with = gpu::Values { bytes: size_of::<I>(), from: None, to: &output };
                gpu::run(
                    device,
                    &*gpu::capabilities(device, &keys, &input)?,
                    &keys,
                    &input,
                    None,
                    Some(with),
                    scratch,
                )?;
                output.finish(device)?;
            }
        }
        Ok(())
    }

    /// The bytes of scratch that [`Device::argsort_into`] uses for `n` keys by all bits.
    ///
    /// # Errors
    ///
    /// As [`Device::sort_scratch`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// println!("{} bytes", device.argsort_scratch::<f64, u32>(1 << 20)?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn argsort_scratch<T: Key, I: Offset>(&self, n: usize) -> Result<usize> {
        self.sort_scratch_of(n, size_of::<T>(), size_of::<I>(), false)
    }
}
