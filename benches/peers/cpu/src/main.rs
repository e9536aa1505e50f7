//! Peers of the CPU backend: plain loops, copies by the C library, rayon, ndarray, `transpose` and `rdst`.
//! `cpu-peers FAMILY:N ...` prints one JSON line per result. Some families have no peers here.

use std::cell::RefCell;

use ndarray::{ArrayView2, Axis};
use oclprim::{Device, Element};
use oclprim_checks::bench::{Effort, measure};
use rayon::prelude::*;
use xsum::{Xsum, XsumSmall};

/// `what` is the crate's own name of the benchmark case, so that both results are matched.
fn report<R>(
    (peer, what, element): (&str, &str, &str),
    (n, bytes): (usize, usize),
    run: impl FnMut() -> R,
    check: impl FnOnce(R) -> bool,
) {
    report_after((peer, what, element), (n, bytes), || (), run, check);
}

/// [`report`] with a step before each run, which is not timed.
fn report_after<R>(
    (peer, what, element): (&str, &str, &str),
    (n, bytes): (usize, usize),
    mut before: impl FnMut(),
    mut run: impl FnMut() -> R,
    check: impl FnOnce(R) -> bool,
) {
    let effort = Effort { cold: true, ..Effort::default() };
    let mut result = None;
    let run = || {
        result = Some(run());
        Ok(())
    };
    let times = measure(&Device::cpu(), effort, || Ok(before()), run).expect("no command can fail");
    let (median, spread) = (times.wall.median, times.wall.spread);
    println!(
        "{}",
        serde_json::json!({
            "peer": peer, "what": what, "element": element, "n": n, "bytes": bytes, "median": median, "spread": spread,
            "wall": median, "ok": result.is_some_and(check),
        })
    );
}

