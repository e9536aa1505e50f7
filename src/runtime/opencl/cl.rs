//! Thin, checked calls into OpenCL: every status becomes a [`Result`], known or not.
//!
//! `ocl`'s own wrappers panic on statuses that they do not list, even when a handle of a lost device is dropped. They also
//! treat a failed build with an empty log as a success. So calls go to its `ffi`, and this module has its own handles.

use std::{
    ffi::c_void,
    fmt::Display,
    mem::{self, MaybeUninit},
    ptr,
    sync::Arc,
};

use ocl::{
    core::{DeviceId, PlatformId},
    ffi::{self, cl_event, cl_int},
};

use crate::{Error, ErrorKind, Result};

pub(super) const SUCCESS: cl_int = 0;

// Limits on counts and sizes that a driver reports. The crate allocates that much, and a broken driver may report any
// number.
/// Platforms, and devices of a platform.
const MAX_LISTED: usize = 1024;
/// Bytes of a property, such as a name or a list of extensions.
const MAX_PROPERTY_BYTES: usize = 1 << 16;
/// Bytes of a compiler's log.
const MAX_LOG_BYTES: usize = 16 << 20;
/// Bytes of a program's binary.
const MAX_BINARY_BYTES: usize = 64 << 20;
/// Characters of a log's line in an error's message.
const MAX_LINE: usize = 1000;

/// Maximum runs of a query that fails with a transient status.
const TRIES: usize = 3;

macro_rules! handles {
    ($($(#[$doc:meta])* $vis:vis $name:ident: $raw:ident, $retain:ident, $release:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// Clones share one reference to the object. So a clone calls no driver function, which could fail.
        #[derive(Clone, Debug)]
        $vis struct $name(Arc<Held<ffi::$raw>>);

        #[allow(dead_code, reason = "not every kind of object uses every method")]
        impl $name {
            /// # Safety
            ///
            /// `raw` is a valid object, and this handle takes over one reference to it.
            pub(crate) unsafe fn from_raw_create_ptr(raw: ffi::$raw) -> Self {
                Self(Arc::new(Held { raw, release: ffi::$release }))
            }

            /// # Safety
            ///
            /// `raw` is a valid object; the caller keeps its own reference.
            pub(crate) unsafe fn from_raw_copied_ptr(raw: ffi::$raw) -> Result<Self> {
                // SAFETY: the caller promises it.
                check(unsafe { ffi::$retain(raw) }, concat!("keeping an object by ", stringify!($retain)))?;
                // SAFETY: the driver has just added this reference.
                Ok(unsafe { Self::from_raw_create_ptr(raw) })
            }

            pub(crate) fn as_ptr(&self) -> ffi::$raw {
                self.0.raw
            }

            /// Returns the object with a new reference for another owner.
            pub(crate) fn retained(&self) -> Result<ffi::$raw> {
                // SAFETY: `self` holds a reference, so the object is valid.
                let other = unsafe { Self::from_raw_copied_ptr(self.as_ptr()) }?;
                let held = Arc::into_inner(other.0).map(mem::ManuallyDrop::new);
                Ok(held.expect("a handle without clones").raw)
            }
        }
    )* };
}

/// A reference to an object, which the last owner releases.
#[derive(Debug)]
struct Held<R: Copy> {
    raw: R,
    release: unsafe extern "system" fn(R) -> cl_int,
}

// SAFETY: every thread may use OpenCL's objects. Kernels, whose arguments are not guarded, are never shared.
unsafe impl<R: Copy> Send for Held<R> {}
// SAFETY: as above.
unsafe impl<R: Copy> Sync for Held<R> {}

impl<R: Copy> Drop for Held<R> {
    fn drop(&mut self) {
        // SAFETY: this releases the reference that came with the object. A driver that has lost its device refuses. The object
        // then stays allocated, but no result depends on it, so the status is ignored.
        unsafe { (self.release)(self.raw) };
    }
}

handles! {
    /// A context. The driver counts references to it and to all objects below.
    pub(crate) Context: cl_context, clRetainContext, clReleaseContext;
    /// A command queue.
    pub(crate) CommandQueue: cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue;
    /// A buffer.
    pub Mem: cl_mem, clRetainMemObject, clReleaseMemObject;
    /// A program.
    pub(crate) Program: cl_program, clRetainProgram, clReleaseProgram;
    /// A kernel with its arguments.
    pub(crate) Kernel: cl_kernel, clRetainKernel, clReleaseKernel;
    /// The state of a command.
    pub(crate) Event: cl_event, clRetainEvent, clReleaseEvent;
}
/// The status of a loader without a driver (`cl_khr_icd`).
const CL_PLATFORM_NOT_FOUND_KHR: cl_int = -1001;

macro_rules! names {
    ($status:expr, $($name:ident)*) => {
        match $status {
            $(ffi::$name => stringify!($name),)*
            CL_PLATFORM_NOT_FOUND_KHR => "CL_PLATFORM_NOT_FOUND_KHR",
            _ => "unlisted status",
        }
    };
}

/// The name of an OpenCL status, for messages.
fn status_name(status: cl_int) -> &'static str {
    names!(
        status,
        CL_DEVICE_NOT_FOUND
        CL_DEVICE_NOT_AVAILABLE
        CL_COMPILER_NOT_AVAILABLE
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        CL_OUT_OF_RESOURCES
        CL_OUT_OF_HOST_MEMORY
        CL_PROFILING_INFO_NOT_AVAILABLE
        CL_MEM_COPY_OVERLAP
        CL_BUILD_PROGRAM_FAILURE
        CL_MAP_FAILURE
        CL_MISALIGNED_SUB_BUFFER_OFFSET
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        CL_COMPILE_PROGRAM_FAILURE
        CL_LINKER_NOT_AVAILABLE
        CL_LINK_PROGRAM_FAILURE
        CL_INVALID_VALUE
        CL_INVALID_DEVICE_TYPE
        CL_INVALID_PLATFORM
        CL_INVALID_DEVICE
        CL_INVALID_CONTEXT
        CL_INVALID_QUEUE_PROPERTIES
        CL_INVALID_COMMAND_QUEUE
        CL_INVALID_HOST_PTR
        CL_INVALID_MEM_OBJECT
        CL_INVALID_BINARY
        CL_INVALID_BUILD_OPTIONS
        CL_INVALID_PROGRAM
        CL_INVALID_PROGRAM_EXECUTABLE
        CL_INVALID_KERNEL_NAME
        CL_INVALID_KERNEL_DEFINITION
        CL_INVALID_KERNEL
        CL_INVALID_ARG_INDEX
        CL_INVALID_ARG_VALUE
        CL_INVALID_ARG_SIZE
        CL_INVALID_KERNEL_ARGS
        CL_INVALID_WORK_DIMENSION
        CL_INVALID_WORK_GROUP_SIZE
        CL_INVALID_WORK_ITEM_SIZE
        CL_INVALID_GLOBAL_OFFSET
        CL_INVALID_EVENT_WAIT_LIST
        CL_INVALID_EVENT
        CL_INVALID_OPERATION
        CL_INVALID_BUFFER_SIZE
        CL_INVALID_GLOBAL_WORK_SIZE
        CL_INVALID_PROPERTY
        CL_INVALID_COMPILER_OPTIONS
    )
}

