//! Benchmarks of `histogram`: `cargo bench --bench histogram`.

mod common;

fn main() {
    common::run("histogram");
}
