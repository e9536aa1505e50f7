//! Iota on the CPU.

use crate::{Integer, parallel};

/// Elements of a task.
const CHUNK: usize = 1 << 14;

pub(super) fn iota<T: Integer>(start: T, out: &mut [T]) {
    parallel::chunks_mut(out, CHUNK, &|chunk, out| {
        let mut next = start.add(T::from_i128((chunk * CHUNK) as i128));
        for x in out {
            *x = next;
            next = next.add(T::ONE);
        }
    });
}
