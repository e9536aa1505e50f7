//! Counts: how many elements meet a [condition](crate::op::Condition) ([`Device::count`]), and whether any or all do
//! ([`Device::any`], [`Device::all`]).
//!
//! The table describes kernels for a whole input: counts by [`NonZero`](crate::op::NonZero) and
//! [`EqualTo`](crate::op::EqualTo), and `any` and `all` by `NonZero`. Every other call is a [reduction](crate::reduce)
//! of the numbers 0 and 1. A whole input takes one pass. For segments, keys and lines, an earlier pass writes the
//! numbers. Values that a condition captures are arguments of the kernels, so another value needs no new build.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one comparison for each element, in `any` and `all` too |
//! | determinism | same bits everywhere: integers |
//! | scratch | 8 bytes for each work-group |
//! | limits | any n that fits the device |
//!
//! Elements are compared as bits, four 4-byte words at once. A comparison with 0 ignores the sign bit of floats, and no
//! element equals NaN. For elements of 1 and 2 bytes, a carry into the high bit marks a difference, and the marks are
//! counted (Warren, Hacker's Delight). The work-group that finishes last adds the counts of all work-groups, or a
//! second launch does, as in [`reduce`](crate::reduce).

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::{
    Buffer, Device, Element, ElementType, Input, Offset, Output, Result, Scratch, Source,
    op::{Condition, Everywhere, Known, Or, Product, Sum, Tested},
    reduce::Reducible,
    runtime::{Arriving, Backend},
    source::{Along, Arguments, Axes, ByKey, Counted, Grouped, Segments, Testable, Viewed},
};

/// A question about the elements that differ from `key` in a bit of `mask`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Question {
    /// The bits of an element, repeated over 8 bytes.
    key: u64,
    mask: u64,
    answer: Answer,
}

/// `ANSWER` of `cl/count.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Answer {
    Differing,
    Equal,
    Any,
    All,
}

impl Question {
    fn of(element: ElementType, known: Known) -> Self {
        let size = element.size();
        let top = 1 << (8 * size - 1);
        let non_zero =
            |answer| Self { key: 0, mask: repeated(if element.is_float() { !top } else { !0 }, size), answer };
        match known {
            Known::NonZero => non_zero(Answer::Differing),
            Known::Zero => non_zero(Answer::Equal),
            Known::Never => Self { key: 0, mask: 0, answer: Answer::Differing },
            Known::EqualTo(bits) => Self { key: repeated(bits, size), mask: !0, answer: Answer::Equal },
        }
    }
}

/// The low `size` bytes of `bits`, repeated over a word.
fn repeated(bits: u64, size: usize) -> u64 {
    let one = bits.to_le_bytes();
    u64::from_le_bytes(std::array::from_fn(|i| one[i % size]))
}

/// An input of [`Device::count`], [`Device::any`] and [`Device::all`]: a [`Source`], its first elements
/// [by a count](Source::take), or groups of one ([`segments`](Source::segments), [`by_key`](Source::by_key),
/// [`along`](crate::NdView::along)). Its items are elements or [structs](Testable).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Element, Source, op::NonZero, reduce::count::Countable};
///
/// fn counted<I: Countable<Item: Element>>(input: I) -> oclprim::Result<I::Of<u64>> {
///     Device::best()?.count(input, NonZero)
/// }
/// let x = [1u32, 0, 3];
/// assert_eq!((counted(&x)?, counted(x.segments(&[0u32, 2, 3]))?.to_vec()?), (2, vec![1, 1]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a count",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Countable: Grouped<Item: Testable> {
    /// The answers of [`Device::any`] and [`Device::all`]: a `bool`, or 0 and 1 for each group.
    type Tests;

    #[doc(hidden)]
    fn count<C: Condition<Self::Item>>(self, device: &Device, what: &C) -> Result<Self::Of<u64>>;

    #[doc(hidden)]
    fn count_into<C: Condition<Self::Item>>(self, device: &Device, what: &C, output: Self::Out<'_, u64>) -> Result<()>;

    /// Returns whether any or all elements meet the condition: a `bool`, or 0 or 1 for each group.
    #[doc(hidden)]
    fn test<C: Condition<Self::Item>>(self, device: &Device, what: &C, test: Test) -> Result<Self::Tests>;

    #[doc(hidden)]
    fn test_into<C: Condition<Self::Item>>(
        self,
        device: &Device,
        what: &C,
        test: Test,
        output: Self::Out<'_, u8>,
    ) -> Result<()>;
}

