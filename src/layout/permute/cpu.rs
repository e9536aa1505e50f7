//! Permutation on the CPU: parts of the output in parallel, matrices in blocks of a cache line's width.

use std::ops::Range;

use super::job::{Axis, Job, Turn};
use crate::{
    Result, memory, parallel,
    sys::lines::{self, LINE, STREAM_BYTES, Stream},
};

/// Below this many bytes, threads cost more than they save.
const SERIAL_BYTES: usize = 128 << 10;
/// Rows of at most this many elements are not split.
const WHOLE_ROW: usize = 1 << 12;
/// Minimum elements of a task, unless there are fewer in all.
const TASK_CELLS: usize = 1 << 14;
/// Minimum elements of a part of a row: each part costs a slice.
const CUT_ROW: usize = 256;

/// Blocks per side of a tile, if results are streamed past the caches. Longer pieces of rows get more of the memory's
/// bandwidth. Runs of 4 cache lines are written at full speed; runs of 16 are read at full speed if they are
/// prefetched.
const HIGH: usize = 4;
const WIDE: [usize; 2] = [16, 8];
/// Width of a tile in blocks, if results stay in caches.
const CACHED_WIDE: usize = 4;
/// Number of rows by which the prefetch of a piece runs ahead. If the row length is a power of two, caches hold few
/// more than `AHEAD` pieces.
const AHEAD: usize = 16;
/// Minimum bytes of a row of the result that is streamed.
const STREAM_ROW_BYTES: usize = 256;
/// Bytes read at once from a matrix of few rows or columns.
const NARROW_BYTES: usize = 8192;

/// The source of the elements.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// Writes contiguous elements, the first of which has the given index, to bytes that are aligned for their type.
    pub(crate) read: &'a (dyn Fn(usize, &mut [u8]) + Sync),
    /// Prefetches contiguous elements: the index of the first, and their number.
    pub(crate) fetch: &'a (dyn Fn(usize, usize) + Sync),
}

/// Calls `$run::<N, S>` for elements of N bytes and blocks of S x S elements, which are at least a cache line wide.
/// Only the size counts, so there is one instance of a loop per size.
macro_rules! by_size {
    ($size:expr, $run:ident $arguments:tt) => {
        by_size!($size, $run $arguments 1 64 2 32 3 32 4 16 5 16 6 16 7 16 8 8 9 8 10 8 11 8 12 8 13 8 14 8 15 8 16 4)
    };
    ($size:expr, $run:ident $arguments:tt $($n:literal $side:literal)*) => {
        match $size {
            $($n => $run::<$n, $side>$arguments,)*
            size => unreachable!("no loop for elements of {size} bytes: the caller splits them into units or refuses them"),
        }
    };
}
pub(crate) use by_size;

/// Moves elements as `job` describes. The caller has checked the job against both lengths.
pub(crate) fn permute(job: &Job, input: &[u8], output: &mut [u8]) -> Result<()> {
    by_size!(job.size, cells(job, input, output, STREAM_BYTES))
}

/// Transposes the matrix of `rows` x `cols` elements of `size` bytes that `source` reads. Both sides are at least 2.
pub(crate) fn turn_from(
    size: usize,
    (rows, cols): (usize, usize),
    source: Source<'_>,
    output: &mut [u8],
) -> Result<()> {
    let job = Job::matrix(size, rows, cols);
    let turn = job.turn().expect("both sides are longer than 1");
    by_size!(size, blocks(&job, &turn, source, bytemuck::cast_slice_mut(output), STREAM_BYTES))
}

/// Moves elements of `N` bytes as `job` describes. Results of at least `stream` bytes are written past the caches.
fn cells<const N: usize, const S: usize>(job: &Job, input: &[u8], output: &mut [u8], stream: usize) -> Result<()> {
    if job.len() == 0 {
        return Ok(());
    }
    let input: &[[u8; N]] = bytemuck::cast_slice(input);
    let output = &mut bytemuck::cast_slice_mut(output)[job.to..];
    let Some(turn) = job.turn() else {
        return gather::<N>(job, input, output);
    };
    let read = |from: usize, to: &mut [u8]| {
        let to: &mut [[u8; N]] = bytemuck::cast_slice_mut(to);
        to.copy_from_slice(&input[from..from + to.len()]);
    };
    let fetch = |from: usize, len: usize| lines::fetch(input[from..from + len].as_flattened());
    blocks::<N, S>(job, &turn, Source { read: &read, fetch: &fetch }, output, stream)
}

