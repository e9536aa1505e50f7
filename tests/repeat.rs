//! Operations that promise the same result on every run: each one runs many times and must give the CPU's bits each time.

mod common;

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use bytemuck::Pod;
use oclprim::{
    Accumulate, Bins, Bound, Buffer, Complex, Device, ErrorKind, Interpolation, Matrices, Order, Philox, Result, SetOp,
    Source, StatisticsRecord, Top, f16,
    internals::data::Data,
    op::{
        And, Difference, EqualTo, Map, Max, Min, NonZero, Operator, Or, Product, Sum, Usage, Xor, complex_product,
        complex_sum,
    },
    sort::Merging,
    source::constant,
};

const RUNS: usize = 100;
/// If time is short: the time limit for the runs of one operation on one device.
const PATIENCE: Duration = Duration::from_millis(50);
/// Minimum number of runs, whatever the time limit is.
const FEWEST: usize = 3;

/// Seven tiles of a reduction of 4-byte elements.
const N: usize = 100_003;
/// Several tiles of a reduction; a prime number.
const FEW: usize = 40_009;
/// A shape for moves and for operations along axes.
const SHAPE: [usize; 3] = [41, 47, 51];

struct Inputs {
    floats: Buffer<f32>,
    others: Buffer<f32>,
    numbers: Buffer<u32>,
    pixels: Buffer<u8>,
    offsets: Buffer<u64>,
    /// A permutation of indices.
    order: Buffer<u32>,
    /// Factors near 1.
    factors: Buffer<f32>,
    /// One buffer with few bits set, and one with few bits not set.
    bits: [Buffer<i32>; 2],
    halves: Buffer<f16>,
    doubles: Buffer<f64>,
    parts: Buffer<u32>,
    /// Complex factors near 1.
    complex: Buffer<Complex<f32>>,
    /// Two sorted buffers with many equal elements.
    sorted: [Buffer<u32>; 2],
    flags: Buffer<u8>,
}

/// Length of a part of the inputs for some operations: several tiles of a sort.
const SOME: usize = 20_011;

impl Inputs {
    fn new(device: &Device) -> Result<Self> {
        let offsets: Vec<u64> = (0..=60).map(|i| i * i * N as u64 / 3600).collect();
        let random: Vec<f32> = Data::Random.generate(FEW, 5);
        let near_one = |x: f32| 1.0 + x / 1024.0;
        let ascending = |n: usize, step: u32| (0..n as u32).map(|i| i / 3 * step).collect::<Vec<_>>();
        let bits: Vec<i32> = (0..FEW).map(|i| i32::from(i % 9_973 == 77) << (i % 31)).collect();
        Ok(Self {
            floats: device.upload(&Data::Random.generate(N, 1))?,
            others: device.upload(&Data::Random.generate(N, 2))?,
            numbers: device.upload(&Data::Random.generate::<u32>(N, 3).iter().map(|x| x % 300).collect::<Vec<_>>())?,
            pixels: device.upload(&Data::Random.generate(N / 3 * 3, 4))?,
            offsets: device.upload(&offsets)?,
            order: device.upload(&(0..FEW as u32).map(|i| i * 7919 % FEW as u32).collect::<Vec<_>>())?,
            factors: device.upload(&random.iter().map(|&x| near_one(x)).collect::<Vec<_>>())?,
            bits: [device.upload(&bits)?, device.upload(&bits.iter().map(|x| !x).collect::<Vec<_>>())?],
            halves: device.upload(&Data::Random.generate(FEW, 6))?,
            doubles: device.upload(&Data::Random.generate(FEW, 7))?,
            parts: device.upload(&[0, 9, 9, 20_000, FEW as u32])?,
            complex: device.upload(
                &random.chunks_exact(2).map(|x| Complex::new(near_one(x[0]), x[1] / 64.0)).collect::<Vec<_>>(),
            )?,
            sorted: [device.upload(&ascending(SOME, 2))?, device.upload(&ascending(SOME / 2, 3))?],
            flags: device.upload(&random.iter().map(|&x| u8::from(x > 0.25)).collect::<Vec<_>>())?,
        })
    }

