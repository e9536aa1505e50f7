//! Support for the code that `oclprim-macros` writes into a user's crate: descriptions of functions and types, and the
//! constructors of operators.
//!
//! A function is translated once, when the user's crate is compiled. Its text becomes a part of a program when an
//! operator is made: helpers first, then each type and function after those that it uses.

mod helpers;
mod twin;

use std::any::TypeId;

use bytemuck::Pod;

pub use self::twin::*;
use crate::{
    Device, Element, ElementType,
    op::{CapturingMap, Less, Map, Operator, argument_names},
    rng::Rng,
    source::load::{Struct, Type},
};

/// The text of a function or a type in OpenCL C, and what it uses.
#[derive(Debug)]
pub struct Item {
    /// The start of the name in OpenCL C; for a scalar type, the whole name.
    pub name: &'static str,
    /// The user's file, which the compiler's messages name.
    pub file: &'static str,
    /// The definition; empty for scalar types. `@self@` is the name, `@t0@` that of the first type, `@f0@` that of the first
    /// function, and so on.
    pub text: &'static str,
    /// Names of the helpers that the text calls.
    pub helpers: &'static [&'static str],
    pub types: &'static [&'static Item],
    pub functions: &'static [&'static Item],
    /// For a struct, its size in Rust, and the offset of each field.
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
    /// True if the type is `f64`.
    pub fp64: bool,
}

/// The text of an item and of all items that it uses; each definition comes after those that it uses.
#[derive(Default)]
struct Program {
    helpers: Vec<&'static str>,
    /// Names and definitions.
    definitions: Vec<(String, String)>,
    fp64: bool,
}

impl Program {
    fn of(item: &'static Item) -> (String, Self) {
        let mut program = Self::default();
        (program.add(item), program)
    }

    /// Adds an item, and returns its name. The name contains a digest of the text. So two items of one name get
    /// different names, and an item has the same name in every program.
    fn add(&mut self, item: &'static Item) -> String {
        self.fp64 |= item.fp64;
        self.helpers.extend(item.helpers);
        let names = |program: &mut Self, used: &[&'static Item]| -> Vec<String> {
            used.iter().map(|item| program.add(item)).collect()
        };
        let (types, functions) = (names(self, item.types), names(self, item.functions));
        if item.text.is_empty() {
            return item.name.to_owned();
        }
        let mut text = item.text.to_owned();
        for (kind, names) in [('t', types), ('f', functions)] {
            for (index, name) in names.iter().enumerate() {
                text = text.replace(&format!("@{kind}{index}@"), name);
            }
        }
        if item.size > 0 {
            let offsets: String = item
                .fields
                .iter()
                .map(|(name, at)| format!(" && __builtin_offsetof(@self@, {name}) == {at}"))
                .collect();
            text +=
                &format!("typedef char @self@_has_rust_layout[sizeof(@self@) == {}{offsets} ? 1 : -1];\n", item.size);
        }
        let digest = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let name = format!("{}_{digest:016x}", item.name);
        if !self.definitions.iter().any(|(known, _)| *known == name) {
            let file = item.file.replace(['"', '\\', '\n', '\r'], "/");
            let text = format!("#line 1 \"{file}\"\n{}", text.replace("@self@", &name));
            self.definitions.push((name.clone(), text));
        }
        name
    }

    /// A program may contain several such texts. The `#ifndef` lines let the compiler see each definition once.
    fn text(&self) -> String {
        let mut text = helpers::text(self.helpers.iter().copied());
        for (name, definition) in &self.definitions {
            text += &format!("#ifndef {name}_is_there\n#define {name}_is_there\n{definition}#endif\n");
        }
        text
    }
}

/// A function with `#[device]`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a function with #[device]")]
pub trait Function {
    const ITEM: &'static Item;
}

/// A type that has the same memory layout in Rust and in OpenCL C: the scalar types, and structs with `#[derive(SharedType)]`.
#[diagnostic::on_unimplemented(
    message = "devices do not know the type `{Self}`",
    note = "for a struct, write `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable, oclprim::SharedType)]` and `#[repr(C)]`"
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
                    &Item { name: $name, file: "", text: "", helpers: &[], types: &[], functions: &[], size: 0, fields: &[], fp64: $fp64 };

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

