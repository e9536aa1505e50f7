//! Structs as elements: scans and reductions by a user's operator, and maps that take and return them.
#![cfg(feature = "macros")]

mod common;

use std::fmt::Debug;

use bytemuck::{Pod, Zeroable};
use common::{a_form_of_each_kernel, runs_kernels_at_once, tiny, with_geometries};
use oclprim::{
    Buffer, Complex, Device, ErrorKind, Order, SharedType, Source,
    internals::data::Rng,
    map,
    op::{Combinable, Condition, Everywhere, Max, NonZero, Operator, Sum, Unordered, UnstableTail, Usage, complex_sum},
    operator,
    source::{KeyedOutput, Testable, zip},
};

/// A struct with an operator that is associative for all bits, but not commutative.
trait Tried: Pod + Combinable + PartialEq + Debug {
    fn op() -> Operator<Self, impl Fn(Self, Self) -> Self + Copy + Sync>;
}

/// Structs of affine functions, `x -> scale * x + shift`. The operator applies the first function, then the second.
macro_rules! affine {
    ($($name:ident $then:ident $ty:ty, $($last:ident)?;)*) => { $(
        #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
        #[repr(C)]
        struct $name {
            scale: $ty,
            shift: $ty,
            $($last: $ty,)?
        }

        #[operator(identity = $name { scale: 1, shift: 0, $($last: 0)? })]
        fn $then(a: $name, b: $name) -> $name {
            $name {
                scale: a.scale * b.scale,
                shift: a.shift * b.scale + b.shift,
                $($last: if b.$last == 0 { a.$last } else { b.$last },)?
            }
        }

        impl Tried for $name {
            fn op() -> Operator<Self, impl Fn(Self, Self) -> Self + Copy + Sync> {
                $then()
            }
        }
    )* };
}

affine! {
    Bytes2 then_2 u8,;
    Bytes3 then_3 u8, last;
    Bytes4 then_4 u16,;
    Bytes6 then_6 u16, last;
    Bytes8 then_8 u32,;
    Bytes12 then_12 u32, last;
    Bytes16 then_16 u64,;
    Bytes24 then_24 u64, last;
}

/// Two affine functions, in arrays.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Bytes32 {
    scale: [u64; 2],
    shift: [u64; 2],
}

#[operator(identity = Bytes32 { scale: [1; 2], shift: [0; 2] })]
fn then_32(a: Bytes32, b: Bytes32) -> Bytes32 {
    let mut both = b;
    for k in 0..2usize {
        both.scale[k] = a.scale[k] * b.scale[k];
        both.shift[k] = a.shift[k] * b.scale[k] + b.shift[k];
    }
    both
}

impl Tried for Bytes32 {
    fn op() -> Operator<Self, impl Fn(Self, Self) -> Self + Copy + Sync> {
        then_32()
    }
}

/// A struct of structs, of the maximum size that an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Bytes64 {
    pair: Bytes32,
    last: [u32; 8],
}

#[operator(identity = Bytes64 { pair: Bytes32 { scale: [1; 2], shift: [0; 2] }, last: [0; 8] })]
fn then_64(a: Bytes64, b: Bytes64) -> Bytes64 {
    let mut both = b;
    for k in 0..2usize {
        both.pair.scale[k] = a.pair.scale[k] * b.pair.scale[k];
        both.pair.shift[k] = a.pair.shift[k] * b.pair.scale[k] + b.pair.shift[k];
    }
    for k in 0..8usize {
        both.last[k] = a.last[k] ^ b.last[k];
    }
    both
}

impl Tried for Bytes64 {
    fn op() -> Operator<Self, impl Fn(Self, Self) -> Self + Copy + Sync> {
        then_64()
    }
}

fn values<T: Pod>(n: usize, seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let mut all = vec![T::zeroed(); n];
    bytemuck::cast_slice_mut::<T, u8>(&mut all).iter_mut().for_each(|byte| *byte = rng.next() as u8);
    all
}

/// Sizes around those of lanes, tiles and tile groups.
fn sizes(device: &Device, bytes: usize) -> Vec<usize> {
    let tile = if bytes <= 16 {
        2048
    } else if bytes <= 32 {
        1024
    } else {
        512
    };
    if !runs_kernels_at_once(device) {
        vec![0, 13, tile + 9]
    } else if tiny() {
        vec![0, 1, tile, 2 * tile + 9]
    } else {
        vec![0, 1, 7, 8, 9, tile - 1, tile, tile + 1, 3 * tile + 77, 33 * tile + 5]
    }
}

/// The scan of a group by definition: exclusive from `start` on if there is one, else inclusive.
fn scanned<T: Tried>(
    values: impl Iterator<Item = T>,
    op: &Operator<T, impl Fn(T, T) -> T>,
    start: Option<T>,
) -> Vec<T> {
    let mut acc = start.unwrap_or(op.identity);
    let step = |x| {
        let before = acc;
        acc = (op.combine)(acc, x);
        if start.is_some() { before } else { acc }
    };
    values.map(step).collect()
}

fn reversed<T>(mut values: Vec<T>) -> Vec<T> {
    values.reverse();
    values
}

