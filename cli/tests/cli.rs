//! The program, run as a user runs it.

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "common/program.rs"]
mod program;

use std::fs;

use npyz::{AutoSerialize, Serialize};
use program::{Folder, devices, load, oclprim, program, refuses, stderr, stdout, succeeds};
use serde_json::Value;

#[test]
fn every_subcommand_has_help_with_an_example() {
    let folder = Folder::new();
    folder.save("samples.npy", &[5], &[1.0f32, 5.0, 2.0, 0.5, 4.0]);
    folder.save("matrix.npy", &[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    folder.save("labels.npy", &[4], &[9i64, 0, 3, 3]);
    folder.save("heights.npy", &[4], &[1.5f64, 1.62, 1.8, 2.0]);
    folder.save("lengths.npy", &[3], &[3u32, 0, 2]);
    folder.save("levels.npy", &[4], &[-32768i16, -1, 0, 32767]);
    folder.save("edges.npy", &[3], &[1.5f64, 1.75, 2.0]);
    folder.save("weights.npy", &[4], &[1.0f32, 2.0, 3.0, 4.0]);
    folder.save("volume.npy", &[2, 1, 3], &[1u8, 2, 3, 4, 5, 6]);
    folder.save("bytes.npy", &[3], &[200u8, 100, 255]);
    folder.save("flags.npy", &[3], &[true, false, true]);
    folder.save("offsets.npy", &[4], &[0i64, 2, 2, 5]);
    folder.save("order.npy", &[3], &[4u32, 0, 1]);
    folder.save("targets.npy", &[3], &[999u32, 0, 7]);
    folder.save("sorted.npy", &[3], &[0.5f32, 1.0, 2.5]);
    folder.save("more.npy", &[2], &[1.0f32, 3.0]);
    folder.save("picked.npy", &[3], &[5i16, 6, 7]);
    folder.save("others.npy", &[5], &[0.5f32, 1.0, -1.0, 2.0, 3.0]);
    folder.save("signal.npy", &[2], &[num_complex::Complex::new(1.0f32, 2.0); 2]);
    folder.save("pixels.npy", &[1, 2, 3], &[255u8, 0, 10, 200, 1, 20]);
    folder.save("scores.npy", &[128], &[0.5f32; 128]);
    folder.save("distances.npy", &[12], &[2.5f64; 12]);
    folder.save("colours.npy", &[10], &[[1u8, 2, 3, 4]; 10].map(u32::from_le_bytes));
    for words in [
        &[][..],
        &["devices"],
        &["check"],
        &["bench"],
        &["ladder"],
        &["tune"],
        &["report"],
        &["run"],
        &["completions"],
        &["warm"],
        &["cache"],
    ] {
        let text = succeeds(&[words, &["--help"]].concat());
        assert!(text.contains("Usage: oclprim") && text.contains("oclprim "), "{words:?}: {text}");
        assert!(text.contains("Example"), "{words:?}: {text}");
    }
    for primitive in [
        "reduce",
        "count",
        "statistics",
        "scan",
        "sort",
        "select",
        "unique",
        "rle",
        "topk",
        "quantile",
        "random",
        "iota",
        "transpose",
        "permute",
        "histogram",
        "copy",
        "reverse",
        "gather",
        "scatter",
        "merge",
        "search",
    ] {
        let text = succeeds(&["run", primitive, "--help"]);
        assert!(text.contains("--verify"), "{text}");
        let (_, examples) = text.split_once("Examples:\n").expect("examples");
        let lines: Vec<_> = examples.lines().collect();
        assert!(lines.len() > 1, "{text}");
        for line in lines {
            let words = line.strip_prefix("  oclprim ").unwrap_or_else(|| panic!("{primitive}: {line}"));
            let mut words: Vec<_> = words.split(' ').collect();
            assert_eq!(words[..2], ["run", primitive]);
            // The example's device need not exist on this machine.
            if let Some(at) = words.iter().position(|word| *word == "--device") {
                words[at + 1] = "cpu";
            }
            let output = program(&words).current_dir(folder.0.path()).output().expect("the program starts");
            assert!(output.status.success(), "{line}: {}", stderr(&output));
            assert_eq!(stderr(&output), "", "{line}");
        }
    }
    assert!(succeeds(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &["dance"][..],
        &[],
        &["ladder", "stairs"],
        &["bench", "--n", "many"],
        &["tune", "dance"],
        &["check", "--only", "x"],
        &["check", "--tiny", "--form", "no such form"],
    ] {
        assert_eq!(oclprim(arguments).status.code(), Some(2), "{arguments:?}");
    }
    for arguments in [["bench", "--n", "2^70"], ["ladder", "copy", "--n=2^70"]] {
        let text = stderr(&oclprim(&arguments));
        assert!(text.contains("'2^70' for '--n <N>': too large: expected at most 2^48"), "{text}");
    }
    assert!(refuses(&["bench", "--device", "no such device"]).contains("0: rayon / CPU"));
}

#[test]
fn the_option_each_kernel_runs_fewer_checks() {
    let passed = |more: &[&str]| {
        let all = [&["check", "--tiny", "--device", "cpu", "--only", "reduce", "--json"][..], more].concat();
        let report: Value = serde_json::from_str(&succeeds(&all)).expect("JSON");
        report["passed"].as_u64().expect("a number")
    };
    let few = passed(&["--each-kernel"]);
    assert!(0 < few && few < passed(&[]), "{few}");
}

#[test]
fn devices_are_listed() {
    let devices: Value = serde_json::from_str(&succeeds(&["devices", "--json"])).expect("JSON");
    let devices = devices.as_array().expect("a list");
    assert_eq!(devices[0]["platform"], "rayon");
    for device in devices {
        assert!(device["error"].is_null(), "{device}");
        assert_eq!(device["capabilities"].is_object(), device["opencl"].as_bool().expect("a flag"), "{device}");
    }
    let text = succeeds(&["devices"]);
    assert!(text.starts_with("0: rayon / CPU\n"), "{text}");
    assert_eq!(text.contains("No OpenCL device"), devices.len() == 1, "{text}");
    assert!(!text.contains('\x1b'), "colours outside of a terminal");
}

#[test]
fn check_prints_its_counts() {
    let text = succeeds(&["check", "--tiny", "--device", "cpu"]);
    let last = text.lines().last().expect("a line");
    assert!(last.ends_with(" passed, 0 failed, 0 skipped"), "{text}");
    let passed: usize = last.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(passed > 100, "{last}");
    let report: Value =
        serde_json::from_str(&succeeds(&["check", "--tiny", "--device", "cpu", "--only", "copy", "--json"]))
            .expect("JSON");
    assert_eq!(report["failed"], 0);
    assert_eq!(report["passed"], report["devices"][0]["passed"]);
}

#[test]
fn check_passes_on_every_device() {
    let text = succeeds(&["check", "--tiny", "--only", "iota"]);
    assert!(text.lines().last().is_some_and(|line| line.contains(" passed, 0 failed, ")), "{text}");
}

#[test]
fn bench_writes_json_and_markdown() {
    let folder = Folder::new();
    let json = folder.path("bench.json");
    let json_name = json.to_str().expect("UTF-8");
    let text = succeeds(&[
        "bench",
        "reduce",
        "copy",
        "--device",
        "cpu",
        "--n",
        "2^10,1000",
        "--type",
        "i32,u32",
        "--runs",
        "3",
        "--hot",
        "--markdown",
        "--json",
        json_name,
    ]);
    assert!(text.contains("| reduce sum") && text.contains("| 2^10"), "{text}");
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a file")).expect("JSON");
    for line in report["lines"].as_array().expect("a list") {
        assert!(line["gb_per_s"].as_f64().is_some_and(|value| value > 0.0), "{line}");
        assert_eq!(line["wrong"], false, "{line}");
        assert!(line["wall"]["median"].as_f64() >= line["sample"]["median"].as_f64(), "{line}");
    }
}

#[test]
fn bench_measures_single_rows() {
    let rows = ["--row", "scan sum inclusive u32 2^10", "--row", "copy aligned u32 1000", "--row", "copy fast u32 7"];
    let common = ["bench", "--device", "cpu", "--runs", "1", "--hot"];
    let report = succeeds(&[&common[..], &rows, &["--json", "-"]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let lines = report["lines"].as_array().expect("a list");
    let measured: Vec<_> = lines.iter().map(|line| (line["form"].as_str().expect("a name"), &line["n"])).collect();
    assert_eq!(measured, [("sum inclusive", &1024.into()), ("aligned", &1000.into())]);
    for (row, why) in
        [("sum", "expected a primitive"), ("sum x 2", "type `x`"), ("copy aligned u32 x", "such as 1000000")]
    {
        let output = oclprim(&[&common[..], &["--row", row]].concat());
        assert!(!output.status.success() && stderr(&output).contains(why), "{}", stderr(&output));
    }
    assert!(!oclprim(&[&common[..], &["copy"], &rows[..2]].concat()).status.success());
}

#[test]
fn bench_compares_with_an_earlier_run() {
    let folder = Folder::new();
    let (old, slow) = (folder.path("old.json"), folder.path("slow.json"));
    let (old_name, slow_name) = (old.to_str().expect("UTF-8"), slow.to_str().expect("UTF-8"));
    let common = ["bench", "reduce", "--device", "cpu", "--type", "i32", "--form", "sum", "--runs", "3", "--hot"];
    succeeds(&[&common[..], &["--n", "2^10", "--json", old_name]].concat());
    let mut report: Value = serde_json::from_slice(&fs::read(&old).expect("a file")).expect("JSON");
    let sample = &mut report["lines"][0]["sample"];
    sample["median"] = (1000.0 * sample["median"].as_f64().expect("a number")).into();
    sample["spread"] = 0.0.into();
    fs::write(&slow, report.to_string()).expect("a file");
    let text = succeeds(&[&common[..], &["--n", "2^10,2^11", "--compare", slow_name]].concat());
    assert!(text.contains("x, faster") && text.contains(" new"), "{text}");
    // Times of another device or another cache state cannot be compared.
    let cold = [&common[..common.len() - 1], &["--n", "2^10", "--compare", slow_name]].concat();
    assert!(refuses(&cold).contains("measured with --hot, but this is without --hot"));
    report["device"]["name"] = "GPU".into();
    fs::write(&slow, report.to_string()).expect("a file");
    let error = refuses(&[&common[..], &["--compare", slow_name]].concat());
    assert!(error.contains("measured on rayon / GPU, but this is rayon / CPU"), "{error}");
    fs::write(&slow, "{}").expect("a file");
    assert!(refuses(&[&common[..], &["--compare", slow_name]].concat()).contains("not a report"));
}

/// Returns true if the first OpenCL device can be tuned. Times of an interpreter are meaningless.
fn tunable() -> bool {
    let devices: Value = serde_json::from_str(&succeeds(&["devices", "--json"])).expect("JSON");
    let first = devices.as_array().expect("a list").iter().find(|device| device["opencl"] == true).cloned();
    first.is_some_and(|device| device["capabilities"]["checker"] == false)
}

#[test]
fn tune_measures_and_writes_nothing_in_a_dry_run() {
    assert!(refuses(&["tune", "--device", "cpu", "--dry-run"]).contains("no geometry to tune: choose --device opencl"));
    if !tunable() {
        return common::skip("tune", "no OpenCL device, or the first is a checker such as Oclgrind");
    }
    let folder = Folder::new();
    let path = folder.path("tuning.json");
    let common = ["tune", "copy", "--device", "opencl", "--type", "u8", "--seconds", "1", "--hot", "--n", "2^14"];
    let tune = |more: &[&str]| {
        let mut command = program(&[&common[..], more].concat());
        let output = command.env("OCLPRIM_TUNING", &path).output().expect("the program starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let report: Value = serde_json::from_str(&tune(&["--dry-run", "--json", "-"])).expect("JSON");
    let lines = report["lines"].as_array().expect("a list");
    assert_eq!(lines.len(), 1, "{report}");
    assert_eq!((&lines[0]["primitive"], &lines[0]["size"]), (&"copy".into(), &"small".into()));
    assert_eq!((&lines[0]["wrong"], &lines[0]["element_bytes"]), (&false.into(), &1.into()));
    assert!(!lines[0]["tried"].as_array().expect("a list").is_empty(), "{report}");
    assert!(!path.exists(), "a dry run wrote a file");
    let text = tune(&["--verbose"]);
    assert!(text.contains("copy of 1 bytes, small:") && text.contains("tuning.json"), "{text}");
    // A search that runs out of time and keeps no variant writes no file, so the file can be absent.
    if let Ok(bytes) = fs::read(&path) {
        assert_eq!(serde_json::from_slice::<Value>(&bytes).expect("JSON")["format"], 1);
    }
    // The rows of an earlier search survive a search without time and a failing one.
    for (size, words) in [("small", ["--seconds", "0", "--n", "2^14"]), ("large", ["--seconds", "1", "--n", "2^45"])] {
        let mut row =
            serde_json::json!({"oclprim": env!("CARGO_PKG_VERSION"), "primitive": "copy", "element_bytes": 1});
        let info = &report["device"];
        for key in ["platform", "driver", "version", "compute_units"] {
            row[key] = info[key].clone();
        }
        (row["device"], row["size"]) = (info["name"].clone(), size.into());
        row["chosen"] = serde_json::json!({"words": 2});
        let earlier = serde_json::json!({"format": 1, "rows": [row]});
        fs::write(&path, earlier.to_string()).expect("a file");
        let arguments = [&["tune", "copy", "--device", "opencl", "--type", "u8", "--hot"][..], &words].concat();
        let output = program(&arguments).env("OCLPRIM_TUNING", &path).output().expect("the program starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let file: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        assert_eq!(file, earlier, "{}", stdout(&output));
    }
    // A file of another format is never overwritten.
    fs::write(&path, "notes").expect("a file");
    let output = program(&common).env("OCLPRIM_TUNING", &path).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is not a tuning file"), "{}", stderr(&output));
    let twice = refuses(&["tune", "copy", "--device", "opencl", "--type", "u8", "--n", "1,2", "--dry-run"]);
    assert!(twice.contains("are both small"), "{twice}");
}

/// Operations that the device lacks, such as those on f64, do not end the search.
#[test]
fn tune_skips_what_the_device_lacks() {
    if !tunable() {
        return common::skip("tune", "no OpenCL device, or the first is a checker such as Oclgrind");
    }
    let arguments = ["tune", "reduce", "--device", "opencl", "--type", "i64", "--seconds", "0", "--hot", "--n", "2^12"];
    let report = succeeds(&[&arguments[..], &["--dry-run", "--json", "-"]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let lines = report["lines"].as_array().expect("a list");
    assert_eq!(lines.len(), 1, "{report}");
    assert_eq!((&lines[0]["note"], &lines[0]["ended"]), (&"incomplete after 0 s".into(), &false.into()), "{report}");
}

#[test]
fn ladders_run_and_are_drawn() {
    let cpu = refuses(&["ladder", "copy", "--device", "cpu"]);
    assert_eq!(cpu, "error: ladders are OpenCL kernels, which rayon / CPU does not run: choose --device opencl\n");
    if devices().len() == 1 {
        assert_eq!(refuses(&["ladder", "copy"]), cpu);
        return common::skip("ladders_run_and_are_drawn", "no OpenCL device");
    }
    let folder = Folder::new();
    for (ladder, size) in [
        ("reduce", &["--n", "2000"][..]),
        ("histogram", &["--n", "2000", "--distribution", "zipf"]),
        ("transpose", &["--rows", "70", "--cols", "40"]),
        ("copy", &["--n", "2000"]),
    ] {
        // checks/tests/ladders.rs runs all ladders.
        if ladder != "copy" && common::tiny() {
            continue;
        }
        let svg = folder.path("ladder.svg");
        let svg_name = svg.to_str().expect("UTF-8");
        // Without --device, the best GPU is chosen, or else another OpenCL device.
        let common = ["ladder", ladder, "--runs", "1"];
        let text = succeeds(&[&common[..], size, &["--json", "--svg", svg_name]].concat());
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let rungs = report["rungs"].as_array().expect("a list");
        assert_eq!(report["device"]["opencl"], true, "{text}");
        assert!(!rungs.is_empty() && rungs.iter().any(|rung| rung["gb_per_s"].is_number()), "{text}");
        let drawing = fs::read_to_string(&svg).expect("a drawing");
        assert!(drawing.starts_with("<svg") && drawing.contains("GB/s"), "{drawing}");
        for rung in rungs.iter().filter(|rung| rung["gb_per_s"].is_number()) {
            assert!(drawing.contains(rung["name"].as_str().expect("a name")), "{rung}");
        }
        let table = succeeds(&[&common[..], size, &["--markdown"]].concat());
        assert!(table.contains("| step") && table.contains("warning: the working set"), "{table}");
    }
}

/// `script` provides a terminal. Only wrong lines are red, so a kernel is broken on purpose; debug builds allow that.
#[test]
#[cfg(all(debug_assertions, target_os = "linux"))]
fn no_color_disables_colours() {
    let Some([_, device]) = devices().get(1).copied() else {
        return common::skip("no_color_disables_colours", "no OpenCL device");
    };
    let folder = Folder::new();
    fs::create_dir_all(folder.path("cl/ladder")).expect("a folder");
    let sound = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../cl/ladder/copy.cl")).expect("the kernels");
    let broken = sound.replacen("out[i] = in[i];", "out[i] = in[0];", 1);
    assert_ne!(broken, sound);
    fs::write(folder.path("cl/ladder/copy.cl"), broken).expect("a file");
    let runner = program::runner();
    let line = program::words(&runner, &["ladder", "copy", "--n", "2000", "--device", device, "--runs", "1"]);
    let line: String = line.iter().map(|word| format!("'{word}' ")).collect();
    for no_color in [None, Some("1")] {
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env_remove("OCLPRIM_DEVICE").env_remove("NO_COLOR");
        command.env("OCLPRIM_KERNELS", folder.path("cl")).envs(no_color.map(|value| ("NO_COLOR", value)));
        let Ok(output) = command.output() else {
            return common::skip("no_color_disables_colours", "no `script` for a terminal");
        };
        let text = stdout(&output);
        assert!(text.contains("WRONG") && output.status.code() == Some(1), "{text}");
        assert_eq!(text.contains('\x1b'), no_color.is_none(), "NO_COLOR {no_color:?}: {text}");
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeeds(&["completions", shell]);
        assert!(script.contains("oclprim") && script.contains("ladder"), "{shell}");
    }
}

#[test]
fn kernels_are_dumped_with_their_options() {
    let folder = Folder::new();
    let dir = folder.path("kernels");
    // `scripts/test compile-kernels` compiles those of all primitives.
    let text = succeeds(&["dump-kernels", dir.to_str().expect("UTF-8"), "--only", "iota", "--only", "random"]);
    let names: Vec<_> = fs::read_dir(&dir).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    let sources = names.iter().filter(|path| path.extension().is_some_and(|extension| extension == "cl"));
    assert!(names.len() > 100, "{text}");
    for source in sources {
        let options = fs::read_to_string(source.with_extension("opts")).expect("options");
        assert!(options.contains("-cl-std=CL"), "{options}");
        assert!(fs::read_to_string(source).expect("a source").contains("kernel"), "{}", source.display());
    }
}

macro_rules! reduce_type {
    ($folder:expr, $devices:expr, $($ty:ty => $sum:ty),*) => { $(
        let input = $folder.save("in.npy", &[3, 2], &[1, 5, 2, 0, 7, 3].map(|x: u8| x as $ty));
        for &device in $devices {
            let run = |op: &str| succeeds(&[&["run", "reduce", &input, "--op", op, "--verify"], &device[..]].concat());
            assert_eq!(run("sum").trim(), "18");
            assert_eq!(run("max").trim(), "7");
            assert_eq!(run("min").trim(), "0");
            assert_eq!(run("arg-max").trim(), "7 at index 4");
            let output = $folder.path("out.npy");
            let name = output.to_str().expect("UTF-8");
            succeeds(&[&["run", "reduce", &input, "-o", name], &device[..]].concat());
            assert_eq!(load::<$sum>(&output), (vec![], vec![18 as $sum]));
            succeeds(&[&["run", "reduce", &input, "--op", "arg-min", "-o", name], &device[..]].concat());
            assert_eq!(load::<i64>(&output), (vec![], vec![3]));
        }
    )* };
}

#[test]
fn files_are_scanned() {
    let folder = Folder::new();
    let (input, output) = (folder.save("in.npy", &[3, 2], &[1i32, 5, 2, 0, 7, 3]), folder.path("out.npy"));
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        succeeds(&[&["run", "scan", &input, "-o", name, "--verify"], &device[..]].concat());
        assert_eq!(load::<i64>(&output), (vec![3, 2], vec![1, 6, 8, 8, 15, 18]));
        let text = succeeds(&[&["run", "scan", &input, "--exclusive", "--verify"], &device[..]].concat());
        assert_eq!(text.trim(), "0 1\n6 8\n8 15");
        let text = succeeds(&[&["run", "scan", &input, "--reverse", "--verify"], &device[..]].concat());
        assert_eq!(text.trim(), "18 17\n12 10\n10 3");
    }
    assert_eq!(succeeds(&["run", "cumsum", &input, "--device", "cpu"]).trim(), "1 6\n8 8\n15 18");
    assert_eq!(succeeds(&["run", "sum", &input, "--device", "cpu"]).trim(), "18");
    for (op, wanted) in [("product", "1 5\n10 0\n0 0"), ("min", "1 1\n1 0\n0 0"), ("max", "1 5\n5 5\n7 7")] {
        assert_eq!(succeeds(&["run", "scan", &input, "--op", op, "--device", "cpu"]).trim(), wanted);
    }
    for (op, wanted) in [("and", "1 1\n0 0\n0 0"), ("or", "1 5\n7 7\n7 7"), ("xor", "1 4\n6 6\n1 2")] {
        assert_eq!(succeeds(&["run", "scan", &input, "--op", op, "--device", "cpu"]).trim(), wanted);
    }
    let keys = folder.save("keys.npy", &[6], &[0.5f64, 0.5, 0.5, 2.0, 2.0, 0.5]);
    let offsets = folder.save("offsets.npy", &[4], &[0i32, 4, 4, 5]);
    let flags = folder.save("flags.npy", &[6], &[true, false, false, true, false, false]);
    for device in devices() {
        let lines = [
            (["--axis", "0"], "1 5\n3 5\n10 8"),
            (["--axis", "-1"], "1 6\n2 2\n7 10"),
            (["--keys", &keys], "1 6\n8 0\n7 3"),
            (["--segments", &offsets], "1 6\n8 8\n7 3"),
            (["--flags", &flags], "1 6\n8 0\n7 10"),
        ];
        for (words, wanted) in lines {
            let text = succeeds(&[&["run", "scan", &input, "--verify"], &words[..], &device[..]].concat());
            assert_eq!(text.trim(), wanted, "{words:?}");
        }
    }
    assert!(refuses(&["run", "scan", &input, "--axis", "2"]).contains("no axis 2"));
    assert!(refuses(&["run", "scan", &input, "--keys", &offsets]).contains("4 keys for 6 elements"));
    let halves = folder.save("half.npy", &[3], &[0.5f32, 1.5, 2.0].map(half::f16::from_f32));
    assert_eq!(succeeds(&["run", "scan", &halves, "--device", "cpu"]).trim(), "0.5 2 4");
    assert!(refuses(&["run", "scan", &halves, "--op", "and"]).contains("bitwise"));
}

#[test]
fn scan_without_a_restart_is_one_scan() {
    let folder = Folder::new();
    for (values, wanted) in [(&[1i32, 2, 3][..], "1 3 6"), (&[5], "5"), (&[], "")] {
        let n = values.len() as u64;
        let input = folder.save("x.npy", &[n], values);
        let keys = folder.save("keys.npy", &[n], &vec![7u8; values.len()]);
        let flags = folder.save("flags.npy", &[n], &vec![false; values.len()]);
        for device in devices() {
            for words in [["--keys", &keys], ["--flags", &flags]] {
                let text = succeeds(&[&["run", "scan", &input, "--verify"], &words[..], &device[..]].concat());
                assert_eq!(text.trim(), wanted, "{words:?} of {n}");
            }
        }
    }
}

#[test]
fn reduce_takes_every_type() {
    let folder = Folder::new();
    reduce_type!(folder, &[["--device", "cpu"]], i8 => i64, i16 => i64, i64 => i64);
    reduce_type!(folder, &[["--device", "cpu"]], u8 => u64, u16 => u64, u32 => u64, u64 => u64);
    // Builds cost most of the time, so a device runs two types only.
    reduce_type!(folder, &devices(), i32 => i64, f32 => f32);
    let halves = folder.save("half.npy", &[3], &[0.5f32, 1.5, 2.0].map(half::f16::from_f32));
    assert_eq!(succeeds(&["run", "reduce", &halves, "--verify"]).trim(), "4");
    let doubles = folder.save("double.npy", &[3], &[0.5f64, 1.5, 2.0]);
    assert_eq!(
        succeeds(&["run", "reduce", &doubles, "--device", "cpu", "--determinism", "fast", "--verify"]).trim(),
        "4"
    );
    let bits = folder.save("bits.npy", &[3], &[1u16, 4, 5]);
    assert_eq!(succeeds(&["run", "reduce", &bits, "--op", "xor"]).trim(), "0");
    assert_eq!(succeeds(&["run", "reduce", &bits, "--op", "or"]).trim(), "5");
    assert!(refuses(&["run", "reduce", &halves, "--op", "and"]).contains("bitwise"));
    let nothing = folder.save::<f32>("empty.npy", &[0, 4], &[]);
    assert_eq!(succeeds(&["run", "reduce", &nothing]).trim(), "0");
    assert!(refuses(&["run", "reduce", &nothing, "--op", "arg-min"]).contains("0 elements"));
}

/// The results equal those of Python's `math.fsum`. If a partial sum overflows, `fsum` raises an error, but this
/// program goes on.
#[test]
fn exact_sums_equal_those_of_fsum() {
    let folder = Folder::new();
    let exact = |x: &str, more: &[&str]| {
        let common = ["run", "reduce", x, "--determinism", "exact", "--device", "cpu", "--verify"];
        succeeds(&[&common[..], more].concat()).trim().to_owned()
    };
    let (most, half) = (f64::MAX, 2f64.powi(970));
    for (x, want) in [
        (&[0.1; 10][..], "1"),
        (&[1e100, 1.0, -1e100], "1"),
        (&[1.0, f64::EPSILON / 2.0], "1"),
        (&[1.0, f64::EPSILON / 2.0, 5e-324], "1.0000000000000002"),
        (&[1.0 + f64::EPSILON, f64::EPSILON / 2.0], "1.0000000000000004"),
        (&[-1.0 - f64::EPSILON, -f64::EPSILON / 2.0], "-1.0000000000000004"),
        (&[5e-324; 3], "1.5e-323"),
        (&[2.5, -2.5], "0"),
        (&[], "0"),
        (&[f64::INFINITY, 1.0, f64::INFINITY], "inf"),
        (&[f64::NEG_INFINITY, most], "-inf"),
        (&[f64::NAN, f64::INFINITY], "NaN"),
        // `fsum` refuses these.
        (&[f64::INFINITY, f64::NEG_INFINITY], "NaN"),
        (&[1e308, 1e308, -1e308], "1e308"),
        (&[most, half, -5e-324], "1.7976931348623157e308"),
        (&[most, half], "inf"),
    ] {
        let found = exact(&folder.save("x.npy", &[x.len() as u64], x), &[]);
        let parsed: (f64, f64) = (found.parse().expect("a number"), want.parse().expect("a number"));
        assert!(parsed.0.to_bits() == parsed.1.to_bits(), "{x:?}: {found} instead of {want}");
    }
    let floats = folder.save("floats.npy", &[3], &[16_777_216f32, 1.0, 1.0]);
    assert_eq!((exact(&floats, &[]), exact(&floats, &["--as", "f64"])), ("16777218".into(), "16777218".into()));
    let integers = folder.save("integers.npy", &[2, 2], &[1i32, 2, 3, 4]);
    assert_eq!((exact(&integers, &[]), exact(&integers, &["--axis", "0"])), ("10".into(), "4 6".into()));
    let refused = |more: &[&str]| {
        let common = ["run", "reduce", &floats, "--determinism", "exact", "--device", "cpu"];
        refuses(&[&common[..], more].concat())
    };
    assert!(refused(&["--axis", "0"]).contains("--determinism exact: --axis is not allowed"));
    let offsets = folder.save("offsets.npy", &[2], &[0u64, 3]);
    assert!(refused(&["--segments", &offsets]).contains("--determinism exact: --segments is not allowed"));
}

#[test]
fn files_are_reduced_along_an_axis() {
    let folder = Folder::new();
    let cube: Vec<i32> = (0..24).map(|i| i * i % 17 - 8).collect();
    let input = folder.save("cube.npy", &[2, 3, 4], &cube);
    let halves = folder.save("halves.npy", &[2, 2], &[0.5f32, -1.0, 2.0, 4.0]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        for (axis, others) in [("0", [3, 4]), ("1", [2, 4]), ("-1", [2, 3])] {
            let arguments = ["run", "reduce", &input, "--axis", axis, "-o", name, "--verify"];
            succeeds(&[&arguments[..], &device[..]].concat());
            let sum = |i: usize, j: usize| {
                let at = |k: usize| match axis {
                    "0" => (k < 2).then_some(k * 12 + i * 4 + j),
                    "1" => (k < 3).then_some(i * 12 + k * 4 + j),
                    _ => Some(i * 12 + j * 4 + k),
                };
                (0..4).filter_map(at).map(|at| i64::from(cube[at])).sum::<i64>()
            };
            let want: Vec<_> = (0..others[0]).flat_map(|i| (0..others[1]).map(move |j| sum(i, j))).collect();
            assert_eq!(load::<i64>(&output), (others.map(|n| n as u64).to_vec(), want), "axis {axis}");
        }
        let along =
            |op: &str| succeeds(&[&["run", "reduce", &halves, "--axis", "1", "--op", op], &device[..]].concat());
        assert_eq!(along("sum").trim(), "-0.5 6");
        assert_eq!(along("product").trim(), "-0.5 8");
        let arguments = ["run", "reduce", &halves, "--axis", "0", "--op", "arg-max", "-o", name, "--verify"];
        succeeds(&[&arguments[..], &device[..]].concat());
        assert_eq!(load::<i64>(&output), (vec![2], vec![1, 1]));
    }
    let least = ["run", "reduce", &halves, "--axis", "-1", "--op", "arg-min", "--device", "cpu"];
    assert_eq!(succeeds(&least).trim(), "1 0");
    for (op, want) in [("min", "-1 2"), ("max", "0.5 4")] {
        let text = succeeds(&["run", "reduce", &halves, "--axis", "1", "--op", op, "--device", "cpu", "--verify"]);
        assert_eq!(text.trim(), want);
    }
    let bits = folder.save("bits.npy", &[2, 2], &[1u8, 3, 4, 6]);
    for (op, want) in [("and", "0 2"), ("or", "5 7"), ("xor", "5 5")] {
        let text = succeeds(&["run", "reduce", &bits, "--axis", "0", "--op", op, "--device", "cpu", "--verify"]);
        assert_eq!(text.trim(), want);
    }
    let long = folder.save("long.npy", &[1, 65], &[1i64; 65]);
    let text = succeeds(&["run", "reduce", &long, "--axis", "0", "--device", "cpu"]);
    assert_eq!(text.trim(), "[65] <i8 on rayon / CPU; -o writes it to a file");
    let nothing = folder.save::<f32>("empty.npy", &[0, 2], &[]);
    assert_eq!(succeeds(&["run", "reduce", &nothing, "--axis", "0", "--device", "cpu"]).trim(), "0 0");
    let text = refuses(&["run", "reduce", &nothing, "--axis", "0", "--op", "arg-min"]);
    assert!(text.ends_with("arg-min along an axis of 0 elements has no answer\n"), "{text}");

    for axis in ["3", "-4", "9223372036854775807", "-9223372036854775808"] {
        let text = refuses(&["run", "reduce", &input, "--axis", axis]);
        assert!(text.ends_with(&format!("cube.npy: there is no axis {axis} in a shape of [2, 3, 4]\n")), "{text}");
    }
    let one = folder.save("one.npy", &[], &[1.0f32]);
    assert!(refuses(&["run", "reduce", &one, "--axis", "0"]).contains("no axis 0 in a shape of []"));
    assert!(refuses(&["run", "reduce", &halves, "--axis", "0", "--op", "and"]).contains("bitwise"));
}

#[test]
fn files_are_sorted() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let input = folder.save("in.npy", &[2, 3], &[3.5f32, -0.0, 0.0, f32::INFINITY, -2.0, 3.5]);
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run", "sort", &input, "--verify"], words, &device[..]].concat());
        assert_eq!(run(&[]).trim(), "-2 -0 0 3.5 3.5 inf");
        assert_eq!(run(&["--indices"]).trim(), "4 1 2 0 5 3");
        run(&["--descending", "-o", name]);
        assert_eq!(load::<f32>(&output), (vec![6], vec![f32::INFINITY, 3.5, 3.5, -0.0, 0.0, -2.0]));
        run(&["--descending", "--indices", "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![6], vec![3, 0, 5, 1, 2, 4]));
    }
    let complex = folder.save("complex.npy", &[1], &[num_complex::Complex::new(1.0f32, 2.0)]);
    let text = refuses(&["run", "sort", &complex]);
    assert!(text.ends_with("sort takes integers and floats of up to 8 bytes, not complex numbers (<c8)\n"), "{text}");
}

/// numpy.sort keeps the order of zeros and puts NaN last, also the negative NaN that x86 returns for 0 / 0.
#[test]
fn files_are_ordered_as_by_numpy() {
    let folder = Folder::new();
    let nan = f64::from_bits(0xfff8_0000_0000_0000);
    let sorted = folder.save("sorted.npy", &[5], &[0.0, -0.0, 1.0, f64::NAN, nan]);
    let needles = folder.save("needles.npy", &[4], &[-0.0, 0.0, nan, 0.5]);
    let mixed = folder.save("mixed.npy", &[4], &[nan, 1.0, -0.0, 0.0]);
    let (minus, plus) = (folder.save("minus.npy", &[1], &[-0.0f32]), folder.save("plus.npy", &[1], &[0.0f32]));
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run"], words, &["--verify"], &device[..]].concat());
        assert_eq!(run(&["search", &sorted, "--needles", &needles]).trim(), "0 0 3 2");
        assert_eq!(run(&["search", &sorted, "--needles", &needles, "--upper"]).trim(), "2 2 5 2");
        assert_eq!(run(&["sort", &mixed]).trim(), "-0 0 1 NaN");
        assert_eq!(run(&["sort", &mixed, "--indices", "--descending"]).trim(), "0 1 2 3");
        assert_eq!(run(&["topk", &mixed, "--k", "1", "--indices"]).trim(), "0");
        assert_eq!(run(&["reduce", &mixed, "--op", "arg-max"]).trim(), "NaN at index 0");
        assert_eq!(run(&["merge", &minus, "--with", &plus, "--keep", "intersection"]).trim(), "-0");
        assert_eq!(run(&["unique", &sorted]).trim(), "0 1 NaN");
    }
}

#[test]
fn elements_and_runs_are_selected() {
    let folder = Folder::new();
    let (output, second) = (folder.path("out.npy"), folder.path("lengths.npy"));
    let [name, lengths] = [&output, &second].map(|path| path.to_str().expect("UTF-8"));
    let input = folder.save("in.npy", &[2, 3], &[3.5f32, -0.0, 0.0, f32::NAN, -2.0, 3.5]);
    let flags = folder.save("flags.npy", &[6], &[true, false, false, true, true, false]);
    let small = folder.save("small.npy", &[4], &[-128i8, 127, -128, 0]);
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run"], words, &["--verify"], &device[..]].concat());
        assert_eq!(run(&["select", &input]).trim(), "3.5 NaN -2 3.5");
        assert_eq!(run(&["select", &input, "--above", "-2", "--below", "3"]).trim(), "-0 0");
        assert_eq!(run(&["select", &input, "--above", "-2", "--others"]).trim(), "3.5 -0 0 3.5 NaN -2");
        assert_eq!(run(&["select", &input, "--flags", &flags]).trim(), "3.5 NaN -2");
        assert_eq!(run(&["select", &input, "--flags", &flags, "--others"]).trim(), "3.5 NaN -2 -0 0 3.5");
        assert_eq!(run(&["select", &input, "--flags", &flags, "--indices"]).trim(), "0 3 4");
        assert_eq!(run(&["select", &small, "--below", "-127"]).trim(), "-128 -128");
        run(&["select", &input, "--above", "3", "--indices", "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![2], vec![0, 5]));
        assert_eq!(run(&["unique", &small]).trim(), "-128 127 -128 0");
        assert_eq!(run(&["unique", &input]).trim(), "3.5 -0 NaN -2 3.5");
        assert_eq!(run(&["rle", &input]).trim(), "3.5 -0 NaN -2 3.5\n1 2 1 1 1");
        run(&["rle", &input, "-o", name, "--lengths", lengths]);
        assert_eq!(load::<f32>(&output).0, [5]);
        assert_eq!(load::<u64>(&second), (vec![5], vec![1, 2, 1, 1, 1]));
        let none = oclprim(&[&["run", "select", &input, "--above", "9"], &device[..]].concat());
        assert_eq!((stdout(&none), stderr(&none)), ("\n".into(), "the result has 0 elements\n".into()));
        let none = oclprim(&[&["run", "iota", "0"], &device[..]].concat());
        assert_eq!((stdout(&none), stderr(&none)), ("\n".into(), "the result has 0 elements\n".into()));
    }
    assert!(refuses(&["run", "select", &small, "--flags", &flags]).contains("6 flags for 4 elements"));
    assert!(refuses(&["run", "select", &small, "--flags", &input]).contains("bytes or booleans, not <f4"));
    assert!(refuses(&["run", "select", &small, "--above", "much"]).contains("`much` is not a value of type i8"));
}

#[test]
fn files_are_merged_and_searched() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let first = folder.save("first.npy", &[2, 2], &[-2.0f32, 1.0, 1.0, f32::INFINITY]);
    let more = folder.save("more.npy", &[3], &[-0.0f32, 1.0, 4.0]);
    for device in devices() {
        let run = |words: &[&str]| {
            succeeds(&[&["run", "merge", &first, "--with", &more, "--verify"], words, &device[..]].concat())
        };
        assert_eq!(run(&[]).trim(), "-2 -0 1 1 1 4 inf");
        assert_eq!(run(&["--keep", "intersection"]).trim(), "1");
        run(&["--keep", "union", "-o", name]);
        assert_eq!(load::<f32>(&output), (vec![6], vec![-2.0, -0.0, 1.0, 1.0, 4.0, f32::INFINITY]));
        let search = |words: &[&str]| {
            succeeds(&[&["run", "search", &more, "--needles", &first, "--verify"], words, &device[..]].concat())
        };
        search(&["-o", name]);
        assert_eq!(load::<i64>(&output), (vec![2, 2], vec![0, 1, 1, 3]));
        search(&["--upper", "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![2, 2], vec![0, 2, 2, 3]));
    }
    let text = refuses(&["run", "merge", &first, "--with", &more, "--descending"]);
    assert!(text.ends_with("first.npy is not sorted: element 1 belongs before element 0\n"), "{text}");
    let complex = folder.save("complex.npy", &[1], &[num_complex::Complex::new(1.0f32, 2.0)]);
    assert!(refuses(&["run", "search", &more, "--needles", &complex]).contains("not complex numbers (<c8)"));
}

#[test]
fn largest_elements_and_quantiles_are_selected() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let input = folder.save("in.npy", &[2, 3], &[3.5f32, -0.0, 0.0, f32::INFINITY, -2.0, 3.5]);
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[words, &["--verify"], &device[..]].concat());
        assert_eq!(run(&["run", "topk", &input, "--k", "3"]).trim(), "3.5 inf 3.5");
        assert_eq!(run(&["run", "topk", &input, "--k", "3", "--sorted", "--indices"]).trim(), "3 0 5");
        run(&["run", "topk", &input, "--k", "2", "--smallest", "--sorted", "--rows", "-o", name]);
        assert_eq!(load::<f32>(&output), (vec![2, 2], vec![-0.0, 0.0, -2.0, 3.5]));
        assert_eq!(run(&["run", "quantile", &input, "--q", "0.5,0.1"]).trim(), "1.75 -1");
        run(&["run", "quantile", &input, "--q", "0.9", "--method", "lower", "-o", name]);
        assert_eq!(load::<f64>(&output), (vec![1], vec![3.5]));
    }
    assert!(refuses(&["run", "topk", &input, "--k", "7"]).contains("6 keys are fewer than the 7 largest to select"));
    assert!(refuses(&["run", "quantile", &input, "--q", "2"]).contains("from 0 to 1"));
}

#[test]
fn random_numbers_are_reproducible() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run", "random", "--verify"], words, &device[..]].concat());
        assert_eq!(run(&["4", "--type", "u32"]).trim(), "1713891541 3781805453 3159862348 2600524760");
        run(&["2", "--type", "u32", "--skip", "2", "-o", name]);
        assert_eq!(load::<u32>(&output), (vec![2], vec![3_159_862_348, 2_600_524_760]));
        run(&["1000", "--type", "i8", "--range", "-3", "3", "--seed", "9", "-o", name]);
        assert!(load::<i8>(&output).1.iter().all(|x| (-3..=3).contains(x)));
    }
    assert!(refuses(&["run", "random", "3", "--type", "bf16"]).contains("no bf16"));
}

#[test]
fn iota_counts_by_a_step() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run", "iota", "--verify"], words, &device[..]].concat());
        assert_eq!(run(&["4", "--start", "1", "--step", "-0.25"]).trim(), "1 0.75 0.5 0.25");
        run(&["3", "--type", "u8", "--start", "250", "--step", "4", "-o", name]);
        assert_eq!(load::<u8>(&output), (vec![3], vec![250, 254, 2]));
    }
    assert!(refuses(&["run", "iota", "3", "--type", "u8", "--step", "-1"]).contains("--step: `-1` is not a value"));
}

#[test]
fn axes_are_permuted() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let cube: Vec<u16> = (0..24).collect();
    let input = folder.save("cube.npy", &[2, 3, 4], &cube);
    let flags = folder.save("flags.npy", &[2, 2], &[true, false, true, true]);
    for device in devices() {
        let permuted = |file: &str, axes: &str| {
            succeeds(&[&["run", "permute", file, "--axes", axes, "-o", name, "--verify"], &device[..]].concat());
        };
        for axes in ["2,0,1", "-1,-3,1"] {
            permuted(&input, axes);
            let want: Vec<u16> = (0..4).flat_map(|k| (0..6).map(move |ij| ij * 4 + k)).collect();
            assert_eq!(load::<u16>(&output), (vec![4, 2, 3], want), "{axes}");
        }
        permuted(&flags, "1,0");
        assert_eq!(load::<bool>(&output), (vec![2, 2], vec![true, true, false, true]));
    }
    let text = succeeds(&["run", "permute", &input, "--axes", "0,2,1", "--device", "cpu"]);
    assert_eq!(text.trim(), "[2, 4, 3] <u2 on rayon / CPU; -o writes it to a file");
    let wrong = |axes: &str| refuses(&["run", "permute", &input, "--axes", axes]);
    assert!(wrong("0,1,3").contains("cube.npy: there is no axis 3 in a shape of [2, 3, 4]"));
    assert!(wrong("0,1,-3").contains("axes [0, 1, 0] do not name each of 3 axes once"));
    assert!(wrong("1,0").contains("axes [1, 0] do not name each of 3 axes once"));
}

#[test]
fn statistics_are_printed() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    let input = folder.save("in.npy", &[2, 4], &[2i32, 4, 4, 4, 5, 5, 7, 9]);
    for device in devices() {
        let run = |words: &[&str]| succeeds(&[&["run", "statistics", &input, "--verify"], words, &device[..]].concat());
        let text = run(&[]);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let want = ["count 8", "NaN 0", "min 2 at index 0", "max 9 at index 7", "sum 40", "mean 5", "variance 4"];
        assert_eq!(lines, want);
        run(&["-o", name]);
        assert_eq!(load::<f64>(&output), (vec![7], vec![8.0, 0.0, 2.0, 9.0, 40.0, 5.0, 4.0]));
    }
    let matrix = folder.save("matrix.npy", &[2, 3], &[2i32, 4, 6, 7, 7, 7]);
    for device in devices() {
        let words = ["run", "statistics", &matrix, "--axis", "-1", "--verify", "-o", name];
        succeeds(&[&words[..], &device[..]].concat());
        assert_eq!(load::<f64>(&output), (vec![2, 3], vec![12.0, 4.0, 8.0 / 3.0, 21.0, 7.0, 0.0]));
    }
    assert!(
        refuses(&["run", "statistics", &matrix, "--axis", "2"]).contains("there is no axis 2 in a shape of [2, 3]")
    );
    // The sum exceeds what a double represents exactly.
    let large = folder.save("large.npy", &[2], &[i64::MAX, i64::MAX - 1]);
    let text = succeeds(&["run", "statistics", &large, "--device", "cpu"]);
    assert!(text.contains("18446744073709551613\n") && text.contains("9223372036854775807 at index 0"), "{text}");
    let nothing = folder.save::<f32>("empty.npy", &[0], &[]);
    assert!(refuses(&["run", "statistics", &nothing]).contains("statistics of 0 elements"));
}

#[test]
fn transpose_takes_every_size() {
    fn transposes<T: AutoSerialize + Serialize + npyz::Deserialize + Copy + PartialEq + std::fmt::Debug>(
        folder: &Folder,
        data: [T; 6],
    ) {
        let input = folder.save("in.npy", &[2, 3], &data);
        let output = folder.path("out.npy");
        for device in devices() {
            let name = output.to_str().expect("UTF-8");
            succeeds(&[&["run", "transpose", &input, "-o", name, "--verify"], &device[..]].concat());
            let [a, b, c, d, e, f] = data;
            assert_eq!(load::<T>(&output), (vec![3, 2], vec![a, d, b, e, c, f]));
        }
    }
    let folder = Folder::new();
    let numbers = [1u8, 2, 3, 4, 5, 6];
    transposes(&folder, numbers);
    transposes(&folder, numbers.map(i16::from));
    transposes(&folder, numbers.map(f32::from));
    transposes(&folder, numbers.map(u64::from));
    transposes(&folder, numbers.map(|x| num_complex::Complex::new(f32::from(x), -1.0)));
    transposes(&folder, numbers.map(|x| num_complex::Complex::new(f64::from(x), 0.5)));
    transposes(&folder, [true, false, true, true, false, false]);
    let flat = folder.save("flat.npy", &[6], &numbers);
    assert!(refuses(&["run", "transpose", &flat]).contains("2 or 3 dimensions, not 1"));
}

#[test]
fn batches_casts_and_multiples_are_transposed() {
    let folder = Folder::new();
    let volume = folder.save("volume.npy", &[2, 2, 3], &[1i16, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let matrix = folder.save("matrix.npy", &[2, 2], &[1.75f32, -1.0, 300.0, f32::NAN]);
    let signal = folder.save("signal.npy", &[1, 2], &[num_complex::Complex::new(1.0f32, 2.0); 2]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let turn = |words: &[&str]| {
            succeeds(&[&["run", "transpose"], words, &["-o", name, "--verify"], &device[..]].concat());
        };
        turn(&[&volume]);
        assert_eq!(load::<i16>(&output), (vec![2, 3, 2], vec![1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12]));
        turn(&[&matrix, "--cast", "u8"]);
        assert_eq!(load::<u8>(&output), (vec![2, 2], vec![1, 255, 0, 0]));
        turn(&[&matrix, "--cast", "i32", "--scale", "-2"]);
        assert_eq!(load::<i32>(&output), (vec![2, 2], vec![-2, -600, 2, 0]));
        turn(&[&matrix, "--scale", "0.5"]);
        assert_eq!(load::<f32>(&output).1[..3], [0.875, 150.0, -0.5]);
    }
    let text = succeeds(&["run", "transpose", &volume, "--device", "cpu"]);
    assert!(text.starts_with("2 x 3 x 2 <i2 on "), "{text}");
    assert!(refuses(&["run", "transpose", &volume, "--scale", "2"]).contains("2 dimensions, not 3"));
    assert!(refuses(&["run", "transpose", &matrix, "--cast", "bf16"]).contains("no bf16"));
    let text = refuses(&["run", "transpose", &matrix, "--cast", "u8", "--scale", "0.5"]);
    assert!(text.contains("--scale: `0.5` is not a value of type u8"), "{text}");
    assert!(refuses(&["run", "transpose", &signal, "--scale", "2"]).contains("not complex numbers (<c8)"));
}

#[test]
fn histograms_are_counted() {
    let folder = Folder::new();
    let ids = folder.save("ids.npy", &[6], &[0i32, 3, 3, 1, -1, 9]);
    let values = folder.save("values.npy", &[5], &[0.0f32, 0.25, 0.5, 0.75, 1.0]);
    let edges = folder.save("edges.npy", &[4], &[0.0f32, 0.25, 0.25, 1.0]);
    let weights = folder.save("weights.npy", &[5], &[0.5f64, 4.0, 5.0, 6.0, 7.0]);
    let whole = folder.save("whole.npy", &[5], &[-1i64, (1 << 53) + 1, 1, 1, 3]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let done = oclprim(&[&["run", "histogram", &ids, "--bins", "4", "-o", name, "--verify"], &device[..]].concat());
        assert_eq!(load::<u64>(&output), (vec![4], vec![1, 1, 0, 2]));
        assert_eq!(stderr(&done), "1 samples below the first bin\n1 samples above the last\n");
        let run =
            |words: &[&str]| succeeds(&[&["run", "histogram", &values, "--bins", "2"], words, &device[..]].concat());
        assert_eq!(run(&["--range", "0", "1"]).trim(), "2 2");
        assert_eq!(run(&["--range", "0", "1", "--closed"]).trim(), "2 3");
        assert_eq!(run(&["--range", "-1", "1", "--closed"]).trim(), "0 5");
        // The default range is that of numpy.histogram.
        assert_eq!(run(&[]).trim(), "2 3");
        let by_edges = |words: &[&str]| {
            succeeds(&[&["run", "histogram", &values, "--edges", &edges, "--verify"], words, &device[..]].concat())
        };
        assert_eq!(by_edges(&[]).trim(), "1 0 4");
        assert_eq!(by_edges(&["--weights", &weights]).trim(), "0.5 0 22");
        // The sum exceeds what a double represents exactly.
        by_edges(&["--weights", &whole, "-o", name]);
        assert_eq!(load::<i64>(&output), (vec![3], vec![-1, 0, (1 << 53) + 6]));
    }
    let pixels = folder.save("pixels.npy", &[3, 2], &[0u8, 1, 1, 1, 9, 1]);
    for device in devices() {
        let words = ["run", "histogram", &pixels, "--channels", "--bins", "2", "-o", name, "--verify"];
        let done = oclprim(&[&words[..], &device].concat());
        assert_eq!(load::<u64>(&output), (vec![2, 2], vec![1, 1, 0, 3]));
        assert_eq!(stderr(&done), "1 samples above the last\n");
    }
    let words = ["run", "histogram", &pixels, "--channels", "--range", "0", "10", "--bins", "2", "--device", "cpu"];
    assert_eq!(succeeds(&words).trim(), "2 1\n3 0");
    assert!(refuses(&["run", "histogram", &values, "--channels"]).contains("1 to 4 channels, not 5"));
    for samples in [&ids, &values] {
        assert!(refuses(&["run", "histogram", samples, "--bins", "0"]).contains("1 to 16777216 bins, not 0"));
    }
    assert!(
        refuses(&["run", "histogram", &ids, "--range", "0", "1e999"]).contains("`1e999` is not a value of type i32")
    );
    let far = folder.save("far.npy", &[2], &[f32::NEG_INFINITY, 2.0]);
    assert!(refuses(&["run", "histogram", &far]).contains("--range"));
}

#[test]
fn files_are_copied() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[2, 2, 2], &[1u16, 2, 3, 4, 5, 6, 7, 8]);
    let output = folder.path("out.npy");
    for device in devices() {
        let name = output.to_str().expect("UTF-8");
        succeeds(&[&["run", "copy", &input, "-o", name, "--verify"], &device[..]].concat());
        assert_eq!(load::<u16>(&output), (vec![2, 2, 2], vec![1, 2, 3, 4, 5, 6, 7, 8]));
    }
}

#[test]
fn files_are_reversed_gathered_and_scattered() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[2, 3], &[1u16, 2, 3, 4, 5, 6]);
    let order = folder.save("order.npy", &[2, 2], &[5i64, 0, 0, 3]);
    let indices = folder.save("indices.npy", &[6], &[6u32, 5, 4, 3, 2, 0]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        succeeds(&[&["run", "reverse", &input, "-o", name, "--verify"], &device[..]].concat());
        assert_eq!(load::<u16>(&output), (vec![2, 3], vec![6, 5, 4, 3, 2, 1]));
        let pick = ["run", "gather", &input, "--indices", &order, "-o", name, "--verify"];
        succeeds(&[&pick[..], &device[..]].concat());
        assert_eq!(load::<u16>(&output), (vec![2, 2], vec![6, 1, 1, 4]));
        let put = ["run", "scatter", &input, "--indices", &indices, "--len", "8", "-o", name, "--verify"];
        succeeds(&[&put[..], &device[..]].concat());
        assert_eq!(load::<u16>(&output), (vec![8], vec![6, 0, 5, 4, 3, 2, 1, 0]));
    }
    assert!(
        refuses(&["run", "scatter", &input, "--indices", &indices]).contains("index 0 is 6, beyond the 6 elements")
    );
    assert!(
        refuses(&["run", "scatter", &input, "--indices", &order])
            .contains("a scatter of 6 elements needs 6 indices, got 4")
    );
    let far = folder.save("far.npy", &[2], &[5u32, 6]);
    assert!(refuses(&["run", "gather", &input, "--indices", &far]).contains("index 1 is 6, beyond the 6 elements"));
    let negative = folder.save("negative.npy", &[1], &[-1i32]);
    assert!(
        refuses(&["run", "gather", &input, "--indices", &negative])
            .contains("negative.npy: element 0 is -1; indices count from 0")
    );
    let halves = folder.save("halves.npy", &[1], &[0.5f32]);
    assert!(refuses(&["run", "gather", &input, "--indices", &halves]).contains("expected integers, not <f4"));
}

