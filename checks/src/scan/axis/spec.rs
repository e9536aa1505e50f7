//! Cases and benchmark cases of scans along an axis.

use super::{CHUNK, Shape, Way};
use crate::scan::{Scan, in_scan};
use crate::{
    Buffer, Device, Element, Layout, NdView, Result, ViewMut,
    bench::Bench,
    check::{
        Case, Failure, Level,
        data::Data,
        guarded,
        layouts::LayoutKind,
        operators::{Function, affine, monoid},
        poison, same,
    },
    f16,
    ladder::Climb,
    op::{Max, Min, Monoid, Op, Product, Sum, Xor},
    scan::{cpu, segmented::spec::by_definition, shared::chunk_prefixes},
    tuning::Tuned,
};
use crate::{ProgramSpec, scan::gpu::Form as Program};

/// The results of one line by the definition in `cl/scan_axis.cl`.
fn obvious<U, F>(op: &Monoid<U, F>, mut line: Vec<U::Acc>, kind: Scan<U>) -> Vec<U>
where
    U: Element,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let combine = &op.combine;
    let (initial, inclusive) = cpu::start(op, kind);
    if kind.reversed {
        line.reverse();
    }
    let mut aggregates = Vec::new();
    for chunk in line.chunks_exact(CHUNK) {
        let mut aggregate = chunk[0];
        for &x in &chunk[1..] {
            aggregate = combine(aggregate, x);
        }
        aggregates.push(aggregate);
    }
    let prefixes = chunk_prefixes(combine, op.identity, &aggregates, line.len().div_ceil(CHUNK));
    let mut out = Vec::new();
    for (chunk, digits) in line.chunks(CHUNK).zip(prefixes) {
        let mut acc = initial;
        for digit in digits {
            acc = combine(acc, digit);
        }
        for &x in chunk {
            let before = acc;
            acc = combine(acc, x);
            out.push(U::narrow(if inclusive { acc } else { before }));
        }
    }
    if kind.reversed {
        out.reverse();
    }
    out
}

/// The results of all lines of a contiguous array.
fn by_lines<T, U, F>(op: &Monoid<U, F>, input: &[T], shape: &Shape, kind: Scan<U>) -> Vec<U>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let Shape { outer, len, inner } = *shape;
    let index = |line: usize, i: usize| (line / inner * len + i) * inner + line % inner;
    let lines = outer * inner;
    let mut out = vec![U::ZERO; input.len()];
    if shape.way::<T>() == Way::Columns {
        for line in 0..lines {
            let mut values = Vec::with_capacity(len);
            for i in 0..len {
                values.push(U::from(input[index(line, i)]).widen());
            }
            for (i, &x) in obvious(op, values, kind).iter().enumerate() {
                out[index(line, i)] = x;
            }
        }
    } else {
        let (mut indices, mut heads) = (Vec::new(), Vec::new());
        for line in 0..lines {
            for i in 0..len {
                indices.push(index(line, i));
                heads.push(i == 0);
            }
        }
        let mut values = Vec::with_capacity(indices.len());
        for &index in &indices {
            values.push(input[index]);
        }
        for (&x, index) in by_definition(op, &values, &heads, kind).iter().zip(indices) {
            out[index] = x;
        }
    }
    out
}

/// Function that runs an operation.
type Run<T, U> = fn(&Device, NdView<'_, T>, usize, Scan<U>, ViewMut<'_, U>) -> Result<()>;

fn plain<T: Element, U: Element + From<T>, O: Op<U> + Default>() -> Run<T, U> {
    |device, view, axis, kind, out| device.scan_into(view.cast::<U>().along(axis), in_scan(O::default(), kind), out)
}

/// Operation with a user-defined operator that is not commutative.
fn by_affine() -> (Monoid<u64, Function<u64>>, Run<u64, u64>) {
    let run: Run<u64, u64> =
        |device, view, axis, kind, out| device.scan_into(view.along(axis), in_scan(&affine(), kind), out);
    (Monoid { identity: 1, empty: 1, ordered: true, combine: affine().combine }, run)
}

