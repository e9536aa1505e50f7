//! `oclprim run histogram`

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use oclprim::{Bins, Device, Element, Histogram, Integer, Weight, WeightedHistogram, op, with_element, with_integer};
use oclprim_checks::check::same;

use super::{Common, element_of, matches, numpy_name, parse};
use crate::{npy::Array, output::Stop};

const HISTOGRAM_EXAMPLES: &str = "\
Examples:
  oclprim run histogram labels.npy --bins 10
  oclprim run histogram heights.npy --bins 20 --range 1.5 2.0 --closed -o counts.npy
  oclprim run histogram levels.npy --bins 2^8 --range -32768 32767 --closed --verify
  oclprim run histogram heights.npy --edges edges.npy --weights weights.npy
  oclprim run histogram pixels.npy --channels -o counts.npy";

/// Count the samples in each bin.
///
/// Integers are bin numbers from 0 on, unless there is a --range. Floats are counted in bins of equal width; without a
/// --range these go from the smallest to the largest sample, which is in the last bin, as in numpy.histogram; equal samples
/// alone have no such range. Edges are rounded to the samples' type, so that a sample beside one can be in another bin than
/// NumPy's. With --edges the last bin has its upper edge, too. With -o, the counts are written as uint64, sums of weights
/// as int64, uint64 or float64, as the weights are. With --channels there is a row of bins for each channel.
/// Samples outside the bins are reported on standard error.
#[derive(Args)]
#[command(after_help = HISTOGRAM_EXAMPLES)]
pub(super) struct HistogramOf {
    #[command(flatten)]
    common: Common,
    /// How many bins.
    #[arg(long, value_parser = crate::options::size, default_value = "256")]
    bins: usize,
    /// The lower edge of the first bin and the upper edge of the last.
    #[arg(long, num_args = 2, value_names = ["LO", "HI"], allow_negative_numbers = true)]
    range: Option<Vec<String>>,
    /// Count a sample that equals HI in the last bin.
    #[arg(long, requires = "range")]
    closed: bool,
    /// The edges of the bins, one more than there are bins: an array of the samples' type.
    #[arg(long, value_name = "EDGES.npy", conflicts_with_all = ["range", "bins"])]
    edges: Option<PathBuf>,
    /// Add up a weight for each sample: integers in 64 bits, floats as doubles.
    #[arg(long, value_name = "WEIGHTS.npy")]
    weights: Option<PathBuf>,
    /// A histogram for each of the 1 to 4 channels along the last axis, all with the same bins.
    #[arg(long, conflicts_with = "weights")]
    channels: bool,
}

/// The samples below, above and nowhere.
fn outside(found: &Histogram) -> [u64; 3] {
    [found.outside.below, found.outside.above, found.outside.nan]
}

fn same_counts(found: &Histogram, want: &Histogram) -> Result<(), Stop> {
    matches(same(&found.counts, &want.counts, "bin "))?;
    matches(same(&outside(found), &outside(want), "outside "))
}

/// What was counted, and the parts of it that lie below, above and nowhere.
struct Found {
    array: Array,
    text: String,
    outside: [String; 3],
}

