//! Scan: `out[i] = x[0] op ... op x[i]`, [`Device::scan`]; in segments, [`segmented`]; along axes, [`axis`].
//!
//! | property | |
//! |---|---|
//! | work | about 2 n operations; one read of the input and one write with decoupled look-back, else two reads |
//! | operator | associative, up to rounding |
//! | determinism | same bits everywhere, float sums and products too, if the device keeps subnormals: the order depends only on the index and the types. [`Sum.exact()`](Usage::exact) has correctly rounded sums |
//! | scratch | 16 bytes, and at most 24 for each 32 KiB of the input. An exact scan takes about 170 bytes for each 4,096 elements; for `f64`, 1,100 |
//! | limits | any n that fits the device |
//!
//! The design is decoupled look-back (Merrill & Garland 2016) on GPUs where the self-test saw that work-groups can wait
//! for earlier ones ([`Capabilities::forward_progress`](crate::Capabilities::forward_progress),
//! [`Capabilities::device_fence`](crate::Capabilities::device_fence)). Tiles publish their aggregates, and each tile
//! computes its exclusive prefix from those of earlier tiles. If a status word is still invalid after a bounded number
//! of polls, the waiting work-group recomputes that tile's aggregate.
//!
//! Other devices use reduce-then-scan (Sengupta 2007): first the aggregates of tiles, then their exclusive prefixes,
//! then the elements.
//!
//! The order within a tile and across tiles is Sklansky's tree (1960). Its depth is log n, so the errors of floats also
//! grow with log n. The CPU uses the same order.
//!
//! A user-defined operator over structs has its own kernels: [`by`].
//!
//! A scan with [`Determinism::Exact`] is reduce-then-scan with exact accumulators, on every device: two reads and one
//! write.

pub mod axis;
pub mod by;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod exact;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod segmented;

#[doc(hidden)]
pub use crate::op::{Scan, in_scan};

use bytemuck::Pod;

use crate::{
    Buffer, Determinism, Device, Element, Error, Float, Input, Integer, Output, Result, Scratch, Source,
    counted::{Count, apart_from},
    op::{ByType, Code, Combinable, Combine, Core, ForScans, Monoid, Op, Operator, Sum, Usage, Visit, monoid},
    runtime::{Backend, apart},
    source::{self, Counted, Erased, Expression, Grouped, Narrow, Wide, load::Load},
};

impl<T> Scan<T> {
    /// The same scan. If its start is NaN, the type's plain NaN replaces it, since exact scans return no other NaN.
    fn with_plain_nan(self) -> Self
    where
        T: Element,
    {
        let plain = |x: T| if x.to_f64().is_nan() { T::from_f64(f64::NAN) } else { x };
        Self { initial: self.initial.map(plain), ..self }
    }

    /// Returns an error unless `output` has `n` elements, or `n + 1` for an exclusive scan.
    fn expect_outputs(&self, n: usize, output: &Output<'_, T>) -> Result<()>
    where
        T: Pod,
    {
        if self.initial.is_some() && output.len() == n + 1 { Ok(()) } else { output.expect_len(n, "scan") }
    }

    /// Returns an error if the level is exact and `op` is a float sum, a float product or a user-defined operator.
    fn expect_inexact<U: Element, F>(&self, op: &Monoid<U, F>) -> Result<()> {
        if self.determinism == Determinism::Exact && op.ordered {
            return Err(Error::unsupported("exact scans support only float sums of whole inputs"));
        }
        Ok(())
    }
}

/// An input of [`Device::scan`]: a [`Source`], its first elements [by a count](Source::take), or groups of it
/// ([`segments`](Source::segments), [`by_key`](Source::by_key), [`flagged`](Source::flagged), lines
/// [`along`](crate::NdView::along) axes).
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, Source, op::{Combine, ForScans, Sum}, scan::Scannable};
///
/// fn scanned<I: Scannable>(input: I, op: impl Combine<I::Item, Use: ForScans>) -> oclprim::Result<Vec<I::Item>> {
///     Device::best()?.scan(input, op)?.to_vec()
/// }
///
/// let x = [1u32, 2, 3];
/// assert_eq!((scanned(&x, Sum)?, scanned(x.segments(&[0u32, 2]), Sum)?), (vec![1, 3, 6], vec![1, 3, 3]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of a scan",
    label = "expected a source, or groups: `x.segments(&offsets)`, `x.by_key(&keys)`, `x.flagged(&flags)`, \
             `view.along(axes)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for an N-dimensional view, say along which axes: `view.along(0)` or `view.along([0, 1])`"
)]
pub trait Scannable: Grouped<Item: Combinable + Pod> {
    /// As [`Device::scan`]. Offsets of segments are checked.
    #[doc(hidden)]
    fn scan<O: Core<Self::Item>>(self, device: &Device, op: O, usage: Scan<Self::Item>) -> Result<Buffer<Self::Item>>;

