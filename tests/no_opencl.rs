//! Machines without OpenCL, with parts of it, or with a broken driver: the crate starts at once and falls back to the CPU.

mod common;

use std::{env, fs, path::PathBuf, process::Command, sync::Barrier, time::Duration};

use oclprim::{Device, ErrorKind, op::Sum};

/// Upper bound on any machine for process start, discovery and a small reduction.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The first calls of a user's program.
fn use_the_best_device() {
    let device = Device::best().expect("the CPU is always there");
    let total = device.reduce(&[1.5f32; 1000], Sum).expect("reductions run");
    common::answer(format!("{} {} {total}", device.is_cpu(), Device::list().len()));
}

/// Other tests may keep the machine busy, so the best of three runs counts.
fn falls_back_at_once(child: &mut Command) {
    let run = || {
        let (value, time) = common::run(child.env_remove("OCLPRIM_DEVICE"));
        assert_eq!(value, "true 1 1500");
        time
    };
    let time = std::iter::repeat_with(run).take(3).min().expect("three runs");
    assert!(time < AT_ONCE, "took {time:?}");
}

#[test]
fn without_a_loader_the_cpu_works_at_once() {
    if common::part().is_some() {
        return use_the_best_device();
    }
    falls_back_at_once(
        common::child("without_a_loader_the_cpu_works_at_once", "best")
            .env("OPENCL_LIBRARY", "/nonexistent/libOpenCL.so"),
    );
}

#[test]
fn without_a_driver_the_cpu_works_at_once() {
    if common::part().is_some() {
        return use_the_best_device();
    }
    falls_back_at_once(
        common::child("without_a_driver_the_cpu_works_at_once", "best").env("OCL_ICD_VENDORS", "/nonexistent"),
    );
}

/// The folder with the loader's list of drivers, if it exists.
fn vendors() -> Option<PathBuf> {
    let folder = env::var_os("OCL_ICD_VENDORS").map_or_else(|| "/etc/OpenCL/vendors".into(), PathBuf::from);
    folder.is_dir().then_some(folder)
}

