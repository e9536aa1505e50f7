//! `oclprim run reduce`

use std::{
    io::Write,
    ops::Add,
    ops::Mul,
    path::{Path, PathBuf},
};

use bytemuck::Pod;
use clap::{Args, ValueEnum};
use oclprim::{
    Buffer, Complex, Determinism, Device, Element, ElementType, Extreme, Input, MinMax, NdView, Source, f16,
    internals::source::Converted, op,
};
use oclprim_checks::check::{close, same, sum_bound};

use super::common::{
    Common, collect, in_words, indices, matches, numpy_name, second, widened, with_bits, with_number, with_wider,
    without_sign,
};
use crate::{
    npy::{Array, Made, axes::around, number},
    output::{Stop, of_file},
    progress,
};

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
    /// The smallest and the largest element.
    MinMax,
    /// True if an element is not 0.
    Any,
    /// True if no element is 0.
    All,
}

impl Op {
    /// The name on the command line.
    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    Fast,
    Fixed,
    Exact,
}

impl Order {
    fn level(self) -> Determinism {
        match self {
            Self::Fast => Determinism::Fast,
            Self::Fixed => Determinism::Fixed,
            Self::Exact => Determinism::Exact,
        }
    }

    /// The level, with `fast` replaced by `fixed`: results of `fast` are not reproducible.
    fn reproducible(self) -> Determinism {
        match self {
            Self::Fast | Self::Fixed => Determinism::Fixed,
            Self::Exact => Determinism::Exact,
        }
    }
}

const REDUCE_EXAMPLES: &str = "\
Examples:
  oclprim run reduce samples.npy
  oclprim run reduce samples.npy --op arg-max --device gpu --verify
  oclprim run reduce samples.npy --determinism fast -o sum.npy
  oclprim run reduce samples.npy --determinism exact
  oclprim run reduce matrix.npy --axis 0 --op max
  oclprim run reduce matrix.npy --axis -1 -o sums.npy --verify
  oclprim run reduce samples.npy --segments offsets.npy --op max
  oclprim run reduce bytes.npy --as u8
  oclprim run reduce matrix.npy --axis 0 --as f64 --verify
  oclprim run reduce samples.npy --dot others.npy
  oclprim run reduce flags.npy --op any
  oclprim run reduce signal.npy --op product -o product.npy";

/// Reduce all elements of an array, the elements along an axis, or the elements of each segment.
///
/// Sums and products of integers and booleans have 64 bits, as in NumPy; those of floats have the type of the array. --as selects
/// another type. Integers wrap. Complex numbers have only a sum and a product of all elements.
///
/// With -o, arg-min and arg-max write the index as int64, and any and all write a boolean. min-max writes the smallest value, then
/// the largest. Other operations write a 0-dimensional array. With --axis the result lacks that axis; with --segments it has one
/// value for each segment.
#[derive(Args)]
#[command(after_help = REDUCE_EXAMPLES)]
pub(super) struct Reduce {
    #[command(flatten)]
    common: Common,
    /// The operator. Means and variances: `oclprim run statistics`.
    #[arg(long, value_enum, default_value_t = Op::Sum)]
    op: Op,
    /// The order of float sums and products: `fixed` gives the same bits on every device that keeps subnormals, `fast`
    /// is any order. `exact` sums of all elements are correctly rounded, so the order does not matter. With --axis or
    /// --segments, `fast` has the order of `fixed`, and `exact` is not allowed for floats.
    #[arg(long, value_enum, default_value_t = Order::Fixed, value_name = "ORDER")]
    determinism: Order,
    /// Reduce along this axis: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    axis: Option<i64>,
    /// Reduce each segment of the flattened array: n segments have n + 1 ascending offsets. Elements before the first offset and
    /// from the last one on are in no segment; standard error reports their number.
    #[arg(long, value_name = "OFFSETS.npy", conflicts_with = "axis")]
    segments: Option<PathBuf>,
    /// The type of sums and products. Allowed: i64, u64, f32, f64 and the type of the array.
    #[arg(long = "as", alias = "accumulator", value_name = "TYPE")]
    wide: Option<ElementType>,
    /// Compute the dot product with this array, which has the same length. Its elements are converted to the type of the first
    /// array; a value that this type lacks is an error.
    #[arg(long, value_name = "OTHER.npy", conflicts_with_all = ["op", "axis", "segments", "determinism"])]
    dot: Option<PathBuf>,
}

