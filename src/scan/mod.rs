//! Scan: what the elements up to each of them come to; in segments, [`segmented`]; along an axis, [`axis`].
//!
//! | property | |
//! |---|---|
//! | work | about 2 n operations; one read of the input and one write where work-groups can wait for one another, else two reads |
//! | operator | associative, up to rounding; results can have a wider type |
//! | determinism | everywhere, float sums and products too: one order that depends on the place and the types alone |
//! | scratch | 16 bytes, and at most 24 for each 32 KiB of the input: [`Device::scan_scratch`] |
//! | limits | any n that fits the device |
//!
//! The design is that of decoupled look-back (Merrill & Garland 2016) on GPUs that were seen to let work-groups wait for
//! earlier ones ([`Capabilities::forward_progress`](crate::Capabilities::forward_progress),
//! [`Capabilities::device_fence`](crate::Capabilities::device_fence)): tiles publish their totals, and find what precedes them
//! in those of the others. Who waits in vain computes what is missing. Elsewhere it is reduce-then-scan (Sengupta 2007): the
//! totals of tiles, what precedes each, then their elements. The order within a tile and between tiles is that of Sklansky's
//! tree (1960), whose depth is log n, so that errors of floats grow with log n too; on the CPU it is the same.

pub mod axis;
#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;
pub mod segmented;

use crate::{
    Buffer, Device, Element, Input, Integer, Output, Result, Scratch,
    op::{Map, Monoid, Op, Operator, Source, Sum, monoid},
    runtime::Backend,
};

/// Which elements make up each result, and what comes first.
///
/// ```
/// use oclprim::{Device, Scan, op::Sum};
///
/// let device = Device::best()?;
/// let x = device.upload(&[1u8, 2, 3])?;
/// assert_eq!(device.scan(&x, Sum, Scan::<u8>::inclusive())?.to_vec()?, [1, 3, 6]);
/// assert_eq!(device.scan(&x, Sum, Scan::exclusive(10u8))?.to_vec()?, [10, 11, 13]);
/// assert_eq!(device.scan(&x, Sum, Scan::exclusive(10u8).reversed())?.to_vec()?, [15, 13, 10]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan<T> {
    initial: Option<T>,
    #[doc(hidden)]
    pub reversed: bool,
}

impl<T> Scan<T> {
    /// Each result has its element as the last one.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Max};
    ///
    /// let largest = Device::best()?.scan(&[2i8, 7, 5], Max, Scan::<i8>::inclusive())?;
    /// assert_eq!(largest.to_vec()?, [2, 7, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn inclusive() -> Self {
        Self { initial: None, reversed: false }
    }

    /// Each result starts with `initial` and has what precedes its element.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Max};
    ///
    /// let largest = Device::best()?.scan(&[2i8, 7, 5], Max, Scan::exclusive(4i8))?;
    /// assert_eq!(largest.to_vec()?, [4, 4, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn exclusive(initial: T) -> Self {
        Self { initial: Some(initial), reversed: false }
    }

    /// From the last element to the first: each result has what follows its element in memory. The total, if there is room
    /// for it, comes first.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Max};
    ///
    /// let largest = Device::best()?.scan(&[2i8, 7, 5], Max, Scan::<i8>::inclusive().reversed())?;
    /// assert_eq!(largest.to_vec()?, [7, 7, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { reversed: !self.reversed, ..self }
    }
}

