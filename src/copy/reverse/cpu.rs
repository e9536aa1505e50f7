//! Reversing on the CPU.

use bytemuck::{cast_slice, cast_slice_mut};

use crate::parallel;

/// Elements of a task.
const CHUNK: usize = 1 << 15;

/// Calls a loop for elements of `$size` bytes: only sizes count, so that it exists once for each.
macro_rules! by_size {
    ($size:expr, $loop:ident $arguments:tt) => {
        by_size!($size, $loop $arguments, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    };
    ($size:expr, $loop:ident $arguments:tt, $($bytes:literal)*) => {
        match $size {
            $($bytes => $loop::<$bytes>$arguments,)*
            size => unreachable!("elements of {size} bytes were refused"),
        }
    };
}

/// Elements of `size` bytes; both slices have the same length.
pub(super) fn reverse(size: usize, from: &[u8], to: &mut [u8]) {
    by_size!(size, reverse_elements(from, to));
}

/// Elements of `size` bytes in place.
pub(super) fn swap(size: usize, x: &mut [u8]) {
    by_size!(size, swap_elements(x));
}

fn reverse_elements<const N: usize>(from: &[u8], to: &mut [u8])
where
    [u8; N]: bytemuck::Pod,
{
    let from: &[[u8; N]] = cast_slice(from);
    let n = from.len();
    parallel::chunks_mut(cast_slice_mut::<u8, [u8; N]>(to), CHUNK, &|chunk, to| {
        let end = n - chunk * CHUNK;
        for (to, x) in to.iter_mut().zip(from[..end].iter().rev()) {
            *to = *x;
        }
    });
}

fn swap_elements<const N: usize>(x: &mut [u8])
where
    [u8; N]: bytemuck::Pod,
{
    let x: &mut [[u8; N]] = cast_slice_mut(x);
    let half = x.len() / 2;
    let (low, high) = x.split_at_mut(half);
    let parts = low.chunks_mut(CHUNK).zip(high.rchunks_mut(CHUNK)).collect();
    parallel::consume(parts, &|(low, high): (&mut [[u8; N]], &mut [[u8; N]])| {
        for (a, b) in low.iter_mut().zip(high.iter_mut().rev()) {
            std::mem::swap(a, b);
        }
    });
}
