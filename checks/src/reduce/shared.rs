//! Shared parts of the specs of reductions.

use crate::{
    Device, Element, ErrorKind, Result,
    check::{Failure, operators::Function},
    op::{Monoid, OpKind, Sum, Usage},
};

/// Returns an error if the device has no exact sums of floats.
pub(super) fn has_exact_sums<T: Element>(device: &Device) -> Result<()> {
    device.reduce(&[T::ZERO; 0], Sum.exact()).map(drop)
}

/// The CPU backend is the reference, so a case that it does not support is a failure, not a skip.
pub(super) fn on_cpu_at_least(device: &Device, supported: Result<()>) -> Result<(), Failure> {
    supported.map_err(|error| match error.kind() {
        ErrorKind::Unsupported if device.is_cpu() => Failure::Mismatch(error.to_string()),
        _ => error.into(),
    })
}

/// For a bitwise AND or OR, keeps one element in `every`, and replaces the others by the operator's identity.
/// The AND of many random elements would be 0 and the OR all ones, even with missing elements.
pub(super) fn thin<T: Element>(values: &mut [T], op: OpKind, every: usize) {
    let neutral = match op {
        OpKind::And => T::from_bits_lossy(u64::MAX),
        OpKind::Or => T::ZERO,
        _ => return,
    };
    let others = values.iter_mut().enumerate().filter(|(i, _)| i % every != every / 2);
    others.for_each(|(_, x)| *x = neutral);
}

/// The fixed tree over `values` of elements of type `T`, by definition. Element i of a tile belongs to lane i mod
/// lanes.
pub(super) fn obvious_tree<T: Element, U: Element>(op: &Monoid<U, Function<U::Acc>>, mut values: Vec<U::Acc>) -> U {
    if values.is_empty() {
        return op.empty;
    }
    let level = |values: &[U::Acc], bytes: usize| {
        let lanes = 4096 / bytes;
        chunk_trees(values, 16 * lanes, lanes, op.identity, &op.combine)
    };
    values = level(&values, size_of::<T>());
    while values.len() > 1 {
        values = level(&values, size_of::<U::Acc>());
    }
    U::narrow(values[0])
}

/// The tree over each chunk of `size` values. Element i of a chunk belongs to lane i mod `lanes`, and [`pairs_tree`]
/// joins the lanes.
pub(super) fn chunk_trees<A: Copy>(
    values: &[A],
    size: usize,
    lanes: usize,
    identity: A,
    combine: &dyn Fn(A, A) -> A,
) -> Vec<A> {
    let mut trees = Vec::new();
    for chunk in values.chunks(size) {
        let mut lane = vec![identity; lanes];
        for (i, &x) in chunk.iter().enumerate() {
            lane[i % lanes] = combine(lane[i % lanes], x);
        }
        trees.push(pairs_tree(lane, combine));
    }
    trees
}

/// Combines pairs of neighbours, level by level. On a level with an odd number of values, the last one has no partner.
pub(super) fn pairs_tree<A: Copy>(mut values: Vec<A>, combine: &dyn Fn(A, A) -> A) -> A {
    while values.len() > 1 {
        let pairs = values.len() / 2;
        for k in 0..pairs {
            values[k] = combine(values[2 * k], values[2 * k + 1]);
        }
        if values.len() % 2 == 1 {
            values[pairs] = values[2 * pairs];
        }
        values.truncate(values.len().div_ceil(2));
    }
    values[0]
}
