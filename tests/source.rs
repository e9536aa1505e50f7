//! Sources: every expression equals the array that it stands for.

mod common;

use common::{a_form_of_each_kernel, random, runs_kernels_at_once, tiny};
use oclprim::internals::scan::{Scan, in_scan};
use oclprim::{
    Determinism, Device, Element, ErrorKind, ExactSum, Float, Source, bf16, f16,
    op::{Arithmetic, Map, Max, Min, Op, Product, Sum, Usage, Xor},
    source::{constant, counting, zip},
};

/// Sizes around vectors, rows and tiles of `f32`.
fn sizes(device: &Device) -> Vec<usize> {
    if !runs_kernels_at_once(device) {
        vec![1, 1027]
    } else if tiny() {
        vec![0, 1, 1027, 16_385]
    } else {
        vec![0, 1, 3, 255, 1023, 1027, 16_383, 16_384, 16_385, 50_003]
    }
}

fn floats(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 % 1009) as f32 - 500.0) / 7.0).collect()
}

/// The devices in both geometries, and with 64-bit offsets.
fn devices() -> Vec<(String, Device)> {
    let wide = if a_form_of_each_kernel() { Vec::new() } else { common::wide() };
    [common::with_geometries(), wide].concat()
}

/// Asserts that a source has the elements `want`, and reduces as they do.
fn expect<S: Source<Item: Element> + Copy>(name: &str, device: &Device, source: S, want: &[S::Item])
where
    Sum: Op<S::Item>,
    Max: Op<S::Item>,
{
    let same = |a: &[S::Item], b: &[S::Item]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(*b));
    let got = device.transform(source).unwrap().to_vec().unwrap();
    assert!(same(&got, want), "{name}: {} elements", want.len());
    let mut inside = device.filled(want.len() + 4, S::Item::ONE).unwrap();
    device.transform_into(source, inside.view_mut(3..want.len() + 3).unwrap()).unwrap();
    let inside = inside.to_vec().unwrap();
    assert!(same(&inside[3..want.len() + 3], want), "{name}: unaligned output");
    assert!(same(&[inside[2], inside[want.len() + 3]], &[S::Item::ONE; 2]), "{name}: writes outside the output");
    for determinism in [Determinism::Fixed, Determinism::Fast] {
        let most = device.reduce(source, Max.with(determinism)).unwrap();
        assert!(most.same(Device::cpu().reduce(want, Max).unwrap()), "{name}: max of {}", want.len());
    }
    let (sum, of_array) = (device.reduce(source, Sum).unwrap(), device.reduce(want, Sum).unwrap());
    assert!(sum.same(of_array), "{name}: sum of {}: {sum}, not {of_array}", want.len());
    assert!(of_array.same(Device::cpu().reduce(want, Sum).unwrap()), "{name}: sum of the array");
}

