//! Parameters of iotas.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::DeviceClass;

/// Geometry of iotas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Iota {
    pub(crate) work_group: usize,
    /// On CPU drivers: maximum groups, of one work-item each, and minimum elements of each group.
    pub(crate) max_groups: usize,
    pub(crate) min_run: usize,
}

/// Parameters of iotas by device class.
pub(crate) fn iota(caps: &Tuned) -> Iota {
    let work_group = match caps.class {
        DeviceClass::Cpu => 1,
        DeviceClass::Gpu => super::work_group(caps.chosen("work_group", 256), caps),
    };
    let max_groups = caps.chosen("max_groups", 8 * super::units(caps));
    Iota { work_group, max_groups, min_run: caps.chosen("min_run", 1024) }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = iota(caps);
    match caps.class {
        DeviceClass::Cpu => vec![
            Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 8, 16, 32], caps)),
            Parameter::new("min_run", usual.min_run, [1024, 4096, 16_384]),
        ],
        DeviceClass::Gpu => work_groups(usual.work_group, 0, &[64, 128, 256, 512], caps).into_iter().collect(),
    }
}
