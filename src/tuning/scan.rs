//! Parameters of scans.

use super::{Parameter, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass, SubGroupBackend};

/// Teams of a work-group, of which each item has a place in a team.
const TEAMS: usize = 8;
/// Local memory of an item at most: an accumulator for each row of a tile.
const ITEM_BYTES: usize = 8 * 8;
/// Bytes of a tile's elements.
const TILE_BYTES: usize = 32 << 10;
/// Bytes beside that: two accumulators for each chunk, one for each level, and a few words.
const RESERVED_BYTES: usize = (2 * 64 + 8) * 8 + 64;

/// Geometry of scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// Whether sub-groups exchange values.
    pub(crate) shuffles: bool,
    /// Work-groups that work on two tiles at a time: the next one's elements are on their way to local memory while one is
    /// scanned. None where the device cannot copy in the background.
    pub(crate) ahead: usize,
}

/// Whether the device copies to local memory in the background.
fn copies(caps: &Capabilities) -> bool {
    caps.class == DeviceClass::Gpu && caps.sub_group.backend == SubGroupBackend::Ptx && caps.compute_capability >= 80
}

/// Parameters of scans by device class; kernels use `more` bytes of local memory beside those of a plain one.
pub(crate) fn scan(caps: &Capabilities, more: usize) -> Scan {
    let units = super::units(caps);
    // One item walks whole tiles.
    let alone = Scan { work_group: 1, max_groups: caps.chosen("max_groups", 8 * units), shuffles: false, ahead: 0 };
    if caps.class == DeviceClass::Cpu {
        return alone;
    }
    let (sub_group, max_groups) = (caps.sub_group, caps.chosen("max_groups", 16 * units));
    // These have one width; other compilers may choose another for each kernel.
    let shuffles = matches!(sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    if RESERVED_BYTES + more + super::RESERVED_BYTES > caps.local_bytes {
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
    let fits = RESERVED_BYTES + more + 2 * TILE_BYTES + super::RESERVED_BYTES <= caps.local_bytes;
    let ahead = if fits && copies(caps) { caps.chosen("ahead", 0) } else { 0 };
    Scan { work_group, max_groups, shuffles, ahead }
}

/// What is searched for: where each tile has a work-group of its own, made by sub-groups, whether the next one comes.
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
    let ahead = Capabilities { chosen: [("ahead", 1)].into(), ..caps.clone() };
    if scan(&ahead, 0).ahead > 0 {
        // Three groups of a multiprocessor have two tiles each in its local memory.
        parameters.push(Parameter::new("ahead", usual.ahead, [0, 2 * super::units(caps), 3 * super::units(caps)]));
    }
    parameters
}
