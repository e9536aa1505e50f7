//! Failures during a drop: the next call that waits returns them, and a buffer with undefined contents is never read.
#![cfg(all(feature = "opencl", not(feature = "system-opencl"), target_os = "linux"))]

#[path = "common/child.rs"]
mod child;
#[path = "common/fake.rs"]
mod fake;
#[path = "common/skips.rs"]
mod skips;

use std::path::Path;

use oclprim::{Buffer, Device, Error, ErrorKind, Result, interop, op::Sum};

/// The OpenCL devices of a child process whose unmaps fail.
fn devices() -> Vec<Device> {
    let devices: Vec<_> = (1..Device::list().len()).map(|index| Device::at(index).expect("it opens")).collect();
    assert!(!devices.is_empty(), "the child sees no device");
    devices
}

/// Runs the test as a child on the system's drivers, where every unmap fails, or only the one of this number.
fn with_failing_unmaps(test: &str, number: Option<usize>) {
    if Device::list().len() == 1 || !Path::new("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1").exists() {
        return skips::skip(test, "no OpenCL device of the system's own loader");
    }
    let library = fake::library("unmap", &["-Clink-arg=-Wl,--no-as-needed", "-Clink-arg=-l:libOpenCL.so.1"]);
    let mut child = child::child(test, "child");
    child.env("OPENCL_LIBRARY", library).env_remove("OCLPRIM_DEVICE");
    if let Some(number) = number {
        child.env("FAIL_UNMAP", number.to_string());
    }
    assert_eq!(child::run(&mut child).0, "done");
}

/// A buffer of ones, overwritten with twos in a mapping that the driver fails to unmap.
fn spoiled(device: &Device) -> Buffer<u32> {
    let mut x = device.upload(&[1u32; 1000]).expect("it has memory");
    x.map_memory_mut().expect("it maps").fill(2);
    x
}

fn is_the_unmap(error: &Error) {
    assert_eq!((error.kind(), error.status()), (ErrorKind::Driver, Some(-5)), "{error}");
    assert_eq!(error.to_string(), "unmapping a buffer failed: CL_OUT_OF_RESOURCES (-5)");
}

fn is_still_mapped<T>(result: Result<T>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("a buffer that is mapped for {what} was used"));
    assert_eq!(error.kind(), ErrorKind::Driver, "{error}");
    assert!(error.to_string().starts_with(&format!("the buffer is still mapped for {what}: ")), "{error}");
}

#[test]
fn a_failed_unmap_is_the_error_of_the_next_call_that_waits() {
    const NAME: &str = "a_failed_unmap_is_the_error_of_the_next_call_that_waits";
    if child::part().is_none() {
        return with_failing_unmaps(NAME, None);
    }
    for device in devices() {
        let other = device.upload(&[1u32, 2, 3]).unwrap();
        type Wait = fn(&Device, &Buffer<u32>) -> Result<()>;
        let waits: [Wait; 9] = [
            |device, _| device.finish(),
            |device, _| device.take_timings().map(drop),
            |device, _| device.profiled().map(drop),
            |device, _| interop::marker(device).map(drop),
            |device, _| device.upload(&[1u32]).map(drop),
            |_, other| other.to_vec().map(drop),
            |device, other| other.read_async(device.pinned(3)?)?.wait().map(drop),
            |_, other| other.map_memory().map(drop),
            |device, other| device.reduce(other, Sum).map(drop),
        ];
        for wait in waits {
            // The calls that map also fail to unmap.
            let _ = device.finish();
            spoiled(&device);
            is_the_unmap(&wait(&device, &other).unwrap_err());
        }
        let _ = device.finish();
        device.finish().expect("reported once only");
        // Drops return no error, and an upload reports its own transfer alone.
        spoiled(&device);
        drop(other.read_async(device.pinned(3).unwrap()).unwrap());
        let (_x, upload) = device.upload_async(device.pinned::<u32>(3).unwrap()).unwrap();
        upload.wait().unwrap();
        drop(device.upload_async(device.pinned::<u32>(3).unwrap()).unwrap());
        is_the_unmap(&device.finish().unwrap_err());
    }
    child::answer("done");
}

#[test]
fn a_buffer_whose_unmap_failed_is_never_read() {
    const NAME: &str = "a_buffer_whose_unmap_failed_is_never_read";
    if child::part().is_none() {
        return with_failing_unmaps(NAME, None);
    }
    for device in devices() {
        let mut x = spoiled(&device);
        // This call probes the device, and the self-test must not report a missing feature.
        let mut y = device.zeroed::<u32>(1000).unwrap();
        is_the_unmap(&device.finish().unwrap_err());
        // The error went to another user of the device, so the buffer itself must report it.
        is_still_mapped(device.reduce(&x, Sum), "writing");
        is_still_mapped(x.to_vec(), "writing");
        is_still_mapped(x.view(3..5).unwrap().to_vec(), "writing");
        is_still_mapped(x.map_memory().map(drop), "writing");
        is_still_mapped(x.map_memory_mut().map(drop), "writing");
        is_still_mapped(x.write(&[3; 1000]), "writing");
        is_still_mapped(x.fill(3), "writing");
        is_still_mapped(device.copy(&x, &mut y), "writing");
        is_still_mapped(device.copy(&y, &mut x), "writing");
        // SAFETY: the memory object is never used.
        is_still_mapped(unsafe { interop::mem(&x).map(drop) }, "writing");
        assert_eq!(y.to_vec().unwrap(), [0; 1000]);
    }
    child::answer("done");
}

#[test]
fn a_failed_unmap_after_reading_forbids_only_writing() {
    const NAME: &str = "a_failed_unmap_after_reading_forbids_only_writing";
    if child::part().is_none() {
        return with_failing_unmaps(NAME, None);
    }
    for device in devices() {
        let mut x = device.upload(&[1u32; 1000]).unwrap();
        drop(x.map_memory().unwrap());
        is_the_unmap(&device.finish().unwrap_err());
        assert_eq!(device.reduce(&x, Sum).unwrap(), 1000);
        is_still_mapped(x.fill(3), "reading");
        is_still_mapped(x.map_memory_mut().map(drop), "reading");
    }
    child::answer("done");
}

#[test]
fn other_buffers_stay_usable() {
    const NAME: &str = "other_buffers_stay_usable";
    if child::part().is_none() {
        return with_failing_unmaps(NAME, Some(1));
    }
    let device = devices().swap_remove(0);
    is_still_mapped(spoiled(&device).to_vec(), "writing");
    is_the_unmap(&device.finish().unwrap_err());
    assert_eq!(device.reduce(&spoiled(&device), Sum).unwrap(), 2000);
    child::answer("done");
}

/// Safe code can leak a mapping, and kernels on mapped memory are undefined in OpenCL.
#[test]
fn a_buffer_with_a_leaked_mapping_is_refused() {
    for device in (1..Device::list().len()).map(|index| Device::at(index).unwrap()) {
        let mut x = device.upload(&[1u32; 1000]).unwrap();
        std::mem::forget(x.map_memory().unwrap());
        assert_eq!(x.to_vec().unwrap(), [1; 1000]);
        is_still_mapped(x.fill(2), "reading");
        let mut x = device.upload(&[1u32; 1000]).unwrap();
        std::mem::forget(x.map_memory_mut().unwrap());
        is_still_mapped(x.to_vec(), "writing");
        is_still_mapped(device.reduce(&x, Sum), "writing");
        device.finish().unwrap();
    }
}