/// Output `i` of SplitMix64, computed from the counter `i`.
fn mix(i: usize) -> u64 {
    let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn data<T: Send>(n: usize, value: impl Fn(u64) -> T + Sync) -> Vec<T> {
    (0..n).into_par_iter().map(|i| value(mix(i))).collect()
}

/// Elements per task, so that each thread has several tasks.
fn part(n: usize) -> usize {
    n.div_ceil(4 * rayon::current_num_threads()).max(1 << 12)
}

/// The sum in 32 lanes. Compilers vectorise it without reordering additions.
fn lanes<T: Element>(x: &[T], add: impl Fn(T, T) -> T) -> T {
    let mut lane = [T::ZERO; 32];
    let rows = x.chunks_exact(32);
    let rest = rows.remainder().iter().fold(T::ZERO, |sum, &x| add(sum, x));
    for row in rows {
        lane.iter_mut().zip(row).for_each(|(lane, &x)| *lane = add(*lane, x));
    }
    lane.into_iter().fold(rest, add)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * b.abs()
}

fn reductions(n: usize) {
    let x = data(n, |bits| (bits >> 40) as f32 / (1 << 24) as f32);
    let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
    let right = |sum: f32| near(sum.into(), exact);
    let loops = || x.par_chunks(part(n)).map(|x| lanes(x, |a, b| a + b)).sum();
    report(("best loop, all cores", "reduce sum", "f32"), (n, 4 * n), loops, right);
    report(("rayon", "reduce sum", "f32"), (n, 4 * n), || x.par_iter().sum(), right);
    report(("ndarray", "reduce sum", "f32"), (n, 4 * n), || ndarray::aview1(&x).sum(), right);
    exact_sums(n, &x);
    let ints = data(n, |bits| bits as u32);
    let want = ints.iter().fold(0, |a, b| a ^ b);
    let xor = || ints.par_chunks(part(n)).map(|x| lanes(x, |a, b| a ^ b)).reduce(|| 0, |a, b| a ^ b);
    report(("best loop, all cores", "reduce xor", "u32"), (n, 4 * n), xor, |all| all == want);

    let side = n.isqrt();
    let square = ArrayView2::from_shape((side, side), &x[..side * side]).expect("the shape fits");
    for (axis, what) in [(1, "reduce sum over rows, square"), (0, "reduce sum over columns, square")] {
        let exact = square.map(|&x| f64::from(x)).sum_axis(Axis(axis));
        let bytes = 4 * (side * side + side);
        let is_right =
            |sums: ndarray::Array1<f32>| sums.iter().zip(&exact).all(|(&sum, &exact)| near(sum.into(), exact));
        report(("ndarray", what, "f32"), (n, bytes), || square.sum_axis(Axis(axis)), is_right);
    }
}

/// Correctly rounded sums of the `xsum` crate. Its `XsumLarge` and `XsumAuto` of version 0.1.6 return wrong sums of 2^14 and
/// more elements, so this is `XsumSmall`. It has no merge, so it runs on one core. Rounding an `f64` sum to `f32` rounds
/// twice, which the check allows.
fn exact_sums(n: usize, x: &[f32]) {
    let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
    let want: f64 = wide.iter().sum();
    let one_core = || {
        let mut sum = XsumSmall::new();
        sum.add_list(&wide);
        sum.sum()
    };
    report(("xsum, one core", "reduce sum exact", "f64"), (n, 8 * n), one_core, |sum| near(sum, want));
    let of_floats = || {
        let mut sum = XsumSmall::new();
        x.iter().for_each(|&x| sum.add(x.into()));
        sum.sum() as f32
    };
    report(("xsum, one core", "reduce sum exact", "f32"), (n, 4 * n), of_floats, |sum| near(sum.into(), want));
}

fn copies(n: usize) {
    let x = data(n, |bits| bits as u32);
    let mut y = vec![1u32; n];
    report(("memcpy, one core", "copy aligned", "u32"), (n, 8 * n), || y.copy_from_slice(&x), |()| true);
    let len = part(n);
    let all = || y.par_chunks_mut(len).zip(x.par_chunks(len)).for_each(|(y, x)| y.copy_from_slice(x));
    report(("memcpy, all cores", "copy aligned", "u32"), (n, 8 * n), all, |()| true);
    assert_eq!(x, y);
}

fn transposition(n: usize) {
    let side = n.isqrt();
    let x = data(side * side, |bits| bits as u32);
    let mut y = vec![0u32; side * side];
    let run = || transpose::transpose(&x, &mut y, side, side);
    let of = ("transpose, one core", "transpose 4-byte elements", "u32");
    report(of, (n, 8 * side * side), run, |()| true);
    assert!((0..side * side).all(|i| y[i] == x[i % side * side + i / side]));
}

fn histograms(n: usize) {
    let x = data(n, |bits| (bits >> 56) as i32);
    let mut counts = vec![0u32; 256];
    let run = || {
        counts.fill(0);
        x.iter().for_each(|&x| counts[x as usize & 255] += 1);
    };
    let of = ("a loop, one core", "histogram ids, 256 bins, uniform", "i32");
    report(of, (n, 4 * n + 1024), run, |()| true);
    let mut sorted = x;
    sorted.par_sort_unstable();
    assert!((0..256).all(|bin| counts[bin as usize] as usize
        == sorted.partition_point(|&x| x <= bin) - sorted.partition_point(|&x| x < bin)));
}

fn scans(n: usize) {
    let x = data(n, |bits| bits as u32);
    let mut y = vec![0u32; n];
    let run = || {
        let mut sum = 0u32;
        y.iter_mut().zip(&x).for_each(|(y, &x)| {
            sum = sum.wrapping_add(x);
            *y = sum;
        });
    };
    report(("a loop, one core", "scan sum inclusive", "u32"), (n, 8 * n), run, |()| true);
    assert!(y[0] == x[0] && (1..n).all(|i| y[i].wrapping_sub(y[i - 1]) == x[i]));
    let floats: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let mut sums = vec![0f32; n];
    let run = || {
        let mut sum = 0f32;
        sums.iter_mut().zip(&floats).for_each(|(y, &x)| {
            sum += x;
            *y = sum;
        });
    };
    report(("a loop, one core", "scan sum inclusive", "f32"), (n, 8 * n), run, |()| true);
    assert!(sums[0] == floats[0] && (1..n).all(|i| sums[i] == sums[i - 1] + floats[i]));
}

fn sorts(n: usize) {
    use rdst::RadixSort;
    let x = data(n, |bits| bits as u32);
    let mut want = x.clone();
    want.sort_unstable();
    let keys = RefCell::new(x.clone());
    let run = |peer: &str, sort: &dyn Fn(&mut [u32])| {
        let before = || keys.borrow_mut().copy_from_slice(&x);
        let body = || sort(&mut keys.borrow_mut());
        report_after((peer, "sort keys, bits", "u32"), (n, 8 * n), before, body, |()| true);
        assert!(*keys.borrow() == want);
    };
    run("rdst", &|x| x.radix_sort_unstable());
    run("rayon, unstable", &|x| x.par_sort_unstable());
    run("rayon, stable", &|x| x.par_sort());
}

fn main() {
    for argument in std::env::args().skip(1) {
        let (family, n) = argument.split_once(':').expect("a family and a number of elements, such as copy:1024");
        let n = n.parse().expect("a number of elements");
        match family {
            "copy" => copies(n),
            "reduce" => reductions(n),
            "transpose" => transposition(n),
            "histogram" => histograms(n),
            "scan" => scans(n),
            "sort" => sorts(n),
            "select" | "merge" | "topk" => {}
            _ => panic!("there is no family {family}"),
        }
    }
}
