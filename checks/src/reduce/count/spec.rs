//! Cases and benchmark cases of counts.

use crate::ProgramSpec;
use crate::{
    Buffer, Device, Element, ElementType,
    bench::Bench,
    check::{
        Case, Failure, Level,
        data::{Data, Rng},
        guarded, poison, same,
    },
    ladder::Climb,
    op::{EqualTo, NonZero},
    tuning::Tuned,
    with_element,
};

/// Random bits. Of every 4 elements, about `zeros` are replaced by zeros, half of which are -0 for floats.
fn values<T: Element>(n: usize, zeros: u64) -> Vec<T> {
    let mut rng = Rng::new(n as u64);
    let mut x = Data::Bits.generate::<T>(n, n as u64);
    for x in &mut x {
        let chance = rng.next();
        if chance % 4 < zeros {
            *x = [T::ZERO, T::ADD_IDENTITY][(chance >> 32) as usize % 2];
        }
    }
    x
}

fn check<T: Element>(device: &Device, n: usize, offset: usize, zeros: u64) -> Result<(), Failure> {
    let all = values::<T>(offset + n, zeros);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let counted = |of: &dyn Fn(&T) -> bool| input.iter().filter(|&x| of(x)).count() as u64;
    let non_zero = counted(&|x| *x != T::ZERO);
    let got = guarded(device, 1, offset, |out| Ok(device.count_into(on_device.view(offset..)?, NonZero, out)?))?;
    same(&got, &[non_zero], "count")?;
    let any = guarded(device, 1, offset, |out| Ok(device.any_into(on_device.view(offset..)?, NonZero, out)?))?;
    same(&any, &[u8::from(non_zero > 0)], "any")?;
    let every = guarded(device, 1, offset, |out| Ok(device.all_into(on_device.view(offset..)?, NonZero, out)?))?;
    same(&every, &[u8::from(non_zero == n as u64)], "all")?;
    for value in [T::ZERO, input.last().copied().unwrap_or(T::ONE), T::from_f64(f64::NAN)] {
        let got =
            guarded(device, 1, offset, |out| Ok(device.count_into(on_device.view(offset..)?, EqualTo(value), out)?))?;
        same(&got, &[counted(&|x| *x == value)], &format!("count of {value:?}"))?;
    }
    Ok(())
}

pub(in crate::reduce) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Vec::new();
    for element in ElementType::ALL {
        use ElementType::{Bf16, F32, F64, I64, U8, U16};
        // Types of one size share a kernel. Floats also have -0.
        let tried = [U8, U16, Bf16, F32, F64].contains(&element) || (level > Level::Tiny && element == I64);
        if level < Level::Full && !tried {
            continue;
        }
        let row = 4096 / element.size();
        let mut sizes = vec![(0, 0), (1, 0), (row + 3, 1)];
        if level >= Level::Quick {
            sizes.extend([(255, 0), (16 * row, 0), (16 * row + 1, 3), (65 * row - 1, 1)]);
        }
        if level >= Level::Full {
            sizes.extend([(2, 0), (row - 1, 1), (row, 0), (64 * row + 7, 5), (1_000_003, 3), (4_000_037, 1)]);
        }
        for (n, offset) in sizes {
            let zeros: &[u64] = if level == Level::Full { &[0, 2, 4] } else { &[2] };
            for &zeros in zeros {
                with_element!(element, T => cases.push(Case::new(
                    "count", element, format!("n = {n} at {offset}"), format!("{zeros} of 4 zero"), n,
                    move |device| check::<T>(device, n, offset, zeros),
                )));
            }
        }
    }
    cases
}

/// A call that writes to a buffer of one element, and the function that gives the right result.
type Asked<T, R> = (fn(&Device, &Buffer<T>, &mut Buffer<R>) -> crate::Result<()>, fn(&[T]) -> R);

fn bench<T: Element, R: Element>(name: &str, (ask, right): Asked<T, R>) -> Bench {
    Bench::new(
        name,
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let host = Data::Random.generate::<T>(n, n as u64);
            let state = (device.clone(), device.upload(&host)?, device.zeroed::<R>(1)?);
            Ok(Climb::new(
                state,
                |(_, _, out)| out.fill(poison()),
                move |(device, x, out)| ask(device, x, out),
                move |(_, _, out)| same(&out.to_vec()?, &[right(&host)], "answer"),
            ))
        },
    )
}

pub(in crate::reduce) fn benches() -> Vec<Bench> {
    fn count<T: Element>() -> Bench {
        let right = |x: &[T]| x.iter().filter(|&&x| x != T::ZERO).count() as u64;
        bench::<T, u64>("count", (|device, x, out| device.count_into(x, NonZero, out), right))
    }
    vec![
        count::<u8>(),
        count::<f32>(),
        bench::<f32, u8>(
            "any",
            (|device, x, out| device.any_into(x, NonZero, out), |x| u8::from(x.iter().any(|&x| x != 0.0))),
        ),
        bench::<u8, u8>(
            "all",
            (|device, x, out| device.all_into(x, NonZero, out), |x| u8::from(x.iter().all(|&x| x != 0))),
        ),
    ]
}

pub(in crate::reduce) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let wide = [false, true];
    let forms = [1, 2, 4, 8].into_iter().flat_map(|size| wide.map(|wide| (size, wide)));
    forms
        .flat_map(|(size, wide)| {
            [true, false].map(|aligned| super::gpu::plan(1 << 20, size, aligned, caps, wide).program)
        })
        .collect()
}
