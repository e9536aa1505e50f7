//! A device's queue: the order of commands, their events, and errors that a later call returns.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use ocl::ffi;

use super::{
    ClDevice, CommandQueue, Event, EventSlot, Kept, Mem, Pool, Recorded, Shared, Timing, cl, lock, transfer::Direction,
};
use crate::{Error, Result};

/// One queue, with the scratch buffers that the order of its commands protects.
pub(crate) struct Queue {
    queue: CommandQueue,
    /// True if the queue is the user's and out of order: each command then needs a barrier.
    pub(super) unordered: bool,
    pub(super) pool: Arc<Mutex<Pool<Mem>>>,
    /// Number of buffers that the device has allocated through this queue, for tests.
    pub(super) allocations: AtomicUsize,
    /// The queues of transfers that run beside this queue, by direction.
    transfers: [OnceLock<CommandQueue>; 3],
    /// See [`ClDevice::kept`].
    pub(super) kept: Mutex<BTreeMap<&'static str, Kept>>,
    /// See [`ClDevice::owe`].
    failed: Mutex<Option<Error>>,
    /// Set on profiling queues.
    recorder: Option<Mutex<Recorder>>,
}

/// Events of commands, and the number of commands.
#[derive(Default)]
struct Recorder {
    what: Recorded,
    commands: usize,
    events: Vec<(&'static str, Event)>,
}

impl Recorder {
    fn wants(&self) -> bool {
        match self.what {
            Recorded::All => true,
            Recorded::Ends(commands) => self.commands == 0 || self.commands + 1 >= commands,
            Recorded::None => false,
        }
    }
}

impl Queue {
    pub(super) fn new(shared: &Shared, queue: CommandQueue, unordered: bool, profiling: bool) -> Self {
        let pool = Arc::new(Mutex::new(Pool::new(shared.info.global_bytes)));
        let mut pools = lock(&shared.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        let recorder = profiling.then(Mutex::default);
        let (transfers, kept, failed) = (Default::default(), Mutex::default(), Mutex::default());
        Self { queue, unordered, pool, allocations: AtomicUsize::new(0), transfers, kept, failed, recorder }
    }
}

impl ClDevice {
    /// Makes later commands wait for a user's `events`.
    pub(crate) fn wait_for(&self, events: &[Event]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        for (i, event) in events.iter().enumerate() {
            if cl::event_number(event, ffi::CL_EVENT_CONTEXT)? != Some(self.context().as_ptr() as u64) {
                let message = format!("event {i} of {} belongs to another context than {}", events.len(), self.info());
                return Err(Error::invalid(message));
            }
            // On some drivers an event never completes if its queue was not flushed; a user event has no queue.
            if let Some(queue) = cl::event_number(event, ffi::CL_EVENT_COMMAND_QUEUE)?.filter(|&queue| queue != 0) {
                // SAFETY: the event holds its queue as long as it lives.
                cl::flush(&unsafe { CommandQueue::from_raw_copied_ptr(queue as usize as _) }?)?;
            }
        }
        let events: Vec<_> = events.iter().map(Event::as_ptr).collect();
        cl::barrier(self.queue(), &events)?;
        self.flush()
    }

    pub(crate) fn queue(&self) -> &CommandQueue {
        &self.queue.queue
    }

    /// The queue of transfers in one direction, made at first use.
    pub(super) fn transfer_queue(&self, direction: Direction) -> Result<&CommandQueue> {
        let slot = &self.queue.transfers[direction as usize];
        if let Some(queue) = slot.get() {
            return Ok(queue);
        }
        let queue = cl::create_queue(self.context(), self.id(), self.queue.recorder.is_some())?;
        Ok(slot.get_or_init(|| queue))
    }

    /// Returns whether both devices share a queue, so that their commands run in one order.
    pub(crate) fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// The same device with a queue that records the time of each command.
    pub(crate) fn profiled(&self) -> Result<Self> {
        self.finish()?;
        self.with_queue(true)
    }

