//! `oclprim run topk` and `quantile`

use std::io::Write;

use clap::{Args, ValueEnum};
use oclprim::{Device, Element, Interpolation, Source, Top};
use oclprim_checks::check::{same, same_bytes};

use super::common::{Common, in_words, matches, with_number};
use crate::{
    npy::{Array, Made},
    output::Stop,
};

const TOPK_EXAMPLES: &str = "\
Examples:
  oclprim run topk scores.npy --k 100 --sorted
  oclprim run topk distances.npy --k 10 --smallest --indices -o nearest.npy --verify
  oclprim run topk scores.npy --k 100 --sorted -o best.npz
  oclprim run topk matrix.npy --k 3 --rows --device opencl";

/// Take the k largest elements of an array of any shape, or of each row.
///
/// All NaN are equal, and larger than infinity; -0 equals 0. Among equal elements the first ones are taken. Without
/// --sorted the result is in the order of the file. With -o, the elements are written, or with --indices their indices,
/// as int64. An archive has both, as the arrays values and indices. With --rows the result has k elements for each row.
#[derive(Args)]
#[command(after_help = TOPK_EXAMPLES)]
pub(super) struct TopK {
    #[command(flatten)]
    common: Common,
    /// The number of elements to take.
    #[arg(short, long, value_parser = crate::options::size, allow_negative_numbers = true)]
    k: usize,
    /// Take the largest; the default.
    #[arg(long, conflicts_with = "smallest")]
    largest: bool,
    /// Take the smallest.
    #[arg(long)]
    smallest: bool,
    /// Sort the result: the largest first, or with --smallest the smallest. Without this it is in the order of the file.
    #[arg(long)]
    sorted: bool,
    /// Take k elements of each row along the last axis.
    #[arg(long)]
    rows: bool,
    /// Write the indices of the elements instead of the elements; with --rows the indices in the row.
    #[arg(long)]
    indices: bool,
}

impl TopK {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "topk")?;
        let axis = if self.rows { Some(self.common.axis(&array, -1)?) } else { None };
        let top = if self.smallest { Top::smallest(self.k) } else { Top::largest(self.k) };
        let top = if self.sorted { top.sorted() } else { top };
        let (mut shape, top) = match axis {
            Some(axis) => (array.shape.clone(), top.in_rows(array.shape[axis])),
            None => (vec![0], top),
        };
        if let Some(last) = shape.last_mut() {
            *last = self.k;
        }
        let device = self.common.device.open_for_files()?;
        if self.rows && array.shape.last() == Some(&0) && self.k == 0 {
            // The primitive computes the number of rows from the number of elements. That is 0 here, so it cannot.
            let (values, indices) = (array.like::<u8>(&shape, &[]), Made::of::<u64>("<i8", &shape, &[]));
            if self.common.to_archive() {
                return self.common.finish_archive(&[("values", &values), ("indices", &indices)]);
            }
            return self.common.finish(if self.indices { &indices } else { &values }, String::new(), out);
        }
        with_number!(element, T => self.take::<T>(&array, array.elements(), (top, &shape), &device, out))
    }

    fn take<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        (top, shape): (Top, &[usize]),
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        if self.indices || self.common.to_archive() {
            let take = |device: &Device| -> oclprim::Result<_> {
                let (taken, indices) = device.top_k(input.indexed::<u64>(), top)?;
                Ok((taken.into_vec()?, indices.into_vec()?))
            };
            let (taken, indices) = take(device)?;
            if self.common.verify {
                let want = take(&Device::cpu())?;
                matches(same_bytes(&taken, &want.0, "element "))?;
                matches(same(&indices, &want.1, "index "))?;
            }
            let made = Made::of("<i8", shape, &indices);
            if self.common.to_archive() {
                return self.common.finish_archive(&[("values", &array.like(shape, &taken)), ("indices", &made)]);
            }
            return self.common.finish(&made, in_words(&indices, shape, "<i8", device), out);
        }
        let taken = device.top_k(input, top)?.into_vec()?;
        if self.common.verify {
            matches(same_bytes(&taken, &Device::cpu().top_k(input, top)?.into_vec()?, "element "))?;
        }
        self.common.finish(&array.like(shape, &taken), in_words(&taken, shape, &array.type_name(), device), out)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Linear,
    Lower,
    Higher,
    Nearest,
    Midpoint,
}

const QUANTILE_EXAMPLES: &str = "\
Examples:
  oclprim run quantile samples.npy --q 0.5
  oclprim run quantile samples.npy --q 0.05,0.95 --method nearest --device opencl --verify";

/// Compute quantiles of all elements of an array, as numpy.quantile does.
///
/// Quantiles are computed as float64, and written as float64 with -o. If an element is NaN, all quantiles are NaN.
#[derive(Args)]
#[command(after_help = QUANTILE_EXAMPLES)]
pub(super) struct Quantile {
    #[command(flatten)]
    common: Common,
    /// The quantiles to compute: 0 is the smallest element, 0.5 the median, 1 the largest.
    #[arg(long, value_name = "Q,...", value_delimiter = ',', required = true, allow_hyphen_values = true)]
    q: Vec<f64>,
    /// The value of a quantile between two elements.
    #[arg(long, value_enum, default_value_t = Method::Linear)]
    method: Method,
}

impl Quantile {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "quantile")?;
        let device = self.common.device.open_for_files()?;
        let values = with_number!(element, T => self.of::<T>(array.elements(), &device)?);
        let shape = [values.len()];
        self.common.finish(&Made::of("<f8", &shape, &values), in_words(&values, &shape, "<f8", &device), out)
    }

    fn of<T: Element>(&self, input: &[T], device: &Device) -> Result<Vec<f64>, Stop> {
        let how = match self.method {
            Method::Linear => Interpolation::Linear,
            Method::Lower => Interpolation::Lower,
            Method::Higher => Interpolation::Higher,
            Method::Nearest => Interpolation::Nearest,
            Method::Midpoint => Interpolation::Midpoint,
        };
        let values = device.quantile(input, &self.q, how)?;
        if self.common.verify {
            matches(same(&values, &Device::cpu().quantile(input, &self.q, how)?, "quantile "))?;
        }
        Ok(values)
    }
}
