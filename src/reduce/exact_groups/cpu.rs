//! Exact sums of a group and of segments on the CPU. Threads share the segments, and the parts of long ones.

use std::ops::Range;

use super::Exact;
use crate::{Element, ExactSum, Float, Result, exact, parallel, reduce::cpu, segments::Offsets};

/// Elements of a task. Threads share a segment that has more than twice as many.
pub(in crate::reduce) const TASK: usize = 1 << 16;
/// Elements of a line that are copied at once.
pub(in crate::reduce) const BLOCK: usize = exact::CHUNK;

/// The float type in which the elements are added: the accumulator of `U`.
pub(in crate::reduce) fn value<T: Element, U: Element + From<T>, F: Float>(x: T) -> F {
    bytemuck::cast::<U::Acc, F>(U::from(x).widen())
}

/// The nearest `U` to the sum or mean of a line. Lines of up to [`BLOCK`] elements need no accumulator.
pub(in crate::reduce) fn line<T: Element, U: Element + From<T>, F: Float>(
    of: Exact,
    len: usize,
    mut x: impl Iterator<Item = T>,
) -> U {
    let mut block = [F::ADD_IDENTITY; BLOCK];
    if len <= BLOCK {
        block.iter_mut().zip(x).for_each(|(to, x)| *to = value::<T, U, F>(x));
        return exact::rounded_block(&block[..len.next_multiple_of(exact::LANES)], len, of.divisor(len));
    }
    let mut sum = ExactSum::<F>::new();
    for start in (0..len).step_by(BLOCK) {
        let count = BLOCK.min(len - start);
        block[..count].iter_mut().zip(&mut x).for_each(|(to, x)| *to = value::<T, U, F>(x));
        sum.add_slice(&block[..count]);
    }
    sum.rounded_quotient(of.divisor(len))
}

/// The sums or means of the segments; `U` is a float. For other types nothing is compiled. The summands are the elements
/// of `input`, or their products with those of `other`.
pub(crate) fn segments<T, U>(
    of: Exact,
    input: &[T],
    other: Option<&[T]>,
    offsets: Offsets<'_>,
    out: &mut [U],
) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
{
    if const { !U::TYPE.is_float() } {
        unreachable!("exact sums are floats");
    }
    if const { U::TYPE.needs_fp64() } {
        segments_in::<T, U, f64>(of, input, other, offsets, out)
    } else {
        segments_in::<T, U, f32>(of, input, other, offsets, out)
    }
}

fn segments_in<T: Element, U: Element + From<T>, F: Float>(
    of: Exact,
    input: &[T],
    other: Option<&[T]>,
    offsets: Offsets<'_>,
    out: &mut [U],
) -> Result<()> {
    let n = input.len();
    let range = |s: usize| {
        let (start, end) = (offsets.get(s).min(n), offsets.get(s + 1).min(n));
        start..end.max(start)
    };
    let add = |sum: &mut ExactSum<F>, part: Range<usize>| match other {
        Some(other) => input[part.clone()]
            .iter()
            .zip(&other[part])
            .for_each(|(&x, &y)| sum.add_product(value::<T, U, F>(x), value::<T, U, F>(y))),
        None => sum.extend(input[part].iter().map(|&x| value::<T, U, F>(x))),
    };
    let is_long = |range: &Range<usize>| range.len() > 2 * TASK;
    let each = (out.len() * TASK / n.max(1)).clamp(1, TASK);
    let body = |task: usize, out: &mut [U]| {
        for (s, out) in (task * each..).zip(out) {
            let range = range(s);
            if is_long(&range) {
                continue;
            }
            *out = if other.is_some() {
                let mut sum = ExactSum::<F>::new();
                add(&mut sum, range.clone());
                sum.rounded_quotient(of.divisor(range.len()))
            } else {
                line::<T, U, F>(of, range.len(), input[range].iter().copied())
            };
        }
    };
    if n <= TASK && out.len() <= TASK {
        out.chunks_mut(each).enumerate().for_each(|(task, out)| body(task, out));
    } else {
        parallel::chunks_mut(out, each, &body);
    }
    if n > 2 * TASK {
        for (s, out) in out.iter_mut().enumerate() {
            let range = range(s);
            if is_long(&range) {
                let add = |sum: &mut ExactSum<F>, part: Range<usize>| {
                    add(sum, range.start + part.start..range.start + part.end);
                    Ok(())
                };
                *out = cpu::exact(range.len(), &add)?.rounded_quotient(of.divisor(range.len()));
            }
        }
    }
    Ok(())
}
