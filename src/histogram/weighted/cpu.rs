//! Weighted histograms on the CPU: threads sum parts of the input in tables of 128-bit sums.
//!
//! A table holds sums of floats as whole multiples of a unit, which follows from the largest weight. A weight that is
//! not such a multiple is stored with its slot. At the end, these weights are summed per slot in digits that hold every
//! float.

use super::{Weight, log_n};
use crate::{
    Element, Result,
    exact::{Digits, nearest, parts},
    histogram::{
        Accumulate,
        cpu::{BLOCK, Slots, part_len},
        slots::to_i128,
    },
    memory,
    op::Arithmetic,
    parallel,
};

/// Marks for infinite and NaN weights.
const NAN: u8 = 1;
const PLUS: u8 = 2;
const MINUS: u8 = 4;

/// The exponent of the smallest positive `f64`, which is the smallest unit.
const LEAST: i32 = -1074;

/// The sums of a part, the marks of infinite and NaN weights, and the weights that are not whole multiples of the unit.
struct Table {
    sums: Vec<i128>,
    marks: Vec<u8>,
    rest: Vec<(u32, f64)>,
}

pub(in crate::histogram) fn weighted<W: Weight>(
    slots: Slots,
    weights: &[W],
    sums: &mut [W::Sum],
    outside: &mut [W::Sum],
    accumulate: Accumulate,
) -> Result<()> {
    let unit = if W::TYPE.is_float() { unit(weights)? } else { 0 };
    let mut table = table(weights, sums.len() + outside.len(), slots, unit)?;
    parallel::sort_unstable_by_key(&mut table.rest, &|&(slot, _)| slot);
    let mut rest = table.rest.chunk_by(|a, b| a.0 == b.0).peekable();
    let outputs = sums.iter_mut().chain(outside);
    for (i, (out, &sum)) in outputs.zip(&table.sums).enumerate() {
        let own = rest.next_if(|run| run[0].0 as usize == i);
        let found = match table.marks.get(i) {
            None => W::Sum::from_bits_lossy(sum as u64),
            Some(0) => rounded(sum, unit, own.unwrap_or_default()),
            Some(&PLUS) => W::Sum::HIGHEST,
            Some(&MINUS) => W::Sum::LOWEST,
            Some(_) => W::Sum::from_f64(f64::NAN),
        };
        *out = if accumulate == Accumulate::Add { out.add(found) } else { found };
    }
    Ok(())
}

/// The exponent of the unit: the smallest for which the sum of all weights fits 126 bits.
fn unit<W: Weight>(weights: &[W]) -> Result<i32> {
    const CHUNK: usize = 1 << 16;
    let field = |w: &W| {
        let field = field(w.to_f64());
        if field == 0x7ff { 0 } else { field }
    };
    let chunk = |i: usize| weights[i * CHUNK..weights.len().min((i + 1) * CHUNK)].iter().map(field).max();
    let most = parallel::map(weights.len().div_ceil(CHUNK), &chunk)?.into_iter().flatten().max().unwrap_or(0);
    Ok(Ord::max(most as i32 - 1022 + log_n(weights.len()) as i32 - 126, LEAST))
}

fn field(w: f64) -> u32 {
    (w.to_bits() >> 52) as u32 & 0x7ff
}

/// A finite weight in units; `None` unless the weight is a whole number of units.
fn whole(w: f64, unit: i32) -> Option<i128> {
    let (size, exponent) = parts(w);
    let size = if exponent >= unit || size == 0 {
        i128::from(size) << Ord::max(exponent - unit, 0)
    } else {
        let below = (unit - exponent) as u32;
        if size.trailing_zeros() < below {
            return None;
        }
        i128::from(size >> below)
    };
    Some(if w < 0.0 { -size } else { size })
}

fn table<W: Weight>(weights: &[W], words: usize, slots: Slots, unit: i32) -> Result<Table> {
    let n = weights.len();
    let len = part_len(n, words, 4 * words);
    let mut parts =
        parallel::try_map(n.div_ceil(len), &|i| part(weights, i * len..n.min((i + 1) * len), words, slots, unit))?;
    let mut all = match parts.pop() {
        Some(all) => all,
        None => Table { sums: memory::zeroed(words)?, marks: Vec::new(), rest: Vec::new() },
    };
    for part in parts {
        all.sums.iter_mut().zip(part.sums).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
        all.marks.iter_mut().zip(part.marks).for_each(|(marks, more)| *marks |= more);
        memory::reserve(&mut all.rest, part.rest.len())?;
        all.rest.extend(part.rest);
    }
    Ok(all)
}

fn part<W: Weight>(
    weights: &[W],
    part: std::ops::Range<usize>,
    words: usize,
    slots: Slots,
    unit: i32,
) -> Result<Table> {
    let float = W::TYPE.is_float();
    let marks = memory::zeroed(if float { words } else { 0 })?;
    let mut table = Table { sums: memory::zeroed(words)?, marks, rest: Vec::new() };
    let mut at = [0; BLOCK];
    for start in part.clone().step_by(BLOCK) {
        let len = BLOCK.min(part.end - start);
        slots(start, &mut at[..len]);
        for (&slot, &w) in at[..len].iter().zip(&weights[start..]) {
            let sum = &mut table.sums[slot as usize];
            if !float {
                *sum = sum.wrapping_add(to_i128(w));
                continue;
            }
            let w = w.to_f64();
            if !w.is_finite() {
                table.marks[slot as usize] |= if w.is_nan() {
                    NAN
                } else if w > 0.0 {
                    PLUS
                } else {
                    MINUS
                };
            } else if let Some(size) = whole(w, unit) {
                *sum += size;
            } else {
                memory::push(&mut table.rest, (slot, w))?;
            }
        }
    }
    Ok(table)
}

/// The number nearest to `sum` units plus the other weights of a slot; ties to even.
fn rounded<S: Element>(sum: i128, unit: i32, rest: &[(u32, f64)]) -> S {
    if rest.is_empty() {
        return nearest(sum.unsigned_abs(), false, unit, sum < 0);
    }
    let mut digits = Digits::<f64>::new();
    digits.add_wide(sum.unsigned_abs(), unit, sum < 0);
    for &(_, w) in rest {
        let (size, exponent) = parts(w);
        digits.add_wide(size.into(), exponent, w < 0.0);
    }
    digits.rounded()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(weights: &[f64]) -> f64 {
        rounded(0, 0, &weights.iter().map(|&w| (0, w)).collect::<Vec<_>>())
    }

    #[test]
    fn exact_sums_are_rounded_once() {
        for x in [1.0, -1.5, 5e-324, -5e-324, f64::MIN_POSITIVE, f64::MAX, -f64::MAX, 0.1, 1e-310] {
            assert_eq!(sum(&[x]).to_bits(), x.to_bits(), "{x:e}");
            let narrow: f32 = rounded(0, 0, &[(0, f64::from(x as f32))]);
            // A result of 0 is +0.
            assert!(narrow == x as f32 || (x as f32).is_infinite(), "{x:e}");
        }
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0 + f64::EPSILON, f64::EPSILON / 2.0]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[1e300, 1.0, -1e300]), 1.0);
        assert_eq!(sum(&[1.0, -1.0]).to_bits(), 0);
    }
}
