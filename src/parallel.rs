//! Loops over tasks, in parallel through rayon.
//!
//! Primitives call rayon through these alone: rayon's own iterators are instantiated anew for each body, type and operator,
//! and were most of the crate's compile time.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rayon::prelude::*;

/// Elements up to which threads cost more than they bring, where each takes little.
pub(crate) const SERIAL: usize = 1 << 15;

/// Threads that tasks are shared by.
pub(crate) fn threads() -> usize {
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
    let results: Vec<OnceLock<R>> = (0..tasks).map(|_| OnceLock::new()).collect();
    for_each(tasks, &|i| {
        results[i].get_or_init(|| body(i));
    });
    results.into_iter().map(|result| result.into_inner().expect("each task ran")).collect()
}

/// Hands each of `items` to `body`.
pub(crate) fn consume<I: Send>(items: Vec<I>, body: &(dyn Fn(I) + Sync)) {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    for_each(items.len(), &|i| {
        if let Some(item) = items[i].lock().unwrap_or_else(PoisonError::into_inner).take() {
            body(item);
        }
    });
}

/// Hands each run of `len` elements, and its number, to `body`; the last may be shorter.
pub(crate) fn chunks_mut<T: Send>(data: &mut [T], len: usize, body: &(dyn Fn(usize, &mut [T]) + Sync)) {
    consume(data.chunks_mut(len).enumerate().collect(), &|(i, chunk)| body(i, chunk));
}

/// Tasks of [`in_turn`]: the next one to have its turn, what those behind it have found, those that wait to be finished, and
/// rooms that are free. With each is the number of who has found it. Who has taken `turn` runs it, and nobody else does until
/// it is back.
struct Line<'t, K, W> {
    now: usize,
    found: BTreeMap<usize, (usize, K)>,
    ready: Vec<(usize, (usize, W, K))>,
    free: Vec<K>,
    turn: Option<&'t mut Turn<'t, K, W>>,
}

type Turn<'t, K, W> = dyn FnMut(usize, &K) -> W + Send + 't;

/// Runs the turns of tasks whose time has come, unless another thread does: that one will see those that are in line.
fn take_turns<K, W>(line: &Mutex<Line<'_, K, W>>) {
    let lock = || line.lock().unwrap_or_else(PoisonError::into_inner);
    let mut own = lock();
    let Some(turn) = own.turn.take() else { return };
    loop {
        let now = own.now;
        let Some((finder, room)) = own.found.remove(&now) else {
            own.turn = Some(turn);
            return;
        };
        // A turn may call a user's function, which may do anything but meet a lock.
        drop(own);
        let work = turn(now, &room);
        own = lock();
        own.ready.push((finder, (now, work, room)));
        own.now += 1;
    }
}

/// For each of `0..tasks` runs `find`, in parallel, which is given a room for what it finds; then `turn`, of one after the other
/// in their order; then `finish`, in parallel again. Threads take the tasks in their order, so that few rooms are in use, and
/// finish what they have found, which their caches hold. None waits for another: once all is found, who is still there
/// finishes what is left.
pub(crate) fn in_turn<K: Send, W: Send>(
    tasks: usize,
    room: &(dyn Fn() -> K + Sync),
    find: &(dyn Fn(usize, &mut K) + Sync),
    turn: &mut Turn<'_, K, W>,
    finish: &(dyn Fn(usize, W, &mut K) + Sync),
) {
    let next = AtomicUsize::new(0);
    let line =
        Mutex::new(Line { now: 0, found: BTreeMap::new(), ready: Vec::new(), free: Vec::new(), turn: Some(turn) });
    let lock = || line.lock().unwrap_or_else(PoisonError::into_inner);
    let finish_one = |is_mine: &dyn Fn(usize) -> bool| {
        let mut own = lock();
        let Some(place) = own.ready.iter().position(|&(finder, _)| is_mine(finder)) else { return false };
        let (_, (task, work, mut room)) = own.ready.swap_remove(place);
        drop(own);
        finish(task, work, &mut room);
        lock().free.push(room);
        true
    };
    for_each(tasks.min(threads()), &|me| {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            let free = lock().free.pop();
            let mut own = free.unwrap_or_else(room);
            find(task, &mut own);
            lock().found.insert(task, (me, own));
            take_turns(&line);
            while finish_one(&|finder| finder == me) {}
        }
        while finish_one(&|_| true) {}
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

    #[test]
    fn a_panic_in_a_task_is_passed_on() {
        assert!(std::panic::catch_unwind(|| for_each(10, &|i| assert_ne!(i, 5))).is_err());
    }
}
