//! Sorts on OpenCL devices: the plan, then its launches.

use std::sync::Arc;

use crate::{
    ElementType, Result, Scratch,
    counted::{self, ClCount, Count, length, with_length},
    kept::COUNTERS_AT,
    keys::{Keys, Numbers, Pass, Place, route},
    lookback::SPINS,
    runtime::{
        AnyInput, AnyOutput, ClInput, DeviceClass, ProgramSpec, SubGroup, SubGroupBackend, apart,
        opencl::{ClDevice, ClMem, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("sort.cl");
const RADIX: usize = 256;
/// Minimum tiles per part of a long segment, if a work-group is one work-item.
const SEGMENT_TILES: usize = 16;
/// Work-groups per compute unit that sort long segments.
const SEGMENT_GROUPS: usize = 16;
/// Bytes of the atomic tile counters of a look-back sort, one counter per pass.
const TICKET_BYTES: usize = 64;
/// Bytes of the segment header.
pub const HEADER_BYTES: usize = 64;
/// Sizes of values that move with the keys; values of other sizes are gathered afterwards.
pub const VALUE_SIZES: [usize; 5] = [1, 2, 4, 8, 16];

/// A sort without its size: types, passes and outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    pub key_bytes: usize,
    /// 0 without values.
    pub value_bytes: usize,
    pub passes: usize,
    /// True if the sorted keys are an output.
    pub keys: bool,
    /// The kind of the keys' numbers.
    pub numbers: Numbers,
}

/// The keys that a plan sorts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parts {
    All,
    /// Segments of more than `short` keys, each sorted alone. `merges` is true if a merge sort, which also needs the
    /// spare memory, takes the shorter segments.
    Long {
        short: usize,
        merges: bool,
    },
}

/// The launches of a sort of n > 0 keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub offsets_work_group: usize,
    /// Parts of the keys, and the work-groups that are launched for them.
    pub groups: usize,
    pub launched: usize,
    /// Tiles per part.
    pub tiles: usize,
    pub tile: usize,
    pub wide: bool,
    /// Maximum number of long segments, if the plan sorts long segments.
    pub long: Option<usize>,
    /// True if a tile takes its exclusive prefix of the digit counts from earlier tiles (decoupled look-back).
    pub look_back: bool,
    /// Work-groups that count the digits of all passes, with look-back.
    pub counting: usize,
    pub scratch: Regions,
}

/// Byte offsets of the regions in scratch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regions {
    /// `spare`: keys between passes. `unwanted`: sorted keys that are not an output.
    pub spare: usize,
    pub unwanted: usize,
    pub values: usize,
    pub table: usize,
    pub totals: usize,
    /// Counter of the last-block reduction and digit counts, if the queue has none of its own.
    pub ended: usize,
    pub seen: usize,
    pub codes: usize,
    /// Regions of the segments, if there are any, as in `cl/lib/segments.cl`.
    pub header: usize,
    pub heads: usize,
    pub listed: usize,
    pub bounds: usize,
    pub parts: usize,
    pub owners: usize,
    pub end: usize,
}

/// A work-group, its keys per tile, and how its lanes communicate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    work_group: usize,
    items: usize,
    sub_group: SubGroup,
    /// Minimum lanes of a sub-group.
    lanes: usize,
    replicas: usize,
    /// Bytes of a value that reaches local memory by asynchronous copy; 0 if values pass through registers.
    aside: usize,
}

impl Shape {
    /// Bytes of local memory of the kernel that needs the most, for elements of up to `size` bytes.
    fn local_bytes(&self, size: usize, offset: usize) -> usize {
        let rows = self.work_group.div_ceil(self.lanes);
        let counter = match self.sub_group.backend {
            SubGroupBackend::Local => 8,
            _ if self.lanes < 32 => 2,
            _ => 4,
        };
        let tile = self.work_group * self.items;
        let pool = (rows * RADIX * counter).max(tile * size) + tile * self.aside;
        let exchange = if self.sub_group.backend == SubGroupBackend::Local { 4 * self.work_group } else { 4 };
        let scatter = pool + (RADIX + 16) * offset + 4 * rows + exchange;
        let counts = 4 * (RADIX * self.replicas + 8);
        scatter.max(counts).max(if size > 8 { 32 } else { 16 } * self.work_group) + tuning::RESERVED_BYTES
    }
}

