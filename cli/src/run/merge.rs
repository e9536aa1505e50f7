//! `oclprim run merge` and `search`

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use oclprim::{Bound, Device, Element, Order as Sorted, SetOp};
use oclprim_checks::check::{same, same_bytes};

use super::{
    common::{Common, common_type, in_words, matches, second, with_number},
    sort::order,
};
use crate::{
    npy::{Array, Made},
    output::{Stop, of_file},
};

/// Returns an error if the elements are not sorted. The CPU checks this: a device would first build a kernel, and read
/// the array twice.
fn in_order<T: Element>(path: &Path, x: &[T], order: &Sorted) -> Result<(), Stop> {
    match Device::cpu().first_unsorted(x, order)? {
        None => Ok(()),
        Some(at) => {
            let path = path.display();
            Err(Stop::usage(format!("{path} is not sorted: element {at} belongs before element {}", at - 1)))
        }
    }
}

const MERGE_EXAMPLES: &str = "\
Examples:
  oclprim run merge sorted.npy --with more.npy -o all.npy
  oclprim run merge sorted.npy --with more.npy --keep intersection --verify";

/// The elements that are kept.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Keep {
    /// All elements of both arrays.
    All,
    /// If an element occurs m times in the first array and n times in the second: max(m, n) times.
    Union,
    /// If an element occurs m times in the first array and n times in the second: min(m, n) times.
    Intersection,
    /// If an element occurs m times in the first array and n times in the second: max(m - n, 0) times.
    Difference,
    /// If an element occurs m times in the first array and n times in the second: |m - n| times.
    SymmetricDifference,
}

impl Keep {
    fn op(self) -> Option<SetOp> {
        match self {
            Self::All => None,
            Self::Union => Some(SetOp::Union),
            Self::Intersection => Some(SetOp::Intersection),
            Self::Difference => Some(SetOp::Difference),
            Self::SymmetricDifference => Some(SetOp::SymmetricDifference),
        }
    }
}

/// Merge two sorted arrays into one, or keep their union, intersection or difference.
///
/// Equal elements count as often as they occur: for 3 and 2 equal elements the union has 3, the intersection 2, the difference 1.
/// The order is that of `run sort`; the result has one dimension.
#[derive(Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(super) struct Merge {
    #[command(flatten)]
    common: Common,
    /// The other array. Its elements are converted to the type of the first; a value that this type lacks is an error.
    #[arg(long, value_name = "MORE.npy")]
    with: PathBuf,
    /// The elements to keep.
    #[arg(long, value_enum, default_value_t = Keep::All)]
    keep: Keep,
    /// Both arrays are sorted from the largest to the smallest.
    #[arg(long)]
    descending: bool,
}

impl Merge {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "merge")?;
        let device = self.common.device.open_for_files()?;
        with_number!(element, T => self.merge::<T>(&array, array.elements(), &device, out))
    }

    fn merge<T: Element>(&self, array: &Array, a: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let (path, order) = (&self.common.input, order(self.descending));
        let other = second(&self.with)?;
        let b = other.exactly::<T>().map_err(of_file(&self.with))?;
        in_order(path, a, &order)?;
        in_order(&self.with, &b, &order)?;
        let merged = |device: &Device| match self.keep.op() {
            None => device.merge(a, &*b, &order)?.into_vec(),
            Some(op) => device.set_operation(a, &*b, op, &order)?.into_vec(),
        };
        let result = merged(device)?;
        if self.common.verify {
            matches(same_bytes(&result, &merged(&Device::cpu())?, "element "))?;
        }
        let shape = [result.len()];
        self.common.finish(&array.like(&shape, &result), in_words(&result, &shape, &array.type_name(), device), out)
    }
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  oclprim run search sorted.npy --needles samples.npy -o indices.npy
  oclprim run search sorted.npy --needles samples.npy --upper --device opencl --verify";

/// Find where elements belong in a sorted array, as numpy.searchsorted does.
///
/// The result for each needle is the index of the first element that does not come before it. With --upper it is the index of the
/// first element that comes after it. Indices are int64, in the shape of the needles. The order is that of `run sort`.
#[derive(Args)]
#[command(after_help = SEARCH_EXAMPLES)]
pub(super) struct Search {
    #[command(flatten)]
    common: Common,
    /// The needles, in any type. If the type of the array cannot represent every needle, both are compared as f64.
    #[arg(long, value_name = "NEEDLES.npy")]
    needles: PathBuf,
    /// Find the index after equal elements instead of before them.
    #[arg(long)]
    upper: bool,
    /// The array is sorted from the largest to the smallest.
    #[arg(long)]
    descending: bool,
}

impl Search {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "search")?;
        let needles = second(&self.needles)?;
        let device = self.common.device.open_for_files()?;
        let element = common_type((element, &array), (&self.needles, &needles))?;
        with_number!(element, T => self.search::<T>(&array, &needles, &device, out))
    }

    fn search<T: Element>(
        &self,
        array: &Array,
        needles: &Array,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let (path, order, shape) = (&self.common.input, order(self.descending), &needles.shape);
        let range = array.exactly::<T>().map_err(of_file(path))?;
        let needles = needles.exactly::<T>().map_err(of_file(&self.needles))?;
        in_order(path, &range, &order)?;
        let found = |device: &Device| match self.upper {
            false => device.search::<T, u64, _>(&*range, &*needles, Bound::Lower, &order)?.into_vec(),
            true => device.search::<T, u64, _>(&*range, &*needles, Bound::Upper, &order)?.into_vec(),
        };
        let indices = found(device)?;
        if self.common.verify {
            matches(same(&indices, &found(&Device::cpu())?, "index "))?;
        }
        let text = in_words(&indices, shape, "<i8", device);
        self.common.finish(&Made::of("<i8", shape, &indices), text, out)
    }
}
