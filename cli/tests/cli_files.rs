//! Files that the program writes, complete or not at all, and files that it reads.
#![cfg(unix)]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "common/program.rs"]
mod program;

use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use serde_json::Value;

use program::{
    Folder, devices, load, names, oclprim, program, refuses, runner, shell, stderr, stdout, succeeds, words,
};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The single line of standard error of a failed program.
fn fails(output: &Output) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
    text
}

#[test]
fn a_failed_write_keeps_the_old_file_and_leaves_no_other() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[100_000], &[7u32; 100_000]);
    let output = folder.path("out.npy");
    fs::write(&output, "precious").expect("a file");
    let before = names(folder.0.path());
    // The limit is in blocks of 512 bytes: it allows 200 KiB of the 400 KiB.
    let limited = |words: &str, target: &str| {
        fails(&shell(&format!("ulimit -f 400; $OCLPRIM run {words} -o \"$2\" --device cpu"), &[&input, target]))
    };
    for words in ["copy \"$1\"", "sort \"$1\"", "scan \"$1\"", "iota 100000", "random 100000"] {
        let error = limited(words, text(&output));
        assert!(error.contains("out.npy: File too large"), "{words}: {error}");
        assert_eq!(fs::read(&output).expect("the old file"), b"precious", "{words}");
        assert_eq!(names(folder.0.path()), before, "{words}");
    }
    let new = folder.path("new.npy");
    limited("copy \"$1\"", text(&new));
    assert_eq!(names(folder.0.path()), before);
    // The input is also the old file here, and stays unchanged.
    let held = fs::read(&input).expect("the input");
    limited("copy \"$1\"", &input);
    assert_eq!(fs::read(&input).expect("the input"), held);
}

#[test]
fn outputs_are_replaced_only_when_all_are_complete() {
    let folder = Folder::new();
    // Values of 1 byte fit the limit, lengths of 8 bytes do not.
    let labels: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    let input = folder.save("labels.npy", &[100_000], &labels);
    for name in ["values.npy", "lengths.npy"] {
        fs::write(folder.path(name), name).expect("a file");
    }
    let before = names(folder.0.path());
    let script = "ulimit -f 400; $OCLPRIM run rle \"$1\" -o \"$2\" --lengths \"$3\" --device cpu";
    let [values, lengths] = ["values.npy", "lengths.npy"].map(|name| folder.path(name));
    let error = fails(&shell(script, &[&input, text(&values), text(&lengths)]));
    assert!(error.contains("lengths.npy: File too large"), "{error}");
    let archive = folder.path("runs.npz");
    let error =
        fails(&shell("ulimit -f 400; $OCLPRIM run rle \"$1\" -o \"$2\" --device cpu", &[&input, text(&archive)]));
    assert!(error.contains("runs.npz: File too large"), "{error}");
    for name in ["values.npy", "lengths.npy"] {
        assert_eq!(fs::read(folder.path(name)).expect("the old file"), name.as_bytes());
    }
    assert_eq!(names(folder.0.path()), before);
}

#[test]
fn a_killed_program_keeps_the_old_file() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    for round in 0..3 {
        fs::write(&output, "precious").expect("a file");
        let words = ["run", "iota", "2^25", "--device", "cpu", "-o", text(&output)];
        let mut child = program(&words).stdout(Stdio::null()).spawn().expect("the program starts");
        let child_id = child.id();
        let start = Instant::now();
        // Waits until a part of the new file is written. On Linux it may have no name yet.
        let started = |name: &String| {
            let len = fs::metadata(folder.path(name)).map_or(8, |found| found.len());
            if name == "out.npy" { len != 8 } else { len > round << 20 }
        };
        let written = || {
            let counts = fs::read_to_string(format!("/proc/{child_id}/io")).unwrap_or_default();
            let bytes = counts.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse::<u64>().ok());
            bytes.is_some_and(|bytes| bytes > round << 20)
        };
        while !written() && !names(folder.0.path()).iter().any(started) {
            assert!(start.elapsed() < Duration::from_secs(100), "no new file");
            if child.try_wait().expect("its state").is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it can be killed");
        let status = child.wait().expect("its state");
        let found = fs::read(&output).expect("a file");
        assert!(found == b"precious" || status.success() && found.len() > 1 << 28, "{} bytes", found.len());
        for name in names(folder.0.path()).iter().filter(|name| *name != "out.npy") {
            assert!(name.starts_with(".oclprim-") && name.ends_with(".tmp"), "{name}");
            fs::remove_file(folder.path(name)).expect("a part of a file");
        }
    }
}

