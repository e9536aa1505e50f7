//! Histograms on OpenCL devices: the plan, then its launches.

use super::{
    Accumulate, Bins, Counter,
    bins::{Map, OUTSIDE},
};
use crate::{
    Element, ElementType, Output, Result, Scratch,
    runtime::{
        Capabilities, ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, Launch},
    },
    tuning,
};

const TEXT: &str = include_str!("../../cl/histogram.cl");
/// Samples of one launch: what 32-bit counters and indices of `cl/histogram.cl` hold.
const ROUND: usize = 1 << 31;

/// What a histogram is of: everything but its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) element: ElementType,
    pub(crate) bins: usize,
    /// `MAP` of `cl/histogram.cl`.
    pub(crate) map: u32,
}

impl Form {
    pub(crate) fn of<T: Element>(bins: &Bins<T>) -> Self {
        let map = match bins.map() {
            Map::Ids => 0,
            Map::Integers(_) => 1,
            Map::F32(_) | Map::F64(_) => 2,
        };
        Self { element: T::TYPE, bins: bins.len(), map }
    }
}

/// Where work-groups count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tables {
    /// In local memory: `ranges` ranges of `range` slots, in `1 << replica_bits` replicas.
    Local { range: usize, ranges: usize, replica_bits: u32 },
    /// In global memory.
    Global,
}

/// The launches of one round of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) form: Form,
    pub(crate) counter: ElementType,
    pub(crate) count: ProgramSpec,
    pub(crate) merge: ProgramSpec,
    pub(crate) tables: Tables,
    /// Groups that share the input, and the tables that they count in.
    pub(crate) groups: usize,
    pub(crate) table_count: usize,
    pub(crate) work_group: usize,
    pub(crate) merge_work_group: usize,
    pub(crate) merge_groups: usize,
    /// Slots that a merging group sums at a time, and all its slots.
    pub(crate) merge_column_bits: u32,
    pub(crate) merge_slots: usize,
    /// The most samples of a round.
    pub(crate) round: usize,
    pub(crate) scratch_bytes: usize,
}

/// Few sizes of local memory, so that few programs are built: four steps for each power of two, from 8 KiB on.
fn round_up_words(words: usize, limit: usize) -> usize {
    let step = (words.next_power_of_two() / 8).max(2048);
    words.next_multiple_of(step).min(limit)
}

/// Local memory that is not for tables: the kernel's scratch, and what its compiler adds.
const RESERVED_BYTES: usize = 64;

pub(crate) fn plan(n: usize, form: Form, counter: ElementType, caps: &Capabilities, round: usize) -> Result<Plan> {
    caps.supports(form.element)?;
    let params = tuning::histogram(caps);
    let caps = &caps.without_sub_groups();
    let slots = form.bins + OUTSIDE;
    let samples = n.min(round);
    let local_words = caps.local_bytes.saturating_sub(RESERVED_BYTES) / 4;
    let worthwhile = (samples * form.element.size()).div_ceil(params.min_bytes).max(1);
    let most = params.max_groups.min(worthwhile);
    let room = |bytes: usize| (bytes / (4 * slots)).max(1);

    let count = ProgramSpec::new("histogram.cl", TEXT, caps).with(form.element.options("T")).define("MAP", form.map);
    let count = count.with(accumulator(form.element).options("A"));
    // Without local memory no number of ranges is enough.
    let ranges = if local_words == 0 { usize::MAX } else { slots.div_ceil(local_words) };
    let (count, tables, groups, table_count, work_group) = if ranges <= params.max_ranges {
        let range = slots.div_ceil(ranges);
        let budget = params.replica_bytes.min(4 * local_words) / 4;
        let replicas = (budget / range).clamp(1, params.max_replicas);
        let replica_bits = replicas.ilog2();
        let words = range << replica_bits;
        let large = 4 * words > caps.local_bytes / 2;
        let work_group = if large { params.large_work_group } else { params.work_group };
        let groups = most.min(room(params.table_bytes));
        let count = count
            .define("WG", work_group)
            .define("LOCAL_WORDS", round_up_words(words, local_words))
            .flag("RANGES", ranges > 1);
        (count, Tables::Local { range, ranges, replica_bits }, groups, groups, work_group)
    } else {
        // More than one table only where adding them up costs less than the samples do.
        let table_count = most.min(room(params.global_bytes)).min((samples / slots).max(1));
        let private = caps.class == DeviceClass::Cpu && table_count == most;
        let count = count.define("WG", params.work_group).flag("GLOBAL_TABLES", true).flag("PRIVATE", private);
        (count, Tables::Global, most, table_count, params.work_group)
    };

    let merge_work_group = params.work_group;
    // Many tables are shared by rows of 32 items or more.
    let merge_row_bits = table_count.min(merge_work_group / 32).max(1).ilog2();
    let merge_column_bits = merge_work_group.ilog2() - merge_row_bits;
    let merge_slots = slots.div_ceil(8 * params.max_groups).max(if merge_work_group == 1 { 1024 } else { 1 });
    let merge_slots = merge_slots.next_multiple_of(1 << merge_column_bits);
    let merge = ProgramSpec::new("histogram.cl", TEXT, caps)
        .flag("MERGE", true)
        .define("WG", merge_work_group)
        .define("C", if counter == ElementType::U64 { "ulong" } else { "uint" });
    Ok(Plan {
        form,
        counter,
        count,
        merge,
        tables,
        groups,
        table_count,
        work_group,
        merge_work_group,
        merge_groups: slots.div_ceil(merge_slots),
        merge_column_bits,
        merge_slots,
        round,
        scratch_bytes: 4 * slots * table_count,
    })
}

