//! Choices by device class, and how to override them.

#[cfg(feature = "opencl")]
mod copy;
#[cfg(feature = "opencl")]
mod histogram;
#[cfg(feature = "opencl")]
mod merge;
#[cfg(feature = "opencl")]
mod permute;
#[cfg(feature = "opencl")]
mod reduce;
#[cfg(feature = "opencl")]
mod scan;
#[cfg(feature = "opencl")]
mod select;
#[cfg(feature = "opencl")]
mod sort;
#[cfg(feature = "opencl")]
mod topk;
#[cfg(feature = "opencl")]
mod transpose;

#[cfg(feature = "opencl")]
pub(crate) use copy::{Copy, Gather, copy, copy_ranges, gather, reverse};
#[cfg(feature = "opencl")]
pub(crate) use histogram::histogram;
#[cfg(feature = "opencl")]
pub(crate) use merge::merge;
#[cfg(feature = "opencl")]
pub(crate) use permute::permute;
#[cfg(feature = "opencl")]
pub(crate) use reduce::reduce;
#[cfg(feature = "opencl")]
pub(crate) use scan::scan;
#[cfg(feature = "opencl")]
pub(crate) use select::select;
#[cfg(feature = "opencl")]
pub(crate) use sort::sort;
#[cfg(feature = "opencl")]
pub(crate) use topk::{TopK, top_k};
#[cfg(feature = "opencl")]
pub(crate) use transpose::{InPlace, in_place, narrow, padding, transpose, unit, unit_type};

use crate::{
    Error, Result,
    runtime::{Capabilities, DeviceClass, SubGroupBackend},
};

/// The largest work-group of at most `most` items, a power of two: kernels share out lanes by halves, and devices allow
/// any number.
#[cfg(feature = "opencl")]
pub(crate) fn work_group(most: usize, caps: &Capabilities) -> usize {
    1 << most.min(caps.max_work_group.max(1)).ilog2()
}

/// The same, where each item has `bytes` bytes of local memory, and kernels and compilers take a few more.
#[cfg(feature = "opencl")]
pub(crate) fn work_group_of(most: usize, bytes: usize, caps: &Capabilities) -> usize {
    const RESERVED_BYTES: usize = 64;
    work_group(most.min((caps.local_bytes.saturating_sub(RESERVED_BYTES) / bytes).max(1)), caps)
}

/// Overrides of what the crate would choose for a device; everything unset stays as chosen.
///
/// With it a CPU driver can run the geometry of a GPU, and every sub-group back end that passed its self-test can be
/// tested.
///
/// ```
/// use oclprim::{Device, DeviceClass, SubGroupBackend, Tuning, op::Sum};
///
/// let as_gpu = Tuning::default().class(DeviceClass::Gpu).sub_groups(SubGroupBackend::Local).wide_offsets();
/// let device = Device::best()?.with_tuning(as_gpu.local_bytes(16 << 10))?;
/// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    class: Option<DeviceClass>,
    sub_groups: Option<SubGroupBackend>,
    local_bytes: Option<usize>,
    wide_offsets: bool,
    no_look_back: bool,
}

impl Tuning {
    /// The geometry of another device class.
    pub fn class(mut self, class: DeviceClass) -> Self {
        self.class = Some(class);
        self
    }

    /// A particular sub-group back end, which must have passed the device's self-test.
    pub fn sub_groups(mut self, backend: SubGroupBackend) -> Self {
        self.sub_groups = Some(backend);
        self
    }

    /// At most this much local memory, to run the paths of small devices.
    pub fn local_bytes(mut self, bytes: usize) -> Self {
        self.local_bytes = Some(bytes);
        self
    }

    /// 64-bit offsets at every size, as kernels use them from 2^31 elements on.
    pub fn wide_offsets(mut self) -> Self {
        self.wide_offsets = true;
        self
    }

    /// Launch after launch where work-groups would wait for one another.
    pub fn without_look_back(mut self) -> Self {
        self.no_look_back = true;
        self
    }

    /// Whether kernels over `n` elements use 64-bit offsets.
    pub(crate) fn wide(&self, n: usize) -> bool {
        self.wide_offsets || n >= 1 << 31
    }

    pub(crate) fn apply(&self, caps: &mut Capabilities) -> Result<()> {
        caps.class = self.class.unwrap_or(caps.class);
        caps.local_bytes = caps.local_bytes.min(self.local_bytes.unwrap_or(usize::MAX));
        caps.forward_progress &= !self.no_look_back;
        if let Some(backend) = self.sub_groups {
            let found = caps.sub_groups.iter().find(|group| group.backend == backend);
            caps.sub_group = *found.ok_or_else(|| {
                Error::unsupported(format!("sub-group back end `{}` did not pass the self-test", backend.name()))
            })?;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "opencl"))]
mod tests {
    use super::*;

    #[test]
    fn work_groups_are_powers_of_two_on_every_device() {
        for (name, caps) in Capabilities::samples() {
            for max_work_group in [0, 1, 3, 64, 100, 255, 256, 300, 1000, 4096] {
                let caps = Capabilities { max_work_group, ..caps.clone() };
                let most = max_work_group.max(1);
                let mut groups = vec![reduce(&caps).work_group, scan(&caps).work_group];
                groups.extend([histogram(&caps).work_group, histogram(&caps).large_work_group]);
                groups.extend([1, 2, 3, 4, 8, 16].map(|size| transpose(&caps, size).work_group));
                groups.extend([1, 2, 3, 4, 8, 16].map(|size| in_place(&caps, size).work_group));
                groups.extend(top_k(&caps).iter().map(|shape| shape.work_group));
                groups.extend([gather(&caps, 4).work_group, self::reverse(&caps).work_group]);
                groups.extend([sort(&caps).work_group, select(&caps).work_group, merge(&caps).work_group]);
                for copy in [copy(&caps), copy_ranges(&caps)] {
                    if let Copy::Words { work_group, .. } = copy {
                        groups.push(work_group);
                    }
                }
                for group in groups {
                    assert!(group.is_power_of_two() && group <= most, "{name}: {group} of {max_work_group}");
                }
            }
        }
    }
}
