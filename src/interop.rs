//! Interoperation with a program that already uses the [`ocl`] crate: shared contexts, queues, buffers and events.
//!
//! A [`Device`] made by [`device`] runs on the user's own queue, and a [`Buffer`] made by [`buffer`] is the user's own memory.
//! No data is copied, and no call waits. Only this module exposes types of `ocl`; use them through the re-export here to get
//! the same version.
//!
//! Functions that share memory between the crate and the user are `unsafe`: [`buffer`], [`buffer_from_mem`] and
//! [`mem`]. Rust's borrows order the crate's commands on a [`Buffer`]. They do not order commands that `ocl` enqueues,
//! even through its safe functions. Functions that share a queue, a context or an event are safe, since they do not
//! share the crate's memory. [`set_arg`] is safe, since running a kernel is `unsafe` in `ocl`.
//!
//! The commands of the crate and of the user run in this order:
//! - An in-order queue runs them in the order in which they were enqueued.
//! - On an out-of-order queue, the crate's commands run in order among themselves. [`wait_for`] orders them after the user's,
//!   and [`marker`] gives an event that the user's commands can wait for.
//! - Between queues, the same two calls give an order.
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

/// A device that runs on a user's own queue, and keeps the context and the queue alive.
///
/// The crate tests the device at first use, and keeps programs as long as the [`Device`] or a clone of it lives. So make one
/// device and keep it.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the device is not in the context, or the queue belongs to
/// another context or device.
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
    // SAFETY: the borrowed handles are valid objects; these copies hold references of their own.
    let (context, queue) = unsafe {
        (Context::from_raw_copied_ptr(context.as_ptr())?, CommandQueue::from_raw_copied_ptr(queue.as_core().as_ptr())?)
    };
    ClDevice::adopt(*device.as_core(), context, queue).map(Device::from_cl)
}

/// A buffer over the memory of a user's buffer, which stays alive as long as the result.
///
/// The crate and the user can both use the memory. The result cannot be [mapped](Buffer::map_memory).
///
/// If two such buffers overlap in memory, calls refuse them as input and output, or as two outputs. A call that copies or
/// converts an input first may accept an output over it. A reduction of a whole input may overwrite a part of it, since
/// all elements are read first. Such reductions are [`reduce_into`](Device::reduce_into),
/// [`count_into`](Device::count_into), [`any_into`](Device::any_into) and [`all_into`](Device::all_into).
///
/// # Safety
///
/// From a call on the result until the commands of the call are done, no other command writes memory that the call
/// reads. During that time no other command reads or writes memory that the call writes, either. These rules bind the
/// user's commands, the crate's commands on another buffer over the same memory, and mappings into the host's address
/// space. Ordered commands comply: the commands of one in-order queue, and commands that [`wait_for`], [`marker`] or
/// [`Device::finish`] order. Neither that queue nor these calls order a download by [`read_async`](Buffer::read_async),
/// which runs on its own queue. Such a download ends when its handle is waited for or dropped.
///
/// Some calls count offsets in one pass and write at these offsets in the next. If the memory changes in between, such
/// calls write beyond their buffers.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the buffer belongs to another context, or if kernels may not
/// both read and write it. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if its start is not 16-byte aligned, or if
/// `device` is the CPU backend.
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
    // SAFETY: the caller promises it.
    unsafe { buffer_from_mem(device, buffer.as_core(), buffer.len()) }
}

/// [`buffer`] for `len` elements of any plain type in a bare memory object.
///
/// # Safety
///
/// The rules of [`buffer`] hold. If the memory comes from [`mem`], the mappings in these rules include those of
/// [`Buffer::map_memory`].
///
/// # Errors
///
/// As [`buffer`], and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the memory has fewer than `len`
/// elements.
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
    // SAFETY: the borrowed handle is a valid object; this copy holds a reference of its own.
    let mem = unsafe { Mem::from_raw_copied_ptr(mem.as_ptr())? };
    opencl(device)?.check_user_buffer(&mem, bytes)?;
    device.adopt_buffer(mem, len)
}

