//! Transposition in place on the CPU.

use std::mem::swap;

use super::{Steps, scratch_bytes};
use crate::{
    parallel,
    permute::{
        self,
        job::{Axis, Job},
    },
};

/// Elements of a tile's side; pairs of tiles change places.
const SIDE: usize = 128;
/// Elements of a task at least, where there are as many.
const TASK_CELLS: usize = 1 << 14;

/// `data` is the bytes of `rows * cols` elements of `size` bytes.
pub(super) fn transpose(data: &mut [u8], (rows, cols): (usize, usize), size: usize, strip: usize) {
    if rows <= 1 || cols <= 1 {
        return;
    }
    if rows != cols && data.len() <= strip {
        let mut copy = vec![0; data.len()];
        let axis = |n, from: usize, to: usize| Axis { n, from: from as isize, to: to as isize };
        let job = Job { size, axes: vec![axis(cols, 1, rows), axis(rows, cols, 1)], from: 0, to: 0 };
        permute::cpu::permute(&job, data, &mut copy);
        data.copy_from_slice(&copy);
        return;
    }
    // Only the size counts, so that the loops below exist once for each.
    macro_rules! by_size {
        ($($size:literal)*) => {
            match size {
                $($size if rows == cols => square::<$size>(bytemuck::cast_slice_mut(data), rows),)*
                $($size => rectangle::<$size>(bytemuck::cast_slice_mut(data), &Steps::new(rows, cols), strip),)*
                size => unreachable!("elements of {size} bytes are refused before"),
            }
        };
    }
    by_size!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

/// The tiles of each band of rows change places with those of the band of columns below it, each pair a task.
fn square<const N: usize>(data: &mut [[u8; N]], n: usize) {
    for first in (0..n).step_by(SIDE) {
        let height = SIDE.min(n - first);
        let (band, below) = data[first * n..].split_at_mut(height * n);
        for r in 0..height {
            for c in r + 1..height {
                band.swap(r * n + first + c, c * n + first + r);
            }
        }
        // The pieces of the band's rows, tile by tile.
        let mut rows: Vec<_> = band.chunks_mut(n).map(|row| row[first + height..].chunks_mut(SIDE)).collect();
        let with_pieces = |tile| (tile, rows.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
        let tasks = below.chunks_mut(SIDE * n).map(with_pieces).collect();
        parallel::consume(tasks, &|(tile, mut pieces): (&mut [[u8; N]], Vec<&mut [[u8; N]]>)| {
            swap_tiles(tile, (n, first), &mut pieces);
        });
    }
}

/// Element (k, first + i) of `tile`, whose rows have n elements, changes places with element k of piece i.
///
/// Blocks of a cache line's width go by way of a buffer: the lines of a matrix whose row is a power of two long compete
/// for the same places of a cache, so each is used whole at once.
fn swap_tiles<const N: usize>(tile: &mut [[u8; N]], (n, first): (usize, usize), pieces: &mut [&mut [[u8; N]]]) {
    let side = (64 / N).next_power_of_two();
    let mut buffer = vec![[0; N]; side * side];
    for top in (0..tile.len() / n).step_by(side) {
        let height = side.min(tile.len() / n - top);
        for (block, pieces) in pieces.chunks_mut(side).enumerate() {
            let width = pieces.len();
            let at = |k: usize| (top + k) * n + first + block * side;
            for k in 0..height {
                buffer[k * side..][..width].copy_from_slice(&tile[at(k)..][..width]);
            }
            for (i, piece) in pieces.iter_mut().enumerate() {
                piece[top..top + height].iter_mut().enumerate().for_each(|(k, x)| swap(x, &mut buffer[k * side + i]));
            }
            for k in 0..height {
                tile[at(k)..][..width].copy_from_slice(&buffer[k * side..][..width]);
            }
        }
    }
}

/// The three steps of `cl/transpose_in_place.cl`.
fn rectangle<const N: usize>(data: &mut [[u8; N]], steps: &Steps, strip: usize) {
    let &Steps { m, n, c, a, b } = steps;
    let mut scratch = vec![[0; N]; scratch_bytes((m, n), N, strip) / N];
    if c > 1 {
        columns(data, (m, n), b, &|i| i, &mut scratch);
    }
    let rows = (TASK_CELLS / n).max(1);
    parallel::chunks_mut(data, rows * n, &|chunk, part| {
        let mut copy = vec![[0; N]; n];
        for (k, row) in part.chunks_mut(n).enumerate() {
            copy.copy_from_slice(row);
            spread(&copy, row, chunk * rows + k, steps);
        }
    });
    let from = |i: usize| ((i as u128 * n as u128 + (m - i / a) as u128) % m as u128) as usize;
    columns(data, (m, n), 1, &from, &mut scratch);
}

/// Element j of row i goes to column ((i + j / b) % m + j * m) % n.
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

/// Element (i, j) from row `(k + j / div) % m`, where k is `from(i)`, for all columns, strip by strip.
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
