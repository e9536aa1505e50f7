//! Cases and benchmark cases of transpositions of mapped elements.

use crate::{
    Device, Element, Result, View, ViewMut,
    bench::Bench,
    bf16,
    check::{Case, Level, data::Data, guarded, poison, same},
    f16,
    ladder::Climb,
    layout::transpose::shared::obvious,
    op::{Cast, Map, Mapping, Scale},
};
use crate::{ProgramSpec, tuning::Tuned};

/// A mapping, and a Rust function that computes the same result.
#[derive(Clone, Copy)]
struct Form<M, T, U> {
    map: M,
    obvious: fn(T) -> U,
}

type Function<T, U> = Map<fn(T) -> U>;

fn square() -> Function<f32, f32> {
    Map::new(|x| x * x, "x * x")
}

fn shapes(level: Level) -> &'static [(usize, usize)] {
    match level {
        Level::Tiny => &[(0, 5), (1, 7), (72, 40), (65, 33)],
        Level::Quick => &[(0, 5), (1, 7), (72, 40), (65, 33), (136, 200), (3, 70), (129, 127), (2, 5003), (5003, 2)],
        Level::Full => &[
            (0, 5),
            (7, 0),
            (1, 1),
            (1, 10_007),
            (3, 70),
            (65, 33),
            (64, 64),
            (129, 127),
            (136, 200),
            (1024, 1028),
            (2, 5003),
            (5003, 2),
            (331, 1021),
        ],
    }
}

fn form<T: Element, U: Element, M: Mapping<T, U> + Clone + Send + 'static>(
    level: Level,
    name: &str,
    cases: &mut Vec<Case>,
    form: Form<M, T, U>,
) {
    let data_sets = if level == Level::Full { &[Data::Random, Data::Bits, Data::Extremes][..] } else { &[Data::Bits] };
    for (i, &(rows, cols)) in shapes(level).iter().enumerate() {
        for &data in data_sets {
            let (from, to) = [(0, 0), (3, 1)][i % 2];
            let shape = format!("{rows} x {cols} at {from} to {to}");
            let form = Form { map: form.map.clone(), obvious: form.obvious };
            cases.push(Case::new(
                format!("{name} in {}", U::TYPE),
                T::TYPE,
                shape,
                data.name(),
                rows * cols,
                move |device| {
                    let flushed = T::TYPE.is_float() && device.capabilities()?.is_some_and(|caps| !caps.denormals);
                    let data = if flushed { Data::Special } else { data };
                    let all = data.generate::<T>(rows * cols + from, (rows * 31 + cols) as u64);
                    let run = |device: &Device, x: View<'_, T>, out: ViewMut<'_, U>| -> Result<()> {
                        device.transpose_map_into(x, rows, cols, &form.map, out)
                    };
                    let x = device.upload(&all)?;
                    let got = guarded(device, rows * cols, to, |out| Ok(run(device, x.view(from..)?, out)?))?;
                    let want = if device.is_cpu() {
                        obvious(&all[from..], rows, cols).into_iter().map(form.obvious).collect()
                    } else {
                        Device::cpu().transpose_map(&all[from..], rows, cols, &form.map)?.to_vec()?
                    };
                    same(&got, &want, "out")
                },
            ));
        }
    }
}

pub(in crate::layout::transpose) fn cases(level: Level, all: &mut Vec<Case>) {
    form(level, "cast", all, Form { map: Cast, obvious: f16::from_f32 });
    form(level, "cast", all, Form { map: Cast, obvious: |x: f32| x as i8 });
    form(level, "square", all, Form { map: square(), obvious: |x: f32| x * x });
    if level >= Level::Quick {
        // This case runs the same program as the first cast.
        form(level, "scaled", all, Form { map: Scale(0.3), obvious: |x: f32| f16::from_f32(0.3 * x) });
        form(level, "cast", all, Form { map: Cast, obvious: |x: i32| f64::from(x) });
        form(level, "scaled", all, Form { map: Scale(-77), obvious: |x: u8| i16::from(x).wrapping_mul(-77) });
    }
    if level == Level::Full {
        form(level, "cast", all, Form { map: Cast, obvious: |x: f32| x as i32 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f32| x as u32 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f32| x as u64 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f32| x as i64 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f64| x as f32 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f64| x as i64 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f64| x as u8 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f64| bf16::from_f32(x as f32) });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f16| x.to_f32() as u16 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: f16| bf16::from_f32(x.to_f32()) });
        form(level, "cast", all, Form { map: Cast, obvious: |x: bf16| x.to_f32() });
        form(level, "cast", all, Form { map: Cast, obvious: |x: i64| x as f32 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: u64| x as f64 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: u64| x as i8 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: i16| x as u64 });
        form(level, "cast", all, Form { map: Cast, obvious: |x: u32| f16::from_f32(x as f32) });
        form(level, "scaled", all, Form { map: Scale(1.5), obvious: |x: f64| 1.5 * x });
        form(level, "scaled", all, Form { map: Scale(3), obvious: |x: f64| (x as i64).wrapping_mul(3) });
    }
}

fn bench<T: Element, U: Element, M: Mapping<T, U> + Clone + 'static>(name: &str, map: M) -> Bench {
    let shape = |n: usize| {
        let rows = 1 << (n.max(1).ilog2() / 2);
        (rows, n / rows)
    };
    let bytes = move |n| {
        let (rows, cols) = shape(n);
        (rows * cols * (size_of::<T>() + size_of::<U>())) as u64
    };
    Bench::new(format!("{name} in {}", U::TYPE), T::TYPE, bytes, move |device, n| {
        let (rows, cols) = shape(n);
        let x = device.upload(&Data::Random.generate::<T>(rows * cols, n as u64))?;
        let (run, verify) = (map.clone(), map.clone());
        let state = (device.clone(), x, device.zeroed::<U>(rows * cols)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            move |(device, x, out)| device.transpose_map_into(&*x, rows, cols, &run, out),
            move |(_, x, out)| {
                let want = Device::cpu().transpose_map(&x.to_vec()?, rows, cols, &verify)?.to_vec()?;
                same(&out.to_vec()?, &want, "out")
            },
        ))
    })
}

pub(in crate::layout::transpose) fn benches() -> Vec<Bench> {
    vec![
        bench::<f32, f16, _>("cast", Cast),
        bench::<f32, f32, _>("scaled", Scale(0.5)),
        bench::<f32, f32, _>("square", square()),
    ]
}

pub(in crate::layout::transpose) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::{Form, plan};
    fn form<T: Element, U: Element>(map: &impl Mapping<T, U>) -> Form {
        Form { from: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, prelude: map.prelude() }
    }
    let forms = [
        form::<f32, f16>(&Cast),
        form::<f32, i8>(&Cast),
        form::<f16, bf16>(&Cast),
        form::<bf16, u16>(&Cast),
        form::<u8, i32>(&Cast),
        form::<i64, f32>(&Cast),
        form::<f64, u64>(&Cast),
        form::<i32, f64>(&Cast),
        form::<f32, f32>(&square()),
    ];
    let each = |form: &Form| [false, true].map(|wide| plan(form, (100, 100), true, caps, |_| wide).ok());
    forms.iter().flat_map(each).flatten().map(|plan| plan.program).collect()
}
