//! Spec of selections and partitions, with runs, reductions by key and adjacent differences.

use std::fmt::Debug;

use bytemuck::Pod;
use oclprim::internals::instances::{below, below_captured};

use super::gpu;
use super::{
    adjacent, by_key, runs,
    shared::{filled, out_offset, rooms, sizes},
};
use crate::{
    Buffer, Device, DeviceClass, Element, ElementType, Offset, ProgramSpec, Source, Tuning,
    bench::Bench,
    check::{
        Case, Failure, Level, Spec,
        data::{Rng, random_bits, random_by},
        guarded, poison, same_bytes, stands_for_its_size,
    },
    f16,
    ladder::Climb,
    op::{Map, NonZero, Unordered, UnstableTail},
    tuning::Tuned,
    with_element,
};

/// The primitive's entry in the registry.
pub(crate) struct Select;

/// Values are integers below `2 * LIMIT`, exact in every type; values below `LIMIT` are selected. Each other limit
/// would cost a build.
const LIMIT: u64 = 60;

/// The selected part of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::select) enum Part {
    None,
    All,
    /// Every second element.
    Alternating,
    /// This percentage, at random.
    Percent(u64),
    /// One element in the middle.
    One,
}

impl Part {
    const ALL: [Self; 7] =
        [Self::Percent(50), Self::All, Self::None, Self::Alternating, Self::Percent(1), Self::One, Self::Percent(90)];

    fn name(self) -> String {
        match self {
            Self::None => "none".into(),
            Self::All => "all".into(),
            Self::Alternating => "every second one".into(),
            Self::Percent(percent) => format!("{percent} % of them"),
            Self::One => "one".into(),
        }
    }

    /// `n` integers; those of the part are below the limit.
    fn values(self, n: usize) -> Vec<u64> {
        let value = |i: usize, rng: &mut Rng| {
            let taken = match self {
                Self::None => false,
                Self::All => true,
                Self::Alternating => i.is_multiple_of(2),
                Self::Percent(percent) => rng.below(100) < percent,
                Self::One => i == n / 2,
            };
            rng.below(LIMIT) + if taken { 0 } else { LIMIT }
        };
        random_by(n, n as u64, value)
    }
}

/// The values as elements.
fn elements<T: Element>(values: &[u64]) -> Vec<T> {
    values.iter().map(|&value| T::from_f64(value as f64)).collect()
}

/// Input of a case: `n` elements at an offset, the room for results, and the selected part.
#[derive(Clone, Copy, Debug)]
pub(in crate::select) struct What {
    pub(in crate::select) n: usize,
    pub(in crate::select) offset: usize,
    /// Choice of the output's length: the argument of `rooms`.
    pub(in crate::select) room: usize,
    pub(in crate::select) part: Part,
}

impl What {
    /// Offset of the output.
    pub(in crate::select) fn out_offset(self) -> usize {
        out_offset(self.offset)
    }
}

/// Runs `select` on a poisoned output and a count, and returns both.
fn run<T: Pod + PartialEq>(
    device: &Device,
    room: usize,
    offset: usize,
    select: impl FnOnce(crate::ViewMut<'_, T>, crate::ViewMut<'_, u64>) -> crate::Result<()>,
) -> Result<(Vec<T>, u64), Failure> {
    let mut count = Vec::new();
    let out = guarded(device, room, offset, |out| {
        count = guarded(device, 1, offset, |count| Ok(select(out, count)?))?;
        Ok(())
    })?;
    Ok((out, count[0]))
}

/// With `CAPTURED`, the limit is a captured value.
fn check_select<T: Element, const CAPTURED: bool>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, part, .. } = what;
    let values = part.values(offset + n);
    let all: Vec<T> = elements(&values);
    let taken = values[offset..].iter().zip(&all[offset..]).filter(|(value, _)| **value < LIMIT);
    let want: Vec<T> = taken.map(|(_, &x)| x).collect();
    let on_device = device.upload(&all)?;
    let (got, count) = run(device, rooms(n, want.len(), what.room), what.out_offset(), |out, count| {
        let input = on_device.view(offset..)?;
        if CAPTURED {
            device.select_into(input, &below_captured::<T::Acc>(LIMIT), out, count)
        } else {
            device.select_into(input, &below::<T::Acc>(LIMIT), out, count)
        }
    })?;
    same_bytes(&[count], &[want.len() as u64], "count ")?;
    filled(&got, &want, "selected")?;
    let owned = device.select(on_device.view(offset..)?, &below::<T::Acc>(LIMIT))?;
    same_bytes(&owned.to_vec()?, &want, "selected, allocated,")
}

