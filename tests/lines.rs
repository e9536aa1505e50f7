//! Sorts, top-k, quantiles and histograms of mapped views and of products along axes.

mod common;

use oclprim::{
    Accumulate, Bins, Buffer, Element, Interpolation, Layout, NdView, Order, Result, Top,
    histogram::{Histograms, WeightedHistograms},
    op::Map,
};

/// Elements as bits, or the message of an error.
type Found = Vec<std::result::Result<Vec<u8>, String>>;

fn bytes<T: Element>(found: Result<Buffer<T>>) -> Result<Vec<u8>> {
    Ok(bytemuck::cast_slice(&found?.to_vec()?).to_vec())
}

fn both<A: Element, B: Element>(found: Result<(Buffer<A>, Buffer<B>)>) -> Result<Vec<u8>> {
    let (a, b) = found?;
    Ok([bytes(Ok(a))?, bytes(Ok(b))?].concat())
}

/// The result of `run`, which writes to `n` elements and to `others`.
fn into<A: Element, B: Element>(
    (n, others): (usize, usize),
    run: impl FnOnce(&mut Vec<A>, &mut Vec<B>) -> Result<()>,
) -> Result<Vec<u8>> {
    let (mut a, mut b) = (vec![A::ZERO; n], vec![B::ZERO; others]);
    run(&mut a, &mut b)?;
    Ok([bytemuck::cast_slice::<_, u8>(&a), bytemuck::cast_slice(&b)].concat())
}

/// The results of each call that takes lines.
macro_rules! of_lines {
    ($T:ty, $device:expr, $lines:expr, $values:expr, $shape:expr, $bins:expr) => {{
        let (device, lines, values, (rows, n), bins) = ($device, || $lines, $values, $shape, $bins);
        let (down, q, middle) = (Order::descending, [0.2, 0.9], Interpolation::Linear);
        let (keys, top, add) = (lines(), Top::largest(2).sorted(), Accumulate::Add);
        let found: Vec<Result<Vec<u8>>> = vec![
            bytes(device.sort(keys, down())),
            into::<$T, u8>((n, 0), |out, _| device.sort_into(lines(), down(), out)),
            both(device.sort(lines().with(values), down())),
            into::<$T, u32>((n, n), |keys, out| device.sort_into(lines().with(values), down(), (keys, out))),
            bytes(device.argsort::<_, u32, _>(lines(), down())),
            into::<u32, u8>((n, 0), |out, _| device.argsort_into(lines(), down(), out)),
            bytes(device.top_k(lines(), top)),
            into::<$T, u8>((2 * rows, 0), |out, _| device.top_k_into(lines(), top, out)),
            both(device.top_k(lines().indexed::<u32>(), top)),
            into::<$T, u64>((2 * rows, 2 * rows), |keys, out| {
                device.top_k_into(lines().indexed::<u64>(), top, (keys, out))
            }),
            bytes(device.median(lines())),
            bytes(device.quantile(lines(), &q, middle)),
            into::<f64, u8>((2 * rows, 0), |out, _| device.quantile_into(lines(), &q, middle, out)),
            both(device.histogram(lines(), bins).map(|Histograms { counts, outside, .. }| (counts, outside))),
            into::<u32, u64>((rows * bins.len(), 3 * rows), |counts, outside| {
                device.histogram_into(lines(), bins, counts, outside, add)
            }),
            both(
                device
                    .histogram(lines().weighted(values), bins)
                    .map(|WeightedHistograms { sums, outside, .. }| (sums, outside)),
            ),
            into::<u64, u64>((rows * bins.len(), 3 * rows), |sums, outside| {
                device.histogram_into(lines().weighted(values), bins, sums, outside, add)
            }),
        ];
        found.into_iter().map(|found| found.map_err(|error| error.to_string())).collect::<Found>()
    }};
}

/// Checks lines of expressions of two views against those of arrays with the same elements.
macro_rules! expressions_equal_arrays {
    ($T:ty, $device:expr, $name:expr, $square:expr, $views:expr, $axes:expr, $bins:expr) => {{
        let (device, name, square, [x, y]) = ($device, $name, $square, $views);
        let (shape, axes, bins) = (x.shape().to_vec(), $axes, $bins);
        let (own, others) = (x.to_vec().unwrap(), y.to_vec().unwrap());
        let squares = device.upload(&own.iter().map(|&x| x * x + x).collect::<Vec<$T>>()).unwrap();
        let products: Vec<$T> = own.iter().zip(&others).map(|(&x, &y)| x * y).collect();
        let products = device.upload(&products).unwrap();
        let weights = device.upload(&(0..x.len() as u32).collect::<Vec<_>>()).unwrap();
        let weights = weights.nd(&shape).unwrap();
        let list = &axes[..];
        let rows = (0..shape.len()).filter(|axis| !list.contains(axis)).map(|axis| shape[axis]).product::<usize>();
        let sizes = (rows, x.len());
        let valid = !own.is_empty();
        let want = of_lines!($T, device, squares.nd(&shape).unwrap().along(axes), weights, sizes, &bins);
        let got = of_lines!($T, device, x.map(square).along(axes), weights, sizes, &bins);
        same(&got, &want, valid, &format!("{name}: map of {shape:?} along {list:?}"));
        let want = of_lines!($T, device, products.nd(&shape).unwrap().along(axes), weights, sizes, &bins);
        let got = of_lines!($T, device, x.times(y).along(axes), weights, sizes, &bins);
        same(&got, &want, valid, &format!("{name}: times of {shape:?} along {list:?}"));
    }};
}

