//! Data sets of keys.

use super::{data::Data, sorted_indices};
use crate::Element;

/// A data set of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    As(Data),
    /// Two values.
    Two,
    Sorted,
    Reversed,
    /// Ascending, then descending.
    Pipe,
    /// The k-th value has a share proportional to 1/k.
    Zipf,
    /// Zeros, NaN and infinities of both signs.
    Signs,
    /// Keys that differ in one byte only.
    Byte,
    /// Keys that differ in two bytes only.
    Bytes,
    /// Keys by [`clustered`].
    Clusters,
}

impl Keys {
    pub(crate) const ALL: [Self; 14] = [
        Self::As(Data::Random),
        Self::As(Data::Bits),
        Self::As(Data::Constant),
        Self::As(Data::Extremes),
        Self::As(Data::Nan),
        Self::Two,
        Self::Sorted,
        Self::Reversed,
        Self::Pipe,
        Self::Zipf,
        Self::Signs,
        Self::Byte,
        Self::Bytes,
        Self::Clusters,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::As(data) => data.name(),
            Self::Two => "two values",
            Self::Sorted => "sorted",
            Self::Reversed => "reversed",
            Self::Pipe => "organ pipe",
            Self::Zipf => "Zipf",
            Self::Signs => "signs",
            Self::Byte => "one byte",
            Self::Bytes => "two bytes",
            Self::Clusters => "clusters",
        }
    }

    pub(crate) fn make<T: Element>(self, n: usize) -> Vec<T> {
        let Self::As(data) = self else {
            let mut keys: Vec<T> = Data::Bits.generate(n, n as u64);
            match self {
                Self::Clusters => {
                    keys.iter_mut().enumerate().for_each(|(i, key)| *key = T::from_bits_lossy(clustered(i)))
                }
                Self::Sorted => keys = by_rank(&keys),
                Self::Reversed => {
                    let falling = sorted_indices(keys.iter().map(|&key| (!rank(key)).into()));
                    keys = falling.into_iter().map(|i| keys[i]).collect();
                }
                Self::Pipe => {
                    keys = by_rank(&keys);
                    keys[n / 2..].reverse();
                }
                _ => keys.iter_mut().for_each(|key| *key = self.one(bits(*key))),
            }
            return keys;
        };
        data.generate(n, n as u64)
    }

    /// Key made of random bits.
    fn one<T: Element>(self, bits: u64) -> T {
        let high = 8 * (size_of::<T>() as u32 - 1);
        T::from_bits_lossy(match self {
            Self::Two => [0x1112_1314_1516_1718, 0x9192_9394_9596_9718][(bits & 1) as usize],
            Self::Signs => {
                // A NaN, an infinity or a zero, with either sign.
                let half = u64::MAX >> (64 - 8 * size_of::<T>()) >> 1;
                [half, self::bits(T::HIGHEST) & half, 0][(bits % 3) as usize] | ((bits >> 7 & 1) * (half + 1))
            }
            // The share of the values up to x is proportional to log x.
            Self::Zipf => (5.3 * bits as f64 / 2f64.powi(8 * size_of::<T>() as i32)).exp() as u64,
            Self::Byte => {
                let shift = (high / 2) & !7;
                0x2122_2324_2526_2728 & !(0xff << shift) | (bits & 0xff) << shift
            }
            _ => 0x2122_2324_2526_2728 & !0xff & !(0xff << high) | bits & 0xff | (bits & 0x7f) << high,
        })
    }
}

/// Key number `i` of keys in clusters; the keys of a cluster share their higher digits. In any 256 consecutive keys,
/// the 16 smallest are below 1040, and the next 16 in ascending order equal 1040. The 8 largest form the last cluster.
/// So if a top-k selection samples its bound near rank 16 or 248 of 256, the bound lies within a cluster.
pub(crate) fn clustered(i: usize) -> u64 {
    let number = i as u64 * 151 % 256;
    match number {
        0..13 => number,
        13..16 => 1024 + number,
        16..32 => 1024 + 16,
        32..248 => 2048 + number,
        _ => 4096 + number,
    }
}

/// Bits of a key.
pub(crate) use oclprim::internals::data::bits;

/// Number that orders keys: `rank(a) < rank(b)` if `a` sorts before `b`. Zeros of both signs have one rank, and NaN
/// rank after infinity.
pub(crate) fn rank<T: Element>(key: T) -> u64 {
    let (infinity, half) = (bits(T::HIGHEST), 1u64 << (8 * size_of::<T>() - 1));
    let bits = bits(key);
    match T::TYPE {
        _ if key.is_nan() => half + infinity + 1,
        ty if ty.is_float() && bits >= half => half - (bits - half),
        ty if ty.is_float() => half + bits,
        ty if ty.is_signed() && bits >= half => bits - half,
        ty if ty.is_signed() => bits + half,
        _ => bits,
    }
}

/// The keys in ascending order.
pub(crate) fn by_rank<T: Element>(keys: &[T]) -> Vec<T> {
    sorted_indices(keys.iter().map(|&key| rank(key).into())).into_iter().map(|i| keys[i]).collect()
}
