//! Puts the commit into release builds and installed packages, for reports.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    if let Some(commit) = packaged_commit(&package) {
        println!("cargo:rustc-env=OCLPRIM_COMMIT={commit}");
    } else if env::set_current_dir(package.join("..")).is_ok() {
        name_commit();
    }
}

/// The commit of a package that cargo made. A package is not in a repository.
fn packaged_commit(package: &Path) -> Option<String> {
    let text = fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let (commit, _) = text.split_once("\"sha1\": \"")?.1.split_once('"')?;
    let mark = if text.contains("\"dirty\": true") { "-dirty" } else { "" };
    Some(format!("{}{mark}", commit.get(..12)?))
}

/// Paths of the sources of the program, from the top of the repository.
const SOURCE: [&str; 7] = ["build.rs", "Cargo.lock", "Cargo.toml", "checks", "cl", "cli", "src"];

/// Sets `OCLPRIM_COMMIT` in release builds, so that benchmarks name the commit that they measured. Other builds do not need a
/// rebuild after each commit.
fn name_commit() {
    if env::var("PROFILE").as_deref() != Ok("release") || !Path::new(".git").exists() {
        return;
    }
    // In a worktree `.git` is a file that names another folder, so git returns the paths. A watched path that does not exist would
    // rerun this script in every build.
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

/// The output of git, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
