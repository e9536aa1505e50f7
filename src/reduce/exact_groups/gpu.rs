//! Exact sums by groups on OpenCL devices: the plans, then their launches.

use super::Exact;
use crate::{
    Element, ElementType, Result,
    reduce::exact::{MOST_GROUPS, words},
    runtime::{
        AnyInput, AnyOutput, ClInput, ProgramSpec, on_device,
        opencl::{ClDevice, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_exact_groups.cl");
/// The binary logarithm of the elements of a chunk, which are in flight at once: 64 bytes of accumulators.
pub(in crate::reduce) const fn log_chunk(acc: ElementType) -> usize {
    if acc.needs_fp64() { 3 } else { 4 }
}

/// Maximum elements of a group for each work-item of its team, until the team has the largest size.
pub(in crate::reduce) const ITEM: usize = 32;
/// Work-items of a team if neighbours in a group are neighbours in memory. Few sizes need few programs.
const TEAMS: [usize; 4] = [4, 8, 32, 128];
/// Approximate bytes of local memory for accumulators.
const TABLE_BYTES: usize = 8 << 10;
/// Work-groups for each work-group of a plain reduction. Many work-groups leave little work to those that run last.
pub(in crate::reduce) const WAVES: usize = 16;
/// Elements of a part of a long segment, at least.
const PART: usize = 1 << 14;

/// The result, and the types of a sum.
#[derive(Clone, Debug)]
pub struct Form {
    pub of: Exact,
    pub element: ElementType,
    pub acc: ElementType,
    pub out: ElementType,
    /// True if the summands are the products of two inputs.
    pub products: bool,
    /// The bytes of the result of an empty group.
    pub(crate) empty: Vec<u8>,
}

impl Form {
    pub fn of<T: Element, U: Element>(of: Exact) -> Self {
        let empty = match of {
            Exact::Sum => U::ZERO,
            Exact::Mean => U::from_f64(f64::NAN),
        };
        let empty = bytemuck::bytes_of(&empty).to_vec();
        Self { of, element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, products: false, empty }
    }
}

/// Work-items of the work-groups, and how they share groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub team: usize,
    pub tables: usize,
}

/// Work-items of a team for groups of `len` elements.
pub(in crate::reduce) fn team_of(len: usize) -> usize {
    *TEAMS.iter().find(|&&team| team * ITEM >= len).unwrap_or(&TEAMS[TEAMS.len() - 1])
}

/// The memory layout of a group's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Segments by offsets of this type; `counted` if their number is on the device.
    Segments { offset: ElementType, counted: bool },
    /// Lines along an axis. If `unit`, neighbours on the axis are neighbours in memory.
    Rows { unit: bool },
    /// Lines that are closer together than neighbours on the axis.
    Columns,
}

/// `parts` is true if the teams add to accumulators in global memory.
pub(in crate::reduce) fn shape(kind: Kind, team: usize, parts: bool, form: &Form, caps: &Tuned, wide: bool) -> Shape {
    let params = tuning::reduce(caps);
    // An accumulator of each team, a partial of each work-item, and some words of each team.
    let digits = if form.products && form.acc.needs_fp64() { 7 } else { 5 };
    let of_item = digits * 8 + 4 * 4;
    let room = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + 4 * words(form.acc) + 32);
    let mut work_group = params.work_group;
    while work_group > 1 && work_group * of_item > room {
        work_group /= 2;
    }
    let team = team.min(work_group);
    let table = 4 * words(form.acc) + 32;
    let tables = (work_group / team).min((TABLE_BYTES.min(room - work_group * of_item) / table).max(1));
    let tables = 1 << tables.ilog2();
    let log_chunk = log_chunk(form.acc);
    let program = ProgramSpec::new("reduce_exact_groups.cl", TEXT, caps)
        .element("T", form.element)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", work_group)
        .define("TEAM", team)
        .define("TABLES", tables)
        .define("CHUNK", 1 << log_chunk)
        .define("LOG_CHUNK", log_chunk)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("REGISTERS", params.exact_f64 && !form.products)
        .flag("DOT", form.products)
        .flag("FLUSHED", !caps.denormals)
        .flag("PARTS", parts)
        .flag("MEAN", form.of == Exact::Mean)
        .unoptimised_on_a_checker(caps);
    let program = match kind {
        Kind::Segments { offset, counted } => program
            .flag("SEGMENTS", true)
            .flag("COUNTED", counted)
            .define("S", if offset == ElementType::U64 { "ulong" } else { "uint" }),
        Kind::Rows { unit } => program.flag("UNIT", unit),
        Kind::Columns => program.flag("COLUMNS", true),
    };
    Shape { program, work_group, team, tables }
}

/// The launches for n > 0 elements and at least one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentsPlan {
    pub sums: Shape,
    pub groups: usize,
    /// Elements of a part; longer segments are listed.
    pub part: usize,
    /// The number of parts that the list has room for, and the launch that adds them.
    pub room: usize,
    pub parts: Shape,
    pub part_groups: usize,
    pub wide: bool,
}

