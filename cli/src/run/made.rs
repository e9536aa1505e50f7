//! `oclprim run random` and `iota`

use std::{io::Write, path::PathBuf};

use clap::Args;
use oclprim::{Device, Element, ElementType, Philox};
use oclprim_checks::check::same_bytes;

use super::common::{in_words, matches, numpy_name, parse, print, with_number};
use crate::{
    npy::Made,
    options::DeviceChoice,
    output::{Stop, save_array},
};

/// The arguments of primitives that read no file.
#[derive(Args)]
struct Numbers {
    /// The number of elements.
    #[arg(value_name = "N", value_parser = crate::options::size, allow_negative_numbers = true)]
    n: usize,
    /// The type of the numbers: i8 to i64, u8 to u64, f16, f32 or f64.
    #[arg(long = "type", value_name = "TYPE", default_value = "f64")]
    element: ElementType,
    /// Write the result to this .npy file, or to an archive OUT.npz, instead of printing it; `-` writes to standard output.
    #[arg(short, long, value_name = "OUT.npy")]
    output: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Compute the numbers on the CPU as well, and compare; the exit code is 1 if they differ.
    #[arg(long)]
    verify: bool,
}

impl Numbers {
    /// The type of the numbers.
    fn element(&self) -> Result<ElementType, Stop> {
        if self.element == ElementType::Bf16 {
            return Err(Stop::usage("--type: .npy has no bf16"));
        }
        Ok(self.element)
    }

    fn finish<T: Element>(
        &self,
        make: impl Fn(&Device) -> Result<Vec<T>, Stop>,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let device = self.device.open()?;
        let values = make(&device)?;
        if self.verify {
            matches(same_bytes(&values, &make(&Device::cpu())?, "element "))?;
        }
        let (shape, name) = ([values.len()], numpy_name(T::TYPE));
        match &self.output {
            Some(path) => save_array(path, &Made::of(name, &shape, &values), out),
            None => print(&in_words(&values, &shape, name, &device), out),
        }
    }
}

const RANDOM_EXAMPLES: &str = "\
Examples:
  oclprim run random 1000000 --type f32 --seed 7 -o uniform.npy
  oclprim run random 100 --type u8 --range 1 6
  oclprim run random 2^20 --type u32 --seed 7 --stream 3 --skip 4096 --device opencl --verify";

/// Generate random numbers with Philox4x32-10.
///
/// Integers take all values of their type, or those from LO to HI, both included. Floats are in [0, 1), or from LO up
/// to, but not including, HI. The numbers are the same on every device. Exception: floats from LO to HI can
/// differ on devices that flush subnormals.
#[derive(Args)]
#[command(after_help = RANDOM_EXAMPLES)]
pub(super) struct Random {
    #[command(flatten)]
    made: Numbers,
    /// The key of the generator.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// The number of the stream.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    stream: u64,
    /// Skip this many numbers of the stream.
    #[arg(long, value_name = "COUNT", default_value_t = 0, allow_negative_numbers = true)]
    skip: u64,
    /// The range of the numbers.
    #[arg(long, num_args = 2, value_names = ["LO", "HI"], allow_hyphen_values = true)]
    range: Option<Vec<String>>,
}

impl Random {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        with_number!(self.made.element()?, T => self.made.finish(|device| self.make::<T>(device), out))
    }

    fn make<T: Element>(&self, device: &Device) -> Result<Vec<T>, Stop> {
        let numbers = Philox::new(self.seed).stream(self.stream).skip(self.skip);
        let Some(range) = &self.range else {
            return Ok(device.random(self.made.n, numbers)?.into_vec()?);
        };
        let (low, high) = (parse::<T>("--range", &range[0])?, parse::<T>("--range", &range[1])?);
        let values = if T::TYPE.is_float() {
            device.random(self.made.n, numbers.within(low..high))?
        } else {
            device.random(self.made.n, numbers.within(low..=high))?
        };
        Ok(values.into_vec()?)
    }
}

const IOTA_EXAMPLES: &str = "\
Examples:
  oclprim run iota 100 --type u32 -o indices.npy
  oclprim run iota 5 --start 1 --step -0.25 --device opencl --verify";

/// Generate out[i] = start + i * step. Integers wrap.
#[derive(Args)]
#[command(after_help = IOTA_EXAMPLES)]
pub(super) struct Iota {
    #[command(flatten)]
    made: Numbers,
    /// The first number.
    #[arg(long, value_name = "VALUE", default_value = "0", allow_hyphen_values = true)]
    start: String,
    /// The difference between each number and the one before it.
    #[arg(long, value_name = "VALUE", default_value = "1", allow_hyphen_values = true)]
    step: String,
}

impl Iota {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        with_number!(self.made.element()?, T => {
            let (start, step) = (parse::<T>("--start", &self.start)?, parse::<T>("--step", &self.step)?);
            self.made.finish(|device| Ok(device.iota(self.made.n, start, step)?.into_vec()?), out)
        })
    }
}
