//! Cases and benchmark cases of segmented sorts.

use bytemuck::Pod;

use crate::{
    Device, Offset, Order, Source,
    bench::Bench,
    check::{
        CANARY, Case, Failure, Level,
        data::{Data, Rng},
        everywhere, guarded,
        keys::Keys,
        poison, same_bytes,
        segments::Cut,
    },
    ladder::Climb,
    sort::shared::{Made, Way, numbered},
};

/// Input of a case.
#[derive(Clone, Copy, Debug)]
struct What {
    n: usize,
    at: usize,
    cut: Cut,
    keys: Keys,
    way: Way,
}

/// Indices that sort each segment of `keys`, by definition.
fn obvious<K: Made, C: Offset>(way: Way, keys: &[K], offsets: &[C]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..keys.len()).collect();
    for pair in offsets.windows(2) {
        let (begin, end) = (pair[0].to_i128() as usize, pair[1].to_i128() as usize);
        let order = way.argsort(&keys[begin..end]);
        indices[begin..end].iter_mut().zip(order).for_each(|(index, i)| *index = begin + i);
    }
    indices
}

/// `n` keys after `at` other keys, the offsets, and the same offsets after `at` zeros.
fn made<K: Made, C: Offset>(What { n, at, cut, keys, .. }: What) -> (Vec<K>, Vec<C>, Vec<C>) {
    let offsets: Vec<C> = cut.offsets(n);
    let padded = [vec![C::ZERO; at], offsets.clone()].concat();
    (K::make(keys, n + at), offsets, padded)
}

fn check_keys<K: Made, C: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, at, way, .. } = what;
    let (all, offsets, padded) = made::<K, C>(what);
    let (x, offsets_there) = (device.upload(&all)?, device.upload(&padded)?);
    let got = guarded(device, n, at, |out| {
        Ok(device.sort_into(x.view(at..)?.segments(offsets_there.view(at..)?), way.order(), out)?)
    })?;
    let input = &all[at..];
    let want = if device.is_cpu() {
        obvious(way, input, &offsets).into_iter().map(|index| input[index]).collect()
    } else {
        Device::cpu().sort(input.segments(&offsets), way.order())?.to_vec()?
    };
    same_bytes(&got, &want, "keys")
}

fn check_pairs<K: Made, V: Pod + Send + Sync + PartialEq + std::fmt::Debug, C: Offset>(
    device: &Device,
    what: What,
) -> Result<(), Failure> {
    let What { n, at, way, .. } = what;
    let (all, offsets, padded) = made::<K, C>(what);
    let values: Vec<V> = numbered(n + at);
    let (x, with, offsets_there) = (device.upload(&all)?, device.upload(&values)?, device.upload(&padded)?);
    let mut got_values = Vec::new();
    let got = guarded(device, n, at, |out| {
        got_values = guarded(device, n, at, |to| {
            let (x, with, offsets_there) = (x.view(at..)?, with.view(at..)?, offsets_there.view(at..)?);
            Ok(device.sort_into(x.segments(offsets_there).with(with), way.order(), (out, to))?)
        })?;
        Ok(())
    })?;
    let (input, values) = (&all[at..], &values[at..]);
    let (want, want_values) = if device.is_cpu() {
        obvious(way, input, &offsets).into_iter().map(|index| (input[index], values[index])).unzip()
    } else {
        let (keys, values) = Device::cpu().sort(input.segments(&offsets).with(values), way.order())?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

fn check_indices<K: Made, I: Offset, C: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, at, way, .. } = what;
    let (all, offsets, padded) = made::<K, C>(what);
    let (x, offsets_there) = (device.upload(&all)?, device.upload(&padded)?);
    let got = guarded(device, n, at, |out| {
        Ok(device.argsort_into(x.view(at..)?.segments(offsets_there.view(at..)?), way.order(), out)?)
    })?;
    let input = &all[at..];
    let want: Vec<I> = if device.is_cpu() {
        obvious(way, input, &offsets).into_iter().map(|index| I::from_i128(index as i128)).collect()
    } else {
        Device::cpu().argsort(input.segments(&offsets), way.order())?.to_vec()?
    };
    same_bytes(&got, &want, "indices")
}