pub fn plan_segments(
    n: usize,
    segments: usize,
    (offset, counted): (ElementType, bool),
    form: &Form,
    caps: &Tuned,
    wide: bool,
) -> Result<SegmentsPlan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let kind = Kind::Segments { offset, counted };
    let sums = shape(kind, team_of(n / segments), false, form, caps, wide);
    let parts = shape(kind, usize::MAX, true, form, caps, wide);
    let blocks = segments.div_ceil(sums.work_group / sums.team);
    // Each part changes a word of its segment's accumulator by at most 2^15 + 1.
    let part = PART.max(n.div_ceil(MOST_GROUPS - 1));
    // A listed segment is longer than a part. So the number of its parts, which is rounded up, is less than twice its
    // length divided by that of a part.
    let room = if n > part { 2 * n.div_ceil(part) } else { 0 };
    Ok(SegmentsPlan {
        groups: blocks.min(WAVES * params.max_groups),
        part,
        room,
        part_groups: room.min(WAVES / 4 * params.max_groups),
        sums,
        parts,
        wide,
    })
}

/// Sums of segments. `inputs` are the elements and the offsets; `other` has the other factors of products.
pub(crate) fn segments(
    device: &ClDevice,
    form: &Form,
    [input, offsets]: [AnyInput<'_>; 2],
    other: Option<AnyInput<'_>>,
    output: AnyOutput<'_>,
) -> Result<()> {
    match other {
        None => on_device(device, [input, offsets], [(output, false)], |[input, offsets], [out]| {
            run_segments(device, form, (input, None), (offsets, None), out)
        }),
        Some(other) => {
            on_device(device, [input, offsets, other], [(output, false)], |[input, offsets, other], [out]| {
                run_segments(device, form, (input, Some(other)), (offsets, None), out)
            })
        }
    }
}

/// Sums of segments that other kernels find, none of them empty. `found` holds their number. Results beyond the end of `out` are
/// left out. `offsets` has room for one more offset, the end of the last segment, which may be missing.
pub(crate) fn found(
    device: &ClDevice,
    form: &Form,
    (input, other): (&ClInput, Option<&ClInput>),
    offsets: &ClInput,
    found: &ClInput,
    out: &ClInput,
) -> Result<()> {
    if input.len() == 0 { Ok(()) } else { run_segments(device, form, (input, other), (offsets, Some(found)), out) }
}

/// The memory of a sum of segments.
struct Segments<'a> {
    input: &'a ClInput,
    other: Option<&'a ClInput>,
    offsets: &'a ClInput,
    found: Option<&'a ClInput>,
    list: &'a ClInput,
    sums: &'a ClInput,
    out: &'a ClInput,
}

impl Segments<'_> {
    fn arguments<'d>(&self, launch: Launch<'d>, plan: &SegmentsPlan) -> Launch<'d> {
        let Self { input, other, offsets, found, list, sums, out } = self;
        let launch = launch.mem(input.mem()).scalar(input.offset() as u64);
        let launch = match other {
            Some(other) => launch.mem(other.mem()).scalar(other.offset() as u64),
            None => launch,
        };
        let launch = launch.offset(input.len() as u64, plan.wide);
        let launch = launch.mem(offsets.mem()).scalar(offsets.offset() as u64).offset(out.len() as u64, plan.wide);
        let launch = match found {
            Some(found) => launch.mem(found.mem()).scalar(found.offset() as u64),
            None => launch,
        };
        let launch = launch.offset(plan.part as u64, plan.wide).mem(list.mem()).scalar(plan.room as u32);
        launch.mem(sums.mem()).mem(out.mem()).scalar(out.offset() as u64)
    }
}

fn run_segments(
    device: &ClDevice,
    form: &Form,
    (input, other): (&ClInput, Option<&ClInput>),
    (offsets, found): (&ClInput, Option<&ClInput>),
    out: &ClInput,
) -> Result<()> {
    let (n, segments) = (input.len(), out.len());
    if segments == 0 {
        return Ok(());
    }
    if n == 0 {
        let bytes = segments * form.out.size();
        return device.fill(out.mem(), out.byte_offset(), bytes, &form.empty);
    }
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    let offset = if offsets.size() == 8 { ElementType::U64 } else { ElementType::U32 };
    let wide = device.wide(n) || device.wide(segments);
    let plan = plan_segments(n, segments, (offset, found.is_some()), form, &caps, wide)?;
    let accumulator = 4 * (words(form.acc) + 1);
    let list = ClInput::pooled(device, 8 * (1 + 2 * plan.room), 8)?;
    let sums = ClInput::pooled(device, accumulator * plan.room.max(1), 4)?;
    device.fill(list.mem(), 0, 8, &[0; 8])?;
    let memory = Segments { input, other, offsets, found, list: &list, sums: &sums, out };
    memory
        .arguments(device.launch(&plan.sums.program, "exact_groups")?, &plan)
        .run([plan.groups, 1, 1], [plan.sums.work_group, 1, 1])?;
    if plan.room == 0 {
        return Ok(());
    }
    let local = [plan.parts.work_group, 1, 1];
    memory
        .arguments(device.launch(&plan.parts.program, "exact_groups")?, &plan)
        .run([plan.part_groups, 1, 1], local)?;
    round(device, &plan.parts, (&sums, plan.room), (Some((&list, plan.room)), 0), plan.part_groups, out)
}

