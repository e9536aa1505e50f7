//! The smallest and the largest element of each line along an axis, and their indices: [`Device::arg_min_axis`],
//! [`Device::arg_max_axis`], [`Device::min_max_axis`].
//!
//! | property | |
//! |---|---|
//! | work | one read of each element, and one more read for each result |
//! | order | as [`Device::arg_min`]: the lowest index on ties, where -0 equals +0; the first NaN, if any |
//! | determinism | same bits everywhere |
//! | scratch | none if lines are many; else an index for each part of a line |
//! | limits | as [`reduce::axis`](crate::reduce::axis) |
//!
//! Elements are mapped to integers with the same order, and several are compared at once. The kernels search for an
//! index only if the smallest of them is a new minimum, which is rare.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::Lines;
use crate::{
    Buffer, Device, Element, Error, ErrorKind, NdView, Output, Result, Scratch, reduce::End, runtime::Backend,
};

/// The extremes to find in a line.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    #[doc(hidden)]
    Min,
    #[doc(hidden)]
    Max,
    #[doc(hidden)]
    Both,
}

impl Ends {
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "arg-min along an axis",
            Self::Max => "arg-max along an axis",
            Self::Both => "min-max along an axis",
        }
    }

    #[doc(hidden)]
    pub const fn list(self) -> &'static [End] {
        match self {
            Self::Min => &[End::Min],
            Self::Max => &[End::Max],
            Self::Both => &[End::Min, End::Max],
        }
    }
}

/// The extremes of lines along an axis, in row-major order of the other axes.
///
/// ```
/// use oclprim::Device;
///
/// let device = Device::best()?;
/// let x = device.upload(&[3u8, 1, 2, 1, 5, 5])?;
/// let found = device.arg_max_axis(x.nd(&[2, 3])?, 1)?;
/// assert_eq!((found.values.to_vec()?, found.indices.to_vec()?), (vec![3, 5], vec![0, 1]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct AxisExtremes<T: Element> {
    /// The extremes.
    pub values: Buffer<T>,
    /// The index of each extreme along the axis; the lowest one of equal elements.
    pub indices: Buffer<u64>,
}

