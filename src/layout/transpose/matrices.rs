//! The shape of a transposition: one matrix, many, or matrices with gaps between their rows.

use crate::{Error, Layout, Result};

/// Maximum bytes of an element.
const MAX_BYTES: usize = 16;

/// Returns an error for element sizes that are not supported.
pub(super) fn check_size(size: usize) -> Result<()> {
    if size == 0 || size > MAX_BYTES {
        return Err(Error::unsupported(format!("transpose takes elements of 1 to {MAX_BYTES} bytes, not of {size}")));
    }
    Ok(())
}

/// The matrices of a transposition: their shape and number, and the distances between rows and between matrices, in
/// elements.
///
/// A pair `(rows, cols)` converts to one matrix that is the whole input; an input of another length is an error. With
/// [`new`](Self::new) or another method, inputs and outputs may be longer than the matrices.
///
/// A leading dimension is the distance between the starts of neighbouring rows, as in row-major BLAS.
///
/// ```
/// use oclprim::{Device, Matrices};
///
/// let device = Device::best()?;
/// // Two matrices of 2 x 3, one after another.
/// let x = device.upload(&[1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60])?;
/// let turned = device.transpose(&x, Matrices::new(2, 3).count(2))?;
/// assert_eq!(turned.to_vec()?, [1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60]);
///
/// // The first two columns of the first matrix, into rows that are four elements apart.
/// let mut out = device.zeroed::<i32>(6)?;
/// device.transpose_into(&x, Matrices::new(2, 2).leading(3, 4), &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 4, 0, 0, 2, 5]);
///
/// // The same matrix twice.
/// let twice = device.transpose(&x, Matrices::new(2, 2).leading(3, 2).count(2).strides(0, 4))?;
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
    /// One matrix that is the whole input.
    exact: bool,
}

impl Matrices {
    /// One matrix of `rows` x `cols` without gaps.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose(&x, Matrices::new(2, 3))?;
    /// assert_eq!(turned.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols, count: 1, leading: None, strides: None, exact: false }
    }

    /// Sets the leading dimensions: the distance of rows in the input, at least `cols`, and in the output, at least
    /// `rows`.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose(&x, Matrices::new(2, 2).leading(3, 2))?;
    /// assert_eq!(turned.to_vec()?, [1, 4, 2, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn leading(self, input: usize, output: usize) -> Self {
        Self { leading: Some((input, output)), exact: false, ..self }
    }

    /// Sets the number of matrices.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose(&x, Matrices::new(1, 3).count(2))?;
    /// assert_eq!(turned.to_vec()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count(self, count: usize) -> Self {
        Self { count, exact: false, ..self }
    }

    /// Sets the distances between the starts of neighbouring matrices, in the input and in the output. In the input, 0
    /// repeats one matrix; in the output, matrices must not overlap. The default distance is the number of a matrix's
    /// rows times the leading dimension.
    ///
    /// ```
    /// use oclprim::{Device, Matrices};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let turned = Device::best()?.transpose(&x, Matrices::new(2, 2).count(2).strides(2, 4))?;
    /// assert_eq!(turned.to_vec()?, [1, 3, 2, 4, 3, 5, 4, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn strides(self, input: usize, output: usize) -> Self {
        Self { strides: Some((input, output)), exact: false, ..self }
    }

    /// Rows and columns, if the input is one matrix without gaps.
    pub(super) fn plain(&self) -> Option<(usize, usize)> {
        self.exact.then_some((self.rows, self.cols))
    }

    /// Returns the number of elements of one matrix. If the input is one matrix without gaps, returns an error unless
    /// the input's length `found` is this number.
    pub(super) fn check_len(&self, found: usize) -> Result<usize> {
        let (rows, cols) = (self.rows, self.cols);
        let Some(len) = rows.checked_mul(cols) else {
            return Err(Error::invalid(format!("transpose of {rows} x {cols} elements overflows the address space")));
        };
        if self.exact && found != len {
            return Err(Error::invalid(format!("transpose of {rows} x {cols} needs {len} elements, got {found}")));
        }
        Ok(len)
    }

    /// The layouts of input and output, with the axes (matrix, column, row).
    pub(super) fn layouts(&self) -> Result<(Layout, Layout)> {
        let Self { rows, cols, count, .. } = *self;
        let (ld_in, ld_out) = self.leading.unwrap_or((cols, rows));
        if ld_in < cols {
            let message = format!("the input's leading dimension is {ld_in}, but rows have {cols} elements");
            return Err(Error::invalid(message));
        }
        if ld_out < rows {
            let message = format!("the output's leading dimension is {ld_out}, but rows have {rows} elements");
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

/// One matrix, `(rows, cols)`, without gaps. The input has exactly its elements.
impl From<(usize, usize)> for Matrices {
    fn from((rows, cols): (usize, usize)) -> Self {
        Self { exact: true, ..Self::new(rows, cols) }
    }
}

impl From<&Matrices> for Matrices {
    fn from(matrices: &Matrices) -> Self {
        *matrices
    }
}
