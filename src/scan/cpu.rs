//! Scans on the CPU: the order of `cl/scan.cl`. Threads share the tiles. Elements are read a second time while the
//! caches hold them.

use std::{
    ops::RangeInclusive,
    sync::{Mutex, PoisonError},
};

use super::Scan;
use crate::{Element, Result, memory, op::Monoid, parallel, source::Blocks};

/// Runs of a chunk, chunks of a tile, and runs of a tile; as in `cl/scan.cl`. A run is 16 bytes of elements.
pub const CHUNK_RUNS: usize = 32;
pub(super) const CHUNKS: usize = 64;
pub const TILE_RUNS: usize = CHUNKS * CHUNK_RUNS;
/// Tiles of a tile group, and tile groups of the next larger group.
pub const BLOCK: usize = 32;
/// Minimum and maximum tiles of a task; a task is larger if each thread has more tiles. The elements and results of a
/// task, 64 KiB for each tile, nearly fit the L2 cache.
const TASK: RangeInclusive<usize> = 4..=16;
/// Elements that are scanned at once if any order is allowed. These elements stay in the L1 cache.
const PART: usize = 4096;

/// Elements of a run of `T`: 16 bytes.
pub const fn run<T>() -> usize {
    16 / size_of::<T>()
}

/// Elements of a tile of `T`.
pub const fn tile<T>() -> usize {
    TILE_RUNS * run::<T>()
}

/// Loads the accumulators of some elements, given their first index in the order of the scan and their number.
///
/// Returns them as a slice, or appends them to the vector. The third argument is the output from that index on, which
/// may hold the elements; if reversed, it is the output up to that index.
pub(super) type Load<'l, U> = dyn Fn(usize, usize, &[U], &mut Vec<Acc<U>>) -> Option<&'l [Acc<U>]> + Sync + 'l;
type Acc<U> = <U as Element>::Acc;

/// Loads `take(x)` for each element `x` of `input`; `take` only converts.
pub(super) fn load<'i, T: Element, U: Element>(
    input: &'i [T],
    take: &'i (impl Fn(T) -> U::Acc + Sync),
    reversed: bool,
) -> Box<Load<'i, U>> {
    if !reversed && T::TYPE == U::Acc::TYPE {
        let accs: &[U::Acc] = bytemuck::cast_slice(input);
        return Box::new(move |first, len, _, _| Some(&accs[first..first + len]));
    }
    Box::new(move |first, len, _, room| {
        put(room, from(input, first, reversed), len, reversed, take);
        None
    })
}

/// Loads the accumulators of `n` computed elements.
pub(super) fn load_blocks<T: Element>(values: &dyn Blocks<T>, n: usize, reversed: bool) -> Box<Load<'_, T>> {
    Box::new(move |first, len, _, room| {
        let mut block = vec![T::ZERO; len];
        values.block(if reversed { n - first - len } else { first }, &mut block);
        put(room, &block, len, reversed, &T::widen);
        None
    })
}

/// Loads the elements from the output.
pub(super) fn load_in_place<U: Element>(reversed: bool) -> Box<Load<'static, U>> {
    Box::new(move |_, len, x, room| {
        put(room, x, len, reversed, &U::widen);
        None
    })
}

/// Appends `take(x)` for each of the first `len` elements `x`; if reversed, of the last ones.
fn put<T: Copy, A>(room: &mut Vec<A>, elements: &[T], len: usize, reversed: bool, take: &impl Fn(T) -> A) {
    if reversed {
        room.extend(elements.iter().rev().take(len).map(|&x| take(x)));
    } else {
        room.extend(elements[..len].iter().map(|&x| take(x)));
    }
}

/// The accumulators that `load` returns or appends.
pub(super) fn loaded<'r, U: Element>(
    load: &'r Load<'_, U>,
    first: usize,
    len: usize,
    out: &[U],
    room: &'r mut Vec<Acc<U>>,
) -> &'r [Acc<U>] {
    room.clear();
    load(first, len, out, room).unwrap_or(room)
}

