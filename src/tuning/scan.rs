//! Parameters of scans.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::{DeviceClass, SubGroupBackend};

/// Lane groups of a work-group.
const TEAMS: usize = 8;
/// Maximum local memory of a work-item: an accumulator for each row of a tile.
const ITEM_BYTES: usize = 8 * 8;
/// Bytes of a tile.
const TILE_BYTES: usize = 32 << 10;
/// Other local memory: two accumulators for each chunk, two for each lane group, and a few words.
const RESERVED_BYTES: usize = (2 * 64 + 2 * TEAMS) * 8 + 64;

/// Geometry of scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// True if sub-groups exchange values by shuffles.
    pub(crate) shuffles: bool,
    /// Maximum registers of a work-item on NVIDIA GPUs, for plain scans and for scans of segments; 0: the default of each
    /// variant.
    pub(crate) registers: usize,
    pub(crate) segment_registers: usize,
    /// True if tiles of segments are copied to local memory asynchronously, without registers.
    pub(crate) aside: bool,
}

/// Parameters of scans by device class; `more` is local memory that kernels use in addition to a plain scan's.
pub(crate) fn scan(caps: &Tuned, more: usize) -> Scan {
    let units = super::units(caps);
    // Each work-item processes whole tiles.
    let alone = Scan {
        work_group: 1,
        max_groups: caps.chosen("max_groups", 8 * units),
        shuffles: false,
        // H200, 2^28 u32: 702 µs with 64 registers; 711 to 774 with 48, 56 and 72.
        registers: caps.chosen("registers", 64),
        segment_registers: caps.chosen("segment_registers", 0),
        aside: false,
    };
    if caps.class == DeviceClass::Cpu {
        return alone;
    }
    let (sub_group, max_groups) = (caps.sub_group, caps.chosen("max_groups", 16 * units));
    // Only these back ends have a fixed width; other compilers may choose a width for each kernel.
    let shuffles = matches!(sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    // With PTX, the exclusive prefixes of a work-item's runs are in local memory.
    let waiting = if sub_group.backend == SubGroupBackend::Ptx { ITEM_BYTES * TEAMS * 32 } else { 0 };
    if RESERVED_BYTES + more + waiting + super::RESERVED_BYTES > caps.local_bytes {
        return alone;
    }
    let work_group = if shuffles {
        super::work_group(TEAMS * sub_group.width.min(32) as usize, caps)
    } else {
        let local_bytes = caps.local_bytes.saturating_sub(RESERVED_BYTES + more);
        // An interpreter runs the work-items one after another.
        let usual = if caps.checker { 64 } else { 256 };
        let caps = &caps.with(|facts| facts.local_bytes = local_bytes);
        super::work_group_of(caps.chosen("work_group", usual), ITEM_BYTES, caps)
    };
    if work_group < TEAMS {
        return alone;
    }
    // Asynchronous copies leave registers free for segment-head flags. A multiprocessor with 228 KiB of local memory
    // then holds five tiles, or four with 8-byte aggregates. H200, 2^28 u32: 995 -> 899 µs in segments of 16, 1,100 ->
    // 949 in segments by a power law. Plain scans are slower with asynchronous copies, 784 µs instead of 699.
    let copies = caps.ptx && caps.compute_capability >= 90 && caps.local_bytes >= 4 * TILE_BYTES && caps.looks_back();
    Scan { work_group, max_groups, shuffles, aside: copies && caps.chosen("aside", 1) != 0, ..alone }
}

/// The parameters that `oclprim tune` searches. If sub-groups use shuffles, their width determines the work-group.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
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
