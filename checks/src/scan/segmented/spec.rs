//! Cases and benchmark cases of segmented scans.

use crate::scan::{Scan, in_scan};
use crate::{
    Buffer, Device, Element, Offset, Result, Source, Tuning, View, ViewMut,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level,
        data::{Data, Rng},
        guarded,
        keys::rank,
        operators::{Function, affine, monoid, plus},
        poison, same,
        segments::Cut,
    },
    f16,
    ladder::Climb,
    op::{Max, Min, Monoid, Op, Product, Sum, Xor},
    scan::{
        cpu,
        shared::{exclusive_prefixes, sizes},
    },
    tuning::Tuned,
};
use crate::{ElementType, ProgramSpec, scan::gpu};

/// Function that runs an operation on elements and on keys, flags or offsets of type K.
type Run<T, U, K> = fn(&Device, View<'_, T>, View<'_, K>, Scan<U>, ViewMut<'_, U>) -> Result<()>;

/// Function that makes the keys, flags or offsets for a division of `n` elements into segments.
type Describe<K> = fn(Cut, usize) -> Vec<K>;

/// Keys that change at the first element of each segment.
fn keys<K: Element>(cut: Cut, n: usize) -> Vec<K> {
    let mut key = 0;
    let next = |head| {
        key = (key + u8::from(head)) % 3;
        K::from_f64(f64::from(key))
    };
    heads(&cut.offsets::<u64>(n), n).into_iter().map(next).collect()
}

/// Segment-head flags; those that are set have various values other than 0.
fn flags(cut: Cut, n: usize) -> Vec<u8> {
    let mut rng = Rng::new(n as u64);
    let flag = |head| if head { 1 << rng.below(8) } else { 0 };
    heads(&cut.offsets::<u64>(n), n).into_iter().map(flag).collect()
}

fn offsets<C: Offset>(cut: Cut, n: usize) -> Vec<C> {
    cut.offsets(n)
}

/// Segment-head flags of `n` elements: true at each offset.
fn heads(offsets: &[u64], n: usize) -> Vec<bool> {
    let mut heads = vec![false; n];
    offsets.iter().filter(|&&at| at < n as u64).for_each(|&at| heads[at as usize] = true);
    heads
}

/// Kind of scan number `i`: inclusive or exclusive, forward or reversed.
fn kind<U: Element>(i: usize) -> (&'static str, Scan<U>) {
    let five = Scan::exclusive(U::from_f64(5.0));
    match i % 4 {
        0 => ("inclusive", Scan::inclusive()),
        1 => ("exclusive", five),
        2 => ("inclusive, reversed", Scan::inclusive().reversed()),
        _ => ("exclusive, reversed", five.reversed()),
    }
}

/// Results by the definition in `cl/scan.cl`. `values` are in the order of the scan, each with its segment-head flag.
fn obvious<U, F>(op: &Monoid<U, F>, values: &[(U::Acc, bool)], run: usize, kind: Scan<U>) -> Vec<U>
where
    U: Element,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let (initial, inclusive) = cpu::start(op, kind);
    let mut out = Vec::new();
    let mut results = |mut acc: U::Acc, values: &[(U::Acc, bool)]| {
        for &(x, head) in values {
            let before = if head { initial } else { acc };
            acc = (op.combine)(before, x);
            out.push(U::narrow(if inclusive { acc } else { before }));
        }
    };
    if !op.ordered {
        results(initial, values);
        return out;
    }
    let join = |a: (U::Acc, bool), b: (U::Acc, bool)| if b.1 { b } else { ((op.combine)(a.0, b.0), a.1) };
    let after = |prefix, (x, head)| (op.combine)(if head { initial } else { prefix }, x);
    let exclusive_prefixes = exclusive_prefixes(&join, (op.identity, false), values, run, values.len());
    for (values, (digits, own)) in values.chunks(run).zip(exclusive_prefixes) {
        results(after(digits.into_iter().fold(initial, after), own), values);
    }
    out
}

