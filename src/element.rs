//! The element types of the crate, and their arithmetic, which every backend shares.

use std::{any::TypeId, fmt, str::FromStr};

use bytemuck::Pod;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

mod sealed {
    pub trait Sealed {}
}

/// An element type as a run-time value.
///
/// ```
/// use oclprim::{Element, ElementType};
///
/// let ty: ElementType = "bf16".parse()?;
/// assert_eq!((ty, ty.name(), ty.size()), (ElementType::Bf16, "bf16", 2));
/// assert!(ty.is_float() && ty.is_signed() && !ty.needs_fp64());
/// assert_eq!(f32::TYPE.to_string(), "f32");
/// assert_eq!(ElementType::ALL.iter().filter(|ty| ty.is_float()).count(), 4);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
#[non_exhaustive]
pub enum ElementType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ElementType {
    /// Every element type.
    ///
    /// ```
    /// use oclprim::ElementType;
    ///
    /// assert_eq!(ElementType::ALL.iter().filter(|ty| ty.is_float()).count(), 4);
    /// ```
    pub const ALL: [Self; 12] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The Rust name, such as `f32`.
    ///
    /// ```
    /// assert_eq!(oclprim::ElementType::Bf16.name(), "bf16");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The size of one element in bytes.
    ///
    /// ```
    /// assert_eq!(oclprim::ElementType::F16.size(), 2);
    /// ```
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Returns whether the type is a floating-point type.
    ///
    /// ```
    /// use oclprim::ElementType;
    ///
    /// assert!(ElementType::F16.is_float() && !ElementType::I32.is_float());
    /// ```
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Returns whether OpenCL C computes with vectors of the type: all types except the 16-bit floats.
    pub(crate) const fn has_vectors(self) -> bool {
        !matches!(self, Self::F16 | Self::Bf16)
    }

    /// The element type that `T` is; `None` for any other type.
    pub(crate) fn of<T: 'static>() -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|&element| crate::with_element!(element, U => TypeId::of::<U>() == TypeId::of::<T>()))
    }

    /// The OpenCL C type that holds an element in memory; a 16-bit float is stored as its bits.
    pub(crate) const fn storage(self) -> &'static str {
        match self {
            Self::I8 => "char",
            Self::I16 => "short",
            Self::I32 => "int",
            Self::I64 => "long",
            Self::U8 => "uchar",
            Self::U16 | Self::F16 | Self::Bf16 => "ushort",
            Self::U32 => "uint",
            Self::U64 => "ulong",
            Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    /// The bits of infinity, if the type is a float.
    pub(crate) const fn infinity(self) -> Option<u64> {
        match self {
            Self::F16 => Some(0x7c00),
            Self::Bf16 => Some(0x7f80),
            Self::F32 => Some(0x7f80_0000),
            Self::F64 => Some(0x7ff0_0000_0000_0000),
            _ => None,
        }
    }

    /// The number of bits of a float's significand, including the leading one; 0 for integers.
    pub(crate) const fn precision(self) -> i32 {
        match self {
            Self::F16 => 11,
            Self::Bf16 => 8,
            Self::F32 => 24,
            Self::F64 => 53,
            _ => 0,
        }
    }

    /// The exponent of the least positive float; 0 for integers.
    pub(crate) const fn least_exponent(self) -> i32 {
        match self {
            Self::F16 => -24,
            Self::Bf16 => -133,
            Self::F32 => -149,
            Self::F64 => -1074,
            _ => 0,
        }
    }

    /// The type that computations on elements use.
    pub(crate) const fn accumulator(self) -> Self {
        match self {
            Self::F16 | Self::Bf16 => Self::F32,
            other => other,
        }
    }

    /// Returns whether kernels over the type need double precision.
    ///
    /// ```
    /// use oclprim::ElementType;
    ///
    /// assert!(ElementType::F64.needs_fp64() && !ElementType::I64.needs_fp64());
    /// ```
    pub const fn needs_fp64(self) -> bool {
        matches!(self, Self::F64)
    }

    /// Returns whether values can be negative.
    ///
    /// ```
    /// use oclprim::ElementType;
    ///
    /// assert!(ElementType::F32.is_signed() && !ElementType::U8.is_signed());
    /// ```
    pub const fn is_signed(self) -> bool {
        !matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElementType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|ty| ty.name()).collect();
            Error::invalid(format!("unknown element type `{name}`: expected one of {}", known.join(", ")))
        })
    }
}

