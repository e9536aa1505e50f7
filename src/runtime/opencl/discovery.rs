//! The devices of this machine, and what their drivers report.

use std::{
    env,
    ffi::OsString,
    sync::{Arc, Mutex, OnceLock},
};

use ocl::{
    core::{DeviceId, PlatformId},
    ffi,
};

use super::{ClDevice, DeviceInfo, DeviceType, Queue, Shared, cl, lock};
use crate::{Error, Result};

pub(super) const POCL: &str = "Portable Computing Language";
pub(super) const OCLGRIND: &str = "Oclgrind";
pub(super) const NVIDIA: &str = "NVIDIA CUDA";

// Upper limits on the capacities that a driver reports. No plan needs more, and no arithmetic on these overflows.
const MAX_COMPUTE_UNITS: u64 = 1 << 16;
pub(super) const MAX_WORK_GROUP: u64 = 1 << 16;
const MAX_LOCAL_BYTES: u64 = 1 << 30;
pub(super) const MAX_BYTES: u64 = 1 << 50;

/// Returns whether this is Intel's driver for CPUs; Intel's driver for GPUs can have the same platform.
pub(super) fn intel_cpu(info: &DeviceInfo) -> bool {
    info.ty == DeviceType::Cpu && info.platform == "Intel(R) OpenCL"
}

/// A device found through the loader, not yet opened.
pub(crate) struct Found {
    platform: PlatformId,
    id: DeviceId,
    pub(crate) info: DeviceInfo,
    /// True if the device has its own memory, not the host's.
    pub(crate) own_memory: bool,
    opened: OnceLock<Arc<Shared>>,
    opening: Mutex<()>,
}

/// Every OpenCL device, found once: the first discovery by a driver is not safe in two threads.
pub(crate) fn found() -> &'static [Found] {
    &discovered().0
}

/// Reasons why devices may be missing; empty if there were no errors.
pub(crate) fn troubles() -> &'static [String] {
    &discovered().1
}

fn discovered() -> &'static (Vec<Found>, Vec<String>) {
    static DISCOVERED: OnceLock<(Vec<Found>, Vec<String>)> = OnceLock::new();
    DISCOVERED.get_or_init(|| {
        let (mut found, mut troubles) = (Vec::new(), Vec::new());
        #[cfg(opencl_shim)]
        troubles.extend(crate::sys::opencl::missing().map(str::to_owned));
        let platforms = cl::platforms().unwrap_or_else(|error| {
            troubles.push(error.to_string());
            Vec::new()
        });
        if platforms.is_empty() && troubles.is_empty() {
            troubles.push("the OpenCL loader has no driver".into());
        }
        for platform in platforms {
            // A broken platform is left out, and does not affect the others.
            let mut trouble = |error: Error| {
                let name = cl::platform_text(platform, ffi::CL_PLATFORM_NAME).unwrap_or_else(|_| "a platform".into());
                troubles.push(format!("{name}: {error}"));
            };
            let ids = cl::devices(platform).map_err(&mut trouble).unwrap_or_default();
            found.extend(ids.into_iter().filter_map(|id| Found::new(platform, id).map_err(&mut trouble).ok()));
        }
        (found, troubles)
    })
}

impl Found {
    fn new(platform: PlatformId, id: DeviceId) -> Result<Self> {
        let info = describe(platform, id)?;
        let own_memory = has_own_memory(id)?;
        Ok(Self { platform, id, info, own_memory, opened: OnceLock::new(), opening: Mutex::new(()) })
    }

    /// Opens the device with a new queue; all handles share one context.
    pub(crate) fn open(&self) -> Result<ClDevice> {
        let _opening = lock(&self.opening);
        let shared = match self.opened.get() {
            Some(shared) => shared.clone(),
            None => {
                let context = cl::create_context(self.platform, self.id)?;
                let info = describe(self.platform, self.id)?;
                let shared = Arc::new(Shared::new(self.id, context, info)?);
                self.opened.get_or_init(|| shared).clone()
            }
        };
        let queue = Queue::new(&shared, cl::create_queue(&shared.context, shared.id, false)?, false, false);
        Ok(ClDevice::new(shared, queue))
    }
}

/// Returns whether the device has its own memory, not the host's.
pub(super) fn has_own_memory(id: DeviceId) -> Result<bool> {
    Ok(cl::device_number(id, ffi::CL_DEVICE_HOST_UNIFIED_MEMORY)? == 0)
}