#[test]
fn a_broken_driver_beside_good_ones_is_left_out() {
    const NAME: &str = "a_broken_driver_beside_good_ones_is_left_out";
    if common::part().is_some() {
        return common::answer(Device::list().len());
    }
    let Some(vendors) = vendors() else { return common::skip(NAME, "no folder of drivers") };
    let (good, _) = common::run(&mut common::child(NAME, "list"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for entry in fs::read_dir(vendors).expect("the folder is there") {
        let path = entry.expect("a readable folder").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    fs::write(folder.path().join("aa.icd"), "/nonexistent/libbroken.so\n").expect("written");
    fs::write(folder.path().join("zz.icd"), "not even a path\0\n").expect("written");
    let (with_broken, _) = common::run(common::child(NAME, "list").env("OCL_ICD_VENDORS", folder.path()));
    assert_eq!(with_broken, good);
}

/// The first discovery of some drivers is not thread-safe.
#[test]
fn discovery_from_many_threads_finds_the_same_devices() {
    const NAME: &str = "discovery_from_many_threads_finds_the_same_devices";
    const THREADS: usize = 16;
    match common::part().as_deref() {
        Some("threads") => {
            let barrier = Barrier::new(THREADS);
            let found: Vec<Vec<String>> = std::thread::scope(|scope| {
                let list = || {
                    barrier.wait();
                    let _ = Device::best();
                    Device::list().iter().map(ToString::to_string).collect()
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(list)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            assert!(found.iter().all(|names| *names == found[0]), "{found:?}");
            common::answer(found[0].len());
        }
        Some(_) => common::answer(Device::list().len()),
        None => {
            let (alone, _) = common::run(&mut common::child(NAME, "alone"));
            for _ in 0..5 {
                let (together, _) = common::run(&mut common::child(NAME, "threads"));
                assert_eq!(together, alone);
            }
        }
    }
}

#[test]
fn devices_are_opened_by_index_name_and_type() {
    let infos = Device::list();
    assert_eq!((infos[0].opencl, infos[0].platform.as_str()), (false, "rayon"));
    for (index, info) in infos.iter().enumerate() {
        let by_index = Device::open(&index.to_string()).expect("an index of the list");
        assert_eq!(by_index.info(), *info);
        let by_name = Device::open(&format!("  {}", info.to_string().to_uppercase())).expect("a name of the list");
        assert_eq!(by_name.info().to_string(), info.to_string());
    }
    assert!(Device::open("cpu").expect("the CPU backend").is_cpu());
    match Device::open("opencl") {
        Ok(device) => assert!(device.info().opencl),
        Err(error) => assert!(infos.len() == 1 && error.kind() == ErrorKind::NoDevice, "{error}"),
    }
    for selector in ["", "  ", "no such device", "99999", "-1", "99999999999999999999999", "3.5"] {
        let error = Device::open(selector).expect_err("no device fits");
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::NoDevice);
        assert!(infos.iter().all(|info| text.contains(&info.to_string())), "{text} does not list the devices");
    }
    assert_eq!(Device::at(infos.len()).expect_err("out of range").kind(), ErrorKind::NoDevice);
}

#[test]
fn the_environment_selects_the_device() {
    const NAME: &str = "the_environment_selects_the_device";
    if common::part().is_some() {
        return match Device::best() {
            Ok(device) => common::answer(device.info()),
            Err(error) => common::answer(format!("{:?}: {error}", error.kind())),
        };
    }
    for (index, info) in Device::list().iter().enumerate() {
        let (value, _) = common::run(common::child(NAME, "best").env("OCLPRIM_DEVICE", index.to_string()));
        assert_eq!(value, info.to_string());
    }
    let (value, _) = common::run(common::child(NAME, "best").env("OCLPRIM_DEVICE", "no such"));
    assert!(
        value.starts_with("NoDevice: no device fits `no such` of OCLPRIM_DEVICE; the devices are 0: rayon / CPU"),
        "{value}"
    );
    #[cfg(unix)]
    {
        let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"no\xff");
        let (value, _) = common::run(common::child(NAME, "best").env("OCLPRIM_DEVICE", name));
        assert!(value.starts_with("NoDevice: no device fits `no\u{fffd}` of OCLPRIM_DEVICE"), "{value}");
    }
}

/// A fake libOpenCL, which the link shim opens instead of the real one.
#[cfg(all(feature = "opencl", not(feature = "system-opencl"), target_os = "linux"))]
mod fake {
    use oclprim::{Device, op::Sum};

    use super::common;

    /// The answer of a child process with a fake libOpenCL.
    fn with_fake(test: &str, mode: &str) -> String {
        let mut child = common::child(test, "fake");
        let (value, _) = common::run(
            child
                .env("OPENCL_LIBRARY", common::fake::library("opencl", &[]))
                .env("FAKE_OPENCL", mode)
                .env_remove("OCLPRIM_DEVICE"),
        );
        value
    }

    #[test]
    fn unknown_statuses_leave_the_cpu() {
        const NAME: &str = "fake::unknown_statuses_leave_the_cpu";
        if common::part().is_some() {
            return super::use_the_best_device();
        }
        assert_eq!(with_fake(NAME, "platforms-fail"), "true 1 1500");
    }

    #[test]
    fn platforms_without_devices_leave_the_cpu() {
        const NAME: &str = "fake::platforms_without_devices_leave_the_cpu";
        if common::part().is_some() {
            return super::use_the_best_device();
        }
        assert_eq!(with_fake(NAME, "no-devices"), "true 1 1500");
    }

    #[test]
    fn a_device_that_does_not_open_is_an_error_with_its_status() {
        const NAME: &str = "fake::a_device_that_does_not_open_is_an_error_with_its_status";
        if common::part().is_some() {
            // The platform that fails to list its devices is left out; the other one has a GPU.
            assert_eq!(Device::list().len(), 2);
            let error = Device::open("gpu").expect_err("it does not open");
            assert!(Device::best().expect("the CPU is left").is_cpu());
            return common::answer(format!("{:?} {:?} {error}", error.kind(), error.status()));
        }
        assert_eq!(with_fake(NAME, "open-fails"), "Driver Some(-72) creating a context failed: unlisted status (-72)");
    }

    #[test]
    fn a_lost_device_is_an_error_and_no_abort() {
        const NAME: &str = "fake::a_lost_device_is_an_error_and_no_abort";
        if common::part().is_some() {
            let info = &Device::list()[1];
            assert_eq!((info.name.as_str(), info.version.as_str()), ("Fak\u{fffd} GPU 3090", "OpenCL 3.1 (Build 0)"));
            let device = Device::open("fak").expect("it opens");
            assert_eq!(Device::open("3090").expect("a model is no index").info(), *info);
            assert!(device.upload(&[1u8]).is_err());
            assert!(device.reduce(&[1u8], Sum).is_err());
            assert_eq!(device.finish().expect_err("it is lost").status(), Some(-1024));
            assert!(device.capabilities().is_err());
            assert!(Device::best().expect("the CPU is left").is_cpu());
            // Handles are dropped even if the driver refuses to release them.
            drop(device);
            return common::answer("still here");
        }
        assert_eq!(with_fake(NAME, "lost"), "still here");
    }

    /// Defect B36 of the original kernels: launches were unchecked, so a failed launch went unnoticed.
    #[test]
    fn a_launch_that_fails_is_an_error_with_its_status() {
        const NAME: &str = "fake::a_launch_that_fails_is_an_error_with_its_status";
        if common::part().is_some() {
            let device = Device::open("fak").expect("it opens");
            assert!(device.upload(&[1u8; 100]).is_ok());
            let error = device.reduce(&[1u8; 100], Sum).expect_err("no launch succeeds");
            let launch = error.to_string().contains("launching `");
            return common::answer(format!("{:?} {:?} {launch}: {error}", error.kind(), error.status()));
        }
        let found = with_fake(NAME, "launches-fail");
        assert!(found.starts_with("Driver Some(-9998) true"), "{found}");
    }

    #[test]
    fn pooled_memory_is_released_when_memory_is_short() {
        const NAME: &str = "fake::pooled_memory_is_released_when_memory_is_short";
        const MIB: usize = 1 << 20;
        if common::part().is_some() {
            // The input is uploaded before the driver fails to build a kernel; its buffer stays in the pool.
            let [first, second] = [0; 2].map(|_| Device::open("gpu").expect("it opens"));
            assert!(first.reduce(&vec![1u8; 24 * MIB], Sum).is_err());
            let kept = second.upload(&vec![1u8; 16 * MIB]).expect("the memory is there, with another handle's pool");
            assert!(first.upload(&vec![1u8; 24 * MIB]).is_err(), "more than there is");
            return common::answer(kept.len() / MIB);
        }
        assert_eq!(with_fake(NAME, "lazy"), "16");
    }

    #[test]
    fn a_failure_between_two_queues_is_reported_at_the_next_wait() {
        const NAME: &str = "fake::a_failure_between_two_queues_is_reported_at_the_next_wait";
        if common::part().is_some() {
            let [owner, user] = [0; 2].map(|_| Device::open("gpu").expect("it opens"));
            let x = owner.upload(&[1u8]).expect("it has memory");
            let mut y = user.upload(&[2u8]).expect("it has memory");
            // The call waits for the owner's queue, finds no compiler, and waits for its own queue, which fails.
            assert!(user.copy(&x, &mut y).is_err());
            let told = user.finish().expect_err("a failure").status();
            user.finish().expect("reported once only");
            return common::answer(format!("{told:?}"));
        }
        assert_eq!(with_fake(NAME, "finish-2-fails"), "Some(-1024)");
    }

    /// The buffer's own queue, which reads it later, cannot know of the failure.
    #[test]
    fn a_call_that_writes_another_queues_buffer_reports_its_failure() {
        const NAME: &str = "fake::a_call_that_writes_another_queues_buffer_reports_its_failure";
        if common::part().is_some() {
            let [owner, user] = [0; 2].map(|_| Device::open("gpu").expect("it opens"));
            let mut y = owner.upload(&[2u8]).expect("it has memory");
            // The call waits for the owner's queue, writes, and waits for its own queue, which fails.
            let told = user.copy(&[1u8], &mut y).expect_err("a failure").status();
            user.finish().expect("reported once only");
            return common::answer(format!("{told:?}"));
        }
        assert_eq!(with_fake(NAME, "finish-2-fails"), "Some(-1024)");
    }

    #[test]
    fn a_failure_is_reported_by_the_next_mapping() {
        const NAME: &str = "fake::a_failure_is_reported_by_the_next_mapping";
        if common::part().is_some() {
            let [owner, user] = [0; 2].map(|_| Device::open("gpu").expect("it opens"));
            let x = owner.upload(&[1u8]).expect("it has memory");
            let mut y = user.upload(&[2u8]).expect("it has memory");
            assert!(user.copy(&x, &mut y).is_err());
            let told = y.map_memory().expect_err("a failure").status();
            assert_eq!(y.map_memory().expect("reported once only").len(), 1);
            return common::answer(format!("{told:?}"));
        }
        assert_eq!(with_fake(NAME, "finish-2-fails"), "Some(-1024)");
    }
}

#[cfg(not(feature = "opencl"))]
#[test]
fn a_build_without_opencl_says_so() {
    let error = oclprim::Device::open("gpu").unwrap_err();
    assert_eq!(error.kind(), oclprim::ErrorKind::NoDevice);
    assert!(error.to_string().ends_with("this build lacks the feature `opencl`"), "{error}");
}
