//! Devices, buffers and caches, on every device of this machine.

mod common;

use std::{
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bytemuck::{Pod, Zeroable};
use common::{devices, random};
use oclprim::{
    Bins, Buffer, Device, DeviceType, ErrorKind, Histogram, Order, Result, SubGroupBackend, Tuning, View,
    internals::data::Rng,
    op::{Sum, Usage},
};
use proptest::prelude::*;

/// Twelve bytes: OpenCL has no fill of this size.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Triple([u32; 3]);

fn kind_of<T: Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("an error").kind()
}

#[test]
fn views_at_odd_offsets_round_trip() {
    fn check<T: Pod + Debug + PartialEq>(device: &Device, name: &str) {
        let n = 1009;
        let (data, patch): (Vec<T>, Vec<T>) = (random(n, 1), random(n, 2));
        for (start, end) in [(0, n), (1, n), (3, 4), (7, 7), (13, 700), (n - 1, n), (n, n)] {
            let mut buffer = device.upload(&data).expect(name);
            assert_eq!((buffer.len(), buffer.is_empty()), (n, false));
            let view = buffer.view(start..end).expect(name);
            assert_eq!((view.len(), view.offset(), view.is_empty()), (end - start, start, start == end));
            assert_eq!(view.to_vec().expect(name), data[start..end], "{name}");
            let mut out = patch[start..end].to_vec();
            view.read(&mut out).expect(name);
            assert_eq!(out, data[start..end], "{name}");

            let mut view = buffer.view_mut(start..end).expect(name);
            view.write(&patch[start..end]).expect(name);
            assert_eq!(view.as_view().to_vec().expect(name), patch[start..end]);
            let mut want = data.clone();
            want[start..end].copy_from_slice(&patch[start..end]);
            assert_eq!(buffer.to_vec().expect(name), want, "{name}");
        }
    }
    for (name, device) in devices() {
        check::<u8>(&device, &name);
        check::<[u8; 3]>(&device, &name);
        check::<u32>(&device, &name);
        check::<Triple>(&device, &name);
        check::<u128>(&device, &name);
    }
}

#[test]
fn fills_set_exactly_their_range() {
    fn check<T: Pod + Debug + PartialEq>(device: &Device, name: &str) {
        for n in [1, 2, 100, 20_000] {
            let all: Vec<T> = random(n + 12, 3);
            let value = all[n];
            let mut buffer = device.upload(&all).expect(name);
            buffer.view_mut(5..5 + n).expect(name).fill(value).expect(name);
            let mut want = all.clone();
            want[5..5 + n].fill(value);
            assert_eq!(buffer.to_vec().expect(name), want, "{name}: {n} elements of {} bytes", size_of::<T>());
            assert_eq!(device.filled(n, value).expect(name).to_vec().expect(name), vec![value; n]);
        }
        assert!(device.zeroed::<T>(0).expect(name).to_vec().expect(name).is_empty());
        let zeros = device.zeroed::<T>(77).expect(name).to_vec().expect(name);
        assert!(bytemuck::cast_slice::<T, u8>(&zeros).iter().all(|&byte| byte == 0));
    }
    // With `wide_offsets`, fills of every size run the kernel, except those of more than 64 KiB on a checker. Without it,
    // most devices run the kernel only beyond 2^30 bytes.
    for (name, device) in common::tuned(&[("wide", Tuning::default().wide_offsets())]) {
        check::<u8>(&device, &name);
        check::<i16>(&device, &name);
        check::<[u8; 3]>(&device, &name);
        check::<i32>(&device, &name);
        check::<u64>(&device, &name);
        check::<Triple>(&device, &name);
        check::<u128>(&device, &name);
        check::<[u64; 5]>(&device, &name);
    }
}

#[test]
fn mappings_read_and_write_the_buffer() {
    for (name, device) in devices() {
        let data: Vec<i32> = (0..1000).collect();
        let mut buffer = device.upload(&data).expect(&name);
        {
            let (a, b) = (buffer.map_memory().expect(&name), buffer.map_memory().expect(&name));
            assert_eq!(*a, data[..]);
            assert_eq!(a[..], b[..]);
        }
        buffer.map_memory_mut().expect(&name).iter_mut().for_each(|x| *x *= 2);
        assert_eq!(device.reduce(&buffer, Sum).expect(&name), 999_000);
        let half: Vec<i32> = (0..1000).map(|x| 2 * x).collect();
        assert_eq!(buffer.to_vec().expect(&name), half);
    }
}

