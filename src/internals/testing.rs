//! Comparison of results with references, for tests and checks.

use std::{env, fs, io::Write, ops::Range};

use crate::{Device, DeviceClass, Error, ErrorKind, Result, runtime::Backend};

/// The reason why a check failed.
///
/// ```
/// use oclprim::{Device, internals::testing::Failure};
///
/// fn first_is_largest(device: &Device, x: &[u8]) -> Result<(), Failure> {
///     let at = device.arg_max(x)?.index; // an error of the crate becomes a failure
///     if at == 0 { Ok(()) } else { Err(Failure::Mismatch(format!("the largest is x[{at}]"))) }
/// }
///
/// assert!(matches!(first_is_largest(&Device::cpu(), &[1, 2]), Err(Failure::Mismatch(_))));
/// assert!(matches!(first_is_largest(&Device::cpu(), &[]), Err(Failure::Error(_))));
/// ```
#[derive(Debug)]
pub enum Failure {
    /// The device's result differs from the reference; the text says where and how.
    Mismatch(String),
    /// The device returned an error.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// `device` with kernels of `class`, which drivers build with `-cl-denorms-are-zero`: then they may flush subnormals. The
/// crate takes subnormals as kept if `mistaken`, and otherwise as flushed. `None` for the CPU backend.
///
/// ```
/// use oclprim::{Device, DeviceClass, internals::testing::flushing};
///
/// assert!(flushing(&Device::cpu(), DeviceClass::Gpu, false)?.is_none());
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn flushing(device: &Device, class: DeviceClass, mistaken: bool) -> Result<Option<Device>> {
    let Backend::OpenCl(cl) = device.backend() else { return Ok(None) };
    let mut caps = cl.capabilities()?.as_ref().clone();
    (caps.class, caps.denormals) = (class, mistaken);
    caps.c_standard += " -cl-denorms-are-zero";
    Ok(Some(Device::from_cl(cl.with_capabilities(caps))))
}

/// Number of buffers that were allocated through the queue of a device; 0 for the CPU.
///
/// ```
/// let device = oclprim::Device::best()?;
/// let before = oclprim::internals::testing::allocations(&device);
/// device.zeroed::<u8>(1)?;
/// let allocated = oclprim::internals::testing::allocations(&device) - before;
/// assert_eq!(allocated, usize::from(!device.is_cpu()));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn allocations(device: &Device) -> usize {
    match device.backend() {
        Backend::Cpu => 0,
        Backend::OpenCl(device) => device.allocations(),
    }
}

/// Compares bit for bit, with all NaNs equal, and reports the first difference.
///
/// ```
/// use oclprim::internals::testing::{Failure, same};
///
/// assert!(same(&[1.0f32, f32::NAN], &[1.0, f32::NAN], "y").is_ok());
/// let Err(Failure::Mismatch(text)) = same(&[1u8, 2], &[1, 3], "y") else { panic!() };
/// assert_eq!(text, "y[1] is 2 instead of 3 (1 of 2 differ)");
/// ```
pub fn same<T: crate::Element>(got: &[T], want: &[T], what: &str) -> Result<(), Failure> {
    if got.len() != want.len() {
        return Err(Failure::Mismatch(format!("{what}: {} elements instead of {}", got.len(), want.len())));
    }
    let parts = crate::parallel::parts(got.len(), 1 << 16);
    let first = |part: &Range<usize>| {
        let (got, want) = (&got[part.clone()], &want[part.clone()]);
        // Fast path: no differences.
        if bytemuck::cast_slice::<T, u8>(got) == bytemuck::cast_slice::<T, u8>(want) {
            return None;
        }
        got.iter().zip(want).position(|(a, b)| !a.same(*b)).map(|i| part.start + i)
    };
    match crate::parallel::map(parts.len(), &|i| first(&parts[i]))?.into_iter().flatten().next() {
        None => Ok(()),
        Some(i) => {
            let wrong = got.iter().zip(want).filter(|(a, b)| !a.same(**b)).count();
            let (a, b) = (got[i], want[i]);
            Err(Failure::Mismatch(format!("{what}[{i}] is {a:?} instead of {b:?} ({wrong} of {} differ)", got.len())))
        }
    }
}

/// Compares plain data byte for byte, and reports the first difference.
///
/// ```
/// assert!(oclprim::internals::testing::same_bytes(&[[1u8, 2]], &[[1, 2]], "pairs").is_ok());
/// assert!(oclprim::internals::testing::same_bytes(&[0.0f32], &[-0.0], "zeros").is_err());
/// ```
pub fn same_bytes<T: bytemuck::Pod + std::fmt::Debug>(got: &[T], want: &[T], what: &str) -> Result<(), Failure> {
    if got.len() != want.len() {
        return Err(Failure::Mismatch(format!("{what}: {} elements instead of {}", got.len(), want.len())));
    }
    // Fast path: no differences.
    if bytemuck::cast_slice::<T, u8>(got) == bytemuck::cast_slice::<T, u8>(want) {
        return Ok(());
    }
    let differs = |(a, b): &(&T, &T)| bytemuck::bytes_of(*a) != bytemuck::bytes_of(*b);
    match got.iter().zip(want).position(|pair| differs(&pair)) {
        None => Ok(()),
        Some(i) => {
            let wrong = got.iter().zip(want).filter(differs).count();
            let (a, b) = (&got[i], &want[i]);
            Err(Failure::Mismatch(format!("{what}[{i}] is {a:?} instead of {b:?} ({wrong} of {} differ)", got.len())))
        }
    }
}

