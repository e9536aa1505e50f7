//! Spec of iota: cases, programs and benchmark cases.

use crate::{
    Device, Element, ElementType, ProgramSpec,
    bench::Bench,
    check::{Case, Failure, Level, Spec, guarded, poison, same, stands_for_its_size},
    ladder::Climb,
    tuning::Tuned,
    with_element,
};

/// The primitive's entry in the registry.
pub(crate) struct Iota;

fn obvious<T: Element>(start: T, step: T, n: usize) -> Vec<T> {
    let (a, b) = (start.to_f64(), step.to_f64());
    let mut next = start;
    let element = |i: usize| match T::TYPE {
        ElementType::F64 => T::from_f64(a + i as f64 * b),
        ty if ty.is_float() => T::narrow(T::Acc::from_f64(f64::from(a as f32 + i as f32 * b as f32))),
        _ => {
            let x = next;
            next = next.add(step);
            x
        }
    };
    (0..n).map(element).collect()
}

fn check<T: Element>(device: &Device, n: usize, offset: usize) -> Result<(), Failure> {
    let (start, step) = if T::TYPE.is_float() {
        (T::from_f64(-0.7), T::from_f64(0.3))
    } else {
        (T::HIGHEST.add(T::from_integer(-100)), T::from_integer(if offset == 0 { 1 } else { -7 }))
    };
    let got = guarded(device, n, offset, |out| Ok(device.iota_into(start, step, out)?))?;
    let want = if device.is_cpu() { obvious(start, step, n) } else { Device::cpu().iota(n, start, step)?.to_vec()? };
    same(&got, &want, "out")
}

fn bench<T: Element>(form: &str, start: T, step: T) -> Bench {
    Bench::new(
        form,
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            Ok(Climb::new(
                (device.clone(), device.zeroed::<T>(n)?),
                |(_, out)| out.fill(poison()),
                move |(device, out)| device.iota_into(start, step, out),
                move |(_, out)| same(&out.to_vec()?, &obvious(start, step, out.len()), "out"),
            ))
        },
    )
}

impl Spec for Iota {
    fn name(&self) -> &'static str {
        "iota"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut sizes = vec![0, 2, 1025];
        if level >= Level::Quick {
            sizes.extend([1, 255, 256, 257, 16_385, 100_003]);
        }
        let mut cases = Vec::new();
        // Each type costs a build.
        let known = |&element: &ElementType| match level {
            Level::Tiny => !element.is_float() && stands_for_its_size(level, element),
            Level::Quick => !element.is_float() || matches!(element, ElementType::F16 | ElementType::F32),
            Level::Full => true,
        };
        for element in ElementType::ALL.into_iter().filter(known) {
            for &n in &sizes {
                for offset in [0, 3] {
                    let data = if element.is_float() { "steps" } else { "wrapping" };
                    with_element!(element, T => cases.push(Case::new(
                        "iota", element, format!("n = {n} at {offset}"), data, n,
                        move |device| check::<T>(device, n, offset),
                    )));
                }
            }
        }
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        vec![bench("iota", 7u32, 1), bench("iota by 0.3", -0.7f32, 0.3)]
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        let wide = [false, true];
        let plan = |element, wide| Some(super::gpu::plan(1 << 20, element, caps, wide).ok()?.program);
        ElementType::ALL.into_iter().flat_map(|element| wide.map(|wide| plan(element, wide))).flatten().collect()
    }
}
