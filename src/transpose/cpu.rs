//! Transposition on the CPU: blocks of a cache line's width, bands of the output in parallel.

use bytemuck::Pod;
use rayon::prelude::*;

/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;
/// Rows of the input that one task takes at most.
const TASK_ROWS: usize = 1 << 12;
/// Elements of the largest block.
const MAX_BLOCK: usize = 64 * 64;

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
    // A task's rows of the output, each in one piece: `pieces` goes along the rows, then down.
    let band = 4 * side;
    let mut tasks: Vec<_> = Vec::new();
    for (b, band_rows) in output.chunks_mut(band * rows).enumerate() {
        let mut pieces: Vec<_> = band_rows.chunks_mut(rows).map(|row| row.chunks_mut(TASK_ROWS)).collect();
        for segment in 0..rows.div_ceil(TASK_ROWS) {
            let out: Vec<_> = pieces.iter_mut().filter_map(Iterator::next).collect();
            tasks.push((segment * TASK_ROWS, b * band, out));
        }
    }
    let run = |(r0, c0, out): (usize, usize, Vec<&mut [[u8; N]]>)| {
        block_rows(&input[r0 * cols..], cols, c0, side, out);
    };
    if size_of_val(input) <= SERIAL_BYTES {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().for_each(run);
    }
}

/// Column `c0 + i` of the input to `out[i]`, block by block.
///
/// A block goes by way of a buffer: the lines of a matrix whose row is a power of two long compete for the same places of
/// a cache, so each is used whole at once.
fn block_rows<const N: usize>(input: &[[u8; N]], cols: usize, c0: usize, side: usize, mut out: Vec<&mut [[u8; N]]>) {
    let mut buffer = [[0; N]; MAX_BLOCK];
    let height = out[0].len();
    for r in (0..height).step_by(side) {
        let block_rows = side.min(height - r);
        for (b, out) in out.chunks_mut(side).enumerate() {
            let c = c0 + b * side;
            for k in 0..block_rows {
                let from = (r + k) * cols + c;
                buffer[k * side..k * side + out.len()].copy_from_slice(&input[from..from + out.len()]);
            }
            for (i, row) in out.iter_mut().enumerate() {
                for (k, to) in row[r..r + block_rows].iter_mut().enumerate() {
                    *to = buffer[k * side + i];
                }
            }
        }
    }
}
