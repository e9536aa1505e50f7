//! The caches of programs. An entry on disk serves only its own key, and no file in the folder hangs or misleads a process.
//! Both caches, on disk and in memory, are bounded.
#![cfg(all(feature = "opencl", unix))]

#[path = "common/child.rs"]
mod child;
#[path = "common/skips.rs"]
mod skips;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use oclprim::{
    Device,
    op::{Max, Min, Operator, Product, Sum},
    tuning::{Primitive, Row, SizeClass, TuningFile},
};

fn opencl_devices() -> Vec<Device> {
    (1..Device::list().len()).map(|index| Device::at(index).expect("it opens")).collect()
}

/// Returns true if there is no device to test.
fn nothing_here(test: &str) -> bool {
    let nothing = Device::list().len() == 1;
    if nothing {
        skips::skip(test, "no OpenCL device");
    }
    nothing
}

/// Each device's results on 1, 2, ... 5 for four operators, whose programs differ only in the operator.
fn answers() -> String {
    let mut text = String::new();
    for device in opencl_devices() {
        let x = device.upload(&[1u32, 2, 3, 4, 5]).unwrap();
        let by = [device.reduce(&x, Sum), device.reduce(&x, Max), device.reduce(&x, Min), device.reduce(&x, Product)];
        text += &format!("{:?}", by.map(Result::unwrap));
    }
    text
}

fn right_answers() -> String {
    "[15, 5, 1, 120]".repeat(Device::list().len() - 1)
}

/// A child process that prints [`answers`] and uses this cache folder.
fn user_of(test: &str, folder: &Path) -> Command {
    let mut child = child::child(test, "user");
    child.env("OCLPRIM_CACHE_DIR", folder).env_remove("OCLPRIM_DEVICE").env_remove("OCLPRIM_CACHE_BYTES");
    child
}

/// Runs a child. It must give the right answers within a minute, in which any driver builds every program.
fn runs_right(child: &mut Command) {
    let (answers, time) = child::run(child);
    assert_eq!(answers, right_answers());
    assert!(time < Duration::from_secs(60), "{time:?}");
}