#[test]
fn components_of_tuples_go_to_outputs_of_their_own() {
    for (name, device) in devices() {
        for n in sizes(&device) {
            for skip in [0, 1] {
                let (all, name) = (floats(n + skip), format!("{name}, {n} from {skip}"));
                let (buffer, x) = (device.upload(&all).unwrap(), &all[skip..]);
                let view = buffer.view(skip..).unwrap();
                let bytes: Vec<u8> = (0..n).map(|i| (i * 7 % 256) as u8).collect();
                let scaled = Map::new(|x: f32| x * 0.3 + 1.0, "x * 0.3f + 1.0f");
                let product = Map::new(|(a, b): (f32, f32)| a * b, "a * b");
                let want: Vec<f32> = x.iter().map(|x| x * 0.3 + 1.0).collect();
                let squares: Vec<f32> = x.iter().map(|x| x * x).collect();
                let mirrored: Vec<u64> = bytes.iter().rev().map(|&x| x.into()).collect();

                // Two outputs of one type, and an array that both components read.
                let (a, b) = device.transform(view.map(&scaled).zip(view.zip(view).map(&product))).unwrap();
                assert!(a.to_vec().unwrap() == want && b.to_vec().unwrap() == squares, "two, {name}");

                // Three outputs of several sizes, one on the host and one at an odd offset of a longer buffer.
                let mut indices = vec![0u16; n];
                let (mut wide, mut inside) = (device.zeroed::<u64>(n).unwrap(), device.filled(n + 5, 9u8).unwrap());
                let parts = zip((bytes.reversed().cast::<u64>(), counting(3u16), &bytes));
                device.transform_into(parts, (&mut wide, &mut indices, inside.view_mut(3..n + 3).unwrap())).unwrap();
                assert!(wide.to_vec().unwrap() == mirrored, "three, {name}");
                assert!((0..n).all(|i| indices[i] == (i as u16).wrapping_add(3)), "three, {name}");
                let inside = inside.to_vec().unwrap();
                assert!(inside[3..n + 3] == bytes && inside[..3] == [9; 3] && inside[n + 3..] == [9; 2], "{name}");

                let (a, b, c, d) = device.transform(zip((view, &bytes, bytes.cast::<f16>(), constant(7i64)))).unwrap();
                assert!(a.to_vec().unwrap() == x && b.to_vec().unwrap() == bytes, "four, {name}");
                let halves: Vec<f16> = bytes.iter().map(|&x| f16::from_f32(x.into())).collect();
                assert!(c.to_vec().unwrap() == halves && d.to_vec().unwrap() == vec![7; n], "four, {name}");

                let pairs: Vec<(f32, f32)> = x.windows(2).map(|pair| (pair[0], pair[1])).collect();
                let (a, b) = device.transform(view.neighbours::<2>()).unwrap();
                let found: Vec<_> = a.to_vec().unwrap().into_iter().zip(b.to_vec().unwrap()).collect();
                assert!(found == pairs, "neighbours, {name}");
            }
        }
    }
}

#[test]
fn wrong_lengths_and_indices_of_tuples_are_errors() {
    for (name, device) in common::devices() {
        let (x, y, mut a, mut b) = ([1u32, 2, 3], [4u8, 5], [0u32; 3], [0u8; 2]);
        let error = device.transform_into(x.zip(&y), (&mut a, &mut b)).unwrap_err();
        assert_eq!(error.to_string(), "zip needs sources of equal length, got 3 and 2 elements", "{name}");
        let error = device.transform_into(x.zip(constant(1u8)), (&mut a, &mut b)).unwrap_err();
        assert_eq!(error.to_string(), "transform needs an output of 3 elements, got 2", "{name}");
        let error = device.transform(x.gathered(&[0u8, 3]).zip(&y)).unwrap_err();
        assert_eq!(error.to_string(), "index 1 is 3, beyond the 3 elements", "{name}");
        let error = device.transform(counting(0u8).zip(constant(1u8))).unwrap_err();
        assert_eq!(error.to_string(), "an endless source needs a length: write `take(n)`", "{name}");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
    }
}

#[test]
fn each_source_equals_its_array() {
    for (name, device) in devices() {
        for n in sizes(&device) {
            for skip in [0, 1, 3] {
                let all = floats(n + skip);
                let (buffer, x) = (device.upload(&all).unwrap(), &all[skip..]);
                let view = buffer.view(skip..).unwrap();
                let name = format!("{name}, {n} from {skip}");
                let scaled = Map::new(|x: f32| x * 0.3 + 1.0, "x * 0.3f + 1.0f");
                let want: Vec<f32> = x.iter().map(|x| x * 0.3 + 1.0).collect();
                expect(&format!("map, {name}"), &device, view.map(&scaled), &want);
                expect(&format!("map of a slice, {name}"), &device, x.map(&scaled), &want);
                let product = Map::new(|(a, b): (f32, f32)| a * b, "a * b");
                let want: Vec<f32> = x.iter().zip(&all).map(|(a, b)| a * b).collect();
                expect(&format!("zip, {name}"), &device, view.zip(buffer.view(..n).unwrap()).map(&product), &want);
                let want: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
                if common::has_doubles(&device) {
                    expect(&format!("cast, {name}"), &device, view.cast::<f64>(), &want);
                }
                let want: Vec<f32> = x.iter().rev().copied().collect();
                expect(&format!("reversed, {name}"), &device, view.reversed(), &want);
                for step in [1, 3, 1 << 40] {
                    let want: Vec<f32> = x.iter().step_by(step).copied().collect();
                    expect(&format!("strided by {step}, {name}"), &device, view.strided(step), &want);
                }
                let indices: Vec<u32> = (0..n as u32).map(|i| i * 7919 % n as u32).collect();
                let index = device.upload(&indices).unwrap();
                let want: Vec<f32> = indices.iter().map(|i| x[*i as usize]).collect();
                expect(&format!("gathered, {name}"), &device, view.gathered(&index), &want);
                expect(&format!("take, {name}"), &device, buffer.take(n), &all[..n]);
            }
            let want: Vec<u16> = (0..n).map(|i| (65_530u16).wrapping_add(i as u16)).collect();
            expect(&format!("counting, {name}"), &device, counting(65_530u16).take(n), &want);
            let want: Vec<i64> = (0..n as i64).map(|i| i - 5).collect();
            expect(&format!("counting, {name}"), &device, counting(-5i64).take(n), &want);
            expect(
                &format!("constant, {name}"),
                &device,
                constant(f16::from_f32(0.5)).take(n),
                &vec![f16::from_f32(0.5); n],
            );
        }
    }
}

