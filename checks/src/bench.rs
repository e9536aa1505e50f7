//! Timing: repeated runs, their median and spread, and the bandwidth of a plain copy for comparison.

use std::{cell::RefCell, fs, time::Instant};

use serde::{Deserialize, Serialize};

pub use crate::effort::Effort;
use crate::runtime::Recorded;
use crate::{
    Buffer, Device, DeviceInfo, DeviceType, Result,
    op::{Max, Usage},
    parallel,
    runtime::Backend,
};
use crate::{ElementType, ladder::Climb};

/// Statistics of the times of repeated runs, in seconds.
///
/// ```
/// use oclprim_checks::bench::Sample;
///
/// let sample = Sample::of(vec![0.012, 0.010, 0.011]);
/// assert_eq!((sample.median, sample.min, sample.runs), (0.011, 0.010, 3));
/// assert_eq!(sample.bandwidth(22_000_000), 2.0); // GB/s
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Median time.
    pub median: f64,
    /// Half the distance between the 5th and the 95th percentile, divided by the median.
    pub spread: f64,
    /// Shortest time.
    pub min: f64,
    /// Number of timed runs.
    pub runs: usize,
}

impl Sample {
    /// Statistics of `seconds`. For empty input, all of them are 0.
    ///
    /// ```
    /// let sample = oclprim_checks::bench::Sample::of(vec![3.0, 1.0, 2.0]);
    /// assert_eq!((sample.min, sample.median), (1.0, 2.0));
    /// ```
    pub fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let last = seconds.len().saturating_sub(1) as f64;
            seconds.get((last * part).round() as usize).copied().unwrap_or(0.0)
        };
        let median = at(0.5);
        let spread = if median > 0.0 { (at(0.95) - at(0.05)) / 2.0 / median } else { 0.0 };
        Self { median, spread, min: at(0.0), runs: seconds.len() }
    }

    /// Effective bandwidth in GB/s: `bytes / median / 1e9`, or 0 if the median is 0.
    ///
    /// ```
    /// assert_eq!(oclprim_checks::bench::Sample::of(vec![0.5]).bandwidth(3_000_000_000), 6.0);
    /// ```
    pub fn bandwidth(&self, bytes: u64) -> f64 {
        if self.median > 0.0 { bytes as f64 / self.median / 1e9 } else { 0.0 }
    }
}

/// Times of repeated runs on two clocks.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{bench::{Effort, measure}};
///
/// let times = measure(&Device::cpu(), Effort { runs: 5, ..Effort::default() }, || Ok(()), || Ok(()))?;
/// assert_eq!((times.wall.runs, times.device.runs), (5, 5));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Times {
    /// Time on the device's clock, from START of a run's first command to END of its last. The CPU backend uses the
    /// host's clock.
    pub device: Sample,
    /// Time on the host's clock, from the call until its commands have finished.
    /// OpenCL devices measure it in separate runs, interleaved with those of `device`, because recording events takes
    /// time.
    pub wall: Sample,
}

/// Size of a device's last-level cache in bytes, or 0 if it is unknown.
///
/// ```
/// let device = oclprim::Device::best()?;
/// println!("{}: {} KiB of cache", device.info(), oclprim_checks::bench::cache_bytes(&device) >> 10);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn cache_bytes(device: &Device) -> u64 {
    let (reported, compute_capability) =
        device.capabilities().ok().flatten().map_or((0, 0), |caps| (caps.cache_bytes, caps.compute_capability));
    if device.info().ty == DeviceType::Cpu {
        return reported.max(host_cache_bytes());
    }
    // NVIDIA's driver reports the caches of single multiprocessors, not the second-level cache that they share.
    let shared = match compute_capability {
        100.. => 126,
        90.. => 60,
        89 => 72,
        80 => 40,
        70.. => 6,
        60.. => 4,
        _ => 0,
    };
    reported.max(shared << 20)
}

/// Size in bytes of the largest cache that Linux lists for the first processor, or 0 if there is no list.
fn host_cache_bytes() -> u64 {
    let Ok(caches) = fs::read_dir("/sys/devices/system/cpu/cpu0/cache") else { return 0 };
    let size = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        let kib: u64 = text.trim().strip_suffix('K')?.parse().ok()?;
        Some(kib << 10)
    };
    caches.flatten().filter_map(size).max().unwrap_or(0)
}

/// Replaces the contents of the caches: reads other data, of twice their size if the limits in [`Scrub::bytes`] allow
/// it. Reads leave no lines to write back.
struct Scrub {
    other: Buffer<u32>,
    out: Buffer<u32>,
}

