//! Scans: all operations and operators, in place, and errors.

mod common;

use oclprim::internals::scan::{Scan, in_scan};
use std::{collections::HashMap, thread};

use oclprim::{
    Device, Element, ErrorKind, Input, Layout, NdView, Order, Source, bf16, f16,
    internals::data::Data,
    internals::testing::guarded,
    internals::testing::same,
    op::{And, Map, Max, Min, Op, Or, Product, Sum, Usage, Xor},
};

/// Lengths at the edges of runs and tiles of 4-byte elements, and others.
const SIZES: [usize; 5] = [1, 3, 1000, 8192, 3 * 8192 + 5];

/// The definition: an exclusive scan from `initial`, if given, else an inclusive scan.
fn obvious<T: Element, O: Op<T>>(x: &[T], _: O, initial: Option<T>) -> Vec<T> {
    let (mut acc, inclusive) = initial.map_or((O::identity(), true), |initial| (initial.widen(), false));
    let mut out = Vec::new();
    for x in x {
        let next = O::combine(acc, x.widen());
        out.push(T::narrow(if inclusive { next } else { acc }));
        acc = next;
    }
    out
}

fn tries<T: Element, O: Op<T>>(op: O, n: usize) {
    let x: Vec<T> = Data::Random.generate(n, 7);
    for (name, device) in common::devices() {
        for initial in [None, Some(T::ONE)] {
            let kind = initial.map_or(Scan::inclusive(), Scan::exclusive);
            let got = device.scan(&x, in_scan(op, kind)).unwrap().to_vec().unwrap();
            let what = format!("{name}: {} {} {n} {kind:?}", T::TYPE, O::KIND.name());
            same(&got, &obvious(&x, op, initial), &what).unwrap();
        }
    }
}

#[test]
fn every_operator_equals_the_loop() {
    tries::<i32, _>(Sum, 10_007);
    tries::<i32, _>(And, 10_007);
    if !common::tiny() {
        tries::<i32, _>(Product, 10_007);
        tries::<f32, _>(Min, 10_007);
        tries::<u8, _>(Max, 40_001);
        tries::<i16, _>(Or, 20_001);
        tries::<u64, _>(Xor, 5_001);
    }
}

#[test]
fn scans_write_only_their_outputs() {
    for (name, device) in common::with_sub_groups() {
        for n in SIZES {
            for offset in [0, 1, 3] {
                let all: Vec<u32> = Data::Random.generate(n + offset, 1);
                let x = device.upload(&all).unwrap();
                let want = obvious(&all[offset..], Sum, Some(9));
                let got = guarded(&device, n, 2 * offset, |out| {
                    Ok(device.scan_into(x.view(offset..)?, Sum.exclusive().starting(9), out)?)
                });
                assert_eq!(got.unwrap(), want, "{name}: {n} at {offset}");
            }
        }
    }
}

/// Defect B17 of the original kernels: local memory past n was uninitialised, and the verdict was computed but never
/// shown. Here other elements follow the input of a partial tile, and every result and the total are compared.
#[test]
fn b17_partial_tiles_ignore_elements_after_the_input() {
    for (name, device) in common::with_sub_groups() {
        for n in [1, 31, 33, 255, 1023, 1025, 8191, 8193, 2 * 8192 + 4097] {
            let all: Vec<u32> = Data::Random.generate(n + 1030, n as u64);
            let x = device.upload(&all).unwrap();
            for (initial, outputs) in [(None, n), (Some(3), n + 1)] {
                let kind = initial.map_or(Scan::inclusive(), Scan::exclusive);
                let want = obvious(&[&all[..n], &[0]].concat(), Sum, initial);
                let got =
                    guarded(&device, outputs, 1, |out| Ok(device.scan_into(x.view(..n)?, in_scan(Sum, kind), out)?));
                assert_eq!(got.unwrap(), want[..outputs], "{name}: {n} {kind:?}");
            }
        }
    }
}

#[test]
fn offsets_end_with_the_total() {
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        for n in SIZES {
            let lengths: Vec<u32> = Data::Random.generate(n, 2);
            let offsets = device.offsets_of::<u32, u64>(&lengths).unwrap().to_vec().unwrap();
            let mut want = vec![0u64];
            want.extend(lengths.iter().scan(0u64, |sum, &x| {
                *sum += u64::from(x);
                Some(*sum)
            }));
            assert_eq!(offsets, want, "{name}: {n}");
        }
        assert_eq!(device.offsets_of::<u32, u32>(&[]).unwrap().to_vec().unwrap(), [0], "{name}");
    }
}