/// The array is mapped by the time the program waits for its second input.
#[test]
fn a_mapped_file_that_is_cut_short_is_an_error_and_leaves_no_output() {
    const N: usize = 100_000;
    let folder = Folder::new();
    let (output, fifo) = (folder.path("out.npy"), folder.path("indices.npy"));
    let indices = fs::read(folder.save("few.npy", &[2], &[0u32, N as u32 - 1])).expect("a file");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let whole = 4 * N as u64 + 128;
    // If the file ends earlier in its last page, the rest would read as zeros. If it ends before that page, a read raises a
    // signal.
    let regrown = u64::MAX;
    for (cut, want) in [
        (0, None),
        (4, Some("cut short while it was read")),
        (whole - 4096, Some("was cut short")),
        (regrown, Some("changed while it was read")),
    ] {
        let input = folder.save("in.npy", &[N as u64], &[7u32; N]);
        let file = fs::OpenOptions::new().write(true).open(&input).expect("the input");
        let before = file.metadata().expect("its length").len();
        let words = ["run", "gather", &input, "--indices", text(&fifo), "-o", text(&output), "--device", "cpu"];
        let child = program(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        // The program opens the pipe after it has mapped the input; this waits until then.
        let mut pipe = fs::OpenOptions::new().write(true).open(&fifo).expect("the pipe");
        if cut == regrown {
            file.set_len(0).expect("an empty file");
            file.set_len(before).expect("a file of zeros");
        } else if cut > 0 {
            file.set_len(before - cut).expect("a shorter file");
        }
        pipe.write_all(&indices).expect("the pipe takes them");
        drop(pipe);
        let found = child.wait_with_output().expect("its end");
        match want {
            None => assert_eq!(load::<u32>(&output).1, [7, 7], "{}", stderr(&found)),
            Some(why) => {
                assert!(fails(&found).contains(why), "cut by {cut}: {}", stderr(&found));
                assert!(!output.exists(), "cut by {cut}");
            }
        }
        let _ = fs::remove_file(&output);
    }
    assert_eq!(names(folder.0.path()), ["few.npy", "in.npy", "indices.npy"]);
}

/// Several threads of the CPU backend read the mapped array here, and several of them can get the signal.
#[test]
fn a_file_that_is_cut_short_is_an_error_of_a_reduction() {
    const N: usize = 1 << 22;
    let folder = Folder::new();
    let (input, fifo) = (folder.save("in.npy", &[N as u64], &vec![7u32; N]), folder.path("offsets.npy"));
    let offsets = fs::read(folder.save("ends.npy", &[2], &[0u32, N as u32])).expect("a file");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let words = ["run", "reduce", &input, "--segments", text(&fifo), "--device", "cpu"];
    let mut program = program(&words);
    program.env("RAYON_NUM_THREADS", "16").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().expect("the program starts");
    let mut pipe = fs::OpenOptions::new().write(true).open(&fifo).expect("the pipe");
    fs::OpenOptions::new().write(true).open(&input).expect("the input").set_len(1 << 20).expect("a shorter file");
    pipe.write_all(&offsets).expect("the pipe takes them");
    drop(pipe);
    let found = child.wait_with_output().expect("its end");
    assert!(fails(&found).contains("was cut short"), "{}", stderr(&found));
    assert_eq!(stdout(&found), "");
}

/// A copy writes the mapped pages themselves, and the system refuses pages that have gone.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_cut_short_while_it_is_copied_is_named() {
    const N: usize = 1 << 22;
    let folder = Folder::new();
    let (input, fifo) = (folder.save("in.npy", &[N as u64], &vec![7u32; N]), folder.path("out.npy"));
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let words = ["run", "copy", &input, "-o", text(&fifo), "--device", "cpu"];
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut pipe = fs::OpenOptions::new().read(true).custom_flags(flags).open(&fifo).expect("the pipe");
    let mut child = program(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // The pipe holds less than the array, so the program still writes when the first bytes arrive.
    let (mut piece, mut cut) = ([0; 4096], false);
    while child.try_wait().expect("its state").is_none() {
        match pipe.read(&mut piece) {
            Ok(1..) if !cut => {
                let file = fs::OpenOptions::new().write(true).open(&input).expect("the input");
                file.set_len(1 << 20).expect("a shorter file");
                cut = true;
            }
            Ok(1..) => {}
            Ok(0) | Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
    assert!(cut);
    let found = child.wait_with_output().expect("its end");
    assert!(fails(&found).contains("in.npy: "), "{}", stderr(&found));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_keeps_the_old_file() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[1 << 20], &vec![7u32; 1 << 20]);
    let small = folder.save("small.npy", &[1 << 17], &vec![7u32; 1 << 17]);
    let full = |words: &[&str]| {
        let error = fails(&oclprim(&[&["run"], words, &["-o", "/dev/full", "--device", "cpu"]].concat()));
        assert!(error.contains("/dev/full: No space left on device"), "{words:?}: {error}");
    };
    full(&["copy", &input]);
    full(&["scan", &small]);
    // A disk of its own needs a namespace, which a container may refuse.
    let disk = |script: &str, name: &str, input: &str| {
        fs::create_dir_all(folder.path("disk")).expect("a folder");
        let script = format!("mount -t tmpfs -o size=$4k none \"$1\" && {script}");
        let program = words(&runner(), &[]).join(" ");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script, "sh", text(&folder.path("disk")), input, name, "256"]);
        command.env("OCLPRIM", program).env_remove("OCLPRIM_DEVICE").output()
    };
    if !disk("true", "", "").is_ok_and(|done| done.status.success()) {
        return common::skip("a_full_disk_is_an_error_and_keeps_the_old_file", "no mount in a namespace");
    }
    // The program reserves room for the larger array, so it fails before its first write. For the smaller array and for
    // archives it reserves none, so a write fails.
    for (input, name) in [(&input, "out.npy"), (&small, "out.npy"), (&input, "out.npz"), (&small, "out.npz")] {
        let script = "echo old > \"$1/$3\"; $OCLPRIM run copy \"$2\" -o \"$1/$3\" --device cpu; echo $?; cd \"$1\"; ls -A; cat *";
        let done = disk(script, name, input).expect("unshare runs");
        assert_eq!(stdout(&done), format!("2\n{name}\nold\n"), "{}", stderr(&done));
        let error = stderr(&done);
        assert!(error.contains(&format!("{name}: No space left on device")) && error.lines().count() == 1, "{error}");
    }
}

