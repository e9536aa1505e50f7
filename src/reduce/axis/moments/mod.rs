//! The mean and the variance of each line along an axis: [`Device::moments_axis`], [`Device::mean_axis`],
//! [`Device::variance_axis`].
//!
//! | property | |
//! |---|---|
//! | work | one read of the elements |
//! | determinism | everywhere, where the device keeps subnormals: the order depends on the axis' length alone |
//! | scratch | none where lines are many and short; else up to 256 bytes for each part of a line: [`Device::moments_axis_scratch`] |
//! | limits | as [`reduce_axis`](Device::reduce_axis) |
//!
//! What is computed in which type, how exact it is, and what comes of NaN, of infinities and of elements at the ends of the
//! range is as [`statistics`] have it: floats in their accumulator, integers exactly.
//!
//! The order: chunks of 16 rows of 32 lanes; of shorter lines, 16 rows of as few of 4, 8 and 16 lanes as hold the line. Each
//! lane has its mean, corrected by what its elements are off it. Four neighbouring lanes join, then the same four of all
//! chunks as a tree of neighbours, then the fours (Chan, Golub and LeVeque 1979). Work-items meet once, at the end of a line.

#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use super::Lines;
use crate::{
    Buffer, Device, Element, Error, ErrorKind, NdView, Output, Result, Scratch, reduce::statistics, runtime::Backend,
};

/// Words of a [`MomentsRecord`].
const WORDS: usize = 6;
/// Rows of a chunk; as in `cl/reduce_axis_moments.cl`.
const ROWS: usize = 16;

/// The lanes of the chunks of a line of `len` elements.
fn lanes(len: usize) -> usize {
    len.div_ceil(ROWS).min(32).next_power_of_two().max(4)
}

/// What [`Device::moments_axis`] finds of a line.
///
/// ```
/// use oclprim::Device;
///
/// let device = Device::best()?;
/// let x = device.upload(&[1i32, 3])?;
/// let found = device.moments_axis(x.nd(&[1, 2])?, 1)?.to_vec()?[0].get();
/// assert_eq!((found.count, found.sum, found.integer_sum), (2, 4.0, Some(4)));
/// assert_eq!((found.mean, found.variance, found.sample_variance()), (2.0, 1.0, 2.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Moments {
    /// The elements.
    pub count: usize,
    /// The sum.
    pub sum: f64,
    /// The sum of integers, exactly; `None` for floats.
    pub integer_sum: Option<i128>,
    /// The mean.
    pub mean: f64,
    /// The mean of squared distances to the mean: the population's variance.
    pub variance: f64,
}

impl Moments {
    /// The variance of a population of which the elements are a sample: by `count - 1`. NaN for one element.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1u8, 2, 6])?;
    /// assert_eq!(device.moments_axis(&x, 0)?.to_vec()?[0].get().sample_variance(), 7.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sample_variance(&self) -> f64 {
        statistics::of_a_sample(self.count, self.variance)
    }
}

/// [`Moments`] as they lie in a device's memory, for the element type `T`. The host makes numbers of them: the mean of
/// integers is a `f64`, which not every device has.
///
/// ```
/// use oclprim::{Device, MomentsRecord};
///
/// let device = Device::best()?;
/// let x = device.upload(&[1.0f32, 3.0, 5.0, 9.0])?;
/// let rows = device.moments_axis(x.nd(&[2, 2])?, 1)?;
/// let means: Vec<f64> = rows.to_vec()?.iter().map(|record: &MomentsRecord<f32>| record.get().mean).collect();
/// assert_eq!(means, [2.0, 7.0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct MomentsRecord<T>([u64; WORDS], PhantomData<T>);

impl<T: Element> MomentsRecord<T> {
    /// What the record says. One that was never written, all zeros, is of no elements: its mean and variance are NaN.
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
        statistics::moments(T::TYPE, count, words)
    }
}

impl<T: Element> std::fmt::Debug for MomentsRecord<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0[0] == 0 { f.write_str("MomentsRecord(empty)") } else { self.get().fmt(f) }
    }
}

