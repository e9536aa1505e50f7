//! Functions that are written once, in Rust, and run on devices: each construct of the subset gives the same bits there.
#![cfg(feature = "macros")]

mod common;

use bytemuck::{Pod, Zeroable};
use oclprim::{Device, SharedType, Source, device, map, op::Sum, operator, order};

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

/// For some small `a`, Intel's `fmod(a, -a)` returns `a` instead of 0.
#[operator(identity = 0.0)]
fn remainder_of_equal_magnitudes(a: f32, b: f32) -> f32 {
    a % -a + b % b
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

/// The extremes of some numbers, and how many these are.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
#[repr(C)]
struct Extremes {
    least: f32,
    most: f32,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
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
fn operators_equal_hand_written_ones() {
    for (index, _) in Device::list().iter().enumerate() {
        let device = Device::at(index).unwrap();
        assert_eq!(device.reduce(&[1.0f32, -7.5, 3.0], &larger_magnitude()).unwrap(), -7.5);
        assert_eq!(device.reduce(&[12u32, 18, 30], &greatest_divisor()).unwrap(), 6);
        let one = |x: f32| Extremes { least: x, most: x, count: 1 };
        let all: Vec<Extremes> = [3.0, -1.0, 2.5].map(one).to_vec();
        let found = device.reduce(&all, &extremes()).unwrap();
        assert_eq!(found, Extremes { least: -1.0, most: 3.0, count: 3 });
        let sorted = device.sort(&all, &by_least_then_count()).unwrap().to_vec().unwrap();
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
        assert_eq!(device.reduce(x.map(&square), Sum).unwrap(), 14.0);
        assert_eq!(device.reduce(x.map(&above), Sum).unwrap(), 2);
    }
}

#[test]
fn arithmetic_wraps_and_has_no_undefined_results() {
    #[device]
    fn quotient(a: i32, b: i32) -> i32 {
        a / b + a % b
    }
    #[device]
    fn shifted(a: u8, b: u8) -> u8 {
        (a << b) + 200
    }
    #[device]
    fn lesser(a: f32, b: f32) -> f32 {
        a.min(b)
    }
    assert_eq!([quotient(i32::MIN, -1), quotient(7, 0), quotient(-7, 2)], [i32::MIN, 7, -4]);
    assert_eq!(shifted(3, 13), 40);
    assert_eq!([lesser(f32::NAN, 1.0), lesser(1.0, f32::NAN), lesser(2.0, 1.0)], [1.0; 3]);
    assert!(lesser(0.0, -0.0).is_sign_negative());
}

mod doubled {
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable, oclprim::SharedType)]
    #[repr(C)]
    pub(crate) struct Pair {
        pub(crate) a: u32,
        pub(crate) b: u32,
    }

    #[oclprim::device]
    pub(crate) fn scale(x: u32) -> u32 {
        x * 2
    }
}

mod tripled {
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable, oclprim::SharedType)]
    #[repr(C)]
    pub(crate) struct Pair {
        pub(crate) b: u32,
        pub(crate) a: u32,
    }

    #[oclprim::device]
    pub(crate) fn scale(x: u32) -> u32 {
        x * 3
    }
}

type Number = u32;
use tripled::scale as three_times;

/// Functions and structs of one name, an alias, and another name for an import.
#[operator(identity = 0)]
fn names_of_several_modules(a: Number, b: Number) -> Number {
    let x = doubled::Pair { a: doubled::scale(a), b: tripled::scale(b) };
    let y = tripled::Pair { b: three_times(x.b), a: x.a };
    x.a * 7 + y.b ^ y.a
}

#[device]
fn combine(a: u32, b: u32) -> u32 {
    a ^ b << 3
}

/// A function with the name that the macro could have taken for itself.
#[operator(identity = combine(0, 0))]
fn calls_a_function_named_combine(a: u32, b: u32) -> u32 {
    combine(a, b) + 1
}

