//! Reduces, transposes and searches plain slices on the best device, or on the CPU if there is no other.
//!
//! `cargo run --release --example quickstart`

use oclprim::{
    Device,
    op::{Max, Sum},
};

fn main() -> Result<(), oclprim::Error> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let samples: Vec<f32> = (0..1_000_000).map(|i| (i % 1000) as f32).collect();
    let total = device.reduce(&samples, Sum)?;
    let largest = device.arg_max(&samples)?;
    println!("sum {total}, largest {} at {}", largest.value, largest.index);
    assert_eq!(total, 499_500_000.0);
    assert_eq!((largest.value, largest.index), (999.0, 999));
    assert_eq!(device.reduce(&samples, Max)?, 999.0);

    // The result has the same bits on every device, because the length alone defines the tree of a float sum.
    assert_eq!(total.to_bits(), Device::cpu().reduce(&samples, Sum)?.to_bits());

    let matrix = [1u32, 2, 3, 4, 5, 6];
    let transposed = device.transpose(&matrix, (2, 3))?.to_vec()?;
    println!("2 x 3 {matrix:?} transposed is {transposed:?}");
    assert_eq!(transposed, [1, 4, 2, 5, 3, 6]);
    Ok(())
}
