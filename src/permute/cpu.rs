//! Permutation on the CPU: parts of the output in parallel, matrices in blocks of a cache line's width.

use std::ops::Range;

use super::job::{Axis, Job, Turn};
use crate::parallel;

/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;
/// Rows of at most so many elements are not cut.
const WHOLE_ROW: usize = 1 << 12;
/// Elements that one task takes at least, where there are as many.
const TASK_CELLS: usize = 1 << 14;
/// Elements of a part of a row at least: each costs a slice.
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
enum Rows<'a, 'b, const N: usize> {
    /// So many rows of so many elements, and how far they are apart.
    Whole { cells: &'a mut [[u8; N]], count: usize, len: usize, ld: usize },
    /// So many elements from `at` on in each.
    Parts { parts: &'a mut [&'b mut [[u8; N]]], at: usize, len: usize },
}

impl<const N: usize> Rows<'_, '_, N> {
    fn count(&self) -> usize {
        match self {
            Self::Whole { count, .. } => *count,
            Self::Parts { parts, .. } => parts.len(),
        }
    }

    fn row(&mut self, i: usize) -> &mut [[u8; N]] {
        match self {
            Self::Whole { cells, len, ld, .. } => &mut cells[i * *ld..i * *ld + *len],
            Self::Parts { parts, at, len } => &mut parts[i][*at..*at + *len],
        }
    }
}

/// Matrices in blocks. A task is some bands of columns of the input, which are rows of the output; where there are few
/// bands, a part of each of one band's rows.
///
/// What tasks and parts of rows take beside the data depends on the threads, not on how much is moved.
fn blocks<const N: usize>(job: &Job, turn: &Turn, input: &[[u8; N]], output: &mut [[u8; N]]) {
    let (outer, inner) = (&job.axes[..turn.at], &job.axes[turn.at + 1..job.axes.len() - 1]);
    let (outer_count, inner_count) = (count(outer), count(inner));
    let (rows, cols) = (turn.rows, turn.cols);
    let side = (64 / N).next_power_of_two();
    let row_cells = rows.n * inner_count;
    // Four blocks, more where columns are short.
    let band = (4 * side).max((TASK_CELLS / row_cells).next_multiple_of(side));
    let bands = cols.n.div_ceil(band);
    let all = outer_count * bands;
    let (ld, bytes) = (rows.from as usize, job.len() * N);
    let place_of = |o: usize, c: usize, k: usize| {
        let ((x, y), (u, v)) = (place(outer, o), place(inner, k));
        ((job.from as isize + x + u) as usize + c, y + v + c * cols.to as usize)
    };
    // The first column of band i of all, and where that is along the outer axes.
    let first = |i: usize| (i / bands, i % bands * band);
    let wanted = 8 * parallel::threads();
    if row_cells <= WHOLE_ROW || 2 * all >= wanted {
        let chunk = all.div_ceil(wanted).max(TASK_CELLS / (row_cells * band.min(cols.n)));
        let start = |i| {
            let (o, c) = first(i);
            (i, place_of(o, c, 0).1)
        };
        let starts: Vec<_> = (0..all).step_by(chunk).map(start).collect();
        let parts = cut(output, starts.iter().map(|&(_, at)| at));
        let tasks = starts.into_iter().zip(parts).collect();
        run(bytes, tasks, &|((i, at), part): ((usize, usize), &mut [[u8; N]])| {
            let mut buffer = vec![[0; N]; side * side];
            for (o, c) in (i..all.min(i + chunk)).map(first) {
                for k in 0..inner_count {
                    let (from, to) = place_of(o, c, k);
                    let cells = &mut part[to - at..];
                    let count = band.min(cols.n - c);
                    let out = Rows::Whole { cells, count, len: rows.n, ld: cols.to as usize };
                    turn_blocks(&input[from..], ld, &mut buffer, side, out);
                }
            }
        });
        return;
    }
    // Each column's lines are shared out, or the pieces of each line where there are few.
    let wanted = wanted.div_ceil(all);
    let lines = inner_count.div_ceil(wanted);
    let chunks = inner_count.div_ceil(lines);
    let pieces = if lines > 1 { 1 } else { wanted.div_ceil(chunks) };
    let len = rows.n.div_ceil(pieces).next_multiple_of(side).clamp(CUT_ROW.min(rows.n), rows.n);
    let pieces = rows.n.div_ceil(len);
    let columns = || (0..outer_count).flat_map(move |o| (0..cols.n).map(move |c| (o, c)));
    let starts = || columns().flat_map(move |(o, c)| (0..chunks).map(move |q| (o, c, q)));
    let parts = cut(output, starts().map(|(o, c, q)| place_of(o, c, q * lines).1));
    let mut tasks: Vec<Vec<&mut [[u8; N]]>> = Vec::new();
    tasks.resize_with(all * chunks * pieces, Vec::new);
    for ((o, c, q), part) in starts().zip(parts) {
        let task = ((o * bands + c / band) * chunks + q) * pieces;
        if lines > 1 {
            tasks[task].push(part);
        } else {
            part[..rows.n].chunks_mut(len).zip(&mut tasks[task..]).for_each(|(piece, task)| task.push(piece));
        }
    }
    let tasks = tasks.into_iter().enumerate().collect();
    run(bytes, tasks, &|(task, mut parts): (usize, Vec<&mut [[u8; N]]>)| {
        let (i, q, piece) = (task / pieces / chunks, task / pieces % chunks, task % pieces);
        let (o, c) = first(i);
        let begin = place_of(o, c, q * lines).1;
        let height = parts[0].len().min(rows.n);
        let mut buffer = vec![[0; N]; side * side];
        for k in q * lines..inner_count.min((q + 1) * lines) {
            let (from, to) = place_of(o, c, k);
            let out = Rows::Parts { parts: &mut parts, at: to - begin, len: height };
            turn_blocks(&input[from + piece * len * ld..], ld, &mut buffer, side, out);
        }
    });
}

