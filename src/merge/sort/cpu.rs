//! Merge sort on the CPU: threads sort chunks, then merge them.

use bytemuck::Pod;

use crate::{
    Result, memory,
    merge::cpu::{
        Bytes, BytesMut, Pairs, PairsMut, Sizes, Task, bytes, bytes_mut, part, push_tasks, serial, typed, typed_mut,
    },
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

/// Sorts `from` into `to`; `spare` is scratch. Unlike the standard library's sort, it never panics if `less` is not a
/// strict weak order.
fn chunk<T: Pod, V: Pod>((from, to, spare): Chunk<'_>, less: &impl Fn(&T, &T) -> bool) {
    let (from, to, spare) = (typed::<T, V>(from), typed_mut::<T, V>(to), typed_mut::<T, V>(spare));
    let n = from.0.len();
    let levels = n.div_ceil(INSERTED).next_power_of_two().ilog2();
    let (mut x, mut y) = if levels.is_multiple_of(2) { (to, spare) } else { (spare, to) };
    x.0.copy_from_slice(from.0);
    x.1.copy_from_slice(from.1);
    let mut at = 0;
    while at < n {
        let end = n.min(at + INSERTED);
        insert((&mut x.0[at..end], &mut x.1[at..end]), less);
        at = end;
    }
    for level in 0..levels {
        let (run, mut at) = (INSERTED << level, 0);
        while at < n {
            let (mid, end) = (n.min(at + run), n.min(at + 2 * run));
            let (a, b) = ((&x.0[at..mid], &x.1[at..mid]), (&x.0[mid..end], &x.1[mid..end]));
            serial(a, b, (&mut y.0[at..end], &mut y.1[at..end]), less);
            at = end;
        }
        (x, y) = (y, x);
    }
}

/// The bytes of elements to sort, of their output, and of as much scratch.
type Chunk<'a> = (Bytes<'a>, BytesMut<'a>, BytesMut<'a>);

/// Stable sort of `from` into `to`.
pub(crate) fn sort<T: Pod + Send + Sync, V: Pod + Send + Sync>(
    from: Pairs<'_, T, V>,
    to: PairsMut<'_, T, V>,
    less: &(impl Fn(&T, &T) -> bool + Sync),
) -> Result<()> {
    let (mut spare, mut spare_values) = (memory::zeroed::<T>(from.0.len())?, memory::zeroed::<V>(from.1.len())?);
    let chunks = (bytes(from), bytes_mut(to), bytes_mut((&mut spare, &mut spare_values)));
    sort_bytes(Sizes::of::<T, V>(), chunks, &|parts| chunk::<T, V>(parts, less), &|task| part::<T, V>(task, less))
}

/// [`sort`], compiled once. `chunk` sorts a chunk, and `part` writes a part of a merge.
fn sort_bytes(
    sizes: Sizes,
    (from, to, spare): Chunk<'_>,
    chunk: &(dyn Fn(Chunk<'_>) + Sync),
    part: &(dyn Fn(Task<'_>) + Sync),
) -> Result<()> {
    let n = from.0.len() / sizes.key;
    let mut run_len = n.div_ceil(parallel::threads()).max(CHUNK);
    let levels = n.div_ceil(run_len).next_power_of_two().ilog2();
    let (mut x, mut y) = if levels.is_multiple_of(2) { (to, spare) } else { (spare, to) };
    let (mut chunks, mut rest) = (Vec::new(), ((&mut *x.0, &mut *x.1), (&mut *y.0, &mut *y.1)));
    for first in (0..n).step_by(run_len) {
        let len = run_len.min(n - first);
        let (to, spare) = (sizes.take(&mut rest.0, len), sizes.take(&mut rest.1, len));
        memory::push(&mut chunks, (sizes.part(from, first..first + len), to, spare))?;
    }
    parallel::consume(chunks.into_iter(), chunk)?;
    for _ in 0..levels {
        let (mut tasks, sorted, mut rest) = (Vec::new(), (&*x.0, &*x.1), (&mut *y.0, &mut *y.1));
        for first in (0..n).step_by(2 * run_len) {
            let (mid, end) = (n.min(first + run_len), n.min(first + 2 * run_len));
            let (a, b) = (sizes.part(sorted, first..mid), sizes.part(sorted, mid..end));
            push_tasks(sizes, a, b, sizes.take(&mut rest, end - first), &mut tasks)?;
        }
        parallel::consume(tasks.into_iter(), part)?;
        (x, y) = (y, x);
        run_len *= 2;
    }
    Ok(())
}
