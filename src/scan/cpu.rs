//! Scans on the CPU: the order of `cl/scan.cl`, tiles in parallel. They are read a second time while the caches have them.

use std::{
    ops::RangeInclusive,
    sync::{Mutex, PoisonError},
};

use super::Scan;
use crate::{Element, op::Monoid, parallel};

/// Runs of a chunk, chunks of a tile, and its runs; as in `cl/scan.cl`.
pub const CHUNK_RUNS: usize = 32;
pub(super) const CHUNKS: usize = 64;
pub const TILE_RUNS: usize = CHUNKS * CHUNK_RUNS;
/// Tiles of a block, and blocks of the next larger.
pub const BLOCK: usize = 32;
/// Tiles of a task, more where each thread has some: their elements and results, 64 KiB a tile, stay in the second-level cache, or
/// nearly.
const TASK: RangeInclusive<usize> = 4..=16;
/// Elements that are taken at once where any order will do: they stay in the first-level cache.
const PART: usize = 4096;

/// Elements of a run of `T`: 16 bytes.
pub const fn run<T>() -> usize {
    16 / size_of::<T>()
}

/// Elements of a tile of `T`.
pub const fn tile<T>() -> usize {
    TILE_RUNS * run::<T>()
}

/// The accumulators of so many elements, from one on in the order of the scan: where they lie, or else in the room that it is
/// given. It is given the outputs from there on, too, which may be the elements; if reversed, those up to there.
pub(super) type Load<'l, U> = dyn Fn(usize, usize, &[U], &mut Vec<Acc<U>>) -> Option<&'l [Acc<U>]> + Sync + 'l;
type Acc<U> = <U as Element>::Acc;

/// An element as accumulators of `U` take it: a function of its own, since a closure would be one for each operator too.
pub(super) fn widened<T: Element, U: Element + From<T>>(x: T) -> U::Acc {
    U::from(x).widen()
}

/// What `take` gives for the elements of `input`; `plain` tells that it converts them only.
pub(super) fn load<'i, T: Element, U: Element>(
    input: &'i [T],
    take: &'i (impl Fn(T) -> U::Acc + Sync),
    plain: bool,
    reversed: bool,
) -> Box<Load<'i, U>> {
    if plain && !reversed && T::TYPE == U::Acc::TYPE {
        let accs: &[U::Acc] = bytemuck::cast_slice(input);
        return Box::new(move |first, len, _, _| Some(&accs[first..first + len]));
    }
    Box::new(move |first, len, _, room| {
        put(room, from(input, first, reversed), len, reversed, take);
        None
    })
}

/// The elements are in the outputs.
pub(super) fn load_in_place<U: Element>(reversed: bool) -> Box<Load<'static, U>> {
    Box::new(move |_, len, x, room| {
        put(room, x, len, reversed, &U::widen);
        None
    })
}

/// Adds what `take` gives for the first `len` elements, or the last ones.
fn put<T: Copy, A>(room: &mut Vec<A>, elements: &[T], len: usize, reversed: bool, take: &impl Fn(T) -> A) {
    if reversed {
        room.extend(elements.iter().rev().take(len).map(|&x| take(x)));
    } else {
        room.extend(elements[..len].iter().map(|&x| take(x)));
    }
}

/// What `load` gives.
fn loaded<'r, U: Element>(
    load: &'r Load<'_, U>,
    first: usize,
    len: usize,
    out: &[U],
    room: &'r mut Vec<Acc<U>>,
) -> &'r [Acc<U>] {
    room.clear();
    load(first, len, out, room).unwrap_or(room)
}

/// Tells of as many elements as there is room for, from one on in the order of the scan, whether a segment starts there.
pub(super) type Mark<'m> = dyn Fn(usize, &mut [bool]) + Sync + 'm;

/// Where a scan starts, and whether results have their own elements.
pub fn start<U: Element, F>(op: &Monoid<U, F>, kind: Scan<U>) -> (U::Acc, bool) {
    kind.initial.map_or((op.identity, true), |initial| (initial.widen(), false))
}

