//! Permutation on the CPU: parts of the output in parallel, matrices in blocks of a cache line's width.

use std::ops::Range;

use super::job::{Axis, Job, Turn};
use crate::parallel;

/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;
/// Elements of a row that one task takes at most, where rows are cut.
const TASK_ROW: usize = 1 << 12;
/// Elements that one task takes at least, where there are as many.
const TASK_CELLS: usize = 1 << 14;
/// Rows that are cut have so many elements at least: each piece costs a slice.
const CUT_ROW: usize = 256;

/// Moves elements as `job` says, which the caller has checked against both lengths.
pub(crate) fn permute(job: &Job, input: &[u8], output: &mut [u8]) {
    // Only the size counts, so that the loops below exist once for each.
    macro_rules! by_size {
        ($($size:literal)*) => {
            match job.size {
                $($size => cells::<$size>(job, bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output)),)*
                size => unreachable!("elements of {size} bytes are in units"),
            }
        };
    }
    by_size!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

fn cells<const N: usize>(job: &Job, input: &[[u8; N]], output: &mut [[u8; N]]) {
    if job.len() == 0 {
        return;
    }
    let output = &mut output[job.to..];
    match job.turn() {
        Some(turn) => blocks(job, &turn, input, output),
        None => gather(job, input, output),
    }
}

/// The place of element i of some axes, from that of the first: in the input and in the output.
fn place(axes: &[Axis], mut i: usize) -> (isize, usize) {
    let (mut from, mut to) = (0, 0);
    for axis in axes.iter().rev() {
        let k = (i % axis.n) as isize;
        (from, to) = (from + k * axis.from, to + k * axis.to);
        i /= axis.n;
    }
    (from, to as usize)
}

fn count(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.n).product()
}

/// The parts of `data` that begin at `starts`, which ascend; each ends where the next begins.
fn cut<E>(mut data: &mut [E], starts: impl Iterator<Item = usize>) -> Vec<&mut [E]> {
    let mut parts = Vec::new();
    let mut done = 0;
    for (i, start) in starts.enumerate() {
        let (part, rest) = data.split_at_mut(start - done);
        if i > 0 {
            parts.push(part);
        }
        (data, done) = (rest, start);
    }
    parts.push(data);
    parts
}

/// Runs the tasks, in parallel where they move many bytes.
fn run<I: Send>(bytes: usize, tasks: Vec<I>, body: &(dyn Fn(I) + Sync)) {
    if bytes <= SERIAL_BYTES {
        tasks.into_iter().for_each(body);
    } else {
        parallel::consume(tasks, body);
    }
}

/// Row by row along the output.
fn gather<const N: usize>(job: &Job, input: &[[u8; N]], output: &mut [[u8; N]]) {
    let total = job.len();
    let chunk = total.div_ceil(8 * parallel::threads()).max(TASK_CELLS);
    let starts: Vec<_> = (0..total).step_by(chunk).map(|first| (first, place(&job.axes, first).1)).collect();
    let parts = cut(output, starts.iter().map(|&(_, at)| at));
    let tasks =
        starts.iter().zip(parts).map(|(&(first, at), part)| (first..total.min(first + chunk), at, part)).collect();
    run(total * N, tasks, &|(range, at, part)| gather_part(job, input, range, at, part));
}

/// Elements `range` to `part`, whose first element has the place `at`.
fn gather_part<const N: usize>(job: &Job, input: &[[u8; N]], range: Range<usize>, at: usize, part: &mut [[u8; N]]) {
    let one = Axis { n: 1, from: 1, to: 1 };
    let (row, outer) = job.axes.split_last().map_or((one, &[][..]), |(&row, outer)| (row, outer));
    let mut index: Vec<usize> = vec![0; outer.len()];
    let mut rest = range.start / row.n;
    for (k, axis) in index.iter_mut().zip(outer).rev() {
        (*k, rest) = (rest % axis.n, rest / axis.n);
    }
    let (from, to) = place(outer, range.start / row.n);
    let (mut from, mut to) = (job.from as isize + from, to as isize - at as isize);
    let mut i = range.start;
    while i < range.end {
        let first = i % row.n;
        let len = (row.n - first).min(range.end - i);
        let (x, y) = (from + first as isize * row.from, (to + first as isize * row.to) as usize);
        if (row.from, row.to) == (1, 1) {
            part[y..y + len].copy_from_slice(&input[x as usize..x as usize + len]);
        } else {
            for k in 0..len {
                part[y + k * row.to as usize] = input[(x + k as isize * row.from) as usize];
            }
        }
        i += len;
        for (k, axis) in index.iter_mut().zip(outer).rev() {
            (from, to) = (from + axis.from, to + axis.to);
            *k += 1;
            if *k < axis.n {
                break;
            }
            *k = 0;
            let (back, out_back) = (axis.n as isize * axis.from, axis.n as isize * axis.to);
            (from, to) = (from - back, to - out_back);
        }
    }
}

