//! Transfers of host slices through pinned memory.
//!
//! A driver copies a slice to pinned memory of its own with one thread, at a ninth to a quarter of the link's speed. So
//! larger slices go through a ring of pinned chunks: threads copy some chunks while the device moves others.

use std::{
    collections::VecDeque,
    error::Error as _,
    mem::MaybeUninit,
    ops::Range,
    sync::{Mutex, OnceLock},
};

use super::{
    ClDevice, CommandQueue, Event, Mem, cl,
    copiers::{Copying, LARGE_PAGE, PAGE},
    lock,
    pinned::Pinned,
    transfer::Direction,
};
use crate::{
    ErrorKind, Result,
    runtime::info::{MOST_PARTS, TransferFault, Transfers},
    sys::pages::LARGE,
};

/// Rings of one device: enough for one upload and one download at the same time. A transfer that finds none left is
/// made by the driver alone.
const MOST_RINGS: usize = 2;
/// Minimum bytes of every chunk but the last: in a smaller chunk, the fixed cost of a command matters. Chunks and
/// pieces are multiples of a page.
const LEAST_CHUNK: usize = 256 << 10;
/// Bytes of a piece that one thread copies.
const LEAST_PIECE: usize = 64 << 10;
const MOST_PIECE: usize = 1 << 20;

/// The rings that a device keeps for later transfers.
#[derive(Default)]
pub(super) struct Staging {
    rings: Mutex<Rings>,
    /// The queue that maps pinned memory: a map waits for all earlier commands of its queue.
    queue: OnceLock<CommandQueue>,
}

#[derive(Default)]
struct Rings {
    idle: Vec<Pinned>,
    /// Number of rings, idle or lent.
    count: usize,
}

impl Staging {
    /// The queue that maps pinned memory.
    pub(super) fn queue(&self, device: &ClDevice) -> Result<&CommandQueue> {
        if let Some(queue) = self.queue.get() {
            return Ok(queue);
        }
        let queue = cl::create_queue(device.context(), device.id(), false)?;
        Ok(self.queue.get_or_init(|| queue))
    }

    /// Releases the rings that no transfer uses.
    pub(super) fn clear(&self) {
        let idle = {
            let mut rings = lock(&self.rings);
            rings.count -= rings.idle.len();
            std::mem::take(&mut rings.idle)
        };
        drop(idle);
    }

    /// A ring of at least `bytes` bytes. `None` if all are lent, or the driver has no pinned memory: the driver then
    /// makes the transfer alone.
    fn lend<'d>(&'d self, device: &ClDevice, bytes: usize, fault: Option<TransferFault>) -> Option<Lent<'d>> {
        let idle = {
            let mut rings = lock(&self.rings);
            let idle = rings.idle.pop();
            if idle.is_none() && rings.count == MOST_RINGS {
                return None;
            }
            rings.count += usize::from(idle.is_none());
            idle
        };
        // From here on, the ring counts until `lent` is dropped.
        let mut lent = Lent { staging: self, ring: idle };
        if lent.ring.as_ref().is_none_or(|ring| ring.bytes() < bytes || fault.is_some()) {
            lent.ring = None;
            lent.ring = Some(Pinned::new(self.queue(device).ok()?, device.context(), bytes, fault).ok()?);
        }
        Some(lent)
    }
}

/// A ring during a transfer.
struct Lent<'d> {
    staging: &'d Staging,
    ring: Option<Pinned>,
}

impl Lent<'_> {
    fn ring(&self) -> &Pinned {
        self.ring.as_ref().expect("it is taken by a drop alone")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut rings = lock(&self.staging.rings);
        match self.ring.take() {
            Some(ring) => rings.idle.push(ring),
            None => rings.count -= 1,
        }
    }
}

/// A transfer's commands that may be running. Dropping it waits for them; before that, the ring must not be used again.
struct Running<'a, 'd> {
    device: &'a ClDevice,
    /// The queue of the commands.
    queue: &'a CommandQueue,
    lent: &'a mut Lent<'d>,
    events: VecDeque<Event>,
    /// True if each command has an event here, or is known to be done.
    sound: bool,
}

