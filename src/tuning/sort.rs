//! Parameters of sorts.

use super::{Parameter, Tuned, of_units};
use crate::runtime::DeviceClass;

/// Geometry of sorts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sort {
    /// Maximum work-items of a work-group, and keys of each work-item in a tile.
    pub(crate) work_group: usize,
    pub(crate) items: usize,
    /// Maximum work-items of each of the 256 groups that add up counts.
    pub(crate) offsets_work_group: usize,
    /// Maximum bytes of a tile, in local memory.
    pub(crate) tile_bytes: usize,
    pub(crate) max_groups: usize,
    /// True if tiles use decoupled look-back on the counts of earlier tiles.
    pub(crate) look_back: bool,
    /// Maximum registers of a work-item, on NVIDIA GPUs. A multiprocessor holds two work-groups of 256 with 128 registers,
    /// three with 80.
    pub(crate) registers: usize,
}

/// Parameters of sorts by device class, for keys and values of that many bytes.
pub(crate) fn sort(caps: &Tuned, key_bytes: usize, value_bytes: usize) -> Sort {
    let units = super::units(caps);
    let look_back = caps.looks_back() && caps.chosen("look_back", 1) != 0;
    // Tiles of all work-groups on a multiprocessor fill its local memory, without spilled registers.
    let (items, tile_bytes, registers) = match (key_bytes, value_bytes) {
        _ if !caps.ptx => (16, 32 << 10, 0),
        // H200, 2^27 u32: 2.46 ms; with 48 keys in 128 registers 2.68, with 40 and 48 keys in 80 registers 2.57 and 2.48.
        (4, 0) => (44, 48 << 10, 80),
        // H200, 2^26 u64: 26 keys take 3.59 ms; 24 and 28 keys 3.62 and 4.39.
        (8, 0) => (26, 52 << 10, 80),
        // H200, 2^27 pairs of u32: 32 keys take 3.90 ms; 24, 28 and 36 keys 4.09, 4.21 and 4.59; 32 keys in 128 registers 4.09.
        (4 | 8, _) => (32, 32 << 10, 80),
        // Keys of other sizes: these parameters leave enough registers for the values that kernels derive from keys.
        (16, 0) => (24, 48 << 10, 80),
        (_, 0) => (48, 48 << 10, 128),
        _ => (32, 32 << 10, 128),
    };
    match caps.class {
        // Each group is one work-item.
        DeviceClass::Cpu => Sort {
            work_group: 1,
            items: caps.chosen("items", 1024),
            offsets_work_group: 1,
            tile_bytes: usize::MAX,
            max_groups: caps.chosen("max_groups", 4 * units),
            look_back: false,
            registers: 0,
        },
        // Small tiles and few groups, so that the checker sees groups with several tiles.
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
            // One tile for each group, so that groups that run at the same time write contiguous memory. H200, 2^26 pairs of
            // u32: 526 µs a pass, 865 with eight tiles.
            max_groups: caps.chosen("max_groups", if caps.ptx { 1 << 16 } else { 8 * units }),
            look_back,
            registers: caps.chosen("registers", registers),
        },
    }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned, size: usize) -> Vec<Parameter> {
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
