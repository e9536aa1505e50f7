//! Cases and benchmark cases of statistics and of both extremes.

use super::StatisticsRecord;
use crate::ProgramSpec;
use crate::{
    Buffer, Device, Element, ElementType, Moments, Source,
    bench::Bench,
    check::{Case, Failure, Level, close, data::Data, guarded, same, segments::Cut},
    ladder::Climb,
    reduce::{End, cpu::tile},
    tuning::Tuned,
    with_element,
};

fn extreme<T: Element>(input: &[T], end: End) -> (usize, T) {
    let index = (1..input.len()).fold(0, |best, i| if end.before(input[i], input[best]) { i } else { best });
    (index, input[index])
}

fn same_extreme<T: Element>(got: (usize, T), want: (usize, T), what: &str) -> Result<(), Failure> {
    same(&[got.0 as u64], &[want.0 as u64], &format!("{what}'s index"))?;
    same(&[got.1], &[want.1], what)
}

/// Data set of elements.
#[derive(Clone, Copy)]
pub(in crate::reduce) enum Values {
    Of(Data),
    /// Values whose spread is far below their mean.
    About100,
    /// Floats of either sign up to the largest one.
    Ends,
}

impl Values {
    pub(in crate::reduce) fn name(self) -> &'static str {
        match self {
            Self::Of(data) => data.name(),
            Self::About100 => "about 100",
            Self::Ends => "up to the ends",
        }
    }

    pub(in crate::reduce) fn generate<T: Element>(self, n: usize) -> Vec<T> {
        let most = match T::TYPE {
            ElementType::F16 => 65_504.0,
            ElementType::F64 => f64::MAX,
            // The largest value must stay finite as a bf16.
            _ => 0.99 * f64::from(f32::MAX),
        };
        if let Self::Of(data) = self {
            return data.generate(n, n as u64);
        }
        let mut values = Vec::with_capacity(n);
        for x in Data::Random.generate::<f64>(n, n as u64) {
            values.push(T::from_f64(if matches!(self, Self::Ends) { most * x } else { 100.0 + 0.5 * x }));
        }
        values
    }
}

fn check_min_max<T: Element>(device: &Device, data: Values, n: usize, offset: usize) -> Result<(), Failure> {
    let all = data.generate::<T>(offset + n);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    if n == 0 {
        return empty(device.min_max(&[] as &[T]), "min-max");
    }
    let mut indices = Vec::new();
    let values = guarded(device, 2, offset, |values| {
        indices =
            guarded(device, 2, 1, |indices| Ok(device.min_max_into(on_device.view(offset..)?, values, indices)?))?;
        Ok(())
    })?;
    for (i, end) in [End::Min, End::Max].into_iter().enumerate() {
        let got = (indices[i] as usize, values[i]);
        same_extreme(got, extreme(input, end), end.name())?;
    }
    Ok(())
}

fn empty<R: std::fmt::Debug>(got: crate::Result<R>, what: &str) -> Result<(), Failure> {
    match got {
        Err(error) if error.kind() == crate::ErrorKind::Empty => Ok(()),
        other => Err(Failure::Mismatch(format!("{what} of empty input gave {other:?}"))),
    }
}

fn check_statistics<T: Element>(device: &Device, data: Values, n: usize, offset: usize) -> Result<(), Failure> {
    let all = data.generate::<T>(offset + n);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    if n == 0 {
        return empty(device.statistics(&[] as &[T]), "statistics");
    }
    let got = guarded(device, 1, offset, |out| Ok(device.statistics_into(on_device.view(offset..)?, out)?))?[0].get();
    let counted = [n as u64, input.iter().filter(|x| x.is_nan()).count() as u64];
    same(&[got.count as u64, got.nan as u64], &counted, "count and NaN count")?;
    same_extreme((got.min.index, got.min.value), extreme(input, End::Min), "min")?;
    same_extreme((got.max.index, got.max.value), extreme(input, End::Max), "max")?;
    let got = got.moments();
    if device.is_cpu() {
        return check_moments(&got, input);
    }
    same_moments(&[got], &[Device::cpu().statistics(input)?.moments()])
}

