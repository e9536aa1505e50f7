//! Conditions of elements, for counts, selections and partitions.

use std::ops::Range;

use super::{CapturingMap, Map, MapText, sealed::Sealed};
#[allow(unused_imports, reason = "for the documentation")]
use crate::Device;
use crate::{Element, ElementType, element};

/// A condition of elements: [`NonZero`], [`EqualTo`], or a user's function to `bool`, by value or by reference. A
/// function is a [`Map`] or, if it captures values, a [`CapturingMap`].
///
/// Selections also take a condition in [`Unordered`]. Partitions also take one in [`UnstableTail`], or a pair of
/// conditions. Only the crate implements this trait.
///
/// Captured values are arguments of the kernels. So another value needs no new build, and captured values cost
/// no further pass. Values of `f64` need a device with fp64.
///
/// The argument of a function has the type in which `T` is computed: `f32` for `f16` and `bf16`, else `T` itself. `T`
/// may be a [struct](Tested). Selections and partitions on a device then first write a byte for each struct.
///
/// ```
/// use oclprim::{Device, op::{EqualTo, Map, NonZero, Unordered, UnstableTail}};
///
/// let (device, x) = (Device::best()?, [3, -1, 0, 3]);
/// let negative = Map::new(|x: i32| x < 0, "x < 0");
/// assert_eq!((device.count(&x, NonZero)?, device.count(&x, EqualTo(3))?, device.count(&x, &negative)?), (3, 2, 1));
/// assert_eq!(device.select(&x, Unordered(&negative))?.to_vec()?, [-1]);
/// assert_eq!(device.partition(&x, UnstableTail(&negative))?.0.to_vec()?, [-1, 3, 0, 3]);
/// assert_eq!(device.partition(&x, (&negative, NonZero))?.0.to_vec()?, [-1, 3, 3, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Only selections take [`Unordered`], and only partitions take [`UnstableTail`]. These calls do not compile:
///
/// ```compile_fail,E0277
/// oclprim::Device::cpu().partition(&[1, 2], oclprim::op::Unordered(oclprim::op::NonZero))?;
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// oclprim::Device::cpu().select(&[1, 2], oclprim::op::UnstableTail(oclprim::op::NonZero))?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition of `{T}`",
    label = "expected `NonZero`, `EqualTo(value)`, or a function of the user",
    note = "for a function of the user, write `map!(|x: f32| x > 0.0)`, with the feature `macros`, or \
            `op::Map::new(closure, expression)`",
    note = "for a function that captures, name the captured variables and their types: \
            `map!(move |x: f32| x > t, t: f32)`",
    note = "a function of `f16` or `bf16` takes and compares `f32`"
)]
pub trait Condition<T: Tested>: Sync + Sealed {
    /// The primitives that take the condition: [`Everywhere`], [`InSelections`] or [`InPartitions`].
    type Use;
    /// The lengths of all parts of a partition but the last: `usize` or `[usize; 2]`.
    type Counts: Counts;

    /// The condition, or the first one.
    #[doc(hidden)]
    fn first(&self) -> CapturingMap<impl Fn(T::Argument) -> bool + Sync>;

    /// The second condition, if there are two.
    #[doc(hidden)]
    fn second(&self) -> Option<CapturingMap<impl Fn(T::Argument) -> bool + Sync>> {
        None::<CapturingMap<fn(T::Argument) -> bool>>
    }

    /// The part of an element. Part 0 has the elements that meet the condition.
    #[doc(hidden)]
    fn part(&self, x: T) -> usize;

    /// The condition, if it is built in.
    #[doc(hidden)]
    fn known(&self) -> Option<Known> {
        None
    }

    /// True for [`Unordered`] and for [`UnstableTail`].
    #[doc(hidden)]
    const LOOSE: bool = false;
}

/// The type of the elements that a [`Condition`] tests: an [`Element`], or a struct with
/// [`SharedType`](trait@crate::SharedType). Only `#[derive(SharedType)]` implements the trait.
///
/// ```
/// use oclprim::{Device, op::{Map, NonZero, Tested}, reduce::count::Countable};
///
/// fn positive<I: Countable<Item: Tested<Argument = f32>>>(input: I) -> oclprim::Result<I::Of<u64>> {
///     Device::best()?.count(input, Map::new(|x: f32| x > 0.0, "x > 0"))
/// }
/// assert_eq!(positive(&[0.5f32, -1.0])?, 1);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a condition does not test `{Self}`",
    label = "expected `i8`..`i64`, `u8`..`u64`, `f16`, `bf16`, `f32`, `f64`, or a struct with `#[derive(SharedType)]`",
    note = "use `u8` (0 and 1) for `bool`, `u64` for `usize`, and `i64` for `isize`"
)]
pub trait Tested: Copy + Send + Sync + 'static {
    /// The argument of a user's function: the type in which an element is computed, or the struct.
    type Argument: Copy + Send + Sync + 'static;

    /// The element's type; `None` for a struct.
    #[doc(hidden)]
    const ELEMENT: Option<ElementType> = None;

    #[doc(hidden)]
    fn argument(self) -> Self::Argument;
}

