//! Cases and benchmark cases of histograms, also weighted ones, of segments and of lines along axes.

use crate::{
    Buffer, Device, DeviceClass, Element, ElementType, Offset, ProgramSpec, Source, Tuning,
    bench::Bench,
    check::{
        CANARY, Case, Failure, Level,
        data::{Data, Rng, random_by},
        guarded, poison, same,
        segments::Cut,
    },
    f16,
    histogram::{
        Accumulate, Bins, Counter, Weight,
        bins::OUTSIDE,
        shared::{RANGED_BINS, from_i128, small_gpu},
    },
    ladder::Climb,
    op::Arithmetic,
    tuning::Tuned,
};
use oclprim::source::Axes;

/// Function from a number of bins to the bins.
type Layout<T> = fn(usize) -> crate::Result<Bins<T>>;

fn even<T: Element>(bins: usize) -> crate::Result<Bins<T>> {
    let (lower, upper) = if T::TYPE.is_float() { (-0.7, 0.9) } else { (3.0, 103.0) };
    Ok(Bins::even(T::from_f64(lower), T::from_f64(upper), bins)?.closed())
}

fn squares<T: Element>(bins: usize) -> crate::Result<Bins<T>> {
    let upper = if T::TYPE.is_float() { 0.9 } else { 120.0 };
    let edge = |k: usize| T::from_f64(upper * (k as f64 / bins as f64).powi(2));
    Bins::edges(&(0..=bins).map(edge).collect::<Vec<T>>())
}

/// Samples in the bins and around them.
fn samples<T: Element>(n: usize, bins: usize) -> Vec<T> {
    random_by(n, n as u64, |i, rng: &mut Rng| {
        if !T::TYPE.is_float() {
            let range = if T::TYPE.size() == 1 { 120 } else { bins as u64 };
            return from_i128(i128::from(rng.below(2 * range)) - i128::from(range / 4));
        }
        if i % 61 == 7 { T::from_f64(f64::NAN) } else { T::from_f64(rng.below(1 << 11) as f64 / 1024.0 - 1.0) }
    })
}

/// Compares counters with those of groups by definition. The counters held poison before.
fn compare<T: Element, C: Counter>(
    groups: impl Iterator<Item = Vec<T>>,
    bins: &Bins<T>,
    (counts, outside): (&[C], &[u64]),
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let before = if accumulate == Accumulate::Add { poison::<u64>() } else { 0 };
    let mut want = vec![C::from_bits_lossy(before); counts.len()];
    let mut want_outside = vec![before; outside.len()];
    for (group, samples) in groups.enumerate() {
        let mut slots = vec![0; samples.len()];
        bins.slots(&samples, &mut slots);
        for slot in slots {
            let slot = slot as usize;
            if slot < bins.len() {
                let count = &mut want[group * bins.len() + slot];
                *count = count.add(C::ONE);
            } else {
                let count = &mut want_outside[group * OUTSIDE + slot - bins.len()];
                *count = count.wrapping_add(1);
            }
        }
    }
    same(counts, &want, "counts")?;
    same(outside, &want_outside, "outside")
}

/// Counters of `groups` groups, which `run` writes.
fn counted<T: Element, C: Counter>(
    device: &Device,
    groups: usize,
    offset: usize,
    bins: &Bins<T>,
    run: impl Fn(crate::ViewMut<'_, C>, crate::ViewMut<'_, u64>) -> crate::Result<()>,
) -> Result<(Vec<C>, Vec<u64>), Failure> {
    let mut others = Vec::new();
    let counts = guarded::<C>(device, groups * bins.len(), offset, |counts| {
        others = guarded::<u64>(device, OUTSIDE * groups, offset, |outside| Ok(run(counts, outside)?))?;
        Ok(())
    })?;
    Ok((counts, others))
}

fn check_segments<T: Element, C: Counter, O: Offset>(
    device: &Device,
    (n, cut): (usize, Cut),
    at: usize,
    bins: &Bins<T>,
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let (all, offsets): (Vec<T>, Vec<O>) = (samples(n + at, bins.len()), cut.offsets(n));
    let there = device.upload(&all)?;
    let offsets_there = device.upload(&[vec![O::ZERO; at], offsets.clone()].concat())?;
    let found = counted::<T, C>(device, offsets.len() - 1, at, bins, |counts, outside| {
        let input = there.view(at..)?.segments(offsets_there.view(at..)?);
        device.histogram_into(input, bins, counts, outside, accumulate)
    })?;
    let index = |i: usize| at + offsets[i].to_i128() as usize;
    let groups = (0..offsets.len() - 1).map(|i| all[index(i)..index(i + 1)].to_vec());
    compare(groups, bins, (&found.0, &found.1), accumulate)
}

