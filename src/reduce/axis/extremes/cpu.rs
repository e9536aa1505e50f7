//! The extremes of lines on the CPU. Threads share the lines and parts of the axis.
//!
//! The first step finds only the values of the extremes in each range of a line, for several columns at once. The
//! second step searches for the index in the one range that has the line's extreme.

use std::ops::Range;

use crate::{
    Element, Result, memory, parallel,
    reduce::{End, axis::Lines},
};

/// Lines that are walked at once, if neighbouring lines lie closer together than neighbours on the axis.
const COLUMNS: usize = 128;
/// Elements of a line that are reduced before their extreme is compared with the line's: `ROWS` for several lines,
/// `BLOCK` for one.
const ROWS: usize = 64;
const BLOCK: usize = 2048;
/// Columns into which the elements of a single line are divided.
const LANES: usize = 32;
/// Maximum elements of a line for which lines are transposed.
const FEW: usize = 128;
/// Elements of a task.
const TASK: usize = 1 << 16;

/// Finds the extremes of each line. If there are lines, each has at least one element.
pub(super) fn find<T: Element>(
    input: &[T],
    lines: &Lines,
    ends: &[End],
    values: &mut [T],
    places: &mut [u64],
) -> Result<()> {
    if lines.outputs == 0 {
        return Ok(());
    }
    let columns = if lines.across() || lines.len <= FEW { COLUMNS } else { 1 };
    let outputs = (TASK / lines.len).next_multiple_of(columns).max(columns);
    let tasks = lines.outputs.div_ceil(outputs);
    let few = lines.len.saturating_mul(lines.outputs) > TASK && tasks < 8 * parallel::threads();
    // If there are few lines, threads share parts of the axis.
    let run = if few { (TASK / columns.min(lines.outputs)).max(1) } else { lines.len };
    let (parts, blocks) = (lines.len.div_ceil(run), lines.outputs.div_ceil(columns));
    if parts == 1 {
        let mut of_tasks: Vec<Vec<Part<'_, T>>> = memory::collect((0..tasks).map(|_| Vec::new()))?;
        for of_end in values.chunks_mut(lines.outputs).zip(places.chunks_mut(lines.outputs)) {
            let of_end = of_end.0.chunks_mut(outputs).zip(of_end.1.chunks_mut(outputs));
            of_tasks.iter_mut().zip(of_end).for_each(|(task, part)| task.push(part));
        }
        return parallel::consume(of_tasks.into_iter().enumerate(), &|(task, mut of_ends): (
            usize,
            Vec<Part<'_, T>>,
        )| {
            let (first, mut room) = (task * outputs, Vec::new());
            for at in (0..of_ends[0].0.len()).step_by(columns) {
                let count = columns.min(of_ends[0].0.len() - at);
                let found = search(input, lines, first + at..first + at + count, 0..lines.len, ends, &mut room);
                for ((values, places), found) in of_ends.iter_mut().zip(found.chunks(count)) {
                    let outputs = values[at..at + count].iter_mut().zip(&mut places[at..at + count]);
                    outputs.zip(found).for_each(|((value, place), found)| (*value, *place) = *found);
                }
            }
        });
    }
    let found = parallel::map(blocks * parts, &|task| {
        let (first, part) = (task / parts * columns, task % parts);
        let range = part * run..lines.len.min((part + 1) * run);
        search(input, lines, first..lines.outputs.min(first + columns), range, ends, &mut Vec::new())
    })?;
    for (block, of_parts) in found.chunks(parts).enumerate() {
        let (first, count) = (block * columns, of_parts[0].len() / ends.len());
        for (e, &end) in ends.iter().enumerate() {
            for column in 0..count {
                // Parts are in order of index, so the first of equal elements wins.
                let mut best = of_parts[0][e * count + column];
                for found in &of_parts[1..] {
                    let next = found[e * count + column];
                    best = if end.before(next.0, best.0) { next } else { best };
                }
                let output = e * lines.outputs + first + column;
                (values[output], places[output]) = best;
            }
        }
    }
    Ok(())
}

/// Results of neighbouring lines at one end: values and indices.
type Part<'a, T> = (&'a mut [T], &'a mut [u64]);

/// Index of element `i` of the line that starts at `start`.
fn along(lines: &Lines, start: usize, i: usize) -> usize {
    start.wrapping_add_signed(i as isize * lines.stride)
}

/// The extremes of some elements of each column. `nan` is a NaN among them, or a number if there is none.
struct Columns<A, const N: usize> {
    low: [A; N],
    high: [A; N],
    nan: [A; N],
}

