//! Benchmarks of `copy`: `cargo bench --bench copy`.

mod common;

fn main() {
    common::run("copy");
}
