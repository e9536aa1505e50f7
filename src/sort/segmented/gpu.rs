//! Segmented sorts on OpenCL devices: the plan, then its launches.

use crate::{
    ElementType, Result, Scratch,
    keys::{Keys, Numbers},
    runtime::{
        ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    sort::gpu::{self, Form, Parts, Values, word},
    tuning::{self, Tuned},
};

const TEXT: &str = kernel_text!("sort_segments.cl");
/// Keys of a tile that one work-item sorts.
const CPU_TILE: usize = 1 << 14;
/// Minimum segments that a work-item reads if it is a whole work-group.
const CPU_SEGMENTS: usize = 1024;
/// Registers of a work-item for its keys and their indices: four work-groups of 256 must fit a multiprocessor.
const HELD_WORDS: usize = 28;
/// A work-group and its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    work_group: usize,
    /// Keys per work-item; odd, unless one work-item has the whole tile.
    items: usize,
}

impl Shape {
    const fn tile(self) -> usize {
        self.work_group * self.items
    }

    /// Keys in which the segments of a tile begin; the rest of the tile holds the end of the last segment.
    const fn window(self) -> usize {
        self.tile() * 4 / 5 / 32 * 32
    }

    fn local_bytes(self, form: Form) -> usize {
        let place = if form.value_bytes > 0 { 2 } else { 0 };
        let heads = 4 * (self.tile() / 32 + 3);
        (self.tile() + 1) * (form.key_bytes + place) + heads + 8 * self.work_group + tuning::RESERVED_BYTES
    }
}

/// The shape; `None` if local memory is too small for any shape.
fn shape(form: Form, caps: &Tuned) -> Option<Shape> {
    let params = tuning::sort(caps, form.key_bytes, form.value_bytes);
    if caps.class == DeviceClass::Cpu {
        return None;
    }
    let groups = (5..=params.work_group.max(1).ilog2()).rev().map(|bits| 1 << bits);
    let words = form.key_bytes.div_ceil(4) + usize::from(form.value_bytes > 0);
    let most = params.items.min(HELD_WORDS / words);
    let mut shapes = groups.flat_map(|work_group| [15, 11, 7, 3].map(|items| Shape { work_group, items }));
    shapes.find(|shape| {
        let fits = shape.tile() * form.key_bytes <= params.tile_bytes && shape.local_bytes(form) <= caps.local_bytes;
        fits && (shape.items <= most || shape.items == 3)
    })
}

/// The launches of a sort of the segments of n > 0 keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub tile: usize,
    pub window: usize,
    /// Maximum number of listed segments: those that fit a tile, but do not end within the tile of their window.
    pub listed: usize,
    /// Work-groups of the kernels that process lists.
    pub groups: usize,
    /// The plan for long segments; its regions describe all of scratch.
    pub long: gpu::Plan,
}

pub fn plan(n: usize, form: Form, offset: ElementType, caps: &Tuned, wide: bool) -> Plan {
    let found = shape(form, caps);
    let single = caps.with(|facts| facts.class = DeviceClass::Cpu);
    let caps_here = if found.is_some() { caps } else { &single };
    let shape = found.unwrap_or(Shape { work_group: 1, items: CPU_TILE });
    let (tile, window) = (shape.tile(), shape.window());
    let program = ProgramSpec::new("sort_segments.cl", TEXT, caps_here)
        .define("KEY", gpu::key_type(form.key_bytes))
        .define("KEY_BYTES", form.key_bytes)
        .flag("FLOAT_KEYS", form.numbers != Numbers::Bits)
        .flag("SOME_BITS", form.numbers == Numbers::BiasedRanks)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("S", offset.storage())
        .define("WG", shape.work_group)
        .define("ITEMS", shape.items)
        .define("WINDOW", window);
    let program = if caps_here.ptx { program.with(["-cl-nv-maxrregcount=64"]) } else { program };
    let program = match form.value_bytes {
        0 => program,
        bytes => program.define("VALUE", tuning::unit_type(bytes)).define("VALUE_BYTES", bytes),
    };
    // A segment that does not end within the tile of its window has at least this many keys.
    let listed = n / (tile - window + 1);
    let heads_bytes = 4 * ((n + tile) / 32 + 2);
    let listed_bytes = listed * if wide { 16 } else { 8 };
    let parts = Parts::Long { short: tile, merges: found.is_none() };
    Plan {
        program,
        work_group: shape.work_group,
        tile,
        window,
        listed,
        groups: 8 * caps.compute_units.max(1) as usize,
        long: gpu::plan_of(n, form, caps, wide, parts, [heads_bytes, listed_bytes]),
    }
}