fn accumulator(element: ElementType) -> ElementType {
    match element {
        ElementType::F16 | ElementType::Bf16 => ElementType::F32,
        other => other,
    }
}

/// Samples of one launch on a device: few where tests ask for the paths of large inputs.
fn round(device: &ClDevice) -> usize {
    if device.tuning().wide(0) { 1 << 12 } else { ROUND }
}

pub(super) fn scratch_bytes<T: Element>(device: &ClDevice, n: usize, bins: &Bins<T>) -> Result<usize> {
    let caps = device.capabilities()?;
    Ok(plan(n, Form::of(bins), ElementType::U64, &caps, round(device))?.scratch_bytes)
}

/// The arguments of `MAP_PARAMS`.
fn map_arguments<'d>(launch: Launch<'d>, map: &Map) -> Launch<'d> {
    match *map {
        Map::Ids => launch,
        Map::Integers(steps) => launch
            .scalar(steps.lower as u64)
            .scalar(steps.extent)
            .scalar(steps.reciprocal)
            .scalar(steps.shift)
            .scalar(u32::from(steps.closed)),
        Map::F32(edges) => launch
            .scalar(edges.lower)
            .scalar(edges.upper)
            .scalar(edges.width)
            .scalar(edges.scale)
            .scalar(edges.slack)
            .scalar(u32::from(edges.closed)),
        Map::F64(edges) => launch
            .scalar(edges.lower)
            .scalar(edges.upper)
            .scalar(edges.width)
            .scalar(edges.scale)
            .scalar(edges.slack)
            .scalar(u32::from(edges.closed)),
    }
}

pub(super) fn histogram<T: Element, C: Counter>(
    device: &ClDevice,
    input: ClInput,
    bins: &Bins<T>,
    counts: Output<'_, C>,
    outside: Output<'_, u64>,
    accumulate: Accumulate,
    scratch: &mut Scratch,
) -> Result<()> {
    let caps = device.capabilities()?;
    let plan = plan(input.len(), Form::of(bins), C::TYPE, &caps, round(device))?;
    let keep = accumulate == Accumulate::Add;
    let (counts, outside) = (counts.cl(device, keep)?, outside.cl(device, keep)?);
    run(device, &plan, &input, bins.map(), &counts, &outside, keep, scratch)?;
    counts.finish(device)?;
    outside.finish(device)
}

