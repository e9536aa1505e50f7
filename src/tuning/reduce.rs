//! Parameters of reductions.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass, SubGroupBackend};

/// Maximum local memory of a work-item: an accumulator, and the values that sub-groups in local memory exchange.
const ITEM_BYTES: usize = 8 + 4;

/// Geometry of reductions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reduce {
    pub(crate) work_group: usize,
    pub(crate) max_groups: usize,
    /// True for a last-block reduction: the work-group that finishes last replaces a second launch.
    pub(crate) one_pass: bool,
    /// True if exact sums add in `f64` registers, false if they use integers and `f32` only.
    pub(crate) exact_f64: bool,
    /// Maximum registers of a work-item on NVIDIA GPUs, for reductions of segments by offsets and by keys. With the
    /// defaults, six work-groups run on a compute unit at a time, so that some load while others combine.
    pub(crate) segment_registers: usize,
    pub(crate) key_registers: usize,
}

/// Parameters of reductions by device class.
pub(crate) fn reduce(caps: &Tuned) -> Reduce {
    let max_groups = |each: usize| caps.chosen("max_groups", each * super::units(caps));
    let exact_f64 = caps.fp64 && caps.chosen("exact_f64", usize::from(has_fast_fp64(caps))) != 0;
    let (segment_registers, key_registers) = (caps.chosen("segment_registers", 80), caps.chosen("key_registers", 40));
    match caps.class {
        // Each work-item processes a whole tile, in a loop that the driver's compiler vectorises.
        DeviceClass::Cpu => Reduce {
            work_group: 1,
            max_groups: max_groups(8),
            one_pass: false,
            exact_f64,
            segment_registers,
            key_registers,
        },
        DeviceClass::Gpu => {
            // Six groups for each unit make whole waves, whether two, three or six run on a unit at a time. On an H200, sums of
            // 2^28 i32 take 240 µs with 4, 6 and 16 groups for each unit, and 245 µs with 8.
            let max_groups = max_groups(6);
            // On a checker, two sub-groups in local memory suffice: an interpreter runs work-items one after another.
            let usual = if caps.checker { 64 } else { 256 };
            let work_group = super::work_group_of(caps.chosen("work_group", usual), ITEM_BYTES, caps);
            let one_pass = ends_at_once(caps) && caps.chosen("one_pass", 1) != 0;
            Reduce { work_group, max_groups, one_pass, exact_f64, segment_registers, key_registers }
        }
    }
}

/// Returns whether the device supports a last-block reduction. PoCL breaks barriers in branches, and its sub-group is the whole
/// work-group.
pub(crate) fn ends_at_once(caps: &Capabilities) -> bool {
    use SubGroupBackend::{Amd, Intel, Ptx};
    caps.device_fence && matches!(caps.sub_group.backend, Ptx | Amd | Intel)
}

/// Returns whether additions of `f64` take at most about twice the time of those of `f32`. They do on CPUs, on NVIDIA's
/// P100, V100, A100, H100, H200 and B200, and on AMD's devices with sub-groups of 64.
fn has_fast_fp64(caps: &Capabilities) -> bool {
    let data_centre = caps.ptx && matches!(caps.compute_capability, 60 | 70 | 80 | 90 | 100);
    let amd = caps.sub_group.backend == SubGroupBackend::Amd && caps.sub_group.width == 64;
    caps.fp64 && (caps.class == DeviceClass::Cpu || data_centre || amd)
}

/// Returns whether a compute unit has room for six work-groups with 19 KiB of local memory each. NVIDIA's devices for
/// data centres have it from the A100 on: 164 KiB or more.
pub(crate) fn has_large_local_memory(caps: &Capabilities) -> bool {
    caps.ptx && matches!(caps.compute_capability, 80 | 90 | 100 | 103)
}

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = reduce(caps);
    // At most 256, since a row of a tile has 256 words.
    let work_group = work_groups(usual.work_group, ITEM_BYTES, &[64, 128, 256], caps);
    let max_groups = Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 6, 8, 16, 32], caps));
    let one_pass = usual.one_pass.then(|| Parameter::new("one_pass", 1, [0, 1]));
    let exact = caps.fp64.then(|| Parameter::new("exact_f64", usual.exact_f64.into(), [0, 1]));
    let registers = caps.ptx.then(|| {
        [
            Parameter::new("segment_registers", usual.segment_registers, [40, 48, 56, 64, 80, 96]),
            Parameter::new("key_registers", usual.key_registers, [40, 48, 64, 80]),
        ]
    });
    work_group
        .into_iter()
        .chain([max_groups])
        .chain(one_pass)
        .chain(exact)
        .chain(registers.into_iter().flatten())
        .collect()
}
