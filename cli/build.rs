//! Puts the commit into release builds and installed packages, for reports. Makes the release program smaller.
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let packaged = packaged_commit(&package);
    if env::var("PROFILE").as_deref() == Ok("release") && env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Only the workspace's release profile, which a package lacks, ends the program at a panic.
        let unwinds = packaged.is_some() || env::var("CARGO_PROFILE_RELEASE_PANIC").is_ok_and(|way| way != "abort");
        shrink(&PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")), unwinds);
    }
    if let Some(commit) = packaged {
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

/// Sets `OCLPRIM_COMMIT` in release builds, so that benchmarks name the commit that they measured. Other builds lack
/// the variable, so that a commit does not rebuild them.
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

/// Passes arguments to the linker that make the program a fifth smaller, if the linker knows them.
///
/// The first keeps one copy of equal functions, such as those of a primitive for `i32` and `u32`. The second drops the
/// tables for unwinding: a panic ends a program that does not unwind, so nothing reads them. The last gives the program
/// a fixed address. Otherwise it would have 0.8 MB of relocations for the pointers in its tables, and would apply them
/// at each start.
fn shrink(out: &Path, unwinds: bool) {
    for variable in ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS", "CARGO_PROFILE_RELEASE_PANIC"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let script = out.join("no-unwinding.ld");
    let text = "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.eh_frame_hdr) } } INSERT AFTER .text;\n";
    let mut arguments = vec!["-Wl,--icf=all".to_owned()];
    if !unwinds && fs::write(&script, text).is_ok() {
        arguments.push(format!("-Wl,-T,{}", script.display()));
    }
    arguments.push("-no-pie".to_owned());
    let mut known = Vec::new();
    for argument in arguments {
        known.push(argument);
        if !links(out, &known) {
            known.pop();
        }
    }
    for argument in known {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// Links an empty program with these arguments of the linker.
fn links(out: &Path, arguments: &[String]) -> bool {
    let (source, target) = (out.join("empty.rs"), env::var("TARGET").expect("cargo sets it"));
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets it"));
    rustc.args(["--crate-type", "bin", "-C", "panic=abort", "--target", &target]);
    rustc.args(arguments.iter().map(|argument| format!("-Clink-arg={argument}")));
    if let Ok(flags) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut setting = OsString::from("linker=");
        setting.push(linker);
        rustc.arg("-C").arg(setting);
    }
    rustc.arg("-o").arg(out.join("empty")).arg(&source);
    fs::write(&source, "fn main() {}\n").is_ok() && rustc.output().is_ok_and(|output| output.status.success())
}
