//! Parameters of reductions.

use crate::runtime::{Capabilities, DeviceClass};

/// Local memory of an item at most: an accumulator, and what sub-groups in local memory exchange.
const ITEM_BYTES: usize = 8 + 4;

/// Geometry of reductions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reduce {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
}

/// Parameters of reductions by device class.
pub(crate) fn reduce(caps: &Capabilities) -> Reduce {
    let units = caps.compute_units.max(1) as usize;
    match caps.class {
        // One item walks a whole tile, which its compiler vectorises.
        DeviceClass::Cpu => Reduce { work_group: 1, max_groups: 8 * units },
        DeviceClass::Gpu => Reduce { work_group: super::work_group_of(256, ITEM_BYTES, caps), max_groups: 8 * units },
    }
}
