//! Histograms: defects of the original kernels (B10 to B38), and even bins against their definition.

#[path = "../../tests/common/mod.rs"]
mod common;
mod steps;

use common::{gpu, tuned};
use oclprim::{
    Accumulate, Bins, Device, Element, ElementType, ErrorKind, Histogram, Integer, Source, SubGroupBackend, Tuning,
    internals::histogram::gpu as plans, op::Map,
};
use oclprim_checks::{
    check::{guarded, poison},
    ladder::{Distribution, Request, Rung},
    registry,
};
use proptest::prelude::*;

/// Every device, in its own geometry and in those of GPUs with much and with little local memory. The last GPU takes
/// inputs in rounds, as others do from 2^31 samples on.
fn devices() -> Vec<(String, Device)> {
    let gpu = || gpu().sub_groups(SubGroupBackend::Local);
    tuned(&[
        ("a GPU", gpu()),
        ("a small GPU", gpu().local_bytes(4096)),
        ("a small CPU", Tuning::default().local_bytes(4096)),
        ("a GPU in rounds", gpu().wide_offsets()),
    ])
}

fn request(n: usize, bins: usize) -> Request {
    let mut request = Request::default();
    (request.n, request.bins) = (n, bins);
    request
}

fn steps(device: &Device, request: &Request) -> Vec<Rung> {
    let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "histogram").unwrap();
    ladder.rungs(request, device).unwrap_or_else(|error| panic!("{device:?}: {error}"))
}

/// Runs the steps of the ladder whose names fit, if a table of the bins fits local memory.
fn run_steps(device: &(String, Device), request: &Request, fits: impl Fn(&str) -> bool) {
    let local = device.1.capabilities().unwrap().map_or(usize::MAX, |caps| caps.local_bytes);
    if 4 * (request.bins + 1) > local {
        return common::skip(&format!("{}: the ladder with {} bins", device.0, request.bins), "local memory");
    }
    steps::run_steps("histogram", device, request, fits);
}

/// Returns true if the step counts in one table per work-group.
fn by_groups(step: &str) -> bool {
    step.starts_with("v2") || step.starts_with("v3")
}

/// The step of this name, if the device can run it.
fn step(device: &(String, Device), request: &Request, name: &str) -> Option<Rung> {
    let step = steps(&device.1, request).into_iter().find(|step| step.name == name).expect("the ladder has it");
    if let Some(reason) = step.unavailable.as_ref().filter(|_| !device.1.is_cpu()) {
        common::skip(&format!("{}: {name}", device.0), reason);
    }
    step.unavailable.is_none().then_some(step)
}

/// B10: the time of a histogram in two kernels covered only one kernel.
#[test]
fn b10_the_timed_run_includes_the_merge() {
    for (name, device) in common::opencl_devices_or_skip("b10") {
        let device = (name, device.profiled().unwrap());
        let Some(step) = step(&device, &request(5000, 200), "v3_local + v3_merge") else { continue };
        let mut case = (step.prepare)(&device.1).unwrap();
        case.reset().unwrap();
        device.1.take_timings().unwrap();
        case.run().unwrap();
        let kernels: Vec<_> = device.1.take_timings().unwrap().iter().map(|timing| timing.name).collect();
        assert_eq!(kernels, ["v3_local", "v3_merge"], "{}", device.0);
    }
}

fn counted<T: Element>(
    slots: impl Iterator<Item = Option<usize>>,
    bins: usize,
    device: &Device,
    input: &[T],
    layout: &Bins<T>,
) {
    let mut counts = vec![0u64; bins];
    let mut outside = 0;
    for slot in slots {
        match slot {
            Some(bin) => counts[bin] += 1,
            None => outside += 1,
        }
    }
    let Histogram { counts: got, outside: sides, .. } = device.histogram(input, layout).unwrap();
    let first = got.iter().zip(&counts).position(|(a, b)| a != b);
    assert!(first.is_none(), "{device:?}: bin {first:?}");
    assert_eq!(sides.below + sides.above + sides.nan, outside, "{device:?}");
}

fn ids(device: &Device, input: &[i32], bins: usize) {
    let slot = |&id: &i32| usize::try_from(id).ok().filter(|&id| id < bins);
    counted(input.iter().map(slot), bins, device, input, &Bins::ids(bins).unwrap());
}

