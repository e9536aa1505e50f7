//! Merges on the CPU: threads merge parts of the result, each from its own split.

use crate::{Result, memory, parallel};

/// Elements per part.
pub(crate) const PART: usize = 1 << 14;

/// Elements with their values; values are `()` if there are none.
pub(crate) type Pairs<'a, T, V> = (&'a [T], &'a [V]);
/// `Pairs` that can be written.
pub(crate) type PairsMut<'a, T, V> = (&'a mut [T], &'a mut [V]);

/// Number of elements of `a` among the first `d` elements of the merge of `a` and `b`.
pub(crate) fn split<T>(a: &[T], b: &[T], d: usize, less: &impl Fn(&T, &T) -> bool) -> usize {
    let (mut low, mut high) = (d.saturating_sub(b.len()), d.min(a.len()));
    while low < high {
        let mid = low.midpoint(high);
        if less(&b[d - 1 - mid], &a[mid]) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    low
}

/// Writes the first elements of a merge, as many as `to` has.
pub(crate) fn serial<T: Copy, V: Copy>(
    a: Pairs<'_, T, V>,
    b: Pairs<'_, T, V>,
    to: PairsMut<'_, T, V>,
    less: &impl Fn(&T, &T) -> bool,
) {
    let (mut at_a, mut at_b) = (0, 0);
    for (key, value) in to.0.iter_mut().zip(to.1) {
        let second = at_a == a.0.len() || (at_b < b.0.len() && less(&b.0[at_b], &a.0[at_a]));
        if second {
            (*key, *value) = (b.0[at_b], b.1[at_b]);
            at_b += 1;
        } else {
            (*key, *value) = (a.0[at_a], a.1[at_a]);
            at_a += 1;
        }
    }
}

/// The tasks of a merge, one per part: both ranges, the first index of the part in the result, and its output.
pub(crate) type Tasks<'a, T, V> = Vec<(Pairs<'a, T, V>, Pairs<'a, T, V>, usize, PairsMut<'a, T, V>)>;

/// Adds the tasks of one merge to `tasks`.
pub(crate) fn push_tasks<'a, T, V>(
    a: Pairs<'a, T, V>,
    b: Pairs<'a, T, V>,
    to: PairsMut<'a, T, V>,
    tasks: &mut Tasks<'a, T, V>,
) -> Result<()> {
    let parts = to.0.chunks_mut(PART).zip(to.1.chunks_mut(PART)).enumerate();
    memory::reserve(tasks, parts.len())?;
    tasks.extend(parts.map(|(i, part)| (a, b, i * PART, part)));
    Ok(())
}

/// Runs the tasks of one or more merges.
pub(crate) fn run<T: Copy + Send + Sync, V: Copy + Send + Sync>(
    tasks: Tasks<'_, T, V>,
    less: &(impl Fn(&T, &T) -> bool + Sync),
) -> Result<()> {
    parallel::consume(tasks.into_iter(), &|(a, b, d, to)| {
        let at = split(a.0, b.0, d, less);
        serial((&a.0[at..], &a.1[at..]), (&b.0[d - at..], &b.1[d - at..]), to, less);
    })
}

/// Merges two sorted ranges into `to`.
pub(super) fn merge<T: Copy + Send + Sync, V: Copy + Send + Sync>(
    a: Pairs<'_, T, V>,
    b: Pairs<'_, T, V>,
    to: PairsMut<'_, T, V>,
    less: &(impl Fn(&T, &T) -> bool + Sync),
) -> Result<()> {
    let mut tasks = Vec::new();
    push_tasks(a, b, to, &mut tasks)?;
    run(tasks, less)
}
