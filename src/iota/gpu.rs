//! Iota on OpenCL devices: the plan, then its launch.

use crate::{
    ElementType, Integer, Output, Result,
    runtime::{Capabilities, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning,
};

const TEXT: &str = include_str!("../../cl/iota.cl");

/// The launch of an iota of n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) groups: usize,
    pub(crate) work_group: usize,
    /// Contiguous elements of one item.
    pub(crate) run: usize,
    pub(crate) wide: bool,
}

pub(crate) fn plan(n: usize, element: ElementType, caps: &Capabilities, wide: bool) -> Plan {
    let (work_group, run) = match caps.class {
        DeviceClass::Cpu => (1, n.div_ceil(8 * caps.compute_units.max(1) as usize).max(1024)),
        DeviceClass::Gpu => (tuning::work_group(256, caps), 16 / element.size()),
    };
    let program = ProgramSpec::new("iota.cl", TEXT, caps)
        .with(element.options("T"))
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" });
    Plan { program, groups: n.div_ceil(work_group * run), work_group, run, wide }
}

pub(super) fn iota<T: Integer>(device: &ClDevice, start: T, output: Output<'_, T>) -> Result<()> {
    let out = output.cl(device, false)?;
    let n = out.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities()?;
    let plan = plan(n, T::TYPE, &caps, device.tuning().wide(n));
    device
        .launch(&plan.program, "iota")?
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(n as u64, plan.wide)
        .offset(plan.run as u64, plan.wide)
        .scalar(start)
        .scalar(u32::from(out.aligned()))
        .run([plan.groups, 1, 1], [plan.work_group, 1, 1])?;
    out.finish(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_element() {
        for (name, caps) in Capabilities::samples() {
            for n in [1, 255, 256, 257, 1 << 20, (1 << 32) + 1] {
                let plan = plan(n, ElementType::I32, &caps, n >= 1 << 31);
                assert!(plan.groups * plan.work_group * plan.run >= n, "{name}: {n}");
            }
        }
    }
}
