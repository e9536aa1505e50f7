//! Moments of lines on OpenCL devices: the plan, then its launches.

use super::{Lines, ROWS, lanes};
use crate::{
    Element, ElementType, Result, Scratch,
    reduce::{axis::gpu::OnDevice, moments::Figure},
    runtime::{AnyOutput, ClInput, ClOutput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_axis_moments.cl");
const FIGURES_TEXT: &str = kernel_text!("moments_figures.cl");
/// `COLS` of the kernels: neighbouring outputs that a work-item walks at once on CPU drivers.
const CPU_COLUMNS: usize = 16;
/// Fewest elements of a work-item on CPU drivers, if it has several lines.
const CPU_ELEMENTS: usize = 4096;
/// Rows of a chunk of integers on CPU drivers.
const CPU_INTEGER_ROWS: usize = 128;
/// Maximum chunks of a work-item; see `CHUNKS_DEPTH` of the kernels.
const MOST_CHUNKS: usize = 512;

/// The types, without the shape.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
}

impl Form {
    pub fn of<T: Element>() -> Self {
        Self { element: T::TYPE, acc: T::Acc::TYPE }
    }

    /// Bytes of `Moments` in the kernels.
    pub(in crate::reduce) fn bytes(self) -> usize {
        if self.element.is_float() { 4 * self.acc.size() } else { 40 }
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
    /// Elements of a chunk, and quads of a chunk, each with moments of its own.
    pub chunk: usize,
    pub quads: usize,
    /// Chunks of a part (a power of two), and parts of each output.
    pub run: usize,
    pub parts: usize,
    pub groups: usize,
    /// Outputs of a work-group that joins parts, and parts that each of its work-items joins (a power of two).
    pub joined_columns: usize,
    pub joined_each: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

pub fn plan(lines: &Lines, form: &Form, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let (len, outputs) = (lines.len, lines.outputs);
    let work_group = match tuning::work_group_of(params.work_group, form.bytes(), caps) {
        // Each quad of a line needs a work-item of its own.
        few if few < 8 => 1,
        enough => enough,
    };
    let (cpu, float, across) = (work_group == 1, form.element.is_float(), lines.across());
    let (lanes, rows) = match (cpu, float) {
        (true, true) => (lanes(len), ROWS),
        (true, false) => (4, CPU_INTEGER_ROWS),
        (false, _) => {
            let lanes = lanes(len);
            (lanes, len.div_ceil(lanes).next_power_of_two().min(ROWS))
        }
    };
    let (chunk, quads) = (rows * lanes, lanes / 4);
    let chunks = len.div_ceil(chunk);
    let (columns, slots) = if cpu {
        let few = (CPU_ELEMENTS / len).clamp(1, 64).min(outputs.div_ceil(params.max_groups));
        (if across { CPU_COLUMNS } else { few }, 1)
    } else {
        let neighbours = if across { outputs.next_power_of_two().min(32).min(work_group / quads) } else { 1 };
        // Four chunks for each work-item, or more work-items if the device would otherwise be idle.
        let idle = params.max_groups * work_group / outputs.saturating_mul(quads);
        let slots = chunks.min(chunks.div_ceil(4).max(idle)).next_power_of_two().min(work_group / neighbours / quads);
        (work_group / (slots * quads), slots)
    };
    let blocks = outputs.div_ceil(columns);
    // Enough parts to occupy the device, each with enough work.
    let wanted = (2 * params.max_groups / blocks).clamp(1, chunks.div_ceil(4 * slots));
    let run = chunks.div_ceil(wanted).next_power_of_two().clamp(slots, MOST_CHUNKS * slots);
    let parts = chunks.div_ceil(run);
    let share = (parts.next_power_of_two() * quads).min(work_group);
    let (joined_columns, joined_slots) = if cpu { (1, 1) } else { (work_group / share, share / quads) };
    let unit = lines.stride == 1 && !cpu;
    let program = ProgramSpec::new("reduce_axis_moments.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .element("T", form.element)
        .element("A", form.acc)
        .define("WG", work_group)
        .define("LANES", lanes)
        .define("ROWS", rows)
        .define("COLS", if cpu && across { CPU_COLUMNS } else { 1 })
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("UNIT", unit)
        .flag("ALIGNED", aligned && unit && lines.strides.iter().all(|stride| stride.unsigned_abs().is_multiple_of(4)));
    Ok(Plan {
        program,
        work_group,
        across,
        columns,
        chunk,
        quads,
        run,
        parts,
        groups: blocks * parts,
        joined_columns,
        joined_each: parts.div_ceil(joined_slots).next_power_of_two(),
        scratch_bytes: if parts > 1 { outputs * parts * quads * form.bytes() } else { 0 },
        wide,
    })
}

/// Computes the record of each line. If there are lines, each has at least one element.
pub(crate) fn moments(
    device: &ClDevice,
    form: &Form,
    input: &ClInput,
    lines: &Lines,
    output: ClOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    crate::runtime::apart(&[input], &[&output])?;
    if lines.outputs > 0 {
        run(device, form, input, lines, &output, scratch)?;
    }
    output.finish(device)
}

fn run(
    device: &ClDevice,
    form: &Form,
    input: &ClInput,
    lines: &Lines,
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let there = OnDevice::new(device, lines, form.element)?;
    let (first, aligned) = there.first(input, form.element, 4 * form.element.size());
    let plan = plan(lines, form, aligned, &there.caps, there.wide)?;
    let partials = scratch.cl(device, plan.scratch_bytes)?;
    let last = plan.parts == 1;
    let (local, out_offset) = ([plan.work_group, 1, 1], (out.byte_offset() / 8) as u64);
    there
        .launch_parts(&plan.program, "axis_moments", input, (first, plan.run, plan.parts))?
        .scalar(plan.columns as u32)
        .scalar(u32::from(plan.across))
        .mem(if last { out.mem() } else { partials })
        .scalar(if last { out_offset } else { 0 })
        .run([plan.groups, 1, 1], local)?;
    if last {
        return Ok(());
    }
    device
        .launch(&plan.program, "axis_moments_parts")?
        .mem(partials)
        .offset(lines.outputs as u64, plan.wide)
        .offset(lines.len as u64, plan.wide)
        .offset((plan.run * plan.chunk) as u64, plan.wide)
        .offset(plan.parts as u64, plan.wide)
        .offset(plan.joined_each as u64, plan.wide)
        .scalar(plan.joined_columns as u32)
        .mem(out.mem())
        .scalar(out_offset)
        .run([lines.outputs.div_ceil(plan.joined_columns), 1, 1], local)
}

/// The launch that decodes the records of `groups` > 0 groups: its program, work-groups and work-group size.
pub fn plan_figures(groups: usize, element: ElementType, figure: Figure, caps: &Tuned) -> (ProgramSpec, usize, usize) {
    let work_group = match caps.class {
        DeviceClass::Cpu => 1,
        DeviceClass::Gpu => tuning::work_group(256, caps),
    };
    let program = ProgramSpec::new("moments_figures.cl", FIGURES_TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .define("WG", work_group)
        .flag("VARIANCE", figure == Figure::Variance)
        .flag("WORDS_DOUBLE", element == ElementType::F64)
        .flag("WORDS_FLOAT", element.is_float() && element != ElementType::F64);
    (program, groups.div_ceil(work_group).min(tuning::reduce(caps).max_groups), work_group)
}

/// Writes a figure of each record, on a device that has fp64.
pub(super) fn figures(
    device: &ClDevice,
    element: ElementType,
    figure: Figure,
    records: &ClInput,
    out: AnyOutput<'_>,
) -> Result<()> {
    let (out, groups) = (out.cl(device, false)?, records.len());
    let caps = device.capabilities_for(Primitive::Reduce, element.size(), groups)?;
    let (program, work_groups, work_group) = plan_figures(groups, element, figure, &caps);
    // Records and output do not overlap.
    device
        .launch(&program, "figures_of_moments")?
        .mem(records.mem())
        .scalar(groups as u64)
        .mem(out.mem())
        .run([work_groups, 1, 1], [work_group, 1, 1])?;
    out.finish(device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn items_cover_every_chunk_of_every_output() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [256, 2 << 10, caps.local_bytes] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for shape in
                    [[1, 1], [16, 1 << 24], [1 << 24, 16], [1 << 14, 1 << 14], [3, 1 << 33], [1 << 33, 1], [7, 513]]
                {
                    for axis in 0..2 {
                        let lines = Lines::of(&Layout::contiguous(&shape).unwrap(), axis).unwrap();
                        for form in [Form::of::<f32>(), Form::of::<u8>(), Form::of::<i64>()] {
                            let plan = plan(&lines, &form, true, &caps, true).unwrap();
                            let what = format!("{name}: {shape:?} along {axis}: {plan:?}");
                            assert!(plan.run.is_power_of_two() && plan.joined_each.is_power_of_two(), "{what}");
                            assert!(plan.parts * plan.run * plan.chunk >= lines.len, "{what}");
                            assert!((plan.parts - 1) * plan.run * plan.chunk < lines.len, "{what}");
                            assert!(plan.groups / plan.parts * plan.columns >= lines.outputs, "{what}");
                            if plan.work_group == 1 {
                                assert!(plan.run <= MOST_CHUNKS && plan.joined_each >= plan.parts, "{what}");
                                continue;
                            }
                            for columns in [plan.columns, plan.joined_columns] {
                                assert!(columns.is_power_of_two() && columns <= plan.work_group / plan.quads, "{what}");
                            }
                            let slots = |columns: usize| plan.work_group / columns / plan.quads;
                            let each = plan.run / slots(plan.columns);
                            assert!(each * slots(plan.columns) == plan.run && each <= MOST_CHUNKS, "{what}");
                            assert!(plan.joined_each * slots(plan.joined_columns) >= plan.parts, "{what}");
                        }
                    }
                }
            }
        }
    }
}