#[test]
fn compositions_equal_their_arrays() {
    for (name, device) in devices() {
        for n in sizes(&device) {
            let (x, y, bytes) = (floats(n), floats(n + 1), random::<u8>(n, n as u64));
            let (a, b, c) = (device.upload(&x).unwrap(), device.upload(&y).unwrap(), device.upload(&bytes).unwrap());
            let b = b.view(1..).unwrap();
            let fused = Map::new(|(a, b, c): (f32, f32, f32)| a * b - c, "a * b - c");
            let want: Vec<f32> = (0..n).map(|i| x[i] * y[i + 1] - f32::from(bytes[i])).collect();
            expect(&format!("zip of three, {name}"), &device, zip((&a, b, c.cast::<f32>())).map(&fused), &want);
            let nested = Map::new(|((a, b), c): ((f32, u8), f32)| a + f32::from(b) * c, "a + (float)b * c");
            let want: Vec<f32> = (0..n).map(|i| x[n - 1 - i] + f32::from(bytes[n - 1 - i]) * 0.7).collect();
            let source = a.zip(&c).reversed().zip(constant(0.7f32)).map(&nested);
            expect(&format!("zip of a zip, reversed, {name}"), &device, source, &want);
            let double = Map::new(|x: u32| 2 * x, "2 * x");
            let want: Vec<u32> = (0..n).step_by(2).map(|i| 2 * u32::from(bytes[i])).collect();
            expect(
                &format!("map of a cast of a stride, {name}"),
                &device,
                c.strided(2).cast::<u32>().map(&double),
                &want,
            );
            let back = counting(0u64).take(n).reversed();
            let want: Vec<f32> = x.iter().rev().copied().collect();
            expect(&format!("gathered by an expression, {name}"), &device, a.gathered(back), &want);
            let square = Map::new(|x: u64| x * x, "x * x");
            let want: Vec<u64> = bytes.iter().map(|&i| u64::from(i) * u64::from(i)).collect();
            expect(
                &format!("gathered from an endless table, {name}"),
                &device,
                counting(0u64).map(&square).gathered(&c),
                &want,
            );
            if n > 0 {
                let twice =
                    counting(0u32).take(n).gathered(counting(0i8).take(n.min(100)).reversed()).gathered(vec_of(n));
                let want: Vec<u32> = vec_of(n).iter().map(|&i| (n.min(100) - 1 - usize::from(i)) as u32).collect();
                expect(&format!("gathered twice, {name}"), &device, twice, &want);
            }
            let four = Map::new(
                |(a, b, c, d): (u8, u8, i16, u8)| i32::from(a) - i32::from(b) * i32::from(c) + i32::from(d),
                "(int)a - (int)b * (int)c + (int)d",
            );
            let want: Vec<i32> = (0..n).map(|i| i32::from(bytes[i]) * -2 + i32::from(i as u8)).collect();
            expect(
                &format!("zip of four, {name}"),
                &device,
                zip((&c, &c, constant(3i16), counting(0u8))).map(&four),
                &want,
            );
        }
    }
}