/// The elements that are reduced together.
enum Extent<'a> {
    All,
    /// Each line along an axis of a shape.
    Along(&'a [usize], usize),
    /// The elements between neighbouring offsets.
    Segments(&'a [u64]),
}

impl Extent<'_> {
    /// The shape of `len` results.
    fn shape(&self, len: usize) -> Vec<usize> {
        match *self {
            Extent::All => Vec::new(),
            Extent::Along(shape, axis) => without(shape, axis),
            Extent::Segments(_) => vec![len],
        }
    }

    /// Reduces elements; `along` reduces them along an axis of a shape.
    fn reduce_as<U: Element>(
        &self,
        op: impl op::Op<U>,
        input: Converted<'_, U>,
        determinism: Determinism,
        along: &Along<'_, U>,
        device: &Device,
    ) -> oclprim::Result<Vec<U>> {
        match *self {
            Extent::All => {
                let mut value = [U::ZERO];
                device.reduce_into(input, op.with(determinism), &mut value)?;
                Ok(value.to_vec())
            }
            Extent::Along(shape, axis) => along(device, shape, axis)?.into_vec(),
            Extent::Segments(offsets) => device.reduce(input.segments(offsets), op)?.into_vec(),
        }
    }
}

/// Reduces along an axis of a shape.
type Along<'a, U> = dyn Fn(&Device, &[usize], usize) -> oclprim::Result<Buffer<U>> + 'a;

/// A shape without one of its axes.
fn without(shape: &[usize], axis: usize) -> Vec<usize> {
    let mut left = shape.to_vec();
    left.remove(axis);
    left
}

