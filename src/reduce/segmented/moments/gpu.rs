//! Moments of segments on OpenCL devices: the plan, then its launches.

use crate::{
    ElementType, Result, Scratch,
    reduce::axis::moments::gpu::Form,
    runtime::{ClInput, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_segments_moments.cl");
/// Elements of a chunk, and quads of a chunk.
const CHUNK: usize = 512;
const QUADS: usize = 8;
/// Chunks of a part: the fewest, and the most that a work-item joins (`CHUNKS_DEPTH` of the kernels).
const FEWEST_CHUNKS: usize = 8;
const MOST_CHUNKS: usize = 512;
/// Maximum number of parts, unless each has [`MOST_CHUNKS`]. One work-group joins all parts of a long segment.
const PARTS: usize = 1 << 14;
/// If segments have at most this many elements on average, a work-item has a whole segment.
const ALONE: usize = 64;
/// Minimum segments of a work-item on CPU drivers.
const CPU_SEGMENTS: usize = 64;

/// The launches for n > 0 elements and at least one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    /// Work-items of a team, which shares a segment; segments of each team; work-groups that process the segments.
    pub team: usize,
    pub each: usize,
    pub groups: usize,
    /// Elements of a part, tiles of as many elements, and work-groups that process the tiles. There are no long segments
    /// if there is only one tile.
    pub part: usize,
    pub tiles: usize,
    pub part_groups: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

pub fn plan(n: usize, segments: usize, form: &Form, offset: ElementType, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let work_group = match tuning::work_group_of(params.work_group, form.bytes(), caps) {
        // Each quad of a part needs a work-item of its own.
        few if few < QUADS => 1,
        enough => enough,
    };
    let cpu = work_group == 1;
    let team = match n / segments {
        _ if cpu => 1,
        0..=ALONE => 1,
        // A segment of at most CHUNK / 2 elements has at most half of the quads.
        length if length <= CHUNK / 2 && tuning::fits_locally(work_group * 2 * form.bytes(), caps) => QUADS / 2,
        _ => QUADS,
    };
    let each = if cpu { segments.div_ceil(8 * params.max_groups).max(CPU_SEGMENTS) } else { 1 };
    let chunks = n.div_ceil(CHUNK * PARTS).next_power_of_two().clamp(FEWEST_CHUNKS, MOST_CHUNKS);
    let part = chunks * CHUNK;
    let tiles = n.div_ceil(part);
    let program = ProgramSpec::new("reduce_segments_moments.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .element("T", form.element)
        .element("A", form.acc)
        .define("WG", work_group)
        .define("TEAM", team)
        .define("S", offset.storage())
        .define("OFFSET_T", if wide { "ulong" } else { "uint" });
    Ok(Plan {
        program,
        work_group,
        team,
        each,
        groups: segments.div_ceil(work_group / team * each),
        part,
        tiles,
        part_groups: tiles.div_ceil(if cpu { 1 } else { work_group / QUADS }),
        scratch_bytes: if tiles > 1 { 2 * tiles * QUADS * form.bytes() } else { 0 },
        wide,
    })
}

/// Writes the record of each segment.
pub(super) fn moments(
    device: &ClDevice,
    form: &Form,
    input: &ClInput,
    (offsets, offset): (&ClInput, ElementType),
    out: &ClInput,
) -> Result<()> {
    let (n, segments) = (input.len(), out.len());
    if segments == 0 {
        return Ok(());
    }
    if n == 0 {
        return device.fill(out.mem(), out.byte_offset(), segments * out.size(), &[0; 8]);
    }
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    let plan = plan(n, segments, form, offset, &caps, device.wide(n) || device.wide(segments))?;
    let (mut scratch, local) = (Scratch::new(), [plan.work_group, 1, 1]);
    let quads = scratch.cl(device, plan.scratch_bytes)?;
    let kernels = ["moments_heads", "moments_parts", "moments_join"];
    device.build_ahead(&plan.program, &kernels[..if plan.tiles > 1 { 3 } else { 1 }])?;
    // The last kernel does not read the input.
    let launch = |kernel| {
        let launch = device.launch(&plan.program, kernel)?;
        let launch = match kernel {
            "moments_join" => launch,
            _ => launch.mem(input.mem()).scalar(input.offset() as u64),
        };
        let launch = launch.offset(n as u64, plan.wide).mem(offsets.mem()).scalar(offsets.offset() as u64);
        let launch = launch.offset(segments as u64, plan.wide).offset(plan.part as u64, plan.wide);
        Ok::<_, crate::Error>(launch.offset(plan.tiles as u64, plan.wide))
    };
    let out_offset = (out.byte_offset() / 8) as u64;
    launch(kernels[0])?
        .offset(plan.each as u64, plan.wide)
        .mem(quads)
        .mem(out.mem())
        .scalar(out_offset)
        .run([plan.groups, 1, 1], local)?;
    if plan.tiles == 1 {
        return Ok(());
    }
    launch(kernels[1])?.mem(quads).run([plan.part_groups, 1, 1], local)?;
    launch(kernels[2])?.mem(quads).mem(out.mem()).scalar(out_offset).run([plan.tiles, 1, 1], local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_cover_every_segment_and_every_tile() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [256, 2 << 10, caps.local_bytes] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for (n, segments) in [(1, 1), (1, 1 << 20), (1 << 20, 1), (4097, 3), (1 << 28, 1 << 20), (1 << 34, 7)] {
                    for form in [Form::of::<f32>(), Form::of::<u8>(), Form::of::<i64>()] {
                        let plan = plan(n, segments, &form, ElementType::U64, &caps, true).unwrap();
                        let what = format!("{name}: {segments} of {n}: {plan:?}");
                        assert!(plan.groups * (plan.work_group / plan.team) * plan.each >= segments, "{what}");
                        assert!(plan.part * plan.tiles >= n && plan.part * (plan.tiles - 1) < n, "{what}");
                        let teams = if plan.work_group == 1 { 1 } else { plan.work_group / QUADS };
                        assert!(plan.part_groups * teams >= plan.tiles, "{what}");
                        let chunks = plan.part / CHUNK;
                        assert!(chunks.is_power_of_two() && chunks <= MOST_CHUNKS, "{what}");
                        assert!(plan.team == 1 || plan.each == 1, "{what}");
                        assert!(plan.work_group == 1 || plan.work_group * form.bytes() <= local_bytes, "{what}");
                    }
                }
            }
        }
    }
}
