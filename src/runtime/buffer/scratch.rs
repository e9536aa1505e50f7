//! Temporary device memory of calls, which belongs to the queue.

use super::{Backend, ClDevice, ClMem, Device};
use crate::Result;
use crate::runtime::opencl::Pooled;

/// Temporary memory of one call: a buffer of the queue's pool, until the call has enqueued its last command.
#[derive(Default)]
pub(crate) struct Scratch {
    pooled: Option<Pooled>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// At least `bytes` bytes on the device.
    pub(crate) fn cl(&mut self, device: &ClDevice, bytes: usize) -> Result<&ClMem> {
        if !self.pooled.as_ref().is_some_and(|pooled| pooled.serves(device, bytes)) {
            self.pooled = Some(device.pooled(bytes)?);
        }
        Ok(self.pooled.as_ref().map(Pooled::mem).expect("just filled"))
    }
}

/// # Scratch
///
/// Scratch is temporary device memory of calls. The device's queue keeps it from call to call, up to a sixteenth of the
/// device's memory, so a repeated call allocates only its results. The CPU backend uses none.
impl Device {
    /// Reserves `bytes` bytes of scratch. While this device and its clones need no more at once, later calls allocate
    /// no scratch. Calls of several threads at once can leave gaps between their parts, and may then allocate.
    ///
    /// To find `bytes`, run the calls on an equal device and read its [`Device::scratch_bytes`]. The queue keeps the
    /// largest reservation for its lifetime, even if memory becomes short. The CPU backend reserves nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device allows fewer bytes. The message has both
    /// numbers.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.filled(100_000, 7u32)?;
    /// let mut sorted = device.zeroed::<u32>(x.len())?;
    /// device.sort_into(&x, &mut sorted, Order::ascending())?;
    ///
    /// let other = Device::best()?;
    /// other.reserve(device.scratch_bytes())?;
    /// // On `other`, the same call allocates no scratch.
    /// assert!(other.scratch_bytes() >= device.scratch_bytes());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        match self.backend() {
            Backend::Cpu => Ok(()),
            Backend::OpenCl(device) => device.reserve(bytes),
        }
    }

    /// Peak scratch of the device's queue in bytes, reservations included; 0 for the CPU backend.
    ///
    /// Clones of a device share a queue. A device copy of a host slice counts as scratch.
    /// A reservation that a larger one has replaced does not.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// assert_eq!(device.scratch_bytes(), 0);
    /// device.reserve(1000)?;
    /// device.reserve(10)?;
    /// assert_eq!(device.scratch_bytes() >= 1000, !device.is_cpu());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scratch_bytes(&self) -> usize {
        match self.backend() {
            Backend::Cpu => 0,
            Backend::OpenCl(device) => device.scratch_bytes(),
        }
    }
}