#[test]
fn values_are_counted() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[2, 3], &[1.5f32, 0.0, -0.0, f32::NAN, 1.5, -2.0]);
    let flags = folder.save("flags.npy", &[3], &[true, false, true]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let count = |words: &[&str]| succeeds(&[&["run", "count", &input, "--verify"], words, &device[..]].concat());
        assert_eq!(count(&[]).trim(), "4");
        assert_eq!(count(&["--value", "1.5"]).trim(), "2");
        assert_eq!(count(&["--value", "-2"]).trim(), "1");
        count(&["-o", name]);
        assert_eq!(load::<u64>(&output), (vec![], vec![4]));
    }
    assert_eq!(succeeds(&["run", "count", &flags, "--device", "cpu"]).trim(), "2");
    let text = refuses(&["run", "count", &flags, "--value", "yes"]);
    assert!(text.contains("--value: `yes` is not a value of type u8"), "{text}");
}

#[test]
fn segments_are_reduced_and_wider_types_are_used() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[6], &[200u8, 100, 7, 1, 2, 3]);
    let offsets = folder.save("offsets.npy", &[4], &[0i64, 2, 2, 6]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let reduce = |words: &[&str]| succeeds(&[&["run", "reduce", &input, "--verify"], words, &device[..]].concat());
        reduce(&["--as", "u8", "--segments", &offsets, "-o", name]);
        assert_eq!(load::<u8>(&output), (vec![3], vec![44, 0, 13]));
        assert_eq!(reduce(&["--accumulator", "i64"]).trim(), "313");
        reduce(&["--segments", &offsets, "-o", name]);
        assert_eq!(load::<u64>(&output), (vec![3], vec![300, 0, 13]));
        reduce(&["--as", "f64", "--axis", "0", "-o", name]);
        assert_eq!(load::<f64>(&output), (vec![], vec![313.0]));
    }
    let cpu = |words: &[&str]| succeeds(&[&["run", "reduce", &input, "--device", "cpu", "--verify"], words].concat());
    assert_eq!(cpu(&["--segments", &offsets, "--op", "max"]).trim(), "200 0 7");
    assert_eq!(cpu(&["--segments", &offsets, "--op", "xor"]).trim(), "172 0 7");
    assert_eq!(cpu(&["--as", "f64", "--op", "product"]).trim(), "840000");
    cpu(&["--as", "u64", "-o", name]);
    assert_eq!(load::<u64>(&output), (vec![], vec![313]));
    let falling = folder.save("falling.npy", &[3], &[0u32, 5, 4]);
    let text = refuses(&["run", "reduce", &input, "--segments", &falling]);
    assert!(text.contains("offset 1 is 5, beyond the next one, 4"), "{text}");
    assert!(refuses(&["run", "reduce", &input, "--as", "i8"]).contains("sums of u8 in i8 are not offered"));
    assert!(refuses(&["run", "reduce", &input, "--as", "u64", "--op", "min"]).contains("sums and products"));
    let text = refuses(&["run", "reduce", &input, "--segments", &offsets, "--op", "arg-min"]);
    assert!(text.contains("no arg-min"), "{text}");
}

