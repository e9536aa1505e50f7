//! `oclprim run scan`

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use oclprim::{Buffer, Device, Element, ElementType, Input, Source, f16, internals::source::Converted, op};
use oclprim_checks::check::same;

use super::common::{
    Common, collect, flags, in_words, indices, matches, numpy_name, read, widened, with_bits, with_number, with_wider,
    without_sign,
};
use crate::{
    npy::{Array, Made, axes::around},
    output::{Stop, of_file},
};

const SCAN_EXAMPLES: &str = "\
Examples:
  oclprim run scan samples.npy -o sums.npy
  oclprim run scan samples.npy --op max --device gpu --verify
  oclprim run scan lengths.npy --exclusive --total -o offsets.npy
  oclprim run scan bytes.npy --as u8
  oclprim run scan matrix.npy --axis 0 -o sums.npy
  oclprim run scan samples.npy --segments offsets.npy --verify
  oclprim run scan bytes.npy --flags flags.npy --reverse";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScanOp {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// Scan an array, each line along an axis, or each segment: out[i] = x[0] op ... op x[i].
///
/// Sums and products of integers and booleans have 64 bits, as in NumPy, and wrap; --as selects another type. Other
/// results have the type of the array. Results of floats are the same on every device that keeps subnormals. The result
/// has the shape of the array.
///
/// The scan runs from the first element to the last, or with --reverse from the last to the first. It restarts in each line along
/// an axis, and in each segment. The elements before the first offset and those from the last one on are segments, too.
#[derive(Args)]
#[command(after_help = SCAN_EXAMPLES)]
pub(super) struct ScanOf {
    #[command(flatten)]
    common: Common,
    /// The operator.
    #[arg(long, value_enum, default_value_t = ScanOp::Sum)]
    op: ScanOp,
    /// Leave each element out of its own result; the first result is the identity of the operator.
    #[arg(long)]
    exclusive: bool,
    /// Add the total as one more result: at the end, or with --reverse at the start. The result then has one dimension. The n + 1
    /// results of n lengths are the offsets for `run reduce --segments`.
    #[arg(long, requires = "exclusive", conflicts_with_all = ["axis", "keys", "segments", "flags"])]
    total: bool,
    /// The type of sums and products. Allowed: i64, u64, f32, f64 and the type of the array.
    #[arg(long = "as", value_name = "TYPE")]
    wide: Option<ElementType>,
    /// Scan from the last element to the first.
    #[arg(long)]
    reverse: bool,
    /// Scan each line along this axis: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    axis: Option<i64>,
    /// Restart in each run of equal keys. The keys may have any type, and there is one for each element.
    #[arg(long, value_name = "KEYS.npy", conflicts_with = "axis")]
    keys: Option<PathBuf>,
    /// Restart at each of these ascending offsets.
    #[arg(long, value_name = "OFFSETS.npy", conflicts_with_all = ["axis", "keys"])]
    segments: Option<PathBuf>,
    /// Restart at each element whose flag is not 0. The flags are bytes or booleans, one for each element.
    #[arg(long, value_name = "FLAGS.npy", conflicts_with_all = ["axis", "keys", "segments"])]
    flags: Option<PathBuf>,
}

/// The ranges in which a scan restarts.
enum Lines {
    All,
    /// All elements, with the total as one more result.
    Total,
    /// The second axis of a shape.
    Axis([usize; 3]),
    Segments(Vec<u64>),
}

/// Scans the second axis of a shape.
type Along<'a, U, O> = dyn Fn(&Device, &[usize; 3], op::InScan<O>) -> oclprim::Result<Buffer<U>> + 'a;

impl Lines {
    /// Runs that start at each index for which `head` returns true.
    fn runs(n: usize, head: impl Fn(usize) -> bool) -> Result<Self, Stop> {
        let mut heads = (0..n).filter(|&i| head(i));
        let count = heads.clone().count();
        // The last offset is `n`, which starts no run. Without it, an array without heads would have no offsets, which
        // is an error.
        Ok(Self::Segments(collect((0..count + 1).map(|_| heads.next().unwrap_or(n) as u64))?))
    }

