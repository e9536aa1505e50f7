//! Transfers that the host does not wait for.

use std::{fmt, mem::ManuallyDrop};

use bytemuck::Pod;

use super::mapped::Mappings;
use super::{Backend, Buffer, Device, PinnedVec, Storage, View, byte_len};
use crate::runtime::opencl::Transfer;
use crate::{Error, Result};

/// A transfer that may be running, and the host memory that it uses. That memory is freed only after the end, or never.
struct Moving<T: Pod> {
    /// `None` if the transfer was done at once.
    transfer: Option<Transfer>,
    host: ManuallyDrop<PinnedVec<T>>,
    /// False if the driver did not report the transfer's end. The memory must then not be used again.
    done: bool,
}

impl<T: Pod> Moving<T> {
    fn is_done(&self) -> Result<bool> {
        self.transfer.as_ref().map_or(Ok(true), Transfer::is_done)
    }

    /// The first call waits for the transfer, and returns it with its result. Later calls return `None`.
    fn end(&mut self) -> Option<(Transfer, Result<()>)> {
        let mut transfer = self.transfer.take()?;
        let (result, done) = transfer.wait();
        self.done = done;
        Some((transfer, result))
    }

    /// Ends a transfer that failed to start, and returns `error`.
    fn failed(mut self, error: Error) -> Error {
        drop(self.end());
        error
    }

    /// Waits for the transfer. If it succeeded, `check` may still return an error.
    fn wait(mut self, check: impl FnOnce(&Transfer) -> Result<()>) -> Result<PinnedVec<T>> {
        if let Some((transfer, result)) = self.end() {
            result.and_then(|()| check(&transfer))?;
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the transfer is done, and `this` is not dropped.
        Ok(unsafe { ManuallyDrop::take(&mut this.host) })
    }
}

impl<T: Pod> Drop for Moving<T> {
    fn drop(&mut self) {
        if let Some((transfer, Err(error))) = self.end() {
            transfer.owe(error);
        }
        if self.done {
            // SAFETY: `host` is dropped once, and no command uses it.
            unsafe { ManuallyDrop::drop(&mut self.host) };
        }
    }
}

/// An upload that may be running: the handle of [`Device::upload_async`].
///
/// It owns the pinned memory. Dropping it waits for the transfer. If the transfer failed, the next call that waits on
/// the device returns the error. If the handle is leaked, so is the memory.
#[must_use = "dropping the handle waits for the transfer"]
pub struct Upload<T: Pod> {
    moving: Moving<T>,
}

impl<T: Pod> Upload<T> {
    /// Returns whether the transfer is done; does not wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver does not answer.
    ///
    /// ```
    /// let device = oclprim::Device::cpu();
    /// let (x, upload) = device.upload_async(device.pinned::<u8>(3)?)?;
    /// assert!(upload.is_done()?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_done(&self) -> Result<bool> {
        self.moving.is_done()
    }

    /// Returns the pinned memory; waits for the transfer, but not for earlier commands of the device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the transfer failed. The buffer then has no defined contents.
    /// The pinned memory is freed, or leaked if the driver does not report the transfer's end.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let (x, upload) = device.upload_async(device.pinned::<u8>(3)?)?;
    /// let mut host = upload.wait()?;
    /// host[0] = 7; // `x` keeps its elements
    /// assert_eq!(x.to_vec()?, [0, 0, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn wait(self) -> Result<PinnedVec<T>> {
        self.moving.wait(|_| Ok(()))
    }
}

impl<T: Pod> fmt::Debug for Upload<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({} elements)", self.moving.host.len())
    }
}

/// A download that may be running: the handle of [`Buffer::read_async`].
///
/// It owns the pinned memory, and no command can write the buffer as long as it lives. Dropping it waits for the
/// transfer. If the transfer failed, the next call that waits on the device returns the error. If the handle is leaked,
/// so is the memory, and calls that write the buffer fail.
#[must_use = "dropping the handle waits for the transfer"]
pub struct Download<'a, T: Pod> {
    moving: Moving<T>,
    /// The buffer, borrowed or owned. Declared after `moving`, so that it is dropped later.
    _reading: Option<Reading<'a>>,
    _owned: Option<Buffer<T>>,
}

/// A buffer that a transfer reads, as if it was mapped for reading.
struct Reading<'a>(&'a Mappings);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.end(false);
    }
}

impl<T: Pod> Download<'_, T> {
    /// Returns whether the transfer is done; does not wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver does not answer.
    ///
    /// ```
    /// let device = oclprim::Device::cpu();
    /// let x = device.upload(&[1u8, 2, 3])?;
    /// assert!(x.read_async(device.pinned(3)?)?.is_done()?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_done(&self) -> Result<bool> {
        self.moving.is_done()
    }

    /// Returns the pinned memory with the elements; waits for the transfer, and so for the device's commands before it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the transfer or a command before it failed. The pinned memory
    /// is then freed, or leaked if the driver does not report the transfer's end.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3])?;
    /// assert_eq!(x.read_async(device.pinned(3)?)?.wait()?[..], [1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn wait(self) -> Result<PinnedVec<T>> {
        self.moving.wait(Transfer::overdue)
    }
}

impl<T: Pod> fmt::Debug for Download<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Download({} elements)", self.moving.host.len())
    }
}

