//! Scratch belongs to the queue: bounds of its size, reuse from call to call, reservations, and threads.

mod common;

use std::{cell::Cell, thread};

use oclprim::{
    Accumulate, Bins, Buffer, Device, Interpolation, MomentsRecord, Order, Result, SetOp, Source, StatisticsRecord,
    Top,
    internals::testing::allocations,
    op::{Map, Max, NonZero, Operator, Sum},
    sort::Merging,
};

const N: usize = 20_001;

/// A device with a queue of its own, inputs, and the number of outputs that the operation has allocated.
struct Given {
    device: Device,
    x: Buffer<u32>,
    y: Buffer<u64>,
    offsets: Buffer<u64>,
    outputs: Cell<usize>,
}

impl Given {
    fn out<T: bytemuck::Pod>(&self, n: usize) -> Result<Buffer<T>> {
        self.outputs.set(self.outputs.get() + 1);
        self.device.zeroed(n)
    }
}

/// Opens one device with a new queue, and tries operations there.
struct Forms<'a> {
    name: &'a str,
    open: &'a dyn Fn() -> Device,
    wrong: Vec<String>,
    tried: usize,
}

impl Forms<'_> {
    fn given(&self) -> Result<Given> {
        let device = (self.open)();
        let x: Vec<u32> = common::random(N, 1);
        let offsets: Vec<u64> = (0..=100).map(|i| i * N as u64 / 100).collect();
        let (x, y, offsets) = (device.upload(&x)?, device.filled(N, 5)?, device.upload(&offsets)?);
        assert!(device.scratch_sizes().is_empty(), "{}", self.name);
        Ok(Given { device, x, y, offsets, outputs: Cell::new(0) })
    }

    /// Runs an operation on new queues. The first call takes at most `most` bytes of scratch. A second call allocates
    /// only outputs. On a new queue with these sizes reserved, the first call allocates no scratch.
    fn form(&mut self, form: &str, most: usize, run: impl Fn(&Given) -> Result<()>) {
        let what = format!("{}: {form}", self.name);
        let run = |given: &Given| {
            let ran = run(given).and_then(|()| given.device.finish());
            ran.unwrap_or_else(|error| panic!("{what}: {error}"));
        };
        // Returns the number of allocations other than outputs. A checker gets new memory for each call.
        let allocated = |given: &Given| {
            let (before, outputs) = (allocations(&given.device), given.outputs.get());
            run(given);
            let made = allocations(&given.device) - before - (given.outputs.get() - outputs);
            if common::runs_kernels_at_once(&given.device) { made } else { 0 }
        };
        let given = self.given().expect(&what);
        let first = allocated(&given);
        let sizes = given.device.scratch_sizes();
        let bytes: usize = sizes.iter().sum();
        // Each of up to four buffers is rounded up to a multiple of 256 bytes, or of a GPU's alignment of 512 bytes.
        if bytes > most + 4 * 511 {
            self.wrong.push(format!("{what}: {bytes} bytes, {most} were expected"));
        }
        let (made, now) = (allocated(&given), given.device.scratch_sizes());
        if made > 0 || now != sizes {
            self.wrong.push(format!("{what}: a second call makes {made} allocations, {sizes:?} -> {now:?}"));
        }
        let given = self.given().expect(&what);
        given.device.reserve(&sizes).expect(&what);
        // The remaining allocations are memory that launches share.
        let (made, now) = (allocated(&given), given.device.scratch_sizes());
        if made > first.saturating_sub(sizes.len()) || now != sizes {
            self.wrong
                .push(format!("{what}: {sizes:?} are reserved, {now:?} are used with {made} of {first} allocations"));
        }
        self.tried += 1;
    }
}

