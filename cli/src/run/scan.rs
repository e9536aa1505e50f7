//! `oclprim run scan`

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use oclprim::{Device, Element, Input, Scan, op, with_element, with_integer};
use oclprim_checks::check::same;

use super::{Common, flags, in_words, matches, places};
use crate::{npy::Array, output::Stop};

const SCAN_EXAMPLES: &str = "\
Examples:
  oclprim run scan samples.npy -o sums.npy
  oclprim run scan samples.npy --op max --device gpu --verify
  oclprim run scan lengths.npy --exclusive -o offsets.npy
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

/// Combine the elements up to each element of an array, along an axis, or in segments.
///
/// Results have the type of the array; integers wrap, and floats are the same on every device. The elements are taken in their
/// order in the file, or from the last to the first; the result has the array's shape. Each line along an axis, and each
/// segment, starts anew.
#[derive(Args)]
#[command(after_help = SCAN_EXAMPLES)]
pub(super) struct ScanOf {
    #[command(flatten)]
    common: Common,
    /// What combines two elements.
    #[arg(long, value_enum, default_value_t = ScanOp::Sum)]
    op: ScanOp,
    /// Leave each element out of its own result; the first one is what the operator gives for nothing.
    #[arg(long)]
    exclusive: bool,
    /// From the last element to the first.
    #[arg(long)]
    reverse: bool,
    /// Scan each line along this axis: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    axis: Option<i64>,
    /// Scan each run of equal keys: as many as elements, of any type.
    #[arg(long, value_name = "KEYS.npy", conflicts_with = "axis")]
    keys: Option<PathBuf>,
    /// Scan what lies between neighbouring offsets, which rise.
    #[arg(long, value_name = "OFFSETS.npy", conflicts_with_all = ["axis", "keys"])]
    segments: Option<PathBuf>,
    /// Scan segments whose first elements have flags that are not 0: as many bytes or truth values.
    #[arg(long, value_name = "FLAGS.npy", conflicts_with_all = ["axis", "keys", "segments"])]
    flags: Option<PathBuf>,
}

/// What is scanned at once.
enum Lines {
    All,
    /// Of a shape, along an axis.
    Axis(Vec<usize>, usize),
    /// Runs, by numbers that differ from one to the next.
    Runs(Vec<u32>),
    Segments(Vec<u64>),
}

impl Lines {
    /// Runs that start where `head` says of an element's place.
    fn runs(n: usize, head: impl Fn(usize) -> bool) -> Self {
        let mut number = 0u32;
        let next = |i| {
            number = number.wrapping_add(u32::from(head(i)));
            number
        };
        Self::Runs((0..n).map(next).collect())
    }

    fn scan<T: Element, O: op::Op<T>>(
        &self,
        device: &Device,
        input: &[T],
        op: O,
        kind: Scan<T>,
    ) -> oclprim::Result<Vec<T>> {
        match self {
            Self::All => device.scan(input, op, kind),
            Self::Axis(shape, axis) => device.scan_axis(Input::from(input).nd(shape)?, *axis, op, kind),
            Self::Runs(numbers) => device.scan_by_key(numbers, input, op, kind),
            Self::Segments(offsets) => device.scan_segments(input, offsets, op, kind),
        }?
        .to_vec()
    }
}

impl ScanOf {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "scan")?;
        let lines = self.lines(&array)?;
        let device = self.common.device.open()?;
        with_element!(element, T => {
            let input = array.elements::<T>();
            let values = match self.op {
                ScanOp::Sum => self.scan(op::Sum, &input, &lines, &device)?,
                ScanOp::Product => self.scan(op::Product, &input, &lines, &device)?,
                ScanOp::Min => self.scan(op::Min, &input, &lines, &device)?,
                ScanOp::Max => self.scan(op::Max, &input, &lines, &device)?,
                ScanOp::And | ScanOp::Or | ScanOp::Xor => self.scan_bits::<T>(&array, &input, &lines, &device)?,
            };
            let shape = array.lengths();
            let text = in_words(&values, &shape, &array.type_name(), &device);
            self.common.finish(&array.like(&shape, &values), text, out)
        })
    }

    fn lines(&self, array: &Array) -> Result<Lines, Stop> {
        let n = array.lengths().iter().product();
        if let Some(number) = self.axis {
            Ok(Lines::Axis(array.lengths(), self.common.axis(array, number)?))
        } else if let Some(path) = &self.keys {
            let keys = Array::read(path)?;
            let (path, found) = (path.display(), keys.lengths().iter().product::<usize>());
            let element = keys.element();
            let element = element.ok_or_else(|| Stop::usage(format!("{path}: {} are no keys", keys.type_name())))?;
            if found != n {
                return Err(Stop::usage(format!("{path}: {found} keys for {n} elements")));
            }
            with_element!(element, K => {
                let keys = keys.elements::<K>();
                Ok(Lines::runs(n, |i| i > 0 && keys[i - 1] != keys[i]))
            })
        } else if let Some(path) = &self.segments {
            Ok(Lines::Segments(places(path)?.1))
        } else if let Some(path) = &self.flags {
            let flags = flags(path, array)?;
            Ok(Lines::runs(n, |i| flags[i] != 0))
        } else {
            Ok(Lines::All)
        }
    }

    fn scan<T: Element, O: op::Op<T>>(
        &self,
        op: O,
        input: &[T],
        lines: &Lines,
        device: &Device,
    ) -> Result<Vec<T>, Stop> {
        let kind = if self.exclusive { Scan::exclusive(O::empty()) } else { Scan::inclusive() };
        let kind = if self.reverse { kind.reversed() } else { kind };
        let values = lines.scan(device, input, op, kind)?;
        if self.common.verify {
            let want = lines.scan(&Device::cpu(), input, op, kind)?;
            matches(same(&values, &want, O::KIND.name()))?;
        }
        Ok(values)
    }

    /// `T` is the type of `array`; bitwise operators are for integers only.
    fn scan_bits<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        lines: &Lines,
        device: &Device,
    ) -> Result<Vec<T>, Stop> {
        with_integer!(T::TYPE, I => {
            let input: &[I] = bytemuck::cast_slice(input);
            let values = match self.op {
                ScanOp::And => self.scan(op::And, input, lines, device)?,
                ScanOp::Or => self.scan(op::Or, input, lines, device)?,
                _ => self.scan(op::Xor, input, lines, device)?,
            };
            Ok(bytemuck::allocation::cast_vec(values))
        }, {
            let (path, ty) = (self.common.input.display(), array.type_name());
            Err(Stop::usage(format!("{path}: bitwise operators take integers, not {ty}")))
        })
    }
}
