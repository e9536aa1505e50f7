//! `oclprim run`

use std::{
    fmt::Display,
    io::Write,
    ops::{Add, Mul},
    path::{Path, PathBuf},
};

use bytemuck::Pod;
use clap::{Args, Subcommand, ValueEnum};
use oclprim::{
    Bins, Complex, Determinism, Device, Element, ElementType, Extreme, Histogram, Input, Integer, Interpolation,
    Matrices, MinMax, MomentsRecord, Order as Sorted, Philox, Scan, SetOp, Statistics, Top, Weight, WeightedHistogram,
    check::{Failure, close, same, same_bytes, sum_bound},
    f16, op, with_element, with_integer,
};

use crate::{bench::failure_text, npy::Array, options::DeviceChoice, output::Stop};

const EXAMPLES: &str = "\
Examples:
  oclprim run reduce samples.npy --op arg-max --device gpu --verify
  oclprim run reduce matrix.npy --axis 0 -o sums.npy
  oclprim run count flags.npy
  oclprim run statistics matrix.npy --axis -1 -o figures.npy
  oclprim run scan lengths.npy --exclusive -o offsets.npy
  oclprim run sort samples.npy --descending -o sorted.npy
  oclprim run select samples.npy --above 1.5 -o large.npy
  oclprim run unique labels.npy -o runs.npy
  oclprim run rle labels.npy -o values.npy --lengths lengths.npy
  oclprim run topk scores.npy --k 100 --sorted -o best.npy
  oclprim run quantile samples.npy --q 0.25,0.5,0.75
  oclprim run transpose matrix.npy -o transposed.npy
  oclprim run permute volume.npy --axes 2,0,1 -o permuted.npy
  oclprim run histogram heights.npy --bins 20 --range 1.5 2.0 -o counts.npy
  oclprim run histogram energies.npy --edges edges.npy --weights charges.npy
  oclprim run copy samples.npy -o copy.npy
  oclprim run reverse samples.npy -o reversed.npy
  oclprim run gather samples.npy --indices order.npy -o picked.npy
  oclprim run merge sorted.npy --with more.npy -o all.npy
  oclprim run search sorted.npy --needles samples.npy -o places.npy
  oclprim run random 1000000 --type f32 --seed 7 -o uniform.npy

Files are in C order and in this machine's byte order, as numpy.save writes them.";

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
    Count(Count),
    Statistics(StatisticsOf),
    Scan(ScanOf),
    Sort(Sort),
    Select(Select),
    Unique(Unique),
    Rle(Rle),
    Topk(TopK),
    Quantile(Quantile),
    Transpose(Transpose),
    Permute(Permute),
    Histogram(HistogramOf),
    Copy(Copy),
    Reverse(Reverse),
    Gather(Gather),
    Merge(Merge),
    Search(Search),
    Random(Random),
}

impl Run {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        match self.primitive {
            Primitive::Reduce(reduce) => reduce.run(out),
            Primitive::Count(count) => count.run(out),
            Primitive::Statistics(statistics) => statistics.run(out),
            Primitive::Scan(scan) => scan.run(out),
            Primitive::Sort(sort) => sort.run(out),
            Primitive::Select(select) => select.run(out),
            Primitive::Unique(unique) => unique.run(out),
            Primitive::Rle(rle) => rle.run(out),
            Primitive::Topk(top) => top.run(out),
            Primitive::Quantile(quantile) => quantile.run(out),
            Primitive::Transpose(transpose) => transpose.run(out),
            Primitive::Permute(permute) => permute.run(out),
            Primitive::Histogram(histogram) => histogram.run(out),
            Primitive::Copy(copy) => copy.run(out),
            Primitive::Reverse(reverse) => reverse.run(out),
            Primitive::Gather(gather) => gather.run(out),
            Primitive::Merge(merge) => merge.run(out),
            Primitive::Search(search) => search.run(out),
            Primitive::Random(random) => random.run(out),
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

    /// The same of results in one dimension.
    fn finish_line<T: Element>(
        &self,
        result: &Array,
        values: &[T],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        self.finish(result, in_words(values, &[values.len()], &result.type_name(), device), out)
    }

    /// The element type of `array`, which has to be one that the crate computes with.
    fn element(&self, array: &Array, what: &str) -> Result<ElementType, Stop> {
        array.element().ok_or_else(|| {
            let (path, ty) = (self.input.display(), array.type_name());
            Stop::usage(format!(
                "{path}: {what} takes integers and floats of up to 8 bytes, not {ty} (.npy has no bf16)"
            ))
        })
    }

    /// The same where truth values count as bytes, of which false is 0.
    fn element_or_truth(&self, array: &Array, what: &str) -> Result<ElementType, Stop> {
        if array.type_name() == "|b1" { Ok(ElementType::U8) } else { self.element(array, what) }
    }

    /// The axis of `array` that a number stands for: one from 0 on, or from -1, the last one, down.
    fn axis(&self, array: &Array, number: i64) -> Result<usize, Stop> {
        let dims = array.shape.len() as i64;
        let axis = if number < 0 { number + dims } else { number };
        if !(0..dims).contains(&axis) {
            let (path, shape) = (self.input.display(), &array.shape);
            return Err(Stop::usage(format!("{path}: there is no axis {number} in a shape of {shape:?}")));
        }
        Ok(axis as usize)
    }
}

/// Places in an array, or between its elements: integers of 4 or 8 bytes. Negative ones become places that are in no array.
fn places(path: &Path) -> Result<(Array, Vec<u64>), Stop> {
    let array = Array::read(path)?;
    let places = match array.element() {
        Some(ElementType::U32) => array.elements::<u32>().into_iter().map(u64::from).collect(),
        Some(ElementType::I32) => array.elements::<i32>().into_iter().map(|place| i64::from(place) as u64).collect(),
        Some(ElementType::U64 | ElementType::I64) => array.elements(),
        _ => {
            let (path, ty) = (path.display(), array.type_name());
            return Err(Stop::usage(format!("{path}: places are integers of 4 or 8 bytes, not {ty}")));
        }
    };
    Ok((array, places))
}

/// What numpy calls a type, which is not bf16.
fn numpy_name(ty: ElementType) -> &'static str {
    match ty {
        ElementType::I8 => "|i1",
        ElementType::U8 => "|u1",
        ElementType::I16 => "<i2",
        ElementType::U16 => "<u2",
        ElementType::I32 => "<i4",
        ElementType::U32 => "<u4",
        ElementType::I64 => "<i8",
        ElementType::U64 => "<u8",
        ElementType::F16 => "<f2",
        ElementType::F32 => "<f4",
        _ => "<f8",
    }
}

