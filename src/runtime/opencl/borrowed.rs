//! Slices that drivers for CPUs read in place.

use std::{
    io::{self, Write},
    process,
};

use super::{ClDevice, DeviceType, Mem, cl};
use crate::Result;

/// Smaller slices are copied: a copy takes less time than the wait at the call's end.
const LEAST_BYTES: usize = 1 << 20;
/// The system protects memory by pages of at least this size, so the bytes of a page are readable if one of them is.
const PAGE: usize = 4096;

/// A buffer over a host slice, for the commands of one call. Dropping it waits for them.
pub(crate) struct Borrowed {
    device: ClDevice,
    mem: Mem,
}

impl Borrowed {
    pub(crate) fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Waits until the commands of the queue are done, since the memory may be freed next. If one way to wait fails,
    /// tries another. Returns the first error. Aborts the process if the driver cannot wait at all.
    fn wait(&self) -> Result<()> {
        let queue = self.device.queue();
        cl::finish(queue).inspect_err(|_| {
            self.device.forget();
            // If the driver refuses to wait for the queue, it may wait for an event.
            let by_event = || {
                let end = cl::barrier(queue, &[])?;
                self.device.flush()?;
                // After a failed command the wait may fail, too, although all commands have ended.
                cl::wait(&end).or_else(|error| if cl::is_done(&end).unwrap_or(false) { Ok(()) } else { Err(error) })
            };
            if let Err(error) = cl::finish(queue).or_else(|_| by_event()) {
                // A command may still read the slice, whose owner can free it as soon as this returns.
                let _ = writeln!(
                    io::stderr(),
                    "oclprim: abort: a command may still read a host slice, and the driver cannot wait for it: {error}"
                );
                process::abort();
            }
        })
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Err(error) = self.wait() {
            self.device.owe(error);
        }
    }
}

impl ClDevice {
    /// A buffer over `data`, and the offset of `data` in it; `None` if the driver has to copy. A driver for CPUs reads
    /// host memory in place only from addresses that are multiples of a number that it reports. So the buffer begins at
    /// the last such address that is not beyond the start of `data`. Elements have `size` bytes, and the offset is a
    /// multiple of `size`.
    ///
    /// # Safety
    ///
    /// The caller drops the result before `data` can be written or freed.
    pub(crate) unsafe fn borrow(&self, data: &[u8], size: usize) -> Option<(Borrowed, usize)> {
        let (align, shared) = (self.shared.base_align, &self.shared);
        let in_place = shared.info.ty == DeviceType::Cpu && align.is_power_of_two() && align <= PAGE;
        let transfers = self.transfers(data.len());
        if data.len() < LEAST_BYTES || !in_place || self.checker() || transfers.always || transfers.copied {
            return None;
        }
        let offset = data.as_ptr().addr() % align;
        let bytes = offset + data.len();
        let most = shared.info.max_allocation_bytes;
        if size == 0 || !offset.is_multiple_of(size) || most != 0 && bytes as u64 > most {
            return None;
        }
        // SAFETY: the bytes before `data` lie in the same page. No command reads them, and commands read `data` only until the
        // result is dropped.
        let mem = unsafe { cl::wrap(self.context(), data.as_ptr().wrapping_sub(offset), bytes) }.ok()?;
        Some((Borrowed { device: self.clone(), mem }, offset))
    }
}
