//! Cases and benchmark cases of reductions by a user-defined operator.

use std::fmt::Debug;

use bytemuck::{Pod, Zeroable};

use super::{LANES, rows};
use crate::{
    Complex, Device, ElementType, Float, Source,
    bench::Bench,
    check::{
        Case, Failure, Level,
        data::Data,
        guarded,
        operators::{Tried, divisor, either, plus},
        same, same_bytes,
    },
    ladder::Climb,
    op::{Combinable, Op, Operator, Sum, Usage, complex_product, complex_sum},
    reduce::shared::chunk_trees,
};
use crate::{ProgramSpec, tuning::Tuned};

/// An element of 12 bytes, for an operator that rounds.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Point([f32; 3]);

impl Combinable for Point {}

/// A key and its index. The operator takes the largest key, and the lowest index that has it.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Keyed {
    key: i64,
    index: u64,
}

fn saturating() -> Tried<u8> {
    Operator::new("saturating sum", 0, u8::saturating_add as fn(u8, u8) -> u8, "add_sat(a, b)")
}

fn centre() -> Tried<Point> {
    Operator::of_struct(
        "vector sum",
        "Point",
        "typedef struct {\n    float x, y, z;\n} Point;",
        Point([0.0; 3]),
        (|a, b| Point(std::array::from_fn(|i| a.0[i] + b.0[i]))) as fn(Point, Point) -> Point,
        "(Point){ a.x + b.x, a.y + b.y, a.z + b.z }",
    )
}

fn first_largest() -> Tried<Keyed> {
    fn better(a: Keyed, b: Keyed) -> Keyed {
        if a.key > b.key || (a.key == b.key && a.index < b.index) { a } else { b }
    }
    Operator::of_struct(
        "first largest",
        "Keyed",
        "typedef struct {\n    long key;\n    ulong index;\n} Keyed;",
        Keyed { key: i64::MIN, index: u64::MAX },
        better as fn(Keyed, Keyed) -> Keyed,
        "a.key > b.key || (a.key == b.key && a.index < b.index) ? a : b",
    )
}

/// The fixed tree by definition.
fn obvious<T: Pod>(input: &[T], op: &Tried<T>) -> T {
    let level = |x: &[T]| chunk_trees(x, rows(size_of::<T>()) * LANES, LANES, op.identity, &op.combine);
    let mut partials = level(input);
    while partials.len() > 1 {
        partials = level(&partials);
    }
    partials.first().copied().unwrap_or(op.identity)
}

fn check<T: Pod + PartialEq + Debug + Send + Sync>(
    device: &Device,
    op: &Tried<T>,
    all: &[T],
    offset: usize,
) -> Result<(), Failure> {
    let input = &all[offset..];
    let on_device = device.upload(all)?;
    let got = guarded(device, 1, offset, |out| Ok(device.reduce_into(on_device.view(offset..)?, op, out)?))?;
    let want = if device.is_cpu() { obvious(input, op) } else { Device::cpu().reduce(input, op)? };
    same_bytes(&got, &[want], op.name())
}

fn operator_cases<T: Pod + PartialEq + Debug + Send + Sync>(
    level: Level,
    element: ElementType,
    op: fn() -> Tried<T>,
    values: fn(usize) -> Vec<T>,
    cases: &mut Vec<Case>,
) {
    let tile = rows(size_of::<T>()) * LANES;
    let mut sizes = vec![(0, 0), (1, 1), (257, 0)];
    if level >= Level::Quick {
        sizes.extend([(255, 1), (tile - 1, 0), (tile, 1), (3 * tile + 5, 0)]);
    }
    if level >= Level::Full {
        sizes.extend([(2, 0), (256, 3), (tile + 1, 1), (17 * tile + 300, 0), (1_000_003, 1), (tile * tile + 1, 0)]);
    }
    for (n, offset) in sizes.into_iter().filter(|(n, _)| *n < 1 << 23) {
        let form = format!("by {}", op().name());
        cases.push(Case::new(form, element, format!("n = {n} at {offset}"), "random", n, move |device| {
            check(device, &op(), &values(offset + n), offset)
        }));
    }
}

/// Scans of structs and their sums in segments. All sums are small integers, so every order gives the same bits.
fn check_groups(device: &Device, n: usize) -> Result<(), Failure> {
    let points: Vec<Point> = (0..n).map(|i| Point([i % 7, i % 5, i % 3].map(|x| x as f32))).collect();
    let offsets: Vec<u32> = (0..=n as u32).filter(|i| i % 50 == 0 || i % 90 == 0).collect();
    let (op, x) = (centre(), device.upload(&points)?);
    let mut sum = Point([0.0; 3]);
    let mut sums = |point: &Point| {
        sum = (op.combine)(sum, *point);
        sum
    };
    let want: Vec<Point> = points.iter().map(&mut sums).collect();
    let got = guarded(device, n, 1, |out| Ok(device.scan_into(&x, &op, out)?))?;
    same_bytes(&got, &want, "prefixes")?;
    let want: Vec<Point> = std::iter::once(op.identity).chain(want).take(n).collect();
    let got = guarded(device, n, 1, |out| Ok(device.scan_into(&x, op.exclusive(), out)?))?;
    same_bytes(&got, &want, "exclusive prefixes")?;
    let segment =
        |ends: &[u32]| points[ends[0] as usize..ends[1] as usize].iter().fold(op.identity, |a, &b| (op.combine)(a, b));
    let want: Vec<Point> = offsets.windows(2).map(segment).collect();
    let got = guarded(device, want.len(), 1, |out| Ok(device.reduce_into(x.segments(&offsets), &op, out)?))?;
    same_bytes(&got, &want, "sums of segments")
}

