//! What is called the same on every run: each form many times, with the CPU's answer to the bit each time.

#![cfg(feature = "checks")]

mod common;

use bytemuck::Pod;
use oclprim::{
    Accumulate, Bins, Buffer, Device, ErrorKind, Matrices, Order, Result, Scan, Scratch, StatisticsRecord,
    check::data::Data,
    f16,
    op::{And, Map, Max, Min, Operator, Or, Product, Scale, Sum, Xor},
};

const RUNS: usize = 100;

/// Enough for more work-groups than a reduction has on two cores.
const N: usize = 100_003;
/// Enough for several tiles of a reduction; a prime.
const FEW: usize = 40_009;
/// A shape for what moves elements or has axes.
const SHAPE: [usize; 3] = [41, 47, 51];

struct Inputs {
    floats: Buffer<f32>,
    others: Buffer<f32>,
    numbers: Buffer<u32>,
    pixels: Buffer<u8>,
    offsets: Buffer<u64>,
    /// Places in another order.
    order: Buffer<u32>,
    /// Near 1.
    factors: Buffer<f32>,
    /// Of few bits set, and of few not set.
    bits: [Buffer<i32>; 2],
    halves: Buffer<f16>,
    doubles: Buffer<f64>,
    parts: Buffer<u32>,
}

impl Inputs {
    fn new(device: &Device) -> Result<Self> {
        let offsets: Vec<u64> = (0..=60).map(|i| i * i * N as u64 / 3600).collect();
        let random: Vec<f32> = Data::Random.generate(FEW, 5);
        let bits: Vec<i32> = (0..FEW).map(|i| i32::from(i % 9_973 == 77) << (i % 31)).collect();
        Ok(Self {
            floats: device.upload(&Data::Random.generate(N, 1))?,
            others: device.upload(&Data::Random.generate(N, 2))?,
            numbers: device.upload(&Data::Random.generate::<u32>(N, 3).iter().map(|x| x % 300).collect::<Vec<_>>())?,
            pixels: device.upload(&Data::Random.generate(N / 3 * 3, 4))?,
            offsets: device.upload(&offsets)?,
            order: device.upload(&(0..FEW as u32).map(|i| i * 7919 % FEW as u32).collect::<Vec<_>>())?,
            factors: device.upload(&random.iter().map(|x| 1.0 + x / 1024.0).collect::<Vec<_>>())?,
            bits: [device.upload(&bits)?, device.upload(&bits.iter().map(|x| !x).collect::<Vec<_>>())?],
            halves: device.upload(&Data::Random.generate(FEW, 6))?,
            doubles: device.upload(&Data::Random.generate(FEW, 7))?,
            parts: device.upload(&[0, 9, 9, 20_000, FEW as u32])?,
        })
    }
}