/// Results for elements with segment-head flags, in the order of memory.
pub(in crate::scan) fn by_definition<T, U, F>(op: &Monoid<U, F>, input: &[T], heads: &[bool], kind: Scan<U>) -> Vec<U>
where
    T: Element,
    U: Element + From<T>,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let mut values: Vec<_> = input.iter().map(|&x| U::from(x).widen()).zip(heads.iter().copied()).collect();
    if kind.reversed {
        // In reverse order, a segment starts at its last element.
        values.iter_mut().zip(heads.iter().skip(1).chain([&false])).for_each(|(pair, &head)| pair.1 = head);
        values.reverse();
    }
    let mut out = obvious(op, &values, cpu::run::<U>(), kind);
    if kind.reversed {
        out.reverse();
    }
    out
}

/// An operation: its monoid, the function that makes keys, flags or offsets, and the function that runs it.
struct Form<T: Element, U: Element, K: Element, F> {
    op: Monoid<U, F>,
    describe: Describe<K>,
    /// Bytes of keys or flags per element. It is 0 for offsets, which can be far fewer than the elements.
    descriptor_bytes: usize,
    run: Run<T, U, K>,
}

impl<T: Element, U: Element, K: Element, F: Copy> Copy for Form<T, U, K, F> {}
impl<T: Element, U: Element, K: Element, F: Copy> Clone for Form<T, U, K, F> {
    fn clone(&self) -> Self {
        *self
    }
}

fn check<T, U, K, F>(
    device: &Device,
    form: &Form<T, U, K, F>,
    (all, descriptors): (&[T], &[K]),
    heads: &[bool],
    at: usize,
    kind: Scan<U>,
) -> std::result::Result<(), Failure>
where
    T: Element,
    U: Element + From<T>,
    K: Element,
    F: Fn(U::Acc, U::Acc) -> U::Acc,
{
    let input = &all[at..];
    // Unless `at` is 0, elements, keys and results have different offsets.
    let (x, padded) = (device.upload(all)?, device.upload(&[&[K::ZERO; 3][..3 * at.min(1)], descriptors].concat())?);
    let descriptors_at = padded.len() - descriptors.len();
    let got = guarded(device, input.len(), 2 * at, |out| {
        Ok((form.run)(device, x.view(at..)?, padded.view(descriptors_at..)?, kind, out)?)
    })?;
    let want = if device.is_cpu() {
        by_definition(&form.op, input, heads, kind)
    } else {
        let cpu = Device::cpu();
        let (x, descriptors, mut want) = (cpu.upload(input)?, cpu.upload(descriptors)?, cpu.zeroed(input.len())?);
        (form.run)(&cpu, x.view(..)?, descriptors.view(..)?, kind, want.view_mut(..)?)?;
        want.to_vec()?
    };
    same(&got, &want, "out")
}

/// Checks invalid offsets: results are unspecified, but calls write only to their outputs, and checked calls return an
/// error.
fn check_wrong<C: Offset>(device: &Device, n: usize) -> std::result::Result<(), Failure> {
    let x = Data::Random.generate::<f32>(n, 1);
    let mut rng = Rng::new(n as u64);
    for kind in [Scan::<f32>::inclusive(), Scan::inclusive().reversed()] {
        let wild: Vec<C> = (0..300).map(|_| C::from_bits_lossy(rng.next() >> (rng.next() % 60))).collect();
        guarded(device, n, 1, |out| Ok(device.scan_into(x.segments(&wild), in_scan(Sum, kind), out)?))?;
    }
    for offsets in [vec![0, n / 2, n / 3, n], vec![0, n, n + 1], vec![n + 1]] {
        let offsets: Vec<C> = offsets.into_iter().map(|x| C::from_i128(x as i128)).collect();
        if device.scan(x.segments(&offsets), Sum).is_ok() {
            return Err(Failure::Mismatch(format!("offsets {offsets:?} of {n} elements were accepted")));
        }
    }
    // Offsets beyond the input are ignored.
    let beyond: Vec<C> = [0, n / 3, n + 5, n + 70].map(|x| C::from_i128(x as i128)).into();
    for kind in [Scan::<f32>::inclusive(), Scan::inclusive().reversed()] {
        let got = guarded(device, n, 0, |out| Ok(device.scan_into(x.segments(&beyond), in_scan(Max, kind), out)?))?;
        let want = Device::cpu().scan(x.segments(&beyond[..2]), in_scan(Max, kind))?;
        same(&got, &want.to_vec()?, "without offsets beyond the input")?;
    }
    Ok(())
}

