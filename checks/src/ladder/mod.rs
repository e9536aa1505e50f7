//! Ladders: the steps by which a kernel becomes fast. Each step is a variant that runs, is verified and is timed.
//!
//! The crate grew from kernels in articles. Each of these kernels is a step, corrected where it was wrong; the crate's
//! own kernel is the last step. The kernels are in `cl/ladder/`, and each primitive's `ladder.rs` lists its steps.

pub mod model;

use std::{cell::OnceCell, rc::Rc};

use oclprim::internals::testing::{Failure, poison, same_bytes};

use crate::{Device, ElementType, Result, effort::Effort};

pub use model::Model;

/// Number of guard elements after a kernel's output, which must stay poisoned: the length of the widest vector.
pub(crate) const GUARD: usize = 16;

/// Fails unless all elements of a guard are still poison.
pub(crate) fn intact<T: bytemuck::Pod + std::fmt::Debug>(guard: &[T]) -> std::result::Result<(), Failure> {
    same_bytes(guard, &vec![poison(); guard.len()], "after the output: guard")
}

/// Size, data and effort for the steps of a ladder.
///
/// ```
/// use oclprim::ElementType;
/// use oclprim_checks::{ladder::Request};
///
/// let mut request = Request::default();
/// (request.n, request.element) = (1 << 20, ElementType::F32);
/// assert_eq!((request.block, request.bins), (None, 256));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// Number of elements; for a transpose, rows times columns.
    pub n: usize,
    /// Rows and columns of a transpose.
    pub shape: (usize, usize),
    /// Work-group size. `None` takes the default of each step.
    pub block: Option<usize>,
    /// The element type.
    pub element: ElementType,
    /// Number of bins of a histogram.
    pub bins: usize,
    /// Distribution of a histogram's samples.
    pub distribution: Distribution,
    /// Runs of each step: their number, time limit, warm-up and state of the caches.
    pub effort: Effort,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            n: 1 << 24,
            shape: (4096, 4096),
            block: None,
            element: ElementType::I32,
            bins: 256,
            distribution: Distribution::Uniform,
            effort: Effort::default(),
        }
    }
}

impl Request {
    /// Fails unless two buffers of `n` elements fit the address space.
    pub(crate) fn addressable(&self, n: Option<usize>) -> Result<()> {
        let bytes = n.and_then(|n| n.checked_mul(2 * self.element.size()));
        if bytes.is_some_and(|bytes| bytes <= isize::MAX as usize) {
            return Ok(());
        }
        let (n, (rows, cols), element) = (self.n, self.shape, self.element);
        Err(crate::Error::invalid(format!("{n} or {rows} x {cols} elements of {element} overflow the address space")))
    }
}

/// Distribution of samples over bins.
///
/// ```
/// let names = oclprim_checks::ladder::Distribution::ALL.map(|distribution| distribution.name());
/// assert_eq!(names, ["uniform", "zipf", "constant", "outside"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Distribution {
    /// All bins are equally likely.
    Uniform,
    /// Bin k with a probability proportional to 1 / (k + 1)^1.1.
    Zipf,
    /// All samples are in one bin.
    Constant,
    /// Half of the samples are -1, the number of bins, and the type's lowest and highest values. In a wide
    /// signed type all of them are outside of the bins. In other types some are within: 0 is the lowest unsigned value,
    /// and -1 and the number of bins can wrap.
    Outside,
}

impl Distribution {
    /// All distributions.
    ///
    /// ```
    /// assert_eq!(oclprim_checks::ladder::Distribution::ALL.len(), 4);
    /// ```
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Zipf, Self::Constant, Self::Outside];

    /// Name of the distribution, such as `zipf`.
    ///
    /// ```
    /// assert_eq!(oclprim_checks::ladder::Distribution::Zipf.name(), "zipf");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Constant => "constant",
            Self::Outside => "outside",
        }
    }
}

/// Function that uploads a step's data to a device.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{ladder::{Climb, Prepare}};
///
/// let nothing: Box<Prepare> = Box::new(|_| Ok(Climb::new((), |_| Ok(()), |_| Ok(()), |_| Ok(()))));
/// assert!(nothing(&Device::cpu()).is_ok());
/// ```
pub type Prepare = dyn Fn(&Device) -> Result<Climb>;

