//! Parameters of copies.

use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Copy {
    /// One work-item a group, each with a contiguous run of at least `min_run` bytes.
    Runs { max_groups: usize, min_run: usize },
    /// Groups of `work_group` items with `words` 16-byte words each.
    Words { work_group: usize, words: usize },
}

/// Parameters of copies by device class.
pub(crate) fn copy(caps: &Capabilities) -> Copy {
    match caps.class {
        // 2^23 u32 on two cores, best of 25 runs on a busy machine: PoCL 3.1 1.2 ms, its clEnqueueCopyBuffer, which takes
        // one core, 2.3 ms; Intel's runtime 3.0 and 3.3 ms.
        DeviceClass::Cpu => Copy::Runs { max_groups: 4 * caps.compute_units.max(1) as usize, min_run: 16 << 10 },
        // H200, 2^28 u32: one word an item in groups of 128 reaches 4,264 GB/s, clEnqueueCopyBuffer 4,219, a grid-stride
        // loop less.
        DeviceClass::Gpu => Copy::Words { work_group: super::work_group(128, caps), words: 1 },
    }
}
