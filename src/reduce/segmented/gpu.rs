//! Segmented reduction on OpenCL devices: the plan, then its launches.

use super::BLOCK_BYTES;
use crate::{
    Element, ElementType, Result, Scratch,
    lookback::{SPINS, TICKET_BYTES},
    op::{Code, Op},
    runtime::{
        AnyInput, AnyOutput, ClInput, ClOutput, ProgramSpec, SubGroupBackend, on_device,
        opencl::{ClDevice, ClMem, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_segmented.cl");
/// Cache lines of a tile if one work-item walks it.
const CPU_BLOCKS: usize = 1024;
/// Scratch bytes of a node, for any types.
const NODE_BYTES: usize = 32;
/// Maximum work-items of a work-group, and maximum bytes of a tile in local memory, so that several work-groups fit.
const ITEMS: usize = 256;
const STAGE_BYTES: usize = 32 << 10;
/// Nodes that a work-item joins by itself, if many work-items share a tile.
const NODE_FAN: usize = 4;

/// The operation and its types, without the sizes.
#[derive(Clone, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    /// The type of the results.
    pub out: ElementType,
    pub source: Code,
    /// The type of the offsets.
    pub offset: ElementType,
    /// True if other kernels find the segments. The number of segments is then in device memory, and no segment is
    /// empty.
    pub counted: bool,
    /// The type of the keys whose runs are the segments, if the tiles find the runs themselves.
    pub keys: Option<ElementType>,
}

impl Form {
    pub fn of<T: Element, O: Op<T>>(offset: ElementType) -> Self {
        Self::into::<T, T, O>(offset)
    }

    /// A reduction of `T` to `U`, in the accumulator of `U`.
    pub fn into<T: Element, U: Element, O: Op<U>>(offset: ElementType) -> Self {
        Self::by::<T, U>(O::source(), offset)
    }

    /// A reduction of `T` to `U` by any operator.
    pub fn by<T: Element, U: Element>(source: Code, offset: ElementType) -> Self {
        Self { element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, source, offset, counted: false, keys: None }
    }
}

/// A level of the tree above the tiles: joins `nodes` nodes to `groups`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    pub nodes: usize,
    pub groups: usize,
}

/// The launches for n > 0 elements and at least one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub prepare_groups: usize,
    pub tiles: usize,
    pub levels: Vec<Level>,
    /// The number of nodes of all levels.
    pub nodes: usize,
    pub scratch_bytes: usize,
    /// `wide`: ranks need 64 bits. `wide_positions`: offsets or indices need 64 bits.
    pub wide: bool,
    pub wide_positions: bool,
    /// True if look-back can reuse the status words of an earlier launch, since the kernel uses no atomic tile counter.
    pub keeps_words: bool,
}

/// Cache lines of a work-item, if many work-items share a tile. A line holds few wide elements, so a work-item gets
/// more lines. With keys, a work-item also gets as many keys as elements, so fewer lines are faster.
fn item_blocks(form: &Form) -> usize {
    let size = form.element.size();
    if form.keys.is_some() { size.div_ceil(4) } else { size.min(4) }
}

/// Elements of a work-item.
fn item_elements(form: &Form) -> usize {
    item_blocks(form) * BLOCK_BYTES / form.element.size()
}

/// Maximum local memory of a work-item: an accumulator and a bit for each element, two accumulators, a rank and a flag.
/// Keys add a position for each element, a rank for each word of bits, and the memory of a scan of counts.
fn item_bytes(form: &Form) -> usize {
    let of_keys =
        if form.keys.is_some() { 2 * item_elements(form) + item_elements(form).div_ceil(8) + 8 + 4 } else { 0 };
    item_elements(form) * form.acc.size() + item_elements(form).div_ceil(8) + 8 + 8 + 8 + 4 + of_keys
}

/// Work-items of a tile. The tree does not depend on their number.
fn work_group(form: &Form, caps: &Tuned) -> usize {
    let most = tuning::reduce(caps).work_group.min(ITEMS).min(STAGE_BYTES / (item_elements(form) * form.acc.size()));
    tuning::work_group_of(most, item_bytes(form), caps)
}

