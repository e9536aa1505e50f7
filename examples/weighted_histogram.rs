//! The sum of weights in each bin of a histogram. Each sum is exact and rounded once.
//!
//! `cargo run --release --example weighted_histogram`

mod common;

use common::{numbers, timed};
use oclprim::{Bins, Device, Result, Source};

const SAMPLES: usize = 300_000;
const BINS: usize = 32;

/// The sum of weights in each bin over 0 to 1, and the sum of the weights above.
fn spectrum(device: &Device, energies: &[f32], weights: &[f32]) -> Result<(Vec<f32>, f32)> {
    let found = device.histogram(energies.weighted(weights), &Bins::even(0.0, 1.0, BINS)?)?;
    Ok((found.sums, found.outside.above))
}

/// The same, in plain Rust.
fn plain(energies: &[f32], weights: &[f32]) -> (Vec<f32>, f32) {
    let mut sums = vec![0.0; BINS + 1];
    for (energy, weight) in energies.iter().zip(weights) {
        sums[((energy * BINS as f32) as usize).min(BINS)] += f64::from(*weight);
    }
    let above = sums.pop().expect("the last sum");
    (sums.into_iter().map(|sum| sum as f32).collect(), above as f32)
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let energies: Vec<f32> = numbers(1, SAMPLES).map(|x| (x >> 40) as f32 / 15e6).collect();
    let weights: Vec<f32> = numbers(2, SAMPLES).map(|x| (x >> 40) as f32 / 16_777_216.0).collect();
    let (sums, above) = timed("oclprim", || spectrum(&device, &energies, &weights))?;
    println!("sums: {:.6?}, above {above:.6}", &sums[..5]);
    assert_eq!((sums, above), timed("plain Rust", || plain(&energies, &weights)));
    Ok(())
}