/// The error for a failed call; `what` describes the request, with its numbers.
pub(super) fn failure(status: cl_int, what: impl Display) -> Error {
    let kind = match status {
        ffi::CL_MEM_OBJECT_ALLOCATION_FAILURE | ffi::CL_OUT_OF_HOST_MEMORY | ffi::CL_INVALID_BUFFER_SIZE => {
            ErrorKind::OutOfMemory
        }
        ffi::CL_COMPILER_NOT_AVAILABLE
        | ffi::CL_BUILD_PROGRAM_FAILURE
        | ffi::CL_INVALID_BINARY
        | ffi::CL_INVALID_BUILD_OPTIONS
        | ffi::CL_INVALID_PROGRAM
        | ffi::CL_INVALID_PROGRAM_EXECUTABLE => ErrorKind::Build,
        ffi::CL_DEVICE_NOT_FOUND | ffi::CL_DEVICE_NOT_AVAILABLE | CL_PLATFORM_NOT_FOUND_KHR => ErrorKind::NoDevice,
        _ => ErrorKind::Driver,
    };
    Error::new(kind, format!("{what} failed: {} ({status})", status_name(status))).with_status(status)
}

pub(super) fn check(status: cl_int, what: impl Display) -> Result<()> {
    if status == SUCCESS { Ok(()) } else { Err(failure(status, what)) }
}

/// Returns true if the same call may succeed later. Memory was short, a command failed, the device or one of its objects
/// is lost, or the status is unknown. Any other status states a lasting fact of the call or the device.
fn is_transient(status: cl_int) -> bool {
    let lasting = matches!(
        status,
        SUCCESS
            | ffi::CL_DEVICE_NOT_FOUND
            | ffi::CL_COMPILER_NOT_AVAILABLE
            | ffi::CL_PROFILING_INFO_NOT_AVAILABLE
            | ffi::CL_MEM_COPY_OVERLAP
            | ffi::CL_BUILD_PROGRAM_FAILURE
            | ffi::CL_MISALIGNED_SUB_BUFFER_OFFSET
            | ffi::CL_COMPILE_PROGRAM_FAILURE
            | ffi::CL_LINKER_NOT_AVAILABLE
            | ffi::CL_LINK_PROGRAM_FAILURE
            | ffi::CL_INVALID_VALUE
            | ffi::CL_INVALID_DEVICE_TYPE
            | ffi::CL_INVALID_PLATFORM
            | ffi::CL_INVALID_QUEUE_PROPERTIES
            | ffi::CL_INVALID_HOST_PTR
            | ffi::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
            | ffi::CL_INVALID_IMAGE_SIZE
            | ffi::CL_INVALID_SAMPLER
            | ffi::CL_INVALID_BINARY
            | ffi::CL_INVALID_BUILD_OPTIONS
            | ffi::CL_INVALID_PROGRAM
            | ffi::CL_INVALID_PROGRAM_EXECUTABLE
            | ffi::CL_INVALID_KERNEL_NAME
            | ffi::CL_INVALID_KERNEL_DEFINITION
            | ffi::CL_INVALID_ARG_INDEX
            | ffi::CL_INVALID_ARG_VALUE
            | ffi::CL_INVALID_ARG_SIZE
            | ffi::CL_INVALID_KERNEL_ARGS
            | ffi::CL_INVALID_WORK_DIMENSION
            | ffi::CL_INVALID_WORK_GROUP_SIZE
            | ffi::CL_INVALID_WORK_ITEM_SIZE
            | ffi::CL_INVALID_GLOBAL_OFFSET
            | ffi::CL_INVALID_EVENT_WAIT_LIST
            | ffi::CL_INVALID_OPERATION
            | ffi::CL_INVALID_BUFFER_SIZE
            | ffi::CL_INVALID_GLOBAL_WORK_SIZE
            | ffi::CL_INVALID_PROPERTY
            | ffi::CL_INVALID_IMAGE_DESCRIPTOR
            | ffi::CL_INVALID_COMPILER_OPTIONS
            | CL_PLATFORM_NOT_FOUND_KHR
    );
    !lasting
}