fn program(form: &Form, aligned: bool, caps: &Tuned, wide: bool) -> ProgramSpec {
    let work_group = work_group(form, caps);
    let cpu = work_group == 1;
    let word = |wide| if wide { "ulong" } else { "uint" };
    let wide_offsets = form.offset == ElementType::U64;
    // Sub-groups are used only if all are full.
    let full = work_group.is_multiple_of(caps.sub_group.width as usize);
    let make = if full { ProgramSpec::with_sub_groups } else { ProgramSpec::new };
    let params = tuning::reduce(caps);
    let registers = if form.keys.is_some() { params.key_registers } else { params.segment_registers };
    let limit = caps.ptx.then(|| format!("-cl-nv-maxrregcount={registers}"));
    let program = make("reduce_segmented.cl", TEXT, caps)
        .with(caps.fault())
        .with(limit)
        .element("T", form.element)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", work_group)
        .define("ITEM_BLOCKS", item_blocks(form))
        .define("NODE_FAN", NODE_FAN)
        .define("S", word(wide_offsets))
        .define("OFFSET_T", word(wide))
        .define("POS_T", word(wide || wide_offsets))
        .flag("COUNTED", form.counted)
        .flag("KEYED", form.keys.is_some())
        .flag("ALIGNED", aligned && !cpu);
    let program = if cpu { program.define("BLOCKS", CPU_BLOCKS) } else { program };
    let program = match form.keys {
        Some(keys) => {
            let program = program.define("KEY", tuning::unit_type(keys.size())).define("KEY_BYTES", keys.size());
            program.with(keys.infinity().map(|bits| format!("-DINFINITY_BITS={bits:#x}")))
        }
        None => program,
    };
    program.operator(&form.source)
}

/// `wide` returns whether a number of elements or segments needs 64 bits.
pub fn plan(
    n: usize,
    segments: usize,
    form: &Form,
    aligned: bool,
    caps: &Tuned,
    wide: &dyn Fn(usize) -> bool,
) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let (max_groups, work_group) = (tuning::reduce(caps).max_groups, work_group(form, caps));
    let cpu = work_group == 1;
    let blocks = if cpu { CPU_BLOCKS } else { item_blocks(form) * work_group };
    let tiles = n.div_ceil(blocks * BLOCK_BYTES / form.element.size());
    let (mut levels, mut nodes, mut last) = (Vec::new(), 0, tiles);
    while last > 1 {
        nodes += last;
        let groups = if cpu { 1 } else { last.div_ceil(NODE_FAN * work_group) };
        levels.push(Level { nodes: last, groups });
        last = groups;
    }
    let wide = wide(n) || wide(segments);
    // `segments_prepare` divides its work in the same way.
    let searched = if form.counted { 0 } else { segments };
    let prepare_groups = if cpu {
        searched.max(tiles + 1).div_ceil(1024).min(8 * max_groups)
    } else {
        let run = item_elements(form) * work_group / 4;
        tiles / work_group + 1 + searched.div_ceil(run).min(8 * max_groups)
    };
    Ok(Plan {
        program: program(form, aligned, caps, wide),
        work_group,
        prepare_groups,
        tiles,
        levels,
        nodes,
        scratch_bytes: nodes * NODE_BYTES + (tiles + 1) * size_of::<u64>(),
        wide,
        wide_positions: wide || form.offset == ElementType::U64,
        keeps_words: caps.sub_group.backend == SubGroupBackend::Ptx
            && work_group.is_multiple_of(caps.sub_group.width as usize),
    })
}

/// Runs a segmented reduction. `empty` is the result for an empty segment.
pub(crate) fn reduce(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    inputs: [AnyInput<'_>; 2],
    output: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, inputs, [(output, false)], |[input, offsets], [out]| {
        if input.len() == 0 {
            return device.fill(out.mem(), out.byte_offset(), out.len() * empty.len(), empty);
        }
        run(device, form, empty, input, (offsets, None), out, scratch)
    })
}

/// `reduce` for segments that other kernels find, none of them empty. `found` holds the number of segments. Results
/// beyond the end of `output` are left out. `offsets` has room for one more offset, the end of the last segment.
pub(crate) fn reduce_found<U: Element>(
    device: &ClDevice,
    (source, element): (Code, ElementType),
    input: &ClInput,
    offsets: &ClInput,
    found: &ClInput,
    output: ClOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    let offset = if offsets.size() == 8 { ElementType::U64 } else { ElementType::U32 };
    let form = Form { counted: true, element, ..Form::by::<U, U>(source, offset) };
    if input.len() > 0 {
        run(device, &form, bytemuck::bytes_of(&U::ZERO), input, (offsets, Some(found)), &output, scratch)?;
    }
    output.finish(device)
}

/// Returns whether the tiles can find the runs of keys themselves.
pub fn finds_runs(device: &ClDevice, form: &Form, n: usize) -> Result<bool> {
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    Ok(caps.looks_back() && work_group(form, &caps) >= 32)
}

/// The keys, the outputs for the runs' keys and values, and the number of runs.
pub struct Runs<'r> {
    pub keys: &'r ClInput,
    pub keys_out: &'r ClInput,
    pub values_out: &'r ClInput,
    pub count: &'r ClInput,
}

