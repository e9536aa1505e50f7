//! Histograms of channels on OpenCL devices: the plan, then its launches.

use super::MAX_CHANNELS;
use crate::{
    ElementType, Result, Scratch,
    histogram::{
        bins::{Edges, Map},
        form::{Form, map_arguments, zero},
        gpu::{Merge, merge_plan, round, round_up_words},
        slots::OUTSIDE,
    },
    runtime::{
        AnyInput, AnyOutput, ClInput, ProgramSpec, on_device,
        opencl::{ClDevice, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const NAME: &str = "histogram_channels.cl";
const TEXT: &str = kernel_text!("histogram_channels.cl");

/// The launches of one round over channels with bins of the same kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub count: ProgramSpec,
    pub work_group: usize,
    pub groups: usize,
    pub table_count: usize,
    /// `1 << replica_bits` replicas of the tables in local memory; `None` if tables are in global memory.
    pub replica_bits: Option<u32>,
    /// The merge of each channel.
    pub merges: Vec<Merge>,
    pub scratch_bytes: usize,
}

/// `bins` has the number of bins of each counted channel. `vector` is true if pixels are aligned to their size.
pub fn plan(
    pixels: usize,
    (element, counter): (ElementType, ElementType),
    map: u32,
    channels: usize,
    bins: &[usize],
    vector: bool,
    caps: &Tuned,
) -> Result<Plan> {
    caps.supports(element)?;
    let params = tuning::histogram(caps);
    let slots: usize = bins.iter().map(|bins| bins + OUTSIDE).sum();
    let (count, edge_bytes) = Form { element, bins: bins[0], map }.program(NAME, TEXT, caps);
    let count = count.define("CHANNELS", channels).define("ACTIVE", bins.len());
    let count = count.flag("VECTOR", vector && matches!(channels, 2 | 4));
    let local_words = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES + edge_bytes) / 4;
    let worthwhile = (pixels * channels * element.size()).div_ceil(params.min_bytes).max(1);
    let most = params.max_groups.min(worthwhile);
    let room = |bytes: usize| (bytes / (4 * slots)).max(1);
    let (count, groups, table_count, replica_bits, work_group) = if slots <= local_words {
        let budget = (params.replica_bytes / 4).min(local_words);
        let replica_bits = (budget / slots).clamp(1, params.max_replicas).ilog2();
        let words = slots << replica_bits;
        let large = 4 * words > caps.local_bytes / 2;
        let work_group = if large { params.large_work_group } else { params.work_group };
        let groups = most.min(room(params.table_bytes));
        let count = count.define("WG", work_group).define("LOCAL_WORDS", round_up_words(words, local_words));
        (count, groups, groups, Some(replica_bits), work_group)
    } else {
        let table_count = most.min(room(params.global_bytes)).min((pixels / slots).max(1));
        (count.define("WG", params.work_group).flag("GLOBAL_TABLES", true), most, table_count, None, params.work_group)
    };
    let merges = bins.iter().map(|bins| merge_plan(bins + OUTSIDE, table_count, counter, caps)).collect();
    Ok(Plan { count, work_group, groups, table_count, replica_bits, merges, scratch_bytes: 4 * slots * table_count })
}

/// Adds the arguments of `CHANNEL_PARAMS`: four values of each, one per channel.
fn channel_arguments<'d>(device: &ClDevice, launch: Launch<'d>, maps: &[(&Map, usize)]) -> Result<Launch<'d>> {
    fn four<X: Copy>(maps: &[(&Map, usize)], of: impl Fn(&Map) -> X) -> [X; MAX_CHANNELS] {
        std::array::from_fn(|c| of(maps[c.min(maps.len() - 1)].0))
    }
    macro_rules! floats {
        ($kind:ident) => {{
            let of = |map: &Map| match map {
                Map::$kind(Edges { lower, upper, width, scale, slack, closed, .. }) => {
                    ([*lower, *upper, *width, *scale, *slack], u32::from(*closed))
                }
                _ => unreachable!("channels of a pass are of one kind"),
            };
            let launch = (0..5).fold(launch, |launch, i| launch.scalar(four(maps, |map| of(map).0[i])));
            launch.scalar(four(maps, |map| of(map).1))
        }};
    }
    Ok(match maps[0].0 {
        Map::Ids => launch,
        Map::List { .. } => return map_arguments(device, launch, maps[0].0),
        Map::F32(_) => floats!(F32),
        Map::F64(_) => floats!(F64),
        Map::Integers(_) => {
            let of = |map: &Map| match map {
                Map::Integers(steps) => {
                    let words = [steps.lower as u64, steps.extent, steps.reciprocal];
                    (words, [steps.shift, u32::from(steps.closed)])
                }
                _ => unreachable!("channels of a pass are of one kind"),
            };
            let launch = (0..3).fold(launch, |launch, i| launch.scalar(four(maps, |map| of(map).0[i])));
            (0..2).fold(launch, |launch, i| launch.scalar(four(maps, |map| of(map).1[i])))
        }
    })
}

