//! Meeting a program that already uses the [`ocl`] crate: its context, queue, buffers and events, and ours for it.
//!
//! A [`Device`] made by [`device`] runs on the user's own queue, and a [`Buffer`] made by [`buffer`] is the user's own
//! memory, so nothing is copied and nothing waits. This is the only place where types of `ocl` appear; use them through
//! the re-export here to have the same version.
//!
//! Functions by which the crate and a user share memory are `unsafe`: [`buffer`], [`buffer_from_mem`] and [`mem`]. Rust's
//! borrows order the crate's commands on a [`Buffer`], and know nothing of commands that `ocl` enqueues, also through its
//! safe functions. Functions that share a queue, a context or an event are safe, since the crate's memory stays its own.
//! [`set_arg`] is safe, since running a kernel is `unsafe` in `ocl`.
//!
//! What orders the commands of both sides:
//! - on an in-order queue, the order in which they were enqueued;
//! - on an out-of-order queue the crate's commands run in order among themselves; [`wait_for`] puts them behind the
//!   user's, and [`marker`] gives an event for the user's to wait for;
//! - between queues, the same two calls.
//!
//! ```
//! use oclprim::{Device, interop::{self, ocl}, op::Sum};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `ocl` panics without a driver, so ask the crate first.
//! if Device::list().iter().all(|info| !info.opencl) {
//!     return Ok(());
//! }
//! # let mut pairs = ocl::Platform::list().into_iter().filter_map(|p| Some((p, ocl::Device::first(p).ok()?)));
//! # let (platform, device) = pairs.next().ok_or("a device")?;
//! let context = ocl::Context::builder().platform(platform).devices(device).build()?;
//! let queue = ocl::Queue::new(&context, device, None)?;
//! let samples = ocl::Buffer::<f32>::builder().queue(queue.clone()).len(1000).fill_val(0.5).build()?;
//!
//! let device = interop::device(device, &context, &queue)?;
//! // SAFETY: nothing else uses `samples`.
//! let x = unsafe { interop::buffer(&device, &samples)? };
//! assert_eq!(device.reduce(&x, Sum)?, 500.0);
//! # Ok(())
//! # }
//! ```

pub use ocl;

use bytemuck::Pod;
use ocl::OclPrm;

use crate::{
    Buffer, Device, Error, Result,
    runtime::{
        Backend,
        opencl::{ClDevice, CommandQueue, Context, Event, Kernel, Mem},
    },
};

/// A device that runs on a user's own queue; it keeps the context and the queue alive.
///
/// What a device can do is probed at first use, and programs are kept for as long as the [`Device`] and its clones live:
/// make one and keep it.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the device is not one of the context's, or the queue
/// belongs to another context or device.
///
/// ```
/// use oclprim::{Device, interop::{self, ocl}, op::Sum};
///
/// if let Ok(any) = Device::open("opencl") {
///     let (id, context) = (interop::ocl_device(&any)?, interop::context(&any)?); // a program has its own
///     let queue = ocl::Queue::new(&context, id, None)?;
///     let device = interop::device(id, &context, &queue)?;
///     assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn device(device: ocl::Device, context: &ocl::Context, queue: &ocl::Queue) -> Result<Device> {
    // SAFETY: the borrowed handles are valid objects, of which these become references of their own.
    let (context, queue) = unsafe {
        (Context::from_raw_copied_ptr(context.as_ptr())?, CommandQueue::from_raw_copied_ptr(queue.as_core().as_ptr())?)
    };
    ClDevice::adopt(*device.as_core(), context, queue).map(Device::from_cl)
}

