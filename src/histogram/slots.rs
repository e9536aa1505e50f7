//! Slots: one per bin and three for samples outside the bins. The types in which edges are computed.

use std::ops::{Add, Div, Mul, Sub};

use crate::{Element, Error, Integer, Result, with_integer};

/// The maximum number of bins: `f32` holds every bin number up to 2^24 exactly.
pub const MAX_BINS: usize = 1 << 24;

/// Three slots after the bins count the samples outside of them.
pub const BELOW: u32 = 0;
pub const ABOVE: u32 = 1;
pub const NAN: u32 = 2;
pub const OUTSIDE: usize = 3;

pub(super) fn check_count(bins: usize) -> Result<u32> {
    if bins == 0 || bins > MAX_BINS {
        return Err(Error::invalid(format!("a histogram has 1 to {MAX_BINS} bins, not {bins}")));
    }
    Ok(bins as u32)
}

/// The value of an integer element.
pub fn to_i128<T: Element>(x: T) -> i128 {
    with_integer!(T::TYPE, U => bytemuck::cast::<T, U>(x).to_i128(), unreachable!("only integers have steps"))
}

/// The float types in which edges are computed.
pub trait Real:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    const HALF: Self;
    const ONE: Self;
    const ZERO: Self;
    /// The unit roundoff.
    const ROUNDOFF: f64;
    fn of(count: u32) -> Self;
    fn near(value: f64) -> Self;
    /// Converts to `u32`: truncates and saturates.
    fn whole(self) -> u32;
    fn wide(self) -> f64;
    fn normal(self) -> bool;
    fn nan(self) -> bool;
    /// The next number towards negative infinity.
    fn below(self) -> Self;
}

macro_rules! real {
    ($($ty:ident),*) => { $(
        impl Real for $ty {
            const HALF: Self = 0.5;
            const ONE: Self = 1.0;
            const ZERO: Self = 0.0;
            const ROUNDOFF: f64 = $ty::EPSILON as f64 / 2.0;
            #[inline]
            fn of(count: u32) -> Self { count as Self }
            #[inline]
            fn near(value: f64) -> Self { value as Self }
            #[inline]
            fn whole(self) -> u32 { self as u32 }
            #[inline]
            fn wide(self) -> f64 { f64::from(self) }
            #[inline]
            fn normal(self) -> bool { self.is_normal() }
            #[inline]
            fn nan(self) -> bool { Self::is_nan(self) }
            fn below(self) -> Self { self.next_down() }
        }
    )* };
}
real!(f32, f64);
