//! Weighted histograms on OpenCL devices: the plan, then its launches.

use super::log_n;
use crate::{
    ElementType, Result, Scratch,
    counted::{ClCount, Count, length, on_device, with_length},
    histogram::{
        bins::Map,
        form::{self, map_arguments},
        gpu::round_up_words,
        slots::OUTSIDE,
    },
    runtime::{AnyInput, AnyOutput, ClInput, ProgramSpec, apart, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const NAME: &str = "histogram_weighted.cl";
const TEXT: &str = kernel_text!("histogram_weighted.cl");
/// Words of the kernels' `HEAD`.
const HEAD: usize = 4;
/// Maximum number of weights that each work-group reads before the count. The largest of these weights defines the
/// upper end of the window.
const LOOKED: usize = 1 << 10;
/// Maximum bytes of scratch, which is also at most the device's memory divided by `MEMORY_PART`. If the slots need more,
/// they are counted in ranges, and each range reads the input once. `LEAST_BYTES` is the limit on devices with little
/// memory.
const SCRATCH_BYTES: usize = 1 << 30;
const MEMORY_PART: u64 = 16;
const LEAST_BYTES: usize = 16 << 20;

/// A weighted histogram without its size: types and bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    pub samples: form::Form,
    pub weight: ElementType,
    pub sum: ElementType,
}

/// The launches of a weighted histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub count: ProgramSpec,
    /// The program of the kernels that zero, find the largest weight, and merge.
    pub weights: ProgramSpec,
    pub work_group: usize,
    pub groups: usize,
    pub table_count: usize,
    /// `1 << replica_bits` replicas of a table in local memory; `None` if tables are in global memory.
    pub replica_bits: Option<u32>,
    pub merge_work_group: usize,
    pub merge_groups: usize,
    pub merge_column_bits: u32,
    pub merge_slots: usize,
    /// Slots that are counted at a time.
    pub range: usize,
    pub table_word: usize,
    pub scratch_bytes: usize,
    /// The window has room for the sum of `1 << log_n` weights.
    pub log_n: u32,
    pub wide: bool,
}

impl Plan {
    /// The same plan, for a number of samples that is a count in memory, of this type.
    pub fn of_count(self, count: Option<ElementType>) -> Self {
        Self { count: with_length(self.count, count), weights: with_length(self.weights, count), ..self }
    }
}

/// Words of a sum in a table.
fn limbs(weight: ElementType) -> usize {
    if weight.needs_fp64() { 4 } else { 2 }
}

/// Words of a slot besides the tables: a mark, and `REST` of the kernels.
fn others(weight: ElementType) -> usize {
    match weight {
        ElementType::F64 => 1 + 68,
        weight if weight.is_float() => 1 + 11,
        _ => 0,
    }
}

