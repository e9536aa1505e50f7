//! Selections, partitions and runs: in every geometry, with and without look-back, over several tiles, and compared with the
//! standard library.

mod common;

use common::{gpu, tuned};
use oclprim::{
    Buffer, Device, ErrorKind, Result, Source, SubGroupBackend, Tuning, ViewMut, f16,
    op::{self, Difference, Map, NonZero, Operator, Sum, Unordered},
};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of GPUs: with and without look-back, with little and without local memory.
fn devices() -> Vec<(String, Device)> {
    let local = || gpu().sub_groups(SubGroupBackend::Local);
    tuned(&[
        ("a GPU", gpu()),
        ("a GPU without look-back", gpu().without_look_back()),
        ("a small GPU", local().local_bytes(5 << 10)),
        ("a GPU without local memory", gpu().local_bytes(512)),
    ])
}

/// Every device, in its own geometry and in that of a GPU with and without look-back.
fn few_devices() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu()), ("a GPU without look-back", gpu().without_look_back())])
}

/// A number of elements with several tiles; unless time is short, with several tile groups as well.
fn many() -> usize {
    if common::tiny() { 1_301 } else { 300_007 }
}

/// A number of elements with several tiles of a GPU; fewer for an interpreter.
fn several(device: &Device) -> usize {
    if common::runs_kernels_at_once(device) { 9_001 } else { 901 }
}

/// The predicate `x < LIMIT` selects, so that one program serves all data.
const LIMIT: u32 = 500;

fn below(limit: u32) -> Map<impl Fn(u32) -> bool + Sync> {
    Map::new(move |x: u32| x < limit, format!("x < {limit}u"))
}

/// Numbers of which `per_mille` in a thousand are below the limit.
fn numbers(n: usize, per_mille: u32) -> Vec<u32> {
    let bits = common::random::<u32>(n, per_mille.into()).into_iter();
    bits.map(|x| x / 1000 % LIMIT + if x % 1000 < per_mille { 0 } else { LIMIT }).collect()
}

fn selects((name, device): &(String, Device), x: &[u32]) {
    let limit = LIMIT;
    let want: Vec<u32> = x.iter().copied().filter(|&x| x < limit).collect();
    let on_device = device.upload(x).unwrap();
    let what = || format!("{name}: {} below {limit} of {}", want.len(), x.len());
    assert!(device.select(&on_device, &below(limit)).unwrap().to_vec().unwrap() == want, "{}", what());
    let mut any = device.select(&on_device, Unordered(&below(limit))).unwrap().to_vec().unwrap();
    any.sort_unstable();
    let mut sorted = want.clone();
    sorted.sort_unstable();
    assert!(any == sorted, "{}, unordered", what());
    let places: Buffer<u32> = device.select_indices(&on_device, below(limit)).unwrap();
    let all = 0..x.len() as u32;
    assert!(places.to_vec().unwrap() == all.filter(|&i| x[i as usize] < limit).collect::<Vec<_>>(), "{}", what());
    let (first, others): (Vec<u32>, Vec<u32>) = x.iter().copied().partition(|&x| x < limit);
    let (parted, count) = device.partition(&on_device, &below(limit)).unwrap();
    assert!(count == first.len() && parted.to_vec().unwrap() == [first, others].concat(), "{}, partition", what());
    let half = limit / 2;
    let mut lists = [const { Vec::new() }; 3];
    x.iter().for_each(|&x| lists[if x < half { 0 } else { 2 - usize::from(x < limit) }].push(x));
    let (parted, counts) = device.partition(&on_device, (&below(half), &below(limit))).unwrap();
    assert!(counts == [lists[0].len(), lists[1].len()], "{}, in three", what());
    assert!(parted.to_vec().unwrap() == lists.concat(), "{}, in three", what());
    let flags: Vec<u8> = x.iter().map(|&x| u8::from(x < limit)).collect();
    assert!(
        device.select(on_device.flagged(&flags), NonZero).unwrap().to_vec().unwrap() == want,
        "{}, flagged",
        what()
    );
}

fn runs((name, device): &(String, Device), x: &[u32]) {
    let chunks: Vec<&[u32]> = x.chunk_by(|a, b| a == b).collect();
    let on_device = device.upload(x).unwrap();
    let what = || format!("{name}: {} runs of {}", chunks.len(), x.len());
    let firsts: Vec<u32> = chunks.iter().map(|run| run[0]).collect();
    assert!(device.unique(&on_device).unwrap().to_vec().unwrap() == firsts, "{}", what());
    let lengths: Vec<u32> = chunks.iter().map(|run| run.len() as u32).collect();
    let (values, got) = device.run_length_encode::<_, u32>(&on_device).unwrap();
    assert!(values.to_vec().unwrap() == firsts && got.to_vec().unwrap() == lengths, "{}, lengths", what());
    let (values, got) = device.run_length_encode::<_, u64>(&on_device).unwrap();
    let wide: Vec<u64> = lengths.iter().map(|&length| length.into()).collect();
    assert!(values.to_vec().unwrap() == firsts && got.to_vec().unwrap() == wide, "{}, long lengths", what());
    let (mut offset, mut long) = (0, Vec::new());
    for &length in &lengths {
        if length > 1 {
            long.push((offset, length));
        }
        offset += length;
    }
    let (offsets, got) = device.non_trivial_runs::<_, u32>(&on_device).unwrap();
    let pairs: Vec<_> = offsets.to_vec().unwrap().into_iter().zip(got.to_vec().unwrap()).collect();
    assert!(pairs == long, "{}, non-trivial", what());
    let numbers: Vec<u32> = (0..x.len() as u32).collect();
    let (keys, sums) = device.reduce(numbers.by_key(&on_device), Sum).unwrap();
    let mut rest = numbers.iter();
    let want =
        lengths.iter().map(|&length| rest.by_ref().take(length as usize).fold(0u32, |sum, x| sum.wrapping_add(*x)));
    assert!(sums.to_vec().unwrap() == want.collect::<Vec<_>>(), "{}, sums", what());
    assert!(keys.to_vec().unwrap() == firsts, "{}, keys", what());
}

