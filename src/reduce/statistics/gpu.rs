//! Statistics on OpenCL devices: the plan, then its launches.

use super::{StatisticsRecord, WORDS};
use crate::{
    Element, ElementType, Input, Output, Result, Scratch,
    counted::{ClCount, Firsts, arriving, length, on_device, with_length},
    reduce::End,
    runtime::{
        Arriving, ClInput, DeviceClass, MOST_PARTS, ProgramSpec,
        opencl::{ClDevice, ClMem, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("statistics.cl");
const GROUPS_TEXT: &str = kernel_text!("statistics_groups.cl");
/// Bytes of a tile, and moments that a work-group joins; as in `cl/statistics.cl`.
const TILE_BYTES: usize = 16 * 4096;
const FAN: usize = 1024;

/// Bytes of `Record` and `Moments` in `cl/statistics.cl`.
fn record_bytes(element: ElementType, moments: bool) -> usize {
    let keys = if element.is_float() { 2 * acc_bytes(element) } else { 16 };
    32 + keys + if moments && !element.is_float() { 40 } else { 0 }
}

fn moments_bytes(element: ElementType) -> usize {
    4 * acc_bytes(element)
}

fn acc_bytes(element: ElementType) -> usize {
    if element == ElementType::F64 { 8 } else { 4 }
}

/// Bytes of local memory of a work-item: a record, and the moments of its lanes for several tiles.
fn local_bytes(element: ElementType, moments: bool) -> usize {
    record_bytes(element, moments) + if moments && element.is_float() { 48 } else { 0 }
}

/// The size of a work-group. Results do not depend on it.
fn work_group(element: ElementType, moments: bool, caps: &Tuned) -> usize {
    tuning::work_group_of(tuning::reduce(caps).work_group, local_bytes(element, moments), caps)
}

/// The results to find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Find {
    /// The first index of one extreme.
    One(End),
    /// The first indices of both extremes.
    Both,
    /// The first indices of both extremes, and the moments.
    Moments,
}

impl Find {
    /// The results for a count of 0. Other empty inputs are errors.
    fn empty<T: Element>(self) -> [T; 2] {
        match self {
            Self::One(end) => [end.empty(); 2],
            _ => [End::Min.empty(), End::Max.empty()],
        }
    }
}

/// The launches for n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    pub tile: usize,
    /// The number of moments at the start of each launch that joins them; empty except for moments of floats.
    pub joins: Vec<usize>,
    /// The start of the moments in scratch, after the records of the work-groups, in units of moments.
    pub moments_at: usize,
    pub wide: bool,
    pub scratch_bytes: usize,
    /// True for a last-block reduction: the work-group that finishes last writes the answer.
    pub one_pass: bool,
}

impl Plan {
    /// The same plan, if `count` is the type of a count in memory that is the number of elements. Not for moments.
    pub fn by_count(self, count: Option<ElementType>) -> Self {
        Self { program: with_length(self.program, count), ..self }
    }
}

pub fn plan(
    n: usize,
    element: ElementType,
    acc: ElementType,
    find: Find,
    aligned: bool,
    caps: &Tuned,
    wide: bool,
) -> Result<Plan> {
    caps.supports(element)?;
    let moments = find == Find::Moments;
    let (max_groups, work_group) = (tuning::reduce(caps).max_groups, work_group(element, moments, caps));
    let tile = TILE_BYTES / element.size();
    let tiles = n.div_ceil(tile);
    let groups = tiles.min(max_groups);
    let joins = if moments && element.is_float() { joins(tiles) } else { Vec::new() };
    let one_pass = joins.is_empty() && tuning::reduce(caps).one_pass;
    let moments_at = (groups * record_bytes(element, moments)).div_ceil(moments_bytes(element));
    // The limits let two work-groups run on a compute unit at a time, three for integers: one loads while another
    // joins. H200, 2^28 i32: 4,237 GB/s with 80 registers, 3,715 with 117.
    let registers = match element {
        ElementType::F64 => 128,
        _ if element.is_float() => 112,
        _ => 80,
    };
    let limit = (caps.ptx && moments).then(|| format!("-cl-nv-maxrregcount={registers}"));
    let program = ProgramSpec::new("statistics.cl", TEXT, caps)
        .with(limit)
        .unoptimised_on_a_checker(caps)
        .element("T", element)
        .element("A", acc)
        .define("T_WORD", if element.is_signed() { "long" } else { "ulong" })
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define(
            "ENDS",
            match find {
                Find::One(End::Min) => 1,
                Find::One(End::Max) => 2,
                Find::Both | Find::Moments => 3,
            },
        )
        .flag("ALIGNED", aligned && caps.class == DeviceClass::Gpu)
        .flag("FLUSHED", element.is_float() && !caps.denormals)
        .flag("VECTORS", work_group == 1 && !moments && caps.denormals && element.has_vectors())
        .flag("MOMENTS", moments)
        .flag("ONE_PASS", one_pass);
    let scratch_bytes = (moments_at + joins.iter().sum::<usize>()) * moments_bytes(element);
    Ok(Plan { program, groups, work_group, tile, joins, moments_at, wide, scratch_bytes, one_pass })
}

/// The number of moments that each launch starts from, until one work-group can join the rest.
fn joins(tiles: usize) -> Vec<usize> {
    let mut joins = vec![tiles];
    while joins[joins.len() - 1] > FAN {
        joins.push(joins[joins.len() - 1].div_ceil(FAN));
    }
    joins
}

/// Runs a plan; `input` is not empty. With moments, `out` receives the words of the record, and `count` is `None`.
/// Without them, `out` receives the extremes, and `places` their indices.
fn run<T: Element>(
    device: &ClDevice,
    find: Find,
    (input, count): (Arriving<'_>, Option<&ClCount>),
    (out, out_offset): (&ClMem, usize),
    (places, places_offset): (&ClMem, usize),
    scratch: &mut Scratch,
) -> Result<()> {
    let n = input.len();
    let caps = device.capabilities_for(Primitive::Reduce, size_of::<T>(), n)?;
    let plan = plan(n, T::TYPE, T::Acc::TYPE, find, input.aligned(), &caps, device.wide(n))?;
    let (plan, empty) = (plan.by_count(count.map(ClCount::element)), find.empty::<T>());
    let count = count.map(|count| (count, bytemuck::cast_slice(&empty)));
    launch(device, &plan, (input, count), (out, out_offset), (places, places_offset), scratch)
}

/// `count` has a count, and the bytes of the values for a count of 0.
fn launch<'d>(
    device: &'d ClDevice,
    plan: &Plan,
    (input, count): (Arriving<'_>, Option<(&ClCount, &[u8])>),
    (out, out_offset): (&ClMem, usize),
    (places, places_offset): (&ClMem, usize),
    scratch: &mut Scratch,
) -> Result<()> {
    let scratch = scratch.cl(device, plan.scratch_bytes)?;
    let local = [plan.work_group, 1, 1];
    let (length_of, empty) = (count.map(|(count, _)| count), count.map(|(_, empty)| empty.split_at(empty.len() / 2)));
    let with_empty = |launch: Launch<'d>| empty.iter().fold(launch, |launch, (a, b)| launch.plain(a).plain(b));
    // The last work-group of a launch cannot merge the records of later parts.
    let ended = if plan.one_pass && !input.in_parts() { device.ended()? } else { None };
    if ended.is_none() {
        device.build_ahead(&plan.program, &["statistics_tiles", "statistics_last"])?;
    }
    // Each part has its share of the work-groups, so that all records fit.
    let unit = if plan.groups < MOST_PARTS { input.len() } else { plan.tile };
    let mut records = 0;
    input.arrive(device, unit, |part| {
        let (first, end) = (part.start / plan.tile, part.end.div_ceil(plan.tile));
        let whole = part.len() == input.len();
        let groups = if whole { plan.groups } else { (plan.groups / MOST_PARTS).min(end - first) };
        let tiles = device.launch(&plan.program, "statistics_tiles")?.mem(input.mem()).scalar(input.offset() as u64);
        let tiles = length(tiles, part.end, plan.wide, length_of, 0)
            .mem(scratch)
            .scalar(records as u64)
            .mem(scratch)
            .scalar(plan.moments_at as u64);
        let tiles = if plan.one_pass {
            let tiles = tiles
                .scalar(u32::from(ended.is_some()))
                .mem(out)
                .scalar(out_offset as u64)
                .mem(places)
                .scalar(places_offset as u64)
                .mem(ended.as_ref().unwrap_or(scratch));
            with_empty(tiles)
        } else {
            tiles
        };
        records += groups;
        tiles.after(first).run([groups, 1, 1], local)
    })?;
    if ended.is_some() {
        return Ok(());
    }
    let (mut from, mut span) = (plan.moments_at, plan.tile);
    for pair in plan.joins.windows(2) {
        device
            .launch(&plan.program, "statistics_moments")?
            .mem(scratch)
            .scalar(from as u64)
            .scalar(pair[0] as u32)
            .scalar(span as u64)
            .scalar(input.len() as u64)
            .scalar((from + pair[0]) as u64)
            .run([pair[1], 1, 1], local)?;
        from += pair[0];
        span *= FAN;
    }
    let last = device.launch(&plan.program, "statistics_last")?.mem(input.mem()).scalar(input.offset() as u64);
    let last = length(last, input.len(), plan.wide, length_of, 0)
        .mem(scratch)
        .scalar(records as u32)
        .mem(scratch)
        .scalar(from as u64)
        .scalar(plan.joins.last().copied().unwrap_or(0) as u32)
        .scalar(span as u64)
        .mem(out)
        .scalar(out_offset as u64)
        .mem(places)
        .scalar(places_offset as u64);
    with_empty(last).run([1, 1, 1], local)
}

pub(crate) fn statistics<T: Element>(
    device: &ClDevice,
    input: Input<'_, T>,
    output: Output<'_, StatisticsRecord<T>>,
    scratch: &mut Scratch,
) -> Result<()> {
    let ((input, host), out) = (input.any().arriving(device)?, output.cl(device, false)?);
    crate::runtime::apart(&[&input], &[&out])?;
    let place = (out.mem(), out.byte_offset() / 8);
    run::<T>(device, Find::Moments, (Arriving::new(&input, host), None), place, place, scratch)?;
    out.finish(device)
}

/// Finds one extreme or both; `input` is not empty. For a count of 0 the indices are `u64::MAX`.
pub(crate) fn extremes<T: Element>(
    device: &ClDevice,
    find: Find,
    (input, count): Firsts<'_, T>,
    values: Output<'_, T>,
    places: Output<'_, u64>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (input, host) = arriving(device, input.any(), count)?;
    let (values, places) = (values.cl(device, false)?, places.cl(device, false)?);
    crate::runtime::apart(&[&input], &[&values, &places])?;
    let count = on_device(device, count, &[&values, &places])?;
    let (to, found) = ((values.mem(), values.offset()), (places.mem(), places.offset()));
    run::<T>(device, find, (Arriving::new(&input, host), count.as_ref()), to, found, scratch)?;
    values.finish(device)?;
    places.finish(device)
}

/// The launch that writes the records of `groups` > 0 groups: its program, work-groups and work-group size.
pub fn plan_groups(groups: usize, element: ElementType, caps: &Tuned) -> (ProgramSpec, usize, usize) {
    let work_group = match caps.class {
        DeviceClass::Cpu => 1,
        DeviceClass::Gpu => tuning::work_group(256, caps),
    };
    let program = ProgramSpec::new("statistics_groups.cl", GROUPS_TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .define("VALUE", tuning::unit_type(element.size()))
        .define("WG", work_group);
    (program, (WORDS * groups).div_ceil(work_group).min(tuning::reduce(caps).max_groups), work_group)
}

/// Writes the records of groups from their moments, extremes and numbers of NaN.
pub(super) fn join_groups(device: &ClDevice, element: ElementType, inputs: [&ClInput; 4], out: &ClInput) -> Result<()> {
    let groups = out.len();
    if groups == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Reduce, element.size(), groups)?;
    let (program, work_groups, work_group) = plan_groups(groups, element, &caps);
    let launch = device.launch(&program, "statistics_of_groups")?;
    // The inputs have memory of their own.
    let launch = inputs.into_iter().fold(launch, |launch, input| launch.mem(input.mem()));
    launch
        .scalar(groups as u64)
        .mem(out.mem())
        .scalar((out.byte_offset() / 8) as u64)
        .run([work_groups, 1, 1], [work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(caps: &Tuned) -> Vec<ElementType> {
        ElementType::ALL.into_iter().filter(|element| caps.fp64 || !element.needs_fp64()).collect()
    }

    #[test]
    fn records_fit_the_local_memory() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [8 << 10, 16 << 10, caps.local_bytes] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for element in elements(&caps) {
                    for find in [Find::One(End::Max), Find::Both, Find::Moments] {
                        let plan = plan(1 << 20, element, element, find, true, &caps, false).unwrap();
                        let bytes = plan.work_group * super::local_bytes(element, find == Find::Moments);
                        assert!(bytes <= local_bytes, "{name}: {bytes} of {local_bytes} for {element}");
                        let whole = plan.work_group == tuning::reduce(&caps).work_group;
                        assert!(whole || local_bytes < 32 << 10, "{name}: {element}");
                    }
                }
            }
        }
    }

    #[test]
    fn joins_end_in_one_group_after_the_records() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 16_384, 16_385, 1 << 24, (1 << 34) + 1, 1 << 40, 1 << 48] {
                for element in elements(&caps) {
                    let plan = plan(n, element, element, Find::Moments, true, &caps, n >= 1 << 31).unwrap();
                    assert_eq!(element.is_float(), !plan.joins.is_empty(), "{name}: {n} of {element}");
                    assert!(plan.joins.last().is_none_or(|&count| count <= FAN), "{name}: {n} of {element}");
                    let records = plan.groups * record_bytes(element, true);
                    assert!(records <= plan.moments_at * moments_bytes(element), "{name}: {n} of {element}");
                }
            }
        }
    }
}