    /// A copy on a device, because generating the inputs again is slow without optimisation.
    fn on(&self, device: &Device) -> Result<Self> {
        fn copy<T: Pod>(device: &Device, of: &Buffer<T>) -> Result<Buffer<T>> {
            device.upload(&of.to_vec()?)
        }
        Ok(Self {
            floats: copy(device, &self.floats)?,
            others: copy(device, &self.others)?,
            numbers: copy(device, &self.numbers)?,
            pixels: copy(device, &self.pixels)?,
            offsets: copy(device, &self.offsets)?,
            order: copy(device, &self.order)?,
            factors: copy(device, &self.factors)?,
            bits: [copy(device, &self.bits[0])?, copy(device, &self.bits[1])?],
            halves: copy(device, &self.halves)?,
            doubles: copy(device, &self.doubles)?,
            parts: copy(device, &self.parts)?,
            complex: copy(device, &self.complex)?,
            sorted: [copy(device, &self.sorted[0])?, copy(device, &self.sorted[1])?],
            flags: copy(device, &self.flags)?,
        })
    }
}

/// The name of an operation, and a function that returns its whole result as bytes.
type Form = (&'static str, fn(&Device, &Inputs) -> Result<Vec<u8>>);

fn bytes<T: Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn contents<T: Pod>(buffer: &Buffer<T>) -> Result<Vec<u8>> {
    Ok(bytes(&buffer.to_vec()?))
}

/// The bytes of both outputs.
fn both<T: Pod, U: Pod>((a, b): (Buffer<T>, Buffer<U>)) -> Result<Vec<u8>> {
    Ok([contents(&a)?, contents(&b)?].concat())
}

fn sum_of_floats() -> Operator<f32, fn(f32, f32) -> f32> {
    Operator::new("sum", -0.0, |a, b| a + b, "a + b")
}

fn above_a_quarter() -> Map<fn(f32) -> bool> {
    Map::new(|x| x > 0.25, "x > 0.25f")
}

fn repeat(forms: &[Form]) {
    let cpu = Device::cpu();
    static INPUTS: OnceLock<Inputs> = OnceLock::new();
    let inputs = INPUTS.get_or_init(|| Inputs::new(&cpu).unwrap());
    let wanted: Vec<_> = forms.iter().map(|(_, form)| form(&cpu, inputs).unwrap()).collect();
    // Each device also runs as a GPU, with work-groups of many work-items. At the level `variant`, it runs only as a GPU.
    let mut devices = common::tuned(&[("a GPU", common::gpu())]);
    if common::variant() {
        devices.retain(|(name, _)| name.ends_with("as a GPU"));
    }
    for (name, device) in devices {
        // An interpreter has time for few runs.
        let runs = if common::runs_kernels_at_once(&device) { RUNS } else { 2 };
        let inputs = inputs.on(&device).unwrap();
        for ((form, run), want) in forms.iter().zip(&wanted) {
            let mut start = Instant::now();
            for i in 0..runs {
                if i == 1 {
                    // The first run includes the build.
                    start = Instant::now();
                } else if i >= FEWEST && common::tiny() && start.elapsed() > PATIENCE {
                    break;
                }
                let got = match run(&device, &inputs) {
                    Err(error) if error.kind() == ErrorKind::Unsupported => {
                        common::skip(&format!("{name}: {form}"), &error.to_string());
                        break;
                    }
                    got => got.unwrap_or_else(|error| panic!("{name}: {form}: {error}")),
                };
                // This compares all bytes in one call, because a loop over bytes is slow without optimisation.
                let equal = got == *want;
                let place = || got.iter().zip(want).position(|(a, b)| a != b);
                assert!(equal, "{name}: {form}: run {i} gave {} bytes, differs at {:?}", got.len(), place());
            }
        }
    }
}

#[test]
fn reductions_repeat_bit_for_bit() {
    repeat(&[
        ("sum", |device, x| Ok(bytes(&[device.reduce(&x.floats, Sum)?]))),
        ("sum of integers", |device, x| Ok(bytes(&[device.reduce(&x.numbers, Sum)?]))),
        ("dot", |device, x| Ok(bytes(&[device.reduce(x.floats.times(&x.others), Sum)?]))),
        ("sum of a function", |device, x| {
            let squares = Map::new(|x: f32| x * x, "x * x");
            Ok(bytes(&[device.reduce(x.floats.map(&squares), Sum)?]))
        }),
        ("sum by an operator", |device, x| Ok(bytes(&[device.reduce(&x.floats, &sum_of_floats())?]))),
        ("complex sum", |device, x| Ok(bytes(&[device.reduce(&x.complex, &complex_sum())?]))),
        ("complex product", |device, x| Ok(bytes(&[device.reduce(&x.complex, &complex_product())?]))),
    ]);
}

#[test]
fn reductions_by_each_operator_repeat_bit_for_bit() {
    repeat(&[
        ("product", |device, x| Ok(bytes(&[device.reduce(&x.factors, Product)?]))),
        ("min and max", |device, x| Ok(bytes(&[device.reduce(&x.factors, Min)?, device.reduce(&x.factors, Max)?]))),
        ("and, or, xor", |device, x| {
            let [few, most] = &x.bits;
            Ok(bytes(&[device.reduce(most, And)?, device.reduce(few, Or)?, device.reduce(most, Xor)?]))
        }),
        ("sums in wider types", |device, x| {
            let bits = device.reduce(x.bits[1].cast::<i64>(), Sum)?;
            Ok([bytes(&[bits]), bytes(&[device.reduce(x.halves.cast::<f32>(), Sum)?])].concat())
        }),
        ("sum of f16", |device, x| Ok(bytes(&[device.reduce(&x.halves, Sum)?]))),
        ("sum of f64", |device, x| Ok(bytes(&[device.reduce(&x.doubles, Sum)?]))),
    ]);
}

#[test]
fn reductions_of_segments_and_axes_repeat_bit_for_bit() {
    repeat(&[
        ("max of segments", |device, x| contents(&device.reduce(x.pixels.view(..FEW)?.segments(&x.parts), Max)?)),
        ("max along the last axis", |device, x| {
            contents(&device.reduce(x.pixels.view(..3 * 700)?.nd(&[3, 700])?.along(1), Max)?)
        }),
        ("sum of segments", |device, x| contents(&device.reduce(x.floats.segments(&x.offsets), Sum)?)),
        ("sum along the last axis", |device, x| {
            contents(&device.reduce(x.floats.view(..7 * 13_001)?.nd(&[7, 13_001])?.along(1), Sum)?)
        }),
        ("sum along the first axis", |device, x| {
            contents(&device.reduce(x.floats.view(..13_001 * 7)?.nd(&[13_001, 7])?.along(0), Sum)?)
        }),
        ("sum of segments in a wider type", |device, x| {
            let mut sums = device.zeroed::<f32>(x.parts.len() - 1)?;
            device.reduce_into(x.halves.cast::<f32>().segments(&x.parts), Sum, &mut sums)?;
            contents(&sums)
        }),
        ("segments by an operator", |device, x| {
            contents(&device.reduce(x.floats.segments(&x.offsets), &sum_of_floats())?)
        }),
        ("sum along an axis in a wider type", |device, x| {
            let rows = x.halves.view(..3 * 13_001)?;
            let mut sums = device.zeroed::<f32>(3)?;
            device.reduce_into(rows.nd(&[3, 13_001])?.cast::<f32>().along(1), Sum, &mut sums)?;
            contents(&sums)
        }),
        ("along an axis by an operator", |device, x| {
            let rows = x.floats.view(..7 * 13_001)?;
            contents(&device.reduce(rows.nd(&[7, 13_001])?.along(1), &sum_of_floats())?)
        }),
    ]);
}

#[test]
fn statistics_and_extremes_repeat_bit_for_bit() {
    repeat(&[
        ("arg-min", |device, x| {
            let least = device.arg_min(&x.floats)?;
            Ok([bytes(&[least.index as u64]), bytes(&[least.value])].concat())
        }),
        ("arg-max", |device, x| {
            let most = device.arg_max(&x.factors)?;
            Ok([bytes(&[most.index as u64]), bytes(&[most.value])].concat())
        }),
        ("min-max", |device, x| {
            let (mut values, mut places) = (device.zeroed::<f32>(2)?, device.zeroed(2)?);
            device.min_max_into(&x.floats, &mut values, &mut places)?;
            Ok([contents(&values)?, contents(&places)?].concat())
        }),
        ("min-max along the last axis", |device, x| {
            let ends = device.min_max(x.floats.view(..7 * 13_001)?.nd(&[7, 13_001])?.along(1))?;
            Ok([contents(&ends.values)?, contents(&ends.indices)?].concat())
        }),
        ("arg-max along the first axis", |device, x| {
            let most = device.arg_max(x.floats.view(..13_001 * 7)?.nd(&[13_001, 7])?.along(0))?;
            Ok([contents(&most.values)?, contents(&most.indices)?].concat())
        }),
        ("arg-min along the last axis", |device, x| {
            let least = device.arg_min(x.floats.view(..7 * 13_001)?.nd(&[7, 13_001])?.along(1))?;
            Ok([contents(&least.values)?, contents(&least.indices)?].concat())
        }),
        ("min-max of segments", |device, x| {
            let ends = device.min_max(x.floats.segments(&x.offsets))?;
            Ok([contents(&ends.values)?, contents(&ends.indices)?].concat())
        }),
        ("moments of segments", |device, x| {
            let offsets = [0u32, 1, 1, 70, 30_001, 90_000];
            contents(&device.moments(x.floats.view(..90_000)?.segments(&offsets))?)
        }),
        ("moments along the last axis", |device, x| {
            contents(&device.moments(x.floats.view(..3 * 30_001)?.nd(&[3, 30_001])?.along(1))?)
        }),
        ("moments along the first axis", |device, x| {
            contents(&device.moments(x.floats.view(..13_001 * 7)?.nd(&[13_001, 7])?.along(0))?)
        }),
        ("statistics", |device, x| {
            let mut record = device.zeroed::<StatisticsRecord<f32>>(1)?;
            device.statistics_into(&x.floats, &mut record)?;
            contents(&record)
        }),
        ("count", |device, x| Ok(bytes(&[device.count(&x.numbers, NonZero)?]))),
        ("count of one, any and all", |device, x| {
            let (any, all) = (device.any(&x.numbers, NonZero)?, device.all(&x.numbers, NonZero)?);
            Ok([bytes(&[device.count(&x.numbers, EqualTo(7))?]), vec![any.into(), all.into()]].concat())
        }),
    ]);
}

#[test]
fn histograms_repeat_bit_for_bit() {
    fn counted<T: oclprim::Element>(device: &Device, x: &Buffer<T>, bins: &Bins<T>) -> Result<Vec<u8>> {
        let (mut counts, mut outside) = (vec![0u64; bins.len()], [0u64; 3]);
        device.histogram_into(x, bins, &mut counts, &mut outside, Accumulate::Overwrite)?;
        Ok([bytes(&counts), bytes(&outside)].concat())
    }
    repeat(&[
        ("histogram of numbers", |device, x| counted(device, &x.numbers, &Bins::ids(256)?)),
        ("histogram of floats", |device, x| counted(device, &x.floats, &Bins::even(-0.7, 0.9, 37)?)),
        ("histogram by edges", |device, x| counted(device, &x.floats, &Bins::edges(&[-0.9, -0.1, 0.0, 0.3, 0.8])?)),
        ("histogram of a function", |device, x| {
            let squares = x.floats.view(..FEW)?.map(Map::new(|x: f32| x * x, "x * x"));
            let found = device.histogram(squares, &Bins::even(0.0f32, 0.9, 37)?)?;
            Ok([bytes(&found.counts), bytes(&[found.outside.below, found.outside.above, found.outside.nan])].concat())
        }),
        ("histogram of channels", |device, x| {
            let bins = vec![Bins::even(0u8, 250, 10)?; 3];
            let found = device.histogram(x.pixels.channels(3), &bins)?;
            let each = |found: &oclprim::Histogram| {
                let outside = [found.outside.below, found.outside.above, found.outside.nan];
                [bytes(&found.counts), bytes(&outside)].concat()
            };
            Ok(found.iter().flat_map(each).collect())
        }),
    ]);
}

#[test]
fn weighted_histograms_repeat_bit_for_bit() {
    repeat(&[
        ("float weights", |device, x| {
            let found = device.histogram(x.floats.weighted(&x.others), &Bins::even(-0.7, 0.9, 37)?)?;
            Ok([bytes(&found.sums), bytes(&[found.outside.below, found.outside.above, found.outside.nan])].concat())
        }),
        ("weights by edges", |device, x| {
            let bins = Bins::edges(&[-0.9, -0.1, 0.0, 0.3, 0.8])?;
            let found = device.histogram(x.floats.weighted(&x.others), &bins)?;
            Ok([bytes(&found.sums), bytes(&[found.outside.below, found.outside.above, found.outside.nan])].concat())
        }),
        ("integer weights", |device, x| {
            let found = device.histogram(x.numbers.weighted(&x.numbers), &Bins::ids(256)?)?;
            Ok([bytes(&found.sums), bytes(&[found.outside.below, found.outside.above, found.outside.nan])].concat())
        }),
    ]);
}

#[test]
fn copies_and_transpositions_repeat_bit_for_bit() {
    repeat(&[
        ("transpose", |device, x| contents(&device.transpose(x.floats.view(..301 * 331)?, (301, 331))?)),
        ("permute", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            contents(&device.transform(x.floats.view(..all)?.nd(&SHAPE)?.permute(&[2, 0, 1])?)?)
        }),
        ("permute of every other row", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            let rows = x.floats.view(..all)?.nd(&SHAPE)?.step(1, 2)?;
            contents(&device.transform(rows.permute(&[1, 2, 0])?)?)
        }),
        ("copy", |device, x| {
            let mut copy = device.zeroed::<f32>(N - 3)?;
            device.copy(x.floats.view(3..)?, &mut copy)?;
            contents(&copy)
        }),
    ]);
}

