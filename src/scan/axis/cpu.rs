//! Scans along a strided axis on the CPU: the order of `cl/scan_axis.cl`. Threads share the chunks of neighbouring
//! lines.

use super::{CHUNK, Shape};
use crate::{
    Element, Result, memory,
    op::Monoid,
    parallel,
    scan::{
        Scan,
        cpu::{Spine, start},
    },
};

/// Neighbouring lines of a task.
const COLUMNS: usize = 512;

/// A chunk of neighbouring lines: their outer index, the chunk's number, the first line, and the chunk's rows.
struct Part<'o, U> {
    outer: usize,
    chunk: usize,
    column: usize,
    rows: Vec<&'o mut [U]>,
}

/// Divides the output into parts. The rows of a part are in the order of the scan.
fn parts<'o, U>(shape: &Shape, reversed: bool, out: &'o mut [U]) -> Result<Vec<Part<'o, U>>> {
    let Shape { len, inner, .. } = *shape;
    let blocks = inner.div_ceil(COLUMNS);
    let mut parts: Vec<Part<'_, U>> = Vec::new();
    for (row, out) in out.chunks_mut(inner).enumerate() {
        let (outer, row) = (row / len, row % len);
        let chunk = if reversed { len - 1 - row } else { row } / CHUNK;
        if parts.last().is_none_or(|part| (part.outer, part.chunk) != (outer, chunk)) {
            memory::reserve(&mut parts, blocks)?;
            for block in 0..blocks {
                let rows = memory::with_capacity(CHUNK.min(len))?;
                parts.push(Part { outer, chunk, column: block * COLUMNS, rows });
            }
        }
        let first = parts.len() - blocks;
        parts[first..].iter_mut().zip(out.chunks_mut(COLUMNS)).for_each(|(part, out)| part.rows.push(out));
    }
    if reversed {
        parts.iter_mut().for_each(|part| part.rows.reverse());
    }
    Ok(parts)
}

pub(super) fn scan<T, U, F>(op: &Monoid<U, F>, input: &[T], shape: &Shape, kind: Scan<U>, out: &mut [U]) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
{
    let Shape { outer, len, inner } = *shape;
    let (initial, inclusive) = start(op, kind);
    let (chunks, blocks) = (len.div_ceil(CHUNK), inner.div_ceil(COLUMNS));
    // Element i, in the order of the scan, of at most `COLUMNS` lines from `column` on.
    let row = |outer: usize, i: usize, column: usize| {
        let i = if kind.reversed { len - 1 - i } else { i };
        &input[(outer * len + i) * inner + column..][..COLUMNS.min(inner - column)]
    };
    let add = |acc: &mut U::Acc, x: &T| *acc = (op.combine)(*acc, U::from(*x).widen());
    let totals = |task: usize| -> Result<Vec<U::Acc>> {
        let (outer, chunk, column) =
            (task / blocks / (chunks - 1), task / blocks % (chunks - 1), task % blocks * COLUMNS);
        let mut totals = memory::collect(row(outer, chunk * CHUNK, column).iter().map(|&x| U::from(x).widen()))?;
        for i in chunk * CHUNK + 1..(chunk + 1) * CHUNK {
            totals.iter_mut().zip(row(outer, i, column)).for_each(|(total, x)| add(total, x));
        }
        Ok(totals)
    };
    let totals = parallel::try_map(outer * (chunks - 1) * blocks, &totals)?;
    // The exclusive prefixes of the chunks of at most `COLUMNS` lines, chunk by chunk.
    let carries = |task: usize| -> Result<Vec<Vec<U::Acc>>> {
        let (outer, block) = (task / blocks, task % blocks);
        let columns = COLUMNS.min(inner - block * COLUMNS);
        let mut carries = memory::with_capacity(chunks)?;
        for _ in 0..chunks {
            carries.push(memory::filled(columns, initial)?);
        }
        for column in 0..columns {
            let mut spine = Spine::new(&op.combine, op.identity);
            for chunk in 1..chunks {
                spine.push(totals[(outer * (chunks - 1) + chunk - 1) * blocks + block][column]);
                carries[chunk][column] = initial;
                for digit in spine.digits() {
                    carries[chunk][column] = (op.combine)(carries[chunk][column], digit);
                }
            }
        }
        Ok(carries)
    };
    let carries = parallel::try_map(outer * blocks, &carries)?;
    let parts = parts(shape, kind.reversed, out)?;
    parallel::consume(parts.into_iter(), &|Part { outer, chunk, column, rows }| {
        // At most `COLUMNS` accumulators.
        let mut acc = carries[outer * blocks + column / COLUMNS][chunk].clone();
        for (i, out) in (chunk * CHUNK..).zip(rows) {
            for ((acc, x), out) in acc.iter_mut().zip(row(outer, i, column)).zip(out) {
                let before = *acc;
                add(acc, x);
                *out = U::narrow(if inclusive { *acc } else { before });
            }
        }
    })
}
