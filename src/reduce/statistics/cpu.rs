//! Statistics on the CPU: the same tiles as in `cl/statistics.cl`, and the same merges of neighbours.

use std::ops::{Add, Mul, Sub};

use super::{WORDS, Words};
use crate::{
    Element, ElementType, Extreme, Integer, Result, bf16, element, f16, memory, parallel,
    reduce::cpu::{lanes, tile},
    with_integer,
};

/// Neighbouring lanes or elements that are processed side by side.
const ABREAST: usize = 32;

/// A float accumulator. Rust rounds divisions correctly, but OpenCL devices only those of doubles. So `f32` has its own
/// [`Self::ratio`].
pub(in crate::reduce) trait Real:
    Element<Acc = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// `part / all`, for 0 < part <= all; as in `cl/lib/moments.cl`.
    fn ratio(part: u64, all: u64) -> Self;
    /// A little less than 1: the difference exceeds the rounding errors of a lane's sum.
    const BELOW_ONE: Self;
    /// The power of two that scales elements if their squares are beyond the range.
    const DOWN: Self;
    fn is_finite(self) -> bool;
    fn word(self) -> u64;
}

impl Real for f32 {
    const BELOW_ONE: Self = 1.0 - 1.0 / (1u32 << 19) as f32;
    const DOWN: Self = f32::from_bits((127 - 82) << 23);

    #[inline]
    fn ratio(part: u64, all: u64) -> Self {
        let mut shift = part.leading_zeros();
        let mut q = (part << shift) / all;
        let bits = 64 - q.leading_zeros();
        if bits > 24 {
            q >>= bits - 24;
            shift -= bits - 24;
        }
        q as f32 * f32::from_bits((127 - shift) << 23)
    }