/// The way in which lanes communicate, and the minimum lanes of a sub-group. Lanes use ballots in sub-groups of at most
/// 64 lanes, otherwise local memory.
fn sub_group(work_group: usize, caps: &Tuned) -> (SubGroup, usize) {
    let (found, local) = (caps.sub_group, work_group.min(32));
    let width = found.width as usize;
    // The self-test measured the width in work-groups of 256.
    if !found.backend.is_hardware() || !found.ballot || !(8..=64).contains(&width) || work_group != 256 {
        return (SubGroup { backend: SubGroupBackend::Local, width: local as u32, ballot: true }, local);
    }
    // A compiler may choose another width for another kernel.
    let fixed = matches!(found.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    (found, if fixed { width.min(32) } else { 8 })
}

/// The shape for `n` elements; `None` if local memory is too small for any shape.
fn shape(n: usize, form: Form, offset: usize, caps: &Tuned) -> Option<Shape> {
    let params = tuning::sort(caps, form.key_bytes, form.value_bytes);
    let size = form.key_bytes.max(form.value_bytes);
    if caps.class == DeviceClass::Cpu {
        return None;
    }
    // An asynchronous copy needs local memory for a second tile.
    let copies = caps.ptx && caps.compute_capability >= 80 && caps.local_bytes > 3 * params.tile_bytes;
    let aside = if copies && form.value_bytes >= 4 { form.value_bytes } else { 0 };
    // For few keys, smaller tiles keep all compute units busy.
    let mut most = params.items;
    while most >= 16 && n.div_ceil(params.work_group * most) < 2 * caps.compute_units as usize {
        most /= 2;
    }
    let groups = (5..=params.work_group.max(1).ilog2()).rev().map(|bits| 1 << bits);
    let mut shapes = groups.flat_map(|work_group| {
        let (sub_group, lanes) = sub_group(work_group, caps);
        let replicas = (work_group / 32).max(1);
        let items = std::iter::once(most).chain((0..most.next_power_of_two().ilog2()).rev().map(|bits| 1 << bits));
        items.map(move |items| Shape { work_group, items, sub_group, lanes, replicas, aside })
    });
    let fits = |shape: &Shape| {
        let tile = shape.work_group * shape.items * size;
        tile <= params.tile_bytes && shape.local_bytes(size, offset) <= caps.local_bytes
    };
    shapes.find(|shape| shape.items >= most.min(4) && fits(shape))
}

/// The OpenCL C type of a key of `bytes` bytes.
pub fn key_type(bytes: usize) -> &'static str {
    if bytes == 16 { "ulong2" } else { tuning::unit_type(bytes) }
}

impl Plan {
    /// The same plan, if `count` is the type of a count in memory that is the number of keys.
    fn by_count(self, count: Option<ElementType>) -> Self {
        Self { program: with_length(self.program, count), ..self }
    }
}

pub fn plan(n: usize, form: Form, caps: &Tuned, wide: bool) -> Plan {
    plan_of(n, form, caps, wide, Parts::All, [0; 2])
}

