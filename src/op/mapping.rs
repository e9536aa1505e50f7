//! What becomes of elements that are moved.

use super::{Map, sealed::Sealed};
use crate::Element;

/// What becomes of each element on its way: [`Cast`], [`Scale`], or a [`Map`] of the user's.
///
/// ```
/// use oclprim::op::{Cast, Map, Mapping, Scale};
///
/// let halved: f32 = Scale(0.5f32).apply(7u8);
/// assert_eq!((halved, Mapping::<f32, i8>::apply(&Cast, -300.0)), (3.5, -128));
/// assert_eq!(Mapping::<f32, f32>::apply(&Map::new(f32::abs, "fabs(x)"), -1.0), 1.0);
/// ```
pub trait Mapping<T: Element, U: Element>: Sync + Sealed {
    /// The result for one element.
    fn apply(&self, x: T) -> U;

    /// The function in OpenCL C, in place of a multiplication by the factor.
    #[doc(hidden)]
    fn prelude(&self) -> Option<String> {
        None
    }

    #[doc(hidden)]
    fn factor(&self) -> U::Acc {
        U::Acc::ONE
    }
}

/// The element as another type, as [`Element::cast`] has it: floats become integers that saturate, NaN becomes 0; integers
/// wrap; floats are the nearest.
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

/// The element as another type, as by [`Cast`], times a factor of the type that the result is computed in: `f32` for `f16`
/// and `bf16`, else the result's own. Integers wrap.
///
/// ```
/// use oclprim::{Device, op::Scale};
///
/// let y = Device::best()?.transpose_map::<u8, f32>(&[0u8, 1, 2, 255], 2, 2, &Scale(0.5))?;
/// assert_eq!(y.to_vec()?, [0.0, 1.0, 0.5, 127.5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale<A>(pub A);

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
