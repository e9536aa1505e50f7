//! Segmented reduction: one value from each segment of the input, [`Device::reduce_segments`]; in a wider type,
//! [`Device::reduce_segments_as`], by an operator of the user's [`Device::reduce_segments_by`].
//!
//! | property | |
//! |---|---|
//! | work | about n operations, one read of the input, about two of the offsets |
//! | operator | as [`reduce`](crate::reduce) |
//! | determinism | everywhere, floats too: the order depends on where a segment starts and ends alone |
//! | scratch | some 40 bytes for each 16 KiB of the input: [`Device::reduce_segments_scratch`] |
//! | limits | any n and any number of segments that fit the device |
//!
//! The input, not the segments, is shared out evenly, as in merge-based sparse products (Merrill and Garland 2016): a
//! work-group reduces its tile with a flag at each start (Blelloch 1990), and a tree over the tiles completes the segments
//! that cross their edges. Its leaves are the same everywhere, which makes the order so.

#[doc(hidden)]
pub(crate) mod cpu;
#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;

use crate::{
    Buffer, Device, Element, ElementType, Error, Input, Integer, Output, Result, Scratch,
    op::{Monoid, Op, Operator, Source, monoid},
    runtime::Backend,
};

/// Bytes of a leaf of the tree.
pub const BLOCK_BYTES: usize = 64;
/// Blocks that the CPU combines side by side.
const ABREAST: usize = 8;

/// Where segments start and end, or which elements are meant: `u32` or `u64`.
///
/// ```
/// use oclprim::{Device, Offset, op::Max};
///
/// fn largest<C: Offset>(x: &[u8], offsets: &[C]) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.reduce_segments(x, offsets, Max)?.to_vec()
/// }
///
/// assert_eq!(largest(&[1, 9, 3], &[0u32, 2, 3])?, largest(&[1, 9, 3], &[0u64, 2, 3])?);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub trait Offset: Integer {}
impl Offset for u32 {}
impl Offset for u64 {}

/// Offsets of either type, on the host.
#[derive(Clone, Copy)]
pub(crate) enum Offsets<'a> {
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// Where segments start in some blocks of the input.
struct Marks {
    /// A bit for each element.
    words: [u64; ABREAST],
    /// The offsets that are at most that position, where one is.
    ranks: [usize; ABREAST * BLOCK_BYTES],
}

impl Marks {
    /// Whether the first element of all is the only one with a start.
    fn at_first_alone(&self) -> bool {
        self.words[0] == 1 && self.words[1..].iter().all(|&word| word == 0)
    }

    /// Whether no block has a start behind its first element.
    fn between_blocks(&self, item: usize) -> bool {
        let firsts = (0..64).step_by(item).fold(0, |bits, at| bits | 1 << at);
        self.words.iter().all(|word| word & !firsts == 0)
    }

    /// The bits of block `b`, which has `item` elements.
    #[inline]
    fn block(&self, b: usize, item: usize) -> u64 {
        let at = b * item;
        self.words[at / 64] >> (at % 64) & (u64::MAX >> (64 - item))
    }
}

impl<'a> Offsets<'a> {
    pub(crate) fn of<C: Element>(offsets: &'a [C]) -> Self {
        match C::TYPE {
            ElementType::U64 => Self::U64(bytemuck::cast_slice(offsets)),
            _ => Self::U32(bytemuck::cast_slice(offsets)),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::U32(offsets) => offsets.len(),
            Self::U64(offsets) => offsets.len(),
        }
    }

    pub(crate) fn get(self, i: usize) -> usize {
        match self {
            Self::U32(offsets) => offsets[i] as usize,
            Self::U64(offsets) => usize::try_from(offsets[i]).unwrap_or(usize::MAX),
        }
    }

    /// How many are below `p`.
    pub(crate) fn below(self, p: usize) -> usize {
        match self {
            Self::U32(offsets) => offsets.partition_point(|&x| (x as usize) < p),
            Self::U64(offsets) => offsets.partition_point(|&x| x < p as u64),
        }
    }

    /// How many are at most `p`.
    pub(crate) fn rank(self, p: usize) -> usize {
        self.below(p + 1)
    }

    /// Notes those of `p .. p + len`, of which number `rank` is the first: how many are before its end.
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

    /// Whether those from the i-th on are `step` beyond `p`, `step` beyond that and so on, [`ABREAST`] of them.
    fn is_ramp(self, i: usize, p: usize, step: usize) -> bool {
        fn is<C: Copy>(offsets: &[C], i: usize, equals: impl Fn(C, usize) -> bool) -> bool {
            // All are compared, by vectors.
            let all = |offsets: &[C]| offsets.iter().zip(1..).fold(true, |all, (&x, k)| all & equals(x, k));
            offsets.get(i..i + ABREAST).is_some_and(|own| equals(own[0], 1) && all(own))
        }
        match self {
            Self::U32(offsets) => is(offsets, i, |x, k| x as usize == p + k * step),
            Self::U64(offsets) => is(offsets, i, |x, k| x == (p + k * step) as u64),
        }
    }