impl<'a, 'd> Running<'a, 'd> {
    /// Runs a transfer, and waits for all of its commands.
    fn run(
        device: &'a ClDevice,
        queue: &'a CommandQueue,
        lent: &'a mut Lent<'d>,
        transfer: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut running = Self { device, queue, lent, events: VecDeque::new(), sound: true };
        let result = transfer(&mut running);
        match (result, running.settle()) {
            // The queue's error may be that of an earlier command, so it must not be lost.
            (Err(error), Err(queue)) => Err(error.with_source(queue)),
            (result, settled) => result.and(settled),
        }
    }

    /// Waits until no command uses the ring. An error may be that of an earlier command of the queue.
    fn settle(&mut self) -> Result<()> {
        if self.sound && self.events.is_empty() {
            return Ok(());
        }
        let finished = cl::finish(self.queue).inspect_err(|_| self.device.forget());
        let done = finished.is_ok() || cl::finish(self.queue).is_ok();
        let ring = self.lent.ring.take();
        if !done {
            // The device is lost. Its commands may still use the ring, so the ring is never released.
            std::mem::forget(ring);
        }
        self.events.clear();
        self.sound = true;
        finished
    }

    /// Waits for the oldest command.
    fn wait(&mut self) -> Result<()> {
        let Some(event) = self.events.pop_front() else { return Ok(()) };
        self.sound = false;
        cl::wait(&event)?;
        self.sound = true;
        Ok(())
    }

    /// Enqueues a command that uses the ring, and starts it.
    fn push(&mut self, enqueue: impl FnOnce(&CommandQueue, *mut u8) -> Result<Event>) -> Result<()> {
        // A driver may fail after it has enqueued the command.
        self.sound = false;
        let event = enqueue(self.queue, self.lent.ring().address().as_ptr())?;
        self.events.push_back(event);
        cl::flush(self.queue)?;
        self.sound = true;
        Ok(())
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        // Commands remain only after a panic.
        if let Err(error) = self.settle() {
            self.device.owe(error);
        }
    }
}

/// The division of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plan {
    /// Maximum bytes of a chunk.
    chunk: usize,
    /// Chunks of the ring.
    slots: usize,
    /// Maximum number of chunks in each of the two stages, copies and commands. A transfer with a full stage waits for
    /// the oldest chunk in it.
    stage: usize,
    /// Bytes that a thread copies at once.
    piece: usize,
    threads: usize,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Up,
    /// `new` memory was not written before: the system provides a page when a thread first writes to it.
    Down {
        new: bool,
    },
}

impl Plan {
    fn new(bytes: usize, transfers: &Transfers, way: Way) -> Self {
        let threads = transfers.threads.max(1);
        let (chunks, most) = limits(transfers);
        if way == (Way::Down { new: true }) && bytes >= LARGE && most >= LARGE_PAGE {
            // One thread writes all of a large page. Several threads that first write to the same page would wait for
            // each other, or clear it twice. Chunks are short, so that every thread soon has a page.
            let chunk = (2 * LARGE_PAGE).min(most / LARGE_PAGE * LARGE_PAGE);
            let slots = (chunks * most / chunk).min(bytes.div_ceil(chunk) + 1);
            return Self { chunk, slots, stage: slots, piece: LARGE_PAGE, threads };
        }
        // A short transfer has short chunks, so that its copies and its commands overlap.
        let chunk = (bytes / (2 * chunks)).next_multiple_of(PAGE).max(LEAST_CHUNK).min(most);
        let piece = (chunk / threads).clamp(LEAST_PIECE, MOST_PIECE).next_multiple_of(PAGE);
        // A download enqueues all of its commands early if the ring has room for all chunks.
        let slots = if way == Way::Up { chunks } else { chunks * most / chunk }.min(bytes.div_ceil(chunk)).max(1);
        Self { chunk, slots, stage: (slots / 2).max(1), piece, threads }
    }

    /// Bytes of the next chunk at `to`, where `rest` bytes are left. If pieces are large pages, each chunk but the last
    /// ends with a page.
    fn next(&self, to: *const u8, rest: usize) -> usize {
        let into = if self.piece == LARGE_PAGE { to as usize % LARGE_PAGE } else { 0 };
        (self.chunk - into).min(rest)
    }

    /// Bytes of the ring: rounded up, so that a ring serves transfers of similar lengths.
    fn ring_bytes(&self, transfers: &Transfers) -> usize {
        let (chunks, most) = limits(transfers);
        (self.slots * self.chunk).next_power_of_two().min(chunks * most)
    }
}

