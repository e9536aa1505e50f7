//! Sorts of lines: [`Device::sort`] and [`Device::argsort`] of [`view.along(axes)`](crate::NdView::along) sort the
//! elements along axes, also [with values](Along::with).
//!
//! Lines are [segments](super::segmented) of equal length. Results have the order of the view: contiguous, in row-major
//! order. If the axes are not the last ones, the elements are copied to lines first, and the results are copied back.
//! This costs two more reads and writes. Indices of an argsort count from the start of their line, as in NumPy.

use bytemuck::Pod;

use super::{Argsortable, Key, Order, Sortable, expect_indices};
use crate::{
    Buffer, Device, Element, Input, NdView, Offset, Output, Result, Source,
    op::CapturingMap,
    runtime::extents_apart,
    source::{Along, Axes, PairOutput, Shaped, With},
};

impl<V: Shaped<To: Key>, A: Axes> Sortable<Order> for Along<V, A> {
    type Sorted = Buffer<V::To>;
    type Out<'o> = Output<'o, V::To>;

    fn sort(self, device: &Device, order: &Order) -> Result<Buffer<V::To>> {
        let mut output = device.uninit(self.len())?;
        self.sort_into(device, order, Output::from(&mut output))?;
        Ok(output)
    }

    fn sort_into(self, device: &Device, order: &Order, output: Output<'_, V::To>) -> Result<()> {
        sorted(&self, device, output, |keys, offsets, _, output| {
            device.sort_into(keys.segments(offsets), order.clone(), output)
        })
    }
}

impl<V: Shaped<To: Key>, A: Axes> Argsortable<Order> for Along<V, A> {
    fn argsort<P: Offset>(self, device: &Device, order: &Order) -> Result<Buffer<P>> {
        let mut output = device.uninit(self.len())?;
        self.argsort_into(device, order, Output::from(&mut output))?;
        Ok(output)
    }

    fn argsort_into<P: Offset>(self, device: &Device, order: &Order, output: Output<'_, P>) -> Result<()> {
        sorted(&self, device, output, |keys, offsets, len, output| {
            expect_indices::<P>(len as usize)?;
            let mut indices = device.temporary::<u64>(keys.len())?;
            device.argsort_into(keys.segments(offsets), order.clone(), &mut indices)?;
            let in_line = CapturingMap::of_one(move |index: u64| index % len, "x % c0", len);
            device.transform_into(indices.map(in_line).cast::<P>(), output)
        })
    }
}

impl<V: Shaped<To: Key>, A: Axes, U: Element> Sortable<Order> for With<Along<V, A>, NdView<'_, U>> {
    type Sorted = (Buffer<V::To>, Buffer<U>);
    type Out<'o> = PairOutput<'o, V::To, U>;

    fn sort(self, device: &Device, order: &Order) -> Result<Self::Sorted> {
        let n = self.keys.len();
        let (mut keys, mut values) = (device.uninit(n)?, device.uninit(n)?);
        self.sort_into(device, order, (&mut keys, &mut values).into())?;
        Ok((keys, values))
    }

    fn sort_into(self, device: &Device, order: &Order, to: PairOutput<'_, V::To, U>) -> Result<()> {
        let beside = self.keys.beside(self.values)?;
        to.values.expect_len(self.keys.len(), "a sort of values along axes")?;
        let [of_keys, others] = self.keys.extents();
        extents_apart(&[of_keys, others, self.values.extent()], &[to.keys.extent(), to.values.extent()])?;
        sorted(&self.keys, device, to.keys, |keys, offsets, _, keys_out| {
            let (values, ..) = beside.in_memory(device)?;
            let keys = keys.segments(offsets).with(values.input());
            if beside.adjoin()? {
                return device.sort_into(keys, order.clone(), (keys_out, to.values));
            }
            let mut lines = device.temporary::<U>(beside.len())?;
            device.sort_into(keys, order.clone(), (keys_out, &mut lines))?;
            beside.put(device, &lines, to.values)
        })
    }
}

/// Calls `sort` with the lines in memory, their offsets, their length and an output. Its results go to `output`, in the
/// order of the view.
fn sorted<V: Shaped, A: Axes, R: Pod>(
    along: &Along<V, A>,
    device: &Device,
    output: Output<'_, R>,
    sort: impl FnOnce(Input<'_, V::To>, Input<'_, u64>, u64, Output<'_, R>) -> Result<()>,
) -> Result<()> {
    let (elements, rows, len) = along.in_memory(device)?;
    output.expect_len(along.len(), "a sort along axes")?;
    extents_apart(&along.extents(), &[output.extent()])?;
    if along.len() == 0 {
        return Ok(());
    }
    let elements = along.view.converted(elements.input());
    let (keys, offsets) = (elements.held(device)?, device.iota(rows + 1, 0, len as u64)?);
    let (keys, offsets, len) = (keys.input(), Input::from(&offsets), len as u64);
    if along.adjoin()? {
        return sort(keys, offsets, len, output);
    }
    let mut lines = device.temporary::<R>(keys.len())?;
    sort(keys, offsets, len, Output::from(&mut lines))?;
    along.put(device, &lines, output)
}
