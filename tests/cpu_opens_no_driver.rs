//! The CPU backend calls no driver, so a driver that crashes or hangs cannot end it.
#![cfg(all(feature = "opencl", not(feature = "system-opencl"), target_os = "linux"))]

#[path = "common/child.rs"]
mod child;
#[path = "common/fake.rs"]
mod fake;

use std::{process::Command, time::Duration};

use oclprim::{Device, ErrorKind, op::Sum};

/// A child process whose driver aborts at the first query.
fn with_a_driver_that_aborts(test: &str, part: &str) -> Command {
    let mut child = child::child(test, part);
    child.env("OPENCL_LIBRARY", fake::library("aborts", &[])).env_remove("OCLPRIM_DEVICE");
    child
}

fn works(device: &Device) {
    assert!(device.is_cpu());
    assert_eq!(device.reduce(&device.upload(&[1.5f32; 1000]).unwrap(), Sum).unwrap(), 1500.0);
}

const CPU: [&str; 12] = ["cpu", "CPU", " cpu\n", "rayon", "Rayon", "ray", "0", " 0 ", "00", "+0", "rayon / CPU", "/ c"];

#[test]
fn every_cpu_selector_opens_the_cpu() {
    const NAME: &str = "every_cpu_selector_opens_the_cpu";
    if child::part().is_none() {
        return assert_eq!(child::run(&mut with_a_driver_that_aborts(NAME, "open")).0, "done");
    }
    works(&Device::cpu());
    works(&Device::at(0).unwrap());
    for selector in CPU {
        works(&Device::open(selector).unwrap());
    }
    works(&Device::cpu().profiled().unwrap());
    child::answer("done");
}

#[test]
fn the_environment_selects_the_cpu() {
    const NAME: &str = "the_environment_selects_the_cpu";
    if child::part().is_none() {
        for selector in CPU {
            let mut child = with_a_driver_that_aborts(NAME, "best");
            assert_eq!(child::run(child.env("OCLPRIM_DEVICE", selector)).0, "done", "{selector:?}");
        }
        return;
    }
    works(&Device::best().unwrap());
    child::answer("done");
}

/// The aborting driver is effective: other selectors call it.
#[test]
fn other_selectors_call_the_driver() {
    const NAME: &str = "other_selectors_call_the_driver";
    if let Some(selector) = child::part() {
        drop(Device::open(&selector));
        return child::answer("done");
    }
    for selector in ["gpu", "opencl", "accelerator", "1", "3090", "-0", "0x0"] {
        let output = with_a_driver_that_aborts(NAME, selector).output().unwrap();
        assert!(!output.status.success(), "{selector} called no driver");
    }
}

/// The start of the process takes most of the time. Other processes may keep the machine busy, so the best of ten runs
/// counts.
#[test]
fn the_cpu_opens_within_20_ms() {
    const NAME: &str = "the_cpu_opens_within_20_ms";
    if child::part().is_some() {
        works(&Device::open("cpu").unwrap());
        return child::answer("done");
    }
    let run = || child::run(&mut with_a_driver_that_aborts(NAME, "open")).1;
    let best = std::iter::repeat_with(run).take(10).min().unwrap();
    assert!(best < Duration::from_millis(20), "{best:?}");
}

#[test]
fn no_device_errors_name_the_library_that_does_not_open() {
    const NAME: &str = "no_device_errors_name_the_library_that_does_not_open";
    if let Some(part) = child::part() {
        let error = if part == "at" { Device::at(1) } else { Device::open("gpu") }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoDevice);
        assert!(!error.to_string().contains('\n'), "{error}");
        return child::answer(error);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    let (nowhere, empty) = ("/nonexistent/libOpenCL.so", "");
    let told = |value: &str, part: &str| child::run(child::child(NAME, part).env("OPENCL_LIBRARY", value)).0;
    for part in ["open", "at"] {
        let start = if part == "open" {
            "no device fits `gpu`; the devices are 0: rayon / CPU"
        } else {
            "no device 1: the last is device 0"
        };
        let reason = "cannot open shared object file: No such file or directory";
        assert_eq!(
            told(nowhere, part),
            format!("{start}; OPENCL_LIBRARY is `{nowhere}`: the library does not open: {nowhere}: {reason}")
        );
        assert_eq!(told(empty, part), format!("{start}; OPENCL_LIBRARY is ``, which opens no library"));
        let damaged = format!("{start}; OPENCL_LIBRARY is `{path}`: the library does not open: {path}: file too short");
        assert_eq!(told(&path.to_string(), part), damaged);
        assert_eq!(
            told("libc.so.6", part),
            format!("{start}; OPENCL_LIBRARY is `libc.so.6`: libc.so.6 has no clGetPlatformIDs")
        );
    }
}

#[test]
fn no_device_errors_report_a_missing_driver() {
    const NAME: &str = "no_device_errors_report_a_missing_driver";
    if child::part().is_some() {
        return child::answer(Device::open("opencl").unwrap_err());
    }
    let mut child = child::child(NAME, "open");
    let (told, _) = child::run(child.env("OCL_ICD_VENDORS", "/nonexistent").env_remove("OPENCL_LIBRARY"));
    let reasons = ["the OpenCL loader has no driver", "the library does not open: libOpenCL.so.1: "];
    assert!(reasons.iter().any(|reason| told.contains(&format!("the devices are 0: rayon / CPU; {reason}"))), "{told}");
}
