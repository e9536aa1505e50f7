//! OpenCL devices. The only module that names `ocl`, besides [`interop`](crate::interop).

mod cl;
mod launch;
mod program;
mod selftest;

use std::sync::{Arc, Mutex, OnceLock};

use ocl::core::{DeviceId, PlatformId};

use cl::EventSlot;
pub(crate) use cl::{CommandQueue, Context, Event, Mem};
pub(crate) use launch::Launch;

use super::{Capabilities, DeviceInfo, DeviceType, ProgramSpec, Timing, Tuning};
use crate::{Error, ErrorKind, Result};

/// A buffer of the device.
pub(crate) type ClMem = Mem;

/// Beyond this byte of a buffer drivers' fills are not trusted. With NVIDIA's (580.159) 2^32 + 5 ones summed as if only 5
/// had been written, and fills in parts ended in CL_OUT_OF_RESOURCES.
const FILL_BYTES: usize = 1 << 31;

/// A device found through the loader, not yet opened.
pub(crate) struct Found {
    platform: PlatformId,
    id: DeviceId,
    pub(crate) info: DeviceInfo,
    /// Memory of its own, not the host's.
    pub(crate) own_memory: bool,
    opened: OnceLock<Arc<Shared>>,
    opening: Mutex<()>,
}

/// What all handles of one device share: the context and what was built in it.
struct Shared {
    id: DeviceId,
    context: Context,
    info: DeviceInfo,
    identity: String,
    programs: program::Programs,
    capabilities: OnceLock<Capabilities>,
    probing: Mutex<()>,
    /// Local memory that a launch may use before the probe has found out.
    local_tried: usize,
}

/// One in-order queue, with the scratch buffers whose use it orders.
pub(crate) struct Queue {
    queue: CommandQueue,
    /// The queue is the user's and out of order: each command needs a barrier.
    unordered: bool,
    pool: Mutex<Vec<(usize, Mem)>>,
    /// Set on profiling queues: the finished commands' events.
    events: Option<Mutex<Vec<(&'static str, Event)>>>,
}

/// An opened device with a queue and a tuning; cheap to clone, safe to use from many threads.
#[derive(Clone)]
pub(crate) struct ClDevice {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    tuned: Arc<Tuned>,
}

/// Choices of geometry and back ends, and what they make of the device.
#[derive(Default)]
struct Tuned {
    tuning: Tuning,
    capabilities: OnceLock<Arc<Capabilities>>,
}

/// Every OpenCL device, found once: drivers' first discovery is not safe to run from two threads.
pub(crate) fn found() -> &'static [Found] {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let platforms = cl::platforms().unwrap_or_default();
        // A broken platform beside a good one is left out.
        let devices = platforms
            .into_iter()
            .flat_map(|platform| cl::devices(platform).unwrap_or_default().into_iter().map(move |id| (platform, id)));
        devices.map(|(platform, id)| Found::new(platform, id)).collect()
    })
}

impl Found {
    fn new(platform: PlatformId, id: DeviceId) -> Self {
        const HOST_UNIFIED_MEMORY: u32 = 0x1035;
        let info = describe(platform, id);
        let own_memory = cl::device_number(id, HOST_UNIFIED_MEMORY) == 0;
        Self { platform, id, info, own_memory, opened: OnceLock::new(), opening: Mutex::new(()) }
    }

    /// Opens the device with a queue of its own; all handles share one context.
    pub(crate) fn open(&self) -> Result<ClDevice> {
        let _opening = self.opening.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let shared = match self.opened.get() {
            Some(shared) => shared.clone(),
            None => {
                let context = cl::create_context(self.id)?;
                let info = describe(self.platform, self.id);
                let shared = Arc::new(Shared::new(self.id, context, info));
                self.opened.get_or_init(|| shared).clone()
            }
        };
        let queue = Queue::new(cl::create_queue(&shared.context, shared.id, false)?, false, false);
        Ok(ClDevice { shared, queue: Arc::new(queue), tuned: Arc::default() })
    }
}

