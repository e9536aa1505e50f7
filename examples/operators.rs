//! Operators, orders and functions as plain Rust: the same source runs on the CPU and on OpenCL devices.
//!
//! `cargo run --release --features macros --example operators`

use bytemuck::{Pod, Zeroable};
use oclprim::{Device, SharedType, Source, device, map, op::Sum, operator, order};

/// A sample of a series: its value, and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Sample {
    value: f32,
    time: u32,
}

#[device]
fn is_larger(a: Sample, b: Sample) -> bool {
    a.value > b.value || (a.value == b.value && a.time < b.time)
}

/// The larger sample; of two equal ones, the earlier.
#[operator(identity = Sample { value: f32::NEG_INFINITY, time: u32::MAX })]
fn larger(a: Sample, b: Sample) -> Sample {
    if is_larger(a, b) { a } else { b }
}

#[order]
fn largest_first(a: Sample, b: Sample) -> bool {
    is_larger(a, b)
}

#[operator(identity = 0)]
fn greatest_divisor(a: u32, b: u32) -> u32 {
    let mut x = a;
    let mut y = b;
    while y != 0 {
        let rest = x % y;
        x = y;
        y = rest;
    }
    x
}

fn main() -> oclprim::Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let values = [0.5f32, 3.0, -1.0, 3.0, 2.0];
    let samples: Vec<Sample> = (0..).zip(values).map(|(time, value)| Sample { value, time }).collect();
    let peak = device.reduce(&samples, &larger())?;
    println!("peak: {peak:?}");
    assert_eq!(peak, Sample { value: 3.0, time: 1 });

    let sorted = device.sort(&samples, &largest_first())?.to_vec()?;
    let times: Vec<u32> = sorted.iter().map(|sample| sample.time).collect();
    println!("times, largest value first: {times:?}");
    assert_eq!(times, [1, 3, 4, 0, 2]);

    let divisors = device.scan(&[24u32, 36, 10], &greatest_divisor())?.to_vec()?;
    println!("running greatest common divisor: {divisors:?}");
    assert_eq!(divisors, [24, 12, 2]);

    let energy = device.reduce((&values).map(map!(|x: f32| x * x)), Sum)?;
    println!("energy: {energy}");
    assert_eq!(energy, 23.25);
    Ok(())
}
