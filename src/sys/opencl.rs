//! Definitions of the `cl*` entry points that `cl-sys` declares. Each forwards to the OpenCL loader, which is opened at
//! run time.
//!
//! The definitions are hidden, so that a cdylib does not export them. They cover all entry points of the loader, not
//! only those of `cl-sys`. The empty archive of build.rs shadows `-lOpenCL` for every crate in the graph.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments, clashing_extern_declarations)]
#![allow(unreachable_pub, reason = "the linker is the reader")]
// SAFETY, for the whole file: each function passes its arguments unchanged to the loader's function of the same name
// and signature. The caller's own contract applies. If the loader lacks that function, the definition returns an error.
// It then writes only through the status pointer, which OpenCL requires to be valid or null.
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use super::library::{Library, NAMES};

const UNAVAILABLE: i32 = -59; // CL_INVALID_OPERATION
const PLATFORM_NOT_FOUND_KHR: i32 = -1001;

/// The library, or the reason why it did not open.
fn opened() -> &'static Result<Library, String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| std::env::var_os("OPENCL_LIBRARY").map_or_else(|| Library::first(NAMES), Library::named))
}
/// The reason why there is no library; `None` if it is open.
pub(crate) fn missing() -> Option<&'static str> {
    opened().as_ref().err().map(String::as_str)
}
#[cold]
fn resolve(slot: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let p = opened().as_ref().map_or(core::ptr::null_mut(), |library| library.find(name));
    let p = if p.is_null() { MISSING as *mut c_void } else { p };
    slot.store(p, Ordering::Release);
    p
}
const MISSING: usize = 1;
unsafe fn fail(err: *mut i32) -> *mut c_void {
    if !err.is_null() {
        unsafe { *err = UNAVAILABLE }
    }
    core::ptr::null_mut()
}
/// Keeps an entry point out of a cdylib's exports. Windows has no such directive, so a cdylib there exports the entry
/// point.
macro_rules! hide {
    ($name:ident) => {
        #[cfg(target_vendor = "apple")]
        core::arch::global_asm!(concat!(".private_extern _", stringify!($name)));
        #[cfg(not(any(target_vendor = "apple", windows)))]
        core::arch::global_asm!(concat!(".hidden ", stringify!($name)));
    };
}
/// Defines the pointer through which code of Microsoft's compilers calls an entry point of a DLL. A linker defines a
/// missing pointer itself. But when LLD does so, it removes the function.
macro_rules! imported {
    ($name:ident: $ty:ty) => {
        #[cfg(all(target_env = "msvc", not(target_arch = "x86")))]
        const _: () = {
            #[unsafe(export_name = concat!("__imp_", stringify!($name)))]
            static POINTER: $ty = $name;
        };
    };
}
macro_rules! forward {
    ($( fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $fallback:expr; )*) => { $(
        hide!($name);
        imported!($name: unsafe extern "system" fn($($ty),*) $(-> $ret)?);
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty),*) $(-> $ret)? {
            static SLOT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let mut p = SLOT.load(Ordering::Acquire);
            if p.is_null() {
                p = resolve(&SLOT, unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) });
            }
            if p as usize == MISSING { #[allow(unused_unsafe)] return unsafe { $fallback }; }
            let f: unsafe extern "system" fn($($ty),*) $(-> $ret)? = unsafe { core::mem::transmute(p) };
            unsafe { f($($arg),*) }
        }
    )* };
}
hide!(clGetPlatformIDs);
imported!(clGetPlatformIDs: unsafe extern "system" fn(u32, *mut *mut c_void, *mut u32) -> i32);
/// Reports zero platforms, not an error, if there is no loader, or a loader without a driver. After an error `ocl-core` would
/// retry for ten seconds.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn clGetPlatformIDs(
    num_entries: u32,
    platforms: *mut *mut c_void,
    num_platforms: *mut u32,
) -> i32 {
    type F = unsafe extern "system" fn(u32, *mut *mut c_void, *mut u32) -> i32;
    static SLOT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let mut p = SLOT.load(Ordering::Acquire);
    if p.is_null() {
        p = resolve(&SLOT, c"clGetPlatformIDs");
    }
    let rc = if p as usize == MISSING {
        PLATFORM_NOT_FOUND_KHR
    } else {
        let f: F = unsafe { core::mem::transmute(p) };
        unsafe { f(num_entries, platforms, num_platforms) }
    };
    if rc == PLATFORM_NOT_FOUND_KHR {
        if !num_platforms.is_null() {
            unsafe { *num_platforms = 0 }
        }
        return 0;
    }
    rc
}
forward! {
    fn clGetPlatformInfo(platform: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetDeviceIDs(platform: *mut c_void, device_type: u64, num_entries: u32, devices: *mut *mut c_void, num_devices: *mut u32) -> i32 = UNAVAILABLE;
    fn clGetDeviceInfo(device: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateSubDevices(in_device: *mut c_void, properties: *const isize, num_devices: u32, out_devices: *mut *mut c_void, num_devices_ret: *mut u32) -> i32 = UNAVAILABLE;
    fn clRetainDevice(device: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseDevice(device: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSetDefaultDeviceCommandQueue(context: *mut c_void, device: *mut c_void, command_queue: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetDeviceAndHostTimer(device: *mut c_void, device_timestamp: *mut u64, host_timestamp: *mut u64) -> i32 = UNAVAILABLE;
    fn clGetHostTimer(device: *mut c_void, host_timestamp: *mut u64) -> i32 = UNAVAILABLE;
    fn clCreateContext(properties: *const isize, num_devices: u32, devices: *const *mut c_void, pfn_notify: *mut c_void, user_data: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateContextFromType(properties: *const isize, device_type: u64, pfn_notify: *mut c_void, user_data: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainContext(context: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseContext(context: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetContextInfo(context: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateCommandQueue(context: *mut c_void, device: *mut c_void, properties: u64, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateCommandQueueWithProperties(context: *mut c_void, device: *mut c_void, properties: *const u64, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainCommandQueue(command_queue: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseCommandQueue(command_queue: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetCommandQueueInfo(command_queue: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateBuffer(context: *mut c_void, flags: u64, size: usize, host_ptr: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateSubBuffer(buffer: *mut c_void, flags: u64, buffer_create_type: u32, buffer_create_info: *const c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateImage2D(context: *mut c_void, flags: u64, image_format: *mut c_void, image_width: usize, image_depth: usize, image_slc_pitch: usize, host_ptr: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateImage3D(context: *mut c_void, flags: u64, image_format: *mut c_void, image_width: usize, image_height: usize, image_depth: usize, image_row_pitch: usize, image_slc_pitch: usize, host_ptr: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateImage(context: *mut c_void, flags: u64, image_format: *const c_void, image_desc: *const c_void, host_ptr: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreatePipe(context: *mut c_void, flags: u64, pipe_packet_size: u32, pipe_max_packets: u32, properties: *const isize, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainMemObject(memobj: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseMemObject(memobj: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetSupportedImageFormats(context: *mut c_void, flags: u64, image_type: u32, num_entries: u32, image_formats: *mut c_void, num_image_formats: *mut u32) -> i32 = UNAVAILABLE;
    fn clGetMemObjectInfo(memobj: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetImageInfo(image: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetPipeInfo(pipe: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clSetMemObjectDestructorCallback(memobj: *mut c_void, pfn_notify: *mut c_void, user_data: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSVMAlloc(context: *mut c_void, flags: u64, size: usize, alignment: u32) -> *mut c_void = core::ptr::null_mut();
    fn clSVMFree(context: *mut c_void, svm_pointer: *mut c_void) = ();
    fn clCreateSampler(context: *mut c_void, normalize_coords: u32, addressing_mode: u32, filter_mode: u32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateSamplerWithProperties(context: *mut c_void, normalized_coords: *const u64, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainSampler(sampler: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseSampler(sampler: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetSamplerInfo(sampler: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateProgramWithSource(context: *mut c_void, count: u32, strings: *const *const c_char, lengths: *const usize, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateProgramWithBinary(context: *mut c_void, num_devices: u32, device_list: *const *mut c_void, lengths: *const usize, binaries: *const *const u8, binary_status: *mut i32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateProgramWithBuiltInKernels(context: *mut c_void, num_devices: u32, device_list: *const *mut c_void, kernel_names: *const c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateProgramWithIL(context: *mut c_void, il: *const c_void, length: usize, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainProgram(program: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseProgram(program: *mut c_void) -> i32 = UNAVAILABLE;
    fn clBuildProgram(program: *mut c_void, num_devices: u32, device_list: *const *mut c_void, options: *const c_char, pfn_notify: *mut c_void, user_data: *mut c_void) -> i32 = UNAVAILABLE;
    fn clUnloadCompiler() -> i32 = UNAVAILABLE;
    fn clCompileProgram(program: *mut c_void, num_devices: u32, device_list: *const *mut c_void, options: *const c_char, num_input_headers: u32, input_headers: *const *mut c_void, header_include_names: *const *const c_char, pfn_notify: *mut c_void, user_data: *mut c_void) -> i32 = UNAVAILABLE;
    fn clLinkProgram(context: *mut c_void, num_devices: u32, device_list: *const *mut c_void, options: *const c_char, num_input_programs: u32, input_programs: *const *mut c_void, pfn_notify: *mut c_void, user_data: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clGetProgramInfo(program: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetProgramBuildInfo(program: *mut c_void, device: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateKernel(program: *mut c_void, kernel_name: *const c_char, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateKernelsInProgram(program: *mut c_void, num_kernels: u32, kernels: *mut *mut c_void, num_kernels_ret: *mut u32) -> i32 = UNAVAILABLE;
    fn clCloneKernel(source_kernel: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainKernel(kernel: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseKernel(kernel: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSetKernelArg(kernel: *mut c_void, arg_index: u32, arg_size: usize, arg_value: *const c_void) -> i32 = UNAVAILABLE;
    fn clSetKernelArgSVMPointer(kernel: *mut c_void, arg_index: u32, arg_value: *const c_void) -> i32 = UNAVAILABLE;
    fn clSetKernelExecInfo(kernel: *mut c_void, param_name: u32, param_value_size: usize, param_value: *const c_void) -> i32 = UNAVAILABLE;
    fn clGetKernelInfo(kernel: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetKernelArgInfo(kernel: *mut c_void, arg_indx: u32, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetKernelWorkGroupInfo(kernel: *mut c_void, device: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clGetKernelSubGroupInfo(kernel: *mut c_void, device: *mut c_void, param_name: u32, input_value_size: usize, input_value: *const c_void, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clWaitForEvents(num_events: u32, event_list: *const *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetEventInfo(event: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateUserEvent(context: *mut c_void, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clRetainEvent(event: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseEvent(event: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSetUserEventStatus(event: *mut c_void, execution_status: i32) -> i32 = UNAVAILABLE;
    fn clSetEventCallback(event: *mut c_void, command_exec_callback_type: i32, pfn_notify: *mut c_void, user_data: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetEventProfilingInfo(event: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clFlush(command_queue: *mut c_void) -> i32 = UNAVAILABLE;
    fn clFinish(command_queue: *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueReadBuffer(command_queue: *mut c_void, buffer: *mut c_void, blocking_read: u32, offset: usize, cb: usize, ptr: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueReadBufferRect(command_queue: *mut c_void, buffer: *mut c_void, blocking_read: u32, buffer_origin: *const usize, host_origin: *const usize, region: *const usize, buffer_row_pitch: usize, buffer_slc_pitch: usize, host_row_pitch: usize, host_slc_pitch: usize, ptr: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueWriteBuffer(command_queue: *mut c_void, buffer: *mut c_void, blocking_write: u32, offset: usize, cb: usize, ptr: *const c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueWriteBufferRect(command_queue: *mut c_void, buffer: *mut c_void, blocking_write: u32, buffer_origin: *const usize, host_origin: *const usize, region: *const usize, buffer_row_pitch: usize, buffer_slc_pitch: usize, host_row_pitch: usize, host_slc_pitch: usize, ptr: *const c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueFillBuffer(command_queue: *mut c_void, buffer: *mut c_void, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueCopyBuffer(command_queue: *mut c_void, src_buffer: *mut c_void, dst_buffer: *mut c_void, src_offset: usize, dst_offset: usize, cb: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueCopyBufferRect(command_queue: *mut c_void, src_buffer: *mut c_void, dst_buffer: *mut c_void, src_origin: *const usize, dst_origin: *const usize, region: *const usize, src_row_pitch: usize, src_slc_pitch: usize, dst_row_pitch: usize, dst_slc_pitch: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueReadImage(command_queue: *mut c_void, image: *mut c_void, blocking_read: u32, origin: *const usize, region: *const usize, row_pitch: usize, slc_pitch: usize, ptr: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueWriteImage(command_queue: *mut c_void, image: *mut c_void, blocking_write: u32, origin: *const usize, region: *const usize, input_row_pitch: usize, input_slc_pitch: usize, ptr: *const c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueFillImage(command_queue: *mut c_void, image: *mut c_void, fill_color: *const c_void, origin: *const usize, region: *const usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueCopyImage(command_queue: *mut c_void, src_image: *mut c_void, dst_image: *mut c_void, src_origin: *const usize, dst_origin: *const usize, region: *const usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueCopyImageToBuffer(command_queue: *mut c_void, src_image: *mut c_void, dst_buffer: *mut c_void, src_origin: *const usize, region: *const usize, dst_offset: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueCopyBufferToImage(command_queue: *mut c_void, src_buffer: *mut c_void, dst_image: *mut c_void, src_offset: usize, dst_origin: *const usize, region: *const usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueMapBuffer(command_queue: *mut c_void, buffer: *mut c_void, blocking_map: u32, map_flags: u64, offset: usize, size: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void, errorcode_ret: *mut i32) -> *mut c_void = fail(errorcode_ret);
    fn clEnqueueMapImage(command_queue: *mut c_void, image: *mut c_void, blocking_map: u32, map_flags: u64, origin: *const usize, region: *const usize, image_row_pitch: *mut usize, image_slc_pitch: *mut usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void, errorcode_ret: *mut i32) -> *mut c_void = fail(errorcode_ret);
    fn clEnqueueUnmapMemObject(command_queue: *mut c_void, memobj: *mut c_void, mapped_ptr: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueMigrateMemObjects(command_queue: *mut c_void, num_mem_objects: u32, mem_objects: *const *mut c_void, flags: u64, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueNDRangeKernel(command_queue: *mut c_void, kernel: *mut c_void, work_dim: u32, global_work_offset: *const usize, global_work_dims: *const usize, local_work_dims: *const usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueTask(command_queue: *mut c_void, kernel: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueNativeKernel(command_queue: *mut c_void, user_func: *mut c_void, args: *mut c_void, cb_args: usize, num_mem_objects: u32, mem_list: *const *mut c_void, args_mem_loc: *const *const c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueMarker(command_queue: *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueMarkerWithWaitList(command_queue: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueWaitForEvents(command_queue: *mut c_void, num_events: u32, event_list: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueBarrierWithWaitList(command_queue: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueSVMFree(command_queue: *mut c_void, num_svm_pointers: u32, svm_pointers: *const *const c_void, pfn_free_func: *mut c_void, user_data: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueSVMMemcpy(command_queue: *mut c_void, blocking_copy: u32, dst_ptr: *mut c_void, src_ptr: *const c_void, size: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueSVMMemFill(command_queue: *mut c_void, svm_ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueSVMMap(command_queue: *mut c_void, blocking_map: u32, flags: u64, svm_ptr: *mut c_void, size: usize, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueSVMUnmap(command_queue: *mut c_void, svm_ptr: *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueSVMMigrateMem(command_queue: *mut c_void, num_svm_pointers: u32, svm_pointers: *const *const c_void, sizes: *const usize, flags: u64, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueBarrier(command_queue: *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetExtensionFunctionAddress(func_name: *mut c_char) -> *mut c_void = core::ptr::null_mut();
    fn clGetExtensionFunctionAddressForPlatform(platform: *mut c_void, func_name: *const c_char) -> *mut c_void = core::ptr::null_mut();
    fn clCreateFromGLBuffer(context: *mut c_void, flags: u64, bufobj: u32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateFromGLTexture(context: *mut c_void, flags: u64, texture_target: u32, miplevel: i32, texture: u32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clGetGLObjectInfo(memobj: *mut c_void, gl_object_type: *mut u32, gl_object_name: *mut u32) -> i32 = UNAVAILABLE;
    fn clGetGLTextureInfo(memobj: *mut c_void, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateFromGLRenderbuffer(context: *mut c_void, flags: u64, renderbuffer: u32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clEnqueueAcquireGLObjects(command_queue: *mut c_void, num_objects: u32, mem_objects: *const *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueReleaseGLObjects(command_queue: *mut c_void, num_objects: u32, mem_objects: *const *mut c_void, num_events_in_wait_list: u32, event_wait_list: *const *mut c_void, event: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clGetGLContextInfoKHR(properties: *const isize, param_name: u32, param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateFromGLTexture2D(context: *mut c_void, flags: u64, texture_target: u32, miplevel: i32, texture: u32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateFromGLTexture3D(context: *mut c_void, flags: u64, texture_target: u32, miplevel: i32, texture: u32, errcode_ret: *mut i32) -> *mut c_void = fail(errcode_ret);
    fn clCreateBufferWithProperties(c: *mut c_void, p: *const u64, f: u64, n: usize, h: *mut c_void, e: *mut i32) -> *mut c_void = fail(e);
    fn clCreateImageWithProperties(c: *mut c_void, p: *const u64, f: u64, fmt: *const c_void, d: *const c_void, h: *mut c_void, e: *mut i32) -> *mut c_void = fail(e);
    fn clSetContextDestructorCallback(c: *mut c_void, f: *mut c_void, u: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSetProgramReleaseCallback(c: *mut c_void, f: *mut c_void, u: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSetProgramSpecializationConstant(c: *mut c_void, i: u32, n: usize, v: *const c_void) -> i32 = UNAVAILABLE;
    fn clUnloadPlatformCompiler(c: *mut c_void) -> i32 = UNAVAILABLE;
    fn clSetCommandQueueProperty(q: *mut c_void, p: u64, e: u32, o: *mut u64) -> i32 = UNAVAILABLE;
    fn clGetKernelSubGroupInfoKHR(k: *mut c_void, d: *mut c_void, p: u32, n: usize, i: *const c_void, m: usize, o: *mut c_void, r: *mut usize) -> i32 = UNAVAILABLE;
    fn clCreateSubDevicesEXT(d: *mut c_void, p: *const u64, n: u32, o: *mut *mut c_void, r: *mut u32) -> i32 = UNAVAILABLE;
    fn clRetainDeviceEXT(d: *mut c_void) -> i32 = UNAVAILABLE;
    fn clReleaseDeviceEXT(d: *mut c_void) -> i32 = UNAVAILABLE;
    fn clCreateEventFromEGLSyncKHR(c: *mut c_void, s: *mut c_void, d: *mut c_void, e: *mut i32) -> *mut c_void = fail(e);
    fn clCreateFromEGLImageKHR(c: *mut c_void, d: *mut c_void, i: *mut c_void, f: u64, p: *const isize, e: *mut i32) -> *mut c_void = fail(e);
    fn clEnqueueAcquireEGLObjectsKHR(q: *mut c_void, n: u32, o: *const *mut c_void, m: u32, w: *const *mut c_void, e: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clEnqueueReleaseEGLObjectsKHR(q: *mut c_void, n: u32, o: *const *mut c_void, m: u32, w: *const *mut c_void, e: *mut *mut c_void) -> i32 = UNAVAILABLE;
    fn clCreateEventFromGLsyncKHR(c: *mut c_void, s: *mut c_void, e: *mut i32) -> *mut c_void = fail(e);
    fn clGetKernelSuggestedLocalWorkSize(q: *mut c_void, k: *mut c_void, d: u32, o: *const usize, g: *const usize, l: *mut usize) -> i32 = UNAVAILABLE;
}
