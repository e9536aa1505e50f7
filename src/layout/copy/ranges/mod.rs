//! Many copies in one launch, from ranges of one buffer to ranges of another ([`Device::copy`] of
//! [`x.ranges(..)`](Source::ranges)).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element, and one small table per call |
//! | elements | any plain type, of any size |
//! | determinism | exact |
//! | scratch | 32 bytes per range and 4 bytes per tile of 16 KiB (64 KiB on CPU drivers). Each call allocates new memory, because a write to existing memory would wait for earlier commands |
//! | limits | any ranges that fit; fewer than 2^32 |
//!
//! Ranges are cut into tiles of one size, so long and short ranges are balanced.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use std::ops::Range;

use bytemuck::Pod;

use super::{Copyable, Memory};
use crate::{Device, Error, Input, Output, Result, Source, memory, runtime::Backend, source::Ranges};

/// A copy, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    from: usize,
    to: usize,
    bytes: usize,
}

/// The non-empty ranges in bytes, sorted by destination. Returns an error if a range exceeds a length, or if two
/// destinations overlap.
fn pieces(ranges: &[(Range<usize>, usize)], size: usize, from_len: usize, to_len: usize) -> Result<Vec<Piece>> {
    let mut pieces = memory::with_capacity(ranges.len())?;
    for (from, to) in ranges {
        if from.start > from.end || from.end > from_len {
            let (start, end) = (from.start, from.end);
            return Err(Error::invalid(format!("range {start}..{end} is not within an input of {from_len} elements")));
        }
        let len = from.len();
        if *to > to_len || len > to_len - to {
            return Err(Error::invalid(format!("{len} elements from {to} on are not within an output of {to_len}")));
        }
        if len > 0 && size > 0 {
            pieces.push(Piece { from: from.start * size, to: to * size, bytes: len * size });
        }
    }
    if !pieces.is_sorted_by_key(|piece| piece.to) {
        pieces.sort_unstable_by_key(|piece| piece.to);
    }
    match pieces.windows(2).find(|pair| pair[1].to - pair[0].to < pair[0].bytes) {
        Some(pair) => Err(Error::invalid(format!(
            "the destination of {} elements from index {} overlaps the next one, from index {}",
            pair[0].bytes / size,
            pair[0].to / size,
            pair[1].to / size
        ))),
        None => Ok(pieces),
    }
}

impl<S: Source<Item: Pod> + Memory> Copyable for Ranges<'_, S> {
    type Out<'o> = Output<'o, S::Item>;

    fn copy_to(self, device: &Device, output: Output<'_, S::Item>) -> Result<()> {
        copy(device, self.source.held(device)?.input(), output, self.ranges)
    }
}

/// Copies many ranges, compiled once per type.
#[inline(never)]
fn copy<T: Pod>(
    device: &Device,
    input: Input<'_, T>,
    output: Output<'_, T>,
    ranges: &[(Range<usize>, usize)],
) -> Result<()> {
    let pieces = pieces(ranges, size_of::<T>(), input.len(), output.len())?;
    if pieces.is_empty() {
        return Ok(());
    }
    match device.backend() {
        Backend::Cpu => {
            let (from, to) = (bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
            cpu::copy(from, to, &pieces)?;
        }
        Backend::OpenCl(device) => {
            let (from, to) = (input.cl(device)?, output.cl(device, true)?);
            crate::runtime::apart(&[&from], &[&to])?;
            gpu::copy(device, &from, &to, &pieces)?;
            to.finish(device)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_ranges_are_refused() {
        let refused = |ranges: &[(Range<usize>, usize)]| pieces(ranges, 4, 10, 8).unwrap_err().to_string();
        assert_eq!(refused(&[(0..1, 0), (8..11, 0)]), "range 8..11 is not within an input of 10 elements");
        #[allow(clippy::reversed_empty_ranges, reason = "it is to be refused")]
        let backwards = (5..3, 0);
        assert_eq!(refused(&[backwards]), "range 5..3 is not within an input of 10 elements");
        assert_eq!(refused(&[(0..3, 6)]), "3 elements from 6 on are not within an output of 8");
        assert_eq!(refused(&[(0..0, 9)]), "0 elements from 9 on are not within an output of 8");
        assert_eq!(refused(&[(0..2, usize::MAX)]).split(' ').next(), Some("2"));
        assert_eq!(
            refused(&[(0..2, 3), (0..3, 1)]),
            "the destination of 3 elements from index 1 overlaps the next one, from index 3"
        );
        let good = pieces(&[(0..2, 4), (0..0, 5), (0..4, 0), (9..10, 7)], 4, 10, 8).unwrap();
        assert_eq!(
            good.iter().map(|piece| (piece.from, piece.to, piece.bytes)).collect::<Vec<_>>(),
            [(0, 0, 16), (0, 16, 8), (36, 28, 4)]
        );
    }
}