/// A component of an item: its type in Rust and in OpenCL C.
pub type Component = (TypeId, Type);

/// The single component of an item that is a struct.
pub fn component<T: SharedType + 'static>() -> Component {
    let (name, program) = Program::of(T::ITEM);
    let (definition, size, needs_fp64) = (program.text(), size_of::<T>(), program.fp64);
    (TypeId::of::<T>(), Type::Struct(Struct { name, definition, size, needs_fp64 }))
}

/// The operator of a function with `#[operator]`.
pub fn operator<T: Pod + SharedType, F: Fn(T, T) -> T>(
    name: &str,
    identity: T,
    combine: F,
    item: &'static Item,
) -> Operator<T, F> {
    let ((type_name, types), (function, program)) = (Program::of(T::ITEM), Program::of(item));
    let call = format!("{function}(a, b)");
    Operator::of_struct(name, &type_name, &types.text(), identity, combine, &call)
        .with_functions(&program.text())
        .with_fp64(program.fp64 || types.fp64)
}

/// The order of a function with `#[order]`.
pub fn order<T: Pod + SharedType, F: Fn(&T, &T) -> bool>(name: &str, less: F, item: &'static Item) -> Less<F> {
    let ((type_name, types), (function, program)) = (Program::of(T::ITEM), Program::of(item));
    let call = format!("{function}(a, b)");
    Less::of_struct::<T>(name, &type_name, &types.text(), less, &call)
        .with_functions(&program.text())
        .with_fp64(program.fp64 || types.fp64)
}

/// The map of `map!`, whose argument has this number of components.
pub fn map<T, U, F: Fn(T) -> U>(function: F, item: &'static Item, components: usize) -> Map<F> {
    map_with(function, item, components, 0)
}

fn map_with<T, U, F: Fn(T) -> U>(function: F, item: &'static Item, components: usize, captured: usize) -> Map<F> {
    let ((name, program), arguments) = (Program::of(item), argument_names(components, captured).join(", "));
    Map::new(function, format!("{name}({arguments})")).with_functions(program.text())
}

/// The map of `map!` with captured variables.
pub fn capturing_map<T, U, F: Fn(T) -> U>(
    function: F,
    item: &'static Item,
    components: usize,
    captured: Vec<(ElementType, [u8; 8])>,
) -> CapturingMap<F> {
    CapturingMap { map: map_with(function, item, components, captured.len()), captured }
}

/// The type of a captured value, and its bytes.
pub fn captured<T: Element>(value: T) -> (ElementType, [u8; 8]) {
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    (T::TYPE, bytes)
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
pub fn test_operator<T: Pod + SharedType, F: Fn(T, T) -> T>(operator: &Operator<T, F>) {
    const PAIRS: usize = 4096;
    let (a, b) = (edges::<T>(PAIRS, 1), edges::<T>(PAIRS, 2));
    // First in Rust: a function that does not end there must not run on a device.
    let want: Vec<T> = a.iter().zip(&b).map(|(a, b)| (operator.combine)(*a, *b)).collect();
    for device in devices(operator.needs_fp64) {
        let name = operator.name();
        let found = operator.pairs(&device, &a, &b).unwrap_or_else(|error| panic!("{name} on {device:?}: {error}"));
        for (i, found) in found.iter().flatten().enumerate() {
            let of = |x: &T| format!("{:02x?}", bytemuck::bytes_of(x));
            assert!(
                T::same(found, &want[i]),
                "{name} on {device:?}: for the bytes {} and {} OpenCL C gives {}, Rust gives {}",
                of(&a[i]),
                of(&b[i]),
                of(found),
                of(&want[i])
            );
        }
    }
}

/// Asserts that an order has the same results on every device as in Rust, as [`test_operator`] does.
///
/// # Panics
///
/// If a result differs, or a device fails.
pub fn test_order<T: Pod + SharedType, F: Fn(&T, &T) -> bool>(order: &Less<F>) {
    test_operator(&order.lesser(T::zeroed()));
}
