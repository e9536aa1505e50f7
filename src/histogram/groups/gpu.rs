//! Histograms of groups on OpenCL devices: the plan, then its launches.

use super::Groups;
use crate::{
    ElementType, Result,
    histogram::{
        bins::Map,
        form::{Form, Mapped, map_arguments},
        gpu::{round, round_up_words},
        slots::OUTSIDE,
        weighted::gpu as weighted,
    },
    runtime::{
        AnyOutput, ClInput, DeviceClass, ProgramSpec, Scratch, apart,
        opencl::{ClDevice, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const NAME: &str = "histogram_groups.cl";
const TEXT: &str = kernel_text!("histogram_groups.cl");

/// Maximum groups of a tile.
const MOST_ROWS: usize = 1024;
/// Maximum words of a tile's table on drivers for CPUs.
const CPU_WORDS: usize = 4 << 10;
/// Minimum samples of a group that is a tile of its own. Fewer samples take less time than the tile's barriers.
const MANY: usize = 8 << 10;

/// The starts of groups on a device: offsets of this type, or lines of equal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Segments(ElementType),
    Lines,
}

/// The launches of the histograms of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub count: ProgramSpec,
    /// The launch that zeroes the counters of split groups.
    pub split: ProgramSpec,
    pub work_group: usize,
    /// Parts of about equal cost. Each part has a work-group for each range of slots.
    pub parts: usize,
    pub ranges: usize,
    /// Slots that a tile counts in local memory. If `global`, these are the slots after the bins.
    pub range: usize,
    pub global: bool,
    /// Maximum groups of a tile, and the binary logarithm of the replicas of a group that is a tile of its own.
    pub rows: usize,
    pub replica_bits: u32,
    pub many: usize,
    pub row_cost: usize,
}

fn with_starts(program: ProgramSpec, kind: Kind, caps: &Tuned) -> ProgramSpec {
    let program = program.unoptimised_on_a_checker(caps);
    match kind {
        Kind::Segments(offset) => program.define("S", if offset == ElementType::U64 { "ulong" } else { "uint" }),
        Kind::Lines => program.flag("LINES", true),
    }
}

/// The plan for `groups` groups of `n` samples. A part has at most `round` samples.
pub fn plan(
    n: usize,
    (groups, kind): (usize, Kind),
    form: Form,
    mapped: Option<&Mapped>,
    counter: ElementType,
    caps: &Tuned,
    round: usize,
) -> Result<Plan> {
    let from = mapped.map_or(form.element, |mapped| mapped.from);
    caps.supports(form.element)?;
    caps.supports(from)?;
    let (params, size, slots) = (tuning::histogram(caps), from.size(), form.bins + OUTSIDE);
    let (count, edge_bytes) = form.program(NAME, TEXT, caps);
    let local_words = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + edge_bytes) / 4;
    // The bounds of a tile's groups take at most an eighth of the local memory.
    let most_rows = (local_words / 8).clamp(1, MOST_ROWS);
    let local_words = local_words.saturating_sub(most_rows + 1);
    let ranges = if local_words == 0 { usize::MAX } else { slots.div_ceil(local_words) };
    let global = ranges > params.max_ranges;
    let (ranges, range) = if global { (1, OUTSIDE) } else { (ranges, slots.div_ceil(ranges)) };
    let budget = match caps.class {
        DeviceClass::Cpu => CPU_WORDS,
        DeviceClass::Gpu => params.replica_bytes / 4,
    };
    let budget = budget.min(local_words);
    // Half of the budget, so that two work-groups of a compute unit have room for their tables.
    let rows = (budget / 2 / range).clamp(1, most_rows);
    let replica_bits = (budget / range).clamp(1, params.max_replicas).ilog2();
    let words = range * rows.max(1 << replica_bits);
    let work_group = if 4 * words > caps.local_bytes / 2 { params.large_work_group } else { params.work_group };
    // A row costs as much as samples with as many bytes as the counters of the row.
    let row_cost = if global { 0 } else { (range * counter.size()).div_ceil(size) };
    let cost = n.saturating_add(groups.saturating_mul(row_cost));
    let worthwhile = cost.div_ceil((params.min_bytes / size).max(1));
    let parts = (2 * params.max_groups).min(worthwhile).max(cost.div_ceil(round)).max(1);
    let shared = |program: ProgramSpec| {
        let bytes = counter.size();
        let program = with_starts(program, kind, caps).define("WG", work_group).define("C_BYTES", bytes);
        program.define("C", if bytes == 8 { "ulong" } else { "uint" })
    };
    let count = shared(Mapped::apply(mapped, count))
        .define("LOCAL_WORDS", round_up_words(words, local_words).max(words))
        .define("ROWS", most_rows)
        .flag("GLOBAL_TABLES", global);
    Ok(Plan {
        count,
        split: shared(ProgramSpec::new(NAME, TEXT, caps)),
        work_group,
        parts,
        ranges,
        range,
        global,
        rows,
        replica_bits,
        many: MANY.min(round / 16).max(1),
        row_cost,
    })
}