fn check_unordered<T: Element>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, part, .. } = what;
    let values = part.values(offset + n);
    let on_device = device.upload(&elements::<T>(&values))?;
    let mut want: Vec<u64> = values[offset..].iter().copied().filter(|&value| value < LIMIT).collect();
    let room = rooms(n, want.len(), what.room);
    let (got, count) = run::<T>(device, room, what.out_offset(), |out, count| {
        let input = on_device.view(offset..)?;
        device.select_into(input, Unordered(&below::<T::Acc>(LIMIT)), out, count)
    })?;
    same_bytes(&[count], &[want.len() as u64], "count ")?;
    let kept = room.min(want.len());
    same_bytes(&got[kept..], &vec![poison(); room - kept], "elements after the last one, ")?;
    let mut found: Vec<u64> = got[..kept].iter().map(|x| x.to_f64() as u64).collect();
    found.sort_unstable();
    want.sort_unstable();
    if kept == want.len() {
        return same_bytes(&found, &want, "sorted elements");
    }
    // The output is too short for all selected elements. It may hold any of them, but no value more often than that
    // value is selected.
    let mut rest = want.iter().copied();
    match found.iter().find(|&&x| !rest.any(|y| y == x)) {
        Some(x) => Err(Failure::Mismatch(format!("{x} was selected too often"))),
        None => Ok(()),
    }
}

fn check_indices<T: Element, I: Offset>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, part, .. } = what;
    let values = part.values(offset + n);
    let indices = (0..n).filter(|&i| values[offset + i] < LIMIT).map(|i| I::from_i128(i as i128));
    let (on_device, want) = (device.upload(&elements::<T>(&values))?, indices.collect::<Vec<I>>());
    let (got, count) = run(device, rooms(n, want.len(), what.room), what.out_offset(), |out, count| {
        let input = on_device.view(offset..)?;
        device.select_indices_into(input, below::<T::Acc>(LIMIT), out, count)
    })?;
    same_bytes(&[count], &[want.len() as u64], "count ")?;
    filled(&got, &want, "indices")?;
    let flags: Vec<u8> = values.iter().map(|&value| if value < LIMIT { 1 << (value % 8) } else { 0 }).collect();
    let (got, count) =
        run(device, n, offset, |out, count| device.select_indices_into(&flags[offset..], NonZero, out, count))?;
    same_bytes(&[count], &[want.len() as u64], "count of flags ")?;
    filled(&got, &want, "indices of flags")
}

/// Checks values of any size, selected and partitioned by flags.
fn check_flags<V: Pod + PartialEq + Debug + Send + Sync>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, part, .. } = what;
    let numbers = part.values(offset + n);
    let flags: Vec<u8> = numbers.iter().map(|&value| if value < LIMIT { 1 << (value % 8) } else { 0 }).collect();
    let values: Vec<V> = random_bits(n + 2 * offset, n as u64);
    let (on_device, flags_there) = (device.upload(&values)?, device.upload(&flags)?);
    let (from, flags) = (&values[2 * offset..], &flags[offset..]);
    let chosen = |flag: bool| from.iter().zip(flags).filter(move |(_, f)| (**f != 0) == flag).map(|(value, _)| *value);
    let mut want: Vec<V> = chosen(true).collect();
    let taken = want.len();
    let (got, count) = run(device, rooms(n, taken, what.room), what.out_offset(), |out, count| {
        let (values, flags) = (on_device.view(2 * offset..)?, flags_there.view(offset..)?);
        device.select_into(values.flagged(flags), NonZero, out, count)
    })?;
    same_bytes(&[count], &[taken as u64], "count ")?;
    filled(&got, &want, "selected")?;
    want.extend(chosen(false));
    let (got, count) = run(device, n, what.out_offset(), |out, count| {
        let (values, flags) = (on_device.view(2 * offset..)?, flags_there.view(offset..)?);
        device.partition_into(values.flagged(flags), NonZero, out, count)
    })?;
    same_bytes(&[count], &[taken as u64], "count of a partition ")?;
    same_bytes(&got, &want, "partitioned")
}