    #[inline]
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn word(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Real for f64 {
    const BELOW_ONE: Self = 1.0 - 1.0 / (1u64 << 48) as f64;
    const DOWN: Self = f64::from_bits((1023 - 530) << 52);

    #[inline]
    fn ratio(part: u64, all: u64) -> Self {
        part as f64 / all as f64
    }

    #[inline]
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn word(self) -> u64 {
        self.to_bits()
    }
}

/// Moments of elements, and how they join. Extremes are not among them.
pub(in crate::reduce) trait Joins: Copy + Send + Sync {
    /// Joins the moments of `n` elements with those of `m` later ones.
    fn merge(&mut self, n: u64, other: &Self, m: u64);

    /// The words of a record. `column` selects one of several columns.
    fn words(&self, column: usize) -> [u64; 5];
}

impl Joins for () {
    #[inline]
    fn merge(&mut self, _: u64, (): &Self, _: u64) {}

    fn words(&self, _: usize) -> [u64; 5] {
        [0; 5]
    }
}

/// The mean in two parts, and `m2`, the sum of squared distances to it. If that sum is beyond the range, `m2` is
/// `-sum * DOWN²`.
#[derive(Clone, Copy)]
pub(in crate::reduce) struct Spread<A> {
    mean: A,
    rest: A,
    m2: A,
}

impl<A: Real> Spread<A> {
    /// The sum of squares times `DOWN²`.
    fn scaled_down(&self) -> A {
        if self.m2 < A::ZERO { A::ZERO - self.m2 } else { self.m2 * A::DOWN * A::DOWN }
    }

    /// The moments of a lane.
    ///
    /// `mean` is close to the lane's mean. `rest` is the sum of the distances of the lane's elements to `mean`, and
    /// `m2` the sum of the squares of these distances. `part` is 1 / the number of elements.
    #[inline]
    fn of_lane<I: Iterator<Item = A>>(mean: A, rest: A, m2: A, part: A, elements: impl FnOnce() -> I) -> Self {
        if !mean.is_finite() {
            return Self { mean, rest: A::ZERO, m2: A::from_f64(f64::NAN) };
        }
        let off = rest * part;
        let m2 = m2 - rest * off;
        let m2 = if m2.is_finite() {
            // Rounding can make the difference negative.
            if m2 > A::ZERO { m2 } else { A::ZERO }
        } else {
            A::ZERO - far_squares(elements(), mean, part)
        };
        Self { mean, rest: if off.is_finite() { off } else { A::ZERO }, m2 }
    }

    /// Returns the joint moments, the distance of the means, and whether all values are within the range.
    ///
    /// `weight` is the share of `b` in all elements; `paired` is `weight` times the number of elements in `self`.
    #[inline]
    fn joined(&self, b: &Self, weight: A, paired: A) -> (Self, A, bool) {
        let a = self.mean;
        let d = b.mean - a;
        let v = d - b.mean;
        let e = (b.mean - (d - v)) - (a + v);
        let delta = d + (e + (b.rest - self.rest));
        let step = delta * weight;
        let s = a + step;
        let u = s - a;
        let error = (a - (s - u)) + (step - u);
        let tail = self.rest + error;
        let mean = s + tail;
        let w = mean - s;
        let rest = (s - (mean - w)) + (tail - w);
        let m2 = (self.m2 + b.m2) + delta * (delta * paired);
        // `&&` would keep compilers from vectorising.
        let inside = mean.is_finite() & (self.m2 >= A::ZERO) & (b.m2 >= A::ZERO) & m2.is_finite();
        (Self { mean, rest, m2 }, delta, inside)
    }

    #[inline]
    fn join(&mut self, b: &Self, weight: A, paired: A) {
        let (all, delta, inside) = self.joined(b, weight, paired);
        *self = if inside { all } else { self.joined_beyond(b, all, delta, (weight, paired)) };
    }

    /// The joint moments if a value is beyond the range, from the results of [`Self::joined`].
    #[cold]
    fn joined_beyond(&self, b: &Self, all: Self, delta: A, (weight, paired): (A, A)) -> Self {
        let (a, Self { mean, rest, .. }) = (self.mean, all);
        if a.is_finite() && b.mean.is_finite() {
            // Either the distance or the sum of squares is beyond the range.
            let down = if mean.is_finite() { delta * A::DOWN } else { b.mean * A::DOWN - a * A::DOWN };
            let m2 = A::ZERO - ((self.scaled_down() + b.scaled_down()) + down * (down * paired));
            if mean.is_finite() {
                Self { mean, rest, m2 }
            } else {
                Self { mean: a + (b.mean * weight - a * weight), rest: A::ZERO, m2 }
            }
        } else {
            // Infinities and NaN propagate as in a sum.
            Self { mean: a + b.mean, rest: A::ZERO, m2: A::from_f64(f64::NAN) }
        }
    }
}

/// The share of `m` elements in `n + m`: `m / (n + m)`.
fn weight<A: Real>(n: u64, m: u64) -> A {
    if n == m { A::from_f64(0.5) } else { A::ratio(m, n + m) }
}

impl<A: Real> Joins for Spread<A> {
    #[inline]
    fn merge(&mut self, n: u64, other: &Self, m: u64) {
        let weight = weight(n, m);
        self.join(other, weight, A::from_f64(n as f64) * weight);
    }

    fn words(&self, _: usize) -> [u64; 5] {
        [self.mean.word(), self.rest.word(), self.m2.word(), 0, 0]
    }
}

/// The exact sum, and the sum of squares modulo 2^192.
#[derive(Clone, Copy, Default)]
pub(in crate::reduce) struct Exact {
    sum: i128,
    squares: u128,
    high: u64,
}

impl Joins for Exact {
    #[inline]
    fn merge(&mut self, _: u64, other: &Self, _: u64) {
        self.sum = self.sum.wrapping_add(other.sum);
        let (squares, carry) = self.squares.overflowing_add(other.squares);
        self.squares = squares;
        self.high += other.high + u64::from(carry);
    }

    fn words(&self, _: usize) -> [u64; 5] {
        let (sum, squares) = (self.sum as u128, self.squares);
        [sum as u64, (sum >> 64) as u64, squares as u64, (squares >> 64) as u64, self.high]
    }
}

/// The number of elements in the `width` lanes from `lane` on, if `elements` elements fill rows of `all` lanes.
pub(in crate::reduce) fn in_lanes(elements: usize, all: usize, lane: usize, width: usize) -> u64 {
    let (rows, more) = (elements / all, elements % all);
    (rows * width + more.saturating_sub(lane).min(width)) as u64
}

/// The moments of a tile.
fn spread<T: Element<Acc = A>, A: Real>(elements: &[T]) -> Result<Spread<A>> {
    let all = lanes::<T>();
    let mut lane = memory::with_capacity(all.min(elements.len()))?;
    spread_lanes(elements, all, all, &mut lane);
    Ok(lane[0])
}

/// Calls `body` with each of up to [`ABREAST`] neighbours and its number. A full row takes a loop of constant length,
/// so that it vectorises.
#[inline]
fn each_lane<T: Element<Acc = A>, A>(row: &[T], mut body: impl FnMut(usize, A)) {
    match <&[T; ABREAST]>::try_from(row) {
        Ok(row) => row.iter().enumerate().for_each(|(k, x)| body(k, x.widen())),
        Err(_) => row.iter().enumerate().for_each(|(k, x)| body(k, x.widen())),
    }
}

/// The sum of squared distances of a lane times `DOWN²`, from elements that are scaled by `DOWN`. Serves lanes where a
/// distance or its square is beyond the range.
fn far_squares<A: Real>(elements: impl Iterator<Item = A>, mean: A, part: A) -> A {
    let (mut rest, mut m2) = (A::ZERO, A::ZERO);
    for x in elements {
        let d = x * A::DOWN - mean * A::DOWN;
        rest = rest + d;
        m2 = m2 + d * d;
    }
    let spread = m2 - rest * (rest * part);
    if spread > A::ZERO { spread } else { A::ZERO }
}

/// The mean of a lane whose sum is beyond the range, though its mean is not.
fn mean_of_parts<A: Real>(elements: impl Iterator<Item = A>, part: A) -> A {
    let part = part * A::BELOW_ONE;
    elements.fold(A::ZERO, |mean, x| mean + x * part)
}

/// Writes the moments of up to 16 rows of `all` lanes to `lane`: one for each group of `width_most` lanes. `width_most`
/// is a power of two.
pub(in crate::reduce) fn spread_lanes<T: Element<Acc = A>, A: Real>(
    elements: &[T],
    all: usize,
    width_most: usize,
    lane: &mut Vec<Spread<A>>,
) {
    let n = elements.len();
    // A short tile leaves the last lanes empty.
    let used = all.min(n);
    let part = |k| A::ratio(1, in_lanes(n, all, k, 1));
    let (first, last) = (part(0), part(used - 1));
    // A lane has as many rows as the first lane, or one less.
    let more = if n.is_multiple_of(all) { used } else { n % all };
    let part = |k| if k < more { first } else { last };
    lane.clear();
    for from in (0..used).step_by(ABREAST) {
        let (mut mean, mut rest, mut m2) = ([A::ZERO; ABREAST], [A::ZERO; ABREAST], [A::ZERO; ABREAST]);
        let rows = || elements.chunks(all).map(|row| &row[from.min(row.len())..row.len().min(from + ABREAST)]);
        for row in rows() {
            each_lane(row, |k, x| mean[k] = mean[k] + x);
        }
        for (k, mean) in mean.iter_mut().enumerate().take(used - from) {
            *mean = *mean * part(from + k);
            if !mean.is_finite() {
                let lane = elements.iter().skip(from + k).step_by(all);
                *mean = mean_of_parts(lane.map(|x| x.widen()), part(from + k));
            }
        }
        for row in rows() {
            each_lane(row, |k, x| {
                let d = x - mean[k];
                rest[k] = rest[k] + d;
                m2[k] = m2[k] + d * d;
            });
        }
        lane.extend((0..ABREAST.min(used - from)).map(|k| {
            let elements = || elements.iter().skip(from + k).step_by(all).map(|x| x.widen());
            Spread::of_lane(mean[k], rest[k], m2[k], part(from + k), elements)
        }));
    }
    join_lanes(lane, n, all, width_most);
}

/// Joins the moments of the lanes that have elements, until each covers `width_most` lanes. The `n` elements fill rows
/// of `all`.
fn join_lanes<M: Joins>(lane: &mut Vec<M>, n: usize, all: usize, width_most: usize) {
    let (used, rows) = (lane.len(), n / all);
    let mut width = 1;
    while width < used.min(width_most) {
        for k in 0..used.div_ceil(2 * width) {
            let (a, b) = (2 * k, 2 * k + 1);
            let mut merged = lane[a];
            if b * width < used {
                let of = |lane: usize| {
                    if n == rows * all { (rows * width) as u64 } else { in_lanes(n, all, lane * width, width) }
                };
                merged.merge(of(a), &lane[b], of(b));
            }
            lane[k] = merged;
        }
        width *= 2;
    }
    lane.truncate(used.div_ceil(width_most));
}

/// Columns whose moments are computed side by side.
pub(in crate::reduce) const COLUMNS: usize = 32;

/// The [`Spread`] of each of [`COLUMNS`] columns.
#[derive(Clone, Copy)]
pub(in crate::reduce) struct Spreads<A> {
    mean: [A; COLUMNS],
    rest: [A; COLUMNS],
    m2: [A; COLUMNS],
}

impl<A: Real> Spreads<A> {
    fn column(&self, c: usize) -> Spread<A> {
        Spread { mean: self.mean[c], rest: self.rest[c], m2: self.m2[c] }
    }

    fn set(&mut self, c: usize, column: Spread<A>) {
        (self.mean[c], self.rest[c], self.m2[c]) = (column.mean, column.rest, column.m2);
    }
}

impl<A: Real> Joins for Spreads<A> {
    #[inline]
    fn merge(&mut self, n: u64, other: &Self, m: u64) {
        let weight = weight(n, m);
        let paired = A::from_f64(n as f64) * weight;
        let (mut all, mut inside) = (*self, true);
        for c in 0..COLUMNS {
            let (column, _, fits) = self.column(c).joined(&other.column(c), weight, paired);
            all.set(c, column);
            inside &= fits;
        }
        if !inside {
            for c in 0..COLUMNS {
                let mut column = self.column(c);
                column.join(&other.column(c), weight, paired);
                all.set(c, column);
            }
        }
        *self = all;
    }

    fn words(&self, column: usize) -> [u64; 5] {
        self.column(column).words(0)
    }
}

/// [`spread_lanes`] for columns. They have up to 16 times `all` rows, which are `stride` apart.
pub(in crate::reduce) fn spread_columns<T: Element<Acc = A>, A: Real>(
    input: &[T],
    (n, stride): (usize, usize),
    all: usize,
    width_most: usize,
    lane: &mut Vec<Spreads<A>>,
) {
    let row = |i: usize| -> &[T; COLUMNS] { input[i * stride..][..COLUMNS].try_into().expect("as many columns") };
    lane.clear();
    for k in 0..all.min(n) {
        let rows = || (k..n).step_by(all).map(row);
        let part = A::ratio(1, in_lanes(n, all, k, 1));
        let (mut mean, mut rest, mut m2) = ([A::ZERO; COLUMNS], [A::ZERO; COLUMNS], [A::ZERO; COLUMNS]);
        for row in rows() {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean = *mean + x.widen());
        }
        mean = mean.map(|sum| sum * part);
        for c in 0..COLUMNS {
            if !mean[c].is_finite() {
                mean[c] = mean_of_parts(rows().map(|row| row[c].widen()), part);
            }
        }
        for row in rows() {
            for c in 0..COLUMNS {
                let d = row[c].widen() - mean[c];
                rest[c] = rest[c] + d;
                m2[c] = m2[c] + d * d;
            }
        }
        let mut of_lane = Spreads { mean, rest, m2 };
        for c in 0..COLUMNS {
            let elements = || rows().map(move |row| row[c].widen());
            of_lane.set(c, Spread::of_lane(mean[c], rest[c], m2[c], part, elements));
        }
        lane.push(of_lane);
    }
    join_lanes(lane, n, all, width_most);
}

/// Exact sums, in words that are wide enough for a tile.
pub(in crate::reduce) trait Whole: Integer {
    fn sums(elements: &[Self]) -> Exact;

