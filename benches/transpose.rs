//! Benchmarks of `transpose`: `cargo bench --bench transpose`.

mod common;

fn main() {
    common::run("transpose");
}
