//! Select: the elements for which a predicate is true, in the order of the input.
//!
//! [`partition`] also keeps the other elements. [`runs`] finds runs of equal neighbours, and [`by_key`] reduces their
//! values. [`adjacent`] computes differences of neighbours. [`segmented`] selects in segments.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one write of the selected elements with decoupled look-back; else, and in partitions without an unstable tail, two reads |
//! | order | that of the input, except for [`Unordered`](crate::op::Unordered) |
//! | determinism | same bits everywhere, since elements are only moved; unordered selections have no fixed order |
//! | scratch | about 32 bytes for each 8 KiB of the input, or for each KiB on devices with little local memory; a byte more for each struct that a condition tests |
//! | limits | any n that fits the device; values of up to 64 KiB |
//!
//! The number of selected elements is an output of its own, one `u64`, which may be on the device. Methods that end in
//! `_into` wait only if an output is a host slice, or if an input has a [gather](crate::Source::gathered). An output
//! that is too short receives the first elements, and no element is written beyond its end. The count is then the
//! length that the output needs. If the count is a host slice, an output that is too short is an error; otherwise
//! [`Device::selected`] reads and checks the count. Elements of an output at indices from the count on do not change.
//!
//! The other methods allocate memory for all elements, wait for the count, and [truncate](Buffer::truncate).
//!
//! For structs, a device first tests the condition, and writes a byte for each struct. The selection then reads these
//! bytes, and the selected structs a second time. The CPU backend reads each struct once.
//!
//! Values that a [condition](crate::op::Condition) captures are arguments of the kernels. So another value needs no new
//! build, and costs no further pass.
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
pub mod segmented;

use std::ops::Range;

use bytemuck::Pod;

use crate::{
    Buffer, Device, ElementType, Error, Input, Offset, Output, Result, Scratch, Source,
    arguments::expect_beside,
    counted::{Firsts, arriving, expect_room, in_room, on_device},
    op::{Condition, Everywhere, ForSelections, Known, Map, NonZero, OfFlags},
    reduce::count::meets,
    runtime::{Arriving, Backend, apart},
    source::{Arguments, Flagged, Grouped, Sequence, Testable, finite, transform::written_firsts},
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

/// An input of [`Device::select`] and [`Device::partition`] with a condition `C`: a [`Source`], its first elements [by
/// a count](Source::take), [segments](Source::segments) of a source, or values with [flags](Source::flagged). The
/// condition tests the elements of a source, or the flags. For flags it must be [`NonZero`](OfFlags).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, op::NonZero, select::Selectable};
///
/// fn selected<I: Selectable<NonZero, Tested = u8>>(input: I) -> oclprim::Result<I::Selected> {
///     Device::best()?.select(input, NonZero)
/// }
/// assert_eq!(selected(&[3u8, 0, 2])?.to_vec()?, [3, 2]);
/// assert_eq!(selected([0.5f32, 1.5].flagged(&[0u8, 1]))?.to_vec()?, [1.5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Lines of a view would keep different numbers of elements, so they do not compile:
///
/// ```compile_fail,E0277
/// use oclprim::{Device, Input, op::NonZero};
///
/// let x = [3u8, 0, 2, 1];
/// Device::cpu().select(Input::from(&x).nd(&[2, 2])?.along(1), NonZero)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Write segments of equal lengths:
///
/// ```
/// use oclprim::{Device, Source, op::NonZero, source::counting};
///
/// let offsets = counting(0u32).strided(2).take(3);
/// let (kept, offsets) = Device::best()?.select([3u8, 0, 2, 1].segments(offsets), NonZero)?;
/// assert_eq!((kept.to_vec()?, offsets.to_vec()?), (vec![3, 2, 1], vec![0, 1, 3]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a selection",
    label = "expected a source, segments of one: `x.segments(&offsets)`, or values with flags: `x.flagged(&flags)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "lines of a view would keep different numbers of elements: write \
            `x.segments(counting(0u64).strided(length).take(lines + 1))`",
    note = "segments take neither `Unordered`, `UnstableTail` nor a pair of conditions"
)]
pub trait Selectable<C>: Grouped<Item: Pod> {
    /// The type of the elements that the condition tests: those of a source, which may be structs, or flags.
    type Tested: Testable;

    /// A buffer of elements; for segments, also a buffer of their offsets among these elements.
    type Selected;
    /// A buffer of elements, and the lengths `N` of parts; for segments a buffer of lengths.
    type Partitioned<N>;

