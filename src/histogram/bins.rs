//! The definition of bins, and the bin of one sample on the CPU.

use std::{cmp::Ordering, marker::PhantomData, sync::Arc};

use super::{
    edges::List,
    slots::{ABOVE, BELOW, NAN, Real, check_count, to_i128},
};
use crate::{Element, Error, Integer, Result, memory};

/// A mapping from samples of type `T` to bins.
///
/// # The bin of a sample
///
/// - [`Bins::ids`]: the sample is its bin's number.
/// - [`Bins::even`] of integers: `floor((x - lower) * bins / (upper - lower))`, exact for any range.
/// - [`Bins::even`] of floats: the largest `k` with `edge(k) <= x`. Here `width = upper / bins - lower / bins`. If
///   `floor(bins / 2) * width` is not finite, `width` is the largest number for which this product is finite.
///
///   ```text
///   edge(k) = lower + k * width             if 2 k < bins
///             upper - (bins - k) * width    else
///   ```
///
///   Each operation is rounded correctly in the type; for `f16` and `bf16`, in `f32`. So `edge(0)` is `lower`,
///   `edge(bins)` is `upper`, and the bin is the same on every device. A device that flushes subnormals treats
///   subnormal samples as 0.
/// - [`Bins::edges`]: the last `k` with `edges[k] <= x`.
///
/// The range is `lower <= x < upper`, or `lower <= x <= upper` if the bins are [closed](Bins::closed). Samples below,
/// samples above, and NaN are counted separately.
///
/// ```
/// use oclprim::Bins;
///
/// let (ids, tenths) = (Bins::<u8>::ids(256)?, Bins::even(0.0f64, 1.0, 10)?);
/// assert_eq!((ids.len(), tenths.len(), tenths.is_empty()), (256, 10, false));
/// assert!(Bins::even(1.0f32, 1.0, 10).is_err());
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bins<T: Element> {
    #[doc(hidden)]
    pub count: u32,
    #[doc(hidden)]
    pub map: Map,
    #[doc(hidden)]
    pub element: PhantomData<T>,
}

/// [`Bins`] with the element type erased.
#[derive(Clone, Debug, PartialEq)]
pub enum Map {
    Ids,
    Integers(Steps),
    F32(Edges<f32>),
    F64(Edges<f64>),
    List { edges: Arc<List>, closed: bool },
}

impl<T: Integer> Bins<T> {
    /// One bin per integer: sample `k` falls into bin `k`, for `k` from 0 to `bins - 1`. Negative samples count as
    /// below the bins, samples of `bins` or more as above.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `bins` is 0 or more than 2^24.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let found = Device::best()?.histogram(&[1u8, 3, 1, 9], &Bins::ids(4)?)?;
    /// assert_eq!(found.counts, [0, 2, 0, 1]);
    /// assert_eq!(found.outside.above, 1);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn ids(bins: usize) -> Result<Self> {
        Ok(Self { count: check_count(bins)?, map: Map::Ids, element: PhantomData })
    }
}

