//! Memory for the text of an error.
//!
//! The text of an error needs memory, and so does the C library when a thread starts or ends. If such a small
//! allocation fails, the program aborts. So large allocations must leave part of a limited address space free. The
//! program also holds a reserve, which it never writes. The first failed allocation of less than 64 KiB frees the reserve.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

/// The reserve. Where the heap cannot grow in place, the C library takes at least 1 MiB at a time.
const KEPT: Layout = Layout::new::<[u8; 2 << 20]>();

/// Only allocations up to this size are tried again. A larger one holds data, and its failure is an error of the
/// library.
const SMALL: usize = 4096;

/// Allocations of this size or more must leave as much memory free as the reserve has.
const LARGE: usize = 1 << 16;

/// The system's allocator with memory kept back.
struct Reserve {
    kept: AtomicPtr<u8>,
    /// The limit of the process's address space, in bytes.
    limit: AtomicUsize,
}

#[global_allocator]
static RESERVE: Reserve = Reserve { kept: AtomicPtr::new(ptr::null_mut()), limit: AtomicUsize::new(usize::MAX) };

/// Keeps memory, and reads the limit of the address space. If there is no memory, the program goes on without it.
pub(crate) fn keep() {
    // SAFETY: the layout is not empty.
    let kept = unsafe { System.alloc(KEPT) };
    RESERVE.kept.store(kept, Ordering::Release);
    #[cfg(target_os = "linux")]
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::As).current {
        RESERVE.limit.store(usize::try_from(limit).unwrap_or(usize::MAX), Ordering::Relaxed);
    }
}

impl Reserve {
    /// Returns what `allocate` returns, or null if `more` bytes would leave too little free. If fewer than [`LARGE`] bytes
    /// cannot be allocated, the reserve is freed. Then an allocation of up to [`SMALL`] bytes is tried again.
    fn or_kept(&self, more: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
        let memory = if more < LARGE || self.leaves_free(more) { allocate() } else { ptr::null_mut() };
        // If a large allocation fails, the library reports an error. Memory for its message is still free.
        if !memory.is_null() || more >= LARGE {
            return memory;
        }
        let kept = self.kept.swap(ptr::null_mut(), Ordering::AcqRel);
        if !kept.is_null() {
            // SAFETY: `keep` allocated it with this layout, and the swap gave it to this thread alone.
            unsafe { System.dealloc(kept, KEPT) };
        }
        if more <= SMALL { allocate() } else { memory }
    }

    /// Returns whether at least the reserve's size stays free after `more` bytes. A trial allocation would take memory
    /// from other threads.
    fn leaves_free(&self, more: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        limit == usize::MAX || address_space().is_none_or(|used| used + more + KEPT.size() <= limit)
    }
}

/// The bytes of address space that the process uses, or `None` if they are not known.
#[cfg(target_os = "linux")]
fn address_space() -> Option<usize> {
    use rustix::fs::{Mode, OFlags, open};
    // An allocator must not allocate: the file is read without the standard library.
    let file = open(c"/proc/self/statm", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 32];
    rustix::io::read(file, &mut text).ok()?;
    // The first number is the size in pages.
    let pages = text
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |pages, byte| pages * 10 + usize::from(byte - b'0'));
    Some(pages * rustix::param::page_size())
}

#[cfg(not(target_os = "linux"))]
fn address_space() -> Option<usize> {
    None
}

// SAFETY: each method passes its arguments on to the system's allocator, whose requirements are the same. A failed
// allocation has no effect, so it may be tried again.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.or_kept(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.or_kept(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.or_kept(size.saturating_sub(layout.size()), || unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}