pub(in crate::reduce) fn same_moments(got: &[Moments], want: &[Moments]) -> Result<(), Failure> {
    let figures = |found: &[Moments]| found.iter().flat_map(|x| [x.sum, x.mean, x.variance]).collect::<Vec<_>>();
    same(&figures(got), &figures(want), "sum, mean, variance")?;
    let sums = |found: &[Moments]| found.iter().map(|x| x.integer_sum).collect::<Vec<_>>();
    match std::iter::zip(sums(got), sums(want)).find(|(got, want)| got != want) {
        Some((got, want)) => Err(Failure::Mismatch(format!("sum is {got:?} instead of {want:?}"))),
        None => Ok(()),
    }
}

/// Checks the records of segments against plain extremes, plain numbers of NaN, and [`Device::moments`], which has
/// cases of its own.
fn check_segments(device: &Device, n: usize, cut: Cut) -> Result<(), Failure> {
    let (input, offsets) = (Values::Of(Data::Special).generate::<f32>(n), cut.offsets::<u32>(n));
    let (x, ends) = (device.upload(&input)?, device.upload(&offsets)?);
    let records = guarded(device, offsets.len() - 1, 1, |out| Ok(device.statistics_into(x.segments(&ends), out)?))?;
    let got: Vec<_> = records.iter().map(StatisticsRecord::get).collect();
    for (got, ends) in got.iter().zip(offsets.windows(2)) {
        let own = &input[ends[0] as usize..ends[1] as usize];
        let counted = [own.len() as u64, own.iter().filter(|x| x.is_nan()).count() as u64];
        same(&[got.count as u64, got.nan as u64], &counted, "count and NaN count")?;
        if !own.is_empty() {
            same_extreme((got.min.index, got.min.value), extreme(own, End::Min), "min")?;
            same_extreme((got.max.index, got.max.value), extreme(own, End::Max), "max")?;
        }
    }
    let want = device.moments(x.segments(&ends))?.to_vec()?;
    let want: Vec<_> = want.iter().map(|record| record.get()).collect();
    same_moments(&got.iter().map(|found| found.moments()).collect::<Vec<_>>(), &want)
}

/// A sum in two parts (Neumaier 1974), whose error does not grow with n.
fn exactly(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut rest) = (0.0, 0.0);
    for x in terms {
        let s: f64 = sum + x;
        rest += if sum.abs() >= x.abs() { (sum - s) + x } else { (x - s) + sum };
        sum = s;
    }
    sum + rest
}

/// Compares with two plain passes, within the documented bounds.
pub(in crate::reduce) fn check_moments<T: Element>(got: &Moments, input: &[T]) -> Result<(), Failure> {
    let (mut wide, mut integers) = (Vec::with_capacity(input.len()), Vec::new());
    for x in input {
        wide.push(x.to_f64());
    }
    if !T::TYPE.is_float() {
        integers.reserve(input.len());
        for x in input {
            integers.push(if T::TYPE.is_signed() { x.cast::<i64>().into() } else { x.cast::<u64>().into() });
        }
    }
    check_moments_of(got, T::Acc::TYPE, &wide, &integers)
}

