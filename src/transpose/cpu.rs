//! Transposition on the CPU: blocks of a cache line's width, bands of the output in parallel.

use bytemuck::Pod;

use crate::parallel;

/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;
/// Rows of the input that one task takes at most.
const TASK_ROWS: usize = 1 << 12;
/// Elements that one task takes at least, where there are as many.
const TASK_CELLS: usize = 1 << 14;

/// `output[c * rows + r] = input[r * cols + c]`; both have `rows * cols` elements of 1 to 16 bytes.
pub(super) fn transpose<T: Pod>(input: &[T], rows: usize, cols: usize, output: &mut [T]) {
    // Only the size counts, so that the loops below exist once for each.
    macro_rules! by_size {
        ($($size:literal)*) => {
            match size_of::<T>() {
                $($size => cells::<$size>(bytemuck::cast_slice(input), rows, cols, bytemuck::cast_slice_mut(output)),)*
                size => unreachable!("elements of {size} bytes are refused before"),
            }
        };
    }
    by_size!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

fn cells<const N: usize>(input: &[[u8; N]], rows: usize, cols: usize, output: &mut [[u8; N]]) {
    if rows == 1 || cols == 1 {
        return output.copy_from_slice(input);
    }
    if input.is_empty() {
        return;
    }
    let side = (64 / N).next_power_of_two();
    // Columns of a task: four blocks, more where they are short.
    let band = (4 * side).max((TASK_CELLS / rows).next_multiple_of(side));
    let bands = output.chunks_mut(band * rows).enumerate().map(|(b, band_rows)| (b * band, band_rows));
    let tasks: Vec<_> = if rows <= TASK_ROWS {
        bands.map(|(c0, band_rows)| (0, c0, Rows::Whole(band_rows, rows))).collect()
    } else {
        bands.flat_map(|(c0, band_rows)| segments(band_rows, rows, c0)).collect()
    };
    let run = |(r0, c0, out): (usize, usize, Rows<'_, N>)| block_rows(&input[r0 * cols..], cols, c0, side, out);
    if size_of_val(input) <= SERIAL_BYTES {
        tasks.into_iter().for_each(run);
    } else {
        parallel::consume(tasks, &run);
    }
}

/// Rows of the output, or a part of each.
enum Rows<'a, const N: usize> {
    /// All of them, of so many elements.
    Whole(&'a mut [[u8; N]], usize),
    Parts(Vec<&'a mut [[u8; N]]>),
}

impl<const N: usize> Rows<'_, N> {
    fn count(&self) -> usize {
        match self {
            Self::Whole(cells, len) => cells.len() / len,
            Self::Parts(parts) => parts.len(),
        }
    }

    fn row(&mut self, i: usize) -> &mut [[u8; N]] {
        match self {
            Self::Whole(cells, len) => &mut cells[i * *len..(i + 1) * *len],
            Self::Parts(parts) => parts[i],
        }
    }
}

/// A band of long rows, cut into tasks: the first row of the input, the first column, and the parts to write.
fn segments<const N: usize>(band: &mut [[u8; N]], rows: usize, c0: usize) -> Vec<(usize, usize, Rows<'_, N>)> {
    let mut parts: Vec<_> = band.chunks_mut(rows).map(|row| row.chunks_mut(TASK_ROWS)).collect();
    let segment = |r0| (r0, c0, Rows::Parts(parts.iter_mut().filter_map(Iterator::next).collect()));
    (0..rows).step_by(TASK_ROWS).map(segment).collect()
}

/// Column `c0 + i` of the input to row i of `out`, block by block.
///
/// A block goes by way of a buffer: the lines of a matrix whose row is a power of two long compete for the same places of
/// a cache, so each is used whole at once.
fn block_rows<const N: usize>(input: &[[u8; N]], cols: usize, c0: usize, side: usize, mut out: Rows<'_, N>) {
    let mut buffer = vec![[0; N]; side * side];
    let (width, height) = (out.count(), out.row(0).len());
    for r in (0..height).step_by(side) {
        let block_height = side.min(height - r);
        for c in (0..width).step_by(side) {
            let block_width = side.min(width - c);
            for k in 0..block_height {
                let from = (r + k) * cols + c0 + c;
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
