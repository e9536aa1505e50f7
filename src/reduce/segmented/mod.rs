//! Segmented reduction: `out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1]`, [`Device::reduce`] of
//! [`x.segments(&offsets)`](Source::segments).
//!
//! | property | |
//! |---|---|
//! | work | about n operations, one read of the input, about two of the offsets |
//! | operator | as [`reduce`](crate::reduce); a user-defined operator need not be commutative |
//! | determinism | same bits everywhere, floats too, if the device keeps subnormals: the order depends only on where a segment starts and ends. [`Sum.exact()`](crate::op::Usage::exact) and [`Mean`](crate::op::Mean) are correctly rounded |
//! | scratch | some 40 bytes for each tile of 4 to 64 KiB of the input. Exact sums and means take about 360 bytes for each 16,384 elements; for `f64`, 2,200 |
//! | limits | any n and any number of segments that fit the device |
//!
//! Work-groups get equal parts of the input for segments of any lengths, as in merge-based products of sparse matrices
//! and vectors (Merrill and Garland 2016). A work-group reduces its tile with segment-head flags (Blelloch 1990). A
//! tree over the tiles completes the segments that cross tile boundaries.
//!
//! Float sums and products have this order: each 64-byte cache line of the input is combined from left to right. The
//! results of cache lines combine in pairs of neighbours, in one tree for the whole input. Each segment uses only its
//! own elements. So a result depends on where its segment starts and ends. The result of an empty segment is that of
//! empty input. Elements before the first offset, and from the last offset on, belong to no segment.

#[doc(hidden)]
pub(crate) mod cpu;
pub mod extremes;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod moments;

#[doc(no_inline)]
pub use crate::segments::Offset;

use bytemuck::Pod;

use super::Reducible;
use crate::{
    Buffer, Determinism, Device, Element, Error, Input, Output, Result, Scratch, Source,
    op::{ByElement, Code, Combinable, Core, Monoid, OfEither, Operator},
    reduce::exact_groups::{self, Exact},
    runtime::{AnyInput, AnyOutput, Backend, opencl::ClDevice},
    segments::{Offsets, segments},
    source::{Narrow, Segments, Wide, finite},
};

/// Bytes of a leaf of the tree: a cache line.
#[doc(hidden)]
pub const BLOCK_BYTES: usize = 64;
/// Cache lines that the CPU combines side by side.
const ABREAST: usize = 8;

/// Segment-head flags and ranks of some cache lines of the input.
struct Marks {
    /// A flag for each element.
    words: [u64; ABREAST],
    /// The rank at each flagged element: the number of offsets that are at most its index.
    ranks: [usize; ABREAST * BLOCK_BYTES],
}

impl Marks {
    /// Returns whether the first element is the only one with a flag.
    fn at_first_alone(&self) -> bool {
        self.words[0] == 1 && self.words[1..].iter().all(|&word| word == 0)
    }

    /// Returns whether all flags are at first elements of cache lines. A cache line has `item` elements.
    fn between_blocks(&self, item: usize) -> bool {
        let firsts = (0..64).step_by(item).fold(0, |bits, at| bits | 1 << at);
        self.words.iter().all(|word| word & !firsts == 0)
    }

    /// The flags of cache line `b`, which has `item` elements.
    #[inline]
    fn block(&self, b: usize, item: usize) -> u64 {
        let at = b * item;
        self.words[at / 64] >> (at % 64) & (u64::MAX >> (64 - item))
    }
}

