//! Reduction along an axis on the CPU: the same tree as in `cl/reduce_axis.cl`. Threads share the outputs and parts of
//! the axis.

use super::{CHUNK, LANES, Lines};
use crate::{Element, Result, memory, op::Monoid, parallel};

/// Bytes of outputs that are combined at once, if neighbouring lines lie closer together than neighbours on the axis.
/// The number is four times as large if every thread still has enough tasks, since longer contiguous reads are faster.
const ROW_BYTES: usize = 4 << 10;
/// Bytes of a row up to which the accumulators of all lanes stay in the L1 cache.
const NARROW_BYTES: usize = 512;
/// Elements of a task.
const TASK: usize = 1 << 16;
/// Elements of short lines that are combined at once; a multiple of [`LANES`].
const SHORT: usize = 1024;
/// Lines of fewer elements are transposed: the tree over the lanes of each single line would cost more.
const FEW: usize = 128;
/// Lines that are transposed at once.
const ABREAST: usize = 256;

pub(super) fn reduce<T, U, F>(op: &Monoid<U, F>, input: &[T], lines: &Lines, out: &mut [U]) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
{
    if lines.len == 0 || out.is_empty() {
        out.fill(op.empty);
        return Ok(());
    }
    let split = Split::of(lines, size_of::<U::Acc>());
    let Split { chunks, columns, run, outputs, shared, parallel } = split;
    if !shared {
        let body = |task: usize, out: &mut [U]| whole_lines(op, input, lines, &split, task * outputs, out);
        return if parallel { parallel::try_chunks_mut(out, outputs, &body) } else { body(0, out) };
    }
    let parts = chunks.div_ceil(run);
    let values: Vec<Vec<U::Acc>> = parallel::try_map(parts * out.len().div_ceil(columns), &|task| {
        let (part, first) = (task % parts, task / parts * columns);
        let mut values = Vec::new();
        each_block(lines, first, columns.min(lines.outputs - first), columns, &mut |_, block| {
            values = combine(op, input, lines, part * run..chunks.min((part + 1) * run), block)?;
            Ok(())
        })?;
        Ok(values)
    })?;
    parallel::try_chunks_mut(out, columns, &|block, out| {
        narrow(&fold_parts(&values[block * parts..][..parts], &op.combine)?, out);
        Ok(())
    })
}

/// The division of the lines among threads.
struct Split {
    /// Number of chunks of a line.
    chunks: usize,
    /// Number of outputs that are combined at once.
    columns: usize,
    /// Number of chunks of a part, a power of two. If there are few outputs, threads share the parts of the axis.
    run: usize,
    /// Number of outputs of a task.
    outputs: usize,
    shared: bool,
    parallel: bool,
}

impl Split {
    fn of(lines: &Lines, bytes: usize) -> Self {
        let chunks = lines.len.div_ceil(CHUNK);
        let columns = ROW_BYTES / bytes;
        let many = lines.outputs / (4 * columns) * chunks >= 4 * parallel::threads();
        let columns = match lines.across() {
            true if many => 4 * columns,
            true => columns,
            false => 1,
        };
        let run = (TASK / CHUNK / columns.min(lines.outputs)).next_power_of_two();
        let outputs = (TASK / lines.len).next_multiple_of(columns).max(columns);
        let parallel = lines.len * lines.outputs > TASK;
        let shared = parallel && chunks > run && lines.outputs < outputs * 8 * parallel::threads();
        Self { chunks, columns, run, outputs, shared, parallel }
    }
}

/// Writes the results of whole lines to `out`, which begins with output number `first`.
fn whole_lines<T, U, F>(
    op: &Monoid<U, F>,
    input: &[T],
    lines: &Lines,
    &Split { chunks, columns, .. }: &Split,
    first: usize,
    out: &mut [U],
) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    if lines.adjoin() && lines.len.is_power_of_two() && lines.len <= LANES {
        let start = lines.place(first);
        combine_short(op, &input[start..start + out.len() * lines.len], out);
        return Ok(());
    }
    if columns == 1 && lines.stride == 1 && lines.len < FEW && out.len() > 1 {
        return combine_abreast(op, input, lines, first, out);
    }
    if columns == 1 {
        for (i, out) in out.iter_mut().enumerate() {
            *out = U::narrow(combine_line(op, input, lines.place(first + i), lines, 0..chunks));
        }
        return Ok(());
    }
    each_block(lines, first, out.len(), columns, &mut |at, block| {
        narrow(&combine(op, input, lines, 0..chunks, block)?, &mut out[at..at + block.count]);
        Ok(())
    })
}

