//! The extremes of lines on the CPU: lines and parts of the axis in parallel.

use std::ops::Range;

use crate::{
    Element, Result, memory, parallel,
    reduce::{End, axis::Lines},
};

/// Neighbouring lines that are walked at once, where they lie closer together than the axis' elements.
const COLUMNS: usize = 64;
/// Elements of a task.
const TASK: usize = 1 << 16;

/// A run of lines, and where the extremes at one end go.
type Part<'a, T> = (End, &'a mut [T], &'a mut [u64]);

/// There are elements in each line, if there are lines.
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
    let columns = if lines.across() { COLUMNS } else { 1 };
    let outputs = (TASK / lines.len).next_multiple_of(columns).max(columns);
    let tasks = lines.outputs.div_ceil(outputs);
    let few = lines.len.saturating_mul(lines.outputs) > TASK && tasks < 8 * parallel::threads();
    // Few lines share the threads by parts of the axis.
    let run = if few { (TASK / columns.min(lines.outputs)).max(1) } else { lines.len };
    if run < lines.len {
        return find_in_parts(input, lines, ends, (columns, run), values, places);
    }
    let mut parts: Vec<Vec<Part<'_, T>>> = memory::collect((0..tasks).map(|_| Vec::new()))?;
    let of_ends = values.chunks_mut(lines.outputs).zip(places.chunks_mut(lines.outputs));
    for (&end, (values, places)) in ends.iter().zip(of_ends) {
        let of_tasks = values.chunks_mut(outputs).zip(places.chunks_mut(outputs));
        parts.iter_mut().zip(of_tasks).for_each(|(part, (values, places))| part.push((end, values, places)));
    }
    parallel::consume(parts.into_iter().enumerate(), &|(task, part): (usize, Vec<Part<'_, T>>)| {
        for (end, values, places) in part {
            let first = task * outputs;
            for (block, (values, places)) in values.chunks_mut(columns).zip(places.chunks_mut(columns)).enumerate() {
                search(input, lines, first + block * columns, 0..lines.len, end, places);
                take(input, lines, first + block * columns, values, places);
            }
        }
    })
}

/// The same, each line in parts of `run` elements.
fn find_in_parts<T: Element>(
    input: &[T],
    lines: &Lines,
    ends: &[End],
    (columns, run): (usize, usize),
    values: &mut [T],
    places: &mut [u64],
) -> Result<()> {
    let (parts, blocks) = (lines.len.div_ceil(run), lines.outputs.div_ceil(columns));
    let found = parallel::try_map(parts * blocks, &|task| {
        let (part, first) = (task % parts, task / parts * columns);
        let count = columns.min(lines.outputs - first);
        let range = part * run..lines.len.min((part + 1) * run);
        let mut found = memory::zeroed::<u64>(ends.len() * count)?;
        for (&end, found) in ends.iter().zip(found.chunks_mut(count)) {
            search(input, lines, first, range.clone(), end, found);
        }
        Ok(found)
    })?;
    let of_ends = values.chunks_mut(lines.outputs).zip(places.chunks_mut(lines.outputs));
    for (e, (&end, (values, places))) in ends.iter().zip(of_ends).enumerate() {
        for (o, place) in places.iter_mut().enumerate() {
            let (block, column) = (o / columns, o % columns);
            let count = columns.min(lines.outputs - block * columns);
            let candidates = found[block * parts..][..parts].iter().map(|found| found[e * count + column]);
            // In order of index, so that the earlier of two equal elements stays.
            let at = |i: u64| input[along(lines, lines.place(o), i as usize)];
            *place =
                candidates.reduce(|best, next| if end.before(at(next), at(best)) { next } else { best }).unwrap_or(0);
        }
        take(input, lines, 0, values, places);
    }
    Ok(())
}

/// Where element `i` of the line is that starts at `start`.
fn along(lines: &Lines, start: usize, i: usize) -> usize {
    start.wrapping_add_signed(i as isize * lines.stride)
}

/// Reads the elements of the lines from `first` on at their places.
fn take<T: Element>(input: &[T], lines: &Lines, first: usize, values: &mut [T], places: &[u64]) {
    for (i, (value, &place)) in values.iter_mut().zip(places).enumerate() {
        *value = input[along(lines, lines.place(first + i), place as usize)];
    }
}

/// The places of the first elements within `range` of the lines from `first` on, at most [`COLUMNS`].
fn search<T: Element>(input: &[T], lines: &Lines, first: usize, range: Range<usize>, end: End, found: &mut [u64]) {
    let count = found.len();
    found.fill(range.start as u64);
    if count == 1 {
        let start = lines.place(first);
        let mut best = input[along(lines, start, range.start)];
        let mut offer = |i: usize, x: T| {
            if end.before(x, best) {
                (best, found[0]) = (x, i as u64);
            }
        };
        if lines.stride == 1 {
            range.clone().zip(&input[start + range.start..start + range.end]).for_each(|(i, &x)| offer(i, x));
        } else {
            range.for_each(|i| offer(i, input[along(lines, start, i)]));
        }
        return;
    }
    let mut starts = [0; COLUMNS];
    starts.iter_mut().zip(first..first + count).for_each(|(start, line)| *start = lines.place(line));
    let starts = &starts[..count];
    let neighbours = starts.iter().enumerate().all(|(c, &start)| start == starts[0] + c);
    let mut best = [T::ZERO; COLUMNS];
    best.iter_mut().zip(starts).for_each(|(best, &start)| *best = input[along(lines, start, range.start)]);
    let offer = |(best, found): (&mut T, &mut u64), i: usize, x: T| {
        let before = end.before(x, *best);
        *best = if before { x } else { *best };
        *found = if before { i as u64 } else { *found };
    };
    for i in range {
        let columns = best.iter_mut().zip(found.iter_mut());
        if neighbours {
            let row = &input[along(lines, starts[0], i)..][..count];
            columns.zip(row).for_each(|(column, &x)| offer(column, i, x));
        } else {
            columns.zip(starts).for_each(|(column, &start)| offer(column, i, input[along(lines, start, i)]));
        }
    }
}
