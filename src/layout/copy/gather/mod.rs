//! Gather and scatter: copies from or to given indices ([`Device::gather`], [`Device::scatter`]).
//!
//! | property | |
//! |---|---|
//! | work | one read of each index, one read and one write of each element |
//! | elements | any plain type; only its size counts. Indices are `u32` or `u64` |
//! | indices out of range | they read and write nothing. The call returns an error for the least `i` with `index[i]` out of range, or writes this `i` to `outside` |
//! | determinism | exact. If indices are equal, a scatter takes the last one on the CPU, and any of them on a device |
//! | scratch | none |
//! | limits | any n that fits the device |

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::{Buffer, Device, Error, Input, Offset, Output, Result, runtime::Backend, segments::Offsets};

/// The value of `outside` if all indices are in range.
const NONE: u64 = u64::MAX;

/// The direction of the copy between the table, which indices address, and the line, which has one element for each
/// index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Gather,
    Scatter,
}

impl Way {
    /// Returns an error for zero-sized elements, and for lengths that do not match.
    fn check(self, size: usize, indices: usize, line: usize, outside: usize) -> Result<()> {
        if size == 0 {
            return Err(Error::unsupported("elements must have at least 1 byte"));
        }
        if outside != 1 {
            return Err(Error::invalid(format!(
                "the output for the first index out of range needs 1 element, got {outside}"
            )));
        }
        if indices == line {
            return Ok(());
        }
        Err(Error::invalid(match self {
            Self::Gather => format!("a gather by {indices} indices needs an output of {indices} elements, got {line}"),
            Self::Scatter => format!("a scatter of {line} elements needs {line} indices, got {indices}"),
        }))
    }
}

/// The value of `outside`.
fn place(found: Option<usize>) -> u64 {
    found.map_or(NONE, |found| found as u64)
}

/// Returns an error unless `found` is [`NONE`]: `indices[found]` is out of range.
fn inside<I: Offset>(found: u64, indices: Input<'_, I>, len: usize) -> Result<()> {
    if found == NONE {
        return Ok(());
    }
    let mut index = [I::ZERO];
    match indices.part(found as usize, 1) {
        Input::Host(one) => index.copy_from_slice(one),
        Input::Device(one) => one.read(&mut index)?,
    }
    Err(Error::invalid(format!("index {found} is {}, beyond the {len} elements", index[0].to_i128())))
}

