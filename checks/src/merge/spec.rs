//! Spec of merges, and the orders that merges, merge sorts, set operations and searches share.

use std::{cmp::Ordering, fmt::Debug};

use bytemuck::{Pod, Zeroable};

use super::{search, set, sort};
use crate::{
    Capabilities, Device, Element, ElementType, Order, ProgramSpec, Scratch,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        data::Data,
        everywhere, guarded,
        keys::{Keys, rank},
        poison, same_bytes, sorted_indices, stands_for_its_size,
    },
    ladder::Climb,
    op::{Compare, Less},
    with_element,
};

/// The primitive's entry in the registry.
pub(crate) struct Merge;

/// Element types of the cases.
pub(super) trait Value: Pod + PartialEq + Debug + Send + Sync {}
impl<T: Pod + PartialEq + Debug + Send + Sync> Value for T {}

/// An order, its definition, and elements for it.
#[derive(Clone)]
pub(super) struct Tried<T, C> {
    /// Suffix of the operation's name; empty for the elements' own order.
    pub(super) name: &'static str,
    pub(super) element: ElementType,
    pub(super) order: C,
    before: fn(&T, &T) -> bool,
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
        (self.before)(a, b)
    }

    /// Indices that sort `x`, as from a stable argsort.
    pub(super) fn argsort(&self, x: &[T]) -> Vec<usize> {
        sorted_indices(x.len(), &|a, b| match (self.before(&x[a], &x[b]), self.before(&x[b], &x[a])) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        })
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

/// Sixteen bytes, or the largest size of elements.
type Named<const N: usize> = [u64; N];

fn of_numbers<T: Pod, N: Element>(keys: Keys, n: usize, one: fn(N, usize) -> T) -> Vec<T> {
    keys.make::<N>(n).into_iter().zip(0..).map(|(key, index)| one(key, index)).collect()
}

pub(super) fn by_size() -> Tried<i32, Own<i32>> {
    let before: fn(&i32, &i32) -> bool = |a, b| a.unsigned_abs() < b.unsigned_abs();
    let order = Less::new("by size", before, "abs(a) < abs(b)");
    Tried { name: " by size", element: ElementType::I32, order, before, make: |keys, n| keys.make(n) }
}

fn by_bits() -> Tried<u32, Own<u32>> {
    let before: fn(&u32, &u32) -> bool = |a, b| a.count_ones() > b.count_ones();
    let order = Less::new("by bits", before, "own_bits(a) > own_bits(b)");
    let order = order.with_functions("uint own_bits(uint x)\n{\n    return popcount(x);\n}");
    Tried { name: " by bits", element: ElementType::U32, order, before, make: |keys, n| keys.make(n) }
}

fn by_value() -> Tried<f64, Own<f64>> {
    let before: fn(&f64, &f64) -> bool = |a, b| a < b;
    let make = |keys: Keys, n| of_numbers(keys, n, |key: i32, _| f64::from(key % 1000) / 8.0);
    let order = Less::new("by value", before, "a < b");
    Tried { name: " by value", element: ElementType::F64, order, before, make }
}

fn by_time() -> Tried<Event, Own<Event>> {
    let before: fn(&Event, &Event) -> bool = |a, b| a.time > b.time;
    let types = "typedef struct {\n    float time;\n    uint id;\n} Event;";
    let make = |keys: Keys, n| of_numbers(keys, n, |key: i16, id| Event { time: f32::from(key), id: id as u32 });
    let order = Less::of_struct("by time", "Event", types, before, "a.time > b.time");
    Tried { name: " by time", element: ElementType::F32, order, before, make }
}

fn by_colour() -> Tried<Colour, Own<Colour>> {
    let before: fn(&Colour, &Colour) -> bool = |a, b| a.0[1] < b.0[1];
    let types = "typedef struct {\n    uchar red, green, blue;\n} Colour;";
    let make = |keys: Keys, n| of_numbers(keys, n, |key: u8, id| Colour([id as u8, key, (id >> 8) as u8]));
    let order = Less::of_struct("by colour", "Colour", types, before, "a.green < b.green");
    Tried { name: " by colour", element: ElementType::U8, order, before, make }
}

