//! Copies: defects of the original kernels (B40 to B45), and random copies against slices.

#[path = "../../tests/common/mod.rs"]
mod common;
mod steps;

use common::{gpu, random, tuned};
use oclprim::{Complex, Device, DeviceClass, ElementType, ErrorKind, Source, Tuning};
use oclprim_checks::{
    check::{guarded, same_bytes},
    ladder::Request,
};
use proptest::prelude::*;

/// Every device, in its own geometry, in that of a GPU, and in that of a GPU with 64-bit offsets.
fn devices() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu()), ("a wide GPU", gpu().wide_offsets())])
}

/// Copies `n` elements between two offsets; checks the copy, the input and the memory around the output.
fn check<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(
    name: &str,
    device: &Device,
    n: usize,
    from: usize,
    to: usize,
) {
    let data: Vec<T> = random(from + n, n as u64);
    let x = device.upload(&data).unwrap();
    let got = guarded(device, n, to, |out| Ok(device.copy(x.view(from..).unwrap(), out)?));
    let verdict = got.and_then(|got| same_bytes(&got, &data[from..], "copy"));
    assert!(verdict.is_ok(), "{name}: {n} from {from} to {to}: {verdict:?}");
}

/// Runs the steps of the copy ladder whose names fit.
fn run_steps(device: &(String, Device), element: ElementType, n: usize, fits: impl Fn(&str) -> bool) {
    let mut request = Request::default();
    (request.n, request.element) = (n, element);
    steps::run_steps("copy", device, &request, fits);
}

/// B40: with vectors of V elements, the work-item with index n / V copied the tail. At these sizes, and where the grid
/// is capped, no work-item has this index.
#[test]
fn b40_tails_are_copied() {
    for device in devices() {
        for n in [513, 1025, 1026, 1027, 1537, 2049, 2050, 2051] {
            check::<i32>(&device.0, &device.1, n, 0, 0);
            run_steps(&device, ElementType::I32, n, |step| step.starts_with("copy_vector"));
        }
    }
    for device in common::devices() {
        // These elements fill more than 4096 work-groups of 256 work-items with 4 elements each.
        let n = (1 << 22) + 3;
        check::<i32>(&device.0, &device.1, n, 0, 0);
        run_steps(&device, ElementType::I32, n, |step| step == "copy_vector2" || step == "copy_vector4");
    }
}

/// B41: an input shorter than a vector gave a grid of zero work-groups.
#[test]
fn b41_inputs_shorter_than_a_vector_are_copied() {
    for device in devices() {
        for n in [1, 2, 3, 15] {
            check::<i32>(&device.0, &device.1, n, 0, 0);
            check::<u8>(&device.0, &device.1, n, 0, 0);
            run_steps(&device, ElementType::I32, n, |_| true);
        }
        check::<i32>(&device.0, &device.1, 0, 0, 0);
    }
}

/// B42: the kernel with two elements per access did not compile as the article printed it.
#[test]
fn b42_every_vector_width_compiles_for_every_element_size() {
    for device in common::opencl_devices_or_skip("b42") {
        for element in [ElementType::U8, ElementType::I16, ElementType::F32, ElementType::F64] {
            run_steps(&device, element, 100, |_| true);
        }
    }
}

/// B43: counters of type `int` overflowed near 2^31. The crate uses 32-bit offsets below 2^31 words and 64-bit ones
/// above. All tests of this file also run the wide kernels; `check --full` runs them beyond 2^32 elements.
#[test]
fn b43_kernels_with_wide_offsets_copy_every_element() {
    for (name, device) in common::opencl_devices_or_skip("b43") {
        for class in [DeviceClass::Cpu, DeviceClass::Gpu] {
            let wide = device.with_tuning(Tuning::default().class(class).wide_offsets()).unwrap();
            check::<u8>(&name, &wide, 100_003, 1, 2);
            run_steps(&(name.clone(), wide), ElementType::I32, 100_003, |_| true);
        }
    }
}

