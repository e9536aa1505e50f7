//! Counts on the device: a call on the first elements of a source equals the call on the shorter array.

mod common;

use std::cmp::Reverse;

use bytemuck::{Pod, Zeroable};
use common::{random, runs_kernels_at_once, tiny};
use oclprim::{
    Accumulate, Bins, Buffer, Device, Element, ErrorKind, Interpolation, Key, Offset, Order, Source, Top, bf16, f16,
    internals::data::Data,
    op::{
        Combine, EqualTo, ForReductions, ForScans, Less, Map, Max, Mean, Min, NonZero, Op, Operator, Product, Sum,
        Unordered, UnstableTail, Usage, Xor,
    },
    source::{constant, counting},
};

/// The devices in their own geometry and in that of GPUs, and with 64-bit offsets.
fn devices() -> Vec<(String, Device)> {
    let wide = if common::a_form_of_each_kernel() { Vec::new() } else { common::wide() };
    [common::with_geometries(), wide].concat()
}

/// Capacities with counts below, at and above tiles, and beyond the capacity.
fn sizes(device: &Device) -> Vec<(usize, Vec<u64>)> {
    if !runs_kernels_at_once(device) {
        return vec![(0, vec![3]), (1100, vec![0, 1027])];
    }
    let mut all = vec![
        (0, vec![0, 7]),
        (1, vec![0, 1, 2]),
        (1027, vec![0, 3, 1026, 1027, 5000]),
        (70_001, vec![0, 1, 16_384, 16_385, 70_000, u64::from(u32::MAX)]),
    ];
    if !tiny() {
        all.push((1 << 20, vec![0, 65_536, 1_000_003]));
    }
    all
}

/// A buffer with the count between other numbers, and the index of the count.
fn counts<C: Offset>(device: &Device, count: u64) -> (Buffer<C>, usize) {
    let count = C::from_i128(count.min(if size_of::<C>() == 4 { u32::MAX.into() } else { u64::MAX }).into());
    (device.upload(&[C::from_i128(91), count, C::from_i128(92)]).unwrap(), 1)
}

/// The first `count` elements of `x`.
fn first<T>(x: &[T], count: u64) -> &[T] {
    &x[..usize::try_from(count).unwrap_or(usize::MAX).min(x.len())]
}

/// Asserts that the reduction of the first elements of `x` is that of `want`, on the device and on the CPU. For
/// elements of one or two bytes, the count is a `u32`.
fn expect<S, O>(what: &str, device: &Device, (x, count): (S, u64), op: O, want: &[S::Item])
where
    S: Source<Item: Element> + Copy,
    O: Combine<S::Item, Use: ForReductions> + Copy,
{
    if size_of::<S::Item>() < 4 {
        expect_by::<u32, S, O>(what, device, (x, count), op, want);
    } else {
        expect_by::<u64, S, O>(what, device, (x, count), op, want);
    }
}

fn expect_by<C, S, O>(what: &str, device: &Device, (x, count): (S, u64), op: O, want: &[S::Item])
where
    C: Offset,
    S: Source<Item: Element> + Copy,
    O: Combine<S::Item, Use: ForReductions> + Copy,
{
    let of_array = Device::cpu().reduce(want, op).unwrap();
    let on_device = device.reduce(want, op).unwrap();
    let (buffer, at) = counts::<C>(device, count);
    let length = || buffer.view(at..=at).unwrap();
    let found = device.reduce(x.take(length()), op).unwrap();
    assert!(found.same(of_array), "{what}, {count}: {found}, and the CPU's {of_array}");
    assert!(found.same(on_device), "{what}, {count}: {found}, and of the array {on_device}");
    let mut out = device.filled(3, S::Item::ONE).unwrap();
    device.reduce_into(x.take(length()), op, out.view_mut(1..2).unwrap()).unwrap();
    let out = out.to_vec().unwrap();
    assert!(
        out[0].same(S::Item::ONE) && out[1].same(of_array) && out[2].same(S::Item::ONE),
        "{what}, {count}: {out:?}"
    );
}

fn each_operator<T: Element>(what: &str, device: &Device, x: &[T], count: u64)
where
    Sum: Op<T>,
    Product: Op<T>,
    Min: Op<T>,
    Max: Op<T>,
{
    let (there, want) = (device.upload(x).unwrap(), first(x, count));
    expect_by::<u32, _, _>(&format!("sum by a u32, {what}"), device, (&there, count), Sum, want);
    expect_by::<u64, _, _>(&format!("sum by a u64, {what}"), device, (&there, count), Sum, want);
    expect(&format!("product, {what}"), device, (&there, count), Product, want);
    expect(&format!("min, {what}"), device, (&there, count), Min, want);
    expect(&format!("max, {what}"), device, (&there, count), Max, want);
    expect(&format!("sum of a slice, {what}"), device, (x, count), Sum, want);
    let from = x.len().min(1);
    let view = there.view(from..).unwrap();
    expect(&format!("sum of a view, {what}"), device, (view, count), Sum, first(&x[from..], count));
}

#[test]
fn reductions_of_a_counted_input_equal_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            for count in counts {
                let what = |ty: &str| format!("{ty}, {name}, {n}");
                each_operator(&what("f32"), &device, &Data::Special.generate::<f32>(n, 1), count);
                each_operator(&what("u8"), &device, &Data::Random.generate::<u8>(n, 2), count);
                if !tiny() {
                    each_operator(&what("f16"), &device, &Data::Random.generate::<f16>(n, 3), count);
                    each_operator(&what("bf16"), &device, &Data::Random.generate::<bf16>(n, 4), count);
                    each_operator(&what("i64"), &device, &Data::Random.generate::<i64>(n, 5), count);
                }
                if common::has_doubles(&device) {
                    each_operator(&what("f64"), &device, &Data::Random.generate::<f64>(n, 6), count);
                }
            }
        }
    }
}

#[test]
fn reductions_of_a_counted_expression_equal_those_of_the_shorter_array() {
    let scaled = Map::new(|x: f32| x * 0.3 + 1.0, "x * 0.3f + 1.0f");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x = Data::Random.generate::<f32>(n, 7);
            let bytes = random::<u8>(n, 8);
            let (a, b) = (device.upload(&x).unwrap(), device.upload(&bytes).unwrap());
            let wanted: Vec<f32> = x.iter().map(|x| x * 0.3 + 1.0).collect();
            let wide: Vec<u64> = bytes.iter().map(|&x| x.into()).collect();
            let back: Vec<f32> = x.iter().rev().copied().collect();
            let products: Vec<f32> = x.iter().zip(&back).map(|(a, b)| a * b).collect();
            for count in counts {
                let what = |source: &str| format!("{source}, {name}, {n}");
                expect(&what("map"), &device, (a.map(&scaled), count), Sum, first(&wanted, count));
                expect(&what("max of a map"), &device, (a.map(&scaled), count), Max, first(&wanted, count));
                expect(&what("cast"), &device, (b.cast::<u64>(), count), Sum, first(&wide, count));
                expect(&what("reversed"), &device, (a.reversed(), count), Sum, first(&back, count));
                let ones: Vec<u16> = vec![3; n];
                expect(&what("constant"), &device, (constant(3u16).take(n), count), Sum, first(&ones, count));
                expect(&what("times"), &device, (a.times(a.reversed()), count), Sum, first(&products, count));
            }
        }
    }
}