/// The arithmetic of elements, the same on every device.
///
/// Integers wrap. `min` and `max` of floats return NaN if either side is NaN, and order -0 below +0. The trait is sealed. It is
/// not at the crate's root, since its methods share names with those of `Ord`.
///
/// ```
/// use oclprim::{Element, op::Arithmetic};
///
/// fn squares<T: Element>(x: &[T]) -> T {
///     x.iter().fold(T::ZERO, |sum, &x| sum.add(x.mul(x)))
/// }
///
/// assert_eq!((squares(&[1u8, 2, 16]), squares(&[0.5f32])), (5, 0.25));
/// assert!(Arithmetic::max(f32::NAN, 1.0).is_nan());
/// ```
pub trait Arithmetic: Copy + PartialEq + sealed::Sealed {
    /// `self + other`, wrapping for integers.
    fn add(self, other: Self) -> Self;
    /// `self * other`, wrapping for integers.
    fn mul(self, other: Self) -> Self;
    /// The smaller value; NaN if either is NaN; -0 is below +0.
    fn min(self, other: Self) -> Self;
    /// The larger value; NaN if either is NaN; -0 is below +0.
    fn max(self, other: Self) -> Self;
}

/// A number that the primitives compute with: `i8..i64`, `u8..u64`, `f16`, `bf16`, `f32`, `f64`.
///
/// The trait is sealed. Its arithmetic comes from [`Arithmetic`](crate::op::Arithmetic). A bound `T: Element` brings those
/// methods into scope, but an import of `Element` does not: `5u32.min(3)` still calls `Ord::min`.
///
/// ```
/// use oclprim::{Device, Element, op::Sum};
///
/// fn mean<T: Element>(device: &Device, x: &[T]) -> oclprim::Result<f64> {
///     Ok(device.reduce(x, Sum)?.to_f64() / x.len() as f64)
/// }
///
/// let device = Device::best()?;
/// assert_eq!(mean(&device, &[1u8, 2, 3])?, 2.0);
/// assert_eq!(mean(&device, &[0.5f32, 1.0])?, 0.75);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// `bool`, `usize` and `isize` are not elements: use `u8`, `u64` and `i64`.
///
/// ```compile_fail,E0277
/// oclprim::Device::cpu().reduce(&[1usize, 2], oclprim::op::Sum)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    label = "expected `i8`..`i64`, `u8`..`u64`, `f16`, `bf16`, `f32` or `f64`",
    note = "use `u8` (0 and 1) for `bool`, `u64` for `usize`, and `i64` for `isize`",
    note = "structs are for sorts by an `op::Less`, for reductions and scans by an `op::Operator`, for counts, selections \
            and partitions by an `op::Condition`, and for `Source::map`",
    note = "for any other call, map structs to numbers, such as `x.map(map!(|p: Particle| p.mass))`"
)]
pub trait Element: Pod + PartialOrd + fmt::Debug + fmt::Display + Send + Sync + Arithmetic {
    /// The type's name at run time.
    const TYPE: ElementType;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The smallest value; -infinity for floats.
    const LOWEST: Self;
    /// The largest value; +infinity for floats.
    const HIGHEST: Self;
    /// The identity of addition: 0 for integers, -0 for floats, since -0 + +0 is +0.
    const ADD_IDENTITY: Self;

    /// The type in which reductions compute: `f32` for `f16` and `bf16`, else the type itself.
    type Acc: Element<Acc = Self::Acc>;

