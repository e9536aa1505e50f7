//! If memory or threads are short, the CPU backend gives the right result or an error, and never ends the process.

#![cfg(target_os = "linux")]

#[path = "common/child.rs"]
mod child;
#[path = "common/refusing.rs"]
mod refusing;

use oclprim::internals::scan::{Scan, in_scan};
use std::{fs, process::Command};

use bytemuck::Pod;
use oclprim::{
    Bins, Bound, Buffer, Device, Error, ErrorKind, Interpolation, Layout, NdView, Order, Philox, Result, SetOp, Source,
    Top,
    op::{Difference, EqualTo, Max, NonZero, Sum},
    sort::Merging,
};
use rlimit::Resource;

/// Number of elements in an input: 80 MiB, or 1 MiB in unoptimised builds. That is several parts for each thread, and more keys
/// than a radix sort takes in one piece.
const N: usize = if cfg!(debug_assertions) { 1 << 18 } else { 20 << 20 };
/// Rows of matrix inputs.
const ROWS: usize = 1 << 10;
const COLS: usize = N / ROWS;
/// Bytes that a process may allocate during a call: from 0 to more than any call needs.
const DELTAS: [u64; 20] = [
    0,
    1 << 12,
    1 << 16,
    1 << 18,
    1 << 19,
    1 << 20,
    2 << 20,
    3 << 20,
    4 << 20,
    6 << 20,
    8 << 20,
    12 << 20,
    16 << 20,
    24 << 20,
    32 << 20,
    64 << 20,
    128 << 20,
    256 << 20,
    512 << 20,
    4 << 30,
];

/// The inputs of all calls, allocated before memory is short.
struct Inputs {
    device: Device,
    x: Vec<u32>,
    sorted: Vec<u32>,
    floats: Vec<f32>,
    /// Each key occurs several times.
    keys: Vec<u32>,
    flags: Vec<u8>,
    index: Vec<u32>,
    offsets: Vec<u64>,
    wide: Vec<u64>,
    work: Vec<u32>,
}

impl Inputs {
    fn new() -> Self {
        let x: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ i >> 3).collect();
        Self {
            device: Device::cpu(),
            sorted: (0..N as u32).map(|i| i * 3).collect(),
            floats: x.iter().map(|&x| x as f32).collect(),
            keys: (0..N as u32).map(|i| i / 5).collect(),
            flags: x.iter().map(|x| (x & 1) as u8).collect(),
            index: (0..N as u32).rev().collect(),
            offsets: (0..=N as u64 / 7).map(|i| i * 7).collect(),
            wide: x.iter().map(|&x| u64::from(x) << 20 | 1).collect(),
            work: x.clone(),
            x,
        }
    }
}

impl Inputs {
    /// `x` as a matrix.
    fn matrix(&self, rows: usize) -> Result<NdView<'_, u32>> {
        NdView::new(&self.x, Layout::contiguous(&[rows, N / rows])?)
    }
}

/// A hash of elements in order; computing it allocates no memory.
fn hash<T: Pod>(elements: &[T]) -> u64 {
    let bytes: &[u8] = bytemuck::cast_slice(elements);
    // Whole words are hashed, because a loop over bytes is slow without optimisation.
    let (before, words, after) = bytemuck::pod_align_to::<u8, u64>(bytes);
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let of_bytes = |part: &[u8]| part.iter().fold(part.len() as u64, |hash, &x| mix(hash, x.into()));
    mix(words.iter().fold(of_bytes(before), |hash, &word| mix(hash, word)), of_bytes(after))
}

fn of<T: Pod>(buffer: Buffer<T>) -> Result<u64> {
    Ok(hash(&buffer.map_memory()?))
}

type Call = fn(&mut Inputs) -> Result<u64>;

#[global_allocator]
static ALLOCATOR: refusing::Refusing = refusing::Refusing;

