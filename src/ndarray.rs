//! Arrays of `ndarray` as inputs and outputs.

use ::ndarray::{ArrayBase, Data, DataMut, Dimension};
use bytemuck::Pod;

use crate::{Error, Input, Output};

/// The elements of an array, row by row, without a copy on the host. An array that is not laid out so, such as a
/// transposed or strided view, is refused: `as_standard_layout` makes one that is.
///
/// ```
/// use ndarray::{array, s};
/// use oclprim::{Device, Input, op::Sum};
///
/// let device = Device::best()?;
/// let x = array![[1u32, 2, 3], [4, 5, 6]];
/// assert_eq!(device.reduce(Input::try_from(&x)?, Sum)?, 21);
/// assert_eq!(device.reduce(Input::try_from(&x.row(1))?, Sum)?, 15);
/// assert!(Input::try_from(&x.slice(s![.., 1..])).is_err());
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for Input<'a, T> {
    type Error = Error;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Self, Error> {
        array.as_slice().map(Self::Host).ok_or_else(|| strided(array.shape(), array.strides()))
    }
}

/// The elements of an array, row by row, to be written. An array that is not laid out so is refused.
///
/// ```
/// use ndarray::{Array2, array};
/// use oclprim::{Device, Input, Output};
///
/// let (x, mut y) = (array![[1u8, 2, 3], [4, 5, 6]], Array2::zeros((3, 2)));
/// Device::best()?.transpose_into(Input::try_from(&x)?, 2, 3, Output::try_from(&mut y)?)?;
/// assert_eq!(y, x.t());
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod, S: DataMut<Elem = T>, D: Dimension> TryFrom<&'a mut ArrayBase<S, D>> for Output<'a, T> {
    type Error = Error;

    fn try_from(array: &'a mut ArrayBase<S, D>) -> Result<Self, Error> {
        let error = strided(array.shape(), array.strides());
        array.as_slice_mut().map(Self::Host).ok_or(error)
    }
}

fn strided(shape: &[usize], strides: &[isize]) -> Error {
    Error::invalid(format!("an array of shape {shape:?} with strides {strides:?} is not laid out row by row"))
}
