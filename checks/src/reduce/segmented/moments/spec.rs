//! Cases and benchmark cases of the moments of segments.

use crate::{
    Buffer, Device, Element, ElementType, Input, Moments, MomentsRecord, Offset, ProgramSpec, Source,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level,
        data::{Data, Rng},
        guarded, poison, same,
        segments::Cut,
    },
    f16,
    ladder::Climb,
    reduce::statistics::spec::{Values, check_moments, same_moments},
    tuning::Tuned,
    with_element,
};

fn moments_of<T: Element>(records: &[MomentsRecord<T>]) -> Vec<Moments> {
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        all.push(record.get());
    }
    all
}

fn check<T: Element, C: Offset>(device: &Device, n: usize, cut: Cut, data: Values, at: usize) -> Result<(), Failure> {
    let all = data.generate::<T>(at + n);
    let (input, offsets) = (&all[at..], cut.offsets::<C>(n));
    let (there, padded) = (device.upload(&all)?, [vec![C::ZERO; at], offsets.clone()].concat());
    let offsets_there = device.upload(&padded)?;
    let records = guarded(device, offsets.len() - 1, at, |out| {
        let segments = there.view(at..)?.segments(offsets_there.view(at..)?);
        Ok(device.moments_into(segments, out)?)
    })?;
    let got = moments_of(&records);
    let segments = || Ok::<_, Failure>(there.view(at..)?.segments(offsets_there.view(at..)?));
    let means = got.iter().map(|found| found.mean).collect::<Vec<_>>();
    same(&device.mean(segments()?)?, &means, "means")?;
    let variances = got.iter().map(|found| found.variance).collect::<Vec<_>>();
    same(&device.variance(segments()?)?, &variances, "variances")?;
    let lengths = offsets.windows(2).map(|ends| (ends[1].to_i128() - ends[0].to_i128()) as u64);
    same(&got.iter().map(|found| found.count as u64).collect::<Vec<_>>(), &lengths.collect::<Vec<_>>(), "count")?;
    if !device.is_cpu() {
        return same_moments(&got, &moments_of(&Device::cpu().moments(input.segments(&offsets))?.to_vec()?));
    }
    for (i, (got, ends)) in got.iter().zip(offsets.windows(2)).enumerate() {
        let own = &input[ends[0].to_i128() as usize..ends[1].to_i128() as usize];
        if own.is_empty() {
            same(&[got.mean, got.variance, got.sum], &[f64::NAN, f64::NAN, 0.0], "an empty segment")?;
            continue;
        }
        check_moments(got, own)?;
        // A record has the bits of that of a line.
        let line = device.moments(Input::from(own).nd(&[own.len()])?.along(0))?.to_vec()?;
        if line[0] != records[i] {
            return Err(Failure::Mismatch(format!("segment {i} has {got:?}, and a line {:?}", line[0])));
        }
    }
    Ok(())
}

/// Checks invalid offsets: results are unspecified, but calls write only to their outputs, and checked calls return an
/// error.
fn check_wrong(device: &Device, n: usize) -> Result<(), Failure> {
    let x = Data::Random.generate::<f32>(n, 1);
    let mut rng = Rng::new(n as u64);
    let wild: Vec<u64> = (0..300).map(|_| rng.next() >> (rng.next() % 60)).collect();
    guarded(device, 299, 1, |out| Ok(device.moments_into(x.segments(&wild), out)?))?;
    if device.mean(x.segments(&[0u32, 5, 4])).is_ok() {
        return Err(Failure::Mismatch("an offset beyond the next one was accepted".into()));
    }
    match device.moments_into(x.segments(&[0u32, 1]), &mut device.zeroed(2)?) {
        Err(error) if error.to_string() == "moments of segments needs an output of 1 elements, got 2" => {}
        other => return Err(Failure::Mismatch(format!("two records for one segment: {other:?}"))),
    }
    // Segments that reach beyond the input end with it.
    let beyond = [0, n as u64 + 9, n as u64 + 9];
    let got = guarded(device, 2, 0, |out| Ok(device.moments_into(x.segments(&beyond), out)?))?;
    same(&moments_of(&got).iter().map(|found| found.count as u64).collect::<Vec<_>>(), &[n as u64, 0], "clamped")
}

