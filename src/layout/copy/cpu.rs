//! Copies on the CPU: `memcpy`, in parallel if one core does not saturate the memory bus.

use crate::parallel;

/// Up to this many bytes, which caches hold, threads cost more than they save.
const SERIAL_BYTES: usize = 256 << 10;
/// Minimum bytes of a thread's piece.
const PIECE_BYTES: usize = 128 << 10;

/// Copies `from` to `to`, which has the same length.
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    if from.len() <= SERIAL_BYTES {
        to.copy_from_slice(from);
    } else {
        let pieces = 4 * parallel::threads();
        let piece = from.len().div_ceil(pieces).max(PIECE_BYTES).next_multiple_of(64);
        parallel::chunks_mut(to, piece, &|i, to| to.copy_from_slice(&from[i * piece..i * piece + to.len()]));
    }
}
