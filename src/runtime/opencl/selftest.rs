//! Determines a device's capabilities by running `cl/selftest.cl` on it.
//!
//! The self-test trusts no version string or extension list. They only select the tests to try, because some compilers
//! crash on unknown features. The platform's name and the driver's version also select loops with explicit vectors,
//! which changes only speed. The capabilities are stored on disk by device and driver.

use ocl::ffi;

use super::{
    ClDevice, ClMem as Mem, MAX_BYTES, MAX_WORK_GROUP, OCLGRIND, POCL, cl, entries, intel_cpu, local_bytes, program,
};
use crate::{
    Error, ErrorKind, Result,
    runtime::{
        Capabilities, DeviceClass, DeviceInfo, DeviceType, ProgramSpec, RefusedSubGroup, SubGroup, SubGroupBackend,
    },
};

pub(super) const FILE: &str = "selftest.cl";
const TEXT: &str = kernel_text!("selftest.cl");
/// The self-test's own code, on which the results also depend.
const TESTS: &str = include_str!("selftest.rs");

/// Maximum local memory that is tried beyond the reported size: NVIDIA's driver allows more than it reports.
pub(super) const LOCAL_TRIED: usize = 164 << 10;
const KIB: usize = 1 << 10;

/// Maximum number of runs of a test that fails with a transient status.
const TRIES: usize = 3;

/// Work-items of a work-group in the tests.
const WORK_GROUP: usize = 256;

// The programs, identified by their options.
const BASE: &[&str] = &["-DSG_BACKEND=0"];
const ATOMIC64: &[&str] = &["-DSG_BACKEND=0", "-DTEST_ATOMIC64"];
const FP64: &[&str] = &["-DSG_BACKEND=0", "-DTEST_FP64"];
const FP16: &[&str] = &["-DSG_BACKEND=0", "-DTEST_FP16"];

fn spec(work_group: usize, standard: &str, options: &[&str]) -> ProgramSpec {
    ProgramSpec::bare(FILE, TEXT, standard).define("WG", work_group).with(options)
}

fn local_memory_spec(work_group: usize, bytes: usize) -> ProgramSpec {
    spec(work_group, "CL1.2", &["-DSG_BACKEND=0", &format!("-DLOCAL_BYTES={bytes}")])
}

fn sub_group_spec(work_group: usize, standard: &str, backend: SubGroupBackend, compute_capability: u64) -> ProgramSpec {
    let (code, sm) = (format!("-DSG_BACKEND={}", backend.code()), format!("-DPTX_SM={compute_capability}"));
    let mut options = vec!["-DTEST_SUBGROUPS", code.as_str()];
    if backend == SubGroupBackend::Ptx {
        options.extend(["-DINLINE_PTX=1", sm.as_str()]);
    }
    spec(work_group, standard, &options)
}

/// The tests in which work-groups communicate, with the fences of NVIDIA's platform.
fn ptx_meeting_spec(work_group: usize, compute_capability: u64) -> ProgramSpec {
    let sm = format!("-DPTX_SM={compute_capability}");
    spec(work_group, "CL1.2", &["-DSG_BACKEND=0", "-DINLINE_PTX=1", &sm])
}

/// The programs that the self-test builds on a device with these capabilities.
pub(super) fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
    let work_group = WORK_GROUP.min(caps.max_work_group);
    let capability = caps.compute_capability.into();
    let mut programs = vec![
        spec(work_group, "CL1.2", BASE),
        local_memory_spec(work_group, caps.local_bytes),
        sub_group_spec(work_group, &caps.c_standard, caps.sub_group.backend, capability),
    ];
    for (has, options) in [(caps.int64_atomics, ATOMIC64), (caps.fp64, FP64), (caps.fp16, FP16)] {
        if has {
            programs.push(spec(work_group, "CL1.2", options));
        }
    }
    if caps.ptx {
        programs.push(ptx_meeting_spec(work_group, capability));
    }
    programs
}