/// Maximum number of full chunks in a ring, and maximum bytes of a chunk.
fn limits(transfers: &Transfers) -> (usize, usize) {
    (transfers.chunks.max(1), transfers.chunk_bytes.max(PAGE))
}

impl ClDevice {
    /// Returns whether a transfer of pageable memory uses staging buffers.
    fn stages(&self, host: *const u8, bytes: usize, least: usize, transfers: &Transfers) -> bool {
        // If host and device share memory, staging only adds a copy.
        bytes >= least
            && (self.shared.own_memory || transfers.always)
            && !self.checker()
            && !self.is_pinned(host, bytes)
    }

    /// The plan of a staged transfer of `bytes` bytes at `host`, and its ring. `None` if the driver makes the transfer
    /// alone, as it does below `least` bytes.
    fn staged(
        &self,
        host: *const u8,
        bytes: usize,
        least: usize,
        transfers: &Transfers,
        way: Way,
    ) -> Option<(Plan, Lent<'_>)> {
        if !self.stages(host, bytes, least, transfers) {
            return None;
        }
        let plan = Plan::new(bytes, transfers, way);
        let lent = self.shared.staging.lend(self, plan.ring_bytes(transfers), transfers.fault)?;
        Some((plan, lent))
    }

    /// Writes `data`, after all earlier commands; waits for it.
    pub(super) fn send(&self, mem: &Mem, offset: usize, data: &[u8]) -> Result<()> {
        let transfers = self.transfers(data.len());
        let Some((plan, lent)) = self.staged(data.as_ptr(), data.len(), transfers.min_bytes, &transfers, Way::Up)
        else {
            return cl::write(self.queue(), mem, offset, data);
        };
        self.send_chunks((plan, lent), &transfers, (self.queue(), None), (mem, offset), data, &mut |_, _| Ok(()))
    }

    /// Returns whether [`write_in_parts`](Self::write_in_parts) would write `data` in several parts.
    pub(crate) fn has_parts(&self, data: &[u8]) -> bool {
        let (transfers, bytes) = (self.transfers(data.len()), data.len());
        bytes / 2 >= transfers.part_bytes && self.stages(data.as_ptr(), bytes, transfers.min_bytes, &transfers)
    }

    /// Writes `data` to memory, after all earlier commands, and waits for the writes. Meanwhile it calls `launch` with
    /// consecutive ranges of bytes that cover `data`. Each range but the last ends at a multiple of `unit`. The
    /// commands that `launch` enqueues run after the writes of their range. There are at most [`MOST_PARTS`] ranges.
    pub(crate) fn write_in_parts(
        &self,
        mem: &Mem,
        data: &[u8],
        unit: usize,
        launch: &mut dyn FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut launched = 0;
        let result = self.send_in_parts(mem, data, unit, &mut |end| launch(std::mem::replace(&mut launched, end)..end));
        match result {
            Ok(true) => return self.overdue(),
            Ok(false) => {}
            // As in `with_memory`: before the first launch, all commands can be repeated.
            Err(error) => {
                self.give_up_scratch(&error);
                self.forget();
                if launched > 0 || error.kind() != ErrorKind::OutOfMemory || error.source().is_some() {
                    return Err(error);
                }
            }
        }
        self.write(mem, 0, data)?;
        launch(0..data.len())
    }

