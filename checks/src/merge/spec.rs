//! Spec of merges, and the orders that merges, merge sorts, set operations and searches share.

use super::{
    search, set,
    shared::{Tried, Value, Visit, What, by_name, by_size, by_time, numbers, own, ranges, sorted, visit_all},
    sort,
};
use crate::{
    Bound, Device, Element, ElementType, Order, ProgramSpec, Source,
    bench::Bench,
    check::{Case, Failure, Level, Spec, data::Data, everywhere, guarded, poison, same_bytes},
    ladder::Climb,
    op::{Compare, Less},
    sort::Merging,
    tuning::Tuned,
};

/// The primitive's entry in the registry.
pub(crate) struct Merge;

fn check<T: Value, C: Compare<T>>(device: &Device, tried: &Tried<T, C>, what: What) -> Result<(), Failure> {
    let What { a, b, offset, keys } = what;
    let (all, second) = (tried.sorted(keys, a, offset, 0), tried.sorted(keys, b, 0, 1));
    let (there, second_there) = (device.upload(&all)?, device.upload(&second)?);
    let got = guarded(device, a + b, offset, |out| {
        Ok(device.merge_into(there.view(offset..)?, &second_there, &tried.order, out)?)
    })?;
    let first = &all[offset..];
    let want = if device.is_cpu() {
        let both = [first, &second[..]].concat();
        tried.argsort(&both).into_iter().map(|index| both[index]).collect()
    } else {
        Device::cpu().merge(first, &second, &tried.order)?.to_vec()?
    };
    same_bytes(&got, &want, "merged")
}

fn check_pairs<T: Value, C: Compare<T>, V: Value>(
    device: &Device,
    tried: &Tried<T, C>,
    what: What,
) -> Result<(), Failure> {
    let What { a, b, offset, keys } = what;
    let (all, second) = (tried.sorted(keys, a, offset, 0), tried.sorted(keys, b, 0, 1));
    let (values, second_values): (Vec<V>, Vec<V>) = (numbers(a + offset, 0), numbers(b, a + offset));
    let (there, second_there) = (device.upload(&all)?, device.upload(&second)?);
    let (values_there, second_values_there) = (device.upload(&values)?, device.upload(&second_values)?);
    let mut got_values = Vec::new();
    let got = guarded(device, a + b, offset, |out| {
        got_values = guarded(device, a + b, offset, |values_out| {
            let a = there.view(offset..)?.with(values_there.view(offset..)?);
            let b = second_there.with(&second_values_there);
            Ok(device.merge_into(a, b, &tried.order, (out, values_out))?)
        })?;
        Ok(())
    })?;
    let (first, values) = (&all[offset..], &values[offset..]);
    let (want, want_values) = if device.is_cpu() {
        let (both, values) = ([first, &second[..]].concat(), [values, &second_values[..]].concat());
        tried.argsort(&both).into_iter().map(|index| (both[index], values[index])).unzip()
    } else {
        let (keys, values) = Device::cpu().merge(first.with(values), second.with(&second_values), &tried.order)?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

struct Cases {
    level: Level,
    cases: Vec<Case>,
}

impl Cases {
    fn pairs<T: Value, C: Compare<T> + Clone + Send + 'static, V: Value>(&mut self, tried: Tried<T, C>) {
        for what in ranges(self.level, size_of::<T>()) {
            let (tried, form) = (tried.clone(), tried.form(&format!("merge pairs with {} bytes", size_of::<V>())));
            let case = Case::new(form, tried.element, what.shape(), what.keys.name(), what.a + what.b, move |device| {
                everywhere(check_pairs::<T, C, V>(device, &tried, what))
            });
            self.cases.push(case);
        }
    }
}

impl Visit for Cases {
    fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
        for what in ranges(self.level, size_of::<T>()) {
            let (tried, form) = (tried.clone(), tried.form("merge"));
            let case = Case::new(form, tried.element, what.shape(), what.keys.name(), what.a + what.b, move |device| {
                check(device, &tried, what)
            });
            self.cases.push(case);
        }
    }
}