#[test]
fn selections_and_runs_of_many_tiles_equal_the_standard_library() {
    let n = many();
    let random: Vec<u32> = common::random::<u32>(n, 1).into_iter().map(|x| x % 1000).collect();
    for device in devices() {
        for &per_mille in if common::tiny() { &[500][..] } else { &[0, 10, 500, 999, 1000] } {
            selects(&device, &numbers(n, per_mille));
        }
        for &most in if common::tiny() { &[2][..] } else { &[1, 2, 30, 1000] } {
            let few: Vec<u32> = random.iter().map(|&x| u32::from(x < 1000 / most)).collect();
            runs(&device, &few);
        }
    }
}

#[test]
fn offsets_of_64_bits_give_the_same_results() {
    let random = numbers(many() / 2, 300);
    let few: Vec<u32> = random.iter().map(|x| x % 3).collect();
    for device in common::wide() {
        selects(&device, &random);
        runs(&device, &few);
    }
}

/// Runs that end many tiles after the one they begin in, and tiles in which no run begins.
#[test]
fn runs_over_many_tiles_are_found() {
    for device in few_devices() {
        let n = if common::tiny() { several(&device.1) } else { many() };
        let mut x = vec![7; n];
        runs(&device, &x);
        x[n - 1] = 8;
        runs(&device, &x);
        x[0] = 8;
        x[n / 2] = 9;
        runs(&device, &x);
    }
}

/// Each call has a different count and reuses the scratch of the call before.
#[test]
fn used_scratch_does_not_change_results() {
    let n = many() / 2;
    for (name, device) in few_devices() {
        let (mut out, mut count) = (device.zeroed::<u32>(n).unwrap(), device.zeroed::<u64>(1).unwrap());
        for per_mille in [500, 30, 990] {
            let x = numbers(n, per_mille);
            let on_device = device.upload(&x).unwrap();
            device.select_into(&on_device, &below(LIMIT), &mut out, &mut count).unwrap();
            let want: Vec<u32> = x.iter().copied().filter(|&x| x < LIMIT).collect();
            let found = device.selected(&count, n).unwrap();
            assert!(out.view(..found).unwrap().to_vec().unwrap() == want, "{name}: {per_mille}");
            let (mut lengths, mut values) = (device.zeroed::<u32>(n).unwrap(), device.zeroed::<u32>(n).unwrap());
            let runs = (&mut values, &mut lengths, &mut count);
            device.run_length_encode_into(&on_device, runs.0, runs.1, runs.2).unwrap();
            let want: Vec<u32> = x.chunk_by(|a, b| a == b).map(|run| run.len() as u32).collect();
            let found = device.selected(&count, n).unwrap();
            assert!(lengths.view(..found).unwrap().to_vec().unwrap() == want, "{name}: runs");
        }
    }
}

/// The log names the line of a mistake, and both expressions of a partition are compiled.
#[test]
fn expressions_that_do_not_build_give_the_log() {
    for (name, device) in common::opencl_devices_or_skip("expressions_that_do_not_build_give_the_log") {
        let wrong = Map::new(|x: u32| x < 5, "x <\n  five");
        let error = device.select(&[1u32, 2], &wrong).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
        let log = error.build_log().unwrap();
        assert!(common::names_line(&device, log, ("expression:2", 3, "  five")), "{name}: {log}");
        let error = device.partition(&[1u32, 2], (&below(LIMIT), &wrong)).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
    }
}

#[test]
fn selections_beyond_the_output_report_their_count() {
    for (name, device) in few_devices() {
        let x: Vec<u32> = (0..many() as u32).collect();
        let (mut out, mut count) = (device.filled(100, 7u32).unwrap(), device.zeroed::<u64>(1).unwrap());
        let on_device = device.upload(&x).unwrap();
        let part = out.view_mut(..60).unwrap();
        device.select_into(&on_device, &below(LIMIT), part, &mut count).unwrap();
        let error = device.selected(&count, 60).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(error.to_string(), "the result has 500 elements, the output has room for 60", "{name}");
        assert_eq!(out.to_vec().unwrap(), [(0..60).collect::<Vec<_>>(), vec![7; 40]].concat(), "{name}");
        let mut nothing = device.zeroed::<u32>(0).unwrap();
        device.select_into(&on_device, &below(LIMIT), &mut nothing, &mut count).unwrap();
        assert_eq!(device.selected(&count, 1000).unwrap(), 500, "{name}");
        let read = device.selected(&[1, 2], 5).unwrap_err().to_string();
        assert_eq!(read, "a count has 1 element, got 2", "{name}");
    }
}

