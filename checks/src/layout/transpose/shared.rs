//! Shared parts of the specs of transpositions.

use bytemuck::Pod;

/// The transpose by definition.
pub(super) fn obvious<T: Pod>(input: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(rows * cols);
    for c in 0..cols {
        for r in 0..rows {
            out.push(input[r * cols + c]);
        }
    }
    out
}