/// The question whether any or all elements meet a condition.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Any,
    All,
}

impl Test {
    /// The answer for numbers that are 1 for each element that meets the condition, and 0 for the others.
    fn answer<I: Reducible<Item = u8>>(self, device: &Device, numbers: I) -> Result<I::Of<u8>> {
        match self {
            Self::Any => device.reduce(numbers, Or),
            // The product of no numbers is 1.
            Self::All => device.reduce(numbers, Product),
        }
    }

    /// Writes [`Self::answer`].
    fn answer_into<I: Reducible<Item = u8>>(self, device: &Device, numbers: I, output: I::Out<'_, u8>) -> Result<()> {
        match self {
            Self::Any => device.reduce_into(numbers, Or, output),
            Self::All => device.reduce_into(numbers, Product, output),
        }
    }
}

impl<S: Source<Item: Testable>> Countable for S {
    type Tests = bool;

    fn count<C: Condition<S::Item>>(self, device: &Device, what: &C) -> Result<u64> {
        let mut out = [0];
        self.count_into(device, what, Output::from(&mut out))?;
        Ok(out[0])
    }

    fn count_into<C: Condition<S::Item>>(self, device: &Device, what: &C, output: Output<'_, u64>) -> Result<()> {
        if let Some(element) = S::Item::ELEMENT
            && let Some(known) = what.known()
        {
            let question = Question::of(element, known);
            return device.answer(self.held(device)?.input(), question, output, &mut Scratch::new());
        }
        device.reduce_into(meets::<_, _, u64>(self, what), Sum, output)
    }

    fn test<C: Condition<S::Item>>(self, device: &Device, what: &C, test: Test) -> Result<bool> {
        let mut out = [0];
        self.test_into(device, what, test, Output::from(&mut out))?;
        Ok(out[0] != 0)
    }

    fn test_into<C: Condition<S::Item>>(
        self,
        device: &Device,
        what: &C,
        test: Test,
        output: Output<'_, u8>,
    ) -> Result<()> {
        if let Some(element) = S::Item::ELEMENT
            && what.known() == Some(Known::NonZero)
        {
            let answer = if test == Test::Any { Answer::Any } else { Answer::All };
            let question = Question { answer, ..Question::of(element, Known::NonZero) };
            return device.answer(self.held(device)?.input(), question, output, &mut Scratch::new());
        }
        test.answer_into(device, meets::<_, _, u8>(self, what), output)
    }
}

/// 1 for each element that meets the condition, 0 for the others.
pub(crate) fn meets<S: Source<Item: Testable>, C: Condition<S::Item>, R: Element<Acc = R>>(
    source: S,
    what: &C,
) -> impl Source<Item = R> {
    Arguments(source).map(what.first().number::<_, R>())
}

impl<S: Source<Item: Testable>> Countable for Counted<'_, S> {
    type Tests = bool;

    fn count<C: Condition<S::Item>>(self, device: &Device, what: &C) -> Result<u64> {
        device.reduce(Counted { source: meets::<_, _, u64>(self.source, what), count: self.count }, Sum)
    }

    fn count_into<C: Condition<S::Item>>(self, device: &Device, what: &C, output: Output<'_, u64>) -> Result<()> {
        let numbers = Counted { source: meets::<_, _, u64>(self.source, what), count: self.count };
        device.reduce_into(numbers, Sum, output)
    }

    fn test<C: Condition<S::Item>>(self, device: &Device, what: &C, test: Test) -> Result<bool> {
        let numbers = Counted { source: meets::<_, _, u8>(self.source, what), count: self.count };
        Ok(test.answer(device, numbers)? != 0)
    }

    fn test_into<C: Condition<S::Item>>(
        self,
        device: &Device,
        what: &C,
        test: Test,
        output: Output<'_, u8>,
    ) -> Result<()> {
        let numbers = Counted { source: meets::<_, _, u8>(self.source, what), count: self.count };
        test.answer_into(device, numbers, output)
    }
}