fn by_key<K: Element, T: Element, U: Element + From<T>, O: Op<U> + Default>() -> Form<T, U, K, Function<U::Acc>> {
    let run: Run<T, U, K> =
        |device, x, keys, kind, out| device.scan_into(x.cast::<U>().by_key(keys), in_scan(O::default(), kind), out);
    Form { op: monoid::<U, O>(), describe: keys, descriptor_bytes: size_of::<K>(), run }
}

fn flagged<T: Element, U: Element + From<T>, O: Op<U> + Default>() -> Form<T, U, u8, Function<U::Acc>> {
    let run: Run<T, U, u8> =
        |device, x, flags, kind, out| device.scan_into(x.cast::<U>().flagged(flags), in_scan(O::default(), kind), out);
    Form { op: monoid::<U, O>(), describe: flags, descriptor_bytes: 1, run }
}

fn segments<C: Offset, T: Element, U: Element + From<T>, O: Op<U> + Default>() -> Form<T, U, C, Function<U::Acc>> {
    let run: Run<T, U, C> = |device, x, offsets, kind, out| {
        device.scan_into(x.cast::<U>().segments(offsets), in_scan(O::default(), kind), out)
    };
    Form { op: monoid::<U, O>(), describe: offsets, descriptor_bytes: 0, run }
}

/// Operation with a user-defined operator that is not commutative.
fn affine_by_key() -> Form<u64, u64, u16, Function<u64>> {
    let run: Run<u64, u64, u16> =
        |device, x, keys, kind, out| device.scan_into(x.by_key(keys), in_scan(&affine(), kind), out);
    Form {
        op: Monoid { identity: 1, empty: 1, ordered: true, combine: affine().combine },
        describe: keys,
        descriptor_bytes: 2,
        run,
    }
}

fn affine_in_segments() -> Form<u64, u64, u32, Function<u64>> {
    let run: Run<u64, u64, u32> =
        |device, x, descriptors, kind, out| device.scan_into(x.segments(descriptors), in_scan(&affine(), kind), out);
    Form {
        op: Monoid { identity: 1, empty: 1, ordered: true, combine: affine().combine },
        describe: offsets,
        descriptor_bytes: 0,
        run,
    }
}

/// Operation with a user-defined operator that rounds.
fn plus_flagged() -> Form<f32, f32, u8, Function<f32>> {
    let run: Run<f32, f32, u8> =
        |device, x, descriptors, kind, out| device.scan_into(x.flagged(descriptors), in_scan(&plus(), kind), out);
    Form {
        op: Monoid { identity: -0.0, empty: -0.0, ordered: true, combine: plus().combine },
        describe: flags,
        descriptor_bytes: 1,
        run,
    }
}