#[test]
fn dot_min_max_any_and_all_are_reduced() {
    let folder = Folder::new();
    let x = folder.save("x.npy", &[2, 3], &[3i32, -1, 2, -1, 100_000, 0]);
    let y = folder.save("y.npy", &[6], &[1i32, 2, 3, 4, 100_000, 6]);
    let flags = folder.save("flags.npy", &[3], &[true, false, true]);
    let halves = folder.save("halves.npy", &[2], &[300.0f32, 300.0].map(half::f16::from_f32));
    let signed = folder.save("signed.npy", &[2], &[300.0f32, -299.0].map(half::f16::from_f32));
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let reduce = |words: &[&str]| succeeds(&[&["run", "reduce"], words, &["--verify"], &device[..]].concat());
        assert_eq!(reduce(&[&x, "--dot", &y]).trim(), "10000000003");
        // Each product is beyond the largest f16.
        assert_eq!(reduce(&[&halves, "--dot", &signed]).trim(), "300");
        reduce(&[&x, "--dot", &y, "--as", "i32", "-o", name]);
        assert_eq!(load::<i32>(&output), (vec![], vec![1_410_065_411]));
        assert_eq!(reduce(&[&x, "--op", "min-max"]), "min -1 at index 1\nmax 100000 at index 4\n");
        reduce(&[&x, "--op", "min-max", "-o", name]);
        assert_eq!(load::<i32>(&output), (vec![2], vec![-1, 100_000]));
        reduce(&[&x, "--op", "min-max", "--axis", "1", "-o", name]);
        assert_eq!(load::<i32>(&output), (vec![2, 2], vec![-1, -1, 3, 100_000]));
        assert_eq!(reduce(&[&x, "--op", "any"]).trim(), "true");
        assert_eq!(reduce(&[&x, "--op", "all"]).trim(), "false");
        reduce(&[&flags, "--op", "any", "-o", name]);
        assert_eq!(load::<bool>(&output), (vec![], vec![true]));
    }
    assert!(refuses(&["run", "reduce", &x, "--dot", &flags]).contains("has 3 elements, but the input has 6"));
    let short = folder.save("short.npy", &[5], &[1i32; 5]);
    assert!(refuses(&["run", "reduce", &x, "--dot", &short]).contains("has 5 elements, but the input has 6"));
    assert_eq!(oclprim(&["run", "reduce", &x, "--dot", &y, "--op", "max"]).status.code(), Some(2));
    assert!(refuses(&["run", "reduce", &x, "--op", "any", "--axis", "0"]).contains("--op any: --axis is not allowed"));
    let nothing = folder.save::<f32>("empty.npy", &[0], &[]);
    assert!(refuses(&["run", "reduce", &nothing, "--op", "min-max"]).contains("0 elements"));
    let offsets = folder.save("offsets.npy", &[2], &[0u32, 6]);
    let text = refuses(&["run", "reduce", &x, "--segments", &offsets, "--op", "min-max"]);
    assert!(text.contains("no min-max"), "{text}");
}

