//! Spec of transpositions: cases, programs and benchmark cases.

use std::fmt::Debug;

use bytemuck::Pod;

use super::shared::obvious;
use crate::{
    Device, ElementType, Matrices, ProgramSpec,
    bench::Bench,
    check::{Case, Failure, Level, Spec, data::random_bits, everywhere, guarded, poison, same_bytes},
    ladder::Climb,
    layout::transpose::{in_place, mapped},
    tuning::Tuned,
};

/// The primitive's entry in the registry.
pub(crate) struct Transpose;

/// Shapes at the edges of blocks and tiles, prime, narrow and flat.
fn shapes(level: Level) -> Vec<(usize, usize)> {
    let mut shapes = vec![(0, 0), (0, 5), (1, 1), (1, 7), (2, 3), (3, 70), (65, 33), (64, 64), (72, 40), (1040, 3)];
    if level >= Level::Quick {
        shapes.extend([(128, 128), (129, 127), (5, 3001), (5003, 16), (256, 384), (331, 257)]);
        // These shapes are narrow, and their long sides are whole words.
        shapes.extend([(3, 8208), (8208, 3)]);
        // Here rows of the output begin anywhere within sectors of memory, and have many tiles.
        shapes.extend([(1031, 133), (1155, 130)]);
    }
    if level >= Level::Full {
        shapes.extend([(7, 0), (7, 1), (1, 10_007), (4099, 1), (2, 65_537), (70_001, 3), (17, 15), (16, 16), (15, 17)]);
        shapes.extend([(4, 4112), (5024, 7), (16, 2064), (2, 20_000), (20_000, 2)]);
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

fn check<T: Pod + Send + Sync + PartialEq + Debug>(
    device: &Device,
    (rows, cols): (usize, usize),
    (from, to): (usize, usize),
) -> Result<(), Failure> {
    let all = random_bits::<T>(rows * cols + from, (rows * 31 + cols) as u64);
    let input = &all[from..];
    let on_device = device.upload(&all)?;
    let got = guarded(device, rows * cols, to, |output| {
        Ok(device.transpose_into(on_device.view(from..)?, (rows, cols), output)?)
    })?;
    let want = if device.is_cpu() {
        obvious(input, rows, cols)
    } else {
        Device::cpu().transpose(input, (rows, cols))?.to_vec()?
    };
    same_bytes(&got, &want, "out")
}

fn cases<T: Pod + Send + Sync + PartialEq + Debug>(element: ElementType, level: Level, cases: &mut Vec<Case>) {
    for (rows, cols) in shapes(level) {
        for &(from, to) in offsets(level) {
            let form = format!("{}-byte elements", size_of::<T>());
            let shape = format!("{rows} x {cols} at {from} to {to}");
            cases.push(Case::new(form, element, shape, "bits", rows * cols, move |device| {
                everywhere(check::<T>(device, (rows, cols), (from, to)))
            }));
        }
    }
}

/// Matrices with gaps, or a batch of matrices: shape, leading dimensions, count and strides.
#[derive(Clone, Copy, Debug)]
struct Batch {
    shape: (usize, usize),
    leading: (usize, usize),
    count: usize,
    strides: Option<(usize, usize)>,
}

fn batches(level: Level) -> Vec<Batch> {
    let gaps = |shape, leading| Batch { shape, leading, count: 1, strides: None };
    let many = |shape, leading, count, strides| Batch { shape, leading, count, strides };
    let mut all = vec![
        gaps((33, 20), (24, 40)),
        gaps((64, 72), (80, 64)),
        gaps((1, 9), (9, 3)),
        many((5, 7), (7, 5), 9, None),
        many((40, 24), (32, 48), 3, Some((1300, 1200))),
        many((20, 30), (30, 20), 4, Some((0, 600))),
        many((3, 0), (5, 6), 2, None),
        many((64, 64), (64, 64), 2, Some((4160, 4096))),
        many((4, 1040), (1044, 4), 2, None),
    ];
    if level >= Level::Quick {
        all.extend([
            gaps((300, 131), (131, 301)),
            gaps((4, 2056), (2064, 4)),
            gaps((2056, 4), (4, 2064)),
            many((1, 6), (8, 2), 5, None),
            many((2056, 4), (4, 2060), 3, Some((9000, 8300))),
            many((100, 68), (68, 100), 40, None),
            many((64, 64), (64, 64), 5, Some((4100, 4096))),
            gaps((1024, 130), (131, 1027)),
            many((1031, 129), (129, 1032), 2, Some((133_000, 133_131))),
        ]);
    }
    if level >= Level::Full {
        all.extend([
            many((2, 2), (2, 2), 70_001, None),
            many((300, 200), (201, 300), 2, Some((70_000, 60_001))),
            many((1, 1), (1, 1), 1000, Some((3, 2))),
            gaps((1000, 1000), (1024, 1024)),
            gaps((2, 40_000), (50_000, 3)),
        ]);
    }
    all
}

impl Batch {
    fn matrices(&self) -> Matrices {
        let matrices =
            Matrices::new(self.shape.0, self.shape.1).leading(self.leading.0, self.leading.1).count(self.count);
        self.strides.map_or(matrices, |(input, output)| matrices.strides(input, output))
    }

    /// Offsets of element (r, c) of matrix b in the input and in the output.
    fn offsets(&self, b: usize, r: usize, c: usize) -> (usize, usize) {
        let ((rows, cols), (ld_in, ld_out)) = (self.shape, self.leading);
        let (step_in, step_out) = self.strides.unwrap_or((rows * ld_in, cols * ld_out));
        (b * step_in + r * ld_in + c, b * step_out + c * ld_out + r)
    }

    fn check<T: Pod + Send + Sync + PartialEq + Debug>(
        &self,
        device: &Device,
        (from, to): (usize, usize),
    ) -> Result<(), Failure> {
        let ((rows, cols), count) = (self.shape, self.count);
        let empty = rows * cols * count == 0;
        let ends = if empty { (0, 0) } else { self.offsets(count - 1, rows - 1, cols - 1) };
        let len = |end| if empty { 0 } else { end + 1 };
        let all = random_bits::<T>(len(ends.0) + from, 7);
        let x = device.upload(&all)?;
        let matrices = self.matrices();
        let got =
            guarded(device, len(ends.1), to, |out| Ok(device.transpose_into(x.view(from..)?, &matrices, out)?))?;
        // `guarded` fills the output with poison first.
        let mut want = vec![poison::<T>(); len(ends.1)];
        for i in 0..rows * cols * count {
            let (b, r, c) = (i / (rows * cols), i / cols % rows, i % cols);
            let (source, target) = self.offsets(b, r, c);
            want[target] = all[from + source];
        }
        same_bytes(&got, &want, "out")
    }
}

fn batch_cases<T: Pod + Send + Sync + PartialEq + Debug>(element: ElementType, level: Level, cases: &mut Vec<Case>) {
    for batch in batches(level) {
        for &at in offsets(level) {
            let Batch { shape: (rows, cols), leading, count, strides } = batch;
            let steps = strides.map_or(String::new(), |(from, to)| format!(" every {from} to {to}"));
            let text = format!("{count} of {rows} x {cols} by {leading:?}{steps} at {} to {}", at.0, at.1);
            let form = format!("batch, {}-byte elements", size_of::<T>());
            let run = move |device: &Device| everywhere(batch.check::<T>(device, at));
            cases.push(Case::new(form, element, text, "bits", count * rows * cols, run));
        }
    }
}

/// Shape of about `n` elements, nearly square, with a power of two of rows.
fn near_square(n: usize) -> (usize, usize) {
    let rows = 1 << (n.max(1).ilog2() / 2);
    (rows, n / rows)
}

fn bench<T: Pod + Send + Sync + PartialEq + Debug>(
    form: &str,
    element: ElementType,
    shape: fn(usize) -> (usize, usize),
) -> Bench {
    let bytes = move |n| {
        let (rows, cols) = shape(n);
        2 * (rows * cols * size_of::<T>()) as u64
    };
    Bench::new(form, element, bytes, move |device, n| {
        let (rows, cols) = shape(n);
        let x = device.upload(&random_bits::<T>(rows * cols, n as u64))?;
        let state = (device.clone(), x, device.zeroed::<T>(rows * cols)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            move |(device, x, out)| device.transpose_into(&*x, (rows, cols), out),
            move |(_, x, out)| {
                let want = Device::cpu().transpose(&x.to_vec()?, (rows, cols))?.to_vec()?;
                same_bytes(&out.to_vec()?, &want, "out")
            },
        ))
    })
}

/// Shape of about `n` elements whose sides have a common divisor, such as 10,000 x 30,000.
fn three_times_as_wide(n: usize) -> (usize, usize) {
    let rows = (n as f64 / 3.0).sqrt() as usize / 8 * 8;
    (rows, 3 * rows)
}

/// Benchmark case of a batch of contiguous matrices of 256 x 256.
fn bench_batch() -> Bench {
    let count = |n: usize| (n >> 16).max(1);
    let bytes = move |n| (count(n) << 19) as u64;
    Bench::new("batch of 256 x 256", ElementType::F32, bytes, move |device, n| {
        let matrices = Matrices::new(256, 256).count(count(n));
        let x = device.upload(&random_bits::<u32>(count(n) << 16, n as u64))?;
        let state = (device.clone(), x, device.zeroed::<u32>(count(n) << 16)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            move |(device, x, out)| device.transpose_into(&*x, &matrices, out),
            move |(_, x, out)| {
                let want = Device::cpu().transpose(&x.to_vec()?, &matrices)?.to_vec()?;
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
        batch_cases::<u32>(ElementType::U32, level, &mut all);
        in_place::spec::cases(level, &mut all);
        mapped::spec::cases(level, &mut all);
        if level >= Level::Quick {
            batch_cases::<u8>(ElementType::U8, level, &mut all);
        }
        if level >= Level::Full {
            batch_cases::<u16>(ElementType::U16, level, &mut all);
            batch_cases::<u64>(ElementType::U64, level, &mut all);
            batch_cases::<u128>(ElementType::U64, level, &mut all);
            batch_cases::<[u8; 3]>(ElementType::U8, level, &mut all);
            cases::<[u16; 3]>(ElementType::U16, level, &mut all);
            cases::<[u8; 13]>(ElementType::U8, level, &mut all);
        }
        all
    }

    fn benches(&self) -> Vec<Bench> {
        let own = vec![
            bench::<u8>("1-byte elements", ElementType::U8, near_square),
            bench::<u16>("2-byte elements", ElementType::U16, near_square),
            bench::<u32>("4-byte elements", ElementType::U32, near_square),
            bench::<u64>("8-byte elements", ElementType::U64, near_square),
            bench::<u128>("16-byte elements", ElementType::U64, near_square),
            bench::<u32>("three times as wide", ElementType::F32, three_times_as_wide),
            bench::<u32>("odd sides", ElementType::F32, |n| (near_square(n).0 / 2 + 1, near_square(n).0 - 1)),
            bench::<f32>("n / 3 x 3", ElementType::F32, |n| (n / 3 / 16 * 16, 3)),
            bench::<f32>("3 x n / 3", ElementType::F32, |n| (3, n / 3 / 16 * 16)),
            bench_batch(),
            in_place::spec::bench("square in place", |n| (near_square(n).0, near_square(n).0)),
            in_place::spec::bench("three times as wide in place", three_times_as_wide),
        ];
        own.into_iter().chain(mapped::spec::benches()).collect()
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        use super::gpu::{Shape, plan};
        let shapes = (1..=16).map(|size| Shape::dense(100, 100, size));
        // The narrow shapes have each number of columns from 2 to 16. Element sizes of 1, 2, 4 and 8 bytes alternate.
        let narrow = (2..=16).map(|cols| Shape::dense(1 << 20, cols, 1 << (cols % 4)));
        let odd = [1, 2, 4, 8].map(|size| Shape::dense(1031, 133, size));
        // Here work-items read different numbers of elements.
        let uneven = [Shape::dense(8193, 16, 1), Shape::dense(2049, 32, 2)];
        let each = |shape: Shape| [false, true].map(|wide| plan(&shape, caps, |_| wide).program);
        let apart = shapes.chain(narrow).chain(odd).chain(uneven).flat_map(each);
        let forms = in_place::gpu::programs(caps).into_iter().chain(mapped::spec::programs(caps));
        apart.chain(forms).chain(super::ladder::device::programs(caps)).collect()
    }
}
