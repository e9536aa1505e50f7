//! Set operations on the CPU: threads process parts of the merged sequence of both ranges.

use super::SetOp;
use crate::{
    Result, memory,
    merge::cpu::{PART, split},
    parallel,
};

/// The kept elements, one vector per part.
pub(super) fn kept<T: Copy + Send + Sync>(
    op: SetOp,
    a: &[T],
    b: &[T],
    less: &(impl Fn(&T, &T) -> bool + Sync),
) -> Result<Vec<Vec<T>>> {
    let n = a.len() + b.len();
    parallel::try_map(n.div_ceil(PART), &|i| part(op, a, b, i * PART, (n - i * PART).min(PART), less))
}

/// Index of the first element that is equal to `x[at]`.
fn equals<T>(x: &[T], at: usize, less: &impl Fn(&T, &T) -> bool) -> usize {
    x.get(at).map_or(at, |found| x[..at].partition_point(|x| less(x, found)))
}

/// The kept elements among `len` elements of the merged sequence, from index `d` on, as in `cl/set.cl`.
fn part<T: Copy>(op: SetOp, a: &[T], b: &[T], d: usize, len: usize, less: &impl Fn(&T, &T) -> bool) -> Result<Vec<T>> {
    let mut at_a = split(a, b, d, less);
    let mut at_b = d - at_a;
    let (mut equals_a, mut equals_b) = (equals(a, at_a, less), equals(b, at_b, less));
    let mut kept = Vec::new();
    for _ in 0..len {
        if at_a == a.len() || (at_b < b.len() && less(&b[at_b], &a[at_a])) {
            let x = b[at_b];
            let matched = at_a.checked_sub(1 + at_b - equals_b).is_some_and(|place| !less(&a[place], &x));
            if matches!(op, SetOp::Union | SetOp::SymmetricDifference) && !matched {
                memory::push(&mut kept, x)?;
            }
            at_b += 1;
            equals_b = if b.get(at_b).is_some_and(|next| less(&x, next)) { at_b } else { equals_b };
        } else {
            let x = a[at_a];
            let matched = b.get(at_b + at_a - equals_a).is_some_and(|found| !less(&x, found));
            if op == SetOp::Union || matched == (op == SetOp::Intersection) {
                memory::push(&mut kept, x)?;
            }
            at_a += 1;
            equals_a = if a.get(at_a).is_some_and(|next| less(&x, next)) { at_a } else { equals_a };
        }
    }
    Ok(kept)
}
