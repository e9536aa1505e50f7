//! Ranges of elements, which callers give as Rust ranges.

use std::{
    fmt,
    ops::{Bound, RangeBounds},
};

use crate::{Error, Result};

/// Start and length of `range`; an error unless `range` is within `place`, which has `len` elements.
pub(crate) fn within(range: impl RangeBounds<usize>, len: usize, place: impl fmt::Display) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => Some(end.saturating_add(1)),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => None,
    };
    let last = end.unwrap_or(len);
    if start <= last && last <= len {
        return Ok((start, last - start));
    }
    // The message repeats the request: `9..`, not `9..3`.
    let end = end.map_or(String::new(), |end| end.to_string());
    Err(Error::invalid(format!("range {start}..{end} is not within {place} of {len} elements")))
}
