//! Reduction on the CPU: the same tiles and the same tree as in `cl/reduce.cl`. Threads share the tiles.

use std::ops::Range;

use super::{End, Extreme};
use crate::{Element, ElementType, ExactSum, Float, Result, bf16, f16, memory, op::Op, parallel, source::Blocks};

/// Rows of a tile; `TILE_ROWS` of `cl/reduce.cl`.
const TILE_ROWS: usize = 16;
/// Bytes of a row: 256 work-items of 16 bytes.
const ROW_BYTES: usize = 4096;
/// Elements that a branch-free loop tests at once: does any of them beat the best so far?
const BLOCK: usize = 64;
/// Input bytes up to which one thread is faster than several.
const SERIAL_BYTES: usize = 128 << 10;

/// A tile of `T` reduced to one accumulator.
type Partial<T> = Result<<T as Element>::Acc>;

/// The lanes of a tile of `T`.
pub const fn lanes<T>() -> usize {
    ROW_BYTES / size_of::<T>()
}

/// The elements of a tile of `T`.
pub const fn tile<T>() -> usize {
    TILE_ROWS * lanes::<T>()
}

// `Fast` and `Fixed` both use the fixed tree. The CPU is limited by memory bandwidth, so another order is not faster.
pub(super) fn reduce<T: Element, O: Op<T>>(input: &[T]) -> Result<T> {
    let n = input.len();
    if n == 0 {
        return Ok(O::empty());
    }
    let partial = |i: usize| {
        let tile = &input[i * tile::<T>()..n.min((i + 1) * tile::<T>())];
        if const { T::TYPE.is_float() } {
            reduce_tile::<T, O, _>(lanes::<T>(), tile.len(), &|row| tile[row].iter().map(|x| x.widen()))
        } else {
            Ok(reduce_any::<T, O>(tile))
        }
    };
    reduce_partials(n, &partial, &reduce_accumulators::<T, O>)
}

/// The correctly rounded sum of floats.
pub(super) fn exact_sum<T: Element>(input: &[T]) -> Result<T> {
    Ok(match T::TYPE {
        ElementType::F16 => exact_total::<f16>(bytemuck::cast_slice(input))?.rounded(),
        ElementType::Bf16 => exact_total::<bf16>(bytemuck::cast_slice(input))?.rounded(),
        ElementType::F64 => exact_total::<f64>(bytemuck::cast_slice(input))?.rounded(),
        _ => exact_total::<f32>(bytemuck::cast_slice(input))?.rounded(),
    })
}

/// The exact sum of floats.
pub(super) fn exact_total<T: Float>(input: &[T]) -> Result<ExactSum<T>> {
    exact(input.len(), &|sum, part| {
        sum.add_slice(&input[part]);
        Ok(())
    })
}

/// The exact sum of computed floats.
pub(super) fn exact_total_of_blocks<T: Float>(n: usize, values: &dyn Blocks<T>) -> Result<ExactSum<T>> {
    exact(n, &|sum, part: Range<usize>| {
        add_blocks(values, part, |x, y| match y {
            Some(y) => x.iter().zip(y).for_each(|(&x, &y)| sum.add_product(x, y)),
            None => sum.add_slice(x),
        })
    })
}

/// Calls `add` for each chunk of `part`: with its elements or, if they are products, with both factors.
fn add_blocks<T: Element>(
    values: &dyn Blocks<T>,
    part: Range<usize>,
    mut add: impl FnMut(&[T], Option<&[T]>),
) -> Result<()> {
    let factors = values.factors();
    let mut x = memory::zeroed::<T>(lanes::<T>())?;
    let mut y = memory::zeroed::<T>(if factors.is_some() { lanes::<T>() } else { 0 })?;
    for start in part.clone().step_by(lanes::<T>()) {
        let len = lanes::<T>().min(part.end - start);
        match factors {
            Some(factors) => {
                factors[0].block(start, &mut x[..len]);
                factors[1].block(start, &mut y[..len]);
                add(&x[..len], Some(&y[..len]));
            }
            None => {
                values.block(start, &mut x[..len]);
                add(&x[..len], None);
            }
        }
    }
    Ok(())
}