impl<T: Element> Tested for T {
    type Argument = T::Acc;
    const ELEMENT: Option<ElementType> = Some(T::TYPE);

    #[inline]
    fn argument(self) -> T::Acc {
        self.widen()
    }
}

/// A condition that is built in.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    NonZero,
    Zero,
    /// Equality with NaN: no element meets it.
    Never,
    /// Equality with the element that has these bits, which is neither 0 nor NaN.
    EqualTo(u64),
}

/// A condition in OpenCL C, with the types and bytes of the values that it captures.
type Untyped = (MapText, Vec<(ElementType, [u8; 8])>);

fn untyped<F>(CapturingMap { map, captured }: CapturingMap<F>) -> Untyped {
    (map.text, captured)
}

/// Conditions in OpenCL C, for `cl/lib/select.cl`: their functions, and the types and bytes of the values that they
/// capture.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predicates {
    pub functions: String,
    pub captured: Vec<(ElementType, [u8; 8])>,
}

impl Predicates {
    /// The functions of one condition or two, whose argument has the type `from`.
    pub(crate) fn of<T: Tested>(from: ElementType, what: &impl Condition<T>) -> Self {
        let both = [Some(untyped(what.first())), what.second().map(untyped)];
        Self::joined(from, &both.into_iter().flatten().collect::<Vec<_>>())
    }

    fn joined(from: ElementType, conditions: &[Untyped]) -> Self {
        let mut all = Self::default();
        for (kind, (text, captured)) in conditions.iter().enumerate() {
            all.functions += &text.of_kind(kind, from, captured.iter().map(|(element, _)| *element));
            all.captured.extend(captured);
        }
        if all.captured.is_empty() {
            return all;
        }
        let names = |range: Range<usize>| range.map(|k| format!(", captured{k}")).collect::<String>();
        let (first, both) = (conditions[0].1.len(), all.captured.len());
        let declared = all.captured.iter().enumerate();
        let declared: String =
            declared.map(|(k, (element, _))| format!(", const {} captured{k}", element.storage())).collect();
        all.functions += &format!(
            "#define CAPTURED_PARAMS {declared}\n#define CAPTURED_ARGS {}\n#define FIRST_CAPTURED {}\n\
             #define SECOND_CAPTURED {}\n",
            names(0..both),
            names(0..first),
            names(first..both)
        );
        all
    }
}

/// The condition that [values with flags](crate::Source::flagged) take: [`NonZero`], by value or by reference.
///
/// Any other condition does not compile. For a function of the flags, map the flags:
///
/// ```
/// use oclprim::{Device, Source, op::{Map, NonZero}};
///
/// let (values, flags) = ([0.5f32, 1.5, 2.5], vec![3u8, 9, 4]);
/// let small = Map::new(|flag: u8| u8::from(flag < 5), "x < 5");
/// assert_eq!(Device::best()?.select(values.flagged(flags.map(small)), NonZero)?.to_vec()?, [0.5, 2.5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// use oclprim::{Device, Source, op::Map};
///
/// let small = Map::new(|flag: u8| flag < 5, "x < 5");
/// Device::cpu().select([0.5f32, 1.5].flagged(&[3u8, 9]), small)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "values with flags take only the condition `NonZero`, not `{Self}`",
    note = "for a function of the flags, map the flags to `u8`: `x.flagged(flags.map(f))` with `NonZero`"
)]
pub trait OfFlags: Condition<u8> {}
impl OfFlags for NonZero {}
impl<C: OfFlags> OfFlags for &C {}

/// Marks conditions that counts, selections and partitions take.
#[derive(Clone, Copy, Debug)]
pub enum Everywhere {}

/// Marks conditions that only selections take.
#[derive(Clone, Copy, Debug)]
pub enum InSelections {}

/// Marks conditions that only partitions take.
#[derive(Clone, Copy, Debug)]
pub enum InPartitions {}

/// Marks the conditions that [`Device::select`] takes: [`Everywhere`] and [`InSelections`].
#[diagnostic::on_unimplemented(
    message = "a selection does not take this condition",
    note = "`UnstableTail` and pairs of conditions are for partitions"
)]
pub trait ForSelections: Sealed {}
/// Marks the conditions that [`Device::partition`] takes: [`Everywhere`] and [`InPartitions`].
#[diagnostic::on_unimplemented(
    message = "a partition does not take this condition",
    note = "`Unordered` is for selections"
)]
pub trait ForPartitions: Sealed {}
impl Sealed for Everywhere {}
impl Sealed for InSelections {}
impl Sealed for InPartitions {}
impl ForSelections for Everywhere {}
impl ForSelections for InSelections {}
impl ForPartitions for Everywhere {}
impl ForPartitions for InPartitions {}