/// Offsets of element i of the array that `axes` span, relative to its first element, in the input and in the output.
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

/// Splits `data` into parts that begin at the ascending `starts`; each ends where the next begins.
fn cut<E>(mut data: &mut [E], starts: impl Iterator<Item = usize>) -> Result<Vec<&mut [E]>> {
    let mut parts = Vec::new();
    let mut done = 0;
    for (i, start) in starts.enumerate() {
        let (part, rest) = data.split_at_mut(start - done);
        if i > 0 {
            memory::push(&mut parts, part)?;
        }
        (data, done) = (rest, start);
    }
    memory::push(&mut parts, data)?;
    Ok(parts)
}

/// Runs the tasks, in parallel if they move many bytes.
fn run<I: Send>(
    bytes: usize,
    mut tasks: impl ExactSizeIterator<Item = I>,
    body: &(dyn Fn(I) -> Result<()> + Sync),
) -> Result<()> {
    if bytes <= SERIAL_BYTES { tasks.try_for_each(body) } else { parallel::try_consume(tasks, body) }
}

/// Permutes row by row along the output.
fn gather<const N: usize>(job: &Job, input: &[[u8; N]], output: &mut [[u8; N]]) -> Result<()> {
    let total = job.len();
    let chunk = total.div_ceil(8 * parallel::threads()).max(TASK_CELLS);
    let starts = memory::collect((0..total).step_by(chunk).map(|first| (first, place(&job.axes, first).1)))?;
    let parts = cut(output, starts.iter().map(|&(_, at)| at))?;
    let tasks = starts.iter().zip(parts).map(|(&(first, at), part)| (first..total.min(first + chunk), at, part));
    run(total * N, tasks, &|(range, at, part)| {
        gather_part(job, input, range, at, part);
        Ok(())
    })
}

/// Writes the elements `range` to `part`, whose first element has offset `at` in the output.
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

