//! Equalises the histogram of each channel of an RGB image, through a look-up table for each channel.
//!
//! `cargo run --release --features macros --example equalise`

mod common;

use common::{numbers, timed};
use oclprim::{Bins, Device, Input, Result, Source, map, op::Sum, source::counting};

const PIXELS: usize = 640 * 480;

fn equalised(device: &Device, image: &[u8]) -> Result<Vec<u8>> {
    let found = device.histogram(image.channels(3), &vec![Bins::ids(256)?; 3])?;
    let counts: Vec<u64> = found.into_iter().flat_map(|channel| channel.counts).collect();
    let sums = device.scan(Input::from(&counts).nd(&[3, 256])?.along(1), Sum)?;
    let pixels = image.len() as u64 / 3;
    let tables = device.transform(sums.map(map!(move |sum: u64| (sum * 255 / pixels) as u8, pixels: u64)))?;
    let entries = image.zip(counting(0u32)).map(map!(|(x, i): (u8, u32)| i % 3 * 256 + x as u32));
    device.transform(tables.gathered(entries))?.into_vec()
}

/// The same, in plain Rust.
fn plain(image: &[u8]) -> Vec<u8> {
    let mut tables = [[0; 256]; 3];
    for pixel in image.chunks(3) {
        tables.iter_mut().zip(pixel).for_each(|(table, &x)| table[x as usize] += 1);
    }
    for table in &mut tables {
        let mut sum = 0;
        for count in table {
            sum += *count;
            *count = sum * 255 / PIXELS;
        }
    }
    image.chunks(3).flat_map(|pixel| [0, 1, 2].map(|c| tables[c][pixel[c] as usize] as u8)).collect()
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    // The product of two random numbers: a dark image.
    let image: Vec<u8> = numbers(1, 3 * PIXELS).map(|x| (((x >> 56) * (x >> 48 & 255)) >> 8) as u8).collect();
    let found = timed("oclprim", || equalised(&device, &image))?;
    let mean = |image: &[u8]| image.iter().map(|&x| f64::from(x)).sum::<f64>() / image.len() as f64;
    println!("before: {:?}, mean {:.4}", &image[..9], mean(&image));
    println!("after: {:?}, mean {:.4}", &found[..9], mean(&found));
    assert!(found == timed("plain Rust", || plain(&image)));
    Ok(())
}
