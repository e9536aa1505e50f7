//! A library linked to the system's libOpenCL, in which one call misbehaves: the n-th since arming. The call fails with a given
//! status, before or after the driver runs it, or it returns wrong data. The library counts the objects that are alive.
//!
//! Releases never fail, because a driver that refuses a release keeps the object. A call that creates an object fails before it
//! runs. Only queries return wrong data.
#![allow(non_snake_case)]

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst},
};

type P = *mut c_void;

unsafe extern "C" {
    fn dlsym(handle: P, name: *const c_char) -> P;
}

/// The address of the next definition of this symbol, in the system's library.
fn next(slot: &AtomicPtr<c_void>, name: &CStr) -> P {
    const RTLD_NEXT: P = usize::MAX as P;
    if slot.load(SeqCst).is_null() {
        slot.store(unsafe { dlsym(RTLD_NEXT, name.as_ptr()) }, SeqCst);
    }
    let found = slot.load(SeqCst);
    assert!(!found.is_null(), "the system's library lacks {name:?}");
    found
}

/// Number of calls since the last arming.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// The number of the misbehaving call, from 1. If it is 0, no call misbehaves.
static FAILS: AtomicUsize = AtomicUsize::new(0);
static STATUS: AtomicI32 = AtomicI32::new(0);
/// One of the modes below.
static MODE: AtomicU32 = AtomicU32::new(BEFORE);
/// The call fails before the driver runs it.
const BEFORE: u32 = 0;
/// The call fails after the driver has run it.
const AFTER: u32 = 1;
/// The call reports more bytes, or a longer list, than can exist.
const SIZE: u32 = 2;
/// Each byte of the call's answer is 0xff.
const VALUE: u32 = 3;
/// The call fails before the driver runs it, and so does each later call of that name.
const ALWAYS: u32 = 4;
/// The call fails after the driver has run it, and so does the next clFinish.
const TWICE: u32 = 5;
/// The call fails after the driver has run it, and so does each later clFinish and clWaitForEvents.
const LOST: u32 = 6;
/// The name of the first call that misbehaved; null if none has.
static FAILED: AtomicPtr<c_char> = AtomicPtr::new(null_mut());
/// Number of calls that misbehaved.
static FIRED: AtomicUsize = AtomicUsize::new(0);
/// The names of the first calls since the last arming.
static NAMES: [AtomicPtr<c_char>; 4096] = [const { AtomicPtr::new(null_mut()) }; 4096];
/// Contexts, queues, buffers, programs, kernels, events and mappings that are alive.
static ALIVE: [AtomicI64; 7] = [const { AtomicI64::new(0) }; 7];

const CONTEXT: usize = 0;
const QUEUE: usize = 1;
const BUFFER: usize = 2;
const PROGRAM: usize = 3;
const KERNEL: usize = 4;
const EVENT: usize = 5;
const MAPPING: usize = 6;

/// Makes the `call`-th call after this one misbehave. If `call` is 0, no call misbehaves.
#[unsafe(no_mangle)]
pub extern "C" fn failing_arm(call: usize, status: i32, mode: u32) {
    FAILS.store(0, SeqCst);
    CALLS.store(0, SeqCst);
    FIRED.store(0, SeqCst);
    FAILED.store(null_mut(), SeqCst);
    STATUS.store(status, SeqCst);
    MODE.store(mode, SeqCst);
    FAILS.store(call, SeqCst);
}

#[unsafe(no_mangle)]
pub extern "C" fn failing_calls() -> usize {
    CALLS.load(SeqCst)
}

#[unsafe(no_mangle)]
pub extern "C" fn failing_fired() -> usize {
    FIRED.load(SeqCst)
}

/// The name of the `call`-th call.
#[unsafe(no_mangle)]
pub extern "C" fn failing_name(call: usize) -> *const c_char {
    NAMES[call - 1].load(SeqCst)
}

#[unsafe(no_mangle)]
pub extern "C" fn failing_failed() -> *const c_char {
    FAILED.load(SeqCst)
}

#[unsafe(no_mangle)]
pub extern "C" fn failing_alive(kind: usize) -> i64 {
    ALIVE[kind].load(SeqCst)
}