fn check_partition<T: Element, const REVERSED: bool>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, part, .. } = what;
    let values = part.values(offset + n);
    let all: Vec<T> = elements(&values);
    let of = |list: &dyn Fn(u64) -> bool| -> Vec<T> {
        let some = values[offset..].iter().zip(&all[offset..]).filter(|(value, _)| list(**value));
        some.map(|(_, &x)| x).collect()
    };
    let (first, mut others) = (of(&|value| value < LIMIT), of(&|value| value >= LIMIT));
    let on_device = device.upload(&all)?;
    let (got, count) = run(device, n, what.out_offset(), |out, count| {
        let (input, predicate) = (on_device.view(offset..)?, below::<T::Acc>(LIMIT));
        if REVERSED {
            device.partition_into(input, UnstableTail(&predicate), out, count)
        } else {
            device.partition_into(input, &predicate, out, count)
        }
    })?;
    if REVERSED {
        others.reverse();
    }
    same_bytes(&[count], &[first.len() as u64], "count ")?;
    same_bytes(&got, &[first, others].concat(), "partitioned")
}

/// Checks three parts: below half of the limit, below the limit, and the rest. With `CAPTURED`, both limits are
/// captured values.
fn check_three<T: Element, const CAPTURED: bool>(device: &Device, what: What) -> Result<(), Failure> {
    let What { n, offset, part, .. } = what;
    let values = part.values(offset + n);
    let all: Vec<T> = elements(&values);
    let list = |value: u64| if value < LIMIT / 2 { 0 } else { 2 - usize::from(value < LIMIT) };
    let mut lists = [const { Vec::new() }; 3];
    values[offset..].iter().zip(&all[offset..]).for_each(|(&value, &x)| lists[list(value)].push(x));
    let on_device = device.upload(&all)?;
    let mut counts = Vec::new();
    let got = guarded(device, n, what.out_offset(), |out| {
        counts = guarded(device, 2, offset, |counts| {
            let input = on_device.view(offset..)?;
            if CAPTURED {
                let limits = (below_captured::<T::Acc>(LIMIT / 2), below_captured::<T::Acc>(LIMIT));
                return Ok(device.partition_into(input, limits, out, counts)?);
            }
            let limits = (below::<T::Acc>(LIMIT / 2), below::<T::Acc>(LIMIT));
            Ok(device.partition_into(input, limits, out, counts)?)
        })?;
        Ok(())
    })?;
    same_bytes(&counts, &[lists[0].len() as u64, lists[1].len() as u64], "counts")?;
    same_bytes(&got, &lists.concat(), "partitioned")
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let odd = Map::new(|x: i8| x % 2 != 0, "x % 2 != 0");
    let (mut out, mut count) = ([9i8; 4], [7u64]);
    device.select_into(&[3i8, -4, 5], &odd, &mut out, &mut count)?;
    same_bytes(&out, &[3, 5, 9, 9], "slice")?;
    same_bytes(&count, &[2], "count")?;
    let refused = |result: crate::Result<()>, want: &str| {
        let got = result.err().map_or("no error".into(), |error| error.to_string());
        if got == want { Ok(()) } else { Err(Failure::Mismatch(format!("`{got}` instead of `{want}`"))) }
    };
    let two = device.select_into(&[1i8], &odd, &mut out, &mut [0; 2]);
    refused(two, "a count needs an output of 1 elements, got 2")?;
    let few = device.select([1u8, 2].flagged(&[1u8]), NonZero).map(drop);
    refused(few, "2 values need as many flags, got 1")?;
    let nothing = device.select([()].flagged(&[1u8]), NonZero).map(drop);
    refused(nothing, "values of 0 bytes cannot be selected; 1 to 65536 can")?;
    let short = device.partition_into(&[1i8, 2], &odd, &mut [0i8; 1], &mut count);
    refused(short, "a partition needs an output of 2 elements, got 1")?;
    let unequal = device.unique([1u8].by_key(&[1u8, 2])).map(drop);
    refused(unequal, "2 keys need as many values, got 1")?;
    let more = device.selected(&[5], 4).map(drop);
    refused(more, "the result has 5 elements, the output has room for 4")
}

pub(in crate::select) type Check = fn(&Device, What) -> Result<(), Failure>;

/// Cases of an operation, with the numbers of elements that [`sizes`] gives for the size of `element`.
pub(in crate::select) fn cases_of(level: Level, form: &str, element: ElementType, check: Check, cases: &mut Vec<Case>) {
    let mut i = element as usize;
    for n in sizes(level, element.size()) {
        let parts = match level {
            Level::Full if n < 100_000 => &Part::ALL[..],
            Level::Tiny => &Part::ALL[i % 2..i % 2 + 1],
            _ => &Part::ALL[i % 7..i % 7 + 1],
        };
        for &part in parts {
            let what = What { n, offset: i % 4, room: i, part };
            i += 1;
            let shape = format!("n = {n} at {}, room {}", what.offset, what.room % 4);
            cases.push(Case::new(form, element, shape, part.name(), n, move |device| check(device, what)));
        }
        i += 1;
    }
}

