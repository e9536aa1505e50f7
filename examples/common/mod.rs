//! What several examples share: random numbers that their NumPy twins make, too, and the time of a call.

use std::time::Instant;

/// The first `n` numbers of the generator SplitMix64. `examples/numpy/common.py` has the same numbers.
pub(crate) fn numbers(seed: u64, n: usize) -> impl Iterator<Item = u64> {
    (1..=n as u64).map(move |i| {
        let z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// The result of `f`. Prints the time of its second call, since the first call builds kernels.
pub(crate) fn timed<R>(name: &str, f: impl Fn() -> R) -> R {
    drop(f());
    let start = Instant::now();
    let result = f();
    println!("time: {name} {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}