/// If `valid`, no call may return an error.
fn same(got: &Found, want: &Found, valid: bool, what: &str) {
    assert_eq!(got.len(), want.len());
    for (call, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(got == want && (got.is_ok() || !valid), "{what}, call {call}: {got:?}, not {want:?}");
    }
}

/// A matrix, a row of it twice, three axes in another order, an array with gaps, and arrays without elements.
fn views<'a, T: Element>(matrix: NdView<'a, T>) -> Vec<NdView<'a, T>> {
    let there = matrix.input();
    let deep = there.nd(&[5, 3, 4]).unwrap();
    vec![
        matrix,
        matrix.slice(0, 1..2).unwrap().broadcast_to(&[2, 15]).unwrap(),
        deep.permute(&[2, 0, 1]).unwrap(),
        there.with_layout(Layout::strided(&[3, 4], &[20, 3], 2).unwrap()).unwrap(),
        there.with_layout(Layout::contiguous(&[0, 3]).unwrap()).unwrap(),
        there.with_layout(Layout::contiguous(&[3, 0]).unwrap()).unwrap(),
    ]
}

macro_rules! check {
    ($T:ty, $name:expr, $device:expr, $square:expr, $bins:expr) => {{
        let (name, device) = ($name, $device);
        let x: Vec<$T> = (0..60).map(|i| (i * 37 % 23) as $T - 9 as $T).collect();
        let y: Vec<$T> = (0..60).map(|i| (i * 17 % 13) as $T - 5 as $T).collect();
        let (x, y) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
        let [x, y] = [&x, &y].map(|there| views(there.nd(&[4, 15]).unwrap()));
        // A checker takes seconds for the lines of one view, so it gets the columns of the first one.
        let checked = if common::runs_kernels_at_once(&device) { usize::MAX } else { 1 };
        for (x, y) in x.into_iter().zip(y).take(checked) {
            let square = $square;
            for axis in (0..x.shape().len()).take(checked) {
                expressions_equal_arrays!($T, &device, &name, &square, [x, y], [axis], $bins);
            }
        }
    }};
}

#[test]
fn lines_of_floats_are_those_of_arrays() {
    for (name, device) in common::devices() {
        let square = Map::new(|x: f32| x * x + x, "x * x + x");
        check!(f32, name, device, &square, Bins::even(-40f32, 90.0, 9).unwrap());
    }
}

#[test]
fn lines_along_two_axes_are_those_of_arrays() {
    let (shape, x): (_, Vec<i32>) = ([3, 5, 4], (0..60).map(|i| i * 37 % 23 - 9).collect());
    for (name, device) in common::devices() {
        let (there, cubes) = (device.upload(&x).unwrap(), x.iter().map(|x| x * x * x).collect::<Vec<_>>());
        let (view, cubes) = (there.nd(&shape).unwrap(), device.upload(&cubes).unwrap());
        let want = device.sort(cubes.nd(&shape).unwrap().along([2, 0]), Order::ascending()).unwrap();
        let cube = Map::new(|x: i32| x * x * x, "x * x * x");
        let got = device.sort(view.map(&cube).along([2, 0]), Order::ascending()).unwrap();
        assert_eq!(got.to_vec().unwrap(), want.to_vec().unwrap(), "{name}");
        let products = view.times(view.permute(&[2, 1, 0]).unwrap());
        let error = device.sort(products.along(0), Order::ascending()).unwrap_err();
        assert_eq!(error.to_string(), "times needs views of equal shapes, got [3, 5, 4] and [4, 5, 3]", "{name}");
    }
}

#[test]
fn lines_of_integers_are_those_of_arrays() {
    for (name, device) in common::devices() {
        let square = Map::new(|x: i32| x * x + x, "x * x + x");
        check!(i32, name, device, &square, Bins::even(-40i32, 90, 9).unwrap());
    }
}