/// A buffer over a user's own; it keeps the memory alive.
///
/// The crate and the user can both use it. It cannot be [mapped](Buffer::map).
///
/// Two results over one memory are not two buffers: calls refuse them as input and output, or as two outputs, where they
/// overlap. The one result of a whole input may lie in it, since all of it has been read by then: that of
/// [`reduce_into`](Device::reduce_into), [`reduce_as_into`](Device::reduce_as_into),
/// [`map_reduce_into`](Device::map_reduce_into), [`dot_into`](Device::dot_into), [`reduce_by_into`](Device::reduce_by_into),
/// [`count_into`](Device::count_into), [`count_of_into`](Device::count_of_into), [`any_into`](Device::any_into) and
/// [`all_into`](Device::all_into).
///
/// # Safety
///
/// From a call that uses the result until the call's commands are done, nothing else writes the memory that the call reads,
/// and nothing else reads or writes the memory that it writes. That holds for commands of the user, for those of the crate
/// through another buffer over the same memory, and for mappings into the host's address space. Commands that run in one
/// order are never at fault: those of one queue, and those that [`wait_for`], [`marker`] or [`Device::finish`] put in order.
///
/// Calls count positions in one pass and write to these positions in the next. Memory that changes in between makes them
/// write beyond their buffers.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the buffer belongs to another context, or kernels may
/// not both read and write it. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if it does not start 16-byte
/// aligned, or if `device` is the CPU backend.
///
/// ```
/// use oclprim::{Device, interop::{self, ocl}};
///
/// if let Ok(device) = Device::open("opencl") {
///     let context = interop::context(&device)?;
///     let theirs = ocl::Buffer::builder().context(&context).len(3).copy_host_slice(&[1.0f32, 2.0, 3.0]).build()?;
///     // SAFETY: nothing else uses `theirs`.
///     let ours = unsafe { interop::buffer(&device, &theirs)? };
///     assert_eq!(ours.view(1..)?.to_vec()?, [2.0, 3.0]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0133
/// # use oclprim::{Device, interop::{self, ocl}};
/// fn shared(device: &Device, theirs: &ocl::Buffer<f32>) -> oclprim::Result<oclprim::Buffer<f32>> {
///     interop::buffer(device, theirs)
/// }
/// ```
pub unsafe fn buffer<T: Pod + OclPrm>(device: &Device, buffer: &ocl::Buffer<T>) -> Result<Buffer<T>> {
    // SAFETY: as the caller promises.
    unsafe { buffer_from_mem(device, buffer.as_core(), buffer.len()) }
}

/// [`buffer`] for `len` elements of any plain type in a bare memory object.
///
/// # Safety
///
/// As [`buffer`]. A mapping may also be one of the crate's own, by [`Buffer::map`], where the memory is that of [`mem`].
///
/// # Errors
///
/// As [`buffer`], and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the memory is smaller.
///
/// ```
/// use oclprim::{Buffer, Device, interop::{self, ocl}};
///
/// if let Ok(device) = Device::open("opencl") {
///     let context = interop::context(&device)?;
///     let theirs = ocl::Buffer::builder().context(&context).len(4).copy_host_slice(&[1u32, 2, 3, 4]).build()?;
///     // SAFETY: nothing else uses `theirs`.
///     let pairs: Buffer<[u32; 2]> = unsafe { interop::buffer_from_mem(&device, theirs.as_core(), 2)? };
///     assert_eq!(pairs.to_vec()?, [[1, 2], [3, 4]]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub unsafe fn buffer_from_mem<T: Pod>(device: &Device, mem: &ocl::core::Mem, len: usize) -> Result<Buffer<T>> {
    let bytes = len.checked_mul(size_of::<T>());
    let bytes = bytes.ok_or_else(|| Error::invalid(format!("{len} elements of {} bytes overflow", size_of::<T>())))?;
    // SAFETY: the borrowed handle is a valid object, of which this becomes a reference of its own.
    let mem = unsafe { Mem::from_raw_copied_ptr(mem.as_ptr())? };
    opencl(device)?.check_user_buffer(&mem, bytes)?;
    device.adopt_buffer(mem, len)
}

