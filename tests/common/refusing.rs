//! An allocator that refuses one allocation of a call.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// The system's allocator, which refuses the allocation that [`without`] names.
pub(crate) struct Refusing;

/// Smaller allocations are never refused: lists whose length does not grow with the input, messages, and those of rayon.
const LEAST: usize = 4 << 10;

static COUNTING: AtomicBool = AtomicBool::new(false);
/// Allocations that are granted before one is refused.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Returns true if an allocation of so many bytes is the one that [`without`] names.
fn refuses(bytes: usize) -> bool {
    COUNTING.load(Ordering::Relaxed)
        && bytes >= LEAST
        && LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        && COUNTING.swap(false, Ordering::Relaxed)
}

// SAFETY: the system's allocator does the work. A null pointer is an allocator's answer if memory is short.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        if refuses(layout.size()) { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        if refuses(layout.size()) { ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        if refuses(bytes) { ptr::null_mut() } else { unsafe { System.realloc(address, layout, bytes) } }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.dealloc(address, layout) }
    }
}

/// Runs `body`, and refuses allocation `number` of at least 4 KiB. Returns also whether `body` came to it.
pub(crate) fn without<R>(number: usize, body: impl FnOnce() -> R) -> (R, bool) {
    LEFT.store(number, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
    let result = body();
    (result, !COUNTING.swap(false, Ordering::Relaxed))
}
