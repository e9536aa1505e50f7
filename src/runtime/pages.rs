//! Pages of host memory.

/// Minimum bytes of memory for which large pages save time.
pub(crate) const LARGE: usize = 4 << 20;

/// Asks the system for large pages for memory that is about to be written for the first time. With small pages, threads
/// that copy to new memory spend four fifths of their time in page faults.
pub(crate) fn prefer_large_pages<T>(elements: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::{mm::Advice, param::page_size};

        let (bytes, page) = (size_of_val(elements), page_size());
        let first = elements.as_mut_ptr().cast::<u8>();
        let skipped = first.align_offset(page);
        if bytes >= LARGE && skipped < bytes {
            // SAFETY: the range is inside `elements`, and the advice changes no byte. It may be ignored.
            let _ = unsafe { rustix::mm::madvise(first.add(skipped).cast(), bytes - skipped, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = elements;
}
