//! Reduction of an input to one value: `x[0] op ... op x[n - 1]`.
//!
//! | property | |
//! |---|---|
//! | work | n - 1 operations, one read of the input |
//! | operator | associative and commutative, up to rounding |
//! | determinism | integers, min, max, and, or, xor: same bits everywhere. Float sums and products: [`Determinism`], up to correctly rounded sums |
//! | scratch | at most n / 4,096 accumulators |
//! | limits | any n that fits the device |
//!
//! The design is CUB's two-level reduction (Harris 2007, Merrill 2015), with a fixed order inside a tile.
//!
//! Related operations have their own modules and tables. A [source](crate::source) converts, maps
//! or multiplies elements as they are read. [`segmented`] returns a value for each segment, [`axis`] one for each line
//! along an axis. [`by`] takes a user's operator. [`count`] counts elements, and [`statistics`] computes several results
//! in one pass.

mod arg;
pub mod axis;
pub mod by;
pub mod count;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod exact;
#[doc(hidden)]
pub(crate) mod exact_groups;
#[doc(hidden)]
pub(crate) mod gpu;
pub(crate) mod moments;
pub mod segmented;
pub mod statistics;

pub use crate::segments::Offset;
use serde::{Deserialize, Serialize};

use self::gpu::Form;
use crate::{
    Device, Element, Error, ExactSum, Float, Input, Output, Result, Scratch, Source,
    op::{Op, OpKind},
    runtime::Backend,
    source::{Erased, Expression, load::Load},
};

/// The reproducibility of a float sum or product.
///
/// The level does not affect integers, min and max: they have the same bits everywhere.
///
/// In one line: `Fast` is the fastest, `Fixed` has the same bits everywhere for the same order of elements, and `Exact` is
/// correctly rounded for any order.
///
/// With the first two levels, the float sum of a whole input differs from the exact sum by at most 1.01 d u Σ|x|. The sum is then rounded to the
/// element type. The bound holds if no addition overflows and the device keeps subnormals. The accumulator's rounding
/// unit u is 2^-53 for `f64`, else 2^-24. The depth d is the largest number of additions that an element passes
/// through:
///
/// | | d |
/// |---|---|
/// | [`Fixed`](Self::Fixed) | 28 for each level of tiles of 64 KiB: of `f32`, 28 up to 2^14 elements, 56 up to 2^28, 84 up to 2^42 |
/// | [`Fast`](Self::Fast) | 40 + 16 ⌈t / g⌉ for t tiles of 64 KiB and at most g work-groups; g is 6 times the number of compute units on a GPU, and 8 times on a CPU driver, unless tuned; on the CPU as [`Fixed`](Self::Fixed) |
///
/// ```
/// use oclprim::{Determinism, Device, op::Sum};
///
/// let x: Vec<f32> = (1..1000).map(|i| 1.0 / i as f32).collect();
/// let (here, there) = (Device::cpu(), Device::best()?);
/// assert_eq!(here.reduce_with(&x, Sum, Determinism::Fixed)?, there.reduce(&x, Sum)?);
/// let fast = there.reduce_with(&x, Sum, Determinism::Fast)?;
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
    /// [`exact`](crate::exact) has the rules for special values and the algorithm. The sum of an expression is that of
    /// its elements, with one exception: over all elements, the products of [`times`](Source::times) are not rounded
    /// before the sum.
    ///
    /// Groups have exact sums, too, but products are rounded first:
    /// [`reduce_segments_with`](Device::reduce_segments_with), [`reduce_axis_with`](Device::reduce_axis_with),
    /// [`reduce_by_key_with`](Device::reduce_by_key_with). Float products of all elements return
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). A device that flushes subnormals returns the same
    /// bits, unless a function of the input computes a subnormal.
    ///
    /// Most elements are added in registers, at nearly the speed of `Fast`. Inputs of all exponents take up to four times as
    /// long on an H100. The tuning parameter `exact_f64` of
    /// reductions chooses between registers of `f64` and of integers.
    /// [`reduce_exact`](Device::reduce_exact) returns the sum before it is rounded. [`Scan::with`](crate::Scan::with) takes this
    /// level for scans.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let x = [1e100f64, 1.0, -1e100];
    /// let device = Device::cpu();
    /// assert_eq!((device.reduce(&x, Sum)?, device.reduce_with(&x, Sum, Determinism::Exact)?), (0.0, 1.0));
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

    /// Returns whether results of type `U` are exact sums. An error for products, which cannot be exact.
    pub(crate) fn exact<U: Element, O: Op<U>>(self) -> Result<bool> {
        if self != Self::Exact || !U::TYPE.is_float() || !O::KIND.rounds() {
            return Ok(false);
        }
        match O::KIND {
            OpKind::Sum => Ok(true),
            kind => Err(Error::unsupported(format!("there is no exact {} of floats", kind.name()))),
        }
    }
}

