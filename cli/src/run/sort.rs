//! `oclprim run sort`

use std::io::Write;

use clap::Args;
use oclprim::{Device, Element, Order as Sorted};
use oclprim_checks::check::{same, same_bytes};

use super::common::{Common, in_words, matches, with_number};
use crate::{
    npy::{Array, Made},
    output::Stop,
};

const SORT_EXAMPLES: &str = "\
Examples:
  oclprim run sort samples.npy -o sorted.npy
  oclprim run sort samples.npy --descending --device opencl --verify
  oclprim run sort samples.npy --indices -o indices.npy
  oclprim run sort samples.npy --indices -o both.npz";

/// Sort all elements of an array, of any shape.
///
/// The order is that of numpy.sort: -0 equals 0, and all NaN are equal and come after infinity. Equal elements
/// keep their order. With -o, the elements are written as an array of one dimension, or with --indices their indices,
/// as int64. An archive has the array `values`, and with --indices also the array `indices`.
#[derive(Args)]
#[command(after_help = SORT_EXAMPLES)]
pub(super) struct Sort {
    #[command(flatten)]
    common: Common,
    /// Sort from the largest to the smallest.
    #[arg(long)]
    descending: bool,
    /// Write the indices of the elements instead of the elements.
    #[arg(long)]
    indices: bool,
}

impl Sort {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "sort")?;
        let device = self.common.device.open_for_files()?;
        with_number!(element, T => self.sort::<T>(&array, array.elements(), &device, out))
    }

    fn sort<T: Element>(&self, array: &Array, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let (order, shape) = (order(self.descending), [input.len()]);
        if self.indices {
            let indices = device.argsort::<_, u64, _>(input, order.clone())?.into_vec()?;
            if self.common.verify {
                matches(same(&indices, &Device::cpu().argsort::<_, u64, _>(input, order)?.into_vec()?, "index "))?;
            }
            let made = Made::of("<i8", &shape, &indices);
            if self.common.to_archive() {
                let sorted = device.gather(input, &indices)?.into_vec()?;
                if self.common.verify {
                    matches(same_bytes(&sorted, &Device::cpu().gather(input, &indices)?.into_vec()?, "element "))?;
                }
                let values = array.like(&shape, &sorted);
                return self.common.finish_archive(&[("values", &values), ("indices", &made)]);
            }
            return self.common.finish(&made, in_words(&indices, &shape, "<i8", device), out);
        }
        let sorted = device.sort(input, order.clone())?.into_vec()?;
        if self.common.verify {
            matches(same_bytes(&sorted, &Device::cpu().sort(input, order)?.into_vec()?, "element "))?;
        }
        let made = array.like(&shape, &sorted);
        if self.common.to_archive() {
            return self.common.finish_archive(&[("values", &made)]);
        }
        self.common.finish(&made, in_words(&sorted, &shape, &array.type_name(), device), out)
    }
}

pub(super) fn order(descending: bool) -> Sorted {
    if descending { Sorted::descending() } else { Sorted::ascending() }
}