#[test]
fn complex_numbers_are_added_and_multiplied() {
    use num_complex::Complex;
    let folder = Folder::new();
    let x = folder.save("x.npy", &[2], &[Complex::new(1.0f32, 2.0), Complex::new(0.5, -3.0)]);
    let wide = folder.save("wide.npy", &[2], &[Complex::new(1.0f64, 2.0), Complex::new(0.5, -3.0)]);
    let output = folder.path("out.npy");
    let name = output.to_str().expect("UTF-8");
    for device in devices() {
        let reduce = |words: &[&str]| succeeds(&[&["run", "reduce"], words, &["--verify"], &device[..]].concat());
        assert_eq!(reduce(&[&x]).trim(), "1.5-1i");
        reduce(&[&x, "--op", "product", "-o", name]);
        assert_eq!(load::<Complex<f32>>(&output), (vec![], vec![Complex::new(6.5, -2.0)]));
    }
    let cpu = ["run", "reduce", &wide, "--device", "cpu", "--verify", "--op", "product", "-o", name];
    succeeds(&cpu);
    assert_eq!(load::<Complex<f64>>(&output), (vec![], vec![Complex::new(6.5, -2.0)]));
    assert!(refuses(&["run", "reduce", &x, "--op", "max"]).contains("a sum and a product, no max"));
    assert!(refuses(&["run", "reduce", &x, "--axis", "0"]).contains("complex numbers: --axis is not allowed"));
}

