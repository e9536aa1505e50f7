//! Parameters of permutations that are not transpositions.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::DeviceClass;

/// Geometry of permutations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Permute {
    pub(crate) work_group: usize,
    /// On GPUs: units that one work-item moves.
    pub(crate) each: usize,
    /// On CPU drivers: maximum groups, of one work-item each, and minimum units of each group.
    pub(crate) max_groups: usize,
    pub(crate) min_run: usize,
}

/// Parameters of permutations in units of `size` bytes by device class.
pub(crate) fn permute(caps: &Tuned, size: usize) -> Permute {
    match caps.class {
        DeviceClass::Cpu => Permute {
            work_group: 1,
            each: 1,
            max_groups: caps.chosen("max_groups", 8 * super::units(caps)),
            min_run: caps.chosen("min_run", 4096),
        },
        DeviceClass::Gpu => {
            let work_group = super::work_group(caps.chosen("work_group", 256), caps);
            let each = caps.chosen("each", (32 / size).min(4));
            Permute { work_group, each, max_groups: usize::MAX, min_run: 0 }
        }
    }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned, size: usize) -> Vec<Parameter> {
    let usual = permute(caps, super::unit(size).min(16));
    match caps.class {
        DeviceClass::Cpu => vec![
            Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 8, 16, 32], caps)),
            Parameter::new("min_run", usual.min_run, [1024, 4096, 16_384]),
        ],
        DeviceClass::Gpu => {
            let each = Parameter::new("each", usual.each, [1, 2, 4, 8]);
            work_groups(usual.work_group, 0, &[64, 128, 256, 512], caps).into_iter().chain([each]).collect()
        }
    }
}