/// The files in a folder, with their bytes.
fn entries(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).map(|files| files.map(|file| file.unwrap().path()).collect::<Vec<_>>());
    files.unwrap_or_default().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn an_entry_under_another_key_is_not_used() {
    const NAME: &str = "an_entry_under_another_key_is_not_used";
    if child::part().is_some() {
        return child::answer(answers());
    }
    if nothing_here(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    runs_right(&mut user_of(NAME, folder));
    // Stores a second self-test entry of the same device: other settings change the key, but not the payload.
    runs_right(user_of(NAME, folder).env("POCL_NO_SUCH_SETTING", "1").env("CL_CONFIG_NO_SUCH_SETTING", "1"));
    let good = entries(folder);
    assert!(good.len() >= 2, "{good:?}");
    let paths: Vec<_> = good.keys().collect();
    for shift in [1, paths.len() / 2, paths.len() - 1] {
        for (i, path) in paths.iter().enumerate() {
            fs::write(path, &good[paths[(i + shift) % paths.len()]]).unwrap();
        }
        runs_right(&mut user_of(NAME, folder));
        // Each used entry was rebuilt for its own key.
        let now = entries(folder);
        assert!(now.iter().any(|(path, bytes)| *bytes == good[path]), "shift {shift}");
        for (i, path) in paths.iter().enumerate() {
            let foreign = &good[paths[(i + shift) % paths.len()]];
            assert!(now[*path] == good[*path] || now[*path] == *foreign || now[*path][16..48] != foreign[16..48]);
        }
    }
    let digests: std::collections::BTreeSet<_> = good.values().map(|bytes| &bytes[16..48]).collect();
    assert_eq!(digests.len(), good.len(), "entries of equal payloads have equal digests");
}

type Put = fn(&Path);

/// Obstacles at an entry's path.
const OBSTACLES: [(&str, Put); 8] = [
    ("a link to an endless device", |path| symlink("/dev/zero", path).unwrap()),
    ("a FIFO", |path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap()),
    ("a file of 3 GB", |path| File::create(path).unwrap().set_len(3 << 30).unwrap()),
    ("a folder", |path| fs::create_dir(path).unwrap()),
    ("a dangling link", |path| symlink("/nonexistent/entry", path).unwrap()),
    ("a link to itself", |path| symlink(path, path).unwrap()),
    ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ("an empty file", |path| drop(File::create(path).unwrap())),
];

#[test]
fn obstacles_at_an_entrys_path_neither_hang_nor_are_followed() {
    const NAME: &str = "obstacles_at_an_entrys_path_neither_hang_nor_are_followed";
    if child::part().is_some() {
        return child::answer(answers());
    }
    if nothing_here(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    runs_right(&mut user_of(NAME, folder.path()));
    let good = entries(folder.path());
    for (what, put) in OBSTACLES {
        for path in good.keys() {
            if path.is_dir() {
                fs::remove_dir(path).unwrap()
            } else {
                fs::remove_file(path).unwrap()
            }
            put(path);
        }
        println!("{what}");
        runs_right(&mut user_of(NAME, folder.path()));
        for path in good.keys() {
            let found = fs::symlink_metadata(path).unwrap();
            assert!(found.is_file() && found.len() < 3 << 30 || what == "a folder", "{what} is still there");
        }
    }
    // A link at an entry's path is invalid, even if its target has the right bytes.
    let elsewhere = tempfile::tempdir().unwrap();
    for path in good.keys() {
        if path.is_dir() {
            fs::remove_dir(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
        let real = elsewhere.path().join(path.file_name().unwrap());
        fs::write(&real, &good[path]).unwrap();
        symlink(&real, path).unwrap();
    }
    runs_right(&mut user_of(NAME, folder.path()));
    assert!(good.keys().all(|path| fs::symlink_metadata(path).unwrap().is_file()));
    assert!(entries(elsewhere.path()).into_values().eq(good.into_values()), "the target of a link was written");
}

#[test]
fn the_folder_and_its_entries_belong_to_the_user_alone() {
    const NAME: &str = "the_folder_and_its_entries_belong_to_the_user_alone";
    if child::part().is_some() {
        rustix::process::umask(rustix::fs::Mode::empty());
        return child::answer(answers());
    }
    if nothing_here(NAME) {
        return;
    }
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("not yet").join("there");
    runs_right(&mut user_of(NAME, &folder));
    assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    let good = entries(&folder);
    assert!(!good.is_empty());
    assert!(good.keys().all(|path| mode(path) == 0o600));

    // An entry that other users can write is invalid.
    for path in good.keys() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o622)).unwrap();
    }
    runs_right(&mut user_of(NAME, &folder));
    assert!(good.keys().all(|path| mode(path) == 0o600));

    // A folder that other users can write is not used: nothing is read there and nothing is written.
    for others in [0o1777, 0o720, 0o702] {
        let open = outer.path().join(format!("{others:o}"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(others)).unwrap();
        runs_right(&mut user_of(NAME, &open));
        assert_eq!((entries(&open).len(), mode(&open)), (0, others & 0o777));
    }
    let readable = outer.path().join("755");
    fs::create_dir(&readable).unwrap();
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o755)).unwrap();
    runs_right(&mut user_of(NAME, &readable));
    assert_eq!(entries(&readable).len(), good.len());

    // The default folder belongs to the crate and is created for the user alone.
    let home = outer.path().join("home");
    let default = home.join("oclprim");
    fs::create_dir_all(&default).unwrap();
    fs::set_permissions(&default, fs::Permissions::from_mode(0o775)).unwrap();
    runs_right(user_of(NAME, Path::new("")).env_remove("OCLPRIM_CACHE_DIR").env("XDG_CACHE_HOME", &home));
    assert_eq!((entries(&default).len(), mode(&default)), (good.len(), 0o700));

    // Now a folder and entries belong to another user. Only root can create them.
    if rustix::process::geteuid().is_root() {
        let theirs = outer.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(12345), None).unwrap();
        runs_right(&mut user_of(NAME, &theirs));
        assert_eq!(entries(&theirs).len(), 0);
        for path in good.keys() {
            std::os::unix::fs::chown(path, Some(12345), None).unwrap();
        }
        runs_right(&mut user_of(NAME, &folder));
        assert!(good.keys().all(|path| fs::metadata(path).unwrap().uid() == 0), "another user's entry was used");
    } else {
        skips::skip(NAME, "only root can create files of another user");
    }
}

