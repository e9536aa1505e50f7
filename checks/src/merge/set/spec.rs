//! Cases and benchmark cases of set operations.

use super::SetOp;
use crate::{
    Device, ElementType, Order,
    bench::Bench,
    check::{Case, Failure, Level, guarded, poison, same_bytes},
    ladder::Climb,
    merge::shared::{Tried, Value, Visit, What, ranges, sorted, visit_all},
    op::Compare,
};

/// The operation by definition, for m equal elements in `a` and n in `b`. The union keeps max(m, n), the intersection
/// min(m, n), the difference m - min(m, n), the symmetric difference |m - n|.
fn obvious<T: Value, C: Compare<T>>(op: SetOp, tried: &Tried<T, C>, a: &[T], b: &[T]) -> Vec<T> {
    let (mut a, mut b, mut kept) = (a, b, Vec::new());
    while let Some(x) = match (a.first(), b.first()) {
        (Some(x), Some(y)) => Some(if tried.before(y, x) { *y } else { *x }),
        (x, y) => x.or(y).copied(),
    } {
        let equals = |range: &[T]| range.iter().take_while(|y| !tried.before(&x, y)).count();
        let ((first, rest), (second, others)) = (a.split_at(equals(a)), b.split_at(equals(b)));
        let (m, n) = (first.len(), second.len());
        match op {
            SetOp::Union => {
                kept.extend_from_slice(first);
                kept.extend_from_slice(&second[m.min(n)..]);
            }
            SetOp::Intersection => kept.extend_from_slice(&first[..m.min(n)]),
            SetOp::Difference => kept.extend_from_slice(&first[m.min(n)..]),
            SetOp::SymmetricDifference => {
                kept.extend_from_slice(&first[m.min(n)..]);
                kept.extend_from_slice(&second[m.min(n)..]);
            }
        }
        (a, b) = (rest, others);
    }
    kept
}

/// Checks outputs with room for all results, for fewer and for more, and the call that allocates.
fn check<T: Value, C: Compare<T>>(device: &Device, op: SetOp, tried: &Tried<T, C>, what: What) -> Result<(), Failure> {
    let What { a, b, offset, keys } = what;
    let (all, second) = (tried.sorted(keys, a, offset, 0), tried.sorted(keys, b, 0, 1));
    let (there, second_there) = (device.upload(&all)?, device.upload(&second)?);
    let first = &all[offset..];
    let want = if device.is_cpu() {
        obvious(op, tried, first, &second)
    } else {
        Device::cpu().set_operation(first, &second, op, &tried.order)?.to_vec()?
    };
    for capacity in [want.len(), want.len() / 2, want.len() + 3] {
        let mut count = Vec::new();
        let got = guarded(device, capacity, offset, |out| {
            count = guarded(device, 1, offset, |count| {
                let first = there.view(offset..)?;
                Ok(device.set_operation_into(first, &second_there, op, &tried.order, out, count)?)
            })?;
            Ok(())
        })?;
        same_bytes(&count, &[want.len() as u64], "count")?;
        let filled = capacity.min(want.len());
        same_bytes(&got[..filled], &want[..filled], "kept")?;
        same_bytes(&got[filled..], &vec![poison(); capacity - filled], "elements after the result")?;
    }
    let got = device.set_operation(there.view(offset..)?, &second_there, op, &tried.order)?;
    same_bytes(&got.to_vec()?, &want, "kept, allocating")
}

struct Cases {
    level: Level,
    /// Number of orders visited so far. Modulo 4, it selects the operation of the next order.
    next: usize,
    cases: Vec<Case>,
}

impl Visit for Cases {
    fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
        // Each operation costs a build: one type has all of them, and the others have one each.
        let all = self.level >= Level::Full || (tried.element == ElementType::F32 && tried.name.is_empty());
        let ops = if all { SetOp::ALL.to_vec() } else { vec![SetOp::ALL[self.next % 4]] };
        self.next += 1;
        for op in ops {
            for what in ranges(self.level, size_of::<T>()) {
                let (tried, form) = (tried.clone(), tried.form(op.name()));
                let n = what.a + what.b;
                self.cases.push(Case::new(form, tried.element, what.shape(), what.keys.name(), n, move |device| {
                    check(device, op, &tried, what)
                }));
            }
        }
    }
}

pub(in crate::merge) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Cases { level, next: 0, cases: Vec::new() };
    // The orders of `Tiny` stand for the others, whose kernels differ only in the comparison.
    visit_all(if level == Level::Full { level } else { Level::Tiny }, &mut cases);
    cases.cases
}

fn bench(op: SetOp) -> Bench {
    // Both ranges are read; at most as many elements are written.
    Bench::new(
        op.name(),
        ElementType::U32,
        |n| 8 * n as u64,
        move |device, n| {
            let (a, b) = (sorted::<u32>(n / 2, 0)?, sorted::<u32>(n - n / 2, 1)?);
            // Some elements are in both ranges.
            let (a, b): (Vec<u32>, Vec<u32>) = (a.iter().map(|x| x >> 4).collect(), b.iter().map(|x| x >> 4).collect());
            let inputs = (device.upload(&a)?, device.upload(&b)?);
            let outputs = (device.zeroed::<u32>(n)?, device.zeroed::<u64>(1)?);
            Ok(Climb::new(
                (device.clone(), inputs, outputs),
                |(_, _, (out, _))| out.fill(poison()),
                move |(device, (a, b), (out, count))| {
                    device.set_operation_into(&*a, &*b, op, Order::ascending(), out, count)
                },
                move |(_, _, (out, count))| {
                    let want = Device::cpu().set_operation(&a, &b, op, Order::ascending())?.to_vec()?;
                    same_bytes(&count.to_vec()?, &[want.len() as u64], "count")?;
                    same_bytes(&out.to_vec()?[..want.len()], &want, "kept")
                },
            ))
        },
    )
}

pub(in crate::merge) fn benches() -> Vec<Bench> {
    vec![bench(SetOp::Union), bench(SetOp::Intersection)]
}