impl Reduce {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        if matches!(self.op, Op::Any | Op::All) {
            return self.answer(&array, out);
        }
        match array.complex() {
            Some(ElementType::F32) => return self.of_complex::<f32>(&array, out),
            Some(_) => return self.of_complex::<f64>(&array, out),
            None => {}
        }
        let element = self.common.element(&array, "reduce")?;
        let axis = self.axis.map(|number| self.common.axis(&array, number)).transpose()?;
        let offsets = self.segments.as_deref().map(indices).transpose()?.map(|(_, offsets)| offsets);
        let device = self.common.device.open_for_files()?;
        if let Op::Sum | Op::Product = self.op {
            let extent = match (axis, &offsets) {
                (Some(axis), _) => Extent::Along(&array.shape, axis),
                (_, Some(offsets)) => Extent::Segments(offsets),
                _ => Extent::All,
            };
            let wide = self.wide.unwrap_or_else(|| widened(&array, element));
            if wide != element && element.is_float() && self.determinism == Order::Fast {
                return Err(Stop::usage("--determinism fast: --as with another type is not allowed"));
            }
            if wide.is_float() && self.determinism == Order::Exact && !matches!(extent, Extent::All) {
                let option = if axis.is_some() { "--axis" } else { "--segments" };
                return Err(Stop::usage(format!("--determinism exact: {option} is not allowed")));
            }
            if let Some(other) = &self.dot {
                with_wider!((element, wide), T, U => self.dot::<T, U>(&array, other, &device, out))?;
            } else {
                with_wider!(bits (element, wide), T, U => {
                    let values = self.in_type::<T, U>(array.elements(), &extent, &device)?;
                    self.finish_bits(wide, bytemuck::cast_slice(&values), &extent, &device, out)
                })?;
            }
        } else if self.wide.is_some() {
            return Err(Stop::usage("--as is for sums and products"));
        } else {
            with_number!(element, T => match (axis, &offsets) {
                (Some(axis), _) => self.along::<T>(&array, axis, array.elements(), &device, out),
                (_, Some(offsets)) => self.of_segments::<T>(&array, array.elements(), offsets, &device, out),
                _ => self.reduce::<T>(&array, array.elements(), &device, out),
            })?;
        }
        if let Some(offsets) = &offsets {
            report_outside(offsets, array.len());
        }
        Ok(())
    }

    /// Returns an error if an option is given that `what` does not support.
    fn of_all_alone(&self, what: &str) -> Result<(), Stop> {
        let options = [
            ("--axis", self.axis.is_some()),
            ("--segments", self.segments.is_some()),
            ("--as", self.wide.is_some()),
            ("--dot", self.dot.is_some()),
            ("--determinism fast", self.determinism == Order::Fast),
            ("--determinism exact", self.determinism == Order::Exact),
        ];
        match options.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Stop::usage(format!("{what}: {option} is not allowed"))),
            None => Ok(()),
        }
    }

    /// Computes `any` or `all`.
    fn answer(&self, array: &Array, out: &mut dyn Write) -> Result<(), Stop> {
        self.of_all_alone(&format!("--op {}", self.op.name()))?;
        let element = self.common.element(array, "reduce")?;
        let device = self.common.device.open_for_files()?;
        let truth = with_number!(element, T => {
            let input = array.elements::<T>();
            let run = |device: &Device| if self.op == Op::Any { device.any(input, op::NonZero) } else { device.all(input, op::NonZero) };
            let truth = run(&device)?;
            if self.common.verify {
                matches(same(&[u8::from(truth)], &[u8::from(run(&Device::cpu())?)], "result "))?;
            }
            truth
        });
        self.common.finish(&Made::of("|b1", &[], &[u8::from(truth)]), truth.to_string(), out)
    }

    /// The sum or the product of complex numbers with parts of type `F`.
    fn of_complex<F: oclprim::Float<Acc = F>>(&self, array: &Array, out: &mut dyn Write) -> Result<(), Stop>
    where
        Complex<F>: Pod + Add<Output = Complex<F>> + Mul<Output = Complex<F>>,
    {
        self.of_all_alone("complex numbers")?;
        let op = match self.op {
            Op::Sum => op::complex_sum(),
            Op::Product => op::complex_product(),
            op => return Err(Stop::usage(format!("complex numbers have a sum and a product, no {}", op.name()))),
        };
        let (input, device) = (array.elements::<Complex<F>>(), self.common.device.open_for_files()?);
        let run = |device: &Device| device.reduce(input, &op);
        let value = run(&device)?;
        if self.common.verify {
            let want = run(&Device::cpu())?;
            matches(same(&[value.re, value.im], &[want.re, want.im], "part "))?;
        }
        let text = complex_in_words(value);
        self.common.finish(&array.like(&[], &[value]), text, out)
    }

    fn reduce<T: Element>(&self, array: &Array, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let value = match self.op {
            Op::ArgMin | Op::ArgMax => return self.arg_reduce(input, device, out),
            Op::MinMax => return self.min_max(array, input, device, out),
            Op::Min => self.combine(op::Min, input, device)?,
            Op::Max => self.combine(op::Max, input, device)?,
            Op::And | Op::Or | Op::Xor => self.combine_bits(array, input, device)?,
            Op::Sum | Op::Product | Op::Any | Op::All => unreachable!("computed elsewhere"),
        };
        self.common.finish(&array.like(&[], &[value]), number(value), out)
    }

    fn of_segments<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        offsets: &[u64],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        fn each<T: Element, O: op::Op<T>>(
            op: O,
            input: &[T],
            offsets: &[u64],
            device: &Device,
            verify: bool,
        ) -> Result<Vec<T>, Stop> {
            let values = device.reduce(input.segments(offsets), op)?.into_vec()?;
            if verify {
                let want = Device::cpu().reduce(input.segments(offsets), op)?.into_vec()?;
                matches(same(&values, &want, O::KIND.name()))?;
            }
            Ok(values)
        }
        let verify = self.common.verify;
        let values = match self.op {
            Op::Min => each(op::Min, input, offsets, device, verify)?,
            Op::Max => each(op::Max, input, offsets, device, verify)?,
            Op::And | Op::Or | Op::Xor => with_bits!(T::TYPE, I => {
                let input: &[I] = bytemuck::cast_slice(input);
                let values = match self.op {
                    Op::And => each(op::And, input, offsets, device, verify)?,
                    Op::Or => each(op::Or, input, offsets, device, verify)?,
                    _ => each(op::Xor, input, offsets, device, verify)?,
                };
                bytemuck::allocation::cast_vec(values)
            }, return Err(self.not_bits(array))),
            op => return Err(Stop::usage(format!("segments have no {}", op.name()))),
        };
        let shape = [values.len()];
        self.common.finish(&array.like(&shape, &values), in_words(&values, &shape, &array.type_name(), device), out)
    }

    /// The sums or products in type `U`.
    fn in_type<T: Element, U: Element + From<T>>(
        &self,
        input: &[T],
        extent: &Extent<'_>,
        device: &Device,
    ) -> Result<Vec<U>, Stop> {
        // Only reductions of all elements in their own type can be `fast`. Those in another type are `fixed` or
        // `exact`. Reductions along an axis and of segments are always `fixed`.
        match (self.op, extent) {
            (Op::Sum, Extent::All) if T::TYPE == U::TYPE => {
                Ok(vec![self.combine(op::Sum, bytemuck::cast_slice(input), device)?])
            }
            (_, Extent::All) if T::TYPE == U::TYPE => {
                Ok(vec![self.combine(op::Product, bytemuck::cast_slice(input), device)?])
            }
            _ => {
                let converted = Converted::new(bytemuck::cast_slice(input), T::TYPE);
                let along = |device: &Device, shape: &[usize], axis: usize| {
                    let lines = Input::from(input).nd(&around(shape, axis))?.cast::<U>().along(1);
                    if self.op == Op::Sum { device.reduce(lines, op::Sum) } else { device.reduce(lines, op::Product) }
                };
                self.in_wider(converted, extent, &along, device)
            }
        }
    }

    /// [`Self::in_type`] of converted elements.
    fn in_wider<U: Element>(
        &self,
        input: Converted<'_, U>,
        extent: &Extent<'_>,
        along: &Along<'_, U>,
        device: &Device,
    ) -> Result<Vec<U>, Stop> {
        let level = self.determinism.reproducible();
        let run = |device: &Device| match self.op {
            Op::Sum => extent.reduce_as(op::Sum, input, level, along, device),
            _ => extent.reduce_as(op::Product, input, level, along, device),
        };
        let values = run(device)?;
        if self.common.verify {
            matches(same(&values, &run(&Device::cpu())?, "result "))?;
        }
        Ok(values)
    }

    /// Finishes with values of the type `ty`.
    fn finish_bits(
        &self,
        ty: ElementType,
        values: &[u8],
        extent: &Extent<'_>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        with_number!(ty, T => {
            let values: &[T] = bytemuck::cast_slice(values);
            let (shape, name) = (extent.shape(values.len()), numpy_name(ty));
            self.common.finish(&Made::of(name, &shape, values), in_words(values, &shape, name, device), out)
        })
    }

    /// The dot product with another array.
    fn dot<T: Element, U: Element + From<T>>(
        &self,
        array: &Array,
        path: &Path,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let other = second(path)?;
        let x = array.elements::<T>();
        if other.len() != x.len() {
            let (path, n) = (path.display(), other.len());
            let says = format!("--dot: {path} has {n} elements, but the input has {}", x.len());
            return Err(Stop::usage(says));
        }
        let y = other.exactly::<T>().map_err(of_file(path))?;
        self.dot_of::<U>([bytemuck::cast_slice(x), bytemuck::cast_slice(&y)], T::TYPE, device, out)
    }

    /// The dot product of two arrays of elements of type `from`.
    fn dot_of<U: Element>(
        &self,
        factors: [&[u8]; 2],
        from: ElementType,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        fn sum_in<A: Element>(factors: [&[u8]; 2], from: ElementType, device: &Device) -> oclprim::Result<A> {
            let [x, y] = factors.map(|bytes| Converted::<A>::new(bytes, from));
            device.reduce(x.times(y), op::Sum)
        }
        let run = |device: &Device| match U::TYPE {
            // Products of 16-bit floats are not rounded to 16 bits.
            ElementType::F16 | ElementType::Bf16 => sum_in::<f32>(factors, from, device).map(|sum| sum.cast::<U>()),
            _ => sum_in::<U>(factors, from, device),
        };
        let value = run(device)?;
        if self.common.verify {
            matches(same(&[value], &[run(&Device::cpu())?], "dot "))?;
        }
        self.common.finish(&Made::of(numpy_name(U::TYPE), &[], &[value]), number(value), out)
    }

    /// Reduces each line along an axis.
    fn along<T: Element>(
        &self,
        array: &Array,
        axis: usize,
        input: &[T],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let line = Line { shape: array.shape.clone(), axis, device, verify: self.common.verify };
        let values = match self.op {
            Op::ArgMin | Op::ArgMax => {
                let (indices, shape) = (line.find(self.op, input)?, line.left());
                let text = in_words(&indices, &shape, "<i8", device);
                return self.common.finish(&Made::of("<i8", &shape, &indices), text, out);
            }
            Op::MinMax => {
                let (values, shape) = (line.min_max(input)?, [vec![2], line.left()].concat());
                let text = in_words(&values, &shape, &array.type_name(), device);
                return self.common.finish(&array.like(&shape, &values), text, out);
            }
            Op::Sum | Op::Product | Op::Any | Op::All => unreachable!("computed elsewhere"),
            Op::Min => line.combine(op::Min, input)?,
            Op::Max => line.combine(op::Max, input)?,
            Op::And | Op::Or | Op::Xor => with_bits!(T::TYPE, I => {
                let input: &[I] = bytemuck::cast_slice(input);
                let values = match self.op {
                    Op::And => line.combine(op::And, input)?,
                    Op::Or => line.combine(op::Or, input)?,
                    _ => line.combine(op::Xor, input)?,
                };
                bytemuck::allocation::cast_vec(values)
            }, return Err(self.not_bits(array))),
        };
        let shape = line.left();
        self.common.finish(&array.like(&shape, &values), in_words(&values, &shape, &array.type_name(), device), out)
    }

    fn combine<T: Element, O: op::Op<T>>(&self, op: O, input: &[T], device: &Device) -> Result<T, Stop> {
        let value = device.reduce(input, op.with(self.determinism.level()))?;
        if self.common.verify {
            let want = Device::cpu().reduce(input, op.with(self.determinism.reproducible()))?;
            let name = O::KIND.name();
            let loose = self.determinism == Order::Fast && T::TYPE.is_float();
            matches(match O::KIND {
                op::OpKind::Sum if loose => close(value, want.to_f64(), sum_bound(device, input)?, name),
                op::OpKind::Product if loose => {
                    let text = "products in any order cannot be verified: use --determinism fixed";
                    return Err(Stop::usage(text));
                }
                _ => same(&[value], &[want], name),
            })?;
        }
        Ok(value)
    }

    /// `T` is the type of `array`; bitwise operators need integers.
    fn combine_bits<T: Element>(&self, array: &Array, input: &[T], device: &Device) -> Result<T, Stop> {
        with_bits!(T::TYPE, I => {
            let input: &[I] = bytemuck::cast_slice(input);
            let value = match self.op {
                Op::And => self.combine(op::And, input, device)?,
                Op::Or => self.combine(op::Or, input, device)?,
                _ => self.combine(op::Xor, input, device)?,
            };
            Ok(bytemuck::cast(value))
        }, Err(self.not_bits(array)))
    }

    fn not_bits(&self, array: &Array) -> Stop {
        let (path, ty) = (self.common.input.display(), array.type_name());
        Stop::usage(format!("{path}: bitwise operators take integers, not {ty}"))
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
        self.common.finish(&Made::of("<i8", &[], &[found.index as i64]), at_index(found), out)
    }

    fn min_max<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let found = device.min_max(input)?;
        if self.common.verify {
            let want = Device::cpu().min_max(input)?;
            let indices = |ends: &MinMax<T>| [ends.min.index, ends.max.index].map(|index| index as u64);
            matches(same(&indices(&found), &indices(&want), "index "))?;
            matches(same(&[found.min.value, found.max.value], &[want.min.value, want.max.value], "value "))?;
        }
        let text = format!("min {}\nmax {}", at_index(found.min), at_index(found.max));
        self.common.finish(&array.like(&[2], &[found.min.value, found.max.value]), text, out)
    }
}