/// Flags the segment heads among consecutive elements, given the index of the first one in the order of the scan.
pub(super) type Mark<'m> = dyn Fn(usize, &mut [bool]) + Sync + 'm;

/// The initial accumulator of a scan, and whether it is inclusive.
pub fn start<U: Element, F>(op: &Monoid<U, F>, kind: Scan<U>) -> (U::Acc, bool) {
    kind.initial.map_or((op.identity, true), |initial| (initial.widen(), false))
}

/// Scans n elements in runs of `run`. If `out` has one more element, it receives the initial accumulator combined with all
/// elements.
pub(super) fn scan<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc + Sync>(
    op: &Monoid<U, F>,
    n: usize,
    run: usize,
    load: &Load<'_, U>,
    kind: Scan<U>,
    out: &mut [U],
) -> Result<()> {
    let tile = TILE_RUNS * run;
    let part = if !Monoid::<U, F>::NEVER_ORDERED && op.ordered { tile } else { tile.min(PART) };
    let (initial, inclusive) = start(op, kind);
    let spine = Spine::new(&op.combine, op.identity);
    let carry = |digits: &[U::Acc]| digits.iter().fold(initial, |carry, &digit| (op.combine)(carry, digit));
    let find = |first: usize, out: &[U], work: &mut Work<U::Acc, U::Acc>| {
        let mut room = std::mem::take(&mut work.values);
        for at in (0..out.len()).step_by(part) {
            let outputs = part.min(out.len() - at);
            let len = outputs.min(n - (first + at));
            let values = loaded(load, first + at, len, from(out, at, kind.reversed), &mut room);
            if !Monoid::<U, F>::NEVER_ORDERED && op.ordered {
                let chunks = values.chunks(CHUNK_RUNS * run);
                work.precede(
                    at / tile,
                    &op.combine,
                    chunks.map(|chunk| prefixes(&op.combine, op.identity, chunk, run)),
                );
            } else {
                work.add(at / tile, &op.combine, total(op, values));
            }
        }
        work.values = room;
    };
    let write = |first: usize, carries: &[U::Acc], out: &mut [U], work: &mut Work<U::Acc, U::Acc>| {
        let mut carry = initial;
        for (k, out) in parts(out, part, kind.reversed) {
            let at = k * part;
            if at.is_multiple_of(tile) {
                carry = carries[at / tile];
            }
            let values = loaded(load, first + at, out.len().min(n - (first + at)), out, &mut work.values);
            carry = results(op, values, work.trees.get(at / tile), run, carry, inclusive, out);
            if kind.reversed {
                out.reverse();
            }
        }
    };
    let room = &|tiles| Work::new(op.identity, tiles, part, op.ordered);
    each_task(out, (tile, kind.reversed), spine, room, &carry, &find, &write)
}