/// Indices below 100 and below `n`.
fn vec_of(n: usize) -> &'static [u16] {
    const SOME: &[u16] = &[99, 0, 7, 7, 42, 3];
    if n >= 100 { SOME } else { &SOME[1..2] }
}

/// Casts between all types, of values at their edges.
#[test]
fn casts_equal_those_of_rust() {
    fn check<T: Element>(name: &str, device: &Device) {
        let edges = [
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            127.5,
            128.0,
            -129.0,
            255.9,
            300.0,
            65_519.9,
            65_520.0,
            -70_000.0,
            1e9,
            2_147_483_648.0,
            4_294_967_296.0,
            9.3e18,
            -9.3e18,
            1.9e19,
            3.5e38,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        let mut x: Vec<T> = edges.iter().map(|&x| T::from_f64(x)).collect();
        x.extend(random::<u64>(200, 3).into_iter().map(T::from_bits_lossy));
        let x: Vec<T> = x.into_iter().filter(|x| x.to_f64() == 0.0 || x.to_f64().abs() > 1e-30 || x.is_nan()).collect();
        to::<T, i8>(name, device, &x);
        to::<T, i16>(name, device, &x);
        to::<T, i32>(name, device, &x);
        to::<T, i64>(name, device, &x);
        to::<T, u8>(name, device, &x);
        to::<T, u16>(name, device, &x);
        to::<T, u32>(name, device, &x);
        to::<T, u64>(name, device, &x);
        to::<T, f16>(name, device, &x);
        to::<T, bf16>(name, device, &x);
        to::<T, f32>(name, device, &x);
        to::<T, f64>(name, device, &x);
    }
    fn to<T: Element, U: Element>(name: &str, device: &Device, x: &[T]) {
        if !common::has_doubles(device) && (T::TYPE.needs_fp64() || U::TYPE.needs_fp64()) {
            return;
        }
        let got = device.transform(x.cast::<U>()).unwrap().to_vec().unwrap();
        for (x, got) in x.iter().zip(got) {
            let want: U = x.cast();
            assert!(got.same(want), "{name}: {x:?} of {} is {got:?} in {}, not {want:?}", T::TYPE, U::TYPE);
        }
    }
    for (name, device) in common::devices() {
        if a_form_of_each_kernel() && !device.is_cpu() {
            check::<f32>(&name, &device);
            continue;
        }
        check::<i8>(&name, &device);
        check::<i64>(&name, &device);
        check::<u32>(&name, &device);
        check::<u64>(&name, &device);
        check::<f16>(&name, &device);
        check::<bf16>(&name, &device);
        check::<f32>(&name, &device);
        check::<f64>(&name, &device);
    }
}

/// If every order of additions gives the same bits, elements are read in their narrow type. Else the tree is that of the wide
/// type.
#[test]
fn casts_are_reduced_in_the_wide_type() {
    let bytes = random::<u8>(100_003, 1);
    let floats: Vec<f16> = bytes.iter().map(|x| f16::from_f32(f32::from(*x) / 3.0)).collect();
    let wide: Vec<f32> = floats.iter().map(|x| x.to_f32()).collect();
    let total: u64 = bytes.iter().map(|x| u64::from(*x)).sum();
    for (name, device) in common::with_geometries() {
        let buffer = device.upload(&bytes).unwrap();
        assert_eq!(device.reduce(buffer.cast::<u64>(), Sum).unwrap(), total, "{name}");
        assert_eq!(device.reduce(buffer.cast::<i8>().cast::<u8>().cast::<u64>(), Sum).unwrap(), total, "{name}");
        let parity = bytes.iter().fold(0i32, |all, x| all ^ i32::from(*x as i8));
        assert_eq!(device.reduce(buffer.cast::<i8>().cast::<i32>(), Xor).unwrap(), parity, "{name}");
        let part = buffer.view(7..).unwrap();
        assert_eq!(
            device.reduce(part.cast::<u64>().take(5), Sum).unwrap(),
            bytes[7..12].iter().map(|x| u64::from(*x)).sum::<u64>()
        );
        let sum = device.reduce(floats.cast::<f32>(), Sum).unwrap();
        assert_eq!(sum.to_bits(), device.reduce(&wide, Sum).unwrap().to_bits(), "{name}");
        assert_eq!(device.reduce(floats.cast::<f32>(), Min).unwrap(), 0.0, "{name}");
    }
}

#[test]
fn empty_sources_reduce_to_the_identity() {
    for (name, device) in common::with_geometries() {
        let nothing = device.upload(&[0u32; 0]).unwrap();
        let one = Map::new(|_: u32| 7u32, "7u");
        assert_eq!(device.reduce(nothing.map(&one), Product).unwrap(), 1, "{name}");
        assert_eq!(device.reduce(nothing.gathered(&nothing), Min).unwrap(), u32::MAX, "{name}");
        assert_eq!(device.transform(nothing.reversed()).unwrap().len(), 0, "{name}");
    }
}

#[test]
fn errors_name_the_numbers() {
    for (name, device) in common::with_geometries() {
        let (x, y) = (device.upload(&[1u32, 2, 3]).unwrap(), device.upload(&[1u32, 2]).unwrap());
        let sum = Map::new(|(a, b): (u32, u32)| a + b, "a + b");
        let errors = [
            (device.reduce(x.zip(&y).map(&sum), Sum).err(), "zip needs sources of equal length, got 3 and 2 elements"),
            (
                device.transform(zip((&x, &x, &y)).map(Map::new(|(a, _, _): (u32, u32, u32)| a, "a"))).err(),
                "zip needs sources of equal length, got 3 and 2 elements",
            ),
            (device.reduce(counting(0u32), Sum).err(), "an endless source needs a length: write `take(n)`"),
            (device.transform(constant(0u32).reversed()).err(), "an endless source needs a length: write `take(n)`"),
            (device.reduce(x.strided(0), Sum).err(), "a stride is at least 1, got 0"),
            (device.reduce(x.take(4), Sum).err(), "cannot take 4 elements of a source of 3"),
            (device.reduce(x.gathered(&[2i64, -1, 3]), Sum).err(), "index 1 is -1, beyond the 3 elements"),
            (
                device.transform(x.gathered(y.reversed()).gathered(&[1u8, 0, 7])).err(),
                "index 2 is 7, beyond the 2 elements",
            ),
            (device.transform(x.take(0).gathered(&y)).err(), "index 0 is 1, beyond the 0 elements"),
            (device.transform_into(x.reversed(), &mut [0; 2]).err(), "reverse needs an output of 3 elements, got 2"),
            (
                device.transform_into(x.zip(&x).map(&sum), &mut [0; 2]).err(),
                "transform needs an output of 3 elements, got 2",
            ),
        ];
        for (error, text) in errors {
            let error = error.unwrap_or_else(|| panic!("{name}: no error `{text}`"));
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, text), "{name}");
        }
        let mut late = vec![0u32; 1_100_000];
        late[1_050_000] = 3;
        let error = device.reduce(x.gathered(&late), Sum).unwrap_err();
        assert_eq!(error.to_string(), "index 1050000 is 3, beyond the 3 elements", "{name}");
        let mut out = [0u32; 2];
        let error = device.reduce_into(x.reversed(), Sum, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "reduce needs an output of 1 elements, got 2", "{name}");
    }
}

