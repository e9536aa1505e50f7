//! Reversing on the CPU.

use crate::parallel;

/// Elements of a task.
const CHUNK: usize = 1 << 15;

/// Elements of `size` bytes; both slices have the same length.
pub(super) fn reverse(size: usize, from: &[u8], to: &mut [u8]) {
    by_size!(size, reverse_elements(size, from, to));
}

/// Elements of `size` bytes in place.
pub(super) fn swap(size: usize, x: &mut [u8]) {
    by_size!(size, swap_elements(size, x));
}

/// `N` is the size, or 0.
fn reverse_elements<const N: usize>(size: usize, from: &[u8], to: &mut [u8]) {
    let size = if N > 0 { N } else { size };
    parallel::chunks_mut(to, CHUNK * size, &|chunk, to| {
        let end = from.len() - chunk * CHUNK * size;
        for (to, x) in to.chunks_exact_mut(size).zip(from[..end].rchunks_exact(size)) {
            to.copy_from_slice(x);
        }
    });
}

fn swap_elements<const N: usize>(size: usize, x: &mut [u8]) {
    let size = if N > 0 { N } else { size };
    let half = x.len() / size / 2 * size;
    let (low, high) = x.split_at_mut(half);
    let parts = low.chunks_mut(CHUNK * size).zip(high.rchunks_mut(CHUNK * size)).collect();
    parallel::consume(parts, &|(low, high): (&mut [u8], &mut [u8])| {
        for (a, b) in low.chunks_exact_mut(size).zip(high.rchunks_exact_mut(size)) {
            a.swap_with_slice(b);
        }
    });
}
