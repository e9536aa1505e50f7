//! Imports of the crate's traits next to those of the standard library.

#![deny(unused_imports)]

use oclprim::*;

/// If a method were ambiguous, this would not compile.
#[test]
fn methods_of_numbers_are_not_ambiguous_beside_the_traits_of_elements() {
    use std::ops::{Add, Mul};
    let (a, b) = (u32::from(bf16::ONE.to_bits() > 5) * 5, 3u32);
    assert_eq!((a.min(b), a.max(b), 5i8.clamp(0, 3)), (3, 5, 3));
    assert_eq!((5u64.add(3), 5u64.mul(3)), (8, 15));
    assert_eq!((0.5f32.min(2.0), 0.5f64.max(2.0), f32::NAN.is_nan()), (0.5, 2.0, true));
    assert_eq!((f16::ONE.to_f64(), bf16::ONE.is_nan(), 7u8.to_f64()), (1.0, false, 7.0));
    assert_eq!([3u16, 1, 2].into_iter().min(), Some(1));
}

#[test]
fn elements_have_arithmetic_by_their_bound() {
    fn spread<T: Element>(x: &[T]) -> (T, T, T) {
        x.iter().fold((T::HIGHEST, T::LOWEST, T::ZERO), |(low, high, sum), &x| (low.min(x), high.max(x), sum.add(x)))
    }
    assert_eq!(spread(&[200u8, 100]), (100, 200, 44));
    assert!(spread(&[1.0f32, f32::NAN]).0.is_nan());
    assert_eq!(op::Arithmetic::mul(20u8, 20), 144);
}

#[test]
fn writing_another_length_is_refused_and_changes_nothing() {
    let mut x = Device::cpu().upload(&[1u8, 2, 3]).unwrap();
    for data in [&[7u8, 7][..], &[7; 4], &[]] {
        let error = x.write(data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), format!("writing {} elements into 3: the lengths must be equal", data.len()));
    }
    assert_eq!(x.to_vec().unwrap(), [1, 2, 3]);
    x.view_mut(..2).unwrap().write(&[8, 9]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [8, 9, 3]);
}