/// Returns true if the error has a [transient](is_transient) status.
pub(super) fn transient(error: &Error) -> bool {
    error.status().is_some_and(is_transient)
}

/// Returns the status of a query. A query changes nothing, so this function repeats it after a transient failure.
fn ask(mut query: impl FnMut() -> cl_int) -> cl_int {
    let mut status = query();
    for _ in 1..TRIES {
        if !is_transient(status) {
            break;
        }
        status = query();
    }
    status
}

/// Returns `count`, or an error if it exceeds `most`; `what` names the counted things.
fn bounded(count: usize, most: usize, what: impl Display) -> Result<usize> {
    if count <= most {
        return Ok(count);
    }
    Err(Error::new(ErrorKind::Driver, format!("the driver reports {count} {what}, the limit is {most}")))
}

/// Returns the object that a call created.
fn created(raw: *mut c_void, status: cl_int, what: impl Display) -> Result<*mut c_void> {
    check(status, &what)?;
    if raw.is_null() {
        return Err(Error::new(ErrorKind::Driver, format!("{what} failed: the driver returned no object")));
    }
    Ok(raw)
}

/// The event of the command that `enqueue` enqueues. `enqueue` gets the wait list of `events`, and the address for the event.
///
/// # Safety
///
/// `enqueue` is one enqueueing call, which stores a reference to a new event if it succeeds.
unsafe fn enqueued(
    what: impl Display,
    events: &[cl_event],
    enqueue: impl FnOnce(u32, *const cl_event, *mut cl_event) -> cl_int,
) -> Result<Event> {
    let mut event: cl_event = ptr::null_mut();
    let list = if events.is_empty() { ptr::null() } else { events.as_ptr() };
    let status = enqueue(events.len() as u32, list, &mut event);
    let event = created(event, status, what)?;
    // SAFETY: the caller promises it.
    Ok(unsafe { Event::from_raw_create_ptr(event) })
}

/// Storage for an event of an enqueueing call, if an event is wanted: each event costs the driver time.
pub(super) struct EventSlot {
    wanted: bool,
    raw: cl_event,
}

impl EventSlot {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, raw: ptr::null_mut() }
    }

    fn address(&mut self) -> *mut cl_event {
        if self.wanted { &mut self.raw } else { ptr::null_mut() }
    }

    /// The event of the call, after it succeeded.
    pub(super) fn take(self) -> Option<Event> {
        // SAFETY: the call stored one reference to a new event, which this takes over.
        (!self.raw.is_null()).then(|| unsafe { Event::from_raw_create_ptr(self.raw) })
    }
}

/// Every platform; an empty list, not an error, if there is no loader or no driver.
pub(super) fn platforms() -> Result<Vec<PlatformId>> {
    // SAFETY: `listed` passes a null list with zero entries, or a list with room for that many.
    let ids = listed("platforms", |most, ids, count| unsafe { ffi::clGetPlatformIDs(most, ids, count) })?;
    // SAFETY: the loader just returned the platform ids, and they live as long as the process.
    Ok(ids.into_iter().map(|id| unsafe { PlatformId::from_raw(id) }).collect())
}

/// Every device of a platform; an empty list for a platform without devices.
pub(super) fn devices(platform: PlatformId) -> Result<Vec<DeviceId>> {
    let list = |most, ids, count| {
        // SAFETY: as for `platforms`.
        let status = unsafe { ffi::clGetDeviceIDs(platform.as_ptr(), ffi::CL_DEVICE_TYPE_ALL, most, ids, count) };
        if status == ffi::CL_DEVICE_NOT_FOUND { SUCCESS } else { status }
    };
    let ids = listed("devices", list)?;
    // SAFETY: the platform just returned the device ids, and they live as long as the process.
    Ok(ids.into_iter().map(|id| unsafe { DeviceId::from_raw(id) }).collect())
}

/// Reads a list through `list(most, ids, count)`.
fn listed(what: &str, list: impl Fn(u32, *mut *mut c_void, *mut u32) -> cl_int) -> Result<Vec<*mut c_void>> {
    let mut count = 0;
    check(ask(|| list(0, ptr::null_mut(), &mut count)), format_args!("listing {what}"))?;
    let mut ids = vec![ptr::null_mut(); bounded(count as usize, MAX_LISTED, what)?];
    if !ids.is_empty() {
        check(ask(|| list(count, ids.as_mut_ptr(), ptr::null_mut())), format_args!("listing {what}"))?;
    }
    // The second list may be shorter than the first count.
    ids.retain(|id| !id.is_null());
    Ok(ids)
}