/// The launch that numbers the slots of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub groups: usize,
    /// Neighbouring samples of a work-item.
    pub run: usize,
}

/// Neighbouring samples of a work-item of a GPU.
const RUN: usize = 4;

pub fn keys(n: usize, kind: Kind, form: Form, caps: &Tuned) -> Result<Keys> {
    caps.supports(form.element)?;
    let params = tuning::histogram(caps);
    let (work_group, max_groups) = (params.work_group, params.max_groups);
    let run = match caps.class {
        DeviceClass::Cpu => n.div_ceil(max_groups).max(1024),
        DeviceClass::Gpu => RUN,
    };
    let program = with_starts(form.program(NAME, TEXT, caps).0, kind, caps).define("WG", work_group);
    Ok(Keys { program, work_group, groups: n.div_ceil(run * work_group).min(8 * max_groups), run })
}

/// The memory of the histograms of groups.
struct Memory<'a> {
    input: &'a ClInput,
    /// The offsets, or the length of a line.
    starts: Starts<'a>,
    groups: usize,
    counts: &'a ClInput,
    outside: &'a ClInput,
}

#[derive(Clone, Copy)]
enum Starts<'a> {
    Offsets(&'a ClInput),
    Lines(usize),
}

impl Memory<'_> {
    /// Adds the arguments that both kernels share.
    fn arguments<'d>(&self, launch: Launch<'d>, plan: &Plan, bins: usize) -> Launch<'d> {
        let launch = launch.scalar(self.input.len() as u64).scalar(self.groups as u64).scalar(plan.row_cost as u64);
        let launch = launch.scalar(bins as u32).mem(self.counts.mem()).scalar(self.counts.offset() as u64);
        launch.mem(self.outside.mem()).scalar(self.outside.offset() as u64)
    }

    /// Adds the arguments of `GROUP_PARAMS`.
    fn starts<'d>(&self, launch: Launch<'d>) -> Launch<'d> {
        match self.starts {
            Starts::Offsets(offsets) => launch.mem(offsets.mem()).scalar(offsets.offset() as u64),
            Starts::Lines(len) => launch.scalar(len as u64),
        }
    }

    /// Sets all counters to 0.
    fn zero(&self, device: &ClDevice) -> Result<()> {
        let fill = |place: &ClInput| device.fill(place.mem(), place.byte_offset(), place.len() * place.size(), &[0; 4]);
        fill(self.counts)?;
        fill(self.outside)
    }
}

