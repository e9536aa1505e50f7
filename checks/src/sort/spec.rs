//! Spec of sorts: cases, programs and benchmark cases.

use bytemuck::Pod;

use super::{
    keys::Order,
    shared::{Made, Way, numbered},
};
use crate::{
    Device, Element, ElementType, Offset, ProgramSpec, Source,
    bench::Bench,
    check::{Case, Failure, Level, Spec, data::Data, everywhere, guarded, keys::Keys, poison, same_bytes},
    ladder::Climb,
    tuning::Tuned,
    with_element,
};

/// The primitive's entry in the registry.
pub(crate) struct Sort;

/// Input of a case.
#[derive(Clone, Copy, Debug)]
struct What {
    n: usize,
    offset: usize,
    keys: Keys,
    way: Way,
}

impl What {
    fn shape(&self) -> String {
        format!("n = {} at {}, {}", self.n, self.offset, self.way.text())
    }
}

fn check_keys<T: Made>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, keys, way } = what;
    let all = T::make(keys, n + offset);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let got = guarded(device, n, offset, |out| Ok(device.sort_into(on_device.view(offset..)?, way.order(), out)?))?;
    let want = if device.is_cpu() {
        way.argsort(input).into_iter().map(|index| input[index]).collect()
    } else {
        Device::cpu().sort(input, way.order())?.to_vec()?
    };
    same_bytes(&got, &want, "keys")
}

/// Checks pairs whose values are indices of keys, so that a wrong order of equal keys shows.
fn check_pairs<K: Made, V: Pod + Send + Sync + PartialEq + std::fmt::Debug>(
    device: &Device,
    what: What,
) -> Result<(), Failure> {
    let What { n, offset, keys, way } = what;
    let all = K::make(keys, n + offset);
    let values: Vec<V> = numbered(n + offset);
    let (on_device, values_there) = (device.upload(&all)?, device.upload(&values)?);
    let (input, values) = (&all[offset..], &values[offset..]);
    let mut got_values = Vec::new();
    let got = guarded(device, n, offset, |out| {
        got_values = guarded(device, n, offset, |values_out| {
            let (keys, values) = (on_device.view(offset..)?, values_there.view(offset..)?);
            Ok(device.sort_into(keys.with(values), way.order(), (out, values_out))?)
        })?;
        Ok(())
    })?;
    let (want, want_values) = if device.is_cpu() {
        way.argsort(input).into_iter().map(|index| (input[index], values[index])).unzip()
    } else {
        let (keys, values) = Device::cpu().sort(input.with(values), way.order())?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

fn check_indices<T: Made, I: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, keys, way } = what;
    let all = T::make(keys, n + offset);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let got =
        guarded(device, n, offset, |out| Ok(device.argsort_into(on_device.view(offset..)?, way.order(), out)?))?;
    let want: Vec<I> = if device.is_cpu() {
        way.argsort(input).into_iter().map(|index| I::from_bits_lossy(index as u64)).collect()
    } else {
        Device::cpu().argsort(input, way.order())?.to_vec()?
    };
    same_bytes(&got, &want, "indices")
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let (mut keys, mut values) = ([0i8; 4], [0u16; 4]);
    device.sort_into(&[3i8, -1, 2, -1], Order::ascending(), &mut keys)?;
    same_bytes(&keys, &[-1, -1, 2, 3], "keys")?;
    device.sort_into([3i8, -1, 2, -1].with(&[10, 11, 12, 13]), Order::descending(), (&mut keys, &mut values))?;
    same_bytes(&keys, &[3, 2, -1, -1], "keys of pairs")?;
    same_bytes(&values, &[10, 12, 11, 13], "values")?;
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let short = device.sort_into(&[1i8, 2], Order::ascending(), &mut keys);
    refused(short, "a sort needs an output of 2 elements, got 4")?;
    let unequal = device.sort([1u8, 2].with(&[1u8]), Order::ascending()).map(drop);
    refused(unequal, "sorting 2 keys needs as many values, got 1")?;
    let nothing = device.sort([1u8].with(&[()]), Order::ascending()).map(drop);
    refused(nothing, "values must have at least 1 byte")?;
    let beyond = device.sort(&[1u8], Order::ascending().bits(2..9)).map(drop);
    refused(beyond, "bits 2..9 are not a range of the 8 bits of u8")
}

type Check = fn(&Device, What) -> Result<(), Failure>;

