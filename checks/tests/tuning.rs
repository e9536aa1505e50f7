//! Every value of every tuning parameter gives the same results, and only valid rows of the tuning file are used.

#![cfg(feature = "opencl")]

#[path = "../../tests/common/mod.rs"]
mod common;

use std::fs;

use oclprim::{
    Buffer, Device, ErrorKind, Order, Philox, SetOp, Source, Top, Tuning,
    op::{Difference, Map, Sum},
    sort::Merging,
    tuning::{Primitive, Row, SizeClass, TuningFile, parameters},
};
use oclprim_checks::{
    check::{Level, Verdict, few_builds},
    registry,
};

/// The name of the spec for a primitive with tuning parameters, and the operations whose kernels use the parameters.
fn forms(primitive: Primitive) -> (&'static str, &'static [&'static str]) {
    match primitive {
        Primitive::Reduce => {
            let forms = &[
                "sum fixed",
                "arg-max",
                "count",
                "statistics",
                "by vector sum",
                "sum of segments",
                "sum along an axis",
                "min-max along an axis",
                "moments along an axis",
            ];
            ("reduce", forms)
        }
        Primitive::Scan => ("scan", &["sum inclusive"]),
        Primitive::Copy => ("copy", &["copy 4 bytes", "copy 1 byte"]),
        Primitive::CopyRanges => ("copy", &["copy ranges 4 bytes", "strided copy 1 byte"]),
        Primitive::Gather => ("copy", &["gather 4 bytes by u32", "scatter 3 bytes by u64"]),
        Primitive::Reverse => ("copy", &["reverse 4 bytes"]),
        Primitive::Histogram => ("histogram", &["ids", "edges", "edges weighted f32", "channels even"]),
        Primitive::Transpose => {
            ("transpose", &["4-byte elements", "batch, 4-byte elements", "in place, 4-byte elements", "cast in f16"])
        }
        Primitive::Permute => ("permute", &["4-byte elements"]),
        Primitive::Sort => ("sort", &["4-byte keys", "pairs of 4 and 4 bytes"]),
        Primitive::Merge => ("merge", &["merge", "merge pairs with 4 bytes", "union", "lower bound"]),
        Primitive::Select => ("select", &["selected", "partitioned", "unique", "adjacent difference"]),
        Primitive::TopK => ("topk", &["top-k with indices", "keys at given ranks"]),
        Primitive::Random => ("random", &["random", "random of few"]),
        Primitive::Iota => ("iota", &["iota"]),
        // No kernel depends on how slices move; `tests/transfers.rs` has the tests.
        Primitive::Transfer => ("copy", &["copy 4 bytes"]),
        _ => unreachable!("{primitive}"),
    }
}

macro_rules! primitives {
    ($($name:ident $primitive:ident)*) => { $(
        #[test]
        fn $name() {
            every_value(Primitive::$primitive);
        }
    )* };
}
primitives!(reduce Reduce scan Scan copy Copy copy_ranges CopyRanges gather Gather reverse Reverse
    histogram Histogram transpose Transpose permute Permute sort Sort merge Merge select Select topk TopK
    random Random iota Iota);

fn every_value(primitive: Primitive) {
    if common::variant() {
        return common::skip(primitive.name(), "other settings of a driver do not affect the values of parameters");
    }
    let (spec, wanted) = forms(primitive);
    let spec = registry::specs().iter().find(|other| other.name() == spec).expect("the registry has it");
    let mut failures = Vec::new();
    for (name, tuning) in [("itself", Tuning::default()), ("a GPU", common::gpu())] {
        for (device_name, plain) in common::opencl_devices_or_skip(primitive.name()) {
            let caps = plain.with_tuning(tuning.clone()).unwrap().capabilities().unwrap().expect("an OpenCL device");
            let mut cases = spec.cases(Level::Tiny);
            few_builds(&mut cases, true);
            cases.retain(|case| wanted.contains(&&*case.form));
            for form in wanted {
                assert!(cases.iter().any(|case| case.form == *form), "{primitive} has no operation {form}");
            }
            let (mut passed, parameters) = (0, parameters(primitive, &caps, 4));
            if parameters.is_empty() {
                common::skip(&format!("{primitive}, {device_name} as {name}"), "it has no parameters");
            }
            for parameter in parameters {
                let others = parameter.values.iter().filter(|&&value| value != parameter.usual);
                // If an interpreter runs the kernels, or if time is short, every other value is left out.
                let step = if common::tiny() { 2 } else { 1 };
                for &value in others.step_by(step) {
                    let tuning = tuning.clone().without_file().set(primitive, parameter.name, value);
                    let device = plain.with_tuning(tuning).unwrap();
                    assert_eq!(device.tuned().unwrap(), 1, "{primitive} {} {value}", parameter.name);
                    for case in &cases {
                        match case.run(&device).verdict {
                            Verdict::Pass => passed += 1,
                            Verdict::Skip(_) => {}
                            Verdict::Fail(text) => failures.push(format!(
                                "{device_name} as {name}, {} {value}: {} {} {} {}: {text}",
                                parameter.name, case.form, case.element, case.shape, case.data
                            )),
                        }
                    }
                }
            }
            println!("{device_name} as {name}: {passed} passed");
        }
    }
    let count = failures.len();
    failures.truncate(10);
    assert!(failures.is_empty(), "{count} failures, the first:\n{}", failures.join("\n"));
}

/// Changes only the largest number of work-groups, on inputs of many tiles.
#[test]
fn max_groups_does_not_change_results() {
    let x: Vec<f32> = (0..300_007).map(|i| (i as f32).sin()).collect();
    let want = Device::cpu().reduce(&x, Sum).unwrap();
    let scanned = Device::cpu().scan(&x, Sum).unwrap().to_vec().unwrap();
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let Some(caps) = device.capabilities().unwrap() else { continue };
        for primitive in [Primitive::Reduce, Primitive::Scan] {
            for parameter in parameters(primitive, &caps, 4).iter().filter(|it| it.name == "max_groups") {
                for value in parameter.values.iter() {
                    let set = Tuning::default().class(caps.class).set(primitive, "max_groups", *value);
                    let device = device.with_tuning(set).unwrap();
                    assert_eq!(device.reduce(&x, Sum).unwrap().to_bits(), want.to_bits(), "{name}: {value}");
                    let got = device.scan(&x, Sum).unwrap().to_vec().unwrap();
                    assert!(got == scanned, "{name}: {value}");
                }
            }
        }
    }
}

