//! Host constants of decoupled look-back, which scans, selections and segmented reductions share.

/// Maximum polls of a status word, which take some milliseconds. Then the waiting work-group recomputes the tile's
/// aggregate.
pub(crate) const SPINS: u32 = 1 << 13;
/// Bytes before the status words, for the atomic tile counter.
pub(crate) const TICKET_BYTES: usize = 16;

/// `(first, count)` of the aggregates of each level; an aggregate of one level combines 32 of the level below.
pub(crate) fn levels(tiles: usize) -> impl Iterator<Item = (usize, usize)> {
    let above = |&(first, count): &(usize, usize)| Some((first + count, count.div_ceil(32)));
    std::iter::successors(Some((0, tiles)), above).take_while(|&(_, count)| count > 1)
}
