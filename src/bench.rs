//! Measuring: repeats, median and spread, and the bandwidth of a copy to set them against.

use std::time::Instant;

use serde::Serialize;

use crate::{Device, ElementType, Result, ladder::Climb, parallel, runtime::Backend};

/// The times of repeated runs of one thing, in seconds.
///
/// ```
/// use oclprim::bench::Sample;
///
/// let sample = Sample::of(vec![0.012, 0.010, 0.011]);
/// assert_eq!((sample.median, sample.min, sample.runs), (0.011, 0.010, 3));
/// assert_eq!(sample.bandwidth(22_000_000), 2.0); // GB/s
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The middle one of the runs.
    pub median: f64,
    /// Half the distance between the 5th and the 95th percentile, as a part of the median.
    pub spread: f64,
    /// The shortest run.
    pub min: f64,
    /// How many runs were timed.
    pub runs: usize,
}

impl Sample {
    /// Sums up `seconds`, of which there is at least one.
    pub fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |part: f64| seconds[((seconds.len() - 1) as f64 * part).round() as usize];
        let median = at(0.5);
        let spread = if median > 0.0 { (at(0.95) - at(0.05)) / 2.0 / median } else { 0.0 };
        Self { median, spread, min: at(0.0), runs: seconds.len() }
    }

    /// Effective bandwidth in GB/s (10^9 bytes a second).
    pub fn bandwidth(&self, bytes: u64) -> f64 {
        if self.median > 0.0 { bytes as f64 / self.median / 1e9 } else { 0.0 }
    }
}

/// How often to run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Runs before timing, for compilers, caches and clocks.
    pub warm_up: usize,
    /// Timed runs, at least.
    pub runs: usize,
    /// Seconds after which no further run starts, once there are three.
    pub seconds: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { warm_up: 3, runs: 25, seconds: 2.0 }
    }
}

/// Times `run` on a [profiled](Device::profiled) device: from the START of its first command to the END of its last,
/// by the device's clock; on the CPU backend by the host's. `reset` goes before each run and is not timed.
///
/// # Errors
///
/// What `reset` and `run` return, and [`ErrorKind::Driver`](crate::ErrorKind::Driver) if a command failed.
///
/// ```
/// use oclprim::{Device, bench::{Effort, measure}, op::Sum};
///
/// let device = Device::best()?.profiled()?;
/// let x = device.filled(100_000, 1.0f32)?;
/// let effort = Effort { warm_up: 1, runs: 3, ..Effort::default() };
/// let sample = measure(&device, effort, || Ok(()), || device.reduce(&x, Sum).map(drop))?;
/// println!("{:.2} GB/s", sample.bandwidth(400_000));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn measure(
    device: &Device,
    effort: Effort,
    mut reset: impl FnMut() -> Result<()>,
    mut run: impl FnMut() -> Result<()>,
) -> Result<Sample> {
    let begin = Instant::now();
    let mut seconds = Vec::new();
    for round in 0..effort.warm_up + effort.runs {
        let timed = round >= effort.warm_up;
        if timed && seconds.len() >= 3 && begin.elapsed().as_secs_f64() > effort.seconds {
            break;
        }
        reset()?;
        device.take_timings()?;
        let start = Instant::now();
        run()?;
        let host = start.elapsed().as_secs_f64();
        let timings = device.take_timings()?;
        let first = timings.iter().map(|timing| timing.start).min();
        let last = timings.iter().map(|timing| timing.end).max();
        let time = match (first, last) {
            (Some(first), Some(last)) => last.saturating_sub(first) as f64 * 1e-9,
            _ => host,
        };
        if timed {
            seconds.push(time);
        }
    }
    Ok(Sample::of(seconds))
}

/// Puts a benchmark's data on a device, for a number of elements.
pub type Prepare = dyn Fn(&Device, usize) -> Result<Climb>;

/// One form of a primitive, to be measured at several sizes.
pub struct Bench {
    /// What is run, such as `sum fixed`.
    pub form: String,
    /// The element type.
    pub element: ElementType,
    /// The numbers of elements at which it is measured unless others are asked for.
    pub sizes: Vec<usize>,
    /// The bytes that it has to read and write at least, for a number of elements.
    pub bytes: Box<dyn Fn(usize) -> u64>,
    /// Puts its data on a device.
    pub prepare: Box<Prepare>,
}

impl Bench {
    /// A benchmark at 2^16, 2^20, 2^24 and 2^28 elements.
    pub fn new(
        form: impl Into<String>,
        element: ElementType,
        bytes: impl Fn(usize) -> u64 + 'static,
        prepare: impl Fn(&Device, usize) -> Result<Climb> + 'static,
    ) -> Self {
        let sizes = vec![1 << 16, 1 << 20, 1 << 24, 1 << 28];
        Self { form: form.into(), element, sizes, bytes: Box::new(bytes), prepare: Box::new(prepare) }
    }
}

/// Times a copy that moves `bytes` bytes, half of them read and half of them written: what the device's memory gives.
///
/// The copy is the driver's own, or one by all threads on the CPU backend.
///
/// # Errors
///
/// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device does not hold two such halves.
pub fn copy_roof(device: &Device, bytes: u64, effort: Effort) -> Result<Sample> {
    const CHUNK: usize = 1 << 16;
    let half = (bytes / 2).max(1) as usize;
    let from = device.filled(half, 1u8)?;
    let mut to = device.zeroed::<u8>(half)?;
    match device.backend() {
        Backend::Cpu => {
            let (from, mut to) = (from.map()?, to.map_mut()?);
            let from = &from[..];
            let run = || {
                parallel::chunks_mut(&mut to, CHUNK, &|i, to| {
                    to.copy_from_slice(&from[i * CHUNK..i * CHUNK + to.len()])
                });
                Ok(())
            };
            measure(device, effort, || Ok(()), run)
        }
        #[cfg(feature = "opencl")]
        Backend::OpenCl(cl) => {
            let (from, to) = (from.mem().expect("an OpenCL buffer"), to.mem().expect("an OpenCL buffer"));
            measure(device, effort, || Ok(()), || cl.copy((from, 0), (to, 0), half))
        }
    }
}
