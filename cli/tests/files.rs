//! Files that the program reads and writes, on every system.

#[path = "common/program.rs"]
mod program;

use std::{fs, path::Path};

use program::{Folder, arrays, load, names, program, refuses, stderr, succeeds};

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

/// An array with its name, its type as NumPy writes it, its shape, and the values as `f64`.
type Named<'a> = (&'a str, &'a str, &'a [u64], &'a [f64]);

#[test]
fn archives_have_all_results_of_a_command_by_name() {
    let folder = Folder::new();
    let output = folder.path("out.NPZ");
    let labels = folder.save("labels.npy", &[5], &[4i16, 4, -2, 9, 9]);
    let samples = folder.save("samples.npy", &[2, 3], &[0.5f32, 2.5, f32::NAN, 1.0, 7.0, -3.0]);
    let whole = folder.save("whole.npy", &[2, 3], &[0.5f32, 2.5, 1.5, 1.0, 7.0, -3.0]);
    let large = folder.save("large.npy", &[2], &[u64::MAX - 1, 1]);
    let weights = folder.save("weights.npy", &[5], &[1.5f64, 1.0, 2.0, 4.0, 8.0]);
    let edges = folder.save("edges.npy", &[3], &[-2i16, 4, 8]);
    let nan = f64::NAN;
    let commands: [(&[&str], &[Named<'_>]); 14] = [
        (&["rle", &labels], &[("values", "<i2", &[3], &[4.0, -2.0, 9.0]), ("lengths", "<u8", &[3], &[2.0, 1.0, 2.0])]),
        (
            &["topk", &labels, "--k", "2", "--smallest", "--sorted"],
            &[("values", "<i2", &[2], &[-2.0, 4.0]), ("indices", "<i8", &[2], &[2.0, 0.0])],
        ),
        (
            &["topk", &whole, "--k", "1", "--rows", "--indices"],
            &[("values", "<f4", &[2, 1], &[2.5, 7.0]), ("indices", "<i8", &[2, 1], &[1.0, 1.0])],
        ),
        (&["sort", &labels], &[("values", "<i2", &[5], &[-2.0, 4.0, 4.0, 9.0, 9.0])]),
        (
            &["sort", &labels, "--descending", "--indices"],
            &[
                ("values", "<i2", &[5], &[9.0, 9.0, 4.0, 4.0, -2.0]),
                ("indices", "<i8", &[5], &[3.0, 4.0, 0.0, 1.0, 2.0]),
            ],
        ),
        (
            &["histogram", &samples, "--bins", "2", "--range", "0", "3"],
            &[
                ("counts", "<u8", &[2], &[2.0, 1.0]),
                ("edges", "<f8", &[3], &[0.0, 1.5, 3.0]),
                ("outside", "<u8", &[3], &[1.0, 1.0, 1.0]),
            ],
        ),
        (
            &["histogram", &labels, "--bins", "2", "--range", "-2", "9"],
            &[
                ("counts", "<u8", &[2], &[1.0, 2.0]),
                ("edges", "<f8", &[3], &[-2.0, 3.5, 9.0]),
                ("outside", "<u8", &[3], &[0.0, 2.0, 0.0]),
            ],
        ),
        (
            &["histogram", &labels, "--bins", "5"],
            &[
                ("counts", "<u8", &[5], &[0.0, 0.0, 0.0, 0.0, 2.0]),
                ("edges", "<f8", &[6], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
                ("outside", "<u8", &[3], &[1.0, 2.0, 0.0]),
            ],
        ),
        (
            &["histogram", &labels, "--edges", &edges, "--weights", &weights],
            &[
                ("sums", "<f8", &[2], &[2.0, 2.5]),
                ("edges", "<f8", &[3], &[-2.0, 4.0, 8.0]),
                ("outside", "<f8", &[3], &[0.0, 12.0, 0.0]),
            ],
        ),
        (
            &["histogram", &whole, "--channels", "--bins", "1", "--range", "0", "3"],
            &[
                ("counts", "<u8", &[3, 1], &[2.0, 1.0, 1.0]),
                ("edges", "<f8", &[2], &[0.0, 3.0]),
                ("outside", "<u8", &[3], &[1.0, 1.0, 0.0]),
            ],
        ),
        (
            &["statistics", &samples],
            &[
                ("count", "<u8", &[], &[6.0]),
                ("nan", "<u8", &[], &[1.0]),
                ("min", "<f4", &[], &[nan]),
                ("max", "<f4", &[], &[nan]),
                ("arg_min", "<i8", &[], &[2.0]),
                ("arg_max", "<i8", &[], &[2.0]),
                ("sum", "<f8", &[], &[nan]),
                ("mean", "<f8", &[], &[nan]),
                ("variance", "<f8", &[], &[nan]),
            ],
        ),
        (
            &["statistics", &large],
            &[
                ("count", "<u8", &[], &[2.0]),
                ("nan", "<u8", &[], &[0.0]),
                ("min", "<u8", &[], &[1.0]),
                ("max", "<u8", &[], &[u64::MAX as f64]),
                ("arg_min", "<i8", &[], &[1.0]),
                ("arg_max", "<i8", &[], &[0.0]),
                ("sum", "<u8", &[], &[u64::MAX as f64]),
                ("mean", "<f8", &[], &[u64::MAX as f64 / 2.0]),
                ("variance", "<f8", &[], &[(u64::MAX as f64 / 2.0).powi(2)]),
            ],
        ),
        (
            &["statistics", &whole, "--axis", "1"],
            &[
                ("sum", "<f8", &[2], &[4.5, 5.0]),
                ("mean", "<f8", &[2], &[1.5, 5.0 / 3.0]),
                ("variance", "<f8", &[2], &[2.0 / 3.0, 59.0 / 3.0 - 25.0 / 9.0]),
            ],
        ),
        (&["reduce", &whole, "--axis", "0"], &[("arr_0", "<f4", &[3], &[1.5, 9.5, -1.5])]),
    ];
    for (words, want) in commands {
        let words = [&["run"], words, &["-o", output.to_str().expect("UTF-8"), "--device", "cpu", "--verify"]].concat();
        succeeds(&words);
        let found = arrays(&output);
        assert!(found.iter().map(|(name, _)| name).eq(want.iter().map(|(name, ..)| name)), "{words:?}");
        for ((name, bytes), (_, dtype, shape, values)) in found.iter().zip(want) {
            let file = npyz::NpyFile::new(&bytes[..]).expect("a header");
            assert_eq!((file.dtype().descr(), file.shape()), (format!("'{dtype}'"), *shape), "{words:?}: {name}");
            let found: Vec<f64> = match *dtype {
                "<i2" => file.into_vec::<i16>().expect("values").into_iter().map(f64::from).collect(),
                "<f4" => file.into_vec::<f32>().expect("values").into_iter().map(f64::from).collect(),
                "<i8" => file.into_vec::<i64>().expect("values").into_iter().map(|x| x as f64).collect(),
                "<u8" => file.into_vec::<u64>().expect("values").into_iter().map(|x| x as f64).collect(),
                _ => file.into_vec::<f64>().expect("values"),
            };
            // The sum of f32 along an axis is its mean times its length, which rounds.
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs() || a.is_nan() && b.is_nan();
            assert!(
                found.len() == values.len() && found.iter().zip(*values).all(close),
                "{words:?}: {name} is {found:?}"
            );
        }
    }
    assert!(names(folder.0.path()).iter().all(|name| !name.ends_with(".tmp")));
    let random = folder.path("random.npz");
    succeeds(&["run", "iota", "3", "--type", "u8", "-o", random.to_str().expect("UTF-8"), "--device", "cpu"]);
    assert_eq!(arrays(&random)[0].0, "arr_0");
}

#[test]
fn lengths_beside_an_archive_are_refused() {
    let folder = Folder::new();
    let input = folder.save("labels.npy", &[3], &[1u8, 1, 2]);
    let (archive, lengths) = (folder.name("runs.npz"), folder.name("lengths.npy"));
    let error = refuses(&["run", "rle", &input, "-o", &archive, "--lengths", &lengths, "--device", "cpu"]);
    assert!(error.contains("--lengths: the archive of -o has the lengths"), "{error}");
    let error = refuses(&["run", "rle", &input, "--lengths", &folder.name("lengths.npz"), "--device", "cpu"]);
    assert!(error.contains("--lengths writes a .npy file"), "{error}");
    assert_eq!(names(folder.0.path()), ["labels.npy"]);
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
        assert!(error.contains("-o and --lengths are the same file, "), "{values} {lengths}: {error}");
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
