//! The extremes of the values of each run of equal keys: [`Device::arg_min`], [`Device::arg_max`] and
//! [`Device::min_max`] of [`values.by_key(&keys)`](Source::by_key).

use super::{heads, runs_on_the_host};
use crate::{
    Buffer, Device, Element, ElementType, Extremes, Input, Output, Result, Scratch, Source,
    arguments::expect_beside,
    counted::in_room,
    reduce::{
        End, Ends, Extremal,
        segmented::extremes::{self, empties},
    },
    runtime::{Backend, ClInput, apart},
    segments::Offsets,
    source::{ByKey, KeyedOutput},
};

impl<S: Source<Item: Element>, K: Source<Item: Element>> Extremal for ByKey<S, K> {
    type One = (Buffer<K::Item>, Extremes<S::Item>);
    type Both = (Buffer<K::Item>, Extremes<S::Item>);

    fn one(self, device: &Device, end: End) -> Result<Self::One> {
        device.keyed_extremes(self.keys.held(device)?.input(), self.source.held(device)?.input(), Ends::of(end))
    }

    fn one_into(
        self,
        device: &Device,
        end: End,
        to: KeyedOutput<'_, K::Item, S::Item>,
        indices: Output<'_, u64>,
    ) -> Result<()> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        device.keyed_extremes_into(keys.input(), values.input(), Ends::of(end), to, indices)
    }

    fn both(self, device: &Device) -> Result<Self::Both> {
        device.keyed_extremes(self.keys.held(device)?.input(), self.source.held(device)?.input(), Ends::Both)
    }

    fn both_into(self, device: &Device, to: KeyedOutput<'_, K::Item, S::Item>, indices: Output<'_, u64>) -> Result<()> {
        let (keys, values) = (self.keys.held(device)?, self.source.held(device)?);
        device.keyed_extremes_into(keys.input(), values.input(), Ends::Both, to, indices)
    }
}

impl Device {
    #[inline(never)]
    fn keyed_extremes<K: Element, T: Element>(
        &self,
        keys: Input<'_, K>,
        values: Input<'_, T>,
        ends: Ends,
    ) -> Result<(Buffer<K>, Extremes<T>)> {
        let n = keys.len();
        expect_beside(n, values.len(), "keys need as many values")?;
        if n <= u32::MAX as usize {
            let (keys_out, offsets) = self.runs_of::<u32, K>(keys)?;
            Ok((keys_out, self.segment_extremes(values, Input::from(&offsets), ends)?))
        } else {
            let (keys_out, offsets) = self.runs_of::<u64, K>(keys)?;
            Ok((keys_out, self.segment_extremes(values, Input::from(&offsets), ends)?))
        }
    }

    #[inline(never)]
    fn keyed_extremes_into<K: Element, T: Element>(
        &self,
        keys: Input<'_, K>,
        values: Input<'_, T>,
        ends: Ends,
        to: KeyedOutput<'_, K, T>,
        indices: Output<'_, u64>,
    ) -> Result<()> {
        let (n, room) = (keys.len(), to.keys.len());
        expect_beside(n, values.len(), "keys need as many values")?;
        let (results, what) = (ends.list().len() * room, format!("{} by key", ends.name()));
        to.values.expect_len(results, &what)?;
        indices.expect_len(results, &what)?;
        in_room("result", room, to.count, |count| match self.backend() {
            Backend::Cpu => {
                let (offsets, found) = runs_on_the_host(keys.host()?, to.keys.host()?, room)?;
                let (values_out, indices, offsets) = (to.values.host()?, indices.host()?, Offsets::of(&offsets));
                extremes::cpu::find(values.host()?, offsets, ends.list(), room, values_out, indices)?;
                count.host()?[0] = found as u64;
                Ok(())
            }
            Backend::OpenCl(device) => {
                let scratch = &mut Scratch::new();
                let (keys, values) = (keys.cl(device)?, values.cl(device)?);
                let (keys_out, values_out) = (to.keys.cl(device, true)?, to.values.cl(device, true)?);
                let (indices, count) = (indices.cl(device, true)?, count.cl(device, false)?);
                apart(&[&keys, &values], &[&keys_out, &values_out, &indices, &count])?;
                let offset = if n > u32::MAX as usize { ElementType::U64 } else { ElementType::U32 };
                let offsets = ClInput::pooled(device, (room + 1) * offset.size(), offset.size())?;
                heads::<K>(device, &keys, Some(&keys_out), &offsets, &count, scratch)?;
                let empty = empties::<T>(ends);
                let call = extremes::gpu::Call {
                    form: &extremes::gpu::Form { counted: true, ..extremes::gpu::Form::of::<T>(ends, offset) },
                    empty: bytemuck::cast_slice(&empty),
                    input: &values,
                    offsets: &offsets,
                    segments: room,
                    found: Some(&count),
                    values: &values_out,
                    indices: &indices,
                };
                call.run(device, scratch)?;
                values_out.finish(device)?;
                indices.finish(device)?;
                count.finish(device)?;
                keys_out.finish(device)
            }
        })
    }
}
