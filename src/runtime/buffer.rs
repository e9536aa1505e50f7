//! Device memory, views of it, and the inputs and outputs of primitives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut, RangeBounds},
    ptr::NonNull,
};

use bytemuck::Pod;

use super::opencl::{ClDevice, ClMem, Pooled};
use super::{Backend, Device};
use crate::ErrorKind;
use crate::{Error, Result, memory, ranges::within};

enum Storage<T> {
    Host(Vec<T>),
    Cl(ClMem),
}

/// A buffer of `len` elements in the memory of a [`Device`].
///
/// A buffer stores any plain type. Dropping a buffer does not wait: the driver keeps the memory until pending commands
/// are done.
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
}

/// Maximum bytes of one copy command within a buffer, below the range that a driver can count in 32 bits.
const COPY_BYTES: usize = 1 << 30;

fn byte_len<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>())
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| Error::invalid(format!("{len} elements of {} bytes overflow the address space", size_of::<T>())))
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
    /// A buffer with a copy of `data`.
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
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) with both numbers if the device allows less.
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
        let storage = match self.backend() {
            Backend::Cpu => Storage::Host(host_memory(len)?),
            Backend::OpenCl(device) => Storage::Cl(device.allocate(bytes)?),
        };
        Ok(Buffer::new(self, storage, len))
    }

    /// A buffer of `len` elements over memory of the device's context that has another owner and is large enough.
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
        Self { device: device.clone(), storage, len, shared: None, mappings: Mappings::default() }
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
    /// assert!(x.map()?.iter().all(|&x| x == 2));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map(&self) -> Result<MapRef<'_, T>> {
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
    /// x.map_mut()?[1] = 7;
    /// assert_eq!(x.to_vec()?, [0, 7, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_mut(&mut self) -> Result<MapMut<'_, T>> {
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

    /// The memory object and its location, after the check of [`allow`](Self::allow).
    fn place(&self, write: bool) -> Result<Option<(&ClMem, (usize, usize))>> {
        self.allow(write)?;
        Ok(self.mem().map(|mem| (mem, self.shared.unwrap_or((mem.as_ptr().addr(), 0)))))
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>({} on {:?})", std::any::type_name::<T>(), self.len, self.device)
    }
}

/// A range of a [`Buffer`], for reading.
///
/// ```
/// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3, 4, 5])?;
/// let tail = x.view(3..)?;
/// assert_eq!((tail.offset(), tail.len(), tail.is_empty()), (3, 2, false));
/// assert_eq!((tail.buffer().len(), tail.to_vec()?), (5, vec![4, 5]));
/// let mut out = [0; 2];
/// tail.read(&mut out)?;
/// assert_eq!(out, [4, 5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T: Pod> {
    buffer: &'a Buffer<T>,
    offset: usize,
    len: usize,
}

/// # Elements
///
/// These methods read and map the elements of the range.
impl<'a, T: Pod> View<'a, T> {
    /// Copies the elements to the host; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if a command failed.
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3])?;
    /// assert_eq!(x.view(1..)?.to_vec()?, [2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut out = host_memory(self.len)?;
        self.read(&mut out)?;
        Ok(out)
    }

    /// Copies the elements into `out`; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `out` has another length.
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3])?;
    /// let mut ends = [0; 2];
    /// x.view(..1)?.read(&mut ends[..1])?;
    /// x.view(2..)?.read(&mut ends[1..])?;
    /// assert_eq!(ends, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn read(&self, out: &mut [T]) -> Result<()> {
        if out.len() != self.len {
            return Err(Error::invalid(format!("reading {} elements into a slice of {}", self.len, out.len())));
        }
        match &self.buffer.storage {
            Storage::Host(data) => out.copy_from_slice(&data[self.offset..self.offset + self.len]),
            Storage::Cl(mem) => {
                self.buffer.allow(false)?;
                self.buffer.cl().read(mem, byte_len::<T>(self.offset)?, bytemuck::cast_slice_mut(out))?;
            }
        }
        Ok(())
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::best()?.upload(&[1u8, 2, 3])?.view(1..)?.len(), 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Device::best()?.upload(&[1u8, 2, 3])?.view(3..)?.is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The offset of the first element in the buffer.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::best()?.upload(&[1u8, 2, 3])?.view(1..)?.offset(), 1);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The buffer that contains the view.
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3])?;
    /// assert_eq!(x.view(1..)?.buffer().len(), 3);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn buffer(&self) -> &'a Buffer<T> {
        self.buffer
    }

    /// Maps the range into the host's address space, for reading; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// Same as [`Buffer::map`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u16, 2, 3, 4])?;
    /// assert_eq!(x.view(1..3)?.map()?[..], [2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map(&self) -> Result<MapRef<'a, T>> {
        MapRef::new(*self)
    }
}

