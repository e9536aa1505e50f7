//! Transform: writes the elements of a source to memory.

use bytemuck::Pod;

use super::{Blocks, Counted, Erased, Expression, Source, finite, gpu, leaf::Plain, load::Load};
use crate::{
    Buffer, Device, Element, Input, Output, Result,
    counted::{ClCount, Count},
    memory, parallel,
    runtime::{AnyOutput, Backend, ClOutput, apart, opencl::ClDevice},
};

/// Elements per task of the CPU backend.
const CHUNK: usize = parallel::SERIAL;
/// Tuples that a task of the CPU backend computes before it writes their components.
const TUPLES: usize = 256;

/// An input of [`Device::transform`]: a [`Source`], the first elements [by a count](Source::take), or an
/// [`NdView`](crate::NdView). `W` is [`Whole`], or [`Split`] for elements that are tuples.
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
    label = "expected a source of elements, structs or tuples of elements, or an `NdView`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference"
)]
pub trait Transformable<W = Whole> {
    /// The result: a [`Buffer`], or one for each component of a tuple.
    type Of;
    /// The output: an [`Output`], [`Outputs`], or an [`NdViewMut`](crate::NdViewMut) for an [`NdView`](crate::NdView).
    type Out<'o>;
    #[doc(hidden)]
    fn transform(self, device: &Device) -> Result<Self::Of>;
    #[doc(hidden)]
    fn transform_into(self, device: &Device, output: Self::Out<'_>) -> Result<()>;
}

impl<S: Source<Item: Written<W>>, W> Transformable<W> for S {
    type Of = <S::Item as Written<W>>::Of;
    type Out<'o> = <S::Item as Written<W>>::Out<'o>;

    fn transform(self, device: &Device) -> Result<Self::Of> {
        S::Item::written(&self, device)
    }

    fn transform_into(self, device: &Device, output: Self::Out<'_>) -> Result<()> {
        S::Item::write(&self, device, output)
    }
}

/// Elements that [`Device::transform`] writes to one output.
#[derive(Debug)]
pub enum Whole {}

/// Elements that are tuples: [`Device::transform`] writes each component to an output of its own.
#[derive(Debug)]
pub enum Split {}

/// The type of the elements that [`Device::transform`] writes: an [`Element`], a plain struct, or a tuple of two to four
/// of these. `W` is [`Whole`], or [`Split`] for a tuple.
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, Source, source::Written};
///
/// fn written<T: Written<W>, W>(x: impl Source<Item = T>) -> oclprim::Result<T::Of> {
///     Device::best()?.transform(x)
/// }
/// let (x, y) = written([1u8, 2].zip(&[0.5f32, 1.5]))?;
/// assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1, 2], vec![0.5, 1.5]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a transform does not write `{Self}`",
    label = "expected an element type, a plain struct, or a tuple of two to four of these"
)]
pub trait Written<W = Whole>: Copy + Send + Sync + 'static {
    /// A [`Buffer`], or one for each component.
    type Of;
    /// An [`Output`], or [`Outputs`].
    type Out<'o>;

    #[doc(hidden)]
    fn written<S: Source<Item = Self>>(source: &S, device: &Device) -> Result<Self::Of>;

    #[doc(hidden)]
    fn write<S: Source<Item = Self>>(source: &S, device: &Device, output: Self::Out<'_>) -> Result<()>;
}

impl<T: Plain> Written for T {
    type Of = Buffer<T>;
    type Out<'o> = Output<'o, T>;

    fn written<S: Source<Item = T>>(source: &S, device: &Device) -> Result<Buffer<T>> {
        let mut output = device.uninit(finite(source)?)?;
        Self::write(source, device, (&mut output).into())?;
        Ok(output)
    }

    fn write<S: Source<Item = T>>(source: &S, device: &Device, output: Output<'_, T>) -> Result<()> {
        if let Some(input) = source.backwards() {
            return device.copy_reversed(input, output);
        }
        match source.erased() {
            Erased::Memory(input) => {
                output.expect_len(input.len(), "transform")?;
                device.copy(input, output)
            }
            Erased::Expression(source) => write(device, source, source.finite_len()?, output),
        }
    }
}

/// The outputs of elements that are tuples: one for each component. A tuple of outputs converts to it.
///
/// ```
/// use oclprim::{Device, Source};
///
/// let (mut x, mut y) = ([0u8; 2], [0.0f32; 2]);
/// Device::best()?.transform_into([1u8, 2].zip(&[0.5f32, 1.5]), (&mut x, &mut y))?;
/// assert_eq!((x, y), ([1, 2], [0.5, 1.5]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
pub struct Outputs<O>(pub(crate) O);

