//! Spec of scans: cases, programs and benchmark cases.

use crate::scan::in_scan;
use std::ops::Range;

use super::{
    Scan, axis, cpu, exact, segmented,
    shared::{bench_of, exclusive_prefixes, sizes},
};
use crate::{
    Device, DeviceClass, Element, ElementType, Input, Integer, Output, ProgramSpec, Source, Tuning, ViewMut,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        bounds::sum_error,
        close,
        data::Data,
        guarded,
        hard::Numbers,
        operators::{Function, Tried, affine, either, monoid},
        same,
    },
    f16,
    op::{And, Map, Max, Min, Monoid, Op, OpKind, Or, Product, Sum, Xor},
    source::load::Load,
    tuning::Tuned,
    with_element, with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct ScanSpec;

/// Largest number of additions on the path of a value. The path goes twice through a run, and up and down the trees of
/// chunks, tiles and tile groups.
const DEPTH: f64 = 2.0 * (8.0 + 5.0 + 6.0 + 6.0 * 6.0);

/// Variant of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Inclusive,
    Exclusive,
    /// Exclusive, then the aggregate.
    Total,
    InPlace,
    /// Exclusive, from the last element to the first. The aggregate is the first result in memory.
    Reversed,
    ReversedInPlace,
}

impl Form {
    const ALL: [Self; 6] =
        [Self::Inclusive, Self::Exclusive, Self::Total, Self::InPlace, Self::Reversed, Self::ReversedInPlace];

    const fn name(self) -> &'static str {
        match self {
            Self::Inclusive => "inclusive",
            Self::Exclusive => "exclusive",
            Self::Total => "with the total",
            Self::InPlace => "in place",
            Self::Reversed => "reversed",
            Self::ReversedInPlace => "reversed in place",
        }
    }

    fn kind<U: Element>(self) -> Scan<U> {
        match self {
            Self::Inclusive | Self::InPlace => Scan::inclusive(),
            Self::Exclusive | Self::Total => Scan::exclusive(U::from_f64(5.0)),
            Self::Reversed => Scan::exclusive(U::from_f64(5.0)).reversed(),
            Self::ReversedInPlace => Scan::inclusive().reversed(),
        }
    }

    fn outputs(self, n: usize) -> usize {
        n + usize::from(matches!(self, Self::Total | Self::Reversed))
    }
}

/// Results by definition for `values` in the order of the scan.
fn obvious<U: Element>(
    op: &Monoid<U, Function<U::Acc>>,
    values: &[U::Acc],
    run: usize,
    kind: Scan<U>,
    outputs: usize,
) -> Vec<U> {
    let combine = &op.combine;
    let (initial, inclusive) = cpu::start(op, kind);
    let mut out = Vec::with_capacity(outputs);
    let mut results = |mut acc: U::Acc, range: Range<usize>| {
        for i in range {
            let next = values.get(i).map_or(acc, |&x| combine(acc, x));
            out.push(U::narrow(if inclusive { next } else { acc }));
            acc = next;
        }
    };
    if !op.ordered {
        results(initial, 0..outputs);
        return out;
    }
    let exclusive_prefixes = exclusive_prefixes(combine, op.identity, values, run, outputs);
    for (first, (digits, own)) in (0..outputs).step_by(run).zip(exclusive_prefixes) {
        let prefix = digits.into_iter().fold(initial, combine);
        results(combine(prefix, own), first..outputs.min(first + run));
    }
    out
}

/// Function that runs a scan on a device.
type Run<T, U> = fn(&Device, Input<'_, T>, Scan<U>, Output<'_, U>) -> crate::Result<()>;

/// A built-in operator: its monoid for the definition, its kind, and the function that runs it on a device.
#[derive(Clone, Copy)]
struct BuiltIn<T: Element, U: Element> {
    op: Monoid<U, Function<U::Acc>>,
    kind: OpKind,
    run: Run<T, U>,
}

