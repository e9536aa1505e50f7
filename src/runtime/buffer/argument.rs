//! The arguments of primitives: elements in host memory or on a device.

use std::any::{Any, TypeId};

use bytemuck::Pod;

use super::resident::{ClInput, ClOutput, Extent, foreign};
use super::{Buffer, ClDevice, ClMem, Device, Storage, View, ViewMut};
use crate::{Error, Result};

/// Input of a primitive: a host slice, a buffer or a view.
///
/// A host slice is copied to an OpenCL device for the call; a buffer must belong to the device. Drivers for CPUs read
/// slices of 1 MiB or more in place, and the call then waits for its commands. For this, the slice's address modulo the
/// driver's alignment (such as 128 bytes) must be a multiple of the element size.
///
/// Methods take `impl Into<Input<T>>`: `&[T]`, `&[T; N]`, `&Vec<T>`, `&Buffer<T>`, a [`View`] or a
/// [`&PinnedVec<T>`](super::PinnedVec). `T` is plain data ([`bytemuck::Pod`]), which `bool` is not. An array of
/// `ndarray` converts by `Input::try_from(&array)?`, with the feature `ndarray`.
///
/// ```
/// use oclprim::{Device, Input, op::Max};
///
/// fn largest<'a>(device: &Device, x: impl Into<Input<'a, i32>>) -> oclprim::Result<i32> {
///     device.reduce::<Input<i32>, _>(x.into(), Max)
/// }
///
/// let device = Device::best()?;
/// assert_eq!(largest(&device, &[1, 5, 3])?, 5);
/// assert_eq!(largest(&device, &vec![1, 5, 3])?, 5);
/// let x = device.upload(&[1, 5, 3])?;
/// assert_eq!(largest(&device, &x)?, 5);
/// assert_eq!(largest(&device, x.view(2..)?)?, 3);
/// assert!(Input::from(&x).len() == 3 && !Input::from(&x).is_empty());
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A `Vec` or a [`Buffer`] is passed by reference:
///
/// ```compile_fail,E0277
/// oclprim::Device::cpu().reduce(vec![1.0f32, 2.0], oclprim::op::Sum)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a, T: Pod> {
    /// Elements in host memory.
    Host(&'a [T]),
    /// Elements in device memory.
    Device(View<'a, T>),
}

impl<'a, T: Pod> Input<'a, T> {
    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Input::from(&[1u8, 2, 3]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        match self {
            Self::Host(data) => data.len(),
            Self::Device(view) => view.len,
        }
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Input::<u8>::from(&[]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `len` elements from index `start` on, which must exist.
    pub(crate) fn part(self, start: usize, len: usize) -> Self {
        match self {
            Self::Host(data) => Self::Host(&data[start..start + len]),
            Self::Device(view) => Self::Device(View { offset: view.offset + start, len, ..view }),
        }
    }

    /// The same elements, if their type is `U`.
    pub(crate) fn of_type<U: Pod>(self) -> Option<Input<'a, U>> {
        match self {
            Self::Host(data) if TypeId::of::<T>() == TypeId::of::<U>() => Some(Input::Host(bytemuck::cast_slice(data))),
            Self::Host(_) => None,
            Self::Device(View { buffer, offset, len }) => {
                let buffer = (buffer as &dyn Any).downcast_ref()?;
                Some(Input::Device(View { buffer, offset, len }))
            }
        }
    }

    /// The elements as a slice, for the CPU backend.
    pub(crate) fn host(self) -> Result<&'a [T]> {
        match self {
            Self::Host(data) => Ok(data),
            Self::Device(view) => match &view.buffer.storage {
                Storage::Host(data) => Ok(&data[view.offset..view.offset + view.len]),
                Storage::Cl(_) => Err(foreign(&view.buffer.device, &Device::cpu().info().to_string())),
            },
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match self {
            Self::Host(_) => Extent::default(),
            Self::Device(view) => view.buffer.extent(view.offset, view.len),
        }
    }

    /// The input without its element type.
    pub(crate) fn any(self) -> AnyInput<'a> {
        let memory = match self {
            Self::Host(data) => Memory::Host(bytemuck::cast_slice(data)),
            Self::Device(View { buffer, offset, len }) => Memory::Device { buffer, offset, len },
        };
        AnyArgument { memory, size: size_of::<T>() }
    }

    /// The elements in the device's memory. The caller drops the result before `'a` ends, because commands may read a
    /// slice in place.
    pub(crate) fn cl(self, device: &ClDevice) -> Result<ClInput> {
        self.any().cl(device)
    }
}

impl<'a, T: Pod> From<&'a [T]> for Input<'a, T> {
    fn from(data: &'a [T]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod, const N: usize> From<&'a [T; N]> for Input<'a, T> {
    fn from(data: &'a [T; N]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a Vec<T>> for Input<'a, T> {
    fn from(data: &'a Vec<T>) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a Buffer<T>> for Input<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self::Device(buffer.into())
    }
}

impl<'a, T: Pod> From<View<'a, T>> for Input<'a, T> {
    fn from(view: View<'a, T>) -> Self {
        Self::Device(view)
    }
}

/// Output of a primitive: a host slice, a buffer or a view.
///
/// On an OpenCL device, the call waits for the result if the output is a host slice. It also waits if the output is a buffer of
/// another queue in the same context. Buffers of other devices are refused.
///
/// Methods take `impl Into<Output<T>>`: `&mut [T]`, `&mut [T; N]`, `&mut Vec<T>`, `&mut Buffer<T>`, a [`ViewMut`] or a
/// [`&mut PinnedVec<T>`](super::PinnedVec). An array of `ndarray` converts by `Output::try_from(&mut array)?`, with the
/// feature `ndarray`. An output never grows: it must have the length of the result. If that length depends on the data,
/// as in [selections](crate::select), the output may have another length. One that is too short receives the elements
/// that fit.
///
/// ```
/// use oclprim::{Device, Output};
///
/// let device = Device::best()?;
/// let mut on_host = [0u8; 3];
/// device.copy(&[1u8, 2, 3], &mut on_host)?;
/// let mut on_device = device.zeroed::<u8>(5)?;
/// device.copy(&on_host, on_device.view_mut(1..4)?)?;
/// assert_eq!(on_device.to_vec()?, [0, 1, 2, 3, 0]);
///
/// let output = Output::from(&mut on_device);
/// assert!(output.len() == 5 && !output.is_empty());
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Output<'a, T: Pod> {
    /// Elements in host memory.
    Host(&'a mut [T]),
    /// Elements in device memory.
    Device(ViewMut<'a, T>),
}

impl<'a, T: Pod> Output<'a, T> {
    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Output::from(&mut [0u8; 3]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        match self {
            Self::Host(data) => data.len(),
            Self::Device(view) => view.len,
        }
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Output::<u8>::from(&mut []).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an error unless the output has the `len` elements that a primitive will write.
    pub(crate) fn expect_len(&self, len: usize, what: &str) -> Result<()> {
        expect_len(self.len(), len, what)
    }

    /// The `len` elements from index `start` on, which must exist.
    pub(crate) fn part(self, start: usize, len: usize) -> Self {
        match self {
            Self::Host(data) => Self::Host(&mut data[start..start + len]),
            Self::Device(view) => Self::Device(ViewMut { offset: view.offset + start, len, ..view }),
        }
    }

    /// The elements as a slice, for the CPU backend.
    pub(crate) fn host(self) -> Result<&'a mut [T]> {
        match self {
            Self::Host(data) => Ok(data),
            Self::Device(ViewMut { buffer, offset, len }) => match &mut buffer.storage {
                Storage::Host(data) => Ok(&mut data[offset..offset + len]),
                Storage::Cl(_) => Err(foreign(&buffer.device, &Device::cpu().info().to_string())),
            },
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match self {
            Self::Host(_) => Extent::default(),
            Self::Device(view) => view.buffer.extent(view.offset, view.len),
        }
    }

    /// The output without its element type.
    pub(crate) fn any(self) -> AnyOutput<'a> {
        let memory = match self {
            Self::Host(data) => Memory::Host(bytemuck::cast_slice_mut(data)),
            Self::Device(ViewMut { buffer, offset, len }) => Memory::Device { buffer, offset, len },
        };
        AnyArgument { memory, size: size_of::<T>() }
    }

    /// The elements in the device's memory; the caller calls `finish` after the launches that write them. With `keep`, a host
    /// slice is copied there first, for primitives that do not write every element.
    #[doc(hidden)]
    pub fn cl(self, device: &ClDevice, keep: bool) -> Result<ClOutput<'a>> {
        self.any().cl(device, keep)
    }
}

/// [`Output::expect_len`] for an output of `got` elements.
fn expect_len(got: usize, len: usize, what: &str) -> Result<()> {
    if got == len {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} needs an output of {len} elements, got {got}")))
}

impl<'a, T: Pod> From<&'a mut [T]> for Output<'a, T> {
    fn from(data: &'a mut [T]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod, const N: usize> From<&'a mut [T; N]> for Output<'a, T> {
    fn from(data: &'a mut [T; N]) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a mut Vec<T>> for Output<'a, T> {
    fn from(data: &'a mut Vec<T>) -> Self {
        Self::Host(data)
    }
}

impl<'a, T: Pod> From<&'a mut Buffer<T>> for Output<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        Self::Device(buffer.into())
    }
}

impl<'a, T: Pod> From<ViewMut<'a, T>> for Output<'a, T> {
    fn from(view: ViewMut<'a, T>) -> Self {
        Self::Device(view)
    }
}

/// A buffer of any element type.
trait AnyBuffer {
    fn device(&self) -> &Device;

    /// The memory object and its location, if commands may read it or, with `write`, write it.
    fn place(&self, write: bool) -> Result<Option<(&ClMem, (usize, usize))>>;
}

impl<T: Pod> AnyBuffer for Buffer<T> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn place(&self, write: bool) -> Result<Option<(&ClMem, (usize, usize))>> {
        Buffer::place(self, write)
    }
}