#[test]
fn mappings_of_views_cover_only_their_range() {
    fn check<T: Pod + Debug + PartialEq>(device: &Device, name: &str) {
        let n = 1009;
        let (mut want, patch): (Vec<T>, Vec<T>) = (random(n, 1), random(n, 2));
        let mut buffer = device.upload(&want).expect(name);
        for (start, end) in [(0, n), (1, n), (3, 4), (7, 7), (13, 700), (n - 1, n), (n, n)] {
            let what = format!("{name}: {start}..{end} of {} bytes each", size_of::<T>());
            let view = buffer.view(start..end).expect(name);
            {
                let (part, whole) = (view.map_memory().expect(&what), buffer.map_memory().expect(&what));
                assert_eq!(part[..], want[start..end], "{what}");
                assert_eq!(whole[..], want[..], "{what}");
            }
            let mut view = buffer.view_mut(start..end).expect(name);
            // The fill is enqueued before the mapping, and the mapping shows it.
            view.fill(patch[0]).expect(&what);
            {
                let mut map = view.map_memory_mut().expect(&what);
                assert!(map.len() == end - start && map.iter().all(|x| *x == patch[0]), "{what}");
                map.copy_from_slice(&patch[start..end]);
            }
            assert_eq!(view.as_view().map_memory().expect(&what)[..], patch[start..end], "{what}");
            want[start..end].copy_from_slice(&patch[start..end]);
            let mut copy = device.zeroed::<T>(n).expect(name);
            device.copy(&buffer, &mut copy).expect(&what);
            assert_eq!(copy.to_vec().expect(&what), want, "{what}");
        }
    }
    for (name, device) in devices() {
        check::<u8>(&device, &name);
        check::<[u8; 3]>(&device, &name);
        check::<u32>(&device, &name);
        check::<Triple>(&device, &name);
        check::<u128>(&device, &name);
    }
}

#[test]
fn empty_buffers_are_valid() {
    for (name, device) in devices() {
        let mut empty: Buffer<f64> = device.upload(&[]).expect(&name);
        assert!(empty.is_empty());
        assert!(empty.to_vec().expect(&name).is_empty());
        empty.write(&[]).expect(&name);
        empty.fill(1.0).expect(&name);
        assert!(empty.map_memory().expect(&name).is_empty());
        assert!(empty.map_memory_mut().expect(&name).is_empty());
        assert!(empty.view(..).expect(&name).is_empty());
        empty.view_mut(0..0).expect(&name).fill(2.0).expect(&name);
        assert_eq!(device.reduce(&[0u8; 0], Sum).expect(&name), 0);
        assert_eq!(device.reduce(device.zeroed::<i64>(0).expect(&name).view(..).expect(&name), Sum).expect(&name), 0);
        assert_eq!(kind_of(device.arg_max(&[0u8; 0])), ErrorKind::Empty, "{name}");
        device.reserve(&[]).expect(&name);
        device.reserve(&[0]).expect(&name);
        device.finish().expect(&name);

        // Zero-sized elements still have a length.
        let mut units = device.upload(&[(); 5]).expect(&name);
        units.fill(()).expect(&name);
        assert_eq!((units.to_vec().expect(&name).len(), units.map_memory().expect(&name).len()), (5, 5));
    }
}

