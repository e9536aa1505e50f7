//! Slices that move to a device and back through pinned memory, on every OpenCL device of this machine.
#![cfg(feature = "opencl")]

mod common;

use std::{
    panic::{self, AssertUnwindSafe},
    thread,
    time::{Duration, Instant},
};

use oclprim::{
    Accumulate, Bins, Device, ErrorKind, Order, Source, Tuning,
    internals::data::Data,
    interop::{self, ocl},
    op::{Map, Max, NonZero, Sum, Unordered, Usage},
    tuning::{Primitive, TransferFault},
};

/// Bytes of a chunk: the smallest that there is.
const CHUNK: usize = 1 << 16;

/// Stages transfers of 64 KiB and more, also on devices that share the host's memory.
fn staged(chunks: usize, threads: usize, fault: Option<TransferFault>) -> Tuning {
    let set = [
        ("chunk_bytes", CHUNK),
        ("chunks", chunks),
        ("threads", threads),
        ("min_bytes", CHUNK),
        ("min_read_bytes", CHUNK),
    ];
    set.into_iter().fold(common::gpu().staged(fault), |all, (name, value)| all.set(Primitive::Transfer, name, value))
}

/// Every OpenCL device with these transfers.
fn devices(test: &str, tuning: &Tuning) -> Vec<(String, Device)> {
    let devices = common::opencl_devices_or_skip(test).into_iter();
    devices.map(|(name, device)| (name, device.with_tuning(tuning.clone()).unwrap())).collect()
}

fn bytes(n: usize, seed: u64) -> Vec<u8> {
    common::random(n, seed)
}

#[test]
fn slices_of_every_length_and_address_arrive() {
    let all = bytes(11 * CHUNK + 99, 1);
    for (chunks, threads) in if common::tiny() { vec![(2, 2)] } else { vec![(2, 1), (2, 4), (3, 2), (8, 8)] } {
        for (name, device) in devices("slices_of_every_length_and_address_arrive", &staged(chunks, threads, None)) {
            let wholes = [1, 2, 3, 4, 5, 8, 9, 11];
            let lens = wholes.into_iter().flat_map(|whole| [whole * CHUNK - 1, whole * CHUNK, whole * CHUNK + 1]);
            for (i, len) in lens.enumerate() {
                let (start, offset) = ([0, 1, 3, 64, 65][i % 5], [0, 1, 7][i % 3]);
                let from = &all[start..start + len];
                let what = format!("{name}, {chunks} chunks, {threads} threads: {len} bytes at {start} to {offset}");
                assert!(device.upload(from).unwrap().to_vec().unwrap() == from, "{what}: upload");
                let mut x = device.filled(len + offset + 1, 0xA5u8).unwrap();
                x.view_mut(offset..offset + len).unwrap().write(from).unwrap();
                let mut got = vec![0x5A; start + len + 1];
                x.view(offset..offset + len).unwrap().read(&mut got[start..start + len]).unwrap();
                assert!(got[start..start + len] == *from, "{what}: write and read");
                assert!(got[..start].iter().all(|&x| x == 0x5A) && got[start + len] == 0x5A, "{what}: around it");
                let whole = x.to_vec().unwrap();
                assert!(whole[..offset].iter().all(|&x| x == 0xA5) && whole[offset + len] == 0xA5, "{what}: around it");
            }
        }
    }
}

