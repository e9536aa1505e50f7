//! Shared parts of the specs of merges.

use std::fmt::Debug;

use bytemuck::{Pod, Zeroable};

use crate::{
    Device, Element, ElementType, Order,
    check::{
        Level,
        data::Data,
        keys::{Keys, rank},
        sorted_indices, stands_for_its_size,
    },
    op::{Compare, Less},
    with_element,
};

/// Element types of the cases.
pub(super) trait Value: Pod + PartialEq + Debug + Send + Sync {}
impl<T: Pod + PartialEq + Debug + Send + Sync> Value for T {}

/// An order, the numbers that define it, and elements for it.
#[derive(Clone)]
pub(super) struct Tried<T, C> {
    /// Suffix of the operation's name; empty for the elements' own order.
    pub(super) name: &'static str,
    pub(super) element: ElementType,
    pub(super) order: C,
    /// `a` is before `b` if `number(a) < number(b)`.
    number: fn(&T) -> u64,
    make: fn(Keys, usize) -> Vec<T>,
}

impl<T: Value, C: Compare<T>> Tried<T, C> {
    pub(super) fn form(&self, form: &str) -> String {
        format!("{form}{}", self.name)
    }

    /// `offset` other elements, then `n` elements.
    pub(super) fn make(&self, keys: Keys, n: usize, offset: usize) -> Vec<T> {
        (self.make)(keys, n + offset)
    }

    pub(super) fn before(&self, a: &T, b: &T) -> bool {
        (self.number)(a) < (self.number)(b)
    }

    /// Indices that sort `x`, as from a stable argsort.
    pub(super) fn argsort(&self, x: &[T]) -> Vec<usize> {
        sorted_indices(x.iter().map(|x| (self.number)(x).into()))
    }

    /// `offset` other elements, then `n` sorted ones. Another `part` gives other elements.
    pub(super) fn sorted(&self, keys: Keys, n: usize, offset: usize, part: usize) -> Vec<T> {
        let all = self.make(keys, n, offset + part);
        let x = &all[offset + part..];
        let sorted = self.argsort(x).into_iter().map(|index| x[index]);
        all[..offset].iter().copied().chain(sorted).collect()
    }
}

/// User-defined order with a function pointer.
pub(super) type Own<T> = Less<fn(&T, &T) -> bool>;

/// Visitor that makes cases or programs of an order.
pub(super) trait Visit {
    fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>);
}

/// Eight bytes, of which four are compared.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Event {
    time: f32,
    id: u32,
}

/// Three numbers of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Colour([u8; 3]);

/// Twelve bytes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Point([i32; 3]);

/// Elements of 16 bytes (`N = 2`) or of the largest size, 64 bytes (`N = 8`).
type Named<const N: usize> = [u64; N];

fn of_numbers<T: Pod, N: Element>(keys: Keys, n: usize, one: fn(N, usize) -> T) -> Vec<T> {
    keys.make::<N>(n).into_iter().zip(0..).map(|(key, index)| one(key, index)).collect()
}

pub(super) fn by_size() -> Tried<i32, Own<i32>> {
    let before: fn(&i32, &i32) -> bool = |a, b| a.unsigned_abs() < b.unsigned_abs();
    let order = Less::new("by size", before, "abs(a) < abs(b)");
    let make = |keys: Keys, n| keys.make(n);
    Tried { name: " by size", element: ElementType::I32, order, number: |x| x.unsigned_abs().into(), make }
}

fn by_bits() -> Tried<u32, Own<u32>> {
    let before: fn(&u32, &u32) -> bool = |a, b| a.count_ones() > b.count_ones();
    let order = Less::new("by bits", before, "own_bits(a) > own_bits(b)");
    let order = order.with_functions("uint own_bits(uint x)\n{\n    return popcount(x);\n}");
    let make = |keys: Keys, n| keys.make(n);
    Tried { name: " by bits", element: ElementType::U32, order, number: |x| x.count_zeros().into(), make }
}

fn by_value() -> Tried<f64, Own<f64>> {
    let before: fn(&f64, &f64) -> bool = |a, b| a < b;
    let make = |keys: Keys, n| of_numbers(keys, n, |key: i32, _| f64::from(key % 1000) / 8.0);
    let order = Less::new("by value", before, "a < b");
    Tried { name: " by value", element: ElementType::F64, order, number: |&x| rank(x), make }
}

pub(super) fn by_time() -> Tried<Event, Own<Event>> {
    let before: fn(&Event, &Event) -> bool = |a, b| a.time > b.time;
    let types = "typedef struct {\n    float time;\n    uint id;\n} Event;";
    let make = |keys: Keys, n| of_numbers(keys, n, |key: i16, id| Event { time: f32::from(key), id: id as u32 });
    let order = Less::of_struct("by time", "Event", types, before, "a.time > b.time");
    Tried { name: " by time", element: ElementType::F32, order, number: |x| !rank(x.time), make }
}

fn by_colour() -> Tried<Colour, Own<Colour>> {
    let before: fn(&Colour, &Colour) -> bool = |a, b| a.0[1] < b.0[1];
    let types = "typedef struct {\n    uchar red, green, blue;\n} Colour;";
    let make = |keys: Keys, n| of_numbers(keys, n, |key: u8, id| Colour([id as u8, key, (id >> 8) as u8]));
    let order = Less::of_struct("by colour", "Colour", types, before, "a.green < b.green");
    Tried { name: " by colour", element: ElementType::U8, order, number: |x| x.0[1].into(), make }
}