impl<'a, T: Pod> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self { buffer, offset: 0, len: buffer.len }
    }
}

/// A range of a [`Buffer`], for writing.
///
/// ```
/// let mut x = oclprim::Device::best()?.upload(&[1u8, 2, 3, 4, 5])?;
/// let mut middle = x.view_mut(1..4)?;
/// middle.fill(9)?;
/// assert_eq!(middle.as_view().to_vec()?, [9, 9, 9]);
/// middle.write(&[7, 8, 9])?;
/// assert_eq!((middle.len(), middle.is_empty()), (3, false));
/// assert_eq!(x.to_vec()?, [1, 7, 8, 9, 5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Two mutable views of one buffer cannot exist at once:
///
/// ```compile_fail,E0499
/// let mut x = oclprim::Device::cpu().zeroed::<u8>(8)?;
/// let (mut a, mut b) = (x.view_mut(..4)?, x.view_mut(4..)?);
/// a.fill(1)?;
/// b.fill(2)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A view cannot be used after a call has taken it:
///
/// ```compile_fail,E0382
/// # use oclprim::{Determinism::Fixed, Device, Scratch, op::Sum};
/// let device = Device::cpu();
/// let mut total = device.zeroed::<u8>(1)?;
/// let out = total.view_mut(..)?;
/// device.reduce_into(&[1, 2], Sum, Fixed, out, &mut Scratch::new())?;
/// device.reduce_into(&[3, 4], Sum, Fixed, out, &mut Scratch::new())?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
pub struct ViewMut<'a, T: Pod> {
    buffer: &'a mut Buffer<T>,
    offset: usize,
    len: usize,
}