#[test]
fn generated_numbers_repeat_bit_for_bit() {
    repeat(&[
        ("fill", |device, _| {
            let mut x = device.zeroed::<[u8; 3]>(FEW)?;
            x.view_mut(1..FEW - 1)?.fill([1, 2, 3])?;
            contents(&x)
        }),
        ("iota", |device, _| contents(&device.iota(N, 7u32, 1)?)),
        ("iota of integers by a step", |device, _| contents(&device.iota(FEW, 7i64, -3)?)),
        ("iota of floats", |device, _| {
            let [start, step] = [-0.7, 0.3].map(oclprim::f16::from_f32);
            contents(&device.iota(FEW, start, step)?)
        }),
        ("random bits", |device, _| contents(&device.random::<u64>(FEW, Philox::new(7))?)),
        ("random floats", |device, _| contents(&device.random::<f32>(FEW, Philox::new(7).stream(1))?)),
        ("random integers in a range", |device, _| {
            contents(&device.random(FEW, Philox::new(7).skip(5).within(3u32..1000))?)
        }),
        ("random floats in a range", |device, _| contents(&device.random(FEW, Philox::new(7).within(-0.5f32..0.3))?)),
    ]);
}

#[test]
fn scans_repeat_bit_for_bit() {
    repeat(&[
        ("inclusive", |device, x| contents(&device.scan(&x.floats, Sum)?)),
        ("exclusive", |device, x| contents(&device.scan(&x.numbers, Sum.exclusive())?)),
        ("reversed", |device, x| contents(&device.scan(&x.floats, Sum.exclusive().starting(0.5).reversed())?)),
        ("in place", |device, x| {
            let mut data = device.upload(&x.floats.view(..FEW)?.to_vec()?)?;
            device.scan_in_place(&mut data, Sum)?;
            contents(&data)
        }),
        ("in a wider type", |device, x| contents(&device.scan(x.halves.cast::<f32>(), Sum)?)),
        ("of lengths", |device, x| contents(&device.offsets_of::<u32, u64>(&x.numbers)?)),
        ("by an operator", |device, x| contents(&device.scan(&x.floats, &sum_of_floats())?)),
        ("by key", |device, x| {
            let (keys, values) = (&x.sorted[0], x.floats.view(..SOME)?);
            contents(&device.scan(values.by_key(keys), Sum)?)
        }),
        ("of segments", |device, x| contents(&device.scan(x.floats.segments(&x.offsets), Sum)?)),
        ("by flags", |device, x| {
            contents(&device.scan(x.floats.view(..FEW)?.flagged(&x.flags), Sum.exclusive().starting(0.5f32))?)
        }),
        ("along the last axis", |device, x| {
            let rows = x.floats.view(..7 * 13_001)?;
            contents(&device.scan(rows.nd(&[7, 13_001])?.along(1), Sum)?)
        }),
        ("along the first axis", |device, x| {
            let rows = x.floats.view(..13_001 * 7)?;
            contents(&device.scan(rows.nd(&[13_001, 7])?.along(0), Sum)?)
        }),
        ("of a function", |device, x| {
            let squares = Map::new(|x: f32| x * x, "x * x");
            contents(&device.scan(x.floats.map(&squares), Sum)?)
        }),
        ("in segments", |device, x| contents(&device.scan(x.floats.segments(&x.offsets), Sum)?)),
    ]);
}

