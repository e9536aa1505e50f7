//! A driver fails or lies in one call. The operation then gives the right result or an error of one line, and the next one is
//! right. No wrong result of the self-test is stored, and no object leaks.
//!
//! `tests/fake/failing.rs` stands between the crate and the system's own loader. Each case makes a different call fail. The
//! long lists of cases are sampled, unless `OCLPRIM_FAILING_ALL` is set.
#![cfg(all(feature = "opencl", not(feature = "system-opencl"), target_os = "linux"))]

#[path = "common/child.rs"]
mod child;
#[path = "common/fake.rs"]
mod fake;
#[path = "common/skips.rs"]
mod skips;

use std::{
    cell::{Cell, RefCell},
    env,
    error::Error as _,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{self, Command},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use oclprim::{
    Bins, Capabilities, Device, DeviceClass, Error, ErrorKind, Order, Result, Source, Top, Tuning,
    interop::{self, ocl},
    op::{Map, Operator, Sum},
    tuning::Primitive,
};

/// Three kinds of shortage, and an unknown status.
const STATUSES: [i32; 4] = [-5, -6, -4, -9999];
/// Number of elements in the inputs: several tiles of each operation.
const N: usize = 50_021;
const ROWS: usize = 173;
/// A child that takes longer counts as hanging.
const LIMIT: Duration = Duration::from_secs(500);

#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Mode {
    Before,
    After,
    Size,
    Value,
    Always,
    Twice,
    Lost,
}

/// The functions of the failing library.
struct Failing {
    arm: extern "C" fn(usize, i32, Mode),
    calls: extern "C" fn() -> usize,
    failed: extern "C" fn() -> *const c_char,
    fired: extern "C" fn() -> usize,
    name: extern "C" fn(usize) -> *const c_char,
    alive: extern "C" fn(usize) -> i64,
    /// Mappings that the driver keeps because their unmap failed before it ran.
    mapped: Cell<i64>,
}

impl Failing {
    /// The failing library of this process, a child whose `OPENCL_LIBRARY` names it.
    fn open() -> Self {
        unsafe extern "C" {
            fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
            fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        }
        const RTLD_NOW: c_int = 2;
        let path = CString::new(env::var("OPENCL_LIBRARY").expect("the child of a test")).expect("no NUL");
        let symbol = |name: &CStr| {
            // SAFETY: both names end with a NUL; the library has no constructor of its own.
            let found = unsafe { dlsym(dlopen(path.as_ptr(), RTLD_NOW), name.as_ptr()) };
            assert!(!found.is_null(), "{path:?} has no {name:?}");
            found
        };
        // SAFETY: these are the types with which `tests/fake/failing.rs` defines them.
        unsafe {
            Self {
                arm: std::mem::transmute::<*mut c_void, extern "C" fn(usize, i32, Mode)>(symbol(c"failing_arm")),
                calls: std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(symbol(c"failing_calls")),
                failed: std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(symbol(c"failing_failed")),
                fired: std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(symbol(c"failing_fired")),
                name: std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> *const c_char>(symbol(
                    c"failing_name",
                )),
                alive: std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> i64>(symbol(c"failing_alive")),
                mapped: Cell::new(0),
            }
        }
    }

    /// The names of the OpenCL calls that `what` makes.
    fn calls_of(&self, what: impl FnOnce()) -> Vec<String> {
        (self.arm)(0, 0, Mode::Before);
        what();
        // SAFETY: the library holds a static name for each of these calls.
        let name = |call| unsafe { CStr::from_ptr((self.name)(call)) }.to_string_lossy().into_owned();
        (1..=(self.calls)()).map(name).collect()
    }

    /// Runs `what` while one call misbehaves. Returns the name of that call, or `None` if `what` made fewer calls.
    fn run<R>(&self, call: usize, status: i32, mode: Mode, what: impl FnOnce() -> R) -> (R, Option<String>) {
        (self.arm)(call, status, mode);
        let result = panic::catch_unwind(AssertUnwindSafe(what));
        let (failed, fired) = ((self.failed)(), (self.fired)());
        (self.arm)(0, 0, Mode::Before);
        // SAFETY: the pointer is not null here, so it is a static string of the library.
        let failed = (!failed.is_null()).then(|| unsafe { CStr::from_ptr(failed) }.to_string_lossy().into_owned());
        if failed.as_deref() == Some("clEnqueueUnmapMemObject") && matches!(mode, Mode::Before | Mode::Always) {
            self.mapped.set(self.mapped.get() + fired as i64);
        }
        let result = result.unwrap_or_else(|_| panic!("call {call}, {failed:?}, {mode:?} {status}: a panic"));
        (result, failed)
    }

