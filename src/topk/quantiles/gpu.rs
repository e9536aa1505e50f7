//! Quantiles of sorted groups on OpenCL devices: the plan, then its launches.

use crate::{
    ElementType, Interpolation, Result,
    runtime::{ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("quantiles.cl");
/// Maximum fractions of a launch.
const FRACTIONS: usize = 8;
/// Work-items of a work-group on GPUs.
const ITEMS: usize = 64;
/// Minimum results of a work-item on CPU drivers.
const CPU_RESULTS: usize = 64;

/// A launch that finds `results` > 0 quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub groups: usize,
    pub wide: bool,
}

pub fn plan(results: usize, element: ElementType, offset: ElementType, caps: &Tuned, wide: bool) -> Plan {
    let (work_group, each) = match caps.class {
        DeviceClass::Cpu => (1, CPU_RESULTS),
        DeviceClass::Gpu => (tuning::work_group(ITEMS, caps), 1),
    };
    let bytes = element.size();
    let program = ProgramSpec::new("quantiles.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .define("KEY", tuning::unit_type(bytes))
        .define("KEY_BYTES", bytes)
        .define("S", offset.storage())
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("WG", work_group);
    let program = match element.infinity() {
        Some(bits) => {
            program.define("INFINITY_BITS", format!("{bits:#x}ul")).define("MANTISSA", element.precision() - 1)
        }
        None if element.is_signed() => program.define("KEY_SIGNED", element.storage()),
        None => program,
    };
    // A work-item takes several results if there are very many.
    let most = 64 * caps.compute_units.max(1) as usize;
    Plan { program, work_group, groups: results.div_ceil(work_group * each).min(most), wide }
}

/// Writes the quantiles `q` of each group to `out`. The keys of the groups are sorted.
pub(super) fn pick(
    device: &ClDevice,
    (sorted, element): (&ClInput, ElementType),
    (offsets, offset): (&ClInput, ElementType),
    (q, how): (&[f64], Interpolation),
    out: &ClInput,
) -> Result<()> {
    let (n, groups) = (sorted.len(), out.len() / q.len());
    let caps = device.capabilities_for(Primitive::TopK, element.size(), n)?;
    for (launch, few) in q.chunks(FRACTIONS).enumerate() {
        let results = groups * few.len();
        let plan = plan(results, element, offset, &caps, device.wide(results));
        let mut bits = [0; FRACTIONS];
        bits.iter_mut().zip(few).for_each(|(bits, q)| *bits = q.to_bits());
        device
            .launch(&plan.program, "quantiles")?
            .mem(sorted.mem())
            .scalar(sorted.offset() as u64)
            .scalar(n as u64)
            .mem(offsets.mem())
            .scalar(offsets.offset() as u64)
            .scalar(bits)
            .scalar((launch * FRACTIONS) as u32)
            .scalar(few.len() as u32)
            .scalar(q.len() as u32)
            .scalar(how as u32)
            .offset(results as u64, plan.wide)
            .mem(out.mem())
            .scalar(out.offset() as u64)
            .run([plan.groups, 1, 1], [plan.work_group, 1, 1])?;
    }
    Ok(())
}

/// All programs that plans for `caps` use.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let mut programs = Vec::new();
    for element in ElementType::ALL {
        for (offset, wide) in [(ElementType::U32, false), (ElementType::U64, false), (ElementType::U64, true)] {
            programs.push(plan(1000, element, offset, caps, wide).program);
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_work_items_for_all_results() {
        for (name, caps) in Tuned::samples() {
            for results in [1, 63, 64, 65, 1 << 20, 1 << 33] {
                let plan = plan(results, ElementType::F32, ElementType::U64, &caps, results >= 1 << 31);
                assert!(plan.groups >= 1 && plan.work_group <= caps.max_work_group, "{name}: {plan:?}");
                assert!((plan.groups - 1) * plan.work_group < results, "{name}: {results}: {plan:?}");
            }
        }
    }
}