/// Reads a property of variable length through `query(size, value, size_ret)`; `None` if the driver does not know it.
fn info(
    what: impl Display,
    most: usize,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<Option<Vec<u8>>> {
    let answered = |status| match status {
        SUCCESS => Ok(true),
        status if is_transient(status) => Err(failure(status, format_args!("asking for {what}"))),
        _ => Ok(false),
    };
    let mut size = 0;
    if !answered(ask(|| query(0, ptr::null_mut(), &mut size)))? {
        return Ok(None);
    }
    let mut value = vec![0u8; bounded(size, most, format_args!("bytes for {what}"))?];
    let whole = size == 0 || answered(ask(|| query(size, value.as_mut_ptr().cast(), ptr::null_mut())))?;
    Ok(whole.then_some(value))
}

/// A property's text on one line; empty if the driver does not know it.
fn text(bytes: Option<Vec<u8>>) -> String {
    log(bytes).replace(char::is_control, " ").trim().to_owned()
}

/// A compiler's log, with all its lines.
fn log(bytes: Option<Vec<u8>>) -> String {
    let bytes = bytes.unwrap_or_default();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// A platform's string property; empty if the platform does not know it.
pub(super) fn platform_text(platform: PlatformId, name: u32) -> Result<String> {
    let what = format_args!("property {name:#x} of a platform");
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query = |size, value, ret| unsafe { ffi::clGetPlatformInfo(platform.as_ptr(), name, size, value, ret) };
    info(what, MAX_PROPERTY_BYTES, query).map(text)
}

/// A device's property as bytes; `None` if the device does not know it.
pub(super) fn device_bytes(device: DeviceId, name: u32) -> Result<Option<Vec<u8>>> {
    let what = format_args!("property {name:#x} of a device");
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query = |size, value, ret| unsafe { ffi::clGetDeviceInfo(device.as_raw(), name, size, value, ret) };
    info(what, MAX_PROPERTY_BYTES, query)
}

/// A device's string property; empty if the device does not know it.
pub(super) fn device_text(device: DeviceId, name: u32) -> Result<String> {
    device_bytes(device, name).map(text)
}

/// A device's integer property of any width; 0 if the device does not know it.
pub(super) fn device_number(device: DeviceId, name: u32) -> Result<u64> {
    Ok(number(device_bytes(device, name)?).unwrap_or(0))
}

/// The number in a property's bytes, of any width.
fn number(bytes: Option<Vec<u8>>) -> Option<u64> {
    let bytes = bytes?;
    let mut word = [0u8; 8];
    let len = bytes.len().min(8);
    word[..len].copy_from_slice(&bytes[..len]);
    Some(u64::from_le_bytes(word))
}

/// A context's devices.
pub(super) fn context_devices(context: &Context) -> Result<Vec<ffi::cl_device_id>> {
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query = |size, value, ret| unsafe {
        ffi::clGetContextInfo(context.as_ptr(), ffi::CL_CONTEXT_DEVICES, size, value, ret)
    };
    let ids = info("a context's devices", MAX_PROPERTY_BYTES, query)?.unwrap_or_default();
    let ids = ids.chunks_exact(size_of::<usize>()).map(|id| usize::from_ne_bytes(id.try_into().expect("one pointer")));
    Ok(ids.map(|id| id as ffi::cl_device_id).collect())
}

/// A queue's property as a number; `None` if the driver does not know it.
pub(super) fn queue_number(queue: &CommandQueue, name: u32) -> Result<Option<u64>> {
    let what = format_args!("property {name:#x} of a queue");
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query = |size, value, ret| unsafe { ffi::clGetCommandQueueInfo(queue.as_ptr(), name, size, value, ret) };
    info(what, MAX_PROPERTY_BYTES, query).map(number)
}

/// A buffer's property as a number; `None` if the driver does not know it.
pub(super) fn mem_number(mem: &Mem, name: u32) -> Result<Option<u64>> {
    let what = format_args!("property {name:#x} of a buffer");
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query = |size, value, ret| unsafe { ffi::clGetMemObjectInfo(mem.as_ptr(), name, size, value, ret) };
    info(what, MAX_PROPERTY_BYTES, query).map(number)
}

/// An event's property as a number; `None` if the driver does not know it.
pub(super) fn event_number(event: &Event, name: u32) -> Result<Option<u64>> {
    let what = format_args!("property {name:#x} of an event");
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query = |size, value, ret| unsafe { ffi::clGetEventInfo(event.as_ptr(), name, size, value, ret) };
    info(what, MAX_PROPERTY_BYTES, query).map(number)
}

pub(super) fn create_context(platform: PlatformId, device: DeviceId) -> Result<Context> {
    let mut status = SUCCESS;
    let ids = [device.as_raw()];
    // `ocl` panics if it queries a context's properties and there are none.
    let properties = [ffi::CL_CONTEXT_PLATFORM as isize, platform.as_ptr().addr() as isize, 0];
    // SAFETY: one valid device id of that platform, a list of properties that ends with 0, no callback.
    let raw = unsafe { ffi::clCreateContext(properties.as_ptr(), 1, ids.as_ptr(), None, ptr::null_mut(), &mut status) };
    let raw = created(raw, status, "creating a context")?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { Context::from_raw_create_ptr(raw) })
}

pub(super) fn create_queue(context: &Context, device: DeviceId, profiling: bool) -> Result<CommandQueue> {
    const PROFILING: u64 = 2;
    let mut status = SUCCESS;
    let properties = if profiling { PROFILING } else { 0 };
    // SAFETY: the device belongs to the context.
    let raw = unsafe { ffi::clCreateCommandQueue(context.as_ptr(), device.as_raw(), properties, &mut status) };
    let raw = created(raw, status, "creating a queue")?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { CommandQueue::from_raw_create_ptr(raw) })
}

