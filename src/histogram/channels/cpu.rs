//! Histograms of channels on the CPU: one channel after the other.

use crate::{
    Element, Result,
    histogram::{
        Accumulate, Bins, Counter,
        cpu::{self, BLOCK},
        slots::OUTSIDE,
    },
};

pub(super) fn channels<T: Element, C: Counter>(
    input: &[T],
    pixels: usize,
    channels: usize,
    bins: &[Bins<T>],
    mut counts: &mut [C],
    outside: &mut [u64],
    accumulate: Accumulate,
) -> Result<()> {
    for ((c, bins), outside) in bins.iter().enumerate().zip(outside.chunks_mut(OUTSIDE)) {
        let slots = |start: usize, out: &mut [u32]| {
            let mut block = [T::ZERO; BLOCK];
            let block = &mut block[..out.len()];
            let rest = &input[start * channels + c..];
            block.iter_mut().zip(rest.iter().step_by(channels)).for_each(|(x, &sample)| *x = sample);
            bins.slots(block, out);
        };
        let (own, others) = std::mem::take(&mut counts).split_at_mut(bins.len());
        counts = others;
        cpu::count(pixels, &slots, own, outside, accumulate)?;
    }
    Ok(())
}