impl Device {
    /// Count, sum, mean and variance of each line along an axis, in one pass over memory: one record for each index of the
    /// other axes, the last one of which runs fastest.
    ///
    /// Of each line as [`Device::statistics`] has them; see [the module](crate::reduce::axis::moments) for the order of
    /// floats, which is the same on every device. Strides may be any, zero and negative among them. Does not wait for the
    /// result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`] if the axis has no elements, and there are results; else as [`Device::reduce_axis`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[2.0f32, 4.0, 6.0, 8.0, 1.0, 1.0, 1.0, 1.0])?;
    /// let rows = device.moments_axis(x.nd(&[2, 4])?, 1)?.to_vec()?;
    /// assert_eq!((rows[0].get().mean, rows[0].get().variance), (5.0, 5.0));
    /// assert_eq!((rows[1].get().mean, rows[1].get().variance), (1.0, 0.0));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn moments_axis<'a, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
    ) -> Result<Buffer<MomentsRecord<T>>> {
        let input = input.into();
        let mut out = self.uninit(results(&Lines::of(input.layout(), axis)?)?)?;
        self.moments_axis_into(input, axis, &mut out, &mut Scratch::new())?;
        Ok(out)
    }

    /// [`Device::moments_axis`] into a caller's slice, buffer or view of as many records as there are lines.
    ///
    /// Does not wait, unless `output` is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::moments_axis`]; [`ErrorKind::InvalidInput`] if `output` has another number of elements.
    ///
    /// ```
    /// use oclprim::{Device, MomentsRecord, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3, 6])?;
    /// let columns = x.nd(&[2, 2])?;
    /// let mut found = device.zeroed::<MomentsRecord<u8>>(2)?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.moments_axis_scratch(columns, 0)?)?;
    /// device.moments_axis_into(columns, 0, &mut found, &mut scratch)?;
    /// let found: Vec<_> = found.to_vec()?.iter().map(MomentsRecord::get).collect();
    /// assert_eq!((found[0].mean, found[1].integer_sum), (2.0, Some(8)));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn moments_axis_into<'a, 'b, T: Element>(
        &self,
        input: impl Into<NdView<'a, T>>,
        axis: usize,
        output: impl Into<Output<'b, MomentsRecord<T>>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.moments_axis_one(input.into(), axis, output.into(), scratch)
    }

    /// [`Device::moments_axis_into`], built once for each set of types.
    #[inline(never)]
    fn moments_axis_one<T: Element>(
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
            Backend::Cpu => cpu::moments(input.host()?, &lines, bytemuck::cast_slice_mut(output.host()?)),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                gpu::moments(device, &gpu::Form::of::<T>(), &input, &lines, output, scratch)?;
            }
        }
        Ok(())
    }

    /// The bytes of scratch that [`Device::moments_axis_into`] uses.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce_axis`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32; 24])?;
    /// Scratch::new().reserve(&device, device.moments_axis_scratch(x.nd(&[2, 12])?, 1)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn moments_axis_scratch<'a, T: Element>(&self, input: impl Into<NdView<'a, T>>, axis: usize) -> Result<usize> {
        let lines = Lines::of(input.into().layout(), axis)?;
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::scratch_bytes(device, &lines, &gpu::Form::of::<T>()),
        }
    }

    /// The mean of each line along an axis, as [`Device::moments_axis`] has it, on the host. It is made there of the records of
    /// [`Device::moments_axis_into`], which takes scratch and can leave them on the device.
    ///
    /// # Errors
    ///
    /// As [`Device::moments_axis`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u8, 2, 3, 6])?;
    /// assert_eq!(device.mean_axis(x.nd(&[2, 2])?, 0)?, [2.0, 4.0]);
    /// assert_eq!(device.mean_axis(x.nd(&[2, 2])?, 1)?, [1.5, 4.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_axis<'a, T: Element>(&self, input: impl Into<NdView<'a, T>>, axis: usize) -> Result<Vec<f64>> {
        Ok(self.moments_axis(input, axis)?.to_vec()?.iter().map(|record| record.get().mean).collect())
    }

    /// The variance of each line along an axis, by the number of its elements, as [`Device::moments_axis`] has it, on the
    /// host. By one less it is [`Moments::sample_variance`]. It is made as [`Device::mean_axis`].
    ///
    /// # Errors
    ///
    /// As [`Device::moments_axis`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 6.0])?;
    /// assert_eq!(device.variance_axis(x.nd(&[2, 2])?, 0)?, [1.0, 4.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn variance_axis<'a, T: Element>(&self, input: impl Into<NdView<'a, T>>, axis: usize) -> Result<Vec<f64>> {
        Ok(self.moments_axis(input, axis)?.to_vec()?.iter().map(|record| record.get().variance).collect())
    }
}

/// How many records there are.
fn results(lines: &Lines) -> Result<usize> {
    if lines.len == 0 && lines.outputs > 0 {
        return Err(Error::new(ErrorKind::Empty, "moments along an axis of 0 elements has no answer"));
    }
    Ok(lines.outputs)
}
