//! Reductions in wider types, of mapped elements, and of products.

mod common;

use oclprim::{
    Determinism, Device, ErrorKind, Source,
    op::{Map, Max, Product, Sum, Usage},
};

#[test]
fn wide_accumulators_hold_what_narrow_ones_wrap() {
    for (name, device) in common::with_sub_groups() {
        let x = device.upload(&[i32::MAX; 1000]).unwrap();
        let sum = device.reduce(x.cast::<i64>(), Sum).unwrap();
        assert_eq!(sum, 1000 * i64::from(i32::MAX), "{name}");
        let product = device.reduce([1u32 << 31, 1 << 31].cast::<u64>(), Product).unwrap();
        assert_eq!(product, 1 << 62, "{name}");
        let dot = device.reduce(x.cast::<i64>().times(x.cast()), Sum).unwrap();
        assert_eq!(dot, i64::from(i32::MAX).pow(2).wrapping_mul(1000), "{name}");
    }
}

#[test]
fn empty_input_gives_the_identity() {
    let nothing: [i8; 0] = [];
    for (name, device) in common::with_sub_groups() {
        assert_eq!(device.reduce(nothing.cast::<i32>(), Max).unwrap(), i32::MIN, "{name}");
        assert_eq!(device.reduce(nothing.cast::<i16>().times(nothing.cast()), Sum).unwrap(), 0, "{name}");
        let one = Map::new(|_: i8| 1.0f32, "1.0f");
        assert_eq!(device.reduce(nothing[..].map(&one), Product).unwrap(), 1.0, "{name}");
    }
}

#[test]
fn a_constant_counts_elements() {
    for (name, device) in common::with_sub_groups() {
        for n in [1, 4095, 100_000] {
            let one = Map::new(|_: u8| 1u64, "1");
            assert_eq!(device.reduce(vec![7u8; n].map(&one), Sum).unwrap(), n as u64, "{name}");
        }
    }
}

#[test]
fn an_expression_that_does_not_build_gives_the_log() {
    for (name, device) in common::opencl_devices_or_skip("an_expression_that_does_not_build") {
        let wrong = Map::new(|x: f32| x + 1.0, "x +\n  missing_name");
        let error = device.reduce([1.0f32][..].map(&wrong), Sum).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        let wanted = ("expression:2", 3, "  missing_name");
        assert!(log.contains("'missing_name'") && common::names_line(&device, log, wanted), "{name}: {log}");
        // The device stays usable.
        let right = Map::new(|x: f32| x + 1.0, "x + 1.0f");
        assert_eq!(device.reduce([1.0f32][..].map(&right), Sum).unwrap(), 2.0, "{name}");
    }
}

#[test]
fn inputs_and_outputs_of_wrong_length_are_errors() {
    for (name, device) in common::with_sub_groups() {
        let error = device.reduce([1, 2, 3].times(&[1, 2]), Sum).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "times needs sources of equal length, got 3 and 2 elements");
        let mut out = device.zeroed::<i64>(2).unwrap();
        let (wide, fixed) = ([1].cast::<i64>(), Determinism::Fixed);
        let error = device.reduce_into(wide, Sum.with(fixed), &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
    }
}

#[test]
fn fixed_sums_repeat_bit_for_bit() {
    let x: Vec<f32> = (0..70_001).map(|i| ((i * 37 % 1000) as f32 - 500.0) / 7.0).collect();
    let square = Map::new(|x: f32| x * x, "x * x");
    let want = Device::cpu().reduce(x.map(&square), Sum).unwrap();
    for (name, device) in [common::with_sub_groups(), common::wide()].concat() {
        let buffer = device.upload(&x).unwrap();
        for round in 0..if name.contains(" as ") { 5 } else { 100 } {
            let got = device.reduce(buffer.map(&square), Sum).unwrap();
            assert_eq!(got.to_bits(), want.to_bits(), "{name}: round {round}");
            let dot = device.reduce(buffer.times(&buffer), Sum).unwrap();
            assert_eq!(dot.to_bits(), want.to_bits(), "{name}: round {round} of dot");
        }
    }
}
