//! Statistics in one pass over memory: count, sum, smallest and largest element with their indices, mean, variance.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input, and one more of the tiles that have the extremes |
//! | determinism | same bits everywhere, if the device keeps subnormals |
//! | scratch | up to 88 bytes for each work-group; for floats, also up to 33 for each 64 KiB of the input |
//! | limits | any n from 1 on that fits the device |
//!
//! Sums and means of floats use one tree, like [`Fixed`](crate::Determinism::Fixed) sums. Each lane of 16 elements
//! computes its mean, and then a correction from the distances of its elements to that mean. Lanes and tiles merge in
//! pairs of neighbours (Chan, Golub and LeVeque 1979).
//!
//! Let u be the rounding unit of the accumulator (`f32` for 16-bit floats, else the type itself), and d the mean
//! distance to the mean:
//!
//! | | error at most |
//! |---|---|
//! | mean, of floats | (40 + 8 log2 n) (u d + u² \|mean\|) |
//! | variance, of floats | (80 + 16 log2 n) u (variance + (10 u mean)²), plus the square of the mean's error |
//! | integers | the sum is exact; the others are rounded a few times in `f64` |
//!
//! The variance is an `f64` for every element type. It is infinite only if the exact variance, or the bound on its
//! error, exceeds the range of `f64`. Squares below the accumulator's range lose digits or are 0. For `f32`, `f16` and
//! `bf16`, distances to the mean below 1e-19 lose digits, and those below 1e-23 count as 0. On a device that flushes
//! subnormals, all below 1e-19 count as 0. Scale such elements by a power of two.
//!
//! The mean of finite elements is finite. An infinite element makes the mean infinite or NaN, and the variance NaN. A
//! NaN makes the mean and the variance NaN.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod groups;

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use crate::{
    Device, Element, Error, ErrorKind, Extreme, Input, Output, Result, Scratch, Source,
    counted::Firsts,
    reduce::moments::{Moments, moments, of_a_sample},
    runtime::Backend,
    source::{Counted, Grouped},
};

#[doc(hidden)]
pub use crate::reduce::moments::Figure;

/// Words of a [`StatisticsRecord`].
const WORDS: usize = 12;
type Words = [u64; WORDS];

/// The smallest and the largest element with their indices, as returned by [`Device::min_max`].
///
/// ```
/// let found = oclprim::Device::best()?.min_max(&[4u8, 9, 4])?;
/// assert_eq!((found.min.index, found.max.index), (0, 1));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MinMax<T> {
    /// The smallest element, and its lowest index.
    pub min: Extreme<T>,
    /// The largest element, and its lowest index.
    pub max: Extreme<T>,
}

/// The result of [`Device::statistics`].
///
/// ```
/// let found = oclprim::Device::best()?.statistics(&[1i32, 3])?;
/// assert_eq!((found.count, found.nan, found.sum, found.integer_sum), (2, 0, 4.0, Some(4)));
/// assert_eq!((found.mean, found.variance, found.sample_variance()), (2.0, 1.0, 2.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Statistics<T> {
    /// The number of elements, including NaN.
    pub count: usize,
    /// The number of elements that are NaN.
    pub nan: usize,
    /// The smallest element, and its lowest index; the first NaN, if any.
    pub min: Extreme<T>,
    /// The largest element, and its lowest index; the first NaN, if any.
    pub max: Extreme<T>,
    /// The sum.
    pub sum: f64,
    /// The exact sum of integers; `None` for floats.
    pub integer_sum: Option<i128>,
    /// The mean.
    pub mean: f64,
    /// The population variance: the mean of the squared distances to the mean.
    pub variance: f64,
}

impl<T> Statistics<T> {
    /// The count, sum, mean and variance.
    ///
    /// ```
    /// let moments = oclprim::Device::cpu().statistics(&[1.0f32, 3.0])?.moments();
    /// assert_eq!((moments.count, moments.mean, moments.variance), (2, 2.0, 1.0));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn moments(&self) -> Moments {
        let &Self { count, sum, integer_sum, mean, variance, .. } = self;
        Moments { count, sum, integer_sum, mean, variance }
    }

    /// The sample variance, with the divisor `count - 1`. NaN for fewer than two elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::best()?.statistics(&[1u8, 2, 6])?.sample_variance(), 7.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sample_variance(&self) -> f64 {
        of_a_sample(self.count, self.variance)
    }
}