    /// As [`Device::scan_into`].
    #[doc(hidden)]
    fn scan_into<O: Core<Self::Item>>(
        self,
        device: &Device,
        op: O,
        usage: Scan<Self::Item>,
        output: Output<'_, Self::Item>,
    ) -> Result<()>;
}

impl<S: Source<Item: Combinable + Pod>> Scannable for S {
    fn scan<O: Core<S::Item>>(self, device: &Device, op: O, usage: Scan<S::Item>) -> Result<Buffer<S::Item>> {
        let mut output = device.uninit(source::finite(&self)?)?;
        self.scan_into(device, op, usage, (&mut output).into())?;
        Ok(output)
    }

    fn scan_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        usage: Scan<S::Item>,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        op.visit(Whole { device, input: &self, count: None, usage, output })
    }
}

impl<S: Source<Item: Combinable + Pod>> Scannable for Counted<'_, S> {
    fn scan<O: Core<S::Item>>(self, device: &Device, op: O, usage: Scan<S::Item>) -> Result<Buffer<S::Item>> {
        self.known(device)?.scan(device, op, usage)
    }

    fn scan_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        usage: Scan<S::Item>,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        let n = source::finite(&self.source)?;
        usage.expect_outputs(n, &output)?;
        if device.is_cpu() || op.exactly(usage.determinism)?.is_some() {
            let more = output.len() - n;
            let taken = self.known(device)?;
            let outputs = source::finite(&taken)? + more;
            return taken.scan_into(device, op, usage, output.part(0, outputs));
        }
        let Self { source, count } = &self;
        op.visit(Whole { device, input: source, count: Some(*count), usage, output })
    }
}

/// The scan of all elements of a source, or of as many as a count on an OpenCL device says.
struct Whole<'a, S: Source<Item: Pod>> {
    device: &'a Device,
    input: &'a S,
    count: Option<Count<'a>>,
    usage: Scan<S::Item>,
    output: Output<'a, S::Item>,
}

impl<S: Source<Item: Combinable + Pod>> Visit<S::Item> for Whole<'_, S> {
    type Output = Result<()>;

    fn built_in<O: Op<S::Item>>(self, op: O) -> Result<()>
    where
        S::Item: Element,
    {
        let Self { device, input, count, usage, output } = self;
        if const { S::Item::TYPE.is_float() && O::KIND.rounds() } && usage.determinism.exact::<S::Item, O>()? {
            return device.scan_exactly(&Wide::of(input, device, true)?, usage, output);
        }
        let scratch = &mut Scratch::new();
        match input.erased() {
            Erased::Memory(input) => {
                device.scan_plain((&monoid::<S::Item, O>(), O::source()), (input, count), usage, output, scratch)
            }
            Erased::Expression(source) => device.scan_computed((source, count), op, usage, output, scratch),
        }
    }

    fn users<F: Fn(S::Item, S::Item) -> S::Item + Sync>(self, op: &Operator<S::Item, F>) -> Result<()> {
        let Self { device, input, count, usage, output } = self;
        op.exactly(usage.determinism)?;
        let held = match count {
            Some(count) => input.erased().held_counted(device, count)?,
            None => input.held(device)?,
        };
        S::Item::by_type(ByUser { device, input: held.input(), op, count, usage, output })
    }

    fn mean(self) -> Result<()>
    where
        S::Item: Float,
    {
        Err(Error::unsupported("a scan does not take the operator `Mean`"))
    }
}

/// The scan of elements in memory by a user-defined operator.
struct ByUser<'a, T: Pod, F> {
    device: &'a Device,
    input: Input<'a, T>,
    op: &'a Operator<T, F>,
    count: Option<Count<'a>>,
    usage: Scan<T>,
    output: Output<'a, T>,
}