impl Scrub {
    fn new(device: &Device) -> Result<Self> {
        let bytes = Self::bytes(cache_bytes(device), &device.info());
        // The data is ones: zeroed memory that was never written can be a single page that is mapped many times.
        Ok(Self { other: device.filled(bytes as usize / 4, 1)?, out: device.zeroed(1)? })
    }

    /// Number of bytes to read for a last-level cache of `cache` bytes; a `cache` of 0 means unknown. At most 1 GiB, a
    /// quarter of the memory, and the largest allocation.
    fn bytes(cache: u64, info: &DeviceInfo) -> u64 {
        // A GPU's driver may report a smaller cache than the last level.
        let known = info.ty == DeviceType::Cpu && cache > 0;
        let least = if known { 1 << 20 } else { 512 << 20 };
        let most = [info.global_bytes / 4, info.max_allocation_bytes].into_iter().filter(|&bytes| bytes > 0);
        (2 * cache).max(least).min(most.fold(1 << 30, u64::min))
    }

    fn run(&mut self, device: &Device) -> Result<()> {
        device.reduce_into(&self.other, Max.fast(), &mut self.out)
    }
}

/// Times of repeated calls of `run` on a [profiled](Device::profiled) device.
///
/// `reset` is called before each `run`. Neither `reset` nor the reads for [`Effort::cold`] are timed.
///
/// # Errors
///
/// The errors of `reset` and `run`, and [`ErrorKind::Driver`](crate::ErrorKind::Driver) if a command fails.
///
/// ```
/// use oclprim::{Device, op::Sum};
/// use oclprim_checks::{bench::{Effort, measure}};
///
/// let device = Device::best()?.profiled()?;
/// let x = device.filled(100_000, 1.0f32)?;
/// let effort = Effort { warm_up: 1, runs: 3, ..Effort::default() };
/// let times = measure(&device, effort, || Ok(()), || device.reduce(&x, Sum).map(drop))?;
/// println!("{:.2} GB/s, {:.1} µs a call", times.device.bandwidth(400_000), times.wall.median * 1e6);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn measure(
    device: &Device,
    effort: Effort,
    mut reset: impl FnMut() -> Result<()>,
    mut run: impl FnMut() -> Result<()>,
) -> Result<Times> {
    let mut times = rounds(device, effort, &mut [(&mut reset, &mut run)])?;
    Ok(times.pop().expect("one case has one sample"))
}

/// Times of one benchmark case, as by [`measure`].
pub fn measure_case(device: &Device, effort: Effort, case: &mut Climb) -> Result<Times> {
    let mut times = measure_in_turns(device, effort, &mut [case])?;
    Ok(times.pop().expect("one case has one sample"))
}

/// Times of several benchmark cases, interleaved, so that drift, such as that of clocks, hits all of them.
///
/// `effort.runs` is the number of runs of each case; `effort.seconds` is the limit for all of them together.
///
/// # Errors
///
/// The errors of [`measure`].
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{bench::{Effort, measure_in_turns}, registry};
///
/// let device = Device::best()?.profiled()?;
/// let iota = registry::specs().iter().find(|spec| spec.name() == "iota").unwrap();
/// let mut cases = Vec::new();
/// for bench in iota.benches() {
///     cases.push((bench.prepare)(&device, 1000)?);
/// }
/// let effort = Effort { warm_up: 1, runs: 3, ..Effort::default() };
/// for times in measure_in_turns(&device, effort, &mut cases.iter_mut().collect::<Vec<_>>())? {
///     println!("{} s", times.device.median);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn measure_in_turns(device: &Device, effort: Effort, cases: &mut [&mut Climb]) -> Result<Vec<Times>> {
    let cases: Vec<_> = cases.iter_mut().map(|case| RefCell::new(&mut **case)).collect();
    let steps = cases.iter().map(|case| (|| case.borrow_mut().reset(), || case.borrow_mut().run()));
    let mut steps: Vec<_> = steps.collect();
    let contenders = steps.iter_mut().map(|(reset, run)| (reset as &mut Step, run as &mut Step));
    rounds(device, effort, &mut contenders.collect::<Vec<_>>())
}

type Step<'a> = dyn FnMut() -> Result<()> + 'a;

/// Times of one benchmark case, and the number of commands of its last recorded run.
#[derive(Clone, Default)]
struct Runs {
    seconds: Vec<f64>,
    walls: Vec<f64>,
    commands: usize,
}