/// Writes the results of a tile, or of a part of one. `tree` is that of the tile if the order is fixed.
///
/// If `out` has one more element, it receives the aggregate. Returns the exclusive prefix of the next part.
fn results<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    tree: Option<&Tree<U::Acc>>,
    run: usize,
    carry: U::Acc,
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    let n = values.len();
    let mut acc = carry;
    if let Some(tree) = tree.filter(|_| !Monoid::<U, F>::NEVER_ORDERED) {
        let chunk = CHUNK_RUNS * run;
        for (c, (values, out)) in values.chunks(chunk).zip(out.chunks_mut(chunk)).enumerate() {
            // The prefixes of all runs of the chunk come first, so that no run waits for another.
            let befores = tree.runs[c].map(|before| (op.combine)(carry, (op.combine)(tree.chunks[c], before)));
            acc = chunk_results(op, values, &befores, run, inclusive, out);
        }
        if n.is_multiple_of(run) && n < out.len() {
            acc = (op.combine)(carry, tree.before(&op.combine, n / run));
        }
    } else {
        let done;
        (done, acc) = if U::TYPE.is_float() { blocks(op, values, acc, inclusive, out) } else { (0, acc) };
        // The loop takes four elements at a time, so that only every fourth operation depends on earlier results.
        let (fours, rest) = values[done..].as_chunks::<4>();
        let (out_fours, out_rest) = out[done..].split_at_mut(4 * fours.len());
        for (&[x, y, z, last], out) in fours.iter().zip(out_fours.as_chunks_mut::<4>().0) {
            let own = [x, (op.combine)(x, y)];
            let own = [own[0], own[1], (op.combine)(own[1], z), (op.combine)(own[1], (op.combine)(z, last))];
            let up_to = own.map(|own| (op.combine)(acc, own));
            *out = if inclusive { up_to } else { [acc, up_to[0], up_to[1], up_to[2]] }.map(U::narrow);
            acc = up_to[3];
        }
        acc = sequence(op, rest, acc, inclusive, out_rest);
    }
    if n < out.len() {
        out[n] = U::narrow(acc);
    }
    acc
}

/// Writes the results of a chunk of runs, from the exclusive prefix of each run. Returns the exclusive prefix of the
/// next element.
fn chunk_results<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    befores: &[U::Acc; CHUNK_RUNS],
    run: usize,
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    match run {
        2 => sequences::<U, F, 2>(op, values, befores, inclusive, out),
        4 => sequences::<U, F, 4>(op, values, befores, inclusive, out),
        8 => sequences::<U, F, 8>(op, values, befores, inclusive, out),
        16 => sequences::<U, F, 16>(op, values, befores, inclusive, out),
        _ => each_sequence(op, values, befores, run, inclusive, out),
    }
}

/// The aggregate of `values` in any order. The lanes are few enough for registers.
fn total<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(op: &Monoid<U, F>, values: &[U::Acc]) -> U::Acc {
    const LANES: usize = 32;
    let mut lane = [op.identity; LANES];
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        lane.iter_mut().zip(row).for_each(|(acc, &x)| *acc = (op.combine)(*acc, x));
    }
    lane.iter().chain(rest).fold(op.identity, |total, &x| (op.combine)(total, x))
}

/// Writes the results of whole groups of runs, if any order is allowed.
///
/// Runs are scanned side by side. Some operators take several instructions, such as the maximum of floats, so long
/// chains of dependent operations are slow. Here only the aggregates of runs form such a chain. Returns the number of
/// elements whose results are written, and the exclusive prefix of the next one.
fn blocks<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    mut acc: U::Acc,
    inclusive: bool,
    out: &mut [U],
) -> (usize, U::Acc) {
    const RUN: usize = 8;
    const RUNS: usize = 32;
    let blocks = values.as_chunks::<RUN>().0.as_chunks::<RUNS>().0;
    let outs = out.as_chunks_mut::<RUN>().0.as_chunks_mut::<RUNS>().0;
    for (runs, outs) in blocks.iter().zip(outs) {
        let mut totals: [U::Acc; RUNS] = std::array::from_fn(|r| runs[r][0]);
        for k in 1..RUN {
            totals.iter_mut().zip(runs).for_each(|(total, run)| *total = (op.combine)(*total, run[k]));
        }
        let befores = totals.map(|total| {
            let before = acc;
            acc = (op.combine)(acc, total);
            before
        });
        side_by_side(op, runs, &befores, inclusive, outs);
    }
    (blocks.len() * RUNS * RUN, acc)
}

/// Writes the results of runs of a constant length, from the exclusive prefix of each run.
#[inline]
fn side_by_side<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc, const RUN: usize>(
    op: &Monoid<U, F>,
    runs: &[[U::Acc; RUN]],
    befores: &[U::Acc],
    inclusive: bool,
    outs: &mut [[U; RUN]],
) {
    for ((run, &before), out) in runs.iter().zip(befores).zip(outs) {
        let mut acc = before;
        for (&x, out) in run.iter().zip(out) {
            let before = acc;
            acc = (op.combine)(acc, x);
            *out = U::narrow(if inclusive { acc } else { before });
        }
    }
}