/// Scans n elements in runs of `run`, the first one first. `out` has one more, if it is to have the total.
pub(super) fn scan<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc + Sync>(
    op: &Monoid<U, F>,
    n: usize,
    run: usize,
    load: &Load<'_, U>,
    kind: Scan<U>,
    out: &mut [U],
) {
    let tile = TILE_RUNS * run;
    let part = if !Monoid::<U, F>::NEVER_ORDERED && op.ordered { tile } else { tile.min(PART) };
    let (initial, inclusive) = start(op, kind);
    let spine = Spine::new(&op.combine, op.identity);
    let carry = |digits: &[U::Acc]| digits.iter().fold(initial, |carry, &digit| (op.combine)(carry, digit));
    let find = |first: usize, out: &[U], work: &mut Work<U::Acc>| {
        let room = &mut Vec::new();
        for at in (0..out.len()).step_by(part) {
            let outputs = part.min(out.len() - at);
            let len = outputs.min(n - (first + at));
            let values = loaded(load, first + at, len, from(out, at, kind.reversed), room);
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
    };
    let write = |first: usize, carries: &[U::Acc], out: &mut [U], work: &mut Work<U::Acc>| {
        let (mut carry, room) = (initial, &mut Vec::new());
        for (k, out) in parts(out, part, kind.reversed) {
            let at = k * part;
            if at.is_multiple_of(tile) {
                carry = carries[at / tile];
            }
            let values = loaded(load, first + at, out.len().min(n - (first + at)), out, room);
            carry = results(op, values, work.trees.get(at / tile), run, carry, inclusive, out);
            if kind.reversed {
                out.reverse();
            }
        }
    };
    each_task(out, tile, kind.reversed, spine, &carry, &find, &write);
}

/// The results of a tile, whose tree there is where an order is asked for, or of a part of one; one more, if `out` has room for
/// it. Returns what precedes the next part.
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
            // All of a chunk's, so that none waits for another.
            let befores = tree.runs[c].map(|before| (op.combine)(carry, (op.combine)(tree.chunks[c], before)));
            acc = chunk_results(op, values, &befores, run, inclusive, out);
        }
        if n.is_multiple_of(run) && n < out.len() {
            acc = (op.combine)(carry, tree.before(&op.combine, n / run));
        }
    } else {
        let done;
        (done, acc) = if U::TYPE.is_float() { blocks(op, values, acc, inclusive, out) } else { (0, acc) };
        // Four at a time, of which one waits for those before.
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

/// The results of a chunk of runs, from the exclusive prefix of each; returns the exclusive prefix of the next element.
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

/// The aggregate of values in any order: of so few lanes that they lie in registers.
fn total<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(op: &Monoid<U, F>, values: &[U::Acc]) -> U::Acc {
    const LANES: usize = 32;
    let mut lane = [op.identity; LANES];
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        lane.iter_mut().zip(row).for_each(|(acc, &x)| *acc = (op.combine)(*acc, x));
    }
    lane.iter().chain(rest).fold(op.identity, |total, &x| (op.combine)(total, x))
}

/// The results of whole blocks of runs where any order will do. Runs are scanned side by side: an operator such as the maximum
/// of floats takes several operations, which only the aggregates of runs do one after another. Returns the number of elements,
/// and the exclusive prefix of the next one.
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

/// The results of runs whose length the compiler knows, from the exclusive prefix of each.
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

