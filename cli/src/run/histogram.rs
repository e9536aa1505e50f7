//! `oclprim run histogram`

use std::{io::Write, path::PathBuf};

use clap::Args;
use oclprim::{Bins, Device, Element, ElementType, Histogram, Source, Weight, WeightedHistogram, op, with_integer};
use oclprim_checks::check::same;

use super::common::{Common, common_type, element_of, matches, numpy_name, parse, read, second, with_number};
use crate::{
    npy::{Array, Made, number},
    output::{Stop, of_file},
    progress,
};

const HISTOGRAM_EXAMPLES: &str = "\
Examples:
  oclprim run histogram labels.npy --bins 10
  oclprim run histogram heights.npy --bins 20 --range 1.5 2.0 --closed -o counts.npy
  oclprim run histogram levels.npy --bins 2^8 --range -32768 32767 --closed --verify
  oclprim run histogram heights.npy --edges edges.npy --weights weights.npy
  oclprim run histogram pixels.npy --channels -o counts.npy
  oclprim run histogram heights.npy --bins 20 -o histogram.npz";

/// Count the samples in each bin.
///
/// Integers are bin numbers from 0 on, unless --range or --edges is given. Floats are counted in bins of equal width. Without --range the bins
/// go from the smallest to the largest sample, as in numpy.histogram, and the last bin contains its upper edge. If all samples are
/// equal, the range is wider by 0.5 on either side; without samples it is 0 to 1. A --range for floats is rounded to their type, so
/// a sample next to an edge can be in another bin than with NumPy.
///
/// With --edges the last bin contains its upper edge, too. With -o, counts are written as uint64, and sums of weights as int64,
/// uint64 or float64, depending on the weights. With --channels the result has a row of bins for each channel. Standard error
/// reports the number of samples outside the bins.
///
/// An archive has three arrays: `counts` (with --weights `sums`), `edges` as float64, and `outside`. `outside` has the
/// number or weight of the samples below the bins, of those above them, and of NaN.
#[derive(Args)]
#[command(after_help = HISTOGRAM_EXAMPLES)]
pub(super) struct HistogramOf {
    #[command(flatten)]
    common: Common,
    /// The number of bins.
    #[arg(long, value_parser = crate::options::size, allow_negative_numbers = true, default_value = "256")]
    bins: usize,
    /// The lower edge of the first bin and the upper edge of the last. If the type of integer samples cannot represent
    /// both, as u8 cannot represent 256, the samples are counted as i64, or else as f64. That type must represent every
    /// sample. As f64, LO and HI are rounded.
    #[arg(long, num_args = 2, value_names = ["LO", "HI"], allow_hyphen_values = true)]
    range: Option<Vec<String>>,
    /// Count a sample that equals HI in the last bin.
    #[arg(long, requires = "range")]
    closed: bool,
    /// A file of the edges of the bins, in any type: n + 1 edges for n bins. If the type of the samples cannot
    /// represent every edge, the samples are counted as f64.
    #[arg(long, value_name = "EDGES.npy", conflicts_with_all = ["range", "bins"])]
    edges: Option<PathBuf>,
    /// Sum a weight for each sample instead of counting: integers in 64 bits, floats as f64.
    #[arg(long, value_name = "WEIGHTS.npy")]
    weights: Option<PathBuf>,
    /// Count each of the 1 to 4 channels along the last axis separately, in the same bins.
    #[arg(long, conflicts_with = "weights")]
    channels: bool,
}

/// The numbers of samples below the bins, above them, and of NaN.
fn outside(found: &Histogram) -> [u64; 3] {
    [found.outside.below, found.outside.above, found.outside.nan]
}

fn same_counts(found: &Histogram, want: &Histogram) -> Result<(), Stop> {
    matches(same(&found.counts, &want.counts, "bin "))?;
    matches(same(&outside(found), &outside(want), "outside "))
}

