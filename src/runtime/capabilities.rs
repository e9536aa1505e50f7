//! Capabilities of a device, found by running kernels on it.

use serde::{Deserialize, Serialize};

use crate::{ElementType, Error, Result};

/// The class of a device, which determines the geometry of kernels.
///
/// ```
/// for (name, caps) in oclprim::Capabilities::samples() {
///     println!("{name} has the geometry of a {}", caps.class.name());
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DeviceClass {
    /// Few compute units, on which each work-item should process a long contiguous range.
    Cpu,
    /// Many compute units, for wide work-groups whose neighbouring work-items access neighbouring memory.
    Gpu,
}

impl DeviceClass {
    /// The class's name, such as `gpu`.
    ///
    /// ```
    /// assert_eq!(oclprim::DeviceClass::Gpu.name(), "gpu");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

/// The way in which work-items of a sub-group exchange values: a back end of `cl/lib/subgroup.cl`.
///
/// ```
/// use oclprim::SubGroupBackend;
///
/// let hardware = SubGroupBackend::ALL.iter().filter(|backend| backend.is_hardware());
/// assert_eq!(hardware.map(|backend| backend.name()).collect::<Vec<_>>(), ["ptx", "khr", "intel", "amd"]);
/// assert_eq!(SubGroupBackend::None.code(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SubGroupBackend {
    /// No exchange: a sub-group is one work-item.
    None,
    /// `cl_khr_subgroup_*` functions.
    Khr,
    /// `intel_sub_group_*` functions.
    Intel,
    /// AMD's compiler builtins.
    Amd,
    /// Inline PTX instructions of NVIDIA.
    Ptx,
    /// Local memory and work-group barriers.
    Local,
}

impl SubGroupBackend {
    /// All back ends in the order in which a device's self-test tries them: hardware first.
    ///
    /// ```
    /// use oclprim::SubGroupBackend;
    ///
    /// assert_eq!(SubGroupBackend::ALL.last(), Some(&SubGroupBackend::None));
    /// ```
    pub const ALL: [Self; 6] = [Self::Ptx, Self::Khr, Self::Intel, Self::Amd, Self::Local, Self::None];

    /// The value of `SG_BACKEND` in OpenCL C.
    ///
    /// ```
    /// assert_eq!(oclprim::SubGroupBackend::Khr.code(), 1);
    /// ```
    pub const fn code(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Khr => 1,
            Self::Intel => 2,
            Self::Amd => 3,
            Self::Ptx => 4,
            Self::Local => 5,
        }
    }

    /// The back end's name, such as `khr`.
    ///
    /// ```
    /// assert_eq!(oclprim::SubGroupBackend::Local.name(), "local");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Khr => "khr",
            Self::Intel => "intel",
            Self::Amd => "amd",
            Self::Ptx => "ptx",
            Self::Local => "local",
        }
    }

    /// Returns whether lanes exchange values without a work-group barrier.
    ///
    /// ```
    /// use oclprim::SubGroupBackend;
    ///
    /// assert!(SubGroupBackend::Khr.is_hardware() && !SubGroupBackend::Local.is_hardware());
    /// ```
    pub const fn is_hardware(self) -> bool {
        matches!(self, Self::Khr | Self::Intel | Self::Amd | Self::Ptx)
    }
}

/// A sub-group back end that passed the self-test: its lanes are in the order of local ids, and its shuffles are correct.
///
/// ```
/// use oclprim::{Device, SubGroup};
///
/// for group in Device::best()?.capabilities()?.iter().flat_map(|caps| &caps.sub_groups) {
///     println!("{}: {} lanes", group.backend.name(), group.width);
/// }
/// assert_eq!(SubGroup::NONE.width, 1);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubGroup {
    /// The way in which lanes exchange values.
    pub backend: SubGroupBackend,
    /// Lanes of a sub-group in a work-group of 256.
    pub width: u32,
    /// True if ballots gave the correct masks.
    pub ballot: bool,
}

