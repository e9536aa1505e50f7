//! Reductions: a regression test for each defect (B1 to B15) of the original kernels, and random inputs.

#[path = "../../tests/common/mod.rs"]
mod common;
mod steps;

use approx::{assert_abs_diff_eq, assert_relative_eq};
use common::with_sub_groups as devices;
use oclprim::{
    Determinism, Device, DeviceClass, ElementType, ErrorKind, Float, Source, Tuning,
    op::{Max, Product, Sum, Usage, Xor},
    tuning::Primitive,
};
use oclprim_checks::{
    bench::{Effort, measure_case},
    check::{Failure, data::Rng, exact_sum, poison, sum_bound},
    ladder::{Request, Rung},
    registry,
};
use proptest::prelude::*;

/// Values whose sum reveals every missing element and every one counted twice.
fn values(n: usize) -> Vec<i32> {
    let mut rng = Rng::new(n as u64);
    (0..n).map(|_| rng.next() as i32).collect()
}

fn sum(x: &[i32]) -> i32 {
    x.iter().fold(0, |sum, x| sum.wrapping_add(*x))
}

fn request(n: usize, block: Option<usize>) -> Request {
    let mut request = Request::default();
    (request.n, request.block, request.element) = (n, block, ElementType::I32);
    request
}

fn steps(device: &Device, n: usize, block: Option<usize>) -> Vec<Rung> {
    let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "reduce").unwrap();
    let steps = ladder.rungs(&request(n, block), device).unwrap();
    steps.into_iter().filter(|step| step.unavailable.is_none()).collect()
}

/// Runs the steps whose names start with one of `names`.
fn run_steps(device: &(String, Device), n: usize, block: Option<usize>, names: &[&str]) {
    let fits = |step: &str| names.iter().any(|start| step.starts_with(start));
    steps::run_steps("reduce", device, &request(n, block), fits);
}

/// Sums views of buffers that hold poison before and after the elements.
fn check_views(sizes: &[usize]) {
    let poison: i32 = poison();
    for (name, device) in devices() {
        for &n in sizes {
            let x = values(n);
            for offset in [0, 1, 5] {
                let around = [vec![poison; offset], x.clone(), vec![poison; 1030]].concat();
                let buffer = device.upload(&around).unwrap();
                let got = device.reduce(buffer.view(offset..offset + n).unwrap(), Sum).unwrap();
                assert_eq!(got, sum(&x), "{name}: {n} at {offset}");
            }
        }
    }
}

/// B1: kernels with several elements per work-item dropped the elements after the last full round. They dropped small
/// inputs entirely.
#[test]
fn b1_no_tail_is_lost() {
    let sizes = [384, 385, 511, 513, 640, 1000, 3584, 4000, 5000, 1_000_000];
    check_views(&sizes);
    for device in common::devices() {
        for n in sizes {
            run_steps(&device, n, None, &["unrolling", "gmem_unroll", "smem_unroll", "template"]);
        }
    }
}

/// B2: the bounds check of the last round was off by one. The kernel read past the end if a round ended exactly there.
/// Poison lies after the elements, for the crate's kernels and for the ladder's kernels that had the defect.
#[test]
fn b2_nothing_past_the_end_is_read() {
    check_views(&[127, 128, 383, 384, 385, 447, 448, 511, 512, 1023, 1024]);
    let all = &["unroll", "complete", "template", "gmem", "smem"][..];
    let names = if common::tiny() { &["unrolling4", "gmem_unroll", "smem_unroll"] } else { all };
    for device in common::devices() {
        // Work-groups of 64 take 2, 4 or 8 elements a work-item. Each size is a multiple of 64, so
        // it ends with a whole tile or with a whole round of a tile.
        for n in [64, 128, 192, 256, 448, 512, 576, 1024] {
            run_steps(&device, n, Some(64), names);
        }
    }
}

/// B3: work-items past the end returned before a barrier, and others of their work-group read values never written.
#[test]
fn b3_short_work_groups_are_complete() {
    check_views(&[1, 2, 3, 63, 65, 129, 257]);
    for device in common::devices() {
        for n in [1, 2, 65, 127, 129, 511, 513, 1025] {
            run_steps(&device, n, None, &[""]);
        }
    }
}

