//! User-defined operators, and the errors for wrong ones.

mod common;

use bytemuck::{Pod, Zeroable};
use oclprim::internals::scan::{Scan, in_scan};
use oclprim::{
    Complex, Device, ErrorKind, NdView, Source,
    internals::data::Data,
    op::laws,
    op::{Operator, complex_product, complex_sum},
};

fn complaint<T: Pod + std::fmt::Debug, F: Fn(T, T) -> T>(device: &Device, op: &Operator<T, F>, values: &[T]) -> String {
    let error = laws(device, op, values).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{op:?}: {error}");
    error.to_string()
}

#[test]
fn text_that_does_not_compile_gives_the_log_with_the_users_line() {
    let wrong = Operator::new("halves", 0u32, |a, b| a + b, "a + b / no_such_name").with_functions("\n\n");
    let broken = Operator::new("broken", 0u32, |a, b| a + b, "f(a, b)")
        .with_functions("uint f(uint a, uint b)\n{\n    return a +;\n}");
    for (name, device) in common::opencl_devices_or_skip("text_that_does_not_compile") {
        let error = device.reduce(&[1, 2], &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        let wanted = ("operator halves:1", 9, "a + b / no_such_name");
        assert!(log.contains("'no_such_name'") && common::names_line(&device, log, wanted), "{name}: {log}");
        let error = device.reduce(&[1, 2], &broken).unwrap_err();
        let log = error.build_log().unwrap();
        let wanted = ("functions of operator broken:3", 15, "    return a +;");
        assert!(log.contains("expected expression") && common::names_line(&device, log, wanted), "{name}: {log}");
        // The device stays usable.
        let sum = Operator::new("sum", 0u32, |a, b| a + b, "a + b");
        assert_eq!(device.reduce(&[1, 2], &sum).unwrap(), 3, "{name}");
    }
}

#[test]
fn a_struct_of_another_size_does_not_build() {
    let op =
        Operator::of_struct("short", "Short", "typedef struct { float x; } Short;", [0f32; 2], |a: [f32; 2], _| a, "a");
    for (name, device) in common::opencl_devices_or_skip("a_struct_of_another_size_does_not_build") {
        let error = device.reduce(&[[1f32; 2]], &op).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        assert!(log.contains("size_is_not_that_of_the_rust_type"), "{name}: {log}");
    }
}

#[test]
fn elements_have_one_to_64_bytes() {
    let large = Operator::of_struct("large", "Large", "", [0u64; 9], |a: [u64; 9], _| a, "a");
    let error = Device::cpu().reduce(&[[1u64; 9]], &large).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.to_string(), "operator large is over elements of 72 bytes; 1 to 64 are possible");
}

#[test]
fn a_wrong_identity_is_found() {
    let op = Operator::new("product", 0i32, i32::wrapping_mul, "a * b");
    for (name, device) in common::devices() {
        let text = complaint(&device, &op, &[7]);
        assert_eq!(text, "operator product: the identity 0 with 7 gives 0, not 7", "{name}");
    }
}

#[test]
fn an_operator_that_is_not_associative_or_not_commutative_is_found() {
    let values = Data::Random.generate::<i32>(40, 7);
    let midpoint = |a: i32, b: i32| match (a, b) {
        (0, x) | (x, 0) => x,
        _ => a / 2 + b / 2,
    };
    let mean = Operator::new("midpoint", 0, midpoint, "a == 0 ? b : b == 0 ? a : a / 2 + b / 2");
    let text = complaint(&Device::cpu(), &mean, &values);
    assert!(text.contains("not associative"), "{text}");
    let first = Operator::new("first", 0, |a: i32, b: i32| if a == 0 { b } else { a }, "a == 0 ? b : a");
    let text = complaint(&Device::cpu(), &first, &values);
    assert!(text.contains("not commutative"), "{text}");
}

#[test]
fn rust_and_opencl_c_that_differ_are_found() {
    let op = Operator::new("least", u32::MAX, |a: u32, b: u32| a.min(b), "max(a, b)");
    let values = Data::Random.generate(40, 3);
    for (name, device) in common::opencl_devices_or_skip("rust_and_opencl_c_that_differ_are_found") {
        let text = complaint(&device, &op, &values);
        assert!(text.starts_with("operator least: for ") && text.contains("OpenCL C gives"), "{name}: {text}");
    }
    assert!(laws(&Device::cpu(), &op, &values).is_ok());
}

#[test]
fn a_lawful_operator_over_a_struct_passes() {
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    #[repr(C)]
    struct Affine {
        factor: u32,
        shift: u32,
    }
    // The operator commutes only for equal factors.
    let op = Operator::of_struct(
        "shifts",
        "Affine",
        "typedef struct { uint factor, shift; } Affine;",
        Affine { factor: 1, shift: 0 },
        |a: Affine, b: Affine| Affine { factor: a.factor * b.factor, shift: a.shift.wrapping_add(b.shift) },
        "(Affine){ a.factor * b.factor, a.shift + b.shift }",
    );
    let shifts: Vec<_> = Data::Random.generate(40, 3).into_iter().map(|shift| Affine { factor: 1, shift }).collect();
    for (name, device) in common::devices() {
        assert!(laws(&device, &op, &shifts).is_ok(), "{name}");
    }
}