/// Times one run: its seconds on the host's clock, its seconds on the device's clock, and its number of commands.
/// `ends` is the number of commands of an earlier run. The first command, and those from number `ends` on, record an
/// event. Other commands record none, because events take time. With `None`, no command records an event, and an OpenCL
/// device gives no time.
fn time(device: &Device, run: &mut Step<'_>, ends: Option<usize>) -> Result<(f64, Option<f64>, usize)> {
    device.finish()?;
    if let Backend::OpenCl(cl) = device.backend() {
        cl.record_only(ends.map_or(Recorded::None, Recorded::Ends));
    }
    let start = Instant::now();
    let result = run().and_then(|()| device.finish());
    let wall = start.elapsed().as_secs_f64();
    let (timings, commands) = match device.backend() {
        Backend::Cpu => (device.take_timings(), 0),
        Backend::OpenCl(cl) => {
            let (timings, commands) = (cl.take_timings(), cl.commands());
            cl.record_only(Recorded::All);
            (timings, commands)
        }
    };
    result?;
    let timings = timings?;
    let first = timings.iter().map(|timing| timing.start).min();
    let last = timings.iter().map(|timing| timing.end).max();
    let span = first.zip(last).map(|(first, last)| last.saturating_sub(first) as f64 * 1e-9);
    Ok((wall, span, commands))
}

/// Times all cases, each given as (reset, run). Every round runs each of them.
fn rounds(device: &Device, effort: Effort, all: &mut [(&mut Step<'_>, &mut Step<'_>)]) -> Result<Vec<Times>> {
    let begin = Instant::now();
    let mut scrub = if effort.cold { Some(Scrub::new(device)?) } else { None };
    let mut samples = vec![Runs::default(); all.len()];
    for round in 0..effort.warm_up + effort.runs.max(1) {
        let counted = round.saturating_sub(effort.warm_up);
        if counted >= 3 && begin.elapsed().as_secs_f64() > effort.seconds {
            break;
        }
        for ((reset, run), sample) in all.iter_mut().zip(&mut samples) {
            let mut prepare = || -> Result<()> {
                reset()?;
                scrub.as_mut().map_or(Ok(()), |scrub| scrub.run(device))
            };
            prepare()?;
            let (wall, ..) = time(device, run, None)?;
            let mut seconds = wall;
            while !device.is_cpu() {
                prepare()?;
                let (_, span, commands) = time(device, run, Some(sample.commands))?;
                // If a run has fewer commands than the one before, its last command has no event. The run is repeated.
                if std::mem::replace(&mut sample.commands, commands) <= commands {
                    seconds = span.unwrap_or(wall);
                    break;
                }
            }
            if round >= effort.warm_up {
                sample.walls.push(wall);
                sample.seconds.push(seconds);
            }
        }
    }
    let times = |runs: Runs| Times { device: Sample::of(runs.seconds), wall: Sample::of(runs.walls) };
    Ok(samples.into_iter().map(times).collect())
}

/// Function that uploads a benchmark case's data for a number of elements.
///
/// ```
/// use oclprim_checks::{bench::Prepare, ladder::Climb};
///
/// let nothing: Box<Prepare> = Box::new(|_, n| Ok(Climb::new(n, |_| Ok(()), |_| Ok(()), |_| Ok(()))));
/// assert!(nothing(&oclprim::Device::cpu(), 1 << 16).is_ok());
/// ```
pub type Prepare = dyn Fn(&Device, usize) -> Result<Climb>;

/// One operation on one type and data set, timed at several sizes.
///
/// ```
/// use oclprim::{Device, ElementType, op::Sum};
/// use oclprim_checks::{bench::{Bench, Effort, measure_case}, ladder::Climb};
///
/// let bench = Bench::new("sum", ElementType::U32, |n| 4 * n as u64, |device, n| {
///     let data = (device.clone(), device.filled(n, 1u32)?);
///     Ok(Climb::new(data, |_| Ok(()), |(device, x)| device.reduce(&*x, Sum).map(drop), |_| Ok(())))
/// });
/// let device = Device::best()?.profiled()?;
/// let mut case = (bench.prepare)(&device, 10_000)?;
/// let effort = Effort { warm_up: 1, runs: 3, ..Effort::default() };
/// let times = measure_case(&device, effort, &mut case)?;
/// println!("{}: {:.2} GB/s", bench.form, times.device.bandwidth((bench.bytes)(10_000)));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Bench {
    /// Name of the operation, such as `sum fixed`.
    pub form: String,
    /// The element type.
    pub element: ElementType,
    /// Default numbers of elements.
    pub sizes: Vec<usize>,
    /// Bytes that the operation must at least read and write, by number of elements.
    pub bytes: Box<dyn Fn(usize) -> u64>,
    /// Uploads the data to a device.
    pub prepare: Box<Prepare>,
}

