//! Scans on the CPU: the order of `cl/scan.cl`, tiles in parallel. They are read a second time while the caches have them.

use super::Scan;
use crate::{Element, op::Monoid, parallel};

/// Runs of a chunk, chunks of a tile, and its runs; as in `cl/scan.cl`.
pub(super) const CHUNK_RUNS: usize = 32;
pub(super) const CHUNKS: usize = 64;
pub(super) const TILE_RUNS: usize = CHUNKS * CHUNK_RUNS;
/// Tiles of a block, and blocks of the next larger.
pub(super) const BLOCK: usize = 32;
/// Tiles of a task, and tasks of a thread between two steps of all.
const TASK: usize = 8;
const THREAD_TASKS: usize = 8;
/// Elements that are taken at once where any order will do: they stay in the first-level cache.
const PART: usize = 2048;

/// Elements of a run of `T`: 16 bytes.
pub(super) const fn run<T>() -> usize {
    16 / size_of::<T>()
}

/// Elements of a tile of `T`.
#[cfg(any(test, feature = "checks"))]
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
    let (tile, step) = (TILE_RUNS * run, THREAD_TASKS * parallel::threads() * TASK);
    let part = if op.ordered { tile } else { tile.min(PART) };
    let (initial, inclusive) = kind.initial.map_or((op.identity, true), |initial| (initial.widen(), false));
    // Nothing follows the last tile.
    let mut followed = out.len().div_ceil(tile).saturating_sub(1);
    let mut spine = Spine { combine: &op.combine, identity: op.identity, levels: Vec::new() };
    for (number, out) in parts(out, step * tile, kind.reversed) {
        let (first, source) = (number * step, &*out);
        let totals = parallel::map(step.min(followed).div_ceil(TASK), &|task| {
            let mut work = Work::<U>::new(op.identity, part);
            let total = |t: usize| {
                let mut total = op.identity;
                for at in (t * tile..(t + 1) * tile).step_by(part) {
                    let from = if kind.reversed { &source[..source.len() - at] } else { &source[at..] };
                    load(first * tile + at, from, &mut work.values);
                    total = work.total(op, run, total);
                }
                total
            };
            (task * TASK..step.min(followed).min((task + 1) * TASK)).map(total).collect::<Vec<_>>()
        });
        followed -= step.min(followed);
        let mut carries = vec![spine.carry(initial)];
        for total in totals.concat() {
            spine.push(total);
            carries.push(spine.carry(initial));
        }
        parallel::consume(parts(out, TASK * tile, kind.reversed), &|(task, out)| {
            let mut work = Work::<U>::new(op.identity, part.min(out.len()));
            let (begin, mut carry) = (task * TASK * tile, initial);
            for (k, out) in parts(out, part, kind.reversed) {
                let at = begin + k * part;
                if at.is_multiple_of(tile) {
                    carry = carries[at / tile];
                }
                let at = first * tile + at;
                work.values.truncate(out.len().min(n - at));
                load(at, out, &mut work.values);
                carry = work.scan(op, run, carry, inclusive, out);
                if kind.reversed {
                    out.reverse();
                }
            }
        });
    }
}

/// Parts of `len` results in the order of the scan, with their numbers.
fn parts<U>(out: &mut [U], len: usize, reversed: bool) -> Vec<(usize, &mut [U])> {
    if reversed { out.rchunks_mut(len).enumerate().collect() } else { out.chunks_mut(len).enumerate().collect() }
}

/// At each level, of tiles, blocks of them and so on, the totals that are no whole block yet.
struct Spine<'o, A, F> {
    combine: &'o F,
    identity: A,
    levels: Vec<Vec<A>>,
}

impl<A: Copy, F: Fn(A, A) -> A> Spine<'_, A, F> {
    fn before(&self, level: &[A]) -> [A; BLOCK] {
        let mut totals = [self.identity; BLOCK];
        totals[..level.len()].copy_from_slice(level);
        leaves(self.combine, self.identity, totals).0
    }

    /// Takes the total of the next tile.
    fn push(&mut self, mut total: A) {
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::with_capacity(BLOCK));
            }
            self.levels[level].push(total);
            if self.levels[level].len() < BLOCK {
                return;
            }
            total = (self.combine)(self.before(&self.levels[level])[BLOCK - 1], total);
            self.levels[level].clear();
        }
    }

    /// What precedes the next tile.
    fn carry(&self, initial: A) -> A {
        let digits = self.levels.iter().map(|level| self.before(level)[level.len()]);
        digits.rev().fold(initial, |carry, digit| (self.combine)(carry, digit))
    }
}

