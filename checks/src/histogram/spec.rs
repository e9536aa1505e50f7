//! Spec of histograms: cases, programs and benchmark cases.

use std::fmt;

use super::{
    Accumulate, Bins,
    bins::{ABOVE, BELOW, MAX_BINS, NAN, to_i128},
    shared::{RANGED_BINS, Zipf, bench_of, check, from_i128, neighbour, ranged_sizes, small_gpu},
};
use crate::{
    Element, ElementType, ProgramSpec,
    bench::Bench,
    check::{
        Case, Level, Spec,
        data::{Data, Rng, random_by},
        stands_for_its_size,
    },
    tuning::Tuned,
    with_element, with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct Histogram;

/// Data set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Samples {
    /// All bins are equally likely.
    Uniform,
    /// All samples are in one bin.
    One,
    /// Sample `i` is in bin `i % bins`.
    Each,
    /// Bins by Zipf's law.
    Zipf,
    /// In the bins and on both sides of them.
    Around,
    /// Edges and their neighbours.
    Edges,
    /// A data set that does not depend on the bins.
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

    /// Bin number of sample `i`, which may be outside of the bins.
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

/// Kind and range of the bins of a case.
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

    /// Lower edge of bin `k`, or nearly that; for `k == bins`, the upper edge.
    fn edge(self, k: i128, bins: usize) -> T {
        self.sample_in(k, 0.0, bins)
    }

    /// A sample in bin `k`; for floats, `part` of the bin's width above its edge.
    fn sample_in(self, k: i128, part: f64, bins: usize) -> T {
        match self {
            Self::Ids => from_i128(k),
            Self::Even(lower, upper) | Self::Closed(lower, upper) if T::TYPE.is_float() => {
                let (lower, upper) = (lower.to_f64(), upper.to_f64());
                T::from_f64(lower + (k as f64 + part) * (upper / bins as f64 - lower / bins as f64))
            }
            Self::Even(lower, upper) | Self::Closed(lower, upper) => {
                let (lower, upper, bins) = (to_i128(lower), to_i128(upper), bins as i128);
                // The division rounds up to the smallest sample of the bin.
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
                // The sample is the bin's edge, the last value before it or the first after it. One in 8 samples is at
                // an end of the range.
                let bin = match i % 16 {
                    0 => 0,
                    1 => bins as i128,
                    _ => bin,
                };
                return neighbour(self.edge(bin, bins), rng.below(3) as i32 - 1);
            }
            self.sample_in(bin, rng.below(1 << 20) as f64 / f64::from(1 << 20), bins)
        })
    }
}

/// The slot of a sample by definition.
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
            // The edges ascend, so both searches find the last edge that is not above x.
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

/// `edge(k)` of every bin by the definition in [`Bins`], computed in f64 if `T` is f64, else in f32. Empty for
/// integers. It leaves out the upper bound on `width` in that definition, because the cases have no range so wide. The
/// ranges of `tests/float_ranges.rs` need the bound.
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

fn bin_counts<T>(level: Level) -> &'static [usize] {
    match level {
        // 20,000 bins exceed an interpreter's local memory: it counts them in ranges or in global memory.
        Level::Tiny if size_of::<T>() == 4 => &[2, 257, 20_000],
        Level::Tiny => &[2, 257],
        // Each number costs a build per driver.
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

/// Cases of the largest number of bins, with fewer samples than bins and with more.
fn most_bins<T: Element>(shape: Shape<T>, cases: &mut Vec<Case>) {
    for (n, samples) in [(1_000_003, Samples::Edges), (20_000_003, Samples::Around)] {
        cases.push(case::<T>(shape, n, 3, MAX_BINS, samples, Accumulate::Overwrite));
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

/// Cases of one shape: every size, then every number of bins with every data set.
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

/// Text of a case's shape.
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

/// Ranges that reach the ends of an integer type, or from -60,000 to 60,000 for floats, and smaller ranges.
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

fn bench<T: Element>(shape: Shape<T>, bins: usize, samples: Samples, offset: usize) -> Bench {
    let suffix = if offset > 0 { format!(", offset {offset}") } else { String::new() };
    let form = format!("{}, {bins} bins, {}{suffix}", shape.form(), samples.name());
    bench_of(form, bins, offset, move |n| shape.samples(samples, bins, n), move || shape.bins(bins))
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
        super::groups::spec::cases(level, &mut cases);
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
        // Samples on edges cost extra work.
        let even = [Samples::Uniform, Samples::Edges, Samples::Zipf, Samples::One];
        benches.extend(even.map(|samples| bench::<f32>(Shape::Even(-1.0, 1.0), 256, samples, 0)));
        super::edges_spec::benches(&mut benches);
        super::weighted::spec::benches(&mut benches);
        super::channels::spec::benches(&mut benches);
        super::mapped::spec::benches(&mut benches);
        super::groups::spec::benches(&mut benches);
        benches
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
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
                        let counted = gpu::plan_mapped(1 << 28, form, None, Some(counter), counter, caps, 1 << 31);
                        programs.extend(counted.map(|plan| plan.count));
                    }
                }
            }
        }
        super::weighted::spec::programs(caps, &mut programs);
        super::channels::spec::programs(caps, &mut programs);
        super::mapped::spec::programs(caps, &mut programs);
        super::groups::spec::programs(caps, &mut programs);
        programs
    }
}
