//! Reduction by key: one value from the values of each run of equal keys, [`Device::reduce_by_key`].
//!
//! | property | |
//! |---|---|
//! | work | one read of the keys and of the values, and one write of a key and a value for each run. On devices without look-back, the keys are read twice, and the offset of each run is written and read |
//! | operator | as [`reduce`](crate::reduce); a user's operator need not be commutative |
//! | determinism | same bits everywhere, floats too: the order depends on where a run starts and ends, as in [`reduce::segmented`](crate::reduce::segmented) |
//! | scratch | that of [`reduce::segmented`](crate::reduce::segmented) and of [`select`](crate::select); without look-back, also 4 or 8 bytes for each run that the outputs have room for |
//! | limits | any n that fits the device |
//!
//! Each tile finds where its runs start. Decoupled look-back (Merrill and Garland 2016) finds how many runs start in
//! earlier tiles. Tiles reduce their runs as in [`reduce::segmented`](crate::reduce::segmented).
//!
//! If work-groups cannot wait for one another, the first index of each run is found as in
//! [`select::runs`](crate::select::runs). These indices are the offsets of a segmented reduction.
//!
//! Work-groups get equal parts of the values, whatever the lengths of runs. So one long run costs as much as many runs
//! of one value.

use super::cpu;
use super::gpu;
use crate::{
    Buffer, Determinism, Device, Element, Float, Input, Output, Result, Scratch, Source,
    arguments::expect_beside,
    counted::in_room,
    memory,
    op::{Code, Core, Monoid, Op, Operator, Sum, built_in},
    reduce::{
        exact_groups::{self, Exact},
        segmented,
    },
    runtime::Backend,
    segments::Offsets,
};
use crate::{
    ElementType, Offset,
    runtime::{ClInput, apart, opencl::ClDevice},
};

/// The outputs of a reduction by key.
struct To<'o, K: Element, U: Element> {
    keys: Output<'o, K>,
    values: Output<'o, U>,
    count: Output<'o, u64>,
}