    /// The exact sums of each column.
    fn sums_of_columns<'a>(rows: impl Iterator<Item = &'a [Self; COLUMNS]>) -> [Exact; COLUMNS];
}

impl Joins for [Exact; COLUMNS] {
    fn merge(&mut self, n: u64, other: &Self, m: u64) {
        self.iter_mut().zip(other).for_each(|(column, other)| column.merge(n, other, m));
    }

    fn words(&self, column: usize) -> [u64; 5] {
        self[column].words(0)
    }
}

macro_rules! whole {
    ($($ty:ty => $sum:ty, $word:ty, $square:ty);*) => { $(
        impl Whole for $ty {
            fn sums(elements: &[Self]) -> Exact {
                let (mut sum, mut low, mut high) = (0 as $sum, 0u64, 0u64);
                for &x in elements {
                    let square = (x as $word * x as $word) as $square;
                    sum += x as $sum;
                    low += square as u64 & 0xffff_ffff;
                    high += square as u64 >> 32;
                }
                Exact { sum: sum as i128, squares: low as u128 + ((high as u128) << 32), high: 0 }
            }

            fn sums_of_columns<'a>(rows: impl Iterator<Item = &'a [Self; COLUMNS]>) -> [Exact; COLUMNS] {
                let (mut sum, mut low, mut high) = ([0 as $sum; COLUMNS], [0u64; COLUMNS], [0u64; COLUMNS]);
                for row in rows {
                    for c in 0..COLUMNS {
                        let square = (row[c] as $word * row[c] as $word) as $square;
                        sum[c] += row[c] as $sum;
                        low[c] += square as u64 & 0xffff_ffff;
                        high[c] += square as u64 >> 32;
                    }
                }
                std::array::from_fn(|c| {
                    let squares = low[c] as u128 + ((high[c] as u128) << 32);
                    Exact { sum: sum[c] as i128, squares, high: 0 }
                })
            }
        }
    )* };
}
// The types, in order: the sum of a tile, a product, an unsigned square.
whole!(i8 => i32, i32, u32; u8 => i32, i32, u32; i16 => i64, i32, u32; u16 => i64, u32, u32; i32 => i64, i64, u64; u32 => i64, u64, u64);