/// Outputs, one or two, hold the elements that fit, and nothing after them is written. An exact fit is no error.
#[test]
fn selections_beyond_the_output_are_errors_if_the_count_is_returned() {
    type Call<'a> = &'a dyn Fn(ViewMut<'_, u32>, ViewMut<'_, u32>, &mut [u64; 1]) -> Result<()>;
    const BEHIND: u32 = u32::MAX;
    let x: Vec<u32> = (0..many() as u32).map(|i| i / 2).collect();
    let flags: Vec<u8> = x.iter().map(|&x| u8::from(x < LIMIT)).collect();
    let (taken, pairs) = (x.iter().filter(|&&x| x < LIMIT).count(), x.len() / 2);
    let runs = pairs + x.len() % 2;
    for (name, device) in few_devices() {
        let (there, limit) = (device.upload(&x).unwrap(), below(LIMIT));
        let (x, flags) = (&there, &flags);
        let calls: [(&str, usize, Call); 10] = [
            ("select", taken, &|a, _, count| device.select_into(x, &limit, a, count)),
            ("unordered", taken, &|a, _, count| device.select_into(x, Unordered(&limit), a, count)),
            ("flagged", taken, &|a, _, count| device.select_into(x.flagged(flags), NonZero, a, count)),
            ("indices", taken, &|a, _, count| device.select_indices_into(x, &limit, a, count)),
            ("indices of flags", taken, &|a, _, count| device.select_indices_into(flags, NonZero, a, count)),
            ("unique", runs, &|a, _, count| device.unique_into(x, a, count)),
            ("unique by key", runs, &|a, b, count| device.unique_into(x.by_key(x), (a, b), count)),
            ("encoded", runs, &|a, b, count| device.run_length_encode_into(x, a, b, count)),
            ("by key", runs, &|a, b, count| device.reduce_into(x.by_key(x), Sum, (a, b, count))),
            ("non-trivial", pairs, &|a, b, count| device.non_trivial_runs_into(x, a, b, count)),
        ];
        for (form, found, call) in calls {
            for room in [found, found - 1, 0] {
                let mut outputs = [0, 1].map(|_| device.filled(found + 2, BEHIND).unwrap());
                let mut count = [0];
                let [first, second] = outputs.each_mut().map(|output| output.view_mut(1..=room).unwrap());
                let error = call(first, second, &mut count).map_err(|error| (error.kind(), error.to_string())).err();
                let text = format!("the result has {found} elements, the output has room for {room}");
                assert_eq!(error, (room < found).then_some((ErrorKind::InvalidInput, text)), "{name}: {form}");
                assert_eq!(count, [found as u64], "{name}: {form}, room for {room}");
                let [first, second] = outputs.map(|output| output.to_vec().unwrap());
                assert!(first[1..=room].iter().all(|&x| x != BEHIND), "{name}: {form}, room for {room}");
                for output in [first, second] {
                    let around = output[..1].iter().chain(&output[1 + room..]);
                    assert!(around.into_iter().all(|&x| x == BEHIND), "{name}: {form}, beyond room for {room}");
                }
            }
        }
    }
}

/// All NaN are equal, and so are zeros of either sign; subnormals are not zeros.
#[test]
fn floats_that_sorts_treat_as_equal_form_one_run() {
    let (nan, other) = (f32::from_bits(0x7fc0_1234), f32::from_bits(0xff80_0001));
    let [tiny, twice] = [1, 2].map(f32::from_bits);
    let infinity = f32::INFINITY;
    let x = [0.0f32, -0.0, 0.0, nan, other, infinity, infinity, -infinity, tiny, twice, -tiny, -0.0];
    for (name, device) in few_devices() {
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let (values, lengths) = device.run_length_encode::<_, u32>(&x).unwrap();
        let want = [0.0, nan, infinity, -infinity, tiny, twice, -tiny, -0.0];
        assert_eq!(bits(&values.to_vec().unwrap()), bits(&want), "{name}");
        assert_eq!(lengths.to_vec().unwrap(), [3, 2, 2, 1, 1, 1, 1, 1], "{name}");
    }
}

#[test]
fn adjacent_differences_take_any_operator() {
    let x: Vec<i32> = common::random::<i16>(many() / 3, 3).into_iter().map(i32::from).collect();
    let distance = Operator::new("distance", 0i32, |a: i32, b| (a - b).abs(), "abs(a - b)");
    for (name, device) in few_devices() {
        let got = device.adjacent_difference(&x, &distance).unwrap().to_vec().unwrap();
        let steps = x.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        assert!(got == x[..1].iter().copied().chain(steps).collect::<Vec<_>>(), "{name}");
        let steps = device.adjacent_difference(&x, Difference).unwrap();
        assert!(device.scan(&steps, Sum).unwrap().to_vec().unwrap() == x, "{name}");
    }
}

