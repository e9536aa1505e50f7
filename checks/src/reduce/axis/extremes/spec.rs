//! Cases and benchmark cases of the extremes of lines along an axis.

use crate::ProgramSpec;
use crate::{
    Buffer, Device, Element, ElementType, Layout, NdView, Output, Result,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, layouts::LayoutKind, same},
    f16,
    ladder::Climb,
    reduce::{End, Ends},
    tuning::Tuned,
};

/// Writes the values and indices of the extremes into views.
fn find<T: Element>(
    device: &Device,
    ends: Ends,
    view: NdView<'_, T>,
    axis: usize,
    (values, indices): (Output<'_, T>, Output<'_, u64>),
) -> Result<()> {
    match ends {
        Ends::Min => device.arg_min_into(view.along(axis), values, indices),
        Ends::Max => device.arg_max_into(view.along(axis), values, indices),
        Ends::Both => device.min_max_into(view.along(axis), values, indices),
    }
}

fn obvious<T: Element>(line: &[T], end: End) -> usize {
    (1..line.len()).fold(0, |best, i| if end.before(line[i], line[best]) { i } else { best })
}

fn check<T: Element>(
    device: &Device,
    (shape, axis): (&[usize], usize),
    layout_kind: LayoutKind,
    ends: Ends,
    data: Data,
    at: usize,
) -> Result<(), Failure> {
    let layout = layout_kind.layout(shape)?;
    let reach = layout.span().map_or(0, |(_, high)| high + 1);
    let all = data.generate::<T>(at + reach, reach as u64);
    let buffer = device.upload(&all)?;
    let mut axes: Vec<usize> = (0..shape.len()).filter(|&k| k != axis).collect();
    let outputs = axes.iter().map(|&k| shape[k]).product::<usize>();
    let results = ends.list().len() * outputs;
    let mut indices = Vec::new();
    let values = guarded(device, results, at, |values| {
        indices = guarded(device, results, 1, |indices| {
            let view = buffer.view(at..)?.with_layout(layout)?;
            Ok(find(device, ends, view, axis, (values.into(), indices.into()))?)
        })?;
        Ok(())
    })?;
    let host = NdView::new(&all[at..], layout)?;
    let (mut want, mut want_indices) = (vec![T::ZERO; results], vec![0; results]);
    if device.is_cpu() {
        axes.push(axis);
        let (lines, len) = (host.permute(&axes)?.to_vec()?, shape[axis]);
        for (e, &end) in ends.list().iter().enumerate() {
            for o in 0..outputs {
                let line = &lines[o * len..(o + 1) * len];
                let best = obvious(line, end);
                (want[e * outputs + o], want_indices[e * outputs + o]) = (line[best], best as u64);
            }
        }
    } else {
        let to = ((&mut want).into(), (&mut want_indices).into());
        find(&Device::cpu(), ends, host, axis, to)?;
    }
    same(&indices, &want_indices, "indices")?;
    same(&values, &want, "values")
}

/// Checks that empty lines are an error, and that an array without lines gives an empty result.
fn check_nothing<T: Element>(device: &Device, ends: Ends) -> Result<(), Failure> {
    let none = device.upload::<T>(&[])?;
    let (mut values, mut indices) = (vec![T::ZERO; 8], vec![0; 8]);
    let lines = 4 * ends.list().len();
    let to = (Output::from(&mut values[..lines]), Output::from(&mut indices[..lines]));
    match find(device, ends, none.nd(&[0, 4])?, 0, to) {
        Err(error) if error.kind() == crate::ErrorKind::Empty => {}
        other => return Err(Failure::Mismatch(format!("empty lines gave {other:?}"))),
    }
    let to = (Output::from(&mut values[..0]), Output::from(&mut indices[..0]));
    Ok(find(device, ends, none.nd(&[0, 4])?, 1, to)?)
}

