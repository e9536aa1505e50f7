//! The crate's only error type.

use std::{error, fmt};

/// A result with the crate's [`Error`].
///
/// ```
/// fn total(x: &[u32]) -> oclprim::Result<u32> {
///     oclprim::Device::best()?.reduce(x, oclprim::op::Sum)
/// }
/// assert_eq!(total(&[1, 2])?, 3);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error, coarse enough for a program to act on.
///
/// ```
/// use oclprim::{Device, ErrorKind};
///
/// let device = Device::open("no such device").or_else(|error| match error.kind() {
///     ErrorKind::NoDevice => Ok(Device::cpu()),
///     _ => Err(error),
/// })?;
/// assert!(device.is_cpu());
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No device fits the request, or no OpenCL driver is installed.
    NoDevice,
    /// The device lacks something that the request needs, such as fp64.
    Unsupported,
    /// An argument is invalid, such as a range that exceeds a buffer; the message has the numbers.
    InvalidInput,
    /// The input is empty, and the operation, such as arg-min, has no result for empty input.
    Empty,
    /// An allocation failed, or is larger than the device allows.
    OutOfMemory,
    /// The driver failed to build a kernel; [`Error::build_log`] has the compiler's output.
    Build,
    /// The driver returned a status that no other kind describes.
    Driver,
    /// Reading or writing a file failed.
    Io,
}

/// The cause of a failure: a [kind](Error::kind) and a one-line message that has the numbers.
///
/// ```
/// use oclprim::{Device, ErrorKind};
///
/// let error = Device::cpu().arg_min(&[0f32; 0]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Empty);
/// assert_eq!(error.to_string(), "arg-min of 0 elements has no answer");
/// assert_eq!((error.status(), error.build_log()), (None, None)); // no driver took part
/// ```
pub struct Error(Repr);

enum Repr {
    /// An allocation of `len` elements of `size` bytes failed. This variant allocates nothing itself, since a second
    /// failed allocation would end the process.
    Short {
        len: usize,
        size: usize,
    },
    Full(Box<Inner>),
}

struct Inner {
    kind: ErrorKind,
    message: String,
    status: Option<i32>,
    log: Option<String>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Repr::Full(Box::new(Inner { kind, message, status: None, log: None, source: None })))
    }

    /// The error of a failed allocation of `len` elements of `size` bytes.
    pub(crate) fn short(len: usize, size: usize) -> Self {
        Self(Repr::Short { len, size })
    }

    fn inner(&self) -> Option<&Inner> {
        match &self.0 {
            Repr::Short { .. } => None,
            Repr::Full(inner) => Some(inner),
        }
    }

    /// Adds a status, a log or a source. The error of a failed allocation stores none of them.
    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Repr::Full(inner) = &mut self.0 {
            change(inner);
        }
        self
    }

    #[doc(hidden)]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    #[doc(hidden)]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    #[cfg(any(test, feature = "opencl"))]
    pub(crate) fn with_status(self, status: i32) -> Self {
        self.with(|inner| inner.status = Some(status))
    }

    #[cfg(any(test, feature = "opencl"))]
    pub(crate) fn with_log(self, log: String) -> Self {
        self.with(|inner| inner.log = Some(log))
    }

    pub(crate) fn with_source(self, source: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        self.with(|inner| inner.source = Some(source.into()))
    }

    /// The class of the failure.
    ///
    /// ```
    /// use oclprim::{Device, ErrorKind};
    ///
    /// let nothing: [u8; 0] = [];
    /// assert_eq!(Device::cpu().arg_max(&nothing).unwrap_err().kind(), ErrorKind::Empty);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.inner().map_or(ErrorKind::OutOfMemory, |inner| inner.kind)
    }

    /// The OpenCL status code that the driver returned, if one did.
    ///
    /// ```
    /// use oclprim::Layout;
    ///
    /// assert_eq!(Layout::contiguous(&[usize::MAX, 2]).unwrap_err().status(), None);
    /// ```
    pub fn status(&self) -> Option<i32> {
        self.inner()?.status
    }

    /// The compiler's output if a kernel failed to build.
    ///
    /// ```
    /// use oclprim::{Device, ErrorKind, op::Operator};
    ///
    /// let wrong = Operator::new("wrong", 0u32, |a, b| a | b, "a or b");
    /// if let Err(error) = Device::best()?.reduce(&[1, 2], &wrong) {
    ///     assert_eq!(error.kind(), ErrorKind::Build);
    ///     println!("{error}: {:?}\n{}", error.status(), error.build_log().unwrap_or_default());
    /// }
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn build_log(&self) -> Option<&str> {
        self.inner()?.log.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Short { len, size } => {
                write!(f, "allocating {} bytes of host memory failed", *len as u128 * *size as u128)
            }
            Repr::Full(inner) => f.write_str(&inner.message),
        }
    }
}

/// Text for people, since a failing `main` prints it: the kind, the message and the build log if any.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())?;
        if let Some(status) = self.status().map(|status| status.to_string())
            && self.inner().is_some_and(|inner| !inner.message.contains(&status))
        {
            write!(f, " ({status})")?;
        }
        match self.build_log().map(str::trim_end) {
            None | Some("") => Ok(()),
            Some(log) => write!(f, "\n{log}"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.inner()?.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, ErrorKind};

    #[test]
    fn debug_output_is_readable() {
        let error = Error::invalid("range 2..4 of 3 elements");
        assert_eq!(format!("{error:?}"), "InvalidInput: range 2..4 of 3 elements");
        let error = Error::new(ErrorKind::OutOfMemory, "no room for 5 bytes").with_status(-4);
        assert_eq!(format!("{error:?}"), "OutOfMemory: no room for 5 bytes (-4)");
        let error = Error::new(ErrorKind::Build, "scan did not build (-11): line 1: no").with_status(-11);
        let log = error.with_log("line 1: no\nline 2: nor this\n".into());
        assert_eq!(format!("{log:?}"), "Build: scan did not build (-11): line 1: no\nline 1: no\nline 2: nor this");
    }
}
