//! What is checked of transpositions.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::{
    Capabilities, Device, ElementType, ProgramSpec,
    bench::Bench,
    check::{Case, Failure, Level, Spec, data::Rng, guarded, poison, same_bytes},
    ladder::Climb,
};

/// The primitive's entry in the registry.
pub(crate) struct Transpose;

/// Shapes at the edges of blocks and tiles, prime, narrow and flat.
fn shapes(level: Level) -> Vec<(usize, usize)> {
    let mut shapes = vec![(0, 0), (0, 5), (1, 1), (1, 7), (2, 3), (3, 70), (65, 33), (64, 64), (72, 40)];
    if level >= Level::Quick {
        shapes.extend([(128, 128), (129, 127), (5, 3001), (5003, 16), (256, 384), (331, 257)]);
    }
    if level >= Level::Full {
        shapes.extend([(7, 0), (7, 1), (1, 10_007), (4099, 1), (2, 65_537), (70_001, 3), (17, 15), (16, 16), (15, 17)]);
        shapes.extend([(31, 33), (32, 32), (63, 65), (127, 130), (255, 257), (1024, 1024), (1021, 2039), (2048, 66)]);
    }
    shapes
}

/// Offsets of input and output into their buffers.
fn offsets(level: Level) -> &'static [(usize, usize)] {
    match level {
        Level::Tiny | Level::Quick => &[(0, 0), (3, 1)],
        Level::Full => &[(0, 0), (0, 1), (1, 0), (4, 8), (5, 7)],
    }
}

/// `n` elements of random bits.
fn random<T: Pod>(n: usize, seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..(n * size_of::<T>()).div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).collect();
    bytemuck::pod_collect_to_vec(&bytes[..n * size_of::<T>()])
}

/// The definition.
fn obvious<T: Pod>(input: &[T], rows: usize, cols: usize) -> Vec<T> {
    (0..cols).flat_map(|c| (0..rows).map(move |r| input[r * cols + c])).collect()
}

fn check<T: Pod + PartialEq + Debug>(
    device: &Device,
    (rows, cols): (usize, usize),
    (from, to): (usize, usize),
) -> Result<(), Failure> {
    let all = random::<T>(rows * cols + from, (rows * 31 + cols) as u64);
    let input = &all[from..];
    let on_device = device.upload(&all)?;
    let got = guarded(device, rows * cols, to, |output| {
        Ok(device.transpose_into(on_device.view(from..)?, rows, cols, output)?)
    })?;
    let want = if device.is_cpu() {
        obvious(input, rows, cols)
    } else {
        Device::cpu().transpose(input, rows, cols)?.to_vec()?
    };
    same_bytes(&got, &want, "out")
}

fn cases<T: Pod + PartialEq + Debug>(element: ElementType, level: Level, cases: &mut Vec<Case>) {
    for (rows, cols) in shapes(level) {
        for &(from, to) in offsets(level) {
            let form = format!("{}-byte elements", size_of::<T>());
            let shape = format!("{rows} x {cols} at {from} to {to}");
            cases.push(Case::new(form, element, shape, "bits", rows * cols, move |device| {
                check::<T>(device, (rows, cols), (from, to))
            }));
        }
    }
}

/// The shape of about `n` elements that is as near to a square as rows of a power of two come.
fn near_square(n: usize) -> (usize, usize) {
    let rows = 1 << (n.max(1).ilog2() / 2);
    (rows, n / rows)
}

fn bench<T: Pod + PartialEq + Debug>(element: ElementType) -> Bench {
    let bytes = |n| {
        let (rows, cols) = near_square(n);
        2 * (rows * cols * size_of::<T>()) as u64
    };
    Bench::new(format!("{}-byte elements", size_of::<T>()), element, bytes, |device, n| {
        let (rows, cols) = near_square(n);
        let x = device.upload(&random::<T>(rows * cols, n as u64))?;
        let state = (device.clone(), x, device.zeroed::<T>(rows * cols)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            move |(device, x, out)| device.transpose_into(&*x, rows, cols, out),
            move |(_, x, out)| {
                let want = Device::cpu().transpose(&x.to_vec()?, rows, cols)?.to_vec()?;
                same_bytes(&out.to_vec()?, &want, "out")
            },
        ))
    })
}

impl Spec for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut all = Vec::new();
        cases::<u8>(ElementType::U8, level, &mut all);
        cases::<u16>(ElementType::U16, level, &mut all);
        cases::<u32>(ElementType::U32, level, &mut all);
        cases::<u64>(ElementType::U64, level, &mut all);
        cases::<u128>(ElementType::U64, level, &mut all);
        cases::<[u8; 3]>(ElementType::U8, level, &mut all);
        cases::<[u32; 3]>(ElementType::U32, level, &mut all);
        if level >= Level::Full {
            cases::<[u16; 3]>(ElementType::U16, level, &mut all);
            cases::<[u8; 13]>(ElementType::U8, level, &mut all);
        }
        all
    }

    fn benches(&self) -> Vec<Bench> {
        vec![
            bench::<u8>(ElementType::U8),
            bench::<u16>(ElementType::U16),
            bench::<u32>(ElementType::U32),
            bench::<u64>(ElementType::U64),
        ]
    }

    #[cfg(feature = "opencl")]
    fn programs(&self, caps: &Capabilities) -> Vec<ProgramSpec> {
        use super::gpu::{Shape, plan};
        let shape = |size| Shape { rows: 100, cols: 100, size, input: 0, output: 0 };
        let of_size = |size| [false, true].map(|wide| plan(shape(size), caps, wide).program);
        (1..=16).flat_map(of_size).chain(super::ladder::device::programs(caps)).collect()
    }

    #[cfg(not(feature = "opencl"))]
    fn programs(&self, _: &Capabilities) -> Vec<ProgramSpec> {
        Vec::new()
    }
}
