//! Strided copies between N-dimensional layouts ([`Device::copy_nd`]).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element |
//! | elements | any plain type; only its size counts |
//! | views | any: sliced, stepped, reversed or broadcast inputs; outputs with gaps, which do not change |
//! | determinism | exact |
//! | scratch | none |
//! | limits | any shape that fits the device |
//!
//! A strided copy is a [permutation](Device::permute_into) that keeps the order of the axes. Elements that are
//! contiguous on both sides move in words of up to 16 bytes. On GPUs, rows of 256 bytes or more move in 16-byte words
//! at any offset.

#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::{Device, Error, NdView, NdViewMut, Result, layout::permute};

/// # Strided copies
///
/// This method copies between N-dimensional views of the same shape. Module: [`layout::copy::nd`](crate::layout::copy::nd).
impl Device {
    /// Strided copy: `output[i, j, ...] = input[i, j, ...]` between views of the same shape.
    ///
    /// Examples are rows with a pitch, blocks of a volume, every second element, and a reversed or repeated axis.
    ///
    /// Gaps between the elements of `output` do not change. Waits for the result only if `output` is a host slice. To
    /// allocate the result, use [`Device::permute`] with the axes in their order. Neither method uses scratch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the shapes differ, or input and output overlap;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the elements are zero-sized.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3, 4, 5, 6])?; // two rows of three
    /// let mut y = device.zeroed::<u8>(8)?; // two rows of four
    /// device.copy_nd(x.nd(&[2, 3])?, y.nd_mut(&[2, 4])?.slice(1, ..3)?)?;
    /// assert_eq!(y.to_vec()?, [1, 2, 3, 0, 4, 5, 6, 0]);
    /// device.copy_nd(x.nd(&[2, 3])?.reverse(0)?, y.nd_mut(&[2, 4])?.slice(1, 1..)?)?;
    /// assert_eq!(y.to_vec()?, [1, 4, 5, 6, 4, 1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn copy_nd<'a, 'b, T: Pod>(
        &self,
        input: impl Into<NdView<'a, T>>,
        output: impl Into<NdViewMut<'b, T>>,
    ) -> Result<()> {
        let (input, output) = (input.into(), output.into());
        if input.shape() != output.shape() {
            let (from, to) = (input.shape(), output.shape());
            return Err(Error::invalid(format!("copying a shape of {from:?} into one of {to:?}")));
        }
        permute::run(self, input, output)
    }
}