fn complex_in_words<F: Element>(value: Complex<F>) -> String {
    let (re, im) = (number(value.re), number(value.im));
    let sign = if im.starts_with('-') { "" } else { "+" };
    format!("{re}{sign}{im}i")
}

/// Reports on standard error how many of `n` elements lie outside all segments.
fn report_outside(offsets: &[u64], n: usize) {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return };
    let after = (n as u64).saturating_sub(last);
    if first > 0 || after > 0 {
        let text = format!("{} of {n} elements lie outside all segments: {first} before, {after} after", first + after);
        progress::notice(&text);
    }
}

pub(super) fn at_index<T: Element>(found: Extreme<T>) -> String {
    format!("{} at index {}", number(found.value), found.index)
}

/// A reduction along an axis.
pub(super) struct Line<'a> {
    pub(super) shape: Vec<usize>,
    pub(super) axis: usize,
    pub(super) device: &'a Device,
    pub(super) verify: bool,
}

impl Line<'_> {
    /// The elements as an array of three axes; the second one is reduced.
    fn view<'a, T: Element>(&self, input: &'a [T]) -> oclprim::Result<NdView<'a, T>> {
        Input::from(input).nd(&around(&self.shape, self.axis))
    }

    fn combine<T: Element, O: op::Op<T>>(&self, op: O, input: &[T]) -> Result<Vec<T>, Stop> {
        let view = self.view(input)?;
        let values = self.device.reduce(view.along(1), op)?.into_vec()?;
        if self.verify {
            let want = Device::cpu().reduce(view.along(1), op)?.into_vec()?;
            matches(same(&values, &want, O::KIND.name()))?;
        }
        Ok(values)
    }

    fn find<T: Element>(&self, op: Op, input: &[T]) -> Result<Vec<i64>, Stop> {
        let view = self.view(input)?;
        let run = |device: &Device| match op {
            Op::ArgMin => device.arg_min(view.along(1))?.indices.into_vec(),
            _ => device.arg_max(view.along(1))?.indices.into_vec(),
        };
        let indices = run(self.device)?;
        if self.verify {
            matches(same(&indices, &run(&Device::cpu())?, "index "))?;
        }
        Ok(bytemuck::allocation::cast_vec(indices))
    }

    /// The smallest element of each line, then the largest element of each line.
    fn min_max<T: Element>(&self, input: &[T]) -> Result<Vec<T>, Stop> {
        let view = self.view(input)?;
        let found = self.device.min_max(view.along(1))?;
        let values = found.values.into_vec()?;
        if self.verify {
            let want = Device::cpu().min_max(view.along(1))?;
            matches(same(&found.indices.into_vec()?, &want.indices.into_vec()?, "index "))?;
            matches(same(&values, &want.values.into_vec()?, "value "))?;
        }
        Ok(values)
    }

    /// Sum, mean and variance of each line.
    pub(super) fn moments<T: Element>(&self, input: &[T]) -> Result<Vec<f64>, Stop> {
        let view = self.view(input)?;
        let run = |device: &Device| -> Result<Vec<f64>, Stop> {
            let records = device.moments(view.along(1))?.into_vec()?;
            collect((0..3 * records.len()).map(|i| {
                let found = records[i / 3].get();
                [found.sum, found.mean, found.variance][i % 3]
            }))
        };
        let figures = run(self.device)?;
        if self.verify {
            matches(same(&figures, &run(&Device::cpu())?, "figure "))?;
        }
        Ok(figures)
    }

    /// The shape of the results.
    pub(super) fn left(&self) -> Vec<usize> {
        without(&self.shape, self.axis)
    }
}
