//! The mean and the variance of each line along axes: [`Device::moments`], [`Device::mean`] and [`Device::variance`] of
//! [`view.along(axes)`](NdView::along).
//!
//! | property | |
//! |---|---|
//! | work | one read of the elements |
//! | determinism | same bits everywhere, if the device keeps subnormals: the order depends only on the length of the axis |
//! | scratch | none if lines are many and short; else up to 320 bytes for each part of a line |
//! | limits | as [`reduce::axis`](crate::reduce::axis) |
//!
//! Types, error bounds and special values are those of [`statistics`](crate::reduce::statistics). Floats are computed
//! in their accumulator, and integer sums are exact.
//!
//! The order is fixed. A chunk is 16 rows of 32 lanes. For shorter lines, a chunk is 16 rows of 4, 8 or 16 lanes: the
//! fewest lanes with which one chunk holds the line. Each lane computes its mean, and then a correction from the
//! distances of its elements to that mean. Four neighbouring lanes, a quad, join first. Then each quad joins with the
//! same quad of other chunks, as a tree of neighbours. Last, the quads join (Chan, Golub and LeVeque 1979). Work-items
//! synchronise only once, at the end of a line.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use super::Lines;
use crate::{
    Buffer, Device, Element, Error, ErrorKind, Input, NdView, Output, Result, Scratch, memory,
    reduce::moments::{self, Figure, Moments},
    runtime::Backend,
    source::{Along, AlongOne, Axes, Grouped, group::lines_of_expressions},
};

/// Words of a [`MomentsRecord`].
const WORDS: usize = 6;
/// Rows of a chunk; as in `cl/reduce_axis_moments.cl`.
const ROWS: usize = 16;

/// The lanes of the chunks of a line of `len` elements.
fn lanes(len: usize) -> usize {
    len.div_ceil(ROWS).min(32).next_power_of_two().max(4)
}

/// [`Moments`] in the memory of a device, for the element type `T`.
///
/// The host decodes a record with [`get`](Self::get), because the mean of integers is an `f64`, and some devices lack
/// that type.
///
/// ```
/// use oclprim::{Device, MomentsRecord};
///
/// let device = Device::best()?;
/// let x = device.upload(&[1.0f32, 3.0, 5.0, 9.0])?;
/// let rows = device.moments(x.nd(&[2, 2])?.along(1))?;
/// let means: Vec<f64> = rows.to_vec()?.iter().map(|record: &MomentsRecord<f32>| record.get().mean).collect();
/// assert_eq!(means, [2.0, 7.0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct MomentsRecord<T>([u64; WORDS], PhantomData<T>);

impl<T: Element> MomentsRecord<T> {
    /// Decodes the record. A record of zeros, which was never written, has no elements; its mean and variance are NaN.
    ///
    /// ```
    /// use oclprim::{Device, MomentsRecord};
    ///
    /// let record = Device::cpu().zeroed::<MomentsRecord<f32>>(1)?.to_vec()?[0].get();
    /// assert!(record.count == 0 && record.mean.is_nan());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn get(&self) -> Moments {
        let [count, words @ ..] = self.0;
        moments::moments(T::TYPE, count, words)
    }
}

impl<T: Element> std::fmt::Debug for MomentsRecord<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0[0] == 0 { f.write_str("MomentsRecord(empty)") } else { self.get().fmt(f) }
    }
}

/// An input of [`Device::moments`]: lines [`along`](NdView::along) axes, [segments](crate::Source::segments), or [runs
/// of equal keys](crate::Source::by_key).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, MomentsRecord, NdView, Source, reduce::axis::moments::MeasurableGroups};
///
/// fn moments<I: MeasurableGroups<Item = u8>>(input: I) -> oclprim::Result<I::Of<MomentsRecord<u8>>> {
///     Device::best()?.moments(input)
/// }
/// let x = [1u8, 2, 3];
/// let (line, segments) = (moments(NdView::from(&x).along(0))?, moments(x.segments(&[0u32, 1, 3]))?);
/// assert_eq!((line.to_vec()?[0].get().count, segments.to_vec()?[1].get().count), (3, 2));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no moments of groups",
    label = "expected groups: `view.along(axes)`, `x.segments(&offsets)` or `x.by_key(&keys)`",
    note = "`statistics` takes a whole input"
)]
pub trait MeasurableGroups: Grouped<Item: Element> {
    #[doc(hidden)]
    fn moments(self, device: &Device) -> Result<Self::Of<MomentsRecord<Self::Item>>>;

    #[doc(hidden)]
    fn moments_into(self, device: &Device, output: Self::Out<'_, MomentsRecord<Self::Item>>) -> Result<()>;
}

/// A figure of each group, in host memory. A device with fp64 computes the figures, because a figure has 8 bytes and a
/// record 48.
pub(crate) fn figures<T: Element>(records: &Buffer<MomentsRecord<T>>, figure: Figure) -> Result<Vec<f64>> {
    if let Backend::OpenCl(device) = records.device().backend()
        && device.capabilities()?.fp64
        && !records.is_empty()
    {
        let mut found = records.device().temporary(records.len())?;
        gpu::figures(device, T::TYPE, figure, &Input::from(records).cl(device)?, Output::from(&mut found).any())?;
        return found.to_vec();
    }
    memory::collect(records.to_vec()?.iter().map(|record| figure.of(&record.get())))
}

impl<T: Element, A: Axes> MeasurableGroups for Along<NdView<'_, T>, A> {
    fn moments(self, device: &Device) -> Result<Buffer<MomentsRecord<T>>> {
        let lines = AlongOne::new(device, self.view, self.axes.list())?;
        let view = lines.view()?;
        let mut out = device.uninit(results(&Lines::of(view.layout(), lines.axis)?)?)?;
        device.moments_one(view, lines.axis, (&mut out).into(), &mut Scratch::new())?;
        Ok(out)
    }

