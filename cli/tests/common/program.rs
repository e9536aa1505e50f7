//! The program, run as a user runs it, and the files that it reads and writes.
#![allow(dead_code, reason = "each test file uses only a part of it")]

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use npyz::{AutoSerialize, Serialize, WriterBuilder};

/// The program's command line, after that of `runner`: a loader that selects drivers, or an emulator of a processor.
pub(crate) fn words<'a>(runner: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    runner.split_whitespace().chain([env!("CARGO_BIN_EXE_oclprim")]).chain(arguments.iter().copied()).collect()
}

pub(crate) fn runner() -> String {
    let name = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", env::consts::ARCH.to_uppercase());
    env::var(name).unwrap_or_default()
}

pub(crate) fn program(arguments: &[&str]) -> Command {
    let runner = runner();
    let words = words(&runner, arguments);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_remove("OCLPRIM_DEVICE");
    command
}

pub(crate) fn oclprim(arguments: &[&str]) -> Output {
    program(arguments).output().expect("the program starts")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// The output of a program that must succeed.
pub(crate) fn succeeds(arguments: &[&str]) -> String {
    let output = oclprim(arguments);
    assert!(output.status.success(), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// The single error line of a program that must refuse its arguments.
pub(crate) fn refuses(arguments: &[&str]) -> String {
    let output = oclprim(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}{text}", stdout(&output));
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{arguments:?}: {text}");
    text
}

pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path as an argument of the program.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("UTF-8")
    }

    /// Writes an array to a file; returns its path.
    pub(crate) fn save<T: AutoSerialize + Serialize + Copy>(&self, name: &str, shape: &[u64], data: &[T]) -> String {
        self.save_in(name, shape, data, npyz::Order::C)
    }

    pub(crate) fn save_in<T: AutoSerialize + Serialize + Copy>(
        &self,
        name: &str,
        shape: &[u64],
        data: &[T],
        order: npyz::Order,
    ) -> String {
        let path = self.path(name);
        let file = fs::File::create(&path).expect("a new file");
        let options = npyz::WriteOptions::new().default_dtype().shape(shape).order(order).writer(file);
        let mut writer = options.begin_nd().expect("a header");
        writer.extend(data.iter().copied()).expect("the elements");
        writer.finish().expect("the end");
        path.to_str().expect("UTF-8").to_owned()
    }
}

pub(crate) fn load<T: npyz::Deserialize>(path: &Path) -> (Vec<u64>, Vec<T>) {
    let file = npyz::NpyFile::new(fs::File::open(path).expect("an output")).expect("a header");
    let shape = file.shape().to_vec();
    (shape, file.into_vec().expect("the elements"))
}

/// The arrays of an archive: name and file, in the order of the archive.
pub(crate) fn arrays(path: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(path).expect("an archive");
    let archive = rawzip::ZipArchive::from_slice(&bytes).expect("an archive");
    let mut entries = archive.entries();
    let mut arrays = Vec::new();
    while let Some(entry) = entries.next_entry().expect("an entry") {
        assert_eq!(entry.compression_method(), rawzip::CompressionMethod::STORE);
        let name = entry.file_path().try_normalize().expect("a plain name").as_ref().to_owned();
        let data = archive.get_entry(entry.wayfinder()).expect("an entry");
        let mut array = Vec::new();
        data.verifying_reader(data.data()).read_to_end(&mut array).expect("the bytes of its checksum");
        arrays.push((name.strip_suffix(".npy").expect("an array").to_owned(), array));
    }
    arrays
}

/// Devices for `run`: the CPU, and an OpenCL device if there is one.
pub(crate) fn devices() -> Vec<[&'static str; 2]> {
    let all = [["--device", "cpu"], ["--device", "opencl"]];
    let opencl = succeeds(&["devices", "--json"]).contains("\"opencl\": true");
    all[..if opencl { 2 } else { 1 }].to_vec()
}

/// Runs a shell script; `$OCLPRIM` is the program, `$1`, `$2` and so on are the arguments.
#[cfg(unix)]
pub(crate) fn shell(script: &str, arguments: &[&str]) -> Output {
    let program = words(&runner(), &[]).join(" ");
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(arguments).env("OCLPRIM", program).env_remove("OCLPRIM_DEVICE");
    command.output().expect("a shell")
}

/// The names of the files in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}
