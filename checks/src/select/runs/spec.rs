//! Cases and benchmark cases of runs of equal elements.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::select::gpu::{Form, Marks};
use crate::{
    Buffer, Device, Element, ElementType, Offset, Source,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level,
        data::{Data, Rng, random_bits},
        guarded,
        keys::rank,
        poison, same_bytes, stands_for_its_size,
    },
    f16,
    ladder::Climb,
    select::shared::{filled, out_offset, rooms, sizes},
    with_element,
};

/// Lengths and values of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::select) enum Lengths {
    /// One run of all elements.
    One,
    /// No two neighbours are equal.
    None,
    /// Lengths from 1 to twice this number minus 1.
    About(u64),
    /// Length 1 for half of the runs, 2 for a quarter, 4 for an eighth, and so on.
    PowerLaw,
    /// Random bits and a few special values. For floats these include NaN, zeros of both signs and infinities.
    Special,
    /// For floats, only NaN.
    Nan,
}

impl Lengths {
    pub(in crate::select) const ALL: [Self; 8] = [
        Self::About(3),
        Self::Special,
        Self::PowerLaw,
        Self::One,
        Self::None,
        Self::About(300),
        Self::About(40_000),
        Self::Nan,
    ];

    pub(in crate::select) fn name(self) -> String {
        match self {
            Self::One => "all equal".into(),
            Self::None => "no equal neighbours".into(),
            Self::About(length) => format!("runs of about {length}"),
            Self::PowerLaw => "runs by a power law".into(),
            Self::Special => "special values".into(),
            Self::Nan => Data::Nan.name().into(),
        }
    }

    pub(in crate::select) fn generate<T: Element>(self, n: usize) -> Vec<T> {
        if self == Self::Nan {
            return Data::Nan.generate(n, n as u64);
        }
        if self == Self::Special {
            let few = [T::ZERO, T::ADD_IDENTITY, T::from_f64(f64::NAN), T::HIGHEST, T::LOWEST, T::ONE];
            let all: Vec<T> = Data::Bits.generate(n, n as u64);
            let mut rng = Rng::new(n as u64);
            return all.into_iter().map(|x| few.get(rng.below(8) as usize).copied().unwrap_or(x)).collect();
        }
        let mut rng = Rng::new(n as u64);
        let (mut out, mut value) = (Vec::with_capacity(n), 0u64);
        while out.len() < n {
            let length = match self {
                Self::One => n as u64,
                Self::None => 1,
                Self::About(length) => 1 + rng.below(2 * length - 1),
                _ => 1 << Ord::min(rng.next().trailing_ones(), 16),
            };
            value = (value + 1 + rng.below(100)) % 120;
            out.resize(n.min(out.len() + length as usize), T::from_f64(value as f64));
        }
        out
    }
}

/// Indices at which runs begin, then n.
pub(in crate::select) fn offsets<T: Element>(x: &[T]) -> Vec<usize> {
    let mut offsets: Vec<_> = (0..x.len()).filter(|&i| i == 0 || rank(x[i]) != rank(x[i - 1])).collect();
    offsets.push(x.len());
    offsets
}

/// Input of a case: `n` elements at an offset, the room for results, and the runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::select) struct What {
    pub(in crate::select) n: usize,
    pub(in crate::select) offset: usize,
    pub(in crate::select) room: usize,
    pub(in crate::select) lengths: Lengths,
}

pub(in crate::select) type Check = fn(&Device, What) -> Result<(), Failure>;

fn number<C: Offset>(i: usize) -> C {
    C::from_i128(i as i128)
}

