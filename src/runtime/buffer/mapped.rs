//! Buffers mapped into the host's address space.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use bytemuck::Pod;

use super::{Buffer, ClDevice, ClMem, Storage, View, ViewMut, byte_len};
use crate::{Error, ErrorKind, Result};

/// The driver's mappings of a buffer: the number of mappings for reading, and a bit for a mapping for writing.
///
/// Rust's borrows keep commands away from a mapped buffer, unless a mapping is leaked or the driver fails to unmap it.
/// In OpenCL, behaviour is undefined if a command writes mapped memory, or reads memory that is mapped for writing. So
/// a buffer refuses such commands as long as it is mapped.
#[derive(Default)]
pub(super) struct Mappings(AtomicUsize);

impl Mappings {
    const WRITING: usize = 1 << (usize::BITS - 1);

    fn weight(write: bool) -> usize {
        if write { Self::WRITING } else { 1 }
    }

    pub(super) fn start(&self, write: bool) {
        self.0.fetch_add(Self::weight(write), Ordering::Relaxed);
    }

    pub(super) fn end(&self, write: bool) {
        self.0.fetch_sub(Self::weight(write), Ordering::Relaxed);
    }

    /// Returns an error if commands may not read the buffer or, with `write`, may not write it.
    pub(super) fn allow(&self, write: bool) -> Result<()> {
        let mappings = self.0.load(Ordering::Relaxed);
        let what = match (mappings & Self::WRITING != 0, write && mappings != 0) {
            (true, _) => "writing",
            (false, true) => "reading",
            (false, false) => return Ok(()),
        };
        let message = format!(
            "the buffer is still mapped for {what}: the driver failed to unmap it, or a mapping or download was leaked"
        );
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
        buffer.never_keep();
        let address = device.map(mem, range.start, range.len(), write)?;
        mappings.start(write);
        let mapping = Self { device, mem: mem.clone(), address, write, mappings };
        mapping.device.overdue()?;
        if address.addr().is_multiple_of(align) {
            Ok(mapping)
        } else {
            Err(Error::unsupported(format!(
                "the driver maps at {address:?}, but elements need {align} bytes of alignment"
            )))
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
/// assert_eq!(x.map_memory()?.iter().sum::<u8>(), 6);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct MapRef<'a, T: Pod> {
    mapped: Mapped<'a, T>,
}

impl<'a, T: Pod> MapRef<'a, T> {
    pub(super) fn new(View { buffer, offset, len }: View<'a, T>) -> Result<Self> {
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
/// x.map_memory_mut()?.reverse();
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
/// let mut map = x.map_memory_mut()?;
/// let total = device.reduce(&x, Sum)?;
/// map[0] = total;
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct MapMut<'a, T: Pod> {
    mapped: Mapped<'a, T>,
    _buffer: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> MapMut<'a, T> {
    pub(super) fn new(ViewMut { buffer, offset, len }: ViewMut<'a, T>) -> Result<Self> {
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
