//! What is checked of histograms.

use std::fmt;

use super::{
    Accumulate, Bins, Counter,
    bins::{ABOVE, BELOW, MAX_BINS, NAN, OUTSIDE, to_i128},
};
use crate::{
    Buffer, Capabilities, Device, DeviceClass, Element, ElementType, Integer, ProgramSpec, Scratch, Tuning,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        data::{Data, Rng, random_by},
        guarded, poison, same, stands_for_its_size,
    },
    ladder::Climb,
    with_element, with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct Histogram;

/// Samples of Zipf's law: bin `k` with a probability proportional to `1 / (k + 1)^1.1`, by rejection-inversion (Hörmann,
/// Derflinger 1996).
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    bins: f64,
    low: f64,
    high: f64,
}

impl Zipf {
    const S: f64 = 1.1;

    pub(super) fn new(bins: usize) -> Self {
        let bins = bins as f64;
        Self { bins, low: Self::integral(1.5) - 1.0, high: Self::integral(bins + 0.5) }
    }

    /// An integral of `x^-S`.
    fn integral(x: f64) -> f64 {
        -x.powf(1.0 - Self::S) / (Self::S - 1.0)
    }

    fn inverse(y: f64) -> f64 {
        (-y * (Self::S - 1.0)).powf(1.0 / (1.0 - Self::S))
    }

    pub(super) fn sample(&self, rng: &mut Rng) -> usize {
        loop {
            let part = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
            let y = self.high + part * (self.low - self.high);
            let k = Self::inverse(y).round().clamp(1.0, self.bins);
            if y >= Self::integral(k + 0.5) - k.powf(-Self::S) {
                return k as usize - 1;
            }
        }
    }
}

/// How samples are made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Samples {
    /// Every bin alike.
    Uniform,
    /// One bin for all.
    One,
    /// Bin i mod bins.
    Each,
    /// Zipf's law.
    Zipf,
    /// On both sides of the bins and in them.
    Around,
    /// Edges and their neighbours.
    Edges,
    /// Any bits at all.
    Other(Data),
}

impl Samples {
    fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::One => "one bin",
            Self::Each => "one per bin",
            Self::Zipf => "zipf",
            Self::Around => "in and out",
            Self::Edges => "edges",
            Self::Other(data) => data.name(),
        }
    }

    /// A bin number for sample `i`, which may be outside.
    fn bin(self, i: usize, bins: usize, zipf: &Zipf, rng: &mut Rng) -> i128 {
        match self {
            Self::One => bins as i128 / 2,
            Self::Each => (i % bins) as i128,
            Self::Zipf => zipf.sample(rng) as i128,
            Self::Around => i128::from(rng.below(3 * bins as u64)) - bins as i128,
            Self::Uniform | Self::Edges | Self::Other(_) => i128::from(rng.below(bins as u64)),
        }
    }
}

/// What bins a case has.
#[derive(Clone, Copy, Debug)]
enum Shape<T: Element> {
    Ids,
    Even(T, T),
    Closed(T, T),
}

impl<T: Element> Shape<T> {
    fn form(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Even(..) => "even",
            Self::Closed(..) => "even closed",
        }
    }

    fn bins(self, bins: usize) -> crate::Result<Bins<T>> {
        match self {
            Self::Ids => with_integer!(T::TYPE, U => {
                let ids = Bins::<U>::ids(bins)?;
                Ok(Bins { count: ids.count, map: ids.map, element: std::marker::PhantomData })
            }, unreachable!("only integers are ids")),
            Self::Even(lower, upper) => Bins::even(lower, upper, bins),
            Self::Closed(lower, upper) => Ok(Bins::even(lower, upper, bins)?.closed()),
        }
    }

    /// The lower edge of bin `k`, or near it; of `bins`, the upper edge.
    fn edge(self, k: i128, bins: usize) -> T {
        self.place(k, 0.0, bins)
    }

    /// What lies in bin `k`, for floats so much of its width above the edge.
    fn place(self, k: i128, part: f64, bins: usize) -> T {
        match self {
            Self::Ids => from_i128(k),
            Self::Even(lower, upper) | Self::Closed(lower, upper) if T::TYPE.is_float() => {
                let (lower, upper) = (lower.to_f64(), upper.to_f64());
                T::from_f64(lower + (k as f64 + part) * (upper / bins as f64 - lower / bins as f64))
            }
            Self::Even(lower, upper) | Self::Closed(lower, upper) => {
                let (lower, upper, bins) = (to_i128(lower), to_i128(upper), bins as i128);
                // Rounded up: the least sample of the bin.
                from_i128(lower + (k * (upper - lower) + bins - 1).div_euclid(bins))
            }
        }
    }

    fn samples(self, samples: Samples, bins: usize, n: usize) -> Vec<T> {
        if let Samples::Other(data) = samples {
            return data.generate(n, n as u64);
        }
        let zipf = Zipf::new(bins);
        random_by(n, n as u64, |i, rng| {
            let bin = samples.bin(i, bins, &zipf, rng);
            if samples == Samples::Edges {
                // The bin's edge, or the last sample before it, or the first after it, round both ends of the range too.
                let bin = match i % 16 {
                    0 => 0,
                    1 => bins as i128,
                    _ => bin,
                };
                return neighbour(self.edge(bin, bins), rng.below(3) as i32 - 1);
            }
            self.place(bin, rng.below(1 << 20) as f64 / f64::from(1 << 20), bins)
        })
    }
}