/// The same where segments start anew: as many results as elements. A total is that from the last start on, and whether there
/// is one.
pub(super) fn scan_segments<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc + Sync>(
    op: &Monoid<U, F>,
    run: usize,
    load: &Load<'_, U>,
    mark: &Mark<'_>,
    kind: Scan<U>,
    out: &mut [U],
) {
    let tile = TILE_RUNS * run;
    let part = if !Monoid::<U, F>::NEVER_ORDERED && op.ordered { tile } else { tile.min(PART) };
    let (initial, inclusive) = start(op, kind);
    let join = |a: (U::Acc, bool), b: (U::Acc, bool)| (if b.1 { b.0 } else { (op.combine)(a.0, b.0) }, a.1 | b.1);
    let after = |carry, total: (U::Acc, bool)| (op.combine)(if total.1 { initial } else { carry }, total.0);
    let carry = |digits: &[(U::Acc, bool)]| digits.iter().fold(initial, |carry, &digit| after(carry, digit));
    let find = |first: usize, out: &[U], work: &mut Work<(U::Acc, bool)>| {
        let (mut room, mut heads) = (Vec::new(), Vec::new());
        for at in (0..out.len()).step_by(part) {
            let outputs = part.min(out.len() - at);
            let values = loaded(load, first + at, outputs, from(out, at, kind.reversed), &mut room);
            heads.resize(outputs, false);
            mark(first + at, &mut heads);
            if !Monoid::<U, F>::NEVER_ORDERED && op.ordered {
                let chunk = CHUNK_RUNS * run;
                let chunks = values.chunks(chunk).zip(heads.chunks(chunk)).map(|(values, heads)| {
                    if has_head(heads) {
                        let pairs: Vec<_> = values.iter().copied().zip(heads.iter().copied()).collect();
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
    };
    let write = |first: usize, carries: &[U::Acc], out: &mut [U], work: &mut Work<(U::Acc, bool)>| {
        let (mut acc, mut room, mut heads) = (initial, Vec::new(), Vec::new());
        for (k, out) in parts(out, part, kind.reversed) {
            let at = k * part;
            if at.is_multiple_of(tile) {
                acc = carries[at / tile];
            }
            let values = loaded(load, first + at, out.len(), out, &mut room);
            heads.resize(out.len(), false);
            mark(first + at, &mut heads);
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
                acc = segments(op, values, &heads, (initial, acc), inclusive, out);
            }
            if kind.reversed {
                out.reverse();
            }
        }
    };
    each_task(out, tile, kind.reversed, Spine::new(&join, (op.identity, false)), &carry, &find, &write);
}

/// Finds what the tiles of a task come to, from its first element on, given its outputs.
type Find<'f, U, P> = dyn Fn(usize, &[U], &mut Work<P>) + Sync + 'f;
/// Writes the results of a task, from its first element on, given what precedes each of its tiles.
type Write<'f, U, P, C> = dyn Fn(usize, &[C], &mut [U], &mut Work<P>) + Sync + 'f;

/// Has what the tiles come to found, then finds what precedes each in the order of the scan, which `carry` tells from the digits
/// of its number, the highest first; and has the results written.
fn each_task<U: Send + Sync, P: Copy + Send + Sync, C: Copy + Send + Sync, F: Fn(P, P) -> P + Sync>(
    out: &mut [U],
    tile: usize,
    reversed: bool,
    mut spine: Spine<'_, P, F>,
    carry: &(dyn Fn(&[P]) -> C + Sync),
    find: &Find<'_, U, P>,
    write: &Write<'_, U, P, C>,
) {
    let task = (out.len() / tile / (8 * parallel::threads())).clamp(*TASK.start(), *TASK.end()) * tile;
    let outputs: Vec<_> = parts(out, task, reversed).into_iter().map(|(_, out)| Mutex::new(Some(out))).collect();
    let identity = spine.identity;
    parallel::in_turn(
        outputs.len(),
        &|| (Work::new(identity), None),
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
    );
}

/// The elements from one on in the order of the scan; if reversed, those up to there.
fn from<T>(elements: &[T], at: usize, reversed: bool) -> &[T] {
    if reversed { &elements[..elements.len() - at] } else { &elements[at..] }
}

/// Parts of `len` results in the order of the scan, with their numbers.
fn parts<U>(out: &mut [U], len: usize, reversed: bool) -> Vec<(usize, &mut [U])> {
    if reversed { out.rchunks_mut(len).enumerate().collect() } else { out.chunks_mut(len).enumerate().collect() }
}

/// At each level, of tiles, blocks of them and so on, the totals that are no whole block yet.
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

    /// Takes the total of the next tile.
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

    /// What precedes the next tile at each level, the highest first.
    pub(super) fn digits(&self) -> Vec<A> {
        let mut digits = Vec::with_capacity(self.levels.len());
        for level in self.levels.iter().rev() {
            digits.push(self.before(level)[level.len()]);
        }
        digits
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

/// The totals of the runs of a chunk.
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

/// The same of a length that the compiler knows.
fn runs_of<A: Copy, const RUN: usize>(combine: &impl Fn(A, A) -> A, chunk: &[A]) -> [A; CHUNK_RUNS] {
    let runs: &[[A; RUN]; CHUNK_RUNS] = chunk.as_chunks().0.try_into().expect("a chunk has as many");
    runs.map(|run| run[1..].iter().fold(run[0], |total, &x| combine(total, x)))
}

/// What a task has of its tiles.
struct Work<P> {
    identity: P,
    totals: Vec<P>,
    /// Where an order is asked for.
    trees: Vec<Tree<P>>,
}

/// Of a tile's runs, what precedes each in its chunk; of its chunks, in the tile.
struct Tree<P> {
    runs: [[P; CHUNK_RUNS]; CHUNKS],
    chunks: [P; CHUNKS],
}

impl<P: Copy> Tree<P> {
    /// What precedes run r in the tile.
    fn before(&self, combine: &impl Fn(P, P) -> P, r: usize) -> P {
        combine(self.chunks[r / CHUNK_RUNS], self.runs[r / CHUNK_RUNS][r % CHUNK_RUNS])
    }
}

impl<P: Copy> Work<P> {
    fn new(identity: P) -> Self {
        Self { identity, totals: Vec::new(), trees: Vec::new() }
    }

    /// A part's total goes to that of tile t.
    fn add(&mut self, t: usize, combine: &impl Fn(P, P) -> P, total: P) {
        self.totals.resize(t + 1, self.identity);
        self.totals[t] = combine(self.totals[t], total);
    }

    /// Finds what precedes each chunk of tile t, and its total, from what precedes each run of a chunk and the chunk's total.
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

/// What precedes each run of a chunk, and its total. The last chunk may be short.
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

/// Whether a segment starts at some element.
fn has_head(heads: &[bool]) -> bool {
    heads.iter().fold(false, |any, &head| any | head)
}

/// The results of a chunk's runs, from what precedes each; returns what precedes the next element.
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

/// The same of runs of a length that the compiler knows, where the chunk is whole.
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

/// The results of neighbours, of which some start segments; `acc` precedes the first one.
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
        // Not by a branch: heads of short segments are hard to predict.
        let before = std::hint::select_unpredictable(head, initial, acc);
        acc = (op.combine)(before, x);
        *out = U::narrow(if inclusive { acc } else { before });
    }
    acc
}