/// `n` samples below `bins`, about equally many in every bin.
fn spread(n: usize, bins: usize) -> Vec<i32> {
    (0..n).map(|i| (i.wrapping_mul(2_654_435_761) % bins) as i32).collect()
}

/// B16: counts were never cleared, only their total was compared, and the timing included their transfer to the host.
/// Here counts and scratch hold other values before the call, and every bin is compared.
#[test]
fn b16_old_counts_and_scratch_do_not_matter() {
    for (name, device) in devices() {
        for bins in [7, 300, 9000] {
            let samples = spread(6011, bins);
            let mut want = vec![0u32; bins];
            samples.iter().for_each(|&id| want[id as usize] += 1);
            let (mut counts, mut outside) =
                (device.filled(bins, poison::<u32>()).unwrap(), device.filled(3, poison::<u64>()).unwrap());
            let layout = Bins::ids(bins).unwrap();
            for round in 1..3 {
                let how = if round == 1 { Accumulate::Overwrite } else { Accumulate::Add };
                device
                    .histogram_into(&samples, &layout, &mut counts, &mut outside, how)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                let want: Vec<u32> = want.iter().map(|count| round * count).collect();
                assert!(counts.to_vec().unwrap() == want, "{name}: {bins} bins, round {round}");
                assert_eq!(outside.to_vec().unwrap(), [0; 3], "{name}: {bins} bins, round {round}");
            }
        }
    }
}

/// B30: the gain of tables in local memory was mixed up with that of fewer work-groups. The ladder separates them: both
/// steps read the same data, and differ only in the number of work-groups, each with a table.
#[test]
fn b30_full_and_capped_grids_are_separate_steps() {
    for device in devices() {
        // Reads only the models. The full grid of this input has more work-groups than any device's capped grid.
        let request = request(1 << 28, 256);
        let model = |name| step(&device, &request, name).map(|step| step.model.expect("a kernel of the crate's own"));
        if let (Some(full), Some(capped)) = (model("v2_local full grid"), model("v2_local capped grid")) {
            assert!(full.store_sectors > capped.store_sectors, "{}: {full:?}, {capped:?}", device.0);
            assert_eq!(full.load_sectors, capped.load_sectors, "{}", device.0);
        }
    }
    for device in common::opencl_devices_or_skip("b30") {
        for n in [1, 1023, 1 << 16] {
            steps::run_steps("histogram", &device, &request(n, 256), |name| name.starts_with("v2_local"));
        }
    }
}

/// B31: bins beyond the number of work-items in a work-group were neither zeroed nor written.
#[test]
fn b31_more_bins_than_work_items_are_counted() {
    for (_, device) in devices() {
        for bins in [1025, 5000, 70_000] {
            ids(&device, &spread(30_011, bins), bins);
        }
    }
    for device in common::devices() {
        for bins in if common::tiny() { &[1025][..] } else { &[1025, 5000] } {
            run_steps(&device, &request(30_011, *bins), by_groups);
        }
    }
}

/// B32: the merging kernel was right for 256 bins only.
#[test]
fn b32_any_number_of_bins_is_merged() {
    for (_, device) in devices() {
        for bins in [1, 2, 7, 255, 256, 257, 300, 1000] {
            ids(&device, &spread(20_000, bins), bins);
        }
    }
    // This size takes several work-groups, so that there are tables to merge.
    for device in common::devices() {
        for bins in if common::tiny() { &[7, 257][..] } else { &[1, 7, 255, 256, 257, 300, 1000] } {
            run_steps(&device, &request(20_000, *bins), by_groups);
        }
    }
}

/// B33: samples outside the bins were written out of bounds.
#[test]
fn b33_samples_outside_are_counted_and_not_written() {
    let samples: Vec<i32> = (0..9000).map(|i| [i32::MIN, -1, i % 10, 10, 11, i32::MAX][i as usize % 6]).collect();
    for (name, device) in devices() {
        let mut outside = [0u64; 3];
        let counts = guarded::<u32>(&device, 10, 1, |counts| {
            let bins = Bins::ids(10)?;
            Ok(device.histogram_into(&samples, &bins, counts, &mut outside, Accumulate::Overwrite)?)
        });
        let counts = counts.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(counts.iter().sum::<u32>(), 1500, "{name}");
        assert_eq!(outside, [3000, 4500, 0], "{name}");
        ids(&device, &samples, 10);
        ids(&device, &vec![-1; 5000], 100_000);
    }
    for device in common::devices() {
        let mut request = request(9000, 10);
        request.distribution = Distribution::Outside;
        run_steps(&device, &request, |_| true);
    }
}

