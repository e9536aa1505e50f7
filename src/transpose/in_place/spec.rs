//! What is checked and measured of transpositions in place.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::{
    Device, ElementType, Scratch,
    bench::Bench,
    check::{Case, Failure, Level, data::random_bits, guarded, same_bytes},
    ladder::Climb,
};

/// Squares and rectangles at the edges of tiles, with and without a common divisor.
fn shapes(level: Level) -> Vec<(usize, usize)> {
    let mut shapes = vec![(0, 3), (1, 9), (2, 2), (33, 33), (64, 64), (2, 3), (12, 18), (18, 12), (7, 30), (40, 3)];
    if level >= Level::Quick {
        shapes.extend([(65, 65), (200, 200), (257, 257), (3, 2001), (2000, 3), (96, 160), (101, 103)]);
    }
    if level >= Level::Full {
        shapes.extend([(1, 1), (31, 31), (63, 63), (127, 127), (129, 129), (1024, 1024), (1000, 3000), (3000, 1000)]);
        shapes.extend([(4, 100_000), (100_000, 6), (1021, 2039), (2, 70_001), (70_001, 2)]);
    }
    shapes
}

fn check<T: Pod + PartialEq + Debug>(device: &Device, (rows, cols): (usize, usize), at: usize) -> Result<(), Failure> {
    let all = random_bits::<T>(rows * cols, (rows * 31 + cols) as u64);
    let got = guarded(device, rows * cols, at, |mut data| {
        data.write(&all)?;
        Ok(device.transpose_in_place(data, rows, cols, &mut Scratch::new())?)
    })?;
    let want = if device.is_cpu() {
        (0..cols).flat_map(|c| (0..rows).map(move |r| (r, c))).map(|(r, c)| all[r * cols + c]).collect()
    } else {
        Device::cpu().transpose(&all, rows, cols)?.to_vec()?
    };
    same_bytes(&got, &want, "data")
}

fn of_type<T: Pod + PartialEq + Debug>(element: ElementType, level: Level, cases: &mut Vec<Case>) {
    for (i, (rows, cols)) in shapes(level).into_iter().enumerate() {
        let offsets: &[usize] = if level == Level::Full { &[0, 3] } else { &[0, 3][i % 2..][..1] };
        for &at in offsets {
            let form = format!("in place, {}-byte elements", size_of::<T>());
            let text = format!("{rows} x {cols} at {at}");
            let run = move |device: &Device| check::<T>(device, (rows, cols), at);
            cases.push(Case::new(form, element, text, "bits", rows * cols, run));
        }
    }
}

pub(crate) fn cases(level: Level) -> Vec<Case> {
    let mut all = Vec::new();
    of_type::<u32>(ElementType::U32, level, &mut all);
    of_type::<[u8; 3]>(ElementType::U8, level, &mut all);
    if level >= Level::Quick {
        of_type::<u8>(ElementType::U8, level, &mut all);
    }
    if level >= Level::Full {
        of_type::<u16>(ElementType::U16, level, &mut all);
        of_type::<u64>(ElementType::U64, level, &mut all);
        of_type::<u128>(ElementType::U64, level, &mut all);
    }
    all
}

/// A bench in place; what a run turned is put back before the next.
pub(crate) fn bench(form: &str, shape: fn(usize) -> (usize, usize)) -> Bench {
    let bytes = move |n| 8 * (shape(n).0 * shape(n).1) as u64;
    Bench::new(form, ElementType::F32, bytes, move |device, n| {
        let (rows, cols) = shape(n);
        let original = device.upload(&random_bits::<u32>(rows * cols, n as u64))?;
        let state = (device.clone(), device.zeroed::<u32>(rows * cols)?, original, Scratch::new());
        Ok(Climb::new(
            state,
            |(device, x, original, _)| device.copy(&*original, x),
            move |(device, x, _, scratch)| device.transpose_in_place(x, rows, cols, scratch),
            move |(_, x, original, _)| {
                let want = Device::cpu().transpose(&original.to_vec()?, rows, cols)?.to_vec()?;
                same_bytes(&x.to_vec()?, &want, "data")
            },
        ))
    })
}
