//! Files that the program reads and writes, on every system.

#[path = "common/program.rs"]
mod program;

use std::{fs, path::Path};

use program::{Folder, load, names, program, refuses, stderr, succeeds};

/// Number of elements of a file that may be mapped; a file of few bytes is always read.
const LARGE: usize = 100_000;

#[test]
fn names_may_have_spaces_and_letters_of_every_script() {
    for name in ["a b.npy", "größe ß.npy", "данные.npy", "数据 1.npy", "x'y&z.npy"] {
        let folder = Folder::new();
        let inner = folder.path("ordner mit größe");
        fs::create_dir(&inner).expect("a folder");
        let input = folder.save(name, &[3], &[3i32, 1, 2]);
        let output = inner.join(name);
        succeeds(&["run", "sort", &input, "-o", output.to_str().expect("UTF-8"), "--device", "cpu"]);
        assert_eq!(load::<i32>(&output), (vec![3], vec![1, 2, 3]), "{name}");
        fs::remove_file(&input).expect("the input");
        let error = refuses(&["run", "sort", &input, "--device", "cpu"]);
        assert!(error.contains(name), "{name}: {error}");
    }
}

#[test]
fn relative_names_are_those_of_the_current_folder() {
    let folder = Folder::new();
    folder.save("in.npy", &[3], &[3i32, 1, 2]);
    fs::create_dir(folder.path("inner")).expect("a folder");
    let separators: &[&str] = if cfg!(windows) { &["/", "\\"] } else { &["/"] };
    for separator in separators {
        let output = ["inner", separator, "out.npy"].concat();
        let input = [".", separator, "in.npy"].concat();
        let mut command = program(&["run", "sort", &input, "-o", &output, "--device", "cpu"]);
        let done = command.current_dir(folder.0.path()).output().expect("the program starts");
        assert!(done.status.success(), "{output}: {}", stderr(&done));
        assert_eq!(load::<i32>(&folder.path("inner").join("out.npy")).1, [1, 2, 3]);
        assert_eq!(names(&folder.path("inner")), ["out.npy"]);
        fs::remove_file(folder.path("inner").join("out.npy")).expect("the output");
    }
}

#[test]
fn an_input_of_any_size_may_be_the_output() {
    for n in [3, LARGE] {
        let folder = Folder::new();
        let values: Vec<u32> = (0..n as u32).rev().collect();
        let input = folder.save("in.npy", &[n as u64], &values);
        succeeds(&["run", "sort", &input, "-o", &input, "--device", "cpu"]);
        assert!(load::<u32>(Path::new(&input)).1.into_iter().eq(0..n as u32));
        // Both inputs are the output.
        succeeds(&["run", "merge", &input, "--with", &input, "-o", &input, "--device", "cpu"]);
        assert!(load::<u32>(Path::new(&input)).1.into_iter().eq((0..2 * n as u32).map(|i| i / 2)));
        assert_eq!(names(folder.0.path()), ["in.npy"]);
    }
}

#[test]
fn an_output_replaces_an_old_file_and_leaves_no_other() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[LARGE as u64], &vec![7u32; LARGE]);
    let output = folder.path("out.npy");
    for old in [&b"old"[..], &vec![1; 3 << 20]] {
        fs::write(&output, old).expect("a file");
        succeeds(&["run", "copy", &input, "-o", output.to_str().expect("UTF-8"), "--device", "cpu"]);
        assert!(load::<u32>(&output).1 == vec![7; LARGE]);
    }
    assert_eq!(names(folder.0.path()), ["in.npy", "out.npy"]);
}

/// Two spellings of a name are one file, also before it exists.
#[test]
#[cfg(windows)]
fn names_that_differ_in_case_are_one_output() {
    let folder = Folder::new();
    let input = folder.save("labels.npy", &[3], &[1u8, 1, 2]);
    folder.save("Held.npy", &[1], &[9u8]);
    fs::create_dir(folder.path("Inner")).expect("a folder");
    let before = names(folder.0.path());
    for (values, lengths) in [
        ("new.npy", "NEW.npy"),
        ("held.npy", "HELD.NPY"),
        ("größe.npy", "GRÖßE.npy"),
        ("new.npy", ".\\new.npy"),
        ("Inner\\new.npy", "inner/NEW.npy"),
        ("new.npy", "Inner\\..\\new.npy"),
    ] {
        let mut command = program(&["run", "rle", &input, "-o", values, "--lengths", lengths, "--device", "cpu"]);
        let output = command.current_dir(folder.0.path()).output().expect("the program starts");
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{values} {lengths}: {error}");
        assert!(error.contains("-o and --lengths are one file, "), "{values} {lengths}: {error}");
        assert_eq!(names(folder.0.path()), before);
    }
}

#[test]
fn the_null_device_takes_every_output_and_stays() {
    let folder = Folder::new();
    let input = folder.save("labels.npy", &[3], &[1u8, 1, 2]);
    let names: &[&str] = if cfg!(windows) { &["NUL", "nul"] } else { &["/dev/null"] };
    for name in names {
        let mut command = program(&["run", "rle", &input, "-o", name, "--lengths", name, "--device", "cpu"]);
        let done = command.current_dir(folder.0.path()).output().expect("the program starts");
        assert!(done.status.success(), "{name}: {}", stderr(&done));
    }
    assert_eq!(program::names(folder.0.path()), ["labels.npy"]);
}

#[test]
#[cfg(feature = "opencl")]
fn without_a_library_the_devices_command_gives_one_line_and_the_cpu_works() {
    let folder = Folder::new();
    let input = folder.save("in.npy", &[3], &[3i32, 1, 2]);
    for missing in [folder.name("none.dll"), "none.dll".into(), "inner/none.dll".into()] {
        let run = |arguments: &[&str]| {
            let output = program(arguments).env("OPENCL_LIBRARY", &missing).output().expect("the program starts");
            assert!(output.status.success(), "{missing}: {}", stderr(&output));
            program::stdout(&output)
        };
        let text = run(&["devices"]);
        let reasons: Vec<_> = text.lines().filter(|line| line.starts_with("No OpenCL device: ")).collect();
        assert_eq!(reasons.len(), 1, "{text}");
        assert!(reasons[0].contains(&format!("OPENCL_LIBRARY is `{missing}`: the library does not open: ")), "{text}");
        assert_eq!(text.lines().last(), Some(reasons[0]), "{text}");
        assert_eq!(run(&["run", "sort", &input]).trim(), "1 2 3");
        assert_eq!(run(&["run", "sort", &input, "--device", "cpu"]).trim(), "1 2 3");
    }
}

/// A stranger's folder of data can also contain a library. A name without a path must not open that library.
#[test]
#[cfg(all(windows, feature = "opencl"))]
fn a_library_in_the_current_folder_is_opened_only_by_its_path() {
    let [folder, empty] = [(); 2].map(|()| Folder::new());
    fs::write(folder.path("mine.dll"), "no library").expect("a file");
    let told = |name: &str, folder: &Folder| {
        let mut command = program(&["devices"]);
        let output = command.current_dir(folder.0.path()).env("OPENCL_LIBRARY", name).output();
        program::stdout(&output.expect("the program starts"))
    };
    assert_eq!(told("mine.dll", &folder), told("mine.dll", &empty));
    assert_ne!(told(".\\mine.dll", &folder), told(".\\mine.dll", &empty));
}