#[test]
fn scans_in_place_equal_the_cpu() {
    for (name, device) in common::with_sub_groups() {
        for n in SIZES {
            let host: Vec<f32> = Data::Random.generate(n, 3);
            for kind in [Scan::inclusive(), Scan::exclusive(0.5)] {
                let want = Device::cpu().scan(&host, in_scan(Sum, kind)).unwrap().to_vec().unwrap();
                let got = guarded(&device, n, 1, |mut x| {
                    x.write(&host)?;
                    Ok(device.scan_in_place(x, in_scan(Sum, kind))?)
                });
                same(&got.unwrap(), &want, &format!("{name}: {n} {kind:?}")).unwrap();
                let mut slice = host.clone();
                device.scan_in_place(&mut slice, in_scan(Sum, kind)).unwrap();
                same(&slice, &want, &format!("{name}: a slice of {n} {kind:?}")).unwrap();
            }
        }
    }
}

#[test]
fn empty_input_gives_an_empty_output_or_the_initial_value() {
    for (name, device) in common::devices() {
        assert!(device.scan(&[0f32; 0], Sum).unwrap().is_empty(), "{name}");
        let mut out = [7u8];
        device.scan_into(&[], Max.exclusive().starting(3), &mut out).unwrap();
        assert_eq!(out, [3], "{name}");
        device.scan_in_place(&mut [0i64; 0], Sum).unwrap();
    }
}

#[test]
fn outputs_of_wrong_length_are_errors() {
    for (name, device) in common::devices() {
        let mut out = device.zeroed::<u32>(4).unwrap();
        let mut refused = |kind, n: usize| {
            let x = vec![1u32; n];
            device.scan_into(&x, in_scan(Sum, kind), &mut out).unwrap_err()
        };
        for error in [refused(Scan::inclusive(), 3), refused(Scan::inclusive(), 5), refused(Scan::exclusive(0), 2)] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(refused(Scan::inclusive(), 3).to_string(), "scan needs an output of 3 elements, got 4");
    }
}

/// Float scans have the CPU's bits on every device and on every run.
#[test]
fn float_scans_have_one_order_everywhere() {
    fn of<T: Element>(devices: &[(String, Device)], n: usize, data: Data) {
        let x: Vec<T> = data.generate(n, 11);
        let sums = Device::cpu().scan(&x, Sum).unwrap().to_vec().unwrap();
        for (name, device) in devices {
            let buffer = device.upload(&x).unwrap();
            for round in 0..3 {
                let got = device.scan(&buffer, Sum).unwrap().to_vec().unwrap();
                same(&got, &sums, &format!("{name}: {}, round {round}", T::TYPE)).unwrap();
            }
        }
    }
    let all = [common::with_sub_groups(), common::wide()].concat();
    of::<f32>(&all, if common::tiny() { 9_001 } else { 300_007 }, Data::Random);
    if !common::tiny() {
        of::<f32>(&all, 50_001, Data::Special);
        of::<f16>(&common::tuned(&[("a GPU", common::gpu())]), 100_003, Data::Random);
        of::<bf16>(&common::devices(), 20_003, Data::Random);
    }
}

/// The scan runs from the last element to the first, and the total comes first.
#[test]
fn reversed_scans_start_at_the_last_element() {
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        for n in SIZES {
            let host: Vec<u32> = Data::Random.generate(n, 4);
            let turned: Vec<u32> = host.iter().rev().copied().collect();
            let mut want = obvious(&[&turned[..], &[0]].concat(), Sum, Some(9));
            want.reverse();
            let got = guarded(&device, n + 1, 1, |out| {
                let x = device.upload(&host)?;
                Ok(device.scan_into(&x, Sum.exclusive().starting(9).reversed(), out)?)
            });
            assert_eq!(got.unwrap(), want, "{name}: {n}");
        }
    }
}

