//! Reversal on OpenCL devices: the plans, then their launches.

use crate::{
    Result,
    runtime::{ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reverse.cl");
/// Bytes of a word.
const WORD: usize = 16;

/// The launch of a reversal of n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub kernel: &'static str,
    pub groups: usize,
    pub work_group: usize,
    pub way: Way,
}

/// The access pattern of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Contiguous elements of one work-item.
    Runs(usize),
    Units,
    /// Whole words, from byte `head` on.
    Words {
        head: usize,
        words: usize,
    },
}

/// Bytes of the unit in which elements of `size` bytes move.
fn unit(size: usize) -> usize {
    tuning::unit(size).min(WORD)
}

fn program(size: usize, caps: &Tuned) -> ProgramSpec {
    let unit = unit(size);
    let program = ProgramSpec::new("reverse.cl", TEXT, caps)
        .define("UNIT", tuning::unit_type(unit))
        .define("UNIT_BYTES", unit)
        .define("PARTS", size / unit)
        .unoptimised_on_a_checker(caps);
    match caps.class {
        DeviceClass::Cpu => program,
        DeviceClass::Gpu => program.define("WG", tuning::reverse(caps).work_group),
    }
}

/// The plan for elements of `size` bytes from byte `from` of a buffer to byte `to` of another.
pub fn plan(n: usize, size: usize, from: usize, to: usize, caps: &Tuned) -> Plan {
    let (program, params) = (program(size, caps), tuning::reverse(caps));
    let work_group = params.work_group;
    if caps.class == DeviceClass::Cpu {
        let run = n.div_ceil(params.max_groups).max(params.min_run);
        return Plan { program, kernel: "reverse_runs", groups: n.div_ceil(run), work_group, way: Way::Runs(run) };
    }
    let bytes = n * size;
    let mut head = to.wrapping_neg() % WORD;
    // The word that ends `head` bytes before the input's end straddles two words of the source. The second one must end
    // within the input.
    let shift = (from + bytes).wrapping_sub(head) % WORD;
    if shift > 0 && head < WORD - shift {
        head += WORD;
    }
    let words = bytes.saturating_sub(head + shift) / WORD;
    if size == unit(size) && words > 0 {
        let (groups, way) = (words.div_ceil(2 * work_group), Way::Words { head, words });
        return Plan { program, kernel: "reverse_words", groups, work_group, way };
    }
    let groups = (n * (size / unit(size))).div_ceil(4 * work_group);
    Plan { program, kernel: "reverse_units", groups, work_group, way: Way::Units }
}

/// The plan for elements of `size` bytes in place, from byte `at` of a buffer on.
pub fn plan_swap(n: usize, size: usize, at: usize, caps: &Tuned) -> Plan {
    let (program, params) = (program(size, caps), tuning::reverse(caps));
    let work_group = params.work_group;
    let pairs = n / 2;
    if caps.class == DeviceClass::Cpu {
        let run = pairs.div_ceil(params.max_groups).max(params.min_run);
        return Plan { program, kernel: "swap_runs", groups: pairs.div_ceil(run), work_group, way: Way::Runs(run) };
    }
    let (head, tail) = (at.wrapping_neg() % WORD, (at + n * size) % WORD);
    let words = (n * size).saturating_sub(head + tail) / WORD;
    if size == unit(size) && head == tail && words > 0 {
        let groups = words.div_ceil(2).max(head / size).div_ceil(work_group);
        return Plan { program, kernel: "swap_words", groups, work_group, way: Way::Words { head, words } };
    }
    let groups = (pairs * (size / unit(size))).div_ceil(4 * work_group);
    Plan { program, kernel: "swap_units", groups, work_group, way: Way::Units }
}

pub fn reverse(device: &ClDevice, size: usize, input: &ClInput, output: &ClInput) -> Result<()> {
    let n = input.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Reverse, size, n)?;
    let plan = plan(n, size, input.byte_offset(), output.byte_offset(), &caps);
    let launch = device
        .launch(&plan.program, plan.kernel)?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .mem(output.mem())
        .scalar(output.offset() as u64)
        .scalar(n as u64);
    let launch = match plan.way {
        Way::Runs(run) => launch.scalar(run as u64),
        Way::Units => launch,
        Way::Words { head, words } => launch.scalar(head as u32).scalar(words as u64),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

pub fn swap(device: &ClDevice, size: usize, x: &ClInput) -> Result<()> {
    let n = x.len();
    if n < 2 {
        return Ok(());
    }
    let plan = plan_swap(n, size, x.byte_offset(), device.capabilities_for(Primitive::Reverse, size, n)?.as_ref());
    let launch = device.launch(&plan.program, plan.kernel)?.mem(x.mem()).scalar(x.offset() as u64).scalar(n as u64);
    let launch = match plan.way {
        Way::Runs(run) => launch.scalar(run as u64),
        Way::Units => launch,
        Way::Words { head, words } => launch.scalar(head as u32).scalar(words as u64),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

/// All programs that plans for `caps` use, for elements of these sizes.
pub fn programs(caps: &Tuned, sizes: &[usize]) -> Vec<ProgramSpec> {
    sizes.iter().map(|&size| program(size, caps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_within_both_ranges() {
        let (_, caps) = &Tuned::samples()[0];
        for size in [1, 2, 4, 8, 16] {
            for from in (0..40).step_by(size) {
                for to in (0..40).step_by(size) {
                    for n in 1..150 / size {
                        let Way::Words { head, words } = plan(n, size, from, to, caps).way else { continue };
                        let (end, bytes) = (from + n * size, WORD * words);
                        assert_eq!((to + head) % WORD, 0);
                        let (low, high) = (end - head - bytes, end - head);
                        assert!(low / WORD * WORD >= from, "{size}: {n} from {from} to {to}");
                        assert!(high.next_multiple_of(WORD) <= end, "{size}: {n} from {from} to {to}");
                        assert!(n * size - bytes < 4 * WORD, "the edges stay short");
                    }
                }
            }
        }
    }

    #[test]
    fn plans_cover_every_element() {
        for (name, caps) in Tuned::samples() {
            for n in [2, 255, 257, 1 << 20, (1 << 32) + 1] {
                for (size, at) in [(1, 0), (1, 3), (4, 8), (12, 12), (16, 0), (40, 0)] {
                    let (plan, swap) = (plan(n, size, at, 0, &caps), plan_swap(n, size, at, &caps));
                    let all = |plan: &Plan, words: usize, units: usize| match plan.way {
                        Way::Runs(run) => plan.groups * run,
                        Way::Units => plan.groups * plan.work_group * units * unit(size) / size,
                        Way::Words { .. } => plan.groups * plan.work_group * words * WORD / size,
                    };
                    assert!(all(&plan, 2, 4) + 64 >= n, "{name}: {n}");
                    assert!(all(&swap, 1, 4) + 64 >= n / 2, "{name}: {n}");
                }
            }
        }
    }
}
