//! Floats that are hard to add: chosen against the kernels of exact sums.

use super::{
    data::{Data, Rng},
    keys::bits,
};
use crate::{Element, ElementType};

/// Summands that are hard to add. Kernels of exact sums add up some chunks in two or three parts: `cl/reduce_exact.cl` splits
/// each number into multiples of a unit, which are its first part, and a rest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hard {
    /// Finite numbers with random bits.
    AllExponents,
    /// Numbers of all exponents, their negatives, and a few small numbers.
    Cancelling,
    /// A number and half of its last place, and a third number below both; all others are 0.
    Tie(Third),
    /// The smallest exponents.
    Subnormal,
    /// Numbers whose partial sums leave the range.
    Overflowing,
    /// Runs of numbers with similar exponents, each run anywhere in the range, then one number for each exponent, in
    /// descending order.
    Levels,
    /// Large numbers of one exponent, and small numbers this many binades below it. The large parts cancel, and the
    /// lowest bits remain.
    Spread(i32),
    /// As `Spread`, for chunks of 16 numbers in parts. The rests of the large numbers have one sign and add up.
    Parts(i32),
    /// Equal numbers with a full significand, then their negatives. Their exponent is this far below the largest one. A
    /// chunk's sum may leave the range.
    Top(u32),
    /// Exponents that rise by one for every 1,024 numbers.
    Rising,
    /// Factors of products. Most products are near half a unit of the first parts, and a few are `2 * spread` binades
    /// lower.
    Halves(i32),
    /// Only -0.
    MinusZeros,
    /// -0 and one +0.
    Zeros,
    /// Ones among zeros, and one infinity.
    Infinite,
    /// Infinities of both signs.
    BothInfinite,
    /// Factors whose products have errors that are subnormal. The products of both halves cancel, except for the last
    /// places.
    SmallFactors,
    /// A product that equals half of the least positive number, and a third number below it.
    HalfLeast(Third),
}

/// The sign of a third number, which breaks a tie unless it is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Third {
    Zero,
    Plus,
    Minus,
}

/// The bits of a significand, and the bits of infinity.
pub(crate) fn format_of<T: Element>() -> (i32, u64) {
    match T::TYPE {
        ElementType::F16 => (11, 0x7c00),
        ElementType::Bf16 => (8, 0x7f80),
        ElementType::F32 => (24, 0x7f80_0000),
        _ => (53, 0x7ff << 52),
    }
}

/// A float type, for code that is compiled once for all types.
struct Format {
    precision: i32,
    infinity: u64,
    sign: u64,
    /// The bits of the nearest number.
    bits: fn(f64) -> u64,
    value: fn(u64) -> f64,
}

