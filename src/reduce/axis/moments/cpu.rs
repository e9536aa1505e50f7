//! Moments of lines on the CPU: the same tree as `cl/reduce_axis_moments.cl`, lines and parts of the axis in parallel.

use std::ops::Range;

use super::{ROWS, WORDS, lanes};
use crate::{
    Element, ElementType, Result, bf16, f16, memory, parallel,
    reduce::{
        axis::Lines,
        statistics::cpu::{Joins, Spread, Whole, in_lanes, spread_lanes},
    },
    with_integer,
};

/// Neighbouring lines that are walked at once, where they lie closer together than the axis' elements.
const COLUMNS: usize = 16;
/// Elements of a task.
const TASK: usize = 1 << 16;
/// Integers are exact in any order.
const INTEGER_CHUNK: usize = 512;

/// How many elements have these moments.
type Of<M> = (u64, M);

/// What is made of the lines' chunks.
struct Walk<'a, T, M> {
    input: &'a [T],
    lines: &'a Lines,
    chunk: usize,
    /// The lanes of a chunk, and how many of them have moments of their own.
    lanes: usize,
    width: usize,
    /// The moments of each `width` lanes that have elements.
    of: &'a (dyn Fn(&[T], &mut Vec<M>) + Sync),
}

/// What two neighbours have together.
fn join<M: Joins>(left: Of<M>, right: Of<M>) -> Of<M> {
    let (n, mut moments) = left;
    if right.0 > 0 {
        moments.merge(n, &right.1, right.0);
    }
    (n + right.0, moments)
}

/// What `values` have together, as a tree of neighbours, of which the first is left.
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

impl<T: Element, M: Joins> Walk<'_, T, M> {
    fn quads(&self) -> usize {
        self.lanes / self.width
    }

    /// Adds the moments of each quad of some chunks of `count` lines from `first` on, line by line.
    fn chunks(&self, first: usize, count: usize, chunks: Range<usize>, out: &mut Vec<Of<M>>) -> Result<()> {
        memory::reserve(out, count * self.quads())?;
        let (lines, quads) = (self.lines, self.quads());
        let places: Vec<usize> = (first..first + count).map(|line| lines.place(line)).collect();
        let (mut copied, mut lane) = (Vec::new(), Vec::new());
        // By quads of lines, what awaits its right neighbour: one for each bit of the next chunk's number that is set.
        let mut open: Vec<Vec<Of<M>>> = memory::filled(if chunks.len() > 1 { count * quads } else { 0 }, Vec::new())?;
        for chunk in chunks.clone() {
            let range = chunk * self.chunk..lines.len.min((chunk + 1) * self.chunk);
            let len = range.len();
            let at = |place: usize, i: usize| place.wrapping_add_signed(i as isize * lines.stride);
            if lines.stride != 1 {
                memory::refill(&mut copied, count * len, T::ZERO)?;
                for (i, along) in range.clone().enumerate() {
                    for (c, &place) in places.iter().enumerate() {
                        copied[c * len + i] = self.input[at(place, along)];
                    }
                }
            }
            for (c, &place) in places.iter().enumerate() {
                let elements = match lines.stride {
                    1 => &self.input[at(place, range.start)..][..len],
                    _ => &copied[c * len..][..len],
                };
                (self.of)(elements, &mut lane);
                for quad in 0..quads {
                    // A short chunk leaves the last ones empty, which change nothing.
                    let mut x = (
                        in_lanes(len, self.lanes, quad * self.width, self.width),
                        lane.get(quad).copied().unwrap_or(lane[0]),
                    );
                    let Some(open) = open.get_mut(c * quads + quad) else {
                        out.push(x);
                        continue;
                    };
                    for _ in 0..(chunk - chunks.start).trailing_ones() {
                        x = join(open.pop().expect("one for each bit"), x);
                    }
                    open.push(x);
                }
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
        let words = |(n, moments): Of<M>| {
            let mut words = [n; WORDS];
            words[1..].copy_from_slice(&moments.words());
            words
        };
        let columns = if lines.across() { COLUMNS } else { 1 };
        let (chunks, quads) = (lines.len.div_ceil(self.chunk), self.quads());
        // Few outputs share the threads by parts of their axis: a power of two of chunks each.
        let run = (TASK / self.chunk / columns.min(out.len())).next_power_of_two();
        let outputs = (TASK / lines.len).next_multiple_of(columns).max(columns);
        let parallel = lines.len.saturating_mul(out.len()) > TASK;
        if !parallel || chunks <= run || out.len() >= outputs * 8 * parallel::threads() {
            let body = |task: usize, out: &mut [[u64; WORDS]]| {
                let mut found = Vec::new();
                for (block, out) in out.chunks_mut(columns).enumerate() {
                    found.clear();
                    self.chunks(task * outputs + block * columns, out.len(), 0..chunks, &mut found)?;
                    for (out, found) in out.iter_mut().zip(found.chunks_mut(quads)) {
                        *out = words(tree(found));
                    }
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
            self.chunks(first, columns.min(lines.outputs - first), range, &mut found)?;
            Ok(found)
        })?;
        for (i, out) in out.iter_mut().enumerate() {
            let (block, column) = (i / columns, i % columns);
            let of_quad = |quad: usize| {
                let each = found[block * parts..][..parts].iter();
                memory::collect(each.map(|found| found[column * quads + quad])).map(|mut found| tree(&mut found))
            };
            let mut of_quads = memory::with_capacity(quads)?;
            for quad in 0..quads {
                of_quads.push(of_quad(quad)?);
            }
            *out = words(tree(&mut of_quads));
        }
        Ok(())
    }
}

/// There are elements in each line, if there are lines.
pub(super) fn moments<T: Element>(input: &[T], lines: &Lines, out: &mut [[u64; WORDS]]) -> Result<()> {
    fn floats<T: Element<Acc = A>, A: crate::reduce::statistics::cpu::Real>(
        input: &[T],
        lines: &Lines,
        out: &mut [[u64; WORDS]],
    ) -> Result<()> {
        let lanes = lanes(lines.len);
        let of = |elements: &[T], lane: &mut Vec<Spread<A>>| spread_lanes(elements, lanes, 4, lane);
        Walk { input, lines, chunk: ROWS * lanes, lanes, width: 4, of: &of }.run(out)
    }
    fn integers<I: Whole>(input: &[I], lines: &Lines, out: &mut [[u64; WORDS]]) -> Result<()> {
        let of = |elements: &[I], all: &mut Vec<_>| {
            all.clear();
            all.push(I::sums(elements));
        };
        Walk { input, lines, chunk: INTEGER_CHUNK, lanes: 4, width: 4, of: &of }.run(out)
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
