//! Gather and scatter: elements from or to places that indices name.
//!
//! | property | |
//! |---|---|
//! | work | one read of each index, one read and one write of each element |
//! | elements | any plain type of 1 to 16 bytes; indices `u32` or `u64` |
//! | indices out of range | read and write nothing; they are counted |
//! | determinism | exact; a scatter with equal indices: which of them wins is not |
//! | scratch | none |
//! | limits | any n that fits the device |

mod cpu;
#[cfg(feature = "opencl")]
pub(crate) mod gpu;
pub(crate) mod spec;

use bytemuck::Pod;

use crate::{Buffer, Device, Error, Input, Output, Result, runtime::Backend};
use cpu::Indices;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// A type of indices: `u32` or `u64`.
pub trait Index: Pod + sealed::Sealed {}

impl Index for u32 {}
impl Index for u64 {}

/// The largest element in bytes.
const MAX_BYTES: usize = 16;

/// Which of table and line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Gather,
    Scatter,
}

impl Way {
    /// Refuses elements and lengths that do not fit.
    fn check(self, size: usize, indices: usize, line: usize, outside: usize) -> Result<()> {
        let name = match self {
            Self::Gather => "gather",
            Self::Scatter => "scatter",
        };
        if !(1..=MAX_BYTES).contains(&size) {
            return Err(Error::unsupported(format!("{name} takes elements of 1 to {MAX_BYTES} bytes, not {size}")));
        }
        if outside != 1 {
            return Err(Error::invalid(format!("{name} counts indices out of range in 1 element, got {outside}")));
        }
        if indices == line {
            return Ok(());
        }
        Err(Error::invalid(match self {
            Self::Gather => format!("gathering by {indices} indices into {line} elements"),
            Self::Scatter => format!("scattering {line} elements by {indices} indices"),
        }))
    }
}

fn hosted<I: Index>(index: &[I]) -> Indices<'_> {
    match size_of::<I>() {
        4 => Indices::Short(bytemuck::cast_slice(index)),
        _ => Indices::Long(bytemuck::cast_slice(index)),
    }
}

/// The error of the forms that wait.
fn all_inside(outside: u64, indices: usize, len: usize) -> Result<()> {
    match outside {
        0 => Ok(()),
        _ => Err(Error::invalid(format!("{outside} of {indices} indices are beyond the {len} elements"))),
    }
}

