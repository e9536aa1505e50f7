//! `oclprim run`

mod copy;
mod histogram;
mod made;
mod merge;
mod reduce;
mod scan;
mod select;
mod sort;
mod statistics;
mod topk;
mod transpose;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use oclprim::{Device, Element, ElementType, Integer, with_integer};
use oclprim_checks::check::Failure;

use self::{
    copy::{Copy, Gather, Reverse, Scatter},
    histogram::HistogramOf,
    made::{Iota, Random},
    merge::{Merge, Search},
    reduce::Reduce,
    scan::ScanOf,
    select::{Rle, Select, Unique},
    sort::Sort,
    statistics::{Count, StatisticsOf},
    topk::{Quantile, TopK},
    transpose::{Permute, Transpose},
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
  oclprim run scatter picked.npy --indices order.npy --len 5 -o samples.npy
  oclprim run merge sorted.npy --with more.npy -o all.npy
  oclprim run search sorted.npy --needles samples.npy -o places.npy
  oclprim run random 1000000 --type f32 --seed 7 -o uniform.npy
  oclprim run iota 1000000 --type u32 -o places.npy

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
    Scatter(Scatter),
    Merge(Merge),
    Search(Search),
    Random(Random),
    Iota(Iota),
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
            Primitive::Scatter(scatter) => scatter.run(out),
            Primitive::Merge(merge) => merge.run(out),
            Primitive::Search(search) => search.run(out),
            Primitive::Random(random) => random.run(out),
            Primitive::Iota(iota) => iota.run(out),
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
            None => print(&text, out),
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
        element_of(&self.input, array, what)
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

/// The element type of the array in a file, which has to be one that the crate computes with.
fn element_of(path: &Path, array: &Array, what: &str) -> Result<ElementType, Stop> {
    array.element().ok_or_else(|| {
        let (path, ty) = (path.display(), array.type_in_words());
        Stop::usage(format!("{path}: {what} takes integers and floats of up to 8 bytes, not {ty}"))
    })
}

/// Places in an array, or between its elements: integers of 4 or 8 bytes.
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
    let negative = |place: &u64| (*place as i64) < 0;
    if let Some(i) = places.iter().position(negative).filter(|_| array.element() != Some(ElementType::U64)) {
        let (path, place) = (path.display(), places[i] as i64);
        return Err(Stop::usage(format!("{path}: element {i} is {place}; places count from 0")));
    }
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

/// Prints a result. One without elements is an empty line, which standard error explains: what reads the output as numbers
/// finds none.
fn print(text: &str, out: &mut dyn Write) -> Result<(), Stop> {
    writeln!(out, "{text}")?;
    if text.is_empty() {
        // With no standard error left there is nobody to tell.
        let _ = writeln!(io::stderr(), "the result has 0 elements");
    }
    Ok(())
}

fn matches(verdict: Result<(), Failure>) -> Result<(), Stop> {
    verdict.map_err(|failure| Stop::mismatch(format!("the CPU's answer differs: {}", failure_text(failure))))
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
use with_size;

/// The argument of an option, which has to be a value of the type.
fn parse<T: Element>(option: &str, text: &str) -> Result<T, Stop> {
    let wrong = || Stop::usage(format!("{option}: `{text}` is not a value of type {}", T::TYPE));
    with_integer!(T::TYPE, I => {
        let value: i128 = text.parse().map_err(|_| wrong())?;
        let integer = I::from_i128(value);
        if integer.to_i128() == value { Ok(bytemuck::cast(integer)) } else { Err(wrong()) }
    }, text.parse().map(T::from_f64).map_err(|_| wrong()))
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
