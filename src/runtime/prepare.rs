//! Kernels that are built in the background ([`Device::prepare`]).

use std::{
    panic,
    thread::{self, JoinHandle},
};

use super::Device;
use crate::{Error, ErrorKind, Result};

/// Calls that run in the background, from [`Device::prepare`].
///
/// Dropping a preparation waits for its calls, and loses their result or panic. Without the wait, a thread could be in
/// the driver when `main` returns.
///
/// ```
/// use oclprim::{Device, op::Sum};
///
/// let preparation = Device::best()?.prepare(|device| device.reduce(&[1.0f32, 2.0], Sum).map(drop))?;
/// preparation.wait()?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a dropped preparation waits for its calls"]
pub struct Preparation {
    thread: Option<JoinHandle<Result<()>>>,
}

impl Preparation {
    /// True if the calls have returned.
    ///
    /// ```
    /// let preparation = oclprim::Device::cpu().prepare(|_| Ok(()))?;
    /// assert!(preparation.is_finished());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the calls, and returns their result.
    ///
    /// # Errors
    ///
    /// The error that the calls returned, or [`ErrorKind::Driver`] if one of their commands failed.
    ///
    /// # Panics
    ///
    /// Panics if the calls panicked.
    ///
    /// ```
    /// oclprim::Device::cpu().prepare(|_| Ok(()))?.wait()?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn wait(mut self) -> Result<()> {
        let result = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        result.unwrap_or_else(|fault| panic::resume_unwind(fault))
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        // A drop cannot return an error. A later call that needs the kernel returns the error of its build; other
        // errors are lost.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// # First calls
///
/// The first call of an operation builds its kernels.
impl Device {
    /// Builds kernels in the background, ahead of the calls that need them.
    ///
    /// The first call of an operation builds its kernels, which takes from 0.1 s to more than a second. Later processes
    /// load them from a cache on disk in milliseconds. `calls` makes such first calls on another thread, with a handle
    /// of this device that has a queue of its own. Kernels depend on element types, operators, options and the size
    /// class of the input. So make the application's own calls, with inputs of about the same length.
    ///
    /// The CPU backend has no kernels, so `calls` does not run there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`] if the driver cannot create a queue, [`ErrorKind::OutOfMemory`] if the system cannot start
    /// a thread.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let preparation = device.prepare(|device| {
    ///     let keys = device.zeroed::<u32>(100_000)?;
    ///     device.sort(&keys, Order::ascending()).map(drop)
    /// })?;
    /// // ... the application loads its data ...
    /// preparation.wait()?;
    /// assert_eq!(device.sort(&[3u32, 1, 2], Order::ascending())?.to_vec()?, [1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn prepare(&self, calls: impl FnOnce(&Device) -> Result<()> + Send + 'static) -> Result<Preparation> {
        if self.is_cpu() {
            return Ok(Preparation { thread: None });
        }
        let beside = self.beside()?;
        let thread = thread::Builder::new().name("oclprim-prepare".into()).spawn(move || {
            let result = calls(&beside);
            result.and(beside.finish())
        });
        let thread =
            thread.map_err(|error| Error::new(ErrorKind::OutOfMemory, format!("a thread did not start: {error}")))?;
        Ok(Preparation { thread: Some(thread) })
    }
}