/// No operation counts a sample in a bin if the sample is outside of the bins.
#[test]
fn samples_outside_count_in_no_bin() {
    const SIDES: [u64; 3] = [3000, 4500, 1500];
    let samples = [f32::NEG_INFINITY, -1.5, 1.0, 1e30, f32::INFINITY, f32::NAN];
    let x: Vec<f32> = (0..9000).map(|i| samples[i % 6]).collect();
    let pixels: Vec<u8> = (0..9000).map(|i| if i % 3 == 0 { 99 } else { 200 }).collect();
    let halves = vec![0.5f32; x.len()];
    // Doubled samples stay outside on the same side.
    let double = Map::new(|x: f32| x * 2.0, "x * 2.0f");
    let sides = |found: &Histogram| [found.outside.below, found.outside.above, found.outside.nan];
    for (name, device) in devices() {
        let what = |form: &str, bins: usize| format!("{name}: {form}, {bins} bins");
        for bins in [1, 9000] {
            let edges: Vec<f32> = (0..=bins).map(|k| k as f32 / bins as f32).collect();
            for (form, layout) in [("even", Bins::even(0.0, 1.0, bins)), ("edges", Bins::edges(&edges))] {
                let layout = layout.unwrap();
                let found = device.histogram(&x, &layout).unwrap();
                assert_eq!((sides(&found), found.counts), (SIDES, vec![0; bins]), "{}", what(form, bins));
                let found = device.histogram(x.map(&double), &layout).unwrap();
                assert_eq!((sides(&found), found.counts), (SIDES, vec![0; bins]), "{}, mapped", what(form, bins));
                let found = device.histogram(x.weighted(&halves), &layout).unwrap();
                let sums = [found.outside.below, found.outside.above, found.outside.nan];
                assert_eq!(
                    (sums, found.sums),
                    ([1500.0, 2250.0, 750.0], vec![0.0; bins]),
                    "{}, weighted",
                    what(form, bins)
                );
            }
        }
        for bins in [1, 100] {
            let layouts = [Bins::even(100, 200, bins), Bins::edges(&[100, 200]), Bins::ids(90)].map(Result::unwrap);
            let found = device.histogram(pixels.channels(3), &layouts).unwrap();
            let want = [([3000, 0, 0], bins), ([0, 3000, 0], 1), ([0, 3000, 0], 90)];
            for (found, (outside, bins)) in found.iter().zip(want) {
                assert_eq!(sides(found), outside, "{}", what("channels", bins));
                assert_eq!(found.counts, vec![0; bins], "{}", what("channels", bins));
            }
        }
    }
}

/// A single bin with samples in it and on both sides, for every operation.
#[test]
fn one_bin_counts_its_samples() {
    let x: Vec<f32> = (0..9000).map(|i| [-0.25, 0.0, 0.5, 0.75, 1.0][i % 5]).collect();
    let weights: Vec<f32> = (0..x.len()).map(|i| (i % 9) as f32 / 8.0).collect();
    let integers: Vec<i32> = (0..x.len() as i32).map(|i| i % 9 - 3).collect();
    let inside = |x: f32| (0.0..1.0).contains(&x);
    let of = |fits: fn(f32) -> bool| -> (f32, i64) {
        let indices = (0..x.len()).filter(|&i| fits(x[i]));
        indices.fold((0.0, 0), |sum, i| (sum.0 + weights[i], sum.1 + i64::from(integers[i])))
    };
    let (below, within, above) = (of(|x| x < 0.0), of(|x| (0.0..1.0).contains(&x)), of(|x| x >= 1.0));
    let count = x.iter().filter(|&&x| inside(x)).count() as u64;
    assert_eq!(count, 5400);
    let negated = Map::new(|x: f32| -x, "-x");
    let pixels: Vec<u8> = (0..9000).map(|i| (i / 3 % 10) as u8).collect();
    for (name, device) in devices() {
        for layout in [Bins::even(0.0f32, 1.0, 1), Bins::edges(&[0.0f32, 1.0])].map(Result::unwrap) {
            let found = device.histogram(&x, &layout).unwrap();
            assert_eq!((found.counts, found.outside.below, found.outside.above), (vec![count], 1800, 1800), "{name}");
            let found = device.histogram(x.weighted(&weights), &layout).unwrap();
            assert_eq!(
                (found.outside.below, found.sums, found.outside.above),
                (below.0, vec![within.0], above.0),
                "{name}"
            );
            let found = device.histogram(x.weighted(&integers), &layout).unwrap();
            assert_eq!(
                (found.outside.below, found.sums, found.outside.above),
                (below.1, vec![within.1], above.1),
                "{name}"
            );
            // -0 and 0.25 lie in the bin.
            let found = device.histogram(x.map(&negated), &layout).unwrap();
            assert_eq!((found.counts, found.outside.below, found.outside.above), (vec![3600], 5400, 0), "{name}");
        }
        let layouts = [Bins::even(2u8, 5, 1), Bins::edges(&[0, 9]), Bins::ids(1)].map(Result::unwrap);
        let found = device.histogram(pixels.channels(3), &layouts).unwrap();
        let want = [(900, 600, 1500), (2700, 0, 300), (300, 0, 2700)];
        for (found, (count, below, above)) in found.iter().zip(want) {
            let sides = (found.counts[0], found.outside.below, found.outside.above);
            assert_eq!((sides, found.counts.len()), ((count, below, above), 1), "{name}");
        }
    }
}

