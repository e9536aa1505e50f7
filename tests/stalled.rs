//! Dropped and delayed publishes: later tiles recompute the missing aggregates and give the same results.

mod common;

use oclprim::internals::scan::{Scan, in_scan};
use std::sync::OnceLock;

use bytemuck::Pod;
use common::gpu;
use oclprim::Source as _;
use oclprim::{
    Buffer, Device, Element, Order, Result,
    internals::data::Data,
    internals::tuning::Stall,
    op::{Map, NonZero, Sum, UnstableTail},
};

/// A scan has tiles of 32 KiB. `N` elements of 4 bytes have three tile groups. `MANY` elements of 8 bytes have more
/// than 32.
const N: usize = 66 * 8192 + 5;
const MANY: usize = 1060 * 4096 + 5;
/// Tiles of a sort or a selection of 4-byte elements. A publish has one of eight delays, and 40 tiles have all of them.
const SOME: usize = 41 * 4096 + 5;

/// The inputs before they are uploaded.
struct Source {
    floats: Vec<f32>,
    numbers: Vec<u32>,
    longs: Vec<i64>,
    flags: Vec<u8>,
    offsets: Vec<u32>,
    keys: Vec<u16>,
    runs: Vec<u32>,
    float_runs: Vec<f32>,
    bytes: Vec<u8>,
}

struct Inputs {
    floats: Buffer<f32>,
    numbers: Buffer<u32>,
    longs: Buffer<i64>,
    /// Segment-head flags of `floats`: some segments lie within a tile, others span several tiles.
    flags: Buffer<u8>,
    offsets: Buffer<u32>,
    keys: Buffer<u16>,
    /// Runs of 3 equal elements.
    runs: Buffer<u32>,
    float_runs: Buffer<f32>,
    bytes: Buffer<u8>,
}

impl Source {
    fn new() -> Self {
        let starts: Vec<usize> = (0..MANY).step_by(100_003).map(|i| i + 5).chain([100, 3_000_117]).collect();
        let mut flags = vec![0; N];
        starts.iter().filter(|&&i| i < N).for_each(|&i| flags[i] = 1);
        let mut offsets: Vec<u32> = starts.iter().filter(|&&i| i < N).map(|&i| i as u32).collect();
        offsets.sort_unstable();
        let mut sorted = starts;
        sorted.sort_unstable();
        let ends = sorted.iter().copied().chain([MANY]);
        let mut keys = Vec::with_capacity(MANY);
        ends.zip(0..).for_each(|(end, key)| keys.resize(end.min(MANY), key));
        // To repeat few elements is faster than to generate many. No two tiles are equal, because 4099 is a prime number.
        let few: Vec<i64> = Data::Random.generate(4099, 3);
        let mut longs = few.repeat(MANY.div_ceil(few.len()));
        longs.truncate(MANY);
        let runs: Vec<u8> = (0..150).map(|i| i / 3).collect();
        let mut bytes = runs.repeat(N.div_ceil(runs.len()));
        bytes.truncate(N);
        Self {
            floats: Data::Random.generate(N, 1),
            numbers: Data::Bits.generate(SOME, 2),
            longs,
            flags,
            offsets,
            keys,
            runs: bytes.iter().map(|&x| x.into()).collect(),
            float_runs: bytes.iter().map(|&x| x.into()).collect(),
            bytes,
        }
    }
}

impl Inputs {
    fn new(device: &Device) -> Result<Self> {
        static SOURCE: OnceLock<Source> = OnceLock::new();
        let source = SOURCE.get_or_init(Source::new);
        Ok(Self {
            floats: device.upload(&source.floats)?,
            numbers: device.upload(&source.numbers)?,
            longs: device.upload(&source.longs)?,
            flags: device.upload(&source.flags)?,
            offsets: device.upload(&source.offsets)?,
            keys: device.upload(&source.keys)?,
            runs: device.upload(&source.runs)?,
            float_runs: device.upload(&source.float_runs)?,
            bytes: device.upload(&source.bytes)?,
        })
    }
}

