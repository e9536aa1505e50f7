//! Spec of top-k selections: cases, programs and benchmark cases.

use bytemuck::Pod;

use super::{Interpolation, Top};
use crate::{
    Device, DeviceClass, Element, ElementType, Offset, ProgramSpec, Source, Tuning,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        data::Data,
        everywhere, guarded,
        keys::{Keys, by_rank, rank},
        poison, same, same_bytes,
        segments::Cut,
        sorted_indices,
    },
    ladder::Climb,
    tuning::Tuned,
    with_element,
};

/// The primitive's entry in the registry.
pub(crate) struct TopK;

/// Input of a case: rows of keys at an offset, and the selection of `top.k` keys of each row.
#[derive(Clone, Copy, Debug)]
struct What {
    rows: usize,
    len: usize,
    offset: usize,
    keys: Keys,
    top: Top,
}

impl What {
    fn n(&self) -> usize {
        self.rows * self.len
    }

    fn taken(&self) -> usize {
        self.rows * self.top.k
    }

    fn shape(&self) -> String {
        let Self { rows, len, offset, top, .. } = self;
        let (which, how) = (if top.largest { "largest" } else { "smallest" }, if top.sorted { ", sorted" } else { "" });
        format!("{} {which} of {rows} x {len} at {offset}{how}", top.k)
    }

    /// Indices of the selected keys in each row, by sorting the whole row.
    fn indices<T: Element>(&self, keys: &[T]) -> Vec<usize> {
        let of_row = |row: usize| {
            let own = &keys[row * self.len..(row + 1) * self.len];
            let flip = if self.top.largest { u64::MAX } else { 0 };
            let mut indices = sorted_indices(own.iter().map(|&key| (rank(key) ^ flip).into()));
            indices.truncate(self.top.k);
            if !self.top.sorted {
                indices.sort_unstable();
            }
            indices
        };
        (0..self.rows).flat_map(of_row).collect()
    }

    /// The keys at indices in their rows.
    fn at<T: Copy>(&self, all: &[T], indices: &[usize]) -> Vec<T> {
        indices.iter().enumerate().map(|(i, index)| all[i / self.top.k * self.len + index]).collect()
    }
}

fn check_keys<T: Element>(device: &Device, what: What) -> Result<(), Failure> {
    let all: Vec<T> = what.keys.make(what.n() + what.offset);
    let (on_device, input) = (device.upload(&all)?, &all[what.offset..]);
    let got = guarded(device, what.taken(), what.offset, |out| {
        Ok(device.top_k_into(on_device.view(what.offset..)?, what.top, out)?)
    })?;
    let want = if device.is_cpu() {
        what.at(input, &what.indices(input))
    } else {
        Device::cpu().top_k(input, what.top)?.to_vec()?
    };
    same_bytes(&got, &want, "keys")
}

fn check_indices<T: Element, I: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let all: Vec<T> = what.keys.make(what.n() + what.offset);
    let (on_device, input) = (device.upload(&all)?, &all[what.offset..]);
    let mut indices = Vec::new();
    let got = guarded(device, what.taken(), what.offset, |out| {
        indices = guarded(device, what.taken(), what.offset, |indices| {
            let keys = on_device.view(what.offset..)?;
            Ok(device.top_k_into(keys.indexed(), what.top, (out, indices))?)
        })?;
        Ok(())
    })?;
    let (want, want_indices) = if device.is_cpu() {
        let indices = what.indices(input);
        let numbers = indices.iter().map(|&index| I::from_bits_lossy(index as u64)).collect();
        (what.at(input, &indices), numbers)
    } else {
        let (keys, indices) = Device::cpu().top_k(input.indexed::<I>(), what.top)?;
        (keys.to_vec()?, indices.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&indices, &want_indices, "indices")
}

