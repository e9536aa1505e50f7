//! Cases and benchmark cases of weighted histograms.

use super::Weight;
use crate::{
    Buffer, Device, Element, ElementType, Input, Source,
    bench::Bench,
    check::{
        Case, Failure, Level,
        data::{Data, Rng},
        guarded, poison, same,
    },
    histogram::{
        Accumulate, Bins,
        bins::{OUTSIDE, to_i128},
    },
    ladder::Climb,
    op::Arithmetic,
    tuning::Tuned,
    with_element,
};

/// Data set of weights.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weights {
    Data(Data),
    /// Floats so small that most of them, and most of their sums, are subnormal.
    Tiny,
    /// One weight in the middle is larger than all others. Devices estimate the largest weight: each work-group samples
    /// the first 1,024 weights of its share. With larger shares the sample can lack this weight.
    OneLarge,
}

impl Weights {
    fn name(self) -> &'static str {
        match self {
            Self::Data(data) => data.name(),
            Self::Tiny => "tiny",
            Self::OneLarge => "one large",
        }
    }

    fn generate<W: Element>(self, n: usize) -> Vec<W> {
        match self {
            Self::Data(data) => data.generate(n, 3),
            Self::Tiny => {
                let least =
                    if W::TYPE.needs_fp64() { f64::from_bits(1 << 20) } else { f64::from(f32::from_bits(1 << 12)) };
                Data::Random.generate::<f64>(n, 5).into_iter().map(|x| W::from_f64(x * least)).collect()
            }
            Self::OneLarge => {
                let mut weights: Vec<W> = Data::Random.generate(n, 7);
                if let Some(weight) = weights.get_mut(n / 2) {
                    *weight = W::from_f64(60_000.0);
                }
                weights
            }
        }
    }
}

/// Kind of bins.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Even,
    Edges,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Edges => "edges",
        }
    }

    /// Bins over a part of the range of [`samples`].
    fn bins<T: Element>(self, bins: usize) -> crate::Result<Bins<T>> {
        let (lower, upper) = range(bins);
        match self {
            Self::Even => Bins::even(T::from_f64(lower), T::from_f64(upper), bins),
            Self::Edges => {
                let at = |k: usize| T::from_f64(lower + (upper - lower) * k as f64 / bins as f64);
                Bins::edges(&(0..=bins).map(at).collect::<Vec<T>>())
            }
        }
    }
}

/// Range of the bins, at least as wide as their number. Up to 90 bins, it fits every element type.
fn range(bins: usize) -> (f64, f64) {
    (10.0, 10.0 + (bins as f64).max(90.0))
}

/// `n` samples: most are in the bins, some on each side.
fn samples<T: Element>(bins: usize, n: usize) -> Vec<T> {
    let ((lower, upper), mut rng) = (range(bins), Rng::new(n as u64));
    let part = |rng: &mut Rng| rng.below(1 << 20) as f64 / (1 << 20) as f64;
    let sample = |rng: &mut Rng| match rng.below(20) {
        0 => T::from_f64(part(rng) * lower),
        1 => T::HIGHEST,
        2 => T::from_f64(f64::NAN),
        3..=8 => T::from_f64(lower + 1.0),
        _ => T::from_f64(lower + part(rng) * (upper - lower)),
    };
    (0..n).map(|_| sample(&mut rng)).collect()
}

/// Sums by definition. `slots` are those of the samples, which other cases check.
fn obvious<W: Weight>(weights: &[W], slots: &[u32], words: usize) -> Vec<W::Sum> {
    if !W::TYPE.is_float() {
        let mut sums = vec![0i128; words];
        weights.iter().zip(slots).for_each(|(&w, &slot)| sums[slot as usize] += to_i128(w));
        return sums.into_iter().map(|sum| W::Sum::from_bits_lossy(sum as u64)).collect();
    }
    let mut sums = vec![(Vec::new(), 0.0f64); words];
    for (w, &slot) in weights.iter().zip(slots) {
        let (w, sum) = (w.to_f64(), &mut sums[slot as usize]);
        if w.is_finite() {
            sum.0.push(w);
        } else {
            sum.1 += w;
        }
    }
    let narrow = !W::TYPE.needs_fp64();
    let finish = |(finite, special): (Vec<f64>, f64)| {
        W::Sum::from_f64(if special != 0.0 { special } else { exact(&finite, narrow) })
    };
    sums.into_iter().map(finish).collect()
}

