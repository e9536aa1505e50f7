//! Iota on the CPU.

use crate::{Element, op::Arithmetic, parallel};

/// Elements per task.
const CHUNK: usize = parallel::SERIAL;

#[inline(never)]
pub(super) fn iota<T: Element>(start: T, step: T, out: &mut [T]) {
    parallel::chunks_mut(out, CHUNK, &|chunk, out| {
        let first = chunk * CHUNK;
        if T::TYPE.is_float() {
            let (start, step) = (start.widen(), step.widen());
            let half = T::Acc::from_f64(0.5);
            let (half_start, half_step) = (start.mul(half), step.mul(half));
            for (i, x) in (first..).zip(out) {
                // `f64` holds the index exactly, so the conversion rounds once.
                let i = T::Acc::from_f64(i as f64);
                let product = i.mul(step);
                // The sum can be finite even if the product is not.
                let sum = if product.to_f64().is_infinite() {
                    half_start.add(i.mul(half_step)).mul(T::Acc::from_integer(2))
                } else {
                    start.add(product)
                };
                *x = T::narrow(sum);
            }
        } else {
            let mut next = start.add(T::from_integer(first as i128).mul(step));
            for x in out {
                *x = next;
                next = next.add(step);
            }
        }
    });
}