/// `reduce` for the runs of equal keys, if [`finds_runs`] is true. There are as many keys as elements.
pub(crate) fn reduce_runs(
    device: &ClDevice,
    form: &Form,
    input: &ClInput,
    runs: &Runs<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    let n = input.len();
    if n == 0 {
        return device.fill(runs.count.mem(), runs.count.byte_offset(), 8, &[0; 8]);
    }
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    let aligned = input.aligned() && runs.keys.aligned();
    let plan = plan(n, runs.keys_out.len(), form, aligned, &caps, &|n| device.wide(n))?;
    let scratch = scratch.cl(device, plan.scratch_bytes)?;
    let bytes = TICKET_BYTES + 8 * plan.tiles;
    let kept = if plan.keeps_words { device.words(bytes)? } else { None };
    // Declared here, so that the pool does not reuse the buffer before all kernels are launched.
    let own;
    let (words, turn) = match &kept {
        Some((words, turn)) => (words, *turn),
        None => {
            own = device.pooled(bytes)?;
            device.fill(own.mem(), 0, bytes, &[0; 8])?;
            (own.mem(), 0)
        }
    };
    let tiles = device
        .launch(&plan.program, "segments_tiles")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(input.len() as u64, plan.wide_positions)
        .mem(runs.keys.mem())
        .scalar(runs.keys.offset() as u64)
        .mem(runs.keys_out.mem())
        .scalar(runs.keys_out.offset() as u64)
        .mem(runs.count.mem())
        .scalar(runs.count.offset() as u64)
        .mem(words)
        .offset(plan.tiles as u64, plan.wide)
        .scalar(SPINS)
        .scalar(turn);
    finish(device, &plan, tiles, (runs.values_out.len(), None), scratch, runs.values_out)
}

/// Adds the number of offsets, `segments + 1`, as an argument, and the buffer with the number of segments if `found` is
/// given.
fn with_count<'d>(launch: Launch<'d>, (segments, found): (usize, Option<&ClInput>), plan: &Plan) -> Launch<'d> {
    let launch = launch.offset(segments as u64 + 1, plan.wide);
    match found {
        Some(found) => launch.mem(found.mem()).scalar(found.offset() as u64),
        None => launch,
    }
}

fn run(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    input: &ClInput,
    (offsets, found): (&ClInput, Option<&ClInput>),
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, segments) = (input.len(), out.len());
    if segments == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    let plan = plan(n, segments, form, input.aligned(), &caps, &|n| device.wide(n))?;
    let scratch = scratch.cl(device, plan.scratch_bytes)?;
    let local = [plan.work_group, 1, 1];
    let (count, nodes) = ((segments, found), plan.nodes as u64);
    let kernels = ["segments_tiles", "segments_prepare", "segments_nodes"];
    device.build_ahead(&plan.program, &kernels[..if plan.levels.is_empty() { 2 } else { 3 }])?;
    let prepare = device.launch(&plan.program, "segments_prepare")?.mem(offsets.mem()).scalar(offsets.offset() as u64);
    let prepare = with_count(prepare, count, &plan)
        .offset(n as u64, plan.wide_positions)
        .offset(plan.tiles as u64, plan.wide)
        .mem(scratch)
        .scalar(nodes)
        .mem(out.mem())
        .scalar(out.offset() as u64);
    prepare.plain(empty).run([plan.prepare_groups, 1, 1], local)?;
    let tiles = device
        .launch(&plan.program, "segments_tiles")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(n as u64, plan.wide_positions)
        .mem(offsets.mem())
        .scalar(offsets.offset() as u64);
    // With one work-item per tile, `segments_prepare` writes the results of empty segments.
    let tiles = if plan.work_group == 1 { tiles } else { tiles.plain(empty) };
    finish(device, &plan, tiles, count, scratch, out)
}

/// Launches the tiles, after adding their last arguments. Then launches the levels that join the nodes.
fn finish(
    device: &ClDevice,
    plan: &Plan,
    tiles: Launch<'_>,
    count: (usize, Option<&ClInput>),
    scratch: &ClMem,
    out: &ClInput,
) -> Result<()> {
    let (local, nodes) = ([plan.work_group, 1, 1], plan.nodes as u64);
    with_count(tiles, count, plan)
        .mem(scratch)
        .scalar(nodes)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .scalar(u32::from(plan.levels.is_empty()))
        .run([plan.tiles, 1, 1], local)?;
    let mut from = 0;
    for level in &plan.levels {
        let joined = device
            .launch(&plan.program, "segments_nodes")?
            .mem(scratch)
            .scalar(nodes)
            .scalar(from as u64)
            .scalar(level.nodes as u64)
            .scalar((from + level.nodes) as u64);
        with_count(joined, count, plan)
            .mem(out.mem())
            .scalar(out.offset() as u64)
            .scalar(u32::from(level.groups == 1))
            .run([level.groups, 1, 1], local)?;
        from += level.nodes;
    }
    Ok(())
}