#[test]
fn sorts_repeat_bit_for_bit() {
    repeat(&[
        ("sort", |device, x| contents(&device.sort(x.floats.view(..SOME)?, Order::descending())?)),
        ("sort with values", |device, x| {
            both(device.sort(x.floats.view(..SOME)?.with(x.numbers.view(..SOME)?), Order::ascending())?)
        }),
        ("indices of a sort", |device, x| {
            contents(&device.argsort::<_, u32, _>(x.numbers.view(..SOME)?, Order::ascending())?)
        }),
        ("sort of segments", |device, x| contents(&device.sort(x.floats.segments(&x.offsets), Order::descending())?)),
        ("sort of segments with values", |device, x| {
            both(device.sort(x.numbers.segments(&x.offsets).with(&x.floats), Order::ascending())?)
        }),
        ("sort in place", |device, x| {
            let mut keys = device.upload(&x.numbers.view(..SOME)?.to_vec()?)?;
            device.sort_in_place(&mut keys, Order::ascending())?;
            contents(&keys)
        }),
        ("merge sort", |device, x| contents(&device.sort(x.numbers.view(..SOME)?, Merging(Order::ascending()))?)),
        ("merge sort with values", |device, x| {
            let (keys, values) = (x.numbers.view(..SOME)?, x.floats.view(..SOME)?);
            both(device.sort(keys.with(values), Merging(Order::ascending()))?)
        }),
    ]);
}

