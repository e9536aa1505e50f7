//! The order of keys, and the passes that sort them.

use std::ops::Range;

use bytemuck::Pod;

use crate::{ElementType, Error, Result};

/// Properties of a key type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    name: &'static str,
    bytes: usize,
    signed: bool,
    /// The bits of infinity; 0 where the type has none.
    infinity: u64,
}

impl Kind {
    const fn of(element: ElementType) -> Self {
        let infinity = match element.infinity() {
            Some(bits) => bits,
            None => 0,
        };
        Self { name: element.name(), bytes: element.size(), signed: element.is_signed(), infinity }
    }
}

mod sealed {
    pub trait Sealed {
        const KIND: super::Kind;
    }
}

#[diagnostic::do_not_recommend]
impl<T: crate::Element> sealed::Sealed for T {
    const KIND: Kind = Kind::of(T::TYPE);
}
impl sealed::Sealed for u128 {
    const KIND: Kind = Kind { name: "u128", bytes: 16, signed: false, infinity: 0 };
}
impl sealed::Sealed for i128 {
    const KIND: Kind = Kind { name: "i128", bytes: 16, signed: true, infinity: 0 };
}

/// Type of a sort key: an [`Element`](crate::Element), `u128` or `i128`. The trait is sealed.
///
/// A 16-byte key can combine several parts, with the most significant part in the highest bits:
///
/// ```
/// use oclprim::{Buffer, Device, Order};
///
/// let parts = [(7u32, 0.5f32), (3, -2.0), (7, -1.0)];
/// let key = |(group, x): (u32, f32)| {
///     let bits = x.to_bits();
///     u128::from(group) << 32 | u128::from(if bits >> 31 == 0 { bits | 1 << 31 } else { !bits })
/// };
/// let order = Order::ascending().bits(0..64);
/// let places: Buffer<u32> = Device::best()?.argsort(&parts.map(key), order)?;
/// assert_eq!(places.to_vec()?, [1, 2, 0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of sort keys",
    label = "expected an integer type, `f16`, `bf16`, `f32` or `f64`",
    note = "use `u8` for `bool`, `u64` for `usize`, and `i64` for `isize`",
    note = "for structs by a field, sort the field with the structs as values: `x.map(map!(|p: Particle| p.cell)).with(&x)`",
    note = "for other orders of plain types, write `#[order]`, or call `Device::sort` with an `op::Less::of_struct`"
)]
pub trait Key: Pod + Send + Sync + sealed::Sealed {}
#[diagnostic::do_not_recommend]
impl<T: Pod + Send + Sync + sealed::Sealed> Key for T {}

/// Direction of a sort, and the bits of the keys that it compares.
///
/// Floats are ordered as in NumPy: -0 equals 0, and all NaNs, of either sign, are equal and larger than infinity.
/// [`Order::total_order`] distinguishes both zeros, and NaNs by their bits. Integers have only one order.
///
/// ```
/// use oclprim::{Device, Order};
///
/// let device = Device::best()?;
/// let x = device.upload(&[0x21u8, 0x12, 0x11, 0x22])?;
/// let sorted = |order| device.sort(&x, order)?.to_vec();
/// assert_eq!(sorted(Order::ascending())?, [0x11, 0x12, 0x21, 0x22]);
/// assert_eq!(sorted(Order::descending())?, [0x22, 0x21, 0x12, 0x11]);
/// // By the low four bits only: equal keys keep their order.
/// assert_eq!(sorted(Order::ascending().bits(0..4))?, [0x21, 0x11, 0x12, 0x22]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    descending: bool,
    total: bool,
    bits: Option<Range<u32>>,
}

