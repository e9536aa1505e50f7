//! Arrays in C order with more axes than a [`Layout`] can have. Axes that are neighbours in both input and output are
//! merged.

use bytemuck::Pod;
use oclprim::{Device, Input, Layout, Output, Result};

/// An array as three axes: the product of the axes before `axis`, that axis, and the product of the axes after it.
pub(crate) fn around(shape: &[usize], axis: usize) -> [usize; 3] {
    // If one axis is empty, the product of others can overflow.
    let product = |lengths: &[usize]| lengths.iter().fold(1usize, |product, &n| product.saturating_mul(n));
    [product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])]
}

/// Permutes the axes of an array: axis `k` of the output is axis `axes[k]` of the input.
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
        // Moves the first axis that is out of order to its index in the output. It then merges with the axes before it,
        // if there are any.
        let [_, n, inner] = around(&shape, from);
        let [outer, block, _] = [&shape[..at], &shape[at..from], &[]].map(|lengths: &[usize]| lengths.iter().product());
        let input = moved.as_ref().map_or(input, Input::from);
        moved = Some(device.transform(input.nd(&[outer, block, n, inner])?.permute(&[0, 2, 1, 3])?)?);
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
    device.copy(input.nd(&shape)?.permute(&axes)?, output.nd(&out)?)
}

/// The same permutation with the fewest axes. Axes of length 1 are dropped, and axes that are neighbours in both input
/// and output are merged.
fn fold(shape: &[usize], axes: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let left: Vec<_> = axes.iter().copied().filter(|&axis| shape[axis] != 1).collect();
    // A dropped axis between two others does not separate them.
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
