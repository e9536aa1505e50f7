//! Arrays in C order with more axes than a [`Layout`] can have: neighbours that stay together fold into one.

use bytemuck::Pod;
use oclprim::{Device, Input, Layout, Output, Result};

/// All axes in front of one, that axis, and all behind it.
pub(crate) fn around(shape: &[usize], axis: usize) -> [usize; 3] {
    // An empty axis may stand beside others whose product overflows.
    let product = |lengths: &[usize]| lengths.iter().fold(1usize, |product, &n| product.saturating_mul(n));
    [product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])]
}

/// Moves the elements of an array to an array of the axes in another order: axis `k` of the output is axis `axes[k]`.
pub(crate) fn permute<'a, 'b, T: Pod>(
    device: &Device,
    input: impl Into<Input<'a, T>>,
    shape: &[usize],
    axes: &[usize],
    output: impl Into<Output<'b, T>>,
) -> Result<()> {
    let (input, output) = (input.into(), output.into());
    if shape.contains(&0) {
        return Ok(());
    }
    let (mut shape, mut axes) = fold(shape, axes);
    let mut moved = None;
    while axes.len() > Layout::MAX_DIMS {
        let at = (0..axes.len()).find(|&k| axes[k] != k).unwrap_or(0);
        let from = axes[at];
        // The axis of the output that is not at its place goes there; then it folds with those in front of it.
        let [_, n, inner] = around(&shape, from);
        let [outer, block, _] = [&shape[..at], &shape[at..from], &[]].map(|lengths: &[usize]| lengths.iter().product());
        let input = moved.as_ref().map_or(input, Input::from);
        moved = Some(device.permute(input.nd(&[outer, block, n, inner])?, &[0, 2, 1, 3])?);
        let n = shape.remove(from);
        shape.insert(at, n);
        let renamed: Vec<_> = axes
            .iter()
            .map(|&axis| if axis == from { at } else { axis + usize::from((at..from).contains(&axis)) })
            .collect();
        (shape, axes) = fold(&shape, &renamed);
    }
    let out: Vec<_> = axes.iter().map(|&axis| shape[axis]).collect();
    let input = moved.as_ref().map_or(input, Input::from);
    device.permute_into(input.nd(&shape)?, &axes, output.nd(&out)?)
}

/// The same permutation of the fewest axes: without those of one element, and with those as one that stay neighbours.
fn fold(shape: &[usize], axes: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let left: Vec<_> = axes.iter().copied().filter(|&axis| shape[axis] != 1).collect();
    // Axes of one element between two do not part them.
    let rank = |axis: usize| left.iter().filter(|&&other| other < axis).count();
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for &axis in &left {
        match runs.last_mut() {
            Some((_, next, n)) if *next == rank(axis) => {
                *next += 1;
                *n *= shape[axis];
            }
            _ => runs.push((rank(axis), rank(axis) + 1, shape[axis])),
        }
    }
    let axes = runs.iter().map(|&(first, ..)| runs.iter().filter(|&&(other, ..)| other < first).count());
    let axes: Vec<_> = axes.collect();
    let mut shape = vec![0; runs.len()];
    for (&axis, &(.., n)) in axes.iter().zip(&runs) {
        shape[axis] = n;
    }
    (shape, axes)
}
