//! Parameters of selections.

use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of selections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TopK {
    pub(crate) work_group: usize,
    pub(crate) digit_bits: usize,
    /// Replicas of the counters of digits.
    pub(crate) replicas: usize,
    /// Keys that bounds are taken from, and the length of a row for each from which on they are.
    pub(crate) sample: usize,
    pub(crate) each: usize,
    /// Keys that one group puts in order, a power of two.
    pub(crate) order: usize,
    pub(crate) max_groups: usize,
}

/// Parameters of selections by device class, of which the first is taken that local memory has room for. The last needs none.
pub(crate) fn top_k(caps: &Capabilities) -> Vec<TopK> {
    let units = caps.compute_units.max(1) as usize;
    let alone =
        TopK { work_group: 1, digit_bits: 11, replicas: 1, sample: 1024, each: 64, order: 512, max_groups: 4 * units };
    let of = |work_group, digit_bits, replicas, sample, order| TopK {
        work_group,
        digit_bits,
        replicas,
        sample,
        each: 64,
        order,
        max_groups: 8 * units,
    };
    let shapes = match caps.class {
        DeviceClass::Cpu => Vec::new(),
        // An interpreter is to see several groups, and bounds of few keys.
        DeviceClass::Gpu if caps.checker => {
            vec![TopK { each: 4, max_groups: 3, ..of(32, 8, 1, 256, 256) }]
        }
        DeviceClass::Gpu => {
            vec![of(256, 11, 2, 4096, 2048), of(256, 11, 1, 2048, 2048), of(64, 8, 1, 512, 512)]
        }
    };
    let fits = |shape: &TopK| shape.work_group <= caps.max_work_group;
    shapes.into_iter().filter(fits).chain([alone]).collect()
}