/// The name of an entry that belongs to no key.
fn entry(number: usize) -> String {
    format!("program-{number:032x}")
}

#[test]
fn the_least_recently_used_entries_are_evicted_first() {
    const NAME: &str = "the_least_recently_used_entries_are_evicted_first";
    if child::part().is_some() {
        return child::answer(answers());
    }
    if nothing_here(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let put = |name: &str, bytes: u64, days: u64| {
        let file = File::create(folder.join(name)).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
    };
    let is_there = |name: &str| folder.join(name).exists();
    // These files have 300 MiB. The default limit keeps at most 256.
    for i in 0..30 {
        put(&entry(i), 10 << 20, 40 - i as u64);
    }
    put("selftest-00000000000000000000000000000001", 10 << 20, 100);
    put(&entry(99), 65 << 20, 0);
    // One temporary file was abandoned by its writer, and the other belongs to an active writer.
    put(".oclprim-abandoned", 100, 1);
    put(".oclprim-written", 100, 0);
    // Files with other names do not belong to the cache.
    let others = ["program", "program-0", "thesis.txt", ".tmpX1", "program-000000000000000000000000000000zz"];
    for other in others {
        put(other, 20 << 20, 1000);
    }
    symlink("thesis.txt", folder.join(entry(98))).unwrap();
    runs_right(&mut user_of(NAME, folder));
    assert!(!is_there("selftest-00000000000000000000000000000001") && !is_there(&entry(99)), "unused, and too large");
    assert!(!is_there(".oclprim-abandoned") && is_there(".oclprim-written"));
    assert!(others.iter().all(|other| is_there(other)), "files of the user's are gone");
    let left: Vec<_> = (0..30).filter(|&i| is_there(&entry(i))).collect();
    assert!((20..26).contains(&left.len()) && left.last() == Some(&29), "{left:?}");
    assert!(
        left.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "entries other than the oldest were evicted: {left:?} are left"
    );

    // Use renews the time of an entry.
    let ours: Vec<_> = entries(folder).into_keys().filter(|path| fs::metadata(path).unwrap().len() < 5 << 20).collect();
    let old = SystemTime::now() - Duration::from_secs(999 * 86_400);
    ours.iter().for_each(|path| File::open(path).unwrap().set_modified(old).unwrap());
    runs_right(&mut user_of(NAME, folder));
    let used = ours.iter().filter(|path| fs::metadata(path).unwrap().modified().unwrap() > old).count();
    // The child uses the entry of the self-test. If the driver has no cache of its own, it also uses entries of programs,
    // but not those of the self-test's programs.
    assert!(used > 0 && used < ours.len(), "{used} of {}", ours.len());
}

#[test]
fn processes_that_share_a_cache_keep_its_bound() {
    const NAME: &str = "processes_that_share_a_cache_keep_its_bound";
    if let Some(part) = child::part() {
        // Each part has operators of its own, and each operator needs a program.
        for device in opencl_devices() {
            for i in 0..6 {
                let text = format!("a + b + {part} * {i} * 0");
                let sum = Operator::new("sum", 0u32, |a, b| a + b, &text);
                assert_eq!(device.reduce(&[1, 2, 3], &sum).unwrap(), 6);
            }
        }
        return child::answer("done");
    }
    if nothing_here(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let of = |limit: u64, part: usize| {
        let mut child = child::child(NAME, &part.to_string());
        child.env("OCLPRIM_CACHE_DIR", folder.path()).env("OCLPRIM_CACHE_BYTES", limit.to_string());
        child
    };
    let bytes = || entries(folder.path()).values().map(|bytes| bytes.len() as u64).sum::<u64>();
    assert_eq!(child::run(&mut of(0, 1)).0, "done");
    assert_eq!(bytes(), 0, "a bound of 0");
    assert_eq!(child::run(&mut of(1 << 30, 1)).0, "done");
    let all = bytes();
    assert!(all > 0);
    let limit = all / 2;
    let children: Vec<_> = (2..5).map(|part| of(limit, part).spawn().unwrap()).collect();
    for child in children {
        assert_eq!(child::value_of(&child.wait_with_output().unwrap()), "done");
    }
    // Since its last look at the folder, each process may have written a sixteenth of the limit and one more entry.
    let largest = entries(folder.path()).values().map(|bytes| bytes.len() as u64).max().unwrap_or(0);
    assert!(bytes() <= limit + 3 * (limit / 16 + largest), "{} of {limit}", bytes());
}

/// Resident anonymous bytes of this process. Pages of libraries come and go with the machine's memory.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn programs_of_many_operators_are_freed() {
    const NAME: &str = "programs_of_many_operators_are_freed";
    const MIB: usize = 1 << 20;
    if child::part().is_some() {
        for device in opencl_devices() {
            let reduce = |i: u32| {
                // No other test has these texts, so no program comes from disk. Otherwise the compiler could start, and take
                // its memory, only after `before`.
                let sum = Operator::new("sum", 0u32, move |a, b| a + b, &format!("a + b + {} * 0", 1000 + i));
                assert_eq!(device.reduce(&vec![1u32; 100_000], &sum).unwrap(), 100_000);
            };
            (0..10).for_each(reduce);
            let before = resident();
            (10..40).for_each(reduce);
            let each = resident().saturating_sub(before) as f64 / 30.0 / MIB as f64;
            println!("{}: {each:.2} MiB each", device.info());
            assert!(each < 0.5, "{}: {each:.2} MiB each", device.info());
            // An evicted program is built again.
            (0..3).for_each(reduce);
        }
        return child::answer("done");
    }
    if nothing_here(NAME) {
        return;
    }
    let mut child = child::child(NAME, "operators");
    let output = child.env("OCLPRIM_CACHE_PROGRAMS", "4").output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(child::value_of(&output), "done");
}

/// A program is evicted while its launches are pending and while other threads launch it.
#[test]
fn programs_in_use_outlive_their_eviction() {
    const NAME: &str = "programs_in_use_outlive_their_eviction";
    if child::part().is_some() {
        for device in opencl_devices() {
            let x = device.upload(&vec![1u32; 1 << 20]).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..3u32 {
                    let (device, x) = (&device, &x);
                    scope.spawn(move || {
                        let mut out = device.zeroed::<u32>(1).unwrap();
                        for i in 0..12 {
                            let text = format!("a + b + {} * 0", i + thread);
                            let sum = Operator::new("sum", 0u32, |a, b| a + b, &text);
                            device.reduce_into(x, &sum, &mut out).unwrap();
                            // The kernels of the previous call may still run.
                            device.reduce_into(x, Max, &mut out).unwrap();
                            device.reduce_into(x, &sum, &mut out).unwrap();
                            assert_eq!(out.to_vec().unwrap(), [1 << 20]);
                        }
                    });
                }
            });
        }
        return child::answer("done");
    }
    if nothing_here(NAME) {
        return;
    }
    if Device::list().iter().any(|info| info.platform.contains("Oclgrind")) {
        return skips::skip(NAME, "Oclgrind runs one kernel at a time");
    }
    assert_eq!(child::run(child::child(NAME, "threads").env("OCLPRIM_CACHE_PROGRAMS", "1")).0, "done");
}