/// [`check_moments`] of elements that are computed in type `acc`. `integers` has the elements of an integer type.
fn check_moments_of(got: &Moments, acc: ElementType, wide: &[f64], integers: &[i128]) -> Result<(), Failure> {
    let n = wide.len() as f64;
    let unit = match acc {
        ElementType::F32 => f64::from(f32::EPSILON) / 2.0,
        _ => f64::EPSILON / 2.0,
    };
    let elements = || wide.iter().copied();
    if elements().any(|x| !x.is_finite()) {
        // Infinities and NaN propagate as in any sum.
        let plain: f64 = elements().filter(|x| !x.is_finite()).sum();
        same(&[got.mean, got.sum], &[plain, plain], "mean and sum")?;
        return same(&[got.variance], &[f64::NAN], "variance");
    }
    // A power of two scales the elements, so that squares are in the range of f64.
    let most = elements().fold(0.0, |most, x| x.abs().max(most));
    let scale = if most > 1e150 { 2f64.powi(-540) } else { 1.0 };
    let scaled = || elements().map(|x| x * scale);
    let mean = exactly(scaled()) / n;
    // Large integers can be closer together than neighbouring f64. So distances are measured from an integer near the
    // mean.
    let sum: i128 = integers.iter().sum();
    let centre = sum / wide.len() as i128;
    let rest = (sum - centre * wide.len() as i128) as f64 / n;
    let distance = |i: usize| match integers.get(i) {
        Some(x) => (x - centre) as f64 - rest,
        None => wide[i] * scale - mean,
    };
    let off = || (0..wide.len()).map(distance);
    let (variance, distance) = (exactly(off().map(|d| d * d)) / n, exactly(off().map(f64::abs)) / n);
    let depth = 40.0 + 8.0 * n.log2();
    // Error of the reference itself, in f64.
    let reference = 4.0 * f64::EPSILON * mean.abs();
    let bound = depth * (unit * distance + unit * unit * mean.abs()) + reference;
    close(got.mean * scale, mean, bound, "mean")?;
    if got.sum.is_finite() || (mean * n / scale).abs() < 0.999 * f64::MAX {
        close(got.sum * scale, mean * n, n * (bound + reference), "sum")?;
    }
    // Squares, including those of rounding errors, can overflow.
    let squares = n * (variance + (32.0 * unit * most * scale).powi(2));
    if got.variance == f64::INFINITY && squares / scale / scale > f64::MAX / 2.0 {
        return Ok(());
    }
    let bound = 2.0 * depth * unit * (variance + (10.0 * unit * mean).powi(2))
        + bound * bound
        + f64::from(f32::MIN_POSITIVE) * (1.0 - mean.abs().min(1.0));
    close(got.variance * scale * scale, variance, bound, "variance")
}

fn sizes<T>(level: Level) -> Vec<(usize, usize)> {
    let (row, tile) = (tile::<T>() / 16, tile::<T>());
    let mut sizes = vec![(0, 0), (1, 1), (5, 0), (row + 1, 1)];
    if level >= Level::Quick {
        sizes.extend([(row - 1, 0), (tile - 1, 0), (tile, 3), (tile + 1, 0), (3 * tile + row + 7, 0)]);
    }
    if level >= Level::Full {
        sizes.extend([(2, 0), (255, 7), (row, 0), (2 * row, 1), (16 * tile, 0), (17 * tile + 5, 1), (1_000_003, 0)]);
    }
    sizes
}

pub(in crate::reduce) fn cases(level: Level) -> Vec<Case> {
    use ElementType::{F32, F64, I16, I32, I64, U8};
    use Values::{About100, Ends, Of};
    let mut cases = Vec::new();
    for element in ElementType::ALL {
        let statistics = match level {
            Level::Tiny => [F32, U8, I64].contains(&element),
            Level::Quick => [F32, U8, I64, F64].contains(&element),
            Level::Full => true,
        };
        let min_max = level == Level::Full || [F32, I16].contains(&element);
        let data: &[_] = match level {
            Level::Tiny => &[Of(Data::Random)],
            Level::Quick => &[Of(Data::Random), Of(Data::Special), About100, Ends],
            Level::Full => &[Of(Data::Random), Of(Data::Bits), Of(Data::Special), Of(Data::Constant), About100, Ends],
        };
        with_element!(element, T => for (n, offset) in sizes::<T>(level) {
            for &data in data.iter().filter(|data| element.is_float() || !matches!(data, Ends)) {
                let (shape, name) = (format!("n = {n} at {offset}"), data.name());
                if statistics {
                    cases.push(Case::new("statistics", element, shape.clone(), name, n, move |device| {
                        check_statistics::<T>(device, data, n, offset)
                    }));
                }
                if min_max {
                    cases.push(Case::new("min-max", element, shape, name, n, move |device| {
                        check_min_max::<T>(device, data, n, offset)
                    }));
                }
            }
        });
        // These cases have more records than one work-group merges.
        if level == Level::Full && [F32, I32].contains(&element) {
            let n = 1024 * (65_536 / 4) + 17;
            with_element!(element, T => {
                cases.push(Case::new("statistics", element, format!("n = {n} at 0"), "random", n, move |device| {
                    check_statistics::<T>(device, Of(Data::Random), n, 0)
                }));
                cases.push(Case::new("min-max", element, format!("n = {n} at 0"), "random", n, move |device| {
                    check_min_max::<T>(device, Of(Data::Random), n, 0)
                }));
            });
        }
    }
    for (n, cut) in [(3001, Cut::PowerLaw), (0, Cut::Empty), (70_001, Cut::Huge)] {
        let shape = format!("n = {n}, segments {}", cut.name());
        cases.push(Case::new("statistics of segments", F32, shape, "special", n, move |device| {
            check_segments(device, n, cut)
        }));
    }
    cases
}

