//! Parameters of merges.

use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of merges, of merge sorts, and of what else goes by merge path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Merge {
    /// Items of a work-group at most, and the elements of 4 bytes that each has in a tile, without values and with them: an
    /// odd number, so that neighbours who write their own elements to local memory use different banks.
    pub(crate) work_group: usize,
    pub(crate) items: usize,
    pub(crate) items_with_values: usize,
    /// The same where merges of many elements have more.
    pub(crate) most_items: usize,
    /// Registers of an item at most, and of one with `most_items`, where there are no values and a compiler can be told.
    pub(crate) registers: Option<usize>,
    pub(crate) most_registers: Option<usize>,
    pub(crate) max_groups: usize,
    /// Groups of a search: each reads its pivots first.
    pub(crate) max_search_groups: usize,
}

/// Parameters of merges by device class.
pub(crate) fn merge(caps: &Capabilities) -> Merge {
    let units = caps.compute_units.max(1) as usize;
    let all = Merge {
        work_group: super::work_group(256, caps),
        // With 17 and 13 assemblers for sm_90 keep to 72 and 56 registers; with values and 17 they take 127.
        items: 17,
        items_with_values: 13,
        // On an H200, merges of 2^28 u32, items and registers: 17 and 64 736 µs, 40 651; 27 and 40 580; 33 and 48 574, 40 649;
        // merge sorts of 2^27: 27 and 40 5.59 ms, 33 and 48 5.35. In 40 there are six work-groups at a time, in 48 five.
        most_items: if caps.ptx { 33 } else { 17 },
        registers: caps.ptx.then_some(64),
        most_registers: caps.ptx.then_some(48),
        max_groups: 1 << 20,
        max_search_groups: 16 * units,
    };
    match caps.class {
        // One item walks through a tile.
        DeviceClass::Cpu => {
            let items = 4096;
            Merge {
                work_group: 1,
                items,
                items_with_values: items,
                most_items: items,
                registers: None,
                most_registers: None,
                max_groups: 4 * units,
                max_search_groups: 4 * units,
            }
        }
        // An interpreter is to see several tiles of a group, too.
        DeviceClass::Gpu if caps.checker => Merge {
            work_group: 32,
            items: 3,
            items_with_values: 3,
            most_items: 3,
            max_groups: 2,
            max_search_groups: 2,
            ..all
        },
        DeviceClass::Gpu => all,
    }
}