#[test]
fn invalid_lengths_and_ranges_are_errors_with_their_numbers() {
    for (name, device) in devices() {
        let mut buffer = device.upload(&[1u16, 2, 3]).expect(&name);
        #[allow(clippy::reversed_empty_ranges, reason = "that is the point")]
        let ranges = [0..4, 4..4, 2..1, usize::MAX..usize::MAX, 0..usize::MAX];
        for range in ranges {
            assert_eq!(kind_of(buffer.view(range.clone())), ErrorKind::InvalidInput, "{name}: {range:?}");
            assert_eq!(kind_of(buffer.view_mut(range.clone())), ErrorKind::InvalidInput, "{name}: {range:?}");
        }
        assert_eq!(kind_of(buffer.view(..=usize::MAX)), ErrorKind::InvalidInput);
        assert_eq!(kind_of(buffer.view(..=3)), ErrorKind::InvalidInput);
        assert_eq!(buffer.view(..=2).expect(&name).len(), 3);
        let text = buffer.view(1..9).expect_err("out of range").to_string();
        assert_eq!(text, "range 1..9 is not within a buffer of 3 elements");
        let text = buffer.view_mut(2000..).expect_err("out of range").to_string();
        assert_eq!(text, "range 2000.. is not within a buffer of 3 elements");

        let text = buffer.write(&[0; 4]).expect_err("too long").to_string();
        assert_eq!(text, "writing 4 elements into 3: the lengths must be equal");
        assert_eq!(kind_of(buffer.write(&[0; 2])), ErrorKind::InvalidInput);
        let text = View::from(&buffer).read(&mut [0; 5]).expect_err("too long").to_string();
        assert_eq!(text, "reading 3 elements into a slice of 5");
        assert_eq!(buffer.to_vec().expect(&name), [1, 2, 3], "{name}: a refused write changed something");
        let mut two = [0u16; 2];
        let error = device.reduce_into(&buffer, Sum, &mut two);
        assert_eq!(kind_of(error), ErrorKind::InvalidInput);
    }
}

#[test]
fn allocations_beyond_the_device_are_errors_with_both_numbers() {
    for (name, device) in devices() {
        for _ in 0..3 {
            for len in [usize::MAX, usize::MAX / 8, 1 << 61, (1 << 61) + 16] {
                assert_eq!(kind_of(device.zeroed::<u64>(len)), ErrorKind::InvalidInput, "{name}: {len}");
            }
        }
        if !device.is_cpu() {
            let limit = device.info().max_allocation_bytes;
            let error = device.zeroed::<u8>(limit as usize + 1).expect_err("beyond the limit");
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            let text = error.to_string();
            assert!(text.contains(&(limit + 1).to_string()) && text.contains(&format!("allows {limit} ")), "{text}");
            assert_eq!(kind_of(device.reserve(&[limit as usize + 1])), ErrorKind::OutOfMemory);
        }
        // This size is beyond the memory of any machine.
        assert_eq!(kind_of(device.zeroed::<u8>(1 << 60)), ErrorKind::OutOfMemory, "{name}");
        assert_eq!(device.reduce(&[1u32, 2], Sum).expect(&name), 3);
    }
}

/// Resident bytes of this process.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    4096 * pages
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_leak() {
    const NAME: &str = "memory_does_not_leak";
    if common::part().is_none() {
        // In a process of its own, no other test allocates.
        common::run(&mut common::child(NAME, "alone"));
        return;
    }
    for (name, device) in devices() {
        if !common::runs_kernels_at_once(&device) {
            common::skip(NAME, "oclgrind's own bookkeeping grows");
            continue;
        }
        let data = vec![1u32; 50_000];
        let turn = || {
            // `most` is more than the device allows, or more than any address space has.
            let limit = device.info().max_allocation_bytes as usize;
            let most = if device.is_cpu() { 1 << 60 } else { limit.saturating_add(1).min(isize::MAX as usize) };
            let mut buffer = device.upload(&data).expect(&name);
            // The device must refuse these results and this scratch.
            let one = buffer.view(..1).and_then(|one| one.nd(&[1])?.broadcast_to(&[most]));
            for refused in [
                device.zeroed::<u8>(most).map(drop),
                device.iota(most, 1u8, 1).map(drop),
                device.transform(one.expect(&name)).map(drop),
            ] {
                assert_eq!(kind_of(refused), ErrorKind::OutOfMemory, "{name}");
            }
            if !device.is_cpu() {
                assert_eq!(kind_of(device.reserve(&[most])), ErrorKind::OutOfMemory, "{name}");
            }
            buffer.map_memory_mut().expect(&name)[0] = 2;
            let clone = device.with_tuning(Default::default()).expect(&name);
            assert_eq!(clone.reduce(&buffer, Sum).expect(&name), 50_001);
        };
        (0..50).for_each(|_| turn());
        let before = resident();
        (0..400).for_each(|_| turn());
        let grown = resident().saturating_sub(before);
        // Leaking the buffers would take 80 MB, leaking the kernels some hundred KB.
        assert!(grown < 16 << 20, "{name}: {grown} bytes more after 400 rounds");
    }
    common::answer("no leak");
}