/// Function that selects the elements below the limit into an output and a count.
type Measured<T> = fn(&Device, &Buffer<T>, &mut Buffer<T>, &mut Buffer<u64>) -> crate::Result<()>;

fn bench<T: Element>(
    name: &str,
    percent: u64,
    written: impl Fn(usize) -> usize + 'static,
    select: Measured<T>,
    right: fn(&[T]) -> Vec<T>,
    ordered: bool,
) -> Bench {
    let bytes = move |n: usize| ((n + written(n)) * size_of::<T>()) as u64;
    Bench::new(format!("{name}, {percent} %"), T::TYPE, bytes, move |device, n| {
        let values = Part::Percent(percent).values(n);
        let (host, taken) = (elements::<T>(&values), values.iter().filter(|&&value| value < LIMIT).count());
        let state = (device.clone(), device.upload(&host)?, device.zeroed(n)?, device.zeroed(1)?);
        Ok(Climb::new(
            state,
            |(_, _, out, count)| {
                count.fill(poison())?;
                out.fill(poison())
            },
            move |(device, x, out, count)| select(device, x, out, count),
            move |(_, _, out, count)| {
                same_bytes(&count.to_vec()?, &[taken as u64], "count")?;
                let (mut want, mut got) = (right(&host), out.to_vec()?);
                got.truncate(want.len());
                if !ordered {
                    want.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
                    got.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
                }
                same_bytes(&got, &want, "output")
            },
        ))
    })
}

fn bench_select<T: Element>(percent: u64) -> Bench {
    bench::<T>(
        "selected",
        percent,
        move |n| n * percent as usize / 100,
        |device, x, out, count| device.select_into(x, &below::<T::Acc>(LIMIT), out, count),
        taken,
        true,
    )
}

/// The elements that benchmarks select.
fn taken<T: Element>(x: &[T]) -> Vec<T> {
    x.iter().copied().filter(|x| x.to_f64() < LIMIT as f64).collect()
}

fn bench_unordered<T: Element>(percent: u64) -> Bench {
    bench::<T>(
        "selected unordered",
        percent,
        move |n| n * percent as usize / 100,
        |device, x, out, count| device.select_into(x, Unordered(&below::<T::Acc>(LIMIT)), out, count),
        taken,
        false,
    )
}

fn bench_partition<T: Element, const REVERSED: bool>(percent: u64) -> Bench {
    bench::<T>(
        if REVERSED { "partitioned, unstable tail" } else { "partitioned" },
        percent,
        |n| n,
        |device, x, out, count| {
            if REVERSED {
                device.partition_into(x, UnstableTail(&below::<T::Acc>(LIMIT)), out, count)
            } else {
                device.partition_into(x, &below::<T::Acc>(LIMIT), out, count)
            }
        },
        |x| {
            let (mut first, mut others): (Vec<T>, Vec<T>) = x.iter().partition(|x| x.to_f64() < LIMIT as f64);
            if REVERSED {
                others.reverse();
            }
            first.extend(others);
            first
        },
        true,
    )
}

/// Selection by flags of one byte each.
fn bench_flagged(percent: u64) -> Bench {
    let bytes = move |n: usize| (5 * n + 4 * (n * percent as usize / 100)) as u64;
    Bench::new(format!("flagged, {percent} %"), ElementType::U32, bytes, move |device, n| {
        let host: Vec<u32> = random_bits(n, n as u64);
        let flags = random_by(n, n as u64, |_, rng| u8::from(rng.below(100) < percent));
        let inputs = (device.upload(&host)?, device.upload(&flags)?);
        let outputs = (device.zeroed::<u32>(n)?, device.zeroed::<u64>(1)?);
        Ok(Climb::new(
            (device.clone(), inputs, outputs),
            |(_, _, (out, count))| {
                count.fill(poison())?;
                out.fill(poison())
            },
            |(device, (x, flags), (out, count))| device.select_into(x.flagged(&*flags), NonZero, out, count),
            move |(_, _, (out, count))| {
                let want: Vec<u32> = host.iter().zip(&flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x).collect();
                same_bytes(&count.to_vec()?, &[want.len() as u64], "count")?;
                filled(&out.to_vec()?, &want, "output")
            },
        ))
    })
}