/// Groups of sources: the numbers of [`meets`], reduced.
macro_rules! groups {
    ($($Group:ident [$part:ident: $Part:ident, $Bound:ident];)*) => { $(
        impl<S: Source<Item: Testable>, $Part: Source<Item: $Bound>> Countable for $Group<S, $Part> {
            type Tests = Self::Of<u8>;

            fn count<C: Condition<S::Item>>(self, device: &Device, what: &C) -> Result<Self::Of<u64>> {
                device.reduce($Group { source: meets::<_, _, u64>(self.source, what), $part: self.$part }, Sum)
            }

            fn count_into<C: Condition<S::Item>>(
                self,
                device: &Device,
                what: &C,
                output: Self::Out<'_, u64>,
            ) -> Result<()> {
                let numbers = $Group { source: meets::<_, _, u64>(self.source, what), $part: self.$part };
                device.reduce_into(numbers, Sum, output)
            }

            fn test<C: Condition<S::Item>>(self, device: &Device, what: &C, test: Test) -> Result<Self::Tests> {
                let numbers = $Group { source: meets::<_, _, u8>(self.source, what), $part: self.$part };
                test.answer(device, numbers)
            }

            fn test_into<C: Condition<S::Item>>(
                self,
                device: &Device,
                what: &C,
                test: Test,
                output: Self::Out<'_, u8>,
            ) -> Result<()> {
                let numbers = $Group { source: meets::<_, _, u8>(self.source, what), $part: self.$part };
                test.answer_into(device, numbers, output)
            }
        }
    )* };
}
groups! {
    Segments[offsets: O, Offset];
    ByKey[keys: K, Element];
}

impl<V: Viewed<To: Testable>, A: Axes> Countable for Along<V, A> {
    type Tests = Buffer<u8>;

    fn count<C: Condition<V::To>>(self, device: &Device, what: &C) -> Result<Buffer<u64>> {
        let (shape, numbers) = numbers(device, &self, what)?;
        device.reduce(numbers.nd(&shape)?.cast::<u64>().along(1), Sum)
    }

    fn count_into<C: Condition<V::To>>(self, device: &Device, what: &C, output: Output<'_, u64>) -> Result<()> {
        let (shape, numbers) = numbers(device, &self, what)?;
        device.reduce_into(numbers.nd(&shape)?.cast::<u64>().along(1), Sum, output)
    }

    fn test<C: Condition<V::To>>(self, device: &Device, what: &C, test: Test) -> Result<Buffer<u8>> {
        let (shape, numbers) = numbers(device, &self, what)?;
        test.answer(device, numbers.nd(&shape)?.along(1))
    }

    fn test_into<C: Condition<V::To>>(
        self,
        device: &Device,
        what: &C,
        test: Test,
        output: Output<'_, u8>,
    ) -> Result<()> {
        let (shape, numbers) = numbers(device, &self, what)?;
        test.answer_into(device, numbers.nd(&shape)?.along(1), output)
    }
}

/// The numbers of [`meets`] for the elements of lines, in memory: a matrix with a row for each line, and its shape.
fn numbers<V: Viewed<To: Testable>, A: Axes>(
    device: &Device,
    lines: &Along<V, A>,
    what: &impl Condition<V::To>,
) -> Result<([usize; 2], Buffer<u8>)> {
    let (elements, rows, len) = lines.in_memory(device)?;
    let numbers = device.transform(meets::<_, _, u8>(lines.view.converted(elements.input()), what))?;
    Ok(([rows, len], numbers))
}

