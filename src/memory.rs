//! Allocations of host memory whose length the input or the caller gives. A failed allocation returns an error and does
//! not abort. Large allocations ask for large pages.

use bytemuck::Zeroable;

use crate::{Error, Result, sys::pages::prefer_large_pages};

/// The error of a failed allocation of `len` elements of `T`.
fn short<T>(len: usize) -> Error {
    Error::short(len, size_of::<T>())
}

/// `len` elements, all zero bits.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>> {
    let mut all: Vec<T> = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| short::<T>(len))?;
    prefer_large_pages(all.as_mut_ptr().cast(), len * size_of::<T>());
    Ok(all)
}

/// `len` copies of `value`.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut all = with_capacity(len)?;
    all.resize(len, value);
    Ok(all)
}

/// An empty vector with room for `len` elements.
pub(crate) fn with_capacity<T>(len: usize) -> Result<Vec<T>> {
    let mut all = Vec::<T>::new();
    // A `match` is shorter code than `map_err` and `?`, and this function is compiled for each type.
    match all.try_reserve_exact(len) {
        Ok(()) => {
            prefer_large_pages(all.as_mut_ptr().cast(), len * size_of::<T>());
            Ok(all)
        }
        Err(_) => Err(short::<T>(len)),
    }
}

/// A copy of `elements`.
pub(crate) fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>> {
    let mut all = with_capacity(elements.len())?;
    all.extend_from_slice(elements);
    Ok(all)
}

/// The elements of an iterator of known length.
pub(crate) fn collect<T>(elements: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut all = with_capacity(elements.len())?;
    // `extend` is long code, and the compiler would copy it for each iterator type.
    for element in elements {
        all.push(element);
    }
    Ok(all)
}

/// [`collect`] for elements that can fail.
pub(crate) fn try_collect<T>(elements: impl ExactSizeIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut all = with_capacity(elements.len())?;
    for element in elements {
        all.push(element?);
    }
    Ok(all)
}

/// Makes room for `more` elements after the existing ones, in amortised constant time for each element.
pub(crate) fn reserve<T>(all: &mut Vec<T>, more: usize) -> Result<()> {
    all.try_reserve(more).map_err(|_| short::<T>(all.len().saturating_add(more)))
}

/// Appends one element.
pub(crate) fn push<T>(all: &mut Vec<T>, element: T) -> Result<()> {
    reserve(all, 1)?;
    all.push(element);
    Ok(())
}

/// Empties `all`, then fills it with `len` copies of `value`.
pub(crate) fn refill<T: Clone>(all: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    all.clear();
    reserve(all, len)?;
    all.resize(len, value);
    Ok(())
}

/// Returns an error unless `bytes` bytes can be allocated now. Call `probe` before foreign code that aborts when memory
/// is short.
pub(crate) fn probe(bytes: usize) -> Result<()> {
    // `black_box` keeps the optimiser from removing the unused allocation.
    with_capacity::<u8>(bytes).map(|room| drop(std::hint::black_box(room)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, sys::pages::LARGE};

    #[test]
    fn lengths_beyond_the_address_space_are_errors_that_state_the_bytes() {
        for error in [
            zeroed::<u64>(usize::MAX).unwrap_err(),
            filled(usize::MAX, 1u64).unwrap_err(),
            with_capacity::<u64>(usize::MAX).unwrap_err(),
            reserve(&mut vec![1u64], usize::MAX - 1).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            assert_eq!(error.to_string(), "allocating 147573952589676412920 bytes of host memory failed");
        }
        assert!(probe(usize::MAX).is_err() && probe(1).is_ok());
    }

    /// The flag `hg` of the mapping, in /proc/self/smaps, is the advice.
    #[cfg(target_os = "linux")]
    #[test]
    fn large_allocations_ask_for_large_pages() {
        let is_asked = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("the mappings of this process");
            let mut here = false;
            maps.lines().any(|line| {
                let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
                let bounds = range.map(|(begin, end)| [begin, end].map(|end| usize::from_str_radix(end, 16)));
                if let Some([Ok(begin), Ok(end)]) = bounds {
                    here = (begin..end).contains(&address);
                }
                here && line.starts_with("VmFlags:") && line.split_whitespace().any(|flag| flag == "hg")
            })
        };
        // A system without large pages refuses the advice.
        let offered = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        let (zeros, room) = (zeroed::<u64>(LARGE).unwrap(), with_capacity::<u64>(LARGE).unwrap());
        for address in [zeros.as_ptr().addr(), room.as_ptr().addr()] {
            assert_eq!(is_asked(address + 8192), offered, "{address:x}");
        }
    }
}