/// An accumulator for each tile of at least 4,096 elements.
const REDUCTION: usize = 8 * (N / 4096 + 1);
/// A word for each work-group, which counts at least 256 elements.
const COUNT: usize = 8 * (N / 256 + 1);
/// A record for each work-group, and moments for each 64 KiB.
const STATISTICS: usize = 88 * (N / 4096 + 1) + 33 * (4 * N / (64 << 10) + 1);
/// 40 bytes for each tile of 4 KiB.
const SEGMENTS: usize = 40 * (4 * N / (4 << 10) + 1);
/// The largest record for each part of a line. A part has at least 1,024 elements.
const AXIS: usize = 320 * (N / 1024 + 1);
/// An atomic tile counter, and status words for each 32 KiB.
const SCAN: usize = 16 + 32 * (4 * N / (32 << 10) + 1);
/// 32 bytes for each 8 KiB.
const SELECT: usize = 64 + 32 * (4 * N / (8 << 10) + 1);
/// Keys of 4 bytes, and 256 counters for each work-group of at least 1,024 keys.
const SORT: usize = 4 * N + 256 * 4 * (N / 1024 + 1);
/// 8 bytes for each tile of at least 128 elements.
const MERGE: usize = 8 * (N / 128 + 2);
/// Histograms and candidates of one rank.
const TOP: usize = 16 << 10;
/// A table of counters for each 8,192 samples.
const TABLES: usize = 4 * (N / 8192 + 1);

fn reductions(forms: &mut Forms<'_>) {
    forms.form("reduce", REDUCTION, |it| it.device.reduce_into(&it.x, Max, &mut it.out(1)?));
    forms.form("reduce of a cast", REDUCTION, |it| it.device.reduce_into(it.x.cast::<u64>(), Sum, &mut it.out(1)?));
    forms.form("reduce of products", REDUCTION, |it| {
        it.device.reduce_into(it.x.cast::<u64>().times(it.x.cast()), Sum, &mut it.out(1)?)
    });
    forms.form("count", COUNT, |it| it.device.count_into(&it.x, NonZero, &mut it.out(1)?));
    forms.form("statistics", STATISTICS, |it| {
        it.device.statistics_into(&it.x, &mut it.out::<StatisticsRecord<u32>>(1)?)
    });
    forms.form("min_max", STATISTICS, |it| it.device.min_max_into(&it.x, &mut it.out(2)?, &mut it.out(2)?));
    let largest = Operator::new("largest", 0u32, u32::max, "max(a, b)");
    forms.form("reduce_by", REDUCTION, |it| it.device.reduce_into(&it.x, &largest, &mut it.out(1)?));
    forms.form("reduce_segments", SEGMENTS, |it| {
        it.device.reduce_into(it.x.segments(&it.offsets), Sum, &mut it.out(100)?)
    });
    // At most two of the largest records for each 4,096 elements.
    forms.form("moments of segments", 640 * (N / 4096 + 1), |it| {
        it.device.moments_into(it.x.segments(&it.offsets), &mut it.out::<MomentsRecord<u32>>(100)?)
    });
    for shape in [[3, 6667], [6667, 3]] {
        for axis in 0..2 {
            let lines = N / shape[axis];
            let name = |form: &str| format!("{form} of {shape:?} along {axis}");
            forms.form(&name("reduce_axis"), AXIS, |it| {
                it.device.reduce_into(it.x.nd(&shape)?.along(axis), Sum, &mut it.out(lines)?)
            });
            forms.form(&name("reduce_axis in a wider type"), AXIS, |it| {
                it.device.reduce_into(it.x.nd(&shape)?.cast::<u64>().along(axis), Sum, &mut it.out::<u64>(lines)?)
            });
            forms.form(&name("min_max_axis"), AXIS, |it| {
                let (mut values, mut indices) = (it.out(2 * lines)?, it.out(2 * lines)?);
                it.device.min_max_into(it.x.nd(&shape)?.along(axis), &mut values, &mut indices)
            });
            forms.form(&name("moments_axis"), AXIS, |it| {
                it.device.moments_into(it.x.nd(&shape)?.along(axis), &mut it.out::<MomentsRecord<u32>>(lines)?)
            });
            forms.form(&name("scan_axis"), SCAN + 2 * 4 * N, |it| {
                it.device.scan_into(it.x.nd(&shape)?.along(axis), Sum, &mut it.out::<u32>(N)?)
            });
        }
    }
}

