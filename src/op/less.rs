//! Orders of elements: the built-in order and the user's.

use std::fmt;

use bytemuck::Pod;

use super::{
    Code, Text,
    operator::{Texts, quoted},
    sealed::Sealed,
};
use crate::{
    Element, ElementType, Error, Result, element,
    keys::{Keys, Order},
};

/// An order of elements: a built-in [`Order`], a user's [`Less`], or a reference to one. In a built-in order, -0 equals
/// +0, and all NaN are equal and larger than infinity. [`Order::total_order`] orders zeros by sign and NaN by their
/// bits.
///
/// ```
/// use oclprim::{Device, Order, op::{Compare, Less}, sort::Merging};
///
/// fn smallest(device: &Device, x: &[i32], order: impl Compare<i32>) -> oclprim::Result<i32> {
///     Ok(device.sort(x, Merging(order))?.to_vec()?[0])
/// }
///
/// let device = Device::best()?;
/// let by_size = Less::new("by size", |a: &i32, b: &i32| a.abs() < b.abs(), "abs(a) < abs(b)");
/// assert_eq!(smallest(&device, &[-3, 2, 5], Order::ascending())?, -3);
/// assert_eq!(smallest(&device, &[-3, 2, 5], &by_size)?, 2);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of `{T}`",
    label = "expected an `Order`, an `op::Less`, or a reference to one",
    note = "for a function of the user, write `#[order]`, with the feature `macros`, or make an order with \
            `op::Less::new(name, closure, expression)`",
    note = "an `Order` compares element types; for `bool` use `u8`, for `usize` use `u64`, and for a struct make an \
            `op::Less::of_struct`"
)]
pub trait Compare<T: Pod>: Sync + Sealed {
    /// Returns the function that is true if its first argument comes before the second.
    #[doc(hidden)]
    fn function(&self) -> Result<impl Fn(&T, &T) -> bool + Sync>;

    /// Returns the same order, for code that compares an element with many others.
    #[doc(hidden)]
    fn ranks(&self) -> Result<impl Ranks<T>>;

    /// Returns the OpenCL C text of the order, the function `op_less`. Also returns whether this text needs fp64.
    #[doc(hidden)]
    fn source(&self) -> Result<(Code, bool)>;
}

/// An order of ranks. The rank of an element is computed once, before the element is compared with others.
#[doc(hidden)]
pub trait Ranks<T>: Sync {
    type Rank: Copy;

    fn of(&self, x: &T) -> Self::Rank;

    /// Returns whether the first of two elements comes before the second.
    fn before(&self, a: Self::Rank, b: Self::Rank) -> bool;
}

/// The ranks of a user's order: the elements themselves.
struct ByFunction<'f, F>(&'f F);

impl<T: Copy, F: Fn(&T, &T) -> bool + Sync> Ranks<T> for ByFunction<'_, F> {
    type Rank = T;

    #[inline]
    fn of(&self, x: &T) -> T {
        *x
    }

    #[inline]
    fn before(&self, a: T, b: T) -> bool {
        (self.0)(&a, &b)
    }
}

/// The ranks of the built-in order.
struct Numbers {
    keys: Keys,
    mask: u64,
}

impl<T: Element> Ranks<T> for Numbers {
    type Rank = u64;

    #[inline]
    fn of(&self, x: &T) -> u64 {
        let bits = element::bits(*x);
        // The number of an integer is its bits with those of `always` flipped.
        self.mask & if T::TYPE.is_float() { self.keys.ordered(bits) } else { bits ^ self.keys.always as u64 }
    }

    #[inline]
    fn before(&self, a: u64, b: u64) -> bool {
        a < b
    }
}

impl<C: Sealed> Sealed for &C {}

#[diagnostic::do_not_recommend]
impl<T: Pod, C: Compare<T>> Compare<T> for &C {
    fn function(&self) -> Result<impl Fn(&T, &T) -> bool + Sync> {
        (*self).function()
    }

    fn ranks(&self) -> Result<impl Ranks<T>> {
        (*self).ranks()
    }

    fn source(&self) -> Result<(Code, bool)> {
        (*self).source()
    }
}

