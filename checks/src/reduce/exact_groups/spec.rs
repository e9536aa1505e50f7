//! Cases of exact sums and means of segments, along axes and by key, and their programs. The sets of
//! numbers are those of exact sums of whole inputs.

use super::{Exact, Form, plan_segments};
use crate::{
    Device, ElementType, ExactSum, Float, Layout, ProgramSpec, Source, bf16,
    check::{Case, Failure, Level, exact_mean, exact_sum, guarded, hard::Hard, same, segments::Cut},
    f16,
    op::{Mean, Sum, Usage},
    reduce::{
        axis::{Lines, exact as along_an_axis},
        exact::spec::{Registers, factors},
    },
    tuning::Tuned,
};

/// The result of a group: by the oracle or, for many numbers, by [`ExactSum`], which has cases of its own.
fn wanted<T: Float>(of: Exact, group: &[T]) -> T {
    match of {
        Exact::Sum if group.len() > 3000 => ExactSum::from_iter(group).round(),
        Exact::Mean if group.len() > 3000 => ExactSum::from_iter(group).mean(group.len() as u64),
        Exact::Sum => exact_sum::<T, T>(group),
        Exact::Mean => exact_mean::<T, T>(group),
    }
}

/// Adds a case for each of the given kinds of registers, each set of numbers and each size.
fn grid_of<T: Float, S: Copy + std::fmt::Debug + Send + Sync + 'static>(
    name: &str,
    registers: &[(Registers, &str)],
    (sizes, n): (&[S], fn(S) -> usize),
    run: impl Fn(&Device, Hard, S) -> Result<(), Failure> + Copy + Send + Sync + 'static,
    cases: &mut Vec<Case>,
) {
    for &(registers, suffix) in registers {
        for &size in sizes {
            for hard in Hard::all::<T>() {
                let form = format!("{name} of hard numbers{suffix}").to_lowercase();
                let case = Case::new(form, T::TYPE, format!("{size:?}"), hard.name(), n(size), move |device| {
                    run(&registers.of(device)?, hard, size)
                });
                cases.push(case);
            }
        }
    }
}

/// As [`grid_of`], for all kinds of registers. `run` gets the numbers themselves, not the name of their set.
fn grid<T: Float, S: Copy + std::fmt::Debug + Send + Sync + 'static>(
    of: Exact,
    name: &str,
    sizes: &[S],
    n: fn(S) -> usize,
    run: impl Fn(&Device, Vec<T>, S) -> Result<(), Failure> + Copy + Send + Sync + 'static,
    cases: &mut Vec<Case>,
) {
    let run = move |device: &Device, hard: Hard, size| run(device, hard.generate::<T>(n(size), n(size) as u64), size);
    grid_of::<T, S>(&format!("{of:?} exact {name}"), &Registers::ALL, (sizes, n), run, cases);
}

/// A number of elements, and the lengths of segments.
type Segments = (usize, Cut);

fn segments<T: Float>(of: Exact, sizes: &[Segments], cases: &mut Vec<Case>) {
    let run = move |device: &Device, x: Vec<T>, (n, cut): Segments| {
        let offsets: Vec<u32> = cut.offsets(n);
        let parts = offsets.windows(2).map(|pair| &x[pair[0] as usize..pair[1] as usize]);
        let want: Vec<T> = parts.map(|part| wanted(of, part)).collect();
        let got = guarded(device, want.len(), 1, |out| {
            match of {
                Exact::Sum => device.reduce_into(x.segments(&offsets), Sum.exact(), out)?,
                Exact::Mean => device.reduce_into(x.segments(&offsets), Mean, out)?,
            }
            Ok(())
        })?;
        same(&got, &want, "results")?;
        // The same groups as runs of equal keys, without the empty ones.
        let keys: Vec<u32> =
            (0..want.len()).flat_map(|s| (offsets[s]..offsets[s + 1]).map(move |_| s as u32)).collect();
        let first = offsets.first().map_or(0, |&at| at as usize);
        let last = offsets.last().map_or(0, |&at| at as usize);
        let x = &x[first..last];
        let (found, got) = match of {
            Exact::Sum => device.reduce(x.by_key(&keys), Sum.exact())?,
            Exact::Mean => device.reduce(x.by_key(&keys), Mean)?,
        };
        let want: Vec<T> = found.to_vec()?.iter().map(|&s| want[s as usize]).collect();
        same(&got.to_vec()?, &want, "results by key")
    };
    grid(of, "of segments", sizes, |(n, _)| n, run, cases);
}

