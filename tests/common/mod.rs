//! What the tests share: the devices, children of this process, and the account of skips.
#![allow(dead_code, reason = "each test file takes its part")]

pub(crate) mod memory;
mod processes;

use std::{collections::HashSet, env, sync::Mutex};

use oclprim::{
    Device, DeviceClass, Tuning,
    check::{Failure, data::Rng, log_skip},
    ladder::{self, Request},
};
pub(crate) use processes::*;

/// Whether an interpreter runs the kernels, or there is little time.
pub(crate) fn tiny() -> bool {
    env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("tiny") || a_form_of_each_kernel()
}

/// Whether one form stands for all that run the same kernel.
pub(crate) fn a_form_of_each_kernel() -> bool {
    env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("kernels") || variant()
}

/// Whether a driver is tested that runs with other settings, too: how it runs work-groups, and does not know their types.
pub(crate) fn variant() -> bool {
    env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("variant")
}

/// Every device of this machine, the CPU backend first, with what to call it in a report.
pub(crate) fn devices() -> Vec<(String, Device)> {
    let open = |(index, name): (usize, String)| {
        let device = Device::at(index).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, device)
    };
    let devices = Device::list().into_iter().map(|info| info.to_string()).enumerate().map(open);
    // Its shadow memory belongs to the thread that comes first, so it needs a process for each test, as nextest has it.
    let alone = env::var_os("NEXTEST").is_some() || env::args().any(|argument| argument == "--exact");
    let works = |(name, device): &(String, Device)| {
        let works = alone || runs_kernels_at_once(device);
        if !works {
            skip(name, "only in a process for each test, as with nextest");
        }
        works
    };
    devices.filter(works).collect()
}

/// Every device, the OpenCL ones with each of these tunings too.
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

/// The OpenCL devices with 64-bit numbers at every size, in their own geometry and in that of a GPU.
pub(crate) fn wide() -> Vec<(String, Device)> {
    let mut all = tuned(&[("wide", Tuning::default().wide_offsets()), ("a wide GPU", gpu().wide_offsets())]);
    all.retain(|(name, _)| name.ends_with("wide") || name.ends_with("a wide GPU"));
    all
}

/// Every device, in its own geometry and in that of a GPU with each kind of sub-groups that it has. Of a driver with other
/// settings, only in that of a GPU with the first kind: work-groups of many items are what it runs in another way.
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

/// Whether a build's log names the line of the user's text that is wrong, such as `expression:2:3:`. Oclgrind counts the lines
/// of all that it is given; it shows that line, and the column is right.
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

/// Climbs the rungs of a ladder whose names fit: each fails before it has run, and is right twice, the second time among
/// what the first run left behind. There is one at least, and one at least that an OpenCL device can run.
pub(crate) fn climb(
    ladder: &str,
    (name, device): &(String, Device),
    request: &Request,
    fits: impl Fn(&str) -> bool,
) -> usize {
    let ladder = ladder::registry().iter().find(|other| other.name() == ladder).expect("the registry has it");
    let rungs = ladder.rungs(request, device).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut chosen, mut climbed) = (0, 0);
    for rung in rungs.into_iter().filter(|rung| fits(rung.name)) {
        chosen += 1;
        if let Some(reason) = &rung.unavailable {
            if !device.is_cpu() {
                skip(&format!("{name}: {} ladder, {}", ladder.name(), rung.name), reason);
            }
            continue;
        }
        let what = || {
            let Request { n, shape: (rows, cols), block, element, bins, .. } = request;
            format!("{name}: {}, n = {n}, {rows} x {cols}, block {block:?}, {element}, {bins} bins", rung.name)
        };
        let mut climb = (rung.prepare)(device).unwrap_or_else(|error| panic!("{}: {error}", what()));
        for round in 0..2 {
            (climb.reset)().unwrap();
            assert!(matches!((climb.verify)(), Err(Failure::Mismatch(_))), "{}: passed before it ran", what());
            (climb.run)().unwrap_or_else(|error| panic!("{}: {error}", what()));
            (climb.verify)().unwrap_or_else(|failure| panic!("{}, round {round}: {failure:?}", what()));
        }
        climbed += 1;
    }
    assert!(chosen > 0, "the {} ladder has no such rung", ladder.name());
    assert!(climbed > 0 || device.is_cpu(), "{name}: none of {chosen} rungs ran");
    climbed
}

/// The OpenCL devices of this machine.
pub(crate) fn opencl_devices() -> Vec<(String, Device)> {
    devices().into_iter().filter(|(_, device)| !device.is_cpu()).collect()
}

/// Oclgrind checks one kernel at a time, and aborts when a second one starts.
pub(crate) fn runs_kernels_at_once(device: &Device) -> bool {
    !device.info().platform.contains("Oclgrind")
}

/// Notes, once, that a test or a part of it did not run here.
pub(crate) fn skip(test: &str, reason: &str) {
    static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if seen.get_or_insert_default().insert(format!("{test}: {reason}")) {
        println!("skipped {test}: {reason}");
        log_skip(test, reason);
    }
}

/// The OpenCL devices; it is a skip that there are none.
pub(crate) fn opencl_devices_or_skip(test: &str) -> Vec<(String, Device)> {
    let devices = opencl_devices();
    if devices.is_empty() {
        skip(test, "no OpenCL device");
    }
    devices
}