impl<T: Element> BuiltIn<T, T> {
    fn of<O: Op<T> + Default>() -> Self {
        let run = |device: &Device, input: Input<'_, T>, kind, output: Output<'_, T>| {
            device.scan_into(input, in_scan(O::default(), kind), output)
        };
        Self { op: monoid::<T, O>(), kind: O::KIND, run }
    }
}

impl<T: Element, U: Element + From<T>> BuiltIn<T, U> {
    fn wider<O: Op<U> + Default>() -> Self {
        let run = |device: &Device, input: Input<'_, T>, kind, output: Output<'_, U>| {
            device.scan_into(input.cast::<U>(), in_scan(O::default(), kind), output)
        };
        Self { op: monoid::<U, O>(), kind: O::KIND, run }
    }
}

/// Function that runs a scan in place on a device.
type InPlace<T> = fn(&Device, ViewMut<'_, T>, Scan<T>) -> crate::Result<()>;

fn in_place<T: Element, O: Op<T> + Default>() -> InPlace<T> {
    |device, x, kind| device.scan_in_place(x, in_scan(O::default(), kind))
}

/// Compares the CPU backend with the definition, and other devices with the CPU backend.
fn check<T: Element, U: Element + From<T>>(
    built_in: &BuiltIn<T, U>,
    device: &Device,
    all: &[T],
    offset: usize,
    form: Form,
) -> Result<(), Failure> {
    let input = &all[offset..];
    let (outputs, kind) = (form.outputs(input.len()), form.kind::<U>());
    let on_device = device.upload(all)?;
    // Unless `offset` is 0, input and output have different alignments.
    let got = guarded(device, outputs, 2 * offset, |out| {
        Ok((built_in.run)(device, on_device.view(offset..)?.into(), kind, out.into())?)
    })?;
    if !device.is_cpu() {
        let mut want = vec![U::ZERO; outputs];
        (built_in.run)(&Device::cpu(), input.into(), kind, (&mut want).into())?;
        return same(&got, &want, form.name());
    }
    let mut values = Vec::with_capacity(input.len());
    for &x in input {
        values.push(U::from(x).widen());
    }
    if kind.reversed {
        values.reverse();
    }
    let mut want = obvious(&built_in.op, &values, cpu::run::<U>(), kind, outputs);
    if kind.reversed {
        want.reverse();
    }
    same(&got, &want, form.name())?;
    let sums = form == Form::Inclusive && built_in.kind == OpKind::Sum && U::TYPE.is_float();
    let Some(last) = got.last().filter(|_| sums) else {
        return Ok(());
    };
    // If partial sums overflow, only the definition gives the result.
    let (mut wide, mut want) = (Vec::with_capacity(input.len()), 0.0);
    for &x in input {
        let x = U::from(x);
        wide.push(x);
        want += x.to_f64();
    }
    if want.is_finite() && last.to_f64().is_finite() {
        return close(*last, want, sum_error(&wide, DEPTH), "the last sum");
    }
    Ok(())
}

fn check_in_place<T: Element>(
    (built_in, in_place): (&BuiltIn<T, T>, InPlace<T>),
    device: &Device,
    all: &[T],
    offset: usize,
    form: Form,
) -> Result<(), Failure> {
    let input = &all[offset..];
    let kind = form.kind();
    let got = guarded(device, input.len(), offset, |mut x| {
        x.write(input)?;
        Ok(in_place(device, x, kind)?)
    })?;
    let mut want = vec![T::ZERO; input.len()];
    (built_in.run)(&Device::cpu(), input.into(), kind, (&mut want).into())?;
    same(&got, &want, form.name())
}

/// Returns true if an operator is checked on a type. Each pair costs a driver a build of up to half a second.
fn tried(level: Level, element: ElementType, op: OpKind) -> bool {
    use ElementType::{F16, F32, I32, I64, U8, U32};
    match (level, op) {
        (Level::Full, _) => true,
        (Level::Quick, OpKind::Sum) => matches!(element, U8 | U32 | I64 | F16 | F32),
        (Level::Quick, OpKind::Min) => element == F32,
        (Level::Quick, OpKind::Xor) => element == I32,
        (Level::Tiny, OpKind::Sum) => matches!(element, U32 | F32),
        (_, OpKind::Max) => element == I64,
        _ => false,
    }
}

/// Variants at the i-th size. Sums take the same ones at every size, and other operators take one variant per size.
fn forms(level: Level, element: ElementType, op: OpKind, i: usize) -> Vec<Form> {
    let all =
        level == Level::Full || element == ElementType::F32 || (level, element) == (Level::Quick, ElementType::U32);
    match op {
        OpKind::Sum if all => Form::ALL.to_vec(),
        OpKind::Sum => vec![Form::Inclusive, Form::Total],
        _ if level == Level::Tiny => vec![Form::Inclusive],
        _ => vec![Form::ALL[i % Form::ALL.len()]],
    }
}

fn op_cases<T: Element, O: Op<T> + Default>(level: Level, cases: &mut Vec<Case>) {
    if tried(level, T::TYPE, O::KIND) {
        cases_of(level, (BuiltIn::<T, T>::of::<O>(), in_place::<T, O>()), cases);
    }
}

fn cases_of<T: Element>(level: Level, (built_in, run_in_place): (BuiltIn<T, T>, InPlace<T>), cases: &mut Vec<Case>) {
    let op = built_in.kind;
    for (i, n) in sizes::<T>(level).into_iter().enumerate() {
        let data_sets: &[Data] = match level {
            Level::Full if n < 100_000 => &Data::ALL,
            Level::Tiny => &[Data::Random],
            _ if op == OpKind::Min => &[[Data::Random, Data::Special, Data::Nan][i % 3]],
            _ => &[[Data::Random, Data::Special][i % 2]],
        };
        for form in forms(level, T::TYPE, op, i) {
            let in_place = matches!(form, Form::InPlace | Form::ReversedInPlace);
            for &data in data_sets {
                let offset =
                    if level == Level::Tiny && op != OpKind::Sum { 0 } else { (i + usize::from(in_place)) % 2 };
                let (name, shape) = (format!("{} {}", op.name(), form.name()), format!("n = {n} at {offset}"));
                cases.push(Case::new(name, T::TYPE, shape, data.name(), n, move |device| {
                    let all = data.generate::<T>(n + offset, n as u64);
                    if in_place {
                        check_in_place((&built_in, run_in_place), device, &all, offset, form)
                    } else {
                        check(&built_in, device, &all, offset, form)
                    }
                }));
            }
        }
    }
}

/// Cases of sums in a wider type.
fn wide_cases<T: Element, U: Element + From<T>>(level: Level, cases: &mut Vec<Case>) {
    let sum = BuiltIn::<T, U>::wider::<Sum>();
    for (i, n) in sizes::<T>(level).into_iter().enumerate() {
        for form in [Form::Inclusive, Form::Total] {
            let offset = if level == Level::Tiny { 0 } else { i % 2 };
            let shape = format!("n = {n} at {offset}");
            let name = format!("sum as {} {}", U::TYPE, form.name());
            cases.push(Case::new(name, T::TYPE, shape, Data::Random.name(), n, move |device| {
                check(&sum, device, &Data::Random.generate::<T>(n + offset, n as u64), offset, form)
            }));
        }
    }
}

/// Cases of sums of a function of each element, in another type.
fn mapped_cases<T: Element<Acc = T>, R: Element<Acc = R>>(
    level: Level,
    (function, text): (fn(T) -> R, &'static str),
    cases: &mut Vec<Case>,
) {
    for (i, n) in sizes::<R>(level).into_iter().enumerate() {
        let (offset, name, shape) =
            (i % 2, format!("sum of {} by a function", R::TYPE), format!("n = {n} at {}", i % 2));
        cases.push(Case::new(name, T::TYPE, shape, Data::Random.name(), n, move |device| {
            let all = Data::Random.generate::<T>(n + offset, n as u64);
            let on_device = device.upload(&all)?;
            let (map, kind) = (Map::new(function, text), Scan::exclusive(R::ONE));
            let got = guarded(device, n + 1, offset, |out| {
                let source = on_device.view(offset..)?.map(&map);
                Ok(device.scan_into(source, in_scan(Sum, kind), out)?)
            })?;
            let values: Vec<R> = all[offset..].iter().map(|x| function(*x)).collect();
            same(&got, &obvious(&monoid::<R, Sum>(), &values, cpu::run::<R>(), kind, n + 1), "sums")
        }));
    }
}

/// Cases of a user-defined operator.
fn operator_cases<T: Element<Acc = T>>(level: Level, op: fn() -> Tried<T>, cases: &mut Vec<Case>) {
    for (i, n) in sizes::<T>(level).into_iter().enumerate() {
        for form in [Form::Inclusive, Form::Total, Form::Reversed] {
            let (offset, name) = (i % 2, format!("by {} {}", op().name(), form.name()));
            cases.push(Case::new(name, T::TYPE, format!("n = {n} at {offset}"), "random", n, move |device| {
                let all = Data::Random.generate::<T>(n + offset, n as u64);
                let (op, kind, outputs) = (op(), form.kind::<T>(), form.outputs(n));
                let on_device = device.upload(&all)?;
                let got = guarded(device, outputs, offset, |out| {
                    Ok(device.scan_into(on_device.view(offset..)?, in_scan(&op, kind), out)?)
                })?;
                let mut values = all[offset..].to_vec();
                if kind.reversed {
                    values.reverse();
                }
                let identity = op.identity;
                let monoid = Monoid { identity, empty: identity, ordered: true, combine: op.combine };
                let mut want = obvious(&monoid, &values, cpu::run::<T>(), kind, outputs);
                if kind.reversed {
                    want.reverse();
                }
                same(&got, &want, op.name())
            }));
        }
    }
}

fn bit_cases<T: Integer<Acc: Integer>>(level: Level, cases: &mut Vec<Case>) {
    op_cases::<T, And>(level, cases);
    op_cases::<T, Or>(level, cases);
    op_cases::<T, Xor>(level, cases);
}

fn bench<T: Element>(form: Form, look_back: bool) -> Bench {
    let name = format!("sum {}{}", form.name(), if look_back { "" } else { ", without look-back" });
    let tuning = (!look_back).then(|| Tuning::default().without_look_back());
    bench_of::<T>(name, form.kind(), move |n| form.outputs(n), Numbers::Uniform, tuning)
}

impl Spec for ScanSpec {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        for element in ElementType::ALL {
            with_element!(element, T => {
                op_cases::<T, Sum>(level, &mut cases);
                op_cases::<T, Product>(level, &mut cases);
                op_cases::<T, Min>(level, &mut cases);
                op_cases::<T, Max>(level, &mut cases);
            });
            with_integer!(element, T => bit_cases::<T>(level, &mut cases), ());
        }
        wide_cases::<u32, u64>(level, &mut cases);
        if level >= Level::Quick {
            wide_cases::<u8, u32>(level, &mut cases);
            wide_cases::<f16, f32>(level, &mut cases);
        }
        // Without look-back, work-groups do not wait for one another.
        let (several, mut sums) = (Tuning::default().class(DeviceClass::Gpu).without_look_back(), Vec::new());
        op_cases::<f32, Sum>(level, &mut sums);
        sums.retain(|case| case.form == "sum with the total");
        cases.extend(sums.into_iter().map(|case| case.tuned("sum, without look-back", several.clone())));
        operator_cases(level, affine, &mut cases);
        mapped_cases::<f32, u32>(level, (|x| u32::from(x > 0.5), "x > 0.5f"), &mut cases);
        if level >= Level::Full {
            mapped_cases::<u32, f32>(level, (|x| (x >> 8) as f32 * 0.25, "(float)(x >> 8) * 0.25f"), &mut cases);
            mapped_cases::<i64, u8>(level, (|x| (x % 5 == 0) as u8, "x % 5 == 0"), &mut cases);
            wide_cases::<f32, f64>(level, &mut cases);
            wide_cases::<i8, i64>(level, &mut cases);
            operator_cases(level, either, &mut cases);
        }
        segmented::spec::cases(level, &mut cases);
        axis::spec::cases(level, &mut cases);
        exact::spec::cases(level, &mut cases);
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches = vec![
            bench::<u32>(Form::Inclusive, true),
            bench::<u32>(Form::Exclusive, true),
            bench::<f32>(Form::Inclusive, true),
            bench::<f32>(Form::Exclusive, true),
            bench::<u64>(Form::Inclusive, true),
            bench::<u64>(Form::Exclusive, true),
            bench::<u32>(Form::Reversed, true),
            bench::<u32>(Form::Exclusive, false),
            bench::<f32>(Form::Exclusive, false),
        ];
        benches.extend(segmented::spec::benches());
        benches.extend(axis::spec::benches());
        benches.extend(exact::spec::benches());
        benches
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        use super::gpu;
        let mut forms = vec![
            gpu::Form::of::<u32, u64, Sum>(false),
            gpu::Form::of::<u8, u32, Sum>(false),
            gpu::Form::of::<i8, i64, Sum>(false),
            gpu::Form::of::<f16, f32, Sum>(false),
            gpu::Form::of::<f32, f64, Sum>(false),
            gpu::Form::by::<u64, u64>((affine().source(), false), false),
        ];
        for element in ElementType::ALL {
            with_element!(element, T => forms.extend([
                gpu::Form::of::<T, T, Sum>(false),
                gpu::Form::of::<T, T, Product>(false),
                gpu::Form::of::<T, T, Min>(false),
                gpu::Form::of::<T, T, Max>(false),
            ]));
            with_integer!(element, T => forms.extend([
                gpu::Form::of::<T, T, And>(false),
                gpu::Form::of::<T, T, Or>(false),
                gpu::Form::of::<T, T, Xor>(false),
            ]), ());
        }
        let mut programs = Vec::new();
        let mut add = |form: &gpu::Form, caps: &Tuned| {
            for (aligned, wide) in [(false, false), (true, false), (true, true)] {
                programs.extend(gpu::plan(1 << 20, form, [aligned; 2], caps, wide).map(|plan| plan.program));
            }
        };
        let waiting = caps.with(|facts| facts.forward_progress = false);
        for form in &forms {
            add(form, caps);
            // These variants depend on the size of the type only.
            if form.source == <Sum as Op<u32>>::source() && [1, 4, 8].contains(&form.acc.size()) {
                add(form, &waiting);
                add(&gpu::Form { reversed: true, ..form.clone() }, caps);
                for count in [ElementType::U32, ElementType::U64] {
                    let counted = gpu::Form { count: Some(count), ..form.clone() };
                    add(&counted, caps);
                    add(&gpu::Form { reversed: true, ..counted }, &waiting);
                }
            }
        }
        fn computed<S: Source<Item: Element>>(source: S, aligned: bool) -> Load {
            Load::without_device(&source, aligned).expect("the source has a load")
        }
        let (floats, integers) = (Input::<f32>::Host(&[]), Input::<i64>::Host(&[]));
        let high = Map::new(|x: f32| u32::from(x > 0.5), "x > 0.5f");
        let fifth = Map::new(|x: i64| u8::from(x % 5 == 0), "x % 5 == 0");
        for (aligned, wide) in [(false, false), (true, false), (true, true)] {
            let of_floats = (gpu::Form::of::<u32, u32, Sum>(false), computed(floats.map(&high), aligned));
            let of_integers = (gpu::Form::of::<u8, u8, Sum>(true), computed(integers.map(&fifth), aligned));
            let products = (gpu::Form::of::<f32, f32, Sum>(false), computed(floats.times(floats), aligned));
            for (form, load) in [of_floats, of_integers, products] {
                for caps in [caps, &waiting] {
                    let plan = gpu::plan_source(1 << 20, &form, &load, aligned, caps, wide);
                    programs.extend(plan.map(|plan| plan.program));
                }
            }
        }
        programs.extend(segmented::spec::programs(caps));
        programs.extend(axis::spec::programs(caps));
        programs.extend(exact::spec::programs(caps));
        programs
    }
}