/// The memory object of a buffer, for a user's commands; element 0 is at its start. The object may be larger than the
/// buffer; the bytes after the last element have no meaning. To pass a kernel argument, use [`set_arg`], which is safe.
///
/// # Safety
///
/// Commands on the result obey the rules of [`buffer`]. They do not write while the buffer is [mapped](Buffer::map_memory),
/// and do not read while the buffer is [mapped for writing](Buffer::map_memory_mut). Safe functions of `ocl` can break all of
/// these rules.
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
    buffer.never_keep();
    let raw = mem.retained()?;
    // SAFETY: the result takes over the reference.
    Ok(unsafe { ocl::core::Mem::from_raw_create_ptr(raw) })
}

/// Sets argument `index` of a user's kernel to a buffer. The kernel keeps the memory alive.
///
/// Running the kernel is `unsafe` in `ocl`; its caller makes the same promise as for [`mem`]. Pass `None::<&ocl::Buffer<T>>`
/// for this argument to the kernel's builder.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the kernel belongs to another context, if it has no such
/// argument, or if the driver knows that the argument has another type.
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a buffer of the CPU backend.
/// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the buffer is still mapped.
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
    // SAFETY: the borrowed handle is a valid object; this copy holds a reference of its own.
    let handle = unsafe { Kernel::from_raw_copied_ptr(kernel.as_core().as_ptr())? };
    if !device.has_kernel(&handle)? {
        return Err(Error::invalid(format!("the kernel belongs to another context than {}", device.info())));
    }
    let failed = |error: ocl::Error| {
        // A message of `ocl` has many lines; an error here has one.
        let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Error::invalid(format!("setting argument {index} of a kernel: {text}")).with_source(error)
    };
    // `ocl` checks the type and keeps the memory alive only for its own buffers. So this function makes an `ocl` buffer
    // and replaces the memory in it by the crate's.
    let mut carrier = ocl::Buffer::<T>::builder().context(&context(buffer.device())?).len(1).build().map_err(failed)?;
    // SAFETY: only the kernel gets the memory, and the user makes the promise for running it.
    *carrier = unsafe { mem(buffer)? };
    kernel.set_arg(index, &carrier).map_err(failed)
}

/// The OpenCL device on which `device` runs.
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

/// The context of a device's buffers. A user can build programs and kernels in it.
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
    // SAFETY: the result takes over the reference.
    Ok(unsafe { ocl::core::Context::from_raw_create_ptr(raw) }.into())
}

/// The queue that runs a device's commands.
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
    // SAFETY: the result takes over the reference.
    Ok(unsafe { ocl::core::CommandQueue::from_raw_create_ptr(raw) })
}

/// Makes all later commands of a device wait for `events`; does not wait itself.
///
/// The order holds for the queue of `device` and its clones. A [profiled](Device::profiled) device has another queue and needs
/// its own call.
///
/// Flushes the queues of the events, since an unflushed event might never complete.
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
///     interop::wait_for(&second, &[interop::marker(&first)?])?; // `second` waits for `first`
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn wait_for(device: &Device, events: &[ocl::Event]) -> Result<()> {
    let device = opencl(device)?;
    if let Some(i) = events.iter().position(ocl::Event::is_empty) {
        return Err(Error::invalid(format!("event {i} of {} is empty", events.len())));
    }
    // SAFETY: no event is empty, so each is a valid object; the copies hold references of their own.
    let kept = events.iter().map(|event| unsafe { Event::from_raw_copied_ptr(*event.as_core().as_ptr_ref()) });
    device.wait_for(&kept.collect::<Result<Vec<_>>>()?)
}

/// An event that completes when all commands enqueued so far on a device are done; does not wait itself.
///
/// Flushes the device's queue, so that other queues and threads can wait for the event at once.
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
    // SAFETY: the result takes over the reference.
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
