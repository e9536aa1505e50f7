//! The files that others read: of `oclprim check --report`, and the page of `oclprim report`.

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn oclprim(arguments: &[&str], set: &[(&str, &str)]) -> Output {
    let runner = env::var("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().chain([env!("CARGO_BIN_EXE_oclprim")]);
    let mut command = Command::new(words.next().expect("the program"));
    command.args(words).args(arguments).env_remove("OCLPRIM_DEVICE").envs(set.iter().copied());
    command.output().expect("the program starts")
}

fn report(path: &Path, arguments: &[&str], set: &[(&str, &str)]) -> (String, Value) {
    let name = path.to_str().expect("UTF-8");
    let output = oclprim(&[&["check", "--report", name], arguments].concat(), set);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(path).expect("the report");
    let value = serde_json::from_str(&text).expect("JSON");
    (text, value)
}

fn sum(items: &Value, name: &str) -> u64 {
    items.as_array().expect("a list").iter().map(|item| item[name].as_u64().expect("a count")).sum()
}

#[test]
fn a_check_report_has_the_device_and_all_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, all) = report(&folder.path().join("r.json"), &["--tiny", "--device", "cpu", "--only", "copy"], &[]);
    assert_eq!(
        (&all["format"], &all["version"], &all["level"]),
        (&1.into(), &env!("CARGO_PKG_VERSION").into(), &"tiny".into())
    );
    assert_eq!((&all["complete"], &all["limits"]["only"], &all["failed"]), (&true.into(), &"copy".into(), &0.into()));
    assert_eq!(all["os"]["family"], env::consts::OS);
    let device = &all["devices"][0];
    assert_eq!(
        (&device["platform"], &device["opencl"], &device["error"]),
        (&"rayon".into(), &false.into(), &Value::Null)
    );
    let geometries = &device["geometries"];
    assert_eq!(all["passed"].as_u64(), Some(sum(geometries, "passed")));
    let mut passed = 0;
    for form in geometries[0]["forms"].as_array().expect("forms") {
        assert_eq!(form["primitive"], "copy");
        passed += form["types"]
            .as_object()
            .expect("types")
            .values()
            .map(|counts| counts["passed"].as_u64().unwrap())
            .sum::<u64>();
    }
    assert!(passed > 10 && geometries[0]["passed"] == passed, "{passed}");
}

#[test]
fn a_check_report_names_no_path_user_or_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home-of-zyxwv");
    fs::create_dir(&home).expect("a folder");
    let home = home.to_str().expect("UTF-8");
    // A library of OpenCL that does not open: its path is in the error of the driver.
    let library = format!("{home}/no-such-library.so");
    let set = [
        ("HOME", home),
        ("USER", "zyxwv"),
        ("LOGNAME", "zyxwv"),
        ("HOSTNAME", "host-zyxwv"),
        ("OPENCL_LIBRARY", &library),
    ];
    for limits in [&["--device", "cpu"][..], &[]] {
        let arguments = [&["--tiny", "--only", "iota"], limits].concat();
        let (text, _) = report(&folder.path().join("r.json"), &arguments, &set);
        assert!(!text.contains("zyxwv") && !text.contains(home), "{text}");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        assert!(host.trim().len() < 4 || !text.contains(host.trim()), "{text}");
        for start in ["/home/", "/root/", "/tmp/", "/usr/", "/var/", "C:\\\\"] {
            assert!(!text.contains(start), "{start}: {text}");
        }
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_runs() {
    let start = std::time::Instant::now();
    for arguments in [&["check", "--full", "--device", "cpu", "--report"][..], &["report", "--device", "cpu", "-o"]] {
        let output = oclprim(&[arguments, &["/no/such/folder/file"]].concat(), &[]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with("error: /no/such/folder/file: ") && text.lines().count() == 1, "{text}");
    }
    assert!(start.elapsed().as_secs() < 60, "after {:?}", start.elapsed());
}

#[test]
fn the_page_is_whole_and_says_why_the_cpu_has_no_ladders() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    // No time for anything but the device: what is left out is said to be.
    let output =
        oclprim(&["report", "--quick", "--seconds", "1", "--device", "cpu", "-o", path.to_str().expect("UTF-8")], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(&path).expect("the page");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">") && page.ends_with("</html>"));
    for part in [
        "name=\"viewport\"",
        "prefers-color-scheme: dark",
        "There are no ladders here",
        "id=\"growth\"",
        "class=\"heat\"",
        "rayon / CPU",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["<script", "http://", "https://", "<link", "<img", "url("] {
        assert!(!page.contains(part), "{part}");
    }
    for chart in page.split("<svg").skip(1) {
        let (head, rest) = chart.split_once('>').expect("an end");
        assert!(head.contains("role=\"img\"") && head.contains("aria-label=\""), "{head}");
        assert!(rest.split_once("</svg>").expect("an end").1.contains("<details><summary>Data</summary>"));
    }
}
