//! Strided copies: from the places of one N-dimensional layout to those of another, [`Device::copy_nd`].
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element |
//! | elements | any plain type; only its size counts |
//! | views | any: sliced, stepped, reversed or broadcast inputs; outputs with gaps, which are left as they are |
//! | determinism | exact |
//! | scratch | none |
//! | limits | any shape that fits the device |
//!
//! A strided copy is a [permutation](Device::permute_into) that leaves the axes in their order. What is contiguous on both
//! sides moves in words of up to 16 bytes; rows of 256 bytes or more do on GPUs wherever each of them starts.

#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::{Device, Error, NdView, NdViewMut, Result, permute};

impl Device {
    /// Copies an N-dimensional array into the places of another of the same shape: rows with a pitch, blocks of a volume,
    /// every second element, an axis backwards or repeated.
    ///
    /// What lies between the places of `output` is left as it is. Does not wait, unless `output` is a host slice.
    /// [`Device::permute`] with the axes in their order is the form that allocates its result. Neither uses scratch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the shapes differ, or input and output overlap;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if elements have no bytes.
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