/// Ends a thread when it is dropped, also by a failed assertion.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer overwrites the mapped input again and again, and sets a new modification time after each piece. The result can
/// mix old and new elements. If the program finds the change, it fails and names the file; it does not blame the device.
/// No kernel writes beyond its buffers. A run during which the writer waits succeeds.
#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    const NAME: &str = "a_file_that_changes_while_it_is_read_is_an_error";
    const N: usize = 1 << 20;
    let folder = Folder::new();
    let input = folder.save("in.npy", &[N as u64], &vec![0u32; N]);
    let listed: Value = serde_json::from_str(&succeeds(&["devices", "--json"])).expect("JSON");
    let listed = listed.as_array().expect("a list");
    if !listed.iter().any(|device| device["opencl"] == true && device["type"] == "cpu") {
        common::skip(NAME, "no OpenCL driver for CPUs, which could read the file in place");
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let file = fs::OpenOptions::new().read(true).write(true).open(&input).expect("the input");
            // SAFETY: no process truncates the file, and this one reads no bytes of it.
            let mut map = unsafe { memmap2::MmapMut::map_mut(&file) }.expect("the input is mapped");
            let (mut value, mut writes) = (0, 0);
            while !ended.load(Ordering::Relaxed) {
                value = !value;
                for piece in map[128..].chunks_mut(1 << 16) {
                    piece.fill(value);
                    writes += 1;
                    // Stores change no time, and the times of writes may be equal for milliseconds.
                    file.set_modified(UNIX_EPOCH + Duration::from_secs(writes)).expect("the file's owner");
                }
            }
            writes
        });
        let ends = Ends(&ended);
        let mut changed = 0;
        for device in (0..listed.len()).map(|index| index.to_string()) {
            for command in ["sort", "scan", "reduce"] {
                for round in 0..2 {
                    let words = ["run", command, &input, "--verify", "--device", &device];
                    let done = oclprim(&words);
                    if !done.status.success() {
                        let error = fails(&done);
                        assert!(error.contains("in.npy: changed while it was read"), "{words:?}, {round}: {error}");
                        changed += 1;
                    }
                }
            }
        }
        drop(ends);
        assert!(changed > 0, "no run saw a change");
        assert!(writer.join().expect("it ends") > 10);
    });
}

/// The reader of a pipe sees one document, whole, and the program does not wait for a second reader.
#[test]
fn a_report_to_a_pipe_is_one_document() {
    let folder = Folder::new();
    let (pipe, record) = (folder.path("pipe"), folder.path("record.json"));
    let script =
        "mkfifo \"$1\"; timeout 60 cat \"$1\" & timeout 100 $OCLPRIM $3 \"$1\" $4 > \"$2.log\"; echo \"code $?\"; wait";
    let piped = |words: &str, rest: &str| {
        let _ = fs::remove_file(&pipe);
        let done = shell(script, &[text(&pipe), text(&record), words, rest]);
        let found = stdout(&done);
        // `cat` may end before or after the program.
        assert!(found.contains("code 0\n"), "{words}: {found} {}", stderr(&done));
        found.replacen("code 0\n", "", 1)
    };
    let bench = piped("bench copy --form reverse --device cpu --type u32 --n 1000 --runs 1 --hot --json", "");
    let documents = |text: &str| text.matches("\"lines\": [").count();
    assert_eq!(documents(&bench), 1, "{bench}");
    fs::write(&record, &bench).expect("a record");
    let check = piped("check --tiny --device cpu --only copy --report", "");
    assert_eq!((check.matches("\"complete\": ").count(), check.contains("\"complete\": true")), (1, true), "{check}");
    let page = piped("report -o", &format!("--from {}", text(&record)));
    assert!(page.contains("<html") && page.trim_end().ends_with("</html>"), "{page}");
}