#[test]
fn exact_sums_and_means_of_a_counted_input_equal_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x = Data::Random.generate::<f32>(n, 9);
            let y: Vec<f32> = x.iter().rev().copied().collect();
            let (a, b) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
            let zeros = device.upload(&vec![-0.0f32; n]).unwrap();
            for count in counts {
                let what = |of: &str| format!("{of}, {name}, {n}");
                expect(&what("exact sum"), &device, (&a, count), Sum.exact(), first(&x, count));
                expect(&what("exact sum of -0"), &device, (&zeros, count), Sum.exact(), first(&vec![-0.0; n], count));
                expect(&what("mean"), &device, (&a, count), Mean, first(&x, count));
                expect(&what("exact sum of a map"), &device, (a.reversed(), count), Sum.exact(), first(&y, count));
                let (buffer, at) = self::counts::<u64>(&device, count);
                let length = buffer.view(at..=at).unwrap();
                let dot = device.reduce(a.times(&b).take(length), Sum.exact()).unwrap();
                let want = Device::cpu().reduce(first(&x, count).times(first(&y, count)), Sum.exact()).unwrap();
                assert_eq!(dot.to_bits(), want.to_bits(), "{}, {count}", what("dot"));
                // An accumulator of f64 needs more than 4 KiB of local memory, even without a count.
                if common::has_doubles(&device) && !name.ends_with("a small GPU") {
                    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x) * 1e-40).collect();
                    let there = device.upload(&wide).unwrap();
                    expect(&what("exact sum of f64"), &device, (&there, count), Sum.exact(), first(&wide, count));
                }
            }
        }
    }
}

/// Sums of integral floats, so that every order gives the same bits.
#[test]
fn fast_sums_of_a_counted_input_add_all_of_its_elements_and_no_more() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x: Vec<f32> = (0..n).map(|i| (i % 5) as f32).collect();
            let there = device.upload(&x).unwrap();
            for count in counts {
                expect(&format!("{name}, {n}"), &device, (&there, count), Sum.fast(), first(&x, count));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Point([f32; 3]);

fn farther(a: Point, b: Point) -> Point {
    let size = |p: Point| p.0[0] * p.0[0] + p.0[1] * p.0[1] + p.0[2] * p.0[2];
    if size(a) >= size(b) { a } else { b }
}

#[test]
fn reductions_of_a_counted_input_by_an_operator_equal_those_of_the_shorter_array() {
    let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    let farthest = Operator::of_struct(
        "farthest",
        "Point",
        "typedef struct { float x, y, z; } Point;",
        Point([0.0; 3]),
        farther,
        "a.x * a.x + a.y * a.y + a.z * a.z >= b.x * b.x + b.y * b.y + b.z * b.z ? a : b",
    );
    let small = Map::new(|x: u32| x & 3, "x & 3u");
    let plus = Operator::new("a + b", 0u32, u32::wrapping_add, "a + b");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let bytes = Data::Random.generate::<u8>(n, 1);
            let points: Vec<Point> = (0..n).map(|i| Point([(i * 7919 % 1009) as f32, (i % 13) as f32, 0.5])).collect();
            let (a, b) = (device.upload(&bytes).unwrap(), device.upload(&points).unwrap());
            for count in counts {
                expect(&format!("bytes, {name}, {n}"), &device, (&a, count), &saturating, first(&bytes, count));
                let (buffer, at) = self::counts::<u32>(&device, count);
                let length = || buffer.view(at..=at).unwrap();
                let found = device.reduce(b.take(length()), &farthest).unwrap();
                let count = count.min(u32::MAX.into());
                assert_eq!(
                    found,
                    Device::cpu().reduce(first(&points, count), &farthest).unwrap(),
                    "{name}, {n}, {count}"
                );
                let computed = counting(5u32).take(n).map(&small);
                let want = Device::cpu().reduce(counting(5u32).take(first(&bytes, count).len()).map(&small), &plus);
                assert_eq!(
                    device.reduce(computed.take(length()), &plus).unwrap(),
                    want.unwrap(),
                    "{name}, {n}, {count}"
                );
            }
        }
    }
}

type Words = [u64; 8];

/// The result differs for each tree of combinations, since the function is neither associative nor commutative.
fn mixed(a: Words, b: Words) -> Words {
    std::array::from_fn(|k| a[k].wrapping_mul(3).wrapping_add(b[k]))
}

/// A tile has 1,024 elements of 64 bytes. So the capacity needs partials of partials, and few elements need none.
#[test]
fn the_tree_is_that_of_the_count_if_the_capacity_needs_more_launches() {
    let text = "static inline Words mixed(const Words a, const Words b)\n{\n    Words c;\n    for (uint k = 0; k < 8; k++) {\n        \
                c.word[k] = a.word[k] * 3 + b.word[k];\n    }\n    return c;\n}\n";
    let types = "typedef struct { ulong word[8]; } Words;";
    let op = Operator::of_struct("mixed", "Words", types, [1u64; 8], mixed, "mixed(a, b)").with_functions(text);
    for (name, device) in devices() {
        if !runs_kernels_at_once(&device) {
            common::skip(&name, "Oclgrind 21.10 does not run functions that return large structs");
            continue;
        }
        let capacity = if tiny() { 5000 } else { (1 << 20) + 1 };
        let x: Vec<Words> = (0..capacity as u64).map(|i| std::array::from_fn(|k| i * 8 + k as u64)).collect();
        let there = device.upload(&x).unwrap();
        for count in [0, 1, 2, 1023, 1024, 1025, 2048, 1 << 20, u64::MAX] {
            let (buffer, at) = counts::<u64>(&device, count);
            let found = device.reduce(there.take(buffer.view(at..=at).unwrap()), &op).unwrap();
            assert_eq!(found, Device::cpu().reduce(first(&x, count), &op).unwrap(), "{name}, {capacity}, {count}");
        }
    }
}

#[test]
fn counts_of_a_counted_input_equal_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x: Vec<f32> = (0..n).map(|i| if i < 5 || i % 3 == 0 { 0.0 } else { (i % 7) as f32 }).collect();
            let there = device.upload(&x).unwrap();
            let large = Map::new(|x: f32| x > 4.0, "x > 4");
            for count in counts {
                let what = format!("{name}, {n}, {count}");
                let (buffer, at) = self::counts::<u64>(&device, count);
                let length = || buffer.view(at..=at).unwrap();
                let want = first(&x, count);
                assert_eq!(
                    device.count(there.take(length()), NonZero).unwrap(),
                    Device::cpu().count(want, NonZero).unwrap(),
                    "{what}"
                );
                assert_eq!(
                    device.count(there.take(length()), EqualTo(2.0)).unwrap(),
                    want.iter().filter(|&&x| x == 2.0).count() as u64,
                    "{what}"
                );
                assert_eq!(
                    device.any(there.take(length()), &large).unwrap(),
                    want.iter().any(|&x| x > 4.0),
                    "{what}: any"
                );
                assert_eq!(device.all(there.take(length()), NonZero).unwrap(), want.is_empty(), "{what}: all");
                let mut found = device.zeroed::<u64>(1).unwrap();
                device.count_into(there.take(length()), &large, &mut found).unwrap();
                assert_eq!(found.to_vec().unwrap(), [want.iter().filter(|&&x| x > 4.0).count() as u64], "{what}");
            }
        }
    }
}

