//! The extremes of segments on the CPU: the tiles of `cl/reduce_segmented_extremes.cl`. Threads share the tiles.

use std::ops::Range;

use crate::{
    Element, Result, memory, parallel,
    reduce::{
        End, Extreme,
        cpu::{better, extreme_of},
    },
    segments::Offsets,
};

/// Steps of a tile. Each step takes an element or an offset.
const TILE: usize = 1 << 15;

/// The elements and the offsets of a tile.
#[derive(Clone)]
struct Tile {
    elements: Range<usize>,
    offsets: Range<usize>,
}

/// Of a tile: the extreme before its first offset and after its last, and the number of its first offset. Without an
/// offset, `before` is the extreme of all its elements.
#[derive(Clone, Copy)]
struct Node<T> {
    before: Option<Extreme<T>>,
    after: Option<Extreme<T>>,
    first: Option<usize>,
}

/// The results of a tile at one end.
struct Part<'a, T> {
    end: End,
    /// Those of the segments that end at the tile's second offset or a later one.
    values: &'a mut [T],
    indices: &'a mut [u64],
    node: &'a mut Node<T>,
}

/// Finds the extremes of each segment. There is at least one offset. The results at the second end are `room` elements
/// after those at the first one.
pub(crate) fn find<T: Element>(
    input: &[T],
    offsets: Offsets<'_>,
    ends: &[End],
    room: usize,
    values: &mut [T],
    indices: &mut [u64],
) -> Result<()> {
    let segments = offsets.len() - 1;
    if segments == 0 {
        return Ok(());
    }
    let tiles = tiles(input.len(), offsets)?;
    let nothing = Node { before: None, after: None, first: None };
    let mut nodes = memory::filled(ends.len() * tiles.len(), nothing)?;
    let mut tasks = memory::collect(tiles.iter().map(|tile| (tile.clone(), Vec::new())))?;
    let results = values.chunks_mut(room).zip(indices.chunks_mut(room));
    for ((&end, (mut values, mut indices)), nodes) in ends.iter().zip(results).zip(nodes.chunks_mut(tiles.len())) {
        for ((tile, parts), node) in tasks.iter_mut().zip(nodes) {
            // The segment that ends at the tile's first offset belongs to no tile.
            let skipped = usize::from(tile.offsets.start > 0 && !tile.offsets.is_empty());
            let own = skipped..skipped + tile.offsets.len().saturating_sub(1);
            let (mine, rest) = values.split_at_mut(own.end);
            let (my_indices, other_indices) = indices.split_at_mut(own.end);
            parts.push(Part { end, values: &mut mine[own.clone()], indices: &mut my_indices[own], node });
            (values, indices) = (rest, other_indices);
        }
    }
    parallel::consume(tasks.into_iter(), &|(tile, parts): (Tile, Vec<Part<'_, T>>)| {
        parts.into_iter().for_each(|part| walk(input, offsets, &tile, part));
    })?;
    let results = values.chunks_mut(room).zip(indices.chunks_mut(room));
    for ((&end, (values, indices)), nodes) in ends.iter().zip(results).zip(nodes.chunks(tiles.len())) {
        let mut open = None;
        for node in nodes {
            open = best_of(end, open, node.before);
            if let Some(rank) = node.first {
                if rank > 0 {
                    let start = offsets.get(rank - 1).min(input.len());
                    (values[rank - 1], indices[rank - 1]) = result(end, open, start);
                }
                open = node.after;
            }
        }
    }
    Ok(())
}

/// The tiles. Whatever the offsets, each offset belongs to one tile, and no tile reaches beyond the input.
fn tiles(n: usize, offsets: Offsets<'_>) -> Result<Vec<Tile>> {
    let steps = n + offsets.len();
    let count = steps.div_ceil(TILE);
    let splits = parallel::map(count - 1, &|t| split(n, offsets, (t + 1) * TILE))?;
    let mut low = 0;
    memory::collect((0..count).map(|t| {
        let start = t * TILE;
        let end = steps.min(start + TILE);
        let split = splits.get(t).copied().unwrap_or(offsets.len());
        let high = split.clamp(low, offsets.len().min(low + end - start));
        let base = n.min(start.saturating_sub(low));
        let tile = Tile { elements: base..n.min(base + (end - start) - (high - low)), offsets: low..high };
        low = high;
        tile
    }))
}

/// The number of offsets among the first `steps` steps.
fn split(n: usize, offsets: Offsets<'_>, steps: usize) -> usize {
    let (mut low, mut high) = (steps.saturating_sub(n), steps.min(offsets.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        if offsets.get(middle).min(n) < steps - middle {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn walk<T: Element>(input: &[T], offsets: Offsets<'_>, tile: &Tile, part: Part<'_, T>) {
    let Part { end, values, indices, node } = part;
    let extreme = |range: Range<usize>| {
        if range.is_empty() { None } else { Some(extreme_of(range.start, &input[range], end)) }
    };
    let mut at = tile.elements.start;
    for rank in tile.offsets.clone() {
        let offset = offsets.get(rank).min(input.len());
        // An offset that is out of order has no result.
        if offset < at || offset > tile.elements.end {
            continue;
        }
        let found = extreme(at..offset);
        if node.first.is_none() {
            (node.first, node.before) = (Some(rank), found);
        } else {
            let own = rank - tile.offsets.start - 1;
            (values[own], indices[own]) = result(end, found, at);
        }
        at = offset;
    }
    let last = extreme(at..tile.elements.end);
    if node.first.is_none() {
        node.before = last;
    }
    node.after = last;
}

/// The extreme of two neighbouring ranges, either of which may be empty.
fn best_of<T: Element>(end: End, left: Option<Extreme<T>>, right: Option<Extreme<T>>) -> Option<Extreme<T>> {
    match (left, right) {
        (Some(left), Some(right)) => Some(better(end, left, right)),
        (left, right) => left.or(right),
    }
}

/// The value, and its index from the start of its segment.
fn result<T: Element>(end: End, found: Option<Extreme<T>>, start: usize) -> (T, u64) {
    found.map_or((end.empty(), u64::MAX), |found| (found.value, found.index.saturating_sub(start) as u64))
}