    /// Contexts, queues, buffers, programs, kernels, events and mappings that are alive, without the mappings that a driver keeps.
    fn alive(&self) -> Vec<i64> {
        (0..6).map(|kind| (self.alive)(kind)).chain([(self.alive)(6) - self.mapped.get()]).collect()
    }
}

/// The ways in which a call misbehaves. It fails with a status before it runs, once or always, or after it has run. Or it
/// gives a wrong answer.
fn ways(call: usize) -> Vec<(i32, Mode)> {
    let mut ways: Vec<_> = STATUSES.into_iter().map(|status| (status, Mode::Before)).collect();
    // By default, `Always` takes one status. `After` takes this one and -4, which makes the crate try again.
    let some = if all() { STATUSES.to_vec() } else { vec![STATUSES[call % 4]] };
    ways.extend(some.iter().map(|&status| (status, Mode::Always)));
    ways.extend(some.into_iter().filter(|&status| status != -4).chain([-4]).map(|status| (status, Mode::After)));
    ways.push((0, Mode::Size));
    ways
}

fn all() -> bool {
    env::var_os("OCLPRIM_FAILING_ALL").is_some()
}

/// The numbers of about `most` of these calls: the first and the last of each name, and others at a fixed stride.
fn sampled(names: &[String], most: usize) -> Vec<usize> {
    let stride = if all() { 1 } else { names.len().div_ceil(most) };
    let chosen =
        |i: usize| i.is_multiple_of(stride) || !names[..i].contains(&names[i]) || !names[i + 1..].contains(&names[i]);
    (0..names.len()).filter(|&i| chosen(i)).map(|i| i + 1).collect()
}

/// A child on the failing library with its own cache; `None` if this machine has nothing to test.
fn failing_child(test: &str, part: &str, cache: &TempDir) -> Option<Command> {
    if Device::list().len() == 1 || !Path::new("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1").exists() {
        skips::skip(test, "no OpenCL device of the system's own loader");
        return None;
    }
    let library = fake::library("failing", &["-Clink-arg=-Wl,--no-as-needed", "-Clink-arg=-l:libOpenCL.so.1"]);
    let mut child = child::child(test, part);
    child.env("OPENCL_LIBRARY", library).env("OCLPRIM_CACHE_DIR", cache.path()).env_remove("OCLPRIM_DEVICE");
    Some(child)
}

/// Runs the test in a [`failing_child`], which runs at least `least` cases.
fn with_failing_driver(test: &str, least: usize) {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let Some(mut child) = failing_child(test, "child", &cache) else { return };
    let (done, time) = child::run(&mut child);
    println!("{done} in {time:?}");
    let cases: usize = done.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!(cases >= least, "only {cases} cases");
}

/// Ends this child if it hangs.
fn watch() {
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("the child hangs");
        process::abort();
    });
}

/// A user's objects on one device. The crate keeps no reference to them after its handle is dropped.
struct User {
    device: ocl::Device,
    context: ocl::Context,
    queue: ocl::Queue,
}

impl User {
    fn open(&self) -> Result<Device> {
        interop::device(self.device, &self.context, &self.queue)
    }
}

/// Calls `run` with a user's objects for each device; asserts that the crate leaks no object.
fn for_each_device(failing: &Failing, run: impl Fn(&User)) {
    // The first discovery runs in one thread.
    assert!(Device::list().len() > 1);
    let list = |platform| ocl::Device::list_all(platform).unwrap_or_default();
    for (platform, device) in ocl::Platform::list().into_iter().flat_map(|p| list(p).into_iter().map(move |d| (p, d))) {
        let before = failing.alive();
        let context = ocl::Context::builder().platform(platform).devices(device).build().unwrap();
        let queue = ocl::Queue::new(&context, device, None).unwrap();
        let user = User { device, context, queue };
        run(&user);
        drop(user);
        assert_eq!(failing.alive(), before, "contexts, queues, buffers, programs, kernels, events, mappings");
    }
}

/// The inputs of the operations.
struct Data {
    bits: Vec<u32>,
    /// 1 MiB and some elements.
    large: Vec<u32>,
    runs: Vec<u32>,
}