/// Names and sizes, as the driver reports them.
fn describe(platform: PlatformId, id: DeviceId) -> DeviceInfo {
    const PLATFORM_NAME: u32 = 0x0902;
    const TYPE: u32 = 0x1000;
    const COMPUTE_UNITS: u32 = 0x1002;
    const MAX_ALLOCATION: u32 = 0x1010;
    const GLOBAL_BYTES: u32 = 0x101F;
    const NAME: u32 = 0x102B;
    const VENDOR: u32 = 0x102C;
    const DRIVER: u32 = 0x102D;
    const VERSION: u32 = 0x102F;
    let bits = cl::device_number(id, TYPE);
    // Oclgrind calls itself every type at once: what runs on the host counts as a CPU.
    let ty = if bits & 2 != 0 {
        DeviceType::Cpu
    } else if bits & 4 != 0 {
        DeviceType::Gpu
    } else {
        DeviceType::Accelerator
    };
    DeviceInfo {
        name: cl::device_text(id, NAME),
        platform: cl::platform_text(platform, PLATFORM_NAME),
        vendor: cl::device_text(id, VENDOR),
        driver: cl::device_text(id, DRIVER),
        version: cl::device_text(id, VERSION),
        ty,
        opencl: true,
        compute_units: cl::device_number(id, COMPUTE_UNITS) as u32,
        global_bytes: cl::device_number(id, GLOBAL_BYTES),
        max_allocation_bytes: cl::device_number(id, MAX_ALLOCATION),
    }
}

impl Shared {
    fn new(id: DeviceId, context: Context, info: DeviceInfo) -> Self {
        const LOCAL_BYTES: u32 = 0x1023;
        let local_tried = (cl::device_number(id, LOCAL_BYTES) as usize).max(selftest::LOCAL_TRIED);
        let identity = format!("{}|{}|{}|{}", info.platform, info.name, info.version, info.driver);
        Self {
            id,
            context,
            info,
            identity,
            programs: program::Programs::default(),
            capabilities: OnceLock::new(),
            probing: Mutex::new(()),
            local_tried,
        }
    }
}

impl Queue {
    fn new(queue: CommandQueue, unordered: bool, profiling: bool) -> Self {
        Self { queue, unordered, pool: Mutex::default(), events: profiling.then(Mutex::default) }
    }
}

impl ClDevice {
    /// A device over a user's own context and queue.
    pub(crate) fn adopt(id: DeviceId, context: Context, queue: CommandQueue) -> Result<Self> {
        const PLATFORM: u32 = 0x1031;
        const QUEUE_CONTEXT: u32 = 0x1090;
        const QUEUE_DEVICE: u32 = 0x1091;
        const QUEUE_PROPERTIES: u32 = 0x1093;
        const OUT_OF_ORDER: u64 = 1;
        // Drivers take objects of another context without a word, and then do what they like.
        let name = || cl::device_text(id, 0x102B);
        if !cl::context_devices(&context).contains(&id.as_raw()) {
            return Err(Error::invalid(format!("the context does not have the device {}", name())));
        }
        if cl::queue_number(&queue, QUEUE_CONTEXT) != Some(context.as_ptr() as u64) {
            return Err(Error::invalid("the queue belongs to another context"));
        }
        if cl::queue_number(&queue, QUEUE_DEVICE) != Some(id.as_raw() as u64) {
            return Err(Error::invalid(format!("the queue belongs to another device than {}", name())));
        }
        let unordered = cl::queue_number(&queue, QUEUE_PROPERTIES).unwrap_or(OUT_OF_ORDER) & OUT_OF_ORDER != 0;
        // SAFETY: the device's platform id is valid for as long as the device id.
        let platform = unsafe { PlatformId::from_raw(cl::device_number(id, PLATFORM) as usize as _) };
        Ok(Self {
            shared: Arc::new(Shared::new(id, context, describe(platform, id))),
            queue: Arc::new(Queue::new(queue, unordered, false)),
            tuned: Arc::default(),
        })
    }

