//! Scan along an axis of an N-dimensional view: [`Device::scan`] of [`view.along(axis)`](NdView::along). Results have
//! the shape of the view, in row-major order without gaps.
//!
//! | property | |
//! |---|---|
//! | work | along the last axis as [`scan`](crate::scan). Along any other axis, each element is read once, or twice if the axis has more than 512 elements. A transposition or a copy of a view, as below, adds a read and a write |
//! | operator | as [`scan`](crate::scan); a user-defined operator need not be commutative |
//! | determinism | same bits everywhere, float sums and products too, if the device keeps subnormals: the order depends only on the shape, the axis and the types |
//! | scratch | that of a segmented scan, or an accumulator for each 512 elements |
//! | limits | 8 axes ([`Layout::MAX_DIMS`]) of any lengths and strides |
//!
//! Contiguous lines are segments of one length: [`segmented`](super::segmented). For other lines, a work-item walks
//! down a chunk of 512 elements, and neighbouring work-items take neighbouring lines. The exclusive prefix of a chunk
//! comes from the aggregates of earlier chunks, in the order of tiles in [`scan`](crate::scan).
//!
//! If the stride along the axis is less than 32 bytes, the lines are transposed before the scan, and the results after
//! it. A view with gaps is copied first, which costs another read and write.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::{Scan, Scannable};
use crate::{
    Buffer, Device, Element, Error, Input, Layout, NdView, NdViewMut, Output, Result, Scratch, Source,
    op::{ByElement, Code, Combinable, Core, Monoid, OfEither, Operator},
    runtime::Backend,
    source::{Along, NdCast, Plain, Viewed, Wide, transform::Held},
};

/// Elements of a chunk of a line; as in `cl/scan_axis.cl`.
#[doc(hidden)]
pub const CHUNK: usize = 512;
/// Minimum stride along an axis, in bytes, at which work-items walk neighbouring lines. Below it, lines are transposed.
const LEAST_BYTES: usize = 32;

/// An array `[outer, len, inner]`, which is scanned along `len`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    #[doc(hidden)]
    pub outer: usize,
    #[doc(hidden)]
    pub len: usize,
    #[doc(hidden)]
    pub inner: usize,
}

/// The method that scans the lines.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// As segments of one length.
    Rows,
    /// As segments of one length, after a transpose.
    Apart,
    #[doc(hidden)]
    Columns,
}

impl Shape {
    /// The shape of an array without gaps.
    pub fn of(shape: &[usize], axis: usize) -> Result<Self> {
        if axis >= shape.len() {
            return Err(Error::invalid(format!("axis {axis} is out of range for an array of shape {shape:?}")));
        }
        let product = |part: &[usize]| part.iter().product();
        // In an array without elements, a product can overflow.
        if shape.contains(&0) {
            return Ok(Self { outer: 0, len: shape[axis], inner: 0 });
        }
        Ok(Self { outer: product(&shape[..axis]), len: shape[axis], inner: product(&shape[axis + 1..]) })
    }

    fn elements(&self) -> usize {
        self.outer * self.len * self.inner
    }

    #[doc(hidden)]
    pub fn way<T>(&self) -> Way {
        match self.inner {
            1 => Way::Rows,
            inner if inner * size_of::<T>() < LEAST_BYTES => Way::Apart,
            _ => Way::Columns,
        }
    }
}

impl<T: Combinable + Plain> Scannable for Along<NdView<'_, T>, usize> {
    fn scan<O: Core<T>>(self, device: &Device, op: O, usage: Scan<T>) -> Result<Buffer<T>> {
        let mut output = device.uninit(self.len())?;
        self.scan_into(device, op, usage, (&mut output).into())?;
        Ok(output)
    }

    fn scan_into<O: Core<T>>(self, device: &Device, op: O, usage: Scan<T>, output: Output<'_, T>) -> Result<()> {
        op.visit(ByElement(Lines { device, lines: self, usage, output }))
    }
}

impl<T: Element, U: Element + From<T>> Scannable for Along<NdCast<'_, T, U>, usize> {
    fn scan<O: Core<U>>(self, device: &Device, op: O, usage: Scan<U>) -> Result<Buffer<U>> {
        let mut output = device.uninit(self.len())?;
        self.scan_into(device, op, usage, (&mut output).into())?;
        Ok(output)
    }

    fn scan_into<O: Core<U>>(self, device: &Device, op: O, usage: Scan<U>, output: Output<'_, U>) -> Result<()> {
        let (op, code) = op.parts()?;
        device.scan_lines((&op, code), self.view.view(), self.axes, usage, output, &mut Scratch::new())
    }
}

