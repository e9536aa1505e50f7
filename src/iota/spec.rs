//! What is checked and measured of iota.

use crate::{
    Capabilities, Device, ElementType, Integer, ProgramSpec,
    bench::Bench,
    check::{Case, Failure, Level, Spec, guarded, poison, same, stands_for_its_size},
    ladder::Climb,
    with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct Iota;

fn obvious<T: Integer>(start: T, n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_i128(start.to_i128() + i as i128)).collect()
}

fn check<T: Integer>(device: &Device, n: usize, offset: usize) -> Result<(), Failure> {
    let start = T::HIGHEST.add(T::from_i128(-100));
    let got = guarded(device, n, offset, |out| Ok(device.iota_into(start, out)?))?;
    let want = if device.is_cpu() { obvious(start, n) } else { Device::cpu().iota(n, start)?.to_vec()? };
    same(&got, &want, "out")
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
        for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
            for &n in &sizes {
                for offset in [0, 3] {
                    with_integer!(element, T => cases.push(Case::new(
                        "iota", element, format!("n = {n} at {offset}"), "wrapping", n,
                        move |device| check::<T>(device, n, offset),
                    )), ());
                }
            }
        }
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        vec![Bench::new(
            "iota",
            ElementType::U32,
            |n| 4 * n as u64,
            |device, n| {
                Ok(Climb::new(
                    (device.clone(), device.zeroed::<u32>(n)?),
                    |(_, out)| out.fill(poison()),
                    |(device, out)| device.iota_into(7, out),
                    |(_, out)| same(&out.to_vec()?, &obvious(7, out.len()), "out"),
                ))
            },
        )]
    }

    #[cfg(feature = "opencl")]
    fn programs(&self, caps: &Capabilities) -> Vec<ProgramSpec> {
        let wide = [false, true];
        let integers = ElementType::ALL.into_iter().filter(|element| !element.is_float());
        integers.flat_map(|element| wide.map(|wide| super::gpu::plan(1 << 20, element, caps, wide).program)).collect()
    }

    #[cfg(not(feature = "opencl"))]
    fn programs(&self, _: &Capabilities) -> Vec<ProgramSpec> {
        Vec::new()
    }
}