    #[doc(hidden)]
    fn select(self, device: &Device, what: &C) -> Result<Self::Selected>
    where
        C: Condition<Self::Tested>;

    #[doc(hidden)]
    fn partition(self, device: &Device, what: &C) -> Result<Self::Partitioned<C::Counts>>
    where
        C: Condition<Self::Tested>;

    #[doc(hidden)]
    fn select_into(self, device: &Device, what: &C, outputs: (Output<'_, Self::Item>, Output<'_, u64>)) -> Result<()>
    where
        C: Condition<Self::Tested>;

    #[doc(hidden)]
    fn partition_into(
        self,
        device: &Device,
        what: &C,
        outputs: (Output<'_, Self::Item>, Output<'_, u64>),
    ) -> Result<()>
    where
        C: Condition<Self::Tested>;
}

impl<S: Sequence<Item: Testable>, C> Selectable<C> for S {
    type Tested = S::Item;
    type Selected = Buffer<S::Item>;
    type Partitioned<N> = (Buffer<S::Item>, N);

    fn select(self, device: &Device, what: &C) -> Result<Buffer<S::Item>>
    where
        C: Condition<S::Item>,
    {
        device.counted(self.most()?, |output, count| self.select_into(device, what, (output, count)))
    }

    fn partition(self, device: &Device, what: &C) -> Result<(Buffer<S::Item>, C::Counts)>
    where
        C: Condition<S::Item>,
    {
        let n = self.len_on(device)?;
        let (mut output, counts) = device.parts(self.most()?, |outputs| self.partition_into(device, what, outputs))?;
        output.truncate(n);
        Ok((output, counts))
    }

    fn select_into(
        self,
        device: &Device,
        what: &C,
        (output, count): (Output<'_, S::Item>, Output<'_, u64>),
    ) -> Result<()>
    where
        C: Condition<S::Item>,
    {
        let (held, length) = self.held_on(device)?;
        device.select_by((held.input(), length), what, output, count, &mut Scratch::new())
    }

    fn partition_into(
        self,
        device: &Device,
        what: &C,
        (output, counts): (Output<'_, S::Item>, Output<'_, u64>),
    ) -> Result<()>
    where
        C: Condition<S::Item>,
    {
        let (held, length) = self.held_on(device)?;
        let output = self.output_on(output, held.input().len(), "a partition")?;
        device.part((held.input(), length), what, output, counts, &mut Scratch::new())
    }
}

impl<S: Source<Item: Pod>, F: Source<Item = u8>, C: OfFlags> Selectable<C> for Flagged<S, F> {
    type Tested = u8;
    type Selected = Buffer<S::Item>;
    type Partitioned<N> = (Buffer<S::Item>, N);

    fn select(self, device: &Device, what: &C) -> Result<Buffer<S::Item>> {
        device.counted(finite(&self.source)?, |output, count| self.select_into(device, what, (output, count)))
    }

    fn partition(self, device: &Device, what: &C) -> Result<(Buffer<S::Item>, C::Counts)> {
        device.parts(finite(&self.source)?, |outputs| self.partition_into(device, what, outputs))
    }

    fn select_into(
        self,
        device: &Device,
        _: &C,
        (output, count): (Output<'_, S::Item>, Output<'_, u64>),
    ) -> Result<()> {
        let (values, flags) = (self.source.held(device)?, self.flags.held(device)?);
        device.move_flagged(values.input(), flags.input(), output, count, 1)
    }

    fn partition_into(
        self,
        device: &Device,
        _: &C,
        (output, counts): (Output<'_, S::Item>, Output<'_, u64>),
    ) -> Result<()> {
        let (values, flags) = (self.source.held(device)?, self.flags.held(device)?);
        output.expect_len(values.input().len(), "a partition")?;
        device.move_flagged(values.input(), flags.input(), output, counts, 2)
    }
}

