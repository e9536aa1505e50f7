//! Reduction along axes of an N-dimensional view: [`Device::reduce`] of [`view.along(axes)`](NdView::along).
//! [`extremes`] has arg-min and arg-max. [`moments`] has mean and variance.
//!
//! | property | |
//! |---|---|
//! | work | n - 1 operations for each result along an axis of n elements, one read of the elements |
//! | operator | as [`reduce`](crate::reduce) |
//! | determinism | same bits everywhere, floats too, if the device keeps subnormals: the order depends only on the length of the axis. [`Sum.exact()`](crate::op::Usage::exact) and [`Mean`](crate::op::Mean) are correctly rounded |
//! | scratch | none if results are many; else an accumulator for each part of an axis |
//! | limits | 8 axes ([`Layout::MAX_DIMS`]) of any lengths and strides |
//!
//! The order is pairwise summation (Higham 1993) over chunks of 16 rows of 32 lanes: each lane adds its elements row by
//! row. Lanes, then chunks, combine as a tree of neighbours. Neighbouring work-items take neighbouring results or
//! neighbouring elements of the axis, whichever lie closer together. If results are too few to fill the device, the
//! axis is divided into parts, which a second launch combines.
//!
//! Exact sums of [products](NdView::times) read both factors with their own strides. Other reductions of products write
//! the products to memory first.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod exact;
pub mod extremes;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod moments;

use bytemuck::Pod;

use super::Reducible;
use crate::{
    Buffer, Determinism, Device, Element, Error, Layout, NdView, Output, Result, Scratch, Source, memory,
    op::{ByElement, Code, Combinable, Core, Monoid, OfEither, Operator, Scan},
    reduce::exact_groups::{self, Exact},
    runtime::{Backend, extents_apart},
    source::{Along, AlongOne, Axes, Function, Held, Item, NdCast, NdMap, NdTimes, Plain, Viewed, in_memory},
};

/// Lanes of a chunk, and elements of a chunk of 16 rows; as in `cl/reduce_axis.cl`.
const LANES: usize = 32;
const CHUNK: usize = 16 * LANES;

/// The lines along an axis in memory. There is a line for each output.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    pub(crate) len: usize,
    pub(crate) stride: isize,
    pub(crate) outputs: usize,
    /// The axes of the outputs, folded; at least one.
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    /// Index of the first element.
    pub(crate) offset: usize,
}

/// The number of results; `None` if it overflows, as it can if the reduced axis is empty. If another axis is empty
/// too, there are no results.
fn outputs(kept: &[usize]) -> Option<usize> {
    if kept.contains(&0) { Some(0) } else { kept.iter().try_fold(1usize, |product, &n| product.checked_mul(n)) }
}

/// The shape and the strides of a folded layout; at least one axis.
fn dimensions(folded: &Layout) -> (Vec<usize>, Vec<isize>) {
    match folded.ndim() {
        0 => (vec![1], vec![0]),
        _ => (folded.shape().to_vec(), folded.strides().to_vec()),
    }
}

impl Lines {
    #[doc(hidden)]
    pub fn of(layout: &Layout, axis: usize) -> Result<Self> {
        if axis >= layout.ndim() {
            return Err(Error::invalid(format!(
                "axis {axis} is out of range for an array of shape {:?}",
                layout.shape()
            )));
        }
        let (len, stride) = (layout.shape()[axis], layout.strides()[axis]);
        let kept: Vec<usize> = (0..layout.ndim()).filter(|&k| k != axis).map(|k| layout.shape()[k]).collect();
        let outputs = outputs(&kept).ok_or_else(|| {
            Error::invalid(format!(
                "the results along axis {axis} of a shape of {:?} overflow the address space",
                layout.shape()
            ))
        })?;
        if layout.is_empty() {
            return Ok(Self { len, stride: 1, outputs, shape: vec![outputs], strides: vec![0], offset: 0 });
        }
        let (shape, strides) = dimensions(&layout.index(axis, 0)?.fold());
        Ok(Self { len, stride, outputs, shape, strides, offset: layout.offset() })
    }

    /// The lines of two layouts of one shape. The axes of their outputs are folded together.
    fn pair([x, y]: [&Layout; 2], axis: usize) -> Result<[Self; 2]> {
        let [mut x_lines, mut y_lines] = [Self::of(x, axis)?, Self::of(y, axis)?];
        if !x.is_empty() {
            let (x, y) = x.index(axis, 0)?.fold_with(&y.index(axis, 0)?)?;
            (x_lines.shape, x_lines.strides) = dimensions(&x);
            (y_lines.shape, y_lines.strides) = dimensions(&y);
        }
        Ok([x_lines, y_lines])
    }

    /// Returns whether neighbouring outputs lie closer together than neighbours on the axis.
    fn across(&self) -> bool {
        let inner = self.strides.last().map_or(0, |stride| stride.unsigned_abs());
        self.outputs > 1 && inner != 0 && inner < self.stride.unsigned_abs()
    }

