//! Device memory, views of it, and the inputs and outputs of primitives.

mod argument;
mod mapped;
mod pinned;
mod resident;
mod scratch;
mod transfer;
mod view;

use std::{fmt, ops::RangeBounds};

use bytemuck::Pod;

pub(crate) use argument::{AnyInput, AnyOutput, Identity};
pub use argument::{Input, Output};
use mapped::Mappings;
pub use mapped::{MapMut, MapRef};
pub use pinned::PinnedVec;
pub(crate) use resident::{Arriving, ClInput, ClOutput, Extent, apart, extents_apart, on_device};
pub(crate) use scratch::Scratch;
pub use transfer::{Download, Upload};
pub use view::{View, ViewMut};

use super::opencl::{ClDevice, ClMem, Pooled, ResultMemory};
use super::{Backend, Device};
use crate::{Error, Result, memory, ranges::within};

enum Storage<T> {
    Host(Vec<T>),
    Cl(ClMem),
}

/// A buffer of `len` elements in the memory of a [`Device`].
///
/// A buffer stores any plain type. Dropping a buffer does not wait: the driver keeps the memory until pending commands
/// are done. The queue keeps the memory of large results for later ones; see [`Device::reserve`].
///
/// ```
/// use oclprim::Device;
///
/// let device = Device::best()?;
/// let mut x = device.upload(&[1i32, 2, 3, 4])?;
/// x.view_mut(1..3)?.fill(0)?;
/// assert_eq!((x.len(), x.is_empty(), x.to_vec()?), (4, false, vec![1, 0, 0, 4]));
/// assert_eq!(x.device().info(), device.info());
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Buffer<T: Pod> {
    device: Device,
    storage: Storage<T>,
    len: usize,
    /// The location of a user's own memory, as `opencl::root` returns it. The user may write it at any time, so it cannot be
    /// mapped.
    shared: Option<(usize, usize)>,
    mappings: Mappings,
    /// Memory of the queue's pool, returned when the buffer is dropped.
    _pooled: Option<Pooled>,
    /// Memory that the queue keeps for later results when the buffer is dropped.
    result: Option<ResultMemory>,
}

fn byte_len<T>(len: usize) -> Result<usize> {
    byte_len_of(len, size_of::<T>())
}

/// [`byte_len`] of elements of `size` bytes.
fn byte_len_of(len: usize, size: usize) -> Result<usize> {
    len.checked_mul(size)
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| Error::invalid(format!("{len} elements of {size} bytes overflow the address space")))
}

/// `len` zeroed elements in the host's memory, or an error if there is too little.
fn host_memory<T: Pod>(len: usize) -> Result<Vec<T>> {
    byte_len::<T>(len)?;
    memory::zeroed(len)
}