/// The status and the mode for this call, if it misbehaves.
fn due(name: &'static CStr, may_lie: bool) -> Option<(i32, u32)> {
    let call = CALLS.fetch_add(1, SeqCst) + 1;
    if let Some(known) = NAMES.get(call - 1) {
        known.store(name.as_ptr().cast_mut(), SeqCst);
    }
    let (mode, fails) = (MODE.load(SeqCst), FAILS.load(SeqCst));
    let first = FAILED.load(SeqCst).cast_const();
    let later = fails != 0 && call > fails && !first.is_null();
    let again = later
        && match mode {
            ALWAYS => first == name.as_ptr(),
            TWICE => name == c"clFinish" && FIRED.load(SeqCst) == 1,
            LOST => name == c"clFinish" || name == c"clWaitForEvents",
            _ => false,
        };
    let lies = matches!(mode, SIZE | VALUE);
    let due = (call == fails || again) && (may_lie || !lies);
    due.then(|| {
        // Fails if a call has misbehaved before, so the first name stays.
        let _ = FAILED.compare_exchange(null_mut(), name.as_ptr().cast_mut(), SeqCst, SeqCst);
        FIRED.fetch_add(1, SeqCst);
        let mode = match mode {
            ALWAYS => BEFORE,
            TWICE | LOST => AFTER,
            mode => mode,
        };
        (STATUS.load(SeqCst), mode)
    })
}

fn count(kind: usize, by: i64) {
    ALIVE[kind].fetch_add(by, SeqCst);
}

macro_rules! real {
    ($name:ident($($arg:expr),*; $($ty:ty),*) -> $ret:ty) => {{
        static SLOT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
        const NAME: &CStr = unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) };
        let call: unsafe extern "system" fn($($ty),*) -> $ret = unsafe { std::mem::transmute(next(&SLOT, NAME)) };
        (NAME, move || unsafe { call($($arg),*) })
    }};
}

macro_rules! calls {
    ($($kind:ident $(($object:expr))? fn $name:ident($($arg:ident: $ty:ty),*);)*) => {
        $( call! { $kind ($($object)?) $name $($arg: $ty,)* } )*
    };
}

macro_rules! call {
    (status () $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty),*) -> i32 {
            let (name, real) = real!($name($($arg),*; $($ty),*) -> i32);
            match due(name, false) {
                Some((status, BEFORE)) => status,
                Some((status, _)) => { real(); status }
                None => real(),
            }
        }
    };
    (list () $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty,)* count: *mut u32) -> i32 {
            let (name, real) = real!($name($($arg,)* count; $($ty,)* *mut u32) -> i32);
            match due(name, true) {
                Some((status, BEFORE)) => status,
                Some((status, AFTER)) => { real(); status }
                Some(_) if !count.is_null() => { let status = real(); unsafe { *count = u32::MAX }; status }
                _ => real(),
            }
        }
    };
    (query () $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty,)* size: usize, value: *mut u8, given: *mut usize) -> i32 {
            let (name, real) = real!($name($($arg,)* size, value, given; $($ty,)* usize, *mut u8, *mut usize) -> i32);
            match due(name, true) {
                Some((status, BEFORE)) => status,
                Some((status, AFTER)) => { real(); status }
                Some((_, SIZE)) if !given.is_null() => {
                    let status = real();
                    unsafe { *given = usize::MAX / 2 };
                    status
                }
                Some((_, VALUE)) if !value.is_null() => {
                    let status = real();
                    unsafe { value.write_bytes(0xff, size) };
                    status
                }
                _ => real(),
            }
        }
    };
    // The last argument receives an event, unless the call fails.
    (enqueue () $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty,)* event: *mut P) -> i32 {
            let name = unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) };
            let due = due(name, false);
            if let Some((status, BEFORE)) = due {
                return status;
            }
            let event = if due.is_some() { null_mut() } else { event };
            let (_, real) = real!($name($($arg,)* event; $($ty,)* *mut P) -> i32);
            let status = real();
            if status == 0 && !event.is_null() {
                count(EVENT, 1);
            }
            if status == 0 && stringify!($name) == "clEnqueueUnmapMemObject" {
                count(MAPPING, -1);
            }
            due.map_or(status, |(status, _)| status)
        }
    };
    (create ($kind:expr) $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty,)* status: *mut i32) -> P {
            let (name, real) = real!($name($($arg,)* status; $($ty,)* *mut i32) -> P);
            if let Some((code, _)) = due(name, false) {
                unsafe { *status = code };
                return null_mut();
            }
            let object = real();
            if !object.is_null() {
                count($kind, 1);
            }
            object
        }
    };
    (retain ($kind:expr) $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty),*) -> i32 {
            let (name, real) = real!($name($($arg),*; $($ty),*) -> i32);
            if let Some((status, _)) = due(name, false) {
                return status;
            }
            count($kind, 1);
            real()
        }
    };
    (release ($kind:expr) $name:ident $($arg:ident: $ty:ty,)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty),*) -> i32 {
            let (_, real) = real!($name($($arg),*; $($ty),*) -> i32);
            count($kind, -1);
            real()
        }
    };
}

