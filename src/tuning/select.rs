//! Parameters of selections.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::{DeviceClass, SubGroupBackend};

/// Geometry of selections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Select {
    /// Maximum work-items of a work-group, and 16-byte vectors of each work-item in a tile. The number of vectors is a
    /// power of two, at least 2.
    pub(crate) work_group: usize,
    pub(crate) rows: usize,
    pub(crate) max_groups: usize,
    /// On CPU drivers: minimum contiguous elements of one work-item.
    pub(crate) min_run: usize,
    /// Maximum registers of a work-item on NVIDIA GPUs: for one pass that moves elements to one list, and for two lists.
    pub(crate) registers: usize,
    pub(crate) partition_registers: usize,
}

/// Parameters of selections by device class.
pub(crate) fn select(caps: &Tuned) -> Select {
    let units = super::units(caps);
    match caps.class {
        // Each group is one work-item.
        DeviceClass::Cpu => Select {
            work_group: 1,
            rows: 0,
            max_groups: caps.chosen("max_groups", 4 * units),
            min_run: caps.chosen("min_run", 2048),
            registers: 0,
            partition_registers: 0,
        },
        // Small tiles and few groups, so that the checker sees groups with several tiles.
        DeviceClass::Gpu if caps.checker => Select {
            work_group: super::work_group(32, caps),
            rows: 2,
            max_groups: 2,
            min_run: 0,
            registers: 0,
            partition_registers: 0,
        },
        DeviceClass::Gpu => Select {
            work_group: super::work_group(caps.chosen("work_group", 256), caps),
            rows: caps.chosen("rows", if caps.ptx { 8 } else { 4 }),
            max_groups: caps.chosen("max_groups", 16 * units),
            min_run: 0,
            // H200, 10 % of 2^28 u32: 421 µs with 40 registers, 449 with 48. Tiles take local memory instead of
            // registers, so 40 registers suffice.
            registers: caps.chosen("registers", if caps.compute_capability >= 80 { 40 } else { 80 }),
            partition_registers: caps.chosen("partition_registers", 64),
        },
    }
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = select(caps);
    match caps.class {
        DeviceClass::Cpu => vec![
            Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 8, 16], caps)),
            Parameter::new("min_run", usual.min_run, [512, 2048, 8192]),
        ],
        DeviceClass::Gpu if caps.checker => Vec::new(),
        DeviceClass::Gpu => {
            // With shuffles, kernels need groups of 256.
            let shuffles =
                caps.sub_group.ballot && matches!(caps.sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
            let work_group = work_groups(usual.work_group, 0, &[64, 128, 256], caps).filter(|_| !shuffles);
            let others = [
                Parameter::new("rows", usual.rows, [2, 4, 8]),
                Parameter::new("max_groups", usual.max_groups, of_units(&[4, 8, 16, 32], caps)),
            ];
            let registers = caps.ptx.then(|| {
                [
                    Parameter::new("registers", usual.registers, [32, 40, 48, 64, 80]),
                    Parameter::new("partition_registers", usual.partition_registers, [48, 64, 80]),
                ]
            });
            work_group.into_iter().chain(others).chain(registers.into_iter().flatten()).collect()
        }
    }
}