/// Checks invalid offsets: results are unspecified, but calls write only to their outputs, and checked calls return an
/// error.
fn check_wrong<C: Offset>(device: &Device, n: usize) -> Result<(), Failure> {
    let (x, up) = (Data::Bits.generate::<u32>(n, 1), Order::ascending);
    let mut rng = Rng::new(n as u64);
    let wild: Vec<C> = (0..300).map(|_| C::from_bits_lossy(rng.next() >> (rng.next() % 60))).collect();
    guarded(device, n, 1, |out| Ok(device.sort_into(x.segments(&wild), up(), out)?))?;
    // These segments overlap, and there are more of them than the lists in scratch hold.
    let folded: Vec<C> = (0..2000).map(|i| C::from_i128((n * (i % 2)) as i128)).collect();
    guarded(device, n, 1, |out| Ok(device.sort_into(x.segments(&folded), up(), out)?))?;
    for offsets in [vec![0, n / 2, n / 3, n], vec![0, n, n + 1], vec![n + 1], vec![]] {
        let offsets: Vec<C> = offsets.into_iter().map(|x| C::from_i128(x as i128)).collect();
        if device.sort(x.segments(&offsets), up()).is_ok() {
            return Err(Failure::Mismatch(format!("offsets {offsets:?} of {n} elements were accepted")));
        }
    }
    // Segments that reach beyond the input end with it.
    let beyond: Vec<C> = [0, n + 5, n + CANARY].map(|x| C::from_i128(x as i128)).into();
    let got = guarded(device, n, 0, |out| Ok(device.sort_into(x.segments(&beyond), up(), out)?))?;
    same_bytes(&got, &Device::cpu().sort(&x, up())?.to_vec()?, "clamped")
}

type Check = fn(&Device, What) -> Result<(), Failure>;

fn form<K: Made, C: Offset>(level: Level, form: &str, check: Check, cases: &mut Vec<Case>) {
    let (w, any) = (8 * size_of::<K>() as u32, Keys::As(Data::Bits));
    let mut all = vec![
        (1, Cut::Every(1), any, Way::Up),
        (700, Cut::Every(3), any, Way::Down),
        (700, Cut::Gaps, Keys::Two, Way::Up),
        (3000, Cut::PowerLaw, Keys::Bytes, Way::UpBy(1, w - 2)),
        (2500, Cut::Huge, any, Way::Up),
        // This case has a segment that is longer than a tile and begins within one.
        (13_000, Cut::Gaps, any, Way::Down),
    ];
    if level >= Level::Quick {
        all.extend([
            (0, Cut::Every(1), any, Way::Up),
            (5000, Cut::Empty, any, Way::Up),
            (20_011, Cut::Every(257), Keys::Two, Way::Down),
            (20_011, Cut::PowerLaw, any, Way::Up),
            (60_011, Cut::Gaps, any, Way::Up),
            (30_011, Cut::Every(1000), any, Way::Up),
            (70_003, Cut::Every(4500), Keys::Byte, Way::Down),
            (40_000, Cut::Huge, Keys::Two, Way::DownBy(w / 2, w)),
        ]);
    }
    if level >= Level::Full {
        let lengths = [1, 16, 31, 100, 256, 768, 2000, 3072, 3840, 3841, 12_289, 16_384, 17_000, 65_537, 150_000];
        for (i, len) in lengths.into_iter().enumerate() {
            let (keys, way) = [(any, Way::Up), (Keys::Two, Way::Down)][i % 2];
            all.push((if len < 256 { 20_003 } else { 200_003 }, Cut::Every(len), keys, way));
        }
        for (i, keys) in Keys::ALL.into_iter().enumerate() {
            all.extend([
                (20_011, [Cut::PowerLaw, Cut::Every(700)][i % 2], keys, Way::Up),
                (50_021, [Cut::Every(20_000), Cut::Gaps][i % 2], keys, Way::Down),
            ]);
        }
        for (begin, end) in [(0, 0), (w, w), (0, 1), (w - 1, w), (3, w / 2 + 2), (w / 2, w)] {
            all.extend([
                (30_003, Cut::PowerLaw, any, Way::UpBy(begin, end)),
                (30_003, Cut::Every(9000), any, Way::DownBy(begin, end)),
            ]);
        }
        all.extend([
            (1_000_003, Cut::PowerLaw, any, Way::Up),
            (1_000_003, Cut::Huge, any, Way::Down),
            (1_000_003, Cut::Gaps, any, Way::Up),
        ]);
    }
    for (i, (n, cut, keys, way)) in all.into_iter().enumerate() {
        let what = What { n, at: [0, 3][i % 2], cut, keys, way };
        let shape = format!("n = {n} at {}, segments {}, {} offsets, {}", what.at, cut.name(), C::TYPE, way.text());
        cases.push(Case::new(form, K::ELEMENT, shape, keys.name(), n, move |device| everywhere(check(device, what))));
    }
}