/// Compares a float with the expected value, within a bound on the error. Infinities and NaN must match exactly.
///
/// ```
/// use oclprim::internals::testing::close;
///
/// assert!(close(1.5f32, 1.0, 0.5, "y").is_ok() && close(1.5f32, 1.0, 0.4, "y").is_err());
/// assert!(close(0.0f32, f64::INFINITY, f64::INFINITY, "y").is_err());
/// assert!(close(f32::NAN, f64::NAN, 0.0, "y").is_ok());
/// ```
pub fn close<T: crate::Element>(got: T, want: f64, bound: f64, what: &str) -> Result<(), Failure> {
    let got = got.to_f64();
    let near = want.is_finite() && (got - want).abs() <= bound;
    if near || got == want || (got.is_nan() && want.is_nan()) {
        Ok(())
    } else {
        Err(Failure::Mismatch(format!("{what} is {got:e} instead of {want:e}, beyond the bound of {bound:e}")))
    }
}

/// The result of a check that every device must support: an unsupported operation is a failure, not a skip.
pub fn everywhere(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Error(error)) if error.kind() == ErrorKind::Unsupported => {
            Err(Failure::Mismatch(format!("error: {error}")))
        }
        result => result,
    }
}

/// The value with which outputs are filled before a call. In every type, it is neither NaN nor 0, and some bits are not
/// set.
///
/// ```
/// assert_eq!(oclprim::internals::testing::poison::<[u8; 3]>(), [0xA5; 3]);
/// ```
pub fn poison<T: bytemuck::Pod>() -> T {
    bytemuck::pod_read_unaligned(&vec![0xA5; size_of::<T>()])
}

/// Number of guard elements on each side of an output; they must not change.
///
/// ```
/// use oclprim::{Device, internals::testing::{CANARY, Failure, guarded}};
///
/// let device = Device::cpu();
/// let refused = guarded::<u8>(&device, 3, 0, |view| {
///     assert_eq!((view.as_view().offset(), view.as_view().buffer().len()), (CANARY, 2 * CANARY + 3));
///     Err(Failure::Mismatch("nothing was written".into()))
/// });
/// assert!(refused.is_err());
/// ```
pub const CANARY: usize = 64;

/// Runs `write` on a view of `len` poisoned elements at `offset` in a larger buffer, and checks that no element around
/// the view changes. Returns the view's elements.
///
/// ```
/// use oclprim::{Device, internals::testing::guarded};
///
/// let device = Device::best()?;
/// let written = guarded(&device, 3, 1, |mut view| Ok(view.fill(7u16)?));
/// assert_eq!(written.unwrap(), [7, 7, 7]);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn guarded<T: bytemuck::Pod + PartialEq>(
    device: &Device,
    len: usize,
    offset: usize,
    write: impl FnOnce(crate::ViewMut<'_, T>) -> Result<(), Failure>,
) -> Result<Vec<T>, Failure> {
    let mut write = Some(write);
    written(device, len, offset, &mut |view| match write.take() {
        Some(write) => write(view),
        None => Ok(()),
    })
}

/// [`guarded`], compiled once for each type, not for each closure.
fn written<T: bytemuck::Pod>(
    device: &Device,
    len: usize,
    offset: usize,
    write: &mut dyn FnMut(crate::ViewMut<'_, T>) -> Result<(), Failure>,
) -> Result<Vec<T>, Failure> {
    let (poison, start) = (poison::<T>(), CANARY + offset);
    let end = start + len;
    let mut buffer = device.upload(&vec![poison; end + CANARY])?;
    write(buffer.view_mut(start..end)?)?;
    let mut all = buffer.to_vec()?;
    let dirty = |x: &T| bytemuck::bytes_of(x) != bytemuck::bytes_of(&poison);
    if let Some(i) = all[end..].iter().position(dirty) {
        return Err(Failure::Mismatch(format!("wrote {} elements past the end of the output", i + 1)));
    }
    if let Some(i) = all[..start].iter().position(dirty) {
        return Err(Failure::Mismatch(format!("wrote {} elements before the output", start - i)));
    }
    all.truncate(end);
    Ok(all.split_off(start))
}

/// The value of a result; `None` for an error.
///
/// # Panics
///
/// Panics if the error is not one line.
#[doc(hidden)]
pub fn accepted<T>(result: crate::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            None
        }
    }
}

/// Logs that a part of a test did not run, to the file named by `OCLPRIM_SKIP_LOG`, whose lines `scripts/test` counts.
#[doc(hidden)]
pub fn log_skip(test: &str, reason: &str) {
    let Some(path) = env::var_os("OCLPRIM_SKIP_LOG") else { return };
    let log = fs::OpenOptions::new().create(true).append(true).open(path);
    log.and_then(|mut log| writeln!(log, "{test}\t{reason}")).expect("the skip log can be written");
}
