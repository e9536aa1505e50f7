//! A program's own `ocl` objects, on every OpenCL device of this machine.
#![cfg(feature = "opencl")]

#[path = "common/skips.rs"]
mod common;

use ocl::{CommandQueueProperties, core::Event as CoreEvent, flags::MemFlags};
use std::{
    sync::{Mutex, MutexGuard, mpsc},
    thread,
    time::Duration,
};

use oclprim::{
    Accumulate, Bins, Buffer, Device, ErrorKind, Input, Interpolation, Matrices, MomentsRecord, NdView, Order, Source,
    StatisticsRecord, Top,
    interop::{self, ocl},
    op::{Combinable, Map, Max, NonZero, Operator, Sum},
    source::{KeyedOutput, PairOutput, constant},
};

/// Runs one test at a time, because Oclgrind mixes up two simultaneous commands.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Every device that a user of `ocl` finds.
fn devices() -> Vec<(ocl::Platform, ocl::Device)> {
    // `ocl` panics if there is no platform, and the first discovery of a driver must not run in two threads at once.
    if Device::list().iter().all(|info| !info.opencl) {
        common::skip("interop", "no OpenCL device");
        return Vec::new();
    }
    let list = |platform| ocl::Device::list_all(platform).unwrap_or_default();
    let found: Vec<_> =
        ocl::Platform::list().into_iter().flat_map(|p| list(p).into_iter().map(move |d| (p, d))).collect();
    assert!(!found.is_empty());
    found
}

struct User {
    device: ocl::Device,
    context: ocl::Context,
    queue: ocl::Queue,
}

impl User {
    fn new(platform: ocl::Platform, device: ocl::Device, properties: Option<CommandQueueProperties>) -> Self {
        let context = ocl::Context::builder().platform(platform).devices(device).build().unwrap();
        let queue = ocl::Queue::new(&context, device, properties).unwrap();
        Self { device, context, queue }
    }

    fn open(&self) -> Device {
        interop::device(self.device, &self.context, &self.queue).unwrap()
    }

    fn upload<T: ocl::OclPrm>(&self, data: &[T]) -> ocl::Buffer<T> {
        let buffer = ocl::Buffer::builder().queue(self.queue.clone()).len(data.len()).copy_host_slice(data);
        buffer.build().unwrap()
    }
}

/// A user for each device, on an in-order queue and, if the device has one, on an out-of-order queue.
fn users() -> Vec<User> {
    let mut users = Vec::new();
    for (platform, device) in devices() {
        users.push(User::new(platform, device, None));
        let context = ocl::Context::builder().platform(platform).devices(device).build().unwrap();
        match ocl::Queue::new(&context, device, Some(CommandQueueProperties::OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
            Ok(queue) => users.push(User { device, context, queue }),
            Err(_) => common::skip(&device.name().unwrap_or_default(), "no out-of-order queues"),
        }
    }
    users
}

/// The user's memory as a buffer, for tests that order all commands on it.
fn shared<T: bytemuck::Pod + ocl::OclPrm>(device: &Device, theirs: &ocl::Buffer<T>) -> oclprim::Result<Buffer<T>> {
    // SAFETY: all commands on the memory are in one queue, or ordered by events or waits.
    unsafe { interop::buffer(device, theirs) }
}

#[test]
fn primitives_run_on_a_users_buffer() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        let data: Vec<i32> = (0..5000).map(|i| i * 7 % 1009).collect();
        let theirs = user.upload(&data);
        let ours = shared(&device, &theirs).unwrap();
        assert_eq!(ours.len(), 5000);
        assert_eq!(device.reduce(&ours, Sum).unwrap(), data.iter().sum::<i32>());
        assert_eq!(device.reduce(ours.view(13..).unwrap(), Max).ok(), data[13..].iter().copied().max());

        // A write by either side is visible to the other.
        let target = user.upload(&vec![-1; 5000]);
        let mut view = shared(&device, &target).unwrap();
        device.copy(ours.view(3..4000).unwrap(), view.view_mut(1..3998).unwrap()).unwrap();
        device.finish().unwrap();
        let mut got = vec![0; 5000];
        target.read(&mut got).enq().unwrap();
        assert_eq!((got[0], &got[1..3998], got[3998]), (-1, &data[3..4000], -1));
        theirs.write(&vec![2; 5000]).enq().unwrap();
        assert_eq!(device.reduce(&ours, Sum).unwrap(), 10_000);

        // The memory outlives the user's handle.
        drop((theirs, target));
        assert_eq!(view.view(1..3).unwrap().to_vec().unwrap(), data[3..5]);
    }
}