impl Hard {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Spread(spread) => format!("spread {spread}"),
            Self::Parts(spread) => format!("parts {spread}"),
            Self::Top(below) => format!("top {below}"),
            Self::Halves(spread) => format!("halves {spread}"),
            Self::Tie(third) => format!("tie {third:?}").to_lowercase(),
            Self::HalfLeast(third) => format!("half least {third:?}").to_lowercase(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// All sets for a type. The spreads are around the bounds of kernels for every length of a chunk.
    pub(crate) fn all<T: Element>() -> Vec<Self> {
        let mut all = vec![
            Self::AllExponents,
            Self::Cancelling,
            Self::Tie(Third::Zero),
            Self::Tie(Third::Plus),
            Self::Tie(Third::Minus),
            Self::Subnormal,
            Self::Overflowing,
            Self::Levels,
            Self::Rising,
            Self::MinusZeros,
            Self::Zeros,
            Self::Infinite,
            Self::BothInfinite,
        ];
        // The bounds are 53 - p - k for chunks of 2^k elements in f64, with k from 4 to 7. For sums of 16 f32 in two
        // and in three f32 registers, they are 17 and 30. Sums in three registers are exact up to 38. For
        // f64 in two registers, the bound is 54 - 2 k.
        let (precision, _) = format_of::<T>();
        match precision {
            11 => {}
            53 => all.extend([30, 100, 160].map(Self::Spread).into_iter().chain([40, 41, 46, 47, 48].map(Self::Parts))),
            _ => all.extend((46 - precision..=50 - precision).map(Self::Spread)),
        }
        if precision == 24 {
            all.extend([17, 18, 30, 31, 38, 39].map(Self::Parts));
            all.extend((4..=8).map(Self::Top));
        }
        all
    }

    pub(crate) fn generate<T: Element>(self, n: usize, seed: u64) -> Vec<T> {
        let (precision, infinity) = format_of::<T>();
        let format = Format {
            precision,
            infinity,
            sign: 1 << (8 * size_of::<T>() - 1),
            bits: |x| bits(T::from_f64(x)),
            value: |bits| T::from_bits_lossy(bits).to_f64(),
        };
        let mut x = Vec::with_capacity(n);
        for bits in self.bits(n, seed, &format) {
            x.push(T::from_bits_lossy(bits));
        }
        x
    }

    /// The bits of the numbers, compiled once for all types.
    fn bits(self, n: usize, seed: u64, format: &Format) -> Vec<u64> {
        let mut rng = Rng::new(seed);
        let Format { precision, infinity, sign, bits, value } = *format;
        // Exact if the type has the number.
        let scaled = |size: i64, exponent: i32| {
            let first = exponent / 2;
            bits(size as f64 * 2f64.powi(first) * 2f64.powi(exponent - first))
        };
        let finite = |rng: &mut Rng| (rng.next() % infinity) | (rng.next() & sign);
        let mut x: Vec<u64> = match self {
            Self::AllExponents => (0..n).map(|_| finite(&mut rng)).collect(),
            Self::Cancelling => {
                let half: Vec<u64> = (0..n / 2).map(|_| finite(&mut rng)).collect();
                let mut x: Vec<u64> = half.iter().flat_map(|&x| [x, x ^ sign]).collect();
                x.resize(n, 3);
                x.iter_mut().step_by(257).for_each(|x| *x = rng.next() % (infinity / 4));
                x
            }
            Self::Tie(third) => {
                let base = infinity / 2 + (rng.next() & 0xff);
                let place = value(base + 1) - value(base);
                let least = [0, 1, 1 | sign][third as usize];
                let mut x = vec![0; n];
                [base, bits(place / 2.0), least]
                    .iter()
                    .zip(x.iter_mut().step_by(n / 3 + 1))
                    .for_each(|(&value, x)| *x = value);
                x
            }
            Self::SmallFactors => {
                // Around the square root of the least positive number.
                let near = infinity / 4 - (infinity / 256);
                (0..n).map(|_| (near + rng.next() % (infinity / 256)) | (rng.next() & sign)).collect()
            }
            Self::HalfLeast(_) => vec![0; n],
            Self::Subnormal => (0..n).map(|_| (rng.next() % (3 << (precision - 1))) | (rng.next() & sign)).collect(),
            Self::Overflowing => (0..n).map(|i| (infinity - 1) | if i % 3 == 1 { sign } else { 0 }).collect(),
            Self::Levels => {
                let fields = infinity >> (precision - 1);
                let field_bits = |field: u64, rng: &mut Rng| {
                    let fraction = rng.next() % (1 << (precision - 1));
                    (field << (precision - 1)) | fraction | (rng.next() & sign)
                };
                let ramp = (fields as usize).min(n / 4);
                let mut level = 0;
                let mut x = Vec::with_capacity(n);
                for i in 0..n - ramp {
                    if i % 1024 == 0 {
                        level = 1 + rng.next() % (fields - 1);
                    }
                    let field = (level + rng.next() % 20).min(fields - 1);
                    x.push(field_bits(field, &mut rng));
                }
                x.extend((0..ramp as u64).map(|i| field_bits(fields - 1 - i % fields, &mut rng)));
                x
            }
            Self::Spread(spread) => {
                // One unit of the small numbers.
                let unit = -spread - precision + 1;
                let (large, small) = (scaled((1 << precision) - 1, 1 - precision), 1i64 << (precision - 1));
                let of_half = |i: usize, large: u64, small: u64| if i.is_multiple_of(16) { small } else { large };
                let x = (0..n / 2).map(|i| of_half(i, large, scaled(small + 1, unit)));
                let x = x.chain((0..n / 2).map(|i| of_half(i, large ^ sign, scaled(-small, unit))));
                x.chain((!n.is_multiple_of(2)).then_some(0)).collect()
            }
            Self::Top(below) => {
                let large = infinity - 1 - (u64::from(below) << (precision - 1));
                (0..n).map(|i| if i < n / 2 { large } else { large | sign }).collect()
            }
            Self::Parts(spread) => {
                // Exponents: the last bit of a large number, the unit of first parts, and the last bit of a small number.
                let (last, first, unit) = (1 - precision, 5 - precision, -spread - precision + 1);
                let power = |exponent: i32| 2f64.powi(exponent);
                let large = |_| {
                    let units = (rng.next() % 1000) as f64;
                    bits(1.0 + units * power(first) + power(first - 1) - power(last))
                };
                let large: Vec<u64> = (0..n / 2).map(large).collect();
                let small = 1i64 << (precision - 1);
                // One small number in each chunk, which has 4 loads of 4 numbers. There are 64 work-items.
                let of_half = |i: usize, large: u64, small: u64| {
                    if i % 1024 < 256 && i.is_multiple_of(4) { small } else { large }
                };
                let x = large.iter().enumerate().map(|(i, &x)| of_half(i, x, scaled(small + 1, unit)));
                let x = x.chain(large.iter().enumerate().map(|(i, &x)| of_half(i, x ^ sign, scaled(-small, unit))));
                x.chain((!n.is_multiple_of(2)).then_some(0)).collect()
            }
            Self::Rising => (0..n)
                .map(|i| {
                    let fraction = (rng.next() % (1 << (precision - 1))) as i64;
                    // `f16` has the fewest exponents.
                    let exponent = (i / 1024 % 20) as i32 - if precision == 11 { 5 } else { 0 };
                    let size = fraction | 1 << (precision - 1);
                    scaled(if rng.next() & 3 == 0 { -size } else { size }, exponent + 1 - precision)
                })
                .collect(),
            Self::Halves(spread) => {
                let one = |exponent: i32| scaled(1, exponent);
                let near = scaled((1 << precision) - 1, 1 - precision - 26);
                // Each of 64 work-items loads four numbers at a time, so a row has 256. A chunk has two loads.
                (0..n)
                    .map(|i| match (i % (n / 2).max(1) % 4, i % (n / 2).max(1) % 512 / 256, i < n / 2) {
                        (0, 0, _) => one(0),
                        (0, 1, true) => scaled((1 << (precision - 1)) + 1, 1 - precision - 25 - spread),
                        (0, 1, false) => one(-25 - spread),
                        _ => near,
                    })
                    .collect()
            }
            Self::MinusZeros | Self::Zeros => vec![sign; n],
            Self::Infinite | Self::BothInfinite => (0..n).map(|i| if i % 3 == 0 { bits(1.0) } else { 0 }).collect(),
        };
        if n > 0 {
            let (first, second) = (n / 3, n - 1 - n / 3);
            match self {
                Self::Zeros => x[first] = 0,
                Self::Infinite => x[first] = infinity | (seed << 7 & sign),
                Self::BothInfinite => (x[second], x[first]) = (infinity | sign, infinity),
                _ => {}
            }
        }
        x
    }
}

/// Summands of a benchmark.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    /// Uniform numbers.
    Uniform,
    /// Numbers whose sum has a condition number of about 10^32. Nearly all cancel in pairs, at exponents over 53
    /// binades.
    Condition32,
    /// Finite numbers with random bits.
    AllExponents,
}

impl Numbers {
    pub(crate) fn generate<T: Element>(self, n: usize) -> Vec<T> {
        match self {
            Self::Uniform => Data::Random.generate(n, n as u64),
            Self::AllExponents => Hard::AllExponents.generate(n, n as u64),
            Self::Condition32 => {
                let mut rng = Rng::new(n as u64);
                let mut x: Vec<T> = Data::Random.generate(n, n as u64);
                for i in 0..n / 2 {
                    let scaled = T::from_f64(x[i].to_f64() * 2f64.powi((rng.next() % 53) as i32));
                    (x[i], x[n - 1 - i]) = (scaled, T::from_f64(-scaled.to_f64()));
                }
                x.iter_mut().step_by(1009).for_each(|x| *x = T::ONE);
                x
            }
        }
    }
}