/// What an array of results is, where it goes to no file.
fn in_words<T: Element>(values: &[T], shape: &[usize], ty: &str, device: &Device) -> String {
    const SHOWN: usize = 64;
    if values.len() > SHOWN {
        return format!("{shape:?} {ty} on {}; -o writes it to a file", device.info());
    }
    let words: Vec<_> = values.iter().map(T::to_string).collect();
    words.join(" ")
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
  oclprim run reduce bytes.npy --accumulator u64
  oclprim run reduce matrix.npy --axis 0 --accumulator i64 --verify
  oclprim run reduce samples.npy --dot others.npy
  oclprim run reduce flags.npy --op any
  oclprim run reduce signal.npy --op product -o product.npy";

/// Combine all elements of an array into one, those along an axis, or those of segments.
///
/// Sums and products have the type of the array, unless there is an --accumulator; integers wrap. Complex numbers are added
/// or multiplied, all of them. With -o, arg-min and arg-max write the index as an int64, any and all a truth value, min-max
/// the smallest value and then the largest, the others a 0-dimensional array; with --axis each writes an array without that
/// axis, with --segments one of a value for each.
#[derive(Args)]
#[command(after_help = REDUCE_EXAMPLES)]
struct Reduce {
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
    /// Combine the elements between neighbouring offsets, whatever the array's shape: n + 1 rising ones for n segments.
    #[arg(long, value_name = "OFFSETS.npy", conflicts_with = "axis")]
    segments: Option<PathBuf>,
    /// Add or multiply in a wider type: i64, u64, f32 or f64.
    #[arg(long, value_name = "TYPE", conflicts_with = "determinism")]
    accumulator: Option<ElementType>,
    /// Add up the products with the elements of this array, of the same type and length.
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
            Place::Along(shape, axis) => device.reduce_axis_as(Input::from(input).nd(shape)?, axis, op)?.to_vec(),
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
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
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
        let offsets = self.segments.as_deref().map(places).transpose()?.map(|(_, offsets)| offsets);
        let device = self.common.device.open()?;
        if let Some(wide) = self.accumulator {
            let shape = array.lengths();
            let place = match (axis, &offsets) {
                (Some(axis), _) => Place::Along(&shape, axis),
                (_, Some(offsets)) => Place::Segments(offsets),
                _ => Place::All,
            };
            return self.in_a_wider(wide, &array, element, &place, &device, out);
        }
        with_element!(element, T => match (axis, &offsets, &self.dot) {
            (Some(axis), ..) => self.along::<T>(&array, axis, &array.elements(), &device, out),
            (_, Some(offsets), _) => self.of_segments::<T>(&array, &array.elements(), offsets, &device, out),
            (.., Some(other)) => self.dot::<T, T>(&array, other, &device, out),
            _ => self.reduce::<T>(&array, &array.elements(), &device, out),
        })
    }

    /// Refuses options that go with other operators, or with real numbers.
    fn of_all_alone(&self, what: &str) -> Result<(), Stop> {
        let options = [
            ("--axis", self.axis.is_some()),
            ("--segments", self.segments.is_some()),
            ("--accumulator", self.accumulator.is_some()),
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
        let element = self.common.element_or_truth(array, "reduce")?;
        let device = self.common.device.open()?;
        let truth = with_element!(element, T => {
            let input = array.elements::<T>();
            let run = |device: &Device| if self.op == Op::Any { device.any(&input) } else { device.all(&input) };
            let truth = run(&device)?;
            if self.common.verify {
                matches(same(&[u8::from(truth)], &[u8::from(run(&Device::cpu())?)], "answer "))?;
            }
            truth
        });
        self.common.finish(&Array::of("|b1", &[], &[u8::from(truth)]), truth.to_string(), out)
    }

    /// The sum or the product of complex numbers with parts of type `F`.
    fn of_complex<F: oclprim::Float<Acc = F>>(&self, array: &Array, out: &mut dyn Write) -> Result<(), Stop>
    where
        Complex<F>: Pod + Add<Output = Complex<F>> + Mul<Output = Complex<F>> + Display,
    {
        self.of_all_alone("complex numbers")?;
        let op = match self.op {
            Op::Sum => op::complex_sum(),
            Op::Product => op::complex_product(),
            op => return Err(Stop::usage(format!("complex numbers have a sum and a product, no {}", op.name()))),
        };
        let (input, device) = (array.elements::<Complex<F>>(), self.common.device.open()?);
        let run = |device: &Device| device.reduce_by(&input, &op);
        let value = run(&device)?;
        if self.common.verify {
            let want = run(&Device::cpu())?;
            matches(same(&[value.re, value.im], &[want.re, want.im], "part "))?;
        }
        self.common.finish(&array.like(&[], &[value]), value.to_string(), out)
    }

    fn reduce<T: Element>(&self, array: &Array, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let value = match self.op {
            Op::ArgMin | Op::ArgMax => return self.arg_reduce(input, device, out),
            Op::MinMax => return self.min_max(array, input, device, out),
            Op::Sum => self.combine(op::Sum, input, device)?,
            Op::Product => self.combine(op::Product, input, device)?,
            Op::Min => self.combine(op::Min, input, device)?,
            Op::Max => self.combine(op::Max, input, device)?,
            Op::And | Op::Or | Op::Xor => self.combine_bits(array, input, device)?,
            Op::Any | Op::All => unreachable!("answered before"),
        };
        self.common.finish(&array.like(&[], &[value]), value.to_string(), out)
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
            Op::Sum => each(op::Sum, input, offsets, device, verify)?,
            Op::Product => each(op::Product, input, offsets, device, verify)?,
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

    fn in_a_wider(
        &self,
        wide: ElementType,
        array: &Array,
        element: ElementType,
        place: &Place<'_>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        macro_rules! pairs {
            ($($from:ident $to:ident,)*) => {
                match (element, wide) {
                    $( (<$from as Element>::TYPE, <$to as Element>::TYPE) => match &self.dot {
                        Some(other) => self.dot::<$from, $to>(array, other, device, out),
                        None => self.in_type::<$from, $to>(&array.elements(), place, device, out),
                    } )*
                    _ => Err(Stop::usage(format!("--accumulator: sums of {element} in {wide} are not offered"))),
                }
            };
        }
        pairs! {
            i8 i64, i16 i64, i32 i64, u8 u64, u16 u64, u32 u64, f16 f32, f16 f64, f32 f64,
            i8 f64, i16 f64, i32 f64, u8 f64, u16 f64, u32 f64,
        }
    }

    fn in_type<T: Element, U: Element + From<T>>(
        &self,
        input: &[T],
        place: &Place<'_>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let run = |device: &Device| match self.op {
            Op::Sum => Ok(place.reduce_as::<T, U>(op::Sum, input, device)?),
            Op::Product => Ok(place.reduce_as::<T, U>(op::Product, input, device)?),
            _ => Err(Stop::usage("--accumulator is for sums and products")),
        };
        let values = run(device)?;
        if self.common.verify {
            matches(same(&values, &run(&Device::cpu())?, "result "))?;
        }
        let (shape, name) = (place.shape(values.len()), numpy_name(U::TYPE));
        self.common.finish(&Array::of(name, &shape, &values), in_words(&values, &shape, name, device), out)
    }

    /// The sum of the products with the elements of another file.
    fn dot<T: Element, U: Element + From<T>>(
        &self,
        array: &Array,
        other: &Path,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let other = second::<T>((&self.common.input, array), other)?;
        let (x, y) = (array.elements::<T>(), other.elements::<T>());
        let value = device.dot::<T, U>(&x, &y)?;
        if self.common.verify {
            matches(same(&[value], &[Device::cpu().dot::<T, U>(&x, &y)?], "dot "))?;
        }
        self.common.finish(&Array::of(numpy_name(U::TYPE), &[], &[value]), value.to_string(), out)
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
        let line = Line { shape: array.lengths(), axis, device, verify: self.common.verify };
        let values = match self.op {
            Op::ArgMin | Op::ArgMax => {
                let (indices, shape) = (line.find(self.op, input)?, line.left());
                let text = in_words(&indices, &shape, "<i8", device);
                return self.common.finish(&Array::of("<i8", &shape, &indices), text, out);
            }
            Op::MinMax => {
                let (values, shape) = (line.min_max(input)?, [vec![2], line.left()].concat());
                let text = in_words(&values, &shape, &array.type_name(), device);
                return self.common.finish(&array.like(&shape, &values), text, out);
            }
            Op::Any | Op::All => unreachable!("answered before"),
            Op::Sum => line.combine(op::Sum, input)?,
            Op::Product => line.combine(op::Product, input)?,
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
        self.common.finish(&Array::of("<i8", &[], &[found.index as i64]), at_index(found), out)
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

fn at_index<T: Element>(found: Extreme<T>) -> String {
    format!("{} at index {}", found.value, found.index)
}

/// A reduction along an axis.
struct Line<'a> {
    shape: Vec<usize>,
    axis: usize,
    device: &'a Device,
    verify: bool,
}

impl Line<'_> {
    fn combine<T: Element, O: op::Op<T>>(&self, op: O, input: &[T]) -> Result<Vec<T>, Stop> {
        let view = Input::from(input).nd(&self.shape)?;
        let values = self.device.reduce_axis(view, self.axis, op)?.to_vec()?;
        if self.verify {
            let want = Device::cpu().reduce_axis(view, self.axis, op)?.to_vec()?;
            matches(same(&values, &want, O::KIND.name()))?;
        }
        Ok(values)
    }

    fn find<T: Element>(&self, op: Op, input: &[T]) -> Result<Vec<i64>, Stop> {
        let view = Input::from(input).nd(&self.shape)?;
        let run = |device: &Device| match op {
            Op::ArgMin => device.arg_min_axis(view, self.axis)?.indices.to_vec(),
            _ => device.arg_max_axis(view, self.axis)?.indices.to_vec(),
        };
        let indices = run(self.device)?;
        if self.verify {
            matches(same(&indices, &run(&Device::cpu())?, "index "))?;
        }
        Ok(bytemuck::allocation::cast_vec(indices))
    }

    /// The smallest element of each, then the largest of each.
    fn min_max<T: Element>(&self, input: &[T]) -> Result<Vec<T>, Stop> {
        let view = Input::from(input).nd(&self.shape)?;
        let found = self.device.min_max_axis(view, self.axis)?;
        let values = found.values.to_vec()?;
        if self.verify {
            let want = Device::cpu().min_max_axis(view, self.axis)?;
            matches(same(&found.indices.to_vec()?, &want.indices.to_vec()?, "index "))?;
            matches(same(&values, &want.values.to_vec()?, "value "))?;
        }
        Ok(values)
    }

    /// Sum, mean and variance of each.
    fn moments<T: Element>(&self, input: &[T]) -> Result<Vec<f64>, Stop> {
        let view = Input::from(input).nd(&self.shape)?;
        let run = |device: &Device| -> oclprim::Result<Vec<f64>> {
            let records = device.moments_axis(view, self.axis)?.to_vec()?;
            let figures =
                records.iter().map(MomentsRecord::get).flat_map(|found| [found.sum, found.mean, found.variance]);
            Ok(figures.collect())
        };
        let figures = run(self.device)?;
        if self.verify {
            matches(same(&figures, &run(&Device::cpu())?, "figure "))?;
        }
        Ok(figures)
    }

    /// The shape of the results.
    fn left(&self) -> Vec<usize> {
        without(&self.shape, self.axis)
    }
}

const COUNT_EXAMPLES: &str = "\
Examples:
  oclprim run count flags.npy
  oclprim run count labels.npy --value 7 --device gpu --verify";

/// Count the elements that are not 0, or those of a value.
///
/// NaN is not 0. With -o, the count is written as a 0-dimensional uint64.
#[derive(Args)]
#[command(after_help = COUNT_EXAMPLES)]
struct Count {
    #[command(flatten)]
    common: Common,
    /// Count the elements that equal this.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
}

impl Count {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element_or_truth(&array, "count")?;
        let device = self.common.device.open()?;
        let count = with_element!(element, T => self.count::<T>(&array.elements(), &device)?);
        self.common.finish(&Array::of("<u8", &[], &[count]), count.to_string(), out)
    }

    fn count<T: Element>(&self, input: &[T], device: &Device) -> Result<u64, Stop> {
        let value = self.value.as_deref().map(|text| parse::<T>("--value", text)).transpose()?;
        let run = |device: &Device| match value {
            Some(value) => device.count_of(input, value),
            None => device.count(input),
        };
        let count = run(device)? as u64;
        if self.common.verify {
            matches(same(&[count], &[run(&Device::cpu())? as u64], "count "))?;
        }
        Ok(count)
    }
}

