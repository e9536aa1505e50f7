//! Builds programs, and caches them in memory and on disk.

use std::{
    collections::HashMap,
    env,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lru::LruCache;
use ocl::{core::DeviceId, ffi};

use super::{
    POCL,
    cl::{self, Context, Kernel, Program},
    entries,
};
use crate::{Error, Result, runtime::ProgramSpec};

type Slot = Arc<OnceLock<Arc<Built>>>;

/// Maximum programs of a context, unless `OCLPRIM_CACHE_PROGRAMS` is set. A program takes 3 MB with PoCL and 7 MB with Intel's
/// driver for CPUs. Building one takes 0.1 to 0.5 s, so a program in constant use should stay.
const KEPT: NonZeroUsize = NonZeroUsize::new(128).expect("not 0");

/// The most recently used programs of one context. The number is bounded, since users may create any number of operators.
pub(super) struct Programs {
    slots: Mutex<LruCache<ProgramSpec, Slot>>,
    /// True after a transient failure to load a binary, which a build replaced.
    disturbed: AtomicBool,
}

impl Default for Programs {
    fn default() -> Self {
        let set = env::var("OCLPRIM_CACHE_PROGRAMS").ok().and_then(|text| text.trim().parse().ok());
        Self { slots: Mutex::new(LruCache::new(set.unwrap_or(KEPT))), disturbed: AtomicBool::new(false) }
    }
}

/// Held while the driver compiles: some compilers cannot run in two threads, even for two contexts.
static BUILDING: Mutex<()> = Mutex::new(());

/// Resources of a kernel before its arguments are set.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Work-items in the kernel's largest work-group; 0 if the driver does not report it.
    pub(super) work_group: usize,
    /// Bytes of local memory that the kernel itself declares.
    pub(super) local_bytes: usize,
}

/// A built program, with cached facts about its kernels: some drivers spend microseconds on each query, and on each new kernel.
pub(super) struct Built {
    program: Program,
    kernels: Mutex<HashMap<&'static str, Kept>>,
}

/// Idle kernels of one name. A kernel holds arguments, so only one caller uses it at a time.
struct Kept {
    limits: Limits,
    idle: Vec<Prepared>,
}

/// A kernel, and the bytes of the arguments that it already holds; empty for arguments that must be set again.
///
/// NVIDIA's driver takes 0.2 µs to set an argument. A pass of a sort has twenty arguments, of which five change.
pub(super) struct Prepared {
    pub(super) kernel: Kernel,
    pub(super) arguments: Vec<Vec<u8>>,
}

impl Built {
    fn new(program: Program) -> Self {
        Self { program, kernels: Mutex::default() }
    }

    fn kernels(&self) -> MutexGuard<'_, HashMap<&'static str, Kept>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kernel for the caller alone, who sets all its arguments and may [return](Self::put) it.
    pub(super) fn take(&self, device: DeviceId, name: &'static str) -> Result<(Prepared, Limits)> {
        if let Some(Kept { limits, idle }) = self.kernels().get_mut(name)
            && let Some(prepared) = idle.pop()
        {
            return Ok((prepared, *limits));
        }
        let kernel = cl::create_kernel(&self.program, name)?;
        if let Some(kept) = self.kernels().get(name) {
            return Ok((Prepared { kernel, arguments: Vec::new() }, kept.limits));
        }
        // NVIDIA's driver reports 256 even for kernels whose attribute demands more, and still builds and runs such
        // kernels. The device's limit applies too, since PoCL also builds kernels beyond that limit.
        let demanded = cl::kernel_numbers(&kernel, device, ffi::CL_KERNEL_COMPILE_WORK_GROUP_SIZE)?
            .into_iter()
            .fold(1, u64::saturating_mul);
        let allowed = demanded.min(cl::device_number(device, ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE)?);
        let limits = Limits {
            work_group: cl::kernel_numbers(&kernel, device, ffi::CL_KERNEL_WORK_GROUP_SIZE)?[0].max(allowed) as usize,
            local_bytes: cl::kernel_numbers(&kernel, device, ffi::CL_KERNEL_LOCAL_MEM_SIZE)?[0] as usize,
        };
        self.kernels().entry(name).or_insert(Kept { limits, idle: Vec::new() });
        Ok((Prepared { kernel, arguments: Vec::new() }, limits))
    }

