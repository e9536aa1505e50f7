//! Reduction of an input to one value: `x[0] op ... op x[n - 1]`.
//!
//! | property | |
//! |---|---|
//! | work | n - 1 operations, one read of the input |
//! | operator | associative and commutative, up to rounding |
//! | determinism | integers, min, max, and, or, xor: same bits everywhere. Float sums and products: at the chosen level of [`Determinism`]; at level `Exact`, sums are correctly rounded |
//! | scratch | at most n / 4,096 accumulators |
//! | limits | any n that fits the device |
//!
//! The design is CUB's two-level reduction (Harris 2007, Merrill 2015), with a fixed order inside a tile.
//!
//! Related operations have their own modules and tables. A [source](crate::source) converts, maps or multiplies
//! elements as they are read. [`segmented`] returns a value for each segment, and [`axis`] for each line along an
//! axis. [`segmented::moments`] returns the mean and variance of each segment. [`by`] takes a user-defined operator.
//! [`count`] counts elements, and [`statistics`] computes several results in one pass.

mod arg;
pub mod axis;
pub mod by;
pub mod count;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod exact;
#[doc(hidden)]
pub(crate) mod exact_groups;
#[doc(hidden)]
pub(crate) mod gpu;
pub(crate) mod moments;
pub mod segmented;
pub mod statistics;

pub use crate::segments::Offset;
use bytemuck::Pod;

pub use self::arg::{Extremal, Extremes};
use self::gpu::Form;
pub use crate::op::Determinism;
#[allow(unused_imports, reason = "for the documentation")]
use crate::op::Usage;
use crate::{
    Device, Element, ExactSum, Float, Input, Output, Result, Scratch, Source,
    counted::{Count, apart_from},
    op::{Combine, Core, Exact, ForReductions, Op, Operator, Visit},
    runtime::{Backend, opencl::ClDevice},
    source::{Blocks, Counted, Erased, Expression, Grouped, load::Load},
};

/// An element and its index.
///
/// ```
/// let oclprim::Extreme { index, value, .. } = oclprim::Device::best()?.arg_max(&[2.5f32, 7.0, 7.0])?;
/// assert_eq!((index, value), (1, 7.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Extreme<T> {
    /// The index in the input; the lowest one of equal elements.
    pub index: usize,
    /// The element.
    pub value: T,
}

/// The extreme that an arg-reduction finds: the smallest or the largest element.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    #[doc(hidden)]
    Min,
    #[doc(hidden)]
    Max,
}

impl End {
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "arg-min",
            Self::Max => "arg-max",
        }
    }

    /// The value of an empty input.
    pub(crate) const fn empty<T: Element>(self) -> T {
        match self {
            Self::Min => T::HIGHEST,
            Self::Max => T::LOWEST,
        }
    }

    /// Returns whether `a` precedes `b`. NaN is first, then the smaller element for `Min`, the larger for `Max`; -0
    /// equals +0.
    pub fn before<T: Element>(self, a: T, b: T) -> bool {
        match self {
            _ if a.is_nan() => !b.is_nan(),
            // Widening makes comparisons of 16-bit floats branch-free.
            Self::Min => a.widen() < b.widen(),
            Self::Max => a.widen() > b.widen(),
        }
    }
}

/// The extremes to find in a group.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    #[doc(hidden)]
    Min,
    #[doc(hidden)]
    Max,
    #[doc(hidden)]
    Both,
}

impl Ends {
    pub(crate) const fn of(end: End) -> Self {
        match end {
            End::Min => Self::Min,
            End::Max => Self::Max,
        }
    }

    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => End::Min.name(),
            Self::Max => End::Max.name(),
            Self::Both => "min-max",
        }
    }

    #[doc(hidden)]
    pub const fn list(self) -> &'static [End] {
        match self {
            Self::Min => &[End::Min],
            Self::Max => &[End::Max],
            Self::Both => &[End::Min, End::Max],
        }
    }
}

/// An input of [`Device::reduce`]: a [`Source`], its first elements [by a count](Source::take), or groups of one
/// ([`segments`](Source::segments), [`by_key`](Source::by_key), [`along`](crate::NdView::along)).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, op::{Combine, ForReductions, Sum}, reduce::Reducible};
///
/// fn reduced<I: Reducible, O>(input: I, op: O) -> oclprim::Result<I::Of<I::Item>>
/// where
///     O: Combine<I::Item, Use: ForReductions>,
/// {
///     Device::best()?.reduce(input, op)
/// }
///
/// let x = [1u32, 2, 3];
/// assert_eq!((reduced(&x, Sum)?, reduced(x.segments(&[0u32, 2, 3]), Sum)?.to_vec()?), (6, vec![3, 3]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a reduction",
    label = "expected a source, or groups of one: `x.segments(&offsets)`, `x.by_key(&keys)`, `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for an N-dimensional view, say along which axes: `view.along(0)` or `view.along([0, 1])`"
)]
pub trait Reducible: Grouped<Item: Pod> {
    #[doc(hidden)]
    fn reduce<O: Core<Self::Item>>(self, device: &Device, op: O, level: Determinism) -> Result<Self::Of<Self::Item>>;