#[test]
fn obstacles_at_the_tuning_path_neither_hang_nor_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.json");
    let lock = folder.path().join("tuning.json.lock");
    let row = Row::new(&Device::cpu().info(), Primitive::Sort, 4, SizeClass::Small, [("items", 512)]);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (what, put) in OBSTACLES {
            for place in [&path, &lock] {
                let remove = || if place.is_dir() { fs::remove_dir(place) } else { fs::remove_file(place) };
                let _ = remove();
                put(place);
                let (read, update) = (TuningFile::read(&path), TuningFile::update(&path, |file| file.put(&row)));
                let refused = what != "a dangling link" && *place == path;
                assert_eq!(read.is_err(), refused, "{what} at {place:?}");
                assert!(update.is_err() || what == "a dangling link" || *place == lock, "{what} at {place:?}");
                remove().unwrap();
            }
            sender.send(what).unwrap();
        }
    });
    for (what, _) in OBSTACLES {
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(what), "it hangs");
    }
}

/// The sum of a map with each of these captured values.
#[cfg(feature = "macros")]
fn scaled(device: &Device, scales: &[f32]) -> Vec<f32> {
    use oclprim::{Source, map};

    let x = device.upload(&[1.0f32, 2.0, 3.0]).unwrap();
    let sum = |&scale| device.reduce(x.map(map!(move |x: f32| scale * x, scale: f32)), Sum).unwrap();
    scales.iter().map(sum).collect()
}

