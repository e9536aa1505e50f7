//! OpenCL devices. Besides [`interop`](crate::interop), only this module names `ocl`.

mod cl;
mod entries;
mod launch;
mod pool;
mod program;
mod selftest;

use std::{
    env,
    ffi::OsString,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use ocl::{
    core::{DeviceId, PlatformId},
    ffi,
};

use cl::EventSlot;
pub(crate) use cl::{CommandQueue, Context, Event, Kernel, Mem};
pub(crate) use launch::Launch;
use pool::Pool;

use super::{
    Capabilities, DeviceInfo, DeviceType, ProgramSpec, Timing,
    info::Recorded,
    program::{COUNTER_BYTES, COUNTERS_AT},
};
use crate::{
    Error, ErrorKind, Result, memory,
    tuning::{Tuning, choice::Choice},
};

/// A buffer of the device.
pub(crate) type ClMem = Mem;

/// Maximum bytes of status words that a queue keeps; a fill of that size costs little compared to the launch that needs
/// the words.
const KEPT_WORD_BYTES: usize = 4 << 20;
/// The last epoch that fits into a status word (`cl/lib/lookback.cl`).
const LAST_TURN: u32 = (1 << 20) - 1;
/// Beyond this byte of a buffer, drivers' fills are unreliable. With NVIDIA's driver (580.159), 2^32 + 5 ones summed as if only
/// 5 had been written. Fills in parts ended in CL_OUT_OF_RESOURCES, and a fill of 2^31 bytes did not end.
const FILL_BYTES: usize = 1 << 30;
const FILL_WORK_GROUP: usize = 64;
const POCL: &str = "Portable Computing Language";
/// Above this size a launch is faster than a fill by Intel's driver for CPUs, which writes one pattern after the other.
const SLOW_FILL_BYTES: usize = 1 << 20;
/// Up to this size, fills on a checker are launches, which the checker checks. Larger launches would take the
/// interpreter too long.
const CHECKED_FILL_BYTES: usize = 1 << 16;

// Upper limits on the capacities that a driver reports. No plan needs more, and no arithmetic on these overflows.
const MAX_COMPUTE_UNITS: u64 = 1 << 16;
const MAX_WORK_GROUP: u64 = 1 << 16;
const MAX_LOCAL_BYTES: u64 = 1 << 30;
const MAX_BYTES: u64 = 1 << 50;

/// Returns whether this is Intel's driver for CPUs; Intel's driver for GPUs can have the same platform.
fn intel_cpu(info: &DeviceInfo) -> bool {
    info.ty == DeviceType::Cpu && info.platform == "Intel(R) OpenCL"
}

fn fill_spec() -> ProgramSpec {
    ProgramSpec::bare("fill.cl", include_str!("../../../cl/fill.cl"), "CL1.2").define("WG", FILL_WORK_GROUP)
}

/// The runtime's own programs for a device with these capabilities.
pub fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
    let mut programs = selftest::programs(caps);
    programs.push(fill_spec());
    programs
}

/// A device found through the loader, not yet opened.
pub(crate) struct Found {
    platform: PlatformId,
    id: DeviceId,
    pub(crate) info: DeviceInfo,
    /// True if the device has its own memory, not the host's.
    pub(crate) own_memory: bool,
    opened: OnceLock<Arc<Shared>>,
    opening: Mutex<()>,
}

/// State that all handles of one device share: the context, and the programs built in it.
struct Shared {
    id: DeviceId,
    context: Context,
    info: DeviceInfo,
    identity: String,
    programs: program::Programs,
    capabilities: OnceLock<Capabilities>,
    probing: Mutex<()>,
    /// The pools of all queues; each lives as long as its queue.
    pools: Mutex<Vec<Weak<Mutex<Pool<Mem>>>>>,
    /// On a checker: all memory that was ever allocated.
    kept: Mutex<Vec<Mem>>,
    /// Local memory that a launch may use before the self-test has measured it.
    local_tried: usize,
}

/// One queue, with the scratch buffers that the order of its commands protects.
pub(crate) struct Queue {
    queue: CommandQueue,
    /// True if the queue is the user's and out of order: each command then needs a barrier.
    unordered: bool,
    pool: Arc<Mutex<Pool<Mem>>>,
    /// See [`ClDevice::ended`].
    ended: Mutex<Option<Mem>>,
    /// See [`ClDevice::words`].
    words: Mutex<Option<Words>>,
    /// See [`ClDevice::owe`].
    failed: Mutex<Option<Error>>,
    /// Set on profiling queues.
    recorder: Option<Mutex<Recorder>>,
}