/// The plan for all keys, or for long segments. Scratch has `heads_bytes` for segment-head flags and `listed_bytes` for
/// listed segments.
pub fn plan_of(
    n: usize,
    form: Form,
    caps: &Tuned,
    wide: bool,
    parts: Parts,
    [heads_bytes, listed_bytes]: [usize; 2],
) -> Plan {
    let offset = if wide { 8 } else { 4 };
    let shape = shape(n, form, offset, caps);
    // Without enough local memory, a work-group is one work-item.
    let single = caps.with(|facts| facts.class = DeviceClass::Cpu);
    let params = tuning::sort(if shape.is_some() { caps } else { &single }, form.key_bytes, form.value_bytes);
    let (program, work_group, offsets_work_group, tile) = match shape {
        Some(Shape { work_group, items, sub_group, lanes, replicas, aside }) => {
            let program = ProgramSpec::with_sub_group("sort.cl", TEXT, caps, &sub_group);
            let program = program.define("MIN_LANES", lanes).define("REPLICAS", replicas);
            let program = program.define("WG", work_group).define("ITEMS", items).flag("VALUES_ASIDE", aside > 0);
            let registers = caps.ptx.then(|| format!("-cl-nv-maxrregcount={}", params.registers));
            let program = program.with(registers);
            (program, work_group, params.offsets_work_group.min(work_group), work_group * items)
        }
        None => {
            let program = ProgramSpec::new("sort.cl", TEXT, &single);
            (program.define("WG", 1).define("ITEMS", params.items), 1, 1, params.items)
        }
    };
    let program = program
        .with(caps.fault())
        .define("KEY", key_type(form.key_bytes))
        .define("KEY_BYTES", form.key_bytes)
        .flag("FLOAT_KEYS", form.numbers != Numbers::Bits)
        .flag("SOME_BITS", form.numbers == Numbers::BiasedRanks)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("OFFSETS_WG", offsets_work_group);
    let program = match form.value_bytes {
        0 => program,
        bytes => program.define("VALUE", tuning::unit_type(bytes)).define("VALUE_BYTES", bytes),
    };
    // With look-back, one kernel counts the digits of all passes, with as many replicas of the counters as fit.
    let counters = 4 * RADIX * form.key_bytes;
    let spread = shape.map_or(0, |_| {
        (caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + 2304) / counters).min(16 / form.key_bytes)
    });
    // With small tiles, the status words would take more memory than the keys.
    let look_back = parts == Parts::All && spread > 0 && params.look_back && (tile >= 4 * RADIX || caps.checker);
    let look_bytes = if n < 1 << 30 && !wide { 4 } else { 8 };
    let program = if look_back {
        let program =
            program.flag("LOOK_BACK", true).define("LOOK_BYTES", look_bytes).define("COUNTERS_AT", COUNTERS_AT);
        program.define("SPREAD", 1 << spread.ilog2()).define("OFFSET_BYTES", offset)
    } else {
        program
    };
    let program = program.flag("SEGMENTS", parts != Parts::All);
    let all = n.div_ceil(tile);
    let (long, merges) = match parts {
        Parts::All => (None, false),
        Parts::Long { short, merges } => (Some(n / (short + 1)), merges),
    };
    // If a work-group is one work-item, its part must have enough keys to be worth a table of counts.
    let least = if long.is_some() && work_group == 1 { SEGMENT_TILES } else { 1 };
    let tiles = if look_back { 1 } else { all.div_ceil(params.max_groups).max(least) };
    let groups = all.div_ceil(tiles) + long.unwrap_or(0);

    let mut end = 0;
    let mut region = |bytes: usize| {
        let start = end;
        end += bytes.next_multiple_of(16);
        start
    };
    let several = if form.passes > 1 || merges { n } else { 0 };
    let segments = |bytes| if long.is_some() { bytes } else { 0 };
    let mut scratch = Regions {
        spare: region(several * form.key_bytes),
        unwanted: region(if form.keys { 0 } else { several * form.key_bytes }),
        values: region(several * form.value_bytes),
        table: region(if look_back { TICKET_BYTES + RADIX * groups * look_bytes } else { RADIX * groups * offset }),
        totals: region(RADIX * offset * if look_back { form.passes } else { long.unwrap_or(1) }),
        ended: region(if look_back { COUNTERS_AT + RADIX * offset * form.passes } else { 0 }),
        seen: region(if look_back { 0 } else { 2 * groups * form.key_bytes.max(8) }),
        codes: region(4 * form.passes),
        header: region(segments(HEADER_BYTES)),
        heads: region(heads_bytes),
        listed: region(listed_bytes),
        bounds: region(2 * offset * long.unwrap_or(0)),
        parts: region(8 * long.unwrap_or(0)),
        owners: region(segments(4 * groups)),
        end: 0,
    };
    scratch.end = end;
    // Only the device knows the number of tiles of long segments, which is mostly small.
    let most = if long.is_some() { SEGMENT_GROUPS * caps.compute_units.max(1) as usize } else { groups };
    let launched = groups.min(most);
    let counting = n.div_ceil(16 * work_group).min(16 * caps.compute_units.max(1) as usize);
    Plan {
        program,
        work_group,
        offsets_work_group,
        groups,
        launched,
        tiles,
        tile,
        wide,
        long,
        look_back,
        counting,
        scratch,
    }
}