impl Offsets<'_> {
    /// Sets the flags and ranks of the elements `p..p + len`; `rank` is the index of the first offset from `p` on.
    /// Returns how many offsets are before `p + len`.
    fn mark(self, rank: usize, p: usize, len: usize, marks: &mut Marks) -> usize {
        fn mark<C: Copy>(offsets: &[C], rank: usize, len: usize, marks: &mut Marks, at: impl Fn(C) -> usize) -> usize {
            let mut rank = rank;
            for (w, word) in marks.words.iter_mut().enumerate() {
                let mut bits = 0;
                while let Some(&offset) = offsets.get(rank) {
                    let at = at(offset);
                    if at >= len.min((w + 1) * 64) {
                        break;
                    }
                    bits |= 1 << (at % 64);
                    rank += 1;
                    marks.ranks[at] = rank;
                }
                *word = bits;
            }
            rank
        }
        match self {
            Self::U32(offsets) => mark(offsets, rank, len, marks, |x| (x as usize).wrapping_sub(p)),
            Self::U64(offsets) => {
                mark(offsets, rank, len, marks, |x| usize::try_from(x.wrapping_sub(p as u64)).unwrap_or(usize::MAX))
            }
        }
    }

    /// Returns whether the [`ABREAST`] offsets from the i-th on are `p + step`, `p + 2 * step` and so on.
    fn is_ramp(self, i: usize, p: usize, step: usize) -> bool {
        fn is<C: Copy>(offsets: &[C], i: usize, equals: impl Fn(C, usize) -> bool) -> bool {
            // All are compared, without an early exit, so that the loop vectorises.
            let all = |offsets: &[C]| offsets.iter().zip(1..).fold(true, |all, (&x, k)| all & equals(x, k));
            offsets.get(i..i + ABREAST).is_some_and(|own| equals(own[0], 1) && all(own))
        }
        match self {
            Self::U32(offsets) => is(offsets, i, |x, k| x as usize == p + k * step),
            Self::U64(offsets) => is(offsets, i, |x, k| x == (p + k * step) as u64),
        }
    }
}

/// Segmented reductions on an OpenCL device. Runs the operation `exact` if there is one, and `form` otherwise.
fn on_a_device(
    device: &ClDevice,
    (form, exact): (gpu::Form, Option<exact_groups::gpu::Form>),
    empty: &[u8],
    (Narrow(input, element), other): (Narrow<'_>, Option<AnyInput<'_>>),
    offsets: AnyInput<'_>,
    output: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    match exact {
        Some(form) => {
            let form = exact_groups::gpu::Form { element, products: other.is_some(), ..form };
            exact_groups::gpu::segments(device, &form, [input, offsets], other, output)
        }
        None => gpu::reduce(device, &gpu::Form { element, ..form }, empty, [input, offsets], output, scratch),
    }
}

impl<S: Source<Item: Combinable + Pod>, C: Source<Item: Offset>> Reducible for Segments<S, C> {
    fn reduce<O: Core<S::Item>>(self, device: &Device, op: O, level: Determinism) -> Result<Buffer<S::Item>> {
        let offsets = self.offsets.held(device)?;
        let offsets = offsets.input();
        device.check_segments(offsets, finite(&self.source)?)?;
        let mut out = device.uninit(offsets.len() - 1)?;
        Segments { source: self.source, offsets }.reduce_into(device, op, level, (&mut out).into())?;
        Ok(out)
    }

    fn reduce_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
        output: Output<'_, S::Item>,
    ) -> Result<()> {
        let Self { source, offsets } = self;
        op.visit(ByElement(In { device, source, offsets, level, output }))
    }
}

/// The reduction of segments of a source.
struct In<'a, S: Source<Item: Pod>, C> {
    device: &'a Device,
    source: S,
    offsets: C,
    level: Determinism,
    output: Output<'a, S::Item>,
}

