//! Copies ([`Device::copy`]) at any offset, [in reverse order](reverse), of [many ranges](ranges) at once, and between
//! [N-dimensional views](nd). Also copies within one buffer ([`Buffer::copy_within`]), and by indices ([`gather`]).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of each element |
//! | elements | any plain type, of any size |
//! | determinism | exact |
//! | scratch | none; at most 16 MiB for overlapping ranges of one buffer |
//! | limits | any n that fits the device |
//!
//! On a GPU, elements move in aligned 16-byte words, except for the bytes at both ends, whatever the offsets. If source
//! and destination have different offsets within a word, each word is put together by shifts from two words of the
//! source. `memcpy` does this on machines without unaligned accesses (e.g. glibc's `wordcopy.c`).

/// Calls a loop for elements of `$size` bytes. Common sizes have their own instance, in which the size is constant.
macro_rules! by_size {
    ($size:expr, $loop:ident $arguments:tt) => {
        match $size {
            1 => $loop::<1>$arguments,
            2 => $loop::<2>$arguments,
            4 => $loop::<4>$arguments,
            8 => $loop::<8>$arguments,
            12 => $loop::<12>$arguments,
            16 => $loop::<16>$arguments,
            _ => $loop::<0>$arguments,
        }
    };
}

#[doc(hidden)]
pub(crate) mod cpu;
pub mod gather;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod nd;
pub mod ranges;
pub mod reverse;

use std::ops::RangeBounds;

use bytemuck::Pod;

use crate::{Buffer, Device, Error, Input, Output, PinnedVec, Result, View, runtime::Backend};

/// An input of [`Device::copy`]: memory, memory in [reverse order](crate::Source::reversed),
/// [ranges](crate::Source::ranges) of memory, or an [`NdView`](crate::NdView).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, Output, layout::copy::Copyable};
///
/// fn first_row<'a, I: Copyable<Out<'a> = Output<'a, u8>>>(input: I, to: &'a mut Buffer<u8>) -> oclprim::Result<()> {
///     Device::best()?.copy(input, to.view_mut(..3)?)
/// }
/// let mut to = Device::best()?.zeroed(6)?;
/// first_row(&[1u8, 2, 3], &mut to)?;
/// assert_eq!(to.to_vec()?, [1, 2, 3, 0, 0, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory",
    label = "expected `&[T]`, `&Vec<T>`, `&Buffer<T>`, a `View`, an `NdView`, or `.reversed()` or `.ranges(..)` of memory",
    note = "`device.transform_into(x, output)` writes the elements of an expression",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Copyable {
    /// The output: an [`Output`], or an [`NdViewMut`](crate::NdViewMut) for an [`NdView`](crate::NdView).
    type Out<'o>;
    #[doc(hidden)]
    fn copy_to(self, device: &Device, output: Self::Out<'_>) -> Result<()>;
}

/// An input that is memory itself. [`Device::copy`] can reverse it, or take ranges of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory",
    label = "`.reversed()` and `.ranges(..)` of memory are copied: `&[T]`, `&Vec<T>`, `&Buffer<T>` or a `View`",
    note = "`device.transform_into(x, output)` writes the elements of an expression"
)]
#[doc(hidden)]
pub trait Memory: Copyable {}

macro_rules! memory {
    ($([$($generics:tt)*] $ty:ty;)*) => {
        $(
            impl<'a, $($generics)*> Memory for $ty {}

            impl<'a, $($generics)*> Copyable for $ty {
                type Out<'o> = Output<'o, T>;

                fn copy_to(self, device: &Device, output: Output<'_, T>) -> Result<()> {
                    device.copy_one(self.into(), output)
                }
            }
        )*
    };
}
memory! {
    [T: Pod] &'a [T];
    [T: Pod, const N: usize] &'a [T; N];
    [T: Pod] &'a Vec<T>;
    [T: Pod] &'a PinnedVec<T>;
    [T: Pod] &'a Buffer<T>;
    [T: Pod] View<'a, T>;
    [T: Pod] Input<'a, T>;
}