    /// Keeps a kernel for later callers.
    pub(super) fn put(&self, name: &'static str, prepared: Prepared) {
        if let Some(kept) = self.kernels().get_mut(name) {
            kept.idle.push(prepared);
        }
    }
}

impl Programs {
    /// The built program: from memory, else from disk, else from source.
    ///
    /// `identity` names platform, device, driver version and settings, for which a binary is valid. `kernel` is one of the
    /// program's kernels.
    pub(super) fn get(
        &self,
        context: &Context,
        device: DeviceId,
        identity: &str,
        spec: &ProgramSpec,
        kernel: &str,
    ) -> Result<Arc<Built>> {
        // An evicted program stays alive in its launches and builds, and in the driver for enqueued commands.
        let (slot, _gone) = {
            let mut slots = self.slots.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match slots.get(spec) {
                Some(slot) => (slot.clone(), None),
                None => {
                    let slot = Slot::default();
                    (slot.clone(), slots.push(spec.clone(), slot))
                }
            }
        };
        if let Some(built) = slot.get() {
            return Ok(built.clone());
        }
        let _building = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Another thread may have built the program in the meantime.
        if let Some(built) = slot.get() {
            return Ok(built.clone());
        }
        let program = self.load_or_build(context, device, identity, spec, kernel)?;
        Ok(slot.get_or_init(|| Arc::new(Built::new(program))).clone())
    }

    /// Returns true if a binary could not be loaded for a transient reason and a build took its place.
    pub(super) fn disturbed(&self) -> bool {
        self.disturbed.load(Ordering::Relaxed)
    }

    fn load_or_build(
        &self,
        context: &Context,
        device: DeviceId,
        identity: &str,
        spec: &ProgramSpec,
        kernel: &str,
    ) -> Result<Program> {
        if keeps_its_own_cache(identity) {
            return build(context, device, spec);
        }
        let source = spec.source();
        let options = &spec.options;
        let key = entries::key("program", &[&source, options, identity, env!("CARGO_PKG_VERSION")]);
        if let Some(binary) = entries::load(&key) {
            let load = || {
                let program = cl::program_from_binary(context, device, &binary)?;
                cl::build(&program, device, options, spec.name)?;
                // Some drivers accept a binary, but cannot create a kernel from it.
                cl::create_kernel(&program, kernel)?;
                Ok::<_, Error>(program)
            };
            match load() {
                Ok(program) => return Ok(program),
                // A transient failure does not prove that the binary is bad.
                Err(error) if cl::transient(&error) => self.disturbed.store(true, Ordering::Relaxed),
                Err(_) => entries::remove(&key),
            }
        }
        let program = build(context, device, spec)?;
        if let Some(binary) = cl::binary(&program) {
            entries::store(&key, &binary);
        }
        Ok(program)
    }
}

/// PoCL compiles a kernel at its first launch, for the launch's work-group, and has its own cache for that. If it is asked for
/// a binary, it compiles every kernel of the program again, for any work-group. The reduction's checks took 99 s of processor
/// time with binaries, and 30 s without.
fn keeps_its_own_cache(identity: &str) -> bool {
    identity.split('|').next() == Some(POCL)
}

/// Builds a program and one of its kernels, queries the kernel's limits, and drops both.
pub(super) fn try_build(context: &Context, device: DeviceId, spec: &ProgramSpec, kernel: &'static str) -> Result<()> {
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    Built::new(build(context, device, spec)?).take(device, kernel).map(drop)
}

fn build(context: &Context, device: DeviceId, spec: &ProgramSpec) -> Result<Program> {
    let program = cl::program_from_source(context, &spec.source())?;
    cl::build(&program, device, &spec.options, spec.name)?;
    Ok(program)
}
