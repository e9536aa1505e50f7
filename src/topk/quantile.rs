//! Quantiles: the keys of ranks, and values between them.

use super::RANKS;
use crate::{
    Device, Element, Error, ErrorKind, Input, Output, Result, Source, memory,
    source::{Counted, Grouped},
    with_integer,
};

/// The value of a quantile between two keys; names as in `numpy.quantile`.
///
/// ```
/// use oclprim::{Device, Interpolation};
///
/// let x = [10u8, 20, 40];
/// let at = |how| Device::best()?.quantile(&x, 0.75, how);
/// assert_eq!(at(Interpolation::Linear)?, 30.0);
/// assert_eq!((at(Interpolation::Lower)?, at(Interpolation::Higher)?), (20.0, 40.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interpolation {
    /// Linear: `lower + (higher - lower) * f`, where f is the fractional part of the quantile's rank.
    #[default]
    Linear,
    /// The lower key.
    Lower,
    /// The higher key.
    Higher,
    /// The nearer key; if both are equally near, the one of even rank.
    Nearest,
    /// The mean of the two keys.
    Midpoint,
}

impl Interpolation {
    /// All interpolations.
    ///
    /// ```
    /// use oclprim::{Device, Interpolation};
    ///
    /// for how in Interpolation::ALL {
    ///     println!("{}: {:?}", how.name(), Device::best()?.quantile(&[1, 2, 4], 0.7, how)?);
    /// }
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const ALL: [Self; 5] = [Self::Linear, Self::Lower, Self::Higher, Self::Nearest, Self::Midpoint];

    /// The name, such as `linear`.
    ///
    /// ```
    /// assert_eq!(oclprim::Interpolation::Midpoint.name(), "midpoint");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Nearest => "nearest",
            Self::Midpoint => "midpoint",
        }
    }

    /// The two ranks around a quantile of n > 0 keys, and the fraction of the way from the first to the second.
    pub(super) fn place(self, n: usize, q: f64) -> (usize, usize, f64) {
        let at = (n - 1) as f64 * q;
        // For large n, rounding can push the product beyond the last rank.
        let rank = |x: f64| (x as usize).min(n - 1);
        let (low, high) = (rank(at.floor()), rank(at.ceil()));
        match self {
            Self::Linear => (low, high, at - at.floor()),
            Self::Lower => (low, low, 0.0),
            Self::Higher => (high, high, 0.0),
            Self::Nearest => (rank(at.round_ties_even()), rank(at.round_ties_even()), 0.0),
            Self::Midpoint => (low, high, 0.5),
        }
    }
}

/// The value at the fraction `part`, from 0 to below 1, of the way from `low` to `high`. The value rises with `part`,
/// and stays between `low` and `high`.
pub(super) fn between<T: Element>(low: T, high: T, part: f64) -> f64 {
    let (from, to) = (low.to_f64(), high.to_f64());
    if low == high || part == 0.0 {
        return from;
    }
    let exact = |x: f64| x.abs() <= (1u64 << 53) as f64;
    with_integer!(
        T::TYPE,
        I => if exact(from) && exact(to) {
            between_floats(from, to, part)
        } else {
            let whole = |x: T| crate::Integer::to_i128(bytemuck::cast::<T, I>(x));
            between_integers(whole(low), whole(high), part)
        },
        between_floats(from, to, part)
    )
}

/// NumPy's formula, which starts at the nearer end, if `high - low` is finite.
fn between_floats(low: f64, high: f64, part: f64) -> f64 {
    let width = high - low;
    if width.is_finite() {
        let middle = high - width * 0.5;
        // The width is rounded, so the lower half could otherwise end above the middle.
        return if part >= 0.5 { high - width * (1.0 - part) } else { (low + width * part).min(middle) };
    }
    // The width is beyond the range, or an end is infinite. Next to an infinite end, a finite end has no weight.
    match (low.is_finite(), high.is_finite()) {
        (true, true) => low * (1.0 - part) + high * part,
        (true, false) => high,
        (false, true) => low,
        (false, false) => f64::NAN,
    }
}

