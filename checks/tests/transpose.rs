//! Transpositions: defects of the original kernels (B20 to B26), the definition, and errors.

#[path = "../../tests/common/mod.rs"]
mod common;
mod steps;

use std::{fmt::Debug, time::Duration};

use bytemuck::Pod;
use common::{gpu, random, tiny, tuned};
use oclprim::{Device, Element, ErrorKind, Matrices, Source, Tuning, bf16, f16, op::Map, source::constant};
use oclprim_checks::{
    bench::{Effort, measure},
    check::{guarded, same, same_bytes},
    ladder::{Request, Rung},
    registry,
};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of a GPU.
fn devices() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu())])
}

/// Every device, in its own geometry. OpenCL devices also run with 64-bit offsets in both geometries, and as a GPU with
/// little local memory.
fn odd_devices() -> Vec<(String, Device)> {
    let wide = || Tuning::default().wide_offsets();
    tuned(&[("wide", wide()), ("a wide GPU", gpu().wide_offsets()), ("a small GPU", gpu().local_bytes(4096))])
}

fn request(rows: usize, cols: usize) -> Request {
    let mut request = Request::default();
    request.shape = (rows, cols);
    request.n = rows * cols;
    request
}

fn steps(device: &Device, request: &Request) -> Vec<Rung> {
    let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "transpose").unwrap();
    ladder.rungs(request, device).unwrap_or_else(|error| panic!("{device:?}: {error}"))
}

/// Runs the steps whose names fit on every device. Unwritten elements stay poisoned, and verification finds them.
fn run_steps(rows: usize, cols: usize, fits: impl Fn(&str) -> bool) {
    for device in tuned(&[("wide", Tuning::default().wide_offsets())]) {
        steps::run_steps("transpose", &device, &request(rows, cols), &fits);
    }
}

/// The definition: `out[c][r] = input[r][c]`.
fn obvious<T: Pod>(input: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut out = vec![T::zeroed(); input.len()];
    for r in 0..rows {
        for c in 0..cols {
            out[c * rows + r] = input[r * cols + c];
        }
    }
    out
}

fn check<T: Pod + Send + Sync + PartialEq + Debug>(
    name: &str,
    device: &Device,
    shape: (usize, usize),
    offsets: (usize, usize),
) {
    let ((rows, cols), (from, to)) = (shape, offsets);
    let all = random::<T>(from + rows * cols, (rows * 31 + cols) as u64);
    let x = device.upload(&all).unwrap();
    let out = guarded(device, rows * cols, to, |out| Ok(device.transpose_into(x.view(from..)?, (rows, cols), out)?));
    let same = out.and_then(|out| same_bytes(&out, &obvious(&all[from..], rows, cols), "out"));
    same.unwrap_or_else(|failure| {
        panic!("{name}: {rows} x {cols} of {} bytes at {from} to {to}: {failure:?}", size_of::<T>())
    });
    same_bytes(&x.to_vec().unwrap(), &all, "the input").unwrap();
}

/// B20: a warm-up with swapped arguments overwrote the input, NaN passed the comparison, and some kernels were never
/// checked. Now `check` and the ladder compare the input too, all comparisons are of bits, and all kernels are checked.
#[test]
fn b20_inputs_are_left_alone_and_nan_does_not_pass() {
    for (name, device) in devices() {
        check::<u32>(&name, &device, (70, 130), (0, 0));
        let mut x = vec![1.0f32; 70 * 33];
        x[5] = f32::NAN;
        let transposed = device.transpose(&x, (70, 33)).unwrap().to_vec().unwrap();
        assert!(transposed[5 * 70].is_nan(), "{name}");
        same_bytes(&transposed, &obvious(&x, 70, 33), "out").unwrap();
        x[5] = 0.0;
        assert!(same_bytes(&transposed, &obvious(&x, 70, 33), "out").is_err(), "{name}: a NaN passed");
    }
    run_steps(70, 130, |name| name.contains("copy") || name.starts_with("naive"));
}

/// B21: the diagonal order skipped some blocks of non-square grids and visited others twice.
#[test]
fn b21_diagonal_covers_rectangular_grids() {
    for (blocks_down, blocks_across) in [(4, 8), (8, 4), (3, 5), (1, 7), (7, 1)] {
        run_steps(16 * blocks_down, 16 * blocks_across - 3, |name| name.starts_with("diagonal"));
    }
}