/// Writes accumulators as elements.
fn narrow<U: Element>(values: &[U::Acc], out: &mut [U]) {
    for (out, &x) in out.iter_mut().zip(values) {
        *out = U::narrow(x);
    }
}

/// The root of the tree over the parts of lines, for several outputs at once.
fn fold_parts<A: Copy>(parts: &[Vec<A>], combine: &dyn Fn(A, A) -> A) -> Result<Vec<A>> {
    let mut tree = Tree::default();
    for (part, values) in parts.iter().enumerate() {
        tree.push(part, memory::copied(values)?, combine);
    }
    Ok(tree.fold(combine))
}

/// Outputs that are combined at once.
struct Block<'a> {
    count: usize,
    /// Index of the first element of the first output. If the lines are neighbours, the first elements of the other
    /// outputs follow it in memory, and `places` is empty.
    first: usize,
    /// Index of each line's first element.
    places: &'a [usize],
}

/// Splits the outputs from `first` on into [`Block`]s of at most `columns`. Calls `body` with the index of each block's
/// first output, counted from `first`, and the block.
fn each_block(
    lines: &Lines,
    first: usize,
    count: usize,
    columns: usize,
    body: &mut dyn FnMut(usize, &Block<'_>) -> Result<()>,
) -> Result<()> {
    let mut places = Vec::new();
    for at in (0..count).step_by(columns) {
        let count = columns.min(count - at);
        let outputs = first + at..first + at + count;
        places.clear();
        if !lines.neighbours(&outputs) {
            memory::reserve(&mut places, count)?;
            places.extend(outputs.clone().map(|output| lines.place(output)));
        }
        body(at, &Block { count, first: lines.place(outputs.start), places: &places })?;
    }
    Ok(())
}

/// Subtrees that lack their right neighbour, for several outputs at once.
struct Tree<A>(Vec<Vec<A>>);

impl<A> Default for Tree<A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A: Copy> Tree<A> {
    /// Adds leaf `number`. Leaves come in order.
    fn push(&mut self, number: usize, mut x: Vec<A>, combine: &dyn Fn(A, A) -> A) {
        for _ in 0..number.trailing_ones() {
            let left = self.0.pop().expect("a subtree for each bit");
            join(&left, &mut x, combine);
        }
        self.0.push(x);
    }

    fn fold(mut self, combine: &dyn Fn(A, A) -> A) -> Vec<A> {
        let mut x = self.0.pop().expect("an axis has elements");
        while let Some(left) = self.0.pop() {
            join(&left, &mut x, combine);
        }
        x
    }
}

/// `x[i] = left[i] op x[i]`: joins left subtrees with the right subtrees in `x`.
fn join<A: Copy>(left: &[A], x: &mut [A], combine: &dyn Fn(A, A) -> A) {
    for (x, &left) in x.iter_mut().zip(left) {
        *x = combine(left, *x);
    }
}

/// Results of the tree for contiguous lines, whose length is a power of two and at most [`LANES`]. Each level runs over
/// all lines at once.
fn combine_short<T, U, F>(op: &Monoid<U, F>, input: &[T], out: &mut [U])
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let len = input.len() / out.len();
    let (mut x, mut y) = (&mut [op.identity; SHORT], &mut [op.identity; SHORT]);
    for (input, out) in input.chunks(SHORT).zip(out.chunks_mut(SHORT / len)) {
        x.iter_mut().zip(input).for_each(|(acc, x)| *acc = (op.combine)(op.identity, U::from(*x).widen()));
        let mut n = input.len();
        while n > out.len() {
            n /= 2;
            join_pairs(op, &x[..2 * n], &mut y[..n]);
            std::mem::swap(&mut x, &mut y);
        }
        out.iter_mut().zip(&*x).for_each(|(out, &x)| *out = U::narrow(x));
    }
}