/// Checks invalid comparators. Any result is right, but calls terminate and write only to their outputs.
fn check_invalid_comparators(device: &Device, n: usize) -> Result<(), Failure> {
    let never: fn(&u32, &u32) -> bool = |_, _| false;
    let always: fn(&u32, &u32) -> bool = |_, _| true;
    let odd: fn(&u32, &u32) -> bool = |a, b| (a.wrapping_mul(0x9e37_79b1) ^ b) & 4 != 0;
    let x: Vec<u32> = Data::Random.generate(n, 5);
    let (a, b) = x.split_at(n / 3);
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    for (less, text) in [(never, "0"), (always, "1"), (odd, "((a * 0x9e3779b1u) ^ b) & 4")] {
        let order = Less::new("invalid comparator", less, text);
        guarded(device, n, 1, |out| Ok(device.merge_into(&a, &b, &order, out)?))?;
        guarded(device, b.len(), 1, |out| {
            guarded(device, b.len(), 1, |values| Ok(device.sort_into(b.with(&b), Merging(&order), (out, values))?))?;
            Ok(())
        })?;
        for op in crate::SetOp::ALL {
            let mut count = device.zeroed::<u64>(1)?;
            guarded(device, n / 2, 1, |out| Ok(device.set_operation_into(&a, &b, op, &order, out, &mut count)?))?;
            if count.to_vec()?[0] > n as u64 {
                return Err(Failure::Mismatch(format!("{} of {n} elements are kept", count.to_vec()?[0])));
            }
        }
        let lower = guarded(device, a.len(), 1, |out| {
            Ok(device.search_into::<_, u32, _>(&b, &a, Bound::Lower, &order, out)?)
        })?;
        let upper = guarded(device, a.len(), 1, |out| {
            Ok(device.search_into::<_, u32, _>(&b, &a, Bound::Upper, &order, out)?)
        })?;
        if lower.iter().chain(&upper).any(|&index| index as usize > b.len()) {
            return Err(Failure::Mismatch(format!("an index beyond {} elements", b.len())));
        }
    }
    Ok(())
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let order = Order::ascending();
    let (mut keys, mut values) = ([0i8; 4], [0u16; 4]);
    device.merge_into(&[-3i8, 2], &[-4, 2], &order, &mut keys)?;
    same_bytes(&keys, &[-4, -3, 2, 2], "merged")?;
    device.merge_into([-3i8, 2].with(&[10u16, 11]), [-4i8, 2].with(&[12u16, 13]), &order, (&mut keys, &mut values))?;
    same_bytes(&values, &[12, 10, 11, 13], "values")?;
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let short = device.merge_into(&[1i8, 2], &[3], &order, &mut keys);
    refused(short, "a merge needs an output of 3 elements, got 4")?;
    let unequal = device.merge([1u8, 2].with(&[1u8]), [1u8].with(&[1u8]), &order).map(drop);
    refused(unequal, "merging 2 keys needs as many values, got 1")?;
    let nothing = device.sort([1u8].with(&[()]), Merging(&order)).map(drop);
    refused(nothing, "values must have at least 1 byte")?;
    let beyond = device.sort(&[1u8], Merging(Order::ascending().bits(2..9))).map(drop);
    refused(beyond, "bits 2..9 are not a range of the 8 bits of u8")?;
    let before: fn(&[u64; 9], &[u64; 9]) -> bool = |a, b| a < b;
    let large = Less::of_struct("large", "Large", "typedef struct { ulong x[9]; } Large;", before, "a.x[0] < b.x[0]");
    let large = device.merge(&[[0u64; 9]], &[[0; 9]], &large).map(drop);
    refused(large, "order large is of elements of 72 bytes; 1 to 64 are possible")?;
    let mut count = [0];
    let union = device.set_operation_into(&[1i8, 2], &[3, 4, 5], crate::SetOp::Union, &order, &mut keys, &mut count);
    refused(union, "the union has 5 elements, the output has room for 4")?;
    same_bytes(&count, &[5], "count")?;
    same_bytes(&keys, &[1, 2, 3, 4], "elements that fit")
}

impl Spec for Merge {
    fn name(&self) -> &'static str {
        "merge"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Cases { level, cases: Vec::new() };
        visit_all(level, &mut cases);
        cases.pairs::<_, _, u32>(own::<f32>(false));
        if level >= Level::Quick {
            cases.pairs::<_, _, u64>(by_size());
            cases.pairs::<_, _, [u8; 3]>(own::<u8>(false));
        }
        if level >= Level::Full {
            cases.pairs::<_, _, u8>(own::<u64>(true));
            cases.pairs::<_, _, u128>(by_time());
            cases.pairs::<_, _, [u32; 5]>(by_name::<2>(" by name"));
        }
        let mut cases = cases.cases;
        cases.extend(sort::spec::cases(level));
        cases.extend(set::spec::cases(level));
        cases.extend(search::spec::cases(level));
        for n in if level == Level::Tiny { vec![700] } else { vec![700, 20_011] } {
            cases.push(Case::new(
                "invalid comparators",
                ElementType::U32,
                format!("n = {n}"),
                "random",
                n,
                move |device| check_invalid_comparators(device, n),
            ));
        }
        cases.push(Case::new("merge host slices", ElementType::I8, "n = 4", "by hand", 4, check_host));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches = vec![bench_merge::<u32>(), bench_merge::<u64>(), bench_pairs()];
        benches.extend(sort::spec::benches());
        benches.extend(set::spec::benches());
        benches.extend(search::spec::benches());
        benches
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        programs::all(caps)
    }
}