/// The error comes before the checks, which may take minutes.
#[test]
fn a_pipe_that_cannot_be_written_is_an_error_at_the_start() {
    const NAME: &str = "a_pipe_that_cannot_be_written_is_an_error_at_the_start";
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    let script = "mkfifo \"$1\"; chmod 0 \"$1\"; test -w \"$1\" && exit 77; timeout 100 $OCLPRIM $2 \"$1\"";
    for words in ["check --tiny --device cpu --only copy --report", "report --device cpu -o"] {
        let _ = fs::remove_file(&pipe);
        let done = shell(script, &[text(&pipe), words]);
        if done.status.code() == Some(77) {
            return common::skip(NAME, "this user may write each file");
        }
        let error = fails(&done);
        assert!(error.contains("pipe: Permission denied"), "{words}: {error}");
        assert_eq!(stdout(&done), "", "{words}: it did more before the error");
    }
}

/// Bytes of anonymous memory, as the system counts them.
#[cfg(target_os = "linux")]
fn anonymous_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_file_with_a_small_result_takes_little_memory() {
    let folder = Folder::new();
    // A file with a hole, which takes no disk: 512 MiB, or 8 GiB for the level `full`.
    let full = std::env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("full");
    let input = folder.save("in.npy", &[0], &[0f64; 0]);
    let n = 1u64 << if full { 30 } else { 26 };
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n},)}}");
    let mut header = format!("{header:<117}\n").into_bytes();
    header.splice(0..0, *b"\x93NUMPY\x01\x00\x76\x00");
    assert_eq!(header.len(), 128);
    fs::write(&input, &header).expect("a header");
    let file = fs::OpenOptions::new().write(true).open(&input).expect("the input");
    file.set_len(128 + 8 * n).expect("a file with a hole");
    for words in [&["reduce"][..], &["count"], &["reduce", "--op", "arg-max"]] {
        let words = [&["run", words[0], &input, "--device", "cpu"], &words[1..]].concat();
        let mut child = program(&words).stdout(Stdio::null()).spawn().expect("the program starts");
        let (mut most, mut polls) = (0, 0);
        while child.try_wait().expect("its state").is_none() {
            if let Some(bytes) = anonymous_memory(child.id()) {
                (most, polls) = (most.max(bytes), polls + 1);
            }
            thread::sleep(Duration::from_millis(2));
        }
        assert!(child.wait().expect("its end").success(), "{words:?}");
        assert!(polls > 0 && most < 64 << 20, "{words:?}: {most} bytes in {polls} polls");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn progress_is_shown_on_a_terminal_only() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[3], &[3i32, 1, 2]);
    let fifo = folder.path("pipe.npy");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    // The command waits for its input for longer than a second.
    let slow = |run: &str| {
        let script = format!("(exec 3> \"$2\"; sleep 2; cat \"$1\" >&3) & {run}; wait");
        shell(&script, &[&input, text(&fifo)])
    };
    let redirected = slow("$OCLPRIM run sort \"$2\" --device cpu");
    assert_eq!((stdout(&redirected), stderr(&redirected)), ("1 2 3\n".into(), String::new()));
    if !shell("command -v script", &[]).status.success() {
        return common::skip("progress_is_shown_on_a_terminal_only", "no program `script`");
    }
    // `script` runs a command on a terminal of its own.
    let shown = slow("script -qec \"$OCLPRIM run sort $2 --device cpu\" /dev/null < /dev/null");
    let shown = stdout(&shown);
    assert!(shown.contains(" 1s") && shown.trim_end().ends_with("1 2 3"), "{shown:?}");
    let start = Instant::now();
    let quick = shell("script -qec \"$OCLPRIM run sort $1 --device cpu\" /dev/null < /dev/null", &[&input]);
    // On a slow machine even this takes a second.
    if start.elapsed().as_secs_f64() < 0.9 {
        assert_eq!(stdout(&quick), "1 2 3\r\n");
    }
}

#[test]
fn the_input_may_be_the_output() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[3], &[3i32, 1, 2]);
    succeeds(&["run", "sort", &input, "-o", &input, "--device", "cpu"]);
    assert_eq!(load::<i32>(Path::new(&input)), (vec![3], vec![1, 2, 3]));
    succeeds(&["run", "rle", &input, "-o", &input, "--lengths", text(&folder.path("n.npy")), "--device", "cpu"]);
    assert_eq!(load::<u64>(&folder.path("n.npy")), (vec![3], vec![1, 1, 1]));
    let order = folder.save("order.npy", &[3], &[2u32, 1, 0]);
    succeeds(&["run", "gather", &input, "--indices", &order, "-o", &order, "--device", "cpu"]);
    assert_eq!(load::<i32>(Path::new(&order)), (vec![3], vec![3, 2, 1]));
}

