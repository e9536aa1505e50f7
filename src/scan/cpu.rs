//! Scans on the CPU: the order of `cl/scan.cl`. Threads share the tiles. Elements are read a second time while the
//! caches hold them.

use std::{
    borrow::Cow,
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
const _: () = assert!(CHUNKS == 2 * BLOCK && CHUNK_RUNS == BLOCK);
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

/// The loops of scans that call the operator. They are compiled for each operator, and all other code once for each
/// type.
///
/// An iterator whose closure calls the operator has another type for each operator. These loops use no such iterators,
/// so that the compiler does not copy their code.
pub(super) trait Loops<U: Element>: Sync {
    /// True if the order of the operations is fixed.
    fn ordered(&self) -> bool;

    /// The initial accumulator, and whether the scan is inclusive.
    fn start(&self, kind: Scan<U>) -> (Acc<U>, bool);

    fn identity(&self) -> Acc<U>;

    fn join(&self) -> &dyn Join<Acc<U>>;

    /// Joins aggregates of neighbouring ranges. An aggregate starts at the last segment head of its range. Its flag is
    /// true if the range has one.
    fn join_flagged(&self) -> Box<dyn Join<Flagged<U>> + '_>;

    /// The aggregate of `values` in any order.
    fn total(&self, values: &[Acc<U>]) -> Acc<U>;

    /// The exclusive prefixes of the runs of a chunk, and its aggregate. The chunk is whole.
    fn prefixes(&self, chunk: &[Acc<U>]) -> Prefixes<Acc<U>>;

    /// [`Self::prefixes`] with segments.
    fn prefixes_flagged(&self, chunk: &[Flagged<U>]) -> Prefixes<Flagged<U>>;

    /// Writes the results of a part, if any order is allowed. Returns the exclusive prefix of the next element.
    fn write(&self, values: &[Acc<U>], acc: Acc<U>, inclusive: bool, out: &mut [U]) -> Acc<U>;

    /// Writes the results of a chunk of runs, from the exclusive prefix of each run. Returns the exclusive prefix of the
    /// next element.
    fn write_chunk(&self, values: &[Acc<U>], befores: &[Acc<U>; CHUNK_RUNS], inclusive: bool, out: &mut [U]) -> Acc<U>;

    /// Writes the results of consecutive elements, some of which start segments. `acc` is the exclusive prefix of the
    /// first one.
    fn write_segments(
        &self,
        values: &[Acc<U>],
        heads: &[bool],
        start: (Acc<U>, Acc<U>),
        inclusive: bool,
        out: &mut [U],
    ) -> Acc<U>;
}

/// An aggregate, and whether a segment starts in its range.
type Flagged<U> = (Acc<U>, bool);
/// The exclusive prefixes of the runs of a chunk, and the chunk's aggregate.
type Prefixes<P> = ([P; CHUNK_RUNS], P);

/// Combines aggregates of type `P`.
pub(super) trait Join<P>: Sync {
    fn join(&self, a: P, b: P) -> P;

    /// `join(carry, join(chunk, run))` for each of `runs`.
    fn join_each(&self, carry: P, chunk: P, runs: &[P; CHUNK_RUNS]) -> [P; CHUNK_RUNS];

    /// The exclusive prefixes of the aggregates of a group, and the group's aggregate.
    fn group(&self, identity: P, totals: [P; BLOCK]) -> ([P; BLOCK], P);
}

impl<P: Copy, F: Fn(P, P) -> P + Sync> Join<P> for F {
    fn join(&self, a: P, b: P) -> P {
        self(a, b)
    }

    fn join_each(&self, carry: P, chunk: P, runs: &[P; CHUNK_RUNS]) -> [P; CHUNK_RUNS] {
        let mut joined = *runs;
        for run in &mut joined {
            *run = self(carry, self(chunk, *run));
        }
        joined
    }

    fn group(&self, identity: P, totals: [P; BLOCK]) -> ([P; BLOCK], P) {
        leaves(self, identity, totals)
    }
}

/// Scans n elements in runs of 16 bytes. If `out` has one more element, it receives the initial accumulator combined
/// with all elements.
pub(super) fn scan<U: Element>(
    op: &dyn Loops<U>,
    n: usize,
    load: &Load<'_, U>,
    kind: Scan<U>,
    out: &mut [U],
) -> Result<()> {
    let (tile, chunk, ordered) = (tile::<U>(), CHUNK_RUNS * run::<U>(), op.ordered());
    let part = if ordered { tile } else { tile.min(PART) };
    let (initial, inclusive) = op.start(kind);
    let (join, identity) = (op.join(), op.identity());
    let carry = |digits: &[Acc<U>]| {
        let mut carry = initial;
        for &digit in digits {
            carry = join.join(carry, digit);
        }
        carry
    };
    let find = |first: usize, out: &[U], work: &mut Work<Acc<U>, Acc<U>>| {
        let mut room = std::mem::take(&mut work.values);
        for at in (0..out.len()).step_by(part) {
            let outputs = part.min(out.len() - at);
            let len = outputs.min(n - (first + at));
            let values = loaded(load, first + at, len, from(out, at, kind.reversed), &mut room);
            if ordered {
                work.precede(at / tile, join, values.len().div_ceil(chunk), &mut |c| {
                    let chunk = &values[c * chunk..values.len().min((c + 1) * chunk)];
                    op.prefixes(&padded(chunk, identity, CHUNK_RUNS * run::<U>()))
                });
            } else {
                work.add(at / tile, join, op.total(values));
            }
        }
        work.values = room;
    };
    let write = |first: usize, carries: &[Acc<U>], out: &mut [U], work: &mut Work<Acc<U>, Acc<U>>| {
        let mut carry = initial;
        for (k, out) in parts(out, part, kind.reversed) {
            let at = k * part;
            if at.is_multiple_of(tile) {
                carry = carries[at / tile];
            }
            let len = out.len().min(n - (first + at));
            let values = loaded(load, first + at, len, out, &mut work.values);
            carry = if ordered {
                write_tile(op, values, &work.trees[at / tile], carry, inclusive, out)
            } else {
                op.write(values, carry, inclusive, out)
            };
            if len < out.len() {
                out[len] = U::narrow(carry);
            }
            if kind.reversed {
                out.reverse();
            }
        }
    };
    let room = &|tiles| Work::new(identity, tiles, part, ordered);
    each_task(out, (tile, kind.reversed), Spine::new(join, identity), room, &carry, &find, &write)
}

/// Writes the results of a tile, in the fixed order. Returns the exclusive prefix of the element after it.
fn write_tile<U: Element>(
    op: &dyn Loops<U>,
    values: &[Acc<U>],
    tree: &Tree<Acc<U>>,
    carry: Acc<U>,
    inclusive: bool,
    out: &mut [U],
) -> Acc<U> {
    let (n, run, join) = (values.len(), run::<U>(), op.join());
    let (chunk, mut acc) = (CHUNK_RUNS * run, carry);
    for (c, (values, out)) in values.chunks(chunk).zip(out.chunks_mut(chunk)).enumerate() {
        // This computes the prefixes of all runs of the chunk first, so that no run waits for another.
        let befores = join.join_each(carry, tree.chunks[c], &tree.runs[c]);
        acc = op.write_chunk(values, &befores, inclusive, out);
    }
    if n.is_multiple_of(run) && n < out.len() {
        acc = join.join(carry, tree.before(join, n / run));
    }
    acc
}

impl<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc + Sync> Loops<U> for Monoid<U, F> {
    fn ordered(&self) -> bool {
        !Self::NEVER_ORDERED && self.ordered
    }

    fn start(&self, kind: Scan<U>) -> (Acc<U>, bool) {
        start(self, kind)
    }

    fn identity(&self) -> Acc<U> {
        self.identity
    }

    fn join(&self) -> &dyn Join<Acc<U>> {
        &self.combine
    }

    fn join_flagged(&self) -> Box<dyn Join<Flagged<U>> + '_> {
        Box::new(flagged(&self.combine))
    }

    fn total(&self, values: &[Acc<U>]) -> Acc<U> {
        // The lanes are few enough for registers.
        const LANES: usize = 32;
        let mut lanes = [self.identity; LANES];
        let (rows, rest) = values.as_chunks::<LANES>();
        for row in rows {
            for (acc, &x) in lanes.iter_mut().zip(row) {
                *acc = (self.combine)(*acc, x);
            }
        }
        let mut total = self.identity;
        for &x in &lanes {
            total = (self.combine)(total, x);
        }
        for &x in rest {
            total = (self.combine)(total, x);
        }
        total
    }

    fn prefixes(&self, chunk: &[Acc<U>]) -> Prefixes<Acc<U>> {
        if const { Self::NEVER_ORDERED } {
            unreachable!("no order is fixed");
        }
        leaves(&self.combine, self.identity, runs(&self.combine, chunk, run::<U>()))
    }

    fn prefixes_flagged(&self, chunk: &[Flagged<U>]) -> Prefixes<Flagged<U>> {
        if const { Self::NEVER_ORDERED } {
            unreachable!("no order is fixed");
        }
        let join = flagged(&self.combine);
        leaves(&join, (self.identity, false), runs(&join, chunk, run::<U>()))
    }

    fn write(&self, values: &[Acc<U>], mut acc: Acc<U>, inclusive: bool, out: &mut [U]) -> Acc<U> {
        let mut done = 0;
        if const { U::TYPE.is_float() } {
            (done, acc) = blocks(self, values, acc, inclusive, out);
        }
        // The loop takes four elements at a time, so that only every fourth operation depends on earlier results.
        let (fours, rest) = values[done..].as_chunks::<4>();
        let (out_fours, out_rest) = out[done..].split_at_mut(4 * fours.len());
        let combine = &self.combine;
        for (&[x, y, z, last], out) in fours.iter().zip(out_fours.as_chunks_mut::<4>().0) {
            let two = combine(x, y);
            let (three, four) = (combine(two, z), combine(two, combine(z, last)));
            let up_to = [combine(acc, x), combine(acc, two), combine(acc, three), combine(acc, four)];
            let [a, b, c, d] = if inclusive { up_to } else { [acc, up_to[0], up_to[1], up_to[2]] };
            *out = [U::narrow(a), U::narrow(b), U::narrow(c), U::narrow(d)];
            acc = up_to[3];
        }
        sequence(self, rest, acc, inclusive, out_rest)
    }

    fn write_chunk(&self, values: &[Acc<U>], befores: &[Acc<U>; CHUNK_RUNS], inclusive: bool, out: &mut [U]) -> Acc<U> {
        if const { Self::NEVER_ORDERED } {
            unreachable!("no order is fixed");
        }
        if const { run::<U>() == 2 } {
            sequences::<U, F, 2>(self, values, befores, inclusive, out)
        } else if const { run::<U>() == 4 } {
            sequences::<U, F, 4>(self, values, befores, inclusive, out)
        } else if const { run::<U>() == 8 } {
            sequences::<U, F, 8>(self, values, befores, inclusive, out)
        } else {
            sequences::<U, F, 16>(self, values, befores, inclusive, out)
        }
    }

    fn write_segments(
        &self,
        values: &[Acc<U>],
        heads: &[bool],
        (initial, mut acc): (Acc<U>, Acc<U>),
        inclusive: bool,
        out: &mut [U],
    ) -> Acc<U> {
        for ((&x, &head), out) in values.iter().zip(heads).zip(out) {
            // This has no branch, since the segment heads of short segments are hard to predict.
            let before = std::hint::select_unpredictable(head, initial, acc);
            acc = (self.combine)(before, x);
            *out = U::narrow(if inclusive { acc } else { before });
        }
        acc
    }
}

