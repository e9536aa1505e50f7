//! Keys, which lie in several ways.

use super::{data::Data, sorted_indices};
use crate::Element;

/// How keys lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    As(Data),
    /// Two values.
    Two,
    Sorted,
    Reversed,
    /// Up, then down again.
    Pipe,
    /// The k-th value with a share of 1/k.
    Zipf,
    /// Zeros and NaN of both signs, infinities.
    Signs,
    /// All alike but for bits of one byte, and of two.
    Byte,
    Bytes,
    /// Those of [`clustered`].
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
                    let ranks: Vec<u64> = keys.iter().map(|&key| rank(key)).collect();
                    keys = sorted_indices(n, &|a, b| ranks[b].cmp(&ranks[a])).into_iter().map(|i| keys[i]).collect();
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

    /// A key by some bits.
    fn one<T: Element>(self, bits: u64) -> T {
        let high = 8 * (size_of::<T>() as u32 - 1);
        T::from_bits_lossy(match self {
            Self::Two => [0x1112_1314_1516_1718, 0x9192_9394_9596_9718][(bits & 1) as usize],
            Self::Signs => {
                // A NaN, infinity and zero, with either sign.
                let half = u64::MAX >> (64 - 8 * size_of::<T>()) >> 1;
                [half, self::bits(T::HIGHEST) & half, 0][(bits % 3) as usize] | ((bits >> 7 & 1) * (half + 1))
            }
            // The values up to x have a share of log x.
            Self::Zipf => (5.3 * bits as f64 / 2f64.powi(8 * size_of::<T>() as i32)).exp() as u64,
            Self::Byte => {
                let shift = (high / 2) & !7;
                0x2122_2324_2526_2728 & !(0xff << shift) | (bits & 0xff) << shift
            }
            _ => 0x2122_2324_2526_2728 & !0xff & !(0xff << high) | bits & 0xff | (bits & 0x7f) << high,
        })
    }
}

/// A key of clusters with the same higher digits: of any 256 neighbours 16 are below the last key of their cluster, which the
/// next 16 have, and 248 below the last cluster. Bounds round these ranks lie within clusters.
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

/// A key's bits.
pub(crate) use oclprim::internals::data::bits;

/// A number that rises with the key: of floats its distance from zero, on either side; NaN are beyond infinity.
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
    let ranks: Vec<u64> = keys.iter().map(|&key| rank(key)).collect();
    sorted_indices(keys.len(), &|a, b| ranks[a].cmp(&ranks[b])).into_iter().map(|i| keys[i]).collect()
}