/// Events of commands, and the number of commands.
#[derive(Default)]
struct Recorder {
    what: Recorded,
    commands: usize,
    events: Vec<(&'static str, Event)>,
}

impl Recorder {
    fn wants(&self) -> bool {
        match self.what {
            Recorded::All => true,
            Recorded::Ends(commands) => self.commands == 0 || self.commands + 1 >= commands,
            Recorded::None => false,
        }
    }
}

/// Status words for decoupled look-back, and the epoch of the last launch that used them.
struct Words {
    mem: Mem,
    bytes: usize,
    turn: u32,
}

/// An opened device with a queue and a tuning; cheap to clone, safe to use from many threads.
#[derive(Clone)]
pub struct ClDevice {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    tuned: Arc<Tuned>,
}

/// A tuning, and the resulting capabilities and choices for the device.
#[derive(Default)]
struct Tuned {
    tuning: Tuning,
    capabilities: OnceLock<Arc<Capabilities>>,
    choices: OnceLock<Vec<Choice>>,
}

/// Every OpenCL device, found once: the first discovery by a driver is not safe in two threads.
pub(crate) fn found() -> &'static [Found] {
    &discovered().0
}

/// Reasons why devices may be missing; empty if there were no errors.
pub(crate) fn troubles() -> &'static [String] {
    &discovered().1
}

fn discovered() -> &'static (Vec<Found>, Vec<String>) {
    static DISCOVERED: OnceLock<(Vec<Found>, Vec<String>)> = OnceLock::new();
    DISCOVERED.get_or_init(|| {
        let (mut found, mut troubles) = (Vec::new(), Vec::new());
        #[cfg(opencl_shim)]
        troubles.extend(crate::sys::opencl::missing().map(str::to_owned));
        let platforms = cl::platforms().unwrap_or_else(|error| {
            troubles.push(error.to_string());
            Vec::new()
        });
        if platforms.is_empty() && troubles.is_empty() {
            troubles.push("the OpenCL loader has no driver".into());
        }
        for platform in platforms {
            // A broken platform is left out, and does not affect the others.
            let mut trouble = |error: Error| {
                let name = cl::platform_text(platform, ffi::CL_PLATFORM_NAME).unwrap_or_else(|_| "a platform".into());
                troubles.push(format!("{name}: {error}"));
            };
            let ids = cl::devices(platform).map_err(&mut trouble).unwrap_or_default();
            found.extend(ids.into_iter().filter_map(|id| Found::new(platform, id).map_err(&mut trouble).ok()));
        }
        (found, troubles)
    })
}

impl Found {
    fn new(platform: PlatformId, id: DeviceId) -> Result<Self> {
        let info = describe(platform, id)?;
        let own_memory = cl::device_number(id, ffi::CL_DEVICE_HOST_UNIFIED_MEMORY)? == 0;
        Ok(Self { platform, id, info, own_memory, opened: OnceLock::new(), opening: Mutex::new(()) })
    }

    /// Opens the device with a new queue; all handles share one context.
    pub(crate) fn open(&self) -> Result<ClDevice> {
        let _opening = lock(&self.opening);
        let shared = match self.opened.get() {
            Some(shared) => shared.clone(),
            None => {
                let context = cl::create_context(self.platform, self.id)?;
                let info = describe(self.platform, self.id)?;
                let shared = Arc::new(Shared::new(self.id, context, info)?);
                self.opened.get_or_init(|| shared).clone()
            }
        };
        let queue = Queue::new(&shared, cl::create_queue(&shared.context, shared.id, false)?, false, false);
        Ok(ClDevice { shared, queue: Arc::new(queue), tuned: Arc::default() })
    }
}

