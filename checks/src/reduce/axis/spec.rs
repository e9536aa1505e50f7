//! Cases and benchmark cases of reductions along an axis.

use crate::{
    Buffer, Device, Element, Float, Layout, NdView, Result, ViewMut,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level,
        data::Data,
        guarded,
        layouts::LayoutKind,
        operators::{Function, alike, monoid, plus},
        poison, same,
    },
    f16,
    ladder::Climb,
    op::{And, Max, Min, Monoid, Op, OpKind, Or, Product, Sum, Usage, Xor},
    reduce::shared::{chunk_trees, pairs_tree, thin},
    tuning::Tuned,
};
use crate::{ProgramSpec, check::operators::divisor};

/// The tree over the elements of one line, by definition.
fn obvious<T, U, F>(op: &Monoid<U, F>, line: &[T]) -> U
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    if line.is_empty() {
        return op.empty;
    }
    let mut values = Vec::with_capacity(line.len());
    for &x in line {
        values.push(U::from(x).widen());
    }
    U::narrow(pairs_tree(chunk_trees(&values, 512, 32, op.identity, &op.combine), &op.combine))
}

/// Function that runs an operation.
type Run<T, U> = fn(&Device, NdView<'_, T>, usize, ViewMut<'_, U>) -> Result<()>;

fn plain<T: Element, O: Op<T> + Default>() -> Run<T, T> {
    |device, view, axis, out| device.reduce_into(view.along(axis), O::default(), out)
}

fn wider<T: Element, U: Element + From<T>, O: Op<U> + Default>() -> Run<T, U> {
    |device, view, axis, out| device.reduce_into(view.cast::<U>().along(axis), O::default(), out)
}

fn exact<T: Float>() -> Run<T, T> {
    |device, view, axis, out| device.reduce_into(view.along(axis), Sum.exact(), out)
}

/// An operation: its monoid, the kind of operator that is passed to [`thin`], and the function that runs it.
type Form<T, U, F> = (Monoid<U, F>, OpKind, Run<T, U>);

/// Operation with a user-defined operator on integers.
fn by_alike() -> Form<u32, u32, Function<u32>> {
    let run: Run<u32, u32> = |device, view, axis, out| device.reduce_into(view.along(axis), &alike(), out);
    (Monoid { identity: u32::MAX, empty: u32::MAX, ordered: true, combine: alike().combine }, OpKind::Sum, run)
}

fn by_plus() -> Form<f32, f32, Function<f32>> {
    let run: Run<f32, f32> = |device, view, axis, out| device.reduce_into(view.along(axis), &plus(), out);
    (Monoid { identity: -0.0, empty: -0.0, ordered: true, combine: plus().combine }, OpKind::Sum, run)
}

fn check<T, U, F>(
    device: &Device,
    (op, kind, run): &Form<T, U, F>,
    (shape, axis): (&[usize], usize),
    layout_kind: LayoutKind,
    data: Data,
    (at, out_at): (usize, usize),
) -> Result<(), Failure>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let layout = layout_kind.layout(shape)?;
    let reach = layout.span().map_or(0, |(_, high)| high + 1);
    let mut all = data.generate::<T>(at + reach, reach as u64);
    thin(&mut all, *kind, 101);
    let buffer = device.upload(&all)?;
    let mut shape_left = shape.to_vec();
    let len = shape_left.remove(axis);
    let outputs = shape_left.iter().product();
    let got =
        guarded(device, outputs, out_at, |out| Ok(run(device, buffer.view(at..)?.with_layout(layout)?, axis, out)?))?;
    let want = if device.is_cpu() {
        let host = NdView::new(&all[at..], layout)?;
        let mut axes: Vec<usize> = (0..shape.len()).filter(|&k| k != axis).collect();
        axes.push(axis);
        let lines = host.permute(&axes)?.to_vec()?;
        let mut want = Vec::with_capacity(outputs);
        for o in 0..outputs {
            want.push(obvious(op, &lines[o * len..(o + 1) * len]));
        }
        want
    } else {
        let cpu = Device::cpu();
        let (all, mut want) = (cpu.upload(&all)?, cpu.zeroed(outputs)?);
        run(&cpu, all.view(at..)?.with_layout(layout)?, axis, want.view_mut(..)?)?;
        want.to_vec()?
    };
    same(&got, &want, "out")
}