    /// Checks that kernels can read and write `bytes` bytes of a user's buffer.
    pub(crate) fn check_user_buffer(&self, mem: &Mem, bytes: usize) -> Result<()> {
        const TYPE: u32 = 0x1100;
        const FLAGS: u32 = 0x1101;
        const SIZE: u32 = 0x1102;
        const HOST_POINTER: u32 = 0x1103;
        const CONTEXT: u32 = 0x1106;
        const ORIGIN: u32 = 0x1108;
        const IS_BUFFER: u64 = 0x10F0;
        const ONE_WAY: u64 = 0b110;
        const ALIGNMENT: u64 = 16;
        let property = |name| cl::mem_number(mem, name);
        if property(CONTEXT) != Some(self.context().as_ptr() as u64) {
            return Err(Error::invalid(format!("the buffer belongs to another context than {}", self.info())));
        }
        if property(TYPE) != Some(IS_BUFFER) {
            return Err(Error::invalid("the memory object is not a buffer"));
        }
        let size = property(SIZE).unwrap_or(0);
        if (bytes as u64) > size {
            return Err(Error::invalid(format!("the buffer has {size} bytes, {bytes} are needed")));
        }
        if property(FLAGS).is_some_and(|flags| flags & ONE_WAY != 0) {
            return Err(Error::invalid("the buffer was not created with CL_MEM_READ_WRITE"));
        }
        for (name, what) in [(HOST_POINTER, "host pointer"), (ORIGIN, "origin in its parent")] {
            let at = property(name).unwrap_or(0);
            if !at.is_multiple_of(ALIGNMENT) {
                return Err(Error::unsupported(format!(
                    "the buffer's {what} is {at:#x}, not a multiple of {ALIGNMENT}"
                )));
            }
        }
        Ok(())
    }

