//! Reductions along an axis: cases that `oclprim-checks` does not cover.

mod common;

use oclprim::{
    Buffer, Device, ErrorKind, Input, Layout, NdView, Source,
    internals::data::Data,
    op::{Map, Max, Min, NonZero, Sum, Usage},
};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of a GPU; no kernel here uses sub-groups.
fn devices() -> Vec<(String, Device)> {
    common::tuned(&[("a GPU", common::gpu())])
}

/// The same devices, and OpenCL devices with 64-bit offsets.
fn wide_devices() -> Vec<(String, Device)> {
    let mut all = devices();
    all.extend(common::wide());
    all
}

#[test]
fn empty_axes_give_the_identity_and_invalid_ones_are_refused() {
    for (name, device) in devices() {
        let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let rows = x.nd(&[2, 3]).unwrap();
        let error = device.reduce(rows.along(2), Sum).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::InvalidInput, "axis 2 is out of range for an array of shape [2, 3]")
        );
        let mut out = device.zeroed::<f32>(3).unwrap();
        let error = device.reduce_into(rows.along(1), Sum, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "reduce along an axis needs an output of 2 elements, got 3", "{name}");

        // One axis gives one result, an empty axis gives the identity, and an empty output stays empty.
        assert_eq!(device.reduce(NdView::from(&x).along(0), Sum).unwrap().to_vec().unwrap(), [21.0], "{name}");
        let nothing = rows.slice(0, 1..1).unwrap();
        assert_eq!(device.reduce(nothing.along(0), Min).unwrap().to_vec().unwrap(), [f32::INFINITY; 3], "{name}");
        assert_eq!(device.reduce(nothing.along(1), Max).unwrap().len(), 0, "{name}");

        // The first axis is empty. The product of the other two overflows, and wraps to 0 or to another number.
        let none = device.upload::<f32>(&[]).unwrap();
        for long in [[0, 1 << 40, 1 << 40], [0, 1 << 32, (1 << 32) + 1]] {
            let long = none.nd(&long).unwrap();
            let error = device.reduce(long.along(0), Sum).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
            assert!(error.to_string().ends_with("overflow the address space"), "{name}: {error}");
            let mut out = device.zeroed::<f32>(0).unwrap();
            assert!(device.reduce_into(long.along(0), Sum, &mut out).is_err(), "{name}");
            assert_eq!(device.reduce(long.along(1), Sum).unwrap().len(), 0, "{name}");
            // The length of the lines overflows, but there are none.
            assert_eq!(device.reduce(long.along([1, 2]), Sum).unwrap().len(), 0, "{name}");
            assert!(device.reduce(long.along([0]), Sum).is_err(), "{name}");
        }
        // Along no axis, each element is a line, also of a view with the maximum number of axes.
        let most = x.nd(&[6, 1, 1, 1, 1, 1, 1, 1]).unwrap();
        assert_eq!(device.reduce(most.along([]), Sum).unwrap().to_vec().unwrap(), x.to_vec().unwrap(), "{name}");
    }
}

#[test]
fn extremes_of_lines_take_the_first_and_keep_nan() {
    for (name, device) in devices() {
        let x = device.upload(&[3.0f32, f32::NAN, -0.0, 0.0, 7.0, 7.0]).unwrap();
        let rows = x.nd(&[3, 2]).unwrap();
        let ends = device.min_max(rows.along(0)).unwrap();
        assert_eq!(ends.indices.to_vec().unwrap(), [1, 0, 2, 0], "{name}");
        let values = ends.values.to_vec().unwrap();
        assert!(values[0].to_bits() == (-0.0f32).to_bits() && values[2] == 7.0, "{name}: {values:?}");
        assert!(values[1].is_nan() && values[3].is_nan(), "{name}: {values:?}");
        assert_eq!(device.arg_min(rows.along(1)).unwrap().indices.to_vec().unwrap(), [1, 0, 0], "{name}");

        let error = device.arg_max(rows.along(2)).unwrap_err();
        assert_eq!(error.to_string(), "axis 2 is out of range for an array of shape [3, 2]", "{name}");
        let (mut values, mut places) = ([0.0; 3], [0; 2]);
        let error = device.arg_min_into(rows.along(1), &mut values, &mut places).unwrap_err();
        assert_eq!(error.to_string(), "arg-min along an axis needs an output of 3 elements, got 2", "{name}");
        let error = device.min_max(rows.slice(0, 1..1).unwrap().along(0)).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Empty, "min-max along an axis of 0 elements has no answer"),
            "{name}"
        );

        // All elements equal an extreme of the type: the first one must be found, although no element differs from a start value.
        for fill in [0u8, 255] {
            let x = device.upload(&[fill; 30_000]).unwrap();
            for (shape, axis) in [([3, 10_000], 1), ([10_000, 3], 0)] {
                let ends = device.min_max(x.nd(&shape).unwrap().along(axis)).unwrap();
                assert_eq!(ends.indices.to_vec().unwrap(), [0; 6], "{name}: {fill} along {axis}");
                assert_eq!(ends.values.to_vec().unwrap(), [fill; 6], "{name}: {fill} along {axis}");
            }
        }
    }
}