impl HistogramOf {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "histogram")?;
        let channels = if self.channels { Some(array.shape[self.common.axis(&array, -1)?]) } else { None };
        let device = self.common.device.open_for_files()?;
        let edges = match &self.edges {
            Some(path) => Some((path, second(path)?)),
            None => None,
        };
        let element = match (&edges, &self.range) {
            (Some((path, edges)), _) => common_type((element, &array), (path, edges))?,
            (_, Some(range)) => self.type_of_range(element, &array, range)?,
            _ => element,
        };
        with_number!(element, T => {
            let input = array.exactly::<T>().map_err(of_file(&self.common.input))?;
            match &edges {
                Some((path, edges)) => {
                    let bins = Bins::edges(&edges.exactly::<T>().map_err(of_file(path))?)?.closed();
                    self.counted(&input, &bins, channels, &device, out)
                }
                None => self.count::<T>(&input, channels, &device, out),
            }
        })
    }

    /// Writes the counts, and reports the samples outside the bins on standard error.
    fn finish<T: Element, W: Element>(
        &self,
        found: &Made<'_>,
        text: String,
        (bins, sides): (&Bins<T>, [W; 3]),
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let outside = sides.map(number);
        let unit = if self.weights.is_some() { "of weight" } else { "samples" };
        for (amount, side) in outside.iter().zip(["below the first bin", "above the last", "NaN"]) {
            if amount != "0" {
                progress::notice(&format!("{amount} {unit} {side}"));
            }
        }
        if self.common.to_archive() {
            let edges = bins.rounded_edges()?;
            let edges = Made::of("<f8", &[edges.len()], &edges);
            let outside = Made::of(numpy_name(W::TYPE), &[3], &sides);
            let name = if self.weights.is_some() { "sums" } else { "counts" };
            return self.common.finish_archive(&[(name, found), ("edges", &edges), ("outside", &outside)]);
        }
        self.common.finish(found, text, out)
    }

    fn count<T: Element>(
        &self,
        input: &[T],
        channels: Option<usize>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let bins = match &self.range {
            Some(range) => self.even(parse::<T>("--range", &range[0])?, parse::<T>("--range", &range[1])?)?,
            None if T::TYPE.is_float() => self.fitted(input, device)?,
            None => with_integer!(T::TYPE, I => {
                let input = bytemuck::cast_slice(input);
                return self.counted::<I>(input, &Bins::ids(self.bins)?, channels, device, out);
            }, unreachable!("floats are above")),
        };
        self.counted(input, &bins, channels, device, out)
    }

    /// The type in which samples are counted: their own if it represents the ends of the range. Else it is the first of
    /// `i64` and `f64` that represents the ends and all samples. A later step refuses ends that are not numbers.
    fn type_of_range(&self, element: ElementType, array: &Array, range: &[String]) -> Result<ElementType, Stop> {
        let has = |ty| with_number!(ty, T => range.iter().all(|end| parse::<T>("--range", end).is_ok()));
        if element.is_float() || has(element) || !has(ElementType::F64) {
            return Ok(element);
        }
        let wider = [ElementType::I64, ElementType::F64];
        let fits = |ty: &ElementType| has(*ty) && with_number!(*ty, T => array.is_exact_in::<T>());
        wider.into_iter().find(fits).ok_or_else(|| {
            let [low, high] = [&range[0], &range[1]];
            Stop::usage(format!(
                "--range: {element} cannot represent {low} to {high}, and f64 cannot represent every sample"
            ))
        })
    }

    fn even<T: Element>(&self, lower: T, upper: T) -> Result<Bins<T>, Stop> {
        let bins = Bins::even(lower, upper, self.bins)?;
        Ok(if self.closed { bins.closed() } else { bins })
    }

    /// Bins from the smallest to the largest sample.
    fn fitted<T: Element>(&self, input: &[T], device: &Device) -> Result<Bins<T>, Stop> {
        // A wrong number of bins is an error of its own, not one of the range.
        Bins::<u32>::ids(self.bins)?;
        let (lower, upper) = if input.is_empty() {
            (T::ZERO, T::ONE)
        } else {
            (device.reduce(input, op::Min)?, device.reduce(input, op::Max)?)
        };
        let by = if lower == upper { 0.5 } else { 0.0 };
        let ends = (T::from_f64(lower.to_f64() - by), T::from_f64(upper.to_f64() + by));
        match Bins::even(ends.0, ends.1, self.bins) {
            Ok(bins) => Ok(bins.closed()),
            Err(error) => {
                let (lower, upper) = (number(lower), number(upper));
                let text = format!("samples from {lower} to {upper} give no range: give one with --range ({error})");
                Err(Stop::usage(text))
            }
        }
    }

    fn counted<T: Element>(
        &self,
        input: &[T],
        bins: &Bins<T>,
        channels: Option<usize>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        if let Some(channels) = channels {
            return self.of_channels(input, bins, channels, device, out);
        }
        if let Some(path) = &self.weights {
            let array = read(path)?;
            let element = element_of(path, &array, "histogram")?;
            // The widest type of each kind has all values of the others.
            let failed = of_file(path);
            return if element.is_float() {
                self.weighed(input, &array.exactly::<f64>().map_err(failed)?, bins, device, out)
            } else if element.is_signed() || array.is_truth() {
                self.weighed(input, &array.exactly::<i64>().map_err(failed)?, bins, device, out)
            } else {
                self.weighed(input, &array.exactly::<u64>().map_err(failed)?, bins, device, out)
            };
        }
        let found = device.histogram(input, bins)?;
        if self.common.verify {
            same_counts(&found, &Device::cpu().histogram(input, bins)?)?;
        }
        let made = Made::of("<u8", &[found.counts.len()], &found.counts);
        self.finish(&made, counts_in_words(&found.counts), (bins, outside(&found)), out)
    }

    /// Counts each channel in the same bins. The counts outside of them are sums over all channels.
    fn of_channels<T: Element>(
        &self,
        input: &[T],
        bins: &Bins<T>,
        channels: usize,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        // The primitive refuses more than 4 channels. A file can have very many, so at most 5 copies of the
        // bins are made.
        let all = vec![bins.clone(); channels.min(5)];
        let found = device.histogram(input.channels(channels), &all)?;
        if self.common.verify {
            let want = Device::cpu().histogram(input.channels(channels), &all)?;
            found.iter().zip(&want).try_for_each(|(found, want)| same_counts(found, want))?;
        }
        let counts: Vec<u64> = found.iter().flat_map(|found| found.counts.iter().copied()).collect();
        let lines: Vec<_> = found.iter().map(|found| counts_in_words(&found.counts)).collect();
        let sums = found.iter().map(outside).fold([0; 3], |sums, next| [0, 1, 2].map(|i| sums[i] + next[i]));
        let made = Made::of("<u8", &[channels, bins.len()], &counts);
        self.finish(&made, lines.join("\n"), (bins, sums), out)
    }

    fn weighed<T: Element, W: Weight>(
        &self,
        input: &[T],
        weights: &[W],
        bins: &Bins<T>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let found = device.histogram(input.weighted(weights), bins)?;
        let outside = |found: &WeightedHistogram<W::Sum>| {
            let sides = found.outside;
            [sides.below, sides.above, sides.nan]
        };
        if self.common.verify {
            let want = Device::cpu().histogram(input.weighted(weights), bins)?;
            matches(same(&found.sums, &want.sums, "bin "))?;
            matches(same(&outside(&found), &outside(&want), "outside "))?;
        }
        let words: Vec<_> = found.sums.iter().map(|&sum| number(sum)).collect();
        let made = Made::of(numpy_name(<W::Sum as Element>::TYPE), &[found.sums.len()], &found.sums);
        self.finish(&made, words.join(" "), (bins, outside(&found)), out)
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
