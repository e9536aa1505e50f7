//! A libOpenCL with two platforms that misbehave as `FAKE_OPENCL` says; every other entry point is missing.
//!
//! Compiled to a cdylib by `tests/common/fake.rs`.
#![allow(non_snake_case)]

use std::{
    ffi::c_void,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

fn mode() -> String {
    std::env::var("FAKE_OPENCL").unwrap_or_default()
}

/// Writes a property as OpenCL does: its size, its bytes, or both.
unsafe fn give(value: &[u8], size: usize, to: *mut c_void, size_ret: *mut usize) -> i32 {
    if !size_ret.is_null() {
        unsafe { *size_ret = value.len() };
    }
    if !to.is_null() {
        if size < value.len() {
            return -30;
        }
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), value.len()) };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clGetPlatformIDs(n: u32, ids: *mut usize, count: *mut u32) -> i32 {
    if mode() == "platforms-fail" {
        return -9999;
    }
    let all = [0x100usize, 0x200];
    if !count.is_null() {
        unsafe { *count = all.len() as u32 };
    }
    if !ids.is_null() {
        for (i, id) in all.iter().enumerate().take(n as usize) {
            unsafe { *ids.add(i) = *id };
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clGetPlatformInfo(
    platform: usize,
    _: u32,
    size: usize,
    to: *mut c_void,
    ret: *mut usize,
) -> i32 {
    let name: &[u8] = if platform == 0x100 { b"First\0" } else { b"Second\0" };
    unsafe { give(name, size, to, ret) }
}

/// The first platform never has a GPU. The second has one, unless the mode says that there are no devices.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn clGetDeviceIDs(
    platform: usize,
    _: u64,
    n: u32,
    ids: *mut usize,
    count: *mut u32,
) -> i32 {
    match (mode().as_str(), platform) {
        ("no-devices", 0x100) => return -1,
        ("no-devices", _) => {
            if !count.is_null() {
                unsafe { *count = 0 };
            }
            return 0;
        }
        (_, 0x100) => return -1234,
        _ => {}
    }
    if !count.is_null() {
        unsafe { *count = 1 };
    }
    if !ids.is_null() && n > 0 {
        unsafe { *ids = 0x300 };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clGetDeviceInfo(
    _: usize,
    what: u32,
    size: usize,
    to: *mut c_void,
    ret: *mut usize,
) -> i32 {
    let value: &[u8] = match what {
        0x1000 => &4u64.to_ne_bytes(),
        0x1002 => &16u32.to_ne_bytes(),
        0x1010 | 0x101F => &(1u64 << 30).to_ne_bytes(),
        0x102B => b"Fak\xe9 GPU 3090\0",
        0x102F => b"OpenCL 3.1 (Build 0) \0",
        _ => return -30,
    };
    unsafe { give(value, size, to, ret) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clCreateContext(
    _: *const isize,
    _: u32,
    _: *const usize,
    _: *mut c_void,
    _: *mut c_void,
    status: *mut i32,
) -> usize {
    let (code, context) = if mode() == "open-fails" { (-72, 0) } else { (0, 0x400) };
    unsafe { *status = code };
    context
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clCreateCommandQueue(_: usize, _: usize, _: u64, status: *mut i32) -> usize {
    unsafe { *status = 0 };
    0x500
}

/// The device is lost: even the release of a handle fails.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn clReleaseContext(_: usize) -> i32 {
    -9999
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clReleaseCommandQueue(_: usize) -> i32 {
    -1100
}

/// Reports a lost device; with `finish-2-fails` only the second time.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn clFinish(_: usize) -> i32 {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    match mode().as_str() {
        "lazy" | "launches-fail" => 0,
        "finish-2-fails" if call != 2 => 0,
        _ => -1024,
    }
}

/// The sizes of buffers with their reference counts; a buffer's handle is its index plus 1. A lost device has no buffers.
static BUFFERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Limit of the bytes in all buffers, beyond which a write fails: like some drivers, this one allocates at first use.
const MEMORY: usize = 32 << 20;

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clCreateBuffer(
    _: usize,
    flags: u64,
    size: usize,
    _: *mut c_void,
    status: *mut i32,
) -> usize {
    const ALLOC_HOST_PTR: u64 = 1 << 4;
    if !matches!(mode().as_str(), "lazy" | "finish-2-fails" | "launches-fail") {
        unsafe { *status = -1024 };
        return 0;
    }
    // This driver has no pinned memory.
    if flags & ALLOC_HOST_PTR != 0 {
        unsafe { *status = -6 };
        return 0;
    }
    unsafe { *status = 0 };
    let mut buffers = BUFFERS.lock().unwrap();
    buffers.push((size, 1));
    buffers.len()
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clRetainMemObject(buffer: usize) -> i32 {
    BUFFERS.lock().unwrap()[buffer - 1].1 += 1;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clReleaseMemObject(buffer: usize) -> i32 {
    BUFFERS.lock().unwrap()[buffer - 1].1 -= 1;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clEnqueueWriteBuffer(
    _: usize,
    _: usize,
    _: u32,
    _: usize,
    _: usize,
    _: *const c_void,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    let held: usize = BUFFERS.lock().unwrap().iter().filter(|(_, count)| *count > 0).map(|(size, _)| size).sum();
    if held > MEMORY { -4 } else { 0 }
}

/// Mapped memory is never read.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn clEnqueueMapBuffer(
    _: usize,
    _: usize,
    _: u32,
    _: u64,
    _: usize,
    _: usize,
    _: u32,
    _: *const usize,
    _: *mut usize,
    status: *mut i32,
) -> *const c_void {
    static MAPPED: [u64; 2] = [0; 2];
    unsafe { *status = 0 };
    MAPPED.as_ptr().cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clEnqueueUnmapMemObject(
    _: usize,
    _: usize,
    _: *const c_void,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    0
}

fn create(object: usize, status: *mut i32) -> usize {
    let (code, object) = if mode() == "launches-fail" { (0, object) } else { (-9999, 0) };
    unsafe { *status = code };
    object
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clCreateProgramWithSource(
    _: usize,
    _: u32,
    _: *const *const u8,
    _: *const usize,
    status: *mut i32,
) -> usize {
    create(0x700, status)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clBuildProgram(
    _: usize,
    _: u32,
    _: *const usize,
    _: *const u8,
    _: *mut c_void,
    _: *mut c_void,
) -> i32 {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clGetProgramBuildInfo(
    _: usize,
    _: usize,
    what: u32,
    size: usize,
    to: *mut c_void,
    ret: *mut usize,
) -> i32 {
    const STATUS: u32 = 0x1181;
    let value: &[u8] = if what == STATUS { &0i32.to_ne_bytes() } else { b"\0" };
    unsafe { give(value, size, to, ret) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clCreateKernel(_: usize, _: *const u8, status: *mut i32) -> usize {
    create(0x800, status)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clSetKernelArg(_: usize, _: u32, _: usize, _: *const c_void) -> i32 {
    0
}

/// Every launch fails, with an unknown status.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn clEnqueueNDRangeKernel(
    _: usize,
    _: usize,
    _: u32,
    _: *const usize,
    _: *const usize,
    _: *const usize,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    -9998
}
