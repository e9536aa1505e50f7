//! Cases and benchmark cases of the moments of lines along an axis.

use super::MomentsRecord;
use crate::{
    Buffer, Device, Element, ElementType, Layout, Moments, NdView, Result,
    bench::Bench,
    bf16,
    check::{Case, Failure, Level, data::Data, guarded, layouts::LayoutKind, same},
    f16,
    ladder::Climb,
    reduce::statistics::spec::{Values, check_moments, same_moments},
    tuning::Tuned,
};
use crate::{ProgramSpec, with_element};

fn check<T: Element>(
    device: &Device,
    (shape, axis): (&[usize], usize),
    layout_kind: LayoutKind,
    data: Values,
    at: usize,
) -> Result<(), Failure> {
    let layout = layout_kind.layout(shape)?;
    let reach = layout.span().map_or(0, |(_, high)| high + 1);
    let all = data.generate::<T>(at + reach);
    let buffer = device.upload(&all)?;
    let mut axes: Vec<usize> = (0..shape.len()).filter(|&k| k != axis).collect();
    let outputs = axes.iter().map(|&k| shape[k]).product::<usize>();
    let records = guarded(device, outputs, at, |out| {
        let view = buffer.view(at..)?.with_layout(layout)?;
        Ok(device.moments_into(view.along(axis), out)?)
    })?;
    let got = moments_of(&records);
    same_counts(&got, shape[axis])?;
    let host = NdView::new(&all[at..], layout)?;
    if !device.is_cpu() {
        return same_moments(&got, &moments_of(&Device::cpu().moments(host.along(axis))?.to_vec()?));
    }
    axes.push(axis);
    let lines = host.permute(&axes)?.to_vec()?;
    for (got, line) in got.iter().zip(lines.chunks(shape[axis])) {
        check_moments(got, line)?;
    }
    Ok(())
}

fn moments_of<T: Element>(records: &[MomentsRecord<T>]) -> Vec<Moments> {
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        all.push(record.get());
    }
    all
}

fn same_counts(got: &[Moments], want: usize) -> Result<(), Failure> {
    let counts: Vec<u64> = got.iter().map(|found| found.count as u64).collect();
    same(&counts, &vec![want as u64; got.len()], "count")
}

/// Checks that empty lines are an error, and that an array without lines gives an empty result.
fn check_nothing<T: Element>(device: &Device) -> Result<(), Failure> {
    let none = device.upload::<T>(&[])?;
    match device.moments(none.nd(&[0, 4])?.along(0)) {
        Err(error) if error.kind() == crate::ErrorKind::Empty => {}
        other => return Err(Failure::Mismatch(format!("empty lines gave {other:?}"))),
    }
    same(&[device.moments(none.nd(&[0, 4])?.along(1))?.len() as u64], &[0], "records")
}

