//! Benchmarks of `reduce`: `cargo bench --bench reduce`.

mod common;

fn main() {
    common::run("reduce");
}