/// If a download of 4 MiB or more goes to a new vector, its chunks end at the ends of large pages. Other tests have shorter
/// chunks.
#[test]
fn new_vectors_of_large_pages_arrive() {
    const NAME: &str = "new_vectors_of_large_pages_arrive";
    const MIB: usize = 1 << 20;
    let n = if common::tiny() { 4 * MIB + 1 } else { 13 * MIB + 77 };
    let all = bytes(n, 16);
    for (chunk, chunks, threads) in [(4 * MIB, 2, 1), (4 * MIB, 2, 4), (16 * MIB, 4, 2)] {
        let large = |fault| staged(chunks, threads, fault).set(Primitive::Transfer, "chunk_bytes", chunk);
        for (name, device) in devices(NAME, &large(None)) {
            let x = device.upload(&all).unwrap();
            for (start, end) in [(0, n), (1, 4 * MIB + 1), (n - 4 * MIB, n), (3, n - 2)] {
                let got = x.view(start..end).unwrap().to_vec().unwrap();
                assert!(got == all[start..end], "{name}, {chunks} chunks, {threads} threads: {start}..{end}");
            }
        }
        for (name, device) in devices(NAME, &large(Some(TransferFault::Panic))) {
            let x = device.filled(n, 1u8).unwrap();
            assert!(panic::catch_unwind(AssertUnwindSafe(|| x.to_vec())).is_err(), "{name}: no panic");
        }
        // The fault comes before the second chunk. A chunk has 4 MiB at most, so there are at least two.
        for (name, device) in devices(NAME, &large(Some(TransferFault::Lost))) {
            let x = device.filled(n, 1u8).unwrap();
            assert!(x.to_vec().is_err(), "{name}: a lost device is no error");
        }
    }
}

#[test]
fn slices_are_inputs_and_outputs_of_primitives() {
    let n = 3 * CHUNK + 5;
    let x: Vec<u32> = common::random(n, 2);
    let sum = Device::cpu().reduce(&x[1..], Sum).unwrap();
    for (name, device) in devices("slices_are_inputs_and_outputs_of_primitives", &staged(2, 2, None)) {
        assert_eq!(device.reduce(&x[1..], Sum).unwrap(), sum, "{name}");
        let mut out = vec![0; n - 1];
        device.copy(&x[1..], &mut out).unwrap();
        assert!(out == x[1..], "{name}");
        // A read sees the commands before it, and commands see the write before them.
        let mut y = device.upload(&x).unwrap();
        for seed in 3..6 {
            y.fill(seed as u32).unwrap();
            assert!(y.to_vec().unwrap().iter().all(|&y| y == seed as u32), "{name}");
            let z: Vec<u32> = common::random(n, seed);
            y.write(&z).unwrap();
            assert_eq!(device.reduce(&y, Sum).unwrap(), Device::cpu().reduce(&z, Sum).unwrap(), "{name}");
        }
    }
}

#[test]
fn without_pinned_memory_the_driver_transfers_in_its_own_way() {
    let x = bytes(5 * CHUNK + 1, 7);
    for fault in [TransferFault::NoPinnedMemory, TransferFault::NoMapping] {
        let test = "without_pinned_memory_the_driver_transfers_in_its_own_way";
        for (name, device) in devices(test, &staged(2, 2, Some(fault))) {
            for _ in 0..4 {
                assert!(device.upload(&x).unwrap().to_vec().unwrap() == x, "{name}: {fault:?}");
            }
        }
    }
}

#[test]
fn a_device_lost_during_a_transfer_is_an_error() {
    let x = bytes(5 * CHUNK + 1, 8);
    for (name, device) in common::opencl_devices_or_skip("a_device_lost_during_a_transfer_is_an_error") {
        let lost = device.with_tuning(staged(2, 2, Some(TransferFault::Lost))).unwrap();
        let whole = device.with_tuning(staged(2, 2, None)).unwrap();
        let there = whole.upload(&x).unwrap();
        for _ in 0..4 {
            assert_eq!(lost.upload(&x).unwrap_err().kind(), ErrorKind::NoDevice, "{name}");
            let mut short = vec![0; x.len()];
            assert_eq!(lost.copy(&there, &mut short).unwrap_err().kind(), ErrorKind::NoDevice, "{name}");
        }
        assert!(whole.upload(&x).unwrap().to_vec().unwrap() == x, "{name}: the next transfer");
    }
}