#[test]
fn moments_of_lines_hold_at_the_ends_of_the_range() {
    for (name, device) in devices() {
        let m = f32::MAX;
        let x = device.upload(&[1.0, f32::NAN, m, m, -m, m, 3.0, f32::INFINITY]).unwrap();
        let pairs = x.nd(&[4, 2]).unwrap();
        let means = device.mean(pairs.along(1)).unwrap();
        assert!(means[0].is_nan() && means[1..] == [m.into(), 0.0, f64::INFINITY], "{name}: {means:?}");
        let variances = device.variance(pairs.along(1)).unwrap();
        assert!(variances[0].is_nan() && variances[3].is_nan(), "{name}: {variances:?}");
        // A sum of squares beyond the range of f32 keeps 22 bits.
        let square = f64::from(m) * f64::from(m);
        assert_eq!(variances[1], 0.0, "{name}");
        assert!((variances[2] / square - 1.0).abs() < 2f64.powi(-22), "{name}: {}", variances[2]);

        let error = device.mean(pairs.along(2)).unwrap_err();
        assert_eq!(error.to_string(), "axis 2 is out of range for an array of shape [4, 2]", "{name}");
        let mut records = device.zeroed(3).unwrap();
        let error = device.moments_into(pairs.along(1), &mut records).unwrap_err();
        assert_eq!(error.to_string(), "moments along an axis needs an output of 4 elements, got 3", "{name}");
        let error = device.variance(pairs.slice(0, 1..1).unwrap().along(0)).unwrap_err();
        let want = (ErrorKind::Empty, "moments along an axis of 0 elements has no answer");
        assert_eq!((error.kind(), error.to_string().as_str()), want, "{name}");

        // The smallest and the largest integer occur equally often. Their deviations need the most bits, and no f64 equals
        // i64::MAX.
        let x = device.upload(&[[i64::MIN; 5], [i64::MAX; 5]].concat().repeat(1000)).unwrap();
        for (shape, axis, want) in [([2000, 5], 0, -1000), ([1, 10_000], 1, -5000)] {
            let found = device.moments(x.nd(&shape).unwrap().along(axis)).unwrap().to_vec().unwrap();
            for found in found.iter().map(|record| record.get()) {
                assert_eq!((found.integer_sum, found.mean), (Some(want), -0.5), "{name}: along {axis}");
                assert_eq!(found.variance, 2f64.powi(126), "{name}: along {axis}");
            }
        }
        let x = device.upload(&[u8::MAX; 70_000]).unwrap();
        let found = device.moments(x.nd(&[70_000, 1]).unwrap().along(0)).unwrap().to_vec().unwrap()[0].get();
        assert_eq!((found.integer_sum, found.variance), (Some(70_000 * 255), 0.0), "{name}");
    }
}

/// The order of additions is that of the CPU. Loop transformations by a driver's compiler must not change it.
#[test]
fn moments_of_rows_of_any_length_equal_the_cpu() {
    let values: Vec<f32> = Data::Random.generate(2 * 70_000, 5);
    for (name, device) in devices() {
        let x = device.upload(&values).unwrap();
        for (lines, len) in [(200, 64), (200, 65), (30, 130), (3, 700), (7, 4096), (1, 66_000)] {
            let rows = Layout::contiguous(&[lines, len]).unwrap();
            let stepped = Layout::contiguous(&[lines, 2 * len]).unwrap().step(1, 2).unwrap();
            for layout in [rows, rows.reverse(1).unwrap(), stepped] {
                let found = device.moments(x.view(..).unwrap().with_layout(layout).unwrap().along(1)).unwrap();
                let want = Device::cpu().moments(NdView::new(&values, layout).unwrap().along(1)).unwrap();
                assert!(found.to_vec().unwrap() == want.to_vec().unwrap(), "{name}: {layout:?}");
            }
        }
    }
}