macro_rules! wide {
    ($($ty:ty),*) => { $(
        impl Whole for $ty {
            fn sums(elements: &[Self]) -> Exact {
                let mut all = Exact::default();
                for &x in elements {
                    let size = u128::from((x as i128).unsigned_abs() as u64);
                    all.merge(0, &Exact { sum: x as i128, squares: size * size, high: 0 }, 0);
                }
                all
            }

            fn sums_of_columns<'a>(rows: impl Iterator<Item = &'a [Self; COLUMNS]>) -> [Exact; COLUMNS] {
                let mut all = [Exact::default(); COLUMNS];
                for row in rows {
                    all.iter_mut().zip(row).for_each(|(all, &x)| all.merge(0, &Self::sums(&[x]), 0));
                }
                all
            }
        }
    )* };
}
wide!(i64, u64);

/// The results of neighbouring tiles. `nan_at`, `low.1` and `high.1` are the numbers of the tiles that have the first
/// NaN and the extremes.
#[derive(Clone, Copy)]
struct Record<T, M> {
    n: u64,
    nan: u64,
    nan_at: usize,
    low: (T, usize),
    high: (T, usize),
    moments: M,
}

impl<T: Element, M: Joins> Record<T, M> {
    fn of(number: usize, elements: &[T], moments: M) -> Self {
        let (mut lows, mut highs, mut nan) = ([T::HIGHEST; ABREAST], [T::LOWEST; ABREAST], 0);
        for row in elements.chunks(ABREAST) {
            for x in row {
                nan += u32::from(x.is_nan());
            }
            for ((low, high), &x) in lows.iter_mut().zip(&mut highs).zip(row) {
                *low = if x < *low { x } else { *low };
                *high = if x > *high { x } else { *high };
            }
        }
        let (mut low, mut high) = (T::HIGHEST, T::LOWEST);
        for lane in 0..ABREAST {
            low = if lows[lane] < low { lows[lane] } else { low };
            high = if highs[lane] > high { highs[lane] } else { high };
        }
        Self {
            n: elements.len() as u64,
            nan: u64::from(nan),
            nan_at: number,
            low: (low, number),
            high: (high, number),
            moments,
        }
    }

