//! Cases and benchmark cases of reductions of mapped elements: in wider types, of products and of functions.

use std::ops::Range;

use crate::ProgramSpec;
use crate::{
    Buffer, Determinism, Device, Element, Input, Result, Source, View, ViewMut,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level,
        bounds::{sum_depth, sum_error},
        close,
        data::Data,
        exact_sum, guarded,
        operators::{Function, monoid},
        same,
    },
    f16,
    ladder::Climb,
    op::{Arithmetic, Map, Max, Min, Monoid, Op, Product, Sum, Usage},
    reduce::{
        cpu,
        shared::{has_exact_sums, obvious_tree, on_cpu_at_least},
    },
    tuning::Tuned,
};

const FIXED: Determinism = Determinism::Fixed;

/// An operation on two inputs, which are views of one buffer. `run` calls it. `value` returns the value that it
/// combines for a pair of elements.
trait Form<T: Element, U: Element>: Copy + Send + Sync + 'static {
    fn run(self, device: &Device, of: Determinism, x: View<'_, T>, y: View<'_, T>, out: ViewMut<'_, U>) -> Result<()>;
    fn value(self, x: T, y: T) -> U::Acc;
}

#[derive(Clone, Copy, Default)]
struct As<O>(O);

impl<T: Element, U: Element + From<T>, O: Op<U> + Default + 'static> Form<T, U> for As<O> {
    fn run(self, device: &Device, of: Determinism, x: View<'_, T>, _: View<'_, T>, out: ViewMut<'_, U>) -> Result<()> {
        device.reduce_into(x.cast::<U>(), O::default().with(of), out)
    }

    fn value(self, x: T, _: T) -> U::Acc {
        U::from(x).widen()
    }
}

#[derive(Clone, Copy)]
struct Dot;

impl<T: Element, U: Element + From<T>> Form<T, U> for Dot {
    fn run(self, device: &Device, of: Determinism, x: View<'_, T>, y: View<'_, T>, out: ViewMut<'_, U>) -> Result<()> {
        device.reduce_into(x.cast::<U>().times(y.cast::<U>()), Sum.with(of), out)
    }

    fn value(self, x: T, y: T) -> U::Acc {
        U::narrow(U::from(x).widen().mul(U::from(y).widen())).widen()
    }
}

/// A function, in Rust and as an OpenCL C expression.
#[derive(Clone, Copy)]
struct Mapped<A, R>(fn(A) -> R, &'static str);

impl<T: Element<Acc = T>, R: Element<Acc = R>> Form<T, R> for Mapped<T, R> {
    fn run(self, device: &Device, of: Determinism, x: View<'_, T>, _: View<'_, T>, out: ViewMut<'_, R>) -> Result<()> {
        device.reduce_into(x.map(Map::new(self.0, self.1)), Sum.with(of), out)
    }

    fn value(self, x: T, _: T) -> R {
        self.0(x)
    }
}

/// Sizes at the edges of rows and tiles of both types. Some kernels have tiles of the input's type, and others have tiles of the
/// result's type.
fn sizes<T, U>(level: Level) -> Vec<usize> {
    let of_type = |row: usize, tile: usize| match level {
        Level::Tiny => vec![0, 1, row + 1],
        Level::Quick => vec![0, 3, 257, row + 1, tile - 1, 2 * tile + 3],
        Level::Full => vec![0, 1, 2, 3, 255, 257, row - 1, row + 1, tile - 1, tile, tile + 1, 2 * tile + 3, 999_983],
    };
    let mut sizes = of_type(cpu::lanes::<T>(), cpu::tile::<T>());
    sizes.extend(of_type(cpu::lanes::<U>(), cpu::tile::<U>()));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn form<T: Element, U: Element, O: Op<U>>(level: Level, name: &str, cases: &mut Vec<Case>, form: impl Form<T, U>) {
    let data_sets = match level {
        Level::Full => &[Data::Random, Data::Bits, Data::Extremes, Data::Special][..],
        _ => &[Data::Special],
    };
    for n in sizes::<T, U>(level) {
        for &data in data_sets {
            for offset in if level == Level::Full { &[0, 1, 7][..] } else { &[0, 3] } {
                let shape = format!("n = {n} at {offset}");
                let name = format!("{name} in {}", U::TYPE);
                cases.push(Case::new(name, T::TYPE, shape, data.name(), n, move |device| {
                    // The inputs begin at elements `offset` and 0, so unless `offset` is 0, only the second is aligned.
                    let run = |device: &Device, buffer: &Buffer<T>, out: ViewMut<'_, U>| {
                        form.run(device, FIXED, buffer.view(*offset..)?, buffer.view(..n)?, out)
                    };
                    let value = |x, y| form.value(x, y);
                    check(device, &monoid::<U, O>(), &data.generate(n + offset, n as u64), *offset, &run, &value)
                }));
            }
        }
    }
}

/// Runs an operation on a buffer that holds both of its inputs.
type Run<'r, T, U> = dyn Fn(&Device, &Buffer<T>, ViewMut<'_, U>) -> Result<()> + 'r;