impl Spec for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
            with_element!(element, T => cases_of(level, "selected", element, check_select::<T, false>, &mut cases));
        }
        let mut push = |form, element, check: Check| cases_of(level, form, element, check, &mut cases);
        push("selected unordered", ElementType::F32, check_unordered::<f32>);
        push("indices in u32", ElementType::F32, check_indices::<f32, u32>);
        push("values of 4 bytes flagged", ElementType::U32, check_flags::<u32>);
        push("partitioned", ElementType::F32, check_partition::<f32, false>);
        push("partitioned, unstable tail", ElementType::F32, check_partition::<f32, true>);
        push("partitioned in three", ElementType::I64, check_three::<i64, false>);
        push("selected below a captured limit", ElementType::F32, check_select::<f32, true>);
        push("partitioned in three by captured limits", ElementType::U8, check_three::<u8, true>);
        if level >= Level::Quick {
            push("selected unordered", ElementType::U8, check_unordered::<u8>);
            push("indices in u64", ElementType::I64, check_indices::<i64, u64>);
            push("values of 1 byte flagged", ElementType::U8, check_flags::<u8>);
            push("values of 12 bytes flagged", ElementType::U32, check_flags::<[u32; 3]>);
            push("values of 16 bytes flagged", ElementType::U64, check_flags::<u128>);
            push("partitioned", ElementType::U8, check_partition::<u8, false>);
            push("partitioned, unstable tail", ElementType::U8, check_partition::<u8, true>);
            push("partitioned in three", ElementType::F16, check_three::<f16, false>);
        }
        if level >= Level::Full {
            push("selected unordered", ElementType::I64, check_unordered::<i64>);
            push("indices in u64", ElementType::U8, check_indices::<u8, u64>);
            push("values of 2 bytes flagged", ElementType::I16, check_flags::<u16>);
            push("values of 3 bytes flagged", ElementType::U8, check_flags::<[u8; 3]>);
            push("values of 8 bytes flagged", ElementType::F64, check_flags::<u64>);
            for element in ElementType::ALL {
                with_element!(element, T => {
                    cases_of(level, "partitioned", element, check_partition::<T, false>, &mut cases);
                    cases_of(level, "partitioned, unstable tail", element, check_partition::<T, true>, &mut cases);
                    cases_of(level, "partitioned in three", element, check_three::<T, false>, &mut cases);
                });
            }
        }
        // Without look-back, work-groups do not wait for one another.
        let (several, mut partitions) = (Tuning::default().class(DeviceClass::Gpu).without_look_back(), Vec::new());
        cases_of(level, "partitioned", ElementType::F32, check_partition::<f32, false>, &mut partitions);
        cases_of(level, "partitioned, unstable tail", ElementType::F32, check_partition::<f32, true>, &mut partitions);
        cases_of(level, "partitioned in three", ElementType::I64, check_three::<i64, false>, &mut partitions);
        cases.extend(partitions.into_iter().map(|case| {
            let form = format!("{}, without look-back", case.form);
            case.tuned(form, several.clone())
        }));
        runs::spec::cases(level, &mut cases);
        by_key::spec::cases(level, &mut cases);
        adjacent::spec::cases(level, &mut cases);
        cases.push(Case::new("host slices of selections", ElementType::I8, "n = 3", "by hand", 3, check_host));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches: Vec<_> = [10, 50, 90].map(bench_select::<u32>).into();
        benches.extend([10, 50, 90].map(bench_select::<u8>));
        benches.extend([bench_select::<f32>(50), bench_select::<u64>(50)]);
        benches.extend([10, 50, 90].map(bench_unordered::<u32>));
        benches.extend([10, 50, 90].map(bench_partition::<u32, false>));
        benches.extend([10, 50, 90].map(bench_partition::<u32, true>));
        benches.extend([10, 50, 90].map(bench_flagged));
        benches.extend(runs::spec::benches());
        benches.extend(by_key::spec::benches());
        benches.extend(adjacent::spec::benches());
        benches
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        let mut programs = Vec::new();
        let waiting = caps.with(|facts| facts.forward_progress = false);
        for form in forms() {
            for (aligned, wide) in [(false, false), (true, false), (true, true)] {
                programs.extend(gpu::plan(1 << 20, &form, aligned, caps, wide).map(|plan| plan.program));
            }
            if !form.unordered {
                programs.extend(gpu::plan(1 << 20, &form, true, &waiting, false).map(|plan| plan.program));
            }
        }
        programs.extend(adjacent::spec::programs(caps));
        programs.extend(by_key::spec::programs(caps));
        programs
    }
}

