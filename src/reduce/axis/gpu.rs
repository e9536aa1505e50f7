//! Reduction along an axis on OpenCL devices: the plan, then its launches.

use std::sync::Arc;

use super::{CHUNK, LANES, Lines};
use crate::{
    Element, ElementType, Result, Scratch,
    op::{Code, Op},
    runtime::{
        AnyInput, AnyOutput, ClInput, ProgramSpec, on_device,
        opencl::{ClDevice, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_axis.cl");
/// Outputs of a work-item if the axis is short.
const SHORT: usize = 4;
/// Bytes of neighbouring outputs of a work-item on CPU drivers. The number is four times as large if every core still
/// has enough work, since longer contiguous reads are faster.
const CPU_ROW_BYTES: usize = 256;

/// The operation and its types, without the shape.
#[derive(Clone, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    /// The type of the results.
    pub out: ElementType,
    pub source: Code,
}

impl Form {
    pub fn of<T: Element, O: Op<T>>() -> Self {
        Self::into::<T, T, O>()
    }

    /// A reduction of `T` to `U`, in the accumulator of `U`.
    pub fn into<T: Element, U: Element, O: Op<U>>() -> Self {
        Self::by::<T, U>(O::source())
    }

    /// A reduction of `T` to `U` by any operator.
    pub fn by<T: Element, U: Element>(source: Code) -> Self {
        Self { element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, source }
    }
}

/// The launches for lines of at least one element, and at least one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    /// Outputs of a work-group, or vectors of outputs if `few`.
    pub columns: usize,
    /// True if the axis is short and its elements are neighbours. A work-item then has several outputs.
    pub short: bool,
    /// True if a work-item has a vector of outputs, and the axis has no more elements than lanes.
    pub few: bool,
    /// True if a work-item has a vector of outputs, and the axis is longer.
    pub vectors: bool,
    /// Chunks of a part (a power of two), and parts of each output.
    pub run: usize,
    pub parts: usize,
    pub groups: usize,
    /// Work-items that combine the parts of an output, and parts of each work-item; powers of two.
    pub share: usize,
    pub share_run: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

/// `aligned` says whether the elements, and whether the results, are 16-byte aligned.
pub fn plan(lines: &Lines, form: &Form, aligned: [bool; 2], caps: &Tuned, wide: bool) -> Result<Plan> {
    let [aligned, out_aligned] = aligned;
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let cpu = params.work_group == 1;
    let (len, outputs, vec) = (lines.len, lines.outputs, 16 / form.element.size());
    let across = lines.across();
    let unit = lines.stride == 1 && !across;
    let chunks = len.div_ceil(CHUNK);
    let lanes = if cpu { LANES } else { len.next_power_of_two().clamp(vec, LANES) };
    // A work-item has a vector of outputs if elements have at least 4 bytes, since registers then hold its
    // accumulators. H200, f32: 4,108 GB/s instead of 2,799 for 16 rows of 2^24 elements; 3,763 instead of 3,585 for
    // 2^14 rows of 2^14 elements. 16 outputs are slower: 3,692 instead of 3,840.
    let multiples = |x: &isize| x.unsigned_abs().is_multiple_of(vec);
    let (inner, outer) = (lines.strides.last(), lines.strides.iter().rev().skip(1));
    let whole = lines.shape.last().is_some_and(|n| n.is_multiple_of(vec)) && inner == Some(&1);
    let vectors = across && !cpu && aligned && whole && outer.chain([&lines.stride]).all(multiples);
    let vectors = vectors && outputs >= 32 * vec && form.element.size() >= 4;
    let few = vectors && len <= LANES && out_aligned;
    let exchanged = vec * params.work_group * form.acc.size() + tuning::RESERVED_BYTES;
    let vectors = vectors && len > LANES && exchanged <= caps.local_bytes && params.work_group >= vec;
    let outs = if vectors { vec } else { 1 };
    let row = CPU_ROW_BYTES / form.acc.size();
    // `max_groups` is eight work-groups for each core.
    let row = if outputs / (4 * row) * chunks.div_ceil(4) >= params.max_groups / 4 { 4 * row } else { row };
    let (columns, share) = match (cpu, across) {
        (true, true) => (outputs.next_power_of_two().min(row), 1),
        (true, false) => (1, 1),
        (false, true) if len <= LANES => (params.work_group, 1),
        (false, true) => {
            let columns = outputs.next_power_of_two().min(32 * outs).min(params.work_group);
            (columns, (params.work_group * outs / columns).min(LANES))
        }
        (false, false) => {
            let share = (lanes / vec).min(params.work_group);
            let slots = chunks.next_power_of_two().min(params.work_group / share);
            (params.work_group / (share * slots), share)
        }
    };
    let slots = params.work_group * outs / (columns * share);
    let handed_over = SHORT * params.work_group * form.acc.size() + tuning::RESERVED_BYTES;
    let short = unit && !cpu && len <= LANES && share * vec == lanes && handed_over <= caps.local_bytes;
    // Oclgrind treats vectors that were stored to private memory as uninitialised.
    let short_lines = unit && len <= LANES && form.element.has_vectors() && !caps.checker;
    let block = if short { SHORT * columns } else { columns.max(1) * if few { vec } else { 1 } };
    let blocks = outputs.div_ceil(block);
    // Enough parts to occupy the device, each with enough work.
    let wanted = (2 * params.max_groups / blocks).clamp(1, chunks.div_ceil(4 * slots.max(1)));
    let run = chunks.div_ceil(wanted).next_power_of_two().max(slots);
    let parts = chunks.div_ceil(run);
    let parts_share = (parts / 8).next_power_of_two().min(params.work_group);
    let program = ProgramSpec::new("reduce_axis.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .element("T", form.element)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", params.work_group)
        .define("COLS", columns)
        .define("LANES", lanes)
        .define("LT", share)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("COLUMNS", across && !cpu)
        .flag("WIDE", vectors)
        .flag("UNIT", unit && !cpu)
        .flag("SHORT", short)
        .flag("FEW", few)
        .flag("VECTORS", cpu && (caps.vectors_of(form.element) || short_lines))
        .define("BATCH", SHORT)
        .flag("ALIGNED", vectors || few || (aligned && unit && !cpu && lines.strides.iter().all(multiples)))
        .operator(&form.source);
    Ok(Plan {
        program,
        work_group: params.work_group,
        columns,
        short,
        few,
        vectors,
        run,
        parts,
        // One work-item combines neighbouring parts.
        share: parts_share,
        share_run: parts.div_ceil(parts_share).next_power_of_two(),
        groups: if cpu { (blocks * parts).min(2 * params.max_groups) } else { blocks * parts },
        scratch_bytes: if parts > 1 { outputs * parts * form.acc.size() } else { 0 },
        wide,
    })
}

/// The dimensions and strides of the outputs, last axis first, and the number of dimensions.
fn dimensions(lines: &Lines) -> ([u64; 8], [i64; 8], u32) {
    let (mut shape, mut strides) = ([1; 8], [0; 8]);
    let dims = lines.shape.len();
    for (axis, (&n, &stride)) in lines.shape.iter().zip(&lines.strides).enumerate() {
        (shape[dims - 1 - axis], strides[dims - 1 - axis]) = (n as u64, stride as i64);
    }
    (shape, strides, dims as u32)
}

/// Lines on a device: the planning and launching that all operations along an axis share.
pub struct OnDevice<'a> {
    pub device: &'a ClDevice,
    pub caps: Arc<Tuned>,
    pub lines: &'a Lines,
    /// True if the outputs or the axis need 64-bit numbers.
    pub wide: bool,
}

impl<'a> OnDevice<'a> {
    /// Lines of elements of type `element`.
    pub fn new(device: &'a ClDevice, lines: &'a Lines, element: ElementType) -> Result<Self> {
        let wide = device.wide(lines.outputs.max(lines.len));
        let n = lines.outputs.saturating_mul(lines.len);
        Ok(Self { device, caps: device.capabilities_for(Primitive::Reduce, element.size(), n)?, lines, wide })
    }

    /// The index of the first element, and whether it is aligned to `bytes`.
    pub fn first(&self, input: &ClInput, element: ElementType, bytes: usize) -> (usize, bool) {
        let first = input.offset() + self.lines.offset;
        (first, (first * element.size()).is_multiple_of(bytes))
    }

    /// A launch whose first arguments are `LINES` of `cl/lib/lines.cl`.
    pub fn launch(
        &self,
        program: &ProgramSpec,
        kernel: &'static str,
        input: &ClInput,
        first: usize,
    ) -> Result<Launch<'a>> {
        let (shape, strides, dims) = dimensions(self.lines);
        let launch = self.device.launch(program, kernel)?.mem(input.mem()).scalar(first as u64);
        let launch = launch.scalar(self.lines.stride as i64).offset(self.lines.outputs as u64, self.wide);
        Ok(launch.scalar(shape).scalar(strides).scalar(dims))
    }

    /// [`Self::launch`] for lines in parts of `run` each; the next arguments are `len`, `run` and `parts`.
    pub fn launch_parts(
        &self,
        program: &ProgramSpec,
        kernel: &'static str,
        input: &ClInput,
        (first, run, parts): (usize, usize, usize),
    ) -> Result<Launch<'a>> {
        Ok(self.parts(self.launch(program, kernel, input, first)?, run, parts))
    }

    /// Adds the arguments `len`, `run` and `parts` to a launch.
    pub(super) fn parts(&self, launch: Launch<'a>, run: usize, parts: usize) -> Launch<'a> {
        let launch = launch.offset(self.lines.len as u64, self.wide);
        launch.offset(run as u64, self.wide).offset(parts as u64, self.wide)
    }

    /// Adds lines of other memory to a launch. Their outputs have the same shape.
    pub(super) fn other(&self, launch: Launch<'a>, input: &ClInput, lines: &Lines) -> Launch<'a> {
        let (_, strides, _) = dimensions(lines);
        let launch = launch.mem(input.mem()).scalar((input.offset() + lines.offset) as u64);
        launch.scalar(lines.stride as i64).scalar(strides)
    }
}

/// Reduces each line. `empty` is the result for an axis without elements.
pub(crate) fn reduce(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    input: AnyInput<'_>,
    lines: &Lines,
    output: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, [input], [(output, false)], |[input], [out]| run(device, form, empty, input, lines, out, scratch))
}

