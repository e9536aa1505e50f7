//! Transfers that run beside the commands of the main queue.

use super::{ClDevice, CommandQueue, Event, Mem, cl};
use crate::{Error, Result};

/// The queues of transfers, one for each direction, so that both directions of the link work at once.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
    /// To a device in parts, after the commands of the main queue. An asynchronous upload does not wait for these.
    InParts,
}

/// A transfer that may be running; a new one has not started. Its owner waits for it, or never frees the host memory
/// that it uses.
pub(crate) struct Transfer {
    device: ClDevice,
    /// The command and its direction, once it was enqueued.
    started: Option<(&'static str, Direction)>,
    /// `None` if the command is done, or the driver enqueued it without an event.
    event: Option<Event>,
}

impl ClDevice {
    /// A transfer of this device, not started yet.
    pub(crate) fn transfer(&self) -> Transfer {
        Transfer { device: self.clone(), started: None, event: None }
    }
}

impl Transfer {
    /// Enqueues a write of `bytes` bytes to new memory, on a queue of its own. Later commands of the main queue wait for it.
    ///
    /// # Safety
    ///
    /// `from` points to `bytes` bytes, at least one, that nothing writes until [`wait`](Self::wait) has returned true. The
    /// same holds after an error.
    pub(crate) unsafe fn upload(&mut self, mem: &Mem, from: *const u8, bytes: usize) -> Result<()> {
        let device = self.device.clone();
        if device.checker() {
            // SAFETY: the caller promises it.
            return device.write(mem, 0, unsafe { std::slice::from_raw_parts(from, bytes) });
        }
        let queue = device.transfer_queue(Direction::ToDevice)?;
        let enqueue = || {
            // SAFETY: the caller promises it.
            unsafe { cl::enqueue_write(queue, mem, 0, from, bytes, &[]) }
        };
        self.start(("clEnqueueWriteBuffer", Direction::ToDevice), queue, enqueue)?;
        if let Some(event) = &self.event {
            cl::barrier(device.queue(), &[event.as_ptr()])?;
        }
        Ok(())
    }

    /// Enqueues a read of `bytes` bytes, on a queue of its own, after all earlier commands of the main queue.
    ///
    /// # Safety
    ///
    /// `to` points to `bytes` bytes, at least one, that nothing else uses until [`wait`](Self::wait) has returned true. The
    /// same holds after an error. Until then, no command writes the memory.
    pub(crate) unsafe fn download(&mut self, mem: &Mem, offset: usize, to: *mut u8, bytes: usize) -> Result<()> {
        let device = self.device.clone();
        if device.checker() {
            // SAFETY: the caller promises it.
            return device.read(mem, offset, unsafe { std::slice::from_raw_parts_mut(to, bytes) });
        }
        let queue = device.transfer_queue(Direction::ToHost)?;
        let earlier = cl::barrier(device.queue(), &[])?;
        // A driver may never start a command that waits for a queue that was not flushed.
        device.flush()?;
        let enqueue = || {
            // SAFETY: the caller promises it.
            unsafe { cl::enqueue_read(queue, mem, offset, to, bytes, &[earlier.as_ptr()]) }
        };
        self.start(("clEnqueueReadBuffer", Direction::ToHost), queue, enqueue)
    }

    /// Enqueues the command. A driver may return an error after it has enqueued the command, so the transfer counts as
    /// started even then.
    fn start(
        &mut self,
        what: (&'static str, Direction),
        queue: &CommandQueue,
        enqueue: impl FnOnce() -> Result<Event>,
    ) -> Result<()> {
        self.started = Some(what);
        self.event = Some(enqueue()?);
        cl::flush(queue)
    }

    /// Returns whether the transfer is done, without waiting. An error means that the driver does not report it.
    pub(crate) fn is_done(&self) -> Result<bool> {
        let Some(event) = &self.event else { return Ok(self.started.is_none()) };
        cl::is_done(event)
    }

    /// Waits for all transfers of this direction, and returns whether they are done.
    fn drain(&self, direction: Direction) -> bool {
        let queue = self.device.transfer_queue(direction);
        queue.is_ok_and(|queue| (0..2).any(|_| cl::finish(queue).is_ok()))
    }

    /// Waits until the transfer is done. The flag is false if the driver does not report whether the transfer still runs.
    pub(crate) fn wait(&mut self) -> (Result<()>, bool) {
        let Some((name, direction)) = self.started else { return (Ok(()), true) };
        let result = self.event.as_ref().map_or(Ok(()), cl::wait).inspect_err(|_| self.device.forget());
        let waited = self.event.is_some() && result.is_ok();
        let done = waited || self.event.is_some() && self.is_done().unwrap_or(false) || self.drain(direction);
        if let Some(event) = self.event.take_if(|_| done) {
            self.started = None;
            // The event of a failed command has no timestamps.
            if result.is_ok() {
                self.device.record_transfer(name, event);
            }
        }
        (result, done)
    }

    /// Returns an overdue error of earlier commands, once. When a download is done, these commands are done, too.
    pub(crate) fn overdue(&self) -> Result<()> {
        self.device.overdue()
    }

    /// Keeps an error that [`wait`](Self::wait) returned, for the next call that waits on the device.
    pub(crate) fn owe(&self, error: Error) {
        self.device.owe(error);
    }
}
