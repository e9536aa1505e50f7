//! Transform: writes the elements of a source to memory.

use bytemuck::Pod;

use super::{Blocks, Counted, Erased, Expression, Source, finite, gpu, leaf::Plain, load::Load};
use crate::{
    Buffer, Device, Element, Input, Output, Result,
    counted::{ClCount, Count},
    parallel,
    runtime::{AnyOutput, Backend, ClOutput, apart, opencl::ClDevice},
};

/// Elements per task of the CPU backend.
const CHUNK: usize = parallel::SERIAL;

/// An input of [`Device::transform`]: a [`Source`] of elements, the first ones [by a count](Source::take), or an
/// [`NdView`](crate::NdView).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, Source, source::Transformable};
///
/// fn written<I: Transformable<Of = Buffer<u8>>>(input: I) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.transform(input)?.to_vec()
/// }
/// let x = Device::best()?.upload(&[1u8, 2, 3, 4])?;
/// assert_eq!((written(x.reversed())?, written(x.nd(&[2, 2])?.permute(&[1, 0])?)?), (vec![4, 3, 2, 1], vec![1, 3, 2, 4]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a transform",
    label = "expected a source of elements, or an `NdView`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Transformable {
    /// The result: a [`Buffer`].
    type Of;
    /// The output: an [`Output`], or an [`NdViewMut`](crate::NdViewMut) for an [`NdView`](crate::NdView).
    type Out<'o>;
    #[doc(hidden)]
    fn transform(self, device: &Device) -> Result<Self::Of>;
    #[doc(hidden)]
    fn transform_into(self, device: &Device, output: Self::Out<'_>) -> Result<()>;
}

impl<S: Source<Item: Plain>> Transformable for S {
    type Of = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn transform(self, device: &Device) -> Result<Buffer<S::Item>> {
        let mut output = device.uninit(finite(&self)?)?;
        self.transform_into(device, (&mut output).into())?;
        Ok(output)
    }

    fn transform_into(self, device: &Device, output: Output<'_, S::Item>) -> Result<()> {
        if let Some(input) = self.backwards() {
            return device.copy_reversed(input, output);
        }
        match self.erased() {
            Erased::Memory(input) => {
                output.expect_len(input.len(), "transform")?;
                device.copy(input, output)
            }
            Erased::Expression(source) => write(device, source, source.finite_len()?, output),
        }
    }
}

impl<S: Source<Item: Plain>> Transformable for Counted<'_, S> {
    type Of = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn transform(self, device: &Device) -> Result<Buffer<S::Item>> {
        self.known(device)?.transform(device)
    }

    fn transform_into(self, device: &Device, output: Output<'_, S::Item>) -> Result<()> {
        if !device.is_cpu() {
            return write_counted(device, (&self.source, self.count), output);
        }
        output.expect_len(finite(&self.source)?, "transform")?;
        let taken = self.known(device)?;
        let n = taken.len;
        taken.transform_into(device, output.part(0, n))
    }
}

/// # Transform
///
/// These methods write the elements of a [source](crate::source) to memory: `out[i] = x[i]`.
impl Device {
    /// Transform: `out[i] = x[i]`, for every element of a [source](crate::source). For an [`NdView`](crate::NdView),
    /// `out` has its elements in row-major order. For the first elements [by a count](Source::take), the call waits for the count.
    ///
    /// One pass: reads each array of the source once, and writes n elements. The bits are the same on every device.
    /// Exceptions are a user's [`Map`](crate::op::Map), and the bits of a NaN that a cast to `f16` returns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the source is endless, or if lengths of a
    /// [`zip`](Source::zip) differ. The same error if an index of [`gathered`](Source::gathered) is out of range, if a
    /// stride is 0, or if [`take`](Source::take) asks for more elements than there are.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it, or if
    /// the elements of a view are zero-sized. [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects a
    /// user's expression.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Map};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 4.0, 9.0, 16.0])?;
    /// let halves = device.transform(x.map(Map::new(|x: f32| 0.5 * x, "0.5f * x")))?;
    /// assert_eq!(halves.to_vec()?, [0.5, 2.0, 4.5, 8.0]);
    /// let columns = device.transform(x.nd(&[2, 2])?.permute(&[1, 0])?)?;
    /// assert_eq!(columns.to_vec()?, [1.0, 9.0, 4.0, 16.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transform<I: Transformable>(&self, input: I) -> Result<I::Of> {
        input.transform(self)
    }

    /// [`Device::transform`] into a slice, buffer or view.
    ///
    /// Waits for the result only if `output` is a host slice, or if the source has a [gather](Source::gathered).
    ///
    /// For the first elements [by a count](Source::take), `output` has the length of the whole source. Its elements from the
    /// count on do not change.
    ///
    /// # Errors
    ///
    /// Same as [`Device::transform`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the length of
    /// `output` is not that of the source, or if `output` overlaps an input in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Source, source::counting};
    ///
    /// let device = Device::best()?;
    /// let mut x = device.zeroed::<f32>(4)?;
    /// device.transform_into(counting(7u8).cast::<f32>().take(2), x.view_mut(1..3)?)?;
    /// assert_eq!(x.to_vec()?, [0.0, 7.0, 8.0, 0.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transform_into<'o, I: Transformable>(&self, input: I, output: impl Into<I::Out<'o>>) -> Result<()> {
        input.transform_into(self, output.into())
    }
}

