//! Primitives of runs of equal keys, and statistics of groups, against plain loops.

mod common;

use oclprim::{
    Accumulate, Bins, Buffer, Device, Element, ErrorKind, Interpolation, Moments, MomentsRecord, Order, Source,
    Statistics, StatisticsRecord, Top,
    internals::data::{Data, Rng},
};

/// Keys, the first key of each run, and the offsets of the runs.
struct Keys {
    each: Vec<u32>,
    runs: Vec<u32>,
    offsets: Vec<usize>,
}

impl Keys {
    /// Runs of the given lengths. A key returns in a later run.
    fn of(lengths: impl Iterator<Item = usize>) -> Self {
        let (mut each, mut runs, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
        for (run, length) in lengths.enumerate() {
            let key = 7 * (run as u32 % 5) + 1;
            each.resize(each.len() + length, key);
            runs.push(key);
            offsets.push(each.len());
        }
        Self { each, runs, offsets }
    }

    /// Runs of the lengths that `length` returns, until there are `n` keys.
    fn new(n: usize, mut length: impl FnMut() -> usize) -> Self {
        let mut rest = n;
        Self::of(std::iter::from_fn(|| {
            let next = length().min(rest);
            rest -= next;
            (next > 0).then_some(next)
        }))
    }

    /// The elements of each run.
    fn split<'a, T>(&self, x: &'a [T]) -> Vec<&'a [T]> {
        self.offsets.windows(2).map(|ends| &x[ends[0]..ends[1]]).collect()
    }
}

/// Keys of no run, of one run, of a run for each element, and of short and long runs.
fn all_keys() -> Vec<Keys> {
    let most = if common::tiny() { 2500 } else { 40_000 };
    let mut rng = Rng::new(5);
    let mut mixed = || if rng.below(50) == 0 { 1 + rng.below(9000) as usize } else { 1 + rng.below(12) as usize };
    vec![
        Keys::new(0, || 1),
        Keys::new(1, || 1),
        Keys::new(most / 2, || most),
        Keys::new(600, || 1),
        Keys::new(most, &mut mixed),
        Keys::new(most / 5, || 64),
    ]
}

fn devices() -> Vec<(String, Device)> {
    common::tuned(&[("a GPU", common::gpu())])
}

/// Numbers of results for which outputs have room: fewer than the runs, as many, and more.
fn rooms(runs: usize) -> [usize; 3] {
    [runs / 2, runs, runs + 70]
}

fn close(got: f64, want: f64, bound: f64, what: &str) {
    assert!((got - want).abs() <= bound, "{what}: {got} instead of {want}");
}

/// Compares moments with those that two plain passes compute.
fn same_moments<T: Element>(got: &Moments, own: &[T], what: &str) {
    let n = own.len() as f64;
    let mean = own.iter().map(|x| x.to_f64()).sum::<f64>() / n;
    let variance = own.iter().map(|x| (x.to_f64() - mean).powi(2)).sum::<f64>() / n;
    assert_eq!(got.count, own.len(), "{what}");
    close(got.mean, mean, 1e-6 * (1.0 + mean.abs()), what);
    close(got.variance, variance, 1e-5 * (1.0 + variance), what);
    if !T::TYPE.is_float() {
        assert_eq!(got.integer_sum, Some(own.iter().map(|x| x.to_f64() as i128).sum()), "{what}");
    }
}