/// Rows of an output matrix, or a part of each row.
enum Rows<'a, 'b, const N: usize> {
    /// `count` rows of `len` elements each, `ld` elements apart.
    Whole { cells: &'a mut [[u8; N]], count: usize, len: usize, ld: usize },
    /// `len` elements of each row, from index `at` on.
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

/// Permutes matrices in blocks. A task is several bands of columns of the input, which are rows of the output. If there
/// are few bands, a task is a part of each row of one band.
///
/// Memory for tasks and parts of rows grows with the number of threads, not with the size of the data.
fn blocks<const N: usize, const S: usize>(
    job: &Job,
    turn: &Turn,
    source: Source<'_>,
    output: &mut [[u8; N]],
    stream: usize,
) -> Result<()> {
    let (outer, inner) = (&job.axes[..turn.at], &job.axes[turn.at + 1..job.axes.len() - 1]);
    let (outer_count, inner_count) = (count(outer), count(inner));
    let (rows, cols) = (turn.rows, turn.cols);
    let row_cells = rows.n * inner_count;
    let (ld, bytes) = (rows.from as usize, job.len() * N);
    let wanted = 8 * parallel::threads();
    let short = rows.n * N < STREAM_ROW_BYTES && inner_count * outer_count > 1;
    let form = if bytes < stream || short {
        Form { wide: CACHED_WIDE, high: 1, streams: false }
    } else {
        let enough = |wide: &usize| 2 * outer_count * cols.n.div_ceil(wide * S) >= wanted;
        Form { wide: WIDE.into_iter().find(enough).unwrap_or(WIDE[0]), high: HIGH, streams: true }
    };
    // A band has one tile, or more if columns are short.
    let band = (form.wide * S).max((TASK_CELLS / row_cells).next_multiple_of(S));
    let form = form.fitting((rows.n, band.min(cols.n)), S);
    let bands = cols.n.div_ceil(band);
    let all = outer_count * bands;
    let place_of = |o: usize, c: usize, k: usize| {
        let ((x, y), (u, v)) = (place(outer, o), place(inner, k));
        ((job.from as isize + x + u) as usize + c, y + v + c * cols.to as usize)
    };
    // Index along the outer axes, and first column, of band i.
    let first = |i: usize| (i / bands, i % bands * band);
    if row_cells <= WHOLE_ROW || 2 * all >= wanted {
        let chunk = all.div_ceil(wanted).max(TASK_CELLS / (row_cells * band.min(cols.n)));
        let start = |i| {
            let (o, c) = first(i);
            (i, place_of(o, c, 0).1)
        };
        let starts = memory::collect((0..all).step_by(chunk).map(start))?;
        let parts = cut(output, starts.iter().map(|&(_, at)| at))?;
        let tasks = starts.into_iter().zip(parts);
        return run(bytes, tasks, &|((i, at), part): ((usize, usize), &mut [[u8; N]])| {
            let mut tiles = Tiles::<N, S>::new(form)?;
            for (o, c) in (i..all.min(i + chunk)).map(first) {
                for k in 0..inner_count {
                    let (from, to) = place_of(o, c, k);
                    let cells = &mut part[to - at..];
                    let count = band.min(cols.n - c);
                    let out = Rows::Whole { cells, count, len: rows.n, ld: cols.to as usize };
                    tiles.turn(source, (from, ld), out);
                }
            }
            Ok(())
        });
    }
    // Each column has `inner_count` lines of `rows.n` elements. A task takes several lines of each column of a band.
    // If there are few lines, it takes one line of each column, or a piece of one.
    let wanted = wanted.div_ceil(all);
    let lines = inner_count.div_ceil(wanted);
    let chunks = inner_count.div_ceil(lines);
    let pieces = if lines > 1 { 1 } else { wanted.div_ceil(chunks) };
    let len = rows.n.div_ceil(pieces).next_multiple_of(S).clamp(CUT_ROW.min(rows.n), rows.n);
    let pieces = rows.n.div_ceil(len);
    let columns = || (0..outer_count).flat_map(move |o| (0..cols.n).map(move |c| (o, c)));
    let starts = || columns().flat_map(move |(o, c)| (0..chunks).map(move |q| (o, c, q)));
    let parts = cut(output, starts().map(|(o, c, q)| place_of(o, c, q * lines).1))?;
    let mut tasks: Vec<Vec<&mut [[u8; N]]>> = memory::collect((0..all * chunks * pieces).map(|_| Vec::new()))?;
    for ((o, c, q), part) in starts().zip(parts) {
        let task = ((o * bands + c / band) * chunks + q) * pieces;
        if lines > 1 {
            memory::push(&mut tasks[task], part)?;
        } else {
            let mut each = part[..rows.n].chunks_mut(len).zip(&mut tasks[task..]);
            each.try_for_each(|(piece, task)| memory::push(task, piece))?;
        }
    }
    run(bytes, tasks.into_iter().enumerate(), &|(task, mut parts): (usize, Vec<&mut [[u8; N]]>)| {
        let (i, q, piece) = (task / pieces / chunks, task / pieces % chunks, task % pieces);
        let (o, c) = first(i);
        let begin = place_of(o, c, q * lines).1;
        let height = parts[0].len().min(rows.n);
        let mut tiles = Tiles::<N, S>::new(form)?;
        for k in q * lines..inner_count.min((q + 1) * lines) {
            let (from, to) = place_of(o, c, k);
            let out = Rows::Parts { parts: &mut parts, at: to - begin, len: height };
            tiles.turn(source, (from + piece * len * ld, ld), out);
        }
        Ok(())
    })
}

/// Blocks of a tile, and whether results are streamed past the caches.
#[derive(Clone, Copy)]
struct Form {
    wide: usize,
    high: usize,
    streams: bool,
}

impl Form {
    /// The form, limited to the size of the matrix.
    fn fitting(self, (height, width): (usize, usize), side: usize) -> Self {
        Self { wide: self.wide.min(width.div_ceil(side)), high: self.high.min(height.div_ceil(side)), ..self }
    }
}

/// The buffers with which a task transposes matrices: tiles of several blocks of `S` x `S` elements of `N` bytes.
///
/// Every block goes through buffers. If the row length of a matrix is a power of two, its rows compete for the same
/// sets of a cache. So each cache line is read and written whole at once.
struct Tiles<const N: usize, const S: usize> {
    form: Form,
    /// Rows of the input. Padding of one cache line separates them, so that the rows of a block are in different sets
    /// of the cache.
    panel: Vec<[u128; LINE / 16]>,
    /// Rows of the output. Room before each row holds the bytes that wait for the rest of their cache line, since only
    /// whole lines are streamed.
    stage: Vec<u8>,
    block: [[[u8; N]; S]; S],
    turned: [[[u8; N]; S]; S],
    stream: Stream,
}

impl<const N: usize, const S: usize> Tiles<N, S> {
    fn new(form: Form) -> Result<Self> {
        let Form { wide, high, streams } = form;
        let lines = (S * Self::pitch(wide)).max(NARROW_BYTES).div_ceil(LINE);
        Ok(Self {
            form,
            panel: memory::zeroed(lines)?,
            stage: memory::zeroed(if streams { wide * S * Self::stage_pitch(high) } else { 0 })?,
            block: [[[0; N]; S]; S],
            turned: [[[0; N]; S]; S],
            stream: Stream::new(),
        })
    }

    /// Bytes between rows of the panel.
    fn pitch(wide: usize) -> usize {
        (wide * S * N + LINE).next_multiple_of(16)
    }

    /// Bytes between rows of the stage.
    fn stage_pitch(high: usize) -> usize {
        LINE + high * S * N
    }

    /// Transposes column i of the input to row i of `out`. The input begins at `from`, and its rows are `ld` elements
    /// apart.
    fn turn(&mut self, source: Source<'_>, (from, ld): (usize, usize), mut out: Rows<'_, '_, N>) {
        let (width, height) = (out.count(), out.row(0).len());
        let few = (S / 2).clamp(4, 8);
        let small = height <= few || width * height <= S * S / 4;
        if let (true, Rows::Whole { cells, ld: out_ld, .. }) = (small, &mut out) {
            let len = (width - 1) * *out_ld + height;
            return self.interleave(source, (from, ld), height, &mut cells[..len], *out_ld);
        }
        if width <= few && ld == width {
            return self.separate(source, from, out);
        }
        let Form { wide, high, streams } = self.form;
        for c in (0..width).step_by(wide * S) {
            let w = (width - c).min(wide * S);
            for r in (0..height).step_by(high * S) {
                let h = (height - r).min(high * S);
                for q in 0..h.div_ceil(S) {
                    let (top, rows) = (r + q * S, S.min(h - q * S));
                    let fetch = |k: usize| {
                        if streams && top + k < height {
                            (source.fetch)(from + (top + k) * ld + c, w);
                        }
                    };
                    let panel: &mut [u8] = bytemuck::cast_slice_mut(&mut self.panel);
                    for (k, to) in panel.chunks_exact_mut(Self::pitch(wide)).take(rows).enumerate() {
                        if k + AHEAD < S {
                            fetch(k + AHEAD);
                        }
                        (source.read)(from + (top + k) * ld + c, &mut to[..w * N]);
                    }
                    // While these blocks are transposed, the first rows of the next ones are prefetched.
                    let blocks = w.div_ceil(S);
                    let share = AHEAD.min(S).div_ceil(blocks);
                    for b in 0..blocks {
                        (b * share..AHEAD.min(S).min((b + 1) * share)).for_each(|k| fetch(S + k));
                        self.turn_one(b);
                        let turned = &self.turned[..S.min(w - b * S)];
                        if streams {
                            let pitch = Self::stage_pitch(high);
                            for (to, row) in self.stage[b * S * pitch..].chunks_exact_mut(pitch).zip(turned) {
                                to[LINE + q * S * N..][..S * N].copy_from_slice(row.as_flattened());
                            }
                        } else {
                            for (i, row) in turned.iter().enumerate() {
                                copy_line::<N, S>(&mut out.row(c + b * S + i)[top..top + rows], &row[..rows]);
                            }
                        }
                    }
                }
                if streams {
                    for i in 0..w {
                        self.write(i, (r, h), out.row(c + i));
                    }
                }
            }
        }
    }

    /// Transposes block `b` of the panel.
    fn turn_one(&mut self, b: usize) {
        let panel: &[u8] = bytemuck::cast_slice(&self.panel);
        for (to, row) in self.block.iter_mut().zip(panel.chunks_exact(Self::pitch(self.form.wide))) {
            to.as_flattened_mut().copy_from_slice(&row[b * S * N..][..S * N]);
        }
        turn_block(&self.block, &mut self.turned);
    }

    /// Writes elements r to r + h of `row`, which are in row `i` of the stage.
    fn write(&mut self, i: usize, (r, h): (usize, usize), row: &mut [[u8; N]]) {
        let stage = &mut self.stage[i * Self::stage_pitch(self.form.high)..][..LINE + h * N];
        let last = r + h == row.len();
        let row = row[..r + h].as_flattened_mut();
        // The waiting bytes end where the new bytes begin. The first waiting byte starts a cache line or the row.
        let into_line = |at: usize| row.as_ptr().wrapping_add(at) as usize % LINE;
        let before = into_line(r * N).min(r * N);
        let after = if last { 0 } else { into_line(row.len()) };
        let end = row.len() - after;
        self.stream.copy(&mut row[r * N - before..end], &stage[LINE - before..LINE + h * N - after]);
        if after > 0 {
            stage.copy_within(h * N..h * N + LINE, 0);
        }
    }

    /// Transposes a matrix of few rows. The rows of the output are short and `out_ld` elements apart.
    fn interleave(
        &mut self,
        source: Source<'_>,
        (from, ld): (usize, usize),
        height: usize,
        cells: &mut [[u8; N]],
        out_ld: usize,
    ) {
        let panel: &mut [u8] = bytemuck::cast_slice_mut(&mut self.panel);
        let mut make = |first: usize, piece: &mut [u8]| {
            let piece: &mut [[u8; N]] = bytemuck::cast_slice_mut(piece);
            let buffer = &mut panel[..piece.len().div_ceil(out_ld) * N];
            for k in 0..height {
                (source.read)(from + k * ld + first, buffer);
                let buffer: &[[u8; N]] = bytemuck::cast_slice(buffer);
                piece[k..].iter_mut().step_by(out_ld).zip(buffer).for_each(|(to, x)| *to = *x);
            }
        };
        if self.form.streams && out_ld == height && cells.len() * N >= 4 * NARROW_BYTES {
            return self.stream.fill(cells.as_flattened_mut(), height * N, &mut make);
        }
        let columns = NARROW_BYTES / N;
        for (i, piece) in cells.chunks_mut(columns.saturating_mul(out_ld)).enumerate() {
            make(i * columns, piece.as_flattened_mut());
        }
    }

    /// Transposes a matrix of few columns, without gaps between its rows.
    fn separate(&mut self, source: Source<'_>, from: usize, mut out: Rows<'_, '_, N>) {
        let (width, height) = (out.count(), out.row(0).len());
        let panel: &mut [u8] = bytemuck::cast_slice_mut(&mut self.panel);
        let rows = NARROW_BYTES / (width * N);
        for r in (0..height).step_by(rows) {
            let h = rows.min(height - r);
            let buffer = &mut panel[..h * width * N];
            (source.read)(from + r * width, buffer);
            let buffer: &[[u8; N]] = bytemuck::cast_slice(buffer);
            for i in 0..width {
                let to = &mut out.row(i)[r..r + h];
                to.iter_mut().zip(buffer[i..].iter().step_by(width)).for_each(|(to, x)| *to = *x);
            }
        }
    }
}

/// Copies at most `S` elements. Exactly `S` elements are copied as one array.
#[inline(always)]
pub(crate) fn copy_line<const N: usize, const S: usize>(to: &mut [[u8; N]], from: &[[u8; N]]) {
    match (<&mut [[u8; N]; S]>::try_from(&mut *to), <&[[u8; N]; S]>::try_from(from)) {
        (Ok(to), Ok(from)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

/// Transposes a block: row i of `to` is column i of `block`.
pub(crate) fn turn_block<const N: usize, const S: usize>(block: &[[[u8; N]; S]; S], to: &mut [[[u8; N]; S]; S]) {
    if N > 2 {
        for (i, to) in to.iter_mut().enumerate() {
            for (to, row) in to.iter_mut().zip(block) {
                *to = row[i];
            }
        }
        return;
    }
    // Perfect shuffles transpose as many rows as a vector has elements; the compiler turns the shuffles into vector
    // instructions.
    let at_once = 16 / N;
    let (mut x, mut y) = ([[0; N]; 1024], [[0; N]; 1024]);
    let (x, y) = (&mut x[..at_once * S], &mut y[..at_once * S]);
    for (top, rows) in block.chunks_exact(at_once).enumerate() {
        shuffle(rows.as_flattened(), x);
        shuffle(x, y);
        shuffle(y, x);
        if N == 1 {
            shuffle(x, y);
        }
        let turned: &[[u8; N]] = if N == 1 { y } else { x };
        for (to, x) in to.iter_mut().zip(turned.chunks_exact(at_once)) {
            to[top * at_once..][..at_once].copy_from_slice(x);
        }
    }
}

/// Interleaves the two halves of `from`, element by element.
#[inline(always)]
fn shuffle<E: Copy>(from: &[E], to: &mut [E]) {
    let (a, b) = from.split_at(from.len() / 2);
    for ((to, &a), &b) in to.chunks_exact_mut(2).zip(a).zip(b) {
        (to[0], to[1]) = (a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    /// Shapes with few or many bands, and with long or short rows, each on few and on many threads.
    #[test]
    fn matrices_are_transposed_for_any_split_of_the_work() {
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
            // With gaps after each row and next to each matrix.
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
            for (threads, stream) in [1, 2, 3, 16, 100].into_iter().flat_map(|n| [(n, usize::MAX), (n, 0)]) {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut got = vec![[0xA5; 2]; want.len()];
                pool.install(|| {
                    let output = bytemuck::cast_slice_mut(&mut got);
                    cells::<2, 32>(&job, bytemuck::cast_slice(&input), output, stream).unwrap();
                });
                assert!(got == want, "{shape:?} by {axes:?}, {threads} threads, past the caches from {stream} bytes");
            }
        }
    }

    /// Every element size and every offset within a cache line, with one tile and with several.
    #[test]
    fn elements_of_every_size_are_transposed_and_streamed() {
        for size in 1..=Job::MAX_BYTES {
            let side = (64 / size).next_power_of_two();
            for (rows, cols) in
                [(2, 700), (700, 3), (side, side), (5 * side + 3, 17 * side + 1), (9 * side, 3 * side - 1)]
            {
                let job = Job::matrix(size, rows, cols);
                let input: Vec<u8> = (0..rows * cols * size).map(|i| (i * 7 % 251) as u8).collect();
                let begins = if size < 3 { 0..3 } else { 5..6 };
                for (begin, stream) in begins.flat_map(|begin| [(begin, usize::MAX), (begin, 0), (begin + 8, 0)]) {
                    let mut got = vec![0xA5; begin + input.len() + 1];
                    let output = &mut got[begin..begin + input.len()];
                    by_size!(size, cells(&job, &input, output, stream)).unwrap();
                    let right = |(i, x): (usize, &[u8])| *x == input[(i % rows * cols + i / rows) * size..][..size];
                    let all = got[begin..begin + input.len()].chunks(size).enumerate().all(right);
                    assert!(all, "{rows} x {cols} of {size} bytes at {begin}, past the caches from {stream} bytes");
                    assert!(got[..begin].iter().chain(got.last()).all(|&x| x == 0xA5));
                }
            }
        }
    }
}
