//! Lines of a log: keeps those above a threshold, sums them by key, and prints the ten largest sums with their keys.
//!
//! `cargo run --release --features macros --example log_lines -- 900` for lines of at least 900 ms

mod common;

use std::collections::HashMap;

use common::{numbers, timed};
use oclprim::{Device, Order, Result, Source, Top, map, op::Sum};

const LINES: usize = 500_000;

/// The services with the ten largest sums of times, and these sums. Only times of at least `threshold` count.
fn slowest(device: &Device, services: &[u32], times: &[u32], threshold: u32) -> Result<(Vec<u32>, Vec<u64>)> {
    let (services, times) = (device.upload(services)?, device.upload(times)?);
    let slow = map!(move |time: u32| time >= threshold, threshold: u32);
    let lines = device.select_indices::<_, u32, _>(&times, slow)?;
    let (services, times) = device.sort(services.gathered(&lines).with(times.gathered(&lines)), Order::ascending())?;
    let (services, sums) = device.reduce(times.cast::<u64>().by_key(&services), Sum)?;
    let (sums, services) = device.top_k(sums.with(&services), Top::largest(10).sorted())?;
    Ok((services.to_vec()?, sums.to_vec()?))
}

/// The same, in plain Rust.
fn plain(services: &[u32], times: &[u32], threshold: u32) -> (Vec<u32>, Vec<u64>) {
    let mut sums = HashMap::new();
    for (service, time) in services.iter().zip(times).filter(|(_, time)| **time >= threshold) {
        *sums.entry(*service).or_default() += u64::from(*time);
    }
    let mut sums: Vec<(u32, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|&(service, sum)| (std::cmp::Reverse(sum), service));
    sums.into_iter().take(10).unzip()
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let threshold = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500);
    // Products of two random numbers: small ones are more frequent. The factor below spreads the services over all u32.
    let product = |x: u64| (x >> 52) * (x >> 40 & 4095);
    let scattered = |x: u64| ((product(x) >> 12) as u32).wrapping_mul(2_654_435_769);
    let services: Vec<u32> = numbers(1, LINES).map(scattered).collect();
    let times: Vec<u32> = numbers(2, LINES).map(|x| (product(x) >> 14) as u32).collect();
    let found = timed("oclprim", || slowest(&device, &services, &times, threshold))?;
    println!("services: {:?}", found.0);
    println!("sums: {:?}", found.1);
    assert_eq!(found, timed("plain Rust", || plain(&services, &times, threshold)));
    Ok(())
}