/// # Elements
///
/// These methods write and map the elements of the range.
impl<T: Pod> ViewMut<'_, T> {
    /// Overwrites every element of the range with `data`, which must have the range's length.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `data` has another length.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.zeroed::<f32>(4)?;
    /// x.view_mut(1..3)?.write(&[0.5, 1.5])?;
    /// assert_eq!(x.to_vec()?, [0.0, 0.5, 1.5, 0.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn write(&mut self, data: &[T]) -> Result<()> {
        if data.len() != self.len {
            let (n, m) = (data.len(), self.len);
            return Err(Error::invalid(format!("writing {n} elements into {m}: the lengths must be equal")));
        }
        let (offset, len) = (self.offset, self.len);
        match &mut self.buffer.storage {
            Storage::Host(host) => host[offset..offset + len].copy_from_slice(data),
            Storage::Cl(mem) => {
                let mem = mem.clone();
                self.buffer.allow(true)?;
                self.buffer.cl().write(&mem, byte_len::<T>(offset)?, bytemuck::cast_slice(data))?;
            }
        }
        Ok(())
    }

    /// Sets every element of the range to `value`. Does not wait if an element has 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver refuses.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.zeroed::<u16>(5)?;
    /// x.view_mut(3..)?.fill(7)?;
    /// assert_eq!(x.to_vec()?, [0, 0, 0, 7, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn fill(&mut self, value: T) -> Result<()> {
        let (offset, len) = (self.offset, self.len);
        match &mut self.buffer.storage {
            Storage::Host(host) => host[offset..offset + len].fill(value),
            Storage::Cl(mem) => {
                let mem = mem.clone();
                self.buffer.allow(true)?;
                let pattern = bytemuck::bytes_of(&value);
                if pattern.len().is_power_of_two() && pattern.len() <= 16 {
                    self.buffer.cl().fill(&mem, byte_len::<T>(offset)?, byte_len::<T>(len)?, pattern)?;
                } else {
                    // OpenCL fills only with powers of two: write a first part, then copy it to double its length.
                    let (cl, start) = (self.buffer.cl(), byte_len::<T>(offset)?);
                    let block = memory::filled(len.min(4096), value)?;
                    cl.write(&mem, start, bytemuck::cast_slice(&block))?;
                    let (mut done, all) = (size_of_val(&block[..]), byte_len::<T>(len)?);
                    while done < all {
                        // Whole values, so that each part continues the pattern.
                        let part = done.min(all - done).min(COPY_BYTES - COPY_BYTES % size_of::<T>());
                        cl.copy((&mem, start), (&mem, start + done), part)?;
                        done += part;
                    }
                }
            }
        }
        Ok(())
    }

    /// The same range, for reading.
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.upload(&[1u8, 2, 3])?;
    /// let mut rest = x.view_mut(1..)?;
    /// rest.fill(7)?;
    /// assert_eq!(rest.as_view().to_vec()?, [7, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn as_view(&self) -> View<'_, T> {
        View { buffer: self.buffer, offset: self.offset, len: self.len }
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::best()?.upload(&[1u8, 2, 3])?.view_mut(1..)?.len(), 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Device::best()?.upload(&[1u8, 2, 3])?.view_mut(3..)?.is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Maps the range into the host's address space, for reading and writing; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// Same as [`Buffer::map_mut`].
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.upload(&[1u16, 2, 3, 4])?;
    /// x.view_mut(1..)?.map_mut()?.reverse();
    /// assert_eq!(x.to_vec()?, [1, 4, 3, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_mut(&mut self) -> Result<MapMut<'_, T>> {
        MapMut::new(ViewMut { buffer: self.buffer, offset: self.offset, len: self.len })
    }
}

impl<'a, T: Pod> From<&'a mut Buffer<T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        let len = buffer.len;
        Self { buffer, offset: 0, len }
    }
}

/// The driver's mappings of a buffer: the number of mappings for reading, and a bit for a mapping for writing.
///
/// Rust's borrows keep commands away from a mapped buffer, unless a mapping is leaked or the driver fails to unmap it.
/// Commands on mapped memory are undefined in OpenCL, so the buffer refuses them as long as it lives.
#[derive(Default)]
struct Mappings(AtomicUsize);

impl Mappings {
    const WRITING: usize = 1 << (usize::BITS - 1);

    fn weight(write: bool) -> usize {
        if write { Self::WRITING } else { 1 }
    }

    fn start(&self, write: bool) {
        self.0.fetch_add(Self::weight(write), Ordering::Relaxed);
    }

    fn end(&self, write: bool) {
        self.0.fetch_sub(Self::weight(write), Ordering::Relaxed);
    }

    /// Returns an error if commands may not read the buffer or, with `write`, may not write it.
    fn allow(&self, write: bool) -> Result<()> {
        let mappings = self.0.load(Ordering::Relaxed);
        let what = match (mappings & Self::WRITING != 0, write && mappings != 0) {
            (true, _) => "writing",
            (false, true) => "reading",
            (false, false) => return Ok(()),
        };
        let message =
            format!("the buffer is still mapped for {what}: the driver failed to unmap it, or the mapping was leaked");
        Err(Error::new(ErrorKind::Driver, message))
    }
}

