//! The entries of fuzz/ on random bytes, for `OCLPRIM_FUZZ_SECONDS` seconds each, 2 by default.
//!
//! A failing test prints the seed of its bytes; `OCLPRIM_FUZZ_SEED` runs that seed alone.

use std::{
    env,
    time::{Duration, Instant, SystemTime},
};

#[path = "../fuzz/entries/layouts.rs"]
mod layouts;
#[cfg(feature = "opencl")]
#[path = "../fuzz/entries/parameters.rs"]
mod parameters;
#[cfg(feature = "opencl")]
#[path = "../fuzz/entries/plans.rs"]
mod plans;
#[path = "../fuzz/entries/tuning_files.rs"]
mod tuning_files;

/// Prints its seed if the test panics.
struct Failing(u64);

impl Drop for Failing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("OCLPRIM_FUZZ_SEED={}", self.0);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// Up to 1 KiB of bytes, determined by the seed.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    // SplitMix64.
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let words = next() % 128;
    (0..words).flat_map(|_| next().to_le_bytes()).collect()
}

fn fuzz(name: &str, entry: fn(&[u8])) {
    let run = |seed| {
        let _failing = Failing(seed);
        entry(&bytes(seed));
    };
    if let Some(seed) = number("OCLPRIM_FUZZ_SEED") {
        return run(seed);
    }
    let limit = Duration::from_secs(number("OCLPRIM_FUZZ_SECONDS").unwrap_or(2));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let (start, first) = (Instant::now(), now.as_nanos() as u64);
    let mut runs = 0u64;
    while start.elapsed() < limit {
        run(first.wrapping_add(runs));
        runs += 1;
    }
    println!("{name}: {runs} runs in {limit:?}");
    assert!(runs > 0, "{name}: no run in {limit:?}");
}

#[test]
fn layouts_are_right_or_refused() {
    fuzz("layouts", layouts::run);
}

#[test]
fn tuning_files_are_read_or_refused() {
    fuzz("tuning files", tuning_files::run);
}

#[cfg(feature = "opencl")]
#[test]
fn parameters_have_values_on_every_device() {
    fuzz("parameters", parameters::run);
}

#[cfg(feature = "opencl")]
#[test]
fn plans_cover_their_input_within_the_limits_of_every_device() {
    fuzz("plans", plans::run);
}
