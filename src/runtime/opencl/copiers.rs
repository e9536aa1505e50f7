//! Threads that copy host memory, kept between transfers.
//!
//! One thread copies at about a fifth of a link's speed. The threads are not rayon's: the user's tasks may occupy those
//! for any time. All transfers of the process share the threads; each transfer also copies on the thread that waits for
//! it.

use std::{
    any::Any,
    collections::VecDeque,
    marker::PhantomData,
    panic::{self, AssertUnwindSafe},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::sys::lines::Stream;
use crate::threads;

/// Bytes of the system's smallest page, and of a large one.
pub(super) const PAGE: usize = 4 << 10;
pub(super) const LARGE_PAGE: usize = 2 << 20;
/// Bytes of one copy to new memory. With so few bytes, the C library's copy does not bypass the caches.
const CACHED: usize = 64 << 10;

/// The copies of all transfers in this process, and the threads that make them.
static COPIERS: Copiers = Copiers {
    state: Mutex::new(State { jobs: Vec::new(), threads: 0, next: 0, turn: 0, idle: 0 }),
    work: Condvar::new(),
    done: Condvar::new(),
};

struct Copiers {
    state: Mutex<State>,
    /// A piece can be taken.
    work: Condvar,
    /// The last piece of a chunk, or the last running piece of a job, is done.
    done: Condvar,
}

struct State {
    jobs: Vec<Job>,
    /// Number of kept threads.
    threads: usize,
    /// The id of the next job.
    next: u64,
    /// Selects the job whose piece is taken next.
    turn: usize,
    /// Number of kept threads that wait for a piece.
    idle: usize,
}

/// The copies of one transfer.
struct Job {
    id: u64,
    /// Chunks that are not complete, and complete ones after them.
    chunks: VecDeque<Chunk>,
    /// Number of the first of `chunks`.
    first: usize,
    /// Number of pieces that are being copied.
    running: usize,
    /// Maximum of `running`.
    threads: usize,
    /// True if the copies go to new memory. These copies do not bypass the caches, because the caches hold the pages
    /// that the system has just cleared.
    new: bool,
    panic: Option<Box<dyn Any + Send>>,
    /// Fault injection: each piece panics.
    panics: bool,
}

/// A range to copy, in pieces.
#[derive(Clone, Copy)]
struct Chunk {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    /// Each piece but the last ends at an address that is a multiple of this.
    piece: usize,
    /// The first byte that no thread has taken.
    next: usize,
    /// Number of pieces that are not done.
    left: usize,
}

/// A part of a chunk that a thread has taken.
struct Piece {
    job: u64,
    chunk: usize,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    new: bool,
    /// Fault injection: each piece panics.
    panics: bool,
}

// SAFETY: as for `Piece`.
unsafe impl Send for Chunk {}
// SAFETY: `Copying::add` promises that both ranges outlive the job, and that no other code writes them meanwhile.
unsafe impl Send for Piece {}

impl Job {
    /// Takes the next piece, if there is one and the job may have another thread.
    fn take(&mut self) -> Option<Piece> {
        if self.running >= self.threads || self.panic.is_some() {
            return None;
        }
        let at = self.chunks.iter().position(|chunk| chunk.next < chunk.bytes)?;
        let chunk = &mut self.chunks[at];
        let (start, to) = (chunk.next, chunk.to.wrapping_add(chunk.next));
        let bytes = (chunk.piece - to as usize % chunk.piece).min(chunk.bytes - start);
        chunk.next += bytes;
        self.running += 1;
        Some(Piece {
            job: self.id,
            chunk: self.first + at,
            from: chunk.from.wrapping_add(start),
            to,
            bytes,
            new: self.new,
            panics: self.panics,
        })
    }

    fn is_complete(&self, chunk: usize) -> bool {
        chunk.checked_sub(self.first).is_none_or(|at| self.chunks.get(at).is_some_and(|chunk| chunk.left == 0))
    }
}

impl State {
    fn job(&mut self, id: u64) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.id == id)
    }

    /// A piece of any job; jobs take turns.
    fn take(&mut self) -> Option<Piece> {
        let count = self.jobs.len();
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn;
        (0..count).find_map(|at| self.jobs[(first % count + at) % count].take())
    }
}