/// [`scan`] with segments, and with as many results as elements. An aggregate starts at the last segment head, if there
/// is one; its flag says whether there is.
pub(super) fn scan_segments<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc + Sync>(
    op: &Monoid<U, F>,
    run: usize,
    load: &Load<'_, U>,
    mark: &Mark<'_>,
    kind: Scan<U>,
    out: &mut [U],
) -> Result<()> {
    let tile = TILE_RUNS * run;
    let part = if !Monoid::<U, F>::NEVER_ORDERED && op.ordered { tile } else { tile.min(PART) };
    let (initial, inclusive) = start(op, kind);
    let join = |a: (U::Acc, bool), b: (U::Acc, bool)| (if b.1 { b.0 } else { (op.combine)(a.0, b.0) }, a.1 | b.1);
    let after = |carry, total: (U::Acc, bool)| (op.combine)(if total.1 { initial } else { carry }, total.0);
    let carry = |digits: &[(U::Acc, bool)]| digits.iter().fold(initial, |carry, &digit| after(carry, digit));
    let find = |first: usize, out: &[U], work: &mut Work<(U::Acc, bool), U::Acc>| {
        let mut room = std::mem::take(&mut work.values);
        let (mut heads, mut pairs) = (std::mem::take(&mut work.heads), std::mem::take(&mut work.pairs));
        for at in (0..out.len()).step_by(part) {
            let outputs = part.min(out.len() - at);
            let values = loaded(load, first + at, outputs, from(out, at, kind.reversed), &mut room);
            heads.resize(outputs, false);
            mark(first + at, &mut heads);
            if !Monoid::<U, F>::NEVER_ORDERED && op.ordered {
                let chunk = CHUNK_RUNS * run;
                let chunks = values.chunks(chunk).zip(heads.chunks(chunk)).map(|(values, heads)| {
                    if has_head(heads) {
                        pairs.clear();
                        pairs.extend(values.iter().copied().zip(heads.iter().copied()));
                        return prefixes(&join, (op.identity, false), &pairs, run);
                    }
                    let (befores, total) = prefixes(&op.combine, op.identity, values, run);
                    (befores.map(|before| (before, false)), (total, false))
                });
                work.precede(at / tile, &join, chunks);
            } else {
                let last = heads.iter().rposition(|&head| head);
                work.add(at / tile, &join, (total(op, &values[last.unwrap_or(0)..]), last.is_some()));
            }
        }
        (work.values, work.heads, work.pairs) = (room, heads, pairs);
    };
    let write = |first: usize, carries: &[U::Acc], out: &mut [U], work: &mut Work<(U::Acc, bool), U::Acc>| {
        let mut acc = initial;
        for (k, out) in parts(out, part, kind.reversed) {
            let at = k * part;
            if at.is_multiple_of(tile) {
                acc = carries[at / tile];
            }
            let values = loaded(load, first + at, out.len(), out, &mut work.values);
            let heads = &mut work.heads;
            heads.resize(out.len(), false);
            mark(first + at, heads);
            if !Monoid::<U, F>::NEVER_ORDERED && op.ordered {
                let (carry, tree, chunk) = (acc, &work.trees[at / tile], CHUNK_RUNS * run);
                let chunks = values.chunks(chunk).zip(heads.chunks(chunk)).zip(out.chunks_mut(chunk));
                for (c, ((values, heads), out)) in chunks.enumerate() {
                    let befores = tree.runs[c].map(|before| after(carry, join(tree.chunks[c], before)));
                    if !has_head(heads) {
                        acc = chunk_results(op, values, &befores, run, inclusive, out);
                        continue;
                    }
                    let runs = values.chunks(run).zip(heads.chunks(run)).zip(out.chunks_mut(run));
                    for (((values, heads), out), before) in runs.zip(befores) {
                        acc = segments(op, values, heads, (initial, before), inclusive, out);
                    }
                }
            } else {
                acc = segments(op, values, heads, (initial, acc), inclusive, out);
            }
            if kind.reversed {
                out.reverse();
            }
        }
    };
    let room = &|tiles| Work::for_segments((op.identity, false), tiles, part, op.ordered);
    each_task(out, (tile, kind.reversed), Spine::new(&join, (op.identity, false)), room, &carry, &find, &write)
}