/// The best device is a working GPU, else the CPU backend. It is never a CPU driver, such as those of `pocl` and `intel`.
#[test]
fn the_best_device_is_a_gpu_or_the_cpu_backend() {
    const NAME: &str = "the_best_device_is_a_gpu_or_the_cpu_backend";
    if common::part().is_some() {
        let device = Device::best().expect("the CPU is always there");
        return common::answer(format!("{} {}", device.is_cpu(), device.info()));
    }
    let works = |index| Device::at(index).is_ok_and(|device| device.capabilities().is_ok());
    let infos = Device::list();
    let is_gpu = |(index, info): &(usize, &oclprim::DeviceInfo)| info.ty == DeviceType::Gpu && works(*index);
    let gpus: Vec<_> = infos.iter().enumerate().filter(is_gpu).map(|(_, info)| info.to_string()).collect();
    let (best, _) = common::run(common::child(NAME, "best").env_remove("OCLPRIM_DEVICE"));
    match best.split_once(' ') {
        Some(("true", _)) => assert!(gpus.is_empty(), "the CPU instead of {gpus:?}"),
        Some((_, name)) => assert!(gpus.iter().any(|gpu| gpu == name), "{name} instead of {gpus:?}, of {infos:?}"),
        None => panic!("{best}"),
    }
}

#[test]
fn buffers_of_another_device_are_refused() {
    let devices = devices();
    for (a_name, a) in &devices {
        let buffer = a.upload(&[1u8, 2, 3]).expect(a_name);
        for (b_name, b) in devices.iter().filter(|(b_name, _)| b_name != a_name) {
            let error = b.reduce(&buffer, Sum).expect_err("another device's buffer");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{a_name} on {b_name}");
            assert_eq!(error.to_string(), format!("a buffer of {a_name} cannot be used on {b_name}"));
            let mut out = a.zeroed::<u8>(1).expect(a_name);
            let fixed = oclprim::Determinism::Fixed;
            assert_eq!(kind_of(b.reduce_into(&[1u8, 2], Sum.with(fixed), &mut out)), ErrorKind::InvalidInput);
        }
    }
}

/// Each handle has a queue of its own, and sees what the other handle has enqueued.
#[test]
fn two_handles_of_one_device_share_its_buffers_in_order() {
    for index in 0..Device::list().len() {
        let (a, b) = (Device::at(index).expect("listed"), Device::at(index).expect("listed"));
        let profiled = a.profiled().expect("a queue with times");
        let name = a.info().to_string();
        let n = 300_000;
        let mut total = a.zeroed::<u64>(1).expect(&name);
        for round in 1..20u64 {
            let mut buffer = a.zeroed::<u64>(n).expect(&name);
            buffer.fill(round).expect(&name);
            assert_eq!(b.reduce(&buffer, Sum).expect(&name), round * n as u64, "{name}");
            b.reduce_into(&buffer, Sum, &mut total).expect(&name);
            buffer.fill(0).expect(&name);
            assert_eq!(total.to_vec().expect(&name), [round * n as u64], "{name}");
            assert_eq!(profiled.reduce(&buffer, Sum).expect(&name), 0, "{name}");
        }
    }
}

#[test]
fn threads_share_a_device() {
    for (name, device) in devices() {
        if !common::runs_kernels_at_once(&device) {
            common::skip("threads_share_a_device", "oclgrind runs one kernel at a time");
            continue;
        }
        let data: Vec<f32> = Rng::new(7).into_floats(70_001);
        let want = Device::cpu().reduce(&data, Sum).expect(&name).to_bits();
        let shared = device.upload(&data).expect(&name);
        let work = Work::new(&device, 9);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (device, data, shared, name, work) = (device.clone(), &data, &shared, &name, &work);
                scope.spawn(move || {
                    for round in 0..50 {
                        if (thread + round) % 2 == 0 {
                            work.check(&device, &format!("{name}: thread {thread}, round {round}"));
                            continue;
                        }
                        let got = match (thread + round) % 3 {
                            0 => device.reduce(data, Sum),
                            1 => device.reduce(shared, Sum),
                            _ => device.reduce(&device.upload(data).expect(name), Sum),
                        };
                        assert_eq!(got.expect(name).to_bits(), want, "{name}: thread {thread}, round {round}");
                    }
                });
            }
        });
    }
}

/// Floats between -1 and 1, whose sum depends on the order of additions.
trait IntoFloats {
    fn into_floats(self, n: usize) -> Vec<f32>;
}

