//! Links the program at a fixed address.
//!
//! A program that can be loaded at any address has a relocation for each pointer in its tables: 0.8 MB, which the loader
//! reads and applies at each start.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}"));
    // Other systems load each program at a random address.
    if target("OS").as_deref() == Ok("linux") && target("ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-link-arg-bin=oclprim=-no-pie");
    }
}
