//! Selections in segments: [`Device::select`], [`Device::partition`] and [`Device::unique`] of
//! [`x.segments(&offsets)`](Source::segments).
//!
//! | call | elements | second result, `u64` |
//! |---|---|---|
//! | `select` | those that meet the condition, in their order | `out[s]`: the number of selected elements before `offsets[s]` |
//! | `unique` | the first of each run; runs end where a segment ends | the same |
//! | `partition` | in each segment, those that meet the condition, then the others | `out[s]`: the length of the first part of segment s |
//!
//! So the second result of `select` and `unique` has as many elements as `offsets`: the offsets of the segments in the
//! first result. Elements before the first offset, and from the last offset on, belong to no segment. `select`
//! and `unique` treat them as segments, as scans do, and `partition` leaves them where they are.
//!
//! | property | |
//! |---|---|
//! | work | a pass writes a flag of one byte for each element. A selection by flags reads elements and flags. A sum of the flags in segments, and a scan of these sums, read the flags once more. A partition sorts the elements in segments by their flags, one bit: see [`sort::segmented`](crate::sort::segmented) |
//! | order | that of the input |
//! | determinism | same bits everywhere |
//! | scratch | a byte for each element, 16 bytes for each segment, and that of the calls above |
//! | limits | as in [`select`](crate::select). `unique` of `f64` needs a device with fp64 |

use bytemuck::Pod;

use super::{Selectable, runs::Distinct};
use crate::{
    Buffer, Device, Element, ElementType, Input, Offset, Order, Output, Result, Source,
    element::equal,
    op::{Condition, Everywhere, Map, Sum},
    reduce::count::meets,
    runtime::extents_apart,
    segments::segments,
    source::{Plain, Segments, Testable, finite},
};

impl<S: Source<Item: Pod>, O: Source<Item: Offset>> Segments<S, O> {
    /// Calls `read` with the values and the offsets. Several calls read them, so slices are copied to the device once.
    fn copied_once<R>(
        &self,
        device: &Device,
        read: impl FnOnce(Input<'_, S::Item>, Input<'_, O::Item>) -> Result<R>,
    ) -> Result<R> {
        let (values, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        let (mut own, mut own_offsets) = (None, None);
        read(device.copied_once(values.input(), &mut own)?, device.copied_once(offsets.input(), &mut own_offsets)?)
    }
}

impl<S, O, C> Selectable<C> for Segments<S, O>
where
    S: Source<Item: Testable>,
    O: Source<Item: Offset>,
    C: Condition<S::Item, Use = Everywhere>,
{
    type Tested = S::Item;
    type Selected = (Buffer<S::Item>, Buffer<u64>);
    type Partitioned<N> = (Buffer<S::Item>, Buffer<u64>);

    fn select(self, device: &Device, what: &C) -> Result<Self::Selected> {
        self.copied_once(device, |values, offsets| {
            device.check_segments(offsets, values.len())?;
            let flags = meets::<_, _, u8>(values, what);
            device.selected_in_segments(values, flags.held(device)?.input(), offsets)
        })
    }

    fn select_into(
        self,
        device: &Device,
        what: &C,
        (output, bounds): (Output<'_, S::Item>, Output<'_, u64>),
    ) -> Result<()> {
        self.copied_once(device, |values, offsets| {
            let flags = meets::<_, _, u8>(values, what);
            device.select_in_segments(values, flags.held(device)?.input(), offsets, output, bounds)?;
            Ok(())
        })
    }

    fn partition(self, device: &Device, what: &C) -> Result<(Buffer<S::Item>, Buffer<u64>)> {
        let (n, offsets) = (finite(&self.source)?, self.offsets.held(device)?);
        let offsets = offsets.input();
        device.check_segments(offsets, n)?;
        let (mut output, mut counts) = (device.uninit(n)?, device.uninit(segments(offsets.len())?)?);
        let outputs = (Output::from(&mut output), Output::from(&mut counts));
        Segments { source: self.source, offsets }.partition_into(device, what, outputs)?;
        Ok((output, counts))
    }

    fn partition_into(
        self,
        device: &Device,
        what: &C,
        (output, counts): (Output<'_, S::Item>, Output<'_, u64>),
    ) -> Result<()> {
        self.copied_once(device, |values, offsets| {
            let flags = meets::<_, _, u8>(values, what);
            let flags = flags.held(device)?;
            let flags = flags.input();
            output.expect_len(flags.len(), "a partition")?;
            extents_apart(&[values.extent(), offsets.extent()], &[output.extent(), counts.extent()])?;
            device.reduce_into(flags.cast::<u64>().segments(offsets), Sum, counts)?;
            let mut sorted = device.temporary::<u8>(flags.len())?;
            let order = Order::descending().bits(0..1);
            device.sort_into(flags.segments(offsets).with(values), order, (&mut sorted, output))
        })
    }
}

impl<S: Source<Item: Element>, O: Source<Item: Offset>> Distinct for Segments<S, O> {
    type Found = (Buffer<S::Item>, Buffer<u64>);
    type Out<'o> = Output<'o, S::Item>;

