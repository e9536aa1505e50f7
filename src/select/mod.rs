//! Select: the elements that a condition holds for, side by side and in their order; [`partition`] them from the others; the
//! [`runs`] of equal neighbours, and what they come to ([`by_key`]); the differences of neighbours ([`adjacent`]).
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one write of what is selected where work-groups can wait for one another; else, and in partitions, two reads |
//! | order | that of the input, but for [`Device::select_unordered`] |
//! | determinism | everywhere: elements are moved, not computed; the unordered form has no order |
//! | scratch | at most 32 bytes for each KiB of the input, where there is local memory for each 8 KiB: [`Device::select_scratch`] |
//! | limits | any n that fits the device; values of up to 64 KiB |
//!
//! The count of what is selected is an output of its own, one `u64`, which can stay on the device: forms that end in `_into` do
//! not wait for it. Where less fits the output, the first are there, nothing is written beyond, and the count says how much room
//! it takes. That is an error where the count is a host slice; else [`Device::selected`] reads it, and compares. What an output
//! has behind the count stays as it was. The other forms allocate for all elements, wait for the count, and
//! [truncate](Buffer::truncate).
//!
//! Tiles are put in order in local memory, and written side by side. Where they go is the count of all before them, which they
//! find by decoupled look-back (Merrill and Garland 2016), or by a scan of the counts of all tiles.

pub mod adjacent;
pub mod by_key;
#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;
pub mod partition;
pub mod runs;

use std::ops::Range;

use bytemuck::Pod;

#[cfg(feature = "opencl")]
use crate::runtime::apart;
use crate::{Buffer, Device, Element, Error, Input, Offset, Output, Result, Scratch, op::Map, runtime::Backend};

/// Bytes of a value that moves beside what is marked, at most.
const VALUE_BYTES: usize = 64 << 10;

/// Values of this type can be moved.
fn expect_values<V>() -> Result<()> {
    match size_of::<V>() {
        1..=VALUE_BYTES => Ok(()),
        size => Err(Error::unsupported(format!("values of {size} bytes cannot be selected; 1 to {VALUE_BYTES} can"))),
    }
}

/// Flags, or values, for each of `n`.
pub(crate) fn expect_beside(n: usize, len: usize, what: &str) -> Result<()> {
    if n == len {
        return Ok(());
    }
    Err(Error::invalid(format!("{n} {what}, got {len}")))
}

