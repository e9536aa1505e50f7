//! Reduction: one value from many.
//!
//! | property | |
//! |---|---|
//! | work | n - 1 operations, one read of the input |
//! | operator | associative and commutative, up to rounding |
//! | determinism | integers, min, max, and, or, xor: everywhere. Float sums and products: [`Determinism`] |
//! | scratch | at most n / 4,096 accumulators |
//! | limits | any n that fits the device |
//!
//! The design is that of CUB's two-level reduction (Harris 2007, Merrill 2015), with a tile whose inner order is fixed.
//!
//! Other forms have such a table each: [`mapped`] reduces what is made of the elements as they are read, [`segmented`] gives
//! a value for each segment, [`axis`] one for each line along an axis; [`by`] takes a user's operator, [`count`] and
//! [`statistics`] ask several things of the elements at once.

pub mod axis;
pub mod by;
pub mod count;
#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;
pub mod mapped;
pub mod segmented;
pub mod statistics;

pub use segmented::Offset;
use serde::{Deserialize, Serialize};

use crate::{Device, Element, Input, Output, Result, Scratch, op::Op, runtime::Backend};

/// How far the result of a float sum or product is promised to repeat.
///
/// Integers, min and max repeat everywhere, whatever is chosen.
///
/// A float sum of a whole input that nowhere overflows, on a device that keeps subnormals, is off the exact one by at most 1.01 d u Σ|x|, and then rounded to the element type. The
/// rounding unit u of the accumulator is 2^-53 for `f64`, else 2^-24; d is the number of additions that an element goes
/// through at most:
///
/// | | d |
/// |---|---|
/// | [`Fixed`](Self::Fixed) | 28 for each level of tiles of 64 KiB: of `f32`, 28 up to 2^14 elements, 56 up to 2^28, 84 up to 2^42 |
/// | [`Fast`](Self::Fast) | 40 + 16 ⌈t / g⌉ for t tiles of 64 KiB and g = 8 work-groups a compute unit; on the CPU as [`Fixed`](Self::Fixed) |
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
    /// Any order: what is fastest on the device.
    Fast,
    /// One tree that depends on n and the element type alone: bit-equal on every run, every device and the CPU.
    ///
    /// Devices that flush subnormals to zero keep to it for results above the subnormals.
    #[default]
    Fixed,
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
        }
    }
}

/// An element and where it was found.
///
/// ```
/// let oclprim::Extreme { index, value, .. } = oclprim::Device::best()?.arg_max(&[2.5f32, 7.0, 7.0])?;
/// assert_eq!((index, value), (1, 7.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Extreme<T> {
    /// The position in the input; the lowest one of equal elements.
    pub index: usize,
    /// The element.
    pub value: T,
}

/// Which end of the order an arg-reduction looks for.
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

    /// Whether `a` comes before `b`: NaN first, then the smaller or larger one, -0 and +0 alike.
    pub fn before<T: Element>(self, a: T, b: T) -> bool {
        match self {
            _ if a.is_nan() => !b.is_nan(),
            // Widened, halves are compared without branches.
            Self::Min => a.widen() < b.widen(),
            Self::Max => a.widen() > b.widen(),
        }
    }
}

