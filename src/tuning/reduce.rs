//! Parameters of reductions.

use super::{Parameter, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass};

/// Local memory of an item at most: an accumulator, and what sub-groups in local memory exchange.
const ITEM_BYTES: usize = 8 + 4;

/// Geometry of reductions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reduce {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
}

/// Parameters of reductions by device class.
pub(crate) fn reduce(caps: &Capabilities) -> Reduce {
    let max_groups = caps.chosen("max_groups", 8 * super::units(caps));
    match caps.class {
        // One item walks a whole tile, which its compiler vectorises.
        DeviceClass::Cpu => Reduce { work_group: 1, max_groups },
        DeviceClass::Gpu => {
            Reduce { work_group: super::work_group_of(caps.chosen("work_group", 256), ITEM_BYTES, caps), max_groups }
        }
    }
}

/// What is searched for.
pub(super) fn parameters(caps: &Capabilities) -> Vec<Parameter> {
    let usual = reduce(caps);
    // A row of a tile has 256 words.
    let work_group = work_groups(usual.work_group, ITEM_BYTES, &[64, 128, 256], caps);
    let max_groups = Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 8, 16, 32], caps));
    work_group.into_iter().chain([max_groups]).collect()
}