/// OpenCL devices with every way to scan: in one launch and in several, with large and with small work-groups.
fn ways() -> Vec<(String, Device)> {
    common::tuned(&[
        ("a GPU", common::gpu()),
        ("a GPU without look-back", common::gpu().without_look_back()),
        ("a small GPU", common::gpu().local_bytes(2 << 10)),
        ("a small GPU without look-back", common::gpu().local_bytes(2 << 10).without_look_back()),
    ])
}

/// The input has more than 1024 tiles, and therefore more than 32 tile groups.
#[test]
fn scans_of_many_tiles_equal_the_loop() {
    if common::tiny() {
        return common::skip("scans_of_many_tiles_equal_the_loop", "scans millions of elements in many ways");
    }
    let n = 1060 * 4096 + 77;
    let x: Vec<u64> = Data::Random.generate(n, 5);
    let want = obvious(&x, Sum, None);
    let floats: Vec<f32> = Data::Random.generate(n, 6);
    let sums = Device::cpu().scan(&floats, Sum).unwrap().to_vec().unwrap();
    for (name, device) in ways() {
        if !name.contains("small") {
            assert!(device.scan(&x, Sum).unwrap().to_vec().unwrap() == want, "{name}");
        }
        let mut y = device.upload(&floats).unwrap();
        device.scan_in_place(&mut y, Sum).unwrap();
        same(&y.to_vec().unwrap(), &sums, &name).unwrap();
    }
}

/// Kernels whose work-groups wait for one another, on two queues of one device at once.
#[test]
fn look_back_on_two_queues_at_once_terminates() {
    let n = if common::tiny() { 5 * 8192 } else { 100 * 8192 + 5 };
    let x: Vec<u32> = Data::Random.generate(n, 8);
    let keys: Vec<u32> = (0..n as u32).map(|i| i / 11).collect();
    let large = Map::new(|x: u32| x > 1 << 31, "x > 1u << 31");
    let cpu = Device::cpu();
    let sums = obvious(&x, Sum, None);
    let mut sorted = x.clone();
    sorted.sort_unstable();
    let selected: Vec<u32> = x.iter().copied().filter(|&x| x > 1 << 31).collect();
    let by_key = cpu.reduce(x.by_key(&keys), Sum).unwrap().1.to_vec().unwrap();
    for index in 0..Device::list().len() {
        let device = Device::at(index).unwrap();
        if device.is_cpu() || !common::runs_kernels_at_once(&device) {
            continue;
        }
        let turns = || {
            let device = Device::at(index).unwrap().with_tuning(common::gpu()).unwrap();
            let (x, keys) = (device.upload(&x).unwrap(), device.upload(&keys).unwrap());
            for _ in 0..10 {
                let got = device.scan(&x, Sum).unwrap().to_vec().unwrap();
                assert!(got == sums, "scan: {}", device.info());
                let got = device.sort(&x, Order::ascending()).unwrap().to_vec().unwrap();
                assert!(got == sorted, "sort: {}", device.info());
                let got = device.select(&x, &large).unwrap().to_vec().unwrap();
                assert!(got == selected, "select: {}", device.info());
                let got = device.reduce(x.by_key(&keys), Sum).unwrap().1.to_vec().unwrap();
                assert!(got == by_key, "sum by key: {}", device.info());
            }
        };
        thread::scope(|scope| {
            scope.spawn(turns);
            turns();
        });
    }
}

