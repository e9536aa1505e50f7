//! Transposition in place on the CPU.

use super::Steps;
use crate::parallel;

/// Elements of a tile's side; pairs of tiles change places.
const SIDE: usize = 128;
/// Bytes of a strip of columns, unless a column is longer.
const STRIP_BYTES: usize = 4 << 20;
/// Elements of a task at least, where there are as many.
const TASK_CELLS: usize = 1 << 14;

/// `data` is the bytes of `rows * cols` elements of `size` bytes.
pub(super) fn transpose(data: &mut [u8], rows: usize, cols: usize, size: usize) {
    // Only the size counts, so that the loops below exist once for each.
    macro_rules! by_size {
        ($($size:literal)*) => {
            match size {
                $($size => cells::<$size>(bytemuck::cast_slice_mut(data), rows, cols),)*
                size => unreachable!("elements of {size} bytes are refused before"),
            }
        };
    }
    by_size!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

fn cells<const N: usize>(data: &mut [[u8; N]], rows: usize, cols: usize) {
    if rows <= 1 || cols <= 1 {
        return;
    }
    if rows == cols {
        square(data, rows);
    } else {
        rectangle(data, &Steps::new(rows, cols));
    }
}

/// The tiles of one band of rows change places with those of a band of columns, each pair a task.
fn square<const N: usize>(data: &mut [[u8; N]], n: usize) {
    for first in (0..n).step_by(SIDE) {
        let (_, rest) = data.split_at_mut(first * n);
        let height = SIDE.min(n - first);
        let (band, below) = rest.split_at_mut(height * n);
        for r in 0..height {
            for c in r + 1..height {
                band.swap(r * n + first + c, c * n + first + r);
            }
        }
        // The pieces of the band's rows, tile by tile.
        let mut rows: Vec<_> = band.chunks_mut(n).map(|row| row[first + height..].chunks_mut(SIDE)).collect();
        let tasks = below
            .chunks_mut(SIDE * n)
            .map(|tile| (rows.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>(), tile));
        parallel::consume(tasks.collect(), &|(mut pieces, tile)| {
            for (k, row) in tile.chunks_mut(n).enumerate() {
                for (x, piece) in row[first..first + height].iter_mut().zip(&mut pieces) {
                    std::mem::swap(x, &mut piece[k]);
                }
            }
        });
    }
}

/// The three steps; what `cl/transpose_in_place.cl` says of them holds here too.
fn rectangle<const N: usize>(data: &mut [[u8; N]], steps: &Steps) {
    let &Steps { m, n, c, a, b, inverse } = steps;
    if c > 1 {
        columns(data, m, n, &|r, j| (r + j / b) % m);
    }
    let rows = (TASK_CELLS / n).max(1);
    parallel::chunks_mut(data, rows * n, &|chunk, part| {
        let mut copy = vec![[0; N]; n];
        for (k, row) in part.chunks_mut(n).enumerate() {
            let i = chunk * rows + k;
            copy.copy_from_slice(row);
            for (j, x) in row.iter_mut().enumerate() {
                let q = (j % c + c - i % c) % c;
                let s = (i + q) % m % n;
                let multiple = (j + n - s) % n / c;
                *x = copy[q * b + (multiple as u128 * inverse as u128 % b as u128) as usize];
            }
        }
    });
    columns(data, m, n, &|r, j| ((j as u128 + r as u128 * n as u128 - (r / a) as u128) % m as u128) as usize);
}

/// Element (r, j) from row `from(r, j)`, for all columns, strip by strip.
fn columns<const N: usize>(data: &mut [[u8; N]], m: usize, n: usize, from: &(dyn Fn(usize, usize) -> usize + Sync)) {
    let width = (STRIP_BYTES / N / m).clamp(1, n);
    let mut strip = vec![[0; N]; m * width];
    let rows = (TASK_CELLS / width).max(1);
    for first in (0..n).step_by(width) {
        let width = width.min(n - first);
        let strip = &mut strip[..m * width];
        let whole = &*data;
        parallel::chunks_mut(strip, rows * width, &|chunk, part| {
            for (k, to) in part.chunks_mut(width).enumerate() {
                let at = (chunk * rows + k) * n + first;
                to.copy_from_slice(&whole[at..at + width]);
            }
        });
        let strip = &*strip;
        parallel::chunks_mut(data, rows * n, &|chunk, part| {
            for (k, row) in part.chunks_mut(n).enumerate() {
                for (c, x) in row[first..first + width].iter_mut().enumerate() {
                    *x = strip[from(chunk * rows + k, first + c) * width + c];
                }
            }
        });
    }
}
