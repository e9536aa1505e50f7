//! Pinned host memory, which a device reads and writes at the speed of its link.

use std::{
    collections::BTreeMap,
    ptr::NonNull,
    sync::{PoisonError, RwLock},
};

use super::{ClDevice, CommandQueue, Context, Mem, cl};
use crate::runtime::info::TransferFault;
use crate::{Error, ErrorKind, Result};

/// The users' pinned memory in this process: addresses, bytes and platforms. Slices in pinned memory need no staging on
/// any device of its platform, since memory pinned by one context is as fast for other contexts. Other drivers treat it
/// as ordinary memory.
static PINNED: RwLock<BTreeMap<usize, (usize, usize)>> = RwLock::new(BTreeMap::new());

/// Pinned memory that is mapped as long as it lives.
pub(crate) struct Pinned {
    queue: CommandQueue,
    mem: Mem,
    address: NonNull<u8>,
    bytes: usize,
    /// True if the memory is in [`PINNED`].
    listed: bool,
}

// SAFETY: the mapping is a range of bytes that its owner alone uses.
unsafe impl Send for Pinned {}
// SAFETY: as above; a shared reference gives the address alone.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// `bytes` bytes with unspecified contents. `queue` maps them, after all its earlier commands.
    pub(super) fn new(
        queue: &CommandQueue,
        context: &Context,
        bytes: usize,
        fault: Option<TransferFault>,
    ) -> Result<Self> {
        if fault == Some(TransferFault::NoPinnedMemory) {
            return Err(Error::new(ErrorKind::OutOfMemory, "no pinned memory, as a test wants"));
        }
        let mem = cl::create_pinned(context, bytes)?;
        if fault == Some(TransferFault::NoMapping) {
            return Err(Error::new(ErrorKind::Driver, "no mapping, as a test wants"));
        }
        let address = NonNull::new(cl::map(queue, &mem, 0, bytes, true)?.cast())
            .ok_or_else(|| Error::new(ErrorKind::Driver, format!("the driver maps {bytes} bytes at address 0")))?;
        Ok(Self { queue: queue.clone(), mem, address, bytes, listed: false })
    }

    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lists the memory as a user's, whose slices need no staging on the devices of `platform`.
    fn list(mut self, platform: usize) -> Self {
        let (start, range) = (self.address.addr().get(), (self.bytes, platform));
        PINNED.write().unwrap_or_else(PoisonError::into_inner).insert(start, range);
        self.listed = true;
        self
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.listed {
            PINNED.write().unwrap_or_else(PoisonError::into_inner).remove(&self.address.addr().get());
        }
        // After a failure the driver keeps the memory; no result depends on it.
        let _ = cl::unmap(&self.queue, &self.mem, self.address.as_ptr().cast());
        let _ = cl::flush(&self.queue);
    }
}

impl ClDevice {
    /// `bytes` bytes of pinned memory for a user, with unspecified contents; `None` if the device shares the host's
    /// memory, all of which is as fast.
    pub(crate) fn pin(&self, bytes: usize) -> Result<Option<Pinned>> {
        let transfers = self.transfers(bytes);
        if bytes == 0 || !(self.shared.own_memory || transfers.always) || self.checker() {
            return Ok(None);
        }
        let queue = self.shared.staging.queue(self)?;
        let pinned = self.with_memory(|| Pinned::new(queue, self.context(), bytes, transfers.fault))?;
        Ok(Some(pinned.list(self.shared.platform)))
    }

    /// Returns whether all of these bytes are memory that a user pinned on this device's platform.
    pub(super) fn is_pinned(&self, address: *const u8, bytes: usize) -> bool {
        let pinned = PINNED.read().unwrap_or_else(PoisonError::into_inner);
        let before = pinned.range(..=address.addr()).next_back();
        before.is_some_and(|(&start, &(all, platform))| {
            platform == self.shared.platform && address.addr() - start + bytes <= all
        })
    }
}