#[test]
fn an_expression_that_does_not_build_gives_the_log() {
    for (name, device) in common::opencl_devices_or_skip("an_expression_that_does_not_build") {
        let wrong = Map::new(|x: f32| x + 1.0, "x +\n  missing_name");
        let error = device.reduce([1.0f32][..].map(wrong), Sum).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        let wanted = ("expression:2", 3, "  missing_name");
        assert!(log.contains("'missing_name'") && common::names_line(&device, log, wanted), "{name}: {log}");
    }
}

#[test]
fn exact_sums_are_those_of_the_array() {
    let n = if tiny() { 9_001 } else { 70_001 };
    let x: Vec<f32> = (0..n).map(|i| (1.05f32).powi(i % 1000) * if i % 2 == 0 { 1.0 } else { -0.9 }).collect();
    let half = Map::new(|x: f32| x / 2.0, "x / 2.0f");
    let halves: Vec<f32> = x.iter().map(|x| x / 2.0).collect();
    let cpu = Device::cpu();
    let want = ExactSum::of(&cpu, &halves).unwrap();
    for (name, device) in devices().into_iter().chain([("the CPU".into(), cpu.clone())]) {
        assert_eq!(device.reduce(x.map(&half), Sum.exact()).unwrap(), want.round(), "{name}");
        assert_eq!(ExactSum::of(&device, x.map(&half)).unwrap(), want, "{name}");
        let none = ExactSum::of(&device, x[..0].map(&half)).unwrap();
        assert_eq!(none, ExactSum::new(), "{name}");
        if device.capabilities().unwrap().is_none_or(|caps| caps.fp64) {
            // Casts to doubles: of elements in memory, and of elements that a function computes.
            assert_eq!(device.reduce(halves.cast::<f64>(), Sum.exact()).unwrap(), want.round_f64(), "{name}");
            assert_eq!(device.reduce(x.map(&half).cast::<f64>(), Sum.exact()).unwrap(), want.round_f64(), "{name}");
            let doubles: ExactSum<f64> = halves.iter().map(|&x| f64::from(x)).collect();
            assert_eq!(ExactSum::of(&device, halves.cast::<f64>()).unwrap(), doubles, "{name}");
        }
    }
}