fn scans_and_selections(forms: &mut Forms<'_>) {
    forms.form("scan", SCAN, |it| it.device.scan_into(it.x.cast::<u64>(), Sum, &mut it.out::<u64>(N)?));
    forms.form("scan_segments", SCAN, |it| {
        it.device.scan_into(it.x.cast::<u64>().segments(&it.offsets), Sum, &mut it.out::<u64>(N)?)
    });
    forms.form("scan_by_key", SCAN, |it| {
        it.device.scan_into(it.x.cast::<u64>().by_key(&it.x), Sum, &mut it.out::<u64>(N)?)
    });
    forms.form("scan of strided lines", SCAN + 2 * 4 * N, |it| {
        it.device.scan_into(it.x.nd(&[59, 113, 3])?.along(1), Sum, &mut it.out::<u32>(N)?)
    });
    let odd = Map::new(|x: u32| x % 2 == 1, "x % 2 == 1");
    forms.form("select", SELECT, |it| it.device.select_into(&it.x, &odd, &mut it.out(N)?, &mut it.out(1)?));
    forms.form("select from a reversed input", SELECT + 4 * N, |it| {
        it.device.select_into(it.x.reversed(), &odd, &mut it.out(N)?, &mut it.out(1)?)
    });
    forms.form("unique", SELECT, |it| it.device.unique_into(&it.x, &mut it.out(N)?, &mut it.out(1)?));
    forms.form("reduce_by_key", SELECT + SEGMENTS + 4 * (N + 1), |it| {
        let (mut keys, mut values, mut count) = (it.out(N)?, it.out(N)?, it.out(1)?);
        it.device.reduce_into(it.x.by_key(&it.x), Sum, (&mut keys, &mut values, &mut count))
    });
}

fn sorts(forms: &mut Forms<'_>) {
    let ascending = Order::ascending;
    let order = ascending();
    forms.form("sort", SORT, |it| it.device.sort_into(&it.x, ascending(), &mut it.out(N)?));
    forms.form("sort_pairs", SORT + 8 * N, |it| {
        it.device.sort_into(it.x.with(&it.y), ascending(), (&mut it.out(N)?, &mut it.out(N)?))
    });
    forms
        .form("argsort", SORT + 4 * N + 8 * N, |it| it.device.argsort_into(&it.x, ascending(), &mut it.out::<u64>(N)?));
    forms.form("sort_segments", SORT + N, |it| {
        it.device.sort_into(it.x.segments(&it.offsets), ascending(), &mut it.out(N)?)
    });
    forms.form("sort_segments_pairs", SORT + N + 8 * N, |it| {
        let (mut keys, mut values) = (it.out(N)?, it.out(N)?);
        it.device.sort_into(it.x.segments(&it.offsets).with(&it.y), ascending(), (&mut keys, &mut values))
    });
    forms.form("argsort_segments", SORT + N + 4 * N + 8 * N, |it| {
        it.device.argsort_into(it.x.segments(&it.offsets), ascending(), &mut it.out::<u64>(N)?)
    });
    forms.form("sort_by_key", SELECT + SORT + N + 8 * (N + 1), |it| {
        it.device.sort_into(it.x.by_key(&it.y), ascending(), &mut it.out(N)?)
    });
    forms.form("merge_sort", 4 * N + MERGE, |it| it.device.sort_into(&it.x, Merging(&order), &mut it.out(N)?));
    forms.form("merge_sort_pairs", 12 * N + MERGE, |it| {
        it.device.sort_into(it.x.with(&it.y), Merging(&order), (&mut it.out(N)?, &mut it.out(N)?))
    });
    forms.form("merge", MERGE, |it| {
        it.device.merge_into(it.x.view(..7_000)?, it.x.view(7_000..)?, &order, &mut it.out(N)?)
    });
    forms.form("merge_pairs", MERGE, |it| {
        let a = it.x.view(..7_000)?.with(it.y.view(..7_000)?);
        let b = it.x.view(7_000..)?.with(it.y.view(7_000..)?);
        it.device.merge_into(a, b, &order, (&mut it.out(N)?, &mut it.out(N)?))
    });
    forms.form("set_operation", 4 * MERGE, |it| {
        let (mut kept, mut count) = (it.out(N)?, it.out(1)?);
        let (a, b) = (it.x.view(..7_000)?, it.x.view(7_000..)?);
        it.device.set_operation_into(a, b, SetOp::Union, &order, &mut kept, &mut count)
    });
    for k in [10, 1_000, 15_000] {
        let top = Top::largest(k);
        // The selected keys with their indices, and the scratch of their sort.
        let most = TOP + 2 * (4 + 8) * k + 256 * 4 * (k / 1024 + 1);
        forms.form(&format!("top_k {k}"), TOP, |it| it.device.top_k_into(&it.x, top, &mut it.out(k)?));
        forms.form(&format!("top_k_places {k}"), TOP, |it| {
            it.device.top_k_into(it.x.indexed(), top, (&mut it.out(k)?, &mut it.out::<u64>(k)?))
        });
        forms.form(&format!("sorted top_k_places {k}"), most, |it| {
            it.device.top_k_into(it.x.indexed(), top.sorted(), (&mut it.out(k)?, &mut it.out::<u64>(k)?))
        });
    }
    // The sorted keys, and the scratch of their sort.
    forms.form("quantiles of segments", SORT + N + 4 * N, |it| {
        let mut out = it.out::<f64>(200)?;
        it.device.quantile_into(it.x.segments(&it.offsets), &[0.5, 0.9], Interpolation::Linear, &mut out)
    });
    forms.form("quantiles", 5 * TOP, |it| {
        it.device.quantile_into(&it.x, &[0.5, 0.9], Interpolation::Linear, &mut [0.0; 2])
    });
}

