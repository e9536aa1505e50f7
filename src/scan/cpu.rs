//! Scans on the CPU: the order of `cl/scan.cl`, tiles in parallel.

use super::Scan;
use crate::{Element, op::Op, parallel};

/// Runs of a tile; `TILE_RUNS` of `cl/scan.cl`.
pub(super) const TILE_RUNS: usize = 1024;
/// Tiles of a task.
const BLOCK: usize = 16;

/// Elements of a run of `T`: 16 bytes.
pub(super) const fn run<T>() -> usize {
    16 / size_of::<T>()
}

/// Elements of a tile of `T`.
pub(super) const fn tile<T>() -> usize {
    TILE_RUNS * run::<T>()
}

/// Whether the results depend on the order.
pub(super) fn ordered<U: Element, O: Op<U>>() -> bool {
    O::KIND.rounds() && U::TYPE.is_float()
}

/// Puts the accumulators of as many elements as there is room for, from one on, where it is told; it is given the outputs
/// from there on, too, which may be the elements.
pub(super) type Load<'l, U> = dyn Fn(usize, &[U], &mut [<U as Element>::Acc]) + Sync + 'l;

/// Scans n elements in runs of `run`. `out` has one more, if it is to have the total.
pub(super) fn scan<U: Element, O: Op<U>>(n: usize, run: usize, load: &Load<'_, U>, kind: Scan<U>, out: &mut [U]) {
    let (tile, tiles) = (TILE_RUNS * run, out.len().div_ceil(TILE_RUNS * run));
    if tiles == 0 {
        return;
    }
    let (initial, inclusive) = match kind {
        Scan::Inclusive => (O::identity(), true),
        Scan::Exclusive(initial) => (initial.widen(), false),
    };

    let whole = tiles - 1;
    let source = &*out;
    let totals = parallel::map(whole.div_ceil(BLOCK), &|block| {
        let mut work = Work::<U>::new(tile);
        let total = |t: usize| {
            load(t * tile, &source[t * tile..], &mut work.values);
            work.total::<O>(run)
        };
        (block * BLOCK..whole.min((block + 1) * BLOCK)).map(total).collect::<Vec<_>>()
    });
    let carries = carries::<U, O>(initial, &totals.concat());

    parallel::chunks_mut(out, BLOCK * tile, &|block, out| {
        let mut work = Work::<U>::new(tile.min(out.len()));
        for (k, out) in out.chunks_mut(tile).enumerate() {
            let t = block * BLOCK + k;
            work.values.truncate(out.len().min(n - t * tile));
            load(t * tile, out, &mut work.values);
            work.scan::<O>(run, carries[t], inclusive, out);
        }
    });
}

/// What precedes each tile, and what would precede one more.
fn carries<U: Element, O: Op<U>>(initial: U::Acc, totals: &[U::Acc]) -> Vec<U::Acc> {
    // block[b]: the total of the last 2^b tiles that start at a multiple of 2^b, for the bits that are set in t.
    let mut block = [O::identity(); usize::BITS as usize];
    let set = |t: usize| (0..usize::BITS as usize).filter(move |b| t >> b & 1 == 1);
    let carry = |t: usize, block: &[U::Acc]| {
        O::combine(initial, set(t).fold(O::identity(), |before, b| O::combine(block[b], before)))
    };
    let mut carries = Vec::with_capacity(totals.len() + 1);
    for (t, &total) in totals.iter().enumerate() {
        carries.push(carry(t, &block));
        let ones = t.trailing_ones() as usize;
        block[ones] = block[..ones].iter().fold(total, |total, &block| O::combine(block, total));
    }
    carries.push(carry(totals.len(), &block));
    carries
}

/// What a task has for a tile.
struct Work<U: Element> {
    values: Vec<U::Acc>,
    totals: Vec<U::Acc>,
    before: Vec<U::Acc>,
}

impl<U: Element> Work<U> {
    fn new(len: usize) -> Self {
        Self { values: vec![U::Acc::ZERO; len], totals: Vec::new(), before: Vec::new() }
    }

    fn total<O: Op<U>>(&mut self, run: usize) -> U::Acc {
        if ordered::<U, O>() {
            return self.tree::<O>(run);
        }
        self.values.iter().fold(O::identity(), |total, &x| O::combine(total, x))
    }

    /// What precedes each run; the total, if the tile is whole.
    fn tree<O: Op<U>>(&mut self, run: usize) -> U::Acc {
        let Self { values, totals, before } = self;
        totals.clear();
        totals.extend(values.chunks(run).map(|run| run[1..].iter().fold(run[0], |total, &x| O::combine(total, x))));
        // One more for what comes behind the last.
        let leaves = (totals.len() + 1).next_power_of_two().min(TILE_RUNS);
        totals.resize(leaves, O::identity());
        before.clear();
        before.resize(leaves, O::identity());
        let mut d = 1;
        while d < leaves {
            for (totals, before) in totals.chunks_mut(2 * d).zip(before.chunks_mut(2 * d)) {
                let low = totals[0];
                before[d..].iter_mut().for_each(|before| *before = O::combine(low, *before));
                totals[0] = O::combine(low, totals[d]);
            }
            d *= 2;
        }
        totals[0]
    }

    /// The results of a tile of `values`; one more, if `out` has room for it.
    fn scan<O: Op<U>>(&mut self, run: usize, carry: U::Acc, inclusive: bool, out: &mut [U]) {
        let n = self.values.len();
        let mut acc = carry;
        if ordered::<U, O>() {
            self.tree::<O>(run);
            for ((values, out), &before) in self.values.chunks(run).zip(out.chunks_mut(run)).zip(&self.before) {
                acc = sequence::<U, O>(values, O::combine(carry, before), inclusive, out);
            }
            if n.is_multiple_of(run) && n < out.len() {
                acc = O::combine(carry, self.before[n / run]);
            }
        } else {
            acc = sequence::<U, O>(&self.values, acc, inclusive, out);
        }
        if n < out.len() {
            out[n] = U::narrow(acc);
        }
    }
}

fn sequence<U: Element, O: Op<U>>(values: &[U::Acc], mut acc: U::Acc, inclusive: bool, out: &mut [U]) -> U::Acc {
    for (&x, out) in values.iter().zip(out) {
        let next = O::combine(acc, x);
        *out = U::narrow(if inclusive { next } else { acc });
        acc = next;
    }
    acc
}