/// B34: 32-bit indices overflowed at 2^31 samples. A launch now takes at most that many, and longer inputs take several
/// launches; `devices` has a device with rounds of 4,096. The ladder refuses lengths beyond 32 bits.
#[test]
fn b34_inputs_longer_than_a_launch_are_counted() {
    for (_, device) in devices() {
        let samples = spread(4096 * 5 + 3, 777);
        ids(&device, &samples, 777);
        let input = device.upload(&samples).unwrap();
        let view = input.view(3..).unwrap();
        let found = device.histogram(view, &Bins::ids(777).unwrap()).unwrap();
        assert_eq!(found, Device::cpu().histogram(&samples[3..], &Bins::ids(777).unwrap()).unwrap());
    }
    for (name, device) in common::devices() {
        assert!(!steps(&device, &request(u32::MAX as usize, 256)).is_empty(), "{name}");
        let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "histogram").unwrap();
        let error = ladder.rungs(&request(u32::MAX as usize + 1, 256), &device).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
    }
}

/// B35: every work-group had a table, regardless of its size: 21.5 GB for 5 Mi bins.
#[test]
fn b35_scratch_is_bounded() {
    for (name, device) in devices() {
        for bins in [1, 256, 10_000, 5 << 20, 1 << 24] {
            let Some(caps) = device.capabilities().unwrap() else { continue };
            let form = plans::Form::of(&Bins::<i32>::ids(bins).unwrap());
            let plan = plans::plan(1 << 28, form, ElementType::U64, &caps.into(), 1 << 31).unwrap();
            assert!(plan.scratch_bytes <= 1 << 30, "{name}: {plan:?} for {bins} bins");
        }
    }
    // In the ladder's model, the merging kernel loads one sector for each counter, in addition to the samples' sectors.
    for device in devices() {
        for bins in [256, 5000, 5 << 20] {
            let request = request(1 << 28, bins);
            let Some(step) = step(&device, &request, "v3_local + v3_merge") else { continue };
            let bytes = 4.0 * (step.model.unwrap().load_sectors - (4u64 << 28) as f64 / 32.0);
            assert!(bytes > 0.0 && bytes <= f64::from(256 << 20), "{}: {bytes} bytes for {bins} bins", device.0);
        }
    }
}

// B36: the original checks were inside assert(), and launches were unchecked. Here the crate's registry and ladder
// return the differences, and no_opencl.rs tests launches that fail.

/// B37: the originals were tested on uniform samples only.
#[test]
fn b37_skewed_samples_are_counted() {
    for (_, device) in devices() {
        for bins in [256, 3000, 100_000] {
            ids(&device, &vec![bins as i32 / 2; 20_003], bins);
            let skewed: Vec<i32> = (1..20_003u64).map(|i| (bins as u64 / i) as i32).collect();
            ids(&device, &skewed, bins);
        }
    }
    for device in common::devices() {
        for distribution in [Distribution::Constant, Distribution::Zipf] {
            let mut request = request(20_003, 256);
            request.distribution = distribution;
            run_steps(&device, &request, |_| true);
        }
    }
}