#[test]
fn many_commands_keep_their_order() {
    let _alone = alone();
    for (index, user) in users().into_iter().enumerate() {
        let device = user.open();
        let mut a = device.upload(&(0..3_000u32).collect::<Vec<_>>()).unwrap();
        let mut b = device.zeroed::<u32>(3_000).unwrap();
        for round in 1..8 {
            device.copy(&a, &mut b).unwrap();
            b.view_mut(round..2 * round).unwrap().write(&vec![7; round]).unwrap();
            device.copy(&b, &mut a).unwrap();
            a.copy_within(..2_000, 5).unwrap();
        }
        let mut want: Vec<u32> = (0..3_000).collect();
        for round in 1..8 {
            want[round..2 * round].fill(7);
            want.copy_within(..2_000, 5);
        }
        let wrong = a.to_vec().unwrap().iter().zip(&want).position(|(got, want)| got != want);
        assert_eq!(wrong, None, "user {index}, {device:?}");
    }
}

#[test]
fn events_order_commands_in_both_directions() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        let other = ocl::Queue::new(&user.context, user.device, None).unwrap();
        let theirs = ocl::Buffer::builder().queue(other.clone()).len(3_000).copy_host_slice(&[9u32; 3_000]);
        let theirs = theirs.build().unwrap();
        let ours = shared(&device, &theirs).unwrap();
        for round in 1..5 {
            // The user's command comes first, on another queue that is never flushed. Then the crate's command follows.
            let mut filled = ocl::Event::empty();
            theirs.cmd().fill(round, None).enew(&mut filled).enq().unwrap();
            interop::wait_for(&device, &[filled]).unwrap();
            let mut copy = device.zeroed(3_000).unwrap();
            device.copy(&ours, &mut copy).unwrap();

            // Now the crate's command comes first, and the user's command follows.
            let copied = interop::marker(&device).unwrap();
            let mut refilled = ocl::Event::empty();
            theirs.cmd().fill(0, None).ewait(&copied).enew(&mut refilled).enq().unwrap();
            other.flush().unwrap();
            refilled.wait_for().unwrap();
            assert!(copied.is_complete().unwrap());
            assert_eq!(device.reduce(&copy, Sum).unwrap(), 3_000 * round);
        }
        interop::wait_for(&device, &[]).unwrap();
        let empty = interop::wait_for(&device, &[ocl::Event::empty()]).unwrap_err();
        assert_eq!((empty.kind(), empty.to_string().as_str()), (ErrorKind::InvalidInput, "event 0 of 1 is empty"));
    }
}

/// The queue waits for an incomplete event, so a call that waited for earlier commands would not return.
#[test]
fn calls_with_results_on_the_device_do_not_wait() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        if device.info().platform == "Oclgrind" {
            common::skip("Oclgrind", "its flush waits");
            continue;
        }
        let data: Vec<u32> = (0..5_000).collect();
        let x = device.upload(&data).unwrap();
        let (mut copies, mut counts) = (device.zeroed::<u32>(5_000).unwrap(), device.zeroed::<u64>(2).unwrap());
        let mut outside = device.zeroed(3).unwrap();
        let (mut sum, mut turned) = (device.zeroed::<u32>(1).unwrap(), device.zeroed::<u32>(5_000).unwrap());
        let (mut moved, mut ids) = (device.zeroed::<u32>(5_000).unwrap(), device.zeroed::<u64>(4).unwrap());
        let odd = Map::new(|x: u32| x % 2 == 1, "x % 2u == 1");
        let (mut kept, mut found) = (device.zeroed::<u32>(5_000).unwrap(), device.zeroed::<u64>(1).unwrap());
        let (mut of_kept, mut most) = (device.zeroed::<u32>(5_000).unwrap(), device.zeroed::<u32>(2).unwrap());
        let mut run = || {
            // The count of a selection is the length of the next inputs.
            device.select_into(&x, &odd, &mut kept, &mut found).unwrap();
            device.scan_into(kept.take(&found), Sum, &mut of_kept).unwrap();
            device.transform_into(kept.take(&found), &mut of_kept).unwrap();
            device.reduce_into(of_kept.take(&found), Max, most.view_mut(..1).unwrap()).unwrap();
            device.reduce_into(kept.strided(1).take(&found), Max, most.view_mut(1..).unwrap()).unwrap();
            let of_two = Bins::edges(&[0u32, 10, 5_000]).unwrap();
            device
                .histogram_into(kept.take(&found), &of_two, &mut counts, &mut outside, Accumulate::Overwrite)
                .unwrap();
            device.copy(&x, &mut moved).unwrap();
            device.reduce_into(&x, Sum, &mut sum).unwrap();
            device.transpose_into(&x, (50, 100), &mut turned).unwrap();
            let four = Bins::ids(4).unwrap();
            device.histogram_into(&x, &four, &mut ids, &mut outside, Accumulate::Overwrite).unwrap();
            device.copy(x.ranges(&[(7..3_000, 3), (3_500..3_510, 4_000)]), &mut copies).unwrap();
            // The bins are new: no earlier call has transferred their edges to the device.
            let bins = Bins::edges(&[0u32, 10, 5_000]).unwrap();
            let replace = Accumulate::Overwrite;
            device.histogram_into(&x, &bins, &mut counts, &mut outside, replace).unwrap();
        };
        // Builds all programs.
        run();
        device.finish().unwrap();
        let gate = ocl::Event::user(&user.context).unwrap();
        interop::wait_for(&device, std::slice::from_ref(&gate)).unwrap();
        let (sender, receiver) = mpsc::channel();
        let returned = thread::scope(|scope| {
            scope.spawn(|| {
                run();
                sender.send(()).unwrap();
            });
            let returned = receiver.recv_timeout(Duration::from_secs(20));
            gate.set_complete().unwrap();
            returned
        });
        assert_eq!(returned, Ok(()), "{device:?} waits");
        let copied = copies.to_vec().unwrap();
        assert_eq!((&copied[3..2_996], &copied[4_000..4_010]), (&data[7..3_000], &data[3_500..3_510]));
        assert_eq!(counts.to_vec().unwrap(), [10, 4_990]);
        assert_eq!((found.to_vec().unwrap(), most.to_vec().unwrap()), (vec![2_500], vec![4_999, 4_999]));
        assert_eq!((moved.to_vec().unwrap(), sum.to_vec().unwrap()), (data, vec![4_999 * 2_500]));
        assert_eq!((turned.to_vec().unwrap()[1], ids.to_vec().unwrap()), (100, vec![1; 4]));
    }
}

