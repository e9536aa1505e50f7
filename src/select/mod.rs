//! Select: the elements for which a predicate is true, in the order of the input.
//!
//! [`partition`] also keeps the other elements. [`runs`] finds runs of equal neighbours, and [`by_key`] reduces their
//! values. [`adjacent`] computes differences of neighbours.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one write of the selected elements with decoupled look-back; else, and in partitions without an unstable tail, two reads |
//! | order | that of the input, except for [`Device::select_unordered`] |
//! | determinism | same bits everywhere, since elements are only moved; unordered selections have no fixed order |
//! | scratch | about 32 bytes for each 8 KiB of the input, or for each KiB on devices with little local memory |
//! | limits | any n that fits the device; values of up to 64 KiB |
//!
//! The number of selected elements is an output of its own, one `u64`, which may be on the device. Methods that end in
//! `_into` wait only if an output is a host slice, or if an input has a [gather](crate::Source::gathered). A too short
//! output receives the first elements, and no element is written beyond its end. The count is then the length that the
//! output needs. If the count is a host slice, a too short output is an error; otherwise [`Device::selected`] reads and
//! checks the count. Elements of an output at indices from the count on do not change.
//!
//! The other methods allocate memory for all elements, wait for the count, and [truncate](Buffer::truncate).
//!
//! Each tile is compacted in local memory and then written contiguously. Its offset in the output is the count of all
//! tiles before it. Decoupled look-back (Merrill and Garland 2016) or a scan of all counts yields this offset.

pub mod adjacent;
pub mod by_key;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod partition;
pub mod runs;

use std::ops::Range;

use bytemuck::Pod;

use crate::runtime::apart;
use crate::{
    Buffer, Device, Element, Error, Input, Offset, Output, Result, Scratch, Source,
    arguments::expect_beside,
    counted::{expect_room, in_room},
    op::Map,
    runtime::Backend,
};

/// Maximum bytes of a value that moves with a flag or a key.
const VALUE_BYTES: usize = 64 << 10;

/// Checks that values of this type can be moved.
fn expect_values<V>() -> Result<()> {
    match size_of::<V>() {
        1..=VALUE_BYTES => Ok(()),
        size => Err(Error::unsupported(format!("values of {size} bytes cannot be selected; 1 to {VALUE_BYTES} can"))),
    }
}

/// Checks that numbers of type `I` can count `n` elements, and hold their indices.
fn expect_numbers<I: Offset>(n: usize) -> Result<()> {
    if size_of::<I>() == 4 && n > u32::MAX as usize {
        return Err(Error::invalid(format!("indices and lengths among {n} elements do not fit u32")));
    }
    Ok(())
}