/// Merges two ranges that have `n` elements in total.
fn bench_merge<T: Element>() -> Bench {
    let bytes = |n| 2 * (n * size_of::<T>()) as u64;
    Bench::new("merge", T::TYPE, bytes, |device, n| {
        let (a, b) = (sorted::<T>(n / 2, 0)?, sorted::<T>(n - n / 2, 1)?);
        let inputs = (device.upload(&a)?, device.upload(&b)?);
        let state = (device.clone(), inputs, device.zeroed::<T>(n)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            |(device, (a, b), out)| device.merge_into(&*a, &*b, Order::ascending(), out),
            move |(_, _, out)| {
                let want = Device::cpu().merge(&a, &b, Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "merged")
            },
        ))
    })
}

fn bench_pairs() -> Bench {
    let bytes = |n| 16 * n as u64;
    Bench::new("merge pairs with u32", ElementType::U32, bytes, |device, n| {
        let (a, b) = (sorted::<u32>(n / 2, 0)?, sorted::<u32>(n - n / 2, 1)?);
        let inputs = (device.upload(&a)?, device.upload(&b)?);
        let values = device.iota(n, 0u32, 1)?;
        let outputs = (device.zeroed::<u32>(n)?, device.zeroed::<u32>(n)?);
        Ok(Climb::new(
            (device.clone(), inputs, values, outputs),
            |(_, _, _, (keys, values))| {
                keys.fill(poison())?;
                values.fill(poison())
            },
            |(device, (a, b), values, (keys_out, values_out))| {
                let (first, second) = (values.view(..a.len())?, values.view(a.len()..)?);
                let order = Order::ascending();
                device.merge_into(a.with(first), b.with(second), order, (keys_out, values_out))
            },
            move |(_, _, values, (keys, values_out))| {
                let values = values.to_vec()?;
                let (first, second) = values.split_at(a.len());
                let want = Device::cpu().merge(a.with(first), b.with(second), Order::ascending())?;
                same_bytes(&keys.to_vec()?, &want.0.to_vec()?, "keys")?;
                same_bytes(&values_out.to_vec()?, &want.1.to_vec()?, "values")
            },
        ))
    })
}

mod programs {
    use super::{
        super::{
            form,
            gpu::{plan, with_lengths},
            search::{self, Bound},
            set,
        },
        *,
    };
    use crate::SetOp;

    struct Programs<'a> {
        caps: &'a Tuned,
        programs: Vec<ProgramSpec>,
    }

    impl Visit for Programs<'_> {
        fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
            let Self { caps, programs } = self;
            let sizes =
                [(0, false), (0, true), (4, false), (12, true), (16, false)].map(|(bytes, wide)| (20, bytes, wide));
            for (bits, value_bytes, wide) in sizes.into_iter().chain([(26, 0, false), (26, 0, true)]) {
                let form = form(&tried.order, value_bytes);
                let plan = form.and_then(|form| plan(1 << bits, &form, caps, wide));
                programs.extend(plan.map(|plan| plan.program));
            }
            if tried.element == ElementType::U32 && tried.name.is_empty() {
                let plan = form(&tried.order, 4).and_then(|form| plan(1 << 20, &form, caps, false));
                let counts = [[None, Some(ElementType::U64)], [Some(ElementType::U32), Some(ElementType::U64)]];
                programs
                    .extend(plan.iter().flat_map(|plan| counts.map(|both| with_lengths(plan.program.clone(), both))));
            }
            let Ok(form) = form(&tried.order, 0) else { return };
            for (op, wide) in SetOp::ALL.into_iter().zip([false, true].into_iter().cycle()) {
                programs.extend(set::gpu::plan(op, 1 << 20, &form, caps, wide).map(|plan| plan.program));
            }
            for (bound, index_bytes) in [(Bound::Lower, 4), (Bound::Upper, 8)] {
                let plan = search::gpu::plan(bound, index_bytes, 1 << 20, &form, caps, index_bytes == 8);
                programs.extend(plan.map(|plan| plan.program));
            }
        }
    }

    /// All programs of a device with these capabilities.
    pub(super) fn all(caps: &Tuned) -> Vec<ProgramSpec> {
        let mut programs = Programs { caps, programs: Vec::new() };
        visit_all(Level::Full, &mut programs);
        programs.programs
    }
}