/// B4, B11: the last steps relied on 32 work-items in lock step, and on shuffles without a mask. Kernels now read the
/// width, and every kind of sub-groups gives the same result, also in the ladder's kernels that had the defect. (Steps
/// that synchronise only a sub-group are built only for sub-groups of 32 work-items, such as on GPUs.)
#[test]
fn b4_every_kind_of_sub_groups_gives_the_same_answer() {
    for device in devices() {
        for n in [1000, 4096, 20_001] {
            run_steps(&device, n, None, &["unroll_warps8", "complete_unroll8", "template_unroll8", "shuffle_xor"]);
        }
    }

    let x: Vec<f32> = values(70_001).iter().map(|&x| x as f32 / 65536.0).collect();
    let want = Device::cpu().reduce(&x, Sum).unwrap();
    for (name, device) in devices() {
        let buffer = device.upload(&x).unwrap();
        for round in 0..10 {
            assert_eq!(device.reduce(&buffer, Sum).unwrap().to_bits(), want.to_bits(), "{name}: round {round}");
        }
    }
}

/// B5, B6: work-groups below 64 gave wrong sums, and sizes above a fixed local array overflowed it. Sizes that are not
/// powers of two lost elements. (Oclgrind sees the end of an array, and scripts/test runs this test there. On CPU
/// drivers the result may be right in spite of the defect.)
#[test]
fn b5_every_block_is_right_or_refused() {
    for device in common::devices() {
        let (name, device) = &device;
        let most = device.capabilities().unwrap().map_or(8192, |caps| caps.max_work_group.min(1024));
        let blocks = if common::tiny() { &[4, most][..] } else { &[4, 32, most] };
        for &block in blocks.iter().filter(|&&block| block <= most) {
            let sizes = if common::tiny() {
                &[block - 1, 2 * block + 1][..]
            } else {
                &[1, block - 1, block + 1, 9 * block + 7]
            };
            for &n in sizes {
                let names = &["unroll_warps", "template", "complete", "gmem", "smem", "shuffle"];
                run_steps(&(name.clone(), device.clone()), n, Some(block), names);
            }
        }
        for block in [0, 1, 3, 96, 1 << 20] {
            let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "reduce").unwrap();
            let error = ladder.rungs(&request(1000, Some(block)), device).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {block}");
            assert!(error.to_string().contains(&block.to_string()), "{name}: {error}");
        }
    }
}

/// B7: the common reference dropped the odd element of each level and overwrote its input.
#[test]
fn b7_the_reference_counts_odd_elements() {
    for n in [3, 7, 100, 1000, 1025, 65_537] {
        let ones = vec![1i32; n];
        for determinism in [Determinism::Fast, Determinism::Fixed, Determinism::Exact] {
            assert_eq!(Device::cpu().reduce(&ones, Sum.with(determinism)).unwrap(), n as i32);
        }
        assert!(ones.iter().all(|&x| x == 1));
    }
}

/// B8: 32-bit sums overflowed silently. They now wrap, as documented, and wider elements hold the sum.
#[test]
fn b8_sums_wrap_and_wider_elements_do_not() {
    for (name, device) in devices() {
        let narrow = [i32::MAX, 1, 255];
        assert_eq!(device.reduce(&narrow, Sum).unwrap(), i32::MIN + 255, "{name}");
        let wide = narrow.map(i64::from);
        assert_eq!(device.reduce(&wide, Sum).unwrap(), i64::from(i32::MAX) + 256, "{name}");
    }
}

/// B9: only the last kernel's sum was compared, so a kernel that did not run passed with the sum of the one before.
#[test]
fn b9_verification_fails_before_a_run() {
    for (name, device) in common::devices() {
        for step in steps(&device, 1000, None) {
            let mut case = (step.prepare)(&device).unwrap();
            case.reset().unwrap();
            assert!(matches!(case.verify(), Err(Failure::Mismatch(_))), "{name}: {} before it ran", step.name);
            case.run().unwrap();
            case.verify().unwrap();
            case.reset().unwrap();
            assert!(matches!(case.verify(), Err(Failure::Mismatch(_))), "{name}: {} after a reset", step.name);
        }
    }
}

/// B10: the host timed a single run, without the sum of the partial results.
#[test]
fn b10_timed_runs_repeat_and_include_the_second_stage() {
    for (name, device) in common::opencl_devices_or_skip("b10") {
        let device = device.profiled().unwrap();
        let step = steps(&device, 5000, None).into_iter().find(|step| step.name == "smem").unwrap();
        let mut case = (step.prepare)(&device).unwrap();
        case.reset().unwrap();
        device.take_timings().unwrap();
        case.run().unwrap();
        let kernels: Vec<_> = device.take_timings().unwrap().iter().map(|timing| timing.name).collect();
        assert_eq!(kernels.first(), Some(&"smem"), "{name}");
        assert_eq!(kernels.last(), Some(&"reduce_tiles"), "{name}");
        let mut effort = Effort::default();
        (effort.warm_up, effort.runs, effort.seconds) = (1, 5, 10.0);
        assert_eq!(measure_case(&device, effort, &mut case).unwrap().device.runs, 5, "{name}");
    }
}