#[test]
fn users_can_use_our_objects() {
    let _alone = alone();
    let found = Device::list();
    let opencl = found.iter().enumerate().filter(|(_, info)| info.opencl);
    for (index, info) in opencl {
        let device = Device::at(index).unwrap();
        let context = interop::context(&device).unwrap();
        let theirs = interop::ocl_device(&device).unwrap();
        assert_eq!(theirs.name().unwrap().trim(), info.name);
        let queue = ocl::Queue::new(&context, theirs, None).unwrap();
        let again = interop::device(theirs, &context, &queue).unwrap();

        let x = device.upload(&[1u32, 2, 3, 4]).unwrap();
        // SAFETY: nothing is mapped.
        let alias = unsafe { interop::buffer_from_mem::<u16>(&again, &interop::mem(&x).unwrap(), 8).unwrap() };
        device.finish().unwrap();
        assert_eq!(alias.to_vec().unwrap(), [1, 0, 2, 0, 3, 0, 4, 0]);

        let core: ocl::core::CommandQueue = interop::queue(&device).unwrap();
        let mut event = CoreEvent::null();
        ocl::core::enqueue_marker_with_wait_list(&core, None::<&CoreEvent>, Some(&mut event), None).unwrap();
        ocl::core::flush(&core).unwrap();
        ocl::core::wait_for_event(&event).unwrap();
    }
}

