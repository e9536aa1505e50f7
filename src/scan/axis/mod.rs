//! Scan along an axis of an N-dimensional view: [`Device::scan_axis`]. [`Device::scan_axis_by`] takes a user's
//! operator.
//!
//! | property | |
//! |---|---|
//! | work | along the last axis as [`scan`](crate::scan). Along any other axis, each element is read once, or twice if the axis has more than 512 elements; transpositions and copies of views, below, cost another read and write each |
//! | operator | as [`scan`](crate::scan); a user's operator need not be commutative |
//! | determinism | same bits everywhere, float sums and products too: the order depends only on the shape, the axis and the types |
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

use super::Scan;
use crate::{
    Buffer, Device, Element, Error, Input, Layout, NdView, NdViewMut, Output, Result, Scratch,
    op::{Code, Core, Monoid, Op, Operator, built_in},
    runtime::Backend,
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

/// # Scans along an axis
///
/// These methods scan each line along an axis of an N-dimensional view. Module: [`scan::axis`](crate::scan::axis).
impl Device {
    /// Scan along an axis: `out[i, j, ..., k] = x[i, j, ..., 0] op ... op x[i, j, ..., k]` if inclusive.
    ///
    /// The last index in this formula runs along `axis`. Results have the shape of the view, in row-major order without
    /// gaps. Strides may be zero or negative. Each line starts from the scan's initial value. A reversed scan runs from
    /// the last element of each line to its first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::{Max, Sum}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let rows = x.nd(&[2, 3])?;
    /// let sums = device.scan_axis(rows, 1, Sum, Scan::<f32>::inclusive())?;
    /// assert_eq!(sums.to_vec()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// let sums = device.scan_axis(rows, 0, Sum, Scan::<f32>::inclusive())?;
    /// assert_eq!(sums.to_vec()?, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    /// let largest = device.scan_axis(rows.slice(1, 1..)?, 1, Max, Scan::exclusive(2.5f32))?;
    /// assert_eq!(largest.to_vec()?, [2.5, 2.5, 2.5, 5.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_axis<'a, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: O,
        kind: Scan<U>,
    ) -> Result<Buffer<U>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.scan_axis_into(input, axis, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_axis`] into a slice, buffer or view with one element for each input element.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_axis`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` has
    /// another number of elements, or overlaps the view.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i32; 24])?;
    /// let cube = x.nd(&[2, 3, 4])?;
    /// let mut sums = device.zeroed::<i32>(24)?;
    /// device.scan_axis_into(cube, 1, Sum, Scan::exclusive(5).reversed(), &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [[7; 4], [6; 4], [5; 4], [7; 4], [6; 4], [5; 4]].concat());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_axis_into<'a, 'b, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: O,
        kind: Scan<U>,
        output: impl Into<Output<'b, U>>,
    ) -> Result<()> {
        let (op, source) = built_in::<U, O>(op);
        self.scan_lines((&op, source), input.into(), axis, kind, output.into(), &mut Scratch::new())
    }

    /// [`Device::scan_axis`] with a user's operator, which need not be commutative.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_axis`]; [`ErrorKind::Build`](crate::ErrorKind::Build) and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) as [`Device::scan_by`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let device = Device::best()?;
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// let x = device.upload(&[3, 0, 0, 7, 5, 0])?;
    /// let filled = device.scan_axis_by(x.nd(&[3, 2])?, 0, &last, Scan::inclusive())?;
    /// assert_eq!(filled.to_vec()?, [3, 0, 3, 7, 5, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_axis_by<'a, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: &Operator<T, F>,
        kind: Scan<T>,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.scan_axis_by_into(input, axis, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_axis_by`] into a slice, buffer or view. All else is as in [`Device::scan_axis_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_axis_by`] and [`Device::scan_axis_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let (device, mut sums) = (Device::best()?, [0; 4]);
    /// let x = device.upload(&[200u8, 100, 1, 2])?;
    /// device.scan_axis_by_into(x.nd(&[2, 2])?, 1, &saturating, Scan::inclusive(), &mut sums)?;
    /// assert_eq!(sums, [200, 255, 1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_axis_by_into<'a, 'b, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: &Operator<T, F>,
        kind: Scan<T>,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        let (op, source) = op.parts()?;
        self.scan_lines((&op, source), input.into(), axis, kind, output.into(), &mut Scratch::new())
    }

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
            (Way::Rows, _) => self.scan_parts(by, input, self.rows(shape.len), kind, output, scratch),
            (Way::Apart, _) => {
                let mut results = self.temporary(n)?;
                self.scan_parts(by, input, self.rows(shape.len), kind, Output::from(&mut results), scratch)?;
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
        self.permute_into(view, &axes, NdViewMut::new(Output::from(&mut lines), Layout::contiguous(&shape)?)?)?;
        Ok(Some(lines))
    }

    /// Writes the results of contiguous lines in the order of the shape.
    #[inline(never)]
    fn put_lines<U: Element>(&self, results: &Buffer<U>, shape: &Shape, output: Output<'_, U>) -> Result<()> {
        let Shape { outer, len, inner } = *shape;
        let output = NdViewMut::new(output, Layout::contiguous(&[outer, len, inner])?)?;
        self.permute_into(results.nd(&[outer, inner, len])?, &[0, 2, 1], output)
    }
}