/// B22: the kernels by columns used one matrix's row length for both matrices.
#[test]
fn b22_kernels_by_columns_take_rectangles() {
    for (rows, cols) in [(48, 80), (100, 17), (1, 40)] {
        run_steps(rows, cols, |name| name.ends_with("_col"));
    }
}

/// B23: unrolled kernels dropped elements outside full blocks, and the last of an odd number of tiles.
#[test]
fn b23_unrolled_kernels_move_every_element() {
    for (rows, cols) in [(64, 64 + 16), (3 * 32, 96), (65, 64 + 33), (80, 1)] {
        run_steps(rows, cols, |name| name.contains("unroll"));
    }
}

/// B24: kernels took the width from the grid, so only square matrices of whole tiles were right, and shapes were fixed.
/// The timed data fitted the cache without notice; `oclprim ladder` now warns.
#[test]
fn b24_tile_kernels_take_any_shape() {
    for (rows, cols) in [(32, 96), (33, 31), (1, 65), (100, 3)] {
        run_steps(rows, cols, |name| name.starts_with("tile_"));
    }
}

/// B25: the SYCL kernel took dimension 0 as the fastest-varying one, which in SYCL is the last. So only four
/// neighbouring work-items lay in a row, and they touched twice the sectors. No result shows this. So this test checks
/// the models, and `kernels_access_what_their_models_predict` checks that kernels match their models. `oclprim ladder`
/// shows the time on a device.
#[test]
fn b25_coalesced_kernels_are_coalesced() {
    let ideal = (1024 * 1024 * 4 / 32) as f64;
    for (name, device) in devices() {
        let steps = steps(&device, &request(1024, 1024));
        let model = |step: &str| steps.iter().find(|other| other.name == step).and_then(|step| step.model).unwrap();
        let (coalesced, padded) = (model("sycl_local_coalesced"), model("sycl_local_pad"));
        assert_eq!((coalesced.load_sectors, coalesced.store_sectors), (ideal, ideal), "{name}");
        assert!(coalesced.bank_conflicts > 0.0, "{name}");
        assert_eq!((padded.load_sectors, padded.store_sectors, padded.bank_conflicts), (ideal, ideal, 0.0), "{name}");
    }
}

/// B26: only square matrices of whole tiles were right, the first kernel's time included its compilation, and only one
/// direction of bytes was counted. Memory was never freed: see `memory_does_not_leak` of tests/runtime.rs. Waits were
/// missing on out-of-order queues: see `many_commands_keep_their_order` of tests/interop.rs.
#[test]
fn b26_any_shape_is_right_and_both_directions_count() {
    for (rows, cols) in [(64, 32), (37, 91), (1, 5), (130, 2)] {
        run_steps(rows, cols, |name| name.starts_with("sycl_"));
    }
    let request = request(37, 91);
    for (name, device) in devices() {
        for step in steps(&device, &request) {
            assert_eq!(step.bytes, 2 * 4 * 37 * 91, "{name}: {}", step.name);
        }
    }
    assert!(request.effort.warm_up > 0);
}

/// B26: measured times exclude the extra cost of the first run, such as a compilation.
#[test]
fn b26_the_first_run_is_not_timed() {
    const BUILD: Duration = Duration::from_millis(200);
    let mut effort = Effort::default();
    (effort.warm_up, effort.runs) = (1, 1);
    let mut first = true;
    let run = || {
        if std::mem::take(&mut first) {
            std::thread::sleep(BUILD);
        }
        Ok(())
    };
    let times = measure(&Device::cpu(), effort, || Ok(()), run).unwrap();
    assert_eq!(times.wall.runs, 1);
    assert!(times.wall.median < BUILD.as_secs_f64(), "{times:?}");
}

#[test]
fn elements_of_every_size_are_transposed() {
    macro_rules! each {
        ($($size:literal)*) => {
            for (name, device) in devices() {
                $( check::<[u8; $size]>(&name, &device, (37, 41), (1, 2)); )*
            }
        };
    }
    if tiny() {
        each!(5 6 13);
    } else {
        each!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    }
}