fn state() -> MutexGuard<'static, State> {
    COPIERS.state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Piece {
    /// Copies the piece, and marks it as done.
    fn run(self) -> MutexGuard<'static, State> {
        let copy = || {
            assert!(!self.panics, "the panic that a test provokes");
            if self.new {
                for at in (0..self.bytes).step_by(CACHED) {
                    // SAFETY: `Copying::add` promises that both ranges are valid until the job ends, and do not overlap. No
                    // other piece has these bytes, and the job ends after its last piece.
                    unsafe { self.to.add(at).copy_from_nonoverlapping(self.from.add(at), CACHED.min(self.bytes - at)) };
                }
            } else {
                // SAFETY: as above.
                let from = unsafe { std::slice::from_raw_parts(self.from, self.bytes) };
                // SAFETY: as above.
                Stream::new().copy(unsafe { std::slice::from_raw_parts_mut(self.to, self.bytes) }, from);
            }
        };
        let result = panic::catch_unwind(AssertUnwindSafe(copy));
        let mut state = state();
        if let Some(job) = state.job(self.job) {
            job.running -= 1;
            let at = self.chunk - job.first;
            job.chunks[at].left -= 1;
            let done = job.chunks[at].left == 0 || job.running == 0 || result.is_err();
            if let Err(panic) = result {
                job.panic.get_or_insert(panic);
            }
            if done {
                COPIERS.done.notify_all();
            }
        }
        state
    }
}

/// Copies pieces as long as the process runs.
fn copy_for_ever() {
    let mut held = state();
    loop {
        match held.take() {
            Some(piece) => {
                drop(held);
                held = piece.run();
            }
            None => {
                held.idle += 1;
                held = COPIERS.work.wait(held).unwrap_or_else(PoisonError::into_inner);
                held.idle -= 1;
            }
        }
    }
}

/// Starts kept threads until there are `most`, or until the system grants no more.
fn start(most: usize) {
    while state().threads < most && threads::start_named("oclprim-copy", copy_for_ever) {
        state().threads += 1;
    }
}

/// The copies of one transfer, in chunks that are copied in order. Dropping it ends them: chunks that are not complete
/// then have unspecified contents.
pub(super) struct Copying<'m> {
    id: u64,
    added: usize,
    /// The memory that the chunks lie in.
    memory: PhantomData<&'m mut [u8]>,
}