    /// Returns whether the lines are contiguous: each one starts where the one before it ends.
    fn adjoin(&self) -> bool {
        self.stride == 1 && self.strides == [self.len as isize]
    }

    /// The index of the first element of an output's line.
    fn place(&self, output: usize) -> usize {
        let mut at = self.offset;
        let mut rest = output;
        for (&n, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at = at.wrapping_add_signed((rest % n) as isize * stride);
            rest /= n;
        }
        at
    }

    /// The indices of the first elements of some outputs' lines.
    fn places(&self, outputs: std::ops::Range<usize>) -> Vec<usize> {
        let (n, stride) = (self.shape.last().copied().unwrap_or(1), self.strides.last().copied().unwrap_or(1));
        let mut places = Vec::with_capacity(outputs.len());
        let mut next = outputs.start;
        while next < outputs.end {
            // The outputs up to the end of their row.
            let (start, count) = (self.place(next), (n - next % n).min(outputs.end - next));
            places.extend((0..count).map(|k| start.wrapping_add_signed(k as isize * stride)));
            next += count;
        }
        places
    }

    /// Returns whether the first elements of some outputs' lines are neighbours in memory.
    fn neighbours(&self, outputs: &std::ops::Range<usize>) -> bool {
        let (n, stride) = (self.shape.last().copied().unwrap_or(1), self.strides.last().copied().unwrap_or(1));
        outputs.len() == 1 || stride == 1 && outputs.start % n + outputs.len() <= n
    }
}

impl<T: Combinable + Plain, A: Axes> Reducible for Along<NdView<'_, T>, A> {
    fn reduce<O: Core<T>>(self, device: &Device, op: O, level: Determinism) -> Result<Buffer<T>> {
        op.visit(ByElement(OfView { device, view: self.view, axes: self.axes.list(), level }))
    }

    fn reduce_into<O: Core<T>>(self, device: &Device, op: O, level: Determinism, output: Output<'_, T>) -> Result<()> {
        op.visit(ByElement((OfView { device, view: self.view, axes: self.axes.list(), level }, output)))
    }
}

impl<T: Element, U: Element + From<T>, A: Axes> Reducible for Along<NdCast<'_, T, U>, A> {
    fn reduce<O: Core<U>>(self, device: &Device, op: O, level: Determinism) -> Result<Buffer<U>> {
        OfView { device, view: self.view.view(), axes: self.axes.list(), level }.reduce(op)
    }

    fn reduce_into<O: Core<U>>(self, device: &Device, op: O, level: Determinism, output: Output<'_, U>) -> Result<()> {
        OfView { device, view: self.view.view(), axes: self.axes.list(), level }.reduce_into(op, output)
    }
}

/// The reduction of a view along axes.
struct OfView<'a, T: Pod> {
    device: &'a Device,
    view: NdView<'a, T>,
    axes: &'a [usize],
    level: Determinism,
}

impl<T: Element> OfView<'_, T> {
    fn reduce<U: Element + From<T>>(self, op: impl Core<U>) -> Result<Buffer<U>> {
        let Self { device, view, axes, level } = self;
        let lines = AlongOne::new(device, view, axes)?;
        let view = lines.view()?;
        let mut out = device.uninit(Lines::of(view.layout(), lines.axis)?.outputs)?;
        reduce_along(device, view, lines.axis, (op, level), (&mut out).into())?;
        Ok(out)
    }

    fn reduce_into<U: Element + From<T>>(self, op: impl Core<U>, output: Output<'_, U>) -> Result<()> {
        let Self { device, view, axes, level } = self;
        let lines = AlongOne::new(device, view, axes)?;
        reduce_along(device, lines.view()?, lines.axis, (op, level), output)
    }
}

impl<T: Combinable + Plain> OfEither<T> for OfView<'_, T> {
    type Output = Result<Buffer<T>>;

    fn of_elements(self, op: impl Core<T>) -> Result<Buffer<T>>
    where
        T: Element,
    {
        self.reduce(op)
    }

    fn of_structs<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Result<Buffer<T>> {
        let Self { device, view, axes, level } = self;
        let lines = in_memory(device, view, axes)?;
        let mut out = device.uninit(lines.1)?;
        device.reduce_rows((op, level), lines, (&mut out).into())?;
        Ok(out)
    }
}

impl<T: Combinable + Plain> OfEither<T> for (OfView<'_, T>, Output<'_, T>) {
    type Output = Result<()>;

    fn of_elements(self, op: impl Core<T>) -> Result<()>
    where
        T: Element,
    {
        self.0.reduce_into(op, self.1)
    }

    fn of_structs<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Result<()> {
        let (OfView { device, view, axes, level }, output) = self;
        extents_apart(&[view.extent()], &[output.extent()])?;
        device.reduce_rows((op, level), in_memory(device, view, axes)?, output)
    }
}