/// B38: OpenCL has no L2 persistence. Where the step with cache hints cannot run, it reports the reason.
#[test]
fn b38_cache_hints_run_or_give_a_reason() {
    for (name, device) in devices() {
        let steps = steps(&device, &Request::default());
        let step = steps.iter().find(|step| step.name == "v1_persist").unwrap();
        let ptx = device.capabilities().unwrap().is_some_and(|caps| caps.ptx && caps.compute_capability >= 80);
        assert_eq!(step.unavailable.is_none(), ptx, "{name}: {:?}", step.unavailable);
    }
}

#[test]
fn outputs_of_wrong_length_are_refused() {
    for (name, device) in common::devices() {
        let run = |counts: usize, outside: usize| {
            let (mut counts, mut outside) = (device.filled(counts, 7u32)?, device.filled(outside, 7u64)?);
            let bins = Bins::ids(4)?;
            device.histogram_into(&[1u8], &bins, &mut counts, &mut outside, Accumulate::Add)?;
            counts.to_vec()
        };
        assert_eq!(run(4, 3).unwrap(), [7, 8, 7, 7], "{name}");
        for (counts, outside, want) in [
            (5, 3, "histogram of counts needs an output of 4 elements, got 5"),
            (4, 2, "histogram of samples outside the bins needs an output of 3 elements, got 2"),
        ] {
            let error = run(counts, outside).unwrap_err();
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, want), "{name}");
        }
    }
}

/// `edge(k)` by the definition of `Bins`.
macro_rules! edge {
    ($name:ident, $ty:ty) => {
        fn $name(lower: $ty, upper: $ty, bins: usize, k: usize) -> $ty {
            let width = upper / bins as $ty - lower / bins as $ty;
            if 2 * k < bins { lower + k as $ty * width } else { upper - (bins - k) as $ty * width }
        }
    };
}
edge!(edge_f32, f32);
edge!(edge_f64, f64);

/// The bin of each sample, from a search of all edges.
macro_rules! float_slots {
    ($samples:expr, $edge:ident, $lower:expr, $upper:expr, $bins:expr, $closed:expr) => {{
        let edges: Vec<_> = (0..$bins).map(|k| $edge($lower, $upper, $bins, k)).collect();
        $samples.iter().map(move |&x| match x {
            _ if x == $upper && $closed => Some($bins - 1),
            _ if x >= $lower && x < $upper => edges.iter().rposition(|&edge| edge <= x),
            _ => None,
        })
    }};
}

/// Random samples around a range, and every edge with its two neighbours.
macro_rules! float_samples {
    ($edge:ident, $lower:expr, $upper:expr, $bins:expr, $parts:expr) => {{
        let extent = $upper / 2.0 - $lower / 2.0;
        let mut samples: Vec<_> = $parts.iter().map(|&part| $lower + 2.2 * part * extent - 0.1 * extent).collect();
        for k in 0..=$bins {
            let edge = $edge($lower, $upper, $bins, k);
            samples.extend([edge.next_down(), edge, edge.next_up()]);
        }
        samples.extend([-0.0, $lower, $upper]);
        samples
    }};
}

