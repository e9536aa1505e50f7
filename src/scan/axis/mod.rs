//! Scan along one axis of an N-dimensional view: [`Device::scan_axis`], by an operator of the user's
//! [`Device::scan_axis_by`].
//!
//! | property | |
//! |---|---|
//! | work | as [`scan`](crate::scan) along the last axis; along others two reads of axes longer than 512, else one |
//! | operator | as [`scan`](crate::scan); the user's need not be commutative |
//! | determinism | everywhere, float sums and products too: the order depends on the shape, the axis and the types alone |
//! | scratch | that of a scan in segments, or an accumulator for each 512 elements: [`Device::scan_axis_scratch`] |
//! | limits | 8 axes ([`Layout::MAX_DIMS`]) of any lengths and strides |
//!
//! Lines whose elements lie side by side are segments of one length: [`segmented`](super::segmented). Of others an item walks
//! down chunks of 512 elements, beside its neighbours. What precedes a chunk comes from the chunks' totals, in the order of
//! tiles in [`scan`](crate::scan). Lines that lie closer together than 32 bytes are moved apart and back, and views with gaps
//! are moved together first, which takes two bytes more for each of theirs.

#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;

use super::{Scan, segmented::Segments};
use crate::{
    Buffer, Device, Element, Error, Input, Layout, NdView, NdViewMut, Output, Result, Scratch,
    op::{Monoid, Op, Operator, Source, monoid},
    runtime::Backend,
};

/// Elements of a chunk of a line; as in `cl/scan_axis.cl`.
pub const CHUNK: usize = 512;
/// Bytes from one line to the next that hold too few lines for items to have one each.
const LEAST_BYTES: usize = 32;

/// An array whose axis has `len` elements, `inner` apart, in each of `outer` places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    #[doc(hidden)]
    pub outer: usize,
    #[doc(hidden)]
    pub len: usize,
    #[doc(hidden)]
    pub inner: usize,
}

/// How its lines are scanned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// As segments of one length.
    Rows,
    /// The same after they are moved apart.
    Apart,
    #[doc(hidden)]
    Columns,
}

impl Shape {
    /// That of an array without gaps.
    pub fn of(shape: &[usize], axis: usize) -> Result<Self> {
        if axis >= shape.len() {
            return Err(Error::invalid(format!("axis {axis} of a shape of {shape:?}")));
        }
        let product = |part: &[usize]| part.iter().product();
        // Of arrays without elements a product may overflow.
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

impl Device {
    /// A scan of each line along an axis: the results in the shape of the view, without gaps, the last axis running fastest.
    ///
    /// Strides may be any, zero and negative among them. Each line starts from the scan's initial value; reversed, it is
    /// scanned from its last element to its first.
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
        self.scan_axis_into(input, axis, op, kind, &mut output, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::scan_axis`] into a caller's slice, buffer or view of as many elements. Does not wait, unless `output` is a host
    /// slice.
    ///
    /// # Errors
    ///
    /// As [`Device::scan_axis`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` has another number of
    /// elements, or overlaps the view.
    ///
    /// ```
    /// use oclprim::{Device, Scan, Scratch, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i32; 24])?;
    /// let cube = x.nd(&[2, 3, 4])?;
    /// let (mut sums, mut scratch) = (device.zeroed::<i32>(24)?, Scratch::new());
    /// scratch.reserve(&device, device.scan_axis_scratch::<i32, i32>(cube, 1)?)?;
    /// device.scan_axis_into(cube, 1, Sum, Scan::exclusive(5).reversed(), &mut sums, &mut scratch)?;
    /// assert_eq!(sums.to_vec()?, [[7; 4], [6; 4], [5; 4], [7; 4], [6; 4], [5; 4]].concat());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_axis_into<'a, 'b, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        _: O,
        kind: Scan<U>,
        output: impl Into<Output<'b, U>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.scan_lines((&monoid::<U, O>(), O::source()), input.into(), axis, kind, output.into(), scratch)
    }

    /// [`Device::scan_axis`] by an operator of the user's, which need not be commutative.
    ///
    /// # Errors
    ///
    /// As [`Device::scan_axis`]; [`ErrorKind::Build`](crate::ErrorKind::Build) and
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
        self.scan_axis_by_into(input, axis, op, kind, &mut output, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::scan_axis_by`] into a caller's slice, buffer or view, as [`Device::scan_axis_into`].
    ///
    /// # Errors
    ///
    /// As [`Device::scan_axis_by`] and [`Device::scan_axis_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, Scratch, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let (device, mut sums, mut scratch) = (Device::best()?, [0; 4], Scratch::new());
    /// let x = device.upload(&[200u8, 100, 1, 2])?;
    /// device.scan_axis_by_into(x.nd(&[2, 2])?, 1, &saturating, Scan::inclusive(), &mut sums, &mut scratch)?;
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
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (op, source) = op.monoid()?;
        self.scan_lines((&op, source), input.into(), axis, kind, output.into(), scratch)
    }

    /// All forms, built once for each type and operator.
    #[inline(never)]
    fn scan_lines<T, U, F>(
        &self,
        by: (&Monoid<U, F>, Source),
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
        if n == 0 {
            return Ok(());
        }
        let axes = 0..view.ndim();
        if shape.way::<T>() == Way::Apart {
            let axes: Vec<_> = axes.filter(|&k| k != axis).chain([axis]).collect();
            let lines = self.permute(view, &axes)?;
            let mut results = self.uninit(n)?;
            let parts = Segments::<u8>::Rows(shape.len);
            self.scan_parts(by, Input::from(&lines), parts, kind, Output::from(&mut results), scratch)?;
            let Shape { outer, len, inner } = shape;
            let output = NdViewMut::new(output, Layout::contiguous(&[outer, len, inner])?)?;
            return self.permute_into(results.nd(&[outer, inner, len])?, &[0, 2, 1], output);
        }
        let moved;
        let input = if view.layout().is_contiguous() {
            view.parts().0
        } else {
            moved = self.permute(view, &axes.collect::<Vec<_>>())?;
            Input::from(&moved)
        };
        if shape.way::<T>() == Way::Rows {
            return self.scan_parts(by, input, Segments::<u8>::Rows(shape.len), kind, output, scratch);
        }
        match self.backend() {
            Backend::Cpu => {
                cpu::scan(by.0, input.host()?, &shape, kind, output.host()?);
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                use crate::scan::gpu::{Form, Start};
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input], &[&output])?;
                let form = Form::by::<T, U>((by.1, !by.0.ordered), kind.reversed, None);
                gpu::scan(device, &form, &Start::of(by.0, kind), &shape, &input, &output, scratch)?;
                output.finish(device)
            }
        }
    }

    /// The bytes of scratch that a scan along an axis to a `U` uses at most, beside copies of views that have gaps or lines
    /// closer together than 32 bytes, which the device keeps from call to call.
    ///
    /// # Errors
    ///
    /// As [`Device::scan_axis`].
    ///
    /// ```
    /// let x = [1u8; 24];
    /// assert_eq!(oclprim::Device::cpu().scan_axis_scratch::<u8, u64>(&x, 0)?, 0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_axis_scratch<'a, T: Element, U: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
    ) -> Result<usize> {
        let view = input.into();
        let shape = Shape::of(view.shape(), axis)?;
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(_) => Ok(match shape.way::<T>() {
                Way::Rows | Way::Apart => self.scan_segments_scratch::<T, U>(view.len()),
                Way::Columns => gpu::scratch_bytes(&shape, U::Acc::TYPE),
            }),
        }
    }
}