fn by_point() -> Tried<Point, Own<Point>> {
    let before: fn(&Point, &Point) -> bool = |a, b| a.0[..2] < b.0[..2];
    let types = "typedef struct {\n    int x, y, z;\n} Point;";
    let make = |keys: Keys, n| of_numbers(keys, n, |key: i32, id| Point([key >> 28, key & 3, id as i32]));
    let order = Less::of_struct("by point", "Point", types, before, "a.x < b.x || (a.x == b.x && a.y < b.y)");
    Tried { name: " by point", element: ElementType::I32, order, before, make }
}

fn by_name<const N: usize>(name: &'static str) -> Tried<Named<N>, Own<Named<N>>> {
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
    Tried { name, element: ElementType::U64, order, before, make }
}

fn own<T: Element>(descending: bool) -> Tried<T, Order> {
    let make = |keys: Keys, n: usize| keys.make::<T>(n);
    if descending {
        let before: fn(&T, &T) -> bool = |a, b| rank(*a) > rank(*b);
        Tried { name: " down", element: T::TYPE, order: Order::descending(), before, make }
    } else {
        let before: fn(&T, &T) -> bool = |a, b| rank(*a) < rank(*b);
        Tried { name: "", element: T::TYPE, order: Order::ascending(), before, make }
    }
}