impl<A: Element<Acc = A>, const N: usize> Columns<A, N> {
    fn new() -> Self {
        Self { low: [A::HIGHEST; N], high: [A::LOWEST; N], nan: [A::ZERO; N] }
    }

    /// Adds a row of at most `N` elements.
    #[inline]
    fn add<T: Element<Acc = A>>(&mut self, row: &[T]) {
        let extremes = self.low.iter_mut().zip(&mut self.high).zip(&mut self.nan);
        for (((low, high), nan), x) in extremes.zip(row) {
            let x = x.widen();
            *low = if x < *low { x } else { *low };
            *high = if x > *high { x } else { *high };
            *nan = if x.is_nan() { x } else { *nan };
        }
    }

    /// The extremes over all columns.
    fn joined(&self) -> Columns<A, 1> {
        let mut all = Columns::new();
        for column in 0..N {
            let (low, high, nan) = (self.low[column], self.high[column], self.nan[column]);
            all.low[0] = if low < all.low[0] { low } else { all.low[0] };
            all.high[0] = if high > all.high[0] { high } else { all.high[0] };
            all.nan[0] = if nan.is_nan() { nan } else { all.nan[0] };
        }
        all
    }

    /// The extreme of a column; a NaN if there is one.
    #[inline]
    fn extreme(&self, end: End, column: usize) -> A {
        let value = match end {
            End::Min => self.low[column],
            End::Max => self.high[column],
        };
        if self.nan[column].is_nan() { self.nan[column] } else { value }
    }
}

/// Merges the extremes of a range, whose first element is `at`, into those of earlier ranges. `best` has `count`
/// columns for each end.
fn offer<A: Element<Acc = A>, const N: usize>(
    best: &mut Vec<(A, usize)>,
    columns: &Columns<A, N>,
    ends: &[End],
    count: usize,
    at: usize,
) {
    if best.is_empty() {
        for &end in ends {
            for column in 0..count {
                best.push((columns.extreme(end, column), at));
            }
        }
        return;
    }
    for (&end, best) in ends.iter().zip(best.chunks_mut(count)) {
        for (column, best) in best.iter_mut().enumerate() {
            let value = columns.extreme(end, column);
            *best = if end.before(value, best.0) { (value, at) } else { *best };
        }
    }
}

/// The first extremes of at most [`COLUMNS`] lines within `range`, with their indices. The results of all lines for the
/// first of `ends` come before those for the next. `room` is the memory for transposed elements.
fn search<T: Element>(
    input: &[T],
    lines: &Lines,
    outputs: Range<usize>,
    range: Range<usize>,
    ends: &[End],
    room: &mut Vec<T>,
) -> Vec<(T, u64)> {
    let (starts, count) = (lines.places(outputs.clone()), outputs.len());
    // For each end and line, the extreme and the start of the range that has it.
    let mut best = Vec::with_capacity(ends.len() * count);
    let rows = if count == 1 { BLOCK } else { ROWS };
    let neighbours = lines.neighbours(&outputs);
    for at in range.clone().step_by(rows) {
        let block = at..range.end.min(at + rows);
        let moved = |room: &mut Vec<T>| {
            room.resize(block.len() * count, T::ZERO);
            for (column, &start) in starts.iter().enumerate() {
                let to = room[column..].iter_mut().step_by(count);
                to.zip(block.clone()).for_each(|(to, i)| *to = input[along(lines, start, i)]);
            }
        };
        if count == 1 {
            let elements = if lines.stride == 1 {
                &input[starts[0] + block.start..starts[0] + block.end]
            } else {
                moved(room);
                &room[..]
            };
            let mut lanes = Columns::<T::Acc, LANES>::new();
            for row in elements.chunks(LANES) {
                lanes.add(row);
            }
            offer(&mut best, &lanes.joined(), ends, 1, at);
            continue;
        }
        let mut columns = Columns::<T::Acc, COLUMNS>::new();
        if neighbours {
            for i in block {
                columns.add(&input[along(lines, starts[0], i)..][..count]);
            }
        } else {
            moved(room);
            for row in room.chunks(count) {
                columns.add(row);
            }
        }
        offer(&mut best, &columns, ends, count, at);
    }
    let mut found = Vec::with_capacity(best.len());
    for (k, &(value, mut i)) in best.iter().enumerate() {
        // The extreme is an element of the range, so the search ends.
        let x = loop {
            let x = input[along(lines, starts[k % count], i)];
            let is = if value.is_nan() { x.is_nan() } else { x.widen() == value };
            if is {
                break x;
            }
            i += 1;
        };
        found.push((x, i as u64));
    }
    found
}
