//! Libraries that replace libOpenCL; the link shim opens them.
#![allow(dead_code, reason = "each test file uses only a part")]

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// The path of `tests/fake/NAME.rs` compiled as a library, once per process, with further compiler arguments.
pub(crate) fn library(name: &'static str, arguments: &[&str]) -> PathBuf {
    static LIBRARIES: Mutex<Option<HashMap<&str, PathBuf>>> = Mutex::new(None);
    let mut libraries = LIBRARIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let compile = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the library");
        let library = folder.join(format!("libfake_{name}.so"));
        // The package of the command-line program is one folder deeper.
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = [package, &package.join("..")].map(|top| top.join(format!("tests/fake/{name}.rs")));
        let source = sources.iter().find(|source| source.exists()).expect("the library's source");
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc
            .args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort"])
            .arg(source)
            .arg("-o")
            .arg(&library);
        if let Some(linker) = super::child::of_target("LINKER") {
            rustc
                .args(["--target", &format!("{}-unknown-linux-gnu", env::consts::ARCH)])
                .arg(format!("-Clinker={linker}"));
        }
        assert!(rustc.args(arguments).status().expect("rustc runs").success());
        library
    };
    libraries.get_or_insert_default().entry(name).or_insert_with(compile).clone()
}
