//! The arithmetic of devices in Rust. [`helpers`](super::helpers) has it in OpenCL C.

/// Integers and floats.
#[diagnostic::on_unimplemented(
    message = "devices have no arithmetic for `{Self}`",
    note = "compute an index in `u32` or `u64`, then convert it: `x[(i + 1) as usize]`"
)]
pub trait Number: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn modulo(self, other: Self) -> Self;
    fn negative(self) -> Self;
    fn size(self) -> Self;
    fn lesser(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn between(self, low: Self, high: Self) -> Self;
}

/// Numbers, `bool`, and indices.
#[diagnostic::on_unimplemented(message = "devices compare numbers and bools, not `{Self}`: compare the fields")]
pub trait Compared: Copy + PartialOrd {}

/// Integers and `bool`.
pub trait Bits: Copy {
    fn both(self, other: Self) -> Self;
    fn either(self, other: Self) -> Self;
    fn one(self, other: Self) -> Self;
}

/// Integers.
pub trait Whole: Number + Bits {
    fn left(self, count: u32) -> Self;
    fn right(self, count: u32) -> Self;
}

/// The count of a shift, of which only the lowest bits matter.
pub trait Count: Copy {
    fn bits(self) -> u32;
}

macro_rules! integers {
    ($($ty:ident)*) => {
        $(
            impl Number for $ty {
                fn plus(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }

                fn minus(self, other: Self) -> Self {
                    self.wrapping_sub(other)
                }

                fn times(self, other: Self) -> Self {
                    self.wrapping_mul(other)
                }

                fn over(self, other: Self) -> Self {
                    if other == 0 { 0 } else { self.wrapping_div(other) }
                }

                fn modulo(self, other: Self) -> Self {
                    if other == 0 { self } else { self.wrapping_rem(other) }
                }

                fn negative(self) -> Self {
                    self.wrapping_neg()
                }

                #[allow(unused_comparisons, reason = "some types are unsigned")]
                fn size(self) -> Self {
                    if self < 0 { self.wrapping_neg() } else { self }
                }

                fn lesser(self, other: Self) -> Self {
                    Ord::min(self, other)
                }

                fn larger(self, other: Self) -> Self {
                    Ord::max(self, other)
                }

                fn between(self, low: Self, high: Self) -> Self {
                    if self < low { low } else if self > high { high } else { self }
                }
            }

            impl Whole for $ty {
                fn left(self, count: u32) -> Self {
                    self.wrapping_shl(count)
                }

                fn right(self, count: u32) -> Self {
                    self.wrapping_shr(count)
                }
            }

            impl Count for $ty {
                fn bits(self) -> u32 {
                    self as u32
                }
            }
        )*
    };
}

macro_rules! bits {
    ($($ty:ident)*) => {
        $(
            impl Bits for $ty {
                fn both(self, other: Self) -> Self {
                    self & other
                }

                fn either(self, other: Self) -> Self {
                    self | other
                }

                fn one(self, other: Self) -> Self {
                    self ^ other
                }
            }
        )*
    };
}

macro_rules! floats {
    ($($ty:ident)*) => {
        $(
            impl Number for $ty {
                fn plus(self, other: Self) -> Self {
                    self + other
                }

                fn minus(self, other: Self) -> Self {
                    self - other
                }

                fn times(self, other: Self) -> Self {
                    self * other
                }

                fn over(self, other: Self) -> Self {
                    self / other
                }

                fn modulo(self, other: Self) -> Self {
                    self % other
                }

                fn negative(self) -> Self {
                    -self
                }

                fn size(self) -> Self {
                    self.abs()
                }

                fn lesser(self, other: Self) -> Self {
                    if self < other {
                        self
                    } else if other < self {
                        other
                    } else if self == other {
                        // Of two zeros, the negative one.
                        Self::from_bits(self.to_bits() | other.to_bits())
                    } else if self.is_nan() {
                        other
                    } else {
                        self
                    }
                }

                fn larger(self, other: Self) -> Self {
                    if self > other {
                        self
                    } else if other > self {
                        other
                    } else if self == other {
                        Self::from_bits(self.to_bits() & other.to_bits())
                    } else if self.is_nan() {
                        other
                    } else {
                        self
                    }
                }

                fn between(self, low: Self, high: Self) -> Self {
                    if self < low { low } else if self > high { high } else { self }
                }
            }
        )*
    };
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }
bits! { i8 i16 i32 i64 u8 u16 u32 u64 bool }
floats! { f32 f64 }

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*): $bound:ident :: $method:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name<T: $bound>($($argument: T),*) -> T {
                $bound::$method($($argument),*)
            }
        )*
    };
}

functions! {
    /// `a + b`; integers wrap.
    add(a, b): Number::plus;
    /// `a - b`; integers wrap.
    sub(a, b): Number::minus;
    /// `a * b`; integers wrap.
    mul(a, b): Number::times;
    /// `a / b`; for integers, 0 if `b` is 0, and `MIN / -1` is `MIN`.
    div(a, b): Number::over;
    /// `a % b`; for integers, `a` if `b` is 0.
    rem(a, b): Number::modulo;
    /// `-a`; the smallest integer is its own negative.
    neg(a): Number::negative;
    /// `|a|`; the smallest integer is its own absolute value.
    abs(a): Number::size;
    /// The smaller; -0 is less than 0, and a number is preferred to NaN.
    min(a, b): Number::lesser;
    /// The larger; 0 is larger than -0, and a number is preferred to NaN.
    max(a, b): Number::larger;
    /// `low` if `a < low`, else `high` if `a > high`, else `a`.
    clamp(a, low, high): Number::between;
    /// `a & b`.
    and(a, b): Bits::both;
    /// `a | b`.
    or(a, b): Bits::either;
    /// `a ^ b`.
    xor(a, b): Bits::one;
}

macro_rules! comparisons {
    ($($name:ident $sign:tt)*) => {
        $(
            /// A comparison of two values.
            #[inline]
            pub fn $name<T: Compared>(a: T, b: T) -> bool {
                a $sign b
            }
        )*
    };
}

comparisons! { eq == ne != lt < le <= gt > ge >= }

macro_rules! compared {
    ($($ty:ident)*) => { $(impl Compared for $ty {})* };
}

compared! { i8 i16 i32 i64 u8 u16 u32 u64 usize f32 f64 bool }

/// `a << n`, with `n` modulo the number of bits.
#[inline]
pub fn shl<T: Whole, N: Count>(a: T, n: N) -> T {
    a.left(n.bits())
}

/// `a >> n`, with `n` modulo the number of bits.
#[inline]
pub fn shr<T: Whole, N: Count>(a: T, n: N) -> T {
    a.right(n.bits())
}