/// The correctly rounded sum of computed floats.
pub(super) fn exact_blocks<T: Element>(n: usize, values: &dyn Blocks<T>) -> Result<T> {
    fn add<T: Element, F: Float>(sum: &mut ExactSum<F>, values: &dyn Blocks<T>, part: Range<usize>) -> Result<()> {
        let number = |x: &T| bytemuck::cast::<T::Acc, F>(x.widen());
        add_blocks(values, part, |x, y| match y {
            Some(y) => x.iter().zip(y).for_each(|(x, y)| sum.add_product(number(x), number(y))),
            None => sum.extend(x.iter().map(number)),
        })
    }
    if const { !T::TYPE.is_float() } {
        unreachable!("exact sums are floats");
    }
    if const { T::TYPE.needs_fp64() } {
        Ok(exact::<f64>(n, &|sum, part| add(sum, values, part))?.rounded())
    } else {
        Ok(exact::<f32>(n, &|sum, part| add(sum, values, part))?.rounded())
    }
}

/// Adds the summands of a range to a sum.
type Add<'a, F> = dyn Fn(&mut ExactSum<F>, Range<usize>) -> Result<()> + Sync + 'a;

/// The sum of parts: `add` adds the summands of a range. Threads share the parts.
pub(super) fn exact<F: Float>(n: usize, add: &Add<'_, F>) -> Result<ExactSum<F>> {
    let part = |range: Range<usize>| {
        let mut sum = ExactSum::new();
        add(&mut sum, range).map(|()| sum)
    };
    let ranges = parallel::parts(n, parallel::SERIAL);
    let parts = parallel::try_map(ranges.len(), &|i| part(ranges[i].clone()))?;
    let mut all = ExactSum::<F>::new();
    parts.iter().for_each(|part| all.merge(part));
    Ok(all)
}

/// Reduces computed values in the tiles of `T`, in the same order as values in memory.
pub(super) fn reduce_blocks<T: Element, O: Op<T>>(n: usize, values: &dyn Blocks<T>) -> Result<T> {
    if n == 0 {
        return Ok(O::empty());
    }
    let row = lanes::<T>();
    let partial = |i: usize| {
        let tile = i * tile::<T>()..n.min((i + 1) * tile::<T>());
        let any_order = const { !T::TYPE.is_float() };
        let mut block = memory::zeroed::<T>(row)?;
        let mut lane = memory::filled(if any_order { 1 } else { row }, O::identity())?;
        for start in tile.clone().step_by(row) {
            let block = &mut block[..row.min(tile.end - start)];
            values.block(start, block);
            if any_order {
                lane[0] = O::combine(lane[0], reduce_any::<T, O>(block));
            } else {
                lane.iter_mut().zip(block).for_each(|(acc, x)| *acc = O::combine(*acc, x.widen()));
            }
        }
        Ok(combine_lanes::<T, O>(&mut lane))
    };
    reduce_partials(n, &partial, &reduce_accumulators::<T, O>)
}

/// Reduces a tile of partials to one partial.
fn reduce_accumulators<T: Element, O: Op<T>>(tile: &[T::Acc]) -> Result<T::Acc> {
    if const { T::TYPE.is_float() } {
        reduce_tile::<T, O, _>(lanes::<T::Acc>(), tile.len(), &|row| tile[row].iter().copied())
    } else {
        Ok(reduce_any::<T, O>(bytemuck::cast_slice(tile)))
    }
}

/// Reduces `n` elements of type `T`: `partial(i)` reduces tile i, and `again` reduces a tile of partials. Compiled once
/// for each type.
fn reduce_partials<T: Element>(
    n: usize,
    partial: &(dyn Fn(usize) -> Partial<T> + Sync),
    again: &dyn Fn(&[T::Acc]) -> Partial<T>,
) -> Result<T> {
    let tiles = n.div_ceil(tile::<T>());
    if tiles == 1 {
        return Ok(T::narrow(partial(0)?));
    }
    let mut partials = if n * size_of::<T>() <= SERIAL_BYTES {
        memory::try_collect((0..tiles).map(partial))?
    } else {
        parallel::try_map(tiles, &partial)?
    };
    while partials.len() > 1 {
        partials = memory::try_collect(partials.chunks(tile::<T::Acc>()).map(again))?;
    }
    Ok(T::narrow(partials[0]))
}