/// For each captured limit: the number of elements above it, plus ten times the number of elements that equal it.
#[cfg(feature = "macros")]
fn above(device: &Device, limits: &[f32]) -> Vec<f32> {
    use oclprim::map;

    let x = device.upload(&[1.0f32, 2.0, 3.0]).unwrap();
    let found = |&limit: &f32| {
        let (above, equal) = (map!(move |x: f32| x > limit, limit: f32), map!(move |x: f32| x == limit, limit: f32));
        let count = device.count(&x, &above).unwrap();
        let selected = device.select(&x, &above).unwrap().len();
        let indices = device.select_indices::<_, u32, _>(&x, &above).unwrap().len();
        let (_, parts) = device.partition(&x, (&above, &equal)).unwrap();
        assert_eq!((selected as u64, indices, parts[0]), (count, selected, selected));
        assert_eq!((device.any(&x, &above).unwrap(), device.all(&x, &above).unwrap()), (count > 0, count == 3));
        (count as usize + 10 * parts[1]) as f32
    };
    limits.iter().map(found).collect()
}

/// Asserts that calls with three captured values build as many programs as calls with the first of them. On drivers
/// whose binaries are kept, the folder has one entry for each build.
#[cfg(feature = "macros")]
fn builds_for_one_value(name: &str, calls: fn(&Device, &[f32]) -> Vec<f32>, cases: [(f32, f32); 3]) {
    let cases = |part: &str| if part == "one" { cases[..1].to_vec() } else { cases.to_vec() };
    if let Some(part) = child::part() {
        let values: Vec<f32> = cases(&part).iter().map(|case| case.0).collect();
        let found: Vec<_> = opencl_devices().iter().map(|device| calls(device, &values)).collect();
        return child::answer(format!("{found:?}"));
    }
    if nothing_here(name) {
        return;
    }
    let builds = ["one", "three"].map(|part| {
        let folder = tempfile::tempdir().unwrap();
        let mut child = child::child(name, part);
        child.env("OCLPRIM_CACHE_DIR", folder.path()).env_remove("OCLPRIM_DEVICE").env_remove("OCLPRIM_CACHE_BYTES");
        let want: Vec<f32> = cases(part).iter().map(|case| case.1).collect();
        assert_eq!(child::run(&mut child).0, format!("{:?}", vec![want; opencl_devices().len()]));
        entries(folder.path()).len()
    });
    assert_eq!(builds[0], builds[1]);
}

#[cfg(feature = "macros")]
#[test]
fn another_captured_value_needs_no_new_build() {
    let cases = [0.5, 4.0, -2.0].map(|scale| (scale, 6.0 * scale));
    builds_for_one_value("another_captured_value_needs_no_new_build", scaled, cases);
}

#[cfg(feature = "macros")]
#[test]
fn another_captured_value_of_a_condition_needs_no_new_build() {
    let cases = [(0.5, 3.0), (2.0, 11.0), (3.0, 10.0)];
    builds_for_one_value("another_captured_value_of_a_condition_needs_no_new_build", above, cases);
}