/// The values that move with the keys.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    pub bytes: usize,
    /// `None`: the values are the indices of the keys.
    pub from: Option<&'a ClInput>,
    pub to: &'a ClInput,
}

/// Codes as in `cl/lib/radix.cl`.
const ACTIVE: u32 = 16;
const LAST: u32 = 32;

fn code(pass: Pass) -> u32 {
    let place = |place| match place {
        Place::In => 0,
        Place::Out => 1,
        Place::Spare => 2,
    };
    place(pass.from) | place(pass.to) << 2 | ACTIVE | if pass.last { LAST } else { 0 }
}

/// Adds an argument of the kernels' type `WORD`, for keys of `bytes` bytes.
pub fn word(launch: Launch<'_>, value: impl Into<u128>, bytes: usize) -> Launch<'_> {
    let value: u128 = value.into();
    match bytes {
        16 => launch.plain(&value.to_ne_bytes()),
        8 => launch.scalar(value as u64),
        _ => launch.scalar(value as u32),
    }
}

/// The device's capabilities, with the tuned parameters for these keys.
pub(crate) fn capabilities(device: &ClDevice, keys: &Keys, from: &ClInput) -> Result<Arc<Tuned>> {
    device.capabilities_for(Primitive::Sort, keys.bytes, from.len())
}

/// Sorts all keys, or with a count the first ones.
pub(crate) fn sort(
    device: &ClDevice,
    keys: &Keys,
    (from, count): (AnyInput<'_>, Option<Count<'_>>),
    to: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (from, to) = (from.cl(device)?, to.cl(device, count.is_some())?);
    apart(&[&from], &[&to])?;
    let count = counted::on_device(device, count, &[&to])?;
    let caps = capabilities(device, keys, &from)?;
    run(device, &caps, keys, (&from, count.as_ref()), Some(&to), None, scratch)?;
    to.finish(device)
}

/// Writes the indices of sorted keys, in elements of `bytes` bytes.
pub(crate) fn argsort(
    device: &ClDevice,
    keys: &Keys,
    (from, count): (AnyInput<'_>, Option<Count<'_>>),
    (to, bytes): (AnyOutput<'_>, usize),
    scratch: &mut Scratch,
) -> Result<()> {
    let (from, to) = (from.cl(device)?, to.cl(device, count.is_some())?);
    apart(&[&from], &[&to])?;
    let count = counted::on_device(device, count, &[&to])?;
    let caps = capabilities(device, keys, &from)?;
    let with = Values { bytes, from: None, to: &to };
    run(device, &caps, keys, (&from, count.as_ref()), None, Some(with), scratch)?;
    to.finish(device)
}

/// Sorts `from` into `to`, if there is one, and the values with the keys, by the plan for `caps`. With a count, sorts
/// the first keys; elements of outputs from the count on do not change.
pub(crate) fn run(
    device: &ClDevice,
    caps: &Tuned,
    keys: &Keys,
    (from, count): (&ClInput, Option<&ClCount>),
    to: Option<&ClInput>,
    values: Option<Values<'_>>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, digits) = (from.len(), keys.digits());
    if n == 0 {
        return Ok(());
    }
    let value_bytes = values.map_or(0, |values| values.bytes);
    let form =
        Form { key_bytes: keys.bytes, value_bytes, passes: digits.len(), keys: to.is_some(), numbers: keys.numbers() };
    let plan = plan(n, form, caps, device.wide(n)).by_count(count.map(ClCount::element));
    let mem: &ClMem = scratch.cl(device, plan.scratch.end)?;
    passes(device, &plan, keys, form, (from, count), to, values, mem)
}

/// Memory and offset of the sorted keys: the output, or scratch if they are not an output.
pub(crate) fn keys_out<'a>(plan: &Plan, keys: &Keys, to: Option<&'a ClInput>, mem: &'a ClMem) -> (&'a ClMem, u64) {
    let (mem, offset) = to.map_or((mem, plan.scratch.unwanted / keys.bytes), |to| (to.mem(), to.offset()));
    (mem, offset as u64)
}

/// Adds the kernel arguments for the values.
pub fn with_values<'d>(launch: Launch<'d>, values: Option<Values<'_>>, plan: &Plan, form: Form) -> Launch<'d> {
    let Some(Values { from, to, .. }) = values else { return launch };
    let mode = u32::from(from.is_none()) | if form.keys { 0 } else { 2 };
    let from = from.unwrap_or(to);
    let launch = launch.mem(from.mem()).scalar(from.offset() as u64).mem(to.mem());
    launch.scalar(to.offset() as u64).scalar(plan.scratch.values as u64).scalar(mode)
}

/// Adds the last arguments of kernels that sort long segments.
fn with_segments<'d>(launch: Launch<'d>, plan: &Plan) -> Launch<'d> {
    let (Some(long), at) = (plan.long, plan.scratch) else { return launch };
    let launch = launch.scalar(at.header as u64).scalar(at.bounds as u64).scalar(at.parts as u64);
    launch.scalar(at.owners as u64).scalar(long as u32)
}

