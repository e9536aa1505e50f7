//! Cases of exact sums and dot products whose summands are chosen against the kernels, and their programs.

use super::{Store, plan};
use crate::{
    Buffer, Determinism, Device, DeviceClass, Element, ElementType, Error, ExactSum, Float, Input, ProgramSpec, Result,
    Source, Tuning,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level, close,
        data::{Data, Rng},
        exact_sum, guarded, poison, same,
    },
    f16,
    ladder::Climb,
    op::Sum,
    reduce::gpu::{Form, Origin},
    source::load::Load,
    tuning::{Primitive, Tuned},
};

/// Summands that are hard to add.
#[derive(Clone, Copy, Debug)]
pub(in crate::reduce) enum Hard {
    /// Finite numbers with random bits.
    AllExponents,
    /// Numbers of all exponents, their negatives, and a few small numbers.
    Cancelling,
    /// A number and half of its last place, and a third number below both; all others are 0.
    Tie(Third),
    /// The smallest exponents.
    Subnormal,
    /// Numbers whose partial sums leave the range.
    Overflowing,
    /// Runs of numbers with similar exponents, each run anywhere in the range, then one number for each exponent, falling.
    Levels,
    /// One exponent and one 'spread' below it. The large parts cancel, and the lowest bits remain.
    Spread(i32),
    /// Only -0.
    MinusZeros,
    /// -0 and one +0.
    Zeros,
    /// Ones among zeros, and one infinity.
    Infinite,
    /// Infinities of both signs.
    BothInfinite,
    /// Factors whose products have errors that are subnormal. Two halves cancel but for the last places.
    SmallFactors,
    /// A product of half the least positive number, and a third number below it.
    HalfLeast(Third),
}

/// The number that breaks a tie, or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::reduce) enum Third {
    Zero,
    Plus,
    Minus,
}

/// The bits of a significand, and the bits of infinity.
fn format_of<T: Element>() -> (i32, u64) {
    match T::TYPE {
        ElementType::F16 => (11, 0x7c00),
        ElementType::Bf16 => (8, 0x7f80),
        ElementType::F32 => (24, 0x7f80_0000),
        _ => (53, 0x7ff << 52),
    }
}