#[test]
fn transforms_write_the_counted_elements_and_no_others() {
    let scaled = Map::new(|x: f32| x * 0.3 + 1.0, "x * 0.3f + 1.0f");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x = Data::Random.generate::<f32>(n, 3);
            let there = device.upload(&x).unwrap();
            let mapped: Vec<f32> = x.iter().map(|x| x * 0.3 + 1.0).collect();
            let back: Vec<f32> = x.iter().rev().copied().collect();
            for count in counts {
                let what = format!("{name}, {n}, {count}");
                let (buffer, at) = self::counts::<u32>(&device, count);
                let length = || buffer.view(at..=at).unwrap();
                let count = count.min(u32::MAX.into());
                for (from, skip) in [(0, 0), (1, 3)] {
                    let mut out = device.filled(n + 5, -7.0f32).unwrap();
                    let mut on_host = vec![-7.0f32; n];
                    let check = |out: Vec<f32>, want: &[f32], at: usize| {
                        let m = first(want, count).len();
                        let mut all = vec![-7.0; out.len()];
                        all[at..at + m].copy_from_slice(&want[..m]);
                        assert_eq!(out, all, "{what} from {from}");
                    };
                    let from = from.min(n);
                    let view = there.view(from..).unwrap();
                    device.transform_into(view.take(length()), out.view_mut(skip..skip + n - from).unwrap()).unwrap();
                    check(out.to_vec().unwrap(), &x[from..], skip);
                    out.fill(-7.0).unwrap();
                    let source = view.map(&scaled).take(length());
                    device.transform_into(source, out.view_mut(skip..skip + n - from).unwrap()).unwrap();
                    check(out.to_vec().unwrap(), &mapped[from..], skip);
                    device.transform_into(there.reversed().take(length()), &mut on_host).unwrap();
                    check(on_host, &back, 0);
                }
                let short = device.transform(there.map(&scaled).take(length())).unwrap().to_vec().unwrap();
                assert_eq!(short, first(&mapped, count), "{what}");
            }
        }
    }
}

fn assert_same<T: Element>(got: &[T], want: &[T], what: &str) {
    let differs = (0..got.len().max(want.len())).find(|&i| !got[i].same(want[i]));
    assert!(differs.is_none(), "{what}: result {differs:?}");
}

/// Asserts that the scan of the first elements of `x` is that of `want`, and that the rest of the output does not change.
fn expect_scan<S, O>(what: &str, device: &Device, (x, count): (S, u64), op: O, want: &[S::Item])
where
    S: Source<Item: Element> + Copy,
    O: Combine<S::Item, Use: ForScans> + Copy,
{
    let of_array = Device::cpu().scan(want, op).unwrap().to_vec().unwrap();
    let (buffer, at) = counts::<u64>(device, count);
    let length = || buffer.view(at..=at).unwrap();
    let n = x.length().unwrap().unwrap();
    let mut all = vec![S::Item::ONE; n + 3];
    all[2..2 + want.len()].copy_from_slice(&of_array);
    let mut out = device.filled(n + 3, S::Item::ONE).unwrap();
    device.scan_into(x.take(length()), op, out.view_mut(2..n + 2).unwrap()).unwrap();
    let what = format!("{what}, {count} of {n}");
    assert_same(&out.to_vec().unwrap(), &all, &what);
    let mut on_host = vec![S::Item::ONE; n];
    device.scan_into(x.take(length()), op, &mut on_host).unwrap();
    assert_same(&on_host, &all[2..n + 2], &format!("{what}, to a slice"));
    assert_same(
        &device.scan(x.take(length()), op).unwrap().to_vec().unwrap(),
        &of_array,
        &format!("{what}, as a buffer"),
    );
}

#[test]
fn scans_of_a_counted_input_equal_those_of_the_shorter_array() {
    let scaled = Map::new(|x: f32| x * 0.3 + 1.0, "x * 0.3f + 1.0f");
    let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x = Data::Random.generate::<f32>(n, 11);
            let mapped: Vec<f32> = x.iter().map(|x| x * 0.3 + 1.0).collect();
            let numbers: Vec<i32> = (0..n as i32).map(|i| if i % 3 == 0 { i } else { 0 }).collect();
            let bytes = Data::Random.generate::<u8>(n, 12);
            let wide: Vec<u64> = bytes.iter().map(|&x| x.into()).collect();
            let (a, b, c) =
                (device.upload(&x).unwrap(), device.upload(&numbers).unwrap(), device.upload(&bytes).unwrap());
            for count in counts {
                let what = |of: &str| format!("{of}, {name}");
                expect_scan(&what("sum"), &device, (&a, count), Sum, first(&x, count));
                expect_scan(&what("reversed sum"), &device, (&a, count), Sum.reversed(), first(&x, count));
                expect_scan(&what("exclusive max"), &device, (&a, count), Max.exclusive(), first(&x, count));
                expect_scan(&what("bytes"), &device, (&c, count), Xor, first(&bytes, count));
                expect_scan(&what("cast"), &device, (c.cast::<u64>(), count), Sum, first(&wide, count));
                expect_scan(&what("map"), &device, (a.map(&scaled), count), Sum, first(&mapped, count));
                expect_scan(
                    &what("reversed map"),
                    &device,
                    (a.map(&scaled), count),
                    Sum.reversed(),
                    first(&mapped, count),
                );
                expect_scan(&what("operator"), &device, (&b, count), &last, first(&numbers, count));
                expect_scan(&what("exact"), &device, (&a, count), Sum.exact(), first(&x, count));
            }
        }
    }
}

#[test]
fn an_exclusive_scan_by_a_count_writes_the_total_after_its_last_result() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x: Vec<u32> = (0..n as u32).map(|i| i % 7).collect();
            let there = device.upload(&x).unwrap();
            let small = Map::new(|x: u32| x + 1, "x + 1u");
            for count in counts {
                let (buffer, at) = self::counts::<u64>(&device, count);
                let length = || buffer.view(at..=at).unwrap();
                let m = first(&x, count).len();
                let mut out = device.filled(n + 1, 77u32).unwrap();
                device.scan_into(there.take(length()), Sum.exclusive().starting(5), &mut out).unwrap();
                let mut want = vec![77; n + 1];
                want[0] = 5;
                (0..m).for_each(|i| want[i + 1] = want[i] + x[i]);
                assert_eq!(out.to_vec().unwrap(), want, "{name}, {n}, {count}");
                device.scan_into(there.map(&small).take(length()), Sum.exclusive(), &mut out).unwrap();
                want[0] = 0;
                (0..m).for_each(|i| want[i + 1] = want[i] + x[i] + 1);
                assert_eq!(out.to_vec().unwrap(), want, "{name}, {n}, {count}: map");
            }
        }
    }
}

