//! Weighted histograms on OpenCL devices: the plan, then its launches.

use super::log_n;
use crate::{
    ElementType, Result, Scratch,
    histogram::{
        bins::{Map, OUTSIDE},
        gpu::{self, map_arguments, round_up_words},
    },
    runtime::{Capabilities, ClInput, ProgramSpec, opencl::ClDevice},
    tuning,
};

const NAME: &str = "histogram_weighted.cl";
const TEXT: &str = include_str!("../../../cl/histogram_weighted.cl");
/// `HEAD` of the kernels.
const HEAD: usize = 4;
/// Weights of each group's share that tell the unit, until all are known.
const LOOKED: usize = 1 << 10;

/// What a weighted histogram is of: everything but its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) samples: gpu::Form,
    pub(crate) weight: ElementType,
    pub(crate) sum: ElementType,
}

/// The launches of a weighted histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) count: ProgramSpec,
    /// Of the kernels that zero, look for the largest weight, and merge.
    pub(crate) weights: ProgramSpec,
    pub(crate) work_group: usize,
    pub(crate) groups: usize,
    pub(crate) table_count: usize,
    /// `1 << replica_bits` replicas of a table in local memory; `None` if tables are in global memory.
    pub(crate) replica_bits: Option<u32>,
    pub(crate) merge_work_group: usize,
    pub(crate) merge_groups: usize,
    pub(crate) merge_column_bits: u32,
    pub(crate) merge_slots: usize,
    pub(crate) table_word: usize,
    pub(crate) scratch_bytes: usize,
    pub(crate) wide: bool,
}

/// Words of a sum.
fn limbs(weight: ElementType) -> usize {
    if weight.needs_fp64() { 4 } else { 2 }
}

pub(crate) fn plan(n: usize, form: Form, aligned: bool, caps: &Capabilities, wide: bool) -> Result<Plan> {
    let Form { samples, weight, sum } = form;
    caps.supports(samples.element)?;
    caps.supports(weight)?;
    let params = tuning::histogram(caps);
    let (slots, words) = (samples.bins + OUTSIDE, limbs(weight) * (samples.bins + OUTSIDE));
    let offset = if wide { "ulong" } else { "uint" };
    let with_weights = |program: ProgramSpec| program.element("W", weight).define("OFFSET_T", offset);
    let (count, edge_bytes) = samples.program(NAME, TEXT, caps);
    let local_words = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + edge_bytes) / 4;
    let worthwhile = (n * (samples.element.size() + weight.size())).div_ceil(params.min_bytes).max(1);
    let most = params.max_groups.min(worthwhile);
    let room = |bytes: usize| (bytes / (4 * words)).max(1);
    let count = with_weights(count).flag("ALIGNED", aligned).unoptimised_on_a_checker(caps);
    let (count, groups, table_count, replica_bits, work_group) = if words <= local_words {
        let budget = (params.weighted_bytes / 4).min(local_words);
        let replica_bits = (budget / words).clamp(1, params.max_replicas).ilog2();
        let used = words << replica_bits;
        let large = 4 * used > caps.local_bytes / 2;
        let work_group = if large { params.large_work_group } else { params.work_group };
        let groups = most.min(room(params.table_bytes));
        let count = count.define("WG", work_group).define("LOCAL_WORDS", round_up_words(used, local_words));
        (count, groups, groups, Some(replica_bits), work_group)
    } else {
        let table_count = most.min(room(params.global_bytes)).min((n / slots).max(1));
        (count.define("WG", params.work_group).flag("GLOBAL_TABLES", true), most, table_count, None, params.work_group)
    };
    // Sums of 16 bytes for each item must fit local memory.
    let merge_work_group = params.work_group.min((caps.local_bytes / 32).max(1));
    let merge_work_group = 1 << merge_work_group.ilog2();
    let merge_row_bits = table_count.min(merge_work_group / 32).max(1).ilog2();
    let merge_column_bits = merge_work_group.ilog2() - merge_row_bits;
    let merge_slots = slots.div_ceil(8 * params.max_groups).max(if merge_work_group == 1 { 1024 } else { 1 });
    let merge_slots = merge_slots.next_multiple_of(1 << merge_column_bits);
    let weights = ProgramSpec::new(NAME, TEXT, caps).unoptimised_on_a_checker(caps);
    let weights = with_weights(weights).flag("WEIGHTS_ONLY", true);
    let table_word = HEAD + if weight.is_float() { slots } else { 0 };
    Ok(Plan {
        count,
        weights: weights.define("WG", merge_work_group).element("SUM", sum),
        work_group,
        groups,
        table_count,
        replica_bits,
        merge_work_group,
        merge_groups: slots.div_ceil(merge_slots),
        merge_column_bits,
        merge_slots,
        table_word,
        scratch_bytes: 4 * (table_word + words * table_count),
        wide,
    })
}