/// Rows of an output matrix, or a part of each.
enum Rows<'a, const N: usize> {
    /// So many rows of so many elements, and how far they are apart.
    Whole {
        cells: &'a mut [[u8; N]],
        count: usize,
        len: usize,
        ld: usize,
    },
    Parts(Vec<&'a mut [[u8; N]]>),
}

impl<const N: usize> Rows<'_, N> {
    fn count(&self) -> usize {
        match self {
            Self::Whole { count, .. } => *count,
            Self::Parts(parts) => parts.len(),
        }
    }

    fn row(&mut self, i: usize) -> &mut [[u8; N]] {
        match self {
            Self::Whole { cells, len, ld, .. } => &mut cells[i * *ld..i * *ld + *len],
            Self::Parts(parts) => parts[i],
        }
    }
}

/// Matrices in blocks. A task is a band of columns of the input, which are rows of the output.
fn blocks<const N: usize>(job: &Job, turn: &Turn, input: &[[u8; N]], output: &mut [[u8; N]]) {
    let (outer, inner) = (&job.axes[..turn.at], &job.axes[turn.at + 1..job.axes.len() - 1]);
    let (outer_count, inner_count) = (count(outer), count(inner));
    let (rows, cols) = (turn.rows, turn.cols);
    let side = (64 / N).next_power_of_two();
    let row_cells = rows.n * inner_count;
    // Four blocks, more where columns are short.
    let band = (4 * side).max((TASK_CELLS / row_cells).next_multiple_of(side));
    let bands = cols.n.div_ceil(band);
    let (ld, bytes) = (rows.from as usize, job.len() * N);
    let place_of = |o: usize, c: usize, k: usize| {
        let ((x, y), (u, v)) = (place(outer, o), place(inner, k));
        ((job.from as isize + x + u) as usize + c, y + v + c * cols.to as usize)
    };
    if row_cells <= TASK_ROW || (rows.n < CUT_ROW && bands * outer_count >= 4 * parallel::threads()) {
        let starts: Vec<_> = (0..outer_count).flat_map(|o| (0..bands).map(move |b| (o, b * band))).collect();
        let parts = cut(output, starts.iter().map(|&(o, c)| place_of(o, c, 0).1));
        let tasks = starts.into_iter().zip(parts).collect();
        run(bytes, tasks, &|((o, c), part): ((usize, usize), &mut [[u8; N]])| {
            let base = place_of(o, c, 0).1;
            for k in 0..inner_count {
                let (from, to) = place_of(o, c, k);
                let cells = &mut part[to - base..];
                let count = band.min(cols.n - c);
                turn_blocks(&input[from..], ld, side, Rows::Whole { cells, count, len: rows.n, ld: cols.to as usize });
            }
        });
    } else if rows.n >= CUT_ROW {
        let segments = rows.n.div_ceil(TASK_ROW);
        let lines = (0..outer_count)
            .flat_map(|o| (0..cols.n).flat_map(move |c| (0..inner_count).map(move |k| (o, c, k))))
            .collect::<Vec<_>>();
        let parts = cut(output, lines.iter().map(|&(o, c, k)| place_of(o, c, k).1));
        let mut tasks: Vec<(usize, Vec<&mut [[u8; N]]>)> = Vec::new();
        tasks.resize_with(outer_count * bands * inner_count * segments, Default::default);
        for (&(o, c, k), part) in lines.iter().zip(parts) {
            let first = ((o * bands + c / band) * inner_count + k) * segments;
            for (s, piece) in part[..rows.n].chunks_mut(TASK_ROW).enumerate() {
                let (from, pieces) = &mut tasks[first + s];
                if c % band == 0 {
                    *from = place_of(o, c, k).0 + s * TASK_ROW * ld;
                }
                pieces.push(piece);
            }
        }
        run(bytes, tasks, &|(from, pieces)| turn_blocks(&input[from..], ld, side, Rows::Parts(pieces)));
    } else {
        gather(job, input, output);
    }
}

/// Column i of the input, whose rows are `ld` elements apart, to row i of `out`, block by block.
///
/// A block goes by way of a buffer: the lines of a matrix whose row is a power of two long compete for the same places of
/// a cache, so each is used whole at once.
fn turn_blocks<const N: usize>(input: &[[u8; N]], ld: usize, side: usize, mut out: Rows<'_, N>) {
    let mut buffer = vec![[0; N]; side * side];
    let (width, height) = (out.count(), out.row(0).len());
    for r in (0..height).step_by(side) {
        let block_height = side.min(height - r);
        for c in (0..width).step_by(side) {
            let block_width = side.min(width - c);
            for k in 0..block_height {
                let from = (r + k) * ld + c;
                buffer[k * side..k * side + block_width].copy_from_slice(&input[from..from + block_width]);
            }
            for i in 0..block_width {
                let to = &mut out.row(c + i)[r..r + block_height];
                for (k, to) in to.iter_mut().enumerate() {
                    *to = buffer[k * side + i];
                }
            }
        }
    }
}
