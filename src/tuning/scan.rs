//! Parameters of scans.

use crate::runtime::{Capabilities, DeviceClass};

/// Local memory of an item at most: two accumulators for each row of a tile, and what sub-groups in local memory exchange.
const ITEM_BYTES: usize = 4 * 2 * 8 + 4;
/// Bytes beside that: the spine's accumulators.
const RESERVED_BYTES: usize = 48 * 8;

/// Geometry of scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
}

/// Parameters of scans by device class.
pub(crate) fn scan(caps: &Capabilities) -> Scan {
    let units = caps.compute_units.max(1) as usize;
    match caps.class {
        // One item walks whole tiles.
        DeviceClass::Cpu => Scan { work_group: 1, max_groups: 8 * units },
        DeviceClass::Gpu => {
            let local_bytes = caps.local_bytes.saturating_sub(RESERVED_BYTES);
            let work_group = super::work_group_of(256, ITEM_BYTES, &Capabilities { local_bytes, ..caps.clone() });
            Scan { work_group, max_groups: 16 * units }
        }
    }
}
