//! Spec of reductions: cases, programs and benchmark cases.

use super::shared::{has_exact_sums, obvious_tree, on_cpu_at_least, thin};
use crate::{
    Buffer, Determinism, Device, Element, ElementType, Input, Integer, Output, ProgramSpec,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        bounds::{fixed_bound, narrowing, product_error},
        close,
        data::{Data, Rng},
        exact_sum, guarded,
        operators::{Function, monoid},
        poison, same, stands_for_its_size, sum_bound,
    },
    f16,
    ladder::Climb,
    op::{And, Max, Min, Monoid, Op, OpKind, Or, Product, Sum, Xor},
    reduce::{End, axis, cpu, exact, exact_groups, mapped, segmented},
    tuning::Tuned,
    with_element, with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct Reduce;

/// Sizes at the edges of work-groups, rows and tiles.
fn sizes<T>(level: Level) -> Vec<usize> {
    let (row, tile) = (cpu::lanes::<T>(), cpu::tile::<T>());
    let mut sizes = vec![0, 1, 3, 257, row + 1];
    if level >= Level::Quick {
        sizes.extend([2, 255, tile - 1, tile, tile + 1, 2 * tile + 3]);
    }
    if level >= Level::Full {
        let steps = [7, 31, 32, 33, 127, 256, 513, 1000, 1025, row - 1, row, 17 * tile + 5, 999_983, 1_000_003];
        sizes.extend(steps);
    }
    sizes
}

fn data_sets(level: Level) -> &'static [Data] {
    match level {
        Level::Tiny => &[Data::Random],
        Level::Quick => &[Data::Random, Data::Special],
        Level::Full => &Data::ALL,
    }
}

fn offsets(level: Level) -> &'static [usize] {
    match level {
        Level::Tiny => &[0, 1],
        Level::Quick => &[0, 3],
        Level::Full => &[0, 1, 7],
    }
}

/// Adds one case for each size, data set and offset.
fn grid<T: Element>(
    level: Level,
    form: &str,
    cases: &mut Vec<Case>,
    run: impl Fn(&Device, Vec<T>, usize) -> Result<(), Failure> + Copy + Send + Sync + 'static,
) {
    for n in sizes::<T>(level) {
        // Sizes of many tiles differ from smaller ones only in the number of partials.
        let (data_sets, offsets) =
            if n > 100_000 { (&[Data::Random][..], &[0, 1][..]) } else { (data_sets(level), offsets(level)) };
        for &data in data_sets {
            for &offset in offsets {
                let shape = format!("n = {n} at {offset}");
                cases.push(Case::new(form, T::TYPE, shape, data.name(), n, move |device| {
                    run(device, data.generate::<T>(n + offset, n as u64), offset)
                }));
            }
        }
    }
}

/// Factors for which the product of any subset is in the type's range.
#[derive(Clone, Copy)]
enum Factors {
    /// Ones, a few twos and halves, all with random signs. The product is exact in any order and reveals missing
    /// factors.
    Exact,
    /// Factors near 1, so that every multiplication rounds.
    Rounding,
}

impl Factors {
    fn generate<T: Element>(self, n: usize, seed: u64) -> Vec<T> {
        const POWERS: usize = 14;
        let (mut rng, stride) = (Rng::new(seed), n.div_ceil(POWERS).max(1));
        let distance = narrowing::<T>().max(1.0 / 1024.0);
        let factor = |i: usize| {
            let bits = rng.next();
            let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
            let size = match self {
                Self::Rounding => 1.0 + distance * ((bits >> 40) as f64 / f64::from(1 << 23) - 1.0),
                Self::Exact if !i.is_multiple_of(stride) => 1.0,
                Self::Exact => [2.0, 0.5][i / stride % 2],
            };
            T::from_f64(sign * size)
        };
        (0..n).map(factor).collect()
    }
}

