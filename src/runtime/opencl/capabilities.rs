//! A device's capabilities, from its self-test or assumed.

use std::{any::Any, sync::Arc};

use super::{Capabilities, ClDevice, Queue, Transfers, cl, lock, selftest};
use crate::Result;

impl ClDevice {
    /// The capabilities that the handle assumes, else those from the self-test, which runs at first use.
    pub fn capabilities(&self) -> Result<Arc<Capabilities>> {
        Ok(self.assumed.as_ref().map_or_else(|| self.probed(), Ok)?.clone())
    }

    /// The capabilities from the self-test.
    pub(crate) fn probed(&self) -> Result<&Arc<Capabilities>> {
        let shared = &self.shared;
        if let Some(caps) = shared.capabilities.get() {
            return Ok(caps);
        }
        let _probing = lock(&shared.probing);
        if let Some(caps) = shared.capabilities.get() {
            return Ok(caps);
        }
        // The self-test gets a new queue, since errors kept on the user's queue do not concern it.
        let queue = Queue::new(shared, cl::create_queue(self.context(), self.id(), false)?, false, false);
        let caps = selftest::run(&Self { queue: Arc::new(queue), ..self.clone() })?;
        Ok(shared.capabilities.get_or_init(|| Arc::new(caps)))
    }

    /// Local memory that a launch may use: the assumed size, else the self-test's result, else the size that the self-test
    /// will try.
    pub(super) fn local_limit(&self) -> usize {
        let known = self.assumed.as_ref().or_else(|| self.shared.capabilities.get());
        known.map_or(self.shared.local_tried, |caps| caps.local_bytes)
    }

    /// Returns whether the self-test has found that the device is a checker; false until it has finished. Oclgrind
    /// keeps a size for each address: the size of the host's last write, fill or copy there. A new buffer at this
    /// address does not change the size. Oclgrind loses what kernels write beyond this size, and reports kernels that
    /// read there.
    pub(super) fn checker(&self) -> bool {
        self.shared.capabilities.get().is_some_and(|caps| caps.checker)
    }

    /// Returns whether kernels over `n` elements use 64-bit offsets.
    #[doc(hidden)]
    pub fn wide(&self, n: usize) -> bool {
        self.wide_offsets || n >= 1 << 31
    }

    /// A handle of the same device that assumes these capabilities. `wide_offsets` means 64-bit offsets at every size.
    /// `carried` is the value that the handle [carries](Self::carried).
    pub(crate) fn assuming(&self, caps: Capabilities, wide_offsets: bool, carried: impl Any + Send + Sync) -> Self {
        let carried: Box<dyn Any + Send + Sync> = Box::new(carried);
        let (carried, transfers) = (Arc::new(carried.into()), Arc::default());
        Self { assumed: Some(Arc::new(caps)), wide_offsets, carried, transfers, ..self.clone() }
    }

    /// The parameters for a transfer of `bytes` bytes by the handle and its clones: those that a higher layer chose,
    /// else the defaults.
    pub(super) fn transfers(&self, bytes: usize) -> Transfers {
        self.transfers.get().map_or_else(Transfers::default, |choose| choose(bytes))
    }

    /// Sets, once, the function that chooses these parameters for a number of bytes. A transfer must not run the
    /// self-test, so until the device is tested, transfers use the defaults.
    pub(crate) fn choose_transfers(&self, choose: impl Fn(usize) -> Transfers + Send + Sync + 'static) {
        self.transfers.get_or_init(|| Box::new(choose));
    }

    /// The value that a higher layer keeps with the handle and its clones, at first `T::default()`. All callers name one type.
    pub(crate) fn carried<T: Any + Default + Send + Sync>(&self) -> &T {
        let value = self.carried.get_or_init(|| Box::new(T::default()));
        value.downcast_ref().expect("all callers name one type")
    }
}