impl IntoFloats for Rng {
    fn into_floats(mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }
}

/// A histogram, whose work-groups and work-items share counters, and a transposition, whose work-items wait at barriers.
struct Work {
    ids: Buffer<i32>,
    bins: Bins<i32>,
    histogram: Histogram,
    matrix: Buffer<u32>,
    turned: Vec<u32>,
}

impl Work {
    const SHAPE: (usize, usize) = (129, 255);

    fn new(device: &Device, seed: u64) -> Self {
        let (rows, cols) = Self::SHAPE;
        let mut rng = Rng::new(seed);
        // Half of the samples are in one bin, and some are outside.
        let ids: Vec<i32> = (0..20_011).map(|i| if i % 2 == 0 { 77 } else { rng.below(310) as i32 - 5 }).collect();
        let (bins, matrix) = (Bins::ids(300).expect("few"), random(rows * cols, seed));
        let host = Device::cpu();
        Self {
            histogram: host.histogram(&ids, &bins).expect("the CPU counts"),
            ids: device.upload(&ids).expect("memory"),
            bins,
            turned: host
                .transpose(&matrix, (rows, cols))
                .and_then(|turned| turned.to_vec())
                .expect("the CPU transposes"),
            matrix: device.upload(&matrix).expect("memory"),
        }
    }

    fn check(&self, device: &Device, what: &str) {
        assert_eq!(device.histogram(&self.ids, &self.bins).expect(what), self.histogram, "{what}");
        let (rows, cols) = Self::SHAPE;
        let turned = device.transpose(&self.matrix, (rows, cols)).expect(what);
        assert_eq!(turned.to_vec().expect(what), self.turned, "{what}");
    }
}

#[test]
fn runs_repeat_bit_for_bit() {
    for (name, device) in devices() {
        let rounds = if common::runs_kernels_at_once(&device) { 100 } else { 3 };
        let data: Vec<f32> = Rng::new(8).into_floats(40_009);
        let want = Device::cpu().reduce(&data, Sum).expect(&name).to_bits();
        let buffer = device.upload(&data).expect(&name);
        let work = Work::new(&device, 10);
        for round in 0..rounds {
            assert_eq!(device.reduce(&buffer, Sum).expect(&name).to_bits(), want, "{name}: round {round}");
            work.check(&device, &format!("{name}: round {round}"));
        }
    }
}

#[test]
fn profiled_devices_time_their_commands() {
    for (name, device) in devices() {
        assert!(device.take_timings().expect(&name).is_empty());
        let profiled = device.profiled().expect(&name);
        let mut buffer = profiled.upload(&vec![1u32; 100_000]).expect(&name);
        assert!(profiled.take_timings().expect(&name).is_empty(), "{name}: transfers by the host are not timed");
        buffer.fill(2).expect(&name);
        assert_eq!(profiled.reduce(&buffer, Sum).expect(&name), 200_000);
        let timings = profiled.take_timings().expect(&name);
        assert_eq!(timings.is_empty(), device.is_cpu(), "{name}: {timings:?}");
        assert!(timings.iter().all(|timing| timing.start <= timing.end), "{name}: {timings:?}");
        assert!(profiled.take_timings().expect(&name).is_empty(), "{name}: times are given once");
        if !device.is_cpu() {
            assert_eq!(timings[0].name, "clEnqueueFillBuffer");
            assert!(timings.iter().any(|timing| timing.name.starts_with("reduce")), "{name}: {timings:?}");
        }
    }
}

/// On every device, the emulation of sub-groups in local memory passes the self-test. Other back ends are tested against it.
#[test]
fn every_device_has_sub_groups_in_local_memory() {
    for (name, device) in common::opencl_devices_or_skip("sub-groups in local memory") {
        let caps = device.capabilities().expect(&name).expect("OpenCL devices have them");
        let local = caps.sub_groups.iter().any(|group| group.backend == SubGroupBackend::Local);
        assert!(local, "{name}: {:?}, {:?}", caps.refused, caps.notes);
    }
}

