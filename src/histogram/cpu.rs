//! Histograms on the CPU: a table for each part of the input, counted in parallel and added up.

use super::{
    Accumulate, Bins, Counter,
    bins::{ABOVE, BELOW, Map, OUTSIDE, to_i128},
};
use crate::{Element, parallel};

/// Below this many samples threads cost more than they bring.
const SERIAL: usize = 1 << 15;
/// Bytes of all tables together: 2^24 bins have four.
const TABLE_BYTES: usize = 256 << 20;
/// Tables this small are doubled, so that runs of one bin do not wait for their own stores.
const SMALL: usize = 2048;
/// Samples that 32-bit counters of a part cannot overflow.
const ROUND: usize = 1 << 31;

pub(super) fn histogram<T: Element, C: Counter>(
    input: &[T],
    bins: &Bins<T>,
    counts: &mut [C],
    outside: &mut [u64],
    accumulate: Accumulate,
) {
    if accumulate == Accumulate::Overwrite {
        counts.fill(C::ZERO);
        outside.fill(0);
    }
    for round in input.chunks(ROUND) {
        for table in tables(round, bins) {
            let (inner, outer) = table.split_at(bins.len());
            counts.iter_mut().zip(inner).for_each(|(count, &more)| *count = count.add(C::from(more)));
            outside.iter_mut().zip(outer).for_each(|(count, &more)| *count = count.wrapping_add(u64::from(more)));
        }
    }
}

/// The tables of all parts, each with the bins and then what lies outside.
fn tables<T: Element>(input: &[T], bins: &Bins<T>) -> Vec<Vec<u32>> {
    let count = bins.len() as u32;
    match *bins.map() {
        Map::Ids => parts(input, bins.len(), |x| {
            let id = to_i128(x);
            match u32::try_from(id) {
                Ok(id) if id < count => id,
                _ => count + if id < 0 { BELOW } else { ABOVE },
            }
        }),
        Map::Integers(steps) => parts(input, bins.len(), |x| steps.slot(to_i128(x))),
        Map::F32(edges) => parts(input, bins.len(), |x| edges.slot(x.widen().to_f64() as f32)),
        Map::F64(edges) => parts(input, bins.len(), |x| edges.slot(x.to_f64())),
    }
}

fn parts<T: Element>(input: &[T], bins: usize, slot: impl Fn(T) -> u32 + Sync) -> Vec<Vec<u32>> {
    let slots = bins + OUTSIDE;
    // A part is worth its table only if it has at least as many samples.
    let most = (TABLE_BYTES / (4 * slots)).max(1).min(input.len() / SERIAL.max(slots));
    if most <= 1 {
        return vec![part(input, slots, &slot)];
    }
    let len = input.len().div_ceil(most.min(4 * parallel::threads()));
    let chunk = |i: usize| &input[i * len..input.len().min((i + 1) * len)];
    parallel::map(input.len().div_ceil(len), &|i| part(chunk(i), slots, &slot))
}

fn part<T: Copy>(input: &[T], slots: usize, slot: &impl Fn(T) -> u32) -> Vec<u32> {
    let mut table = vec![0u32; slots];
    if slots > SMALL {
        for &x in input {
            table[slot(x) as usize] += 1;
        }
        return table;
    }
    let mut odd = vec![0u32; slots];
    let mut pairs = input.chunks_exact(2);
    for pair in &mut pairs {
        table[slot(pair[0]) as usize] += 1;
        odd[slot(pair[1]) as usize] += 1;
    }
    for &x in pairs.remainder() {
        table[slot(x) as usize] += 1;
    }
    table.iter_mut().zip(odd).for_each(|(count, more)| *count += more);
    table
}