#[test]
fn merges_sets_and_searches_repeat_bit_for_bit() {
    repeat(&[
        ("merge", |device, x| contents(&device.merge(&x.sorted[0], &x.sorted[1], Order::ascending())?)),
        ("merge with values", |device, x| {
            let [a, b] = &x.sorted;
            let values = (x.floats.view(..a.len())?, x.others.view(..b.len())?);
            both(device.merge(a.with(values.0), b.with(values.1), Order::ascending())?)
        }),
        ("set operations", |device, x| {
            let [a, b] = &x.sorted;
            let of = |op| contents(&device.set_operation(a, b, op, Order::ascending())?);
            Ok(SetOp::ALL.into_iter().map(of).collect::<Result<Vec<_>>>()?.concat())
        }),
        ("searches", |device, x| {
            let ([a, b], order) = (&x.sorted, Order::ascending());
            both((
                device.search::<_, u32, _>(a, b, Bound::Lower, &order)?,
                device.search::<_, u64, _>(a, b, Bound::Upper, &order)?,
            ))
        }),
        ("first unsorted", |device, x| {
            let order = Order::ascending();
            let found = [device.first_unsorted(&x.floats, &order)?, device.first_unsorted(&x.sorted[0], &order)?];
            Ok(bytes(&found.map(|place| place.map_or(u64::MAX, |place| place as u64))))
        }),
    ]);
}

