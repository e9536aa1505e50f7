//! Parameters of sorts.

use super::{Parameter, of_units};
use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of sorts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sort {
    /// Items of a work-group at most, and the keys of each in a tile.
    pub(crate) work_group: usize,
    pub(crate) items: usize,
    /// Items of each of the 256 groups that add up counts, at most.
    pub(crate) offsets_work_group: usize,
    /// Bytes of a tile, in local memory, at most.
    pub(crate) tile_bytes: usize,
    pub(crate) max_groups: usize,
    /// Whether tiles wait for the counts of those before them.
    pub(crate) look_back: bool,
    /// Registers of an item at most, on NVIDIA's GPUs: with 128 a multiprocessor holds two work-groups of 256, with 80 three.
    pub(crate) registers: usize,
}

/// Parameters of sorts of keys and values of so many bytes, by device class.
pub(crate) fn sort(caps: &Capabilities, key_bytes: usize, value_bytes: usize) -> Sort {
    let units = super::units(caps);
    let look_back = caps.looks_back() && caps.chosen("look_back", 1) != 0;
    // Of as many work-groups as a multiprocessor holds, the tiles that fill its local memory without spilled registers.
    let (items, tile_bytes, registers) = match (key_bytes, value_bytes) {
        _ if !caps.ptx => (16, 32 << 10, 0),
        // H200, 2^27 u32: 48 keys in 128 registers 2.68 ms -> 2.46; 40 and 48 in 80 2.57 and 2.48.
        (4, 0) => (44, 48 << 10, 80),
        // H200, 2^26 u64: 3.94 ms -> 3.59; 24 keys 3.62, 28 4.39.
        (8, 0) => (26, 52 << 10, 80),
        // H200, 2^27 pairs of u32: 24, 28 and 36 keys 4.09, 4.21 and 4.59 ms, 32 3.90; in 128 registers 4.09.
        (4 | 8, _) => (32, 32 << 10, 80),
        // What is derived from other keys stays in registers.
        (16, 0) => (24, 48 << 10, 80),
        (_, 0) => (48, 48 << 10, 128),
        _ => (32, 32 << 10, 128),
    };
    match caps.class {
        // One item walks its keys.
        DeviceClass::Cpu => Sort {
            work_group: 1,
            items: caps.chosen("items", 1024),
            offsets_work_group: 1,
            tile_bytes: usize::MAX,
            max_groups: caps.chosen("max_groups", 4 * units),
            look_back: false,
            registers: 0,
        },
        // An interpreter is to see several tiles of a group, too.
        DeviceClass::Gpu if caps.checker => Sort {
            work_group: super::work_group(64, caps),
            items: 4,
            offsets_work_group: 4,
            tile_bytes: 4096,
            max_groups: 2,
            look_back,
            registers: 0,
        },
        DeviceClass::Gpu => Sort {
            work_group: super::work_group(256, caps),
            items: caps.chosen("items", items),
            offsets_work_group: caps.chosen("offsets_work_group", 256),
            tile_bytes: caps.chosen("tile_bytes", tile_bytes),
            // A tile each: what neighbouring groups write at the same time is side by side then. H200, 2^26 pairs of
            // u32: 865 µs a pass with eight -> 526.
            max_groups: caps.chosen("max_groups", if caps.ptx { 1 << 16 } else { 8 * units }),
            look_back,
            registers: caps.chosen("registers", registers),
        },
    }
}

/// What is searched for.
pub(super) fn parameters(caps: &Capabilities, size: usize) -> Vec<Parameter> {
    let usual = sort(caps, size, 0);
    match caps.class {
        DeviceClass::Cpu => vec![
            Parameter::new("items", usual.items, [512, 1024, 4096, 16_384]),
            Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 8, 16], caps)),
        ],
        DeviceClass::Gpu if caps.checker => Vec::new(),
        DeviceClass::Gpu => {
            let registers = caps.ptx.then(|| Parameter::new("registers", usual.registers, [64, 80, 96, 128]));
            let others = vec![
                Parameter::new("items", usual.items, [4, 8, 16, 24, 32, 48]),
                Parameter::new("tile_bytes", usual.tile_bytes, [8, 16, 32, 48, 64].map(|kib| kib << 10)),
                Parameter::new("max_groups", usual.max_groups, of_units(&[4, 8, 16, 32], caps)),
                Parameter::new("offsets_work_group", usual.offsets_work_group, [64, 128, 256]),
            ];
            let look_back = usual.look_back.then(|| Parameter::new("look_back", 1, [0, 1]));
            others.into_iter().chain(registers).chain(look_back).collect()
        }
    }
}
