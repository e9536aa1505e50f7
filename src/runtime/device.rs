//! The devices of the machine, and the selection of one.

use std::{env, fmt};

use super::opencl::{self, ClDevice};
use super::{Capabilities, DeviceInfo, DeviceType, Timing};
use crate::{Error, ErrorKind, Result};

#[doc(hidden)]
#[derive(Clone)]
pub enum Backend {
    #[doc(hidden)]
    Cpu,
    #[doc(hidden)]
    OpenCl(ClDevice),
}

/// A device that runs primitives: an OpenCL device, or the CPU through rayon.
///
/// A device is cheap to clone, and many threads can use it at once. Commands of one opened device and its clones run in
/// the order in which they are enqueued.
///
/// A child process made by `fork` must not use a device: see [threads and processes](crate#threads-and-processes).
///
/// ```
/// use oclprim::{Device, op::Sum};
///
/// let device = Device::best()?;
/// let x = device.upload(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(device.reduce(&x, Sum)?, 6.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// The methods are grouped in sections:
///
/// | | |
/// |---|---|
/// | devices | [devices](#devices), [device memory](#device-memory), [scratch](#scratch), [pinned memory](#pinned-memory), [asynchronous transfers](#asynchronous-transfers), [first calls](#first-calls), [tuning](#tuning) |
/// | reduction | [reductions](#reductions), [by a user-defined operator](crate::reduce::by), [segmented](#segmented-reductions), [along axes](crate::reduce::axis), [by key](crate::select::by_key), extremes [along axes](crate::reduce::axis::extremes) and [of segments](crate::reduce::segmented::extremes), [arg-min and arg-max](#arg-min-and-arg-max), [statistics](#statistics), [mean and variance along axes](#mean-and-variance-along-axes), [counts](#counts) |
/// | scan | [scans](#scans), [segmented scans](crate::scan::segmented), [scans along an axis](crate::scan::axis), [adjacent differences](#adjacent-differences) |
/// | selection | [selections](#selections), [partitions](#partitions), [runs of equal neighbours](#runs-of-equal-neighbours) |
/// | order | [sorts](#sorts), [segmented sorts](crate::sort::segmented), [sorts of lines](crate::sort::lines), [sorts of tables](crate::sort::columns), [sorts in place](#sorts-in-place), [sorts by any order](crate::merge::sort), [merges](#merges), [set operations](#set-operations), [searches in sorted ranges](#searches-in-sorted-ranges), [top-k and keys of ranks](#top-k-and-keys-of-ranks), [quantiles](#quantiles) |
/// | histogram | [histograms](#histograms), [with weights](crate::Source::weighted), [of interleaved channels](crate::Source::channels) |
/// | movement | [transform](#transform), [copies](#copies), [strided copies](#strided-copies), [copies of many ranges](#copies-of-many-ranges), [gather and scatter](#gather-and-scatter), [reversals](#reversals), [permutations of axes](#permutations-of-axes), [transpositions](#transpositions), [transpositions of many matrices](#transpositions-of-many-matrices), [transpositions in place](#transpositions-in-place), [transpositions of mapped elements](#transpositions-of-mapped-elements) |
/// | numbers | [consecutive numbers](#consecutive-numbers), [random numbers](#random-numbers) |
#[derive(Clone)]
pub struct Device {
    backend: Backend,
}