/// Cases of products by [`Determinism::Fast`]. Products of the other operations' data leave the type's range, and then
/// depend on the order.
fn fast_products<T: Element>(level: Level, form: &str, cases: &mut Vec<Case>) {
    let product = BuiltIn::<T>::of::<Product>();
    for n in sizes::<T>(level) {
        for (factors, data) in [(Factors::Exact, "signs"), (Factors::Rounding, "near 1")] {
            let offset = offsets(level)[n % 2];
            let shape = format!("n = {n} at {offset}");
            cases.push(Case::new(form, T::TYPE, shape, data, n, move |device| {
                let all = factors.generate::<T>(n + offset, n as u64);
                check_op(&product, device, &all, offset, Determinism::Fast)?;
                if let Factors::Rounding = factors {
                    return Ok(());
                }
                let got = product.value(device, &all[offset..], Determinism::Fast)?;
                let want = product.value(&Device::cpu(), &all[offset..], Determinism::Fixed)?;
                same(&[got], &[want], "exact product")
            }));
        }
    }
}

/// A built-in operator: its monoid for the plain loops, its kind, and the function that runs it on a device.
#[derive(Clone, Copy)]
struct BuiltIn<T: Element> {
    op: Monoid<T, Function<T::Acc>>,
    kind: OpKind,
    run: fn(&Device, Input<'_, T>, Determinism, Output<'_, T>) -> crate::Result<()>,
}

impl<T: Element> BuiltIn<T> {
    fn of<O: Op<T> + Default>() -> Self {
        let run = |device: &Device, input: Input<'_, T>, determinism, output: Output<'_, T>| {
            device.reduce_into(input, O::default().with(determinism), output)
        };
        Self { op: monoid::<T, O>(), kind: O::KIND, run }
    }

    /// Returns true if the result depends on the order of evaluation.
    fn rounds(&self) -> bool {
        self.op.ordered
    }

    fn value(&self, device: &Device, input: &[T], determinism: Determinism) -> crate::Result<T> {
        let mut out = [T::ZERO];
        (self.run)(device, input.into(), determinism, (&mut out).into())?;
        Ok(out[0])
    }
}

/// Compares the CPU backend with a plain loop, and other devices with the CPU backend.
fn check_op<T: Element>(
    built_in: &BuiltIn<T>,
    device: &Device,
    all: &[T],
    offset: usize,
    determinism: Determinism,
) -> Result<(), Failure> {
    let (input, what, op) = (&all[offset..], built_in.kind.name(), &built_in.op);
    let (ordered, exact) = (built_in.rounds(), determinism == Determinism::Exact);
    if exact {
        on_cpu_at_least(device, has_exact_sums::<T>(device))?;
    }
    let on_device = device.upload(all)?;
    let got = guarded(device, 1, offset, |out| {
        Ok((built_in.run)(device, on_device.view(offset..)?.into(), determinism, out.into())?)
    })?[0];
    if !device.is_cpu() {
        let level = if exact { determinism } else { Determinism::Fixed };
        let want = built_in.value(&Device::cpu(), input, level)?;
        return match determinism {
            Determinism::Fast if ordered && built_in.kind == OpKind::Sum => {
                close(got, want.to_f64(), sum_bound(device, input)?, what)
            }
            Determinism::Fast if ordered => {
                let want = want.to_f64();
                close(got, want, product_error::<T>(input.len()) * want.abs(), what)
            }
            _ => same(&[got], &[want], what),
        };
    }
    if input.is_empty() {
        return same(&[got], &[op.empty], what);
    }
    if exact {
        return same(&[got], &[exact_sum(input)], what);
    }
    if !ordered {
        let mut want = op.identity;
        for x in input {
            want = (op.combine)(want, x.widen());
        }
        return same(&[got], &[T::narrow(want)], what);
    }
    let mut wide = Vec::with_capacity(input.len());
    for x in input {
        wide.push(x.widen());
    }
    let tree = obvious_tree::<T, T>(op, wide);
    same(&[got], &[tree], what)?;
    // If partial sums overflow, only the tree defines the result.
    let want: f64 = input.iter().map(|x| x.to_f64()).sum();
    if built_in.kind == OpKind::Sum && want.is_finite() && got.to_f64().is_finite() {
        return close(got, want, fixed_bound(input), what);
    }
    Ok(())
}

/// Writes one extreme of the elements and its index into views.
fn find<T: Element>(
    device: &Device,
    end: End,
    input: Input<'_, T>,
    (value, index): (Output<'_, T>, Output<'_, u64>),
) -> crate::Result<()> {
    match end {
        End::Min => device.arg_min_into(input, value, index),
        End::Max => device.arg_max_into(input, value, index),
    }
}

