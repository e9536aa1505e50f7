//! Names the commit in release builds, for the reports of benchmarks.
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let top = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    // An installed package has no repository around it.
    if env::set_current_dir(top).is_ok() {
        name_commit();
    }
}

/// Paths of the sources of the program, from the top of the repository.
const SOURCE: [&str; 7] = ["build.rs", "Cargo.lock", "Cargo.toml", "checks", "cl", "cli", "src"];

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
        println!("cargo:rerun-if-changed=../{path}");
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