impl Copying<'_> {
    /// Copies on `threads` threads, of which the calling thread is one. `new` is true if nothing was written to the
    /// memory before.
    pub(super) fn new(threads: usize, new: bool) -> Self {
        let threads = threads.max(1);
        start(threads - 1);
        let mut state = state();
        let id = state.next;
        state.next += 1;
        state.jobs.push(Job {
            id,
            chunks: VecDeque::new(),
            first: 0,
            running: 0,
            threads,
            new,
            panic: None,
            panics: false,
        });
        Self { id, added: 0, memory: PhantomData }
    }

    /// Fault injection: each later piece panics.
    pub(super) fn panicking(self) -> Self {
        state().job(self.id).expect("it lives as long as `self`").panics = true;
        self
    }

    /// Adds a chunk of `bytes` bytes. Threads copy it in pieces. Each piece but the last ends at an address of the
    /// destination that is a multiple of `piece`.
    ///
    /// # Safety
    ///
    /// `from` and `to` have `bytes` bytes each, which do not overlap. The following holds until [`wait`](Self::wait)
    /// has returned for the chunk, or `self` was dropped. Both ranges stay valid, nothing writes the range at `from`,
    /// and nothing else reads or writes the range at `to`.
    pub(super) unsafe fn add(&mut self, from: *const u8, to: *mut u8, bytes: usize, piece: usize) {
        let piece = piece.max(1);
        let mut state = state();
        let job = state.job(self.id).expect("it lives as long as `self`");
        // Complete chunks at the front are not needed any more.
        while job.chunks.front().is_some_and(|chunk| chunk.left == 0) {
            job.chunks.pop_front();
            job.first += 1;
        }
        let pieces = if bytes == 0 { 0 } else { (to as usize % piece + bytes).div_ceil(piece) };
        job.chunks.push_back(Chunk { from, to, bytes, piece, next: 0, left: pieces });
        self.added += 1;
        // Waking a thread costs microseconds, so this wakes at most one thread for each piece.
        (0..pieces.min(state.idle)).for_each(|_| COPIERS.work.notify_one());
    }

    /// Returns whether chunk number `chunk` is complete, counted from 0 in the order of [`add`](Self::add). After a
    /// panic every chunk counts as complete; [`wait`](Self::wait) then resumes the panic.
    pub(super) fn is_complete(&self, chunk: usize) -> bool {
        let mut state = state();
        let job = state.job(self.id).expect("it lives as long as `self`");
        job.panic.is_some() || job.is_complete(chunk)
    }

    /// Copies pieces, and waits, until chunk number `chunk` is complete, counted from 0 in the order of
    /// [`add`](Self::add).
    ///
    /// # Panics
    ///
    /// Panics if a thread panicked while it copied a piece of this transfer.
    pub(super) fn wait(&self, chunk: usize) {
        debug_assert!(chunk < self.added);
        let mut held = state();
        loop {
            let job = held.job(self.id).expect("it lives as long as `self`");
            if let Some(panic) = job.panic.take() {
                drop(held);
                panic::resume_unwind(panic);
            }
            if job.is_complete(chunk) {
                return;
            }
            held = match job.take() {
                Some(piece) => {
                    drop(held);
                    piece.run()
                }
                None => COPIERS.done.wait(held).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        let mut held = state();
        if let Some(job) = held.job(self.id) {
            // No thread takes a piece of the job any more.
            job.threads = 0;
        }
        while held.job(self.id).is_some_and(|job| job.running > 0) {
            held = COPIERS.done.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.jobs.retain(|job| job.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Bytes of an input; Miri takes a thousand times as long.
    const BYTES: usize = if cfg!(miri) { 3000 } else { 3_000_001 };

    fn bytes(seed: usize) -> Vec<u8> {
        (0..BYTES).map(|i| (i * 31 + seed) as u8 ^ (i >> 8) as u8).collect()
    }

    /// Copies `from` in chunks and pieces of odd lengths, a few chunks at a time.
    fn copied(from: &[u8], threads: usize, new: bool, chunk: usize, piece: usize) -> Vec<u8> {
        let mut to = vec![0xA5; from.len() + 1];
        let (parts, _) = to.split_at_mut(from.len());
        let mut copying = Copying::new(threads, new);
        for (i, (part, to)) in from.chunks(chunk).zip(parts.chunks_mut(chunk)).enumerate() {
            // SAFETY: each chunk is another part of both vectors, which live until the last wait.
            unsafe { copying.add(part.as_ptr(), to.as_mut_ptr(), part.len(), piece) };
            if i >= 2 {
                copying.wait(i - 2);
            }
        }
        (0..from.len().div_ceil(chunk)).rev().for_each(|chunk| copying.wait(chunk));
        drop(copying);
        assert_eq!(to.pop(), Some(0xA5));
        to
    }

    #[test]
    fn every_byte_is_copied_once() {
        let from = bytes(0);
        for (threads, chunk, piece) in [(1, BYTES, BYTES), (2, 1 << 16, 4097), (4, 100_003, 1 << 12), (7, 77_777, 64)] {
            let (chunk, piece) = if cfg!(miri) { (chunk % 1000 + 1, piece % 300 + 1) } else { (chunk, piece) };
            for new in [false, true] {
                assert!(
                    copied(&from, threads, new, chunk, piece) == from,
                    "{threads} threads, {new}, {chunk}, {piece}"
                );
            }
        }
    }

    #[test]
    fn transfers_of_several_threads_do_not_mix() {
        thread::scope(|scope| {
            for seed in 0..if cfg!(miri) { 2 } else { 8 } {
                scope.spawn(move || {
                    let from = bytes(seed);
                    for _ in 0..if cfg!(miri) { 1 } else { 10 } {
                        assert!(copied(&from, 3, seed % 2 == 1, BYTES / 5, BYTES / 41) == from);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_in_a_copying_thread_reaches_the_caller_and_ends_the_copies() {
        let from = bytes(0);
        for threads in [1, 4] {
            let mut to = vec![0; BYTES];
            let call = AssertUnwindSafe(|| {
                let mut copying = Copying::new(threads, true).panicking();
                // SAFETY: both vectors outlive `copying`.
                unsafe { copying.add(from.as_ptr(), to.as_mut_ptr(), BYTES, BYTES / 100) };
                copying.wait(0);
            });
            assert!(panic::catch_unwind(call).is_err());
            assert!(to.iter().all(|&byte| byte == 0), "a piece was copied, although every piece panics");
        }
        assert!(copied(&from, 4, false, BYTES / 3, BYTES / 50) == from, "the threads live on");
    }

    #[test]
    fn copies_end_when_they_are_dropped() {
        let from = bytes(0);
        for round in 0..20 {
            let mut to = vec![0; BYTES];
            let mut copying = Copying::new(4, round % 2 == 1);
            // Each thread gets a large piece. So a copy that continues after the drop takes longer than the comparison of
            // its first bytes.
            // SAFETY: both vectors outlive `copying`.
            unsafe { copying.add(from.as_ptr(), to.as_mut_ptr(), BYTES, BYTES / 4) };
            let head = BYTES / 4 - to.as_ptr() as usize % (BYTES / 4);
            // In some rounds the threads have begun, in others not.
            let spins = if cfg!(miri) { 3 } else { 1000 * round };
            (0..spins).for_each(|_| std::hint::spin_loop());
            drop(copying);
            // A piece is copied from start to end. Its first bytes show that it has begun, and its last bytes that it
            // is done.
            let ends = (0..=4).map(|piece| (head + piece * (BYTES / 4)).min(BYTES));
            let mut start = 0;
            let pieces: Vec<_> = ends.map(|end| std::mem::replace(&mut start, end)..end).collect();
            assert_eq!(start, BYTES);
            let equal = |at: usize| to[at..][..64] == from[at..][..64];
            let begun: Vec<_> = pieces.iter().filter(|piece| piece.len() >= 64 && equal(piece.start)).collect();
            assert!(begun.iter().all(|piece| equal(piece.end - 64)), "a piece was not waited for");
        }
    }

    /// Threads start, wait for and drop transfers of all sizes, some of which panic.
    #[test]
    fn concurrent_transfers_of_all_sizes_are_complete() {
        let (threads, rounds) = if cfg!(miri) { (3, 4) } else { (8, 60) };
        thread::scope(|scope| {
            for seed in 0..threads {
                scope.spawn(move || {
                    let from = bytes(seed);
                    let mut random = 88_172_645_463_325_252u64 ^ (seed as u64) << 32;
                    let mut below = |n: usize| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        (random % n as u64) as usize
                    };
                    for _ in 0..rounds {
                        let most = if below(3) == 0 { BYTES } else { BYTES / 100 };
                        let (len, threads) = (1 + below(most), 1 + below(6));
                        let chunk = 1 + len / (1 + below(12));
                        let piece = 1 + chunk / (1 + below(40));
                        let mut to = vec![0xA5; len];
                        let chunks: Vec<_> = from[..len].chunks(chunk).zip(to.chunks_mut(chunk)).collect();
                        let count = chunks.len();
                        let waited = match below(4) {
                            0 => 0,
                            1 => below(count),
                            _ => count,
                        };
                        let (panics, new) = (below(8) == 0, below(2) == 0);
                        let call = AssertUnwindSafe(|| {
                            let copying = Copying::new(threads, new);
                            let mut copying = if panics { copying.panicking() } else { copying };
                            for (part, to) in chunks {
                                // SAFETY: each chunk is another part of both vectors, which outlive `copying`.
                                unsafe { copying.add(part.as_ptr(), to.as_mut_ptr(), part.len(), piece) };
                            }
                            (0..waited).for_each(|chunk| copying.wait(chunk));
                        });
                        let ended = panic::catch_unwind(call);
                        assert_eq!(ended.is_err(), panics && waited > 0);
                        // The contents of the other chunks are unspecified, but no thread writes them after this point.
                        let done = if panics { 0 } else { len.min(waited * chunk) };
                        assert!(to[..done] == from[..done]);
                        to.fill(0x5A);
                        assert!(to.iter().all(|&byte| byte == 0x5A), "a thread copies after the end");
                    }
                });
            }
        });
    }
}