/// A buffer of `bytes` bytes, initialised with a copy of `data` if given; `data` has that length.
pub(super) fn create_buffer(context: &Context, bytes: usize, data: Option<&[u8]>) -> Result<Mem> {
    const READ_WRITE: u64 = 1;
    const COPY_HOST_PTR: u64 = 1 << 5;
    debug_assert!(data.is_none_or(|data| data.len() == bytes));
    let (flags, address) = match data {
        Some(data) => (READ_WRITE | COPY_HOST_PTR, data.as_ptr().cast_mut().cast()),
        None => (READ_WRITE, ptr::null_mut()),
    };
    let mut status = SUCCESS;
    // SAFETY: a host pointer has `bytes` bytes; OpenCL only reads from it, and only during this call.
    let raw = unsafe { ffi::clCreateBuffer(context.as_ptr(), flags, bytes, address, &mut status) };
    let raw = created(raw, status, format_args!("allocating {bytes} bytes"))?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { Mem::from_raw_create_ptr(raw) })
}

/// A buffer of `bytes` bytes in pinned host memory, which a device reads and writes at the speed of its link.
pub(super) fn create_pinned(context: &Context, bytes: usize) -> Result<Mem> {
    const READ_WRITE: u64 = 1;
    const ALLOC_HOST_PTR: u64 = 1 << 4;
    let mut status = SUCCESS;
    let flags = READ_WRITE | ALLOC_HOST_PTR;
    // SAFETY: no host pointer is given.
    let raw = unsafe { ffi::clCreateBuffer(context.as_ptr(), flags, bytes, ptr::null_mut(), &mut status) };
    let raw = created(raw, status, format_args!("allocating {bytes} bytes of pinned memory"))?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { Mem::from_raw_create_ptr(raw) })
}

/// A buffer for reading over the `bytes` bytes at `from`, which a driver for CPUs reads in place.
///
/// # Safety
///
/// `from` points to `bytes` bytes that nothing writes until the last command on the buffer is done. Only the commands' own
/// ranges have to be initialised.
pub(super) unsafe fn wrap(context: &Context, from: *const u8, bytes: usize) -> Result<Mem> {
    const READ_ONLY: u64 = 1 << 2;
    const USE_HOST_PTR: u64 = 1 << 3;
    let mut status = SUCCESS;
    let (flags, address) = (READ_ONLY | USE_HOST_PTR, from.cast_mut().cast());
    // SAFETY: the caller promises it; kernels may not write the buffer.
    let raw = unsafe { ffi::clCreateBuffer(context.as_ptr(), flags, bytes, address, &mut status) };
    let raw = created(raw, status, format_args!("using {bytes} bytes of the host"))?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { Mem::from_raw_create_ptr(raw) })
}

/// Enqueues a read of `bytes` bytes to `to`, after `events` and all earlier commands of an in-order queue.
///
/// # Safety
///
/// Until the event completes, `to` points to `bytes` bytes that nothing else reads or writes.
pub(super) unsafe fn enqueue_read(
    queue: &CommandQueue,
    mem: &Mem,
    offset: usize,
    to: *mut u8,
    bytes: usize,
    events: &[cl_event],
) -> Result<Event> {
    let (queue, mem) = (queue.as_ptr(), mem.as_ptr());
    // SAFETY: the caller promises it; OpenCL checks the range against the buffer, and retains the events.
    unsafe {
        enqueued(format_args!("reading {bytes} bytes"), events, |count, list, event| {
            ffi::clEnqueueReadBuffer(queue, mem, 0, offset, bytes, to.cast(), count, list, event)
        })
    }
}

/// Enqueues a write of the `bytes` bytes at `from`, after `events` and all earlier commands of an in-order queue.
///
/// # Safety
///
/// Until the event completes, `from` points to `bytes` bytes that nothing writes.
pub(super) unsafe fn enqueue_write(
    queue: &CommandQueue,
    mem: &Mem,
    offset: usize,
    from: *const u8,
    bytes: usize,
    events: &[cl_event],
) -> Result<Event> {
    let (queue, mem) = (queue.as_ptr(), mem.as_ptr());
    // SAFETY: the caller promises it; OpenCL checks the range against the buffer, and retains the events.
    unsafe {
        enqueued(format_args!("writing {bytes} bytes"), events, |count, list, event| {
            ffi::clEnqueueWriteBuffer(queue, mem, 0, offset, bytes, from.cast(), count, list, event)
        })
    }
}

/// Returns whether the event's command has ended, successfully or not. Does not wait.
pub(super) fn is_done(event: &Event) -> Result<bool> {
    let status = event_number(event, ffi::CL_EVENT_COMMAND_EXECUTION_STATUS)?;
    Ok(status.is_some_and(|status| status as cl_int <= 0))
}

/// Waits for an event, whose queue was flushed. An error has the status of the event's command if the driver reports it.
pub(super) fn wait(event: &Event) -> Result<()> {
    // SAFETY: one valid event.
    let status = unsafe { ffi::clWaitForEvents(1, &event.as_ptr()) };
    if status == SUCCESS {
        return Ok(());
    }
    let own = event_number(event, ffi::CL_EVENT_COMMAND_EXECUTION_STATUS).ok().flatten().map(|number| number as cl_int);
    Err(failure(own.filter(|&own| own < 0).unwrap_or(status), "waiting for a transfer"))
}

