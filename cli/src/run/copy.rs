//! `oclprim run copy`, `reverse`, `gather` and `scatter`

use std::{borrow::Cow, io::Write, path::PathBuf};

use bytemuck::Pod;
use clap::Args;
use oclprim::{Device, Source};
use oclprim_checks::check::same_bytes;

use super::common::{Common, indices, matches, with_size};
use crate::{npy::Array, output::Stop};

const COPY_EXAMPLES: &str = "\
Examples:
  oclprim run copy samples.npy -o copy.npy
  oclprim run copy samples.npy --device 1 --verify";

/// Copy an array to the device, to other memory of the device, and back; elements of any size.
///
/// On the CPU, the bytes of the input are written without a copy in memory, so --verify has no effect.
#[derive(Args)]
#[command(after_help = COPY_EXAMPLES)]
pub(super) struct Copy {
    #[command(flatten)]
    common: Common,
}

impl Copy {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let device = self.common.device.open_for_files()?;
        let input = array.elements::<u8>();
        let copied: Cow<'_, [u8]> = if device.is_cpu() {
            input.into()
        } else {
            let from = device.upload(input)?;
            let mut to = device.uninit::<u8>(input.len())?;
            device.copy(&from, &mut to)?;
            drop(from);
            to.into_vec()?.into()
        };
        if self.common.verify {
            matches(same_bytes(&copied, input, "byte "))?;
        }
        self.common.finish_whole(&array.like(&array.shape, &copied), &device, out)
    }
}

const REVERSE_EXAMPLES: &str = "\
Examples:
  oclprim run reverse samples.npy -o reversed.npy
  oclprim run reverse matrix.npy --device opencl --verify";

/// Reverse an array along all axes, as numpy.flip does; elements of 1 to 16 bytes.
#[derive(Args)]
#[command(after_help = REVERSE_EXAMPLES)]
pub(super) struct Reverse {
    #[command(flatten)]
    common: Common,
}

impl Reverse {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = self.common.read()?;
        let device = self.common.device.open_for_files()?;
        with_size!(array.size(), T => self.reverse::<T>(&array, &device, out), {
            let (ty, size) = (array.type_name(), array.size());
            Err(Stop::usage(format!("{path}: reverse takes elements of 1 to 16 bytes, {ty} has {size}")))
        })
    }

    fn reverse<T: Pod + Send + Sync + std::fmt::Debug>(
        &self,
        array: &Array,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let input = array.elements::<T>();
        let run = |device: &Device| -> oclprim::Result<_> {
            let mut reversed = device.zeroed::<T>(input.len())?;
            device.copy(input.reversed(), &mut reversed)?;
            reversed.into_vec()
        };
        let reversed = run(device)?;
        if self.common.verify {
            matches(same_bytes(&reversed, &run(&Device::cpu())?, "element "))?;
        }
        self.common.finish_whole(&array.like(&array.shape, &reversed), device, out)
    }
}

const GATHER_EXAMPLES: &str = "\
Examples:
  oclprim run gather samples.npy --indices order.npy -o picked.npy
  oclprim run gather colours.npy --indices labels.npy --device opencl --verify";

/// Gather elements by their indices, as numpy.take does: out[i] = x[indices[i]]; elements of 1 to 16 bytes.
///
/// The indices refer to the flattened array. The result has the shape of the indices.
#[derive(Args)]
#[command(after_help = GATHER_EXAMPLES)]
pub(super) struct Gather {
    #[command(flatten)]
    common: Common,
    /// The indices: integers from 0 on.
    #[arg(long, value_name = "INDICES.npy")]
    indices: PathBuf,
}

impl Gather {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = self.common.read()?;
        let (shaped, indices) = indices(&self.indices)?;
        let device = self.common.device.open_for_files()?;
        with_size!(array.size(), T => self.gather::<T>(&array, (&indices, &shaped.shape), &device, out), {
            let (ty, size) = (array.type_name(), array.size());
            Err(Stop::usage(format!("{path}: gather takes elements of 1 to 16 bytes, {ty} has {size}")))
        })
    }

    fn gather<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        (indices, shape): (&[u64], &[usize]),
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let input = array.elements::<T>();
        let picked = device.gather(input, indices)?.into_vec()?;
        if self.common.verify {
            matches(same_bytes(&picked, &Device::cpu().gather(input, indices)?.into_vec()?, "element "))?;
        }
        self.common.finish_whole(&array.like(shape, &picked), device, out)
    }
}

const SCATTER_EXAMPLES: &str = "\
Examples:
  oclprim run scatter picked.npy --indices order.npy --len 5 -o samples.npy
  oclprim run scatter picked.npy --indices targets.npy --len 1000 --device opencl --verify";

/// Scatter elements into an array of zeros: out[indices[i]] = x[i]; elements of 1 to 16 bytes.
///
/// There is an index for each element; the result has one dimension. If several elements have the same index, the CPU
/// writes the last of them. A device writes any of them, so --verify can report a difference. If elements do not have
/// 1, 2, 4, 8 or 16 bytes, a device can mix the bytes of several of them.
#[derive(Args)]
#[command(after_help = SCATTER_EXAMPLES)]
pub(super) struct Scatter {
    #[command(flatten)]
    common: Common,
    /// The indices: integers from 0 on.
    #[arg(long, value_name = "INDICES.npy")]
    indices: PathBuf,
    /// The length of the result; default: the number of elements.
    #[arg(long, value_name = "N", value_parser = crate::options::size, allow_negative_numbers = true)]
    len: Option<usize>,
}

impl Scatter {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = self.common.read()?;
        let (_, indices) = indices(&self.indices)?;
        let device = self.common.device.open_for_files()?;
        with_size!(array.size(), T => self.scatter::<T>(&array, &indices, &device, out), {
            let (ty, size) = (array.type_name(), array.size());
            Err(Stop::usage(format!("{path}: scatter takes elements of 1 to 16 bytes, {ty} has {size}")))
        })
    }

    fn scatter<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        indices: &[u64],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let input = array.elements::<T>();
        let len = self.len.unwrap_or(input.len());
        let put = device.scatter(input, indices, len)?.into_vec()?;
        if self.common.verify {
            matches(same_bytes(&put, &Device::cpu().scatter(input, indices, len)?.into_vec()?, "element "))?;
        }
        self.common.finish_whole(&array.like(&[len], &put), device, out)
    }
}