/// Sorts the segments of `from` into `to`, if any, and the values with the keys.
pub(crate) fn run(
    device: &ClDevice,
    keys: &Keys,
    from: &ClInput,
    (offsets, offset): (&ClInput, ElementType),
    to: Option<&ClInput>,
    values: Option<Values<'_>>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, segments) = (from.len(), offsets.len() - 1);
    if n == 0 {
        return Ok(());
    }
    let value_bytes = values.map_or(0, |values| values.bytes);
    let (passes, wanted) = (keys.digits().len(), to.is_some());
    let form = Form { key_bytes: keys.bytes, value_bytes, passes, keys: wanted, numbers: keys.numbers() };
    let caps = gpu::capabilities(device, keys, from)?;
    let wide = device.wide(n) || device.wide(segments);
    let plan = plan(n, form, offset, &caps, wide);
    let (at, local, long) = (plan.long.scratch, [plan.work_group, 1, 1], plan.long.long.unwrap_or(0));
    let mem: &ClMem = scratch.cl(device, at.end)?;
    device.build_ahead(&plan.program, &["sort_segments_mark", "sort_segments_small"])?;
    device.fill(mem, at.header, at.listed - at.header, &[0; 4])?;
    let mark = device.launch(&plan.program, "sort_segments_mark")?.mem(offsets.mem()).scalar(offsets.offset() as u64);
    let mark = mark.offset(segments as u64, wide).offset(n as u64, wide).mem(mem).scalar(at.header as u64);
    let mark = mark.scalar(at.heads as u64).scalar(at.listed as u64).scalar(at.bounds as u64).scalar(at.parts as u64);
    let mark = mark.scalar(at.owners as u64).scalar(plan.listed as u32).scalar(long as u32);
    let mark = mark.scalar(plan.long.groups as u32).scalar((plan.long.tiles * plan.long.tile) as u32);
    let each = if plan.work_group == 1 { CPU_SEGMENTS } else { plan.work_group };
    mark.run([segments.div_ceil(each).clamp(1, plan.groups), 1, 1], local)?;
    let (out, out_offset) = gpu::keys_out(&plan.long, keys, to, mem);
    let small = |windows: usize, groups: usize| -> Result<()> {
        let launch = device.launch(&plan.program, "sort_segments_small")?.mem(from.mem()).scalar(from.offset() as u64);
        let launch = launch.mem(out).scalar(out_offset).mem(mem).scalar(at.spare as u64).scalar(at.header as u64);
        let launch = launch.scalar(at.heads as u64).scalar(at.listed as u64).offset(n as u64, wide);
        let launch = word(launch.scalar(windows as u32), keys.flip, keys.bytes);
        let launch = word(word(launch, keys.always, keys.bytes), keys.mask(), keys.bytes);
        gpu::with_values(launch, values, &plan.long, form).run([groups, 1, 1], local)
    };
    let windows = n.div_ceil(plan.window);
    small(windows, windows)?;
    // If no segment can be listed, no launch is needed.
    if plan.listed > 0 {
        small(0, plan.listed.min(plan.groups))?;
    }
    if long == 0 {
        return Ok(());
    }
    let owners = device.launch(&plan.program, "sort_segments_owners")?.mem(mem).scalar(at.header as u64);
    let owners = owners.scalar(at.parts as u64).scalar(at.owners as u64).scalar(long as u32);
    owners.run([long.min(plan.groups), 1, 1], local)?;
    gpu::passes(device, &plan.long, keys, form, (from, None), to, values, mem)
}

/// All programs that plans for `caps` use.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let mut programs = Vec::new();
    for (key_bytes, numbers) in gpu::KEY_KINDS {
        for value_bytes in [0].into_iter().chain(gpu::VALUE_SIZES) {
            for (wide, offset) in [(false, ElementType::U32), (false, ElementType::U64), (true, ElementType::U64)] {
                let form = Form { key_bytes, value_bytes, passes: key_bytes, keys: true, numbers };
                let plan = plan(1 << 28, form, offset, caps, wide);
                programs.extend([plan.program, plan.long.program]);
            }
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [caps.local_bytes, 0, 4096, 8192, 12_288] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for n in [1, 1000, 100_000, 1 << 28, 1 << 33] {
                    for (key_bytes, value_bytes) in [(1, 0), (4, 0), (8, 8), (16, 0), (16, 16)] {
                        let form = Form {
                            key_bytes,
                            value_bytes,
                            passes: key_bytes,
                            keys: n % 2 == 0,
                            numbers: Numbers::Bits,
                        };
                        let plan = plan(n, form, ElementType::U64, &caps, n >= 1 << 31);
                        let what = format!("{name}, {local_bytes} bytes, n = {n}, {form:?}: {plan:?}");
                        assert!(
                            plan.window.is_multiple_of(32) && plan.window >= 32 && plan.window < plan.tile,
                            "{what}"
                        );
                        match shape(form, &caps) {
                            Some(shape) => assert!(shape.local_bytes(form) <= local_bytes, "{what}"),
                            None => assert_eq!(plan.work_group, 1, "{what}"),
                        }
                        // A work-item keeps positions in a tile in 16 bits.
                        assert!(plan.work_group <= caps.max_work_group && plan.tile < 1 << 16, "{what}");
                        assert!(u32::try_from(n.div_ceil(plan.window)).is_ok(), "{what}");
                    }
                }
            }
        }
    }
}
