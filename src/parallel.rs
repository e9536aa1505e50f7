//! Parallel loops over tasks, through rayon.
//!
//! Primitives call rayon only through this module. Rayon's own iterators are compiled for each body, type and operator,
//! and would take most of the crate's compile time. If rayon has no threads, the calling thread does all work.
//!
//! Lists of tasks and results grow with the input, so functions that allocate such a list can fail for lack of memory.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, AtomicUsize, Ordering, fence},
    },
};

use bytemuck::Pod;
use rayon::prelude::*;

use crate::{Error, Result, memory, threads};

/// Up to this many elements, threads cost more time than they save if each element needs little work.
pub(crate) const SERIAL: usize = 1 << 15;

/// Number of threads that share the tasks.
pub fn threads() -> usize {
    if threads::ready() { rayon::current_num_threads() } else { 1 }
}

/// Splits `0..n` into at most two parts per thread. Each part but the last has at least `least` elements.
pub(crate) fn parts(n: usize, least: usize) -> Vec<Range<usize>> {
    let part = n.div_ceil(2 * threads()).max(least);
    (0..n).step_by(part).map(|first| first..n.min(first + part)).collect()
}

/// The first error that a task returned.
#[derive(Default)]
struct Failure(Mutex<Option<Error>>);

impl Failure {
    /// Returns the value of `result`, or keeps its error if no earlier error is kept.
    fn keep<R>(&self, result: Result<R>) -> Option<R> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        }
    }

    fn result(self) -> Result<()> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Runs `body` for each of `0..tasks`. A panic in `body` reaches the caller.
pub(crate) fn for_each(tasks: usize, body: &(dyn Fn(usize) + Sync)) {
    if tasks <= 1 || !threads::ready() {
        return (0..tasks).for_each(body);
    }
    (0..tasks).into_par_iter().with_max_len(1).for_each(body);
}

/// The results of `body` for each of `0..tasks`, in order.
pub(crate) fn map<R: Send + Sync>(tasks: usize, body: &(dyn Fn(usize) -> R + Sync)) -> Result<Vec<R>> {
    try_map(tasks, &|i| Ok(body(i)))
}

/// [`map`] for a `body` that can fail.
pub(crate) fn try_map<R: Send + Sync>(tasks: usize, body: &(dyn Fn(usize) -> Result<R> + Sync)) -> Result<Vec<R>> {
    let mut results = memory::with_capacity(tasks)?;
    results.resize_with(tasks, OnceLock::new);
    let failure = Failure::default();
    for_each(tasks, &|i| {
        if let Some(result) = failure.keep(body(i)) {
            results[i].get_or_init(|| result);
        }
    });
    failure.result()?;
    let mut all = memory::with_capacity(tasks)?;
    for result in results {
        all.push(result.into_inner().expect("each task ran"));
    }
    Ok(all)
}

/// Passes each of `items` to `body`.
pub(crate) fn consume<I: Send>(items: impl ExactSizeIterator<Item = I>, body: &(dyn Fn(I) + Sync)) -> Result<()> {
    try_consume(items, &|item| {
        body(item);
        Ok(())
    })
}

/// [`consume`] for a `body` that can fail.
pub(crate) fn try_consume<I: Send>(
    items: impl ExactSizeIterator<Item = I>,
    body: &(dyn Fn(I) -> Result<()> + Sync),
) -> Result<()> {
    let mut tasks = memory::with_capacity(items.len())?;
    for item in items {
        tasks.push(Mutex::new(Some(item)));
    }
    let failure = Failure::default();
    for_each(tasks.len(), &|i| {
        if let Some(item) = tasks[i].lock().unwrap_or_else(PoisonError::into_inner).take() {
            failure.keep(body(item));
        }
    });
    failure.result()
}

/// Calls `body(i, chunk)` for each chunk `i` of `len` elements; the last chunk may be shorter. No list of tasks is
/// allocated.
pub fn chunks_mut<T: Pod>(data: &mut [T], len: usize, body: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let bytes = len * size_of::<T>();
    byte_chunks_mut(bytemuck::cast_slice_mut(data), bytes, 0, &|i, chunk| body(i, bytemuck::cast_slice_mut(chunk)));
}

