//! Loops over tasks, in parallel through rayon.
//!
//! Primitives call rayon through these alone: rayon's own iterators are instantiated anew for each body, type and operator,
//! and were most of the crate's compile time.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicUsize, Ordering, fence},
    },
};

use rayon::prelude::*;

/// Elements up to which threads cost more than they bring, where each takes little.
pub(crate) const SERIAL: usize = 1 << 15;

/// Threads that tasks are shared by.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// The parts of `n` things, `least` at least but for the last: two for each thread.
pub(crate) fn parts(n: usize, least: usize) -> Vec<Range<usize>> {
    let part = n.div_ceil(2 * threads()).max(least);
    (0..n).step_by(part).map(|first| first..n.min(first + part)).collect()
}

/// Runs `body` for each of `0..tasks`. A panic in it is passed on.
pub(crate) fn for_each(tasks: usize, body: &(dyn Fn(usize) + Sync)) {
    if tasks == 1 {
        return body(0);
    }
    (0..tasks).into_par_iter().with_max_len(1).for_each(body);
}

/// The results of `body` for each of `0..tasks`, in order.
pub(crate) fn map<R: Send + Sync>(tasks: usize, body: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    // Loops, here and below: each chain of iterators would be compiled anew for each type, ten functions at a time.
    let mut results = Vec::with_capacity(tasks);
    for _ in 0..tasks {
        results.push(Mutex::new(None));
    }
    for_each(tasks, &|i| {
        let result = body(i);
        *locked(&results[i]) = Some(result);
    });
    let mut all = Vec::with_capacity(tasks);
    for result in results {
        match result.into_inner() {
            Ok(Some(result)) => all.push(result),
            _ => unreachable!("each task ran"),
        }
    }
    all
}

/// [`map`] on this thread.
pub(crate) fn map_here<R>(tasks: usize, body: &dyn Fn(usize) -> R) -> Vec<R> {
    let mut all = Vec::with_capacity(tasks);
    for i in 0..tasks {
        all.push(body(i));
    }
    all
}

/// Locks, whether a thread has panicked or not.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Hands each of `items` to `body`.
pub(crate) fn consume<I: Send>(items: Vec<I>, body: &(dyn Fn(I) + Sync)) {
    let mut cells = Vec::with_capacity(items.len());
    for item in items {
        cells.push(Mutex::new(Some(item)));
    }
    for_each(cells.len(), &|i| {
        let item = locked(&cells[i]).take();
        if let Some(item) = item {
            body(item);
        }
    });
}

/// Hands each run of `len` elements, and its number, to `body`; the last may be shorter.
pub fn chunks_mut<T: Send>(data: &mut [T], len: usize, body: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let mut chunks = Vec::with_capacity(data.len().div_ceil(len));
    for chunk in data.chunks_mut(len) {
        chunks.push((chunks.len(), chunk));
    }
    consume(chunks, &|(i, chunk)| body(i, chunk));
}

type Turn<'t, K, W> = dyn FnMut(usize, &K) -> W + Send + 't;

/// A task of [`in_turn`]. Its state tells who has the cell: its finder, then who runs its turn, then who finishes it. So nobody
/// waits for a cell.
struct Slot<K, W> {
    state: AtomicU8,
    cell: Mutex<Option<(K, Option<W>)>>,
}

/// The finder fills the cell.
const SOUGHT: u8 = 0;
/// The turn may come; the finder will finish.
const FOUND: u8 = 1;
/// The same, but who runs the turn will finish, since the finder has gone.
const LEFT: u8 = 2;
/// The turn has been.
const TURNED: u8 = 3;

impl<K, W> Slot<K, W> {
    fn cell(&self) -> MutexGuard<'_, Option<(K, Option<W>)>> {
        locked(&self.cell)
    }
}