/// Names and sizes, as the driver reports them; sizes are clamped to the limits above.
pub(super) fn describe(platform: PlatformId, id: DeviceId) -> Result<DeviceInfo> {
    let bits = cl::device_number(id, ffi::CL_DEVICE_TYPE)?;
    // Oclgrind reports every type at once: a device that runs on the host counts as a CPU.
    let ty = if bits & ffi::CL_DEVICE_TYPE_CPU != 0 {
        DeviceType::Cpu
    } else if bits & ffi::CL_DEVICE_TYPE_GPU != 0 {
        DeviceType::Gpu
    } else {
        DeviceType::Accelerator
    };
    Ok(DeviceInfo {
        name: cl::device_text(id, ffi::CL_DEVICE_NAME)?,
        platform: cl::platform_text(platform, ffi::CL_PLATFORM_NAME)?,
        vendor: cl::device_text(id, ffi::CL_DEVICE_VENDOR)?,
        driver: cl::device_text(id, ffi::CL_DRIVER_VERSION)?,
        version: cl::device_text(id, ffi::CL_DEVICE_VERSION)?,
        ty,
        opencl: true,
        compute_units: cl::device_number(id, ffi::CL_DEVICE_MAX_COMPUTE_UNITS)?.min(MAX_COMPUTE_UNITS) as u32,
        global_bytes: cl::device_number(id, ffi::CL_DEVICE_GLOBAL_MEM_SIZE)?.min(MAX_BYTES),
        max_allocation_bytes: cl::device_number(id, ffi::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?.min(MAX_BYTES),
    })
}

/// Bytes of local memory in a work-group, as the driver reports them.
pub(super) fn local_bytes(id: DeviceId) -> Result<usize> {
    Ok(cl::device_number(id, ffi::CL_DEVICE_LOCAL_MEM_SIZE)?.min(MAX_LOCAL_BYTES) as usize)
}

/// Identifies the device and settings for which binaries and self-test results are valid.
pub(super) fn identity(info: &DeviceInfo) -> String {
    let knobs = knobs(env::vars_os());
    format!("{}|{}|{}|{}|{knobs}", info.platform, info.name, info.version, info.driver)
}

/// The environment variables that change a driver's builds or capabilities, sorted.
fn knobs(variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    const PREFIXES: [&str; 8] = ["CL_CONFIG_", "POCL_", "RUSTICL_", "GALLIVM_", "LP_", "IGC_", "AMD_OCL_", "OCLGRIND_"];
    // Excluded: variables for a driver's own files and output.
    const OTHERS: [&str; 3] = ["CACHE", "DEBUG", "LOG"];
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let mut knobs: Vec<_> = variables
        .map(|(name, value)| (text(name), value))
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(name, _)| !OTHERS.iter().any(|other| name.contains(other)))
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    knobs.sort();
    knobs.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{identity, knobs};
    use crate::DeviceInfo;

    /// Cached results of one driver must not be used for another.
    #[test]
    fn identities_distinguish_devices_and_drivers() {
        let old = DeviceInfo { driver: "580.159".into(), ..DeviceInfo::cpu() };
        let new = DeviceInfo { driver: "590.44".into(), ..old.clone() };
        let other = DeviceInfo { name: "another".into(), ..old.clone() };
        let elsewhere = DeviceInfo { platform: "another".into(), ..old.clone() };
        let later = DeviceInfo { version: "OpenCL 3.1".into(), ..old.clone() };
        assert_eq!(identity(&old), identity(&old.clone()));
        for changed in [new, other, elsewhere, later] {
            assert_ne!(identity(&changed), identity(&old), "{changed}");
        }
    }

    #[test]
    fn settings_of_drivers_are_distinguished() {
        let of = |pairs: &[(&str, &str)]| knobs(pairs.iter().map(|&(name, value)| (name.into(), value.into())));
        assert_eq!(of(&[("HOME", "/root"), ("POCL_CACHE_DIR", "/tmp/1"), ("OCLGRIND_LOG", "x")]), "");
        let both = of(&[("POCL_DEVICES", "basic"), ("CL_CONFIG_CPU_VECTORIZER_MODE", "8"), ("PATH", "")]);
        assert_eq!(both, "CL_CONFIG_CPU_VECTORIZER_MODE=8 POCL_DEVICES=basic");
        assert_ne!(both, of(&[("POCL_DEVICES", "pthread"), ("CL_CONFIG_CPU_VECTORIZER_MODE", "8")]));
    }
}
