//! Particles in a box: sorts them by the cell of a grid, and finds each cell's range and mean velocity.
//!
//! `cargo run --release --features macros --example particles`

mod common;

use bytemuck::{Pod, Zeroable};
use common::{numbers, timed};
use oclprim::{Bound, Buffer, Device, Order, Result, SharedType, Source, map, op::Mean};

const PARTICLES: usize = 200_000;
/// The grid has 64 x 64 cells.
const CELLS: usize = 64 * 64;

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Particle {
    position: [f32; 2],
    velocity: [f32; 2],
}

/// Particles in the order of their cells, the offset of each cell, and the cell's mean velocity along both axes.
#[derive(PartialEq)]
struct Cells {
    particles: Vec<Particle>,
    offsets: Vec<u32>,
    velocities: [Vec<f32>; 2],
}

fn cells(device: &Device, particles: &[Particle]) -> Result<Cells> {
    let particles = device.upload(particles)?;
    let cell = map!(|it: Particle| (it.position[1] * 64.0) as u32 * 64 + (it.position[0] * 64.0) as u32);
    let (cells, particles) = device.sort(particles.map(cell).with(&particles), Order::ascending())?;
    let all = device.iota(CELLS + 1, 0u32, 1)?;
    let offsets: Buffer<u32> = device.search(&cells, &all, Bound::Lower, Order::ascending())?;
    let vx = device.reduce(particles.map(map!(|it: Particle| it.velocity[0])).segments(&offsets), Mean)?;
    let vy = device.reduce(particles.map(map!(|it: Particle| it.velocity[1])).segments(&offsets), Mean)?;
    let velocities = [vx.into_vec()?, vy.into_vec()?];
    Ok(Cells { particles: particles.into_vec()?, offsets: offsets.into_vec()?, velocities })
}

/// The same, in plain Rust.
fn plain(particles: &[Particle]) -> Cells {
    let cell = |it: &Particle| (it.position[1] * 64.0) as usize * 64 + (it.position[0] * 64.0) as usize;
    let mut particles = particles.to_vec();
    particles.sort_by_key(cell);
    let mut offsets = vec![0; CELLS + 1];
    particles.iter().for_each(|it| offsets[cell(it) + 1] += 1);
    (0..CELLS).for_each(|c| offsets[c + 1] += offsets[c]);
    let velocities = [0, 1].map(|axis| {
        let ranges = offsets.windows(2).map(|ends| &particles[ends[0] as usize..ends[1] as usize]);
        let mean = |range: &[Particle]| {
            let sum: f64 = range.iter().map(|it| f64::from(it.velocity[axis])).sum();
            (sum / range.len() as f64) as f32
        };
        ranges.map(mean).collect()
    });
    Cells { particles, offsets, velocities }
}

fn main() -> Result<()> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let number = numbers(1, 4 * PARTICLES).map(|x| (x >> 40) as f32 / 16_777_216.0).collect::<Vec<_>>();
    let particle = |x: &[f32]| Particle { position: [x[0], x[1]], velocity: [x[2] - 0.5, x[3] - 0.5] };
    let particles: Vec<Particle> = number.chunks(4).map(particle).collect();
    let found = timed("oclprim", || cells(&device, &particles))?;
    println!("offsets: {:?}", &found.offsets[1..9]);
    println!("first position: {:.7?}", found.particles[0].position);
    println!("mean velocities: {:.6?} {:.6?}", &found.velocities[0][..4], &found.velocities[1][..4]);
    assert!(found == timed("plain Rust", || plain(&particles)));
    Ok(())
}
