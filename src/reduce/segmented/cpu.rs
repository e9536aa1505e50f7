//! Segmented reduction on the CPU: the same tree as in `cl/lib/segment_nodes.cl`. Threads share the tiles.

use super::{ABREAST, BLOCK_BYTES, Marks};
use crate::{Element, Result, memory, op::Monoid, parallel, segments::Offsets};

/// Cache lines of a tile; a power of two.
const TILE_BLOCKS: usize = 1024;
/// Input bytes up to which one thread is faster than several.
const SERIAL_BYTES: usize = 128 << 10;

/// A node of the tree: its partial results of the segments that reach beyond it. `cl/lib/segment_nodes.cl` defines the
/// fields, as `starts`, `prefix`, `suffix` and `rank`.
#[derive(Clone, Copy)]
struct Node<A> {
    flagged: bool,
    head: A,
    tail: A,
    /// The rank at its last element: the number of offsets that are at most that index.
    last: usize,
}

/// Nodes that lack their right neighbour, and the output for segment `first` and later ones.
struct Tree<'a, U: Element, F> {
    op: &'a Monoid<U, F>,
    out: &'a mut [U],
    first: usize,
    carries: Vec<Node<U::Acc>>,
}

impl<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc> Tree<'_, U, F> {
    /// Writes the result of the segment of `rank`, if `out` has an element for it.
    fn emit(&mut self, rank: usize, x: U::Acc) {
        if let Some(out) = self.out.get_mut(rank.wrapping_sub(1 + self.first)) {
            *out = U::narrow(x);
        }
    }

    fn join(&mut self, left: Node<U::Acc>, right: Node<U::Acc>) -> Node<U::Acc> {
        let across = (self.op.combine)(left.tail, right.head);
        // This result is final if each node has a segment start; else a later join overwrites it. A test would cost
        // more, since its branch would often be mispredicted.
        self.emit(left.last, across);
        Node {
            flagged: left.flagged || right.flagged,
            head: if left.flagged { left.head } else { across },
            tail: if right.flagged { right.tail } else { across },
            last: right.last,
        }
    }

    /// Adds node `number` of a level. Nodes of a level come in order.
    fn push(&mut self, number: usize, mut node: Node<U::Acc>) {
        for _ in 0..number.trailing_ones() {
            let left = self.carries.pop().expect("a pending node for each bit");
            node = self.join(left, node);
        }
        self.carries.push(node);
    }

    /// Adds leaves whose segments all begin and end within them.
    fn push_closed(&mut self, leaves: std::ops::Range<usize>) {
        let (mut at, x) = (leaves.start, self.op.identity);
        while at < leaves.end {
            let level = Ord::min(at.trailing_zeros(), (leaves.end - at).ilog2());
            // Rank 0 has no result.
            self.push(at >> level, Node { flagged: true, head: x, tail: x, last: 0 });
            at += 1 << level;
        }
    }

    fn root(mut self) -> Option<(Self, Node<U::Acc>)> {
        let mut node = self.carries.pop()?;
        while let Some(left) = self.carries.pop() {
            node = self.join(left, node);
        }
        Some((self, node))
    }
}

/// A tile, the output of the segments that start in it, and the slot of its node.
struct Task<'a, U: Element> {
    start: usize,
    first_segment: usize,
    out: &'a mut [U],
    node: &'a mut Option<Node<U::Acc>>,
}