impl Device {
    /// Combines all elements with `op`; float sums are [`Determinism::Fixed`].
    ///
    /// The empty input gives the operator's [empty](Op::empty) value: for `Min` the type's highest one, for `Max` the lowest.
    /// There is no [`arg_min`](Device::arg_min), [`min_max`](Device::min_max) or [`mean`](Device::mean) of nothing: an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it.
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
    pub fn reduce<'a, T: Element, O: Op<T>>(&self, input: impl Into<Input<'a, T>>, op: O) -> Result<T> {
        self.reduce_with(input, op, Determinism::default())
    }

    /// [`Device::reduce`] with a chosen level of determinism.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let total = Device::best()?.reduce_with(&[0.5f32; 1000], Sum, Determinism::Fast)?;
    /// assert_eq!(total, 500.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_with<'a, T: Element, O: Op<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: O,
        determinism: Determinism,
    ) -> Result<T> {
        let mut out = [T::ZERO];
        self.reduce_into(input, op, determinism, &mut out, &mut Scratch::new())?;
        Ok(out[0])
    }

    /// Combines all elements with `op` into the one element of `output`, which can stay on the device.
    ///
    /// Does not wait for the result, unless `output` is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` has not one element.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, Scratch, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i64; 100])?;
    /// let mut total = device.zeroed::<i64>(1)?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.reduce_scratch::<i64>(x.len()))?;
    /// device.reduce_into(&x, Sum, Determinism::Fixed, &mut total, &mut scratch)?;
    /// assert_eq!(total.to_vec()?, [100]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_into<'a, 'b, T: Element, O: Op<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: O,
        determinism: Determinism,
        output: impl Into<Output<'b, T>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.reduce_one(input.into(), op, determinism, output.into(), scratch)
    }

    /// [`Device::reduce_into`], built once for each type and operator.
    #[inline(never)]
    fn reduce_one<T: Element, O: Op<T>>(
        &self,
        input: Input<'_, T>,
        op: O,
        determinism: Determinism,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "reduce")?;
        match self.backend() {
            Backend::Cpu => output.host()?[0] = cpu::reduce(input.host()?, op, determinism),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::reduce::<T, O>(device, input, determinism, output, scratch)?,
        }
        Ok(())
    }

    /// The bytes of scratch that reductions of `n` elements of type `T` use at most.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::cpu().reduce_scratch::<f32>(1 << 20), 0);
    /// ```
    pub fn reduce_scratch<T: Element>(&self, n: usize) -> usize {
        match self.backend() {
            Backend::Cpu => 0,
            #[cfg(feature = "opencl")]
            Backend::OpenCl(_) => gpu::scratch_bytes::<T, T>(n),
        }
    }

    /// The smallest element and its index; the lowest index on ties, where -0 and +0 tie. The first NaN, if any.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`](crate::ErrorKind::Empty) if there are no elements; else as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let least = Device::best()?.arg_min(&[3, 1, 2, 1])?;
    /// assert_eq!((least.index, least.value), (1, 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min<'a, T: Element>(&self, input: impl Into<Input<'a, T>>) -> Result<Extreme<T>> {
        self.arg_reduce(input.into(), End::Min)
    }

    /// The largest element and its index; the lowest index on ties, where -0 and +0 tie. The first NaN, if any.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`](crate::ErrorKind::Empty) if there are no elements; else as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let most = Device::best()?.arg_max(&[0.5f32, 2.5, 2.5])?;
    /// assert_eq!((most.index, most.value), (1, 2.5));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max<'a, T: Element>(&self, input: impl Into<Input<'a, T>>) -> Result<Extreme<T>> {
        self.arg_reduce(input.into(), End::Max)
    }

    /// [`Device::arg_min`] into the one element of `value` and of `index`, which can stay on the device. Does not wait, unless
    /// one of them is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an output has not one element.
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, -1.0, 4.0])?;
    /// let (mut value, mut index) = (device.zeroed::<f32>(1)?, device.zeroed::<u64>(1)?);
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.statistics_scratch::<f32>(x.len())?)?;
    /// device.arg_min_into(&x, &mut value, &mut index, &mut scratch)?;
    /// assert_eq!((value.to_vec()?, index.to_vec()?), (vec![-1.0], vec![1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<Input<'a, T>>,
        value: impl Into<Output<'b, T>>,
        index: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.arg_reduce_into(input.into(), End::Min, value.into(), index.into(), scratch)
    }

    /// [`Device::arg_max`] into the one element of `value` and of `index`, as [`Device::arg_min_into`].
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let (mut value, mut index) = ([0], [0]);
    /// Device::best()?.arg_max_into(&[3u8, 9, 9], &mut value, &mut index, &mut Scratch::new())?;
    /// assert_eq!((value, index), ([9], [1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<Input<'a, T>>,
        value: impl Into<Output<'b, T>>,
        index: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.arg_reduce_into(input.into(), End::Max, value.into(), index.into(), scratch)
    }

    fn arg_reduce<T: Element>(&self, input: Input<'_, T>, end: End) -> Result<Extreme<T>> {
        let (mut value, mut index) = ([T::ZERO], [0]);
        self.arg_reduce_into(input, end, (&mut value).into(), (&mut index).into(), &mut Scratch::new())?;
        Ok(Extreme { index: index[0] as usize, value: value[0] })
    }

    #[inline(never)]
    fn arg_reduce_into<T: Element>(
        &self,
        input: Input<'_, T>,
        end: End,
        value: Output<'_, T>,
        index: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        value.expect_len(1, end.name())?;
        index.expect_len(1, end.name())?;
        statistics::not_empty(&input, end.name())?;
        match self.backend() {
            Backend::Cpu => {
                let found = cpu::arg_reduce(input.host()?, end);
                value.host()?[0] = found.value;
                index.host()?[0] = found.index as u64;
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                statistics::gpu::extremes(device, statistics::gpu::Find::One(end), input, value, index, scratch)?;
            }
        }
        Ok(())
    }
}