impl Data {
    fn new() -> Self {
        let bits: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ (i >> 3)).collect();
        let large = bits.iter().cycle().take((1 << 18) + 5).copied().collect();
        Self { large, runs: (0..N as u32).map(|i| i / 7 % 5).collect(), bits }
    }
}

/// An operation: its name, and a function that returns its result.
type Operation = (&'static str, fn(&Device, &Data) -> Result<Vec<u32>>);

/// Operations whose slices are larger than a chunk in the tests of staged transfers.
const TRANSFERS: [Operation; 6] = [
    OPERATIONS[0],
    ("write and read", |device, data| {
        let mut x = device.upload(&[7u32; N])?;
        x.view_mut(3..)?.write(&data.bits[3..])?;
        let mut all = data.bits.clone();
        x.view(1..)?.read(&mut all[1..])?;
        all[..3].copy_from_slice(&x.view(..3)?.to_vec()?);
        Ok(all)
    }),
    ("beside commands", |device, data| {
        let mut host = device.pinned(N)?;
        host.copy_from_slice(&data.bits);
        let (x, upload) = device.upload_async(host)?;
        let download = x.read_async(device.pinned(N)?)?;
        let sum = device.reduce(&x, Sum)?;
        let mut all = download.wait()?.to_vec();
        all.push(sum);
        drop(x);
        all.extend(upload.wait()?.iter());
        Ok(all)
    }),
    ("dropped handles", |device, data| {
        let mut host = device.pinned(N)?;
        host.copy_from_slice(&data.bits);
        let (x, upload) = device.upload_async(host)?;
        drop(upload);
        drop(x.read_async(device.pinned(N)?)?);
        // This reports what the drops could not return.
        device.finish()?;
        x.to_vec()
    }),
    ("scan of a slice", |device, data| {
        let mut sums = vec![0; N];
        device.scan_into(&data.bits, Sum, &mut sums).map(|()| sums)
    }),
    OPERATIONS[4],
];

/// Operations on slices that drivers for CPUs read in place.
const IN_PLACE: [Operation; 2] = [
    ("reduce of a large slice", |device, data| Ok(vec![device.reduce(&data.large, Sum)?])),
    ("scan of a large slice", |device, data| Ok(device.scan(&data.large, Sum)?.to_vec()?.split_off(N))),
];

const OPERATIONS: [Operation; 14] = [
    ("upload", |device, data| device.upload(&data.bits)?.to_vec()),
    ("fill", |device, _| device.filled(N, 7u32)?.to_vec()),
    ("map", |device, data| {
        let mut x = device.upload(&data.bits)?;
        x.map_memory_mut()?[3] = 5;
        let third = x.map_memory()?[3];
        let mut all = x.to_vec()?;
        all.push(third);
        Ok(all)
    }),
    ("copy", |device, data| {
        let (x, mut y) = (device.upload(&data.bits)?, device.zeroed::<u32>(N)?);
        device.copy(&x, &mut y)?;
        y.to_vec()
    }),
    ("reduce", |device, data| Ok(vec![device.reduce(&data.bits, Sum)?])),
    ("reduce a buffer", |device, data| Ok(vec![device.reduce(&device.upload(&data.bits)?, Sum)?])),
    ("scan", |device, data| device.scan(&data.bits, Sum)?.to_vec()),
    ("select", |device, data| device.select(&data.bits, &Map::new(|x: u32| x < 1 << 30, "x < 1u << 30"))?.to_vec()),
    ("sort", |device, data| device.sort(&data.bits, Order::ascending())?.to_vec()),
    ("reduce by key", |device, data| {
        let (keys, sums) = device.reduce(data.bits.by_key(&data.runs), Sum)?;
        Ok([keys.to_vec()?, sums.to_vec()?].concat())
    }),
    ("histogram", |device, data| {
        let found = device.histogram(&data.runs, &Bins::ids(5)?)?;
        Ok(found.counts.into_iter().map(|count| count as u32).collect())
    }),
    ("top-k", |device, data| device.top_k(&data.bits, Top::largest(100).sorted())?.to_vec()),
    ("transpose", |device, data| device.transpose(&data.bits[..ROWS * 289], (ROWS, 289))?.to_vec()),
    ("gather", |device, data| {
        let indices: Vec<u32> = data.bits.iter().map(|bits| bits % N as u32).collect();
        device.gather(&data.bits, &indices)?.to_vec()
    }),
];

fn is_one_line(error: &Error, what: &str) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains(['\n', '\r']), "{what}: {text:?}");
}