/// # Device memory
///
/// These methods allocate a [`Buffer`] and fill it.
impl Device {
    /// A buffer with a copy of `data`; waits for all earlier commands and for the copy.
    ///
    /// To a device with memory of its own, slices of 4 MiB or more go through pinned chunks that several threads fill.
    /// [Pinned memory](Device::pinned) needs no such copy, and [`Device::upload_async`] no wait.
    ///
    /// # Errors
    ///
    /// Same as [`Device::zeroed`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1.5f32, 2.5])?;
    /// assert_eq!(x.to_vec()?, [1.5, 2.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn upload<T: Pod>(&self, data: &[T]) -> Result<Buffer<T>> {
        let storage = match self.backend() {
            Backend::Cpu => {
                let mut host = host_memory(data.len())?;
                host.copy_from_slice(data);
                Storage::Host(host)
            }
            Backend::OpenCl(device) => {
                let mem = device.allocate(size_of_val(data))?;
                device.write(&mem, 0, bytemuck::cast_slice(data))?;
                Storage::Cl(mem)
            }
        };
        Ok(Buffer::new(self, storage, data.len()))
    }

    /// A buffer of `len` elements with all bits zero.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device or the host has too little memory. If the
    ///   device allows fewer bytes in one allocation, the message has both numbers.
    /// - [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the number of bytes exceeds the address space.
    ///
    /// ```
    /// let zeros = oclprim::Device::best()?.zeroed::<u16>(3)?;
    /// assert_eq!(zeros.to_vec()?, [0, 0, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.uninit(len)?;
        match &buffer.storage {
            Storage::Host(_) => {}
            Storage::Cl(mem) => buffer.cl().fill(mem, 0, byte_len::<T>(len)?, &[0])?,
        }
        Ok(buffer)
    }

    /// A buffer of `len` elements with the value `value`.
    ///
    /// # Errors
    ///
    /// Same as [`Device::zeroed`].
    ///
    /// ```
    /// let ones = oclprim::Device::best()?.filled(3, 1.0f64)?;
    /// assert_eq!(ones.to_vec()?, [1.0; 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn filled<T: Pod>(&self, len: usize, value: T) -> Result<Buffer<T>> {
        let mut buffer = self.uninit(len)?;
        buffer.fill(value)?;
        Ok(buffer)
    }

    /// Allocates `len` elements that the caller will write: zeros on the CPU, unspecified values on an OpenCL device.
    #[doc(hidden)]
    pub fn uninit<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let bytes = byte_len::<T>(len)?;
        match self.backend() {
            Backend::Cpu => Ok(Buffer::new(self, Storage::Host(host_memory(len)?), len)),
            Backend::OpenCl(device) => {
                let result = device.for_result(bytes)?;
                let buffer = Buffer::new(self, Storage::Cl(result.mem().clone()), len);
                Ok(Buffer { result: Some(result), ..buffer })
            }
        }
    }

    /// [`Device::uninit`] for memory that only one call uses: on an OpenCL device it is scratch.
    pub(crate) fn temporary<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let Backend::OpenCl(device) = self.backend() else { return self.uninit(len) };
        let pooled = device.pooled(byte_len::<T>(len)?)?;
        let buffer = Buffer::new(self, Storage::Cl(pooled.mem().clone()), len);
        Ok(Buffer { _pooled: Some(pooled), ..buffer })
    }

    /// The input in memory of this device. A slice is copied to `own`, so that several calls copy it once.
    pub(crate) fn copied_once<'a, T: Pod>(
        &self,
        input: Input<'a, T>,
        own: &'a mut Option<Buffer<T>>,
    ) -> Result<Input<'a, T>> {
        match input {
            Input::Host(slice) if !self.is_cpu() => {
                let mut copy = self.temporary(slice.len())?;
                copy.write(slice)?;
                Ok(Input::from(&*own.insert(copy)))
            }
            there => Ok(there),
        }
    }

    /// A buffer of `len` elements over memory of another owner. The memory belongs to the device's context, and is
    /// large enough.
    #[cfg(feature = "opencl")]
    pub(crate) fn adopt_buffer<T: Pod>(&self, mem: ClMem, len: usize) -> Result<Buffer<T>> {
        Ok(Buffer { shared: Some(super::opencl::root(&mem)?), ..Buffer::new(self, Storage::Cl(mem), len) })
    }
}

/// # Elements and views
///
/// These methods read, write and map the elements, and make views of a range.
impl<T: Pod> Buffer<T> {
    fn new(device: &Device, storage: Storage<T>, len: usize) -> Self {
        let (device, mappings) = (device.clone(), Mappings::default());
        Self { device, storage, len, shared: None, mappings, _pooled: None, result: None }
    }

