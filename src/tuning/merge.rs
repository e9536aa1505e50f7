//! Parameters of merges.

use super::{Parameter, of_units, work_groups};
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
    let units = super::units(caps);
    let registers = |name, usual| caps.ptx.then(|| caps.chosen(name, usual));
    match caps.class {
        // One item walks through a tile.
        DeviceClass::Cpu => {
            let items = caps.chosen("items", 4096);
            Merge {
                work_group: 1,
                items,
                items_with_values: items,
                most_items: items,
                registers: None,
                most_registers: None,
                max_groups: caps.chosen("max_groups", 4 * units),
                max_search_groups: caps.chosen("max_search_groups", 4 * units),
            }
        }
        // An interpreter is to see several tiles of a group, too.
        DeviceClass::Gpu if caps.checker => Merge {
            work_group: super::work_group(32, caps),
            items: 3,
            items_with_values: 3,
            most_items: 3,
            registers: None,
            most_registers: None,
            max_groups: 2,
            max_search_groups: 2,
        },
        DeviceClass::Gpu => Merge {
            work_group: super::work_group(caps.chosen("work_group", 256), caps),
            // With 17 and 13 assemblers for sm_90 keep to 72 and 56 registers; with values and 17 they take 127.
            items: caps.chosen("items", 17),
            items_with_values: caps.chosen("items_with_values", 13),
            // On an H200, merges of 2^28 u32, items and registers: 17 and 64 736 µs, 40 651; 27 and 40 580; 33 and 48
            // 574, 40 649; merge sorts of 2^27: 27 and 40 5.59 ms, 33 and 48 5.35. In 40 there are six work-groups at a
            // time, in 48 five.
            most_items: caps.chosen("most_items", if caps.ptx { 33 } else { 17 }),
            registers: registers("registers", 64),
            most_registers: registers("most_registers", 48),
            max_groups: caps.chosen("max_groups", 1 << 20),
            max_search_groups: caps.chosen("max_search_groups", 16 * units),
        },
    }
}

/// What is searched for.
pub(super) fn parameters(caps: &Capabilities) -> Vec<Parameter> {
    let usual = merge(caps);
    let groups = |name, usual, factors: &[usize]| Parameter::new(name, usual, of_units(factors, caps));
    match caps.class {
        DeviceClass::Cpu => vec![
            // Sixteen times a power of two: what merge sorts begin with.
            Parameter::new("items", usual.items, [1024, 4096, 16_384]),
            groups("max_groups", usual.max_groups, &[1, 2, 4, 8, 16]),
            groups("max_search_groups", usual.max_search_groups, &[1, 2, 4, 8, 16]),
        ],
        DeviceClass::Gpu if caps.checker => Vec::new(),
        DeviceClass::Gpu => {
            let work_group = work_groups(usual.work_group, 0, &[64, 128, 256], caps);
            let others = [
                // Set operations have a bit of a word for each.
                Parameter::new("items", usual.items, [9, 13, 17, 21, 25]),
                Parameter::new("items_with_values", usual.items_with_values, [9, 13, 17]),
                Parameter::new("most_items", usual.most_items, [17, 25, 27, 33]),
                groups("max_groups", usual.max_groups, &[8, 16, 32]),
                groups("max_search_groups", usual.max_search_groups, &[4, 8, 16, 32]),
            ];
            let registers = [("registers", usual.registers), ("most_registers", usual.most_registers)];
            let registers = registers.into_iter().filter_map(|(name, usual)| Some((name, usual?)));
            let registers = registers.map(|(name, usual)| Parameter::new(name, usual, [40, 48, 64, 80]));
            work_group.into_iter().chain(others).chain(registers).collect()
        }
    }
}