/// Dot products of groups use integers on all devices.
const OF_PRODUCTS: [(Registers, &str); 2] = [(Registers::Own, ""), (Registers::WithoutF64, ", as on a GPU")];

/// The float nearest to the sum of some products.
fn dot<T: Float>(pairs: impl Iterator<Item = (T, T)>) -> T {
    let mut sum = ExactSum::new();
    pairs.for_each(|(x, y)| sum.add_product(x, y));
    sum.round()
}

fn dots_of_segments<T: Float>(sizes: &[Segments], cases: &mut Vec<Case>) {
    let run = |device: &Device, hard: Hard, (n, cut): Segments| {
        let ((x, y), offsets): (_, Vec<u32>) = (factors::<T>(hard, n), cut.offsets(n));
        let range = |pair: &[u32]| pair[0] as usize..pair[1] as usize;
        let parts = offsets.windows(2).map(range);
        let want: Vec<T> = parts.map(|part| dot(part.map(|i| (x[i], y[i])))).collect();
        let got = guarded(device, want.len(), 1, |out| {
            Ok(device.reduce_into(x.times(&y).segments(&offsets), Sum.exact(), out)?)
        })?;
        same(&got, &want, "dot products")
    };
    grid_of::<T, Segments>("dot exact of segments", &OF_PRODUCTS, (sizes, |(n, _)| n), run, cases);
}

/// Rows and columns, and the axis.
type Shape = ([usize; 2], usize);

fn lines<T: Float>(of: Exact, shapes: &[Shape], cases: &mut Vec<Case>) {
    let run = move |device: &Device, x: Vec<T>, (shape, axis): Shape| {
        let (outputs, len) = (shape[1 - axis], shape[axis]);
        let (next, stride) = if axis == 1 { (len, 1) } else { (1, outputs) };
        let line = |o: usize| (0..len).map(|i| x[o * next + i * stride]).collect::<Vec<T>>();
        let want: Vec<T> = (0..outputs).map(|o| wanted(of, &line(o))).collect();
        let there = device.upload(&x)?;
        let got = guarded(device, outputs, 1, |out| {
            let there = there.nd(&shape)?;
            match of {
                Exact::Sum => device.reduce_into(there.along(axis), Sum.exact(), out)?,
                Exact::Mean => device.reduce_into(there.along(axis), Mean, out)?,
            }
            Ok(())
        })?;
        same(&got, &want, "results")
    };
    grid(of, "along an axis", shapes, |(shape, _)| shape[0] * shape[1], run, cases);
}