pub(super) fn from_i128<T: Element>(value: i128) -> T {
    with_integer!(T::TYPE, U => bytemuck::cast::<U, T>(U::from_i128(value)), unreachable!("only integers have steps"))
}

/// The value `by` steps of the type away.
pub(super) fn neighbour<T: Element>(x: T, by: i32) -> T {
    if !T::TYPE.is_float() {
        return from_i128(to_i128(x) + i128::from(by));
    }
    // Away from zero or towards it; zero itself gets the least subnormal.
    let word = oclprim::internals::data::bits(x);
    let moved = if by < 0 && x == T::ZERO { 1 } else { word.wrapping_add(i64::from(by) as u64) };
    T::from_bits_lossy(moved)
}

/// The slot of a sample, by its definition.
fn obvious_slot<T: Element>(x: T, shape: Shape<T>, bins: usize, edges: &[f64]) -> usize {
    let outside = |side: u32| bins + side as usize;
    let (lower, upper, closed) = match shape {
        Shape::Ids => {
            let id = to_i128(x);
            return match id {
                _ if id < 0 => outside(BELOW),
                _ if id >= bins as i128 => outside(ABOVE),
                _ => id as usize,
            };
        }
        Shape::Even(lower, upper) => (lower, upper, false),
        Shape::Closed(lower, upper) => (lower, upper, true),
    };
    match x {
        _ if x.is_nan() => outside(NAN),
        _ if x < lower => outside(BELOW),
        _ if x == upper && closed => bins - 1,
        _ if x >= upper => outside(ABOVE),
        _ if T::TYPE.is_float() => {
            let x = x.to_f64();
            // The edges rise, so that the last one not above x can be searched for in either way.
            if bins <= 300 {
                edges.iter().rposition(|&edge| edge <= x).expect("the lower edge is not above x")
            } else {
                edges.partition_point(|&edge| edge <= x) - 1
            }
        }
        _ => {
            let (x, lower, upper) = (to_i128(x), to_i128(lower), to_i128(upper));
            ((x - lower) * bins as i128 / (upper - lower)) as usize
        }
    }
}

/// `edge(k)` for every bin, as defined, in the type in which it is computed.
fn obvious_edges<T: Element>(shape: Shape<T>, bins: usize) -> Vec<f64> {
    let (Shape::Even(lower, upper) | Shape::Closed(lower, upper)) = shape else { return Vec::new() };
    if !T::TYPE.is_float() {
        return Vec::new();
    }
    macro_rules! edges {
        ($ty:ty) => {{
            let (lower, upper, count) = (lower.to_f64() as $ty, upper.to_f64() as $ty, bins as $ty);
            let width = upper / count - lower / count;
            let low = |k: usize| lower + k as $ty * width;
            let high = |k: usize| upper - (bins - k) as $ty * width;
            (0..bins).map(|k| f64::from(if 2 * k < bins { low(k) } else { high(k) })).collect()
        }};
    }
    if T::TYPE.needs_fp64() { edges!(f64) } else { edges!(f32) }
}