    #[doc(hidden)]
    fn reduce_into<O: Core<Self::Item>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
        output: Self::Out<'_, Self::Item>,
    ) -> Result<()>;
}

impl<S: Source<Item: Pod>> Reducible for S {
    fn reduce<O: Core<S::Item>>(self, device: &Device, op: O, level: Determinism) -> Result<S::Item> {
        let mut out = [op.of_nothing()];
        self.reduce_into(device, op, level, (&mut out).into())?;
        Ok(out[0])
    }

    fn reduce_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        op.visit(Reduction { device, input: self.erased(), count: None, level, output })
    }
}

impl<S: Source<Item: Pod>> Reducible for Counted<'_, S> {
    fn reduce<O: Core<S::Item>>(self, device: &Device, op: O, level: Determinism) -> Result<S::Item> {
        let mut out = [op.of_nothing()];
        self.reduce_into(device, op, level, (&mut out).into())?;
        Ok(out[0])
    }

    fn reduce_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        // A mean waits anyway.
        if device.is_cpu() || matches!(op.exactly(level)?, Some(Exact::Mean)) {
            return self.known(device)?.reduce_into(device, op, level, output);
        }
        let Self { source, count } = &self;
        op.visit(Reduction { device, input: source.erased(), count: Some(*count), level, output })
    }
}

/// The reduction of all elements of a source, or of as many as a count on an OpenCL device says.
struct Reduction<'a, T: Pod> {
    device: &'a Device,
    input: Erased<'a, T>,
    count: Option<Count<'a>>,
    level: Determinism,
    output: Output<'a, T>,
}

impl<T: Pod + Send + Sync> Visit<T> for Reduction<'_, T> {
    type Output = Result<()>;

    fn built_in<O: Op<T>>(self, op: O) -> Result<()>
    where
        T: Element,
    {
        let Self { device, input, count, level, output } = self;
        let scratch = &mut Scratch::new();
        match input {
            Erased::Memory(input) => device.reduce_plain((input, count), op, level, output, scratch),
            Erased::Expression(source) => device.reduce_expression((source, count), op, level, output, scratch),
        }
    }

    fn users<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Result<()> {
        op.exactly(self.level)?;
        let held = match self.count {
            Some(count) => self.input.held_counted(self.device, count)?,
            None => self.input.held(self.device)?,
        };
        self.device.reduce_of_user((held.input(), self.count), op, self.output, &mut Scratch::new())
    }

    fn mean(self) -> Result<()>
    where
        T: Float,
    {
        self.output.expect_len(1, "reduce")?;
        let (n, mut bytes) = (self.input.len()?, vec![0; ExactSum::<T>::BYTES]);
        self.device.exact_bytes(self.input, (&mut bytes).into())?;
        let mean = ExactSum::<T>::from_bytes(&bytes)?.mean(n as u64);
        self.device.copy(&[mean], self.output)
    }
}

/// # Sums of sources
impl<T: Float> ExactSum<T> {
    /// Exact sum of all elements of a source, as a value that can be merged with others: `x[0] + ... + x[n - 1]`.
    ///
    /// [`Device::reduce`] with [`Sum.exact()`](Usage::exact) rounds this sum. Sums of chunks, devices or processes can be
    /// merged, and then rounded once. Waits for the result.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::{Device, ExactSum};
    ///
    /// let device = Device::best()?;
    /// let mut sum = ExactSum::of(&device, &[1e30f32, 1.0])?;
    /// sum.merge(&ExactSum::of(&Device::cpu(), &[-1e30f32])?);
    /// assert_eq!(sum.round(), 1.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn of(device: &Device, input: impl Source<Item = T>) -> Result<Self> {
        let mut bytes = vec![0; Self::BYTES];
        Self::of_into(device, input, &mut bytes)?;
        Self::from_bytes(&bytes)
    }

    /// [`ExactSum::of`] into `output`, in the byte format of [`ExactSum::to_bytes`]. The output may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`ExactSum::of`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not have
    /// [`ExactSum::BYTES`] bytes.
    ///
    /// ```
    /// use oclprim::{Device, ExactSum};
    ///
    /// let device = Device::best()?;
    /// let mut bytes = device.zeroed::<u8>(ExactSum::<f64>::BYTES)?;
    /// ExactSum::of_into(&device, &[1e100f64, 1.0, -1e100], &mut bytes)?;
    /// assert_eq!(ExactSum::<f64>::from_bytes(&bytes.to_vec()?)?.round(), 1.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn of_into<'a>(device: &Device, input: impl Source<Item = T>, output: impl Into<Output<'a, u8>>) -> Result<()> {
        device.exact_bytes(input.erased(), output.into())
    }
}

