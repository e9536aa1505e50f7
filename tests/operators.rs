//! Operators of the user's own: what is said of those that are wrong.

mod common;

use bytemuck::{Pod, Zeroable};
use oclprim::{
    Device, ErrorKind,
    check::{Failure, data::Data, laws},
    op::Operator,
};

/// The OpenCL devices of this machine.
fn opencl() -> Vec<(String, Device)> {
    common::devices().into_iter().filter(|(_, device)| !device.is_cpu()).collect()
}

fn complaint<T: Pod + std::fmt::Debug, F: Fn(T, T) -> T>(device: &Device, op: &Operator<T, F>, values: &[T]) -> String {
    match laws(device, op, values) {
        Err(Failure::Mismatch(text)) => text,
        other => panic!("{op:?}: {other:?}"),
    }
}

#[test]
fn text_that_does_not_compile_gives_the_log_with_the_users_line() {
    let wrong = Operator::new("halves", 0u32, |a, b| a + b, "a + b / no_such_name").with_functions("\n\n");
    let broken = Operator::new("broken", 0u32, |a, b| a + b, "f(a, b)")
        .with_functions("uint f(uint a, uint b)\n{\n    return a +;\n}");
    for (name, device) in opencl() {
        let error = device.reduce_by(&[1, 2], &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        assert!(log.contains("no_such_name") && log.contains("operator halves"), "{name}: {log}");
        let error = device.reduce_by(&[1, 2], &broken).unwrap_err();
        let log = error.build_log().unwrap();
        assert!(log.contains("functions of operator broken") && log.contains('3'), "{name}: {log}");
        // The device goes on.
        let sum = Operator::new("sum", 0u32, |a, b| a + b, "a + b");
        assert_eq!(device.reduce_by(&[1, 2], &sum).unwrap(), 3, "{name}");
    }
}

#[test]
fn a_struct_of_another_size_does_not_build() {
    let op =
        Operator::of_struct("short", "Short", "typedef struct { float x; } Short;", [0f32; 2], |a: [f32; 2], _| a, "a");
    for (name, device) in opencl() {
        let error = device.reduce_by(&[[1f32; 2]], &op).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        assert!(log.contains("size_is_not_that_of_the_rust_type"), "{name}: {log}");
    }
}

#[test]
fn elements_have_one_to_64_bytes() {
    let large = Operator::of_struct("large", "Large", "", [0u64; 9], |a: [u64; 9], _| a, "a");
    let error = Device::cpu().reduce_by(&[[1u64; 9]], &large).unwrap_err();
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
    for (name, device) in opencl() {
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
    // Commutative only among equal factors.
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
