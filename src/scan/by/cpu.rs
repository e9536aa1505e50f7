//! Scans of structs on the CPU: the order of `cl/scan_by.cl`.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

use super::{RUN, lanes};
use crate::{
    Result, memory,
    op::{Operator, Scan},
    parallel,
    scan::cpu::{Mark, Spine, parts},
};

/// Scans the elements of `input`. `mark` sets the flags of the segment heads; without segments it sets none. If `out`
/// has one more element than `input`, this one receives the initial value combined with all elements.
pub(super) fn scan<T: Pod + Send + Sync, F: Fn(T, T) -> T + Sync>(
    op: &Operator<T, F>,
    input: &[T],
    mark: &Mark<'_>,
    usage: Scan<T>,
    out: &mut [T],
) -> Result<()> {
    let (n, lanes, combine) = (input.len(), lanes(size_of::<T>()), &op.combine);
    let (initial, inclusive) = (usage.initial.unwrap_or(op.identity), usage.initial.is_none());
    let at = |i: usize| input[if usage.reversed { n - 1 - i } else { i }];
    let join = |a: (T, bool), b: (T, bool)| (if b.1 { b.0 } else { combine(a.0, b.0) }, a.1 | b.1);
    let extend = |prefix, (value, head): (T, bool)| combine(if head { initial } else { prefix }, value);
    let tile = lanes * RUN;
    // The segment-head flags of a tile, and the scan of its lanes' aggregates.
    let lanes_of = |t: usize| {
        let (first, end) = (t * tile, n.min((t + 1) * tile));
        let (mut heads, mut partials) = (vec![false; end - first], vec![(op.identity, false); lanes]);
        mark(first, &mut heads);
        for (partial, start) in partials.iter_mut().zip((first..end).step_by(RUN)) {
            *partial = (at(start), heads[start - first]);
            for i in start + 1..end.min(start + RUN) {
                *partial = join(*partial, (at(i), heads[i - first]));
            }
        }
        let mut d = 1;
        while d < lanes {
            for k in 0..lanes / 2 {
                let upper = k / d * 2 * d + d;
                partials[upper + k % d] = join(partials[upper - 1], partials[upper + k % d]);
            }
            d *= 2;
        }
        (heads, partials)
    };
    let outputs = memory::collect(parts(out, tile, usage.reversed).map(|(_, out)| Mutex::new(Some(out))))?;
    let totals = parallel::map(outputs.len().saturating_sub(1), &|t| lanes_of(t).1[lanes - 1])?;
    let (mut spine, mut prefixes) = (Spine::new(&join, (op.identity, false)), memory::with_capacity(outputs.len())?);
    for t in 0..outputs.len() {
        prefixes.push(spine.digits().into_iter().fold(initial, extend));
        if let Some(&total) = totals.get(t) {
            spine.push(total);
        }
    }
    let write = |t: usize| {
        let (first, (heads, partials)) = (t * tile, lanes_of(t));
        let Some(out) = outputs[t].lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        for (lane, out) in out.chunks_mut(RUN).enumerate() {
            let mut acc = if lane == 0 { prefixes[t] } else { extend(prefixes[t], partials[lane - 1]) };
            for (position, out) in (lane * RUN..).zip(out) {
                let Some(&head) = heads.get(position) else {
                    *out = acc;
                    break;
                };
                let before = if head { initial } else { acc };
                acc = combine(before, at(first + position));
                *out = if inclusive { acc } else { before };
            }
        }
        if usage.reversed {
            out.reverse();
        }
    };
    parallel::for_each(outputs.len(), &write);
    Ok(())
}