/// Enqueues the launches of a plan, with scratch in `mem`.
#[allow(clippy::too_many_arguments, reason = "two callers")]
pub(crate) fn passes(
    device: &ClDevice,
    plan: &Plan,
    keys: &Keys,
    form: Form,
    (from, count): (&ClInput, Option<&ClCount>),
    to: Option<&ClInput>,
    values: Option<Values<'_>>,
    mem: &ClMem,
) -> Result<()> {
    let (n, digits) = (from.len(), keys.digits());
    let (at, local) = (plan.scratch, [plan.work_group, 1, 1]);
    let (out, out_offset) = keys_out(plan, keys, to, mem);
    let (groups, several) = ([plan.launched, 1, 1], digits.len() > 1);
    if plan.look_back {
        device.build_ahead(&plan.program, &["sort_histograms", "sort_scatter"])?;
        let ended = device.ended()?;
        if ended.is_none() {
            device.fill(mem, at.ended, at.seen - at.ended, &[0; 8])?;
        }
        let (ended, ended_at) = ended.as_ref().map_or((mem, at.ended), |ended| (ended, 0));
        let launch = device.launch(&plan.program, "sort_histograms")?.mem(from.mem()).scalar(from.offset() as u64);
        let launch = launch.mem(mem).scalar(at.table as u64).scalar(at.totals as u64).scalar(at.codes as u64);
        let launch = length(launch.mem(ended).scalar(ended_at as u64), n, plan.wide, count, 0);
        let launch = launch.scalar(plan.groups as u32).scalar(keys.bits.start).scalar(keys.bits.end);
        word(word(launch, keys.flip, keys.bytes), keys.always, keys.bytes).run([plan.counting, 1, 1], local)?;
    }
    for (p, (digit, pass)) in digits.iter().zip(route(digits.len())).enumerate() {
        // With several passes, the device decides which passes run, after the first pass has counted.
        let given = if several { 0 } else { code(pass) };
        let counts = if p == 0 { code(pass) } else { given };
        // Both kernels have the same arguments, except for the offset of one region.
        let of_keys = |kernel, region: usize, given: u32| -> Result<_> {
            let launch = device.launch(&plan.program, kernel)?.mem(from.mem()).scalar(from.offset() as u64).mem(out);
            let launch = launch.scalar(out_offset).mem(mem).scalar(at.spare as u64).scalar(at.table as u64);
            let launch = length(launch.scalar(region as u64).scalar(at.codes as u64), n, plan.wide, count, 0);
            let launch = launch.scalar(plan.tiles as u32).scalar(given).scalar(p as u32);
            let launch = word(launch.scalar(digit.shift).scalar(digit.mask), keys.flip, keys.bytes);
            Ok(word(launch, keys.always, keys.bytes))
        };
        if !plan.look_back {
            with_segments(of_keys("sort_counts", at.seen, counts)?, plan).run(groups, local)?;
            if several && p == 0 {
                let launch = device.launch(&plan.program, "sort_passes")?.mem(mem).scalar(at.seen as u64);
                let launch = launch.scalar(at.codes as u64).scalar(plan.groups as u32);
                with_segments(launch.scalar(keys.bits.start).scalar(keys.bits.end), plan).run([1, 1, 1], local)?;
            }
            let launch = device.launch(&plan.program, "sort_offsets")?.mem(mem).scalar(at.table as u64);
            let launch = launch.scalar(at.totals as u64).scalar(at.codes as u64).scalar(plan.groups as u32);
            let launch = with_segments(launch.scalar(given).scalar(p as u32), plan);
            launch.run([RADIX, 1, 1], [plan.offsets_work_group, 1, 1])?;
        }
        let launch = with_values(of_keys("sort_scatter", at.totals, given)?, values, plan, form);
        let launch = with_segments(launch, plan);
        let launch = if plan.look_back { launch.scalar(SPINS) } else { launch };
        launch.run(groups, local)?;
    }
    Ok(())
}

