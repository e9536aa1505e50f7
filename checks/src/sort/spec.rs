//! Spec of sorts: cases, programs and benchmark cases.

use bytemuck::Pod;

use super::keys::{Key, Order};
use crate::{
    Capabilities, Device, Element, ElementType, Offset, ProgramSpec, Scratch,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        data::Data,
        everywhere, guarded,
        keys::{Keys, bits, rank},
        poison, same_bytes, sorted_indices,
    },
    ladder::Climb,
    with_element,
};

/// The primitive's entry in the registry.
pub(crate) struct Sort;

/// Key types of the cases.
pub(super) trait Made: Key + PartialEq + std::fmt::Debug {
    /// The element type that stands for the key type in the list of cases.
    const ELEMENT: ElementType;
    fn make(keys: Keys, n: usize) -> Vec<Self>;
    /// Number that orders keys. An order by some bits takes those bits of it.
    fn number(self) -> u128;
    /// Number that orders equal keys of different bits in a sort in place.
    fn number_among_equals(self) -> u128;
}

macro_rules! made {
    ($($T:ty)*) => { $(
        impl Made for $T {
            const ELEMENT: ElementType = <$T as Element>::TYPE;

            fn make(keys: Keys, n: usize) -> Vec<Self> {
                keys.make(n)
            }

            fn number(self) -> u128 {
                rank(self).into()
            }

            fn number_among_equals(self) -> u128 {
                let (bits, half) = (bits(self), 1u64 << (8 * size_of::<$T>() - 1));
                match () {
                    () if !<$T as Element>::TYPE.is_float() => 0,
                    // Among zeros, -0 comes first. Among NaN, those with a sign come last, in descending order of their bits.
                    () if bits < half => 1 + u128::from(bits),
                    () if Element::is_nan(self) => u128::MAX - u128::from(bits),
                    () => 0,
                }
            }
        }
    )* };
}
made!(i8 i16 i32 i64 u8 u16 u32 u64 crate::f16 crate::bf16 f32 f64);

impl Made for u128 {
    const ELEMENT: ElementType = ElementType::U64;

    fn make(keys: Keys, n: usize) -> Vec<Self> {
        // Half of the high words have one of four values.
        let halves: (Vec<u64>, Vec<u64>) = (keys.make(n), Data::Bits.generate(n, 7));
        let high = |(x, y): (u64, u64)| if y >> 63 == 0 { y & 3 } else { y.rotate_left(20) ^ x };
        halves.0.into_iter().zip(halves.1).map(|pair| Self::from(high(pair)) << 64 | Self::from(pair.0)).collect()
    }

    fn number(self) -> u128 {
        self
    }

    fn number_among_equals(self) -> u128 {
        0
    }
}

impl Made for i128 {
    const ELEMENT: ElementType = ElementType::I64;

    fn make(keys: Keys, n: usize) -> Vec<Self> {
        u128::make(keys, n).into_iter().map(|key| key.rotate_left(3) as Self).collect()
    }

    fn number(self) -> u128 {
        self as u128 ^ 1 << 127
    }

    fn number_among_equals(self) -> u128 {
        0
    }
}

/// Order of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    Up,
    Down,
    /// Ascending by some of the bits.
    UpBy(u32, u32),
    DownBy(u32, u32),
}

impl Way {
    pub(super) fn order(self) -> Order {
        match self {
            Self::Up => Order::ascending(),
            Self::Down => Order::descending(),
            Self::UpBy(begin, end) => Order::ascending().bits(begin..end),
            Self::DownBy(begin, end) => Order::descending().bits(begin..end),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Up => "up".into(),
            Self::Down => "down".into(),
            Self::UpBy(begin, end) => format!("up by bits {begin}..{end}"),
            Self::DownBy(begin, end) => format!("down by bits {begin}..{end}"),
        }
    }