/// # Counts
///
/// These methods count the elements that meet a condition. Module: [`reduce::count`](crate::reduce::count).
impl Device {
    /// The number of elements that meet a condition, of a whole input or of each group. The condition may capture values,
    /// and another value needs no new build. Elements may be [structs](Testable), and the condition a function of the
    /// struct.
    ///
    /// # Errors
    ///
    /// Those of [`Device::reduce`]. [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects the expression of
    /// a condition.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{EqualTo, Map, NonZero}};
    ///
    /// let (device, x) = (Device::best()?, [0.5f32, 0.0, -0.0, f32::NAN]);
    /// assert_eq!((device.count(&x, NonZero)?, device.count(&x, EqualTo(0.0))?), (2, 2));
    /// let positive = Map::new(|x: f32| x > 0.0, "x > 0");
    /// assert_eq!(device.count(&x, &positive)?, 1);
    /// assert_eq!(device.count(x.segments(&[0u32, 1, 1, 4]), &positive)?.to_vec()?, [1, 0, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count<I: Countable, C: Condition<I::Item, Use = Everywhere>>(
        &self,
        input: I,
        what: C,
    ) -> Result<I::Of<u64>> {
        input.count(self, &what)
    }

    /// [`Device::count`] into a slice, buffer or view, which has one element for a source, or one for each group. For
    /// [runs of keys](Source::by_key), the outputs are those of [`Device::reduce_into`].
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`] and [`Device::reduce_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::NonZero};
    ///
    /// let device = Device::best()?;
    /// let mut found = device.zeroed::<u64>(1)?;
    /// device.count_into(&[3u8, 0, 7], NonZero, &mut found)?;
    /// assert_eq!(found.to_vec()?, [2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count_into<'b, I: Countable, C: Condition<I::Item, Use = Everywhere>>(
        &self,
        input: I,
        what: C,
        output: impl Into<I::Out<'b, u64>>,
    ) -> Result<()> {
        input.count_into(self, &what, output.into())
    }

    /// Returns whether any element meets a condition; `false` for empty input. For groups, returns 0 or 1 for each.
    /// Always reads all elements. The condition may capture values, as in [`Device::count`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`].
    ///
    /// ```
    /// use oclprim::{Device, op::NonZero};
    ///
    /// let (device, x) = (Device::best()?, [0u8, 0, 4, 0]);
    /// assert!(device.any(&x, NonZero)?);
    /// let x = device.upload(&x)?;
    /// assert_eq!(device.any(x.nd(&[2, 2])?.along(1), NonZero)?.to_vec()?, [0, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn any<I: Countable, C: Condition<I::Item, Use = Everywhere>>(&self, input: I, what: C) -> Result<I::Tests> {
        input.test(self, &what, Test::Any)
    }

    /// [`Device::any`] into a slice, buffer or view, as 0 or 1. All else is as in [`Device::count_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::count_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::NonZero};
    ///
    /// let mut any = [7];
    /// Device::best()?.any_into(&[0i64; 3], NonZero, &mut any)?;
    /// assert_eq!(any, [0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn any_into<'b, I: Countable, C: Condition<I::Item, Use = Everywhere>>(
        &self,
        input: I,
        what: C,
        output: impl Into<I::Out<'b, u8>>,
    ) -> Result<()> {
        input.test_into(self, &what, Test::Any, output.into())
    }

    /// Returns whether all elements meet a condition; `true` for empty input. For groups, returns 0 or 1 for each.
    /// Always reads all elements. The condition may capture values, as in [`Device::count`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`].
    ///
    /// ```
    /// use oclprim::{Device, Source, op::NonZero};
    ///
    /// let (device, x) = (Device::best()?, [1u8, 0, 4]);
    /// assert!(!device.all(&x, NonZero)?);
    /// assert_eq!(device.all(x.segments(&[0u32, 1, 1, 3]), NonZero)?.to_vec()?, [1, 1, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn all<I: Countable, C: Condition<I::Item, Use = Everywhere>>(&self, input: I, what: C) -> Result<I::Tests> {
        input.test(self, &what, Test::All)
    }

    /// [`Device::all`] into a slice, buffer or view, as 0 or 1. All else is as in [`Device::count_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::count_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::NonZero};
    ///
    /// let mut all = [7];
    /// Device::best()?.all_into(&[2i64; 3], NonZero, &mut all)?;
    /// assert_eq!(all, [1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn all_into<'b, I: Countable, C: Condition<I::Item, Use = Everywhere>>(
        &self,
        input: I,
        what: C,
        output: impl Into<I::Out<'b, u8>>,
    ) -> Result<()> {
        input.test_into(self, &what, Test::All, output.into())
    }

    /// Writes the answer to `output`. `R` is `u64` for counts, and `u8` for booleans.
    #[inline(never)]
    fn answer<T: Pod, R: Pod + From<u8> + TryFrom<u64>>(
        &self,
        input: Input<'_, T>,
        question: Question,
        output: Output<'_, R>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "count")?;
        match self.backend() {
            Backend::Cpu => {
                let answer = cpu::answer(input.host()?, question)?;
                output.host()?[0] = R::try_from(answer).unwrap_or(R::from(1));
            }
            Backend::OpenCl(device) => {
                let ((input, host), output) = (input.any().arriving(device)?, output.cl(device, false)?);
                let input = Arriving::new(&input, host);
                gpu::answer(device, question, size_of::<T>(), input, &output, scratch)?;
                output.finish(device)?;
            }
        }
        Ok(())
    }
}