/// Compares the result of `run` on two parts of `all` with the tree over the results of `value`.
fn check<T: Element, U: Element>(
    device: &Device,
    op: &Monoid<U, Function<U::Acc>>,
    all: &[T],
    offset: usize,
    run: &Run<'_, T, U>,
    value: &dyn Fn(T, T) -> U::Acc,
) -> Result<(), Failure> {
    let buffer = device.upload(all)?;
    let got = guarded(device, 1, offset, |out| Ok(run(device, &buffer, out)?))?;
    let want = if device.is_cpu() {
        let mut values = Vec::with_capacity(all.len() - offset);
        for (&x, &y) in all[offset..].iter().zip(all) {
            values.push(value(x, y));
        }
        obvious_tree::<U, U>(op, values)
    } else {
        let (cpu, mut want) = (Device::cpu(), Device::cpu().zeroed(1)?);
        run(&cpu, &cpu.upload(all)?, want.view_mut(..)?)?;
        want.to_vec()?[0]
    };
    same(&got, &[want], "result")
}

/// Cases of sums of floats in any order, within their bound.
fn fast<T: Element, U: Element<Acc = U>>(level: Level, name: &str, cases: &mut Vec<Case>, form: impl Form<T, U>) {
    for n in sizes::<T, U>(level) {
        let name = format!("{name} fast in {}", U::TYPE);
        cases.push(Case::new(name, T::TYPE, format!("n = {n}"), Data::Random.name(), n, move |device| {
            let all = Data::Random.generate::<T>(n + 1, n as u64);
            let buffer = device.upload(&all)?;
            let (x, y) = (buffer.view(1..)?, buffer.view(..n)?);
            let run = |out: ViewMut<'_, U>| form.run(device, Determinism::Fast, x, y, out);
            let got = guarded(device, 1, 0, |out| Ok(run(out)?))?[0].to_f64();
            let values: Vec<U> = (0..n).map(|i| form.value(all[i + 1], all[i])).collect();
            let depth = sum_depth::<T>(device, n, Determinism::Fast)?;
            let want: f64 = values.iter().map(|x| x.to_f64()).sum();
            close(got, want, sum_error(&values, depth), "result")
        }));
    }
}

