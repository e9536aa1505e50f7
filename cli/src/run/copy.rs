//! `oclprim run copy`, `reverse`, `gather` and `scatter`

use std::{io::Write, path::PathBuf};

use bytemuck::Pod;
use clap::Args;
use oclprim::Device;
use oclprim_checks::check::same_bytes;

use super::{Common, matches, places, with_size};
use crate::{npy::Array, output::Stop};

const COPY_EXAMPLES: &str = "\
Examples:
  oclprim run copy samples.npy -o copy.npy
  oclprim run copy samples.npy --device 1 --verify";

/// Copy an array to the device, there, and back; elements of any size.
#[derive(Args)]
#[command(after_help = COPY_EXAMPLES)]
pub(super) struct Copy {
    #[command(flatten)]
    common: Common,
}

impl Copy {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let device = self.common.device.open()?;
        let input = array.elements::<u8>();
        let from = device.upload(&input)?;
        let mut to = device.zeroed::<u8>(input.len())?;
        device.copy(&from, &mut to)?;
        let copied = to.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&copied, &input, "byte "))?;
        }
        let shape = array.lengths();
        let text = format!("{shape:?} {} on {}; -o writes it to a file", array.type_name(), device.info());
        self.common.finish(&array.like(&shape, &copied), text, out)
    }
}

const REVERSE_EXAMPLES: &str = "\
Examples:
  oclprim run reverse samples.npy -o reversed.npy
  oclprim run reverse matrix.npy --device opencl --verify";

/// Reverse the order of all elements, along each axis, as numpy.flip does; elements of 1 to 16 bytes.
#[derive(Args)]
#[command(after_help = REVERSE_EXAMPLES)]
pub(super) struct Reverse {
    #[command(flatten)]
    common: Common,
}

impl Reverse {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = Array::read(&self.common.input)?;
        let device = self.common.device.open()?;
        let reversed = with_size!(array.size, T => self.reverse::<T>(&array, &device)?, {
            let (ty, size) = (array.type_name(), array.size);
            return Err(Stop::usage(format!("{path}: reverse takes elements of 1 to 16 bytes, {ty} has {size}")));
        });
        let shape = array.lengths();
        let text = format!("{shape:?} {} on {}; -o writes it to a file", array.type_name(), device.info());
        self.common.finish(&reversed, text, out)
    }

    fn reverse<T: Pod + std::fmt::Debug>(&self, array: &Array, device: &Device) -> Result<Array, Stop> {
        let input = array.elements::<T>();
        let reversed = device.reverse(&input)?.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&reversed, &Device::cpu().reverse(&input)?.to_vec()?, "element "))?;
        }
        Ok(array.like(&array.lengths(), &reversed))
    }
}

const GATHER_EXAMPLES: &str = "\
Examples:
  oclprim run gather samples.npy --indices order.npy -o picked.npy
  oclprim run gather colours.npy --indices labels.npy --device opencl --verify";

/// Pick elements by their places, as numpy.take does; elements of 1 to 16 bytes.
///
/// Places count from 0 through all elements, whatever the array's shape. The result has the shape of the places.
#[derive(Args)]
#[command(after_help = GATHER_EXAMPLES)]
pub(super) struct Gather {
    #[command(flatten)]
    common: Common,
    /// The places: integers of 4 or 8 bytes.
    #[arg(long, value_name = "INDICES.npy")]
    indices: PathBuf,
}

impl Gather {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = Array::read(&self.common.input)?;
        let (places, indices) = places(&self.indices)?;
        let (device, shape) = (self.common.device.open()?, places.lengths());
        let picked = with_size!(array.size, T => self.gather::<T>(&array, &indices, &shape, &device)?, {
            let (ty, size) = (array.type_name(), array.size);
            return Err(Stop::usage(format!("{path}: gather takes elements of 1 to 16 bytes, {ty} has {size}")));
        });
        let text = format!("{shape:?} {} on {}; -o writes it to a file", array.type_name(), device.info());
        self.common.finish(&picked, text, out)
    }

    fn gather<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        indices: &[u64],
        shape: &[usize],
        device: &Device,
    ) -> Result<Array, Stop> {
        let input = array.elements::<T>();
        let picked = device.gather(&input, indices)?.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&picked, &Device::cpu().gather(&input, indices)?.to_vec()?, "element "))?;
        }
        Ok(array.like(shape, &picked))
    }
}

const SCATTER_EXAMPLES: &str = "\
Examples:
  oclprim run scatter picked.npy --indices order.npy --len 5 -o samples.npy
  oclprim run scatter picked.npy --indices targets.npy --len 1000 --device opencl --verify";

/// Put elements to places among zeros; elements of 1 to 16 bytes.
///
/// There is a place for each element, counted from 0; the result has one dimension. Of elements for one place the CPU takes the
/// last, a device any, or parts of several if they have not 1, 2, 4, 8 or 16 bytes: --verify then finds a difference.
#[derive(Args)]
#[command(after_help = SCATTER_EXAMPLES)]
pub(super) struct Scatter {
    #[command(flatten)]
    common: Common,
    /// The places: integers of 4 or 8 bytes.
    #[arg(long, value_name = "INDICES.npy")]
    indices: PathBuf,
    /// How many places there are; as many as elements, unless given.
    #[arg(long, value_name = "N", value_parser = crate::options::size)]
    len: Option<usize>,
}

impl Scatter {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = Array::read(&self.common.input)?;
        let (_, indices) = places(&self.indices)?;
        let device = self.common.device.open()?;
        let put = with_size!(array.size, T => self.scatter::<T>(&array, &indices, &device)?, {
            let (ty, size) = (array.type_name(), array.size);
            return Err(Stop::usage(format!("{path}: scatter takes elements of 1 to 16 bytes, {ty} has {size}")));
        });
        let text = format!("{:?} {} on {}; -o writes it to a file", put.lengths(), array.type_name(), device.info());
        self.common.finish(&put, text, out)
    }

    fn scatter<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        indices: &[u64],
        device: &Device,
    ) -> Result<Array, Stop> {
        let input = array.elements::<T>();
        let len = self.len.unwrap_or(input.len());
        let put = device.scatter(&input, indices, len)?.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&put, &Device::cpu().scatter(&input, indices, len)?.to_vec()?, "element "))?;
        }
        Ok(array.like(&[len], &put))
    }
}
