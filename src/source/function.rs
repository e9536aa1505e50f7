//! Functions of a source's elements.

use super::{
    item::{Computed, Item, Returned, type_of},
    load::{Component, Text},
};
use crate::op;

/// A function of one element for [`Source::map`](super::Source::map): an [`op::Map`], or what [`map!`](crate::map) returns.
///
/// ```
/// use oclprim::{Device, Source, op::{Map, Min}};
///
/// let negative = Map::new(|x: f64| -x, "-x");
/// assert_eq!(Device::cpu().reduce(vec![1.0, 3.0].map(negative), Min)?, -3.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A closure alone has no text for devices:
///
/// ```compile_fail,E0277
/// use oclprim::{Device, Source, op::Min};
///
/// Device::cpu().reduce(vec![1.0, 3.0].map(|x: f64| -x), Min)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function of `{In}` for devices",
    note = "write `map!(|x: f32| ..)`, with the feature `macros`, or `op::Map::new(closure, expression)`",
    note = "write `.cast::<f32>()` before `.map(..)` for elements of `f16` and `bf16`",
    note = "a struct, as an argument or as the result, needs `#[derive(SharedType)]`"
)]
pub trait Function<In: Item>: Sync {
    /// The type of the result.
    type Output: Item;

    /// The result for one element.
    fn apply(&self, x: In) -> Self::Output;

    /// Adds the call to a load, and returns the result.
    #[doc(hidden)]
    fn emit(&self, text: &mut Text<'_>, arguments: &[Component]) -> Component;
}

impl<In: Computed, R: Returned, F: Fn(In) -> R + Sync> Function<In> for op::Map<F> {
    type Output = R;

    #[inline]
    fn apply(&self, x: In) -> R {
        (self.function)(x)
    }

    fn emit(&self, text: &mut Text<'_>, arguments: &[Component]) -> Component {
        text.call(&self.text, arguments, &[], type_of::<R>())
    }
}

impl<In: Computed, R: Returned, F: Fn(In) -> R + Sync> Function<In> for op::CapturingMap<F> {
    type Output = R;

    #[inline]
    fn apply(&self, x: In) -> R {
        (self.map.function)(x)
    }

    fn emit(&self, text: &mut Text<'_>, arguments: &[Component]) -> Component {
        text.call(&self.map.text, arguments, &self.captured, type_of::<R>())
    }
}

impl<In: Item, F: Function<In>> Function<In> for &F {
    type Output = F::Output;

    #[inline]
    fn apply(&self, x: In) -> F::Output {
        (*self).apply(x)
    }

    fn emit(&self, text: &mut Text<'_>, arguments: &[Component]) -> Component {
        (*self).emit(text, arguments)
    }
}