impl Bench {
    /// A benchmark at 2^16, 2^20, 2^24 and 2^28 elements.
    ///
    /// ```
    /// use oclprim::ElementType;
    /// use oclprim_checks::{bench::Bench, ladder::Climb};
    ///
    /// let bench = Bench::new("nothing", ElementType::U8, |n| n as u64, |_, _| {
    ///     Ok(Climb::new((), |_| Ok(()), |_| Ok(()), |_| Ok(())))
    /// });
    /// assert_eq!((bench.sizes[0], (bench.bytes)(7)), (1 << 16, 7));
    /// ```
    pub fn new(
        form: impl Into<String>,
        element: ElementType,
        bytes: impl Fn(usize) -> u64 + 'static,
        prepare: impl Fn(&Device, usize) -> Result<Climb> + 'static,
    ) -> Self {
        Self::of(form.into(), element, Box::new(bytes), Box::new(prepare))
    }

    #[inline(never)]
    fn of(form: String, element: ElementType, bytes: Box<dyn Fn(usize) -> u64>, prepare: Box<Prepare>) -> Self {
        Self { form, element, sizes: vec![1 << 16, 1 << 20, 1 << 24, 1 << 28], bytes, prepare }
    }
}

/// Times of a copy that reads `bytes / 2` bytes and writes as many. They give the bandwidth of the device's memory.
///
/// OpenCL devices run the driver's own copy. The CPU backend copies with all threads.
///
/// # Errors
///
/// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if two buffers of `bytes / 2` bytes do not fit the device.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{bench::{Effort, copy_roof}};
///
/// let device = Device::best()?.profiled()?;
/// let effort = Effort { warm_up: 1, runs: 3, ..Effort::default() };
/// println!("{:.1} GB/s", copy_roof(&device, 1 << 20, effort)?.device.bandwidth(1 << 20));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn copy_roof(device: &Device, bytes: u64, effort: Effort) -> Result<Times> {
    let half = (bytes / 2).max(1) as usize;
    let from = device.filled(half, 1u8)?;
    let mut to = device.zeroed::<u8>(half)?;
    match device.backend() {
        Backend::Cpu => {
            let (from, mut to) = (from.map_memory()?, to.map_memory_mut()?);
            let from = &from[..];
            let chunk = half.div_ceil(4 * parallel::threads()).max(1 << 16);
            let run = || {
                parallel::chunks_mut(&mut to, chunk, &|i, to| {
                    to.copy_from_slice(&from[i * chunk..i * chunk + to.len()])
                });
                Ok(())
            };
            measure(device, effort, || Ok(()), run)
        }
        Backend::OpenCl(cl) => {
            let (from, to) = (from.mem().expect("an OpenCL buffer"), to.mem().expect("an OpenCL buffer"));
            measure(device, effort, || Ok(()), || cl.copy((from, 0), (to, 0), half))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_runs_are_measured_once() {
        assert_eq!(Sample::of(Vec::new()), Sample { median: 0.0, spread: 0.0, min: 0.0, runs: 0 });
        let effort = Effort { warm_up: 0, runs: 0, ..Effort::default() };
        assert_eq!(measure(&Device::cpu(), effort, || Ok(()), || Ok(())).unwrap().wall.runs, 1);
    }

    #[test]
    fn scrub_buffers_exceed_the_cache_and_are_written() {
        let cpu = Device::cpu().info();
        let mut gpu = cpu.clone();
        (gpu.ty, gpu.global_bytes) = (DeviceType::Gpu, 16 << 30);
        assert_eq!(Scrub::bytes(32 << 20, &cpu), 64 << 20);
        assert_eq!(Scrub::bytes(0, &cpu), 512 << 20);
        assert_eq!(Scrub::bytes(16 << 10, &gpu), 512 << 20);
        assert_eq!(Scrub::bytes(1 << 40, &gpu), 1 << 30);
        gpu.global_bytes = 1 << 30;
        assert_eq!(Scrub::bytes(0, &gpu), 256 << 20);
        let scrub = Scrub::new(&Device::cpu()).unwrap();
        assert!(scrub.other.map_memory().unwrap().iter().all(|&x| x != 0));
    }
}