#[test]
fn slices_buffers_and_views_give_the_same_result() {
    for (name, device) in devices() {
        let x: Vec<u16> = random(24 * 56, 1);
        let want = obvious(&x, 24, 56);
        let mut slice = vec![0; x.len()];
        device.transpose_into(&x, (24, 56), &mut slice).unwrap();
        assert_eq!(slice, want, "{name}");
        let on_device = device.upload(&x).unwrap();
        let transposed = device.transpose(&on_device, (24, 56)).unwrap();
        assert_eq!(transposed.to_vec().unwrap(), want, "{name}");
        assert_eq!(device.transpose(&transposed, (56, 24)).unwrap().to_vec().unwrap(), x, "{name}: there and back");
        assert!(device.transpose(on_device.view(5..5).unwrap(), (0, 9)).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn errors_give_the_numbers() {
    for (name, device) in devices() {
        let failed = |rows, cols| device.transpose(&[0u32; 6], (rows, cols)).unwrap_err();
        let error = failed(2, 4);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(error.to_string(), "transpose of 2 x 4 needs 8 elements, got 6");
        let error = failed(usize::MAX, 2);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert!(error.to_string().contains(&format!("{} x 2", usize::MAX)), "{error}");
        let error = device.transpose_into(&[0u32; 6], (2, 3), &mut [0; 5]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(error.to_string(), "transpose needs an output of 6 elements, got 5");
        let error = device.transpose(&[[0u8; 17]; 4], (2, 2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
        assert!(error.to_string().contains("17"), "{error}");
        let error = device.transpose(&[(); 4], (2, 2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if tiny() { 3 } else { 48 }, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_equals_the_obvious_loop(
        rows in 0usize..if tiny() { 80 } else { 200 }, cols in 0usize..if tiny() { 80 } else { 200 }, stretch in 0usize..3, step in prop::sample::select(&[1usize, 4, 8]),
        from in 0usize..9, to in 0usize..9,
    ) {
        // Some shapes are wide or tall. Some are multiples of the kernels' vectors, and then offsets may be aligned as
        // well.
        let (rows, cols) = match stretch {
            1 => (rows / 12, cols * 12),
            2 => (rows * 12, cols / 12),
            _ => (rows, cols),
        };
        let (rows, cols) = (rows.next_multiple_of(step), cols.next_multiple_of(step));
        let offsets = (from.next_multiple_of(step), to.next_multiple_of(step));
        for (name, device) in devices() {
            check::<u8>(&name, &device, (rows, cols), offsets);
            check::<u16>(&name, &device, (rows, cols), offsets);
            check::<u32>(&name, &device, (rows, cols), offsets);
            check::<u64>(&name, &device, (rows, cols), offsets);
            check::<[u8; 3]>(&name, &device, (rows, cols), offsets);
        }
        for (name, device) in odd_devices() {
            check::<u32>(&name, &device, (rows, cols), offsets);
            check::<[u32; 3]>(&name, &device, (rows, cols), offsets);
        }
    }
}

/// Small leading dimensions, overlapping results and short buffers are errors with numbers.
#[test]
fn invalid_batches_are_refused() {
    for (name, device) in devices() {
        let x = device.upload(&[0u32; 12]).unwrap();
        let refused = |matrices: Matrices, len: usize, text: &str| {
            let mut out = device.zeroed::<u32>(len).unwrap();
            let error = device.transpose_into(&x, &matrices, &mut out).unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text.to_string()), "{name}");
        };
        let of = Matrices::new;
        refused(of(3, 4).leading(3, 3), 12, "the input's leading dimension is 3, but rows have 4 elements");
        refused(of(3, 4).leading(4, 2), 12, "the output's leading dimension is 2, but rows have 3 elements");
        refused(of(3, 4).leading(5, 3), 12, "a shape of [1, 4, 3] reaches element 13, the buffer has 12 elements");
        refused(of(3, 4).leading(4, 4), 12, "a shape of [1, 4, 3] reaches element 14, the buffer has 12 elements");
        let overlap = "an output of shape [2, 2, 3] overlaps itself with strides [5, 3, 1]";
        refused(of(3, 2).count(2).strides(6, 5), 12, overlap);
        assert!(device.transpose(&x, &of(usize::MAX, 2)).is_err(), "{name}");
        assert!(device.transpose(&x, &of(2, 3).count(usize::MAX)).is_err(), "{name}");
        assert!(device.transpose(&x, &of(2, 3).leading(usize::MAX, 2)).is_err(), "{name}");
        assert_eq!(device.transpose(&x, &of(0, 4).count(3)).unwrap().len(), 0, "{name}");
    }
}

/// Matrices of a few columns or rows, whose long sides are whole 16-byte words or one element off.
#[test]
fn narrow_matrices_of_every_size_are_transposed() {
    for (name, device) in devices() {
        for at in [(0, 0), (16, 32), (1, 0)] {
            check::<u8>(&name, &device, (4112, 3), at);
            check::<u8>(&name, &device, (2, 4112), at);
            check::<u16>(&name, &device, (5, 1064), at);
            check::<u32>(&name, &device, (3, 1040), at);
            check::<u32>(&name, &device, (1041, 3), at);
            check::<u64>(&name, &device, (1000, 4), at);
        }
    }
}

/// Rows of the output may begin within sectors. Then a GPU's tiles end at sector boundaries and write each element
/// once.
#[test]
fn rows_that_begin_within_sectors_are_complete() {
    for (name, device) in devices().into_iter().chain(odd_devices()) {
        for at in [(0, 0), (1, 3)] {
            check::<u8>(&name, &device, (1031, 133), at);
            check::<u16>(&name, &device, (517, 130), at);
            check::<u32>(&name, &device, (519, 67), at);
            check::<u64>(&name, &device, (263, 70), at);
        }
        check::<u32>(&name, &device, (576, 72), (0, 1));
        // These shapes have few columns, so that work-items read different numbers of elements.
        check::<u8>(&name, &device, (8193, 16), (0, 1));
        check::<u16>(&name, &device, (2049, 32), (1, 0));
        check::<u32>(&name, &device, (2049, 16), (0, 1));
        check::<u64>(&name, &device, (513, 32), (0, 1));
    }
}

fn check_in_place<T: Pod + PartialEq + Debug>(name: &str, device: &Device, (rows, cols): (usize, usize), at: usize) {
    let x = random::<T>(rows * cols, (rows * 31 + cols) as u64);
    let out = guarded(device, rows * cols, at, |mut data| {
        data.write(&x)?;
        Ok(device.transpose_in_place(data, rows, cols)?)
    });
    let same = out.and_then(|out| same_bytes(&out, &obvious(&x, rows, cols), "data"));
    same.unwrap_or_else(|failure| panic!("{name}: {rows} x {cols} of {} bytes at {at}: {failure:?}", size_of::<T>()));
}

/// Squares with and without whole vectors, and a rectangle.
#[test]
fn elements_of_every_size_are_transposed_in_place() {
    macro_rules! each {
        ($($size:literal)*) => {
            for (name, device) in devices() {
                $(
                    check_in_place::<[u8; $size]>(&name, &device, (37, 37), 1);
                    check_in_place::<[u8; $size]>(&name, &device, (144, 144), 0);
                    check_in_place::<[u8; $size]>(&name, &device, (37, 41), 1);
                )*
            }
        };
    }
    if tiny() {
        each!(2 12);
    } else {
        each!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    }
    for (name, device) in odd_devices() {
        check_in_place::<u32>(&name, &device, (144, 144), 0);
        check_in_place::<[u32; 3]>(&name, &device, (37, 37), 1);
    }
}

/// A matrix larger than its scratch. The library's unit tests cover every shape in small strips.
#[test]
fn rectangles_larger_than_scratch_are_transposed_in_place() {
    if tiny() {
        return common::skip(
            "rectangles_larger_than_scratch_are_transposed_in_place",
            "transposes millions of elements in many launches",
        );
    }
    for (name, device) in devices() {
        let (rows, cols) = (1620, 2700);
        let mut data = device.zeroed::<u32>(rows * cols).unwrap();
        device.transpose_in_place(&mut data, rows, cols).unwrap();
        assert!(device.scratch_sizes().iter().sum::<usize>() < rows * cols * 4, "{name}");
        check_in_place::<u32>(&name, &device, (rows, cols), 1);
    }
}

#[test]
fn in_place_takes_slices_and_refuses_wrong_sizes() {
    for (name, device) in devices() {
        for (rows, cols) in [(0, 5), (5, 0), (1, 6), (6, 1), (2, 3), (70, 30), (30, 30)] {
            let x = random::<u16>(rows * cols, 3);
            let mut slice = x.clone();
            device.transpose_in_place(&mut slice, rows, cols).unwrap();
            assert_eq!(slice, obvious(&x, rows, cols), "{name}: {rows} x {cols}");
        }
        let failed = |rows, cols| {
            let error = device.transpose_in_place(&mut [0u32; 6], rows, cols).unwrap_err();
            (error.kind(), error.to_string())
        };
        let text = "transpose of 2 x 4 needs 8 elements, got 6";
        assert_eq!(failed(2, 4), (ErrorKind::InvalidInput, text.into()), "{name}");
        assert_eq!(failed(usize::MAX, 2).0, ErrorKind::InvalidInput, "{name}");
        let large = device.transpose_in_place(&mut [[0u8; 17]; 4], 2, 2).unwrap_err();
        assert_eq!(large.kind(), ErrorKind::Unsupported, "{name}");
    }
}

/// Casts of one column, which keep the order of the elements.
fn check_cast<T: Element, U: Element>(name: &str, device: &Device, x: &[T], want: &[U]) {
    match device.transpose(x.cast::<U>(), (x.len(), 1)) {
        Ok(got) => same(&got.to_vec().unwrap(), want, &format!("{name}: {} to {}", T::TYPE, U::TYPE)).unwrap(),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}"),
    }
}

/// Values at the ends of the integer types, between them, and where floats round.
#[test]
fn casts_equal_those_of_rust() {
    let mut ends: Vec<f64> = vec![0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 1e30, -1e30];
    ends.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    for power in [7, 8, 15, 16, 31, 32, 63, 64] {
        let end = 2f64.powi(power);
        for x in [end, end - 1.0, end + 1.0, end - 0.5, end + 0.5, end * (1.0 - 1e-7), end * (1.0 + 1e-6)] {
            ends.extend([x, -x]);
        }
    }
    let floats: Vec<f32> = ends.iter().map(|&x| x as f32).collect();
    let words: Vec<i64> = ends.iter().map(|&x| x as i64).chain([(1 << 24) + 1, (1 << 54) + 1, (1 << 60) + 1]).collect();
    macro_rules! casts {
        ($name:ident, $device:ident, $x:ident, $($to:ident)*) => {
            $( check_cast(&$name, &$device, &$x, &$x.iter().map(|&x| x as $to).collect::<Vec<_>>()); )*
        };
    }
    for (name, device) in devices() {
        casts!(name, device, floats, u8 i32);
        if tiny() {
            continue;
        }
        casts!(name, device, floats, i16 u64);
        casts!(name, device, ends, i64 u64 f32);
        casts!(name, device, words, u8 f32 f64);
        let halves: Vec<_> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
        check_cast(&name, &device, &floats, &halves);
        check_cast(&name, &device, &halves, &halves.iter().map(|x| x.to_f32() as i8).collect::<Vec<_>>());
    }
}

#[test]
fn maps_are_applied_and_invalid_ones_are_refused() {
    for (name, device) in devices() {
        let x = random::<i16>(24 * 57, 5);
        let want: Vec<i32> = obvious(&x, 24, 57).iter().map(|&x| i32::from(x).wrapping_mul(100_003)).collect();
        let got = device.transpose(x.cast::<i32>().times(constant(100_003)), (24, 57)).unwrap();
        assert_eq!(got.to_vec().unwrap(), want, "{name}");
        let above = Map::new(|x: i16| f32::from(u8::from(x > 3)), "x > 3 ? 1.0f : 0.0f");
        let mut out = vec![f16::NAN; x.len()];
        device.transpose_into(x.map(&above).cast(), (24, 57), &mut out).unwrap();
        let want: Vec<_> = obvious(&x, 24, 57).iter().map(|&x| f16::from_f32((x > 3).into())).collect();
        assert_eq!(out, want, "{name}");
        assert!(device.transpose([0u8; 0].cast::<f32>(), (0, 7)).unwrap().is_empty(), "{name}");
        let error = device.transpose(x.cast::<f32>(), (24, 58)).unwrap_err();
        assert_eq!(error.to_string(), "transpose of 24 x 58 needs 1392 elements, got 1368", "{name}");
        let error = device.transpose_into(x.cast(), (24, 57), &mut [0u8; 5]).unwrap_err();
        assert_eq!(error.to_string(), "transpose needs an output of 1368 elements, got 5", "{name}");
        if !device.is_cpu() {
            let wrong = Map::new(|x: i16| x, "x +\n  missing_name");
            let error = device.transpose(x.map(&wrong), (24, 57)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
            let log = error.build_log().unwrap();
            assert!(log.contains("missing_name"), "{name}: {log}");
            assert!(common::names_line(&device, log, ("expression:2", 3, "  missing_name")), "{name}: {log}");
        }
    }
}
