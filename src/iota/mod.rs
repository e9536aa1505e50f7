//! Iota: `out[i] = start + i * step`.
//!
//! | property | |
//! |---|---|
//! | work | one write of each element |
//! | determinism | same bits everywhere; for floats, if the device keeps subnormals |
//! | scratch | none |
//! | limits | any n that fits the device |

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use crate::{Buffer, Device, Element, Output, Result, runtime::Backend};

/// # Consecutive numbers
///
/// These methods return equally spaced numbers: `out[i] = start + i * step`. Module: [`iota`](crate::iota).
impl Device {
    /// Iota: `out[i] = start + i * step`, for `n` elements.
    ///
    /// Integers wrap. Floats are computed in their type; `f16` and `bf16` in `f32`. The conversion of `i`, the product
    /// and the sum each round to nearest, ties to even, and are never fused. `f16` and `bf16` round once more at the
    /// end. So the error does not accumulate with `i`. If the product overflows, the element is
    /// `2 * (start / 2 + i * (step / 2))`, which can be finite.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the elements do not fit the device.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// assert_eq!(device.iota(4, 1.0f32, -0.5)?.to_vec()?, [1.0, 0.5, 0.0, -0.5]);
    /// assert_eq!(device.iota(3, 250u8, 4)?.to_vec()?, [250, 254, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn iota<T: Element>(&self, n: usize, start: T, step: T) -> Result<Buffer<T>> {
        let mut out = self.uninit(n)?;
        self.iota_into(start, step, &mut out)?;
        Ok(out)
    }

    /// [`Device::iota`] into a slice, buffer or view. Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::iota`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output`
    /// belongs to another device.
    ///
    /// ```
    /// let mut tenths = [0.0f64; 4];
    /// oclprim::Device::cpu().iota_into(0.0, 0.1, &mut tenths)?;
    /// assert_eq!(tenths, [0.0, 0.1, 2.0 * 0.1, 3.0 * 0.1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn iota_into<'a, T: Element>(&self, start: T, step: T, output: impl Into<Output<'a, T>>) -> Result<()> {
        let output = output.into();
        match self.backend() {
            Backend::Cpu => cpu::iota(start, step, output.host()?),
            Backend::OpenCl(device) => gpu::iota(device, start, step, output)?,
        }
        Ok(())
    }
}