/// A call of each primitive, and calls whose scratch is large compared with their result.
const CALLS: &[(&str, Call)] = &[
    ("reduce", |i| Ok(i.device.reduce(&i.x, Sum)?.into())),
    ("reduce floats", |i| Ok(i.device.reduce(&i.floats, Sum)?.to_bits().into())),
    ("reduce of a cast", |i| i.device.reduce(i.x.cast::<u64>(), Sum)),
    ("arg_min", |i| Ok(i.device.arg_min(&i.floats)?.index as u64)),
    ("min_max", |i| Ok(i.device.min_max(&i.x)?.max.index as u64)),
    ("statistics", |i| Ok(i.device.mean(&i.floats)?.to_bits())),
    ("count", |i| i.device.count(&i.x, EqualTo(7))),
    ("reduce_axis 0", |i| of(i.device.reduce(i.matrix(ROWS)?.along(0), Max)?)),
    ("reduce_axis 1", |i| of(i.device.reduce(i.matrix(ROWS)?.along(1), Max)?)),
    ("reduce_axis of few", |i| of(i.device.reduce(i.matrix(4)?.along(1), Max)?)),
    ("arg_max_axis", |i| of(i.device.arg_max(i.matrix(ROWS)?.along(0))?.indices)),
    ("arg_max_axis of few", |i| of(i.device.arg_max(i.matrix(4)?.along(1))?.indices)),
    ("arg_max of segments", |i| of(i.device.arg_max(i.x.segments(&i.offsets))?.indices)),
    ("mean_axis 0", |i| Ok(hash(&i.device.mean(i.matrix(ROWS)?.along(0))?))),
    ("mean_axis 1", |i| Ok(hash(&i.device.mean(i.matrix(4)?.along(1))?))),
    ("reduce_segments", |i| of(i.device.reduce(i.x.segments(&i.offsets), Sum)?)),
    ("reduce_by_key", |i| {
        let (keys, sums) = i.device.reduce(i.x.by_key(&i.keys), Sum)?;
        Ok(of(keys)? ^ of(sums)?)
    }),
    ("median_by_key", |i| {
        let (keys, medians) = i.device.median(i.x.by_key(&i.keys))?;
        Ok(of(keys)? ^ of(medians)?)
    }),
    ("statistics of segments", |i| of(i.device.statistics(i.floats.segments(&i.offsets))?)),
    ("inclusive_scan", |i| of(i.device.scan(&i.x, Sum)?)),
    ("scan floats", |i| of(i.device.scan(&i.floats, Sum)?)),
    ("scan in place", |i| {
        i.work.copy_from_slice(&i.x);
        let scan = Scan::inclusive();
        i.device.scan_in_place(&mut i.work, in_scan(Sum, scan)).map(|()| hash(&i.work))
    }),
    ("scan reversed in place", |i| {
        i.work.copy_from_slice(&i.x);
        let scan = Scan::inclusive().reversed();
        i.device.scan_in_place(&mut i.work, in_scan(Sum, scan)).map(|()| hash(&i.work))
    }),
    ("scan_by_key", |i| of(i.device.scan(i.x.by_key(&i.keys), Sum)?)),
    ("scan_axis", |i| of(i.device.scan(i.matrix(ROWS)?.along(0), Sum)?)),
    ("select", |i| of(i.device.select(i.x.flagged(&i.flags), NonZero)?)),
    ("select_indices", |i| of(i.device.select_indices::<_, u64, _>(&i.flags, NonZero)?)),
    ("partition", |i| of(i.device.partition(i.x.flagged(&i.flags), NonZero)?.0)),
    ("unique", |i| of(i.device.unique(&i.keys)?)),
    ("run_length_encode", |i| of(i.device.run_length_encode::<_, u64>(&i.keys)?.1)),
    ("non_trivial_runs", |i| of(i.device.non_trivial_runs::<_, u64>(&i.keys)?.1)),
    ("adjacent_difference", |i| of(i.device.adjacent_difference(&i.x, Difference)?)),
    ("sort", |i| of(i.device.sort(&i.x, Order::ascending())?)),
    ("sort by some bits", |i| of(i.device.sort(&i.x, Order::ascending().bits(3..20))?)),
    ("sort_into", |i| i.device.sort_into(&i.x, Order::descending(), &mut i.work).map(|()| hash(&i.work))),
    ("sort_in_place", |i| {
        i.work.copy_from_slice(&i.x);
        i.device.sort_in_place(&mut i.work, Order::ascending()).map(|()| hash(&i.work))
    }),
    ("sort_pairs", |i| of(i.device.sort(i.x.with(&i.wide), Order::ascending())?.1)),
    ("argsort", |i| of(i.device.argsort::<_, u32, _>(&i.x, Order::ascending())?)),
    ("sort_segments", |i| of(i.device.sort(i.x.segments(&i.offsets), Order::ascending())?)),
    ("sort_segments by some bits", |i| of(i.device.sort(i.x.segments(&i.offsets), Order::ascending().bits(3..20))?)),
    ("sort_segments of all", |i| of(i.device.sort(i.x.segments(&[0, N as u64]), Order::ascending().bits(3..20))?)),
    ("argsort_segments", |i| of(i.device.argsort::<_, u32, _>(i.x.segments(&i.offsets), Order::ascending())?)),
    ("merge", |i| of(i.device.merge(&i.sorted, &i.keys, Order::ascending())?)),
    ("merge_sort", |i| of(i.device.sort(&i.x, Merging(Order::ascending()))?)),
    ("intersection", |i| of(i.device.set_operation(&i.sorted, &i.sorted, SetOp::Intersection, Order::ascending())?)),
    ("union of equal ranges", |i| {
        of(i.device.set_operation(&i.sorted, &i.sorted, SetOp::Union, Order::ascending())?)
    }),
    ("set_operation", |i| of(i.device.set_operation(&i.sorted, &i.keys, SetOp::Union, Order::ascending())?)),
    ("lower_bound", |i| of(i.device.search::<_, u64, _>(&i.sorted, &i.x, Bound::Lower, Order::ascending())?)),
    ("is_sorted", |i| Ok(u64::from(i.device.first_unsorted(&i.sorted, Order::ascending())?.is_none()))),
    ("top_k", |i| of(i.device.top_k(&i.x, Top::largest(N / 20).sorted())?)),
    ("top_k of rows", |i| of(i.device.top_k(&i.x, Top::largest(100).in_rows(COLS))?)),
    ("top_k of short rows", |i| of(i.device.top_k(&i.x, Top::largest(3).in_rows(64).sorted())?)),
    ("nth_element", |i| Ok(i.device.nth_element(&i.x, N / 2)?.into())),
    ("quantiles", |i| Ok(hash(&i.device.quantile(&i.x, &[0.1, 0.5, 0.9], Interpolation::Linear)?))),
    ("histogram of few bins", |i| Ok(hash(&i.device.histogram(&i.x, &Bins::even(0, u32::MAX, 100)?)?.counts))),
    ("histogram of 2^20 bins", |i| Ok(hash(&i.device.histogram(&i.x, &Bins::even(0, u32::MAX, 1 << 20)?)?.counts))),
    ("histogram of 2^24 bins", |i| Ok(hash(&i.device.histogram(&i.x, &Bins::even(0, u32::MAX, 1 << 24)?)?.counts))),
    ("histogram of edges", |i| Ok(hash(&i.device.histogram(&i.x, &Bins::edges(&i.sorted[..N.min(1 << 20)])?)?.counts))),
    ("histogram_weighted", |i| {
        let bins = Bins::even(0, u32::MAX, 1 << 20)?;
        Ok(hash(&i.device.histogram(i.x.weighted(&i.keys), &bins)?.sums))
    }),
    ("histogram_channels", |i| {
        let found = i.device.histogram(i.x.channels(4), &vec![Bins::even(0, u32::MAX, 1 << 18)?; 4])?;
        Ok(found.iter().fold(0, |all, found| all ^ hash(&found.counts)))
    }),
    ("transpose", |i| of(i.device.transpose(&i.x, (ROWS, COLS))?)),
    ("transpose of a cast", |i| of(i.device.transpose(i.x.cast::<f32>(), (ROWS, COLS))?)),
    ("transpose_in_place", |i| {
        i.work.copy_from_slice(&i.x);
        let (rows, cols) = (ROWS, COLS);
        i.device.transpose_in_place(&mut i.work, rows, cols).map(|()| hash(&i.work))
    }),
    ("transpose_in_place of a square", |i| {
        let side = N.isqrt();
        i.work.copy_from_slice(&i.x);
        let square = &mut i.work[..side * side];
        i.device.transpose_in_place(&mut *square, side, side).map(|()| hash(square))
    }),
    ("permute", |i| {
        of(i.device
            .transform((NdView::new(&i.x, Layout::contiguous(&[16, COLS, ROWS / 16])?)?).permute(&[2, 0, 1])?)?)
    }),
    ("copy", |i| i.device.copy(&i.x, &mut i.work).map(|()| hash(&i.work))),
    ("copy_ranges", |i| {
        let half = N / 2;
        i.device.copy(i.x.ranges(&[(0..half, half), (half..N, 0)]), &mut i.work).map(|()| hash(&i.work))
    }),
    ("gather", |i| of(i.device.gather(&i.x, &i.index)?)),
    ("scatter", |i| of(i.device.scatter(&i.x, &i.index, N)?)),
    ("reverse", |i| of(i.device.transform(i.x.reversed())?)),
    ("reverse_in_place", |i| {
        i.work.copy_from_slice(&i.x);
        i.device.reverse_in_place(&mut i.work).map(|()| hash(&i.work))
    }),
    ("iota", |i| of(i.device.iota(N, 5u32, 1)?)),
    ("random", |i| of(i.device.random::<u32>(N, Philox::new(3))?)),
    ("upload", |i| of(i.device.upload(&i.x)?)),
    ("zeroed", |i| of(i.device.zeroed::<u64>(N)?)),
    ("to_vec", |i| Ok(hash(&NdView::new(&i.x, Layout::contiguous(&[ROWS, COLS])?.reverse(1)?)?.to_vec()?))),
];