#[test]
fn moments_by_key_are_those_of_each_run() {
    fn check<T: Element>(keys: &Keys) {
        let x: Vec<T> = Data::Ramp.generate(keys.each.len(), 3);
        let (own, found) = (keys.split(&x), keys.runs.len());
        for (name, device) in devices() {
            let what = format!("{name}: {found} runs of {}", T::TYPE);
            let (there, keys_there) = (device.upload(&x).unwrap(), device.upload(&keys.each).unwrap());
            let (keys_got, records) = device.moments(there.by_key(&keys_there)).unwrap();
            assert_eq!(keys_got.to_vec().unwrap(), keys.runs, "{what}");
            let records = records.to_vec().unwrap();
            assert_eq!(records.len(), found, "{what}");
            records.iter().zip(&own).for_each(|(record, own)| same_moments(&record.get(), own, &what));
            let means = device.mean(there.by_key(&keys_there)).unwrap();
            assert_eq!(means.0.to_vec().unwrap(), keys.runs, "{what}");
            assert_eq!(means.1, records.iter().map(|record| record.get().mean).collect::<Vec<_>>(), "{what}");
            let (_, variances) = device.variance(there.by_key(&keys_there)).unwrap();
            assert_eq!(variances, records.iter().map(|record| record.get().variance).collect::<Vec<_>>(), "{what}");
            for room in rooms(found) {
                let (mut keys_out, mut count) = (device.zeroed::<u32>(room).unwrap(), device.zeroed(1).unwrap());
                let mut out = device.zeroed(room).unwrap();
                device.moments_into(there.by_key(&keys_there), (&mut keys_out, &mut out, &mut count)).unwrap();
                assert_eq!(count.to_vec().unwrap(), [found as u64], "{what}");
                let kept = room.min(found);
                assert_eq!(keys_out.to_vec().unwrap()[..kept], keys.runs[..kept], "{what}");
                let got = out.to_vec().unwrap();
                assert!(got[..kept] == records[..kept], "{what}, room for {room}");
                assert!(got[kept..].iter().all(|record| record.get().count == 0), "{what}, room for {room}");
            }
        }
    }
    for keys in all_keys() {
        check::<f32>(&keys);
        check::<i32>(&keys);
    }
}

/// Compares the statistics of a group with those of a plain loop.
fn same_statistics<T: Element>(got: &Statistics<T>, own: &[T], what: &str) {
    assert_eq!((got.count, got.nan), (own.len(), own.iter().filter(|x| x.is_nan()).count()), "{what}");
    if own.is_empty() {
        assert!(got.min.index == u64::MAX as usize && got.max.index == u64::MAX as usize, "{what}");
        assert!(got.min.value == T::HIGHEST && got.max.value == T::LOWEST && got.mean.is_nan(), "{what}");
        return;
    }
    let nan = own.iter().position(|x| x.is_nan());
    let least = (1..own.len()).fold(0, |best, i| if own[i] < own[best] { i } else { best });
    let most = (1..own.len()).fold(0, |best, i| if own[i] > own[best] { i } else { best });
    let [least, most] = [least, most].map(|index| nan.unwrap_or(index));
    assert_eq!((got.min.index, got.max.index), (least, most), "{what}");
    let bits = |x: T| oclprim::internals::data::bits(x);
    assert_eq!((bits(got.min.value), bits(got.max.value)), (bits(own[least]), bits(own[most])), "{what}");
    if nan.is_some() {
        assert!(got.mean.is_nan() && got.variance.is_nan(), "{what}");
    } else {
        same_moments(&got.moments(), own, what);
    }
}

/// Small numbers, and in the second half also NaN.
fn some_nan<T: Element>(n: usize) -> Vec<T> {
    let mut rng = Rng::new(n as u64);
    let number = |i: usize| T::from_f64(if i > n / 2 && rng.below(40) == 0 { f64::NAN } else { rng.below(100) as f64 });
    (0..n).map(number).collect()
}

fn all_statistics<T: Element>(got: &Buffer<StatisticsRecord<T>>, own: &[&[T]], what: &str) {
    assert_eq!(got.len(), own.len(), "{what}");
    got.to_vec().unwrap().iter().zip(own).for_each(|(record, own)| same_statistics(&record.get(), own, what));
}