    /// Scans `n` elements; `along` scans them along an axis.
    fn scan<U: Element, O: op::Op<U>>(
        &self,
        device: &Device,
        (input, n): (Converted<'_, U>, usize),
        op: op::InScan<O>,
        along: &Along<'_, U, O>,
    ) -> oclprim::Result<Vec<U>> {
        match self {
            Self::All => device.scan(input, op),
            Self::Total => {
                let mut sums = device.zeroed(n + 1)?;
                device.scan_into(input, op, &mut sums)?;
                Ok(sums)
            }
            Self::Axis(shape) => along(device, shape, op),
            Self::Segments(offsets) => device.scan(input.segments(offsets), op),
        }?
        .into_vec()
    }
}

impl ScanOf {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "scan")?;
        let lines = self.lines(&array)?;
        let device = self.common.device.open_for_files()?;
        if let ScanOp::Sum | ScanOp::Product = self.op {
            let wide = self.wide.unwrap_or_else(|| widened(&array, element));
            return with_wider!(bits (element, wide), T, U => {
                let input = array.elements::<T>();
                let values = match self.op {
                    ScanOp::Sum => self.scan::<T, U, _>(op::Sum, input, &lines, &device)?,
                    _ => self.scan::<T, U, _>(op::Product, input, &lines, &device)?,
                };
                self.finish_bits(&array, wide, bytemuck::cast_slice(&values), &device, out)
            });
        }
        if self.wide.is_some() {
            return Err(Stop::usage("--as is for sums and products"));
        }
        with_number!(element, T => {
            let input = array.elements::<T>();
            let values = match self.op {
                ScanOp::Min => self.scan::<T, T, _>(op::Min, input, &lines, &device)?,
                ScanOp::Max => self.scan::<T, T, _>(op::Max, input, &lines, &device)?,
                _ => self.scan_bits::<T>(&array, input, &lines, &device)?,
            };
            self.finish(&array, &array.type_name(), &values, &device, out)
        })
    }

    /// Finishes with values of the type `ty`.
    fn finish_bits(
        &self,
        array: &Array,
        ty: ElementType,
        values: &[u8],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        with_number!(ty, T => self.finish::<T>(array, numpy_name(ty), bytemuck::cast_slice(values), device, out))
    }

    fn finish<T: Element>(
        &self,
        array: &Array,
        name: &str,
        values: &[T],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let shape = if self.total { vec![values.len()] } else { array.shape.clone() };
        self.common.finish(&Made::of(name, &shape, values), in_words(values, &shape, name, device), out)
    }

    fn lines(&self, array: &Array) -> Result<Lines, Stop> {
        let n = array.len();
        if let Some(number) = self.axis {
            Ok(Lines::Axis(around(&array.shape, self.common.axis(array, number)?)))
        } else if let Some(path) = &self.keys {
            let keys = read(path)?;
            let wrong = of_file(path);
            let element =
                keys.element().ok_or_else(|| wrong(format!("elements of type {} cannot be keys", keys.type_name())))?;
            if keys.len() != n {
                return Err(wrong(format!("{} keys for {n} elements", keys.len())));
            }
            with_number!(element, K => {
                let keys = keys.elements::<K>();
                Lines::runs(n, |i| i > 0 && keys[i - 1] != keys[i])
            })
        } else if let Some(path) = &self.segments {
            Ok(Lines::Segments(indices(path)?.1))
        } else if let Some(path) = &self.flags {
            let flags = flags(path, array)?;
            let flags = flags.elements::<u8>();
            Lines::runs(n, |i| flags[i] != 0)
        } else {
            Ok(if self.total { Lines::Total } else { Lines::All })
        }
    }

    fn scan<T: Element, U: Element + From<T>, O: op::Op<U>>(
        &self,
        op: O,
        input: &[T],
        lines: &Lines,
        device: &Device,
    ) -> Result<Vec<U>, Stop> {
        let along = |device: &Device, shape: &[usize; 3], op: op::InScan<O>| {
            device.scan(Input::from(input).nd(shape)?.cast::<U>().along(1), op)
        };
        let converted = Converted::new(bytemuck::cast_slice(input), T::TYPE);
        self.scan_converted(op, (converted, input.len()), lines, &along, device)
    }

    fn scan_converted<U: Element, O: op::Op<U>>(
        &self,
        op: O,
        input: (Converted<'_, U>, usize),
        lines: &Lines,
        along: &Along<'_, U, O>,
        device: &Device,
    ) -> Result<Vec<U>, Stop> {
        let op = if self.exclusive { op.exclusive() } else { op.inclusive() };
        let op = if self.reverse { op.reversed() } else { op };
        let values = lines.scan(device, input, op, along)?;
        if self.common.verify {
            let want = lines.scan(&Device::cpu(), input, op, along)?;
            matches(same(&values, &want, O::KIND.name()))?;
        }
        Ok(values)
    }

    /// `T` is the type of `array`; bitwise operators need integers.
    fn scan_bits<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        lines: &Lines,
        device: &Device,
    ) -> Result<Vec<T>, Stop> {
        with_bits!(T::TYPE, I => {
            let input: &[I] = bytemuck::cast_slice(input);
            let values = match self.op {
                ScanOp::And => self.scan::<I, I, _>(op::And, input, lines, device)?,
                ScanOp::Or => self.scan::<I, I, _>(op::Or, input, lines, device)?,
                _ => self.scan::<I, I, _>(op::Xor, input, lines, device)?,
            };
            Ok(bytemuck::allocation::cast_vec(values))
        }, {
            let (path, ty) = (self.common.input.display(), array.type_name());
            Err(Stop::usage(format!("{path}: bitwise operators take integers, not {ty}")))
        })
    }
}
