//! Parameters of merges.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::DeviceClass;

/// Geometry of merges, of merge sorts, and of other algorithms that use merge path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Merge {
    /// Maximum work-items of a work-group, and 4-byte elements of each work-item in a tile, without values and with values. On
    /// GPUs these numbers are odd, so that neighbouring work-items use different banks when they write their elements to
    /// local memory.
    pub(crate) work_group: usize,
    pub(crate) items: usize,
    pub(crate) items_with_values: usize,
    /// Elements of each work-item in merges of many elements.
    pub(crate) most_items: usize,
    /// Maximum registers of a work-item in merges without values, with `items` and with `most_items`. `None` if the compiler
    /// accepts no limit.
    pub(crate) registers: Option<usize>,
    pub(crate) most_registers: Option<usize>,
    pub(crate) max_groups: usize,
    /// Maximum groups of a search; each group first reads its pivots.
    pub(crate) max_search_groups: usize,
}

/// Parameters of merges by device class.
pub(crate) fn merge(caps: &Tuned) -> Merge {
    let units = super::units(caps);
    let registers = |name, usual| caps.ptx.then(|| caps.chosen(name, usual));
    match caps.class {
        // Each work-item processes a tile.
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
        // Small tiles and few groups, so that the checker sees groups with several tiles.
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
            // With 17 and 13 elements, assemblers for sm_90 use at most 72 and 56 registers; with values and 17 elements they
            // use 127.
            items: caps.chosen("items", 17),
            items_with_values: caps.chosen("items_with_values", 13),
            // H200, merges of 2^28 u32: 17 elements take 736 µs in 64 registers and 651 in 40; 27 take 580 in 40; 33 take 574
            // in 48 and 649 in 40. Merge sorts of 2^27: 27 elements take 5.59 ms in 40 registers, 33 take 5.35 in 48. With 40
            // registers six work-groups run at a time, with 48 five.
            most_items: caps.chosen("most_items", if caps.ptx { 33 } else { 17 }),
            registers: registers("registers", 64),
            most_registers: registers("most_registers", 48),
            max_groups: caps.chosen("max_groups", 1 << 20),
            max_search_groups: caps.chosen("max_search_groups", 16 * units),
        },
    }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = merge(caps);
    let groups = |name, usual, factors: &[usize]| Parameter::new(name, usual, of_units(factors, caps));
    match caps.class {
        DeviceClass::Cpu => vec![
            // 16 times a power of two, as merge sorts need at their start.
            Parameter::new("items", usual.items, [1024, 4096, 16_384]),
            groups("max_groups", usual.max_groups, &[1, 2, 4, 8, 16]),
            groups("max_search_groups", usual.max_search_groups, &[1, 2, 4, 8, 16]),
        ],
        DeviceClass::Gpu if caps.checker => Vec::new(),
        DeviceClass::Gpu => {
            let work_group = work_groups(usual.work_group, 0, &[64, 128, 256], caps);
            let others = [
                // At most 32: set operations keep one bit for each element in a word.
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