/// Joins aggregates of neighbouring ranges, each from the last segment head of its range on, if there is one.
fn flagged<A: Copy>(combine: &(impl Fn(A, A) -> A + Sync)) -> impl Fn((A, bool), (A, bool)) -> (A, bool) + Sync {
    |a, b| (if b.1 { b.0 } else { combine(a.0, b.0) }, a.1 | b.1)
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
        let mut befores = [op.identity; RUNS];
        for k in 0..RUN {
            for (total, run) in befores.iter_mut().zip(runs) {
                *total = if k == 0 { run[0] } else { (op.combine)(*total, run[k]) };
            }
        }
        for before in &mut befores {
            let total = *before;
            *before = acc;
            acc = (op.combine)(acc, total);
        }
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
pub(super) fn scan_segments<U: Element>(
    op: &dyn Loops<U>,
    load: &Load<'_, U>,
    mark: &Mark<'_>,
    kind: Scan<U>,
    out: &mut [U],
) -> Result<()> {
    let (tile, run, ordered) = (tile::<U>(), run::<U>(), op.ordered());
    let (part, chunk) = (if ordered { tile } else { tile.min(PART) }, CHUNK_RUNS * run);
    let (initial, inclusive) = op.start(kind);
    let (join, identity, plain) = (&*op.join_flagged(), op.identity(), op.join());
    let after = |carry, total: Flagged<U>| plain.join(if total.1 { initial } else { carry }, total.0);
    let carry = |digits: &[Flagged<U>]| {
        let mut carry = initial;
        for &digit in digits {
            carry = after(carry, digit);
        }
        carry
    };
    let find = |first: usize, out: &[U], work: &mut Work<Flagged<U>, Acc<U>>| {
        let mut room = std::mem::take(&mut work.values);
        let (mut heads, mut pairs) = (std::mem::take(&mut work.heads), std::mem::take(&mut work.pairs));
        for at in (0..out.len()).step_by(part) {
            let outputs = part.min(out.len() - at);
            let values = loaded(load, first + at, outputs, from(out, at, kind.reversed), &mut room);
            heads.resize(outputs, false);
            mark(first + at, &mut heads);
            if ordered {
                work.precede(at / tile, join, values.len().div_ceil(chunk), &mut |c| {
                    let part = c * chunk..values.len().min((c + 1) * chunk);
                    let (values, heads) = (&values[part.clone()], &heads[part]);
                    if has_head(heads) {
                        pairs.clear();
                        for (&value, &head) in values.iter().zip(heads) {
                            pairs.push((value, head));
                        }
                        return op.prefixes_flagged(&padded(&pairs, (identity, false), chunk));
                    }
                    let (befores, total) = op.prefixes(&padded(values, identity, chunk));
                    let mut pairs = [(identity, false); CHUNK_RUNS];
                    for (pair, before) in pairs.iter_mut().zip(befores) {
                        pair.0 = before;
                    }
                    (pairs, (total, false))
                });
            } else {
                let last = heads.iter().rposition(|&head| head);
                work.add(at / tile, join, (op.total(&values[last.unwrap_or(0)..]), last.is_some()));
            }
        }
        (work.values, work.heads, work.pairs) = (room, heads, pairs);
    };
    let write = |first: usize, carries: &[Acc<U>], out: &mut [U], work: &mut Work<Flagged<U>, Acc<U>>| {
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
            if ordered {
                let (carry, tree) = (acc, &work.trees[at / tile]);
                let chunks = values.chunks(chunk).zip(heads.chunks(chunk)).zip(out.chunks_mut(chunk));
                for (c, ((values, heads), out)) in chunks.enumerate() {
                    let mut befores = [initial; CHUNK_RUNS];
                    for (to, &before) in befores.iter_mut().zip(&tree.runs[c]) {
                        *to = after(carry, join.join(tree.chunks[c], before));
                    }
                    if !has_head(heads) {
                        acc = op.write_chunk(values, &befores, inclusive, out);
                        continue;
                    }
                    let runs = values.chunks(run).zip(heads.chunks(run)).zip(out.chunks_mut(run));
                    for (((values, heads), out), before) in runs.zip(befores) {
                        acc = op.write_segments(values, heads, (initial, before), inclusive, out);
                    }
                }
            } else {
                acc = op.write_segments(values, heads, (initial, acc), inclusive, out);
            }
            if kind.reversed {
                out.reverse();
            }
        }
    };
    let room = &|tiles| Work::for_segments((identity, false), tiles, part, ordered);
    each_task(out, (tile, kind.reversed), Spine::new(join, (identity, false)), room, &carry, &find, &write)
}