macro_rules! tuples {
    ($($($name:ident $to:ident $one:ident $part:tt)*;)*) => { $(
        impl<'o, $($name: Pod, $to: Into<Output<'o, $name>>),*> From<($($to,)*)>
            for Outputs<($(Output<'o, $name>,)*)>
        {
            fn from(outputs: ($($to,)*)) -> Self {
                Self(($(outputs.$part.into(),)*))
            }
        }

        impl<$($name: Plain),*> Written<Split> for ($($name,)*) {
            type Of = ($(Buffer<$name>,)*);
            type Out<'o> = Outputs<($(Output<'o, $name>,)*)>;

            fn written<S: Source<Item = Self>>(source: &S, device: &Device) -> Result<Self::Of> {
                let n = finite(source)?;
                let mut of = ($(device.uninit::<$name>(n)?,)*);
                Self::write(source, device, Outputs(($(Output::from(&mut of.$part),)*)))?;
                Ok(of)
            }

            fn write<S: Source<Item = Self>>(source: &S, device: &Device, outputs: Self::Out<'_>) -> Result<()> {
                #[inline(never)]
                fn write<$($name: Plain),*>(
                    source: &dyn Expression<($($name,)*)>,
                    device: &Device,
                    Outputs(to): Outputs<($(Output<'_, $name>,)*)>,
                ) -> Result<()> {
                    let n = source.finite_len()?;
                    $(to.$part.expect_len(n, "transform")?;)*
                    let Backend::Cpu = device.backend() else {
                        return write_several(device, source, n, vec![$(to.$part.any()),*]);
                    };
                    let mut chunks = ($(to.$part.host()?.chunks_mut(CHUNK),)*);
                    let mut tasks = Vec::new();
                    while let ($(Some($one),)*) = ($(chunks.$part.next(),)*) {
                        tasks.push(($($one,)*));
                    }
                    source.read(&mut |values| {
                        parallel::try_consume(std::mem::take(&mut tasks).into_iter().enumerate(), &|(chunk, to)| {
                            let len = to.0.len();
                            let mut tuples = memory::zeroed::<($($name,)*)>(TUPLES.min(len))?;
                            for at in (0..len).step_by(TUPLES) {
                                let tuples = &mut tuples[..TUPLES.min(len - at)];
                                values.block(chunk * CHUNK + at, tuples);
                                $(to.$part[at..].iter_mut().zip(&*tuples).for_each(|(to, all)| *to = all.$part);)*
                            }
                            Ok(())
                        })
                    })
                }
                write(source, device, outputs)
            }
        }
    )* };
}
tuples! { A X x 0 B Y y 1; A X x 0 B Y y 1 C Z z 2; A X x 0 B Y y 1 C Z z 2 D W w 3; }

/// Writes each component of the `n` elements of a source to its output, on an OpenCL device.
fn write_several<T>(device: &Device, source: &dyn Expression<T>, n: usize, outputs: Vec<AnyOutput<'_>>) -> Result<()> {
    let Backend::OpenCl(device) = device.backend() else { return Ok(()) };
    let outs = outputs.into_iter().map(|output| output.cl(device, false)).collect::<Result<Vec<_>>>()?;
    let aligned: Vec<bool> = outs.iter().map(|out| out.aligned()).collect();
    let load = Load::of_several(source, device, &aligned)?;
    apart(&load.inputs(), &outs.iter().collect::<Vec<_>>())?;
    load.run(device, source, n, &mut || gpu::write_several(device, &load, &outs))?;
    outs.into_iter().try_for_each(|out| out.finish(device))
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
    /// `out` has its elements in row-major order. For the first elements [by a count](Source::take), the call waits for
    /// the count.
    ///
    /// If the elements are tuples, such as those of a [`zip`](Source::zip), each component goes to a buffer of its own:
    /// `(a[i], b[i]) = x[i]`. So several expressions over the same arrays take one launch. A component may be a struct.
    ///
    /// One pass: reads each array of the source once, and writes n elements to each result. An array that is read at other
    /// indices than i, as by [`reversed`](Source::reversed), is read as often as it occurs. The bits are the same on every
    /// device. Exceptions are a user's [`Map`](crate::op::Map), and the bits of a NaN that a cast to `f16` returns.
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
    /// let (half, square) = (Map::new(|x: f32| 0.5 * x, "0.5f * x"), Map::new(|x: f32| x * x, "x * x"));
    /// let (halves, squares) = device.transform(x.map(half).zip(x.map(square)))?;
    /// assert_eq!((halves.to_vec()?, squares.to_vec()?), (vec![0.5, 2.0, 4.5, 8.0], vec![1.0, 16.0, 81.0, 256.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transform<I: Transformable<W>, W>(&self, input: I) -> Result<I::Of> {
        input.transform(self)
    }

    /// [`Device::transform`] into a slice, buffer or view. For elements that are tuples, into a tuple of these.
    ///
    /// Waits for the result only if an output is a host slice, or if the source has a [gather](Source::gathered).
    ///
    /// For the first elements [by a count](Source::take), `output` has the length of the whole source. Its elements from the
    /// count on do not change.
    ///
    /// # Errors
    ///
    /// Same as [`Device::transform`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the length of
    /// `output` is not that of the source. The same error if an output overlaps another argument in imported OpenCL
    /// memory.
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
    pub fn transform_into<'o, I: Transformable<W>, W>(&self, input: I, output: impl Into<I::Out<'o>>) -> Result<()> {
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

/// The elements of an expression, in new memory; with a count, the first ones. Only OpenCL devices read a count.
pub(crate) fn written_firsts<T: Pod + Send + Sync>(
    device: &Device,
    source: &dyn Expression<T>,
    count: Option<Count<'_>>,
) -> Result<Buffer<T>> {
    let n = source.finite_len()?;
    let mut buffer = device.temporary(n)?;
    let output = Output::from(&mut buffer);
    match count {
        Some(count) => write_counted(device, (source, count), output)?,
        None => write(device, source, n, output)?,
    }
    Ok(buffer)
}

/// Writes as many elements of a source as a count says. The elements after them do not change. `device` is an OpenCL device.
#[inline(never)]
fn write_counted<T: Pod + Send + Sync>(
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