/// Names and sizes, as the driver reports them; sizes are clamped to the limits above.
fn describe(platform: PlatformId, id: DeviceId) -> Result<DeviceInfo> {
    let bits = cl::device_number(id, ffi::CL_DEVICE_TYPE)?;
    // Oclgrind reports every type at once: a device that runs on the host counts as a CPU.
    let ty = if bits & ffi::CL_DEVICE_TYPE_CPU != 0 {
        DeviceType::Cpu
    } else if bits & ffi::CL_DEVICE_TYPE_GPU != 0 {
        DeviceType::Gpu
    } else {
        DeviceType::Accelerator
    };
    Ok(DeviceInfo {
        name: cl::device_text(id, ffi::CL_DEVICE_NAME)?,
        platform: cl::platform_text(platform, ffi::CL_PLATFORM_NAME)?,
        vendor: cl::device_text(id, ffi::CL_DEVICE_VENDOR)?,
        driver: cl::device_text(id, ffi::CL_DRIVER_VERSION)?,
        version: cl::device_text(id, ffi::CL_DEVICE_VERSION)?,
        ty,
        opencl: true,
        compute_units: cl::device_number(id, ffi::CL_DEVICE_MAX_COMPUTE_UNITS)?.min(MAX_COMPUTE_UNITS) as u32,
        global_bytes: cl::device_number(id, ffi::CL_DEVICE_GLOBAL_MEM_SIZE)?.min(MAX_BYTES),
        max_allocation_bytes: cl::device_number(id, ffi::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?.min(MAX_BYTES),
    })
}

/// Bytes of local memory in a work-group, as the driver reports them.
fn local_bytes(id: DeviceId) -> Result<usize> {
    Ok(cl::device_number(id, ffi::CL_DEVICE_LOCAL_MEM_SIZE)?.min(MAX_LOCAL_BYTES) as usize)
}

impl Shared {
    fn new(id: DeviceId, context: Context, info: DeviceInfo) -> Result<Self> {
        let local_tried = local_bytes(id)?.max(selftest::LOCAL_TRIED);
        let identity = identity(&info);
        Ok(Self {
            id,
            context,
            info,
            identity,
            programs: program::Programs::default(),
            capabilities: OnceLock::new(),
            probing: Mutex::new(()),
            pools: Mutex::default(),
            kept: Mutex::default(),
            local_tried,
        })
    }
}

impl Queue {
    fn new(shared: &Shared, queue: CommandQueue, unordered: bool, profiling: bool) -> Self {
        let pool = Arc::new(Mutex::new(Pool::new(shared.info.global_bytes)));
        let mut pools = lock(&shared.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        let recorder = profiling.then(Mutex::default);
        Self {
            queue,
            unordered,
            pool,
            ended: Mutex::default(),
            words: Mutex::default(),
            failed: Mutex::default(),
            recorder,
        }
    }
}

/// Maximum elements of a plan. A plan needs fewer than 2^15 bytes for each element, so its sizes do not overflow.
const MOST_ELEMENTS: usize = 1 << 48;

/// Refuses numbers of elements for which scratch sizes could overflow; no memory is that large.
fn plannable(n: usize) -> Result<()> {
    if n <= MOST_ELEMENTS {
        return Ok(());
    }
    let message = format!("{n} elements are more than a device's memory can have, {MOST_ELEMENTS} at most");
    Err(Error::new(ErrorKind::OutOfMemory, message))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies the device and settings for which binaries and self-test results are valid.
fn identity(info: &DeviceInfo) -> String {
    let knobs = knobs(env::vars_os());
    format!("{}|{}|{}|{}|{knobs}", info.platform, info.name, info.version, info.driver)
}

/// The environment variables that change a driver's builds or capabilities, sorted.
fn knobs(variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    const PREFIXES: [&str; 8] = ["CL_CONFIG_", "POCL_", "RUSTICL_", "GALLIVM_", "LP_", "IGC_", "AMD_OCL_", "OCLGRIND_"];
    // Excluded: variables for a driver's own files and output.
    const OTHERS: [&str; 3] = ["CACHE", "DEBUG", "LOG"];
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let mut knobs: Vec<_> = variables
        .map(|(name, value)| (text(name), value))
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(name, _)| !OTHERS.iter().any(|other| name.contains(other)))
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    knobs.sort();
    knobs.join(" ")
}

impl ClDevice {
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
        let queue = Arc::new(Queue::new(&shared, queue, unordered, false));
        Ok(Self { shared, queue, tuned: Arc::default() })
    }

    /// Returns true if a user's kernel belongs to the device's context.
    pub(crate) fn has_kernel(&self, kernel: &Kernel) -> Result<bool> {
        Ok(cl::kernel_context(kernel)? == Some(self.context().as_ptr() as u64))
    }

    /// Checks that kernels can read and write `bytes` bytes of a user's buffer.
    pub(crate) fn check_user_buffer(&self, mem: &Mem, bytes: usize) -> Result<()> {
        const ONE_WAY: u64 = 0b110;
        const ALIGNMENT: u64 = 16;
        let property = |name| cl::mem_number(mem, name);
        if property(ffi::CL_MEM_CONTEXT)? != Some(self.context().as_ptr() as u64) {
            return Err(Error::invalid(format!("the buffer belongs to another context than {}", self.info())));
        }
        if property(ffi::CL_MEM_TYPE)? != Some(ffi::CL_MEM_OBJECT_BUFFER.into()) {
            return Err(Error::invalid("the memory object is not a buffer"));
        }
        let size = property(ffi::CL_MEM_SIZE)?.unwrap_or(0);
        if (bytes as u64) > size {
            return Err(Error::invalid(format!("the buffer has {size} bytes, {bytes} are needed")));
        }
        if property(ffi::CL_MEM_FLAGS)?.is_some_and(|flags| flags & ONE_WAY != 0) {
            return Err(Error::invalid("the buffer was not created with CL_MEM_READ_WRITE"));
        }
        for (name, what) in [(ffi::CL_MEM_HOST_PTR, "host pointer"), (ffi::CL_MEM_OFFSET, "origin in its parent")] {
            let at = property(name)?.unwrap_or(0);
            if !at.is_multiple_of(ALIGNMENT) {
                return Err(Error::unsupported(format!(
                    "the buffer's {what} is {at:#x}, not a multiple of {ALIGNMENT}"
                )));
            }
        }
        Ok(())
    }

    /// Makes later commands wait for a user's `events`.
    pub(crate) fn wait_for(&self, events: &[Event]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        for (i, event) in events.iter().enumerate() {
            if cl::event_number(event, ffi::CL_EVENT_CONTEXT)? != Some(self.context().as_ptr() as u64) {
                let message = format!("event {i} of {} belongs to another context than {}", events.len(), self.info());
                return Err(Error::invalid(message));
            }
            // On some drivers an event never completes if its queue was not flushed; a user event has no queue.
            if let Some(queue) = cl::event_number(event, ffi::CL_EVENT_COMMAND_QUEUE)?.filter(|&queue| queue != 0) {
                // SAFETY: the event holds its queue as long as it lives.
                cl::flush(&unsafe { CommandQueue::from_raw_copied_ptr(queue as usize as _) }?)?;
            }
        }
        let events: Vec<_> = events.iter().map(Event::as_ptr).collect();
        cl::barrier(self.queue(), &events)?;
        self.flush()
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn identity(&self) -> &str {
        &self.shared.identity
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.shared.id
    }

    pub(crate) fn queue(&self) -> &CommandQueue {
        &self.queue.queue
    }

    pub(crate) fn context(&self) -> &Context {
        &self.shared.context
    }

    #[doc(hidden)]
    pub fn tuning(&self) -> &Tuning {
        &self.tuned.tuning
    }

    /// Returns whether both devices share a queue, so that their commands run in one order.
    pub(crate) fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    pub(crate) fn same_context(&self, other: &Self) -> bool {
        self.shared.context.as_ptr() == other.shared.context.as_ptr()
    }

    /// The capabilities from the self-test with the tuning applied; the self-test runs at first use.
    pub fn capabilities(&self) -> Result<Arc<Capabilities>> {
        if let Some(caps) = self.tuned.capabilities.get() {
            return Ok(caps.clone());
        }
        let mut caps = self.probed()?.clone();
        self.tuned.tuning.apply(&mut caps)?;
        Ok(self.tuned.capabilities.get_or_init(|| Arc::new(caps)).clone())
    }

    /// The capabilities with the choice for a primitive on `n` elements of `element_bytes` bytes. Refuses an `n` for which a
    /// plan's sizes could overflow.
    pub(crate) fn capabilities_for(
        &self,
        primitive: &str,
        element_bytes: usize,
        n: usize,
    ) -> Result<Arc<Capabilities>> {
        plannable(n)?;
        let (caps, bytes) = (self.capabilities()?, n.saturating_mul(element_bytes));
        let choice = self.choices(&caps).iter().find(|choice| choice.is_for(primitive, element_bytes, bytes));
        Ok(choice.map_or(caps, |choice| choice.caps.clone()))
    }

    /// The capabilities for all choices of a primitive, for sizes that must hold for inputs of every size.
    pub(crate) fn all_capabilities_for(&self, primitive: &str) -> Result<Vec<Arc<Capabilities>>> {
        let caps = self.capabilities()?;
        let chosen = self.choices(&caps).iter().filter(|choice| choice.of(primitive));
        let mut all: Vec<_> = chosen.map(|choice| choice.caps.clone()).collect();
        all.push(caps);
        Ok(all)
    }

    /// The most bytes that a plan for `n` elements takes with any choice for the primitive.
    pub(crate) fn most_of(
        &self,
        primitive: &str,
        n: usize,
        bytes: impl Fn(&Capabilities) -> Result<usize>,
    ) -> Result<usize> {
        plannable(n)?;
        self.all_capabilities_for(primitive)?.iter().try_fold(0, |most, caps| Ok(bytes(caps)?.max(most)))
    }

    fn choices(&self, caps: &Capabilities) -> &[Choice] {
        self.tuned.choices.get_or_init(|| self.tuned.tuning.choices(self.info(), caps))
    }

    /// Number of choices for single primitives.
    pub(crate) fn choice_count(&self) -> Result<usize> {
        Ok(self.choices(&*self.capabilities()?).len())
    }

    fn probed(&self) -> Result<&Capabilities> {
        let shared = &self.shared;
        if let Some(caps) = shared.capabilities.get() {
            return Ok(caps);
        }
        let _probing = lock(&shared.probing);
        if let Some(caps) = shared.capabilities.get() {
            return Ok(caps);
        }
        // The self-test gets a new queue, since errors kept on the user's queue do not concern it.
        let queue = Queue::new(shared, cl::create_queue(self.context(), self.id(), false)?, false, false);
        let caps = selftest::run(&Self { queue: Arc::new(queue), ..self.clone() })?;
        Ok(shared.capabilities.get_or_init(|| caps))
    }

    /// Local memory that a launch may use: the tuned limit, else the self-test's result, else the size that the self-test will
    /// try.
    fn local_limit(&self) -> usize {
        let found = || self.shared.capabilities.get().map_or(self.shared.local_tried, |caps| caps.local_bytes);
        self.tuned.capabilities.get().map_or_else(found, |caps| caps.local_bytes)
    }

    /// Returns whether the device is a checker. Oclgrind takes the size of the host's last write, fill or copy at an address as
    /// the size of the memory there. It does so even if a new buffer has that address. It loses writes of kernels beyond that
    /// size, and reports kernels that read there.
    fn checker(&self) -> bool {
        self.shared.capabilities.get().is_some_and(|caps| caps.checker)
    }

    /// Keeps memory as long as the device is open, so that no other memory gets its address.
    fn keep(&self, mem: &Mem) {
        self.shared.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(mem.clone());
    }

    /// The same device with another tuning.
    pub(crate) fn with_tuning(&self, tuning: Tuning) -> Self {
        Self { tuned: Arc::new(Tuned { tuning, ..Tuned::default() }), ..self.clone() }
    }

    /// The same device with other assumed capabilities.
    #[cfg(test)]
    pub(crate) fn with_capabilities(&self, caps: Capabilities) -> Self {
        let tuned =
            Tuned { tuning: Tuning::default(), capabilities: Arc::new(caps).into(), choices: Vec::new().into() };
        Self { tuned: Arc::new(tuned), ..self.clone() }
    }

    /// The same device with a queue that records the time of each command.
    pub(crate) fn profiled(&self) -> Result<Self> {
        self.finish()?;
        let queue = Queue::new(&self.shared, cl::create_queue(self.context(), self.id(), true)?, false, true);
        Ok(Self { queue: Arc::new(queue), ..self.clone() })
    }

    /// The program of `spec`, which has the kernel `name`.
    fn program(&self, spec: &ProgramSpec, name: &str) -> Result<Arc<program::Built>> {
        self.shared.programs.get(self.context(), self.id(), self.identity(), spec, name)
    }

    /// Starts a launch of kernel `name`; its program is built on demand.
    pub fn launch(&self, spec: &ProgramSpec, name: &'static str) -> Result<Launch<'_>> {
        Launch::new(self, spec, name)
    }

    /// Storage for the next command's event, which only a profiled device keeps.
    fn event_slot(&self) -> EventSlot {
        EventSlot::new(self.queue.recorder.as_ref().is_some_and(|recorder| lock(recorder).wants()))
    }

    fn record(&self, name: &'static str, slot: EventSlot) -> Result<()> {
        if let Some(recorder) = &self.queue.recorder {
            let mut recorder = lock(recorder);
            recorder.commands += 1;
            recorder.events.extend(slot.take().map(|event| (name, event)));
        }
        self.settle()
    }

    /// Selects the commands that a profiled device records from now on.
    pub fn record_only(&self, what: Recorded) {
        if let Some(recorder) = &self.queue.recorder {
            *lock(recorder) = Recorder { what, ..Recorder::default() };
        }
    }

    /// Number of commands since the last [`record_only`](Self::record_only), recorded or not.
    pub fn commands(&self) -> usize {
        self.queue.recorder.as_ref().map_or(0, |recorder| lock(recorder).commands)
    }

    /// Orders later commands after this one on an out-of-order queue.
    fn settle(&self) -> Result<()> {
        if !self.queue.unordered {
            return Ok(());
        }
        cl::barrier(self.queue(), &[]).map(drop).inspect_err(|_| {
            // The command still runs, and its buffers are about to be released.
            if let Err(error) = cl::finish(self.queue()) {
                self.owe(error);
            }
        })
    }

    /// Runs an idempotent call, and repeats it once if memory is short. Before the second call, all queues release the scratch
    /// that they keep for later calls. Some drivers allocate when a buffer is first used, so any command may fail.
    ///
    /// A driver may report the shortage after it has run the command. So the call must be idempotent: it allocates, or it
    /// writes values that do not depend on its own output. Kernels that count, or that use an atomic tile counter, are not
    /// idempotent.
    fn with_memory<R>(&self, mut call: impl FnMut() -> Result<R>) -> Result<R> {
        match call().inspect_err(|error| self.give_up_scratch(error)) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                // If an earlier command failed too, this returns that error.
                cl::finish(self.queue()).inspect_err(|_| self.forget())?;
                call()
            }
            result => result,
        }
    }

    /// Releases the scratch that all queues keep, if the error says that memory is short.
    fn give_up_scratch(&self, error: &Error) {
        if error.kind() == ErrorKind::OutOfMemory {
            lock(&self.shared.pools).iter().filter_map(Weak::upgrade).for_each(|pool| lock(&pool).clear());
        }
    }

    /// The times of the commands since the last call, on a profiled device; waits for them.
    pub fn take_timings(&self) -> Result<Vec<Timing>> {
        self.finish()?;
        let Some(recorder) = &self.queue.recorder else { return Ok(Vec::new()) };
        let events = std::mem::take(&mut lock(recorder).events);
        let times = events.into_iter().map(|(name, event)| {
            // A broken clock may run backwards; a time is never negative.
            cl::profile(&event).map(|(start, end)| Timing { name, start, end: end.max(start) })
        });
        times.collect()
    }

    /// Allocates `bytes` bytes, but at least one.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Mem> {
        self.allocate_with(bytes.max(1), None)
    }

    /// Memory with a copy of `data`, of at least one byte, for commands that are enqueued later. Unlike a write it uses no
    /// queue, and so waits for no command.
    pub(crate) fn holding(&self, data: &[u8]) -> Result<Mem> {
        self.allocate_with(data.len(), Some(data))
    }

    fn allocate_with(&self, bytes: usize, data: Option<&[u8]>) -> Result<Mem> {
        let (limit, global) = (self.info().max_allocation_bytes, self.info().global_bytes);
        let short = || {
            let name = &self.info().name;
            let message = format!("allocating {bytes} bytes: {name} allows {limit} at once, of {global} in all");
            Error::new(ErrorKind::OutOfMemory, message)
        };
        // Some drivers over-commit and some abort, so the crate checks the limits; 0 means unknown.
        if bytes > isize::MAX as usize || (limit != 0 && bytes as u64 > limit) {
            return Err(short());
        }
        let result = self.with_memory(|| cl::create_buffer(self.context(), bytes, data));
        let mem = result.map_err(|error| match (error.kind(), error.status()) {
            (ErrorKind::OutOfMemory, Some(status)) => short().with_status(status).with_source(error),
            _ => error,
        })?;
        if self.checker() {
            self.keep(&mem);
        }
        Ok(mem)
    }

    /// A scratch buffer of at least `bytes` bytes, returned to the queue's pool when dropped.
    ///
    /// Reuse needs no wait: commands run in the order in which they are enqueued, so those of the next user run later.
    pub(crate) fn pooled(&self, bytes: usize) -> Result<Pooled> {
        let kept = if self.checker() { None } else { lock(&self.queue.pool).take(bytes) };
        let (size, mem) = match kept {
            Some(found) => found,
            None => {
                // A size that cannot be rounded up is refused as too large.
                let rounded = bytes.max(256).checked_next_multiple_of(256).unwrap_or(bytes);
                let size = if self.checker() { bytes.max(1) } else { rounded };
                (size, self.allocate(size)?)
            }
        };
        Ok(Pooled { queue: self.queue.clone(), size, mem })
    }

    /// A word for last-block reductions (`cl/lib/ended.cl`), and counters. All are 0 before and after each launch, so
    /// only an in-order queue has them.
    pub(crate) fn ended(&self) -> Result<Option<Mem>> {
        if self.queue.unordered {
            return Ok(None);
        }
        if let Some(ended) = lock(&self.queue.ended).clone() {
            return Ok(Some(ended));
        }
        // The lock is free here, since `forget` takes it after a failure.
        let mem = self.holding(&[0; COUNTERS_AT + COUNTER_BYTES])?;
        Ok(Some(lock(&self.queue.ended).get_or_insert(mem).clone()))
    }

    /// Status words for one launch, and its epoch, which starts at 1 and differs from the epoch of every word. So the
    /// buffer is never cleared between launches. `None` for more than `KEPT_WORD_BYTES`, or on an out-of-order queue.
    pub(crate) fn words(&self, bytes: usize) -> Result<Option<(Mem, u32)>> {
        if self.queue.unordered || bytes > KEPT_WORD_BYTES {
            return Ok(None);
        }
        if let Some(kept) = &mut *lock(&self.queue.words)
            && kept.bytes >= bytes
            && kept.turn < LAST_TURN
        {
            kept.turn += 1;
            return Ok(Some((kept.mem.clone(), kept.turn)));
        }
        // The lock is free here too. If two threads get here, the later one replaces the words.
        let bytes = bytes.next_power_of_two().max(1 << 16);
        let mem = self.allocate(bytes)?;
        self.fill(&mem, 0, bytes, &[0; 8])?;
        let turn = 1;
        *lock(&self.queue.words) = Some(Words { mem: mem.clone(), bytes, turn });
        Ok(Some((mem, turn)))
    }

    pub(crate) fn read(&self, mem: &Mem, offset: usize, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        self.with_memory(|| cl::read(self.queue(), mem, offset, out)).inspect_err(|_| self.forget())?;
        self.overdue()
    }

    pub(crate) fn write(&self, mem: &Mem, offset: usize, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let whole = if self.checker() { cl::mem_number(mem, ffi::CL_MEM_SIZE)?.unwrap_or(0) as usize } else { 0 };
        if data.len() < whole {
            let mut all = memory::zeroed(whole)?;
            self.read(mem, 0, &mut all)?;
            all[offset..offset + data.len()].copy_from_slice(data);
            return self.write(mem, 0, &all);
        }
        self.with_memory(|| cl::write(self.queue(), mem, offset, data))?;
        // Intel's runtime copies a few bytes and returns; on an out-of-order queue a kernel could overtake the copy.
        self.settle()
    }

    /// Enqueues a fill; the pattern has 1, 2, 4, 8 or 16 bytes.
    pub fn fill(&self, mem: &Mem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let caps = self.probed()?;
        if caps.checker && bytes > CHECKED_FILL_BYTES {
            let mut all = memory::with_capacity(bytes)?;
            all.extend(pattern.iter().cycle().take(bytes));
            return self.write(mem, offset, &all);
        }
        let slow = bytes > SLOW_FILL_BYTES && intel_cpu(self.info());
        // With wide offsets, the kernel for large fills runs at every size, as other kernels do.
        if caps.checker || slow || offset + bytes > FILL_BYTES || self.tuning().wide(0) {
            return self.fill_large(mem, offset, bytes, pattern);
        }
        let mut slot = self.event_slot();
        self.with_memory(|| cl::fill(self.queue(), mem, offset, bytes, pattern, &mut slot))?;
        self.record("clEnqueueFillBuffer", slot)
    }

    fn fill_large(&self, mem: &Mem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        let mut word = [0u8; 16];
        word.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(pattern));
        let groups = bytes.div_ceil(16 * FILL_WORK_GROUP).min(32 * self.info().compute_units.max(1) as usize);
        let launch =
            self.launch(&fill_spec(), "fill")?.mem(mem).scalar(offset as u64).scalar(bytes as u64).scalar(word);
        launch.repeatable().run([groups, 1, 1], [FILL_WORK_GROUP, 1, 1])
    }

    /// Enqueues a copy by the driver.
    pub fn copy(&self, from: (&Mem, usize), to: (&Mem, usize), bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.checker() {
            let mut data = memory::zeroed(bytes)?;
            self.read(from.0, from.1, &mut data)?;
            return self.write(to.0, to.1, &data);
        }
        let mut slot = self.event_slot();
        self.with_memory(|| cl::copy(self.queue(), from, to, bytes, &mut slot))?;
        self.record("clEnqueueCopyBuffer", slot)
    }

    /// Maps a range after all earlier commands. The caller checks for [`overdue`](Self::overdue) errors, and unmaps the range.
    pub(crate) fn map(&self, mem: &Mem, offset: usize, bytes: usize, write: bool) -> Result<*mut u8> {
        cl::map(self.queue(), mem, offset, bytes, write).inspect_err(|_| self.forget()).map(|address| address.cast())
    }

    /// Enqueues an unmap. An error means that the range is still mapped.
    pub(crate) fn unmap(&self, mem: &Mem, address: *mut u8) -> Result<()> {
        cl::unmap(self.queue(), mem, address.cast())?;
        if let Err(error) = self.settle() {
            self.owe(error);
        }
        Ok(())
    }

    /// A failed launch may have left any value in words that must be 0 between launches.
    fn forget(&self) {
        *lock(&self.queue.ended) = None;
        *lock(&self.queue.words) = None;
    }

    pub(crate) fn flush(&self) -> Result<()> {
        cl::flush(self.queue())
    }

    pub(crate) fn finish(&self) -> Result<()> {
        cl::finish(self.queue()).inspect_err(|_| self.forget())?;
        self.overdue()
    }

    /// Keeps an error of code that cannot return it, such as a drop. The next call that waits on this queue returns the
    /// error. If there are several errors, the first one is kept.
    pub(crate) fn owe(&self, error: Error) {
        lock(&self.queue.failed).get_or_insert(error);
    }

    /// Returns the kept error, once.
    pub(crate) fn overdue(&self) -> Result<()> {
        lock(&self.queue.failed).take().map_or(Ok(()), Err)
    }

    /// An event that completes after all earlier commands. The user waits for the event instead of a call, so this
    /// function returns overdue errors.
    pub(crate) fn marker(&self) -> Result<Event> {
        self.overdue()?;
        let event = cl::barrier(self.queue(), &[])?;
        self.flush()?;
        Ok(event)
    }
}

