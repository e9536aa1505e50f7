//! Top-k of lines along axes, and of segments.
//!
//! [`view.along(axes)`](crate::NdView::along) takes the k keys of each line. The kernels are those for
//! [rows](Top::in_rows); lines that are not contiguous are copied first.
//!
//! [`x.segments(&offsets)`](crate::Source::segments) takes the k keys of each segment: a
//! [sort of the segments](crate::sort::segmented), then a gather of the first k keys or indices of each. The call
//! waits, since it checks that each segment has k keys. If some are shorter, call [`Device::argsort`] of the segments.
//! In its result, the indices of the sorted keys of segment s begin at `offsets[s]`.

use super::{Places, Rankable, Top};
use crate::{
    Buffer, Device, Error, Extreme, Input, Key, Offset, Order, Output, Result, Scratch, Source,
    op::{CapturingMap, Map, Min},
    runtime::{Extent, extents_apart},
    segments::segments,
    sort::expect_indices,
    source::{Along, Axes, Indexed, PairOutput, Segments, Shaped, counting},
};

/// Calls `read` with lines in memory, and with `top` for rows of their length.
fn lines<V: Shaped, A: Axes, R>(
    along: &Along<V, A>,
    device: &Device,
    top: Top,
    read: impl FnOnce(Input<'_, V::To>, Top) -> Result<R>,
) -> Result<R> {
    let (elements, rows, len) = along.in_memory(device)?;
    let top = top.alone()?;
    top.shape(len)?;
    let elements = along.view.converted(elements.input());
    let keys = elements.held(device)?;
    // If there are no lines, or no keys in them, select none.
    read(keys.input(), if rows * len == 0 { Top { k: 0, ..top } } else { top.in_rows(len) })
}

impl<V: Shaped, A: Axes> Rankable for Along<V, A> {
    type Found = Buffer<V::To>;
    type Out<'o> = Output<'o, V::To>;

    fn top_k(self, device: &Device, top: Top) -> Result<Buffer<V::To>> {
        lines(&self, device, top, |keys, top| keys.top_k(device, top))
    }

    fn top_k_into(self, device: &Device, top: Top, output: Output<'_, V::To>) -> Result<()> {
        lines(&self, device, top, |keys, top| keys.top_k_into(device, top, output))
    }
}

impl<V: Shaped, A: Axes, I: Offset> Rankable for Indexed<Along<V, A>, I> {
    type Found = (Buffer<V::To>, Buffer<I>);
    type Out<'o> = PairOutput<'o, V::To, I>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        lines(&self.keys, device, top, |keys, top| keys.indexed::<I>().top_k(device, top))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        lines(&self.keys, device, top, |keys, top| {
            let indices = Places { to: to.values, step: 0 };
            device.top((keys, None), to.keys, Some(indices), top, &mut Scratch::new())
        })
    }
}