fn integer_slots<T: Integer>(samples: &[T], lower: T, upper: T, bins: usize, closed: bool) -> Vec<Option<usize>> {
    let (low, high) = (lower.to_i128(), upper.to_i128());
    let slot = |x: &T| match x.to_i128() {
        x if x == high && closed => Some(bins - 1),
        x if x >= low && x < high => Some(((x - low) * bins as i128 / (high - low)) as usize),
        _ => None,
    };
    samples.iter().map(slot).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn even_bins_of_f32_follow_their_edges(a in -1e6f32..1e6, b in -1e6f32..1e6, bins in 1usize..400, closed: bool,
        parts in prop::collection::vec(0f32..1.0, 50))
    {
        let (lower, upper) = (a.min(b), a.max(b));
        let Ok(layout) = Bins::even(lower, upper, bins) else { return Ok(()) };
        let layout = if closed { layout.closed() } else { layout };
        let samples = float_samples!(edge_f32, lower, upper, bins, parts);
        for device in tested() {
            let slots = float_slots!(samples, edge_f32, lower, upper, bins, closed);
            counted(slots, bins, device, &samples, &layout);
        }
    }

    #[test]
    fn even_bins_of_any_f32_follow_their_edges(a: f32, b: f32, bins in 1usize..100, closed: bool, parts in prop::collection::vec(0f32..1.0, 50)) {
        let (lower, upper) = (a.min(b), a.max(b));
        let Ok(layout) = Bins::even(lower, upper, bins) else { return Ok(()) };
        let layout = if closed { layout.closed() } else { layout };
        let samples = float_samples!(edge_f32, lower, upper, bins, parts);
        let slots = float_slots!(samples, edge_f32, lower, upper, bins, closed);
        counted(slots, bins, &Device::cpu(), &samples, &layout);
    }

    #[test]
    fn even_bins_of_f64_follow_their_edges(a in -1e3f64..1e3, b in -1e3f64..1e3, bins in 1usize..400, closed: bool,
        parts in prop::collection::vec(0f64..1.0, 50))
    {
        let (lower, upper) = (a.min(b), a.max(b));
        let Ok(layout) = Bins::even(lower, upper, bins) else { return Ok(()) };
        let layout = if closed { layout.closed() } else { layout };
        let samples = float_samples!(edge_f64, lower, upper, bins, parts);
        for device in tested().iter().filter(|device| device.capabilities().unwrap().is_none_or(|caps| caps.fp64)) {
            let slots = float_slots!(samples, edge_f64, lower, upper, bins, closed);
            counted(slots, bins, device, &samples, &layout);
        }
    }

    #[test]
    fn even_bins_of_i64_follow_the_definition(a: i64, b: i64, narrow in 0u32..63, bins in 1usize..5000, closed: bool,
        random in prop::collection::vec(any::<i64>(), 200))
    {
        let (a, b) = (a >> narrow, b >> narrow);
        prop_assume!(a != b);
        let (lower, upper) = (Ord::min(a, b), Ord::max(a, b));
        let layout = Bins::even(lower, upper, bins).unwrap();
        let layout = if closed { layout.closed() } else { layout };
        let mut samples: Vec<i64> = random.iter().map(|x| x >> narrow).collect();
        // `edge` is the smallest sample of a bin. Its neighbours are samples, too.
        let (low, extent) = (i128::from(lower), i128::from(upper) - i128::from(lower));
        for k in 0..=bins.min(200) as i128 {
            let edge = (low + (k * extent + bins as i128 - 1).div_euclid(bins as i128)) as i64;
            samples.extend([edge.saturating_sub(1), edge, edge.saturating_add(1)]);
        }
        for device in tested() {
            let slots = integer_slots(&samples, lower, upper, bins, closed);
            counted(slots.into_iter(), bins, device, &samples, &layout);
        }
    }

    #[test]
    fn even_bins_of_u32_follow_the_definition(a: u32, b: u32, narrow in 0u32..31, bins in 1usize..5000, random in prop::collection::vec(any::<u32>(), 300)) {
        let (a, b) = (a >> narrow, b >> narrow);
        prop_assume!(a != b);
        let (lower, upper) = (Ord::min(a, b), Ord::max(a, b));
        let layout = Bins::even(lower, upper, bins).unwrap();
        let samples: Vec<u32> = random.iter().map(|x| x >> narrow).collect();
        for device in tested() {
            let slots = integer_slots(&samples, lower, upper, bins, false);
            counted(slots.into_iter(), bins, device, &samples, &layout);
        }
    }
}

/// The devices in their own geometry, opened once.
fn tested() -> &'static [Device] {
    static DEVICES: std::sync::OnceLock<Vec<Device>> = std::sync::OnceLock::new();
    DEVICES.get_or_init(|| common::devices().into_iter().map(|(_, device)| device).collect())
}

