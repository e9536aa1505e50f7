//! Compares the times of the CPU backend's fast paths with those of another way to compute the same results.
//!
//! Times of unoptimised code are meaningless: run `cargo test --profile optimised --test cpu_speed -- --ignored`.

use std::{hint::black_box, time::Instant};

use oclprim::{
    Device,
    op::{Max, Min, Operator},
};

/// The shortest time of each function in seconds, over several interleaved runs.
fn shortest(mut one: impl FnMut(), mut other: impl FnMut()) -> [f64; 2] {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..9).fold([f64::INFINITY; 2], |[a, b], _| [a.min(time(&mut one)), b.min(time(&mut other))])
}

fn within(times: f64, what: &str, [found, other]: [f64; 2]) {
    println!("{what}: {:.2} ms, the other way {:.2} ms", 1e3 * found, 1e3 * other);
    assert!(found <= times * other, "{what}: {:.1} times as long", found / other);
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 8 & 0xffff) as f32 - 32_768.0).collect()
}

#[test]
#[ignore = "run only in an optimised build"]
fn scans_of_extremes_take_at_most_twice_as_long_as_those_by_a_user_s_operator() {
    let (cpu, x) = (Device::cpu(), values(1 << 23));
    let larger = Operator::new("larger", f32::NEG_INFINITY, |a: f32, b| if b > a { b } else { a }, "b > a ? b : a");
    let by = || drop(black_box(cpu.scan(&x, &larger).unwrap()));
    within(2.0, "scan of max", shortest(|| drop(black_box(cpu.scan(&x, Max).unwrap())), by));
    within(2.0, "scan of min", shortest(|| drop(black_box(cpu.scan(&x, Min).unwrap())), by));
}

const ROWS: usize = 10_000;
const COLS: usize = 300;

#[test]
#[ignore = "run only in an optimised build"]
fn moments_of_columns_take_at_most_twice_as_long_as_those_of_the_transposed() {
    let (cpu, x) = (Device::cpu(), values(ROWS * COLS));
    let x = cpu.upload(&x).unwrap();
    let transposed = |along: &dyn Fn(&oclprim::Buffer<f32>)| along(&cpu.transpose(&x, (ROWS, COLS)).unwrap());
    let means = || drop(black_box(cpu.mean(x.nd(&[ROWS, COLS]).unwrap().along(0)).unwrap()));
    let moved = || transposed(&|y| drop(black_box(cpu.mean(y.nd(&[COLS, ROWS]).unwrap().along(1)).unwrap())));
    within(2.0, "means of columns", shortest(means, moved));
    let variances = || drop(black_box(cpu.variance(x.nd(&[ROWS, COLS]).unwrap().along(0)).unwrap()));
    let moved = || transposed(&|y| drop(black_box(cpu.variance(y.nd(&[COLS, ROWS]).unwrap().along(1)).unwrap())));
    within(2.0, "variances of columns", shortest(variances, moved));
}

#[test]
#[ignore = "run only in an optimised build"]
fn extremes_of_columns_take_a_few_times_as_long_as_a_loop() {
    let (cpu, data) = (Device::cpu(), values(ROWS * COLS));
    let x = cpu.upload(&data).unwrap();
    let down = || drop(black_box(cpu.min_max(x.nd(&[ROWS, COLS]).unwrap().along(0)).unwrap()));
    let by_loop = || {
        let (mut low, mut high) = (vec![(f32::INFINITY, 0); COLS], vec![(f32::NEG_INFINITY, 0); COLS]);
        for (r, row) in black_box(&data).chunks_exact(COLS).enumerate() {
            for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(row) {
                *low = if x < low.0 { (x, r) } else { *low };
                *high = if x > high.0 { (x, r) } else { *high };
            }
        }
        black_box((low, high));
    };
    within(6.0, "extremes of columns", shortest(down, by_loop));
}
