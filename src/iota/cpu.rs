//! Iota on the CPU.

use crate::{Element, parallel};

/// Elements of a task.
const CHUNK: usize = parallel::SERIAL;

pub(super) fn iota<T: Element>(start: T, step: T, out: &mut [T]) {
    parallel::chunks_mut(out, CHUNK, &|chunk, out| {
        let first = chunk * CHUNK;
        if T::TYPE.is_float() {
            let (start, step) = (start.widen(), step.widen());
            for (i, x) in (first..).zip(out) {
                // A place is exact in f64, so that it is rounded once.
                *x = T::narrow(start.add(T::Acc::from_f64(i as f64).mul(step)));
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