fn dots_of_lines<T: Float>(shapes: &[Shape], cases: &mut Vec<Case>) {
    let run = |device: &Device, hard: Hard, (shape, axis): Shape| {
        let (outputs, len) = (shape[1 - axis], shape[axis]);
        let (next, stride) = if axis == 1 { (len, 1) } else { (1, outputs) };
        let (x, y) = factors::<T>(hard, outputs * len);
        let line = |o: usize| (0..len).map(move |i| o * next + i * stride);
        let want: Vec<T> = (0..outputs).map(|o| dot(line(o).map(|i| (x[i], y[i])))).collect();
        let (x, y) = (device.upload(&x)?, device.upload(&y)?);
        let got = guarded(device, outputs, 1, |out| {
            Ok(device.reduce_into(x.nd(&shape)?.times(y.nd(&shape)?).along(axis), Sum.exact(), out)?)
        })?;
        same(&got, &want, "dot products")
    };
    let n = |(shape, _): Shape| shape[0] * shape[1];
    grid_of::<T, Shape>("dot exact along an axis", &OF_PRODUCTS, (shapes, n), run, cases);
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    let sizes: &[Segments] = match level {
        Level::Tiny => &[(3000, Cut::Every(257))],
        Level::Quick => &[(9000, Cut::Every(257)), (40_000, Cut::Huge)],
        Level::Full => &[
            (9000, Cut::Every(257)),
            (40_000, Cut::Huge),
            (3000, Cut::Every(3)),
            (40_000, Cut::PowerLaw),
            (40_000, Cut::Gaps),
            (300_001, Cut::Every(65_536)),
        ],
    };
    let shapes: &[Shape] = match level {
        Level::Tiny => &[([10, 300], 1), ([300, 10], 0)],
        Level::Quick => &[([10, 300], 1), ([300, 40], 0), ([2, 20_000], 1), ([20_000, 2], 0)],
        Level::Full => &[
            ([10, 300], 1),
            ([300, 40], 0),
            ([2, 20_000], 1),
            ([20_000, 2], 0),
            ([16, 700], 0),
            ([700, 16], 1),
            ([1, 300_001], 1),
            ([600, 300], 0),
        ],
    };
    let few = level.min(Level::Quick);
    let dots = &sizes[..sizes.len().min(2)];
    dots_of_segments::<f32>(dots, cases);
    dots_of_segments::<f64>(dots, cases);
    let dots = &shapes[..shapes.len().min(3)];
    dots_of_lines::<f32>(dots, cases);
    dots_of_lines::<f64>(dots, cases);
    segments::<f32>(Exact::Sum, sizes, cases);
    lines::<f32>(Exact::Sum, shapes, cases);
    segments::<f64>(Exact::Sum, &sizes[..if few == Level::Tiny { 1 } else { 2 }], cases);
    lines::<f64>(Exact::Sum, &shapes[..if few == Level::Tiny { 2 } else { 4 }], cases);
    segments::<f16>(Exact::Sum, &sizes[..1], cases);
    segments::<bf16>(Exact::Sum, &sizes[..1], cases);
    lines::<f16>(Exact::Sum, &shapes[1..2], cases);
    lines::<bf16>(Exact::Sum, &shapes[..1], cases);
    // Means differ from sums in the last step.
    let (few, most) = if few == Level::Tiny { (1, 1) } else { (2, sizes.len()) };
    segments::<f32>(Exact::Mean, &sizes[..most], cases);
    lines::<f32>(Exact::Mean, &shapes[..few], cases);
    segments::<f64>(Exact::Mean, &sizes[..few], cases);
    if few > 1 {
        lines::<f64>(Exact::Mean, &shapes[2..4], cases);
        segments::<f16>(Exact::Mean, &sizes[..1], cases);
        lines::<bf16>(Exact::Mean, &shapes[..1], cases);
    }
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let forms = [Exact::Sum, Exact::Mean].map(|of| {
        let products = |mut form: Form| {
            form.products = true;
            form
        };
        [
            Form::of::<f16, f16>(of),
            Form::of::<bf16, bf16>(of),
            Form::of::<f32, f32>(of),
            Form::of::<f64, f64>(of),
            Form::of::<u8, f32>(of),
            Form::of::<bf16, f64>(of),
            products(Form::of::<f16, f16>(of)),
            products(Form::of::<f32, f32>(of)),
            products(Form::of::<f64, f64>(of)),
        ]
    });
    let shapes =
        [([1 << 14, 1 << 14], 1), ([1 << 14, 1 << 14], 0), ([1 << 20, 16], 0), ([16, 1 << 20], 0), ([2, 1 << 24], 1)];
    let mut programs = Vec::new();
    for registers in [0, 1] {
        let caps = caps.clone().choosing("exact_f64", registers);
        for form in forms.as_flattened() {
            for (n, wide, of_offsets) in
                [(1 << 20, false, (ElementType::U32, false)), (1 << 25, true, (ElementType::U64, true))]
            {
                let plan = plan_segments(n, 1 << 12, of_offsets, form, &caps, wide);
                programs.extend(plan.into_iter().flat_map(|plan| [plan.sums.program, plan.parts.program]));
            }
            for (shape, axis) in shapes {
                let lines = Layout::contiguous(&shape).and_then(|layout| Lines::of(&layout, axis));
                let plan = lines.and_then(|lines| along_an_axis::plan(&lines, None, form, &caps, false));
                programs.extend(plan.map(|plan| plan.sums.program));
            }
        }
    }
    programs
}