fn form<T: Element, C: Offset>(level: Level, some: bool, cases: &mut Vec<Case>) {
    use Values::{About100, Ends, Of};
    let mut all = vec![(3001, Cut::PowerLaw), (13_000, Cut::Huge)];
    if !some {
        all.extend([(700, Cut::Every(1)), (2001, Cut::Every(65)), (5000, Cut::Mixed(33)), (20_001, Cut::Gaps)]);
    }
    if level >= Level::Quick {
        all.extend([(0, Cut::Empty), (70_001, Cut::Huge), (20_000, Cut::Every(257)), (30_001, Cut::Crowded)]);
    }
    if level >= Level::Full {
        all.extend([2, 4, 5, 64, 128, 129, 512, 513, 4096, 4097, 8192, 9000].map(|len| (50_001, Cut::Every(len))));
        all.extend([(1_000_003, Cut::PowerLaw), (1_000_003, Cut::Huge), (300_000, Cut::Mixed(100))]);
    }
    let data_sets: &[Values] = match level {
        Level::Tiny => &[About100],
        Level::Quick => &[Of(Data::Special), About100],
        Level::Full => &[Of(Data::Random), Of(Data::Special), About100, Ends],
    };
    for (i, (n, cut)) in all.into_iter().enumerate() {
        for &data in data_sets.iter().filter(|data| T::TYPE.is_float() || !matches!(data, Ends)) {
            let at = [0, 3][i % 2];
            let shape = format!("n = {n} at {at}, segments {}, {} offsets", cut.name(), C::TYPE);
            cases.push(Case::new("moments of segments", T::TYPE, shape, data.name(), n, move |device| {
                check::<T, C>(device, n, cut, data, at)
            }));
        }
    }
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    form::<f32, u32>(level, false, cases);
    form::<i32, u64>(level, true, cases);
    form::<f16, u32>(level, true, cases);
    if level >= Level::Quick {
        form::<f64, u64>(level, true, cases);
        form::<u8, u32>(level, true, cases);
        form::<bf16, u32>(level, true, cases);
        form::<i64, u32>(level, true, cases);
    }
    if level >= Level::Full {
        form::<i8, u32>(level, true, cases);
        form::<i16, u32>(level, true, cases);
        form::<u16, u32>(level, true, cases);
        form::<u32, u32>(level, true, cases);
        form::<u64, u32>(level, true, cases);
    }
    for n in [9, 20_000] {
        let shape = format!("n = {n}, wrong offsets");
        cases.push(Case::new("moments of segments", ElementType::F32, shape, "wild", n, move |device| {
            check_wrong(device, n)
        }));
    }
}

fn bench<T: Element>(cut: Cut) -> Bench {
    struct Measured<T: Element> {
        device: Device,
        x: Buffer<T>,
        offsets: Buffer<u32>,
        out: Buffer<MomentsRecord<T>>,
    }
    Bench::new(
        format!("moments of segments {}", cut.name()),
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let (x, offsets) = (Data::Random.generate::<T>(n, n as u64), cut.offsets::<u32>(n));
            let out = device.zeroed(offsets.len() - 1)?;
            let (x, offsets) = (device.upload(&x)?, device.upload(&offsets)?);
            Ok(Climb::new(
                Measured { device: device.clone(), x, offsets, out },
                |this| this.out.fill(poison()),
                |this| this.device.moments_into(this.x.segments(&this.offsets), &mut this.out),
                |this| {
                    let (x, offsets) = (this.x.to_vec()?, this.offsets.to_vec()?);
                    let want = Device::cpu().moments(x.segments(&offsets))?.to_vec()?;
                    same_moments(&moments_of(&this.out.to_vec()?), &moments_of(&want))
                },
            ))
        },
    )
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    vec![
        bench::<f32>(Cut::Every(16)),
        bench::<f32>(Cut::Every(256)),
        bench::<f32>(Cut::Every(65_536)),
        bench::<f32>(Cut::PowerLaw),
        bench::<f32>(Cut::Huge),
        bench::<i32>(Cut::Every(256)),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::plan;
    use crate::reduce::{
        axis::moments::gpu::{Form, plan_figures},
        statistics::Figure,
    };
    let mut programs = Vec::new();
    for element in ElementType::ALL.into_iter().filter(|_| caps.fp64) {
        programs.extend([Figure::Mean, Figure::Variance].map(|figure| plan_figures(1 << 20, element, figure, caps).0));
    }
    for element in ElementType::ALL {
        let form = with_element!(element, T => Form::of::<T>());
        for (offset, wide) in [(ElementType::U32, false), (ElementType::U64, false), (ElementType::U64, true)] {
            // Short segments have a work-item each, long ones a team each.
            for segments in [1 << 20, 1 << 10] {
                programs.extend(plan(1 << 20, segments, &form, offset, caps, wide).map(|plan| plan.program));
            }
        }
    }
    programs
}
