//! Runs primitives inside a program that uses `ocl`: on its queue, on its buffers, and in order with its own kernel.
//!
//! `cargo run --release --example interop`

use oclprim::{
    Device,
    interop::{self, ocl},
    op::Sum,
};

const SQUARES: &str = "__kernel void squares(__global uint* x) { uint i = get_global_id(0); x[i] = i * i; }";
const N: usize = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `ocl` panics if there is no driver, so ask the crate first.
    if Device::list().iter().all(|info| !info.opencl) {
        println!("no OpenCL device here: nothing to share");
        return Ok(());
    }
    let found = ocl::Platform::list().into_iter().find_map(|platform| {
        let devices = ocl::Device::list_all(platform).ok()?;
        devices.first().map(|&device| (platform, device))
    });
    let (platform, theirs) = found.ok_or("no device")?;

    // These are objects that a program already has.
    let context = ocl::Context::builder().platform(platform).devices(theirs).build()?;
    let queue = ocl::Queue::new(&context, theirs, None)?;
    let other = ocl::Queue::new(&context, theirs, None)?;
    let program = ocl::Program::builder().src(SQUARES).devices(theirs).build(&context)?;
    let numbers = ocl::Buffer::<u32>::builder().queue(other.clone()).len(N).build()?;
    let mut kernel = ocl::Kernel::builder();
    kernel.program(&program).name("squares").queue(other.clone()).global_work_size(N).arg(&numbers);
    let kernel = kernel.build()?;

    // The crate uses the same context and one of the program's queues.
    let device = interop::device(theirs, &context, &queue)?;
    println!("device: {}", device.info());
    // SAFETY: the kernel below finishes before a primitive reads `numbers`, and nothing else uses it.
    let x = unsafe { interop::buffer(&device, &numbers)? };

    // First the program's kernel runs. Then a primitive waits for it on the device.
    let mut squared = ocl::Event::empty();
    // SAFETY: the kernel writes N elements, which the buffer has.
    unsafe { kernel.cmd().enew(&mut squared).enq()? };
    interop::wait_for(&device, &[squared])?;
    let total = device.reduce(&x, Sum)?;
    println!("the squares of the integers below {N} sum to {total}");
    assert_eq!(total, 332_833_500);

    // First a primitive runs. Then a command of the program waits for it on the device.
    let moved = ocl::Buffer::<u32>::builder().queue(other.clone()).len(N).build()?;
    // SAFETY: `moved` is read only after the copy into it.
    let mut out = unsafe { interop::buffer(&device, &moved)? };
    device.copy(x.view(1..)?, out.view_mut(..N - 1)?)?;
    let copied = interop::marker(&device)?;
    let mut last = [0];
    moved.cmd().read(&mut last[..]).offset(N - 2).ewait(&copied).enq()?;
    println!("after a copy one index down, the last element is {}", last[0]);
    assert_eq!(last[0], 998_001);
    Ok(())
}
