//! The files that others read: of `oclprim check --report`, and the page of `oclprim report`.

#[path = "common/program.rs"]
mod program;

use std::{env, fs, path::Path, time::Instant};

use program::{Folder, program, refuses, succeeds};
use serde_json::Value;

fn report(path: &Path, arguments: &[&str], set: &[(&str, &str)]) -> (String, Value) {
    let name = path.to_str().expect("UTF-8");
    let mut command = program(&[&["check", "--report", name], arguments].concat());
    let output = command.envs(set.iter().copied()).output().expect("the program starts");
    assert!(output.status.success(), "{}", program::stderr(&output));
    let text = fs::read_to_string(path).expect("the report");
    let value = serde_json::from_str(&text).expect("JSON");
    (text, value)
}

fn sum(items: &Value, name: &str) -> u64 {
    items.as_array().expect("a list").iter().map(|item| item[name].as_u64().expect("a count")).sum()
}

#[test]
fn a_check_report_has_the_device_and_all_counts() {
    let folder = Folder::new();
    let (_, all) = report(&folder.path("r.json"), &["--tiny", "--device", "cpu", "--only", "copy"], &[]);
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
    let folder = Folder::new();
    let home = folder.path("home-of-zyxwv");
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
        let (text, _) = report(&folder.path("r.json"), &arguments, &set);
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
    let start = Instant::now();
    for arguments in [&["check", "--full", "--device", "cpu", "--report"][..], &["report", "--device", "cpu", "-o"]] {
        let text = refuses(&[arguments, &["/no/such/folder/file"]].concat());
        assert!(text.starts_with("error: /no/such/folder/file: "), "{text}");
    }
    assert!(start.elapsed().as_secs() < 60, "after {:?}", start.elapsed());
}

#[test]
fn the_page_is_whole_and_says_why_the_cpu_has_no_ladders() {
    let folder = Folder::new();
    let path = folder.path("page.html");
    // No time for anything but the device: what is left out is said to be.
    succeeds(&["report", "--quick", "--seconds", "1", "--device", "cpu", "-o", path.to_str().expect("UTF-8")]);
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
