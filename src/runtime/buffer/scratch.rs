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
///
/// The queue also keeps the memory of dropped results of 64 KiB or more, for later results of about the same size. It
/// keeps at most eight such buffers, and at most a sixteenth of the device's memory. A new allocation first frees about
/// as many of these bytes. If memory becomes short, all queues free this memory, and the idle scratch that is not
/// reserved.
impl Device {
    /// Reserves scratch buffers of these sizes in bytes. A later call takes the smallest one that serves it. It
    /// allocates scratch only if no reserved buffer is large enough, or if other calls use all buffers that are.
    ///
    /// To find the sizes, run the calls on another queue of the device and read its [`Device::scratch_sizes`]. The
    /// queue keeps reserved buffers for its lifetime, even if memory becomes short. A repeated reservation allocates
    /// only the buffers that are missing. The CPU backend reserves nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device allows no buffer of such a size. The
    /// message has the size and the device's limits.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let x = device.filled(100_000, 7u32)?;
    /// let mut sorted = device.zeroed::<u32>(x.len())?;
    /// device.sort_into(&x, Order::ascending(), &mut sorted)?;
    ///
    /// let other = Device::best()?;
    /// other.reserve(&device.scratch_sizes())?;
    /// // On `other`, the same call allocates no scratch.
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reserve(&self, sizes: &[usize]) -> Result<()> {
        match self.backend() {
            Backend::Cpu => Ok(()),
            Backend::OpenCl(device) => device.reserve(sizes),
        }
    }

    /// Sizes in bytes of scratch buffers for all calls so far, largest first, as [`Device::reserve`] takes them. Their
    /// sum is at least the peak of the scratch in use. The list is empty on the CPU backend.
    ///
    /// Clones of a device share a queue. A device copy of a host slice counts as scratch.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// assert!(device.scratch_sizes().is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scratch_sizes(&self) -> Vec<usize> {
        match self.backend() {
            Backend::Cpu => Vec::new(),
            Backend::OpenCl(device) => device.scratch_sizes(),
        }
    }
}
