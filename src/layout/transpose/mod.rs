//! Transposition: the rows of a matrix become its columns.
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of every element |
//! | elements | any plain type of 1 to 16 bytes; only its size counts |
//! | determinism | same bits everywhere: elements are moved, not computed; for an expression, as [`Device::transform`] |
//! | in place | [`Device::transpose_in_place`] (see [`in_place`]); otherwise input and output are distinct |
//! | scratch | none, except for rectangles in place |
//! | limits | any shape that fits the device |
//!
//! The design follows Ruetsch and Micikevicius (2009). Tiles pass through local memory, so both sides are read and
//! written along rows. If the matrix is aligned, small blocks are transposed in registers, so every access has 8 or 16
//! bytes. A block has 4 x 4 elements of 4 bytes, for example.

#[doc(hidden)]
pub(crate) mod gpu;
pub mod in_place;
pub mod mapped;
pub(crate) mod matrices;

use bytemuck::Pod;

pub use matrices::Matrices;
use matrices::check_size;

use crate::{
    Buffer, Device, ElementType, Input, NdView, NdViewMut, Output, Result, Source,
    layout::permute::{self, job::Job},
    runtime::Backend,
    source::{Erased, finite},
};

/// # Transpositions
///
/// These methods turn the rows of a matrix into columns: `out[c * rows + r] = x[r * cols + c]`. Module:
/// [`layout::transpose`](crate::layout::transpose).
impl Device {
    /// Transposed matrix: `out[c * rows + r] = input[r * cols + c]`. Both matrices are stored row by row.
    ///
    /// `shape` is `(rows, cols)`, or [`Matrices`]: many matrices, or matrices with gaps between their rows. Each matrix
    /// becomes `cols` rows of `rows` elements. Gaps in the result are zero.
    ///
    /// The pass that transposes an expression also computes its elements: see [`mapped`]. The method does not wait for
    /// the result, unless the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the input does not have `rows * cols` elements or
    /// that product overflows. With [`Matrices`] the input may be longer than needed. The method returns the same error
    /// if a leading dimension is less than the length of its rows, or if results would overlap.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if an element has 0 or more than 16 bytes;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device. For an
    /// expression, also the errors of [`Device::transform`].
    ///
    /// ```
    /// use oclprim::{Device, Matrices, Source, f16};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(device.transpose(&x, (2, 3))?.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// assert_eq!(device.transpose(x.cast::<f16>(), (2, 3))?.to_vec()?[1], f16::from_f32(4.0));
    /// assert_eq!(device.transpose(&x, Matrices::new(1, 3).count(2))?.to_vec()?, [1, 2, 3, 4, 5, 6]);
    ///
    /// let error = device.transpose(&x, Matrices::new(2, 2).leading(1, 2)).unwrap_err();
    /// assert_eq!(error.to_string(), "the input's leading dimension is 1, but rows have 2 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose<S: Source<Item: Pod>>(&self, input: S, shape: impl Into<Matrices>) -> Result<Buffer<S::Item>> {
        let matrices = shape.into();
        check_size(size_of::<S::Item>())?;
        if matrices.plain().is_some() {
            matrices.check_len(finite(&input)?)?;
        }
        let (_, to) = matrices.layouts()?;
        let len = to.span().map_or(0, |(_, last)| last + 1);
        let mut output = if to.is_dense() { self.uninit(len)? } else { self.zeroed(len)? };
        self.transpose_into(input, matrices, &mut output)?;
        Ok(output)
    }

    /// [`Device::transpose`] into a buffer, a view or a slice. With [`Matrices`] the output may be longer than needed,
    /// and its gaps do not change.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::transpose`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` has
    /// the wrong length.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let device = Device::best()?;
    /// let points = device.upload(&[1.0f32, 10.0, 2.0, 20.0, 3.0, 30.0])?; // x, y of each point
    /// let mut by_axis = device.zeroed::<f32>(6)?;
    /// device.transpose_into(&points, (3, 2), &mut by_axis)?;
    /// assert_eq!(by_axis.view(..3)?.to_vec()?, [1.0, 2.0, 3.0]);
    ///
    /// let mut out = [9u8; 5];
    /// device.transpose_into(&[1u8, 2, 3, 4], Matrices::new(2, 2).leading(2, 3), &mut out)?;
    /// assert_eq!(out, [1, 3, 9, 2, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_into<'o, S: Source<Item: Pod>>(
        &self,
        input: S,
        shape: impl Into<Matrices>,
        output: impl Into<Output<'o, S::Item>>,
    ) -> Result<()> {
        let (matrices, output) = (shape.into(), output.into());
        match (input.erased(), matrices.plain(), ElementType::of::<S::Item>()) {
            (Erased::Memory(input), Some(shape), _) => self.transpose_one(input, shape, output),
            (Erased::Memory(input), None, _) => self.transpose_many(input, &matrices, output),
            (Erased::Expression(source), Some(shape), Some(element)) => {
                mapped::transpose(self, source, element, shape, output)
            }
            (Erased::Expression(_), ..) => self.transpose_many(input.held(self)?.input(), &matrices, output),
        }
    }

    /// Transposition of one matrix in memory, compiled once for each type.
    #[inline(never)]
    fn transpose_one<T: Pod>(
        &self,
        input: Input<'_, T>,
        (rows, cols): (usize, usize),
        output: Output<'_, T>,
    ) -> Result<()> {
        check_size(size_of::<T>())?;
        let len = Matrices::from((rows, cols)).check_len(input.len())?;
        output.expect_len(len, "transpose")?;
        match self.backend() {
            Backend::Cpu => {
                let job = Job::matrix(size_of::<T>(), rows, cols);
                permute::cpu::permute(
                    &job,
                    bytemuck::cast_slice(input.host()?),
                    bytemuck::cast_slice_mut(output.host()?),
                )?;
            }
            Backend::OpenCl(device) => {
                let input = input.cl(device)?;
                let output = output.cl(device, false)?;
                crate::runtime::apart(&[&input], &[&output])?;
                gpu::transpose(device, &input, (rows, cols), size_of::<T>(), &output)?;
                output.finish(device)?;
            }
        }
        Ok(())
    }

    /// Transposition of many matrices, compiled once for each type.
    #[inline(never)]
    fn transpose_many<T: Pod>(&self, input: Input<'_, T>, matrices: &Matrices, output: Output<'_, T>) -> Result<()> {
        check_size(size_of::<T>())?;
        let (from, to) = matrices.layouts()?;
        permute::run(self, NdView::new(input, from)?, NdViewMut::new(output, to)?)
    }
}