/// [`Statistics`] in the memory of a device, for the element type `T`.
///
/// ```
/// use oclprim::{Device, StatisticsRecord};
///
/// let device = Device::best()?;
/// let mut records = device.zeroed::<StatisticsRecord<u8>>(2)?;
/// device.statistics_into(&[1u8, 3], records.view_mut(..1)?)?;
/// device.statistics_into(&[5u8, 9], records.view_mut(1..)?)?;
/// let means: Vec<f64> = records.to_vec()?.iter().map(|record| record.get().mean).collect();
/// assert_eq!(means, [2.0, 7.0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct StatisticsRecord<T>([u64; WORDS], PhantomData<T>);

impl<T: Element> StatisticsRecord<T> {
    /// Decodes the record. A record of zeros, which was never written, has no elements; its mean and variance are NaN.
    ///
    /// ```
    /// use oclprim::{Device, StatisticsRecord};
    ///
    /// let device = Device::best()?;
    /// let mut record = device.zeroed::<StatisticsRecord<f32>>(1)?;
    /// device.statistics_into(&[1.0f32, 3.0], &mut record)?;
    /// assert_eq!(record.to_vec()?[0].get().mean, 2.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn get(&self) -> Statistics<T> {
        let words = &self.0;
        let [count, nan, low, high, ..] = *words;
        let extreme = |index: u64, bits: u64| Extreme { index: index as usize, value: T::from_bits_lossy(bits) };
        let Moments { sum, integer_sum, mean, variance, .. } =
            moments(T::TYPE, count, words[6..11].try_into().expect("5"));
        let (min, max) = (extreme(low, words[4]), extreme(high, words[5]));
        Statistics { count: count as usize, nan: nan as usize, min, max, sum, integer_sum, mean, variance }
    }
}

impl<T: Element> std::fmt::Debug for StatisticsRecord<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0[0] == 0 { f.write_str("StatisticsRecord(empty)") } else { self.get().fmt(f) }
    }
}

pub(super) fn not_empty<T: Pod>(input: &Input<'_, T>, what: &str) -> Result<()> {
    if input.is_empty() { Err(of_nothing(what)) } else { Ok(()) }
}

pub(super) fn of_nothing(what: &str) -> Error {
    Error::new(ErrorKind::Empty, format!("{what} of 0 elements has no answer"))
}

/// An input of [`Device::mean`], [`Device::variance`] and [`Device::statistics`]: a [`Source`], its first elements [by a
/// count](Source::take), [segments](Source::segments) of it, [runs of equal keys](Source::by_key), or lines
/// [`along`](crate::NdView::along) axes.
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, reduce::statistics::Measurable};
///
/// fn mean<I: Measurable>(input: I) -> oclprim::Result<I::Found> {
///     Device::best()?.mean(input)
/// }
/// assert_eq!((mean(&[1u8, 2])?, mean(oclprim::NdView::from(&[1u8, 2]).along(0))?), (1.5, vec![1.5]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no mean",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for structs, pass a field: `x.map(map!(|p: Particle| p.mass))`, then the groups"
)]
pub trait Measurable: Grouped<Item: Element> {
    /// A number, or one for each group; by key, the keys and the numbers.
    type Found;
    /// [`Statistics`], or a buffer of [`StatisticsRecord`] for groups; by key, the keys and the buffer.
    type Statistics;

    /// A number from the moments, for the input or for each group.
    #[doc(hidden)]
    fn figure(self, device: &Device, figure: Figure) -> Result<Self::Found>;

    #[doc(hidden)]
    fn statistics(self, device: &Device) -> Result<Self::Statistics>;