fn check_arg<T: Element>(device: &Device, all: &[T], offset: usize, end: End) -> Result<(), Failure> {
    let input = &all[offset..];
    let alone = |device: &Device| match end {
        End::Min => device.arg_min(input),
        End::Max => device.arg_max(input),
    };
    if input.is_empty() {
        return match alone(device) {
            Err(error) if error.kind() == crate::ErrorKind::Empty => Ok(()),
            other => Err(Failure::Mismatch(format!("{} of empty input gave {other:?}", end.name()))),
        };
    }
    let on_device = device.upload(all)?;
    let mut index = Vec::new();
    let value = guarded(device, 1, offset, |value| {
        index = guarded(device, 1, 1, |index| {
            let view = on_device.view(offset..)?;
            Ok(find(device, end, view.into(), (value.into(), index.into()))?)
        })?;
        Ok(())
    })?;
    let want = if device.is_cpu() {
        let best = (1..input.len()).fold(0, |best, i| if end.before(input[i], input[best]) { i } else { best });
        let found = alone(device)?;
        same(&[found.index as u64], &[best as u64], end.name())?;
        same(&[found.value], &[input[best]], end.name())?;
        best
    } else {
        alone(&Device::cpu())?.index
    };
    same(&index, &[want as u64], &format!("{}'s index", end.name()))?;
    same(&value, &[input[want]], end.name())
}

/// Returns true if an operation is checked on a type. Each pair costs a driver a build of up to half a second. Below
/// `Full`, fixed and exact sums take every float type. Sums of integers take every integer type, or at `Tiny` one of each size.
/// The other operations take types of different kinds.
fn tried(level: Level, element: ElementType, form: &str) -> bool {
    use ElementType::{F16, F32, F64, I8, I32, U8, U64};
    level == Level::Full
        || match form {
            "sum" => stands_for_its_size(level, element),
            "sum fixed" | "sum exact" => true,
            "min" | "arg-max" if level == Level::Tiny => matches!(element, I8 | U64 | F32),
            "min" | "arg-max" => matches!(element, I8 | I32 | U64 | F16 | F32 | F64),
            "product fixed" | "product fast" | "product" | "max" | "arg-min" | "sum fast" => {
                matches!(element, U8 | I32 | F32)
            }
            _ => matches!(element, I32),
        }
}

fn op_cases<T: Element, O: Op<T> + Default>(level: Level, cases: &mut Vec<Case>) {
    cases_of(level, BuiltIn::<T>::of::<O>(), cases);
}

fn cases_of<T: Element>(level: Level, built_in: BuiltIn<T>, cases: &mut Vec<Case>) {
    let (ordered, kind) = (built_in.rounds(), built_in.kind);
    let levels: &[Determinism] = match kind {
        OpKind::Sum if ordered => &[Determinism::Fixed, Determinism::Fast, Determinism::Exact],
        _ if ordered => &[Determinism::Fixed, Determinism::Fast],
        _ => &[Determinism::Fixed],
    };
    for &determinism in levels {
        let suffix = if ordered { format!(" {}", determinism.name()) } else { String::new() };
        let form = format!("{}{suffix}", kind.name());
        if !tried(level, T::TYPE, &form) {
            continue;
        }
        if ordered && kind == OpKind::Product && determinism == Determinism::Fast {
            fast_products::<T>(level, &form, cases);
            continue;
        }
        grid::<T>(level, &form, cases, move |device, mut all, offset| {
            let every = all.len() / 4 + 1;
            thin(&mut all, kind, every);
            check_op(&built_in, device, &all, offset, determinism)
        });
    }
}

fn bit_cases<T: Integer<Acc: Integer>>(level: Level, cases: &mut Vec<Case>) {
    op_cases::<T, And>(level, cases);
    op_cases::<T, Or>(level, cases);
    op_cases::<T, Xor>(level, cases);
}

/// State of a benchmark case.
struct Measured<T: Element> {
    device: Device,
    host: Vec<T>,
    x: Buffer<T>,
    out: Buffer<T>,
}

impl<T: Element> Measured<T> {
    fn new(device: &Device, n: usize) -> crate::Result<Self> {
        let host = Data::Random.generate(n, n as u64);
        let x = device.upload(&host)?;
        Ok(Self { device: device.clone(), host, x, out: device.zeroed(1)? })
    }
}

fn bytes_read<T>(n: usize) -> u64 {
    (n * size_of::<T>()) as u64
}