#[derive(Default)]
struct Tally {
    cases: usize,
    right: usize,
    errors: usize,
}

impl Tally {
    fn add(&mut self, right: bool) {
        self.cases += 1;
        *(if right { &mut self.right } else { &mut self.errors }) += 1;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cases: {} right, {} errors", self.cases, self.right, self.errors)
    }
}

/// One case: the operation gives the right result or an error, and the next run is right.
fn one_call_fails(
    failing: &Failing,
    device: &Device,
    (name, operation): &Operation,
    (data, want): (&Data, &[u32]),
    (call, status, mode): (usize, i32, Mode),
    tally: &mut Tally,
) {
    let (result, failed) = failing.run(call, status, mode, || operation(device, data));
    let Some(failed) = failed else { return };
    let what = format!("{name}, call {call} is {failed}, {mode:?} {status}");
    let right = result.is_ok();
    tally.add(right);
    match result {
        Ok(got) => assert!(got == want, "{what}: wrong"),
        Err(error) => is_one_line(&error, &what),
    }
    // A drop cannot return an error. So this call returns the failures of unmaps, of transfers, and of waits for commands that
    // read a slice in place.
    if let Err(error) = device.finish() {
        let once = !matches!(mode, Mode::Always | Mode::Lost);
        let of_drops = match *name {
            // "dropped handles" drops handles. "beside commands" drops them only after an error.
            "dropped handles" => &["clEnqueueUnmapMemObject", "clFinish", "clWaitForEvents"][..],
            "beside commands" if !once => &["clEnqueueUnmapMemObject", "clFinish", "clWaitForEvents"],
            _ => &["clEnqueueUnmapMemObject", "clFinish"],
        };
        assert!(of_drops.contains(&&*failed), "{what}: a later wait reports {error}");
        // A buffer whose unmap failed returns an error of its own.
        assert!(right || !once || failed == "clEnqueueUnmapMemObject", "{what}: two errors, the later one {error}");
        is_one_line(&error, &what);
    }
    let got = operation(device, data).unwrap_or_else(|error| panic!("{what}: the next run fails: {error}"));
    assert!(got == want, "{what}: the next run gives a wrong result");
}

/// Runs every case of each operation on devices that have already run it.
fn each_call_of_each_operation(operations: &[Operation], tuning: Option<Tuning>) {
    watch();
    let (failing, data) = (Failing::open(), Data::new());
    let tally = RefCell::new(Tally::default());
    for_each_device(&failing, |user| {
        for operation @ (name, run) in operations {
            let want = run(&Device::cpu(), &data).unwrap();
            let before = failing.alive();
            let device = match &tuning {
                Some(tuning) => user.open().unwrap().with_tuning(tuning.clone()).unwrap(),
                None => user.open().unwrap(),
            };
            for _ in 0..2 {
                assert!(run(&device, &data).unwrap() == want, "{name}: wrong without a failed call");
            }
            let calls = failing.calls_of(|| drop(run(&device, &data).unwrap())).len();
            let mut tally = tally.borrow_mut();
            for call in 1..=calls {
                for (status, mode) in ways(call) {
                    one_call_fails(&failing, &device, operation, (&data, &want), (call, status, mode), &mut tally);
                }
            }
            drop(device);
            assert_eq!(
                failing.alive(),
                before,
                "{name}: contexts, queues, buffers, programs, kernels, events, mappings"
            );
            println!("{name}: {calls} calls; {tally}");
        }
    });
    child::answer(tally.into_inner());
}

#[test]
fn an_operation_with_a_failed_call_is_right_or_an_error() {
    const NAME: &str = "an_operation_with_a_failed_call_is_right_or_an_error";
    match child::part() {
        None => with_failing_driver(NAME, 50),
        Some(_) => each_call_of_each_operation(&OPERATIONS, None),
    }
}

/// This geometry has work-groups that wait for one another, and last-block reductions.
#[test]
fn an_operation_with_a_failed_call_is_right_or_an_error_in_the_geometry_of_a_gpu() {
    const NAME: &str = "an_operation_with_a_failed_call_is_right_or_an_error_in_the_geometry_of_a_gpu";
    match child::part() {
        None => with_failing_driver(NAME, 50),
        Some(_) => each_call_of_each_operation(&OPERATIONS, Some(Tuning::default().class(DeviceClass::Gpu))),
    }
}

