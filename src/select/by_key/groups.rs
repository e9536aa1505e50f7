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
//! The scratch has 8 bytes for each run that the outputs have room for. A sort, and a call that allocates, have room
//! for n runs.
//!
//! A sort treats the runs as n segments, and those after the last run are empty. So it takes more time than a sort of
//! the same segments by their offsets.
//!
//! A call returns the first key of each run, and then the results. The number of runs is the length of these buffers,
//! so the call waits for it. A sort has a result for each element, so it returns no keys and does not wait.
//!
//! The output of a call that ends in `_into` is a tuple: the keys, the results, and the number of runs, one `u64`. It
//! has room for as many runs as the output of keys has elements. Results after the last run are those of an empty
//! segment. If there are more runs than room, the call writes the first ones. If the output of the number is a host
//! slice, the call waits, and then returns an error. Otherwise it does not wait for the number of runs.
//!
//! [`Device::top_k_into`] is an exception: it waits. If there are more runs than room, it always returns the error, and
//! writes nothing. It leaves results after the last run as they are.

use bytemuck::Pod;

use crate::{
    Buffer, Device, Element, Input, Interpolation, Key, Offset, Order, Output, Result, Source, Top,
    arguments::expect_beside,
    counted::{expect_room, in_room},
    histogram::{
        Accumulate, Bins, Counter, Histograms, Samples, SamplesInto, Weight, WeightedHistograms, slots::OUTSIDE,
    },
    reduce::{
        axis::moments::{MeasurableGroups, MomentsRecord, figures},
        statistics::{Figure, Measurable, StatisticsRecord},
    },
    runtime::{Extent, extents_apart},
    sort::{Argsortable, Sortable},
    source::{ByKey, Indexed, Keyed, KeyedOutput, PairOutput, Segments, Weighted, With, finite, transform::Held},
    topk::{Divisible, Fractions, Rankable, quantile::allowed},
};

/// The values of runs, as segments.
type Runs<'a, T> = Segments<Input<'a, T>, &'a Buffer<u64>>;

impl<T: Pod> Runs<'_, T> {
    fn count(&self) -> usize {
        self.offsets.len() - 1
    }
}

type KeysAndValues<'a, K, T> = (Held<'a, K>, Held<'a, T>);