/// Every variant, with every type that needs another program.
pub(in crate::select) fn forms() -> Vec<gpu::Form> {
    use gpu::{Form, Marks};
    fn by<T: Element>() -> Marks {
        Marks::by::<T>(&below::<T::Acc>(LIMIT))
    }
    fn both<T: Element>() -> Marks {
        Marks::by::<T>(&(below::<T::Acc>(LIMIT), below::<T::Acc>(LIMIT)))
    }
    fn captured<T: Element>() -> Marks {
        Marks::by::<T>(&(below_captured::<T::Acc>(LIMIT), below_captured::<T::Acc>(LIMIT)))
    }
    let indices = |marks, place| Form { moved: false, places: true, place, ..Form::of(marks) };
    let mut forms = vec![
        indices(by::<f32>(), 4),
        indices(by::<u8>(), 8),
        indices(by::<i64>(), 8),
        indices(Marks::Flags, 4),
        indices(Marks::Flags, 8),
        indices(Marks::Heads(ElementType::U32), 8),
        indices(Marks::Heads(ElementType::F64), 8),
    ];
    for element in ElementType::ALL {
        with_element!(element, T => {
            forms.push(Form::of(by::<T>()));
            forms.push(Form { classes: 2, ..Form::of(by::<T>()) });
            forms.push(Form { classes: 2, reversed: true, ..Form::of(by::<T>()) });
            forms.push(Form { classes: 3, ..Form::of(both::<T>()) });
        });
    }
    for element in [ElementType::U8, ElementType::F32, ElementType::I64] {
        with_element!(element, T => forms.push(Form { unordered: true, ..Form::of(by::<T>()) }));
    }
    for value in [1, 2, 3, 4, 8, 12, 16] {
        for classes in [1, 2] {
            forms.push(Form { classes, moved: false, value, ..Form::of(Marks::Flags) });
        }
    }
    // Structs by a condition.
    forms.push(Form { unordered: true, ..Form::of_values(12, 1) });
    forms.push(Form { reversed: true, ..Form::of_values(12, 2) });
    forms.push(Form::of_values(16, 3));
    forms.push(Form::of(Marks::by::<f32>(&below_captured(LIMIT))));
    forms.push(Form { classes: 3, ..Form::of(captured::<u8>()) });
    forms.extend(runs::spec::forms());
    let by_count = [
        Form::of(by::<f32>()),
        Form { unordered: true, ..Form::of(by::<f32>()) },
        Form { classes: 2, reversed: true, ..Form::of(by::<f32>()) },
        Form { classes: 3, ..Form::of(both::<f32>()) },
        indices(by::<f32>(), 4),
        Form::of(Marks::Heads(ElementType::F32)),
        Form { lengths: true, ..Form::of(Marks::Heads(ElementType::F32)) },
        Form { moved: false, places: true, lengths: true, ..Form::of(Marks::NonTrivial(ElementType::F32)) },
        Form::of_values(12, 1),
        Form { reversed: true, ..Form::of_values(12, 2) },
        Form::of_values(12, 3),
    ];
    forms.extend(by_count.map(|form| Form { count: Some(ElementType::U64), ..form }));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_element_and_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [caps.local_bytes, 0, 1024, 4096, 8192] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for n in [1, 2047, 4097, 1 << 20, (1 << 32) + 1, 1 << 40, 1 << 48] {
                    for form in forms() {
                        let Ok(plan) = gpu::plan(n, &form, true, &caps, n >= 1 << 31) else { continue };
                        let what = format!("{name}: {n} {form:?}");
                        assert!(plan.tiles * plan.tile >= n && (plan.tiles - 1) * plan.tile < n, "{what}");
                        assert!((1..=plan.tiles).contains(&plan.groups), "{what}");
                        assert!(plan.work_group == 1 || plan.work_group >= 32, "{what}");
                        assert!(plan.work_group == 1 || plan.tile <= 1 << 16, "{what}");
                        let most = 64 + 33 * plan.tiles;
                        assert!(plan.scratch_bytes <= most, "{what}: {} of {most}", plan.scratch_bytes);
                    }
                }
            }
        }
    }
}
