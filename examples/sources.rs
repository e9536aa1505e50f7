//! Inputs that are expressions: statistics of samples and a weighted sum, without memory for intermediate arrays.
//!
//! `cargo run --release --features macros --example sources`

use oclprim::{
    Device, Source, map,
    op::{Max, Sum},
    source::counting,
};

fn main() -> oclprim::Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let host: Vec<f32> = (0..1000).map(|i| (i % 100) as f32).collect();
    let (samples, gains) = (device.upload(&host)?, device.upload(&[0.5f32, 1.0, 2.0])?);

    // Captured values are arguments of the kernel, so a new threshold needs no new build.
    let mean = device.reduce(&samples, Sum)? / samples.len() as f32;
    let squares = device.reduce(samples.map(map!(move |x: f32| (x - mean) * (x - mean), mean: f32)), Sum)?;
    let above = |threshold: f32| {
        device.reduce(samples.map(map!(move |x: f32| -> u64 { (x > threshold) as u64 }, threshold: f32)), Sum)
    };
    println!("mean {mean}, sum of squared distances {squares}, above 50: {}", above(50.0)?);
    assert_eq!((mean, above(50.0)?, above(98.5)?), (49.5, 490, 10));
    assert!((squares - 833_250.0).abs() < 1.0);

    // Sample i has the channel i % 3, whose gain is read by index.
    let channels = counting(0u32).take(samples.len()).map(map!(|i: u32| i % 3));
    let weighted = samples.zip(gains.gathered(channels)).map(map!(|(x, gain): (f32, f32)| x * gain));
    let out = device.transform(weighted.clone())?.to_vec()?;
    let peak = device.reduce(weighted, Max)?;
    println!("weighted samples {:?}, peak {peak}", &out[..4]);
    assert_eq!((&out[..4], peak), (&[0.0, 1.0, 4.0, 1.5][..], 198.0));
    Ok(())
}