/// [`chunks_mut`] for a `body` that can fail.
pub(crate) fn try_chunks_mut<T: Pod>(
    data: &mut [T],
    len: usize,
    body: &(dyn Fn(usize, &mut [T]) -> Result<()> + Sync),
) -> Result<()> {
    let failure = Failure::default();
    chunks_mut(data, len, &|i, chunk| _ = failure.keep(body(i, chunk)));
    failure.result()
}

/// [`chunks_mut`] for bytes; the first chunk has the number `first`.
fn byte_chunks_mut(data: &mut [u8], len: usize, first: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    if data.len() > len && threads::ready() {
        let half = data.len().div_ceil(len) / 2;
        let (left, right) = data.split_at_mut(half * len);
        let (left, right) =
            (|| byte_chunks_mut(left, len, first, body), || byte_chunks_mut(right, len, first + half, body));
        rayon::join(left, right);
    } else if !data.is_empty() {
        data.chunks_mut(len).zip(first..).for_each(|(chunk, i)| body(i, chunk));
    }
}

type Turn<'t, K, W> = dyn FnMut(usize, &K) -> W + Send + 't;

/// `find` has not filled the cell yet.
const SOUGHT: u8 = 0;
/// `find` has run, so `turn` may run. The thread that ran `find` will finish the task.
const FOUND: u8 = 1;
/// `find` has run, and its thread has left: the thread that runs `turn` also finishes the task.
const LEFT: u8 = 2;
/// `turn` has run.
const TURNED: u8 = 3;

/// The steps of [`in_turn`] behind a trait object, so that the code that schedules them is compiled once.
trait Steps: Sync {
    /// Gives task `task` the buffer of a finished task, or allocates one.
    fn make_room(&self, task: usize, finished: Option<usize>) -> Result<()>;
    fn find(&self, task: usize);
    fn turn(&self, task: usize);
    fn finish(&self, task: usize);
}

/// The functions of [`in_turn`], and a cell for each task. A task's state names the owner of its cell (finder, sequencer,
/// finisher), so the locks are uncontended.
struct Cells<'f, K, W> {
    room: &'f (dyn Fn() -> Result<K> + Sync),
    find: &'f (dyn Fn(usize, &mut K) + Sync),
    turn: Mutex<&'f mut Turn<'f, K, W>>,
    finish: &'f (dyn Fn(usize, W, &mut K) + Sync),
    cells: Vec<Mutex<Cell<K, W>>>,
}

/// The buffer of a task, and what `turn` returned for it.
type Cell<K, W> = Option<(K, Option<W>)>;

impl<K, W> Cells<'_, K, W> {
    fn cell(&self, task: usize) -> MutexGuard<'_, Cell<K, W>> {
        self.cells[task].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Send, W: Send> Steps for Cells<'_, K, W> {
    fn make_room(&self, task: usize, finished: Option<usize>) -> Result<()> {
        let room = match finished.and_then(|finished| self.cell(finished).take()) {
            Some((room, _)) => room,
            None => (self.room)()?,
        };
        *self.cell(task) = Some((room, None));
        Ok(())
    }

    fn find(&self, task: usize) {
        if let Some((room, _)) = &mut *self.cell(task) {
            (self.find)(task, room);
        }
    }

    fn turn(&self, task: usize) {
        if let Some((room, work)) = &mut *self.cell(task) {
            *work = Some((self.turn.lock().unwrap_or_else(PoisonError::into_inner))(task, room));
        }
    }

    fn finish(&self, task: usize) {
        if let Some((room, work)) = &mut *self.cell(task)
            && let Some(work) = work.take()
        {
            (self.finish)(task, work, room);
        }
    }
}

/// Runs `turn` for the next tasks in order, and stops at the first task for which `find` has not run. If another thread
/// already runs `turn`, that thread runs it for these tasks, too. The caller has just run `find` for `task`. Returns
/// the tasks whose state was `LEFT`; the caller finishes them.
fn take_turns(steps: &dyn Steps, states: &[AtomicU8], line: &Mutex<usize>, mut task: usize) -> Vec<usize> {
    let mut left = Vec::new();
    let state = |task: usize| states.get(task).map(|state| state.load(Ordering::Acquire));
    loop {
        // No task is lost. A thread marks its task as found and then tries the lock; the owner of the lock releases it and then
        // checks for a mark. Because of the fence between the two steps, at least one of the two threads sees the other's
        // write.
        fence(Ordering::SeqCst);
        if !matches!(state(task), Some(FOUND | LEFT)) {
            return left;
        }
        // After a panic in `turn` the lock is poisoned, and `turn` never runs again.
        let Ok(mut now) = line.try_lock() else { return left };
        while let Some(FOUND | LEFT) = state(*now) {
            steps.turn(*now);
            if states[*now].swap(TURNED, Ordering::AcqRel) == LEFT {
                left.push(*now);
            }
            *now += 1;
        }
        task = *now;
    }
}