impl<T: Pod + Send + Sync, F: Fn(T, T) -> T + Sync> ByType<T> for ByUser<'_, T, F> {
    type Output = Result<()>;

    fn elements(self) -> Result<()>
    where
        T: Element,
    {
        let ((op, code), input) = (self.op.parts()?, (self.input, self.count));
        self.device.scan_plain((&op, code), input, self.usage, self.output, &mut Scratch::new())
    }

    fn structs(self) -> Result<()> {
        self.device.scan_structs(self.op, (self.input, self.count), None, self.usage, self.output)
    }
}

/// # Scans
///
/// These methods return the prefixes of all elements: `out[i] = x[0] op ... op x[i]`. Module:
/// [`scan`](crate::scan).
impl Device {
    /// Prefix scan: `out[i] = x[0] op ... op x[i]`. With [`Sum.exclusive()`](Usage::exclusive) it leaves out `x[i]`;
    /// with [`Sum.reversed()`](Usage::reversed) it runs from the last element to the first.
    ///
    /// The scan restarts at each group: [segments](Source::segments), [runs of equal keys](Source::by_key), [flagged
    /// ranges](Source::flagged), [lines along axes](crate::NdView::along). A reversed scan runs from the last
    /// element of each group to its first. Elements before the first offset of segments are a segment too, and so are
    /// those from the last offset on. For results of a wider type, write `x.cast::<U>()`. For the first elements [by a
    /// count](Source::take), the call waits for the count.
    ///
    /// The operator is a built-in one or the [user's](crate::op::Operator), which need not be commutative. The user's
    /// operator may take [structs](by). With [`Sum.exact()`](Usage::exact), each result
    /// is the float nearest to the exact sum of the start and the prefix. Only whole inputs have this level.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it. The same
    /// error for [exact](Usage::exact) scans of groups, of float products, and by a user-defined operator.
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are no offsets, or if an offset is beyond
    /// the next one or beyond the input. The same error if the number of keys or flags is not that of the elements, or
    /// if there is no such axis. The same error if the type of a user-defined operator in
    /// OpenCL C is not that of the elements.
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the text of a user-defined operator does not compile. For an
    /// expression, also the errors of [`Device::transform`].
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Max, Operator, Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3u32, 1, 4, 1])?;
    /// assert_eq!(device.scan(&x, Sum)?.to_vec()?, [3, 4, 8, 9]);
    /// assert_eq!(device.scan(x.view(1..)?, Max)?.to_vec()?, [1, 4, 4]);
    /// assert_eq!(device.scan(&x, Sum.exclusive())?.to_vec()?, [0, 3, 4, 8]);
    /// assert_eq!(device.scan(&x, Sum.exclusive().starting(10).reversed())?.to_vec()?, [16, 15, 11, 10]);
    /// assert_eq!(device.scan(x.by_key(&[7u8, 7, 3, 7]), Sum)?.to_vec()?, [3, 4, 4, 1]);
    /// assert_eq!(device.scan(x.nd(&[2, 2])?.along(0), Sum)?.to_vec()?, [3, 1, 7, 2]);
    ///
    /// // Replaces each 0 by the last element that is not 0.
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// assert_eq!(device.scan(&[0, 3, 0, 0, 7, 0], &last)?.to_vec()?, [0, 3, 3, 3, 7, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan<I: Scannable, O: Combine<I::Item, Use: ForScans>>(&self, input: I, op: O) -> Result<Buffer<I::Item>> {
        let (op, usage) = op.taken();
        input.scan(self, op, usage)
    }

    /// [`Device::scan`] into a slice, buffer or view. For an exclusive scan of a whole input, the output may have one
    /// more element, which receives `start op x[0] op ... op x[n - 1]`.
    ///
    /// For the first elements [by a count](Source::take), `output` has the length of the whole source, or one more
    /// element. The results are those of a scan of the counted elements. Elements of `output` after them do not change.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered). An
    /// [exact](Usage::exact) scan by a count waits for the count.
    ///
    /// Does not check the offsets of segments; [`Device::check_segments`] does. Offsets beyond the input are ignored.
    /// If an offset is beyond the next one, results are unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan`], but without those for the values of offsets.
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths do not match, or if input and
    /// output overlap.
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Max, Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// let lengths = device.upload(&[2u32, 0, 3])?;
    /// let mut offsets = device.zeroed::<u32>(4)?;
    /// device.scan_into(&lengths, Sum.exclusive(), &mut offsets)?;
    /// assert_eq!(offsets.to_vec()?, [0, 2, 2, 5]);
    ///
    /// let mut largest = [0i16; 4];
    /// device.scan_into([3i16, 1, 4, 1].segments(&[0u32, 2, 4]), Max.exclusive().starting(0), &mut largest)?;
    /// assert_eq!(largest, [0, 3, 0, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_into<'b, I: Scannable, O: Combine<I::Item, Use: ForScans>>(
        &self,
        input: I,
        op: O,
        output: impl Into<Output<'b, I::Item>>,
    ) -> Result<()> {
        let (op, usage) = op.taken();
        input.scan_into(self, op, usage, output.into())
    }

    /// Scan in place: `x[i]` becomes `x[0] op ... op x[i]`, or `start op x[0] op ... op x[i - 1]` if exclusive.
    ///
    /// Waits for the result only if `x` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Product, Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[1i64, 2, 3, 4])?;
    /// device.scan_in_place(x.view_mut(1..)?, Product)?;
    /// assert_eq!(x.to_vec()?, [1, 2, 6, 24]);
    /// device.scan_in_place(&mut x, Sum.exclusive().reversed())?;
    /// assert_eq!(x.to_vec()?, [32, 30, 24, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_in_place<'a, T: Element, O: Combine<T, Use: ForScans>>(
        &self,
        x: impl Into<Output<'a, T>>,
        op: O,
    ) -> Result<()> {
        let (op, usage) = op.taken();
        // A user-defined operator has no exact results, not even over integers.
        let exact = op.exactly(usage.determinism)?.is_some() && T::TYPE.is_float();
        if exact {
            self.scan_exactly_within(x.into(), usage)
        } else {
            self.scan_within(x.into(), op, usage, &mut Scratch::new())
        }
    }

    /// [`Device::scan_in_place`] without the conversions, so that it is compiled once for each type and operator.
    #[inline(never)]
    fn scan_within<T: Element, O: Core<T>>(
        &self,
        x: Output<'_, T>,
        op: O,
        kind: Scan<T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (op, code) = op.parts()?;
        match self.backend() {
            Backend::Cpu => {
                let load = cpu::load_in_place(kind.reversed);
                cpu::scan(&op, x.len(), &*load, kind, x.host()?)?;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let x = x.cl(device, true)?;
                let form = gpu::Form::by::<T, T>((code, !op.ordered), kind.reversed);
                let input = ((&*x).into(), gpu::Starts::None);
                gpu::scan(device, &form, &gpu::Start::of(&op, kind), input, None, &x, scratch)?;
                x.finish(device)
            }
        }
    }

    /// Exact [`Device::scan_in_place`] of floats, compiled once for each type.
    #[inline(never)]
    fn scan_exactly_within<T: Element>(&self, x: Output<'_, T>, kind: Scan<T>) -> Result<()> {
        match self.backend() {
            Backend::Cpu => exact::on_the_cpu(x.len(), &*cpu::load_in_place(kind.reversed), kind, x.host()?),
            Backend::OpenCl(device) => {
                let (form, start) = (
                    exact::Form::of::<T, T>(kind.reversed),
                    gpu::Start::of(&monoid::<T, Sum>(), kind.with_plain_nan()),
                );
                let x = x.cl(device, true)?;
                exact::on_a_device(device, &form, &start, &x, &x)?;
                x.finish(device)
            }
        }
    }

    /// Exact [`Device::scan_into`] of floats, compiled once for each type.
    #[inline(never)]
    fn scan_exactly<T: Element>(&self, input: &Wide<'_, T>, kind: Scan<T>, output: Output<'_, T>) -> Result<()> {
        let n = input.len();
        kind.expect_outputs(n, &output)?;
        match self.backend() {
            Backend::Cpu => {
                let load = cpu::load(input.host()?, &T::widen, kind.reversed);
                exact::on_the_cpu(n, &*load, kind, output.host()?)
            }
            Backend::OpenCl(device) => {
                let Narrow(input, element) = input.any();
                let form = exact::Form { element, ..exact::Form::of::<T, T>(kind.reversed) };
                let start = gpu::Start::of(&monoid::<T, Sum>(), kind.with_plain_nan());
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                apart(&[&input], &[&output])?;
                exact::on_a_device(device, &form, &start, &input, &output)?;
                output.finish(device)
            }
        }
    }

    /// [`Device::scan_into`] of computed elements, compiled once for each type and operator. Only OpenCL devices read
    /// a count.
    #[inline(never)]
    fn scan_computed<T: Element, O: Op<T>>(
        &self,
        (source, count): (&dyn Expression<T>, Option<Count<'_>>),
        _: O,
        kind: Scan<T>,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (n, op) = (source.finite_len()?, monoid::<T, O>());
        kind.expect_outputs(n, &output)?;
        match self.backend() {
            Backend::Cpu => {
                let output = output.host()?;
                source.read(&mut |values| {
                    let load = cpu::load_blocks::<T>(values, n, kind.reversed);
                    cpu::scan(&op, n, &*load, kind, output)
                })
            }
            Backend::OpenCl(device) => {
                let (form, start) = (gpu::Form::of::<T, T, O>(kind.reversed), gpu::Start::of(&op, kind));
                // If the order does not change the results, kernels convert elements of a narrower type as they read
                // them.
                if let Some(Narrow(memory, element)) = source.narrower()
                    && (form.exact || element == T::TYPE)
                {
                    let form = gpu::Form { element, ..form };
                    let input = (memory, gpu::Starts::None);
                    return gpu::scan_any(device, &form, &start, input, count, output.any(), scratch);
                }
                let (load, more) = (Load::of(source, device)?, output.len() - n);
                let output = output.cl(device, count.is_some())?;
                apart(&load.inputs(), &[&output])?;
                let (n, count) = load.length(device, n, count)?;
                apart_from(count.as_ref(), &[&output])?;
                load.run(device, source, n, &mut || {
                    let (input, to) = ((&load, n, count.as_ref()), output.part(0, n + more));
                    gpu::scan_load(device, &form, &start, input, &to, scratch)
                })?;
                output.finish(device)
            }
        }
    }

    /// [`Device::scan_into`] of elements in memory, compiled once for each type and operator. Only OpenCL devices read
    /// a count.
    #[inline(never)]
    fn scan_plain<T, F>(
        &self,
        (op, source): (&Monoid<T, F>, Code),
        (input, count): (Input<'_, T>, Option<Count<'_>>),
        kind: Scan<T>,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        F: Fn(T::Acc, T::Acc) -> T::Acc + Sync,
    {
        let n = input.len();
        kind.expect_outputs(n, &output)?;
        match self.backend() {
            Backend::Cpu => {
                let load = cpu::load(input.host()?, &T::widen, kind.reversed);
                cpu::scan(op, n, &*load, kind, output.host()?)?;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = gpu::Form::by::<T, T>((source, !op.ordered), kind.reversed);
                let input = (input.any(), gpu::Starts::None);
                gpu::scan_any(device, &form, &gpu::Start::of(op, kind), input, count, output.any(), scratch)
            }
        }
    }

    /// Offsets of segments from their lengths: `out[i] = lengths[0] + ... + lengths[i - 1]`.
    ///
    /// There are n + 1 offsets for n lengths; the last one is the sum of all. Sums wrap.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan`].
    ///
    /// ```
    /// use oclprim::{Device, Source, op::Max};
    ///
    /// let device = Device::best()?;
    /// let offsets = device.offsets_of::<u32, u64>(&[2, 0, 3])?;
    /// assert_eq!(offsets.to_vec()?, [0, 2, 2, 5]);
    /// assert_eq!(device.reduce([5, 7, 1, 9, 4].segments(&offsets), Max)?.to_vec()?, [7, i32::MIN, 9]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn offsets_of<'a, T: Integer, U: Integer + From<T>>(
        &self,
        lengths: impl Into<Input<'a, T>>,
    ) -> Result<Buffer<U>> {
        let lengths = lengths.into();
        let mut output = self.uninit(lengths.len() + 1)?;
        self.scan_into(lengths.cast::<U>(), Sum.exclusive(), &mut output)?;
        Ok(output)
    }
}