/// Cases of exact sums; `value` returns the exact summand of a pair of elements.
fn exact<T: Element, U: Element>(
    level: Level,
    name: &str,
    cases: &mut Vec<Case>,
    form: impl Form<T, U>,
    value: fn(T, T) -> f64,
) {
    for n in sizes::<T, U>(level) {
        for data in [Data::Random, Data::Bits, Data::Special] {
            let name = format!("{name} exact in {}", U::TYPE);
            cases.push(Case::new(name, T::TYPE, format!("n = {n}"), data.name(), n, move |device| {
                on_cpu_at_least(device, has_exact_sums::<U>(device))?;
                let all = data.generate::<T>(n + 1, n as u64);
                let buffer = device.upload(&all)?;
                let (x, y) = (buffer.view(1..)?, buffer.view(..n)?);
                let got = guarded(device, 1, 0, |out| Ok(form.run(device, Determinism::Exact, x, y, out)?))?;
                let values: Vec<f64> = (0..n).map(|i| value(all[i + 1], all[i])).collect();
                same(&got, &[exact_sum(&values)], "result")
            }));
        }
    }
}

const SQUARE: Mapped<f32, f32> = Mapped(|x| x * x, "x * x");
const POSITIVE: Mapped<i8, u64> = Mapped(|x| u64::from(x > 0), "x > 0");

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    form::<i32, i64, Sum>(level, "sum", cases, As(Sum));
    form::<f16, f32, Sum>(level, "sum", cases, As(Sum));
    form::<f32, f32, Sum>(level, "sum of x * x", cases, SQUARE);
    form::<i8, u64, Sum>(level, "sum of x > 0", cases, POSITIVE);
    form::<f32, f32, Sum>(level, "dot", cases, Dot);
    form::<f32, f64, Sum>(level, "dot", cases, Dot);
    fast::<f16, f32>(level, "sum", cases, As(Sum));
    fast::<f32, f32>(level, "sum of x * x", cases, SQUARE);
    fast::<f32, f32>(level, "dot", cases, Dot);
    exact::<f16, f32>(level, "sum", cases, As(Sum), |x, _| x.to_f64());
    exact::<i32, f64>(level, "sum", cases, As(Sum), |x, _| x.into());
    exact::<f32, f32>(level, "sum of x * x", cases, SQUARE, |x, _| f64::from(x * x));
    exact::<f16, f16>(level, "dot", cases, Dot, |x, y| x.to_f64() * y.to_f64());
    exact::<f32, f32>(level, "dot", cases, Dot, |x, y| f64::from(x) * f64::from(y));
    if level == Level::Full {
        form::<u8, u32, Sum>(level, "sum", cases, As(Sum));
        form::<u8, u64, Sum>(level, "sum", cases, As(Sum));
        form::<i16, i64, Sum>(level, "sum", cases, As(Sum));
        form::<u32, u64, Sum>(level, "sum", cases, As(Sum));
        form::<i8, f16, Sum>(level, "sum", cases, As(Sum));
        form::<u16, f32, Sum>(level, "sum", cases, As(Sum));
        form::<i32, f64, Sum>(level, "sum", cases, As(Sum));
        form::<bf16, f64, Sum>(level, "sum", cases, As(Sum));
        form::<f32, f64, Sum>(level, "sum", cases, As(Sum));
        form::<i32, i64, Product>(level, "product", cases, As(Product));
        form::<f16, f32, Product>(level, "product", cases, As(Product));
        form::<f16, f32, Min>(level, "min", cases, As(Min));
        form::<u8, i16, Max>(level, "max", cases, As(Max));
        form::<i8, i32, Sum>(level, "dot", cases, Dot);
        form::<i32, i64, Sum>(level, "dot", cases, Dot);
        form::<u16, u16, Sum>(level, "dot", cases, Dot);
        form::<bf16, f32, Sum>(level, "dot", cases, Dot);
        form::<f64, f64, Sum>(level, "dot", cases, Dot);
    }
}

struct Measured<T: Element, U: Element> {
    device: Device,
    host: Vec<T>,
    x: Buffer<T>,
    out: Buffer<U>,
}