/// Results of the tree for short lines of contiguous elements. Lines are transposed, so that each step of the tree runs
/// over many lines.
fn combine_abreast<T, U, F>(op: &Monoid<U, F>, input: &[T], lines: &Lines, first: usize, out: &mut [U]) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let mut moved = Vec::new();
    for (block, out) in out.chunks_mut(ABREAST).enumerate() {
        let (first, count) = (first + block * ABREAST, out.len());
        memory::refill(&mut moved, lines.len * count, T::ZERO)?;
        for (column, place) in lines.places(first..first + count).into_iter().enumerate() {
            let line = &input[place..place + lines.len];
            moved[column..].iter_mut().step_by(count).zip(line).for_each(|(to, &x)| *to = x);
        }
        let moved_lines = Lines { stride: count as isize, ..lines.clone() };
        narrow(&combine(op, &moved, &moved_lines, 0..1, &Block { count, first: 0, places: &[] })?, out);
    }
    Ok(())
}

/// Combines pairs of neighbours. Eight results are computed before any is stored. So the loop vectorises even if the
/// compiler cannot prove that `x` and `to` are disjoint.
fn join_pairs<U: Element, F: Fn(U::Acc, U::Acc) -> U::Acc>(op: &Monoid<U, F>, x: &[U::Acc], to: &mut [U::Acc]) {
    let (pairs, rest) = x.as_chunks::<16>();
    let (to, rest_to) = to.as_chunks_mut::<8>();
    for (to, pairs) in to.iter_mut().zip(pairs) {
        *to = std::array::from_fn(|i| (op.combine)(pairs[2 * i], pairs[2 * i + 1]));
    }
    rest_to.iter_mut().zip(rest.as_chunks().0).for_each(|(to, &[a, b])| *to = (op.combine)(a, b));
}

/// Result of the tree for a chunk of `len` elements of one line.
fn combine_chunk<T, U, F>(op: &Monoid<U, F>, input: &[T], start: usize, stride: isize, len: usize) -> U::Acc
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let mut lane = [op.identity; LANES];
    let add = |acc: &mut U::Acc, x: &T| *acc = (op.combine)(*acc, U::from(*x).widen());
    if stride == 1 {
        for row in input[start..start + len].chunks(LANES) {
            for (acc, x) in lane.iter_mut().zip(row) {
                add(acc, x);
            }
        }
    } else {
        for i in 0..len {
            add(&mut lane[i % LANES], &input[start.wrapping_add_signed(i as isize * stride)]);
        }
    }
    // Lanes without elements would not change the result.
    let mut width = len.next_power_of_two().min(LANES);
    while width > 1 {
        width /= 2;
        for k in 0..width {
            lane[k] = (op.combine)(lane[2 * k], lane[2 * k + 1]);
        }
    }
    lane[0]
}

/// Result of the tree for some chunks of the line that starts at `first`.
fn combine_line<T, U, F>(
    op: &Monoid<U, F>,
    input: &[T],
    first: usize,
    lines: &Lines,
    chunks: std::ops::Range<usize>,
) -> U::Acc
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    if lines.len <= CHUNK {
        return combine_chunk(op, input, first, lines.stride, lines.len);
    }
    // A pending subtree for each set bit of a chunk's number.
    let (mut carry, mut carries) = ([op.identity; usize::BITS as usize], 0);
    for (number, chunk) in chunks.enumerate() {
        let base = chunk * CHUNK;
        let start = first.wrapping_add_signed(base as isize * lines.stride);
        let mut x = combine_chunk(op, input, start, lines.stride, CHUNK.min(lines.len - base));
        for _ in 0..number.trailing_ones() {
            carries -= 1;
            x = (op.combine)(carry[carries], x);
        }
        carry[carries] = x;
        carries += 1;
    }
    let left = carry[..carries - 1].iter().rev();
    left.fold(carry[carries - 1], |x, &left| (op.combine)(left, x))
}