const STATISTICS_EXAMPLES: &str = "\
Examples:
  oclprim run statistics samples.npy
  oclprim run statistics samples.npy --device opencl --verify -o figures.npy
  oclprim run statistics matrix.npy --axis 0 -o figures.npy";

/// Count, sum, extremes, mean and variance of all elements, or sum, mean and variance along an axis.
///
/// Of integers the sum of all elements is exact. The variance is that of the population: the mean of squared distances to the mean. With -o,
/// seven numbers are written as float64: count, NaN, min, max, sum, mean, variance. With --axis there are three for each
/// line, sum, mean and variance, along a last axis in place of the one that is named.
#[derive(Args)]
#[command(after_help = STATISTICS_EXAMPLES)]
struct StatisticsOf {
    #[command(flatten)]
    common: Common,
    /// Of what lies along this axis: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    axis: Option<i64>,
}

impl StatisticsOf {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "statistics")?;
        let axis = self.axis.map(|number| self.common.axis(&array, number)).transpose()?;
        let device = self.common.device.open()?;
        with_element!(element, T => match axis {
            Some(axis) => {
                let line = Line { shape: array.lengths(), axis, device: &device, verify: self.common.verify };
                let (shape, figures) = ([line.left(), vec![3]].concat(), line.moments(&array.elements::<T>())?);
                let text = in_words(&figures, &shape, "<f8", &device);
                self.common.finish(&Array::of("<f8", &shape, &figures), text, out)
            }
            None => self.of::<T>(&array.elements(), &device, out),
        })
    }

    fn of<T: Element>(&self, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let found = device.statistics(input)?;
        let figures = |found: &Statistics<T>| {
            let [min, max] = [found.min, found.max].map(|extreme| extreme.value.to_f64());
            [found.count as f64, found.nan as f64, min, max, found.sum, found.mean, found.variance]
        };
        if self.common.verify {
            let want = Device::cpu().statistics(input)?;
            let places = |found: &Statistics<T>| [found.min, found.max].map(|extreme| extreme.index as u64);
            matches(same(&places(&found), &places(&want), "place of an extreme "))?;
            matches(same(&[found.min.value, found.max.value], &[want.min.value, want.max.value], "extreme "))?;
            matches(same(&figures(&found), &figures(&want), "figure "))?;
            if found.integer_sum != want.integer_sum {
                let text = format!("sum is {:?} instead of {:?}", found.integer_sum, want.integer_sum);
                matches(Err(Failure::Mismatch(text)))?;
            }
        }
        let sum = found.integer_sum.map_or(found.sum.to_string(), |sum| sum.to_string());
        let lines = [
            ("count", found.count.to_string()),
            ("NaN", found.nan.to_string()),
            ("min", at_index(found.min)),
            ("max", at_index(found.max)),
            ("sum", sum),
            ("mean", found.mean.to_string()),
            ("variance", found.variance.to_string()),
        ];
        let text: Vec<_> = lines.iter().map(|(name, value)| format!("{name:8}  {value}")).collect();
        self.common.finish(&Array::of("<f8", &[7], &figures(&found)), text.join("\n"), out)
    }
}

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
struct ScanOf {
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
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
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

const SORT_EXAMPLES: &str = "\
Examples:
  oclprim run sort samples.npy -o sorted.npy
  oclprim run sort samples.npy --descending --device opencl --verify
  oclprim run sort samples.npy --indices -o places.npy";

/// Sort all elements of an array, of any shape.
///
/// NaN are behind all other numbers, those with a minus sign before them; -0 is before +0. With -o, the sorted elements are
/// written as an array of one dimension, or with --indices the places where they were, as int64; equal elements keep their
/// order.
#[derive(Args)]
#[command(after_help = SORT_EXAMPLES)]
struct Sort {
    #[command(flatten)]
    common: Common,
    /// From the largest to the smallest.
    #[arg(long)]
    descending: bool,
    /// The elements' places instead of the elements.
    #[arg(long)]
    indices: bool,
}

impl Sort {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "sort")?;
        let device = self.common.device.open()?;
        with_element!(element, T => self.sort::<T>(&array, &array.elements(), &device, out))
    }

    fn sort<T: Element>(&self, array: &Array, input: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let (order, shape) = (order(self.descending), [input.len()]);
        if self.indices {
            let places = device.argsort::<T, u64>(input, order.clone())?.to_vec()?;
            if self.common.verify {
                matches(same(&places, &Device::cpu().argsort::<T, u64>(input, order)?.to_vec()?, "index "))?;
            }
            let text = in_words(&places, &shape, "<i8", device);
            return self.common.finish(&Array::of("<i8", &shape, &places), text, out);
        }
        let sorted = device.sort(input, order.clone())?.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&sorted, &Device::cpu().sort(input, order)?.to_vec()?, "element "))?;
        }
        self.common.finish(&array.like(&shape, &sorted), in_words(&sorted, &shape, &array.type_name(), device), out)
    }
}