/// Many selections in a row leave no work-group waiting.
#[test]
fn repeated_selections_give_the_same_result() {
    let tuning = Tuning::default().without_look_back();
    for (name, device) in few_devices() {
        let x = numbers(if common::tiny() { several(&device) } else { many() / 4 }, 300);
        let on_device = device.upload(&x).unwrap();
        let want =
            device.with_tuning(tuning.clone()).unwrap().select(&on_device, &below(LIMIT)).unwrap().to_vec().unwrap();
        for round in 0..if common::tiny() { 2 } else { 30 } {
            let got = device.select(&on_device, &below(LIMIT)).unwrap().to_vec().unwrap();
            assert!(got == want, "{name}: round {round}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if common::tiny() { 2 } else { 24 }, ..ProptestConfig::default() })]

    #[test]
    fn any_runs_equal_the_standard_library(lengths in prop::collection::vec((0u32..4, 1usize..3000), 0..20)) {
        let most = if common::tiny() { 20 } else { usize::MAX };
        let x: Vec<u32> = lengths.iter().flat_map(|&(value, length)| vec![value; length.min(most)]).collect();
        for device in few_devices() {
            runs(&device, &x);
            let x: Vec<u32> = x.iter().map(|x| x * LIMIT / 2).collect();
            selects(&device, &x);
        }
    }
}

/// Numbers, a value among them, and offsets of segments, some of them empty.
fn in_groups() -> (Vec<u32>, u32, [u32; 6]) {
    let n = many() / 3;
    let x = numbers(n, 300);
    let some = x[3];
    (x, some, [0, 0, n / 5, n / 2, n / 2, n].map(|offset| offset as u32))
}

fn number(part: &[u32]) -> u64 {
    part.iter().filter(|x| **x < LIMIT).count() as u64
}

#[test]
fn conditions_count_and_test_a_whole_input() {
    let (x, some, _) = in_groups();
    let equal: Vec<u64> = (0..x.len() as u64).filter(|&i| x[i as usize] == some).collect();
    for (name, device) in few_devices() {
        let (on_device, what) = (device.upload(&x).unwrap(), below(LIMIT));
        assert_eq!(device.count(&on_device, &what).unwrap(), number(&x), "{name}");
        let wide = device.count(on_device.cast::<u64>(), op::EqualTo(some.into())).unwrap();
        assert_eq!(wide, equal.len() as u64, "{name}: equal");
        assert_eq!((device.any(&on_device, &what).unwrap(), device.all(&on_device, &what).unwrap()), (true, false));
        assert!(device.any(&on_device, op::EqualTo(some)).unwrap(), "{name}: any equal");
        let found = device.select_indices::<_, u64, _>(&on_device, op::EqualTo(some)).unwrap().to_vec().unwrap();
        assert_eq!(found, equal, "{name}: indices");
    }
}

#[test]
fn flags_are_tested_for_zero_alone() {
    let (values, flags) = ([4u32, 5, 6], [1u8, 0, 2]);
    for (name, device) in few_devices() {
        let found = device.select(values.flagged(&flags), &NonZero).unwrap().to_vec().unwrap();
        assert_eq!(found, [4, 6], "{name}");
        let (parted, count) = device.partition(values.flagged(&flags), NonZero).unwrap();
        assert_eq!((parted.to_vec().unwrap(), count), (vec![4, 6, 5], 2), "{name}");
    }
}

#[test]
fn conditions_count_in_segments_and_runs() {
    let (x, some, offsets) = in_groups();
    let parts = || offsets.windows(2).map(|ends| &x[ends[0] as usize..ends[1] as usize]);
    let keys: Vec<u8> = (0..x.len()).map(|i| (i / 700 % 2) as u8).collect();
    for (name, device) in few_devices() {
        let (on_device, what) = (device.upload(&x).unwrap(), below(LIMIT));
        let in_parts = device.count(on_device.segments(&offsets), &what).unwrap().to_vec().unwrap();
        assert_eq!(in_parts, parts().map(number).collect::<Vec<_>>(), "{name}: segments");
        let any = device.any(on_device.segments(&offsets), op::EqualTo(some)).unwrap().to_vec().unwrap();
        assert_eq!(any, parts().map(|part| u8::from(part.contains(&some))).collect::<Vec<_>>(), "{name}: any");
        let all = device.all(on_device.segments(&offsets), &what).unwrap().to_vec().unwrap();
        let want = parts().map(|part| u8::from(number(part) == part.len() as u64)).collect::<Vec<_>>();
        assert_eq!(all, want, "{name}: all");
        let (_, in_runs) = device.count(on_device.by_key(&keys), &what).unwrap();
        assert_eq!(in_runs.to_vec().unwrap(), x.chunks(700).map(number).collect::<Vec<_>>(), "{name}: keys");
    }
}

#[test]
fn conditions_count_along_axes() {
    let (x, ..) = in_groups();
    let (rows, cols) = (x.len() / 7, 7);
    let x = &x[..rows * cols];
    for (name, device) in few_devices() {
        let (on_device, what) = (device.upload(x).unwrap(), below(LIMIT));
        let matrix = on_device.nd(&[rows, cols]).unwrap();
        let in_rows = device.count(matrix.along(1), &what).unwrap().to_vec().unwrap();
        assert_eq!(in_rows, x.chunks(cols).map(number).collect::<Vec<_>>(), "{name}: rows");
        let column = |j: usize| number(&x.iter().skip(j).step_by(cols).copied().collect::<Vec<_>>());
        let in_columns = device.count(matrix.along(0), &what).unwrap().to_vec().unwrap();
        assert_eq!(in_columns, (0..cols).map(column).collect::<Vec<_>>(), "{name}: columns");
        let all = device.all(matrix.along([]), &what).unwrap().to_vec().unwrap();
        assert!(all == x.iter().map(|x| u8::from(*x < LIMIT)).collect::<Vec<_>>(), "{name}: each");
    }
}

/// A subnormal is not zero, also on a device that flushes subnormals in arithmetic. Zeros of both signs are equal, and NaN
/// equals nothing.
fn bits_decide<T: oclprim::Element>((name, device): &(String, Device), least: T, x: [T; 6])
where
    for<'x> &'x Buffer<T>: Source<Item = T>,
{
    let x = device.upload(&x).unwrap();
    let [zero, nan] = [x.view(..1), x.view(5..)].map(|view| view.unwrap().to_vec().unwrap()[0]);
    let ends = [0u32, 2, 6];
    let of_segments = |counts: Buffer<u64>| counts.to_vec().unwrap();
    assert_eq!(device.count(&x, NonZero).unwrap(), 4, "{name}");
    assert_eq!(of_segments(device.count(x.segments(&ends), NonZero).unwrap()), [0, 4], "{name}");
    assert_eq!(device.select(&x, NonZero).unwrap().len(), 4, "{name}");
    assert_eq!(device.select_indices::<_, u32, _>(&x, op::EqualTo(zero)).unwrap().to_vec().unwrap(), [0, 1], "{name}");
    for (value, count) in [(zero, 2), (least, 1), (nan, 0)] {
        let equal = op::EqualTo(value);
        assert_eq!(device.count(&x, equal).unwrap(), count, "{name}: {value:?}");
        assert_eq!(device.any(&x, equal).unwrap(), count > 0, "{name}: {value:?}");
        assert_eq!(of_segments(device.count(x.segments(&ends), equal).unwrap()).iter().sum::<u64>(), count, "{name}");
        assert_eq!(device.select(&x, equal).unwrap().len() as u64, count, "{name}: {value:?}");
    }
}

#[test]
fn conditions_do_not_flush_subnormals() {
    for device in common::devices() {
        let least = f32::from_bits(1);
        bits_decide(&device, least, [0.0, -0.0, least, -least, 1.0, f32::NAN]);
        if device.1.capabilities().unwrap().is_none_or(|caps| caps.fp64) {
            let least = f64::from_bits(1);
            bits_decide(&device, least, [0.0, -0.0, least, -least, 1.0, f64::NAN]);
        }
    }
}

/// Conditions that capture values: every call gives the results of a plain loop.
#[cfg(feature = "macros")]
mod captured {
    use oclprim::{
        Element, Offset, f16, map,
        op::{Condition, Everywhere, UnstableTail},
    };

    use super::*;

    fn bytes<T: Element>(x: &[T]) -> Vec<u8> {
        bytemuck::cast_slice(x).to_vec()
    }

    fn sorted<T: Element>(x: &[T]) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = bytes(x).chunks(size_of::<T>()).map(<[u8]>::to_vec).collect();
        all.sort();
        all
    }

    fn indices<T, I: Offset>(device: &Device, x: &Buffer<T>, condition: impl Condition<T, Use = Everywhere>) -> Vec<u64>
    where
        T: Element,
        for<'x> &'x Buffer<T>: Source<Item = T>,
    {
        let found: Buffer<I> = device.select_indices(x, condition).unwrap();
        found.to_vec().unwrap().into_iter().map(|i| i.to_i128() as u64).collect()
    }

    /// Asserts that selections, partitions and counts by two conditions equal those of plain loops.
    fn all_calls<T, C, D>(what: &str, device: &Device, x: &[T], first: C, second: D, is: [&dyn Fn(T) -> bool; 2])
    where
        T: Element,
        C: Condition<T, Use = Everywhere, Counts = usize>,
        D: Condition<T, Use = Everywhere, Counts = usize>,
        for<'x> &'x Buffer<T>: Source<Item = T>,
    {
        let there = device.upload(x).unwrap();
        let list = |x: T| if is[0](x) { 0 } else { 2 - usize::from(is[1](x)) };
        let mut lists = [const { Vec::new() }; 3];
        x.iter().for_each(|&x| lists[list(x)].push(x));
        let [taken, middle, last] = lists;
        let others: Vec<T> = x.iter().copied().filter(|&x| list(x) != 0).collect();
        let places: Vec<u64> = (0..x.len() as u64).filter(|&i| list(x[i as usize]) == 0).collect();

        let found = device.select(&there, &first).unwrap().to_vec().unwrap();
        assert!(bytes(&found) == bytes(&taken), "{what}: selected {} of {}, not {}", found.len(), x.len(), taken.len());
        let found = device.select(&there, Unordered(&first)).unwrap().to_vec().unwrap();
        assert!(sorted(&found) == sorted(&taken), "{what}: unordered");
        assert!(indices::<T, u32>(device, &there, &first) == places, "{what}: indices");
        assert!(indices::<T, u64>(device, &there, &first) == places, "{what}: long indices");
        let (parted, count) = device.partition(&there, &first).unwrap();
        assert!(count == taken.len(), "{what}: count of a partition");
        assert!(bytes(&parted.to_vec().unwrap()) == bytes(&[&taken[..], &others].concat()), "{what}: partition");
        let (parted, _) = device.partition(&there, UnstableTail(&first)).unwrap();
        let reversed: Vec<T> = taken.iter().chain(others.iter().rev()).copied().collect();
        assert!(bytes(&parted.to_vec().unwrap()) == bytes(&reversed), "{what}: unstable tail");
        let (parted, counts) = device.partition(&there, (&first, &second)).unwrap();
        assert!(counts == [taken.len(), middle.len()], "{what}: counts of three parts");
        let three = [&taken[..], &middle, &last].concat();
        assert!(bytes(&parted.to_vec().unwrap()) == bytes(&three), "{what}: three parts");

        let tests = (!taken.is_empty(), taken.len() == x.len());
        assert_eq!(device.count(&there, &first).unwrap(), taken.len() as u64, "{what}");
        assert_eq!((device.any(&there, &first).unwrap(), device.all(&there, &first).unwrap()), tests, "{what}");
        let (mut counts, mut answers) = (device.zeroed::<u64>(2).unwrap(), device.zeroed::<u8>(2).unwrap());
        device.count_into(&there, &first, counts.view_mut(..1).unwrap()).unwrap();
        device.any_into(&there, &first, answers.view_mut(..1).unwrap()).unwrap();
        device.all_into(&there, &first, answers.view_mut(1..).unwrap()).unwrap();
        let mut out = device.zeroed::<T>(taken.len()).unwrap();
        device.select_into(&there, &first, &mut out, counts.view_mut(1..).unwrap()).unwrap();
        assert!(bytes(&out.to_vec().unwrap()) == bytes(&taken), "{what}: into");
        assert_eq!(counts.to_vec().unwrap(), [taken.len() as u64; 2], "{what}");
        assert_eq!(answers.to_vec().unwrap(), [u8::from(tests.0), u8::from(tests.1)], "{what}");
        let (mut out, mut parted) = (device.zeroed::<u64>(taken.len()).unwrap(), device.zeroed::<T>(x.len()).unwrap());
        device.select_indices_into(&there, &first, &mut out, counts.view_mut(..1).unwrap()).unwrap();
        device.partition_into(&there, (first, second), &mut parted, &mut counts).unwrap();
        assert!(out.to_vec().unwrap() == places && bytes(&parted.to_vec().unwrap()) == bytes(&three), "{what}: into");
        assert_eq!(counts.to_vec().unwrap(), [taken.len() as u64, middle.len() as u64], "{what}");
    }

    #[test]
    fn conditions_with_captured_values_equal_plain_loops() {
        let (small, large, odd) = (120u32, 700i64, 1u8);
        for (name, device) in devices() {
            for n in [0, 1, 7, several(&device)] {
                let x = numbers(n, 500);
                let first = map!(move |x: u32| x < small, small: u32);
                let second = map!(move |x: u32| (x as i64) < large && x % 2 == odd as u32, large: i64, odd: u8);
                let is: [&dyn Fn(u32) -> bool; 2] =
                    [&|x| x < small, &|x| i64::from(x) < large && x % 2 == u32::from(odd)];
                let what = format!("{name}: {n}");
                all_calls(&what, &device, &x, &first, &second, is);
                if !common::tiny() {
                    all_calls(&what, &device, &x, &second, &first, [is[1], is[0]]);
                    all_calls(&what, &device, &x, &first, below(LIMIT), [is[0], &|x: u32| x < LIMIT]);
                }
                let (parted, counts) = device.partition(&x, (below(LIMIT), &second)).unwrap();
                let of = |keep: &dyn Fn(u32) -> bool| x.iter().copied().filter(|&x| keep(x)).collect::<Vec<u32>>();
                let (low, middle) = (of(&|x| x < LIMIT), of(&|x| x >= LIMIT && is[1](x)));
                let last = of(&|x| x >= LIMIT && !is[1](x));
                assert_eq!(counts, [low.len(), middle.len()], "{what}");
                assert!(parted.to_vec().unwrap() == [low, middle, last].concat(), "{what}: only the second captures");
            }
        }
    }

    /// The captured values have the type of the elements.
    macro_rules! of_types {
        ($name:expr, $device:expr, $($ty:ident)*) => { $({
            let x: Vec<$ty> = common::random::<u32>(301, 5).into_iter().map(|x| (x % 100) as $ty).collect();
            for (low, high) in [(30 as $ty, 60 as $ty), (60 as $ty, 30 as $ty), ($ty::MAX, $ty::MIN)] {
                let inside = map!(move |x: $ty| x >= low && x < high, low: $ty, high: $ty);
                let above = map!(move |x: $ty| x > high, high: $ty);
                let is: [&dyn Fn($ty) -> bool; 2] = [&|x| x >= low && x < high, &|x| x > high];
                all_calls(&format!("{} {} {low}", $name, stringify!($ty)), $device, &x, inside, above, is);
            }
        })* };
    }

    #[test]
    fn conditions_capture_values_of_each_type() {
        for (name, device) in &common::devices() {
            of_types!(name, device, u8 i64 f32);
            if !common::tiny() {
                of_types!(name, device, i8 i16 u16 i32 u32 u64);
            }
            if device.capabilities().unwrap().is_none_or(|caps| caps.fp64) {
                of_types!(name, device, f64);
            }
        }
    }

    /// A comparison with NaN is false, and zeros of both signs are equal. An `f16` is compared as `f32`.
    #[test]
    fn conditions_capture_nan_and_zeros() {
        let x = [0.0f32, -0.0, 1.5, -1.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let halves = x.map(f16::from_f32);
        for (name, device) in common::devices() {
            for t in [0.0f32, -0.0, 1.5, f32::NAN, f32::INFINITY] {
                let least = map!(move |x: f32| x >= t, t: f32);
                let equal = map!(move |x: f32| x == t, t: f32);
                let what = format!("{name}: {t}");
                all_calls(&what, &device, &x, &least, &equal, [&|x: f32| x >= t, &|x: f32| x == t]);
                let is: [&dyn Fn(f16) -> bool; 2] = [&|x| x.to_f32() >= t, &|x| x.to_f32() == t];
                all_calls(&format!("{what}, f16"), &device, &halves, least, equal, is);
            }
        }
    }

    #[test]
    fn conditions_with_captured_values_count_in_groups() {
        let (x, _, offsets) = in_groups();
        let limit = LIMIT;
        let keys: Vec<u8> = (0..x.len()).map(|i| (i / 700 % 2) as u8).collect();
        let (rows, cols) = (x.len() / 7, 7);
        let parts = || offsets.windows(2).map(|ends| &x[ends[0] as usize..ends[1] as usize]);
        for (name, device) in common::devices() {
            let what = map!(move |x: u32| x < limit, limit: u32);
            let on_device = device.upload(&x).unwrap();
            let in_parts = device.count(on_device.segments(&offsets), &what).unwrap().to_vec().unwrap();
            assert_eq!(in_parts, parts().map(number).collect::<Vec<_>>(), "{name}: segments");
            let any = device.any(on_device.segments(&offsets), &what).unwrap().to_vec().unwrap();
            assert_eq!(any, parts().map(|part| u8::from(number(part) > 0)).collect::<Vec<_>>(), "{name}: any");
            let (_, in_runs) = device.count(on_device.by_key(&keys), &what).unwrap();
            assert_eq!(in_runs.to_vec().unwrap(), x.chunks(700).map(number).collect::<Vec<_>>(), "{name}: keys");
            let matrix = on_device.view(..rows * cols).unwrap();
            let in_rows = device.count(matrix.nd(&[rows, cols]).unwrap().along(1), &what).unwrap().to_vec().unwrap();
            assert_eq!(in_rows, x.chunks_exact(cols).map(number).collect::<Vec<_>>(), "{name}: rows");
            let first = device.upload(&[500u64]).unwrap();
            assert_eq!(device.count(on_device.take(&first), &what).unwrap(), number(&x[..x.len().min(500)]), "{name}");
            let halves = device.count(x.map(map!(|x: u32| x / 2)), &what).unwrap();
            let want = x.iter().filter(|x| **x / 2 < limit).count();
            assert_eq!(halves, want as u64, "{name}: an expression");
        }
    }
}

/// Offsets of segments in `n` elements. Lengths are 0, 1 and others; elements lie before the first and after the last.
fn some_offsets(n: usize) -> Vec<u32> {
    let (mut offsets, mut at) = (Vec::new(), n.min(3));
    for length in [0, 1, 5, 0, 0, 300, 1, 2, 4000, 17].into_iter().cycle().take(400) {
        offsets.push(at as u32);
        at += length;
        if at + 2 > n {
            break;
        }
    }
    offsets
}

/// The groups of `n` elements: those before the first offset, the segments, and those after the last offset.
fn groups(offsets: &[u32], n: usize) -> Vec<std::ops::Range<usize>> {
    let ends: Vec<usize> = [0].into_iter().chain(offsets.iter().map(|&at| at as usize)).chain([n]).collect();
    ends.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Asserts that selections, partitions and runs in segments equal plain loops over the groups.
fn selects_in_segments(name: &str, device: &Device, x: &[u32], offsets: &[u32]) {
    let (n, groups, name) = (x.len(), groups(offsets, x.len()), format!("{name}: {} in {offsets:?}", x.len()));
    let [mut kept, mut firsts, mut parts] = [const { Vec::<u32>::new() }; 3];
    let [mut bounds, mut of_firsts, mut lengths] = [const { Vec::<u64>::new() }; 3];
    for (k, group) in groups.iter().enumerate() {
        let group = &x[group.clone()];
        kept.extend(group.iter().filter(|&&x| x < LIMIT));
        firsts.extend(group.chunk_by(|a, b| a == b).map(|run| run[0]));
        let (first, others): (Vec<u32>, Vec<u32>) = group.iter().copied().partition(|&x| x < LIMIT);
        if k == 0 || k + 1 == groups.len() {
            parts.extend(group);
        } else {
            lengths.push(first.len() as u64);
            parts.extend(first.into_iter().chain(others));
        }
        bounds.push(kept.len() as u64);
        of_firsts.push(firsts.len() as u64);
    }
    bounds.truncate(offsets.len());
    of_firsts.truncate(offsets.len());

    let (there, narrow) = (device.upload(x).unwrap(), device.upload(offsets).unwrap());
    let wide: Vec<u64> = offsets.iter().map(|&at| at.into()).collect();
    let (got, found) = device.select(there.segments(&narrow), &below(LIMIT)).unwrap();
    assert!(got.to_vec().unwrap() == kept && found.to_vec().unwrap() == bounds, "{name}, selected");
    let (got, found) = device.unique(there.segments(&narrow)).unwrap();
    assert!(got.to_vec().unwrap() == firsts && found.to_vec().unwrap() == of_firsts, "{name}, unique");
    let (got, found) = device.partition(there.segments(&wide), &below(LIMIT)).unwrap();
    assert!(got.to_vec().unwrap() == parts && found.to_vec().unwrap() == lengths, "{name}, partitioned");

    // Into outputs of the caller, with more room than needed.
    let (mut to, mut ends) = (device.filled(n + 3, 9u32).unwrap(), device.zeroed::<u64>(offsets.len()).unwrap());
    device.select_into(x.segments(&wide), &below(LIMIT), to.view_mut(1..n + 2).unwrap(), &mut ends).unwrap();
    let to = to.to_vec().unwrap();
    assert!(to[1..=kept.len()] == kept && to[kept.len() + 1..].iter().all(|&x| x == 9) && to[0] == 9, "{name}");
    assert!(ends.to_vec().unwrap() == bounds, "{name}, into a buffer");
    let mut ends = vec![0; offsets.len()];
    let mut to = vec![9; firsts.len()];
    device.unique_into(x.map(Map::new(|x: u32| x, "x")).segments(&narrow), &mut to, &mut ends).unwrap();
    assert!(to == firsts && ends == of_firsts, "{name}, unique into slices");
}

#[test]
fn selections_in_segments_equal_plain_loops() {
    for (name, device) in few_devices() {
        if !common::runs_kernels_at_once(&device) {
            selects_in_segments(&name, &device, &numbers(67, 400), &[3, 3, 20, 60]);
            continue;
        }
        for n in if common::tiny() { vec![0, 2, 1025] } else { vec![0, 1, 2, 9, 1023, 1025, 9_001] } {
            let x = numbers(n, 400);
            let few: Vec<u32> = x.iter().map(|x| x % 2 * LIMIT).collect();
            for offsets in [some_offsets(n), vec![0, n as u32], vec![n as u32]] {
                selects_in_segments(&name, &device, &x, &offsets);
                selects_in_segments(&name, &device, &few, &offsets);
            }
        }
    }
}

#[test]
fn floats_in_segments_compare_as_in_sorts() {
    let x = [0.0f32, -0.0, f32::NAN, -f32::NAN, 1e-45, 0.0, 0.0, f32::INFINITY, f32::NAN, f32::NAN];
    let halves = x.map(f16::from_f32);
    for (name, device) in common::devices() {
        let (found, offsets) = device.unique(x.segments(&[0u32, 6, 9, 10])).unwrap();
        let found: Vec<u32> = found.to_vec().unwrap().iter().map(|x| x.to_bits()).collect();
        let want = [0, 2, 4, 5, 6, 7, 8, 9].map(|i: usize| x[i].to_bits());
        assert_eq!((found, offsets.to_vec().unwrap()), (want.to_vec(), vec![0, 4, 7, 8]), "{name}");
        let (found, offsets) = device.unique(halves.segments(&[0u32, 6, 9, 10])).unwrap();
        // The subnormal number is 0 in f16.
        assert_eq!((found.len(), offsets.to_vec().unwrap()), (7, vec![0, 3, 6, 7]), "{name}");
        if common::has_doubles(&device) {
            let (found, offsets) = device.unique(x.map(f64::from).segments(&[0u64, 6, 9, 10])).unwrap();
            assert_eq!((found.len(), offsets.to_vec().unwrap()), (8, vec![0, 4, 7, 8]), "{name}");
        }
    }
}

#[test]
fn wrong_offsets_and_short_outputs_of_selections_in_segments_are_errors() {
    for (name, device) in common::devices() {
        let x = [1u32, 2, 3];
        let refused = |result: Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
            error.to_string()
        };
        let beyond = refused(device.select(x.segments(&[0u32, 4]), NonZero).map(drop));
        assert_eq!(beyond, "offset 1 is 4, beyond the 3 elements");
        let no_offsets = refused(device.unique(x.segments(&[0u32; 0])).map(drop));
        assert_eq!(no_offsets, "n segments need n + 1 offsets, got 0");
        let (mut to, mut bounds) = ([0; 2], [0; 2]);
        let few = refused(device.select_into(x.segments(&[0u32, 3]), NonZero, &mut to, &mut [0]));
        assert_eq!(few, "a selection in segments needs an output of 2 elements, got 1");
        let short = refused(device.select_into(x.segments(&[0u32, 3]), NonZero, &mut to, &mut bounds));
        assert_eq!(short, "the result has 3 elements, the output has room for 2");
        assert_eq!((to, bounds), ([1, 2], [0, 3]), "{name}");
        let short = refused(device.partition_into(x.segments(&[0u32, 3]), NonZero, &mut to, &mut [0]));
        assert_eq!(short, "a partition needs an output of 3 elements, got 2");
    }
}
