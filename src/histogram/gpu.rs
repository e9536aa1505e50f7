//! Histograms on OpenCL devices: the plan, then its launches.

use super::{
    Accumulate, Bins, Counter,
    bins::Map,
    form::{Form, Mapped, TEXT, map_arguments, zero},
    partition::{self, Partition},
    slots::OUTSIDE,
};
use crate::{
    Element, ElementType, Output, Result, Scratch,
    counted::{ClCount, Count, apart_from, length, with_length},
    kept::{COUNTER_BYTES, COUNTERS_AT},
    runtime::{
        Arriving, ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    tuning::{self, Primitive, Tuned},
};

/// Maximum samples of one launch: `cl/histogram.cl` counts and indexes them in 32 bits.
const ROUND: usize = 1 << 31;

/// The memory in which work-groups count.
#[derive(Clone, Debug, PartialEq)]
pub enum Tables {
    /// Local memory: `ranges` ranges of `range` slots, with `1 << replica_bits` replicas.
    Local { range: usize, ranges: usize, replica_bits: u32 },
    /// Local memory, range by range, after the samples are partitioned by range.
    Partition(Box<Partition>),
    /// Global memory.
    Global,
}

/// The launches of one round of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub form: Form,
    /// Bytes of a sample in memory.
    pub size: usize,
    pub counter: ElementType,
    pub count: ProgramSpec,
    pub merge: Merge,
    pub tables: Tables,
    /// Work-groups that share the input, and the number of tables that they count in.
    pub groups: usize,
    pub table_count: usize,
    pub work_group: usize,
    /// True if the plan allows a last-block reduction in place of the merge.
    pub one_pass: bool,
    /// Maximum samples of a round.
    pub round: usize,
    pub scratch_bytes: usize,
}

/// Rounds a number of words of local memory up, so that few programs are built. Sizes are multiples of 8 KiB; above 64
/// KiB, there are four sizes per power of two.
pub fn round_up_words(words: usize, limit: usize) -> usize {
    let step = (words.next_power_of_two() / 8).max(2048);
    words.next_multiple_of(step).min(limit)
}

pub fn plan(n: usize, form: Form, counter: ElementType, caps: &Tuned, round: usize) -> Result<Plan> {
    plan_mapped(n, form, None, None, counter, caps, round)
}

/// The plan of a histogram. With `mapped`, `form` describes the mapped values. `length` is the type of the count in
/// memory that is the number of samples; `None` if the host knows the number.
pub fn plan_mapped(
    n: usize,
    form: Form,
    mapped: Option<&Mapped>,
    length: Option<ElementType>,
    counter: ElementType,
    caps: &Tuned,
    round: usize,
) -> Result<Plan> {
    let from = mapped.map_or(form.element, |mapped| mapped.from);
    caps.supports(form.element)?;
    caps.supports(from)?;
    let (params, size) = (tuning::histogram(caps), from.size());
    let slots = form.bins + OUTSIDE;
    let samples = n.min(round);
    let (count, edge_bytes) = form.program("histogram.cl", TEXT, caps);
    let count = with_length(Mapped::apply(mapped, count), length);
    let local_bytes = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + edge_bytes);
    let local_words = local_bytes / 4;
    let worthwhile = (samples * size).div_ceil(params.min_bytes).max(1);
    let most = params.max_groups.min(worthwhile);
    let room = |bytes: usize| (bytes / (4 * slots)).max(1);

    // Without local memory, no number of ranges is enough.
    let ranges = if local_words == 0 { usize::MAX } else { slots.div_ceil(local_words) };
    let partition =
        if ranges > params.few_ranges { partition::plan(samples, form, mapped, length, caps) } else { None };
    let round = partition.as_ref().map_or(round, |partition| partition.round);
    let mut one_pass = false;
    let (count, tables, groups, table_count, work_group) = if let Some(partition) = partition {
        let (groups, work_group) = (partition.groups, partition.work_group);
        (partition.program.clone(), Tables::Partition(Box::new(partition)), groups, 1, work_group)
    } else if ranges <= params.max_ranges {
        let range = slots.div_ceil(ranges);
        // Samples of one byte are first counted by value; then the 256 counts are added up by slot.
        let bytes = size == 1 && ranges == 1 && local_words >= range.max(256) + 256;
        let local_words = local_words - if bytes { 256 } else { 0 };
        let rows = if bytes { 256 } else { range };
        let budget = params.replica_bytes.min(4 * local_words) / 4;
        let replica_bits = (budget / rows).clamp(1, params.max_replicas).ilog2();
        let words = (rows << replica_bits).max(range);
        let large = 4 * words > caps.local_bytes / 2;
        let work_group = if large { params.large_work_group } else { params.work_group };
        let groups = most.min(room(params.table_bytes));
        let count = count
            .define("WG", work_group)
            .define("LOCAL_WORDS", round_up_words(words, local_words))
            .define("REPLICA_BITS", replica_bits)
            .flag("RANGES", ranges > 1)
            .flag("BYTES", bytes);
        one_pass = ranges == 1 && slots <= params.one_pass_slots.min(COUNTER_BYTES / 4);
        let count = if one_pass { count.flag("ONE_PASS", true).define("COUNTERS_AT", COUNTERS_AT) } else { count };
        (count, Tables::Local { range, ranges, replica_bits }, groups, groups, work_group)
    } else {
        // More than one table is worthwhile only if the tables take less time to sum than the samples take to count.
        let table_count = most.min(room(params.global_bytes)).min((samples / slots).max(1));
        let private = caps.class == DeviceClass::Cpu && table_count == most;
        let count = count.define("WG", params.work_group).flag("GLOBAL_TABLES", true).flag("PRIVATE", private);
        (count, Tables::Global, most, table_count, params.work_group)
    };

    let merge = merge_plan(slots, table_count, counter, caps);
    let scratch_bytes = match &tables {
        Tables::Partition(partition) => partition.scratch_bytes,
        _ => 4 * slots * table_count,
    };
    Ok(Plan {
        form,
        size,
        counter,
        count,
        merge,
        tables,
        groups,
        table_count,
        work_group,
        one_pass,
        round,
        scratch_bytes,
    })
}

