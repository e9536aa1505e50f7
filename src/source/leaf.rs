//! Sources that read no other source: memory, consecutive numbers, and one value.

use std::ops::Range;

use bytemuck::Pod;

use super::{
    Erased, Narrow, Source, Values,
    load::{Component, Index, Text},
};
use crate::{Buffer, Element, ElementType, Input, Integer, PinnedVec, Result, View, runtime::opencl::ClDevice};

impl<T: Copy + Sync> Values for &[T] {
    type Item = T;

    #[inline]
    fn at(&self, i: usize) -> T {
        self[i]
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator {
        self[range].iter().copied()
    }

    fn checked(&self) -> Result<()> {
        Ok(())
    }
}

/// A type of elements in memory: an [`Element`], or any other plain type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of elements in memory",
    label = "expected `i8`..`i64`, `u8`..`u64`, `f16`, `bf16`, `f32`, `f64`, or a plain struct",
    note = "use `u8` for `bool` and for `char`",
    note = "for a struct, derive `bytemuck::Pod` and `bytemuck::Zeroable`"
)]
pub trait Plain: Pod + Send + Sync {}
#[diagnostic::do_not_recommend]
impl<T: Pod + Send + Sync> Plain for T {}

macro_rules! memory {
    ($([$($generics:tt)*] $ty:ty;)*) => {
        $(
            impl<'a, $($generics)*> Source for $ty {
                type Item = T;

                fn length(&self) -> Result<Option<usize>> {
                    Ok(Some(Input::from(*self).len()))
                }

                fn host(&self) -> Result<impl Values<Item = T>> {
                    Input::from(*self).host()
                }

                fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
                    text.elements(Input::from(*self), index)
                }

                fn plain<U: Pod>(&self) -> Option<Input<'_, U>> {
                    Input::from(*self).of_type()
                }

                fn erased(&self) -> Erased<'_, T> {
                    Erased::Memory(Input::from(*self))
                }

                fn narrow(&self) -> Option<Narrow<'_>> {
                    ElementType::of::<T>().map(|element| Narrow(Input::from(*self).any(), element))
                }

                fn search(&self, _: &ClDevice, _: usize) -> Result<()> {
                    Ok(())
                }
            }
        )*
    };
}
memory! {
    [T: Plain] &'a [T];
    [T: Plain, const N: usize] &'a [T; N];
    [T: Plain] &'a Vec<T>;
    [T: Plain] &'a PinnedVec<T>;
    [T: Plain] &'a Buffer<T>;
    [T: Plain] View<'a, T>;
    [T: Plain] Input<'a, T>;
}

/// Consecutive numbers; see [`counting`].
#[derive(Clone, Copy, Debug)]
pub struct Counting<T>(T);

/// Consecutive numbers: `start, start + 1, ...` They wrap. The source is endless.
///
/// ```
/// use oclprim::{Device, Source, source::counting};
///
/// assert_eq!(Device::best()?.transform(counting(254u8).take(3))?.to_vec()?, [254, 255, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn counting<T: Integer>(start: T) -> Counting<T> {
    Counting(start)
}

impl<T: Integer> Values for Counting<T> {
    type Item = T;

    #[inline]
    fn at(&self, i: usize) -> T {
        self.0.add(T::from_i128(i as i128))
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator {
        range.map(|i| self.at(i))
    }

    fn checked(&self) -> Result<()> {
        Ok(())
    }
}

impl<T: Integer> Source for Counting<T> {
    type Item = T;

    fn length(&self) -> Result<Option<usize>> {
        Ok(None)
    }

    fn host(&self) -> Result<impl Values<Item = T>> {
        Ok(*self)
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let start = text.scalar(T::TYPE, self.0);
        // Unsigned integers wrap.
        let (ty, unsigned) = (T::TYPE.storage(), T::TYPE.storage().trim_start_matches('u'));
        Ok(vec![text.value(T::TYPE, &format!("({ty})((u{unsigned}){start} + (u{unsigned}){index})"))])
    }

    fn search(&self, _: &ClDevice, _: usize) -> Result<()> {
        Ok(())
    }
}

/// One value for every index; see [`constant`].
#[derive(Clone, Copy, Debug)]
pub struct Constant<T>(T);

/// One value for every index: `value, value, ...` The source is endless.
///
/// ```
/// use oclprim::{Device, Source, source::constant};
///
/// assert_eq!(Device::best()?.transform(constant(0.5f32).take(2))?.to_vec()?, [0.5, 0.5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn constant<T: Element>(value: T) -> Constant<T> {
    Constant(value)
}

impl<T: Element> Values for Constant<T> {
    type Item = T;

    #[inline]
    fn at(&self, _: usize) -> T {
        self.0
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator {
        range.map(|_| self.0)
    }

    fn checked(&self) -> Result<()> {
        Ok(())
    }
}

impl<T: Element> Source for Constant<T> {
    type Item = T;

    fn length(&self) -> Result<Option<usize>> {
        Ok(None)
    }

    fn host(&self) -> Result<impl Values<Item = T>> {
        Ok(*self)
    }

    fn emit(&self, text: &mut Text<'_>, _: &Index) -> Result<Vec<Component>> {
        let value = text.scalar(T::TYPE, self.0);
        Ok(vec![text.value(T::TYPE, &value)])
    }

    fn search(&self, _: &ClDevice, _: usize) -> Result<()> {
        Ok(())
    }
}
