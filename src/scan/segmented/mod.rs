//! Segmented scan, which restarts at each segment: by key, [`Device::scan_by_key`]; at offsets,
//! [`Device::scan_segments`]; at flags, [`Device::scan_flagged`].
//!
//! | property | |
//! |---|---|
//! | work | as [`scan`](crate::scan); keys, flags or offsets are read as often as the elements |
//! | operator | as [`scan`](crate::scan); a user's operator need not be commutative |
//! | determinism | same bits everywhere, float sums and products too: the order depends only on the index, the segments and the types |
//! | scratch | that of a scan, and at most 8 bytes for each 32 KiB |
//! | limits | any n and any number of segments that fit the device |
//!
//! A segmented scan is one scan over pairs of a value and a segment-head flag (Blelloch 1990; Sengupta 2007):
//! `(a, f) op (b, g) = (g ? b : a op b, f or g)`. The order is that of a scan of all elements. So segments of any
//! lengths share the device evenly, and the elements of other segments do not affect a result. A reversed scan runs
//! from the last element of each segment to its first.

#[doc(hidden)]
pub(crate) mod cpu;

use super::{Scan, cpu::Mark, gpu};
use crate::{
    Buffer, Device, Element, Input, Offset, Output, Result, Scratch, Source,
    arguments::expect_beside,
    op::{Code, Core, Monoid, Op, Operator, built_in},
    runtime::{AnyInput, Backend},
    segments::{Offsets, segments},
};

/// The segments of a scan, on either backend.
pub(super) enum Segments<'a> {
    Cpu(Box<Mark<'a>>),
    Cl(gpu::Heads, gpu::Starts<AnyInput<'a>>),
}

/// The segments of a scan of `n` elements; each method is compiled once for each type of keys, flags or offsets.
impl Device {
    #[inline(never)]
    fn parts_by_key<'a, K: Element>(&self, keys: Input<'a, K>, n: usize, reversed: bool) -> Result<Segments<'a>> {
        expect_beside(keys.len(), n, "keys need as many values")?;
        Ok(match self.backend() {
            Backend::Cpu => Segments::Cpu(Box::new(cpu::keys(keys.host()?, reversed))),
            Backend::OpenCl(_) => Segments::Cl(gpu::Heads::Keys(K::TYPE), gpu::Starts::Beside(keys.any())),
        })
    }

    #[inline(never)]
    fn parts_at_flags<'a>(&self, flags: Input<'a, u8>, n: usize, reversed: bool) -> Result<Segments<'a>> {
        expect_beside(n, flags.len(), "values need as many flags")?;
        Ok(match self.backend() {
            Backend::Cpu => Segments::Cpu(Box::new(cpu::flags(flags.host()?, reversed))),
            Backend::OpenCl(_) => Segments::Cl(gpu::Heads::Flags, gpu::Starts::Beside(flags.any())),
        })
    }

    #[inline(never)]
    fn parts_at<'a, C: Offset>(&self, offsets: Input<'a, C>, n: usize, reversed: bool) -> Result<Segments<'a>> {
        segments(offsets.len())?;
        Ok(match self.backend() {
            Backend::Cpu => Segments::Cpu(Box::new(cpu::offsets(Offsets::of(offsets.host()?), n, reversed))),
            Backend::OpenCl(_) => Segments::Cl(gpu::Heads::Offsets(C::TYPE), gpu::Starts::Offsets(offsets.any())),
        })
    }

    /// Segments of `len` elements.
    pub(super) fn rows(&self, len: usize) -> Segments<'static> {
        match self.backend() {
            Backend::Cpu => Segments::Cpu(Box::new(cpu::rows(len))),
            Backend::OpenCl(_) => Segments::Cl(gpu::Heads::Rows, gpu::Starts::Every(len)),
        }
    }
}