/// Runs `call` on two poisoned outputs and a count, and returns them.
pub(in crate::select) fn pair<A: Pod + PartialEq, B: Pod + PartialEq>(
    device: &Device,
    room: usize,
    offset: usize,
    call: impl FnOnce(crate::ViewMut<'_, A>, crate::ViewMut<'_, B>, crate::ViewMut<'_, u64>) -> crate::Result<()>,
) -> Result<(Vec<A>, Vec<B>, u64), Failure> {
    let (mut second, mut count) = (Vec::new(), Vec::new());
    let first = guarded(device, room, out_offset(offset), |first| {
        second = guarded(device, room, offset, |second| {
            count = guarded(device, 1, offset, |count| Ok(call(first, second, count)?))?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok((first, second, count[0]))
}

fn check_unique<T: Element>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, .. } = what;
    let all: Vec<T> = what.lengths.generate(offset + n);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let heads = offsets(input);
    let want: Vec<T> = heads[..heads.len() - 1].iter().map(|&i| input[i]).collect();
    let mut count = Vec::new();
    let got = guarded(device, rooms(n, want.len(), what.room), out_offset(offset), |out| {
        count = guarded(device, 1, offset, |count| Ok(device.unique_into(on_device.view(offset..)?, out, count)?))?;
        Ok(())
    })?;
    same_bytes(&count, &[want.len() as u64], "count")?;
    filled(&got, &want, "unique")?;
    same_bytes(&device.unique(on_device.view(offset..)?)?.to_vec()?, &want, "unique, allocated,")
}

fn check_by_key<K: Element, V: Pod + PartialEq + Debug + Send + Sync>(
    device: &Device,
    what: What,
) -> Result<(), Failure> {
    let What { n, offset, .. } = what;
    let keys: Vec<K> = what.lengths.generate(offset + n);
    let values: Vec<V> = random_bits(n + 2 * offset, n as u64);
    let (keys_there, values_there) = (device.upload(&keys)?, device.upload(&values)?);
    let (keys, values) = (&keys[offset..], &values[2 * offset..]);
    let heads = offsets(keys);
    let heads = &heads[..heads.len() - 1];
    let (keys_got, values_got, count) =
        pair(device, rooms(n, heads.len(), what.room), offset, |keys_out, values_out, count| {
            let (keys, values) = (keys_there.view(offset..)?, values_there.view(2 * offset..)?);
            device.unique_into(values.by_key(keys), (keys_out, values_out), count)
        })?;
    same_bytes(&[count], &[heads.len() as u64], "count ")?;
    filled(&keys_got, &heads.iter().map(|&i| keys[i]).collect::<Vec<_>>(), "keys")?;
    filled(&values_got, &heads.iter().map(|&i| values[i]).collect::<Vec<_>>(), "values")
}

fn check_encoded<T: Element, C: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, .. } = what;
    let all: Vec<T> = what.lengths.generate(offset + n);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let heads = offsets(input);
    let values: Vec<T> = heads[..heads.len() - 1].iter().map(|&i| input[i]).collect();
    let lengths: Vec<C> = heads.windows(2).map(|pair| number(pair[1] - pair[0])).collect();
    let (values_got, lengths_got, count) =
        pair(device, rooms(n, values.len(), what.room), offset, |values, lengths, count| {
            let input = on_device.view(offset..)?;
            device.run_length_encode_into(input, values, lengths, count)
        })?;
    same_bytes(&[count], &[values.len() as u64], "count ")?;
    filled(&values_got, &values, "values")?;
    filled(&lengths_got, &lengths, "lengths")?;
    let (values_got, lengths_got) = device.run_length_encode::<T, C>(on_device.view(offset..)?)?;
    same_bytes(&values_got.to_vec()?, &values, "values, allocated,")?;
    same_bytes(&lengths_got.to_vec()?, &lengths, "lengths, allocated,")
}

fn check_non_trivial<T: Element, C: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, .. } = what;
    let all: Vec<T> = what.lengths.generate(offset + n);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let heads = offsets(input);
    let runs = heads.windows(2).filter(|pair| pair[1] - pair[0] > 1);
    let (offsets, lengths): (Vec<C>, Vec<C>) =
        runs.map(|pair| (number::<C>(pair[0]), number::<C>(pair[1] - pair[0]))).unzip();
    let (offsets_got, lengths_got, count) =
        pair(device, rooms(n, offsets.len(), what.room), offset, |offsets, lengths, count| {
            let input = on_device.view(offset..)?;
            device.non_trivial_runs_into(input, offsets, lengths, count)
        })?;
    same_bytes(&[count], &[offsets.len() as u64], "count ")?;
    filled(&offsets_got, &offsets, "offsets")?;
    filled(&lengths_got, &lengths, "lengths")?;
    let (offsets_got, lengths_got) = device.non_trivial_runs::<T, C>(on_device.view(offset..)?)?;
    same_bytes(&offsets_got.to_vec()?, &offsets, "offsets, allocated,")?;
    same_bytes(&lengths_got.to_vec()?, &lengths, "lengths, allocated,")
}

/// Cases of an operation, with the numbers of elements that [`sizes`] gives for the size of `element`.
pub(in crate::select) fn cases_of(level: Level, form: &str, element: ElementType, check: Check, cases: &mut Vec<Case>) {
    let mut i = element as usize;
    for n in sizes(level, element.size()) {
        let all = match level {
            Level::Full if n < 100_000 => &Lengths::ALL[..],
            Level::Tiny => &Lengths::ALL[i % 3..i % 3 + 1],
            _ => &Lengths::ALL[i % 7..i % 7 + 2],
        };
        for &lengths in all {
            let what = What { n, offset: i % 4, room: i, lengths };
            i += 1;
            let shape = format!("n = {n} at {}, room {}", what.offset, what.room % 4);
            cases.push(Case::new(form, element, shape, lengths.name(), n, move |device| check(device, what)));
        }
        i += 1;
    }
}