    /// Keeps later commands behind a user's `events`.
    pub(crate) fn wait_for(&self, events: &[Event]) -> Result<()> {
        const QUEUE: u32 = 0x11D0;
        const CONTEXT: u32 = 0x11D4;
        if events.is_empty() {
            return Ok(());
        }
        for (i, event) in events.iter().enumerate() {
            if cl::event_number(event, CONTEXT) != Some(self.context().as_ptr() as u64) {
                let message = format!("event {i} of {} belongs to another context than {}", events.len(), self.info());
                return Err(Error::invalid(message));
            }
            // An event of a queue that was not flushed never comes on some drivers; a user's event has no queue.
            if let Some(queue) = cl::event_number(event, QUEUE).filter(|&queue| queue != 0) {
                // SAFETY: the event holds its queue for as long as it lives itself.
                cl::flush(&unsafe { CommandQueue::from_raw_copied_ptr(queue as usize as _) })?;
            }
        }
        let events: Vec<_> = events.iter().map(Event::as_ptr).collect();
        cl::barrier(self.queue(), &events)?;
        self.flush()
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.shared.info
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

    pub(crate) fn tuning(&self) -> &Tuning {
        &self.tuned.tuning
    }

    /// Whether commands of both run in one order.
    pub(crate) fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    pub(crate) fn same_context(&self, other: &Self) -> bool {
        self.shared.context.as_ptr() == other.shared.context.as_ptr()
    }

    /// What the self-test found, with the tuning's choices in place; probed at first use.
    pub(crate) fn capabilities(&self) -> Result<Arc<Capabilities>> {
        if let Some(caps) = self.tuned.capabilities.get() {
            return Ok(caps.clone());
        }
        let mut caps = self.probed()?.clone();
        self.tuned.tuning.apply(&mut caps)?;
        Ok(self.tuned.capabilities.get_or_init(|| Arc::new(caps)).clone())
    }

    fn probed(&self) -> Result<&Capabilities> {
        let shared = &self.shared;
        if let Some(caps) = shared.capabilities.get() {
            return Ok(caps);
        }
        let _probing = shared.probing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(caps) = shared.capabilities.get() {
            return Ok(caps);
        }
        let caps = selftest::run(self)?;
        Ok(shared.capabilities.get_or_init(|| caps))
    }

    /// Local memory that a launch may use: what the probe found, or what it is about to try.
    fn local_limit(&self) -> usize {
        self.shared.capabilities.get().map_or(self.shared.local_tried, |caps| caps.local_bytes)
    }

    /// The same device with other choices of geometry and back ends.
    pub(crate) fn with_tuning(&self, tuning: Tuning) -> Self {
        Self { tuned: Arc::new(Tuned { tuning, capabilities: OnceLock::new() }), ..self.clone() }
    }

    /// The same device with a queue that records how long each command took.
    pub(crate) fn profiled(&self) -> Result<Self> {
        self.finish()?;
        let queue = Queue::new(cl::create_queue(self.context(), self.id(), true)?, false, true);
        Ok(Self { queue: Arc::new(queue), ..self.clone() })
    }

    fn program(&self, spec: &ProgramSpec) -> Result<Arc<program::Built>> {
        self.shared.programs.get(self.context(), self.id(), &self.shared.identity, spec)
    }

    /// Starts a launch of kernel `name` of a program that is built on demand.
    pub(crate) fn launch(&self, spec: &ProgramSpec, name: &'static str) -> Result<Launch<'_>> {
        Launch::new(self, spec, name)
    }

    /// A place for the next command's event, which only a profiled device keeps.
    fn event_slot(&self) -> EventSlot {
        EventSlot::new(self.queue.events.is_some())
    }

    fn record(&self, name: &'static str, slot: EventSlot) -> Result<()> {
        if let (Some(events), Some(event)) = (&self.queue.events, slot.take()) {
            events.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((name, event));
        }
        self.settle()
    }

    /// Keeps later commands behind this one on a queue that would not.
    fn settle(&self) -> Result<()> {
        if self.queue.unordered {
            cl::barrier(self.queue(), &[])?;
        }
        Ok(())
    }

    /// The times of the commands since the last call, on a profiled device; waits for them.
    pub(crate) fn take_timings(&self) -> Result<Vec<Timing>> {
        self.finish()?;
        let Some(events) = &self.queue.events else { return Ok(Vec::new()) };
        let events = std::mem::take(&mut *events.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        let times =
            events.into_iter().map(|(name, event)| cl::profile(&event).map(|(start, end)| Timing { name, start, end }));
        times.collect()
    }

    /// Allocates `bytes` bytes, one at least.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Mem> {
        let (limit, global) = (self.info().max_allocation_bytes, self.info().global_bytes);
        let short = || {
            let name = &self.info().name;
            let message = format!("allocating {bytes} bytes: {name} allows {limit} at once, of {global} in all");
            Error::new(ErrorKind::OutOfMemory, message)
        };
        // Some drivers over-commit and some abort, so limits are ours to check; 0 is an unknown one.
        if limit != 0 && bytes as u64 > limit {
            return Err(short());
        }
        let create = || cl::create_buffer(self.context(), bytes.max(1));
        let result = match create() {
            // What the pool keeps for later calls may be what is missing now.
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                self.queue.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
                self.finish()?;
                create()
            }
            result => result,
        };
        result.map_err(|error| match (error.kind(), error.status()) {
            (ErrorKind::OutOfMemory, Some(status)) => short().with_status(status).with_source(error),
            _ => error,
        })
    }

    /// A scratch buffer of at least `bytes` bytes, returned to the queue's pool when dropped.
    ///
    /// Reuse needs no waiting: the queue is in order, so a later user's commands run after this one's.
    pub(crate) fn pooled(&self, bytes: usize) -> Result<Pooled> {
        let fit = {
            let mut pool = self.queue.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let fit = pool.iter().position(|&(size, _)| size >= bytes && size / 4 <= bytes.max(1 << 16));
            fit.map(|index| pool.swap_remove(index))
        };
        let (size, mem) = match fit {
            Some(found) => found,
            None => {
                let size = bytes.max(256).next_multiple_of(256);
                (size, self.allocate(size)?)
            }
        };
        Ok(Pooled { queue: self.queue.clone(), size, mem })
    }

    pub(crate) fn read(&self, mem: &Mem, offset: usize, out: &mut [u8]) -> Result<()> {
        if out.is_empty() { Ok(()) } else { cl::read(self.queue(), mem, offset, out) }
    }

    pub(crate) fn write(&self, mem: &Mem, offset: usize, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        cl::write(self.queue(), mem, offset, data)?;
        // Intel's runtime keeps a copy of a few bytes and returns; on an out-of-order queue a kernel could overtake it.
        self.settle()
    }

    /// Enqueues a fill; the pattern has 1, 2, 4, 8 or 16 bytes.
    pub(crate) fn fill(&self, mem: &Mem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // Oclgrind takes what kernels later write over a fill for uninitialised.
        if self.info().platform == "Oclgrind" {
            return self.write(mem, offset, &pattern.repeat(bytes / pattern.len()));
        }
        if offset + bytes > FILL_BYTES {
            return self.fill_large(mem, offset, bytes, pattern);
        }
        let mut slot = self.event_slot();
        cl::fill(self.queue(), mem, offset, bytes, pattern, &mut slot)?;
        self.record("clEnqueueFillBuffer", slot)
    }

    fn fill_large(&self, mem: &Mem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        const WORK_GROUP: usize = 64;
        let options = vec!["-cl-std=CL1.2".into(), format!("-DWG={WORK_GROUP}")];
        let spec =
            ProgramSpec { name: "fill.cl", text: include_str!("../../../cl/fill.cl"), options, prelude: String::new() };
        let mut word = [0u8; 16];
        word.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(pattern));
        let groups = bytes.div_ceil(16 * WORK_GROUP).min(32 * self.info().compute_units.max(1) as usize);
        let launch = self.launch(&spec, "fill")?.mem(mem).scalar(offset as u64).scalar(bytes as u64).scalar(word);
        launch.run([groups, 1, 1], [WORK_GROUP, 1, 1])
    }

