//! Iota: the numbers from a start on.
//!
//! | property | |
//! |---|---|
//! | work | one write of each element |
//! | determinism | everywhere: integers, wrapping |
//! | scratch | none |
//! | limits | any n that fits the device |

mod cpu;
#[cfg(feature = "opencl")]
pub(crate) mod gpu;
pub(crate) mod spec;

use crate::{Buffer, Device, Integer, Output, Result, runtime::Backend};

impl Device {
    /// `n` elements: `start`, `start + 1`, …, wrapping.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device does not hold them.
    ///
    /// ```
    /// let x = oclprim::Device::best()?.iota(3, 254u8)?;
    /// assert_eq!(x.to_vec()?, [254, 255, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn iota<T: Integer>(&self, n: usize, start: T) -> Result<Buffer<T>> {
        let mut out = self.uninit(n)?;
        self.iota_into(start, &mut out)?;
        Ok(out)
    }

    /// [`Device::iota`] into a caller's slice, buffer or view. Does not wait, unless `output` is a host slice.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` is another device's.
    pub fn iota_into<'a, T: Integer>(&self, start: T, output: impl Into<Output<'a, T>>) -> Result<()> {
        let output = output.into();
        match self.backend() {
            Backend::Cpu => cpu::iota(start, output.host()?),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::iota(device, start, output)?,
        }
        Ok(())
    }
}
