//! Every case of the registry on every device of this machine, in its own geometry and in that of a GPU.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::{
    collections::{HashMap, HashSet},
    process::ExitCode,
};

use libtest_mimic::{Arguments, Completion, Trial};
use oclprim::{
    Capabilities, Device, DeviceClass, Tuning,
    internals::runtime::kernel_in,
    tuning::{Stall, Tuned},
};
use oclprim_checks::{
    check::{Case, Level, Spec, Verdict, few_builds},
    registry::{self, A_FORM_OF_EACH_KERNEL},
};

fn forms_of_each_kernel_are_there() {
    for form in A_FORM_OF_EACH_KERNEL {
        let known = registry::specs().iter().any(|spec| spec.cases(Level::Tiny).iter().any(|case| case.form == *form));
        assert!(known, "{form}");
    }
}

/// If a program lacked `STALL`, tests with fault injection would run without a fault.
fn programs_with_status_words_define_the_injected_fault() {
    let (mut waiting, mut count) = (HashMap::new(), 0);
    for (name, caps) in Tuned::samples() {
        for (stall, option) in [(Stall::Silent, "-DSTALL=1"), (Stall::Late, "-DSTALL=2")] {
            for program in registry::programs(&caps.clone().stalled(Some(stall))) {
                let waits = || program.source().contains("\n#ifndef STALL\n");
                let waits = *waiting.entry(program.name).or_insert_with(waits);
                let is_defined = program.options.split(' ').any(|defined| defined == option);
                assert_eq!(is_defined, waits, "{name}: {program:?}");
                count += usize::from(waits);
            }
        }
    }
    assert!(count > 0, "no program has status words");
}

/// A kernel of `cl` and its geometry. A kernel of both geometries has `None`, and must be launched in that of a GPU.
type Kernel = (String, Option<DeviceClass>);

/// Returns true if the device runs the kernel.
type Given = fn(&Capabilities) -> bool;

/// Returns true if work-groups of the device can wait for one another.
fn waits(caps: &Capabilities) -> bool {
    caps.forward_progress && caps.device_fence && caps.int64_atomics
}

/// Kernels that some devices do not run, or that these operations do not launch, with the reason.
const ELSEWHERE: &[(&str, &str, Given)] = &[
    ("combine_pairs", "tries the laws of a user's operator: tests/operators.rs", |_| false),
    ("fill", "runs only on a checker, because drivers fill small buffers themselves", |caps| caps.checker),
    ("partition_totals", PARTITION, partitions),
    ("partition_offsets", PARTITION, partitions),
    ("partition_scatter", PARTITION, partitions),
    ("partition_count", PARTITION, partitions),
    ("scan_look_back", LOOK_BACK, waits),
    ("select_look_back", LOOK_BACK, waits),
    ("select_totals", LOOK_BACK, waits),
    ("sort_histograms", LOOK_BACK, waits),
    ("exact_groups_round", "rounds parts of segments of more than 2^14 elements: tests/exact_groups.rs", |_| false),
    ("statistics_moments", "joins more than 1,024 tiles: tests/reduce_forms.rs", |_| false),
    ("select_unordered", "adds to a 64-bit count", |caps| caps.int64_atomics),
];
const PARTITION: &str = "has barriers in loops whose length comes from memory, which PoCL without sub-groups breaks";
const LOOK_BACK: &str = "runs only with look-back";

fn partitions(caps: &Capabilities) -> bool {
    caps.checker || caps.sub_groups.iter().any(|group| group.backend.is_hardware())
}

