//! What is called the same on every run: each form many times, with the CPU's answer to the bit each time.

mod common;

use bytemuck::Pod;
use oclprim::{
    Accumulate, Bins, Buffer, Device, Order, Result, Scratch, StatisticsRecord,
    check::data::Data,
    op::{Map, Operator, Scale, Sum},
};

const RUNS: usize = 100;

/// Enough for more work-groups than a reduction has on two cores.
const N: usize = 300_007;
/// A shape for what moves elements or has axes.
const SHAPE: [usize; 3] = [61, 67, 73];

struct Inputs {
    floats: Buffer<f32>,
    others: Buffer<f32>,
    numbers: Buffer<u32>,
    pixels: Buffer<u8>,
    offsets: Buffer<u64>,
}

impl Inputs {
    fn new(device: &Device) -> Result<Self> {
        let offsets: Vec<u64> = (0..=60).map(|i| i * i * N as u64 / 3600).collect();
        Ok(Self {
            floats: device.upload(&Data::Random.generate(N, 1))?,
            others: device.upload(&Data::Random.generate(N, 2))?,
            numbers: device.upload(&Data::Random.generate::<u32>(N, 3).iter().map(|x| x % 300).collect::<Vec<_>>())?,
            pixels: device.upload(&Data::Random.generate(N / 3 * 3, 4))?,
            offsets: device.upload(&offsets)?,
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
                let got = run(&device, &inputs).unwrap_or_else(|error| panic!("{name}: {form}: {error}"));
                let differs = got.iter().zip(want).position(|(a, b)| a != b);
                assert!(got.len() == want.len(), "{name}: {form}: {} bytes, not {}", got.len(), want.len());
                assert_eq!(differs, None, "{name}: {form} differs in run {i} from this byte on");
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
fn sums_of_parts() {
    repeat(&[
        ("sum of segments", |device, x| contents(&device.reduce_segments(&x.floats, &x.offsets, Sum)?)),
        ("sum along the last axis", |device, x| {
            contents(&device.reduce_axis(x.floats.view(..7 * 40_001)?.nd(&[7, 40_001])?, 1, Sum)?)
        }),
        ("sum along the first axis", |device, x| {
            contents(&device.reduce_axis(x.floats.view(..40_001 * 7)?.nd(&[40_001, 7])?, 0, Sum)?)
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
        ("min-max", |device, x| {
            let (mut values, mut places) = (device.zeroed::<f32>(2)?, device.zeroed(2)?);
            device.min_max_into(&x.floats, &mut values, &mut places, &mut Scratch::new())?;
            Ok([contents(&values)?, contents(&places)?].concat())
        }),
        ("min-max along the last axis", |device, x| {
            let ends = device.min_max_axis(x.floats.view(..7 * 40_001)?.nd(&[7, 40_001])?, 1)?;
            Ok([contents(&ends.values)?, contents(&ends.indices)?].concat())
        }),
        ("arg-max along the first axis", |device, x| {
            let most = device.arg_max_axis(x.floats.view(..40_001 * 7)?.nd(&[40_001, 7])?, 0)?;
            Ok([contents(&most.values)?, contents(&most.indices)?].concat())
        }),
        ("moments along the last axis", |device, x| {
            contents(&device.moments_axis(x.floats.view(..3 * 80_001)?.nd(&[3, 80_001])?, 1)?)
        }),
        ("moments along the first axis", |device, x| {
            contents(&device.moments_axis(x.floats.view(..40_001 * 7)?.nd(&[40_001, 7])?, 0)?)
        }),
        ("statistics", |device, x| {
            let mut record = device.zeroed::<StatisticsRecord<f32>>(1)?;
            device.statistics_into(&x.floats, &mut record, &mut Scratch::new())?;
            contents(&record)
        }),
        ("count", |device, x| Ok(bytes(&[device.count(&x.numbers)? as u64]))),
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
        ("transpose", |device, x| contents(&device.transpose(x.floats.view(..401 * 701)?, 401, 701)?)),
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
        ("iota", |device, _| contents(&device.iota(N, 7u32)?)),
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
fn moves_of_more_kinds() {
    repeat(&[
        ("transpose in place", |device, x| {
            let mut data = device.upload(&x.floats.view(..401 * 701)?.to_vec()?)?;
            device.transpose_in_place(&mut data, 401, 701, &mut Scratch::new())?;
            contents(&data)
        }),
        ("transpose with a cast", |device, x| {
            contents(&device.transpose_map::<f32, i8>(x.floats.view(..401 * 701)?, 401, 701, &Scale(100))?)
        }),
        ("gather", |device, x| contents(&device.gather(&x.floats, &x.numbers)?)),
        ("reverse", |device, x| contents(&device.reverse(&x.floats)?)),
        ("copy of ranges", |device, x| {
            let mut copy = device.zeroed::<f32>(N)?;
            device.copy_ranges(&x.floats, &mut copy, &[(7..100_000, 3), (200_001..300_000, 123_456)])?;
            contents(&copy)
        }),
        ("copy of every other plane", |device, x| {
            let all = SHAPE.iter().product::<usize>();
            let mut copy = device.zeroed::<f32>(31 * 67 * 73)?;
            device.copy_nd(x.floats.view(..all)?.nd(&SHAPE)?.step(0, 2)?, copy.nd_mut(&[31, 67, 73])?)?;
            contents(&copy)
        }),
    ]);
}