    /// Indices that sort `keys`, as from a stable argsort.
    pub(super) fn argsort<T: Made>(self, keys: &[T]) -> Vec<usize> {
        let (begin, end) = match self {
            Self::UpBy(begin, end) | Self::DownBy(begin, end) => (begin, end),
            _ => (0, 8 * size_of::<T>() as u32),
        };
        let mask = if end == begin { 0 } else { u128::MAX >> (128 - (end - begin)) };
        let number = |key: &T| key.number().checked_shr(begin).unwrap_or(0) & mask;
        let numbers: Vec<u128> = keys.iter().map(number).collect();
        match self {
            Self::Up | Self::UpBy(..) => sorted_indices(keys.len(), &|a, b| numbers[a].cmp(&numbers[b])),
            Self::Down | Self::DownBy(..) => sorted_indices(keys.len(), &|a, b| numbers[b].cmp(&numbers[a])),
        }
    }
}

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
    let got = guarded(device, n, offset, |out| {
        Ok(device.sort_into(on_device.view(offset..)?, out, way.order(), &mut Scratch::new())?)
    })?;
    let want = if device.is_cpu() {
        way.argsort(input).into_iter().map(|index| input[index]).collect()
    } else {
        Device::cpu().sort(input, way.order())?.to_vec()?
    };
    same_bytes(&got, &want, "keys")
}

/// Values that are their indices, truncated to their size.
pub(super) fn numbered<V: Pod>(n: usize) -> Vec<V> {
    let mut values: Vec<V> = bytemuck::zeroed_vec(n);
    for (i, value) in values.iter_mut().enumerate() {
        let number = (i as u128).wrapping_mul(0x1_0000_0001_0000_0000_0000_0000_0001).to_le_bytes();
        bytemuck::bytes_of_mut(value).copy_from_slice(&number[..size_of::<V>()]);
    }
    values
}

/// Checks pairs whose values are indices of keys, so that a wrong order of equal keys shows.
fn check_pairs<K: Made, V: Pod + PartialEq + std::fmt::Debug>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, keys, way } = what;
    let all = K::make(keys, n + offset);
    let values: Vec<V> = numbered(n + offset);
    let (on_device, values_there) = (device.upload(&all)?, device.upload(&values)?);
    let (input, values) = (&all[offset..], &values[offset..]);
    let mut got_values = Vec::new();
    let got = guarded(device, n, offset, |out| {
        got_values = guarded(device, n, offset, |values_out| {
            let (keys, values) = (on_device.view(offset..)?, values_there.view(offset..)?);
            Ok(device.sort_pairs_into(keys, values, out, values_out, way.order(), &mut Scratch::new())?)
        })?;
        Ok(())
    })?;
    let (want, want_values) = if device.is_cpu() {
        way.argsort(input).into_iter().map(|index| (input[index], values[index])).unzip()
    } else {
        let (keys, values) = Device::cpu().sort_pairs(input, values, way.order())?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

fn check_indices<T: Made, I: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, keys, way } = what;
    let all = T::make(keys, n + offset);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let got = guarded(device, n, offset, |out| {
        Ok(device.argsort_into(on_device.view(offset..)?, out, way.order(), &mut Scratch::new())?)
    })?;
    let want: Vec<I> = if device.is_cpu() {
        way.argsort(input).into_iter().map(|index| I::from_bits_lossy(index as u64)).collect()
    } else {
        Device::cpu().argsort(input, way.order())?.to_vec()?
    };
    same_bytes(&got, &want, "indices")
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let scratch = &mut Scratch::new();
    let (mut keys, mut values) = ([0i8; 4], [0u16; 4]);
    device.sort_into(&[3i8, -1, 2, -1], &mut keys, Order::ascending(), scratch)?;
    same_bytes(&keys, &[-1, -1, 2, 3], "keys")?;
    device.sort_pairs_into(
        &[3i8, -1, 2, -1],
        &[10, 11, 12, 13],
        &mut keys,
        &mut values,
        Order::descending(),
        scratch,
    )?;
    same_bytes(&keys, &[3, 2, -1, -1], "keys of pairs")?;
    same_bytes(&values, &[10, 12, 11, 13], "values")?;
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let short = device.sort_into(&[1i8, 2], &mut keys, Order::ascending(), scratch);
    refused(short, "a sort needs an output of 2 elements, got 4")?;
    let unequal = device.sort_pairs(&[1u8, 2], &[1u8], Order::ascending()).map(drop);
    refused(unequal, "sorting 2 keys with 1 values")?;
    let nothing = device.sort_pairs(&[1u8], &[()], Order::ascending()).map(drop);
    refused(nothing, "values of 0 bytes have no places")?;
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
            wide("places of 16-byte keys", check_indices::<u128, u32>);
            cases_of::<i128>(level, "16-byte keys", check_keys::<i128>, &mut cases);
        }
        if level >= Level::Full {
            cases_of::<i128>(level, "pairs of 16 and 16 bytes", check_pairs::<i128, u128>, &mut cases);
        }
        cases_of::<f32>(level, "pairs of 4 and 4 bytes", check_pairs::<f32, u32>, &mut cases);
        cases_of::<u32>(level, "places of 4-byte keys", check_indices::<u32, u32>, &mut cases);
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
            cases_of::<f64>(level, "places of 8-byte keys, u64", check_indices::<f64, u64>, &mut cases);
            cases_of::<i8>(level, "places of 1-byte keys", check_indices::<i8, u32>, &mut cases);
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

    #[cfg(feature = "opencl")]
    fn programs(&self, caps: &Capabilities) -> Vec<ProgramSpec> {
        let mut programs = super::gpu::programs(caps);
        programs.extend(super::segmented::gpu::programs(caps));
        programs.extend(super::in_place::gpu::programs(caps));
        programs
    }

    #[cfg(not(feature = "opencl"))]
    fn programs(&self, _: &Capabilities) -> Vec<ProgramSpec> {
        Vec::new()
    }
}

