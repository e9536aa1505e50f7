//! Facts that a driver reports about a device and its commands.

use std::{fmt, sync::LazyLock};

use serde::{Deserialize, Serialize};

use crate::parallel;

/// The kind of hardware of a device.
///
/// ```
/// use oclprim::{Device, DeviceType};
///
/// assert_eq!(Device::cpu().info().ty, DeviceType::Cpu);
/// assert_eq!(DeviceType::Gpu.name(), "gpu");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DeviceType {
    /// The host's processor, through rayon or through an OpenCL driver.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Any other device with OpenCL.
    Accelerator,
}

impl DeviceType {
    /// The type's name, such as `gpu`.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::cpu().info().ty.name(), "cpu");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
        }
    }
}

/// A device's names and sizes, as its driver reports them.
///
/// ```
/// for info in oclprim::Device::list() {
///     println!("{info}: {} with {} compute units", info.ty.name(), info.compute_units);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device's name.
    pub name: String,
    /// The platform's name; `rayon` for the CPU backend.
    pub platform: String,
    /// The device's vendor.
    pub vendor: String,
    /// The driver's version.
    pub driver: String,
    /// The version of OpenCL that the device reports.
    pub version: String,
    /// The kind of hardware.
    #[serde(rename = "type")]
    pub ty: DeviceType,
    /// True if the device is used through OpenCL.
    pub opencl: bool,
    /// Compute units; threads for the CPU backend.
    pub compute_units: u32,
    /// Bytes of global memory; 0 if unknown.
    pub global_bytes: u64,
    /// Bytes of the largest single allocation.
    pub max_allocation_bytes: u64,
}

impl DeviceInfo {
    pub(crate) fn cpu() -> Self {
        Self {
            name: "CPU".into(),
            platform: "rayon".into(),
            vendor: String::new(),
            driver: env!("CARGO_PKG_VERSION").into(),
            version: String::new(),
            ty: DeviceType::Cpu,
            opencl: false,
            compute_units: parallel::threads() as u32,
            global_bytes: 0,
            max_allocation_bytes: isize::MAX as u64,
        }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.platform, self.name)
    }
}

/// Start and end of one command, by the device's clock.
///
/// ```
/// use oclprim::Device;
///
/// let device = Device::best()?.profiled()?;
/// device.filled(1000, 1.0f32)?;
/// for timing in device.take_timings()? {
///     println!("{}: {} ns", timing.name, timing.end - timing.start);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// The kernel's name, or the OpenCL call.
    pub name: &'static str,
    /// Start of the command, in nanoseconds.
    pub start: u64,
    /// End of the command, in nanoseconds.
    pub end: u64,
}

/// Maximum number of parts in which an input arrives. When the last byte has arrived, kernels have an eighth of their work
/// left.
pub(crate) const MOST_PARTS: usize = 8;

/// Parameters of the transfers of host slices to a device and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfers {
    /// Bytes of a pinned chunk.
    pub chunk_bytes: usize,
    /// Chunks of a ring.
    pub chunks: usize,
    /// Threads that copy, the calling one included.
    pub threads: usize,
    /// Minimum bytes of a staged write; the driver performs smaller ones itself.
    pub min_bytes: usize,
    /// Minimum bytes of a staged read; the driver performs smaller ones itself.
    pub min_read_bytes: usize,
    /// Minimum bytes of a part of an input slice. Kernels start on a part while later parts arrive.
    pub part_bytes: usize,
    /// True if transfers are staged even where host and device share memory.
    pub always: bool,
    /// True if slices are copied even where the driver could read them in place.
    pub copied: bool,
    /// Fault injection.
    pub fault: Option<TransferFault>,
}

impl Default for Transfers {
    /// The values before a device's self-test. No tuning file changes them.
    fn default() -> Self {
        // On the host of an H100 one thread copies at 9.6 GB/s, 16 copy at 42. The link moves 53.
        const MOST_THREADS: usize = 16;
        // Counted once: on Linux the count reads files, which takes as long as a short transfer.
        static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
        Self {
            chunk_bytes: 16 << 20,
            chunks: 4,
            threads: (*CORES).clamp(1, MOST_THREADS),
            // The H100's driver writes 2 MiB in 174 µs and 4 MiB in 354; staged, they take 271 and 273.
            min_bytes: 4 << 20,
            // The H200's driver reads 4 MiB in 0.33 to 0.55 ms, and 16 MiB in 1.4 to 2.2. Staged reads take 0.22 to
            // 0.59 ms and 1.0 ms.
            min_read_bytes: 16 << 20,
            // A part of this size arrives in 0.8 ms at 41 GB/s. Its launches take the host some 10 µs.
            part_bytes: 32 << 20,
            always: false,
            copied: false,
            fault: None,
        }
    }
}

/// Fault injection in staged transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransferFault {
    /// The driver has no pinned memory.
    NoPinnedMemory,
    /// The driver does not map pinned memory.
    NoMapping,
    /// The device is lost before the second chunk.
    Lost,
    /// A copying thread panics.
    Panic,
}

/// Selects the commands whose events a profiling queue keeps. If all have an event, NVIDIA's driver takes 6 µs more for each.
#[derive(Clone, Copy, Debug, Default)]
pub enum Recorded {
    #[doc(hidden)]
    #[default]
    All,
    /// For `Ends(n)`: command 1, command `n`, and every later command.
    Ends(usize),
    #[doc(hidden)]
    None,
}
