//! Scans along a strided axis on OpenCL devices: the plan, then its launches.

use super::{CHUNK, Shape};
use crate::{
    ElementType, Result, Scratch,
    lookback::levels,
    runtime::{AnyInput, AnyOutput, ClInput, ProgramSpec, on_device, opencl::ClDevice},
    scan::gpu::{Form, Start},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("scan_axis.cl");
/// Neighbouring lines of a work-item on CPU drivers.
const CPU_COLUMNS: usize = 64;

/// The launches over at least one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub max_groups: usize,
    pub chunks: usize,
    /// Groups of neighbouring lines for each outer index. A work-item takes one chunk of a group at a time.
    pub pieces: usize,
    /// Aggregates of a line, over all levels.
    pub stride: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

pub fn plan(shape: &Shape, form: &Form, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let (cpu, vec) = (params.work_group == 1, 16 / form.element.size());
    let Shape { outer, len, inner } = *shape;
    let chunks = len.div_ceil(CHUNK);
    // A work-item takes a vector of lines, if there are enough vectors to occupy the device.
    let vectors = inner.is_multiple_of(vec) && outer * chunks * (inner / vec) >= params.max_groups * params.work_group;
    let columns = match (cpu, vectors) {
        (true, _) => CPU_COLUMNS,
        (false, true) => vec,
        (false, false) => 1,
    };
    let stride: usize = levels(chunks).map(|(_, count)| count).sum();
    let program = ProgramSpec::new("scan_axis.cl", TEXT, caps)
        .element("T", form.element)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("COLUMNS", columns)
        .flag("WHOLE", !cpu)
        .flag("REVERSE", form.reversed)
        .flag("ALIGNED", aligned && !cpu)
        .operator(&form.source);
    Ok(Plan {
        program,
        work_group: params.work_group,
        max_groups: 8 * params.max_groups,
        chunks,
        pieces: inner.div_ceil(columns),
        stride,
        scratch_bytes: scratch_bytes(shape, form.acc),
        wide,
    })
}

/// Scans every line of `input` to the same indices of `output`.
pub(crate) fn scan(
    device: &ClDevice,
    form: &Form,
    start: &Start,
    shape: &Shape,
    input: AnyInput<'_>,
    output: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, [input], [(output, false)], |[input], [out]| run(device, form, start, shape, input, out, scratch))
}

fn run(
    device: &ClDevice,
    form: &Form,
    start: &Start,
    shape: &Shape,
    input: &ClInput,
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), shape.elements())?;
    let plan = plan(shape, form, input.aligned() && out.aligned(), &caps, device.wide(shape.elements()))?;
    let totals = scratch.cl(device, plan.scratch_bytes)?;
    let Plan { program, chunks, pieces, stride, wide, .. } = &plan;
    let groups = |work: usize| [work.div_ceil(plan.work_group).min(plan.max_groups), 1, 1];
    let items = [plan.work_group, 1, 1];
    let launch = |kernel, chunks: usize| -> Result<_> {
        let launch = device.launch(program, kernel)?.mem(input.mem()).scalar(input.offset() as u64);
        let launch = launch.offset(shape.len as u64, *wide).offset(shape.inner as u64, *wide);
        let launch = launch.offset(*pieces as u64, *wide).offset(chunks as u64, *wide);
        let launch = launch.offset((shape.outer * pieces * chunks) as u64, *wide).mem(totals);
        Ok(launch.offset(*stride as u64, *wide))
    };
    let work = |chunks: usize| shape.outer * pieces * chunks;
    if *chunks > 1 {
        device.build_ahead(program, &["axis_spine", "axis_results", "axis_aggregates"])?;
        launch("axis_aggregates", chunks - 1)?.run(groups(work(chunks - 1)), items)?;
    }
    for (first, count) in levels(*chunks) {
        let blocks = count.div_ceil(32);
        let work = shape.outer * shape.inner * blocks;
        device
            .launch(program, "axis_spine")?
            .mem(totals)
            .offset(*stride as u64, *wide)
            .offset(first as u64, *wide)
            .offset(count as u64, *wide)
            .offset((first + count) as u64, *wide)
            .offset(blocks as u64, *wide)
            .offset(work as u64, *wide)
            .run(groups(work), items)?;
    }
    start
        .put(launch("axis_results", *chunks)?.mem(out.mem()).scalar(out.offset() as u64))
        .run(groups(work(*chunks)), items)
}

/// Upper bound on the scratch bytes for a shape.
pub fn scratch_bytes(shape: &Shape, acc: ElementType) -> usize {
    let stride: usize = levels(shape.len.div_ceil(CHUNK)).map(|(_, count)| count).sum();
    shape.outer * shape.inner * stride * acc.size()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Sum;

    #[test]
    fn plans_cover_every_line() {
        for (name, caps) in Tuned::samples() {
            for (outer, len, inner) in [(1, 1, 8), (1, 1 << 20, 16), (3, 513, 1000), (1, 16, 1 << 30), (1 << 20, 3, 9)]
            {
                let shape = Shape { outer, len, inner };
                let form = Form::of::<u16, u64, Sum>(false);
                let plan = plan(&shape, &form, true, &caps, false).unwrap();
                assert!(plan.chunks * CHUNK >= len && (plan.chunks - 1) * CHUNK < len, "{name}: {shape:?}");
                assert!(plan.pieces >= 1 && plan.pieces <= inner, "{name}: {shape:?}");
                assert_eq!(plan.scratch_bytes, scratch_bytes(&shape, form.acc), "{name}: {shape:?}");
            }
        }
    }
}
