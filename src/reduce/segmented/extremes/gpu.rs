//! The extremes of segments on OpenCL devices: the plan, then its launches.

use crate::{
    Element, ElementType, Result, Scratch,
    reduce::{Ends, segmented::gpu::Level},
    runtime::{
        AnyInput, AnyOutput, ClInput, ProgramSpec, on_device,
        opencl::{ClDevice, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_segmented_extremes.cl");
/// Steps of a work-item: `STEPS` if many work-items share a tile, `CPU_STEPS` if one walks it. Each step takes an
/// element or an offset.
const STEPS: usize = 15;
const CPU_STEPS: usize = 1 << 14;
/// Maximum bytes of a tile in local memory, so that several work-groups fit.
const STAGE_BYTES: usize = 32 << 10;
/// Nodes that a work-item joins by itself, if many work-items share a level.
const NODE_FAN: usize = 4;

/// The operation and its types, without the sizes.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    pub ends: Ends,
    /// The type of the offsets.
    pub offset: ElementType,
    /// True if other kernels find the segments. The number of segments is then in device memory.
    pub counted: bool,
}

impl Form {
    pub fn of<T: Element>(ends: Ends, offset: ElementType) -> Self {
        Self { element: T::TYPE, acc: T::Acc::TYPE, ends, offset, counted: false }
    }

    /// Maximum local memory of a work-item: its elements, the positions of its offsets, the positions of winners, and a
    /// node.
    pub fn item_bytes(&self) -> usize {
        let ends = self.ends.list().len();
        STEPS * (self.element.size() + 2 + 2 * ends) + 2 * ends * (8 + 8) + 8
    }
}

/// The launches for at least one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    /// Steps of a tile.
    pub steps: usize,
    pub tiles: usize,
    pub split_groups: usize,
    pub levels: Vec<Level>,
    /// The number of nodes of all levels.
    pub nodes: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

/// `wide` returns whether a number of elements and offsets needs 64 bits.
pub fn plan(n: usize, segments: usize, form: &Form, caps: &Tuned, wide: &dyn Fn(usize) -> bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let (params, bytes) = (tuning::reduce(caps), form.item_bytes());
    let work_group = tuning::work_group_of(params.work_group.min(STAGE_BYTES / bytes), bytes, caps);
    let cpu = work_group == 1;
    let item_steps = if cpu { CPU_STEPS } else { STEPS };
    let (all, steps) = (n + segments + 1, item_steps * work_group);
    let tiles = all.div_ceil(steps);
    let (mut levels, mut nodes, mut last) = (Vec::new(), tiles, tiles);
    while last > 1 {
        let groups = if cpu { 1 } else { last.div_ceil(NODE_FAN * work_group) };
        levels.push(Level { nodes: last, groups });
        nodes += groups;
        last = groups;
    }
    let (ends, wide) = (form.ends.list().len(), wide(all));
    let word = |wide| if wide { "ulong" } else { "uint" };
    let wide_offsets = form.offset == ElementType::U64;
    let program = ProgramSpec::new("reduce_segmented_extremes.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .element("T", form.element)
        .element("A", form.acc)
        .define("WG", work_group)
        .define("STEPS", item_steps)
        .define("ENDS", ends)
        .define("S", word(wide_offsets))
        .define("OFFSET_T", word(wide))
        .define("POS_T", word(wide || wide_offsets))
        .flag("ARG_MAX", form.ends == Ends::Max)
        .flag("COUNTED", form.counted);
    Ok(Plan {
        program,
        work_group,
        steps,
        tiles,
        split_groups: (tiles + 1).div_ceil(if cpu { 256 } else { work_group }).min(8 * params.max_groups),
        levels,
        nodes,
        scratch_bytes: size_of::<u64>() * (nodes * (4 * ends + 1) + tiles + 1),
        wide,
    })
}

/// Finds the extremes of each segment. `inputs` are the elements and the offsets, of which there is at least one. `empty`
/// has the value of an empty segment at each end.
pub(crate) fn find(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    inputs: [AnyInput<'_>; 2],
    values: AnyOutput<'_>,
    indices: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, inputs, [(values, false), (indices, false)], |[input, offsets], [values, indices]| {
        let segments = offsets.len() - 1;
        Call { form, empty, input, offsets, segments, found: None, values, indices }.run(device, scratch)
    })
}

/// A call with its memory. If other kernels find the segments, `found` holds their number. Then `offsets` has room for
/// `segments + 1` offsets, and the last one may be missing.
pub(crate) struct Call<'a> {
    pub(crate) form: &'a Form,
    pub(crate) empty: &'a [u8],
    pub(crate) input: &'a ClInput,
    pub(crate) offsets: &'a ClInput,
    pub(crate) segments: usize,
    pub(crate) found: Option<&'a ClInput>,
    pub(crate) values: &'a ClInput,
    pub(crate) indices: &'a ClInput,
}

impl Call<'_> {
    /// A launch with the arguments that all kernels share.
    fn launch<'d>(&self, device: &'d ClDevice, plan: &Plan, kernel: &'static str) -> Result<Launch<'d>> {
        let Self { form, empty, input, offsets, segments, found, values, indices } = self;
        let (first, last) = (&empty[..form.element.size()], &empty[empty.len() - form.element.size()..]);
        let launch = device.launch(&plan.program, kernel)?.mem(input.mem()).scalar(input.offset() as u64);
        let launch = launch.offset(input.len() as u64, plan.wide).mem(offsets.mem()).scalar(offsets.offset() as u64);
        let launch = launch.offset(*segments as u64, plan.wide).plain(first).plain(last);
        let launch = launch.mem(values.mem()).scalar(values.offset() as u64);
        let launch = launch.mem(indices.mem()).scalar(indices.offset() as u64);
        Ok(match found {
            Some(found) => launch.mem(found.mem()).scalar(found.offset() as u64),
            None => launch,
        })
    }

    pub(crate) fn run(&self, device: &ClDevice, scratch: &mut Scratch) -> Result<()> {
        let (n, segments) = (self.input.len(), self.segments);
        if segments == 0 {
            return Ok(());
        }
        let caps = device.capabilities_for(Primitive::Reduce, self.form.element.size(), n)?;
        let plan = plan(n, segments, self.form, &caps, &|n| device.wide(n))?;
        let (scratch, nodes) = (scratch.cl(device, plan.scratch_bytes)?, plan.nodes as u64);
        let local = [plan.work_group, 1, 1];
        let kernels = ["segment_extremes", "segment_extremes_splits", "segment_extremes_nodes"];
        device.build_ahead(&plan.program, &kernels[..if plan.levels.is_empty() { 2 } else { 3 }])?;
        self.launch(device, &plan, "segment_extremes_splits")?
            .mem(scratch)
            .scalar(nodes)
            .offset(plan.tiles as u64, plan.wide)
            .run([plan.split_groups, 1, 1], local)?;
        self.launch(device, &plan, "segment_extremes")?.mem(scratch).scalar(nodes).run([plan.tiles, 1, 1], local)?;
        let mut from = 0;
        for level in &plan.levels {
            let each = level.nodes.div_ceil(level.groups * plan.work_group);
            self.launch(device, &plan, "segment_extremes_nodes")?
                .mem(scratch)
                .scalar(nodes)
                .scalar(from as u64)
                .scalar(level.nodes as u64)
                .scalar(each as u64)
                .scalar((from + level.nodes) as u64)
                .run([level.groups, 1, 1], local)?;
            from += level.nodes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_in_one_node_and_tiles_fit_16_bits() {
        for (name, caps) in Tuned::samples() {
            for (n, segments) in [(0, 1), (1, 1), (3838, 1), (3838, 2), (1 << 20, 7), (5, 1 << 33), (1 << 48, 1 << 40)]
            {
                for form in [Form::of::<u8>(Ends::Min, ElementType::U32), Form::of::<f32>(Ends::Both, ElementType::U64)]
                {
                    let plan = plan(n, segments, &form, &caps, &|n| n >= 1 << 31).unwrap();
                    let what = format!("{name}: {n} in {segments}: {plan:?}");
                    assert!(plan.tiles * plan.steps > n + segments && plan.steps < 0xfffe, "{what}");
                    let joined: usize = plan.levels.iter().map(|level| level.groups).sum();
                    assert_eq!(plan.tiles + joined, plan.nodes, "{what}");
                    assert_eq!(plan.levels.last().map_or(plan.tiles, |level| level.groups), 1, "{what}");
                    let fits =
                        |level: &Level| level.groups <= level.nodes && (plan.work_group > 1 || level.groups == 1);
                    assert!(plan.levels.iter().all(fits), "{what}");
                    assert!(plan.work_group == 1 || plan.work_group * form.item_bytes() <= caps.local_bytes, "{what}");
                }
            }
        }
    }
}
