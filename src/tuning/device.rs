//! The tuning of a device, and the choices that follow from it.

use std::sync::{Arc, OnceLock};

use super::{Primitive, SizeClass, Tuned, Tuning, choice::Choice, transfer};
use crate::{
    Device, Error, ErrorKind, Result,
    runtime::{Backend, Capabilities, Transfers, opencl::ClDevice},
};

/// A tuning, and what follows from it for the device: the value that a [`ClDevice`] carries.
#[derive(Default)]
struct Carried {
    tuning: Tuning,
    choices: OnceLock<Choices>,
}

struct Choices {
    usual: Arc<Tuned>,
    chosen: Vec<Choice>,
}

/// Maximum elements of a plan. A plan needs fewer than 2^15 bytes for each element, so its sizes do not overflow.
const MOST_ELEMENTS: usize = 1 << 48;

/// Refuses numbers of elements for which scratch sizes could overflow; no memory is that large.
fn plannable(n: usize) -> Result<()> {
    if n <= MOST_ELEMENTS {
        return Ok(());
    }
    let message = format!("{n} elements are more than any device's memory holds; at most {MOST_ELEMENTS} are possible");
    Err(Error::new(ErrorKind::OutOfMemory, message))
}

impl ClDevice {
    /// The capabilities with the choice for a primitive on `n` elements of `element_bytes` bytes. Refuses an `n` for which a
    /// plan's sizes could overflow.
    pub(crate) fn capabilities_for(&self, primitive: Primitive, element_bytes: usize, n: usize) -> Result<Arc<Tuned>> {
        plannable(n)?;
        let (Choices { usual, chosen }, bytes) = (self.choices()?, n.saturating_mul(element_bytes));
        let choice = chosen.iter().find(|choice| choice.is_for(primitive, element_bytes, bytes));
        Ok(choice.map_or(usual, |choice| &choice.caps).clone())
    }

    fn choices(&self) -> Result<&Choices> {
        let Carried { tuning, choices } = self.carried();
        if let Some(known) = choices.get() {
            return Ok(known);
        }
        let usual = tuning.usual(self.capabilities()?);
        let chosen = tuning.choices(self.info(), &usual);
        let of_class = |class: SizeClass| {
            let choice = chosen.iter().find(|choice| choice.is_of(Primitive::Transfer, class));
            let chosen = transfer(choice.map_or(&usual, |choice| &choice.caps));
            let part_bytes = tuning.part_bytes.unwrap_or(chosen.part_bytes);
            let (always, copied, fault) = (tuning.staged, tuning.copied, tuning.transfer_fault);
            Transfers { part_bytes, always, copied, fault, ..chosen }
        };
        let by_class = SizeClass::ALL.map(of_class);
        self.choose_transfers(move |bytes| by_class[SizeClass::of(bytes) as usize]);
        Ok(choices.get_or_init(|| Choices { usual: usual.into(), chosen }))
    }

    /// The same device with another tuning.
    fn with_tuning(&self, tuning: Tuning) -> Result<Self> {
        let mut caps = Capabilities::clone(self.probed()?);
        tuning.apply(&mut caps)?;
        let tuned = self.assuming(caps, tuning.wide_offsets, Carried { tuning, ..Carried::default() });
        // Sets the choices of transfers before the first one.
        tuned.choices()?;
        Ok(tuned)
    }

    /// The same device with other assumed capabilities, and without choices.
    pub(crate) fn with_capabilities(&self, caps: Capabilities) -> Self {
        self.assuming(caps, false, Carried { tuning: Tuning::default().without_file(), ..Carried::default() })
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
        self.with_handle(|device| device.with_tuning(tuning))
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
            Backend::OpenCl(device) => Ok(device.choices()?.chosen.len()),
        }
    }
}