/// Segments add moments in the order of lines, on every device: short ones, those of several chunks, and those of several
/// parts.
#[test]
fn moments_of_segments_are_those_of_lines() {
    let values: Vec<f32> = Data::Random.generate(30_000, 5);
    for (name, device) in wide_devices() {
        let x = device.upload(&values).unwrap();
        for len in [1, 3, 4, 15, 16, 17, 63, 64, 65, 128, 129, 256, 257, 511, 512, 513, 4096, 4097, 9001, 30_000] {
            let rows = (20_000 / len).clamp(1, 9);
            let offsets: Vec<u32> = (0..=rows).map(|i| (i * len) as u32).collect();
            let part = x.view(..rows * len).unwrap();
            let found = device.moments(part.segments(&offsets)).unwrap().to_vec().unwrap();
            let want = Device::cpu()
                .moments(NdView::new(&values, Layout::contiguous(&[rows, len]).unwrap()).unwrap().along(1));
            assert!(found == want.unwrap().to_vec().unwrap(), "{name}: {rows} segments of {len}");
        }
        // Very short segments beside a long one, which starts within a tile.
        let mut offsets: Vec<u32> = (0..5003).collect();
        offsets.extend(28_000..=30_000);
        let found = device.moments(x.segments(&offsets)).unwrap().to_vec().unwrap();
        let want = Device::cpu().moments(values.segments(&offsets)).unwrap().to_vec().unwrap();
        assert!(found == want, "{name}");
        assert_eq!(found[5002].get().count, 28_000 - 5002, "{name}");
        let long = NdView::from(&values[5002..28_000]).along(0);
        assert!(found[5002] == Device::cpu().moments(long).unwrap().to_vec().unwrap()[0], "{name}");
    }
}

#[test]
fn moments_of_segments_are_right_at_the_ends_of_the_range() {
    for (name, device) in devices() {
        let m = f32::MAX;
        let x = device.upload(&[1.0, f32::NAN, m, m, -m, m, 3.0, f32::INFINITY]).unwrap();
        let pairs = x.segments(&[0u32, 2, 4, 6, 6, 8]);
        let means = device.mean(pairs).unwrap();
        assert!(means[0].is_nan() && means[1..3] == [m.into(), 0.0], "{name}: {means:?}");
        assert!(means[3].is_nan() && means[4] == f64::INFINITY, "{name}: {means:?}");
        let variances = device.variance(pairs).unwrap();
        assert!([0, 3, 4].iter().all(|&i| variances[i].is_nan()) && variances[1] == 0.0, "{name}: {variances:?}");
        let square = f64::from(m) * f64::from(m);
        assert!((variances[2] / square - 1.0).abs() < 2f64.powi(-22), "{name}: {}", variances[2]);

        let x = device.upload(&[[i64::MIN; 5], [i64::MAX; 5]].concat().repeat(1000)).unwrap();
        let found = device.moments(x.segments(&[0u64, 10_000])).unwrap().to_vec().unwrap()[0].get();
        assert_eq!((found.integer_sum, found.mean, found.variance), (Some(-5000), -0.5, 2f64.powi(126)), "{name}");
    }
}