fn points(n: usize) -> Vec<Point> {
    let values = Data::Random.generate::<f32>(3 * n, n as u64);
    values.chunks_exact(3).map(|x| Point([x[0], x[1], x[2]])).collect()
}

fn keyed(n: usize) -> Vec<Keyed> {
    let keys = Data::Random.generate::<u8>(n, n as u64).into_iter().enumerate();
    keys.map(|(index, key)| Keyed { key: i64::from(key), index: index as u64 }).collect()
}

/// Numbers on the unit circle, so that products stay there.
fn complexes<T: Float>(n: usize) -> Vec<Complex<T>> {
    let angles = Data::Random.generate::<f64>(n, n as u64).into_iter();
    angles.map(|x| Complex::new(T::from_f64((3.0 * x).cos()), T::from_f64((3.0 * x).sin()))).collect()
}

pub(in crate::reduce) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Vec::new();
    operator_cases(level, ElementType::U32, divisor, |n| Data::Random.generate(n, 1), &mut cases);
    operator_cases(level, ElementType::F32, centre, points, &mut cases);
    operator_cases(level, ElementType::I64, first_largest, keyed, &mut cases);
    operator_cases(level, ElementType::F32, complex_product::<f32>, complexes, &mut cases);
    for n in [1, 2048, 5000, 70_000].into_iter().filter(|&n| level >= Level::Quick || n == 5000) {
        let shape = format!("n = {n}");
        cases.push(Case::new("by vector sum in groups", ElementType::F32, shape, "small", n, move |device| {
            check_groups(device, n)
        }));
    }
    if level >= Level::Quick {
        operator_cases(level, ElementType::U8, saturating, |n| Data::Ramp.generate(n, 1), &mut cases);
        operator_cases(level, ElementType::F32, either, |n| Data::Random.generate(n, 1), &mut cases);
        operator_cases(level, ElementType::F64, complex_sum::<f64>, complexes, &mut cases);
    }
    if level == Level::Full {
        operator_cases(level, ElementType::F32, complex_sum::<f32>, complexes, &mut cases);
        operator_cases(level, ElementType::F64, complex_product::<f64>, complexes, &mut cases);
    }
    cases
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    let bench = Bench::new(
        "by a + b",
        ElementType::F32,
        |n| 4 * n as u64,
        |device, n| {
            let op = plus();
            let host = Data::Random.generate::<f32>(n, n as u64);
            let state = (device.clone(), device.upload(&host)?, device.zeroed::<f32>(1)?, op);
            Ok(Climb::new(
                state,
                |(_, _, out, ..)| out.fill(0.0),
                |(device, x, out, op)| device.reduce_into(&*x, &*op, out),
                move |(_, _, out, op)| {
                    same(&out.to_vec()?, &[Device::cpu().reduce(&host, &*op)?], <Sum as Op<f32>>::KIND.name())
                },
            ))
        },
    );
    vec![bench]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::plan;
    use crate::op::gpu::Form;
    use oclprim::internals::scan::{self, gpu::Heads};
    let forms = [
        Form { source: divisor().source(), size: 4, needs_fp64: false, count: None },
        Form { source: centre().source(), size: 12, needs_fp64: false, count: None },
        Form { source: centre().source(), size: 12, needs_fp64: false, count: Some(ElementType::U32) },
        Form { source: first_largest().source(), size: 16, needs_fp64: false, count: None },
        Form { source: saturating().source(), size: 1, needs_fp64: false, count: None },
        Form { source: either().source(), size: 4, needs_fp64: false, count: None },
        Form { source: complex_product::<f32>().source(), size: 8, needs_fp64: false, count: None },
        Form { source: complex_sum::<f64>().source(), size: 16, needs_fp64: true, count: None },
    ];
    let plans = forms.iter().flat_map(|form| [1 << 20, 1 << 32].map(|n| plan(n, form, caps, &|n| n >= 1 << 31)));
    let mut programs: Vec<_> = plans.flat_map(Result::unwrap_or_default).map(|pass| pass.program).collect();
    let (keys, offsets) = (Heads::Keys(ElementType::F32), Heads::Offsets(ElementType::U64));
    let forms = [(None, false), (None, true), (Some(keys), true), (Some(Heads::Flags), false), (Some(offsets), false)];
    let forms = forms.into_iter().chain([(Some(Heads::Rows), false)]);
    let forms = forms.map(|(heads, reversed)| scan::by::gpu::Form::of(&centre(), reversed, heads));
    let ends = forms.clone().filter(|form| matches!(form.heads, Some(Heads::Offsets(_) | Heads::Rows)));
    let ends = ends.map(|form| scan::by::gpu::Form { ends: true, ..form });
    let by_count =
        scan::by::gpu::Form { count: Some(ElementType::U64), ..scan::by::gpu::Form::of(&centre(), true, None) };
    for form in forms.chain(ends).chain([by_count]) {
        programs.extend(scan::by::gpu::plan(1 << 20, &form, true, caps, false).map(|plan| plan.program));
    }
    programs
}
