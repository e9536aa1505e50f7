//! Reduction on the CPU: the same tile and the same tree as `cl/reduce.cl`, tiles in parallel.

use std::ops::Range;

use super::{Determinism, End, Extreme};
use crate::{Element, op::Op, parallel};

/// Rows of a tile; `TILE_ROWS` of `cl/reduce.cl`.
const TILE_ROWS: usize = 16;
/// Bytes of a row of lanes: 256 work-items of 16 bytes.
const ROW_BYTES: usize = 4096;
/// Elements that are searched at once for a better one than the best so far.
const BLOCK: usize = 64;
/// Below this many bytes threads cost more than they bring.
const SERIAL_BYTES: usize = 128 << 10;

/// The lanes of a tile of `T`, and its elements.
pub const fn lanes<T>() -> usize {
    ROW_BYTES / size_of::<T>()
}

/// The elements of a tile of `T`.
pub const fn tile<T>() -> usize {
    TILE_ROWS * lanes::<T>()
}

// Both levels of determinism take the fixed tree: the CPU is bound by memory, so another order would gain nothing.
pub(super) fn reduce<T: Element, O: Op<T>>(input: &[T], _: O, _: Determinism) -> T {
    reduce_rows::<T, T, O, _>(input.len(), &|row| input[row].iter().map(|x| x.widen()))
}

/// Combines `n` values in the tiles of `T`; `row` gives those of a range.
pub(super) fn reduce_rows<T: Element, U: Element, O: Op<U>, R: Iterator<Item = U::Acc>>(
    n: usize,
    row: &(impl Fn(Range<usize>) -> R + Sync),
) -> U {
    if n == 0 {
        return O::empty();
    }
    let tile = tile::<T>();
    let partial = |i: usize| {
        let part = i * tile..n.min((i + 1) * tile);
        if const { U::TYPE.is_float() } {
            reduce_tile::<U, O, _>(lanes::<T>(), part, row)
        } else {
            reduce_any::<U, O, _>(part, row)
        }
    };
    let mut partials: Vec<U::Acc> = if n * size_of::<T>() <= SERIAL_BYTES {
        parallel::map_here(n.div_ceil(tile), &partial)
    } else {
        parallel::map(n.div_ceil(tile), &partial)
    };
    while partials.len() > 1 {
        let tile = self::tile::<U::Acc>();
        let reduce = |i: usize| {
            let part = &partials[i * tile..partials.len().min((i + 1) * tile)];
            let row = |row: Range<usize>| part[row].iter().copied();
            if const { U::TYPE.is_float() } {
                reduce_tile::<U, O, _>(lanes::<U::Acc>(), 0..part.len(), &row)
            } else {
                reduce_any::<U, O, _>(0..part.len(), &row)
            }
        };
        partials = parallel::map_here(partials.len().div_ceil(tile), &reduce);
    }
    U::narrow(partials[0])
}

/// What `body` gives for each tile of the input and its first index, in order.
fn tiles<T: Element, R: Send + Sync>(input: &[T], body: &(dyn Fn(usize, &[T]) -> R + Sync)) -> Vec<R> {
    let len = tile::<T>();
    parallel::map(input.len().div_ceil(len), &|i| body(i * len, &input[i * len..input.len().min((i + 1) * len)]))
}

/// One tile of what gives the same in any order: by so few lanes that they lie in registers.
fn reduce_any<U: Element, O: Op<U>, R: Iterator<Item = U::Acc>>(
    tile: Range<usize>,
    row: &impl Fn(Range<usize>) -> R,
) -> U::Acc {
    const LANES: usize = 32;
    let mut lane = [O::identity(); LANES];
    let whole = tile.start + tile.len() / LANES * LANES;
    for start in (tile.start..whole).step_by(LANES) {
        for (acc, x) in lane.iter_mut().zip(row(start..start + LANES)) {
            *acc = O::combine(*acc, x);
        }
    }
    lane.into_iter().chain(row(whole..tile.end)).fold(O::identity(), O::combine)
}

/// One tile, or the part of one that there is, in the order that `cl/reduce.cl` fixes.
fn reduce_tile<U: Element, O: Op<U>, R: Iterator<Item = U::Acc>>(
    lanes: usize,
    tile: Range<usize>,
    row: &impl Fn(Range<usize>) -> R,
) -> U::Acc {
    let mut lane = vec![O::identity(); lanes];
    for start in tile.clone().step_by(lanes) {
        for (acc, x) in lane.iter_mut().zip(row(start..tile.end.min(start + lanes))) {
            *acc = O::combine(*acc, x);
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
        let mut best = Extreme { index: start, value: chunk[0] };
        for (block, part) in chunk.chunks(BLOCK).enumerate() {
            // Few blocks have a better one; whether this one does is found without branches.
            let value = best.value;
            if part.iter().fold(false, |any, &x| any | end.before(x, value)) {
                let each =
                    part.iter().enumerate().map(|(i, &value)| Extreme { index: start + block * BLOCK + i, value });
                best = each.fold(best, better);
            }
        }
        best
    };
    let parts: Vec<_> = if size_of_val(input) <= SERIAL_BYTES {
        vec![scan((0, input))]
    } else {
        tiles(input, &|start, part| scan((start, part)))
    };
    // In order of index, so that the earlier of two equal elements stays.
    parts.into_iter().reduce(better).expect("the input is not empty")
}
