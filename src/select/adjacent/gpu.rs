//! Adjacent differences on OpenCL devices: the plan, then its launch.

use crate::{
    ElementType, Result,
    op::Code,
    runtime::{ClInput, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("adjacent.cl");
/// `HELD` of the kernel.
const HELD: usize = 4;

/// The launch over n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    /// Contiguous elements of a work-item on CPU drivers.
    pub run: usize,
    pub wide: bool,
}

/// `source` is a user-defined operator, which replaces the subtraction.
pub fn plan(
    n: usize,
    element: ElementType,
    source: Option<&Code>,
    aligned: bool,
    caps: &Tuned,
    wide: bool,
) -> Result<Plan> {
    caps.supports(element)?;
    let params = tuning::select(caps);
    let cpu = params.work_group == 1;
    let share = params.work_group * HELD * 16 / element.size();
    let run = n.div_ceil(params.max_groups).max(params.min_run);
    let program = ProgramSpec::new("adjacent.cl", TEXT, caps)
        .element("T", element)
        .element("A", element.accumulator())
        .element("OUT", element)
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("ALIGNED", aligned && !cpu);
    let program = match source {
        Some(source) => program.operator(source),
        None => program,
    };
    let groups = if cpu { n.div_ceil(run) } else { n.div_ceil(share).min(params.max_groups) };
    Ok(Plan { program, groups, work_group: params.work_group, run, wide })
}

pub fn run(
    device: &ClDevice,
    element: ElementType,
    source: Option<&Code>,
    input: &ClInput,
    out: &ClInput,
) -> Result<()> {
    let n = input.len();
    if n == 0 {
        return Ok(());
    }
    let aligned = input.aligned() && out.aligned();
    let caps = device.capabilities_for(Primitive::Select, element.size(), n)?;
    let plan = plan(n, element, source, aligned, &caps, device.wide(n))?;
    device
        .launch(&plan.program, "adjacent")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(n as u64, plan.wide)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(plan.run as u64, plan.wide)
        .run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_element() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 4095, 4097, 1 << 20, (1 << 32) + 1, 1 << 40, 1 << 48] {
                let plan = plan(n, ElementType::U32, None, true, &caps, n >= 1 << 31).unwrap();
                let covered = if plan.work_group == 1 { plan.groups * plan.run } else { n };
                assert!(
                    plan.groups > 0 && covered >= n && (plan.groups - 1) * plan.run < n.max(plan.run),
                    "{name}: {n}"
                );
            }
        }
    }
}
