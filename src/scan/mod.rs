//! Scan: `out[i] = x[0] op ... op x[i]`; in segments, [`segmented`]; along an axis, [`axis`].
//!
//! | property | |
//! |---|---|
//! | work | about 2 n operations; one read of the input and one write with decoupled look-back, else two reads |
//! | operator | associative, up to rounding; results can have a wider type |
//! | determinism | same bits everywhere, float sums and products too: the order depends only on the index and the types. [`Scan::with`] selects correctly rounded sums |
//! | scratch | 16 bytes, and at most 24 for each 32 KiB of the input |
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
//! With [`Determinism::Exact`] it is reduce-then-scan with exact accumulators, on every device: two reads and one write.

pub mod axis;
#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod exact;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod segmented;

pub use crate::op::Scan;

use crate::{
    Buffer, Determinism, Device, DeviceType, Element, Error, Input, Integer, Output, Result, Scratch, Source, memory,
    op::{Code, Core, Monoid, Op, Operator, Sum, monoid},
    runtime::{Backend, ClInput, apart, opencl::ClDevice},
    source::{self, Erased, Expression, load::Load},
};

impl<T> Scan<T> {
    /// The scan from a plain NaN if it starts from any NaN: results of exact scans have no other one.
    fn with_plain_nan(self) -> Self
    where
        T: Element,
    {
        let plain = |x: T| if x.to_f64().is_nan() { T::from_f64(f64::NAN) } else { x };
        Self { initial: self.initial.map(plain), ..self }
    }

    /// Returns an error if the level is exact and `op` is a float sum, a float product or a user-defined operator.
    fn expect_inexact<U: Element, F>(&self, op: &Monoid<U, F>) -> Result<()> {
        if self.determinism == Determinism::Exact && op.ordered {
            return Err(Error::unsupported("exact scans support only float sums of whole inputs"));
        }
        Ok(())
    }
}

/// An exact scan by the CPU backend. With optimisations PoCL 3.1 and 6 compile `cl/scan_exact.cl` to kernels whose prefixes lack the
/// tiles before theirs, so of CPU drivers only checkers run it.
fn on_the_host<T: Element, U: Element + From<T>>(
    device: &ClDevice,
    input: &ClInput,
    kind: Scan<U>,
    out: &ClInput,
) -> Result<()> {
    let mut x = memory::filled(input.len(), T::ZERO)?;
    device.read(input.mem(), input.offset() * size_of::<T>(), bytemuck::cast_slice_mut(&mut x))?;
    let mut sums = memory::filled(out.len(), U::ZERO)?;
    let load = cpu::load(&x, &cpu::widened::<T, U>, kind.reversed);
    exact::on_the_cpu(x.len(), &*load, kind, &mut sums)?;
    device.write(out.mem(), out.offset() * size_of::<U>(), bytemuck::cast_slice(&sums))
}