/// Segments given by keys, flags and offsets, in both directions.
#[test]
fn segments_by_keys_flags_and_offsets_agree() {
    for (name, device) in common::with_sub_groups() {
        for n in SIZES {
            let x: Vec<u64> = Data::Random.generate(n, 4);
            let head = |i: usize| i.is_multiple_of(7) || i.is_multiple_of(1000) || i % 9001 == 5;
            let flags: Vec<u8> = (0..n).map(|i| u8::from(head(i))).collect();
            let offsets: Vec<u32> = (0..n).filter(|&i| head(i)).flat_map(|i| vec![i as u32; 1 + i % 3]).collect();
            let offsets = [offsets, vec![n as u32]].concat();
            let keys: Vec<i16> = (0..n)
                .scan(0, |key, i| {
                    Some({
                        *key ^= i16::from(head(i));
                        *key
                    })
                })
                .collect();
            for kind in [Scan::inclusive(), Scan::exclusive(3).reversed()] {
                let places: Vec<usize> =
                    if kind == Scan::inclusive() { (0..n).collect() } else { (0..n).rev().collect() };
                let (mut want, mut acc) = (vec![0; n], 0u64);
                for &i in &places {
                    if kind == Scan::inclusive() {
                        acc = if head(i) { x[i] } else { acc.wrapping_add(x[i]) };
                        want[i] = acc;
                    } else {
                        acc = if i + 1 == n || head(i + 1) { 3 } else { acc };
                        want[i] = acc;
                        acc = acc.wrapping_add(x[i]);
                    }
                }
                let what = format!("{name}: {n} {kind:?}");
                assert!(
                    device.scan(x.by_key(&keys), in_scan(Sum, kind)).unwrap().to_vec().unwrap() == want,
                    "{what} by key"
                );
                assert!(
                    device.scan(x.flagged(&flags), in_scan(Sum, kind)).unwrap().to_vec().unwrap() == want,
                    "{what} flagged"
                );
                let found = device.scan(x.segments(&offsets), in_scan(Sum, kind)).unwrap().to_vec().unwrap();
                assert!(found == want, "{what} at offsets");
            }
        }
    }
}

/// At one position of a tile there are more empty segments than the tile has elements.
#[test]
fn thousands_of_empty_segments_are_searched() {
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let (n, empty) = (30_000, 40_000);
        let x: Vec<f32> = Data::Random.generate(n, 5);
        let offsets = [vec![0u64; empty], vec![9000; empty], vec![9001, 9001, 20_000], vec![n as u64; empty]].concat();
        for kind in [Scan::<f32>::inclusive(), Scan::inclusive().reversed()] {
            let want = Device::cpu()
                .scan(x.segments(&[0u64, 9000, 9001, 20_000]), in_scan(Sum, kind))
                .unwrap()
                .to_vec()
                .unwrap();
            let found = device.scan(x.segments(&offsets), in_scan(Sum, kind)).unwrap().to_vec().unwrap();
            same(&found, &want, &format!("{name}: {kind:?}")).unwrap();
        }
    }
}

#[test]
fn lines_along_any_axis_equal_the_loop() {
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let shape = [3, 1100, 5, 2];
        let x: Vec<i32> = Data::Random.generate(shape.iter().product(), 6);
        for axis in 0..4 {
            let step: usize = shape[axis + 1..].iter().product();
            let mut want = x.clone();
            for i in 0..x.len() {
                if !(i / step).is_multiple_of(shape[axis]) {
                    want[i] = want[i].wrapping_add(want[i - step]);
                }
            }
            let view = oclprim::Input::from(&x).nd(&shape).unwrap();
            let found = device.scan(view.along(axis), Sum).unwrap().to_vec().unwrap();
            assert!(found == want, "{name}: along {axis}");
        }
    }
}

/// The scan of the lines of a row-major array along `axes`, as a plain loop in the order of the elements.
fn scan_of_lines(x: &[u64], shape: &[usize], axes: &[usize], exclusive: bool, reversed: bool) -> Vec<u64> {
    let (mut sums, mut out) = (HashMap::new(), vec![0; x.len()]);
    let mut each = |i: usize| {
        let (mut rest, mut line) = (i, Vec::new());
        for axis in (0..shape.len()).rev() {
            line.push(if axes.contains(&axis) { 0 } else { rest % shape[axis] });
            rest /= shape[axis];
        }
        let sum = sums.entry(line).or_insert(if exclusive { 7 } else { 0 });
        out[i] = if exclusive { *sum } else { *sum + x[i] };
        *sum += x[i];
    };
    if reversed {
        (0..x.len()).rev().for_each(&mut each);
    } else {
        (0..x.len()).for_each(&mut each);
    }
    out
}