/// # Reductions by key
///
/// These methods return one value from the values of each run of equal keys. Module:
/// [`select::by_key`](crate::select::by_key).
impl Device {
    /// The first key of each run of equal keys, and the reduction of the run's values by the operator.
    ///
    /// Float keys compare as in [sorts](crate::sort): -0 equals +0, and all NaN are equal. Float sums and products have
    /// the same bits on every run, every device and the CPU, if the devices keep subnormals. These bits depend on where
    /// the run starts and ends, as in [`Device::reduce_segments`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the numbers of keys and values differ.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `V` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let (keys, sums) = Device::best()?.reduce_by_key(&[3u8, 3, 1, 3], &[0.5f32, 2.0, 4.0, 8.0], Sum)?;
    /// assert_eq!((keys.to_vec()?, sums.to_vec()?), (vec![3, 1, 3], vec![2.5, 4.0, 8.0]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by_key<K: Element, V: Element, O: Op<V>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        op: O,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (op, source) = built_in::<V, O>(op);
        self.reduce_keyed(&op, source, None, keys.held(self)?.input(), values.held(self)?.input())
    }

    /// [`Device::reduce_by_key`] into slices, buffers or views of one length, which may be too short. The number of
    /// runs goes to the single element of `count`.
    ///
    /// Waits for the result only if an output is a host slice. Elements of outputs after the count do not change.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the
    /// outputs' lengths differ, if `count` does not have exactly one element, or if arguments overlap in imported
    /// OpenCL memory. The same error if `count` is a host slice and the outputs are too short.
    ///
    /// ```
    /// use oclprim::{Device, op::Max};
    ///
    /// let device = Device::best()?;
    /// let (mut keys, mut values) = (device.zeroed::<u32>(2)?, device.zeroed::<i16>(2)?);
    /// let mut count = device.zeroed::<u64>(1)?;
    /// device.reduce_by_key_into(&[5u32, 5, 8], &[-3i16, 4, 1], Max, &mut keys, &mut values, &mut count)?;
    /// assert_eq!((keys.to_vec()?, values.to_vec()?, device.selected(&count, 2)?), (vec![5, 8], vec![4, 1], 2));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by_key_into<'c, K: Element, V: Element, O: Op<V>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        op: O,
        keys_out: impl Into<Output<'c, K>>,
        values_out: impl Into<Output<'c, V>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let to = To { keys: keys_out.into(), values: values_out.into(), count: count.into() };
        let (op, source) = built_in::<V, O>(op);
        self.reduce_keyed_into(
            &op,
            source,
            None,
            keys.held(self)?.input(),
            values.held(self)?.input(),
            to,
            &mut Scratch::new(),
        )
    }

    /// [`Device::reduce_by_key`] with a user's operator, which need not be commutative.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key`]; [`ErrorKind::Build`](crate::ErrorKind::Build) and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) as [`Device::reduce_segments_by`].
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
    /// let (_, found) = Device::best()?.reduce_by_key_by(&[1u64, 1, 1, 2, 2], &[3, 7, 0, 5, 0], &last)?;
    /// assert_eq!(found.to_vec()?, [7, 5]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by_key_by<K: Element, V: Element<Acc = V>, F: Fn(V, V) -> V + Sync>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        op: &Operator<V, F>,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (op, source) = op.parts()?;
        self.reduce_keyed(&op, source, None, keys.held(self)?.input(), values.held(self)?.input())
    }

    /// [`Device::reduce_by_key_by`] into slices, buffers or views. All else is as in [`Device::reduce_by_key_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key_by`] and [`Device::reduce_by_key_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// let (mut keys, mut sums, mut count) = ([0i8; 2], [0u8; 2], [0]);
    /// let (x, y) = ([4i8, 4, 6], [200u8, 100, 7]);
    /// Device::best()?.reduce_by_key_by_into(&x, &y, &saturating, &mut keys, &mut sums, &mut count)?;
    /// assert_eq!((keys, sums, count), ([4, 6], [255, 7], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by_key_by_into<'c, K: Element, V: Element<Acc = V>, F: Fn(V, V) -> V + Sync>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        op: &Operator<V, F>,
        keys_out: impl Into<Output<'c, K>>,
        values_out: impl Into<Output<'c, V>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let (op, source) = op.parts()?;
        let to = To { keys: keys_out.into(), values: values_out.into(), count: count.into() };
        self.reduce_keyed_into(
            &op,
            source,
            None,
            keys.held(self)?.input(),
            values.held(self)?.input(),
            to,
            &mut Scratch::new(),
        )
    }

    /// [`Device::reduce_by_key`] with a level of determinism. With [`Exact`](Determinism::Exact) each float sum is correctly
    /// rounded. The other levels give the results of [`Device::reduce_by_key`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::Sum};
    ///
    /// let (keys, x) = ([3u8, 3, 3, 1], [1e30f32, 1.0, -1e30, 0.5]);
    /// let (keys, sums) = Device::best()?.reduce_by_key_with(&keys, &x, Sum, Determinism::Exact)?;
    /// assert_eq!((keys.to_vec()?, sums.to_vec()?), (vec![3, 1], vec![1.0, 0.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by_key_with<K: Element, V: Element, O: Op<V>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        op: O,
        determinism: Determinism,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let exact = determinism.exact::<V, O>()?.then_some(Exact::Sum);
        let (op, source) = built_in::<V, O>(op);
        self.reduce_keyed(&op, source, exact, keys.held(self)?.input(), values.held(self)?.input())
    }

    /// [`Device::reduce_by_key_with`] into slices, buffers or views. The type of the values' output holds every `V`: with
    /// [`Exact`](Determinism::Exact) the sum of the converted values is rounded once. All else is as in
    /// [`Device::reduce_by_key_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key_into`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism::Exact, Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let (mut keys, mut sums, mut count) = ([0u8; 2], [0f64; 2], [0]);
    /// let x = [16_777_216i32, 1, 2];
    /// device.reduce_by_key_with_into(&[1u8, 1, 2], &x, Sum, Exact, &mut keys, &mut sums, &mut count)?;
    /// assert_eq!((keys, sums, count), ([1, 2], [16_777_217.0, 2.0], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[allow(clippy::too_many_arguments, reason = "two inputs, three outputs, an operator and its level")]
    pub fn reduce_by_key_with_into<'c, K: Element, V: Element, U: Element + From<V>, O: Op<U>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        op: O,
        determinism: Determinism,
        keys_out: impl Into<Output<'c, K>>,
        values_out: impl Into<Output<'c, U>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let exact = determinism.exact::<U, O>()?.then_some(Exact::Sum);
        let to = To { keys: keys_out.into(), values: values_out.into(), count: count.into() };
        let (op, source) = built_in::<U, O>(op);
        self.reduce_keyed_into(
            &op,
            source,
            exact,
            keys.held(self)?.input(),
            values.held(self)?.input(),
            to,
            &mut Scratch::new(),
        )
    }

    /// The mean of each run of equal keys, correctly rounded: the float nearest to the exact sum divided by the length.
    ///
    /// Its bits do not depend on the order of the run's values. The [rules](crate::exact#special-values) for special
    /// values are those of the sum.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key`].
    ///
    /// ```
    /// let (keys, x) = ([3u8, 3, 3, 1], [1e30f32, 1.0, -1e30, 0.5]);
    /// let (keys, means) = oclprim::Device::best()?.mean_by_key_exact(&keys, &x)?;
    /// assert_eq!((keys.to_vec()?, means.to_vec()?), (vec![3, 1], vec![1.0 / 3.0, 0.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_by_key_exact<K: Element, V: Float>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (op, source) = built_in::<V, Sum>(Sum);
        let exact = Some(Exact::Mean);
        self.reduce_keyed(&op, source, exact, keys.held(self)?.input(), values.held(self)?.input())
    }

    /// [`Device::mean_by_key_exact`] into slices, buffers or views. The values are first converted to
    /// the output's type, without loss. All else is as in [`Device::reduce_by_key_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by_key_into`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let (mut keys, mut means, mut count) = ([0u8; 2], [0f64; 2], [0]);
    /// let x = [16_777_216i32, 1, 2];
    /// device.mean_by_key_exact_into(&[1u8, 1, 2], &x, &mut keys, &mut means, &mut count)?;
    /// assert_eq!((keys, means, count), ([1, 2], [8_388_608.5, 2.0], [2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn mean_by_key_exact_into<'c, K: Element, V: Element, U: Float + From<V>>(
        &self,
        keys: impl Source<Item = K>,
        values: impl Source<Item = V>,
        keys_out: impl Into<Output<'c, K>>,
        values_out: impl Into<Output<'c, U>>,
        count: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        let to = To { keys: keys_out.into(), values: values_out.into(), count: count.into() };
        let ((op, source), exact) = (built_in::<U, Sum>(Sum), Some(Exact::Mean));
        let scratch = &mut Scratch::new();
        self.reduce_keyed_into(&op, source, exact, keys.held(self)?.input(), values.held(self)?.input(), to, scratch)
    }

    /// All reductions by key that allocate.
    fn reduce_keyed<K, V, U, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        keys: Input<'_, K>,
        values: Input<'_, V>,
    ) -> Result<(Buffer<K>, Buffer<U>)>
    where
        K: Element,
        V: Element,
        U: Element + From<V>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let n = keys.len();
        expect_beside(n, values.len(), "keys need as many values")?;
        if let Backend::OpenCl(device) = self.backend()
            && (exact.is_some() || !segmented::gpu::finds_runs(device, &keyed::<K, V, U>(source.clone(), n), n)?)
        {
            return if n <= u32::MAX as usize {
                self.reduce_counted::<u32, _, _, _, _>(device, op, source, exact, keys, values)
            } else {
                self.reduce_counted::<u64, _, _, _, _>(device, op, source, exact, keys, values)
            };
        }
        let mut values_out = self.uninit(n)?;
        let keys_out = self.counted(n, |keys_out, count| {
            let to = To { keys: keys_out, values: Output::from(&mut values_out), count };
            self.reduce_keyed_into(op, source, exact, keys, values, to, &mut Scratch::new())
        })?;
        values_out.truncate(keys_out.len());
        Ok((keys_out, values_out))
    }

    /// `reduce_keyed` in two steps, so that the memory for values has the exact length.
    fn reduce_counted<C: Offset, K, V, U, F>(
        &self,
        device: &ClDevice,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        keys: Input<'_, K>,
        values: Input<'_, V>,
    ) -> Result<(Buffer<K>, Buffer<U>)>
    where
        K: Element,
        V: Element,
        U: Element + From<V>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (n, scratch) = (keys.len(), &mut Scratch::new());
        let mut offsets = self.temporary::<C>(n + 1)?;
        let keys_out = self.counted(n, |keys_out, count| {
            let (keys, keys_out, count) = (keys.cl(device)?, keys_out.cl(device, false)?, count.cl(device, false)?);
            let places = Output::from(&mut offsets).cl(device, false)?;
            heads::<K>(device, &keys, &keys_out, &places, &count, scratch)?;
            count.finish(device)?;
            places.finish(device)?;
            keys_out.finish(device)
        })?;
        let runs = keys_out.len();
        offsets.truncate(runs + 1);
        offsets.view_mut(runs..)?.fill(C::from_i128(n as i128))?;
        let mut values_out = self.uninit(runs)?;
        let to = Output::from(&mut values_out);
        self.reduce_parts(op, source, exact, values, Input::from(&offsets), to, scratch)?;
        Ok((keys_out, values_out))
    }

    /// All reductions by key that do not allocate, compiled once for each type and operator. If `exact`, it is a sum of floats.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of the call, and the operator's source and level")]
    fn reduce_keyed_into<K, V, U, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        keys: Input<'_, K>,
        values: Input<'_, V>,
        to: To<'_, K, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        K: Element,
        V: Element,
        U: Element + From<V>,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (n, room) = (keys.len(), to.keys.len());
        expect_beside(n, values.len(), "keys need as many values")?;
        to.values.expect_len(room, "as many keys")?;
        in_room("result", room, to.count, |count| match self.backend() {
            Backend::Cpu => {
                let keys = keys.host()?;
                let mut keys_out = cpu::first(to.keys.host()?, keys);
                let (mut offsets, mut grown) = (memory::zeroed(n.min(1))?, Ok(()));
                let found = cpu::runs(
                    keys,
                    &mut |places| {
                        let places_in_room = &places[..places.len().min(room + 1 - offsets.len())];
                        if grown.is_ok() {
                            grown = memory::reserve(&mut offsets, places_in_room.len() + 1);
                        }
                        if grown.is_ok() {
                            offsets.extend(places_in_room.iter().map(|&i| i as u64));
                        }
                        cpu::next(&mut keys_out, places.len())
                    },
                    &|keys_out, places| keys_out.iter_mut().zip(places).for_each(|(to, &i)| *to = keys[i]),
                )?;
                grown?;
                if found <= room {
                    memory::push(&mut offsets, n as u64)?;
                }
                let out = &mut to.values.host()?[..offsets.len() - 1];
                if let Some(of) = exact {
                    exact_groups::cpu::segments(of, values.host()?, Offsets::of(&offsets), out)?;
                } else {
                    segmented::cpu::reduce(op, values.host()?, Offsets::of(&offsets), out)?;
                }
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (keys, values) = (keys.cl(device)?, values.cl(device)?);
                let (keys_out, values_out) = (to.keys.cl(device, true)?, to.values.cl(device, true)?);
                let count = count.cl(device, false)?;
                apart(&[&keys, &values], &[&keys_out, &values_out, &count])?;
                let form = keyed::<K, V, U>(source.clone(), n);
                if exact.is_none() && segmented::gpu::finds_runs(device, &form, n)? {
                    let runs = segmented::gpu::Runs {
                        keys: &keys,
                        keys_out: &keys_out,
                        values_out: &values_out,
                        count: &count,
                    };
                    segmented::gpu::reduce_runs(device, &form, &values, &runs, scratch)?;
                    values_out.finish(device)?;
                    count.finish(device)?;
                    return keys_out.finish(device);
                }
                let size = if n > u32::MAX as usize { 8 } else { 4 };
                let offsets = ClInput::pooled(device, (room + 1) * size, size)?;
                heads::<K>(device, &keys, &keys_out, &offsets, &count, scratch)?;
                if let Some(of) = exact {
                    let form = exact_groups::gpu::Form::of::<V, U>(of);
                    exact_groups::gpu::found(device, &form, &values, &offsets, &count, &values_out)?;
                    values_out.finish(device)?;
                } else {
                    segmented::gpu::reduce_found::<V, U>(
                        device, source, &values, &offsets, &count, values_out, scratch,
                    )?;
                }
                count.finish(device)?;
                keys_out.finish(device)
            }
        })
    }
}

/// The segmented reduction that finds the runs of keys and reduces their values in one pass.
fn keyed<K: Element, V: Element, U: Element>(source: Code, n: usize) -> segmented::gpu::Form {
    let offset = if n > u32::MAX as usize { ElementType::U64 } else { ElementType::U32 };
    segmented::gpu::Form { keys: Some(K::TYPE), ..segmented::gpu::Form::by::<V, U>(source, offset) }
}

/// Writes the first key of each run to `keys_out`, and its index to `places`, whose elements have the size of an index.
fn heads<K: Element>(
    device: &ClDevice,
    keys: &ClInput,
    keys_out: &ClInput,
    places: &ClInput,
    count: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let form = gpu::Form { places: true, place: places.size(), ..gpu::Form::of(gpu::Marks::Heads(K::TYPE)) };
    let job = gpu::Job { out: Some(keys_out), places: Some(places), ..gpu::Job::of(keys, count) };
    gpu::run(device, &form, &job, scratch)
}
