//! The link shim's other half: an empty libOpenCL on the search path, so that no OpenCL SDK is needed.
//!
//! `cl-sys` asks the linker for `-lOpenCL`. An empty archive satisfies it, and `src/sys` exports the entry points.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    name_commit();
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let shim = env::var_os("CARGO_FEATURE_OPENCL").is_some()
        && env::var_os("CARGO_FEATURE_SYSTEM_OPENCL").is_none()
        && os != "macos"
        && os != "windows";
    println!("cargo:rustc-check-cfg=cfg(opencl_shim)");
    if shim {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        fs::write(out.join("libOpenCL.a"), b"!<arch>\n").expect("OUT_DIR is writable");
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-cfg=opencl_shim");
    }
}

/// What the program is made of.
const SOURCE: [&str; 5] = ["build.rs", "Cargo.lock", "Cargo.toml", "cl", "src"];

/// Benchmarks name the commit that they measured. Only release builds, so that a commit does not make others stale.
fn name_commit() {
    if env::var("PROFILE").as_deref() != Ok("release") || !Path::new(".git").exists() {
        return;
    }
    // In a worktree `.git` is a file, and what it names is elsewhere. What is not there would make every build a new one.
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    let moved = ["HEAD", "logs/HEAD", &branch].map(|name| git(&["rev-parse", "--git-path", name]).unwrap_or_default());
    let there = |path: &&str| Path::new(path).exists();
    for path in SOURCE.into_iter().chain(moved.iter().map(String::as_str)).filter(there) {
        println!("cargo:rerun-if-changed={path}");
    }
    let changed = git(&[&["status", "--porcelain", "--"], &SOURCE[..]].concat());
    if let Some((commit, changed)) = git(&["describe", "--always", "--abbrev=12"]).zip(changed) {
        let mark = if changed.is_empty() { "" } else { "-dirty" };
        println!("cargo:rustc-env=OCLPRIM_COMMIT={commit}{mark}");
    }
}

/// What git prints, where it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