/// # Selections
///
/// These methods return the elements that a predicate or a flag selects, or their indices. Module:
/// [`select`](crate::select).
impl Device {
    /// The elements for which `predicate` is true, in their order.
    ///
    /// The argument of the function has the type in which `T` is computed: `f32` for `f16` and `bf16`, else `T` itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects the expression; line numbers in the
    /// [log](crate::Error::build_log) refer to the expression.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let positive = Map::new(|x: f32| x > 0.0, "x > 0");
    /// let found = Device::best()?.select(&[1.5f32, -2.0, 0.5, f32::NAN, 3.0], &positive)?;
    /// assert_eq!(found.to_vec()?, [1.5, 0.5, 3.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select<T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Source<Item = T>,
        predicate: &Map<F>,
    ) -> Result<Buffer<T>> {
        let held = input.held(self)?;
        let input = held.input();
        self.counted(input.len(), |output, count| {
            self.select_by(input, predicate, output, count, false, &mut Scratch::new())
        })
    }

    /// [`Device::select`] into a slice, buffer or view, which may be too short. The number of selected elements goes to
    /// the single element of `count`.
    ///
    /// Waits for the result only if an output is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::select`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `count` does not have
    /// exactly one element, or if arguments overlap in imported OpenCL memory. The same error if `count` is a host
    /// slice and `output` is too short.
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let device = Device::best()?;
    /// let even = Map::new(|x: u8| x % 2 == 0, "x % 2 == 0");
    /// let (mut found, mut count) = (device.zeroed::<u8>(2)?, device.zeroed::<u64>(1)?);
    /// device.select_into(&[4u8, 7, 2, 0], &even, &mut found, &mut count)?;
    /// assert_eq!((found.to_vec()?, count.to_vec()?), (vec![4, 2], vec![3]));
    ///
    /// let (mut found, mut count) = ([0; 2], [0]);
    /// let short = device.select_into(&[4u8, 7, 2, 0], &even, &mut found, &mut count);
    /// assert_eq!(short.unwrap_err().to_string(), "the result has 3 elements, the output has room for 2");
    /// assert_eq!((found, count), ([4, 2], [3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_into<'b, 'c, T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Source<Item = T>,
        predicate: &Map<F>,
        output: impl Into<Output<'b, T>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.select_by(input.held(self)?.input(), predicate, output.into(), count.into(), false, &mut Scratch::new())
    }

    /// The elements for which `predicate` is true, in any order, which may differ from run to run.
    ///
    /// This method is faster than [`Device::select`] if `select` reads the input twice, or if many small work-groups
    /// wait for one another.
    ///
    /// # Errors
    ///
    /// Same as [`Device::select`].
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
    pub fn select_unordered<T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Source<Item = T>,
        predicate: &Map<F>,
    ) -> Result<Buffer<T>> {
        let held = input.held(self)?;
        let input = held.input();
        self.counted(input.len(), |output, count| {
            self.select_by(input, predicate, output, count, true, &mut Scratch::new())
        })
    }

    /// [`Device::select_unordered`] into a slice, buffer or view. All else is as in [`Device::select_into`].
    ///
    /// Which elements a too short output receives is unspecified.
    ///
    /// # Errors
    ///
    /// Same as [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let large = Map::new(|x: u64| x > 4, "x > 4");
    /// let (mut found, mut count) = ([0u64; 3], [0]);
    /// Device::best()?.select_unordered_into(&[9u64, 1, 5, 7], &large, &mut found, &mut count)?;
    /// assert_eq!((found.iter().sum::<u64>(), count), (21, [3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_unordered_into<'b, 'c, T: Element, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Source<Item = T>,
        predicate: &Map<F>,
        output: impl Into<Output<'b, T>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.select_by(input.held(self)?.input(), predicate, output.into(), count.into(), true, &mut Scratch::new())
    }

    /// A buffer for `n` elements, truncated to the count that `select` writes.
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
                let [found] = cpu::lists(input.len(), &|part| input[part].iter().map(list), &|x| x, [output.host()?])?;
                count.host()?[0] = found as u64;
                Ok(())
            }
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
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of flags and values differ.
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

    /// [`Device::select_flagged`] into a slice, buffer or view. All else is as in [`Device::select_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::select_flagged`] and [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let (mut found, mut count) = ([0u32; 4], [0]);
    /// Device::best()?.select_flagged_into(&[5u32, 6, 7], &[0, 1, 1], &mut found, &mut count)?;
    /// assert_eq!((found, count), ([6, 7, 0, 0], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_flagged_into<'a, 'b, 'c, 'd, V: Pod + Send + Sync>(
        &self,
        values: impl Into<Input<'a, V>>,
        flags: impl Into<Input<'b, u8>>,
        output: impl Into<Output<'c, V>>,
        count: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        self.move_flagged(values.into(), flags.into(), output.into(), count.into(), 1, &mut Scratch::new())
    }

    /// Writes the flagged values; with `lists` = 2, the other values follow.
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
                // Wide values are not copied to the lists first.
                let found = if size_of::<V>() <= 16 {
                    let items =
                        |part: Range<usize>| flags[part.clone()].iter().map(list).zip(values[part].iter().copied());
                    cpu::flagged(n, &items, &|x| x, output, lists == 2)?
                } else {
                    let items = |part: Range<usize>| flags[part.clone()].iter().map(list).zip(part);
                    cpu::flagged(n, &items, &|i: usize| values[i], output, lists == 2)?
                };
                count.host()?[0] = found as u64;
                Ok(())
            }
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

    /// The indices of the elements for which `predicate` is true, in their order: `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// Same as [`Device::select`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are 2^32
    /// elements or more and indices are `u32`.
    ///
    /// ```
    /// use oclprim::{Buffer, Device, op::Map};
    ///
    /// let zero = Map::new(|x: i16| x == 0, "x == 0");
    /// let places: Buffer<u32> = Device::best()?.select_indices(&[0i16, 5, 0, 0], &zero)?;
    /// assert_eq!(places.to_vec()?, [0, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices<T: Element, I: Offset, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Source<Item = T>,
        predicate: &Map<F>,
    ) -> Result<Buffer<I>> {
        let held = input.held(self)?;
        let input = held.input();
        self.counted(input.len(), |output, count| self.select_indices_into(input, predicate, output, count))
    }

    /// [`Device::select_indices`] into a slice, buffer or view. All else is as in [`Device::select_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::select_indices`] and [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let large = Map::new(|x: u32| x > 4, "x > 4");
    /// let (mut places, mut count) = ([0u64; 2], [0]);
    /// Device::best()?.select_indices_into(&[9u32, 1, 5], &large, &mut places, &mut count)?;
    /// assert_eq!((places, count), ([0, 2], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_into<'b, 'c, T: Element, I: Offset, F: Fn(T::Acc) -> bool + Sync>(
        &self,
        input: impl Source<Item = T>,
        predicate: &Map<F>,
        output: impl Into<Output<'b, I>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let takes = |x: T| (predicate.function)(x.widen());
        let marks = || gpu::Marks::by::<T, F>(predicate);
        self.places((input.held(self)?.input(), &takes), &marks, output.into(), count.into(), &mut Scratch::new())
    }

    /// The indices of the flags that are not 0, in their order: `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are 2^32 flags or more and indices are
    /// `u32`.
    ///
    /// ```
    /// let places = oclprim::Device::best()?.select_indices_flagged::<u64>(&[0, 1, 0, 7])?;
    /// assert_eq!(places.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_flagged<'a, I: Offset>(&self, flags: impl Into<Input<'a, u8>>) -> Result<Buffer<I>> {
        let flags = flags.into();
        self.counted(flags.len(), |output, count| self.select_indices_flagged_into(flags, output, count))
    }

    /// [`Device::select_indices_flagged`] into a slice, buffer or view. All else is as in [`Device::select_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::select_indices_flagged`] and [`Device::select_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let (mut places, mut count) = ([0u32; 2], [0]);
    /// Device::best()?.select_indices_flagged_into(&[0u8, 1, 1], &mut places, &mut count)?;
    /// assert_eq!((places, count), ([1, 2], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_flagged_into<'a, 'b, 'c, I: Offset>(
        &self,
        flags: impl Into<Input<'a, u8>>,
        output: impl Into<Output<'b, I>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let marks = || gpu::Marks::Flags;
        self.places((flags.into(), &|flag| flag != 0), &marks, output.into(), count.into(), &mut Scratch::new())
    }

    /// The indices of the elements that `takes` accepts; `marks` is the same rule on devices.
    #[inline(never)]
    fn places<T: Element, I: Offset>(
        &self,
        (input, takes): (Input<'_, T>, &(impl Fn(T) -> bool + Sync)),
        marks: &dyn Fn() -> gpu::Marks,
        output: Output<'_, I>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        expect_numbers::<I>(input.len())?;
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let items = |part: Range<usize>| input[part.clone()].iter().map(|&x| usize::from(!takes(x))).zip(part);
                let [found] = cpu::lists(input.len(), &items, &|i| I::from_i128(i as i128), [output.host()?])?;
                count.host()?[0] = found as u64;
                Ok(())
            }
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

    /// The number of selected elements: the single element of `count`. Waits for it. `room` is the length of the
    /// output.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the number is more than `room` (the message has
    /// both), or if `count` does not have exactly one element.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let (mut found, mut count) = (device.zeroed::<u8>(1)?, device.zeroed::<u64>(1)?);
    /// device.select_flagged_into(&[5u8, 6, 7], &[0, 1, 1], &mut found, &mut count)?;
    /// assert_eq!(device.selected(&count, 2)?, 2);
    /// let error = device.selected(&count, found.len()).unwrap_err();
    /// assert_eq!(error.to_string(), "the result has 2 elements, the output has room for 1");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn selected<'a>(&self, count: impl Into<Input<'a, u64>>, room: usize) -> Result<usize> {
        let count = count.into();
        if count.len() != 1 {
            return Err(Error::invalid(format!("a count has 1 element, got {}", count.len())));
        }
        let found = match count {
            Input::Host(count) => count[0],
            Input::Device(view) => view.to_vec()?[0],
        };
        expect_room("result", room, found)?;
        Ok(found as usize)
    }
}
