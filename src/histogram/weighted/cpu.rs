//! Weighted histograms on the CPU: tables of 128-bit sums for parts of the input.

use super::{Unit, Weight, log_n, narrow};
use crate::{
    Element, Result,
    histogram::{
        Accumulate,
        bins::to_i128,
        cpu::{BLOCK, Slots, part_len},
    },
    memory, parallel,
};

/// Marks of weights that are no numbers.
const NAN: u8 = 1;
const PLUS: u8 = 2;
const MINUS: u8 = 4;

/// Writes the weights from a place on, in units; and their marks, where the weights are floats.
type Units<'a> = &'a (dyn Fn(usize, &mut [i128], &mut [u8]) + Sync);

/// The sums of a part, and the marks of what is no number.
struct Table {
    sums: Vec<i128>,
    marks: Vec<u8>,
}

pub(super) fn weighted<W: Weight>(
    slots: Slots,
    weights: &[W],
    sums: &mut [W::Sum],
    outside: &mut [W::Sum],
    accumulate: Accumulate,
) -> Result<()> {
    let exponent =
        if W::TYPE.is_float() { Unit::of(W::TYPE).exponent(field(weights)?, log_n(weights.len())) } else { 0 };
    let units = |start: usize, out: &mut [i128], marks: &mut [u8]| {
        to_units(&weights[start..start + out.len()], exponent, out, marks);
    };
    let table = table(weights.len(), sums.len() + outside.len(), slots, &units, W::TYPE.is_float())?;
    let outputs = sums.iter_mut().chain(outside);
    for (i, (out, &sum)) in outputs.zip(&table.sums).enumerate() {
        let found = match table.marks.get(i) {
            None | Some(0) => narrow(sum, exponent),
            Some(&PLUS) => W::Sum::HIGHEST,
            Some(&MINUS) => W::Sum::LOWEST,
            Some(_) => W::Sum::from_f64(f64::NAN),
        };
        *out = if accumulate == Accumulate::Add { out.add(found) } else { found };
    }
    Ok(())
}

/// The largest exponent field of a finite weight, in the type in which it is computed with.
fn field<W: Weight>(weights: &[W]) -> Result<u32> {
    const CHUNK: usize = 1 << 16;
    let (shift, none) = if W::TYPE.needs_fp64() { (52, 0x7ff) } else { (23, 0xff) };
    let of = |&w: &W| {
        let bits = if W::TYPE.needs_fp64() { w.to_f64().to_bits() } else { u64::from((w.to_f64() as f32).to_bits()) };
        let field = (bits >> shift) as u32 & none;
        if field == none { 0 } else { field }
    };
    let chunk = |i: usize| weights[i * CHUNK..weights.len().min((i + 1) * CHUNK)].iter().map(of).max();
    Ok(parallel::map(weights.len().div_ceil(CHUNK), &chunk)?.into_iter().flatten().max().unwrap_or(0))
}

fn to_units<W: Element>(weights: &[W], exponent: i32, out: &mut [i128], marks: &mut [u8]) {
    let pairs = weights.iter().zip(out);
    if !W::TYPE.is_float() {
        return pairs.for_each(|(&w, unit)| *unit = to_i128(w));
    }
    let part = -exponent / 2;
    let power = |k: i32| f64::from_bits(((k + 1023) as u64) << 52);
    let (down, up) = (power(part), power(-exponent - part));
    for ((&w, unit), mark) in pairs.zip(marks) {
        let w = w.to_f64();
        let finite = w.is_finite();
        *unit = if finite { (w * down * up).round_ties_even() as i128 } else { 0 };
        *mark = if finite {
            0
        } else if w.is_nan() {
            NAN
        } else if w > 0.0 {
            PLUS
        } else {
            MINUS
        };
    }
}

fn table(n: usize, words: usize, slots: Slots, units: Units, marked: bool) -> Result<Table> {
    let len = part_len(n, words, 4 * words);
    let mut parts =
        parallel::try_map(n.div_ceil(len), &|i| part(i * len..n.min((i + 1) * len), words, slots, units, marked))?;
    let mut all = match parts.pop() {
        Some(all) => all,
        None => Table { sums: memory::zeroed(words)?, marks: Vec::new() },
    };
    for part in parts {
        all.sums.iter_mut().zip(part.sums).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
        all.marks.iter_mut().zip(part.marks).for_each(|(marks, more)| *marks |= more);
    }
    Ok(all)
}

fn part(part: std::ops::Range<usize>, words: usize, slots: Slots, units: Units, marked: bool) -> Result<Table> {
    let mut table = Table { sums: memory::zeroed(words)?, marks: memory::zeroed(if marked { words } else { 0 })? };
    let (mut at, mut values, mut marks) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
    for start in part.clone().step_by(BLOCK) {
        let len = BLOCK.min(part.end - start);
        slots(start, &mut at[..len]);
        units(start, &mut values[..len], &mut marks[..len]);
        for (&slot, value) in at[..len].iter().zip(values) {
            let sum = &mut table.sums[slot as usize];
            *sum = sum.wrapping_add(value);
        }
        if marked {
            at[..len].iter().zip(marks).for_each(|(&slot, mark)| table.marks[slot as usize] |= mark);
        }
    }
    Ok(table)
}
