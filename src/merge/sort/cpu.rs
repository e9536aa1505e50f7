//! Merge sort on the CPU: threads sort chunks, then merge them.

use bytemuck::Pod;

use crate::{
    Result, memory,
    merge::cpu::{Pairs, PairsMut, push_tasks, run, serial},
    parallel,
};

/// Elements per run of the insertion sort.
const INSERTED: usize = 16;
/// Minimum elements of a chunk.
const CHUNK: usize = 1 << 14;

/// Insertion sort.
fn insert<T: Copy, V: Copy>((keys, values): PairsMut<'_, T, V>, less: &impl Fn(&T, &T) -> bool) {
    for i in 1..keys.len() {
        let (key, value) = (keys[i], values[i]);
        let mut place = i;
        while place > 0 && less(&key, &keys[place - 1]) {
            (keys[place], values[place]) = (keys[place - 1], values[place - 1]);
            place -= 1;
        }
        (keys[place], values[place]) = (key, value);
    }
}

/// Splits a pair of runs of `run` elements into the two runs.
fn halves<'a, T, V>((keys, values): Pairs<'a, T, V>, run: usize) -> (Pairs<'a, T, V>, Pairs<'a, T, V>) {
    let (first, second) = keys.split_at(run.min(keys.len()));
    let (first_values, second_values) = values.split_at(run.min(values.len()));
    ((first, first_values), (second, second_values))
}

/// Sorts `from` into `to`. Never panics, unlike the standard library's sort if `less` is not a strict weak order.
fn chunk<T: Copy, V: Copy>(
    from: Pairs<'_, T, V>,
    to: PairsMut<'_, T, V>,
    spare: PairsMut<'_, T, V>,
    less: &impl Fn(&T, &T) -> bool,
) {
    let levels = from.0.len().div_ceil(INSERTED).next_power_of_two().ilog2();
    let (mut x, mut y) = if levels.is_multiple_of(2) { (to, spare) } else { (spare, to) };
    x.0.copy_from_slice(from.0);
    x.1.copy_from_slice(from.1);
    for part in x.0.chunks_mut(INSERTED).zip(x.1.chunks_mut(INSERTED)) {
        insert(part, less);
    }
    for level in 0..levels {
        let run = INSERTED << level;
        let pairs = x.0.chunks(2 * run).zip(x.1.chunks(2 * run));
        for (pair, merged) in pairs.zip(y.0.chunks_mut(2 * run).zip(y.1.chunks_mut(2 * run))) {
            let (a, b) = halves(pair, run);
            serial(a, b, merged, less);
        }
        (x, y) = (y, x);
    }
}

/// Stable sort of `from` into `to`.
pub(crate) fn sort<T: Pod + Send + Sync, V: Pod + Send + Sync>(
    from: Pairs<'_, T, V>,
    to: PairsMut<'_, T, V>,
    less: &(impl Fn(&T, &T) -> bool + Sync),
) -> Result<()> {
    let n = from.0.len();
    let mut run_len = n.div_ceil(parallel::threads()).max(CHUNK);
    let (mut spare, mut spare_values) = (memory::zeroed::<T>(n)?, memory::zeroed::<V>(n)?);
    let levels = n.div_ceil(run_len).next_power_of_two().ilog2();
    let (mut x, mut y) = (to, (&mut spare[..], &mut spare_values[..]));
    if !levels.is_multiple_of(2) {
        (x, y) = (y, x);
    }
    let chunks = from.0.chunks(run_len).zip(from.1.chunks(run_len));
    let targets = x.0.chunks_mut(run_len).zip(x.1.chunks_mut(run_len));
    let spares = y.0.chunks_mut(run_len).zip(y.1.chunks_mut(run_len));
    parallel::consume(chunks.zip(targets.zip(spares)), &|(from, (to, spare))| chunk(from, to, spare, less))?;
    for _ in 0..levels {
        let mut tasks = Vec::new();
        let pairs = x.0.chunks(2 * run_len).zip(x.1.chunks(2 * run_len));
        for (pair, merged) in pairs.zip(y.0.chunks_mut(2 * run_len).zip(y.1.chunks_mut(2 * run_len))) {
            let (a, b) = halves(pair, run_len);
            push_tasks(a, b, merged, &mut tasks)?;
        }
        run(tasks, less)?;
        (x, y) = (y, x);
        run_len *= 2;
    }
    Ok(())
}