fn scans_equal_a_loop<T: Tried>(name: &str, device: &Device) {
    let op = T::op();
    for n in sizes(device, size_of::<T>()) {
        let (all, start) = (values::<T>(n + 1, n as u64), values::<T>(1, 7)[0]);
        let (on_device, x) = (device.upload(&all).unwrap(), &all[1..]);
        let input = || on_device.view(1..).unwrap();
        let name = format!("{name}: {n} of {} bytes", size_of::<T>());
        let found = device.scan(input(), &op).unwrap().to_vec().unwrap();
        assert!(found == scanned(x.iter().copied(), &op, None), "{name}, inclusive");
        let found = device.scan(input(), op.exclusive().reversed().starting(start)).unwrap().to_vec().unwrap();
        let want = reversed(scanned(x.iter().rev().copied(), &op, Some(start)));
        assert!(found == want, "{name}, exclusive, reversed");
        if a_form_of_each_kernel() {
            continue;
        }
        // One more result, between guards.
        let guard = values::<T>(1, 8)[0];
        let mut out = device.filled(n + 3, guard).unwrap();
        device.scan_into(input(), op.exclusive().starting(start), out.view_mut(1..n + 2).unwrap()).unwrap();
        let want = scanned(x.iter().copied().chain([op.identity]), &op, Some(start));
        assert!(out.to_vec().unwrap() == [&[guard][..], &want, &[guard]].concat(), "{name}, with the total");
        let mut out = vec![guard; n + 1];
        device.scan_into(x, op.exclusive().reversed(), &mut out).unwrap();
        let want = reversed(scanned(x.iter().rev().copied().chain([op.identity]), &op, Some(op.identity)));
        assert!(out == want, "{name}, reversed with the total");
        let found = device.scan(input().reversed(), &op).unwrap().to_vec().unwrap();
        assert!(found == scanned(x.iter().rev().copied(), &op, None), "{name}, of an expression");
    }
}

/// Calls a function for each struct; if [`tiny`], only for `Bytes12`.
macro_rules! for_each_struct {
    ($function:ident($($argument:expr),*)) => {
        $function::<Bytes12>($($argument),*);
        if !tiny() {
            $function::<Bytes2>($($argument),*);
            $function::<Bytes3>($($argument),*);
            $function::<Bytes4>($($argument),*);
            $function::<Bytes6>($($argument),*);
            $function::<Bytes8>($($argument),*);
            $function::<Bytes16>($($argument),*);
            $function::<Bytes24>($($argument),*);
            $function::<Bytes32>($($argument),*);
            $function::<Bytes64>($($argument),*);
        }
    };
}

#[test]
fn scans_of_structs_equal_a_loop() {
    for (name, device) in with_geometries() {
        for_each_struct!(scans_equal_a_loop(&name, &device));
    }
}

/// Keys of runs of 1 to 40 elements, mostly short, and one long run.
fn keys(n: usize) -> Vec<u32> {
    let mut rng = Rng::new(n as u64);
    let (mut keys, mut key) = (Vec::new(), 0u32);
    while keys.len() < n {
        let len = if key == 5 { 5000 } else { 1 + rng.next() as usize % 40 };
        keys.resize((keys.len() + len).min(n), key);
        key += 1;
    }
    keys
}

/// The elements of each run of equal keys.
fn runs_of<'x, T>(x: &'x [T], keys: &[u32]) -> Vec<&'x [T]> {
    let mut rest = x;
    keys.chunk_by(|a, b| a == b).map(|run| rest.split_off(..run.len()).unwrap()).collect()
}

fn groups_equal_a_loop<T: Tried>(name: &str, device: &Device) {
    let op = T::op();
    for n in sizes(device, size_of::<T>()) {
        let (x, keys) = (values::<T>(n, n as u64), keys(n));
        let runs = runs_of(&x, &keys);
        let mut offsets = vec![0u32];
        runs.iter().for_each(|run| offsets.push(offsets[offsets.len() - 1] + run.len() as u32));
        let flags: Vec<u8> = (0..n).map(|i| u8::from(i > 0 && keys[i] != keys[i - 1]) * 7).collect();
        let name = format!("{name}: {n} of {} bytes", size_of::<T>());
        let want: Vec<T> = runs.iter().flat_map(|run| scanned(run.iter().copied(), &op, None)).collect();
        let start = values::<T>(1, 7)[0];
        let backwards = |run: &&[T]| reversed(scanned(run.iter().rev().copied(), &op, Some(start)));
        let want_reversed: Vec<T> = runs.iter().flat_map(backwards).collect();
        let usage = op.exclusive().reversed().starting(start);
        let on_device = device.upload(&x).unwrap();
        let all = |buffer: oclprim::Result<Buffer<T>>| buffer.unwrap().to_vec().unwrap();
        assert!(all(device.scan(on_device.segments(&offsets), &op)) == want, "{name}, segments");
        assert!(all(device.scan(on_device.by_key(&keys), usage)) == want_reversed, "{name}, by key, reversed");
        assert!(all(device.scan(on_device.flagged(&flags), &op)) == want, "{name}, flagged");
        if !a_form_of_each_kernel() {
            assert!(
                all(device.scan(on_device.segments(&offsets), usage)) == want_reversed,
                "{name}, segments, reversed"
            );
            assert!(all(device.scan(on_device.by_key(&keys), &op)) == want, "{name}, by key");
            assert!(all(device.scan(on_device.flagged(&flags), usage)) == want_reversed, "{name}, flagged, reversed");
        }

        let total = |run: &&[T]| run.iter().fold(op.identity, |acc, &x| (op.combine)(acc, x));
        let want: Vec<T> = runs.iter().map(total).collect();
        let want_keys: Vec<u32> = keys.chunk_by(|a, b| a == b).map(|run| run[0]).collect();
        let (found_keys, found) = device.reduce(on_device.by_key(&keys), &op).unwrap();
        assert!((found_keys.to_vec().unwrap(), all(Ok(found))) == (want_keys.clone(), want.clone()), "{name}, by key");
        // Elements before the first offset and after the last one belong to no segment, and one segment is empty.
        if want.len() > 3 {
            let some = [&offsets[1..3], &offsets[2..offsets.len() - 1]].concat();
            let found = all(device.reduce(on_device.segments(&some), &op));
            let inner = &want[1..want.len() - 1];
            assert!(found == [&inner[..1], &[op.identity], &inner[1..]].concat(), "{name}, sums of segments");
        } else {
            assert!(all(device.reduce(on_device.segments(&offsets), &op)) == want, "{name}, sums of segments");
        }
    }
}