/// Computes the aggregates of a task's tiles, given its first index in the order of the scan, and its output.
type Find<'f, U, P> = dyn Fn(usize, &[U], &mut Work<P, Acc<U>>) + Sync + 'f;
/// Writes the results of a task, given its first index in the order of the scan, and the exclusive prefix of each tile.
type Write<'f, U, P, C> = dyn Fn(usize, &[C], &mut [U], &mut Work<P, Acc<U>>) + Sync + 'f;

/// Calls `find` for each task, then computes the exclusive prefix of each tile in the order of the scan, then calls
/// `write`.
///
/// `carry` computes that prefix from the prefixes at all levels, the highest first.
fn each_task<U: Element, P: Copy + Send + Sync, C: Copy + Send + Sync, F: Fn(P, P) -> P + Sync>(
    out: &mut [U],
    (tile, reversed): (usize, bool),
    mut spine: Spine<'_, P, F>,
    room: &(dyn Fn(usize) -> Result<Work<P, Acc<U>>> + Sync),
    carry: &(dyn Fn(&[P]) -> C + Sync),
    find: &Find<'_, U, P>,
    write: &Write<'_, U, P, C>,
) -> Result<()> {
    let task = (out.len() / tile / (8 * parallel::threads())).clamp(*TASK.start(), *TASK.end()) * tile;
    let outputs = memory::collect(parts(out, task, reversed).map(|(_, out)| Mutex::new(Some(out))))?;
    parallel::in_turn(
        outputs.len(),
        &|| Ok((room(task / tile)?, None)),
        &|number, (work, out)| {
            *out = outputs[number].lock().unwrap_or_else(PoisonError::into_inner).take();
            work.totals.clear();
            find(number * task, out.as_deref().unwrap_or_default(), work);
        },
        &mut |_, (work, _)| {
            let mut carries = Vec::with_capacity(work.totals.len());
            for &total in &work.totals {
                carries.push(carry(&spine.digits()));
                spine.push(total);
            }
            carries
        },
        &|number, carries, (work, out)| write(number * task, &carries, out.take().unwrap_or_default(), work),
    )
}

/// The elements from index `at` on, in the order of the scan. If reversed, these are the first ones in memory.
pub(super) fn from<T>(elements: &[T], at: usize, reversed: bool) -> &[T] {
    if reversed { &elements[..elements.len() - at] } else { &elements[at..] }
}

/// Divides the output into parts of `len` results, in the order of the scan, with their numbers.
pub(super) fn parts<U>(
    mut out: &mut [U],
    len: usize,
    reversed: bool,
) -> impl ExactSizeIterator<Item = (usize, &mut [U])> {
    (0..out.len().div_ceil(len)).map(move |part| {
        let (first, last) = (len.min(out.len()), out.len() - len.min(out.len()));
        let taken = if reversed { out.split_off_mut(last..) } else { out.split_off_mut(..first) };
        (part, taken.unwrap_or_default())
    })
}

/// The aggregates at each level (tiles, tile groups and so on) that do not fill a group yet.
pub(super) struct Spine<'o, A, F> {
    combine: &'o F,
    identity: A,
    levels: Vec<Vec<A>>,
}