impl Sealed for Order {}

/// The order of floats in OpenCL C.
const FLOATS: &str = kernel_text!("lib/floats.cl");

/// The built-in order, as sorts use it.
#[diagnostic::do_not_recommend]
impl<T: Element> Compare<T> for Order {
    fn function(&self) -> Result<impl Fn(&T, &T) -> bool + Sync> {
        let ranks = self.ranks()?;
        Ok(move |a: &T, b: &T| Ranks::<T>::before(&ranks, Ranks::<T>::of(&ranks, a), Ranks::<T>::of(&ranks, b)))
    }

    fn ranks(&self) -> Result<impl Ranks<T>> {
        let keys = Keys::of(T::TYPE, self)?;
        Ok(Numbers { mask: keys.mask() as u64, keys })
    }

    fn source(&self) -> Result<(Code, bool)> {
        let keys = Keys::of(T::TYPE, self)?;
        let unsigned = [ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64];
        let (ty, high) = (unsigned[keys.bytes.ilog2() as usize].storage(), 8 * keys.bytes - 1);
        let (suffix, always, mask) = (if keys.bytes == 8 { "ul" } else { "u" }, keys.always, keys.mask());
        let word = if keys.bytes == 8 { "ulong" } else { "uint" };
        // Floats are compared by their ranks. If the order compares only some bits, a bias is added, as in
        // `Keys::ordered`. If it compares all bits, no bias is needed, and a descending order swaps the arguments.
        let whole = keys.floats && keys.whole();
        let (first, second) = if whole && always != 0 { ("b", "a") } else { ("a", "b") };
        let bias = (1u64 << high).wrapping_sub(keys.flip);
        let number = |x: &str| {
            let turned = match keys.flip {
                flip if whole => return format!("op_rank({x}, {flip:#x}{suffix})"),
                flip if keys.floats && always == 0 => format!("op_rank({x}, {flip:#x}{suffix}) + {bias:#x}{suffix}"),
                flip if keys.floats => format!("~(op_rank({x}, {flip:#x}{suffix}) + {bias:#x}{suffix})"),
                0 => format!("{x} ^ {always:#x}{suffix}"),
                flip => format!("{x} ^ ({x} >> {high} != 0 ? {flip:#x}{suffix} : 0{suffix}) ^ {always:#x}{suffix}"),
            };
            format!("(({turned}) & {mask:#x}{suffix})")
        };
        // Mesa's compiler ends the process at a comparison that is always false.
        let expression = if mask == 0 { "0".to_owned() } else { format!("{} < {}", number(first), number(second)) };
        let texts = Texts::new(ty, "", &expression);
        let texts = if keys.floats {
            texts.with_functions(&format!("{FLOATS}FLOAT_RANK(op_rank, {word}, {})\n", 8 * keys.bytes))
        } else {
            texts
        };
        Ok((Code(Text::Prelude(texts.prelude("order of elements", keys.bytes, "bool", "op_less", ""))), false))
    }
}

/// A user's order, given twice: as a Rust function and as an OpenCL C expression over `a` and `b`. The function returns true if
/// the first element comes before the second; the expression is then not 0.
///
/// The order must be a strict weak order. No element is before itself; of two elements, at most one is before the
/// other. If `a` is before `b` and `b` before `c`, then `a` is before `c`. Two elements are equal if neither is before
/// the other; equality is transitive too. If the order breaks these rules, or if function and expression differ,
/// results are unspecified. Calls still end, and write only to their outputs.
///
/// ```
/// use oclprim::{Device, op::Less};
///
/// let by_last_digit = Less::new("by last digit", |a: &u32, b: &u32| a % 10 < b % 10, "a % 10 < b % 10");
/// let sorted = Device::best()?.sort(&[31, 19, 11, 40], &by_last_digit)?;
/// assert_eq!(sorted.to_vec()?, [40, 31, 11, 19]);
/// assert_eq!(by_last_digit.name(), "by last digit");
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Over a struct whose definition in OpenCL C has the same memory layout as in Rust:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use oclprim::{Device, op::Less};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// #[repr(C)]
/// struct Event {
///     time: f32,
///     id: u32,
/// }
///
/// let order = Less::of_struct(
///     "by time, then id",
///     "Event",
///     "typedef struct { float time; uint id; } Event;",
///     |a: &Event, b: &Event| a.time < b.time || (a.time == b.time && a.id < b.id),
///     "a.time < b.time || (a.time == b.time && a.id < b.id)",
/// );
/// let events = [Event { time: 2.5, id: 1 }, Event { time: 0.5, id: 9 }, Event { time: 0.5, id: 3 }];
/// let sorted = Device::best()?.sort(&events, &order)?.to_vec()?;
/// assert_eq!(sorted.iter().map(|event| event.id).collect::<Vec<_>>(), [3, 9, 1]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone)]
pub struct Less<F> {
    name: String,
    less: F,
    texts: Texts,
    needs_fp64: bool,
}