impl SubGroup {
    /// Sub-groups of one work-item.
    ///
    /// ```
    /// use oclprim::{SubGroup, SubGroupBackend};
    ///
    /// assert_eq!((SubGroup::NONE.backend, SubGroup::NONE.width), (SubGroupBackend::None, 1));
    /// ```
    pub const NONE: Self = Self { backend: SubGroupBackend::None, width: 1, ballot: true };
}

/// A sub-group back end that the driver built, but that failed the self-test.
///
/// ```
/// use oclprim::Device;
///
/// for refused in Device::best()?.capabilities()?.iter().flat_map(|caps| &caps.refused) {
///     println!("{}: {}", refused.backend.name(), refused.reason);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedSubGroup {
    /// The way in which lanes would exchange values.
    pub backend: SubGroupBackend,
    /// The failure, for each version of OpenCL C that was tried.
    pub reason: String,
}

/// Capabilities of a device. Kernels that ran on the device decide each of them, except `class`, `checker`, `explicit_vectors`
/// and the numbers that the driver reports.
///
/// ```
/// use oclprim::Device;
///
/// for info in Device::list().iter().filter(|info| info.opencl) {
///     let device = Device::open(&info.to_string())?;
///     if let Some(caps) = device.capabilities()? {
///         println!("{info}: sub-groups of {}, fp64: {}", caps.sub_group.width, caps.fp64);
///     }
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The geometry that suits the device.
    pub class: DeviceClass,
    /// Compute units, as the driver reports them.
    pub compute_units: u32,
    /// Work-items in the largest work-group, as the driver reports them.
    pub max_work_group: usize,
    /// The largest tried size of `__local` arrays, in bytes, with which a test kernel built, ran and read back what it
    /// wrote.
    pub local_bytes: usize,
    /// Bytes of global memory, as the driver reports them.
    pub global_bytes: u64,
    /// Bytes of the largest single allocation, as the driver reports them.
    pub max_allocation_bytes: u64,
    /// Bytes of the last-level cache, as the driver reports them; 0 if unknown.
    pub cache_bytes: u64,
    /// The back end that kernels use by default.
    pub sub_group: SubGroup,
    /// Every back end that passed, including the default.
    pub sub_groups: Vec<SubGroup>,
    /// Every back end that built but failed; `notes` has those that did not build.
    pub refused: Vec<RefusedSubGroup>,
    /// The `-cl-std` option of kernels, such as `CL1.2`.
    pub c_standard: String,
    /// Double precision.
    pub fp64: bool,
    /// Half precision arithmetic (loads and stores of halves work everywhere).
    pub fp16: bool,
    /// 64-bit atomics on global memory.
    pub int64_atomics: bool,
    /// Subnormal floats are kept, not flushed to zero.
    pub denormals: bool,
    /// A work-group that has taken a tile number keeps running while later work-groups wait for it.
    pub forward_progress: bool,
    /// A work-group writes data, then a device fence, then a flag. Another work-group that reads the flag also sees the
    /// data.
    pub device_fence: bool,
    /// NVIDIA's compiler accepts inline PTX.
    pub ptx: bool,
    /// NVIDIA's compute capability times ten if `ptx` is true, else 0.
    pub compute_capability: u32,
    /// The device is a checker that interprets kernels and tracks the state of each byte, such as Oclgrind. A checker
    /// loses that state if memory is reused, or if the host or the driver writes a part of a buffer. The crate does
    /// neither on a checker.
    pub checker: bool,
    /// The compiler vectorises few loops by itself. Intel's CPU driver and PoCL 5 have such compilers.
    pub explicit_vectors: bool,
    /// Other self-tests that failed or could not run, each with its reason.
    pub notes: Vec<String>,
}

impl Capabilities {
    /// Returns whether the device supports decoupled look-back. Scans, sorts and selections use it in the geometry of a GPU.
    pub fn looks_back(&self) -> bool {
        self.lacks_for_look_back().next().is_none()
    }