impl<'o, A: Copy, F: Fn(A, A) -> A> Spine<'o, A, F> {
    pub(super) fn new(combine: &'o F, identity: A) -> Self {
        Self { combine, identity, levels: Vec::new() }
    }

    fn before(&self, level: &[A]) -> [A; BLOCK] {
        let mut totals = [self.identity; BLOCK];
        totals[..level.len()].copy_from_slice(level);
        leaves(self.combine, self.identity, totals).0
    }

    /// Adds the aggregate of the next tile.
    pub(super) fn push(&mut self, mut total: A) {
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

    /// The exclusive prefix of the next tile within its group at each level, the highest first.
    pub(super) fn digits(&self) -> Vec<A> {
        let mut digits = Vec::with_capacity(self.levels.len());
        for level in self.levels.iter().rev() {
            digits.push(self.before(level)[level.len()]);
        }
        digits
    }
}

/// The exclusive prefixes of N values, a power of two, and their aggregate: a tree of neighbours.
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

/// The aggregates of the runs of a chunk.
fn runs<A: Copy>(combine: &impl Fn(A, A) -> A, chunk: &[A], run: usize) -> [A; CHUNK_RUNS] {
    match run {
        2 => runs_of::<A, 2>(combine, chunk),
        4 => runs_of::<A, 4>(combine, chunk),
        8 => runs_of::<A, 8>(combine, chunk),
        16 => runs_of::<A, 16>(combine, chunk),
        _ => std::array::from_fn(|k| {
            let run = &chunk[k * run..][..run];
            run[1..].iter().fold(run[0], |total, &x| combine(total, x))
        }),
    }
}

/// [`runs`] for runs of a constant length.
fn runs_of<A: Copy, const RUN: usize>(combine: &impl Fn(A, A) -> A, chunk: &[A]) -> [A; CHUNK_RUNS] {
    let runs: &[[A; RUN]; CHUNK_RUNS] = chunk.as_chunks().0.try_into().expect("a chunk has as many");
    runs.map(|run| run[1..].iter().fold(run[0], |total, &x| combine(total, x)))
}

/// The results of a task's tiles, and its buffers: accumulators of type `A`, segment-head flags, and pairs of both.
struct Work<P, A> {
    identity: P,
    totals: Vec<P>,
    /// Empty unless the order is fixed.
    trees: Vec<Tree<P>>,
    values: Vec<A>,
    heads: Vec<bool>,
    pairs: Vec<P>,
}

/// The exclusive prefixes of a tile's runs within their chunks, and of its chunks within the tile.
struct Tree<P> {
    runs: [[P; CHUNK_RUNS]; CHUNKS],
    chunks: [P; CHUNKS],
}

impl<P: Copy> Tree<P> {
    /// The exclusive prefix of run r within the tile.
    fn before(&self, combine: &impl Fn(P, P) -> P, r: usize) -> P {
        combine(self.chunks[r / CHUNK_RUNS], self.runs[r / CHUNK_RUNS][r % CHUNK_RUNS])
    }
}

impl<P: Copy, A> Work<P, A> {
    /// Buffers for `tiles` tiles and for parts of `part` elements; `ordered` means that the order is fixed.
    fn new(identity: P, tiles: usize, part: usize, ordered: bool) -> Result<Self> {
        let trees = memory::with_capacity(if ordered { tiles } else { 0 })?;
        let (totals, values) = (memory::with_capacity(tiles)?, memory::with_capacity(part)?);
        Ok(Self { identity, totals, trees, values, heads: Vec::new(), pairs: Vec::new() })
    }

    /// [`Self::new`] with buffers for flags.
    fn for_segments(identity: P, tiles: usize, part: usize, ordered: bool) -> Result<Self> {
        let (heads, pairs) = (memory::with_capacity(part)?, memory::with_capacity(if ordered { part } else { 0 })?);
        Ok(Self { heads, pairs, ..Self::new(identity, tiles, part, ordered)? })
    }