/// Runs the turns of tasks whose time has come, unless another thread does; `task` was found just now. Gives those that were left.
fn take_turns<K, W>(slots: &[Slot<K, W>], line: &Mutex<(usize, &mut Turn<'_, K, W>)>, mut task: usize) -> Vec<usize> {
    let mut left = Vec::new();
    let state = |task: usize| match slots.get(task) {
        Some(slot) => slot.state.load(Ordering::Acquire),
        None => SOUGHT,
    };
    loop {
        // No task is forgotten: who has found one marks it, and then tries the lock; who has had the lock gives it back, and then
        // looks for a mark. Fences between the two have one of them see what the other did.
        fence(Ordering::SeqCst);
        if !matches!(state(task), FOUND | LEFT) {
            return left;
        }
        // After a panic in a turn there are no others.
        let Ok(mut line) = line.try_lock() else { return left };
        let (now, turn) = &mut *line;
        while let FOUND | LEFT = state(*now) {
            let slot = &slots[*now];
            if let Some((room, work)) = &mut *slot.cell() {
                *work = Some(turn(*now, room));
            }
            if slot.state.swap(TURNED, Ordering::AcqRel) == LEFT {
                left.push(*now);
            }
            *now += 1;
        }
        task = *now;
    }
}

/// For each of `0..tasks` runs `find`, in parallel, which is given a room for what it finds; then `turn`, of one after the other
/// in their order; then `finish`, in parallel again. Threads take the tasks in their order, so that few rooms are in use, and
/// finish what they have found, which their caches hold. None waits for another, nor for a lock, since the functions may call
/// rayon, by which a thread may come here again: once all is found, a thread leaves tasks whose turns have not been to who runs
/// those.
pub(crate) fn in_turn<K: Send, W: Send>(
    tasks: usize,
    room: &(dyn Fn() -> K + Sync),
    find: &(dyn Fn(usize, &mut K) + Sync),
    turn: &mut Turn<'_, K, W>,
    finish: &(dyn Fn(usize, W, &mut K) + Sync),
) {
    let mut slots: Vec<Slot<K, W>> = Vec::with_capacity(tasks);
    for _ in 0..tasks {
        slots.push(Slot { state: AtomicU8::new(SOUGHT), cell: Mutex::new(None) });
    }
    let (next, line) = (AtomicUsize::new(0), Mutex::new((0, turn)));
    let finish_one = |task: usize| {
        let (mut room, work) = slots[task].cell().take()?;
        finish(task, work?, &mut room);
        Some(room)
    };
    let finish_turned = |own: &mut VecDeque<usize>, free: &mut Vec<K>| {
        while let Some(&task) = own.front()
            && slots[task].state.load(Ordering::Acquire) == TURNED
        {
            own.pop_front();
            if let Some(room) = finish_one(task) {
                free.push(room);
            }
        }
    };
    for_each(tasks.min(threads()), &|_| {
        let (mut own, mut free) = (VecDeque::new(), Vec::new());
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            let mut found = match free.pop() {
                Some(room) => room,
                None => room(),
            };
            find(task, &mut found);
            *slots[task].cell() = Some((found, None));
            slots[task].state.store(FOUND, Ordering::Release);
            own.push_back(task);
            let left = take_turns(&slots, &line, task);
            finish_turned(&mut own, &mut free);
            // Who has left them has nothing else to do.
            for_each(left.len(), &|i| drop(finish_one(left[i])));
        }
        for _ in 0..own.len() {
            if let Some(task) = own.pop_front()
                && slots[task].state.compare_exchange(FOUND, LEFT, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                own.push_back(task);
            }
        }
        finish_turned(&mut own, &mut free);
    });
}

