//! Cross-checks of every primitive: devices against the CPU backend, and the CPU backend against plain loops.
//!
//! Each primitive has one `spec.rs`. It lists the operations, sizes, types and data sets, and how to run and compare
//! them. Tests, benches and the program read the specs from the [`registry`](crate::registry).

pub(crate) mod bounds;
pub(crate) mod hard;
pub(crate) mod keys;
pub(crate) mod layouts;
pub(crate) mod operators;
pub(crate) mod segments;

pub use bounds::sum_bound;
pub(crate) use oclprim::internals::data::sorted_indices;
pub use oclprim::internals::{
    data,
    oracle::{exact_mean, exact_sum},
    testing::{CANARY, Failure, close, everywhere, guarded, log_skip, poison, same, same_bytes},
};

use std::{
    any::Any,
    borrow::Cow,
    collections::HashMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use serde::Serialize;

use oclprim::{Device, ElementType, ErrorKind, ProgramSpec, Tuning, tuning::Tuned};

use crate::bench::Bench;

/// Level of checking, which determines the cases.
///
/// ```
/// use oclprim_checks::{check::Level, registry};
///
/// let copy = registry::specs().iter().find(|spec| spec.name() == "copy").unwrap();
/// assert!(Level::Tiny < Level::Full && copy.cases(Level::Tiny).len() < copy.cases(Level::Quick).len());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Sizes for an interpreter such as Oclgrind: every kernel, at most 20,000 work-items.
    Tiny,
    /// Every operation and type at the edges of tiles, in under a minute on two cores.
    Quick,
    /// Every operation, type, size, data set and offset.
    Full,
}

type Check = dyn Fn(&Device) -> Result<(), Failure> + Send + Sync;

/// One check: an operation on one type, shape and data set.
///
/// ```
/// use oclprim::{Device, ElementType, op::Sum};
/// use oclprim_checks::{check::{Case, Verdict, same}};
///
/// let case = Case::new("sum", ElementType::U8, "n = 3", "by hand", 3, |device: &Device| {
///     same(&[device.reduce(&[1u8, 2, 3], Sum)?], &[6], "sum")
/// });
/// assert_eq!(case.run(&Device::best()?).verdict, Verdict::Pass);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub struct Case {
    /// Name of the operation, such as `sum fixed`.
    pub form: String,
    /// The element type, or a type of the same size if only the size matters.
    pub element: ElementType,
    /// The shape, such as `n = 4097 at 3`, where 3 is the offset into the buffer.
    pub shape: String,
    /// Name of the data set.
    pub data: String,
    /// Number of elements, for ordering failures by size.
    pub n: usize,
    run: Box<Check>,
}