/// `low + (high - low) * part` for integers that `f64` does not represent: truncated to 62 bits after the point, then
/// rounded.
fn between_integers(low: i128, high: i128, part: f64) -> f64 {
    /// Bits after the binary point. The sum has at most 126 bits.
    const POINT: u32 = 62;
    // `part = fraction / 2^scale`, with a fraction of 53 bits.
    let bits = part.to_bits();
    let field = (bits >> 52) as u32;
    let fraction = u128::from(bits & ((1 << 52) - 1) | u64::from(field > 0) << 52);
    let scale = 1075 - field.max(1);
    // The product is below 2^117.
    let product = (high - low) as u128 * fraction;
    if low == 0 {
        // In two steps, since 2^scale can exceed the range.
        let down = |bits: u32| f64::from_bits(u64::from(1023 - bits) << 52);
        return product as f64 * down(scale / 2) * down(scale - scale / 2);
    }
    let (above, rest) = if scale <= POINT {
        (product << (POINT - scale), 0)
    } else {
        let shift = scale - POINT;
        let above = product.checked_shr(shift).unwrap_or(0);
        (above, product - above.checked_shl(shift).unwrap_or(0))
    };
    // The last bit represents all bits after it, so that a sum of 1 or more is rounded once.
    let sum = ((low << POINT) + above as i128) | i128::from(rest != 0);
    sum as f64 / (1u64 << POINT) as f64
}

/// One quantile, `f64`, or several, `&[f64]`.
#[diagnostic::on_unimplemented(message = "`{Self}` does not name quantiles", label = "expected `f64` or `&[f64]`")]
pub trait Fractions {
    /// The type of the results: `f64` or `Vec<f64>`.
    type Found;
    #[doc(hidden)]
    fn list(&self) -> &[f64];
    #[doc(hidden)]
    fn found(values: Vec<f64>) -> Self::Found;
}

impl Fractions for f64 {
    type Found = Self;

    fn list(&self) -> &[f64] {
        std::slice::from_ref(self)
    }

    fn found(values: Vec<f64>) -> f64 {
        values[0]
    }
}

macro_rules! fractions {
    ($([$($n:ident)?] $ty:ty;)*) => {
        $(impl $(<const $n: usize>)? Fractions for $ty {
            type Found = Vec<f64>;

            fn list(&self) -> &[f64] {
                &self[..]
            }

            fn found(values: Vec<f64>) -> Vec<f64> {
                values
            }
        })*
    };
}
fractions! { [] &[f64]; [] &Vec<f64>; [N] &[f64; N]; }

/// An input of [`Device::quantile`] and [`Device::median`]: a [`Source`], its first elements [by a
/// count](Source::take), [segments](Source::segments) of it, [runs of equal keys](Source::by_key), or
/// [lines](crate::NdView::along).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, Source, topk::Divisible};
///
/// fn medians<I: Divisible<Quantiles<f64> = Buffer<f64>>>(groups: I) -> oclprim::Result<Vec<f64>> {
///     Device::best()?.median(groups)?.to_vec()
/// }
/// assert_eq!(medians([1u8, 2, 9].segments(&[0u32, 2, 3]))?, [1.5, 9.0]);
/// assert_eq!(medians(oclprim::NdView::from(&[1u8, 2, 9]).along(0))?, [2.0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no quantiles",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for structs, pass a field: `x.map(map!(|p: Particle| p.mass))`, then the groups"
)]
pub trait Divisible: Grouped<Item: Element> {
    /// The quantiles: numbers on the host, or a buffer with those of each group; by key, the keys and the buffer.
    type Quantiles<Q: Fractions>;

    #[doc(hidden)]
    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Self::Quantiles<Q>>;

    #[doc(hidden)]
    fn quantile_into(self, device: &Device, q: &[f64], how: Interpolation, output: Self::Out<'_, f64>) -> Result<()>;
}

impl<S: Source<Item: Element>> Divisible for S {
    type Quantiles<Q: Fractions> = Q::Found;

    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Q::Found> {
        let mut values = memory::zeroed::<f64>(q.list().len())?;
        device.quantiles_of(self.held(device)?.input(), q.list(), how, &mut values)?;
        Ok(Q::found(values))
    }

    fn quantile_into(self, device: &Device, q: &[f64], how: Interpolation, output: Output<'_, f64>) -> Result<()> {
        output.expect_len(q.len(), "a selection of quantiles")?;
        let keys = self.held(device)?;
        match output {
            Output::Host(values) => device.quantiles_of(keys.input(), q, how, values),
            there => {
                let mut values = memory::zeroed::<f64>(q.len())?;
                device.quantiles_of(keys.input(), q, how, &mut values)?;
                device.copy(&values, there)
            }
        }
    }
}

impl<S: Source<Item: Element>> Divisible for Counted<'_, S> {
    type Quantiles<Q: Fractions> = Q::Found;

    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Q::Found> {
        self.known(device)?.quantile(device, q, how)
    }

    fn quantile_into(self, device: &Device, q: &[f64], how: Interpolation, output: Output<'_, f64>) -> Result<()> {
        self.known(device)?.quantile_into(device, q, how, output)
    }
}

/// Returns an error if a quantile is not from 0 to 1.
pub(crate) fn allowed(q: &[f64]) -> Result<()> {
    match q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        Some(q) => Err(Error::invalid(format!("quantiles are from 0 to 1, not {q}"))),
        None => Ok(()),
    }
}

