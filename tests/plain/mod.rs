//! The devices, for tests that need the library's public API alone and so build without the feature `checks`.

use std::env;

use oclprim::{Device, DeviceClass, Tuning};

/// Each device in its own geometry, and the OpenCL ones in that of a GPU with much and little local memory.
pub(crate) fn devices() -> Vec<(String, Device)> {
    // Oclgrind's shadow memory belongs to the thread that comes first.
    let alone = env::var_os("NEXTEST").is_some() || env::args().any(|argument| argument == "--exact");
    let gpu = || Tuning::default().class(DeviceClass::Gpu);
    let mut all = Vec::new();
    for (index, info) in Device::list().into_iter().enumerate() {
        let name = info.to_string();
        if info.platform.contains("Oclgrind") && !alone {
            println!("skipped {name}: only in a process for each test, as with nextest");
            continue;
        }
        let device = Device::at(index).unwrap_or_else(|error| panic!("{name}: {error}"));
        if !device.is_cpu() {
            for (kind, tuning) in [("a GPU", gpu()), ("a small GPU", gpu().local_bytes(4096))] {
                all.push((format!("{name} as {kind}"), device.with_tuning(tuning).unwrap()));
            }
        }
        all.push((name, device));
    }
    all
}

/// Whether the device computes with doubles.
pub(crate) fn has_doubles(device: &Device) -> bool {
    device.capabilities().unwrap().is_none_or(|caps| caps.fp64)
}