/// B12: kernels that reduce in global memory overwrote the input of later kernels. The ladder's kernels run twice here.
#[test]
fn b12_the_input_is_not_changed() {
    for device in common::devices() {
        run_steps(&device, 5000, None, &["neighbored", "interleaved", "unroll", "complete", "template", "gmem"]);
    }
    let x = values(5000);
    for (name, device) in devices() {
        let buffer = device.upload(&x).unwrap();
        for _ in 0..2 {
            assert_eq!(device.reduce(&buffer, Sum).unwrap(), sum(&x), "{name}");
        }
        assert_eq!(buffer.to_vec().unwrap(), x, "{name}");
    }
}

// B13: a statement occurred twice in print, and comments were wrong. No test can show this.

/// B14: inputs shorter than a vector launched no work-group. Runs also rotated through several buffers, of which only
/// one had been written. The ladder writes all copies of a rotation and verifies each run.
#[test]
fn b14_inputs_shorter_than_a_vector_are_reduced() {
    let sizes: Vec<usize> = (0..18).collect();
    check_views(&sizes);
    for (name, device) in common::devices() {
        for n in 0..18u8 {
            let x: Vec<u8> = (0..n).collect();
            assert_eq!(device.reduce(&x, Max).unwrap(), n.saturating_sub(1), "{name}: {n}");
        }
    }
}

/// B15: data of all ones hid elements that counted twice or were dropped, such as by a grid that was rounded down. Here
/// bit i belongs to element i. Sizes are `usize`, and 64-bit in kernels from 2^31 on: checks/src/large/spec.rs.
#[test]
fn b15_each_element_counts_once() {
    for (name, device) in devices() {
        for n in 1..=64 {
            let x: Vec<u64> = (0..n).map(|i| 1 << i).collect();
            assert_eq!(device.reduce(&x, Sum).unwrap(), u64::MAX >> (64 - n), "{name}: {n}");
        }
        // Each 2^i occurs at every 64th index, so the sum over 2^6 rounds is all ones, shifted by six.
        let x: Vec<u64> = (0..4096).map(|i| 1 << (i % 64)).collect();
        assert_eq!(device.reduce(&x, Sum).unwrap(), u64::MAX << 6, "{name}");
        assert_eq!(device.reduce(&x, Xor).unwrap(), 0, "{name}");
    }
}

// B16, B17 and B18 are defects of a histogram, a scan and a merge: see checks/tests/histogram.rs, tests/scan.rs,
// tests/merge.rs.

