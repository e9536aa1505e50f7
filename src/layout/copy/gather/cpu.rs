//! Gather and scatter on the CPU.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{
    Result, parallel,
    segments::Offsets,
    sys::lines::{STREAM_BYTES, Stream},
};

/// Indices per task.
const CHUNK: usize = parallel::SERIAL;

/// Gathers elements of `size` bytes from `table` to `line`. Returns the least i for which `index[i]` is not below the
/// table's length.
pub(super) fn gather(size: usize, table: &[u8], index: Offsets<'_>, line: &mut [u8]) -> Option<usize> {
    by_size!(size, gather_elements(size, table, index, line))
}

/// Scatters elements of `size` bytes from `line` to `table`; the last of equal indices wins. Returns the least i for
/// which `index[i]` is out of range, as [`gather`] does.
pub(super) fn scatter(size: usize, table: &mut [u8], index: Offsets<'_>, line: &[u8]) -> Result<Option<usize>> {
    by_size!(size, scatter_elements(size, table, index, line))
}

/// The bytes of element `i`; `None` if it is out of range.
fn range(i: usize, size: usize, len: usize) -> Option<std::ops::Range<usize>> {
    (i < len).then(|| i * size..(i + 1) * size)
}

/// `N` is the size of an element, or 0 if the size is not constant.
fn gather_elements<const N: usize>(size: usize, table: &[u8], index: Offsets<'_>, line: &mut [u8]) -> Option<usize> {
    match index {
        Offsets::U32(index) => gather_by::<N, _>(size, table, index, &|i| i as usize, line),
        Offsets::U64(index) => {
            gather_by::<N, _>(size, table, index, &|i| usize::try_from(i).unwrap_or(usize::MAX), line)
        }
    }
}

/// A task whose indices are all in range can write past the caches. Any other task leaves some elements unchanged, so
/// it writes element by element.
fn gather_by<const N: usize, I: Copy + Ord + Default + Sync>(
    size: usize,
    table: &[u8],
    index: &[I],
    place: &(impl Fn(I) -> usize + Sync),
    line: &mut [u8],
) -> Option<usize> {
    let size = if N > 0 { N } else { size };
    let (len, outside) = (table.len() / size, AtomicUsize::new(usize::MAX));
    let streams = line.len() >= STREAM_BYTES;
    parallel::chunks_mut(line, CHUNK * size, &|chunk, line| {
        let index = &index[chunk * CHUNK..][..line.len() / size];
        let largest = index.iter().fold(I::default(), |largest, &i| largest.max(i));
        if place(largest) < len {
            let mut make = |first: usize, to: &mut [u8]| {
                if N > 0 {
                    let (table, to): (&[[u8; N]], &mut [[u8; N]]) =
                        (bytemuck::cast_slice(table), bytemuck::cast_slice_mut(to));
                    to.iter_mut().zip(&index[first..]).for_each(|(to, &i)| *to = table[place(i)]);
                } else {
                    let elements = to.chunks_exact_mut(size).zip(&index[first..]);
                    elements.for_each(|(to, &i)| to.copy_from_slice(&table[place(i) * size..][..size]));
                }
            };
            if streams {
                Stream::new().fill(line, size, &mut make);
            } else {
                make(0, line);
            }
            return;
        }
        let mut first = usize::MAX;
        for ((i, &from), to) in (chunk * CHUNK..).zip(index).zip(line.chunks_exact_mut(size)) {
            match range(place(from), size, len) {
                Some(from) => to.copy_from_slice(&table[from]),
                None => first = first.min(i),
            }
        }
        outside.fetch_min(first, Relaxed);
    });
    Some(outside.into_inner()).filter(|&first| first < usize::MAX)
}

/// Each task owns a part of the table and reads all indices. Reading them in order costs little compared to the writes.
fn scatter_elements<const N: usize>(
    size: usize,
    table: &mut [u8],
    index: Offsets<'_>,
    line: &[u8],
) -> Result<Option<usize>> {
    let size = if N > 0 { N } else { size };
    let len = table.len() / size;
    let tasks = if index.len() <= CHUNK { 1 } else { parallel::threads() };
    let part_len = len.div_ceil(tasks).max(1);
    parallel::chunks_mut(table, part_len * size, &|part, table| {
        let (begin, len) = (part * part_len, table.len() / size);
        for (i, from) in line.chunks_exact(size).enumerate() {
            if let Some(to) = range(index.get(i).wrapping_sub(begin), size, len) {
                table[to].copy_from_slice(from);
            }
        }
    });
    let chunks = index.len().div_ceil(CHUNK);
    let first = |chunk: usize| (chunk * CHUNK..index.len().min((chunk + 1) * CHUNK)).find(|&i| index.get(i) >= len);
    Ok(parallel::map(chunks, &first)?.into_iter().flatten().next())
}