/// One step of a ladder.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{ladder::Request, registry};
///
/// let (device, mut request) = (Device::best()?, Request::default());
/// request.n = 1000;
/// let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "reduce").unwrap();
/// for step in ladder.rungs(&request, &device)?.iter().filter(|step| step.unavailable.is_none()).take(2) {
///     let mut case = (step.prepare)(&device)?;
///     case.reset()?;
///     case.run()?;
///     assert!(case.verify().is_ok(), "{}: {}", step.name, step.step);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Rung {
    /// Name of the kernel in `cl/ladder/`, or of the call that replaces it.
    pub name: &'static str,
    /// One line about the change since the previous step.
    pub step: &'static str,
    /// Bytes that the step must at least read and write.
    pub bytes: u64,
    /// Global transactions and bank conflicts, computed from the access pattern. `None` if the code is not the crate's,
    /// or if no device memory is accessed.
    pub model: Option<Model>,
    /// Reason why the step cannot run on the device, if it cannot.
    pub unavailable: Option<String>,
    /// Uploads the step's data to a device.
    pub prepare: Box<Prepare>,
}

/// Benchmark case: a step or an operation with its data on a device.
///
/// ```
/// use oclprim_checks::{check::same, ladder::Climb};
///
/// let reset = |x: &mut u8| Ok(*x = 0);
/// let mut case = Climb::new(0, reset, |x| Ok(*x += 1), |x| same(&[*x], &[1], "x"));
/// case.reset()?;
/// case.run()?;
/// assert!(case.verify().is_ok());
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Climb(Box<dyn Call>);

/// The functions of a benchmark case. One object has all three and their data.
trait Call {
    fn reset(&mut self) -> Result<()>;
    fn run(&mut self) -> Result<()>;
    fn verify(&mut self) -> Result<(), Failure>;
}

struct Case<S, A, B, C> {
    state: S,
    reset: A,
    run: B,
    verify: C,
}

impl<S, A, B, C> Call for Case<S, A, B, C>
where
    A: FnMut(&mut S) -> Result<()>,
    B: FnMut(&mut S) -> Result<()>,
    C: FnMut(&mut S) -> Result<(), Failure>,
{
    fn reset(&mut self) -> Result<()> {
        (self.reset)(&mut self.state)
    }

    fn run(&mut self) -> Result<()> {
        (self.run)(&mut self.state)
    }

    fn verify(&mut self) -> Result<(), Failure> {
        (self.verify)(&mut self.state)
    }
}

impl Climb {
    /// Benchmark case whose three functions share `state`.
    ///
    /// ```
    /// use oclprim_checks::{check::same, ladder::Climb};
    ///
    /// let mut case = Climb::new(vec![3, 1], |_| Ok(()), |x| Ok(x.sort()), |x| same(x, &[1, 3], "element "));
    /// case.run()?;
    /// assert!(case.verify().is_ok());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new<S: 'static>(
        state: S,
        reset: impl FnMut(&mut S) -> Result<()> + 'static,
        run: impl FnMut(&mut S) -> Result<()> + 'static,
        verify: impl FnMut(&mut S) -> Result<(), Failure> + 'static,
    ) -> Self {
        Self(Box::new(Case { state, reset, run, verify }))
    }

    /// Restores the data that a run overwrites; not timed.
    pub fn reset(&mut self) -> Result<()> {
        self.0.reset()
    }

    /// Runs the step or the operation once.
    pub fn run(&mut self) -> Result<()> {
        self.0.run()
    }

    /// Compares the output of the last run with the CPU's result.
    pub fn verify(&mut self) -> Result<(), Failure> {
        self.0.verify()
    }
}

/// Data that the steps of a ladder share. The first step that runs makes it, so that a list of steps costs no time.
pub(crate) struct Shared<T>(Rc<Lazy<T>>);

struct Lazy<T> {
    value: OnceCell<T>,
    make: Box<dyn Fn() -> Result<T>>,
}

impl<T> Shared<T> {
    pub(crate) fn new(make: impl Fn() -> Result<T> + 'static) -> Self {
        Self(Rc::new(Lazy { value: OnceCell::new(), make: Box::new(make) }))
    }

    pub(crate) fn get(&self) -> Result<&T> {
        if let Some(value) = self.0.value.get() {
            return Ok(value);
        }
        let value = (self.0.make)()?;
        Ok(self.0.value.get_or_init(|| value))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The ladder of a primitive.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{ladder::Request, registry};
///
/// for ladder in registry::ladders() {
///     println!("{}: {} steps", ladder.name(), ladder.rungs(&Request::default(), &Device::cpu())?.len());
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub trait Ladder: Sync {
    /// Name of the primitive, such as `reduce`.
    fn name(&self) -> &'static str;

    /// The steps in order, for a request on a device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the request does not fit the ladder.
    fn rungs(&self, request: &Request, device: &Device) -> Result<Vec<Rung>>;
}
