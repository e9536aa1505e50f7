//! The extremes of lines on OpenCL devices: the plan, then its launches.

use super::Lines;
use crate::{
    Element, ElementType, Result, Scratch,
    reduce::{Ends, axis::gpu::OnDevice},
    runtime::{ClInput, ClOutput, ProgramSpec, opencl::ClDevice},
    tuning::{self, Tuned},
};

const TEXT: &str = kernel_text!("reduce_axis_extremes.cl");
/// `COLS` of the kernels: maximum outputs of a work-item on CPU drivers.
const CPU_COLUMNS: usize = 64;
/// Fewest elements of a work-item on CPU drivers, if it has several lines.
const CPU_ELEMENTS: usize = 4096;

/// The operation and its types, without the shape.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    pub ends: Ends,
}

impl Form {
    pub fn of<T: Element>(ends: Ends) -> Self {
        Self { element: T::TYPE, acc: T::Acc::TYPE, ends }
    }
}

/// The launches for lines of at least one element, and at least one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub across: bool,
    /// Outputs of a work-group.
    pub columns: usize,
    /// Elements of a part, and parts of each output.
    pub run: usize,
    pub parts: usize,
    pub groups: usize,
    /// Outputs of a work-group that merges parts.
    pub merged_columns: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

pub fn plan(lines: &Lines, form: &Form, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let ends = form.ends.list().len();
    let work_group = tuning::work_group_of(params.work_group, ends * (form.acc.size() + 8), caps);
    let (len, outputs, vec) = (lines.len, lines.outputs, 16 / form.element.size());
    let across = lines.across();
    // `columns`: outputs of a work-group. `round`: elements of a line that one round of the work-group's loads covers.
    let (columns, round) = if work_group == 1 {
        let few = (CPU_ELEMENTS / len).clamp(1, CPU_COLUMNS).min(outputs.div_ceil(params.max_groups));
        (if across { CPU_COLUMNS } else { few }, 4096)
    } else {
        let in_flight = if lines.stride == 1 { 2 * vec } else { 8 };
        let useful = len.div_ceil(in_flight).next_power_of_two().min(work_group);
        let neighbours = if across { outputs.next_power_of_two().min(32).min(work_group) } else { 1 };
        let share = useful.min(work_group / neighbours);
        (work_group / share, share * if lines.stride == 1 { 4 * vec } else { 8 })
    };
    let blocks = outputs.div_ceil(columns);
    // Enough parts to occupy the device, each with enough work.
    let wanted = (2 * params.max_groups / blocks).clamp(1, len.div_ceil(2 * round));
    let run = len.div_ceil(wanted).next_multiple_of(round);
    let parts = len.div_ceil(run);
    let program = ProgramSpec::new("reduce_axis_extremes.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .element("T", form.element)
        .element("A", form.acc)
        .define("WG", work_group)
        .define("ENDS", ends)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("ARG_MAX", form.ends == Ends::Max)
        .flag(
            "ALIGNED",
            aligned
                && lines.stride == 1
                && work_group > 1
                && lines.strides.iter().all(|stride| stride.unsigned_abs().is_multiple_of(vec)),
        );
    Ok(Plan {
        program,
        work_group,
        across,
        columns,
        run,
        parts,
        groups: blocks * parts,
        merged_columns: work_group / parts.next_power_of_two().min(work_group),
        scratch_bytes: if parts > 1 { ends * outputs * parts * size_of::<u64>() } else { 0 },
        wide,
    })
}

/// Finds the extremes of each line. If there are lines, each has at least one element.
pub(crate) fn find(
    device: &ClDevice,
    form: &Form,
    input: &ClInput,
    lines: &Lines,
    values: ClOutput<'_>,
    places: ClOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    crate::runtime::apart(&[input], &[&values, &places])?;
    if lines.outputs > 0 {
        run(device, form, input, lines, &values, &places, scratch)?;
    }
    values.finish(device)?;
    places.finish(device)
}

fn run(
    device: &ClDevice,
    form: &Form,
    input: &ClInput,
    lines: &Lines,
    values: &ClInput,
    places: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let there = OnDevice::new(device, lines, form.element)?;
    let (first, aligned) = there.first(input, form.element, 16);
    let plan = plan(lines, form, aligned, &there.caps, there.wide)?;
    let found = scratch.cl(device, plan.scratch_bytes)?;
    let last = plan.parts == 1;
    let local = [plan.work_group, 1, 1];
    there
        .launch_parts(&plan.program, "axis_extremes", input, (first, plan.run, plan.parts))?
        .scalar(plan.columns as u32)
        .scalar(u32::from(plan.across))
        .mem(values.mem())
        .scalar(values.offset() as u64)
        .mem(if last { places.mem() } else { found })
        .scalar(if last { places.offset() as u64 } else { 0 })
        .run([plan.groups, 1, 1], local)?;
    if last {
        return Ok(());
    }
    there
        .launch(&plan.program, "axis_extremes_parts", input, first)?
        .mem(found)
        .offset(plan.parts as u64, plan.wide)
        .scalar(plan.merged_columns as u32)
        .mem(values.mem())
        .scalar(values.offset() as u64)
        .mem(places.mem())
        .scalar(places.offset() as u64)
        .run([lines.outputs.div_ceil(plan.merged_columns), 1, 1], local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn groups_cover_every_part_of_every_output() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [2 << 10, caps.local_bytes] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for shape in
                    [[1, 1], [16, 1 << 24], [1 << 24, 16], [1 << 14, 1 << 14], [3, 1 << 33], [1 << 33, 1], [7, 513]]
                {
                    for axis in 0..2 {
                        let lines = Lines::of(&Layout::contiguous(&shape).unwrap(), axis).unwrap();
                        for form in [Form::of::<f32>(Ends::Min), Form::of::<u8>(Ends::Max), Form::of::<i64>(Ends::Both)]
                        {
                            let plan = plan(&lines, &form, true, &caps, false).unwrap();
                            let what = format!("{name}: {shape:?} along {axis}: {plan:?}");
                            assert!(plan.parts * plan.run >= lines.len, "{what}");
                            assert!((plan.parts - 1) * plan.run < lines.len, "{what}");
                            let words = plan.run.is_multiple_of(16 / form.element.size());
                            assert!(words || lines.stride != 1, "{what}");
                            assert!(plan.groups / plan.parts * plan.columns >= lines.outputs, "{what}");
                            assert!(plan.work_group.is_power_of_two(), "{what}");
                            if plan.work_group == 1 {
                                assert!(plan.columns <= CPU_COLUMNS && plan.merged_columns == 1, "{what}");
                            } else {
                                for columns in [plan.columns, plan.merged_columns] {
                                    assert!(columns.is_power_of_two() && columns <= plan.work_group, "{what}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