/// A form, and its whole answer.
type Form = (&'static str, fn(&Device, &Inputs) -> Result<Vec<u8>>);

fn bytes<T: Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn contents<T: Pod>(buffer: &Buffer<T>) -> Result<Vec<u8>> {
    Ok(bytes(&buffer.to_vec()?))
}

fn repeat(forms: &[Form]) {
    let cpu = Device::cpu();
    let inputs = Inputs::new(&cpu).unwrap();
    let wanted: Vec<_> = forms.iter().map(|(_, form)| form(&cpu, &inputs).unwrap()).collect();
    // Where there is time, also with work-groups of many items.
    let gpus = if common::tiny() { Vec::new() } else { common::tuned(&[("a GPU", common::gpu())]) };
    for (name, device) in if gpus.is_empty() { common::devices() } else { gpus } {
        // An interpreter has time for few.
        let runs = if common::runs_kernels_at_once(&device) { RUNS } else { 2 };
        let inputs = Inputs::new(&device).unwrap();
        for ((form, run), want) in forms.iter().zip(&wanted) {
            for i in 0..runs {
                let got = match run(&device, &inputs) {
                    Err(error) if error.kind() == ErrorKind::Unsupported => {
                        common::skip(&format!("{name}: {form}"), &error.to_string());
                        break;
                    }
                    got => got.unwrap_or_else(|error| panic!("{name}: {form}: {error}")),
                };
                // As a whole: byte by byte takes long without optimisation.
                let equal = got == *want;
                let place = || got.iter().zip(want).position(|(a, b)| a != b);
                assert!(equal, "{name}: {form}: run {i} gave {} bytes, other from {:?} on", got.len(), place());
            }
        }
    }
}

#[test]
fn reductions() {
    repeat(&[
        ("sum", |device, x| Ok(bytes(&[device.reduce(&x.floats, Sum)?]))),
        ("sum of integers", |device, x| Ok(bytes(&[device.reduce(&x.numbers, Sum)?]))),
        ("dot", |device, x| Ok(bytes(&[device.dot::<f32, f32>(&x.floats, &x.others)?]))),
        ("sum of a function", |device, x| {
            let squares = Map::new(|x: f32| x * x, "x * x");
            Ok(bytes(&[device.map_reduce(&x.floats, &squares, Sum)?]))
        }),
        ("sum by an operator", |device, x| {
            let sum = Operator::new("sum", -0.0f32, |a, b| a + b, "a + b");
            Ok(bytes(&[device.reduce_by(&x.floats, &sum)?]))
        }),
    ]);
}

#[test]
fn operators() {
    repeat(&[
        ("product", |device, x| Ok(bytes(&[device.reduce(&x.factors, Product)?]))),
        ("min and max", |device, x| Ok(bytes(&[device.reduce(&x.factors, Min)?, device.reduce(&x.factors, Max)?]))),
        ("and, or, xor", |device, x| {
            let [few, most] = &x.bits;
            Ok(bytes(&[device.reduce(most, And)?, device.reduce(few, Or)?, device.reduce(most, Xor)?]))
        }),
        ("sums in wider types", |device, x| {
            let (bits, halves): (i64, f32) = (device.reduce_as(&x.bits[1], Sum)?, device.reduce_as(&x.halves, Sum)?);
            Ok([bytes(&[bits]), bytes(&[halves])].concat())
        }),
        ("sum of f16", |device, x| Ok(bytes(&[device.reduce(&x.halves, Sum)?]))),
        ("sum of f64", |device, x| Ok(bytes(&[device.reduce(&x.doubles, Sum)?]))),
    ]);
}

#[test]
fn results_of_parts() {
    repeat(&[
        ("max of segments", |device, x| contents(&device.reduce_segments(x.pixels.view(..FEW)?, &x.parts, Max)?)),
        ("max along the last axis", |device, x| {
            contents(&device.reduce_axis(x.pixels.view(..3 * 700)?.nd(&[3, 700])?, 1, Max)?)
        }),
        ("sum of segments", |device, x| contents(&device.reduce_segments(&x.floats, &x.offsets, Sum)?)),
        ("sum along the last axis", |device, x| {
            contents(&device.reduce_axis(x.floats.view(..7 * 13_001)?.nd(&[7, 13_001])?, 1, Sum)?)
        }),
        ("sum along the first axis", |device, x| {
            contents(&device.reduce_axis(x.floats.view(..13_001 * 7)?.nd(&[13_001, 7])?, 0, Sum)?)
        }),
    ]);
}

#[test]
fn figures() {
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
            device.min_max_into(&x.floats, &mut values, &mut places, &mut Scratch::new())?;
            Ok([contents(&values)?, contents(&places)?].concat())
        }),
        ("min-max along the last axis", |device, x| {
            let ends = device.min_max_axis(x.floats.view(..7 * 13_001)?.nd(&[7, 13_001])?, 1)?;
            Ok([contents(&ends.values)?, contents(&ends.indices)?].concat())
        }),
        ("arg-max along the first axis", |device, x| {
            let most = device.arg_max_axis(x.floats.view(..13_001 * 7)?.nd(&[13_001, 7])?, 0)?;
            Ok([contents(&most.values)?, contents(&most.indices)?].concat())
        }),
        ("moments along the last axis", |device, x| {
            contents(&device.moments_axis(x.floats.view(..3 * 30_001)?.nd(&[3, 30_001])?, 1)?)
        }),
        ("moments along the first axis", |device, x| {
            contents(&device.moments_axis(x.floats.view(..13_001 * 7)?.nd(&[13_001, 7])?, 0)?)
        }),
        ("statistics", |device, x| {
            let mut record = device.zeroed::<StatisticsRecord<f32>>(1)?;
            device.statistics_into(&x.floats, &mut record, &mut Scratch::new())?;
            contents(&record)
        }),
        ("count", |device, x| Ok(bytes(&[device.count(&x.numbers)? as u64]))),
        ("count of one, any and all", |device, x| {
            let (any, all) = (device.any(&x.numbers)?, device.all(&x.numbers)?);
            Ok([bytes(&[device.count_of(&x.numbers, 7)? as u64]), vec![any.into(), all.into()]].concat())
        }),
    ]);
}

#[test]
fn histograms() {
    fn counted<T: oclprim::Element>(device: &Device, x: &Buffer<T>, bins: &Bins<T>) -> Result<Vec<u8>> {
        let (mut counts, mut outside) = (vec![0u64; bins.len()], [0u64; 3]);
        device.histogram_into(x, bins, &mut counts, &mut outside, Accumulate::Overwrite, &mut Scratch::new())?;
        Ok([bytes(&counts), bytes(&outside)].concat())
    }
    repeat(&[
        ("histogram of numbers", |device, x| counted(device, &x.numbers, &Bins::ids(256)?)),
        ("histogram of floats", |device, x| counted(device, &x.floats, &Bins::even(-0.7, 0.9, 37)?)),
        ("histogram by edges", |device, x| counted(device, &x.floats, &Bins::edges(&[-0.9, -0.1, 0.0, 0.3, 0.8])?)),
        ("histogram of a function", |device, x| {
            let found = device.map_histogram(
                x.floats.view(..FEW)?,
                &Map::new(|x: f32| x * x, "x * x"),
                &Bins::even(0.0f32, 0.9, 37)?,
            )?;
            Ok([bytes(&found.counts), bytes(&[found.outside.below, found.outside.above, found.outside.nan])].concat())
        }),
        ("histogram of channels", |device, x| {
            let bins = vec![Bins::even(0u8, 250, 10)?; 3];
            let found = device.histogram_channels(&x.pixels, 3, &bins)?;
            let each = |found: &oclprim::Histogram| {
                let outside = [found.outside.below, found.outside.above, found.outside.nan];
                [bytes(&found.counts), bytes(&outside)].concat()
            };
            Ok(found.iter().flat_map(each).collect())
        }),
    ]);
}

