//! A sparse matrix (CSR) times a vector: a sum over the products of each row, without memory for the products.
//!
//! `cargo run --release --example sparse_matrix`

mod common;

use common::{numbers, timed};
use oclprim::{
    Device, Result, Source,
    op::{Sum, Usage},
};

const ROWS: usize = 30_000;

/// A sparse matrix. Row `r` has the elements `offsets[r]..offsets[r + 1]`.
struct Matrix {
    offsets: Vec<u32>,
    columns: Vec<u32>,
    elements: Vec<f32>,
}

fn product(device: &Device, matrix: &Matrix, vector: &[f32]) -> Result<Vec<f32>> {
    let products = matrix.elements.times(vector.gathered(&matrix.columns));
    device.reduce(products.segments(&matrix.offsets), Sum.exact())?.into_vec()
}

/// The same, in plain Rust.
fn plain(matrix: &Matrix, vector: &[f32]) -> Vec<f32> {
    let rows = matrix.offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
    let term = |i: usize| f64::from(matrix.elements[i]) * f64::from(vector[matrix.columns[i] as usize]);
    rows.map(|row| row.map(term).sum::<f64>() as f32).collect()
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    // Rows have 0 to 31 elements, which are multiples of 2^-16.
    let lengths = numbers(1, ROWS).map(|x| (x >> 59) as u32);
    let sums = lengths.scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    let offsets: Vec<u32> = std::iter::once(0).chain(sums).collect();
    let n = offsets[ROWS] as usize;
    let fractions = |seed, n| numbers(seed, n).map(|x| (x >> 48) as f32 / 65_536.0 - 0.5).collect::<Vec<_>>();
    let columns = numbers(2, n).map(|x| (x % ROWS as u64) as u32).collect();
    let (matrix, vector) = (Matrix { offsets, columns, elements: fractions(3, n) }, fractions(4, ROWS));
    let found = timed("oclprim", || product(&device, &matrix, &vector))?;
    println!("{n} elements, the largest row has the sum {:.6}", found.iter().copied().fold(0.0, f32::max));
    println!("product: {:.6?}", &found[..5]);
    assert!(found == timed("plain Rust", || plain(&matrix, &vector)));
    Ok(())
}