    /// Enqueues a copy by the driver.
    pub(crate) fn copy(&self, from: (&Mem, usize), to: (&Mem, usize), bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let mut slot = self.event_slot();
        cl::copy(self.queue(), from, to, bytes, &mut slot)?;
        self.record("clEnqueueCopyBuffer", slot)
    }

    pub(crate) fn map(&self, mem: &Mem, offset: usize, bytes: usize, write: bool) -> Result<*mut u8> {
        cl::map(self.queue(), mem, offset, bytes, write).map(|address| address.cast())
    }

    pub(crate) fn unmap(&self, mem: &Mem, address: *mut u8) -> Result<()> {
        cl::unmap(self.queue(), mem, address.cast())?;
        self.settle()
    }

    pub(crate) fn flush(&self) -> Result<()> {
        cl::flush(self.queue())
    }

    pub(crate) fn finish(&self) -> Result<()> {
        cl::finish(self.queue())
    }

    /// An event that completes after all earlier commands.
    pub(crate) fn marker(&self) -> Result<Event> {
        let event = cl::barrier(self.queue(), &[])?;
        self.flush()?;
        Ok(event)
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

    /// Whether this serves `bytes` bytes of scratch for commands on the device's queue.
    pub(crate) fn serves(&self, device: &ClDevice, bytes: usize) -> bool {
        Arc::ptr_eq(&self.queue, &device.queue) && self.size >= bytes
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        const KEPT: usize = 8;
        let mut pool = self.queue.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        pool.push((self.size, self.mem.clone()));
        if pool.len() > KEPT {
            pool.remove(0);
        }
    }
}
