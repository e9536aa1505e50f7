//! Moments of lines on the CPU: the same tree as in `cl/reduce_axis_moments.cl`. Threads share the lines and parts of
//! the axis.

use std::ops::Range;

use super::{ROWS, WORDS, lanes};
use crate::{
    Element, ElementType, Result, bf16, f16, memory, parallel,
    reduce::{
        axis::Lines,
        statistics::cpu::{COLUMNS, Joins, Spread, Spreads, Whole, in_lanes, spread_columns, spread_lanes},
    },
    segments::Offsets,
    with_integer,
};

/// Lines are computed side by side if there are at least [`FEW`], unless each has [`MANY`] or more contiguous elements.
const FEW: usize = 8;
const MANY: usize = 128;
/// Elements of a task.
const TASK: usize = 1 << 16;
/// Elements of a chunk of integers. Their sums are exact, so the order is free.
const INTEGER_CHUNK: usize = 512;

/// Moments, and the number of their elements.
type Of<M> = (u64, M);

/// Computes the moments of rows. The arguments are the rows, room for copied elements, and the results.
type Find<'a, M> = dyn Fn(&Rows<'_>, &mut [u64], &mut Vec<M>) + Sync + 'a;

/// The elements `range` of some lines.
struct Rows<'a> {
    /// Indices of the lines' first elements.
    places: &'a [usize],
    range: Range<usize>,
    columns: usize,
    /// True if the elements of a row are contiguous in memory.
    in_rows: bool,
}

impl Rows<'_> {
    /// The elements, the number of rows, and their stride. If a row is not contiguous, its elements are copied to
    /// `room`.
    fn of<'a, T: Element>(&self, input: &'a [T], lines: &Lines, room: &'a mut [u64]) -> (&'a [T], usize, usize) {
        let (len, columns) = (self.range.len(), self.columns);
        let at = |place: usize, i: usize| place.wrapping_add_signed(i as isize * lines.stride);
        if self.in_rows {
            let rows = at(self.places[0], self.range.start)..at(self.places[0], self.range.end - 1) + columns;
            // The elements of a single line are contiguous here.
            return (&input[rows], len, if columns == 1 { 1 } else { lines.stride as usize });
        }
        let copied: &mut [T] = bytemuck::cast_slice_mut(room);
        for (c, &place) in self.places.iter().enumerate() {
            let to = copied[c..].iter_mut().step_by(columns);
            to.zip(self.range.clone()).for_each(|(to, along)| *to = input[at(place, along)]);
        }
        (&copied[..columns * len], len, columns)
    }
}

/// The computation over the chunks of lines. It is compiled for each kind of moments, not for each element type.
struct Walk<'a, M> {
    lines: &'a Lines,
    /// Bytes of an element.
    bytes: usize,
    chunk: usize,
    /// Lanes of a chunk, and the number of neighbouring lanes whose moments are joined first.
    lanes: usize,
    width: usize,
    /// Lines that are computed side by side. One `M` holds the moments of all these lines.
    columns: usize,
    /// Computes the moments of each group of `width` lanes, for the groups that have elements.
    of: &'a Find<'a, M>,
}

/// The joint moments of two neighbours.
fn join<M: Joins>(left: Of<M>, right: Of<M>) -> Of<M> {
    let (n, mut moments) = left;
    if right.0 > 0 {
        moments.merge(n, &right.1, right.0);
    }
    (n + right.0, moments)
}

/// The joint moments of `values`, joined as a tree of neighbours. Overwrites `values`.
fn tree<M: Joins>(values: &mut [Of<M>]) -> Of<M> {
    let mut count = values.len();
    while count > 1 {
        for i in 0..count.div_ceil(2) {
            let left = values[2 * i];
            values[i] = if 2 * i + 1 < count { join(left, values[2 * i + 1]) } else { left };
        }
        count = count.div_ceil(2);
    }
    values[0]
}