/// # Reductions
///
/// These methods return one value from all elements, or from each group: `x[0] op ... op x[n - 1]`. Module:
/// [`reduce`](crate::reduce).
impl Device {
    /// Reduction of all elements, or of each group: `x[0] op ... op x[n - 1]`. Float sums and products are
    /// [`Determinism::Fixed`]: same bits everywhere, if the device keeps subnormals. [`Sum.exact()`](Usage::exact) and
    /// [`Sum.fast()`](Usage::fast) have the other levels.
    ///
    /// The input is a [`Source`] or groups of one. A source is a slice, a buffer, a view, or an expression over them.
    /// An expression gives the same result as the array that [`Device::transform`] writes. There is one exception:
    /// exact sums and means do not round the products of [`times`](Source::times).
    ///
    /// Each group has a result. Groups are [segments](Source::segments), [runs of equal keys](Source::by_key) and
    /// [lines along axes](crate::NdView::along). Their modules have the order of float operations: [`segmented`],
    /// [`by_key`](crate::select::by_key), [`axis`].
    ///
    /// The operator is a built-in one or the [user's](crate::op::Operator), also over [structs](by). For empty input, a
    /// built-in operator gives its [empty](crate::op::Op::empty) value, and a user-defined operator its identity. `Min`
    /// gives the type's highest value, `Max` the lowest. In contrast, [`arg_min`](Device::arg_min),
    /// [`min_max`](Device::min_max) and [`mean`](Device::mean) of empty input are errors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it. The same
    /// error for an [exact](Usage::exact) [`Product`](crate::op::Product) of floats, and if an element has more than
    /// [`MAX_BYTES`](crate::op::Operator::MAX_BYTES) bytes. For an expression, also the errors of
    /// [`Device::transform`]. [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are no offsets, or
    /// if an offset is beyond the next one or beyond the input. The same error if the numbers of keys and elements
    /// differ, or if there is no such axis. The same error if an axis is empty and the product of the other axes'
    /// lengths overflows. The same error if a user-defined operator has another type in OpenCL C than the elements.
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the text of a user-defined operator does not compile; line
    /// numbers in the compiler's [log](crate::Error::build_log) refer to that text.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Max, Operator, Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.reduce(&[1u32, 2, 3], Sum)?, 6);
    /// let x = device.upload(&[1.5f32, -2.0, 0.25])?;
    /// assert_eq!(device.reduce(&x, Max)?, 1.5);
    /// assert_eq!(device.reduce(x.view(1..)?, Sum.exact())?, -1.75);
    ///
    /// assert_eq!(device.reduce(x.segments(&[0u32, 1, 3]), Sum)?.to_vec()?, [1.5, -1.75]);
    /// let (keys, sums) = device.reduce(x.by_key(&[7u8, 7, 8]), Sum)?;
    /// assert_eq!((keys.to_vec()?, sums.to_vec()?), (vec![7, 8], vec![-0.5, 0.25]));
    /// assert_eq!(device.reduce(x.nd(&[3, 1])?.along(0), Max)?.to_vec()?, [1.5]);
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// assert_eq!(device.reduce(&[100, 100, 100], &saturating)?, 255);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce<I: Reducible, O: Combine<I::Item, Use: ForReductions>>(
        &self,
        input: I,
        op: O,
    ) -> Result<I::Of<I::Item>> {
        let (op, usage) = op.taken();
        input.reduce(self, op, usage.determinism)
    }

    /// [`Device::reduce`] into a slice, buffer or view, which has one element for a source, or one for each group.
    ///
    /// For [runs of keys](Source::by_key), `output` is a tuple of the keys, the values and the count. The count is one
    /// element, the number of runs. The outputs of keys and of values have the same length, which may differ from the
    /// count. Elements after the last run do not change.
    ///
    /// Waits for the result only if an output is a host slice, or if the input has a [gather](Source::gathered). The
    /// [mean](crate::op::Mean) of a whole input also waits, and so does a reduction of structs by key.
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. An offset beyond the input counts as
    /// its end. If an offset is beyond the next one, results are unspecified. Reads and writes stay in bounds for any
    /// offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce`], but without those for the values of offsets.
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if an output has another number of elements, or
    /// if arguments overlap in imported OpenCL memory. The same error if the count is a host slice and the outputs of
    /// keys are too short.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1i64; 100])?;
    /// let mut total = device.zeroed::<i64>(1)?;
    /// device.reduce_into(&x, Sum, &mut total)?;
    /// assert_eq!(total.to_vec()?, [100]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_into<'a, I: Reducible, O: Combine<I::Item, Use: ForReductions>>(
        &self,
        input: I,
        op: O,
        output: impl Into<I::Out<'a, I::Item>>,
    ) -> Result<()> {
        let (op, usage) = op.taken();
        input.reduce_into(self, op, usage.determinism, output.into())
    }

    /// Body of [`ExactSum::of_into`], compiled once for each type.
    #[inline(never)]
    fn exact_bytes<T: Float>(&self, input: Erased<'_, T>, output: Output<'_, u8>) -> Result<()> {
        output.expect_len(ExactSum::<T>::BYTES, "an exact sum")?;
        match self.backend() {
            Backend::Cpu => {
                let mut sum = ExactSum::new();
                match input {
                    Erased::Memory(input) => sum = cpu::exact_total(input.host()?)?,
                    Erased::Expression(source) => {
                        let n = source.finite_len()?;
                        source.read(&mut |values| {
                            sum = cpu::exact_total_of_blocks(n, values)?;
                            Ok(())
                        })?;
                    }
                }
                output.host()?.copy_from_slice(&sum.to_bytes());
                Ok(())
            }
            Backend::OpenCl(device) => exact::bytes(device, input, output),
        }
    }

    /// Reduction of computed elements, compiled once for each type and operator. Only OpenCL devices read a count.
    #[inline(never)]
    fn reduce_expression<T: Element, O: Op<T>>(
        &self,
        (source, count): (&dyn Expression<T>, Option<Count<'_>>),
        _: O,
        determinism: Determinism,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let exact = determinism.exact::<T, O>()?;
        match self.backend() {
            Backend::Cpu if exact => read_blocks(source, output, &|n, values| cpu::exact_blocks(n, values)),
            Backend::Cpu => read_blocks(source, output, &|n, values| cpu::reduce_blocks::<T, O>(n, values)),
            Backend::OpenCl(device) => {
                let form = Form::of::<T, O>(determinism);
                reduce_source(device, &form, bytemuck::bytes_of(&O::empty()), (source, count), output, scratch)
            }
        }
    }

    /// Reduction of elements in memory, compiled once for each type and operator. Only OpenCL devices read a count.
    #[inline(never)]
    fn reduce_plain<T: Element, O: Op<T>>(
        &self,
        (input, count): (Input<'_, T>, Option<Count<'_>>),
        _: O,
        determinism: Determinism,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let exact = determinism.exact::<T, O>()?;
        match self.backend() {
            Backend::Cpu if exact => read_slice(input, output, &cpu::exact_sum),
            Backend::Cpu => read_slice(input, output, &cpu::reduce::<T, O>),
            Backend::OpenCl(device) => {
                output.expect_len(1, "reduce")?;
                let form = Form::of::<T, O>(determinism);
                let (empty, input) = (O::empty(), (input.any(), count));
                gpu::reduce(device, &form, bytemuck::bytes_of(&empty), input, output.any(), scratch)
            }
        }
    }
}