/// # Gather and scatter
///
/// These methods copy from or to given indices: `out[i] = x[index[i]]`, `out[index[i]] = x[i]`. Module:
/// [`layout::copy::gather`](crate::layout::copy::gather).
impl Device {
    /// Gather: `output[i] = input[indices[i]]`. Waits for the check that all indices are in range;
    /// [`Device::gather_into`] can leave the check to the caller.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with the first index that is out of range;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the elements are zero-sized;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[10.5f32, 11.5, 12.5])?;
    /// assert_eq!(device.gather(&x, &[2u32, 0, 2])?.to_vec()?, [12.5, 10.5, 12.5]);
    /// let error = device.gather(&x, &[1u32, 3]).unwrap_err();
    /// assert_eq!(error.to_string(), "index 1 is 3, beyond the 3 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn gather<'a, 'b, T: Pod, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
    ) -> Result<Buffer<T>> {
        let (input, indices) = (input.into(), indices.into());
        let mut output = self.uninit(indices.len())?;
        self.gather_into(input, indices, &mut output, &mut [0u64])?;
        Ok(output)
    }

    /// [`Device::gather`] into a slice, buffer or view with one element per index.
    ///
    /// An index out of range leaves its element of `output` unchanged. The single element of `outside` becomes the
    /// least `i` for which `indices[i]` is out of range, or [`u64::MAX`] if there is none. If `outside` is a host
    /// slice, the call waits and returns such an index as an error. Otherwise the caller reads `outside` later.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if a length does not match, or if an output
    /// overlaps another argument. It also fails if `outside` is a host slice and an index is out of range;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the elements are zero-sized.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let (mut out, mut outside) = (device.filled(3, 9u8)?, device.zeroed::<u64>(1)?);
    /// device.gather_into(&[5u8, 6], &[1u64, 2, 0], &mut out, &mut outside)?; // does not wait
    /// assert_eq!((out.to_vec()?, outside.to_vec()?), (vec![6, 9, 5], vec![1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn gather_into<'a, 'b, 'c, 'd, T: Pod, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
        output: impl Into<Output<'c, T>>,
        outside: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        self.gather_or_tell(input.into(), indices.into(), output.into(), outside.into())
    }

    /// Body of [`Device::gather_into`], compiled once per pair of types.
    fn gather_or_tell<T: Pod, I: Offset>(
        &self,
        table: Input<'_, T>,
        index: Input<'_, I>,
        line: Output<'_, T>,
        outside: Output<'_, u64>,
    ) -> Result<()> {
        match outside {
            Output::Host([found]) => {
                self.gather_one(table, index, line, Output::Host(std::slice::from_mut(found)))?;
                inside(*found, index, table.len())
            }
            outside => self.gather_one(table, index, line, outside),
        }
    }

    /// Gathers, and sets `outside`.
    #[inline(never)]
    fn gather_one<T: Pod, I: Offset>(
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
                outside.host()?[0] = place(cpu::gather(size, table, Offsets::of(index.host()?), line));
            }
            Backend::OpenCl(device) => {
                let form = gpu::Form { way: Way::Gather, size, index_size: size_of::<I>() };
                gpu::run_any(device, form, [table.any(), index.any()], [line.any(), outside.any()])?;
            }
        }
        Ok(())
    }

    /// Scatter into `len` elements: `output[indices[i]] = input[i]`. All bits of other elements are zero. Waits for the
    /// check that all indices are in range; [`Device::scatter_into`] can leave the check to the caller.
    ///
    /// If indices are equal, the element of one of them is written. The CPU writes the last one; a device writes any,
    /// and can choose another in the next call. If elements do not have 1, 2, 4, 8 or 16 bytes, a device may mix parts
    /// of several elements.
    ///
    /// # Errors
    ///
    /// Same as [`Device::gather`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the numbers of
    /// elements and indices differ.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.scatter(&[5i16, 6, 7], &[3u32, 0, 2], 4)?.to_vec()?, [6, 0, 7, 5]);
    /// let error = device.scatter(&[5i16, 6, 7], &[3u32, 4, 5], 4).unwrap_err();
    /// assert_eq!(error.to_string(), "index 1 is 4, beyond the 4 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scatter<'a, 'b, T: Pod, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
        len: usize,
    ) -> Result<Buffer<T>> {
        let mut output = self.zeroed(len)?;
        self.scatter_into(input, indices, &mut output, &mut [0u64])?;
        Ok(output)
    }

    /// [`Device::scatter`] into a slice, buffer or view. Elements whose index is not given do not change.
    ///
    /// An index out of range writes nothing. The single element of `outside` becomes the least `i` for which
    /// `indices[i]` is out of range, or [`u64::MAX`] if there is none. If `outside` is a host slice, the call waits and
    /// returns such an index as an error. Otherwise the caller reads `outside` later.
    ///
    /// # Errors
    ///
    /// Same as [`Device::gather_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let mut out = [9u8; 4];
    /// device.scatter_into(&[5, 6], &[3u64, 1], &mut out, &mut [0])?;
    /// assert_eq!(out, [9, 6, 9, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scatter_into<'a, 'b, 'c, 'd, T: Pod, I: Offset>(
        &self,
        input: impl Into<Input<'a, T>>,
        indices: impl Into<Input<'b, I>>,
        output: impl Into<Output<'c, T>>,
        outside: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        self.scatter_or_tell(input.into(), indices.into(), output.into(), outside.into())
    }

    /// Body of [`Device::scatter_into`], compiled once per pair of types.
    fn scatter_or_tell<T: Pod, I: Offset>(
        &self,
        line: Input<'_, T>,
        index: Input<'_, I>,
        table: Output<'_, T>,
        outside: Output<'_, u64>,
    ) -> Result<()> {
        let len = table.len();
        match outside {
            Output::Host([found]) => {
                self.scatter_one(line, index, table, Output::Host(std::slice::from_mut(found)))?;
                inside(*found, index, len)
            }
            outside => self.scatter_one(line, index, table, outside),
        }
    }

    /// Scatters, and sets `outside`.
    #[inline(never)]
    fn scatter_one<T: Pod, I: Offset>(
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
                outside.host()?[0] = place(cpu::scatter(size, table, Offsets::of(index.host()?), line)?);
            }
            Backend::OpenCl(device) => {
                let form = gpu::Form { way: Way::Scatter, size, index_size: size_of::<I>() };
                gpu::run_any(device, form, [line.any(), index.any()], [table.any(), outside.any()])?;
            }
        }
        Ok(())
    }
}
