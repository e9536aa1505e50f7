//! Scans on the CPU: the order of `cl/scan.cl`, tiles in parallel.

use super::Scan;
use crate::{Element, op::Monoid, parallel};

/// Runs of a chunk, chunks of a tile, and its runs; as in `cl/scan.cl`.
pub(super) const CHUNK_RUNS: usize = 32;
pub(super) const CHUNKS: usize = 64;
pub(super) const TILE_RUNS: usize = CHUNKS * CHUNK_RUNS;
/// Tiles of a block, and blocks of the next larger.
pub(super) const BLOCK: usize = 32;
/// Tiles of a task.
const TASK: usize = 8;

/// Elements of a run of `T`: 16 bytes.
pub(super) const fn run<T>() -> usize {
    16 / size_of::<T>()
}

/// Elements of a tile of `T`.
pub(super) const fn tile<T>() -> usize {
    TILE_RUNS * run::<T>()
}

/// Puts the accumulators of as many elements as there is room for, from one on in the order of the scan, where it is told.
/// It is given the outputs from there on, too, which may be the elements; if reversed, those up to there.
pub(super) type Load<'l, U> = dyn Fn(usize, &[U], &mut [<U as Element>::Acc]) + Sync + 'l;

/// Scans n elements in runs of `run`, the first one first. `out` has one more, if it is to have the total.
pub(super) fn scan<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc + Sync>(
    op: &Monoid<U, F>,
    n: usize,
    run: usize,
    load: &Load<'_, U>,
    kind: Scan<U>,
    out: &mut [U],
) {
    let (tile, tiles) = (TILE_RUNS * run, out.len().div_ceil(TILE_RUNS * run));
    if tiles == 0 {
        return;
    }
    let (initial, inclusive) = kind.initial.map_or((op.identity, true), |initial| (initial.widen(), false));

    let whole = tiles - 1;
    let source = &*out;
    let totals = parallel::map(whole.div_ceil(TASK), &|task| {
        let mut work = Work::<U>::new(tile);
        let total = |t: usize| {
            let from = if kind.reversed { &source[..source.len() - t * tile] } else { &source[t * tile..] };
            load(t * tile, from, &mut work.values);
            work.total(op, run)
        };
        (task * TASK..whole.min((task + 1) * TASK)).map(total).collect::<Vec<_>>()
    });
    let carries = carries(op, initial, totals.concat());

    parallel::consume(parts(out, TASK * tile, kind.reversed), &|(task, out)| {
        let mut work = Work::<U>::new(tile.min(out.len()));
        for (k, out) in parts(out, tile, kind.reversed) {
            let t = task * TASK + k;
            work.values.truncate(out.len().min(n - t * tile));
            load(t * tile, out, &mut work.values);
            work.scan(op, run, carries[t], inclusive, out);
            if kind.reversed {
                out.reverse();
            }
        }
    });
}

/// Parts of `len` results in the order of the scan, with their numbers.
fn parts<U>(out: &mut [U], len: usize, reversed: bool) -> Vec<(usize, &mut [U])> {
    if reversed { out.rchunks_mut(len).enumerate().collect() } else { out.chunks_mut(len).enumerate().collect() }
}

/// What precedes each tile, and what would precede one more.
fn carries<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    initial: U::Acc,
    mut totals: Vec<U::Acc>,
) -> Vec<U::Acc> {
    totals.push(op.identity);
    let mut levels = vec![totals];
    loop {
        let level = levels.len() - 1;
        let mut above = Vec::new();
        for block in levels[level].chunks_mut(BLOCK) {
            let last = block[block.len() - 1];
            let mut before = [op.identity; BLOCK];
            leaves(op, block, &mut before);
            block.copy_from_slice(&before[..block.len()]);
            above.push((op.combine)(before[block.len() - 1], last));
        }
        if above.len() == 1 {
            break;
        }
        levels.push(above);
    }
    let carry = |mut t: usize| {
        let mut digit = |level: &Vec<U::Acc>| {
            let before = level[t];
            t /= BLOCK;
            before
        };
        let digits: Vec<_> = levels.iter().map(&mut digit).collect();
        digits.iter().rev().fold(initial, |carry, &digit| (op.combine)(carry, digit))
    };
    (0..levels[0].len()).map(carry).collect()
}

