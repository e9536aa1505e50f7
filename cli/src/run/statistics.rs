//! `oclprim run count` and `statistics`

use std::io::Write;

use clap::Args;
use oclprim::{Device, Element, Statistics, op};
use oclprim_checks::check::{Failure, same};

use super::{
    common::{Common, collect, in_words, matches, neighbours, with_number},
    reduce::{Line, at_index},
};
use crate::{
    npy::{Array, Made, number},
    output::Stop,
};

const COUNT_EXAMPLES: &str = "\
Examples:
  oclprim run count flags.npy
  oclprim run count labels.npy --value 7 --device gpu --verify";

/// Count the elements that are not 0, or that equal a value.
///
/// NaN is not 0. With -o, the count is written as a 0-dimensional uint64.
#[derive(Args)]
#[command(after_help = COUNT_EXAMPLES)]
pub(super) struct Count {
    #[command(flatten)]
    common: Common,
    /// Count the elements that equal this value.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
}

impl Count {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "count")?;
        let device = self.common.device.open_for_files()?;
        let count = with_number!(element, T => self.count::<T>(array.elements(), &device)?);
        self.common.finish(&Made::of("<u8", &[], &[count]), count.to_string(), out)
    }

    fn count<T: Element>(&self, input: &[T], device: &Device) -> Result<u64, Stop> {
        let value = self.value.as_deref().map(|text| neighbours::<T>("--value", text)).transpose()?;
        let run = |device: &Device| match value {
            Some((Some(below), Some(above))) if below == above => device.count(input, op::EqualTo(below)),
            // No element equals a number that is between two values of its type, or beyond its range.
            Some(_) => Ok(0),
            None => device.count(input, op::NonZero),
        };
        let count = run(device)?;
        if self.common.verify {
            matches(same(&[count], &[run(&Device::cpu())?], "count "))?;
        }
        Ok(count)
    }
}

const STATISTICS_EXAMPLES: &str = "\
Examples:
  oclprim run statistics samples.npy
  oclprim run statistics samples.npy --device opencl --verify -o figures.npy
  oclprim run statistics samples.npy -o figures.npz
  oclprim run statistics matrix.npy --axis 0 -o figures.npy";

/// Compute count, sum, extremes, mean and variance of all elements, or sum, mean and variance along an axis.
///
/// The sum of all elements of an integer array is exact. The variance is that of the population: the mean of the squared distances
/// to the mean. With -o, seven numbers are written as float64: count, NaN, min, max, sum, mean, variance. With --axis the result
/// lacks that axis; a new last axis has the sum, mean and variance of each line. For f32 and f16 a distance to the mean below
/// 1e-19 loses digits or counts as 0, so scale samples that lie that close.
///
/// An archive has the arrays `count`, `nan`, `min`, `max`, `arg_min`, `arg_max`, `sum`, `mean` and `variance`; with
/// --axis only `sum`, `mean` and `variance`. `min` and `max` have the type of the array. In an archive, the sum of an
/// integer array is int64 or uint64. If it does not fit, it is rounded to float64.
#[derive(Args)]
#[command(after_help = STATISTICS_EXAMPLES)]
pub(super) struct StatisticsOf {
    #[command(flatten)]
    common: Common,
    /// Compute sum, mean and variance along this axis: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    axis: Option<i64>,
}