/// The scan of lines along an axis.
struct Lines<'a, T: Pod> {
    device: &'a Device,
    lines: Along<NdView<'a, T>, usize>,
    usage: Scan<T>,
    output: Output<'a, T>,
}

impl<T: Combinable + Plain> OfEither<T> for Lines<'_, T> {
    type Output = Result<()>;

    fn of_elements(self, op: impl Core<T>) -> Result<()>
    where
        T: Element,
    {
        let Self { device, lines: Along { view, axes }, usage, output } = self;
        let (op, code) = op.parts()?;
        device.scan_lines((&op, code), view, axes, usage, output, &mut Scratch::new())
    }

    fn of_structs<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Result<()> {
        let Self { device, lines, usage, output } = self;
        let (elements, rows, len) = lines.in_memory(device)?;
        output.expect_len(lines.len(), "scan along an axis")?;
        if rows * len == 0 {
            return Ok(());
        }
        let (input, parts) = (elements.input(), Some(device.rows(len)));
        if lines.adjoin()? {
            return device.scan_structs(op, input, parts, usage, output);
        }
        let mut scanned = device.temporary(rows * len)?;
        device.scan_structs(op, input, parts, usage, Output::from(&mut scanned))?;
        lines.put(device, &scanned, output)
    }
}

impl Device {
    /// All scans along an axis, compiled once for each type and operator.
    #[inline(never)]
    fn scan_lines<T, U, F>(
        &self,
        by: (&Monoid<U, F>, Code),
        view: NdView<'_, T>,
        axis: usize,
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element + From<T>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (n, shape) = (view.len(), Shape::of(view.shape(), axis)?);
        output.expect_len(n, "scan along an axis")?;
        kind.expect_inexact(by.0)?;
        if n == 0 {
            return Ok(());
        }
        let way = shape.way::<T>();
        let moved = self.lines_of(view, axis, way)?;
        let input = moved.as_ref().map_or_else(|| view.parts().0, Input::from);
        match (way, self.backend()) {
            (Way::Rows, _) => self.scan_rows(by, input, shape.len, kind, output, scratch),
            (Way::Apart, _) => {
                let mut results = self.temporary(n)?;
                self.scan_rows(by, input, shape.len, kind, Output::from(&mut results), scratch)?;
                self.put_lines(&results, &shape, output)
            }
            (Way::Columns, Backend::Cpu) => cpu::scan(by.0, input.host()?, &shape, kind, output.host()?),
            (Way::Columns, Backend::OpenCl(device)) => {
                use crate::scan::gpu::{Form, Start};
                let form = Form::by::<T, U>((by.1, !by.0.ordered), kind.reversed);
                gpu::scan(device, &form, &Start::of(by.0, kind), &shape, input.any(), output.any(), scratch)
            }
        }
    }

    /// Scan of contiguous lines. Narrower elements are converted before the scan if the order matters.
    fn scan_rows<T, U, F>(
        &self,
        by: (&Monoid<U, F>, Code),
        input: Input<'_, T>,
        len: usize,
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element + From<T>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let cast;
        let input = if let Some(input) = input.of_type() {
            Wide::Own(Held::There(input))
        } else {
            cast = input.cast::<U>();
            Wide::of(&cast, self, !by.0.ordered)?
        };
        self.scan_parts(by, &input, self.rows(len), kind, output, scratch)
    }

    /// A copy of the view without gaps, if it has gaps. [`Way::Apart`] always makes a copy, with contiguous lines.
    #[inline(never)]
    fn lines_of<T: Element>(&self, view: NdView<'_, T>, axis: usize, way: Way) -> Result<Option<Buffer<T>>> {
        let last = (way == Way::Apart).then_some(axis);
        if last.is_none() && view.layout().is_contiguous() {
            return Ok(None);
        }
        let axes: Vec<_> = (0..view.ndim()).filter(|&k| Some(k) != last).chain(last).collect();
        let mut lines = self.temporary(view.len())?;
        let shape: Vec<_> = axes.iter().map(|&k| view.shape()[k]).collect();
        self.copy(view.permute(&axes)?, NdViewMut::new(Output::from(&mut lines), Layout::contiguous(&shape)?)?)?;
        Ok(Some(lines))
    }

    /// Writes the results of contiguous lines in the order of the shape.
    #[inline(never)]
    fn put_lines<U: Element>(&self, results: &Buffer<U>, shape: &Shape, output: Output<'_, U>) -> Result<()> {
        let Shape { outer, len, inner } = *shape;
        let output = NdViewMut::new(output, Layout::contiguous(&[outer, len, inner])?)?;
        self.copy(results.nd(&[outer, inner, len])?.permute(&[0, 2, 1])?, output)
    }
}
