//! Cases and benchmark cases of searches.

use super::Bound;
use crate::{
    Device, Element, ElementType, Offset, Order,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, poison, same_bytes},
    ladder::Climb,
    merge::shared::{Tried, Value, Visit, What, ranges, sorted, visit_all},
    op::Compare,
};

/// Fails unless the bounds of needles follow their definition. The element before a lower bound comes before the
/// needle, and the element at the bound does not. The element before an upper bound does not come after the needle, and
/// the element at the bound does.
fn check_bounds<T: Value, C: Compare<T>, I: Offset>(
    bound: Bound,
    tried: &Tried<T, C>,
    (range, needles): (&[T], &[T]),
    indices: &[I],
) -> Result<(), Failure> {
    for (i, (needle, index)) in needles.iter().zip(indices).enumerate() {
        let index = index.to_i128() as usize;
        let before = |x: &T| match bound {
            Bound::Lower => tried.before(x, needle),
            Bound::Upper => !tried.before(needle, x),
        };
        let right = index <= range.len()
            && range[..index].last().is_none_or(&before)
            && range[index..].first().is_none_or(|x| !before(x));
        if !right {
            return Err(Failure::Mismatch(format!("the bound of needle {i}, {needle:?}, is not {index}")));
        }
    }
    Ok(())
}

/// Checks the bounds of `b` needles, in any order, in a range of `a` elements. Every third needle is in the range.
fn check<T: Value, C: Compare<T>, I: Offset>(
    device: &Device,
    bound: Bound,
    tried: &Tried<T, C>,
    what: What,
) -> Result<(), Failure> {
    let What { a, b, offset, keys } = what;
    let all = tried.sorted(keys, a, offset, 0);
    let mut needles = tried.make(keys, b, offset + 1)[1..].to_vec();
    for (i, needle) in needles.iter_mut().enumerate().filter(|(i, _)| a > 0 && i % 3 == 0) {
        *needle = all[offset + i * 7 % a];
    }
    let (there, needles_there, order) = (device.upload(&all)?, device.upload(&needles)?, &tried.order);
    let got: Vec<I> = guarded(device, b, offset, |out| {
        let (range, needles) = (there.view(offset..)?, needles_there.view(offset..)?);
        match bound {
            Bound::Lower => device.search_into(range, needles, Bound::Lower, order, out)?,
            Bound::Upper => device.search_into(range, needles, Bound::Upper, order, out)?,
        }
        Ok(())
    })?;
    let (range, needles) = (&all[offset..], &needles[offset..]);
    if device.is_cpu() {
        return check_bounds(bound, tried, (range, needles), &got);
    }
    let want = match bound {
        Bound::Lower => Device::cpu().search(range, needles, Bound::Lower, order)?.to_vec()?,
        Bound::Upper => Device::cpu().search(range, needles, Bound::Upper, order)?.to_vec()?,
    };
    same_bytes(&got, &want, "bounds")
}

/// Checks a sorted range, and ranges with an element out of order.
fn check_unsorted<T: Value, C: Compare<T>>(
    device: &Device,
    tried: &Tried<T, C>,
    What { a, b, offset, keys }: What,
) -> Result<(), Failure> {
    let mut all = tried.sorted(keys, a + b, offset, 0);
    let n = a + b;
    for wrong in [None, Some(n.saturating_sub(1)), Some(a), Some(1)] {
        // Swaps an element with the first one, so that it is out of order.
        if let Some(wrong) = wrong.filter(|&wrong| wrong > 0 && wrong < n) {
            all.swap(offset, offset + wrong);
        }
        let there = device.upload(&all)?;
        let got = guarded(device, 1, offset, |out| {
            Ok(device.first_unsorted_into(there.view(offset..)?, &tried.order, out)?)
        })?;
        let want = if device.is_cpu() {
            all[offset..].windows(2).position(|pair| tried.before(&pair[1], &pair[0])).map(|index| index + 1)
        } else {
            Device::cpu().first_unsorted(&all[offset..], &tried.order)?
        };
        same_bytes(&got, &[want.map_or(u64::MAX, |index| index as u64)], "first out of order")?;
    }
    Ok(())
}