#[test]
fn replaced_files_keep_their_permissions_and_links() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[2], &[1u8, 2]);
    let copy = |to: &Path| oclprim(&["run", "copy", &input, "-o", text(to), "--device", "cpu"]);
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let old = folder.path("old.npy");
    for bits in [0o600, 0o640, 0o666, 0o755] {
        fs::write(&old, "old").expect("a file");
        fs::set_permissions(&old, Permissions::from_mode(bits)).expect("its owner");
        assert!(copy(&old).status.success());
        assert_eq!(mode(&old), bits);
        assert_eq!(load::<u8>(&old).1, [1, 2]);
    }
    let made =
        shell("umask 027; $OCLPRIM run copy \"$1\" -o \"$2\" --device cpu", &[&input, text(&folder.path("new.npy"))]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(mode(&folder.path("new.npy")), 0o640);
    // A link stays a link, whether its target exists or not.
    fs::create_dir(folder.path("inner")).expect("a folder");
    for name in ["old.npy", "inner/absent.npy"] {
        let link = folder.path("link.npy");
        symlink(name, &link).expect("a link");
        assert!(copy(&link).status.success());
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(load::<u8>(&folder.path(name)).1, [1, 2]);
        fs::remove_file(&link).expect("a link");
    }
    symlink("circle.npy", folder.path("circle.npy")).expect("a link");
    assert!(stderr(&copy(&folder.path("circle.npy"))).starts_with("error: "));
    assert!(fails(&copy(&folder.path("inner"))).contains("Is a directory"));
    assert!(fails(&copy(&folder.path("none/out.npy"))).contains("out.npy: No such file"));
}

#[test]
fn special_files_are_written_directly() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[2], &[1u8, 2]);
    succeeds(&["run", "copy", &input, "-o", "/dev/null", "--device", "cpu"]);
    assert!(!fs::metadata("/dev/null").expect("a device").is_file());
    let whole = [1, 2];
    for name in ["/dev/stdout", "/proc/self/fd/1", "-"] {
        let output = oclprim(&["run", "copy", &input, "-o", name, "--device", "cpu"]);
        assert!(
            output.stdout.starts_with(b"\x93NUMPY") && output.stdout.ends_with(&whole),
            "{name}: {}",
            stderr(&output)
        );
    }
    // If standard output is a file, the program writes to the file that the shell opened.
    let script = "(echo before; $OCLPRIM run copy \"$1\" -o $3 --device cpu; echo behind >> \"$2\") > \"$2\"";
    for name in ["/dev/stdout", "-"] {
        let log = folder.path("log");
        assert!(shell(script, &[&input, text(&log), name]).status.success());
        let found = fs::read(&log).expect("the shell's file");
        assert!(found.starts_with(b"before\n\x93NUMPY") && found.ends_with(b"behind\n"), "{name}: {found:?}");
    }
    let script = "mkfifo \"$2\"; $OCLPRIM run copy \"$1\" -o \"$2\" --device cpu & cat \"$2\"; wait";
    let piped = shell(script, &[&input, text(&folder.path("pipe"))]);
    assert!(piped.stdout.ends_with(&whole), "{}", stderr(&piped));
}

#[test]
fn one_file_as_two_outputs_is_refused() {
    let folder = Folder::new();
    let input = folder.save("labels.npy", &[3], &[1u8, 1, 2]);
    let held = folder.save("held.npy", &[1], &[9u8]);
    fs::create_dir(folder.path("inner")).expect("a folder");
    symlink("inner", folder.path("other")).expect("a link");
    symlink("new.npy", folder.path("link.npy")).expect("a link");
    fs::hard_link(&held, folder.path("hard.npy")).expect("a link");
    symlink("held.npy", folder.path("soft.npy")).expect("a link");
    let before = names(folder.0.path());
    let refused = |values: &str, lengths: &str| {
        let mut command = program(&["run", "rle", &input, "-o", values, "--lengths", lengths, "--device", "cpu"]);
        let output = command.current_dir(folder.0.path()).output().expect("the program starts");
        let error = fails(&output);
        assert!(error.contains("-o and --lengths are the same file, "), "{values} {lengths}: {error}");
        assert_eq!(names(folder.0.path()), before);
        assert_eq!(load::<u8>(Path::new(&held)).1, [9]);
    };
    let absolute = folder.path("new.npy");
    for (values, lengths) in [
        ("new.npy", "new.npy"),
        ("new.npy", "./new.npy"),
        ("new.npy", "inner/../new.npy"),
        ("new.npy", text(&absolute)),
        ("new.npy", "link.npy"),
        ("inner/new.npy", "other/new.npy"),
        ("held.npy", "hard.npy"),
        ("held.npy", "soft.npy"),
        ("hard.npy", "soft.npy"),
        ("-", "-"),
        ("-", "/dev/stdout"),
        ("/dev/stdout", "/proc/self/fd/1"),
    ] {
        refused(values, lengths);
        refused(lengths, values);
    }
    // Printed values go to standard output as well.
    assert!(refuses(&["run", "rle", &input, "--lengths", "-"]).contains("same file"));
    assert!(refuses(&["run", "rle", &input, "-o", "-"]).contains("same file"));
    let output = shell("$OCLPRIM run rle \"$1\" -o \"$2\" > \"$2\"", &[&input, text(&folder.path("printed.npy"))]);
    assert!(fails(&output).contains("same file"), "{}", stderr(&output));
    // Two different files stay separate, and data for a device file is dropped.
    for (values, lengths) in [("v.npy", "n.npy"), ("inner/v.npy", "v.npy"), ("/dev/null", "/dev/null"), ("v.npy", "-")]
    {
        let mut command = program(&["run", "rle", &input, "-o", values, "--lengths", lengths, "--device", "cpu"]);
        let output = command.current_dir(folder.0.path()).output().expect("the program starts");
        assert!(output.status.success(), "{values} {lengths}: {}", stderr(&output));
    }
    assert_eq!(load::<u8>(&folder.path("v.npy")).1, [1, 2]);
}