fn check<T, U, F>(
    device: &Device,
    (op, run): &(Monoid<U, F>, Run<T, U>),
    (shape, axis): (&[usize], usize),
    (layout_kind, at): (LayoutKind, usize),
    kind: Scan<U>,
) -> std::result::Result<(), Failure>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let layout = layout_kind.layout(shape)?;
    let reach = layout.span().map_or(0, |(_, high)| high + 1);
    let all = Data::Special.generate::<T>(at + reach, reach as u64);
    let buffer = device.upload(&all)?;
    let got = guarded(device, layout.len(), at, |out| {
        Ok(run(device, buffer.view(at..)?.with_layout(layout)?, axis, kind, out)?)
    })?;
    let want = if device.is_cpu() {
        by_lines(op, &NdView::new(&all[at..], layout)?.to_vec()?, &Shape::of(shape, &[axis]).expect("one axis"), kind)
    } else {
        let cpu = Device::cpu();
        let (all, mut want) = (cpu.upload(&all)?, cpu.zeroed(layout.len())?);
        run(&cpu, all.view(at..)?.with_layout(layout)?, axis, kind, want.view_mut(..)?)?;
        want.to_vec()?
    };
    same(&got, &want, "out")
}

fn form<T: Element, U: Element + From<T>, O: Op<U> + Default + 'static>(
    level: Level,
    shapes: &[(&'static [usize], usize)],
    cases: &mut Vec<Case>,
) {
    let wide = if T::TYPE == U::TYPE { String::new() } else { format!(" as {}", U::TYPE) };
    let name = format!("{}{wide} of lines", O::KIND.name());
    form_by(level, &name, (monoid::<U, O>(), plain::<T, U, O>()), shapes, cases);
}

fn form_by<T, U, F>(
    level: Level,
    name: &str,
    form: (Monoid<U, F>, Run<T, U>),
    shapes: &[(&'static [usize], usize)],
    cases: &mut Vec<Case>,
) where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Copy + Send + Sync + 'static,
{
    let layout_kinds = LayoutKind::of(level);
    let five = || Scan::exclusive(U::from_f64(5.0));
    let mut number = 0;
    for &(shape, axis) in shapes {
        for &layout_kind in layout_kinds {
            let kinds = [
                ("inclusive", Scan::inclusive()),
                ("exclusive, reversed", five().reversed()),
                ("exclusive", five()),
                ("inclusive, reversed", Scan::inclusive().reversed()),
            ];
            let kinds = if level >= Level::Full { &kinds[..] } else { &kinds[number % 4..][..1] };
            for &(kind_name, kind) in kinds {
                number += 1;
                let at = number / 2 % 2;
                let text = format!("{shape:?} along {axis} at {at}, {kind_name}, {layout_kind:?}");
                let n = shape.iter().product();
                cases.push(Case::new(name, T::TYPE, text, "special", n, move |device| {
                    check(device, &form, (shape, axis), (layout_kind, at), kind)
                }));
            }
        }
    }
}

pub(in crate::scan) fn cases(level: Level, cases: &mut Vec<Case>) {
    const TINY: &[(&[usize], usize)] =
        &[(&[3, 700], 1), (&[600, 33], 0), (&[2, 5, 16], 1), (&[40, 3], 0), (&[4, 0], 1), (&[1], 0)];
    const QUICK: &[(&[usize], usize)] = &[
        (&[100_001], 0),
        (&[20_000, 2], 1),
        (&[9000, 3], 1),
        (&[2, 20_000], 1),
        (&[1024, 64], 0),
        (&[513, 100], 0),
        (&[3, 1025, 20], 1),
        (&[20_000, 3], 0),
        (&[2, 3, 4, 5, 6], 2),
        (&[16, 3000], 0),
        (&[0, 4], 1),
    ];
    const FULL: &[(&[usize], usize)] = &[
        (&[512, 32], 0),
        (&[511, 40], 0),
        (&[512 * 33 + 1, 16], 0),
        (&[512 * 1030, 8], 0),
        (&[7, 100_000], 1),
        (&[300, 1], 0),
        (&[1, 300], 0),
        (&[1, 5000], 1),
        (&[100, 16], 1),
        (&[65_537, 5], 0),
        (&[2, 2, 2, 2, 2, 2, 2, 40], 3),
        (&[2, 2, 2, 2, 2, 2, 2, 2], 0),
        (&[5, 7, 4096], 1),
        (&[33, 257, 1], 1),
    ];
    form::<f32, f32, Sum>(level, TINY, cases);
    form::<u32, u32, Sum>(level, &TINY[..2], cases);
    form_by(level, "affine of lines", by_affine(), &TINY[..3], cases);
    if level >= Level::Quick {
        form::<f32, f32, Sum>(level, QUICK, cases);
        form::<u8, u8, Max>(level, &QUICK[..8], cases);
        form::<f16, f16, Sum>(level, &TINY[..4], cases);
        form::<u32, u64, Sum>(level, &TINY[..4], cases);
    }
    if level >= Level::Full {
        form::<f32, f32, Sum>(level, FULL, cases);
        form::<u8, u8, Sum>(level, FULL, cases);
        form::<f64, f64, Sum>(level, QUICK, cases);
        form::<i64, i64, Min>(level, QUICK, cases);
        form::<u16, u16, Xor>(level, QUICK, cases);
        form::<i32, i32, Product>(level, TINY, cases);
        form::<f16, f32, Sum>(level, QUICK, cases);
        form_by(level, "affine of lines", by_affine(), QUICK, cases);
    }
}

fn bench<T: Element, O: Op<T> + Default + 'static>(name: &str, shape: fn(usize) -> [usize; 2], axis: usize) -> Bench {
    struct Measured<T: Element> {
        device: Device,
        host: Vec<T>,
        shape: [usize; 2],
        x: Buffer<T>,
        out: Buffer<T>,
    }
    let bytes = |n: usize| 2 * (n * size_of::<T>()) as u64;
    Bench::new(format!("{} of lines, {name}", O::KIND.name()), T::TYPE, bytes, move |device, n| {
        let shape = shape(n);
        let host = Data::Random.generate::<T>(shape[0] * shape[1], n as u64);
        let (x, out) = (device.upload(&host)?, device.zeroed(host.len())?);
        Ok(Climb::new(
            Measured { device: device.clone(), host, shape, x, out },
            |this| this.out.fill(poison()),
            move |this| {
                let Measured { device, shape, x, out, .. } = this;
                device.scan_into(x.nd(&*shape)?.along(axis), O::default(), &mut *out)
            },
            move |this| {
                let view = NdView::new(&this.host, Layout::contiguous(&this.shape)?)?;
                let want = Device::cpu().scan(view.along(axis), O::default())?;
                same(&this.out.to_vec()?, &want.to_vec()?, "out")
            },
        ))
    })
}

pub(in crate::scan) fn benches() -> Vec<Bench> {
    fn square(n: usize) -> [usize; 2] {
        let rows = 1 << (n.max(1).ilog2() / 2);
        [rows, n / rows]
    }
    vec![
        bench::<f32, Sum>("rows, square", square, 1),
        bench::<f32, Sum>("columns, square", square, 0),
        bench::<f32, Sum>("rows of 16", |n| [n / 16, 16], 1),
        bench::<f32, Sum>("columns of 16", |n| [16, n / 16], 0),
        bench::<f32, Sum>("columns of 512", |n| [n.min(512), n / n.min(512)], 0),
        bench::<f32, Sum>("16 columns", |n| [n / 16, 16], 0),
        bench::<f32, Sum>("4 columns", |n| [n / 4, 4], 0),
        bench::<u8, Max>("columns, square", square, 0),
    ]
}

pub(in crate::scan) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let shapes = [(1, 1 << 14, 1 << 14), (1 << 10, 3, 33)].map(|(outer, len, inner)| Shape { outer, len, inner });
    let forms = [
        Program::of::<f32, f32, Sum>(false),
        Program::of::<f32, f32, Sum>(true),
        Program::of::<f64, f64, Sum>(false),
        Program::of::<u8, u8, Max>(false),
        Program::of::<f16, f16, Sum>(false),
        Program::of::<u16, u64, Sum>(true),
        Program::by::<u64, u64>((affine().source(), false), false),
    ];
    let mut programs = Vec::new();
    for shape in &shapes {
        for form in &forms {
            for (aligned, wide) in [(false, false), (true, false), (true, true)] {
                programs.extend(super::gpu::plan(shape, form, aligned, caps, wide).map(|plan| plan.program));
            }
        }
    }
    programs
}