#[test]
fn histograms_of_a_counted_input_equal_those_of_the_shorter_array() {
    let half = Map::new(|x: f32| 0.5 * x, "0.5f * x");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x: Vec<f32> = (0..n).map(|i| (i * 7919 % 1013) as f32 / 100.0).collect();
            // More bins than local memory has counters for.
            let bins = if runs_kernels_at_once(&device) { 60_000 } else { 1500 };
            let ids: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) % (bins as u32 + 99)).collect();
            let bytes = Data::Random.generate::<u8>(n, 13);
            let (a, b, c) = (device.upload(&x).unwrap(), device.upload(&ids).unwrap(), device.upload(&bytes).unwrap());
            let (even, edges) = (Bins::even(1.0f32, 9.0, 37).unwrap(), Bins::edges(&[0.5f32, 1.0, 7.0]).unwrap());
            let (many, values) = (Bins::ids(bins).unwrap(), Bins::ids(256).unwrap());
            for count in counts {
                let (buffer, at) = self::counts::<u64>(&device, count);
                let length = || buffer.view(at..=at).unwrap();
                let (what, cpu, want) = (format!("{name}, {n}, {count}"), Device::cpu(), first(&x, count));
                assert_eq!(
                    device.histogram(a.take(length()), &even).unwrap(),
                    cpu.histogram(want, &even).unwrap(),
                    "{what}: even"
                );
                assert_eq!(
                    device.histogram(a.take(length()), &edges).unwrap(),
                    cpu.histogram(want, &edges).unwrap(),
                    "{what}: edges"
                );
                let view = a.view(n.min(1)..).unwrap();
                let skipped = first(&x[n.min(1)..], count);
                assert_eq!(
                    device.histogram(view.take(length()), &even).unwrap(),
                    cpu.histogram(skipped, &even).unwrap(),
                    "{what}: view"
                );
                let found = device.histogram(b.take(length()), &many).unwrap();
                assert_eq!(found, cpu.histogram(first(&ids, count), &many).unwrap(), "{what}: many bins");
                let found = device.histogram(c.take(length()), &values).unwrap();
                assert_eq!(found, cpu.histogram(first(&bytes, count), &values).unwrap(), "{what}: bytes");
                let found = device.histogram(a.map(&half).take(length()), &even).unwrap();
                assert_eq!(found, cpu.histogram(want.map(&half), &even).unwrap(), "{what}: map");
                let found = device.histogram(a.reversed().take(length()), &even).unwrap();
                assert_eq!(found, cpu.histogram(x.reversed().take(want.len()), &even).unwrap(), "{what}: reversed");
                let (mut counters, mut outside) = (device.filled(37, 5u32).unwrap(), device.filled(3, 6u64).unwrap());
                device.histogram_into(a.take(length()), &even, &mut counters, &mut outside, Accumulate::Add).unwrap();
                let of_array = cpu.histogram(want, &even).unwrap();
                let sums: Vec<u32> = of_array.counts.iter().map(|&count| count as u32 + 5).collect();
                assert_eq!(counters.to_vec().unwrap(), sums, "{what}: added");
                assert_eq!(outside.to_vec().unwrap()[1], of_array.outside.above + 6, "{what}: above");
            }
        }
    }
}

/// An output between other elements, all of them `mark`.
fn marked<T: Element>(device: &Device, n: usize, mark: T) -> Buffer<T> {
    device.upload(&vec![mark; n + 2]).unwrap()
}

/// Asserts that an output of [`marked`] has the elements of `want`, and `mark` around and after them.
fn expect_marked<T: Element>(what: &str, out: &Buffer<T>, want: &[T], mark: T) {
    let found = out.to_vec().unwrap();
    let after = want.len() + 1;
    assert_same(&found[1..after], want, what);
    let changed = (0..found.len()).find(|&i| (i == 0 || i >= after) && !found[i].same(mark));
    assert!(changed.is_none(), "{what}: element {changed:?} of {} has changed", found.len());
}

/// Calls `run` with a count as a `u32` and as a `u64`.
macro_rules! by_each_count {
    ($device:expr, $count:expr, |$length:ident| $run:expr) => {{
        let (narrow, at) = counts::<u32>($device, $count);
        let $length = narrow.view(at..=at).unwrap();
        $run;
        let (wide, at) = counts::<u64>($device, $count);
        let $length = wide.view(at..=at).unwrap();
        $run;
    }};
}

/// A condition of elements, as a function and as an argument of a selection.
struct Rule<T> {
    is: fn(T) -> bool,
    map: Map<fn(T) -> bool>,
}

fn rule<T>(is: fn(T) -> bool, text: &'static str) -> Rule<T> {
    Rule { is, map: Map::new(is, text) }
}

/// Asserts that a selection, partitions and a list of indices by a count equal those of a plain loop. `rest` is the
/// condition of the second part.
fn expect_selected<T: Element<Acc = T>>(
    what: &str,
    device: &Device,
    (x, there): (&[T], &Buffer<T>),
    count: u64,
    [chosen, rest]: &[Rule<T>; 2],
) {
    let (is_chosen, is_rest) = (chosen.is, rest.is);
    let (chosen, rest) = (&chosen.map, &rest.map);
    let (n, first) = (x.len(), first(x, count));
    let of = |list: &dyn Fn(T) -> bool| first.iter().copied().filter(|&x| list(x)).collect::<Vec<_>>();
    let (selected, others) = (of(&is_chosen), of(&|x| !is_chosen(x)));
    let what = |call: &str| format!("{call}, {what}, {n}, {count}");
    let mark = T::ONE;
    by_each_count!(device, count, |length| {
        let mut found = device.filled(3, 7u64).unwrap();
        let mut out = marked(device, n, mark);
        device
            .select_into(there.take(length), chosen, out.view_mut(1..=n).unwrap(), found.view_mut(1..2).unwrap())
            .unwrap();
        expect_marked(&what("select"), &out, &selected, mark);
        assert_eq!(found.to_vec().unwrap(), [7, selected.len() as u64, 7], "{}", what("count"));

        let room = n / 3;
        let mut out = marked(device, room, mark);
        device
            .select_into(there.take(length), chosen, out.view_mut(1..=room).unwrap(), found.view_mut(1..2).unwrap())
            .unwrap();
        expect_marked(&what("select to little room"), &out, &selected[..selected.len().min(room)], mark);
        assert_eq!(found.to_vec().unwrap()[1], selected.len() as u64, "{}", what("count of little room"));

        let mut indices = marked(device, n, 5u32);
        device
            .select_indices_into(
                there.take(length),
                chosen,
                indices.view_mut(1..=n).unwrap(),
                found.view_mut(1..2).unwrap(),
            )
            .unwrap();
        let list: Vec<_> = (0..first.len()).filter(|&i| is_chosen(first[i])).map(|i| i as u32).collect();
        expect_marked(&what("indices"), &indices, &list, 5);

        let mut out = marked(device, n, mark);
        device
            .partition_into(there.take(length), chosen, out.view_mut(1..=n).unwrap(), found.view_mut(1..2).unwrap())
            .unwrap();
        expect_marked(&what("partition"), &out, &[&selected[..], &others].concat(), mark);
        assert_eq!(found.to_vec().unwrap(), [7, selected.len() as u64, 7], "{}", what("length of a partition"));

        let mut out = marked(device, n, mark);
        device
            .partition_into(
                there.take(length),
                UnstableTail(chosen),
                out.view_mut(1..=n).unwrap(),
                found.view_mut(1..2).unwrap(),
            )
            .unwrap();
        let reversed = others.iter().rev().copied().collect();
        expect_marked(&what("unstable tail"), &out, &[selected.clone(), reversed].concat(), mark);

        let mut out = marked(device, n, mark);
        device
            .partition_into(
                there.take(length),
                (chosen, rest),
                out.view_mut(1..=n).unwrap(),
                found.view_mut(..2).unwrap(),
            )
            .unwrap();
        let second = of(&|x| !is_chosen(x) && is_rest(x));
        let third = of(&|x| !is_chosen(x) && !is_rest(x));
        expect_marked(&what("three parts"), &out, &[&selected[..], &second, &third].concat(), mark);
        assert_eq!(
            found.to_vec().unwrap(),
            [selected.len() as u64, second.len() as u64, 7],
            "{}",
            what("lengths of three parts")
        );

        let ordered = |x: &[T]| {
            let mut all: Vec<_> = x.iter().map(|x| x.to_f64()).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let unordered = device.select(there.take(length), Unordered(chosen)).unwrap().to_vec().unwrap();
        assert_eq!(ordered(&unordered), ordered(&selected), "{}", what("unordered"));
        let (parts, of_first) = device.partition(there.take(length), chosen).unwrap();
        assert_same(&parts.to_vec().unwrap(), &[&selected[..], &others].concat(), &what("partition to a buffer"));
        assert_eq!(of_first, selected.len(), "{}", what("partition to a buffer"));
    });
}

fn small(x: u32) -> bool {
    x % 5 < 2
}

fn even(x: u32) -> bool {
    x.is_multiple_of(2)
}

fn low(x: u8) -> bool {
    x < 100
}

fn odd(x: u8) -> bool {
    x % 2 == 1
}

#[test]
fn selections_by_a_count_equal_those_of_the_shorter_array() {
    let numbers = [rule(small, "x % 5 < 2"), rule(even, "x % 2 == 0")];
    let bytes = [rule(low, "x < 100"), rule(odd, "x % 2 == 1")];
    let double = Map::new(|x: u32| x.wrapping_mul(2), "x * 2u");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let (x, y) = (random::<u32>(n, 21), random::<u8>(n, 22));
            let (a, b) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
            for count in counts {
                let what = |ty: &str| format!("{ty}, {name}");
                expect_selected(&what("u32"), &device, (&x, &a), count, &numbers);
                if n > 0 {
                    let off = device.upload(&x[1..]).unwrap();
                    expect_selected(&what("u32 of less"), &device, (&x[1..], &off), count, &numbers);
                }
                if !common::a_form_of_each_kernel() {
                    expect_selected(&what("u8"), &device, (&y, &b), count, &bytes);
                }
                let (buffer, at) = self::counts::<u64>(&device, count);
                let length = buffer.view(at..=at).unwrap();
                let want: Vec<u32> = first(&x, count).iter().map(|x| x.wrapping_mul(2)).filter(|&x| small(x)).collect();
                let found = device.select(a.map(&double).take(length), &numbers[0].map).unwrap().to_vec().unwrap();
                assert_eq!(found, want, "map, {name}, {n}, {count}");
                let found = device.select(x.take(length), &numbers[0].map).unwrap().to_vec().unwrap();
                let want: Vec<u32> = first(&x, count).iter().copied().filter(|&x| small(x)).collect();
                assert_eq!(found, want, "slice, {name}, {n}, {count}");
            }
        }
    }
}