#[test]
fn a_staged_transfer_with_a_failed_call_is_right_or_an_error() {
    const NAME: &str = "a_staged_transfer_with_a_failed_call_is_right_or_an_error";
    match child::part() {
        None => with_failing_driver(NAME, 50),
        Some(_) => each_call_of_each_operation(&TRANSFERS, Some(staged())),
    }
}

/// Each call of a staged transfer that may leave a command running fails in turn, and then the wait for the queue fails. The
/// queue's error may be that of an earlier command, so the transfer is not repeated. The source of the transfer's error is
/// the queue's error.
#[test]
fn a_transfer_and_its_queue_with_failed_calls_are_one_error() {
    const NAME: &str = "a_transfer_and_its_queue_with_failed_calls_are_one_error";
    if child::part().is_none() {
        return with_failing_driver(NAME, 50);
    }
    watch();
    let (failing, data) = (Failing::open(), Data::new());
    let tally = RefCell::new(Tally::default());
    for_each_device(&failing, |user| {
        let device = user.open().unwrap().with_tuning(staged()).unwrap();
        for (name, run) in &TRANSFERS[..2] {
            let want = run(&Device::cpu(), &data).unwrap();
            assert!(run(&device, &data).unwrap() == want, "{name}: wrong without a failed call");
            let calls = failing.calls_of(|| drop(run(&device, &data).unwrap()));
            for (call, failed) in calls.iter().enumerate().filter(|(_, name)| *name != "clFinish") {
                for status in STATUSES {
                    let what = format!("{name}, call {} is {failed}, {status}", call + 1);
                    let (result, _) = failing.run(call + 1, status, Mode::Twice, || run(&device, &data));
                    tally.borrow_mut().add(result.is_ok());
                    match result {
                        Ok(got) => {
                            assert!(got == want && failed != "clWaitForEvents", "{what}: wrong, or a lost error")
                        }
                        Err(error) => {
                            is_one_line(&error, &what);
                            device.finish().unwrap_or_else(|later| panic!("{what}: {error}, and later {later}"));
                            if failed == "clWaitForEvents" {
                                let source =
                                    error.source().unwrap_or_else(|| panic!("{what}: {error}, without a source"));
                                assert!(source.to_string().contains("waiting for the queue"), "{what}: {source}");
                            }
                        }
                    }
                    assert!(run(&device, &data).expect(&what) == want, "{what}: the next run gives a wrong result");
                }
            }
            assert!(calls.iter().any(|name| name == "clWaitForEvents"), "{name} is not staged: {calls:?}");
        }
    });
    child::answer(tally.into_inner());
}

/// The queue is lost: each wait fails, although the commands have ended. The crate sees that they have ended, so it does not
/// abort the process.
#[test]
fn a_lost_queue_of_a_slice_in_place_is_an_error() {
    const NAME: &str = "a_lost_queue_of_a_slice_in_place_is_an_error";
    if child::part().is_none() {
        return with_failing_driver(NAME, 1);
    }
    watch();
    let (failing, data) = (Failing::open(), Data::new());
    let tally = RefCell::new(Tally::default());
    for_each_device(&failing, |user| {
        let device = user.open().unwrap();
        for operation @ (name, run) in &IN_PLACE {
            let want = run(&Device::cpu(), &data).unwrap();
            assert!(run(&device, &data).unwrap() == want, "{name}: wrong without a failed call");
            let calls = failing.calls_of(|| drop(run(&device, &data).unwrap()));
            for call in (1..=calls.len()).filter(|&call| ["clFinish", "clWaitForEvents"].contains(&&*calls[call - 1])) {
                for status in STATUSES {
                    let case = (call, status, Mode::Lost);
                    one_call_fails(&failing, &device, operation, (&data, &want), case, &mut tally.borrow_mut());
                }
            }
        }
    });
    child::answer(tally.into_inner());
}