/// The lengths of parts.
#[doc(hidden)]
pub trait Counts: Sealed {
    const PARTS: usize;
    fn of(counts: &[u64]) -> Self;
}

impl Sealed for usize {}
impl Counts for usize {
    const PARTS: usize = 2;

    fn of(counts: &[u64]) -> Self {
        counts[0] as Self
    }
}

impl Sealed for [usize; 2] {}
impl Counts for [usize; 2] {
    const PARTS: usize = 3;

    fn of(counts: &[u64]) -> Self {
        [counts[0] as usize, counts[1] as usize]
    }
}

/// The elements that are not zero. NaN is not zero; -0 is zero.
///
/// ```
/// use oclprim::{Device, op::NonZero};
///
/// assert_eq!(Device::best()?.count(&[0.5f32, 0.0, -0.0, f32::NAN], NonZero)?, 2);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZero;

/// The elements that equal a value, by `==`: -0 equals +0, and NaN equals no value.
///
/// [`Device::count`] of a whole input has one kernel for all values. Every other call builds kernels for each value.
///
/// ```
/// use oclprim::{Device, op::EqualTo};
///
/// let (device, x) = (Device::best()?, [3, 1, 3, -3]);
/// assert_eq!((device.count(&x, EqualTo(3))?, device.select_indices::<_, u32, _>(&x, EqualTo(3))?.to_vec()?), (2, vec![0, 2]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EqualTo<T>(
    /// The value.
    pub T,
);

/// The selected elements in any order, which may differ from run to run.
///
/// It is faster where an ordered selection reads the input twice, or where many small work-groups wait for one another.
///
/// ```
/// use oclprim::{Device, op::{Map, Unordered}};
///
/// let large = Map::new(|x: i32| x > 4, "x > 4");
/// let mut found = Device::best()?.select(&[9, 1, 5, 7], Unordered(&large))?.to_vec()?;
/// found.sort();
/// assert_eq!(found, [5, 7, 9]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Unordered<C>(
    /// The condition.
    pub C,
);

/// A partition with an unstable tail: the elements that do not meet the condition are in reversed order.
///
/// On GPUs it is faster, since it reads the input once.
///
/// ```
/// use oclprim::{Device, op::{Map, UnstableTail}};
///
/// let negative = Map::new(|x: i32| x < 0, "x < 0");
/// let (partitioned, count) = Device::best()?.partition(&[3, -1, 4, -5], UnstableTail(&negative))?;
/// assert_eq!((partitioned.to_vec()?, count), (vec![-1, -5, 4, 3], 2));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UnstableTail<C>(
    /// The condition.
    pub C,
);

impl<F> Sealed for Map<F> {}

impl<T: Tested, F: Fn(T::Argument) -> bool + Sync> Condition<T> for Map<F> {
    type Use = Everywhere;
    type Counts = usize;

    fn first(&self) -> CapturingMap<impl Fn(T::Argument) -> bool + Sync> {
        CapturingMap::of_none(Map { function: &self.function, text: self.text.clone() })
    }

    #[inline]
    fn part(&self, x: T) -> usize {
        usize::from(!(self.function)(x.argument()))
    }
}

impl<F> Sealed for CapturingMap<F> {}

impl<T: Tested, F: Fn(T::Argument) -> bool + Sync> Condition<T> for CapturingMap<F> {
    type Use = Everywhere;
    type Counts = usize;

    fn first(&self) -> CapturingMap<impl Fn(T::Argument) -> bool + Sync> {
        let Map { function, text } = &self.map;
        CapturingMap { map: Map { function, text: text.clone() }, captured: self.captured.clone() }
    }

    #[inline]
    fn part(&self, x: T) -> usize {
        usize::from(!(self.map.function)(x.argument()))
    }
}

impl<T: Tested, C: Condition<T>> Condition<T> for &C {
    type Use = C::Use;
    type Counts = C::Counts;
    const LOOSE: bool = C::LOOSE;

    fn first(&self) -> CapturingMap<impl Fn(T::Argument) -> bool + Sync> {
        (**self).first()
    }

    #[inline]
    fn part(&self, x: T) -> usize {
        (**self).part(x)
    }

    fn second(&self) -> Option<CapturingMap<impl Fn(T::Argument) -> bool + Sync>> {
        (**self).second()
    }

