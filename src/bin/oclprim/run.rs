//! `oclprim run`

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use oclprim::{
    Determinism, Device, Element, ElementType,
    check::{Failure, close, same, sum_bound},
    op, with_element, with_integer,
};

use crate::{bench::failure_text, npy::Array, options::DeviceChoice, output::Stop};

const EXAMPLES: &str = "\
Examples:
  oclprim run reduce samples.npy --op sum
  oclprim run reduce samples.npy --op arg-max --device gpu --verify";

/// Run a primitive on a .npy file.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    #[command(subcommand)]
    primitive: Primitive,
}

#[derive(Subcommand)]
enum Primitive {
    Reduce(Reduce),
}

impl Run {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        match self.primitive {
            Primitive::Reduce(reduce) => reduce.run(out),
        }
    }
}

/// What every primitive takes.
#[derive(Args)]
struct Common {
    /// The array, as numpy.save writes it.
    #[arg(value_name = "IN.npy")]
    input: PathBuf,
    /// Write the result to this .npy file instead of printing it.
    #[arg(short, long, value_name = "OUT.npy")]
    output: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Compute the result on the CPU as well, and compare; the exit code is 1 if they differ.
    #[arg(long)]
    verify: bool,
}

impl Common {
    fn finish(&self, result: &Array, text: String, out: &mut dyn Write) -> Result<(), Stop> {
        match &self.output {
            Some(path) => result.write(path),
            None => Ok(writeln!(out, "{text}")?),
        }
    }

    /// The element type of `array`, which has to be one that the crate computes with.
    fn element(&self, array: &Array, what: &str) -> Result<ElementType, Stop> {
        array.element().ok_or_else(|| {
            let (path, ty) = (self.input.display(), array.type_name());
            Stop::usage(format!("{path}: {what} takes integers and floats of up to 8 bytes, not {ty}"))
        })
    }
}

fn matches(verdict: Result<(), Failure>) -> Result<(), Stop> {
    verdict.map_err(|failure| Stop::mismatch(format!("the CPU's answer differs: {}", failure_text(failure))))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Op {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
    Xor,
    ArgMin,
    ArgMax,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    Fast,
    Fixed,
}

/// Combine all elements of an array into one.
///
/// Sums and products have the type of the array; integers wrap. With -o, arg-min and arg-max write the index as an
/// int64, the others a 0-dimensional array.
#[derive(Args)]
struct Reduce {
    #[command(flatten)]
    common: Common,
    /// What combines two elements.
    #[arg(long, value_enum, default_value_t = Op::Sum)]
    op: Op,
    /// The order in which floats are added or multiplied: `fixed` has the same result on every device.
    #[arg(long, value_enum, default_value_t = Order::Fixed, value_name = "ORDER")]
    determinism: Order,
}

impl Reduce {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "reduce")?;
        let device = self.common.device.open()?;
        with_element!(element, T => self.reduce::<T>(&array, &array.elements(), &device, out))
    }

    fn reduce<T: Element>(&self, array: &Array, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let value = match self.op {
            Op::ArgMin | Op::ArgMax => return self.arg_reduce(input, device, out),
            Op::Sum => self.combine(op::Sum, input, device)?,
            Op::Product => self.combine(op::Product, input, device)?,
            Op::Min => self.combine(op::Min, input, device)?,
            Op::Max => self.combine(op::Max, input, device)?,
            Op::And | Op::Or | Op::Xor => self.combine_bits(array, input, device)?,
        };
        self.common.finish(&array.like(&[], &[value]), value.to_string(), out)
    }

    fn combine<T: Element, O: op::Op<T>>(&self, op: O, input: &[T], device: &Device) -> Result<T, Stop> {
        let determinism = match self.determinism {
            Order::Fast => Determinism::Fast,
            Order::Fixed => Determinism::Fixed,
        };
        let value = device.reduce_with(input, op, determinism)?;
        if self.common.verify {
            let want = Device::cpu().reduce(input, op)?;
            let name = O::KIND.name();
            let loose = self.determinism == Order::Fast && T::TYPE.is_float();
            matches(match O::KIND {
                op::OpKind::Sum if loose => close(value, want.to_f64(), 2.0 * sum_bound(input), name),
                op::OpKind::Product if loose => {
                    let text = "products in any order cannot be verified: use --determinism fixed";
                    return Err(Stop::usage(text));
                }
                _ => same(&[value], &[want], name),
            })?;
        }
        Ok(value)
    }

    /// `T` is the type of `array`; bitwise operators are for integers only.
    fn combine_bits<T: Element>(&self, array: &Array, input: &[T], device: &Device) -> Result<T, Stop> {
        with_integer!(T::TYPE, I => {
            let input: &[I] = bytemuck::cast_slice(input);
            let value = match self.op {
                Op::And => self.combine(op::And, input, device)?,
                Op::Or => self.combine(op::Or, input, device)?,
                _ => self.combine(op::Xor, input, device)?,
            };
            Ok(bytemuck::cast(value))
        }, {
            let (path, ty) = (self.common.input.display(), array.type_name());
            Err(Stop::usage(format!("{path}: bitwise operators take integers, not {ty}")))
        })
    }

    fn arg_reduce<T: Element>(&self, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let run = |device: &Device| match self.op {
            Op::ArgMin => device.arg_min(input),
            _ => device.arg_max(input),
        };
        let found = run(device)?;
        if self.common.verify {
            matches(same(&[found.index as u64], &[run(&Device::cpu())?.index as u64], "index"))?;
        }
        let text = format!("{} at index {}", found.value, found.index);
        self.common.finish(&Array::of("<i8", &[], &[found.index as i64]), text, out)
    }
}
