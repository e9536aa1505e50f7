//! Shared parts of the specs of transpositions.

use bytemuck::Pod;

/// The transpose by definition.
pub(super) fn obvious<T: Pod>(input: &[T], rows: usize, cols: usize) -> Vec<T> {
    (0..cols).flat_map(|c| (0..rows).map(move |r| input[r * cols + c])).collect()
}
