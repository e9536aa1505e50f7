//! Cases and benchmark cases of transpositions of expressions.

use crate::{
    Device, Element, Input, Output, Result, Source,
    bench::Bench,
    bf16,
    check::{Case, Level, data::Data, guarded, poison, same},
    f16,
    ladder::Climb,
    layout::transpose::shared::obvious,
    op::Map,
};
use crate::{ProgramSpec, tuning::Tuned};

use oclprim::internals::source::{constant, load::Load};

/// Transposes an expression over the elements of a matrix.
type Run<T, U> = fn(&Device, Input<'_, T>, (usize, usize), Output<'_, U>) -> Result<()>;

/// A transposition, and the function that it applies to each element.
type Form<T, U> = (Run<T, U>, fn(T) -> U);

fn cast<T: Element, U: Element>(
    device: &Device,
    x: Input<'_, T>,
    shape: (usize, usize),
    to: Output<'_, U>,
) -> Result<()> {
    device.transpose_into(x.cast::<U>(), shape, to)
}

fn square() -> Map<fn(f32) -> f32> {
    Map::new(|x| x * x, "x * x")
}

const SQUARE: Form<f32, f32> = (|device, x, shape, to| device.transpose_into(x.map(square()), shape, to), |x| x * x);

/// Transposes a matrix after a cast to `$acc`, a product with `$factor`, and a cast to the output's type.
macro_rules! scaled {
    ($acc:ty, $factor:expr) => {
        |device, x, shape, to| device.transpose_into(x.cast::<$acc>().times(constant($factor)).cast(), shape, to)
    };
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

fn form<T: Element, U: Element>(level: Level, name: &str, cases: &mut Vec<Case>, (run, of_one): Form<T, U>) {
    let data_sets = if level == Level::Full { &[Data::Random, Data::Bits, Data::Extremes][..] } else { &[Data::Bits] };
    for (i, &(rows, cols)) in shapes(level).iter().enumerate() {
        let offsets: &[(usize, usize)] = match (i % 2, rows % 4 == 0 && cols % 4 == 0) {
            (0, false) => &[(0, 0)],
            // The kernel that moves four elements at a time needs multiples of four, except in the input's offset.
            (0, true) => &[(0, 0), (3, 4)],
            _ => &[(3, 1)],
        };
        for (&data, &(from, to)) in data_sets.iter().flat_map(|data| offsets.iter().map(move |at| (data, at))) {
            let shape = format!("{rows} x {cols} at {from} to {to}");
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
                    let x = device.upload(&all)?;
                    let got = guarded(device, rows * cols, to, |out| {
                        Ok(run(device, x.view(from..)?.into(), (rows, cols), out.into())?)
                    })?;
                    let mut want: Vec<U> = obvious(&all[from..], rows, cols).into_iter().map(of_one).collect();
                    if !device.is_cpu() {
                        run(&Device::cpu(), (&all[from..]).into(), (rows, cols), (&mut want).into())?;
                    }
                    same(&got, &want, "out")
                },
            ));
        }
    }
}

pub(in crate::layout::transpose) fn cases(level: Level, all: &mut Vec<Case>) {
    form(level, "cast", all, (cast, f16::from_f32));
    form(level, "cast", all, (cast, |x: f32| x as i8));
    form(level, "square", all, SQUARE);
    if level >= Level::Quick {
        form(level, "scaled", all, (scaled!(f32, 0.3), |x: f32| f16::from_f32(0.3 * x)));
        form(level, "cast", all, (cast, |x: i32| f64::from(x)));
        form(level, "scaled", all, (scaled!(i16, -77), |x: u8| i16::from(x).wrapping_mul(-77)));
    }
    if level == Level::Full {
        form(level, "cast", all, (cast, |x: f32| x as i32));
        form(level, "cast", all, (cast, |x: f32| x as u32));
        form(level, "cast", all, (cast, |x: f32| x as u64));
        form(level, "cast", all, (cast, |x: f32| x as i64));
        form(level, "cast", all, (cast, |x: f64| x as f32));
        form(level, "cast", all, (cast, |x: f64| x as i64));
        form(level, "cast", all, (cast, |x: f64| x as u8));
        form(level, "cast", all, (cast, |x: f64| bf16::from_f32(x as f32)));
        form(level, "cast", all, (cast, |x: f16| x.to_f32() as u16));
        form(level, "cast", all, (cast, |x: f16| bf16::from_f32(x.to_f32())));
        form(level, "cast", all, (cast, |x: bf16| x.to_f32()));
        form(level, "cast", all, (cast, |x: i64| x as f32));
        form(level, "cast", all, (cast, |x: u64| x as f64));
        form(level, "cast", all, (cast, |x: u64| x as i8));
        form(level, "cast", all, (cast, |x: i16| x as u64));
        form(level, "cast", all, (cast, |x: u32| f16::from_f32(x as f32)));
        form(level, "scaled", all, (scaled!(f64, 1.5), |x: f64| 1.5 * x));
        form(level, "scaled", all, (scaled!(i64, 3), |x: f64| (x as i64).wrapping_mul(3)));
    }
}

fn bench<T: Element, U: Element>(name: &str, run: Run<T, U>) -> Bench {
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
        let state = (device.clone(), x, device.zeroed::<U>(rows * cols)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            move |(device, x, out)| run(device, (&*x).into(), (rows, cols), out.into()),
            move |(_, x, out)| {
                let mut want = vec![U::ZERO; rows * cols];
                run(&Device::cpu(), (&x.to_vec()?).into(), (rows, cols), (&mut want).into())?;
                same(&out.to_vec()?, &want, "out")
            },
        ))
    })
}

pub(in crate::layout::transpose) fn benches() -> Vec<Bench> {
    vec![
        bench::<f32, f16>("cast", cast),
        bench::<f32, f32>("scaled", scaled!(f32, 0.5)),
        bench::<f32, f32>("square", SQUARE.0),
    ]
}

pub(in crate::layout::transpose) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use super::gpu::plan;
    fn load<T: Element, U: Element>() -> (crate::ElementType, Option<Load>) {
        (U::TYPE, Load::without_device(&Input::<T>::Host(&[]).cast::<U>(), true).ok())
    }
    let mapped = Load::without_device(&Input::<f32>::Host(&[]).map(square()), false).ok();
    let forms = [
        load::<f32, f16>(),
        load::<f32, i8>(),
        load::<f16, bf16>(),
        load::<bf16, u16>(),
        load::<u8, i32>(),
        load::<i64, f32>(),
        load::<f64, u64>(),
        load::<i32, f64>(),
        (f32::TYPE, mapped),
    ];
    let each = |(element, load): (crate::ElementType, Option<Load>)| {
        [false, true].map(|wide| plan(element, load.as_ref()?, (100, 100), true, caps, |_| wide).ok())
    };
    forms.into_iter().flat_map(each).flatten().map(|plan| plan.program).collect()
}
