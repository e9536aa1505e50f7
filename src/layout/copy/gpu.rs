//! Copies on OpenCL devices: the plan, then its launch.

use std::ops::Range;

use crate::{
    Result,
    runtime::{
        ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("copy.cl");
/// Bytes of a word.
const WORD: usize = 16;
/// Bytes of scratch for a copy between overlapping ranges. Ranges whose distance is at least `CHUNK` need no scratch.
pub const CHUNK: usize = 16 << 20;

/// The launch of a copy of at least one byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    pub kernel: Kernel,
}

/// The kernel of a launch, and its arguments besides offsets and length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    /// `copy_runs`: a work-item copies `run` contiguous bytes.
    Runs { run: usize },
    /// `copy_words`, or `copy_shifted` if source and destination have different offsets within a word.
    Words { shifted: bool, body: Body, wide: bool },
}

/// The whole words of a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// Bytes before the first word.
    pub head: usize,
    /// Words of the destination.
    pub words: usize,
}

impl Body {
    /// The words of a copy of `bytes` bytes from byte `from` of a buffer to byte `to` of another. The words are aligned
    /// in the destination. All words of the source that they need lie within the source range.
    pub fn of(bytes: usize, from: usize, to: usize) -> Self {
        let mut head = to.wrapping_neg() % WORD;
        let shift = (from + head) % WORD;
        if shift > head {
            head += WORD;
        }
        let words = match (bytes + shift).saturating_sub(head) / WORD {
            words if shift == 0 => words,
            // The last word needs one more word of the source.
            words => words.saturating_sub(1),
        };
        if words == 0 { Self { head: bytes, words } } else { Self { head, words } }
    }
}

/// The plan of a copy of `bytes` > 0 bytes from byte `from` of one buffer to byte `to` of another.
pub fn plan(bytes: usize, from: usize, to: usize, caps: &Tuned, wide: impl Fn(usize) -> bool) -> Plan {
    let program = ProgramSpec::new("copy.cl", TEXT, caps);
    match tuning::copy(caps) {
        tuning::Copy::Runs { max_groups, min_run } => {
            let run = bytes.div_ceil(max_groups).max(min_run).next_multiple_of(64);
            Plan { program, groups: bytes.div_ceil(run), work_group: 1, kernel: Kernel::Runs { run } }
        }
        tuning::Copy::Words { work_group, words: item_words } => {
            let body = Body::of(bytes, from, to);
            let wide = wide(body.words);
            let program = program
                .define("WG", work_group)
                .define("WORDS", item_words)
                .define("OFFSET_T", if wide { "ulong" } else { "uint" });
            let groups = body.words.div_ceil(work_group * item_words).max(1);
            let shifted = from % WORD != to % WORD;
            Plan { program, groups, work_group, kernel: Kernel::Words { shifted, body, wide } }
        }
    }
}

/// Enqueues a copy of `bytes` bytes between two ranges that do not overlap; each range is a buffer and its first byte.
pub fn copy(
    device: &ClDevice,
    (from, from_byte): (&ClMem, usize),
    (to, to_byte): (&ClMem, usize),
    bytes: usize,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Copy, 1, bytes)?;
    let plan = plan(bytes, from_byte, to_byte, &caps, |n| device.wide(n));
    let name = match plan.kernel {
        Kernel::Runs { .. } => "copy_runs",
        Kernel::Words { shifted: false, .. } => "copy_words",
        Kernel::Words { shifted: true, .. } => "copy_shifted",
    };
    let launch = device
        .launch(&plan.program, name)?
        .mem(from)
        .scalar(from_byte as u64)
        .mem(to)
        .scalar(to_byte as u64)
        .scalar(bytes as u64);
    let launch = match plan.kernel {
        Kernel::Runs { run } => launch.scalar(run as u64),
        Kernel::Words { body, wide, .. } => launch.scalar(body.head as u32).offset(body.words as u64, wide),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

/// One step of a copy within a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The bytes to copy, relative to the source range.
    pub range: Range<usize>,
    /// True if source and destination overlap, so that the copy goes through scratch.
    pub through_scratch: bool,
}

/// The steps of a copy of `bytes` bytes within a buffer from byte `from` to byte `to`, in order. No step overwrites
/// what a later one reads. Scratch is at most `chunk` bytes.
pub fn within(bytes: usize, from: usize, to: usize, chunk: usize) -> Vec<Step> {
    let distance = from.abs_diff(to);
    if distance == 0 || bytes == 0 {
        return Vec::new();
    }
    // A piece that is not longer than the distance does not overlap its destination.
    let through_scratch = distance < bytes.min(chunk);
    let piece = if through_scratch { chunk } else { distance };
    let pieces = bytes.div_ceil(piece);
    let step = |i: usize| Step { range: i * piece..bytes.min((i + 1) * piece), through_scratch };
    if to < from { (0..pieces).map(step).collect() } else { (0..pieces).rev().map(step).collect() }
}

/// Enqueues a copy of `bytes` bytes within a buffer; the ranges may overlap.
pub fn copy_within(device: &ClDevice, mem: &ClMem, from: usize, to: usize, bytes: usize) -> Result<()> {
    for Step { range, through_scratch } in within(bytes, from, to, CHUNK) {
        let (source, target) = ((mem, from + range.start), (mem, to + range.start));
        if through_scratch {
            let scratch = device.pooled(range.len())?;
            copy(device, source, (scratch.mem(), 0), range.len())?;
            copy(device, (scratch.mem(), 0), target, range.len())?;
        } else {
            copy(device, source, target, range.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_within_both_ranges() {
        for from in 0..40 {
            for to in 0..40 {
                for bytes in 1..150 {
                    let Body { head, words } = Body::of(bytes, from, to);
                    assert!(head + WORD * words <= bytes);
                    if words == 0 {
                        continue;
                    }
                    assert_eq!((to + head) % WORD, 0);
                    let shift = (from + head) % WORD;
                    let read = from + head - shift..from + head - shift + WORD * (words + usize::from(shift > 0));
                    assert!(read.start >= from && read.end <= from + bytes, "{from} {to} {bytes}: {read:?}");
                    assert!(bytes - WORD * words < 4 * WORD, "the edges stay short");
                }
            }
        }
    }

    #[test]
    fn steps_within_a_buffer_move_like_memmove() {
        for from in 0..30 {
            for to in 0..30 {
                for bytes in [0, 1, 5, 16, 17, 30] {
                    for chunk in [1, 4, 16, 100] {
                        let mut got: Vec<u8> = (0..60).collect();
                        let mut want = got.clone();
                        want.copy_within(from..from + bytes, to);
                        for Step { range, through_scratch } in within(bytes, from, to, chunk) {
                            let (source, target) = (from + range.start, to + range.start);
                            assert!(!through_scratch || range.len() <= chunk);
                            assert!(through_scratch || source.abs_diff(target) >= range.len());
                            got.copy_within(source..source + range.len(), target);
                        }
                        assert_eq!(got, want, "{bytes} bytes from {from} to {to} by {chunk}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_large_move_takes_few_steps() {
        let (bytes, gap) = (1 << 40, 1 << 30);
        assert_eq!(within(bytes, 0, gap, CHUNK).len(), 1 << 10);
        assert_eq!(within(bytes, 1, 0, CHUNK).len(), (1 << 40) / CHUNK);
    }
}
