//! Histograms of many bins on GPUs: samples are partitioned by range of slots, then each range is counted in local
//! memory.

use super::{
    bins::Map,
    form::{Form, Mapped, map_arguments, zero},
    slots::OUTSIDE,
};
use crate::{
    ElementType, Result,
    counted::{ClCount, length, with_length},
    runtime::{
        ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    tuning::{self, Tuned},
};

const NAME: &str = "histogram_partition.cl";
const TEXT: &str = kernel_text!("histogram_partition.cl");
/// Maximum bytes of scratch, of which each sample of a round takes 2. Scratch is also at most the device's memory divided
/// by `MEMORY_PART`. H200, 2^28 i32 in 5 Mi bins: 835 GB/s in one round; 737 GB/s in three rounds of 256
/// MiB.
const SCRATCH_BYTES: usize = 1 << 30;
const MEMORY_PART: u64 = 16;
/// Minimum samples per work-group of the count.
const MIN_SHARE: usize = 1 << 14;

/// The launches of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub groups: usize,
    pub count_work_group: usize,
    pub count_groups: usize,
    pub ranges: usize,
    /// Index of the word in scratch at which the 16-bit numbers begin.
    pub numbers_at: usize,
    pub round: usize,
    pub scratch_bytes: usize,
}

/// The plan; `None` if the device does not support it, or if there are too few samples. `length` is as for
/// `plan_mapped`.
pub(super) fn plan(
    samples: usize,
    form: Form,
    mapped: Option<&Mapped>,
    length: Option<ElementType>,
    caps: &Tuned,
) -> Option<Partition> {
    let params = tuning::histogram(caps);
    let slots = form.bins + OUTSIDE;
    let words = caps.local_bytes.saturating_sub(tuning::RESERVED_BYTES) / 4;
    let (program, edge_bytes) = form.program(NAME, TEXT, caps);
    // PoCL, before it had sub-groups, broke barriers in loops whose length is read from memory.
    let loops = caps.checker || caps.sub_groups.iter().any(|group| group.backend.is_hardware());
    if !loops || caps.class == DeviceClass::Cpu || words < 512 || edge_bytes > 0 || samples < slots / 4 {
        return None;
    }
    let range_bits = words.ilog2().min(16);
    let ranges = slots.div_ceil(1 << range_bits).next_power_of_two();
    let work_group = params.work_group.min(1 << (words / 16).ilog2());
    let items = (1usize << (words / 4 / work_group).max(1).ilog2()).min(16);
    let replicas = (1usize << (words / 2 / ranges).max(1).ilog2()).min(8);
    let most = (ranges * replicas).max(2 * ranges + work_group + work_group * items);
    if ranges > params.max_partitions.min(work_group) || most > words {
        return None;
    }
    let numbers_at = (slots + 3 * ranges + 1).next_multiple_of(4);
    let memory =
        usize::try_from((caps.global_bytes / MEMORY_PART).min(caps.max_allocation_bytes)).unwrap_or(usize::MAX);
    let room = SCRATCH_BYTES.min(memory).checked_sub(4 * numbers_at + 16).filter(|&bytes| bytes > 1 << 16)? / 2;
    let round = samples.div_ceil(samples.div_ceil(room));
    let units = caps.compute_units.max(1) as usize;
    // The number of tables that fit the local memory of all compute units.
    let count_groups = units * (words >> range_bits).clamp(1, 4);
    let program = with_length(Mapped::apply(mapped, program), length)
        .define("WG", work_group)
        .define("COUNT_WG", params.large_work_group)
        .define("RANGES", ranges)
        .define("RANGE_BITS", range_bits)
        .define("ITEMS", items)
        .define("REPLICAS", replicas);
    Some(Partition {
        program,
        work_group,
        groups: round.div_ceil(work_group * items).min(params.max_groups),
        count_work_group: params.large_work_group,
        count_groups: round.div_ceil(MIN_SHARE).min(count_groups),
        ranges,
        numbers_at,
        round,
        scratch_bytes: 4 * numbers_at + (2 * round).next_multiple_of(16),
    })
}

impl Partition {
    /// Counts `n` samples from index `offset` on, or as many of them as a count says. The table of counts is at the
    /// start of `scratch`.
    pub(super) fn run(
        &self,
        device: &ClDevice,
        caps: &Tuned,
        (input, offset, n, count): (&ClInput, usize, usize, Option<&ClCount>),
        map: &Map,
        bins: usize,
        scratch: &ClMem,
    ) -> Result<()> {
        let (slots, local) = (bins + OUTSIDE, [self.work_group, 1, 1]);
        zero(device, scratch, slots + self.ranges, caps)?;
        let samples = |kernel| -> Result<_> {
            let launch = device.launch(&self.program, kernel)?.mem(input.mem()).scalar(offset as u64);
            Ok(length(launch, n, false, count, 0).scalar(bins as u32).mem(scratch).scalar(slots as u32))
        };
        map_arguments(device, samples("partition_totals")?, map)?.run([self.groups, 1, 1], local)?;
        let launch = device.launch(&self.program, "partition_offsets")?.mem(scratch).scalar(slots as u32);
        length(launch, n, false, count, 0).run([1, 1, 1], local)?;
        let launch = samples("partition_scatter")?.scalar(self.numbers_at as u32);
        map_arguments(device, launch, map)?.run([self.groups, 1, 1], local)?;
        let per = n.div_ceil(self.count_groups).next_multiple_of(8);
        let launch = device.launch(&self.program, "partition_count")?.mem(scratch).scalar(slots as u32);
        let launch = length(launch.scalar(self.numbers_at as u32), n, false, count, 0);
        let launch = launch.scalar(per as u32).scalar(slots as u32);
        launch.run([n.div_ceil(per), 1, 1], [self.count_work_group, 1, 1])
    }
}
