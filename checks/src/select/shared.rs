//! Shared parts of the specs of selections.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::check::{Failure, Level, poison, same_bytes};

/// Fails unless an output holds the wanted elements, as many as fit, and is untouched after them.
pub(in crate::select) fn filled<T: Pod + Debug>(got: &[T], want: &[T], what: &str) -> Result<(), Failure> {
    let kept = got.len().min(want.len());
    same_bytes(&got[..kept], &want[..kept], what)?;
    untouched(&got[kept..], what)
}

/// Fails unless the elements after the result are still poison.
pub(in crate::select) fn untouched<T: Pod + Debug>(behind: &[T], what: &str) -> Result<(), Failure> {
    same_bytes(behind, &vec![poison(); behind.len()], &format!("{what} after the last one, "))
}

/// Length of an output. `i` selects one of three: `n`, `found` (the number of results), or less than `found` if that is
/// not 0.
pub(in crate::select) fn rooms(n: usize, found: usize, i: usize) -> usize {
    match i % 4 {
        0 | 1 => n,
        2 => found,
        _ => found - found.min(found / 3 + 1),
    }
}

/// Offset of an output whose input begins at `offset`. For `offset > 0`, the two differ in their alignment to 16-byte
/// words, if input and output have elements of the same size: 1, 2, 4 or 8 bytes.
pub(in crate::select) fn out_offset(offset: usize) -> usize {
    if offset == 0 { 0 } else { offset + 1 }
}

/// Sizes at the edges of vectors, rows and tiles of 4 KiB to 32 KiB, for elements of `size` bytes.
pub(in crate::select) fn sizes(level: Level, size: usize) -> Vec<usize> {
    let (row, tile) = (4096 / size, (16 << 10) / size);
    let mut sizes = vec![0, 1, row + 3, 3 * row / 2];
    if level >= Level::Quick {
        sizes.extend([16 / size + 1, 2 * tile + 5, 40 * tile - 1]);
    }
    if level >= Level::Full {
        sizes.extend([2, row - 1, row, tile - 1, tile, tile + 1, 2 * tile, 1_000_003]);
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_differ_from_inputs_in_alignment() {
        for size in [1, 2, 4, 8] {
            for offset in 1..4 {
                assert_ne!(offset * size % 16, out_offset(offset) * size % 16, "{size} bytes at {offset}");
            }
        }
    }
}
