//! Counting on OpenCL devices: the plan, then its launches.

use super::Question;
use crate::{
    Result, Scratch,
    runtime::{Arriving, ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("count.cl");

/// The launches that count n elements of `size` bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    /// Contiguous elements of a work-group.
    pub run: usize,
    pub wide: bool,
    /// True for a last-block reduction: the work-group that finishes last writes the answer.
    pub one_pass: bool,
}

pub fn plan(n: usize, size: usize, aligned: bool, caps: &Tuned, wide: bool) -> Plan {
    let params = tuning::reduce(caps);
    let step = params.work_group * 16 / size;
    let unit = if caps.class == DeviceClass::Cpu { (64 << 10) / size } else { 16 * step };
    let groups = n.div_ceil(unit).min(params.max_groups).max(1);
    let run = n.div_ceil(groups).max(1).next_multiple_of(step);
    let program = ProgramSpec::new("count.cl", TEXT, caps)
        .define("BYTES", size)
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("ALIGNED", aligned && caps.class == DeviceClass::Gpu)
        .flag("ONE_PASS", params.one_pass);
    Plan { program, groups: n.div_ceil(run), work_group: params.work_group, run, wide, one_pass: params.one_pass }
}

/// Upper bound on the scratch bytes of a count: an 8-byte word for each work-group.
pub fn scratch_bytes(caps: &Tuned) -> usize {
    8 * tuning::reduce(caps).max_groups
}

/// Runs a count. The output may alias the input: the answer is written after all elements are read.
pub(super) fn answer(
    device: &ClDevice,
    question: Question,
    size: usize,
    input: Arriving<'_>,
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let n = input.len();
    let caps = device.capabilities_for(Primitive::Reduce, size, n)?;
    let plan = plan(n, size, input.aligned(), &caps, device.wide(n));
    let counts = scratch.cl(device, 8 * plan.groups)?;
    let local = [plan.work_group, 1, 1];
    if plan.groups > 0 {
        // The last work-group of a launch cannot combine the counts of later parts.
        let ended = if plan.one_pass && !input.in_parts() { device.ended()? } else { None };
        input.arrive(device, plan.run, |part| {
            let runs = device
                .launch(&plan.program, "count_runs")?
                .mem(input.mem())
                .scalar(input.offset() as u64)
                .offset(n as u64, plan.wide)
                .offset(plan.run as u64, plan.wide)
                .scalar(question.key)
                .scalar(question.mask)
                .mem(counts);
            let runs = if plan.one_pass {
                runs.scalar(u32::from(ended.is_some()))
                    .scalar(question.answer as u32)
                    .mem(out.mem())
                    .scalar(out.offset() as u64)
                    .mem(ended.as_ref().unwrap_or(counts))
            } else {
                runs
            };
            let (first, end) = (part.start / plan.run, part.end.div_ceil(plan.run));
            runs.after(first).run([end - first, 1, 1], local)
        })?;
        if ended.is_some() {
            return Ok(());
        }
    }
    device
        .launch(&plan.program, "count_last")?
        .mem(counts)
        .scalar(plan.groups as u32)
        .scalar(n as u64)
        .scalar(question.answer as u32)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .run([1, 1, 1], local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_element() {
        for (name, caps) in Tuned::samples() {
            for n in [0, 1, 255, 4097, 1 << 20, (1 << 32) + 1] {
                for size in [1, 2, 4, 8] {
                    let plan = plan(n, size, true, &caps, n >= 1 << 31);
                    assert!(plan.groups * plan.run >= n, "{name}: {n}");
                    assert!(plan.groups.saturating_sub(1) * plan.run < n.max(1), "{name}: {n}: an empty group");
                    assert!(8 * plan.groups <= scratch_bytes(&caps), "{name}: {n}");
                }
            }
        }
    }
}