#[test]
fn a_report_does_not_overwrite_standard_output() {
    let folder = Folder::new();
    let report = folder.path("report.json");
    let bench = "$OCLPRIM bench reduce --device cpu --n 64 --type i32 --form sum --runs 1 --hot --json \"$1\"";
    assert!(
        fails(&shell(&format!("{bench} > \"$1\""), &[text(&report)]))
            .contains("standard output and --json are the same file")
    );
    fs::write(&report, "old").expect("a file");
    let output = shell(&format!("ulimit -f 0; {bench} | cat"), &[text(&report)]);
    assert!(stderr(&output).contains("report.json: File too large"), "{}", stderr(&output));
    assert_eq!(fs::read(&report).expect("the old report"), b"old");
    assert_eq!(names(folder.0.path()), ["report.json"]);
    // An earlier report may be replaced by the one that is compared with it.
    let run = |more: &str| shell(&format!("{bench} {more}"), &[text(&report)]);
    assert!(run("").status.success());
    let again = run("--compare \"$1\"");
    assert!(again.status.success() && stdout(&again).contains("speedup"), "{}", stderr(&again));
}

#[test]
fn the_tuning_file_cannot_be_the_report() {
    let folder = Folder::new();
    if devices().len() == 1 {
        return common::skip("the_tuning_file_cannot_be_the_report", "no OpenCL device");
    }
    let tuning = folder.path("tuning.json");
    let mut command = program(&["tune", "copy", "--device", "opencl", "--type", "u8", "--json", text(&tuning)]);
    let error = fails(&command.env("OCLPRIM_TUNING", &tuning).output().expect("the program starts"));
    assert!(error.contains("the tuning file and --json are the same file"), "{error}");
    assert_eq!(names(folder.0.path()), [""; 0]);
}