    /// The first one that is beyond the next, or beyond `n`.
    fn bad(self, n: usize) -> Option<usize> {
        let next = |i: usize| if i + 1 < self.len() { self.get(i + 1).min(n) } else { n };
        (0..self.len()).find(|&i| self.get(i) > next(i))
    }
}

impl Device {
    /// Combines the elements of each segment with `op`: segment `s` is `input[offsets[s]..offsets[s + 1]]`.
    ///
    /// Segments of any lengths share the device evenly. The result of an empty one is the operator's
    /// [empty](Op::empty) value. Elements before the first offset and from the last one on are in no segment.
    ///
    /// Float sums and products are the same on every run, every device and the CPU, wherever the devices keep subnormals:
    /// blocks of 64 bytes of the input are combined from left to right, and the blocks' results as one binary tree of
    /// neighbours over the input, in which the elements of other segments are left out. So they depend on where a segment
    /// starts and ends.
    ///
    /// Offsets are checked, which waits; [`Device::reduce_segments_into`] does neither.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an offset is beyond the next one or beyond the
    /// input, or there is none at all; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks
    /// fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
    /// let sums = device.reduce_segments(&x, &[0u32, 2, 2, 5], Sum)?;
    /// assert_eq!(sums.to_vec()?, [3.0, 0.0, 12.0]);
    ///
    /// let error = device.reduce_segments(&x, &[0u64, 6], Sum).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 1 is 6, beyond the 5 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments<'a, 'b, T: Element, C: Offset, O: Op<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        op: O,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.into(), offsets.into());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.reduce_segments_into(input, offsets, op, &mut out, &mut Scratch::new())?;
        Ok(out)
    }

    /// [`Device::reduce_segments`] into a caller's slice, buffer or view of as many elements as there are segments.
    ///
    /// Does not wait for the result, unless `output` is a host slice, and does not check the offsets: one beyond the input
    /// counts as its end, and where one is beyond the next, results are unspecified. Whatever they are, nothing is read or
    /// written out of bounds. [`Device::check_segments`] checks them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` has not one element less than there are
    /// offsets; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, Scratch, op::Max};
    ///
    /// let device = Device::best()?;
    /// let mut rows = device.zeroed::<u8>(2)?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.reduce_segments_scratch::<u8>(4)?)?;
    /// device.reduce_segments_into(&[3u8, 1, 4, 1], &[0u32, 2, 4], Max, &mut rows, &mut scratch)?;
    /// assert_eq!(rows.to_vec()?, [3, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_into<'a, 'b, 'c, T: Element, C: Offset, O: Op<T>>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        _: O,
        output: impl Into<Output<'c, T>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.reduce_parts(&monoid::<T, O>(), O::source(), input.into(), offsets.into(), output.into(), scratch)
    }

    /// [`Device::reduce_segments`] in a type that holds every `T`, such as `i64` for `i32` or `f32` for `f16`: elements are
    /// converted as they are read, as by [`Device::reduce_as`].
    ///
    /// # Errors
    ///
    /// As [`Device::reduce_segments`].
    ///
    /// ```
    /// use oclprim::{Buffer, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let sums: Buffer<u32> = device.reduce_segments_as(&[200u8, 100, 7], &[0u32, 2, 3], Sum)?;
    /// assert_eq!(sums.to_vec()?, [300, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_as<'a, 'b, T: Element, U: Element + From<T>, C: Offset, O: Op<U>>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        op: O,
    ) -> Result<Buffer<U>> {
        let (input, offsets) = (input.into(), offsets.into());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.reduce_segments_as_into(input, offsets, op, &mut out, &mut Scratch::new())?;
        Ok(out)
    }

    /// [`Device::reduce_segments_as`] into a caller's slice, buffer or view, as [`Device::reduce_segments_into`]: it neither
    /// waits nor checks the offsets.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce_segments_into`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let mut sums = device.zeroed::<i64>(2)?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.reduce_segments_scratch::<i32>(3)?)?;
    /// device.reduce_segments_as_into(&[i32::MAX; 3], &[0u32, 2, 3], Sum, &mut sums, &mut scratch)?;
    /// assert_eq!(sums.to_vec()?, [(1 << 32) - 2, (1 << 31) - 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_as_into<'a, 'b, 'c, T: Element, U: Element + From<T>, C: Offset, O: Op<U>>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        _: O,
        output: impl Into<Output<'c, U>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.reduce_parts(&monoid::<U, O>(), O::source(), input.into(), offsets.into(), output.into(), scratch)
    }

    /// [`Device::reduce_segments`] by an operator of the user's, which need not be commutative; an empty segment gives its
    /// identity.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce_segments`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce_by`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that of `T`.
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// let x = [3, 7, 0, 5, 0, 0];
    /// let found = Device::best()?.reduce_segments_by(&x, &[0u32, 3, 4, 6], &last)?;
    /// assert_eq!(found.to_vec()?, [7, 5, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_by<'a, 'b, T, C, F>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        op: &Operator<T, F>,
    ) -> Result<Buffer<T>>
    where
        T: Element<Acc = T>,
        C: Offset,
        F: Fn(T, T) -> T + Sync,
    {
        let (input, offsets) = (input.into(), offsets.into());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.reduce_segments_by_into(input, offsets, op, &mut out, &mut Scratch::new())?;
        Ok(out)
    }

    /// [`Device::reduce_segments_by`] into a caller's slice, buffer or view, as [`Device::reduce_segments_into`]: it neither
    /// waits nor checks the offsets.
    ///
    /// # Errors
    ///
    /// As [`Device::reduce_segments_into`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce_by`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that of `T`.
    ///
    /// ```
    /// use oclprim::{Device, Scratch, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let mut sums = [0u8; 2];
    /// let device = Device::best()?;
    /// device.reduce_segments_by_into(&[200u8, 100, 7], &[0u32, 2, 3], &saturating, &mut sums, &mut Scratch::new())?;
    /// assert_eq!(sums, [255, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_by_into<'a, 'b, 'c, T, C, F>(
        &self,
        input: impl Into<Input<'a, T>>,
        offsets: impl Into<Input<'b, C>>,
        op: &Operator<T, F>,
        output: impl Into<Output<'c, T>>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element<Acc = T>,
        C: Offset,
        F: Fn(T, T) -> T + Sync,
    {
        let (op, source) = op.monoid()?;
        self.reduce_parts(&op, source, input.into(), offsets.into(), output.into(), scratch)
    }

    /// All forms, built once for each type and operator.
    #[inline(never)]
    pub(crate) fn reduce_parts<T, U, C, F>(
        &self,
        op: &Monoid<U, F>,
        source: Source,
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Element,
        U: Element + From<T>,
        C: Offset,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        output.expect_len(segments(offsets.len())?, "reduce of segments")?;
        match self.backend() {
            Backend::Cpu => cpu::reduce(op, input.host()?, Offsets::of(offsets.host()?), output.host()?),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let form = gpu::Form::by::<T, U>(source, C::TYPE);
                let (input, offsets, output) = (input.cl(device)?, offsets.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input, &offsets], &[&output])?;
                gpu::reduce(device, &form, bytemuck::bytes_of(&op.empty), &input, &offsets, output, scratch)?;
            }
        }
        Ok(())
    }

    /// Checks that no offset is beyond the next one or beyond `n` elements. Reads them once, on the device, and waits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with the first that is, or if there is none at all.
    ///
    /// ```
    /// let error = oclprim::Device::best()?.check_segments(&[0u32, 7, 5, 9], 9).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 1 is 7, beyond the next one, 5");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn check_segments<'a, C: Offset>(&self, offsets: impl Into<Input<'a, C>>, n: usize) -> Result<()> {
        let offsets = offsets.into();
        segments(offsets.len())?;
        let count = offsets.len();
        let found = match self.backend() {
            Backend::Cpu => {
                let offsets = Offsets::of(offsets.host()?);
                let next = |i: usize| (i + 1 < count).then(|| offsets.get(i + 1) as u64);
                offsets.bad(n).map(|i| (i, offsets.get(i) as u64, next(i)))
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let form = gpu::Form::of::<i32, crate::op::Sum>(C::TYPE);
                let offsets = offsets.cl(device)?;
                match gpu::check(device, &offsets, &form, n)? {
                    Some(i) => {
                        let mut pair = [0; 2];
                        let there = (count - i).min(2);
                        gpu::read(device, &offsets, i, C::TYPE == ElementType::U64, &mut pair[..there])?;
                        Some((i, pair[0], (there == 2).then_some(pair[1])))
                    }
                    None => None,
                }
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

    /// The bytes of scratch that segmented reductions of `n` elements of type `T`, to any type, use at most.
    ///
    /// # Errors
    ///
    /// As [`Device::capabilities`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// oclprim::Scratch::new().reserve(&device, device.reduce_segments_scratch::<f32>(100_000)?)?;
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_scratch<T: Element>(&self, n: usize) -> Result<usize> {
        match self.backend() {
            Backend::Cpu => Ok(0),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => gpu::scratch_bytes(device, n, size_of::<T>(), None),
        }
    }
}

/// The segments between so many offsets.
pub(crate) fn segments(offsets: usize) -> Result<usize> {
    offsets.checked_sub(1).ok_or_else(|| Error::invalid("segments need one offset more than there are, got 0 offsets"))
}