    /// [`write_in_parts`](Self::write_in_parts) on a queue of its own. `launch` gets the end of each range. Returns
    /// false if the driver transfers in its own way; nothing was enqueued then.
    fn send_in_parts(
        &self,
        mem: &Mem,
        data: &[u8],
        unit: usize,
        launch: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<bool> {
        let (transfers, bytes) = (self.transfers(data.len()), data.len());
        let Some(lent) = self.staged(data.as_ptr(), bytes, transfers.min_bytes, &transfers, Way::Up) else {
            return Ok(false);
        };
        let queue = self.transfer_queue(Direction::InParts)?;
        // Earlier commands of the main queue may use the memory, which can be scratch.
        let earlier = cl::barrier(self.queue(), &[])?;
        self.flush()?;
        let part = transfers.part_bytes.max(bytes.div_ceil(MOST_PARTS));
        let mut launched = 0;
        self.send_chunks(lent, &transfers, (queue, Some(&earlier)), (mem, 0), data, &mut |sent, event| {
            let end = if sent == bytes { sent } else { sent / unit * unit };
            if sent < bytes && end - launched < part {
                return Ok(());
            }
            launched = end;
            cl::barrier(self.queue(), &[event.as_ptr()])?;
            launch(end)?;
            self.flush()
        })?;
        Ok(true)
    }

    /// Writes `data` in chunks on a queue, after an event if there is one; waits for it. Calls `on_sent` whenever a write was
    /// enqueued, with the bytes that were sent so far and the event of the write.
    fn send_chunks(
        &self,
        (plan, mut lent): (Plan, Lent<'_>),
        transfers: &Transfers,
        (queue, after): (&CommandQueue, Option<&Event>),
        (mem, offset): (&Mem, usize),
        data: &[u8],
        on_sent: &mut dyn FnMut(usize, &Event) -> Result<()>,
    ) -> Result<()> {
        let chunks: Vec<&[u8]> = data.chunks(plan.chunk).collect();
        let slot = |chunk: usize| chunk % plan.slots * plan.chunk;
        let base = lent.ring().address().as_ptr();
        Running::run(self, queue, &mut lent, |running| {
            let mut copying = copying(&plan, transfers, false);
            // The numbers of chunks whose copies were added, that were sent, and that have arrived.
            let (mut added, mut sent, mut arrived) = (0, 0, 0);
            while sent < chunks.len() {
                while added < chunks.len() && added - arrived < plan.slots {
                    let from = chunks[added];
                    // SAFETY: `from` is a part of `data`, and outlives `copying`. The slot has `plan.chunk` bytes of the
                    // ring, which outlives `copying`, and no command uses it: the chunk that used the slot before has
                    // arrived.
                    unsafe { copying.add(from.as_ptr(), base.wrapping_add(slot(added)), from.len(), plan.piece) };
                    added += 1;
                }
                copying.wait(sent);
                lost(transfers, sent)?;
                let bytes = chunks[sent].len();
                let (start, after) = (sent * plan.chunk, after.filter(|_| sent == 0).map(Event::as_ptr));
                // SAFETY: the slot has the chunk's bytes, and nothing writes them until the event has completed.
                running.push(|queue, base| unsafe {
                    cl::enqueue_write(
                        queue,
                        mem,
                        offset + start,
                        base.wrapping_add(slot(sent)),
                        bytes,
                        after.as_slice(),
                    )
                })?;
                sent += 1;
                on_sent(start + bytes, running.events.back().expect("the write was pushed"))?;
                if added < chunks.len() && sent - arrived >= plan.stage {
                    running.wait()?;
                    arrived += 1;
                }
            }
            while arrived < sent {
                running.wait()?;
                arrived += 1;
            }
            Ok(())
        })
    }

    /// Reads into `out` after all earlier commands, and waits for the result. `new` is true if nothing was written to
    /// `out` before.
    pub(super) fn receive(&self, mem: &Mem, offset: usize, out: &mut [MaybeUninit<u8>], new: bool) -> Result<()> {
        let transfers = self.transfers(out.len());
        let host = out.as_ptr().cast();
        let Some((plan, mut lent)) =
            self.staged(host, out.len(), transfers.min_read_bytes, &transfers, Way::Down { new })
        else {
            return cl::read(self.queue(), mem, offset, out);
        };
        // Offsets in the buffer and destinations of the chunks whose copies were not added yet.
        let mut chunks = VecDeque::new();
        let (mut start, mut rest) = (offset, out);
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at_mut(plan.next(rest.as_ptr().cast(), rest.len()));
            let bytes = chunk.len();
            chunks.push_back((start, chunk));
            (start, rest) = (start + bytes, later);
        }
        let count = chunks.len();
        let slot = |chunk: usize| chunk % plan.slots * plan.chunk;
        let base = lent.ring().address().as_ptr();
        Running::run(self, self.queue(), &mut lent, |running| {
            let mut copying = copying(&plan, &transfers, new);
            // The numbers of chunks whose commands were enqueued, whose copies were added, and that were copied.
            let (mut asked, mut added, mut copied) = (0, 0, 0);
            while copied < count {
                while asked < count && asked - copied < plan.slots {
                    lost(&transfers, asked)?;
                    let (start, bytes) = (chunks[asked - added].0, chunks[asked - added].1.len());
                    // SAFETY: the slot has `plan.chunk` bytes, and nothing uses them until the event has completed: the
                    // chunk that used the slot before was copied.
                    running.push(|queue, base| unsafe {
                        cl::enqueue_read(queue, mem, start, base.wrapping_add(slot(asked)), bytes, &[])
                    })?;
                    asked += 1;
                }
                if added < asked && added - copied < plan.stage {
                    running.wait()?;
                    let (_, to) = chunks.pop_front().expect("one for each chunk");
                    // SAFETY: `to` is a part of `out`, and outlives `copying`. The command has filled the slot, and no other
                    // command uses it before this copy is done.
                    unsafe {
                        copying.add(base.wrapping_add(slot(added)), to.as_mut_ptr().cast(), to.len(), plan.piece)
                    };
                    added += 1;
                } else {
                    copying.wait(copied);
                    copied += 1;
                }
                while copied < added && copying.is_complete(copied) {
                    copying.wait(copied);
                    copied += 1;
                }
            }
            Ok(())
        })
    }
}

fn copying<'m>(plan: &Plan, transfers: &Transfers, new: bool) -> Copying<'m> {
    let copying = Copying::new(plan.threads, new);
    if transfers.fault == Some(TransferFault::Panic) { copying.panicking() } else { copying }
}

/// The fault of a device that is lost during a transfer.
fn lost(transfers: &Transfers, chunk: usize) -> Result<()> {
    if transfers.fault == Some(TransferFault::Lost) && chunk == 1 {
        return Err(cl::failure(ocl::ffi::CL_DEVICE_NOT_AVAILABLE, "a transfer, as a test wants,"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSFERS: [(usize, usize); 5] = [(1, 1), (2, 2), (3, 5), (4, 16), (8, 32)];

    #[test]
    fn a_plan_covers_the_transfer_and_fits_its_ring() {
        for chunk_bytes in [256 << 10, 1 << 20, 3 << 20, 16 << 20, 64 << 20] {
            for (chunks, threads) in TRANSFERS {
                let transfers = Transfers { chunk_bytes, chunks, threads, ..Transfers::default() };
                for bytes in [1, 4096, 1 << 20, (1 << 20) + 1, 77_777_777, 1 << 30, 1 << 32] {
                    for way in [Way::Up, Way::Down { new: false }, Way::Down { new: true }] {
                        let plan = Plan::new(bytes, &transfers, way);
                        let what = format!("{way:?} of {bytes} bytes, {transfers:?}: {plan:?}");
                        assert!(plan.chunk.is_multiple_of(PAGE) && plan.chunk <= chunk_bytes, "{what}");
                        assert!((1..=plan.slots).contains(&plan.stage) && plan.piece >= LEAST_PIECE, "{what}");
                        let ring = plan.ring_bytes(&transfers);
                        assert!((plan.slots * plan.chunk..=chunks * chunk_bytes).contains(&ring), "{what}: {ring}");
                    }
                }
            }
        }
    }

    /// No large page is divided between two chunks, wherever the memory begins.
    #[test]
    fn chunks_of_new_memory_end_with_large_pages() {
        for (chunks, threads) in TRANSFERS {
            for chunk_bytes in [2 << 20, 3 << 20, 16 << 20] {
                let transfers = Transfers { chunk_bytes, chunks, threads, ..Transfers::default() };
                for (address, bytes) in
                    [(16, LARGE), (LARGE_PAGE, LARGE), (LARGE_PAGE - 1, 77_777_777), (4096, 1 << 28)]
                {
                    let plan = Plan::new(bytes, &transfers, Way::Down { new: true });
                    let (mut at, end) = (address, address + bytes);
                    while at < end {
                        let len = plan.next(std::ptr::without_provenance(at), end - at);
                        assert!((1..=plan.chunk).contains(&len), "{plan:?}: {len} bytes at {at}");
                        at += len;
                        assert!(at == end || at.is_multiple_of(LARGE_PAGE), "{plan:?}: a chunk ends at {at}");
                    }
                    assert_eq!(at, end);
                }
            }
        }
    }
}
