//! Copies between N-dimensional views ([`Device::copy`] of an [`NdView`]): `output[i, j, ..] = input[i, j, ..]`.
//!
//! Examples are rows with a pitch, blocks of a volume, axes in another order, every second element, and a reversed or
//! repeated axis.
//!
//! ```
//! use oclprim::Device;
//!
//! let device = Device::best()?;
//! let x = device.upload(&[1u8, 2, 3, 4, 5, 6])?; // two rows of three
//! let mut y = device.zeroed::<u8>(8)?; // two rows of four
//! device.copy(x.nd(&[2, 3])?, y.nd_mut(&[2, 4])?.slice(1, ..3)?)?;
//! assert_eq!(y.to_vec()?, [1, 2, 3, 0, 4, 5, 6, 0]);
//! device.copy(x.nd(&[2, 3])?.reverse(0)?, y.nd_mut(&[2, 4])?.slice(1, 1..)?)?;
//! assert_eq!(y.to_vec()?, [1, 4, 5, 6, 4, 1, 2, 3]);
//! # Ok::<(), oclprim::Error>(())
//! ```
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
//! To allocate the result, use [`Device::transform`]. Elements that are contiguous on both sides move in words of up to
//! 16 bytes. On GPUs, rows of 256 bytes or more move in 16-byte words at any offset.

#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::Copyable;
use crate::{Device, Error, NdView, NdViewMut, Result, layout::permute};

impl<'a, T: Pod> Copyable for NdView<'a, T> {
    type Out<'o> = NdViewMut<'o, T>;

    fn copy_to(self, device: &Device, output: NdViewMut<'_, T>) -> Result<()> {
        if self.shape() != output.shape() {
            let (from, to) = (self.shape(), output.shape());
            return Err(Error::invalid(format!("copying a shape of {from:?} into one of {to:?}")));
        }
        permute::run(device, self, output)
    }
}