/// Results of the tree for some chunks of the lines of a [`Block`].
fn combine<T, U, F>(
    op: &Monoid<U, F>,
    input: &[T],
    lines: &Lines,
    chunks: std::ops::Range<usize>,
    block: &Block<'_>,
) -> Result<Vec<U::Acc>>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let (columns, stride, neighbours) = (block.count, lines.stride, block.places.is_empty());
    if columns == 1 {
        return memory::filled(1, combine_line(op, input, block.first, lines, chunks));
    }
    let take = |x: &T| U::from(*x).widen();
    let add = |acc: &mut U::Acc, x: &T| *acc = (op.combine)(*acc, take(x));
    let add_rows = |to: &mut [U::Acc], rows: &[T]| {
        for (acc, x) in to.iter_mut().zip(rows) {
            add(acc, x);
        }
    };
    let mut tree = Tree::<U::Acc>::default();
    // Capacity for the lanes of a whole chunk.
    let mut lane = memory::with_capacity(LANES * columns)?;
    for chunk in chunks.clone() {
        let (base, end) = (chunk * CHUNK, lines.len.min((chunk + 1) * CHUNK));
        let rows =
            |i: usize, count: usize| &input[block.first.wrapping_add_signed(i as isize * stride)..][..count * columns];
        // Lanes without elements would not change the result.
        let mut width = LANES.min((end - base).next_power_of_two());
        lane.clear();
        if neighbours && lines.len <= LANES {
            // Each lane has at most one element, so rows are combined as they are read, four at a time.
            width = width.div_ceil(4);
            let lone = |x: &T| (op.combine)(op.identity, take(x));
            let join = |a: &T, b: &T| (op.combine)(lone(a), lone(b));
            lane.resize(width * columns, op.identity);
            for k in 0..lines.len.div_ceil(4) {
                let to = &mut lane[k * columns..][..columns];
                let row = |r: usize| &rows(4 * k + r, 1)[..columns];
                match lines.len - 4 * k {
                    1 => {
                        for (to, a) in to.iter_mut().zip(row(0)) {
                            *to = lone(a);
                        }
                    }
                    2 => to.iter_mut().zip(row(0)).zip(row(1)).for_each(|((to, a), b)| *to = join(a, b)),
                    3 => {
                        let each = to.iter_mut().zip(row(0)).zip(row(1)).zip(row(2));
                        each.for_each(|(((to, a), b), c)| *to = (op.combine)(join(a, b), lone(c)));
                    }
                    _ => {
                        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                        for i in 0..columns {
                            to[i] = (op.combine)(join(&a[i], &b[i]), join(&c[i], &d[i]));
                        }
                    }
                }
            }
        } else {
            lane.resize(width * columns, op.identity);
            // If columns are neighbours, a lane takes four rows at a time, which loads and stores its sums once for all
            // four. If rows are contiguous too, this runs over all lanes at once. If the lanes also fit the L1 cache
            // (`narrow`), the rows are read as one stream, which the CPU prefetches.
            let adjoin = neighbours && stride == columns as isize;
            let narrow = adjoin && columns * size_of::<U::Acc>() <= NARROW_BYTES;
            let (at_once, lanes) = (if narrow { 1 } else { 4 }, if adjoin { LANES } else { 1 });
            let together = if neighbours { (end - base) / (at_once * LANES) * (at_once * LANES) } else { 0 };
            for first in (base..base + together).step_by(at_once * LANES) {
                if narrow {
                    add_rows(&mut lane, rows(first, LANES));
                    continue;
                }
                let size = lanes * columns;
                for (k, to) in lane.chunks_exact_mut(size).enumerate() {
                    let row = |r: usize| &rows(first + r * LANES + k, lanes)[..size];
                    let (to, a, b, c, d) = (&mut to[..size], row(0), row(1), row(2), row(3));
                    for i in 0..size {
                        let mut acc = to[i];
                        add(&mut acc, &a[i]);
                        add(&mut acc, &b[i]);
                        add(&mut acc, &c[i]);
                        add(&mut acc, &d[i]);
                        to[i] = acc;
                    }
                }
            }
            for i in base + together..end {
                let to = &mut lane[i % LANES * columns..][..columns];
                if neighbours {
                    add_rows(to, rows(i, 1));
                    continue;
                }
                let along = i as isize * stride;
                for (acc, place) in to.iter_mut().zip(block.places) {
                    add(acc, &input[place.wrapping_add_signed(along)]);
                }
            }
        }
        while width > 1 {
            width /= 2;
            for k in 0..width {
                let (to, from) = lane.split_at_mut((2 * k).max(1) * columns);
                if k == 0 {
                    for (to, &right) in to.iter_mut().zip(&*from) {
                        *to = (op.combine)(*to, right);
                    }
                    continue;
                }
                let (left, right) = from[..2 * columns].split_at(columns);
                let to = &mut to[k * columns..][..columns];
                for i in 0..columns {
                    to[i] = (op.combine)(left[i], right[i]);
                }
            }
        }
        if chunks.len() == 1 {
            lane.truncate(columns);
            return Ok(lane);
        }
        tree.push(chunk - chunks.start, memory::copied(&lane[..columns])?, &op.combine);
    }
    Ok(tree.fold(&op.combine))
}