/// Adds cases of pairs of a size and a division into segments. `Full` takes more pairs than other levels.
fn form<T, U, K, F>(level: Level, name: &str, form: Form<T, U, K, F>, cases: &mut Vec<Case>)
where
    T: Element,
    U: Element + From<T>,
    K: Element,
    F: Fn(U::Acc, U::Acc) -> U::Acc + Copy + Send + Sync + 'static,
{
    let mut cuts = vec![Cut::PowerLaw, Cut::Every(2), Cut::Huge];
    if level >= Level::Quick {
        cuts.extend([Cut::Every(1), Cut::Every(16), Cut::Every(256), Cut::Gaps, Cut::Empty]);
    }
    if level >= Level::Full {
        cuts.extend([3, 7, 100, 4096, 70_000].map(Cut::Every));
        cuts.push(Cut::Every(usize::MAX / 4));
    }
    let mut number = 0;
    for (j, n) in sizes::<T>(level).into_iter().enumerate() {
        for (i, &cut) in cuts.iter().enumerate() {
            let small = n < 100 && i > 2 || level == Level::Tiny && n < 100 && i > 0;
            if level < Level::Full && small || n > 300_000 && matches!(cut, Cut::Every(1..3)) {
                continue;
            }
            let kinds = if level >= Level::Full && n < 300_000 { 0..4 } else { number..number + 1 };
            for k in kinds {
                // Any four consecutive sizes of one division have all four pairs (at, data). So do any four
                // consecutive divisions of one size.
                let (at, data) = ((i + j) % 2, [Data::Random, Data::Special][(i / 2 + j / 2) % 2]);
                number += 1;
                let shape = format!("n = {n} at {at}, {}, segments {}", kind::<U>(k).0, cut.name());
                cases.push(Case::new(name, T::TYPE, shape, data.name(), n, move |device| {
                    let (all, descriptors) = (data.generate::<T>(n + at, n as u64), (form.describe)(cut, n));
                    let heads = heads(&cut.offsets::<u64>(n), n);
                    check(device, &form, (&all, &descriptors), &heads, at, kind(k).1)
                }));
            }
        }
    }
}

/// Cases of keys that are NaN, zeros of either sign and infinities.
fn special_keys<K: Element>(level: Level, cases: &mut Vec<Case>) {
    let ns: &[usize] = if level >= Level::Quick { &[1000, 40_000] } else { &[1000] };
    for &n in ns {
        for (i, data) in [Data::Special, Data::Extremes, Data::Constant].into_iter().enumerate() {
            let shape = format!("n = {n}, {} keys", K::TYPE);
            cases.push(Case::new("segmented sum by key", u32::TYPE, shape, data.name(), n, move |device| {
                let (all, keys) = (Data::Random.generate::<u32>(n, 1), data.generate::<K>(n, 1));
                let heads: Vec<_> = (0..n).map(|i| i > 0 && rank(keys[i - 1]) != rank(keys[i])).collect();
                check(device, &by_key::<K, u32, u32, Sum>(), (&all, &keys), &heads, 0, kind(i).1)
            }));
        }
    }
}

