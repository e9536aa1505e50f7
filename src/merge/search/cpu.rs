//! Searches on the CPU.

use super::Bound;
use crate::{Offset, Result, parallel};

/// Needles or elements per task.
const CHUNK: usize = 1 << 14;

/// Writes the lower or upper bound of each needle in `range` to `to`.
pub(super) fn bounds<T: Sync, I: Offset>(
    bound: Bound,
    range: &[T],
    needles: &[T],
    to: &mut [I],
    less: &(impl Fn(&T, &T) -> bool + Sync),
) {
    parallel::chunks_mut(to, CHUNK, &|chunk, part| {
        for (to, needle) in part.iter_mut().zip(&needles[chunk * CHUNK..]) {
            let place = match bound {
                Bound::Lower => range.partition_point(|x| less(x, needle)),
                Bound::Upper => range.partition_point(|x| !less(needle, x)),
            };
            *to = I::from_i128(place as i128);
        }
    });
}

/// Index of the first element that comes before its predecessor in the order.
pub(super) fn first_unsorted<T: Sync>(range: &[T], less: &(impl Fn(&T, &T) -> bool + Sync)) -> Result<Option<usize>> {
    let found = parallel::map(range.len().div_ceil(CHUNK), &|chunk| {
        let first = chunk * CHUNK;
        (first.max(1)..range.len().min(first + CHUNK)).find(|&i| less(&range[i], &range[i - 1]))
    })?;
    Ok(found.into_iter().flatten().next())
}
