//! Runs of equal neighbours: the first element of each run ([`Device::unique`]), with a value
//! [by key](Source::by_key), or with the run's length ([`Device::run_length_encode`]). [`Device::non_trivial_runs`]
//! locates runs of at least two elements.
//!
//! Floats compare as in [sorts](crate::sort), on every device: -0 equals +0, and all NaN are equal. Outputs, counts,
//! work, scratch and limits are those of [`select`](crate::select).
//!
//! A tile finds the length of a run if the next run starts in the same tile. For its last run, a second launch finds
//! the next tile in which a run starts, by bisection. For this, each tile records where its first and last runs start.

use bytemuck::Pod;

use super::gpu;
use super::{cpu, expect_numbers, expect_values};
use crate::runtime::apart;
use crate::{
    Buffer, Device, Element, Input, Offset, Output, Result, Scratch, Source,
    arguments::expect_beside,
    counted::{Firsts, in_room, on_device},
    runtime::Backend,
    source::{ByKey, PairOutput, Sequence, finite},
};

/// An input of [`Device::unique`]: a [`Source`], its first elements [by a count](Source::take),
/// [segments](Source::segments) of a source, or [values by key](Source::by_key), which are plain data of any size.
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, select::runs::Distinct};
///
/// fn found<I: Distinct<Found = Buffer<u8>>>(input: I) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.unique(input)?.to_vec()
/// }
/// assert_eq!(found(&[4u8, 4, 7])?, [4, 7]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no runs of equal elements",
    label = "expected a source, segments of one: `x.segments(&offsets)`, or values by key: `values.by_key(&keys)`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "lines of a view would keep different numbers of elements: write \
            `x.segments(counting(0u64).strided(length).take(lines + 1))`"
)]
pub trait Distinct: Sized {
    /// A buffer of elements, or one of keys and one of values. For segments, also a buffer of their offsets among the
    /// elements.
    type Found;
    /// The output of elements, or those of keys and of values.
    type Out<'o>;

    #[doc(hidden)]
    fn unique(self, device: &Device) -> Result<Self::Found>;

    #[doc(hidden)]
    fn unique_into(self, device: &Device, output: Self::Out<'_>, count: Output<'_, u64>) -> Result<()>;
}

impl<S: Sequence<Item: Element>> Distinct for S {
    type Found = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn unique(self, device: &Device) -> Result<Buffer<S::Item>> {
        device.counted(self.most()?, |output, count| self.unique_into(device, output, count))
    }

    fn unique_into(self, device: &Device, output: Output<'_, S::Item>, count: Output<'_, u64>) -> Result<()> {
        let (held, length) = self.held_on(device)?;
        device.unique_one((held.input(), length), output, count, &mut Scratch::new())
    }
}

impl<S: Source<Item: Pod>, K: Source<Item: Element>> Distinct for ByKey<S, K> {
    type Found = (Buffer<K::Item>, Buffer<S::Item>);
    type Out<'o> = PairOutput<'o, K::Item, S::Item>;

    fn unique(self, device: &Device) -> Result<Self::Found> {
        let mut values = device.uninit(finite(&self.source)?)?;
        let keys = device.counted(finite(&self.keys)?, |keys, count| {
            self.unique_into(device, PairOutput { keys, values: Output::from(&mut values) }, count)
        })?;
        values.truncate(keys.len());
        Ok((keys, values))
    }

    fn unique_into(self, device: &Device, to: Self::Out<'_>, count: Output<'_, u64>) -> Result<()> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        device.unique_by_key_one(keys.input(), values.input(), to.keys, to.values, count, &mut Scratch::new())
    }
}

