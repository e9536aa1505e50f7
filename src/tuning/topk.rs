//! Parameters of selections by rank.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::DeviceClass;

/// Geometry of selections by rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TopK {
    pub(crate) work_group: usize,
    pub(crate) digit_bits: usize,
    /// Replicas of the digit counters.
    pub(crate) replicas: usize,
    /// Number of keys that a row samples to find bounds. Rows are sampled only if all rows together have at least
    /// `sample * each` keys.
    pub(crate) sample: usize,
    pub(crate) each: usize,
    /// Keys that one group sorts, a power of two.
    pub(crate) order: usize,
    pub(crate) max_groups: usize,
}

/// Parameters of selections by rank, by device class. The first entry that fits into local memory is used; the last
/// entry needs none.
pub(crate) fn top_k(caps: &Tuned) -> Vec<TopK> {
    let units = super::units(caps);
    // NVIDIA's driver takes about a second to build the kernels that sample and list keys. H200, the 32 largest of 2^20
    // keys: 80 us with samples, 66 us without.
    let each = caps.chosen("each", if caps.ptx { 1024 } else { 64 });
    let alone = TopK {
        work_group: 1,
        digit_bits: 11,
        replicas: 1,
        sample: 1024,
        each,
        order: 512,
        max_groups: caps.chosen("max_groups", 4 * units),
    };
    let of = |work_group, digit_bits, replicas, sample, order| TopK {
        work_group,
        digit_bits,
        replicas,
        sample,
        each,
        order,
        // H200, 3, 4, 6, 12 and 16 groups for each unit: 2,870, 3,086, 2,881, 3,072 and 3,013 GB/s; 8 groups: 3,110.
        max_groups: caps.chosen("max_groups", 8 * units),
    };
    let shapes = match caps.class {
        DeviceClass::Cpu => return vec![TopK { sample: caps.chosen("sample", alone.sample), ..alone }],
        // Small numbers, so that the checker sees several groups, and bounds from few keys.
        DeviceClass::Gpu if caps.checker => {
            vec![TopK { each: 4, max_groups: 3, ..of(32, 8, 1, 256, 256) }]
        }
        DeviceClass::Gpu => {
            let (replicas, sample) = (caps.chosen("replicas", 2), caps.chosen("sample", 4096));
            vec![
                of(caps.chosen("work_group", 256), 11, replicas, sample, 2048),
                of(256, 11, 1, 2048, 2048),
                TopK { each: caps.chosen("each", 64), ..of(64, 8, 1, 512, 512) },
            ]
        }
    };
    let fits = |shape: &TopK| shape.work_group <= caps.max_work_group;
    shapes.into_iter().filter(fits).chain([alone]).collect()
}

/// The parameters of the first entry that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = top_k(caps)[0];
    let groups = |factors: &[usize]| Parameter::new("max_groups", usual.max_groups, of_units(factors, caps));
    let each = Parameter::new("each", usual.each, [16, 64, 256, 1024]);
    match caps.class {
        DeviceClass::Cpu => {
            vec![groups(&[1, 2, 4, 8, 16]), each, Parameter::new("sample", usual.sample, [512, 1024, 4096])]
        }
        DeviceClass::Gpu if caps.checker => Vec::new(),
        // If the first entry does not fit, search only the parameters that the other entries also use.
        DeviceClass::Gpu if usual.work_group < 256 => vec![groups(&[2, 4, 8, 16]), each],
        DeviceClass::Gpu => {
            let others = [
                groups(&[2, 4, 8, 16]),
                each,
                Parameter::new("sample", usual.sample, [1024, 2048, 4096]),
                Parameter::new("replicas", usual.replicas, [1, 2, 4]),
            ];
            work_groups(usual.work_group, 0, &[128, 256], caps).into_iter().chain(others).collect()
        }
    }
}