#[test]
fn statistics_of_groups_are_those_of_each_group() {
    fn check<T: Element>(keys: &Keys) {
        let n = keys.each.len();
        let (x, found) = (some_nan::<T>(n), keys.runs.len());
        let own = keys.split(&x);
        // Empty segments between others, and elements in no segment.
        let cut: Vec<u32> = [n / 9, n / 9, n / 3, n / 2, n / 2, n - n / 7].map(|offset| offset as u32).into();
        let parts: Vec<&[T]> = cut.windows(2).map(|ends| &x[ends[0] as usize..ends[1] as usize]).collect();
        for (name, device) in devices() {
            if T::TYPE.needs_fp64() && !common::has_doubles(&device) {
                continue;
            }
            let what = format!("{name}: {found} runs of {}", T::TYPE);
            let (there, keys_there) = (device.upload(&x).unwrap(), device.upload(&keys.each).unwrap());
            let (keys_got, records) = device.statistics(there.by_key(&keys_there)).unwrap();
            assert_eq!(keys_got.to_vec().unwrap(), keys.runs, "{what}");
            all_statistics(&records, &own, &what);
            all_statistics(&device.statistics(x.segments(&cut)).unwrap(), &parts, &format!("{what}, segments"));
            let mut out: Vec<StatisticsRecord<T>> = vec![bytemuck::Zeroable::zeroed(); parts.len()];
            device.statistics_into(there.segments(&cut), &mut out).unwrap();
            all_statistics(&device.upload(&out).unwrap(), &parts, &format!("{what}, segments into a slice"));
            for room in rooms(found) {
                let (mut keys_out, mut count) = (device.zeroed::<u32>(room).unwrap(), device.zeroed(1).unwrap());
                let mut out = device.zeroed(room).unwrap();
                device.statistics_into(there.by_key(&keys_there), (&mut keys_out, &mut out, &mut count)).unwrap();
                assert_eq!(count.to_vec().unwrap(), [found as u64], "{what}");
                let mut own = own[..room.min(found)].to_vec();
                own.resize(room, &[]);
                all_statistics(&out, &own, &format!("{what}, room for {room}"));
            }
        }
    }
    for keys in all_keys() {
        check::<f32>(&keys);
        check::<u8>(&keys);
    }
    if common::a_form_of_each_kernel() {
        return;
    }
    let keys = Keys::new(3000, || 17);
    check::<i64>(&keys);
    check::<f64>(&keys);
    check::<oclprim::f16>(&keys);
    check::<oclprim::bf16>(&keys);
    check::<u16>(&keys);
}

#[test]
fn statistics_of_lines_are_those_of_each_line() {
    let x = some_nan::<f32>(6 * 50 * 7);
    let line = |of: &dyn Fn(usize) -> usize, len: usize| (0..len).map(|i| x[of(i)]).collect::<Vec<_>>();
    for (name, device) in devices() {
        let there = device.upload(&x).unwrap();
        let view = there.nd(&[6, 50, 7]).unwrap();
        let columns: Vec<_> = (0..42).map(|l| line(&|i| (l / 7 * 50 + i) * 7 + l % 7, 50)).collect();
        let columns: Vec<_> = columns.iter().map(Vec::as_slice).collect();
        all_statistics(&device.statistics(view.along(1)).unwrap(), &columns, &format!("{name}: axis 1"));
        let rows: Vec<_> = x.chunks(350).collect();
        let mut records = device.zeroed(6).unwrap();
        device.statistics_into(view.along([1, 2]), &mut records).unwrap();
        all_statistics(&records, &rows, &format!("{name}: axes 1 and 2"));
        let none = there.view(..0).unwrap();
        let none = oclprim::Input::from(none);
        let error = device.statistics(none.nd(&[2, 0]).unwrap().along(1)).unwrap_err();
        assert_eq!(error.to_string(), "statistics along an axis of 0 elements have no answer", "{name}");
        assert_eq!(error.kind(), ErrorKind::Empty, "{name}");
        assert!(device.statistics(none.nd(&[2, 0]).unwrap().along(0)).unwrap().is_empty(), "{name}");
        let error = device.statistics_into(there.segments(&[0u32, 9]), &mut records).unwrap_err();
        assert_eq!(error.to_string(), "statistics of segments needs an output of 1 elements, got 6", "{name}");
        let error = device.statistics(there.segments(&[0u32, 9, 8])).unwrap_err();
        assert_eq!(error.to_string(), "offset 1 is 9, beyond the next one, 8", "{name}");
    }
}

/// The indices of all elements after a stable sort within each run.
fn sorted_in_runs(keys: &Keys, x: &[i32], descending: bool) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..x.len()).collect();
    for ends in keys.offsets.windows(2) {
        indices[ends[0]..ends[1]].sort_by(|&a, &b| if descending { x[b].cmp(&x[a]) } else { x[a].cmp(&x[b]) });
    }
    indices
}

