//! Histograms of groups on the CPU: threads process parts of equal cost, as `cl/histogram_groups.cl` defines them.

use std::ops::Range;

use crate::{
    Element, Result,
    histogram::{
        Accumulate, Counter,
        cpu::{BLOCK, ROUND, Slots, add, part_len, table},
        slots::OUTSIDE,
        weighted::{Weight, cpu::weighted},
    },
    memory,
    op::Arithmetic,
    parallel,
    segments::Offsets,
};

/// The starts of groups: offsets, or lines of equal length.
#[derive(Clone, Copy)]
pub(super) enum Starts<'a> {
    Offsets(Offsets<'a>),
    Lines { count: usize, len: usize },
}

impl Starts<'_> {
    /// The number of groups.
    fn count(self) -> usize {
        match self {
            Self::Offsets(offsets) => offsets.len() - 1,
            Self::Lines { count, .. } => count,
        }
    }

    fn get(self, group: usize) -> usize {
        match self {
            Self::Offsets(offsets) => offsets.get(group),
            Self::Lines { len, .. } => group * len,
        }
    }
}

/// The groups with their costs: a sample costs 1, and a group costs `row_cost` more.
struct Costs<'a> {
    starts: Starts<'a>,
    first: usize,
    n: usize,
    row_cost: usize,
}

/// The end of a part: a group, the index of a sample in it, and whether the group begins before that end.
#[derive(Clone, Copy)]
struct Cut {
    group: usize,
    sample: usize,
    inside: bool,
}

impl<'a> Costs<'a> {
    fn new(starts: Starts<'a>, n: usize, row_cost: usize) -> Self {
        Self { starts, first: starts.get(0).min(n), n, row_cost }
    }

    /// The first sample of a group. Offsets beyond the samples of all groups are clamped.
    fn start(&self, group: usize) -> usize {
        self.starts.get(group).max(self.first).min(self.n)
    }

    /// The samples of a group.
    fn samples(&self, group: usize) -> Range<usize> {
        let start = self.start(group);
        start..self.start(group + 1).max(start)
    }

    fn before(&self, group: usize) -> usize {
        self.start(group) - self.first + group * self.row_cost
    }

    /// The last group that begins at `cost` or before. `cost` is less than the total cost of all groups.
    fn group_at(&self, cost: usize) -> usize {
        // before(low) <= cost < before(high)
        let (mut low, mut high) = (0, self.starts.count());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            *if self.before(middle) <= cost { &mut low } else { &mut high } = middle;
        }
        low
    }

    fn cut(&self, cost: usize) -> Cut {
        let count = self.starts.count();
        if cost >= self.before(count) {
            return Cut { group: count, sample: self.start(count), inside: false };
        }
        let low = self.group_at(cost);
        let over = cost - self.before(low);
        Cut { group: low, sample: self.start(low) + over.saturating_sub(self.row_cost), inside: over > 0 }
    }
}

/// The counts of some samples of a group.
type Piece = (usize, Vec<u32>);

/// What a part writes: the counters of its whole groups, and the counts of groups that it shares with other parts.
struct Part<'a, C> {
    cuts: [Cut; 2],
    whole: Range<usize>,
    counts: &'a mut [C],
    outside: &'a mut [u64],
    pieces: &'a mut Vec<Piece>,
}

/// Counts the groups of `n` samples; `slots` computes at most [`BLOCK`] slots per call.
pub(super) fn histograms<C: Counter>(
    starts: Starts<'_>,
    n: usize,
    slots: Slots<'_>,
    bins: usize,
    (counts, outside): (&mut [C], &mut [u64]),
    accumulate: Accumulate,
) -> Result<()> {
    if starts.count() == 0 {
        return Ok(());
    }
    let words = bins + OUTSIDE;
    let costs = Costs::new(starts, n, words.div_ceil(8));
    let total = costs.before(starts.count());
    let len = part_len(total, words, 2 * words).min(ROUND);
    let mut cuts: Vec<Cut> = memory::collect((0..total.div_ceil(len) + 1).map(|part| costs.cut(part * len)))?;
    // Invalid offsets can descend.
    (1..cuts.len()).for_each(|i| cuts[i].group = cuts[i].group.max(cuts[i - 1].group));
    if accumulate == Accumulate::Overwrite {
        let mut shared: Vec<usize> = memory::with_capacity(cuts.len())?;
        shared.extend(cuts.iter().filter(|cut| cut.inside).map(|cut| cut.group));
        shared.dedup();
        for group in shared {
            counts[group * bins..][..bins].fill(C::ZERO);
            outside[group * OUTSIDE..][..OUTSIDE].fill(0);
        }
    }
    let mut pieces: Vec<Vec<Piece>> = memory::with_capacity(cuts.len() - 1)?;
    pieces.resize_with(cuts.len() - 1, Vec::new);
    let mut parts = memory::with_capacity(pieces.len())?;
    let (mut rest, mut done) = ((&mut *counts, &mut *outside), 0);
    for (pair, pieces) in cuts.windows(2).zip(&mut pieces) {
        let (from, to) = (pair[0], pair[1]);
        let first = (from.group + usize::from(from.inside)).max(done);
        let whole = first..to.group.max(first);
        let own = |width: usize| (first - done) * width..(whole.end - done) * width;
        let (counts, outside) = (taken(&mut rest.0, own(bins)), taken(&mut rest.1, own(OUTSIDE)));
        done = whole.end;
        parts.push(Part { cuts: [from, to], whole, counts, outside, pieces });
    }
    parallel::try_consume(parts.into_iter(), &|part| count(part, &costs, slots, bins, accumulate))?;
    for (group, table) in pieces.iter().flatten() {
        add(table, &mut counts[group * bins..][..bins], &mut outside[group * OUTSIDE..][..OUTSIDE]);
    }
    Ok(())
}

