//! Every case of the registry on every device of this machine, in its own geometry and in that of a GPU.

mod common;

use oclprim::{
    ElementType,
    check::{Case, Level, Verdict, registry},
};

/// Every build costs a driver up to a second, and a sub-group back end knows only the size of what it exchanges: beside
/// the one in local memory, which runs everything, each back end takes one type of each size.
fn tried(case: &Case, device: &str) -> bool {
    let sizes = [ElementType::U8, ElementType::F16, ElementType::F32, ElementType::I64];
    let few = [ElementType::F32, ElementType::I64];
    if common::variant() {
        return few.contains(&case.element);
    }
    !device.contains("as a GPU") || device.ends_with("local") || sizes.contains(&case.element)
}

#[test]
fn every_case_on_every_device() {
    let level = match std::env::var("OCLPRIM_TEST_LEVEL").as_deref() {
        Ok("tiny" | "variant") => Level::Tiny,
        Ok("full") => Level::Full,
        _ => Level::Quick,
    };
    let only = std::env::var("OCLPRIM_TEST_ONLY").ok();
    let mut failures = Vec::new();
    for (name, device) in common::with_sub_groups() {
        let level = if name.contains("as a GPU") { Level::Tiny } else { level };
        let (mut passed, mut skipped) = (0, std::collections::BTreeMap::new());
        for spec in registry().iter().filter(|spec| only.as_deref().is_none_or(|only| only == spec.name())) {
            for case in spec.cases(level).into_iter().filter(|case| tried(case, &name)) {
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
        assert!(passed > 0, "{name}: nothing ran");
    }
    let count = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{count} failures, the first:\n{}", failures.join("\n"));
}