/// The bytes of this process's address space.
fn taken() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux reports a process's memory");
    let pages: u64 =
        pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("the first number is the size");
    pages * 4096
}

/// Runs `body` with a limit of `delta` bytes above the current address space.
fn limited<R>(delta: u64, body: impl FnOnce() -> R) -> R {
    let (_, hard) = Resource::AS.get().expect("the limit can be read");
    Resource::AS.set(taken() + delta, hard).expect("a limit below the hard one can be set");
    let result = body();
    Resource::AS.set(hard, hard).expect("the limit can be raised again");
    result
}

/// Checks a call's error for lack of memory.
fn is_short(what: &str, error: &Error) {
    let line = error.to_string();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{what}: {line}");
    assert!(line.starts_with("allocating ") && line.contains(" bytes "), "{what}: {line}");
}

/// Repeats a call with more and more memory: it fails with errors until it gives the same result as without a limit.
fn survives(name: &str, call: Call, inputs: &mut Inputs) {
    let mut refused = 0;
    for delta in DELTAS {
        eprintln!("{name}, {delta} bytes more");
        match limited(delta, || call(inputs)) {
            Ok(found) => {
                let want = call(inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(found, want, "{name} with {delta} bytes more");
                println!("value: {name}: refused {refused} times, then right with {delta} bytes more");
                return;
            }
            Err(error) => {
                is_short(&format!("{name} with {delta} bytes more"), &error);
                refused += 1;
            }
        }
    }
    panic!("{name} has no result with {} bytes more", DELTAS[DELTAS.len() - 1]);
}

/// A child whose allocator asks the system for each large array. By default, glibc reuses freed memory, and reserves 64 MiB of
/// address space for each thread. Then inputs of few MiB never exceed a limit.
fn short(test: &str, part: &str) -> Command {
    let mut child = child::child(test, part);
    child.envs(["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"].map(|name| (name, "65536")));
    child.env("MALLOC_ARENA_MAX", "1");
    child
}

/// All calls share one process. An abort ends it, and its last line names the call.
#[test]
fn a_call_gives_its_result_or_an_error_with_any_amount_of_memory() {
    if child::part().is_some() {
        let mut inputs = Inputs::new();
        for (name, call) in CALLS {
            survives(name, *call, &mut inputs);
        }
        return child::answer("done");
    }
    let test = "a_call_gives_its_result_or_an_error_with_any_amount_of_memory";
    let (value, _) = child::run(&mut short(test, "all"));
    assert!(!value.is_empty());
}

/// Calls in which `rdst` sorts. It allocates without errors, but only after the crate has allocated as much once.
const BY_RDST: [&str; 2] = ["sort", "sort_into"];

/// One allocation of a call fails. The call gives the right result or an error.
#[test]
fn a_call_survives_an_allocation_that_fails() {
    let test = "a_call_survives_an_allocation_that_fails";
    if child::part().is_some() {
        let mut inputs = Inputs::new();
        let mut refused = 0;
        for (name, call) in CALLS.iter().filter(|(name, _)| !BY_RDST.contains(name)) {
            let want = call(&mut inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut number = 0;
            loop {
                eprintln!("{name}, without its allocation {number}");
                let (result, was_refused) = refusing::without(number, || call(&mut inputs));
                match result {
                    Ok(found) => assert_eq!(found, want, "{name} without its allocation {number}"),
                    Err(error) => is_short(&format!("{name} without its allocation {number}"), &error),
                }
                if !was_refused {
                    break;
                }
                refused += 1;
                // A call may have hundreds of allocations, most of them in one loop.
                number += 1 + number / 8;
            }
        }
        return child::answer(refused);
    }
    let (value, _) = child::run(&mut child::child(test, "all"));
    let refused: usize = value.parse().expect("a number");
    assert!(refused >= CALLS.len(), "{refused} allocations failed");
}

/// Calls that start a process's threads.
const FIRST: [&str; 8] = [
    "reduce",
    "sort",
    "sort_in_place",
    "inclusive_scan",
    "histogram of 2^20 bins",
    "top_k",
    "reduce_by_key",
    "transpose_in_place of a square",
];

#[test]
fn the_first_call_of_a_process_survives_without_new_threads() {
    let test = "the_first_call_of_a_process_survives_without_new_threads";
    if let Some(part) = child::part() {
        let (delta, name) = part.split_once(' ').expect("bytes and a name");
        let call = CALLS.iter().find(|(other, _)| *other == name).expect("a call's name").1;
        let mut inputs = Inputs::new();
        let found = limited(delta.parse().expect("a number"), || call(&mut inputs));
        return match found {
            Ok(found) => child::answer(if Ok(found) == call(&mut inputs).map_err(drop) { "right" } else { "wrong" }),
            Err(error) => child::answer(format!("{:?}", error.kind())),
        };
    }
    let mut right = 0;
    for (k, name) in FIRST.iter().enumerate() {
        // Each call has two limits that differ from call to call, and one that is large enough.
        for delta in [DELTAS[k], DELTAS[(7 * k + 5) % DELTAS.len()], 4 << 30] {
            let (value, _) = child::run(&mut short(test, &format!("{delta} {name}")));
            assert!(value == "right" || value == "OutOfMemory", "{name} with {delta} bytes more: {value}");
            right += usize::from(value == "right");
        }
    }
    assert!(right >= FIRST.len(), "each call is right where there is enough memory");
}

#[test]
fn a_process_that_cannot_start_threads_runs_on_the_callers_thread() {
    let test = "a_process_that_cannot_start_threads_runs_on_the_callers_thread";
    if child::part().is_some() {
        let x: Vec<u32> = (0..N as u32).collect();
        let mut out = vec![0; N];
        // The limit is less than the stack of a thread.
        let sum = limited(1 << 20, || {
            let device = Device::cpu();
            device.copy(x.reversed(), &mut out)?;
            device.reduce(out.cast::<u64>(), Sum)
        });
        let threads = fs::read_dir("/proc/self/task").expect("Linux lists a process's threads").count();
        // With enough memory, threads are started.
        let later = Device::cpu().reduce(out.cast::<u64>(), Sum).expect("there is memory");
        let more = fs::read_dir("/proc/self/task").expect("Linux lists a process's threads").count();
        assert_eq!(sum.expect("a reduction takes little"), later);
        assert!(more > threads, "{more} threads after {threads}");
        return child::answer(later);
    }
    let (value, _) = child::run(child::child(test, "few").env("RAYON_NUM_THREADS", "3"));
    assert_eq!(value, (N as u64 * (N as u64 - 1) / 2).to_string());
}

/// The work runs in the caller's pool, which may be the global one.
#[test]
fn work_stays_in_the_pool_of_the_caller() {
    let test = "work_stays_in_the_pool_of_the_caller";
    match child::part().as_deref() {
        Some("own") => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads start");
            child::answer(pool.install(|| Device::cpu().info().compute_units));
        }
        Some("global") => {
            rayon::ThreadPoolBuilder::new().num_threads(3).build_global().expect("nobody has started it");
            child::answer(Device::cpu().info().compute_units);
        }
        Some("variable") => child::answer(Device::cpu().info().compute_units),
        Some(part) => panic!("no part {part}"),
        None => {
            for part in ["own", "global", "variable"] {
                let mut child = child::child(test, part);
                child.env("RAYON_NUM_THREADS", if part == "variable" { "3" } else { "5" });
                assert_eq!(child::run(&mut child).0, "3", "{part}");
            }
        }
    }
}