/// The `f64` nearest to the exact sum of finite numbers, or the nearest `f32` if `narrow`. The function adds in as many
/// bits as the sum needs.
fn exact(terms: &[f64], narrow: bool) -> f64 {
    /// Exponent of the lowest bit; `BITS` covers a sum of 2^64 of the largest numbers.
    const LOWEST: i32 = -1074;
    const BITS: usize = 1074 + 1024 + 65;
    if let [] | [_] = terms {
        return terms.iter().sum::<f64>() + 0.0;
    }
    // Number of times that each power of two is in the sum.
    let mut counts = vec![0i64; BITS];
    for term in terms {
        let sign = if *term < 0.0 { -1 } else { 1 };
        let field = (term.to_bits() >> 52 & 0x7ff) as usize;
        let size = term.to_bits() & ((1 << 52) - 1) | u64::from(field > 0) << 52;
        for bit in (0..53).filter(|bit| size >> bit & 1 == 1) {
            counts[field.max(1) - 1 + bit] += sign;
        }
    }
    let carried = |counts: &[i64]| {
        let mut carry = 0;
        let bits = counts.iter().map(|count| {
            let sum = carry + count;
            carry = sum.div_euclid(2);
            sum.rem_euclid(2)
        });
        (bits.collect::<Vec<i64>>(), carry)
    };
    let (mut bits, carry) = carried(&counts);
    let sign = if carry < 0 { -1.0 } else { 1.0 };
    if carry < 0 {
        bits = carried(&counts.iter().map(|count| -count).collect::<Vec<_>>()).0;
    }
    let Some(high) = bits.iter().rposition(|&bit| bit == 1) else {
        return 0.0;
    };
    let (precision, least) = if narrow { (24, -149 - LOWEST) } else { (53, 0) };
    let low = (high + 1).saturating_sub(precision).max(least as usize);
    let mut size = bits[low..=high].iter().rev().fold(0i64, |size, bit| 2 * size + bit);
    let below = &bits[..low];
    let half = below.last() == Some(&1);
    let more = half && below[..low - 1].contains(&1);
    size += i64::from(half && (more || size % 2 == 1));
    let exponent = low as i32 + LOWEST;
    let value = sign * size as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    if narrow { f64::from(value as f32) } else { value }
}

fn check<T: Element, W: Weight>(
    device: &Device,
    n: usize,
    (offset, weights_offset): (usize, usize),
    layout: &Bins<T>,
    data: Weights,
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let bins = layout.len();
    let (input, weights) = (samples::<T>(bins, n + offset), data.generate::<W>(n + weights_offset));
    let (input_there, weights_there) = (device.upload(&input)?, device.upload(&weights)?);
    let (input, weights) = (&input[offset..], &weights[weights_offset..]);
    let mut outside = Vec::new();
    let sums = guarded::<W::Sum>(device, bins, offset, |sums| {
        outside = guarded::<W::Sum>(device, OUTSIDE, offset, |outside| {
            let (x, w) = (input_there.view(offset..)?, weights_there.view(weights_offset..)?);
            Ok(device.histogram_into(x.weighted(w), layout, sums, outside, accumulate)?)
        })?;
        Ok(())
    })?;
    let want = if device.is_cpu() {
        let mut slots = vec![0; n];
        layout.slots(input, &mut slots);
        obvious(weights, &slots, bins + OUTSIDE)
    } else {
        let found = Device::cpu().histogram(input.weighted(weights), layout)?;
        [found.sums, vec![found.outside.below, found.outside.above, found.outside.nan]].concat()
    };
    // The outputs held poison before.
    let before: W::Sum = poison();
    let add = |&sum: &W::Sum| if accumulate == Accumulate::Add { Arithmetic::add(before, sum) } else { sum };
    let want: Vec<_> = want.iter().map(add).collect();
    same(&sums, &want[..bins], "sums")?;
    same(&outside, &want[bins..], "outside")
}

/// Cases of one pair of types.
fn pair<T: Element, W: Weight>(level: Level, shape: Shape, bin_counts: &'static [usize], cases: &mut Vec<Case>) {
    let sizes: &[usize] = match level {
        Level::Tiny => &[300, 5003],
        Level::Quick => &[0, 1, 5003],
        Level::Full => &[0, 1, 2, 255, 1025, 20_011, 262_147],
    };
    let float = W::TYPE.is_float();
    let [random, special, bits] = [Data::Random, Data::Special, Data::Bits].map(Weights::Data);
    let sets = [random, special, bits, Weights::Tiny, Weights::OneLarge];
    for &bins in bin_counts {
        for &n in sizes {
            for (i, &data) in sets[..if float { sets.len() } else { 1 }].iter().enumerate() {
                // Small inputs take two data sets. At `Tiny`, the large input only takes `OneLarge`. Its large weight
                // exceeds the window of bits in which devices sum the other weights.
                let tried = match level {
                    Level::Tiny => (n == 300 && i < 2) || (n > 300 && data == Weights::OneLarge && W::TYPE.size() == 4),
                    _ => n >= 300 || i < 2,
                };
                if !tried {
                    continue;
                }
                let offsets = if data == Weights::OneLarge { (0, 0) } else { (i % 3, i % 2) };
                let accumulate = if (n + i) % 2 == 0 { Accumulate::Add } else { Accumulate::Overwrite };
                let form = format!("{} weighted {}", shape.name(), W::TYPE);
                let text = format!("n = {n} at {} and {}, {bins} bins", offsets.0, offsets.1);
                cases.push(Case::new(form, T::TYPE, text, data.name(), n, move |device| {
                    check::<T, W>(device, n, offsets, &shape.bins::<T>(bins)?, data, accumulate)
                }));
            }
        }
    }
}