/// numpy.histogram(x, edges): bins include their lower edge, and the last bin is closed. Equal edges make empty bins.
#[test]
fn edges_match_numpy_histogram() {
    let x = [1.0f32, 2.0, 2.0, 3.0, 5.0, 5.0, 7.0, 0.5, 7.5, f32::NAN, -0.0, f32::INFINITY];
    for (_, device) in devices() {
        let closed = Bins::edges(&[1.0, 2.0, 2.0, 5.0, 7.0]).unwrap().closed();
        let found = device.histogram(&x, &closed).unwrap();
        assert_eq!(found.counts, [1, 0, 3, 3], "{device:?}");
        assert_eq!((found.outside.below, found.outside.above, found.outside.nan), (2, 2, 1), "{device:?}");
        let everything = Bins::edges(&[f32::NEG_INFINITY, 0.0, f32::INFINITY]).unwrap();
        let found = device.histogram(&x, &everything).unwrap();
        assert_eq!((found.counts, found.outside.above), (vec![0, 10], 1), "{device:?}");
        let found = device.histogram(&[-128i8, -1, 0, 127], &Bins::edges(&[-128, 0, 127]).unwrap()).unwrap();
        assert_eq!((found.counts, found.outside.above), (vec![2, 1], 1), "{device:?}");
    }
}

/// Devices count bytes by value, for any bins.
#[test]
fn bytes_are_counted_by_value() {
    let x: Vec<u8> = (0..5_003u32).map(|i| (i * i / 7) as u8).collect();
    let signed: &[i8] = bytemuck::cast_slice(&x);
    for (name, device) in devices().into_iter().chain(common::tuned(&[("a GPU", common::gpu())])) {
        for offset in [0, 3] {
            let buffer = device.upload(&x).unwrap();
            let found = device.histogram(buffer.view(offset..).unwrap(), &Bins::ids(200).unwrap()).unwrap();
            let mut want = vec![0; 200];
            x[offset..].iter().filter(|&&x| x < 200).for_each(|&x| want[usize::from(x)] += 1);
            assert_eq!(found.outside.above, x[offset..].iter().filter(|&&x| x >= 200).count() as u64, "{name}");
            assert_eq!(found.counts, want, "{name}, from {offset}");

            let buffer = device.upload(signed).unwrap();
            let view = buffer.view(offset..).unwrap();
            let halves = [Bins::even(-100, 100, 2).unwrap(), Bins::edges(&[-100i8, 0, 100]).unwrap()];
            let within = |low: i8, high: i8| signed[offset..].iter().filter(|&&x| low <= x && x < high).count() as u64;
            for bins in &halves {
                let found = device.histogram(view, bins).unwrap();
                assert_eq!(found.counts, [within(-100, 0), within(0, 100)], "{name}, from {offset}: {bins:?}");
                assert_eq!(found.outside.below, within(-128, -100), "{name}");
            }
        }
    }
}