/// The index of the first offset that is beyond the next one or beyond `n`, if any. Waits for the device.
pub fn check(device: &ClDevice, offsets: &ClInput, form: &Form, n: usize) -> Result<Option<usize>> {
    // The kernel reports 32-bit indices, so a launch takes at most 2^31 offsets and the next one.
    check_by(device, offsets, form, n, 1 << 31)
}

/// [`check`] in launches over `part` offsets each, and the offset after them.
fn check_by(device: &ClDevice, offsets: &ClInput, form: &Form, n: usize, part: usize) -> Result<Option<usize>> {
    const NONE: u32 = u32::MAX;
    let caps = Tuned::from(device.capabilities()?);
    let (max_groups, work_group) = (tuning::reduce(&caps).max_groups, work_group(form, &caps));
    let wide = device.wide(offsets.len()) || device.wide(n);
    let program = program(form, true, &caps, wide);
    let bad = device.pooled(size_of::<u32>())?;
    device.fill(bad.mem(), 0, size_of::<u32>(), &NONE.to_ne_bytes())?;
    let unit = if work_group == 1 { 1024 } else { work_group };
    for start in (0..offsets.len()).step_by(part) {
        let count = (offsets.len() - start).min(part + 1);
        device
            .launch(&program, "segments_check")?
            .mem(offsets.mem())
            .scalar((offsets.offset() + start) as u64)
            .offset(count as u64, wide)
            .offset(n as u64, wide || form.offset == ElementType::U64)
            .mem(bad.mem())
            .run([count.div_ceil(unit).min(8 * max_groups), 1, 1], [work_group, 1, 1])?;
        let mut found = NONE;
        device.read(bad.mem(), 0, bytemuck::bytes_of_mut(&mut found))?;
        if found != NONE {
            return Ok(Some(start + found as usize));
        }
    }
    Ok(None)
}

/// Reads `out.len()` offsets from index `at` on.
pub fn read(device: &ClDevice, offsets: &ClInput, at: usize, wide: bool, out: &mut [u64]) -> Result<()> {
    let size = if wide { 8 } else { 4 };
    let start = offsets.byte_offset() + at * size;
    if wide {
        return device.read(offsets.mem(), start, bytemuck::cast_slice_mut(out));
    }
    let mut narrow = vec![0u32; out.len()];
    device.read(offsets.mem(), start, bytemuck::cast_slice_mut(&mut narrow))?;
    out.iter_mut().zip(narrow).for_each(|(out, x)| *out = x.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Input, op::Sum, runtime::Backend};

    #[test]
    fn levels_end_in_one_value() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 4096, 4097, 1 << 20, (1 << 32) + 5, 1 << 40, 1 << 48] {
                let form = Form::of::<f32, Sum>(ElementType::U32);
                let plan = plan(n, 10, &form, true, &caps, &|n| n >= 1 << 31).unwrap();
                assert_eq!(plan.levels.iter().map(|level| level.nodes).sum::<usize>(), plan.nodes, "{name}: {n}");
                assert_eq!(plan.levels.last().map_or(plan.tiles, |level| level.groups), 1, "{name}: {n}");
                assert!(plan.work_group.is_power_of_two(), "{name}");
            }
        }
    }

    #[test]
    fn work_groups_fit_the_local_memory() {
        for (name, caps) in Tuned::samples() {
            for form in [Form::of::<u8, Sum>(ElementType::U32), Form::of::<f32, Sum>(ElementType::U64)] {
                let whole = work_group(&form, &caps);
                for local_bytes in [8 << 10, 16 << 10] {
                    let items = work_group(&form, &caps.with(|facts| facts.local_bytes = local_bytes));
                    assert!(items * item_bytes(&form) <= local_bytes && items >= whole.min(16), "{name}: {items}");
                }
            }
        }
    }

    #[test]
    fn the_first_wrong_offset_is_found_wherever_it_is() {
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let mut offsets: Vec<u32> = (0..1000).collect();
            let form = Form::of::<f32, Sum>(ElementType::U32);
            let find = |offsets: &[u32], n| check_by(cl, &Input::from(offsets).cl(cl).unwrap(), &form, n, 100).unwrap();
            assert_eq!((find(&offsets, 999), find(&offsets, 998)), (None, Some(999)), "{info}");
            for wrong in [950, 700, 600, 599, 99, 0] {
                offsets[wrong] = 5000;
                assert_eq!(find(&offsets, 3000), Some(wrong), "{info}");
            }
        }
    }
}