#[test]
fn each_device_has_scratch_of_its_own() {
    for _ in 0..3 {
        for (name, device) in devices() {
            let n = 100_000;
            assert!(device.scratch_sizes().is_empty(), "{name}");
            device.reserve(&[n]).expect(&name);
            let mut out = [0f32];
            let data = vec![0.25f32; n];
            let fixed = oclprim::Determinism::Fixed;
            device.reduce_into(&data, Sum.with(fixed), &mut out).expect(&name);
            assert_eq!(out, [25_000.0], "{name}");
        }
    }
}

/// One step in the life of a buffer; offsets and lengths are reduced modulo the valid range.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, u8),
    Fill(usize, usize, u8),
    Map(usize, usize, u8),
    Move(usize, usize, usize),
    Copy(usize, usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0..10_000usize;
    let step = prop_oneof![
        (at.clone(), at.clone(), any::<u8>()).prop_map(|(a, b, x)| Step::Write(a, b, x)),
        (at.clone(), at.clone(), any::<u8>()).prop_map(|(a, b, x)| Step::Fill(a, b, x)),
        (at.clone(), at.clone(), any::<u8>()).prop_map(|(a, b, x)| Step::Map(a, b, x)),
        (at.clone(), at.clone(), at.clone()).prop_map(|(a, b, c)| Step::Move(a, b, c)),
        (at.clone(), at.clone(), at).prop_map(|(a, b, c)| Step::Copy(a, b, c)),
    ];
    proptest::collection::vec(step, 1..20)
}

/// Asserts that a buffer holds the same elements as a `Vec` after the same steps.
fn live<T: Pod + Debug + PartialEq>(device: &Device, n: usize, steps: &[Step], of: impl Fn(u8) -> T) -> Result<()> {
    let mut want: Vec<T> = (0..n).map(|i| of(i as u8)).collect();
    let mut buffer = device.upload(&want)?;
    for step in steps {
        let range = |a: usize, b: usize| (a % (n + 1)).min(b % (n + 1))..(a % (n + 1)).max(b % (n + 1));
        match *step {
            Step::Write(a, b, x) => {
                let range = range(a, b);
                let data: Vec<T> = range.clone().map(|i| of(x.wrapping_add(i as u8))).collect();
                buffer.view_mut(range.clone())?.write(&data)?;
                want[range].copy_from_slice(&data);
            }
            Step::Fill(a, b, x) => {
                buffer.view_mut(range(a, b))?.fill(of(x))?;
                want[range(a, b)].fill(of(x));
            }
            Step::Map(a, b, x) => {
                buffer.view_mut(range(a, b))?.map_memory_mut()?.fill(of(x));
                want[range(a, b)].fill(of(x));
            }
            Step::Move(a, b, to) => {
                let range = range(a, b);
                let to = to % (n - range.len() + 1);
                buffer.copy_within(range.clone(), to)?;
                want.copy_within(range, to);
            }
            Step::Copy(a, b, to) => {
                let range = range(a, b);
                let to = to % (n - range.len() + 1);
                let mut other = device.upload(&want)?;
                device.copy(buffer.view(range.clone())?, other.view_mut(to..to + range.len())?)?;
                want.copy_within(range, to);
                buffer = other;
            }
        }
    }
    assert_eq!(buffer.to_vec()?, want, "{device:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buffers_hold_what_a_vec_would(n in 0..700usize, steps in steps()) {
        for (name, device) in devices() {
            live(&device, n, &steps, |x| x).expect(&name);
            live(&device, n, &steps, |x| [x, 1, x]).expect(&name);
            live(&device, n, &steps, u32::from).expect(&name);
            live(&device, n, &steps, |x| [u64::from(x), 3]).expect(&name);
        }
    }
}

// --- the cache on disk ----------------------------------------------------------------------------------------------

const CACHE: &str = "the_cache_survives_damaged_entries_and_folders";

/// A child process that opens every OpenCL device, probes it and reduces on it.
fn user_of(folder: &Path) -> Command {
    let mut child = common::child(CACHE, "user");
    child.env("OCLPRIM_CACHE_DIR", folder).env_remove("OCLPRIM_DEVICE");
    child
}

fn entries(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.expect("readable").path()).collect())
        .unwrap_or_default();
    entries.sort();
    entries.into_iter().map(|path| (path.clone(), fs::read(path).expect("readable"))).collect()
}