/// # Asynchronous transfers
///
/// This method starts an upload that the host does not wait for.
impl Device {
    /// A buffer that receives a copy of `data`, and the handle of the transfer; waits for nothing.
    ///
    /// The transfer runs on a queue of its own, so it starts at once, beside earlier commands. Later commands of this device
    /// wait for it. [`Upload::wait`] returns the pinned memory. A [profiled](Device::profiled) device records the transfer when
    /// its handle is waited for.
    ///
    /// # Errors
    ///
    /// Same as [`Device::zeroed`], and [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the transfer does not start.
    /// The pinned memory is then freed, or leaked if the driver does not report the transfer's end.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let mut host = device.pinned::<u32>(1000)?;
    /// host.fill(2);
    /// let (x, upload) = device.upload_async(host)?;
    /// let total = device.reduce(&x, Sum)?; // runs after the transfer
    /// let host = upload.wait()?;
    /// assert_eq!((total, host.len()), (2000, 1000));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn upload_async<T: Pod>(&self, data: PinnedVec<T>) -> Result<(Buffer<T>, Upload<T>)> {
        let mut moving = Moving { transfer: None, host: ManuallyDrop::new(data), done: true };
        let (len, bytes) = (moving.host.len(), size_of_val(&moving.host[..]));
        let buffer = match self.backend() {
            Backend::Cpu => self.upload(&moving.host)?,
            Backend::OpenCl(device) => {
                let mem = device.allocate(bytes)?;
                if bytes > 0 {
                    let from = moving.host.address();
                    let transfer = moving.transfer.insert(device.transfer());
                    // SAFETY: `moving` owns the elements, gives access to them only after the end, and never frees them before.
                    if let Err(error) = unsafe { transfer.upload(&mem, from, bytes) } {
                        return Err(moving.failed(error));
                    }
                }
                Buffer::new(self, Storage::Cl(mem), len)
            }
        };
        Ok((buffer, Upload { moving }))
    }
}

/// # Asynchronous transfers
///
/// These methods start a download that the host does not wait for.
impl<T: Pod> Buffer<T> {
    /// Starts to copy the elements to `out`, which must have the buffer's length; waits for nothing.
    ///
    /// The transfer runs on a queue of its own, after the earlier commands of the buffer's device, and beside later
    /// ones. As long as the handle lives, later commands may read the buffer but not write it. [`Download::wait`]
    /// returns the elements. [`Device::finish`] and the markers of `interop` do not wait for the transfer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `out` has another length, and
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the transfer does not start. The pinned memory is then freed,
    /// or leaked if the driver does not report the transfer's end.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.scan(&[1u32, 2, 3], Sum)?;
    /// let download = x.read_async(device.pinned(3)?)?; // runs after the scan
    /// assert_eq!(device.reduce(&x, Sum)?, 10);
    /// assert_eq!(download.wait()?[..], [1, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    ///
    /// The buffer cannot be written meanwhile:
    ///
    /// ```compile_fail,E0502
    /// let device = oclprim::Device::cpu();
    /// let mut x = device.upload(&[1u8, 2, 3])?;
    /// let download = x.read_async(device.pinned(3)?)?;
    /// x.fill(7)?;
    /// download.wait()?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn read_async(&self, out: PinnedVec<T>) -> Result<Download<'_, T>> {
        View::from(self).read_async(out)
    }

    /// [`read_async`](Self::read_async) of a buffer that is not used any more: the handle owns it. So loops can keep handles of
    /// several batches.
    ///
    /// # Errors
    ///
    /// Same as [`Buffer::read_async`].
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let mut downloads = Vec::new();
    /// for batch in [[1u32, 2, 3], [4, 5, 6]] {
    ///     downloads.push(device.scan(&batch, Sum)?.into_read_async(device.pinned(3)?)?);
    /// }
    /// assert_eq!(downloads.pop().unwrap().wait()?[..], [4, 9, 15]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn into_read_async(self, out: PinnedVec<T>) -> Result<Download<'static, T>> {
        let moving = View::from(&self).start_reading(out)?;
        Ok(Download { moving, _reading: None, _owned: Some(self) })
    }
}

/// # Asynchronous transfers
///
/// This method starts a download that the host does not wait for.
impl<'a, T: Pod> View<'a, T> {
    /// Starts to copy the elements of the range to `out`; see [`Buffer::read_async`].
    ///
    /// # Errors
    ///
    /// Same as [`Buffer::read_async`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3])?;
    /// assert_eq!(x.view(1..)?.read_async(device.pinned(2)?)?.wait()?[..], [2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn read_async(&self, out: PinnedVec<T>) -> Result<Download<'a, T>> {
        let reading = match &self.buffer.storage {
            Storage::Host(_) => None,
            Storage::Cl(_) => {
                self.buffer.allow(false)?;
                self.buffer.mappings.start(false);
                Some(Reading(&self.buffer.mappings))
            }
        };
        // After an error, this waits for the transfer before `reading` is dropped.
        Ok(Download { moving: self.start_reading(out)?, _reading: reading, _owned: None })
    }

    /// Starts the transfer. The caller keeps commands from writing the buffer until it is done.
    fn start_reading(&self, out: PinnedVec<T>) -> Result<Moving<T>> {
        if out.len() != self.len {
            return Err(Error::invalid(format!("reading {} elements into a slice of {}", self.len, out.len())));
        }
        let mut moving = Moving { transfer: None, host: ManuallyDrop::new(out), done: true };
        match &self.buffer.storage {
            Storage::Host(_) => self.read(&mut moving.host)?,
            Storage::Cl(_) if size_of_val(&moving.host[..]) == 0 => {}
            Storage::Cl(mem) => {
                self.buffer.allow(false)?;
                let (offset, bytes) = (byte_len::<T>(self.offset)?, size_of_val(&moving.host[..]));
                let to = moving.host.address();
                let transfer = moving.transfer.insert(self.buffer.cl().transfer());
                // SAFETY: `moving` owns the elements, gives access to them only after the end, and never frees them before. The
                // caller keeps commands from writing the buffer.
                if let Err(error) = unsafe { transfer.download(mem, offset, to, bytes) } {
                    return Err(moving.failed(error));
                }
            }
        }
        Ok(moving)
    }
}