#[test]
fn top_k_and_quantiles_repeat_bit_for_bit() {
    repeat(&[
        ("largest", |device, x| contents(&device.top_k(&x.floats, Top::largest(1000))?)),
        ("smallest, sorted", |device, x| contents(&device.top_k(&x.numbers, Top::smallest(1000).sorted())?)),
        ("largest, with indices", |device, x| both(device.top_k(x.numbers.indexed::<u32>(), Top::largest(777))?)),
        ("smallest, with values", |device, x| {
            both(device.top_k(x.numbers.with(&x.floats), Top::smallest(777).sorted())?)
        }),
        ("largest of rows", |device, x| {
            both(device.top_k(x.floats.view(..7 * 13_001)?.indexed::<u64>(), Top::largest(9).in_rows(13_001))?)
        }),
        ("key of a rank", |device, x| Ok(bytes(&[device.nth_element(&x.floats, N / 3)?]))),
        ("quantiles of lines", |device, x| {
            let lines = x.floats.view(..7 * 13_001)?.nd(&[7, 13_001])?;
            contents(&device.quantile(lines.along(1), &[0.01, 0.5, 0.77], Interpolation::Linear)?)
        }),
        ("quantiles", |device, x| Ok(bytes(&device.quantile(&x.floats, &[0.01, 0.5, 0.77], Interpolation::Linear)?))),
    ]);
}

