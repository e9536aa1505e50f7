//! What `oclprim-macros` writes into a user's crate: descriptions of functions and types, and the constructors of operators.
//!
//! A function is translated once, when the user's crate is compiled. Its text becomes a part of a program when an operator is
//! made: helpers first, then each type and function after those that it uses.

mod helpers;
mod twin;

use std::fmt::Write;

use bytemuck::Pod;

pub use self::twin::{
    Bits, Count, Float, Number, Whole, abs, add, and, clamp, div, max, min, mul, neg, or, rem, shl, shr, sub, xor,
};
use crate::{
    Device,
    op::{Less, Map, Operator},
    rng::Rng,
};

/// The text of a function or a type in OpenCL C, and what it uses.
#[derive(Debug)]
pub struct Item {
    /// The name in OpenCL C.
    pub name: &'static str,
    /// The user's file, which the compiler's messages name.
    pub file: &'static str,
    /// The definition; empty for scalar types.
    pub text: &'static str,
    /// Names of the helpers that the text calls.
    pub helpers: &'static [&'static str],
    /// Types and functions that the text uses.
    pub uses: &'static [&'static Item],
    /// For a struct, its size in Rust, and the offset of each field.
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
    /// The type is `f64`.
    pub fp64: bool,
}

impl Item {
    /// The item and all that it uses, each after what it uses.
    fn all(&'static self) -> Vec<&'static Item> {
        fn visit(item: &'static Item, all: &mut Vec<&'static Item>) {
            if !all.iter().any(|known| std::ptr::eq(*known, item)) {
                item.uses.iter().for_each(|used| visit(used, all));
                all.push(item);
            }
        }
        let mut all = Vec::new();
        visit(self, &mut all);
        all
    }

    fn needs_fp64(&'static self) -> bool {
        self.all().iter().any(|item| item.fp64)
    }

    /// The text of a program with this item. Programs may join several such texts: each definition stands once.
    fn source(&'static self) -> String {
        let all = self.all();
        let mut text = helpers::text(all.iter().flat_map(|item| item.helpers.iter().copied()));
        for item in all.iter().filter(|item| !item.text.is_empty()) {
            let (name, file) = (item.name, item.file.replace(['"', '\\', '\n', '\r'], "/"));
            let _ = writeln!(text, "#ifndef {name}_is_there\n#define {name}_is_there\n#line 1 \"{file}\"");
            text += item.text;
            if item.size > 0 {
                let offsets = item.fields.iter();
                let offsets = offsets.map(|(field, at)| format!(" && __builtin_offsetof({name}, {field}) == {at}"));
                let (size, offsets) = (item.size, offsets.collect::<String>());
                let _ = writeln!(
                    text,
                    "typedef char {name}_layout_is_that_of_rust[sizeof({name}) == {size}{offsets} ? 1 : -1];"
                );
            }
            text += "#endif\n";
        }
        text
    }
}

/// A function with `#[device]`.
pub trait Function {
    const ITEM: &'static Item;
}

/// A type that has the same memory layout in Rust and in OpenCL C: the scalar types, and structs with `#[derive(Device)]`.
#[diagnostic::on_unimplemented(
    message = "devices do not know the type `{Self}`",
    note = "for a struct, write `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable, oclprim::Device)]` and `#[repr(C)]`"
)]
pub trait SharedType: Copy {
    #[doc(hidden)]
    const ITEM: &'static Item;

    /// True if both values have the same bits, or are NaN.
    #[doc(hidden)]
    fn same(a: &Self, b: &Self) -> bool;

    /// A value for tests: an extreme, or random bits.
    #[doc(hidden)]
    fn edge(next: &mut dyn FnMut() -> u64) -> Self;
}

macro_rules! scalars {
    ($($ty:ident $name:literal $fp64:literal $same:expr, $edge:expr;)*) => {
        $(
            impl SharedType for $ty {
                const ITEM: &'static Item =
                    &Item { name: $name, file: "", text: "", helpers: &[], uses: &[], size: 0, fields: &[], fp64: $fp64 };

                fn same(a: &Self, b: &Self) -> bool {
                    let same: fn(&$ty, &$ty) -> bool = $same;
                    same(a, b)
                }

                fn edge(next: &mut dyn FnMut() -> u64) -> Self {
                    let edge: fn(u64, u64) -> $ty = $edge;
                    edge(next(), next())
                }
            }
        )*
    };
    (@ints $($ty:ident $name:literal)*) => {
        scalars! { $(
            $ty $name false |a, b| a == b, |kind, bits| match kind % 8 {
                0 => 0,
                1 => 1,
                2 => $ty::MAX,
                3 => $ty::MIN,
                4 => (0 as $ty).wrapping_sub(1),
                5 => (bits % 100) as $ty,
                _ => bits as $ty,
            };
        )* }
    };
    (@floats $($ty:ident $bits:ident $name:literal $fp64:literal)*) => {
        scalars! { $(
            $ty $name $fp64 |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), |kind, bits| {
                let size = match kind % 12 {
                    0 => 0.0,
                    1 => $ty::INFINITY,
                    2 => $ty::NAN,
                    3 => $ty::from_bits(1),
                    4 => $ty::MIN_POSITIVE,
                    5 => $ty::from_bits($ty::MIN_POSITIVE.to_bits() - 1),
                    6 => $ty::MAX,
                    7 => 1.0,
                    8 => (bits % 100) as $ty,
                    9 => (bits % 1000) as $ty / 7.0,
                    _ => $ty::from_bits(bits as $bits),
                };
                if bits >> 63 == 0 { size } else { -size }
            };
        )* }
    };
}

