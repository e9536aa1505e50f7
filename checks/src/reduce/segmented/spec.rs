//! Cases and benchmark cases of segmented reductions.

use crate::{
    Buffer, Device, Element, Float, Result, Source, View, ViewMut,
    bench::Bench,
    bf16,
    check::{
        CANARY, Case, Failure, Level,
        data::{Data, Rng},
        guarded,
        operators::{Function, affine, monoid, plus},
        poison, same,
        segments::Cut,
    },
    f16,
    ladder::Climb,
    op::{And, Max, Min, Monoid, Op, OpKind, Or, Product, Sum, Usage, Xor},
    reduce::{
        segmented::{BLOCK_BYTES, Offset},
        shared::thin,
    },
    tuning::Tuned,
};
use crate::{ProgramSpec, check::operators::divisor};

/// The tree over `start..end` within the aligned range `low..low + len`, by definition; `None` if the ranges do not
/// overlap.
fn obvious<T, U, F>(op: &Monoid<U, F>, x: &[T], low: usize, len: usize, start: usize, end: usize) -> Option<U::Acc>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let (from, to) = (start.max(low), end.min(low + len));
    if from >= to {
        return None;
    }
    if len <= BLOCK_BYTES / size_of::<U>() {
        return Some(x[from..to].iter().fold(op.identity, |acc, x| (op.combine)(acc, U::from(*x).widen())));
    }
    let half = len / 2;
    match (obvious(op, x, low, half, start, end), obvious(op, x, low + half, half, start, end)) {
        (Some(left), Some(right)) => Some((op.combine)(left, right)),
        (left, right) => left.or(right),
    }
}

/// Function that runs an operation.
type Run<T, U, C> = fn(&Device, View<'_, T>, View<'_, C>, ViewMut<'_, U>) -> Result<()>;

fn plain<T: Element, C: Offset, O: Op<T> + Default>() -> Run<T, T, C> {
    |device, x, offsets, out| device.reduce_into(x.segments(offsets), O::default(), out)
}

fn wider<T: Element, U: Element + From<T>, C: Offset, O: Op<U> + Default>() -> Run<T, U, C> {
    |device, x, offsets, out| device.reduce_into(x.cast::<U>().segments(offsets), O::default(), out)
}

fn exact<T: Float, C: Offset>() -> Run<T, T, C> {
    |device, x, offsets, out| device.reduce_into(x.segments(offsets), Sum.exact(), out)
}

/// An operation: its monoid, the kind of operator that is passed to [`thin`], and the function that runs it.
type Form<T, U, C, F> = (Monoid<U, F>, OpKind, Run<T, U, C>);

/// Operation with a user-defined operator that is not commutative.
fn by_affine<C: Offset>() -> Form<u64, u64, C, Function<u64>> {
    let run: Run<u64, u64, C> = |device, x, offsets, out| device.reduce_into(x.segments(offsets), &affine(), out);
    (Monoid { identity: 1, empty: 1, ordered: true, combine: affine().combine }, OpKind::Sum, run)
}

/// Operation with a user-defined operator that rounds.
fn by_plus<C: Offset>() -> Form<f32, f32, C, Function<f32>> {
    let run: Run<f32, f32, C> = |device, x, offsets, out| device.reduce_into(x.segments(offsets), &plus(), out);
    (Monoid { identity: -0.0, empty: -0.0, ordered: true, combine: plus().combine }, OpKind::Sum, run)
}

fn check<T, U, C, F>(
    device: &Device,
    (op, kind, run): &Form<T, U, C, F>,
    all: &mut [T],
    cut: Cut,
    at: usize,
) -> std::result::Result<(), Failure>
where
    T: Element,
    U: Element + From<T>,
    C: Offset,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    thin(all, *kind, 101);
    let input = &all[at..];
    let offsets: Vec<C> = cut.offsets(input.len());
    let segments = offsets.len() - 1;
    let x = device.upload(&*all)?;
    let padded = [vec![C::ZERO; at], offsets.clone()].concat();
    let offsets_there = device.upload(&padded)?;
    let got = guarded(device, segments, at, |out| Ok(run(device, x.view(at..)?, offsets_there.view(at..)?, out)?))?;
    let want = if device.is_cpu() {
        let offset = |i: usize| offsets[i].to_i128() as usize;
        let mut want = Vec::with_capacity(segments);
        for i in 0..segments {
            let found = obvious(op, input, 0, input.len().next_power_of_two(), offset(i), offset(i + 1));
            want.push(found.map_or(op.empty, U::narrow));
        }
        want
    } else {
        let cpu = Device::cpu();
        let (x, offsets, mut want) = (cpu.upload(input)?, cpu.upload(&offsets)?, cpu.zeroed(segments)?);
        run(&cpu, x.view(..)?, offsets.view(..)?, want.view_mut(..)?)?;
        want.to_vec()?
    };
    same(&got, &want, "out")
}