#[test]
fn runs_by_a_count_equal_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            // Short runs, and runs of several tiles.
            for long in [3, 30_000] {
                let x: Vec<u32> =
                    random::<u32>(n, 23).iter().enumerate().map(|(i, r)| i as u32 / long + r % 2).collect();
                let there = device.upload(&x).unwrap();
                for &count in &counts {
                    let what = |call: &str| format!("{call}, {name}, {n} in runs of {long}, {count}");
                    let x = first(&x, count);
                    let starts: Vec<usize> = (0..x.len()).filter(|&i| i == 0 || x[i] != x[i - 1]).collect();
                    let ends = starts.iter().skip(1).copied().chain([x.len()]);
                    let lengths: Vec<u32> = starts.iter().zip(ends).map(|(a, b)| (b - a) as u32).collect();
                    let values: Vec<u32> = starts.iter().map(|&i| x[i]).collect();
                    by_each_count!(&device, count, |length| {
                        let mut found = device.zeroed::<u64>(1).unwrap();
                        let mut out = marked(&device, n, 9u32);
                        device.unique_into(there.take(length), out.view_mut(1..=n).unwrap(), &mut found).unwrap();
                        expect_marked(&what("unique"), &out, &values, 9);
                        assert_eq!(found.to_vec().unwrap(), [values.len() as u64], "{}", what("unique"));
                        let of = device.unique(there.take(length)).unwrap().to_vec().unwrap();
                        assert_eq!(of, values, "{}", what("unique to a buffer"));
                        let (mut out, mut of_runs) = (marked(&device, n, 9u32), marked(&device, n, 8u32));
                        let to = (out.view_mut(1..=n).unwrap(), of_runs.view_mut(1..=n).unwrap());
                        device.run_length_encode_into(there.take(length), to.0, to.1, &mut found).unwrap();
                        expect_marked(&what("values of runs"), &out, &values, 9);
                        expect_marked(&what("lengths of runs"), &of_runs, &lengths, 8);
                        assert_eq!(found.to_vec().unwrap(), [values.len() as u64], "{}", what("runs"));
                        let several: Vec<_> = (0..starts.len()).filter(|&r| lengths[r] > 1).collect();
                        let (offsets, of_runs) = device.non_trivial_runs::<_, u32>(there.take(length)).unwrap();
                        let want: Vec<_> = several.iter().map(|&r| starts[r] as u32).collect();
                        assert_eq!(offsets.to_vec().unwrap(), want, "{}", what("offsets of long runs"));
                        let want: Vec<_> = several.iter().map(|&r| lengths[r]).collect();
                        assert_eq!(of_runs.to_vec().unwrap(), want, "{}", what("lengths of long runs"));
                    });
                }
            }
        }
    }
}

/// The indices that sort the keys, stable, by a key that compares as the order does.
fn sorting<T: Copy, K: Ord>(x: &[T], key: impl Fn(T) -> K) -> Vec<usize> {
    let mut indices: Vec<_> = (0..x.len()).collect();
    indices.sort_by_key(|&i| key(x[i]));
    indices
}

fn expect_sorted<T: Element + Key, K: Ord>(
    what: &str,
    device: &Device,
    x: &[T],
    count: u64,
    order: &Order,
    key: impl Fn(T) -> K,
) {
    let n = x.len();
    let there = device.upload(x).unwrap();
    let numbers: Vec<u64> = (0..n as u64).map(|i| i * 3 + 1).collect();
    let values = device.upload(&numbers).unwrap();
    let x = first(x, count);
    let indices = sorting(x, key);
    let keys: Vec<T> = indices.iter().map(|&i| x[i]).collect();
    let moved: Vec<u64> = indices.iter().map(|&i| numbers[i]).collect();
    let narrow: Vec<u32> = indices.iter().map(|&i| i as u32).collect();
    let what = |call: &str| format!("{call}, {what}, {n}, {count}");
    by_each_count!(device, count, |length| {
        let mut out = marked(device, n, T::ONE);
        device.sort_into(there.take(length), order.clone(), out.view_mut(1..=n).unwrap()).unwrap();
        expect_marked(&what("sort"), &out, &keys, T::ONE);
        let (mut out, mut values_out) = (marked(device, n, T::ONE), marked(device, n, 5u64));
        let to = (out.view_mut(1..=n).unwrap(), values_out.view_mut(1..=n).unwrap());
        device.sort_into(there.take(length).with(&values), order.clone(), to).unwrap();
        expect_marked(&what("keys with values"), &out, &keys, T::ONE);
        expect_marked(&what("values"), &values_out, &moved, 5);
        let mut places = marked(device, n, 5u32);
        device.argsort_into(there.take(length), order.clone(), places.view_mut(1..=n).unwrap()).unwrap();
        expect_marked(&what("argsort"), &places, &narrow, 5);
        assert_same(&device.sort(there.take(length), order.clone()).unwrap().to_vec().unwrap(), &keys, &what("buffer"));
    });
}