fn op_bench<T: Element, O: Op<T> + Default + 'static>(determinism: Determinism, offset: usize) -> Bench {
    let ordered = O::KIND.rounds() && T::TYPE.is_float();
    let suffix = if ordered { format!(" {}", determinism.name()) } else { String::new() };
    let offset_name = if offset > 0 { format!(", offset {offset}") } else { String::new() };
    let form = format!("{}{suffix}{offset_name}", O::KIND.name());
    Bench::new(form, T::TYPE, bytes_read::<T>, move |device, n| {
        if determinism == Determinism::Exact {
            has_exact_sums::<T>(device)?;
        }
        let state = Measured::<T>::new(device, n + offset)?;
        let run = move |this: &mut Measured<T>| {
            let Measured { device, x, out, .. } = this;
            device.reduce_into(x.view(offset..)?, O::default().with(determinism), out)
        };
        let verify = move |this: &mut Measured<T>| {
            let host = &this.host[offset..];
            let got = this.out.to_vec()?[0];
            if ordered && determinism == Determinism::Exact {
                return same(&[got], &[exact_sum(host)], O::KIND.name());
            }
            let want = Device::cpu().reduce(host, O::default())?;
            if ordered && determinism == Determinism::Fast {
                return close(got, want.to_f64(), sum_bound(&this.device, host)?, O::KIND.name());
            }
            same(&[got], &[want], O::KIND.name())
        };
        Ok(Climb::new(state, |this| this.out.fill(poison()), run, verify))
    })
}

/// Benchmark case with the result on the host, for small inputs.
fn host_bench<T: Element>() -> Bench {
    let bench = Bench::new("sum to the host", T::TYPE, bytes_read::<T>, |device, n| {
        Ok(Climb::new(
            (Measured::<T>::new(device, n)?, T::ZERO),
            |(_, got)| {
                *got = poison();
                Ok(())
            },
            |(this, got)| {
                *got = this.device.reduce(&this.x, Sum)?;
                Ok(())
            },
            |(this, got)| same(&[*got], &[Device::cpu().reduce(&this.host, Sum)?], "sum"),
        ))
    });
    Bench { sizes: vec![1 << 10, 1 << 16, 1 << 20], ..bench }
}

fn arg_bench<T: Element>(end: End) -> Bench {
    Bench::new(end.name(), T::TYPE, bytes_read::<T>, move |device, n| {
        let state = (Measured::<T>::new(device, n)?, device.zeroed::<u64>(1)?);
        Ok(Climb::new(
            state,
            |(_, index)| index.fill(u64::MAX),
            move |(this, index)| {
                let Measured { device, x, out, .. } = this;
                find(device, end, (&*x).into(), (out.into(), index.into()))
            },
            move |(this, index)| {
                let (mut value, mut want_index) = ([T::ZERO], [0]);
                let to = ((&mut value).into(), (&mut want_index).into());
                find(&Device::cpu(), end, (&this.host).into(), to)?;
                same(&index.to_vec()?, &want_index, end.name())?;
                same(&this.out.to_vec()?, &value, end.name())
            },
        ))
    })
}