fn form<T: Element>(level: Level, shapes: &[(&'static [usize], usize)], offsets: &[usize], cases: &mut Vec<Case>) {
    use Values::{About100, Ends, Of};
    let layout_kinds = LayoutKind::of(level);
    let data_sets: &[Values] = match level {
        Level::Tiny => &[About100],
        Level::Quick => &[Of(Data::Special), About100],
        Level::Full => &[Of(Data::Random), Of(Data::Special), About100, Ends],
    };
    for &(shape, axis) in shapes {
        for &layout_kind in layout_kinds {
            for &data in data_sets.iter().filter(|data| T::TYPE.is_float() || !matches!(data, Ends)) {
                for &at in offsets {
                    let text = format!("{shape:?} along {axis} at {at}, {layout_kind:?}");
                    let n = shape.iter().product();
                    cases.push(Case::new("moments along an axis", T::TYPE, text, data.name(), n, move |device| {
                        check::<T>(device, (shape, axis), layout_kind, data, at)
                    }));
                }
            }
        }
    }
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    const TINY: &[(&[usize], usize)] = &[(&[3, 700], 1), (&[5000, 3], 0), (&[2, 33, 70], 1), (&[33, 300], 0)];
    const LONG: &[(&[usize], usize)] = &[(&[1, 66_000], 1), (&[5, 14], 1)];
    const QUICK: &[(&[usize], usize)] = &[
        (&[1, 1], 0),
        (&[300, 20], 1),
        (&[100_001], 0),
        (&[80_000, 2], 0),
        (&[3, 511, 129], 1),
        (&[130, 513], 1),
        (&[2, 3, 4, 5, 6], 2),
    ];
    const FULL: &[(&[usize], usize)] = &[
        (&[1000, 1], 1),
        (&[1000, 3], 1),
        (&[300, 17], 1),
        (&[200, 64], 1),
        (&[200, 65], 1),
        (&[30, 130], 1),
        (&[30, 300], 1),
        (&[7, 4096], 1),
        (&[3, 70_000], 1),
        (&[2, 1000], 0),
        (&[9, 5000], 0),
        (&[100, 1000], 0),
        (&[200, 31], 0),
        (&[9000, 33], 0),
        (&[4, 600, 16], 1),
        (&[2, 2, 2, 2, 2, 2, 2, 40], 3),
        (&[400_003], 0),
    ];
    cases.push(Case::new("moments along an axis", ElementType::F32, "[0, 4]", "none", 0, check_nothing::<f32>));
    form::<f32>(level, TINY, &[0, 3], cases);
    form::<f32>(level, LONG, &[0], cases);
    form::<i32>(level, &TINY[..2], &[0], cases);
    form::<f16>(level, &TINY[..1], &[0], cases);
    form::<i16>(level, &TINY[..1], &[0], cases);
    if level >= Level::Quick {
        form::<f32>(level, QUICK, &[0], cases);
        form::<f64>(level, &TINY[..2], &[0], cases);
        form::<u8>(level, &TINY[..2], &[3], cases);
        form::<bf16>(level, &TINY[..1], &[0], cases);
        form::<i8>(level, &TINY[..1], &[0], cases);
        form::<u16>(level, &TINY[..1], &[0], cases);
        form::<u32>(level, &TINY[..1], &[0], cases);
        form::<i64>(level, &TINY[..1], &[0], cases);
        form::<u64>(level, &TINY[..1], &[0], cases);
    }
    if level >= Level::Full {
        form::<f32>(level, FULL, &[0, 1], cases);
        form::<f64>(level, FULL, &[0], cases);
        form::<f16>(level, FULL, &[0], cases);
        form::<i64>(level, FULL, &[0], cases);
        form::<u8>(level, FULL, &[0], cases);
        form::<bf16>(level, TINY, &[0], cases);
        form::<i8>(level, TINY, &[0], cases);
        form::<i16>(level, TINY, &[0], cases);
        form::<u16>(level, TINY, &[0], cases);
        form::<u32>(level, TINY, &[0], cases);
        form::<u64>(level, TINY, &[0], cases);
    }
}

fn bench<T: Element>(name: &str, shape: fn(usize) -> [usize; 2], axis: usize) -> Bench {
    struct Measured<T: Element> {
        device: Device,
        host: Vec<T>,
        shape: [usize; 2],
        x: Buffer<T>,
        out: Buffer<MomentsRecord<T>>,
    }
    Bench::new(
        format!("moments over {name}"),
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let shape = shape(n);
            let host = Data::Random.generate::<T>(shape[0] * shape[1], n as u64);
            let (x, out) = (device.upload(&host)?, device.zeroed(shape[1 - axis])?);
            Ok(Climb::new(
                Measured { device: device.clone(), host, shape, x, out },
                |_| Ok(()),
                move |this| {
                    let view = this.x.nd(&this.shape)?;
                    this.device.moments_into(view.along(axis), &mut this.out)
                },
                move |this| {
                    let view = NdView::new(&this.host, Layout::contiguous(&this.shape)?)?;
                    let figures =
                        |records: Vec<MomentsRecord<T>>| records.iter().map(MomentsRecord::get).collect::<Vec<_>>();
                    let want = Device::cpu().moments(view.along(axis))?.to_vec()?;
                    same_moments(&figures(this.out.to_vec()?), &figures(want))
                },
            ))
        },
    )
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    fn square(n: usize) -> [usize; 2] {
        let rows = 1 << (n.max(1).ilog2() / 2);
        [rows, n / rows]
    }
    vec![
        bench::<f32>("rows, square", square, 1),
        bench::<f32>("columns, square", square, 0),
        bench::<f32>("rows of 16", |n| [n / 16, 16], 1),
        bench::<f32>("16 rows", |n| [16, n / 16], 1),
        bench::<f32>("16 columns", |n| [n / 16, 16], 0),
        bench::<f32>("columns of 16", |n| [16, n / 16], 0),
        bench::<u8>("columns, square", square, 0),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu;
    use crate::reduce::axis::Lines;
    let shapes = [([1 << 14, 1 << 14], 1), ([1 << 14, 1 << 14], 0), ([1 << 20, 16], 1), ([16, 1 << 20], 0)];
    let mut programs = Vec::new();
    for (shape, axis) in shapes {
        let lines = Layout::contiguous(&shape).and_then(|layout| Lines::of(&layout, axis));
        for element in ElementType::ALL {
            let form = with_element!(element, T => gpu::Form::of::<T>());
            for wide in [false, true] {
                for aligned in [false, true] {
                    let plans = lines.iter().map(|lines| gpu::plan(lines, &form, aligned, caps, wide));
                    programs.extend(plans.flatten().map(|plan| plan.program));
                }
            }
        }
    }
    programs
}