/// Cases of an operation.
fn cases_of<K: Made>(level: Level, form: &str, check: Check, cases: &mut Vec<Case>) {
    let (element, w, any) = (K::ELEMENT, 8 * size_of::<K>() as u32, Keys::As(Data::Bits));
    let mut all = vec![
        (0, 0, any, Way::Up),
        (1, 1, any, Way::Down),
        (300, 3, any, Way::Up),
        (600, 0, Keys::Signs, Way::Down),
        (700, 1, Keys::Byte, Way::Up),
        (600, 2, Keys::Bytes, Way::DownBy(1, w - 2)),
    ];
    if level == Level::Tiny && w >= 64 {
        // An interpreter takes long for so many passes.
        all.drain(..all.len() - if w == 64 { 3 } else { 1 });
    }
    if level >= Level::Quick {
        all.extend([
            (257, 0, Keys::As(Data::Constant), Way::Up),
            (4097, 1, Keys::Two, Way::Up),
            (1500, 2, Keys::As(Data::Nan), Way::Down),
            (5000, 0, Keys::Sorted, Way::Down),
            (20_011, 3, any, Way::Up),
        ]);
    }
    if level >= Level::Full {
        for n in [2, 3, 31, 255, 256, 1025, 4095, 4096, 8193, 262_147, 1_000_003] {
            all.extend([(n, n % 4, any, Way::Up), (n, 0, any, Way::Down)]);
        }
        for (i, keys) in Keys::ALL.into_iter().enumerate() {
            all.extend([(20_011, i % 4, keys, Way::Up), (9001, 1, keys, Way::Down)]);
        }
        for (begin, end) in [(0, 0), (w, w), (0, 1), (w - 1, w), (3, w / 2 + 2), (w / 2, w)] {
            all.extend([(5003, 1, any, Way::UpBy(begin, end)), (5003, 0, any, Way::DownBy(begin, end))]);
        }
    }
    for (n, offset, keys, way) in all {
        let what = What { n, offset, keys, way };
        cases.push(Case::new(form, element, what.shape(), keys.name(), n, move |device| {
            everywhere(check(device, what))
        }));
    }
}

impl Spec for Sort {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        // Kernels depend on the key size only, so `Tiny` takes one type of each size.
        let stands =
            |element| matches!(element, ElementType::U8 | ElementType::F16 | ElementType::F32 | ElementType::I64);
        for element in ElementType::ALL.into_iter().filter(|&element| level > Level::Tiny || stands(element)) {
            let form = format!("{}-byte keys", element.size());
            with_element!(element, T => cases_of::<T>(level, &form, check_keys::<T>, &mut cases));
        }
        let mut wide = |form, check| cases_of::<u128>(level, form, check, &mut cases);
        wide("16-byte keys", check_keys::<u128>);
        if level >= Level::Quick {
            wide("pairs of 16 and 4 bytes", check_pairs::<u128, u32>);
            wide("indices of 16-byte keys", check_indices::<u128, u32>);
            cases_of::<i128>(level, "16-byte keys", check_keys::<i128>, &mut cases);
        }
        if level >= Level::Full {
            cases_of::<i128>(level, "pairs of 16 and 16 bytes", check_pairs::<i128, u128>, &mut cases);
        }
        cases_of::<f32>(level, "pairs of 4 and 4 bytes", check_pairs::<f32, u32>, &mut cases);
        cases_of::<u32>(level, "indices of 4-byte keys", check_indices::<u32, u32>, &mut cases);
        if level >= Level::Quick {
            cases_of::<u8>(level, "pairs of 1 and 16 bytes", check_pairs::<u8, u128>, &mut cases);
            cases_of::<i64>(level, "pairs of 8 and 8 bytes", check_pairs::<i64, u64>, &mut cases);
            cases_of::<u32>(level, "pairs of 4 and 3 bytes", check_pairs::<u32, [u8; 3]>, &mut cases);
        }
        if level >= Level::Full {
            cases_of::<i16>(level, "pairs of 2 and 1 bytes", check_pairs::<i16, u8>, &mut cases);
            cases_of::<crate::f16>(level, "pairs of 2 and 2 bytes", check_pairs::<crate::f16, u16>, &mut cases);
            cases_of::<f64>(level, "pairs of 8 and 1 bytes", check_pairs::<f64, u8>, &mut cases);
            cases_of::<u64>(level, "pairs of 8 and 16 bytes", check_pairs::<u64, u128>, &mut cases);
            cases_of::<i32>(level, "pairs of 4 and 2 bytes", check_pairs::<i32, u16>, &mut cases);
            cases_of::<u32>(level, "pairs of 4 and 12 bytes", check_pairs::<u32, [u32; 3]>, &mut cases);
            cases_of::<f64>(level, "indices of 8-byte keys, u64", check_indices::<f64, u64>, &mut cases);
            cases_of::<i8>(level, "indices of 1-byte keys", check_indices::<i8, u32>, &mut cases);
        }
        super::segmented::spec::cases(level, &mut cases);
        super::columns::spec::cases(level, &mut cases);
        super::in_place::spec::cases(level, &mut cases);
        cases.push(Case::new("host slices", ElementType::I8, "n = 4", "by hand", 4, check_host));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let any = Keys::As(Data::Bits);
        vec![
            bench_keys::<u32>(any),
            bench_keys::<i32>(any),
            bench_keys::<f32>(any),
            bench_keys::<u64>(any),
            bench_keys::<u16>(any),
            bench_keys::<u8>(any),
            bench_keys::<u32>(Keys::Two),
            bench_keys::<u32>(Keys::Sorted),
            bench_pairs::<u32, u32>(),
            bench_pairs::<u64, u64>(),
            bench_indices::<u32>(),
            bench_keys::<u128>(any),
        ]
        .into_iter()
        .chain(super::segmented::spec::benches())
        .chain(super::columns::spec::benches())
        .chain(super::in_place::spec::benches())
        .collect()
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        let mut programs = super::gpu::programs(caps);
        programs.extend(super::segmented::gpu::programs(caps));
        programs.extend(super::in_place::gpu::programs(caps));
        programs
    }
}

