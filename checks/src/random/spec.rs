//! Spec of random numbers: cases, programs and benchmark cases.

use super::Philox;
use crate::{
    Device, Element, ElementType, Integer, ProgramSpec,
    bench::Bench,
    check::{Case, Failure, Level, Spec, guarded, poison, same_bytes, stands_for_its_size},
    ladder::Climb,
    tuning::Tuned,
    with_element, with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct Random;

/// Stream of the cases, with nonzero bits in each word of the counter and of the key.
const NUMBERS: Philox = Philox::new(0x0123_4567_89ab_cdef).stream(0x0fed_cba9_8765_4321);

/// Kind of numbers of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Whole,
    /// Numbers in a range of few values. The range of `Many` has many values, and that of `All` has all integers.
    Few,
    Many,
    All,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Whole => "random",
            Self::Few => "random of few",
            Self::Many => "random of many",
            Self::All => "random of all",
        }
    }

    /// Lowest and highest integer of the range.
    fn integers<I: Integer>(self) -> (I, I) {
        match self {
            Self::Few => (I::from_i128(3), I::from_i128(9)),
            Self::Many => (I::from_i128(I::LOWEST.to_i128() / 4 * 3), I::from_i128(I::HIGHEST.to_i128() / 7 * 5)),
            _ => (I::LOWEST, I::HIGHEST),
        }
    }

    /// Range of the floats; its end is not in it.
    fn floats(self) -> (f64, f64) {
        match self {
            // This range is so narrow that many numbers round to its end.
            Self::Few => (1.0, 1.03125),
            _ => (-3.5, 1000.0),
        }
    }
}

