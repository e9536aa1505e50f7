//! Cases and benchmark cases of the extremes of segments.

use crate::{
    Buffer, Device, Element, Offset, Output, ProgramSpec, Result, Source, View,
    bench::Bench,
    bf16,
    check::{
        CANARY, Case, Failure, Level,
        data::{Data, Rng},
        guarded, same,
        segments::Cut,
    },
    f16,
    ladder::Climb,
    reduce::{End, Ends},
    tuning::Tuned,
};

/// Writes the values and indices of the extremes into views.
fn find<T: Element, C: Offset>(
    device: &Device,
    ends: Ends,
    (x, offsets): (View<'_, T>, View<'_, C>),
    (values, indices): (Output<'_, T>, Output<'_, u64>),
) -> Result<()> {
    match ends {
        Ends::Min => device.arg_min_into(x.segments(offsets), values, indices),
        Ends::Max => device.arg_max_into(x.segments(offsets), values, indices),
        Ends::Both => device.min_max_into(x.segments(offsets), values, indices),
    }
}

/// The extremes of segments by plain loops.
fn obvious<T: Element>(ends: Ends, x: &[T], offsets: &[usize]) -> (Vec<T>, Vec<u64>) {
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for &end in ends.list() {
        for pair in offsets.windows(2) {
            let segment = &x[pair[0]..pair[1]];
            let best =
                (1..segment.len()).fold(0, |best, i| if end.before(segment[i], segment[best]) { i } else { best });
            let nothing = if end == End::Min { T::HIGHEST } else { T::LOWEST };
            values.push(segment.get(best).copied().unwrap_or(nothing));
            indices.push(if segment.is_empty() { u64::MAX } else { best as u64 });
        }
    }
    (values, indices)
}

fn check<T: Element, C: Offset>(
    device: &Device,
    ends: Ends,
    all: &[T],
    cut: Cut,
    at: usize,
) -> std::result::Result<(), Failure> {
    let input = &all[at..];
    let offsets: Vec<C> = cut.offsets(input.len());
    let results = ends.list().len() * (offsets.len() - 1);
    let (x, there) = (device.upload(all)?, device.upload(&[vec![C::ZERO; at], offsets.clone()].concat())?);
    let mut indices = Vec::new();
    let values = guarded(device, results, at, |values| {
        indices = guarded(device, results, 1, |indices| {
            let inputs = (x.view(at..)?, there.view(at..)?);
            Ok(find(device, ends, inputs, (values.into(), indices.into()))?)
        })?;
        Ok(())
    })?;
    let (want, want_indices) = if device.is_cpu() {
        obvious(ends, input, &offsets.iter().map(|x| x.to_i128() as usize).collect::<Vec<_>>())
    } else {
        let cpu = Device::cpu();
        let (x, offsets) = (cpu.upload(input)?, cpu.upload(&offsets)?);
        let (mut want, mut want_indices) = (vec![T::ZERO; results], vec![0; results]);
        let to = ((&mut want).into(), (&mut want_indices).into());
        find(&cpu, ends, (x.view(..)?, offsets.view(..)?), to)?;
        (want, want_indices)
    };
    same(&indices, &want_indices, "indices")?;
    same(&values, &want, "values")
}

/// Checks invalid offsets: results are unspecified, but calls write only to their outputs, and checked calls return an
/// error.
fn check_wrong<C: Offset>(device: &Device, n: usize) -> std::result::Result<(), Failure> {
    let x = Data::Random.generate::<f32>(n, 1);
    let there = device.upload(&x)?;
    let both = |offsets: &[C]| {
        let (offsets, results) = (device.upload(offsets)?, 2 * (offsets.len() - 1));
        let mut indices = Vec::new();
        let values = guarded(device, results, 1, |values| {
            indices = guarded(device, results, 0, |indices| {
                let inputs = (there.view(..)?, offsets.view(..)?);
                Ok(find(device, Ends::Both, inputs, (values.into(), indices.into()))?)
            })?;
            Ok(())
        })?;
        Ok::<_, Failure>((values, indices))
    };
    let mut rng = Rng::new(n as u64);
    both(&(0..300).map(|_| C::from_bits_lossy(rng.next() >> (rng.next() % 60))).collect::<Vec<_>>())?;
    both(&(0..5000).map(|_| C::from_i128(i128::from(rng.below(n as u64 + 9)))).collect::<Vec<_>>())?;
    for offsets in [vec![0, n / 2, n / 3, n], vec![0, n, n + 1], vec![n + 1]] {
        let offsets: Vec<C> = offsets.into_iter().map(|x| C::from_i128(x as i128)).collect();
        let there = device.upload(&offsets)?;
        if device.arg_min(x.segments(&offsets)).is_ok() || device.min_max(x.segments(&there)).is_ok() {
            return Err(Failure::Mismatch(format!("offsets {offsets:?} of {n} elements were accepted")));
        }
    }
    // Segments that reach beyond the input end with it.
    let (values, indices) = both(&[0, n + 5, n + CANARY].map(|x| C::from_i128(x as i128)))?;
    let (want, want_indices) = obvious(Ends::Both, &x, &[0, n, n]);
    same(&indices, &want_indices, "clamped indices")?;
    same(&values, &want, "clamped values")
}

