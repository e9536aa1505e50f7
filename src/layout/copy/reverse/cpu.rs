//! Reversal on the CPU.

use crate::{
    Result, parallel,
    sys::lines::{STREAM_BYTES, Stream},
};

/// Elements per task.
const CHUNK: usize = parallel::SERIAL;

/// Reverses elements of `size` bytes from `from` to `to`, which has the same length.
pub(super) fn reverse(size: usize, from: &[u8], to: &mut [u8]) {
    by_size!(size, reverse_elements(size, from, to));
}

/// Reverses elements of `size` bytes in place.
pub(super) fn swap(size: usize, x: &mut [u8]) -> Result<()> {
    by_size!(size, swap_elements(size, x))
}

/// `N` is the size of an element, or 0 if the size is not constant.
fn reverse_elements<const N: usize>(size: usize, from: &[u8], to: &mut [u8]) {
    let size = if N > 0 { N } else { size };
    let streams = to.len() >= STREAM_BYTES;
    parallel::chunks_mut(to, CHUNK * size, &|chunk, to| {
        let from = &from[..from.len() - chunk * CHUNK * size];
        let mut make = |first: usize, to: &mut [u8]| {
            let from = &from[..from.len() - first * size];
            reversed::<N>(size, &from[from.len() - to.len()..], to);
        };
        if streams {
            Stream::new().fill(to, size, &mut make);
        } else {
            make(0, to);
        }
    });
}

/// Copies elements in reverse order. The compiler reverses arrays of `N` bytes by vector instructions, but not slices.
fn reversed<const N: usize>(size: usize, from: &[u8], to: &mut [u8]) {
    if N > 0 {
        let (from, to): (&[[u8; N]], &mut [[u8; N]]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        from.iter().rev().zip(to).for_each(|(x, to)| *to = *x);
    } else {
        for (to, x) in to.chunks_exact_mut(size).zip(from.rchunks_exact(size)) {
            to.copy_from_slice(x);
        }
    }
}

fn swap_elements<const N: usize>(size: usize, x: &mut [u8]) -> Result<()> {
    let size = if N > 0 { N } else { size };
    let half = x.len() / size / 2 * size;
    let (low, high) = x.split_at_mut(half);
    let parts = low.chunks_mut(CHUNK * size).zip(high.rchunks_mut(CHUNK * size));
    parallel::consume(parts, &|(low, high): (&mut [u8], &mut [u8])| {
        if N > 0 {
            let (low, high): (&mut [[u8; N]], &mut [[u8; N]]) =
                (bytemuck::cast_slice_mut(low), bytemuck::cast_slice_mut(high));
            low.iter_mut().zip(high.iter_mut().rev()).for_each(|(a, b)| std::mem::swap(a, b));
        } else {
            for (a, b) in low.chunks_exact_mut(size).zip(high.rchunks_exact_mut(size)) {
                a.swap_with_slice(b);
            }
        }
    })
}