const SELECT_EXAMPLES: &str = "\
Examples:
  oclprim run select samples.npy --above 1.5 -o large.npy
  oclprim run select samples.npy --above 0 --below 4 --indices --verify
  oclprim run select bytes.npy --flags flags.npy --device opencl
  oclprim run select labels.npy --others -o parted.npy";

/// Select elements of an array, of any shape, in their order.
///
/// Without a condition, those that are not 0; with several, those for which all hold. NaN is neither above nor below. The
/// result has one dimension; with -o, places are written as int64.
#[derive(Args)]
#[command(after_help = SELECT_EXAMPLES)]
struct Select {
    #[command(flatten)]
    common: Common,
    /// Elements above this.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    above: Option<String>,
    /// Elements below this.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    below: Option<String>,
    /// Elements whose flags are not 0: as many bytes or truth values.
    #[arg(long, value_name = "FLAGS.npy", conflicts_with_all = ["above", "below"])]
    flags: Option<PathBuf>,
    /// The elements' places instead of the elements.
    #[arg(long)]
    indices: bool,
    /// The other elements behind those that are selected, in their order too.
    #[arg(long, conflicts_with = "indices")]
    others: bool,
}

/// What was selected.
enum Selected<T: Element> {
    Elements(Vec<T>),
    Places(Vec<u64>),
}

/// A value in OpenCL C, by its bits.
fn literal<T: Element>(value: T) -> String {
    let mut bits = [0; 8];
    bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    let bits = u64::from_le_bytes(bits);
    let (name, unsigned) = match T::TYPE {
        ElementType::F32 => ("float", "uint"),
        ElementType::F64 => ("double", "ulong"),
        ElementType::I8 | ElementType::U8 => (if T::TYPE.is_signed() { "char" } else { "uchar" }, "uchar"),
        ElementType::I16 | ElementType::U16 => (if T::TYPE.is_signed() { "short" } else { "ushort" }, "ushort"),
        ElementType::I32 | ElementType::U32 => (if T::TYPE.is_signed() { "int" } else { "uint" }, "uint"),
        _ => (if T::TYPE.is_signed() { "long" } else { "ulong" }, "ulong"),
    };
    format!("as_{name}(({unsigned}){bits:#x})")
}

impl Select {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "select")?;
        let flags = self.flags.as_deref().map(|path| flags(path, &array)).transpose()?;
        let device = self.common.device.open()?;
        with_element!(element, T => self.select::<T>(&array, &array.elements(), flags.as_deref(), &device, out))
    }

    fn select<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        flags: Option<&[u8]>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let bound = |option, text: &Option<String>| -> Result<_, Stop> {
            Ok(text.as_deref().map(|text| parse::<T>(option, text)).transpose()?.map(T::widen))
        };
        let (above, below) = (bound("--above", &self.above)?, bound("--below", &self.below)?);
        let either = above.is_some() || below.is_some();
        let text = [
            above.map(|bound| format!("x > {}", literal(bound))),
            below.map(|bound| format!("x < {}", literal(bound))),
        ];
        let text = if either { text.into_iter().flatten().collect::<Vec<_>>().join(" && ") } else { "x != 0".into() };
        let holds = |x: T::Acc| {
            let within = above.is_none_or(|bound| x > bound) && below.is_none_or(|bound| x < bound);
            if either { within } else { x != <T::Acc as Element>::ZERO }
        };
        let map = op::Map::new(holds, text);
        let run = |device: &Device| -> oclprim::Result<Selected<T>> {
            Ok(match (flags, self.indices, self.others) {
                (None, false, false) => Selected::Elements(device.select(input, &map)?.to_vec()?),
                (None, false, true) => Selected::Elements(device.partition(input, &map)?.0.to_vec()?),
                (None, true, _) => Selected::Places(device.select_indices::<T, u64, _>(input, &map)?.to_vec()?),
                (Some(flags), false, false) => Selected::Elements(device.select_flagged(input, flags)?.to_vec()?),
                (Some(flags), false, true) => Selected::Elements(device.partition_flagged(input, flags)?.0.to_vec()?),
                (Some(flags), true, _) => Selected::Places(device.select_indices_flagged::<u64>(flags)?.to_vec()?),
            })
        };
        let found = run(device)?;
        if self.common.verify {
            matches(match (&found, &run(&Device::cpu())?) {
                (Selected::Elements(found), Selected::Elements(want)) => same_bytes(found, want, "element "),
                (Selected::Places(found), Selected::Places(want)) => same_bytes(found, want, "place "),
                _ => unreachable!("both are of one kind"),
            })?;
        }
        match found {
            Selected::Elements(found) => {
                self.common.finish_line(&array.like(&[found.len()], &found), &found, device, out)
            }
            Selected::Places(places) => {
                self.common.finish_line(&Array::of("<i8", &[places.len()], &places), &places, device, out)
            }
        }
    }
}

/// Flags for the elements of `array`.
fn flags(path: &Path, array: &Array) -> Result<Vec<u8>, Stop> {
    let flags = Array::read(path)?;
    let (path, ty, n) = (path.display(), flags.type_name(), flags.lengths().iter().product::<usize>());
    if flags.size != 1 {
        return Err(Stop::usage(format!("{path}: flags are bytes or truth values, not {ty}")));
    }
    let elements = array.lengths().iter().product::<usize>();
    if n != elements {
        return Err(Stop::usage(format!("{path}: {n} flags for {elements} elements")));
    }
    Ok(flags.elements())
}

const UNIQUE_EXAMPLES: &str = "\
Examples:
  oclprim run unique labels.npy
  oclprim run unique samples.npy --device opencl --verify -o runs.npy";

/// Take the first of each run of equal neighbours, in an array of any shape.
///
/// NaN equals nothing, -0 equals +0. Of a sorted array these are its distinct elements.
#[derive(Args)]
#[command(after_help = UNIQUE_EXAMPLES)]
struct Unique {
    #[command(flatten)]
    common: Common,
}

impl Unique {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "unique")?;
        let device = self.common.device.open()?;
        with_element!(element, T => {
            let input = array.elements::<T>();
            let found = device.unique(&input)?.to_vec()?;
            if self.common.verify {
                matches(same_bytes(&found, &Device::cpu().unique(&input)?.to_vec()?, "element "))?;
            }
            self.common.finish_line(&array.like(&[found.len()], &found), &found, &device, out)
        })
    }
}

const RLE_EXAMPLES: &str = "\
Examples:
  oclprim run rle labels.npy
  oclprim run rle labels.npy -o values.npy --lengths lengths.npy --verify";

/// Encode an array, of any shape, by its runs: the first element of each run of equal neighbours, and the run's length.
///
/// NaN equals nothing, -0 equals +0.
#[derive(Args)]
#[command(after_help = RLE_EXAMPLES)]
struct Rle {
    #[command(flatten)]
    common: Common,
    /// Write the lengths to this .npy file, as uint64, instead of printing them.
    #[arg(long, value_name = "LENGTHS.npy")]
    lengths: Option<PathBuf>,
}