/// An OpenCL mapping of at least one byte of a buffer.
struct Mapping<'a> {
    device: ClDevice,
    mem: ClMem,
    address: *mut u8,
    write: bool,
    mappings: &'a Mappings,
}

impl<'a> Mapping<'a> {
    fn new<T: Pod>(buffer: &'a Buffer<T>, mem: &ClMem, range: std::ops::Range<usize>, write: bool) -> Result<Self> {
        let (device, mappings, align) = (buffer.cl().clone(), &buffer.mappings, align_of::<T>());
        mappings.allow(write)?;
        let address = device.map(mem, range.start, range.len(), write)?;
        mappings.start(write);
        let mapping = Self { device, mem: mem.clone(), address, write, mappings };
        mapping.device.overdue()?;
        if address.addr().is_multiple_of(align) {
            Ok(mapping)
        } else {
            Err(Error::unsupported(format!("the driver maps at {address:?}, elements need {align} bytes of alignment")))
        }
    }
}

impl Drop for Mapping<'_> {
    fn drop(&mut self) {
        match self.device.unmap(&self.mem, self.address) {
            Ok(()) => self.mappings.end(self.write),
            Err(error) => self.device.owe(error),
        }
    }
}

fn shared() -> Error {
    Error::unsupported(
        "a buffer over a user's own memory cannot be mapped: its other owner could write to it meanwhile",
    )
}

/// The address and length of a view's elements, for as long as the mapping lives.
struct Mapped<'a, T: Pod> {
    address: NonNull<T>,
    len: usize,
    _mapping: Option<Mapping<'a>>,
    _buffer: PhantomData<&'a [T]>,
}

impl<'a, T: Pod> Mapped<'a, T> {
    fn host(address: NonNull<T>, len: usize) -> Self {
        Self { address, len, _mapping: None, _buffer: PhantomData }
    }

    fn cl(buffer: &'a Buffer<T>, mem: &ClMem, offset: usize, len: usize, write: bool) -> Result<Self> {
        if buffer.shared.is_some() {
            return Err(shared());
        }
        let (start, bytes) = (byte_len::<T>(offset)?, byte_len::<T>(len)?);
        if bytes == 0 {
            return Ok(Self::host(NonNull::dangling(), len));
        }
        let mapping = Mapping::new(buffer, mem, start..start + bytes, write)?;
        let address = NonNull::new(mapping.address.cast())
            .ok_or_else(|| Error::new(ErrorKind::Driver, format!("the driver maps {bytes} bytes at address 0")))?;
        Ok(Self { address, len, _mapping: Some(mapping), _buffer: PhantomData })
    }
}

/// The elements of a [`Buffer`] or a [`View`], mapped into the host's address space until the mapping is dropped.
///
/// ```
/// use oclprim::Device;
///
/// let x = Device::best()?.upload(&[1u8, 2, 3])?;
/// assert_eq!(x.map()?.iter().sum::<u8>(), 6);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct MapRef<'a, T: Pod> {
    mapped: Mapped<'a, T>,
}

impl<'a, T: Pod> MapRef<'a, T> {
    fn new(View { buffer, offset, len }: View<'a, T>) -> Result<Self> {
        let mapped = match &buffer.storage {
            Storage::Host(data) => Mapped::host(NonNull::from(&data[offset..offset + len]).cast(), len),
            Storage::Cl(mem) => Mapped::cl(buffer, mem, offset, len, false)?,
        };
        Ok(Self { mapped })
    }
}

impl<T: Pod> Deref for MapRef<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `mapped` has that many elements at that aligned address as long as `self` lives. The shared borrow of the
        // buffer excludes writers.
        unsafe { std::slice::from_raw_parts(self.mapped.address.as_ptr(), self.mapped.len) }
    }
}

impl<T: Pod> fmt::Debug for MapRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MapRef({} elements)", self.mapped.len)
    }
}