/// Calls `body` with the first index and the elements of each tile, and returns its results in order.
fn tiles<T: Element, R: Send + Sync>(input: &[T], body: &(dyn Fn(usize, &[T]) -> R + Sync)) -> Result<Vec<R>> {
    let len = tile::<T>();
    parallel::map(input.len().div_ceil(len), &|i| body(i * len, &input[i * len..input.len().min((i + 1) * len)]))
}

/// Reduces one tile, for operations whose order does not change the result. Its few lanes fit in registers.
fn reduce_any<T: Element, O: Op<T>>(tile: &[T]) -> T::Acc {
    const LANES: usize = 32;
    let mut lane = [O::identity(); LANES];
    let (whole, rest) = tile.as_chunks::<LANES>();
    for row in whole {
        for k in 0..LANES {
            lane[k] = O::combine(lane[k], row[k].widen());
        }
    }
    let mut all = O::identity();
    for x in &lane {
        all = O::combine(all, *x);
    }
    for x in rest {
        all = O::combine(all, x.widen());
    }
    all
}

/// Reduces one tile, or the start of one, in the order of `cl/reduce.cl`.
fn reduce_tile<U: Element, O: Op<U>, R: Iterator<Item = U::Acc>>(
    lanes: usize,
    len: usize,
    row: &impl Fn(Range<usize>) -> R,
) -> Result<U::Acc> {
    let mut lane = memory::filled(lanes, O::identity())?;
    for start in (0..len).step_by(lanes) {
        for (acc, x) in lane.iter_mut().zip(row(start..len.min(start + lanes))) {
            *acc = O::combine(*acc, x);
        }
    }
    Ok(combine_lanes::<U, O>(&mut lane))
}

/// Combines the lanes of a tile, neighbours first.
fn combine_lanes<U: Element, O: Op<U>>(lane: &mut [U::Acc]) -> U::Acc {
    let mut width = lane.len();
    while width > 1 {
        width /= 2;
        for k in 0..width {
            lane[k] = O::combine(lane[2 * k], lane[2 * k + 1]);
        }
    }
    lane[0]
}

/// Finds the extreme of `input`, which is not empty.
pub(super) fn arg_reduce<T: Element>(input: &[T], end: End) -> Result<Extreme<T>> {
    let parts: Vec<_> = if size_of_val(input) <= SERIAL_BYTES {
        vec![extreme_of(0, input, end)]
    } else {
        tiles(input, &|start, part| extreme_of(start, part, end))?
    };
    // Parts are in order of index, so the first of equal elements wins.
    Ok(parts.into_iter().reduce(|best, next| better(end, best, next)).expect("the input is not empty"))
}

/// The extreme of `chunk`, which is not empty. Its first element has the index `start`.
pub(super) fn extreme_of<T: Element>(start: usize, chunk: &[T], end: End) -> Extreme<T> {
    let mut best = Extreme { index: start, value: chunk[0] };
    for (block, part) in chunk.chunks(BLOCK).enumerate() {
        // Few parts have a better element. So a branch-free loop first tests whether a part has one.
        let value = best.value;
        if part.iter().fold(false, |any, &x| any | end.before(x, value)) {
            let each = part.iter().enumerate().map(|(i, &value)| Extreme { index: start + block * BLOCK + i, value });
            best = each.fold(best, |best, next| better(end, best, next));
        }
    }
    best
}

/// The extreme of two ranges; `next` is that of the later one.
pub(super) fn better<T: Element>(end: End, best: Extreme<T>, next: Extreme<T>) -> Extreme<T> {
    if end.before(next.value, best.value) { next } else { best }
}
