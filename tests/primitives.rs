//! Every case of the registry on every device of this machine, in its own geometry and in that of a GPU.

#![cfg(feature = "checks")]

mod common;

use oclprim::check::{Case, Level, Verdict, few_builds, registry};

/// Tests that share the cases, so that several processes run them. A form of a type stays whole: its cases share programs.
const PARTS: u64 = 8;

/// By a hash (FNV-1a) that stays what it is.
fn part_of(spec: &str, case: &Case) -> u64 {
    let name = format!("{spec} {} {}", case.form, case.element);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
        % PARTS
}

/// What stands for all in short runs: each kernel, by whatever form.
const A_FORM_OF_EACH_KERNEL: &[&str] = &[
    "sum fixed",
    "arg-max",
    "count",
    "statistics",
    "by vector sum",
    "sum of segments",
    "sum along an axis",
    "min-max along an axis",
    "moments along an axis",
    "sum inclusive",
    "segmented sum by key",
    "segmented sum at offsets",
    "segmented max flagged",
    "sum of lines",
    "ids",
    "edges",
    "edges weighted f32",
    "channels even",
    "4-byte elements",
    "batch, 4-byte elements",
    "in place, 4-byte elements",
    "in place by strips, 4-byte elements",
    "cast in f16",
    "copy 4 bytes",
    "fill 4 bytes",
    "gather 4 bytes by u32",
    "scatter 3 bytes by u64",
    "strided copy 1 byte",
    "copy ranges 4 bytes",
    "reverse 4 bytes",
    "selected",
    "parted",
    "run-length encoded",
    "non-trivial runs",
    "adjacent difference",
    "4-byte keys",
    "pairs of 4 and 4 bytes",
    "merge pairs with 4 bytes",
    "merge sort",
    "union",
    "lower bound",
    "first unsorted",
    "top-k of 4-byte keys",
    "top-k with places",
    "keys of ranks",
    "random",
    "random of few",
    "iota",
];

#[test]
fn forms_of_each_kernel_are_there() {
    for form in A_FORM_OF_EACH_KERNEL {
        let known = registry().iter().any(|spec| spec.cases(Level::Tiny).iter().any(|case| case.form == *form));
        assert!(known, "{form}");
    }
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => { $(
        #[test]
        fn $name() {
            every_case_on_every_device($part);
        }
    )* };
}
parts!(part_0 0 part_1 1 part_2 2 part_3 3 part_4 4 part_5 5 part_6 6 part_7 7);

fn every_case_on_every_device(part: u64) {
    let level = match std::env::var("OCLPRIM_TEST_LEVEL").as_deref() {
        Ok("tiny" | "kernels" | "variant") => Level::Tiny,
        Ok("full") => Level::Full,
        _ => Level::Quick,
    };
    let only = std::env::var("OCLPRIM_TEST_ONLY").ok();
    let (mut failures, mut seen) = (Vec::new(), std::collections::HashSet::new());
    for (name, device) in common::with_sub_groups() {
        let gpu = name.contains("as a GPU");
        let first = !gpu || seen.insert(name.split(" as a GPU").next().map(str::to_owned));
        let (mut passed, mut skipped) = (0, std::collections::BTreeMap::new());
        for spec in registry().iter().filter(|spec| only.as_deref().is_none_or(|only| only == spec.name())) {
            let mut cases = spec.cases(if gpu { Level::Tiny } else { level });
            if common::a_form_of_each_kernel() {
                let (each, mut others): (Vec<_>, Vec<_>) =
                    cases.into_iter().partition(|case| A_FORM_OF_EACH_KERNEL.contains(&&*case.form));
                cases = each;
                if !gpu {
                    few_builds(&mut others, true);
                    cases.extend(others);
                }
            }
            if gpu {
                few_builds(&mut cases, first);
            }
            for case in cases.into_iter().filter(|case| part_of(spec.name(), case) == part) {
                match case.run(&device).verdict {
                    Verdict::Pass => passed += 1,
                    Verdict::Skip(reason) => {
                        oclprim::check::log_skip("every_case_on_every_device", &format!("{}: {reason}", spec.name()));
                        *skipped.entry(reason).or_insert(0) += 1;
                    }
                    Verdict::Fail(text) => failures.push(format!(
                        "{name}: {} {} {} {} {}: {text}",
                        spec.name(),
                        case.form,
                        case.element,
                        case.shape,
                        case.data
                    )),
                }
            }
        }
        println!("{name}: {passed} passed, skipped: {skipped:?}");
        let some = passed > 0 || !first || common::a_form_of_each_kernel() || only.is_some();
        assert!(some, "{name}: nothing of part {part} ran");
    }
    let count = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{count} failures, the first:\n{}", failures.join("\n"));
}