    /// The value in the accumulator's type; exact.
    fn widen(self) -> Self::Acc;
    /// The nearest value of this type, ties to even.
    fn narrow(acc: Self::Acc) -> Self;
    /// Returns whether the value is a NaN.
    fn is_nan(self) -> bool;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
    /// An `f64` as this type. A float result rounds to the nearest, ties to even. An integer result truncates and
    /// saturates, and NaN becomes 0.
    fn from_f64(value: f64) -> Self;
    /// An integer as this type. An integer result wraps. A float result rounds to the nearest, ties to even; `f16` and
    /// `bf16` round to the nearest `f32` first.
    fn from_integer(value: i128) -> Self;
    /// `self as U`. From float to integer, values saturate and NaN becomes 0. Between integers, values wrap. Float
    /// results round to the nearest, ties to even. A conversion to `f16` or `bf16` rounds to the nearest `f32` first.
    fn cast<U: Element>(self) -> U;
    /// A value with the low bits of `bits`, for test data.
    fn from_bits_lossy(bits: u64) -> Self;

    /// Returns whether two values have the same bits, with all NaNs equal.
    #[inline]
    fn same(self, other: Self) -> bool {
        bytemuck::bytes_of(&self) == bytemuck::bytes_of(&other) || (self.is_nan() && other.is_nan())
    }
}

/// The bits of an element as a number, the same on hosts of either byte order.
#[inline(always)]
pub fn bits<T: Element>(x: T) -> u64 {
    let (mut bytes, size) = ([0; 8], size_of::<T>());
    let start = if cfg!(target_endian = "big") { 8 - size } else { 0 };
    bytes[start..start + size].copy_from_slice(bytemuck::bytes_of(&x));
    u64::from_ne_bytes(bytes)
}

/// Returns whether sorts treat two elements as equal: `a == b`, or both are NaN.
#[inline]
pub(crate) fn equal<T: Element>(a: T, b: T) -> bool {
    (a == b) | (a.is_nan() & b.is_nan())
}

/// An [`Element`] with bitwise operations.
///
/// ```
/// use oclprim::Integer;
///
/// fn parity<T: Integer>(x: &[T]) -> i128 {
///     x.iter().fold(T::ZERO, |all, &x| all.xor(x)).to_i128()
/// }
///
/// assert_eq!((parity(&[5u8, 3]), parity(&[-1i64, 0])), (6, -1));
/// assert_eq!((u8::from_i128(257), i8::ALL_ONES), (1, -1));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer element type",
    label = "expected `i8`..`i64` or `u8`..`u64`",
    note = "use `u64` for `usize`, and `i64` for `isize`",
    note = "the operators `And`, `Or` and `Xor`, and the bins of `Bins::ids` need integers"
)]
pub trait Integer: Element + Ord {
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// All bits set.
    const ALL_ONES: Self;
    /// The value, exactly.
    fn to_i128(self) -> i128;
    /// The value, wrapped into the type.
    fn from_i128(value: i128) -> Self;
}

/// A floating-point [`Element`].
///
/// ```
/// use oclprim::{Device, Float, op::Sum};
///
/// fn mean_square<T: Float>(device: &Device, x: &[T]) -> oclprim::Result<f64> {
///     let squares: Vec<T> = x.iter().map(|x| x.mul(*x)).collect();
///     Ok(device.reduce(&squares, Sum)?.to_f64() / x.len() as f64)
/// }
///
/// assert_eq!(mean_square(&Device::best()?, &[1.0f32, 3.0])?, 5.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point element type",
    label = "expected `f16`, `bf16`, `f32` or `f64`"
)]
pub trait Float: Element {
    /// The digits of an [`ExactSum`](crate::ExactSum).
    #[doc(hidden)]
    type Digits: Pod + AsRef<[i64]> + AsMut<[i64]> + fmt::Debug + Send + Sync;
}

