//! Benchmarks of `merge`: `cargo bench --bench merge`.

mod common;

fn main() {
    common::run("merge");
}