fn bench<T: Element, U: Element>(name: &str, inputs: u64, form: impl Form<T, U>) -> Bench {
    let bytes = move |n| inputs * (n * size_of::<T>()) as u64;
    Bench::new(format!("{name} in {}", U::TYPE), T::TYPE, bytes, move |device, n| {
        let all = inputs as usize * n;
        let host = Data::Random.generate::<T>(all, n as u64);
        let (x, out) = (device.upload(&host)?, device.zeroed::<U>(1)?);
        let run = move |device: &Device, x: &Buffer<T>, out: &mut Buffer<U>| {
            let part = |range: Range<usize>| x.view(range);
            form.run(device, FIXED, part(0..n)?, part(all - n..all)?, out.view_mut(..)?)
        };
        Ok(Climb::new(
            Measured { device: device.clone(), host, x, out },
            |this| this.out.fill(U::ZERO),
            move |this| run(&this.device, &this.x, &mut this.out),
            move |this| {
                let (cpu, mut want) = (Device::cpu(), Device::cpu().zeroed(1)?);
                run(&cpu, &cpu.upload(&this.host)?, &mut want)?;
                same(&this.out.to_vec()?, &want.to_vec()?, "result")
            },
        ))
    })
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    vec![
        bench::<u8, u32>("sum", 1, As(Sum)),
        bench::<i16, i64>("sum", 1, As(Sum)),
        bench::<i32, i64>("sum", 1, As(Sum)),
        bench::<f16, f32>("sum", 1, As(Sum)),
        bench::<f32, f32>("sum of x * x", 1, SQUARE),
        bench::<f32, f32>("dot", 2, Dot),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use crate::{
        reduce::gpu::{self, Form, Origin},
        source::load::Load,
    };
    let mut programs = Vec::new();
    // Elements in memory of a narrower type than the result, added in any order (`Form::into` makes integers `Fast`).
    let forms = [
        Form::into::<i32, i64, Sum>(FIXED),
        Form::into::<u8, u32, Sum>(FIXED),
        Form::into::<f16, f32, Sum>(Determinism::Fast),
    ];
    fn computed<S: Source<Item: Element>>(source: S) -> [Load; 2] {
        [false, true].map(|aligned| Load::without_device(&source, aligned).expect("the source has a load"))
    }
    let (floats, bits) = (Input::<f32>::Host(&[]), Input::<i8>::Host(&[]));
    let sources = [
        (Form::of::<f32, Sum>(FIXED), computed(Input::<f16>::Host(&[]).cast::<f32>())),
        (Form::of::<f16, Sum>(FIXED), computed(bits.cast::<f16>())),
        (Form::of::<f64, Sum>(FIXED), computed(Input::<bf16>::Host(&[]).cast::<f64>())),
        (Form::of::<f32, Sum>(FIXED), computed(floats.map(Map::new(SQUARE.0, SQUARE.1)))),
        (Form::of::<u64, Sum>(FIXED), computed(bits.map(Map::new(POSITIVE.0, POSITIVE.1)))),
        (Form::of::<f32, Sum>(FIXED), computed(floats.times(floats))),
        (Form::of::<u16, Sum>(FIXED), computed(Input::<u16>::Host(&[]).times(Input::<u16>::Host(&[])))),
        (Form::of::<f64, Sum>(FIXED), computed(Input::<f64>::Host(&[]).times(Input::<f64>::Host(&[])))),
        (Form::of::<f32, Sum>(Determinism::Fast), computed(floats.map(Map::new(SQUARE.0, SQUARE.1)))),
        (Form::of::<f32, Sum>(Determinism::Fast), computed(floats.times(floats))),
    ];
    for (aligned, wide) in [(false, false), (true, false), (true, true)] {
        let memory = forms.iter().map(|form| (form, Origin::Memory(aligned)));
        let computed = sources.iter().map(|(form, loads)| (form, Origin::Source(&loads[usize::from(aligned)])));
        let plans =
            memory.chain(computed).filter_map(|(form, origin)| gpu::plan(1 << 20, form, origin, caps, &|_| wide).ok());
        programs.extend(plans.flat_map(|plan| plan.passes).map(|pass| pass.program));
    }
    programs
}