/// `chunk`, or a copy with `identity` after its elements if it is shorter than `len`.
fn padded<P: Copy>(chunk: &[P], identity: P, len: usize) -> Cow<'_, [P]> {
    if chunk.len() == len {
        return Cow::Borrowed(chunk);
    }
    let mut padded = Vec::with_capacity(len);
    padded.extend_from_slice(chunk);
    padded.resize(len, identity);
    Cow::Owned(padded)
}

/// Computes the aggregates of a task's tiles, given its first index in the order of the scan, and its output.
type Find<'f, U, P> = dyn Fn(usize, &[U], &mut Work<P, Acc<U>>) + Sync + 'f;
/// Writes the results of a task, given its first index in the order of the scan, and the exclusive prefix of each tile.
type Write<'f, U, P, C> = dyn Fn(usize, &[C], &mut [U], &mut Work<P, Acc<U>>) + Sync + 'f;

/// Calls `find` for each task, then computes the exclusive prefix of each tile in the order of the scan, then calls
/// `write`.
///
/// `carry` computes that prefix from the prefixes at all levels, the highest first.
fn each_task<U: Element, P: Copy + Send + Sync, C: Copy + Send + Sync>(
    out: &mut [U],
    (tile, reversed): (usize, bool),
    mut spine: Spine<'_, P>,
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
pub(super) struct Spine<'o, A> {
    join: &'o dyn Join<A>,
    identity: A,
    levels: Vec<Vec<A>>,
}