/// Functions and parameters share names with the kernels' macros. Every missing element changes the result. An exchange
/// of two elements changes it, too, except along an axis, where the operator must be commutative.
#[test]
fn operators_run_along_axes_in_segments_and_in_scans() {
    let text = "static inline ulong A(ulong WG, ulong TILE)\n{\n    const uint LOOK_BACK = WG, S = TILE;\n    \
                return (ulong)(S * (uint)(WG >> 32) + (uint)(TILE >> 32)) << 32 | LOOK_BACK * S;\n}";
    fn after(a: u64, b: u64) -> u64 {
        let (factor, shift) = ((a as u32).wrapping_mul(b as u32), (b as u32).wrapping_mul((a >> 32) as u32));
        u64::from(shift.wrapping_add((b >> 32) as u32)) << 32 | u64::from(factor)
    }
    let affine = Operator::new("affine", 1, after, "A(a, b)").with_functions(text);
    let alike = Operator::new("bits alike", u64::MAX, |a: u64, b: u64| !(a ^ b), "~(a ^ b)");
    let wrong = Operator::new("halves", 0u64, |a, b| a + b, "a + b / no_such_name");
    let x: Vec<u64> = Data::Random.generate::<u64>(30_000, 5).into_iter().map(|x| x | 1).collect();
    let offsets = [0u32, 0, 1, 4000, 29_000, 30_000];
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let there = device.upload(&x).unwrap();
        let table = there.nd(&[3, 10_000]).unwrap();
        let of = |line: &mut dyn Iterator<Item = &u64>| line.fold(u64::MAX, |all, &x| !(all ^ x));
        let rows: Vec<u64> = x.chunks(10_000).map(|row| of(&mut row.iter())).collect();
        assert_eq!(device.reduce(table.along(1), &alike).unwrap().to_vec().unwrap(), rows, "{name}");
        let columns: Vec<u64> = (0..10_000).map(|c| of(&mut x.iter().skip(c).step_by(10_000))).collect();
        assert_eq!(device.reduce(table.along(0), &alike).unwrap().to_vec().unwrap(), columns, "{name}");
        let of = |range: &[u32]| x[range[0] as usize..range[1] as usize].iter().fold(1, |all, &x| after(all, x));
        let parts: Vec<u64> = offsets.windows(2).map(of).collect();
        assert_eq!(device.reduce(there.segments(&offsets), &affine).unwrap().to_vec().unwrap(), parts, "{name}");
        let mut all = 1;
        let sums: Vec<u64> = x.iter().map(|&x| (all = after(all, x), all).1).collect();
        let kind = Scan::inclusive();
        assert!(device.scan(&there, in_scan(&affine, kind)).unwrap().to_vec().unwrap() == sums, "{name}");
        if !device.is_cpu() {
            let along = device.reduce(table.along(1), &wrong).unwrap_err();
            let segmented = device.reduce(there.segments(&offsets), &wrong).unwrap_err();
            let scanned = device.scan(&there, in_scan(&wrong, kind)).unwrap_err();
            for error in [along, segmented, scanned] {
                assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
                let wanted = ("operator halves:1", 9, "a + b / no_such_name");
                assert!(common::names_line(&device, error.build_log().unwrap(), wanted), "{name}: {error}");
            }
        }
    }
}

/// The operator divides by 0 if a kernel fills the last tile with zeros instead of identities.
#[test]
fn partial_tiles_are_filled_with_identities() {
    fn gcd(a: u32, b: u32) -> u32 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let text = "static inline uint gcd(uint a, uint b)\n{\n    while (b != 0) {\n        const uint r = a % b;\n        \
                a = b;\n        b = r;\n    }\n    return a;\n}";
    let multiple = Operator::new("lcm", 1u32, |a, b| a / gcd(a, b) * b, "a / gcd(a, b) * b").with_functions(text);
    let x: Vec<u32> = (0..1000).map(|i| 1 + i % 5).collect();
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let scanned = device.scan(&x, &multiple).unwrap().to_vec().unwrap();
        assert!(scanned[..5] == [1, 2, 6, 12, 60] && scanned[5..].iter().all(|&x| x == 60), "{name}");
        assert_eq!(
            device.reduce(x.segments(&[0u32, 3, 1000]), &multiple).unwrap().to_vec().unwrap(),
            [6, 60],
            "{name}"
        );
        assert_eq!(device.reduce(NdView::from(&x).along(0), &multiple).unwrap().to_vec().unwrap(), [60], "{name}");
    }
}

