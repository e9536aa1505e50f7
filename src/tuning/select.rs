//! Parameters of selections.

use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of selections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Select {
    /// Items of a work-group at most, and vectors of 16 bytes of each in a tile.
    pub(crate) work_group: usize,
    pub(crate) rows: usize,
    /// Bytes of local memory in which a tile is put in order, at most.
    pub(crate) tile_bytes: usize,
    pub(crate) max_groups: usize,
    /// Neighbours of one item at least, on CPU drivers.
    pub(crate) min_run: usize,
}

/// Parameters of selections by device class.
pub(crate) fn select(caps: &Capabilities) -> Select {
    let units = caps.compute_units.max(1) as usize;
    match caps.class {
        // One item walks its elements.
        DeviceClass::Cpu => {
            Select { work_group: 1, rows: 0, tile_bytes: usize::MAX, max_groups: 4 * units, min_run: 2048 }
        }
        // An interpreter is to see several tiles of a group, too.
        DeviceClass::Gpu if caps.checker => {
            Select { work_group: 32, rows: 2, tile_bytes: 4096, max_groups: 2, min_run: 0 }
        }
        DeviceClass::Gpu => Select {
            work_group: super::work_group(256, caps),
            rows: if caps.ptx { 8 } else { 4 },
            tile_bytes: (if caps.ptx { 32 } else { 16 } << 10) + 256,
            max_groups: 16 * units,
            min_run: 0,
        },
    }
}