fn expect_lines<const N: usize>(name: &str, device: &Device, x: &[u8], shape: &[usize], axes: [usize; N]) {
    let n = shape.iter().product();
    // In memory, the axes are in reverse order, or every second element is a gap.
    let (order, turned): (Vec<_>, Vec<_>) = ((0..shape.len()).rev().collect(), shape.iter().rev().copied().collect());
    let strides: Vec<isize> =
        (0..shape.len()).map(|axis| 2 * shape[axis + 1..].iter().product::<usize>() as isize).collect();
    let views = [
        Input::from(&x[..n]).nd(shape).unwrap(),
        Input::from(&x[..n]).nd(&turned).unwrap().permute(&order).unwrap(),
        NdView::new(x, Layout::strided(shape, &strides, 1).unwrap()).unwrap(),
    ];
    for (kind, view) in views.into_iter().enumerate() {
        let elements: Vec<u64> =
            Device::cpu().transform(view).unwrap().to_vec().unwrap().into_iter().map(Into::into).collect();
        for (exclusive, reversed) in [(false, false), (true, true)] {
            let want = scan_of_lines(&elements, shape, &axes, exclusive, reversed);
            let usage = if exclusive { Scan::exclusive(7) } else { Scan::inclusive() };
            let usage = if reversed { usage.reversed() } else { usage };
            let got = device.scan(view.cast::<u64>().along(axes), in_scan(Sum, usage)).unwrap().to_vec().unwrap();
            assert!(got == want, "{name}: view {kind} of {shape:?} along {axes:?}, {usage:?}");
        }
    }
}

#[test]
fn scans_along_several_axes_equal_a_loop() {
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let x: Vec<u8> = Data::Random.generate(20_001, 6);
        if !common::runs_kernels_at_once(&device) {
            expect_lines(&name, &device, &x, &[2, 30, 3, 2], [1, 0]);
            expect_lines(&name, &device, &x, &[2, 30, 3, 2], [0, 2]);
            continue;
        }
        for shape in [&[3, 110, 5, 2][..], &[2, 1, 70, 33], &[1, 1, 1, 1], &[2, 0, 3, 4]] {
            expect_lines(&name, &device, &x, shape, []);
            expect_lines(&name, &device, &x, shape, [2]);
            expect_lines(&name, &device, &x, shape, [1, 0]);
            expect_lines(&name, &device, &x, shape, [1, 2]);
            expect_lines(&name, &device, &x, shape, [2, 3]);
            expect_lines(&name, &device, &x, shape, [0, 2]);
            expect_lines(&name, &device, &x, shape, [3, 1]);
            expect_lines(&name, &device, &x, shape, [0, 3, 2]);
            expect_lines(&name, &device, &x, shape, [0, 1, 2, 3]);
        }
        let twice = device.scan(Input::from(&x).nd(&[20_001]).unwrap().along([0, 0]), Sum).unwrap_err();
        assert_eq!(twice.to_string(), "axis 0 is named twice", "{name}");
        let short = device.scan_into(Input::from(&x[..6]).nd(&[6]).unwrap().along([0]), Sum, &mut [0; 5]).unwrap_err();
        assert_eq!(short.to_string(), "scan along axes needs an output of 6 elements, got 5", "{name}");
    }
}

#[test]
fn invalid_keys_flags_and_offsets_are_refused() {
    for (name, device) in common::devices() {
        let (x, kind) = ([1u32; 4], Scan::<u32>::inclusive());
        let refused = |result: oclprim::Result<oclprim::Buffer<u32>>| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
            error.to_string()
        };
        assert_eq!(refused(device.scan(x.by_key(&[1u8; 3]), in_scan(Sum, kind))), "3 keys need as many values, got 4");
        assert_eq!(refused(device.scan(x.flagged(&[1; 5]), in_scan(Sum, kind))), "4 values need as many flags, got 5");
        let beyond = refused(device.scan(x.segments(&[0u32, 3, 2]), in_scan(Sum, kind)));
        assert_eq!(beyond, "offset 1 is 3, beyond the next one, 2");
        assert_eq!(
            refused(device.scan(x.segments(&[0u32; 0]), in_scan(Sum, kind))),
            "n segments need n + 1 offsets, got 0"
        );
        assert_eq!(
            refused(device.scan(NdView::from(&x).along(1), in_scan(Sum, kind))),
            "axis 1 is out of range for an array of shape [4]"
        );
        let mut out = [0; 3];
        let error = device.scan_into(x.by_key(&x), in_scan(Sum, kind), &mut out).unwrap_err();
        assert_eq!(error.to_string(), "scan in segments needs an output of 4 elements, got 3");
        assert!(device.scan([0u8; 0].by_key(&[0u8; 0]), Sum).unwrap().is_empty(), "{name}");
        assert!(device.scan([0f32; 0].segments(&[0u32, 0]), Sum).unwrap().is_empty());
    }
}