macro_rules! integers {
    ($($ty:ident $name:ident),*) => { $(
        impl sealed::Sealed for $ty {}
        impl Arithmetic for $ty {
            #[inline]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline]
            fn min(self, other: Self) -> Self { Ord::min(self, other) }
            #[inline]
            fn max(self, other: Self) -> Self { Ord::max(self, other) }
        }
        impl Element for $ty {
            const TYPE: ElementType = ElementType::$name;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = $ty::MIN;
            const HIGHEST: Self = $ty::MAX;
            const ADD_IDENTITY: Self = 0;
            type Acc = Self;
            #[inline]
            fn widen(self) -> Self { self }
            #[inline]
            fn narrow(acc: Self) -> Self { acc }
            #[inline]
            fn is_nan(self) -> bool { false }
            #[inline]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline]
            fn from_f64(value: f64) -> Self { value as Self }
            #[inline]
            fn from_integer(value: i128) -> Self { value as Self }
            #[inline]
            fn cast<U: Element>(self) -> U { U::narrow(U::Acc::from_integer(self as i128)) }
            #[inline]
            fn from_bits_lossy(bits: u64) -> Self { bits as Self }
        }
        impl Integer for $ty {
            #[inline]
            fn and(self, other: Self) -> Self { self & other }
            #[inline]
            fn or(self, other: Self) -> Self { self | other }
            #[inline]
            fn xor(self, other: Self) -> Self { self ^ other }
            const ALL_ONES: Self = !0;
            #[inline]
            fn to_i128(self) -> i128 { self as i128 }
            #[inline]
            fn from_i128(value: i128) -> Self { value as Self }
        }
    )* };
}
integers!(i8 I8, i16 I16, i32 I32, i64 I64, u8 U8, u16 U16, u32 U32, u64 U64);

macro_rules! floats {
    ($($ty:ident $name:ident $bits:ident $digits:literal),*) => { $(
        impl sealed::Sealed for $ty {}
        impl Float for $ty {
            type Digits = [i64; $digits];
        }
        impl Arithmetic for $ty {
            #[inline]
            fn add(self, other: Self) -> Self { self + other }
            #[inline]
            fn mul(self, other: Self) -> Self { self * other }
            // Equal values differ at most in the sign of zero: `or` keeps a minus, `and` drops it.
            #[inline]
            fn min(self, other: Self) -> Self {
                // Branch-free, so that the compiler can vectorise loops over it.
                let least = if self < other { self } else { other };
                let least = if self == other { Self::from_bits(self.to_bits() | other.to_bits()) } else { least };
                if self.is_nan() { self } else { least }
            }
            #[inline]
            fn max(self, other: Self) -> Self {
                let most = if self > other { self } else { other };
                let most = if self == other { Self::from_bits(self.to_bits() & other.to_bits()) } else { most };
                if self.is_nan() { self } else { most }
            }
        }
        impl Element for $ty {
            const TYPE: ElementType = ElementType::$name;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $ty::NEG_INFINITY;
            const HIGHEST: Self = $ty::INFINITY;
            const ADD_IDENTITY: Self = -0.0;
            type Acc = Self;
            #[inline]
            fn widen(self) -> Self { self }
            #[inline]
            fn narrow(acc: Self) -> Self { acc }
            #[inline]
            fn is_nan(self) -> bool { <$ty>::is_nan(self) }
            #[inline]
            fn to_f64(self) -> f64 { f64::from(self) }
            #[inline]
            fn from_f64(value: f64) -> Self { value as Self }
            #[inline]
            fn from_integer(value: i128) -> Self { value as Self }
            #[inline]
            fn cast<U: Element>(self) -> U { U::narrow(U::Acc::from_f64(self.to_f64())) }
            #[inline]
            fn from_bits_lossy(bits: u64) -> Self { Self::from_bits(bits as $bits) }
        }
    )* };
}
floats!(f32 F32 u32 20, f64 F64 u64 134);

/// `value` rounded to odd: truncated to `f32`, with the last bit set if the result is inexact. A second rounding to fewer bits
/// then gives the same result as one direct rounding.
fn rounded_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if wide == value || wide.is_nan() {
        return near;
    }
    f32::from_bits((near.to_bits() - u32::from(wide.abs() > value.abs())) | 1)
}