pub(crate) fn cases(level: Level, cases: &mut Vec<Case>) {
    pair::<i32, i32>(level, Shape::Even, &[7], cases);
    pair::<f32, f32>(level, Shape::Edges, &[257], cases);
    pair::<f32, f64>(level, Shape::Even, &[30], cases);
    if level >= Level::Quick {
        pair::<u8, u8>(level, Shape::Even, &[90], cases);
        pair::<i32, f32>(level, Shape::Even, &[70_000], cases);
        pair::<f64, crate::f16>(level, Shape::Even, &[16], cases);
    }
    if level == Level::Full {
        const BINS: &[usize] = &[1, 7, 257, 5000, 70_000];
        pair::<i32, f64>(level, Shape::Even, &[1 << 24], cases);
        pair::<f32, i64>(level, Shape::Edges, &[1 << 20], cases);
        for element in ElementType::ALL {
            with_element!(element, X => {
                pair::<X, f32>(level, Shape::Even, &[80], cases);
                pair::<i32, X>(level, Shape::Even, BINS, cases);
            });
        }
    }
}

/// State of a benchmark case.
struct Measured<W: Weight> {
    device: Device,
    x: Buffer<f32>,
    w: Buffer<W>,
    layout: Bins<f32>,
    sums: Buffer<W::Sum>,
    outside: Buffer<W::Sum>,
}

fn bench<W: Weight>(bins: usize, constant: bool) -> Bench {
    let samples = if constant { "one bin" } else { "uniform" };
    let form = format!("weighted {}, {bins} bins, {samples}", W::TYPE);
    let bytes = move |n: usize| (n * (4 + size_of::<W>()) + bins * size_of::<W::Sum>()) as u64;
    Bench::new(form, ElementType::F32, bytes, move |device, n| {
        let x = if constant { vec![0.5; n] } else { Data::Random.generate::<f32>(n, 1) };
        let state = Measured::<W> {
            device: device.clone(),
            x: device.upload(&x)?,
            w: device.upload(&Data::Random.generate::<W>(n, 2))?,
            layout: Bins::even(-1.0, 1.0, bins)?,
            sums: device.zeroed(bins)?,
            outside: device.zeroed(OUTSIDE)?,
        };
        let run = |this: &mut Measured<W>| {
            let Measured { device, x, w, layout, sums, outside } = this;
            device.histogram_into(x.weighted(&*w), layout, sums, outside, Accumulate::Overwrite)
        };
        let verify = |this: &mut Measured<W>| {
            let (x, w) = (this.x.to_vec()?, this.w.to_vec()?);
            let want = Device::cpu().histogram(Input::Host(&x).weighted(Input::Host(&w)), &this.layout)?;
            same(&this.sums.to_vec()?, &want.sums, "sums")
        };
        Ok(Climb::new(state, |this| this.sums.fill(poison()), run, verify))
    })
}

pub(crate) fn benches(benches: &mut Vec<Bench>) {
    benches.extend([bench::<f32>(256, false), bench::<f32>(256, true), bench::<f32>(4096, false)]);
    benches.extend([bench::<i32>(256, false), bench::<f64>(256, false)]);
}

pub(crate) fn programs(caps: &Tuned, programs: &mut Vec<crate::ProgramSpec>) {
    use super::gpu::{Form, plan};
    use crate::histogram::gpu::Form as Samples;
    let sum = |weight: ElementType| match weight {
        ElementType::F64 => ElementType::F64,
        _ if weight.is_float() => ElementType::F32,
        _ if weight.is_signed() => ElementType::I64,
        _ => ElementType::U64,
    };
    let f32s = ElementType::ALL.map(|element| (element, ElementType::F32));
    for (element, weight) in ElementType::ALL.map(|weight| (ElementType::I32, weight)).into_iter().chain(f32s) {
        for (bins, map) in [(256, 3), (5000, if element.is_float() { 2 } else { 1 }), (1 << 20, 3)] {
            let form = Form { samples: Samples { element, bins, map }, weight, sum: sum(weight) };
            for (aligned, wide) in [(false, false), (true, false), (true, true)] {
                let plan = plan(1 << 28, form, aligned, caps, wide);
                programs.extend(plan.into_iter().flat_map(|plan| [plan.count, plan.weights]));
            }
        }
    }
    let samples = Samples { element: ElementType::U32, bins: 256, map: 3 };
    let form = Form { samples, weight: ElementType::F32, sum: ElementType::F32 };
    let by_count = plan(1 << 28, form, true, caps, false).map(|plan| plan.of_count(Some(ElementType::U64)));
    programs.extend(by_count.into_iter().flat_map(|plan| [plan.count, plan.weights]));
}