    /// The capabilities that decoupled look-back needs and the device lacks.
    ///
    /// ```
    /// let (_, small) = &oclprim::Capabilities::samples()[0];
    /// assert!(!small.looks_back() && small.lacks_for_look_back().any(|it| it == "forward progress"));
    /// ```
    pub fn lacks_for_look_back(&self) -> impl Iterator<Item = &'static str> {
        let needed = [
            (self.forward_progress, "forward progress"),
            (self.device_fence, "device fence"),
            (self.int64_atomics, "64-bit atomics"),
        ];
        needed.into_iter().filter(|(has, _)| !has).map(|(_, name)| name)
    }

    /// Returns whether kernels should use explicit vectors of the element.
    pub(crate) fn vectors_of(&self, element: ElementType) -> bool {
        self.explicit_vectors && element.has_vectors()
    }

    /// Returns an error for an element type that the device cannot compute with.
    pub fn supports(&self, element: ElementType) -> Result<()> {
        if element.needs_fp64() && !self.fp64 {
            return Err(Error::unsupported(format!("the device has no fp64, which {element} needs")));
        }
        Ok(())
    }

    /// Capabilities of typical devices, to test plans and to compile kernels without hardware.
    ///
    /// ```
    /// let samples = oclprim::Capabilities::samples();
    /// assert!(samples.iter().any(|(name, caps)| *name == "amd" && caps.sub_group.width == 64));
    /// ```
    pub fn samples() -> Vec<(&'static str, Self)> {
        let base = Self {
            class: DeviceClass::Gpu,
            compute_units: 16,
            max_work_group: 256,
            local_bytes: 32 << 10,
            global_bytes: 4 << 30,
            max_allocation_bytes: 1 << 30,
            cache_bytes: 1 << 20,
            sub_group: SubGroup { backend: SubGroupBackend::Local, width: 32, ..SubGroup::NONE },
            sub_groups: Vec::new(),
            refused: Vec::new(),
            c_standard: "CL1.2".into(),
            fp64: false,
            fp16: false,
            int64_atomics: false,
            denormals: true,
            forward_progress: false,
            device_fence: false,
            ptx: false,
            compute_capability: 0,
            checker: false,
            explicit_vectors: false,
            notes: Vec::new(),
        };
        let with = |backend, width| SubGroup { backend, width, ..SubGroup::NONE };
        let cpu = Self {
            class: DeviceClass::Cpu,
            max_work_group: 4096,
            sub_group: SubGroup::NONE,
            fp64: true,
            int64_atomics: true,
            ..base.clone()
        };
        let mut samples = vec![
            ("small", Self { denormals: false, ..base.clone() }),
            ("cpu", cpu.clone()),
            ("cpu-vectors", Self { explicit_vectors: true, ..cpu }),
            (
                "intel",
                Self {
                    compute_units: 512,
                    max_work_group: 1024,
                    local_bytes: 64 << 10,
                    sub_group: with(SubGroupBackend::Khr, 16),
                    c_standard: "CL3.0".into(),
                    fp16: true,
                    int64_atomics: true,
                    ..base.clone()
                },
            ),
            (
                "intel-legacy",
                Self {
                    compute_units: 24,
                    local_bytes: 64 << 10,
                    sub_group: with(SubGroupBackend::Intel, 16),
                    fp64: true,
                    int64_atomics: true,
                    ..base.clone()
                },
            ),
            (
                "amd",
                Self {
                    compute_units: 104,
                    max_work_group: 1024,
                    local_bytes: 64 << 10,
                    sub_group: with(SubGroupBackend::Amd, 64),
                    c_standard: "CL2.0".into(),
                    fp64: true,
                    int64_atomics: true,
                    ..base.clone()
                },
            ),
            (
                "nvidia",
                Self {
                    compute_units: 132,
                    max_work_group: 1024,
                    local_bytes: 160 << 10,
                    sub_group: with(SubGroupBackend::Ptx, 32),
                    fp64: true,
                    int64_atomics: true,
                    forward_progress: true,
                    device_fence: true,
                    ptx: true,
                    compute_capability: 90,
                    ..base
                },
            ),
        ];
        samples.iter_mut().for_each(|(_, caps)| caps.sub_groups = vec![caps.sub_group]);
        samples
    }
}