impl Rle {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "rle")?;
        let device = self.common.device.open()?;
        with_element!(element, T => {
            let input = array.elements::<T>();
            let encode = |device: &Device| -> oclprim::Result<_> {
                let (values, lengths) = device.run_length_encode::<T, u64>(&input)?;
                Ok((values.to_vec()?, lengths.to_vec()?))
            };
            let (values, lengths) = encode(&device)?;
            if self.common.verify {
                let want = encode(&Device::cpu())?;
                matches(same_bytes(&values, &want.0, "value "))?;
                matches(same(&lengths, &want.1, "length "))?;
            }
            let shape = [values.len()];
            self.common.finish_line(&array.like(&shape, &values), &values, &device, out)?;
            match &self.lengths {
                Some(path) => Array::of("<u8", &shape, &lengths).write(path),
                None => Ok(writeln!(out, "{}", in_words(&lengths, &shape, "<u8", &device))?),
            }
        })
    }
}

const TOPK_EXAMPLES: &str = "\
Examples:
  oclprim run topk scores.npy --k 100 --sorted
  oclprim run topk distances.npy --k 10 --smallest --indices -o nearest.npy --verify
  oclprim run topk matrix.npy --k 3 --rows --device opencl";

/// Take the k largest elements of an array of any shape, or of each row.
///
/// NaN are larger than all other numbers, those with a minus sign smaller; -0 is below +0. Of equal elements the first are taken.
/// Without --sorted they are in the order of the file. With -o, the elements are written, or with --indices the places where they
/// were, as int64; with --rows there are k for each row.
#[derive(Args)]
#[command(after_help = TOPK_EXAMPLES)]
struct TopK {
    #[command(flatten)]
    common: Common,
    /// How many.
    #[arg(long, value_parser = crate::options::size)]
    k: usize,
    /// The largest, which they are without further words.
    #[arg(long, conflicts_with = "smallest")]
    largest: bool,
    /// The smallest.
    #[arg(long)]
    smallest: bool,
    /// The first of them first, instead of the order of the file.
    #[arg(long)]
    sorted: bool,
    /// So many of each row along the last axis.
    #[arg(long)]
    rows: bool,
    /// The elements' places instead of the elements; with --rows in their row.
    #[arg(long)]
    indices: bool,
}

impl TopK {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "topk")?;
        let axis = if self.rows { Some(self.common.axis(&array, -1)?) } else { None };
        let top = if self.smallest { Top::smallest(self.k) } else { Top::largest(self.k) };
        let top = if self.sorted { top.sorted() } else { top };
        let (mut shape, top) = match axis {
            Some(axis) => (array.lengths(), top.in_rows(array.lengths()[axis])),
            None => (vec![0], top),
        };
        if let Some(last) = shape.last_mut() {
            *last = self.k;
        }
        let device = self.common.device.open()?;
        with_element!(element, T => self.take::<T>(&array, &array.elements(), (top, &shape), &device, out))
    }

    fn take<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        (top, shape): (Top, &[usize]),
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        if self.indices {
            let places = device.top_k_places::<T, u64>(input, top)?.1.to_vec()?;
            if self.common.verify {
                let want = Device::cpu().top_k_places::<T, u64>(input, top)?.1.to_vec()?;
                matches(same(&places, &want, "index "))?;
            }
            let text = in_words(&places, shape, "<i8", device);
            return self.common.finish(&Array::of("<i8", shape, &places), text, out);
        }
        let taken = device.top_k(input, top)?.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&taken, &Device::cpu().top_k(input, top)?.to_vec()?, "element "))?;
        }
        self.common.finish(&array.like(shape, &taken), in_words(&taken, shape, &array.type_name(), device), out)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Linear,
    Lower,
    Higher,
    Nearest,
    Midpoint,
}

const QUANTILE_EXAMPLES: &str = "\
Examples:
  oclprim run quantile samples.npy --q 0.5
  oclprim run quantile samples.npy --q 0.05,0.95 --method nearest --device opencl --verify";

/// Quantiles of all elements of an array, as numpy.quantile has them.
///
/// They are computed as float64, and with -o written so. Where any element is NaN, all quantiles are.
#[derive(Args)]
#[command(after_help = QUANTILE_EXAMPLES)]
struct Quantile {
    #[command(flatten)]
    common: Common,
    /// Which ones: 0 is the smallest element, 0.5 the median, 1 the largest.
    #[arg(long, value_name = "Q,...", value_delimiter = ',', required = true)]
    q: Vec<f64>,
    /// What a quantile between two elements is.
    #[arg(long, value_enum, default_value_t = Method::Linear)]
    method: Method,
}

impl Quantile {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "quantile")?;
        let device = self.common.device.open()?;
        let values = with_element!(element, T => self.of::<T>(&array.elements(), &device)?);
        let shape = [values.len()];
        self.common.finish(&Array::of("<f8", &shape, &values), in_words(&values, &shape, "<f8", &device), out)
    }

    fn of<T: Element>(&self, input: &[T], device: &Device) -> Result<Vec<f64>, Stop> {
        let how = match self.method {
            Method::Linear => Interpolation::Linear,
            Method::Lower => Interpolation::Lower,
            Method::Higher => Interpolation::Higher,
            Method::Nearest => Interpolation::Nearest,
            Method::Midpoint => Interpolation::Midpoint,
        };
        let values = device.quantiles(input, &self.q, how)?;
        if self.common.verify {
            matches(same(&values, &Device::cpu().quantiles(input, &self.q, how)?, "quantile "))?;
        }
        Ok(values)
    }
}

/// Runs an expression with `$T` bound to a plain type of `$size` bytes, of 1 to 16; `$other` for the rest.
macro_rules! with_size {
    ($size:expr, $T:ident => $body:expr, $other:expr) => {
        with_size!(@ $size, $T, $body, $other, 1 u8, 2 u16, 4 u32, 8 u64, 16 u128, 3 [u8; 3], 5 [u8; 5], 6 [u16; 3],
            7 [u8; 7], 9 [u8; 9], 10 [u16; 5], 11 [u8; 11], 12 [u32; 3], 13 [u8; 13], 14 [u16; 7], 15 [u8; 15])
    };
    (@ $size:expr, $T:ident, $body:expr, $other:expr, $($bytes:literal $ty:ty),*) => {
        match $size {
            $( $bytes => { type $T = $ty; $body } )*
            _ => $other,
        }
    };
}

const TRANSPOSE_EXAMPLES: &str = "\
Examples:
  oclprim run transpose matrix.npy -o transposed.npy
  oclprim run transpose matrix.npy --device opencl --verify
  oclprim run transpose volume.npy -o matrices.npy
  oclprim run transpose matrix.npy --cast f32 --scale 0.5 -o halves.npy";

/// Turn the rows of a matrix into its columns; elements of 1 to 16 bytes.
///
/// Of 3 dimensions the first one counts matrices, each of which is turned. In the same pass elements become those of another
/// type, or a multiple: --scale is taken in the type of the result, and applied to what the element is in it. Floats become
/// integers that saturate, NaN 0; integers wrap.
#[derive(Args)]
#[command(after_help = TRANSPOSE_EXAMPLES)]
struct Transpose {
    #[command(flatten)]
    common: Common,
    /// Write elements of this type: i8 to i64, u8 to u64, f16, f32 or f64.
    #[arg(long, value_name = "TYPE")]
    cast: Option<ElementType>,
    /// Multiply each element.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    scale: Option<String>,
}