/// The elements of a [`Buffer`] or a [`ViewMut`], mapped into the host's address space for reading and writing until
/// the mapping is dropped.
///
/// ```
/// use oclprim::Device;
///
/// let mut x = Device::best()?.upload(&[1u8, 2, 3])?;
/// x.map_mut()?.reverse();
/// assert_eq!(x.to_vec()?, [3, 2, 1]);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// The buffer cannot be used while it is mapped:
///
/// ```compile_fail,E0502
/// # use oclprim::{Device, op::Sum};
/// let device = Device::cpu();
/// let mut x = device.upload(&[1u8, 2, 3])?;
/// let mut map = x.map_mut()?;
/// let total = device.reduce(&x, Sum)?;
/// map[0] = total;
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct MapMut<'a, T: Pod> {
    mapped: Mapped<'a, T>,
    _buffer: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> MapMut<'a, T> {
    fn new(ViewMut { buffer, offset, len }: ViewMut<'a, T>) -> Result<Self> {
        let mapped = match &mut buffer.storage {
            Storage::Host(data) => Mapped::host(NonNull::from(&mut data[offset..offset + len]).cast(), len),
            Storage::Cl(mem) => {
                let mem = mem.clone();
                Mapped::cl(buffer, &mem, offset, len, true)?
            }
        };
        Ok(Self { mapped, _buffer: PhantomData })
    }
}

impl<T: Pod> Deref for MapMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as for `MapRef`; only `self` borrows the buffer.
        unsafe { std::slice::from_raw_parts(self.mapped.address.as_ptr(), self.mapped.len) }
    }
}

impl<T: Pod> DerefMut for MapMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `MapRef`; only `self` borrows the buffer, mutably.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.address.as_ptr(), self.mapped.len) }
    }
}

impl<T: Pod> fmt::Debug for MapMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MapMut({} elements)", self.mapped.len)
    }
}