/// [`f16::to_f32`] without a call or a branch, so that the compiler can vectorise loops over it.
#[inline]
fn wide_f16(x: f16) -> f32 {
    /// Difference between the exponent biases of the two types.
    const BIAS: u32 = (127 - 15) << 23;
    let bits = u32::from(x.to_bits());
    let size = bits & 0x7fff;
    let aligned = size << 13;
    // As a float, `aligned + least` is the smallest normal `f16` plus the subnormal: subtract that smallest normal.
    let least = BIAS + (1 << 23);
    let small = (f32::from_bits(aligned + least) - f32::from_bits(least)).to_bits();
    let finite = if size < 0x0400 { small } else { aligned + BIAS };
    let quiet = if size > 0x7c00 { 0x0040_0000 } else { 0 };
    let wide = if size < 0x7c00 { finite } else { (aligned + 2 * BIAS) | quiet };
    f32::from_bits(wide | (bits & 0x8000) << 16)
}

/// [`f16::from_f32`] without a call or a branch.
#[inline]
fn narrow_f16(x: f32) -> f16 {
    let bits = x.to_bits();
    let size = bits & 0x7fff_ffff;
    // The last bit of 0.5 has the weight of a subnormal's last bit, so the addition rounds to that bit.
    let half = 0.5f32.to_bits();
    let small = (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(half);
    // Adds half a unit in the last place, or one bit less where a tie rounds down. A carry out of the mantissa may give
    // infinity.
    let normal = size.wrapping_sub((127 - 15) << 23).wrapping_add(0x0fff + (size >> 13 & 1)) >> 13;
    let finite = if size < (127 - 14) << 23 { small } else { normal };
    let beyond = if size > 0x7f80_0000 { 0x7e00 | size >> 13 & 0x03ff } else { 0x7c00 };
    let narrow = if size < (127 + 16) << 23 { finite } else { beyond };
    f16::from_bits((narrow | bits >> 16 & 0x8000) as u16)
}

macro_rules! narrow_floats {
    ($($ty:ident $name:ident $digits:literal $widen:path, $narrow:path);*) => { $(
        impl sealed::Sealed for $ty {}
        impl Float for $ty {
            type Digits = [i64; $digits];
        }
        impl Arithmetic for $ty {
            #[inline]
            fn add(self, other: Self) -> Self { Self::narrow(self.widen() + other.widen()) }
            #[inline]
            fn mul(self, other: Self) -> Self { Self::narrow(self.widen() * other.widen()) }
            #[inline]
            fn min(self, other: Self) -> Self { Self::narrow(Arithmetic::min(self.widen(), other.widen())) }
            #[inline]
            fn max(self, other: Self) -> Self { Self::narrow(Arithmetic::max(self.widen(), other.widen())) }
        }
        impl Element for $ty {
            const TYPE: ElementType = ElementType::$name;
            const ZERO: Self = $ty::ZERO;
            const ONE: Self = $ty::ONE;
            const LOWEST: Self = $ty::NEG_INFINITY;
            const HIGHEST: Self = $ty::INFINITY;
            const ADD_IDENTITY: Self = $ty::NEG_ZERO;
            type Acc = f32;
            #[inline]
            fn widen(self) -> f32 { $widen(self) }
            #[inline]
            fn narrow(acc: f32) -> Self { $narrow(acc) }
            #[inline]
            fn is_nan(self) -> bool { <$ty>::is_nan(self) }
            #[inline]
            fn to_f64(self) -> f64 { <$ty>::to_f64(self) }
            #[inline]
            fn from_f64(value: f64) -> Self { Self::narrow(rounded_to_odd(value)) }
            #[inline]
            fn from_integer(value: i128) -> Self { Self::narrow(value as f32) }
            #[inline]
            fn cast<U: Element>(self) -> U { self.widen().cast() }
            #[inline]
            fn from_bits_lossy(bits: u64) -> Self { Self::from_bits(bits as u16) }
        }
    )* };
}
narrow_floats!(f16 F16 5 wide_f16, narrow_f16; bf16 Bf16 19 bf16::to_f32, bf16::from_f32);

/// Runs an expression with `$T` bound to the Rust type that an [`ElementType`] names.
#[doc(hidden)]
#[macro_export]
macro_rules! with_element {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            $crate::ElementType::F16 => { type $T = $crate::f16; $body }
            $crate::ElementType::Bf16 => { type $T = $crate::bf16; $body }
            $crate::ElementType::F32 => { type $T = f32; $body }
            $crate::ElementType::F64 => { type $T = f64; $body }
            integer => $crate::with_integer!(integer, $T => $body, unreachable!("every type is listed")),
        }
    };
}