#[test]
fn lines_are_the_same_in_rows_and_columns() {
    let line: Vec<f32> = Data::Random.generate(5000, 3);
    let want = Device::cpu().reduce(NdView::from(&line).along(0), Sum).unwrap().to_vec().unwrap()[0];
    let moments = Device::cpu().moments(NdView::from(&line).along(0)).unwrap().to_vec().unwrap()[0];
    for (name, device) in devices() {
        for others in [1, 2, 7, 300] {
            let rows: Vec<f32> = (0..others).flat_map(|_| &line).copied().collect();
            let columns: Vec<f32> = line.iter().flat_map(|&x| std::iter::repeat_n(x, others)).collect();
            let (rows, columns) = (device.upload(&rows).unwrap(), device.upload(&columns).unwrap());
            for round in 0..5 {
                let a = device.reduce(rows.nd(&[others, 5000]).unwrap().along(1), Sum).unwrap().to_vec().unwrap();
                let b = device.reduce(columns.nd(&[5000, others]).unwrap().along(0), Sum).unwrap().to_vec().unwrap();
                let same = |x: &[f32]| x.len() == others && x.iter().all(|x| x.to_bits() == want.to_bits());
                assert!(same(&a) && same(&b), "{name}: {others} lines, round {round}");
                let a = device.moments(rows.nd(&[others, 5000]).unwrap().along(1)).unwrap().to_vec().unwrap();
                let b = device.moments(columns.nd(&[5000, others]).unwrap().along(0)).unwrap().to_vec().unwrap();
                assert!(a == vec![moments; others] && b == a, "{name}: moments of {others} lines, round {round}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if common::tiny() { 8 } else { 24 }, ..ProptestConfig::default() })]

    #[test]
    fn any_axis_of_any_view_equals_the_cpu(
        shape in proptest::collection::vec(1usize..40, 1..4), axis in 0usize..3, backwards in 0usize..8, step in 1usize..4,
        turn: bool, offset in 0usize..4, seed: u64,
    ) {
        let axis = axis % shape.len();
        let mut layout = Layout::contiguous(&shape).unwrap().step(axis, step).unwrap();
        for k in (0..shape.len()).filter(|k| backwards >> k & 1 == 1) {
            layout = layout.reverse(k).unwrap();
        }
        if turn {
            layout = layout.permute(&(0..shape.len()).rev().collect::<Vec<_>>()).unwrap();
        }
        let all: Vec<f32> = Data::Random.generate(offset + shape.iter().product::<usize>(), seed);
        let view = NdView::new(&all[offset..], layout).unwrap();
        let want = Device::cpu().reduce(view.along(axis), Sum).unwrap().to_vec().unwrap();
        let places = Device::cpu().min_max(view.along(axis)).unwrap().indices.to_vec().unwrap();
        let moments = Device::cpu().moments(view.along(axis)).unwrap().to_vec().unwrap();
        for (name, device) in wide_devices() {
            let x = device.upload(&all).unwrap();
            let view = x.view(offset..).unwrap().with_layout(layout).unwrap();
            prop_assert_eq!(device.moments(view.along(axis)).unwrap().to_vec().unwrap(), &moments[..], "{}", &name);
            let got = device.reduce(view.along(axis), Sum).unwrap().to_vec().unwrap();
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&got), bits(&want), "{}", &name);
            let found = device.min_max(view.along(axis)).unwrap();
            prop_assert_eq!(&found.indices.to_vec().unwrap(), &places, "{}", &name);
        }
    }
}

#[test]
fn lines_along_several_axes_are_those_of_the_merged_axis() {
    let (a, b, c) = (3, 5, 7);
    let x: Vec<f32> = (0..a * b * c).map(|i| (i * 37 % 101) as f32 * 0.37).collect();
    for (name, device) in devices() {
        let there = device.upload(&x).unwrap();
        let volume = there.nd(&[a, b, c]).unwrap();
        let sums = |axes: &[usize]| -> Vec<f32> {
            // Copies the lines into contiguous memory, one after another.
            let kept: Vec<usize> = (0..3).filter(|axis| !axes.contains(axis)).collect();
            let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
            let lines = volume.permute(&order).unwrap().to_vec().unwrap();
            let len = axes.iter().map(|&axis| [a, b, c][axis]).product::<usize>();
            let lines = Layout::contiguous(&[lines.len() / len, len])
                .and_then(|layout| device.reduce(NdView::new(&lines, layout)?.along(1), Sum)?.to_vec());
            lines.unwrap()
        };
        let along = |found: oclprim::Result<oclprim::Buffer<f32>>| found.unwrap().to_vec().unwrap();
        // The lines of [1, 2] and [0, 1] are equally spaced in memory; those of [0, 2] are not, and are copied.
        assert_eq!(along(device.reduce(volume.along([1, 2]), Sum)), sums(&[1, 2]), "{name}");
        assert_eq!(along(device.reduce(volume.along([0, 1]), Sum)), sums(&[0, 1]), "{name}");
        assert_eq!(along(device.reduce(volume.along([0, 2]), Sum)), sums(&[0, 2]), "{name}");
        assert_eq!(along(device.reduce(volume.along([2, 0]), Sum)), sums(&[0, 2]), "{name}: axes in any order");
        assert_eq!(along(device.reduce(volume.along([0, 1, 2]), Sum)), sums(&[0, 1, 2]), "{name}");
        assert_eq!(along(device.reduce(volume.along([0]), Sum)), sums(&[0]), "{name}");
        let part = volume.slice(1, 1..4).unwrap().reverse(2).unwrap();
        let most = part.permute(&[1, 0, 2]).unwrap().to_vec().unwrap();
        let most: Vec<f32> = most.chunks(a * c).map(|x| x.iter().copied().fold(f32::MIN, f32::max)).collect();
        assert_eq!(along(device.reduce(part.along([0, 2]), Max)), most, "{name}: a part, reversed");
        let mut out = vec![0.0; b];
        device.reduce_into(volume.along([0, 2]), Sum, &mut out).unwrap();
        assert_eq!(out, sums(&[0, 2]), "{name}: into");
        // No axis: each element is a line.
        assert_eq!(along(device.reduce(part.along([]), Sum)), part.to_vec().unwrap(), "{name}: no axis");
        let none = volume.slice(1, 2..2).unwrap();
        assert_eq!(along(device.reduce(none.along([1, 2]), Sum)), [0.0; 3], "{name}: empty lines");
        assert_eq!(along(device.reduce(none.along([0, 2]), Sum)), [0.0; 0], "{name}: no lines");
        // An index counts within the merged line.
        let ends = device.min_max(volume.along([0, 2])).unwrap();
        let (values, indices) = (ends.values.to_vec().unwrap(), ends.indices.to_vec().unwrap());
        let means = device.mean(volume.along([0, 2])).unwrap();
        let lines = volume.permute(&[1, 0, 2]).unwrap().to_vec().unwrap();
        for (j, line) in lines.chunks(a * c).enumerate() {
            let (low, high) = (Device::cpu().arg_min(line).unwrap(), Device::cpu().arg_max(line).unwrap());
            assert_eq!((values[j], indices[j]), (low.value, low.index as u64), "{name}: least of line {j}");
            assert_eq!((values[b + j], indices[b + j]), (high.value, high.index as u64), "{name}: largest of line {j}");
            let mean = line.iter().map(|&x| f64::from(x)).sum::<f64>() / line.len() as f64;
            approx::assert_relative_eq!(means[j], mean, max_relative = 1e-6);
        }
        let error = device.reduce(volume.along([0, 3]), Sum).unwrap_err();
        assert_eq!(error.to_string(), "axis 3 is out of range for an array of shape [3, 5, 7]", "{name}");
        let error = device.reduce(volume.along([1, 1]), Sum).unwrap_err();
        assert_eq!(error.to_string(), "axis 1 is named twice", "{name}");
    }
}

#[test]
fn mapped_views_reduce_as_mapped_arrays() {
    for (name, device) in devices() {
        let x: Vec<i32> = Data::Random.generate::<i16>(6000, 3).into_iter().map(i32::from).collect();
        let there = device.upload(&x).unwrap();
        let rows = there.nd(&[3, 40, 50]).unwrap();
        let views = [
            rows,
            rows.permute(&[2, 0, 1]).unwrap(),
            rows.reverse(1).unwrap(),
            rows.slice(1, 3..17).unwrap().step(2, 3).unwrap(),
            there.view(7..57).unwrap().nd(&[50]).unwrap().broadcast_to(&[2, 3, 50]).unwrap(),
            there.with_layout(Layout::strided(&[20, 4, 30], &[1, 0, 2], 5).unwrap()).unwrap(),
            rows.slice(1, 0..0).unwrap(),
        ];
        for (kind, view) in views.into_iter().enumerate() {
            let square = Map::new(|x: i32| i64::from(x) * i64::from(x) + 1, "(long)x * x + 1");
            let elements = view.to_vec().unwrap();
            let (shape, mut want) = (view.shape(), vec![0i64; view.shape()[0] * view.shape()[2]]);
            for (i, &x) in elements.iter().enumerate() {
                want[i / (shape[1] * shape[2]) * shape[2] + i % shape[2]] += i64::from(x) * i64::from(x) + 1;
            }
            let got = device.reduce(view.map(&square).along(1), Sum).unwrap().to_vec().unwrap();
            assert!(got == want, "{name}: view {kind} along 1");
            let mut most = vec![0; shape[1]];
            device.reduce_into(view.map(square).along([2, 0]), Max, &mut most).unwrap();
            for (k, &most) in most.iter().enumerate() {
                let line = elements.iter().enumerate().filter(|(i, _)| i / shape[2] % shape[1] == k);
                let want = line.map(|(_, &x)| i64::from(x) * i64::from(x) + 1).max();
                assert_eq!(Some(most), want, "{name}: view {kind} along 0 and 2");
            }
        }
    }
}

/// The elements in the gaps of a view are zeros, by which the function would divide.
#[test]
fn maps_do_not_read_the_gaps_of_views() {
    let x: Vec<i32> = (0..60).map(|i| if i % 3 == 1 { i } else { 0 }).collect();
    for (name, device) in devices() {
        let view = Input::from(&x).with_layout(Layout::strided(&[4, 5], &[15, 3], 1).unwrap()).unwrap();
        let got = device.reduce(view.map(Map::new(|x: i32| 1000 / x, "1000 / x")).along(1), Sum).unwrap();
        let want: Vec<i32> = x.chunks(15).map(|row| row.iter().filter(|&&x| x != 0).map(|x| 1000 / x).sum()).collect();
        assert_eq!(got.to_vec().unwrap(), want, "{name}");
    }
}

/// The results of each call that takes lines, as bits.
macro_rules! of_lines {
    ($device:expr, $lines:expr) => {{
        let (device, lines) = ($device, || $lines);
        let large = Map::new(|x: f32| x > 9.0, "x > 9");
        let (min, both) = (device.arg_min(lines()).unwrap(), device.min_max(lines()).unwrap());
        let mut out = device.scan(lines(), Sum).unwrap();
        device.scan_into(lines(), Sum.exclusive().reversed(), &mut out).unwrap();
        let mut counts = vec![0; min.indices.len()];
        device.count_into(lines(), NonZero, &mut counts).unwrap();
        let bits = |x: Buffer<f32>| x.to_vec().unwrap().into_iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>();
        let doubles = |x: Vec<f64>| x.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let statistics = device.statistics(lines()).unwrap().to_vec().unwrap();
        vec![
            bits(device.reduce(lines(), Sum).unwrap()),
            bits(device.scan(lines(), Max).unwrap()),
            bits(out),
            device.count(lines(), &large).unwrap().to_vec().unwrap(),
            counts,
            device.any(lines(), &large).unwrap().to_vec().unwrap().into_iter().map(u64::from).collect(),
            min.indices.to_vec().unwrap(),
            bits(both.values),
            doubles(device.mean(lines()).unwrap()),
            doubles(device.variance(lines()).unwrap()),
            device.moments(lines()).unwrap().to_vec().unwrap().iter().map(|x| x.get().mean.to_bits()).collect(),
            statistics.iter().map(|x| x.get().max.index as u64).collect(),
        ]
    }};
}

#[test]
fn lines_of_mapped_views_and_products_are_those_of_arrays() {
    let square = Map::new(|x: f32| x * x * 0.5, "x * x * 0.5f");
    for (name, device) in common::devices() {
        if !common::runs_kernels_at_once(&device) {
            common::skip(&name, "a checker treats vectors that were in private memory as uninitialised");
            continue;
        }
        let (rows, len) = (5, 300);
        let x: Vec<f32> = (0..rows * len).map(|i| (i * 37 % 101) as f32 * 0.37 - 7.0).collect();
        let y: Vec<f32> = x.iter().rev().copied().collect();
        let (there, other) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
        let (view, other) = (there.nd(&[rows, len]).unwrap(), other.nd(&[rows, len]).unwrap());
        let squares = device.upload(&x.iter().map(|x| x * x * 0.5).collect::<Vec<_>>()).unwrap();
        let products = device.upload(&x.iter().zip(&y).map(|(x, y)| x * y).collect::<Vec<_>>()).unwrap();
        for axis in [0, 1] {
            let squares = squares.nd(&[rows, len]).unwrap();
            let want = of_lines!(&device, squares.along(axis));
            assert_eq!(of_lines!(&device, view.map(&square).along(axis)), want, "{name}, map along {axis}");
            let products = products.nd(&[rows, len]).unwrap();
            let want = of_lines!(&device, products.along(axis));
            assert_eq!(of_lines!(&device, view.times(other).along(axis)), want, "{name}, times along {axis}");
        }
    }
}