#[test]
fn sorts_by_a_count_equal_those_of_the_shorter_array() {
    let by_last_digit = Less::new("by the last digit", |a: &u32, b: &u32| a % 10 < b % 10, "a % 10 < b % 10");
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let (x, bytes) = (random::<u32>(n, 24), random::<u8>(n, 25));
            // The highest and the lowest digit are the same in all keys.
            let middle: Vec<u32> = x.iter().map(|x| (x & 0xff_ff00) | 0x1200_0034).collect();
            let floats = Data::Special.generate::<f32>(n, 26);
            let wide = Data::Random.generate::<i64>(n, 27);
            for count in counts {
                let what = |ty: &str| format!("{ty}, {name}");
                let (up, down) = (Order::ascending(), Order::descending());
                expect_sorted(&what("u32"), &device, &x, count, &up, |x| x);
                expect_sorted(&what("u32 of few digits"), &device, &middle, count, &up, |x| x);
                expect_sorted(&what("u8, descending"), &device, &bytes, count, &down, Reverse);
                if !common::a_form_of_each_kernel() {
                    let total = |x: f32| {
                        let bits = x.to_bits() as i32;
                        bits ^ ((bits >> 31) as u32 >> 1) as i32
                    };
                    expect_sorted(&what("f32"), &device, &floats, count, &up.clone().total_order(), total);
                    expect_sorted(&what("i64, descending"), &device, &wide, count, &down, Reverse);
                }
                let (buffer, at) = self::counts::<u32>(&device, count);
                let length = buffer.view(at..=at).unwrap();
                let there = device.upload(&x).unwrap();
                let names: Vec<[u8; 3]> = (0..n as u32).map(|i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]).collect();
                let indices = sorting(first(&x, count), |x| x);
                let (keys, found) = device.sort(there.take(length).with(&names), Order::ascending()).unwrap();
                let (keys, found) = (keys.to_vec().unwrap(), found.to_vec().unwrap());
                assert!(indices.iter().map(|&i| x[i]).eq(keys), "{name}, {n}, {count}: keys of names");
                assert!(indices.iter().map(|&i| names[i]).eq(found), "{name}, {n}, {count}: names");
                let found = device.sort(there.take(length), &by_last_digit).unwrap().to_vec().unwrap();
                let want = sorting(first(&x, count), |x| x % 10);
                assert!(want.iter().map(|&i| x[i]).eq(found), "{name}, {n}, {count}: a custom order");
                let places: Vec<u32> = device.argsort(there.take(length), &by_last_digit).unwrap().to_vec().unwrap();
                assert!(want.iter().map(|&i| i as u32).eq(places), "{name}, {n}, {count}: indices of a custom order");
            }
        }
    }
}

/// Asserts that merges of the first elements by counts, of keys and of keys with values, equal those of shorter ranges.
fn expect_merged<T: Element + Ord>(what: &str, device: &Device, [a, b]: [&[T]; 2], counts: [u64; 2]) {
    let order = Order::ascending;
    let (n, mark) = (a.len() + b.len(), T::ONE);
    let [x, y] = [first(a, counts[0]), first(b, counts[1])];
    let values: Vec<u16> = (0..n).map(|i| i as u16).collect();
    let (of_a, of_b) = values.split_at(a.len());
    let cpu = Device::cpu();
    let (want, want_values) =
        cpu.merge(x.with(first(of_a, counts[0])), y.with(first(of_b, counts[1])), order()).unwrap();
    let (want, want_values) = (want.to_vec().unwrap(), want_values.to_vec().unwrap());
    let (there, other) = (device.upload(a).unwrap(), device.upload(b).unwrap());
    let (count_a, at) = self::counts::<u32>(device, counts[0]);
    let (count_b, _) = self::counts::<u64>(device, counts[1]);
    let (count_a, count_b) = (count_a.view(at..=at).unwrap(), count_b.view(at..=at).unwrap());
    let what = |call: &str| format!("{call}, {what}, {counts:?} of {} and {}", a.len(), b.len());

    let mut out = marked(device, n, mark);
    device.merge_into(there.take(count_a), other.take(count_b), order(), out.view_mut(1..=n).unwrap()).unwrap();
    expect_marked(&what("both by a count"), &out, &want, mark);
    assert_same(&device.merge(there.take(count_a), other.take(count_b), order()).unwrap().to_vec().unwrap(), &want, "");
    let (mut keys, mut out) = (marked(device, n, mark), marked(device, n, 7u16));
    let to = (keys.view_mut(1..=n).unwrap(), out.view_mut(1..=n).unwrap());
    device.merge_into(there.take(count_a).with(of_a), other.take(count_b).with(of_b), order(), to).unwrap();
    expect_marked(&what("keys with values"), &keys, &want, mark);
    expect_marked(&what("values"), &out, &want_values, 7);

    // One range is whole.
    let mut out = marked(device, n, mark);
    device.merge_into(there.take(count_a), &other, order(), out.view_mut(1..=n).unwrap()).unwrap();
    expect_marked(&what("the first by a count"), &out, &cpu.merge(x, b, order()).unwrap().to_vec().unwrap(), mark);
    let mut out = vec![mark; n];
    device.merge_into(a, other.take(count_b), order(), &mut out).unwrap();
    let mut want = cpu.merge(a, y, order()).unwrap().to_vec().unwrap();
    want.resize(n, mark);
    assert_same(&out, &want, &what("the second by a count, to a slice"));
}

#[test]
fn merges_by_counts_equal_those_of_the_shorter_ranges() {
    for (name, device) in devices() {
        let mut each = sizes(&device);
        each.iter_mut().for_each(|(_, counts)| counts.truncate(4));
        for (n, counts) in each {
            let mut a = Data::Random.generate::<u32>(n, 40);
            let mut b: Vec<u32> = random::<u32>(n / 2 + 3, 41).iter().map(|x| x / 3).collect();
            a.sort_unstable();
            b.sort_unstable();
            for &count in &counts {
                expect_merged(&name, &device, [&a, &b], [count, n as u64 / 3]);
            }
            // Counts beyond the ends of the ranges, also beyond 32 bits.
            for counts in [[0, u64::MAX], [n as u64 + 9, 1 << 32 | 1]] {
                expect_merged(&name, &device, [&a, &b], counts);
            }
            if !tiny() {
                let narrow = |x: &[u32]| x.iter().map(|x| (x >> 24) as u8).collect::<Vec<_>>();
                expect_merged(&name, &device, [&narrow(&b), &narrow(&a)], [n as u64 / 4, n as u64 / 2]);
            }
        }
    }
}

#[test]
fn weighted_histograms_by_a_count_equal_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) % 300).collect();
            // Of many special weights, most sums are NaN.
            let weights = if n > 10_000 { Data::Random } else { Data::Special }.generate::<f32>(n, 14);
            let numbers = Data::Random.generate::<i16>(n, 15);
            let (there, of_floats) = (device.upload(&x).unwrap(), device.upload(&weights).unwrap());
            // Few bins in local memory, and many in global memory.
            let many = if tiny() { 4000 } else { 60_000 };
            let (kinds, skipped) = if runs_kernels_at_once(&device) { (vec![290, many], 0) } else { (vec![40], 1) };
            for bins in kinds {
                let bins = Bins::ids(bins).unwrap();
                for &count in counts.iter().skip(skipped) {
                    let (what, cpu) = (format!("{name}, {n}, {count}, {} bins", bins.len()), Device::cpu());
                    let want = cpu.histogram(first(&x, count).weighted(first(&weights, count)), &bins).unwrap();
                    let of_numbers = cpu.histogram(first(&x, count).weighted(first(&numbers, count)), &bins).unwrap();
                    by_each_count!(&device, count, |length| {
                        let found = device.histogram(there.take(length).weighted(&of_floats), &bins).unwrap();
                        assert_same(&found.sums, &want.sums, &what);
                        assert!(found.outside.above.same(want.outside.above), "{what}: above");
                        let found = device.histogram(there.take(length).weighted(&numbers), &bins).unwrap();
                        assert_eq!(found, of_numbers, "{what}: integers");
                    });
                }
            }
        }
    }
}

