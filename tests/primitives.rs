//! Every case of the registry on every device of this machine, in its own geometry and in that of a GPU.

mod common;

use std::hash::{DefaultHasher, Hash, Hasher};

use oclprim::check::{Case, Level, Verdict, few_builds, registry};

/// Tests that share the cases, so that several processes run them. A form of a type stays whole: its cases share programs.
const PARTS: u64 = 8;

fn part_of(spec: &str, case: &Case) -> u64 {
    let mut hasher = DefaultHasher::new();
    (spec, &case.form, case.element).hash(&mut hasher);
    hasher.finish() % PARTS
}

/// What drivers run with other settings: each kernel, by whatever form.
const A_FORM_OF_EACH_KERNEL: &[&str] = &[
    "sum fixed",
    "arg-max",
    "count",
    "statistics",
    "by vector sum",
    "sum of segments",
    "sum along an axis",
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
    "iota",
];

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
        Ok("tiny" | "variant") => Level::Tiny,
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
            if gpu {
                few_builds(&mut cases, first);
            }
            if common::variant() {
                cases.retain(|case| A_FORM_OF_EACH_KERNEL.contains(&&*case.form));
            }
            for case in cases.into_iter().filter(|case| part_of(spec.name(), case) == part) {
                match case.run(&device).verdict {
                    Verdict::Pass => passed += 1,
                    Verdict::Skip(reason) => {
                        common::log_skip("every_case_on_every_device", &format!("{}: {reason}", spec.name()));
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
        assert!(passed > 0 || !first || common::variant(), "{name}: nothing of part {part} ran");
    }
    let count = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{count} failures, the first:\n{}", failures.join("\n"));
}
