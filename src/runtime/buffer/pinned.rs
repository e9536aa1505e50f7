//! Host memory that moves at the speed of the link.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use bytemuck::Pod;

use super::{Input, Output, byte_len, host_memory};
use crate::runtime::{Backend, Device, opencl::Pinned};
use crate::{Error, Result};

/// A vector of fixed length in pinned host memory, allocated by [`Device::pinned`].
///
/// A device with memory of its own copies to and from pinned memory directly, at the speed of the link. The host reads
/// and writes it like any slice. On the CPU backend, and on devices that share the host's memory, it is plain memory.
/// Pinned memory cannot be swapped out, so programs allocate little of it, once, and reuse it.
///
/// It dereferences to a slice, and is an input or an output wherever a host slice is one. Pinned memory of one device
/// is as fast for other devices of the same platform. [`Device::upload_async`] and
/// [`Buffer::read_async`](super::Buffer::read_async) take it by value.
///
/// ```
/// use oclprim::{Device, op::Sum};
///
/// let device = Device::best()?;
/// let mut samples = device.pinned::<f32>(1000)?;
/// samples.fill(0.5);
/// assert_eq!(device.reduce(&samples, Sum)?, 500.0);
/// let x = device.upload(&samples)?;
/// let mut back = device.pinned(x.len())?;
/// x.view(..)?.read(&mut back)?;
/// assert_eq!(back[..], samples[..]);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct PinnedVec<T: Pod> {
    memory: Memory<T>,
    len: usize,
}

enum Memory<T> {
    Plain(Vec<T>),
    Pinned(Pinned),
}

/// # Pinned memory
///
/// This method allocates host memory that moves at the speed of the device's link.
impl Device {
    /// `len` elements with all bits zero in pinned host memory.
    ///
    /// Pinning takes longer than other allocations, so allocate once and reuse. Time and memory are proportional to `len`; the
    /// call waits for no command.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the driver or the host has too little memory,
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver does not map it,
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the number of bytes exceeds the address space.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// assert_eq!(device.pinned::<u16>(3)?[..], [0, 0, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedVec<T>> {
        let bytes = byte_len::<T>(len)?;
        let pinned = match self.backend() {
            Backend::Cpu => None,
            Backend::OpenCl(device) => device.pin(bytes)?,
        };
        let memory = match pinned {
            None => Memory::Plain(host_memory(len)?),
            Some(pinned) => {
                let address = pinned.address();
                if !address.addr().get().is_multiple_of(align_of::<T>()) {
                    let align = align_of::<T>();
                    let message =
                        format!("the driver pins at {address:?}, but elements need {align} bytes of alignment");
                    return Err(Error::unsupported(message));
                }
                // SAFETY: the mapping has `bytes` bytes, which `pinned` owns.
                unsafe { address.write_bytes(0, bytes) };
                Memory::Pinned(pinned)
            }
        };
        Ok(PinnedVec { memory, len })
    }
}

impl<T: Pod> PinnedVec<T> {
    /// Returns whether the memory is pinned; false on devices that need no pinned memory.
    ///
    /// ```
    /// assert!(!oclprim::Device::cpu().pinned::<u8>(5)?.is_pinned());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_pinned(&self) -> bool {
        matches!(self.memory, Memory::Pinned(_))
    }

    /// The address of the elements. The memory does not move with `self`.
    pub(super) fn address(&mut self) -> *mut u8 {
        match &mut self.memory {
            Memory::Plain(elements) => elements.as_mut_ptr().cast(),
            Memory::Pinned(pinned) => pinned.address().as_ptr(),
        }
    }
}

impl<T: Pod> Deref for PinnedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Plain(elements) => elements,
            // SAFETY: the mapping has `len` elements at an aligned address, each initialised, and `self` owns it.
            Memory::Pinned(pinned) => unsafe { std::slice::from_raw_parts(pinned.address().cast().as_ptr(), self.len) },
        }
    }
}

impl<T: Pod> DerefMut for PinnedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Plain(elements) => elements,
            // SAFETY: as for `deref`; `self` is borrowed mutably.
            Memory::Pinned(pinned) => unsafe {
                std::slice::from_raw_parts_mut(pinned.address().cast().as_ptr(), self.len)
            },
        }
    }
}

impl<T: Pod> fmt::Debug for PinnedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedVec<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

impl<'a, T: Pod> From<&'a PinnedVec<T>> for Input<'a, T> {
    fn from(data: &'a PinnedVec<T>) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a mut PinnedVec<T>> for Output<'a, T> {
    fn from(data: &'a mut PinnedVec<T>) -> Self {
        Self::Host(data)
    }
}