impl<M: Joins> Walk<'_, M> {
    fn quads(&self) -> usize {
        self.lanes / self.width
    }

    /// Appends the moments of each quad of lanes over some chunks of at most `columns` lines.
    fn chunks(&self, outputs: Range<usize>, chunks: Range<usize>, out: &mut Vec<Of<M>>) -> Result<()> {
        let (lines, quads, columns) = (self.lines, self.quads(), self.columns);
        memory::reserve(out, quads)?;
        let places = lines.places(outputs.clone());
        let in_rows = match columns {
            1 => lines.stride == 1,
            _ => lines.stride > 0 && places.len() == columns && lines.neighbours(&outputs),
        };
        let (mut copied, mut lane) = (Vec::new(), memory::with_capacity(self.lanes)?);
        if !in_rows {
            memory::refill(&mut copied, (columns * self.chunk.min(lines.len) * self.bytes).div_ceil(8), 0)?;
        }
        // For each quad, the subtrees that lack their right neighbour: one for each set bit of the next chunk's number.
        let mut open: Vec<Vec<Of<M>>> = memory::filled(if chunks.len() > 1 { quads } else { 0 }, Vec::new())?;
        for chunk in chunks.clone() {
            let range = chunk * self.chunk..lines.len.min((chunk + 1) * self.chunk);
            let len = range.len();
            (self.of)(&Rows { places: &places, range, columns, in_rows }, &mut copied, &mut lane);
            for quad in 0..quads {
                // The last quads of a short chunk are empty, and joining them changes nothing.
                let mut x = (
                    in_lanes(len, self.lanes, quad * self.width, self.width),
                    lane.get(quad).copied().unwrap_or(lane[0]),
                );
                let Some(open) = open.get_mut(quad) else {
                    out.push(x);
                    continue;
                };
                for _ in 0..(chunk - chunks.start).trailing_ones() {
                    x = join(open.pop().expect("one for each bit"), x);
                }
                memory::push(open, x)?;
            }
        }
        for mut open in open {
            let mut x = open.pop().expect("a part has chunks");
            while let Some(left) = open.pop() {
                x = join(left, x);
            }
            out.push(x);
        }
        Ok(())
    }

    fn run(&self, out: &mut [[u64; WORDS]]) -> Result<()> {
        let lines = self.lines;
        let put = |out: &mut [[u64; WORDS]], (n, moments): Of<M>| {
            for (column, out) in out.iter_mut().enumerate() {
                out[0] = n;
                out[1..].copy_from_slice(&moments.words(column));
            }
        };
        let (chunks, quads, columns) = (lines.len.div_ceil(self.chunk), self.quads(), self.columns);
        // If there are few outputs, threads share parts of the axis. A part is a power of two of chunks.
        let run = (TASK / self.chunk / columns).next_power_of_two();
        let outputs = (TASK / lines.len).next_multiple_of(columns).max(columns);
        let parallel = lines.len.saturating_mul(out.len()) > TASK;
        if !parallel || chunks <= run || out.len() >= outputs * 8 * parallel::threads() {
            let body = |task: usize, out: &mut [[u64; WORDS]]| {
                let mut found = Vec::new();
                for (block, out) in out.chunks_mut(columns).enumerate() {
                    found.clear();
                    let first = task * outputs + block * columns;
                    self.chunks(first..first + out.len(), 0..chunks, &mut found)?;
                    put(out, tree(&mut found));
                }
                Ok(())
            };
            return if parallel { parallel::try_chunks_mut(out, outputs, &body) } else { body(0, out) };
        }
        let (parts, blocks) = (chunks.div_ceil(run), out.len().div_ceil(columns));
        let found = parallel::try_map(parts * blocks, &|task| {
            let (part, first) = (task % parts, task / parts * columns);
            let mut found = Vec::new();
            let range = part * run..chunks.min((part + 1) * run);
            self.chunks(first..lines.outputs.min(first + columns), range, &mut found)?;
            Ok(found)
        })?;
        let (mut of_parts, mut of_quads) = (memory::with_capacity(parts)?, memory::with_capacity(quads)?);
        for (out, found) in out.chunks_mut(columns).zip(found.chunks(parts)) {
            of_quads.clear();
            for quad in 0..quads {
                of_parts.clear();
                of_parts.extend(found.iter().map(|found| found[quad]));
                of_quads.push(tree(&mut of_parts));
            }
            put(out, tree(&mut of_quads));
        }
        Ok(())
    }
}