/// The segments of a case, and the offset of inputs and outputs.
type Segments = (usize, Cut, usize);

fn segments<T: Element>(form: &str, layout: Layout<T>, bins: usize, sizes: &[Segments], cases: &mut Vec<Case>) {
    for &(n, cut, at) in sizes {
        for accumulate in [Accumulate::Overwrite, Accumulate::Add] {
            let shape = format!("n = {n} at {at}, {bins} bins, {}, {accumulate:?}", cut.name()).to_lowercase();
            cases.push(Case::new(form, T::TYPE, shape, "in and out", n, move |device| {
                let bins = layout(bins)?;
                if (accumulate == Accumulate::Add) ^ (at == 0) {
                    check_segments::<T, u64, u32>(device, (n, cut), at, &bins, accumulate)
                } else {
                    check_segments::<T, u32, u64>(device, (n, cut), at, &bins, accumulate)
                }
            }));
        }
    }
}

fn check_lines<T: Element, const N: usize, A: Axes>(
    device: &Device,
    shape: [usize; N],
    axes: A,
    taken: &[usize],
    bins: &Bins<T>,
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let all: Vec<T> = samples(shape.iter().product(), bins.len());
    let kept: Vec<usize> = (0..N).filter(|axis| !taken.contains(axis)).collect();
    let size = |axes: &[usize]| axes.iter().map(|&axis| shape[axis]).product::<usize>();
    let mut groups = vec![Vec::new(); size(&kept)];
    // The indices ascend, so each line has its elements in row-major order.
    for (i, &x) in all.iter().enumerate() {
        let index = |axis: usize| i / shape[axis + 1..].iter().product::<usize>() % shape[axis];
        groups[kept.iter().fold(0, |line, &axis| line * shape[axis] + index(axis))].push(x);
    }
    let there = device.upload(&all)?;
    let found = counted::<T, u32>(device, groups.len(), 1, bins, |counts, outside| {
        device.histogram_into(there.nd(&shape)?.along(axes), bins, counts, outside, accumulate)
    })?;
    compare(groups.into_iter(), bins, (&found.0, &found.1), accumulate)
}

fn lines<T: Element>(form: &str, layout: Layout<T>, bins: usize, level: Level, cases: &mut Vec<Case>) {
    let mut push = |shape: String, n: usize, run: fn(&Device, &Bins<T>, Accumulate) -> Result<(), Failure>| {
        for accumulate in [Accumulate::Overwrite, Accumulate::Add] {
            let shape = format!("{shape}, {bins} bins, {accumulate:?}").to_lowercase();
            cases.push(Case::new(form, T::TYPE, shape, "in and out", n, move |device| {
                run(device, &layout(bins)?, accumulate)
            }));
        }
    };
    macro_rules! shape {
        ($shape:expr, $axes:expr, $taken:expr) => {
            push(format!("{:?} along {:?}", $shape, $axes), $shape.iter().product(), |device, bins, accumulate| {
                check_lines(device, $shape, $axes, $taken, bins, accumulate)
            })
        };
    }
    shape!([5, 400], 1, &[1]);
    shape!([30, 20], 0, &[0]);
    if level >= Level::Quick {
        shape!([0, 3], 0, &[0]);
        shape!([3, 0], 0, &[0]);
        shape!([7, 30, 11], [0, 2], &[0, 2]);
        shape!([7, 30, 11], [0, 1, 2], &[0, 1, 2]);
        shape!([2, 20_000], 1, &[1]);
        shape!([6000, 3], 1, &[1]);
    }
}

/// Weights of all magnitudes, among them infinities and NaN.
fn weights<W: Weight>(n: usize) -> Vec<W> {
    let (few, all) = (Data::Random.generate::<W>(n, 3), Data::Special.generate::<W>(n, 4));
    few.into_iter().zip(all).enumerate().map(|(i, (x, special))| if i % 23 == 5 { special } else { x }).collect()
}

