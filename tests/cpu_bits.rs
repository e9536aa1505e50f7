//! Fast paths of the CPU backend give the bits of a plain loop.

use oclprim::internals::scan::{Scan, in_scan};
use oclprim::{
    Device, Element, bf16, f16,
    op::{Max, Min},
};

/// Values with ties, zeros of both signs, infinities and, on request, NaN.
fn values<T: Element>(n: usize, nan: bool) -> Vec<T> {
    let of = |i: usize| match i.wrapping_mul(0x9e37_79b9) >> 7 & 63 {
        0 => -0.0,
        1 => 0.0,
        2 if i > n / 2 => f64::INFINITY,
        3 if i > n / 2 => f64::NEG_INFINITY,
        4 if nan && i > n / 3 => f64::NAN,
        k => k as f64 * 0.5 - 16.0,
    };
    (0..n).map(|i| T::from_f64(of(i))).collect()
}

fn same<T: Element>(a: &[T], b: &[T], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let differ = (0..a.len()).find(|&i| !a[i].same(b[i]));
    assert_eq!(differ, None, "{what} {}", T::TYPE);
}

fn scans_of<T: Element>() {
    let device = Device::cpu();
    for nan in [false, true] {
        for n in [0, 1, 255, 256, 257, 4096, 8191, 8193, 40_000] {
            let x = values::<T>(n, nan);
            let (mut most, mut least) = (T::LOWEST, T::HIGHEST);
            let up_to: Vec<_> = x
                .iter()
                .map(|&x| {
                    (most, least) = (most.max(x), least.min(x));
                    (most, least)
                })
                .collect();
            let (most, least): (Vec<_>, Vec<_>) = up_to.into_iter().unzip();
            let of = |kind| device.scan(&x, in_scan(Max, kind)).unwrap().to_vec().unwrap();
            same(&of(Scan::inclusive()), &most, "max");
            let shifted: Vec<_> = std::iter::once(T::LOWEST).chain(most).take(n).collect();
            same(&of(Scan::exclusive(T::LOWEST)), &shifted, "exclusive max");
            same(&device.scan(&x, Min).unwrap().to_vec().unwrap(), &least, "min");
        }
    }
}

#[test]
fn scans_of_extremes_equal_a_plain_loop() {
    scans_of::<f16>();
    scans_of::<bf16>();
    scans_of::<f32>();
    scans_of::<f64>();
    scans_of::<i8>();
    scans_of::<u64>();
}

const SHAPES: [(usize, usize); 9] =
    [(1, 40), (40, 1), (3, 700), (700, 3), (127, 33), (128, 33), (33, 129), (1500, 130), (9000, 9)];

/// The transposed matrix: its columns, one after another.
fn columns<T: Copy>(x: &[T], (rows, cols): (usize, usize)) -> Vec<T> {
    (0..cols).flat_map(|c| (0..rows).map(move |r| x[r * cols + c])).collect()
}

fn lines_of<T: Element>() {
    let device = Device::cpu();
    for shape in SHAPES {
        for nan in [false, true] {
            let x = values::<T>(shape.0 * shape.1, nan);
            let moved = columns(&x, shape);
            let (down, along) = (device.upload(&x).unwrap(), device.upload(&moved).unwrap());
            let view = down.nd(&[shape.0, shape.1]).unwrap();
            // `line` gives each line as a contiguous view.
            let line = |c: usize| along.view(c * shape.0..(c + 1) * shape.0).unwrap();
            let found = device.min_max(view.along(0)).unwrap();
            let (values, indices) = (found.values.to_vec().unwrap(), found.indices.to_vec().unwrap());
            let moments = device.moments(view.along(0)).unwrap().to_vec().unwrap();
            for (c, moments) in moments.iter().enumerate() {
                let (low, high) = (device.arg_min(line(c)).unwrap(), device.arg_max(line(c)).unwrap());
                for (at, extreme) in [(c, low), (shape.1 + c, high)] {
                    assert_eq!(indices[at] as usize, extreme.index, "{shape:?} {}", T::TYPE);
                    assert!(values[at].same(extreme.value), "{shape:?} {}", T::TYPE);
                }
                let one = device.moments(line(c).nd(&[shape.0]).unwrap().along(0)).unwrap().to_vec().unwrap()[0];
                assert_eq!(format!("{:?}", moments.get()), format!("{:?}", one.get()), "{shape:?} {}", T::TYPE);
            }
        }
    }
}

#[test]
fn lines_have_the_same_extremes_and_moments_in_rows_and_columns() {
    lines_of::<f16>();
    lines_of::<f32>();
    lines_of::<f64>();
    lines_of::<i16>();
    lines_of::<u64>();
}
