//! Libraries in place of libOpenCL, which the link shim opens.
#![allow(dead_code, reason = "each test file takes its part")]

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// `tests/fake/NAME.rs` as a library, compiled once a process, with further arguments for the compiler.
pub(crate) fn library(name: &'static str, arguments: &[&str]) -> PathBuf {
    static LIBRARIES: Mutex<Option<HashMap<&str, PathBuf>>> = Mutex::new(None);
    let mut libraries = LIBRARIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let compile = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the library");
        let library = folder.join(format!("libfake_{name}.so"));
        // The tests of the program are a folder further down.
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = [package, &package.join("..")].map(|top| top.join(format!("tests/fake/{name}.rs")));
        let source = sources.iter().find(|source| source.exists()).expect("the library's source");
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc
            .args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort"])
            .arg(source)
            .arg("-o")
            .arg(&library);
        assert!(rustc.args(arguments).status().expect("rustc runs").success());
        library
    };
    libraries.get_or_insert_default().entry(name).or_insert_with(compile).clone()
}