/// # Devices
///
/// These methods open a device, describe it, and wait for its commands. The [crate](crate#primitives) lists the primitives.
impl Device {
    /// The default device: the one that `OCLPRIM_DEVICE` selects, else a GPU, else the CPU through rayon.
    ///
    /// The GPU is the first that passes its self-test. GPUs with memory of their own are tried before the others; in
    /// both groups, those with more memory are tried first. If a GPU is missing, the error of [`Device::open`] for
    /// `gpu` or `opencl` has the reason, such as an `OPENCL_LIBRARY` that does not open.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::open`], if `OCLPRIM_DEVICE` is set.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// println!("running on {}", device.info());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn best() -> Result<Self> {
        match env::var_os("OCLPRIM_DEVICE") {
            Some(selector) if !selector.is_empty() => Self::fitting(&selector.to_string_lossy(), " of OCLPRIM_DEVICE"),
            _ => Ok(Self::best_gpu().unwrap_or_else(Self::cpu)),
        }
    }

    /// The CPU backend, which uses rayon's global thread pool. Calls no driver.
    ///
    /// ```
    /// use oclprim::{Device, op::Product};
    ///
    /// assert_eq!(Device::cpu().reduce(&[2u64, 3, 7], Product)?, 42);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn cpu() -> Self {
        Self { backend: Backend::Cpu }
    }

    /// The first device that matches a selector.
    ///
    /// A selector is an index into [`Device::list`], `cpu` (rayon), `gpu`, `accelerator`, `opencl`, or a part of
    /// `platform / name`; case is ignored. `opencl` is any OpenCL device, GPUs first. Only an index
    /// selects between devices of the same name. A number that is not an index matches a part of a name.
    ///
    /// Selectors of the CPU backend (`0`, `cpu`, or a part of `rayon / CPU`) open no OpenCL library.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDevice`] if no device matches; the message lists all devices, and the reasons for missing drivers.
    /// [`ErrorKind::Driver`] if the driver does not open the device.
    ///
    /// ```
    /// use oclprim::{Device, ErrorKind};
    ///
    /// assert!(Device::open("cpu")?.is_cpu());
    /// assert!(Device::open("0")?.is_cpu());
    /// let error = Device::open("no such device").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NoDevice);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn open(selector: &str) -> Result<Self> {
        Self::fitting(selector, "")
    }

    /// [`Device::open`]. In the error, `whose` names the origin of the selector.
    fn fitting(selector: &str, whose: &str) -> Result<Self> {
        let wanted = selector.trim().to_lowercase();
        // The CPU backend comes first in the list, so it matches first. A hanging driver must not block access to it.
        let of_the_cpu = DeviceInfo::cpu().to_string().to_lowercase().contains(&wanted) && !wanted.is_empty();
        if of_the_cpu || wanted.parse() == Ok(0usize) {
            return Ok(Self::cpu());
        }
        let infos = Self::list();
        let of_type = |ty| infos.iter().position(|info| info.opencl && info.ty == ty);
        let index = match wanted.as_str() {
            "gpu" => of_type(DeviceType::Gpu),
            "accelerator" => of_type(DeviceType::Accelerator),
            "opencl" => of_type(DeviceType::Gpu).or(infos.iter().position(|info| info.opencl)),
            "" => None,
            _ => wanted.parse().ok().filter(|&index| index < infos.len()).or_else(|| {
                // A model number, such as 3090, is not an index.
                infos.iter().position(|info| info.to_string().to_lowercase().contains(&wanted))
            }),
        };
        match index {
            Some(index) => Self::at(index),
            None => {
                let known: Vec<_> = infos.iter().enumerate().map(|(i, info)| format!("{i}: {info}")).collect();
                Err(no_device(format!("no device fits `{selector}`{whose}; the devices are {}", known.join(", "))))
            }
        }
    }

    /// The device at an index of [`Device::list`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDevice`] if the index is out of range, [`ErrorKind::Driver`] if the driver does not open the device.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// for (index, info) in Device::list().iter().enumerate() {
    ///     match Device::at(index) {
    ///         Ok(device) => assert_eq!(device.info(), *info),
    ///         Err(error) => println!("{info} does not open: {error}"),
    ///     }
    /// }
    /// ```
    pub fn at(index: usize) -> Result<Self> {
        if index == 0 {
            return Ok(Self::cpu());
        }
        if let Some(found) = opencl::found().get(index - 1) {
            return Ok(Self { backend: Backend::OpenCl(found.open()?) });
        }
        let last = Self::list().len() - 1;
        Err(no_device(format!("no device {index}: the last is device {last}")))
    }

    fn best_gpu() -> Option<Self> {
        let found = opencl::found();
        let mut gpus: Vec<_> = found.iter().filter(|found| found.info.ty == DeviceType::Gpu).collect();
        gpus.sort_by_key(|found| std::cmp::Reverse(rank(found.own_memory, &found.info)));
        gpus.into_iter().find_map(|found| {
            let device = found.open().ok()?;
            device.capabilities().ok()?;
            Some(Self { backend: Backend::OpenCl(device) })
        })
    }

    pub(crate) fn from_cl(device: ClDevice) -> Self {
        Self { backend: Backend::OpenCl(device) }
    }

    #[doc(hidden)]
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Every device: the CPU backend first, then the devices that the OpenCL loader finds.
    ///
    /// Opens no device. Drivers that fail to answer are left out.
    ///
    /// ```
    /// let devices = oclprim::Device::list();
    /// assert_eq!(devices[0].to_string(), "rayon / CPU");
    /// ```
    pub fn list() -> Vec<DeviceInfo> {
        let mut infos = vec![DeviceInfo::cpu()];
        infos.extend(opencl::found().iter().map(|found| found.info.clone()));
        infos
    }

    /// The device's names and sizes.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::cpu().info().name, "CPU");
    /// ```
    pub fn info(&self) -> DeviceInfo {
        match &self.backend {
            Backend::Cpu => DeviceInfo::cpu(),
            Backend::OpenCl(device) => device.info().clone(),
        }
    }

    /// Returns whether this is the CPU backend.
    ///
    /// ```
    /// assert!(oclprim::Device::cpu().is_cpu());
    /// ```
    pub fn is_cpu(&self) -> bool {
        matches!(self.backend, Backend::Cpu)
    }

    /// Waits until all commands enqueued so far are done.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`] if a command failed.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let mut x = device.zeroed::<u32>(1000)?;
    /// x.fill(7)?;
    /// device.finish()?; // the fill is done
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn finish(&self) -> Result<()> {
        match &self.backend {
            Backend::Cpu => Ok(()),
            Backend::OpenCl(device) => device.finish(),
        }
    }

    /// The capabilities of an OpenCL device; `None` for the CPU backend, which has them all.
    ///
    /// The first call compiles and runs small kernels, unless the cache folder has their result. The result is stored
    /// on disk by device and driver. If a test fails for a transient reason, such as a shortage of memory, the call
    /// repeats it. The result is then not stored on disk.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`] or [`ErrorKind::Build`] if even the simplest kernel fails, [`ErrorKind::OutOfMemory`] if memory
    /// stays short. No result is stored then, so the next call runs the tests again.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let fp64 = device.capabilities()?.is_none_or(|caps| caps.fp64);
    /// println!("{}: double precision: {fp64}", device.info());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn capabilities(&self) -> Result<Option<Capabilities>> {
        match &self.backend {
            Backend::Cpu => Ok(None),
            Backend::OpenCl(device) => Ok(Some(device.capabilities()?.as_ref().clone())),
        }
    }

    /// The same device with its own queue, which records the time of each command.
    ///
    /// The call first waits for this device's commands. The new device keeps an event for each command until
    /// [`Device::take_timings`]; long runs should call that regularly. No effect on the CPU backend.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`] if the driver does not support such a queue.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?.profiled()?;
    /// device.reduce(&vec![1.0f32; 100_000], Sum)?;
    /// let nanoseconds: u64 = device.take_timings()?.iter().map(|timing| timing.end - timing.start).sum();
    /// println!("kernels took {nanoseconds} ns");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn profiled(&self) -> Result<Self> {
        self.with_handle(ClDevice::profiled)
    }

    /// The same device with its own queue.
    pub(super) fn beside(&self) -> Result<Self> {
        self.with_handle(|device| device.with_queue(false))
    }

    /// The device of the handle that `change` makes; a clone for the CPU backend.
    pub(crate) fn with_handle(&self, change: impl FnOnce(&ClDevice) -> Result<ClDevice>) -> Result<Self> {
        match &self.backend {
            Backend::Cpu => Ok(self.clone()),
            Backend::OpenCl(device) => change(device).map(Self::from_cl),
        }
    }

    /// The times of the commands since the last call, if the device is [profiled](Device::profiled); else an empty list. Waits
    /// for all commands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`] if a command failed.
    ///
    /// ```
    /// let device = oclprim::Device::cpu();
    /// assert!(device.take_timings()?.is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn take_timings(&self) -> Result<Vec<Timing>> {
        match &self.backend {
            Backend::Cpu => Ok(Vec::new()),
            Backend::OpenCl(device) => device.take_timings(),
        }
    }
}

/// The error for a missing device, with the reasons for missing drivers.
fn no_device(message: String) -> Error {
    let troubles = opencl::troubles();
    let parts: Vec<_> = std::iter::once(&message).chain(troubles).map(String::as_str).collect();
    Error::new(ErrorKind::NoDevice, parts.join("; "))
}

/// Returns the key by which `best_gpu` sorts GPUs. A GPU that shares the host's memory reports much memory but is
/// slower, so it comes last.
fn rank(own_memory: bool, info: &DeviceInfo) -> (bool, u64, u32) {
    (own_memory, info.global_bytes, info.compute_units)
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.info())
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceInfo, rank};

    #[test]
    fn the_gpu_with_most_memory_of_its_own_is_the_best() {
        let gpu = |global_bytes, compute_units| DeviceInfo { global_bytes, compute_units, ..DeviceInfo::cpu() };
        let of_the_host = rank(false, &gpu(64 << 30, 96));
        let small = rank(true, &gpu(8 << 30, 20));
        let large = rank(true, &gpu(24 << 30, 16));
        let faster = rank(true, &gpu(24 << 30, 32));
        let mut found = [small, faster, of_the_host, large];
        found.sort();
        assert_eq!(found, [of_the_host, small, large, faster]);
    }
}