/// Results of a primitive on many elements. With few elements, one tile or work-group would do all the work.
fn made(device: &Device, primitive: Primitive, x: &[u32], sorted: [&[u32]; 2]) -> Vec<Vec<u32>> {
    let (odd, up) = (Map::new(|x: u32| x & 1 == 1, "x & 1"), Order::ascending());
    let all = |buffer: oclprim::Result<Buffer<u32>>| buffer.unwrap().to_vec().unwrap();
    match primitive {
        Primitive::Merge => {
            let [a, b] = sorted;
            vec![
                all(device.merge(a, b, &up)),
                all(device.sort(x, Merging(&up))),
                all(device.set_operation(a, b, SetOp::Union, &up)),
            ]
        }
        Primitive::Select => vec![
            all(device.select(x, &odd)),
            all(device.partition(x, &odd).map(|(partitioned, _)| partitioned)),
            all(device.adjacent_difference(x, Difference)),
        ],
        Primitive::TopK => {
            let (best, indices) = device.top_k(x.indexed::<u32>(), Top::largest(1000).sorted()).unwrap();
            vec![all(Ok(best)), all(Ok(indices)), all(device.top_k(x, Top::smallest(100)))]
        }
        Primitive::Random => {
            vec![all(device.random(x.len(), Philox::new(5))), all(device.random(x.len(), Philox::new(6).within(1..=6)))]
        }
        Primitive::Iota => vec![all(device.iota(x.len(), 3, 7))],
        _ => unreachable!("{primitive}"),
    }
}

