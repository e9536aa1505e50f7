//! The smallest and the largest element of each line along axes, and their indices: [`Device::arg_min`],
//! [`Device::arg_max`] and [`Device::min_max`] of [`view.along(axes)`](NdView::along).
//!
//! | property | |
//! |---|---|
//! | work | one read of each element, and one more read for each result |
//! | order | as [`Device::arg_min`]: the lowest index on ties, where -0 equals +0; the first NaN, if any |
//! | determinism | same bits everywhere |
//! | scratch | none if lines are many; else an index for each part of a line |
//! | limits | as [`reduce::axis`](crate::reduce::axis) |
//!
//! Elements are mapped to integers with the same order, and several are compared at once. The kernels search these for
//! an index only if their smallest is a new minimum, which is rare.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::Lines;
use crate::{
    Buffer, Device, Element, Error, ErrorKind, NdView, Output, Result, Scratch,
    reduce::{End, Extremal},
    runtime::Backend,
    source::{Along, AlongOne, Axes},
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
    const fn of(end: End) -> Self {
        match end {
            End::Min => Self::Min,
            End::Max => Self::Max,
        }
    }

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
/// let found = device.arg_max(x.nd(&[2, 3])?.along(1))?;
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

impl<T: Element, A: Axes> Extremal for Along<NdView<'_, T>, A> {
    type One = AxisExtremes<T>;
    type Both = AxisExtremes<T>;

    fn one(self, device: &Device, end: End) -> Result<AxisExtremes<T>> {
        device.axis_extremes(self.view, self.axes.list(), Ends::of(end))
    }

    fn one_into(self, device: &Device, end: End, values: Output<'_, T>, indices: Output<'_, u64>) -> Result<()> {
        let lines = AlongOne::new(device, self.view, self.axes.list())?;
        let ends = Ends::of(end);
        device.axis_extremes_into(lines.view()?, lines.axis, ends, values, indices, &mut Scratch::new())
    }

    fn both(self, device: &Device) -> Result<AxisExtremes<T>> {
        device.axis_extremes(self.view, self.axes.list(), Ends::Both)
    }

    fn both_into(self, device: &Device, values: Output<'_, T>, indices: Output<'_, u64>) -> Result<()> {
        let lines = AlongOne::new(device, self.view, self.axes.list())?;
        device.axis_extremes_into(lines.view()?, lines.axis, Ends::Both, values, indices, &mut Scratch::new())
    }
}

impl Device {
    #[inline(never)]
    fn axis_extremes<T: Element>(&self, input: NdView<'_, T>, axes: &[usize], ends: Ends) -> Result<AxisExtremes<T>> {
        let one = AlongOne::new(self, input, axes)?;
        let (input, axis) = (one.view()?, one.axis);
        let results = results(&Lines::of(input.layout(), axis)?, ends)?;
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