/// Checks invalid offsets: results are unspecified, but calls write only to their outputs, and checked calls return an
/// error.
fn check_wrong<C: Offset>(device: &Device, n: usize) -> std::result::Result<(), Failure> {
    let x = Data::Random.generate::<f32>(n, 1);
    let mut rng = Rng::new(n as u64);
    let wild: Vec<C> = (0..300).map(|_| C::from_bits_lossy(rng.next() >> (rng.next() % 60))).collect();
    guarded(device, 299, 1, |out| Ok(device.reduce_into(x.segments(&wild), Sum, out)?))?;
    // There are so many equal offsets that tiles take another path. One of the offsets is invalid, at an index that no
    // search reads.
    let mut crowd = vec![C::from_i128(0); 20_001];
    crowd[2] = C::from_i128(3_000_000_000);
    crowd[20_000] = C::from_i128(n as i128);
    guarded(device, 20_000, 1, |out| Ok(device.reduce_into(x.segments(&crowd), Sum, out)?))?;
    for offsets in [vec![0, n / 2, n / 3, n], vec![0, n, n + 1], vec![n + 1]] {
        let offsets: Vec<C> = offsets.into_iter().map(|x| C::from_i128(x as i128)).collect();
        // The host checks the offsets of a slice; a kernel checks those on the device.
        let there = device.upload(&offsets)?;
        if device.reduce(x.segments(&offsets), Sum).is_ok() || device.reduce(x.segments(&there), Sum).is_ok() {
            return Err(Failure::Mismatch(format!("offsets {offsets:?} of {n} elements were accepted")));
        }
    }
    // Segments that reach beyond the input end with it.
    let beyond: Vec<C> = [0, n + 5, n + CANARY].map(|x| C::from_i128(x as i128)).into();
    let got = guarded(device, 2, 0, |out| Ok(device.reduce_into(x.segments(&beyond), Max, out)?))?;
    same(&got, &[Device::cpu().reduce(&x, Max)?, f32::NEG_INFINITY], "clamped")
}

fn form<T: Element, C: Offset, O: Op<T> + Default + 'static>(level: Level, cases: &mut Vec<Case>) {
    let form = (monoid::<T, O>(), O::KIND, plain::<T, C, O>());
    form_by(level, &format!("{} of segments", O::KIND.name()), form, cases);
}

fn form_as<T: Element, U: Element + From<T>, C: Offset, O: Op<U> + Default + 'static>(
    level: Level,
    cases: &mut Vec<Case>,
) {
    let name = format!("{} in {} of segments", O::KIND.name(), U::TYPE);
    form_by(level, &name, (monoid::<U, O>(), O::KIND, wider::<T, U, C, O>()), cases);
}