impl Order {
    /// From the smallest key to the largest, by all bits. NaNs come last.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// assert_eq!(Device::best()?.sort(&[3, 1, 2], Order::ascending())?.to_vec()?, [1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn ascending() -> Self {
        Self { descending: false, total: false, bits: None }
    }

    /// From the largest key to the smallest, by all bits. NaNs come first. Equal keys keep their order.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// assert_eq!(Device::best()?.sort(&[3, 1, 2], Order::descending())?.to_vec()?, [3, 2, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn descending() -> Self {
        Self { descending: true, total: false, bits: None }
    }

    /// Orders floats by the total order of IEEE 754, as [`f32::total_cmp`]: -NaN, -inf, …, -0, 0, …, inf, NaN. NaNs are
    /// ordered by their payload. The order of integers does not change.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let (device, x) = (Device::best()?, [0.0f32, -0.0, -f32::NAN, -1.0]);
    /// let places = |order| device.argsort::<_, u32, _>(&x, order)?.to_vec();
    /// assert_eq!(places(Order::ascending())?, [3, 0, 1, 2]);
    /// assert_eq!(places(Order::ascending().total_order())?, [2, 3, 1, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn total_order(self) -> Self {
        Self { total: true, ..self }
    }

    /// Compares only these bits; bit 0 is the least significant one. Fewer bits take fewer passes.
    ///
    /// The bits are those of a number that the order assigns to each key. A larger key has a larger number:
    /// - The number of an unsigned integer is its value. The number of a signed integer is its bits with the sign bit inverted.
    /// - The number of a float `x` of w bits is 2^(w - 1) plus the count of values `v` with `0 < v <= x`. For a negative `x` it
    ///   is 2^(w - 1) minus the count of values `v` with `x <= v < 0`. The highest bit is set for both zeros, for positive
    ///   values and for NaN. NaN has infinity's number plus one.
    /// - In the [total order](Order::total_order), the number of a float with a clear sign bit is its bits with the
    ///   sign bit inverted. The number of a float with a set sign bit is its bits, all inverted.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// // By the sign only, which is the highest bit.
    /// let sorted = Device::best()?.sort(&[3i16, -1, 2, -2], Order::ascending().bits(15..16))?;
    /// assert_eq!(sorted.to_vec()?, [-1, -2, 3, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn bits(self, bits: Range<u32>) -> Self {
        Self { bits: Some(bits), ..self }
    }
}

/// One digit of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digit {
    pub(crate) shift: u32,
    pub(crate) mask: u32,
}

impl Digit {
    /// The value of this digit in a number.
    #[inline]
    pub(crate) fn of(self, bits: u64) -> usize {
        (bits >> self.shift) as usize & self.mask as usize
    }
}

/// The kind of number by which an order compares keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// The key's bits, some of them inverted.
    Bits,
    /// The key's rank: the number of values of its type below it.
    Ranks,
    /// The rank plus a bias that makes the highest bit the sign, as [`Order::bits`] documents. Used if the order
    /// compares only some of the bits.
    BiasedRanks,
}

/// The order of keys, independent of their type. The order compares bits of a number that is made from a key's bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Bytes of a key.
    pub bytes: usize,
    /// Mask of the bits to invert in keys whose highest bit is set; for `floats`, the bits of infinity.
    pub flip: u64,
    /// Mask of the bits to invert in all keys afterwards; for `floats`, in their ranks.
    pub always: u128,
    /// The bits that the order compares.
    pub bits: Range<u32>,
    /// True if the keys are floats whose zeros are equal, and whose NaNs are equal.
    pub floats: bool,
}

impl Keys {
    pub(crate) fn of(element: ElementType, order: &Order) -> Result<Self> {
        Self::of_kind(Kind::of(element), order)
    }

    /// The order of keys of type `K`.
    pub(super) fn new<K: Key>(order: &Order) -> Result<Self> {
        Self::of_kind(K::KIND, order)
    }

    fn of_kind(Kind { name, bytes, signed, infinity }: Kind, order: &Order) -> Result<Self> {
        let width = 8 * bytes as u32;
        let ones = u128::MAX >> (128 - width);
        let floats = infinity != 0 && !order.total;
        let sign = if signed && !floats { 1 << (width - 1) } else { 0 };
        // No float has more than 64 bits.
        let flip = match infinity {
            0 => 0,
            infinity if floats => infinity,
            _ => (ones ^ sign) as u64,
        };
        let always = if order.descending { sign ^ ones } else { sign };
        let bits = order.bits.clone().unwrap_or(0..width);
        if bits.start > bits.end || bits.end > width {
            return Err(Error::invalid(format!("bits {bits:?} are not a range of the {width} bits of {name}")));
        }
        Ok(Self { bytes, flip, always, bits, floats })
    }

    /// Mask of the compared bits of the numbers.
    pub(crate) fn mask(&self) -> u128 {
        let width = self.bits.end - self.bits.start;
        if width == 0 { 0 } else { u128::MAX >> (128 - width) << self.bits.start }
    }