/// What precedes each of `total`, up to as many as a power of two; their total to total[0], if they are that many.
fn leaves<U, F>(op: &Monoid<U, F>, total: &mut [U::Acc], before: &mut [U::Acc])
where
    U: Element,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    before.fill(op.identity);
    let mut d = 1;
    while d < total.len() {
        for (total, before) in total.chunks_mut(2 * d).zip(before.chunks_mut(2 * d)) {
            let low = total[0];
            before.iter_mut().skip(d).for_each(|before| *before = (op.combine)(low, *before));
            if let Some(&high) = total.get(d) {
                total[0] = (op.combine)(low, high);
            }
        }
        d *= 2;
    }
}

/// What a task has for a tile.
struct Work<U: Element> {
    values: Vec<U::Acc>,
    /// Of a tile's runs, what precedes each in its chunk; of its chunks, in the tile.
    runs: Vec<U::Acc>,
    chunks: [U::Acc; CHUNKS],
}

impl<U: Element> Work<U> {
    fn new(len: usize) -> Self {
        Self { values: vec![U::Acc::ZERO; len], runs: vec![U::Acc::ZERO; TILE_RUNS], chunks: [U::Acc::ZERO; CHUNKS] }
    }

    fn total<F: Fn(U::Acc, U::Acc) -> U::Acc>(&mut self, op: &Monoid<U, F>, run: usize) -> U::Acc {
        if op.ordered {
            return self.tree(op, run);
        }
        self.values.iter().fold(op.identity, |total, &x| (op.combine)(total, x))
    }

    /// What precedes runs and chunks, those of one more run among them; the total, if the tile is whole.
    fn tree<F: Fn(U::Acc, U::Acc) -> U::Acc>(&mut self, op: &Monoid<U, F>, run: usize) -> U::Acc {
        let mut totals = [op.identity; CHUNKS];
        let runs = self.runs.chunks_mut(CHUNK_RUNS);
        for (total, (values, before)) in totals.iter_mut().zip(self.values.chunks(CHUNK_RUNS * run).zip(runs)) {
            let mut of_runs = [op.identity; CHUNK_RUNS];
            for (total, run) in of_runs.iter_mut().zip(values.chunks(run)) {
                *total = run[1..].iter().fold(run[0], |total, &x| (op.combine)(total, x));
            }
            leaves(op, &mut of_runs, before);
            *total = of_runs[0];
        }
        leaves(op, &mut totals, &mut self.chunks);
        totals[0]
    }

    /// The results of a tile of `values`; one more, if `out` has room for it.
    fn scan<F>(&mut self, op: &Monoid<U, F>, run: usize, carry: U::Acc, inclusive: bool, out: &mut [U])
    where
        F: Fn(U::Acc, U::Acc) -> U::Acc,
    {
        let n = self.values.len();
        let mut acc = carry;
        if op.ordered {
            self.tree(op, run);
            let before = |r: usize| {
                // Nothing precedes the first run of a chunk, of which there may be no element.
                let before = if r.is_multiple_of(CHUNK_RUNS) { op.identity } else { self.runs[r] };
                (op.combine)(carry, (op.combine)(self.chunks[r / CHUNK_RUNS], before))
            };
            for (r, (values, out)) in self.values.chunks(run).zip(out.chunks_mut(run)).enumerate() {
                acc = sequence(op, values, before(r), inclusive, out);
            }
            if n.is_multiple_of(run) && n < out.len() {
                acc = before(n / run);
            }
        } else {
            acc = sequence(op, &self.values, acc, inclusive, out);
        }
        if n < out.len() {
            out[n] = U::narrow(acc);
        }
    }
}

fn sequence<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    mut acc: U::Acc,
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    for (&x, out) in values.iter().zip(out) {
        let next = (op.combine)(acc, x);
        *out = U::narrow(if inclusive { next } else { acc });
        acc = next;
    }
    acc
}
