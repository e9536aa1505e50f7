//! Counting on the CPU.

use bytemuck::Pod;

use super::{Answer, Question};
use crate::{Result, parallel};

/// Bytes of a task.
const CHUNK: usize = 256 << 10;

pub(super) fn answer<T: Pod>(input: &[T], question: Question) -> Result<u64> {
    let bytes: &[u8] = bytemuck::cast_slice(input);
    let chunk = |i: usize| &bytes[i * CHUNK..bytes.len().min((i + 1) * CHUNK)];
    // Unsigned words of the element's size replace the elements. A chunk starts at an element, so it is aligned for
    // them.
    let differing = |bytes: &[u8]| match size_of::<T>() {
        1 => differing(bytes, |x| (x ^ question.key as u8) & question.mask as u8 != 0),
        2 => differing(bytemuck::cast_slice(bytes), |x: u16| (x ^ question.key as u16) & question.mask as u16 != 0),
        4 => differing(bytemuck::cast_slice(bytes), |x: u32| (x ^ question.key as u32) & question.mask as u32 != 0),
        _ => differing(bytemuck::cast_slice(bytes), |x: u64| (x ^ question.key) & question.mask != 0),
    };
    let sum: u64 = parallel::map(bytes.len().div_ceil(CHUNK), &|i| differing(chunk(i)))?.into_iter().sum();
    let n = input.len() as u64;
    Ok(match question.answer {
        Answer::Differing => sum,
        Answer::Equal => n - sum,
        Answer::Any => u64::from(sum != 0),
        Answer::All => u64::from(sum == n),
    })
}

/// Counts the words that differ. For words of at most 2 bytes, each word of a row has its own byte counter, so that the
/// loop vectorises. A counter counts at most 255 words.
fn differing<W: Copy>(words: &[W], differs: impl Fn(W) -> bool) -> u64 {
    const ABREAST: usize = 64;
    if size_of::<W>() > 2 {
        return words.iter().map(|&word| u64::from(differs(word))).sum();
    }
    let few = |words: &[W]| {
        let mut counts = [0u8; ABREAST];
        for row in words.chunks(ABREAST) {
            counts.iter_mut().zip(row).for_each(|(count, &word)| *count += u8::from(differs(word)));
        }
        counts.iter().map(|&count| u64::from(count)).sum::<u64>()
    };
    words.chunks(ABREAST * usize::from(u8::MAX)).map(few).sum()
}
