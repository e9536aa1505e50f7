//! Reduction by key: one value from the values of each run of equal keys, [`Device::reduce`] of
//! [`values.by_key(&keys)`](Source::by_key). [`Device::arg_min`], [`Device::arg_max`] and [`Device::min_max`] also return
//! the index of the value in its run.
//!
//! | property | |
//! |---|---|
//! | work | one read of the keys and of the values, and one write of a key and a value for each run. On devices without look-back, the keys are read twice, and the offset of each run is written and read |
//! | operator | as [`reduce`](crate::reduce); a user-defined operator need not be commutative |
//! | determinism | same bits everywhere, floats too, if the device keeps subnormals: the order depends on where a run starts and ends, as in [`reduce::segmented`](crate::reduce::segmented) |
//! | scratch | that of [`reduce::segmented`](crate::reduce::segmented) and of [`select`](crate::select); without look-back, also 4 or 8 bytes for each run that the outputs have room for |
//! | limits | any n that fits the device |
//!
//! Each tile finds where its runs start. Decoupled look-back (Merrill and Garland 2016) finds how many runs start in
//! earlier tiles. Tiles reduce their runs as in [`reduce::segmented`](crate::reduce::segmented).
//!
//! If work-groups cannot wait for one another, the first index of each run is found as in
//! [`select::runs`](crate::select::runs). These indices are the offsets of a segmented reduction. Extremes always find
//! the runs first, and then work as in [`reduce::segmented::extremes`](crate::reduce::segmented::extremes). So do the
//! primitives of [`groups`].
//!
//! Work-groups get equal parts of the values, whatever the lengths of runs. So one long run costs as much as many runs
//! of one value.

mod extremes;
pub mod groups;

use bytemuck::Pod;

use super::cpu;
use super::gpu;
use crate::{
    Buffer, Determinism, Device, Element, Input, Output, Result, Scratch, Source,
    arguments::expect_beside,
    counted::in_room,
    memory,
    op::{ByElement, Code, Combinable, Core, Monoid, OfEither, Operator},
    reduce::{
        Reducible,
        exact_groups::{self, Exact},
        segmented,
    },
    runtime::Backend,
    segments::Offsets,
    source::{ByKey, KeyedOutput, Narrow, Wide},
};
use crate::{
    ElementType, Offset,
    runtime::{ClInput, apart, extents_apart, opencl::ClDevice},
};

impl<S: Source<Item: Combinable + Pod>, K: Source<Item: Element>> Reducible for ByKey<S, K> {
    fn reduce<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
    ) -> Result<(Buffer<K::Item>, Buffer<S::Item>)> {
        op.visit(ByElement(Allocated { device, groups: self, level }))
    }

    fn reduce_into<O: Core<S::Item>>(
        self,
        device: &Device,
        op: O,
        level: Determinism,
        to: KeyedOutput<'_, K::Item, S::Item>,
    ) -> Result<()> {
        op.visit(ByElement(Given { of: Allocated { device, groups: self, level }, to }))
    }
}

/// The reduction of runs of keys.
struct Allocated<'a, S, K> {
    device: &'a Device,
    groups: ByKey<S, K>,
    level: Determinism,
}

/// The reduction of runs of keys to given outputs.
struct Given<'a, S: Source<Item: Pod>, K: Source<Item: Pod>> {
    of: Allocated<'a, S, K>,
    to: KeyedOutput<'a, K::Item, S::Item>,
}

impl<S: Source<Item: Combinable + Pod>, K: Source<Item: Element>> OfEither<S::Item> for Allocated<'_, S, K> {
    type Output = Result<(Buffer<K::Item>, Buffer<S::Item>)>;

    fn of_elements(self, op: impl Core<S::Item>) -> Self::Output
    where
        S::Item: Element,
    {
        let Self { device, groups: ByKey { source, keys }, level } = self;
        let (exact, (op, code)) = (op.exactly(level)?, op.parts()?);
        let values = Wide::summands(&source, device, exact.is_some(), !op.ordered)?;
        device.reduce_keyed(&op, code, exact, keys.held(device)?.input(), &values)
    }

    fn of_structs<F: Fn(S::Item, S::Item) -> S::Item + Sync>(self, op: &Operator<S::Item, F>) -> Self::Output {
        let Self { device, groups: ByKey { source, keys }, level } = self;
        let (keys, values) = (keys.held(device)?, source.held(device)?);
        device.reduce_structs_by_key((op, level), keys.input(), values.input())
    }
}

