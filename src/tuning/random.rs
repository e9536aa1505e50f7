//! Parameters of random numbers.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::DeviceClass;

/// Local memory of a work-item: the four words of one Philox call.
const ITEM_BYTES: usize = 16;

/// Geometry of random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Random {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// Minimum 16-byte words of a group of one work-item.
    pub(crate) min_run: usize,
}

/// Parameters of random numbers by device class.
pub(crate) fn random(caps: &Tuned) -> Random {
    let max_groups = |each: usize| caps.chosen("max_groups", each * super::units(caps));
    let min_run = caps.chosen("min_run", 256);
    match caps.class {
        DeviceClass::Cpu => Random { work_group: 1, max_groups: max_groups(8), min_run },
        DeviceClass::Gpu => {
            let work_group = super::work_group_of(caps.chosen("work_group", 256), ITEM_BYTES, caps);
            Random { work_group, max_groups: max_groups(32), min_run }
        }
    }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = random(caps);
    let groups = |factors: &[usize]| Parameter::new("max_groups", usual.max_groups, of_units(factors, caps));
    match caps.class {
        DeviceClass::Cpu => {
            vec![groups(&[1, 2, 4, 8, 16, 32]), Parameter::new("min_run", usual.min_run, [256, 1024, 4096])]
        }
        DeviceClass::Gpu => {
            let work_group = work_groups(usual.work_group, ITEM_BYTES, &[64, 128, 256, 512], caps);
            work_group.into_iter().chain([groups(&[8, 16, 32, 64])]).collect()
        }
    }
}