/// Compares a histogram of what follows `offset` with the obvious one, whose slots `obvious` knows.
pub(super) fn check<T: Element, C: Counter>(
    device: &Device,
    all: &[T],
    offset: usize,
    layout: &Bins<T>,
    obvious: &dyn Fn(T) -> usize,
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let (input, bins) = (&all[offset..], layout.len());
    let on_device = device.upload(all)?;
    let mut outside = Vec::new();
    let counts = guarded::<C>(device, bins, offset, |counts| {
        outside = guarded::<u64>(device, OUTSIDE, offset, |outside| {
            let view = on_device.view(offset..)?;
            Ok(device.histogram_into(view, layout, counts, outside, accumulate, &mut Scratch::new())?)
        })?;
        Ok(())
    })?;
    // The outputs held poison before.
    let before = if accumulate == Accumulate::Add { 0xA5A5_A5A5_A5A5_A5A5u64 } else { 0 };
    let mut slots = vec![0u64; bins + OUTSIDE];
    if device.is_cpu() {
        input.iter().for_each(|&x| slots[obvious(x)] += 1);
    } else {
        let found = Device::cpu().histogram(input, layout)?;
        slots[..bins].copy_from_slice(&found.counts);
        slots[bins..].copy_from_slice(&[found.outside.below, found.outside.above, found.outside.nan]);
    }
    let want: Vec<C> =
        slots[..bins].iter().map(|&count| C::from_bits_lossy(before).add(C::from_bits_lossy(count))).collect();
    let want_outside: Vec<u64> = slots[bins..].iter().map(|&count| before.wrapping_add(count)).collect();
    same(&counts, &want, "counts")?;
    same(&outside, &want_outside, "outside")
}

fn bin_counts<T>(level: Level) -> &'static [usize] {
    match level {
        // Beyond the local memory of an interpreter, or in ranges.
        Level::Tiny if size_of::<T>() == 4 => &[2, 257, 20_000],
        Level::Tiny => &[2, 257],
        // Each is a program, on each driver.
        Level::Quick if size_of::<T>() != 4 => &[256, 70_000],
        Level::Quick => &[1, 256, 1000, 70_000],
        Level::Full if size_of::<T>() != 4 => &[1, 2, 255, 256, 257, 1000, 4097, 70_000],
        Level::Full => &[1, 2, 255, 256, 257, 1000, 4097, 70_000, 5 << 20],
    }
}

fn sizes(level: Level) -> &'static [usize] {
    match level {
        Level::Tiny => &[0, 1, 17, 300],
        Level::Quick => &[0, 1, 257, 20_011],
        Level::Full => &[0, 1, 2, 3, 31, 255, 256, 257, 1025, 4095, 4096, 20_011, 262_147, 1_000_003],
    }
}

fn sample_sets(level: Level) -> &'static [Samples] {
    const OTHER: Samples = Samples::Other(Data::Special);
    match level {
        Level::Tiny => &[Samples::Around, Samples::Edges],
        Level::Quick => &[Samples::Uniform, Samples::One, Samples::Zipf, Samples::Around, Samples::Edges, OTHER],
        Level::Full => &[
            Samples::Uniform,
            Samples::One,
            Samples::Each,
            Samples::Zipf,
            Samples::Around,
            Samples::Edges,
            OTHER,
            Samples::Other(Data::Bits),
            Samples::Other(Data::Extremes),
        ],
    }
}

fn case<T: Element>(
    shape: Shape<T>,
    n: usize,
    offset: usize,
    bins: usize,
    samples: Samples,
    accumulate: Accumulate,
) -> Case {
    let wide = accumulate == Accumulate::Add;
    let counter = if wide { "u64, added" } else { "u32" };
    let text = Text(shape, bins, n, offset, counter).to_string();
    Case::new(shape.form(), T::TYPE, text, samples.name(), n, move |device| {
        let all = shape.samples(samples, bins, n + offset);
        let (layout, edges) = (shape.bins(bins)?, obvious_edges(shape, bins));
        let obvious = |x| obvious_slot(x, shape, bins, &edges);
        if wide {
            check::<T, u64>(device, &all, offset, &layout, &obvious, accumulate)
        } else {
            check::<T, u32>(device, &all, offset, &layout, &obvious, accumulate)
        }
    })
}

/// As many bins as there can be: samples that are fewer than bins, and some that are more.
fn most_bins<T: Element>(shape: Shape<T>, cases: &mut Vec<Case>) {
    for (n, samples) in [(1_000_003, Samples::Edges), (20_000_003, Samples::Around)] {
        cases.push(case::<T>(shape, n, 3, MAX_BINS, samples, Accumulate::Overwrite));
    }
}