#[test]
fn selections_repeat_bit_for_bit() {
    repeat(&[
        ("select", |device, x| contents(&device.select(&x.floats, &above_a_quarter())?)),
        ("select indices", |device, x| contents(&device.select_indices::<_, u32, _>(&x.floats, &above_a_quarter())?)),
        ("select by flags", |device, x| contents(&device.select(x.floats.view(..FEW)?.flagged(&x.flags), NonZero)?)),
        ("partition", |device, x| contents(&device.partition(x.floats.view(..FEW)?, &above_a_quarter())?.0)),
        ("partition in three", |device, x| {
            let below = Map::new(|x: f32| x < -0.25, "x < -0.25f");
            let (parted, counts) = device.partition(x.floats.view(..FEW)?, (&below, &above_a_quarter()))?;
            Ok([contents(&parted)?, bytes(&counts.map(|count| count as u64))].concat())
        }),
        ("adjacent differences", |device, x| contents(&device.adjacent_difference(&x.floats, Difference)?)),
    ]);
}

#[test]
fn runs_of_equal_elements_repeat_bit_for_bit() {
    repeat(&[
        ("unique", |device, x| contents(&device.unique(&x.sorted[0])?)),
        ("unique by key", |device, x| both(device.unique(x.floats.view(..SOME)?.by_key(&x.sorted[0]))?)),
        ("run-length encode", |device, x| both(device.run_length_encode::<_, u32>(&x.numbers)?)),
        ("non-trivial runs", |device, x| both(device.non_trivial_runs::<_, u32>(&x.numbers)?)),
        ("sum by key", |device, x| both(device.reduce(x.floats.view(..SOME)?.by_key(&x.sorted[0]), Sum)?)),
        ("statistics by key", |device, x| both(device.statistics(x.floats.view(..SOME)?.by_key(&x.sorted[0]))?)),
        ("by key by an operator", |device, x| {
            both(device.reduce(x.floats.view(..SOME)?.by_key(&x.sorted[0]), &sum_of_floats())?)
        }),
    ]);
}

#[test]
fn gathers_reversals_and_in_place_moves_repeat_bit_for_bit() {
    repeat(&[
        ("transpose in place", |device, x| {
            let mut data = device.upload(&x.floats.view(..301 * 331)?.to_vec()?)?;
            device.transpose_in_place(&mut data, 301, 331)?;
            contents(&data)
        }),
        ("transpose with a cast", |device, x| {
            contents(&device.transpose(x.floats.view(..301 * 331)?.cast::<i8>().times(constant(100)), (301, 331))?)
        }),
        ("transpose of many", |device, x| {
            contents(&device.transpose(x.floats.view(..9 * 31 * 67)?, &Matrices::new(31, 67).count(9))?)
        }),
        ("gather", |device, x| contents(&device.gather(&x.floats, &x.numbers)?)),
        ("scatter", |device, x| contents(&device.scatter(x.floats.view(..FEW)?, &x.order, FEW)?)),
        ("reverse", |device, x| contents(&device.transform(x.floats.reversed())?)),
        ("reverse in place", |device, x| {
            let mut data = device.upload(&x.floats.view(..FEW)?.to_vec()?)?;
            device.reverse_in_place(&mut data)?;
            contents(&data)
        }),
        ("copy within", |device, x| {
            let mut data = device.upload(&x.floats.view(..FEW)?.to_vec()?)?;
            data.copy_within(5..FEW - 2, 0)?;
            contents(&data)
        }),
        ("copy of ranges", |device, x| {
            let mut copy = device.zeroed::<f32>(N)?;
            device.copy(x.floats.ranges(&[(7..30_000, 3), (60_001..99_000, 41_456)]), &mut copy)?;
            contents(&copy)
        }),
        ("copy of every other plane", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            let mut copy = device.zeroed::<f32>(21 * 47 * 51)?;
            device.copy(x.floats.view(..all)?.nd(&SHAPE)?.step(0, 2)?, copy.nd_mut(&[21, 47, 51])?)?;
            contents(&copy)
        }),
    ]);
}
