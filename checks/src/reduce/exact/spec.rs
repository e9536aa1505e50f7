//! Cases of exact sums and dot products whose summands are chosen against the kernels, and their programs.

use super::{Store, plan};
use crate::{
    Buffer, Determinism, Device, DeviceClass, Element, ElementType, Error, ExactSum, Float, Input, ProgramSpec, Result,
    Source, Tuning,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level, close,
        data::Rng,
        exact_sum, guarded,
        hard::{Hard, Numbers, Third, format_of},
        poison, same,
    },
    f16,
    ladder::Climb,
    op::{Sum, Usage},
    reduce::gpu::{Form, Origin},
    source::load::Load,
    tuning::{Primitive, Tuned},
};

/// The registers of a kernel.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::reduce) enum Registers {
    /// Those of the device in its own geometry.
    Own,
    /// `f64`, in the geometry of a GPU.
    Floats,
    /// Integers and `f32`, in the geometry of a GPU.
    WithoutF64,
}

impl Registers {
    pub(in crate::reduce) const ALL: [(Self, &'static str); 3] =
        [(Self::Own, ""), (Self::Floats, ", in f64"), (Self::WithoutF64, ", without f64")];

    pub(in crate::reduce) fn of(self, device: &Device) -> Result<Device> {
        let Some(caps) = device.capabilities()?.filter(|_| self != Self::Own) else { return Ok(device.clone()) };
        if self == Self::Floats && !caps.fp64 {
            return Err(Error::unsupported("registers of f64 need a device with fp64"));
        }
        let tuning = Tuning::default().class(DeviceClass::Gpu).sub_groups(caps.sub_group.backend);
        // Few work-items, so that each has several chunks.
        let tuning = tuning.set(Primitive::Reduce, "max_groups", caps.compute_units as usize);
        let few = caps.max_work_group > 64 && !caps.checker;
        let tuning = if few { tuning.set(Primitive::Reduce, "work_group", 64) } else { tuning };
        // A device without fp64 has no parameter `exact_f64`.
        let set = |tuning: Tuning| tuning.set(Primitive::Reduce, "exact_f64", usize::from(self == Self::Floats));
        device.with_tuning(if caps.fp64 { set(tuning) } else { tuning })
    }
}

fn sizes(level: Level) -> &'static [usize] {
    match level {
        Level::Tiny => &[0, 2, 9_000],
        Level::Quick => &[0, 1, 2, 100, 9_000, 40_000],
        Level::Full => &[0, 1, 2, 15, 16, 17, 100, 4_096, 9_000, 40_000, 300_001],
    }
}

/// The elements in other orders.
fn orders<T: Copy>(x: &[T], rng: &mut Rng) -> [Vec<T>; 2] {
    let mut shuffled = x.to_vec();
    for i in (1..x.len()).rev() {
        shuffled.swap(i, (rng.next() % (i as u64 + 1)) as usize);
    }
    [x.iter().rev().copied().collect(), shuffled]
}

/// Adds a case for each size and data set.
fn grid<T: Element>(
    level: Level,
    name: &str,
    cases: &mut Vec<Case>,
    sets: &[Hard],
    run: impl Fn(&Device, Registers, Hard, usize) -> Result<(), Failure> + Copy + Send + Sync + 'static,
) {
    for (registers, suffix) in Registers::ALL {
        for &n in sizes(level) {
            for &hard in sets {
                let form = format!("{name} exact of hard numbers{suffix}");
                let case = Case::new(form, T::TYPE, format!("n = {n}"), hard.name(), n, move |device| {
                    run(device, registers, hard, n)
                });
                cases.push(case);
            }
        }
    }
}

fn sums<T: Float>(level: Level, cases: &mut Vec<Case>) {
    grid::<T>(level, "sum", cases, &Hard::all::<T>(), |device, registers, hard, n| {
        let device = registers.of(device)?;
        let x = hard.generate::<T>(n, n as u64);
        let want = exact_sum::<T, T>(&x);
        let sum = |x: &[T]| device.reduce(x, Sum.exact());
        same(&[sum(&x)?], &[want], "sum")?;
        for other in orders(&x, &mut Rng::new(1)) {
            same(&[sum(&other)?], &[want], "sum in another order")?;
        }
        // As bytes, on the device, and in two parts.
        let want: ExactSum<T> = x.iter().collect();
        let bytes = guarded(&device, ExactSum::<T>::BYTES, 1, |out| Ok(ExactSum::of_into(&device, &x, out)?))?;
        same(&bytes, &want.to_bytes(), "bytes")?;
        let (first, second) = x.split_at(n / 3);
        let mut merged = ExactSum::of(&device, first)?;
        merged.merge(&ExactSum::of(&device, second)?);
        same(&merged.to_bytes(), &want.to_bytes(), "bytes of merged parts")?;
        Ok(())
    });
}

/// The factors of products.
pub(in crate::reduce) fn factors<T: Element>(hard: Hard, n: usize) -> (Vec<T>, Vec<T>) {
    let (mut x, least) = (hard.generate::<T>(n, n as u64), T::from_bits_lossy(1));
    let mut y = match hard {
        // Products of -0 with 1, the least positive number and the largest finite one are added in different ways.
        Hard::MinusZeros => {
            let most = T::from_bits_lossy(format_of::<T>().1 - 1);
            (0..n).map(|i| [T::ONE, least, most][i % 3]).collect()
        }
        Hard::SmallFactors => hard.generate::<T>(n, 7),
        // The products of the second half cancel those of the first one, except for the lowest bits.
        Hard::Halves(_) => (0..n).map(|i| if i < n / 2 { x[i] } else { T::from_f64(-x[i].to_f64()) }).collect(),
        Hard::HalfLeast(third) => {
            let mut y = x.clone();
            if n > 1 {
                // The product of `x[0]` and `y[0]` is half of the least positive number. No `f64` equals half of the
                // least `f64`.
                let half = least.to_f64().log2() as i32 - 1;
                let low = half.div_euclid(2);
                (x[0], y[0]) = (T::from_f64(2f64.powi(low)), T::from_f64(2f64.powi(half - low)));
                assert!(x[0] != T::ZERO && y[0] != T::ZERO && !y[0].is_nan());
                (x[n - 1], y[n - 1]) = (least, T::from_f64([0.0, 1.0, -1.0][third as usize] * least.to_f64()));
            }
            y
        }
        _ => Hard::AllExponents.generate::<T>(n, 7),
    };
    match hard {
        Hard::MinusZeros | Hard::HalfLeast(_) | Hard::Halves(_) => {}
        Hard::SmallFactors => {
            for i in 0..n / 2 {
                let next = T::from_f64(y[i].to_f64() * (1.0 + 2f64.powi(1 - format_of::<T>().0)));
                (x[n - 1 - i], y[n - 1 - i]) = (T::from_f64(-x[i].to_f64()), next);
            }
        }
        // Every third product is a summand of `hard`. The others have all exponents.
        _ => y.iter_mut().step_by(3).for_each(|y| *y = T::ONE),
    }
    (x, y)
}

fn products<T: Float>(level: Level, cases: &mut Vec<Case>) {
    let third = [Third::Zero, Third::Plus, Third::Minus].map(Hard::HalfLeast);
    let mut sets = [&Hard::all::<T>(), &[Hard::SmallFactors][..], &third].concat();
    if T::TYPE == ElementType::F32 {
        sets.extend((0..6).map(Hard::Halves));
    }
    grid::<T>(level, "dot", cases, &sets, |device, registers, hard, n| {
        let device = registers.of(device)?;
        let (x, y) = factors::<T>(hard, n);
        let mut want = ExactSum::new();
        x.iter().zip(&y).for_each(|(&x, &y)| want.add_product(x, y));
        let want = if n == 0 { T::ZERO } else { want.round() };
        let pairs: Vec<[T; 2]> = x.into_iter().zip(y).map(Into::into).collect();
        let [reversed, shuffled] = orders(&pairs, &mut Rng::new(1));
        for pairs in [pairs, reversed, shuffled] {
            let [x, y] = [0, 1].map(|k| pairs.iter().map(|pair| pair[k]).collect::<Vec<T>>());
            let mut got = [T::ONE];
            device.reduce_into(x.times(&y), Sum.exact(), &mut got)?;
            same(&got, &[want], "dot product")?;
        }
        Ok(())
    });
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    sums::<f16>(level, cases);
    sums::<bf16>(level, cases);
    sums::<f32>(level, cases);
    sums::<f64>(level, cases);
    products::<f16>(level, cases);
    products::<bf16>(level, cases);
    products::<f32>(level, cases);
    products::<f64>(level, cases);
}

/// State of a benchmark case: the device, one or two inputs on it and on the host, and the result.
struct Measured<T: Element> {
    device: Device,
    host: Vec<Vec<T>>,
    inputs: Vec<Buffer<T>>,
    out: Buffer<T>,
}

impl<T: Float> Measured<T> {
    fn run(&mut self, determinism: Determinism) -> Result<()> {
        let Self { device, inputs, out, .. } = self;
        match &inputs[..] {
            [x, y] => device.reduce_into(x.times(y), Sum.with(determinism), out),
            _ => device.reduce_into(&inputs[0], Sum.with(determinism), out),
        }
    }