impl StatisticsOf {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "statistics")?;
        let axis = self.axis.map(|number| self.common.axis(&array, number)).transpose()?;
        let device = self.common.device.open_for_files()?;
        with_number!(element, T => match axis {
            Some(axis) => {
                let line = Line { shape: array.shape.clone(), axis, device: &device, verify: self.common.verify };
                let (shape, figures) = ([line.left(), vec![3]].concat(), line.moments(array.elements::<T>())?);
                if self.common.to_archive() {
                    return self.figures_apart(&figures, &line.left());
                }
                let text = in_words(&figures, &shape, "<f8", &device);
                self.common.finish(&Made::of("<f8", &shape, &figures), text, out)
            }
            None => self.of::<T>(&array, array.elements(), &device, out),
        })
    }

    /// Writes sum, mean and variance of each line as arrays of the shape `left`.
    fn figures_apart(&self, figures: &[f64], left: &[usize]) -> Result<(), Stop> {
        let [sum, mean, variance] = [0, 1, 2].map(|k| collect(figures.chunks_exact(3).map(|of_line| of_line[k])));
        let [sum, mean, variance] = [sum?, mean?, variance?];
        let [sum, mean, variance] = [&sum, &mean, &variance].map(|figures| Made::of("<f8", left, figures));
        self.common.finish_archive(&[("sum", &sum), ("mean", &mean), ("variance", &variance)])
    }

    fn to_archive<T: Element>(&self, array: &Array, found: &Statistics<T>) -> Result<(), Stop> {
        let counts = [found.count, found.nan].map(|count| [count as u64]);
        let [count, nan] = counts.each_ref().map(|count| Made::of("<u8", &[], count));
        let extremes = [[found.min.value], [found.max.value]];
        let [min, max] = extremes.each_ref().map(|extreme| array.like(&[], extreme));
        let indices = [[found.min.index as i64], [found.max.index as i64]];
        let [arg_min, arg_max] = indices.each_ref().map(|index| Made::of("<i8", &[], index));
        let figures = [[found.sum], [found.mean], [found.variance]];
        let [sum, mean, variance] = figures.each_ref().map(|figure| Made::of("<f8", &[], figure));
        let signed = found.integer_sum.and_then(|sum| i64::try_from(sum).ok()).map(|sum| [sum]);
        let unsigned = found.integer_sum.and_then(|sum| u64::try_from(sum).ok()).map(|sum| [sum]);
        let sum = match (&signed, &unsigned) {
            (Some(sum), _) => Made::of("<i8", &[], sum),
            (None, Some(sum)) => Made::of("<u8", &[], sum),
            (None, None) => sum,
        };
        self.common.finish_archive(&[
            ("count", &count),
            ("nan", &nan),
            ("min", &min),
            ("max", &max),
            ("arg_min", &arg_min),
            ("arg_max", &arg_max),
            ("sum", &sum),
            ("mean", &mean),
            ("variance", &variance),
        ])
    }

    fn of<T: Element>(&self, array: &Array, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let found = device.statistics(input)?;
        let figures = |found: &Statistics<T>| {
            let [min, max] = [found.min, found.max].map(|extreme| extreme.value.to_f64());
            [found.count as f64, found.nan as f64, min, max, found.sum, found.mean, found.variance]
        };
        if self.common.verify {
            let want = Device::cpu().statistics(input)?;
            let indices = |found: &Statistics<T>| [found.min, found.max].map(|extreme| extreme.index as u64);
            matches(same(&indices(&found), &indices(&want), "index of an extreme "))?;
            matches(same(&[found.min.value, found.max.value], &[want.min.value, want.max.value], "extreme "))?;
            matches(same(&figures(&found), &figures(&want), "figure "))?;
            if found.integer_sum != want.integer_sum {
                let text = format!("sum is {:?} instead of {:?}", found.integer_sum, want.integer_sum);
                matches(Err(Failure::Mismatch(text)))?;
            }
        }
        if self.common.to_archive() {
            return self.to_archive(array, &found);
        }
        let sum = found.integer_sum.map_or_else(|| number(found.sum), |sum| sum.to_string());
        let lines = [
            ("count", found.count.to_string()),
            ("NaN", found.nan.to_string()),
            ("min", at_index(found.min)),
            ("max", at_index(found.max)),
            ("sum", sum),
            ("mean", number(found.mean)),
            ("variance", number(found.variance)),
        ];
        let text: Vec<_> = lines.iter().map(|(name, value)| format!("{name:8}  {value}")).collect();
        self.common.finish(&Made::of("<f8", &[7], &figures(&found)), text.join("\n"), out)
    }
}