/// An element and its index.
///
/// ```
/// let oclprim::Extreme { index, value, .. } = oclprim::Device::best()?.arg_max(&[2.5f32, 7.0, 7.0])?;
/// assert_eq!((index, value), (1, 7.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Extreme<T> {
    /// The index in the input; the lowest one of equal elements.
    pub index: usize,
    /// The element.
    pub value: T,
}

/// The extreme that an arg-reduction finds: the smallest or the largest element.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    #[doc(hidden)]
    Min,
    #[doc(hidden)]
    Max,
}

impl End {
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "arg-min",
            Self::Max => "arg-max",
        }
    }

    /// Returns whether `a` precedes `b`. NaN is first, then the smaller element for `Min`, the larger for `Max`; -0
    /// equals +0.
    pub fn before<T: Element>(self, a: T, b: T) -> bool {
        match self {
            _ if a.is_nan() => !b.is_nan(),
            // Widening makes comparisons of 16-bit floats branch-free.
            Self::Min => a.widen() < b.widen(),
            Self::Max => a.widen() > b.widen(),
        }
    }
}

/// # Reductions
///
/// These methods return one value from all elements: `x[0] op ... op x[n - 1]`. Module: [`reduce`](crate::reduce).
impl Device {
    /// Reduction of all elements: `x[0] op ... op x[n - 1]`. Float sums and products are [`Determinism::Fixed`]: same
    /// bits everywhere.
    ///
    /// The input is a slice, a buffer, a view, or an expression over them, a [`Source`]. The result for an expression has
    /// the bits of the result for the array that [`Device::transform`] writes.
    ///
    /// The result for empty input is the operator's [empty](Op::empty) value: the type's highest value for `Min`, the
    /// lowest for `Max`. In contrast, [`arg_min`](Device::arg_min), [`min_max`](Device::min_max) and
    /// [`mean`](Device::mean) of empty input are errors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it. For an
    /// expression also those of [`Device::transform`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Max, Sum}};
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.reduce(&[1u32, 2, 3], Sum)?, 6);
    /// let x = device.upload(&[1.5f32, -2.0, 0.25])?;
    /// assert_eq!(device.reduce(&x, Max)?, 1.5);
    /// assert_eq!(device.reduce(x.view(1..)?, Max)?, 0.25);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce<S: Source<Item: Element>, O: Op<S::Item>>(&self, input: S, op: O) -> Result<S::Item> {
        self.reduce_with(input, op, Determinism::default())
    }

    /// [`Device::reduce`] with a level of determinism: same bits everywhere, any order of operations, or correctly
    /// rounded.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let total = Device::best()?.reduce_with(&[0.5f32; 1000], Sum, Determinism::Fast)?;
    /// assert_eq!(total, 500.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_with<S: Source<Item: Element>, O: Op<S::Item>>(
        &self,
        input: S,
        op: O,
        determinism: Determinism,
    ) -> Result<S::Item> {
        let mut out = [S::Item::ZERO];
        self.reduce_into(input, op, determinism, &mut out)?;
        Ok(out[0])
    }

    /// [`Device::reduce`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_with`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not
    /// have exactly one element.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i64; 100])?;
    /// let mut total = device.zeroed::<i64>(1)?;
    /// device.reduce_into(&x, Sum, Determinism::Fixed, &mut total)?;
    /// assert_eq!(total.to_vec()?, [100]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_into<'a, S: Source<Item: Element>, O: Op<S::Item>>(
        &self,
        input: S,
        op: O,
        determinism: Determinism,
        output: impl Into<Output<'a, S::Item>>,
    ) -> Result<()> {
        let scratch = &mut Scratch::new();
        match input.erased() {
            Erased::Memory(input) => self.reduce_plain(input, op, determinism, output.into(), scratch),
            Erased::Expression(source) => self.reduce_expression(source, op, determinism, output.into(), scratch),
        }
    }

    /// Exact sum of all elements as a value that can be merged with others: `x[0] + ... + x[n - 1]`.
    ///
    /// It is the sum that [`reduce_with`](Self::reduce_with) rounds at the level [`Exact`](Determinism::Exact). Sums of
    /// chunks, devices and ranks are merged, and rounded once.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let mut sum = device.reduce_exact(&[1e30f32, 1.0])?;
    /// sum.merge(&Device::cpu().reduce_exact(&[-1e30f32])?);
    /// assert_eq!(sum.round(), 1.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_exact<S: Source<Item: Float>>(&self, input: S) -> Result<ExactSum<S::Item>> {
        let mut bytes = vec![0; ExactSum::<S::Item>::BYTES];
        self.reduce_exact_into(input, &mut bytes)?;
        ExactSum::from_bytes(&bytes)
    }

    /// [`Device::reduce_exact`] into the bytes of `output`, which may be on the device: those of
    /// [`ExactSum::to_bytes`].
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_exact`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not
    /// have [`ExactSum::BYTES`] bytes.
    ///
    /// ```
    /// use oclprim::{Device, ExactSum};
    ///
    /// let device = Device::best()?;
    /// let mut bytes = device.zeroed::<u8>(ExactSum::<f64>::BYTES)?;
    /// device.reduce_exact_into(&[1e100f64, 1.0, -1e100], &mut bytes)?;
    /// assert_eq!(ExactSum::<f64>::from_bytes(&bytes.to_vec()?)?.round(), 1.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_exact_into<'a, S: Source<Item: Float>>(
        &self,
        input: S,
        output: impl Into<Output<'a, u8>>,
    ) -> Result<()> {
        self.exact_bytes(input.erased(), output.into())
    }

    /// Body of [`Device::reduce_exact_into`], compiled once for each type.
    #[inline(never)]
    fn exact_bytes<T: Float>(&self, input: Erased<'_, T>, output: Output<'_, u8>) -> Result<()> {
        output.expect_len(ExactSum::<T>::BYTES, "an exact sum")?;
        match self.backend() {
            Backend::Cpu => {
                let mut sum = ExactSum::new();
                match input {
                    Erased::Memory(input) => sum = cpu::exact_total(input.host()?)?,
                    Erased::Expression(source) => {
                        let n = source.finite_len()?;
                        source.read(&mut |values| {
                            sum = cpu::exact_total_of_blocks(n, values)?;
                            Ok(())
                        })?;
                    }
                }
                output.host()?.copy_from_slice(&sum.to_bytes());
                Ok(())
            }
            Backend::OpenCl(device) => exact::bytes(device, input, output),
        }
    }

    /// Reduction of computed elements, compiled once for each type and operator.
    #[inline(never)]
    fn reduce_expression<T: Element, O: Op<T>>(
        &self,
        source: &dyn Expression<T>,
        _: O,
        determinism: Determinism,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = source.finite_len()?;
        output.expect_len(1, "reduce")?;
        let exact = determinism.exact::<T, O>()?;
        match self.backend() {
            Backend::Cpu => {
                let output = output.host()?;
                source.read(&mut |values| {
                    output[0] =
                        if exact { cpu::exact_blocks(n, values)? } else { cpu::reduce_blocks::<T, O>(n, values)? };
                    Ok(())
                })
            }
            Backend::OpenCl(device) => {
                let (form, empty) = (Form::of::<T, O>(determinism), O::empty());
                let load = Load::of(source, device)?;
                let output = output.cl(device, false)?;
                let empty = bytemuck::bytes_of(&empty);
                load.run(device, source, n, || gpu::reduce_load(device, &form, empty, &load, n, output, scratch))
            }
        }
    }

    /// Reduction of elements in memory, compiled once for each type and operator.
    #[inline(never)]
    fn reduce_plain<T: Element, O: Op<T>>(
        &self,
        input: Input<'_, T>,
        op: O,
        determinism: Determinism,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "reduce")?;
        let exact = determinism.exact::<T, O>()?;
        match self.backend() {
            Backend::Cpu if exact => output.host()?[0] = cpu::exact_sum(input.host()?)?,
            Backend::Cpu => output.host()?[0] = cpu::reduce(input.host()?, op)?,
            Backend::OpenCl(device) => gpu::reduce::<T, O>(device, input, determinism, output, scratch)?,
        }
        Ok(())
    }
}