pub(in crate::scan) fn cases(level: Level, cases: &mut Vec<Case>) {
    form(level, "segmented sum by key", by_key::<u32, f32, f32, Sum>(), cases);
    form(level, "segmented sum at offsets", segments::<u32, f32, f32, Sum>(), cases);
    form(level, "segmented sum at offsets", segments::<u32, u32, u32, Sum>(), cases);
    form(level, "segmented max flagged", flagged::<i64, i64, Max>(), cases);
    form(level, "segmented affine by key", affine_by_key(), cases);
    special_keys::<f32>(level, cases);
    if level >= Level::Quick {
        form(level, "segmented sum at offsets", segments::<u64, u8, u8, Sum>(), cases);
        form(level, "segmented sum flagged", flagged::<f16, f16, Sum>(), cases);
        form(level, "segmented max by key", by_key::<u16, bf16, bf16, Max>(), cases);
        form(level, "segmented sum as u64 by key", by_key::<u8, u32, u64, Sum>(), cases);
        form(level, "segmented xor by key", by_key::<u64, u8, u8, Xor>(), cases);
        special_keys::<f16>(level, cases);
    }
    if level >= Level::Full {
        form(level, "segmented affine at offsets", affine_in_segments(), cases);
        form(level, "segmented a + b flagged", plus_flagged(), cases);
        form(level, "segmented sum by key", by_key::<f64, f64, f64, Sum>(), cases);
        form(level, "segmented sum at offsets", segments::<u64, f64, f64, Sum>(), cases);
        form(level, "segmented sum by key", by_key::<u32, f16, f16, Sum>(), cases);
        form(level, "segmented min at offsets", segments::<u32, f16, f16, Min>(), cases);
        form(level, "segmented sum at offsets", segments::<u32, bf16, bf16, Sum>(), cases);
        form(level, "segmented sum by key", by_key::<i16, i8, i8, Sum>(), cases);
        form(level, "segmented sum flagged", flagged::<bf16, bf16, Sum>(), cases);
        form(level, "segmented product flagged", flagged::<i32, i32, Product>(), cases);
        form(level, "segmented min at offsets", segments::<u32, f32, f32, Min>(), cases);
        form(level, "segmented sum as f32 at offsets", segments::<u32, f16, f32, Sum>(), cases);
        form(level, "segmented sum as i64 by key", by_key::<u32, i8, i64, Sum>(), cases);
        form(level, "segmented max by key", by_key::<u8, u16, u16, Max>(), cases);
        form(level, "segmented sum flagged", flagged::<u32, u32, Sum>(), cases);
        special_keys::<f64>(level, cases);
        special_keys::<bf16>(level, cases);
    }
    for n in [9, 20_000] {
        let shape = format!("n = {n}, wrong offsets");
        cases.push(Case::new("segmented sum at offsets", f32::TYPE, shape.clone(), "wild", n, move |device| {
            check_wrong::<u32>(device, n)
        }));
        if level >= Level::Full {
            cases.push(Case::new("segmented sum at offsets", f32::TYPE, shape + ", u64", "wild", n, move |device| {
                check_wrong::<u64>(device, n)
            }));
        }
    }
}

fn bench<T, K, F>(name: String, form: Form<T, T, K, F>, cut: Cut, look_back: bool) -> Bench
where
    T: Element,
    K: Element,
    F: Copy + Send + Sync + 'static,
{
    struct Measured<T: Element, K: Element> {
        device: Device,
        host: (Vec<T>, Vec<K>),
        x: Buffer<T>,
        descriptors: Buffer<K>,
        out: Buffer<T>,
    }
    let bytes = move |n: usize| (n * (2 * size_of::<T>() + form.descriptor_bytes)) as u64;
    let name = format!("{name} {}{}", cut.name(), if look_back { "" } else { ", without look-back" });
    Bench::new(name, T::TYPE, bytes, move |device, n| {
        let host = (Data::Random.generate::<T>(n, n as u64), (form.describe)(cut, n));
        let (x, descriptors, out) = (device.upload(&host.0)?, device.upload(&host.1)?, device.zeroed(n)?);
        let tuned = device.with_tuning(Tuning::default().without_look_back())?;
        let device = if look_back { device.clone() } else { tuned };
        let state = Measured { device, host, x, descriptors, out };
        let run = move |this: &mut Measured<T, K>| {
            let Measured { device, x, descriptors, out, .. } = this;
            (form.run)(device, x.view(..)?, descriptors.view(..)?, Scan::inclusive(), out.view_mut(..)?)
        };
        let verify = move |this: &mut Measured<T, K>| {
            let cpu = Device::cpu();
            let (x, descriptors, mut want) =
                (cpu.upload(&this.host.0)?, cpu.upload(&this.host.1)?, cpu.zeroed(this.out.len())?);
            (form.run)(&cpu, x.view(..)?, descriptors.view(..)?, Scan::inclusive(), want.view_mut(..)?)?;
            same(&this.out.to_vec()?, &want.to_vec()?, "out")
        };
        Ok(Climb::new(state, |this| this.out.fill(poison()), run, verify))
    })
}