/// An argument without its element type, so that the code that moves it to a device is compiled once. `H` is a slice.
#[derive(Clone, Copy)]
pub(crate) struct AnyArgument<'a, H> {
    memory: Memory<'a, H>,
    /// Bytes of an element.
    size: usize,
}

#[derive(Clone, Copy)]
enum Memory<'a, H> {
    Host(H),
    Device { buffer: &'a dyn AnyBuffer, offset: usize, len: usize },
}

pub(crate) type AnyInput<'a> = AnyArgument<'a, &'a [u8]>;
pub(crate) type AnyOutput<'a> = AnyArgument<'a, &'a mut [u8]>;

/// The identity of the memory that an argument borrows. Two identities are equal if the arguments are the same range of
/// memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Identity {
    on_host: bool,
    address: usize,
    offset: usize,
    len: usize,
}

impl AnyInput<'_> {
    /// The identity of the memory; `None` if there are no elements.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let identity = match self.memory {
            Memory::Host(data) => Identity { on_host: true, address: data.as_ptr().addr(), offset: 0, len: data.len() },
            Memory::Device { buffer, offset, len } => {
                Identity { on_host: false, address: std::ptr::from_ref(buffer).addr(), offset, len }
            }
        };
        (identity.len > 0).then_some(identity)
    }

    /// As [`Input::cl`].
    pub(crate) fn cl(self, device: &ClDevice) -> Result<ClInput> {
        match self.memory {
            Memory::Host(data) => {
                // SAFETY: a call drops its inputs before it returns, and `data` is borrowed as long as that.
                if let Some(borrowed) = unsafe { device.borrow(data, self.size) } {
                    return Ok(ClInput::borrowed(borrowed, data.len(), self.size));
                }
                let input = ClInput::pooled(device, data.len(), self.size)?;
                device.write(input.mem(), 0, data)?;
                Ok(input)
            }
            Memory::Device { buffer, offset, len } => {
                ClInput::within(device, buffer.device(), buffer.place(false)?, offset, len, self.size)
            }
        }
    }
}

impl<'a> AnyInput<'a> {
    /// [`cl`](Self::cl) for an [`Arriving`] input: also returns the elements that are still on the host.
    pub(crate) fn arriving(self, device: &ClDevice) -> Result<(ClInput, Option<&'a [u8]>)> {
        match self.memory {
            Memory::Host(data) if device.has_parts(data) => {
                Ok((ClInput::pooled(device, data.len(), self.size)?, Some(data)))
            }
            _ => Ok((self.cl(device)?, None)),
        }
    }
}

impl<'a> AnyOutput<'a> {
    /// As [`Output::cl`].
    pub(crate) fn cl(self, device: &ClDevice, keep: bool) -> Result<ClOutput<'a>> {
        match self.memory {
            Memory::Host(host) => {
                let place = ClInput::pooled(device, host.len(), self.size)?;
                if keep {
                    device.write(place.mem(), 0, host)?;
                }
                Ok(ClOutput { place, host: Some(host) })
            }
            Memory::Device { buffer, offset, len } => {
                let place = ClInput::within(device, buffer.device(), buffer.place(true)?, offset, len, self.size)?;
                Ok(ClOutput { place, host: None })
            }
        }
    }
}
