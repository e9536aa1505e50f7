//! Levels of determinism.

use serde::{Deserialize, Serialize};

use super::{Op, OpKind};
#[allow(unused_imports, reason = "for the documentation")]
use crate::Device;
use crate::{Element, Error, Result};

/// The reproducibility of a float sum or product.
///
/// The level does not affect integers, min and max: they have the same bits everywhere.
///
/// `Fast` is the fastest. `Fixed` has the same bits for the same order of elements, on the CPU and every device that
/// keeps subnormals. `Exact` is correctly rounded for any order.
///
/// In a float sum of all elements with `Fast` or `Fixed`, the accumulator differs from the exact sum by at most
/// 1.01 d u Σ|x|. It is then rounded to the element type. The bound holds if no addition overflows and the device keeps
/// subnormals. The accumulator's rounding unit u is 2^-53 for `f64`, else 2^-24. The depth d is the largest number of
/// additions that an element passes through:
///
/// | | d |
/// |---|---|
/// | [`Fixed`](Self::Fixed) | 28 for each level of tiles of 64 KiB. For `f32`: 28 up to 2^14 elements, 56 up to 2^28, 84 up to 2^42 |
/// | [`Fast`](Self::Fast) | 40 + 16 ⌈t / g⌉ for t tiles of 64 KiB and at most g work-groups; g is 6 times the number of compute units on a GPU, and 8 times on a CPU driver, unless tuned; on the CPU as [`Fixed`](Self::Fixed) |
///
/// ```
/// use oclprim::{Determinism, Device, op::{Sum, Usage}};
///
/// let x: Vec<f32> = (1..1000).map(|i| 1.0 / i as f32).collect();
/// let (here, there) = (Device::cpu(), Device::best()?);
/// assert_eq!(here.reduce(&x, Sum)?, there.reduce(&x, Sum)?);
/// let fast = there.reduce(&x, Sum.fast())?;
/// println!("{} differs by {:e}", Determinism::Fast.name(), fast - here.reduce(&x, Sum)?);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Determinism {
    /// Any order of operations, the fastest on the device.
    Fast,
    /// Same bits on every run, every device and the CPU: one tree, which depends only on n and the element type.
    ///
    /// A device that flushes subnormals to zero returns the same bits only if no element, partial result or result is
    /// subnormal.
    #[default]
    Fixed,
    /// The float nearest to the exact sum, ties to even: same bits for every order of the elements and every machine.
    ///
    /// [`exact`](crate::exact) has the rules for special values and the algorithm. Each element of an expression is
    /// rounded to its type before it is added. There is one exception: sums add the exact products of
    /// [`times`](crate::Source::times), also of [views](crate::NdView::times). Scans round these products first.
    /// Products of `f32` and narrower types are exact in `f64`, with `x.cast::<f64>().times(y.cast())`.
    ///
    /// Float products return [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). A device that flushes
    /// subnormals returns the same bits, unless the function of a [`map`](crate::Source::map) computes a subnormal.
    ///
    /// Most elements are added in registers, at nearly the speed of `Fast`. Elements that use the whole range of
    /// exponents take longer. On an H200 a sum of such `f32` takes 1.6 times as long, and a dot product 1.9 times. The
    /// tuning parameter `exact_f64` of reductions chooses whether the registers are `f64`.
    /// [`ExactSum::of`](crate::ExactSum::of) returns the sum before it is rounded. Scans of whole inputs have this
    /// level too; scans of groups do not.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, Source, op::{Sum, Usage}};
    ///
    /// let x = [1e100f64, 1.0, -1e100];
    /// let device = Device::cpu();
    /// assert_eq!((device.reduce(&x, Sum)?, device.reduce(&x, Sum.exact())?), (0.0, 1.0));
    ///
    /// // The dot product of each segment.
    /// let (x, y) = ([1e8f32, 1.0, -1e8, 3.0], [1e8f32, 0.5, 1e8, 2.0]);
    /// let sums = device.reduce(x.times(&y).segments(&[0u32, 3, 4]), Sum.exact())?;
    /// assert_eq!(sums.to_vec()?, [0.5, 6.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Exact,
}

impl Determinism {
    /// The level's name, such as `fixed`.
    ///
    /// ```
    /// assert_eq!(oclprim::Determinism::default().name(), "fixed");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Fixed => "fixed",
            Self::Exact => "exact",
        }
    }

    /// Returns whether results of type `U` are exact sums. Returns an error for float products, which cannot be exact.
    pub(crate) fn exact<U: Element, O: Op<U>>(self) -> Result<bool> {
        self.exact_of(U::TYPE.is_float(), O::KIND)
    }

    fn exact_of(self, floats: bool, kind: OpKind) -> Result<bool> {
        if self != Self::Exact || !floats || !kind.rounds() {
            return Ok(false);
        }
        match kind {
            OpKind::Sum => Ok(true),
            kind => Err(Error::unsupported(format!("there is no exact {} of floats", kind.name()))),
        }
    }
}

/// The exact result of a group.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    Sum,
    Mean,
}