/// Only an exact sum distinguishes products of `times` from other elements.
#[test]
fn exact_sums_of_products_round_once() {
    fn check<T: Float>(name: &str, device: &Device, n: usize, precision: i32)
    where
        Sum: Op<T>,
    {
        // All products but the last two cancel.
        let large = |i: usize| T::from_f64(1.0 + (i % 7) as f64 / 8.0);
        let x: Vec<T> = (0..n).map(large).chain((0..n).map(|i| T::from_f64(-large(i).to_f64()))).collect();
        let y: Vec<T> = (0..2 * n).map(|i| T::from_f64(1.0 + (i % n % 5) as f64 / 64.0)).collect();
        let below = 1.0 - 2f64.powi(-precision);
        let (x, y) =
            ([x, vec![T::from_f64(below), T::from_f64(-1.0)]].concat(), [y, vec![T::from_f64(below); 2]].concat());
        // The sum is below^2 - below = -e + e^2 with e = 2^-precision. If below^2 is rounded, the sum is -e.
        let mut want = ExactSum::new();
        x.iter().zip(&y).for_each(|(&x, &y)| want.add_product(x, y));
        let (a, b) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
        let exact = |source| device.reduce(source, Sum.exact()).unwrap();
        assert!(exact(a.times(&b)).same(want.round()), "{name}: {n} of {}", T::TYPE);
        assert!(ExactSum::of(device, a.times(&b)).unwrap() == want, "{name}: bytes of {n} of {}", T::TYPE);
        let first = device.reduce(a.times(&b).take(2 * n), Sum.exact()).unwrap();
        assert_eq!(first.to_f64(), 0.0, "{name}: the first {n} of {}", T::TYPE);
        // If another source reads the products, they are rounded.
        let rounded: Vec<T> = x.iter().zip(&y).map(|(x, y)| T::narrow(x.widen().mul(y.widen()))).collect();
        let backwards = device.reduce(a.times(&b).reversed(), Sum.exact()).unwrap();
        let of_array = Device::cpu().reduce(&rounded, Sum.exact()).unwrap();
        assert!(backwards.same(of_array) && !backwards.same(want.round()), "{name}: reversed, {n} of {}", T::TYPE);
        let cast = device.reduce(a.times(&b).cast::<T>(), Sum.exact()).unwrap();
        assert!(cast.same(of_array), "{name}: cast, {n} of {}", T::TYPE);
        let fixed = device.reduce(a.times(&b), Sum).unwrap();
        assert!(fixed.same(Device::cpu().reduce(&rounded, Sum).unwrap()), "{name}: fixed, {n} of {}", T::TYPE);
    }
    for (name, device) in devices() {
        for n in sizes(&device).into_iter().filter(|n| n % 2 == 1) {
            check::<f16>(&name, &device, n, 11);
            check::<bf16>(&name, &device, n, 8);
            check::<f32>(&name, &device, n, 24);
            if device.capabilities().unwrap().is_none_or(|caps| caps.fp64) {
                check::<f64>(&name, &device, n, 53);
            }
        }
        let (x, y) = (vec![i16::MIN, 300, -7], vec![i16::MIN, 300, 9]);
        expect(&name, &device, x.times(&y), &[0, 300i16.wrapping_mul(300), -63]);
        let error = device.reduce(x.times(&y[..2]), Sum).unwrap_err();
        assert_eq!(error.to_string(), "times needs sources of equal length, got 3 and 2 elements");
    }
}