/// A user's program, built in the crate's context, with a buffer of the crate as its argument.
#[test]
fn a_users_kernel_takes_our_buffer_in_our_context() {
    const TEXT: &str = "__kernel void squares(const uint more, __global uint* x) { x[get_global_id(0)] *= x[get_global_id(0)] + more; }";
    let _alone = alone();
    for index in 1..Device::list().len() {
        let device = Device::at(index).unwrap();
        let (id, context) = (interop::ocl_device(&device).unwrap(), interop::context(&device).unwrap());
        let platform = context.platform().unwrap().expect("the context knows its platform");
        assert_eq!(platform.name().unwrap().trim(), device.info().platform);
        let program = ocl::Program::builder().src(TEXT).devices(id).build(&context).unwrap();
        let queue = ocl::Queue::new(&context, id, None).unwrap();
        let build = |queue: &ocl::Queue| {
            let mut kernel = ocl::Kernel::builder();
            kernel.program(&program).name("squares").queue(queue.clone()).global_work_size(3);
            kernel.arg(0u32).arg(None::<&ocl::Buffer<u32>>).build().unwrap()
        };
        let kernel = build(&queue);
        let x = device.upload(&[1u32, 2, 3]).unwrap();
        interop::set_arg(&kernel, 1, &x).unwrap();
        device.finish().unwrap();
        // SAFETY: the kernel accesses 3 elements only, and no call uses `x` until it is done.
        unsafe { kernel.enq().unwrap() };
        queue.finish().unwrap();
        assert_eq!(x.to_vec().unwrap(), [1, 4, 9], "{device:?}");

        // The kernel keeps the memory alive.
        drop(x);
        // SAFETY: as above.
        unsafe { kernel.enq().unwrap() };
        queue.finish().unwrap();

        let x = device.upload(&[1u32, 2, 3]).unwrap();
        let error = interop::set_arg(&kernel, 7, &x).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && !error.to_string().contains('\n'), "{error}");
        let user = User::new(platform, id, None);
        let theirs = interop::device(id, &user.context, &user.queue).unwrap().upload(&[1u32]).unwrap();
        let error = interop::set_arg(&kernel, 1, &theirs).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("another context"), "{error}");
        let cpu = Device::cpu().upload(&[1u32]).unwrap();
        assert_eq!(interop::set_arg(&kernel, 1, &cpu).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn mismatched_objects_are_refused() {
    let _alone = alone();
    let all = devices();
    for &(platform, device) in &all {
        let (one, two) = (User::new(platform, device, None), User::new(platform, device, None));
        let refused = |error: oclprim::Error, text: &str| {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        };
        refused(interop::device(device, &one.context, &two.queue).unwrap_err(), "the queue belongs to another context");
        if let Some(&(platform, other)) = all.iter().find(|(_, other)| *other != device) {
            let user = User::new(platform, other, None);
            let error = interop::device(device, &user.context, &user.queue).unwrap_err();
            refused(error, "the context does not have the device");
        } else {
            common::skip("a context of another device", "there is one only");
        }

        let open = one.open();
        let theirs = two.upload(&[1i32, 2, 3]);
        refused(shared(&open, &theirs).unwrap_err(), "the buffer belongs to another context");
        let mine = one.upload(&[1i32, 2, 3]);
        // SAFETY: nothing is mapped.
        let error = unsafe { interop::buffer_from_mem::<i64>(&open, mine.as_core(), 2) }.unwrap_err();
        refused(error, "the buffer has 12 bytes, 16 are needed");
        // SAFETY: as above.
        let error = unsafe { interop::buffer_from_mem::<i64>(&open, mine.as_core(), usize::MAX) }.unwrap_err();
        refused(error, "overflow");
        let one_way = ocl::Buffer::<i32>::builder().queue(one.queue.clone()).flags(MemFlags::READ_ONLY).len(4);
        refused(shared(&open, &one_way.build().unwrap()).unwrap_err(), "CL_MEM_READ_WRITE");

        let mut marked = ocl::Event::empty();
        theirs.cmd().fill(0, None).enew(&mut marked).enq().unwrap();
        refused(interop::wait_for(&open, &[marked]).unwrap_err(), "event 0 of 1 belongs to another context");
        two.queue.finish().unwrap();

        let mut ours = shared(&open, &mine).unwrap();
        assert_eq!(ours.map_memory().unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(ours.map_memory_mut().unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(ours.view(1..).unwrap().map_memory().unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(open.reduce(&ours, Sum).unwrap(), 6);

        // Buffers of another context meet the crate's own checks.
        let foreign = two.open().upload(&[1i32, 2, 3]).unwrap();
        refused(open.reduce(&foreign, Sum).unwrap_err(), "cannot be used on");
    }
}

/// Rust's borrow rules cannot see that two buffers share memory.
#[test]
fn outputs_that_overlap_inputs_are_refused() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        let data: Vec<u32> = (0..6000).collect();
        let theirs = user.upload(&data);
        let (a, mut b) = (shared(&device, &theirs).unwrap(), shared(&device, &theirs).unwrap());
        let refused = |result: oclprim::Result<()>, text: &str| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert_eq!(error.to_string(), format!("an output overlaps another argument: {text} of one memory object"));
        };
        refused(device.transpose_into(&a, (60, 100), &mut b), "bytes 0..24000 and 0..24000");
        let other = device.upload(&data).unwrap();
        let count = || a.view(4..5).unwrap();
        let refused_by_a_count = |result| refused(result, "bytes 16..20 and 16..20");
        refused_by_a_count(device.reduce_into(other.take(count()), Sum, b.view_mut(4..5).unwrap()));
        refused_by_a_count(device.reduce_into(other.reversed().take(count()), Sum, b.view_mut(4..5).unwrap()));
        refused_by_a_count(device.transform_into(other.view(..1).unwrap().take(count()), b.view_mut(4..5).unwrap()));
        refused_by_a_count(device.scan_into(other.view(..1).unwrap().take(count()), Sum, b.view_mut(4..5).unwrap()));
        refused(device.copy(a.view(..10).unwrap(), b.view_mut(9..19).unwrap()), "bytes 36..76 and 0..40");
        let matrices = Matrices::new(10, 10);
        let (from, to) = (a.view(50..150).unwrap(), b.view_mut(..100).unwrap());
        refused(device.transpose_into(from, &matrices, to), "bytes 0..400 and 200..600");
        let view = a.nd(&[60, 100]).unwrap();
        let turned = b.nd_mut(&[100, 60]).unwrap();
        refused(device.copy(view.permute(&[1, 0]).unwrap(), turned), "bytes 0..24000 and 0..24000");
        refused(device.copy(NdView::from(&a), b.nd_mut(&[6000]).unwrap()), "bytes 0..24000 and 0..24000");
        refused(device.copy(a.ranges(&[(0..5, 10)]), &mut b), "bytes 0..24000 and 0..24000");
        let five = a.view(..5).unwrap();
        refused(device.copy(five.reversed(), b.view_mut(4..9).unwrap()), "bytes 16..36 and 0..20");
        let (table, by) = ([7u32; 5], [1u32; 5]);
        refused(device.gather_into(five, &by, b.view_mut(..5).unwrap(), &mut [0]), "bytes 0..20 and 0..20");
        refused(device.gather_into(&table, five, b.view_mut(2..7).unwrap(), &mut [0]), "bytes 8..28 and 0..20");
        refused(device.scatter_into(five, &by, b.view_mut(3..9).unwrap(), &mut [0]), "bytes 12..36 and 0..20");
        // A sub-buffer is another object over the same memory.
        let part = theirs.create_sub_buffer(None, 1024, 100).unwrap();
        let mut c = shared(&device, &part).unwrap();
        refused(
            device.transpose_into(a.view(1000..1100).unwrap(), (10, 10), &mut c),
            "bytes 4096..4496 and 4000..4400",
        );
        let sums = device.reduce_into(view.along(0), Sum, b.view_mut(5900..).unwrap());
        refused(sums, "bytes 23600..24000 and 0..24000");
        // Both factors of products are inputs.
        let far = other.nd(&[60, 100]).unwrap();
        for products in [view.times(far), far.times(view)] {
            let sorted = device.sort_into(products.along(0), Order::ascending(), &mut b);
            refused(sorted, "bytes 0..24000 and 0..24000");
        }
        let (offsets, out) = (a.view(..3).unwrap(), b.view_mut(1..3).unwrap());
        refused(device.reduce_into([1u32; 4].segments(offsets), Sum, out), "bytes 4..12 and 0..12");
        let out = b.view_mut(7..8).unwrap();
        refused(device.reduce_into(a.segments(&[0u32, 2]), Sum, out), "bytes 28..32 and 0..24000");
        let (bins, mut outside) = (Bins::ids(10).unwrap(), [0u64; 3]);
        let counts = b.view_mut(5..15).unwrap();
        let counted = device.histogram_into(a.view(..6).unwrap(), &bins, counts, &mut outside, Accumulate::Overwrite);
        refused(counted, "bytes 20..60 and 0..24");
        assert_eq!(a.to_vec().unwrap(), data);

        device.copy(a.view(..3000).unwrap(), b.view_mut(3000..).unwrap()).unwrap();
        device.copy(a.view(924..1024).unwrap(), &mut c).unwrap();
        device.copy(a.view(3..3).unwrap(), b.view_mut(3..3).unwrap()).unwrap();
        let got = a.to_vec().unwrap();
        assert!(got[..1024] == data[..1024] && got[1024..1124] == data[924..1024], "{device:?}");
        assert_eq!(got[3000..], data[..3000]);
    }
}

/// The user's memory as a buffer of another plain type.
fn whole<T: bytemuck::Pod>(device: &Device, theirs: &ocl::Buffer<u32>) -> Buffer<T> {
    // SAFETY: nothing is mapped.
    unsafe { interop::buffer_from_mem(device, theirs.as_core(), 4 * theirs.len() / size_of::<T>()).unwrap() }
}

/// Buffers over one memory object.
type Views = (Buffer<u32>, Buffer<u32>, Buffer<u64>);

/// The numbers from 0 to 5999, the user's memory with them, and buffers over this memory.
fn numbered(user: &User, device: &Device) -> (Vec<u32>, ocl::Buffer<u32>, Views) {
    let data: Vec<u32> = (0..6000).collect();
    let theirs = user.upload(&data);
    let views = (whole(device, &theirs), whole(device, &theirs), whole(device, &theirs));
    (data, theirs, views)
}

fn overlap(result: oclprim::Result<()>, text: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(error.to_string(), format!("an output overlaps another argument: {text} of one memory object"));
}

/// An output of another element type must not overlap an input, and two outputs must not overlap each other.
#[test]
fn results_that_overlap_inputs_or_each_other_are_refused() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        let (data, theirs, (a, mut b, mut words)) = numbered(&user, &device);
        let (other, mut figures, mut places) = ([1u32; 6], [0u32; 200], [0u64; 200]);
        let (view, six) = (a.nd(&[60, 100]).unwrap(), a.view(..6).unwrap());

        let mut records = whole::<StatisticsRecord<u32>>(&device, &theirs);
        let record = records.view_mut(1..2).unwrap();
        overlap(device.statistics_into(&a, record), "bytes 96..192 and 0..24000");
        let values = b.view_mut(7..9).unwrap();
        overlap(device.min_max_into(&a, values, &mut places[..2]), "bytes 28..36 and 0..24000");
        let indices = words.view_mut(2..4).unwrap();
        overlap(device.min_max_into(&a, &mut figures[..2], indices), "bytes 16..32 and 0..24000");
        let both = (b.view_mut(4..6).unwrap(), words.view_mut(2..4).unwrap());
        overlap(device.min_max_into(&other, both.0, both.1), "bytes 16..24 and 16..32");

        let values = b.view_mut(5900..).unwrap();
        let found = device.arg_min_into(view.along(0), values, &mut places[..100]);
        overlap(found, "bytes 23600..24000 and 0..24000");
        let indices = words.view_mut(..100).unwrap();
        let found = device.arg_max_into(view.along(0), &mut figures[..100], indices);
        overlap(found, "bytes 0..800 and 0..24000");
        let values = b.view_mut(..200).unwrap();
        overlap(device.min_max_into(view.along(0), values, &mut places), "bytes 0..800 and 0..24000");
        let mut moments = whole::<MomentsRecord<u32>>(&device, &theirs);
        let size = size_of::<MomentsRecord<u32>>();
        let found = device.moments_into(view.along(0), moments.view_mut(1..101).unwrap());
        overlap(found, &format!("bytes {size}..{} and 0..24000", 101 * size));
        let found = device.transpose_into(a.times(constant(2)), (60, 100), &mut b);
        overlap(found, "bytes 0..24000 and 0..24000");

        let bins = Bins::ids(10).unwrap();
        let write = Accumulate::Overwrite;
        let outside = words.view_mut(..3).unwrap();
        let counted = device.histogram_into(six, &bins, &mut figures[..10], outside, write);
        overlap(counted, "bytes 0..24 and 0..24");
        let (counts, outside) = (b.view_mut(..10).unwrap(), words.view_mut(4..7).unwrap());
        overlap(device.histogram_into(&other, &bins, counts, outside, write), "bytes 0..40 and 32..56");
        let sums = words.view_mut(..10).unwrap();
        let summed = device.histogram_into(six.weighted(&other), &bins, sums, &mut places[..3], write);
        overlap(summed, "bytes 0..80 and 0..24");
        let sums = words.view_mut(1..11).unwrap();
        let summed = device.histogram_into(other.weighted(six), &bins, sums, &mut places[..3], write);
        overlap(summed, "bytes 8..88 and 0..24");
        let mut again = whole::<u64>(&device, &theirs);
        let (sums, outside) = (words.view_mut(..10).unwrap(), again.view_mut(9..12).unwrap());
        let summed = device.histogram_into(other.weighted(&other), &bins, sums, outside, write);
        overlap(summed, "bytes 0..80 and 72..96");
        let pairs = [bins.clone(), bins.clone()];
        let counts = b.view_mut(3..23).unwrap();
        let counted = device.histogram_into(six.channels(2), &pairs, counts, &mut places[..6], write);
        overlap(counted, "bytes 12..92 and 0..24");
        let (counts, outside) = (b.view_mut(..20).unwrap(), words.view_mut(..6).unwrap());
        let counted = device.histogram_into(other.channels(2), &pairs, counts, outside, write);
        overlap(counted, "bytes 0..80 and 0..48");

        let outside = words.view_mut(1..2).unwrap();
        overlap(device.gather_into(six, &other, &mut figures[..6], outside), "bytes 8..16 and 0..24");
        let (line, outside) = (b.view_mut(..6).unwrap(), words.view_mut(2..3).unwrap());
        overlap(device.gather_into(&other, &other, line, outside), "bytes 0..24 and 16..24");
        let outside = words.view_mut(..1).unwrap();
        overlap(device.scatter_into(&other, six, &mut figures[..6], outside), "bytes 0..8 and 0..24");
        let (table, outside) = (b.view_mut(..6).unwrap(), words.view_mut(..1).unwrap());
        overlap(device.scatter_into(&other, &other, table, outside), "bytes 0..24 and 0..8");
        let top = Top::largest(3);
        let outs = (b.view_mut(4..7).unwrap(), &mut places[..3]);
        overlap(device.top_k_into(six.with(&[0u64; 6]), top, (outs.0, outs.1)), "bytes 16..28 and 0..24");
        let outs = (b.view_mut(..3).unwrap(), &mut figures[..3]);
        overlap(device.top_k_into(other.with(six), top, (outs.0, outs.1)), "bytes 0..12 and 0..24");
        let outs = (&mut figures[..3], words.view_mut(2..5).unwrap());
        overlap(device.top_k_into(six.with(&[0u64; 6]), top, (outs.0, outs.1)), "bytes 16..40 and 0..24");
        let outs = (b.view_mut(..3).unwrap(), words.view_mut(1..4).unwrap());
        overlap(device.top_k_into(other.with(&[0u64; 6]), top, (outs.0, outs.1)), "bytes 0..12 and 8..32");
        let outs = (b.view_mut(..3).unwrap(), words.view_mut(1..4).unwrap());
        overlap(device.top_k_into(other.indexed(), top, (outs.0, outs.1)), "bytes 0..12 and 8..32");
        for ranks in [2, 16, 17] {
            let out = b.view_mut(5..5 + ranks).unwrap();
            let text = format!("bytes 20..{} and 0..24", 20 + 4 * ranks);
            overlap(device.nth_element_into(six, &[3; 17][..ranks], out), &text);
        }
        assert_eq!(a.to_vec().unwrap(), data, "{device:?}");
    }
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Pair {
    a: u32,
    b: u32,
}
impl Combinable for Pair {}

