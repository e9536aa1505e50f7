//! Files that a user gives to others: the report of `oclprim check --report`, and the page of `oclprim report`.

#[path = "common/program.rs"]
mod program;

use std::{env, fs, path::Path, sync::OnceLock, time::Instant};

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
    // This OpenCL library does not open, and the error contains its path.
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
    for arguments in [
        &["check", "--full", "--only", "copy", "--device", "cpu", "--report"][..],
        &["report", "--device", "cpu", "-o"],
    ] {
        let text = refuses(&[arguments, &["/no/such/folder/file"]].concat());
        assert!(text.starts_with("error: /no/such/folder/file: "), "{text}");
    }
    assert!(start.elapsed().as_secs() < 60, "after {:?}", start.elapsed());
}

#[test]
fn the_page_is_whole_and_says_why_the_cpu_has_no_ladders() {
    let folder = Folder::new();
    let path = folder.path("page.html");
    // One second is enough for some measurements.
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

/// Files with the figures of a sum at two sizes and the checks of copies, on the CPU backend. All callers get copies of one run.
fn records(folder: &Folder) -> [String; 2] {
    static MADE: OnceLock<[String; 2]> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = Folder::new();
        let paths = ["bench.json", "checks.json"].map(|name| folder.name(name));
        let rows = ["--row", "reduce sum i32 2^10", "--row", "reduce sum i32 2^12"];
        succeeds(&[&["bench", "--device", "cpu", "--runs", "3", "--hot", "--json", &paths[0]][..], &rows].concat());
        succeeds(&["check", "--tiny", "--device", "cpu", "--only", "copy", "--report", &paths[1]]);
        paths.map(|path| fs::read_to_string(path).expect("a record"))
    });
    let paths = ["bench.json", "checks.json"].map(|name| folder.name(name));
    for (path, text) in paths.iter().zip(made) {
        fs::write(path, text).expect("a file");
    }
    paths
}

#[test]
fn records_make_a_page_with_their_figures() {
    let folder = Folder::new();
    let [bench, checks] = records(&folder);
    let [page, all, again] = ["page.html", "all.json", "again.html"].map(|name| folder.name(name));
    let text = succeeds(&["report", "--from", &bench, "--from", &checks, "-o", &page, "--json", &all]);
    let value = |path: &str| serde_json::from_str::<Value>(&fs::read_to_string(path).expect("a record")).expect("JSON");
    let passed = value(&checks)["passed"].as_u64().expect("a count");
    assert_eq!(text, format!("{page}: {passed} passed, 0 failed, 0 skipped\n"));
    let html = fs::read_to_string(&page).expect("the page");
    let marks = [("class=\"bar\"", 1), ("<polyline", 1), ("class=\"point\"", 2)];
    for (mark, count) in marks {
        assert_eq!(html.matches(mark).count(), count, "{mark}");
    }
    assert!(html.contains(&format!("{passed} passed, 0 failed, 0 skipped")) && html.contains("from records"), "{html}");
    let written =
        value(&bench)["lines"].as_array().expect("lines").iter().find(|line| line["n"] == 4096).expect("2^12").clone();
    assert_eq!(value(&all)["bandwidths"][0]["sample"], written["sample"]);
    assert_eq!((&value(&all)["cold"], &value(&all)["checks"]["level"]), (&false.into(), &"tiny".into()));
    // The records of a page make the same page again, except for its origin.
    succeeds(&["report", "--from", &all, "-o", &again]);
    let again = fs::read_to_string(&again).expect("the page").replace("from records: from records", "from records");
    assert_eq!(again, html);
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let [bench, checks] = records(&folder);
    let write = |name: &str, text: &str| {
        let path = folder.path(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let text = fs::read_to_string(&checks).expect("the record");
    let tiny = "\"level\": \"tiny\"";
    assert!(text.contains(tiny) && text.contains("\"name\": \"CPU\""));
    let quick = write("quick.json", &text.replace(tiny, "\"level\": \"quick\""));
    let other = write("other.json", &text.replace("\"name\": \"CPU\"", "\"name\": \"another\""));
    let cold = write(
        "cold.json",
        &fs::read_to_string(&bench).expect("the record").replace("\"cold\": false", "\"cold\": true"),
    );
    let not_json = write("not.json", "<html>");
    let lines = write("lines.json", "{\"lines\": 3}");
    let page = folder.name("page.html");
    for (files, says) in [
        ([&checks, &quick], "checks of level quick, but the files before it have level tiny"),
        ([&bench, &other], "no device in common"),
        ([&bench, &cold], "measured with cold caches, but the files before it with warm caches"),
        ([&bench, &not_json], "not.json: not a file of `bench --json`"),
        ([&bench, &lines], "lines.json: not a file of `bench --json`"),
        ([&bench, &page], "page.html: "),
    ] {
        let text = refuses(&["report", "-o", &page, "--from", files[0], "--from", files[1]]);
        assert!(text.contains(says), "{says}: {text}");
    }
    assert!(!Path::new(&page).exists());
    let text = refuses(&["report", "-o", &page, "--from", &bench, "--device", "gpu"]);
    assert!(text.contains("no device in common whose name contains `gpu`"), "{text}");
}

#[test]
fn wrong_results_of_records_are_reported() {
    let folder = Folder::new();
    let [bench, _] = records(&folder);
    let text = fs::read_to_string(&bench).expect("the record").replacen("\"wrong\": false", "\"wrong\": true", 1);
    fs::write(&bench, text).expect("a file");
    let page = folder.path("page.html");
    let output = program::oclprim(&["report", "--from", &bench, "-o", page.to_str().expect("UTF-8")]);
    assert_eq!((output.status.code(), program::stderr(&output).as_str()), (Some(1), "error: 1 results are wrong\n"));
    assert!(fs::read_to_string(page).expect("the page").contains("1 results are wrong"));
}