#[test]
fn extremes_by_a_count_equal_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            // Many elements are equal, and the last one is the smallest.
            let mut x: Vec<i16> = random::<u32>(n, 28).iter().map(|x| (x % 1000) as i16 - 500).collect();
            if let Some(last) = x.last_mut() {
                *last = -600;
            }
            let mut floats = Data::Random.generate::<f32>(n, 29);
            if n > 500 {
                (floats[n - 3], floats[n - 1]) = (f32::NAN, f32::INFINITY);
            }
            let (there, of_floats) = (device.upload(&x).unwrap(), device.upload(&floats).unwrap());
            for count in counts {
                let what = |call: &str| format!("{call}, {name}, {n}, {count}");
                let (x, floats) = (first(&x, count), first(&floats, count));
                let least = (0..x.len()).min_by_key(|&i| (x[i], i));
                let most = (0..x.len()).min_by_key(|&i| (Reverse(x[i]), i));
                let nan = floats.iter().position(|x| x.is_nan());
                let highest =
                    nan.or_else(|| (0..floats.len()).reduce(|a, b| if floats[b] > floats[a] { b } else { a }));
                let at = |index: Option<usize>| index.map_or(u64::MAX, |index| index as u64);
                by_each_count!(&device, count, |length| {
                    let (mut values, mut indices) = (marked(&device, 2, 3i16), marked(&device, 2, 4u64));
                    let to = (values.view_mut(1..2).unwrap(), indices.view_mut(1..2).unwrap());
                    device.arg_min_into(there.take(length), to.0, to.1).unwrap();
                    expect_marked(&what("arg-min"), &values, &[least.map_or(i16::MAX, |i| x[i])], 3);
                    expect_marked(&what("index of the least"), &indices, &[at(least)], 4);
                    let to = (values.view_mut(1..=2).unwrap(), indices.view_mut(1..=2).unwrap());
                    device.min_max_into(there.take(length), to.0, to.1).unwrap();
                    let want = [least.map_or(i16::MAX, |i| x[i]), most.map_or(i16::MIN, |i| x[i])];
                    expect_marked(&what("min-max"), &values, &want, 3);
                    expect_marked(&what("indices of both"), &indices, &[at(least), at(most)], 4);
                    let (mut value, mut index) = (device.zeroed::<f32>(1).unwrap(), device.zeroed::<u64>(1).unwrap());
                    device.arg_max_into(of_floats.take(length), &mut value, &mut index).unwrap();
                    let value = value.to_vec().unwrap()[0];
                    assert!(
                        value.same(highest.map_or(f32::NEG_INFINITY, |i| floats[i])),
                        "{}: {value}",
                        what("arg-max")
                    );
                    assert_eq!(index.to_vec().unwrap(), [at(highest)], "{}", what("index of the largest"));
                    match (device.arg_max(there.take(length)), most) {
                        (Ok(found), Some(i)) => {
                            assert_eq!((found.index, found.value), (i, x[i]), "{}", what("arg-max"))
                        }
                        (Err(error), None) => {
                            let text = "arg-max of 0 elements has no answer";
                            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Empty, text));
                        }
                        (found, _) => panic!("{}: {found:?}", what("arg-max")),
                    }
                    match (device.min_max(there.take(length)), least) {
                        (Ok(found), Some(i)) => assert_eq!(found.min.index, i, "{}", what("min-max")),
                        (Err(error), None) => assert_eq!(error.kind(), ErrorKind::Empty),
                        (found, _) => panic!("{}: {found:?}", what("min-max")),
                    }
                });
            }
        }
    }
}

#[test]
fn the_largest_keys_by_a_count_are_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x = random::<u32>(n, 30);
            // Many keys are equal; the first of these are selected.
            let few: Vec<u32> = x.iter().map(|x| x % 3).collect();
            for (kind, x) in [("any", &x), ("few", &few)] {
                let there = device.upload(x).unwrap();
                for &count in &counts {
                    let x = first(x, count);
                    for k in [1, 10, 3000] {
                        let k = k.min(n);
                        let mut best = sorting(x, Reverse);
                        best.truncate(k);
                        let mut listed = best.clone();
                        listed.sort_unstable();
                        for (sorted, want) in [(true, &best), (false, &listed)] {
                            let top = if sorted { Top::largest(k).sorted() } else { Top::largest(k) };
                            let what = |call: &str| format!("{call}, {name}, {kind}, {n}, {count}: {top:?}");
                            let keys: Vec<u32> = want.iter().map(|&i| x[i]).collect();
                            let indices: Vec<u64> = want.iter().map(|&i| i as u64).collect();
                            by_each_count!(&device, count, |length| {
                                let mut out = marked(&device, k, 7u32);
                                device.top_k_into(there.take(length), top, out.view_mut(1..=k).unwrap()).unwrap();
                                expect_marked(&what("keys"), &out, &keys, 7);
                                let (mut out, mut places) = (marked(&device, k, 7u32), marked(&device, k, 8u64));
                                let to = (out.view_mut(1..=k).unwrap(), places.view_mut(1..=k).unwrap());
                                device.top_k_into(there.take(length).indexed::<u64>(), top, to).unwrap();
                                expect_marked(&what("keys with indices"), &out, &keys, 7);
                                expect_marked(&what("indices"), &places, &indices, 8);
                            });
                        }
                    }
                    let (buffer, at) = self::counts::<u64>(&device, count);
                    let length = buffer.view(at..=at).unwrap();
                    let found = device.top_k(there.take(length).indexed::<u32>(), Top::smallest(2).sorted());
                    if x.len() < 2 {
                        let text = format!("{} keys are fewer than the 2 smallest to select", x.len());
                        assert_eq!(found.unwrap_err().to_string(), text, "{name}");
                    } else {
                        let want: Vec<u32> = sorting(x, |x| x)[..2].iter().map(|&i| i as u32).collect();
                        assert_eq!(found.unwrap().1.to_vec().unwrap(), want, "{name}, {kind}, {n}, {count}");
                    }
                    let rows = device.top_k(there.take(length), Top::largest(1).in_rows(1)).unwrap_err();
                    assert_eq!(rows.to_string(), "rows of 1 keys are for a whole input", "{name}");
                }
            }
        }
    }
}

