//! Moves three batches to a device and back while kernels run, and prints when each command ran.
//!
//! Uploads, kernels and downloads have queues of their own. On a device with memory of its own, the
//! kernels of a batch overlap with two transfers: the upload of the next batch, and the download of
//! the previous one.
//!
//! `cargo run --release --example overlap -- 24` for batches of 2^24 elements

use oclprim::{Device, Timing, op::Sum};

const BATCHES: usize = 3;
/// The width of the timeline, in characters.
const WIDTH: usize = 64;

fn main() -> Result<(), oclprim::Error> {
    let bits = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let n = 1usize << u32::clamp(bits, 3, 28);
    let device = Device::best()?.profiled()?;
    println!("device: {}\n{BATCHES} batches of {n} u32", device.info());

    // Pinning takes time, so a program allocates pinned memory once and reuses it.
    let batch = |_| {
        let mut samples = device.pinned::<u32>(n)?;
        samples.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 8) as u32);
        Ok((samples, device.pinned::<u32>(n)?))
    };
    let mut batches = (0..BATCHES).map(batch).collect::<Result<Vec<_>, oclprim::Error>>()?;
    for round in ["with the builds of the kernels", "again"] {
        let mut running = Vec::new();
        for (samples, out) in std::mem::take(&mut batches) {
            let (x, upload) = device.upload_async(samples)?;
            // The kernels wait for the upload, and the download for the kernels. The host waits for none of them.
            let sums = device.scan(&x, Sum)?;
            running.push((upload, sums.into_read_async(out)?));
        }
        for (upload, download) in running {
            let (samples, sums) = (upload.wait()?, download.wait()?);
            assert_eq!((sums[7], sums[n - 1]), (28, n as u32 / 8 * 28));
            batches.push((samples, sums));
        }
        println!("\n{round}:");
        print(&device.take_timings()?);
    }
    Ok(())
}

/// Prints a line for each command: a bar from its start to its end.
fn print(timings: &[Timing]) {
    let (Some(first), Some(last)) = (timings.iter().map(|it| it.start).min(), timings.iter().map(|it| it.end).max())
    else {
        return println!("no events: the CPU backend has no queues");
    };
    let mut timings = timings.to_vec();
    timings.sort_by_key(|it| it.start);
    let column = |time: u64| ((time - first) as usize * WIDTH / (last - first).max(1) as usize).min(WIDTH - 1);
    for Timing { name, start, end, .. } in timings {
        let bar = format!("{}{}", " ".repeat(column(start)), "#".repeat(column(end) - column(start) + 1));
        println!(
            "{name:>22} |{bar:<WIDTH$}| {:9.3} to {:9.3} ms",
            (start - first) as f64 / 1e6,
            (end - first) as f64 / 1e6
        );
    }
}