/// # Scans
///
/// These methods return the prefixes of all elements: `out[i] = x[0] op ... op x[i]`. Module:
/// [`scan`](crate::scan).
impl Device {
    /// Inclusive prefix scan: `out[i] = x[0] op ... op x[i]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::{Max, Sum}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3u32, 1, 4, 1])?;
    /// assert_eq!(device.inclusive_scan(&x, Sum)?.to_vec()?, [3, 4, 8, 9]);
    /// assert_eq!(device.inclusive_scan(x.view(1..)?, Max)?.to_vec()?, [1, 4, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn inclusive_scan<T: Element, O: Op<T>>(&self, input: impl Source<Item = T>, op: O) -> Result<Buffer<T>> {
        self.scan(input, op, Scan::inclusive())
    }

    /// Exclusive prefix scan: `out[i] = x[0] op ... op x[i - 1]`. `out[0]` is the operator's [empty](Op::empty) value.
    ///
    /// # Errors
    ///
    /// Same as [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// assert_eq!(Device::best()?.exclusive_scan(&[3.0f32, 1.5, 4.0], Sum)?.to_vec()?, [0.0, 3.0, 4.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn exclusive_scan<T: Element, O: Op<T>>(&self, input: impl Source<Item = T>, op: O) -> Result<Buffer<T>> {
        self.scan(input, op, Scan::exclusive(O::empty()))
    }

    /// Scan of any kind: `out[i] = x[0] op ... op x[i]` if inclusive, without `x[i]` if exclusive; also reversed.
    ///
    /// The type of the results is `T`, or a type that holds every value of `T`.
    ///
    /// # Errors
    ///
    /// Same as [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let sums = Device::best()?.scan(&[200u8, 100, 50], Sum, Scan::exclusive(1000u32))?;
    /// assert_eq!(sums.to_vec()?, [1000, 1200, 1300]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan<T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Source<Item = T>,
        op: O,
        kind: Scan<U>,
    ) -> Result<Buffer<U>> {
        let mut output = self.uninit(source::finite(&input)?)?;
        self.scan_into(input, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan`] into a slice, buffer or view. For an exclusive scan, the output may have one more element,
    /// which receives `initial op x[0] op ... op x[n - 1]`.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::inclusive_scan`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the lengths
    /// do not fit, or input and output overlap.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let lengths = device.upload(&[2u32, 0, 3])?;
    /// let mut offsets = device.zeroed::<u32>(4)?;
    /// device.scan_into(&lengths, Sum, Scan::exclusive(0), &mut offsets)?;
    /// assert_eq!(offsets.to_vec()?, [0, 2, 2, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_into<'b, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Source<Item = T>,
        op: O,
        kind: Scan<U>,
        output: impl Into<Output<'b, U>>,
    ) -> Result<()> {
        if const { U::TYPE.is_float() && O::KIND.rounds() } && kind.determinism.exact::<U, O>()? {
            let held = input.held(self)?;
            return self.scan_exactly(held.input(), kind, output.into());
        }
        let scratch = &mut Scratch::new();
        match input.erased() {
            Erased::Memory(input) => self.scan_one(input, op, kind, output.into(), scratch),
            Erased::Expression(source) => self.scan_computed(source, op, kind, output.into(), scratch),
        }
    }

    /// Exact [`Device::scan_into`] of floats, compiled once for each pair of types.
    #[inline(never)]
    fn scan_exactly<T: Element, U: Element + From<T>>(
        &self,
        input: Input<'_, T>,
        kind: Scan<U>,
        output: Output<'_, U>,
    ) -> Result<()> {
        let (n, sum) = (input.len(), monoid::<U, Sum>());
        if kind.initial.is_none() || output.len() != n + 1 {
            output.expect_len(n, "scan")?;
        }
        match self.backend() {
            Backend::Cpu => {
                let load = cpu::load(input.host()?, &cpu::widened::<T, U>, kind.reversed);
                exact::on_the_cpu(n, &*load, kind, output.host()?)
            }
            Backend::OpenCl(device) => {
                let (form, start) =
                    (exact::Form::of::<T, U>(kind.reversed), gpu::Start::of(&sum, kind.with_plain_nan()));
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                apart(&[&input], &[&output])?;
                if device.info().ty == DeviceType::Cpu && !self.capabilities()?.is_some_and(|caps| caps.checker) {
                    on_the_host::<T, U>(device, &input, kind, &output)?;
                } else {
                    exact::on_a_device(device, &form, &start, &input, &output)?;
                }
                output.finish(device)
            }
        }
    }

    /// [`Device::scan_into`] of computed elements, compiled once for each pair of types and operator.
    #[inline(never)]
    fn scan_computed<T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        source: &dyn Expression<T>,
        _: O,
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (n, op) = (source.finite_len()?, monoid::<U, O>());
        if kind.initial.is_none() || output.len() != n + 1 {
            output.expect_len(n, "scan")?;
        }
        match self.backend() {
            Backend::Cpu => {
                let output = output.host()?;
                source.read(&mut |values| {
                    let load = cpu::load_blocks::<T, U>(values, n, kind.reversed);
                    cpu::scan(&op, n, cpu::run::<T>(), &*load, kind, output)
                })
            }
            Backend::OpenCl(device) => {
                let (form, start) = (gpu::Form::of::<T, U, O>(kind.reversed), gpu::Start::of(&op, kind));
                let load = Load::of(source, device)?;
                let output = output.cl(device, false)?;
                apart(&load.inputs(), &[&output])?;
                load.run(device, source, n, || gpu::scan_load(device, &form, &start, (&load, n), &output, scratch))?;
                output.finish(device)
            }
        }
    }

    /// [`Device::scan_into`] without the conversions, so that it is compiled once for each pair of types and operator.
    #[inline(never)]
    fn scan_one<T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: Input<'_, T>,
        _: O,
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let by = (&monoid::<U, O>(), O::source());
        self.scan_taken(by, input, &cpu::widened::<T, U>, kind, output, scratch)
    }

    /// Scan in place: `x[i]` becomes `x[0] op ... op x[i]` if inclusive.
    ///
    /// Waits for the result only if `x` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Product};
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[1i64, 2, 3, 4])?;
    /// device.scan_in_place(x.view_mut(1..)?, Product, Scan::inclusive())?;
    /// assert_eq!(x.to_vec()?, [1, 2, 6, 24]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_in_place<'a, T: Element, O: Op<T>>(
        &self,
        x: impl Into<Output<'a, T>>,
        op: O,
        kind: Scan<T>,
    ) -> Result<()> {
        self.scan_within(x.into(), op, kind, &mut Scratch::new())
    }

    /// [`Device::scan_in_place`] without the conversions, so that it is compiled once for each type and operator.
    #[inline(never)]
    fn scan_within<T: Element, O: Op<T>>(
        &self,
        x: Output<'_, T>,
        _: O,
        kind: Scan<T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if const { T::TYPE.is_float() && O::KIND.rounds() } && kind.determinism.exact::<T, O>()? {
            return self.scan_exactly_within(x, kind);
        }
        match self.backend() {
            Backend::Cpu => {
                let load = cpu::load_in_place(kind.reversed);
                cpu::scan(&monoid::<T, O>(), x.len(), cpu::run::<T>(), &*load, kind, x.host()?)?;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let x = x.cl(device, true)?;
                let form = gpu::Form::of::<T, T, O>(kind.reversed);
                let start = gpu::Start::of(&monoid::<T, O>(), kind);
                gpu::scan(device, &form, &start, (&x, gpu::Starts::None), &x, scratch)?;
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
                if device.info().ty == DeviceType::Cpu && !self.capabilities()?.is_some_and(|caps| caps.checker) {
                    on_the_host::<T, T>(device, &x, kind, &x)?;
                } else {
                    exact::on_a_device(device, &form, &start, &x, &x)?;
                }
                x.finish(device)
            }
        }
    }

    /// Offsets of segments from their lengths: `out[i] = lengths[0] + ... + lengths[i - 1]`.
    ///
    /// There are n + 1 offsets for n lengths; the last one is the sum of all. Sums wrap.
    ///
    /// # Errors
    ///
    /// Same as [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, op::Max};
    ///
    /// let device = Device::best()?;
    /// let offsets = device.offsets_of::<u32, u64>(&[2, 0, 3])?;
    /// assert_eq!(offsets.to_vec()?, [0, 2, 2, 5]);
    /// assert_eq!(device.reduce_segments(&[5, 7, 1, 9, 4], &offsets, Max)?.to_vec()?, [7, i32::MIN, 9]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn offsets_of<'a, T: Integer, U: Integer + From<T>>(
        &self,
        lengths: impl Into<Input<'a, T>>,
    ) -> Result<Buffer<U>> {
        let lengths = lengths.into();
        let mut output = self.uninit(lengths.len() + 1)?;
        self.scan_into(lengths, Sum, Scan::exclusive(U::ZERO), &mut output)?;
        Ok(output)
    }

    /// [`Device::scan`] with a user's operator, which need not be commutative.
    ///
    /// Elements have an element type. To scan pairs, such as a value with its index, pack them into a `u64`.
    ///
    /// # Errors
    ///
    /// Same as [`Device::inclusive_scan`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that of
    /// `T`.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// // Replaces each 0 by the last element that is not 0.
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// let filled = Device::best()?.scan_by(&[0, 3, 0, 0, 7, 0], &last, Scan::inclusive())?;
    /// assert_eq!(filled.to_vec()?, [0, 3, 3, 3, 7, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by<T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Source<Item = T>,
        op: &Operator<T, F>,
        kind: Scan<T>,
    ) -> Result<Buffer<T>> {
        let held = input.held(self)?;
        let input = held.input();
        let mut output = self.uninit(input.len())?;
        self.scan_by_into(input, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_by`] into a slice, buffer or view. All else is as in [`Device::scan_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_by`] and [`Device::scan_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let mut sums = [0u8; 4];
    /// let device = Device::best()?;
    /// device.scan_by_into(&[100u8, 100, 100], &saturating, Scan::exclusive(0), &mut sums)?;
    /// assert_eq!(sums, [0, 100, 200, 255]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by_into<'b, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Source<Item = T>,
        op: &Operator<T, F>,
        kind: Scan<T>,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        let (op, source) = op.parts()?;
        kind.expect_inexact(&op)?;
        self.scan_taken((&op, source), input.held(self)?.input(), &|x| x, kind, output.into(), &mut Scratch::new())
    }

    /// Scan of `take(x)` for each element `x`; `take` only converts.
    #[inline(never)]
    fn scan_taken<T, U, F>(
        &self,
        (op, source): (&Monoid<U, F>, Code),
        input: Input<'_, T>,
        take: &(impl Fn(T) -> U::Acc + Sync),
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let n = input.len();
        if kind.initial.is_none() || output.len() != n + 1 {
            output.expect_len(n, "scan")?;
        }
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let load = cpu::load(input, take, kind.reversed);
                cpu::scan(op, n, cpu::run::<T>(), &*load, kind, output.host()?)?;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = gpu::Form::by::<T, U>((source, !op.ordered), kind.reversed);
                let input = (input.any(), gpu::Starts::None);
                gpu::scan_any(device, &form, &gpu::Start::of(op, kind), input, output.any(), scratch)
            }
        }
    }
}