/// A scan computes the elements as it reads them; tiles have 32 KiB of the type of the source.
#[test]
fn scans_equal_those_of_the_array() {
    fn check<S: Source<Item = T> + Copy, T: Element, U: Element + From<T>>(
        name: &str,
        device: &Device,
        source: S,
        kinds: &[Scan<U>],
    ) where
        Sum: Op<U>,
        Max: Op<T>,
    {
        let array = device.transform(source).unwrap().to_vec().unwrap();
        let wide: Vec<U> = array.iter().map(|&x| U::from(x)).collect();
        for &kind in kinds {
            for more in [0, 1] {
                // Only an exclusive scan has room for the total.
                let wanted = |device: &Device, of_source: bool| {
                    let mut out = vec![U::ZERO; array.len() + more];
                    if of_source {
                        device.scan_into(source.cast::<U>(), in_scan(Sum, kind), &mut out).map(|()| out)
                    } else {
                        device.scan_into(&wide, in_scan(Sum, kind), &mut out).map(|()| out)
                    }
                };
                match (wanted(device, true), wanted(&Device::cpu(), false)) {
                    (Ok(got), Ok(want)) => {
                        let first = got.iter().zip(&want).position(|(a, b)| !a.same(*b));
                        assert_eq!(first, None, "{name}: {kind:?} of {} {}, {more} more", array.len(), T::TYPE);
                    }
                    (got, want) => assert_eq!(got.unwrap_err().to_string(), want.unwrap_err().to_string(), "{name}"),
                }
            }
        }
        let most = device.scan(source, Max).unwrap().to_vec().unwrap();
        assert!(most == Device::cpu().scan(&array, Max).unwrap().to_vec().unwrap(), "{name}: max");
    }
    let half = Map::new(|x: u8| f32::from(x) * 0.3, "x * 0.3f");
    let parity = Map::new(|x: f32| (x as i32 & 1) as u8, "(int)x & 1");
    let sizes = |device: &Device| match (runs_kernels_at_once(device), tiny()) {
        (false, _) => vec![1027],
        (_, true) => vec![0, 1027, 8192, 16_389],
        _ => vec![0, 1, 31, 1027, 8191, 8192, 8193, 33_000, 300_001],
    };
    for (name, device) in devices().into_iter().chain([("the CPU".into(), Device::cpu())]) {
        for n in sizes(&device) {
            let (x, bytes) = (floats(n), (0..n).map(|i| (i * 31 % 251) as u8).collect::<Vec<u8>>());
            let (x, narrow) = (device.upload(&x).unwrap(), device.upload(&bytes).unwrap());
            let floats = [Scan::inclusive(), Scan::inclusive().reversed(), Scan::exclusive(0.5f32)];
            check::<_, f32, f32>(&name, &device, narrow.map(&half), &floats);
            check::<_, f32, f32>(&name, &device, x.times(&x).reversed(), &floats[..2]);
            let counts = [Scan::exclusive(3u32), Scan::exclusive(3u32).reversed()];
            check::<_, u8, u32>(&name, &device, x.map(&parity), &counts);
            let view = narrow.view(n.min(1)..).unwrap();
            check::<_, u64, u64>(
                &name,
                &device,
                view.cast::<u64>(),
                &[Scan::inclusive(), Scan::exclusive(1).reversed()],
            );
        }
        let (table, wrong) = (vec![1.0f32, 2.0], vec![0u8, 1, 2]);
        let error = device.scan(table.gathered(&wrong), Sum).unwrap_err();
        assert_eq!(error.to_string(), "index 2 is 2, beyond the 2 elements", "{name}");
    }
}

