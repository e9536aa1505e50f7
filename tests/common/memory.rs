//! Memory that the CPU backend allocates.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator, which counts the bytes that each thread allocates.
pub(crate) struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.dealloc(address, layout) }
    }
}

/// The bytes that a pool of two threads allocates while it runs `body`, if [`Counting`] is the allocator.
pub(crate) fn allocated(body: impl FnOnce() + Send) -> usize {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let so_far = || pool.broadcast(|_| ALLOCATED.get()).iter().sum::<usize>();
    let before = so_far();
    pool.install(body);
    so_far() - before
}