fn by_point() -> Tried<Point, Own<Point>> {
    let before: fn(&Point, &Point) -> bool = |a, b| a.0[..2] < b.0[..2];
    let types = "typedef struct {\n    int x, y, z;\n} Point;";
    let make = |keys: Keys, n| of_numbers(keys, n, |key: i32, id| Point([key >> 28, key & 3, id as i32]));
    let order = Less::of_struct("by point", "Point", types, before, "a.x < b.x || (a.x == b.x && a.y < b.y)");
    Tried { name: " by point", element: ElementType::I32, order, number: |x| rank(x.0[0]) << 32 | rank(x.0[1]), make }
}

pub(super) fn by_name<const N: usize>(name: &'static str) -> Tried<Named<N>, Own<Named<N>>> {
    let before: fn(&Named<N>, &Named<N>) -> bool = |a, b| a[0] < b[0];
    let types = format!("typedef struct {{\n    ulong name[{N}];\n}} Name;");
    let make = |keys: Keys, n| {
        of_numbers(keys, n, |key: u16, id| {
            let mut name = [id as u64; N];
            name[0] = u64::from(key) << 48;
            name
        })
    };
    let order = Less::of_struct("by name", "Name", &types, before, "a.name[0] < b.name[0]");
    Tried { name, element: ElementType::U64, order, number: |x| x[0], make }
}

pub(super) fn own<T: Element>(descending: bool) -> Tried<T, Order> {
    let make = |keys: Keys, n: usize| keys.make::<T>(n);
    if descending {
        let number = |x: &T| !rank(*x);
        Tried { name: " down", element: T::TYPE, order: Order::descending(), number, make }
    } else {
        Tried { name: "", element: T::TYPE, order: Order::ascending(), number: |x| rank(*x), make }
    }
}

/// Order by the lowest four bits only.
fn by_low_bits() -> Tried<u16, Order> {
    let order = Order::ascending().bits(0..4);
    let make = |keys: Keys, n| keys.make(n);
    Tried { name: " by low bits", element: ElementType::U16, order, number: |x| (x % 16).into(), make }
}

/// Visits every order of a level.
pub(super) fn visit_all(level: Level, visitor: &mut impl Visit) {
    for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
        with_element!(element, T => visitor.visit(own::<T>(false)));
    }
    visitor.visit(by_time());
    if level >= Level::Quick {
        visitor.visit(own::<f32>(true));
        visitor.visit(by_size());
        visitor.visit(by_colour());
        visitor.visit(by_name::<2>(" by name"));
    }
    if level >= Level::Full {
        visitor.visit(own::<i64>(true));
        visitor.visit(by_low_bits());
        visitor.visit(by_bits());
        visitor.visit(by_value());
        visitor.visit(by_point());
        visitor.visit(by_name::<8>(" by long name"));
    }
}

/// Lengths of the two ranges of a case, and the offset of the first range and of the outputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct What {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) offset: usize,
    pub(super) keys: Keys,
}

impl What {
    pub(super) fn shape(&self) -> String {
        format!("n = {} and {} at {}", self.a, self.b, self.offset)
    }
}

/// Three numbers of elements per tile, for elements of `size` bytes. The first two are for GPUs with work-groups of
/// 256, without and with values, as in `gpu::shape`. The third is for CPU drivers.
pub(super) fn tiles(size: usize) -> [usize; 3] {
    let of = |items: usize| 256 * ((4 * items / size.max(4)).max(1) | 1);
    [of(17), of(13), 4096]
}

/// Ranges of the cases for elements of `size` bytes.
pub(super) fn ranges(level: Level, size: usize) -> Vec<What> {
    let any = Keys::As(Data::Bits);
    let mut all = vec![(0, 0, 0, any), (1, 0, 1, any), (0, 5, 0, any), (170, 133, 3, any), (40, 600, 0, Keys::Zipf)];
    if level >= Level::Quick {
        all.extend([
            (5000, 3000, 1, any),
            (4097, 1, 3, Keys::Signs),
            (700, 1100, 1, Keys::As(Data::Nan)),
            (2500, 4500, 0, Keys::As(Data::Constant)),
        ]);
    }
    if level >= Level::Full {
        for tile in tiles(size) {
            for len in [tile - 1, tile, tile + 1] {
                all.extend([(len, 0, 0, any), (0, len, 1, any), (len / 3, len - len / 3, 2, Keys::Zipf)]);
                all.extend([(len, 3 * tile + 5, 1, any), (100_003, len, 0, any)]);
            }
        }
        all.extend([(300_007, 250_001, 1, any), (1, 100_000, 0, any), (262_144, 262_144, 0, any)]);
        // These sizes have large tiles on a GPU of 132 compute units.
        all.extend((size == 4).then_some((1_400_003, 900_011, 1, any)));
        all.extend(Keys::ALL.map(|keys| (20_011, 30_013, 1, keys)));
    }
    all.into_iter().map(|(a, b, offset, keys)| What { a, b, offset, keys }).collect()
}

/// Indices, truncated to the size of a value, so that a wrong order of equal keys shows.
pub(super) fn numbers<V: Pod>(n: usize, first: usize) -> Vec<V> {
    let mut values: Vec<V> = bytemuck::zeroed_vec(n);
    for (i, value) in (first..).zip(&mut values) {
        let number = (i as u128).wrapping_mul(0x1_0000_0001_0000_0000_0000_0000_0001).to_le_bytes();
        let bytes = bytemuck::bytes_of_mut(value);
        let len = bytes.len().min(number.len());
        bytes[..len].copy_from_slice(&number[..len]);
    }
    values
}

/// `n` sorted elements. Another `part` gives other elements.
pub(super) fn sorted<T: Element>(n: usize, part: u64) -> crate::Result<Vec<T>> {
    Device::cpu().sort(&Data::Random.generate::<T>(n, n as u64 + part), Order::ascending())?.to_vec()
}
