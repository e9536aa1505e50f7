//! Histograms of a custom function of the samples.

use super::{
    Accumulate, Bins, Counter, Histogram, Outside,
    cpu::{self, BLOCK},
    slots::OUTSIDE,
};
use super::{form::Mapped, gpu};
use crate::{Device, Element, Input, Output, Result, Scratch, Source, memory, op::Map, runtime::Backend};

/// # Histograms of mapped samples
///
/// These methods return the histogram of a function of each sample. Module: [`histogram`](crate::histogram).
impl Device {
    /// Histogram of `map(x)` for each sample `x`: the result of [`Device::histogram`] for the mapped samples, in one
    /// pass.
    ///
    /// The argument of the function has the type in which `T` is computed: `f32` for `f16` and `bf16`, otherwise `T`.
    /// The bins apply to the function's result.
    ///
    /// # Errors
    ///
    /// Same as [`Device::histogram`]; [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects the
    /// expression. Line numbers in the [log](crate::Error::build_log) refer to the expression.
    ///
    /// ```
    /// use oclprim::{Bins, Device, op::Map};
    ///
    /// let device = Device::best()?;
    /// let power = Map::new(|x: f32| x * x, "x * x");
    /// let found = device.map_histogram(&[0.5f32, -1.5, 1.0, 3.0], &power, &Bins::even(0.0f32, 4.0, 4)?)?;
    /// assert_eq!((found.counts, found.outside.above), (vec![1, 1, 1, 0], 1));
    ///
    /// let last_digit = Map::new(|x: u32| (x % 10) as u8, "x % 10");
    /// let found = device.map_histogram(&[1999u32, 2009, 2021], &last_digit, &Bins::ids(10)?)?;
    /// assert_eq!((found.counts[9], found.counts[1]), (2, 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_histogram<T: Element, U: Element<Acc = U>, F: Fn(T::Acc) -> U + Sync>(
        &self,
        input: impl Source<Item = T>,
        map: &Map<F>,
        bins: &Bins<U>,
    ) -> Result<Histogram> {
        let mut counts = memory::zeroed::<u64>(bins.len())?;
        let mut outside = [0; OUTSIDE];
        let (replace, mut scratch) = (Accumulate::Overwrite, Scratch::new());
        self.map_histogram_into(input, map, bins, &mut counts, &mut outside, replace, &mut scratch)?;
        let [below, above, nan] = outside;
        Ok(Histogram { counts, outside: Outside { below, above, nan } })
    }

    /// [`Device::map_histogram`] into counters that can stay on the device.
    ///
    /// `counts` has a counter per bin. `outside` has three counters: samples below the bins, samples above, and NaN.
    /// Waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::map_histogram`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an output
    /// has the wrong length.
    ///
    /// ```
    /// use oclprim::{Accumulate, Bins, Device, Scratch, op::Map};
    ///
    /// let device = Device::best()?;
    /// let (bins, half) = (Bins::ids(3)?, Map::new(|x: i32| x / 2, "x / 2"));
    /// let (mut counts, mut outside) = (device.zeroed::<u32>(3)?, device.zeroed(3)?);
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.map_histogram_scratch::<i32, i32>(3, &bins)?)?;
    /// for block in [[0, 1, 2], [5, 6, -2]] {
    ///     device.map_histogram_into(&block, &half, &bins, &mut counts, &mut outside, Accumulate::Add, &mut scratch)?;
    /// }
    /// assert_eq!(counts.to_vec()?, [2, 1, 1]);
    /// assert_eq!(outside.to_vec()?, [1, 1, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[allow(clippy::too_many_arguments, reason = "as `histogram_into`, and the function")]
    pub fn map_histogram_into<'b, 'c, T: Element, U: Element<Acc = U>, F: Fn(T::Acc) -> U + Sync, C: Counter>(
        &self,
        input: impl Source<Item = T>,
        map: &Map<F>,
        bins: &Bins<U>,
        counts: impl Into<Output<'b, C>>,
        outside: impl Into<Output<'c, u64>>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.map_histogram_one(input.held(self)?.input(), map, bins, counts.into(), outside.into(), accumulate, scratch)
    }

    /// Body of [`Device::map_histogram_into`], compiled once for each set of types.
    #[allow(clippy::too_many_arguments, reason = "as `histogram_into`, and the function")]
    #[inline(never)]
    fn map_histogram_one<T: Element, U: Element<Acc = U>, F: Fn(T::Acc) -> U + Sync, C: Counter>(
        &self,
        input: Input<'_, T>,
        map: &Map<F>,
        bins: &Bins<U>,
        counts: Output<'_, C>,
        outside: Output<'_, u64>,
        accumulate: Accumulate,
        scratch: &mut Scratch,
    ) -> Result<()> {
        counts.expect_len(bins.len(), "histogram of counts")?;
        outside.expect_len(OUTSIDE, "histogram of samples outside the bins")?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let slots = |start: usize, out: &mut [u32]| {
                    let mut block = [U::ZERO; BLOCK];
                    let block = &mut block[..out.len()];
                    block.iter_mut().zip(&input[start..]).for_each(|(y, x)| *y = (map.function)(x.widen()));
                    bins.slots(block, out);
                };
                cpu::count(input.len(), &slots, counts.host()?, outside.host()?, accumulate)?;
            }
            Backend::OpenCl(device) => {
                let mapped = Mapped { from: T::TYPE, prelude: map.prelude(T::Acc::TYPE, U::TYPE) };
                let input = input.cl(device)?;
                gpu::histogram(device, input, Some(&mapped), bins, counts, outside, accumulate, scratch)?;
            }
        }
        Ok(())
    }

    /// Bytes of scratch that [`Device::map_histogram_into`] uses for `n` samples of type `T` and these bins.
    ///
    /// # Errors
    ///
    /// Same as [`Device::histogram`].
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let bytes = Device::best()?.map_histogram_scratch::<u8, f32>(1 << 20, &Bins::even(0.0f32, 1.0, 100)?)?;
    /// println!("{bytes} bytes");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_histogram_scratch<T: Element, U: Element<Acc = U>>(&self, n: usize, bins: &Bins<U>) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            Backend::OpenCl(device) => gpu::mapped_scratch_bytes(device, n, T::TYPE, bins),
        }
    }
}