/// The name of an operation, and a function that returns its whole result as bytes.
type Form = (&'static str, fn(&Device, &Inputs) -> Result<Vec<u8>>);

fn contents<T: Pod>(buffer: Buffer<T>) -> Result<Vec<u8>> {
    Ok(bytemuck::cast_slice(&buffer.to_vec()?).to_vec())
}

/// The bytes of both outputs.
fn both<T: Pod, U: Pod>((a, b): (Buffer<T>, Buffer<U>)) -> Result<Vec<u8>> {
    Ok([contents(a)?, contents(b)?].concat())
}

fn in_place<T: Element>(device: &Device, x: &Buffer<T>, kind: Scan<T>) -> Result<Vec<u8>> {
    let mut sums = device.zeroed(x.len())?;
    device.copy(x, &mut sums)?;
    device.scan_in_place(&mut sums, in_scan(Sum, kind))?;
    contents(sums)
}

fn up() -> Scan<f32> {
    Scan::inclusive()
}

fn down() -> Scan<f32> {
    Scan::exclusive(0.5).reversed()
}

fn positive() -> Map<fn(f32) -> bool> {
    Map::new(|x| x > 0.0, "x > 0")
}

fn large() -> Map<fn(f32) -> bool> {
    Map::new(|x| x > 100.0, "x > 100")
}

const SORTS: &[Form] = &[
    ("sort", |device, x| contents(device.sort(&x.numbers, Order::ascending())?)),
    ("sort pairs", |device, x| both(device.sort(x.numbers.with(x.longs.view(..SOME)?), Order::descending())?)),
    ("argsort", |device, x| contents(device.argsort::<_, u32, _>(x.floats.view(..SOME)?, Order::ascending())?)),
];

const OTHERS: &[Form] = &[
    ("scan", |device, x| contents(device.scan(&x.floats, in_scan(Sum, up()))?)),
    ("scan of many tiles", |device, x| contents(device.scan(&x.longs, Sum)?)),
    ("scan reversed", |device, x| contents(device.scan(&x.floats, in_scan(Sum, down()))?)),
    ("scan in place", |device, x| in_place(device, &x.floats, up())),
    ("scan in place, of many tiles", |device, x| in_place(device, &x.longs, Scan::inclusive())),
    ("scan in place, reversed", |device, x| in_place(device, &x.floats, down())),
    ("scan by key", |device, x| contents(device.scan(x.floats.by_key(x.keys.view(..N)?), in_scan(Sum, up()))?)),
    ("scan by key, of many tiles", |device, x| contents(device.scan(x.longs.by_key(&x.keys), Sum)?)),
    ("scan by key, reversed", |device, x| {
        contents(device.scan(x.floats.by_key(x.keys.view(..N)?), in_scan(Sum, down()))?)
    }),
    ("scan by flags", |device, x| contents(device.scan(x.floats.flagged(&x.flags), in_scan(Sum, up()))?)),
    ("scan in segments", |device, x| contents(device.scan(x.floats.segments(&x.offsets), in_scan(Sum, up()))?)),
    ("select", |device, x| contents(device.select(x.floats.view(..SOME)?, &positive())?)),
    ("select flagged", |device, x| {
        contents(device.select(x.longs.view(..SOME)?.flagged(x.bytes.view(..SOME)?), NonZero)?)
    }),
    ("partition", |device, x| contents(device.partition(x.floats.view(..SOME)?, &positive())?.0)),
    ("partition reversed", |device, x| {
        contents(device.partition(x.floats.view(..SOME)?, UnstableTail(&positive()))?.0)
    }),
    ("partition in three", |device, x| contents(device.partition(x.floats.view(..SOME)?, (&large(), &positive()))?.0)),
    #[cfg(feature = "macros")]
    ("partition in three by captured limits", |device, x| {
        let (low, high) = (0.0f32, 100.0f32);
        let below = oclprim::map!(move |x: f32| x < low, low: f32);
        let above = oclprim::map!(move |x: f32| x > high, high: f32);
        contents(device.partition(x.floats.view(..SOME)?, (below, above))?.0)
    }),
    ("partition flagged", |device, x| {
        contents(device.partition(x.floats.view(..SOME)?.flagged(x.bytes.view(..SOME)?), NonZero)?.0)
    }),
    ("unique", |device, x| contents(device.unique(x.float_runs.view(..SOME)?)?)),
    ("unique by key", |device, x| both(device.unique(x.numbers.by_key(x.runs.view(..SOME)?))?)),
    ("run-length encode", |device, x| both(device.run_length_encode::<_, u32>(&x.bytes)?)),
    ("non-trivial runs", |device, x| both(device.non_trivial_runs::<_, u32>(x.runs.view(..SOME)?)?)),
    ("sum by key", |device, x| both(device.reduce(x.floats.by_key(&x.runs), Sum)?)),
    ("sum of i64 by key", |device, x| both(device.reduce(x.longs.view(..N)?.by_key(&x.bytes), Sum)?)),
    ("sum of bytes by key", |device, x| both(device.reduce(x.bytes.by_key(&x.float_runs), Sum)?)),
];

fn forms() -> impl Iterator<Item = &'static Form> {
    SORTS.iter().chain(OTHERS)
}

/// The results of the CPU, which both tests share.
fn wanted() -> &'static [Vec<u8>] {
    static WANTED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    WANTED.get_or_init(|| {
        let cpu = Device::cpu();
        let inputs = Inputs::new(&cpu).unwrap();
        forms().map(|(_, form)| form(&cpu, &inputs).unwrap()).collect()
    })
}

fn stall(stall: Stall) {
    let wanted = wanted();
    let mut wrong = Vec::new();
    for (name, device) in common::opencl_devices_or_skip("stalled") {
        if !device.capabilities().unwrap().is_some_and(|caps| caps.looks_back()) {
            common::skip(&name, "no look-back");
            continue;
        }
        let device = device.with_tuning(gpu().stall(stall)).unwrap();
        let wide = device.with_tuning(gpu().stall(stall).wide_offsets()).unwrap();
        let inputs = Inputs::new(&device).unwrap();
        // With 64-bit offsets, sorts also use other status words.
        let wide = SORTS.iter().map(|form| (&wide, "wide ", form)).zip(wanted);
        for ((device, kind, (form, call)), want) in forms().map(|form| (&device, "", form)).zip(wanted).chain(wide) {
            match call(device, &inputs) {
                Ok(got) if got == *want => {}
                Ok(_) => wrong.push(format!("{name}: {kind}{form}")),
                Err(error) => wrong.push(format!("{name}: {kind}{form}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{stall:?}:\n{}", wrong.join("\n"));
}

#[test]
fn dropped_publishes_do_not_change_results() {
    stall(Stall::Silent);
}

#[test]
fn delayed_publishes_do_not_change_results() {
    stall(Stall::Late);
}