impl Transpose {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = Array::read(&self.common.input)?;
        let mut shape = array.lengths();
        let (count, rows, cols) = match shape[..] {
            [rows, cols] => (1, rows, cols),
            [count, rows, cols] => (count, rows, cols),
            _ => return Err(Stop::usage(format!("{path}: transpose takes 2 or 3 dimensions, not {}", shape.len()))),
        };
        let last = shape.len() - 2;
        shape[last..].reverse();
        let device = self.common.device.open()?;
        let turned = if self.cast.is_some() || self.scale.is_some() {
            if shape.len() > 2 {
                return Err(Stop::usage(format!("{path}: --cast and --scale take 2 dimensions, not 3")));
            }
            let from = self.common.element(&array, "transpose with --cast or --scale")?;
            let to = self.cast.unwrap_or(from);
            if to == ElementType::Bf16 {
                return Err(Stop::usage("--cast: .npy has no bf16"));
            }
            with_element!(from, T => with_element!(to, U => self.mapped::<T, U>(&array, (rows, cols), &device)?))
        } else {
            let matrices = Matrices::new(rows, cols).count(count);
            with_size!(array.size, T => self.transpose::<T>(&array, &matrices, &shape, &device)?, {
                let (ty, size) = (array.type_name(), array.size);
                return Err(Stop::usage(format!("{path}: transpose takes elements of 1 to 16 bytes, {ty} has {size}")));
            })
        };
        let lengths: Vec<_> = shape.iter().map(usize::to_string).collect();
        let (lengths, ty, device) = (lengths.join(" x "), turned.type_name(), device.info());
        let text = format!("{lengths} {ty} on {device}; -o writes it to a file");
        self.common.finish(&turned, text, out)
    }

    fn transpose<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        matrices: &Matrices,
        shape: &[usize],
        device: &Device,
    ) -> Result<Array, Stop> {
        let input = array.elements::<T>();
        let turned = device.transpose_batch(&input, matrices)?.to_vec()?;
        if self.common.verify {
            let want = Device::cpu().transpose_batch(&input, matrices)?.to_vec()?;
            matches(same_bytes(&turned, &want, "element "))?;
        }
        Ok(array.like(shape, &turned))
    }

    fn mapped<T: Element, U: Element>(
        &self,
        array: &Array,
        (rows, cols): (usize, usize),
        device: &Device,
    ) -> Result<Array, Stop> {
        let input = array.elements::<T>();
        let factor = self.scale.as_deref().map(|text| parse::<U::Acc>("--scale", text)).transpose()?;
        let run = |device: &Device| match factor {
            Some(factor) => device.transpose_map::<T, U>(&input, rows, cols, &op::Scale(factor))?.to_vec(),
            None => device.transpose_map::<T, U>(&input, rows, cols, &op::Cast)?.to_vec(),
        };
        let turned = run(device)?;
        if self.common.verify {
            matches(same(&turned, &run(&Device::cpu())?, "element "))?;
        }
        Ok(Array::of(numpy_name(U::TYPE), &[cols, rows], &turned))
    }
}

const PERMUTE_EXAMPLES: &str = "\
Examples:
  oclprim run permute volume.npy --axes 2,0,1 -o permuted.npy
  oclprim run permute matrix.npy --axes 1,0 --device opencl --verify";

/// Put the axes of an array in another order; elements of 1 to 16 bytes.
#[derive(Args)]
#[command(after_help = PERMUTE_EXAMPLES)]
struct Permute {
    #[command(flatten)]
    common: Common,
    /// The axes in their new order, as in numpy.transpose: 0 is the first one, -1 the last.
    #[arg(long, value_name = "K,...", value_delimiter = ',', required = true, allow_hyphen_values = true)]
    axes: Vec<i64>,
}

impl Permute {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let path = self.common.input.display();
        let array = Array::read(&self.common.input)?;
        let axes: Vec<usize> =
            self.axes.iter().map(|&number| self.common.axis(&array, number)).collect::<Result<_, _>>()?;
        let device = self.common.device.open()?;
        let (permuted, shape) = with_size!(array.size, T => self.permute::<T>(&array, &axes, &device)?, {
            let (ty, size) = (array.type_name(), array.size);
            return Err(Stop::usage(format!("{path}: permute takes elements of 1 to 16 bytes, {ty} has {size}")));
        });
        let text = format!("{shape:?} {} on {}; -o writes it to a file", array.type_name(), device.info());
        self.common.finish(&permuted, text, out)
    }

    fn permute<T: Pod + std::fmt::Debug>(
        &self,
        array: &Array,
        axes: &[usize],
        device: &Device,
    ) -> Result<(Array, Vec<usize>), Stop> {
        let input = array.elements::<T>();
        let view = Input::from(&input).nd(&array.lengths())?;
        let shape = view.permute(axes)?.shape().to_vec();
        let permuted = device.permute(view, axes)?.to_vec()?;
        if self.common.verify {
            matches(same_bytes(&permuted, &Device::cpu().permute(view, axes)?.to_vec()?, "element "))?;
        }
        Ok((array.like(&shape, &permuted), shape))
    }
}

const HISTOGRAM_EXAMPLES: &str = "\
Examples:
  oclprim run histogram labels.npy --bins 10
  oclprim run histogram heights.npy --bins 20 --range 1.5 2.0 --closed -o counts.npy
  oclprim run histogram levels.npy --bins 2^8 --range -32768 32767 --closed --verify
  oclprim run histogram heights.npy --edges edges.npy --weights weights.npy
  oclprim run histogram pixels.npy --channels -o counts.npy";

/// Count the samples in each bin.
///
/// Integers are bin numbers from 0 on, unless there is a --range. Floats are counted in bins of equal width; without a
/// --range these go from the smallest to the largest sample, which is in the last bin, as in numpy.histogram. With
/// --edges the last bin has its upper edge, too. With -o, the counts are written as uint64, sums of weights as int64, uint64
/// or float64, as the weights are. With --channels there is a row of bins for each channel.
/// Samples outside the bins are reported on standard error.
#[derive(Args)]
#[command(after_help = HISTOGRAM_EXAMPLES)]
struct HistogramOf {
    #[command(flatten)]
    common: Common,
    /// How many bins.
    #[arg(long, value_parser = crate::options::size, default_value = "256")]
    bins: usize,
    /// The lower edge of the first bin and the upper edge of the last.
    #[arg(long, num_args = 2, value_names = ["LO", "HI"], allow_negative_numbers = true)]
    range: Option<Vec<String>>,
    /// Count a sample that equals HI in the last bin.
    #[arg(long, requires = "range")]
    closed: bool,
    /// The edges of the bins, one more than there are bins: an array of the samples' type.
    #[arg(long, value_name = "EDGES.npy", conflicts_with_all = ["range", "bins"])]
    edges: Option<PathBuf>,
    /// Add up a weight for each sample: integers in 64 bits, floats as doubles.
    #[arg(long, value_name = "WEIGHTS.npy")]
    weights: Option<PathBuf>,
    /// A histogram for each of the 1 to 4 channels along the last axis, all with the same bins.
    #[arg(long, conflicts_with = "weights")]
    channels: bool,
}

/// The samples below, above and nowhere.
fn outside(found: &Histogram) -> [u64; 3] {
    [found.outside.below, found.outside.above, found.outside.nan]
}

fn same_counts(found: &Histogram, want: &Histogram) -> Result<(), Stop> {
    matches(same(&found.counts, &want.counts, "bin "))?;
    matches(same(&outside(found), &outside(want), "outside "))
}

/// What was counted, and the parts of it that lie below, above and nowhere.
struct Found {
    array: Array,
    text: String,
    outside: [String; 3],
}