fn form_by<T, U, C, F>(level: Level, name: &str, form: Form<T, U, C, F>, cases: &mut Vec<Case>)
where
    T: Element,
    U: Element + From<T>,
    C: Offset,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Copy + Send + Sync + 'static,
{
    let block = BLOCK_BYTES / size_of::<T>();
    let mut cuts = vec![Cut::Every(1), Cut::Every(3), Cut::Every(block), Cut::PowerLaw, Cut::Huge, Cut::Gaps];
    let mut sizes = vec![1, 256 * block + 7];
    if level >= Level::Quick {
        cuts.extend([Cut::Every(257), Cut::Mixed(block), Cut::Empty, Cut::Crowded]);
        sizes.extend([0, 2048 * block + block / 2 + 1]);
    }
    if level >= Level::Full {
        cuts.extend([2, 5, 16, 64, 100, 1000, 4096, 65_536].map(Cut::Every));
        sizes.extend([2, block, 256 * block, 1024 * block, 300_001, 1_000_003]);
    }
    let data_sets = if level >= Level::Full { &[Data::Random, Data::Special][..] } else { &[Data::Special] };
    for n in sizes {
        for (i, &cut) in cuts.iter().enumerate() {
            if n < 2 && i > 0 && level < Level::Full || matches!(cut, Cut::Every(1..3)) && n > 300_000 {
                continue;
            }
            for &data in data_sets {
                let at = [0, 3][i % 2];
                let shape = format!("n = {n} at {at}, segments {}, {} offsets", cut.name(), C::TYPE);
                cases.push(Case::new(name, T::TYPE, shape, data.name(), n, move |device| {
                    check(device, &form, &mut data.generate::<T>(n + at, n as u64), cut, at)
                }));
            }
        }
    }
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    form::<f32, u32, Sum>(level, cases);
    form::<i64, u64, Sum>(level, cases);
    form::<u8, u32, Max>(level, cases);
    form_by(level, "affine of segments", by_affine::<u32>(), cases);
    if level >= Level::Quick {
        form::<f16, u32, Sum>(level, cases);
        form_as::<i32, i64, u32, Sum>(level, cases);
    }
    if level >= Level::Full {
        form_by(level, "a + b of segments", by_plus::<u64>(), cases);
        form::<f32, u64, Sum>(level, cases);
        form::<f64, u32, Sum>(level, cases);
        form::<i8, u32, Sum>(level, cases);
        form::<i16, u64, Min>(level, cases);
        form::<i32, u32, Product>(level, cases);
        form::<u64, u32, Xor>(level, cases);
        form::<f32, u32, Min>(level, cases);
        form::<f32, u32, Product>(level, cases);
        // The types above are checked with all shapes; other types and operators are checked with some of them.
        form::<u8, u32, Sum>(Level::Quick, cases);
        form::<i16, u32, Sum>(Level::Quick, cases);
        form::<u16, u32, Sum>(Level::Quick, cases);
        form::<u32, u64, Sum>(Level::Quick, cases);
        form::<i32, u32, Max>(Level::Quick, cases);
        form::<u64, u32, Sum>(Level::Quick, cases);
        form::<bf16, u32, Sum>(Level::Quick, cases);
        form::<u32, u32, And>(Level::Quick, cases);
        form::<i8, u32, And>(Level::Quick, cases);
        form::<i64, u32, Or>(Level::Quick, cases);
        form::<u16, u32, Or>(Level::Quick, cases);
        form_as::<u8, u32, u32, Sum>(Level::Quick, cases);
        form_as::<f16, f32, u64, Sum>(Level::Quick, cases);
        form_as::<bf16, f64, u32, Sum>(Level::Quick, cases);
        form_as::<i8, f16, u32, Min>(Level::Quick, cases);
    }
    for n in [9, 1000, 20_000] {
        let shape = format!("n = {n}, wrong offsets");
        cases.push(Case::new("sum of segments", f32::TYPE, shape.clone(), "wild", n, move |device| {
            check_wrong::<u32>(device, n)
        }));
        if level >= Level::Full {
            cases.push(Case::new("sum of segments", f32::TYPE, shape + ", u64", "wild", n, move |device| {
                check_wrong::<u64>(device, n)
            }));
        }
    }
}