impl HistogramOf {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "histogram")?;
        let channels = if self.channels { Some(array.lengths()[self.common.axis(&array, -1)?]) } else { None };
        let device = self.common.device.open()?;
        let found = with_element!(element, T => self.count::<T>(&array.elements(), channels, &device)?);
        let unit = if self.weights.is_some() { "of weight" } else { "samples" };
        for (amount, place) in found.outside.iter().zip(["below the first bin", "above the last", "NaN"]) {
            if amount != "0" {
                // With no standard error left there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "{amount} {unit} {place}");
            }
        }
        self.common.finish(&found.array, found.text, out)
    }

    fn count<T: Element>(&self, input: &[T], channels: Option<usize>, device: &Device) -> Result<Found, Stop> {
        if let Some(path) = &self.edges {
            let bins = Bins::edges(&self.elements::<T>(path)?)?.closed();
            return self.counted(input, &bins, channels, device);
        }
        let bins = match &self.range {
            Some(range) => self.even(parse::<T>("--range", &range[0])?, parse::<T>("--range", &range[1])?)?,
            None if T::TYPE.is_float() => self.fitted(input, device)?,
            None => with_integer!(T::TYPE, I => {
                let found = self.counted::<I>(bytemuck::cast_slice(input), &Bins::ids(self.bins)?, channels, device)?;
                return Ok(found);
            }, unreachable!("floats are above")),
        };
        self.counted(input, &bins, channels, device)
    }

    fn even<T: Element>(&self, lower: T, upper: T) -> Result<Bins<T>, Stop> {
        let bins = Bins::even(lower, upper, self.bins)?;
        Ok(if self.closed { bins.closed() } else { bins })
    }

    /// Bins from the smallest to the largest sample.
    fn fitted<T: Element>(&self, input: &[T], device: &Device) -> Result<Bins<T>, Stop> {
        if input.is_empty() {
            return Err(Stop::usage("there are no samples from which to take a range: give one with --range"));
        }
        // What is wrong with their number is not the range's fault.
        Bins::<u32>::ids(self.bins)?;
        let (lower, upper) = (device.reduce(input, op::Min)?, device.reduce(input, op::Max)?);
        match Bins::even(lower, upper, self.bins) {
            Ok(bins) => Ok(bins.closed()),
            Err(error) => {
                let text = format!("samples from {lower} to {upper} give no range: give one with --range ({error})");
                Err(Stop::usage(text))
            }
        }
    }

    /// The elements of a file of the samples' type.
    fn elements<T: Element>(&self, path: &Path) -> Result<Vec<T>, Stop> {
        let array = Array::read(path)?;
        if array.element() != Some(T::TYPE) {
            let (path, ty) = (path.display(), array.type_name());
            return Err(Stop::usage(format!("{path}: elements are {ty}, those of the samples {}", T::TYPE)));
        }
        Ok(array.elements())
    }

    fn counted<T: Element>(
        &self,
        input: &[T],
        bins: &Bins<T>,
        channels: Option<usize>,
        device: &Device,
    ) -> Result<Found, Stop> {
        if let Some(channels) = channels {
            return self.of_channels(input, bins, channels, device);
        }
        if let Some(path) = &self.weights {
            let array = Array::read(path)?;
            let element = element_of(path, &array, "histogram")?;
            // Of each kind the widest, which holds the others.
            return with_integer!(element, W => {
                let integers = array.elements::<W>().into_iter().map(Integer::to_i128);
                if element.is_signed() {
                    self.weighed(input, &integers.map(|w| w as i64).collect::<Vec<_>>(), bins, device)
                } else {
                    self.weighed(input, &integers.map(|w| w as u64).collect::<Vec<_>>(), bins, device)
                }
            }, {
                let floats: Vec<f64> =
                    with_element!(element, W => array.elements::<W>().into_iter().map(Element::to_f64).collect());
                self.weighed(input, &floats, bins, device)
            });
        }
        let found = device.histogram(input, bins)?;
        if self.common.verify {
            same_counts(&found, &Device::cpu().histogram(input, bins)?)?;
        }
        Ok(Found {
            array: Array::of("<u8", &[found.counts.len()], &found.counts),
            text: counts_in_words(&found.counts),
            outside: outside(&found).map(|count| count.to_string()),
        })
    }

    /// The same bins for each channel; what lies outside is that of all together.
    fn of_channels<T: Element>(
        &self,
        input: &[T],
        bins: &Bins<T>,
        channels: usize,
        device: &Device,
    ) -> Result<Found, Stop> {
        let all = vec![bins.clone(); channels];
        let found = device.histogram_channels(input, channels, &all)?;
        if self.common.verify {
            let want = Device::cpu().histogram_channels(input, channels, &all)?;
            found.iter().zip(&want).try_for_each(|(found, want)| same_counts(found, want))?;
        }
        let counts: Vec<u64> = found.iter().flat_map(|found| found.counts.iter().copied()).collect();
        let lines: Vec<_> = found.iter().map(|found| counts_in_words(&found.counts)).collect();
        let sums = found.iter().map(outside).fold([0; 3], |sums, next| [0, 1, 2].map(|i| sums[i] + next[i]));
        Ok(Found {
            array: Array::of("<u8", &[channels, bins.len()], &counts),
            text: lines.join("\n"),
            outside: sums.map(|count| count.to_string()),
        })
    }

    fn weighed<T: Element, W: Weight>(
        &self,
        input: &[T],
        weights: &[W],
        bins: &Bins<T>,
        device: &Device,
    ) -> Result<Found, Stop> {
        let found = device.histogram_weighted(input, weights, bins)?;
        let outside = |found: &WeightedHistogram<W::Sum>| {
            let sides = found.outside;
            [sides.below, sides.above, sides.nan]
        };
        if self.common.verify {
            let want = Device::cpu().histogram_weighted(input, weights, bins)?;
            matches(same(&found.sums, &want.sums, "bin "))?;
            matches(same(&outside(&found), &outside(&want), "outside "))?;
        }
        let words: Vec<_> = found.sums.iter().map(W::Sum::to_string).collect();
        Ok(Found {
            array: Array::of(numpy_name(<W::Sum as Element>::TYPE), &[found.sums.len()], &found.sums),
            text: words.join(" "),
            outside: outside(&found).map(|sum| sum.to_string()),
        })
    }
}

fn counts_in_words(counts: &[u64]) -> String {
    const SHOWN: usize = 64;
    if counts.len() <= SHOWN {
        let words: Vec<_> = counts.iter().map(u64::to_string).collect();
        return words.join(" ");
    }
    let total: u64 = counts.iter().sum();
    let (fullest, most) = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
    let empty = counts.iter().filter(|&&count| count == 0).count();
    let bins = counts.len();
    format!(
        "{total} samples in {bins} bins: {most} in bin {fullest}, the fullest; {empty} empty; -o writes them to a file"
    )
}
