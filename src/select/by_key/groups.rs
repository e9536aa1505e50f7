//! Primitives that find the runs of equal keys first, and then work as for [segments](Source::segments):
//!
//! | primitive of [`x.by_key(&keys)`](Source::by_key) | work, determinism and limits |
//! |---|---|
//! | [`Device::moments`], [`Device::mean`], [`Device::variance`] | [`reduce::segmented::moments`](crate::reduce::segmented::moments) |
//! | [`Device::statistics`] | [`reduce::statistics::groups`](crate::reduce::statistics::groups) |
//! | [`Device::sort`], also [with values](ByKey::with), and [`Device::argsort`] | [`sort::segmented`](crate::sort::segmented) |
//! | [`Device::top_k`], also [with indices](ByKey::indexed) | [`topk::groups`](crate::topk::groups) |
//! | [`Device::quantile`], [`Device::median`] | [`topk::quantiles`](crate::topk::quantiles) |
//! | [`Device::histogram`], also [with weights](ByKey::weighted) | [`histogram::groups`](crate::histogram::groups) |
//!
//! The runs are found as in [`select::runs`](crate::select::runs), in one read of the keys on devices with look-back.
//! The scratch has 8 bytes for each run that the outputs have room for. In a sort, and in a call that allocates, this
//! is each element.
//!
//! A call returns the first key of each run, and then the results. The number of runs is the length of these buffers,
//! so the call waits for it. A sort has a result for each element, so it returns no keys and does not wait.
//!
//! The output of a call that ends in `_into` is a tuple: the keys, the results, and the number of runs, one `u64`. It
//! has room for as many runs as keys. Results after the last run are those of an empty segment. If there are more runs
//! than room, the first ones are written. If the number of runs is a host slice, this is an error. The call does not
//! wait for the number of runs. Only [`Device::top_k_into`] waits, and always returns this error; then it writes
//! nothing.

use bytemuck::Pod;

use super::{heads, runs_on_the_host};
use crate::{
    Buffer, Device, Element, Input, Interpolation, Key, Offset, Order, Output, Result, Scratch, Source, Top,
    arguments::expect_beside,
    counted::{expect_room, in_room},
    histogram::{Accumulate, Bins, Counter, Histograms, Samples, SamplesInto, Weight, WeightedHistograms},
    reduce::{
        axis::moments::{MeasurableGroups, MomentsRecord, figures},
        statistics::{Measurable, StatisticsRecord},
    },
    runtime::{AnyInput, Backend, apart},
    sort::{Argsortable, Sortable},
    source::{ByKey, Indexed, Keyed, KeyedOutput, PairOutput, Segments, Weighted, With, finite},
    topk::{Divisible, Fractions, Rankable},
};

/// The values of runs, as segments.
type Runs<'a, T> = Segments<Input<'a, T>, &'a Buffer<u64>>;

