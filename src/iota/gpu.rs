//! Iota on OpenCL devices: the plan, then its launch.

use crate::{
    Element, ElementType, Output, Result,
    runtime::{ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("iota.cl");

/// The launch of an iota of n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    /// Contiguous elements per work-item.
    pub run: usize,
    pub wide: bool,
}

pub fn plan(n: usize, element: ElementType, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(element)?;
    let tuning::Iota { work_group, max_groups, min_run } = tuning::iota(caps);
    let run = match caps.class {
        DeviceClass::Cpu => n.div_ceil(max_groups).max(min_run),
        DeviceClass::Gpu => 16 / element.size(),
    };
    let program = ProgramSpec::new("iota.cl", TEXT, caps)
        .element("T", element)
        .element("A", element.accumulator())
        .element("OUT", element)
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" });
    Ok(Plan { program, groups: n.div_ceil(work_group * run), work_group, run, wide })
}

pub fn iota<T: Element>(device: &ClDevice, start: T, step: T, output: Output<'_, T>) -> Result<()> {
    let out = output.cl(device, false)?;
    let terms = [start.widen(), step.widen()];
    launch(device, T::TYPE, terms.each_ref().map(bytemuck::bytes_of), &out)?;
    out.finish(device)
}

/// `terms` are the bytes of `start` and `step`, in the accumulator type.
fn launch(device: &ClDevice, element: ElementType, terms: [&[u8]; 2], out: &ClInput) -> Result<()> {
    let n = out.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Iota, element.size(), n)?;
    let plan = plan(n, element, &caps, device.wide(n))?;
    device
        .launch(&plan.program, "iota")?
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(n as u64, plan.wide)
        .offset(plan.run as u64, plan.wide)
        .plain(terms[0])
        .plain(terms[1])
        .scalar(u32::from(out.aligned()))
        .run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_element() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 255, 256, 257, 1 << 20, (1 << 32) + 1] {
                let plan = plan(n, ElementType::I32, &caps, n >= 1 << 31).unwrap();
                assert!(plan.groups * plan.work_group * plan.run >= n, "{name}: {n}");
            }
        }
    }
}