fn sum_of_pairs() -> Operator<Pair, impl Fn(Pair, Pair) -> Pair + Copy + Send + Sync> {
    Operator::of_struct(
        "sum_of_pairs",
        "Pair",
        "typedef struct { uint a, b; } Pair;",
        Pair { a: 0, b: 0 },
        |x: Pair, y: Pair| Pair { a: x.a.wrapping_add(y.a), b: x.b.wrapping_add(y.b) },
        "(Pair){ a.a + b.a, a.b + b.b }",
    )
}

/// Calls of several launches refuse overlaps before the first one.
#[test]
fn results_of_groups_that_overlap_inputs_or_each_other_are_refused() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        let (data, theirs, (a, mut b, mut words)) = numbered(&user, &device);
        let (mut c, six, other) = (whole::<u32>(&device, &theirs), a.view(..6).unwrap(), [1u32; 6]);
        let mut records = whole::<StatisticsRecord<u32>>(&device, &theirs);
        let mut moments = whole::<MomentsRecord<u32>>(&device, &theirs);
        let mut figures = whole::<f64>(&device, &theirs);
        let (mut keys, mut many, mut count) = ([0u32; 6], [0u64; 60], [0u64]);

        let to = (&mut keys, moments.view_mut(..6).unwrap(), &mut count);
        let size = 6 * size_of::<MomentsRecord<u32>>();
        overlap(device.moments_into(six.by_key(&other), to), &format!("bytes 0..{size} and 0..24"));
        let to = (b.view_mut(..6).unwrap(), moments.view_mut(..6).unwrap(), &mut count);
        overlap(device.moments_into(other.by_key(&other), to), &format!("bytes 0..24 and 0..{size}"));
        let to = (&mut keys, records.view_mut(..6).unwrap(), &mut count);
        overlap(device.statistics_into(other.by_key(six), to), "bytes 0..576 and 0..24");
        let to = (&mut keys, figures.view_mut(1..7).unwrap(), &mut count);
        let lower = Interpolation::Lower;
        overlap(device.quantile_into(six.by_key(&other), &[0.5], lower, to), "bytes 8..56 and 0..24");

        let (bins, write) = (Bins::ids(10).unwrap(), Accumulate::Overwrite);
        let to = (&mut keys, b.view_mut(3..63).unwrap(), &mut count);
        let counted = device.histogram_into(six.by_key(&other), &bins, to, &mut many[..18], write);
        overlap(counted, "bytes 12..252 and 0..24");
        let (to, outside) = ((&mut keys, b.view_mut(..60).unwrap(), &mut count), words.view_mut(4..22).unwrap());
        let counted = device.histogram_into(other.by_key(&other), &bins, to, outside, write);
        overlap(counted, "bytes 0..240 and 32..176");
        let (to, outside) = ((&mut keys, words.view_mut(2..62).unwrap(), &mut count), &mut many[..18]);
        overlap(
            device.histogram_into(other.by_key(&other).weighted(six), &bins, to, outside, write),
            "bytes 16..496 and 0..24",
        );

        let top = Top::largest(1);
        let to = (b.view_mut(3..9).unwrap(), &mut [0u32; 6], &mut count);
        overlap(device.top_k_into(six.by_key(&other), top, to), "bytes 12..36 and 0..24");
        let pairs = PairOutput::from((b.view_mut(10..16).unwrap(), words.view_mut(6..12).unwrap()));
        let chosen = device.top_k_into(other.by_key(&other).indexed::<u64>(), top, (&mut keys, pairs, &mut count));
        overlap(chosen, "bytes 40..64 and 48..96");
        let order = Order::ascending;
        let sorted = device.sort_into(other.by_key(six), order(), b.view_mut(3..9).unwrap());
        overlap(sorted, "bytes 12..36 and 0..24");
        let to = (b.view_mut(..6).unwrap(), c.view_mut(5..11).unwrap());
        overlap(device.sort_into(other.by_key(&other).with(&other), order(), to), "bytes 0..24 and 20..44");

        let (pairs, mut out, op) = (whole::<Pair>(&device, &theirs), whole::<Pair>(&device, &theirs), &sum_of_pairs());
        let of = pairs.view(..6).unwrap();
        let to = KeyedOutput::from((b.view_mut(..6).unwrap(), out.view_mut(1..7).unwrap(), &mut count));
        overlap(device.reduce_into([Pair { a: 1, b: 2 }; 6].by_key(&other), op, to), "bytes 0..24 and 8..56");
        let mut sums = [Pair { a: 0, b: 0 }; 6];
        let to = KeyedOutput::from((b.view_mut(4..10).unwrap(), &mut sums, &mut count));
        overlap(device.reduce_into(of.by_key(&other), op, to), "bytes 16..40 and 0..48");
        let sums = device.reduce_into(of.segments(&[0u32, 2, 6]), op, out.view_mut(2..4).unwrap());
        overlap(sums, "bytes 16..32 and 0..48");
        let view = pairs.nd(&[60, 50]).unwrap();
        let sums = device.reduce_into(view.along(1), op, out.view_mut(..60).unwrap());
        overlap(sums, "bytes 0..480 and 0..24000");
        overlap(device.scan_into(view.along(0), op, &mut out), "bytes 0..24000 and 0..24000");
        let view = a.nd(&[3000, 2]).unwrap();
        overlap(device.scan_into(view.along(0), Sum, &mut b), "bytes 0..24000 and 0..24000");

        let ends = [0u32, 2, 6];
        let to = records.view_mut(..2).unwrap();
        overlap(device.statistics_into(six.segments(&ends), to), "bytes 0..192 and 0..24");
        let to = figures.view_mut(..2).unwrap();
        overlap(device.quantile_into(six.segments(&ends), &[0.5], lower, to), "bytes 0..16 and 0..24");
        let to = (b.view_mut(..2).unwrap(), c.view_mut(1..3).unwrap());
        overlap(device.top_k_into(other.segments(&ends).indexed::<u32>(), top, to), "bytes 0..8 and 4..12");
        let to = (b.view_mut(2..8).unwrap(), &mut many[..6]);
        overlap(device.select_into(other.segments(six), NonZero, to.0, to.1), "bytes 8..32 and 0..24");
        let to = (&mut keys, words.view_mut(..3).unwrap());
        overlap(device.select_into(six.segments(&ends), NonZero, to.0, to.1), "bytes 0..24 and 0..24");
        let to = (b.view_mut(..6).unwrap(), words.view_mut(2..5).unwrap());
        overlap(device.unique_into(other.segments(&ends), to.0, to.1), "bytes 0..24 and 16..40");
        let to = (&mut keys, words.view_mut(2..7).unwrap());
        overlap(device.partition_into(other.segments(six), NonZero, to.0, to.1), "bytes 16..56 and 0..24");
        let to = (b.view_mut(..6).unwrap(), words.view_mut(2..4).unwrap());
        overlap(device.partition_into(other.segments(&ends), NonZero, to.0, to.1), "bytes 0..24 and 16..32");
        let line = Input::from(&other).nd(&[3, 2]).unwrap();
        let to = (b.view_mut(..6).unwrap(), c.view_mut(5..11).unwrap());
        overlap(device.sort_into(line.along(0).with(line), order(), to), "bytes 0..24 and 20..44");
        assert_eq!(a.to_vec().unwrap(), data, "{device:?}");
    }
}