#[test]
fn each_run_is_sorted_separately() {
    for keys in all_keys() {
        let n = keys.each.len();
        let x: Vec<i32> = common::random::<u16>(n, 9).into_iter().map(|x| i32::from(x % 300) - 150).collect();
        let values: Vec<[u8; 3]> = (0..n).map(|i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]).collect();
        for descending in [false, true] {
            let order = if descending { Order::descending() } else { Order::ascending() };
            let want = sorted_in_runs(&keys, &x, descending);
            let want_keys: Vec<i32> = want.iter().map(|&i| x[i]).collect();
            let want_values: Vec<[u8; 3]> = want.iter().map(|&i| values[i]).collect();
            for (name, device) in devices() {
                let what = format!("{name}: {} runs of {n}", keys.runs.len());
                let (there, keys_there) = (device.upload(&x).unwrap(), device.upload(&keys.each).unwrap());
                let sorted = device.sort(there.by_key(&keys_there), order.clone()).unwrap();
                assert!(sorted.to_vec().unwrap() == want_keys, "{what}");
                let (sorted, moved) = device.sort(x.by_key(&keys.each).with(&values), order.clone()).unwrap();
                assert!(sorted.to_vec().unwrap() == want_keys, "{what}, with values");
                assert!(moved.to_vec().unwrap() == want_values, "{what}, values");
                let indices: Buffer<u32> = device.argsort(there.by_key(&keys_there), order.clone()).unwrap();
                assert!(
                    indices.to_vec().unwrap().iter().map(|&i| i as usize).eq(want.iter().copied()),
                    "{what}, indices"
                );
                let mut out = vec![0; n];
                device.sort_into(there.by_key(&keys_there), order.clone(), &mut out).unwrap();
                assert!(out == want_keys, "{what}, into a slice");
            }
        }
    }
}

/// The indices of the k largest or smallest elements of a run: sorted by their elements, or in the order of the run.
fn chosen(own: &[i32], top: Top) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..own.len()).collect();
    indices.sort_by(|&a, &b| if top.largest { own[b].cmp(&own[a]) } else { own[a].cmp(&own[b]) });
    indices.truncate(top.k);
    if !top.sorted {
        indices.sort_unstable();
    }
    indices
}

#[test]
fn top_k_by_key_is_that_of_each_run() {
    let mut rng = Rng::new(1);
    let most = if common::tiny() { 40 } else { 400 };
    for runs in [most, 1, 0] {
        let keys = Keys::of((0..runs).map(|_| 5 + rng.below(90) as usize));
        let found = keys.runs.len();
        let x: Vec<i32> = common::random::<u8>(keys.each.len(), 4).into_iter().map(|x| i32::from(x % 50)).collect();
        for top in [Top::largest(3), Top::smallest(5).sorted(), Top::largest(0)] {
            let mut want = Vec::new();
            for (own, &start) in keys.split(&x).into_iter().zip(&keys.offsets) {
                want.extend(chosen(own, top).into_iter().map(|i| start + i));
            }
            let want_keys: Vec<i32> = want.iter().map(|&i| x[i]).collect();
            let want: Vec<u64> = want.iter().map(|&i| i as u64).collect();
            for (name, device) in devices() {
                let what = format!("{name}: {top:?} of {found} runs");
                let (there, keys_there) = (device.upload(&x).unwrap(), device.upload(&keys.each).unwrap());
                let (keys_got, got) = device.top_k(there.by_key(&keys_there), top).unwrap();
                assert_eq!(
                    (keys_got.to_vec().unwrap(), got.to_vec().unwrap()),
                    (keys.runs.clone(), want_keys.clone()),
                    "{what}"
                );
                let (_, (got, at)) = device.top_k(there.by_key(&keys_there).indexed::<u64>(), top).unwrap();
                assert_eq!((got.to_vec().unwrap(), at.to_vec().unwrap()), (want_keys.clone(), want.clone()), "{what}");
                let room = found + 3;
                let (mut keys_out, mut out, mut at) = (vec![0; room], vec![0; room * top.k], vec![0u64; room * top.k]);
                let mut count = device.zeroed(1).unwrap();
                let to = (&mut keys_out, (&mut out, &mut at), &mut count);
                device.top_k_into(there.by_key(&keys_there).indexed::<u64>(), top, to).unwrap();
                assert_eq!(
                    (count.to_vec().unwrap(), &keys_out[..found]),
                    (vec![found as u64], &keys.runs[..]),
                    "{what}"
                );
                assert!(out[..want.len()] == want_keys && at[..want.len()] == want, "{what}, into slices");
                assert!(out[want.len()..].iter().all(|&x| x == 0), "{what}, after the results");
                if found > 0 {
                    let room = found - 1;
                    let to = (&mut keys_out[..room], &mut out[..room * top.k], &mut count);
                    let error = device.top_k_into(there.by_key(&keys_there), top, to).unwrap_err();
                    let text = format!("the result has {found} elements, the output has room for {room}");
                    assert_eq!(error.to_string(), text, "{what}");
                    let to = (&mut keys_out, &mut out[..room * top.k], &mut count);
                    let error = device.top_k_into(there.by_key(&keys_there), Top::largest(top.k + 1), to).unwrap_err();
                    assert!(error.to_string().starts_with("a selection of keys needs an output of"), "{what}: {error}");
                }
            }
        }
        for (name, device) in devices().into_iter().filter(|_| found > 0) {
            let error = device.top_k(x.by_key(&keys.each), Top::largest(1000)).unwrap_err();
            assert!(error.to_string().contains("keys are fewer than the 1000 largest to select"), "{name}: {error}");
        }
    }
}