pub(in crate::select) fn cases(level: Level, cases: &mut Vec<Case>) {
    for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
        with_element!(element, T => cases_of(level, "unique", element, check_unique::<T>, cases));
    }
    let mut push = |form, element, check: Check| cases_of(level, form, element, check, cases);
    push("unique by key", ElementType::U32, check_by_key::<u32, f32>);
    push("run-length encoded", ElementType::F32, check_encoded::<f32, u32>);
    push("non-trivial runs", ElementType::I64, check_non_trivial::<i64, u32>);
    if level >= Level::Quick {
        push("unique by key", ElementType::F64, check_by_key::<f64, [u8; 3]>);
        push("run-length encoded", ElementType::U8, check_encoded::<u8, u64>);
        push("run-length encoded", ElementType::F16, check_encoded::<f16, u32>);
        push("non-trivial runs", ElementType::U8, check_non_trivial::<u8, u64>);
        push("non-trivial runs", ElementType::F32, check_non_trivial::<f32, u32>);
    }
    if level >= Level::Full {
        push("unique by key", ElementType::U8, check_by_key::<u8, u128>);
        push("unique by key", ElementType::Bf16, check_by_key::<bf16, u16>);
        push("run-length encoded", ElementType::I16, check_encoded::<i16, u64>);
        push("run-length encoded", ElementType::Bf16, check_encoded::<bf16, u32>);
        push("run-length encoded", ElementType::F64, check_encoded::<f64, u64>);
        push("run-length encoded", ElementType::I32, check_encoded::<i32, u32>);
        push("non-trivial runs", ElementType::F16, check_non_trivial::<f16, u32>);
        push("non-trivial runs", ElementType::F64, check_non_trivial::<f64, u64>);
    }
}

fn bench_unique(length: u64) -> Bench {
    let bytes = move |n: usize| (4 * (n + n / length as usize)) as u64;
    Bench::new(format!("unique, runs of {length}"), ElementType::U32, bytes, move |device, n| {
        let host = Lengths::About(length).generate::<u32>(n);
        let state = (device.clone(), device.upload(&host)?, device.zeroed(n)?, device.zeroed(1)?);
        Ok(Climb::new(
            state,
            |(_, _, out, count)| {
                count.fill(poison())?;
                out.fill(poison())
            },
            |(device, x, out, count)| device.unique_into(&*x, &mut *out, &mut *count),
            move |(_, _, out, count): &mut (Device, Buffer<u32>, Buffer<u32>, Buffer<u64>)| {
                let mut want = host.clone();
                want.dedup();
                same_bytes(&count.to_vec()?, &[want.len() as u64], "count")?;
                filled(&out.to_vec()?, &want, "output")
            },
        ))
    })
}

fn bench_encoded(length: u64) -> Bench {
    let bytes = move |n: usize| (4 * n + 8 * (n / length as usize)) as u64;
    Bench::new(format!("run-length encoded, runs of {length}"), ElementType::U32, bytes, move |device, n| {
        let host = Lengths::About(length).generate::<u32>(n);
        let outputs = (device.zeroed::<u32>(n)?, device.zeroed::<u32>(n)?, device.zeroed::<u64>(1)?);
        Ok(Climb::new(
            (device.clone(), device.upload(&host)?, outputs),
            |(_, _, (values, lengths, count))| {
                count.fill(poison())?;
                values.fill(poison())?;
                lengths.fill(poison())
            },
            |(device, x, (values, lengths, count))| device.run_length_encode_into(&*x, values, lengths, count),
            move |(_, _, (values, lengths, count))| {
                let heads = offsets(&host);
                let want: Vec<u32> = heads[..heads.len() - 1].iter().map(|&i| host[i]).collect();
                same_bytes(&count.to_vec()?, &[want.len() as u64], "count")?;
                filled(&values.to_vec()?, &want, "values")?;
                let want: Vec<u32> = heads.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
                filled(&lengths.to_vec()?, &want, "lengths")
            },
        ))
    })
}

pub(in crate::select) fn benches() -> Vec<Bench> {
    let mut benches: Vec<_> = [2, 16, 256].map(bench_unique).into();
    benches.extend([2, 16, 256].map(bench_encoded));
    benches
}

pub(in crate::select) fn forms() -> Vec<Form> {
    use ElementType::{Bf16, F16, F32, F64, U8, U16, U32, U64};
    let mut forms = Vec::new();
    for element in [U8, U16, U32, U64, F16, Bf16, F32, F64] {
        let heads = || Form::of(Marks::Heads(element));
        forms.push(heads());
        for place in [4, 8] {
            forms.push(Form { lengths: true, place, ..heads() });
            forms.push(Form { places: true, place, ..heads() });
            let marks = Marks::NonTrivial(element);
            forms.push(Form { moved: false, places: true, lengths: true, place, ..Form::of(marks) });
        }
    }
    for value in [1, 3, 4, 8, 16] {
        forms.push(Form { value, ..Form::of(Marks::Heads(U32)) });
        forms.push(Form { value, ..Form::of(Marks::Heads(F64)) });
    }
    forms
}
