//! Segmented reduction on the CPU: the same tree as `cl/reduce_segmented.cl`, tiles in parallel.

use super::{ABREAST, BLOCK_BYTES, Offsets};
use crate::{Element, op::Monoid, parallel};

/// Blocks of a tile; a power of two.
const TILE_BLOCKS: usize = 1024;
/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;

/// What a part of the tree has of the segments that reach beyond it; see the kernels' file.
#[derive(Clone, Copy)]
struct Node<A> {
    flagged: bool,
    head: A,
    tail: A,
    /// The offsets that are at most its last position.
    last: usize,
}

/// A tile, the results of the segments that start in it, and its node to be.
struct Task<'a, U: Element> {
    start: usize,
    first_segment: usize,
    out: &'a mut [U],
    node: &'a mut Option<Node<U::Acc>>,
}

pub(crate) fn reduce<T, U, F>(op: &Monoid<U, F>, input: &[T], offsets: Offsets<'_>, out: &mut [U])
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
{
    let n = input.len();
    let tile = TILE_BLOCKS * BLOCK_BYTES / size_of::<T>();
    let mut nodes = vec![None; n.div_ceil(tile)];
    let (mut tasks, mut rest, mut taken) = (Vec::new(), &mut *out, 0);
    // Each is searched for in memory that no cache has.
    let find = |i: usize| offsets.below((i + 1) * tile);
    let others = nodes.len().saturating_sub(1);
    let starts: Vec<usize> =
        if size_of_val(input) <= SERIAL_BYTES { (0..others).map(find).collect() } else { parallel::map(others, &find) };
    for (i, node) in nodes.iter_mut().enumerate() {
        // Offsets that are none still give each tile a part of the output, if not the right one.
        let starts = starts.get(i).copied().unwrap_or(usize::MAX);
        let mine = starts.saturating_sub(taken).min(rest.len());
        let (part, others) = rest.split_at_mut(mine);
        tasks.push(Task { start: i * tile, first_segment: taken, out: part, node });
        rest = others;
        taken += mine;
    }
    // Without elements there are no tiles.
    rest.fill(op.empty);
    let run = |task: Task<'_, U>| run_tile(op, input, offsets, task);
    if size_of_val(input) <= SERIAL_BYTES {
        tasks.into_iter().for_each(run);
    } else {
        parallel::consume(tasks, &run);
    }
    let nodes: Vec<_> = nodes.into_iter().flatten().collect();
    let mut emit = |rank: usize, x: U::Acc| {
        if let Some(out) = rank.checked_sub(1).and_then(|segment| out.get_mut(segment)) {
            *out = U::narrow(x);
        }
    };
    let mut carries: Vec<Node<U::Acc>> = Vec::new();
    let mut join = |left: Node<U::Acc>, right: Node<U::Acc>| {
        let across = (op.combine)(left.tail, right.head);
        if left.flagged && right.flagged {
            emit(left.last, across);
        }
        Node {
            flagged: left.flagged || right.flagged,
            head: if left.flagged { left.head } else { across },
            tail: if right.flagged { right.tail } else { across },
            last: right.last,
        }
    };
    for (i, mut node) in nodes.into_iter().enumerate() {
        for _ in 0..i.trailing_ones() {
            node = join(carries.pop().expect("a carry for each bit"), node);
        }
        carries.push(node);
    }
    let root = carries.into_iter().rev().reduce(|right, left| join(left, right));
    if let Some(root) = root {
        if root.flagged {
            emit(offsets.rank(0), root.head);
        }
        emit(root.last, root.tail);
    }
}

fn run_tile<T, U, F>(op: &Monoid<U, F>, input: &[T], offsets: Offsets<'_>, task: Task<'_, U>)
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let Task { start, first_segment, out, node } = task;
    let n = input.len();
    for (i, x) in out.iter_mut().enumerate() {
        let segment = first_segment + i;
        if offsets.get(segment).min(n) >= offsets.get(segment + 1).min(n) {
            *x = op.empty;
        }
    }
    let end = n.min(start + TILE_BLOCKS * BLOCK_BYTES / size_of::<T>());
    let mut rank = offsets.rank(start);
    let mut flagged = start > 0 && rank > 0 && offsets.get(rank - 1) == start;
    let (mut head, mut tail) = (op.identity, op.identity);
    let (mut p, item) = (start, BLOCK_BYTES / size_of::<T>());
    while p < end {
        let next = if rank < offsets.len() { offsets.get(rank) } else { end };
        let segment = rank.checked_sub(1 + first_segment);
        let whole = next == p + item && flagged && (p - start).is_multiple_of(item);
        if whole && p + ABREAST * item < end && offsets.is_ramp(rank, p, item) {
            if let Some(out) = segment.and_then(|i| out.get_mut(i..i + ABREAST)) {
                combine_blocks(op, &input[p..], out);
            }
            p += ABREAST * item;
            rank += ABREAST - 1;
        } else {
            let stop = if next > p { next.min(end) } else { end };
            tail = combine_run(op, &input[p..stop], p - start);
            p = stop;
            if p == end {
                break;
            }
            if !flagged {
                (head, flagged) = (tail, true);
            } else if let Some(out) = segment.and_then(|i| out.get_mut(i)) {
                *out = U::narrow(tail);
            }
        }
        rank = offsets.rank_from(rank, p);
    }
    *node = Some(Node { flagged, head: if flagged { head } else { tail }, tail, last: rank });
}

