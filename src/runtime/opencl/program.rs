//! Builds programs, and caches them in memory and on disk.

use std::{
    collections::HashMap,
    env,
    num::NonZeroUsize,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lru::LruCache;
use ocl::{core::DeviceId, ffi};

use super::{
    NVIDIA, OCLGRIND, POCL,
    cl::{self, Context, Kernel, Program},
    entries, selftest,
};
use crate::{
    Error, Result,
    runtime::{ProgramSpec, kernel_in},
};

type Slot = Arc<Place>;
/// The programs of one `ProgramSpec`, by kernel; `None` stands for all kernels. Several kernels may have the same
/// program.
type Slots = Vec<(Option<&'static str>, Slot)>;

/// Maximum number of `ProgramSpec`s of a context, unless `OCLPRIM_CACHE_PROGRAMS` is set. A program takes 3 MB with
/// PoCL and 7 MB with Intel's driver for CPUs. A build takes 0.1 to 0.5 s, so a program in constant use should stay.
const KEPT: NonZeroUsize = NonZeroUsize::new(128).expect("not 0");

/// The programs of the most recently used `ProgramSpec`s of one context. Their number is bounded, since users may
/// create any number of operators.
pub(super) struct Programs {
    slots: Mutex<LruCache<ProgramSpec, Slots>>,
    /// True if a transient failure kept a binary from loading, and a build replaced it.
    disturbed: AtomicBool,
}

impl Default for Programs {
    fn default() -> Self {
        let set = env::var("OCLPRIM_CACHE_PROGRAMS").ok().and_then(|text| text.trim().parse().ok());
        Self { slots: Mutex::new(LruCache::new(set.unwrap_or(KEPT))), disturbed: AtomicBool::new(false) }
    }
}

/// The builds that run now: their number, and how many may run in parallel.
///
/// Some compilers cannot run in two threads, even for two contexts. NVIDIA's driver compiles two programs in parallel.
/// The builds of two drivers do not overlap.
struct Builds {
    running: Mutex<(usize, usize)>,
    ended: Condvar,
}

static BUILDS: Builds = Builds { running: Mutex::new((0, 0)), ended: Condvar::new() };

/// A program that is built once.
#[derive(Default)]
struct Place {
    built: OnceLock<Arc<Built>>,
    /// Held by the thread that builds, so that another one does not build the same program.
    building: Mutex<()>,
}

/// A guard that a thread holds while the driver compiles.
struct Building;

impl Building {
    /// Waits until fewer than `at_once` builds run, and no build of a driver with another limit runs.
    fn start(at_once: usize) -> Self {
        let running = BUILDS.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |(count, limit): &mut (usize, usize)| *count > 0 && (*limit != at_once || *count >= at_once);
        let mut running = BUILDS.ended.wait_while(running, is_full).unwrap_or_else(PoisonError::into_inner);
        *running = (running.0 + 1, at_once);
        Self
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        BUILDS.running.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
        BUILDS.ended.notify_all();
    }
}

/// Properties of a driver's compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// True if the driver compiles each kernel at its first launch and keeps the code itself.
    lazy: bool,
    /// True if a program has one kernel, or a few that one call launches. So a build compiles only kernels that are
    /// launched. The self-test launches most kernels of its programs, so these stay whole.
    by_kernel: bool,
    /// True if each further program takes long, so a call builds its kernels as one program.
    pub(super) together: bool,
    /// Maximum number of builds that run in parallel.
    pub(super) at_once: usize,
}

impl Compiler {
    /// The compiler of a platform.
    ///
    /// PoCL compiles a kernel for the work-group of its first launch. To return a binary, PoCL compiles every kernel
    /// again, for any work-group. With binaries the checks of reduce took 99 s of processor time, without them 30.
    /// Oclgrind interprets kernels, so its builds are mostly the parsing of the text.
    pub(super) fn of(platform: &str) -> Self {
        let lazy = platform == POCL;
        let by_kernel = !lazy && platform != OCLGRIND;
        let nvidia = platform == NVIDIA;
        Self { lazy, by_kernel, together: nvidia, at_once: if nvidia { 2 } else { 1 } }
    }

    /// The kernel that is a program of its own; `None` if the program has all kernels of `spec`.
    fn alone(self, spec: &ProgramSpec, kernel: &'static str) -> Option<&'static str> {
        (self.by_kernel && spec.name != selftest::FILE).then_some(kernel)
    }
}

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

/// A kernel, and the bytes of each argument that it holds. An argument without bytes must be set again.
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

    /// Returns a kernel that only the caller uses. The caller sets the arguments that differ, and may
    /// [return](Self::put) the kernel. `most` is the largest work-group that the device reports.
    pub(super) fn take(&self, device: DeviceId, most: u64, name: &'static str) -> Result<(Prepared, Limits)> {
        if let Some(Kept { limits, idle }) = self.kernels().get_mut(name)
            && let Some(prepared) = idle.pop()
        {
            return Ok((prepared, *limits));
        }
        let kernel = cl::create_kernel(&self.program, name)?;
        if let Some(kept) = self.kernels().get(name) {
            return Ok((Prepared { kernel, arguments: Vec::new() }, kept.limits));
        }
        // The size in `reqd_work_group_size` counts if it exceeds the reported maximum: NVIDIA's driver reports 256,
        // but runs larger kernels. The device's limit bounds this size, since PoCL builds kernels beyond that limit.
        let demanded = cl::kernel_numbers(&kernel, device, ffi::CL_KERNEL_COMPILE_WORK_GROUP_SIZE)?
            .into_iter()
            .fold(1, u64::saturating_mul);
        let allowed = demanded.min(most);
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
    /// The built program with `kernel`: from memory, else from disk, else from source.
    pub(super) fn get(&self, target: &Target<'_>, spec: &ProgramSpec, kernel: &'static str) -> Result<Arc<Built>> {
        let alone = target.compiler.alone(spec, kernel);
        let slot = self.slot(spec, alone);
        if let Some(built) = slot.built.get() {
            return Ok(built.clone());
        }
        let _first = slot.building.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have built the program in the meantime.
        if let Some(built) = slot.built.get() {
            return Ok(built.clone());
        }
        let _building = Building::start(target.compiler.at_once);
        let source = alone.map_or_else(|| spec.source(), |kernel| source_of(spec, &[kernel]));
        let program = self.load_or_build(target, spec, kernel, &source)?;
        Ok(slot.built.get_or_init(|| Arc::new(Built::new(program))).clone())
    }

    /// Loads or builds one program with all of `kernels` that are not in memory.
    pub(super) fn get_together(&self, target: &Target<'_>, spec: &ProgramSpec, kernels: &[&'static str]) -> Result<()> {
        let mut kernels = kernels.to_vec();
        // All threads lock in this order, and no slot twice.
        kernels.sort_unstable();
        kernels.dedup();
        let slots: Vec<_> = kernels.iter().map(|kernel| self.slot(spec, Some(*kernel))).collect();
        let _first: Vec<_> =
            slots.iter().map(|slot| slot.building.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let missing = |(_, slot): &(&'static str, &Slot)| slot.built.get().is_none();
        let (kernels, slots): (Vec<_>, Vec<_>) = kernels.into_iter().zip(&slots).filter(missing).unzip();
        let Some(kernel) = kernels.first() else { return Ok(()) };
        let _building = Building::start(target.compiler.at_once);
        let program = self.load_or_build(target, spec, kernel, &source_of(spec, &kernels))?;
        let built = Arc::new(Built::new(program));
        slots.iter().for_each(|slot| drop(slot.built.set(built.clone())));
        Ok(())
    }

    /// Those of `kernels` whose programs are not in memory.
    pub(super) fn missing(&self, spec: &ProgramSpec, kernels: &[&'static str]) -> Vec<&'static str> {
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = all.get(spec).map_or(&[][..], Vec::as_slice);
        let is_there = |kernel| slots.iter().any(|(of, slot)| *of == Some(kernel) && slot.built.get().is_some());
        kernels.iter().copied().filter(|kernel| !is_there(*kernel)).collect()
    }

    /// The slot of the program of `spec` with one kernel, or with all.
    fn slot(&self, spec: &ProgramSpec, kernel: Option<&'static str>) -> Slot {
        // The evicted programs, dropped after the lock. Launches and builds hold the programs that they use, and the
        // driver holds those of enqueued commands.
        let _gone;
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = all.get_mut(spec) {
            let known = slots.iter().find(|(of, _)| *of == kernel).map(|(_, slot)| slot.clone());
            return known.unwrap_or_else(|| {
                let slot = Slot::default();
                slots.push((kernel, slot.clone()));
                slot
            });
        }
        let slot = Slot::default();
        _gone = all.push(spec.clone(), vec![(kernel, slot.clone())]);
        slot
    }

    /// Returns true if a transient failure kept a binary from loading, and a build replaced it.
    pub(super) fn disturbed(&self) -> bool {
        self.disturbed.load(Ordering::Relaxed)
    }

    /// The number of built programs of `spec`.
    #[cfg(test)]
    pub(super) fn count(&self, spec: &ProgramSpec) -> usize {
        let all = self.slots.lock().unwrap();
        let built = all.peek(spec).into_iter().flatten().filter_map(|(_, slot)| slot.built.get());
        built.map(Arc::as_ptr).collect::<std::collections::HashSet<_>>().len()
    }

    fn load_or_build(&self, target: &Target<'_>, spec: &ProgramSpec, kernel: &str, source: &str) -> Result<Program> {
        let &Target { context, device, identity, compiler } = target;
        if compiler.lazy {
            return build(context, device, spec, source);
        }
        let options = &spec.options;
        let key = entries::key("program", &[source, options, identity, env!("CARGO_PKG_VERSION")]);
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
        let program = build(context, device, spec, source)?;
        if let Some(binary) = cl::binary(&program) {
            entries::store(&key, &binary);
        }
        Ok(program)
    }
}

/// The device for which programs are built.
pub(super) struct Target<'a> {
    pub(super) context: &'a Context,
    pub(super) device: DeviceId,
    /// Platform, device, driver version and settings, for which a binary is valid.
    pub(super) identity: &'a str,
    pub(super) compiler: Compiler,
}

/// Builds a program and one of its kernels, queries the kernel's limits, and drops both.
pub(super) fn try_build(target: &Target<'_>, spec: &ProgramSpec, kernel: &'static str) -> Result<()> {
    let &Target { context, device, compiler, .. } = target;
    let _building = Building::start(compiler.at_once);
    Built::new(build(context, device, spec, &spec.source())?).take(device, 0, kernel).map(drop)
}

fn build(context: &Context, device: DeviceId, spec: &ProgramSpec, source: &str) -> Result<Program> {
    let program = cl::program_from_source(context, source)?;
    cl::build(&program, device, &spec.options, spec.name)?;
    Ok(program)
}

/// The source of `spec`, with empty lines instead of the kernels other than `kernels`. Kernels that macros define are kept.
fn source_of(spec: &ProgramSpec, kernels: &[&str]) -> String {
    let whole = spec.source();
    let (prelude, text) = whole.split_at(spec.prelude.len());
    let (mut source, mut dropping) = (prelude.to_owned(), false);
    for line in text.lines() {
        dropping = dropping || kernel_in(line).is_some_and(|name| !kernels.contains(&name));
        if dropping {
            dropping = line != "}";
        } else {
            source.push_str(line);
        }
        source.push('\n');
    }
    source
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::runtime::Capabilities;

    const TEXT: &str = "\
#define KERNEL __kernel
static inline uint twice(uint x)
{
    return 2 * x;
}
KERNEL SG_KERNEL void first(__global uint* x)
{
    x[0] = twice(x[0]);
}
#ifdef SECOND
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void second(
    __global uint* x)
{
    x[1] = twice(x[1]);
}
#endif
";

    #[test]
    fn a_program_of_one_kernel_keeps_functions_directives_and_lines() {
        let (_, caps) = &Capabilities::samples()[0];
        // A user's text may contain what looks like a kernel.
        let prelude = "__kernel void third(void)\n{\n}\n";
        let spec = ProgramSpec::new("sample.cl", TEXT, caps).prelude(prelude.into());
        let whole = spec.source();
        for (kept, dropped) in [("first", "second"), ("second", "first")] {
            let source = source_of(&spec, &[kept]);
            assert_eq!(source.lines().count(), whole.lines().count());
            assert!(source.starts_with(prelude), "{source}");
            assert!(
                source.contains(&format!("void {kept}(")) && !source.contains(&format!("void {dropped}(")),
                "{source}"
            );
            for directive in ["#define KERNEL", "#ifdef SECOND", "#endif", "    return 2 * x;"] {
                assert!(source.contains(directive), "{source}");
            }
            assert_eq!(source.matches('{').count(), source.matches('}').count(), "{source}");
        }
    }

    #[test]
    fn a_program_of_one_kernel_of_the_crate_has_no_other_kernel() {
        let (_, caps) = &Capabilities::samples()[0];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cl");
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let text: &'static str = fs::read_to_string(&path).unwrap().leak();
            let name: &'static str = path.file_name().unwrap().to_str().unwrap().to_owned().leak();
            let spec = ProgramSpec::new(name, text, caps);
            let whole = spec.source();
            let kernels: Vec<_> = whole.lines().filter_map(kernel_in).collect();
            let starts = ["\n__kernel ", "\nKERNEL "].map(|start| whole.matches(start).count());
            assert_eq!(kernels.len(), starts.iter().sum::<usize>(), "{name}: {kernels:?}");
            for &kernel in &kernels {
                let source = source_of(&spec, &[kernel]);
                let left: Vec<_> = source.lines().filter_map(kernel_in).collect();
                assert!(left.iter().all(|&name| name == kernel) && !left.is_empty(), "{name}, {kernel}: {left:?}");
            }
        }
    }

    #[test]
    fn a_program_of_some_kernels_has_these_kernels() {
        let (_, caps) = &Capabilities::samples()[0];
        let spec = ProgramSpec::new("sample.cl", TEXT, caps);
        assert_eq!(source_of(&spec, &["second", "first"]), spec.source());
    }

    #[test]
    fn compilers_differ_by_platform() {
        let ways = [
            (POCL, true, false, false, 1),
            (OCLGRIND, false, false, false, 1),
            (NVIDIA, false, true, true, 2),
            ("rusticl", false, true, false, 1),
        ];
        for (platform, lazy, by_kernel, together, at_once) in ways {
            assert_eq!(Compiler::of(platform), Compiler { lazy, by_kernel, together, at_once }, "{platform}");
        }
    }

    /// As many threads build at once as the driver supports.
    #[test]
    fn builds_wait_for_each_other() {
        let (now, most) = (Mutex::new(0), Mutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _building = Building::start(2);
                    let running = {
                        let mut now = now.lock().unwrap();
                        *now += 1;
                        *now
                    };
                    let mut most = most.lock().unwrap();
                    *most = running.max(*most);
                    drop(most);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    *now.lock().unwrap() -= 1;
                });
            }
        });
        assert_eq!(*most.lock().unwrap(), 2);
    }
}