struct Cases {
    level: Level,
    /// Number of orders visited so far. Odd and even orders get different operations.
    next: usize,
    cases: Vec<Case>,
}

type Check<T, C> = fn(&Device, &Tried<T, C>, What) -> Result<(), Failure>;

impl Cases {
    fn push<T: Value, C: Compare<T> + Clone + Send + 'static>(
        &mut self,
        tried: &Tried<T, C>,
        form: &str,
        check: Check<T, C>,
    ) {
        for what in ranges(self.level, size_of::<T>()) {
            let (tried, form) = (tried.clone(), tried.form(form));
            let n = what.a + what.b;
            self.cases.push(Case::new(form, tried.element, what.shape(), what.keys.name(), n, move |device| {
                check(device, &tried, what)
            }));
        }
    }
}

impl Visit for Cases {
    fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
        // Each bound costs a build: one type has both bounds, and the others have one each.
        let both = self.level >= Level::Full || (tried.element == ElementType::F32 && tried.name.is_empty());
        self.next += 1;
        if both || self.next.is_multiple_of(2) {
            self.push(&tried, "lower bound", |device, tried, what| {
                check::<_, _, u32>(device, Bound::Lower, tried, what)
            });
            self.push(&tried, "first unsorted", check_unsorted);
        }
        if both || !self.next.is_multiple_of(2) {
            self.push(&tried, "upper bound", |device, tried, what| {
                check::<_, _, u64>(device, Bound::Upper, tried, what)
            });
        }
    }
}

pub(in crate::merge) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Cases { level, next: 0, cases: Vec::new() };
    // The orders of `Tiny` stand for the others, whose kernels differ only in the comparison.
    visit_all(if level == Level::Full { level } else { Level::Tiny }, &mut cases);
    cases.cases
}

/// Searches for `n` needles in `n` elements.
fn bench_bounds(in_order: bool) -> Bench {
    let form = if in_order { "lower bound, sorted needles" } else { "lower bound" };
    Bench::new(
        form,
        u32::TYPE,
        |n| 8 * n as u64,
        move |device, n| {
            let range = sorted::<u32>(n, 0)?;
            let needles = if in_order { sorted::<u32>(n, 1)? } else { Data::Random.generate(n, n as u64 + 1) };
            let inputs = (device.upload(&range)?, device.upload(&needles)?);
            Ok(Climb::new(
                (device.clone(), inputs, device.zeroed::<u32>(n)?),
                |(_, _, out)| out.fill(poison()),
                |(device, (range, needles), out)| {
                    device.search_into(&*range, &*needles, Bound::Lower, Order::ascending(), out)
                },
                move |(_, _, out)| {
                    let want = Device::cpu().search::<_, u32, _>(&range, &needles, Bound::Lower, Order::ascending())?;
                    same_bytes(&out.to_vec()?, &want.to_vec()?, "bounds")
                },
            ))
        },
    )
}

fn bench_unsorted() -> Bench {
    Bench::new(
        "first unsorted",
        u32::TYPE,
        |n| 4 * n as u64,
        |device, n| {
            let state = (device.clone(), device.upload(&sorted::<u32>(n, 0)?)?, device.zeroed::<u64>(1)?);
            Ok(Climb::new(
                state,
                |(_, _, out)| out.fill(0),
                |(device, x, out)| device.first_unsorted_into(&*x, Order::ascending(), out),
                |(_, _, out)| same_bytes(&out.to_vec()?, &[u64::MAX], "first out of order"),
            ))
        },
    )
}

pub(in crate::merge) fn benches() -> Vec<Bench> {
    vec![bench_bounds(false), bench_bounds(true), bench_unsorted()]
}
