//! Parameters of scans.

use super::{Parameter, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass, SubGroupBackend};

/// Teams of a work-group, of which each item has a place in a team.
const TEAMS: usize = 8;
/// Local memory of an item at most: an accumulator for each row of a tile.
const ITEM_BYTES: usize = 8 * 8;
/// Bytes beside that: two accumulators for each chunk, two for each team, and a few words.
const RESERVED_BYTES: usize = (2 * 64 + 2 * TEAMS) * 8 + 64;

/// Geometry of scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// Whether sub-groups exchange values.
    pub(crate) shuffles: bool,
}

/// Parameters of scans by device class; kernels use `more` bytes of local memory beside those of a plain one.
pub(crate) fn scan(caps: &Capabilities, more: usize) -> Scan {
    let units = super::units(caps);
    // One item walks whole tiles.
    let alone = Scan { work_group: 1, max_groups: caps.chosen("max_groups", 8 * units), shuffles: false };
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
    Scan { work_group, max_groups, shuffles }
}

/// What is searched for: nothing where each tile has a work-group of its own, made by sub-groups.
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
    parameters
}