#[test]
fn parameters_do_not_change_results_of_many_tiles() {
    if common::tiny() {
        return common::skip("parameters_do_not_change_results_of_many_tiles", "inputs of many tiles");
    }
    let x: Vec<u32> = (0..300_007u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
    let (a, b) = x.split_at(x.len() / 3);
    let sorted = [a, b].map(|part| Device::cpu().sort(part, Order::ascending()).unwrap().to_vec().unwrap());
    for primitive in [Primitive::Merge, Primitive::Select, Primitive::TopK, Primitive::Random, Primitive::Iota] {
        let made = |device: &Device| made(device, primitive, &x, [&sorted[0], &sorted[1]]);
        let want = made(&Device::cpu());
        for (name, tuning) in [("itself", Tuning::default()), ("a GPU", common::gpu())] {
            for (device_name, plain) in common::opencl_devices_or_skip(primitive.name()) {
                let caps =
                    plain.with_tuning(tuning.clone()).unwrap().capabilities().unwrap().expect("an OpenCL device");
                for parameter in parameters(primitive, &caps, 4) {
                    for &value in parameter.values.iter().filter(|&&value| value != parameter.usual) {
                        let tuning = tuning.clone().without_file().set(primitive, parameter.name, value);
                        let got = made(&plain.with_tuning(tuning).unwrap());
                        assert!(got == want, "{device_name} as {name}: {primitive}, {} {value}", parameter.name);
                    }
                }
            }
        }
    }
}

#[test]
fn unknown_parameters_and_values_are_refused() {
    for (name, device) in common::opencl_devices_or_skip("unknown_parameters_and_values_are_refused") {
        for (parameter, value) in [("colour", 8), ("max_groups", 7_919)] {
            let error = device.with_tuning(Tuning::default().set(Primitive::Reduce, parameter, value)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
            assert_eq!(error.to_string().lines().count(), 1, "{name}");
        }
    }
}

/// A process reads the file once, so each file needs a process of its own.
#[test]
fn only_valid_rows_of_the_tuning_file_are_used() {
    const NAME: &str = "only_valid_rows_of_the_tuning_file_are_used";
    if common::part().is_some() {
        let counts = common::opencl_devices().into_iter().map(|(_, device)| {
            assert_eq!(device.reduce(&vec![1u32; 1 << 18], Sum).unwrap(), 1 << 18);
            let other = device.with_tuning(common::gpu()).unwrap();
            assert_eq!(other.tuned().unwrap(), 0);
            device.tuned().unwrap().to_string()
        });
        return common::answer(counts.collect::<Vec<_>>().join(" "));
    }
    let devices = common::opencl_devices_or_skip(NAME);
    let Some((_, device)) = devices.first() else { return };
    let caps = device.capabilities().unwrap().expect("an OpenCL device");
    let Some(parameter) = parameters(Primitive::Reduce, &caps, 4).into_iter().find(|it| it.name == "max_groups") else {
        return;
    };
    let value = *parameter.values.iter().find(|&&value| value != parameter.usual).expect("another value");
    let row = Row::new(&device.info(), Primitive::Reduce, 4, SizeClass::Medium, [("max_groups", value)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.json");
    let counts = |change: &dyn Fn(&mut Row)| {
        let (mut file, mut row) = (TuningFile::default(), row.clone());
        change(&mut row);
        file.put(&row);
        file.write(&path).unwrap();
        read(NAME, path.as_os_str())
    };
    let count = |text: &str| text.split(' ').next().map(str::to_owned);
    assert_eq!(count(&counts(&|_| {})).as_deref(), Some("1"));
    assert_eq!(count(&counts(&|row| row.driver += ".1")).as_deref(), Some("0"));
    assert_eq!(count(&counts(&|row| row.oclprim = "0.0.1".into())).as_deref(), Some("0"));
    assert_eq!(count(&counts(&|row| row.chosen = [("max_groups".into(), 7_919)].into())).as_deref(), Some("0"));
    for damaged in ["", "{\"format\": 1, \"rows\": [3", "\u{0}", "[]"] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(count(&read(NAME, path.as_os_str())).as_deref(), Some("0"), "{damaged}");
    }
    assert_eq!(count(&read(NAME, folder.path().join("none").as_os_str())).as_deref(), Some("0"));
    assert_eq!(count(&read(NAME, folder.path().as_os_str())).as_deref(), Some("0"));
    assert_eq!(count(&read(NAME, "".as_ref())).as_deref(), Some("0"));
}

/// The value of `Device::tuned` for each OpenCL device, as text, in a process that reads this tuning file.
fn read(test: &str, path: &std::ffi::OsStr) -> String {
    common::run(common::child(test, "child").env("OCLPRIM_TUNING", path)).0
}