impl<T: Element> Bins<T> {
    /// Bins of equal width over `lower <= x < upper`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `bins` is 0 or more than 2^24, or if `upper` is
    /// not above `lower`. The same error if an end is infinite or NaN. The same error if a float range is so narrow
    /// that two edges coincide, or that bins have subnormal widths.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let found = Device::best()?.histogram(&[0.1f32, 0.5, 0.75, 1.0], &Bins::even(0.0, 1.0, 2)?)?;
    /// assert_eq!(found.counts, [1, 2]);
    /// assert_eq!(found.outside.above, 1);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn even(lower: T, upper: T, bins: usize) -> Result<Self> {
        let count = check_count(bins)?;
        // False for NaN.
        let ordered = lower < upper;
        let finite = |x: T| !T::TYPE.is_float() || x.to_f64().is_finite();
        if !ordered || !finite(lower) || !finite(upper) {
            return Err(Error::invalid(format!("bins from {lower:?} to {upper:?} need finite edges in rising order")));
        }
        let map = if !T::TYPE.is_float() {
            Some(Map::Integers(Steps::new(to_i128(lower), to_i128(upper), count)))
        } else if T::Acc::TYPE.needs_fp64() {
            Edges::new(lower.to_f64(), upper.to_f64(), count).map(Map::F64)
        } else {
            Edges::new(lower.to_f64() as f32, upper.to_f64() as f32, count).map(Map::F32)
        };
        let map = map.ok_or_else(|| {
            Error::invalid(format!("the range from {lower:?} to {upper:?} is too narrow for {bins} distinct bins"))
        })?;
        Ok(Self { count, map, element: PhantomData })
    }

    /// Bins between neighbouring edges: bin `k` is `edges[k] <= x < edges[k + 1]`.
    ///
    /// There are `edges.len() - 1` bins. Equal edges make empty bins, and edges can be infinite. Clones share the
    /// prepared search table, on the host and on the device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are fewer than 2 or more than 2^24 + 1
    /// edges. The same error if an edge is NaN or less than its predecessor.
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let octaves = Bins::edges(&[20.0f32, 40.0, 80.0, 160.0])?;
    /// let found = Device::best()?.histogram(&[25.0, 79.9, 80.0, 10.0], &octaves)?;
    /// assert_eq!((found.counts, found.outside.below), (vec![1, 1, 1], 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn edges(edges: &[T]) -> Result<Self> {
        let edges = Arc::new(List::new(edges)?);
        Ok(Self { count: edges.bins(), map: Map::List { edges, closed: false }, element: PhantomData })
    }

    /// The same bins, but the last one includes the upper edge, as in NumPy.
    ///
    /// This method has no effect on bins from [`Bins::ids`].
    ///
    /// ```
    /// use oclprim::{Bins, Device};
    ///
    /// let found = Device::best()?.histogram(&[0.1f32, 0.5, 0.75, 1.0], &Bins::even(0.0, 1.0, 2)?.closed())?;
    /// assert_eq!(found.counts, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn closed(mut self) -> Self {
        match &mut self.map {
            Map::Ids => {}
            Map::Integers(steps) => steps.closed = true,
            Map::F32(edges) => edges.closed = true,
            Map::F64(edges) => edges.closed = true,
            Map::List { closed, .. } => *closed = true,
        }
        self
    }

    /// The number of bins.
    ///
    /// ```
    /// assert_eq!(oclprim::Bins::edges(&[0.0f32, 1.0, 4.0])?.len(), 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Always false: there is at least one bin.
    ///
    /// ```
    /// assert!(!oclprim::Bins::<u8>::ids(1)?.is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The lower edge of each bin, and the upper edge of the last, each rounded to `f64`.
    ///
    /// # Errors
    ///
    /// Fails if host memory is short.
    #[doc(hidden)]
    pub fn rounded_edges(&self) -> Result<Vec<f64>> {
        let edge = |k: usize| match &self.map {
            Map::Ids => k as f64,
            Map::Integers(steps) => steps.edge(k as u32),
            Map::F32(edges) => edges.edge(k as u32).wide(),
            Map::F64(edges) => edges.edge(k as u32),
            Map::List { edges, .. } => edges.edge(k),
        };
        memory::collect((0..self.len() + 1).map(edge))
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    /// Writes the slot of each sample, on the CPU.
    #[doc(hidden)]
    pub fn slots(&self, input: &[T], out: &mut [u32]) {
        let (pairs, count) = (input.iter().zip(&mut *out), self.count);
        match &self.map {
            Map::Ids => pairs.for_each(|(&x, slot)| {
                let id = to_i128(x);
                *slot = match u32::try_from(id) {
                    Ok(id) if id < count => id,
                    _ => count + if id < 0 { BELOW } else { ABOVE },
                };
            }),
            Map::Integers(steps) => pairs.for_each(|(&x, slot)| *slot = steps.slot(to_i128(x))),
            Map::F32(edges) => pairs.for_each(|(&x, slot)| *slot = edges.slot(x.to_f64() as f32)),
            Map::F64(edges) => pairs.for_each(|(&x, slot)| *slot = edges.slot(x.to_f64())),
            Map::List { edges, closed } => edges.slots(*closed, input, out),
        }
    }
}

/// Bins of equal width, for integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    pub lower: i128,
    /// `upper - lower`.
    pub extent: u64,
    /// `floor((2^64 - 1) / (extent >> shift))`.
    pub reciprocal: u64,
    /// The first guess drops this many low bits of the distance, so that the distance times `bins` fits 64 bits.
    pub shift: u32,
    pub closed: bool,
    pub bins: u32,
}

