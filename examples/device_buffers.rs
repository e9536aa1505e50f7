//! Keeps data and results on the device: one upload, several primitives in a row, small downloads at the end.
//!
//! `cargo run --release --example device_buffers`

use oclprim::{Device, op::Sum};

const ROWS: usize = 1000;
const COLS: usize = 500;

fn main() -> Result<(), oclprim::Error> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let host: Vec<f32> = (0..ROWS * COLS).map(|i| (i % 100) as f32).collect();
    let matrix = device.upload(&host)?;
    let mut columns = device.zeroed::<f32>(ROWS * COLS)?;
    device.transpose_into(&matrix, (ROWS, COLS), &mut columns)?;

    // Each column's sum goes to its element of `sums`. The first call allocates scratch, which the later calls reuse.
    // The calls do not wait, because the device runs its commands in order.
    let mut sums = device.zeroed::<f32>(COLS)?;
    for c in 0..COLS {
        let column = columns.view(c * ROWS..(c + 1) * ROWS)?;
        device.reduce_into(column, Sum, sums.view_mut(c..=c)?)?;
    }

    // The device copies a part of a buffer, which may begin at any offset.
    let mut some = device.zeroed::<f32>(10)?;
    device.copy(sums.view(7..17)?, &mut some)?;

    let (sums, some) = (sums.to_vec()?, some.to_vec()?);
    println!("sums of columns 7 to 16: {some:?}");
    for (c, sum) in sums.iter().enumerate() {
        let want: f32 = (0..ROWS).map(|r| host[r * COLS + c]).sum();
        assert_eq!(*sum, want);
    }
    assert_eq!(some, sums[7..17]);
    Ok(())
}