fn lines_equal_a_loop<T: Tried>(name: &str, device: &Device) {
    let op = T::op();
    let (rows, len, depth) = (7, if tiny() { 30 } else { 700 }, 3);
    let x = values::<T>(rows * len * depth, 1);
    let on_device = device.upload(&x).unwrap();
    let view = on_device.nd(&[rows, len, depth]).unwrap();
    let line = |row: usize, k: usize| (0..len).map(|i| x[(row * len + i) * depth + k]).collect::<Vec<T>>();
    let mut want = x.clone();
    for (row, k) in (0..rows * depth).map(|i| (i / depth, i % depth)) {
        for (i, value) in scanned(line(row, k).into_iter(), &op, None).into_iter().enumerate() {
            want[(row * len + i) * depth + k] = value;
        }
    }
    let name = format!("{name}: {} bytes", size_of::<T>());
    assert!(device.scan(view.along(1), &op).unwrap().to_vec().unwrap() == want, "{name}, scan of columns");
    let last: Vec<T> = (0..rows).flat_map(|row| want[((row + 1) * len - 1) * depth..][..depth].to_vec()).collect();
    assert!(device.reduce(view.along(1), &op).unwrap().to_vec().unwrap() == last, "{name}, columns");
    let total = |part: &[T]| part.iter().fold(op.identity, |acc, &x| (op.combine)(acc, x));
    let want: Vec<T> = x.chunks(len * depth).map(total).collect();
    let mut out = vec![op.identity; rows];
    device.reduce_into(view.along([1, 2]), &op, &mut out).unwrap();
    assert!(out == want, "{name}, rows");
    let flat = on_device.nd(&[rows, len * depth]).unwrap();
    let want: Vec<T> = x.chunks(len * depth).flat_map(|part| scanned(part.iter().copied(), &op, None)).collect();
    assert!(device.scan(flat.along(1), &op).unwrap().to_vec().unwrap() == want, "{name}, scan of rows");
    // The lines along the first axis and the last one, in row-major order of these two.
    let mut want = x.clone();
    for i in 0..len {
        let at = |k: usize| (k / depth * len + i) * depth + k % depth;
        let line = scanned((0..rows * depth).map(|k| x[at(k)]), &op, None);
        line.into_iter().enumerate().for_each(|(k, value)| want[at(k)] = value);
    }
    assert!(device.scan(view.along([2, 0]), &op).unwrap().to_vec().unwrap() == want, "{name}, scan along two axes");
    let empty = on_device.view(..0).unwrap().nd(&[4, 0]).unwrap();
    assert!(device.reduce(empty.along(1), &op).unwrap().to_vec().unwrap() == [op.identity; 4], "{name}, empty lines");
    assert!(device.reduce(empty.along(0), &op).unwrap().is_empty(), "{name}, no lines");
    assert!(device.scan(empty.along(1), &op).unwrap().is_empty(), "{name}, scan of empty lines");
}

#[test]
fn lines_of_structs_equal_a_loop() {
    for (name, device) in with_geometries() {
        lines_equal_a_loop::<Bytes12>(&name, &device);
        if !tiny() {
            lines_equal_a_loop::<Bytes3>(&name, &device);
            lines_equal_a_loop::<Bytes64>(&name, &device);
        }
    }
}

#[test]
fn groups_of_structs_equal_a_loop() {
    for (name, device) in with_geometries() {
        for_each_struct!(groups_equal_a_loop(&name, &device));
    }
}