pub(super) fn run(device: &ClDevice) -> Result<Capabilities> {
    let reported = Reported::of(device)?;
    let key =
        entries::key("selftest", &[TEXT, TESTS, &reported.source(), &reported.identity, env!("CARGO_PKG_VERSION")]);
    if let Some(caps) = entries::load(&key).and_then(|json| serde_json::from_slice(&json).ok()) {
        return Ok(caps);
    }
    let mut test = SelfTest { device, reported, notes: Vec::new(), disturbed: false };
    let caps = test.run()?;
    if !test.disturbed
        && !device.shared.programs.disturbed()
        && let Ok(json) = serde_json::to_vec(&caps)
    {
        entries::store(&key, &json);
    }
    Ok(caps)
}

/// The driver's reports, which select the tests to try.
struct Reported {
    class: DeviceClass,
    work_group: usize,
    local_bytes: usize,
    cache_bytes: u64,
    extensions: String,
    platform: String,
    /// Standards that have sub-groups, best first.
    standards: Vec<&'static str>,
    compute_capability: u64,
    /// The largest number of sub-groups in a work-group; 0 if the driver does not know.
    sub_groups: u64,
    identity: String,
}

impl Reported {
    fn of(device: &ClDevice) -> Result<Self> {
        const INTEL_SUB_GROUP_SIZES: u32 = 0x4108;
        const NV_CAPABILITY_MAJOR: u32 = 0x4000;
        const NV_CAPABILITY_MINOR: u32 = 0x4001;
        const MAX_CAPABILITY: u64 = 1000;
        let (id, info) = (device.id(), device.info());
        let extensions = cl::device_text(id, ffi::CL_DEVICE_EXTENSIONS)?;
        let nvidia = extensions.contains("cl_nv_");
        let standards = if info.version.starts_with("OpenCL 3") {
            vec!["CL3.0", "CL2.0"]
        } else if info.version.starts_with("OpenCL 2") {
            vec!["CL2.0"]
        } else {
            vec!["CL1.2"]
        };
        let capability =
            |name| if nvidia { cl::device_number(id, name).map(|part| part.min(MAX_CAPABILITY)) } else { Ok(0) };
        let mut reported = Self {
            class: if info.ty == DeviceType::Cpu { DeviceClass::Cpu } else { DeviceClass::Gpu },
            work_group: cl::device_number(id, ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE)?.min(MAX_WORK_GROUP) as usize,
            local_bytes: local_bytes(id)?,
            cache_bytes: cl::device_number(id, ffi::CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)?.min(MAX_BYTES),
            compute_capability: 10 * capability(NV_CAPABILITY_MAJOR)? + capability(NV_CAPABILITY_MINOR)?,
            platform: info.platform.clone(),
            standards,
            sub_groups: cl::device_number(id, ffi::CL_DEVICE_MAX_NUM_SUB_GROUPS)?,
            extensions,
            identity: String::new(),
        };
        let sizes = cl::device_bytes(id, INTEL_SUB_GROUP_SIZES)?;
        let Self { work_group, local_bytes, sub_groups, extensions, .. } = &reported;
        // User settings change some of these numbers, and thereby the results.
        let numbers = format!("{work_group} {local_bytes} {sub_groups} {sizes:?} {} {extensions}", info.compute_units);
        reported.identity = format!("{}|{numbers}", device.identity());
        Ok(reported)
    }

    fn has(&self, extension: &str) -> bool {
        self.extensions.contains(extension)
    }

    fn nvidia(&self) -> bool {
        self.has("cl_nv_")
    }

    /// Oclgrind runs work-items one after another and reports races; it has no memory order to test.
    fn oclgrind(&self) -> bool {
        self.platform == OCLGRIND
    }

    fn source(&self) -> String {
        ProgramSpec::bare(FILE, TEXT, "CL1.2").source()
    }
}

/// Intel's compiler for CPUs vectorises across work-items; it vectorises few loops within a work-item. PoCL 5 optimises
/// loops without knowing the target's vectors, and unrolls no loop.
fn makes_no_vectors(info: &DeviceInfo) -> bool {
    intel_cpu(info) || (info.ty == DeviceType::Cpu && info.platform == POCL && info.driver.starts_with("5."))
}

