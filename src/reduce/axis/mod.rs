//! Reduction along an axis of an N-dimensional view: [`Device::reduce_axis`]. [`Device::reduce_axis_with_into`]
//! computes in a wider type, [`Device::reduce_axis_by`] takes a user's operator. [`extremes`] has arg-min and arg-max,
//! [`moments`] mean and variance.
//!
//! | property | |
//! |---|---|
//! | work | n - 1 operations for each result along an axis of n elements, one read of the elements |
//! | operator | as [`reduce`](crate::reduce) |
//! | determinism | same bits everywhere, floats too, if the device keeps subnormals: the order depends only on the length of the axis. [`Device::reduce_axis_with`] also has correctly rounded sums |
//! | scratch | none if results are many; else an accumulator for each part of an axis |
//! | limits | 8 axes ([`Layout::MAX_DIMS`]) of any lengths and strides |
//!
//! The order is pairwise summation (Higham 1993) over chunks of 16 rows of 32 lanes. Neighbouring work-items take
//! neighbouring results or neighbouring elements of the axis, whichever lie closer together. If results are too few to
//! fill the device, the axis is divided into parts, which a second launch combines.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod exact;
pub mod extremes;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod moments;

use crate::{
    Buffer, Determinism, Device, Element, Error, Float, Layout, NdView, Output, Result, Scratch,
    op::{Code, Core, Monoid, Op, Operator, Sum, built_in},
    reduce::exact_groups::{self, Exact},
    runtime::Backend,
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
        let folded = layout.index(axis, 0)?.fold();
        let (mut shape, mut strides) = (folded.shape().to_vec(), folded.strides().to_vec());
        if shape.is_empty() {
            (shape, strides) = (vec![1], vec![0]);
        }
        Ok(Self { len, stride, outputs, shape, strides, offset: layout.offset() })
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

/// # Reductions along an axis
///
/// These methods return one value per line along an axis of an N-dimensional view. Module:
/// [`reduce::axis`](crate::reduce::axis).
impl Device {
    /// Reduction along an axis: `out[i, j, ...] = x[i, j, ..., 0] op ... op x[i, j, ..., n - 1]`.
    ///
    /// The last index of `x` in this formula runs along `axis`. There is one result for each index of the other axes,
    /// in row-major order. Strides may be zero or negative. An axis without elements gives the operator's
    /// [empty](Op::empty) value.
    ///
    /// Float sums and products have the same bits on every run, every device and the CPU, if the devices keep
    /// subnormals. The order depends only on the length of the axis. In chunks of 16 rows of 32 lanes, each lane adds
    /// its elements row by row. Lanes, then chunks, combine as a tree of neighbours.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis, or if the number of
    /// results overflows, as it can along an empty axis. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if
    /// the device lacks fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::{Max, Sum}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let rows = x.nd(&[2, 3])?;
    /// assert_eq!(device.reduce_axis(rows, 0, Sum)?.to_vec()?, [5.0, 7.0, 9.0]);
    /// assert_eq!(device.reduce_axis(rows, 1, Max)?.to_vec()?, [3.0, 6.0]);
    /// assert_eq!(device.reduce_axis(rows.slice(1, 1..)?.reverse(0)?, 1, Sum)?.to_vec()?, [11.0, 5.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_axis<'a, T: Element, O: Op<T>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let mut out = self.uninit(Lines::of(input.layout(), axis)?.outputs)?;
        self.reduce_axis_into(input, axis, op, &mut out)?;
        Ok(out)
    }

    /// [`Device::reduce_axis`] into a slice, buffer or view with one element for each result.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` has
    /// another number of elements.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i32; 24])?;
    /// let cube = x.nd(&[2, 3, 4])?;
    /// let mut sums = device.zeroed::<i32>(8)?;
    /// device.reduce_axis_into(cube, 1, Sum, &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [3; 8]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_axis_into<'a, 'b, T: Element, O: Op<T>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: O,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        let (op, source) = built_in::<T, O>(op);
        self.reduce_lines(&op, source, None, input.into(), axis, output.into(), &mut Scratch::new())
    }

    /// [`Device::reduce_axis`] with a user's operator. An axis without elements gives the operator's identity.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that of
    /// `T`.
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let device = Device::best()?;
    /// let union = Operator::new("union", 0u32, |a, b| a | b, "a | b");
    /// let x = device.upload(&[1u32, 2, 8, 16])?;
    /// assert_eq!(device.reduce_axis_by(x.nd(&[2, 2])?, 0, &union)?.to_vec()?, [9, 18]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_axis_by<'a, T, F>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: &Operator<T, F>,
    ) -> Result<Buffer<T>>
    where
        T: Element<Acc = T>,
        F: Fn(T, T) -> T + Sync,
    {
        let input = input.into();
        let mut out = self.uninit(Lines::of(input.layout(), axis)?.outputs)?;
        self.reduce_axis_by_into(input, axis, op, &mut out)?;
        Ok(out)
    }

    /// [`Device::reduce_axis_by`] into a slice, buffer or view with one element for each result.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis_by`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` has
    /// another number of elements.
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let device = Device::best()?;
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let mut sums = [0u8; 2];
    /// let x = device.upload(&[200u8, 100, 1, 2])?;
    /// device.reduce_axis_by_into(x.nd(&[2, 2])?, 1, &saturating, &mut sums)?;
    /// assert_eq!(sums, [255, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_axis_by_into<'a, 'b, T, F>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: &Operator<T, F>,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()>
    where
        T: Element<Acc = T>,
        F: Fn(T, T) -> T + Sync,
    {
        let (op, source) = op.parts()?;
        self.reduce_lines(&op, source, None, input.into(), axis, output.into(), &mut Scratch::new())
    }

    /// [`Device::reduce_axis`] with a level of determinism. With [`Exact`](Determinism::Exact) each float sum is correctly
    /// rounded: it has the same bits for every order of the line's elements. The other levels give the results of
    /// [`Device::reduce_axis`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1e30f32, 0.5, 1.0, 0.25, -1e30, 0.125])?;
    /// let sums = device.reduce_axis_with(x.nd(&[3, 2])?, 0, Sum, Determinism::Exact)?;
    /// assert_eq!(sums.to_vec()?, [1.0, 0.875]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_axis_with<'a, T: Element, O: Op<T>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: O,
        determinism: Determinism,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let mut out = self.uninit(Lines::of(input.layout(), axis)?.outputs)?;
        self.reduce_axis_with_into(input, axis, op, determinism, &mut out)?;
        Ok(out)
    }

    /// [`Device::reduce_axis_with`] into a slice, buffer or view with one element for each result, whose type holds every
    /// value of `T`.
    ///
    /// With [`Exact`](Determinism::Exact) the sum of the converted elements is rounded once, to the type of the output.
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis_into`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[16_777_216i32, 1, 2, 3])?;
    /// let (mut sums, exact) = ([0f64; 2], Determinism::Exact);
    /// device.reduce_axis_with_into(x.nd(&[2, 2])?, 1, Sum, exact, &mut sums)?;
    /// assert_eq!(sums, [16_777_217.0, 5.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_axis_with_into<'a, 'b, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        op: O,
        determinism: Determinism,
        output: impl Into<Output<'b, U>>,
    ) -> Result<()> {
        let exact = determinism.exact::<U, O>()?.then_some(Exact::Sum);
        let (op, source) = built_in::<U, O>(op);
        self.reduce_lines(&op, source, exact, input.into(), axis, output.into(), &mut Scratch::new())
    }

    /// The mean of each line along an axis, correctly rounded: the float nearest to the exact sum divided by the length.
    ///
    /// Its bits do not depend on the order of the line's elements. The [rules](crate::exact#special-values) for special
    /// values are those of the sum. The mean of an empty line is NaN. [`Device::mean_axis`] takes any type, and rounds
    /// more than once.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1e30f32, 0.5, 1.0, 0.25, -1e30, 0.125])?;
    /// assert_eq!(device.mean_axis_exact(x.nd(&[3, 2])?, 0)?.to_vec()?, [1.0 / 3.0, 0.875 / 3.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_axis_exact<'a, T: Float>(&self, input: impl Into<NdView<'a, T>>, axis: usize) -> Result<Buffer<T>> {
        let input = input.into();
        let mut out = self.uninit(Lines::of(input.layout(), axis)?.outputs)?;
        self.mean_axis_exact_into(input, axis, &mut out)?;
        Ok(out)
    }

    /// [`Device::mean_axis_exact`] into a slice, buffer or view with one element for each line. The elements
    /// are first converted to the output's type, without loss.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_axis_into`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let (x, mut means) = (device.upload(&[16_777_216i32, 1, 2, 3])?, [0f64; 2]);
    /// device.mean_axis_exact_into(x.nd(&[2, 2])?, 1, &mut means)?;
    /// assert_eq!(means, [8_388_608.5, 2.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_axis_exact_into<'a, 'b, T: Element, U: Float + From<T>>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        output: impl Into<Output<'b, U>>,
    ) -> Result<()> {
        let (op, source) = built_in::<U, Sum>(Sum);
        let (exact, scratch) = (Some(Exact::Mean), &mut Scratch::new());
        self.reduce_lines(&op, source, exact, input.into(), axis, output.into(), scratch)
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
        match (self.backend(), exact) {
            (Backend::Cpu, Some(of)) => exact::on_the_cpu(of, input.host()?, &lines, output.host()?)?,
            (Backend::Cpu, None) => cpu::reduce(op, input.host()?, &lines, output.host()?)?,
            (Backend::OpenCl(device), Some(of)) => {
                let form = exact_groups::gpu::Form::of::<T, U>(of);
                exact::on_a_device(device, &form, input.any(), &lines, output.any())?;
            }
            (Backend::OpenCl(device), None) => {
                let form = gpu::Form::by::<T, U>(source);
                let (empty, input) = (bytemuck::bytes_of(&op.empty), input.any());
                gpu::reduce(device, &form, empty, input, &lines, output.any(), scratch)?;
            }
        }
        Ok(())
    }
}
