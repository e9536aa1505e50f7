//! Cases and benchmark cases of histograms of mapped samples.

use crate::{
    Buffer, Device, Element, ElementType, Source,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, poison, same},
    f16,
    histogram::{
        Accumulate, Bins,
        bins::OUTSIDE,
        shared::{RANGED_BINS, small_gpu},
    },
    ladder::Climb,
    op::Map,
    tuning::Tuned,
};

/// A function of `A`, its text in OpenCL C, and the bins of its results.
#[derive(Clone, Copy)]
struct Mapped<A, U: Element> {
    function: fn(A) -> U,
    expression: &'static str,
    bins: fn() -> crate::Result<Bins<U>>,
}

impl<A, U: Element> Mapped<A, U> {
    fn map(&self) -> Map<fn(A) -> U> {
        Map::new(self.function, self.expression)
    }
}

const SQUARES: Mapped<f32, f32> =
    Mapped { function: |x| x * x, expression: "x * x", bins: || Bins::even(0.0f32, 0.9, 256) };
const HALVES: Mapped<f32, f32> = Mapped {
    function: |x| x * 0.5 + 0.125,
    expression: "x * 0.5f + 0.125f",
    bins: || Bins::edges(&[-0.3f32, -0.1, 0.0, 0.2, 0.2, 0.5]).map(Bins::closed),
};
const DISTANCES: Mapped<u8, i32> =
    Mapped { function: |x| i32::from(x) - 100, expression: "(int)x - 100", bins: || Bins::ids(120) };
const LOW_BYTES: Mapped<i64, u8> =
    Mapped { function: |x| x as u8, expression: "(uchar)(ulong)x", bins: || Bins::even(3u8, 250, 13) };
const WIDE: Mapped<i32, f64> =
    Mapped { function: |x| f64::from(x) * 0.5, expression: "x * 0.5", bins: || Bins::even(-1e9f64, 1e9, 1000) };
/// More bins than local memory holds.
const HIGH_BITS: Mapped<u32, u32> =
    Mapped { function: |x| x >> 15, expression: "x >> 15", bins: || Bins::ids(100_000) };
const RANGED: Mapped<u32, u32> =
    Mapped { function: |x| x >> 18, expression: "x >> 18", bins: || Bins::ids(RANGED_BINS) };

fn check<T: Element, U: Element<Acc = U>>(
    device: &Device,
    mapped: Mapped<T::Acc, U>,
    data: Data,
    n: usize,
    offset: usize,
) -> Result<(), Failure> {
    let all = data.generate::<T>(n + offset, n as u64);
    let (there, layout, map) = (device.upload(&all)?, (mapped.bins)()?, mapped.map());
    let mut outside = Vec::new();
    let counts = guarded::<u32>(device, layout.len(), offset, |counts| {
        outside = guarded::<u64>(device, OUTSIDE, offset, |outside| {
            let view = there.view(offset..)?;
            let replace = Accumulate::Overwrite;
            let mapped = view.cast::<T::Acc>().map(&map);
            Ok(device.histogram_into(mapped, &layout, counts, outside, replace)?)
        })?;
        Ok(())
    })?;
    let values: Vec<U> = all[offset..].iter().map(|x| (mapped.function)(x.widen())).collect();
    let want = Device::cpu().histogram(&values, &layout)?;
    let want_counts: Vec<u32> = want.counts.iter().map(|&count| count as u32).collect();
    same(&counts, &want_counts, "counts")?;
    same(&outside, &[want.outside.below, want.outside.above, want.outside.nan], "outside")
}

fn form<T: Element, U: Element<Acc = U>>(level: Level, name: &str, mapped: Mapped<T::Acc, U>, cases: &mut Vec<Case>) {
    let (sizes, sets): (&[usize], &[Data]) = match level {
        Level::Full => (&[0, 1, 2, 255, 4097, 262_147], &[Data::Random, Data::Bits, Data::Special]),
        _ => (&[0, 1, 5003], &[Data::Special]),
    };
    for &n in sizes {
        for (i, &data) in sets.iter().enumerate() {
            for offset in [0, 3 + i] {
                let shape = format!("n = {n} at {offset}");
                cases.push(Case::new(format!("mapped, {name}"), T::TYPE, shape, data.name(), n, move |device| {
                    check::<T, U>(device, mapped, data, n, offset)
                }));
            }
        }
    }
}

