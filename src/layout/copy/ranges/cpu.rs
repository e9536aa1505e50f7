//! Many copies at once on the CPU.

use super::Piece;
use crate::{Result, memory, parallel};

/// Bytes of a task. Up to this many bytes, threads cost more than they save.
const TASK: usize = 128 << 10;

/// The parts of a task: offset in the source, and destination.
type Parts<'a> = Vec<(usize, &'a mut [u8])>;

/// Copies `pieces`, which are sorted by their destinations and do not overlap there.
pub(super) fn copy(from: &[u8], mut to: &mut [u8], pieces: &[Piece]) -> Result<()> {
    let mut tasks: Vec<Parts<'_>> = Vec::new();
    let (mut parts, mut bytes, mut done) = (Parts::new(), 0, 0);
    for piece in pieces {
        let (_, rest) = std::mem::take(&mut to).split_at_mut(piece.to - done);
        let (mut part, rest) = rest.split_at_mut(piece.bytes);
        (to, done) = (rest, piece.to + piece.bytes);
        let mut at = piece.from;
        while !part.is_empty() {
            let (now, later) = part.split_at_mut(part.len().min(TASK - bytes));
            bytes += now.len();
            at += now.len();
            memory::push(&mut parts, (at - now.len(), now))?;
            part = later;
            if bytes == TASK {
                memory::push(&mut tasks, std::mem::take(&mut parts))?;
                bytes = 0;
            }
        }
    }
    memory::push(&mut tasks, parts)?;
    parallel::consume(tasks.into_iter(), &|parts: Parts<'_>| {
        for (at, to) in parts {
            to.copy_from_slice(&from[at..at + to.len()]);
        }
    })
}