    fn moments_into(self, device: &Device, output: Output<'_, MomentsRecord<T>>) -> Result<()> {
        let lines = AlongOne::new(device, self.view, self.axes.list())?;
        device.moments_one(lines.view()?, lines.axis, output, &mut Scratch::new())
    }
}

lines_of_expressions! { MeasurableGroups[Element] {
    fn moments() -> Buffer<MomentsRecord<Self::Item>>;
    fn moments_into(output: Output<'_, MomentsRecord<Self::Item>>) -> ();
} }

/// # Mean and variance of groups
///
/// These methods return the mean and the variance of each line along axes, of each segment, or of each run of equal
/// keys. Modules: [`reduce::axis::moments`](crate::reduce::axis::moments),
/// [`reduce::segmented::moments`](crate::reduce::segmented::moments), and
/// [`select::by_key::groups`](crate::select::by_key::groups).
impl Device {
    /// Count, sum, mean and variance of each line along axes, of each segment, or of each run of equal keys, in one
    /// pass over memory.
    ///
    /// There is one record for each index of the other axes, in row-major order, or one for each segment or run. The
    /// error bounds are those of [`Device::statistics`], whose float results can round differently. [The
    /// module](crate::reduce::axis::moments) defines the order of float operations, which is the same on every device,
    /// and the same for a line and a segment. Does not wait for the result; for keys, waits for the number of runs. The
    /// record of an empty segment has the count 0; its mean and its variance are NaN.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`] if there are lines but they have no elements; otherwise same as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[2.0f32, 4.0, 6.0, 8.0, 1.0, 1.0, 1.0, 1.0])?;
    /// let rows = device.moments(x.nd(&[2, 4])?.along(1))?.to_vec()?;
    /// assert_eq!((rows[0].get().mean, rows[0].get().variance), (5.0, 5.0));
    /// assert_eq!((rows[1].get().mean, rows[1].get().variance), (1.0, 0.0));
    ///
    /// let segments = device.moments(x.segments(&[0u32, 2, 2, 5]))?.to_vec()?;
    /// assert_eq!((segments[0].get().mean, segments[2].get().count), (3.0, 3));
    /// assert!(segments[1].get().count == 0 && segments[1].get().mean.is_nan());
    ///
    /// let (keys, runs) = device.moments(x.by_key(&[7u8, 7, 7, 7, 5, 5, 5, 5]))?;
    /// assert_eq!((keys.to_vec()?, runs.to_vec()?[1].get().mean), (vec![7, 5], 1.0));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn moments<I: MeasurableGroups>(&self, input: I) -> Result<I::Of<MomentsRecord<I::Item>>> {
        input.moments(self)
    }

    /// [`Device::moments`] into a slice, buffer or view with one record for each line or segment. For [runs of
    /// keys](crate::Source::by_key), `output` is a tuple as in
    /// [`select::by_key::groups`](crate::select::by_key::groups).
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](crate::Source::gathered).
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. An offset beyond the input counts as
    /// its end. If an offset is beyond the next one, results are unspecified. Reads and writes stay in bounds for any
    /// offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::moments`], but without those for the values of offsets; [`ErrorKind::InvalidInput`] if
    /// `output` has another number of elements.
    ///
    /// ```
    /// use oclprim::{Device, MomentsRecord};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3, 6])?;
    /// let mut found = device.zeroed::<MomentsRecord<u8>>(2)?;
    /// device.moments_into(x.nd(&[2, 2])?.along(0), &mut found)?;
    /// let found: Vec<_> = found.to_vec()?.iter().map(MomentsRecord::get).collect();
    /// assert_eq!((found[0].mean, found[1].integer_sum), (2.0, Some(8)));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn moments_into<'b, I: MeasurableGroups>(
        &self,
        input: I,
        output: impl Into<I::Out<'b, MomentsRecord<I::Item>>>,
    ) -> Result<()> {
        input.moments_into(self, output.into())
    }

    /// Body of [`Device::moments_into`], compiled once for each set of types.
    #[inline(never)]
    fn moments_one<T: Element>(
        &self,
        input: NdView<'_, T>,
        axis: usize,
        output: Output<'_, MomentsRecord<T>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (input, layout) = input.parts();
        let lines = Lines::of(&layout, axis)?;
        output.expect_len(results(&lines)?, "moments along an axis")?;
        match self.backend() {
            Backend::Cpu => cpu::moments(input.host()?, &lines, bytemuck::cast_slice_mut(output.host()?))?,
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                gpu::moments(device, &gpu::Form::of::<T>(), &input, &lines, output, scratch)?;
            }
        }
        Ok(())
    }
}

/// The number of records.
fn results(lines: &Lines) -> Result<usize> {
    if lines.len == 0 && lines.outputs > 0 {
        return Err(Error::new(ErrorKind::Empty, "moments along an axis of 0 elements has no answer"));
    }
    Ok(lines.outputs)
}
