//! The types of a source's elements.

use crate::{Element, ElementType};

/// The type of a source's elements: an [`Element`], or a tuple of two to four items.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a source's elements",
    label = "expected an element type, or a tuple of two to four"
)]
pub trait Item: Copy + Send + Sync + 'static {
    /// Adds the element types of the item, from left to right.
    #[doc(hidden)]
    fn components(all: &mut Vec<ElementType>);
}

impl<T: Element> Item for T {
    fn components(all: &mut Vec<ElementType>) {
        all.push(T::TYPE);
    }
}

/// An item that functions take: `i8` to `u64`, `f32` and `f64`, and tuples of them.
///
/// Devices do not compute in `f16` and `bf16`, so `cast::<f32>()` comes before a map.
#[diagnostic::on_unimplemented(
    message = "a function for devices does not take `{Self}`",
    note = "write `.cast::<f32>()` before `.map(..)` for elements of `f16` and `bf16`"
)]
pub trait Computed: Item {}

impl<T: Element<Acc = T>> Computed for T {}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {
        $(
            impl<$($name: Item),*> Item for ($($name,)*) {
                fn components(all: &mut Vec<ElementType>) {
                    $($name::components(all);)*
                }
            }
            impl<$($name: Computed),*> Computed for ($($name,)*) {}
        )*
    };
}
tuples! { A B; A B C; A B C D; }