/// Rounds the accumulators. With a list: those of the listed segments, by the lengths in the list. Without: all, for
/// groups of `len` elements.
pub(in crate::reduce) fn round(
    device: &ClDevice,
    shape: &Shape,
    (sums, count): (&ClInput, usize),
    (list, len): (Option<(&ClInput, usize)>, usize),
    groups: usize,
    out: &ClInput,
) -> Result<()> {
    let (list, room) = list.unwrap_or((sums, 0));
    device
        .launch(&shape.program, "exact_groups_round")?
        .mem(sums.mem())
        .scalar(count as u64)
        .mem(list.mem())
        .scalar(room as u32)
        .scalar(len as u64)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .run([groups.min(count), 1, 1], [shape.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Capabilities;

    fn text(form: &Form) -> String {
        let program = ProgramSpec::new("reduce_exact_groups.cl", TEXT, &Capabilities::samples()[0].1);
        program.element("T", form.element).element("A", form.acc).element("OUT", form.out).source()
    }

    /// The largest magnitude of a digit after whole chunks is the sum of two numbers: what a carry leaves, and the
    /// chunks' changes.
    #[test]
    fn digits_have_room_for_the_stated_chunks() {
        let text = text(&Form::of::<f32, f32>(Exact::Sum));
        for (acc, most_added, change) in
            [(ElementType::F32, 255, ((1i128 << 24) - 1) << 31), (ElementType::F64, 2047, 1 << 52)]
        {
            assert!(text.contains(&format!("#define WINDOW_CHUNKS ({most_added} / CHUNK)")), "{acc}");
            let chunk = 1 << log_chunk(acc);
            let most = |chunks: i128| (1i128 << 32) - 1 + chunks * chunk * change;
            let stated = i128::from(most_added) / chunk;
            assert!(most(stated) <= i64::MAX.into(), "{acc}");
            // 256 numbers of 55 bits still fit with what a carry leaves. So for `f32`, one more chunk of 16 fits, but
            // not two.
            let more = if acc == ElementType::F32 { 2 } else { 1 };
            assert!(most(stated + more) > i64::MAX.into(), "{acc}");
        }
    }

    #[test]
    fn plans_keep_the_bounds_of_their_kernels() {
        for (name, caps) in Tuned::samples() {
            for (local_bytes, max_work_group) in [(4096, 256), (16 << 10, 16), (16 << 10, 1024), (160 << 10, 1024)] {
                let caps = caps.with(|facts| {
                    (facts.local_bytes, facts.max_work_group) = (local_bytes, max_work_group);
                });
                for form in [
                    Form::of::<f32, f32>(Exact::Sum),
                    Form::of::<u8, f32>(Exact::Mean),
                    Form::of::<f64, f64>(Exact::Sum),
                    Form { products: true, ..Form::of::<f64, f64>(Exact::Sum) },
                ] {
                    for (n, segments) in [(1, 1), (1 << 14, 1), ((1 << 14) + 1, 3), (1 << 31, 1 << 20), (1 << 40, 7)] {
                        let wide = n >= 1 << 31;
                        let plan = match plan_segments(n, segments, (ElementType::U64, false), &form, &caps, wide) {
                            Ok(plan) => plan,
                            Err(error) => {
                                assert!(form.acc.needs_fp64() && !caps.fp64, "{name}: {error}");
                                continue;
                            }
                        };
                        let what = format!("{name}, {local_bytes} bytes, {n} in {segments}: {plan:?}");
                        for shape in [&plan.sums, &plan.parts] {
                            assert!(shape.work_group.is_multiple_of(shape.team), "{what}");
                            assert!(shape.tables >= 1 && shape.tables <= shape.work_group / shape.team, "{what}");
                        }
                        // Each part adds up to 2^15 + 1 to a word of its segment's accumulator.
                        assert!(n.div_ceil(plan.part) as i64 * ((1 << 15) + 1) < i32::MAX.into(), "{what}");
                        // The segments with the most parts for their length have one element more than a part.
                        let most = n / (plan.part + 1) * 2;
                        assert!(most <= plan.room && n.div_ceil(plan.part) <= plan.room.max(1), "{what}");
                    }
                }
            }
        }
    }
}