impl Device {
    /// The elements that indices name: `output[i] = input[indices[i]]`. Waits, to see whether all indices are in range;
    /// [`Device::gather_into`] does not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with their number if indices are out of range;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if elements have not 1 to 16 bytes;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device cannot hold the result.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[10.5f32, 11.5, 12.5])?;
    /// assert_eq!(device.gather(&x, &[2u32, 0, 2])?.to_vec()?, [12.5, 10.5, 12.5]);
    /// let error = device.gather(&x, &[1u32, 3]).unwrap_err();
    /// assert_eq!(error.to_string(), "1 of 2 indices are beyond the 3 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn gather<'a, 'b, T: Pod, I: Index>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
    ) -> Result<Buffer<T>> {
        let (input, indices) = (input.into(), indices.into());
        let (mut output, mut outside) = (self.uninit(indices.len())?, [0u64]);
        self.gather_into(input, indices, &mut output, &mut outside)?;
        all_inside(outside[0], indices.len(), input.len())?;
        Ok(output)
    }

    /// [`Device::gather`] into a caller's slice, buffer or view, which has one element for each index.
    ///
    /// An index out of range leaves its element of `output` as it is. The one element of `outside` becomes the number of
    /// such indices, so that the caller decides when to look. Does not wait, unless one of the two is a host slice.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if a length does not fit;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if elements have not 1 to 16 bytes.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let (mut out, mut outside) = (device.filled(3, 9u8)?, device.zeroed::<u64>(1)?);
    /// device.gather_into(&[5u8, 6], &[1u64, 2, 0], &mut out, &mut outside)?;
    /// assert_eq!((out.to_vec()?, outside.to_vec()?), (vec![6, 9, 5], vec![1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn gather_into<'a, 'b, 'c, 'd, T: Pod, I: Index>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
        output: impl Into<Output<'c, T>>,
        outside: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        self.gather_one(input.into(), indices.into(), output.into(), outside.into())
    }

    /// [`Device::gather_into`], built once for each pair of types.
    fn gather_one<T: Pod, I: Index>(
        &self,
        table: Input<'_, T>,
        index: Input<'_, I>,
        line: Output<'_, T>,
        outside: Output<'_, u64>,
    ) -> Result<()> {
        let size = size_of::<T>();
        Way::Gather.check(size, index.len(), line.len(), outside.len())?;
        match self.backend() {
            Backend::Cpu => {
                let (table, line) = (bytemuck::cast_slice(table.host()?), bytemuck::cast_slice_mut(line.host()?));
                outside.host()?[0] = cpu::gather(size, table, hosted(index.host()?), line);
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (table, index) = (table.cl(device)?, index.cl(device)?);
                let (line, outside) = (line.cl(device, true)?, outside.cl(device, false)?);
                gpu::run(device, Way::Gather, (size, size_of::<I>()), &table, &index, &line, &outside)?;
                line.finish(device)?;
                outside.finish(device)?;
            }
        }
        Ok(())
    }

    /// `len` elements, those of `input` at the places that indices name: `output[indices[i]] = input[i]`. Elements that no
    /// index names are zero bits. Waits, to see whether all indices are in range; [`Device::scatter_into`] does not.
    ///
    /// Where indices are equal, one of their elements is written; the CPU takes the last one, a device any. Of elements of
    /// more than 8 bytes, or of a number of bytes that is no power of two, a device may mix the parts of several.
    ///
    /// # Errors
    ///
    /// As [`Device::gather`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if there is not an index for
    /// each element.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.scatter(&[5i16, 6, 7], &[3u32, 0, 2], 4)?.to_vec()?, [6, 0, 7, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scatter<'a, 'b, T: Pod, I: Index>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
        len: usize,
    ) -> Result<Buffer<T>> {
        let (input, indices) = (input.into(), indices.into());
        let (mut output, mut outside) = (self.zeroed(len)?, [0u64]);
        self.scatter_into(input, indices, &mut output, &mut outside)?;
        all_inside(outside[0], indices.len(), len)?;
        Ok(output)
    }

    /// [`Device::scatter`] into a caller's slice, buffer or view. Elements that no index names are left as they are.
    ///
    /// An index out of range writes nothing. The one element of `outside` becomes the number of such indices, so that the
    /// caller decides when to look. Does not wait, unless one of the two is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::gather_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let (mut out, mut outside) = ([9u8; 4], [0]);
    /// Device::best()?.scatter_into(&[5u8, 6, 7], &[3u64, 4, 1], &mut out, &mut outside)?;
    /// assert_eq!((out, outside), ([9, 7, 9, 5], [1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scatter_into<'a, 'b, 'c, 'd, T: Pod, I: Index>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
        output: impl Into<Output<'c, T>>,
        outside: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        self.scatter_one(input.into(), indices.into(), output.into(), outside.into())
    }

    /// [`Device::scatter_into`], built once for each pair of types.
    fn scatter_one<T: Pod, I: Index>(
        &self,
        line: Input<'_, T>,
        index: Input<'_, I>,
        table: Output<'_, T>,
        outside: Output<'_, u64>,
    ) -> Result<()> {
        let size = size_of::<T>();
        Way::Scatter.check(size, index.len(), line.len(), outside.len())?;
        match self.backend() {
            Backend::Cpu => {
                let (line, table) = (bytemuck::cast_slice(line.host()?), bytemuck::cast_slice_mut(table.host()?));
                outside.host()?[0] = cpu::scatter(size, table, hosted(index.host()?), line);
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (line, index) = (line.cl(device)?, index.cl(device)?);
                let (table, outside) = (table.cl(device, true)?, outside.cl(device, false)?);
                gpu::run(device, Way::Scatter, (size, size_of::<I>()), &table, &index, &line, &outside)?;
                table.finish(device)?;
                outside.finish(device)?;
            }
        }
        Ok(())
    }
}
