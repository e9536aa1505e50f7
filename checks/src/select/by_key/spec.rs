//! Cases and benchmark cases of reductions and extremes by key.

use crate::runtime::{DeviceClass, ProgramSpec};

use crate::tuning::Tuned;
use crate::{
    Device, Element, ElementType, Source,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, operators::affine, poison, same, same_bytes},
    f16,
    ladder::Climb,
    op::{Max, Min, Op, Sum},
    reduce::{End, Ends},
    select::{
        runs::spec::{Check, Lengths, What, cases_of, offsets, pair},
        shared::{filled, rooms, untouched},
    },
};
use oclprim::internals::reduce::segmented::{extremes, gpu};

/// The first key of each run, and the reduction of its values by [`crate::reduce::segmented`] on the CPU, which has its
/// own cases.
fn wanted<K: Element, V: Element, U: Element + From<V>, O: Op<U>>(
    keys: &[K],
    values: &[V],
    op: O,
) -> Result<(Vec<K>, Vec<U>), Failure> {
    let heads: Vec<u64> = offsets(keys).into_iter().map(|i| i as u64).collect();
    let mut reduced = vec![U::ZERO; heads.len() - 1];
    Device::cpu().reduce_into(values.cast::<U>().segments(&heads), op, &mut reduced)?;
    Ok((heads[..heads.len() - 1].iter().map(|&i| keys[i as usize]).collect(), reduced))
}

fn check<K: Element, V: Element, U: Element + From<V>, O: Op<U> + Default>(
    device: &Device,
    what: What,
) -> Result<(), Failure> {
    let What { n, offset, .. } = what;
    let keys: Vec<K> = what.lengths.generate(offset + n);
    let values: Vec<V> = Data::Random.generate(n + 2 * offset, n as u64);
    let (keys_there, values_there) = (device.upload(&keys)?, device.upload(&values)?);
    let (keys, values) = (&keys[offset..], &values[2 * offset..]);
    let (want_keys, want) = wanted::<K, V, U, O>(keys, values, O::default())?;
    let room = rooms(n, want.len(), what.room);
    let (keys_got, got, count) = pair(device, room, offset, |keys_out, values_out, count| {
        let (keys, values) = (keys_there.view(offset..)?, values_there.view(2 * offset..)?);
        let op = O::default();
        device.reduce_into(values.cast::<U>().by_key(keys), op, (keys_out, values_out, count))
    })?;
    same_bytes(&[count], &[want.len() as u64], "count ")?;
    filled(&keys_got, &want_keys, "keys")?;
    let kept = room.min(want.len());
    same(&got[..kept], &want[..kept], "values")?;
    untouched(&got[kept..], "values")?;
    let (keys, values) = (keys_there.view(offset..)?, values_there.view(2 * offset..)?);
    let (keys_got, got) = device.reduce(values.cast::<U>().by_key(keys), O::default())?;
    same_bytes(&keys_got.to_vec()?, &want_keys, "keys, allocated,")?;
    same(&got.to_vec()?, &want, "values, allocated,")
}

/// Checks the smallest value of each run and its index, and in a call that allocates, the largest as well.
fn check_extremes<K: Element, V: Element>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, .. } = what;
    let keys: Vec<K> = what.lengths.generate(offset + n);
    let values: Vec<V> = Data::Special.generate(n + 2 * offset, n as u64);
    let (keys_there, values_there) = (device.upload(&keys)?, device.upload(&values)?);
    let (keys, values) = (&keys[offset..], &values[2 * offset..]);
    let heads = offsets(keys);
    let want_keys: Vec<K> = heads[..heads.len() - 1].iter().map(|&i| keys[i]).collect();
    let wanted = |end: End| {
        heads.windows(2).map(move |pair| {
            let run = &values[pair[0]..pair[1]];
            let best = (1..run.len()).fold(0, |best, i| if end.before(run[i], run[best]) { i } else { best });
            (run[best], best as u64)
        })
    };
    let (want, want_indices): (Vec<V>, Vec<u64>) = wanted(End::Min).unzip();
    let room = rooms(n, want.len(), what.room);
    let (keys_view, values_view) = (keys_there.view(offset..)?, values_there.view(2 * offset..)?);
    let mut found = Ok((Vec::new(), Vec::new(), 0));
    let indices = guarded(device, room, 1, |indices| {
        found = pair(device, room, offset, |keys_out, values_out, count| {
            device.arg_min_into(values_view.by_key(keys_view), (keys_out, values_out, count), indices)
        });
        Ok(())
    });
    let (keys_got, got, count) = found?;
    let indices = indices?;
    same_bytes(&[count], &[want.len() as u64], "count ")?;
    filled(&keys_got, &want_keys, "keys")?;
    let kept = room.min(want.len());
    same(&got[..kept], &want[..kept], "values")?;
    untouched(&got[kept..], "values")?;
    filled(&indices, &want_indices, "indices")?;
    let (keys_got, both) = device.min_max(values_view.by_key(keys_view))?;
    let (want, want_indices): (Vec<V>, Vec<u64>) = wanted(End::Min).chain(wanted(End::Max)).unzip();
    same_bytes(&keys_got.to_vec()?, &want_keys, "keys, allocated,")?;
    same(&both.values.to_vec()?, &want, "values, allocated,")?;
    same(&both.indices.to_vec()?, &want_indices, "indices, allocated,")
}