impl Hard {
    pub(in crate::reduce) fn name(self) -> String {
        match self {
            Self::Spread(spread) => format!("spread {spread}"),
            Self::Tie(third) => format!("tie {third:?}").to_lowercase(),
            Self::HalfLeast(third) => format!("half least {third:?}").to_lowercase(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// All sets for a type. The spreads are around the bounds of kernels for every length of a chunk.
    pub(in crate::reduce) fn all<T: Element>() -> Vec<Self> {
        let mut all = vec![
            Self::AllExponents,
            Self::Cancelling,
            Self::Tie(Third::Zero),
            Self::Tie(Third::Plus),
            Self::Tie(Third::Minus),
            Self::Subnormal,
            Self::Overflowing,
            Self::Levels,
            Self::MinusZeros,
            Self::Zeros,
            Self::Infinite,
            Self::BothInfinite,
        ];
        // 53 - p - k, for chunks of 2^4 to 2^7 elements.
        let (precision, _) = format_of::<T>();
        match precision {
            11 => {}
            53 => all.extend([30, 100, 160].map(Self::Spread)),
            _ => all.extend((46 - precision..=50 - precision).map(Self::Spread)),
        }
        all
    }

    pub(in crate::reduce) fn generate<T: Element>(self, n: usize, seed: u64) -> Vec<T> {
        let mut rng = Rng::new(seed);
        let (precision, infinity) = format_of::<T>();
        let sign = 1u64 << (8 * size_of::<T>() - 1);
        let float = |bits: u64| T::from_bits_lossy(bits);
        let negated = |x: T| T::from_f64(-x.to_f64());
        // Exact if the type has the number.
        let scaled = |size: i64, exponent: i32| {
            let first = exponent / 2;
            T::from_f64(size as f64 * 2f64.powi(first) * 2f64.powi(exponent - first))
        };
        let finite = |rng: &mut Rng| float((rng.next() % infinity) | (rng.next() & sign));
        let mut x: Vec<T> = match self {
            Self::AllExponents => (0..n).map(|_| finite(&mut rng)).collect(),
            Self::Cancelling => {
                let half: Vec<T> = (0..n / 2).map(|_| finite(&mut rng)).collect();
                let mut x: Vec<T> = half.iter().flat_map(|&x| [x, negated(x)]).collect();
                x.extend((x.len()..n).map(|_| float(3)));
                x.iter_mut().step_by(257).for_each(|x| *x = float(rng.next() % (infinity / 4)));
                x
            }
            Self::Tie(third) => {
                let base = infinity / 2 + (rng.next() & 0xff);
                let place = float(base + 1).to_f64() - float(base).to_f64();
                let least = [float(0), float(1), float(1 | sign)][third as usize];
                let mut x = vec![float(0); n];
                [float(base), T::from_f64(place / 2.0), least]
                    .iter()
                    .zip(x.iter_mut().step_by(n / 3 + 1))
                    .for_each(|(&value, x)| *x = value);
                x
            }
            Self::SmallFactors => {
                // Around the square root of the least positive number.
                let near = infinity / 4 - (infinity / 256);
                (0..n).map(|_| float((near + rng.next() % (infinity / 256)) | (rng.next() & sign))).collect()
            }
            Self::HalfLeast(_) => vec![float(0); n],
            Self::Subnormal => {
                (0..n).map(|_| float((rng.next() % (3 << (precision - 1))) | (rng.next() & sign))).collect()
            }
            Self::Overflowing => (0..n).map(|i| float((infinity - 1) | if i % 3 == 1 { sign } else { 0 })).collect(),
            Self::Levels => {
                let fields = infinity >> (precision - 1);
                let field_bits = |field: u64, rng: &mut Rng| {
                    let fraction = rng.next() % (1 << (precision - 1));
                    float((field << (precision - 1)) | fraction | (rng.next() & sign))
                };
                let ramp = (fields as usize).min(n / 4);
                let mut level = 0;
                let mut x: Vec<T> = Vec::with_capacity(n);
                for i in 0..n - ramp {
                    if i % 1024 == 0 {
                        level = 1 + rng.next() % (fields - 1);
                    }
                    let field = (level + rng.next() % 20).min(fields - 1);
                    x.push(field_bits(field, &mut rng));
                }
                x.extend((0..ramp as u64).map(|i| field_bits(fields - 1 - i % fields, &mut rng)));
                x
            }
            Self::Spread(spread) => {
                // One unit of the small numbers.
                let unit = -spread - precision + 1;
                let (large, small) = (scaled((1 << precision) - 1, 1 - precision), 1i64 << (precision - 1));
                let of_half = |i: usize, large: T, small: T| if i.is_multiple_of(16) { small } else { large };
                let x = (0..n / 2).map(|i| of_half(i, large, scaled(small + 1, unit)));
                let x = x.chain((0..n / 2).map(|i| of_half(i, negated(large), scaled(-small, unit))));
                x.chain((!n.is_multiple_of(2)).then_some(T::ZERO)).collect()
            }
            Self::MinusZeros | Self::Zeros => vec![float(sign); n],
            Self::Infinite | Self::BothInfinite => (0..n).map(|i| if i % 3 == 0 { T::ONE } else { T::ZERO }).collect(),
        };
        if n > 0 {
            let (first, second) = (n / 3, n - 1 - n / 3);
            match self {
                Self::Zeros => x[first] = float(0),
                Self::Infinite => x[first] = float(infinity | (seed << 7 & sign)),
                Self::BothInfinite => (x[second], x[first]) = (float(infinity | sign), float(infinity)),
                _ => {}
            }
        }
        x
    }
}

/// The registers of a kernel.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::reduce) enum Registers {
    /// Those of the device in its own geometry.
    Own,
    /// `f64`, in the geometry of a GPU.
    Floats,
    /// Integers, in the geometry of a GPU.
    Integers,
}

impl Registers {
    pub(in crate::reduce) const ALL: [(Self, &'static str); 3] =
        [(Self::Own, ""), (Self::Floats, ", in f64"), (Self::Integers, ", in integers")];

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
        // Without fp64, there are only integers, and no such parameter.
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
        let sum = |x: &[T]| device.reduce_with(x, Sum, Determinism::Exact);
        same(&[sum(&x)?], &[want], "sum")?;
        for other in orders(&x, &mut Rng::new(1)) {
            same(&[sum(&other)?], &[want], "sum in another order")?;
        }
        // As bytes, on the device, and in two parts.
        let want: ExactSum<T> = x.iter().collect();
        let bytes = guarded(&device, ExactSum::<T>::BYTES, 1, |out| Ok(device.reduce_exact_into(&x, out)?))?;
        same(&bytes, &want.to_bytes(), "bytes")?;
        let (first, second) = x.split_at(n / 3);
        let mut merged = device.reduce_exact(first)?;
        merged.merge(&device.reduce_exact(second)?);
        same(&merged.to_bytes(), &want.to_bytes(), "bytes of merged parts")?;
        Ok(())
    });
}

/// The factors of products.
fn factors<T: Element>(hard: Hard, n: usize) -> (Vec<T>, Vec<T>) {
    let (mut x, least) = (hard.generate::<T>(n, n as u64), T::from_bits_lossy(1));
    let mut y = match hard {
        Hard::MinusZeros => vec![T::ONE; n],
        Hard::SmallFactors => hard.generate::<T>(n, 7),
        Hard::HalfLeast(third) => {
            let mut y = x.clone();
            if n > 1 {
                // Their product is half of the least positive number, of which `f64` has none.
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
        Hard::MinusZeros | Hard::HalfLeast(_) => {}
        Hard::SmallFactors => {
            for i in 0..n / 2 {
                let next = T::from_f64(y[i].to_f64() * (1.0 + 2f64.powi(1 - format_of::<T>().0)));
                (x[n - 1 - i], y[n - 1 - i]) = (T::from_f64(-x[i].to_f64()), next);
            }
        }
        // Products that are near the summands of sums, and those of all exponents.
        _ => y.iter_mut().step_by(3).for_each(|y| *y = T::ONE),
    }
    (x, y)
}

fn products<T: Float>(level: Level, cases: &mut Vec<Case>) {
    let third = [Third::Zero, Third::Plus, Third::Minus].map(Hard::HalfLeast);
    let sets = [&Hard::all::<T>(), &[Hard::SmallFactors][..], &third].concat();
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
            device.reduce_into(x.times(&y), Sum, Determinism::Exact, &mut got)?;
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

/// Summands of a benchmark.
#[derive(Clone, Copy)]
enum Numbers {
    /// Uniform numbers.
    Uniform,
    /// Numbers whose sum has a condition number of about 10^32: half of them nearly cancel, at exponents over 53 binades.
    Condition32,
    /// Finite numbers with random bits.
    AllExponents,
}

impl Numbers {
    fn generate<T: Element>(self, n: usize) -> Vec<T> {
        match self {
            Self::Uniform => Data::Random.generate(n, n as u64),
            Self::AllExponents => Hard::AllExponents.generate(n, n as u64),
            Self::Condition32 => {
                let mut rng = Rng::new(n as u64);
                let mut x: Vec<T> = Data::Random.generate(n, n as u64);
                for i in 0..n / 2 {
                    let scaled = T::from_f64(x[i].to_f64() * 2f64.powi((rng.next() % 53) as i32));
                    (x[i], x[n - 1 - i]) = (scaled, T::from_f64(-scaled.to_f64()));
                }
                x.iter_mut().step_by(1009).for_each(|x| *x = T::ONE);
                x
            }
        }
    }
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
            [x, y] => device.reduce_into(x.times(y), Sum, determinism, out),
            _ => device.reduce_into(&inputs[0], Sum, determinism, out),
        }
    }

    fn verify(&mut self, determinism: Determinism) -> Result<(), Failure> {
        let (cpu, mut want) = (Device::cpu(), [T::ZERO]);
        match &self.host[..] {
            [x, y] => want[0] = cpu.reduce_with(x.times(y), Sum, Determinism::Exact)?,
            _ => want[0] = cpu.reduce_with(&self.host[0], Sum, Determinism::Exact)?,
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
        bench::<f32>("sum exact in integers", 1, Uniform, Exact, Some(0)),
        bench::<f64>("sum exact in integers", 1, Uniform, Exact, Some(0)),
        bench::<f32>("sum exact, condition 1e32", 1, Condition32, Exact, None),
        bench::<f64>("sum exact, condition 1e32", 1, Condition32, Exact, None),
        bench::<f32>("sum exact, all exponents", 1, AllExponents, Exact, None),
        bench::<f64>("sum exact, all exponents", 1, AllExponents, Exact, None),
        bench::<f16>("sum exact", 1, Uniform, Exact, None),
        bench::<f32>("dot fast", 2, Uniform, Fast, None),
        bench::<f64>("dot fast", 2, Uniform, Fast, None),
        bench::<f32>("dot exact", 2, Uniform, Exact, None),
        bench::<f64>("dot exact", 2, Uniform, Exact, None),
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
