//! User-defined operators of the cases.

use crate::{
    Element,
    op::{Monoid, Op, Operator},
};

/// Function that combines two accumulators. It is a pointer, so that a reference implementation is compiled once per
/// type, not once per operator and type.
pub(crate) type Function<A> = fn(A, A) -> A;

/// Built-in operator with a function pointer, for the reference implementations.
pub(crate) fn monoid<U: Element, O: Op<U>>() -> Monoid<U, Function<U::Acc>> {
    let Monoid { identity, empty, ordered, .. } = crate::op::monoid::<U, O>();
    Monoid { identity, empty, ordered, combine: O::combine }
}

/// User-defined operator with a function pointer.
pub(crate) type Tried<T> = Operator<T, Function<T>>;

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub(crate) fn divisor() -> Tried<u32> {
    let text = "static inline uint gcd(uint a, uint b)\n{\n    while (b != 0) {\n        const uint r = a % b;\n        \
                a = b;\n        b = r;\n    }\n    return a;\n}";
    Operator::new("gcd", 0, gcd as fn(u32, u32) -> u32, "gcd(a, b)").with_functions(text)
}

pub(crate) fn either() -> Tried<f32> {
    Operator::new("either", 0.0, (|a, b| a + b - a * b) as fn(f32, f32) -> f32, "a + b - a * b")
}

/// The built-in sum as a user-defined operator, which rounds. Its identity is -0: `-0 + x` has the bits of `x`, even if
/// `x` is -0.
pub(crate) fn plus() -> Tried<f32> {
    Operator::new("a + b", -0.0, (|a, b| a + b) as fn(f32, f32) -> f32, "a + b")
}

/// Bitwise XNOR, which reveals missing elements and has an identity other than 0.
pub(crate) fn alike() -> Tried<u32> {
    Operator::new("bits alike", u32::MAX, (|a, b| !(a ^ b)) as fn(u32, u32) -> u32, "~(a ^ b)")
}

/// Composition of the maps `x -> low * x + high`: first `a`, then `b`. `low` and `high` are the 32-bit halves of an
/// operand. The operator reveals missing elements and is not commutative.
pub(crate) fn affine() -> Tried<u64> {
    fn after(a: u64, b: u64) -> u64 {
        let (factor, shift) = ((a as u32).wrapping_mul(b as u32), (b as u32).wrapping_mul((a >> 32) as u32));
        u64::from(shift.wrapping_add((b >> 32) as u32)) << 32 | u64::from(factor)
    }
    let text = "(ulong)((uint)b * (uint)(a >> 32) + (uint)(b >> 32)) << 32 | (uint)a * (uint)b";
    Operator::new("affine", 1, after as fn(u64, u64) -> u64, text)
}