fn histograms_and_matrices(forms: &mut Forms<'_>) {
    let replace = Accumulate::Overwrite;
    for count in [10, 3_000, 300_000] {
        let bins = Bins::<u32>::ids(count).unwrap();
        forms.form(&format!("histogram of {count}"), TABLES * (count + 3), |it| {
            it.device.histogram_into(&it.x, &bins, &mut it.out::<u32>(count)?, &mut it.out(3)?, replace)
        });
        forms.form(&format!("weighted of {count}"), 292 * (count + 3), |it| {
            let (mut sums, mut outside) = (it.out(count)?, it.out(3)?);
            it.device.histogram_into(it.x.weighted(&it.y), &bins, &mut sums, &mut outside, replace)
        });
        let half = Map::new(|x: u32| x / 2, "x / 2");
        forms.form(&format!("mapped of {count}"), TABLES * (count + 3), |it| {
            let (mut counts, mut outside) = (it.out::<u32>(count)?, it.out(3)?);
            it.device.histogram_into(it.x.map(&half), &bins, &mut counts, &mut outside, replace)
        });
    }
    let bins = vec![Bins::<u32>::ids(500).unwrap(); 3];
    forms.form("channels", TABLES * 3 * (500 + 3), |it| {
        let (mut counts, mut outside) = (it.out::<u64>(1_500)?, it.out(9)?);
        it.device.histogram_into(it.x.channels(3), &bins, &mut counts, &mut outside, replace)
    });
    for (rows, cols) in [(100, 100), (150, 60), (7, 2_000)] {
        let most = if rows == cols { 0 } else { 4 * rows * cols };
        forms.form(&format!("transpose_in_place {rows} x {cols}"), most, |it| {
            it.device.transpose_in_place(&mut it.out::<u32>(rows * cols)?, rows, cols)
        });
    }
}

/// Calls `each` for every OpenCL device, in its own geometry and in that of a GPU, with a function that opens a new queue.
fn each_device(test: &str, each: impl Fn(&str, &dyn Fn() -> Device)) {
    for (name, device) in common::opencl_devices_or_skip(test) {
        let at = Device::list().iter().position(|info| *info == device.info()).unwrap();
        let open = || Device::at(at).unwrap();
        each(&name, &open);
        each(&format!("{name} as a GPU"), &|| open().with_tuning(common::gpu()).unwrap());
    }
}