    /// The number of a key, before [`mask`](Self::mask) is applied.
    #[inline]
    pub(crate) fn ordered(&self, key: u64) -> u64 {
        let negative = (key >> (8 * self.bytes - 1)).wrapping_neg();
        if self.floats {
            // As in `cl/lib/floats.cl` and `cl/lib/keys.cl`.
            let (high, always) = (self.high(), self.always as u64);
            let rank = ((key & (high - 1)) ^ negative).wrapping_sub(negative).wrapping_add(self.flip);
            let bias = if self.numbers() == Numbers::BiasedRanks { high - self.flip } else { 0 };
            (rank.min(2 * self.flip + 1) ^ always).wrapping_add((bias ^ always).wrapping_sub(always))
        } else {
            key ^ (negative & self.flip) ^ self.always as u64
        }
    }

    /// The number of a 16-byte key.
    #[inline]
    pub(crate) fn ordered_wide(&self, key: u128) -> u128 {
        key ^ self.always
    }

    /// A number that only this key has. A larger key has a larger number; in a descending order, a smaller one. For
    /// `floats`, zeros are also ordered by sign, and NaNs by their bits.
    #[inline]
    pub(crate) fn distinct(&self, key: u64) -> u64 {
        if !self.floats {
            return self.ordered(key);
        }
        let negative = (key >> (8 * self.bytes - 1)).wrapping_neg();
        let total = key ^ ((negative | self.high()) & self.ones());
        // The numbers of negative NaNs wrap around to the end, after those of positive NaNs.
        (total.wrapping_sub(self.high() - 1 - self.flip) & self.ones()) ^ self.always as u64
    }

    /// The key whose [`distinct`](Self::distinct) number is `number`.
    #[inline]
    pub(crate) fn of_distinct(&self, number: u64) -> u64 {
        let bits = number ^ self.always as u64;
        if !self.floats {
            let negative = (bits >> (8 * self.bytes - 1)).wrapping_neg();
            return bits ^ (negative & self.flip);
        }
        let total = bits.wrapping_add(self.high() - 1 - self.flip) & self.ones();
        let negative = (total >> (8 * self.bytes - 1)).wrapping_sub(1);
        total ^ ((negative | self.high()) & self.ones())
    }

    /// The numbers that several keys share: those of zeros and of NaNs.
    pub(crate) fn shared(&self) -> impl Iterator<Item = u64> {
        let nan = self.flip | 1;
        [0, nan].into_iter().filter(|_| self.floats).map(|key| self.ordered(key))
    }

    /// The highest bit of a key of up to 8 bytes.
    #[inline]
    fn high(&self) -> u64 {
        1 << (8 * self.bytes - 1)
    }

    /// All bits of a key of up to 8 bytes.
    #[inline]
    fn ones(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes)
    }

    /// Returns whether the order compares all bits.
    pub(crate) fn whole(&self) -> bool {
        self.bits == (0..8 * self.bytes as u32)
    }

    /// The kind of the keys' numbers.
    #[inline]
    pub(crate) fn numbers(&self) -> Numbers {
        match self.floats {
            false => Numbers::Bits,
            true if self.whole() => Numbers::Ranks,
            true => Numbers::BiasedRanks,
        }
    }

    /// Returns whether each key is its own number.
    pub(crate) fn plain(&self) -> bool {
        self.flip == 0 && self.always == 0
    }

    /// The digits, least significant first. An empty range of bits has one digit, which is 0 for all keys.
    pub(crate) fn digits(&self) -> Vec<Digit> {
        if self.bits.is_empty() {
            return vec![Digit { shift: 0, mask: 0 }];
        }
        let digit = |shift| Digit { shift, mask: (1 << (self.bits.end - shift).min(8)) - 1 };
        self.bits.clone().step_by(8).map(digit).collect()
    }
}

/// Memory that holds keys: the input, the output or a spare buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    In,
    Out,
    Spare,
}

/// Source and destination of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) last: bool,
}

