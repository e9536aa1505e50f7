//! What the specs of selections share.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::check::{Failure, Level, poison, same_bytes};

/// Compares what was written to an output with what there was to write: as much as there was room for, and nothing behind.
pub(in crate::select) fn filled<T: Pod + Debug>(got: &[T], want: &[T], what: &str) -> Result<(), Failure> {
    let kept = got.len().min(want.len());
    same_bytes(&got[..kept], &want[..kept], what)?;
    untouched(&got[kept..], what)
}

/// What is behind that is as it was.
pub(in crate::select) fn untouched<T: Pod + Debug>(behind: &[T], what: &str) -> Result<(), Failure> {
    same_bytes(behind, &vec![poison(); behind.len()], &format!("{what} behind the last one, "))
}

/// Room for all, for as many as there are, for fewer, and for none.
pub(in crate::select) fn rooms(n: usize, found: usize, i: usize) -> usize {
    match i % 4 {
        0 | 1 => n,
        2 => found,
        _ => found - found.min(found / 3 + 1),
    }
}

/// Sizes at the edges of vectors, rows and tiles: those of 4 KiB to 32 KiB, of elements of `size` bytes.
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
