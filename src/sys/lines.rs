//! Operations on whole cache lines: stores that bypass the caches, and prefetches.
//!
//! A plain store to an uncached line first reads the line, and the columns of a matrix defeat the prefetcher. With
//! plain loads and stores, a transposition gets a third of the memory's bandwidth.

use std::marker::PhantomData;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Results of at least this many bytes bypass the caches, since later reads of them are less likely to hit a cache.
pub(crate) const STREAM_BYTES: usize = 8 << 20;
/// Bytes that [`Stream::fill`] produces at once.
const PIECE: usize = 4096;

/// Stores that bypass the caches. Dropping the stream executes a store fence. A task drops its stream before it ends,
/// so a thread that waits for the task sees the stores. The fence orders only the stores of its own thread. So the
/// `PhantomData` of a raw pointer makes a stream neither `Send` nor `Sync`.
pub(crate) struct Stream(PhantomData<*const ()>);

impl Stream {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }

    /// Copies `from` to `to`. On x86-64, whole cache lines of `to` bypass the caches.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    #[inline]
    pub(crate) fn copy(&self, to: &mut [u8], from: &[u8]) {
        assert_eq!(to.len(), from.len());
        let head = to.as_ptr().align_offset(LINE);
        if to.len() < head.saturating_add(LINE) {
            return to.copy_from_slice(from);
        }
        let (first, to) = to.split_at_mut(head);
        let (from_first, from) = from.split_at(head);
        if head > 0 {
            first.copy_from_slice(from_first);
        }
        let (lines, rest) = to.as_chunks_mut::<LINE>();
        let (from_lines, from_rest) = from.as_chunks::<LINE>();
        for (to, from) in lines.iter_mut().zip(from_lines) {
            // SAFETY: the lines begin at a multiple of `LINE`. `self` stays in this thread and ends with a fence.
            unsafe { write_line(to, from) };
        }
        if !rest.is_empty() {
            rest.copy_from_slice(from_rest);
        }
    }

    /// Copies the output of `make`, piece by piece. `make` gets the index of a piece's first element; elements have `size`
    /// bytes.
    pub(crate) fn fill(&self, to: &mut [u8], size: usize, make: &mut dyn FnMut(usize, &mut [u8])) {
        let whole = PIECE.max(size) / size * size;
        let mut buffer = vec![0; whole.min(to.len())];
        // Every piece has whole elements. The first piece ends at a cache-line boundary if an element ends there.
        let head = to.as_ptr().align_offset(LINE);
        let mut len = if head.is_multiple_of(size) && head > 0 { head } else { whole };
        let (mut rest, mut done) = (to, 0);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at_mut(len.min(rest.len()));
            let buffer = &mut buffer[..piece.len()];
            make(done / size, buffer);
            self.copy(piece, buffer);
            (done, rest, len) = (done + piece.len(), later, whole);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: every x86-64 has SSE.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// Writes a cache line past the caches.
///
/// # Safety
///
/// `to` begins at a multiple of [`LINE`]. Before another thread reads or writes that line, this thread executes a store
/// fence, as dropping a [`Stream`] does.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn write_line(to: &mut [u8; LINE], from: &[u8; LINE]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    debug_assert!((to.as_ptr() as usize).is_multiple_of(LINE));
    let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
    for k in 0..LINE / 16 {
        // SAFETY: every x86-64 has SSE2; both arrays have 64 bytes, and the caller begins `to` at a multiple of 64.
        unsafe { _mm_stream_si128(to.add(k), _mm_loadu_si128(from.add(k))) };
    }
}

/// Writes a cache line.
///
/// # Safety
///
/// Every call is sound; only the x86-64 variant has conditions.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
unsafe fn write_line(to: &mut [u8; LINE], from: &[u8; LINE]) {
    debug_assert!((to.as_ptr() as usize).is_multiple_of(LINE));
    *to = *from;
}

/// Prefetches the cache lines of `data`, which will be read soon.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn fetch(data: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in data.chunks(LINE) {
        // SAFETY: every x86-64 has SSE, and a prefetch is not a read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Does nothing: stable Rust has no prefetch for this processor.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn fetch(_data: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The call compiles only if `Stream` is neither `Send` nor `Sync`; otherwise it is ambiguous between
    /// implementations.
    #[test]
    fn streams_are_neither_send_nor_sync() {
        struct Sent;
        struct Shared;
        trait Stays<A> {
            fn stays() {}
        }
        impl<T> Stays<()> for T {}
        impl<T: Send> Stays<Sent> for T {}
        impl<T: Sync> Stays<Shared> for T {}
        <Stream as Stays<_>>::stays();
    }

    #[test]
    fn streamed_bytes_arrive() {
        const BYTES: usize = if cfg!(miri) { 300 } else { 1000 };
        let from: Vec<u8> = (0..BYTES).map(|i| (i * 7 % 251) as u8).collect();
        for begin in (0..70).step_by(if cfg!(miri) { 23 } else { 1 }) {
            // Few lengths for Miri, which interprets.
            let lens: &[usize] = if cfg!(miri) { &[1, 127, 200] } else { &[0, 1, 63, 64, 65, 127, 128, 200, 900] };
            for &len in lens {
                let mut to = vec![0xA5; BYTES];
                fetch(&from[begin..begin + len]);
                Stream::new().copy(&mut to[begin..begin + len], &from[..len]);
                assert_eq!(to[begin..begin + len], from[..len]);
                assert!(to[..begin].iter().chain(&to[begin + len..]).all(|&x| x == 0xA5));
            }
        }
    }

    #[test]
    fn pieces_cover_every_element_once() {
        for size in if cfg!(miri) { vec![12, 300] } else { vec![1, 2, 3, 4, 12, 16, 5000] } {
            // Few elements for Miri, which interprets.
            let most = if cfg!(miri) { 600 / size } else { 10_000 };
            for (begin, n) in [(0, 0), (0, 1), (1, 3), (5, 4000.min(most)), (64, (9000 / size).min(most)), (16, most)] {
                let mut to = vec![0xA5; begin + n * size + 1];
                Stream::new().fill(&mut to[begin..begin + n * size], size, &mut |first, piece| {
                    for (i, x) in (first * size..).zip(piece) {
                        *x = (i * 7 % 251) as u8;
                    }
                });
                assert!(to[begin..begin + n * size].iter().enumerate().all(|(i, &x)| x == (i * 7 % 251) as u8));
                assert_eq!((to[begin + n * size], to[..begin].iter().all(|&x| x == 0xA5)), (0xA5, true));
            }
        }
    }
}