/// The first channels of `maps` that share a pass: neighbours with bins of one kind. A channel with given edges has its
/// own pass.
fn pass<'a, 'm>(maps: &'a [(&'m Map, usize)]) -> &'a [(&'m Map, usize)] {
    let map = Form::map_of(maps[0].0);
    let alike = maps.iter().take_while(|(other, _)| Form::map_of(other) == map).count();
    &maps[..if matches!(maps[0].0, Map::List { .. }) { 1 } else { alike }]
}

/// `maps` has the bins of each counted channel, and their number. Writes the counts to `counts`, and those outside the
/// bins to `outside`. With `keep`, adds to them.
#[allow(clippy::too_many_arguments, reason = "the caller's arguments, without its generic types")]
pub(crate) fn channels(
    device: &ClDevice,
    types: (ElementType, ElementType),
    channels: usize,
    maps: &[(&Map, usize)],
    input: AnyInput<'_>,
    outputs: [AnyOutput<'_>; 2],
    keep: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, [input], outputs.map(|output| (output, keep)), |[input], outputs| {
        run(device, types, channels, maps, input, outputs, keep, scratch)
    })
}

#[allow(clippy::too_many_arguments, reason = "the caller's arguments, without its generic types")]
fn run(
    device: &ClDevice,
    types: (ElementType, ElementType),
    channels: usize,
    maps: &[(&Map, usize)],
    input: &ClInput,
    [counts, outside]: [&ClInput; 2],
    keep: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    let (pixels, size) = (input.len() / channels, types.0.size());
    if pixels == 0 {
        if !keep {
            device.fill(counts.mem(), counts.byte_offset(), counts.len() * types.1.size(), &[0; 4])?;
            device.fill(outside.mem(), outside.byte_offset(), outside.len() * size_of::<u64>(), &[0; 8])?;
        }
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Histogram, size, input.len())?;
    let most = round(device) / channels;
    let (mut first, mut counts_at, mut outside_at) = (0, counts.offset(), outside.offset());
    while first < maps.len() {
        let these = pass(&maps[first..]);
        let (map, active) = (Form::map_of(these[0].0), these.len());
        let bins: Vec<usize> = these.iter().map(|&(_, bins)| bins).collect();
        let offset = input.offset() + first;
        let vector = (offset * size).is_multiple_of(channels * size);
        let plan = plan(pixels.min(most), types, map, channels, &bins, vector, &caps)?;
        let tables = scratch.cl(device, plan.scratch_bytes)?;
        let four: [u32; MAX_CHANNELS] = std::array::from_fn(|c| bins.get(c).map_or(0, |&bins| bins as u32));
        for start in (0..pixels).step_by(most) {
            if plan.replica_bits.is_none() {
                zero(device, tables, plan.scratch_bytes / 4, &caps)?;
            }
            let launch = device
                .launch(&plan.count, "histogram_channels")?
                .mem(input.mem())
                .scalar((offset + start * channels) as u64)
                .scalar(most.min(pixels - start) as u32)
                .scalar(four)
                .mem(tables)
                .scalar(plan.table_count as u32)
                .scalar(plan.replica_bits.unwrap_or(0));
            let launch = channel_arguments(device, launch, these)?;
            launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])?;
            let (mut table_at, mut counts_at, mut outside_at) = (0, counts_at, outside_at);
            for (merge, bins) in plan.merges.iter().zip(&bins) {
                let places = [(counts.mem(), counts_at), (outside.mem(), outside_at)];
                merge.run(device, (tables, table_at), plan.table_count, *bins, places, keep || start > 0)?;
                table_at += plan.table_count * (bins + OUTSIDE);
                counts_at += bins;
                outside_at += OUTSIDE;
            }
        }
        counts_at += bins.iter().sum::<usize>();
        outside_at += OUTSIDE * active;
        first += active;
    }
    Ok(())
}