/// `counting` needs no memory, so an index can exceed 2^32.
#[test]
fn sources_take_indices_beyond_32_bits() {
    let far = (1u64 << 32) + 5;
    for (name, device) in common::with_geometries() {
        let part = counting(0u64).strided(1 << 31).take(5);
        assert_eq!(
            device.transform(part).unwrap().to_vec().unwrap(),
            [0, 1 << 31, 1 << 32, 3 << 31, 1 << 33],
            "{name}"
        );
        let index = device.upload(&[far, far + 2]).unwrap();
        assert_eq!(
            device.reduce(counting(1u64).take(far as usize + 3).gathered(&index), Max).unwrap(),
            far + 3,
            "{name}"
        );
    }
}

#[test]
fn text_that_several_maps_share_occurs_once() {
    for (name, device) in devices() {
        let x = floats(1027);
        let half = Map::new(|x: f32| 0.5 * x, "halved(x)")
            .with_functions("static inline float halved(float x) { return 0.5f * x; }\n");
        let difference = Map::new(|(a, b): (f32, f32)| b - a, "b - a");
        let want: Vec<f32> = x.windows(2).map(|pair| 0.5 * pair[1] - 0.5 * pair[0]).collect();
        expect(&name, &device, x.map(&half).neighbours::<2>().map(&difference), &want);
        expect(&name, &device, x.map(&half).zip(x.map(&half)).map(&difference), &[0.0; 1027]);
    }
}

#[test]
fn indices_below_zero_are_refused_for_endless_tables() {
    for (name, device) in devices() {
        for index in [-1, -2, i32::MIN] {
            let error = device.reduce(counting(0u32).gathered(&[3, index, 4]), Sum).unwrap_err();
            let what = format!("index 1 is {index}, beyond the {} elements", 1u64 << 63);
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, what), "{name}");
        }
        assert_eq!(device.reduce(counting(0u32).gathered(&[3, i32::MAX]), Max).unwrap(), i32::MAX as u32, "{name}");
    }
}

/// Two elements of four pairs.
type Eight = ((f32, f32), (f32, f32), (f32, f32), (f32, f32));

#[test]
fn components_have_names_beyond_the_alphabet() {
    let last = Map::new(|w: (Eight, Eight, Eight, Eight)| w.3.3.1 - w.0.0.0, "f_1 - a");
    for (name, device) in devices() {
        let (x, y) = (floats(40), floats(41));
        let pairs = || x.zip(&y[1..]);
        let eight = zip((pairs(), pairs(), pairs(), pairs()));
        let want: Vec<f32> = (0..37).map(|i| y[i + 4] - x[i]).collect();
        expect(&name, &device, eight.neighbours::<4>().map(&last), &want);
    }
}

#[test]
fn neighbours_of_too_few_elements_are_empty() {
    for (name, device) in devices() {
        let difference = Map::new(|(a, b): (f32, f32)| b - a, "b - a");
        for n in 0..2 {
            let got = device.transform(floats(n).neighbours::<2>().map(&difference)).unwrap();
            assert!(got.to_vec().unwrap().is_empty(), "{name}: {n}");
        }
        let whole = Map::new(|(a, b): (u32, u32)| b - a, "b - a");
        let endless = counting(0u32).take(usize::MAX).neighbours::<2>().map(&whole);
        assert_eq!(device.reduce(endless.take(3), Sum).unwrap(), 3, "{name}");
    }
}

#[test]
fn generated_names_do_not_collide() {
    for (name, device) in devices() {
        let same = Map::new(|x: u32| x ^ 1, "x ^ 1");
        let four = counting(0u32).take(40).map(&same).map(&same).map(&same).map(&same);
        let eight = four.map(&same).map(&same).map(&same).map(&same);
        let want: Vec<f16> = (0..40).map(|i| f16::from_f32(i as f32)).collect();
        expect(&name, &device, eight.cast::<f32>().cast::<f16>(), &want);
    }
}