impl<T: Element, A: Axes> Reducible for Along<NdTimes<'_, T>, A> {
    fn reduce<O: Core<T>>(self, device: &Device, op: O, level: Determinism) -> Result<Buffer<T>> {
        let Some(of) = op.exactly(level)? else {
            let products = self.view.written(device)?;
            return products.view()?.along(self.axes).reduce(device, op, level);
        };
        let lines = self.view.lines(device, self.axes.list())?;
        let mut out = device.uninit(Lines::of(lines[0].view()?.layout(), lines[0].axis)?.outputs)?;
        device.sum_products(of, &lines, (&mut out).into())?;
        Ok(out)
    }

    fn reduce_into<O: Core<T>>(self, device: &Device, op: O, level: Determinism, output: Output<'_, T>) -> Result<()> {
        let Some(of) = op.exactly(level)? else {
            let products = self.view.written(device)?;
            return products.view()?.along(self.axes).reduce_into(device, op, level, output);
        };
        device.sum_products(of, &self.view.lines(device, self.axes.list())?, output)
    }
}

impl<T, F, A> Reducible for Along<NdMap<'_, T, F>, A>
where
    T: Item + Plain,
    F: Function<T, Output: Combinable + Plain>,
    A: Axes,
{
    fn reduce<O: Core<F::Output>>(self, device: &Device, op: O, level: Determinism) -> Result<Buffer<F::Output>> {
        self.view.written(device)?.view()?.along(self.axes).reduce(device, op, level)
    }

    fn reduce_into<O: Core<F::Output>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
        output: Output<'_, F::Output>,
    ) -> Result<()> {
        self.view.written(device)?.view()?.along(self.axes).reduce_into(device, op, level, output)
    }
}

fn reduce_along<T: Element, U: Element + From<T>, O: Core<U>>(
    device: &Device,
    view: NdView<'_, T>,
    axis: usize,
    (op, level): (O, Determinism),
    output: Output<'_, U>,
) -> Result<()> {
    let (exact, (op, code)) = (op.exactly(level)?, op.parts()?);
    device.reduce_lines(&op, code, exact, view, axis, output, &mut Scratch::new())
}

impl Device {
    /// Reductions of rows of structs: a scan of each row, then the last result of each.
    #[inline(never)]
    fn reduce_rows<T: Plain, F: Fn(T, T) -> T + Sync>(
        &self,
        (op, level): (&Operator<T, F>, Determinism),
        (elements, rows, len): (Held<'_, T>, usize, usize),
        output: Output<'_, T>,
    ) -> Result<()> {
        op.exactly(level)?;
        output.expect_len(rows, "reduce along an axis")?;
        if rows == 0 || len == 0 {
            return self.copy(&memory::filled(rows, op.identity)?, output);
        }
        if !self.is_cpu() {
            return self.reduce_structs_of(op, elements.input(), self.rows(len), output);
        }
        let mut scanned = self.temporary(rows * len)?;
        let to = Output::from(&mut scanned);
        self.scan_structs(op, (elements.input(), None), Some(self.rows(len)), Scan::inclusive(), to)?;
        self.transform_into(scanned.view(len - 1..)?.strided(len), output)
    }

    /// All reductions along an axis, compiled once for each type and operator. If `exact`, the operator is a sum of floats.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of the call, and the operator's source and level")]
    fn reduce_lines<T, U, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        input: NdView<'_, T>,
        axis: usize,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element + From<T>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (input, layout) = input.parts();
        let lines = Lines::of(&layout, axis)?;
        output.expect_len(lines.outputs, "reduce along an axis")?;
        let Backend::OpenCl(device) = self.backend() else {
            let (input, out) = (input.host()?, output.host()?);
            return match exact {
                Some(of) => exact::on_the_cpu(of, input, &lines, out),
                None => cpu::reduce(op, input, &lines, out),
            };
        };
        let (input, output) = (input.any(), output.any());
        match exact.map(exact_groups::gpu::Form::of::<T, U>) {
            Some(form) => exact::on_a_device(device, &form, input, &lines, output),
            None => {
                let (form, empty) = (gpu::Form::by::<T, U>(source), bytemuck::bytes_of(&op.empty));
                gpu::reduce(device, &form, empty, input, &lines, output, scratch)
            }
        }
    }

    /// The exact sums or means of the products of two arrays along an axis, compiled once for each type.
    #[inline(never)]
    fn sum_products<T: Element>(&self, of: Exact, factors: &[AlongOne<'_, T>; 2], output: Output<'_, T>) -> Result<()> {
        let ((x, x_layout), (y, y_layout)) = (factors[0].view()?.parts(), factors[1].view()?.parts());
        let [x_lines, y_lines] = Lines::pair([&x_layout, &y_layout], factors[0].axis)?;
        output.expect_len(x_lines.outputs, "reduce along an axis")?;
        let Backend::OpenCl(device) = self.backend() else {
            return exact::products_on_the_cpu(of, [(x.host()?, &x_lines), (y.host()?, &y_lines)], output.host()?);
        };
        let form = exact_groups::gpu::Form { products: true, ..exact_groups::gpu::Form::of::<T, T>(of) };
        exact::products_on_a_device(device, &form, [(x.any(), &x_lines), (y.any(), &y_lines)], output.any())
    }
}