#[test]
fn the_cache_survives_damaged_entries_and_folders() {
    if common::part().is_some() {
        let mut sums = String::new();
        for (name, device) in common::opencl_devices() {
            let caps = device.capabilities().expect(&name).expect("OpenCL devices have them");
            let total = device.reduce(&[1u32; 5000], Sum).expect(&name);
            sums += &format!("{total} {} {:?}; ", caps.c_standard, caps.sub_group.backend);
        }
        return common::answer(sums);
    }
    if common::opencl_devices().is_empty() {
        return common::skip(CACHE, "no OpenCL device");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path().join("not yet/there");

    // Several processes fill the cache at once.
    let children: Vec<_> = (0..4).map(|_| user_of(&folder).spawn().expect("a child starts")).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().expect("a child ends"));
    let sums: Vec<_> = outputs.map(|output| common::value_of(&output)).collect();
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    let good = entries(&folder);
    assert!(!good.is_empty(), "no entry in {folder:?}");

    // Every damaged entry is rebuilt, and the result stays right.
    type Harm = fn(&[u8]) -> Vec<u8>;
    let harms: [Harm; 5] = [
        |bytes| bytes[..bytes.len() * 2 / 3].to_vec(),
        |bytes| [&bytes[..bytes.len() - 1], &[bytes[bytes.len() - 1] ^ 4]].concat(),
        |_| Vec::new(),
        |_| b"oclprim cache 1\nnot what it was".to_vec(),
        |bytes| [bytes, b"more"].concat(),
    ];
    let harmed: Vec<_> = good.iter().zip(harms.iter().cycle()).map(|((_, bytes), harm)| harm(bytes)).collect();
    for ((path, _), bytes) in good.iter().zip(&harmed) {
        fs::write(path, bytes).expect("writable");
    }
    let (sum, _) = common::run(&mut user_of(&folder));
    assert_eq!(sum, sums[0], "with every entry damaged");
    let now = entries(&folder);
    assert_eq!(now.len(), good.len());
    for ((path, now), harmed) in now.iter().zip(&harmed) {
        assert_ne!(now, harmed, "{path:?} is not rebuilt");
    }

    // Each path has the whole binary of another program. It loads, but lacks the requested kernels.
    let programs: Vec<_> =
        now.iter().filter(|(path, _)| path.to_string_lossy().contains("program-")).map(|(path, _)| path).collect();
    for (path, other) in programs.iter().zip(programs.iter().cycle().skip(1)) {
        let (_, bytes) = good.iter().find(|(path, _)| path == *other).expect("the same files");
        fs::write(path, bytes).expect("writable");
    }
    let (sum, _) = common::run(&mut user_of(&folder));
    assert_eq!(sum, sums[0], "with binaries of other programs");

    // A file is at the path of the folder. The crate caches no program, and the results are right.
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let (sum, _) = common::run(&mut user_of(file.path()));
    assert_eq!(sum, sums[0]);
    assert_eq!(fs::metadata(file.path()).expect("still there").len(), 0);

    // The cache is switched off.
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut off = user_of(Path::new(""));
    let (sum, _) = common::run(off.env("HOME", home.path()).env("XDG_CACHE_HOME", home.path()));
    assert_eq!(sum, sums[0]);
    assert!(!home.path().join("oclprim").exists(), "a cache that is off was written");
}

/// The calls of a preparation run on a queue of their own, beside calls of the application; errors and results come back.
#[test]
fn a_preparation_runs_its_calls_and_returns_their_error() {
    for (name, device) in devices() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let preparation = device
            .prepare(move |beside| {
                sender.send(beside.reduce(&[1u32, 2, 3], Sum)?).unwrap();
                beside.sort(&[3u32, 1, 2], Order::ascending()).map(drop)
            })
            .unwrap();
        assert_eq!(device.reduce(&[4u32, 5], Sum).unwrap(), 9, "{name}");
        preparation.wait().unwrap();
        // The CPU has no kernels to build, so the calls do not run.
        assert_eq!(receiver.try_recv().ok(), (!device.is_cpu()).then_some(6), "{name}");
        let preparation =
            device.prepare(|beside| beside.transpose(&beside.zeroed::<u32>(5)?, (2, 3)).map(drop)).unwrap();
        assert_eq!(preparation.wait().is_err(), !device.is_cpu(), "{name}");
        // A dropped preparation has ended.
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let calls = move |_: &Device| {
            drop(sender);
            Ok(())
        };
        drop(device.prepare(calls).unwrap());
        assert_eq!(receiver.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected), "{name}");
    }
}
