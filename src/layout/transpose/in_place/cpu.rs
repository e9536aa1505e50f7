//! Transposition in place on the CPU.

use super::{Steps, scratch_bytes};
use crate::{
    Result,
    layout::permute::{
        self,
        cpu::{by_size, copy_line, turn_block},
        job::Job,
    },
    memory, parallel,
    sys::lines,
};

/// Blocks per side of a tile; pairs of tiles are swapped.
const SIDE: usize = 8;
/// Minimum elements of a task, unless there are fewer in all.
const TASK_CELLS: usize = parallel::SERIAL;

/// Transposes `rows * cols` elements of `size` bytes in `data`.
pub(super) fn transpose(data: &mut [u8], (rows, cols): (usize, usize), size: usize, strip: usize) -> Result<()> {
    if rows <= 1 || cols <= 1 {
        return Ok(());
    }
    if rows != cols && data.len() <= strip {
        let mut copy = memory::zeroed(data.len())?;
        permute::cpu::permute(&Job::matrix(size, rows, cols), data, &mut copy)?;
        data.copy_from_slice(&copy);
        return Ok(());
    }
    by_size!(size, by_shape(data, (rows, cols), strip))
}

fn by_shape<const N: usize, const S: usize>(data: &mut [u8], (rows, cols): (usize, usize), strip: usize) -> Result<()> {
    let data: &mut [[u8; N]] = bytemuck::cast_slice_mut(data);
    if rows == cols { square::<N, S>(data, rows) } else { rectangle(data, &Steps::new(rows, cols), strip) }
}

/// For each band of rows, swaps each tile right of the diagonal with its mirror image below the diagonal, and
/// transposes both. Each pair is a task, and so is the tile on the diagonal.
fn square<const N: usize, const S: usize>(data: &mut [[u8; N]], n: usize) -> Result<()> {
    let side = SIDE * S;
    for first in (0..n).step_by(side) {
        let height = side.min(n - first);
        let (band, below) = data[first * n..].split_at_mut(height * n);
        // The pieces of the band's rows, tile by tile.
        let mut rows: Vec<_> = band.chunks_mut(n).map(|row| row[first..].chunks_mut(side)).collect();
        let mut tasks = memory::with_capacity(n.div_ceil(side))?;
        for tile in std::iter::once(None).chain(below.chunks_mut(side * n).map(Some)) {
            let mut pieces = memory::with_capacity(height)?;
            pieces.extend(rows.iter_mut().filter_map(Iterator::next));
            tasks.push((tile, pieces));
        }
        parallel::consume(tasks.into_iter(), &|(tile, mut pieces): (Option<_>, Vec<&mut [[u8; N]]>)| match tile {
            Some(tile) => swap_tiles::<N, S>(tile, (n, first), &mut pieces),
            None => turn_tile::<N, S>(&mut pieces),
        })?;
    }
    Ok(())
}

/// Transposes the tile of these rows, which is square.
fn turn_tile<const N: usize, const S: usize>(rows: &mut [&mut [[u8; N]]]) {
    let n = rows.len();
    let (mut above, mut below, mut turned) = ([[[0; N]; S]; S], [[[0; N]; S]; S], [[[0; N]; S]; S]);
    let read = |block: &mut [[[u8; N]; S]; S], rows: &[&mut [[u8; N]]], r: usize, c: usize| {
        for (to, row) in block.iter_mut().zip(&rows[r..]) {
            let len = S.min(n - c);
            copy_line::<N, S>(&mut to[..len], &row[c..c + len]);
        }
    };
    let write = |block: &[[[u8; N]; S]; S], rows: &mut [&mut [[u8; N]]], r: usize, c: usize| {
        for (from, row) in block.iter().zip(&mut rows[r..]) {
            let len = S.min(n - c);
            copy_line::<N, S>(&mut row[c..c + len], &from[..len]);
        }
    };
    for r in (0..n).step_by(S) {
        for c in (r..n).step_by(S) {
            read(&mut above, rows, r, c);
            read(&mut below, rows, c, r);
            turn_block(&above, &mut turned);
            write(&turned, rows, c, r);
            turn_block(&below, &mut turned);
            write(&turned, rows, r, c);
        }
    }
}