/// Column i of the input, whose rows are `ld` elements apart, to row i of `out`, block by block.
///
/// A block of `side` x `side` goes by way of `buffer`: the lines of a matrix whose row is a power of two long compete for
/// the same places of a cache, so each is used whole at once.
fn turn_blocks<const N: usize>(
    input: &[[u8; N]],
    ld: usize,
    buffer: &mut [[u8; N]],
    side: usize,
    mut out: Rows<'_, '_, N>,
) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    /// Few bands and many, of one long row or of many short ones, for few threads and many.
    #[test]
    fn matrices_are_turned_however_they_are_shared_out() {
        let shapes: [(&[usize], &[usize]); 7] = [
            (&[300, 40, 70], &[2, 1, 0]),
            (&[30, 400, 3], &[2, 1, 0]),
            (&[30_000, 5], &[1, 0]),
            (&[5, 30_000], &[1, 0]),
            (&[3000, 3, 2, 4], &[3, 1, 2, 0]),
            (&[2, 5000, 3], &[0, 2, 1]),
            (&[9000, 3, 5], &[0, 2, 1]),
        ];
        for (shape, axes) in shapes {
            let input: Vec<[u8; 2]> = (0..shape.iter().product()).map(|i: usize| (i as u16).to_ne_bytes()).collect();
            let from = Layout::contiguous(shape).unwrap().permute(axes).unwrap();
            // With gaps after each row and beside each matrix.
            let grown: Vec<_> = from.shape().iter().map(|n| n + 1).collect();
            let cropped = |layout: Layout, axis| layout.slice(axis, ..from.shape()[axis]);
            let to = (0..axes.len()).try_fold(Layout::contiguous(&grown).unwrap(), cropped).unwrap();
            let job = Job::new(2, &from, &to).unwrap();
            assert!(job.turn().is_some(), "{shape:?}");
            let mut want = vec![[0xA5; 2]; grown.iter().product()];
            for i in 0..job.len() {
                let (from, to) = place(&job.axes, i);
                want[job.to + to] = input[(job.from as isize + from) as usize];
            }
            for threads in [1, 2, 3, 16, 100] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut got = vec![[0xA5; 2]; want.len()];
                pool.install(|| {
                    permute(&job, bytemuck::cast_slice(&input), bytemuck::cast_slice_mut(&mut got));
                });
                assert!(got == want, "{shape:?} by {axes:?}, {threads} threads");
            }
        }
    }
}