#[test]
fn quantiles_by_key_are_those_of_each_run() {
    for keys in all_keys() {
        let x: Vec<u16> = common::random(keys.each.len(), 8);
        let (found, q) = (keys.runs.len(), [0.0, 0.25, 1.0]);
        let own: Vec<Vec<f64>> = keys
            .split(&x)
            .into_iter()
            .map(|own| {
                let mut own: Vec<f64> = own.iter().map(|&x| f64::from(x)).collect();
                own.sort_by(f64::total_cmp);
                own
            })
            .collect();
        let at = |own: &[f64], q: f64| {
            let place = q * (own.len() - 1) as f64;
            let (low, high) = (own[place.floor() as usize], own[place.ceil() as usize]);
            low + (high - low) * place.fract()
        };
        let want: Vec<f64> = own.iter().flat_map(|own| q.map(|q| at(own, q))).collect();
        let medians: Vec<f64> = own.iter().map(|own| at(own, 0.5)).collect();
        for (name, device) in devices() {
            let what = format!("{name}: {found} runs");
            let (there, keys_there) = (device.upload(&x).unwrap(), device.upload(&keys.each).unwrap());
            let (keys_got, got) = device.quantile(there.by_key(&keys_there), &q, Interpolation::Linear).unwrap();
            assert!(keys_got.to_vec().unwrap() == keys.runs && got.to_vec().unwrap() == want, "{what}");
            let (_, got) = device.median(there.by_key(&keys_there)).unwrap();
            assert!(got.to_vec().unwrap() == medians, "{what}, medians");
            for room in rooms(found) {
                let (mut keys_out, mut count) = (device.zeroed::<u32>(room).unwrap(), device.zeroed(1).unwrap());
                let mut out = device.zeroed(3 * room).unwrap();
                let to = (&mut keys_out, &mut out, &mut count);
                device.quantile_into(there.by_key(&keys_there), &q, Interpolation::Linear, to).unwrap();
                assert_eq!(count.to_vec().unwrap(), [found as u64], "{what}");
                let (got, kept) = (out.to_vec().unwrap(), 3 * room.min(found));
                assert!(got[..kept] == want[..kept], "{what}, room for {room}");
                assert!(got[kept..].iter().all(|x| x.is_nan()), "{what}, room for {room}");
            }
        }
    }
}