/// B44: an unaligned base address of a vector was undefined behaviour. The ladder's kernels own whole buffers, so only
/// the crate's kernels see unaligned addresses.
#[test]
fn b44_any_alignment_is_copied() {
    for (name, device) in devices() {
        for from in 0..16 {
            for to in [0, 1, 7, 15 - from] {
                check::<u8>(&name, &device, 333, from, to);
            }
        }
        for (from, to) in [(1, 0), (0, 1), (3, 2)] {
            check::<i32>(&name, &device, 1027, from, to);
            check::<f64>(&name, &device, 1027, from, to);
            check::<[u8; 3]>(&name, &device, 1027, from, to);
        }
    }
}

/// B45: lengths passed through `float`, which is exact only up to 2^24. The crate uses integers throughout.
/// (Bytes were counted in one direction only, too: see b26 in checks/tests/transpose.rs.)
#[test]
fn b45_lengths_beyond_24_bits_are_exact() {
    for device in common::devices() {
        if !common::runs_kernels_at_once(&device.1) {
            common::skip("b45", "millions of work-items are too many for oclgrind");
            continue;
        }
        let all = !common::tiny();
        if all {
            check::<u8>(&device.0, &device.1, (1 << 24) + 1, 0, 0);
        }
        check::<u8>(&device.0, &device.1, (1 << 24) + 3, 1, 0);
        let fits = |step: &str| step == "copy_vector2" || (all && step.starts_with("copy_vector"));
        // As a float, this length would lose its last two elements.
        run_steps(&device, ElementType::U8, (1 << 25) + 2, fits);
    }
}