/// # Segmented scans
///
/// These methods restart a scan at each segment, which keys, offsets or flags define. Module:
/// [`scan::segmented`](crate::scan::segmented).
impl Device {
    /// Scan of `values` that restarts wherever `keys[i] != keys[i - 1]`.
    ///
    /// Each run of equal keys starts from the scan's initial value. Float keys compare as in [sorts](crate::sort): -0
    /// equals +0, and all NaN are equal.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of keys and values differ;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let (device, keys, values) = (Device::best()?, [7u8, 7, 7, 3, 7], [1.5f32, 2.0, 4.0, 8.0, 0.5]);
    /// let sums = device.scan_by_key(&keys, &values, Sum, Scan::<f32>::inclusive())?;
    /// assert_eq!(sums.to_vec()?, [1.5, 3.5, 7.5, 8.0, 0.5]);
    /// let before = device.scan_by_key(&keys, &values, Sum, Scan::exclusive(10.0f32))?;
    /// assert_eq!(before.to_vec()?, [10.0, 11.5, 13.5, 10.0, 10.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by_key<K: Element, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = T>,
        op: O,
        kind: Scan<U>,
    ) -> Result<Buffer<U>> {
        let (values, keys) = (values.held(self)?, keys.held(self)?);
        let (values, keys) = (values.input(), keys.input());
        let mut output = self.uninit(values.len())?;
        self.scan_by_key_into(keys, values, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_by_key`] into a slice, buffer or view with one element for each value.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_by_key`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output`
    /// has another length, or overlaps an input.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// // The index of each element among its equals.
    /// let device = Device::best()?;
    /// let keys = device.upload(&[4u32, 4, 4, 9, 9])?;
    /// let (ones, mut places) = (device.filled(5, 1u32)?, device.zeroed::<u32>(5)?);
    /// device.scan_by_key_into(&keys, &ones, Sum, Scan::exclusive(0), &mut places)?;
    /// assert_eq!(places.to_vec()?, [0, 1, 2, 0, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by_key_into<'c, K: Element, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = T>,
        op: O,
        kind: Scan<U>,
        output: impl Into<Output<'c, U>>,
    ) -> Result<()> {
        let values = values.held(self)?;
        let ((op, source), values) = (built_in::<U, O>(op), values.input());
        let keys = keys.held(self)?;
        let parts = self.parts_by_key(keys.input(), values.len(), kind.reversed)?;
        self.scan_parts((&op, source), values, parts, kind, output.into(), &mut Scratch::new())
    }

    /// [`Device::scan_by_key`] with a user's operator, which need not be commutative.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_by_key`]; [`ErrorKind::Build`](crate::ErrorKind::Build) and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) as [`Device::scan_by`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// let filled = Device::best()?.scan_by_key_by(&[1u8, 1, 1, 2, 2], &[3, 0, 5, 0, 4], &last, Scan::inclusive())?;
    /// assert_eq!(filled.to_vec()?, [3, 3, 5, 0, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by_key_by<K: Element, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = T>,
        op: &Operator<T, F>,
        kind: Scan<T>,
    ) -> Result<Buffer<T>> {
        let (values, keys) = (values.held(self)?, keys.held(self)?);
        let (values, keys) = (values.input(), keys.input());
        let mut output = self.uninit(values.len())?;
        self.scan_by_key_by_into(keys, values, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_by_key_by`] into a slice, buffer or view. All else is as in [`Device::scan_by_key_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_by_key_by`] and [`Device::scan_by_key_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let (device, kind, mut sums) = (Device::best()?, Scan::inclusive().reversed(), [0; 3]);
    /// device.scan_by_key_by_into(&[1u16, 1, 2], &[200u8, 100, 7], &saturating, kind, &mut sums)?;
    /// assert_eq!(sums, [255, 100, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_by_key_by_into<'c, K: Element, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = T>,
        op: &Operator<T, F>,
        kind: Scan<T>,
        output: impl Into<Output<'c, T>>,
    ) -> Result<()> {
        let values = values.held(self)?;
        let ((op, source), values) = (op.parts()?, values.input());
        let keys = keys.held(self)?;
        let parts = self.parts_by_key(keys.input(), values.len(), kind.reversed)?;
        self.scan_parts((&op, source), values, parts, kind, output.into(), &mut Scratch::new())
    }

    /// Scan of `input` that restarts at each offset: segment `s` is `input[offsets[s]..offsets[s + 1]]`.
    ///
    /// Each segment starts from the scan's initial value. Segments may be empty. Elements before the first offset are a
    /// segment too, and so are those from the last offset on.
    ///
    /// Checks the offsets, which waits for the device. [`Device::scan_segments_into`] does not check.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are no offsets, or if an offset is beyond
    /// the next one or beyond the input. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks
    /// fp64 and a type needs it.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u32, 2, 3, 4, 5])?;
    /// let sums = device.scan_segments(&x, &[0u32, 2, 2, 5], Sum, Scan::<u32>::inclusive())?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 3, 7, 12]);
    ///
    /// let error = device.scan_segments(&x, &[0u64, 6], Sum, Scan::exclusive(0u32)).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 1 is 6, beyond the 5 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_segments<C: Offset, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: O,
        kind: Scan<U>,
    ) -> Result<Buffer<U>> {
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (input, offsets) = (input.input(), offsets.input());
        self.check_segments(offsets, input.len())?;
        let mut output = self.uninit(input.len())?;
        self.scan_segments_into(input, offsets, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_segments`] into a slice, buffer or view with one element for each input element.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// Does not check the offsets; [`Device::check_segments`] does. Offsets beyond the input are ignored. If an offset
    /// is beyond the next one, results are unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_segments`], but values of offsets are not checked;
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` has another length, or overlaps an
    /// input.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Max};
    ///
    /// let device = Device::best()?;
    /// let mut largest = device.zeroed::<i16>(4)?;
    /// let kind = Scan::exclusive(0);
    /// device.scan_segments_into(&[3i16, 1, 4, 1], &[0u32, 2, 4], Max, kind, &mut largest)?;
    /// assert_eq!(largest.to_vec()?, [0, 3, 0, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_segments_into<'c, C: Offset, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: O,
        kind: Scan<U>,
        output: impl Into<Output<'c, U>>,
    ) -> Result<()> {
        let input = input.held(self)?;
        let ((op, source), input) = (built_in::<U, O>(op), input.input());
        let offsets = offsets.held(self)?;
        let parts = self.parts_at(offsets.input(), input.len(), kind.reversed)?;
        self.scan_parts((&op, source), input, parts, kind, output.into(), &mut Scratch::new())
    }

    /// [`Device::scan_segments`] with a user's operator, which need not be commutative.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_segments`]; [`ErrorKind::Build`](crate::ErrorKind::Build) and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) as [`Device::scan_by`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let union = Operator::new("union", 0u32, |a, b| a | b, "a | b");
    /// let sets = Device::best()?.scan_segments_by(&[1, 2, 8, 16], &[0u32, 2], &union, Scan::inclusive().reversed())?;
    /// assert_eq!(sets.to_vec()?, [3, 2, 24, 16]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_segments_by<C: Offset, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: &Operator<T, F>,
        kind: Scan<T>,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (input, offsets) = (input.input(), offsets.input());
        self.check_segments(offsets, input.len())?;
        let mut output = self.uninit(input.len())?;
        self.scan_segments_by_into(input, offsets, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_segments_by`] into a slice, buffer or view. All else is as in [`Device::scan_segments_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_segments_by`] and [`Device::scan_segments_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let (device, kind, mut sums) = (Device::best()?, Scan::exclusive(0), [0; 3]);
    /// device.scan_segments_by_into(&[200u8, 100, 7], &[0u64, 2], &saturating, kind, &mut sums)?;
    /// assert_eq!(sums, [0, 200, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_segments_by_into<'c, C: Offset, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: &Operator<T, F>,
        kind: Scan<T>,
        output: impl Into<Output<'c, T>>,
    ) -> Result<()> {
        let input = input.held(self)?;
        let ((op, source), input) = (op.parts()?, input.input());
        let offsets = offsets.held(self)?;
        let parts = self.parts_at(offsets.input(), input.len(), kind.reversed)?;
        self.scan_parts((&op, source), input, parts, kind, output.into(), &mut Scratch::new())
    }

    /// Scan of `values` that restarts wherever `flags[i] != 0`.
    ///
    /// Each segment starts from the scan's initial value. The values before the first flag are a segment too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of flags and values differ;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Sum};
    ///
    /// let (device, flags, values) = (Device::best()?, [0u8, 0, 1, 1, 0], [1u64, 2, 3, 4, 5]);
    /// let sums = device.scan_flagged(&values, &flags, Sum, Scan::<u64>::inclusive())?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 3, 4, 9]);
    /// let back = device.scan_flagged(&values, &flags, Sum, Scan::<u64>::inclusive().reversed())?;
    /// assert_eq!(back.to_vec()?, [3, 2, 3, 9, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_flagged<T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        values: impl Source<Item = T>,
        flags: impl Source<Item = u8>,
        op: O,
        kind: Scan<U>,
    ) -> Result<Buffer<U>> {
        let (values, flags) = (values.held(self)?, flags.held(self)?);
        let (values, flags) = (values.input(), flags.input());
        let mut output = self.uninit(values.len())?;
        self.scan_flagged_into(values, flags, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_flagged`] into a slice, buffer or view with one element for each value.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_flagged`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output`
    /// has another length, or overlaps an input.
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Product};
    ///
    /// let mut powers = [0u16; 5];
    /// let flags = [0u8, 0, 0, 255, 0];
    /// Device::best()?.scan_flagged_into(&[2u16; 5], &flags, Product, Scan::exclusive(1), &mut powers)?;
    /// assert_eq!(powers, [1, 2, 4, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_flagged_into<'c, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        values: impl Source<Item = T>,
        flags: impl Source<Item = u8>,
        op: O,
        kind: Scan<U>,
        output: impl Into<Output<'c, U>>,
    ) -> Result<()> {
        let values = values.held(self)?;
        let ((op, source), values) = (built_in::<U, O>(op), values.input());
        let flags = flags.held(self)?;
        let parts = self.parts_at_flags(flags.input(), values.len(), kind.reversed)?;
        self.scan_parts((&op, source), values, parts, kind, output.into(), &mut Scratch::new())
    }

    /// [`Device::scan_flagged`] with a user's operator, which need not be commutative.
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_flagged`]; [`ErrorKind::Build`](crate::ErrorKind::Build) and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) as [`Device::scan_by`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let first = Operator::new("first that is not 0", 0i32, |a, b| if a == 0 { b } else { a }, "a == 0 ? b : a");
    /// let found = Device::best()?.scan_flagged_by(&[0, 3, 4, 5, 6], &[1, 0, 0, 1, 0], &first, Scan::inclusive())?;
    /// assert_eq!(found.to_vec()?, [0, 3, 3, 5, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_flagged_by<T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        values: impl Source<Item = T>,
        flags: impl Source<Item = u8>,
        op: &Operator<T, F>,
        kind: Scan<T>,
    ) -> Result<Buffer<T>> {
        let (values, flags) = (values.held(self)?, flags.held(self)?);
        let (values, flags) = (values.input(), flags.input());
        let mut output = self.uninit(values.len())?;
        self.scan_flagged_by_into(values, flags, op, kind, &mut output)?;
        Ok(output)
    }

    /// [`Device::scan_flagged_by`] into a slice, buffer or view. All else is as in [`Device::scan_flagged_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::scan_flagged_by`] and [`Device::scan_flagged_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scan, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let (device, kind, mut sums) = (Device::best()?, Scan::inclusive(), [0; 3]);
    /// device.scan_flagged_by_into(&[200u8, 100, 7], &[1, 0, 1], &saturating, kind, &mut sums)?;
    /// assert_eq!(sums, [200, 255, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn scan_flagged_by_into<'c, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        values: impl Source<Item = T>,
        flags: impl Source<Item = u8>,
        op: &Operator<T, F>,
        kind: Scan<T>,
        output: impl Into<Output<'c, T>>,
    ) -> Result<()> {
        let values = values.held(self)?;
        let ((op, source), values) = (op.parts()?, values.input());
        let flags = flags.held(self)?;
        let parts = self.parts_at_flags(flags.input(), values.len(), kind.reversed)?;
        self.scan_parts((&op, source), values, parts, kind, output.into(), &mut Scratch::new())
    }

    /// All segmented scans, compiled once for each type and operator. There are as many results as elements.
    #[inline(never)]
    pub(super) fn scan_parts<T, U, F>(
        &self,
        (op, source): (&Monoid<U, F>, Code),
        input: Input<'_, T>,
        parts: Segments<'_>,
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element + From<T>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        output.expect_len(input.len(), "scan in segments")?;
        kind.expect_inexact(op)?;
        match (self.backend(), parts) {
            (Backend::OpenCl(device), Segments::Cl(heads, starts)) => {
                let form = gpu::Form::by::<T, U>((source, !op.ordered), kind.reversed);
                let (form, input) = (gpu::Form { heads: Some(heads), ..form }, (input.any(), starts));
                gpu::scan_any(device, &form, &gpu::Start::of(op, kind), input, output.any(), scratch)
            }
            (_, Segments::Cpu(mark)) => {
                let load = super::cpu::load(input.host()?, &super::cpu::widened::<T, U>, kind.reversed);
                super::cpu::scan_segments(op, super::cpu::run::<T>(), &*load, &*mark, kind, output.host()?)
            }
            (Backend::Cpu, Segments::Cl(..)) => unreachable!("the same device made the segments"),
        }
    }
}