/// # Runs of equal neighbours
///
/// These methods return one element, the length or the offset of each run. Module:
/// [`select::runs`](crate::select::runs).
impl Device {
    /// The first element of each run of equal elements. For values [by key](Source::by_key), the first key of each run of
    /// equal keys, and its value. In [segments](Source::segments), runs end where a segment ends, and the call also
    /// returns the offsets of the segments among these elements: see [`segmented`](super::segmented).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of keys and values differ.
    /// The same error if there are no offsets, or if an offset is beyond the next one or beyond the input.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if values have no bytes or more than 64 KiB.
    ///
    /// ```
    /// # use oclprim::Source;
    /// let found = oclprim::Device::best()?.unique(&[0.0f32, -0.0, 5.0, 5.0, f32::NAN, f32::NAN, 0.0])?.to_vec()?;
    /// assert_eq!((found.len(), found[0], found[1], found[3]), (4, 0.0, 5.0, 0.0));
    /// let values = [[0u32, 1], [2, 3], [4, 5], [6, 7]];
    /// let (keys, values) = oclprim::Device::best()?.unique(values.by_key(&[3u8, 3, 1, 3]))?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![3, 1, 3], vec![[0, 1], [4, 5], [6, 7]]));
    /// let (found, offsets) = oclprim::Device::best()?.unique([4u8, 4, 4, 7].segments(&[0u32, 2, 4]))?;
    /// assert_eq!((found.to_vec()?, offsets.to_vec()?), (vec![4, 4, 7], vec![0, 1, 3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn unique<I: Distinct>(&self, input: I) -> Result<I::Found> {
        input.unique(self)
    }

    /// [`Device::unique`] into a slice, buffer or view, which may be too short. For values by key, the output is a pair
    /// of these, of one length. The number of runs goes to the single element of `count`. For segments, `count` has as
    /// many elements as there are offsets, and receives the new offsets. The offsets are not checked, as in
    /// [`Device::select_into`].
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `count` has another length, or if
    /// arguments overlap in imported OpenCL memory. The same error if `count` is a host slice and `output` is too
    /// short.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let (mut found, mut count) = (device.zeroed::<u16>(3)?, device.zeroed::<u64>(1)?);
    /// device.unique_into(&[4u16, 4, 7, 4], &mut found, &mut count)?;
    /// assert_eq!((found.to_vec()?, device.selected(&count, 3)?), (vec![4, 7, 4], 3));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn unique_into<'b, 'c, I: Distinct>(
        &self,
        input: I,
        output: impl Into<I::Out<'b>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        input.unique_into(self, output.into(), count.into())
    }

    /// Body of [`Device::unique_into`], compiled once for each set of types.
    #[inline(never)]
    fn unique_one<T: Element>(
        &self,
        (input, length): Firsts<'_, T>,
        output: Output<'_, T>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        in_room("result", output.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let (others, rest) = (input.len().saturating_sub(1), cpu::first(output.host()?, input));
                let [found] = cpu::lists(others, &|part| cpu::heads(input, part), &|x| x, [rest])?;
                count.host()?[0] = (input.len().min(1) + found) as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (input, output, count) = (input.cl(device)?, output.cl(device, true)?, count.cl(device, false)?);
                apart(&[&input], &[&output, &count])?;
                let length = on_device(device, length, &[&output, &count])?;
                let job = gpu::Job { out: Some(&output), length: length.as_ref(), ..gpu::Job::of(&input, &count) };
                gpu::run(device, &gpu::Form::of(gpu::Marks::Heads(T::TYPE)), &job, scratch)?;
                count.finish(device)?;
                output.finish(device)
            }
        })
    }

    /// [`Device::unique`] of values by key, compiled once for each set of types.
    #[inline(never)]
    fn unique_by_key_one<K: Element, V: Pod + Send + Sync>(
        &self,
        keys: Input<'_, K>,
        values: Input<'_, V>,
        keys_out: Output<'_, K>,
        values_out: Output<'_, V>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        expect_values::<V>()?;
        expect_beside(keys.len(), values.len(), "keys need as many values")?;
        values_out.expect_len(keys_out.len(), "a value for each key")?;
        in_room("result", keys_out.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let (keys, values) = (keys.host()?, values.host()?);
                let mut keys_out = cpu::first(keys_out.host()?, keys);
                let mut values_out = cpu::first(values_out.host()?, values);
                let found = cpu::runs(
                    keys,
                    &mut |places| (cpu::next(&mut keys_out, places.len()), cpu::next(&mut values_out, places.len())),
                    &|(keys_out, values_out), places| {
                        keys_out.iter_mut().zip(places).for_each(|(to, &i)| *to = keys[i]);
                        values_out.iter_mut().zip(places).for_each(|(to, &i)| *to = values[i]);
                    },
                )?;
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (keys, values, count) = (keys.cl(device)?, values.cl(device)?, count.cl(device, false)?);
                let (keys_out, values_out) = (keys_out.cl(device, true)?, values_out.cl(device, true)?);
                apart(&[&keys, &values], &[&keys_out, &values_out, &count])?;
                let form = gpu::Form { value: size_of::<V>(), ..gpu::Form::of(gpu::Marks::Heads(K::TYPE)) };
                let job = gpu::Job {
                    out: Some(&keys_out),
                    values: Some((&values, &values_out)),
                    ..gpu::Job::of(&keys, &count)
                };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                keys_out.finish(device)?;
                values_out.finish(device)
            }
        })
    }

    /// The first element of each run of equal elements, and the run's length, as `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are 2^32 elements or more and lengths are
    /// `u32`.
    ///
    /// ```
    /// let (values, lengths) = oclprim::Device::best()?.run_length_encode::<u8, u32>(b"aaabcc")?;
    /// assert_eq!((values.to_vec()?, lengths.to_vec()?), (b"abc".to_vec(), vec![3, 1, 2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn run_length_encode<T: Element, C: Offset>(
        &self,
        input: impl Sequence<Item = T>,
    ) -> Result<(Buffer<T>, Buffer<C>)> {
        let most = input.most()?;
        let mut lengths = self.uninit(most)?;
        let values =
            self.counted(most, |values, count| self.run_length_encode_into(input, values, &mut lengths, count))?;
        lengths.truncate(values.len());
        Ok((values, lengths))
    }

    /// [`Device::run_length_encode`] into slices, buffers or views of one length. All else is as in
    /// [`Device::unique_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::run_length_encode`] and [`Device::unique_into`];
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the outputs' lengths differ.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let (mut values, mut lengths) = (device.zeroed::<i32>(2)?, device.zeroed::<u64>(2)?);
    /// let mut runs = [0];
    /// device.run_length_encode_into(&[5, 5, -1], &mut values, &mut lengths, &mut runs)?;
    /// assert_eq!((values.to_vec()?, lengths.to_vec()?, runs), (vec![5, -1], vec![2, 1], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn run_length_encode_into<'b, 'c, 'd, T: Element, C: Offset>(
        &self,
        input: impl Sequence<Item = T>,
        values: impl Into<Output<'b, T>>,
        lengths: impl Into<Output<'c, C>>,
        count: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        let (held, length) = input.held_on(self)?;
        self.run_length_encode_one(
            (held.input(), length),
            values.into(),
            lengths.into(),
            count.into(),
            &mut Scratch::new(),
        )
    }

    /// Body of [`Device::run_length_encode_into`], compiled once for each set of types.
    #[inline(never)]
    fn run_length_encode_one<T: Element, C: Offset>(
        &self,
        (input, length): Firsts<'_, T>,
        values: Output<'_, T>,
        lengths: Output<'_, C>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        expect_numbers::<C>(n)?;
        lengths.expect_len(values.len(), "a length for each run")?;
        in_room("result", values.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let (mut values, mut lengths) = (cpu::first(values.host()?, input), lengths.host()?);
                let mut last = 0;
                let found = cpu::runs(
                    input,
                    // A run's length is known where the next run starts.
                    &mut |places| {
                        let begin = last;
                        last = places.last().copied().unwrap_or(last);
                        (cpu::next(&mut values, places.len()), cpu::next(&mut lengths, places.len()), begin)
                    },
                    &|(values, lengths, mut begin), places| {
                        values.iter_mut().zip(places).for_each(|(to, &i)| *to = input[i]);
                        for (to, &end) in lengths.iter_mut().zip(places) {
                            *to = C::from_i128((end - begin) as i128);
                            begin = end;
                        }
                    },
                )?;
                cpu::next(&mut lengths, found.min(1)).fill(C::from_i128((n - last) as i128));
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (input, count) = (input.cl(device)?, count.cl(device, false)?);
                let (values, lengths) = (values.cl(device, true)?, lengths.cl(device, true)?);
                apart(&[&input], &[&values, &lengths, &count])?;
                let length = on_device(device, length, &[&values, &lengths, &count])?;
                let form =
                    gpu::Form { lengths: true, place: size_of::<C>(), ..gpu::Form::of(gpu::Marks::Heads(T::TYPE)) };
                let job = gpu::Job { length: length.as_ref(), ..gpu::Job::of(&input, &count) };
                let job = gpu::Job { out: Some(&values), lengths: Some(&lengths), ..job };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                values.finish(device)?;
                lengths.finish(device)
            }
        })
    }

    /// The offset and the length of each run of at least two equal elements, as `u32` or `u64`.
    ///
    /// # Errors
    ///
    /// Same as [`Device::run_length_encode`].
    ///
    /// ```
    /// let (offsets, lengths) = oclprim::Device::best()?.non_trivial_runs::<u8, u64>(b"abbcccd")?;
    /// assert_eq!((offsets.to_vec()?, lengths.to_vec()?), (vec![1, 3], vec![2, 3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn non_trivial_runs<T: Element, C: Offset>(
        &self,
        input: impl Sequence<Item = T>,
    ) -> Result<(Buffer<C>, Buffer<C>)> {
        let most = input.most()? / 2;
        let mut lengths = self.uninit(most)?;
        let offsets =
            self.counted(most, |offsets, count| self.non_trivial_runs_into(input, offsets, &mut lengths, count))?;
        lengths.truncate(offsets.len());
        Ok((offsets, lengths))
    }

    /// [`Device::non_trivial_runs`] into slices, buffers or views of one length. All else is as in
    /// [`Device::unique_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::run_length_encode_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let (mut offsets, mut lengths, mut runs) = ([0u32; 4], [0; 4], [0]);
    /// let device = Device::best()?;
    /// let x = [2.0f32, 2.0, f32::NAN, f32::NAN];
    /// device.non_trivial_runs_into(&x, &mut offsets, &mut lengths, &mut runs)?;
    /// assert_eq!((offsets[..2].to_vec(), runs), (vec![0, 2], [2])); // every NaN equals every other
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn non_trivial_runs_into<'b, 'c, 'd, T: Element, C: Offset>(
        &self,
        input: impl Sequence<Item = T>,
        offsets: impl Into<Output<'b, C>>,
        lengths: impl Into<Output<'c, C>>,
        count: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        let (held, length) = input.held_on(self)?;
        self.non_trivial_runs_one(
            (held.input(), length),
            offsets.into(),
            lengths.into(),
            count.into(),
            &mut Scratch::new(),
        )
    }

    /// Body of [`Device::non_trivial_runs_into`], compiled once for each set of types.
    #[inline(never)]
    fn non_trivial_runs_one<T: Element, C: Offset>(
        &self,
        (input, length): Firsts<'_, T>,
        offsets: Output<'_, C>,
        lengths: Output<'_, C>,
        count: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        expect_numbers::<C>(n)?;
        lengths.expect_len(offsets.len(), "a length for each run")?;
        in_room("result", offsets.len(), count, |count| match self.backend() {
            Backend::Cpu => {
                let (input, offsets, lengths) = (input.host()?, offsets.host()?, lengths.host()?);
                let found = cpu::non_trivial(input, offsets, lengths)?;
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (input, count) = (input.cl(device)?, count.cl(device, false)?);
                let (offsets, lengths) = (offsets.cl(device, true)?, lengths.cl(device, true)?);
                apart(&[&input], &[&offsets, &lengths, &count])?;
                let length = on_device(device, length, &[&offsets, &lengths, &count])?;
                let form = gpu::Form {
                    moved: false,
                    places: true,
                    lengths: true,
                    place: size_of::<C>(),
                    ..gpu::Form::of(gpu::Marks::NonTrivial(T::TYPE))
                };
                let job = gpu::Job { length: length.as_ref(), ..gpu::Job::of(&input, &count) };
                let job = gpu::Job { places: Some(&offsets), lengths: Some(&lengths), ..job };
                gpu::run(device, &form, &job, scratch)?;
                count.finish(device)?;
                offsets.finish(device)?;
                lengths.finish(device)
            }
        })
    }
}