fn check_pairs<K: Element, V: Pod + Send + Sync + PartialEq + std::fmt::Debug>(
    device: &Device,
    what: What,
) -> Result<(), Failure> {
    let all: Vec<K> = what.keys.make(what.n() + what.offset);
    let values: Vec<V> = crate::check::data::random_bits(what.n() + what.offset, 5);
    let (on_device, values_there) = (device.upload(&all)?, device.upload(&values)?);
    let (input, values) = (&all[what.offset..], &values[what.offset..]);
    let mut got_values = Vec::new();
    let got = guarded(device, what.taken(), what.offset, |out| {
        got_values = guarded(device, what.taken(), what.offset, |values_out| {
            let (keys, values) = (on_device.view(what.offset..)?, values_there.view(what.offset..)?);
            Ok(device.top_k_into(keys.with(values), what.top, (out, values_out))?)
        })?;
        Ok(())
    })?;
    let (want, want_values) = if device.is_cpu() {
        let indices = what.indices(input);
        (what.at(input, &indices), what.at(values, &indices))
    } else {
        let (keys, values) = Device::cpu().top_k(input.with(values), what.top)?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

/// Checks keys of several ranks in one row; ignores `top.k`.
fn check_ranks<T: Element>(device: &Device, what: What) -> Result<(), Failure> {
    let n = what.len;
    // Some ranks occur twice. For more than 16 ranks, all keys are sorted.
    let ranks: Vec<usize> = match (n, what.top.sorted) {
        (0, _) => Vec::new(),
        (_, false) => vec![n / 2, 0, n - 1, n / 2, 3 % n],
        (_, true) => (0..20).map(|i| i * (n - 1) / 19).collect(),
    };
    check_these_ranks::<T>(device, what, &ranks)
}

/// Checks the key of rank `top.k`.
fn check_rank<T: Element>(device: &Device, what: What) -> Result<(), Failure> {
    check_these_ranks::<T>(device, what, &[what.top.k])
}

fn check_these_ranks<T: Element>(device: &Device, what: What, ranks: &[usize]) -> Result<(), Failure> {
    let offset = what.offset;
    let all: Vec<T> = what.keys.make(what.len + offset);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let got = guarded(device, ranks.len(), offset, |out| {
        Ok(device.nth_element_into(on_device.view(offset..)?, ranks, out)?)
    })?;
    let want: Vec<T> = if device.is_cpu() {
        let sorted = by_rank(input);
        ranks.iter().map(|&rank| sorted[rank]).collect()
    } else {
        let mut want = vec![T::ZERO; ranks.len()];
        Device::cpu().nth_element_into(input, ranks, &mut want)?;
        want
    };
    same_bytes(&got, &want, "keys at given ranks")
}

fn check_quantiles<T: Element>(device: &Device, what: What) -> Result<(), Failure> {
    const Q: [f64; 7] = [0.5, 0.0, 0.25, 1.0, 0.999, 1e-5, 0.3];
    if what.len == 0 {
        return match device.quantile(&[] as &[T], &Q, Interpolation::Linear) {
            Err(error) if error.kind() == crate::ErrorKind::Empty => Ok(()),
            other => Err(Failure::Mismatch(format!("{other:?} instead of an error"))),
        };
    }
    let all: Vec<T> = what.keys.make(what.len + what.offset);
    let (on_device, input) = (device.upload(&all)?, &all[what.offset..]);
    let sorted = by_rank(input);
    let nan = input.iter().any(|x| x.is_nan());
    for how in Interpolation::ALL {
        let got = device.quantile(on_device.view(what.offset..)?, &Q, how)?;
        let want = |q: f64| {
            let at = (what.len - 1) as f64 * q;
            let (low, high) = (sorted[at.floor() as usize].to_f64(), sorted[at.ceil() as usize].to_f64());
            match how {
                _ if nan => f64::NAN,
                Interpolation::Lower => low,
                Interpolation::Higher => high,
                Interpolation::Nearest if at.fract() == 0.5 => {
                    if (at as usize).is_multiple_of(2) {
                        low
                    } else {
                        high
                    }
                }
                Interpolation::Nearest => {
                    if at.fract() < 0.5 {
                        low
                    } else {
                        high
                    }
                }
                _ if low == high || at.fract() == 0.0 => low,
                Interpolation::Midpoint => high - (high - low) * 0.5,
                _ if at.fract() < 0.5 => low + (high - low) * at.fract(),
                _ => high - (high - low) * (1.0 - at.fract()),
            }
        };
        same(&got, &Q.map(want), how.name())?;
    }
    Ok(())
}

/// Fractions for groups. The quantiles of a group are the same whatever the other fractions are.
const FRACTIONS: [f64; 5] = [0.5, 0.0, 1.0, 0.3, 0.9999];

/// Checks quantiles of segments. On the CPU, those of a segment equal those of its elements as a whole input.
fn check_quantiles_of_segments<T: Element, C: Offset>(
    device: &Device,
    (n, keys): (usize, Keys),
    cut: Cut,
    (at, ways): (usize, &[Interpolation]),
) -> Result<(), Failure> {
    let all: Vec<T> = keys.make(n + at);
    let (input, offsets) = (&all[at..], cut.offsets::<C>(n));
    let groups = offsets.len() - 1;
    let (there, padded) = (device.upload(&all)?, [vec![C::ZERO; at], offsets.clone()].concat());
    let offsets_there = device.upload(&padded)?;
    for &how in ways {
        let got = guarded(device, groups * FRACTIONS.len(), at, |out| {
            let segments = there.view(at..)?.segments(offsets_there.view(at..)?);
            Ok(device.quantile_into(segments, &FRACTIONS, how, out)?)
        })?;
        let want = if device.is_cpu() {
            let mut want = Vec::with_capacity(got.len());
            for ends in offsets.windows(2) {
                let own = &input[ends[0].to_i128() as usize..ends[1].to_i128() as usize];
                match own {
                    [] => want.extend([f64::NAN; FRACTIONS.len()]),
                    own => want.extend(device.quantile(own, &FRACTIONS, how)?),
                }
            }
            want
        } else {
            Device::cpu().quantile(input.segments(&offsets), &FRACTIONS, how)?.to_vec()?
        };
        same_bytes(&got, &want, how.name())?;
    }
    Ok(())
}

/// Checks quantiles along axes: those of a line equal those of its elements as a whole input.
fn check_quantiles_of_lines<T: Element>(device: &Device, shape: [usize; 3]) -> Result<(), Failure> {
    let [a, b, c] = shape;
    let x: Vec<T> = Keys::As(Data::Bits).make(a * b * c);
    let there = device.upload(&x)?;
    let view = there.nd(&shape)?;
    let line = |of: &dyn Fn(usize) -> usize, len: usize| (0..len).map(|k| x[of(k)]).collect::<Vec<_>>();
    let mut middle = Vec::new();
    for (i, k) in (0..a).flat_map(|i| (0..c).map(move |k| (i, k))) {
        middle.extend(Device::cpu().quantile(&line(&|j| (i * b + j) * c + k, b), &FRACTIONS, Interpolation::Linear)?);
    }
    let got = device.quantile(view.along(1), &FRACTIONS, Interpolation::Linear)?;
    same_bytes(&got.to_vec()?, &middle, "along axis 1")?;
    let mut outer = Vec::with_capacity(b);
    for j in 0..b {
        outer.push(Device::cpu().median(&line(&|i| (i / c * b + j) * c + i % c, a * c))?);
    }
    same_bytes(&device.median(view.along([0, 2]))?.to_vec()?, &outer, "along axes 0 and 2")
}

/// Checks calls on groups that are refused, and calls without results.
fn check_quantiles_of_no_groups(device: &Device) -> Result<(), Failure> {
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let (x, how) = ([3i8, -1, 2, -1], Interpolation::Linear);
    let there = device.upload(&x)?;
    let beyond = device.quantile(x.segments(&[0u32, 4]), -0.5, how).map(drop);
    refused(beyond, "quantiles are from 0 to 1, not -0.5")?;
    let wrong = device.quantile(x.segments(&[0u32, 3, 2]), 0.5, how).map(drop);
    refused(wrong, "offset 1 is 3, beyond the next one, 2")?;
    let short = device.quantile_into(x.segments(&[0u64, 1, 4]), &[0.5, 1.0], how, &mut [0.0; 3]);
    refused(short, "a selection of quantiles needs an output of 4 elements, got 3")?;
    let empty = device.median(there.view(..0)?.nd(&[0, 4])?.along(0)).map(drop);
    refused(empty, "quantiles along an axis of 0 elements have no answer")?;
    let lines = there.nd(&[2, 2])?;
    let axis = device.median(lines.along(2)).map(drop);
    refused(axis, "axis 2 is out of range for an array of shape [2, 2]")?;
    let none = [
        device.median(there.view(..0)?.nd(&[0, 4])?.along(1))?,
        device.median(x.segments(&[4u32]))?,
        device.quantile(x.segments(&[0u32, 4]), &[], how)?,
    ];
    same(&none.map(|found| found.len() as u64), &[0; 3], "results")?;
    same(&device.median(there.view(..0)?.segments(&[0u32, 0, 0]))?.to_vec()?, &[f64::NAN; 2], "empty segments")
}

/// Adds cases of quantiles of groups of a type.
fn quantiles_of_groups<T: Element>(level: Level, cases: &mut Vec<Case>) {
    let any = Keys::As(Data::Bits);
    let mut all = vec![(3001, any, Cut::PowerLaw), (700, Keys::Signs, Cut::Every(7))];
    if level >= Level::Quick {
        all.extend([(0, any, Cut::Empty), (70_001, any, Cut::Huge), (20_000, Keys::Two, Cut::Mixed(16))]);
        all.push((9001, Keys::As(Data::Random), Cut::Gaps));
    }
    if level >= Level::Full {
        all.extend([1, 2, 3, 300, 5000].map(|len| (30_001, any, Cut::Every(len))));
        all.extend([(300_007, Keys::Zipf, Cut::PowerLaw), (5003, Keys::As(Data::Nan), Cut::Every(50))]);
    }
    for (i, (n, keys, cut)) in all.into_iter().enumerate() {
        let at = [0, 3][i % 2];
        let check =
            if i % 3 == 2 { check_quantiles_of_segments::<T, u64> } else { check_quantiles_of_segments::<T, u32> };
        let one = i % Interpolation::ALL.len();
        let ways = if level >= Level::Full { &Interpolation::ALL[..] } else { &Interpolation::ALL[one..=one] };
        let shape = format!("n = {n} at {at}, segments {}", cut.name());
        cases.push(Case::new("quantiles of segments", T::TYPE, shape, keys.name(), n, move |device| {
            everywhere(check(device, (n, keys), cut, (at, ways)))
        }));
    }
    for shape in [[3, 50, 7], [1, 300, 1], [20, 1, 33]] {
        let n = shape.iter().product();
        cases.push(Case::new("quantiles along axes", T::TYPE, format!("{shape:?}"), any.name(), n, move |device| {
            check_quantiles_of_lines::<T>(device, shape)
        }));
    }
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let (mut keys, mut indices) = ([0i8; 2], [0u32; 2]);
    let x = [3i8, -1, 2, -1];
    device.top_k_into(x.indexed(), Top::smallest(2), (&mut keys, &mut indices))?;
    same_bytes(&keys, &[-1, -1], "keys")?;
    same_bytes(&indices, &[1, 3], "indices")?;
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let short = device.top_k_into(&x, Top::largest(3), &mut keys);
    refused(short, "a selection of keys needs an output of 3 elements, got 2")?;
    refused(device.top_k(&x, Top::smallest(5)).map(drop), "4 keys are fewer than the 5 smallest to select")?;
    refused(device.top_k(&x, Top::largest(1).in_rows(3)).map(drop), "4 keys are not a whole number of rows of 3")?;
    refused(device.top_k(&x, Top::largest(0).in_rows(0)).map(drop), "4 keys are not a whole number of rows of 0")?;
    let unequal = device.top_k(x.with(&[1u8, 2]), Top::largest(1)).map(drop);
    refused(unequal, "4 keys need as many values, got 2")?;
    let nothing = device.top_k([1u8].with(&[()]), Top::largest(1)).map(drop);
    refused(nothing, "values must have at least 1 byte")?;
    refused(device.nth_element(&x, 4).map(drop), "rank 4 is out of range for 4 keys")?;
    let beyond = device.quantile(&x, 1.5, Interpolation::Linear).map(drop);
    refused(beyond, "quantiles are from 0 to 1, not 1.5")
}

type Check = fn(&Device, What) -> Result<(), Failure>;

fn cases_of(level: Level, form: &str, element: ElementType, check: Check, cases: &mut Vec<Case>) {
    let any = Keys::As(Data::Bits);
    let of = |rows, len, offset, keys, top| What { rows, len, offset, keys, top };
    let mut all = vec![
        of(1, 0, 0, any, Top::largest(0)),
        of(1, 1, 1, any, Top::smallest(1)),
        of(1, 300, 3, any, Top::largest(7).sorted()),
        of(1, 2600, 1, Keys::Signs, Top::smallest(100)),
        of(1, 3001, 2, Keys::As(Data::Constant), Top::largest(33)),
        of(3, 501, 1, any, Top::largest(20).sorted()),
        // `k` is the number of keys below the last cluster.
        of(1, 12 * 256, 1, Keys::Clusters, Top::smallest(12 * 248)),
    ];
    if level >= Level::Quick {
        all.extend([
            of(1, 20_011, 3, any, Top::smallest(10_005)),
            of(1, 70_001, 0, any, Top::largest(32).sorted()),
            of(1, 280_003, 1, any, Top::smallest(1000)),
            of(1, 280_001, 5, Keys::Two, Top::largest(50_000)),
            of(1, 9001, 1, Keys::As(Data::Nan), Top::smallest(100).sorted()),
            of(1, 90_007, 2, Keys::Zipf, Top::smallest(5000).sorted()),
            of(3, 66_007, 1, any, Top::smallest(129).sorted()),
            of(300, 33, 0, Keys::Byte, Top::largest(4)),
            of(1, 1100 * 256, 3, Keys::Clusters, Top::smallest(1100 * 248)),
            of(1, 1100 * 256, 0, Keys::Clusters, Top::smallest(1100 * 16)),
        ]);
    }
    if level >= Level::Full {
        for n in [2, 3, 255, 256, 1023, 1025, 4095, 4096, 4097, 16_384, 16_385, 65_537, 270_001, 1_000_003] {
            let mut ks = vec![0, 1, 2, n / 2, n - 1, n];
            ks.dedup();
            for (i, k) in ks.into_iter().enumerate() {
                let top = if i % 2 == 0 { Top::largest(k) } else { Top::smallest(k) };
                all.push(of(1, n, (n + k) % 5, any, if n % 2 == 0 { top.sorted() } else { top }));
            }
        }
        for (i, keys) in Keys::ALL.into_iter().enumerate() {
            for (n, k) in [(5003, 40), (20_011, 10_000), (270_011, 30), (270_011, 135_005)] {
                all.extend([of(1, n, i % 4, keys, Top::largest(k)), of(1, n, i % 3, keys, Top::smallest(k).sorted())]);
            }
        }
        for (rows, len, k) in
            [(1, 1, 1), (7, 1, 1), (1000, 7, 3), (33, 4097, 4097), (9, 20_011, 3000), (2, 270_001, 17)]
        {
            all.push(of(rows, len, 1, any, Top::smallest(k)));
            all.push(of(rows, len, 0, Keys::Zipf, Top::largest(k).sorted()));
        }
    }
    for mut what in all {
        if what.rows > 1 {
            what.top = what.top.in_rows(what.len);
        }
        cases.push(case(form, element, check, what));
    }
}

fn case(form: &str, element: ElementType, check: Check, what: What) -> Case {
    Case::new(form, element, what.shape(), what.keys.name(), what.n(), move |device| everywhere(check(device, what)))
}

/// Cases of a row that many work-groups share: a short row without sampled bounds, and a longer row with them. The
/// tuning has little local memory, so that rows of these lengths need many work-groups.
fn shared_cases(form: &str, element: ElementType, check: Check, cases: &mut Vec<Case>) {
    let little = Tuning::default().class(DeviceClass::Gpu).local_bytes(12 << 10);
    for (len, keys, top) in
        [(5_003, Keys::Two, Top::largest(33).sorted()), (33_001, Keys::As(Data::Bits), Top::smallest(100))]
    {
        let what = What { rows: 1, len, offset: 3, keys, top };
        cases.push(case(form, element, check, what).tuned(format!("{form}, of many groups"), little.clone()));
    }
}

impl Spec for TopK {
    fn name(&self) -> &'static str {
        "topk"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        // Kernels depend on the key size only.
        let stands =
            |element| matches!(element, ElementType::U8 | ElementType::F16 | ElementType::F32 | ElementType::I64);
        for element in ElementType::ALL.into_iter().filter(|&element| level >= Level::Full || stands(element)) {
            let form = format!("top-k of {}-byte keys", element.size());
            with_element!(element, T => cases_of(level, &form, element, check_keys::<T>, &mut cases));
        }
        let mut push = |form, element, check: Check| cases_of(level, form, element, check, &mut cases);
        push("top-k with indices", ElementType::F32, check_indices::<f32, u32>);
        push("keys at given ranks", ElementType::U32, check_ranks::<u32>);
        shared_cases("top-k with indices", ElementType::F32, check_indices::<f32, u32>, &mut cases);
        shared_cases("key of a rank", ElementType::U32, check_rank::<u32>, &mut cases);
        let mut push = |form, element, check: Check| cases_of(level, form, element, check, &mut cases);
        if level >= Level::Quick {
            push("top-k with u64 indices", ElementType::U64, check_indices::<u64, u64>);
            push("top-k of pairs", ElementType::I16, check_pairs::<i16, [u8; 3]>);
            push("quantiles", ElementType::F32, check_quantiles::<f32>);
        }
        if level >= Level::Full {
            push("top-k with indices", ElementType::U8, check_indices::<u8, u32>);
            push("top-k of pairs", ElementType::F32, check_pairs::<f32, u32>);
            push("keys at given ranks", ElementType::F16, check_ranks::<crate::f16>);
            push("keys at given ranks", ElementType::I8, check_ranks::<i8>);
            push("keys at given ranks", ElementType::I64, check_ranks::<i64>);
            push("quantiles", ElementType::I32, check_quantiles::<i32>);
        }
        quantiles_of_groups::<f32>(level, &mut cases);
        quantiles_of_groups::<i64>(level, &mut cases);
        if level >= Level::Quick {
            quantiles_of_groups::<f64>(level, &mut cases);
            quantiles_of_groups::<u8>(level, &mut cases);
        }
        if level >= Level::Full {
            quantiles_of_groups::<crate::f16>(level, &mut cases);
            quantiles_of_groups::<crate::bf16>(level, &mut cases);
            quantiles_of_groups::<i8>(level, &mut cases);
            quantiles_of_groups::<i16>(level, &mut cases);
            quantiles_of_groups::<u16>(level, &mut cases);
            quantiles_of_groups::<i32>(level, &mut cases);
            quantiles_of_groups::<u32>(level, &mut cases);
            quantiles_of_groups::<u64>(level, &mut cases);
        }
        cases.push(Case::new(
            "quantiles of no groups",
            ElementType::I8,
            "n = 4",
            "by hand",
            4,
            check_quantiles_of_no_groups,
        ));
        cases.push(Case::new("selections of host slices", ElementType::I8, "n = 4", "by hand", 4, check_host));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let any = Keys::As(Data::Random);
        vec![
            bench_keys::<f32>(any, |_| 32),
            bench_keys::<f32>(any, |n| n.clamp(0, 1024)),
            bench_keys::<f32>(any, |n| n.clamp(0, 1 << 16)),
            bench_keys::<f32>(any, |n| n / 2),
            bench_keys::<f32>(Keys::Two, |n| n.clamp(0, 1024)),
            bench_keys::<f32>(Keys::Sorted, |n| n.clamp(0, 1024)),
            bench_keys::<u64>(Keys::As(Data::Bits), |n| n.clamp(0, 1024)),
            bench_keys::<u8>(Keys::As(Data::Bits), |n| n.clamp(0, 1024)),
            bench_indices(),
            bench_rows(1 << 10, 32),
            bench_rows(1 << 17, 32),
            bench_median(),
            bench_medians(1 << 8),
        ]
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        [super::gpu::programs(caps), super::quantiles::gpu::programs(caps)].concat()
    }
}

/// Selection of `k(n)` of `n` keys. The name states `k(2^30)`, or `half` if that is 2^20 or more.
fn bench_keys<T: Element>(keys: Keys, k: fn(usize) -> usize) -> Bench {
    let name = match k(1 << 30) {
        k if k < 1 << 20 => format!("{k}, {}", keys.name()),
        _ => format!("half, {}", keys.name()),
    };
    let top = move |n| Top::largest(k(n).clamp(0, n));
    Bench::new(
        name,
        T::TYPE,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let taken = device.zeroed::<T>(top(n).k)?;
            Ok(Climb::new(
                (device.clone(), device.upload(&keys.make::<T>(n))?, taken),
                |(_, _, out)| out.fill(poison()),
                move |(device, x, out)| device.top_k_into(&*x, top(x.len()), out),
                move |(_, x, out)| {
                    let want = Device::cpu().top_k(&x.to_vec()?, top(x.len()))?;
                    same_bytes(&out.to_vec()?, &want.to_vec()?, "keys")
                },
            ))
        },
    )
}