pub(crate) fn reduce<T, U, F>(op: &Monoid<U, F>, input: &[T], offsets: Offsets<'_>, out: &mut [U]) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
{
    let n = input.len();
    let tile = TILE_BLOCKS * BLOCK_BYTES / size_of::<T>();
    let mut nodes = memory::filled(n.div_ceil(tile), None)?;
    let (mut tasks, mut rest, mut taken) = (memory::with_capacity(nodes.len())?, &mut *out, 0);
    let serial = size_of_val(input) <= SERIAL_BYTES;
    let starts = starts(offsets, tile, nodes.len().saturating_sub(1), serial)?;
    for (i, node) in nodes.iter_mut().enumerate() {
        // Even with invalid offsets, each tile gets a part of the output, though a wrong one.
        let starts = starts.get(i).copied().unwrap_or(usize::MAX);
        let mine = starts.saturating_sub(taken).min(rest.len());
        let (part, others) = rest.split_at_mut(mine);
        tasks.push(Task { start: i * tile, first_segment: taken, out: part, node });
        rest = others;
        taken += mine;
    }
    // If the input is empty, there are no tiles, and all segments are empty.
    rest.fill(op.empty);
    let run = |task: Task<'_, U>| run_tile(op, input, offsets, task);
    if serial {
        for task in tasks {
            run(task);
        }
    } else {
        parallel::consume(tasks.into_iter(), &run)?;
    }
    let mut tree = Tree { op, out, first: 0, carries: Vec::new() };
    for (i, node) in nodes.into_iter().flatten().enumerate() {
        tree.push(i, node);
    }
    if let Some((mut tree, root)) = tree.root() {
        tree.emit(root.last, root.tail);
    }
    Ok(())
}

/// For each of the first `count` tiles, the number of offsets below the tile's end.
fn starts(offsets: Offsets<'_>, tile: usize, count: usize, serial: bool) -> Result<Vec<usize>> {
    // These binary searches miss all caches, so threads share them.
    let find = |i: usize| offsets.below((i + 1) * tile);
    if serial { memory::collect((0..count).map(find)) } else { parallel::map(count, &find) }
}

fn run_tile<T, U, F>(op: &Monoid<U, F>, input: &[T], offsets: Offsets<'_>, task: Task<'_, U>)
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let Task { start, first_segment, out, node } = task;
    let item = BLOCK_BYTES / size_of::<T>();
    let input = &input[start..input.len().min(start + TILE_BLOCKS * item)];
    // Results of nonempty segments overwrite these.
    out.fill(op.empty);
    let mut tree = Tree { op, out, first: first_segment, carries: Vec::new() };
    let mut rank = offsets.below(start);
    let mut marks = Marks { words: [0; ABREAST], ranks: [0; ABREAST * BLOCK_BYTES] };
    let mut sums = [op.identity; ABREAST * BLOCK_BYTES];
    let (size, mut at) = (ABREAST * item, 0);
    while at * size < input.len() {
        let (i, p) = (at, start + at * size);
        let rest = &input[i * size..];
        let group = &rest[..rest.len().min(size)];
        let whole = group.len() == size;
        let next = if rank < offsets.len() { offsets.get(rank).wrapping_sub(p) } else { usize::MAX };
        // Segments of one cache line each.
        let mut ramp = 0;
        while next == 0 && rest.len() >= (ramp + 1) * size && offsets.is_ramp(rank + 1, p + ramp * size, item) {
            let first = rank.wrapping_sub(first_segment);
            if let Some(out) = tree.out.get_mut(first..first.wrapping_add(ABREAST)) {
                let sums = combine_abreast(op, &rest[ramp * size..]);
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out = U::narrow(sum));
            }
            rank += ABREAST;
            ramp += 1;
        }
        if ramp > 0 {
            at += ramp;
            tree.push_closed(i..at);
            continue;
        }
        // `ABREAST` groups within one segment.
        if i.is_multiple_of(ABREAST) && next >= ABREAST * size && rest.len() >= ABREAST * size {
            let mut groups = [op.identity; ABREAST];
            for (k, group) in groups.iter_mut().enumerate() {
                *group = join_blocks(op, combine_abreast(op, &rest[k * size..]));
            }
            let x = join_blocks(op, groups);
            tree.push(i / ABREAST, Node { flagged: false, head: x, tail: x, last: rank });
            at += ABREAST;
            continue;
        }
        at += 1;
        let last = rank;
        let starts = next < group.len();
        if starts || !whole {
            rank = offsets.mark(rank, p, group.len(), &mut marks);
        }
        if whole && (!starts || marks.at_first_alone()) {
            let x = join_blocks(op, combine_abreast(op, group));
            tree.push(i, Node { flagged: starts, head: if starts { op.identity } else { x }, tail: x, last: rank });
            continue;
        }
        let node = group_node(&mut tree, group, &marks, last, &mut sums);
        tree.push(i, node);
    }
    *node = tree.root().map(|(_, root)| root);
}