impl Case {
    /// Case that checks a device by `run(device)`.
    ///
    /// On the CPU backend, `run` compares with a plain loop; on other devices, with the CPU backend.
    ///
    /// ```
    /// use oclprim::{Device, ElementType};
    /// use oclprim_checks::{check::{Case, same}};
    ///
    /// let case = Case::new("max", ElementType::I8, "n = 2", "by hand", 2, |device: &Device| {
    ///     same(&[device.arg_max(&[-1i8, 5])?.index as u64], &[1], "index")
    /// });
    /// assert_eq!((case.form.as_str(), case.n), ("max", 2));
    /// ```
    pub fn new<'t>(
        form: impl Into<Cow<'t, str>>,
        element: ElementType,
        shape: impl Into<Cow<'t, str>>,
        data: impl Into<Cow<'t, str>>,
        n: usize,
        run: impl Fn(&Device) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        Self::of([form.into(), shape.into(), data.into()], element, n, Box::new(run))
    }

    #[inline(never)]
    fn of(texts: [Cow<'_, str>; 3], element: ElementType, n: usize, run: Box<Check>) -> Self {
        let [form, shape, data] = texts.map(Cow::into_owned);
        Self { form, element, shape, data, n, run }
    }

    /// The same check on a device with `tuning`, as an operation named `form`.
    pub(crate) fn tuned<'t>(self, form: impl Into<Cow<'t, str>>, tuning: Tuning) -> Self {
        let Self { element, shape, data, n, run, .. } = self;
        Self::new(form, element, shape, data, n, move |device| run(&device.with_tuning(tuning.clone())?))
    }

    /// Outcome of the check on `device`. A panic in it is a failure.
    ///
    /// ```
    /// use oclprim::{Device, ElementType};
    /// use oclprim_checks::{check::{Case, Verdict}};
    ///
    /// let broken = Case::new("panic", ElementType::U8, "n = 0", "none", 0, |_| panic!("on purpose"));
    /// assert_eq!(broken.run(&Device::cpu()).verdict, Verdict::Fail("panic: on purpose".into()));
    /// ```
    pub fn run(&self, device: &Device) -> Outcome {
        let start = Instant::now();
        // Unwinding is safe: a case owns its buffers, and a device has no half-done state between calls.
        let result = catch_unwind(AssertUnwindSafe(|| (self.run)(device)))
            .unwrap_or_else(|panic| Err(Failure::Mismatch(format!("panic: {}", panic_text(&*panic)))));
        let verdict = match result {
            Ok(()) => Verdict::Pass,
            Err(Failure::Mismatch(text)) => Verdict::Fail(text),
            // An unsupported operation is not a failure, but it is not checked either.
            Err(Failure::Error(error)) if error.kind() == ErrorKind::Unsupported => Verdict::Skip(error.to_string()),
            Err(Failure::Error(error)) => {
                let log = error.build_log().map_or(String::new(), |log| format!("\n{}", log.trim_end()));
                Verdict::Fail(format!("error: {error}{log}"))
            }
        };
        Outcome { verdict, seconds: start.elapsed().as_secs_f64() }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

/// Returns true if `level` checks `element` in operations that accept all types. `Tiny` checks one integer type of each
/// size, and all floats except bf16.
pub(crate) fn stands_for_its_size(level: Level, element: ElementType) -> bool {
    use ElementType::{F16, F32, F64, I16, I64, U8, U32};
    level > Level::Tiny || matches!(element, U8 | I16 | U32 | I64 | F16 | F32 | F64)
}

/// Keeps the cases that are worth their builds in another geometry of a device.
///
/// For the first back end of sub-groups, these are all operations, each with one type: f32 or i64 if possible. For a
/// further back end, these are operations in which lanes exchange values. A sum, an arg-max and a scan stand for them,
/// each with one type of each size, and a sort of f32.
///
/// ```
/// use oclprim_checks::{check::{Level, few_builds}, registry};
///
/// let cases = |first| {
///     let mut cases = registry::specs()[0].cases(Level::Tiny);
///     few_builds(&mut cases, first);
///     cases.len()
/// };
/// assert!(0 < cases(false) && cases(false) < cases(true));
/// ```
pub fn few_builds(cases: &mut Vec<Case>, first_back_end: bool) {
    let sizes = [ElementType::U8, ElementType::F16, ElementType::F32, ElementType::I64];
    let exchanged = |case: &Case| {
        let forms = ["sum", "sum fixed", "arg-max", "sum inclusive", "4-byte keys"];
        forms.contains(&&*case.form) && sizes.contains(&case.element)
    };
    if !first_back_end {
        return cases.retain(exchanged);
    }
    let order = || [ElementType::F32, ElementType::I64].into_iter().chain(ElementType::ALL);
    let rank = |case: &Case| order().position(|element| element == case.element);
    let mut best = HashMap::new();
    for case in &*cases {
        let form = best.entry(case.form.clone()).or_insert(usize::MAX);
        *form = rank(case).map_or(*form, |rank| rank.min(*form));
    }
    cases.retain(|case| rank(case) == best.get(&case.form).copied());
}

/// Outcome of one check.
///
/// ```
/// use oclprim::{Device, ElementType};
/// use oclprim_checks::{check::{Case, Failure, Verdict}};
///
/// let wrong = |_: &Device| Err(Failure::Mismatch("2 instead of 1".into()));
/// let outcome = Case::new("sum", ElementType::U8, "n = 1", "by hand", 1, wrong).run(&Device::cpu());
/// assert_eq!(outcome.verdict, Verdict::Fail("2 instead of 1".into()));
/// println!("after {} s", outcome.seconds);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Verdict of a check: passed, skipped or failed.
///
/// ```
/// use oclprim::{Device, ElementType};
/// use oclprim_checks::{check::{Case, Verdict}};
///
/// let wide = |device: &Device| Ok(device.transpose(&[[0u64; 3]], (1, 1)).map(drop)?);
/// let case = Case::new("transpose", ElementType::U64, "1 x 1", "zeros", 1, wide);
/// let Verdict::Skip(reason) = case.run(&Device::cpu()).verdict else { panic!() };
/// assert_eq!(reason, "transpose takes elements of 1 to 16 bytes, not of 24");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The results agree.
    Pass,
    /// The device cannot run the check; the text is the reason.
    Skip(String),
    /// The results differ, or the device returned an unexpected error. The text is one line. A build log follows it, if
    /// there is one.
    Fail(String),
}

/// Bytes of memory that the host can still give, or `None` if the system does not report them. Linux does.
///
/// ```
/// if let Some(bytes) = oclprim_checks::check::host_memory() {
///     println!("{} MiB are free", bytes >> 20);
/// }
/// ```
pub fn host_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Spec of a primitive: its cases, programs and benchmark cases. Tests, benches and the program read nothing else.
///
/// ```
/// use oclprim::tuning::Tuned;
/// use oclprim_checks::{check::Level, registry};
///
/// let (_, gpu) = &Tuned::samples()[0];
/// for spec in registry::specs() {
///     let (cases, programs) = (spec.cases(Level::Tiny).len(), spec.programs(gpu).len());
///     println!("{}: {cases} cases, {programs} programs, {} benchmarks", spec.name(), spec.benches().len());
/// }
/// ```
pub trait Spec: Sync {
    /// Name of the primitive, such as `reduce`.
    fn name(&self) -> &'static str;

    /// All cases of a level.
    fn cases(&self, level: Level) -> Vec<Case>;

    /// All programs that a device with these capabilities may build, for compile-only checks.
    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec>;

    /// All benchmark cases.
    fn benches(&self) -> Vec<Bench> {
        Vec::new()
    }
}