/// `inputs` are samples and weights, `outputs` sums and those outside.
pub(super) fn weighted(
    device: &ClDevice,
    form: Form,
    map: &Map,
    [samples, weights]: [&ClInput; 2],
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
    let (caps, wide) = (device.capabilities_for("histogram", sample, n)?, device.tuning().wide(n));
    let plan = plan(n, form, samples.aligned() && weights.aligned(), &caps, wide)?;
    let scratch = scratch.cl(device, plan.scratch_bytes)?;
    let (local, merge_local) = ([plan.work_group, 1, 1], [plan.merge_work_group, 1, 1]);
    let (table_word, log_n) = (plan.table_word as u64, log_n(n));
    let global = plan.replica_bits.is_none();
    if global || form.weight.is_float() {
        let words = if global { plan.scratch_bytes / 4 } else { plan.table_word };
        let per = words.div_ceil(plan.merge_groups);
        let launch = device.launch(&plan.weights, "histogram_weights_zero")?.mem(scratch);
        launch.scalar(words as u64).scalar(per as u64).run([words.div_ceil(per), 1, 1], merge_local)?;
    }
    let per = n.div_ceil(plan.groups).next_multiple_of(32);
    let looked = if global { per } else { per.min(LOOKED) };
    if form.weight.is_float() {
        device
            .launch(&plan.weights, "histogram_weights_max")?
            .mem(weights.mem())
            .scalar(weights.offset() as u64)
            .offset(n as u64, plan.wide)
            .offset(per as u64, plan.wide)
            .offset(looked as u64, plan.wide)
            .mem(scratch)
            .run([n.div_ceil(per), 1, 1], merge_local)?;
    }
    let counts: u32 = if form.weight.is_float() && looked < per { 2 } else { 1 };
    for again in 0..counts {
        let launch = device
            .launch(&plan.count, "histogram_weights_count")?
            .mem(samples.mem())
            .scalar(samples.offset() as u64)
            .mem(weights.mem())
            .scalar(weights.offset() as u64)
            .offset(n as u64, plan.wide)
            .scalar(bins as u32)
            .scalar(log_n)
            .mem(scratch)
            .scalar(table_word)
            .scalar(plan.table_count as u32)
            .scalar(plan.replica_bits.unwrap_or(0))
            .scalar(again);
        map_arguments(device, launch, map)?.run([plan.groups, 1, 1], local)?;
    }
    device
        .launch(&plan.weights, "histogram_weights_merge")?
        .mem(scratch)
        .scalar(table_word)
        .scalar(plan.table_count as u32)
        .scalar(bins as u32)
        .scalar(log_n)
        .scalar(plan.merge_column_bits)
        .scalar(plan.merge_slots as u32)
        .mem(sums.mem())
        .scalar(sums.offset() as u64)
        .mem(outside.mem())
        .scalar(outside.offset() as u64)
        .scalar(u32::from(keep))
        .run([plan.merge_groups, 1, 1], merge_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Capabilities::samples() {
            for weight in [ElementType::I8, ElementType::F32, ElementType::F64] {
                for bins in [1, 256, 5000, 70_000, 1 << 24] {
                    for n in [1, 1 << 20, 1 << 33, 1 << 40, 1 << 48] {
                        let samples = gpu::Form { element: ElementType::I32, bins, map: 0 };
                        let Ok(plan) = plan(n, Form { samples, weight, sum: weight }, true, &caps, n >= 1 << 31) else {
                            assert!(weight == ElementType::F64 && !caps.fp64, "{name}");
                            continue;
                        };
                        let what = format!("{name}, {bins} bins, n = {n}: {plan:?}");
                        let words = limbs(weight) * (bins + OUTSIDE);
                        let used = |bits: u32| 4 * (words << bits) + tuning::RESERVED_BYTES;
                        assert!(plan.replica_bits.is_none_or(|bits| used(bits) <= caps.local_bytes), "{what}");
                        assert!(plan.merge_groups * plan.merge_slots >= bins + OUTSIDE, "{what}");
                        assert!(plan.scratch_bytes >= 4 * words * plan.table_count, "{what}");
                        assert!(plan.scratch_bytes <= 384 << 20, "{what}");
                        assert!(plan.table_count <= plan.groups && plan.work_group <= caps.max_work_group, "{what}");
                    }
                }
            }
        }
    }
}
