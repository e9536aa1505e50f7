//! Parameters of histograms.

use super::{Parameter, Tuned, of_units, reduce::ends_at_once, work_groups};
use crate::runtime::DeviceClass;

/// Geometry of histograms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) work_group: usize,
    /// Work-items of a work-group whose table takes most of the local memory, so that few such work-groups share a
    /// compute unit.
    pub(crate) large_work_group: usize,
    /// Maximum work-groups that share the input.
    pub(crate) max_groups: usize,
    /// Minimum bytes of input for each group, so that its table pays off.
    pub(crate) min_bytes: usize,
    /// Maximum replicas of a table in local memory, one for each lane, and maximum bytes of all replicas.
    pub(crate) max_replicas: usize,
    pub(crate) replica_bytes: usize,
    /// Maximum ranges of bins. Each range reads the whole input. Up to this number of ranges, that is faster than
    /// atomics in global memory.
    pub(crate) max_ranges: usize,
    /// Up to `few_ranges`, reading the input once for each range is faster than partitioning the samples first.
    /// `max_partitions` is the maximum number of partitions; 0 disables partitioning.
    pub(crate) few_ranges: usize,
    pub(crate) max_partitions: usize,
    /// Maximum bytes of the tables of all groups.
    pub(crate) table_bytes: usize,
    /// Maximum bytes of tables in global memory that are updated with atomics. Several tables reduce collisions.
    pub(crate) global_bytes: usize,
    /// Maximum bytes of local memory for the user's edges and their lookup table, if the table's cells also hold copies
    /// of edges. Without these copies, twice as many bytes are allowed. Larger edges and tables stay in global memory.
    pub(crate) edge_bytes: usize,
    /// Maximum bytes of local memory for the replicas of a table of weights.
    pub(crate) weighted_bytes: usize,
    /// Maximum counters of a table for which a last-block reduction adds up the tables. With more counters, or if this
    /// is 0, a second launch does.
    pub(crate) one_pass_slots: usize,
}

/// Value of [`Histogram::one_pass_slots`] on devices with last-block reductions. Times on an H100, in µs, without -> with
/// this reduction. 2^28 samples in 256 bins: `u8` 102 -> 96, `i32` 360 -> 353. In 1,024 bins: 360 -> 357. In 4,096 bins:
/// 363 -> 366. 2^16 samples of `u8`: 33 -> 9.
const ONE_PASS_SLOTS: usize = 2 << 10;

/// Parameters of histograms by device class.
pub(crate) fn histogram(caps: &Tuned) -> Histogram {
    let units = super::units(caps);
    let fits = |name, items| super::work_group(caps.chosen(name, items), caps);
    match caps.class {
        // Each group is one work-item that counts a contiguous range without atomics.
        DeviceClass::Cpu => Histogram {
            work_group: 1,
            large_work_group: 1,
            max_groups: caps.chosen("max_groups", 2 * units),
            min_bytes: caps.chosen("min_bytes", 64 << 10),
            max_replicas: 1,
            replica_bytes: 0,
            max_ranges: 1,
            few_ranges: 1,
            max_partitions: 0,
            table_bytes: 256 << 20,
            global_bytes: 256 << 20,
            edge_bytes: 0,
            weighted_bytes: 0,
            one_pass_slots: 0,
        },
        // H200, 256 bins of 2^28 i32: from 4 to 32 replicas and from 256 to 1,024 work-items per group, all reach 4,370
        // to 4,490 GB/s.
        DeviceClass::Gpu => Histogram {
            work_group: fits("work_group", 512),
            large_work_group: fits("large_work_group", 1024),
            // Two groups for each unit suffice. H200, 256 bins of 2^28 samples: i32 250 µs, 254 with four groups; u8 77 µs, 80
            // with four.
            max_groups: caps.chosen("max_groups", 2 * units),
            min_bytes: caps.chosen("min_bytes", 32 << 10),
            max_replicas: caps.chosen("max_replicas", 32),
            replica_bytes: caps.local_bytes / 2,
            max_ranges: 8,
            few_ranges: caps.chosen("few_ranges", 4),
            max_partitions: 512,
            table_bytes: 64 << 20,
            global_bytes: 4 << 20,
            edge_bytes: caps.local_bytes / 4,
            weighted_bytes: caps.local_bytes / 4,
            one_pass_slots: if ends_at_once(caps) && caps.chosen("one_pass", 1) != 0 { ONE_PASS_SLOTS } else { 0 },
        },
    }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    /// Local memory of a work-item that adds up tables.
    const ITEM_BYTES: usize = 8;
    let usual = histogram(caps);
    let min_bytes = Parameter::new("min_bytes", usual.min_bytes, [8 << 10, 32 << 10, 64 << 10, 128 << 10]);
    let groups = |factors: &[usize]| Parameter::new("max_groups", usual.max_groups, of_units(factors, caps));
    match caps.class {
        DeviceClass::Cpu => vec![groups(&[1, 2, 4, 8]), min_bytes],
        DeviceClass::Gpu => {
            let small = work_groups(usual.work_group, ITEM_BYTES, &[128, 256, 512, 1024], caps);
            let large = work_groups(usual.large_work_group, ITEM_BYTES, &[256, 512, 1024], caps);
            let large = large.map(|large| Parameter { name: "large_work_group", ..large });
            let one_pass = (usual.one_pass_slots > 0).then(|| Parameter::new("one_pass", 1, [0, 1]));
            let others = [
                groups(&[1, 2, 4, 8]),
                Parameter::new("max_replicas", usual.max_replicas, [1, 4, 8, 16, 32]),
                Parameter::new("few_ranges", usual.few_ranges, [2, 4, 8]),
                min_bytes,
            ];
            small.into_iter().chain(large).chain(others).chain(one_pass).collect()
        }
    }
}