/// Sorts by numbers, in the memory of `data`.
pub(crate) fn sort_unstable_by_key<T: Send, N: Ord>(data: &mut [T], number: &(impl Fn(&T) -> N + Sync)) {
    data.par_sort_unstable_by_key(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_and_in_its_place() {
        for n in [0, 1, 2, 7, 1000] {
            assert_eq!(map(n, &|i| 3 * i), (0..n).map(|i| 3 * i).collect::<Vec<_>>());
            let mut data = vec![0; n];
            chunks_mut(&mut data, 3, &|chunk, part| part.iter_mut().enumerate().for_each(|(i, x)| *x += 3 * chunk + i));
            assert_eq!(data, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn turns_are_in_order_and_each_task_is_finished() {
        for n in [0, 1, 2, 15, 1000] {
            let (mut seen, finished) = (Vec::new(), Mutex::new(Vec::new()));
            let finish = |task, work, found: &mut _| finished.lock().unwrap().push((task, work, *found));
            in_turn(n, &|| 0, &|task, found| *found = 3 * task, &mut |task, _| seen.push(task), &finish);
            let mut finished = finished.into_inner().unwrap();
            finished.sort_unstable_by_key(|&(task, ..)| task);
            assert_eq!((seen, finished), ((0..n).collect(), (0..n).map(|task| (task, (), 3 * task)).collect()));
        }
    }

    /// Takes some time, another one for each task and round.
    fn dawdle(task: usize, round: usize) {
        let delay = (task + 1).wrapping_mul(0x9e37_79b9).wrapping_add(round.wrapping_mul(0x85eb_ca6b)) >> 5;
        match delay % 16 {
            0 => std::thread::sleep(std::time::Duration::from_micros(50)),
            1 => std::thread::yield_now(),
            _ => (0..delay % 512).for_each(|_| std::hint::spin_loop()),
        }
    }

    /// What tasks had their turns, in their order, and how often each was found and finished. Finds, turns and finishes call
    /// rayon themselves. A find, turn or finish of one task `panics`.
    fn each_once(tasks: usize, round: usize, panics: [usize; 3]) -> (Vec<usize>, Vec<[usize; 2]>) {
        let counts: Vec<[AtomicUsize; 2]> = (0..tasks).map(|_| Default::default()).collect();
        let nested = |task: usize, step: usize| {
            assert_ne!(task, panics[step], "as asked for");
            if task.is_multiple_of(3) {
                rayon::join(|| dawdle(task, round), || dawdle(task + step, round));
            } else {
                dawdle(task, round + step);
            }
        };
        let mut turned = Vec::new();
        in_turn(
            tasks,
            &|| usize::MAX,
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
        );
        (turned, counts.into_iter().map(|counts| counts.map(AtomicUsize::into_inner)).collect())
    }

    #[test]
    fn each_task_is_found_turned_and_finished_once_whatever_threads_do() {
        for threads in [1, 2, 16] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for round in 0..200 {
                let tasks = [1, 2, 17, 100][round % 4];
                let once = ((0..tasks).collect(), vec![[1; 2]; tasks]);
                assert_eq!(
                    pool.install(|| each_once(tasks, round, [usize::MAX; 3])),
                    once,
                    "{threads} threads, {round}"
                );
            }
        }
    }

    /// Short ones, so that some are found just when another thread gives the turn back.
    #[test]
    fn no_task_is_forgotten() {
        for threads in [2, 16] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                for _ in 0..10_000 {
                    let finished = AtomicUsize::new(0);
                    let finish = |_, (), _: &mut _| _ = finished.fetch_add(1, Ordering::Relaxed);
                    in_turn(16, &|| (), &|_, _| (), &mut |_, _| (), &finish);
                    assert_eq!(finished.into_inner(), 16);
                }
            });
        }
    }

    #[test]
    fn a_panic_in_a_task_is_passed_on() {
        assert!(std::panic::catch_unwind(|| for_each(10, &|i| assert_ne!(i, 5))).is_err());
        for threads in [1, 2, 16] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for (round, step) in (0..30).map(|round| (round, round % 3)) {
                let mut panics = [usize::MAX; 3];
                panics[step] = round;
                let call = || pool.install(|| each_once(30, round, panics));
                assert!(
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err(),
                    "{threads} threads, {round}"
                );
            }
        }
    }
}