/// Runs `call`, which writes what there is `room` for, and to `count` how many there are. Where that comes back to the host, more
/// are an error.
pub(crate) fn in_room(
    what: &str,
    room: usize,
    count: Output<'_, u64>,
    call: impl FnOnce(Output<'_, u64>) -> Result<()>,
) -> Result<()> {
    count.expect_len(1, "a count")?;
    match count {
        Output::Host(count) => {
            call(Output::Host(&mut *count))?;
            expect_room(what, room, count[0])
        }
        count => call(count),
    }
}

fn expect_room(what: &str, room: usize, found: u64) -> Result<()> {
    if found <= room as u64 {
        return Ok(());
    }
    Err(Error::invalid(format!("the {what} has {found} elements, the output has room for {room}")))
}

/// Numbers of type `I` count `n` elements, or tell their places.
fn expect_numbers<I: Offset>(n: usize) -> Result<()> {
    if size_of::<I>() == 4 && n > u32::MAX as usize {
        return Err(Error::invalid(format!("places and lengths among {n} elements are no u32")));
    }
    Ok(())
}

impl Device {
    /// The elements that `predicate` holds for, in their order.
    ///
    /// The function takes the type that `T` is computed with, `f32` for `f16` and `bf16`, else `T` itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver refuses the expression: the
    /// [log](crate::Error::build_log) shows its lines; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device
    /// lacks fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let positive = Map::new(|x: f32| x > 0.0, "x > 0");
    /// let found = Device::best()?.select(&[1.5f32, -2.0, 0.5, f32::NAN, 3.0], &positive)?;
    /// assert_eq!(found.to_vec()?, [1.5, 0.5, 3.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select<'a, T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        predicate: &Map<F>,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        self.counted(input.len(), |output, count| {
            self.select_by(input, predicate, output, count, false, &mut Scratch::new())
        })
    }

    /// [`Device::select`] into a caller's slice, buffer or view, which need not have room for all; how many there are goes to
    /// the one element of `count`. Does not wait, unless an output is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::select`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `count` has not one element,
    /// arguments are over one memory of a user's and overlap, or `count` is a host slice and there is no room for all.
    ///
    /// ```
    /// use oclprim::{Device, Scratch, op::Map};
    ///
    /// let device = Device::best()?;
    /// let even = Map::new(|x: u8| x % 2 == 0, "x % 2 == 0");
    /// let (mut found, mut count) = (device.zeroed::<u8>(2)?, device.zeroed::<u64>(1)?);
    /// device.select_into(&[4u8, 7, 2, 0], &even, &mut found, &mut count, &mut Scratch::new())?;
    /// assert_eq!((found.to_vec()?, count.to_vec()?), (vec![4, 2], vec![3]));
    ///
    /// let (mut found, mut count) = ([0; 2], [0]);
    /// let short = device.select_into(&[4u8, 7, 2, 0], &even, &mut found, &mut count, &mut Scratch::new());
    /// assert_eq!(short.unwrap_err().to_string(), "the result has 3 elements, the output has room for 2");
    /// assert_eq!((found, count), ([4, 2], [3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_into<'a, 'b, 'c, T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        predicate: &Map<F>,
        output: impl Into<Output<'b, T>>,
        count: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.select_by(input.into(), predicate, output.into(), count.into(), false, scratch)
    }

    /// The elements that `predicate` holds for, in no order, and not in the same one on every run: faster than
    /// [`Device::select`] where many small work-groups would wait for one another, or the input be read twice.
    ///
    /// # Errors
    ///
    /// As [`Device::select`].
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let large = Map::new(|x: i32| x > 4, "x > 4");
    /// let mut found = Device::best()?.select_unordered(&[9, 1, 5, 7], &large)?.to_vec()?;
    /// found.sort();
    /// assert_eq!(found, [5, 7, 9]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_unordered<'a, T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        predicate: &Map<F>,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        self.counted(input.len(), |output, count| {
            self.select_by(input, predicate, output, count, true, &mut Scratch::new())
        })
    }

    /// [`Device::select_unordered`] into a caller's slice, buffer or view, as [`Device::select_into`]. Which elements are there
    /// is unspecified, too, where there is no room for all.
    ///
    /// # Errors
    ///
    /// As [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch, op::Map};
    ///
    /// let large = Map::new(|x: u64| x > 4, "x > 4");
    /// let (mut found, mut count) = ([0u64; 3], [0]);
    /// Device::best()?.select_unordered_into(&[9u64, 1, 5, 7], &large, &mut found, &mut count, &mut Scratch::new())?;
    /// assert_eq!((found.iter().sum::<u64>(), count), (21, [3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_unordered_into<'a, 'b, 'c, T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        predicate: &Map<F>,
        output: impl Into<Output<'b, T>>,
        count: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.select_by(input.into(), predicate, output.into(), count.into(), true, scratch)
    }

    /// What `select` fills of a buffer for `n` elements, and says the count of.
    fn counted<T: Pod>(
        &self,
        n: usize,
        select: impl FnOnce(Output<'_, T>, Output<'_, u64>) -> Result<()>,
    ) -> Result<Buffer<T>> {
        let (mut output, mut count) = (self.uninit(n)?, [0]);
        select(Output::from(&mut output), Output::from(&mut count))?;
        output.truncate(count[0] as usize);
        Ok(output)
    }

    #[inline(never)]
    fn select_by<T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: Input<'_, T>,
        predicate: &Map<F>,
        output: Output<'_, T>,
        count: Output<'_, u64>,
        unordered: bool,
        scratch: &mut Scratch,
    ) -> Result<()> {
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let list = |&x: &T| (usize::from(!(predicate.function)(x.widen())), x);
                let [found] = cpu::lists(input.len(), &|part| input[part].iter().map(list), &|x| x, [output.host()?]);
                count.host()?[0] = found as u64;
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, output, count) = (input.cl(device)?, output.cl(device, true)?, count.cl(device, false)?);
                apart(&[&input], &[&output, &count])?;
                let form = gpu::Form { unordered, ..gpu::Form::of(gpu::Marks::by::<T, F>(predicate)) };
                let job = gpu::Job { out: Some(&output), ..gpu::Job::of(&input, &count) };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                output.finish(device)
            }
        })
    }

    /// The values whose flags are not 0, in their order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are not as many flags as values;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if values have no bytes or more than 64 KiB.
    ///
    /// ```
    /// let found = oclprim::Device::best()?.select_flagged(&[[1u8, 2, 3], [4, 5, 6], [7, 8, 9]], &[1, 0, 255])?;
    /// assert_eq!(found.to_vec()?, [[1, 2, 3], [7, 8, 9]]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_flagged<'a, 'b, V: Pod + Send + Sync>(
        &self,
        values: impl Into<Input<'a, V>>,
        flags: impl Into<Input<'b, u8>>,
    ) -> Result<Buffer<V>> {
        let values = values.into();
        self.counted(values.len(), |output, count| {
            self.move_flagged(values, flags.into(), output, count, 1, &mut Scratch::new())
        })
    }

    /// [`Device::select_flagged`] into a caller's slice, buffer or view, as [`Device::select_into`].
    ///
    /// # Errors
    ///
    /// As [`Device::select_flagged`] and [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let (mut found, mut count) = ([0u32; 4], [0]);
    /// Device::best()?.select_flagged_into(&[5u32, 6, 7], &[0, 1, 1], &mut found, &mut count, &mut Scratch::new())?;
    /// assert_eq!((found, count), ([6, 7, 0, 0], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_flagged_into<'a, 'b, 'c, 'd, V: Pod + Send + Sync>(
        &self,
        values: impl Into<Input<'a, V>>,
        flags: impl Into<Input<'b, u8>>,
        output: impl Into<Output<'c, V>>,
        count: impl Into<Output<'d, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.move_flagged(values.into(), flags.into(), output.into(), count.into(), 1, scratch)
    }

    /// Flagged values, and with `lists` = 2 the others behind them.
    #[inline(never)]
    fn move_flagged<V: Pod + Send + Sync>(
        &self,
        values: Input<'_, V>,
        flags: Input<'_, u8>,
        output: Output<'_, V>,
        count: Output<'_, u64>,
        lists: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        expect_values::<V>()?;
        expect_beside(values.len(), flags.len(), "values need as many flags")?;
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let (values, flags) = (values.host()?, flags.host()?);
                let list = |&flag: &u8| usize::from(flag == 0);
                let (n, output) = (flags.len(), output.host()?);
                // Wide values are not kept beside one another first.
                let found = if size_of::<V>() <= 16 {
                    let items =
                        |part: Range<usize>| flags[part.clone()].iter().map(list).zip(values[part].iter().copied());
                    cpu::flagged(n, &items, &|x| x, output, lists == 2)
                } else {
                    let items = |part: Range<usize>| flags[part.clone()].iter().map(list).zip(part);
                    cpu::flagged(n, &items, &|i: usize| values[i], output, lists == 2)
                };
                count.host()?[0] = found as u64;
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (values, flags) = (values.cl(device)?, flags.cl(device)?);
                let (output, count) = (output.cl(device, lists == 1)?, count.cl(device, false)?);
                apart(&[&values, &flags], &[&output, &count])?;
                let form = gpu::Form {
                    classes: lists,
                    moved: false,
                    value: size_of::<V>(),
                    ..gpu::Form::of(gpu::Marks::Flags)
                };
                let job = gpu::Job { values: Some((&values, &output)), ..gpu::Job::of(&flags, &count) };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                output.finish(device)
            }
        })
    }

    /// The places of the elements that `predicate` holds for, in their order: `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// As [`Device::select`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are 2^32 elements or
    /// more and places are `u32`.
    ///
    /// ```
    /// use oclprim::{Buffer, Device, op::Map};
    ///
    /// let zero = Map::new(|x: i16| x == 0, "x == 0");
    /// let places: Buffer<u32> = Device::best()?.select_indices(&[0i16, 5, 0, 0], &zero)?;
    /// assert_eq!(places.to_vec()?, [0, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices<'a, T: Element, I: Offset, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        predicate: &Map<F>,
    ) -> Result<Buffer<I>> {
        let input = input.into();
        self.counted(input.len(), |output, count| {
            self.select_indices_into(input, predicate, output, count, &mut Scratch::new())
        })
    }

    /// [`Device::select_indices`] into a caller's slice, buffer or view, as [`Device::select_into`].
    ///
    /// # Errors
    ///
    /// As [`Device::select_indices`] and [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch, op::Map};
    ///
    /// let large = Map::new(|x: u32| x > 4, "x > 4");
    /// let (mut places, mut count) = ([0u64; 2], [0]);
    /// Device::best()?.select_indices_into(&[9u32, 1, 5], &large, &mut places, &mut count, &mut Scratch::new())?;
    /// assert_eq!((places, count), ([0, 2], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_into<'a, 'b, 'c, T: Element, I: Offset, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        predicate: &Map<F>,
        output: impl Into<Output<'b, I>>,
        count: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let takes = |x: T| (predicate.function)(x.widen());
        #[cfg(feature = "opencl")]
        let marks = || gpu::Marks::by::<T, F>(predicate);
        #[cfg(not(feature = "opencl"))]
        let marks = || ();
        self.places((input.into(), &takes), &marks, output.into(), count.into(), scratch)
    }

    /// The places of the flags that are not 0, in their order: `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are 2^32 flags or more and places are `u32`.
    ///
    /// ```
    /// let places = oclprim::Device::best()?.select_indices_flagged::<u64>(&[0, 1, 0, 7])?;
    /// assert_eq!(places.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_flagged<'a, I: Offset>(&self, flags: impl Into<Input<'a, u8>>) -> Result<Buffer<I>> {
        let flags = flags.into();
        self.counted(flags.len(), |output, count| {
            self.select_indices_flagged_into(flags, output, count, &mut Scratch::new())
        })
    }

    /// [`Device::select_indices_flagged`] into a caller's slice, buffer or view, as [`Device::select_into`].
    ///
    /// # Errors
    ///
    /// As [`Device::select_indices_flagged`] and [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let (mut places, mut count) = ([0u32; 2], [0]);
    /// Device::best()?.select_indices_flagged_into(&[0u8, 1, 1], &mut places, &mut count, &mut Scratch::new())?;
    /// assert_eq!((places, count), ([1, 2], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_flagged_into<'a, 'b, 'c, I: Offset>(
        &self,
        flags: impl Into<Input<'a, u8>>,
        output: impl Into<Output<'b, I>>,
        count: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        #[cfg(feature = "opencl")]
        let marks = || gpu::Marks::Flags;
        #[cfg(not(feature = "opencl"))]
        let marks = || ();
        self.places((flags.into(), &|flag| flag != 0), &marks, output.into(), count.into(), scratch)
    }

    /// The places of what `takes`, and `marks` in OpenCL C, tell.
    #[inline(never)]
    fn places<T: Element, I: Offset>(
        &self,
        (input, takes): (Input<'_, T>, &(impl Fn(T) -> bool + Sync)),
        marks: &dyn Fn() -> DeviceMarks,
        output: Output<'_, I>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        expect_numbers::<I>(input.len())?;
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let items = |part: Range<usize>| input[part.clone()].iter().map(|&x| usize::from(!takes(x))).zip(part);
                let [found] = cpu::lists(input.len(), &items, &|i| I::from_i128(i as i128), [output.host()?]);
                count.host()?[0] = found as u64;
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, output, count) = (input.cl(device)?, output.cl(device, true)?, count.cl(device, false)?);
                apart(&[&input], &[&output, &count])?;
                let form = gpu::Form { moved: false, places: true, place: size_of::<I>(), ..gpu::Form::of(marks()) };
                let job = gpu::Job { places: Some(&output), ..gpu::Job::of(&input, &count) };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                output.finish(device)
            }
        })
    }

    /// How many elements were selected, from the one element of `count`, where an output has room for `room`. Waits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with both numbers if there are more, or if `count` has not
    /// one element.
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let (mut found, mut count) = (device.zeroed::<u8>(1)?, device.zeroed::<u64>(1)?);
    /// device.select_flagged_into(&[5u8, 6, 7], &[0, 1, 1], &mut found, &mut count, &mut Scratch::new())?;
    /// assert_eq!(device.selected(&count, 2)?, 2);
    /// let error = device.selected(&count, found.len()).unwrap_err();
    /// assert_eq!(error.to_string(), "the result has 2 elements, the output has room for 1");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn selected<'a>(&self, count: impl Into<Input<'a, u64>>, room: usize) -> Result<usize> {
        let count = count.into();
        expect_beside(1, count.len(), "count is read")?;
        let found = match count {
            Input::Host(count) => count[0],
            Input::Device(view) => view.to_vec()?[0],
        };
        expect_room("result", room, found)?;
        Ok(found as usize)
    }

    /// The bytes of scratch that selections, partitions and the runs of `n` elements of type `T` use at most.
    ///
    /// # Errors
    ///
    /// As [`Device::capabilities`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// oclprim::Scratch::new().reserve(&device, device.select_scratch::<f32>(100_000)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_scratch<T: Element>(&self, n: usize) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => device.most_of("select", |caps| gpu::scratch_bytes(n, size_of::<T>(), caps)),
        }
    }
}

/// What tells a kernel the lists of elements.
#[cfg(feature = "opencl")]
type DeviceMarks = gpu::Marks;
#[cfg(not(feature = "opencl"))]
type DeviceMarks = ();