/// Runs three steps for each of `0..tasks`: `find` in parallel, then `turn` one task at a time and in order, then `finish` in
/// parallel.
///
/// `room` allocates a buffer to which `find` writes; after `finish`, another task reuses the buffer. Threads take tasks
/// in order, so few buffers are in use. A thread that runs `find` for a task usually runs `finish` too, since its
/// caches hold the data.
///
/// No thread waits for another thread or for a lock. Such a wait could deadlock, because the functions may call rayon,
/// which may run this function again on the same thread. If no task is left to find, a thread leaves. If `turn` has not
/// run yet for a task of that thread, the thread that runs `turn` for it also finishes it. If `room` fails for a task,
/// `turn` runs neither for this task nor for any later one.
pub(crate) fn in_turn<K: Send, W: Send>(
    tasks: usize,
    room: &(dyn Fn() -> Result<K> + Sync),
    find: &(dyn Fn(usize, &mut K) + Sync),
    turn: &mut Turn<'_, K, W>,
    finish: &(dyn Fn(usize, W, &mut K) + Sync),
) -> Result<()> {
    let mut cells = memory::with_capacity(tasks)?;
    cells.resize_with(tasks, Mutex::default);
    in_steps(tasks, &Cells { room, find, turn: Mutex::new(turn), finish, cells })
}

/// [`in_turn`], compiled once.
fn in_steps(tasks: usize, steps: &dyn Steps) -> Result<()> {
    let states: Vec<AtomicU8> = memory::collect((0..tasks).map(|_| AtomicU8::new(SOUGHT)))?;
    let failure = Failure::default();
    let (next, line) = (AtomicUsize::new(0), Mutex::new(0));
    let finish_turned = |own: &mut VecDeque<usize>, free: &mut Vec<usize>| {
        while let Some(&task) = own.front()
            && states[task].load(Ordering::Acquire) == TURNED
        {
            own.pop_front();
            steps.finish(task);
            free.push(task);
        }
    };
    for_each(tasks.min(threads()), &|_| {
        let (mut own, mut free) = (VecDeque::new(), Vec::new());
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            if failure.keep(steps.make_room(task, free.pop())).is_none() {
                // `turn` runs for no later task, so none needs a buffer.
                next.fetch_max(tasks, Ordering::Relaxed);
                break;
            }
            steps.find(task);
            states[task].store(FOUND, Ordering::Release);
            own.push_back(task);
            let left = take_turns(steps, &states, &line, task);
            finish_turned(&mut own, &mut free);
            // In parallel, since the threads that left these tasks have no other work.
            for_each(left.len(), &|i| steps.finish(left[i]));
            free.extend(left);
        }
        own.retain(|&task| states[task].compare_exchange(FOUND, LEFT, Ordering::AcqRel, Ordering::Acquire).is_err());
        finish_turned(&mut own, &mut free);
    });
    failure.result()
}