/// Returns the node of a group of cache lines in which segments start, and writes the results of segments that end
/// within it. `last` is the rank before the group; `sums` is scratch.
fn group_node<T, U, F>(
    tree: &mut Tree<'_, U, F>,
    group: &[T],
    marks: &Marks,
    mut last: usize,
    sums: &mut [U::Acc; ABREAST * BLOCK_BYTES],
) -> Node<U::Acc>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let (op, item) = (tree.op, BLOCK_BYTES / size_of::<T>());
    let whole = group.len() == ABREAST * item;
    let mut nodes = [Node { flagged: false, head: op.identity, tail: op.identity, last }; ABREAST];
    let mut blocks = group.len().div_ceil(item);
    if whole && marks.between_blocks(item) {
        let sums = combine_abreast(op, group);
        for b in 0..ABREAST {
            let flagged = marks.block(b, item) != 0;
            if flagged {
                last = marks.ranks[b * item];
            }
            nodes[b] = Node { flagged, head: if flagged { op.identity } else { sums[b] }, tail: sums[b], last };
        }
    } else {
        if whole {
            scan_abreast(op, group, marks, sums);
        } else {
            scan_part(op, group, marks, sums);
        }
        let sum_before = |e: usize| sums[place(e - 1, item)];
        // Write the sum of each segment that ends in a cache line. If the segment started before that line, the sum is
        // incomplete, and the tree overwrites it later.
        let mut open = 0;
        for (w, &word) in marks.words[..(ABREAST * item).div_ceil(64)].iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                let e = w * 64 + bits.trailing_zeros() as usize;
                if e > 0 {
                    tree.emit(open, sum_before(e));
                }
                open = marks.ranks[e];
                bits &= bits - 1;
            }
        }
        for (b, node) in nodes[..blocks].iter_mut().enumerate() {
            let bits = marks.block(b, item);
            let tail = sum_before(group.len().min((b + 1) * item));
            let head = if bits & 1 == 1 {
                op.identity
            } else if bits == 0 {
                tail
            } else {
                sum_before(b * item + bits.trailing_zeros() as usize)
            };
            if bits != 0 {
                last = marks.ranks[b * item + bits.ilog2() as usize];
            }
            *node = Node { flagged: bits != 0, head, tail, last };
        }
    }
    while blocks > 1 {
        for k in 0..blocks / 2 {
            nodes[k] = tree.join(nodes[2 * k], nodes[2 * k + 1]);
        }
        if blocks % 2 == 1 {
            nodes[blocks / 2] = nodes[blocks - 1];
        }
        blocks = blocks.div_ceil(2);
    }
    nodes[0]
}

/// Combines each of [`ABREAST`] cache lines from left to right. These chains of operations are independent, so the CPU
/// overlaps them.
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

/// The root of the tree over whole cache lines.
fn join_blocks<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(op: &Monoid<U, F>, mut x: [U::Acc; ABREAST]) -> U::Acc {
    let mut width = ABREAST;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            x[k] = (op.combine)(x[2 * k], x[2 * k + 1]);
        }
    }
    x[0]
}

/// The index in `sums` of the sum up to element `e` of a group. The sums at element k of all cache lines are
/// contiguous.
#[inline]
fn place(e: usize, item: usize) -> usize {
    e % item * ABREAST + e / item
}

/// Inclusive segmented scan within each cache line.
#[inline(never)]
fn scan_abreast<T, U, F>(op: &Monoid<U, F>, blocks: &[T], marks: &Marks, sums: &mut [U::Acc; ABREAST * BLOCK_BYTES])
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let item = BLOCK_BYTES / size_of::<T>();
    let blocks = &blocks[..ABREAST * item];
    let mut sum = [op.identity; ABREAST];
    let bits: [u64; ABREAST] = std::array::from_fn(|b| marks.block(b, item));
    // 32-bit masks are compared in half as many vector instructions as 64-bit masks.
    for half in (0..item).step_by(32) {
        let bits: [u32; ABREAST] = std::array::from_fn(|b| (bits[b] >> half) as u32);
        for k in half..item.min(half + 32) {
            for b in 0..ABREAST {
                let before = if bits[b] >> (k - half) & 1 == 1 { op.identity } else { sum[b] };
                sum[b] = (op.combine)(before, U::from(blocks[b * item + k]).widen());
            }
            sums[k * ABREAST..][..ABREAST].copy_from_slice(&sum);
        }
    }
}

/// [`scan_abreast`] for a group of fewer elements.
fn scan_part<T, U, F>(op: &Monoid<U, F>, group: &[T], marks: &Marks, sums: &mut [U::Acc; ABREAST * BLOCK_BYTES])
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let item = BLOCK_BYTES / size_of::<T>();
    let mut sum = op.identity;
    for (e, x) in group.iter().enumerate() {
        if e % item == 0 || marks.words[e / 64] >> (e % 64) & 1 == 1 {
            sum = op.identity;
        }
        sum = (op.combine)(sum, U::from(*x).widen());
        sums[place(e, item)] = sum;
    }
}