impl<S: Source<Item: crate::Element + Key>, O: Source<Item: Offset>> Segments<S, O> {
    /// Calls `read` with keys, the number of segments, and the indices of the k keys of each segment. With `indices`,
    /// the keys are the input's; else they may be those of sorted segments. `read` may write to `outputs`.
    fn chosen<R>(
        &self,
        device: &Device,
        top: Top,
        indices: bool,
        outputs: &[Extent],
        read: impl FnOnce(Input<'_, S::Item>, usize, &Buffer<u64>) -> Result<R>,
    ) -> Result<R> {
        let (top, keys, offsets) = (top.alone()?, self.source.held(device)?, self.offsets.held(device)?);
        let keys = keys.input();
        extents_apart(&[keys.extent(), offsets.input().extent()], outputs)?;
        device.check_segments(offsets.input(), keys.len())?;
        let rows = segments(offsets.input().len())?;
        if rows == 0 || top.k == 0 {
            return read(keys, rows, &device.uninit(0)?);
        }
        let offsets = device.transform(offsets.input().cast::<u64>())?;
        let length = Map::new(|(a, b): (u64, u64)| b.wrapping_sub(a), "b - a");
        let lengths = || offsets.neighbours::<2>().map(&length);
        if device.reduce(lengths(), Min)? < top.k as u64 {
            let Extreme { index, value } = device.arg_min(lengths())?;
            return Err(Error::invalid(format!("group {index}: {}", top.too_few(value as usize))));
        }
        let order = if top.largest { Order::descending() } else { Order::ascending() };
        let order = if top.total { order.total_order() } else { order };
        // Result i is key i % k of segment i / k.
        let (n, k) = (rows * top.k, top.k as u64);
        let segment = CapturingMap::of_one(move |i: u64| i / k, "x / c0", k);
        let index = CapturingMap::of_one(move |i: u64| i % k, "x % c0", k);
        let starts = offsets.gathered(counting(0u64).take(n).map(segment));
        let sum = Map::new(|(a, b): (u64, u64)| a.wrapping_add(b), "a + b");
        let positions = starts.zip(counting(0u64).take(n).map(index)).map(sum);
        if top.sorted && !indices {
            let mut sorted = device.temporary(keys.len())?;
            device.sort_into(keys.segments(&offsets), order, &mut sorted)?;
            return read(Input::from(&sorted), rows, &device.transform(positions)?);
        }
        // Shorter indices are sorted and written faster.
        let chosen = if u32::try_from(keys.len()).is_ok() {
            let mut sorted = device.temporary::<u32>(keys.len())?;
            device.argsort_into(keys.segments(&offsets), order, &mut sorted)?;
            device.transform(sorted.gathered(positions).cast::<u64>())?
        } else {
            let mut sorted = device.temporary::<u64>(keys.len())?;
            device.argsort_into(keys.segments(&offsets), order, &mut sorted)?;
            device.transform(sorted.gathered(positions))?
        };
        if top.sorted {
            return read(keys, rows, &chosen);
        }
        let ends = device.iota(rows + 1, 0, k)?;
        read(keys, rows, &device.sort(chosen.segments(&ends), Order::ascending())?)
    }
}

impl<S: Source<Item: crate::Element + Key>, O: Source<Item: Offset>> Rankable for Segments<S, O> {
    type Found = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn top_k(self, device: &Device, top: Top) -> Result<Buffer<S::Item>> {
        self.chosen(device, top, false, &[], |keys, _, chosen| device.transform(keys.gathered(chosen)))
    }

    fn top_k_into(self, device: &Device, top: Top, output: Output<'_, S::Item>) -> Result<()> {
        self.chosen(device, top, false, &[output.extent()], |keys, rows, chosen| {
            output.expect_len(rows * top.k, "a selection of keys")?;
            device.transform_into(keys.gathered(chosen), output)
        })
    }
}

/// The indices count from the start of the whole input, as those of an argsort of segments.
impl<S: Source<Item: crate::Element + Key>, O: Source<Item: Offset>, I: Offset> Rankable
    for Indexed<Segments<S, O>, I>
{
    type Found = (Buffer<S::Item>, Buffer<I>);
    type Out<'o> = PairOutput<'o, S::Item, I>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        self.keys.chosen(device, top, true, &[], |keys, _, chosen| {
            expect_indices::<I>(keys.len())?;
            Ok((device.transform(keys.gathered(chosen))?, device.transform(chosen.cast::<I>())?))
        })
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        let outputs = [to.keys.extent(), to.values.extent()];
        self.keys.chosen(device, top, true, &outputs, |keys, rows, chosen| {
            expect_indices::<I>(keys.len())?;
            to.keys.expect_len(rows * top.k, "a selection of keys")?;
            to.values.expect_len(rows * top.k, "a selection of indices")?;
            device.transform_into(keys.gathered(chosen), to.keys)?;
            device.transform_into(chosen.cast::<I>(), to.values)
        })
    }
}
