//! OpenCL devices. Besides [`interop`](crate::interop), only this module names `ocl`.

mod borrowed;
mod capabilities;
mod cl;
mod copiers;
mod discovery;
mod entries;
mod launch;
mod memory;
mod pinned;
mod pool;
mod program;
mod queue;
mod selftest;
mod staging;
mod transfer;

use std::{
    any::Any,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    thread,
};

use ocl::{
    core::{DeviceId, PlatformId},
    ffi,
};

pub(crate) use borrowed::Borrowed;
use cl::EventSlot;
pub(crate) use cl::{CommandQueue, Context, Event, Kernel, Mem};
use discovery::{
    MAX_BYTES, MAX_WORK_GROUP, NVIDIA, OCLGRIND, POCL, describe, has_own_memory, identity, intel_cpu, local_bytes,
};
pub(crate) use discovery::{found, troubles};
pub(crate) use launch::Launch;
use memory::{Kept, fill_spec};
pub(crate) use memory::{Pooled, ResultMemory, root};
pub(crate) use pinned::Pinned;
use pool::{Pool, Released, Slot};
use program::Compiler;
pub(crate) use queue::Queue;
use staging::Staging;
pub(crate) use transfer::Transfer;

use super::{
    Capabilities, DeviceInfo, DeviceType, ProgramSpec, Timing,
    info::{Recorded, Transfers},
};
use crate::{Error, Result};

/// A buffer of the device.
pub(crate) type ClMem = Mem;

/// The runtime's own programs for a device with these capabilities.
pub fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
    let mut programs = selftest::programs(caps);
    programs.push(fill_spec());
    programs
}

/// State that all handles of one device share: the context, and the programs built in it.
struct Shared {
    id: DeviceId,
    context: Context,
    info: DeviceInfo,
    identity: String,
    compiler: Compiler,
    programs: program::Programs,
    capabilities: OnceLock<Arc<Capabilities>>,
    probing: Mutex<()>,
    /// The pools of all queues; each lives as long as its queue.
    pools: Mutex<Vec<Weak<Mutex<Pool<Mem>>>>>,
    /// On a checker: all memory that was allocated, so that no later buffer gets its address.
    kept: Mutex<Vec<Mem>>,
    /// Local memory that a launch may use before the self-test has measured it.
    local_tried: usize,
    /// The largest work-group that the driver reports for the device.
    max_work_group: u64,
    /// The driver's handle of the platform.
    platform: usize,
    /// True if the device has its own memory, not the host's.
    own_memory: bool,
    /// The addresses of host memory that a buffer can use in place are multiples of this number; 0 if unknown.
    base_align: usize,
    staging: Staging,
}

/// The transfers for a number of bytes, as a higher layer chooses them.
type ChooseTransfers = dyn Fn(usize) -> Transfers + Send + Sync;

/// An opened device with a queue; cheap to clone, safe to use from many threads.
#[derive(Clone)]
pub struct ClDevice {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    /// Capabilities that replace those from the self-test.
    assumed: Option<Arc<Capabilities>>,
    /// True if kernels use 64-bit offsets at every size.
    wide_offsets: bool,
    /// See [`ClDevice::carried`].
    carried: Arc<OnceLock<Box<dyn Any + Send + Sync>>>,
    /// See [`ClDevice::transfers`].
    transfers: Arc<OnceLock<Box<ChooseTransfers>>>,
}

