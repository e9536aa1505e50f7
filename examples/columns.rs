//! Statistics of each column of a matrix, and sums of a volume over two of its axes.
//!
//! `cargo run --release --example columns`

mod common;

use common::{numbers, timed};
use oclprim::{Device, Result, op::Sum};

const ROWS: usize = 10_000;
const COLUMNS: usize = 300;
const SHAPE: [usize; 3] = [60, 50, 40];

/// Mean, variance, smallest and largest element of each column.
type Statistics = (Vec<f64>, Vec<f64>, Vec<f32>, Vec<f32>);

fn statistics(device: &Device, matrix: &[f32]) -> Result<Statistics> {
    let matrix = device.upload(matrix)?;
    let columns = matrix.nd(&[ROWS, COLUMNS])?.along(0);
    let mut smallest = device.min_max(columns)?.values.into_vec()?;
    let largest = smallest.split_off(COLUMNS);
    Ok((device.mean(columns)?, device.variance(columns)?, smallest, largest))
}

fn layers(device: &Device, volume: &[u16]) -> Result<Vec<u64>> {
    let volume = device.upload(volume)?;
    device.reduce(volume.nd(&SHAPE)?.cast::<u64>().along([0, 2]), Sum)?.into_vec()
}

/// The same as `statistics`, in plain Rust.
fn plain_statistics(matrix: &[f32]) -> Statistics {
    let (mut means, mut squares) = (vec![0.0; COLUMNS], vec![0.0; COLUMNS]);
    let (mut smallest, mut largest) = (vec![f32::INFINITY; COLUMNS], vec![f32::NEG_INFINITY; COLUMNS]);
    for row in matrix.chunks(COLUMNS) {
        for (c, &x) in row.iter().enumerate() {
            means[c] += f64::from(x) / ROWS as f64;
            squares[c] += f64::from(x).powi(2) / ROWS as f64;
            smallest[c] = smallest[c].min(x);
            largest[c] = largest[c].max(x);
        }
    }
    let variances = means.iter().zip(&squares).map(|(mean, square)| square - mean * mean).collect();
    (means, variances, smallest, largest)
}

/// The same as `layers`, in plain Rust.
fn plain_layers(volume: &[u16]) -> Vec<u64> {
    let mut sums = vec![0; SHAPE[1]];
    for (row, elements) in volume.chunks(SHAPE[2]).enumerate() {
        sums[row % SHAPE[1]] += elements.iter().map(|&x| u64::from(x)).sum::<u64>();
    }
    sums
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let matrix: Vec<f32> = numbers(1, ROWS * COLUMNS).map(|x| (x >> 40) as f32 / 16_777_216.0).collect();
    let (means, variances, smallest, largest) = timed("oclprim, columns", || statistics(&device, &matrix))?;
    println!("means: {:.4?}", &means[..5]);
    println!("variances: {:.4?}", &variances[..5]);
    println!("smallest: {:.7?}", &smallest[..5]);
    println!("largest: {:.7?}", &largest[..5]);
    let wanted = timed("plain Rust, columns", || plain_statistics(&matrix));
    assert_eq!((smallest, largest), (wanted.2, wanted.3));
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
    assert!(near(&means, &wanted.0) && near(&variances, &wanted.1));

    let volume: Vec<u16> = numbers(2, SHAPE.iter().product()).map(|x| (x >> 48) as u16).collect();
    let sums = timed("oclprim, volume", || layers(&device, &volume))?;
    println!("sums: {:?}", &sums[..5]);
    assert_eq!(sums, timed("plain Rust, volume", || plain_layers(&volume)));
    Ok(())
}