/// Order by the lowest four bits only.
fn by_low_bits() -> Tried<u16, Order> {
    let before: fn(&u16, &u16) -> bool = |a, b| a % 16 < b % 16;
    let order = Order::ascending().bits(0..4);
    Tried { name: " by low bits", element: ElementType::U16, order, before, make: |keys, n| keys.make(n) }
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

/// Elements per tile for elements of `size` bytes: on GPUs with work-groups of 256 without and with values, as in
/// `gpu::shape`, and on CPU drivers.
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

fn check<T: Value, C: Compare<T>>(device: &Device, tried: &Tried<T, C>, what: What) -> Result<(), Failure> {
    let What { a, b, offset, keys } = what;
    let (all, second) = (tried.sorted(keys, a, offset, 0), tried.sorted(keys, b, 0, 1));
    let (there, second_there) = (device.upload(&all)?, device.upload(&second)?);
    let got = guarded(device, a + b, offset, |out| {
        Ok(device.merge_into(there.view(offset..)?, &second_there, out, &tried.order, &mut Scratch::new())?)
    })?;
    let first = &all[offset..];
    let want = if device.is_cpu() {
        let both = [first, &second[..]].concat();
        tried.argsort(&both).into_iter().map(|index| both[index]).collect()
    } else {
        Device::cpu().merge(first, &second, &tried.order)?.to_vec()?
    };
    same_bytes(&got, &want, "merged")
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

fn check_pairs<T: Value, C: Compare<T>, V: Value>(
    device: &Device,
    tried: &Tried<T, C>,
    what: What,
) -> Result<(), Failure> {
    let What { a, b, offset, keys } = what;
    let (all, second) = (tried.sorted(keys, a, offset, 0), tried.sorted(keys, b, 0, 1));
    let (values, second_values): (Vec<V>, Vec<V>) = (numbers(a + offset, 0), numbers(b, a + offset));
    let (there, second_there) = (device.upload(&all)?, device.upload(&second)?);
    let (values_there, second_values_there) = (device.upload(&values)?, device.upload(&second_values)?);
    let mut got_values = Vec::new();
    let got = guarded(device, a + b, offset, |out| {
        got_values = guarded(device, a + b, offset, |values_out| {
            let a = (there.view(offset..)?, values_there.view(offset..)?);
            let b = (&second_there, &second_values_there);
            Ok(device.merge_pairs_into(a, b, (out, values_out), &tried.order, &mut Scratch::new())?)
        })?;
        Ok(())
    })?;
    let (first, values) = (&all[offset..], &values[offset..]);
    let (want, want_values) = if device.is_cpu() {
        let (both, values) = ([first, &second[..]].concat(), [values, &second_values[..]].concat());
        tried.argsort(&both).into_iter().map(|index| (both[index], values[index])).unzip()
    } else {
        let (keys, values) = Device::cpu().merge_pairs((first, values), (&second, &second_values), &tried.order)?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

struct Cases {
    level: Level,
    cases: Vec<Case>,
}

impl Cases {
    fn pairs<T: Value, C: Compare<T> + Clone + Send + 'static, V: Value>(&mut self, tried: Tried<T, C>) {
        for what in ranges(self.level, size_of::<T>()) {
            let (tried, form) = (tried.clone(), tried.form(&format!("merge pairs with {} bytes", size_of::<V>())));
            let case = Case::new(form, tried.element, what.shape(), what.keys.name(), what.a + what.b, move |device| {
                everywhere(check_pairs::<T, C, V>(device, &tried, what))
            });
            self.cases.push(case);
        }
    }
}

impl Visit for Cases {
    fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
        for what in ranges(self.level, size_of::<T>()) {
            let (tried, form) = (tried.clone(), tried.form("merge"));
            let case = Case::new(form, tried.element, what.shape(), what.keys.name(), what.a + what.b, move |device| {
                check(device, &tried, what)
            });
            self.cases.push(case);
        }
    }
}

/// Checks invalid comparators. Any result is right, but calls terminate and write only to their outputs.
fn check_no_order(device: &Device, n: usize) -> Result<(), Failure> {
    let never: fn(&u32, &u32) -> bool = |_, _| false;
    let always: fn(&u32, &u32) -> bool = |_, _| true;
    let odd: fn(&u32, &u32) -> bool = |a, b| (a.wrapping_mul(0x9e37_79b1) ^ b) & 4 != 0;
    let x: Vec<u32> = Data::Random.generate(n, 5);
    let (a, b) = x.split_at(n / 3);
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    for (less, text) in [(never, "0"), (always, "1"), (odd, "((a * 0x9e3779b1u) ^ b) & 4")] {
        let (order, scratch) = (Less::new("no order", less, text), &mut Scratch::new());
        guarded(device, n, 1, |out| Ok(device.merge_into(&a, &b, out, &order, scratch)?))?;
        guarded(device, b.len(), 1, |out| {
            guarded(device, b.len(), 1, |values| {
                Ok(device.merge_sort_pairs_into(&b, &b, out, values, &order, &mut Scratch::new())?)
            })?;
            Ok(())
        })?;
        for op in crate::SetOp::ALL {
            let mut count = device.zeroed::<u64>(1)?;
            guarded(device, n / 2, 1, |out| {
                Ok(device.set_operation_into(op, &a, &b, out, &mut count, &order, scratch)?)
            })?;
            if count.to_vec()?[0] > n as u64 {
                return Err(Failure::Mismatch(format!("{} of {n} elements are kept", count.to_vec()?[0])));
            }
        }
        let lower = guarded(device, a.len(), 1, |out| Ok(device.lower_bound_into::<_, u32, _>(&b, &a, out, &order)?))?;
        let upper = guarded(device, a.len(), 1, |out| Ok(device.upper_bound_into::<_, u32, _>(&b, &a, out, &order)?))?;
        if lower.iter().chain(&upper).any(|&index| index as usize > b.len()) {
            return Err(Failure::Mismatch(format!("an index beyond {} elements", b.len())));
        }
    }
    Ok(())
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let (order, scratch) = (Order::ascending(), &mut Scratch::new());
    let (mut keys, mut values) = ([0i8; 4], [0u16; 4]);
    device.merge_into(&[-3i8, 2], &[-4, 2], &mut keys, &order, scratch)?;
    same_bytes(&keys, &[-4, -3, 2, 2], "merged")?;
    let (a, b) = ((&[-3i8, 2], &[10u16, 11]), (&[-4i8, 2], &[12u16, 13]));
    device.merge_pairs_into(a, b, (&mut keys, &mut values), &order, scratch)?;
    same_bytes(&values, &[12, 10, 11, 13], "values")?;
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let short = device.merge_into(&[1i8, 2], &[3], &mut keys, &order, scratch);
    refused(short, "a merge needs an output of 3 elements, got 4")?;
    let unequal = device.merge_pairs((&[1u8, 2], &[1u8]), (&[1u8], &[1u8]), &order).map(drop);
    refused(unequal, "merging 2 keys with 1 values")?;
    let nothing = device.merge_sort_pairs(&[1u8], &[()], &order).map(drop);
    refused(nothing, "values of 0 bytes have no places")?;
    let beyond = device.merge_sort(&[1u8], &Order::ascending().bits(2..9)).map(drop);
    refused(beyond, "bits 2..9 are not a range of the 8 bits of u8")?;
    let before: fn(&[u64; 9], &[u64; 9]) -> bool = |a, b| a < b;
    let large = Less::of_struct("large", "Large", "typedef struct { ulong x[9]; } Large;", before, "a.x[0] < b.x[0]");
    let large = device.merge(&[[0u64; 9]], &[[0; 9]], &large).map(drop);
    refused(large, "order large is of elements of 72 bytes; 1 to 64 are possible")?;
    let mut count = [0];
    let union =
        device.set_operation_into(crate::SetOp::Union, &[1i8, 2], &[3, 4, 5], &mut keys, &mut count, &order, scratch);
    refused(union, "the union has 5 elements, the output has room for 4")?;
    same_bytes(&count, &[5], "count")?;
    same_bytes(&keys, &[1, 2, 3, 4], "elements that fit")
}

impl Spec for Merge {
    fn name(&self) -> &'static str {
        "merge"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Cases { level, cases: Vec::new() };
        visit_all(level, &mut cases);
        cases.pairs::<_, _, u32>(own::<f32>(false));
        if level >= Level::Quick {
            cases.pairs::<_, _, u64>(by_size());
            cases.pairs::<_, _, [u8; 3]>(own::<u8>(false));
        }
        if level >= Level::Full {
            cases.pairs::<_, _, u8>(own::<u64>(true));
            cases.pairs::<_, _, u128>(by_time());
            cases.pairs::<_, _, [u32; 5]>(by_name::<2>(" by name"));
        }
        let mut cases = cases.cases;
        cases.extend(sort::spec::cases(level));
        cases.extend(set::spec::cases(level));
        cases.extend(search::spec::cases(level));
        for n in if level == Level::Tiny { vec![700] } else { vec![700, 20_011] } {
            cases.push(Case::new("no order", ElementType::U32, format!("n = {n}"), "random", n, move |device| {
                check_no_order(device, n)
            }));
        }
        cases.push(Case::new("merge host slices", ElementType::I8, "n = 4", "by hand", 4, check_host));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches = vec![bench_merge::<u32>(), bench_merge::<u64>(), bench_pairs()];
        benches.extend(sort::spec::benches());
        benches.extend(set::spec::benches());
        benches.extend(search::spec::benches());
        benches
    }

    #[cfg(feature = "opencl")]
    fn programs(&self, caps: &Capabilities) -> Vec<ProgramSpec> {
        programs::all(caps)
    }

    #[cfg(not(feature = "opencl"))]
    fn programs(&self, _: &Capabilities) -> Vec<ProgramSpec> {
        Vec::new()
    }
}

/// `n` sorted elements. Another `part` gives other elements.
pub(super) fn sorted<T: Element>(n: usize, part: u64) -> crate::Result<Vec<T>> {
    Device::cpu().sort(&Data::Random.generate::<T>(n, n as u64 + part), Order::ascending())?.to_vec()
}

/// Merges two ranges of `n` elements together.
fn bench_merge<T: Element>() -> Bench {
    let bytes = |n| 2 * (n * size_of::<T>()) as u64;
    Bench::new("merge", T::TYPE, bytes, |device, n| {
        let (a, b) = (sorted::<T>(n / 2, 0)?, sorted::<T>(n - n / 2, 1)?);
        let inputs = (device.upload(&a)?, device.upload(&b)?);
        let state = (device.clone(), inputs, device.zeroed::<T>(n)?, Scratch::new());
        Ok(Climb::new(
            state,
            |(_, _, out, _)| out.fill(poison()),
            |(device, (a, b), out, scratch)| device.merge_into(&*a, &*b, out, &Order::ascending(), scratch),
            move |(_, _, out, _)| {
                let want = Device::cpu().merge(&a, &b, &Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "merged")
            },
        ))
    })
}

fn bench_pairs() -> Bench {
    let bytes = |n| 16 * n as u64;
    Bench::new("merge pairs with u32", ElementType::U32, bytes, |device, n| {
        let (a, b) = (sorted::<u32>(n / 2, 0)?, sorted::<u32>(n - n / 2, 1)?);
        let inputs = (device.upload(&a)?, device.upload(&b)?);
        let values = device.iota(n, 0u32)?;
        let outputs = (device.zeroed::<u32>(n)?, device.zeroed::<u32>(n)?);
        Ok(Climb::new(
            (device.clone(), inputs, values, outputs, Scratch::new()),
            |(_, _, _, (keys, values), _)| {
                keys.fill(poison())?;
                values.fill(poison())
            },
            |(device, (a, b), values, (keys_out, values_out), scratch)| {
                let (first, second) = (values.view(..a.len())?, values.view(a.len()..)?);
                let order = Order::ascending();
                device.merge_pairs_into((&*a, first), (&*b, second), (keys_out, values_out), &order, scratch)
            },
            move |(_, _, values, (keys, values_out), _)| {
                let values = values.to_vec()?;
                let (first, second) = values.split_at(a.len());
                let want = Device::cpu().merge_pairs((&a, first), (&b, second), &Order::ascending())?;
                same_bytes(&keys.to_vec()?, &want.0.to_vec()?, "keys")?;
                same_bytes(&values_out.to_vec()?, &want.1.to_vec()?, "values")
            },
        ))
    })
}

#[cfg(feature = "opencl")]
mod programs {
    use super::{
        super::{
            form,
            gpu::plan,
            search::{self, Bound},
            set,
        },
        *,
    };
    use crate::SetOp;

    struct Programs<'a> {
        caps: &'a Capabilities,
        programs: Vec<ProgramSpec>,
    }

    impl Visit for Programs<'_> {
        fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
            let Self { caps, programs } = self;
            let sizes =
                [(0, false), (0, true), (4, false), (12, true), (16, false)].map(|(bytes, wide)| (20, bytes, wide));
            for (bits, value_bytes, wide) in sizes.into_iter().chain([(26, 0, false), (26, 0, true)]) {
                let form = form(&tried.order, value_bytes);
                let plan = form.and_then(|form| plan(1 << bits, &form, caps, wide));
                programs.extend(plan.map(|plan| plan.program));
            }
            let Ok(form) = form(&tried.order, 0) else { return };
            for (op, wide) in SetOp::ALL.into_iter().zip([false, true].into_iter().cycle()) {
                programs.extend(set::gpu::plan(op, 1 << 20, &form, caps, wide).map(|plan| plan.program));
            }
            for (bound, index_bytes) in [(Bound::Lower, 4), (Bound::Upper, 8)] {
                let plan = search::gpu::plan(bound, index_bytes, 1 << 20, &form, caps, index_bytes == 8);
                programs.extend(plan.map(|plan| plan.program));
            }
        }
    }

    /// All programs of a device with these capabilities.
    pub(super) fn all(caps: &Capabilities) -> Vec<ProgramSpec> {
        let mut programs = Programs { caps, programs: Vec::new() };
        visit_all(Level::Full, &mut programs);
        programs.programs
    }
}