/// Blocking read of `out.len()` bytes.
pub(super) fn read(queue: &CommandQueue, mem: &Mem, offset: usize, out: &mut [MaybeUninit<u8>]) -> Result<()> {
    // SAFETY: `out` lives through this blocking call; OpenCL checks the range against the buffer.
    let status = unsafe {
        ffi::clEnqueueReadBuffer(
            queue.as_ptr(),
            mem.as_ptr(),
            1,
            offset,
            out.len(),
            out.as_mut_ptr().cast(),
            0,
            ptr::null(),
            ptr::null_mut(),
        )
    };
    check(status, format_args!("reading {} bytes", out.len()))
}

/// Blocking write of `data`.
pub(super) fn write(queue: &CommandQueue, mem: &Mem, offset: usize, data: &[u8]) -> Result<()> {
    // SAFETY: `data` lives through this blocking call; OpenCL checks the range against the buffer.
    let status = unsafe {
        ffi::clEnqueueWriteBuffer(
            queue.as_ptr(),
            mem.as_ptr(),
            1,
            offset,
            data.len(),
            data.as_ptr().cast(),
            0,
            ptr::null(),
            ptr::null_mut(),
        )
    };
    check(status, format_args!("writing {} bytes", data.len()))
}

/// Enqueues a fill with a pattern of 1, 2, 4, 8 or 16 bytes; `offset` and `bytes` are multiples of the pattern's length.
pub(super) fn fill(
    queue: &CommandQueue,
    mem: &Mem,
    offset: usize,
    bytes: usize,
    pattern: &[u8],
    slot: &mut EventSlot,
) -> Result<()> {
    // SAFETY: OpenCL copies the pattern during the call, and checks the range against the buffer.
    let status = unsafe {
        ffi::clEnqueueFillBuffer(
            queue.as_ptr(),
            mem.as_ptr(),
            pattern.as_ptr().cast(),
            pattern.len(),
            offset,
            bytes,
            0,
            ptr::null(),
            slot.address(),
        )
    };
    check(status, format_args!("filling {bytes} bytes"))
}

/// Enqueues a copy between two buffers, or within one buffer if the ranges do not overlap.
pub(super) fn copy(
    queue: &CommandQueue,
    (from, from_offset): (&Mem, usize),
    (to, to_offset): (&Mem, usize),
    bytes: usize,
    slot: &mut EventSlot,
) -> Result<()> {
    // SAFETY: OpenCL checks both ranges, and keeps the buffers until the copy is done.
    let status = unsafe {
        ffi::clEnqueueCopyBuffer(
            queue.as_ptr(),
            from.as_ptr(),
            to.as_ptr(),
            from_offset,
            to_offset,
            bytes,
            0,
            ptr::null(),
            slot.address(),
        )
    };
    check(status, format_args!("copying {bytes} bytes"))
}

/// Maps a range into host memory, after all earlier commands of the queue.
pub(super) fn map(queue: &CommandQueue, mem: &Mem, offset: usize, bytes: usize, write: bool) -> Result<*mut c_void> {
    const READ: u64 = 1;
    const WRITE: u64 = 2;
    let flags = if write { READ | WRITE } else { READ };
    let mut status = SUCCESS;
    // SAFETY: OpenCL checks the range; the caller unmaps the pointer before it drops the buffer.
    let address = unsafe {
        ffi::clEnqueueMapBuffer(
            queue.as_ptr(),
            mem.as_ptr(),
            1,
            flags,
            offset,
            bytes,
            0,
            ptr::null(),
            ptr::null_mut(),
            &mut status,
        )
    };
    check(status, format_args!("mapping {bytes} bytes"))?;
    Ok(address)
}

pub(super) fn unmap(queue: &CommandQueue, mem: &Mem, address: *mut c_void) -> Result<()> {
    // SAFETY: `address` came from `map` of the same buffer, and is unmapped once.
    let status =
        unsafe { ffi::clEnqueueUnmapMemObject(queue.as_ptr(), mem.as_ptr(), address, 0, ptr::null(), ptr::null_mut()) };
    check(status, "unmapping a buffer")
}

pub(super) fn flush(queue: &CommandQueue) -> Result<()> {
    // SAFETY: a valid queue.
    check(unsafe { ffi::clFlush(queue.as_ptr()) }, "flushing the queue")
}

pub(super) fn finish(queue: &CommandQueue) -> Result<()> {
    // SAFETY: a valid queue.
    check(unsafe { ffi::clFinish(queue.as_ptr()) }, "waiting for the queue")
}

/// A barrier whose event completes after `events`, or after all earlier commands if there are none.
pub(super) fn barrier(queue: &CommandQueue, events: &[cl_event]) -> Result<Event> {
    // SAFETY: the caller holds the events; OpenCL retains the ones that it keeps.
    unsafe {
        enqueued("enqueueing a barrier", events, |count, list, event| {
            ffi::clEnqueueBarrierWithWaitList(queue.as_ptr(), count, list, event)
        })
    }
}

