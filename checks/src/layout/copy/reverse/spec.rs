//! Cases and benchmark cases of reversals.

use crate::{
    Device, ElementType, Source,
    bench::Bench,
    check::{Case, Failure, Level, data::random_bits, everywhere, guarded, poison, same_bytes},
    ladder::Climb,
    layout::copy::shared::Plain,
};
use crate::{ProgramSpec, tuning::Tuned};

fn check<T: Plain>(device: &Device, n: usize, from: usize, to: usize) -> Result<(), Failure> {
    let all: Vec<T> = random_bits(from + n + 3, n as u64);
    let input = device.upload(&all)?;
    let mut want = Vec::new();
    for i in 0..n {
        want.push(all[from + n - 1 - i]);
    }
    let got = guarded(device, n, to, |out| Ok(device.copy(input.view(from..from + n)?.reversed(), out)?))?;
    same_bytes(&got, &want, "reverse")?;
    let got = guarded(device, n, to, |mut out| {
        out.write(&all[from..from + n])?;
        Ok(device.reverse_in_place(out)?)
    })?;
    same_bytes(&got, &want, "reverse in place")
}

fn check_host(device: &Device) -> Result<(), Failure> {
    let mut x = [1u16, 2, 3, 4, 5];
    device.reverse_in_place(&mut x)?;
    same_bytes(&x, &[5, 4, 3, 2, 1], "reverse in place")?;
    same_bytes(&device.transform(x.reversed())?.to_vec()?, &[1, 2, 3, 4, 5], "reverse")?;
    match device.copy([1u16, 2].reversed(), &mut x) {
        Err(error) if error.to_string() == "reverse needs an output of 2 elements, got 5" => Ok(()),
        other => Err(Failure::Mismatch(format!("2 elements into 5 gave {other:?}"))),
    }
}

fn cases_of<T: Plain>(level: Level, name: &str, element: ElementType, cases: &mut Vec<Case>) {
    let sizes: &[usize] = match level {
        Level::Tiny => &[1, 33, 64, 2050],
        Level::Quick => &[0, 1, 2, 17, 64, 2050, 40_001],
        Level::Full => &[0, 1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 1023, 1024, 2050, 8191, 40_001, 300_000],
    };
    let offsets: &[(usize, usize)] = match level {
        Level::Tiny => &[(0, 0), (1, 2)],
        Level::Quick => &[(0, 0), (1, 2), (0, 7)],
        Level::Full => &[(0, 0), (1, 2), (0, 7), (3, 0), (5, 5), (2, 15)],
    };
    for &n in sizes {
        for &(from, to) in offsets {
            let shape = format!("n = {n} from {from} to {to}");
            cases.push(Case::new(format!("reverse {name}"), element, shape, "random", n, move |device| {
                everywhere(check::<T>(device, n, from, to))
            }));
        }
    }
}

pub(in crate::layout::copy) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Vec::new();
    cases_of::<u8>(level, "1 byte", ElementType::U8, &mut cases);
    cases_of::<u32>(level, "4 bytes", ElementType::U32, &mut cases);
    cases_of::<[u8; 3]>(level, "3 bytes", ElementType::U8, &mut cases);
    if level >= Level::Quick {
        cases_of::<u64>(level, "8 bytes", ElementType::U64, &mut cases);
        cases_of::<[u64; 5]>(level, "40 bytes", ElementType::U64, &mut cases);
    }
    if level >= Level::Full {
        cases_of::<u16>(level, "2 bytes", ElementType::U16, &mut cases);
        cases_of::<u128>(level, "16 bytes", ElementType::U64, &mut cases);
        cases_of::<[u32; 3]>(level, "12 bytes", ElementType::U32, &mut cases);
    }
    cases.push(Case::new("reverse on the host", ElementType::U16, "n = 5", "by hand", 5, check_host));
    cases
}

fn bench<T: Plain>(element: ElementType) -> Bench {
    Bench::new(
        "reverse",
        element,
        |n| 2 * (n * size_of::<T>()) as u64,
        |device, n| {
            let state = (device.clone(), device.upload(&random_bits::<T>(n, 1))?, device.zeroed::<T>(n)?);
            Ok(Climb::new(
                state,
                |(_, _, to)| to.fill(poison()),
                |(device, from, to)| device.copy(from.reversed(), to),
                |(_, from, to)| {
                    let mut want = from.to_vec()?;
                    want.reverse();
                    same_bytes(&to.to_vec()?, &want, "reverse")
                },
            ))
        },
    )
}

fn bench_in_place<T: Plain>(element: ElementType) -> Bench {
    Bench::new(
        "reverse in place",
        element,
        |n| 2 * (n * size_of::<T>()) as u64,
        |device, n| {
            let mut want = random_bits::<T>(n, 1);
            let from = device.upload(&want)?;
            want.reverse();
            let state = (device.clone(), from, device.zeroed::<T>(n)?, want);
            Ok(Climb::new(
                state,
                |(device, from, x, _)| device.copy(&*from, x),
                |(device, _, x, _)| device.reverse_in_place(x),
                |(_, _, x, want)| same_bytes(&x.to_vec()?, want, "reverse in place"),
            ))
        },
    )
}

pub(in crate::layout::copy) fn benches() -> Vec<Bench> {
    vec![
        bench::<u32>(ElementType::U32),
        bench::<u8>(ElementType::U8),
        bench_in_place::<u32>(ElementType::U32),
        bench_in_place::<u8>(ElementType::U8),
    ]
}

pub(in crate::layout::copy) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    super::gpu::programs(caps, &[1, 2, 3, 4, 6, 8, 12, 16, 40])
}