/// Size of each key type in bytes, and the kind of its keys' numbers.
pub(super) const KEY_KINDS: [(usize, Numbers); 11] = [
    (1, Numbers::Bits),
    (2, Numbers::Bits),
    (4, Numbers::Bits),
    (8, Numbers::Bits),
    (16, Numbers::Bits),
    (2, Numbers::Ranks),
    (4, Numbers::Ranks),
    (8, Numbers::Ranks),
    (2, Numbers::BiasedRanks),
    (4, Numbers::BiasedRanks),
    (8, Numbers::BiasedRanks),
];

/// All programs that plans for `caps` use.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let mut programs = Vec::new();
    for (key_bytes, numbers) in KEY_KINDS {
        for value_bytes in [0].into_iter().chain(VALUE_SIZES) {
            for wide in [false, true] {
                let form = Form { key_bytes, value_bytes, passes: key_bytes, keys: true, numbers };
                // Few keys have smaller tiles; many keys have larger status words.
                let waiting = caps.with(|facts| facts.forward_progress = false);
                programs.extend([1 << 16, 1 << 28, 1 << 31].map(|n| plan(n, form, caps, wide).program));
                programs.extend([1 << 16, 1 << 28].map(|n| plan(n, form, &waiting, wide).program));
                if key_bytes == 4 {
                    let count = Some(if wide { ElementType::U64 } else { ElementType::U32 });
                    programs
                        .extend([caps, &waiting].map(|caps| plan(1 << 28, form, caps, wide).by_count(count).program));
                }
            }
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Input, Order, Output, Tuning, internals::data::Data, runtime::Backend};

    /// Case 1: many groups, whose counts are scanned in several rounds. Case 2: few groups with many tiles each.
    #[test]
    fn groups_of_few_items_sort_many_keys() {
        const N: usize = 300_007;
        let x: Vec<u32> = Data::Bits.generate(N, 3);
        let mut want: Vec<(u32, u32)> = x.iter().copied().zip(0..).collect();
        want.sort();
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let device = device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let caps = cl.capabilities().unwrap();
            for compute_units in [1000, 1] {
                let caps = Tuned::from(caps.clone())
                    .with(|facts| (facts.max_work_group, facts.compute_units) = (32, compute_units))
                    .choosing("max_groups", 8 * compute_units as usize)
                    .choosing("look_back", 0);
                let form = Form { key_bytes: 4, value_bytes: 4, passes: 4, keys: true, numbers: Numbers::Bits };
                let plan = plan(N, form, &caps, false);
                let (rounds, tiles) = (plan.groups.div_ceil(16 * plan.offsets_work_group), plan.tiles);
                assert!(if compute_units == 1 { tiles > 9 } else { rounds > 1 }, "{info}: {plan:?}");
                let (buffer, mut keys, mut places) =
                    (device.upload(&x).unwrap(), device.zeroed::<u32>(N).unwrap(), device.zeroed::<u32>(N).unwrap());
                let of = Keys::of(ElementType::U32, &Order::ascending()).unwrap();
                let (from, to) = (Input::from(&buffer).cl(cl).unwrap(), Output::from(&mut keys).cl(cl, false).unwrap());
                let numbers = Output::from(&mut places).cl(cl, false).unwrap();
                let values = Values { bytes: 4, from: None, to: &numbers };
                run(cl, &caps, &of, (&from, None), Some(&to), Some(values), &mut Scratch::new()).unwrap();
                to.finish(cl).unwrap();
                numbers.finish(cl).unwrap();
                let got: Vec<_> = keys.to_vec().unwrap().into_iter().zip(places.to_vec().unwrap()).collect();
                assert!(got == want, "{info}: {compute_units} compute units");
            }
        }
    }

    #[test]
    fn an_empty_bit_range_keeps_the_order_with_any_scratch() {
        const N: usize = 5003;
        let x: Vec<u32> = Data::Bits.generate(N, 4);
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let device = device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            for bit in [0, 8, 32] {
                let keys = Keys::of(ElementType::U32, &Order::ascending().bits(bit..bit)).unwrap();
                let form = Form { key_bytes: 4, value_bytes: 0, passes: 1, keys: true, numbers: Numbers::Bits };
                let plan = plan(N, form, &cl.capabilities().unwrap().into(), false);
                let (buffer, mut sorted) = (device.upload(&x).unwrap(), device.zeroed::<u32>(N).unwrap());
                let from = Input::from(&buffer).cl(cl).unwrap();
                let to = Output::from(&mut sorted).cl(cl, false).unwrap();
                let mut scratch = Scratch::new();
                let mem = scratch.cl(cl, plan.scratch.end).unwrap();
                cl.fill(mem, 0, plan.scratch.end, &[0x3f; 4]).unwrap();
                passes(cl, &plan, &keys, form, (&from, None), Some(&to), None, mem).unwrap();
                to.finish(cl).unwrap();
                assert!(sorted.to_vec().unwrap() == x, "{info}: bits {bit}..{bit}");
            }
        }
    }

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [caps.local_bytes, 0, 4096, 8192, 12_288] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for n in [1, 1000, 4096, 4097, 1 << 20, (1 << 28) + 1, 1 << 33, 1 << 40, 1 << 48] {
                    for (key_bytes, value_bytes) in [(1, 0), (4, 0), (8, 0), (4, 4), (1, 16), (8, 16), (16, 4)] {
                        let form = Form {
                            key_bytes,
                            value_bytes,
                            passes: key_bytes,
                            keys: n % 2 == 0,
                            numbers: Numbers::Bits,
                        };
                        let wide = n >= 1 << 31;
                        let plan = plan(n, form, &caps, wide);
                        let what = format!("{name}, {local_bytes} bytes, n = {n}, {form:?}: {plan:?}");
                        assert!(plan.groups * plan.tiles * plan.tile >= n, "{what}");
                        assert!((plan.groups - 1) * plan.tiles * plan.tile < n, "{what}");
                        assert!(plan.work_group <= caps.max_work_group && plan.tile < 1 << 16, "{what}");
                        let size = key_bytes.max(value_bytes);
                        if let Some(shape) = shape(n, form, if wide { 8 } else { 4 }, &caps) {
                            assert!(shape.local_bytes(size, 4) <= local_bytes, "{what}");
                            assert!(shape.lanes <= shape.work_group, "{what}");
                        } else {
                            assert_eq!(plan.work_group, 1, "{what}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn gpus_rank_with_their_own_sub_groups() {
        for (name, caps) in Tuned::samples() {
            let form = Form { key_bytes: 4, value_bytes: 0, passes: 4, keys: true, numbers: Numbers::Bits };
            let shape = shape(1 << 28, form, 4, &caps);
            let backend = shape.map_or(SubGroupBackend::None, |shape| shape.sub_group.backend);
            assert_eq!(backend, caps.sub_group.backend, "{name}: {shape:?}");
            assert!(shape.is_none_or(|shape| shape.items >= 8), "{name}: {shape:?}");
        }
    }
}