/// Writes the histograms of groups of `input` to `outputs`: counts, and counts outside the bins. With `keep`, adds to
/// them.
#[allow(clippy::too_many_arguments, reason = "the caller's arguments, without its generic types")]
pub(super) fn histograms(
    device: &ClDevice,
    (form, counter): (Form, ElementType),
    mapped: Option<&Mapped>,
    map: &Map,
    input: &ClInput,
    groups: Groups<'_>,
    outputs: [AnyOutput<'_>; 2],
    keep: bool,
) -> Result<()> {
    on_device_with(device, &[input], groups, outputs, keep, |kind, memory| {
        run(device, (form, counter), (mapped, map), kind, memory, keep)
    })
}

/// Calls `launch` with the groups and the outputs in the device's memory. `inputs` begins with the samples.
fn on_device_with(
    device: &ClDevice,
    inputs: &[&ClInput],
    groups: Groups<'_>,
    [counts, outside]: [AnyOutput<'_>; 2],
    keep: bool,
    launch: impl FnOnce(Kind, &Memory<'_>) -> Result<()>,
) -> Result<()> {
    let count = groups.count();
    let (offsets, kind, len) = match groups {
        Groups::Lines { len, .. } => (None, Kind::Lines, len),
        Groups::OnDevice { offsets, element, .. } => (Some(offsets.cl(device)?), Kind::Segments(element), 0),
        Groups::OnHost(_) => unreachable!("the offsets are on the backend of the call"),
    };
    let (counts, outside) = (counts.cl(device, keep)?, outside.cl(device, keep)?);
    let all: Vec<_> = inputs.iter().copied().chain(&offsets).collect();
    apart(&all, &[&counts, &outside])?;
    let starts = offsets.as_ref().map_or(Starts::Lines(len), Starts::Offsets);
    launch(kind, &Memory { input: inputs[0], starts, groups: count, counts: &counts, outside: &outside })?;
    counts.finish(device)?;
    outside.finish(device)
}

/// Writes the sums of the weights of groups, as [`histograms`] writes counts.
pub(super) fn sums(
    device: &ClDevice,
    form: weighted::Form,
    map: &Map,
    [input, weights]: [&ClInput; 2],
    groups: Groups<'_>,
    outputs: [AnyOutput<'_>; 2],
    keep: bool,
) -> Result<()> {
    on_device_with(device, &[input, weights], groups, outputs, keep, |kind, memory| {
        run_sums(device, form, map, (kind, memory), weights, keep)
    })
}

/// Numbers the slots of all groups, and sums the weights in one histogram whose bins are these slots. If there are more
/// than 2^31 slots, the groups are processed in batches.
fn run_sums(
    device: &ClDevice,
    form: weighted::Form,
    map: &Map,
    (kind, memory): (Kind, &Memory<'_>),
    weights: &ClInput,
    keep: bool,
) -> Result<()> {
    let (input, groups, bins) = (memory.input, memory.groups, form.samples.bins);
    let (n, words) = (input.len(), bins + OUTSIDE);
    if groups == 0 || n == 0 {
        return if keep { Ok(()) } else { memory.zero(device) };
    }
    let caps = device.capabilities_for(Primitive::Histogram, input.size(), n)?;
    let plan = keys(n, kind, form.samples, &caps)?;
    let numbers = ClInput::pooled(device, 4 * n, 4)?;
    let few = (round(device) / words).clamp(1, groups);
    let scratch = &mut Scratch::new();
    for first in (0..groups).step_by(few) {
        let own = few.min(groups - first);
        let launch = device.launch(&plan.program, "histogram_groups_keys")?.mem(input.mem());
        let launch = launch.scalar(input.offset() as u64).scalar(n as u64).scalar(groups as u64).scalar(bins as u32);
        let launch = launch.scalar(first as u64).scalar(own as u64).scalar(plan.run as u64).mem(numbers.mem());
        let launch = map_arguments(device, memory.starts(launch), map)?;
        launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])?;
        let samples = Form { element: ElementType::U32, bins: own * words, map: Form::map_of(&Map::Ids) };
        let [sums, outside] = [(memory.counts, bins), (memory.outside, OUTSIDE)]
            .map(|(place, width)| place.part(first * width, own * width));
        let ids = (&Map::Ids, Some(bins));
        let inputs = ([&numbers, weights], None);
        weighted::run(device, weighted::Form { samples, ..form }, ids, inputs, [&sums, &outside], keep, scratch)?;
    }
    Ok(())
}

fn run(
    device: &ClDevice,
    (form, counter): (Form, ElementType),
    (mapped, map): (Option<&Mapped>, &Map),
    kind: Kind,
    memory: &Memory<'_>,
    keep: bool,
) -> Result<()> {
    let (n, groups, bins) = (memory.input.len(), memory.groups, form.bins);
    if groups == 0 {
        return Ok(());
    }
    if n == 0 {
        return if keep { Ok(()) } else { memory.zero(device) };
    }
    let caps = device.capabilities_for(Primitive::Histogram, memory.input.size(), n)?;
    let plan = plan(n, (groups, kind), form, mapped, counter, &caps, round(device))?;
    let local = [plan.work_group, 1, 1];
    if keep {
        // Counts are added to those of the caller.
    } else if plan.global {
        memory.zero(device)?;
    } else if plan.parts > 1 {
        let launch = device.launch(&plan.split, "histogram_groups_split")?;
        memory.starts(memory.arguments(launch, &plan, bins)).run([plan.parts - 1, 1, 1], local)?;
    }
    let launch = device.launch(&plan.count, "histogram_groups_count")?;
    let launch = launch.mem(memory.input.mem()).scalar(memory.input.offset() as u64);
    let launch = memory
        .arguments(launch, &plan, bins)
        .scalar(u32::from(keep || plan.global))
        .scalar(plan.range as u32)
        .scalar(plan.rows as u32)
        .scalar(plan.replica_bits)
        .scalar(plan.many as u32);
    map_arguments(device, memory.starts(launch), map)?.run([plan.parts, plan.ranges, 1], local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [0, 68, 100, 1000, 4096, caps.local_bytes] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for bins in [1, 3, 256, 1000, 16_384, 70_000, 1 << 24] {
                    for (n, groups) in
                        [(1, 1), (1 << 28, 1), (1 << 22, 1 << 20), (1 << 40, 1 << 10), (1 << 48, 1 << 40)]
                    {
                        let form = Form { element: ElementType::I32, bins, map: 0 };
                        let kind = Kind::Segments(ElementType::U32);
                        let plan = plan(n, (groups, kind), form, None, ElementType::U64, &caps, 1 << 31).unwrap();
                        let what = format!("{name}, {local_bytes} bytes, {bins} bins, {groups} of {n}: {plan:?}");
                        let defined = |key| plan.count.defined(key).unwrap().parse::<usize>().unwrap();
                        let (words, rows) = (defined("LOCAL_WORDS"), defined("ROWS"));
                        assert!(plan.global || 4 * (words + rows + 2) <= local_bytes, "{what}");
                        assert!(plan.rows <= rows && plan.range * plan.rows <= words, "{what}");
                        assert!(plan.range << plan.replica_bits <= words, "{what}");
                        // No range is empty, and all ranges together contain every slot.
                        let all = if plan.global { OUTSIDE } else { bins + OUTSIDE };
                        assert!(plan.range * plan.ranges >= all && plan.range * (plan.ranges - 1) < all, "{what}");
                        assert!((n + groups * plan.row_cost).div_ceil(plan.parts) <= 1 << 31, "{what}");
                        assert!(plan.work_group <= caps.max_work_group, "{what}");
                    }
                }
            }
        }
    }
}
