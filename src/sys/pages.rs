//! Pages of host memory.

/// Bytes from which large pages pay.
pub(crate) const LARGE: usize = 4 << 20;

/// Asks the system for large pages for `bytes` bytes at `first` that are about to be written for the first time. With
/// small pages, threads that write new memory spend four fifths of their time in page faults. Memory of less than
/// [`LARGE`] bytes stays as it is.
pub(crate) fn prefer_large_pages(first: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::{mm::Advice, param::page_size};

        if bytes < LARGE {
            return;
        }
        let skipped = first.align_offset(page_size());
        if skipped < bytes {
            let (first, bytes) = (first.wrapping_add(skipped).cast(), bytes - skipped);
            // SAFETY: the advice changes no byte. It may be ignored, and fails if the range is not mapped.
            let _ = unsafe { rustix::mm::madvise(first, bytes, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (first, bytes);
}