/// `Fast` floats, added in any order: the tolerance counts the additions and multiplications on the path of a value.
#[test]
fn fast_sums_and_products_are_near_the_fixed_ones() {
    for (name, device) in devices() {
        for n in [1, 100, 1025, 40_009] {
            let mut rng = Rng::new(n as u64);
            let x: Vec<f32> = (0..n).map(|_| (rng.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect();
            let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
            let fast = device.reduce(&x, Sum.fast()).unwrap();
            println!("{name}: {n}");
            assert_abs_diff_eq!(f64::from(fast), exact, epsilon = sum_bound(&device, &x).unwrap());

            let factors: Vec<f32> = x.iter().map(|x| 1.0 + x / 1024.0).collect();
            let exact: f64 = factors.iter().map(|&x| f64::from(x)).product();
            let fast = device.reduce(&factors, Product.fast()).unwrap();
            let rounding = (n as f64 * f64::from(f32::EPSILON) / 2.0).exp_m1();
            assert_relative_eq!(f64::from(fast), exact, max_relative = rounding);
        }
    }
}

/// With `Exact`, sums of integers and extremes equal those of `Fixed`, and there are no products of floats.
#[test]
fn exact_is_for_float_sums() {
    let x = [1e30f32, 1.0, -1e30];
    for (name, device) in devices() {
        println!("{name}");
        assert_eq!(device.reduce(&[i32::MAX, 1], Sum.exact()).unwrap(), i32::MIN);
        assert_eq!(device.reduce(&x, Max.exact()).unwrap(), 1e30);
        let product = device.reduce(&x, Product.exact()).unwrap_err();
        assert_eq!(product.kind(), ErrorKind::Unsupported);
        assert_eq!(product.to_string(), "there is no exact product of floats");
        assert_eq!(device.reduce(&x, Sum.exact()).unwrap(), 1.0);
        let y = [1e30f32, 0.5, 1e30];
        assert_eq!(device.reduce(x.times(&y), Sum.exact()).unwrap(), 0.5);
    }
}

/// Each sum has many equal numbers with a full significand, at one of several positions of a word. A kernel resolves carries
/// after some number of chunks. With twice as many chunks a window would overflow here, and with four times as many, a word.
#[test]
fn exact_sums_of_many_equal_numbers_resolve_their_carries() {
    fn all<T: Float>(device: &Device, name: &str, n: usize, values: &[u64]) {
        for &bits in values {
            // The first numbers are 15 binades lower. They open a window that has the others at its upper end.
            let fraction = if size_of::<T>() == 8 { 52 } else { 23 };
            let lower = if (bits >> fraction) & 0xff > 15 { bits - (15 << fraction) } else { bits };
            let [first, x] = [lower, bits].map(T::from_bits_lossy);
            let mut x = vec![x; n];
            x[..n / 32].fill(first);
            let [got, want] =
                [device, &Device::cpu()].map(|device| device.reduce(&x, Sum.exact()).unwrap().to_f64().to_bits());
            assert_eq!(got, want, "{name}: {n} times {:?}", x[n - 1]);
        }
    }
    for (name, device) in devices() {
        let Some(caps) = device.capabilities().unwrap().filter(|caps| !caps.checker) else {
            common::skip(&name, "the CPU backend has tests of its own, and a checker takes too long");
            continue;
        };
        // Few work-items, so that each has many elements.
        let set = |tuning: Tuning, name, value| tuning.set(Primitive::Reduce, name, value);
        let units = caps.compute_units as usize;
        let few = set(Tuning::default().class(DeviceClass::Gpu), "max_groups", units);
        let few = if caps.max_work_group > 64 { set(few, "work_group", 64) } else { few };
        let items = 64 * units;
        for registers in [0, 1] {
            if caps.fp64 || registers == 0 {
                let tuning = if caps.fp64 { set(few.clone(), "exact_f64", registers) } else { few.clone() };
                let device = device.with_tuning(tuning).unwrap();
                let fields = [100, 107, 113].map(|field| field << 23 | 0x7f_ffff);
                all::<f32>(&device, &name, 600 * items, &fields);
                // With registers of f64, each number is deposited.
                all::<f32>(&device, &name, 22_000 * items, &[0x7f_ffff, 0x807f_ffff]);
                if caps.fp64 {
                    let (ones, fields) = ((1 << 52) - 1, [900, 910, 925]);
                    all::<f64>(&device, &name, 2200 * items, &fields.map(|field| field << 52 | ones));
                    all::<f64>(&device, &name, 5500 * items, &[ones, (2046 << 52) - 1]);
                }
            }
        }
    }
}

/// An exact sum has the same bits for every order of its elements, although threads add parts of them.
#[test]
fn exact_sums_do_not_depend_on_the_order() {
    let mut rng = Rng::new(1);
    let mut x: Vec<f64> = (0..300_000).map(|_| f64::from_bits(rng.next() & !(1 << 62))).collect();
    let sum = |x: &[f64]| Device::cpu().reduce(x, Sum.exact()).unwrap().to_bits();
    let want = sum(&x);
    assert_eq!(want, exact_sum::<_, f64>(&x).to_bits());
    x.reverse();
    assert_eq!(sum(&x), want);
    x.sort_by(f64::total_cmp);
    assert_eq!(sum(&x), want);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if common::tiny() { 6 } else { 24 }, ..ProptestConfig::default() })]

    #[test]
    fn any_view_of_any_input_equals_the_cpu(
        n in 0usize..40_000, start in 0usize..40, cut in 0usize..40, seed: u64, fixed: bool
    ) {
        let mut rng = Rng::new(seed);
        let x: Vec<f32> = (0..n + start + cut).map(|_| (rng.next() >> 40) as f32 - 8_000_000.0).collect();
        let ids: Vec<i32> = x.iter().map(|&x| x as i32).collect();
        let range = start..start + n;
        let want = Device::cpu().reduce(&x[range.clone()], Sum).unwrap();
        let exact = sum(&ids[range.clone()]);
        for (name, device) in devices() {
            let (x, ids) = (device.upload(&x).unwrap(), device.upload(&ids).unwrap());
            let mut out = device.upload(&[0.5f32; 3]).unwrap();
            if fixed {
                let to = out.view_mut(1..2).unwrap();
                device.reduce_into(x.view(range.clone()).unwrap(), Sum, to).unwrap();
                let got = out.to_vec().unwrap();
                prop_assert_eq!(got[1].to_bits(), want.to_bits(), "{}: {} at {}", &name, n, start);
                prop_assert_eq!([got[0], got[2]], [0.5; 2], "{}: beside the output", &name);
            }
            prop_assert_eq!(device.reduce(ids.view(range.clone()).unwrap(), Sum).unwrap(), exact, "{}", &name);
        }
    }
}