#[test]
fn standard_input_and_output_can_be_files() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[2, 2], &[4i32, 3, 2, 1]);
    let sorted = folder.path("sorted.npy");
    let script = "$OCLPRIM run copy - -o - --device cpu < \"$1\" | $OCLPRIM run sort - -o \"$2\" --device cpu";
    let output = shell(script, &[&input, text(&sorted)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(load::<i32>(&sorted), (vec![4], vec![1, 2, 3, 4]));
    let piped = |words: &str, bytes: &[u8]| {
        let words: Vec<_> = words.split(' ').chain(["--device", "cpu"]).collect();
        let mut command = program(&words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
        // The program may refuse the input before it has read all of it.
        let _ = child.stdin.take().expect("its input").write_all(bytes);
        child.wait_with_output().expect("its end")
    };
    let bytes = fs::read(&input).expect("the input");
    assert_eq!(stdout(&piped("run reduce -", &bytes)), "10\n");
    assert_eq!(stdout(&piped("run reduce /dev/stdin --op max", &bytes)), "4\n");
    assert_eq!(stdout(&piped(&format!("run search {} --needles -", text(&sorted)), &bytes)), "3 2\n1 0\n");
    assert!(fails(&piped("run reduce -", &[])).contains("-: not a .npy file"));
    assert!(fails(&piped("run reduce -", &bytes[..bytes.len() - 1])).contains("are 16 bytes, the file has 15 of them"));
    assert!(fails(&piped("run reduce -", &[&bytes[..], &bytes[..]].concat())).contains("more bytes follow the array"));
    assert!(
        fails(&piped("run merge - --with -", &bytes))
            .contains("standard input is one array, which has been read already")
    );
}

/// Writes a .npy file with this header text and data; returns its path.
fn raw(folder: &Folder, name: &str, text: &str, data: &[u8]) -> String {
    let path = folder.path(name);
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    fs::write(&path, [&bytes, text.as_bytes(), data].concat()).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

/// Files whose elements lie at odd addresses in the page cache, large enough to be mapped otherwise.
#[test]
fn elements_at_odd_offsets_are_read() {
    const N: usize = 50_000;
    let folder = Folder::new();
    let elements: Vec<u32> = (0..N as u32).collect();
    for pad in [1, 2, 3, 7] {
        let text = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({N},)}}{:pad$}\n", "");
        let input = raw(&folder, "odd.npy", &text, bytemuck::cast_slice(&elements));
        let data = fs::metadata(&input).expect("its length").len() as usize - 4 * N;
        let output = folder.path("out.npy");
        succeeds(&["run", "copy", &input, "-o", self::text(&output), "--device", "cpu"]);
        assert!(load::<u32>(&output).1 == elements, "from byte {data} on");
        let largest = succeeds(&["run", "reduce", &input, "--op", "max", "--device", "cpu"]);
        assert_eq!(largest, "49999\n", "from byte {data} on");
    }
}

#[test]
fn hostile_headers_are_refused_at_once() {
    let folder = Folder::new();
    let deep = "(".repeat(5_000);
    for text in
        ["[".repeat(24), "[".repeat(9_999), deep.clone(), format!("{{'descr': {deep}"), format!("{{'shape': {deep}")]
    {
        let path = raw(&folder, "deep.npy", &text, &[]);
        let start = Instant::now();
        let error = refuses(&["run", "reduce", &path]);
        assert!(error.contains("deep.npy: ") && error.len() < 1000, "{error}");
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}

#[test]
fn every_command_reads_each_byte_and_axis_order() {
    let folder = Folder::new();
    // The files hold one i2 array: in C order, in Fortran order, and in both with swapped bytes.
    let values = [5i16, -1, 300, 7, 0, 2];
    let shape = "'shape': (2, 3)";
    let little = |order: [usize; 6]| order.iter().flat_map(|&i| values[i].to_le_bytes()).collect::<Vec<_>>();
    let big = |order: [usize; 6]| order.iter().flat_map(|&i| values[i].to_be_bytes()).collect::<Vec<_>>();
    let (c, fortran) = ([0, 1, 2, 3, 4, 5], [0, 3, 1, 4, 2, 5]);
    let plain = raw(&folder, "plain.npy", &format!("{{'descr': '<i2', 'fortran_order': False, {shape}}}"), &little(c));
    let others = [
        raw(&folder, "fortran.npy", &format!("{{'descr': '<i2', 'fortran_order': True, {shape}}}"), &little(fortran)),
        raw(&folder, "big.npy", &format!("{{'descr': '>i2', 'fortran_order': False, {shape}}}"), &big(c)),
        raw(&folder, "both.npy", &format!("{{'descr': '>i2', 'fortran_order': True, {shape}}}"), &big(fortran)),
    ];
    let indices = folder.save("indices.npy", &[6], &[5u8, 4, 3, 2, 1, 0]);
    let ordered = folder.save("ordered.npy", &[2], &[-3i16, 4]);
    let offsets = folder.save("offsets.npy", &[2], &[0u16, 6]);
    let commands: [(&str, &[&str]); 20] = [
        ("reduce", &["--axis", "0"]),
        ("reduce", &["--op", "arg-max"]),
        ("reduce", &["--segments", &offsets]),
        ("count", &[]),
        ("statistics", &["--axis", "1"]),
        ("scan", &[]),
        ("scan", &["--axis", "0"]),
        ("sort", &["--indices"]),
        ("select", &["--above", "1"]),
        ("unique", &[]),
        ("rle", &["--lengths", "/dev/null"]),
        ("topk", &["--k", "2", "--rows"]),
        ("quantile", &["--q", "0.5"]),
        ("transpose", &[]),
        ("permute", &["--axes", "1,0"]),
        ("histogram", &["--range", "-10", "10", "--bins", "4"]),
        ("copy", &[]),
        ("reverse", &[]),
        ("gather", &["--indices", &indices]),
        ("scatter", &["--indices", &indices]),
    ];
    let output = folder.path("out.npy");
    let run = |input: &str, (name, more): (&str, &[&str])| {
        succeeds(&[&["run", name, input, "-o", text(&output), "--device", "cpu", "--verify"], more].concat());
        fs::read(&output).expect("an output")
    };
    for command in commands {
        let want = run(&plain, command);
        for other in &others {
            assert_eq!(run(other, command), want, "{command:?} of {other}");
        }
    }
    for other in &others {
        let needles = |from: &str| run(&ordered, ("search", &["--needles", from]));
        assert_eq!(needles(other), needles(&plain));
    }
}

#[test]
fn every_command_reads_arrays_of_many_axes() {
    let folder = Folder::new();
    let output = folder.path("out.npy");
    let values: Vec<u16> = (0..1 << 12).collect();
    // One array has 12 axes of length 2, and the other has 64 axes, most of length 1.
    let mut long = vec![1u64; 64];
    (long[3], long[20], long[63]) = (8, 32, 16);
    for shape in [vec![2; 12], long] {
        let input = folder.save("many.npy", &shape, &values);
        let run = |words: &[&str]| {
            succeeds(
                &[&["run", words[0], &input, "-o", text(&output), "--device", "cpu", "--verify"], &words[1..]].concat(),
            );
        };
        let axes: Vec<_> = (0..shape.len()).rev().map(|axis| axis.to_string()).collect();
        run(&["permute", "--axes", &axes.join(",")]);
        let (reversed, found) = load::<u16>(&output);
        assert!(reversed.iter().eq(shape.iter().rev()));
        for (i, &value) in values.iter().enumerate() {
            let (mut left, mut at, mut step) = (i, 0, 1);
            // The last axis of the input becomes the first axis of the output.
            let mut index = vec![0; shape.len()];
            for axis in (0..shape.len()).rev() {
                index[axis] = left % shape[axis] as usize;
                left /= shape[axis] as usize;
            }
            for axis in 0..shape.len() {
                at += index[axis] * step;
                step *= shape[axis] as usize;
            }
            assert_eq!(found[at], value, "{index:?}");
        }
        for axis in ["0", "3", "-1"] {
            run(&["reduce", "--axis", axis]);
            run(&["scan", "--axis", axis]);
            assert_eq!(load::<u64>(&output).0, shape);
            run(&["statistics", "--axis", axis]);
            for op in ["min-max", "arg-min", "xor"] {
                run(&["reduce", "--axis", axis, "--op", op]);
            }
        }
        run(&["reverse"]);
        run(&["topk", "--rows", "--k", "1"]);
        // This is the same array in Fortran order.
        let text_of = |lengths: &[u64]| lengths.iter().map(|n| format!("{n}, ")).collect::<String>();
        run(&["copy"]);
        let whole = fs::read(&output).expect("an output");
        let data: Vec<u8> = found.iter().flat_map(|value| value.to_le_bytes()).collect();
        let header = format!("{{'descr': '<u2', 'fortran_order': True, 'shape': ({})}}", text_of(&shape));
        raw(&folder, "many.npy", &header, &data);
        run(&["copy"]);
        assert_eq!(fs::read(&output).expect("an output"), whole);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_larger_than_memory_is_refused_in_one_line() {
    let folder = Folder::new();
    let input = folder.save("large.npy", &[1 << 24], &vec![1u8; 1 << 24]);
    let header = "{'descr': '>f8', 'fortran_order': True, 'shape': (1024, 2048)}";
    let fortran = raw(&folder, "fortran.npy", header, &vec![1u8; 1 << 24]);
    let commands: [&[&str]; 11] = [
        &["reduce", &input, "--op", "max"],
        &["reduce", &fortran, "--axis", "1"],
        &["copy", &fortran],
        &["sort", &input],
        &["select", &input, "--indices"],
        &["scan", &input, "--flags", &input],
        &["gather", &input, "--indices", &input],
        &["search", &fortran, "--needles", &input],
        &["histogram", &input, "--range", "0", "256"],
        &["histogram", &input, "--bins", "2", "--weights", &input],
        &["rle", &fortran, "--lengths", "/dev/null"],
    ];
    // The program's own size counts against the limit, and unoptimised builds are many times larger.
    let program = fs::metadata(env!("CARGO_BIN_EXE_oclprim")).expect("the program").len() >> 10;
    let script = "ulimit -v $1; shift; exec \"$@\" --device cpu";
    let (mut held, mut refused) = (0, 0);
    // Commands with enough memory take long in unoptimised builds, so only the first three get that much.
    let scarce = [20_000, 40_000].into_iter().flat_map(|more| commands.map(|words| (more, words)));
    for (more, words) in scarce.chain(commands[..3].iter().map(|words| (70_000, *words))) {
        let limit = (program + more).to_string();
        let words = [&[limit.as_str(), env!("CARGO_BIN_EXE_oclprim"), "run"], words, &["-o", "/dev/null"]].concat();
        let done = shell(script, &words);
        if done.status.success() {
            held += 1;
        } else {
            let error = fails(&done);
            assert!(error.contains("memory"), "{limit} KiB, {words:?}: {error}");
            refused += 1;
        }
    }
    assert!(held > 0 && refused > commands.len(), "{held} held, {refused} refused");
}

/// A result in small pieces fills memory to the last bytes. The program can then lack memory for the text of an error.
#[test]
#[cfg(target_os = "linux")]
fn results_in_pieces_are_refused_in_one_line_when_memory_is_short() {
    let folder = Folder::new();
    let input = folder.save("rising.npy", &[1 << 20], &(0..1 << 20).collect::<Vec<u32>>());
    let words = [env!("CARGO_BIN_EXE_oclprim"), "run", "merge", &input, "--with", &input, "--keep", "union"];
    let limited = |mib: u64| {
        let limit = (mib << 10).to_string();
        // Stacks count against the limit, too. Those of many threads would take far more of it than the result.
        let script = "ulimit -v $1; shift; RAYON_NUM_THREADS=2 exec \"$@\" -o /dev/null --device cpu";
        shell(script, &[&[limit.as_str()], &words[..]].concat())
    };
    // Below this limit the loader cannot start the program.
    let starts = (4..1024).step_by(4).find(|&mib| limited(mib).status.code() == Some(2)).expect("a limit");
    let mut refused = 0;
    // Within 6 MiB of that limit the program cannot keep memory free, and the C library can end it.
    for mib in (starts + 6..starts + 30).step_by(2) {
        let done = limited(mib);
        if !done.status.success() {
            let error = stderr(&done);
            assert_eq!(done.status.code(), Some(2), "{mib} MiB, {starts} to start: {error}");
            let one_line = error.starts_with("error: ") && error.lines().count() == 1;
            assert!(one_line && error.contains("memory"), "{mib} MiB: {error}");
            refused += 1;
        }
    }
    assert!((3..12).contains(&refused), "{refused} of 12 refused");
}