    /// The same device with its own queue. A profiled queue records the time of each command.
    pub(crate) fn with_queue(&self, profiled: bool) -> Result<Self> {
        let queue = Queue::new(&self.shared, cl::create_queue(self.context(), self.id(), profiled)?, false, profiled);
        Ok(Self { queue: Arc::new(queue), ..self.clone() })
    }

    /// Storage for the next command's event, which only a profiled device keeps.
    pub(super) fn event_slot(&self) -> EventSlot {
        EventSlot::new(self.queue.recorder.as_ref().is_some_and(|recorder| lock(recorder).wants()))
    }

    pub(super) fn record(&self, name: &'static str, slot: EventSlot) -> Result<()> {
        if let Some(recorder) = &self.queue.recorder {
            let mut recorder = lock(recorder);
            recorder.commands += 1;
            recorder.events.extend(slot.take().map(|event| (name, event)));
        }
        self.settle()
    }

    /// Records a transfer that is done, if a profiled device records all commands.
    pub(super) fn record_transfer(&self, name: &'static str, event: Event) {
        if let Some(recorder) = &self.queue.recorder {
            let mut recorder = lock(recorder);
            if matches!(recorder.what, Recorded::All) {
                recorder.events.push((name, event));
            }
        }
    }

    /// Selects the commands that a profiled device records from now on.
    pub fn record_only(&self, what: Recorded) {
        if let Some(recorder) = &self.queue.recorder {
            *lock(recorder) = Recorder { what, ..Recorder::default() };
        }
    }

    /// Number of commands since the last [`record_only`](Self::record_only), recorded or not.
    pub fn commands(&self) -> usize {
        self.queue.recorder.as_ref().map_or(0, |recorder| lock(recorder).commands)
    }

    /// Number of buffers that were allocated through this queue.
    pub(crate) fn allocations(&self) -> usize {
        self.queue.allocations.load(Ordering::Relaxed)
    }

    /// On an out-of-order queue, orders later commands after all earlier ones.
    pub(super) fn settle(&self) -> Result<()> {
        if !self.queue.unordered {
            return Ok(());
        }
        cl::barrier(self.queue(), &[]).map(drop).inspect_err(|_| {
            self.forget();
            // The command still runs, and its buffers are about to be released.
            if let Err(error) = cl::finish(self.queue()) {
                self.owe(error);
            }
        })
    }

    /// The times of the commands since the last call, on a profiled device; waits for them.
    pub fn take_timings(&self) -> Result<Vec<Timing>> {
        self.finish()?;
        let Some(recorder) = &self.queue.recorder else { return Ok(Vec::new()) };
        let events = std::mem::take(&mut lock(recorder).events);
        let times = events.into_iter().map(|(name, event)| {
            // A broken clock may run backwards; a time is never negative.
            cl::profile(&event).map(|(start, end)| Timing { name, start, end: end.max(start) })
        });
        times.collect()
    }

    /// Drops the memory that launches share, since a failed launch may have left any value in it.
    pub(super) fn forget(&self) {
        lock(&self.queue.kept).clear();
    }

    pub(crate) fn flush(&self) -> Result<()> {
        cl::flush(self.queue())
    }

    pub(crate) fn finish(&self) -> Result<()> {
        cl::finish(self.queue()).inspect_err(|_| self.forget())?;
        self.overdue()
    }

    /// Keeps an error of code that cannot return it, such as a drop. The next call that waits on this queue returns the
    /// error. If there are several errors, the first one is kept.
    pub(crate) fn owe(&self, error: Error) {
        lock(&self.queue.failed).get_or_insert(error);
    }

    /// Returns the kept error, once.
    pub(crate) fn overdue(&self) -> Result<()> {
        lock(&self.queue.failed).take().map_or(Ok(()), Err)
    }

    /// An event that completes after all earlier commands. Returns overdue errors first, because a user who only waits for
    /// the event makes no later call that would return them.
    pub(crate) fn marker(&self) -> Result<Event> {
        self.overdue()?;
        let event = cl::barrier(self.queue(), &[])?;
        self.flush()?;
        Ok(event)
    }
}