impl Steps {
    fn new(lower: i128, upper: i128, bins: u32) -> Self {
        let extent = (upper - lower) as u64;
        let shift = 24u32.saturating_sub(extent.leading_zeros());
        Self { lower, extent, reciprocal: u64::MAX / (extent >> shift), shift, closed: false, bins }
    }

    /// The lower edge of bin `k`, rounded to `f64`.
    fn edge(&self, k: u32) -> f64 {
        let product = u128::from(k) * u128::from(self.extent);
        let (whole, rest) = (product / u128::from(self.bins), product % u128::from(self.bins));
        let floor = self.lower + whole as i128;
        if floor.unsigned_abs() <= 1 << 52 {
            return floor as f64 + rest as f64 / f64::from(self.bins);
        }
        // A float of this size has no bits for the fraction. Two more bits record whether the fraction is less than a
        // half, equal or greater, so that the edge is rounded once.
        let quarters = match (2 * rest).cmp(&u128::from(self.bins)) {
            _ if rest == 0 => 0,
            Ordering::Less => 1,
            Ordering::Equal => 2,
            Ordering::Greater => 3,
        };
        (4 * floor + quarters) as f64 / 4.0
    }

    /// The slot of a sample, by the arithmetic of `cl/lib/bins.cl`.
    #[inline]
    pub(crate) fn slot(&self, x: i128) -> u32 {
        let (bins, above) = (u64::from(self.bins), self.lower + i128::from(self.extent));
        if x < self.lower {
            return self.bins + BELOW;
        }
        if x >= above {
            return if x == above && self.closed { self.bins - 1 } else { self.bins + ABOVE };
        }
        let distance = (x - self.lower) as u64;
        let product = (distance >> self.shift) * bins;
        let mut bin = ((u128::from(product) * u128::from(self.reciprocal)) >> 64) as u64;
        if self.shift == 0 {
            // The reciprocal is rounded down, so the guess is right or too low by 1.
            return (bin + u64::from(product - bin * self.extent >= self.extent)) as u32;
        }
        let wanted = u128::from(distance) * u128::from(bins);
        let reached = |bin: u64| u128::from(bin) * u128::from(self.extent) <= wanted;
        while !reached(bin) {
            bin -= 1;
        }
        while reached(bin + 1) {
            bin += 1;
        }
        bin as u32
    }
}

/// Bins of equal width, for floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edges<F> {
    pub lower: F,
    pub upper: F,
    pub width: F,
    /// Bins per two units of distance: the guess multiplies half the distance by this factor.
    pub scale: F,
    /// If a guess is further than this from a whole number, its bin is certain.
    pub slack: F,
    pub closed: bool,
    pub bins: u32,
}

impl<F: Real> Edges<F> {
    /// `None` if two edges coincide, if `width` is subnormal, or if `scale` is infinite.
    fn new(lower: F, upper: F, bins: u32) -> Option<Self> {
        let count = F::of(bins);
        // A single bin has no inner edge, and its width could overflow.
        let mut width = if bins == 1 { F::ZERO } else { upper / count - lower / count };
        // A range can span the whole type. The rounding of `width`, of less than one unit in the last place, can then
        // make the product overflow.
        while !(F::of(bins / 2) * width).wide().is_finite() {
            width = width.below();
        }
        let extent = upper * F::HALF - lower * F::HALF;
        let scale = count / extent;
        // Let u be the unit roundoff and m the larger magnitude of both ends. In units of bins, the error of an edge is
        // at most 4.1 u m / width. That of the guess is at most 8.2 u m / width. Near the smallest normal number,
        // flushed subnormals add to both.
        let magnitude = lower.wide().abs().max(upper.wide().abs());
        let slack = 20.0 * F::ROUNDOFF * magnitude / width.wide();
        // If `wide`, a bin spans tens of units in the last place, so all edges are distinct.
        let wide = width.wide() > 1e-30 && slack < 0.5;
        let slack = if wide { F::near(slack) } else { F::ONE };
        let edges = Self { lower, upper, width, scale, slack, closed: false, bins };
        let rises = |k: u32| edges.edge(k) < edges.edge(k + 1);
        let finite = scale.wide().is_finite() && (bins == 1 || width.normal());
        (finite && (wide || (0..bins).all(rises))).then_some(edges)
    }