/// # Selections
///
/// These methods return the elements that meet a condition, or their indices. Module: [`select`](crate::select).
impl Device {
    /// The elements that meet a condition, in their order.
    ///
    /// The input is a [`Source`], its first elements [by a count](Source::take), [segments](Source::segments) of it, or
    /// [values with flags](Source::flagged). Elements may be [structs](Testable) of up to 64 KiB, and the condition a
    /// function of the struct. For segments, the call also returns their offsets among the selected
    /// elements; [`segmented`] has the cost. With flags, the condition is [`NonZero`] and tests the flags; values are
    /// plain data of up to 64 KiB. To test a function of the flags, pass `x.flagged(flags.map(f))`. With
    /// [`Unordered`](crate::op::Unordered), the elements come in any order. A [condition](crate::op::Condition) may
    /// capture values, and another value needs no new build.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects the expression of a condition; line numbers in
    /// the [log](crate::Error::build_log) refer to the expression.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and the elements or captured
    /// values need it, or if values have no bytes or more than 64 KiB.
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of flags and values differ.
    /// The same error if there are no offsets, or if an offset is beyond the next one or beyond the input.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, NonZero}};
    ///
    /// let device = Device::best()?;
    /// let positive = Map::new(|x: f32| x > 0.0, "x > 0");
    /// let found = device.select(&[1.5f32, -2.0, 0.5, f32::NAN, 3.0], &positive)?;
    /// assert_eq!(found.to_vec()?, [1.5, 0.5, 3.0]);
    /// let found = device.select([[1u8, 2, 3], [4, 5, 6], [7, 8, 9]].flagged(&[1u8, 0, 255]), NonZero)?;
    /// assert_eq!(found.to_vec()?, [[1, 2, 3], [7, 8, 9]]);
    /// let (found, offsets) = device.select([1.5f32, -2.0, 0.5, -1.0].segments(&[0u32, 2, 2, 4]), &positive)?;
    /// assert_eq!((found.to_vec()?, offsets.to_vec()?), (vec![1.5, 0.5], vec![0, 1, 1, 2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select<I: Selectable<C>, C: Condition<I::Tested, Use: ForSelections>>(
        &self,
        input: I,
        what: C,
    ) -> Result<I::Selected> {
        input.select(self, &what)
    }

    /// [`Device::select`] into a slice, buffer or view, which may be too short. The number of selected elements goes to
    /// the single element of `count`. For segments, `count` has as many elements as there are offsets, and receives the
    /// new offsets.
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered). An
    /// output that is too short receives the first elements. In an [unordered](crate::op::Unordered) selection, it is
    /// unspecified which elements it receives.
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. With invalid offsets, results are
    /// unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::select`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `count` has
    /// another length, or if arguments overlap in imported OpenCL memory. The same error if `count` is a host
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
    pub fn select_into<'b, 'c, I: Selectable<C>, C: Condition<I::Tested, Use: ForSelections>>(
        &self,
        input: I,
        what: C,
        output: impl Into<Output<'b, I::Item>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        input.select_into(self, &what, (output.into(), count.into()))
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
    fn select_by<T: Testable, C: Condition<T>>(
        &self,
        (input, length): Firsts<'_, T>,
        what: &C,
        output: Output<'_, T>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        expect_values::<T>()?;
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let list = |&x: &T| (what.part(x), x);
                let [found] = cpu::lists(input.len(), &|part| input[part].iter().map(list), &|x| x, [output.host()?])?;
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(_) if const { T::ELEMENT.is_none() } => {
                let form = gpu::Form { unordered: C::LOOSE, ..gpu::Form::of_values(size_of::<T>(), 1) };
                self.move_structs(&form, (input, length), what, output, count)
            }
            Backend::OpenCl(device) => {
                let (input, host) = arriving(device, input.any(), length)?;
                let (output, count) = (output.cl(device, true)?, count.cl(device, false)?);
                apart(&[&input], &[&output, &count])?;
                let length = on_device(device, length, &[&output, &count])?;
                let form = gpu::Form { unordered: C::LOOSE, ..gpu::Form::of(gpu::Marks::by(what)) };
                let job = gpu::Job::of(Arriving::new(&input, host), &count);
                let job = gpu::Job { out: Some(&output), length: length.as_ref(), ..job };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                output.finish(device)
            }
        })
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
    ) -> Result<()> {
        expect_values::<V>()?;
        expect_beside(values.len(), flags.len(), "values need as many flags")?;
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let (values, flags) = (values.host()?, flags.host()?);
                let list = |&flag: &u8| usize::from(flag == 0);
                let (n, output) = (flags.len(), output.host()?);
                // Wide values are copied only once: the lists hold their indices instead.
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
                let form = gpu::Form::of_values(size_of::<V>(), lists);
                gpu::move_values(device, &form, [values.any(), flags.any()], None, output.any(), count)
            }
        })
    }

    /// Writes structs to the lists of a condition, on an OpenCL device.
    fn move_structs<T: Testable, C: Condition<T>>(
        &self,
        form: &gpu::Form,
        (values, length): Firsts<'_, T>,
        what: &C,
        output: Output<'_, T>,
        counts: Output<'_, u64>,
    ) -> Result<()> {
        let Backend::OpenCl(device) = self.backend() else { return Ok(()) };
        let mut own = None;
        let values = self.copied_once(values, &mut own)?;
        let lists = self.lists((values, length), what)?;
        gpu::move_values(device, form, [values.any(), Input::from(&lists).any()], length, output.any(), counts)
    }

    /// A byte for each struct, on an OpenCL device: 1 if it meets the condition, else 0. With two conditions, the byte
    /// is the number of its part.
    fn lists<T: Testable, C: Condition<T>>(&self, (values, length): Firsts<'_, T>, what: &C) -> Result<Buffer<u8>> {
        let first = meets::<_, _, u8>(values, what);
        match what.second() {
            None => written_firsts(self, &first, length),
            Some(second) => {
                let second = Arguments(values).map(second.number::<_, u8>());
                let list = Map::new(|(a, b): (u8, u8)| if a != 0 { 0u8 } else { 2 - b }, "a != 0 ? 0 : 2 - b");
                written_firsts(self, &first.zip(second).map(list), length)
            }
        }
    }

    /// The indices of the elements that meet a condition, in their order: `u32` or `u64`. The condition may capture
    /// values, as in [`Device::select`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::select`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there are 2^32
    /// elements or more and indices are `u32`.
    ///
    /// ```
    /// use oclprim::{Buffer, Device, op::{EqualTo, NonZero}};
    ///
    /// let indices: Buffer<u32> = Device::best()?.select_indices(&[0i16, 5, 0, 0], EqualTo(0))?;
    /// assert_eq!(indices.to_vec()?, [0, 2, 3]);
    /// let flags = [0u8, 1, 0, 7];
    /// assert_eq!(Device::best()?.select_indices::<_, u64, _>(&flags, NonZero)?.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices<T: Testable, I: Offset, C: Condition<T, Use = Everywhere>>(
        &self,
        input: impl Sequence<Item = T>,
        what: C,
    ) -> Result<Buffer<I>> {
        let (held, length) = input.held_on(self)?;
        let input = (held.input(), length);
        self.counted(input.0.len(), |output, count| self.indices(input, &what, output, count, &mut Scratch::new()))
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
    /// let (mut indices, mut count) = ([0u64; 2], [0]);
    /// Device::best()?.select_indices_into(&[9u32, 1, 5], &large, &mut indices, &mut count)?;
    /// assert_eq!((indices, count), ([0, 2], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn select_indices_into<'b, 'c, T: Testable, I: Offset, C: Condition<T, Use = Everywhere>>(
        &self,
        input: impl Sequence<Item = T>,
        what: C,
        output: impl Into<Output<'b, I>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let (held, length) = input.held_on(self)?;
        self.indices((held.input(), length), &what, output.into(), count.into(), &mut Scratch::new())
    }

    /// Body of [`Device::select_indices_into`], compiled once for each set of types.
    #[inline(never)]
    fn indices<T: Testable, I: Offset, C: Condition<T>>(
        &self,
        (input, length): Firsts<'_, T>,
        what: &C,
        output: Output<'_, I>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        expect_numbers::<I>(input.len())?;
        if const { T::ELEMENT.is_none() } && !self.is_cpu() {
            let flags = self.lists((input, length), what)?;
            return self.indices((Input::from(&flags), length), &NonZero, output, count, scratch);
        }
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let items = |part: Range<usize>| input[part.clone()].iter().map(|&x| what.part(x)).zip(part);
                let [found] = cpu::lists(input.len(), &items, &|i| I::from_i128(i as i128), [output.host()?])?;
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (input, host) = arriving(device, input.any(), length)?;
                let (output, count) = (output.cl(device, true)?, count.cl(device, false)?);
                apart(&[&input], &[&output, &count])?;
                let length = on_device(device, length, &[&output, &count])?;
                let flags = T::ELEMENT == Some(ElementType::U8) && what.known() == Some(Known::NonZero);
                let marks = if flags { gpu::Marks::Flags } else { gpu::Marks::by(what) };
                let form = gpu::Form { moved: false, places: true, place: size_of::<I>(), ..gpu::Form::of(marks) };
                let job = gpu::Job::of(Arriving::new(&input, host), &count);
                let job = gpu::Job { places: Some(&output), length: length.as_ref(), ..job };
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
    /// use oclprim::{Device, op::NonZero};
    ///
    /// let device = Device::best()?;
    /// let (mut found, mut count) = (device.zeroed::<u8>(1)?, device.zeroed::<u64>(1)?);
    /// device.select_into(&[0u8, 6, 7], NonZero, &mut found, &mut count)?;
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