/// The driver keeps a mapping, and then a download does not start. The download's own call returns the download's error. The
/// next call that waits returns the error of the mapping.
#[test]
fn an_overdue_error_outlives_a_download_that_does_not_start() {
    const NAME: &str = "an_overdue_error_outlives_a_download_that_does_not_start";
    if child::part().is_none() {
        return with_failing_driver(NAME, 4);
    }
    watch();
    let failing = Failing::open();
    let tally = RefCell::new(Tally::default());
    for_each_device(&failing, |user| {
        let device = user.open().unwrap();
        let x = device.upload(&[1u32, 2, 3]).unwrap();
        let start = || x.read_async(device.pinned(3)?).map(drop);
        start().unwrap();
        for call in 1..=failing.calls_of(|| start().unwrap()).len() {
            let y = device.upload(&[1u32, 2, 3]).unwrap();
            let unmaps = failing.calls_of(|| drop(y.map_memory().unwrap()));
            let unmap = unmaps.iter().rposition(|name| name == "clEnqueueUnmapMemObject").unwrap() + 1;
            failing.run(unmap, -9999, Mode::Before, || drop(y.map_memory().unwrap()));
            let (started, failed) = failing.run(call, -5, Mode::Before, start);
            tally.borrow_mut().add(started.is_ok());
            let what = format!("call {call} is {failed:?}: {started:?}");
            let overdue = device.finish().expect_err(&what);
            assert_eq!(overdue.status(), Some(-9999), "{what}: {overdue}");
            device.finish().expect(&what);
        }
    });
    child::answer(tally.into_inner());
}

/// The ring has two chunks, and each slice is larger than the ring. An input arrives in parts.
fn staged() -> Tuning {
    let set = [("chunk_bytes", 1 << 16), ("chunks", 2), ("threads", 2), ("min_bytes", 1 << 16)];
    let staged = Tuning::default().class(DeviceClass::Gpu).staged(None).parts(1 << 16);
    set.into_iter().fold(staged, |all, (name, value)| all.set(Primitive::Transfer, name, value))
}

/// These calls also wait for their commands when they drop the buffer over the slice.
#[test]
fn an_operation_on_a_slice_in_place_with_a_failed_call_is_right_or_an_error() {
    const NAME: &str = "an_operation_on_a_slice_in_place_with_a_failed_call_is_right_or_an_error";
    match child::part() {
        None => with_failing_driver(NAME, 50),
        Some(_) => each_call_of_each_operation(&IN_PLACE, None),
    }
}

/// The first operation also builds programs and queries the limits of kernels.
#[test]
fn a_first_operation_with_a_failed_call_is_right_or_an_error() {
    const NAME: &str = "a_first_operation_with_a_failed_call_is_right_or_an_error";
    if child::part().is_none() {
        return with_failing_driver(NAME, 50);
    }
    watch();
    let (failing, data) = (Failing::open(), Data::new());
    let tally = RefCell::new(Tally::default());
    for_each_device(&failing, |user| {
        // Runs the self-test first.
        user.open().unwrap().capabilities().unwrap();
        for operation @ (name, run) in OPERATIONS.iter().filter(|(name, _)| ["reduce", "select", "sort"].contains(name))
        {
            let want = run(&Device::cpu(), &data).unwrap();
            let first = || user.open().and_then(|device| run(&device, &data));
            let calls = failing.calls_of(|| assert!(first().unwrap() == want));
            for call in sampled(&calls, 10) {
                let some = if all() { 1 } else { 3 };
                for (status, mode) in ways(call).into_iter().skip(call % some).step_by(some) {
                    let before = failing.alive();
                    let (opened, failed) =
                        failing.run(call, status, mode, || user.open().map(|device| (run(&device, &data), device)));
                    let Some(failed) = failed else { continue };
                    let what = format!("first {name}, call {call} is {failed}, {mode:?} {status}");
                    let (result, device) = opened.unwrap_or_else(|error| (Err(error), user.open().unwrap()));
                    tally.borrow_mut().add(result.is_ok());
                    match result {
                        Ok(got) => assert!(got == want, "{what}: wrong"),
                        Err(error) => is_one_line(&error, &what),
                    }
                    assert!(
                        operation.1(&device, &data).expect(&what) == want,
                        "{what}: the next run gives a wrong result"
                    );
                    drop(device);
                    assert_eq!(
                        failing.alive(),
                        before,
                        "{what}: contexts, queues, buffers, programs, kernels, events, mappings"
                    );
                }
            }
        }
    });
    child::answer(tally.into_inner());
}

/// The entries of a kind in this process's cache.
fn entries(kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = env::var("OCLPRIM_CACHE_DIR").unwrap();
    let paths = fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path());
    let entries = paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(kind));
    let mut entries: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    entries.sort();
    entries
}

fn remove_entries(kind: &str) {
    entries(kind).into_iter().for_each(|(path, _)| fs::remove_file(path).unwrap());
}