/// Swaps `pieces[i][k]` with the element in row k and column `first + i` of `tile`, for all i and k. A row of `tile`
/// has n elements.
///
/// Blocks of a cache line's width go through buffers. If the row length is a power of two, the rows compete for the
/// same sets of a cache. So each line is used whole at once, and prefetched.
fn swap_tiles<const N: usize, const S: usize>(
    tile: &mut [[u8; N]],
    (n, first): (usize, usize),
    pieces: &mut [&mut [[u8; N]]],
) {
    let tile_height = tile.len() / n;
    let (mut below, mut beside, mut turned) = ([[[0; N]; S]; S], [[[0; N]; S]; S], [[[0; N]; S]; S]);
    for top in (0..tile_height).step_by(S) {
        let height = S.min(tile_height - top);
        let next_height = S.min(tile_height - top - height);
        for (block, pieces) in pieces.chunks_mut(S).enumerate() {
            let width = pieces.len();
            let at = |k: usize| (top + k) * n + first + block * S;
            for k in height..height + next_height {
                lines::fetch(tile[at(k)..][..width].as_flattened());
            }
            for (k, below) in below[..height].iter_mut().enumerate() {
                copy_line::<N, S>(&mut below[..width], &tile[at(k)..][..width]);
            }
            turn_block(&below, &mut turned);
            for ((piece, beside), turned) in pieces.iter_mut().zip(&mut beside).zip(&turned) {
                lines::fetch(piece[top + height..][..next_height].as_flattened());
                let piece = &mut piece[top..top + height];
                copy_line::<N, S>(&mut beside[..height], piece);
                copy_line::<N, S>(piece, &turned[..height]);
            }
            turn_block(&beside, &mut turned);
            for (k, turned) in turned[..height].iter().enumerate() {
                copy_line::<N, S>(&mut tile[at(k)..][..width], &turned[..width]);
            }
        }
    }
}

/// The three steps of `cl/transpose_in_place.cl`.
fn rectangle<const N: usize>(data: &mut [[u8; N]], steps: &Steps, strip: usize) -> Result<()> {
    let &Steps { m, n, c, a, b } = steps;
    let mut scratch = memory::zeroed(scratch_bytes((m, n), N, strip) / N)?;
    if c > 1 {
        columns(data, (m, n), b, &|i| i, &mut scratch);
    }
    let rows = (TASK_CELLS / n).max(1);
    parallel::try_chunks_mut(data, rows * n, &|chunk, part| {
        let mut copy = memory::zeroed(n)?;
        for (k, row) in part.chunks_mut(n).enumerate() {
            copy.copy_from_slice(row);
            spread(&copy, row, chunk * rows + k, steps);
        }
        Ok(())
    })?;
    let from = |i: usize| ((i as u128 * n as u128 + (m - i / a) as u128) % m as u128) as usize;
    columns(data, (m, n), 1, &from, &mut scratch);
    Ok(())
}

/// Moves element j of row i to column ((i + j / b) % m + j * m) % n.
fn spread<E: Copy>(from: &[E], to: &mut [E], i: usize, &Steps { m, n, b, .. }: &Steps) {
    let wrapped = |x: usize| if x < n { x } else { x - n };
    let (mut multiple, mut turn) = (0, i);
    for part in from.chunks(b) {
        let turn_in_n = turn % n;
        for &x in part {
            to[wrapped(multiple + turn_in_n)] = x;
            multiple = wrapped(multiple + m % n);
        }
        turn = if turn + 1 < m { turn + 1 } else { 0 };
    }
}

/// Takes element (i, j) from row `(k + j / div) % m`, where k is `from(i)`, for all columns, strip by strip.
fn columns<const N: usize>(
    data: &mut [[u8; N]],
    (m, n): (usize, usize),
    div: usize,
    from: &(dyn Fn(usize) -> usize + Sync),
    scratch: &mut [[u8; N]],
) {
    let width = (scratch.len() / m).min(n);
    let rows = (TASK_CELLS / width).max(1);
    for first in (0..n).step_by(width) {
        let width = width.min(n - first);
        let strip = &mut scratch[..m * width];
        let whole = &*data;
        parallel::chunks_mut(strip, rows * width, &|chunk, part| {
            for (k, to) in part.chunks_mut(width).enumerate() {
                let mut row = (chunk * rows + k + first / div) % m;
                let mut left = div - first % div;
                for (c, x) in to.iter_mut().enumerate() {
                    *x = whole[row * n + first + c];
                    left -= 1;
                    if left == 0 {
                        left = div;
                        row = if row + 1 < m { row + 1 } else { 0 };
                    }
                }
            }
        });
        let strip = &*strip;
        parallel::chunks_mut(data, rows * n, &|chunk, part| {
            for (k, row) in part.chunks_mut(n).enumerate() {
                let at = from(chunk * rows + k) * width;
                row[first..first + width].copy_from_slice(&strip[at..at + width]);
            }
        });
    }
}