/// # Extremes along an axis
///
/// These methods return the extremes of each line along an axis, and their indices. Module:
/// [`reduce::axis::extremes`](crate::reduce::axis::extremes).
impl Device {
    /// Arg-min along an axis: the smallest element of each line, and its index on the axis.
    ///
    /// There is one result for each index of the other axes, in row-major order. Ties yield the lowest index; -0 equals
    /// +0. If a line has a NaN, the result is its first one, as in [`Device::arg_min`]. Strides may be zero or
    /// negative. Does not wait for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`] if the axis has no elements, but there are results; else as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3.0f32, 1.0, 2.0, 1.5, -5.0, 2.0])?;
    /// let least = device.arg_min_axis(x.nd(&[2, 3])?, 0)?;
    /// assert_eq!(least.values.to_vec()?, [1.5, -5.0, 2.0]);
    /// assert_eq!(least.indices.to_vec()?, [1, 1, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min_axis<'a, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
    ) -> Result<AxisExtremes<T>> {
        self.axis_extremes(input.into(), axis, Ends::Min)
    }

    /// [`Device::arg_min_axis`] into slices, buffers or views with one element for each line.
    ///
    /// Waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_axis`]; [`ErrorKind::InvalidInput`] if an output has another number of elements.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3, 1, 2, 1, 5, 5])?;
    /// let (mut values, mut indices) = ([0; 2], [0; 2]);
    /// device.arg_min_axis_into(x.nd(&[2, 3])?, 1, &mut values, &mut indices)?;
    /// assert_eq!((values, indices), ([1, 1], [1, 0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min_axis_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        values: impl Into<Output<'b, T>>,
        indices: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.axis_extremes_into(input.into(), axis, Ends::Min, values.into(), indices.into(), &mut Scratch::new())
    }

    /// Arg-max along an axis: the largest element of each line, and its index on the axis. All else is as in
    /// [`Device::arg_min_axis`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_axis`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, f32::NAN, 0.5, 0.0, 0.25, 2.0])?;
    /// let scores = x.nd(&[2, 3])?;
    /// assert_eq!(device.arg_max_axis(scores, 0)?.indices.to_vec()?, [0, 0, 1]);
    /// assert_eq!(device.arg_max_axis(scores, 1)?.indices.to_vec()?, [1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max_axis<'a, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
    ) -> Result<AxisExtremes<T>> {
        self.axis_extremes(input.into(), axis, Ends::Max)
    }

    /// [`Device::arg_max_axis`] into slices, buffers or views with one element for each line.
    ///
    /// Waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_axis_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3, 1, 2, 1, 5, 5])?;
    /// let (mut values, mut indices) = (device.zeroed::<i32>(3)?, device.zeroed(3)?);
    /// device.arg_max_axis_into(x.nd(&[2, 3])?, 0, &mut values, &mut indices)?;
    /// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![3, 5, 5], vec![0, 1, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max_axis_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        values: impl Into<Output<'b, T>>,
        indices: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.axis_extremes_into(input.into(), axis, Ends::Max, values.into(), indices.into(), &mut Scratch::new())
    }

    /// The smallest and the largest element of each line along an axis, and their indices, in one pass.
    ///
    /// The smallest elements of all lines come first, then the largest of all lines. Each is the result of
    /// [`Device::arg_min_axis`] or [`Device::arg_max_axis`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_axis`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3, 1, 2, 1, 5, 5])?;
    /// let ends = device.min_max_axis(x.nd(&[2, 3])?, 1)?;
    /// assert_eq!(ends.values.to_vec()?, [1, 1, 3, 5]);
    /// assert_eq!(ends.indices.to_vec()?, [1, 0, 0, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn min_max_axis<'a, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
    ) -> Result<AxisExtremes<T>> {
        self.axis_extremes(input.into(), axis, Ends::Both)
    }

    /// [`Device::min_max_axis`] into slices, buffers or views with two elements for each line.
    ///
    /// Waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_axis_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, 2.5, -1.0, 4.0])?;
    /// let (mut values, mut indices) = (device.zeroed::<f32>(4)?, device.zeroed(4)?);
    /// let columns = x.nd(&[2, 2])?;
    /// device.min_max_axis_into(columns, 0, &mut values, &mut indices)?;
    /// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![-1.0, 2.5, 0.5, 4.0], vec![1, 0, 0, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn min_max_axis_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        values: impl Into<Output<'b, T>>,
        indices: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.axis_extremes_into(input.into(), axis, Ends::Both, values.into(), indices.into(), &mut Scratch::new())
    }

    fn axis_extremes<T: Element>(&self, input: NdView<'_, T>, axis: usize, ends: Ends) -> Result<AxisExtremes<T>> {
        let lines = Lines::of(input.layout(), axis)?;
        let results = results(&lines, ends)?;
        let (mut values, mut indices) = (self.uninit(results)?, self.uninit(results)?);
        let (to, places) = (Output::from(&mut values), Output::from(&mut indices));
        self.axis_extremes_into(input, axis, ends, to, places, &mut Scratch::new())?;
        Ok(AxisExtremes { values, indices })
    }

    #[inline(never)]
    fn axis_extremes_into<T: Element>(
        &self,
        input: NdView<'_, T>,
        axis: usize,
        ends: Ends,
        values: Output<'_, T>,
        indices: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (input, layout) = input.parts();
        let lines = Lines::of(&layout, axis)?;
        let results = results(&lines, ends)?;
        values.expect_len(results, ends.name())?;
        indices.expect_len(results, ends.name())?;
        match self.backend() {
            Backend::Cpu => cpu::find(input.host()?, &lines, ends.list(), values.host()?, indices.host()?)?,
            Backend::OpenCl(device) => {
                let (input, values) = (input.cl(device)?, values.cl(device, false)?);
                let form = gpu::Form::of::<T>(ends);
                gpu::find(device, &form, &input, &lines, values, indices.cl(device, false)?, scratch)?;
            }
        }
        Ok(())
    }
}

/// The number of elements of each output.
fn results(lines: &Lines, ends: Ends) -> Result<usize> {
    if lines.len == 0 && lines.outputs > 0 {
        return Err(Error::new(ErrorKind::Empty, format!("{} of 0 elements has no answer", ends.name())));
    }
    // No overflow: a nonempty layout has at most as many lines as elements, which fit an isize.
    Ok(ends.list().len() * lines.outputs)
}