#[test]
fn scratch_is_bounded_reused_and_reserved() {
    each_device("scratch_is_bounded_reused_and_reserved", |name, open| {
        let mut forms = Forms { name, open, wrong: Vec::new(), tried: 0 };
        reductions(&mut forms);
        scans_and_selections(&mut forms);
        sorts(&mut forms);
        histograms_and_matrices(&mut forms);
        assert!(forms.wrong.is_empty(), "{}", forms.wrong.join("\n"));
        println!("{name}: {} operations", forms.tried);
    });
}

/// Each call holds its own buffers, reserved or not, until its last launch is enqueued.
#[test]
fn calls_of_several_threads_take_different_scratch() {
    const THREADS: u64 = 4;
    each_device("calls_of_several_threads_take_different_scratch", |name, open| {
        if !common::runs_kernels_at_once(&open()) {
            return common::skip(
                "calls_of_several_threads_take_different_scratch",
                "oclgrind runs one kernel at a time",
            );
        }
        for reserved in [&[][..], &[1 << 16; 3], &[1 << 22; 12]] {
            let device = open();
            device.reserve(reserved).unwrap();
            thread::scope(|scope| {
                for id in 0..THREADS {
                    let device = device.clone();
                    scope.spawn(move || {
                        for round in 0..8 {
                            let n = 3_000 + 7_919 * ((id + round) % 5) as usize;
                            let what = format!("{name}, {reserved:?} reserved: {n} keys of thread {id}, round {round}");
                            let x: Vec<u32> = common::random(n, 10 * id + round);
                            let there = device.upload(&x).expect(&what);
                            let sorted = device.sort(&there, Order::ascending()).expect(&what);
                            let merged = device.sort(&there, Merging(Order::ascending())).expect(&what);
                            let sums = device.scan(&there, Sum).expect(&what);
                            let mut want = x.clone();
                            want.sort_unstable();
                            assert!(sorted.to_vec().expect(&what) == want, "sort: {what}");
                            assert!(merged.to_vec().expect(&what) == want, "merge sort: {what}");
                            let want: Vec<u32> = x
                                .iter()
                                .scan(0u32, |sum, x| {
                                    *sum = sum.wrapping_add(*x);
                                    Some(*sum)
                                })
                                .collect();
                            assert!(sums.to_vec().expect(&what) == want, "scan: {what}");
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn repeated_reservations_allocate_only_missing_buffers() {
    for (name, device) in common::devices() {
        let made = |sizes: &[usize]| {
            let before = allocations(&device);
            device.reserve(sizes).expect(&name);
            allocations(&device) - before
        };
        let counts = [made(&[5_000, 300]), made(&[10, 5_000]), made(&[5_000, 5_000, 1]), made(&[1 << 20]), made(&[])];
        let is_checker = !common::runs_kernels_at_once(&device);
        assert!(
            if device.is_cpu() { counts == [0; 5] } else { is_checker || counts == [2, 0, 1, 1, 0] },
            "{name}: {counts:?}"
        );
        assert!(device.scratch_sizes().is_empty(), "{name}");
    }
}

/// One reservation serves calls of different sizes, one after another.
#[test]
fn calls_of_different_sizes_share_a_reservation() {
    each_device("calls_of_different_sizes_share_a_reservation", |name, open| {
        let (device, tried, sizes) = (open(), open(), [1 << 20, 1 << 18, 3 << 18, 1 << 20]);
        let sort = |device: &Device, n: usize| {
            let x = device.filled(n, 7u32).unwrap();
            let mut out = device.zeroed::<u32>(n).unwrap();
            device.sort_into(&x, Order::ascending(), &mut out).unwrap();
        };
        let made = |device: &Device| {
            let before = allocations(device);
            sizes.into_iter().for_each(|n| sort(device, n));
            allocations(device) - before
        };
        let first = made(&tried);
        let needed = tried.scratch_sizes();
        device.reserve(&needed).unwrap();
        // A checker gets new memory for each call.
        let then = made(&device);
        assert!(then + needed.len() <= first || !common::runs_kernels_at_once(&device), "{name}: {first}, then {then}");
        assert_eq!(device.scratch_sizes(), needed, "{name}");
    });
}