#[test]
fn histograms_by_key_are_those_of_each_run() {
    for keys in all_keys() {
        let n = keys.each.len();
        let samples: Vec<u8> = common::random::<u8>(n, 3).into_iter().map(|x| x % 12).collect();
        let weights: Vec<i16> = common::random(n, 4);
        let (bins, found) = (Bins::ids(10).unwrap(), keys.runs.len());
        let (mut counts, mut above) = (vec![0u64; 10 * found], vec![0u64; 3 * found]);
        let (mut sums, mut sums_above) = (vec![0i64; 10 * found], vec![0i64; 3 * found]);
        for (run, ends) in keys.offsets.windows(2).enumerate() {
            for i in ends[0]..ends[1] {
                let slot = usize::from(samples[i]);
                if slot < 10 {
                    counts[10 * run + slot] += 1;
                    sums[10 * run + slot] += i64::from(weights[i]);
                } else {
                    above[3 * run + 1] += 1;
                    sums_above[3 * run + 1] += i64::from(weights[i]);
                }
            }
        }
        for (name, device) in devices() {
            let what = format!("{name}: {found} runs");
            let (there, keys_there) = (device.upload(&samples).unwrap(), device.upload(&keys.each).unwrap());
            let (keys_got, got) = device.histogram(there.by_key(&keys_there), &bins).unwrap();
            assert_eq!(keys_got.to_vec().unwrap(), keys.runs, "{what}");
            assert!(got.counts.to_vec().unwrap() == counts && got.outside.to_vec().unwrap() == above, "{what}");
            let (keys_got, got) = device.histogram(there.by_key(&keys_there).weighted(&weights), &bins).unwrap();
            assert_eq!(keys_got.to_vec().unwrap(), keys.runs, "{what}");
            assert!(got.sums.to_vec().unwrap() == sums && got.outside.to_vec().unwrap() == sums_above, "{what}, sums");
            for room in rooms(found) {
                let kept = room.min(found);
                let (mut keys_out, mut count) = (device.zeroed::<u32>(room).unwrap(), device.zeroed(1).unwrap());
                let mut out = device.filled(10 * room, 5u32).unwrap();
                let mut outside = device.filled(3 * room, 5u64).unwrap();
                let to = (&mut keys_out, &mut out, &mut count);
                device.histogram_into(there.by_key(&keys_there), &bins, to, &mut outside, Accumulate::Add).unwrap();
                assert_eq!(count.to_vec().unwrap(), [found as u64], "{what}");
                assert_eq!(keys_out.to_vec().unwrap()[..kept], keys.runs[..kept], "{what}");
                let want = |all: &[u64], each: usize| -> Vec<u64> {
                    let kept = all[..each * kept].iter().map(|x| 5 + x);
                    kept.chain(std::iter::repeat(5)).take(each * room).collect()
                };
                let got: Vec<u64> = out.to_vec().unwrap().into_iter().map(u64::from).collect();
                assert!(got == want(&counts, 10), "{what}, room for {room}");
                assert!(outside.to_vec().unwrap() == want(&above, 3), "{what}, room for {room}, outside");
            }
            if found > 0 {
                let (mut keys_out, mut out, mut outside, mut count) = (vec![0], vec![0i64; 10], vec![0i64; 3], [0]);
                let to = (&mut keys_out, &mut out, &mut count);
                let input = there.by_key(&keys_there).weighted(&weights);
                let result = device.histogram_into(input, &bins, to, &mut outside, Accumulate::Overwrite);
                assert!(out == sums[..10] && outside == sums_above[..3], "{what}, sums of the first run");
                let text = format!("the result has {found} elements, the output has room for 1");
                assert_eq!(result.err().map(|error| error.to_string()), (found > 1).then_some(text), "{what}");
            }
        }
    }
}

/// Zeros of either sign are equal keys, and so are all NaN. The result has the first key of each run.
#[test]
fn float_keys_compare_as_in_sorts() {
    let keys = [0.0f32, -0.0, f32::NAN, -f32::NAN, 1.0, -0.0, 0.0];
    let x = [3i32, 1, 9, 5, 4, 8, 2];
    for (name, device) in devices() {
        let sorted = device.sort(x.by_key(&keys), Order::ascending()).unwrap();
        assert_eq!(sorted.to_vec().unwrap(), [1, 3, 5, 9, 4, 2, 8], "{name}");
        let (found, means) = device.mean(x.by_key(&keys)).unwrap();
        let bits: Vec<u32> = found.to_vec().unwrap().into_iter().map(f32::to_bits).collect();
        assert_eq!(bits, [0.0, f32::NAN, 1.0, -0.0].map(f32::to_bits), "{name}");
        assert_eq!(means, [2.0, 7.0, 4.0, 5.0], "{name}");
        // Keys and values as expressions.
        let doubled = vec![4u32, 5, 5, 8, 9, 9, 2];
        let halves = oclprim::op::Map::new(|x: u32| x / 2, "x / 2");
        let sums = device.mean(x.reversed().by_key(doubled.map(halves))).unwrap();
        assert_eq!((sums.0.to_vec().unwrap(), sums.1), (vec![2, 4, 1], vec![14.0 / 3.0, 5.0, 3.0]), "{name}");
    }
}

/// A call with an output for keys, and one for their number.
type Call<'a> = &'a mut dyn FnMut(&mut Buffer<u8>, &mut Buffer<u64>) -> oclprim::Result<()>;

