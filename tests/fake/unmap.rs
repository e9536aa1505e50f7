//! A library linked to the system's libOpenCL, in which unmaps fail: each one, or with `FAIL_UNMAP=n` only the n-th.
#![allow(non_snake_case)]

use std::{
    ffi::c_void,
    sync::atomic::{AtomicUsize, Ordering},
};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const u8) -> *mut c_void;
}

type Unmap = unsafe extern "system" fn(usize, usize, *mut c_void, u32, *const usize, *mut usize) -> i32;

#[unsafe(no_mangle)]
pub unsafe extern "system" fn clEnqueueUnmapMemObject(
    queue: usize,
    mem: usize,
    address: *mut c_void,
    count: u32,
    events: *const usize,
    event: *mut usize,
) -> i32 {
    const OUT_OF_RESOURCES: i32 = -5;
    /// Finds the next definition, in the system's library.
    const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    if std::env::var("FAIL_UNMAP").is_ok_and(|fails| fails != call.to_string()) {
        let next: Unmap = unsafe { std::mem::transmute(dlsym(RTLD_NEXT, c"clEnqueueUnmapMemObject".as_ptr().cast())) };
        return unsafe { next(queue, mem, address, count, events, event) };
    }
    OUT_OF_RESOURCES
}
