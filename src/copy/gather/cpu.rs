//! Gather and scatter on the CPU.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::{cast_slice, cast_slice_mut};

use crate::parallel;

/// Indices of a task.
const CHUNK: usize = 1 << 14;

/// Indices by their size.
#[derive(Clone, Copy)]
pub(super) enum Indices<'a> {
    Short(&'a [u32]),
    Long(&'a [u64]),
}

/// Calls a loop for elements of `$size` bytes: only sizes count, so that it exists once for each.
macro_rules! by_size {
    ($size:expr, $index:expr, $loop:ident($from:expr, $to:expr)) => {
        by_size!($size, $index, $loop($from, $to), 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    };
    ($size:expr, $index:expr, $loop:ident($from:expr, $to:expr), $($bytes:literal)*) => {
        match ($size, $index) {
            $(($bytes, Indices::Short(index)) => $loop::<$bytes, _>(cast_slice($from), index, cast_slice_mut($to)),
            ($bytes, Indices::Long(index)) => $loop::<$bytes, _>(cast_slice($from), index, cast_slice_mut($to)),)*
            (size, _) => unreachable!("elements of {size} bytes were refused"),
        }
    };
}

/// Elements of `size` bytes from `table` to `line`. Returns how many indices are not below the table's length.
pub(super) fn gather(size: usize, table: &[u8], index: Indices<'_>, line: &mut [u8]) -> u64 {
    by_size!(size, index, gather_elements(table, line))
}

/// Elements of `size` bytes from `line` to `table`; of equal indices the last one's stays. Returns as [`gather`].
pub(super) fn scatter(size: usize, table: &mut [u8], index: Indices<'_>, line: &[u8]) -> u64 {
    by_size!(size, index, scatter_elements(line, table))
}

/// What is beyond every table where it does not fit.
fn place<I: Copy + Into<u64>>(index: I) -> usize {
    usize::try_from(index.into()).unwrap_or(usize::MAX)
}

fn gather_elements<const N: usize, I: Copy + Into<u64> + Sync>(
    table: &[[u8; N]],
    index: &[I],
    line: &mut [[u8; N]],
) -> u64 {
    let outside = AtomicU64::new(0);
    parallel::chunks_mut(line, CHUNK, &|chunk, line| {
        let mut missed = 0;
        for (to, &i) in line.iter_mut().zip(&index[chunk * CHUNK..]) {
            match table.get(place(i)) {
                Some(x) => *to = *x,
                None => missed += 1,
            }
        }
        outside.fetch_add(missed, Relaxed);
    });
    outside.into_inner()
}

/// Each task owns a part of the table, and looks at all indices: reading them in order costs little beside the writes.
fn scatter_elements<const N: usize, I: Copy + Into<u64> + Sync>(
    line: &[[u8; N]],
    index: &[I],
    table: &mut [[u8; N]],
) -> u64 {
    let tasks = if index.len() <= CHUNK { 1 } else { parallel::threads() };
    let (all, part_len) = (table.len(), table.len().div_ceil(tasks).max(1));
    parallel::chunks_mut(table, part_len, &|part, table| {
        for (x, &i) in line.iter().zip(index) {
            if let Some(to) = table.get_mut(place(i).wrapping_sub(part * part_len)) {
                *to = *x;
            }
        }
    });
    let outside = parallel::map(index.len().div_ceil(CHUNK), &|chunk| {
        let index = &index[chunk * CHUNK..index.len().min((chunk + 1) * CHUNK)];
        index.iter().filter(|&&i| place(i) >= all).count() as u64
    });
    outside.into_iter().sum()
}