/// The elements of a source in memory: those of an array where they lie, all others in memory of their own.
#[doc(hidden)]
pub enum Held<'a, T: Pod> {
    There(Input<'a, T>),
    Written(Buffer<T>),
}

impl<T: Pod> Held<'_, T> {
    pub(crate) fn input(&self) -> Input<'_, T> {
        match self {
            Self::There(input) => *input,
            Self::Written(buffer) => buffer.into(),
        }
    }
}

/// Writes the first `n` elements of a source to memory: one pass, and n elements of memory.
pub(super) fn written<'a, T: Pod + Send + Sync>(
    device: &Device,
    source: &dyn Expression<T>,
    n: usize,
) -> Result<Held<'a, T>> {
    let mut buffer = device.temporary(n)?;
    write(device, source, n, Output::from(&mut buffer))?;
    Ok(Held::Written(buffer))
}

#[inline(never)]
fn write<T: Pod + Send + Sync>(
    device: &Device,
    source: &dyn Expression<T>,
    n: usize,
    output: Output<'_, T>,
) -> Result<()> {
    output.expect_len(n, "transform")?;
    match device.backend() {
        Backend::Cpu => {
            let output = output.host()?;
            source.read(&mut |values| {
                write_blocks(values, output);
                Ok(())
            })
        }
        Backend::OpenCl(device) => write_load(device, source, &Load::of(source, device)?, n, output.any()),
    }
}

/// Writes the `n` elements of a source. `load` is the load of `source`.
fn write_load<T: Pod + Send + Sync>(
    device: &ClDevice,
    source: &dyn Expression<T>,
    load: &Load,
    n: usize,
    output: AnyOutput<'_>,
) -> Result<()> {
    let out = output_of_load(device, load, output)?;
    load.run(device, source, n, &mut || gpu::write(device, load, 0, &out, None))?;
    out.finish(device)
}

/// Writes as many elements of a source as a count says. The elements after them do not change. `device` is an OpenCL device.
#[inline(never)]
pub(super) fn write_counted<T: Pod + Send + Sync>(
    device: &Device,
    (source, count): (&dyn Expression<T>, Count<'_>),
    output: Output<'_, T>,
) -> Result<()> {
    let n = source.finite_len()?;
    output.expect_len(n, "transform")?;
    let Backend::OpenCl(device) = device.backend() else { return Ok(()) };
    let load = Load::of(source, device)?;
    let (n, count) = load.length(device, n, Some(count))?;
    let out = output.cl(device, true)?;
    let inputs: Vec<_> = load.inputs().into_iter().chain(count.as_ref().map(ClCount::place)).collect();
    apart(&inputs, &[&out])?;
    load.run(device, source, n, &mut || gpu::write(device, &load, 0, &out.part(0, n), count.as_ref()))?;
    out.finish(device)
}

/// The memory to which the elements are written.
fn output_of_load<'o>(device: &ClDevice, load: &Load, output: AnyOutput<'o>) -> Result<ClOutput<'o>> {
    let out = output.cl(device, false)?;
    apart(&load.inputs(), &[&out])?;
    Ok(out)
}

/// [`written`] with a load that the caller has already made. `device` is an OpenCL device.
pub(crate) fn written_load<T: Element>(
    device: &Device,
    source: &dyn Expression<T>,
    load: &Load,
    n: usize,
) -> Result<Buffer<T>> {
    let mut buffer = device.temporary(n)?;
    if let Backend::OpenCl(device) = device.backend() {
        write_load(device, source, load, n, Output::from(&mut buffer).any())?;
    }
    Ok(buffer)
}

fn write_blocks<T: Pod + Send + Sync>(values: &dyn Blocks<T>, out: &mut [T]) {
    parallel::chunks_mut(out, CHUNK, &|chunk, out| values.block(chunk * CHUNK, out));
}