impl<S: Source<Item: Combinable + Pod>, K: Source<Item: Element>> OfEither<S::Item> for Given<'_, S, K> {
    type Output = Result<()>;

    fn of_elements(self, op: impl Core<S::Item>) -> Result<()>
    where
        S::Item: Element,
    {
        let Allocated { device, groups: ByKey { source, keys }, level } = self.of;
        let (exact, (op, code)) = (op.exactly(level)?, op.parts()?);
        let (values, scratch) = (Wide::summands(&source, device, exact.is_some(), !op.ordered)?, &mut Scratch::new());
        device.reduce_keyed_into(&op, code, exact, keys.held(device)?.input(), &values, self.to, scratch)
    }

    fn of_structs<F: Fn(S::Item, S::Item) -> S::Item + Sync>(self, op: &Operator<S::Item, F>) -> Result<()> {
        let Self { of: Allocated { device, groups: ByKey { source, keys }, level }, to } = self;
        let room = to.keys.len();
        to.values.expect_len(room, "a value for each key")?;
        let (keys, values) = (keys.held(device)?, source.held(device)?);
        let (keys, values) = (keys.input(), values.input());
        let outputs = [to.keys.extent(), to.values.extent(), to.count.extent()];
        extents_apart(&[keys.extent(), values.extent()], &outputs)?;
        let (keys, values) = device.reduce_structs_by_key((op, level), keys, values)?;
        let found = keys.len().min(room);
        in_room("result", room, to.count, |count| {
            device.copy(keys.view(..found)?, to.keys.part(0, found))?;
            device.copy(values.view(..found)?, to.values.part(0, found))?;
            device.copy(&[keys.len() as u64], count)
        })
    }
}

impl Device {
    /// The reductions of structs by key, compiled once for each operator and type of keys. Waits for the number of runs.
    #[inline(never)]
    fn reduce_structs_by_key<K, T, F>(
        &self,
        op: (&Operator<T, F>, Determinism),
        keys: Input<'_, K>,
        values: Input<'_, T>,
    ) -> Result<(Buffer<K>, Buffer<T>)>
    where
        K: Element,
        T: Pod + Send + Sync,
        F: Fn(T, T) -> T + Sync,
    {
        expect_beside(keys.len(), values.len(), "keys need as many values")?;
        let (keys_out, offsets) = self.runs_of::<u64, K>(keys)?;
        let mut values_out = self.uninit(keys_out.len())?;
        self.reduce_structs(op, values, Input::from(&offsets), Output::from(&mut values_out))?;
        Ok((keys_out, values_out))
    }