    /// Copies the elements to the host; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if a command failed.
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2])?;
    /// assert_eq!(x.to_vec()?, [1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn to_vec(&self) -> Result<Vec<T>> {
        View::from(self).to_vec()
    }

    /// The elements as a vector; waits for all earlier commands. The CPU backend copies nothing.
    ///
    /// # Errors
    ///
    /// Same as [`Buffer::to_vec`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2])?;
    /// assert_eq!(x.into_vec()?, [1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn into_vec(self) -> Result<Vec<T>> {
        match self.storage {
            Storage::Host(mut elements) => {
                elements.truncate(self.len);
                Ok(elements)
            }
            Storage::Cl(_) => self.to_vec(),
        }
    }

    /// Overwrites every element with `data`, which must have the buffer's length; a [view](Self::view_mut) overwrites a part.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `data` has another length than the buffer.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.zeroed::<f32>(2)?;
    /// x.write(&[0.5, 1.5])?;
    /// x.view_mut(..1)?.write(&[2.5])?;
    /// assert_eq!(x.to_vec()?, [2.5, 1.5]);
    /// assert_eq!(x.write(&[0.5]).unwrap_err().to_string(), "writing 1 elements into 2: the lengths must be equal");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn write(&mut self, data: &[T]) -> Result<()> {
        ViewMut::from(self).write(data)
    }

    /// Sets every element to `value`. Does not wait if an element has 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver refuses.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.zeroed::<[u8; 3]>(2)?;
    /// x.fill([255, 128, 0])?;
    /// assert_eq!(x.to_vec()?, [[255, 128, 0]; 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn fill(&mut self, value: T) -> Result<()> {
        ViewMut::from(self).fill(value)
    }

    /// A view of a range of elements; its start needs no alignment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the range exceeds the buffer.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u32, 2, 3, 4])?;
    /// assert_eq!(device.reduce(x.view(1..3)?, Sum)?, 5);
    /// assert!(x.view(2..5).is_err());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        let (offset, len) = within(range, self.len, "a buffer")?;
        Ok(View { buffer: self, offset, len })
    }

    /// A view of a range of elements, for writing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the range exceeds the buffer.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.zeroed::<u8>(4)?;
    /// x.view_mut(1..3)?.write(&[5, 6])?;
    /// assert_eq!(x.to_vec()?, [0, 5, 6, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        let (offset, len) = within(range, self.len, "a buffer")?;
        Ok(ViewMut { buffer: self, offset, len })
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::best()?.upload(&[1u8, 2, 3])?.len(), 3);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Device::best()?.zeroed::<f32>(0)?.is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes the elements from index `len` on. As with a [`Vec`], the memory is freed only when the buffer is dropped.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.upload(&[1u8, 2, 3])?;
    /// x.truncate(2);
    /// assert_eq!(x.to_vec()?, [1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        match &mut self.storage {
            Storage::Host(host) => host.truncate(len),
            Storage::Cl(_) => {}
        }
    }

    /// The device that owns the memory.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// assert_eq!(device.zeroed::<u8>(3)?.device().info(), device.info());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Maps the elements into the host's address space, for reading; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver cannot map the buffer.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the memory is the user's own, from `interop`.
    ///
    /// Dropping the mapping unmaps it. If that fails, the next call that waits on this device returns the error. Every
    /// later call that writes the buffer then fails with [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    ///
    /// ```
    /// let x = oclprim::Device::best()?.filled(100, 2u32)?;
    /// assert!(x.map_memory()?.iter().all(|&x| x == 2));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_memory(&self) -> Result<MapRef<'_, T>> {
        MapRef::new(self.into())
    }

    /// Maps the elements into the host's address space, for reading and writing; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver cannot map the buffer.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the memory is the user's own, from `interop`.
    ///
    /// Dropping the mapping unmaps it. If that fails, the next call that waits on this device returns the error. Every
    /// later use of the buffer then fails with [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.zeroed::<u32>(3)?;
    /// x.map_memory_mut()?[1] = 7;
    /// assert_eq!(x.to_vec()?, [0, 7, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_memory_mut(&mut self) -> Result<MapMut<'_, T>> {
        MapMut::new(self.into())
    }

    fn cl(&self) -> &ClDevice {
        match self.device.backend() {
            Backend::OpenCl(device) => device,
            Backend::Cpu => unreachable!("OpenCL storage is allocated by OpenCL devices alone"),
        }
    }

    #[doc(hidden)]
    pub fn mem(&self) -> Option<&ClMem> {
        match &self.storage {
            Storage::Cl(mem) => Some(mem),
            Storage::Host(_) => None,
        }
    }

    /// Returns an error if commands may not read the memory or, with `write`, may not write it.
    pub(crate) fn allow(&self, write: bool) -> Result<()> {
        self.mappings.allow(write)
    }

    /// Marks memory that others may still use when the buffer is dropped, so that no later result gets it.
    pub(crate) fn never_keep(&self) {
        if let Some(result) = &self.result {
            result.never_keep();
        }
    }

    /// The memory object and its location, after the check of [`allow`](Self::allow).
    fn place(&self, write: bool) -> Result<Option<(&ClMem, (usize, usize))>> {
        self.allow(write)?;
        Ok(self.mem().zip(self.root()))
    }

    /// The location of the memory, as `opencl::root` returns it.
    fn root(&self) -> Option<(usize, usize)> {
        self.mem().map(|mem| self.shared.unwrap_or((mem.as_ptr().addr(), 0)))
    }

    fn extent(&self, offset: usize, len: usize) -> Extent {
        let size = size_of::<T>();
        self.root().map_or_else(Extent::default, |root| Extent::new(root, offset * size, len * size))
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>({} on {:?})", std::any::type_name::<T>(), self.len, self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_read_and_write_the_elements() {
        let device = Device::cpu();
        for n in [0usize, 1, 5] {
            let mut buffer = device.upload(&(0..n as u16).collect::<Vec<_>>()).expect("memory");
            {
                let mut mapped = buffer.map_memory_mut().expect("the CPU maps its memory");
                mapped.iter_mut().for_each(|x| *x += 7);
            }
            assert_eq!(*buffer.map_memory().expect("the CPU maps its memory"), (7..n as u16 + 7).collect::<Vec<_>>());
        }
    }
}