/// Asserts that the operations of `A_FORM_OF_EACH_KERNEL` launch each kernel, in its geometry, on each device
/// that runs it.
fn forms_launch_each_kernel() {
    const TEST: &str = "forms_launch_each_kernel";
    if common::variant() {
        return common::skip(TEST, "other settings of a driver have the same kernels");
    }
    let kernels = kernels();
    for (name, device) in common::opencl_devices_or_skip(TEST) {
        let caps = device.capabilities().unwrap().expect("an OpenCL device's");
        // A GPU is tested only in its own geometry.
        let gpu = (caps.class == DeviceClass::Cpu).then(|| (DeviceClass::Gpu, common::gpu()));
        let mut launched = HashSet::new();
        for (class, tuning) in gpu.into_iter().chain([(caps.class, Tuning::default())]) {
            let device = device.with_tuning(tuning).unwrap().profiled().unwrap();
            for spec in registry::specs() {
                let mut cases = spec.cases(Level::Tiny);
                cases.retain(|case| A_FORM_OF_EACH_KERNEL.contains(&&*case.form));
                few_builds(&mut cases, true);
                for case in cases {
                    let what = format!("{name}: {} {}", spec.name(), case.form);
                    if let Verdict::Fail(text) = case.run(&device).verdict {
                        panic!("{what}: {text}");
                    }
                    let timings = device.take_timings().unwrap_or_else(|error| panic!("{what}: {error}"));
                    launched.extend(timings.iter().map(|timing| (class, timing.name)));
                }
            }
        }
        let mut missing = Vec::new();
        for (kernel, class) in &kernels {
            let of_class = |class| launched.contains(&(class, kernel.as_str()));
            let is_launched = of_class(class.unwrap_or(DeviceClass::Gpu));
            let elsewhere = ELSEWHERE.iter().find(|(name, ..)| name == kernel);
            match elsewhere {
                Some((_, reason, given)) if !given(&caps) => {
                    assert!(!is_launched, "{name}: {kernel} is launched, though it {reason}");
                    common::skip(&format!("{name}: {kernel}"), reason);
                }
                _ if !is_launched && class.is_none_or(|class| class == caps.class || class == DeviceClass::Gpu) => {
                    missing.push(format!("{kernel} {}", class.map_or("", DeviceClass::name)));
                }
                _ => {}
            }
        }
        missing.sort();
        assert!(missing.is_empty(), "{name}: no operation launches {missing:?}");
    }
    let known = |name: &&str| kernels.iter().any(|(kernel, _)| kernel == name);
    assert!(ELSEWHERE.iter().all(|(name, ..)| known(name)), "a kernel is no longer there");
}

/// All kernels except those of the self-test. Kernels with one name and geometry, such as the `gather` variants by
/// element size, count as one.
fn kernels() -> HashSet<Kernel> {
    let mut files = HashMap::new();
    for folder in ["", "lib/"] {
        let path = format!("{}/../cl/{folder}", env!("CARGO_MANIFEST_DIR"));
        let paths = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        for path in paths.filter(|path| path.is_file() && !path.ends_with("selftest.cl")) {
            let name = path.file_name().unwrap().to_str().unwrap();
            files.insert(format!("{folder}{name}"), std::fs::read_to_string(&path).unwrap());
        }
    }
    let included: HashSet<_> = files.values().flat_map(|text| text.lines().filter_map(included)).collect();
    let mut kernels = HashSet::new();
    for (name, text) in &files {
        if !included.contains(name.as_str()) {
            add_kernels(text, None, &files, &mut HashSet::new(), &mut kernels);
        }
    }
    kernels
}

fn included(line: &str) -> Option<&str> {
    line.strip_prefix("#include \"")?.strip_suffix('"')
}