fn bench_indices() -> Bench {
    let top = |n: usize| Top::largest(n.clamp(0, 1024)).sorted();
    Bench::new(
        "1024 with indices, sorted, random",
        ElementType::F32,
        |n| 4 * n as u64,
        move |device, n| {
            let x = device.upload(&Data::Random.generate::<f32>(n, n as u64))?;
            let taken = (device.zeroed::<f32>(top(n).k)?, device.zeroed::<u32>(top(n).k)?);
            Ok(Climb::new(
                (device.clone(), x, taken),
                |(_, _, (keys, indices))| {
                    keys.fill(poison())?;
                    indices.fill(poison())
                },
                move |(device, x, (keys, indices))| device.top_k_into(x.indexed(), top(x.len()), (keys, indices)),
                move |(_, x, (keys, indices))| {
                    let want = Device::cpu().top_k(x.to_vec()?.indexed::<u32>(), top(x.len()))?;
                    same_bytes(&keys.to_vec()?, &want.0.to_vec()?, "keys")?;
                    same_bytes(&indices.to_vec()?, &want.1.to_vec()?, "indices")
                },
            ))
        },
    )
}

fn bench_rows(len: usize, k: usize) -> Bench {
    let name = format!("{k} of rows of {len}, sorted, random");
    let top = Top::largest(k).sorted().in_rows(len);
    Bench::new(
        name,
        ElementType::F32,
        |n| 4 * n as u64,
        move |device, n| {
            let n = (n / len).max(1) * len;
            let x = device.upload(&Data::Random.generate::<f32>(n, n as u64))?;
            Ok(Climb::new(
                (device.clone(), x, device.zeroed::<f32>(n / len * k)?),
                |(_, _, out)| out.fill(poison()),
                move |(device, x, out)| device.top_k_into(&*x, top, out),
                move |(_, x, out)| {
                    same_bytes(&out.to_vec()?, &Device::cpu().top_k(&x.to_vec()?, top)?.to_vec()?, "keys")
                },
            ))
        },
    )
}