/// # Quantiles
///
/// These methods return medians and other quantiles. Module: [`topk`](crate::topk).
impl Device {
    /// The median: the middle key, or the mean of the two middle keys. For [groups](crate::topk::quantiles), a buffer
    /// with the median of each.
    ///
    /// # Errors
    ///
    /// Same as [`Device::quantile`].
    ///
    /// ```
    /// use oclprim::{Device, Source};
    ///
    /// let (device, x) = (Device::best()?, [7u8, 1, 3, 6]);
    /// assert_eq!(device.median(&x)?, 4.5);
    /// assert_eq!(device.median(x.segments(&[0u32, 1, 4]))?.to_vec()?, [7.0, 3.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn median<I: Divisible>(&self, input: I) -> Result<I::Quantiles<f64>> {
        self.quantile(input, 0.5, Interpolation::Midpoint)
    }

    /// The quantile `q`, from 0 (the smallest key) to 1 (the largest), or several of them in the order of `q`. Waits for
    /// the result of a whole input.
    ///
    /// The quantile `q` of n keys has the rank `q * (n - 1)`, counted from 0. Between two ranks, `how` defines the
    /// value. The value is that of NumPy's formula in `f64`. If the difference of two finite keys overflows, the keys
    /// are weighted first and then added. Between integers beyond 2^53, the result is the exact value, rounded once. If
    /// that value lies between -1 and 1, the error is at most 2^-61.
    ///
    /// | between | and | is |
    /// |---|---|---|
    /// | a finite key | a finite key | finite, from the lower key to the higher one, and rises with `q` |
    /// | a finite key | infinity | infinity |
    /// | -infinity | a finite key | -infinity |
    /// | -infinity | infinity | NaN, as in NumPy |
    ///
    /// If any key is NaN, all quantiles are NaN.
    ///
    /// For [segments](Source::segments) and [lines](crate::NdView::along), the result is a buffer. It has the
    /// quantiles of the first group in the order of `q`, then those of the second group, and so on. The call sorts the
    /// keys of all groups first: [`topk::quantiles`](crate::topk::quantiles). It does not wait for the result. A
    /// segment without keys has the quantile NaN, for every element type.
    ///
    /// For [runs of equal keys](Source::by_key), returns the keys of the runs, then the buffer. The call waits for the
    /// number of runs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`] if a whole input has no keys, or if there are lines but they have no keys.
    /// [`ErrorKind::InvalidInput`] if a quantile is not from 0 to 1. The same error if there are no offsets, or if an
    /// offset is beyond the next one or beyond the input. The same error if there is no such axis.
    /// [`ErrorKind::OutOfMemory`] if the device does not hold the scratch.
    ///
    /// ```
    /// use oclprim::{Device, Interpolation, Source};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[40i32, 10, 30, 20])?;
    /// assert_eq!(device.quantile(&x, 0.5, Interpolation::Linear)?, 25.0);
    /// assert_eq!(device.quantile(&x, &[0.0, 0.5, 1.0], Interpolation::Linear)?, [10.0, 25.0, 40.0]);
    /// assert!(device.quantile(&[1.0f32, f32::NAN], 0.1, Interpolation::Linear)?.is_nan());
    ///
    /// let ends = device.quantile(x.segments(&[0u32, 3, 4]), &[0.0, 1.0], Interpolation::Linear)?;
    /// assert_eq!(ends.to_vec()?, [10.0, 40.0, 20.0, 20.0]);
    /// let columns = device.quantile(x.nd(&[2, 2])?.along(0), 0.25, Interpolation::Linear)?;
    /// assert_eq!(columns.to_vec()?, [32.5, 12.5]);
    /// let (keys, ends) = device.quantile(x.by_key(&[7u8, 7, 7, 5]), &[0.0, 1.0], Interpolation::Linear)?;
    /// assert_eq!((keys.to_vec()?, ends.to_vec()?), (vec![7, 5], vec![10.0, 40.0, 20.0, 20.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn quantile<I: Divisible, Q: Fractions>(&self, input: I, q: Q, how: Interpolation) -> Result<I::Quantiles<Q>> {
        input.quantile(self, q, how)
    }

    /// [`Device::quantile`] into a slice, buffer or view with one element for each quantile of each group. For [runs of
    /// keys](Source::by_key), `output` is a tuple as in [`select::by_key::groups`](crate::select::by_key::groups).
    ///
    /// For a whole input, waits for the result; [`Device::nth_element_into`] leaves the keys of ranks on the device. For
    /// groups, waits only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. With invalid offsets, results are
    /// unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::quantile`], but without those for the values of offsets. [`ErrorKind::InvalidInput`] also if
    /// there is not one element for each result, or if `output` overlaps the offsets in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Interpolation, Source};
    ///
    /// let (device, mut quartiles) = (Device::best()?, [0.0; 3]);
    /// for x in [[5u16, 1, 4, 2, 3], [5, 5, 5, 5, 5]] {
    ///     device.quantile_into(&x, &[0.25, 0.5, 0.75], Interpolation::Linear, &mut quartiles)?;
    /// }
    /// assert_eq!(quartiles, [5.0; 3]);
    ///
    /// let mut medians = device.zeroed(2)?;
    /// device.quantile_into([5u16, 1, 4].segments(&[0u32, 2, 3]), &[0.5], Interpolation::Linear, &mut medians)?;
    /// assert_eq!(medians.to_vec()?, [3.0, 4.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn quantile_into<'o, I: Divisible>(
        &self,
        input: I,
        q: &[f64],
        how: Interpolation,
        output: impl Into<I::Out<'o, f64>>,
    ) -> Result<()> {
        input.quantile_into(self, q, how, output.into())
    }

    /// The quantiles of a whole input, compiled once for each type.
    #[inline(never)]
    fn quantiles_of<T: Element>(
        &self,
        input: Input<'_, T>,
        q: &[f64],
        how: Interpolation,
        output: &mut [f64],
    ) -> Result<()> {
        let n = input.len();
        if n == 0 {
            return Err(Error::new(ErrorKind::Empty, "quantiles of 0 keys have no answer"));
        }
        allowed(q)?;
        // The keys are read in several steps, so they are uploaded once.
        let mut own = None;
        let input = self.copied_once(input, &mut own)?;
        let places = memory::collect(q.iter().map(|&q| how.place(n, q)))?;
        let once = |mut ranks: Vec<usize>| {
            ranks.sort_unstable();
            ranks.dedup();
            ranks
        };
        // Room for two ranks per quantile, and for the rank that detects NaN.
        let mut ranks = memory::with_capacity(2 * places.len() + 1)?;
        ranks.extend(places.iter().flat_map(|&(low, high, _)| [low, high]));
        ranks = once(ranks);
        let many = ranks.len() > RANKS;
        if T::TYPE.is_float() {
            // NaN are sorted after all numbers.
            ranks.push(n - 1);
            ranks = once(ranks);
        }
        // More than `RANKS` ranks take a sort of all keys. The rank for NaN alone must not cause this sort.
        let most = if many { ranks.len() } else { RANKS };
        let mut keys = memory::zeroed::<T>(ranks.len())?;
        for (ranks, keys) in ranks.chunks(most).zip(keys.chunks_mut(most)) {
            self.nth_element_into(input, ranks, keys)?;
        }
        if keys.iter().any(|key| key.is_nan()) {
            output.fill(f64::NAN);
            return Ok(());
        }
        let key = |rank| keys[ranks.partition_point(|&other| other < rank)];
        for (value, &(low, high, part)) in output.iter_mut().zip(&places) {
            *value = between(key(low), key(high), part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_match_numpy() {
        assert_eq!(Interpolation::Linear.place(5, 0.3), (1, 2, 4.0 * 0.3 - 1.0));
        assert_eq!(Interpolation::Nearest.place(6, 0.5), (2, 2, 0.0));
        assert_eq!(Interpolation::Nearest.place(6, 0.7), (4, 4, 0.0));
        assert_eq!(Interpolation::Midpoint.place(3, 0.5), (1, 1, 0.5));
        assert!(Interpolation::ALL.iter().all(|how| how.place(1, 1.0) == (0, 0, how.place(1, 1.0).2)));
        assert_eq!((between(2.0, 4.0, 0.25), between(2.0, 4.0, 0.75)), (2.5, 3.5));
        assert_eq!(between(f64::INFINITY, f64::INFINITY, 0.3), f64::INFINITY);
    }

    #[test]
    fn values_between_large_integers_are_rounded_once() {
        assert_eq!(between(i64::MIN, i64::MAX, 0.5), -0.5);
        assert_eq!(between(i64::MIN, i64::MAX, 2f64.powi(-64)), -2f64.powi(63));
        assert_eq!(between(0, u64::MAX, 2f64.powi(-64)), 1.0);
        assert_eq!(between(-1, i64::MAX, 2f64.powi(-63)), 0.0);
        assert_eq!(between(u64::MAX - 2, u64::MAX, 0.5), 2f64.powi(64));
        assert_eq!(between((1i64 << 53) + 1, (1 << 53) + 4, 0.5), (1u64 << 53) as f64 + 2.0);
    }
}
