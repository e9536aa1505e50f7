//! Segment offsets, as several primitives take them.

use crate::{Element, ElementType, Error, Integer, Result};

/// Type of a segment offset or an element index: `u32` or `u64`.
///
/// ```
/// use oclprim::{Source, Device, Offset, op::Max};
///
/// fn largest<C: Offset>(x: &[u8], offsets: &[C]) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.reduce(x.segments(offsets), Max)?.to_vec()
/// }
///
/// assert_eq!(largest(&[1, 9, 3], &[0u32, 2, 3])?, largest(&[1, 9, 3], &[0u64, 2, 3])?);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of offsets or indices",
    label = "expected `u32` or `u64`",
    note = "convert `usize` to `u64`; for a result, name the type: `let indices: Buffer<u32> = ...`"
)]
pub trait Offset: Integer {}
impl Offset for u32 {}
impl Offset for u64 {}

/// Offsets of either type, on the host.
#[derive(Clone, Copy)]
pub(crate) enum Offsets<'a> {
    U32(&'a [u32]),
    U64(&'a [u64]),
}

impl<'a> Offsets<'a> {
    pub(crate) fn of<C: Element>(offsets: &'a [C]) -> Self {
        match C::TYPE {
            ElementType::U64 => Self::U64(bytemuck::cast_slice(offsets)),
            _ => Self::U32(bytemuck::cast_slice(offsets)),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::U32(offsets) => offsets.len(),
            Self::U64(offsets) => offsets.len(),
        }
    }

    pub(crate) fn get(self, i: usize) -> usize {
        match self {
            Self::U32(offsets) => offsets[i] as usize,
            Self::U64(offsets) => usize::try_from(offsets[i]).unwrap_or(usize::MAX),
        }
    }

    /// Number of offsets below `p`.
    pub(crate) fn below(self, p: usize) -> usize {
        match self {
            Self::U32(offsets) => offsets.partition_point(|&x| (x as usize) < p),
            Self::U64(offsets) => offsets.partition_point(|&x| x < p as u64),
        }
    }

    /// Number of offsets that are at most `p`.
    pub(crate) fn rank(self, p: usize) -> usize {
        self.below(p + 1)
    }

    /// Index of the first offset that exceeds the next one or `n`.
    pub(crate) fn bad(self, n: usize) -> Option<usize> {
        let next = |i: usize| if i + 1 < self.len() { self.get(i + 1).min(n) } else { n };
        (0..self.len()).find(|&i| self.get(i) > next(i))
    }
}

/// Number of segments between `offsets` offsets: `offsets - 1`.
pub(crate) fn segments(offsets: usize) -> Result<usize> {
    offsets.checked_sub(1).ok_or_else(|| Error::invalid("n segments need n + 1 offsets, got 0"))
}