    fn known(&self) -> Option<Known> {
        (**self).known()
    }
}

impl Sealed for NonZero {}
impl<T: Element> Condition<T> for NonZero {
    type Use = Everywhere;
    type Counts = usize;

    fn first(&self) -> CapturingMap<impl Fn(T::Acc) -> bool + Sync> {
        CapturingMap::of_none(Map::new(|x: T::Acc| x != T::Acc::ZERO, NON_ZERO[float_bits::<T::Acc>()]))
    }

    #[inline]
    fn part(&self, x: T) -> usize {
        usize::from(x == T::ZERO)
    }

    fn known(&self) -> Option<Known> {
        Some(Known::NonZero)
    }
}

impl<T> Sealed for EqualTo<T> {}
impl<T: Element> Condition<T> for EqualTo<T> {
    type Use = Everywhere;
    type Counts = usize;

    fn first(&self) -> CapturingMap<impl Fn(T::Acc) -> bool + Sync> {
        let value = self.0.widen();
        CapturingMap::of_none(Map::new(move |x: T::Acc| x == value, equality(value)))
    }

    #[inline]
    fn part(&self, x: T) -> usize {
        usize::from(x != self.0)
    }

    fn known(&self) -> Option<Known> {
        Some(match self.0 {
            value if value.is_nan() => Known::Never,
            value if value == T::ZERO => Known::Zero,
            value => Known::EqualTo(element::bits(value)),
        })
    }
}

/// `x != 0` in OpenCL C: for integers, f32 and f64. Floats are compared by their bits, since a device may flush subnormals.
const NON_ZERO: [&str; 3] = ["x != 0", "as_uint(x) << 1 != 0", "as_ulong(x) << 1 != 0"];

/// The index of [`NON_ZERO`] for a type of accumulators.
fn float_bits<A: Element>() -> usize {
    match A::TYPE {
        ElementType::F32 => 1,
        ElementType::F64 => 2,
        _ => 0,
    }
}

/// `x == value` in OpenCL C.
fn equality<A: Element>(value: A) -> String {
    let as_bits = ["", "as_uint", "as_ulong"][float_bits::<A>()];
    if as_bits.is_empty() || value.partial_cmp(&value).is_none() {
        return format!("x == {}", literal(value));
    }
    if value == A::ZERO {
        return format!("{as_bits}(x) << 1 == 0");
    }
    format!("{as_bits}(x) == {as_bits}({})", literal(value))
}

/// A value in OpenCL C, by its bits.
fn literal<T: Element>(value: T) -> String {
    let name = T::TYPE.storage();
    let (unsigned, suffix) = match T::TYPE {
        ElementType::F32 => ("uint".to_owned(), ""),
        ElementType::F64 => ("ulong".to_owned(), "ul"),
        _ => (format!("u{}", name.trim_start_matches('u')), if size_of::<T>() == 8 { "ul" } else { "" }),
    };
    format!("as_{name}(({unsigned}){:#x}{suffix})", element::bits(value))
}

/// Implements `Condition` by the inner condition, with `LOOSE` set.
macro_rules! loose {
    ($($name:ident in $place:ident),*) => { $(
        impl<C> Sealed for $name<C> {}
        impl<T: Tested, C: Condition<T, Use = Everywhere>> Condition<T> for $name<C> {
            type Use = $place;
            type Counts = usize;
            const LOOSE: bool = true;

            fn first(&self) -> CapturingMap<impl Fn(T::Argument) -> bool + Sync> {
                self.0.first()
            }

            #[inline]
            fn part(&self, x: T) -> usize {
                self.0.part(x)
            }
        }
    )* };
}

loose!(Unordered in InSelections, UnstableTail in InPartitions);

impl<C, D> Sealed for (C, D) {}
/// Three parts: the elements that meet the first condition, then the others that meet the second one, then the rest.
impl<T: Tested, C: Condition<T, Use = Everywhere>, D: Condition<T, Use = Everywhere>> Condition<T> for (C, D) {
    type Use = InPartitions;
    type Counts = [usize; 2];

    fn first(&self) -> CapturingMap<impl Fn(T::Argument) -> bool + Sync> {
        self.0.first()
    }

    fn second(&self) -> Option<CapturingMap<impl Fn(T::Argument) -> bool + Sync>> {
        Some(self.1.first())
    }

    /// Both conditions are evaluated, as on devices. A branch on the first one would be mispredicted, and would keep the
    /// counting loop from vectorising. On one core, if each part has a random third of the elements, an element takes
    /// 2.2 ns instead of 6.5.
    #[inline]
    fn part(&self, x: T) -> usize {
        let (others, rest) = (self.0.part(x), self.1.part(x));
        others + (others & rest)
    }
}