#[test]
fn histograms_of_weights() {
    repeat(&[
        ("float weights", |device, x| {
            let found = device.histogram_weighted(&x.floats, &x.others, &Bins::even(-0.7, 0.9, 37)?)?;
            Ok([bytes(&found.sums), bytes(&[found.below, found.above, found.nan])].concat())
        }),
        ("integer weights", |device, x| {
            let found = device.histogram_weighted(&x.numbers, &x.numbers, &Bins::ids(256)?)?;
            Ok([bytes(&found.sums), bytes(&[found.below, found.above, found.nan])].concat())
        }),
    ]);
}

#[test]
fn moves() {
    repeat(&[
        ("transpose", |device, x| contents(&device.transpose(x.floats.view(..301 * 331)?, 301, 331)?)),
        ("permute", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            contents(&device.permute(x.floats.view(..all)?.nd(&SHAPE)?, &[2, 0, 1])?)
        }),
        ("permute of every other row", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            let rows = x.floats.view(..all)?.nd(&SHAPE)?.step(1, 2)?;
            contents(&device.permute(rows, &[1, 2, 0])?)
        }),
        ("copy", |device, x| {
            let mut copy = device.zeroed::<f32>(N - 3)?;
            device.copy(x.floats.view(3..)?, &mut copy)?;
            contents(&copy)
        }),
    ]);
}

#[test]
fn numbers() {
    repeat(&[
        ("iota", |device, _| contents(&device.iota(N, 7u32)?)),
        ("iota of floats", |device, _| {
            let [start, step] = [-0.7, 0.3].map(oclprim::f16::from_f32);
            contents(&device.iota_by(FEW, start, step)?)
        }),
        ("scan", |device, x| contents(&device.inclusive_scan(&x.floats, Sum)?)),
        ("scan in segments", |device, x| {
            contents(&device.scan_segments(&x.floats, &x.offsets, Sum, Scan::<f32>::inclusive())?)
        }),
    ]);
}

#[test]
fn sorts() {
    repeat(&[("sort with values", |device, x| {
        let (keys, values) =
            device.sort_pairs(x.floats.view(..20_011)?, x.numbers.view(..20_011)?, Order::ascending())?;
        Ok([contents(&keys)?, contents(&values)?].concat())
    })]);
}

#[test]
fn selections() {
    repeat(&[
        ("select", |device, x| contents(&device.select(&x.floats, &Map::new(|x: f32| x > 0.25, "x > 0.25f"))?)),
        ("partition", |device, x| {
            contents(&device.partition(x.floats.view(..FEW)?, &Map::new(|x: f32| x > 0.25, "x > 0.25f"))?.0)
        }),
        ("run-length encode", |device, x| {
            let (values, lengths) = device.run_length_encode::<_, u32>(&x.numbers)?;
            Ok([contents(&values)?, contents(&lengths)?].concat())
        }),
        ("sum by key", |device, x| {
            let keys = device.sort(x.numbers.view(..FEW)?, Order::ascending())?;
            let (_, sums) = device.reduce_by_key(&keys, x.floats.view(..FEW)?, Sum)?;
            contents(&sums)
        }),
    ]);
}

#[test]
fn moves_of_more_kinds() {
    repeat(&[
        ("transpose in place", |device, x| {
            let mut data = device.upload(&x.floats.view(..301 * 331)?.to_vec()?)?;
            device.transpose_in_place(&mut data, 301, 331, &mut Scratch::new())?;
            contents(&data)
        }),
        ("transpose with a cast", |device, x| {
            contents(&device.transpose_map::<f32, i8>(x.floats.view(..301 * 331)?, 301, 331, &Scale(100))?)
        }),
        ("transpose of many", |device, x| {
            contents(&device.transpose_batch(x.floats.view(..9 * 31 * 67)?, &Matrices::new(31, 67).count(9))?)
        }),
        ("gather", |device, x| contents(&device.gather(&x.floats, &x.numbers)?)),
        ("scatter", |device, x| contents(&device.scatter(x.floats.view(..FEW)?, &x.order, FEW)?)),
        ("reverse", |device, x| contents(&device.reverse(&x.floats)?)),
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
            device.copy_ranges(&x.floats, &mut copy, &[(7..30_000, 3), (60_001..99_000, 41_456)])?;
            contents(&copy)
        }),
        ("copy of every other plane", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            let mut copy = device.zeroed::<f32>(21 * 47 * 51)?;
            device.copy_nd(x.floats.view(..all)?.nd(&SHAPE)?.step(0, 2)?, copy.nd_mut(&[21, 47, 51])?)?;
            contents(&copy)
        }),
    ]);
}