    fn unique(self, device: &Device) -> Result<Self::Found> {
        self.copied_once(device, |values, offsets| {
            device.check_segments(offsets, values.len())?;
            let flags = device.heads_in_segments(values, offsets)?;
            device.selected_in_segments(values, Input::from(&flags), offsets)
        })
    }

    fn unique_into(self, device: &Device, output: Self::Out<'_>, bounds: Output<'_, u64>) -> Result<()> {
        self.copied_once(device, |values, offsets| {
            let flags = device.heads_in_segments(values, offsets)?;
            device.select_in_segments(values, Input::from(&flags), offsets, output, bounds)?;
            Ok(())
        })
    }
}

/// Each method is compiled once for each set of types.
impl Device {
    /// The flagged elements, and the number of them before each offset.
    #[inline(never)]
    fn selected_in_segments<T: Plain, I: Offset>(
        &self,
        values: Input<'_, T>,
        flags: Input<'_, u8>,
        offsets: Input<'_, I>,
    ) -> Result<(Buffer<T>, Buffer<u64>)> {
        let (mut output, mut bounds) = (self.uninit(values.len())?, self.uninit(offsets.len())?);
        let outputs = (Output::from(&mut output), Output::from(&mut bounds));
        let count = self.select_in_segments(values, flags, offsets, outputs.0, outputs.1)?;
        output.truncate(self.selected(&count, values.len())?);
        Ok((output, bounds))
    }

    /// Writes the flagged elements, and the number of them before each offset. Returns the number of all flagged
    /// elements. If `bounds` is on the host, an output that is too short is an error.
    #[inline(never)]
    fn select_in_segments<T: Plain, I: Offset>(
        &self,
        values: Input<'_, T>,
        flags: Input<'_, u8>,
        offsets: Input<'_, I>,
        output: Output<'_, T>,
        bounds: Output<'_, u64>,
    ) -> Result<Buffer<u64>> {
        segments(offsets.len())?;
        bounds.expect_len(offsets.len(), "a selection in segments")?;
        extents_apart(&[values.extent(), offsets.extent()], &[output.extent(), bounds.extent()])?;
        let (room, on_host) = (output.len(), matches!(bounds, Output::Host(_)));
        let mut count = self.temporary(1)?;
        self.move_flagged(values, flags, output, Output::from(&mut count), 1)?;
        // The elements before the first offset are a segment, too.
        let mut starts = self.temporary::<I>(offsets.len() + 1)?;
        starts.view_mut(..1)?.fill(I::ZERO)?;
        self.copy(offsets, starts.view_mut(1..)?)?;
        let mut counts = self.temporary::<u64>(offsets.len())?;
        self.reduce_into(flags.cast::<u64>().segments(&starts), Sum, &mut counts)?;
        self.scan_into(&counts, Sum, bounds)?;
        if on_host {
            self.selected(&count, room)?;
        }
        Ok(count)
    }

    /// Flag i is set if element i starts a run of equal elements or a segment.
    #[inline(never)]
    fn heads_in_segments<T: Element, I: Offset>(
        &self,
        values: Input<'_, T>,
        offsets: Input<'_, I>,
    ) -> Result<Buffer<u8>> {
        let n = values.len();
        let mut flags = self.temporary::<u8>(n + 1)?;
        flags.view_mut(..1)?.fill(1)?;
        let differ = Map::new(|(a, b): (T::Acc, T::Acc)| u8::from(!equal(a, b)), differing::<T>());
        let differ = values.cast::<T::Acc>().neighbours::<2>().map(differ);
        self.transform_into(differ, flags.view_mut(1..n.max(1))?)?;
        // An offset at the end of the input sets the flag after the last element, which is removed below. An offset
        // beyond that sets no flag.
        let (mut ones, mut outside) = (self.temporary::<u8>(offsets.len())?, self.temporary::<u64>(1)?);
        ones.fill(1)?;
        self.scatter_into(&ones, offsets, &mut flags, &mut outside)?;
        flags.truncate(n);
        Ok(flags)
    }
}

/// The text of `!equal(a, b)` for elements as they are computed. Floats are compared by their bits, since a device may
/// flush subnormals.
fn differing<T: Element>() -> String {
    let (bits, not_a_number) = match T::Acc::TYPE {
        ElementType::F32 => ("as_uint", "0xff000000u"),
        ElementType::F64 => ("as_ulong", "0xffe0000000000000ul"),
        _ => return "a != b".into(),
    };
    let (a, b) = (format!("{bits}(a)"), format!("{bits}(b)"));
    format!(
        "{a} != {b} && ({a} << 1 | {b} << 1) != 0 && \
         !({a} << 1 > {not_a_number} && {b} << 1 > {not_a_number})"
    )
}
