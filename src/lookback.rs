//! What the host knows of decoupled look-backs, which scans, selections and segmented reductions share.

/// Polls of a status word before its aggregate is recomputed: some milliseconds.
pub(crate) const SPINS: u32 = 1 << 13;
/// Bytes before the status words: the atomic tile counter's.
pub(crate) const TICKET_BYTES: usize = 16;

/// Where the aggregates of each level of groups of 32 tiles start, and how many they are.
pub(crate) fn levels(tiles: usize) -> impl Iterator<Item = (usize, usize)> {
    let above = |&(first, count): &(usize, usize)| Some((first + count, count.div_ceil(32)));
    std::iter::successors(Some((0, tiles)), above).take_while(|&(_, count)| count > 1)
}