struct SelfTest<'d> {
    device: &'d ClDevice,
    reported: Reported,
    notes: Vec<String>,
    /// True after a transient failure of a test. Then the results are not stored. A transient failure to load a program
    /// has the same effect.
    disturbed: bool,
}

/// The finaliser of MurmurHash3, as in `cl/selftest.cl`.
fn mix(h: u32) -> u32 {
    let h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    let h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

fn mix64(i: u32) -> u64 {
    u64::from(mix(i)) << 32 | u64::from(mix(!i))
}

impl SelfTest<'_> {
    fn run(&mut self) -> Result<Capabilities> {
        self.device.build_in_parallel(&self.programs());
        self.settled(Self::must_run)??;
        let fp64 = self.reported.has("cl_khr_fp64") && self.passed("fp64", Self::arithmetic_f64)?;
        // NVIDIA's compiler supports halves without reporting it.
        let fp16 = (self.reported.has("cl_khr_fp16") || self.reported.nvidia())
            && self.passed("fp16", Self::arithmetic_f16)?;
        let int64 =
            self.reported.has("cl_khr_int64_base_atomics") && self.reported.has("cl_khr_int64_extended_atomics");
        let int64_atomics = int64 && self.passed("64-bit atomics", Self::atomics64)?;
        let denormals = self.passed("subnormal floats", Self::denormals)?;
        let (sub_groups, refused, c_standard) = self.sub_groups()?;
        let hardware = sub_groups.iter().find(|group| group.backend.is_hardware());
        let fallback =
            if self.reported.class == DeviceClass::Cpu { SubGroupBackend::None } else { SubGroupBackend::Local };
        // CPU drivers emulate sub-groups, so kernels for them use none.
        let chosen = hardware.filter(|_| self.reported.class == DeviceClass::Gpu);
        let chosen = chosen.or(sub_groups.iter().find(|group| group.backend == fallback)).copied();
        let sub_group = chosen.unwrap_or(SubGroup::NONE);
        let ptx = sub_groups.iter().any(|group| group.backend == SubGroupBackend::Ptx);
        let local_bytes = self.local_bytes()?;
        let forward_progress = self.passed("progress between work-groups", Self::ticket_chain)?;
        let device_fence = if self.reported.oclgrind() {
            self.notes.push("device fence: not tested under Oclgrind, which reports the test as a race".into());
            false
        } else {
            self.passed("device fence", |test| test.fence_chain(ptx))?
        };
        let info = self.device.info();
        Ok(Capabilities {
            class: self.reported.class,
            compute_units: info.compute_units,
            max_work_group: self.reported.work_group,
            local_bytes,
            global_bytes: info.global_bytes,
            max_allocation_bytes: info.max_allocation_bytes,
            cache_bytes: self.reported.cache_bytes,
            sub_group,
            sub_groups,
            refused,
            c_standard: c_standard.into(),
            fp64,
            fp16,
            int64_atomics,
            denormals,
            forward_progress,
            device_fence,
            ptx,
            compute_capability: if ptx { self.reported.compute_capability as u32 } else { 0 },
            checker: self.reported.oclgrind(),
            explicit_vectors: makes_no_vectors(info),
            notes: std::mem::take(&mut self.notes),
        })
    }

    /// The programs that the tests probably build, each with one of its kernels.
    fn programs(&self) -> Vec<(ProgramSpec, &'static str)> {
        let mut programs = vec![(self.base(), "long_loop"), (self.meeting(), "ticket_chain")];
        let wide = [("cl_khr_fp64", FP64, "arithmetic_f64"), ("cl_khr_int64_base_atomics", ATOMIC64, "atomics64")];
        let wide = wide.into_iter().filter(|(extension, ..)| self.reported.has(extension));
        programs.extend(wide.map(|(_, options, kernel)| (self.spec(options), kernel)));
        if self.reported.nvidia() {
            programs.push((self.spec(FP16), "arithmetic_f16"));
            programs.push((local_memory_spec(self.work_group(), LOCAL_TRIED), "local_memory"));
        }
        for backend in [SubGroupBackend::Ptx, SubGroupBackend::Khr, SubGroupBackend::Local] {
            programs.extend(
                self.tried(backend).first().map(|standard| (self.sub_group_spec(backend, standard), "sg_width")),
            );
        }
        programs
    }

    /// The standards of OpenCL C with which a back end is tried, best first.
    fn tried(&self, backend: SubGroupBackend) -> &[&'static str] {
        match backend {
            SubGroupBackend::Ptx if self.reported.nvidia() => &["CL1.2"],
            SubGroupBackend::Khr if self.reported.has("cl_khr_subgroup") || self.reported.sub_groups > 0 => {
                &self.reported.standards
            }
            SubGroupBackend::Intel if self.reported.has("cl_intel_subgroups") => &self.reported.standards,
            SubGroupBackend::Amd if self.reported.has("cl_amd_") => &self.reported.standards,
            SubGroupBackend::Local | SubGroupBackend::None => &["CL1.2"],
            _ => &[],
        }
    }

    fn sub_group_spec(&self, backend: SubGroupBackend, standard: &str) -> ProgramSpec {
        sub_group_spec(self.work_group(), standard, backend, self.reported.compute_capability)
    }

    /// Returns whether a test passed; if not, a note has the reason.
    fn passed(&mut self, what: &str, test: impl Fn(&Self) -> Result<()>) -> Result<bool> {
        let result = self.settled(test)?;
        Ok(result.map_err(|error| self.notes.push(format!("{what}: {error}"))).is_ok())
    }

    /// Runs a test until it passes, gives a wrong answer, or fails for a lasting reason.
    ///
    /// After a transient failure, such as a shortage of memory, a plain kernel must build and run, and the test runs
    /// again. If the same failure occurs [`TRIES`] times, the test counts as failed in this process. If the plain
    /// kernel fails, or the failures differ, the self-test returns an error, and the next call runs it again.
    fn settled<T>(&mut self, test: impl Fn(&Self) -> Result<T>) -> Result<Result<T>> {
        let mut first: Option<Error> = None;
        for _ in 0..TRIES {
            match test(self) {
                Err(error) if cl::transient(&error) => {
                    self.disturbed = true;
                    self.plain_kernel()?;
                    if first.as_ref().is_some_and(|first| first.to_string() != error.to_string()) {
                        return Err(error);
                    }
                    first = Some(error);
                }
                result => return Ok(result),
            }
        }
        Ok(Err(first.expect("a failure, as nothing was returned")))
    }

    /// Builds and runs a plain kernel. If this kernel fails, an earlier failure says nothing about the device.
    fn plain_kernel(&self) -> Result<()> {
        program::try_build(&self.device.target(), &self.base(), "long_loop")?;
        self.long_loop(1)
    }

    fn work_group(&self) -> usize {
        WORK_GROUP.min(self.reported.work_group.max(1))
    }

    fn spec(&self, options: &[&str]) -> ProgramSpec {
        spec(self.work_group(), "CL1.2", options)
    }

    /// The tests that need only OpenCL 1.2.
    fn base(&self) -> ProgramSpec {
        self.spec(BASE)
    }

    fn buffer<T: bytemuck::Pod>(&self, data: &[T]) -> Result<Mem> {
        let mem = self.device.allocate(size_of_val(data))?;
        if self.reported.oclgrind() {
            self.device.keep(&mem);
        }
        self.device.write(&mem, 0, bytemuck::cast_slice(data))?;
        Ok(mem)
    }

    fn words<T: bytemuck::Pod>(&self, mem: &Mem, len: usize) -> Result<Vec<T>> {
        let mut out = bytemuck::zeroed_vec(len);
        self.device.read(mem, 0, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out)
    }

    fn one_dimension(&self, groups: usize) -> ([usize; 3], [usize; 3]) {
        ([groups, 1, 1], [self.work_group(), 1, 1])
    }

    /// The minimum for every device: 32-bit atomics, and loops that run all their rounds.
    fn must_run(&self) -> Result<()> {
        self.long_loop(70_000)?;
        self.atomics("atomics32", &self.base(), u32::MAX, mix)
    }

    fn long_loop(&self, rounds: u32) -> Result<()> {
        let (input, out) = (self.buffer(&[1u32])?, self.buffer(&[0u32])?);
        let launch = self.device.launch(&self.base(), "long_loop")?.mem(&input).mem(&out).scalar(rounds);
        launch.run([1; 3], [1; 3])?;
        let want = (0..rounds).fold(1u32, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        expect(self.words::<u32>(&out, 1)?[0] == want, format!("a loop of {rounds} rounds ends early"))
    }

    fn atomics64(&self) -> Result<()> {
        let spec = self.spec(ATOMIC64);
        self.atomics("atomics64", &spec, u64::MAX, mix64)
    }

    fn atomics<T>(&self, name: &'static str, spec: &ProgramSpec, ones: T, value: impl Fn(u32) -> T) -> Result<()>
    where
        T: crate::Integer,
    {
        let groups = if self.reported.oclgrind() { 2 } else { 64 };
        let items = self.work_group();
        let start = [T::ZERO, T::ZERO, T::ZERO, ones, T::ZERO, ones, T::ZERO, T::ZERO];
        let update = |mut w: [T; 8], v: T| {
            w[0] = w[0].add(T::ONE);
            w[1] = w[1].add(v);
            w[2] = Ord::max(w[2], v);
            w[3] = Ord::min(w[3], v);
            w[4] = w[4].or(v);
            w[5] = w[5].and(v);
            w[6] = w[6].xor(v);
            w[7] = w[7].add(T::ONE);
            w
        };
        let fold = |range: std::ops::Range<usize>| range.map(|i| value(i as u32 + 1)).fold(start, update);
        let mut want = fold(0..groups * items).to_vec();
        want.extend((0..groups).flat_map(|group| fold(group * items..(group + 1) * items)));
        let out = self.buffer(&start.repeat(groups + 1))?;
        let (global, local) = self.one_dimension(groups);
        self.device.launch(spec, name)?.mem(&out).run(global, local)?;
        expect(self.words::<T>(&out, want.len())? == want, "atomic updates are lost")
    }

    fn arithmetic<T: crate::Float>(&self, name: &'static str, spec: &ProgramSpec, rows: &[[T; 3]]) -> Result<()> {
        let (input, out) = (self.buffer(rows.as_flattened())?, self.buffer(rows.as_flattened())?);
        self.device.launch(spec, name)?.mem(&input).mem(&out).run([rows.len(), 1, 1], [1; 3])?;
        let got = self.words::<T>(&out, 3 * rows.len())?;
        for (&[a, b, c], got) in rows.iter().zip(got.chunks(3)) {
            let want = [a.add(b), a.mul(b), a.mul(b).add(c)];
            if let Some(i) = (0..3).find(|&i| !want[i].same(got[i])) {
                let (got, want) = (got[i], want[i]);
                return wrong(format!(
                    "{} of {a:e} {b:e} {c:e} is {got:e} instead of {want:e}",
                    ["a + b", "a * b", "a * b + c"][i],
                    a = a.to_f64(),
                    b = b.to_f64(),
                    c = c.to_f64(),
                    got = got.to_f64(),
                    want = want.to_f64()
                ));
            }
        }
        Ok(())
    }

    fn denormals(&self) -> Result<()> {
        let contraction = [1.0 + f32::EPSILON * 2048.0, 1.0 + f32::EPSILON * 2048.0, -(1.0 + f32::EPSILON * 4096.0)];
        let rows = [[1e-40f32, 3e-41, 1e-45], [1e-30, 1e-12, -1e-42], [2e-38, -1.9e-38, 0.0], contraction];
        self.arithmetic("arithmetic_f32", &self.base(), &rows)
    }

    fn arithmetic_f64(&self) -> Result<()> {
        let rows = [[1.0 / 3.0, 1e-17, 7.0], [1e300, 1e10, f64::MIN], [1e-310, 3e-311, 1e-320], [0.1, 0.2, -0.02]];
        self.arithmetic("arithmetic_f64", &self.spec(FP64), &rows)
    }

    fn arithmetic_f16(&self) -> Result<()> {
        let half = half::f16::from_f32;
        let rows = [[half(1.5), half(0.333), half(-2.0)], [half(60000.0), half(10.0), half(1.0)]];
        self.arithmetic("arithmetic_f16", &self.spec(FP16), &rows)
    }

    /// Returns the first of the listed sizes of local memory, largest first, with which a kernel keeps its data.
    fn local_bytes(&mut self) -> Result<usize> {
        let reported = self.reported.local_bytes;
        let mut sizes: Vec<usize> = Vec::new();
        if self.reported.nvidia() {
            sizes.extend([LOCAL_TRIED, 160 * KIB, 128 * KIB, 96 * KIB, 64 * KIB]);
        }
        // Beyond some size more memory has no benefit, and CPU drivers take it from a thread's stack.
        sizes.extend([reported.min(256 * KIB), 32 * KIB, 16 * KIB, 8 * KIB]);
        sizes.retain(|&size| size <= reported || self.reported.nvidia());
        for size in sizes {
            let disturbed = self.disturbed;
            match self.settled(|test| test.local_memory(size))? {
                Ok(()) => return Ok(size),
                Err(error) => self.notes.push(format!("{} KiB of local memory: {error}", size / KIB)),
            }
            if size > reported {
                // A failure beyond the reported size is expected, so it does not prevent storing the results.
                self.disturbed = disturbed;
            }
        }
        self.notes.push(format!("local memory: {reported} bytes reported, none of them usable"));
        Ok(0)
    }

    fn local_memory(&self, bytes: usize) -> Result<()> {
        let groups = 4;
        let out = self.buffer(&[0u32; 2])?;
        let (global, local) = self.one_dimension(groups);
        let spec = local_memory_spec(self.work_group(), bytes);
        self.device.launch(&spec, "local_memory")?.mem(&out).scalar(7u32).run(global, local)?;
        let words = self.words::<u32>(&out, 2)?;
        expect(words == [0, (groups * bytes / 4) as u32], "local memory loses data")
    }

    /// Returns the back ends that pass, those that build but fail, and a `-cl-std`: the first one above CL1.2 that
    /// passes, else CL1.2.
    fn sub_groups(&mut self) -> Result<(Vec<SubGroup>, Vec<RefusedSubGroup>, &'static str)> {
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        let mut standard = "CL1.2";
        for backend in SubGroupBackend::ALL {
            let (mut reasons, mut built) = (Vec::new(), false);
            for tried in self.tried(backend).to_vec() {
                match self.settled(|test| test.sub_group(backend, tried))? {
                    Ok(group) => {
                        if standard == "CL1.2" {
                            standard = tried;
                        }
                        found.push(group);
                        reasons.clear();
                        break;
                    }
                    Err(error) => {
                        built |= error.kind() != ErrorKind::Build;
                        reasons.push(format!("with {tried}: {error}"));
                    }
                }
            }
            if built && !reasons.is_empty() {
                refused.push(RefusedSubGroup { backend, reason: reasons.join("; ") });
            } else {
                self.notes.extend(reasons.into_iter().map(|reason| format!("sub-groups {} {reason}", backend.name())));
            }
        }
        Ok((found, refused, standard))
    }

    fn sub_group(&self, backend: SubGroupBackend, standard: &str) -> Result<SubGroup> {
        let spec = self.sub_group_spec(backend, standard);
        let width = self.sub_group_width(&spec)?;
        self.shuffles(&spec, width)?;
        self.sub_group_barriers(&spec, width)?;
        let ballot = width <= 64
            && match self.ballots(&spec, width) {
                Err(error) if cl::transient(&error) => return Err(error),
                result => result.is_ok(),
            };
        Ok(SubGroup { backend, width: width as u32, ballot })
    }

    fn sub_group_width(&self, spec: &ProgramSpec) -> Result<usize> {
        let (groups, items) = (2, self.work_group());
        let out = self.buffer(&vec![0u32; 4 * groups * items])?;
        let (global, local) = self.one_dimension(groups);
        self.device.launch(spec, "sg_width")?.mem(&out).run(global, local)?;
        let words = self.words::<u32>(&out, 4 * groups * items)?;
        let width = words[0] as usize;
        expect(width.is_power_of_two() && width <= items, format!("a sub-group of {width} in {items} work-items"))?;
        let ordered = words.chunks(4).enumerate().all(|(g, item)| {
            let i = g % items;
            item == [width, i % width, i / width, items / width].map(|x| x as u32)
        });
        expect(ordered, "lanes are not in the order of local ids")?;
        Ok(width)
    }

    fn shuffles(&self, spec: &ProgramSpec, width: usize) -> Result<()> {
        let items = self.work_group();
        let (narrow, wide) = (self.buffer(&vec![0u32; 4 * items])?, self.buffer(&vec![0u64; 4 * items])?);
        let (global, local) = self.one_dimension(1);
        for k in [0, 1, 3, width / 2, width - 1].into_iter().filter(|&k| k < width) {
            let launch = self.device.launch(spec, "sg_shuffles")?.mem(&narrow).mem(&wide).scalar(k as u32);
            launch.run(global, local)?;
            let (got, got_wide) = (self.words::<u32>(&narrow, 4 * items)?, self.words::<u64>(&wide, 4 * items)?);
            for i in 0..items {
                let (lane, base) = (i % width, i - i % width);
                let from = [
                    Some(base + (lane + k) % width),
                    Some(base + (lane ^ k)).filter(|_| lane ^ k < width),
                    Some(if lane < k { i } else { i - k }),
                    Some(if lane + k >= width { i } else { i + k }),
                ];
                for (kind, j) in from.into_iter().enumerate() {
                    let Some(j) = j else { continue };
                    let value = mix(j as u32);
                    let right =
                        got[4 * i + kind] == value && got_wide[4 * i + kind] == (u64::from(value) << 32 | j as u64);
                    expect(
                        right,
                        format!("shuffle {} by {k} is wrong in lane {lane}", ["to", "xor", "up", "down"][kind]),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn sub_group_barriers(&self, spec: &ProgramSpec, width: usize) -> Result<()> {
        let items = self.work_group();
        let out = self.buffer(&vec![0u32; items])?;
        let (global, local) = self.one_dimension(1);
        self.device.launch(spec, "sg_barriers")?.mem(&out).run(global, local)?;
        let right = self
            .words::<u32>(&out, items)?
            .iter()
            .enumerate()
            .all(|(i, &word)| word == mix((i - i % width + (i % width + 1) % width) as u32));
        expect(right, "a sub-group barrier does not order local memory")
    }

    fn ballots(&self, spec: &ProgramSpec, width: usize) -> Result<()> {
        let items = self.work_group();
        let all = u64::MAX >> (64 - width);
        let (global, local) = self.one_dimension(1);
        let out = self.buffer(&vec![0u64; 4 * items])?;
        for mask in [0, all, 0x5555_5555_5555_5555, 0xf0f0_f0f0_f0f0_f0f0, 1 << 63, 1, 0xdead_beef_0123_4567] {
            self.device.launch(spec, "sg_votes")?.mem(&out).scalar(mask).run(global, local)?;
            for (i, got) in self.words::<u64>(&out, 4 * items)?.chunks(4).enumerate() {
                let vote = mask.rotate_left((i / width) as u32) & all;
                let below = vote & ((1 << (i % width)) - 1);
                let want = [vote, u64::from(vote != 0), u64::from(vote == all), u64::from(below.count_ones())];
                expect(got == want, format!("ballot of {mask:#x} gives {:#x}", got[0]))?;
            }
        }
        let bits = 3;
        let values: Vec<u32> = (0..items as u32).map(mix).collect();
        let input = self.buffer(&values)?;
        self.device.launch(spec, "sg_matches")?.mem(&input).mem(&out).scalar(bits).run(global, local)?;
        let low = |i: usize| values[i] & ((1 << bits) - 1);
        for (i, &got) in self.words::<u64>(&out, items)?.iter().enumerate() {
            let base = i - i % width;
            let want = (0..width).filter(|&l| low(base + l) == low(i)).fold(0u64, |mask, l| mask | 1 << l);
            expect(got == want, format!("match gives {got:#x} instead of {want:#x}"))?;
        }
        Ok(())
    }

    /// Number of work-groups in the tests where they wait for one another: 16 for each compute unit, from 64 to 2,048;
    /// 16 under Oclgrind.
    fn waiting_groups(&self) -> usize {
        let units = self.device.info().compute_units as usize;
        if self.reported.oclgrind() { 16 } else { (16 * units).clamp(64, 2048) }
    }

    fn spins(&self) -> u32 {
        if self.reported.class == DeviceClass::Cpu { 1 << 27 } else { 1 << 22 }
    }

    fn ticket_chain(&self) -> Result<()> {
        let groups = self.waiting_groups();
        let (global, local) = self.one_dimension(groups);
        for _ in 0..2 {
            let (ticket, status, out) =
                (self.buffer(&[0u32])?, self.buffer(&vec![0u32; groups])?, self.buffer(&[0u32; 2])?);
            let launch = self.device.launch(&self.meeting(), "ticket_chain")?;
            launch.mem(&ticket).mem(&status).mem(&out).scalar(self.spins()).run(global, local)?;
            let late = self.words::<u32>(&out, 2)?[0];
            expect(late == 0, format!("{late} of {groups} work-groups waited in vain"))?;
            let status = self.words::<u32>(&status, groups)?;
            let right = status.iter().enumerate().all(|(t, &word)| word == 0x8000_0000 | (t as u32 + 1));
            expect(right, "a published word arrived changed")?;
        }
        Ok(())
    }

    /// The tests in which work-groups communicate, with the fences of the platform.
    fn meeting(&self) -> ProgramSpec {
        if self.reported.nvidia() {
            ptx_meeting_spec(self.work_group(), self.reported.compute_capability)
        } else {
            self.base()
        }
    }

    fn fence_chain(&self, ptx: bool) -> Result<()> {
        expect(ptx || !self.reported.nvidia(), "needs inline PTX")?;
        let (groups, items) = (self.waiting_groups(), self.work_group());
        let (global, local) = self.one_dimension(groups);
        let (data, flag) = (self.buffer(&vec![0u32; groups * items])?, self.buffer(&vec![0u32; groups])?);
        for epoch in 1..=3u32 {
            let (ticket, out) = (self.buffer(&[0u32])?, self.buffer(&[0u32; 4])?);
            let launch = self.device.launch(&self.meeting(), "fence_chain")?;
            let launch = launch.mem(&ticket).mem(&data).mem(&flag).mem(&out);
            launch.scalar(epoch).scalar(self.spins()).run(global, local)?;
            let words = self.words::<u32>(&out, 3)?;
            expect(words[1] == 0, format!("{} of {groups} work-groups waited in vain", words[1]))?;
            let whole = words[2] as usize == items * (groups - 1);
            expect(words[0] == 0 && whole, format!("{} of {} words were not seen after a fence", words[0], words[2]))?;
        }
        Ok(())
    }
}

fn wrong(message: impl Into<String>) -> Result<()> {
    Err(Error::new(ErrorKind::Driver, message))
}

fn expect(right: bool, message: impl Into<String>) -> Result<()> {
    if right { Ok(()) } else { wrong(message) }
}
