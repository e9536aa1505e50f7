//! The least and the largest element of each line along an axis, and where they are: [`Device::arg_min_axis`],
//! [`Device::arg_max_axis`], [`Device::min_max_axis`].
//!
//! | property | |
//! |---|---|
//! | work | one read of the elements, and one more for each result |
//! | order | as [`Device::arg_min`]: the lowest index on ties, where -0 and +0 tie; the first NaN, if any |
//! | determinism | everywhere |
//! | scratch | none where lines are many; else an index for each part of a line: [`Device::min_max_axis_scratch`] |
//! | limits | as [`reduce_axis`](Device::reduce_axis) |
//!
//! Elements are compared as integers whose order is theirs, several at once; only where the least of those is a new least
//! one, which is rare, is it looked for.

#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;

use super::Lines;
use crate::{
    Buffer, Device, Element, Error, ErrorKind, NdView, Output, Result, Scratch, reduce::End, runtime::Backend,
};

/// What is looked for in a line.
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

/// The extremes of lines along an axis, in the order of their results.
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
    /// The elements.
    pub values: Buffer<T>,
    /// The index of each along the axis; the lowest one of equal elements.
    pub indices: Buffer<u64>,
}

impl Device {
    /// The smallest element of each line along an axis and its index there: one result for each index of the other axes,
    /// the last one of which runs fastest.
    ///
    /// Of each line as [`Device::arg_min`] finds it: the lowest index on ties, where -0 and +0 tie, and the first NaN, if
    /// any. Strides may be any, zero and negative among them. Does not wait for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`] if the axis has no elements, and there are results; else as [`Device::reduce_axis`].
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

    /// [`Device::arg_min_axis`] into a caller's slices, buffers or views of as many elements as there are results.
    ///
    /// Does not wait, unless one of them is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min_axis`]; [`ErrorKind::InvalidInput`] if an output has another number of elements.
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3, 1, 2, 1, 5, 5])?;
    /// let (mut values, mut indices) = ([0; 2], [0; 2]);
    /// device.arg_min_axis_into(x.nd(&[2, 3])?, 1, &mut values, &mut indices, &mut Scratch::new())?;
    /// assert_eq!((values, indices), ([1, 1], [1, 0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min_axis_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        values: impl Into<Output<'b, T>>,
        indices: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.axis_extremes_into(input.into(), axis, Ends::Min, values.into(), indices.into(), scratch)
    }

    /// The largest element of each line along an axis and its index there; else as [`Device::arg_min_axis`].
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min_axis`].
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

    /// [`Device::arg_max_axis`] into a caller's slices, buffers or views of as many elements as there are results.
    ///
    /// Does not wait, unless one of them is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min_axis_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3, 1, 2, 1, 5, 5])?;
    /// let (mut values, mut indices) = (device.zeroed::<i32>(3)?, device.zeroed(3)?);
    /// device.arg_max_axis_into(x.nd(&[2, 3])?, 0, &mut values, &mut indices, &mut Scratch::new())?;
    /// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![3, 5, 5], vec![0, 1, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max_axis_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        values: impl Into<Output<'b, T>>,
        indices: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.axis_extremes_into(input.into(), axis, Ends::Max, values.into(), indices.into(), scratch)
    }

    /// The smallest and the largest element of each line along an axis and their indices there, in one pass: first the
    /// smallest of every line, then the largest of every line; each as [`Device::arg_min_axis`] and
    /// [`Device::arg_max_axis`] find it.
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min_axis`].
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

    /// [`Device::min_max_axis`] into a caller's slices, buffers or views of twice as many elements as there are lines.
    ///
    /// Does not wait, unless one of them is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::arg_min_axis_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, 2.5, -1.0, 4.0])?;
    /// let (mut values, mut indices) = (device.zeroed::<f32>(4)?, device.zeroed(4)?);
    /// let columns = x.nd(&[2, 2])?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.min_max_axis_scratch(columns, 0)?)?;
    /// device.min_max_axis_into(columns, 0, &mut values, &mut indices, &mut scratch)?;
    /// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![-1.0, 2.5, 0.5, 4.0], vec![1, 0, 0, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn min_max_axis_into<'a, 'b, 'c, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        values: impl Into<Output<'b, T>>,
        indices: impl Into<Output<'c, u64>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.axis_extremes_into(input.into(), axis, Ends::Both, values.into(), indices.into(), scratch)
    }

    /// The bytes of scratch that [`Device::min_max_axis_into`] uses, which the two others do not exceed.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce_axis`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32; 24])?;
    /// Scratch::new().reserve(&device, device.min_max_axis_scratch(x.nd(&[2, 12])?, 1)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn min_max_axis_scratch<'a, T: Element>(&self, input: impl Into<NdView<'a, T>>, axis: usize) -> Result<usize> {
        let lines = Lines::of(input.into().layout(), axis)?;
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::scratch_bytes(device, &lines, &gpu::Form::of::<T>(Ends::Both)),
        }
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
            Backend::Cpu => cpu::find(input.host()?, &lines, ends.list(), values.host()?, indices.host()?),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, values) = (input.cl(device)?, values.cl(device, false)?);
                let form = gpu::Form::of::<T>(ends);
                gpu::find(device, &form, &input, &lines, values, indices.cl(device, false)?, scratch)?;
            }
        }
        Ok(())
    }
}

/// How many elements each output has.
fn results(lines: &Lines, ends: Ends) -> Result<usize> {
    if lines.len == 0 && lines.outputs > 0 {
        return Err(Error::new(ErrorKind::Empty, format!("{} of 0 elements has no answer", ends.name())));
    }
    // Where there are elements, lines are at most as many, which isize counts.
    Ok(ends.list().len() * lines.outputs)
}