/// The memory object of a buffer, for a user's commands; element 0 is at its start. For a kernel's argument, [`set_arg`] is
/// safe.
///
/// # Safety
///
/// Commands on the result keep to what [`buffer`] demands: none writes what a call of the crate is reading, and none reads
/// or writes what such a call is writing. None writes while the buffer is [mapped](Buffer::map), nor reads while it is
/// [mapped for writing](Buffer::map_mut). `ocl` has safe functions that do all of these.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a buffer of the CPU backend.
/// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the buffer is still mapped.
///
/// ```
/// use oclprim::{Device, interop::{self, ocl}};
///
/// if let Ok(device) = Device::open("opencl") {
///     let x = device.upload(&[1u32, 2])?;
///     // SAFETY: `x` is not mapped.
///     let mem = unsafe { interop::mem(&x)? };
///     println!("{} bytes", ocl::core::get_mem_object_info(&mem, ocl::enums::MemInfo::Size)?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0133
/// let x = oclprim::Device::cpu().upload(&[1u32, 2])?;
/// let mem = oclprim::interop::mem(&x)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
pub unsafe fn mem<T: Pod>(buffer: &Buffer<T>) -> Result<ocl::core::Mem> {
    buffer.allow(true)?;
    let mem = buffer.mem().ok_or_else(no_opencl)?;
    let raw = mem.retained()?;
    // SAFETY: the reference becomes the result's.
    Ok(unsafe { ocl::core::Mem::from_raw_create_ptr(raw) })
}

/// Makes a buffer an argument of a user's kernel, by the argument's index. The kernel keeps the memory alive.
///
/// Running the kernel is `unsafe` in `ocl`, and its caller's promise is that of [`mem`]. A kernel's builder takes
/// `None::<&ocl::Buffer<T>>` in the argument's place.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the kernel belongs to another context, or the argument is
/// none or has another type as far as the driver knows; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a
/// buffer of the CPU backend; [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the buffer is still mapped.
///
/// ```
/// use oclprim::{Device, interop::{self, ocl}, op::Sum};
///
/// if let Ok(device) = Device::open("opencl") {
///     let (id, context) = (interop::ocl_device(&device)?, interop::context(&device)?);
///     let text = "__kernel void squares(__global uint* x) { uint i = get_global_id(0); x[i] = x[i] * x[i]; }";
///     let program = ocl::Program::builder().src(text).devices(id).build(&context)?;
///     let queue = ocl::Queue::new(&context, id, None)?;
///     let mut kernel = ocl::Kernel::builder();
///     kernel.program(&program).name("squares").queue(queue.clone()).global_work_size(3);
///     let kernel = kernel.arg(None::<&ocl::Buffer<u32>>).build()?;
///
///     let x = device.upload(&[1u32, 2, 3])?;
///     interop::set_arg(&kernel, 0, &x)?;
///     device.finish()?;
///     // SAFETY: the kernel stays within the 3 elements, and no call of the crate uses `x` until it is done.
///     unsafe { kernel.enq()? };
///     queue.finish()?;
///     assert_eq!(device.reduce(&x, Sum)?, 14);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_arg<T: Pod + OclPrm>(kernel: &ocl::Kernel, index: u32, buffer: &Buffer<T>) -> Result<()> {
    let device = opencl(buffer.device())?;
    // SAFETY: the borrowed handle is a valid object, of which this becomes a reference of its own.
    let handle = unsafe { Kernel::from_raw_copied_ptr(kernel.as_core().as_ptr())? };
    if !device.has_kernel(&handle)? {
        return Err(Error::invalid(format!("the kernel belongs to another context than {}", device.info())));
    }
    let failed = |error: ocl::Error| {
        // `ocl` writes pages; an error here is a line.
        let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Error::invalid(format!("setting argument {index} of a kernel: {text}")).with_source(error)
    };
    // `ocl` checks the type, and keeps memory alive, of its own buffers alone: this is one in which ours takes the place of
    // the memory.
    let mut carrier = ocl::Buffer::<T>::builder().context(&context(buffer.device())?).len(1).build().map_err(failed)?;
    // SAFETY: the memory goes to the kernel alone, and running that is the user's promise.
    *carrier = unsafe { mem(buffer)? };
    kernel.set_arg(index, &carrier).map_err(failed)
}

