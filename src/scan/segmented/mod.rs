//! Segmented scan, which restarts at each segment: [`Device::scan`] of [`x.by_key(&keys)`](Source::by_key),
//! [`x.segments(&offsets)`](Source::segments) or [`x.flagged(&flags)`](Source::flagged).
//!
//! | property | |
//! |---|---|
//! | work | as [`scan`](crate::scan); keys, flags or offsets are read as often as the elements |
//! | operator | as [`scan`](crate::scan); a user-defined operator need not be commutative |
//! | determinism | same bits everywhere, float sums and products too, if the device keeps subnormals: the order depends only on the index, the segments and the types |
//! | scratch | that of a scan, and at most 8 bytes for each 32 KiB |
//! | limits | any n and any number of segments that fit the device |
//!
//! A segmented scan is one scan over pairs of a value and a segment-head flag (Blelloch 1990; Sengupta 2007). Its
//! operator is `(a, f) op (b, g) = (g ? b : a op b, f or g)`. The order is that of a scan of all elements. All segments
//! share this scan, so work is balanced for any lengths. The flags keep elements of other segments out of a result. A
//! reversed scan runs from the last element of each segment to its first.

#[doc(hidden)]
pub(crate) mod cpu;

use bytemuck::Pod;

use super::{Scan, Scannable, cpu::Mark, gpu};
use crate::{
    Buffer, Device, Element, Input, Offset, Output, Result, Scratch, Source,
    arguments::expect_beside,
    op::{ByElement, Code, Combinable, Core, Monoid, OfEither, Operator},
    runtime::{AnyInput, Backend},
    segments::{Offsets, segments},
    source::{self, ByKey, Flagged, Narrow, Wide},
};

/// The segments of a scan, on either backend.
pub(crate) enum Segments<'a> {
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
    pub(crate) fn parts_at<'a, C: Offset>(
        &self,
        offsets: Input<'a, C>,
        n: usize,
        reversed: bool,
    ) -> Result<Segments<'a>> {
        segments(offsets.len())?;
        Ok(match self.backend() {
            Backend::Cpu => Segments::Cpu(Box::new(cpu::offsets(Offsets::of(offsets.host()?), n, reversed))),
            Backend::OpenCl(_) => Segments::Cl(gpu::Heads::Offsets(C::TYPE), gpu::Starts::Offsets(offsets.any())),
        })
    }

    /// Segments of `len` elements.
    pub(crate) fn rows(&self, len: usize) -> Segments<'static> {
        match self.backend() {
            Backend::Cpu => Segments::Cpu(Box::new(cpu::rows(len))),
            Backend::OpenCl(_) => Segments::Cl(gpu::Heads::Rows, gpu::Starts::Every(len)),
        }
    }
}

impl<S: Source<Item: Combinable + Pod>, C: Source<Item: Offset>> Scannable for source::Segments<S, C> {
    fn scan<O: Core<S::Item>>(self, device: &Device, op: O, usage: Scan<S::Item>) -> Result<Buffer<S::Item>> {
        let offsets = self.offsets.held(device)?;
        let (n, offsets) = (source::finite(&self.source)?, offsets.input());
        device.check_segments(offsets, n)?;
        let mut output = device.uninit(n)?;
        source::Segments { source: self.source, offsets }.scan_into(device, op, usage, (&mut output).into())?;
        Ok(output)
    }

    fn scan_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        usage: Scan<S::Item>,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        let offsets = self.offsets.held(device)?;
        scan_groups(device, &self.source, op, usage, output, |n| device.parts_at(offsets.input(), n, usage.reversed))
    }
}

impl<S: Source<Item: Combinable + Pod>, K: Source<Item: Element>> Scannable for ByKey<S, K> {
    fn scan<O: Core<S::Item>>(self, device: &Device, op: O, usage: Scan<S::Item>) -> Result<Buffer<S::Item>> {
        let mut output = device.uninit(source::finite(&self.source)?)?;
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
        let keys = self.keys.held(device)?;
        scan_groups(device, &self.source, op, usage, output, |n| device.parts_by_key(keys.input(), n, usage.reversed))
    }
}

impl<S: Source<Item: Combinable + Pod>, F: Source<Item = u8>> Scannable for Flagged<S, F> {
    fn scan<O: Core<S::Item>>(self, device: &Device, op: O, usage: Scan<S::Item>) -> Result<Buffer<S::Item>> {
        let mut output = device.uninit(source::finite(&self.source)?)?;
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
        let flags = self.flags.held(device)?;
        scan_groups(device, &self.source, op, usage, output, |n| {
            device.parts_at_flags(flags.input(), n, usage.reversed)
        })
    }
}

fn scan_groups<'p, S: Source<Item: Combinable + Pod>, O: Core<S::Item>>(
    device: &Device,
    source: &S,
    op: O,
    usage: Scan<S::Item>,
    output: Output<'_, S::Item>,
    parts: impl FnOnce(usize) -> Result<Segments<'p>>,
) -> Result<()> {
    op.visit(ByElement(Groups { device, source, usage, output, parts }))
}

/// The scan of groups of a source. `parts` returns the segments of a number of elements.
struct Groups<'a, S: Source<Item: Pod>, P> {
    device: &'a Device,
    source: &'a S,
    usage: Scan<S::Item>,
    output: Output<'a, S::Item>,
    parts: P,
}

impl<'p, S, P> OfEither<S::Item> for Groups<'_, S, P>
where
    S: Source<Item: Combinable + Pod>,
    P: FnOnce(usize) -> Result<Segments<'p>>,
{
    type Output = Result<()>;

    fn of_elements(self, op: impl Core<S::Item>) -> Result<()>
    where
        S::Item: Element,
    {
        let Self { device, source, usage, output, parts } = self;
        let (op, code) = op.parts()?;
        let input = Wide::of(source, device, !op.ordered)?;
        device.scan_parts((&op, code), &input, parts(input.len())?, usage, output, &mut Scratch::new())
    }

    fn of_structs<F: Fn(S::Item, S::Item) -> S::Item + Sync>(self, op: &Operator<S::Item, F>) -> Result<()> {
        let Self { device, source, usage, output, parts } = self;
        let held = source.held(device)?;
        let input = held.input();
        device.scan_structs(op, (input, None), Some(parts(input.len())?), usage, output)
    }
}

impl Device {
    /// All segmented scans, compiled once for each type and operator. There are as many results as elements.
    #[inline(never)]
    pub(super) fn scan_parts<U, F>(
        &self,
        (op, source): (&Monoid<U, F>, Code),
        input: &Wide<'_, U>,
        parts: Segments<'_>,
        kind: Scan<U>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        U: Element,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        output.expect_len(input.len(), "scan in segments")?;
        kind.expect_inexact(op)?;
        match (self.backend(), parts) {
            (Backend::OpenCl(device), Segments::Cl(heads, starts)) => {
                let Narrow(input, element) = input.any();
                let form = gpu::Form::by::<U, U>((source, !op.ordered), kind.reversed);
                let (form, input) = (gpu::Form { heads: Some(heads), element, ..form }, (input, starts));
                gpu::scan_any(device, &form, &gpu::Start::of(op, kind), input, None, output.any(), scratch)
            }
            (_, Segments::Cpu(mark)) => {
                let load = super::cpu::load(input.host()?, &U::widen, kind.reversed);
                super::cpu::scan_segments(op, &*load, &*mark, kind, output.host()?)
            }
            (Backend::Cpu, Segments::Cl(..)) => unreachable!("the same device made the segments"),
        }
    }
}
