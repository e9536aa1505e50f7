//! The types of a source's elements.

use std::any::TypeId;

use bytemuck::Pod;

use super::load::Type;
use crate::{Element, op::Tested};

/// The type of a source's elements: an [`Element`], a struct with [`SharedType`](trait@crate::SharedType), or a tuple of
/// two to four items.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a source's elements",
    label = "expected an element type, a struct with `#[derive(SharedType)]`, or a tuple of two to four"
)]
pub trait Item: Copy + Send + Sync + 'static {
    /// Adds the components of the item, from left to right: the type of each in Rust and in OpenCL C.
    #[doc(hidden)]
    fn components(all: &mut Vec<(TypeId, Type)>);
}

impl<T: Element> Item for T {
    fn components(all: &mut Vec<(TypeId, Type)>) {
        all.push((TypeId::of::<T>(), T::TYPE.into()));
    }
}

/// An item that functions take: `i8` to `u64`, `f32` and `f64`, structs with [`SharedType`](trait@crate::SharedType), and
/// tuples of them.
///
/// Devices do not compute in `f16` and `bf16`, so `cast::<f32>()` comes before a map.
#[diagnostic::on_unimplemented(
    message = "a function for devices does not take `{Self}`",
    note = "write `.cast::<f32>()` before `.map(..)` for elements of `f16` and `bf16`",
    note = "for a struct, write `#[derive(SharedType)]`, with the feature `macros`"
)]
pub trait Computed: Item {}

impl<T: Element<Acc = T>> Computed for T {}

/// An item that functions return: `i8` to `u64`, `f32` and `f64`, and structs with
/// [`SharedType`](trait@crate::SharedType).
#[diagnostic::on_unimplemented(
    message = "a function for devices does not return `{Self}`",
    note = "for several numbers, return a struct with `#[derive(SharedType)]`, with the feature `macros`"
)]
pub trait Returned: Computed {}

impl<T: Element<Acc = T>> Returned for T {}

/// An element type of counts, selections and partitions by a [condition](crate::op::Condition): an [`Element`], or a
/// plain struct with [`SharedType`](trait@crate::SharedType).
#[diagnostic::on_unimplemented(
    message = "a condition does not test `{Self}`",
    label = "expected `i8`..`i64`, `u8`..`u64`, `f16`, `bf16`, `f32`, `f64`, or a plain struct",
    note = "use `u8` (0 and 1) for `bool`, `u64` for `usize`, and `i64` for `isize`",
    note = "for a struct, derive `SharedType`, with the feature `macros`, and `bytemuck::Pod`"
)]
pub trait Testable: Tested<Argument: Computed> + Pod {}

#[diagnostic::do_not_recommend]
impl<T: Tested<Argument: Computed> + Pod> Testable for T {}

/// The type in OpenCL C of an item of one component.
pub(super) fn type_of<T: Returned>() -> Type {
    let mut all = Vec::with_capacity(1);
    T::components(&mut all);
    all.swap_remove(0).1
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {
        $(
            impl<$($name: Item),*> Item for ($($name,)*) {
                fn components(all: &mut Vec<(TypeId, Type)>) {
                    $($name::components(all);)*
                }
            }
            impl<$($name: Computed),*> Computed for ($($name,)*) {}
        )*
    };
}
tuples! { A B; A B C; A B C D; }