/// Input of a primitive: a host slice, a buffer or a view.
///
/// A host slice is copied to an OpenCL device for the call; a buffer must belong to the device.
///
/// Methods take `impl Into<Input<T>>`: `&[T]`, `&[T; N]`, `&Vec<T>`, `&Buffer<T>` or a [`View`]. `T` is plain data
/// ([`bytemuck::Pod`]), which `bool` is not. An array of `ndarray` converts by `Input::try_from(&array)?`, with the feature
/// `ndarray`.
///
/// ```
/// use oclprim::{Device, Input, op::Max};
///
/// fn largest<'a>(device: &Device, x: impl Into<Input<'a, i32>>) -> oclprim::Result<i32> {
///     device.reduce(x.into(), Max)
/// }
///
/// let device = Device::best()?;
/// assert_eq!(largest(&device, &[1, 5, 3])?, 5);
/// assert_eq!(largest(&device, &vec![1, 5, 3])?, 5);
/// let x = device.upload(&[1, 5, 3])?;
/// assert_eq!(largest(&device, &x)?, 5);
/// assert_eq!(largest(&device, x.view(2..)?)?, 3);
/// assert!(Input::from(&x).len() == 3 && !Input::from(&x).is_empty());
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A `Vec` or a [`Buffer`] is passed by reference:
///
/// ```compile_fail,E0277
/// oclprim::Device::cpu().reduce(vec![1.0f32, 2.0], oclprim::op::Sum)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a, T: Pod> {
    /// Elements in host memory.
    Host(&'a [T]),
    /// Elements in device memory.
    Device(View<'a, T>),
}

impl<'a, T: Pod> Input<'a, T> {
    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Input::from(&[1u8, 2, 3]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        match self {
            Self::Host(data) => data.len(),
            Self::Device(view) => view.len,
        }
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Input::<u8>::from(&[]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `len` elements from index `start` on, which must exist.
    pub(crate) fn part(self, start: usize, len: usize) -> Self {
        match self {
            Self::Host(data) => Self::Host(&data[start..start + len]),
            Self::Device(view) => Self::Device(View { offset: view.offset + start, len, ..view }),
        }
    }

    /// The elements as a slice, for the CPU backend.
    pub(crate) fn host(self) -> Result<&'a [T]> {
        match self {
            Self::Host(data) => Ok(data),
            Self::Device(view) => match &view.buffer.storage {
                Storage::Host(data) => Ok(&data[view.offset..view.offset + view.len]),
                Storage::Cl(_) => Err(foreign(&view.buffer.device, &Device::cpu().info().to_string())),
            },
        }
    }

    /// The elements in the device's memory.
    pub fn cl(self, device: &ClDevice) -> Result<ClInput> {
        match self {
            Self::Host(data) => {
                let input = ClInput::pooled(device, size_of_val(data), size_of::<T>())?;
                device.write(input.mem(), 0, bytemuck::cast_slice(data))?;
                Ok(input)
            }
            Self::Device(View { buffer, offset, len }) => {
                ClInput::within(device, &buffer.device, buffer.place(false)?, offset, len, size_of::<T>())
            }
        }
    }
}

fn foreign(owner: &Device, user: &str) -> Error {
    Error::invalid(format!("a buffer of {} cannot be used on {user}", owner.info()))
}

impl<'a, T: Pod> From<&'a [T]> for Input<'a, T> {
    fn from(data: &'a [T]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod, const N: usize> From<&'a [T; N]> for Input<'a, T> {
    fn from(data: &'a [T; N]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a Vec<T>> for Input<'a, T> {
    fn from(data: &'a Vec<T>) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a Buffer<T>> for Input<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self::Device(buffer.into())
    }
}

impl<'a, T: Pod> From<View<'a, T>> for Input<'a, T> {
    fn from(view: View<'a, T>) -> Self {
        Self::Device(view)
    }
}

/// Output of a primitive: a host slice, a buffer or a view.
///
/// On an OpenCL device, the call waits for the result if the output is a host slice. It also waits if the output is a buffer of
/// another queue in the same context. Buffers of other devices are refused.
///
/// Methods take `impl Into<Output<T>>`: `&mut [T]`, `&mut [T; N]`, `&mut Vec<T>`, `&mut Buffer<T>` or a [`ViewMut`]. An
/// array of `ndarray` converts by `Output::try_from(&mut array)?`, with the feature `ndarray`. An output never grows:
/// its length is that of the result. If the device finds the length, the output may be longer.
///
/// ```
/// use oclprim::{Device, Output};
///
/// let device = Device::best()?;
/// let mut on_host = [0u8; 3];
/// device.copy(&[1u8, 2, 3], &mut on_host)?;
/// let mut on_device = device.zeroed::<u8>(5)?;
/// device.copy(&on_host, on_device.view_mut(1..4)?)?;
/// assert_eq!(on_device.to_vec()?, [0, 1, 2, 3, 0]);
///
/// let output = Output::from(&mut on_device);
/// assert!(output.len() == 5 && !output.is_empty());
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Output<'a, T: Pod> {
    /// Elements in host memory.
    Host(&'a mut [T]),
    /// Elements in device memory.
    Device(ViewMut<'a, T>),
}

impl<'a, T: Pod> Output<'a, T> {
    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Output::from(&mut [0u8; 3]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        match self {
            Self::Host(data) => data.len(),
            Self::Device(view) => view.len,
        }
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Output::<u8>::from(&mut []).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an error unless the output has the `len` elements that a primitive will write.
    pub(crate) fn expect_len(&self, len: usize, what: &str) -> Result<()> {
        if self.len() == len {
            Ok(())
        } else {
            Err(Error::invalid(format!("{what} needs an output of {len} elements, got {}", self.len())))
        }
    }

    /// The `len` elements from index `start` on, which must exist.
    pub(crate) fn part(self, start: usize, len: usize) -> Self {
        match self {
            Self::Host(data) => Self::Host(&mut data[start..start + len]),
            Self::Device(view) => Self::Device(ViewMut { offset: view.offset + start, len, ..view }),
        }
    }

    /// The elements as a slice, for the CPU backend.
    pub(crate) fn host(self) -> Result<&'a mut [T]> {
        match self {
            Self::Host(data) => Ok(data),
            Self::Device(ViewMut { buffer, offset, len }) => match &mut buffer.storage {
                Storage::Host(data) => Ok(&mut data[offset..offset + len]),
                Storage::Cl(_) => Err(foreign(&buffer.device, &Device::cpu().info().to_string())),
            },
        }
    }

    /// The elements in the device's memory; the caller calls `finish` after the launches that write them. With `keep`, a host
    /// slice is copied there first, for primitives that do not write every element.
    pub fn cl(self, device: &ClDevice, keep: bool) -> Result<ClOutput<'a>> {
        match self {
            Self::Host(data) => {
                let place = ClInput::pooled(device, size_of_val(data), size_of::<T>())?;
                let host: &'a mut [u8] = bytemuck::cast_slice_mut(data);
                if keep {
                    device.write(place.mem(), 0, host)?;
                }
                Ok(ClOutput { place, host: Some(host) })
            }
            Self::Device(ViewMut { buffer, offset, len }) => {
                let place = ClInput::within(device, &buffer.device, buffer.place(true)?, offset, len, size_of::<T>())?;
                Ok(ClOutput { place, host: None })
            }
        }
    }
}

impl<'a, T: Pod> From<&'a mut [T]> for Output<'a, T> {
    fn from(data: &'a mut [T]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod, const N: usize> From<&'a mut [T; N]> for Output<'a, T> {
    fn from(data: &'a mut [T; N]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a mut Vec<T>> for Output<'a, T> {
    fn from(data: &'a mut Vec<T>) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a mut Buffer<T>> for Output<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        Self::Device(buffer.into())
    }
}

impl<'a, T: Pod> From<ViewMut<'a, T>> for Output<'a, T> {
    fn from(view: ViewMut<'a, T>) -> Self {
        Self::Device(view)
    }
}

/// The owner of device memory during a call.
pub(crate) enum Held {
    Buffer(ClMem),
    Pooled(Pooled),
}

impl Held {
    fn mem(&self) -> &ClMem {
        match self {
            Self::Buffer(mem) => mem,
            Self::Pooled(pooled) => pooled.mem(),
        }
    }
}

/// A call on one queue that uses a buffer of another queue. The owner's commands end before the call starts, and the
/// call's commands end before the owner's next ones.
struct Visit(ClDevice);

impl Visit {
    fn start(user: &ClDevice, owner: &ClDevice) -> Result<Option<Self>> {
        if user.same_queue(owner) {
            return Ok(None);
        }
        owner.finish()?;
        Ok(Some(Self(user.clone())))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Err(error) = self.0.finish() {
            self.0.owe(error);
        }
    }
}

/// Contiguous elements in device memory, as a kernel's arguments: a buffer and an offset.
pub struct ClInput {
    held: Held,
    #[allow(dead_code, reason = "kept for its drop")]
    visit: Option<Visit>,
    /// The location of the memory, as `opencl::root` returns it.
    root: (usize, usize),
    offset: usize,
    len: usize,
    size: usize,
}

impl ClInput {
    /// `bytes` bytes of the device's pool, for elements of `size` bytes.
    pub(crate) fn pooled(device: &ClDevice, bytes: usize, size: usize) -> Result<Self> {
        let held = Held::Pooled(device.pooled(bytes)?);
        let root = (held.mem().as_ptr().addr(), 0);
        Ok(Self { held, visit: None, root, offset: 0, len: bytes / size.max(1), size })
    }

    /// `len` elements of a buffer of `owner`, whose memory is `place`.
    fn within(
        device: &ClDevice,
        owner: &Device,
        place: Option<(&ClMem, (usize, usize))>,
        offset: usize,
        len: usize,
        size: usize,
    ) -> Result<Self> {
        match (owner.backend(), place) {
            (Backend::OpenCl(owner), Some((mem, root))) if device.same_context(owner) => {
                let visit = Visit::start(device, owner)?;
                Ok(Self { held: Held::Buffer(mem.clone()), visit, root, offset, len, size })
            }
            _ => Err(foreign(owner, &device.info().to_string())),
        }
    }

    pub fn mem(&self) -> &ClMem {
        self.held.mem()
    }

    /// The `len` elements from index `start` on, which must exist, for a call that ends before `self` is dropped.
    pub(crate) fn part(&self, start: usize, len: usize) -> Self {
        let held = Held::Buffer(self.mem().clone());
        Self { held, visit: None, root: self.root, offset: self.offset + start, len, size: self.size }
    }

    /// The offset of the first element in the buffer.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The byte offset of the first element in the buffer. Buffers themselves are at least 16-byte aligned.
    pub(crate) fn byte_offset(&self) -> usize {
        self.offset * self.size
    }

    /// The byte range of the elements in their memory object.
    fn bytes(&self) -> std::ops::Range<usize> {
        let first = self.root.1 + self.byte_offset();
        first..first + self.len * self.size
    }

    /// Returns whether the first element is aligned for 16-byte accesses.
    pub(crate) fn aligned(&self) -> bool {
        self.byte_offset().is_multiple_of(16)
    }

    /// Returns whether the end of the last element is aligned for 16-byte accesses.
    pub(crate) fn ends_aligned(&self) -> bool {
        (self.byte_offset() + self.len * self.size).is_multiple_of(16)
    }
}

/// Device memory that a primitive writes, and the host slice that receives a copy of it.
#[must_use = "a host slice is written by `finish`"]
pub struct ClOutput<'a> {
    place: ClInput,
    host: Option<&'a mut [u8]>,
}

/// Returns an error if an output overlaps an input or another output, as a user's buffers can. Kernels read inputs while they
/// write outputs.
pub(crate) fn apart(inputs: &[&ClInput], outputs: &[&ClOutput<'_>]) -> Result<()> {
    for (i, output) in outputs.iter().enumerate() {
        let later = outputs[i + 1..].iter().map(|output| &***output);
        for other in inputs.iter().copied().chain(later) {
            let (from, to) = (other.bytes(), output.bytes());
            if other.root.0 == output.root.0 && from.start.max(to.start) < from.end.min(to.end) {
                let text =
                    format!("an output overlaps another argument: bytes {to:?} and {from:?} of one memory object");
                return Err(Error::invalid(text));
            }
        }
    }
    Ok(())
}

impl ClOutput<'_> {
    /// If the output is a host slice, copies the result there and waits. Also waits if the memory belongs to another
    /// queue, since that queue does not report failures of this one.
    pub(crate) fn finish(self, device: &ClDevice) -> Result<()> {
        match self.host {
            Some(host) => device.read(self.place.mem(), 0, host),
            None if self.place.visit.is_some() => device.finish(),
            None => Ok(()),
        }
    }
}

impl Deref for ClOutput<'_> {
    type Target = ClInput;

    fn deref(&self) -> &ClInput {
        &self.place
    }
}

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
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) with both numbers if the device allows less.
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let (device, mut scratch) = (Device::best()?, Scratch::new());
    /// scratch.reserve(&device, device.reduce_as_scratch::<f32, f64>(1 << 20))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_read_and_write_the_elements() {
        let device = Device::cpu();
        for n in [0usize, 1, 5] {
            let mut buffer = device.upload(&(0..n as u16).collect::<Vec<_>>()).expect("memory");
            {
                let mut mapped = buffer.map_mut().expect("the CPU maps its memory");
                mapped.iter_mut().for_each(|x| *x += 7);
            }
            assert_eq!(*buffer.map().expect("the CPU maps its memory"), (7..n as u16 + 7).collect::<Vec<_>>());
        }
    }
}