/// Compares sums of weights with those of a weighted histogram of each group.
fn compare_weighted<T: Element, W: Weight>(
    groups: impl Iterator<Item = (Vec<T>, Vec<W>)>,
    bins: &Bins<T>,
    (sums, outside): (&[W::Sum], &[W::Sum]),
    accumulate: Accumulate,
) -> Result<(), Failure> {
    // The outputs held poison before.
    let add = |sum: W::Sum| if accumulate == Accumulate::Add { Arithmetic::add(poison::<W::Sum>(), sum) } else { sum };
    let (mut want, mut want_outside) = (Vec::new(), Vec::new());
    for (samples, weights) in groups {
        let found = Device::cpu().histogram(samples.weighted(&weights), bins)?;
        want.extend(found.sums.into_iter().map(add));
        want_outside.extend([found.outside.below, found.outside.above, found.outside.nan].map(add));
    }
    same(sums, &want, "sums")?;
    same(outside, &want_outside, "outside")
}

fn weighted<T: Element, W: Weight>(layout: Layout<T>, bins: usize, sizes: &[Segments], cases: &mut Vec<Case>) {
    for &(n, cut, at) in sizes {
        for accumulate in [Accumulate::Overwrite, Accumulate::Add] {
            let shape = format!("n = {n} at {at}, {bins} bins, {}, {accumulate:?}", cut.name()).to_lowercase();
            let form = format!("weighted {} of segments", W::TYPE);
            cases.push(Case::new(form, T::TYPE, shape, "in and out", n, move |device| {
                let bins = layout(bins)?;
                let (x, w, offsets): (Vec<T>, Vec<W>, Vec<u32>) =
                    (samples(n + at, bins.len()), weights(n), cut.offsets(n));
                let (x_there, w_there) = (device.upload(&x)?, device.upload(&w)?);
                let groups = offsets.len() - 1;
                let mut others = Vec::new();
                let sums = guarded::<W::Sum>(device, groups * bins.len(), at, |sums| {
                    others = guarded::<W::Sum>(device, OUTSIDE * groups, at, |outside| {
                        let input = x_there.view(at..)?.segments(&offsets).weighted(&w_there);
                        Ok(device.histogram_into(input, &bins, sums, outside, accumulate)?)
                    })?;
                    Ok(())
                })?;
                let groups = offsets.windows(2).map(|pair| {
                    let own = pair[0] as usize..pair[1] as usize;
                    (x[at..][own.clone()].to_vec(), w[own].to_vec())
                });
                compare_weighted(groups, &bins, (&sums, &others), accumulate)
            }));
        }
    }
}

fn weighted_lines(cases: &mut Vec<Case>) {
    for (shape, axis) in [([5usize, 90], 1usize), ([60, 7], 0)] {
        let (n, text) = (shape[0] * shape[1], format!("{shape:?} along {axis}, 20 bins"));
        cases.push(Case::new("weighted f32 along axes", f32::TYPE, text, "in and out", n, move |device| {
            let (bins, x, w) = (even::<f32>(20)?, samples::<f32>(n, 20), weights::<f32>(n));
            let (x_there, w_there) = (device.upload(&x)?, device.upload(&w)?);
            let found = device.histogram(x_there.nd(&shape)?.along(axis).weighted(w_there.nd(&shape)?), &bins)?;
            let at = |line: usize, i: usize| if axis == 1 { line * shape[1] + i } else { i * shape[1] + line };
            let line = |of: &[f32], line| (0..shape[axis]).map(|i| of[at(line, i)]).collect();
            let groups = (0..shape[1 - axis]).map(|group| (line(&x, group), line(&w, group)));
            let found = (found.sums.to_vec()?, found.outside.to_vec()?);
            compare_weighted(groups, &bins, (&found.0, &found.1), Accumulate::Overwrite)
        }));
    }
}

