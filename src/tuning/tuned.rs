//! The facts and choices from which a plan is made.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use super::Stall;
use crate::runtime::Capabilities;

/// The capabilities of a device, and the values that a tuning chose for one primitive. Plans read both.
///
/// ```
/// use oclprim::tuning::Tuned;
///
/// let (_, small) = &Tuned::samples()[0];
/// assert_eq!(small.with(|facts| facts.compute_units = 3).compute_units, 3);
/// ```
#[derive(Clone, Debug)]
pub struct Tuned {
    pub(super) facts: Arc<Capabilities>,
    pub(super) chosen: BTreeMap<&'static str, usize>,
    pub(super) stall: Option<Stall>,
}

impl Deref for Tuned {
    type Target = Capabilities;

    fn deref(&self) -> &Capabilities {
        &self.facts
    }
}

impl From<Arc<Capabilities>> for Tuned {
    fn from(facts: Arc<Capabilities>) -> Self {
        Self { facts, chosen: BTreeMap::new(), stall: None }
    }
}

impl From<Capabilities> for Tuned {
    fn from(facts: Capabilities) -> Self {
        Arc::new(facts).into()
    }
}

impl Tuned {
    /// [`Capabilities::samples`] with the crate's defaults.
    pub fn samples() -> Vec<(&'static str, Self)> {
        Capabilities::samples().into_iter().map(|(name, caps)| (name, caps.into())).collect()
    }

    /// The same choices for a device with other capabilities.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Capabilities)) -> Self {
        let mut changed = self.clone();
        change(Arc::make_mut(&mut changed.facts));
        changed
    }

    /// The same device, for which the tuning also chose `value` for the parameter `name`.
    /// [`parameters`](super::parameters) lists a primitive's parameters.
    #[must_use]
    pub fn choosing(mut self, name: &'static str, value: usize) -> Self {
        self.chosen.insert(name, value);
        self
    }

    /// The same device, with status words that have a fault.
    #[must_use]
    pub fn stalled(self, stall: Option<Stall>) -> Self {
        Self { stall, ..self }
    }

    /// The value that the tuning chose for the parameter `name`, else `usual`. The caller limits the value to what the
    /// device allows.
    pub(crate) fn chosen(&self, name: &str, usual: usize) -> usize {
        self.chosen.get(name).copied().unwrap_or(usual)
    }

    /// The option of programs with status words that injects the fault of [`Tuning::stall`](super::Tuning::stall).
    pub(crate) fn fault(&self) -> Option<&'static str> {
        self.stall.map(|stall| match stall {
            Stall::Silent => "-DSTALL=1",
            Stall::Late => "-DSTALL=2",
        })
    }
}