    /// The lower edge of bin `k`.
    #[inline]
    fn edge(&self, k: u32) -> F {
        if 2 * k < self.bins {
            self.lower + F::of(k) * self.width
        } else {
            self.upper - F::of(self.bins - k) * self.width
        }
    }

    /// The slot of a sample, by the arithmetic of `cl/lib/bins.cl`.
    #[inline]
    pub(crate) fn slot(&self, x: F) -> u32 {
        if x < self.lower {
            return self.bins + BELOW;
        }
        if x >= self.upper {
            return if x == self.upper && self.closed { self.bins - 1 } else { self.bins + ABOVE };
        }
        if x.nan() {
            return self.bins + NAN;
        }
        let guess = (x * F::HALF - self.lower * F::HALF) * self.scale;
        let mut k = Ord::min(guess.whole(), self.bins - 1);
        let part = guess - F::of(k);
        if part > self.slack && part < F::ONE - self.slack {
            return k;
        }
        while x < self.edge(k) {
            k -= 1;
        }
        while k + 1 < self.bins && x >= self.edge(k + 1) {
            k += 1;
        }
        k
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_integers_are_rounded_once() {
        let edges =
            |lower: i64, upper: i64, bins: usize| Bins::even(lower, upper, bins).unwrap().rounded_edges().unwrap();
        // 2^53 + 1.5 k: a tie and a number just above it.
        let (base, step) = (1i64 << 53, 1.5);
        assert_eq!(edges(base, base + 12, 8)[..3], [base as f64, (base + 2) as f64, (base + 3 + 1) as f64]);
        assert_eq!(edges(-3, 9, 8), (0..=8).map(|k| -3.0 + f64::from(k) * step).collect::<Vec<_>>());
        assert_eq!(edges(-base - 12, -base, 8)[7..], [(-base - 2) as f64, -base as f64]);
    }

    #[test]
    fn errors_give_the_numbers() {
        let text = |error: Error| error.to_string();
        assert_eq!(text(Bins::<u8>::ids(0).unwrap_err()), "a histogram has 1 to 16777216 bins, not 0");
        assert!(text(Bins::<u8>::ids((1 << 24) + 1).unwrap_err()).contains("16777217"));
        assert!(text(Bins::even(2.0f32, 1.0, 4).unwrap_err()).contains("from 2.0 to 1.0"));
        for (lower, upper) in [(f32::NAN, 1.0), (0.0, f32::NAN), (0.0, f32::INFINITY), (1.0, 1.0)] {
            assert!(Bins::even(lower, upper, 4).is_err());
        }
        let narrow = Bins::even(1.0f32, 1.0 + 4.0 * f32::EPSILON, 8).unwrap_err();
        assert!(text(narrow).contains("too narrow for 8 distinct bins"));
        assert!(Bins::even(0.0f32, 1e-40, 8).is_err());
        // Floats from 2^23 on are whole numbers.
        let whole = |upper: f32| Bins::even(8_388_608.0, upper, 9);
        assert!(whole(8_388_613.0).is_err() && whole(8_388_615.0).is_err() && whole(8_388_617.0).is_ok());
        assert!(Bins::even(5i8, 5, 3).is_err());
    }

    #[test]
    fn the_widest_ranges_are_valid() {
        for bins in [1, 2, 3, 1 << 24] {
            assert!(Bins::even(f32::MIN, f32::MAX, bins).is_ok(), "{bins}");
            assert!(Bins::even(f64::MIN, f64::MAX, bins).is_ok(), "{bins}");
        }
        let steps = Steps::new(i64::MIN.into(), i64::MAX.into(), 3);
        let slots = [i64::MIN, -3074457345618258604, -3074457345618258603, i64::MAX - 1, i64::MAX]
            .map(|x| steps.slot(x.into()));
        assert_eq!(slots, [0, 0, 1, 2, 3 + ABOVE]);
    }

    #[test]
    fn bins_follow_their_edges() {
        let Map::F32(edges) = Bins::even(-0.3f32, 0.7, 7).unwrap().map else { unreachable!() };
        assert_eq!((edges.edge(0), edges.edge(7)), (-0.3, 0.7));
        for k in 0..7 {
            assert_eq!(edges.slot(edges.edge(k)), k);
            assert_eq!(edges.slot(edges.edge(k + 1).next_down()), k);
        }
    }
}