/// Source and destination of each of `count` passes; the last pass writes the output.
pub(crate) fn route(count: usize) -> impl Iterator<Item = Pass> {
    let to = move |pass: usize| if (count - pass) % 2 == 1 { Place::Out } else { Place::Spare };
    (0..count).map(move |pass| Pass {
        from: if pass == 0 { Place::In } else { to(pass - 1) },
        to: to(pass),
        last: pass + 1 == count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pass_writes_the_output() {
        use Place::{In, Out, Spare};
        let ways = |count| route(count).map(|pass| (pass.from, pass.to)).collect::<Vec<_>>();
        assert_eq!(ways(1), [(In, Out)]);
        assert_eq!(ways(2), [(In, Spare), (Spare, Out)]);
        assert_eq!(ways(3), [(In, Out), (Out, Spare), (Spare, Out)]);
        assert!(route(8).all(|pass| pass.from != pass.to && pass.last == (pass == route(8).last().unwrap())));
    }

    #[test]
    fn digits_cover_the_bits() {
        let digits = |bits| Keys::of(ElementType::U32, &Order::ascending().bits(bits)).unwrap().digits();
        assert_eq!(digits(0..32).len(), 4);
        assert_eq!(digits(3..14), [Digit { shift: 3, mask: 255 }, Digit { shift: 11, mask: 7 }]);
        assert_eq!(digits(32..32), [Digit { shift: 0, mask: 0 }]);
        assert_eq!(Keys::new::<u128>(&Order::ascending()).unwrap().digits().len(), 16);
    }

    #[test]
    fn ordered_numbers_rise_with_keys() {
        let rises = |element, keys: &[u64], total: bool| {
            for (order, rises) in [(Order::ascending(), true), (Order::descending(), false)] {
                let keys_of = Keys::of(element, &if total { order.total_order() } else { order }).unwrap();
                let numbers: Vec<u64> = keys.iter().map(|&key| keys_of.ordered(key)).collect();
                assert!(keys.iter().all(|&key| keys_of.of_distinct(keys_of.distinct(key)) == key), "{element}");
                assert!(numbers.iter().all(|&number| number <= u64::MAX >> (64 - 8 * element.size())), "{element}");
                assert!(numbers.windows(2).all(|pair| (pair[0] < pair[1]) == rises), "{element}: {numbers:x?}");
                let numbers: Vec<u64> = keys.iter().map(|&key| keys_of.distinct(key)).collect();
                assert!(numbers.windows(2).all(|pair| (pair[0] < pair[1]) == rises), "{element}: {numbers:x?}");
            }
        };
        rises(ElementType::U8, &[0, 1, 127, 128, 255], false);
        rises(ElementType::I16, &[0x8000, 0xffff, 0, 1, 0x7fff], false);
        let floats = [-f32::NAN, f32::NEG_INFINITY, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::INFINITY, f32::NAN];
        rises(ElementType::F32, &floats.map(|x| u64::from(x.to_bits())), true);
        rises(ElementType::F64, &floats.map(|x| f64::from(x).to_bits()), true);
        let floats = [f32::NEG_INFINITY, -1.0, -1e-45, 0.0, 1e-45, 1.0, f32::INFINITY, f32::NAN];
        rises(ElementType::F32, &floats.map(|x| u64::from(x.to_bits())), false);
        rises(ElementType::F64, &floats.map(|x| f64::from(x).to_bits()), false);
        for (order, rises) in [(Order::ascending(), true), (Order::descending(), false)] {
            let keys = Keys::new::<i128>(&order).unwrap();
            let numbers = [i128::MIN, -1, 0, 1, i128::MAX].map(|key| keys.ordered_wide(key as u128));
            assert!(numbers.windows(2).all(|pair| (pair[0] < pair[1]) == rises), "{numbers:x?}");
        }
    }

    #[test]
    fn ordered_numbers_of_every_f16_follow_the_float_order() {
        for order in [Order::ascending(), Order::descending()] {
            let keys = Keys::of(ElementType::F16, &order).unwrap();
            let mut all: Vec<u16> = (0..=u16::MAX).collect();
            all.sort_by_key(|&bits| keys.distinct(bits.into()));
            let number = |bits: u16| keys.ordered(bits.into());
            let float = half::f16::from_bits;
            for pair in all.windows(2) {
                let (a, b) = if order == Order::ascending() { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
                let equal = float(a) == float(b) || float(a).is_nan() && float(b).is_nan();
                let below = float(a) < float(b) || !float(a).is_nan() && float(b).is_nan();
                assert!(equal != below, "{a:x} {b:x}");
                assert_eq!(number(pair[0]) == number(pair[1]), equal, "{a:x} {b:x}");
                assert_eq!(number(pair[0]) < number(pair[1]), below, "{a:x} {b:x}");
            }
            assert!(all.iter().all(|&bits| keys.of_distinct(keys.distinct(bits.into())) == u64::from(bits)));
        }
    }

    #[test]
    fn invalid_bit_ranges_are_refused() {
        let text = |bits| Keys::of(ElementType::I16, &Order::ascending().bits(bits)).unwrap_err().to_string();
        assert_eq!(text(0..17), "bits 0..17 are not a range of the 16 bits of i16");
        #[allow(clippy::reversed_empty_ranges, reason = "it is what is refused")]
        let reversed = text(4..3);
        assert_eq!(reversed, "bits 4..3 are not a range of the 16 bits of i16");
    }
}