fn form<T: Element, O: Op<T> + Default + 'static>(
    level: Level,
    shapes: &[(&'static [usize], usize)],
    cases: &mut Vec<Case>,
) {
    let form = (monoid::<T, O>(), O::KIND, plain::<T, O>());
    form_by(level, &format!("{} along an axis", O::KIND.name()), form, shapes, cases);
}

fn form_as<T: Element, U: Element + From<T>, O: Op<U> + Default + 'static>(
    level: Level,
    shapes: &[(&'static [usize], usize)],
    cases: &mut Vec<Case>,
) {
    let name = format!("{} in {} along an axis", O::KIND.name(), U::TYPE);
    form_by(level, &name, (monoid::<U, O>(), O::KIND, wider::<T, U, O>()), shapes, cases);
}

fn form_by<T, U, F>(
    level: Level,
    name: &str,
    form: Form<T, U, F>,
    shapes: &[(&'static [usize], usize)],
    cases: &mut Vec<Case>,
) where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Copy + Send + Sync + 'static,
{
    let layout_kinds: &[LayoutKind] = match level {
        Level::Tiny => &[LayoutKind::Contiguous],
        Level::Quick => &[LayoutKind::Contiguous, LayoutKind::Backwards, LayoutKind::Transposed],
        Level::Full => &[
            LayoutKind::Contiguous,
            LayoutKind::Backwards,
            LayoutKind::Stepped,
            LayoutKind::Transposed,
            LayoutKind::Repeated,
        ],
    };
    let data_sets = if level == Level::Full { &[Data::Random, Data::Special][..] } else { &[Data::Special] };
    for &(shape, axis) in shapes {
        for &layout_kind in layout_kinds {
            let mut tried: Vec<_> =
                data_sets.iter().zip([(0, 0), (3, 3)]).chain(data_sets.iter().zip([(3, 3)])).collect();
            if level >= Level::Quick {
                tried.push((&Data::Special, (0, 3)));
            }
            for (&data, at) in tried {
                let text = format!("{shape:?} along {axis} at {} to {}, {layout_kind:?}", at.0, at.1);
                let n = shape.iter().product();
                cases.push(Case::new(name, T::TYPE, text, data.name(), n, move |device| {
                    check(device, &form, (shape, axis), layout_kind, data, at)
                }));
            }
        }
    }
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    const TINY: &[(&[usize], usize)] = &[
        (&[3, 700], 1),
        (&[700, 3], 0),
        (&[5, 20], 1),
        (&[300, 8], 1),
        (&[20, 300], 0),
        (&[7, 300], 0),
        (&[2, 33, 70], 1),
        (&[1, 5000], 1),
        (&[4, 0], 1),
        (&[0, 4], 1),
        // These lines are split into parts.
        (&[8200, 2], 0),
        (&[40, 132], 0),
    ];
    // These shapes have few rows, which work-items process side by side.
    const SIDE_BY_SIDE: &[(&[usize], usize)] = &[(&[20, 300], 0), (&[32, 136], 0), (&[3, 9, 132], 1), (&[31, 2500], 0)];
    // These shapes give the CPU backend several blocks of outputs, each with several parts of the axis.
    const BLOCKS: &[(&[usize], usize)] = &[(&[520, 1030], 0)];
    const QUICK: &[(&[usize], usize)] = &[
        (&[1, 1], 0),
        (&[100_001], 0),
        (&[40_000, 2], 0),
        (&[1300, 136], 0),
        (&[131, 1100], 0),
        (&[3, 511, 129], 1),
        (&[130, 513], 1),
        (&[2, 3, 4, 5, 6], 2),
        (&[2, 3, 4, 5, 6], 0),
    ];
    const FULL: &[(&[usize], usize)] = &[
        (&[3000, 1], 1),
        (&[1000, 2], 1),
        (&[40_000, 4], 1),
        (&[1000, 16], 1),
        (&[1000, 17], 1),
        (&[200, 64], 1),
        (&[65, 512], 1),
        (&[7, 4096], 1),
        (&[3, 70_000], 1),
        (&[2, 1000], 0),
        (&[16, 5000], 0),
        (&[33, 1000], 0),
        (&[512, 31], 0),
        (&[1025, 16], 0),
        (&[60_000, 5], 0),
        (&[9000, 33], 0),
        (&[4, 600, 16], 1),
        (&[2, 2, 2, 2, 2, 2, 2, 40], 3),
        (&[3, 1, 2, 1, 50, 4], 4),
        (&[400_003], 0),
    ];
    form::<f32, Sum>(level, TINY, cases);
    form::<u8, Max>(level, &TINY[..2], cases);
    form_by(level, "bits alike along an axis", by_alike(), &TINY[..2], cases);
    if level >= Level::Quick {
        form::<f32, Sum>(level, QUICK, cases);
        form::<i64, Sum>(level, &TINY[..2], cases);
        form::<f16, Sum>(level, &TINY[..1], cases);
        form::<i32, Or>(level, &TINY[..1], cases);
        form_as::<i32, i64, Sum>(level, SIDE_BY_SIDE, cases);
        form_as::<i32, i64, Sum>(level, BLOCKS, cases);
        form::<f32, Min>(level, SIDE_BY_SIDE, cases);
        form_by(level, "a + b along an axis", by_plus(), SIDE_BY_SIDE, cases);
    }
    if level >= Level::Full {
        form_by(level, "a + b along an axis", by_plus(), QUICK, cases);
        form::<f32, Sum>(level, FULL, cases);
        form::<f64, Sum>(level, FULL, cases);
        form::<f16, Sum>(level, TINY, cases);
        form::<i8, Sum>(level, FULL, cases);
        form::<u16, Xor>(level, TINY, cases);
        form::<f32, Min>(level, QUICK, cases);
        form::<i32, Product>(level, QUICK, cases);
        form::<i64, Sum>(level, QUICK, cases);
        let few = &TINY[..2];
        form::<u8, Sum>(level, few, cases);
        form::<i16, Max>(level, few, cases);
        form::<i32, Sum>(level, few, cases);
        form::<i32, Max>(level, few, cases);
        form::<u32, Max>(level, few, cases);
        form::<u64, Sum>(level, few, cases);
        form::<bf16, Sum>(level, few, cases);
        form::<u32, And>(level, few, cases);
        form::<i8, And>(level, few, cases);
        form::<i64, Or>(level, few, cases);
        form::<u8, Or>(level, few, cases);
        form_as::<u8, u32, Sum>(level, TINY, cases);
        form_as::<f16, f32, Sum>(level, TINY, cases);
        form_as::<i8, f16, Product>(level, few, cases);
        form_as::<bf16, f64, Sum>(level, few, cases);
        form_as::<u16, i32, Min>(level, few, cases);
    }
}

/// Benchmark case that compares with the result of the same call on the CPU.
fn bench<T: Element, U: Element + From<T>>(
    op: &str,
    name: &str,
    run: Run<T, U>,
    shape: fn(usize) -> [usize; 2],
    axis: usize,
) -> Bench {
    struct Measured<T: Element, U: Element> {
        device: Device,
        host: Vec<T>,
        shape: [usize; 2],
        x: Buffer<T>,
        out: Buffer<U>,
    }
    let wide = if T::TYPE == U::TYPE { String::new() } else { format!(" in {}", U::TYPE) };
    Bench::new(
        format!("{op}{wide} over {name}"),
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let shape = shape(n);
            let host = Data::Random.generate::<T>(shape[0] * shape[1], n as u64);
            let (x, out) = (device.upload(&host)?, device.zeroed(shape[1 - axis])?);
            Ok(Climb::new(
                Measured { device: device.clone(), host, shape, x, out },
                |this| this.out.fill(poison()),
                move |this| {
                    let Measured { device, shape, x, out, .. } = this;
                    run(device, x.nd(&*shape)?, axis, out.view_mut(..)?)
                },
                move |this| {
                    let view = NdView::new(&this.host, Layout::contiguous(&this.shape)?)?;
                    let mut want = Device::cpu().zeroed(this.out.len())?;
                    run(&Device::cpu(), view, axis, want.view_mut(..)?)?;
                    same(&this.out.to_vec()?, &want.to_vec()?, "out")
                },
            ))
        },
    )
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    fn square(n: usize) -> [usize; 2] {
        let rows = 1 << (n.max(1).ilog2() / 2);
        [rows, n / rows]
    }
    fn sum(name: &str, shape: fn(usize) -> [usize; 2], axis: usize) -> Bench {
        bench::<f32, f32>("sum", name, plain::<f32, Sum>(), shape, axis)
    }
    vec![
        sum("rows, square", square, 1),
        sum("columns, square", square, 0),
        sum("rows of 16", |n| [n / 16, 16], 1),
        sum("16 rows", |n| [16, n / 16], 1),
        sum("16 columns", |n| [n / 16, 16], 0),
        sum("columns of 16", |n| [16, n / 16], 0),
        bench::<f32, f32>("sum exact", "rows, square", exact(), square, 1),
        bench::<f32, f32>("sum exact", "columns, square", exact(), square, 0),
        bench::<f64, f64>("sum", "columns, square", plain::<f64, Sum>(), square, 0),
        bench::<f64, f64>("sum exact", "columns, square", exact(), square, 0),
        bench::<i32, i32>("max", "rows, square", plain::<i32, Max>(), square, 1),
        bench::<i32, i32>("max", "columns, square", plain::<i32, Max>(), square, 0),
        bench::<i32, i64>("sum", "rows, square", wider::<i32, i64, Sum>(), square, 1),
        bench::<i32, i64>("sum", "columns, square", wider::<i32, i64, Sum>(), square, 0),
        bench::<f32, f32>("by a + b", "rows, square", by_plus().2, square, 1),
        bench::<f32, f32>("by a + b", "columns, square", by_plus().2, square, 0),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::{Lines, gpu};
    let shapes =
        [([1 << 14, 1 << 14], 1), ([1 << 14, 1 << 14], 0), ([1 << 20, 16], 1), ([1 << 20, 16], 0), ([16, 1 << 20], 0)];
    let forms = [
        gpu::Form::of::<f32, Sum>(),
        gpu::Form::of::<f64, Sum>(),
        gpu::Form::of::<f16, Sum>(),
        gpu::Form::of::<i8, Sum>(),
        gpu::Form::of::<u8, Max>(),
        gpu::Form::of::<u32, And>(),
        gpu::Form::of::<i32, Or>(),
        gpu::Form::into::<i32, i64, Sum>(),
        gpu::Form::into::<u8, u32, Sum>(),
        gpu::Form::into::<f16, f32, Sum>(),
        gpu::Form::by::<u32, u32>(divisor().source()),
    ];
    let mut programs = Vec::new();
    for (shape, axis) in shapes {
        let lines = Layout::contiguous(&shape).and_then(|layout| Lines::of(&layout, axis));
        for wide in [false, true] {
            for aligned in [[true; 2], [true, false]] {
                let plan = |lines, form| gpu::plan(lines, form, aligned, caps, wide);
                let plans = lines.iter().flat_map(|lines| forms.iter().map(move |form| plan(lines, form)));
                programs.extend(plans.flatten().map(|plan| plan.program));
            }
        }
    }
    programs
}