fn bench_keys<T: Made>(keys: Keys) -> Bench {
    let bytes = |n| 2 * (n * size_of::<T>()) as u64;
    let form = if size_of::<T>() == 16 { "keys of 16 bytes" } else { "keys" };
    Bench::new(format!("{form}, {}", keys.name()), T::ELEMENT, bytes, move |device, n| {
        // A sort on the device is much faster than that of `Keys::Sorted`, which is compiled for size.
        let x = match keys {
            Keys::Sorted => device.sort(&device.upload(&T::make(Keys::As(Data::Bits), n))?, Order::ascending())?,
            _ => device.upload(&T::make(keys, n))?,
        };
        let state = (device.clone(), x, device.zeroed::<T>(n)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            |(device, x, out)| device.sort_into(&*x, Order::ascending(), out),
            |(_, x, out)| {
                let want = Device::cpu().sort(&x.to_vec()?, Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "keys")
            },
        ))
    })
}

fn bench_pairs<K: Element, V: Offset>() -> Bench {
    let bytes = |n| 2 * (n * (size_of::<K>() + size_of::<V>())) as u64;
    Bench::new(format!("pairs with {}, bits", V::TYPE), K::TYPE, bytes, |device, n| {
        let keys = device.upload(&Data::Bits.generate::<K>(n, n as u64))?;
        let values = device.iota(n, V::ZERO, V::ONE)?;
        let out = (device.zeroed::<K>(n)?, device.zeroed::<V>(n)?);
        Ok(Climb::new(
            (device.clone(), keys, values, out),
            |(_, _, _, (keys_out, values_out))| {
                keys_out.fill(poison())?;
                values_out.fill(poison())
            },
            |(device, keys, values, (keys_out, values_out))| {
                device.sort_into(keys.with(&*values), Order::ascending(), (keys_out, values_out))
            },
            |(_, keys, values, (keys_out, values_out))| {
                let want = Device::cpu().sort(keys.to_vec()?.with(&values.to_vec()?), Order::ascending())?;
                same_bytes(&keys_out.to_vec()?, &want.0.to_vec()?, "keys")?;
                same_bytes(&values_out.to_vec()?, &want.1.to_vec()?, "values")
            },
        ))
    })
}

fn bench_indices<T: Element>() -> Bench {
    let bytes = |n| (n * (size_of::<T>() + size_of::<u32>())) as u64;
    Bench::new("indices, bits", T::TYPE, bytes, |device, n| {
        let keys = device.upload(&Data::Bits.generate::<T>(n, n as u64))?;
        Ok(Climb::new(
            (device.clone(), keys, device.zeroed::<u32>(n)?),
            |(_, _, out)| out.fill(poison()),
            |(device, keys, out)| device.argsort_into(&*keys, Order::ascending(), out),
            |(_, keys, out)| {
                let want = Device::cpu().argsort::<_, u32, _>(&keys.to_vec()?, Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "indices")
            },
        ))
    })
}