impl<'o, A: Copy> Spine<'o, A> {
    pub(super) fn new(join: &'o dyn Join<A>, identity: A) -> Self {
        Self { join, identity, levels: Vec::new() }
    }

    fn before(&self, level: &[A]) -> [A; BLOCK] {
        let mut totals = [self.identity; BLOCK];
        totals[..level.len()].copy_from_slice(level);
        self.join.group(self.identity, totals).0
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
            total = self.join.join(self.before(&self.levels[level])[BLOCK - 1], total);
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

/// The aggregates of the runs of a whole chunk.
#[inline]
fn runs<A: Copy>(combine: &impl Fn(A, A) -> A, chunk: &[A], run: usize) -> [A; CHUNK_RUNS] {
    let mut totals = [chunk[0]; CHUNK_RUNS];
    for (total, run) in totals.iter_mut().zip(chunk.chunks_exact(run)) {
        *total = run[0];
        for &x in &run[1..] {
            *total = combine(*total, x);
        }
    }
    totals
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
    fn before(&self, join: &dyn Join<P>, r: usize) -> P {
        join.join(self.chunks[r / CHUNK_RUNS], self.runs[r / CHUNK_RUNS][r % CHUNK_RUNS])
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
    fn add(&mut self, t: usize, join: &dyn Join<P>, total: P) {
        self.totals.resize(t + 1, self.identity);
        self.totals[t] = join.join(self.totals[t], total);
    }

    /// Computes the exclusive prefix of each of the `chunks` chunks of tile t, and the tile's aggregate. `of_chunk`
    /// returns the exclusive prefixes of a chunk's runs, and the chunk's aggregate.
    fn precede(&mut self, t: usize, join: &dyn Join<P>, chunks: usize, of_chunk: &mut dyn FnMut(usize) -> Prefixes<P>) {
        let mut totals = [self.identity; CHUNKS];
        while self.trees.len() <= t {
            self.trees.push(Tree { runs: [[self.identity; CHUNK_RUNS]; CHUNKS], chunks: totals });
        }
        let tree = &mut self.trees[t];
        for (c, (runs, total)) in tree.runs.iter_mut().zip(&mut totals).take(chunks).enumerate() {
            (*runs, *total) = of_chunk(c);
        }
        // A tile has two groups of chunks.
        let (groups, _) = totals.as_chunks();
        let ((low, first), (high, second)) =
            (join.group(self.identity, groups[0]), join.group(self.identity, groups[1]));
        tree.chunks[..BLOCK].copy_from_slice(&low);
        for (to, before) in tree.chunks[BLOCK..].iter_mut().zip(high) {
            *to = join.join(first, before);
        }
        self.totals.push(join.join(first, second));
    }
}

/// Returns whether a segment starts at any of the elements.
fn has_head(heads: &[bool]) -> bool {
    heads.iter().fold(false, |any, &head| any | head)
}

/// [`Loops::write_chunk`] for a chunk that may be short.
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
    let mut acc = befores[CHUNK_RUNS - 1];
    for &x in &runs[CHUNK_RUNS - 1] {
        acc = (op.combine)(acc, x);
    }
    acc
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
