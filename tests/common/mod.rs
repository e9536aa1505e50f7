//! Helpers of the tests: devices, child processes, and the log of skips.
#![allow(dead_code, reason = "each test file uses only a part")]

pub(crate) mod child;
pub(crate) mod fake;
pub(crate) mod memory;
mod skips;

use std::env;

#[allow(unused_imports, reason = "each test file uses only a part")]
pub(crate) use child::{answer, child, command, part, run, value_of};
use oclprim::{
    Device, DeviceClass, Tuning,
    internals::{data::Rng, testing::allocations},
};
pub(crate) use skips::skip;

/// Returns true if an interpreter runs the kernels, or if time is short.
pub(crate) fn tiny() -> bool {
    env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("tiny") || a_form_of_each_kernel()
}

/// Returns true if one operation stands for all that run the same kernel.
pub(crate) fn a_form_of_each_kernel() -> bool {
    env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("kernels") || variant()
}

/// Returns true for the shortest runs, such as those of a driver with other settings. Settings affect how work-groups run,
/// but not element types.
pub(crate) fn variant() -> bool {
    env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("variant")
}

/// Runs calls on `tried`, reserves the scratch that they need on `device`, and runs them twice there. No call there may
/// allocate scratch.
pub(crate) fn reserve_and_repeat(name: &str, tried: &Device, device: &Device, run: impl Fn(&Device)) {
    let made = |device: &Device| {
        let before = allocations(device);
        run(device);
        allocations(device) - before
    };
    let first = made(tried);
    let sizes = tried.scratch_sizes();
    device.reserve(&sizes).unwrap();
    let (then, again) = (made(device), made(device));
    // A checker gets new memory for each call. The call on `tried` may also allocate memory that launches share. If an earlier
    // device of the list has the same queue, that memory is there already.
    let is_checker = !runs_kernels_at_once(device);
    assert!(
        is_checker || ((then == 0 || then + sizes.len() <= first) && again == 0),
        "{name}: {first}, then {then} and {again}"
    );
    assert_eq!(device.scratch_sizes(), sizes, "{name}");
}

/// Every device of this machine with its name in reports; the CPU backend comes first.
pub(crate) fn devices() -> Vec<(String, Device)> {
    let open = |(index, name): (usize, String)| {
        let device = Device::at(index).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, device)
    };
    let devices = Device::list().into_iter().map(|info| info.to_string()).enumerate().map(open);
    // Oclgrind's shadow memory belongs to the first thread, so each test needs a process of its own, as with nextest.
    let alone = env::var_os("NEXTEST").is_some() || env::args().any(|argument| argument == "--exact");
    let works = |(name, device): &(String, Device)| {
        let works = alone || runs_kernels_at_once(device);
        if !works {
            skip(name, "runs only if each test has its own process, as with nextest");
        }
        works
    };
    devices.filter(works).collect()
}

/// Every device. OpenCL devices are listed with each of these tunings, too.
pub(crate) fn tuned(tunings: &[(&str, Tuning)]) -> Vec<(String, Device)> {
    let mut all = Vec::new();
    for (name, device) in devices() {
        for (kind, tuning) in tunings.iter().filter(|_| !device.is_cpu()) {
            all.push((format!("{name} as {kind}"), device.with_tuning(tuning.clone()).unwrap()));
        }
        all.push((name, device));
    }
    all
}

/// The geometry of a GPU.
pub(crate) fn gpu() -> Tuning {
    Tuning::default().class(DeviceClass::Gpu)
}

/// Every device. OpenCL devices are listed in the geometry of a GPU with much and with little local memory, too.
pub(crate) fn with_geometries() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu()), ("a small GPU", gpu().local_bytes(4096))])
}

/// Returns true if the device computes with doubles.
pub(crate) fn has_doubles(device: &Device) -> bool {
    device.capabilities().unwrap().is_none_or(|caps| caps.fp64)
}

/// OpenCL devices with 64-bit offsets at every size, in their own geometry and in that of a GPU.
pub(crate) fn wide() -> Vec<(String, Device)> {
    let mut all = tuned(&[("wide", Tuning::default().wide_offsets()), ("a wide GPU", gpu().wide_offsets())]);
    all.retain(|(name, _)| name.ends_with("wide") || name.ends_with("a wide GPU"));
    all
}

/// Every device in its own geometry, and as a GPU with each kind of sub-groups that it has. In the runs of [`variant`], OpenCL
/// devices are listed only as a GPU with the first kind, because settings affect only work-groups of many work-items.
pub(crate) fn with_sub_groups() -> Vec<(String, Device)> {
    let mut all = Vec::new();
    for (name, device) in devices() {
        let caps = device.capabilities().unwrap_or_else(|error| panic!("{name}: {error}"));
        let kinds = if variant() { 1 } else { usize::MAX };
        for group in caps.iter().flat_map(|caps| &caps.sub_groups).take(kinds) {
            let device = device.with_tuning(gpu().sub_groups(group.backend)).unwrap();
            all.push((format!("{name} as a GPU, sub-groups {}", group.backend.name()), device));
        }
        for refused in caps.iter().flat_map(|caps| &caps.refused) {
            skip(&format!("{name} as a GPU, sub-groups {}", refused.backend.name()), &refused.reason);
        }
        if device.is_cpu() || !variant() {
            all.push((name, device));
        }
    }
    all
}

/// Returns true if a build log names the faulty line of the user's text, such as `expression:2:3:`. Oclgrind counts the
/// lines of the whole program, so there the log must quote the line and give the right column.
pub(crate) fn names_line(device: &Device, log: &str, (place, column, line): (&str, usize, &str)) -> bool {
    if runs_kernels_at_once(device) {
        return log.contains(&format!("{place}:{column}:"));
    }
    log.contains(&format!(":{column}:")) && log.lines().any(|found| found == line)
}

/// `n` elements of random bits.
pub(crate) fn random<T: bytemuck::Pod>(n: usize, seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..n * size_of::<T>()).map(|_| rng.next() as u8).collect();
    bytemuck::pod_collect_to_vec(&bytes)
}

/// The OpenCL devices of this machine.
pub(crate) fn opencl_devices() -> Vec<(String, Device)> {
    devices().into_iter().filter(|(_, device)| !device.is_cpu()).collect()
}

/// Returns false for Oclgrind, which checks one kernel at a time and aborts when a second one starts.
pub(crate) fn runs_kernels_at_once(device: &Device) -> bool {
    !device.info().platform.contains("Oclgrind")
}

/// The OpenCL devices. If there are none, the function logs a skip.
pub(crate) fn opencl_devices_or_skip(test: &str) -> Vec<(String, Device)> {
    let devices = opencl_devices();
    if devices.is_empty() {
        skip(test, "no OpenCL device");
    }
    devices
}