#[test]
fn outputs_of_runs_of_structs_may_be_short() {
    let (x, keys) = (values::<Bytes12>(100, 1), keys(100));
    for (name, device) in common::devices() {
        let (all_keys, all) = device.reduce(x.by_key(&keys), &then_12()).unwrap();
        let (all_keys, all) = (all_keys.to_vec().unwrap(), all.to_vec().unwrap());
        let (mut keys_out, mut out) = (device.zeroed::<u32>(2).unwrap(), device.zeroed::<Bytes12>(2).unwrap());
        let mut count = device.zeroed::<u64>(1).unwrap();
        let to = KeyedOutput::from((&mut keys_out, &mut out, &mut count));
        device.reduce_into(x.by_key(&keys), &then_12(), to).unwrap();
        assert_eq!(count.to_vec().unwrap(), [all.len() as u64], "{name}");
        assert_eq!(
            (keys_out.to_vec().unwrap(), out.to_vec().unwrap()),
            (all_keys[..2].to_vec(), all[..2].to_vec()),
            "{name}"
        );
        let error = device.reduce_into(x.by_key(&keys[1..]), &then_12(), (&mut keys_out, &mut out, &mut count));
        assert_eq!(error.unwrap_err().to_string(), "99 keys need as many values, got 100", "{name}");
        let error = device.scan(&x, then_12().exact()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Moment {
    weight: f32,
    place: [f32; 2],
}

/// Float additions round, so the results depend on their order.
#[operator(identity = Moment { weight: -0.0, place: [-0.0; 2] }, test = false)]
fn both(a: Moment, b: Moment) -> Moment {
    Moment { weight: a.weight + b.weight, place: [a.place[0] + b.place[0], a.place[1] + b.place[1]] }
}

fn moments(n: usize) -> Vec<Moment> {
    let mut rng = Rng::new(3);
    let mut number = || (rng.next() >> 40) as f32 / 1000.0 - 8000.0;
    (0..n).map(|_| Moment { weight: number(), place: [number(), number()] }).collect()
}

#[test]
fn operators_that_round_have_the_same_bits_on_every_device() {
    for (name, device) in with_geometries() {
        let n = if runs_kernels_at_once(&device) { 70_003 } else { 2100 };
        let (x, keys) = (moments(n), keys(n));
        let cpu = Device::cpu();
        let bits = |found: Buffer<Moment>| bytemuck::cast_slice::<_, u32>(&found.to_vec().unwrap()).to_vec();
        let run = |device: &Device| {
            let whole = device.scan(&x, both().reversed()).unwrap();
            let parts = device.scan(x.by_key(&keys), &both()).unwrap();
            [bits(whole), bits(parts), bits(device.reduce(x.by_key(&keys), &both()).unwrap().1)]
        };
        assert!(run(&device) == run(&cpu), "{name}");
    }
}

/// A struct whose text in OpenCL C is given with the operator.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Span {
    from: i32,
    to: i32,
}
impl Combinable for Span {}

#[test]
fn structs_in_text_and_complex_numbers_are_scanned() {
    let hull = Operator::of_struct(
        "hull",
        "Span",
        "typedef struct { int from, to; } Span;",
        Span { from: i32::MAX, to: i32::MIN },
        |a: Span, b: Span| Span { from: a.from.min(b.from), to: a.to.max(b.to) },
        "(Span){ min(a.from, b.from), max(a.to, b.to) }",
    );
    let spans = [Span { from: 3, to: 5 }, Span { from: -1, to: 2 }, Span { from: 0, to: 9 }];
    let numbers: Vec<_> = (0..3000).map(|i| Complex::new((i % 5) as f32, (i % 3) as f32)).collect();
    let mut sum = Complex::new(0.0, 0.0);
    let sums = |x: &Complex<f32>| {
        sum += x;
        sum
    };
    let want: Vec<_> = numbers.iter().map(sums).collect();
    for (name, device) in common::devices() {
        let hulls = device.scan(&spans, &hull).unwrap().to_vec().unwrap();
        assert_eq!(hulls, [spans[0], Span { from: -1, to: 5 }, Span { from: -1, to: 9 }], "{name}");
        let hulls = device.reduce(spans.segments(&[1u32, 1, 3]), &hull).unwrap().to_vec().unwrap();
        assert_eq!(hulls, [hull.identity, Span { from: -1, to: 9 }], "{name}");
        assert!(device.scan(&numbers, &complex_sum()).unwrap().to_vec().unwrap() == want, "{name}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Particle {
    place: [f32; 2],
    charge: i32,
    cell: u16,
    kind: u16,
}

fn particles(n: usize) -> Vec<Particle> {
    let mut rng = Rng::new(5);
    let particle = |_| {
        let x = rng.next();
        Particle {
            place: [(x % 1000) as f32, (x >> 20) as u16 as f32],
            charge: (x >> 32) as i32,
            cell: (x >> 60) as u16,
            kind: (x >> 50) as u16,
        }
    };
    (0..n).map(particle).collect()
}

#[test]
fn fields_are_sources_of_every_primitive() {
    for (name, device) in with_geometries() {
        for n in sizes(&device, 16) {
            let x = particles(n);
            let name = format!("{name}: {n}");
            let on_device = device.upload(&x).unwrap();
            let (charge_of, cell_of) = (map!(|p: Particle| p.charge), map!(|p: Particle| p.cell));
            let charge = on_device.map(&charge_of);
            let charges: Vec<i32> = x.iter().map(|p| p.charge).collect();
            assert_eq!(device.transform(charge).unwrap().to_vec().unwrap(), charges, "{name}");
            let sum = charges.iter().fold(0i32, |sum, x| sum.wrapping_add(*x));
            assert_eq!(device.reduce(charge, Sum).unwrap(), sum, "{name}");
            let column = on_device.nd(&[n, 1]).unwrap().map(&charge_of).along(0);
            assert_eq!(device.reduce(column, Sum).unwrap().to_vec().unwrap(), [sum], "{name}, along an axis");
            let cells: Vec<u16> = x.iter().map(|p| p.cell).collect();
            let cell = on_device.map(&cell_of);
            let (found, found_cells) = device.transform(charge.zip(cell)).unwrap();
            assert!(
                found.to_vec().unwrap() == charges && found_cells.to_vec().unwrap() == cells,
                "{name}, two outputs"
            );
            if a_form_of_each_kernel() {
                continue;
            }
            let cpu = Device::cpu();
            let of = |found: oclprim::Result<Buffer<i32>>| found.unwrap().to_vec().unwrap();
            assert!(of(device.scan(charge, Max)) == of(cpu.scan(&charges, Max)), "{name}, scan");
            assert!(
                of(device.sort(charge, Order::ascending())) == of(cpu.sort(&charges, Order::ascending())),
                "{name}"
            );
            let (keys, sums) = device.reduce(charge.by_key(cell), Sum).unwrap();
            let (want_keys, want_sums) = cpu.reduce(charges.by_key(&cells), Sum).unwrap();
            assert!(of(Ok(sums)) == of(Ok(want_sums)), "{name}, by key");
            assert_eq!(keys.to_vec().unwrap(), want_keys.to_vec().unwrap(), "{name}");
            let limit = 1 << 30;
            let large = map!(move |p: Particle| -> u8 { if p.charge > limit { 1 } else { 0 } }, limit: i32);
            let found = device.select(on_device.flagged(on_device.map(large)), NonZero).unwrap();
            let want: Vec<Particle> = x.iter().copied().filter(|p| p.charge > limit).collect();
            assert!(found.to_vec().unwrap() == want, "{name}, select");
            let (keys, found) = device.sort(cell.with(&on_device), Order::ascending()).unwrap();
            let mut want = x.clone();
            want.sort_by_key(|p| p.cell);
            assert!(found.to_vec().unwrap() == want, "{name}, sort with values");
            assert!(keys.to_vec().unwrap() == want.iter().map(|p| p.cell).collect::<Vec<_>>(), "{name}, sort");
        }
    }
}

/// The first struct of each run: by a field, and by a function of two neighbours.
#[test]
fn the_first_struct_of_each_run_is_selected() {
    for (name, device) in common::devices() {
        for n in sizes(&device, 16) {
            // Runs of three structs in the same cell.
            let x: Vec<Particle> =
                particles(n).into_iter().enumerate().map(|(i, p)| Particle { cell: (i / 3) as u16 % 2, ..p }).collect();
            let (on_device, name) = (device.upload(&x).unwrap(), format!("{name}: {n}"));
            let by_cell = on_device.by_key(on_device.map(map!(|p: Particle| p.cell)));
            let (cells, found) = device.unique(by_cell).unwrap();
            let same_run = |a: &Particle, b: &Particle| a.cell == b.cell;
            let want: Vec<_> = x.chunk_by(same_run).map(|run| run[0]).collect();
            assert!(found.to_vec().unwrap() == want, "{name}, by a field");
            assert!(cells.to_vec().unwrap() == want.iter().map(|p| p.cell).collect::<Vec<_>>(), "{name}, keys");
            if n == 0 {
                continue;
            }
            let mut heads = device.filled(n, 1u8).unwrap();
            let starts = map!(|(a, b): (Particle, Particle)| -> u8 { if b.charge < a.charge { 1 } else { 0 } });
            let pairs = on_device.neighbours::<2>();
            device.transform_into(pairs.map(starts), heads.view_mut(1..).unwrap()).unwrap();
            let found = device.select(on_device.flagged(&heads), NonZero).unwrap();
            let want: Vec<_> = x.chunk_by(|a, b| a.charge <= b.charge).map(|run| run[0]).collect();
            assert!(found.to_vec().unwrap() == want, "{name}, by a function");
        }
    }
}

#[test]
fn maps_return_structs() {
    for (name, device) in with_geometries() {
        for n in sizes(&device, 16) {
            let (x, name) = (particles(n), format!("{name}: {n}"));
            let on_device = device.upload(&[particles(1), x.clone()].concat()).unwrap();
            let input = on_device.view(1..).unwrap();
            let weights: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
            // A map of a struct and a number.
            let moment = map!(|(p, w): (Particle, f32)| Moment { weight: w, place: [p.place[0] * w, p.place[1] * w] });
            let want: Vec<Moment> = x
                .iter()
                .zip(&weights)
                .map(|(p, &weight)| Moment { weight, place: p.place.map(|x| x * weight) })
                .collect();
            let moments = input.zip(&weights).map(&moment);
            let mut out = device.filled(n + 2, Moment::zeroed()).unwrap();
            device.transform_into(moments, out.view_mut(1..n + 1).unwrap()).unwrap();
            let out = out.to_vec().unwrap();
            assert!(out[1..n + 1] == want && [out[0], out[n + 1]] == [Moment::zeroed(); 2], "{name}");
            let total = device.reduce(moments, &both()).unwrap();
            assert_eq!(total, Device::cpu().reduce(&want, &both()).unwrap(), "{name}");
            if a_form_of_each_kernel() {
                continue;
            }
            let found = device.scan(moments, &both()).unwrap().to_vec().unwrap();
            assert!(found == Device::cpu().scan(&want, &both()).unwrap().to_vec().unwrap(), "{name}, scan");
            // A map to a struct with captured values, and a map of this struct to a number.
            let (scale, last) = (3u32, 9u32);
            let made = map!(
                move |p: Particle| Bytes12 { scale: scale * p.charge as u32, shift: p.kind as u32, last: last },
                scale: u32, last: u32
            );
            let read = map!(|x: Bytes12| -> u64 { (x.scale as u64) << 32 | (x.shift ^ x.last) as u64 });
            let want: Vec<u64> = x
                .iter()
                .map(|p| u64::from(3u32.wrapping_mul(p.charge as u32)) << 32 | u64::from(u32::from(p.kind) ^ 9))
                .collect();
            assert!(device.transform(input.map(&made).map(&read)).unwrap().to_vec().unwrap() == want, "{name}");
        }
    }
}

/// Structs without `SharedType` are copied.
#[test]
fn expressions_move_structs_of_any_size() {
    fn moved<T: Pod + Send + Sync + PartialEq + Debug>(name: &str, device: &Device) {
        let (x, n) = (values::<T>(999, 1), 999u32);
        let indices: Vec<u32> = (0..n).map(|i| i * 7 % n).collect();
        let on_device = device.upload(&x).unwrap();
        let found = device.transform(on_device.gathered(&indices).reversed()).unwrap().to_vec().unwrap();
        let want: Vec<T> = indices.iter().rev().map(|&i| x[i as usize]).collect();
        assert!(found == want, "{name}: {} bytes", size_of::<T>());
        let found = device.transform(on_device.view(1..).unwrap().strided(3)).unwrap().to_vec().unwrap();
        assert!(found == x[1..].iter().copied().step_by(3).collect::<Vec<_>>(), "{name}: {} bytes", size_of::<T>());
    }
    for (name, device) in with_geometries() {
        moved::<[u8; 3]>(&name, &device);
        if !a_form_of_each_kernel() {
            moved::<[u16; 5]>(&name, &device);
            moved::<[u64; 3]>(&name, &device);
            moved::<[u32; 33]>(&name, &device);
            moved::<Bytes12>(&name, &device);
        }
        let (x, y) = (values::<[u8; 3]>(10, 1), values::<[u8; 3]>(10, 2));
        let error = device.transform(x.gathered(&[10u32])).unwrap_err();
        assert_eq!(error.to_string(), "index 0 is 10, beyond the 10 elements", "{name}");
        let matrix = device.transpose(y.reversed(), (5, 2)).unwrap().to_vec().unwrap();
        assert_eq!(matrix[..3], [y[9], y[7], y[5]], "{name}");
    }
}

#[test]
fn maps_take_zips_and_neighbours_of_structs() {
    let x = particles(3000);
    for (name, device) in common::devices() {
        let on_device = device.upload(&x).unwrap();
        let step = map!(|(a, b): (Particle, Particle)| b.charge - a.charge);
        let found = device.transform(on_device.neighbours::<2>().map(&step)).unwrap().to_vec().unwrap();
        let want: Vec<i32> = x.windows(2).map(|pair| pair[1].charge.wrapping_sub(pair[0].charge)).collect();
        assert!(found == want, "{name}");
        let moments = moments(3000);
        let both = map!(|(p, m, k): (Particle, Moment, u8)| -> f32 { p.place[1] + m.place[0] * k as f32 });
        let counts: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
        let found = device.transform(zip((&on_device, &moments, &counts)).map(&both)).unwrap().to_vec().unwrap();
        let want: Vec<f32> =
            x.iter().zip(&moments).zip(&counts).map(|((p, m), k)| p.place[1] + m.place[0] * f32::from(*k)).collect();
        assert!(found == want, "{name}");
    }
}

fn kept(x: &[Particle], part: impl Fn(&Particle) -> bool) -> Vec<Particle> {
    x.iter().copied().filter(part).collect()
}

#[test]
fn conditions_on_structs_select_as_a_loop_does() {
    for (name, device) in with_geometries() {
        for n in sizes(&device, 16) {
            let (x, name) = (particles(n), format!("{name}: {n}"));
            let on_device = device.upload(&[particles(1), x.clone()].concat()).unwrap();
            let input = on_device.view(1..).unwrap();
            let limit = 1 << 29;
            let large = map!(move |p: Particle| p.charge > limit, limit: i32);
            let even = map!(|p: Particle| p.kind % 2 == 0);
            let is_large = |p: &Particle| p.charge > limit;
            let is_even = |p: &Particle| p.kind.is_multiple_of(2);
            let all = |found: oclprim::Result<Buffer<Particle>>| found.unwrap().to_vec().unwrap();
            let (chosen, others) = (kept(&x, is_large), kept(&x, |p| !is_large(p)));
            let backwards = others.iter().rev().copied().collect::<Vec<_>>();
            let count = chosen.len();

            assert!(all(device.select(input, &large)) == chosen, "{name}, select");
            let (found, length) = device.partition(input, UnstableTail(&large)).unwrap();
            assert!(all(Ok(found)) == [&chosen[..], &backwards].concat() && length == count, "{name}, unstable tail");
            let (found, lengths) = device.partition(input, (&large, &even)).unwrap();
            let (second, third) = (kept(&others, is_even), kept(&others, |p| !is_even(p)));
            let want = [&chosen[..], &second, &third].concat();
            assert!(all(Ok(found)) == want && lengths == [count, second.len()], "{name}, three parts");
            let found = device.select_indices::<_, u32, _>(input, &large).unwrap().to_vec().unwrap();
            let want: Vec<u32> = (0..n as u32).filter(|&i| is_large(&x[i as usize])).collect();
            assert!(found == want, "{name}, indices");
            assert_eq!(device.count(input, &large).unwrap(), count as u64, "{name}");
            if a_form_of_each_kernel() {
                continue;
            }
            assert!(all(device.select(&x, &large)) == chosen, "{name}, select of a slice");
            assert!(all(device.select(input.reversed(), &large)) == reversed(chosen.clone()), "{name}, expression");
            let mut found = all(device.select(input, Unordered(&large)));
            let (key, mut want) = (|p: &Particle| bytemuck::cast::<_, u128>(*p), chosen.clone());
            found.sort_by_key(key);
            want.sort_by_key(key);
            assert!(found == want, "{name}, unordered");
            let (found, length) = device.partition(input, &large).unwrap();
            assert!(all(Ok(found)) == [&chosen[..], &others].concat() && length == count, "{name}, partition");
            assert_eq!(device.any(input, &large).unwrap(), count > 0, "{name}");
            assert_eq!(device.all(input, &large).unwrap(), count == n, "{name}");
            // The output is too short, and lies between guards.
            let (guard, room) = (Particle::zeroed(), count / 2);
            let mut out = device.filled(room + 2, guard).unwrap();
            let mut found = device.zeroed::<u64>(1).unwrap();
            device.select_into(input, &large, out.view_mut(1..room + 1).unwrap(), &mut found).unwrap();
            assert!(out.to_vec().unwrap() == [&[guard], &chosen[..room], &[guard]].concat(), "{name}, short");
            assert_eq!(found.to_vec().unwrap(), [count as u64], "{name}");
        }
    }
}

#[test]
fn conditions_on_structs_read_a_count() {
    for (name, device) in with_geometries() {
        for n in sizes(&device, 16) {
            let (x, large) = (particles(n), map!(|p: Particle| p.charge > 0));
            let (on_device, guard) = (device.upload(&x).unwrap(), Particle::zeroed());
            let counts = device.upload(&[0, 1, n as u64 / 2, n as u64 + 9]).unwrap();
            let most = if a_form_of_each_kernel() { 3..4 } else { 0..4 };
            for at in most {
                let input = || on_device.take(counts.view(at..=at).unwrap());
                let taken = &x[..[0, 1, n / 2, n + 9][at].min(n)];
                let (chosen, others) = (kept(taken, |p| p.charge > 0), kept(taken, |p| p.charge <= 0));
                let name = format!("{name}: {} of {n}", taken.len());
                assert!(device.select(input(), &large).unwrap().to_vec().unwrap() == chosen, "{name}, select");
                assert_eq!(device.count(input(), &large).unwrap(), chosen.len() as u64, "{name}");
                let backwards = others.iter().rev().copied().collect::<Vec<_>>();
                let mut found = device.zeroed::<u64>(1).unwrap();
                for (tail, loose) in [(&others, false), (&backwards, true)] {
                    let mut out = device.filled(n, guard).unwrap();
                    if loose {
                        device.partition_into(input(), UnstableTail(&large), &mut out, &mut found).unwrap();
                    } else {
                        device.partition_into(input(), &large, &mut out, &mut found).unwrap();
                    }
                    let want = [&chosen[..], tail, &vec![guard; n - taken.len()]].concat();
                    assert!(out.to_vec().unwrap() == want, "{name}, partition, {loose}");
                    assert_eq!(found.to_vec().unwrap(), [chosen.len() as u64], "{name}");
                }
                let indices: Buffer<u64> = device.select_indices(input(), &large).unwrap();
                let want = (0..taken.len() as u64).filter(|&i| taken[i as usize].charge > 0);
                assert!(indices.to_vec().unwrap() == want.collect::<Vec<_>>(), "{name}, indices");
                assert_eq!(device.any(input(), &large).unwrap(), !chosen.is_empty(), "{name}");
            }
        }
    }
}

#[test]
fn conditions_on_structs_test_groups() {
    for (name, device) in common::devices() {
        for n in sizes(&device, 16) {
            let (x, keys, large) = (particles(n), keys(n), map!(|p: Particle| p.charge > 0));
            let runs = runs_of(&x, &keys);
            let mut offsets = vec![0u32];
            runs.iter().for_each(|run| offsets.push(offsets[offsets.len() - 1] + run.len() as u32));
            let (on_device, name) = (device.upload(&x).unwrap(), format!("{name}: {n}"));
            let of = |run: &&[Particle]| run.iter().filter(|p| p.charge > 0).count() as u64;
            let counts: Vec<u64> = runs.iter().map(of).collect();
            assert!(
                device.count(on_device.segments(&offsets), &large).unwrap().to_vec().unwrap() == counts,
                "{name}, segments"
            );
            let found = device.count(on_device.by_key(&keys), &large).unwrap().1;
            assert!(found.to_vec().unwrap() == counts, "{name}, by key");
            let found = device.count(on_device.nd(&[n, 1]).unwrap().along(0), &large).unwrap();
            assert_eq!(found.to_vec().unwrap(), [counts.iter().sum::<u64>()], "{name}, along an axis");
            let charges = on_device.nd(&[n, 1]).unwrap().map(map!(|p: Particle| p.charge)).along(0);
            let found = device.count(charges, map!(|charge: i32| charge > 0)).unwrap();
            assert_eq!(found.to_vec().unwrap(), [counts.iter().sum::<u64>()], "{name}, fields along an axis");
            let found = device.any(on_device.segments(&offsets), &large).unwrap().to_vec().unwrap();
            assert!(found == counts.iter().map(|&count| u8::from(count > 0)).collect::<Vec<_>>(), "{name}, any");

            let (found, bounds) = device.select(on_device.segments(&offsets), &large).unwrap();
            assert!(found.to_vec().unwrap() == kept(&x, |p| p.charge > 0), "{name}, select");
            let mut want = vec![0];
            counts.iter().for_each(|count| want.push(want[want.len() - 1] + count));
            assert!(bounds.to_vec().unwrap() == want, "{name}, offsets");
            let (found, lengths) = device.partition(on_device.segments(&offsets), &large).unwrap();
            let parts = |run: &&[Particle]| [kept(run, |p| p.charge > 0), kept(run, |p| p.charge <= 0)].concat();
            assert!(found.to_vec().unwrap() == runs.iter().flat_map(parts).collect::<Vec<_>>(), "{name}, partition");
            assert!(lengths.to_vec().unwrap() == counts, "{name}, lengths");
        }
    }
}

/// Structs whose sizes are multiples of a kernel's unit of copies, and others.
#[test]
fn conditions_select_structs_of_any_size() {
    fn moved<T: Tried + Testable>(name: &str, device: &Device, rule: impl Condition<T, Use = Everywhere>) {
        let n = if runs_kernels_at_once(device) { 70_001 } else { 1100 };
        let x = values::<T>(n, 3);
        let chosen: Vec<T> = x.iter().copied().filter(|&x| rule.part(x) == 0).collect();
        let mut tail: Vec<T> = x.iter().copied().filter(|&x| rule.part(x) != 0).collect();
        tail.reverse();
        let on_device = device.upload(&x).unwrap();
        assert!(device.select(&on_device, &rule).unwrap().to_vec().unwrap() == chosen, "{name}: {}", size_of::<T>());
        let (found, count) = device.partition(&on_device, UnstableTail(&rule)).unwrap();
        assert!(found.to_vec().unwrap() == [&chosen[..], &tail].concat(), "{name}: {}", size_of::<T>());
        assert!(count == chosen.len() && count % n > 0);
    }
    for (name, device) in with_geometries() {
        moved::<Bytes32>(&name, &device, map!(|x: Bytes32| x.scale[1] % 2 == 0));
        if !a_form_of_each_kernel() {
            moved::<Bytes3>(&name, &device, map!(|x: Bytes3| x.last % 2 == 0));
            moved::<Bytes2>(&name, &device, map!(|x: Bytes2| x.scale < 50));
            moved::<Bytes12>(&name, &device, map!(|x: Bytes12| x.shift < 1000000000));
            moved::<Bytes24>(&name, &device, map!(|x: Bytes24| x.shift % 3 == 0));
            moved::<Bytes64>(&name, &device, map!(|x: Bytes64| x.last[7] % 2 == 0));
        }
    }
}

fn counted_scans_equal_those_of_the_shorter_array<T: Tried>(name: &str, device: &Device) {
    let op = T::op();
    for n in sizes(device, size_of::<T>()) {
        let (x, start, guard) = (values::<T>(n, n as u64), values::<T>(1, 7)[0], values::<T>(1, 8)[0]);
        let on_device = device.upload(&x).unwrap();
        let counts = [n / 2, 0, 1, n.saturating_sub(8), n + 5];
        for count in counts.into_iter().take(if runs_kernels_at_once(device) { 5 } else { 1 }) {
            let (counts, m) = (device.upload(&[9, count as u32]).unwrap(), count.min(n));
            let (input, taken) = (on_device.take(counts.view(1..).unwrap()), &x[..m]);
            let name = format!("{name}: {m} of {n}, {} bytes", size_of::<T>());
            let want = scanned(taken.iter().copied(), &op, None);
            assert!(device.scan(input, &op).unwrap().to_vec().unwrap() == want, "{name}, inclusive");
            let mut out = device.filled(n + 2, guard).unwrap();
            device.scan_into(input, &op, out.view_mut(1..n + 1).unwrap()).unwrap();
            let rest = vec![guard; n + 1 - m];
            assert!(out.to_vec().unwrap() == [&[guard], &want[..], &rest].concat(), "{name}, into a view");
            // An exclusive scan into n + 1 elements also writes the total.
            out.fill(guard).unwrap();
            device.scan_into(input, op.exclusive().starting(start), out.view_mut(..n + 1).unwrap()).unwrap();
            let mut want = scanned(taken.iter().copied().chain([op.identity]), &op, Some(start));
            want.resize(n + 2, guard);
            assert!(out.to_vec().unwrap() == want, "{name}, with the total");
            out.fill(guard).unwrap();
            device.scan_into(input, op.reversed(), out.view_mut(..n).unwrap()).unwrap();
            let mut want = reversed(scanned(taken.iter().rev().copied(), &op, None));
            want.resize(n + 2, guard);
            assert!(out.to_vec().unwrap() == want, "{name}, reversed");
        }
    }
}

#[test]
fn scans_of_structs_read_a_count() {
    for (name, device) in with_geometries() {
        for_each_struct!(counted_scans_equal_those_of_the_shorter_array(&name, &device));
    }
}

#[test]
fn structs_are_components_of_a_transform() {
    for (name, device) in with_geometries() {
        for n in sizes(&device, 16) {
            let (x, name) = (particles(n), format!("{name}: {n}"));
            let on_device = device.upload(&[particles(1), x.clone()].concat()).unwrap();
            let input = on_device.view(1..).unwrap();
            let moment = map!(|p: Particle| Moment { weight: p.place[0], place: p.place });
            let charge = map!(|p: Particle| p.charge);
            let moments: Vec<_> = x.iter().map(|p| Moment { weight: p.place[0], place: p.place }).collect();
            let charges: Vec<i32> = x.iter().map(|p| p.charge).collect();
            let (found, numbers, copies) =
                device.transform(zip((input.map(&moment), input.map(&charge), input))).unwrap();
            assert!(found.to_vec().unwrap() == moments, "{name}, structs");
            assert!(numbers.to_vec().unwrap() == charges, "{name}, numbers");
            assert!(copies.to_vec().unwrap() == x, "{name}, copies");
            // A struct without `SharedType`, and outputs between other elements.
            let bytes = values::<[u8; 3]>(n, 4);
            let (mut out, mut to) = (device.filled(n + 2, 7u8).unwrap(), vec![[9u8; 3]; n]);
            let source = bytes.reversed().zip(input.map(map!(|p: Particle| p.kind)).cast::<u8>());
            device.transform_into(source, (&mut to, out.view_mut(1..n + 1).unwrap())).unwrap();
            assert!(to == reversed(bytes), "{name}, bytes");
            let kinds = x.iter().map(|p| p.kind as u8);
            assert!(out.to_vec().unwrap() == [7].into_iter().chain(kinds).chain([7]).collect::<Vec<_>>(), "{name}");
        }
    }
}
