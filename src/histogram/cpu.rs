//! Histograms on the CPU: threads count parts of the input in tables, which are then summed.

use std::ops::Range;

use super::{Accumulate, Bins, Counter, slots::OUTSIDE};
use crate::{Element, Result, memory, parallel};

/// Maximum bytes of all tables together: three tables of 2^24 bins.
const TABLE_BYTES: usize = 256 << 20;
/// Maximum words of a table that has a second copy. Successive samples go to the two copies in turn, so that samples in
/// one bin do not wait for each other's stores.
const SMALL: usize = 2048;
/// Maximum samples that 32-bit counters of a part can count.
pub(super) const ROUND: usize = 1 << 31;
/// Samples whose slots are computed at a time: the slots stay in the first-level cache.
pub(super) const BLOCK: usize = 1024;

/// Writes the slots of the samples from an index on, as many as the slice has.
pub(super) type Slots<'a> = &'a (dyn Fn(usize, &mut [u32]) + Sync);

pub(super) fn histogram<T: Element, C: Counter>(
    input: &[T],
    bins: &Bins<T>,
    counts: &mut [C],
    outside: &mut [u64],
    accumulate: Accumulate,
) -> Result<()> {
    let slots = |start: usize, out: &mut [u32]| bins.slots(&input[start..start + out.len()], out);
    count(input.len(), &slots, counts, outside, accumulate)
}

/// Counts `n` samples; `slots` computes at most [`BLOCK`] slots per call.
pub(super) fn count<C: Counter>(
    n: usize,
    slots: Slots,
    counts: &mut [C],
    outside: &mut [u64],
    accumulate: Accumulate,
) -> Result<()> {
    if accumulate == Accumulate::Overwrite {
        counts.fill(C::ZERO);
        outside.fill(0);
    }
    for start in (0..n).step_by(ROUND) {
        for table in tables(start..n.min(start + ROUND), counts.len(), slots)? {
            add(&table, counts, outside);
        }
    }
    Ok(())
}

/// Adds a table to the counts.
pub(super) fn add<C: Counter>(table: &[u32], counts: &mut [C], outside: &mut [u64]) {
    let (inner, outer) = table.split_at(counts.len());
    counts.iter_mut().zip(inner).for_each(|(count, &more)| *count = count.add(C::from(more)));
    outside.iter_mut().zip(outer).for_each(|(count, &more)| *count = count.wrapping_add(u64::from(more)));
}

/// The number of samples per part, so that each part is worth a table of `words` words.
pub(super) fn part_len(n: usize, slots: usize, words: usize) -> usize {
    // A part is worth its table if it has at least as many samples as slots.
    let most = (TABLE_BYTES / (4 * words)).max(1).min(n / parallel::SERIAL.max(slots)).max(1);
    n.div_ceil(most.min(4 * parallel::threads())).max(1)
}

/// The table of each part: the counts of the bins, then those outside the bins.
fn tables(round: Range<usize>, bins: usize, slots: Slots) -> Result<Vec<Vec<u32>>> {
    let words = bins + OUTSIDE;
    let len = part_len(round.len(), words, words);
    let part = |i: usize| round.start + i * len..round.end.min(round.start + (i + 1) * len);
    parallel::try_map(round.len().div_ceil(len), &|i| table(part(i), words, slots))
}

/// The counts of some samples: those of the bins, then those outside the bins.
pub(super) fn table(part: Range<usize>, words: usize, slots: Slots) -> Result<Vec<u32>> {
    let mut table = memory::zeroed::<u32>(words)?;
    let mut odd = memory::zeroed::<u32>(if words > SMALL { 0 } else { words })?;
    let mut block = [0; BLOCK];
    for start in part.clone().step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(part.end - start)];
        slots(start, block);
        if odd.is_empty() {
            block.iter().for_each(|&slot| table[slot as usize] += 1);
            continue;
        }
        let mut pairs = block.chunks_exact(2);
        for pair in &mut pairs {
            table[pair[0] as usize] += 1;
            odd[pair[1] as usize] += 1;
        }
        pairs.remainder().iter().for_each(|&slot| table[slot as usize] += 1);
    }
    table.iter_mut().zip(odd).for_each(|(count, more)| *count += more);
    Ok(table)
}