/// The OpenCL device that a device runs on.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for the CPU backend.
///
/// ```
/// use oclprim::{Device, interop};
///
/// if let Ok(device) = Device::open("opencl") {
///     println!("{}: {}", device.info(), interop::ocl_device(&device)?.vendor()?);
/// }
/// assert!(interop::ocl_device(&Device::cpu()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ocl_device(device: &Device) -> Result<ocl::Device> {
    Ok(opencl(device)?.id().into())
}

/// The context in which a device's buffers live. A user's own programs and kernels can be built in it.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for the CPU backend.
///
/// ```
/// use oclprim::{Device, interop};
///
/// if let Ok(device) = Device::open("opencl") {
///     assert!(interop::context(&device)?.devices().contains(&interop::ocl_device(&device)?));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn context(device: &Device) -> Result<ocl::Context> {
    let raw = opencl(device)?.context().retained()?;
    // SAFETY: the reference becomes the result's.
    Ok(unsafe { ocl::core::Context::from_raw_create_ptr(raw) }.into())
}

/// The queue on which a device's commands run.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for the CPU backend.
///
/// ```
/// use oclprim::{Device, interop::{self, ocl}};
///
/// if let Ok(device) = Device::open("opencl") {
///     device.filled(1000, 1u8)?;
///     ocl::core::finish(&interop::queue(&device)?)?; // as `device.finish()`
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn queue(device: &Device) -> Result<ocl::core::CommandQueue> {
    let raw = opencl(device)?.queue().retained()?;
    // SAFETY: the reference becomes the result's.
    Ok(unsafe { ocl::core::CommandQueue::from_raw_create_ptr(raw) })
}

/// Makes all later commands of a device wait for `events`; does not wait itself.
///
/// That holds for the queue of `device` and its clones; a [profiled](Device::profiled) device has another, and needs a
/// call of its own.
///
/// Flushes the queues of the events, without which they might never complete.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an event is empty or belongs to another context;
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for the CPU backend.
///
/// ```
/// use oclprim::{Device, interop};
///
/// if let (Ok(first), Ok(second)) = (Device::open("opencl"), Device::open("opencl")) {
///     interop::wait_for(&second, &[interop::marker(&first)?])?; // what `second` is given now follows what `first` has
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn wait_for(device: &Device, events: &[ocl::Event]) -> Result<()> {
    let device = opencl(device)?;
    if let Some(i) = events.iter().position(ocl::Event::is_empty) {
        return Err(Error::invalid(format!("event {i} of {} is empty", events.len())));
    }
    // SAFETY: none of the events is empty, so each is a valid object, of which the copies become references of their own.
    let kept = events.iter().map(|event| unsafe { Event::from_raw_copied_ptr(*event.as_core().as_ptr_ref()) });
    device.wait_for(&kept.collect::<Result<Vec<_>>>()?)
}

/// An event that completes when all commands of a device so far are done; does not wait itself.
///
/// The device's queue is flushed, so that other queues and threads can wait for the event at once.
///
/// # Errors
///
/// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver refuses;
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for the CPU backend.
///
/// ```
/// use oclprim::{Device, interop};
///
/// if let Ok(device) = Device::open("opencl") {
///     let ones = device.filled(1000, 1u8)?;
///     let filled = interop::marker(&device)?;
///     filled.wait_for()?;
///     assert!(filled.is_complete()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn marker(device: &Device) -> Result<ocl::Event> {
    let raw = opencl(device)?.marker()?.retained()?;
    // SAFETY: the reference becomes the result's.
    Ok(unsafe { ocl::core::Event::from_raw_create_ptr(raw) }.into())
}

fn opencl(device: &Device) -> Result<&ClDevice> {
    match device.backend() {
        Backend::OpenCl(device) => Ok(device),
        Backend::Cpu => Err(no_opencl()),
    }
}

fn no_opencl() -> Error {
    Error::unsupported("the CPU backend has no OpenCL objects")
}
