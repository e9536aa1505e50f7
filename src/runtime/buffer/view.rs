//! Ranges of a buffer.

use bytemuck::Pod;

use super::{Buffer, ClDevice, ClInput, ClMem, Input, MapMut, MapRef, Storage, byte_len};
use crate::{Error, Result, memory};

/// Maximum bytes of one copy command within a buffer; a driver that counts bytes in 32 bits can copy this many.
const COPY_BYTES: usize = 1 << 30;

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
    pub(super) buffer: &'a Buffer<T>,
    pub(super) offset: usize,
    pub(super) len: usize,
}

fn another_len(len: usize, out: usize) -> Error {
    Error::invalid(format!("reading {len} elements into a slice of {out}"))
}

/// Reads bytes from byte `at` on.
fn read_bytes(device: &ClDevice, mem: &ClMem, at: Result<usize>, out: &mut [u8]) -> Result<()> {
    device.read(mem, at?, out)
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
        byte_len::<T>(self.len)?;
        let mut out = memory::with_capacity(self.len)?;
        let room = &mut out.spare_capacity_mut()[..self.len];
        match &self.buffer.storage {
            Storage::Host(data) => {
                let data = &data[self.offset..][..self.len];
                // SAFETY: both have `self.len` elements. They do not overlap, since the vector is new memory.
                unsafe { room.as_mut_ptr().cast::<T>().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
            }
            Storage::Cl(mem) => {
                self.buffer.allow(false)?;
                // SAFETY: the slice has the bytes of `room`, and a `MaybeUninit<u8>` may be uninitialised.
                let room = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size_of_val(room)) };
                self.buffer.cl().read_new(mem, byte_len::<T>(self.offset)?, room)?;
            }
        }
        // SAFETY: all elements were written, and a `Pod` may have any bytes.
        unsafe { out.set_len(self.len) };
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
            return Err(another_len(self.len, out.len()));
        }
        match &self.buffer.storage {
            Storage::Host(data) => out.copy_from_slice(&data[self.offset..self.offset + self.len]),
            Storage::Cl(mem) => {
                let (allowed, at) = (self.buffer.allow(false), byte_len::<T>(self.offset));
                return read_bytes(self.buffer.cl(), mem, allowed.and(at), bytemuck::cast_slice_mut(out));
            }
        }
        Ok(())
    }

    /// The elements as an argument of kernels.
    #[doc(hidden)]
    pub fn cl(self, device: &ClDevice) -> Result<ClInput> {
        Input::from(self).cl(device)
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
    /// Same as [`Buffer::map_memory`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u16, 2, 3, 4])?;
    /// assert_eq!(x.view(1..3)?.map_memory()?[..], [2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_memory(&self) -> Result<MapRef<'a, T>> {
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
/// # use oclprim::{Determinism::Fixed, Device, op::Sum};
/// let device = Device::cpu();
/// let mut total = device.zeroed::<u8>(1)?;
/// let out = total.view_mut(..)?;
/// device.reduce_into(&[1, 2], Sum, out)?;
/// device.reduce_into(&[3, 4], Sum, out)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
pub struct ViewMut<'a, T: Pod> {
    pub(super) buffer: &'a mut Buffer<T>,
    pub(super) offset: usize,
    pub(super) len: usize,
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
                    // OpenCL's fill patterns have 2^k bytes: write a first part, then copy it to double its length.
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
    /// Same as [`Buffer::map_memory_mut`].
    ///
    /// ```
    /// let mut x = oclprim::Device::best()?.upload(&[1u16, 2, 3, 4])?;
    /// x.view_mut(1..)?.map_memory_mut()?.reverse();
    /// assert_eq!(x.to_vec()?, [1, 4, 3, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_memory_mut(&mut self) -> Result<MapMut<'_, T>> {
        MapMut::new(ViewMut { buffer: self.buffer, offset: self.offset, len: self.len })
    }
}

impl<'a, T: Pod> From<&'a mut Buffer<T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        let len = buffer.len;
        Self { buffer, offset: 0, len }
    }
}