    /// Joins the results of later tiles.
    #[inline]
    fn merge(mut self, other: &Self) -> Self {
        if self.nan == 0 {
            self.nan_at = other.nan_at;
        }
        if other.low.0 < self.low.0 {
            self.low = other.low;
        }
        if other.high.0 > self.high.0 {
            self.high = other.high;
        }
        self.nan += other.nan;
        self.moments.merge(self.n, &other.moments, other.n);
        self.n += other.n;
        self
    }
}

/// A record, the smallest and the largest element.
type Found<T, M> = (Record<T, M>, Extreme<T>, Extreme<T>);

/// The record of the whole input, which is not empty, and its extremes.
fn record<T: Element, M: Joins>(input: &[T], moments: &(dyn Fn(&[T]) -> Result<M> + Sync)) -> Result<Found<T, M>> {
    let part = |i: usize| &input[i * tile::<T>()..input.len().min((i + 1) * tile::<T>())];
    let of = |i: usize| Ok(Record::of(i, part(i), moments(part(i))?));
    let mut records = parallel::try_map(input.len().div_ceil(tile::<T>()), &of)?;
    while records.len() > 1 {
        for i in 0..records.len().div_ceil(2) {
            let left = records[2 * i];
            records[i] = if let Some(right) = records.get(2 * i + 1) { left.merge(right) } else { left };
        }
        records.truncate(records.len().div_ceil(2));
    }
    let all = records[0];
    let find = |i: usize, is: &dyn Fn(&T) -> bool| {
        let index = i * tile::<T>() + part(i).iter().position(is).unwrap_or(0);
        Extreme { index, value: input[index] }
    };
    let (low, high) = if all.nan > 0 {
        let first = find(all.nan_at, &|x| x.is_nan());
        (first, first)
    } else {
        (find(all.low.1, &|&x| x == all.low.0), find(all.high.1, &|&x| x == all.high.0))
    };
    Ok((all, low, high))
}

