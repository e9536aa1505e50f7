//! Lengths of sources: a number on the host, or a count in the memory of a device.

use super::{Source, Take, finite};
use crate::{Buffer, Device, Offset, Result, View, counted::Count};

/// A length for [`Source::take`]: a `usize`, or a count of one `u32` or `u64` in a [`Buffer`] or a [`View`].
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, op::Sum, source::{Counted, Length}};
///
/// fn total<'c, L>(x: &'c [u64], n: L) -> oclprim::Result<u64>
/// where
///     L: Length<Of<&'c [u64]> = Counted<'c, &'c [u64]>>,
/// {
///     Device::best()?.reduce(x.take(n), Sum)
/// }
///
/// let counts = Device::best()?.upload(&[2u32, 9])?;
/// assert_eq!(total(&[3, 4, 5], counts.view(..1)?)?, 7);
/// assert_eq!(total(&[3, 4, 5], counts.view(1..)?)?, 12);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A number of another type does not compile:
///
/// ```compile_fail,E0277
/// use oclprim::{Device, Source, op::Sum};
///
/// Device::cpu().reduce([1u8, 2].take(1u32), Sum)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a length",
    label = "expected `usize`, or `&Buffer` or `View` of one `u32` or `u64`",
    note = "write `n as usize` for a number, and `count.view(i..=i)?` for one of several counts"
)]
pub trait Length: Copy {
    /// The first elements of a source: a [`Take`] for a number, and a [`Counted`] for a count.
    type Of<S: Source>;

    #[doc(hidden)]
    fn of<S: Source>(self, source: S) -> Self::Of<S>;
}

impl Length for usize {
    type Of<S: Source> = Take<S>;

    fn of<S: Source>(self, source: S) -> Take<S> {
        Take { source, len: self }
    }
}

impl<'c, C: Offset> Length for &'c Buffer<C> {
    type Of<S: Source> = Counted<'c, S>;

    fn of<S: Source>(self, source: S) -> Counted<'c, S> {
        View::from(self).of(source)
    }
}

impl<'c, C: Offset> Length for View<'c, C> {
    type Of<S: Source> = Counted<'c, S>;

    fn of<S: Source>(self, source: S) -> Counted<'c, S> {
        Counted { source, count: Count::of(self) }
    }
}

/// The first elements of a source, as many as a count in memory says; see [`Source::take`].
#[derive(Clone, Copy, Debug)]
pub struct Counted<'c, S> {
    pub(crate) source: S,
    pub(crate) count: Count<'c>,
}

impl<S: Source> Counted<'_, S> {
    /// The elements as a source with a length on the host. On an OpenCL device, waits for the count.
    pub(crate) fn known(self, device: &Device) -> Result<Take<S>> {
        let capacity = finite(&self.source)?;
        Ok(Take { len: self.count.read(device, capacity)?, source: self.source })
    }
}