fn bench_median() -> Bench {
    Bench::new(
        "keys in the middle, random",
        ElementType::F32,
        |n| 4 * n as u64,
        |device, n| {
            let x = device.upload(&Data::Random.generate::<f32>(n, n as u64))?;
            Ok(Climb::new(
                (device.clone(), x, device.zeroed::<f32>(2)?),
                |(_, _, out)| out.fill(poison()),
                |(device, x, out)| device.nth_element_into(&*x, &[(x.len() - 1) / 2, x.len() / 2], out),
                |(_, x, out)| {
                    let mut want = [0.0; 2];
                    let ranks = [(x.len() - 1) / 2, x.len() / 2];
                    Device::cpu().nth_element_into(&x.to_vec()?, &ranks, &mut want)?;
                    same_bytes(&out.to_vec()?, &want, "keys in the middle")
                },
            ))
        },
    )
}

fn bench_medians(len: usize) -> Bench {
    Bench::new(
        format!("medians of rows of {len}, random"),
        ElementType::F32,
        |n| 4 * n as u64,
        move |device, n| {
            let shape = [(n / len).max(1), len];
            let x = device.upload(&Data::Random.generate::<f32>(shape[0] * len, n as u64))?;
            Ok(Climb::new(
                (device.clone(), x, device.zeroed::<f64>(shape[0])?),
                |(_, _, out)| out.fill(poison()),
                move |(device, x, out)| {
                    device.quantile_into(x.nd(&shape)?.along(1), &[0.5], Interpolation::Midpoint, out)
                },
                move |(_, x, out)| {
                    let x = x.to_vec()?;
                    let want = Device::cpu().median(crate::Input::from(&x).nd(&shape)?.along(1))?;
                    same_bytes(&out.to_vec()?, &want.to_vec()?, "medians")
                },
            ))
        },
    )
}