    /// Combines the aggregate of a part into that of tile t.
    fn add(&mut self, t: usize, combine: &impl Fn(P, P) -> P, total: P) {
        self.totals.resize(t + 1, self.identity);
        self.totals[t] = combine(self.totals[t], total);
    }

    /// Computes the exclusive prefix of each chunk of tile t, and the tile's aggregate. For each chunk, `of_chunks` has
    /// the exclusive prefixes of its runs, and its aggregate.
    fn precede(
        &mut self,
        t: usize,
        combine: &impl Fn(P, P) -> P,
        of_chunks: impl Iterator<Item = ([P; CHUNK_RUNS], P)>,
    ) {
        let mut totals = [self.identity; CHUNKS];
        while self.trees.len() <= t {
            self.trees.push(Tree { runs: [[self.identity; CHUNK_RUNS]; CHUNKS], chunks: totals });
        }
        let tree = &mut self.trees[t];
        for ((runs, total), of_chunk) in tree.runs.iter_mut().zip(&mut totals).zip(of_chunks) {
            (*runs, *total) = of_chunk;
        }
        let (chunks, total) = leaves(combine, self.identity, totals);
        tree.chunks = chunks;
        self.totals.push(total);
    }
}

/// The exclusive prefixes of the runs of a chunk, and its aggregate. The last chunk may be short.
fn prefixes<P: Copy>(combine: &impl Fn(P, P) -> P, identity: P, chunk: &[P], run: usize) -> ([P; CHUNK_RUNS], P) {
    let len = CHUNK_RUNS * run;
    let padded: Vec<P>;
    let chunk = if chunk.len() == len {
        chunk
    } else {
        padded = chunk.iter().copied().chain(std::iter::repeat(identity)).take(len).collect();
        &padded
    };
    leaves(combine, identity, runs(combine, chunk, run))
}

/// Returns whether a segment starts at any of the elements.
fn has_head(heads: &[bool]) -> bool {
    heads.iter().fold(false, |any, &head| any | head)
}

/// Writes the results of a chunk's runs, from the exclusive prefix of each run. Returns the exclusive prefix of the
/// next element.
fn each_sequence<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    befores: &[U::Acc],
    run: usize,
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    let mut acc = befores[0];
    for ((values, &before), out) in values.chunks(run).zip(befores).zip(out.chunks_mut(run)) {
        acc = sequence(op, values, before, inclusive, out);
    }
    acc
}

/// [`each_sequence`] for runs of a constant length, if the chunk is whole.
fn sequences<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc, const RUN: usize>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    befores: &[U::Acc; CHUNK_RUNS],
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    let ((runs, rest), (outs, out_rest)) = (values.as_chunks::<RUN>(), out.as_chunks_mut::<RUN>());
    if runs.len() < CHUNK_RUNS || outs.len() < CHUNK_RUNS || !rest.is_empty() || !out_rest.is_empty() {
        return each_sequence(op, values, befores, RUN, inclusive, out);
    }
    side_by_side(op, runs, befores, inclusive, outs);
    runs[CHUNK_RUNS - 1].iter().fold(befores[CHUNK_RUNS - 1], |acc, &x| (op.combine)(acc, x))
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

/// Writes the results of consecutive elements, some of which start segments. `acc` is the exclusive prefix of the first
/// one.
#[inline]
fn segments<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(
    op: &Monoid<U, F>,
    values: &[U::Acc],
    heads: &[bool],
    (initial, mut acc): (U::Acc, U::Acc),
    inclusive: bool,
    out: &mut [U],
) -> U::Acc {
    for ((&x, &head), out) in values.iter().zip(heads).zip(out) {
        // Branch-free, since the heads of short segments are hard to predict.
        let before = std::hint::select_unpredictable(head, initial, acc);
        acc = (op.combine)(before, x);
        *out = U::narrow(if inclusive { acc } else { before });
    }
    acc
}