/// Bins in more ranges than a GPU reads all samples for, where its local memory is little.
pub(super) const RANGED_BINS: usize = 9000;

/// A GPU of little local memory.
pub(super) fn small_gpu() -> Tuning {
    Tuning::default().class(DeviceClass::Gpu).local_bytes(4096)
}

/// Numbers of samples that are counted in global memory, as they are fewer than a quarter of the bins, or shared out by ranges.
pub(super) fn ranged_sizes(level: Level) -> &'static [usize] {
    match level {
        Level::Tiny => &[300, 6_011],
        Level::Quick => &[300, 6_011, 40_009],
        Level::Full => &[0, 1, 300, 2_250, 2_251, 6_011, 40_009, 262_147, 1_000_003],
    }
}

fn ranged_cases<T: Element>(level: Level, shape: Shape<T>, cases: &mut Vec<Case>) {
    for &n in ranged_sizes(level) {
        for (i, samples) in [Samples::Around, Samples::One, Samples::Each].into_iter().enumerate() {
            let accumulate = if i % 2 == 0 { Accumulate::Overwrite } else { Accumulate::Add };
            let form = format!("{} in many ranges", shape.form());
            cases.push(case(shape, n, i, RANGED_BINS, samples, accumulate).tuned(form, small_gpu()));
        }
    }
}

/// The cases of one shape: every size once, then every bin count with every set of samples.
fn shape_cases<T: Element>(level: Level, shape: Shape<T>, cases: &mut Vec<Case>) {
    let mut push = |n: usize, offset: usize, bins: usize, samples: Samples, accumulate: Accumulate| {
        if shape.bins(bins).is_ok() {
            cases.push(case(shape, n, offset, bins, samples, accumulate));
        }
    };
    let middle = if level == Level::Tiny { 200 } else { 5003 };
    for &n in sizes(level) {
        push(n, 0, 256, Samples::Uniform, Accumulate::Overwrite);
        push(n, 3, 256, Samples::Around, Accumulate::Add);
    }
    for &bins in bin_counts::<T>(level) {
        for (i, &samples) in sample_sets(level).iter().enumerate() {
            let accumulate = if i % 2 == 0 { Accumulate::Overwrite } else { Accumulate::Add };
            push(middle, i % 4, bins, samples, accumulate);
        }
    }
}

/// How a case's shape is printed.
struct Text<T: Element>(Shape<T>, usize, usize, usize, &'static str);

impl<T: Element> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(shape, bins, n, offset, counter) = self;
        write!(f, "n = {n} at {offset}, {bins} bins")?;
        if let Shape::Even(lower, upper) | Shape::Closed(lower, upper) = shape {
            write!(f, " from {lower:?} to {upper:?}")?;
        }
        write!(f, ", {counter}")
    }
}

/// Ranges that reach the ends of the type, and some that do not.
fn ranges<T: Element>(level: Level) -> Vec<Shape<T>> {
    let real = |lower: f64, upper: f64| (T::from_f64(lower), T::from_f64(upper));
    let ends = if T::TYPE.is_float() { real(-6e4, 6e4) } else { (T::LOWEST, T::HIGHEST) };
    let small = if T::TYPE.is_float() { real(-0.7, 0.9) } else { real(3.0, 103.0) };
    let mut shapes = vec![Shape::Even(small.0, small.1), Shape::Closed(ends.0, ends.1)];
    if level == Level::Full {
        let offset = if T::TYPE.is_float() { real(1000.0, 1016.0) } else { real(1.0, 8.0) };
        shapes.extend([Shape::Closed(small.0, small.1), Shape::Even(ends.0, ends.1), Shape::Even(offset.0, offset.1)]);
    }
    shapes
}

/// What a benchmark of a histogram runs on.
struct Measured<T: Element> {
    device: Device,
    x: Buffer<T>,
    layout: Bins<T>,
    counts: Buffer<u32>,
    outside: Buffer<u64>,
    scratch: Scratch,
}

fn bench<T: Element>(shape: Shape<T>, bins: usize, samples: Samples, offset: usize) -> Bench {
    let place = if offset > 0 { format!(", offset {offset}") } else { String::new() };
    let form = format!("{}, {bins} bins, {}{place}", shape.form(), samples.name());
    bench_of(form, bins, offset, move |n| shape.samples(samples, bins, n), move || shape.bins(bins))
}

