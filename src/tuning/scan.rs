//! Parameters of scans.

use super::{Parameter, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass, SubGroupBackend};

/// Teams of a work-group, of which each item has a place in a team.
const TEAMS: usize = 8;
/// Local memory of an item at most: an accumulator for each row of a tile.
const ITEM_BYTES: usize = 8 * 8;
/// Bytes of a tile.
const TILE_BYTES: usize = 32 << 10;
/// Bytes beside that: two accumulators for each chunk, two for each team, and a few words.
const RESERVED_BYTES: usize = (2 * 64 + 2 * TEAMS) * 8 + 64;

/// Geometry of scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// Whether sub-groups exchange values.
    pub(crate) shuffles: bool,
    /// Registers of an item at most, on NVIDIA's GPUs, and where there are segments: 0 is what each form has.
    pub(crate) registers: usize,
    pub(crate) segment_registers: usize,
    /// Whether tiles of segments come to local memory past the registers.
    pub(crate) aside: bool,
}

/// Parameters of scans by device class; kernels use `more` bytes of local memory beside those of a plain one.
pub(crate) fn scan(caps: &Capabilities, more: usize) -> Scan {
    let units = super::units(caps);
    // One item walks whole tiles.
    let alone = Scan {
        work_group: 1,
        max_groups: caps.chosen("max_groups", 8 * units),
        shuffles: false,
        // H200, 2^28 u32: 64 registers 702 µs, 48, 56 and 72 711 to 774.
        registers: caps.chosen("registers", 64),
        segment_registers: caps.chosen("segment_registers", 0),
        aside: false,
    };
    if caps.class == DeviceClass::Cpu {
        return alone;
    }
    let (sub_group, max_groups) = (caps.sub_group, caps.chosen("max_groups", 16 * units));
    // These have one width; other compilers may choose another for each kernel.
    let shuffles = matches!(sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    // There what precedes an item's runs waits in local memory.
    let waiting = if sub_group.backend == SubGroupBackend::Ptx { ITEM_BYTES * TEAMS * 32 } else { 0 };
    if RESERVED_BYTES + more + waiting + super::RESERVED_BYTES > caps.local_bytes {
        return alone;
    }
    let work_group = if shuffles {
        super::work_group(TEAMS * sub_group.width.min(32) as usize, caps)
    } else {
        let local_bytes = caps.local_bytes.saturating_sub(RESERVED_BYTES + more);
        super::work_group_of(caps.chosen("work_group", 256), ITEM_BYTES, &Capabilities { local_bytes, ..caps.clone() })
    };
    if work_group < TEAMS {
        return alone;
    }
    // Past the registers, which marks and heads need. A multiprocessor that has 228 KiB of local memory holds five
    // tiles so, or four with totals of 8 bytes: 899 µs for 995 of 2^28 u32 in segments of 16, 949 for 1,100 by a power
    // law on an H200. Plain scans are slower so, 784 for 699.
    let copies = caps.ptx && caps.compute_capability >= 90 && caps.local_bytes >= 4 * TILE_BYTES && caps.looks_back();
    Scan { work_group, max_groups, shuffles, aside: copies && caps.chosen("aside", 1) != 0, ..alone }
}

/// What is searched for: no work-group where sub-groups make tiles, as it follows from their width.
pub(super) fn parameters(caps: &Capabilities) -> Vec<Parameter> {
    let usual = scan(caps, 0);
    let mut parameters = Vec::new();
    if usual.work_group > 1 && !usual.shuffles {
        parameters.extend(work_groups(usual.work_group, ITEM_BYTES, &[64, 128, 256], caps));
    }
    if usual.work_group == 1 || !caps.looks_back() {
        let candidates = of_units(&[2, 4, 8, 16, 32], caps);
        parameters.push(Parameter::new("max_groups", usual.max_groups, candidates));
    }
    if caps.ptx && usual.work_group > 1 {
        parameters.push(Parameter::new("registers", usual.registers, [48, 56, 64, 80]));
        parameters.push(Parameter::new("segment_registers", usual.segment_registers, [0, 48, 56, 64, 80]));
        parameters.extend(usual.aside.then(|| Parameter::new("aside", 1, [0, 1])));
    }
    parameters
}
