//! Reduction on the CPU: the same tile and the same tree as `cl/reduce.cl`, tiles in parallel.

use super::{Determinism, End, Extreme};
use crate::{Element, op::Op, parallel};

/// Rows of a tile; `TILE_ROWS` of `cl/reduce.cl`.
const TILE_ROWS: usize = 16;
/// Bytes of a row of lanes: 256 work-items of 16 bytes.
const ROW_BYTES: usize = 4096;
/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;

/// The lanes of a tile of `T`, and its elements.
pub(super) const fn lanes<T>() -> usize {
    ROW_BYTES / size_of::<T>()
}

/// The elements of a tile of `T`.
pub(super) const fn tile<T>() -> usize {
    TILE_ROWS * lanes::<T>()
}

// Both levels of determinism take the fixed tree: the CPU is bound by memory, so another order would gain nothing.
pub(super) fn reduce<T: Element, O: Op<T>>(input: &[T], _: O, _: Determinism) -> T {
    if input.is_empty() {
        return O::empty();
    }
    let partial = |chunk: &[T]| reduce_tile::<T, O, _>(chunk, T::widen);
    let mut partials: Vec<T::Acc> = if size_of_val(input) <= SERIAL_BYTES {
        input.chunks(tile::<T>()).map(partial).collect()
    } else {
        tiles(input, &|_, chunk| partial(chunk))
    };
    while partials.len() > 1 {
        partials = partials.chunks(tile::<T::Acc>()).map(|chunk| reduce_tile::<T, O, _>(chunk, |x| x)).collect();
    }
    T::narrow(partials[0])
}

/// What `body` gives for each tile of the input and its first index, in order.
fn tiles<T: Element, R: Send + Sync>(input: &[T], body: &(dyn Fn(usize, &[T]) -> R + Sync)) -> Vec<R> {
    let len = tile::<T>();
    parallel::map(input.len().div_ceil(len), &|i| body(i * len, &input[i * len..input.len().min((i + 1) * len)]))
}

/// One tile, or the part of one that there is, in the order that `cl/reduce.cl` fixes.
fn reduce_tile<T: Element, O: Op<T>, E: Copy>(tile: &[E], widen: impl Fn(E) -> T::Acc) -> T::Acc {
    let lanes = lanes::<E>();
    let mut lane = vec![O::identity(); lanes];
    for row in tile.chunks(lanes) {
        for (acc, &x) in lane.iter_mut().zip(row) {
            *acc = O::combine(*acc, widen(x));
        }
    }
    let mut width = lanes;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            lane[k] = O::combine(lane[2 * k], lane[2 * k + 1]);
        }
    }
    lane[0]
}

/// `input` is not empty.
pub(super) fn arg_reduce<T: Element>(input: &[T], end: End) -> Extreme<T> {
    let better = |best: Extreme<T>, next: Extreme<T>| if end.before(next.value, best.value) { next } else { best };
    let scan = |(start, chunk): (usize, &[T])| {
        let first = Extreme { index: start, value: chunk[0] };
        let rest = chunk.iter().enumerate().skip(1);
        rest.map(|(i, &value)| Extreme { index: start + i, value }).fold(first, better)
    };
    let parts: Vec<_> = if size_of_val(input) <= SERIAL_BYTES {
        vec![scan((0, input))]
    } else {
        tiles(input, &|start, part| scan((start, part)))
    };
    // In order of index, so that the earlier of two equal elements stays.
    parts.into_iter().reduce(better).expect("the input is not empty")
}
