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
//! Elements are mapped to integers with the same order, and several are compared at once. If the smallest of these is a
//! new minimum, which is rare, the kernels search them for its index.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use super::Lines;
use crate::{
    Device, Element, Error, ErrorKind, NdView, Output, Result, Scratch,
    reduce::{End, Ends, Extremal, Extremes},
    runtime::Backend,
    source::{Along, AlongOne, Axes, group::lines_of_expressions},
};

impl<T: Element, A: Axes> Extremal for Along<NdView<'_, T>, A> {
    type One = Extremes<T>;
    type Both = Extremes<T>;

    fn one(self, device: &Device, end: End) -> Result<Extremes<T>> {
        device.axis_extremes(self.view, self.axes.list(), Ends::of(end))
    }

    fn one_into(self, device: &Device, end: End, values: Output<'_, T>, indices: Output<'_, u64>) -> Result<()> {
        let lines = AlongOne::new(device, self.view, self.axes.list())?;
        let ends = Ends::of(end);
        device.axis_extremes_into(lines.view()?, lines.axis, ends, values, indices, &mut Scratch::new())
    }

    fn both(self, device: &Device) -> Result<Extremes<T>> {
        device.axis_extremes(self.view, self.axes.list(), Ends::Both)
    }

    fn both_into(self, device: &Device, values: Output<'_, T>, indices: Output<'_, u64>) -> Result<()> {
        let lines = AlongOne::new(device, self.view, self.axes.list())?;
        device.axis_extremes_into(lines.view()?, lines.axis, Ends::Both, values, indices, &mut Scratch::new())
    }
}

lines_of_expressions! { Extremal[Element] {
    type One = Extremes<Self::Item>;
    type Both = Extremes<Self::Item>;
    fn one(end: End) -> Self::One;
    fn one_into(end: End, values: Output<'_, Self::Item>, indices: Output<'_, u64>) -> ();
    fn both() -> Self::Both;
    fn both_into(values: Output<'_, Self::Item>, indices: Output<'_, u64>) -> ();
} }

impl Device {
    #[inline(never)]
    fn axis_extremes<T: Element>(&self, input: NdView<'_, T>, axes: &[usize], ends: Ends) -> Result<Extremes<T>> {
        let one = AlongOne::new(self, input, axes)?;
        let (input, axis) = (one.view()?, one.axis);
        let results = results(&Lines::of(input.layout(), axis)?, ends)?;
        let (mut values, mut indices) = (self.uninit(results)?, self.uninit(results)?);
        let (to, places) = (Output::from(&mut values), Output::from(&mut indices));
        self.axis_extremes_into(input, axis, ends, to, places, &mut Scratch::new())?;
        Ok(Extremes { values, indices })
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
        values.expect_len(results, &what(ends))?;
        indices.expect_len(results, &what(ends))?;
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

fn what(ends: Ends) -> String {
    format!("{} along an axis", ends.name())
}

/// The number of elements of each output.
fn results(lines: &Lines, ends: Ends) -> Result<usize> {
    if lines.len == 0 && lines.outputs > 0 {
        return Err(Error::new(ErrorKind::Empty, format!("{} of 0 elements has no answer", what(ends))));
    }
    // No overflow: a nonempty layout has at most as many lines as elements, which fit an isize.
    Ok(ends.list().len() * lines.outputs)
}
