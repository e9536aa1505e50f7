//! Merges on the CPU: threads merge parts of the result, each from its own split.
//!
//! The loops that compare elements are compiled for each type and order. All other code is compiled once, and
//! sees elements as bytes.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use crate::{Result, memory, parallel};

/// Elements per part.
pub(crate) const PART: usize = 1 << 14;

/// Elements with their values; values are `()` if there are none.
pub(crate) type Pairs<'a, T, V> = (&'a [T], &'a [V]);
/// `Pairs` that can be written.
pub(crate) type PairsMut<'a, T, V> = (&'a mut [T], &'a mut [V]);

/// The bytes of elements and those of their values.
pub(crate) type Bytes<'a> = Pairs<'a, u8, u8>;
/// `Bytes` that can be written.
pub(crate) type BytesMut<'a> = PairsMut<'a, u8, u8>;

/// Bytes of an element and of a value.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) key: usize,
    pub(crate) value: usize,
}

impl Sizes {
    pub(crate) const fn of<T, V>() -> Self {
        Self { key: size_of::<T>(), value: size_of::<V>() }
    }

    /// The elements of a range.
    pub(crate) fn part<'a>(self, (keys, values): Bytes<'a>, range: std::ops::Range<usize>) -> Bytes<'a> {
        let part = |size: usize| range.start * size..range.end * size;
        (&keys[part(self.key)], &values[part(self.value)])
    }

    /// Splits off the first `len` elements.
    pub(crate) fn take<'a>(self, rest: &mut BytesMut<'a>, len: usize) -> BytesMut<'a> {
        let take = |rest: &mut &'a mut [u8], size: usize| {
            rest.split_off_mut(..len * size).expect("the range has these elements")
        };
        (take(&mut rest.0, self.key), take(&mut rest.1, self.value))
    }
}

/// The bytes of elements and values.
pub(crate) fn bytes<'a, T: Pod, V: Pod>((keys, values): Pairs<'a, T, V>) -> Bytes<'a> {
    (cast_slice(keys), cast_slice(values))
}

/// [`bytes`] that can be written.
pub(crate) fn bytes_mut<'a, T: Pod, V: Pod>((keys, values): PairsMut<'a, T, V>) -> BytesMut<'a> {
    (cast_slice_mut(keys), cast_slice_mut(values))
}

/// The elements and values that bytes hold. There are as many zero-sized values as elements.
pub(crate) fn typed<'a, T: Pod, V: Pod>((keys, values): Bytes<'a>) -> Pairs<'a, T, V> {
    let keys = cast_slice(keys);
    (keys, if const { size_of::<V>() == 0 } { no_bytes(keys.len()) } else { cast_slice(values) })
}

/// [`typed`] that can be written.
pub(crate) fn typed_mut<'a, T: Pod, V: Pod>((keys, values): BytesMut<'a>) -> PairsMut<'a, T, V> {
    let keys: &mut [T] = cast_slice_mut(keys);
    let values = if const { size_of::<V>() == 0 } { no_bytes(keys.len()) } else { cast_slice_mut(values) };
    (keys, values)
}

/// `len` zero-sized elements. They need no memory, so none is leaked.
fn no_bytes<'a, V: Pod>(len: usize) -> &'a mut [V] {
    vec![V::zeroed(); len].leak()
}

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

/// A task of a merge: both ranges, the first index of the part in the result, and its output.
pub(crate) type Task<'a> = (Bytes<'a>, Bytes<'a>, usize, BytesMut<'a>);

/// Writes the elements of a merge from an index on, as many as `to` has.
pub(crate) fn part<T: Pod, V: Pod>((a, b, d, to): Task<'_>, less: &impl Fn(&T, &T) -> bool) {
    let (a, b) = (typed::<T, V>(a), typed::<T, V>(b));
    let at = split(a.0, b.0, d, less);
    serial((&a.0[at..], &a.1[at..]), (&b.0[d - at..], &b.1[d - at..]), typed_mut(to), less);
}

/// Adds the tasks of one merge to `tasks`, one for each part.
pub(crate) fn push_tasks<'a>(
    sizes: Sizes,
    a: Bytes<'a>,
    b: Bytes<'a>,
    mut to: BytesMut<'a>,
    tasks: &mut Vec<Task<'a>>,
) -> Result<()> {
    let n = to.0.len() / sizes.key;
    memory::reserve(tasks, n.div_ceil(PART))?;
    for first in (0..n).step_by(PART) {
        tasks.push((a, b, first, sizes.take(&mut to, PART.min(n - first))));
    }
    Ok(())
}

/// Merges two sorted ranges into `to`.
pub(super) fn merge<T: Pod + Send + Sync, V: Pod + Send + Sync>(
    a: Pairs<'_, T, V>,
    b: Pairs<'_, T, V>,
    to: PairsMut<'_, T, V>,
    less: &(impl Fn(&T, &T) -> bool + Sync),
) -> Result<()> {
    merge_bytes(Sizes::of::<T, V>(), bytes(a), bytes(b), bytes_mut(to), &|task| part::<T, V>(task, less))
}

/// [`merge`], compiled once. `part` writes a part of the result.
fn merge_bytes(
    sizes: Sizes,
    a: Bytes<'_>,
    b: Bytes<'_>,
    to: BytesMut<'_>,
    part: &(dyn Fn(Task<'_>) + Sync),
) -> Result<()> {
    let mut tasks = Vec::new();
    push_tasks(sizes, a, b, to, &mut tasks)?;
    parallel::consume(tasks.into_iter(), part)
}