/// Writes the result of `reduce` over elements in memory. For the CPU backend; compiled once for each type.
fn read_slice<T: Element>(
    input: Input<'_, T>,
    output: Output<'_, T>,
    reduce: &dyn Fn(&[T]) -> Result<T>,
) -> Result<()> {
    output.expect_len(1, "reduce")?;
    output.host()?[0] = reduce(input.host()?)?;
    Ok(())
}

/// A reduction of computed elements. The arguments are their number and the elements.
type OfBlocks<'f, T> = dyn Fn(usize, &dyn Blocks<T>) -> Result<T> + 'f;

/// Writes the result of `reduce` over computed elements. For the CPU backend; compiled once for each type.
fn read_blocks<T: Element>(source: &dyn Expression<T>, output: Output<'_, T>, reduce: &OfBlocks<'_, T>) -> Result<()> {
    let n = source.finite_len()?;
    output.expect_len(1, "reduce")?;
    let output = output.host()?;
    source.read(&mut |values| {
        output[0] = reduce(n, values)?;
        Ok(())
    })
}

/// Reduces computed elements on an OpenCL device, compiled once for each type.
fn reduce_source<T: Element>(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    (source, count): (&dyn Expression<T>, Option<Count<'_>>),
    output: Output<'_, T>,
    scratch: &mut Scratch,
) -> Result<()> {
    let n = source.finite_len()?;
    output.expect_len(1, "reduce")?;
    let (load, output) = (Load::of(source, device)?, output.cl(device, false)?);
    let (n, count) = load.length(device, n, count)?;
    apart_from(count.as_ref(), &[&output])?;
    let length = (n, count.as_ref());
    load.run(device, source, n, &mut || gpu::reduce_load(device, form, empty, &load, length, &output, scratch))?;
    output.finish(device)
}
