//! `oclprim run transpose` and `permute`

use std::io::Write;

use bytemuck::Pod;
use clap::Args;
use oclprim::{Device, Element, ElementType, Matrices, Source, internals::source::Converted, source::constant};
use oclprim_checks::check::{same, same_bytes};

use super::common::{Common, matches, numpy_name, parse, with_number, with_size};
use crate::{
    npy::{Array, Made, axes::permute},
    output::Stop,
};

const TRANSPOSE_EXAMPLES: &str = "\
Examples:
  oclprim run transpose matrix.npy -o transposed.npy
  oclprim run transpose matrix.npy --device opencl --verify
  oclprim run transpose volume.npy -o matrices.npy
  oclprim run transpose matrix.npy --cast f32 --scale 0.5 -o halves.npy";

/// Transpose a matrix; elements of 1 to 16 bytes.
///
/// An array of 3 dimensions is a batch of matrices along the first one; each matrix is transposed. --cast converts the elements in
/// the same pass. --scale multiplies each element after the conversion; the factor is a value of the type of the result. Floats
/// that become integers saturate, and NaN becomes 0; integers wrap.
#[derive(Args)]
#[command(after_help = TRANSPOSE_EXAMPLES)]
pub(super) struct Transpose {
    #[command(flatten)]
    common: Common,
    /// Write elements of this type: i8 to i64, u8 to u64, f16, f32 or f64.
    #[arg(long, value_name = "TYPE")]
    cast: Option<ElementType>,
    /// Multiply each element by this factor.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    scale: Option<String>,
}

impl Transpose {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = self.common.read()?;
        let mut shape = array.shape.clone();
        let (count, rows, cols) = match shape[..] {
            [rows, cols] => (1, rows, cols),
            [count, rows, cols] => (count, rows, cols),
            _ => return Err(Stop::usage(format!("{path}: transpose takes 2 or 3 dimensions, not {}", shape.len()))),
        };
        let last = shape.len() - 2;
        shape[last..].reverse();
        let device = self.common.device.open_for_files()?;
        if self.cast.is_some() || self.scale.is_some() {
            if shape.len() > 2 {
                return Err(Stop::usage(format!("{path}: --cast and --scale take 2 dimensions, not 3")));
            }
            let from = self.common.element(&array, "transpose with --cast or --scale")?;
            let to = self.cast.unwrap_or(from);
            if to == ElementType::Bf16 {
                return Err(Stop::usage("--cast: .npy has no bf16"));
            }
            with_number!(to, U => {
                let values = self.mapped::<U>(array.elements(), from, (rows, cols), &device)?;
                self.finish(&Made::of(numpy_name(to), &[cols, rows], &values), &device, out)
            })
        } else {
            let matrices = Matrices::new(rows, cols).count(count);
            with_size!(array.size(), T => self.transpose::<T>(&array, (&matrices, &shape), &device, out), {
                let (ty, size) = (array.type_name(), array.size());
                Err(Stop::usage(format!("{path}: transpose takes elements of 1 to 16 bytes, {ty} has {size}")))
            })
        }
    }

    fn finish(&self, transposed: &Made<'_>, device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let lengths: Vec<_> = transposed.shape.iter().map(usize::to_string).collect();
        let (lengths, ty, device) = (lengths.join(" x "), transposed.type_name(), device.info());
        self.common.finish(transposed, format!("{lengths} {ty} on {device}; -o writes it to a file"), out)
    }

    fn transpose<T: Pod + Send + Sync + std::fmt::Debug>(
        &self,
        array: &Array,
        (matrices, shape): (&Matrices, &[usize]),
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let input = array.elements::<T>();
        let transposed = device.transpose(input, matrices)?.into_vec()?;
        if self.common.verify {
            let want = Device::cpu().transpose(input, matrices)?.into_vec()?;
            matches(same_bytes(&transposed, &want, "element "))?;
        }
        self.finish(&array.like(shape, &transposed), device, out)
    }

    /// The elements of type `from` in `bytes`, cast to `U`, multiplied and transposed.
    fn mapped<U: Element>(
        &self,
        bytes: &[u8],
        from: ElementType,
        (rows, cols): (usize, usize),
        device: &Device,
    ) -> Result<Vec<U>, Stop> {
        let factor = self.scale.as_deref().map_or(Ok(U::Acc::ONE), |text| parse("--scale", text))?;
        let run = |device: &Device| {
            let scaled = Converted::<U::Acc>::new(bytes, from).times(constant(factor)).cast::<U>();
            device.transpose(scaled, (rows, cols))?.into_vec()
        };
        let transposed = run(device)?;
        if self.common.verify {
            matches(same(&transposed, &run(&Device::cpu())?, "element "))?;
        }
        Ok(transposed)
    }
}

const PERMUTE_EXAMPLES: &str = "\
Examples:
  oclprim run permute volume.npy --axes 2,0,1 -o permuted.npy
  oclprim run permute matrix.npy --axes 1,0 --device opencl --verify";

/// Permute the axes of an array; elements of 1 to 16 bytes.
#[derive(Args)]
#[command(after_help = PERMUTE_EXAMPLES)]
pub(super) struct Permute {
    #[command(flatten)]
    common: Common,
    /// The axes in their new order, as in numpy.transpose: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K,...", value_delimiter = ',', required = true, allow_hyphen_values = true)]
    axes: Vec<i64>,
}

impl Permute {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = self.common.read()?;
        let axes: Vec<usize> =
            self.axes.iter().map(|&number| self.common.axis(&array, number)).collect::<Result<_, _>>()?;
        let device = self.common.device.open_for_files()?;
        if axes.len() != array.shape.len() || (0..axes.len()).any(|axis| !axes.contains(&axis)) {
            let text = format!("{path}: axes {axes:?} do not name each of {} axes once", array.shape.len());
            return Err(Stop::usage(text));
        }
        with_size!(array.size(), T => self.permute::<T>(&array, &axes, &device, out), {
            let (ty, size) = (array.type_name(), array.size());
            Err(Stop::usage(format!("{path}: permute takes elements of 1 to 16 bytes, {ty} has {size}")))
        })
    }

    fn permute<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        axes: &[usize],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let run = |device: &Device| -> oclprim::Result<_> {
            let mut permuted = device.zeroed::<T>(array.len())?;
            permute(device, array.elements::<T>(), &array.shape, axes, &mut permuted)?;
            permuted.into_vec()
        };
        let permuted = run(device)?;
        if self.common.verify {
            matches(same_bytes(&permuted, &run(&Device::cpu())?, "element "))?;
        }
        let shape: Vec<_> = axes.iter().map(|&axis| array.shape[axis]).collect();
        self.common.finish_whole(&array.like(&shape, &permuted), device, out)
    }
}
