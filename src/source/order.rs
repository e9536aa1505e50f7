//! Sources in a random order, and tuples of neighbours.

use std::ops::Range;

use super::{
    Source, Values, finite,
    load::{Component, Index, Text},
};
use crate::{Result, rng::Rng, runtime::opencl::ClDevice};

/// Elements in a random order; see [`Source::shuffled`].
#[derive(Clone, Copy, Debug)]
pub struct Shuffled<S> {
    pub(super) source: S,
    pub(super) seed: u64,
}

/// The keyed bijection on `0..n` of `cl/lib/shuffle.cl`.
#[derive(Clone, Copy, Debug)]
struct Bijection {
    n: usize,
    bits: u32,
    seed: u64,
}

impl Bijection {
    fn new(n: usize, seed: u64) -> Self {
        // Similar seeds get unrelated keys.
        let seed = Rng::new(seed).next();
        Self { n, bits: usize::BITS - n.saturating_sub(1).leading_zeros(), seed }
    }

    fn at(self, i: usize) -> usize {
        let low_bits = self.bits / 2;
        let mask = |bits: u32| ((1u64 << bits) - 1) as u32;
        let (low_mask, high_mask) = (mask(low_bits), mask(self.bits - low_bits));
        let mix = |x: u32, key: u32| {
            let x = x ^ key;
            let x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
            let x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
            x ^ x >> 16
        };
        let mut i = i as u64;
        loop {
            let (mut low, mut high) = (i as u32 & low_mask, (i >> low_bits) as u32 & high_mask);
            let (mut even, mut odd) = (self.seed as u32, (self.seed >> 32) as u32);
            for _ in 0..12 {
                high ^= mix(low, even) & high_mask;
                low ^= mix(high, odd) & low_mask;
                even = even.wrapping_add(0x9e37_79b9);
                odd = odd.wrapping_add(0xbb67_ae85);
            }
            i = u64::from(high) << low_bits | u64::from(low);
            if i < self.n as u64 {
                return i as usize;
            }
        }
    }
}

pub(super) struct ShuffledValues<V> {
    values: V,
    order: Bijection,
}

impl<V: Values> Values for ShuffledValues<V> {
    type Item = V::Item;

    #[inline]
    fn at(&self, i: usize) -> V::Item {
        self.values.at(self.order.at(i))
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = V::Item> + ExactSizeIterator {
        range.map(|i| self.at(i))
    }

    fn checked(&self) -> Result<()> {
        self.values.checked()
    }
}

impl<S: Source> Source for Shuffled<S> {
    type Item = S::Item;

    fn length(&self) -> Result<Option<usize>> {
        finite(&self.source).map(Some)
    }

    fn host(&self) -> Result<impl Values<Item = S::Item>> {
        let order = Bijection::new(finite(&self.source)?, self.seed);
        Ok(ShuffledValues { values: self.source.host()?, order })
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let order = Bijection::new(finite(&self.source)?, self.seed);
        let at = text.shuffled(index, order.n, order.bits, order.seed);
        self.source.emit(text, &at)
    }

    fn search(&self, device: &ClDevice, _: usize) -> Result<()> {
        self.source.search(device, finite(&self.source)?)
    }
}

/// Tuples of `N` neighbours; see [`Source::neighbours`].
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<S, const N: usize>(pub(super) S);

macro_rules! neighbours {
    ($($n:literal: $($item:ident $at:literal)*;)*) => {
        $(
            impl<V: Values> Values for Neighbours<V, $n> {
                type Item = ($(neighbours!(@item $item V),)*);

                #[inline]
                fn at(&self, i: usize) -> Self::Item {
                    ($(self.0.at(i + $at),)*)
                }

                #[inline]
                fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = Self::Item> + ExactSizeIterator {
                    range.map(|i| self.at(i))
                }

                fn checked(&self) -> Result<()> {
                    self.0.checked()
                }
            }

            impl<S: Source> Source for Neighbours<S, $n> {
                type Item = ($(neighbours!(@item $item S),)*);

                fn length(&self) -> Result<Option<usize>> {
                    Ok(self.0.length()?.map(|n| n.saturating_sub($n - 1)))
                }

                fn host(&self) -> Result<impl Values<Item = Self::Item>> {
                    Ok(Neighbours::<_, $n>(self.0.host()?))
                }

                fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
                    let mut all = self.0.emit(text, index)?;
                    for next in 1..$n {
                        let at = text.index(&format!("{index} + {next}"));
                        all.extend(self.0.emit(text, &at)?);
                    }
                    Ok(all)
                }

                fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
                    self.0.search(device, if n == 0 { 0 } else { n.saturating_add($n - 1) })
                }
            }
        )*
    };
    (@item $item:ident $source:ident) => { $source::Item };
}
neighbours! {
    2: a 0 b 1;
    3: a 0 b 1 c 2;
    4: a 0 b 1 c 2 d 3;
}

#[cfg(test)]
mod tests {
    use super::Bijection;

    #[test]
    fn shuffles_are_permutations() {
        for n in (0..300).chain([1023, 1024, 1025, 65_537]) {
            for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let order = Bijection::new(n, seed);
                let mut seen = vec![false; n];
                (0..n).for_each(|i| assert!(!std::mem::replace(&mut seen[order.at(i)], true), "{n}, {seed}, {i}"));
            }
        }
        // A bijection on more than 2^32 numbers stays inside them.
        let order = Bijection::new((1 << 40) + 7, 5);
        assert!((0..1000).all(|i| order.at(i << 30) < order.n));
    }

    /// Each of the 120 orders of five elements has its share of 120,000 seeds. Chi-squared has 119 degrees of freedom, so it
    /// exceeds 200 with a probability below 10^-5; the seeds are fixed.
    #[test]
    fn orders_are_equally_frequent() {
        let mut count = std::collections::HashMap::new();
        for seed in 0..120_000 {
            let order = Bijection::new(5, seed);
            *count.entry([0, 1, 2, 3, 4].map(|i| order.at(i))).or_insert(0) += 1;
        }
        assert_eq!(count.len(), 120);
        let squares = count.values().map(|&count: &i32| f64::from(count - 1000).powi(2) / 1000.0);
        assert!(squares.clone().sum::<f64>() < 200.0, "{}", squares.sum::<f64>());
    }
}