/// Like [`with_element!`] for the integer types only; `$other` for the rest.
#[doc(hidden)]
#[macro_export]
macro_rules! with_integer {
    ($ty:expr, $T:ident => $body:expr, $other:expr) => {
        match $ty {
            $crate::ElementType::I8 => {
                type $T = i8;
                $body
            }
            $crate::ElementType::I16 => {
                type $T = i16;
                $body
            }
            $crate::ElementType::I32 => {
                type $T = i32;
                $body
            }
            $crate::ElementType::I64 => {
                type $T = i64;
                $body
            }
            $crate::ElementType::U8 => {
                type $T = u8;
                $body
            }
            $crate::ElementType::U16 => {
                type $T = u16;
                $body
            }
            $crate::ElementType::U32 => {
                type $T = u32;
                $body
            }
            $crate::ElementType::U64 => {
                type $T = u64;
                $body
            }
            _ => $other,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_element_in_every_byte_order() {
        assert_eq!((bits(0x12u8), bits(-2i16), bits(0x1234_5678u32)), (0x12, 0xfffe, 0x1234_5678));
        assert_eq!((bits(f16::ONE), bits(bf16::ONE)), (0x3c00, 0x3f80));
        assert_eq!((bits(1f32), bits(-1f64)), (0x3f80_0000, 0xbff0_0000_0000_0000));
        assert_eq!(f32::from_bits_lossy(bits(0.1f32)), 0.1);
    }

    /// Checks each pair of neighbours: their midpoint rounds to the even one, and values next to the midpoint round to
    /// the nearer one.
    fn rounds_once<T: Element>(bits: impl Fn(T) -> u64, highest: u64) {
        for low in 0..highest {
            let (a, b) = (T::from_bits_lossy(low), T::from_bits_lossy(low + 1));
            let middle = (a.to_f64() + b.to_f64()) / 2.0;
            let cases = [(middle.next_down(), low), (middle, low + low % 2), (middle.next_up(), low + 1)];
            for (value, nearest) in cases {
                assert_eq!(bits(T::from_f64(value)), nearest, "{value:e} between {a:?} and {b:?}");
                assert_eq!(bits(T::from_f64(-value)) & 0x7fff, nearest, "{:e}", -value);
            }
        }
        for value in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, f64::MAX] {
            let plain = T::narrow(<T::Acc as Element>::from_f64(value));
            assert!(T::from_f64(value).same(plain), "{value:e}");
        }
    }

    #[test]
    fn f16_conversions_have_the_bits_of_the_half_crate() {
        for bits in 0..=u16::MAX {
            let x = f16::from_bits(bits);
            assert_eq!(x.widen().to_bits(), x.to_f32().to_bits(), "{bits:#06x}");
        }
        // All signs and exponents, with mantissas around each value where rounding changes.
        for high in 0..1 << 20 {
            for low in [0, 1, 0x7ff, 0x800, 0x801, 0xfff] {
                let x = f32::from_bits(high << 12 | low);
                assert_eq!(f16::narrow(x).to_bits(), f16::from_f32(x).to_bits(), "{:#010x}", x.to_bits());
            }
        }
    }

    #[test]
    fn narrow_floats_are_rounded_once() {
        rounds_once::<f16>(|x| x.to_bits().into(), f16::MAX.to_bits().into());
        rounds_once::<bf16>(|x| x.to_bits().into(), bf16::MAX.to_bits().into());
    }
}
