//! Shared parts of the specs of sorts.

use bytemuck::Pod;

use super::keys::{Key, Order};
use crate::{
    Element, ElementType,
    check::{
        data::Data,
        keys::{Keys, bits, rank},
        sorted_indices,
    },
};

/// Key types of the cases.
pub(super) trait Made: Key + PartialEq + std::fmt::Debug {
    /// The element type that stands for the key type in the list of cases.
    const ELEMENT: ElementType;
    fn make(keys: Keys, n: usize) -> Vec<Self>;
    /// Number that orders keys. An order by some bits compares those bits of the number.
    fn number(self) -> u128;
    /// Number that orders equal keys of different bits in a sort in place.
    fn number_among_equals(self) -> u128;
}

macro_rules! made {
    ($($T:ty)*) => { $(
        impl Made for $T {
            const ELEMENT: ElementType = <$T as Element>::TYPE;

            fn make(keys: Keys, n: usize) -> Vec<Self> {
                keys.make(n)
            }

            fn number(self) -> u128 {
                rank(self).into()
            }

            fn number_among_equals(self) -> u128 {
                let (bits, half) = (bits(self), 1u64 << (8 * size_of::<$T>() - 1));
                match () {
                    () if !<$T as Element>::TYPE.is_float() => 0,
                    // Among zeros, -0 comes first. Among NaN, those with a sign come last, in descending order of their
                    // bits.
                    () if bits < half => 1 + u128::from(bits),
                    () if Element::is_nan(self) => u128::MAX - u128::from(bits),
                    () => 0,
                }
            }
        }
    )* };
}
made!(i8 i16 i32 i64 u8 u16 u32 u64 crate::f16 crate::bf16 f32 f64);

impl Made for u128 {
    const ELEMENT: ElementType = ElementType::U64;

    fn make(keys: Keys, n: usize) -> Vec<Self> {
        // Half of the high words have one of four values.
        let halves: (Vec<u64>, Vec<u64>) = (keys.make(n), Data::Bits.generate(n, 7));
        let high = |(x, y): (u64, u64)| if y >> 63 == 0 { y & 3 } else { y.rotate_left(20) ^ x };
        halves.0.into_iter().zip(halves.1).map(|pair| Self::from(high(pair)) << 64 | Self::from(pair.0)).collect()
    }

    fn number(self) -> u128 {
        self
    }

    fn number_among_equals(self) -> u128 {
        0
    }
}

impl Made for i128 {
    const ELEMENT: ElementType = ElementType::I64;

    fn make(keys: Keys, n: usize) -> Vec<Self> {
        u128::make(keys, n).into_iter().map(|key| key.rotate_left(3) as Self).collect()
    }

    fn number(self) -> u128 {
        self as u128 ^ 1 << 127
    }

    fn number_among_equals(self) -> u128 {
        0
    }
}

/// Order of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    Up,
    Down,
    /// Ascending by some of the bits.
    UpBy(u32, u32),
    DownBy(u32, u32),
}

impl Way {
    pub(super) fn order(self) -> Order {
        match self {
            Self::Up => Order::ascending(),
            Self::Down => Order::descending(),
            Self::UpBy(begin, end) => Order::ascending().bits(begin..end),
            Self::DownBy(begin, end) => Order::descending().bits(begin..end),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Up => "up".into(),
            Self::Down => "down".into(),
            Self::UpBy(begin, end) => format!("up by bits {begin}..{end}"),
            Self::DownBy(begin, end) => format!("down by bits {begin}..{end}"),
        }
    }

    /// Indices that sort `keys`, as from a stable argsort.
    pub(super) fn argsort<T: Made>(self, keys: &[T]) -> Vec<usize> {
        let (begin, end) = match self {
            Self::UpBy(begin, end) | Self::DownBy(begin, end) => (begin, end),
            _ => (0, 8 * size_of::<T>() as u32),
        };
        let mask = if end == begin { 0 } else { u128::MAX >> (128 - (end - begin)) };
        let flip = if matches!(self, Self::Down | Self::DownBy(..)) { u128::MAX } else { 0 };
        sorted_indices(keys.iter().map(|key| key.number().checked_shr(begin).unwrap_or(0) & mask ^ flip))
    }
}

/// Values that are their indices, truncated to their size.
pub(super) fn numbered<V: Pod>(n: usize) -> Vec<V> {
    let mut values: Vec<V> = bytemuck::zeroed_vec(n);
    for (i, value) in values.iter_mut().enumerate() {
        let number = (i as u128).wrapping_mul(0x1_0000_0001_0000_0000_0000_0000_0001).to_le_bytes();
        bytemuck::bytes_of_mut(value).copy_from_slice(&number[..size_of::<V>()]);
    }
    values
}