/// Returns whether lines are computed side by side. Reads then follow the order of memory, and short lines share their
/// overhead.
fn side_by_side(lines: &Lines) -> bool {
    lines.outputs >= FEW && (lines.stride != 1 || lines.len < MANY)
}

/// Computes the record of each line. If there are lines, each has at least one element.
pub(super) fn moments<T: Element>(input: &[T], lines: &Lines, out: &mut [[u64; WORDS]]) -> Result<()> {
    fn floats<T: Element<Acc = A>, A: crate::reduce::statistics::cpu::Real>(
        input: &[T],
        lines: &Lines,
        out: &mut [[u64; WORDS]],
    ) -> Result<()> {
        let (lanes, width, bytes) = (lanes(lines.len), 4, size_of::<T>());
        let chunk = ROWS * lanes;
        if side_by_side(lines) {
            let of = |rows: &Rows<'_>, room: &mut [u64], lane: &mut Vec<Spreads<A>>| {
                let (rows, n, stride) = rows.of(input, lines, room);
                spread_columns(rows, (n, stride), lanes, width, lane);
            };
            return Walk { lines, bytes, chunk, lanes, width, columns: COLUMNS, of: &of }.run(out);
        }
        let of = |rows: &Rows<'_>, room: &mut [u64], lane: &mut Vec<Spread<A>>| {
            spread_lanes(rows.of(input, lines, room).0, lanes, width, lane);
        };
        Walk { lines, bytes, chunk, lanes, width, columns: 1, of: &of }.run(out)
    }
    fn integers<I: Whole>(input: &[I], lines: &Lines, out: &mut [[u64; WORDS]]) -> Result<()> {
        let (chunk, lanes, width, bytes) = (INTEGER_CHUNK, 4, 4, size_of::<I>());
        if side_by_side(lines) {
            let of = |rows: &Rows<'_>, room: &mut [u64], all: &mut Vec<_>| {
                let (rows, n, stride) = rows.of(input, lines, room);
                let row = |i: usize| rows[i * stride..][..COLUMNS].try_into().expect("as many columns");
                all.clear();
                all.push(I::sums_of_columns((0..n).map(row)));
            };
            return Walk { lines, bytes, chunk, lanes, width, columns: COLUMNS, of: &of }.run(out);
        }
        let of = |rows: &Rows<'_>, room: &mut [u64], all: &mut Vec<_>| {
            all.clear();
            all.push(I::sums(rows.of(input, lines, room).0));
        };
        Walk { lines, bytes, chunk, lanes, width, columns: 1, of: &of }.run(out)
    }
    if lines.outputs == 0 {
        return Ok(());
    }
    match T::TYPE {
        ElementType::F16 => floats::<f16, _>(bytemuck::cast_slice(input), lines, out),
        ElementType::Bf16 => floats::<bf16, _>(bytemuck::cast_slice(input), lines, out),
        ElementType::F32 => floats::<f32, _>(bytemuck::cast_slice(input), lines, out),
        ElementType::F64 => floats::<f64, _>(bytemuck::cast_slice(input), lines, out),
        integer => {
            with_integer!(integer, I => integers::<I>(bytemuck::cast_slice(input), lines, out), unreachable!("a float"))
        }
    }
}

/// Computes the joint moments of a segment of 1 to [`TASK`] elements. The other arguments are room for moments.
type OfSegment<'a, T, M> = dyn Fn(&[T], &mut Vec<M>, &mut Vec<Of<M>>) -> Result<Of<M>> + Sync + 'a;

/// A line of `len` contiguous elements.
fn contiguous(len: usize) -> Lines {
    Lines { len, stride: 1, outputs: 1, shape: vec![1], strides: vec![0], offset: 0 }
}