calls! {
    list fn clGetPlatformIDs(n: u32, ids: P);
    query fn clGetPlatformInfo(platform: P, name: u32);
    list fn clGetDeviceIDs(platform: P, ty: u64, n: u32, ids: P);
    query fn clGetDeviceInfo(device: P, name: u32);
    create(CONTEXT) fn clCreateContext(properties: P, n: u32, devices: P, notify: P, data: P);
    retain(CONTEXT) fn clRetainContext(context: P);
    release(CONTEXT) fn clReleaseContext(context: P);
    query fn clGetContextInfo(context: P, name: u32);
    create(QUEUE) fn clCreateCommandQueue(context: P, device: P, properties: u64);
    retain(QUEUE) fn clRetainCommandQueue(queue: P);
    release(QUEUE) fn clReleaseCommandQueue(queue: P);
    query fn clGetCommandQueueInfo(queue: P, name: u32);
    create(BUFFER) fn clCreateBuffer(context: P, flags: u64, size: usize, host: P);
    create(BUFFER) fn clCreateSubBuffer(buffer: P, flags: u64, ty: u32, info: P);
    retain(BUFFER) fn clRetainMemObject(buffer: P);
    release(BUFFER) fn clReleaseMemObject(buffer: P);
    query fn clGetMemObjectInfo(buffer: P, name: u32);
    create(PROGRAM) fn clCreateProgramWithSource(context: P, n: u32, texts: P, lengths: P);
    create(PROGRAM) fn clCreateProgramWithBinary(context: P, n: u32, devices: P, lengths: P, binaries: P, loaded: P);
    retain(PROGRAM) fn clRetainProgram(program: P);
    release(PROGRAM) fn clReleaseProgram(program: P);
    status fn clBuildProgram(program: P, n: u32, devices: P, options: P, notify: P, data: P);
    query fn clGetProgramInfo(program: P, name: u32);
    query fn clGetProgramBuildInfo(program: P, device: P, name: u32);
    create(KERNEL) fn clCreateKernel(program: P, name: P);
    retain(KERNEL) fn clRetainKernel(kernel: P);
    release(KERNEL) fn clReleaseKernel(kernel: P);
    status fn clSetKernelArg(kernel: P, index: u32, size: usize, value: P);
    query fn clGetKernelInfo(kernel: P, name: u32);
    query fn clGetKernelWorkGroupInfo(kernel: P, device: P, name: u32);
    status fn clWaitForEvents(n: u32, events: P);
    query fn clGetEventInfo(event: P, name: u32);
    retain(EVENT) fn clRetainEvent(event: P);
    release(EVENT) fn clReleaseEvent(event: P);
    query fn clGetEventProfilingInfo(event: P, name: u32);
    status fn clFlush(queue: P);
    status fn clFinish(queue: P);
    enqueue fn clEnqueueReadBuffer(queue: P, buffer: P, blocks: u32, offset: usize, size: usize, to: P, n: u32, events: P);
    enqueue fn clEnqueueWriteBuffer(queue: P, buffer: P, blocks: u32, offset: usize, size: usize, from: P, n: u32, events: P);
    enqueue fn clEnqueueFillBuffer(queue: P, buffer: P, pattern: P, bytes: usize, offset: usize, size: usize, n: u32, events: P);
    enqueue fn clEnqueueCopyBuffer(queue: P, from: P, to: P, from_offset: usize, to_offset: usize, size: usize, n: u32, events: P);
    create(MAPPING) fn clEnqueueMapBuffer(queue: P, buffer: P, blocks: u32, flags: u64, offset: usize, size: usize, n: u32, events: P, event: P);
    enqueue fn clEnqueueUnmapMemObject(queue: P, buffer: P, address: P, n: u32, events: P);
    enqueue fn clEnqueueNDRangeKernel(queue: P, kernel: P, axes: u32, offset: P, global: P, local: P, n: u32, events: P);
    enqueue fn clEnqueueBarrierWithWaitList(queue: P, n: u32, events: P);
    enqueue fn clEnqueueMarkerWithWaitList(queue: P, n: u32, events: P);
}
