//! Benchmarks of `sort`: `cargo bench --bench sort`.

mod common;

fn main() {
    common::run("sort");
}