/// The documentation allows this: the input is read before the result is written.
#[test]
fn a_single_result_may_overwrite_an_input_element() {
    let _alone = alone();
    for user in users() {
        let device = user.open();
        let (data, _theirs, (a, mut b, mut words)) = numbered(&user, &device);
        let sum = data.iter().sum::<u32>();
        let mut takes = |at: usize, want: &[u32], run: &mut dyn FnMut(&mut Buffer<u32>, &mut Buffer<u64>)| {
            run(&mut b, &mut words);
            let place = at..at + want.len();
            assert_eq!(a.view(place.clone()).unwrap().to_vec().unwrap(), want, "{device:?}");
            device.copy(&data[place.clone()], b.view_mut(place).unwrap()).unwrap();
        };
        takes(5999, &[sum], &mut |b, _| {
            device.reduce_into(&a, Sum, b.view_mut(5999..).unwrap()).unwrap();
        });
        takes(16, &[sum, 0], &mut |_, words| {
            device.reduce_into(a.cast::<u64>(), Sum, words.view_mut(8..9).unwrap()).unwrap();
        });
        let squares = data.iter().fold(0u32, |sum, x| sum.wrapping_add(x.wrapping_mul(*x)));
        takes(0, &[squares], &mut |b, _| {
            device.reduce_into(a.times(&a), Sum, b.view_mut(..1).unwrap()).unwrap();
        });
        let union = Operator::new("union", 0u32, |a, b| a | b, "a | b");
        takes(1, &[8191], &mut |b, _| {
            device.reduce_into(&a, &union, b.view_mut(1..2).unwrap()).unwrap();
        });
        takes(2, &[5999, 0], &mut |_, words| {
            device.count_into(&a, NonZero, words.view_mut(1..2).unwrap()).unwrap();
        });
    }
}

#[test]
fn the_cpu_backend_has_no_opencl_objects() {
    let cpu = Device::cpu();
    assert_eq!(interop::queue(&cpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(interop::context(&cpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(interop::ocl_device(&cpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(interop::marker(&cpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(interop::wait_for(&cpu, &[]).unwrap_err().kind(), ErrorKind::Unsupported);
    // SAFETY: there is no memory object.
    let mem = unsafe { interop::mem(&cpu.zeroed::<u8>(1).unwrap()) };
    assert_eq!(mem.unwrap_err().kind(), ErrorKind::Unsupported);
}
