//! Cases and benchmark cases of adjacent differences.

use super::gpu;
use crate::{
    Device, Element, ElementType,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, operators::Tried, poison, same, stands_for_its_size},
    ladder::Climb,
    op::{Difference, Operator},
    select::shared::sizes,
    with_element,
};
use crate::{ProgramSpec, tuning::Tuned};

fn obvious<T: Element>(x: &[T], combine: impl Fn(T, T) -> T) -> Vec<T> {
    (0..x.len()).map(|i| if i == 0 { x[0] } else { combine(x[i], x[i - 1]) }).collect()
}

fn minus<T: Element>(a: T, b: T) -> T {
    match T::TYPE.is_float() {
        true => T::narrow(<T::Acc as Element>::from_f64(a.to_f64() - b.to_f64())),
        false => a.add(b.mul(T::from_integer(-1))),
    }
}

fn check<T: Element>(device: &Device, n: usize, offset: usize, data: Data) -> Result<(), Failure> {
    let all = data.generate::<T>(offset + n, n as u64);
    let on_device = device.upload(&all)?;
    let got = guarded(device, n, 2 * offset, |out| {
        Ok(device.adjacent_difference_into(on_device.view(offset..)?, Difference, out)?)
    })?;
    same(&got, &obvious(&all[offset..], minus), "differences")
}

fn saturating() -> Tried<u8> {
    Operator::new("saturating difference", 0, u8::saturating_sub as fn(u8, u8) -> u8, "sub_sat(a, b)")
}

fn check_by(device: &Device, n: usize, offset: usize, data: Data) -> Result<(), Failure> {
    let all = data.generate::<u8>(offset + n, n as u64);
    let on_device = device.upload(&all)?;
    let got = guarded(device, n, 2 * offset, |out| {
        Ok(device.adjacent_difference_into(on_device.view(offset..)?, &saturating(), out)?)
    })?;
    same(&got, &obvious(&all[offset..], u8::saturating_sub), "differences")
}

type Check = fn(&Device, usize, usize, Data) -> Result<(), Failure>;

fn cases_of(level: Level, form: &str, element: ElementType, check: Check, cases: &mut Vec<Case>) {
    for (i, n) in sizes(level, element.size()).into_iter().enumerate() {
        let data_sets = if level == Level::Full { &Data::ALL[..] } else { &[[Data::Bits, Data::Special][i % 2]] };
        for &data in data_sets {
            let offset = i % 3;
            let shape = format!("n = {n} at {offset}");
            cases.push(Case::new(form, element, shape, data.name(), n, move |device| check(device, n, offset, data)));
        }
    }
}

pub(in crate::select) fn cases(level: Level, cases: &mut Vec<Case>) {
    for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
        with_element!(element, T => cases_of(level, "adjacent difference", element, check::<T>, cases));
    }
    cases_of(level, "adjacent difference by an operator", ElementType::U8, check_by, cases);
}

fn bench<T: Element>() -> Bench {
    Bench::new(
        "adjacent difference",
        T::TYPE,
        |n| 2 * (n * size_of::<T>()) as u64,
        |device, n| {
            let host = Data::Random.generate::<T>(n, n as u64);
            Ok(Climb::new(
                (device.clone(), device.upload(&host)?, device.zeroed::<T>(n)?),
                |(_, _, out)| out.fill(poison()),
                |(device, x, out)| device.adjacent_difference_into(&*x, Difference, out),
                move |(_, _, out)| same(&out.to_vec()?, &obvious(&host, minus), "output"),
            ))
        },
    )
}

pub(in crate::select) fn benches() -> Vec<Bench> {
    vec![bench::<u32>(), bench::<f32>(), bench::<u8>()]
}

pub(in crate::select) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let mut programs = Vec::new();
    for (aligned, wide) in [(false, false), (true, false), (true, true)] {
        let mut add = |element, source: Option<&crate::op::Code>| {
            programs.extend(gpu::plan(1 << 20, element, source, aligned, caps, wide).map(|plan| plan.program));
        };
        ElementType::ALL.into_iter().for_each(|element| add(element, None));
        add(ElementType::U8, Some(&saturating().source()));
    }
    programs
}