/// The launch that sums the tables of one histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub groups: usize,
    /// Binary logarithm of the slots that a work-group sums at a time, and the number of slots that it sums in all.
    pub column_bits: u32,
    pub slots: usize,
}

pub fn merge_plan(slots: usize, table_count: usize, counter: ElementType, caps: &Tuned) -> Merge {
    let params = tuning::histogram(caps);
    let work_group = tuning::work_group_of(params.work_group, size_of::<u64>(), caps);
    // Work-items form rows of at least 8, and each row sums its share of the tables. In a single row, each work-item
    // would wait for one load after another, for all tables.
    let row_bits = table_count.min(work_group / 8).max(1).ilog2();
    let column_bits = work_group.ilog2() - row_bits;
    let per_group = slots.div_ceil(8 * params.max_groups).max(if work_group == 1 { 1024 } else { 1 });
    let per_group = per_group.next_multiple_of(1 << column_bits);
    let program = ProgramSpec::new("histogram.cl", TEXT, caps)
        .flag("MERGE", true)
        .define("WG", work_group)
        .define("C", if counter == ElementType::U64 { "ulong" } else { "uint" });
    Merge { program, work_group, groups: slots.div_ceil(per_group), column_bits, slots: per_group }
}

impl Merge {
    /// Sums `table_count` tables from word `first` of `tables` on. Counts and counts outside the bins go to the given
    /// offsets.
    pub fn run(
        &self,
        device: &ClDevice,
        (tables, first): (&ClMem, usize),
        table_count: usize,
        bins: usize,
        [(counts, counts_at), (outside, outside_at)]: [(&ClMem, usize); 2],
        add: bool,
    ) -> Result<()> {
        device
            .launch(&self.program, "histogram_merge")?
            .mem(tables)
            .scalar(first as u64)
            .scalar(table_count as u32)
            .scalar(bins as u32)
            .scalar(self.column_bits)
            .scalar(self.slots as u32)
            .mem(counts)
            .scalar(counts_at as u64)
            .mem(outside)
            .scalar(outside_at as u64)
            .scalar(u32::from(add))
            .run([self.groups, 1, 1], [self.work_group, 1, 1])
    }
}

/// Maximum samples of one launch on a device; few if a test forces the path of large inputs.
pub fn round(device: &ClDevice) -> usize {
    if device.wide(0) { 1 << 12 } else { ROUND }
}

#[allow(clippy::too_many_arguments, reason = "those of the public function, and the counted input")]
pub(crate) fn histogram<T: Element, C: Counter>(
    device: &ClDevice,
    (input, length): (Arriving<'_>, Option<Count<'_>>),
    mapped: Option<&Mapped>,
    bins: &Bins<T>,
    counts: Output<'_, C>,
    outside: Output<'_, u64>,
    accumulate: Accumulate,
    scratch: &mut Scratch,
) -> Result<()> {
    let size = mapped.map_or(T::TYPE, |mapped| mapped.from).size();
    let caps = device.capabilities_for(Primitive::Histogram, size, input.len())?;
    let length = length.map(|count| count.cl(device)).transpose()?;
    let of = length.as_ref().map(ClCount::element);
    let plan = plan_mapped(input.len(), Form::of(bins), mapped, of, C::TYPE, &caps, round(device))?;
    let keep = accumulate == Accumulate::Add;
    let (counts, outside) = (counts.cl(device, keep)?, outside.cl(device, keep)?);
    crate::runtime::apart(&[&*input], &[&counts, &outside])?;
    apart_from(length.as_ref(), &[&counts, &outside])?;
    run(device, &plan, &caps, (input, length.as_ref()), bins.map(), &counts, &outside, keep, scratch)?;
    counts.finish(device)?;
    outside.finish(device)
}

