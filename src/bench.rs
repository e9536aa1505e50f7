//! Measuring: repeats, median and spread, and the bandwidth of a copy to set them against.

use std::time::Instant;

use serde::Serialize;

use crate::{Device, Result};

/// The times of repeated runs of one thing, in seconds.
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