impl<F> Less<F> {
    /// Maximum bytes of an element: local memory holds tiles of elements.
    ///
    /// ```
    /// use oclprim::{Device, ErrorKind, op::Less};
    ///
    /// let by_first = |a: &[u8; 65], b: &[u8; 65]| a[0] < b[0];
    /// let text = "typedef struct { uchar x[65]; } Long;";
    /// let by_first = Less::of_struct("by first", "Long", text, by_first, "a.x[0] < b.x[0]");
    /// let error = Device::cpu().sort(&[[0u8; 65]; 2], &by_first).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Unsupported);
    /// ```
    pub const MAX_BYTES: usize = 64;

    /// An order of an element type that OpenCL C computes in; `f16` and `bf16` are not such types.
    ///
    /// The driver compiles `expression` into this process, so it must never come from untrusted input. See
    /// [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, op::Less};
    ///
    /// let by_size = Less::new("by size", |a: &i32, b: &i32| a.unsigned_abs() < b.unsigned_abs(), "abs(a) < abs(b)");
    /// assert_eq!(Device::best()?.sort(&[-5, 2, 3], &by_size)?.to_vec()?, [2, 3, -5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new<T: Element<Acc = T>>(name: &str, less: F, expression: &str) -> Self
    where
        F: Fn(&T, &T) -> bool,
    {
        let order = Self::of_struct(name, T::TYPE.storage(), "", less, expression);
        Self { needs_fp64: T::TYPE.needs_fp64(), ..order }
    }

    /// An order of a user's type. The type's name in OpenCL C is `type_name`, and the text `types` defines it. A kernel
    /// does not build if the two types differ in size. [`Operator::of_struct`](super::Operator::of_struct) lists names
    /// that `type_name` and `types` must not use.
    ///
    /// The driver compiles `type_name`, `types` and `expression` into this process, so they must never come from untrusted
    /// input. See [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, op::Less};
    ///
    /// let by_last = |a: &[u16; 2], b: &[u16; 2]| a[1] < b[1];
    /// let text = "typedef struct { ushort x[2]; } Span;";
    /// let by_last = Less::of_struct("by last", "Span", text, by_last, "a.x[1] < b.x[1]");
    /// assert_eq!(Device::best()?.sort(&[[1, 9], [2, 4]], &by_last)?.to_vec()?, [[2, 4], [1, 9]]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn of_struct<T: Pod>(name: &str, type_name: &str, types: &str, less: F, expression: &str) -> Self
    where
        F: Fn(&T, &T) -> bool,
    {
        let texts = Texts::new(type_name, types, expression);
        Self { name: quoted(name), less, texts, needs_fp64: false }
    }