/// Combines each of [`ABREAST`] blocks: each is a chain of operations, which need not wait for one another.
fn combine_abreast<T, U, F>(op: &Monoid<U, F>, blocks: &[T]) -> [U::Acc; ABREAST]
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let item = BLOCK_BYTES / size_of::<T>();
    let blocks = &blocks[..ABREAST * item];
    let mut sums = [op.identity; ABREAST];
    for k in 0..item {
        for (b, sum) in sums.iter_mut().enumerate() {
            *sum = (op.combine)(*sum, U::from(blocks[b * item + k]).widen());
        }
    }
    sums
}

/// The results of [`ABREAST`] segments that are a block each.
#[inline(never)]
fn combine_blocks<T, U, F>(op: &Monoid<U, F>, blocks: &[T], out: &mut [U])
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    for (out, sum) in out.iter_mut().zip(combine_abreast(op, blocks)) {
        *out = U::narrow(sum);
    }
}

/// What the tree gives for a run of a tile's elements, of which the first is element `at` of the tile.
fn combine_run<T, U, F>(op: &Monoid<U, F>, run: &[T], at: usize) -> U::Acc
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let item = BLOCK_BYTES / size_of::<T>();
    let serial = |part: &[T]| part.iter().fold(op.identity, |acc, x| (op.combine)(acc, U::from(*x).widen()));
    let (first, rest) = run.split_at(run.len().min(item - at % item));
    let mut x = serial(first);
    if rest.is_empty() {
        return x;
    }
    // A carry for each part of the tree that awaits its right neighbour; tiles have 2^10 blocks.
    let (mut carry, mut carries) = ([op.identity; 11], 0);
    let mut push = |block: usize, mut x: U::Acc| {
        // A left neighbour from before the run is left out.
        let mut bits = block;
        while bits & 1 == 1 && carries > 0 {
            carries -= 1;
            x = (op.combine)(carry[carries], x);
            bits >>= 1;
        }
        carry[carries] = x;
        carries += 1;
    };
    let mut block = at / item;
    push(block, x);
    // The last block of all joins what is left below.
    let mut rest = rest;
    while rest.len() > ABREAST * item {
        let (blocks, after) = rest.split_at(ABREAST * item);
        for sum in combine_abreast(op, blocks) {
            block += 1;
            push(block, sum);
        }
        rest = after;
    }
    let mut parts = rest.chunks(item).peekable();
    while let Some(part) = parts.next() {
        block += 1;
        x = serial(part);
        if parts.peek().is_some() {
            push(block, x);
        }
    }
    carry[..carries].iter().rev().fold(x, |x, &left| (op.combine)(left, x))
}