/// What precedes each of N things, a power of two, and their total: a tree of neighbours.
fn leaves<A: Copy, const N: usize>(combine: &impl Fn(A, A) -> A, identity: A, mut total: [A; N]) -> ([A; N], A) {
    let mut before = [identity; N];
    let mut d = 1;
    while d < N {
        for low in (0..N).step_by(2 * d) {
            for before in &mut before[low + d..low + 2 * d] {
                *before = combine(total[low], *before);
            }
            total[low] = combine(total[low], total[low + d]);
        }
        d *= 2;
    }
    (before, total[0])
}

/// Their total alone.
fn tree<A: Copy, const N: usize>(combine: &impl Fn(A, A) -> A, mut total: [A; N]) -> A {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            total[k] = combine(total[2 * k], total[2 * k + 1]);
        }
    }
    total[0]
}

/// The totals of the runs of a chunk.
fn runs<A: Copy>(combine: &impl Fn(A, A) -> A, chunk: &[A], run: usize) -> [A; CHUNK_RUNS] {
    let mut total = [chunk[0]; CHUNK_RUNS];
    for (k, total) in total.iter_mut().enumerate() {
        let run = &chunk[k * run..][..run];
        *total = run[1..].iter().fold(run[0], |total, &x| combine(total, x));
    }
    total
}

/// What a task has for a tile.
struct Work<U: Element> {
    values: Vec<U::Acc>,
    /// Of a tile's runs, what precedes each in its chunk; of its chunks, in the tile.
    runs: Vec<[U::Acc; CHUNK_RUNS]>,
    chunks: [U::Acc; CHUNKS],
}

impl<U: Element> Work<U> {
    fn new(identity: U::Acc, len: usize) -> Self {
        Self { values: vec![identity; len], runs: Vec::new(), chunks: [identity; CHUNKS] }
    }

    /// The total of a whole tile; or of a part of one, and what precedes it there.
    fn total<F: Fn(U::Acc, U::Acc) -> U::Acc>(&self, op: &Monoid<U, F>, run: usize, before: U::Acc) -> U::Acc {
        if !op.ordered {
            return self.values.iter().fold(before, |total, &x| (op.combine)(total, x));
        }
        let mut totals = [op.identity; CHUNKS];
        for (total, chunk) in totals.iter_mut().zip(self.values.chunks_exact(CHUNK_RUNS * run)) {
            *total = tree(&op.combine, runs(&op.combine, chunk, run));
        }
        tree(&op.combine, totals)
    }

    /// The results of a tile of `values`, or of a part of one; one more, if `out` has room for it. Returns what precedes the
    /// next part.
    fn scan<F>(&mut self, op: &Monoid<U, F>, run: usize, carry: U::Acc, inclusive: bool, out: &mut [U]) -> U::Acc
    where
        F: Fn(U::Acc, U::Acc) -> U::Acc,
    {
        let n = self.values.len();
        let mut acc = carry;
        if op.ordered {
            let (chunk, mut totals) = (CHUNK_RUNS * run, [op.identity; CHUNKS]);
            self.values.resize(out.len().next_multiple_of(chunk), op.identity);
            self.runs.resize(CHUNKS, [op.identity; CHUNK_RUNS]);
            for (k, values) in self.values.chunks_exact(chunk).enumerate() {
                (self.runs[k], totals[k]) = leaves(&op.combine, op.identity, runs(&op.combine, values, run));
            }
            self.chunks = leaves(&op.combine, op.identity, totals).0;
            self.values.truncate(n);
            let before = |r: usize| {
                let (chunk, r) = (r / CHUNK_RUNS, r % CHUNK_RUNS);
                (op.combine)(carry, (op.combine)(self.chunks[chunk], self.runs[chunk][r]))
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
        acc
    }
}

#[inline]
fn sequence<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    mut acc: U::Acc,
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    if inclusive {
        for (&x, out) in values.iter().zip(out) {
            acc = (op.combine)(acc, x);
            *out = U::narrow(acc);
        }
    } else {
        for (&x, out) in values.iter().zip(out) {
            *out = U::narrow(acc);
            acc = (op.combine)(acc, x);
        }
    }
    acc
}