impl HistogramOf {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "histogram")?;
        let channels = if self.channels { Some(array.lengths()[self.common.axis(&array, -1)?]) } else { None };
        let device = self.common.device.open()?;
        let found = with_element!(element, T => self.count::<T>(&array.elements(), channels, &device)?);
        let unit = if self.weights.is_some() { "of weight" } else { "samples" };
        for (amount, place) in found.outside.iter().zip(["below the first bin", "above the last", "NaN"]) {
            if amount != "0" {
                // With no standard error left there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "{amount} {unit} {place}");
            }
        }
        self.common.finish(&found.array, found.text, out)
    }

    fn count<T: Element>(&self, input: &[T], channels: Option<usize>, device: &Device) -> Result<Found, Stop> {
        if let Some(path) = &self.edges {
            let bins = Bins::edges(&self.elements::<T>(path)?)?.closed();
            return self.counted(input, &bins, channels, device);
        }
        let bins = match &self.range {
            Some(range) => self.even(parse::<T>("--range", &range[0])?, parse::<T>("--range", &range[1])?)?,
            None if T::TYPE.is_float() => self.fitted(input, device)?,
            None => with_integer!(T::TYPE, I => {
                let found = self.counted::<I>(bytemuck::cast_slice(input), &Bins::ids(self.bins)?, channels, device)?;
                return Ok(found);
            }, unreachable!("floats are above")),
        };
        self.counted(input, &bins, channels, device)
    }

    fn even<T: Element>(&self, lower: T, upper: T) -> Result<Bins<T>, Stop> {
        let bins = Bins::even(lower, upper, self.bins)?;
        Ok(if self.closed { bins.closed() } else { bins })
    }

    /// Bins from the smallest to the largest sample.
    fn fitted<T: Element>(&self, input: &[T], device: &Device) -> Result<Bins<T>, Stop> {
        if input.is_empty() {
            return Err(Stop::usage("there are no samples from which to take a range: give one with --range"));
        }
        let (lower, upper) = (device.reduce(input, op::Min)?, device.reduce(input, op::Max)?);
        match Bins::even(lower, upper, self.bins) {
            Ok(bins) => Ok(bins.closed()),
            Err(error) => {
                let text = format!("samples from {lower} to {upper} give no range: give one with --range ({error})");
                Err(Stop::usage(text))
            }
        }
    }

    /// The elements of a file of the samples' type.
    fn elements<T: Element>(&self, path: &Path) -> Result<Vec<T>, Stop> {
        let array = Array::read(path)?;
        if array.element() != Some(T::TYPE) {
            let (path, ty) = (path.display(), array.type_name());
            return Err(Stop::usage(format!("{path}: elements are {ty}, those of the samples {}", T::TYPE)));
        }
        Ok(array.elements())
    }

    fn counted<T: Element>(
        &self,
        input: &[T],
        bins: &Bins<T>,
        channels: Option<usize>,
        device: &Device,
    ) -> Result<Found, Stop> {
        if let Some(channels) = channels {
            return self.of_channels(input, bins, channels, device);
        }
        if let Some(path) = &self.weights {
            let array = Array::read(path)?;
            let element = self.common.element(&array, "histogram")?;
            // Of each kind the widest, which holds the others.
            return with_integer!(element, W => {
                let integers = array.elements::<W>().into_iter().map(Integer::to_i128);
                if element.is_signed() {
                    self.weighed(input, &integers.map(|w| w as i64).collect::<Vec<_>>(), bins, device)
                } else {
                    self.weighed(input, &integers.map(|w| w as u64).collect::<Vec<_>>(), bins, device)
                }
            }, {
                let floats: Vec<f64> =
                    with_element!(element, W => array.elements::<W>().into_iter().map(Element::to_f64).collect());
                self.weighed(input, &floats, bins, device)
            });
        }
        let found = device.histogram(input, bins)?;
        if self.common.verify {
            same_counts(&found, &Device::cpu().histogram(input, bins)?)?;
        }
        Ok(Found {
            array: Array::of("<u8", &[found.counts.len()], &found.counts),
            text: counts_in_words(&found.counts),
            outside: outside(&found).map(|count| count.to_string()),
        })
    }

    /// The same bins for each channel; what lies outside is that of all together.
    fn of_channels<T: Element>(
        &self,
        input: &[T],
        bins: &Bins<T>,
        channels: usize,
        device: &Device,
    ) -> Result<Found, Stop> {
        let all = vec![bins.clone(); channels];
        let found = device.histogram_channels(input, channels, &all)?;
        if self.common.verify {
            let want = Device::cpu().histogram_channels(input, channels, &all)?;
            found.iter().zip(&want).try_for_each(|(found, want)| same_counts(found, want))?;
        }
        let counts: Vec<u64> = found.iter().flat_map(|found| found.counts.iter().copied()).collect();
        let lines: Vec<_> = found.iter().map(|found| counts_in_words(&found.counts)).collect();
        let sums = found.iter().map(outside).fold([0; 3], |sums, next| [0, 1, 2].map(|i| sums[i] + next[i]));
        Ok(Found {
            array: Array::of("<u8", &[channels, bins.len()], &counts),
            text: lines.join("\n"),
            outside: sums.map(|count| count.to_string()),
        })
    }

    fn weighed<T: Element, W: Weight>(
        &self,
        input: &[T],
        weights: &[W],
        bins: &Bins<T>,
        device: &Device,
    ) -> Result<Found, Stop> {
        let found = device.histogram_weighted(input, weights, bins)?;
        let outside = |found: &WeightedHistogram<W::Sum>| [found.below, found.above, found.nan];
        if self.common.verify {
            let want = Device::cpu().histogram_weighted(input, weights, bins)?;
            matches(same(&found.sums, &want.sums, "bin "))?;
            matches(same(&outside(&found), &outside(&want), "outside "))?;
        }
        let words: Vec<_> = found.sums.iter().map(W::Sum::to_string).collect();
        Ok(Found {
            array: Array::of(numpy_name(<W::Sum as Element>::TYPE), &[found.sums.len()], &found.sums),
            text: words.join(" "),
            outside: outside(&found).map(|sum| sum.to_string()),
        })
    }
}

/// The argument of an option, which has to be a value of the type.
fn parse<T: Element>(option: &str, text: &str) -> Result<T, Stop> {
    let wrong = || Stop::usage(format!("{option}: `{text}` is not a value of type {}", T::TYPE));
    with_integer!(T::TYPE, I => {
        let value: i128 = text.parse().map_err(|_| wrong())?;
        let integer = I::from_i128(value);
        if integer.to_i128() == value { Ok(bytemuck::cast(integer)) } else { Err(wrong()) }
    }, text.parse().map(T::from_f64).map_err(|_| wrong()))
}

fn counts_in_words(counts: &[u64]) -> String {
    const SHOWN: usize = 64;
    if counts.len() <= SHOWN {
        let words: Vec<_> = counts.iter().map(u64::to_string).collect();
        return words.join(" ");
    }
    let total: u64 = counts.iter().sum();
    let (fullest, most) = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
    let empty = counts.iter().filter(|&&count| count == 0).count();
    let bins = counts.len();
    format!(
        "{total} samples in {bins} bins: {most} in bin {fullest}, the fullest; {empty} empty; -o writes them to a file"
    )
}

const COPY_EXAMPLES: &str = "\
Examples:
  oclprim run copy samples.npy -o copy.npy
  oclprim run copy samples.npy --device 1 --verify";

/// Copy an array to the device, there, and back; elements of any size.
#[derive(Args)]
#[command(after_help = COPY_EXAMPLES)]
struct Copy {
    #[command(flatten)]
    common: Common,
}