#[test]
fn a_failed_call_in_the_self_test_changes_no_verdict() {
    const NAME: &str = "a_failed_call_in_the_self_test_changes_no_verdict";
    if child::part().is_none() {
        return with_failing_driver(NAME, 30);
    }
    watch();
    let failing = Failing::open();
    let tally = RefCell::new(Tally::default());
    for_each_device(&failing, |user| {
        let probe = |device: &Device| -> Result<Capabilities> { Ok(device.capabilities()?.expect("an OpenCL device")) };
        remove_entries("selftest-");
        let want = probe(&user.open().unwrap()).unwrap();
        let stored = entries("selftest-");
        assert_eq!(stored.len(), 1);
        remove_entries("selftest-");
        let calls = failing.calls_of(|| drop(probe(&user.open().unwrap()).unwrap()));
        for (case, call) in sampled(&calls, 30).into_iter().enumerate() {
            let mut ways = ways(call);
            if !all() {
                ways = vec![ways.swap_remove(case % ways.len())];
            }
            for (status, mode) in ways {
                remove_entries("selftest-");
                let before = failing.alive();
                let (opened, failed) =
                    failing.run(call, status, mode, || user.open().map(|device| (probe(&device), device)));
                let Some(failed) = failed else { continue };
                let what = format!("self-test, call {call} is {failed}, {mode:?} {status}");
                let (result, device) = opened.unwrap_or_else(|error| (Err(error), user.open().unwrap()));
                tally.borrow_mut().add(result.is_ok());
                match result {
                    Ok(got) => assert_eq!(got, want, "{what}"),
                    Err(error) => {
                        is_one_line(&error, &what);
                        assert!(entries("selftest-").is_empty(), "{what}: stored");
                    }
                }
                // The result is stored only if every call ran. The crate repeats these calls, because they have no side effects.
                let repeated =
                    ["clCreateBuffer", "clEnqueueReadBuffer", "clEnqueueWriteBuffer"].contains(&failed.as_str());
                if !repeated && !failed.starts_with("clGet") {
                    assert!(entries("selftest-").is_empty(), "{what}: stored after a failure");
                }
                assert!(
                    entries("selftest-").is_empty() || entries("selftest-") == stored,
                    "{what}: another verdict is stored"
                );
                assert_eq!(probe(&device).expect(&what), want, "{what}: the next verdict");
                drop(device);
                assert_eq!(
                    failing.alive(),
                    before,
                    "{what}: contexts, queues, buffers, programs, kernels, events, mappings"
                );
            }
        }
        println!("{} calls; {}", calls.len(), tally.borrow());
    });
    child::answer(tally.into_inner());
}

/// A call fails, or it reports four billion platforms, a name of exabytes, or numbers of all ones. The other devices work.
#[test]
fn a_driver_that_fails_or_lies_at_discovery_is_right_or_left_out() {
    const NAME: &str = "a_driver_that_fails_or_lies_at_discovery_is_right_or_left_out";
    if let Some(part) = child::part() {
        watch();
        let failing = Failing::open();
        let numbers: Vec<i32> = part.split(' ').map(|number| number.parse().unwrap()).collect();
        let mode = [Mode::Before, Mode::After, Mode::Size, Mode::Value][numbers[2] as usize];
        let list = || {
            let list = Device::list();
            if let Err(error) = Device::at(1) {
                is_one_line(&error, &part);
            }
            (list, (failing.calls)())
        };
        let ((list, calls), failed) = failing.run(numbers[0] as usize, numbers[1], mode, list);
        let error = Device::open("no such device").unwrap_err();
        is_one_line(&error, &part);
        for index in 1..list.len() {
            let device = Device::at(index).unwrap();
            match device.reduce(&[1u32, 2, 3], Sum) {
                Ok(sum) => assert_eq!(sum, 6, "{part}"),
                Err(error) => is_one_line(&error, &part),
            }
        }
        return child::answer(format!("{calls} {} {} {error}", list.len(), failed.unwrap_or_default()));
    }
    let cache = tempfile::tempdir().expect("a temporary folder");
    // Returns the number of calls, the number of devices, the name of the misbehaving call, and the error.
    let run = |call: usize, status: i32, mode: Mode| -> Option<(usize, usize, String, String)> {
        let mut child = failing_child(NAME, &format!("{call} {status} {}", mode as u32), &cache)?;
        let (answer, _) = child::run(&mut child);
        let mut words = answer.splitn(4, ' ');
        let mut number = || words.next().unwrap().parse().unwrap();
        let (calls, devices) = (number(), number());
        Some((calls, devices, words.next().unwrap().to_owned(), words.next().unwrap().to_owned()))
    };
    let Some((calls, devices, ..)) = run(0, 0, Mode::Before) else { return };
    assert!(calls > 10 && devices > 1, "{calls} calls, {devices} devices");
    let stride = if all() { 1 } else { calls.div_ceil(40) };
    for call in (1..=calls).step_by(stride) {
        let (_, found, failed, error) = run(call, STATUSES[call % 4], Mode::Before).unwrap();
        assert_eq!(found, devices, "call {call}, {failed}: a query was not repeated: {error}");
        let (_, found, failed, error) = run(call, 0, Mode::Size).unwrap();
        let refused = error.contains("the driver reports 4294967295 ") && error.contains(", the limit is 1024")
            || error.contains("the driver reports 9223372036854775807 bytes for ")
                && error.contains(", the limit is 65536");
        assert!(if found == devices { !refused } else { refused }, "call {call}, {failed}, {found}: {error}");
        run(call, 0, Mode::Value).unwrap();
    }
    let (_, found, failed, error) = run(1, 0, Mode::Size).unwrap();
    assert_eq!((found, failed.as_str()), (1, "clGetPlatformIDs"));
    assert!(error.contains("the driver reports 4294967295 platforms, the limit is 1024"), "{error}");
}