/// # Copies
///
/// This method copies elements from any offset to any offset. Module: [`layout::copy`](crate::layout::copy).
impl Device {
    /// Copy: `output[i] = input[i]`. Each side is a host slice, a buffer, or a view at any offset; both have the same
    /// length.
    ///
    /// | input | output | |
    /// |---|---|---|
    /// | memory | `output[i] = x[i]` | |
    /// | [`x.reversed()`](crate::Source::reversed) | `output[i] = x[n - 1 - i]` | [`reverse`] |
    /// | [`x.ranges(&[(range, to), ..])`](crate::Source::ranges) | `output[to + i] = x[range.start + i]`; other elements do not change | [`ranges`] |
    /// | [`NdView`](crate::NdView) | `output[i, j, ..] = x[i, j, ..]`, an [`NdViewMut`](crate::NdViewMut) of the same shape; gaps do not change | [`nd`] |
    ///
    /// Between buffers this is one kernel, and the call does not wait. With one host slice it is an upload or a
    /// download, which waits. Between host slices, no device takes part.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the lengths or shapes differ, if a buffer belongs
    /// to another device, or if `input` and `output` overlap in imported OpenCL memory. A copy of ranges returns it
    /// also if a range or its destination is out of bounds, or if two destinations overlap. Then nothing is copied.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the elements of a reversed copy or of an `NdView`
    /// are zero-sized.
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3, 4, 5, 6])?;
    /// let mut y = device.zeroed(6)?;
    /// device.copy(x.view(1..4)?, y.view_mut(..3)?)?;
    /// assert_eq!(y.to_vec()?, [2, 3, 4, 0, 0, 0]);
    /// device.copy(x.reversed(), &mut y)?;
    /// assert_eq!(y.to_vec()?, [6, 5, 4, 3, 2, 1]);
    /// device.copy(x.ranges(&[(3..5, 0), (0..2, 4)]), &mut y)?;
    /// assert_eq!(y.to_vec()?, [4, 5, 4, 3, 1, 2]);
    /// device.copy(x.nd(&[2, 3])?.permute(&[1, 0])?, y.nd_mut(&[3, 2])?)?;
    /// assert_eq!(y.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn copy<'o, I: Copyable>(&self, input: I, output: impl Into<I::Out<'o>>) -> Result<()> {
        input.copy_to(self, output.into())
    }

    /// Body of [`Device::copy`], compiled once per type.
    #[inline(never)]
    fn copy_one<T: Pod>(&self, input: Input<'_, T>, output: Output<'_, T>) -> Result<()> {
        if input.len() != output.len() {
            return Err(Error::invalid(format!("copying {} elements into {}", input.len(), output.len())));
        }
        match (self.backend(), input, output) {
            (_, Input::Host(from), Output::Host(to)) => {
                cpu::copy(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to))
            }
            (Backend::Cpu, input, output) => {
                cpu::copy(bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
            }
            (Backend::OpenCl(device), Input::Host(from), output) => {
                let to = output.cl(device, false)?;
                device.write(to.mem(), to.byte_offset(), bytemuck::cast_slice(from))?;
                to.finish(device)?;
            }
            (Backend::OpenCl(device), input, Output::Host(to)) => {
                let from = input.cl(device)?;
                device.read(from.mem(), from.byte_offset(), bytemuck::cast_slice_mut(to))?;
            }
            (Backend::OpenCl(device), input, output) => {
                let from = input.cl(device)?;
                let bytes = from.len() * size_of::<T>();
                let to = output.cl(device, false)?;
                crate::runtime::apart(&[&from], &[&to])?;
                gpu::copy(device, (from.mem(), from.byte_offset()), (to.mem(), to.byte_offset()), bytes)?;
                to.finish(device)?;
            }
        }
        Ok(())
    }
}

/// # Copies within the buffer
///
/// This method copies between ranges of one buffer, as [`slice::copy_within`] does. Module:
/// [`layout::copy`](crate::layout::copy).
impl<T: Pod> Buffer<T> {
    /// Copy within the buffer: `self[dest + i] = self[range.start + i]`. The ranges may overlap, as in
    /// [`slice::copy_within`].
    ///
    /// Does not wait. On a device, overlapping ranges less than 16 MiB apart are copied through scratch of at most that
    /// size.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if either range is out of bounds.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let mut x = Device::best()?.upload(&[1u32, 2, 3, 4, 5])?;
    /// x.copy_within(..3, 1)?;
    /// assert_eq!(x.to_vec()?, [1, 1, 2, 3, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn copy_within(&mut self, range: impl RangeBounds<usize>, dest: usize) -> Result<()> {
        let source = self.view(range)?;
        let (first, len) = (source.offset(), source.len());
        self.view(dest..dest.saturating_add(len))?;
        let device = self.device().clone();
        match device.backend() {
            Backend::Cpu => Output::from(self).host()?.copy_within(first..first + len, dest),
            Backend::OpenCl(device) => {
                let size = size_of::<T>();
                let place = Output::from(self).cl(device, true)?;
                gpu::copy_within(device, place.mem(), first * size, dest * size, len * size)?;
                place.finish(device)?;
            }
        }
        Ok(())
    }
}