fn form<T: Element>(level: Level, ends: Ends, shapes: &[(&'static [usize], usize)], cases: &mut Vec<Case>) {
    let (name, layout_kinds) = (format!("{} along an axis", ends.name()), LayoutKind::of(level));
    let data_sets: &[(Data, usize)] = match level {
        Level::Tiny | Level::Quick => &[(Data::Random, 0), (Data::Special, 3)],
        Level::Full => &[(Data::Random, 0), (Data::Special, 3), (Data::Extremes, 0), (Data::Constant, 1)],
    };
    for &(shape, axis) in shapes {
        for &layout_kind in layout_kinds {
            for &(data, at) in data_sets {
                let text = format!("{shape:?} along {axis} at {at}, {layout_kind:?}");
                let n = shape.iter().product();
                cases.push(Case::new(&name, T::TYPE, text, data.name(), n, move |device| {
                    check::<T>(device, (shape, axis), layout_kind, ends, data, at)
                }));
            }
        }
    }
    cases.push(Case::new(&name, T::TYPE, "[0, 4]", "none", 0, move |device| check_nothing::<T>(device, ends)));
}

pub(in crate::reduce) fn cases(level: Level, cases: &mut Vec<Case>) {
    const TINY: &[(&[usize], usize)] =
        &[(&[3, 700], 1), (&[700, 3], 0), (&[5, 20], 1), (&[20, 300], 0), (&[2, 33, 70], 1), (&[1, 9000], 1)];
    const QUICK: &[(&[usize], usize)] = &[
        (&[1, 1], 0),
        (&[100_001], 0),
        (&[40_000, 2], 0),
        (&[3, 511, 129], 1),
        (&[130, 513], 1),
        (&[2, 3, 4, 5, 6], 2),
    ];
    const FULL: &[(&[usize], usize)] = &[
        (&[1000, 1], 1),
        (&[1000, 3], 1),
        (&[1000, 16], 1),
        (&[1000, 17], 1),
        (&[200, 64], 1),
        (&[3, 70_000], 1),
        (&[2, 1000], 0),
        (&[9, 5000], 0),
        (&[33, 1000], 0),
        (&[60_000, 5], 0),
        (&[9000, 33], 0),
        (&[4, 600, 16], 1),
        (&[2, 2, 2, 2, 2, 2, 2, 40], 3),
        (&[400_003], 0),
    ];
    form::<f32>(level, Ends::Min, TINY, cases);
    form::<f32>(level, Ends::Both, TINY, cases);
    form::<u8>(level, Ends::Max, &TINY[..2], cases);
    if level >= Level::Quick {
        form::<f32>(level, Ends::Both, QUICK, cases);
        form::<i64>(level, Ends::Max, &TINY[..2], cases);
    }
    if level >= Level::Full {
        form::<f32>(level, Ends::Max, FULL, cases);
        form::<f64>(level, Ends::Both, FULL, cases);
        form::<f16>(level, Ends::Min, FULL, cases);
        form::<i8>(level, Ends::Both, FULL, cases);
        form::<u64>(level, Ends::Both, TINY, cases);
        form::<crate::bf16>(level, Ends::Max, TINY, cases);
        form::<u32>(level, Ends::Max, TINY, cases);
        form::<i16>(level, Ends::Min, TINY, cases);
        form::<i32>(level, Ends::Both, TINY, cases);
        form::<u16>(level, Ends::Min, &TINY[..2], cases);
    }
}

fn bench(ends: Ends, name: &str, shape: fn(usize) -> [usize; 2], axis: usize) -> Bench {
    struct Measured {
        device: Device,
        host: Vec<f32>,
        shape: [usize; 2],
        x: Buffer<f32>,
        values: Buffer<f32>,
        indices: Buffer<u64>,
    }
    Bench::new(
        format!("{} over {name}", ends.name()),
        ElementType::F32,
        |n| 4 * n as u64,
        move |device, n| {
            let shape = shape(n);
            let host = Data::Random.generate::<f32>(shape[0] * shape[1], n as u64);
            let results = ends.list().len() * shape[1 - axis];
            let (values, indices) = (device.zeroed(results)?, device.zeroed(results)?);
            let x = device.upload(&host)?;
            Ok(Climb::new(
                Measured { device: device.clone(), host, shape, x, values, indices },
                |this| this.indices.fill(u64::MAX),
                move |this| {
                    let Measured { device, shape, x, values, indices, .. } = this;
                    find(device, ends, x.nd(&*shape)?, axis, (values.into(), indices.into()))
                },
                move |this| {
                    let view = NdView::new(&this.host, Layout::contiguous(&this.shape)?)?;
                    let (mut values, mut indices) = (vec![0.0; this.values.len()], vec![0; this.indices.len()]);
                    let to = ((&mut values).into(), (&mut indices).into());
                    find(&Device::cpu(), ends, view, axis, to)?;
                    same(&this.indices.to_vec()?, &indices, "indices")?;
                    same(&this.values.to_vec()?, &values, "values")
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
        bench(Ends::Min, "rows, square", square, 1),
        bench(Ends::Min, "columns, square", square, 0),
        bench(Ends::Min, "rows of 16", |n| [n / 16, 16], 1),
        bench(Ends::Min, "16 rows", |n| [16, n / 16], 1),
        bench(Ends::Min, "columns of 16", |n| [16, n / 16], 0),
        bench(Ends::Both, "rows, square", square, 1),
        bench(Ends::Both, "columns, square", square, 0),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu;
    use crate::reduce::axis::Lines;
    let mut programs = Vec::new();
    for axis in 0..2 {
        let lines = Layout::contiguous(&[1 << 14, 1 << 14]).and_then(|layout| Lines::of(&layout, axis));
        for ends in [Ends::Min, Ends::Max, Ends::Both] {
            let forms = [
                gpu::Form::of::<f32>(ends),
                gpu::Form::of::<f64>(ends),
                gpu::Form::of::<f16>(ends),
                gpu::Form::of::<u8>(ends),
                gpu::Form::of::<i64>(ends),
            ];
            for form in forms {
                for wide in [false, true] {
                    let plans = lines.iter().map(|lines| gpu::plan(lines, &form, true, caps, wide));
                    programs.extend(plans.flatten().map(|plan| plan.program));
                }
            }
        }
    }
    programs
}