pub(super) fn bench_of<T: Element>(
    form: String,
    bins: usize,
    offset: usize,
    samples: impl Fn(usize) -> Vec<T> + 'static,
    layout: impl Fn() -> crate::Result<Bins<T>> + 'static,
) -> Bench {
    let bytes = move |n: usize| (n * size_of::<T>() + bins * size_of::<u32>()) as u64;
    Bench::new(form, T::TYPE, bytes, move |device, n| {
        let state = Measured {
            device: device.clone(),
            x: device.upload(&samples(n + offset))?,
            layout: layout()?,
            counts: device.zeroed(bins)?,
            outside: device.zeroed(OUTSIDE)?,
            scratch: Scratch::new(),
        };
        let run = move |this: &mut Measured<T>| {
            let Measured { device, x, layout, counts, outside, scratch } = this;
            device.histogram_into(x.view(offset..)?, layout, counts, outside, Accumulate::Overwrite, scratch)
        };
        let verify = move |this: &mut Measured<T>| {
            let want = Device::cpu().histogram(&this.x.to_vec()?[offset..], &this.layout)?;
            let want: Vec<u32> = want.counts.iter().map(|&count| count as u32).collect();
            same(&this.counts.to_vec()?, &want, "counts")
        };
        Ok(Climb::new(state, |this| this.counts.fill(poison()), run, verify))
    })
}

impl Spec for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
            with_element!(element, T => {
                if !T::TYPE.is_float() {
                    shape_cases::<T>(level, Shape::Ids, &mut cases);
                }
                for shape in ranges::<T>(level) {
                    shape_cases::<T>(level, shape, &mut cases);
                }
            });
        }
        ranged_cases::<u32>(level, Shape::Ids, &mut cases);
        ranged_cases::<f32>(level, Shape::Even(-0.7, 0.9), &mut cases);
        if level == Level::Full {
            most_bins::<u32>(Shape::Ids, &mut cases);
            most_bins::<f32>(Shape::Closed(-1.0, 1.0), &mut cases);
        }
        super::edges_spec::cases(level, &mut cases);
        super::weighted::spec::cases(level, &mut cases);
        super::channels::spec::cases(level, &mut cases);
        super::mapped::spec::cases(level, &mut cases);
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches =
            vec![bench::<u8>(Shape::Ids, 256, Samples::Uniform, 0), bench::<u8>(Shape::Ids, 256, Samples::Uniform, 1)];
        for samples in [Samples::Uniform, Samples::Zipf, Samples::One] {
            let bins = [256, 1024, 4096, 16_384, 65_536, 5 << 20];
            benches.extend(bins.map(|bins| bench::<i32>(Shape::Ids, bins, samples, 0)));
        }
        benches.extend([Samples::Zipf, Samples::One].map(|samples| bench::<u8>(Shape::Ids, 256, samples, 0)));
        // On the edges each sample needs a second look.
        let even = [Samples::Uniform, Samples::Edges, Samples::Zipf, Samples::One];
        benches.extend(even.map(|samples| bench::<f32>(Shape::Even(-1.0, 1.0), 256, samples, 0)));
        super::edges_spec::benches(&mut benches);
        super::weighted::spec::benches(&mut benches);
        super::channels::spec::benches(&mut benches);
        super::mapped::spec::benches(&mut benches);
        benches
    }

    #[cfg(feature = "opencl")]
    fn programs(&self, caps: &Capabilities) -> Vec<ProgramSpec> {
        use super::gpu;
        let mut programs = super::ladder::kernels::programs(caps);
        programs.push(gpu::zero_program(caps));
        for element in ElementType::ALL {
            let maps: &[u32] = if element.is_float() { &[2, 3] } else { &[0, 1, 3] };
            for &map in maps {
                for bins in [256, 1000, 40_000, 70_000, 5 << 20] {
                    for counter in [ElementType::U32, ElementType::U64] {
                        let form = gpu::Form { element, bins, map };
                        let plan = gpu::plan(1 << 28, form, counter, caps, 1 << 31);
                        programs.extend(plan.into_iter().flat_map(|plan| [plan.count, plan.merge.program]));
                    }
                }
            }
        }
        super::weighted::spec::programs(caps, &mut programs);
        super::channels::spec::programs(caps, &mut programs);
        super::mapped::spec::programs(caps, &mut programs);
        programs
    }

    #[cfg(not(feature = "opencl"))]
    fn programs(&self, _: &Capabilities) -> Vec<ProgramSpec> {
        Vec::new()
    }
}
