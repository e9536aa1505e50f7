//! Segmented reduction: `out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1]`, [`Device::reduce_segments`].
//! [`Device::reduce_segments_with_into`] computes in a wider type, [`Device::reduce_segments_by`] takes a user's operator.
//!
//! | property | |
//! |---|---|
//! | work | about n operations, one read of the input, about two of the offsets |
//! | operator | as [`reduce`](crate::reduce) |
//! | determinism | same bits everywhere, floats too, if the device keeps subnormals: the order depends only on where a segment starts and ends. [`Device::reduce_segments_with`] also has correctly rounded sums |
//! | scratch | some 40 bytes for each tile of 4 to 64 KiB of the input |
//! | limits | any n and any number of segments that fit the device |
//!
//! Work-groups get equal parts of the input, whatever the segments, as in merge-based sparse products (Merrill and
//! Garland 2016). A work-group reduces its tile with segment-head flags (Blelloch 1990). A tree over the tiles
//! completes the segments that cross tile boundaries. The leaves of the tree are the same everywhere, and so is the
//! order.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

#[doc(no_inline)]
pub use crate::segments::Offset;

use crate::{
    Buffer, Determinism, Device, Element, Error, Float, Input, Output, Result, Scratch, Source,
    op::{Code, Core, Monoid, Op, Operator, Sum, built_in},
    reduce::exact_groups::{self, Exact},
    runtime::Backend,
    segments::{Offsets, segments},
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

/// # Segmented reductions
///
/// These methods return one value per segment: `out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1]`. Module:
/// [`reduce::segmented`](crate::reduce::segmented).
impl Device {
    /// Segmented reduction: `out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1]`.
    ///
    /// Segments of any lengths share the device evenly. The result of an empty segment is the operator's
    /// [empty](Op::empty) value. Elements before the first offset, and from the last offset on, belong to no segment.
    ///
    /// Float sums and products have the same bits on every run, every device and the CPU, if the devices keep
    /// subnormals. Each 64-byte cache line of the input is combined from left to right. The results combine as a binary
    /// tree of neighbours over the whole input, which leaves out the elements of other segments. So a result depends on
    /// where its segment starts and ends.
    ///
    /// Checks the offsets, which waits for the device. [`Device::reduce_segments_into`] does not check.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are no offsets, or if an offset is beyond
    /// the next one or beyond the input. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks
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
    pub fn reduce_segments<T: Element, C: Offset, O: Op<T>>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: O,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (input, offsets) = (input.input(), offsets.input());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.reduce_segments_into(input, offsets, op, &mut out)?;
        Ok(out)
    }

    /// [`Device::reduce_segments`] into a slice, buffer or view with one element for each segment.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// Does not check the offsets; [`Device::check_segments`] does. An offset beyond the input counts as its end. If an
    /// offset is beyond the next one, results are unspecified. Reads and writes stay in bounds for any offsets.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not have exactly one element fewer
    /// than there are offsets. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and
    /// `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Max};
    ///
    /// let device = Device::best()?;
    /// let mut rows = device.zeroed::<u8>(2)?;
    /// device.reduce_segments_into(&[3u8, 1, 4, 1], &[0u32, 2, 4], Max, &mut rows)?;
    /// assert_eq!(rows.to_vec()?, [3, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_into<'c, T: Element, C: Offset, O: Op<T>>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: O,
        output: impl Into<Output<'c, T>>,
    ) -> Result<()> {
        let (op, source) = built_in::<T, O>(op);
        self.reduce_parts(
            &op,
            source,
            None,
            input.held(self)?.input(),
            offsets.held(self)?.input(),
            output.into(),
            &mut Scratch::new(),
        )
    }

    /// [`Device::reduce_segments`] with a user's operator, which need not be commutative. An empty segment gives the
    /// operator's identity.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_segments`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that of
    /// `T`.
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
    pub fn reduce_segments_by<T, C, F>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: &Operator<T, F>,
    ) -> Result<Buffer<T>>
    where
        T: Element<Acc = T>,
        C: Offset,
        F: Fn(T, T) -> T + Sync,
    {
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (input, offsets) = (input.input(), offsets.input());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.reduce_segments_by_into(input, offsets, op, &mut out)?;
        Ok(out)
    }

    /// [`Device::reduce_segments_by`] into a slice, buffer or view. Like [`Device::reduce_segments_into`], it does not
    /// check the offsets, and waits only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_segments_into`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as
    /// [`Device::reduce`], and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in
    /// OpenCL C is not that of `T`.
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let mut sums = [0u8; 2];
    /// let device = Device::best()?;
    /// device.reduce_segments_by_into(&[200u8, 100, 7], &[0u32, 2, 3], &saturating, &mut sums)?;
    /// assert_eq!(sums, [255, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_by_into<'c, T, C, F>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: &Operator<T, F>,
        output: impl Into<Output<'c, T>>,
    ) -> Result<()>
    where
        T: Element<Acc = T>,
        C: Offset,
        F: Fn(T, T) -> T + Sync,
    {
        let (op, source) = op.parts()?;
        self.reduce_parts(
            &op,
            source,
            None,
            input.held(self)?.input(),
            offsets.held(self)?.input(),
            output.into(),
            &mut Scratch::new(),
        )
    }

    /// [`Device::reduce_segments`] with a level of determinism. With [`Exact`](Determinism::Exact) each float sum is correctly
    /// rounded: it has the same bits for every order of the segment's elements. The other levels give the results of
    /// [`Device::reduce_segments`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_segments`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let x = [1e30f32, 1.0, -1e30, 0.5];
    /// let sums = Device::best()?.reduce_segments_with(&x, &[0u32, 3, 4], Sum, Determinism::Exact)?;
    /// assert_eq!(sums.to_vec()?, [1.0, 0.5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_with<T: Element, C: Offset, O: Op<T>>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: O,
        determinism: Determinism,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (input, offsets) = (input.input(), offsets.input());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.reduce_segments_with_into(input, offsets, op, determinism, &mut out)?;
        Ok(out)
    }

    /// [`Device::reduce_segments_with`] into a slice, buffer or view, whose type holds every value of `T`. Like
    /// [`Device::reduce_segments_into`], it does not check the offsets, and waits only if `output` is a host slice.
    ///
    /// With [`Exact`](Determinism::Exact) the sum of the converted elements is rounded once, to the type of the output.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_segments_into`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let (x, exact) = ([16_777_216i32, 1, 2], Determinism::Exact);
    /// let mut sums = [0f64; 2];
    /// device.reduce_segments_with_into(&x, &[0u32, 2, 3], Sum, exact, &mut sums)?;
    /// assert_eq!(sums, [16_777_217.0, 2.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_segments_with_into<'c, T: Element, U: Element + From<T>, C: Offset, O: Op<U>>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        op: O,
        determinism: Determinism,
        output: impl Into<Output<'c, U>>,
    ) -> Result<()> {
        let exact = determinism.exact::<U, O>()?.then_some(Exact::Sum);
        let (op, source) = built_in::<U, O>(op);
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        self.reduce_parts(&op, source, exact, input.input(), offsets.input(), output.into(), &mut Scratch::new())
    }

    /// The mean of each segment, correctly rounded: the float nearest to the exact sum divided by the length.
    ///
    /// Its bits do not depend on the order of the segment's elements. The [rules](crate::exact#special-values) for special
    /// values are those of the sum. The mean of an empty segment is NaN.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_segments`].
    ///
    /// ```
    /// let x = [1e30f32, 1.0, -1e30, 0.5];
    /// let means = oclprim::Device::best()?.mean_segments_exact(&x, &[0u32, 3, 3, 4])?.to_vec()?;
    /// assert!(means[0] == 1.0 / 3.0 && means[1].is_nan() && means[2] == 0.5);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_segments_exact<T: Float, C: Offset>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (input, offsets) = (input.input(), offsets.input());
        self.check_segments(offsets, input.len())?;
        let mut out = self.uninit(offsets.len() - 1)?;
        self.mean_segments_exact_into(input, offsets, &mut out)?;
        Ok(out)
    }

    /// [`Device::mean_segments_exact`] into a slice, buffer or view. The elements are first converted
    /// to the output's type, without loss.
    ///
    /// Like [`Device::reduce_segments_into`], it does not check the offsets, and waits only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_segments_into`].
    ///
    /// ```
    /// let (device, mut means) = (oclprim::Device::best()?, [0f64; 2]);
    /// device.mean_segments_exact_into(&[16_777_216i32, 1, 2], &[0u32, 2, 3], &mut means)?;
    /// assert_eq!(means, [8_388_608.5, 2.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_segments_exact_into<'c, T: Element, U: Float + From<T>, C: Offset>(
        &self,
        input: impl Source<Item = T>,
        offsets: impl Source<Item = C>,
        output: impl Into<Output<'c, U>>,
    ) -> Result<()> {
        let (op, source) = built_in::<U, Sum>(Sum);
        let (input, offsets) = (input.held(self)?, offsets.held(self)?);
        let (exact, scratch) = (Some(Exact::Mean), &mut Scratch::new());
        self.reduce_parts(&op, source, exact, input.input(), offsets.input(), output.into(), scratch)
    }

    /// All segmented reductions, compiled once for each type and operator. If `exact`, the operator is a sum of floats.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of the call, and the operator's source and level")]
    pub(crate) fn reduce_parts<T, U, C, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
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
        match (self.backend(), exact) {
            (Backend::Cpu, Some(of)) => {
                exact_groups::cpu::segments(of, input.host()?, Offsets::of(offsets.host()?), output.host()?)?;
            }
            (Backend::Cpu, None) => cpu::reduce(op, input.host()?, Offsets::of(offsets.host()?), output.host()?)?,
            (Backend::OpenCl(device), Some(of)) => {
                let form = exact_groups::gpu::Form::of::<T, U>(of);
                exact_groups::gpu::segments(device, &form, [input.any(), offsets.any()], output.any())?;
            }
            (Backend::OpenCl(device), None) => {
                let form = gpu::Form::by::<T, U>(source, C::TYPE);
                let (empty, inputs) = (bytemuck::bytes_of(&op.empty), [input.any(), offsets.any()]);
                gpu::reduce(device, &form, empty, inputs, output.any(), scratch)?;
            }
        }
        Ok(())
    }

    /// Checks that no offset is beyond the next one or beyond `n`. Reads the offsets once, on the device, and waits for
    /// the result.
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
        let found = match self.backend() {
            Backend::Cpu => {
                let offsets = Offsets::of(offsets.host()?);
                let next = |i: usize| (i + 1 < count).then(|| offsets.get(i + 1) as u64);
                offsets.bad(n).map(|i| (i, offsets.get(i) as u64, next(i)))
            }
            Backend::OpenCl(device) => {
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