#[test]
fn a_panic_in_a_copying_thread_reaches_the_caller() {
    let x = bytes(5 * CHUNK + 1, 9);
    for (name, device) in common::opencl_devices_or_skip("a_panic_in_a_copying_thread_reaches_the_caller") {
        let panics = device.with_tuning(staged(2, 2, Some(TransferFault::Panic))).unwrap();
        let whole = device.with_tuning(staged(2, 2, None)).unwrap();
        let there = whole.upload(&x).unwrap();
        for _ in 0..4 {
            assert!(panic::catch_unwind(AssertUnwindSafe(|| panics.upload(&x))).is_err(), "{name}");
            let mut out = vec![0; x.len()];
            assert!(panic::catch_unwind(AssertUnwindSafe(|| panics.copy(&there, &mut out))).is_err(), "{name}");
        }
        assert!(whole.upload(&x).unwrap().to_vec().unwrap() == x, "{name}: the next transfer");
    }
}

/// More threads than there are rings: some transfers are the driver's own.
#[test]
fn threads_transfer_at_once() {
    for (name, device) in devices("threads_transfer_at_once", &staged(2, 2, None)) {
        thread::scope(|scope| {
            for seed in 0..6 {
                let (device, name) = (device.clone(), &name);
                scope.spawn(move || {
                    let x = bytes(4 * CHUNK + seed as usize, seed);
                    for _ in 0..5 {
                        assert!(device.upload(&x).unwrap().to_vec().unwrap() == x, "{name}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_device_may_be_dropped_during_a_transfer() {
    let x = bytes(9 * CHUNK + 1, 10);
    for (name, device) in devices("a_device_may_be_dropped_during_a_transfer", &staged(2, 2, None)) {
        let (context, id) = (interop::context(&device).unwrap(), interop::ocl_device(&device).unwrap());
        for _ in 0..5 {
            let queue = ocl::Queue::new(&context, id, None).unwrap();
            let own = interop::device(id, &context, &queue).unwrap().with_tuning(staged(2, 2, None)).unwrap();
            drop(queue);
            thread::scope(|scope| {
                let (other, x, name) = (own.clone(), &x, &name);
                scope.spawn(move || {
                    let there = other.upload(x).unwrap();
                    drop(other);
                    assert!(there.to_vec().unwrap() == *x, "{name}");
                });
                drop(own);
            });
        }
    }
}

#[test]
fn transfers_on_an_out_of_order_queue_are_in_order() {
    let x = bytes(5 * CHUNK + 1, 11);
    for (name, device) in devices("transfers_on_an_out_of_order_queue_are_in_order", &staged(2, 2, None)) {
        let (context, id) = (interop::context(&device).unwrap(), interop::ocl_device(&device).unwrap());
        let unordered = Some(ocl::CommandQueueProperties::OUT_OF_ORDER_EXEC_MODE_ENABLE);
        let Ok(queue) = ocl::Queue::new(&context, id, unordered) else {
            common::skip(&name, "no out-of-order queues");
            continue;
        };
        let own = interop::device(id, &context, &queue).unwrap().with_tuning(staged(2, 2, None)).unwrap();
        let mut y = own.zeroed::<u8>(x.len()).unwrap();
        for byte in 1..9 {
            y.fill(byte).unwrap();
            assert!(y.to_vec().unwrap().iter().all(|&y| y == byte), "{name}");
            y.write(&x).unwrap();
            assert!(y.to_vec().unwrap() == x, "{name}");
        }
    }
}

/// Drivers for CPUs read large slices in place, from any address. A call ends before its slice can change.
#[test]
fn slices_may_change_after_the_call() {
    const N: usize = 1 << 18;
    for (name, device) in common::opencl_devices_or_skip("slices_may_change_after_the_call") {
        let all: Vec<u32> = common::random(N + 40, 14);
        for start in [0, 1, 2, 3, 4, 5, 31, 32] {
            let want = Device::cpu().scan(&all[start..start + N], Sum).unwrap().to_vec().unwrap();
            let mut x = all.clone();
            let sums = device.scan(&x[start..start + N], Sum).unwrap();
            x.fill(7);
            assert!(sums.to_vec().unwrap() == want, "{name}: from {start}");
            x.copy_from_slice(&all);
            let sums = device.scan(&x[start..start + N].to_vec(), Sum).unwrap();
            assert!(sums.to_vec().unwrap() == want, "{name}: from {start}, freed");
        }
        // Elements whose size does not divide the offset are copied.
        let bytes: Vec<[u8; 3]> = bytemuck::pod_collect_to_vec(&common::random::<u8>(3 * N, 15));
        for start in 0..4 {
            let mut copied = device.zeroed(bytes[start..].len()).unwrap();
            device.copy(bytes[start..].reversed(), &mut copied).unwrap();
            let copied = copied.to_vec().unwrap();
            assert!(copied.iter().rev().eq(&bytes[start..]), "{name}: from {start}");
        }
    }
}

/// Devices with pinned vectors. First, each device has pinned memory. Then each is as it is: devices that share the host's
/// memory have plain memory instead.
fn pinned_and_plain(test: &str) -> Vec<(String, Device)> {
    let mut all = vec![("the CPU backend".into(), Device::cpu())];
    all.extend(devices(test, &staged(2, 2, None)));
    all.extend(common::opencl_devices_or_skip(test).into_iter().map(|(name, device)| (name + " as it is", device)));
    all
}

#[test]
fn pinned_memory_is_a_slice_to_the_host_and_to_devices() {
    for (name, device) in pinned_and_plain("pinned_memory_is_a_slice_to_the_host_and_to_devices") {
        for n in [0, 1, 1000, 5 * CHUNK + 3] {
            let mut x = device.pinned::<u32>(n).unwrap();
            assert!(x.len() == n && x.iter().all(|&x| x == 0), "{name}");
            let want: Vec<u32> = common::random(n, 12);
            x.copy_from_slice(&want);
            assert_eq!(device.reduce(&x, Sum).unwrap(), Device::cpu().reduce(&want, Sum).unwrap(), "{name}");
            let mut y = device.pinned::<u32>(n).unwrap();
            device.copy(&x, &mut y).unwrap();
            assert!(y[..] == want, "{name}: {n} elements");
            let there = device.upload(&x).unwrap();
            x.fill(0);
            there.view(..).unwrap().read(&mut x).unwrap();
            assert!(x[..] == want, "{name}: {n} elements");
            // A part of it, too, is pinned.
            if n > 3 {
                there.view(1..n - 1).unwrap().read(&mut y[2..n]).unwrap();
                assert!(y[2..n] == want[1..n - 1] && y[..2] == want[..2], "{name}: {n} elements");
            }
        }
    }
    for (name, device) in devices("pinned_memory_is_a_slice_to_the_host_and_to_devices", &staged(2, 2, None)) {
        assert!(device.pinned::<u8>(5).unwrap().is_pinned() || !common::runs_kernels_at_once(&device), "{name}");
    }
}

#[test]
fn missing_pinned_memory_is_an_error_to_a_user() {
    for (fault, kind) in
        [(TransferFault::NoPinnedMemory, ErrorKind::OutOfMemory), (TransferFault::NoMapping, ErrorKind::Driver)]
    {
        let test = "missing_pinned_memory_is_an_error_to_a_user";
        for (name, device) in devices(test, &staged(2, 2, Some(fault))) {
            if common::runs_kernels_at_once(&device) {
                assert_eq!(device.pinned::<u8>(5).unwrap_err().kind(), kind, "{name}");
            }
        }
    }
}

#[test]
fn uploads_and_downloads_run_beside_commands() {
    for (name, device) in pinned_and_plain("uploads_and_downloads_run_beside_commands") {
        for n in [0, 1, 1000, 5 * CHUNK + 3] {
            let want: Vec<u32> = common::random(n, 13);
            let mut host = device.pinned(n).unwrap();
            host.copy_from_slice(&want);
            let sums = Device::cpu().scan(&want, Sum).unwrap().to_vec().unwrap();
            let mut out = device.pinned(n).unwrap();
            for _ in 0..3 {
                let (x, upload) = device.upload_async(host).unwrap();
                // Both are ordered after the transfer, without a wait of the host.
                let y = device.scan(&x, Sum).unwrap();
                let download = y.read_async(out).unwrap();
                assert_eq!(device.reduce(&y, Sum).unwrap(), Device::cpu().reduce(&sums, Sum).unwrap(), "{name}");
                host = upload.wait().unwrap();
                assert!(host[..] == want, "{name}: {n} elements");
                out = download.wait().unwrap();
                assert!(out[..] == sums, "{name}: {n} elements");
                // The buffer may outlive the host's memory, and be dropped before the transfer ends.
                let (x, upload) = device.upload_async(device.pinned::<u8>(n).unwrap()).unwrap();
                drop(upload);
                assert!(x.to_vec().unwrap().iter().all(|&x| x == 0), "{name}");
                let (x, upload) = device.upload_async(device.pinned::<u8>(n).unwrap()).unwrap();
                drop(x);
                assert_eq!(upload.wait().unwrap().len(), n, "{name}");
                drop(y.view(n / 2..).unwrap().read_async(device.pinned(n - n / 2).unwrap()).unwrap());
            }
            let error = device.upload(&want).unwrap().read_async(device.pinned(n + 1).unwrap()).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        }
        // A slice of zero-sized elements keeps its length.
        let (x, upload) = device.upload_async(device.pinned::<()>(5).unwrap()).unwrap();
        assert_eq!(x.read_async(device.pinned(5).unwrap()).unwrap().wait().unwrap().len(), 5, "{name}");
        assert_eq!(upload.wait().unwrap().len(), 5, "{name}");
    }
}

/// A leaked handle never frees its memory, and the buffer of a leaked download is not written any more.
#[test]
fn leaked_handles_are_sound() {
    for (name, device) in pinned_and_plain("leaked_handles_are_sound").into_iter().skip(1) {
        let (mut x, upload) = device.upload_async(device.pinned::<u32>(1000).unwrap()).unwrap();
        std::mem::forget(upload);
        assert_eq!(x.to_vec().unwrap(), [0; 1000], "{name}");
        let download = x.read_async(device.pinned(1000).unwrap()).unwrap();
        std::mem::forget(download);
        assert_eq!(x.to_vec().unwrap(), [0; 1000], "{name}");
        assert_eq!(x.fill(3).unwrap_err().kind(), ErrorKind::Driver, "{name}");
        device.finish().unwrap();
    }
}

/// Completes a user event when it is dropped.
struct Gate(ocl::Event);

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.set_complete().unwrap();
    }
}

/// The main queue waits for an event that the host sets only after the upload.
#[test]
fn an_upload_does_not_wait_for_earlier_commands() {
    for (name, device) in devices("an_upload_does_not_wait_for_earlier_commands", &staged(2, 2, None)) {
        if !common::runs_kernels_at_once(&device) {
            common::skip(&name, "it runs commands at once");
            continue;
        }
        let gate = ocl::Event::user(&interop::context(&device).unwrap()).unwrap();
        interop::wait_for(&device, std::slice::from_ref(&gate)).unwrap();
        let mut host = device.pinned::<u32>(5 * CHUNK).unwrap();
        host.fill(7);
        let (x, upload) = device.upload_async(host).unwrap();
        let download = x.read_async(device.pinned(5 * CHUNK).unwrap()).unwrap();
        // The gate drops before the handles. Otherwise a failed assertion would leave their drops waiting for ever.
        let gate = Gate(gate);
        let start = Instant::now();
        while !upload.is_done().unwrap() {
            assert!(start.elapsed() < Duration::from_secs(60), "{name}: the upload waits");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(upload.wait().unwrap().iter().all(|&x| x == 7), "{name}");
        // The download is ordered after the commands that wait for the gate.
        assert!(!download.is_done().unwrap(), "{name}");
        drop(gate);
        assert!(download.wait().unwrap().iter().all(|&x| x == 7), "{name}");
    }
}

#[test]
fn a_profiled_device_records_transfers() {
    for (name, device) in devices("a_profiled_device_records_transfers", &staged(2, 2, None)) {
        let profiled = device.profiled().unwrap();
        let (x, upload) = profiled.upload_async(profiled.pinned::<u32>(1000).unwrap()).unwrap();
        upload.wait().unwrap();
        x.read_async(profiled.pinned(1000).unwrap()).unwrap().wait().unwrap();
        let names: Vec<_> = profiled.take_timings().unwrap().iter().map(|timing| timing.name).collect();
        let want: &[&str] =
            if !common::runs_kernels_at_once(&device) { &[] } else { &["clEnqueueWriteBuffer", "clEnqueueReadBuffer"] };
        assert_eq!(names, want, "{name}");
    }
}

/// A primitive: its name, the kernels that read the input, and a function that returns the bytes of its result.
type Arriving = (&'static str, &'static str, fn(&Device, &[f32]) -> Vec<u8>);

/// Primitives whose first kernels run while a slice arrives, and some that wait for all of it.
const ARRIVING: [Arriving; 19] = [
    ("sum", "reduce_tiles", |device, x| device.reduce(x, Sum).unwrap().to_le_bytes().to_vec()),
    ("maximum", "reduce_tiles", |device, x| device.reduce(x, Max).unwrap().to_le_bytes().to_vec()),
    ("sum of bytes", "reduce_tiles", |device, x| vec![device.reduce(bytemuck::cast_slice::<_, u8>(x), Sum).unwrap()]),
    ("exact sum", "", |device, x| device.reduce(x, Sum.exact()).unwrap().to_le_bytes().to_vec()),
    ("count", "count_runs", |device, x| device.count(x, NonZero).unwrap().to_le_bytes().to_vec()),
    ("count of bytes", "count_runs", |device, x| {
        device.count(bytemuck::cast_slice::<_, u8>(x), NonZero).unwrap().to_le_bytes().to_vec()
    }),
    ("all", "count_runs", |device, x| vec![device.all(x, NonZero).unwrap().into()]),
    ("histogram", "histogram_", |device, x| {
        let found = device.histogram(x, &Bins::even(-0.9, 0.9, 100).unwrap()).unwrap();
        [bytemuck::cast_slice(&found.counts), format!("{:?}", found.outside).as_bytes()].concat()
    }),
    ("histogram of bytes", "histogram_", |device, x| {
        let (mut counts, mut outside) = (vec![3u32; 200], [4; 3]);
        let (x, bins) = (bytemuck::cast_slice::<_, u8>(x), Bins::ids(200).unwrap());
        device.histogram_into(x, &bins, &mut counts, &mut outside, Accumulate::Add).unwrap();
        [bytemuck::cast_slice(&counts), bytemuck::cast_slice::<_, u8>(&outside)].concat()
    }),
    ("statistics", "statistics_tiles", |device, x| format!("{:?}", device.statistics(x).unwrap()).into()),
    ("statistics of integers", "statistics_tiles", |device, x| {
        format!("{:?}", device.statistics(bytemuck::cast_slice::<_, i32>(x)).unwrap()).into()
    }),
    ("extremes", "statistics_tiles", |device, x| format!("{:?}", device.min_max(x).unwrap()).into()),
    ("first maximum of bytes", "statistics_tiles", |device, x| {
        format!("{:?}", device.arg_max(bytemuck::cast_slice::<_, u8>(x)).unwrap()).into()
    }),
    ("scan", "scan_look_back", |device, x| {
        bytemuck::cast_slice(&device.scan(x, Sum).unwrap().to_vec().unwrap()).to_vec()
    }),
    ("exclusive scan", "scan_look_back", |device, x| {
        let mut out = vec![0f32; x.len() + 1];
        device.scan_into(x, Sum.exclusive(), &mut out).unwrap();
        bytemuck::cast_slice(&out).to_vec()
    }),
    ("reversed scan", "", |device, x| {
        bytemuck::cast_slice(&device.scan(x, Sum.reversed()).unwrap().to_vec().unwrap()).to_vec()
    }),
    ("selection", "select_look_back", |device, x| {
        bytemuck::cast_slice(&device.select(x, above()).unwrap().to_vec().unwrap()).to_vec()
    }),
    ("indices", "select_look_back", |device, x| {
        bytemuck::cast_slice(&device.select_indices::<f32, u32, _>(x, above()).unwrap().to_vec().unwrap()).to_vec()
    }),
    ("unordered selection", "", |device, x| {
        let mut found = device.select(x, Unordered(above())).unwrap().to_vec().unwrap();
        found.sort_by(f32::total_cmp);
        bytemuck::cast_slice(&found).to_vec()
    }),
];

fn above() -> Map<fn(f32) -> bool> {
    Map::new(|x| x > 0.25, "x > 0.25f")
}

/// The lengths are around those of a part, of several parts, and of the tiles of each primitive. There are eight parts at
/// most.
#[test]
fn inputs_that_arrive_in_parts_have_the_results_of_whole_ones() {
    const NAME: &str = "inputs_that_arrive_in_parts_have_the_results_of_whole_ones";
    const FLOATS: usize = CHUNK / 4;
    let wholes = if common::tiny() { &[2, 5][..] } else { &[1, 2, 3, 5, 8, 16, 23] };
    let all = Data::Random.generate::<f32>(24 * FLOATS, 17);
    let tuning = staged(3, 2, None).parts(CHUNK);
    for (name, device) in devices(NAME, &tuning) {
        let device = device.profiled().unwrap();
        let look_back = device.capabilities().unwrap().is_some_and(|caps| caps.looks_back());
        for (i, len) in
            wholes.iter().flat_map(|whole| [whole * FLOATS - 1, whole * FLOATS, whole * FLOATS + 1]).enumerate()
        {
            let x = &all[i % 4..][..len];
            for (what, kernel, run) in ARRIVING {
                let what = format!("{name}: {what} of {len} elements");
                device.take_timings().unwrap();
                assert!(run(&device, x) == run(&Device::cpu(), x), "{what}");
                let launches = device.take_timings().unwrap().iter().filter(|t| t.name.starts_with(kernel)).count();
                // Statistics have parts only if there are at least eight work-groups, so from eight tiles on.
                let least = if kernel == "statistics_tiles" { 8 } else { 2 } * FLOATS;
                let in_parts = len >= least && common::runs_kernels_at_once(&device);
                if in_parts && !kernel.is_empty() && (look_back || !kernel.ends_with("look_back")) {
                    assert!(launches > 1, "{what}: {launches} launches of {kernel}");
                }
            }
        }
    }
}

/// The input's memory is scratch of a sort that starts only when the gate opens.
#[test]
fn an_input_that_arrives_in_parts_does_not_overtake_earlier_commands() {
    const NAME: &str = "an_input_that_arrives_in_parts_does_not_overtake_earlier_commands";
    let (x, keys) = (common::random::<u32>(4 * CHUNK, 18), common::random::<u32>(4 * CHUNK, 19));
    let want = Device::cpu().reduce(&x, Sum).unwrap();
    for (name, device) in devices(NAME, &staged(2, 2, None).parts(CHUNK)) {
        if !common::runs_kernels_at_once(&device) {
            common::skip(&name, "it runs commands at once");
            continue;
        }
        let keys = device.upload(&keys).unwrap();
        // The first calls build the kernels, and the sort allocates its scratch.
        let sort = || device.sort(&keys, Order::ascending()).unwrap();
        drop(sort());
        assert_eq!(device.reduce(&x, Sum).unwrap(), want, "{name}");
        let gate = ocl::Event::user(&interop::context(&device).unwrap()).unwrap();
        interop::wait_for(&device, std::slice::from_ref(&gate)).unwrap();
        let gate = Gate(gate);
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(500));
                drop(gate);
            });
            let sorted = sort();
            assert_eq!(device.reduce(&x, Sum).unwrap(), want, "{name}: after a sort");
            assert!(sorted.to_vec().unwrap().is_sorted(), "{name}");
        });
    }
}
