//! Parameters of scans.

use crate::runtime::{Capabilities, DeviceClass, SubGroupBackend};

/// Teams of a work-group, of which each item has a place in a team.
const TEAMS: usize = 8;
/// Local memory of an item at most: an accumulator for each row of a tile.
const ITEM_BYTES: usize = 8 * 8;
/// Bytes beside that: two accumulators for each chunk, one for each level, and a few words.
const RESERVED_BYTES: usize = (2 * 64 + 8) * 8 + 64;

/// Geometry of scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// Whether sub-groups exchange values.
    pub(crate) shuffles: bool,
}

/// Parameters of scans by device class.
pub(crate) fn scan(caps: &Capabilities) -> Scan {
    let units = caps.compute_units.max(1) as usize;
    // One item walks whole tiles.
    let alone = Scan { work_group: 1, max_groups: 8 * units, shuffles: false };
    if caps.class == DeviceClass::Cpu {
        return alone;
    }
    let (sub_group, max_groups) = (caps.sub_group, 16 * units);
    // These have one width; other compilers may choose another for each kernel.
    let shuffles = matches!(sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    let work_group = if shuffles {
        super::work_group(TEAMS * sub_group.width.min(32) as usize, caps)
    } else {
        let local_bytes = caps.local_bytes.saturating_sub(RESERVED_BYTES);
        super::work_group_of(256, ITEM_BYTES, &Capabilities { local_bytes, ..caps.clone() })
    };
    if work_group < TEAMS { alone } else { Scan { work_group, max_groups, shuffles } }
}
