//! The link shim's other half: an empty libOpenCL on the search path, so that no OpenCL SDK is needed.
//!
//! `cl-sys` asks the linker for `-lOpenCL`. An empty archive satisfies it, and `src/sys` exports the entry points.
use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
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
