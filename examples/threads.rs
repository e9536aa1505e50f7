//! Several threads share a device. Each finds the median and the exact sum of its own part of the samples.
//!
//! `cargo run --release --example threads`

mod common;

use std::thread;

use common::{numbers, timed};
use oclprim::{Device, ExactSum, Result};

const THREADS: usize = 4;
const SAMPLES: usize = 400_000;

/// The median and the exact sum of each part.
fn medians(device: &Device, samples: &[f32]) -> Result<Vec<(f64, ExactSum<f32>)>> {
    thread::scope(|scope| {
        let find = |part: &[f32]| Ok((device.median(part)?, ExactSum::of(device, part)?));
        let threads: Vec<_> = samples.chunks(SAMPLES / THREADS).map(|x| scope.spawn(move || find(x))).collect();
        threads.into_iter().map(|it| it.join().expect("no thread panics")).collect()
    })
}

/// The medians, and the sum of all samples, in plain Rust.
fn plain(samples: &[f32]) -> (Vec<f64>, f32) {
    let median = |part: &[f32]| {
        let mut part = part.to_vec();
        part.sort_by(f32::total_cmp);
        (f64::from(part[part.len() / 2 - 1]) + f64::from(part[part.len() / 2])) / 2.0
    };
    let parts = samples.chunks(SAMPLES / THREADS);
    (parts.map(median).collect(), samples.iter().map(|&x| f64::from(x)).sum::<f64>() as f32)
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let samples: Vec<f32> = numbers(1, SAMPLES).map(|x| (x >> 40) as f32 / 16_777_216.0).collect();
    let parts = timed("oclprim", || medians(&device, &samples))?;
    // Exact sums merge to the exact sum of all samples.
    let mut total = ExactSum::new();
    parts.iter().for_each(|(_, sum)| total.merge(sum));
    let medians: Vec<f64> = parts.iter().map(|(median, _)| *median).collect();
    println!("medians: {medians:.7?}, total {:.2}", total.round());
    assert_eq!((medians, total.round()), timed("plain Rust", || plain(&samples)));
    Ok(())
}
