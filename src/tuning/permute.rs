//! Parameters of permutations that are no transpositions.

use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of permutations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Permute {
    pub(crate) work_group: usize,
    /// Units of one item on GPUs.
    pub(crate) each: usize,
    /// On CPU drivers: groups, of one item each, at most, and units of each at least.
    pub(crate) max_groups: usize,
    pub(crate) min_run: usize,
}

/// Parameters of permutations in units of `size` bytes by device class.
pub(crate) fn permute(caps: &Capabilities, size: usize) -> Permute {
    let groups = 8 * caps.compute_units.max(1) as usize;
    match caps.class {
        DeviceClass::Cpu => Permute { work_group: 1, each: 1, max_groups: groups, min_run: 4096 },
        DeviceClass::Gpu => {
            let work_group = super::work_group(256, caps);
            Permute { work_group, each: (32 / size).min(4), max_groups: usize::MAX, min_run: 0 }
        }
    }
}