#[test]
fn an_operator_over_another_type_is_refused() {
    let larger = |a: f32, b: f32| f32::from_bits(a.to_bits().max(b.to_bits()));
    let bits = Operator::of_struct("larger bits", "int", "", 0f32, larger, "max(a, b)");
    for (name, device) in common::devices() {
        let error = device.scan(&[0.25, 0.75], &bits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(
            error.to_string(),
            "operator larger bits takes `int` in OpenCL C, but f32 is `float` there",
            "{name}"
        );
        assert!(device.reduce(NdView::from(&[0.25, 0.75]).along(0), &bits).is_err(), "{name}");
        assert!(device.reduce([0.25, 0.75].segments(&[0u32, 2]), &bits).is_err(), "{name}");
        assert_eq!(device.reduce(&[0.25, 0.75], &bits).unwrap(), 0.75, "{name}");
    }
}

/// Members share names with the crate's macros, and the text ends in a comment.
#[test]
fn any_member_names_and_comments_build() {
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    #[repr(C)]
    struct Gas {
        temperature: f32,
        pressure: f32,
    }
    let op = Operator::of_struct(
        "mixture",
        "Gas",
        "typedef struct { float T, T_BYTES; } Gas;\nstatic inline float OPERATOR(Gas a) { return a.T; }",
        Gas { temperature: 0.0, pressure: 0.0 },
        |a, b| Gas { temperature: a.temperature.max(b.temperature), pressure: a.pressure + b.pressure },
        "(Gas){ fmax(OPERATOR(a), b.T), a.T_BYTES + b.T_BYTES } // the hotter one",
    );
    let gas = |temperature, pressure| Gas { temperature, pressure };
    for (name, device) in common::devices() {
        assert_eq!(device.reduce(&[gas(1.0, 2.0), gas(3.0, 4.0)], &op).unwrap(), gas(3.0, 6.0), "{name}");
    }
}

#[test]
fn one_is_neutral_for_complex_numbers_with_infinities() {
    let infinite = Complex::new(f32::INFINITY, 0.0);
    let bits = |x: Complex<f32>| (x.re.to_bits(), x.im.to_bits());
    for (name, device) in common::devices() {
        for x in [infinite, Complex::new(-0.0, f32::NEG_INFINITY), Complex::new(1.0, -0.0)] {
            let got = device.reduce(&[x], &complex_product()).unwrap();
            assert_eq!(bits(got), bits(x), "{name}: {x}");
        }
        assert_eq!(bits(device.reduce(&[], &complex_sum()).unwrap()), bits(Complex::new(-0.0, -0.0)), "{name}");
    }
    let values = [infinite, Complex::new(1.0, 0.0), Complex::new(1.0, -0.0), Complex::new(-0.0, 0.0)];
    for (name, device) in common::devices() {
        for x in values {
            assert!(laws(&device, &complex_product(), &[x, values[1]]).is_ok(), "{name}: {x}");
        }
    }
}

/// A command writes an identity of any size without a wait.
#[test]
fn empty_input_gives_the_identity() {
    fn check<const N: usize>() {
        let identity: [u8; N] = std::array::from_fn(|i| i as u8 + 1);
        let text = format!("typedef struct {{ uchar x[{N}]; }} Bytes;");
        let op = Operator::of_struct("first", "Bytes", &text, identity, |a: [u8; N], _| a, "a");
        for (name, device) in common::devices() {
            let device = device.profiled().unwrap();
            let nothing = device.upload::<[u8; N]>(&[]).unwrap();
            let mut out = device.upload(&[[99; N]; 3]).unwrap();
            device.take_timings().unwrap();
            device.reduce_into(&nothing, &op, out.view_mut(1..2).unwrap()).unwrap();
            let commands: Vec<_> = device.take_timings().unwrap().iter().map(|timing| timing.name).collect();
            // Writes have no timing, so a timing proves that no write was used. Oclgrind gets other commands instead of fills.
            let fills = !device.is_cpu() && common::runs_kernels_at_once(&device);
            assert!(!fills || !commands.is_empty(), "{name}: {N} bytes");
            assert_eq!(out.to_vec().unwrap(), [[99; N], identity, [99; N]], "{name}");
        }
    }
    check::<1>();
    check::<3>();
    check::<12>();
    check::<64>();
}

#[test]
fn large_elements_fit_little_local_memory() {
    let sum = |a: [f32; 16], b: [f32; 16]| std::array::from_fn(|i| a[i] + b[i]);
    let op = Operator::of_struct(
        "sums",
        "Sums",
        "typedef struct { float16 x; } Sums;",
        [0.0; 16],
        sum,
        "(Sums){ a.x + b.x }",
    );
    let x: Vec<[f32; 16]> = (0..3000).map(|i| std::array::from_fn(|k| 1.0 / (i + k + 1) as f32)).collect();
    let want = Device::cpu().reduce(&x, &op).unwrap();
    for (name, device) in common::tuned(&[("a small GPU", common::gpu().local_bytes(8192))]) {
        assert_eq!(device.reduce(&x, &op).unwrap(), want, "{name}");
    }
}