/// Arrays are copied, built and written like other values.
#[operator(identity = Cell::zeroed())]
fn arrays_are_values(a: Cell, b: Cell) -> Cell {
    let old = a.kinds;
    let mut new = b;
    new.kinds = a.kinds;
    new.kinds[0] += b.kinds[(a.int & 3) as usize];
    for i in 1..4usize {
        new.kinds[i] = old[(i as u32 - 1) as usize] + new.kinds[0];
    }
    let built = Cell { extremes: b.extremes, kinds: [new.kinds[3], 1, old[2], 7], int: new.int };
    if a.int > 0 { built } else { Cell { extremes: a.extremes, kinds: [old[1]; 4], int: built.int } }
}

/// Statements within operands: Rust computes the right side of `+=` before it reads the left, and otherwise from left to right.
#[operator(identity = 0)]
fn order_of_evaluation(a: u32, b: u32) -> u32 {
    let mut x = a;
    x += {
        x ^= b;
        if a > b { 1 } else { b + x }
    };
    let y = x << {
        x = 2;
        x
    };
    y + x * {
        x = a;
        x + 1
    } - if x > b { x } else { 7 }
}

/// Operators for several types.
macro_rules! differences {
    ($($name:ident $ty:ty),*) => { $(
        #[operator(identity = 0 as $ty)]
        fn $name(a: $ty, b: $ty) -> $ty {
            if a > b { a - b } else { b - a }
        }
    )* };
}

differences! { difference_of_i16 i16, difference_of_u64 u64, difference_of_f32 f32 }

#[test]
fn an_index_out_of_range_stays_in_the_array_on_devices() {
    #[operator(identity = Cell::zeroed(), test = false)]
    fn indexed(a: Cell, b: Cell) -> Cell {
        let mut x = a;
        x.kinds[b.int as usize] = 9;
        x
    }
    let values = [Cell::zeroed(), Cell { int: 3, ..Cell::zeroed() }];
    for (index, _) in Device::list().iter().enumerate() {
        let found = Device::at(index).unwrap().reduce(&values, &indexed()).unwrap();
        assert!(found.kinds.iter().filter(|kind| **kind == 9).count() >= 1, "{found:?}");
    }
}

/// Tuples, captured values, and functions of sources.
#[test]
fn maps_of_sources_have_the_same_bits_on_devices() {
    use oclprim::{Source, source::zip};

    let (x, y): (Vec<f32>, Vec<f32>) = (0..5000).map(|i| (i as f32 / 7.0 - 300.0, (i * 37 % 101) as f32)).unzip();
    let counts: Vec<u8> = (0..5000u32).map(|i| (i * i) as u8).collect();
    for (name, device) in common::devices() {
        for (scale, shift) in [(0.3f32, 7i64), (-2.5, -1)] {
            let axpy = map!(move |(a, b): (f32, f32)| scale * a + b, scale: f32);
            let want: Vec<f32> = x.iter().zip(&y).map(|(a, b)| scale * a + b).collect();
            assert_eq!(device.transform(x.zip(&y).map(axpy)).unwrap().to_vec().unwrap(), want, "{name}");
            let both = map!(move |((a, _), n): ((f32, f32), u8)| -> i64 { (scale * a) as i64 + n as i64 * shift }, scale: f32, shift: i64);
            let want: i64 = x.iter().zip(&counts).map(|(a, n)| (scale * a) as i64 + i64::from(*n) * shift).sum();
            assert_eq!(device.reduce(x.zip(&y).zip(&counts).map(both), Sum).unwrap(), want, "{name}");
        }
        // Names that the macro itself could have used.
        let (argument, function, captured) = (3.0f32, 5.0f32, 7.0f32);
        let named = map!(
            move |x: f32| x * argument + function - captured,
            argument: f32, function: f32, captured: f32
        );
        let want: Vec<f32> = x.iter().map(|x| x * 3.0 + 5.0 - 7.0).collect();
        for device in [&device, &Device::cpu()] {
            assert_eq!(device.transform(x.map(&named)).unwrap().to_vec().unwrap(), want, "{name}");
        }
        let wrapping = map!(|(a, b, c): (u8, u8, u8)| a * b - c);
        let want: Vec<u8> = counts.iter().map(|a| a.wrapping_mul(*a).wrapping_sub(*a)).collect();
        let source = zip((&counts, &counts, &counts)).map(&wrapping);
        assert_eq!(device.transform(source).unwrap().to_vec().unwrap(), want, "{name}");
    }
}