impl<S: Source<Item: Pod>, K: Source<Item: Element>> ByKey<S, K> {
    /// The keys and values in memory. Returns an error if an output overlaps these, one of `others`, or another output.
    fn in_memory(
        &self,
        device: &Device,
        others: &[Extent],
        outputs: &[Extent],
    ) -> Result<KeysAndValues<'_, K::Item, S::Item>> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        expect_beside(keys.input().len(), values.input().len(), "keys need as many values")?;
        let inputs = [&[keys.input().extent(), values.input().extent()], others].concat();
        extents_apart(&inputs, outputs)?;
        Ok((keys, values))
    }

    /// The first key of each run, and the result of `read`. Waits for the number of runs.
    fn in_runs<R>(
        self,
        device: &Device,
        outputs: &[Extent],
        read: impl FnOnce(Runs<'_, S::Item>) -> Result<R>,
    ) -> Result<(Buffer<K::Item>, R)> {
        let (keys, values) = self.in_memory(device, &[], outputs)?;
        let (keys, offsets) = device.runs_of::<u64, _>(keys.input())?;
        let found = read(values.input().segments(&offsets))?;
        Ok((keys, found))
    }

    /// Calls `write` for as many runs as `keys_out` has room for. If there are fewer, the last segments are empty.
    /// `write` reads `others`, and writes to `results`.
    fn in_room(
        self,
        device: &Device,
        (keys_out, count): (Output<'_, K::Item>, Output<'_, u64>),
        (others, results): (&[Extent], &[Extent]),
        write: impl FnOnce(Runs<'_, S::Item>) -> Result<()>,
    ) -> Result<()> {
        let outputs = [&[keys_out.extent(), count.extent()], results].concat();
        let (keys, values) = self.in_memory(device, others, &outputs)?;
        let room = keys_out.len();
        in_room("result", room, count, |count| {
            let offsets = device.offsets_of_runs(keys.input(), room, Some(keys_out), count)?;
            write(values.input().segments(&offsets))
        })
    }

    /// Calls `write` for all runs. Further segments at the end of the input are empty.
    fn in_all_runs(
        self,
        device: &Device,
        outputs: &[Extent],
        write: impl FnOnce(Runs<'_, S::Item>) -> Result<()>,
    ) -> Result<()> {
        let (keys, values) = self.in_memory(device, &[], outputs)?;
        let (keys, mut unread) = (keys.input(), device.temporary(1)?);
        let offsets = device.offsets_of_runs(keys, keys.len(), None, Output::from(&mut unread))?;
        write(values.input().segments(&offsets))
    }

    /// Calls `write`, which writes to `results`, for all runs, if there is room for them. Waits for their number.
    fn in_runs_into(
        self,
        device: &Device,
        (keys_out, count): (Output<'_, K::Item>, Output<'_, u64>),
        results: &[Extent],
        write: impl FnOnce(Runs<'_, S::Item>) -> Result<()>,
    ) -> Result<()> {
        count.expect_len(1, "a count")?;
        let outputs = [&[keys_out.extent(), count.extent()], results].concat();
        let (keys, ()) = self.in_runs(device, &outputs, |runs| {
            expect_room("result", keys_out.len(), runs.count() as u64)?;
            write(runs)
        })?;
        device.copy(&[keys.len() as u64], count)?;
        device.copy(&keys, keys_out.part(0, keys.len()))
    }
}

impl Device {
    /// The offsets of `room` runs, and the end of the last one. If there are fewer runs, the further offsets are the
    /// length of the input. Also writes the keys and the number of runs, as [`Self::find_runs`] does.
    fn offsets_of_runs<K: Element>(
        &self,
        keys: Input<'_, K>,
        room: usize,
        keys_out: Option<Output<'_, K>>,
        count: Output<'_, u64>,
    ) -> Result<Buffer<u64>> {
        let mut offsets = self.temporary(room + 1)?;
        offsets.fill(keys.len() as u64)?;
        self.find_runs(keys, keys_out, &mut offsets, count)?;
        Ok(offsets)
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> MeasurableGroups for ByKey<S, K> {
    fn moments(self, device: &Device) -> Result<(Buffer<K::Item>, Buffer<MomentsRecord<S::Item>>)> {
        self.in_runs(device, &[], |runs| {
            let mut records = device.uninit(runs.count())?;
            runs.moments_into(device, Output::from(&mut records))?;
            Ok(records)
        })
    }

    fn moments_into(self, device: &Device, to: KeyedOutput<'_, K::Item, MomentsRecord<S::Item>>) -> Result<()> {
        to.values.expect_len(to.keys.len(), "moments by key")?;
        let results = [to.values.extent()];
        self.in_room(device, (to.keys, to.count), (&[], &results), |runs| runs.moments_into(device, to.values))
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> Measurable for ByKey<S, K> {
    type Found = (Buffer<K::Item>, Vec<f64>);
    type Statistics = (Buffer<K::Item>, Buffer<StatisticsRecord<S::Item>>);

    fn figure(self, device: &Device, figure: Figure) -> Result<Self::Found> {
        let (keys, records) = self.moments(device)?;
        Ok((keys, figures(&records, figure)?))
    }

    fn statistics(self, device: &Device) -> Result<Self::Statistics> {
        self.in_runs(device, &[], |runs| {
            let mut records = device.uninit(runs.count())?;
            runs.statistics_into(device, Output::from(&mut records))?;
            Ok(records)
        })
    }

    fn statistics_into(self, device: &Device, to: KeyedOutput<'_, K::Item, StatisticsRecord<S::Item>>) -> Result<()> {
        to.values.expect_len(to.keys.len(), "statistics by key")?;
        let results = [to.values.extent()];
        self.in_room(device, (to.keys, to.count), (&[], &results), |runs| runs.statistics_into(device, to.values))
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
        let to = [output.extent()];
        self.in_all_runs(device, &to, |runs| runs.sort_into(device, order, output))
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
        let outputs = [to.keys.extent(), to.values.extent()];
        self.keys.in_all_runs(device, &outputs, |runs| runs.with(self.values).sort_into(device, order, to))
    }
}

impl<S: Source<Item: Key>, K: Source<Item: Element>> Argsortable<Order> for ByKey<S, K> {
    fn argsort<P: Offset>(self, device: &Device, order: &Order) -> Result<Buffer<P>> {
        let mut output = device.uninit(finite(&self.source)?)?;
        self.argsort_into(device, order, Output::from(&mut output))?;
        Ok(output)
    }

    fn argsort_into<P: Offset>(self, device: &Device, order: &Order, output: Output<'_, P>) -> Result<()> {
        let to = [output.extent()];
        self.in_all_runs(device, &to, |runs| runs.argsort_into(device, order, output))
    }
}

impl<S: Source<Item: Element + Key>, K: Source<Item: Element>> Rankable for ByKey<S, K> {
    type Found = (Buffer<K::Item>, Buffer<S::Item>);
    type Out<'o> = KeyedOutput<'o, K::Item, S::Item>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        self.in_runs(device, &[], |runs| runs.top_k(device, top))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        to.values.expect_len(to.keys.len().saturating_mul(top.k), "a selection of keys")?;
        let results = [to.values.extent()];
        self.in_runs_into(device, (to.keys, to.count), &results, |runs| {
            runs.top_k_into(device, top, to.values.part(0, runs.count() * top.k))
        })
    }
}

/// The indices count from the start of the whole input, as those of an argsort of runs.
impl<S: Source<Item: Element + Key>, K: Source<Item: Element>, I: Offset> Rankable for Indexed<ByKey<S, K>, I> {
    type Found = (Buffer<K::Item>, (Buffer<S::Item>, Buffer<I>));
    type Out<'o> = Keyed<'o, K::Item, PairOutput<'o, S::Item, I>>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        self.keys.in_runs(device, &[], |runs| runs.indexed::<I>().top_k(device, top))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        let (results, PairOutput { keys, values }) = (to.keys.len().saturating_mul(top.k), to.values);
        keys.expect_len(results, "a selection of keys")?;
        values.expect_len(results, "a selection of indices")?;
        let outputs = [keys.extent(), values.extent()];
        self.keys.in_runs_into(device, (to.keys, to.count), &outputs, |runs| {
            let results = runs.count() * top.k;
            let to = PairOutput { keys: keys.part(0, results), values: values.part(0, results) };
            runs.indexed::<I>().top_k_into(device, top, to)
        })
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> Divisible for ByKey<S, K> {
    type Quantiles<Q: Fractions> = (Buffer<K::Item>, Buffer<f64>);

    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Self::Quantiles<Q>> {
        self.in_runs(device, &[], |runs| {
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
        to.values.expect_len(to.keys.len().saturating_mul(q.len()), "a selection of quantiles")?;
        allowed(q)?;
        let results = [to.values.extent()];
        self.in_room(device, (to.keys, to.count), (&[], &results), |runs| runs.quantile_into(device, q, how, to.values))
    }
}

impl<S: Source<Item: Element>, K: Source<Item: Element>> Samples for ByKey<S, K> {
    type Bins = Bins<S::Item>;
    type Found = (Buffer<K::Item>, Histograms);

    fn histogram(self, device: &Device, bins: &Bins<S::Item>) -> Result<Self::Found> {
        self.in_runs(device, &[], |runs| runs.histogram(device, bins))
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
        let results = counters((&to.keys, &to.values, &outside), bins.len())?;
        self.in_room(device, (to.keys, to.count), (&[], &results), |runs| {
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
        self.source.in_runs(device, &[], |runs| runs.weighted(self.weights).histogram(device, bins))
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
        let results = counters((&to.keys, &to.values, &outside), bins.len())?;
        let weights = self.weights.held(device)?;
        let weights = weights.input();
        expect_beside(finite(&self.source.source)?, weights.len(), "samples need as many weights")?;
        self.source.in_room(device, (to.keys, to.count), (&[weights.extent()], &results), |runs| {
            runs.weighted(weights).histogram_into(device, bins, (to.values, outside), accumulate)
        })
    }
}

/// The extents of `counts` and `outside`, the counters or sums of runs. Returns an error unless both have room for as
/// many runs as `keys`.
fn counters<K: Pod, C: Pod, D: Pod>(
    (keys, counts, outside): (&Output<'_, K>, &Output<'_, C>, &Output<'_, D>),
    bins: usize,
) -> Result<[Extent; 2]> {
    counts.expect_len(keys.len().saturating_mul(bins), "histogram by key of samples in the bins")?;
    outside.expect_len(keys.len().saturating_mul(OUTSIDE), "histogram by key of samples outside the bins")?;
    Ok([counts.extent(), outside.extent()])
}
