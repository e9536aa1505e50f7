//! Temporary device memory that calls share.

use std::fmt;

use super::{Backend, ClDevice, ClMem, Device};
use crate::Result;
use crate::runtime::opencl::Pooled;

/// Temporary device memory of calls, which is reused from call to call.
///
/// New scratch is empty and grows as needed. [`Scratch::reserve`] sizes it in advance, so that later calls allocate no memory.
///
/// ```
/// use oclprim::{Determinism, Device, Scratch, op::Sum};
///
/// let device = Device::best()?;
/// let mut scratch = Scratch::new();
/// scratch.reserve(&device, device.reduce_scratch::<f32>(100_000))?;
/// let mut total = [0.0f32];
/// for x in [vec![0.5f32; 100_000], vec![0.25; 50_000]] {
///     device.reduce_into(&x, Sum, Determinism::Fixed, &mut total, &mut scratch)?;
/// }
/// assert_eq!(total, [12_500.0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Default)]
pub struct Scratch {
    pooled: Option<Pooled>,
    most: usize,
}

impl Scratch {
    /// Empty scratch.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, Scratch, op::Sum};
    ///
    /// let (mut total, mut scratch) = ([0u32], Scratch::new());
    /// Device::best()?.reduce_into(&[1u32, 2, 3], Sum, Determinism::Fixed, &mut total, &mut scratch)?;
    /// assert_eq!(total, [6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for `bytes` bytes on a device. The CPU backend needs none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device allows fewer bytes. The message has both
    /// numbers.
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let (device, mut scratch) = (Device::best()?, Scratch::new());
    /// scratch.reserve(&device, device.reduce_scratch::<f64>(1 << 20))?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reserve(&mut self, device: &Device, bytes: usize) -> Result<()> {
        match device.backend() {
            Backend::Cpu => Ok(()),
            Backend::OpenCl(device) => self.cl(device, bytes).map(|_| ()),
        }
    }

    /// The most bytes that any call has requested, reservations included. The CPU backend uses none.
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let (device, mut scratch) = (Device::best()?, Scratch::new());
    /// assert_eq!(scratch.bytes(), 0);
    /// scratch.reserve(&device, 1000)?;
    /// scratch.reserve(&device, 10)?;
    /// assert_eq!(scratch.bytes(), if device.is_cpu() { 0 } else { 1000 });
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn bytes(&self) -> usize {
        self.most
    }

    /// At least `bytes` bytes on the device.
    pub(crate) fn cl(&mut self, device: &ClDevice, bytes: usize) -> Result<&ClMem> {
        self.most = self.most.max(bytes);
        if !self.pooled.as_ref().is_some_and(|pooled| pooled.serves(device, bytes)) {
            self.pooled = Some(device.pooled(bytes)?);
        }
        Ok(self.pooled.as_ref().map(Pooled::mem).expect("just filled"))
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}
