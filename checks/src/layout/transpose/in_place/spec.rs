//! Cases and benchmark cases of transpositions in place.

use std::fmt::Debug;

use bytemuck::Pod;

use super::{STRIP_BYTES, transpose};
use crate::{
    Device, ElementType,
    bench::Bench,
    check::{Case, Failure, Level, data::random_bits, guarded, same_bytes},
    ladder::Climb,
    layout::transpose::shared::obvious,
};

/// Bytes of a strip. They are so few that small matrices have several strips and a narrower last one.
const FEW_BYTES: usize = 256;

/// Squares at the edges of blocks and tiles, and shapes that fit into scratch.
fn squares(level: Level) -> Vec<(usize, usize)> {
    let mut shapes = vec![(1, 9), (33, 33), (72, 72), (2, 2), (12, 18)];
    if level >= Level::Quick {
        shapes.extend([(0, 3), (64, 64), (65, 65), (200, 200), (257, 257), (101, 103)]);
    }
    if level >= Level::Full {
        shapes.extend([(1, 1), (9, 1), (31, 31), (63, 63), (127, 127), (128, 128), (129, 129), (1024, 1024)]);
    }
    shapes
}

/// Rectangles: some have coprime sides, some have sides with a common divisor, and some have one side that divides the
/// other.
fn rectangles(level: Level) -> Vec<(usize, usize)> {
    let mut shapes = vec![(2, 3), (12, 18), (30, 7), (3, 70), (8, 24)];
    if level >= Level::Quick {
        shapes.extend([
            (18, 12),
            (7, 30),
            (20, 60),
            (3, 300),
            (300, 3),
            (60, 20),
            (96, 160),
            (101, 103),
            (2, 2001),
            (300, 200),
        ]);
    }
    if level >= Level::Full {
        shapes.extend([(1000, 3000), (3000, 1000), (4, 100_000), (100_000, 6), (1021, 2039), (2, 70_001), (70_001, 2)]);
    }
    shapes
}

fn check<T: Pod + PartialEq + Debug>(
    device: &Device,
    (rows, cols): (usize, usize),
    at: usize,
    strip: usize,
) -> Result<(), Failure> {
    let all = random_bits::<T>(rows * cols, (rows * 31 + cols) as u64);
    let got = guarded(device, rows * cols, at, |mut data| {
        data.write(&all)?;
        Ok(transpose(device, data.into(), (rows, cols), strip)?)
    })?;
    let want = if device.is_cpu() {
        obvious(&all, rows, cols)
    } else {
        let mut want = all;
        transpose(&Device::cpu(), (&mut want).into(), (rows, cols), strip)?;
        want
    };
    same_bytes(&got, &want, "data")
}

fn of_type<T: Pod + PartialEq + Debug>(element: ElementType, level: Level, cases: &mut Vec<Case>) {
    let forms = [("in place", STRIP_BYTES, squares(level)), ("in place by strips", FEW_BYTES, rectangles(level))];
    for (form, strip, shapes) in forms {
        for (i, (rows, cols)) in shapes.into_iter().enumerate() {
            let offsets: &[usize] = if level == Level::Full { &[0, 3] } else { &[0, 3][i % 2..][..1] };
            for &at in offsets {
                let form = format!("{form}, {}-byte elements", size_of::<T>());
                let run = move |device: &Device| check::<T>(device, (rows, cols), at, strip);
                cases.push(Case::new(form, element, format!("{rows} x {cols} at {at}"), "bits", rows * cols, run));
            }
        }
    }
}

pub(in crate::layout::transpose) fn cases(level: Level, cases: &mut Vec<Case>) {
    of_type::<u32>(ElementType::U32, level, cases);
    if level >= Level::Quick {
        of_type::<[u8; 3]>(ElementType::U8, level, cases);
    }
    if level >= Level::Full {
        of_type::<u8>(ElementType::U8, level, cases);
        of_type::<u16>(ElementType::U16, level, cases);
        of_type::<u64>(ElementType::U64, level, cases);
        of_type::<u128>(ElementType::U64, level, cases);
    }
}

/// Benchmark case that restores the matrix before each run.
pub(in crate::layout::transpose) fn bench(form: &str, shape: fn(usize) -> (usize, usize)) -> Bench {
    let bytes = move |n| 8 * (shape(n).0 * shape(n).1) as u64;
    Bench::new(form, ElementType::F32, bytes, move |device, n| {
        let (rows, cols) = shape(n);
        let original = device.upload(&random_bits::<u32>(rows * cols, n as u64))?;
        let state = (device.clone(), device.zeroed::<u32>(rows * cols)?, original);
        Ok(Climb::new(
            state,
            |(device, x, original)| device.copy(&*original, x),
            move |(device, x, _)| device.transpose_in_place(x, rows, cols),
            move |(_, x, original)| {
                let want = Device::cpu().transpose(&original.to_vec()?, (rows, cols))?.to_vec()?;
                same_bytes(&x.to_vec()?, &want, "data")
            },
        ))
    })
}