/// Checks a user-defined operator that is not commutative.
fn check_by(device: &Device, what: What) -> Result<(), Failure> {
    let keys: Vec<u32> = what.lengths.generate(what.n);
    let values: Vec<u64> = Data::Bits.generate(what.n, what.n as u64);
    let heads = offsets(&keys);
    let op = affine();
    let want = heads.windows(2).map(|pair| {
        values[pair[0]..pair[1]].iter().copied().reduce(|a, b| (op.combine)(a, b)).expect("a run has an element")
    });
    let (keys_got, got) = device.reduce(values.by_key(&keys), &op)?;
    same_bytes(&got.to_vec()?, &want.collect::<Vec<_>>(), "values")?;
    let want: Vec<u32> = heads[..heads.len() - 1].iter().map(|&i| keys[i]).collect();
    same_bytes(&keys_got.to_vec()?, &want, "keys")
}

pub(in crate::select) fn cases(level: Level, cases: &mut Vec<Case>) {
    let mut push = |form, element, check: Check| cases_of(level, form, element, check, cases);
    push("sum by key", ElementType::F32, check::<u32, f32, f32, Sum>);
    push("by key by an operator", ElementType::U32, check_by);
    push("arg-min by key", ElementType::F32, check_extremes::<u32, f32>);
    if level >= Level::Quick {
        push("max by key", ElementType::I64, check::<f64, i64, i64, Max>);
        push("sum by key in a wider type", ElementType::U8, check::<u8, i32, i64, Sum>);
        push("arg-min by key", ElementType::I64, check_extremes::<f64, u8>);
    }
    if level >= Level::Full {
        push("min by key", ElementType::F16, check::<f16, f16, f16, Min>);
        push("sum by key", ElementType::F64, check::<i64, f64, f64, Sum>);
        push("sum by key", ElementType::U8, check::<u8, u8, u8, Sum>);
    }
}

/// Programs that reduce the runs.
pub(in crate::select) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let forms = [
        gpu::Form::by::<f32, f32>(<Sum as Op<f32>>::source(), ElementType::U32),
        gpu::Form::by::<f64, f64>(<Max as Op<f64>>::source(), ElementType::U64),
        gpu::Form::by::<u8, i64>(<Sum as Op<i64>>::source(), ElementType::U32),
        gpu::Form::by::<u64, u64>(affine().source(), ElementType::U32),
    ];
    let mut programs = Vec::new();
    let keys = [ElementType::U32, ElementType::F64, ElementType::U8, ElementType::F16];
    let found = forms.clone().map(|form| gpu::Form { counted: true, ..form });
    let keyed = forms.into_iter().zip(keys).map(|(form, keys)| gpu::Form { keys: Some(keys), ..form });
    let keyed = keyed.filter(|_| caps.looks_back() && caps.class == DeviceClass::Gpu);
    for form in found.into_iter().chain(keyed) {
        for aligned in [false, true] {
            let wide = form.offset == ElementType::U64;
            programs.extend(gpu::plan(1 << 20, 1 << 10, &form, aligned, caps, &|_| wide).map(|plan| plan.program));
        }
    }
    for form in [
        extremes::gpu::Form::of::<f32>(Ends::Both, ElementType::U32),
        extremes::gpu::Form::of::<u8>(Ends::Min, ElementType::U32),
        extremes::gpu::Form::of::<f64>(Ends::Max, ElementType::U64),
    ] {
        let form = extremes::gpu::Form { counted: true, ..form };
        let wide = form.offset == ElementType::U64;
        programs.extend(extremes::gpu::plan(1 << 20, 1 << 10, &form, caps, &|_| wide).map(|plan| plan.program));
    }
    programs
}

fn bench(length: u64) -> Bench {
    let bytes = move |n: usize| (8 * (n + n / length as usize)) as u64;
    Bench::new(format!("sum by key, runs of {length}"), ElementType::F32, bytes, move |device, n| {
        let (keys, values) = (Lengths::About(length).generate::<u32>(n), Data::Random.generate::<f32>(n, 3));
        let room = n / length as usize + n / 16 + 1000;
        let outputs = (device.zeroed::<u32>(room)?, device.zeroed::<f32>(room)?, device.zeroed::<u64>(1)?);
        Ok(Climb::new(
            (device.clone(), (device.upload(&keys)?, device.upload(&values)?), outputs),
            |(_, _, (keys, values, count))| {
                count.fill(poison())?;
                keys.fill(poison())?;
                values.fill(poison())
            },
            |(device, (keys, values), (keys_out, values_out, count))| {
                device.reduce_into(values.by_key(&*keys), Sum, (keys_out, values_out, count))
            },
            move |(_, _, (keys_out, values_out, count))| {
                let (want_keys, want) = wanted::<u32, f32, f32, Sum>(&keys, &values, Sum)?;
                same_bytes(&count.to_vec()?, &[want.len() as u64], "count")?;
                filled(&keys_out.to_vec()?, &want_keys, "keys")?;
                let got = values_out.to_vec()?;
                same(&got[..want.len()], &want, "values")?;
                untouched(&got[want.len()..], "values")
            },
        ))
    })
}

pub(in crate::select) fn benches() -> Vec<Bench> {
    [2, 16, 256].map(bench).into()
}
