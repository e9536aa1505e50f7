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

/// The fixed tree over `values` of elements of type `T`, by definition. Element i of a tile belongs to lane i mod lanes.
pub(super) fn obvious_tree<T: Element, U: Element>(op: &Monoid<U, Function<U::Acc>>, mut values: Vec<U::Acc>) -> U {
    fn level<A: Copy>(x: &[A], lanes: usize, identity: A, combine: Function<A>) -> Vec<A> {
        let tile = |chunk: &[A]| {
            let lane = |j: usize| chunk.iter().skip(j).step_by(lanes).fold(identity, |acc, &x| combine(acc, x));
            let mut values: Vec<A> = (0..lanes).map(lane).collect();
            while values.len() > 1 {
                values = values.chunks(2).map(|pair| combine(pair[0], pair[1])).collect();
            }
            values[0]
        };
        x.chunks(16 * lanes).map(tile).collect()
    }
    if values.is_empty() {
        return op.empty;
    }
    values = level(&values, 4096 / size_of::<T>(), op.identity, op.combine);
    while values.len() > 1 {
        values = level(&values, 4096 / size_of::<U::Acc>(), op.identity, op.combine);
    }
    U::narrow(values[0])
}
