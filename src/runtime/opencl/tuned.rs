//! A device's capabilities, from its self-test and its tuning.

use std::sync::{Arc, OnceLock};

use super::{Capabilities, ClDevice, Queue, cl, lock, selftest};
use crate::{
    Error, ErrorKind, Result,
    tuning::{Primitive, Tuning, choice::Choice},
};

/// A tuning, and the resulting capabilities and choices for the device.
#[derive(Default)]
pub(super) struct Tuned {
    tuning: Tuning,
    capabilities: OnceLock<Arc<Capabilities>>,
    choices: OnceLock<Vec<Choice>>,
}

/// Maximum elements of a plan. A plan needs fewer than 2^15 bytes for each element, so its sizes do not overflow.
const MOST_ELEMENTS: usize = 1 << 48;

/// Refuses numbers of elements for which scratch sizes could overflow; no memory is that large.
fn plannable(n: usize) -> Result<()> {
    if n <= MOST_ELEMENTS {
        return Ok(());
    }
    let message = format!("{n} elements are more than a device's memory can have, {MOST_ELEMENTS} at most");
    Err(Error::new(ErrorKind::OutOfMemory, message))
}

impl ClDevice {
    #[doc(hidden)]
    pub fn tuning(&self) -> &Tuning {
        &self.tuned.tuning
    }

    /// The capabilities from the self-test with the tuning applied; the self-test runs at first use.
    pub fn capabilities(&self) -> Result<Arc<Capabilities>> {
        if let Some(caps) = self.tuned.capabilities.get() {
            return Ok(caps.clone());
        }
        let mut caps = self.probed()?.clone();
        self.tuned.tuning.apply(&mut caps)?;
        Ok(self.tuned.capabilities.get_or_init(|| Arc::new(caps)).clone())
    }

    /// The capabilities with the choice for a primitive on `n` elements of `element_bytes` bytes. Refuses an `n` for which a
    /// plan's sizes could overflow.
    pub(crate) fn capabilities_for(
        &self,
        primitive: Primitive,
        element_bytes: usize,
        n: usize,
    ) -> Result<Arc<Capabilities>> {
        plannable(n)?;
        let (caps, bytes) = (self.capabilities()?, n.saturating_mul(element_bytes));
        let choice = self.choices(&caps).iter().find(|choice| choice.is_for(primitive, element_bytes, bytes));
        Ok(choice.map_or(caps, |choice| choice.caps.clone()))
    }

    /// The capabilities for all choices of a primitive. Callers compute bounds that hold for inputs of every size.
    pub(crate) fn all_capabilities_for(&self, primitive: Primitive) -> Result<Vec<Arc<Capabilities>>> {
        let caps = self.capabilities()?;
        let chosen = self.choices(&caps).iter().filter(|choice| choice.of(primitive));
        let mut all: Vec<_> = chosen.map(|choice| choice.caps.clone()).collect();
        all.push(caps);
        Ok(all)
    }

    /// The most bytes that a plan for `n` elements takes with any choice for the primitive.
    pub(crate) fn most_of(
        &self,
        primitive: Primitive,
        n: usize,
        bytes: impl Fn(&Capabilities) -> Result<usize>,
    ) -> Result<usize> {
        plannable(n)?;
        self.all_capabilities_for(primitive)?.iter().try_fold(0, |most, caps| Ok(bytes(caps)?.max(most)))
    }

    fn choices(&self, caps: &Capabilities) -> &[Choice] {
        self.tuned.choices.get_or_init(|| self.tuned.tuning.choices(self.info(), caps))
    }

    /// Number of choices for single primitives.
    pub(crate) fn choice_count(&self) -> Result<usize> {
        Ok(self.choices(&*self.capabilities()?).len())
    }

    pub(super) fn probed(&self) -> Result<&Capabilities> {
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
        Ok(shared.capabilities.get_or_init(|| caps))
    }

    /// Local memory that a launch may use: the tuned limit, else the self-test's result, else the size that the self-test will
    /// try.
    pub(super) fn local_limit(&self) -> usize {
        let found = || self.shared.capabilities.get().map_or(self.shared.local_tried, |caps| caps.local_bytes);
        self.tuned.capabilities.get().map_or_else(found, |caps| caps.local_bytes)
    }

    /// Returns whether the device is a checker. Oclgrind takes the size of the host's last write, fill or copy at an address as
    /// the size of the memory there. It does so even if a new buffer has that address. It loses writes of kernels beyond that
    /// size, and reports kernels that read there.
    pub(super) fn checker(&self) -> bool {
        self.shared.capabilities.get().is_some_and(|caps| caps.checker)
    }

    /// The same device with another tuning.
    pub(crate) fn with_tuning(&self, tuning: Tuning) -> Self {
        Self { tuned: Arc::new(Tuned { tuning, ..Tuned::default() }), ..self.clone() }
    }

    /// The same device with other assumed capabilities.
    #[cfg(test)]
    pub(crate) fn with_capabilities(&self, caps: Capabilities) -> Self {
        let tuned =
            Tuned { tuning: Tuning::default(), capabilities: Arc::new(caps).into(), choices: Vec::new().into() };
        Self { tuned: Arc::new(tuned), ..self.clone() }
    }
}
