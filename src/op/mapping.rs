//! Functions that a mapped transpose applies to each element.

use super::{Map, sealed::Sealed};
use crate::Element;

/// A function that [`Device::transpose_map`](crate::Device::transpose_map) applies to each element: [`Cast`], [`Scale`]
/// or a user's [`Map`].
///
/// ```
/// use oclprim::op::{Cast, Map, Mapping, Scale};
///
/// let halved: f32 = Scale(0.5f32).apply(7u8);
/// assert_eq!((halved, Mapping::<f32, i8>::apply(&Cast, -300.0)), (3.5, -128));
/// assert_eq!(Mapping::<f32, f32>::apply(&Map::new(f32::abs, "fabs(x)"), -1.0), 1.0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function from `{T}` to `{U}` for devices",
    label = "expected `op::Cast`, `op::Scale` or `op::Map`",
    note = "for a closure, make a function with `op::Map::new(closure, expression)`, where `expression` is OpenCL C over `x`"
)]
pub trait Mapping<T: Element, U: Element>: Sync + Sealed {
    /// The result for one element.
    fn apply(&self, x: T) -> U;

    /// The function in OpenCL C; if `None`, the kernel casts and multiplies by [`factor`](Self::factor).
    #[doc(hidden)]
    fn prelude(&self) -> Option<String> {
        None
    }

    #[doc(hidden)]
    fn factor(&self) -> U::Acc {
        U::Acc::ONE
    }
}

/// Cast: `x as U`, as in [`Element::cast`]. Floats saturate when they become integers, and NaN becomes 0. Integers wrap
/// when they become integers. Results that are floats round to nearest.
///
/// ```
/// use oclprim::{Device, op::Cast};
///
/// let y = Device::best()?.transpose_map::<f32, u8>(&[1.9f32, -1.0, 300.0, f32::NAN], 2, 2, &Cast)?;
/// assert_eq!(y.to_vec()?, [1, 255, 0, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cast;

impl Sealed for Cast {}

impl<T: Element, U: Element> Mapping<T, U> for Cast {
    fn apply(&self, x: T) -> U {
        x.cast()
    }
}

/// Scale: `((x as A) * factor) as U`, with the casts of [`Cast`]. `A` is the type in which `U` is computed: `f32` for
/// `f16` and `bf16`, otherwise `U` itself. Integers wrap.
///
/// ```
/// use oclprim::{Device, op::Scale};
///
/// let y = Device::best()?.transpose_map::<u8, f32>(&[0u8, 1, 2, 255], 2, 2, &Scale(0.5))?;
/// assert_eq!(y.to_vec()?, [0.0, 1.0, 0.5, 127.5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale<A>(
    /// The factor.
    pub A,
);

impl<A> Sealed for Scale<A> {}

impl<T: Element, U: Element<Acc = A>, A: Element<Acc = A>> Mapping<T, U> for Scale<A> {
    fn apply(&self, x: T) -> U {
        U::narrow(self.0.mul(x.cast()))
    }

    fn factor(&self) -> A {
        self.0
    }
}

impl<F> Sealed for Map<F> {}

impl<T: Element, U: Element, F: Fn(T::Acc) -> U::Acc + Sync> Mapping<T, U> for Map<F> {
    fn apply(&self, x: T) -> U {
        U::narrow((self.function)(x.widen()))
    }

    fn prelude(&self) -> Option<String> {
        Some(Map::prelude(self, T::Acc::TYPE, U::Acc::TYPE))
    }
}