#[allow(clippy::too_many_arguments, reason = "the caller's arguments, without its generic types")]
fn run(
    device: &ClDevice,
    plan: &Plan,
    caps: &Tuned,
    (input, count): (Arriving<'_>, Option<&ClCount>),
    map: &Map,
    counts: &ClInput,
    outside: &ClInput,
    keep: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    let (bins, size) = (plan.form.bins, plan.size);
    if input.len() == 0 {
        if !keep {
            device.fill(counts.mem(), counts.byte_offset(), bins * plan.counter.size(), &[0; 4])?;
            device.fill(outside.mem(), outside.byte_offset(), OUTSIDE * size_of::<u64>(), &[0; 8])?;
        }
        return Ok(());
    }
    let tables = scratch.cl(device, plan.scratch_bytes)?;
    let local = [plan.work_group, 1, 1];
    // Launches of later rounds add to the counts of earlier ones, so an input may arrive in parts.
    input.arrive(device, 1, |part| {
        // Each part gets `ended` anew, since a failed call of another thread may have discarded its memory.
        let ended = if plan.one_pass { device.ended()? } else { None };
        for start in part.clone().step_by(plan.round) {
            let add = keep || start > 0;
            let n = plan.round.min(part.end - start);
            let offset = input.offset() + start;
            // The number of samples before the first 16-byte boundary.
            let head = ((16 - offset * size % 16) % 16 / size).min(n);
            let left = count.map(|count| count.after(start));
            let left = left.as_ref();
            let launch = |kernel| -> Result<_> {
                let launch = device.launch(&plan.count, kernel)?.mem(input.mem()).scalar(offset as u64);
                Ok(length(launch, n, false, left, 0).scalar(head as u32).scalar(bins as u32).mem(tables))
            };
            match &plan.tables {
                Tables::Partition(partition) => {
                    partition.run(device, caps, (&input, offset, n, left), map, bins, tables)?;
                }
                &Tables::Local { range, ranges, .. } => {
                    let launch = launch("histogram_local")?.scalar(range as u32);
                    let launch = if plan.one_pass {
                        let wide = u32::from(plan.counter == ElementType::U64);
                        let launch = launch.scalar(u32::from(ended.is_some())).mem(counts.mem());
                        let launch = launch.scalar(counts.offset() as u64).scalar(wide).mem(outside.mem());
                        let launch = launch.scalar(outside.offset() as u64).scalar(u32::from(add));
                        launch.mem(ended.as_ref().unwrap_or(tables))
                    } else {
                        launch
                    };
                    map_arguments(device, launch, map)?.run([plan.groups, ranges, 1], local)?;
                }
                Tables::Global => {
                    zero(device, tables, plan.scratch_bytes / 4, caps)?;
                    let launch = launch("histogram_global")?.scalar(plan.table_count as u32);
                    map_arguments(device, launch, map)?.run([plan.groups, 1, 1], local)?;
                }
            }
            if ended.is_none() {
                let places = [(counts.mem(), counts.offset()), (outside.mem(), outside.offset())];
                plan.merge.run(device, (tables, 0), plan.table_count, bins, places, add)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, reduce::gpu::tests::ending};

    #[test]
    fn last_block_reduction_equals_a_further_launch() {
        let bytes: Vec<u8> = (0..300_017u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let wide: Vec<i32> = bytes.iter().map(|&x| i32::from(x) * 5 - 200).collect();
        let cpu = Device::cpu();
        for (name, cl) in ending() {
            let caps = Tuned::from(cl.capabilities().unwrap());
            let cl = cl.profiled().unwrap();
            let device = Device::from_cl(cl.clone());
            let launches = |want: usize, what: &str| {
                let timings = cl.take_timings().unwrap();
                let count = timings.iter().filter(|timing| timing.name.starts_with("histogram")).count();
                assert_eq!(count, want, "{what}: launches");
            };
            for n in [1, 1000, bytes.len()] {
                let what = format!("{name}: {n}");
                let (of_bytes, of_wide) = (Bins::even(3, 240, 200).unwrap(), Bins::ids(1000).unwrap());
                let found = |device: &Device| {
                    let (mut counts, mut outside) = (vec![7u32; 1000], [5; 3]);
                    let add = Accumulate::Add;
                    device.histogram_into(&wide[..n], &of_wide, &mut counts, &mut outside, add).unwrap();
                    (device.histogram(&bytes[..n], &of_bytes).unwrap(), counts, outside)
                };
                assert_eq!(found(&device), found(&cpu), "{what}");
                launches(2, &what);
                // A round adds to the counts of earlier rounds.
                let plan = plan(n, Form::of(&of_wide), ElementType::U64, &caps, 4096).unwrap();
                let (mut counts, mut outside) = (vec![7u64; 1000], [5; 3]);
                let input = crate::Input::from(&wide[..n]).cl(&cl).unwrap();
                let out = Output::from(&mut counts).cl(&cl, false).unwrap();
                let rest = Output::from(&mut outside).cl(&cl, false).unwrap();
                let input = ((&input).into(), None);
                run(&cl, &plan, &caps, input, of_wide.map(), &out, &rest, false, &mut Scratch::new()).unwrap();
                out.finish(&cl).unwrap();
                rest.finish(&cl).unwrap();
                let want = cpu.histogram(&wide[..n], &of_wide).unwrap();
                assert!(counts == want.counts && outside == [want.outside.below, want.outside.above, 0], "{what}");
                launches(n.div_ceil(4096), &what);
            }
        }
    }

    #[test]
    fn plans_fit_their_devices() {
        let small = |(name, caps): (_, Tuned)| [(name, caps.with(|facts| facts.local_bytes = 4096)), (name, caps)];
        for (name, caps) in Tuned::samples().into_iter().flat_map(small) {
            for bins in [1, 256, 1000, 4096, 16_384, 65_536, 5 << 20, 1 << 24] {
                for n in [1, 1000, 1 << 20, 1 << 33, 1 << 40, 1 << 48] {
                    let form = Form { element: ElementType::I32, bins, map: 0 };
                    let plan = plan(n, form, ElementType::U64, &caps, ROUND).unwrap();
                    let what = format!("{name}, {bins} bins, n = {n}: {plan:?}");
                    assert!(plan.scratch_bytes <= 1 << 30, "{what}");
                    assert!(plan.scratch_bytes >= 4 * plan.table_count * (bins + OUTSIDE), "{what}");
                    assert!(
                        plan.work_group <= caps.max_work_group && plan.merge.work_group <= caps.max_work_group,
                        "{what}"
                    );
                    let sums = plan.merge.work_group * size_of::<u64>() + tuning::RESERVED_BYTES;
                    assert!(plan.merge.work_group == 1 || sums <= caps.local_bytes, "{what}");
                    assert!(plan.merge.groups * plan.merge.slots >= bins + OUTSIDE, "{what}");
                    assert!(plan.round <= 1 << 31, "{what}");
                    if let Tables::Local { range, ranges, replica_bits } = plan.tables {
                        assert!(4 * (range << replica_bits) + tuning::RESERVED_BYTES <= caps.local_bytes, "{what}");
                        // No range is empty, and all ranges together contain every slot.
                        assert!(range * ranges >= bins + OUTSIDE && range * (ranges - 1) < bins + OUTSIDE, "{what}");
                        assert_eq!(plan.groups, plan.table_count, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn tables_fit_any_amount_of_local_memory() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [0, 1, 63, 64, 67, 68, 71, 100, 1000] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for bins in [1, 2, 5, 13, 100] {
                    let form = Form { element: ElementType::I32, bins, map: 0 };
                    let plan = plan(1000, form, ElementType::U64, &caps, ROUND).unwrap();
                    let words = plan.count.defined("LOCAL_WORDS");
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
        let caps = Tuned::samples();
        let (_, nvidia) = caps.iter().find(|(name, _)| *name == "nvidia").unwrap();
        let tables = |bins| {
            let form = Form { element: ElementType::I32, bins, map: 0 };
            plan(1 << 28, form, ElementType::U32, nvidia, ROUND).unwrap().tables
        };
        assert_eq!(tables(256), Tables::Local { range: 259, ranges: 1, replica_bits: 5 });
        assert_eq!(tables(65_536), Tables::Local { range: 32_770, ranges: 2, replica_bits: 0 });
        assert!(matches!(tables(5 << 20), Tables::Partition(partition) if partition.ranges == 256));
    }

    #[test]
    fn little_local_memory_needs_a_partition_or_global_atomics() {
        for (name, caps) in Tuned::samples() {
            let caps = caps.with(|facts| (facts.local_bytes, facts.class) = (4096, DeviceClass::Gpu));
            let loops = caps.sub_group.backend.is_hardware();
            let form = Form { element: ElementType::U32, bins: 9000, map: 0 };
            let tables = |n| plan(n, form, ElementType::U32, &caps, ROUND).unwrap().tables;
            assert_eq!(tables(300), Tables::Global, "{name}");
            match tables(6_011) {
                Tables::Partition(partition) => assert!(loops && partition.groups > 1, "{name}: {partition:?}"),
                tables => assert!(!loops && tables == Tables::Global, "{name}: {tables:?}"),
            }
        }
    }
}