/// The extremes of `input`, which is not empty.
pub(super) fn min_max<T: Element>(input: &[T]) -> Result<(Extreme<T>, Extreme<T>)> {
    let (_, low, high) = record(input, &|_| Ok(()))?;
    Ok((low, high))
}

fn words<T: Element, M: Joins>(input: &[T], moments: &(dyn Fn(&[T]) -> Result<M> + Sync)) -> Result<Words> {
    let (all, low, high) = record(input, moments)?;
    let mut words = [0; WORDS];
    words[..4].copy_from_slice(&[all.n, all.nan, low.index as u64, high.index as u64]);
    for (word, value) in words[4..6].iter_mut().zip([low.value, high.value]) {
        *word = element::bits(value);
        // Integers are sign-extended, as in OpenCL C.
        if T::TYPE.is_signed() && !T::TYPE.is_float() && value < T::ZERO {
            *word |= u64::MAX.checked_shl(8 * size_of::<T>() as u32).unwrap_or(0);
        }
    }
    words[6..11].copy_from_slice(&all.moments.words(0));
    Ok(words)
}

/// The words of the record of `input`, which is not empty.
pub(super) fn statistics<T: Element>(input: &[T]) -> Result<Words> {
    match T::TYPE {
        ElementType::F16 => words(bytemuck::cast_slice(input), &spread::<f16, f32>),
        ElementType::Bf16 => words(bytemuck::cast_slice(input), &spread::<bf16, f32>),
        ElementType::F32 => words(bytemuck::cast_slice(input), &spread::<f32, f32>),
        ElementType::F64 => words(bytemuck::cast_slice(input), &spread::<f64, f64>),
        integer => {
            with_integer!(integer, I => words::<I, _>(bytemuck::cast_slice(input), &|part| Ok(I::sums(part))), unreachable!("a float"))
        }
    }
}