    fn verify(&mut self, determinism: Determinism) -> Result<(), Failure> {
        let (cpu, mut want) = (Device::cpu(), [T::ZERO]);
        match &self.host[..] {
            [x, y] => want[0] = cpu.reduce(x.times(y), Sum.exact())?,
            _ => want[0] = cpu.reduce(&self.host[0], Sum.exact())?,
        }
        let got = self.out.to_vec()?[0];
        if determinism == Determinism::Exact {
            return same(&[got], &want, "result");
        }
        // The products of two uniform numbers are below 1.
        let count = self.host[0].len() as f64;
        close(got, want[0].to_f64(), count * 2f64.powi(6 - format_of::<T>().0), "result")
    }
}

fn bench<T: Float>(
    form: &str,
    inputs: usize,
    numbers: Numbers,
    determinism: Determinism,
    exact_f64: Option<usize>,
) -> Bench {
    let bytes = move |n| (inputs * n * size_of::<T>()) as u64;
    Bench::new(form, T::TYPE, bytes, move |device, n| {
        let caps = device.capabilities()?.filter(|caps| caps.fp64 && exact_f64.is_some());
        let device = match (caps, exact_f64) {
            (Some(_), Some(value)) => {
                device.with_tuning(Tuning::default().set(Primitive::Reduce, "exact_f64", value))?
            }
            _ => device.clone(),
        };
        let host: Vec<Vec<T>> = (0..inputs)
            .map(|k| numbers.generate(n - k))
            .map(|mut x| {
                x.resize(n, T::ONE);
                x
            })
            .collect();
        let on_device = host.iter().map(|x| device.upload(x)).collect::<Result<_>>()?;
        let out = device.zeroed(1)?;
        Ok(Climb::new(
            Measured { device, host, inputs: on_device, out },
            |this| this.out.fill(poison()),
            move |this| this.run(determinism),
            move |this| this.verify(determinism),
        ))
    })
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    use Determinism::{Exact, Fast};
    use Numbers::{AllExponents, Condition32, Uniform};
    vec![
        bench::<f32>("sum exact without f64", 1, Uniform, Exact, Some(0)),
        bench::<f64>("sum exact without f64", 1, Uniform, Exact, Some(0)),
        bench::<f32>("sum exact, condition 1e32", 1, Condition32, Exact, None),
        bench::<f64>("sum exact, condition 1e32", 1, Condition32, Exact, None),
        bench::<f32>("sum exact, all exponents", 1, AllExponents, Exact, None),
        bench::<f64>("sum exact, all exponents", 1, AllExponents, Exact, None),
        bench::<f32>("sum exact without f64, condition 1e32", 1, Condition32, Exact, Some(0)),
        bench::<f64>("sum exact without f64, condition 1e32", 1, Condition32, Exact, Some(0)),
        bench::<f32>("sum exact without f64, all exponents", 1, AllExponents, Exact, Some(0)),
        bench::<f64>("sum exact without f64, all exponents", 1, AllExponents, Exact, Some(0)),
        bench::<f16>("sum exact", 1, Uniform, Exact, None),
        bench::<f32>("dot fast", 2, Uniform, Fast, None),
        bench::<f64>("dot fast", 2, Uniform, Fast, None),
        bench::<f32>("dot exact", 2, Uniform, Exact, None),
        bench::<f64>("dot exact", 2, Uniform, Exact, None),
        bench::<f32>("dot exact, all exponents", 2, AllExponents, Exact, None),
        bench::<f64>("dot exact, all exponents", 2, AllExponents, Exact, None),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    const EXACT: Determinism = Determinism::Exact;
    let forms = [
        Form::of::<f16, Sum>(EXACT),
        Form::of::<bf16, Sum>(EXACT),
        Form::of::<f32, Sum>(EXACT),
        Form::of::<f64, Sum>(EXACT),
        Form::into::<i32, f64, Sum>(EXACT),
        Form::into::<u8, f32, Sum>(EXACT),
        Form { count: Some(ElementType::U64), ..Form::of::<f32, Sum>(EXACT) },
    ];
    fn products<T: Float>() -> (Form, [Load; 2]) {
        let x = Input::<T>::Host(&[]);
        let load = |aligned| Load::without_device(&x.times(x), aligned).expect("the source has a load");
        (Form::of::<T, Sum>(EXACT), [false, true].map(load))
    }
    let products = [products::<f16>(), products::<f32>(), products::<f64>()];
    let mut programs = Vec::new();
    for registers in [0, 1] {
        let caps = caps.clone().choosing("exact_f64", registers);
        for (aligned, wide) in [(false, false), (true, true)] {
            let memory = forms.iter().map(|form| (form, Origin::Memory(aligned)));
            let computed = products.iter().map(|(form, loads)| (form, Origin::Source(&loads[usize::from(aligned)])));
            let stored = memory.chain(computed).flat_map(|job| [(job, Store::Rounded), (job, Store::Bytes(80))]);
            let plans = stored.filter_map(|((form, from), store)| plan(1 << 20, form, store, from, &caps, wide).ok());
            programs.extend(plans.flat_map(|plan| [plan.program, plan.rounding]));
        }
    }
    programs
}
