//! Reverse: `out[i] = x[n - 1 - i]`, out of place ([`Device::copy`] and [`Device::transform`] of
//! [`x.reversed()`](Source::reversed)) or in place ([`Device::reverse_in_place`]).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element |
//! | elements | any plain type; only its size counts |
//! | determinism | exact |
//! | scratch | none |
//! | limits | any n that fits the device |
//!
//! On a GPU, elements of 1, 2, 4, 8 or 16 bytes move in 16-byte words. All loads and stores are aligned, even if the
//! offsets are not. In place, this requires that the byte offsets of start and end add up to a multiple of 16. All
//! other elements move in units. The bytes of a unit are the largest power of two, at most 16, that divides the element
//! size. On a CPU driver, each work-item moves the units of a contiguous range of elements. The CPU backend moves whole
//! elements.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::{Copyable, Memory};
use crate::{Device, Error, Input, Output, Result, Source, runtime::Backend, source::Reversed};

fn check_size(size: usize) -> Result<()> {
    if size > 0 { Ok(()) } else { Err(Error::unsupported("elements must have at least 1 byte")) }
}

impl<S: Source<Item: Pod> + Memory> Copyable for Reversed<S> {
    type Out<'o> = Output<'o, S::Item>;

    fn copy_to(self, device: &Device, output: Output<'_, S::Item>) -> Result<()> {
        device.copy_reversed(self.0.held(device)?.input(), output)
    }
}

/// # Reversals
///
/// This method reverses the order of elements: `out[i] = x[n - 1 - i]`. Module:
/// [`layout::copy::reverse`](crate::layout::copy::reverse).
impl Device {
    /// Reversal in place: swaps `x[i]` and `x[n - 1 - i]`. Waits for the result only if `x` is a host slice.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the elements are zero-sized.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[1u16, 2, 3, 4])?;
    /// device.reverse_in_place(x.view_mut(1..)?)?;
    /// assert_eq!(x.to_vec()?, [1, 4, 3, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reverse_in_place<'a, T: Pod>(&self, x: impl Into<Output<'a, T>>) -> Result<()> {
        self.swap_one(x.into())
    }

    /// Reverses elements in memory, compiled once per type.
    #[inline(never)]
    pub(crate) fn copy_reversed<T: Pod>(&self, input: Input<'_, T>, output: Output<'_, T>) -> Result<()> {
        let size = size_of::<T>();
        check_size(size)?;
        output.expect_len(input.len(), "reverse")?;
        match self.backend() {
            Backend::Cpu => {
                cpu::reverse(size, bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input], &[&output])?;
                gpu::reverse(device, size, &input, &output)?;
                output.finish(device)?;
            }
        }
        Ok(())
    }

    /// Body of [`Device::reverse_in_place`], compiled once per type.
    #[inline(never)]
    fn swap_one<T: Pod>(&self, x: Output<'_, T>) -> Result<()> {
        let size = size_of::<T>();
        check_size(size)?;
        match self.backend() {
            Backend::Cpu => cpu::swap(size, bytemuck::cast_slice_mut(x.host()?))?,
            Backend::OpenCl(device) => {
                let x = x.cl(device, true)?;
                gpu::swap(device, size, &x)?;
                x.finish(device)?;
            }
        }
        Ok(())
    }
}