fn bench_keys<T: Made>(keys: Keys) -> Bench {
    let bytes = |n| 2 * (n * size_of::<T>()) as u64;
    let form = if size_of::<T>() == 16 { "keys of 16 bytes" } else { "keys" };
    Bench::new(format!("{form}, {}", keys.name()), T::ELEMENT, bytes, move |device, n| {
        let state = (device.clone(), device.upload(&T::make(keys, n))?, device.zeroed::<T>(n)?, Scratch::new());
        Ok(Climb::new(
            state,
            |(_, _, out, _)| out.fill(poison()),
            |(device, x, out, scratch)| device.sort_into(&*x, out, Order::ascending(), scratch),
            |(_, x, out, _)| {
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
        let values = device.iota(n, V::ZERO)?;
        let out = (device.zeroed::<K>(n)?, device.zeroed::<V>(n)?);
        Ok(Climb::new(
            (device.clone(), keys, values, out, Scratch::new()),
            |(_, _, _, (keys_out, values_out), _)| {
                keys_out.fill(poison())?;
                values_out.fill(poison())
            },
            |(device, keys, values, (keys_out, values_out), scratch)| {
                device.sort_pairs_into(&*keys, &*values, keys_out, values_out, Order::ascending(), scratch)
            },
            |(_, keys, values, (keys_out, values_out), _)| {
                let want = Device::cpu().sort_pairs(&keys.to_vec()?, &values.to_vec()?, Order::ascending())?;
                same_bytes(&keys_out.to_vec()?, &want.0.to_vec()?, "keys")?;
                same_bytes(&values_out.to_vec()?, &want.1.to_vec()?, "values")
            },
        ))
    })
}

fn bench_indices<T: Element>() -> Bench {
    let bytes = |n| (n * (size_of::<T>() + size_of::<u32>())) as u64;
    Bench::new("places, bits", T::TYPE, bytes, |device, n| {
        let keys = device.upload(&Data::Bits.generate::<T>(n, n as u64))?;
        Ok(Climb::new(
            (device.clone(), keys, device.zeroed::<u32>(n)?, Scratch::new()),
            |(_, _, out, _)| out.fill(poison()),
            |(device, keys, out, scratch)| device.argsort_into(&*keys, out, Order::ascending(), scratch),
            |(_, keys, out, _)| {
                let want = Device::cpu().argsort::<T, u32>(&keys.to_vec()?, Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "indices")
            },
        ))
    })
}
