//! `oclprim run reduce`

use std::{
    io::{self, Write},
    ops::Add,
    ops::Mul,
    path::{Path, PathBuf},
};

use bytemuck::Pod;
use clap::{Args, ValueEnum};
use oclprim::{
    Complex, Determinism, Device, Element, ElementType, Extreme, Input, MinMax, NdView, f16, op, with_element,
    with_integer,
};
use oclprim_checks::check::{close, same, sum_bound};

use super::common::{Common, collect, in_words, indices, matches, numpy_name, second, widened, with_wider};
use crate::{
    npy::{Array, Made, axes::around, number},
    output::{Stop, of_file},
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
    /// The smallest and the largest.
    MinMax,
    /// Whether any is not 0.
    Any,
    /// Whether none is 0.
    All,
}

impl Op {
    /// As it is given on the command line.
    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    Fast,
    Fixed,
}

const REDUCE_EXAMPLES: &str = "\
Examples:
  oclprim run reduce samples.npy
  oclprim run reduce samples.npy --op arg-max --device gpu --verify
  oclprim run reduce samples.npy --determinism fast -o sum.npy
  oclprim run reduce matrix.npy --axis 0 --op max
  oclprim run reduce matrix.npy --axis -1 -o sums.npy --verify
  oclprim run reduce samples.npy --segments offsets.npy --op max
  oclprim run reduce bytes.npy --as u8
  oclprim run reduce matrix.npy --axis 0 --as f64 --verify
  oclprim run reduce samples.npy --dot others.npy
  oclprim run reduce flags.npy --op any
  oclprim run reduce signal.npy --op product -o product.npy";

/// Combine all elements of an array into one, those along an axis, or those of segments.
///
/// Sums and products of integers and truth values have 64 bits, as in numpy; those of floats have the type of the array. --as
/// gives another type. Integers wrap. Complex numbers are added or multiplied, all of them.
///
/// With -o, arg-min and arg-max write the index as an int64, any and all a truth value, min-max
/// the smallest value and then the largest, the others a 0-dimensional array; with --axis each writes an array without that
/// axis, with --segments one of a value for each.
#[derive(Args)]
#[command(after_help = REDUCE_EXAMPLES)]
pub(super) struct Reduce {
    #[command(flatten)]
    common: Common,
    /// What combines two elements.
    #[arg(long, value_enum, default_value_t = Op::Sum)]
    op: Op,
    /// The order in which floats are added or multiplied: `fixed` has the same result on every device. Along an axis it is
    /// always that.
    #[arg(long, value_enum, default_value_t = Order::Fixed, value_name = "ORDER")]
    determinism: Order,
    /// Combine what lies along this axis: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    axis: Option<i64>,
    /// Combine the elements between neighbouring offsets, whatever the array's shape: n + 1 rising ones for n segments. Elements
    /// before the first and from the last on belong to no segment; standard error reports their number.
    #[arg(long, value_name = "OFFSETS.npy", conflicts_with = "axis")]
    segments: Option<PathBuf>,
    /// Add or multiply in this type: the array's own, i64, u64, f32 or f64.
    #[arg(long = "as", alias = "accumulator", value_name = "TYPE")]
    wide: Option<ElementType>,
    /// Add up the products with the elements of this array, of the same length. They are converted to the type of the first; a
    /// value that this type lacks is an error.
    #[arg(long, value_name = "OTHER.npy", conflicts_with_all = ["op", "axis", "segments", "determinism"])]
    dot: Option<PathBuf>,
}