/// Sums the weights of groups. Successive groups with at most `most` slots in all are summed as one input.
pub(super) fn sums<W: Weight>(
    starts: Starts<'_>,
    weights: &[W],
    slots: Slots<'_>,
    bins: usize,
    (sums, outside): (&mut [W::Sum], &mut [W::Sum]),
    (accumulate, most): (Accumulate, usize),
) -> Result<()> {
    let (count, words) = (starts.count(), bins + OUTSIDE);
    if count == 0 {
        return Ok(());
    }
    // Rows cost nothing, so the cost before a sample is the number of samples before it.
    let costs = Costs::new(starts, weights.len(), 0);
    let few = (most / words).clamp(1, count);
    let mut found = memory::filled(few * words, W::Sum::ZERO)?;
    for first in (0..count).step_by(few) {
        let last = count.min(first + few);
        let (start, end) = (costs.start(first), costs.start(last).max(costs.start(first)));
        let numbered = |at: usize, out: &mut [u32]| {
            slots(start + at, out);
            let mut group = (first, costs.samples(first));
            for (i, slot) in (start + at..).zip(out) {
                if !group.1.contains(&i) {
                    let own = costs.group_at(i - costs.first).clamp(first, last - 1);
                    group = (own, costs.samples(own));
                }
                *slot += ((group.0 - first) * words) as u32;
            }
        };
        let found = &mut found[..(last - first) * words];
        weighted::<W>(&numbered, &weights[start..end], found, &mut [], Accumulate::Overwrite)?;
        let rows =
            sums[first * bins..].chunks_exact_mut(bins).zip(outside[first * OUTSIDE..].chunks_exact_mut(OUTSIDE));
        for (found, (sums, outside)) in found.chunks_exact(words).zip(rows) {
            for (out, &sum) in sums.iter_mut().chain(outside).zip(found) {
                *out = if accumulate == Accumulate::Add { out.add(sum) } else { sum };
            }
        }
    }
    Ok(())
}

/// Returns a range of `rest`, and leaves what follows it.
fn taken<'a, T>(rest: &mut &'a mut [T], range: Range<usize>) -> &'a mut [T] {
    let (before, after) = std::mem::take(rest).split_at_mut(range.end);
    *rest = after;
    &mut before[range.start..]
}

/// Counts a part.
fn count<C: Counter>(
    part: Part<'_, C>,
    costs: &Costs<'_>,
    slots: Slots<'_>,
    bins: usize,
    accumulate: Accumulate,
) -> Result<()> {
    let Part { cuts: [from, to], whole, counts, outside, pieces } = part;
    if accumulate == Accumulate::Overwrite {
        counts.fill(C::ZERO);
        outside.fill(0);
    }
    let words = bins + OUTSIDE;
    let mut piece = |group: usize, samples: Range<usize>| -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let end = samples.end.min(samples.start + ROUND);
        memory::push(pieces, (group, table(samples.start..end, words, slots)?))
    };
    if from.inside {
        let end = costs.samples(from.group).end;
        piece(from.group, from.sample..if to.group == from.group { to.sample } else { end })?;
    }
    if to.inside && !(from.inside && to.group == from.group) {
        piece(to.group, costs.start(to.group)..to.sample)?;
    }
    // The slots of the samples from index `at` on.
    let (mut block, mut at, mut known) = ([0; BLOCK], 0, 0);
    let rows = counts.chunks_exact_mut(bins).zip(outside.chunks_exact_mut(OUTSIDE));
    for (group, (counts, outside)) in whole.clone().zip(rows) {
        let samples = costs.samples(group);
        if samples.len() >= 4 * words.max(BLOCK) {
            for start in samples.clone().step_by(ROUND) {
                add(&table(start..samples.end.min(start + ROUND), words, slots)?, counts, outside);
            }
            continue;
        }
        let mut next = samples.start;
        while next < samples.end {
            if !(at..at + known).contains(&next) {
                let stop = costs.start(whole.end).max(samples.end);
                (at, known) = (next, BLOCK.min(stop - next));
                slots(at, &mut block[..known]);
            }
            let end = samples.end.min(at + known);
            for &slot in &block[next - at..end - at] {
                match counts.get_mut(slot as usize) {
                    Some(count) => *count = count.add(C::ONE),
                    None => outside[slot as usize - bins] += 1,
                }
            }
            next = end;
        }
    }
    Ok(())
}