scalars! { @ints i8 "char" i16 "short" i32 "int" i64 "long" u8 "uchar" u16 "ushort" u32 "uint" u64 "ulong" }
scalars! { @floats f32 u32 "float" false f64 u64 "double" true }
scalars! { bool "bool" false |a, b| a == b, |kind, _| kind % 2 == 0; }

/// The operator of a function with `#[operator]`.
pub fn operator<T: Pod + SharedType>(
    name: &str,
    identity: T,
    combine: fn(T, T) -> T,
    item: &'static Item,
) -> Operator<T, fn(T, T) -> T> {
    let call = format!("{}(a, b)", item.name);
    let operator = Operator::of_struct(name, T::ITEM.name, &T::ITEM.source(), identity, combine, &call);
    operator.with_functions(&item.source()).with_fp64(item.needs_fp64() || T::ITEM.needs_fp64())
}

/// The order of a function with `#[order]`.
pub fn order<T: Pod + SharedType>(
    name: &str,
    less: fn(&T, &T) -> bool,
    item: &'static Item,
) -> Less<fn(&T, &T) -> bool> {
    let call = format!("{}(a, b)", item.name);
    let order = Less::of_struct::<T>(name, T::ITEM.name, &T::ITEM.source(), less, &call);
    order.with_functions(&item.source()).with_fp64(item.needs_fp64() || T::ITEM.needs_fp64())
}

/// The map of `map!`.
pub fn map<T, U>(function: fn(T) -> U, item: &'static Item) -> Map<fn(T) -> U> {
    Map::new(function, format!("{}(x)", item.name)).with_functions(item.source())
}

/// Values for tests.
pub fn edges<T: SharedType>(n: usize, seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let mut next = || rng.next();
    (0..n).map(|_| T::edge(&mut next)).collect()
}

/// Every OpenCL device that can run the item.
fn devices(fp64: bool) -> impl Iterator<Item = Device> {
    let devices = Device::list().into_iter().enumerate().filter_map(|(index, _)| Device::at(index).ok());
    devices.filter(move |device| {
        let caps = device.capabilities().ok().flatten();
        caps.is_some_and(|caps| caps.fp64 || !fp64)
    })
}

/// Asserts that an operator has the same results on every device as in Rust, for 4,096 pairs of extremes and random values.
///
/// # Panics
///
/// If a result differs, or a device fails.
pub fn test_operator<T: Pod + SharedType>(operator: &Operator<T, fn(T, T) -> T>) {
    const PAIRS: usize = 4096;
    let (a, b) = (edges::<T>(PAIRS, 1), edges::<T>(PAIRS, 2));
    for device in devices(operator.needs_fp64) {
        let name = operator.name();
        let found = operator.pairs(&device, &a, &b).unwrap_or_else(|error| panic!("{name} on {device:?}: {error}"));
        for (i, found) in found.iter().flatten().enumerate() {
            let want = (operator.combine)(a[i], b[i]);
            let of = |x: &T| format!("{:02x?}", bytemuck::bytes_of(x));
            assert!(
                T::same(found, &want),
                "{name} on {device:?}: of the bytes {} and {} it is {} in OpenCL C, {} in Rust",
                of(&a[i]),
                of(&b[i]),
                of(found),
                of(&want)
            );
        }
    }
}

/// Asserts that every device sorts 4,096 extremes and random values as Rust does.
///
/// # Panics
///
/// If the results differ, or a device fails.
pub fn test_order<T: Pod + SharedType + Send + Sync>(order: &Less<fn(&T, &T) -> bool>) {
    let values = edges::<T>(4096, 3);
    let bytes = |values: Vec<T>| bytemuck::cast_slice::<T, u8>(&values).to_vec();
    let sorted = |device: &Device| device.merge_sort(&values, order).and_then(|sorted| sorted.to_vec()).map(bytes);
    let want = sorted(&Device::cpu()).expect("the CPU sorts");
    for device in devices(order.needs_fp64()) {
        let found = sorted(&device).unwrap_or_else(|error| panic!("{} on {device:?}: {error}", order.name()));
        assert!(found == want, "{} on {device:?}: another order than in Rust", order.name());
    }
}