#[test]
fn means_and_quantiles_by_a_count_are_those_of_the_shorter_array() {
    for (name, device) in devices() {
        for (n, counts) in sizes(&device) {
            let x: Vec<i32> = random::<u32>(n, 31).iter().map(|x| (x % 2001) as i32 - 1000).collect();
            let there = device.upload(&x).unwrap();
            for count in counts {
                let (buffer, at) = self::counts::<u32>(&device, count);
                let length = || there.take(buffer.view(at..=at).unwrap());
                let x = first(&x, count);
                let what = format!("{name}, {n}, {count}");
                if x.is_empty() {
                    assert_eq!(device.mean(length()).unwrap_err().kind(), ErrorKind::Empty, "{what}");
                    assert_eq!(device.median(length()).unwrap_err().kind(), ErrorKind::Empty, "{what}");
                    continue;
                }
                let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len() as f64;
                let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / x.len() as f64;
                assert!((device.mean(length()).unwrap() - mean).abs() < 1e-9, "{what}");
                assert!((device.variance(length()).unwrap() - variance).abs() < 1e-6, "{what}");
                let mut sorted = x.to_vec();
                sorted.sort_unstable();
                let median = (f64::from(sorted[(x.len() - 1) / 2]) + f64::from(sorted[x.len() / 2])) / 2.0;
                assert_eq!(device.median(length()).unwrap(), median, "{what}");
                let mut out = device.zeroed::<f64>(2).unwrap();
                device.quantile_into(length(), &[0.0, 1.0], Interpolation::Lower, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), [f64::from(sorted[0]), f64::from(sorted[x.len() - 1])], "{what}");
            }
        }
    }
}

/// A selection, a sort of its result, and the runs of the sorted result follow one another without a wait.
#[test]
fn sorts_and_runs_take_the_count_of_a_selection() {
    let chosen = Map::new(small, "x % 5 < 2");
    for (name, device) in devices() {
        let n = if runs_kernels_at_once(&device) { 50_003 } else { 1103 };
        let x = random::<u32>(n, 32);
        let there = device.upload(&x).unwrap();
        let (mut kept, mut count) = (device.zeroed::<u32>(n).unwrap(), device.zeroed::<u64>(1).unwrap());
        let (mut sorted, mut found) = (device.zeroed::<u32>(n).unwrap(), device.zeroed::<u32>(n).unwrap());
        let mut distinct = device.zeroed::<u64>(1).unwrap();
        for _ in 0..2 {
            device
                .select_into(there.map(Map::new(|x: u32| x % 1000, "x % 1000u")), &chosen, &mut kept, &mut count)
                .unwrap();
            device.sort_into(kept.take(&count), Order::ascending(), &mut sorted).unwrap();
            device.unique_into(sorted.take(&count), &mut found, &mut distinct).unwrap();
        }
        let mut want: Vec<u32> = x.iter().map(|x| x % 1000).filter(|&x| small(x)).collect();
        want.sort_unstable();
        want.dedup();
        let distinct = distinct.to_vec().unwrap()[0] as usize;
        assert_eq!(found.to_vec().unwrap()[..distinct], want, "{name}");
    }
}

/// Work-groups without elements end before they count themselves, so counters that launches share return to 0.
#[test]
fn counted_reductions_reset_the_counters_that_launches_share() {
    for (name, device) in common::with_sub_groups() {
        let n = if runs_kernels_at_once(&device) { 500_000 } else { 40_000 };
        let x = Data::Random.generate::<f32>(n, 4);
        let (there, none) = (device.upload(&x).unwrap(), device.zeroed::<u64>(1).unwrap());
        let few = device.upload(&[17u32]).unwrap();
        let want = Device::cpu().reduce(&x, Sum).unwrap();
        for _ in 0..3 {
            assert_eq!(device.reduce(there.take(&none), Sum).unwrap().to_bits(), 0, "{name}");
            assert_eq!(device.reduce(there.take(&none), Sum.exact()).unwrap().to_bits(), 0, "{name}");
            assert_eq!(device.reduce(there.take(&few), Sum).unwrap(), Device::cpu().reduce(&x[..17], Sum).unwrap());
            assert_eq!(device.reduce(&there, Sum).unwrap().to_bits(), want.to_bits(), "{name}");
            assert_eq!(device.reduce(&there, Sum.exact()).unwrap(), Device::cpu().reduce(&x, Sum.exact()).unwrap());
        }
    }
}

#[test]
fn reductions_take_the_count_of_a_selection() {
    for (name, device) in devices() {
        let n = if runs_kernels_at_once(&device) { 100_003 } else { 2003 };
        let x = Data::Random.generate::<f32>(n, 5);
        let positive = Map::new(|x: f32| x > 0.25, "x > 0.25f");
        let there = device.upload(&x).unwrap();
        let (mut kept, mut count) = (device.zeroed::<f32>(n).unwrap(), device.zeroed::<u64>(1).unwrap());
        let mut sum = device.zeroed::<f32>(1).unwrap();
        let want: Vec<f32> = x.iter().copied().filter(|&x| x > 0.25).collect();
        device.select_into(&there, &positive, &mut kept, &mut count).unwrap();
        device.reduce_into(kept.take(&count), Sum, &mut sum).unwrap();
        assert_eq!(sum.to_vec().unwrap(), [Device::cpu().reduce(&want, Sum).unwrap()], "{name}");
    }
}

#[test]
fn a_gather_by_a_count_reads_only_the_counted_indices() {
    for (name, device) in devices() {
        let x = device.upload(&[10u32, 20, 30]).unwrap();
        let index = device.upload(&[2u32, 0, 9, 1]).unwrap();
        let count = |n: u32| device.upload(&[n]).unwrap();
        assert_eq!(device.reduce(x.gathered(&index).take(&count(2)), Sum).unwrap(), 40, "{name}");
        let error = device.reduce(x.gathered(&index).take(&count(3)), Sum).unwrap_err();
        assert_eq!(error.to_string(), "index 2 is 9, beyond the 3 elements", "{name}");
        let mut out = device.zeroed::<u32>(4).unwrap();
        device.transform_into(x.gathered(&index).take(&count(2)), &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), [30, 10, 0, 0], "{name}");
        let plus = Operator::new("a + b", 0u32, u32::wrapping_add, "a + b");
        assert_eq!(device.reduce(x.gathered(&index).take(&count(2)), &plus).unwrap(), 40, "{name}");
    }
}

#[test]
fn errors_name_the_number_of_counts_and_of_elements() {
    for (name, device) in devices() {
        let x = device.upload(&[1.5f32, 2.5]).unwrap();
        let (two, none) = (device.upload(&[1u32, 2]).unwrap(), device.zeroed::<u64>(0).unwrap());
        let one = two.view(..1).unwrap();
        let refused = |error: oclprim::Error, text: &str| {
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, text), "{name}");
        };
        refused(device.reduce(x.take(&two), Sum).unwrap_err(), "`take` needs a count of 1 element, got 2");
        refused(device.reduce(x.take(&none), Max).unwrap_err(), "`take` needs a count of 1 element, got 0");
        refused(device.reduce(x.reversed().take(&two), Sum).unwrap_err(), "`take` needs a count of 1 element, got 2");
        refused(device.transform(x.take(&two)).unwrap_err(), "`take` needs a count of 1 element, got 2");
        refused(device.count(x.take(&two), NonZero).unwrap_err(), "`take` needs a count of 1 element, got 2");
        let mut out = device.zeroed::<f32>(1).unwrap();
        refused(
            device.transform_into(x.take(one), &mut out).unwrap_err(),
            "transform needs an output of 2 elements, got 1",
        );
        refused(
            device.reduce(counting(1u32).take(one), Sum).unwrap_err(),
            "an endless source needs a length: write `take(n)`",
        );
        let mut pair = device.zeroed::<f32>(2).unwrap();
        refused(
            device.reduce_into(x.take(one), Sum, &mut pair).unwrap_err(),
            "reduce needs an output of 1 elements, got 2",
        );
    }
}