impl Device {
    /// What the elements up to and with each come to.
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
    pub fn inclusive_scan<'a, T: Element, O: Op<T>>(&self, input: impl Into<Input<'a, T>>, op: O) -> Result<Buffer<T>> {
        self.scan(input, op, Scan::inclusive())
    }

    /// What the elements before each come to; of the first, the operator's [empty](Op::empty) value.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// assert_eq!(Device::best()?.exclusive_scan(&[3.0f32, 1.5, 4.0], Sum)?.to_vec()?, [0.0, 3.0, 4.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn exclusive_scan<'a, T: Element, O: Op<T>>(&self, input: impl Into<Input<'a, T>>, op: O) -> Result<Buffer<T>> {
        self.scan(input, op, Scan::exclusive(O::empty()))
    }

    /// A scan of any kind, in the type of the elements or one that holds them all.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let sums = Device::best()?.scan(&[200u8, 100, 50], Sum, Scan::exclusive(1000u32))?;
    /// assert_eq!(sums.to_vec()?, [1000, 1200, 1300]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan<'a, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: O,
        kind: Scan<U>,
    ) -> Result<Buffer<U>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.scan_into(input, op, kind, &mut output, &mut Scratch::new())?;
        Ok(output)
    }

    /// The n + 1 offsets of n lengths: 0, the first length, the first two, and so on to the total. They wrap.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`].
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
        self.scan_into(lengths, Sum, Scan::exclusive(U::ZERO), &mut output, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::scan`] into a caller's slice, buffer or view. If exclusive, that may have one element more, for the total.
    ///
    /// Does not wait, unless `output` is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the lengths do not fit,
    /// or input and output overlap.
    ///
    /// ```
    /// use oclprim::{Device, Scan, Scratch, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let lengths = device.upload(&[2u32, 0, 3])?;
    /// let mut offsets = device.zeroed::<u32>(4)?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.scan_scratch::<u32, u32>(lengths.len()))?;
    /// device.scan_into(&lengths, Sum, Scan::exclusive(0), &mut offsets, &mut scratch)?;
    /// assert_eq!(offsets.to_vec()?, [0, 2, 2, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_into<'a, 'b, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: O,
        kind: Scan<U>,
        output: impl Into<Output<'b, U>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.scan_one(input.into(), op, kind, output.into(), scratch)
    }

    /// [`Device::scan_into`], built once for each pair of types and operator.
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
        self.scan_taken(by, input, (&cpu::widened::<T, U>, None), kind, output, scratch)
    }

    /// A scan of any kind by an operator of the user's, which need not be commutative.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce_by`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that of `T`.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// // What a sparse row has last been.
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// let filled = Device::best()?.scan_by(&[0, 3, 0, 0, 7, 0], &last, Scan::inclusive())?;
    /// assert_eq!(filled.to_vec()?, [0, 3, 3, 3, 7, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by<'a, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: &Operator<T, F>,
        kind: Scan<T>,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.scan_by_into(input, op, kind, &mut output, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::scan_by`] into a caller's slice, buffer or view, as [`Device::scan_into`] has it.
    ///
    /// # Errors
    ///
    /// As [`Device::scan_by`] and [`Device::scan_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, Scratch, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let mut sums = [0u8; 4];
    /// let device = Device::best()?;
    /// device.scan_by_into(&[100u8, 100, 100], &saturating, Scan::exclusive(0), &mut sums, &mut Scratch::new())?;
    /// assert_eq!(sums, [0, 100, 200, 255]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by_into<'a, 'b, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: &Operator<T, F>,
        kind: Scan<T>,
        output: impl Into<Output<'b, T>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (op, source) = op.monoid()?;
        self.scan_taken((&op, source), input.into(), (&|x| x, None), kind, output.into(), scratch)
    }

    /// Of what `take` gives for each element, which `map` says in OpenCL C where it is no conversion.
    fn scan_taken<T, U, F>(
        &self,
        (op, source): (&Monoid<U, F>, Source),
        input: Input<'_, T>,
        (take, map): (&(impl Fn(T) -> U::Acc + Sync), Option<String>),
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
                let load = cpu::load(input, take, map.is_none(), kind.reversed);
                cpu::scan(op, n, cpu::run::<T>(), &*load, kind, output.host()?);
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input], &[&output])?;
                let form = gpu::Form::by::<T, U>((source, !op.ordered), kind.reversed, map);
                gpu::scan(device, &form, &gpu::Start::of(op, kind), (&input, gpu::Starts::None), &output, scratch)?;
                output.finish(device)
            }
        }
    }

    /// A scan of what `map` gives for each element.
    ///
    /// The function takes the type that `T` is computed with, `f32` for `f16` and `bf16`, else `T` itself.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`]; [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver refuses the expression: the
    /// [log](crate::Error::build_log) shows its lines.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::{Map, Sum}};
    ///
    /// // The places that the positive elements would have without the others.
    /// let positive = Map::new(|x: f32| u32::from(x > 0.0), "x > 0");
    /// let places = Device::best()?.map_scan(&[1.5f32, -2.0, 0.5, 3.0], &positive, Sum, Scan::exclusive(0))?;
    /// assert_eq!(places.to_vec()?, [0, 1, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_scan<'a, T: Element, R: Element<Acc = R>, F: Fn(T::Acc) -> R + Sync, O: Op<R>>(
        &self,
        input: impl Into<Input<'a, T>>,
        map: &Map<F>,
        op: O,
        kind: Scan<R>,
    ) -> Result<Buffer<R>> {
        let input = input.into();
        let mut output = self.uninit(input.len())?;
        self.map_scan_into(input, map, op, kind, &mut output, &mut Scratch::new())?;
        Ok(output)
    }

    /// [`Device::map_scan`] into a caller's slice, buffer or view, as [`Device::scan_into`] has it.
    ///
    /// # Errors
    ///
    /// As [`Device::map_scan`] and [`Device::scan_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, Scratch, op::{Map, Sum}};
    ///
    /// let device = Device::best()?;
    /// let even = Map::new(|x: u8| u32::from(x % 2 == 0), "x % 2 == 0");
    /// let mut places = device.zeroed::<u32>(4)?;
    /// let mut scratch = Scratch::new();
    /// device.map_scan_into(&[4u8, 7, 2], &even, Sum, Scan::exclusive(0), &mut places, &mut scratch)?;
    /// assert_eq!(places.to_vec()?, [0, 1, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_scan_into<'a, 'b, T: Element, R: Element<Acc = R>, F: Fn(T::Acc) -> R + Sync, O: Op<R>>(
        &self,
        input: impl Into<Input<'a, T>>,
        map: &Map<F>,
        _: O,
        kind: Scan<R>,
        output: impl Into<Output<'b, R>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (take, text) = (|x: T| (map.function)(x.widen()), map.prelude(T::Acc::TYPE, R::TYPE));
        let by = (&monoid::<R, O>(), O::source());
        self.scan_taken(by, input.into(), (&take, Some(text)), kind, output.into(), scratch)
    }

    /// Puts the results of a scan in the places of the elements. Does not wait, unless `x` is a host slice.
    ///
    /// # Errors
    ///
    /// As [`Device::inclusive_scan`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, Scratch, op::Product};
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[1i64, 2, 3, 4])?;
    /// device.scan_in_place(x.view_mut(1..)?, Product, Scan::inclusive(), &mut Scratch::new())?;
    /// assert_eq!(x.to_vec()?, [1, 2, 6, 24]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_in_place<'a, T: Element, O: Op<T>>(
        &self,
        x: impl Into<Output<'a, T>>,
        op: O,
        kind: Scan<T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.scan_within(x.into(), op, kind, scratch)
    }

    /// [`Device::scan_in_place`], built once for each type and operator.
    #[inline(never)]
    fn scan_within<T: Element, O: Op<T>>(
        &self,
        x: Output<'_, T>,
        _: O,
        kind: Scan<T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self.backend() {
            Backend::Cpu => {
                let load = cpu::load_in_place(kind.reversed);
                cpu::scan(&monoid::<T, O>(), x.len(), cpu::run::<T>(), &*load, kind, x.host()?);
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let x = x.cl(device, true)?;
                let form = gpu::Form::of::<T, T, O>(kind.reversed, None);
                let start = gpu::Start::of(&monoid::<T, O>(), kind);
                gpu::scan(device, &form, &start, (&x, gpu::Starts::None), &x, scratch)?;
                x.finish(device)
            }
        }
    }

    /// The bytes of scratch that scans of `n` elements of type `T` to type `U` use at most.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::cpu().scan_scratch::<u32, u64>(1 << 20), 0);
    /// ```
    pub fn scan_scratch<T: Element, U: Element>(&self, n: usize) -> usize {
        match self.backend() {
            Backend::Cpu => 0,
            #[cfg(feature = "opencl")]
            Backend::OpenCl(_) => gpu::scratch_bytes(n.saturating_add(1), T::TYPE, U::Acc::TYPE),
        }
    }
}