pub fn plan(n: usize, form: Form, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    let Form { samples, weight, sum } = form;
    caps.supports(samples.element)?;
    caps.supports(weight)?;
    let params = tuning::histogram(caps);
    let all = samples.bins + OUTSIDE;
    let offset = if wide { "ulong" } else { "uint" };
    let with_weights = |program: ProgramSpec| program.element("W", weight).define("OFFSET_T", offset);
    let (count, edge_bytes) = samples.program(NAME, TEXT, caps);
    let local_words = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + edge_bytes) / 4;
    let worthwhile = (n * (samples.element.size() + weight.size())).div_ceil(params.min_bytes).max(1);
    let most = params.max_groups.min(worthwhile);
    let memory =
        usize::try_from((caps.global_bytes / MEMORY_PART).min(caps.max_allocation_bytes)).unwrap_or(usize::MAX);
    let budget = SCRATCH_BYTES.min(memory).max(LEAST_BYTES) - 4 * HEAD;
    let is_local = limbs(weight) * all <= local_words;
    let range = if is_local { all } else { all.min(budget / (4 * (limbs(weight) + others(weight)))) };
    let (words, table_word) = (limbs(weight) * range, HEAD + others(weight) * range);
    let room = |bytes: usize| (bytes / (4 * words)).max(1);
    let count = with_weights(count).flag("ALIGNED", aligned).unoptimised_on_a_checker(caps);
    let (count, groups, table_count, replica_bits, work_group) = if is_local {
        let budget = (params.weighted_bytes / 4).min(local_words);
        let replica_bits = (budget / words).clamp(1, params.max_replicas).ilog2();
        let used = words << replica_bits;
        let large = 4 * used > caps.local_bytes / 2;
        let work_group = if large { params.large_work_group } else { params.work_group };
        let groups = most.min(room(params.table_bytes));
        let count = count.define("WG", work_group).define("LOCAL_WORDS", round_up_words(used, local_words));
        (count, groups, groups, Some(replica_bits), work_group)
    } else {
        let bytes = params.global_bytes.min(budget - 4 * (table_word - HEAD));
        let table_count = most.min(room(bytes)).min((n / range).max(1));
        (count.define("WG", params.work_group).flag("GLOBAL_TABLES", true), most, table_count, None, params.work_group)
    };
    // A 16-byte sum per work-item must fit local memory.
    let merge_work_group = params.work_group.min((caps.local_bytes / 32).max(1));
    let merge_work_group = 1 << merge_work_group.ilog2();
    let merge_row_bits = table_count.min(merge_work_group / 32).max(1).ilog2();
    let merge_column_bits = merge_work_group.ilog2() - merge_row_bits;
    let merge_slots = range.div_ceil(8 * params.max_groups).max(if merge_work_group == 1 { 1024 } else { 1 });
    let merge_slots = merge_slots.next_multiple_of(1 << merge_column_bits);
    let weights = ProgramSpec::new(NAME, TEXT, caps).unoptimised_on_a_checker(caps);
    let weights = with_weights(weights).flag("WEIGHTS_ONLY", true);
    // Maximum samples of a table. Each work-group that adds to it takes an equal part of all samples, up to one vector
    // more per work-item, and up to 4 samples more. Sums over tables have 128 bits.
    let samples_of_table = (n.div_ceil(groups) + 4 * work_group + 4) * groups.div_ceil(table_count);
    let log_n = log_n(if weight.needs_fp64() { n } else { samples_of_table.min(n) });
    Ok(Plan {
        count,
        weights: weights.define("WG", merge_work_group).element("SUM", sum),
        work_group,
        groups,
        table_count,
        replica_bits,
        merge_work_group,
        merge_groups: range.div_ceil(merge_slots),
        merge_column_bits,
        merge_slots,
        range,
        table_word,
        scratch_bytes: 4 * (table_word + words * table_count),
        log_n,
        wide,
    })
}

