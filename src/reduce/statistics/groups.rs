//! Statistics of groups: [`Device::statistics`] of [`x.segments(&offsets)`](Source::segments),
//! [`view.along(axes)`](crate::NdView::along) and [`x.by_key(&keys)`](Source::by_key).
//!
//! | property | |
//! |---|---|
//! | work | three passes over the elements: the [moments](crate::reduce::segmented::moments) and the [extremes](crate::reduce::segmented::extremes) of segments, and for floats the numbers of NaN. Lines that do not follow one another in memory are copied first |
//! | determinism | same bits everywhere, if the device keeps subnormals |
//! | scratch | that of the passes, about 100 bytes for each group, and for floats a byte for each element |
//! | limits | any n and any number of groups that fit the device |
//!
//! Indices count from the start of the group. The record of an empty segment has the count 0. Its mean and its variance
//! are NaN, and its extremes are those of [`Device::min_max`] of an empty segment. The mean and the variance of floats
//! have the bits of [`Device::moments`].

use super::{Figure, Measurable, StatisticsRecord, WORDS, gpu};
use crate::{
    Buffer, Device, Element, Input, NdView, Offset, Output, Result, Source, element,
    op::{Map, Sum},
    reduce::{
        Extremal,
        axis::moments::{MeasurableGroups, MomentsRecord, figures},
    },
    runtime::{Backend, extents_apart},
    segments::segments,
    source::{Along, Axes, Segments, group::lines_of_expressions},
};

impl<S: Source<Item: Element>, C: Source<Item: Offset>> Measurable for Segments<S, C> {
    type Found = Vec<f64>;
    type Statistics = Buffer<StatisticsRecord<S::Item>>;

    fn figure(self, device: &Device, figure: Figure) -> Result<Vec<f64>> {
        figures(&self.moments(device)?, figure)
    }

    fn statistics(self, device: &Device) -> Result<Self::Statistics> {
        let (elements, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        let (elements, offsets) = (elements.input(), offsets.input());
        device.check_segments(offsets, elements.len())?;
        let mut records = device.uninit(segments(offsets.len())?)?;
        device.statistics_of_segments(elements, offsets, Output::from(&mut records))?;
        Ok(records)
    }

    fn statistics_into(self, device: &Device, output: Output<'_, StatisticsRecord<S::Item>>) -> Result<()> {
        let (elements, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        device.statistics_of_segments(elements.input(), offsets.input(), output)
    }
}

impl<T: Element, A: Axes> Measurable for Along<NdView<'_, T>, A> {
    type Found = Vec<f64>;
    type Statistics = Buffer<StatisticsRecord<T>>;

    fn figure(self, device: &Device, figure: Figure) -> Result<Vec<f64>> {
        figures(&self.moments(device)?, figure)
    }

    fn statistics(self, device: &Device) -> Result<Self::Statistics> {
        self.as_segments(device, "statistics", |elements, offsets| {
            let mut records = device.uninit(offsets.len() - 1)?;
            device.statistics_of_segments(elements, offsets, Output::from(&mut records))?;
            Ok(records)
        })
    }

    fn statistics_into(self, device: &Device, output: Output<'_, StatisticsRecord<T>>) -> Result<()> {
        self.as_segments(device, "statistics", |elements, offsets| {
            device.statistics_of_segments(elements, offsets, output)
        })
    }
}

lines_of_expressions! { Measurable[Element] {
    type Found = Vec<f64>;
    type Statistics = Buffer<StatisticsRecord<Self::Item>>;
    fn figure(figure: Figure) -> Vec<f64>;
    fn statistics() -> Self::Statistics;
    fn statistics_into(output: Output<'_, StatisticsRecord<Self::Item>>) -> ();
} }

impl Device {
    /// The statistics of segments, compiled once for each set of types.
    #[inline(never)]
    fn statistics_of_segments<T: Element, C: Offset>(
        &self,
        elements: Input<'_, T>,
        offsets: Input<'_, C>,
        output: Output<'_, StatisticsRecord<T>>,
    ) -> Result<()> {
        let groups = segments(offsets.len())?;
        output.expect_len(groups, "statistics of segments")?;
        extents_apart(&[elements.extent(), offsets.extent()], &[output.extent()])?;
        // Each pass reads the elements, so they are uploaded once.
        let (mut own, mut own_offsets) = (None, None);
        let (elements, offsets) = (self.copied_once(elements, &mut own)?, self.copied_once(offsets, &mut own_offsets)?);
        let mut moments = self.temporary::<MomentsRecord<T>>(groups)?;
        let (mut values, mut indices) = (self.temporary::<T>(2 * groups)?, self.temporary::<u64>(2 * groups)?);
        elements.segments(offsets).moments_into(self, Output::from(&mut moments))?;
        elements.segments(offsets).both_into(self, Output::from(&mut values), Output::from(&mut indices))?;
        let mut nans = self.temporary::<u64>(groups)?;
        if T::TYPE.is_float() {
            let mut flags = self.temporary::<u8>(elements.len())?;
            let is_nan = Map::new(|x: T::Acc| u8::from(x.is_nan()), "x != x");
            self.transform_into(elements.cast::<T::Acc>().map(is_nan), &mut flags)?;
            self.reduce_into(flags.cast::<u64>().segments(offsets), Sum, &mut nans)?;
        } else {
            nans.fill(0)?;
        }
        let (moments, values) = (Input::from(&moments), Input::from(&values));
        let (indices, nans) = (Input::from(&indices), Input::from(&nans));
        match self.backend() {
            Backend::Cpu => {
                let moments: &[[u64; 6]] = bytemuck::cast_slice(moments.host()?);
                let (values, indices, nans) = (values.host()?, indices.host()?, nans.host()?);
                for (group, record) in output.host()?.iter_mut().enumerate() {
                    let [count, of_moments @ ..] = moments[group];
                    let words = &mut record.0;
                    *words = [0; WORDS];
                    words[..2].copy_from_slice(&[count, nans[group]]);
                    for end in 0..2 {
                        words[2 + end] = indices[end * groups + group];
                        words[4 + end] = element::bits(values[end * groups + group]);
                    }
                    words[6..11].copy_from_slice(&of_moments);
                }
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (moments, values) = (moments.cl(device)?, values.cl(device)?);
                let (indices, nans, output) = (indices.cl(device)?, nans.cl(device)?, output.cl(device, false)?);
                gpu::join_groups(device, T::TYPE, [&moments, &values, &indices, &nans], &output)?;
                output.finish(device)
            }
        }
    }
}