/// Benchmark case that compares with the result of the same call on the CPU.
fn bench<T: Element, U: Element + From<T>>(op: &str, cut: Cut, run: Run<T, U, u32>) -> Bench {
    struct Measured<T: Element, U: Element> {
        device: Device,
        host: (Vec<T>, Vec<u32>),
        x: Buffer<T>,
        offsets: Buffer<u32>,
        out: Buffer<U>,
    }
    let wide = if T::TYPE == U::TYPE { String::new() } else { format!(" in {}", U::TYPE) };
    Bench::new(
        format!("{op}{wide} of segments {}", cut.name()),
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let host = (Data::Random.generate::<T>(n, n as u64), cut.offsets::<u32>(n));
            let (x, offsets) = (device.upload(&host.0)?, device.upload(&host.1)?);
            let out = device.zeroed(offsets.len() - 1)?;
            Ok(Climb::new(
                Measured { device: device.clone(), host, x, offsets, out },
                |this| this.out.fill(poison()),
                move |this| {
                    let Measured { device, x, offsets, out, .. } = this;
                    run(device, x.view(..)?, offsets.view(..)?, out.view_mut(..)?)
                },
                move |this| {
                    let cpu = Device::cpu();
                    let (x, offsets) = (cpu.upload(&this.host.0)?, cpu.upload(&this.host.1)?);
                    let mut want = cpu.zeroed(this.out.len())?;
                    run(&cpu, x.view(..)?, offsets.view(..)?, want.view_mut(..)?)?;
                    same(&this.out.to_vec()?, &want.to_vec()?, "out")
                },
            ))
        },
    )
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    let cuts = [Cut::Every(16), Cut::Every(256), Cut::Every(65_536), Cut::PowerLaw];
    let sum = |cut| bench::<f32, f32>("sum", cut, plain::<f32, u32, Sum>());
    let mut benches: Vec<_> = cuts.into_iter().map(sum).collect();
    benches.push(bench::<i32, i32>("max", Cut::Every(256), plain::<i32, u32, Max>()));
    benches.push(bench::<i32, i64>("sum", Cut::Every(256), wider::<i32, i64, u32, Sum>()));
    for cut in [Cut::Every(16), Cut::Every(256), Cut::PowerLaw] {
        benches.push(bench::<f32, f32>("sum exact", cut, exact::<f32, u32>()));
    }
    benches.push(bench::<f64, f64>("sum", Cut::Every(256), plain::<f64, u32, Sum>()));
    benches.push(bench::<f64, f64>("sum exact", Cut::Every(256), exact::<f64, u32>()));
    benches.push(bench::<f32, f32>("by a + b", Cut::Every(256), by_plus().2));
    benches
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::{Form, plan};
    let mut programs = Vec::new();
    for (aligned, wide) in [(false, false), (true, false), (true, true)] {
        let forms = [
            Form::of::<f32, Sum>(u32::TYPE),
            Form::of::<f32, Sum>(u64::TYPE),
            Form::of::<f64, Sum>(u32::TYPE),
            Form::of::<f16, Sum>(u32::TYPE),
            Form::of::<u8, Max>(u32::TYPE),
            Form::of::<i64, Sum>(u64::TYPE),
            Form::of::<i16, Product>(u32::TYPE),
            Form::of::<f32, Min>(u32::TYPE),
            Form::of::<u32, And>(u32::TYPE),
            Form::of::<u16, Or>(u32::TYPE),
            Form::into::<i32, i64, Sum>(u32::TYPE),
            Form::into::<u8, u32, Sum>(u32::TYPE),
            Form::into::<f16, f32, Sum>(u32::TYPE),
            Form::by::<u32, u32>(divisor().source(), u32::TYPE),
        ];
        let plans = forms.iter().filter_map(|form| plan(1 << 20, 100, form, aligned, caps, &|_| wide).ok());
        programs.extend(plans.map(|plan| plan.program));
    }
    programs
}