/// Start and end of a finished command on a profiling queue, in nanoseconds of the device's clock.
pub(super) fn profile(event: &Event) -> Result<(u64, u64)> {
    let read = |name| {
        let mut value = 0u64;
        // SAFETY: `value` has the 8 bytes that the query writes.
        let status = unsafe {
            ffi::clGetEventProfilingInfo(
                event.as_ptr(),
                name,
                size_of::<u64>(),
                (&raw mut value).cast(),
                ptr::null_mut(),
            )
        };
        check(status, "reading an event's times").map(|()| value)
    };
    Ok((read(ffi::CL_PROFILING_COMMAND_START)?, read(ffi::CL_PROFILING_COMMAND_END)?))
}

pub(super) fn program_from_source(context: &Context, source: &str) -> Result<Program> {
    let mut status = SUCCESS;
    let (text, length) = (source.as_ptr().cast(), source.len());
    // SAFETY: one string with its length; OpenCL copies it.
    let raw = unsafe { ffi::clCreateProgramWithSource(context.as_ptr(), 1, &text, &length, &mut status) };
    let raw = created(raw, status, "creating a program")?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { Program::from_raw_create_ptr(raw) })
}

pub(super) fn program_from_binary(context: &Context, device: DeviceId, binary: &[u8]) -> Result<Program> {
    let (mut status, mut loaded) = (SUCCESS, SUCCESS);
    let (ids, length, data) = ([device.as_raw()], binary.len(), binary.as_ptr());
    // SAFETY: one device, one binary with its length, one status each; OpenCL copies the binary.
    let raw = unsafe {
        ffi::clCreateProgramWithBinary(context.as_ptr(), 1, ids.as_ptr(), &length, &data, &mut loaded, &mut status)
    };
    let raw = created(raw, status, "loading a program binary")?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    let program = unsafe { Program::from_raw_create_ptr(raw) };
    check(loaded, "loading a program binary")?;
    Ok(program)
}

/// Builds a program; on failure the error holds the compiler's log.
pub(super) fn build(program: &Program, device: DeviceId, options: &str, name: &str) -> Result<()> {
    let options = std::ffi::CString::new(options).map_err(|_| Error::invalid("build options contain a NUL"))?;
    let ids = [device.as_raw()];
    // SAFETY: valid handles, a NUL-terminated string, no callback, so the call blocks until the build is done.
    let status =
        unsafe { ffi::clBuildProgram(program.as_ptr(), 1, ids.as_ptr(), options.as_ptr(), None, ptr::null_mut()) };
    let query = |name, what, most| {
        // SAFETY: `info` passes a null pointer or a large enough buffer.
        info(what, most, |size, value, ret| unsafe {
            ffi::clGetProgramBuildInfo(program.as_ptr(), device.as_raw(), name, size, value, ret)
        })
    };
    if status == SUCCESS {
        let built = query(ffi::CL_PROGRAM_BUILD_STATUS, "the status of a build", MAX_PROPERTY_BYTES)?;
        if built.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0)) {
            return Ok(());
        }
    }
    // If the log cannot be read, the reason replaces it in the error.
    let log = query(ffi::CL_PROGRAM_BUILD_LOG, "the log of a build", MAX_LOG_BYTES)
        .map_or_else(|error| error.to_string(), log);
    let first = log.lines().find(|line| line.contains("error")).or(log.lines().next()).unwrap_or("no log");
    let first: String = first.replace(char::is_control, " ").trim().chars().take(MAX_LINE).collect();
    let status = if status == SUCCESS { ffi::CL_BUILD_PROGRAM_FAILURE } else { status };
    let message = format!("{name} did not build ({}, {status}): {first}", status_name(status));
    Err(Error::new(ErrorKind::Build, message).with_status(status).with_log(log))
}

/// The built program's binary for its only device; `None` if the driver returns none, or one that is too large.
pub(super) fn binary(program: &Program) -> Option<Vec<u8>> {
    let mut size = 0usize;
    // SAFETY: a program of one device has one size.
    let status = ask(|| unsafe {
        ffi::clGetProgramInfo(
            program.as_ptr(),
            ffi::CL_PROGRAM_BINARY_SIZES,
            size_of::<usize>(),
            (&raw mut size).cast(),
            ptr::null_mut(),
        )
    });
    if status != SUCCESS || size == 0 || size > MAX_BINARY_BYTES {
        return None;
    }
    let mut data = vec![0u8; size];
    let mut address = data.as_mut_ptr();
    // SAFETY: `address` points to `size` bytes; there is one pointer for the only device.
    let status = ask(|| unsafe {
        ffi::clGetProgramInfo(
            program.as_ptr(),
            ffi::CL_PROGRAM_BINARIES,
            size_of::<*mut u8>(),
            (&raw mut address).cast(),
            ptr::null_mut(),
        )
    });
    (status == SUCCESS).then_some(data)
}

pub(super) fn create_kernel(program: &Program, name: &str) -> Result<Kernel> {
    let mut status = SUCCESS;
    let c_name = std::ffi::CString::new(name).map_err(|_| Error::invalid("kernel name contains a NUL"))?;
    // SAFETY: a built program and a NUL-terminated name.
    let raw = unsafe { ffi::clCreateKernel(program.as_ptr(), c_name.as_ptr(), &mut status) };
    let raw = created(raw, status, format_args!("creating kernel `{name}`"))?;
    // SAFETY: `raw` was just created, and this takes over its one reference.
    Ok(unsafe { Kernel::from_raw_create_ptr(raw) })
}