/// Computes the record of each segment, which is that of a line of the same elements.
pub(in crate::reduce) fn segments<T: Element>(
    input: &[T],
    offsets: Offsets<'_>,
    out: &mut [[u64; WORDS]],
) -> Result<()> {
    fn floats<T: Element<Acc = A>, A: crate::reduce::statistics::cpu::Real>(
        input: &[T],
        offsets: Offsets<'_>,
        out: &mut [[u64; WORDS]],
    ) -> Result<()> {
        each_segment(input, offsets, out, &|elements: &[T], lane: &mut Vec<Spread<A>>, quads: &mut Vec<_>| {
            let (len, lanes) = (elements.len(), lanes(elements.len()));
            quads.clear();
            if len > ROWS * lanes {
                let of = |rows: &Rows<'_>, _: &mut [u64], lane: &mut Vec<_>| {
                    spread_lanes(&elements[rows.range.clone()], lanes, 4, lane);
                };
                let lines = &contiguous(len);
                let (bytes, chunk) = (size_of::<T>(), ROWS * lanes);
                let walk = Walk { lines, bytes, chunk, lanes, width: 4, columns: 1, of: &of };
                walk.chunks(0..1, 0..len.div_ceil(chunk), quads)?;
            } else {
                memory::reserve(lane, lanes)?;
                memory::reserve(quads, lanes / 4)?;
                spread_lanes(elements, lanes, 4, lane);
                quads.extend(lane.iter().enumerate().map(|(quad, &of)| (in_lanes(len, lanes, 4 * quad, 4), of)));
            }
            Ok(tree(quads))
        })
    }
    fn integers<I: Whole>(input: &[I], offsets: Offsets<'_>, out: &mut [[u64; WORDS]]) -> Result<()> {
        each_segment(input, offsets, out, &|elements: &[I], _: &mut Vec<_>, _: &mut Vec<_>| {
            let mut all = I::sums(&elements[..elements.len().min(INTEGER_CHUNK)]);
            for chunk in elements.chunks(INTEGER_CHUNK).skip(1) {
                all.merge(0, &I::sums(chunk), 0);
            }
            Ok((elements.len() as u64, all))
        })
    }
    match T::TYPE {
        ElementType::F16 => floats::<f16, _>(bytemuck::cast_slice(input), offsets, out),
        ElementType::Bf16 => floats::<bf16, _>(bytemuck::cast_slice(input), offsets, out),
        ElementType::F32 => floats::<f32, _>(bytemuck::cast_slice(input), offsets, out),
        ElementType::F64 => floats::<f64, _>(bytemuck::cast_slice(input), offsets, out),
        integer => {
            with_integer!(integer, I => integers::<I>(bytemuck::cast_slice(input), offsets, out), unreachable!("a float"))
        }
    }
}

/// Writes the record of each segment. Threads share the segments, and then the chunks of each long one.
fn each_segment<T: Element, M: Joins>(
    input: &[T],
    offsets: Offsets<'_>,
    out: &mut [[u64; WORDS]],
    of: &OfSegment<'_, T, M>,
) -> Result<()> {
    let n = input.len();
    let range = |s: usize| {
        let (start, end) = (offsets.get(s).min(n), offsets.get(s + 1).min(n));
        start..end.max(start)
    };
    let each = (out.len() * TASK / n.max(1)).clamp(1, TASK);
    let body = |task: usize, out: &mut [[u64; WORDS]]| {
        let (mut lane, mut quads) = (Vec::new(), Vec::new());
        for (s, out) in (task * each..).zip(out) {
            let range = range(s);
            if range.len() > TASK {
                continue;
            }
            *out = [0; WORDS];
            if !range.is_empty() {
                let (n, found) = of(&input[range], &mut lane, &mut quads)?;
                out[0] = n;
                out[1..].copy_from_slice(&found.words(0));
            }
        }
        Ok(())
    };
    if n <= TASK && out.len() <= TASK {
        out.chunks_mut(each).enumerate().try_for_each(|(task, out)| body(task, out))?;
    } else {
        parallel::try_chunks_mut(out, each, &body)?;
    }
    if n > TASK {
        for (s, out) in out.iter_mut().enumerate() {
            let range = range(s);
            if range.len() > TASK {
                moments(&input[range.clone()], &contiguous(range.len()), std::slice::from_mut(out))?;
            }
        }
    }
    Ok(())
}