/// Checks invalid offsets: counts are unspecified, but calls write only to their outputs, and checked calls return an
/// error.
fn check_wrong<O: Offset>(device: &Device, n: usize) -> Result<(), Failure> {
    let (bins, x) = (Bins::<u32>::ids(50)?, samples::<u32>(n, 50));
    let mut rng = Rng::new(n as u64);
    let wild: Vec<O> = (0..300).map(|_| O::from_bits_lossy(rng.next() >> (rng.next() % 60))).collect();
    for accumulate in [Accumulate::Overwrite, Accumulate::Add] {
        counted::<u32, u64>(device, 299, 1, &bins, |counts, outside| {
            device.histogram_into(x.segments(&wild), &bins, counts, outside, accumulate)
        })?;
    }
    for offsets in [vec![0, n / 2, n / 3, n], vec![0, n, n + 1], vec![n + 1]] {
        let offsets: Vec<O> = offsets.into_iter().map(|x| O::from_i128(x as i128)).collect();
        let there = device.upload(&offsets)?;
        if device.histogram(x.segments(&offsets), &bins).is_ok() || device.histogram(x.segments(&there), &bins).is_ok()
        {
            return Err(Failure::Mismatch(format!("offsets {offsets:?} of {n} elements were accepted")));
        }
    }
    // Segments that reach beyond the input end with it.
    let beyond: Vec<O> = [1, n + 5, n + CANARY].map(|x| O::from_i128(x as i128)).into();
    let found = counted::<u32, u32>(device, 2, 0, &bins, |counts, outside| {
        device.histogram_into(x.segments(&beyond), &bins, counts, outside, Accumulate::Overwrite)
    })?;
    // The sums are unspecified, too.
    let (mut sums, mut outside) = (device.zeroed::<u64>(299 * 50)?, device.zeroed::<u64>(299 * OUTSIDE)?);
    let weighted = x.segments(&wild).weighted(&x);
    device.histogram_into(weighted, &bins, &mut sums, &mut outside, Accumulate::Overwrite)?;
    compare([x[1..].to_vec(), Vec::new()].into_iter(), &bins, (&found.0, &found.1), Accumulate::Overwrite)
}

pub(crate) fn cases(level: Level, cases: &mut Vec<Case>) {
    // The first shape has enough groups for several parts.
    const TINY: &[Segments] = &[(600, Cut::Every(2), 1), (600, Cut::Gaps, 0)];
    const QUICK: &[Segments] = &[
        (600, Cut::Every(7), 1),
        (600, Cut::Gaps, 0),
        (0, Cut::Empty, 0),
        (3001, Cut::PowerLaw, 3),
        (40_000, Cut::Huge, 1),
        (40_000, Cut::Every(300), 0),
        (9000, Cut::Mixed(12), 2),
    ];
    const FULL: &[Segments] = &[
        (1, Cut::Every(1), 1),
        (20_000, Cut::Crowded, 1),
        (300_000, Cut::PowerLaw, 1),
        (200_003, Cut::Every(50_000), 2),
    ];
    let sizes = if level == Level::Tiny { TINY } else { QUICK };
    let one = &sizes[..1];
    segments::<u32>("ids of segments", Bins::ids, 30, sizes, cases);
    segments::<f32>("even of segments", even, 256, sizes, cases);
    segments::<f32>("edges of segments", squares, 100, &sizes[..2], cases);
    lines::<u32>("ids along axes", Bins::ids, 30, level, cases);
    lines::<f32>("even along axes", even, 40, level, cases);
    let mut tuned = |name: &str, bins: usize, sizes: &[Segments], tuning: Tuning| {
        let mut own = Vec::new();
        segments::<u32>("ids of segments", Bins::ids, bins, sizes, &mut own);
        cases.extend(own.into_iter().map(|case| case.tuned(format!("ids of segments {name}"), tuning.clone())));
    };
    // An interpreter takes long for many counters.
    let few: &[Segments] = if level == Level::Tiny { &[(150, Cut::Every(40), 1)] } else { one };
    tuned("in ranges", 1000, few, small_gpu());
    tuned("in global memory", RANGED_BINS, few, small_gpu());
    tuned("in many parts", 9, sizes, Tuning::default().class(DeviceClass::Gpu).wide_offsets());
    weighted::<u32, f32>(Bins::ids, 9, one, cases);
    weighted::<f32, i32>(even, 20, one, cases);
    weighted_lines(cases);
    let mut own = Vec::new();
    weighted::<u32, f32>(Bins::ids, 9, one, &mut own);
    let batches = Tuning::default().class(DeviceClass::Gpu).wide_offsets();
    cases.extend(own.into_iter().map(|case| case.tuned("weighted f32 of segments in batches", batches.clone())));
    let wrong = |device: &Device| {
        check_wrong::<u32>(device, 2000)?;
        check_wrong::<u64>(device, 2000)
    };
    cases.push(Case::new("ids of wrong segments", ElementType::U32, "n = 2000", "in and out", 2000, wrong));
    if level >= Level::Quick {
        weighted::<f32, f32>(even, 100, &[(3001, Cut::PowerLaw, 3), (3001, Cut::Huge, 0)], cases);
        weighted::<u8, f64>(even, 9, &[(0, Cut::Empty, 0), (600, Cut::Gaps, 0)], cases);
        weighted::<f32, f16>(squares, 9, one, cases);
        weighted::<i64, u8>(even, 9, one, cases);
        segments::<u8>("even of segments", even, 9, sizes, cases);
        segments::<f16>("even of segments", even, 20, one, cases);
        segments::<i64>("even of segments", even, 20, one, cases);
        segments::<u8>("ids of segments", Bins::ids, 200, one, cases);
        segments::<u32>("ids of segments", Bins::ids, 70_000, one, cases);
    }
    if level == Level::Full {
        weighted::<u32, f32>(Bins::ids, 70_000, one, cases);
        weighted::<f64, f32>(squares, 300, sizes, cases);
        weighted::<u32, f64>(Bins::ids, 30, sizes, cases);
        weighted::<u16, i64>(even, 30, sizes, cases);
        segments::<u32>("ids of segments", Bins::ids, 5, FULL, cases);
        segments::<f64>("edges of segments", squares, 300, sizes, cases);
        segments::<i16>("edges of segments", squares, 50, sizes, cases);
        segments::<f64>("even of segments", even, 256, sizes, cases);
        segments::<crate::bf16>("even of segments", even, 20, sizes, cases);
        lines::<u8>("even along axes", even, 256, level, cases);
        lines::<u32>("ids along axes", Bins::ids, 70_000, Level::Tiny, cases);
    }
}