/// Unstable sort of `data` by `number(x)`, in place.
pub(crate) fn sort_unstable_by_key<T: Send, N: Ord>(data: &mut [T], number: &(impl Fn(&T) -> N + Sync)) {
    if threads::ready() {
        data.par_sort_unstable_by_key(number);
    } else {
        data.sort_unstable_by_key(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True under Miri, which takes a thousand times as long.
    const MIRI: bool = cfg!(miri);
    const MANY: usize = if MIRI { 40 } else { 1000 };
    const MOST_THREADS: usize = if MIRI { 3 } else { 16 };

    #[test]
    fn every_task_runs_once_on_its_own_elements() {
        for n in [0, 1, 2, 7, MANY] {
            assert_eq!(map(n, &|i| 3 * i).unwrap(), (0..n).map(|i| 3 * i).collect::<Vec<_>>());
            let mut data = vec![0; n];
            chunks_mut(&mut data, 3, &|chunk, part| part.iter_mut().enumerate().for_each(|(i, x)| *x += 3 * chunk + i));
            assert_eq!(data, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn tasks_are_sequenced_in_order_and_each_is_finished() {
        for n in [0, 1, 2, 15, MANY] {
            let (mut seen, finished) = (Vec::new(), Mutex::new(Vec::new()));
            let finish = |task, work, found: &mut _| finished.lock().unwrap().push((task, work, *found));
            in_turn(n, &|| Ok(0), &|task, found| *found = 3 * task, &mut |task, _| seen.push(task), &finish).unwrap();
            let mut finished = finished.into_inner().unwrap();
            finished.sort_unstable_by_key(|&(task, ..)| task);
            assert_eq!((seen, finished), ((0..n).collect(), (0..n).map(|task| (task, (), 3 * task)).collect()));
        }
    }

    /// Takes some time, different for each task and round.
    fn dawdle(task: usize, round: usize) {
        let delay = (task + 1).wrapping_mul(0x9e37_79b9).wrapping_add(round.wrapping_mul(0x85eb_ca6b)) >> 5;
        match delay % 16 {
            0 => std::thread::sleep(std::time::Duration::from_micros(50)),
            1 => std::thread::yield_now(),
            _ => (0..delay % if MIRI { 4 } else { 512 }).for_each(|_| std::hint::spin_loop()),
        }
    }

    /// Returns the tasks for which `turn` ran, in order, and how often each task was found and finished. All three
    /// functions call rayon themselves. `panics[step]` is the task for which function `step` panics.
    fn each_once(tasks: usize, round: usize, panics: [usize; 3]) -> (Vec<usize>, Vec<[usize; 2]>) {
        let counts: Vec<[AtomicUsize; 2]> = (0..tasks).map(|_| Default::default()).collect();
        let nested = |task: usize, step: usize| {
            assert_ne!(task, panics[step], "the panic that this test provokes");
            if task.is_multiple_of(3) {
                rayon::join(|| dawdle(task, round), || dawdle(task + step, round));
            } else {
                dawdle(task, round + step);
            }
        };
        let mut turned = Vec::new();
        in_turn(
            tasks,
            &|| Ok(usize::MAX),
            &|task, found| {
                *found = task;
                nested(task, 0);
                counts[task][0].fetch_add(1, Ordering::Relaxed);
            },
            &mut |task, &found| {
                nested(task, 1);
                assert_eq!(task, found);
                turned.push(task);
                task
            },
            &|task, work, &mut found| {
                nested(task, 2);
                assert_eq!((task, task), (work, found));
                counts[task][1].fetch_add(1, Ordering::Relaxed);
            },
        )
        .unwrap();
        (turned, counts.into_iter().map(|counts| counts.map(AtomicUsize::into_inner)).collect())
    }

    #[test]
    fn each_task_is_produced_sequenced_and_finished_once() {
        for threads in [1, 2, MOST_THREADS] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for round in 0..if MIRI { 2 } else { 200 } {
                let tasks = if MIRI { [5, 2][round] } else { [1, 2, 17, 100][round % 4] };
                let once = ((0..tasks).collect(), vec![[1; 2]; tasks]);
                assert_eq!(
                    pool.install(|| each_once(tasks, round, [usize::MAX; 3])),
                    once,
                    "{threads} threads, {round}"
                );
            }
        }
    }

    /// Short tasks, so that some are found just when another thread releases the lock.
    #[test]
    fn no_task_is_lost() {
        for threads in [2, MOST_THREADS] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                for _ in 0..if MIRI { 4 } else { 10_000 } {
                    let finished = AtomicUsize::new(0);
                    let finish = |_, (), _: &mut _| _ = finished.fetch_add(1, Ordering::Relaxed);
                    in_turn(16, &|| Ok(()), &|_, _| (), &mut |_, _| (), &finish).unwrap();
                    assert_eq!(finished.into_inner(), 16);
                }
            });
        }
    }

    #[test]
    fn a_panic_in_a_task_is_propagated() {
        assert!(std::panic::catch_unwind(|| for_each(10, &|i| assert_ne!(i, 5))).is_err());
        for threads in [1, 2, MOST_THREADS] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let rounds = if MIRI { 3 } else { 30 };
            for (round, step) in (0..rounds).map(|round| (round, round % 3)) {
                let mut panics = [usize::MAX; 3];
                panics[step] = round;
                let call = || pool.install(|| each_once(rounds, round, panics));
                assert!(
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err(),
                    "{threads} threads, {round}"
                );
            }
        }
    }
}