    /// All reductions by key that allocate.
    fn reduce_keyed<K, U, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        keys: Input<'_, K>,
        values: &Wide<'_, U>,
    ) -> Result<(Buffer<K>, Buffer<U>)>
    where
        K: Element,
        U: Element,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let n = keys.len();
        expect_beside(n, values.len(), "keys need as many values")?;
        if let Backend::OpenCl(device) = self.backend()
            && (exact.is_some()
                || !segmented::gpu::finds_runs(device, &keyed::<K, U>(source.clone(), values.any().1, n), n)?)
        {
            return if n <= u32::MAX as usize {
                self.reduce_counted::<u32, _, _, _>(op, source, exact, keys, values)
            } else {
                self.reduce_counted::<u64, _, _, _>(op, source, exact, keys, values)
            };
        }
        let mut values_out = self.uninit(n)?;
        let keys_out = self.counted(n, |keys_out, count| {
            let to = KeyedOutput { keys: keys_out, values: Output::from(&mut values_out), count };
            self.reduce_keyed_into(op, source, exact, keys, values, to, &mut Scratch::new())
        })?;
        values_out.truncate(keys_out.len());
        Ok((keys_out, values_out))
    }

    /// `reduce_keyed` in two steps, so that the memory for values has the exact length.
    fn reduce_counted<C: Offset, K, U, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        keys: Input<'_, K>,
        values: &Wide<'_, U>,
    ) -> Result<(Buffer<K>, Buffer<U>)>
    where
        K: Element,
        U: Element,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (keys_out, offsets) = self.runs_of::<C, K>(keys)?;
        let mut values_out = self.uninit(keys_out.len())?;
        let to = Output::from(&mut values_out);
        self.reduce_parts(op, source, exact, values, Input::from(&offsets), to, &mut Scratch::new())?;
        Ok((keys_out, values_out))
    }

    /// The first key of each run, and the offsets of all runs. Waits for their number.
    fn runs_of<C: Offset, K: Element>(&self, keys: Input<'_, K>) -> Result<(Buffer<K>, Buffer<C>)> {
        let n = keys.len();
        let mut offsets = self.temporary::<C>(n + 1)?;
        let keys_out = self.counted(n, |out, count| self.find_runs(keys, Some(out), &mut offsets, count))?;
        let runs = keys_out.len();
        offsets.truncate(runs + 1);
        offsets.view_mut(runs..)?.fill(C::from_i128(n as i128))?;
        Ok((keys_out, offsets))
    }

    /// Writes the first key and the offset of each run, for at most `offsets.len() - 1` runs. Also writes the number of
    /// all runs. Other elements of the outputs stay as they are.
    #[inline(never)]
    fn find_runs<C: Offset, K: Element>(
        &self,
        keys: Input<'_, K>,
        keys_out: Option<Output<'_, K>>,
        offsets: &mut Buffer<C>,
        count: Output<'_, u64>,
    ) -> Result<()> {
        let (room, offsets) = (offsets.len() - 1, Output::from(offsets));
        match self.backend() {
            Backend::Cpu => {
                let keys_out = keys_out.map_or(Ok(&mut [][..]), Output::host)?;
                let (found, runs) = runs_on_the_host(keys.host()?, keys_out, room)?;
                offsets.host()?.iter_mut().zip(found).for_each(|(to, offset)| *to = C::from_i128(offset.into()));
                count.host()?[0] = runs as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (keys, count, offsets) = (keys.cl(device)?, count.cl(device, false)?, offsets.cl(device, false)?);
                let keys_out = keys_out.map(|keys_out| keys_out.cl(device, true)).transpose()?;
                heads::<K>(device, &keys, keys_out.as_deref(), &offsets, &count, &mut Scratch::new())?;
                count.finish(device)?;
                keys_out.map_or(Ok(()), |keys_out| keys_out.finish(device))
            }
        }
    }

    /// All reductions by key that do not allocate, compiled once for each type and operator. If `exact`, the operator is a
    /// sum of floats.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of the call, and the operator's source and level")]
    fn reduce_keyed_into<K, U, F>(
        &self,
        op: &Monoid<U, F>,
        source: Code,
        exact: Option<Exact>,
        keys: Input<'_, K>,
        values: &Wide<'_, U>,
        to: KeyedOutput<'_, K, U>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        K: Element,
        U: Element,
        F: Fn(U::Acc, U::Acc) -> U::Acc + Sync,
    {
        let (n, room) = (keys.len(), to.keys.len());
        expect_beside(n, values.len(), "keys need as many values")?;
        to.values.expect_len(room, "a value for each key")?;
        in_room("result", room, to.count, |count| match self.backend() {
            Backend::Cpu => {
                let (offsets, found) = runs_on_the_host(keys.host()?, to.keys.host()?, room)?;
                let out = &mut to.values.host()?[..offsets.len() - 1];
                if let Some(of) = exact {
                    let other = values.other().map(|other| other.host()).transpose()?;
                    exact_groups::cpu::segments(of, values.host()?, other, Offsets::of(&offsets), out)?;
                } else {
                    segmented::cpu::reduce(op, values.host()?, Offsets::of(&offsets), out)?;
                }
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let other = values.other().map(|other| other.cl(device)).transpose()?;
                let Narrow(values, element) = values.any();
                let (keys, values) = (keys.cl(device)?, values.cl(device)?);
                let (keys_out, values_out) = (to.keys.cl(device, true)?, to.values.cl(device, true)?);
                let count = count.cl(device, false)?;
                let inputs: Vec<_> = [&keys, &values].into_iter().chain(&other).collect();
                apart(&inputs, &[&keys_out, &values_out, &count])?;
                let form = keyed::<K, U>(source.clone(), element, n);
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
                heads::<K>(device, &keys, Some(&keys_out), &offsets, &count, scratch)?;
                if let Some(of) = exact {
                    let form = exact_groups::gpu::Form::of::<U, U>(of);
                    let form = exact_groups::gpu::Form { element, products: other.is_some(), ..form };
                    let values = (&values, other.as_ref());
                    exact_groups::gpu::found(device, &form, values, &offsets, &count, &values_out)?;
                    values_out.finish(device)?;
                } else {
                    segmented::gpu::reduce_found::<U>(
                        device,
                        (source, element),
                        &values,
                        &offsets,
                        &count,
                        values_out,
                        scratch,
                    )?;
                }
                count.finish(device)?;
                keys_out.finish(device)
            }
        })
    }
}

/// The segmented reduction that finds the runs of keys and reduces their values in one pass.
fn keyed<K: Element, U: Element>(source: Code, element: ElementType, n: usize) -> segmented::gpu::Form {
    let offset = if n > u32::MAX as usize { ElementType::U64 } else { ElementType::U32 };
    segmented::gpu::Form { keys: Some(K::TYPE), element, ..segmented::gpu::Form::by::<U, U>(source, offset) }
}

/// Writes the first key of each run to `keys_out` until it is full. Returns the offsets of the first `room` runs and
/// the end of the last one, and the number of all runs.
fn runs_on_the_host<K: Element>(keys: &[K], keys_out: &mut [K], room: usize) -> Result<(Vec<u64>, usize)> {
    let n = keys.len();
    let mut keys_out = cpu::first(keys_out, keys);
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
    Ok((offsets, found))
}

/// Writes the first key of each run to `keys_out`, if there is one, and its index to `places`. The elements of `places`
/// have the size of an index.
fn heads<K: Element>(
    device: &ClDevice,
    keys: &ClInput,
    keys_out: Option<&ClInput>,
    places: &ClInput,
    count: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let marks = gpu::Marks::Heads(K::TYPE);
    let form = gpu::Form { moved: keys_out.is_some(), places: true, place: places.size(), ..gpu::Form::of(marks) };
    let job = gpu::Job { out: keys_out, places: Some(places), ..gpu::Job::of(keys, count) };
    gpu::run(device, &form, &job, scratch)
}
