//! Ladders: the steps by which a kernel becomes fast, each a runnable, checked and measured variant.
//!
//! Every kernel of the articles that the crate grew from is a rung, corrected where it was wrong; the crate's own kernel
//! is the last one. The kernels are in `cl/ladder/`; each primitive's `ladder.rs` lists its rungs.

pub mod model;

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

use oclprim::internals::testing::{Failure, poison, same_bytes};

use crate::{Device, ElementType, Result, effort::Effort};

pub use model::Model;

/// Elements behind what a kernel writes that have to stay poisoned: as many as the widest vector has.
pub(crate) const GUARD: usize = 16;

/// Whether a guard is still poisoned.
pub(crate) fn intact<T: bytemuck::Pod + std::fmt::Debug>(guard: &[T]) -> std::result::Result<(), Failure> {
    same_bytes(guard, &vec![poison(); guard.len()], "behind the output: guard")
}

/// What to climb a ladder with.
///
/// ```
/// use oclprim::{ElementType};
/// use oclprim_checks::{ladder::Request};
///
/// let mut request = Request::default();
/// (request.n, request.element) = (1 << 20, ElementType::F32);
/// assert_eq!((request.block, request.bins), (None, 256));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// Elements; of a transpose, rows times columns.
    pub n: usize,
    /// Rows and columns of a transpose.
    pub shape: (usize, usize),
    /// Work-items of a work-group, where the rung leaves a choice.
    pub block: Option<usize>,
    /// The element type.
    pub element: ElementType,
    /// Bins of a histogram.
    pub bins: usize,
    /// How a histogram's samples are distributed.
    pub distribution: Distribution,
    /// How often each rung is timed.
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
    /// Refuses `n` elements of which two times cannot be addressed.
    pub(crate) fn addressable(&self, n: Option<usize>) -> Result<()> {
        let bytes = n.and_then(|n| n.checked_mul(2 * self.element.size()));
        if bytes.is_some_and(|bytes| bytes <= isize::MAX as usize) {
            return Ok(());
        }
        let (n, (rows, cols), element) = (self.n, self.shape, self.element);
        Err(crate::Error::invalid(format!("{n} or {rows} x {cols} elements of {element} overflow the address space")))
    }
}

/// How samples fall into bins.
///
/// ```
/// let names = oclprim_checks::ladder::Distribution::ALL.map(|distribution| distribution.name());
/// assert_eq!(names, ["uniform", "zipf", "constant", "outside"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Distribution {
    /// Every bin alike.
    Uniform,
    /// Bin k with a probability proportional to 1 / (k + 1)^1.1.
    Zipf,
    /// One bin for all.
    Constant,
    /// Half of the samples are no bin's number: -1, the first beyond the bins, the lowest and the highest of the type.
    Outside,
}

impl Distribution {
    /// Every distribution.
    ///
    /// ```
    /// assert_eq!(oclprim_checks::ladder::Distribution::ALL.len(), 4);
    /// ```
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Zipf, Self::Constant, Self::Outside];

    /// The distribution's name, such as `zipf`.
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

/// Puts a rung's data on a device.
///
/// ```
/// use oclprim::{Device};
/// use oclprim_checks::{ladder::{Climb, Prepare}};
///
/// let nothing: Box<Prepare> = Box::new(|_| Ok(Climb::new((), |_| Ok(()), |_| Ok(()), |_| Ok(()))));
/// assert!(nothing(&Device::cpu()).is_ok());
/// ```
pub type Prepare = dyn Fn(&Device) -> Result<Climb>;

/// One step of a ladder.
///
/// ```
/// use oclprim::{Device};
/// use oclprim_checks::{ladder::Request, registry};
///
/// let (device, mut request) = (Device::best()?, Request::default());
/// request.n = 1000;
/// let ladder = registry::ladders().iter().find(|ladder| ladder.name() == "reduce").unwrap();
/// for rung in ladder.rungs(&request, &device)?.iter().filter(|rung| rung.unavailable.is_none()).take(2) {
///     let mut climb = (rung.prepare)(&device)?;
///     (climb.reset)()?;
///     (climb.run)()?;
///     assert!((climb.verify)().is_ok(), "{}: {}", rung.name, rung.step);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Rung {
    /// The kernel's name in `cl/ladder/`, or what stands for it.
    pub name: &'static str,
    /// What the step changes against the one before, in a line.
    pub step: &'static str,
    /// Bytes that the step has to read and write at least.
    pub bytes: u64,
    /// Global transactions and bank conflicts, by the access pattern; `None` where the code is not the crate's, or no
    /// device's memory is accessed.
    pub model: Option<Model>,
    /// Why the rung cannot run on the device, if so.
    pub unavailable: Option<String>,
    /// Puts the rung's data on a device.
    pub prepare: Box<Prepare>,
}

/// A rung with its data on the device.
///
/// ```
/// use oclprim_checks::{check::same, ladder::Climb};
///
/// let reset = |x: &mut u8| Ok(*x = 0);
/// let mut climb = Climb::new(0, reset, |x| Ok(*x += 1), |x| same(&[*x], &[1], "x"));
/// (climb.reset)()?;
/// (climb.run)()?;
/// assert!((climb.verify)().is_ok());
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Climb {
    /// Restores what a run overwrites; not timed.
    pub reset: Box<dyn FnMut() -> Result<()>>,
    /// Enqueues the rung's kernels.
    pub run: Box<dyn FnMut() -> Result<()>>,
    /// Compares what the last run wrote with the CPU's answer.
    pub verify: Box<dyn FnMut() -> Result<(), Failure>>,
}

impl Climb {
    /// A climb whose three parts share a state.
    ///
    /// ```
    /// use oclprim_checks::{check::same, ladder::Climb};
    ///
    /// let mut climb = Climb::new(vec![3, 1], |_| Ok(()), |x| Ok(x.sort()), |x| same(x, &[1, 3], "element "));
    /// (climb.run)()?;
    /// assert!((climb.verify)().is_ok());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new<S: 'static>(
        state: S,
        mut reset: impl FnMut(&mut S) -> Result<()> + 'static,
        mut run: impl FnMut(&mut S) -> Result<()> + 'static,
        mut verify: impl FnMut(&mut S) -> Result<(), Failure> + 'static,
    ) -> Self {
        let state = Rc::new(RefCell::new(state));
        let (resets, runs) = (state.clone(), state.clone());
        Self {
            reset: Box::new(move || reset(&mut resets.borrow_mut())),
            run: Box::new(move || run(&mut runs.borrow_mut())),
            verify: Box::new(move || verify(&mut state.borrow_mut())),
        }
    }
}

/// What the rungs of a ladder share, made when the first of them needs it: rungs that are listed but not climbed cost
/// nothing.
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
/// use oclprim::{Device};
/// use oclprim_checks::{ladder::Request, registry};
///
/// for ladder in registry::ladders() {
///     println!("{}: {} steps", ladder.name(), ladder.rungs(&Request::default(), &Device::cpu())?.len());
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub trait Ladder: Sync {
    /// The primitive's name, such as `reduce`.
    fn name(&self) -> &'static str;

    /// The rungs in order, for a request on a device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the request does not fit the ladder.
    fn rungs(&self, request: &Request, device: &Device) -> Result<Vec<Rung>>;
}