/// The error is that of a failed build; its log may be missing.
#[test]
fn a_build_log_of_exabytes_is_not_read() {
    const NAME: &str = "a_build_log_of_exabytes_is_not_read";
    if child::part().is_none() {
        return with_failing_driver(NAME, 1);
    }
    watch();
    let failing = Failing::open();
    let (cases, refused) = (Cell::new(0), Cell::new(0));
    for_each_device(&failing, |user| {
        let device = user.open().unwrap();
        device.reduce(&[1u32, 2], Sum).unwrap();
        let wrong = Operator::new("wrong", 0u32, |a: u32, b: u32| a | b, "a or b");
        let build = || device.reduce(&[1u32, 2], &wrong).unwrap_err();
        for call in 1..=failing.calls_of(|| drop(build())).len() {
            let (error, Some(failed)) = failing.run(call, 0, Mode::Size, build) else { continue };
            is_one_line(&error, &failed);
            assert!(error.kind() == ErrorKind::Build, "{failed}: {error}");
            cases.set(cases.get() + 1);
            if error
                .to_string()
                .contains("the driver reports 9223372036854775807 bytes for the log of a build, the limit is 16777216")
            {
                refused.set(refused.get() + 1);
            }
        }
        assert_eq!(build().kind(), ErrorKind::Build);
    });
    assert!(refused.get() > 0, "no log of {} answers was refused", cases.get());
    child::answer(cases.get());
}

/// Covers drivers that give binaries and those that do not.
#[test]
fn a_binary_of_exabytes_is_not_stored() {
    const NAME: &str = "a_binary_of_exabytes_is_not_stored";
    if child::part().is_none() {
        return with_failing_driver(NAME, 1);
    }
    watch();
    let failing = Failing::open();
    let cases = Cell::new(0);
    for_each_device(&failing, |user| {
        let sum = || user.open()?.reduce(&[1u32, 2], Sum);
        let first = || {
            remove_entries("program-");
            sum()
        };
        assert_eq!(sum().unwrap(), 3);
        let calls = failing.calls_of(|| assert_eq!(first().unwrap(), 3));
        let sizes = || entries("program-").into_iter().map(|(path, bytes)| (path, bytes.len())).collect::<Vec<_>>();
        let stored = sizes();
        cases.set(cases.get() + 1);
        for call in (1..=calls.len()).filter(|call| calls[call - 1] == "clGetProgramInfo") {
            for mode in [Mode::Size, Mode::Value] {
                assert_eq!(failing.run(call, 0, mode, first).0.unwrap(), 3);
                // Only sizes are compared, because some compilers write different bytes each time.
                let now = sizes();
                assert!(now.is_empty() || now == stored, "call {call}: {now:?} is stored instead of {stored:?}");
                assert_eq!(sum().unwrap(), 3, "call {call}: with the binary that was stored");
                cases.set(cases.get() + 1);
            }
        }
        println!("{} calls, {} binaries", calls.len(), stored.len());
    });
    child::answer(cases.get());
}
