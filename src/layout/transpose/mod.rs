//! Transposition: the rows of a matrix become its columns.
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of every element |
//! | elements | any plain type of 1 to 16 bytes; only its size counts |
//! | determinism | same bits everywhere: elements are moved, not computed, except by [`mapped`] |
//! | in place | [`Device::transpose_in_place`] (see [`in_place`]); otherwise input and output are distinct |
//! | scratch | none, except for rectangles in place |
//! | limits | any shape that fits the device |
//!
//! The design follows Ruetsch and Micikevicius (2009). Tiles pass through local memory, so both sides are read and
//! written along rows. If the matrix is aligned, small blocks are transposed in registers, so every access has 8 or 16
//! bytes. A block has 4 x 4 elements of 4 bytes, for example.

pub(crate) mod batch;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod in_place;
pub mod mapped;

use bytemuck::Pod;

pub use batch::Matrices;

use crate::{
    Buffer, Device, Error, Input, Output, Result,
    layout::permute::{self, job::Job},
    runtime::Backend,
};

/// Maximum bytes of an element.
const MAX_BYTES: usize = 16;

/// Returns an error for element sizes that are not supported.
fn check_size(size: usize) -> Result<()> {
    if size == 0 || size > MAX_BYTES {
        return Err(Error::unsupported(format!("transpose takes elements of 1 to {MAX_BYTES} bytes, not of {size}")));
    }
    Ok(())
}

/// The number of elements. Returns an error if the input's length does not match the shape, or if the type is not
/// supported.
fn validate<T: Pod>(input: &Input<'_, T>, rows: usize, cols: usize) -> Result<usize> {
    check_size(size_of::<T>())?;
    let len = rows
        .checked_mul(cols)
        .ok_or_else(|| Error::invalid(format!("transpose of {rows} x {cols} elements overflows the address space")))?;
    if input.len() != len {
        let text = format!("transpose of {rows} x {cols} needs {len} elements, got {}", input.len());
        return Err(Error::invalid(text));
    }
    Ok(len)
}

/// # Transpositions
///
/// These methods turn the rows of a matrix into columns: `out[c * rows + r] = x[r * cols + c]`. Module:
/// [`layout::transpose`](crate::layout::transpose).
impl Device {
    /// Transposed matrix: `out[c * rows + r] = input[r * cols + c]`. Both matrices are stored row by row.
    ///
    /// Does not wait for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `input` does not have `rows * cols` elements or
    /// that product overflows; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if an element has 0 or more
    /// than 16 bytes; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let turned = device.transpose(&[1, 2, 3, 4, 5, 6], 2, 3)?;
    /// assert_eq!(turned.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose<'a, T: Pod>(&self, input: impl Into<Input<'a, T>>, rows: usize, cols: usize) -> Result<Buffer<T>> {
        let input = input.into();
        let mut output = self.uninit(validate(&input, rows, cols)?)?;
        self.transpose_into(input, rows, cols, &mut output)?;
        Ok(output)
    }

    /// [`Device::transpose`] into a buffer, a view or a slice of `rows * cols` elements.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::transpose`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` has
    /// the wrong length.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let points = device.upload(&[1.0f32, 10.0, 2.0, 20.0, 3.0, 30.0])?; // x, y of each point
    /// let mut by_axis = device.zeroed::<f32>(6)?;
    /// device.transpose_into(&points, 3, 2, &mut by_axis)?;
    /// assert_eq!(by_axis.view(..3)?.to_vec()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_into<'a, 'b, T: Pod>(
        &self,
        input: impl Into<Input<'a, T>>,
        rows: usize,
        cols: usize,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        self.transpose_one(input.into(), rows, cols, output.into())
    }

    /// Body of [`Device::transpose_into`], compiled once for each set of types.
    #[inline(never)]
    fn transpose_one<T: Pod>(
        &self,
        input: Input<'_, T>,
        rows: usize,
        cols: usize,
        output: Output<'_, T>,
    ) -> Result<()> {
        let len = validate(&input, rows, cols)?;
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
}