#[allow(clippy::too_many_arguments, reason = "what is generic above ends here")]
fn run(
    device: &ClDevice,
    plan: &Plan,
    input: &ClInput,
    map: &Map,
    counts: &ClInput,
    outside: &ClInput,
    keep: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    let (bins, size) = (plan.form.bins, plan.form.element.size());
    if input.len() == 0 {
        if !keep {
            device.fill(counts.mem(), counts.byte_offset(), bins * plan.counter.size(), &[0; 4])?;
            device.fill(outside.mem(), outside.byte_offset(), OUTSIDE * size_of::<u64>(), &[0; 8])?;
        }
        return Ok(());
    }
    let tables = scratch.cl(device, plan.scratch_bytes)?;
    let local = [plan.work_group, 1, 1];
    for start in (0..input.len()).step_by(plan.round) {
        let n = plan.round.min(input.len() - start);
        let offset = input.offset() + start;
        // Samples before the first 16-byte boundary.
        let head = ((16 - offset * size % 16) % 16 / size).min(n);
        let launch = |kernel| -> Result<_> {
            let launch = device.launch(&plan.count, kernel)?.mem(input.mem()).scalar(offset as u64);
            Ok(launch.scalar(n as u32).scalar(head as u32).scalar(bins as u32).mem(tables))
        };
        match plan.tables {
            Tables::Local { range, ranges, replica_bits } => {
                let launch = launch("histogram_local")?.scalar(range as u32).scalar(replica_bits);
                map_arguments(launch, map).run([plan.groups, ranges, 1], local)?;
            }
            Tables::Global => {
                let words = plan.scratch_bytes / 4;
                let per = words.div_ceil(plan.merge_groups);
                device
                    .launch(&plan.count, "histogram_zero")?
                    .mem(tables)
                    .scalar(words as u32)
                    .scalar(per as u32)
                    .run([words.div_ceil(per), 1, 1], local)?;
                let launch = launch("histogram_global")?.scalar(plan.table_count as u32);
                map_arguments(launch, map).run([plan.groups, 1, 1], local)?;
            }
        }
        device
            .launch(&plan.merge, "histogram_merge")?
            .mem(tables)
            .scalar(plan.table_count as u32)
            .scalar(bins as u32)
            .scalar(plan.merge_column_bits)
            .scalar(plan.merge_slots as u32)
            .mem(counts.mem())
            .scalar(counts.offset() as u64)
            .mem(outside.mem())
            .scalar(outside.offset() as u64)
            .scalar(u32::from(keep || start > 0))
            .run([plan.merge_groups, 1, 1], [plan.merge_work_group, 1, 1])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Capabilities::samples() {
            for bins in [1, 256, 1000, 4096, 16_384, 65_536, 5 << 20, 1 << 24] {
                for n in [1, 1000, 1 << 20, 1 << 33] {
                    let form = Form { element: ElementType::I32, bins, map: 0 };
                    let plan = plan(n, form, ElementType::U64, &caps, ROUND).unwrap();
                    let what = format!("{name}, {bins} bins, n = {n}: {plan:?}");
                    assert!(plan.scratch_bytes <= 256 << 20, "{what}");
                    assert_eq!(plan.scratch_bytes, 4 * plan.table_count * (bins + OUTSIDE), "{what}");
                    assert!(
                        plan.work_group <= caps.max_work_group && plan.merge_work_group <= caps.max_work_group,
                        "{what}"
                    );
                    assert!(plan.merge_groups * plan.merge_slots >= bins + OUTSIDE, "{what}");
                    assert!(plan.round <= 1 << 31, "{what}");
                    if let Tables::Local { range, ranges, replica_bits } = plan.tables {
                        assert!(4 * (range << replica_bits) <= caps.local_bytes, "{what}");
                        // No range is empty, and together they have every slot.
                        assert!(range * ranges >= bins + OUTSIDE && range * (ranges - 1) < bins + OUTSIDE, "{what}");
                        assert_eq!(plan.groups, plan.table_count, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn tables_lie_within_any_amount_of_local_memory() {
        for (name, caps) in Capabilities::samples() {
            for local_bytes in [0, 1, 63, 64, 67, 68, 71, 100, 1000] {
                let caps = Capabilities { local_bytes, ..caps.clone() };
                for bins in [1, 2, 5, 13, 100] {
                    let form = Form { element: ElementType::I32, bins, map: 0 };
                    let plan = plan(1000, form, ElementType::U64, &caps, ROUND).unwrap();
                    let words = plan.count.options.iter().find_map(|option| option.strip_prefix("-DLOCAL_WORDS="));
                    let words: usize = words.map_or(0, |words| words.parse().unwrap());
                    let what = format!("{name}, {local_bytes} bytes, {bins} bins: {plan:?}");
                    assert!(4 * words <= local_bytes, "{what}");
                    if let Tables::Local { range, replica_bits, .. } = plan.tables {
                        assert!(0 < range && range << replica_bits <= words, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_tables_have_a_replica_for_each_lane() {
        let caps = Capabilities::samples();
        let (_, nvidia) = caps.iter().find(|(name, _)| *name == "nvidia").unwrap();
        let tables = |bins| {
            let form = Form { element: ElementType::I32, bins, map: 0 };
            plan(1 << 28, form, ElementType::U32, nvidia, ROUND).unwrap().tables
        };
        assert_eq!(tables(256), Tables::Local { range: 259, ranges: 1, replica_bits: 5 });
        assert_eq!(tables(65_536), Tables::Local { range: 32_770, ranges: 2, replica_bits: 0 });
        assert_eq!(tables(5 << 20), Tables::Global);
    }
}