#[test]
fn bad_files_are_refused_in_one_line() {
    let folder = Folder::new();
    let copy = |path: &str| refuses(&["run", "copy", path]);
    let missing = folder.path("missing.npy");
    let reason = fs::File::open(&missing).expect_err("it is missing");
    assert!(copy(missing.to_str().expect("UTF-8")).contains(&format!("missing.npy: {reason}")));
    let text = folder.path("text.npy");
    fs::write(&text, "not numpy's").expect("a file");
    assert!(copy(text.to_str().expect("UTF-8")).contains("not a .npy file"));

    let good = folder.save("good.npy", &[8, 8], &[1.0f32; 64]);
    let bytes = fs::read(&good).expect("a file");
    for cut in [100, 256, bytes.len() - 9, bytes.len() - 60] {
        let cut_file = folder.path("cut.npy");
        fs::write(&cut_file, &bytes[..bytes.len() - cut]).expect("a file");
        let text = copy(cut_file.to_str().expect("UTF-8"));
        let expected = match cut {
            ..=256 => format!("are 256 bytes, the file has {}", 256 - cut),
            cut if cut == bytes.len() - 9 => "not a .npy file: it ends within its first 12 bytes".into(),
            _ => "the file has 50 of them".into(),
        };
        assert!(text.contains(&expected), "{cut}: {text}");
    }

    // `patch` replaces a part of the header. The tests below need other types, too large shapes and invalid text.
    let patch = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("in the header");
        let mut bytes = bytes.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        let path = folder.path("patched.npy");
        fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let patched = |from: &str, to: &str| copy(&patch(from, to));
    assert!(patched("'<f4'", "'|O' ").contains("Python objects"));
    assert!(patched("(8, 8, )", "(9, 9, )").contains("truncated: [9, 9] <f4 are 324 bytes, the file has 256"));
    assert!(patched("(8, 8, ), }               ", "(4611686018427387904,8), }").contains("overflows"));
    assert!(patched("                ", "#?              ").starts_with("error: "));

    let text_file = patch("<f4", "<U1");
    let refused = |path: &str| refuses(&["run", "reduce", path]);
    let takes = "reduce takes integers and floats of up to 8 bytes, not";
    for name in ["<U1", "|S4"] {
        let text = refused(&patch("<f4", name));
        assert!(text.ends_with(&format!("{takes} text ({name})\n")), "{text}");
    }
    let text = refuses(&["run", "histogram", &good, "--range", "0", "2", "--weights", &text_file]);
    assert!(text.starts_with(&format!("error: {text_file}: histogram takes")), "{text}");
    let unwritable = folder.path("no such folder").join("out.npy");
    let text = refuses(&["run", "copy", &good, "-o", unwritable.to_str().expect("UTF-8")]);
    let reason = fs::File::create(&unwritable).expect_err("there is no such folder");
    assert!(text.contains(&format!("out.npy: {reason}")), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_pipe_does_not_panic() {
    let program = env!("CARGO_BIN_EXE_oclprim");
    let runner = program::runner();
    let folder = Folder::new();
    let copy = format!("run copy {} -o - --device cpu", folder.save("in.npy", &[1 << 20], &vec![7u32; 1 << 20]));
    for command in ["devices", "completions bash", "check --tiny --device cpu --only copy", &copy] {
        let script = format!("{runner} {program} {command} | head -c 1");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert_eq!(stderr(&output), "", "{command}");
    }
}

/// The reader has gone before the program starts. The other outputs and the exit code do not depend on it.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_pipe_loses_no_other_output() {
    let folder = Folder::new();
    let labels = folder.save("labels.npy", &[5], &[3u8, 3, 1, 1, 1]);
    let [values, record, page, again] = ["values.npy", "r.json", "p.html", "again.json"].map(|name| folder.name(name));
    let closed = |words: &str| {
        // `true` ends during the sleep, so the program writes to a pipe without a reader. The shell prints its exit
        // code to standard error.
        let script = format!("(sleep 0.2; $OCLPRIM {words}; echo $? >&2) | true; sleep 0");
        let done = program::shell(&script, &[]);
        stderr(&done)
    };
    assert_eq!(closed(&format!("run rle {labels} -o {values} --device cpu")), "0\n");
    assert_eq!(load::<u8>(std::path::Path::new(&values)), (vec![2], vec![3, 1]));
    assert_eq!(closed(&format!("check --tiny --device cpu --only copy --report {record}")), "0\n");
    let text = std::fs::read_to_string(&record).expect("a report");
    assert!(text.contains("\"complete\": true"), "{text}");
    assert_eq!(closed(&format!("report --from {record} --json - -o {page}")), "0\n");
    assert!(std::fs::read_to_string(&page).expect("a page").contains("</html>"));
    assert_eq!(
        closed(&format!("bench copy --form reverse --device cpu --type u32 --n 1000 --runs 1 --hot --json {again}")),
        "0\n"
    );
    assert!(std::path::Path::new(&again).exists());
    // A closed pipe does not hide an error: the exit code is still 2.
    assert!(closed("run copy nothing.npy --device cpu").ends_with("2\n"));
}

/// A driver that crashes or hangs at the first call must not affect the CPU.
#[test]
#[cfg(all(feature = "opencl", target_os = "linux"))]
fn the_cpu_calls_no_driver() {
    let folder = Folder::new();
    let x = folder.save("x.npy", &[3], &[1f32, 2.0, 3.0]);
    let aborts = common::fake::library("aborts", &[]);
    let run = |arguments: &[&str], selected: &str| {
        let start = std::time::Instant::now();
        let mut command = program(arguments);
        let output = command.env("OPENCL_LIBRARY", &aborts).env("OCLPRIM_DEVICE", selected).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{arguments:?}, {selected:?}: {}", stderr(&output));
        start.elapsed()
    };
    for selector in ["cpu", "0"] {
        run(&["run", "reduce", &x, "--device", selector], "");
        run(&["run", "reduce", &x], selector);
        run(&["check", "--tiny", "--only", "copy", "--device", selector], "");
        run(&["bench", "iota", "--n", "1000", "--device", selector], "");
    }
    // Other processes may keep the machine busy, so one fast run of many is enough.
    let limit = std::time::Duration::from_millis(20);
    let mut times = std::iter::repeat_with(|| run(&["run", "reduce", &x, "--device", "cpu"], "")).take(200);
    assert!(times.any(|time| time < limit), "200 runs took over {limit:?} each");
}

#[test]
#[cfg(all(feature = "opencl", target_os = "linux"))]
fn the_devices_command_names_a_library_that_does_not_open() {
    let named = |value: &str| {
        let output = program(&["devices"]).env("OPENCL_LIBRARY", value).output().expect("the program starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let text = named("/nonexistent/libOpenCL.so");
    let reason = "OPENCL_LIBRARY is `/nonexistent/libOpenCL.so`: the library does not open: ";
    assert!(text.contains(reason) && !text.contains("apt install"), "{text}");
}

#[test]
fn warm_fills_the_cache_and_clear_empties_it() {
    let folder = Folder::new();
    let run = |words: &[&str]| program(words).env("OCLPRIM_CACHE_DIR", folder.name("cache")).output().unwrap();
    assert!(stdout(&run(&["cache"])).starts_with("no cache"));
    let refused = run(&["warm", "--device", "cpu"]);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("has no kernels"), "{}", stderr(&refused));
    let Some(&device) = devices().get(1) else { return common::skip("warm", "no OpenCL device") };
    let warm =
        run(&[&["warm", "reduce", "scan", "--type", "u32", "--type", "f32", "--jobs", "2"][..], &device].concat());
    assert!(warm.status.success(), "{}", stderr(&warm));
    assert!(
        stdout(&warm).contains(": 4 calls in ") && stdout(&warm).contains(" by 2 processes; "),
        "{}",
        stdout(&warm)
    );
    let shown = || serde_json::from_str::<Value>(&stdout(&run(&["cache", "--json"]))).unwrap();
    let (programs, bytes) = (shown()["programs"].as_u64().unwrap(), shown()["bytes"].as_u64().unwrap());
    let text = stdout(&warm);
    let own_cache = text.contains("Portable Computing Language") || text.contains("Oclgrind");
    assert_eq!(text.contains("the crate keeps no programs of this driver"), own_cache, "{text}");
    assert_eq!(programs >= 4, !own_cache, "{programs}: {text}");
    assert!(bytes > 0 && shown()["self_tests"].as_u64() >= Some(1));
    // The second run finds every program in the cache.
    let again = stdout(&run(&[&["warm", "reduce", "--type", "u32"][..], &device].concat()));
    assert!(own_cache || again.contains("; 0 new programs, "), "{again}");
    assert!(stdout(&run(&["cache", "clear"])).contains(" entries removed from "));
    assert_eq!((shown()["programs"].as_u64(), shown()["bytes"].as_u64()), (Some(0), Some(0)));
}

/// With --part one process runs the checks; without, several.
#[test]
fn quick_checks_of_several_processes_are_those_of_one() {
    let Some(&device) = devices().get(1) else { return common::skip("check --quick", "no OpenCL device") };
    let counts = |more: &[&str]| {
        let words = [&["check", "--quick", "--only", "iota", "--form", "i", "--json"][..], &device, more].concat();
        let all: Value = serde_json::from_str(&succeeds(&words)).expect("JSON");
        let of = |report: &Value| (report["device"].clone(), report["forms"].clone(), report["skipped"].clone());
        (
            all["passed"].clone(),
            all["failed"].clone(),
            all["devices"].as_array().expect("a list").iter().map(of).collect::<Vec<_>>(),
        )
    };
    let one = counts(&["--part", "1/1"]);
    assert!(one.0.as_u64() > Some(0) && one.1 == 0, "{one:?}");
    assert_eq!(counts(&[]), one);
}

#[test]
fn warm_needs_a_cache_folder() {
    let Some(&device) = devices().get(1) else { return common::skip("warm", "no OpenCL device") };
    let words = [&["warm", "reduce", "--type", "u32"][..], &device].concat();
    let output = program(&words).env("OCLPRIM_CACHE_DIR", "").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("OCLPRIM_CACHE_DIR is empty"), "{}", stderr(&output));
    let output =
        program(&[&["warm", "--worker"][..], &device].concat()).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
}