/// The location of memory: the handle of the memory object that contains it, and the first byte in that object. A sub-buffer is
/// an object of its own.
pub(crate) fn root(mem: &Mem) -> Result<(usize, usize)> {
    let number = |name| Ok::<_, Error>(cl::mem_number(mem, name)?.unwrap_or(0) as usize);
    match number(ffi::CL_MEM_ASSOCIATED_MEMOBJECT)? {
        0 => Ok((mem.as_ptr().addr(), 0)),
        parent => Ok((parent, number(ffi::CL_MEM_OFFSET)?)),
    }
}

/// A buffer from a queue's pool.
pub(crate) struct Pooled {
    queue: Arc<Queue>,
    size: usize,
    mem: Mem,
}

impl Pooled {
    pub(crate) fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Returns whether the buffer serves as `bytes` bytes of scratch for commands on the device's queue.
    pub(crate) fn serves(&self, device: &ClDevice, bytes: usize) -> bool {
        Arc::ptr_eq(&self.queue, &device.queue) && self.size >= bytes
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        lock(&self.queue.pool).put(self.size, self.mem.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::{identity, knobs};
    use crate::DeviceInfo;

    /// Cached results of one driver must not be used for another.
    #[test]
    fn identities_distinguish_devices_and_drivers() {
        let old = DeviceInfo { driver: "580.159".into(), ..DeviceInfo::cpu() };
        let new = DeviceInfo { driver: "590.44".into(), ..old.clone() };
        let other = DeviceInfo { name: "another".into(), ..old.clone() };
        let elsewhere = DeviceInfo { platform: "another".into(), ..old.clone() };
        let later = DeviceInfo { version: "OpenCL 3.1".into(), ..old.clone() };
        assert_eq!(identity(&old), identity(&old.clone()));
        for changed in [new, other, elsewhere, later] {
            assert_ne!(identity(&changed), identity(&old), "{changed}");
        }
    }

    #[test]
    fn settings_of_drivers_are_distinguished() {
        let of = |pairs: &[(&str, &str)]| knobs(pairs.iter().map(|&(name, value)| (name.into(), value.into())));
        assert_eq!(of(&[("HOME", "/root"), ("POCL_CACHE_DIR", "/tmp/1"), ("OCLGRIND_LOG", "x")]), "");
        let both = of(&[("POCL_DEVICES", "basic"), ("CL_CONFIG_CPU_VECTORIZER_MODE", "8"), ("PATH", "")]);
        assert_eq!(both, "CL_CONFIG_CPU_VECTORIZER_MODE=8 POCL_DEVICES=basic");
        assert_ne!(both, of(&[("POCL_DEVICES", "pthread"), ("CL_CONFIG_CPU_VECTORIZER_MODE", "8")]));
    }
}