/// Block `number` of the stream, in 10 separate rounds as in the article (Salmon, Moraes, Dror and Shaw 2011).
fn block(number: u64, numbers: Philox) -> [u8; 16] {
    let mut x = [number as u32, (number >> 32) as u32, numbers.stream as u32, (numbers.stream >> 32) as u32];
    for round in 0..10u32 {
        let key = [
            (numbers.seed as u32).wrapping_add(round.wrapping_mul(0x9e37_79b9)),
            ((numbers.seed >> 32) as u32).wrapping_add(round.wrapping_mul(0xbb67_ae85)),
        ];
        let (a, b) = (u64::from(x[0]) * 0xd251_1f53, u64::from(x[2]) * 0xcd9e_8d57);
        x = [(b >> 32) as u32 ^ x[1] ^ key[0], b as u32, (a >> 32) as u32 ^ x[3] ^ key[1], a as u32];
    }
    let mut bytes = [0; 16];
    bytes.chunks_mut(4).zip(x).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Bytes `[i * len, (i + 1) * len)` of a stream, as a number.
fn bytes(numbers: Philox, i: u64, len: u64) -> u128 {
    let at = u128::from(i) * u128::from(len);
    let block = block((at / 16) as u64, numbers);
    let from = (at % 16) as usize;
    block[from..from + len as usize].iter().rev().fold(0, |all, &byte| all << 8 | u128::from(byte))
}

/// `x * count >> bits`, by schoolbook multiplication of 32-bit digits.
fn high(x: u128, bits: u32, count: u128) -> u128 {
    let digits = |x: u128| [x as u32, (x >> 32) as u32, (x >> 64) as u32, (x >> 96) as u32].map(u128::from);
    let mut sum = [0u128; 9];
    for (i, a) in digits(x).into_iter().enumerate() {
        for (j, b) in digits(count).into_iter().enumerate() {
            sum[i + j] += (a * b) & 0xffff_ffff;
            sum[i + j + 1] += (a * b) >> 32;
        }
    }
    for i in 0..8 {
        sum[i + 1] += sum[i] >> 32;
        sum[i] &= 0xffff_ffff;
    }
    let from = (bits / 32) as usize;
    sum[from] | sum[from + 1] << 32 | sum[from + 2] << 64
}

fn obvious<T: Element>(what: What, numbers: Philox, n: usize) -> Vec<T> {
    let size = size_of::<T>() as u64;
    let one = |i: u64| {
        let own = bytes(numbers, i, size) as u64;
        if T::TYPE.is_float() {
            let u = match T::TYPE {
                ElementType::F16 => (own >> 5) as f64 / 2048.0,
                ElementType::Bf16 => (own >> 8) as f64 / 256.0,
                ElementType::F32 => (own >> 8) as f64 / 16_777_216.0,
                _ => (own >> 11) as f64 / 9_007_199_254_740_992.0,
            };
            if what == What::Whole {
                return T::from_f64(u);
            }
            let (lower, upper) = what.floats();
            let x = if T::TYPE == ElementType::F64 {
                T::from_f64(lower + u * (upper - lower))
            } else {
                T::from_f64(f64::from(lower as f32 + u as f32 * (upper as f32 - lower as f32)))
            };
            if x < T::from_f64(upper) {
                return x;
            }
            // The largest number below `upper`. Its bits are those of `upper` minus 1, because `upper` is positive.
            return T::from_bits_lossy(oclprim::internals::data::bits(T::from_f64(upper)) - 1);
        }
        if what == What::Whole {
            return T::from_bits_lossy(own);
        }
        with_integer!(T::TYPE, I => {
            let (lowest, highest) = what.integers::<I>();
            let count = (highest.to_i128() - lowest.to_i128() + 1) as u128;
            let bits = if size == 8 { 128 } else { 64 };
            let above = high(bytes(numbers, i, u64::from(bits) / 8), bits, count);
            bytemuck::cast(I::from_i128(lowest.to_i128() + above as i128))
        }, unreachable!("floats are above"))
    };
    (0..n as u64).map(|i| one(numbers.skipped + i)).collect()
}

fn make<T: Element>(device: &Device, what: What, numbers: Philox, out: crate::ViewMut<'_, T>) -> crate::Result<()> {
    if what == What::Whole {
        return device.random_into(numbers, out);
    }
    if T::TYPE.is_float() {
        let (lower, upper) = what.floats();
        return device.random_into(numbers.within(T::from_f64(lower)..T::from_f64(upper)), out);
    }
    with_integer!(T::TYPE, I => {
        let (lowest, highest) = what.integers::<I>();
        device.random_into(numbers.within(bytemuck::cast::<I, T>(lowest)..=bytemuck::cast::<I, T>(highest)), out)
    }, unreachable!("floats are above"))
}

fn check<T: Element>(device: &Device, what: What, numbers: Philox, n: usize, offset: usize) -> Result<(), Failure> {
    let got = guarded(device, n, offset, |out| Ok(make::<T>(device, what, numbers, out)?))?;
    let want = if device.is_cpu() {
        obvious::<T>(what, numbers, n)
    } else {
        let mut want = Device::cpu().zeroed::<T>(n)?;
        make(&Device::cpu(), what, numbers, (&mut want).into())?;
        want.to_vec()?
    };
    same_bytes(&got, &want, "element ")
}

/// Checks the end of a stream, and a call beyond it.
fn check_end(device: &Device) -> Result<(), Failure> {
    let last = NUMBERS.skip(u64::MAX - 3);
    let got = device.random::<u64>(4, last.within(..))?.to_vec()?;
    same_bytes(&got, &obvious(What::All, last, 4), "element ")?;
    same_bytes(&device.random::<u8>(4, last)?.to_vec()?, &obvious(What::Whole, last, 4), "element ")?;
    match device.random::<u8>(5, last) {
        Err(error)
            if error.to_string()
                == format!("a stream of 2^64 elements has fewer than 5 from index {} on", u64::MAX - 3) =>
        {
            Ok(())
        }
        other => Err(Failure::Mismatch(format!("{other:?} instead of an error"))),
    }
}

fn bench<T: Element>(what: What) -> Bench {
    Bench::new(
        what.name(),
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            Ok(Climb::new(
                (device.clone(), device.zeroed::<T>(n)?),
                |(_, out)| out.fill(poison()),
                move |(device, out)| make(device, what, NUMBERS, out.into()),
                move |(_, out)| same_bytes(&out.to_vec()?, &obvious(what, NUMBERS, out.len()), "element "),
            ))
        },
    )
}

impl Spec for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        // A shape has the number of elements, the offset of the output, and the index in the stream.
        let mut shapes = vec![(0, 0, 0), (1, 1, 0), (700, 0, 5), (1500, 3, 0)];
        if level >= Level::Quick {
            shapes.extend([(255, 0, 0), (4097, 5, 1 << 40), (20_011, 3, 3), (70_001, 16, 1)]);
        }
        if level >= Level::Full {
            shapes.extend([(2, 7, 9), (257, 2, 2), (4096, 0, 0), (8191, 1, u64::MAX - 9000), (262_147, 13, 11)]);
        }
        for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
            for what in [What::Whole, What::Few, What::Many, What::All] {
                if element.is_float() && what == What::All {
                    continue;
                }
                for &(n, offset, skip) in &shapes {
                    let shape = format!("n = {n} at {offset}, from {skip} on");
                    with_element!(element, T => cases.push(Case::new(
                        what.name(), element, shape, "seed and stream", n,
                        move |device| check::<T>(device, what, NUMBERS.skip(skip), n, offset),
                    )));
                }
            }
        }
        cases.push(Case::new("end of a stream", ElementType::U64, "n = 4", "seed and stream", 4, check_end));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        vec![
            bench::<u32>(What::Whole),
            bench::<f32>(What::Whole),
            bench::<f64>(What::Whole),
            bench::<u32>(What::Few),
            bench::<u64>(What::Few),
            bench::<f32>(What::Many),
        ]
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        super::gpu::programs(caps)
    }
}
