//! The build-time part of the link shim: an empty OpenCL library on the linker's search path, so that no OpenCL SDK is
//! needed.
//!
//! `cl-sys` asks the linker for `-lOpenCL`. An empty archive satisfies it, and `src/sys` exports the entry points. On
//! macOS, `cl-sys` asks for the framework, which every SDK of macOS has. The linker finds the entry points of `src/sys`
//! first.
use std::{env, fs, path::PathBuf};

/// The member that begins an archive in Microsoft's format: a header, and a symbol table. The table is four bytes, a
/// symbol count of 0.
const NO_SYMBOLS: &str = "/               0           0     0     0       4         `\n\0\0\0\0";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let has_loader = env::var_os("CARGO_CFG_UNIX").is_some() || env::var_os("CARGO_CFG_WINDOWS").is_some();
    let shim = env::var_os("CARGO_FEATURE_OPENCL").is_some()
        && env::var_os("CARGO_FEATURE_SYSTEM_OPENCL").is_none()
        && has_loader;
    println!("cargo:rustc-check-cfg=cfg(opencl_shim)");
    if shim {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let (name, members) = if target("ENV") == "msvc" { ("OpenCL.lib", NO_SYMBOLS) } else { ("libOpenCL.a", "") };
        if target("OS") != "macos" {
            fs::write(out.join(name), format!("!<arch>\n{members}")).expect("OUT_DIR is writable");
            println!("cargo:rustc-link-search=native={}", out.display());
        }
        println!("cargo:rustc-cfg=opencl_shim");
    }
}