/// Adds the kernels of a text that is compiled for `outer`, or for both geometries, and of the files that it includes.
/// Each file counts where it is included first, as in a build. The runtime finds kernels by their first and last line,
/// which must start in the first column.
fn add_kernels<'a>(
    text: &'a str,
    outer: Option<DeviceClass>,
    files: &'a HashMap<String, String>,
    seen: &mut HashSet<&'a str>,
    kernels: &mut HashSet<Kernel>,
) {
    let (cpu, gpu) = (Some(DeviceClass::Cpu), Some(DeviceClass::Gpu));
    let (mut conditions, mut open) = (vec![outer], None);
    for line in text.lines() {
        if line == "}" {
            open = None;
        }
        assert!(
            open.is_none() || !["static ", "INLINED "].iter().any(|start| line.starts_with(start)),
            "{open:?}: {line}"
        );
        let class = conditions.iter().find_map(|class| *class);
        let word = line.split_whitespace().next().unwrap_or_default();
        match word {
            "#if" | "#ifdef" | "#ifndef" => conditions.push(match line {
                "#ifdef DEVICE_CPU" | "#if WG == 1" => cpu,
                "#ifndef DEVICE_CPU" | "#if WG > 1" => gpu,
                _ => None,
            }),
            "#else" => {
                let last = conditions.last_mut().expect("an #if");
                *last = last.map(|class| if class == DeviceClass::Cpu { DeviceClass::Gpu } else { DeviceClass::Cpu });
            }
            "#endif" => drop(conditions.pop()),
            "#include" => {
                let name = included(line).expect("the name of a file");
                if seen.insert(name) {
                    add_kernels(files.get(name).expect("an included file"), class, files, seen, kernels);
                }
            }
            "__kernel" | "KERNEL" => {
                let name = kernel_in(line).expect("a kernel that starts in the first column");
                assert_eq!(open.replace(name), None, "the kernel does not end before {name}");
                kernels.insert((name.to_owned(), class));
            }
            _ => {}
        }
    }
    assert_eq!(open, None, "the kernel does not end");
}

/// The level that `OCLPRIM_TEST_LEVEL` names.
fn level() -> Level {
    match std::env::var("OCLPRIM_TEST_LEVEL").as_deref() {
        Ok("tiny" | "kernels" | "variant") => Level::Tiny,
        Ok("full") => Level::Full,
        _ => Level::Quick,
    }
}

/// The cases of a primitive for a device. In the geometry of a GPU, [`few_builds`] keeps few of them; `first` is true
/// for the first sub-group back end.
fn cases_of(spec: &dyn Spec, gpu: bool, first: bool) -> Vec<Case> {
    let mut cases = spec.cases(if gpu { Level::Tiny } else { level() });
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
    cases
}

/// One case on one device: `[device] primitive::operation::type::shape::data`. A device without the operation ignores
/// the case with a reason.
fn trial(primitive: &str, case: Case, name: &str, device: Device) -> Trial {
    let Case { form, element, shape, data, .. } = &case;
    let title = format!("{primitive}::{form}::{element}::{shape}::{data}");
    Trial::ignorable_test(title, move || match case.run(&device).verdict {
        Verdict::Pass => Ok(Completion::Completed),
        Verdict::Skip(reason) => Ok(Completion::ignored_with(reason)),
        Verdict::Fail(text) => Err(text.into()),
    })
    .with_kind(name)
}

/// Every case on every device. `OCLPRIM_TEST_ONLY` lists names of primitives, separated by commas.
fn trials() -> Vec<Trial> {
    let only = std::env::var("OCLPRIM_TEST_ONLY").ok();
    let wanted = |name| only.as_deref().is_none_or(|only| only.split(',').any(|one| one == name));
    for one in only.iter().flat_map(|only| only.split(',')) {
        assert!(registry::specs().iter().any(|spec| spec.name() == one), "no primitive `{one}`");
    }
    let (mut trials, mut seen) = (Vec::new(), HashSet::new());
    for (name, device) in common::with_sub_groups() {
        let gpu = name.contains("as a GPU");
        let first = !gpu || seen.insert(name.split(" as a GPU").next().map(str::to_owned));
        for spec in registry::specs().iter().filter(|spec| wanted(spec.name())) {
            let cases = cases_of(*spec, gpu, first).into_iter();
            trials.extend(cases.map(|case| trial(spec.name(), case, &name, device.clone())));
        }
    }
    trials
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut all = trials();
    // These tests name the kernels of every primitive.
    if cfg!(feature = "all") {
        let test = |name: &str, run: fn()| {
            Trial::test(name, move || {
                run();
                Ok(())
            })
        };
        all.push(test("forms_of_each_kernel_are_there", forms_of_each_kernel_are_there));
        all.push(test(
            "programs_with_status_words_define_the_injected_fault",
            programs_with_status_words_define_the_injected_fault,
        ));
        all.push(test("forms_launch_each_kernel", forms_launch_each_kernel));
    }
    libtest_mimic::run(&arguments, all).exit_code()
}