fn run(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    input: &ClInput,
    lines: &Lines,
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    if lines.outputs == 0 {
        return Ok(());
    }
    if lines.len == 0 {
        return device.fill(out.mem(), out.byte_offset(), lines.outputs * empty.len(), empty);
    }
    let there = OnDevice::new(device, lines, form.element)?;
    let (first, aligned) = there.first(input, form.element, 16);
    let plan = plan(lines, form, [aligned, out.aligned()], &there.caps, there.wide)?;
    let local = [plan.work_group, 1, 1];
    if plan.short || plan.few {
        let kernel = if plan.short { "axis_short" } else { "axis_rows" };
        let launch = there.launch(&plan.program, kernel, input, first)?.offset(lines.len as u64, plan.wide);
        return launch.mem(out.mem()).scalar(out.offset() as u64).run([plan.groups, 1, 1], local);
    }
    let partials = scratch.cl(device, plan.scratch_bytes)?;
    let last = plan.parts == 1;
    there
        .launch_parts(
            &plan.program,
            if plan.vectors { "axis_columns" } else { "axis_chunks" },
            input,
            (first, plan.run, plan.parts),
        )?
        .mem(if last { out.mem() } else { partials })
        .scalar(if last { out.offset() as u64 } else { 0 })
        .scalar(u32::from(last))
        .run([plan.groups, 1, 1], local)?;
    if last {
        return Ok(());
    }
    device
        .launch(&plan.program, "axis_parts")?
        .mem(partials)
        .offset(lines.outputs as u64, plan.wide)
        .offset(plan.parts as u64, plan.wide)
        .scalar(plan.share as u32)
        .offset(plan.share_run as u64, plan.wide)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .run([lines.outputs.div_ceil(plan.work_group / plan.share), 1, 1], local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, op::Sum};

    #[test]
    fn groups_cover_every_chunk_of_every_output() {
        for (name, caps) in Tuned::samples() {
            for shape in
                [[1, 1], [16, 1 << 24], [1 << 24, 16], [1 << 14, 1 << 14], [3, 1 << 33], [1 << 33, 1], [7, 513]]
            {
                for axis in 0..2 {
                    let lines = Lines::of(&Layout::contiguous(&shape).unwrap(), axis).unwrap();
                    for form in [Form::of::<f32, Sum>(), Form::of::<u8, Sum>(), Form::of::<i64, Sum>()] {
                        let plan = plan(&lines, &form, [true; 2], &caps, false).unwrap();
                        let what = format!("{name}: {shape:?} along {axis}: {plan:?}");
                        assert!(plan.run.is_power_of_two(), "{what}");
                        assert!(plan.parts * plan.run * CHUNK >= lines.len, "{what}");
                        assert!((plan.parts - 1) * plan.run * CHUNK < lines.len, "{what}");
                        assert!(plan.share * plan.share_run >= plan.parts, "{what}");
                        assert!(plan.share <= plan.work_group && plan.share_run.is_power_of_two(), "{what}");
                        let side_by_side = if plan.few { 16 / form.element.size() } else { 1 };
                        let outputs = plan.columns * if plan.short { SHORT } else { side_by_side };
                        let whole = plan.groups / plan.parts * outputs >= lines.outputs;
                        // Work-groups of one work-item share all groups of outputs.
                        let shared = plan.work_group == 1 && plan.groups == 2 * crate::tuning::reduce(&caps).max_groups;
                        assert!(whole || shared, "{what}");
                    }
                }
            }
        }
    }
}