/// State of a benchmark case.
struct Measured {
    device: Device,
    x: Buffer<f32>,
    offsets: Buffer<u64>,
    bins: Bins<f32>,
    counts: Buffer<u32>,
    outside: Buffer<u64>,
}

fn bench(cut: Cut, bins: usize) -> Bench {
    let form = format!("even of segments {}, {bins} bins", cut.name());
    let groups = move |n: usize| cut.offsets::<u64>(n).len() - 1;
    let bytes = move |n: usize| ((n + groups(n) * bins) * 4) as u64;
    Bench::new(form, f32::TYPE, bytes, move |device, n| {
        let state = Measured {
            device: device.clone(),
            x: device.upload(&samples::<f32>(n, bins))?,
            offsets: device.upload(&cut.offsets::<u64>(n))?,
            bins: even(bins)?,
            counts: device.zeroed(groups(n) * bins)?,
            outside: device.zeroed(groups(n) * OUTSIDE)?,
        };
        let run = |this: &mut Measured| {
            let Measured { device, x, offsets, bins, counts, outside } = this;
            device.histogram_into(x.segments(&*offsets), bins, counts, outside, Accumulate::Overwrite)
        };
        let verify = |this: &mut Measured| {
            let (x, offsets) = (this.x.to_vec()?, this.offsets.to_vec()?);
            let want = Device::cpu().histogram(x.segments(&offsets), &this.bins)?;
            let want: Vec<u32> = want.counts.to_vec()?.iter().map(|&count| count as u32).collect();
            same(&this.counts.to_vec()?, &want, "counts")
        };
        Ok(Climb::new(state, |this| this.counts.fill(poison()), run, verify))
    })
}

pub(crate) fn benches(benches: &mut Vec<Bench>) {
    for (cut, bins) in [(Cut::Every(1 << 30), 256), (Cut::Every(4096), 256), (Cut::Every(4), 16), (Cut::PowerLaw, 64)] {
        benches.push(bench(cut, bins));
    }
}

pub(crate) fn programs(caps: &Tuned, programs: &mut Vec<ProgramSpec>) {
    use super::gpu::{Kind, keys, plan};
    use crate::histogram::gpu::Form;
    for element in ElementType::ALL {
        let maps: &[u32] = if element.is_float() { &[2, 3] } else { &[0, 1, 3] };
        for &map in maps {
            for (bins, counter, kind) in [
                (256, ElementType::U64, Kind::Segments(ElementType::U32)),
                (70_000, ElementType::U32, Kind::Segments(ElementType::U64)),
                (5 << 20, ElementType::U64, Kind::Lines),
            ] {
                let form = Form { element, bins, map };
                let plan = plan(1 << 28, (1 << 10, kind), form, None, counter, caps, 1 << 31);
                programs.extend(plan.into_iter().flat_map(|plan| [plan.count, plan.split]));
                programs.extend(keys(1 << 28, kind, form, caps).map(|keys| keys.program));
            }
        }
    }
}