/// Which elements of an array are combined.
enum Place<'a> {
    All,
    /// Those of each line along an axis of a shape.
    Along(&'a [usize], usize),
    /// Those between neighbouring offsets.
    Segments(&'a [u64]),
}

impl Place<'_> {
    /// The shape of the results, of which there are `len`.
    fn shape(&self, len: usize) -> Vec<usize> {
        match *self {
            Place::All => Vec::new(),
            Place::Along(shape, axis) => without(shape, axis),
            Place::Segments(_) => vec![len],
        }
    }

    fn reduce_as<T: Element, U: Element + From<T>>(
        &self,
        op: impl op::Op<U>,
        input: &[T],
        device: &Device,
    ) -> oclprim::Result<Vec<U>> {
        match *self {
            Place::All => Ok(vec![device.reduce_as(input, op)?]),
            Place::Along(shape, axis) => {
                device.reduce_axis_as(Input::from(input).nd(&around(shape, axis))?, 1, op)?.to_vec()
            }
            Place::Segments(offsets) => device.reduce_segments_as(input, offsets, op)?.to_vec(),
        }
    }
}

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
        let device = self.common.device.open()?;
        if let Op::Sum | Op::Product = self.op {
            let place = match (axis, &offsets) {
                (Some(axis), _) => Place::Along(&array.shape, axis),
                (_, Some(offsets)) => Place::Segments(offsets),
                _ => Place::All,
            };
            let wide = self.wide.unwrap_or_else(|| widened(&array, element));
            if wide != element && element.is_float() && self.determinism == Order::Fast {
                return Err(Stop::usage("--determinism fast: without another type --as"));
            }
            with_wider!((element, wide), T, U => self.in_type::<T, U>(&array, &place, &device, out))?;
        } else if self.wide.is_some() {
            return Err(Stop::usage("--as is for sums and products"));
        } else {
            with_element!(element, T => match (axis, &offsets) {
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

    /// Refuses options that go with other operators, or with real numbers.
    fn of_all_alone(&self, what: &str) -> Result<(), Stop> {
        let options = [
            ("--axis", self.axis.is_some()),
            ("--segments", self.segments.is_some()),
            ("--as", self.wide.is_some()),
            ("--dot", self.dot.is_some()),
            ("--determinism fast", self.determinism == Order::Fast),
        ];
        match options.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Stop::usage(format!("{what}: without {option}"))),
            None => Ok(()),
        }
    }

    /// Whether any element is not 0, or all are not.
    fn answer(&self, array: &Array, out: &mut dyn Write) -> Result<(), Stop> {
        self.of_all_alone(&format!("--op {}", self.op.name()))?;
        let element = self.common.element(array, "reduce")?;
        let device = self.common.device.open()?;
        let truth = with_element!(element, T => {
            let input = array.elements::<T>();
            let run = |device: &Device| if self.op == Op::Any { device.any(input) } else { device.all(input) };
            let truth = run(&device)?;
            if self.common.verify {
                matches(same(&[u8::from(truth)], &[u8::from(run(&Device::cpu())?)], "answer "))?;
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
        let (input, device) = (array.elements::<Complex<F>>(), self.common.device.open()?);
        let run = |device: &Device| device.reduce_by(input, &op);
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
            Op::Sum | Op::Product | Op::Any | Op::All => unreachable!("answered before"),
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
            let values = device.reduce_segments(input, offsets, op)?.to_vec()?;
            if verify {
                let want = Device::cpu().reduce_segments(input, offsets, op)?.to_vec()?;
                matches(same(&values, &want, O::KIND.name()))?;
            }
            Ok(values)
        }
        let verify = self.common.verify;
        let values = match self.op {
            Op::Min => each(op::Min, input, offsets, device, verify)?,
            Op::Max => each(op::Max, input, offsets, device, verify)?,
            Op::And | Op::Or | Op::Xor => with_integer!(T::TYPE, I => {
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

    /// The sum or product, or the dot product, in type `U`.
    fn in_type<T: Element, U: Element + From<T>>(
        &self,
        array: &Array,
        place: &Place<'_>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        if let Some(other) = &self.dot {
            return self.dot::<T, U>(array, other, device, out);
        }
        let input = array.elements::<T>();
        // Only reductions of all elements in their own type have a --determinism.
        let values: Vec<U> = match (self.op, place) {
            (Op::Sum, Place::All) if T::TYPE == U::TYPE => {
                vec![self.combine(op::Sum, bytemuck::cast_slice(input), device)?]
            }
            (_, Place::All) if T::TYPE == U::TYPE => {
                vec![self.combine(op::Product, bytemuck::cast_slice(input), device)?]
            }
            _ => {
                let run = |device: &Device| match self.op {
                    Op::Sum => place.reduce_as::<T, U>(op::Sum, input, device),
                    _ => place.reduce_as::<T, U>(op::Product, input, device),
                };
                let values = run(device)?;
                if self.common.verify {
                    matches(same(&values, &run(&Device::cpu())?, "result "))?;
                }
                values
            }
        };
        let (shape, name) = (place.shape(values.len()), numpy_name(U::TYPE));
        self.common.finish(&Made::of(name, &shape, &values), in_words(&values, &shape, name, device), out)
    }

    /// The sum of the products with the elements of another file.
    fn dot<T: Element, U: Element + From<T>>(
        &self,
        array: &Array,
        path: &Path,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let other = second(path)?;
        let (x, y) = (array.elements::<T>(), other.exactly::<T>().map_err(of_file(path))?);
        let value = device.dot::<T, U>(x, &*y)?;
        if self.common.verify {
            matches(same(&[value], &[Device::cpu().dot::<T, U>(x, &*y)?], "dot "))?;
        }
        self.common.finish(&Made::of(numpy_name(U::TYPE), &[], &[value]), number(value), out)
    }

    /// The same for each line along an axis.
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
            Op::Sum | Op::Product | Op::Any | Op::All => unreachable!("answered before"),
            Op::Min => line.combine(op::Min, input)?,
            Op::Max => line.combine(op::Max, input)?,
            Op::And | Op::Or | Op::Xor => with_integer!(T::TYPE, I => {
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
        // With no standard error left there is nobody to tell.
        let _ = writeln!(io::stderr(), "{text}");
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
        let values = self.device.reduce_axis(view, 1, op)?.to_vec()?;
        if self.verify {
            let want = Device::cpu().reduce_axis(view, 1, op)?.to_vec()?;
            matches(same(&values, &want, O::KIND.name()))?;
        }
        Ok(values)
    }

    fn find<T: Element>(&self, op: Op, input: &[T]) -> Result<Vec<i64>, Stop> {
        let view = self.view(input)?;
        let run = |device: &Device| match op {
            Op::ArgMin => device.arg_min_axis(view, 1)?.indices.to_vec(),
            _ => device.arg_max_axis(view, 1)?.indices.to_vec(),
        };
        let indices = run(self.device)?;
        if self.verify {
            matches(same(&indices, &run(&Device::cpu())?, "index "))?;
        }
        Ok(bytemuck::allocation::cast_vec(indices))
    }

    /// The smallest element of each, then the largest of each.
    fn min_max<T: Element>(&self, input: &[T]) -> Result<Vec<T>, Stop> {
        let view = self.view(input)?;
        let found = self.device.min_max_axis(view, 1)?;
        let values = found.values.to_vec()?;
        if self.verify {
            let want = Device::cpu().min_max_axis(view, 1)?;
            matches(same(&found.indices.to_vec()?, &want.indices.to_vec()?, "index "))?;
            matches(same(&values, &want.values.to_vec()?, "value "))?;
        }
        Ok(values)
    }

    /// Sum, mean and variance of each.
    pub(super) fn moments<T: Element>(&self, input: &[T]) -> Result<Vec<f64>, Stop> {
        let view = self.view(input)?;
        let run = |device: &Device| -> Result<Vec<f64>, Stop> {
            let records = device.moments_axis(view, 1)?.to_vec()?;
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