impl Spec for Reduce {
    fn name(&self) -> &'static str {
        "reduce"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        for element in ElementType::ALL {
            with_element!(element, T => {
                op_cases::<T, Sum>(level, &mut cases);
                op_cases::<T, Product>(level, &mut cases);
                op_cases::<T, Min>(level, &mut cases);
                op_cases::<T, Max>(level, &mut cases);
                for end in [End::Min, End::Max].into_iter().filter(|&end| tried(level, element, end.name())) {
                    grid::<T>(level, end.name(), &mut cases, move |device, all, offset| {
                        check_arg(device, &all, offset, end)
                    });
                }
            });
            with_integer!(element, T => bit_cases::<T>(level, &mut cases), ());
        }
        cases.extend(super::by::spec::cases(level));
        cases.extend(super::count::spec::cases(level));
        cases.extend(super::statistics::spec::cases(level));
        exact::spec::cases(level, &mut cases);
        exact_groups::spec::cases(level, &mut cases);
        mapped::spec::cases(level, &mut cases);
        segmented::spec::cases(level, &mut cases);
        segmented::extremes::spec::cases(level, &mut cases);
        axis::spec::cases(level, &mut cases);
        axis::extremes::spec::cases(level, &mut cases);
        axis::moments::spec::cases(level, &mut cases);
        segmented::moments::spec::cases(level, &mut cases);
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches = vec![
            op_bench::<i32, Sum>(Determinism::Fixed, 0),
            op_bench::<i32, Sum>(Determinism::Fixed, 1),
            op_bench::<i64, Sum>(Determinism::Fixed, 0),
            op_bench::<f32, Sum>(Determinism::Fixed, 0),
            op_bench::<f32, Sum>(Determinism::Fast, 0),
            op_bench::<f32, Sum>(Determinism::Exact, 0),
            op_bench::<f64, Sum>(Determinism::Exact, 0),
            op_bench::<f64, Sum>(Determinism::Fixed, 0),
            op_bench::<f64, Sum>(Determinism::Fast, 0),
            op_bench::<f16, Sum>(Determinism::Fixed, 0),
            op_bench::<f32, Product>(Determinism::Fixed, 0),
            op_bench::<i32, Min>(Determinism::Fixed, 0),
            op_bench::<f32, Min>(Determinism::Fixed, 0),
            op_bench::<f64, Min>(Determinism::Fixed, 0),
            op_bench::<i32, Max>(Determinism::Fixed, 0),
            op_bench::<u32, And>(Determinism::Fixed, 0),
            op_bench::<u32, Or>(Determinism::Fixed, 0),
            op_bench::<u32, Xor>(Determinism::Fixed, 0),
            host_bench::<i32>(),
            host_bench::<f32>(),
            arg_bench::<i32>(End::Min),
            arg_bench::<f32>(End::Min),
            arg_bench::<f32>(End::Max),
        ];
        benches.extend(super::by::spec::benches());
        benches.extend(super::count::spec::benches());
        benches.extend(super::statistics::spec::benches());
        benches.extend(exact::spec::benches());
        benches.extend(mapped::spec::benches());
        benches.extend(segmented::spec::benches());
        benches.extend(segmented::extremes::spec::benches());
        benches.extend(axis::spec::benches());
        benches.extend(axis::extremes::spec::benches());
        benches.extend(axis::moments::spec::benches());
        benches.extend(segmented::moments::spec::benches());
        benches
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        use crate::reduce::gpu;
        let mut programs = Vec::new();
        for element in ElementType::ALL {
            with_element!(element, T => {
                let mut forms = vec![
                    gpu::Form::of::<T, Sum>(Determinism::Fixed),
                    gpu::Form::of::<T, Sum>(Determinism::Fast),
                    gpu::Form::of::<T, Product>(Determinism::Fixed),
                    gpu::Form::of::<T, Min>(Determinism::Fixed),
                    gpu::Form::of::<T, Max>(Determinism::Fixed),
                ];
                with_integer!(element, T => forms.extend([
                    gpu::Form::of::<T, And>(Determinism::Fixed),
                    gpu::Form::of::<T, Or>(Determinism::Fixed),
                    gpu::Form::of::<T, Xor>(Determinism::Fixed),
                ]), ());
                for aligned in [false, true] {
                    for wide in [false, true] {
                        let n = if wide { 1 << 32 } else { 1 << 20 };
                        let count = if aligned && !wide { Some(ElementType::U32) } else { None };
                        let counted = gpu::Form { count, ..forms[0].clone() };
                        for form in forms.iter().chain([&counted]) {
                            let plan = gpu::plan(n, form, gpu::Origin::Memory(aligned), caps, &|n| n >= 1 << 31);
                            programs.extend(plan.into_iter().flat_map(|plan| plan.passes).map(|pass| pass.program));
                        }
                    }
                }
            });
        }
        programs.extend(crate::reduce::ladder::device::programs(caps));
        programs.extend(super::by::spec::programs(caps));
        programs.extend(super::count::spec::programs(caps));
        programs.extend(super::statistics::spec::programs(caps));
        programs.extend(exact::spec::programs(caps));
        programs.extend(exact_groups::spec::programs(caps));
        programs.extend(mapped::spec::programs(caps));
        programs.extend(segmented::spec::programs(caps));
        programs.extend(segmented::extremes::spec::programs(caps));
        programs.extend(axis::spec::programs(caps));
        programs.extend(axis::extremes::spec::programs(caps));
        programs.extend(axis::moments::spec::programs(caps));
        programs.extend(segmented::moments::spec::programs(caps));
        programs
    }
}
