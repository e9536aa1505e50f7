//! Functions that are written once, in Rust, and run on devices: each construct of the subset gives the same bits there.
#![cfg(feature = "macros")]

use bytemuck::{Pod, Zeroable};
use oclprim::{Device, device, map, op::Sum, operator, order};

#[operator(identity = 0.0)]
fn larger_magnitude(a: f32, b: f32) -> f32 {
    if a.abs() > b.abs() { a } else { b }
}

#[operator(identity = 0)]
fn sum_of_bytes(a: u8, b: u8) -> u8 {
    let sum = a + b;
    sum
}

#[operator(identity = 0)]
fn every_integer_operation(a: i32, b: i32) -> i32 {
    let mut x = a * b - (a / b) + a % b;
    x ^= a << b;
    x += (b >> a) & !a | -b;
    x -= a.rotate_left(b as u32).swap_bytes();
    x = x.min(b).max(a.saturating_sub(b)) + x.abs() + a.signum() * 3;
    x += a.count_ones() as i32 + b.leading_zeros() as i32 + a.trailing_zeros() as i32;
    x ^ a.abs_diff(b) as i32 ^ b.unsigned_abs() as i32
}

#[operator(identity = 0)]
fn narrow_integers(a: i8, b: i8) -> i8 {
    let x = (a * b) / 3 - (b >> 1) + a.rotate_right(3) + a.saturating_add(b);
    let y = x as u16 * 700;
    (y >> 3) as i8 ^ a.clamp(-5, 9)
}

#[operator(identity = 0)]
fn long_integers(a: u64, b: u64) -> u64 {
    let mut x = a * 0x9e37_79b9_7f4a_7c15 + b;
    for i in 0..5u32 {
        x ^= x >> (i * 7 + 3);
        if x % 3 == 0 {
            continue;
        }
        x += b.rotate_left(i) / (a | 1);
    }
    x
}

#[operator(identity = 0)]
fn greatest_divisor(a: u32, b: u32) -> u32 {
    let mut x = a;
    let mut y = b;
    while y != 0 {
        let rest = x % y;
        x = y;
        y = rest;
    }
    x
}

#[operator(identity = 0.0)]
fn every_float_operation(a: f32, b: f32) -> f32 {
    let mut x = a * b + a / b - (a % b);
    x = x.min(b).max(-a);
    if x.is_nan() || !b.is_finite() {
        x = a.copysign(b).floor() + b.trunc();
    }
    let root = if b.is_sign_negative() { 1.5 } else { b.sqrt() };
    let y = match a.to_bits() & 3 {
        0 => root,
        1 | 2 => x.clamp(-10.0, 10.0).round_ties_even(),
        _ => x.signum() * f32::EPSILON,
    };
    a.mul_add(0.1, y) + f32::from_bits(b.to_bits() ^ 1)
}

#[operator(identity = 0.0)]
fn doubles(a: f64, b: f64) -> f64 {
    let scaled = a * 0.1 + b / 3.0;
    let whole = scaled as i64 as f64 + (b as u8) as f64;
    if whole > f64::MAX { f64::INFINITY } else { whole.mul_add(2.5, scaled.sqrt()) }
}

#[operator(identity = 0)]
fn casts(a: u32, b: u32) -> u32 {
    let x = f32::from_bits(a);
    let small = x as i8 as i16 as u32;
    let long = x as i64 as u32 ^ x as u64 as u32 ^ x as i32 as u32 ^ x as u16 as u32;
    small ^ long ^ (b as f32).to_bits() ^ ((a as i32) as f32).to_bits() ^ (x > 0.5) as u32
}

/// Neighbouring extremes of one series.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Device)]
#[repr(C)]
struct Extremes {
    least: f32,
    most: f32,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Device)]
#[repr(C)]
struct Cell {
    extremes: Extremes,
    kinds: [u16; 4],
    int: i64,
}

/// A function that other functions call.
#[device]
fn spread(x: Extremes) -> f32 {
    x.most - x.least
}

#[device]
fn joined(a: Extremes, b: Extremes) -> Extremes {
    Extremes { least: a.least.min(b.least), most: a.most.max(b.most), count: a.count + b.count }
}

#[operator(identity = Extremes { least: f32::INFINITY, most: f32::NEG_INFINITY, count: 0 })]
fn extremes(a: Extremes, b: Extremes) -> Extremes {
    joined(a, b)
}

#[operator(identity = Cell::zeroed())]
fn cells(a: Cell, b: Cell) -> Cell {
    let mut sum = a;
    sum.extremes = joined(a.extremes, b.extremes);
    for i in 0..4usize {
        sum.kinds[i] += b.kinds[i];
    }
    sum.int = if spread(a.extremes) < spread(b.extremes) { b.int - 1 } else { a.int * 2 };
    sum
}

#[order]
fn by_least_then_count(a: Extremes, b: Extremes) -> bool {
    let x = a.least.to_bits();
    let y = b.least.to_bits();
    x < y || (x == y && a.count < b.count)
}

#[test]
fn operators_are_those_of_hand_written_text() {
    for info in Device::list().into_iter().enumerate().map(|(index, _)| index) {
        let device = Device::at(info).unwrap();
        assert_eq!(device.reduce_by(&[1.0f32, -7.5, 3.0], &larger_magnitude()).unwrap(), -7.5);
        assert_eq!(device.reduce_by(&[12u32, 18, 30], &greatest_divisor()).unwrap(), 6);
        let one = |x: f32| Extremes { least: x, most: x, count: 1 };
        let all: Vec<Extremes> = [3.0, -1.0, 2.5].map(one).to_vec();
        let found = device.reduce_by(&all, &extremes()).unwrap();
        assert_eq!(found, Extremes { least: -1.0, most: 3.0, count: 3 });
        let sorted = device.merge_sort(&all, &by_least_then_count()).unwrap().to_vec().unwrap();
        assert_eq!(sorted.iter().map(|x| x.least).collect::<Vec<_>>(), [2.5, 3.0, -1.0]);
    }
}

#[test]
fn maps_are_applied_as_elements_are_loaded() {
    let square = map!(|x: f32| x * x);
    let above = map!(|x: f32| -> u64 { if x > 1.5 { 1 } else { 0 } });
    for (index, _) in Device::list().iter().enumerate() {
        let device = Device::at(index).unwrap();
        let x = device.upload(&[1.0f32, 2.0, 3.0]).unwrap();
        assert_eq!(device.map_reduce(&x, &square, Sum).unwrap(), 14.0);
        assert_eq!(device.map_reduce(&x, &above, Sum).unwrap(), 2);
    }
}

#[test]
fn arithmetic_wraps_and_has_no_undefined_results() {
    let op = every_integer_operation();
    let combine = |a, b| Device::cpu().reduce_by(&[a, b], &op).unwrap();
    assert_eq!(combine(i32::MIN, -1), combine(i32::MIN, -1));
    let sums = sum_of_bytes();
    assert_eq!(Device::cpu().reduce_by(&[200u8, 100], &sums).unwrap(), 44);
}