    /// The order, with OpenCL C functions that its expression calls. Give the functions a prefix of your own: a kernel
    /// does not build if its file has a function of the same name.
    ///
    /// The driver compiles `text` into this process, so it must never come from untrusted input. See
    /// [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, op::Less};
    ///
    /// let text = "uint my_bits(uint x) { return popcount(x); }";
    /// let by_bits = Less::new("by bits", |a: &u32, b: &u32| a.count_ones() < b.count_ones(), "my_bits(a) < my_bits(b)");
    /// let sorted = Device::best()?.sort(&[7, 8, 3], &by_bits.with_functions(text))?;
    /// assert_eq!(sorted.to_vec()?, [8, 3, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_functions(self, text: &str) -> Self {
        Self { texts: self.texts.with_functions(text), ..self }
    }

    /// Sets whether a device needs fp64 for the order.
    #[cfg(feature = "macros")]
    pub(crate) fn with_fp64(self, needs_fp64: bool) -> Self {
        Self { needs_fp64, ..self }
    }

    /// The order's name, as it appears in the compiler's messages.
    ///
    /// ```
    /// let order = oclprim::op::Less::new("by last digit", |a: &u32, b: &u32| a % 10 < b % 10, "a % 10 < b % 10");
    /// assert_eq!(order.name(), "by last digit");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(feature = "macros")]
impl<F> Less<F> {
    /// The operator that takes the lesser of two values.
    pub(crate) fn lesser<T: Pod>(&self, any: T) -> super::Operator<T, impl Fn(T, T) -> T>
    where
        F: Fn(&T, &T) -> bool,
    {
        let choose = |a, b| if (self.less)(&a, &b) { a } else { b };
        super::Operator::of_texts(&self.name, any, choose, self.texts.choice(), self.needs_fp64)
    }
}

impl<F> Sealed for Less<F> {}

impl<T: Pod, F: Fn(&T, &T) -> bool + Sync> Compare<T> for Less<F> {
    fn function(&self) -> Result<impl Fn(&T, &T) -> bool + Sync> {
        let (size, most) = (size_of::<T>(), Self::MAX_BYTES);
        if !(1..=most).contains(&size) {
            let name = &self.name;
            return Err(Error::unsupported(format!(
                "order {name} is of elements of {size} bytes; 1 to {most} are possible"
            )));
        }
        Ok(&self.less)
    }

    fn ranks(&self) -> Result<impl Ranks<T>> {
        let _known = Compare::<T>::function(self)?;
        Ok(ByFunction(&self.less))
    }

    fn source(&self) -> Result<(Code, bool)> {
        let prelude = self.texts.prelude(&format!("order {}", self.name), size_of::<T>(), "bool", "op_less", "");
        Ok((Code(Text::Prelude(prelude)), self.needs_fp64))
    }
}

impl<F> fmt::Debug for Less<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, texts: Texts { expression, .. }, .. } = self;
        write!(f, "Less({name}: {expression})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_follow_the_order_of_sorts() {
        let less = |order: &Order, a: f32, b: f32| Compare::function(order).unwrap()(&a, &b);
        let (up, total) = (Order::ascending(), Order::ascending().total_order());
        let differ = [(-f32::NAN, f32::NEG_INFINITY), (-1.0, -0.0), (-0.0, 0.0), (f32::INFINITY, f32::NAN)];
        for (a, b) in differ {
            assert!(less(&total, a, b) && !less(&total, b, a) && !less(&total, a, a), "{a} {b}");
            assert!(less(&Order::descending().total_order(), b, a), "{a} {b}");
        }
        for (a, b) in [(-1.0, -0.0), (f32::INFINITY, -f32::NAN), (f32::NEG_INFINITY, f32::NAN)] {
            assert!(less(&up, a, b) && !less(&up, b, a), "{a} {b}");
            assert!(less(&Order::descending(), b, a) && !less(&Order::descending(), a, b), "{a} {b}");
        }
        for (a, b) in [(-0.0, 0.0), (-f32::NAN, f32::NAN)] {
            assert!(!less(&up, a, b) && !less(&up, b, a), "{a} {b}");
        }
        let sign = Order::ascending().bits(15..16);
        assert!(Compare::<i16>::function(&sign).unwrap()(&-1, &1) && !Compare::<i16>::function(&sign).unwrap()(&1, &2));
        assert!(Compare::<i16>::function(&up.clone().bits(0..17)).is_err());
        let (source, _) = Compare::<u32>::source(&up).unwrap();
        assert!(format!("{source:?}").contains("((a ^ 0x0u) & 0xffffffffu)"), "{source:?}");
    }
}