/// Writes the sums of `weights` to `sums`, and those outside the bins to `outside`. With `keep`, adds to them. `length`
/// is the count that is the number of samples; `None` if all samples are summed.
pub(crate) fn weighted(
    device: &ClDevice,
    form: Form,
    map: &Map,
    ([samples, weights], length): ([AnyInput<'_>; 2], Option<Count<'_>>),
    [sums, outside]: [AnyOutput<'_>; 2],
    keep: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    let (samples, weights) = (samples.cl(device)?, weights.cl(device)?);
    let (sums, outside) = (sums.cl(device, keep)?, outside.cl(device, keep)?);
    apart(&[&samples, &weights], &[&sums, &outside])?;
    let length = on_device(device, length, &[&sums, &outside])?;
    let inputs = ([&samples, &weights], length.as_ref());
    run(device, form, (map, None), inputs, [&sums, &outside], keep, scratch)?;
    sums.finish(device)?;
    outside.finish(device)
}

/// Sums of weights in memory of the device. With `own`, the bins are the slots of groups with `own` bins each.
pub(in crate::histogram) fn run(
    device: &ClDevice,
    form: Form,
    (map, own): (&Map, Option<usize>),
    ([samples, weights], count): ([&ClInput; 2], Option<&ClCount>),
    [sums, outside]: [&ClInput; 2],
    keep: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, bins, size) = (samples.len(), form.samples.bins, form.sum.size());
    if n == 0 {
        if !keep {
            device.fill(sums.mem(), sums.byte_offset(), bins * size, &[0; 4])?;
            device.fill(outside.mem(), outside.byte_offset(), OUTSIDE * size, &[0; 4])?;
        }
        return Ok(());
    }
    let sample = form.samples.element.size();
    let (caps, wide) = (device.capabilities_for(Primitive::Histogram, sample, n)?, device.wide(n));
    let mut plan = plan(n, form, samples.aligned() && weights.aligned(), &caps, wide)?;
    plan = plan.of_count(count.map(ClCount::element));
    plan.weights = plan.weights.flag("GROUPED", own.is_some());
    let scratch = scratch.cl(device, plan.scratch_bytes)?;
    let (local, merge_local) = ([plan.work_group, 1, 1], [plan.merge_work_group, 1, 1]);
    let per = n.div_ceil(plan.groups).next_multiple_of(32);
    let all = bins + OUTSIDE;
    if form.weight.is_float() {
        device.build_ahead(
            &plan.weights,
            &["histogram_weights_merge", "histogram_weights_max", "histogram_weights_zero"],
        )?;
    }
    for low in (0..all).step_by(plan.range) {
        let slots = plan.range.min(all - low);
        let global = plan.replica_bits.is_none();
        if global || form.weight.is_float() {
            let words = if global { plan.scratch_bytes / 4 } else { plan.table_word };
            let per = words.div_ceil(plan.merge_groups);
            let rest = if form.weight.is_float() { HEAD + slots..HEAD + others(form.weight) * slots } else { 0..0 };
            let launch = device.launch(&plan.weights, "histogram_weights_zero")?.mem(scratch);
            let launch = launch.scalar(words as u64).scalar(per as u64);
            let launch = launch.scalar(rest.start as u64).scalar(rest.end as u64);
            launch.run([words.div_ceil(per), 1, 1], merge_local)?;
        }
        if form.weight.is_float() {
            let launch = device
                .launch(&plan.weights, "histogram_weights_max")?
                .mem(weights.mem())
                .scalar(weights.offset() as u64);
            length(launch, n, plan.wide, count, 0)
                .offset(per as u64, plan.wide)
                .offset(per.min(LOOKED) as u64, plan.wide)
                .mem(scratch)
                .run([n.div_ceil(per), 1, 1], merge_local)?;
        }
        let launch = device
            .launch(&plan.count, "histogram_weights_count")?
            .mem(samples.mem())
            .scalar(samples.offset() as u64)
            .mem(weights.mem())
            .scalar(weights.offset() as u64);
        let launch = length(launch, n, plan.wide, count, 0)
            .scalar(bins as u32)
            .scalar(low as u32)
            .scalar(slots as u32)
            .scalar(plan.log_n)
            .mem(scratch)
            .scalar(plan.table_word as u64)
            .scalar(plan.table_count as u32)
            .scalar(plan.replica_bits.unwrap_or(0));
        map_arguments(device, launch, map)?.run([plan.groups, 1, 1], local)?;
        let merge = device
            .launch(&plan.weights, "histogram_weights_merge")?
            .mem(scratch)
            .scalar(plan.table_word as u64)
            .scalar(plan.table_count as u32)
            .scalar(bins as u32)
            .scalar(low as u32)
            .scalar(slots as u32)
            .scalar(plan.log_n)
            .scalar(plan.merge_column_bits)
            .scalar(plan.merge_slots as u32)
            .mem(sums.mem())
            .scalar(sums.offset() as u64)
            .mem(outside.mem())
            .scalar(outside.offset() as u64)
            .scalar(u32::from(keep));
        let merge = match own {
            Some(own) => merge.scalar(own as u32),
            None => merge,
        };
        merge.run([plan.merge_groups, 1, 1], merge_local)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for weight in [ElementType::I8, ElementType::F32, ElementType::F64] {
                for bins in [1, 256, 5000, 70_000, 1 << 24] {
                    for n in [1, 1 << 20, 1 << 33, 1 << 40, 1 << 48] {
                        let samples = form::Form { element: ElementType::I32, bins, map: 0 };
                        let Ok(plan) = plan(n, Form { samples, weight, sum: weight }, true, &caps, n >= 1 << 31) else {
                            assert!(weight == ElementType::F64 && !caps.fp64, "{name}");
                            continue;
                        };
                        let what = format!("{name}, {bins} bins, n = {n}: {plan:?}");
                        let words = limbs(weight) * plan.range;
                        assert!(plan.range == bins + OUTSIDE || plan.replica_bits.is_none(), "{what}");
                        let used = |bits: u32| 4 * (words << bits) + tuning::RESERVED_BYTES;
                        assert!(plan.replica_bits.is_none_or(|bits| used(bits) <= caps.local_bytes), "{what}");
                        assert!(plan.merge_groups * plan.merge_slots >= plan.range, "{what}");
                        assert!(plan.scratch_bytes >= 4 * words * plan.table_count, "{what}");
                        assert!(plan.scratch_bytes <= SCRATCH_BYTES, "{what}");
                        assert!(plan.table_count <= plan.groups && plan.work_group <= caps.max_work_group, "{what}");
                    }
                }
            }
        }
    }
}