fn form<T: Element, C: Offset>(level: Level, ends: Ends, cases: &mut Vec<Case>) {
    let name = format!("{} of segments", ends.name());
    let mut cuts = vec![Cut::Every(1), Cut::Every(3), Cut::Every(16), Cut::PowerLaw, Cut::Huge, Cut::Gaps];
    let mut sizes = vec![1, 4103];
    if level >= Level::Quick {
        cuts.extend([Cut::Every(257), Cut::Mixed(16), Cut::Empty, Cut::Crowded]);
        sizes.extend([0, 32_777]);
    }
    if level >= Level::Full {
        cuts.extend([2, 5, 64, 1000, 4096, 65_536].map(Cut::Every));
        sizes.extend([2, 16, 1919, 3840, 300_001, 1_000_003]);
    }
    let data_sets: &[Data] = match level {
        Level::Tiny | Level::Quick => &[Data::Special, Data::Random],
        Level::Full => &[Data::Special, Data::Random, Data::Constant, Data::Extremes, Data::Nan],
    };
    for n in sizes {
        for (i, &cut) in cuts.iter().enumerate() {
            if n < 2 && i > 0 && level < Level::Full || matches!(cut, Cut::Every(1..3)) && n > 300_000 {
                continue;
            }
            let (at, data) = ([0, 3][i % 2], data_sets[i % data_sets.len()]);
            let shape = format!("n = {n} at {at}, segments {}, {} offsets", cut.name(), C::TYPE);
            cases.push(Case::new(&name, T::TYPE, shape, data.name(), n, move |device| {
                check::<T, C>(device, ends, &data.generate::<T>(n + at, n as u64), cut, at)
            }));
        }
    }
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    form::<f32, u32>(level, Ends::Min, cases);
    form::<f32, u32>(level, Ends::Both, cases);
    form::<u8, u64>(level, Ends::Max, cases);
    if level >= Level::Quick {
        form::<i64, u32>(level, Ends::Both, cases);
        form::<f16, u32>(level, Ends::Max, cases);
    }
    if level >= Level::Full {
        form::<f32, u64>(level, Ends::Max, cases);
        form::<f64, u32>(level, Ends::Both, cases);
        form::<bf16, u64>(Level::Quick, Ends::Min, cases);
        form::<i8, u32>(Level::Quick, Ends::Both, cases);
        form::<i16, u32>(Level::Quick, Ends::Min, cases);
        form::<u16, u32>(Level::Quick, Ends::Max, cases);
        form::<i32, u64>(Level::Quick, Ends::Both, cases);
        form::<u32, u32>(Level::Quick, Ends::Min, cases);
        form::<u64, u32>(Level::Quick, Ends::Both, cases);
    }
    let name = format!("{} of segments", Ends::Both.name());
    for n in [9, 1000, 20_000] {
        let shape = format!("n = {n}, wrong offsets");
        cases.push(Case::new(&name, f32::TYPE, shape.clone(), "wild", n, move |device| check_wrong::<u32>(device, n)));
        if level >= Level::Full {
            let shape = shape + ", u64";
            cases.push(Case::new(&name, f32::TYPE, shape, "wild", n, move |device| check_wrong::<u64>(device, n)));
        }
    }
}

/// Benchmark case that compares with the result of the same call on the CPU.
fn bench(ends: Ends, cut: Cut) -> Bench {
    struct Measured {
        device: Device,
        host: (Vec<f32>, Vec<u32>),
        x: Buffer<f32>,
        offsets: Buffer<u32>,
        values: Buffer<f32>,
        indices: Buffer<u64>,
    }
    Bench::new(
        format!("{} of segments {}", ends.name(), cut.name()),
        f32::TYPE,
        |n| 4 * n as u64,
        move |device, n| {
            let host = (Data::Random.generate::<f32>(n, n as u64), cut.offsets::<u32>(n));
            let (x, offsets) = (device.upload(&host.0)?, device.upload(&host.1)?);
            let results = ends.list().len() * (offsets.len() - 1);
            let (values, indices) = (device.zeroed(results)?, device.zeroed(results)?);
            Ok(Climb::new(
                Measured { device: device.clone(), host, x, offsets, values, indices },
                |this| this.indices.fill(u64::MAX),
                move |this| {
                    let Measured { device, x, offsets, values, indices, .. } = this;
                    find(device, ends, (x.view(..)?, offsets.view(..)?), (values.into(), indices.into()))
                },
                move |this| {
                    let cpu = Device::cpu();
                    let (x, offsets) = (cpu.upload(&this.host.0)?, cpu.upload(&this.host.1)?);
                    let (mut values, mut indices) = (vec![0.0; this.values.len()], vec![0; this.indices.len()]);
                    let to = ((&mut values).into(), (&mut indices).into());
                    find(&cpu, ends, (x.view(..)?, offsets.view(..)?), to)?;
                    same(&this.indices.to_vec()?, &indices, "indices")?;
                    same(&this.values.to_vec()?, &values, "values")
                },
            ))
        },
    )
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    let cuts = [Cut::Every(1), Cut::Every(16), Cut::Every(256), Cut::Huge, Cut::PowerLaw];
    let mut benches: Vec<_> = cuts.into_iter().map(|cut| bench(Ends::Min, cut)).collect();
    benches.push(bench(Ends::Both, Cut::Every(256)));
    benches
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::{Form, plan};
    let mut programs = Vec::new();
    for ends in [Ends::Min, Ends::Max, Ends::Both] {
        let forms = [
            Form::of::<f32>(ends, u32::TYPE),
            Form::of::<f32>(ends, u64::TYPE),
            Form::of::<f64>(ends, u32::TYPE),
            Form::of::<f16>(ends, u32::TYPE),
            Form::of::<u8>(ends, u32::TYPE),
            Form::of::<i64>(ends, u64::TYPE),
        ];
        for wide in [false, true] {
            let plans = forms.iter().filter_map(|form| plan(1 << 20, 100, form, caps, &|_| wide).ok());
            programs.extend(plans.map(|plan| plan.program));
        }
    }
    programs
}
