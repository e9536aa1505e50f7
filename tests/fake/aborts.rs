//! A libOpenCL whose driver aborts the process at the first query.
#![allow(non_snake_case)]

#[unsafe(no_mangle)]
pub extern "system" fn clGetPlatformIDs(_: u32, _: *mut usize, _: *mut u32) -> i32 {
    std::process::abort()
}
