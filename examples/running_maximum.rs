//! The running maximum of a series of structs, with the time at which it was reached.
//!
//! `cargo run --release --features macros --example running_maximum`

mod common;

use bytemuck::{Pod, Zeroable};
use common::{numbers, timed};
use oclprim::{Device, Result, SharedType, operator};

const SAMPLES: usize = 500_000;

/// A value, and when it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Sample {
    value: i32,
    time: u32,
}

/// The larger of two samples; of equal ones, the earlier.
#[operator(identity = Sample { value: i32::MIN, time: u32::MAX })]
fn larger(a: Sample, b: Sample) -> Sample {
    if a.value > b.value || (a.value == b.value && a.time < b.time) { a } else { b }
}

/// The largest sample so far, for each sample.
fn peaks(device: &Device, samples: &[Sample]) -> Result<Vec<Sample>> {
    device.scan(samples, &larger())?.into_vec()
}

/// The same, in plain Rust.
fn plain(samples: &[Sample]) -> Vec<Sample> {
    let mut peak = samples[0];
    let highest = |sample: &Sample| {
        if sample.value > peak.value {
            peak = *sample;
        }
        peak
    };
    samples.iter().map(highest).collect()
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    // Random values that rise slowly.
    let sample = |(i, x): (u32, u64)| Sample { value: (x >> 52) as i32 + (i / 50) as i32 - 4096, time: 3 * i + 7 };
    let samples: Vec<Sample> = (0..).zip(numbers(1, SAMPLES)).map(sample).collect();
    let found = timed("oclprim", || peaks(&device, &samples))?;
    let rises = found.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
    let last = found[SAMPLES - 1];
    println!("{rises} peaks, the last one {} at {}", last.value, last.time);
    println!("sum of the running maximum: {}", found.iter().map(|sample| i64::from(sample.value)).sum::<i64>());
    assert!(found == timed("plain Rust", || plain(&samples)));
    assert_eq!(device.reduce(&samples, &larger())?, last);
    Ok(())
}
