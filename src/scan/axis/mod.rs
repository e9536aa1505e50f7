//! Scan along axes of an N-dimensional view: [`Device::scan`] of [`view.along(axes)`](NdView::along). Results have
//! the shape of the view, in row-major order without gaps. The elements along several axes form one line, in row-major
//! order of these axes.
//!
//! | property | |
//! |---|---|
//! | work | along the last axis as [`scan`](crate::scan). Along other axes, each element is read once, or twice if the axis has more than 512 elements. A transposition or a copy of a view, as below, adds a read and a write |
//! | operator | as [`scan`](crate::scan); a user-defined operator need not be commutative |
//! | determinism | same bits everywhere, float sums and products too, if the device keeps subnormals. The order depends only on the shape, the axes and the types |
//! | scratch | that of a segmented scan, or an accumulator for each 512 elements |
//! | limits | 8 axes ([`Layout::MAX_DIMS`](crate::Layout::MAX_DIMS)) of any lengths and strides |
//!
//! Contiguous lines are segments of one length: [`segmented`](super::segmented). For other lines, a work-item walks
//! down a chunk of 512 elements, and neighbouring work-items take neighbouring lines. The exclusive prefix of a chunk
//! comes from the aggregates of earlier chunks, in the order of tiles in [`scan`](crate::scan).
//!
//! If the stride along the axis is less than 32 bytes, the lines are transposed before the scan, and the results after
//! it. The same holds for lines along several axes, if another axis of at least two elements lies between these. A view
//! with gaps is copied first, which costs another read and write.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::{Scan, Scannable};
use crate::{
    Buffer, Device, Element, Input, NdView, Output, Result, Scratch, Source,
    op::{ByElement, Code, Combinable, Core, Monoid, OfEither, Operator},
    runtime::{Backend, extents_apart},
    source::{
        Along, Axes, NdCast, Plain, Viewed, Wide,
        group::{adjoin, in_memory, kept_and_taken, lines_of_expressions, put_lines},
        transform::Held,
    },
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
    /// The shape of a scan along `axes`, in ascending order, of an array without gaps. `None` if another axis of at
    /// least two elements lies between them.
    pub fn of(shape: &[usize], axes: &[usize]) -> Option<Self> {
        // In an array without elements, a product can overflow.
        if shape.contains(&0) {
            return Some(Self { outer: 0, len: 0, inner: 0 });
        }
        let first = axes.first().copied().unwrap_or(shape.len());
        let end = axes.last().map_or(first, |last| last + 1);
        let product = |part: &[usize]| part.iter().product();
        let of =
            Self { outer: product(&shape[..first]), len: product(&shape[first..end]), inner: product(&shape[end..]) };
        (of.len == axes.iter().map(|&axis| shape[axis]).product::<usize>()).then_some(of)
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

impl<T: Combinable + Plain, A: Axes> Scannable for Along<NdView<'_, T>, A> {
    fn scan<O: Core<T>>(self, device: &Device, op: O, usage: Scan<T>) -> Result<Buffer<T>> {
        let mut output = device.uninit(self.len())?;
        self.scan_into(device, op, usage, (&mut output).into())?;
        Ok(output)
    }

    fn scan_into<O: Core<T>>(self, device: &Device, op: O, usage: Scan<T>, output: Output<'_, T>) -> Result<()> {
        op.visit(ByElement(Lines { device, view: self.view, axes: self.axes.list(), usage, output }))
    }
}

impl<T: Element, U: Element + From<T>, A: Axes> Scannable for Along<NdCast<'_, T, U>, A> {
    fn scan<O: Core<U>>(self, device: &Device, op: O, usage: Scan<U>) -> Result<Buffer<U>> {
        let mut output = device.uninit(self.len())?;
        self.scan_into(device, op, usage, (&mut output).into())?;
        Ok(output)
    }

    fn scan_into<O: Core<U>>(self, device: &Device, op: O, usage: Scan<U>, output: Output<'_, U>) -> Result<()> {
        let (op, code) = op.parts()?;
        device.scan_lines((&op, code), self.view.view(), self.axes.list(), usage, output, &mut Scratch::new())
    }
}

lines_of_expressions! { Scannable[Combinable + Plain] {
    fn scan<O: Core<Self::Item>>(op: O, usage: Scan<Self::Item>) -> Buffer<Self::Item>;
    fn scan_into<O: Core<Self::Item>>(op: O, usage: Scan<Self::Item>, output: Output<'_, Self::Item>) -> ();
} }

/// The scan of lines along axes.
struct Lines<'a, T: Pod> {
    device: &'a Device,
    view: NdView<'a, T>,
    axes: &'a [usize],
    usage: Scan<T>,
    output: Output<'a, T>,
}

impl<T: Combinable + Plain> OfEither<T> for Lines<'_, T> {
    type Output = Result<()>;

    fn of_elements(self, op: impl Core<T>) -> Result<()>
    where
        T: Element,
    {
        let Self { device, view, axes, usage, output } = self;
        let (op, code) = op.parts()?;
        device.scan_lines((&op, code), view, axes, usage, output, &mut Scratch::new())
    }

    fn of_structs<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Result<()> {
        let Self { device, view, axes, usage, output } = self;
        let (elements, rows, len) = in_memory(device, view, axes)?;
        output.expect_len(view.len(), "scan along axes")?;
        extents_apart(&[view.extent()], &[output.extent()])?;
        if rows * len == 0 {
            return Ok(());
        }
        let (input, parts) = (elements.input(), Some(device.rows(len)));
        if adjoin(view.shape(), axes)? {
            return device.scan_structs(op, (input, None), parts, usage, output);
        }
        let mut scanned = device.temporary(rows * len)?;
        device.scan_structs(op, (input, None), parts, usage, Output::from(&mut scanned))?;
        put_lines(device, view.shape(), axes, &scanned, output)
    }
}

impl Device {
    /// All scans along axes, compiled once for each type and operator.
    #[inline(never)]
    fn scan_lines<T, U, F>(
        &self,
        by: (&Monoid<U, F>, Code),
        view: NdView<'_, T>,
        axes: &[usize],
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element + From<T>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (n, [_, taken]) = (view.len(), kept_and_taken(view.shape(), axes)?);
        output.expect_len(n, "scan along axes")?;
        extents_apart(&[view.extent()], &[output.extent()])?;
        kind.expect_inexact(by.0)?;
        if n == 0 {
            return Ok(());
        }
        let Some(shape) = Shape::of(view.shape(), &taken).filter(|shape| shape.way::<T>() != Way::Apart) else {
            let (lines, _, len) = in_memory(self, view, axes)?;
            let mut results = self.temporary(n)?;
            self.scan_rows(by, lines.input(), len, kind, Output::from(&mut results), scratch)?;
            return put_lines(self, view.shape(), axes, &results, output);
        };
        let (elements, ..) = in_memory(self, view, &[])?;
        let input = elements.input();
        if shape.way::<T>() == Way::Rows {
            return self.scan_rows(by, input, shape.len, kind, output, scratch);
        }
        match self.backend() {
            Backend::Cpu => cpu::scan(by.0, input.host()?, &shape, kind, output.host()?),
            Backend::OpenCl(device) => {
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
}