impl<T: Pod> Runs<'_, T> {
    fn count(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl<S: Source<Item: Pod>, K: Source<Item: Element>> ByKey<S, K> {
    /// The first key of each run, and the result of `read`. Waits for the number of runs.
    fn in_runs<R>(
        self,
        device: &Device,
        read: impl FnOnce(Runs<'_, S::Item>) -> Result<R>,
    ) -> Result<(Buffer<K::Item>, R)> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        let (keys, values) = (keys.input(), values.input());
        expect_beside(keys.len(), values.len(), "keys need as many values")?;
        let (keys, offsets) = device.runs_of::<u64, _>(keys)?;
        let found = read(values.segments(&offsets))?;
        Ok((keys, found))
    }

    /// Calls `write` for as many runs as `keys_out` has room for. If there are fewer, the last segments are empty.
    fn in_room(
        self,
        device: &Device,
        (keys_out, count): (Output<'_, K::Item>, Output<'_, u64>),
        write: impl FnOnce(Runs<'_, S::Item>) -> Result<()>,
    ) -> Result<()> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        let (keys, values, room) = (keys.input(), values.input(), keys_out.len());
        expect_beside(keys.len(), values.len(), "keys need as many values")?;
        in_room("result", room, count, |count| {
            let there = matches!(values, Input::Device(_)).then(|| values.any());
            let offsets = device.offsets_of_runs(keys, there, room, Some((keys_out, count)))?;
            write(values.segments(&offsets))
        })
    }

    /// Calls `write` for all runs. Further segments at the end of the input are empty.
    fn in_all_runs(self, device: &Device, write: impl FnOnce(Runs<'_, S::Item>) -> Result<()>) -> Result<()> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        let (keys, values) = (keys.input(), values.input());
        expect_beside(keys.len(), values.len(), "keys need as many values")?;
        write(values.segments(&device.offsets_of_runs(keys, None, keys.len(), None)?))
    }

    /// Calls `write` for all runs, if there is room for them. Waits for their number.
    fn in_runs_into(
        self,
        device: &Device,
        (keys_out, count): (Output<'_, K::Item>, Output<'_, u64>),
        write: impl FnOnce(Runs<'_, S::Item>) -> Result<()>,
    ) -> Result<()> {
        count.expect_len(1, "a count")?;
        let (keys, ()) = self.in_runs(device, |runs| {
            expect_room("result", keys_out.len(), runs.count() as u64)?;
            write(runs)
        })?;
        device.copy(&[keys.len() as u64], count)?;
        device.copy(&keys, keys_out.part(0, keys.len()))
    }
}

impl Device {
    /// The offsets of the first `room` runs, and the end of the input for each run that is missing. Writes the first
    /// key of each run and the number of all runs. `values`, if they are on the device, must not overlap these outputs.
    #[inline(never)]
    fn offsets_of_runs<K: Element>(
        &self,
        keys: Input<'_, K>,
        values: Option<AnyInput<'_>>,
        room: usize,
        outputs: Option<(Output<'_, K>, Output<'_, u64>)>,
    ) -> Result<Buffer<u64>> {
        let (mut offsets, mut unread) = (self.temporary::<u64>(room + 1)?, self.temporary::<u64>(1)?);
        let (keys_out, count) = outputs.map_or((None, Output::from(&mut unread)), |(keys, count)| (Some(keys), count));
        match self.backend() {
            Backend::Cpu => {
                let keys_out = keys_out.map_or(Ok(&mut [][..]), Output::host)?;
                let (found, runs) = runs_on_the_host(keys.host()?, keys_out, room)?;
                let (first, rest) = Output::from(&mut offsets).host()?.split_at_mut(found.len());
                first.copy_from_slice(&found);
                rest.fill(keys.len() as u64);
                count.host()?[0] = runs as u64;
            }
            Backend::OpenCl(device) => {
                offsets.fill(keys.len() as u64)?;
                let (keys, count) = (keys.cl(device)?, count.cl(device, false)?);
                let values = values.map(|values| values.cl(device)).transpose()?;
                let keys_out = keys_out.map(|keys_out| keys_out.cl(device, true)).transpose()?;
                let inputs: Vec<_> = [&keys].into_iter().chain(&values).collect();
                let outputs: Vec<_> = [&count].into_iter().chain(&keys_out).collect();
                apart(&inputs, &outputs)?;
                let to = Output::from(&mut offsets).cl(device, false)?;
                heads::<K>(device, &keys, keys_out.as_deref(), &to, &count, &mut Scratch::new())?;
                to.finish(device)?;
                count.finish(device)?;
                keys_out.map_or(Ok(()), |keys_out| keys_out.finish(device))?;
            }
        }
        Ok(offsets)
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> MeasurableGroups for ByKey<S, K> {
    fn moments(self, device: &Device) -> Result<(Buffer<K::Item>, Buffer<MomentsRecord<S::Item>>)> {
        self.in_runs(device, |runs| {
            let mut records = device.uninit(runs.count())?;
            runs.moments_into(device, Output::from(&mut records))?;
            Ok(records)
        })
    }

    fn moments_into(self, device: &Device, to: KeyedOutput<'_, K::Item, MomentsRecord<S::Item>>) -> Result<()> {
        self.in_room(device, (to.keys, to.count), |runs| runs.moments_into(device, to.values))
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> Measurable for ByKey<S, K> {
    type Found = (Buffer<K::Item>, Vec<f64>);
    type Statistics = (Buffer<K::Item>, Buffer<StatisticsRecord<S::Item>>);

    fn mean(self, device: &Device) -> Result<Self::Found> {
        let (keys, records) = self.moments(device)?;
        Ok((keys, figures(&records, |moments| moments.mean)?))
    }

    fn variance(self, device: &Device) -> Result<Self::Found> {
        let (keys, records) = self.moments(device)?;
        Ok((keys, figures(&records, |moments| moments.variance)?))
    }

    fn statistics(self, device: &Device) -> Result<Self::Statistics> {
        self.in_runs(device, |runs| {
            let mut records = device.uninit(runs.count())?;
            runs.statistics_into(device, Output::from(&mut records))?;
            Ok(records)
        })
    }

    fn statistics_into(self, device: &Device, to: KeyedOutput<'_, K::Item, StatisticsRecord<S::Item>>) -> Result<()> {
        self.in_room(device, (to.keys, to.count), |runs| runs.statistics_into(device, to.values))
    }
}

impl<S: Source<Item: Key>, K: Source<Item: Element>> Sortable<Order> for ByKey<S, K> {
    type Sorted = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn sort(self, device: &Device, order: &Order) -> Result<Buffer<S::Item>> {
        let mut output = device.uninit(finite(&self.source)?)?;
        self.sort_into(device, order, Output::from(&mut output))?;
        Ok(output)
    }

    fn sort_into(self, device: &Device, order: &Order, output: Output<'_, S::Item>) -> Result<()> {
        self.in_all_runs(device, |runs| runs.sort_into(device, order, output))
    }
}

impl<S, K, V> Sortable<Order> for With<ByKey<S, K>, V>
where
    S: Source<Item: Key>,
    K: Source<Item: Element>,
    V: Source<Item: Pod>,
{
    type Sorted = (Buffer<S::Item>, Buffer<V::Item>);
    type Out<'o> = PairOutput<'o, S::Item, V::Item>;

    fn sort(self, device: &Device, order: &Order) -> Result<Self::Sorted> {
        let n = finite(&self.keys.source)?;
        let (mut sorted, mut values) = (device.uninit(n)?, device.uninit(n)?);
        self.sort_into(device, order, (&mut sorted, &mut values).into())?;
        Ok((sorted, values))
    }

    fn sort_into(self, device: &Device, order: &Order, to: Self::Out<'_>) -> Result<()> {
        self.keys.in_all_runs(device, |runs| runs.with(self.values).sort_into(device, order, to))
    }
}

impl<S: Source<Item: Key>, K: Source<Item: Element>> Argsortable<Order> for ByKey<S, K> {
    fn argsort<P: Offset>(self, device: &Device, order: &Order) -> Result<Buffer<P>> {
        let mut output = device.uninit(finite(&self.source)?)?;
        self.argsort_into(device, order, Output::from(&mut output))?;
        Ok(output)
    }

    fn argsort_into<P: Offset>(self, device: &Device, order: &Order, output: Output<'_, P>) -> Result<()> {
        self.in_all_runs(device, |runs| runs.argsort_into(device, order, output))
    }
}

impl<S: Source<Item: Element + Key>, K: Source<Item: Element>> Rankable for ByKey<S, K> {
    type Found = (Buffer<K::Item>, Buffer<S::Item>);
    type Out<'o> = KeyedOutput<'o, K::Item, S::Item>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        self.in_runs(device, |runs| runs.top_k(device, top))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        to.values.expect_len(to.keys.len().saturating_mul(top.k), "a selection of keys")?;
        self.in_runs_into(device, (to.keys, to.count), |runs| {
            runs.top_k_into(device, top, to.values.part(0, runs.count() * top.k))
        })
    }
}

/// The indices count from the start of the whole input, as those of an argsort of runs.
impl<S: Source<Item: Element + Key>, K: Source<Item: Element>, I: Offset> Rankable for Indexed<ByKey<S, K>, I> {
    type Found = (Buffer<K::Item>, (Buffer<S::Item>, Buffer<I>));
    type Out<'o> = Keyed<'o, K::Item, PairOutput<'o, S::Item, I>>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        self.keys.in_runs(device, |runs| runs.indexed::<I>().top_k(device, top))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        let (results, PairOutput { keys, values }) = (to.keys.len().saturating_mul(top.k), to.values);
        keys.expect_len(results, "a selection of keys")?;
        values.expect_len(results, "a selection of indices")?;
        self.keys.in_runs_into(device, (to.keys, to.count), |runs| {
            let results = runs.count() * top.k;
            let to = PairOutput { keys: keys.part(0, results), values: values.part(0, results) };
            runs.indexed::<I>().top_k_into(device, top, to)
        })
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> Divisible for ByKey<S, K> {
    type Quantiles<Q: Fractions> = (Buffer<K::Item>, Buffer<f64>);

    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Self::Quantiles<Q>> {
        self.in_runs(device, |runs| {
            let mut output = device.uninit(runs.count().saturating_mul(q.list().len()))?;
            runs.quantile_into(device, q.list(), how, Output::from(&mut output))?;
            Ok(output)
        })
    }

    fn quantile_into(
        self,
        device: &Device,
        q: &[f64],
        how: Interpolation,
        to: KeyedOutput<'_, K::Item, f64>,
    ) -> Result<()> {
        self.in_room(device, (to.keys, to.count), |runs| runs.quantile_into(device, q, how, to.values))
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> Samples for ByKey<S, K> {
    type Bins = Bins<S::Item>;
    type Found = (Buffer<K::Item>, Histograms);

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Self::Found> {
        self.in_runs(device, |runs| runs.histogram(device, bins))
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>, C: Counter> SamplesInto<C> for ByKey<S, K> {
    type Counts<'o> = KeyedOutput<'o, K::Item, C>;
    type Outside = u64;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        (to, outside): (Self::Counts<'_>, Output<'_, u64>),
        accumulate: Accumulate,
    ) -> Result<()> {
        self.in_room(device, (to.keys, to.count), |runs| {
            runs.histogram_into(device, bins, (to.values, outside), accumulate)
        })
    }
}

impl<S, K, W> Samples for Weighted<ByKey<S, K>, W>
where
    S: Source<Item: Element>,
    K: Source<Item: Element>,
    W: Source<Item: Weight>,
{
    type Bins = Bins<S::Item>;
    type Found = (Buffer<K::Item>, WeightedHistograms<<W::Item as Weight>::Sum>);

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Self::Found> {
        self.source.in_runs(device, |runs| runs.weighted(self.weights).histogram(device, bins))
    }
}

impl<S, K, W, C> SamplesInto<C> for Weighted<ByKey<S, K>, W>
where
    S: Source<Item: Element>,
    K: Source<Item: Element>,
    W: Source<Item: Weight<Sum = C>>,
    C: Element,
{
    type Counts<'o> = KeyedOutput<'o, K::Item, C>;
    type Outside = C;

    fn histogram_into(
        self,
        device: &Device,
        bins: &Bins<S::Item>,
        (to, outside): (Self::Counts<'_>, Output<'_, C>),
        accumulate: Accumulate,
    ) -> Result<()> {
        self.source.in_room(device, (to.keys, to.count), |runs| {
            runs.weighted(self.weights).histogram_into(device, bins, (to.values, outside), accumulate)
        })
    }
}
