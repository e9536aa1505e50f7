//! Parameters of merges.

use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of merges, of merge sorts, and of what else goes by merge path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Merge {
    /// Items of a work-group at most, and the elements of 4 bytes that each has in a tile: an odd number, so that neighbours
    /// who write their own elements to local memory use different banks.
    pub(crate) work_group: usize,
    pub(crate) items: usize,
    pub(crate) max_groups: usize,
    /// Groups of a search: each reads its pivots first.
    pub(crate) max_search_groups: usize,
}

/// Parameters of merges by device class.
pub(crate) fn merge(caps: &Capabilities) -> Merge {
    let units = caps.compute_units.max(1) as usize;
    match caps.class {
        // One item walks through a tile.
        DeviceClass::Cpu => Merge { work_group: 1, items: 4096, max_groups: 4 * units, max_search_groups: 4 * units },
        // An interpreter is to see several tiles of a group, too.
        DeviceClass::Gpu if caps.checker => Merge { work_group: 32, items: 3, max_groups: 2, max_search_groups: 2 },
        DeviceClass::Gpu => Merge {
            work_group: super::work_group(256, caps),
            items: 15,
            max_groups: 1 << 20,
            max_search_groups: 16 * units,
        },
    }
}