#[test]
fn invalid_edges_are_refused() {
    let text = |edges: &[f64]| Bins::edges(edges).map(|_| ()).unwrap_err().to_string();
    assert_eq!(text(&[0.0, 1.0, 0.5]), "edges must not decrease: edge 1 is 1.0, edge 2 is 0.5");
    assert_eq!(text(&[0.0, f64::NAN]), "edge 1 of 2 is NaN");
    assert_eq!(Bins::<u8>::edges(&[3]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// Weights that are multiples of 1/8 have exact sums in any order.
#[test]
fn weights_of_few_bits_have_exact_sums() {
    let n = 30_011;
    let x: Vec<i32> = (0..n).map(|i| (i * 7919) % 300 - 1).collect();
    let weights: Vec<f32> = (0..n).map(|i| ((i * 31) % 4001 - 2000) as f32 / 8.0).collect();
    let mut want = [0.0f64; 301];
    for (&x, &w) in x.iter().zip(&weights) {
        want[(x + 1) as usize] += f64::from(w);
    }
    for (_, device) in devices() {
        let found = device.histogram(x.weighted(&weights), &Bins::ids(299).unwrap()).unwrap();
        assert_eq!(f64::from(found.outside.below), want[0], "{device:?}");
        assert!(found.sums.iter().map(|&sum| f64::from(sum)).eq(want[1..300].iter().copied()), "{device:?}");
        let integers: Vec<i64> = weights.iter().map(|w| (w * 8.0) as i64 + i64::MAX / 2).collect();
        let found = device.histogram(x.weighted(&integers), &Bins::ids(299).unwrap()).unwrap();
        let mut sums = [0i64; 301];
        x.iter().zip(&integers).for_each(|(&x, &w)| sums[(x + 1) as usize] = sums[(x + 1) as usize].wrapping_add(w));
        assert_eq!((found.outside.below, found.sums), (sums[0], sums[1..300].to_vec()), "{device:?}");
    }
}

#[test]
fn weights_must_be_as_many_as_samples() {
    for (_, device) in devices() {
        let error = device.histogram([1u8, 2].weighted(&[1.0f32]), &Bins::ids(3).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "a weighted histogram of 2 samples needs as many weights, got 1");
    }
}

/// Bins beyond local memory: GPUs partition the samples by ranges of bins. The order of the samples does not matter.
#[test]
fn bins_beyond_local_memory_count_any_samples() {
    let (n, bins) = (6011, 9000);
    let even = spread(n, bins);
    let mut sorted = even.clone();
    sorted.sort_unstable();
    let few: Vec<i32> = even.iter().map(|id| if id % 3 == 0 { *id } else { 8191 }).collect();
    let around: Vec<i32> = even.iter().map(|id| id * 3 - 9000).collect();
    for (_, device) in devices() {
        for samples in [&even, &sorted, &few, &around, &vec![4567; n]] {
            ids(&device, samples, bins);
        }
    }
}

#[test]
fn each_channel_has_its_own_histogram() {
    let n = 4099;
    let pixels: Vec<u8> = (0..4 * n).map(|i: usize| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    for (_, device) in devices() {
        let bins = [
            Bins::ids(200).unwrap(),
            Bins::even(10, 250, 7).unwrap(),
            Bins::edges(&[0, 3, 3, 90, 255]).unwrap().closed(),
            Bins::even(0, 100, 100).unwrap().closed(),
        ];
        for (channels, active) in [(4, 4), (3, 2)] {
            let pixels = &pixels[..n * channels];
            let found = device.histogram(pixels.channels(channels), &bins[..active]).unwrap();
            assert_eq!(found.len(), active);
            for (c, (found, bins)) in found.iter().zip(&bins).enumerate() {
                let samples: Vec<u8> = pixels.iter().skip(c).step_by(channels).copied().collect();
                assert_eq!(*found, Device::cpu().histogram(&samples, bins).unwrap(), "{device:?}: {c} of {channels}");
            }
        }
    }
}

#[test]
fn mapped_samples_are_counted() {
    let x = spread(9001, 500);
    let thirds = Map::new(|x: i32| x as f32 / 3.0 - 20.0, "x / 3.0f - 20.0f");
    // Division need not round correctly, so no edge is a third of an integer.
    let bins = Bins::edges(&[0.1f32, 10.1, 30.1, 99.9]).unwrap();
    let slots = |x: &i32| [60.3, 90.3, 150.3, 359.7].iter().filter(|&&edge| f64::from(*x) >= edge).count();
    let mut want = [0u64; 5];
    x.iter().for_each(|x| want[slots(x)] += 1);
    for (name, device) in tuned(&[("a GPU", gpu())]) {
        let found = device.histogram(x.map(&thirds), &bins).unwrap();
        assert_eq!(found.counts, want[1..4], "{name}");
        assert_eq!((found.outside.below, found.outside.above), (want[0], want[4]), "{name}");
        let nothing = device.histogram(x[..0].map(&thirds), &bins).unwrap();
        assert_eq!(nothing.counts, [0; 3], "{name}");
        let (mut counts, mut outside) = ([0u32; 4], [0; 3]);
        let add = Accumulate::Add;
        let refused = device.histogram_into(x.map(&thirds), &bins, &mut counts, &mut outside, add);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        if !device.is_cpu() {
            let wrong = Map::new(|x: i32| x as f32, "x +\n  missing_name");
            let error = device.histogram(x.map(&wrong), &bins).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Build, "{name}: {error}");
            let log = error.build_log().unwrap();
            assert!(log.contains("missing_name"), "{name}: {log}");
            assert!(common::names_line(&device, log, ("expression:2", 3, "  missing_name")), "{name}: {log}");
        }
    }
}

#[test]
fn invalid_channels_are_refused() {
    let (device, bins) = (Device::cpu(), vec![Bins::<u8>::ids(3).unwrap(); 5]);
    let text = |n: usize, channels, count: usize| {
        device.histogram(vec![0u8; n].channels(channels), &bins[..count]).unwrap_err().to_string()
    };
    assert_eq!(text(5, 5, 1), "pixels have 1 to 4 channels, not 5");
    assert_eq!(text(6, 3, 4), "bins were given for 4 channels, but a pixel has 3: give bins for 1 to 3 channels");
    assert_eq!(text(7, 3, 3), "7 samples are not a whole number of pixels of 3 channels");
}
