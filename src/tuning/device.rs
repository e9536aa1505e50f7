//! The tuning of a device, and the choices that follow from it.

use std::sync::{Arc, OnceLock};

use super::{Primitive, Tuning, choice::Choice};
use crate::{
    Device, Error, ErrorKind, Result,
    runtime::{Backend, Capabilities, opencl::ClDevice},
};

/// A tuning, and the resulting choices for the device: the extension of a [`ClDevice`].
#[derive(Default)]
struct Tuned {
    tuning: Tuning,
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
        let Tuned { tuning, choices } = self.extension();
        choices.get_or_init(|| tuning.choices(self.info(), caps))
    }

    /// The same device with another tuning.
    fn with_tuning(&self, tuning: Tuning) -> Result<Self> {
        let mut caps = Capabilities::clone(self.probed()?);
        tuning.apply(&mut caps)?;
        Ok(self.assuming(caps, tuning.wide_offsets, Tuned { tuning, ..Tuned::default() }))
    }

    /// The same device with other assumed capabilities, and without choices.
    #[cfg(test)]
    pub(crate) fn with_capabilities(&self, caps: Capabilities) -> Self {
        self.assuming(caps, false, Tuned { choices: Vec::new().into(), ..Tuned::default() })
    }
}

/// # Tuning
///
/// [`Tuning`] overrides the parameters that the crate chooses for a device.
impl Device {
    /// Returns a handle of the same device with another tuning, which applies to the new handle and its clones. No
    /// effect on the CPU backend.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the device lacks a requested capability, [`ErrorKind::InvalidInput`] for an
    /// unknown parameter, or a value outside a parameter's allowed set.
    ///
    /// ```
    /// use oclprim::{Device, Tuning, op::Sum};
    ///
    /// let small = Device::best()?.with_tuning(Tuning::default().local_bytes(16 << 10))?;
    /// assert_eq!(small.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_tuning(&self, tuning: Tuning) -> Result<Self> {
        match self.backend() {
            Backend::Cpu => Ok(self.clone()),
            Backend::OpenCl(device) => Ok(Self::from_cl(device.with_tuning(tuning)?)),
        }
    }

    /// The number of tuned choices that apply to this device; 0 for the CPU backend.
    ///
    /// A choice is a row of the [tuning file](super::TuningFile) for the device and its driver, or a value of
    /// [`Tuning::set`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::capabilities`].
    ///
    /// ```
    /// use oclprim::{Device, Tuning};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().without_file())?;
    /// assert_eq!(device.tuned()?, 0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn tuned(&self) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            Backend::OpenCl(device) => Ok(device.choices(&*device.capabilities()?).len()),
        }
    }
}
