//! Device memory that bins hold, so that calls with the same bins share it.

use std::sync::{Mutex, PoisonError};

use crate::{
    Result,
    runtime::opencl::{ClDevice, ClMem},
};

/// Edges and their table in the memory of the device that used them last.
#[derive(Default)]
pub(crate) struct Held(Mutex<Option<HeldMem>>);

#[derive(Clone)]
pub(super) struct HeldMem {
    device: ClDevice,
    pub(super) edges: ClMem,
    pub(super) guide: ClMem,
}

impl Held {
    /// The edges and their table in the memory of `device`. If another device used them last, `write` writes them
    /// first.
    pub(super) fn get(&self, device: &ClDevice, write: impl FnOnce() -> Result<(ClMem, ClMem)>) -> Result<HeldMem> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.as_ref().filter(|found| found.device.same_context(device)) {
            return Ok(found.clone());
        }
        let (edges, guide) = write()?;
        let found = HeldMem { device: device.clone(), edges, guide };
        *held = Some(found.clone());
        Ok(found)
    }
}