#[test]
fn results_of_a_wrong_length_are_errors_and_nothing_is_written() {
    let (x, keys, bins) = ([1.0f32, 2.0, 3.0], [1u8, 2, 3], Bins::even(0.0, 4.0, 2).unwrap());
    let (zeros, lower) = ([0u64; 9], Interpolation::Lower);
    for (name, device) in devices() {
        let (mut keys_out, mut count) = (device.zeroed::<u8>(3).unwrap(), device.zeroed::<u64>(1).unwrap());
        let mut refused = |text: &str, call: Call<'_>| {
            assert_eq!(call(&mut keys_out, &mut count).unwrap_err().to_string(), text, "{name}");
            assert_eq!((keys_out.to_vec().unwrap(), count.to_vec().unwrap()), (vec![0; 3], vec![0]), "{name}: {text}");
        };
        let mut moments = device.zeroed::<MomentsRecord<f32>>(2).unwrap();
        refused("moments by key needs an output of 3 elements, got 2", &mut |keys_out, count| {
            device.moments_into(x.by_key(&keys), (keys_out, &mut moments, count))
        });
        let mut records = device.zeroed::<StatisticsRecord<f32>>(2).unwrap();
        refused("statistics by key needs an output of 3 elements, got 2", &mut |keys_out, count| {
            device.statistics_into(x.by_key(&keys), (keys_out, &mut records, count))
        });
        refused("a selection of quantiles needs an output of 6 elements, got 2", &mut |keys_out, count| {
            device.quantile_into(x.by_key(&keys), &[0.5, 1.0], lower, (keys_out, &mut [0.0; 2], count))
        });
        refused("quantiles are from 0 to 1, not 2", &mut |keys_out, count| {
            device.quantile_into(x.by_key(&keys), &[2.0], lower, (keys_out, &mut [0.0; 3], count))
        });
        for (bin_counts, outside, text) in [
            (2, 9, "histogram by key of samples in the bins needs an output of 6 elements, got 2"),
            (6, 8, "histogram by key of samples outside the bins needs an output of 9 elements, got 8"),
        ] {
            let (mut counts, mut others) = (zeros, zeros);
            refused(text, &mut |keys_out, count| {
                let to = (keys_out, &mut counts[..bin_counts], count);
                device.histogram_into(x.by_key(&keys), &bins, to, &mut others[..outside], Accumulate::Add)
            });
            let (mut sums, mut others) = ([0.0f32; 6], [0.0; 9]);
            refused(text, &mut |keys_out, count| {
                let to = (keys_out, &mut sums[..bin_counts], count);
                let input = x.by_key(&keys).weighted(&[1.0f32; 3]);
                device.histogram_into(input, &bins, to, &mut others[..outside], Accumulate::Add)
            });
            assert_eq!((counts, sums), (zeros, [0.0; 6]), "{name}");
        }
        refused("3 samples need as many weights, got 2", &mut |keys_out, count| {
            let (input, to) = (x.by_key(&keys).weighted(&[1.0f32; 2]), (keys_out, &mut [0.0; 6], count));
            device.histogram_into(input, &bins, to, &mut [0.0; 9], Accumulate::Add)
        });
    }
}

#[test]
fn unequal_numbers_of_keys_and_values_are_errors() {
    let (x, keys) = ([1.0f32, 2.0, 3.0], [1u8, 2]);
    for (name, device) in devices() {
        let text = "2 keys need as many values, got 3";
        let is = |error: oclprim::Error| assert_eq!(error.to_string(), text, "{name}");
        is(device.moments(x.by_key(&keys)).unwrap_err());
        is(device.statistics(x.by_key(&keys)).unwrap_err());
        is(device.sort(x.by_key(&keys), Order::ascending()).unwrap_err());
        is(device.argsort::<_, u32, _>(x.by_key(&keys), Order::ascending()).unwrap_err());
        is(device.top_k(x.by_key(&keys), Top::largest(1)).unwrap_err());
        is(device.median(x.by_key(&keys)).unwrap_err());
        is(device.histogram(x.by_key(&keys), &Bins::even(0.0, 1.0, 2).unwrap()).unwrap_err());
        let (mut keys_out, mut values, mut count) = ([0u8; 3], [0.0; 3], [0]);
        let to = (&mut keys_out, &mut values, &mut count);
        is(device.quantile_into(x.by_key(&keys), &[0.5], Interpolation::Lower, to).unwrap_err());
        let (mut keys_out, mut values, mut count) = ([0u8; 2], [0.0; 3], [0]);
        let to = (&mut keys_out, &mut values, &mut count);
        let error = device.quantile_into(x[1..].by_key(&keys), &[0.5], Interpolation::Lower, to).unwrap_err();
        assert_eq!(error.to_string(), "a selection of quantiles needs an output of 2 elements, got 3", "{name}");
    }
}