/// A kernel's work-group property of up to three words; the other words are 0. All are 0 if the driver does not know the
/// property.
pub(super) fn kernel_numbers(kernel: &Kernel, device: DeviceId, name: u32) -> Result<[u64; 3]> {
    let mut values = [0u64; 3];
    // SAFETY: each of these properties fits into the array.
    let status = ask(|| unsafe {
        ffi::clGetKernelWorkGroupInfo(
            kernel.as_ptr(),
            device.as_raw(),
            name,
            size_of_val(&values),
            (&raw mut values).cast(),
            ptr::null_mut(),
        )
    });
    match status {
        SUCCESS => Ok(values),
        status if is_transient(status) => {
            Err(failure(status, format_args!("asking for property {name:#x} of a kernel")))
        }
        _ => Ok([0; 3]),
    }
}

/// The context of a kernel; `None` if the driver does not know it.
pub(super) fn kernel_context(kernel: &Kernel) -> Result<Option<u64>> {
    // SAFETY: `info` passes a null pointer or a large enough buffer.
    let query =
        |size, value, ret| unsafe { ffi::clGetKernelInfo(kernel.as_ptr(), ffi::CL_KERNEL_CONTEXT, size, value, ret) };
    info("a kernel's context", MAX_PROPERTY_BYTES, query).map(number)
}

/// Sets one argument: `value` is its `size` bytes, or null for local memory of that size.
///
/// # Safety
///
/// `value` is null or points to `size` readable bytes of the type that the kernel declares.
pub(super) unsafe fn set_arg(kernel: &Kernel, index: u32, size: usize, value: *const c_void) -> cl_int {
    // SAFETY: the caller promises it; OpenCL copies the value.
    unsafe { ffi::clSetKernelArg(kernel.as_ptr(), index, size, value) }
}

/// Enqueues a kernel over a three-dimensional range that starts at `first`.
///
/// # Safety
///
/// Every argument is set, and for this range the kernel stays within the buffers that it was given.
pub(super) unsafe fn enqueue(
    queue: &CommandQueue,
    kernel: &Kernel,
    first: [usize; 3],
    global: [usize; 3],
    local: [usize; 3],
    slot: &mut EventSlot,
) -> cl_int {
    let first = if first == [0; 3] { ptr::null() } else { (&raw const first).cast() };
    // SAFETY: the caller promises it; all arrays have three dimensions.
    unsafe {
        ffi::clEnqueueNDRangeKernel(
            queue.as_ptr(),
            kernel.as_ptr(),
            3,
            first,
            global.as_ptr(),
            local.as_ptr(),
            0,
            ptr::null(),
            slot.address(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statuses on which `ocl` panics, vendors' own statuses and numbers that are not statuses all become errors.
    #[test]
    fn every_status_is_an_error_with_its_number() {
        for status in [-1, -4, -5, -9, -11, -45, -71, -72, -1001, -1024, -1100, -1234, -9999, i32::MIN, i32::MAX, 1] {
            let error = failure(status, "asking");
            assert_eq!(error.status(), Some(status));
            let text = error.to_string();
            assert!(text.starts_with("asking failed: ") && text.ends_with(&format!("({status})")), "{text}");
            assert!(!text.contains('\n'));
            assert!(check(status, "asking").is_err());
        }
        assert!(check(SUCCESS, "asking").is_ok());
    }

    #[test]
    fn statuses_map_to_error_kinds() {
        for (status, kind) in [
            (-1, ErrorKind::NoDevice),
            (-1001, ErrorKind::NoDevice),
            (-4, ErrorKind::OutOfMemory),
            (-61, ErrorKind::OutOfMemory),
            (-11, ErrorKind::Build),
            (-42, ErrorKind::Build),
            (-5, ErrorKind::Driver),
            (-9999, ErrorKind::Driver),
        ] {
            assert_eq!(failure(status, "asking").kind(), kind, "{status}");
        }
    }

    #[test]
    fn shortages_lost_devices_and_unknown_statuses_are_transient() {
        let passing =
            [-2, -4, -5, -6, -12, -14, -33, -34, -36, -38, -48, -58, -71, -1024, -9999, i32::MIN, i32::MAX, 1];
        assert!(passing.into_iter().all(is_transient));
        // Devices without a compiler, build failures, unknown properties, and arguments that a kernel rejects.
        assert!(
            ![SUCCESS, -3, -11, -30, -43, -45, -46, -47, -54, -55, -59, -61, -63, -1001].into_iter().any(is_transient)
        );
    }

    #[test]
    fn a_query_with_a_transient_failure_runs_again() {
        for (statuses, want) in
            [(vec![-5, -6, 0], 0), (vec![-30], -30), (vec![-5, -6, -9999], -9999), (vec![-4, -30], -30)]
        {
            let mut given = statuses.into_iter();
            assert_eq!(ask(|| given.next().expect("no further query")), want);
            assert_eq!(given.next(), None);
        }
    }

    #[test]
    fn malformed_driver_texts_are_cleaned() {
        assert_eq!(text(None), "");
        assert_eq!(text(Some(b"OpenCL 3.1 (Build 0)\0junk".to_vec())), "OpenCL 3.1 (Build 0)");
        assert_eq!(text(Some(b"  padded \0".to_vec())), "padded");
        assert_eq!(text(Some(b"caf\xff\0".to_vec())), "caf\u{fffd}");
        assert_eq!(text(Some(b"two\nlines\x1b\0".to_vec())), "two lines");
    }
}