pub(in crate::scan) fn benches() -> Vec<Bench> {
    let name = |form: &str| format!("sum {form}, segments");
    let mut benches = Vec::new();
    for cut in [Cut::Every(2), Cut::Every(16), Cut::Every(256), Cut::PowerLaw, Cut::Every(1 << 20)] {
        benches.push(bench(name("by key"), by_key::<u32, u32, u32, Sum>(), cut, true));
        benches.push(bench(name("at offsets"), segments::<u32, u32, u32, Sum>(), cut, true));
    }
    let cut = Cut::PowerLaw;
    benches.extend([
        bench(name("flagged"), flagged::<u32, u32, Sum>(), cut, true),
        bench(name("by key"), by_key::<u32, f32, f32, Sum>(), cut, true),
        bench(name("at offsets"), segments::<u32, f32, f32, Sum>(), cut, true),
        bench(name("flagged"), flagged::<f32, f32, Sum>(), cut, true),
        bench(name("by key"), by_key::<u64, u64, u64, Sum>(), cut, true),
        bench(name("by key"), by_key::<u32, u32, u32, Sum>(), cut, false),
        bench(name("at offsets"), segments::<u32, f32, f32, Sum>(), cut, false),
    ]);
    benches
}

pub(in crate::scan) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use gpu::Heads::{Flags, Keys, Offsets, Rows};
    let mut forms = Vec::new();
    for heads in [Keys(ElementType::U32), Flags, Offsets(ElementType::U32), Rows] {
        for reversed in [false, true] {
            let form = gpu::Form::of::<f32, f32, Sum>(reversed);
            forms.push(gpu::Form { heads: Some(heads), ..form });
        }
        forms.push(gpu::Form { heads: Some(heads), ..gpu::Form::of::<u8, u8, Max>(false) });
        forms.push(gpu::Form { heads: Some(heads), ..gpu::Form::of::<i64, i64, Sum>(false) });
    }
    let of = |heads, form| gpu::Form { heads: Some(heads), ..form };
    forms.extend([
        of(Keys(ElementType::F64), gpu::Form::of::<f64, f64, Sum>(false)),
        of(Keys(ElementType::F16), gpu::Form::of::<u32, u64, Sum>(false)),
        of(Keys(ElementType::U8), gpu::Form::of::<f16, f16, Sum>(false)),
        of(Keys(ElementType::U64), gpu::Form::of::<u8, u8, Sum>(true)),
        of(Keys(ElementType::F32), gpu::Form::of::<u32, u32, Sum>(false)),
        of(Offsets(ElementType::U64), gpu::Form::of::<u16, u32, Sum>(false)),
        of(Keys(ElementType::U16), gpu::Form::by::<u64, u64>((affine().source(), false), false)),
    ]);
    let waiting = caps.with(|facts| facts.forward_progress = false);
    let mut programs = Vec::new();
    for form in &forms {
        for (aligned, wide) in [(false, false), (true, false), (true, true)] {
            programs.extend(gpu::plan(1 << 20, form, [aligned; 2], caps, wide).map(|plan| plan.program));
        }
        programs.extend(gpu::plan(1 << 20, form, [true; 2], &waiting, false).map(|plan| plan.program));
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_flags_and_offsets_give_the_same_segments() {
        for cut in [Cut::PowerLaw, Cut::Every(3), Cut::Huge, Cut::Gaps] {
            let n = 5000;
            let heads = heads(&cut.offsets::<u64>(n), n);
            let keys = keys::<u32>(cut, n);
            assert!((1..n).all(|i| heads[i] == (keys[i - 1] != keys[i])), "{cut:?}");
            assert!(flags(cut, n).iter().zip(&heads).all(|(&flag, &head)| head == (flag != 0)), "{cut:?}");
        }
    }
}
