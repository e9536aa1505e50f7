//! Transposition of matrices with gaps between their rows, and of many matrices.

use bytemuck::Pod;

use crate::{Buffer, Device, Error, Input, Layout, NdView, NdViewMut, Output, Result, layout::permute};

/// The matrices of a transposition: shape, number, and the distances of rows and matrices in elements.
///
/// A leading dimension is the distance between the starts of neighbouring rows, as in row-major BLAS.
///
/// ```
/// use oclprim::{Device, Matrices};
///
/// let device = Device::best()?;
/// // Two matrices of 2 x 3, one after another.
/// let x = device.upload(&[1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60])?;
/// let turned = device.transpose_batch(&x, &Matrices::new(2, 3).count(2))?;
/// assert_eq!(turned.to_vec()?, [1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60]);
///
/// // The first two columns of the first matrix, into rows that are four elements apart.
/// let mut out = device.zeroed::<i32>(6)?;
/// device.transpose_batch_into(&x, &Matrices::new(2, 2).leading(3, 4), &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 4, 0, 0, 2, 5]);
///
/// // The same matrix twice.
/// let twice = device.transpose_batch(&x, &Matrices::new(2, 2).leading(3, 2).count(2).strides(0, 4))?;
/// assert_eq!(twice.to_vec()?, [1, 4, 2, 5, 1, 4, 2, 5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrices {
    rows: usize,
    cols: usize,
    count: usize,
    leading: Option<(usize, usize)>,
    strides: Option<(usize, usize)>,
}

impl Matrices {
    /// One matrix of `rows` x `cols` without gaps.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose_batch(&x, &Matrices::new(2, 3))?;
    /// assert_eq!(turned.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols, count: 1, leading: None, strides: None }
    }

    /// Sets the leading dimensions: the distance of rows in the input, at least `cols`, and in the output, at least
    /// `rows`.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose_batch(&x, &Matrices::new(2, 2).leading(3, 2))?;
    /// assert_eq!(turned.to_vec()?, [1, 4, 2, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn leading(self, input: usize, output: usize) -> Self {
        Self { leading: Some((input, output)), ..self }
    }

    /// Sets the number of matrices.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose_batch(&x, &Matrices::new(1, 3).count(2))?;
    /// assert_eq!(turned.to_vec()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count(self, count: usize) -> Self {
        Self { count, ..self }
    }

    /// Sets the distances between the starts of neighbouring matrices, in the input and in the output. In the input, 0
    /// repeats one matrix; in the output, matrices must not overlap. The default distance is the number of a matrix's
    /// rows times the leading dimension.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose_batch(&x, &Matrices::new(2, 2).count(2).strides(2, 4))?;
    /// assert_eq!(turned.to_vec()?, [1, 3, 2, 4, 3, 5, 4, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn strides(self, input: usize, output: usize) -> Self {
        Self { strides: Some((input, output)), ..self }
    }

    /// The layouts of input and output, with the axes (matrix, column, row).
    fn layouts(&self) -> Result<(Layout, Layout)> {
        let Self { rows, cols, count, .. } = *self;
        let (ld_in, ld_out) = self.leading.unwrap_or((cols, rows));
        if ld_in < cols {
            let message = format!("the input's leading dimension is {ld_in}, rows have {cols} elements");
            return Err(Error::invalid(message));
        }
        if ld_out < rows {
            let message = format!("the output's leading dimension is {ld_out}, rows have {rows} elements");
            return Err(Error::invalid(message));
        }
        let overflow = || {
            let distances = format!("leading dimensions of {ld_in} and {ld_out}");
            Error::invalid(format!("{count} matrices of {rows} x {cols} with {distances} overflow the address space"))
        };
        let product = |a: usize, b: usize| a.checked_mul(b).ok_or_else(overflow);
        let (step_in, step_out) = match self.strides {
            Some(strides) => strides,
            None => (product(rows, ld_in)?, product(cols, ld_out)?),
        };
        // The stride of an axis of one element has no meaning.
        let stride = |n: usize, distance: usize| match n {
            0 | 1 => Ok(0),
            _ => isize::try_from(distance).map_err(|_| overflow()),
        };
        let shape = [count, cols, rows];
        let from = Layout::strided(&shape, &[stride(count, step_in)?, 1, stride(rows, ld_in)?], 0)?;
        let to = Layout::strided(&shape, &[stride(count, step_out)?, stride(cols, ld_out)?, 1], 0)?;
        Ok((from, to))
    }
}

/// # Transpositions of many matrices
///
/// These methods transpose many matrices, or matrices with gaps between their rows. Module:
/// [`layout::transpose`](crate::layout::transpose).
impl Device {
    /// Transposed copies of many matrices, or of matrices with gaps between their rows, as [`Matrices`] describes.
    ///
    /// Each matrix becomes `cols` rows of `rows` elements. Gaps in the result are zero.
    ///
    /// `input` may be longer than needed. Does not wait for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if a leading dimension is less than the length of
    /// its rows, or if results would overlap. It also fails if `input` is too short, or if a product overflows.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) and
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) as for [`Device::transpose`].
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let device = Device::best()?;
    /// let turned = device.transpose_batch(&[1u8, 2, 3, 4], &Matrices::new(2, 2))?;
    /// assert_eq!(turned.to_vec()?, [1, 3, 2, 4]);
    ///
    /// let narrow = Matrices::new(2, 2).leading(1, 2);
    /// let error = device.transpose_batch(&[1u8, 2, 3, 4], &narrow).unwrap_err();
    /// assert_eq!(error.to_string(), "the input's leading dimension is 1, rows have 2 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_batch<'a, T: Pod>(
        &self,
        input: impl Into<Input<'a, T>>,
        matrices: &Matrices,
    ) -> Result<Buffer<T>> {
        let (_, to) = matrices.layouts()?;
        let len = to.span().map_or(0, |(_, last)| last + 1);
        let mut output = if to.is_dense() { self.uninit(len)? } else { self.zeroed(len)? };
        self.transpose_batch_into(input, matrices, &mut output)?;
        Ok(output)
    }

    /// [`Device::transpose_batch`] into a buffer, a view or a slice, which may be longer than needed. Gaps do not
    /// change.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::transpose_batch`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if
    /// `output` is too short.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let mut out = [9u8; 5];
    /// Device::best()?.transpose_batch_into(&[1u8, 2, 3, 4], &Matrices::new(2, 2).leading(2, 3), &mut out)?;
    /// assert_eq!(out, [1, 3, 9, 2, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_batch_into<'a, 'b, T: Pod>(
        &self,
        input: impl Into<Input<'a, T>>,
        matrices: &Matrices,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        super::check_size(size_of::<T>())?;
        let (from, to) = matrices.layouts()?;
        permute::run(self, NdView::new(input, from)?, NdViewMut::new(output, to)?)
    }
}
