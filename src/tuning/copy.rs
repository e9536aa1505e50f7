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

/// Geometry of gathers and scatters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gather {
    pub(crate) work_group: usize,
    /// On GPUs, how many times four neighbours an item takes, or units of elements of more than 4 bytes.
    pub(crate) each: usize,
    /// On CPU drivers: groups, of one item each, at most, and elements of each at least.
    pub(crate) max_groups: usize,
    pub(crate) min_run: usize,
}

/// Parameters of gathers and scatters of elements of `size` bytes by device class.
pub(crate) fn gather(caps: &Capabilities, size: usize) -> Gather {
    let max_groups = 8 * caps.compute_units.max(1) as usize;
    let (work_group, each) = match caps.class {
        DeviceClass::Cpu => (1, 1),
        // Eight elements of up to 4 bytes are on their way at once, four of more.
        DeviceClass::Gpu => (super::work_group(256, caps), if matches!(size, 1 | 2 | 4) { 2 } else { 4 }),
    };
    Gather { work_group, each, max_groups, min_run: 2048 }
}

/// Parameters of many copies at once, and of rows, by device class: `min_run` bytes are a tile of CPU drivers.
pub(crate) fn copy_ranges(caps: &Capabilities) -> Copy {
    match caps.class {
        DeviceClass::Cpu => Copy::Runs { max_groups: usize::MAX, min_run: 64 << 10 },
        DeviceClass::Gpu => Copy::Words { work_group: super::work_group(256, caps), words: 4 },
    }
}

/// Geometry of reversals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reverse {
    pub(crate) work_group: usize,
    /// On CPU drivers: groups, of one item each, at most, and elements of each at least.
    pub(crate) max_groups: usize,
    pub(crate) min_run: usize,
}

/// Parameters of reversals by device class.
pub(crate) fn reverse(caps: &Capabilities) -> Reverse {
    let max_groups = 4 * caps.compute_units.max(1) as usize;
    let work_group = match caps.class {
        DeviceClass::Cpu => 1,
        DeviceClass::Gpu => super::work_group(256, caps),
    };
    Reverse { work_group, max_groups, min_run: 4096 }
}
