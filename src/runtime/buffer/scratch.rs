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
    /// Takes `bytes` bytes of scratch in advance. If this device and its clones need no more at a time, later calls
    /// allocate no scratch.
    ///
    /// A call on an equal device shows how many bytes are needed: [`Device::scratch_bytes`]. The queue keeps the largest
    /// reservation as long as it lives, even if memory becomes short. The CPU backend reserves nothing.
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
    /// // On `other`, the same call takes no memory.
    /// assert!(other.scratch_bytes() >= device.scratch_bytes());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        match self.backend() {
            Backend::Cpu => Ok(()),
            Backend::OpenCl(device) => device.reserve(bytes),
        }
    }

    /// The most bytes of scratch that the device's queue has held at a time, reservations included; 0 for the CPU
    /// backend.
    ///
    /// Clones of a device share a queue. The copy of a host slice on the device is scratch, too.
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
