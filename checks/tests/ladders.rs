//! Every step of every ladder on every OpenCL device of this machine, verified at the edges of its work-groups.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use oclprim::{Device, ElementType, ErrorKind, Result};
use oclprim_checks::{
    check::Failure,
    ladder::{Distribution, Ladder, Request, Rung},
    registry,
};

/// Resets, runs and verifies twice: the second run starts from the memory that the first one wrote.
fn run_step(step: &Rung, device: &Device) -> Result<(), Failure> {
    let mut case = (step.prepare)(device)?;
    for _ in 0..2 {
        case.reset()?;
        case.run()?;
        case.verify()?;
    }
    Ok(())
}

fn request(change: impl FnOnce(&mut Request)) -> Request {
    let mut request = Request::default();
    change(&mut request);
    request
}

/// Element types for steps that move elements. Their kernels differ only in the size of the element.
fn types(tiny: bool) -> &'static [ElementType] {
    let all = &[ElementType::I32, ElementType::U8, ElementType::F32, ElementType::F64];
    if tiny { &all[..2] } else { all }
}

/// The requests for a ladder, with work-groups of at most `most` work-items; fewer requests if `tiny`.
fn requests(ladder: &dyn Ladder, tiny: bool, most: usize) -> Vec<Request> {
    let mut requests = Vec::new();
    match ladder.name() {
        "reduce" => {
            // Most of the time goes into compiling a program and its kernels for each work-group size and type.
            let all = [
                (None, ElementType::I32),
                (Some(64), ElementType::F32),
                // This work-group is large enough for every step of the trees.
                (Some(128), ElementType::I64),
                (Some(256), ElementType::F64),
                (Some(2), ElementType::U8),
                (Some(32), ElementType::I16),
            ];
            let few = if common::variant() { &all[2..3] } else { &all[1..3] };
            for (block, element) in if tiny { few } else { &all[..] } {
                let block = &block.map(|block| block.min(most));
                let b = block.unwrap_or(512);
                let mut sizes = vec![1, b - 1, b + 1, 8 * b - 1];
                if !tiny {
                    sizes.extend([b, 2 * b + 1, 4 * b - 1, 8 * b, 8 * b + 1]);
                    sizes.extend([2, 3, 127, 128, 129, 4 * b + 1, 513, 1000, 1025, 1026, 1027, 4099, 65_537, 300_007]);
                }
                for n in sizes {
                    requests.push(request(|r| (r.n, r.block, r.element) = (n, *block, *element)));
                }
            }
        }
        "transpose" => {
            let mut shapes = vec![(1, 1), (1, 33), (31, 2), (33, 65), (32, 32)];
            if !tiny {
                shapes.extend([
                    (32, 64),
                    (64, 32),
                    (127, 129),
                    (1, 1000),
                    (1000, 1),
                    (96, 160),
                    (513, 257),
                    (1031, 67),
                ]);
            }
            for &element in types(tiny) {
                for &shape in &shapes {
                    requests.push(request(|r| (r.n, r.shape, r.element) = (shape.0 * shape.1, shape, element)));
                }
            }
        }
        "histogram" => {
            let sizes: &[usize] =
                if tiny { &[1, 5000] } else { &[1, 255, 256, 257, 513, 1025, 4099, 65_537, 1_000_003] };
            let bins: &[usize] = if tiny { &[256] } else { &[1, 7, 256, 1000, 1025, 4096, 5 << 20] };
            for &n in sizes {
                for &bins in bins {
                    // Millions of bins or of samples take long, so each occurs in few requests.
                    if (bins > 1 << 20 && n != 65_537) || (n > 65_537 && bins != 256) {
                        continue;
                    }
                    let distributions = if n == 1 { &Distribution::ALL[..1] } else { &Distribution::ALL[..] };
                    for &distribution in distributions {
                        requests.push(request(|r| (r.n, r.bins, r.distribution) = (n, bins, distribution)));
                    }
                }
            }
        }
        _ => {
            let mut sizes = vec![1, 2, 3, 5, 255, 256, 257, 513, 1000, 1025, 1026, 1027];
            if !tiny {
                sizes.extend([1537, 2049, 2050, 2051, 4099, 65_537, 1_000_003]);
            }
            for &element in types(tiny) {
                for &n in &sizes {
                    requests.push(request(|r| (r.n, r.element) = (n, element)));
                }
            }
        }
    }
    requests
}

/// Runs every step of a ladder on every device, for each of its requests.
fn run_everywhere(name: &str) {
    let ladder = registry::ladders().iter().find(|ladder| ladder.name() == name).expect("the registry has it");
    let tiny = common::tiny();
    let mut failures = Vec::new();
    for (info, device) in common::devices() {
        let started = std::time::Instant::now();
        let (mut ran, mut unavailable) = (0, BTreeMap::new());
        let most = device.capabilities().unwrap().map_or(usize::MAX, |caps| caps.max_work_group);
        for request in requests(*ladder, tiny, most) {
            let what = format!(
                "{info}: {} n {} shape {:?} block {:?} {} bins {} {}",
                ladder.name(),
                request.n,
                request.shape,
                request.block,
                request.element,
                request.bins,
                request.distribution.name()
            );
            let steps = match ladder.rungs(&request, &device) {
                Ok(steps) => steps,
                // The device is too small for this work-group size.
                Err(error) if error.kind() == ErrorKind::InvalidInput && request.block.is_some() => {
                    *unavailable.entry(error.to_string()).or_insert(0) += 1;
                    continue;
                }
                Err(error) => {
                    failures.push(format!("{what}: {error}"));
                    continue;
                }
            };
            for step in steps {
                if let Some(reason) = step.unavailable {
                    *unavailable.entry(format!("{}: {reason}", step.name)).or_insert(0) += 1;
                    continue;
                }
                match run_step(&step, &device) {
                    Ok(()) => ran += 1,
                    Err(Failure::Mismatch(text)) => failures.push(format!("{what}: {}: {text}", step.name)),
                    Err(Failure::Error(error)) => failures.push(format!("{what}: {}: {error:?}", step.name)),
                }
            }
        }
        assert!(ran > 0, "{info}: no step of {name} ran: {unavailable:#?}");
        for reason in unavailable.keys().filter(|_| !device.is_cpu()) {
            common::skip(&format!("{info}: {name} ladder"), reason);
        }
        println!("{info}: {}: {ran} steps in {:.1?}, unavailable: {unavailable:#?}", ladder.name(), started.elapsed());
    }
    let count = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{count} failures, the first:\n{}", failures.join("\n"));
}

macro_rules! ladders {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run_everywhere(stringify!($name));
            }
        )*

        #[test]
        fn each_ladder_has_its_test() {
            let names: Vec<_> = registry::ladders().iter().map(|ladder| ladder.name()).collect();
            assert_eq!(names, [$( stringify!($name) ),*]);
        }
    };
}
ladders! { reduce transpose histogram copy }