impl Copy {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
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
struct Reverse {
    #[command(flatten)]
    common: Common,
}

impl Reverse {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
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
struct Gather {
    #[command(flatten)]
    common: Common,
    /// The places: integers of 4 or 8 bytes.
    #[arg(long, value_name = "INDICES.npy")]
    indices: PathBuf,
}

impl Gather {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
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

/// Another file of the same type.
fn second<T: Element>(first: (&Path, &Array), path: &Path) -> Result<Array, Stop> {
    let array = Array::read(path)?;
    if array.element() != Some(T::TYPE) {
        let (path, ty) = (path.display(), array.type_name());
        let (first, wanted) = (first.0.display(), first.1.type_name());
        return Err(Stop::usage(format!("{path} has elements of {ty}, {first} of {wanted}")));
    }
    Ok(array)
}

/// Refuses elements that are not in order.
fn in_order<T: Element>(path: &Path, x: &[T], order: &Sorted, device: &Device) -> Result<(), Stop> {
    match device.first_unsorted(x, order)? {
        None => Ok(()),
        Some(at) => {
            let path = path.display();
            Err(Stop::usage(format!("{path} is not sorted: element {at} comes before the one in front of it")))
        }
    }
}

fn order(descending: bool) -> Sorted {
    if descending { Sorted::descending() } else { Sorted::ascending() }
}

const MERGE_EXAMPLES: &str = "\
Examples:
  oclprim run merge sorted.npy --with more.npy -o all.npy
  oclprim run merge sorted.npy --with more.npy --keep intersection --verify";

/// Which elements of both are kept.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Keep {
    /// All.
    All,
    /// Those of the first, and what the second has more of.
    Union,
    /// What both have.
    Intersection,
    /// What the first has more of.
    Difference,
    /// What either has more of.
    SymmetricDifference,
}

impl Keep {
    fn op(self) -> Option<SetOp> {
        match self {
            Self::All => None,
            Self::Union => Some(SetOp::Union),
            Self::Intersection => Some(SetOp::Intersection),
            Self::Difference => Some(SetOp::Difference),
            Self::SymmetricDifference => Some(SetOp::SymmetricDifference),
        }
    }
}

/// Merge two sorted arrays into one, or keep their union, intersection or difference.
///
/// Equal elements count as often as they occur: of 3 and 2 the union has 3, the intersection 2, the difference 1. The order
/// is that of `run sort`; the result has one dimension.
#[derive(Args)]
#[command(after_help = MERGE_EXAMPLES)]
struct Merge {
    #[command(flatten)]
    common: Common,
    /// The other array.
    #[arg(long, value_name = "MORE.npy")]
    with: PathBuf,
    /// Which elements to keep.
    #[arg(long, value_enum, default_value_t = Keep::All)]
    keep: Keep,
    /// Both are sorted from the largest to the smallest.
    #[arg(long)]
    descending: bool,
}

impl Merge {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "merge")?;
        let device = self.common.device.open()?;
        with_element!(element, T => self.merge::<T>(&array, &array.elements(), &device, out))
    }

    fn merge<T: Element>(&self, array: &Array, a: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let (path, order) = (&self.common.input, order(self.descending));
        let b = second::<T>((path, array), &self.with)?.elements::<T>();
        in_order(path, a, &order, device)?;
        in_order(&self.with, &b, &order, device)?;
        let merged = |device: &Device| match self.keep.op() {
            None => device.merge(a, &b, &order)?.to_vec(),
            Some(op) => device.set_operation(op, a, &b, &order)?.to_vec(),
        };
        let result = merged(device)?;
        if self.common.verify {
            matches(same_bytes(&result, &merged(&Device::cpu())?, "element "))?;
        }
        let shape = [result.len()];
        self.common.finish(&array.like(&shape, &result), in_words(&result, &shape, &array.type_name(), device), out)
    }
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  oclprim run search sorted.npy --needles samples.npy -o places.npy
  oclprim run search sorted.npy --needles samples.npy --upper --device opencl --verify";

/// Find where elements belong in a sorted array, as numpy.searchsorted does.
///
/// The place of each needle is that of the first element that does not come before it, or with --upper that of the first
/// that comes after it, as int64 in the shape of the needles. The order is that of `run sort`.
#[derive(Args)]
#[command(after_help = SEARCH_EXAMPLES)]
struct Search {
    #[command(flatten)]
    common: Common,
    /// What to search for.
    #[arg(long, value_name = "NEEDLES.npy")]
    needles: PathBuf,
    /// Behind equal elements instead of before them.
    #[arg(long)]
    upper: bool,
    /// The array is sorted from the largest to the smallest.
    #[arg(long)]
    descending: bool,
}

impl Search {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = Array::read(&self.common.input)?;
        let element = self.common.element(&array, "search")?;
        let device = self.common.device.open()?;
        with_element!(element, T => self.search::<T>(&array, &array.elements(), &device, out))
    }

    fn search<T: Element>(&self, array: &Array, range: &[T], device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let (path, order) = (&self.common.input, order(self.descending));
        let needles = second::<T>((path, array), &self.needles)?;
        let (shape, needles) = (needles.lengths(), needles.elements::<T>());
        in_order(path, range, &order, device)?;
        let found = |device: &Device| match self.upper {
            false => device.lower_bound::<T, u64, _>(range, &needles, &order)?.to_vec(),
            true => device.upper_bound::<T, u64, _>(range, &needles, &order)?.to_vec(),
        };
        let places = found(device)?;
        if self.common.verify {
            matches(same(&places, &found(&Device::cpu())?, "place "))?;
        }
        let text = in_words(&places, &shape, "<i8", device);
        self.common.finish(&Array::of("<i8", &shape, &places), text, out)
    }
}

const RANDOM_EXAMPLES: &str = "\
Examples:
  oclprim run random 1000000 --type f32 --seed 7 -o uniform.npy
  oclprim run random 100 --type u8 --range 1 6
  oclprim run random 2^20 --type u32 --seed 7 --stream 3 --skip 4096 --device opencl --verify";

/// Make random numbers: Philox4x32-10, the same on every device.
///
/// Integers have all values, or those of a range with both its ends; floats are in [0, 1), or from the start of a range up to
/// below its end.
#[derive(Args)]
#[command(after_help = RANDOM_EXAMPLES)]
struct Random {
    /// How many.
    #[arg(value_name = "N", value_parser = crate::options::size)]
    n: usize,
    /// The type of the numbers: i8 to i64, u8 to u64, f16, f32 or f64.
    #[arg(long = "type", value_name = "TYPE", default_value = "f64")]
    element: ElementType,
    /// The key of the generator.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// One of the streams of a seed.
    #[arg(long, default_value_t = 0)]
    stream: u64,
    /// Leave out so many numbers of the stream.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    skip: u64,
    /// In a range.
    #[arg(long, num_args = 2, value_names = ["LO", "HI"], allow_negative_numbers = true)]
    range: Option<Vec<String>>,
    /// Write the result to this .npy file instead of printing it.
    #[arg(short, long, value_name = "OUT.npy")]
    output: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Make them on the CPU as well, and compare; the exit code is 1 if they differ.
    #[arg(long)]
    verify: bool,
}

impl Random {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        if self.element == ElementType::Bf16 {
            return Err(Stop::usage("--type: .npy has no bf16"));
        }
        let device = self.device.open()?;
        with_element!(self.element, T => {
            let values = self.make::<T>(&device)?;
            if self.verify {
                matches(same_bytes(&values, &self.make::<T>(&Device::cpu())?, "element "))?;
            }
            let (shape, name) = ([values.len()], numpy_name(T::TYPE));
            match &self.output {
                Some(path) => Array::of(name, &shape, &values).write(path),
                None => Ok(writeln!(out, "{}", in_words(&values, &shape, name, &device))?),
            }
        })
    }

    fn make<T: Element>(&self, device: &Device) -> Result<Vec<T>, Stop> {
        let numbers = Philox::new(self.seed).stream(self.stream).skip(self.skip);
        let Some(range) = &self.range else {
            return Ok(device.random(self.n, numbers)?.to_vec()?);
        };
        let (low, high) = (parse::<T>("--range", &range[0])?, parse::<T>("--range", &range[1])?);
        let values = if T::TYPE.is_float() {
            device.random_in(self.n, numbers, low..high)?
        } else {
            device.random_in(self.n, numbers, low..=high)?
        };
        Ok(values.to_vec()?)
    }
}