/// State of a benchmark case.
struct Measured<T: Element> {
    device: Device,
    host: Vec<T>,
    x: Buffer<T>,
    values: Buffer<T>,
    indices: Buffer<u64>,
    record: Buffer<StatisticsRecord<T>>,
}

impl<T: Element> Measured<T> {
    fn new(device: &Device, n: usize) -> crate::Result<Self> {
        let host = Data::Random.generate::<T>(n, n as u64);
        let x = device.upload(&host)?;
        let (values, indices, record) = (device.zeroed(2)?, device.zeroed(2)?, device.zeroed(1)?);
        Ok(Self { device: device.clone(), host, x, values, indices, record })
    }
}

fn statistics_bench<T: Element>() -> Bench {
    let bytes = |n| (n * size_of::<T>()) as u64;
    Bench::new("statistics", T::TYPE, bytes, |device, n| {
        Ok(Climb::new(
            Measured::<T>::new(device, n)?,
            |_| Ok(()),
            |Measured { device, x, record, .. }| device.statistics_into(&*x, record),
            |this| {
                let got = this.record.to_vec()?[0].get().moments();
                same_moments(&[got], &[Device::cpu().statistics(&this.host)?.moments()])
            },
        ))
    })
}

fn min_max_bench<T: Element>() -> Bench {
    let bytes = |n| (n * size_of::<T>()) as u64;
    Bench::new("min-max", T::TYPE, bytes, |device, n| {
        Ok(Climb::new(
            Measured::<T>::new(device, n)?,
            |_| Ok(()),
            |Measured { device, x, values, indices, .. }| device.min_max_into(&*x, values, indices),
            |this| {
                let want = Device::cpu().min_max(&this.host)?;
                same(&this.indices.to_vec()?, &[want.min.index as u64, want.max.index as u64], "indices")
            },
        ))
    })
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    vec![
        min_max_bench::<i32>(),
        min_max_bench::<f32>(),
        statistics_bench::<i32>(),
        statistics_bench::<f32>(),
        statistics_bench::<f64>(),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::Find;
    use crate::reduce::End;
    let mut programs = Vec::new();
    for element in ElementType::ALL {
        let acc = with_element!(element, T => <T as Element>::Acc::TYPE);
        for find in [Find::One(End::Min), Find::One(End::Max), Find::Both, Find::Moments] {
            for (aligned, wide) in [(false, false), (false, true), (true, false), (true, true)] {
                let plan = super::gpu::plan(1 << 20, element, acc, find, aligned, caps, wide);
                programs.extend(plan.map(|plan| plan.program));
            }
            if find != Find::Moments {
                let plan = super::gpu::plan(1 << 20, element, acc, find, true, caps, false);
                programs.extend(plan.map(|plan| plan.by_count(Some(ElementType::U64)).program));
            }
        }
        programs.push(super::gpu::plan_groups(1 << 20, element, caps).0);
    }
    programs
}