#[test]
fn errors_give_the_numbers() {
    for (name, device) in common::devices() {
        let x = device.upload(&[1u8; 10]).unwrap();
        let mut y = device.zeroed::<u8>(11).unwrap();
        let error = device.copy(&x, &mut y).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::InvalidInput, "copying 10 elements into 11".into()),
            "{name}"
        );
        let error = y.copy_within(2.., 3).unwrap_err();
        assert_eq!(error.to_string(), "range 3..12 is not within a buffer of 11 elements", "{name}");
    }
    let (cpu, foreign) = (Device::cpu(), common::opencl_devices());
    for (name, device) in foreign {
        let (x, mut y) = (cpu.upload(&[1u8; 10]).unwrap(), device.zeroed::<u8>(10).unwrap());
        assert_eq!(device.copy(&x, &mut y).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(cpu.copy(&x, &mut y).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(cpu.copy(&y, &mut [0; 10]).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn copies_equal_copies_of_slices(n in 0usize..40_000, from in 0usize..40, to in 0usize..40) {
        for (name, device) in devices() {
            check::<u8>(&name, &device, n, from, to);
            check::<u16>(&name, &device, n / 2, from, to);
            check::<[u32; 3]>(&name, &device, n / 12, from, to);
        }
    }

    #[test]
    fn copies_within_a_buffer_equal_copy_within(all in 1usize..30_000, a in 0.0..1.0, b in 0.0..1.0, c in 0.0..1.0) {
        let part = |of: usize, by: f64| (of as f64 * by) as usize;
        let len = part(all, a);
        let (from, to) = (part(all - len, b), part(all - len, c));
        for (name, device) in devices() {
            let mut want: Vec<u16> = random(all, 1);
            let mut buffer = device.upload(&want).unwrap();
            buffer.copy_within(from..from + len, to).unwrap();
            want.copy_within(from..from + len, to);
            prop_assert!(buffer.to_vec().unwrap() == want, "{}: {} from {} to {}", name, len, from, to);
        }
    }

    #[test]
    fn scatters_invert_gathers(n in 1usize..9_000, offset in 0usize..6, seed: u64) {
        for (name, device) in devices() {
            let keys: Vec<u64> = random(n, seed);
            let mut order: Vec<u32> = (0..n as u32).collect();
            order.sort_by_key(|&i| keys[i as usize]);
            let (x, by) = (random::<u32>(n, seed), device.upload(&[vec![0; offset], order.clone()].concat()).unwrap());
            let by = by.view(offset..).unwrap();
            let picked = device.gather(&x, by).unwrap();
            let want: Vec<_> = order.iter().map(|&i| x[i as usize]).collect();
            prop_assert!(picked.to_vec().unwrap() == want, "{}: gather of {}", name, n);
            prop_assert!(device.scatter(&picked, by, n).unwrap().to_vec().unwrap() == x, "{}: scatter of {}", name, n);
        }
    }

    #[test]
    fn reversals_equal_reversed_slices(n in 0usize..9_000, from in 0usize..20, to in 0usize..20) {
        for (name, device) in devices() {
            let data: Vec<u8> = random(from + n, 1);
            let x = device.upload(&data).unwrap();
            let got = guarded(&device, n, to, |out| Ok(device.copy(x.view(from..).unwrap().reversed(), out)?)).unwrap();
            let want: Vec<u8> = data[from..].iter().rev().copied().collect();
            prop_assert!(got == want, "{}: {} from {} to {}", name, n, from, to);
        }
    }
}

/// Complex numbers move whole, like other elements of 8 and 16 bytes.
#[test]
fn complex_numbers_are_moved_whole() {
    fn moved<F: Copy + Send + Sync + PartialEq + std::fmt::Debug>(name: &str, device: &Device, of: fn(i32) -> F)
    where
        Complex<F>: bytemuck::Pod,
    {
        let x: Vec<_> = (0..23 * 41).map(|i| Complex::new(of(i), of(-i))).collect();
        let order: Vec<u32> = (0..23 * 41).map(|i| i * 7 % (23 * 41)).collect();
        let there = device.upload(&x).unwrap();
        let mut copy = device.zeroed::<Complex<F>>(x.len() - 1).unwrap();
        device.copy(there.view(1..).unwrap(), &mut copy).unwrap();
        assert_eq!(copy.to_vec().unwrap(), x[1..], "{name}");
        let transposed = device.transpose(&there, (23, 41)).unwrap().to_vec().unwrap();
        assert!((0..x.len()).all(|i| transposed[i] == x[i % 23 * 41 + i / 23]), "{name}");
        let picked = device.gather(&there, &order).unwrap();
        let want: Vec<_> = order.iter().map(|&i| x[i as usize]).collect();
        assert_eq!(picked.to_vec().unwrap(), want, "{name}");
        assert_eq!(device.scatter(&picked, &order, x.len()).unwrap().to_vec().unwrap(), x, "{name}");
    }
    for (name, device) in common::devices() {
        moved::<f32>(&name, &device, |i| i as f32);
        if !common::tiny() {
            moved::<f64>(&name, &device, f64::from);
        }
    }
}

/// Operations that promise the same result on every run are repeated many times.
#[test]
fn operations_repeat_bit_for_bit() {
    let rounds = if common::tiny() { 3 } else { 100 };
    for (name, device) in devices() {
        let x = device.upload(&random::<u32>(5000, 1)).unwrap();
        let by = device.upload(&(0..5000).map(|i| i * 7919 % 5000).collect::<Vec<u32>>()).unwrap();
        let run = || {
            let mut ranges = device.zeroed::<u32>(5000).unwrap();
            device.copy(x.ranges(&[(0..2000, 2500), (1500..3500, 3)]), &mut ranges).unwrap();
            let mut blocks = device.zeroed::<u32>(5000).unwrap();
            let from = x.nd(&[50, 100]).unwrap().slice(1, 1..80).unwrap();
            device.copy(from, blocks.nd_mut(&[50, 100]).unwrap().slice(1, 20..99).unwrap()).unwrap();
            let forms = [
                device.gather(&x, &by).unwrap(),
                device.scatter(&x, &by, 5000).unwrap(),
                device.transform(x.reversed()).unwrap(),
                blocks,
                ranges,
            ];
            forms.map(|form| form.to_vec().unwrap())
        };
        let first = run();
        assert!((1..rounds).all(|_| run() == first), "{name}");
    }
}