pub(crate) fn cases(level: Level, cases: &mut Vec<Case>) {
    if level >= Level::Quick {
        form::<f32, f32>(level, "even", SQUARES, cases);
        // Here devices partition the samples by ranges of bins.
        let ranged = |device: &Device| check::<u32, u32>(device, RANGED, Data::Random, 6_011, 1);
        let case = Case::new("mapped, ids", ElementType::U32, "n = 6011 at 1", Data::Random.name(), 6_011, ranged);
        cases.push(case.tuned("mapped, ids in many ranges", small_gpu()));
    }
    if level == Level::Full {
        form::<f16, f32>(level, "even", SQUARES, cases);
        form::<f32, f32>(level, "edges", HALVES, cases);
        form::<crate::bf16, f32>(level, "edges", HALVES, cases);
        form::<u8, i32>(level, "ids", DISTANCES, cases);
        form::<i64, u8>(level, "even", LOW_BYTES, cases);
        form::<i32, f64>(level, "even", WIDE, cases);
        form::<u32, u32>(level, "ids", HIGH_BITS, cases);
    }
}

/// State of a benchmark case.
struct Measured {
    device: Device,
    x: Buffer<f32>,
    bins: Bins<f32>,
    counts: Buffer<u32>,
    outside: Buffer<u64>,
}

pub(crate) fn benches(benches: &mut Vec<Bench>) {
    let bytes = |n: usize| (n * size_of::<f32>() + 256 * size_of::<u32>()) as u64;
    benches.push(Bench::new("even of x * x, 256 bins", f32::TYPE, bytes, |device, n| {
        let state = Measured {
            device: device.clone(),
            x: device.upload(&Data::Random.generate::<f32>(n, 1))?,
            bins: (SQUARES.bins)()?,
            counts: device.zeroed(256)?,
            outside: device.zeroed(OUTSIDE)?,
        };
        let run = |this: &mut Measured| {
            let Measured { device, x, bins, counts, outside } = this;
            device.histogram_into(x.map(SQUARES.map()), bins, counts, outside, Accumulate::Overwrite)
        };
        let verify = |this: &mut Measured| {
            let want = Device::cpu().histogram(this.x.to_vec()?.map(SQUARES.map()), &this.bins)?;
            let want: Vec<u32> = want.counts.iter().map(|&count| count as u32).collect();
            same(&this.counts.to_vec()?, &want, "counts")
        };
        Ok(Climb::new(state, |this| this.counts.fill(poison()), run, verify))
    }));
}

pub(crate) fn programs(caps: &Tuned, programs: &mut Vec<crate::ProgramSpec>) {
    use crate::histogram::gpu::{self, Form};
    fn plan<T: Element, U: Element<Acc = U>>(mapped: Mapped<T::Acc, U>, caps: &Tuned) -> Option<gpu::Plan> {
        let form = Form::of(&(mapped.bins)().ok()?);
        let mapped = gpu::Mapped { from: T::TYPE, prelude: mapped.map().prelude(T::Acc::TYPE, U::TYPE) };
        gpu::plan_mapped(1 << 28, form, Some(&mapped), None, ElementType::U32, caps, 1 << 31).ok()
    }
    let plans = [
        plan::<f32, f32>(SQUARES, caps),
        plan::<f16, f32>(SQUARES, caps),
        plan::<crate::bf16, f32>(HALVES, caps),
        plan::<u8, i32>(DISTANCES, caps),
        plan::<i64, u8>(LOW_BYTES, caps),
        plan::<i32, f64>(WIDE, caps),
        plan::<u32, u32>(HIGH_BITS, caps),
    ];
    programs.extend(plans.into_iter().flatten().map(|plan| plan.count));
}