    #[doc(hidden)]
    fn statistics_into(self, device: &Device, output: Self::Out<'_, StatisticsRecord<Self::Item>>) -> Result<()>;
}

impl<S: Source<Item: Element>> Measurable for S {
    type Found = f64;
    type Statistics = Statistics<S::Item>;

    fn figure(self, device: &Device, figure: Figure) -> Result<f64> {
        let Statistics { count, sum, integer_sum, mean, variance, .. } = self.statistics(device)?;
        Ok(figure.of(&Moments { count, sum, integer_sum, mean, variance }))
    }

    fn statistics(self, device: &Device) -> Result<Statistics<S::Item>> {
        let mut out = [StatisticsRecord::zeroed()];
        self.statistics_into(device, Output::from(&mut out))?;
        Ok(out[0].get())
    }

    fn statistics_into(self, device: &Device, output: Output<'_, StatisticsRecord<S::Item>>) -> Result<()> {
        device.statistics_one(self.held(device)?.input(), output, &mut Scratch::new())
    }
}

impl<S: Source<Item: Element>> Measurable for Counted<'_, S> {
    type Found = f64;
    type Statistics = Statistics<S::Item>;

    fn figure(self, device: &Device, figure: Figure) -> Result<f64> {
        self.known(device)?.figure(device, figure)
    }

    fn statistics(self, device: &Device) -> Result<Statistics<S::Item>> {
        self.known(device)?.statistics(device)
    }

    fn statistics_into(self, device: &Device, output: Output<'_, StatisticsRecord<S::Item>>) -> Result<()> {
        self.known(device)?.statistics_into(device, output)
    }
}