impl<S: Source<Item: Combinable + Pod>, C: Source<Item: Offset>> OfEither<S::Item> for In<'_, S, C> {
    type Output = Result<()>;

    fn of_elements(self, op: impl Core<S::Item>) -> Result<()>
    where
        S::Item: Element,
    {
        let Self { device, source, offsets, level, output } = self;
        let (exact, (op, code)) = (op.exactly(level)?, op.parts()?);
        let input = Wide::summands(&source, device, exact.is_some(), !op.ordered)?;
        let offsets = offsets.held(device)?;
        device.reduce_parts(&op, code, exact, &input, offsets.input(), output, &mut Scratch::new())
    }

    fn of_structs<F: Fn(S::Item, S::Item) -> S::Item + Sync>(self, op: &Operator<S::Item, F>) -> Result<()> {
        let Self { device, source, offsets, level, output } = self;
        let (held, offsets) = (source.held(device)?, offsets.held(device)?);
        device.reduce_structs((op, level), held.input(), offsets.input(), output)
    }
}

/// # Segmented reductions
///
/// [`Device::reduce`] takes segments. Module: [`reduce::segmented`](crate::reduce::segmented).
impl Device {
    /// All segmented reductions, compiled once for each type and operator. If `exact`, the operator is a sum of floats.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of the call, and the operator's source and level")]
    pub(crate) fn reduce_parts<U, C, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        input: &Wide<'_, U>,
        offsets: Input<'_, C>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        U: Element,
        C: Offset,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        output.expect_len(segments(offsets.len())?, "reduce of segments")?;
        let Backend::OpenCl(device) = self.backend() else {
            let (values, offsets, out) = (input.host()?, Offsets::of(offsets.host()?), output.host()?);
            let other = input.other().map(|other| other.host()).transpose()?;
            return match exact {
                Some(of) => exact_groups::cpu::segments(of, values, other, offsets, out),
                None => cpu::reduce(op, values, offsets, out),
            };
        };
        let form = gpu::Form::by::<U, U>(source, C::TYPE);
        let (exact, empty) = (exact.map(exact_groups::gpu::Form::of::<U, U>), bytemuck::bytes_of(&op.empty));
        let other = input.other().map(|other| other.any());
        on_a_device(device, (form, exact), empty, (input.any(), other), offsets.any(), output.any(), scratch)
    }

    /// Checks that no offset is beyond the next one or beyond `n`. Reads the offsets once, where they are: the host
    /// checks a slice. For offsets on the device, the call waits for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with the first such offset, or if there are no
    /// offsets.
    ///
    /// ```
    /// let error = oclprim::Device::best()?.check_segments(&[0u32, 7, 5, 9], 9).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 1 is 7, beyond the next one, 5");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn check_segments<C: Offset>(&self, offsets: impl Source<Item = C>, n: usize) -> Result<()> {
        let held = offsets.held(self)?;
        let offsets = held.input();
        segments(offsets.len())?;
        let count = offsets.len();
        let found = match (self.backend(), offsets) {
            (Backend::OpenCl(device), Input::Device(_)) => {
                let form = gpu::Form::of::<i32, crate::op::Sum>(C::TYPE);
                let offsets = offsets.cl(device)?;
                match gpu::check(device, &offsets, &form, n)? {
                    Some(i) => {
                        let mut pair = [0; 2];
                        let there = (count - i).min(2);
                        gpu::read(device, &offsets, i, C::TYPE == crate::ElementType::U64, &mut pair[..there])?;
                        Some((i, pair[0], (there == 2).then_some(pair[1])))
                    }
                    None => None,
                }
            }
            // For a slice, a kernel would cost a build, an upload and a wait.
            _ => {
                let offsets = Offsets::of(offsets.host()?);
                let next = |i: usize| (i + 1 < count).then(|| offsets.get(i + 1) as u64);
                offsets.bad(n).map(|i| (i, offsets.get(i) as u64, next(i)))
            }
        };
        match found {
            None => Ok(()),
            Some((i, offset, Some(next))) if offset <= n as u64 => {
                Err(Error::invalid(format!("offset {i} is {offset}, beyond the next one, {next}")))
            }
            Some((i, offset, _)) => Err(Error::invalid(format!("offset {i} is {offset}, beyond the {n} elements"))),
        }
    }
}