impl Shared {
    fn new(id: DeviceId, context: Context, info: DeviceInfo) -> Result<Self> {
        let local_tried = local_bytes(id)?.max(selftest::LOCAL_TRIED);
        let (identity, compiler) = (identity(&info), Compiler::of(&info.platform));
        let own_memory = info.ty != DeviceType::Cpu && has_own_memory(id)?;
        let max_work_group = cl::device_number(id, ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE)?;
        let platform = cl::device_number(id, ffi::CL_DEVICE_PLATFORM)? as usize;
        let base_align = cl::device_number(id, ffi::CL_DEVICE_MEM_BASE_ADDR_ALIGN)? as usize / 8;
        Ok(Self {
            id,
            context,
            info,
            identity,
            compiler,
            programs: program::Programs::default(),
            capabilities: OnceLock::new(),
            probing: Mutex::new(()),
            pools: Mutex::default(),
            kept: Mutex::default(),
            local_tried,
            max_work_group,
            platform,
            own_memory,
            base_align,
            staging: Staging::default(),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClDevice {
    fn new(shared: Arc<Shared>, queue: Queue) -> Self {
        let (carried, transfers) = (Arc::default(), Arc::default());
        Self { shared, queue: Arc::new(queue), assumed: None, wide_offsets: false, carried, transfers }
    }

    /// A device on a user's own context and queue.
    pub(crate) fn adopt(id: DeviceId, context: Context, queue: CommandQueue) -> Result<Self> {
        // Drivers accept objects of another context without an error, and their behaviour is then undefined.
        // SAFETY: the device's platform id is valid as long as the device id.
        let platform = unsafe { PlatformId::from_raw(cl::device_number(id, ffi::CL_DEVICE_PLATFORM)? as usize as _) };
        let info = describe(platform, id)?;
        let name = &info.name;
        if !cl::context_devices(&context)?.contains(&id.as_raw()) {
            return Err(Error::invalid(format!("the context does not have the device {name}")));
        }
        if cl::queue_number(&queue, ffi::CL_QUEUE_CONTEXT)? != Some(context.as_ptr() as u64) {
            return Err(Error::invalid("the queue belongs to another context"));
        }
        if cl::queue_number(&queue, ffi::CL_QUEUE_DEVICE)? != Some(id.as_raw() as u64) {
            return Err(Error::invalid(format!("the queue belongs to another device than {name}")));
        }
        let properties = cl::queue_number(&queue, ffi::CL_QUEUE_PROPERTIES)?;
        let unordered = properties.is_none_or(|bits| bits & ffi::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0);
        let shared = Arc::new(Shared::new(id, context, info)?);
        let queue = Queue::new(&shared, queue, unordered, false);
        Ok(Self::new(shared, queue))
    }

    /// Returns true if a user's kernel belongs to the device's context.
    pub(crate) fn has_kernel(&self, kernel: &Kernel) -> Result<bool> {
        Ok(cl::kernel_context(kernel)? == Some(self.context().as_ptr() as u64))
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    pub(super) fn max_work_group(&self) -> u64 {
        self.shared.max_work_group
    }

    fn identity(&self) -> &str {
        &self.shared.identity
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.shared.id
    }

    pub(crate) fn context(&self) -> &Context {
        &self.shared.context
    }

    pub(crate) fn same_context(&self, other: &Self) -> bool {
        self.shared.context.as_ptr() == other.shared.context.as_ptr()
    }

    fn target(&self) -> program::Target<'_> {
        let Shared { id, context, identity, compiler, .. } = &*self.shared;
        program::Target { context, device: *id, identity, compiler: *compiler }
    }

    /// Returns the program with the kernel `name`, built from `spec`.
    fn program(&self, spec: &ProgramSpec, name: &'static str) -> Result<Arc<program::Built>> {
        self.shared.programs.get(&self.target(), spec, name)
    }

    /// Builds the kernels of a call as one program, if that takes less time than a program for each kernel.
    ///
    /// A primitive that launches several kernels calls this function first. Returns an error after a lasting failure,
    /// such as an error in a user's text. A transient failure has no effect here: the launch builds the kernel again.
    pub(crate) fn build_ahead(&self, spec: &ProgramSpec, kernels: &[&'static str]) -> Result<()> {
        let programs = &self.shared.programs;
        if !self.shared.compiler.together || programs.missing(spec, kernels).len() < 2 {
            return Ok(());
        }
        match programs.get_together(&self.target(), spec, kernels) {
            Err(error) if !cl::transient(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Builds one kernel of each program, with as many threads as builds may run in parallel. A failure has no effect
    /// here.
    fn build_in_parallel(&self, programs: &[(ProgramSpec, &'static str)]) {
        let at_once = self.shared.compiler.at_once.min(programs.len());
        if at_once < 2 {
            return;
        }
        let rest = Mutex::new(programs.iter());
        let next = || lock(&rest).next();
        let build_rest = || {
            while let Some((spec, kernel)) = next() {
                drop(self.program(spec, kernel));
            }
        };
        thread::scope(|scope| {
            for _ in 0..at_once {
                // Without a thread, the launch builds the program.
                let _ = thread::Builder::new().spawn_scoped(scope, build_rest);
            }
        });
    }

    /// Returns a launch of the kernel `name`, whose arguments are not set yet. Its program is built on demand.
    pub fn launch(&self, spec: &ProgramSpec, name: &'static str) -> Result<Launch<'_>> {
        Launch::new(self, spec, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No kernel of a call is built twice, and a user's text with an error is not compiled for each kernel.
    #[test]
    fn kernels_of_a_call_share_a_program() {
        const TEXT: &str = "__kernel void a(void)\n{\n}\n__kernel void b(void)\n{\n}\n__kernel void c(void)\n{\n}\n\
                            __kernel void d(void)\n{\n}\n__kernel void e(void)\n{\n}\n__kernel void f(void)\n{\n}\n";
        const KERNELS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        for found in found() {
            let opened = found.open().unwrap();
            let mut shared = Shared::new(opened.id(), opened.context().clone(), opened.info().clone()).unwrap();
            // With NVIDIA's compiler, a call builds its kernels as one program. The test needs that on every device.
            shared.compiler = Compiler::of(NVIDIA);
            let device = ClDevice { shared: Arc::new(shared), ..opened };
            let right = ProgramSpec::bare("right.cl", TEXT, "CL1.2");
            let wrong = ProgramSpec::bare("wrong.cl", TEXT, "CL1.2").prelude("an error;\n".into());
            let count = |spec| device.shared.programs.count(spec);
            device.launch(&right, "c").unwrap();
            assert_eq!(count(&right), 1, "{}", found.info);
            device.build_ahead(&right, &KERNELS).unwrap();
            assert_eq!(count(&right), 2, "{}", found.info);
            for kernel in KERNELS {
                device.launch(&right, kernel).unwrap();
            }
            assert_eq!(count(&right), 2, "{}", found.info);
            let error = device.build_ahead(&wrong, &KERNELS).unwrap_err();
            assert!(error.to_string().contains("wrong.cl"), "{}: {error}", found.info);
            assert_eq!(count(&wrong), 0, "{}", found.info);
        }
    }
}