/// # Statistics
///
/// These methods compute several statistics in one pass over memory. Module:
/// [`reduce::statistics`](crate::reduce::statistics).
impl Device {
    /// Count, number of NaN, sum, extremes, mean and variance, in one pass over memory.
    ///
    /// For [groups], the result is a buffer with a record for each group. Groups are [segments](Source::segments),
    /// [lines](crate::NdView::along), and [runs of equal keys](Source::by_key). For runs, the keys come before the
    /// buffer. [The module](crate::reduce::statistics) has the error bounds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`] if there are no elements, or if lines have none; else as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let found = Device::best()?.statistics(&[2u8, 4, 4, 4, 5, 5, 7, 9])?;
    /// assert_eq!((found.count, found.sum, found.mean, found.variance), (8, 40.0, 5.0, 4.0));
    /// assert_eq!((found.min.value, found.max.index), (2, 7));
    ///
    /// let (keys, found) = Device::best()?.statistics([2u8, 4, 9].by_key(&[7u32, 7, 5]))?;
    /// let found: Vec<_> = found.to_vec()?.iter().map(|record| record.get()).collect();
    /// assert_eq!((keys.to_vec()?, found[0].mean, found[1].max.value), (vec![7, 5], 3.0, 9));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn statistics<I: Measurable>(&self, input: I) -> Result<I::Statistics> {
        input.statistics(self)
    }

    /// [`Device::statistics`] into `output`, which has one record, or one for each group, and may be on the device. For
    /// [runs of keys](Source::by_key), `output` is a tuple as in
    /// [`select::by_key::groups`](crate::select::by_key::groups).
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered) or a
    /// [count](Source::take).
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. With invalid offsets, results are
    /// unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::statistics`]; [`ErrorKind::InvalidInput`] also if `output` does not have an element for each
    /// record.
    ///
    /// ```
    /// use oclprim::{Device, StatisticsRecord};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f64, 2.0, 6.0])?;
    /// let mut record = device.zeroed::<StatisticsRecord<f64>>(1)?;
    /// device.statistics_into(&x, &mut record)?;
    /// assert_eq!(record.to_vec()?[0].get().sample_variance(), 7.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn statistics_into<'b, I: Measurable>(
        &self,
        input: I,
        output: impl Into<I::Out<'b, StatisticsRecord<I::Item>>>,
    ) -> Result<()> {
        input.statistics_into(self, output.into())
    }

    /// Body of [`Device::statistics_into`], compiled once for each set of types.
    #[inline(never)]
    fn statistics_one<T: Element>(
        &self,
        input: Input<'_, T>,
        output: Output<'_, StatisticsRecord<T>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "statistics")?;
        not_empty(&input, "statistics")?;
        match self.backend() {
            Backend::Cpu => {
                output.host()?[0] = StatisticsRecord(cpu::statistics(input.host()?)?, PhantomData);
                Ok(())
            }
            Backend::OpenCl(device) => gpu::statistics(device, input, output, scratch),
        }
    }

    /// The mean `(x[0] + ... + x[n - 1]) / n` of all elements, of each segment, or of each line along axes, on the
    /// host. For [runs of equal keys](Source::by_key), returns the keys and the means.
    ///
    /// The mean comes from the record of [`Device::statistics`] or [`Device::moments`]. For groups, a device with
    /// fp64 decodes the records; without fp64 the host does. [`Device::statistics_into`] and [`Device::moments_into`]
    /// can leave the record on the device. The mean of an empty segment is NaN. [`Device::reduce`] with
    /// [`Mean`](crate::op::Mean) rounds means of floats correctly, to the element type.
    ///
    /// # Errors
    ///
    /// Same as [`Device::statistics`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1u8, 2, 4, 6])?;
    /// assert_eq!((device.mean(&x)?, device.mean(x.nd(&[2, 2])?.along(0))?), (3.25, vec![2.5, 4.0]));
    /// assert_eq!(device.mean(oclprim::Source::segments(&x, &[0u32, 1, 4]))?, [1.0, 4.0]);
    /// let (keys, means) = device.mean(oclprim::Source::by_key(&x, &[9u8, 9, 3, 3]))?;
    /// assert_eq!((keys.to_vec()?, means), (vec![9, 3], vec![1.5, 5.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean<I: Measurable>(&self, input: I) -> Result<I::Found> {
        input.figure(self, Figure::Mean)
    }

    /// The population variance of all elements, of each segment, or of each line along axes, on the host: the mean of
    /// `(x[i] - mean)^2`. The variance of an empty segment is NaN. For [runs of equal keys](Source::by_key), returns
    /// the keys and the variances.
    ///
    /// The variance comes from the record of [`Device::statistics`] or [`Device::moments`], as for [`Device::mean`].
    /// [`Statistics::sample_variance`] divides by one less.
    ///
    /// # Errors
    ///
    /// Same as [`Device::statistics`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 6.0])?;
    /// assert_eq!((device.variance(x.view(..2)?)?, device.variance(x.nd(&[2, 2])?.along(0))?), (0.25, vec![1.0, 4.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn variance<I: Measurable>(&self, input: I) -> Result<I::Found> {
        input.figure(self, Figure::Variance)
    }

    pub(super) fn min_max_of<T: Element>(&self, input: Firsts<'_, T>) -> Result<MinMax<T>> {
        let (mut values, mut indices) = ([T::ZERO; 2], [0; 2]);
        self.min_max_one(input, (&mut values).into(), (&mut indices).into(), &mut Scratch::new())?;
        if indices[0] == u64::MAX {
            return Err(of_nothing("min-max"));
        }
        let extreme = |i: usize| Extreme { index: indices[i] as usize, value: values[i] };
        Ok(MinMax { min: extreme(0), max: extreme(1) })
    }

    /// Body of [`Device::min_max_into`], compiled once for each set of types.
    #[inline(never)]
    pub(super) fn min_max_one<T: Element>(
        &self,
        (input, count): Firsts<'_, T>,
        values: Output<'_, T>,
        indices: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        values.expect_len(2, "min-max")?;
        indices.expect_len(2, "min-max")?;
        not_empty(&input, "min-max")?;
        match self.backend() {
            Backend::Cpu => {
                let (min, max) = cpu::min_max(input.host()?)?;
                values.host()?.copy_from_slice(&[min.value, max.value]);
                indices.host()?.copy_from_slice(&[min.index as u64, max.index as u64]);
                Ok(())
            }
            Backend::OpenCl(device) => gpu::extremes(device, gpu::Find::Both, (input, count), values, indices, scratch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_of_integers_is_exact_where_a_float_holds_it() {
        let of = |x: &[i64]| Device::cpu().statistics(x).unwrap().variance;
        assert_eq!(of(&[i64::MAX, i64::MAX]), 0.0);
        assert_eq!(of(&[i64::MAX, i64::MAX - 2]), 1.0);
        assert_eq!(of(&[i64::MIN, i64::MAX]), 2f64.powi(126));
        assert_eq!(Device::cpu().variance(&[u64::MAX; 5]).unwrap(), 0.0);
        // One element that differs from very many: no cancellation.
        let mut x = vec![1i64; 1 << 20];
        x[77] = 0;
        let p = 2f64.powi(-20);
        approx::assert_relative_eq!(of(&x), p * (1.0 - p), max_relative = 1e-15);
    }

    #[test]
    fn an_unwritten_record_has_no_elements() {
        fn check<T: Element>() {
            let found = StatisticsRecord::<T>::zeroed().get();
            assert_eq!((found.count, found.sum), (0, 0.0), "{}", T::TYPE);
            assert!(found.mean.is_nan() && found.variance.is_nan(), "{}: {found:?}", T::TYPE);
        }
        check::<i32>();
        check::<u8>();
        check::<i64>();
        check::<f32>();
        check::<f64>();
    }

    /// Means, sums and variances of finite elements at the ends of the range are never NaN.
    #[test]
    fn statistics_at_the_ends_of_the_range_are_not_nan() {
        fn check<T: Element>(most: f64) {
            let m = 0.9 * most;
            let cpu = Device::cpu();
            let of = |x: &[f64]| cpu.statistics(&x.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>()).unwrap();
            // Means of the elements after their conversion to the type.
            let right = |x: &[f64]| {
                let (found, n) = (of(x), x.len() as f64);
                let want: f64 = x.iter().map(|&x| T::from_f64(x).to_f64() / n).sum();
                assert!((found.mean - want).abs() <= 1e-6 * m, "{}: {found:?}, not {want}", T::TYPE);
                assert!(!found.variance.is_nan() && !found.sum.is_nan(), "{}: {found:?}", T::TYPE);
                found.variance
            };
            // The variance of a narrow type is within the range of `f64`; that of `f64` itself is infinite here.
            let near = |found: f64, want: f64| {
                assert!(found == want || (found / want - 1.0).abs() < 1e-5, "{}: {found} instead of {want}", T::TYPE);
            };
            let m = T::from_f64(m).to_f64();
            for x in [[-m, m], [m, -m]] {
                let found = of(&x);
                assert_eq!((found.sum, found.mean), (0.0, 0.0), "{}", T::TYPE);
                near(found.variance, m * m);
            }
            assert_eq!(right(&[m, m]), 0.0, "{}", T::TYPE);
            near(right(&[m, m, -m]), m * m * 8.0 / 9.0);
            // Lanes whose sums are beyond the range, lanes whose elements are that far from the mean, and lanes with
            // both.
            let lanes = 4096 / size_of::<T>();
            let rows = |rows: &[f64]| rows.iter().flat_map(|&x| vec![x; lanes]).collect::<Vec<f64>>();
            for (lane, part) in [(&[m, m, -m][..], 8.0 / 9.0), (&[m, -m, -m], 8.0 / 9.0), (&[m, m, -m, -m], 1.0)] {
                near(right(&rows(lane)), m * m * part);
            }
            // Squares of rounding errors.
            right(&rows(&[m; 16]));
            right(&rows(&[most / 77.0; 16]));
            // Infinities propagate as in a sum.
            assert_eq!(of(&[m, m, f64::INFINITY]).mean, f64::INFINITY);
            assert!(of(&[f64::NEG_INFINITY, m, f64::INFINITY]).mean.is_nan());
            assert!(of(&[m, f64::NAN]).mean.is_nan() && of(&[f64::INFINITY; 2]).variance.is_nan());
        }
        check::<f32>(f32::MAX.into());
        check::<f64>(f64::MAX);
        check::<crate::bf16>(f32::MAX.into());
    }
}