pub(in crate::sort) fn cases(level: Level, cases: &mut Vec<Case>) {
    form::<u32, u32>(level, "segments of 4-byte keys", check_keys::<u32, u32>, cases);
    form::<f32, u32>(level, "segments, indices of 4-byte keys", check_indices::<f32, u32, u32>, cases);
    if level >= Level::Quick {
        form::<i64, u64>(level, "segments of 8-byte keys", check_keys::<i64, u64>, cases);
        form::<u8, u32>(level, "segments, pairs of 1 and 4 bytes", check_pairs::<u8, u32, u32>, cases);
    }
    if level >= Level::Full {
        form::<i8, u32>(level, "segments of 1-byte keys", check_keys::<i8, u32>, cases);
        form::<crate::f16, u64>(level, "segments of 2-byte keys", check_keys::<crate::f16, u64>, cases);
        form::<u128, u32>(level, "segments of 16-byte keys", check_keys::<u128, u32>, cases);
        form::<f64, u32>(level, "segments, pairs of 8 and 16 bytes", check_pairs::<f64, u128, u32>, cases);
        form::<u32, u64>(level, "segments, pairs of 4 and 3 bytes", check_pairs::<u32, [u8; 3], u64>, cases);
        form::<i128, u32>(level, "segments, indices of 16-byte keys, u64", check_indices::<i128, u64, u32>, cases);
        form::<i16, u32>(Level::Quick, "segments of 2-byte keys", check_keys::<i16, u32>, cases);
    }
    let wrong = [("u32", check_wrong::<u32> as fn(&Device, usize) -> _), ("u64", check_wrong::<u64>)];
    for (name, check) in wrong {
        for n in if level >= Level::Quick { &[1000, 50_003][..] } else { &[1000] } {
            let (n, shape) = (*n, format!("n = {n}, {name} offsets"));
            let element = crate::ElementType::U32;
            cases.push(Case::new("invalid offsets", element, shape, "bits", n, move |device| check(device, n)));
        }
    }
}

pub(in crate::sort) fn benches() -> Vec<Bench> {
    let lengths = [16, 256, 2000, 1 << 14, 1 << 20];
    let mut benches: Vec<Bench> = lengths.map(bench_keys::<u32>).into();
    benches.extend([bench_keys::<u64>(256), bench_keys::<u8>(256), bench_indices::<u32>(256)]);
    benches
}

/// Offsets of segments whose lengths are uniform from 0 to twice `mean`.
fn offsets(n: usize, mean: usize) -> Vec<u32> {
    let (mut rng, mut offsets, mut end) = (Rng::new(n as u64), vec![0], 0);
    while end < n {
        end = n.min(end + rng.below(2 * mean as u64 + 1) as usize);
        offsets.push(end as u32);
    }
    offsets
}

fn bench_keys<K: Made>(mean: usize) -> Bench {
    let bytes = |n| 2 * (n * size_of::<K>()) as u64;
    Bench::new(format!("keys of segments of {mean}"), K::ELEMENT, bytes, move |device, n| {
        let keys = device.upload(&K::make(Keys::As(Data::Bits), n))?;
        let state = (device.clone(), keys, device.upload(&offsets(n, mean))?, device.zeroed::<K>(n)?);
        Ok(Climb::new(
            state,
            |(_, _, _, out)| out.fill(poison()),
            |(device, x, offsets, out)| device.sort_into(x.segments(&*offsets), Order::ascending(), out),
            |(_, x, offsets, out)| {
                let want = Device::cpu().sort(x.to_vec()?.segments(&offsets.to_vec()?), Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "keys")
            },
        ))
    })
}

fn bench_indices<K: Made>(mean: usize) -> Bench {
    let bytes = |n| (n * (size_of::<K>() + size_of::<u32>())) as u64;
    Bench::new(format!("indices in segments of {mean}"), K::ELEMENT, bytes, move |device, n| {
        let keys = device.upload(&K::make(Keys::As(Data::Bits), n))?;
        let state = (device.clone(), keys, device.upload(&offsets(n, mean))?, device.zeroed::<u32>(n)?);
        Ok(Climb::new(
            state,
            |(_, _, _, out)| out.fill(poison()),
            |(device, x, offsets, out)| device.argsort_into(x.segments(&*offsets), Order::ascending(), out),
            |(_, x, offsets, out)| {
                let cpu = Device::cpu();
                let want = cpu.argsort::<_, u32, _>(x.to_vec()?.segments(&offsets.to_vec()?), Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "indices")
            },
        ))
    })
}
