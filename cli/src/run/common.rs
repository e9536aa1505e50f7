//! Shared parts of the primitives of `oclprim run`: options, inputs, values and results.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use oclprim::{Device, Element, ElementType, Integer, bf16, f16, with_integer};
use oclprim_checks::check::Failure;

use crate::{
    bench::failure_text,
    npy::{self, Array, Made, archive::is_archive, number},
    options::DeviceChoice,
    output::{Stop, inputs_are_whole, of_file, save_archive, save_array},
    progress,
};

/// The arguments of every primitive that reads an array.
#[derive(Args)]
pub(super) struct Common {
    /// The array, as numpy.save writes it; `-` reads standard input.
    #[arg(value_name = "IN.npy")]
    pub(super) input: PathBuf,
    /// Write the result to this .npy file, or to an archive OUT.npz, instead of printing it; `-` writes to standard output.
    #[arg(short, long, value_name = "OUT.npy")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) device: DeviceChoice,
    /// Compute the result on the CPU as well, and compare; the exit code is 1 if they differ.
    #[arg(long)]
    pub(super) verify: bool,
}

impl Common {
    pub(super) fn read(&self) -> Result<Array, Stop> {
        read(&self.input)
    }

    pub(super) fn finish(&self, result: &Made<'_>, text: String, out: &mut dyn Write) -> Result<(), Stop> {
        match &self.output {
            Some(path) => save_array(path, result, out),
            None => print(&text, out),
        }
    }

    /// Returns whether -o names an archive, which takes several results.
    pub(super) fn to_archive(&self) -> bool {
        self.output.as_deref().is_some_and(is_archive)
    }

    /// Writes results with these names to the archive of -o.
    pub(super) fn finish_archive(&self, results: &[(&str, &Made<'_>)]) -> Result<(), Stop> {
        self.output.as_deref().map_or(Ok(()), |path| save_archive(path, results))
    }

    /// Like `finish`, for a result that is described, not printed.
    pub(super) fn finish_whole(&self, result: &Made<'_>, device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
        let (shape, ty, device) = (&result.shape, result.type_name(), device.info());
        self.finish(result, format!("{shape:?} {ty} on {device}; -o writes it to a file"), out)
    }

    /// Like `finish`, for a result of one dimension.
    pub(super) fn finish_line<T: Element>(
        &self,
        result: &Made<'_>,
        values: &[T],
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        self.finish(result, in_words(values, &[values.len()], &result.type_name(), device), out)
    }

    /// The element type of `array`; an error if the crate does not compute with it.
    pub(super) fn element(&self, array: &Array, what: &str) -> Result<ElementType, Stop> {
        element_of(&self.input, array, what)
    }

    /// The axis of `array` with this number: 0 is the first one, -1 the last.
    pub(super) fn axis(&self, array: &Array, number: i64) -> Result<usize, Stop> {
        let dims = array.shape.len() as i64;
        let axis = if number < 0 { number + dims } else { number };
        if !(0..dims).contains(&axis) {
            let (path, shape) = (self.input.display(), &array.shape);
            return Err(Stop::usage(format!("{path}: there is no axis {number} in a shape of {shape:?}")));
        }
        Ok(axis as usize)
    }
}

pub(super) fn read(path: &Path) -> Result<Array, Stop> {
    Array::open(path).map_err(of_file(path))
}

/// Collects an iterator; an error if there is no memory for it.
pub(super) fn collect<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Stop> {
    npy::collect(values).map_err(Stop::usage)
}

/// The element type of the array in a file; an error if the crate does not compute with it.
pub(super) fn element_of(path: &Path, array: &Array, what: &str) -> Result<ElementType, Stop> {
    array.element().ok_or_else(|| {
        let (path, ty) = (path.display(), array.type_in_words());
        Stop::usage(format!("{path}: {what} takes integers and floats of up to 8 bytes, not {ty}"))
    })
}

/// Reads indices into an array, or offsets of segments: integers of any size.
pub(super) fn indices(path: &Path) -> Result<(Array, Vec<u64>), Stop> {
    let array = read(path)?;
    let element = array.element().filter(|element| !element.is_float() && !array.is_truth());
    let element = element.ok_or_else(|| of_file(path)(format!("expected integers, not {}", array.type_name())))?;
    let indices = with_integer!(element, I => {
        let indices = array.elements::<I>();
        if let Some(i) = indices.iter().position(|index| index.to_i128() < 0) {
            return Err(of_file(path)(format!("element {i} is {}; indices count from 0", indices[i])));
        }
        npy::collect(indices.iter().map(|index| index.to_i128() as u64)).map_err(of_file(path))?
    }, unreachable!("floats are refused above"));
    Ok((array, indices))
}

/// NumPy's name of a type other than bf16.
pub(super) fn numpy_name(ty: ElementType) -> &'static str {
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

/// The text of a result that goes to no file: its elements, or only its shape and type if there are more than 64.
pub(super) fn in_words<T: Element>(values: &[T], shape: &[usize], ty: &str, device: &Device) -> String {
    const SHOWN: usize = 64;
    if values.len() > SHOWN {
        return format!("{shape:?} {ty} on {}; -o writes it to a file", device.info());
    }
    let line = |row: &[T]| row.iter().map(|&value| number(value)).collect::<Vec<_>>().join(" ");
    let row = if shape.len() < 2 { values.len() } else { shape[shape.len() - 1] };
    values.chunks(row.max(1)).map(line).collect::<Vec<_>>().join("\n")
}

/// Prints a result. A result without elements is an empty line, so that programs read no number from it; a notice on
/// standard error explains it.
pub(super) fn print(text: &str, out: &mut dyn Write) -> Result<(), Stop> {
    inputs_are_whole()?;
    writeln!(out, "{text}")?;
    if text.is_empty() {
        progress::notice("the result has 0 elements");
    }
    Ok(())
}

pub(super) fn matches(verdict: Result<(), Failure>) -> Result<(), Stop> {
    let Err(failure) = verdict else { return Ok(()) };
    // A file that changed between the two computations has two results.
    inputs_are_whole()?;
    Err(Stop::mismatch(format!("the CPU's result differs: {}", failure_text(failure))))
}

/// Runs an expression with `$T` bound to a plain type of `$size` bytes, from 1 to 16; `$other` for other sizes.
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
pub(super) use with_size;

/// Returns two values of type `T` for comparisons with a number. An element is above the number if it is above the
/// first value, and below the number if it is below the second.
///
/// For integers, they are the largest value at or below the number, and the smallest value at or above it. `None` means
/// that `T` has no such value. For floats, both are the value nearest to the number. If the number is beyond the finite
/// values, they are the largest finite value and infinity, or their negatives. For NaN and an integer type, the first
/// is the type's largest value and the second its smallest. So no value is above the first or below the second.
pub(super) fn neighbours<T: Element>(option: &str, text: &str) -> Result<(Option<T>, Option<T>), Stop> {
    let wrong = || Stop::usage(format!("{option}: `{text}` is not a value of type {}", T::TYPE));
    let wide: f64 = text.parse().map_err(|_| wrong())?;
    let is_number = text.contains(|c: char| c.is_ascii_digit());
    with_integer!(T::TYPE, I => {
        let ends = [I::LOWEST, I::HIGHEST];
        let (below, above) = match text.starts_with('-') {
            _ if wide.is_nan() => (Some(I::HIGHEST), Some(I::LOWEST)),
            minus if !is_number => if minus { (None, Some(I::LOWEST)) } else { (Some(I::HIGHEST), None) },
            _ => {
                let (floor, exact) = decimal(text);
                let [low, high] = ends.map(Integer::to_i128);
                let ceil = if exact { floor } else { floor + 1 };
                ((floor >= low).then(|| I::from_i128(floor.min(high))), (ceil <= high).then(|| I::from_i128(ceil.max(low))))
            }
        };
        Ok((below.map(bytemuck::cast), above.map(bytemuck::cast)))
    }, {
        let nearest = if T::TYPE == ElementType::F32 {
            // Digits are rounded to f32 directly, not to f64 first.
            T::from_f64(text.parse::<f32>().map_err(|_| wrong())?.into())
        } else {
            T::from_f64(wide)
        };
        if !is_number || nearest.to_f64().is_finite() {
            return Ok((Some(nearest), Some(nearest)));
        }
        // The number lies between the largest finite value and infinity.
        let most = largest::<T>();
        Ok(if wide > 0.0 { (Some(most), Some(T::HIGHEST)) } else { (Some(T::LOWEST), Some(T::from_f64(-most.to_f64()))) })
    })
}

/// The largest finite value of a float type.
fn largest<T: Element>() -> T {
    T::from_f64(match T::TYPE {
        ElementType::F64 => f64::MAX,
        ElementType::F32 => f32::MAX.into(),
        ElementType::F16 => f16::MAX.into(),
        _ => bf16::MAX.into(),
    })
}

/// Returns the floor of a decimal number, and true if the number is an integer. Numbers beyond 2^100 count as 2^100.
fn decimal(text: &str) -> (i128, bool) {
    let (minus, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let power: i64 = power.parse().unwrap_or(if power.starts_with('-') { i64::MIN } else { i64::MAX });
    // The number of digits before the decimal point.
    let point = power.saturating_add(whole.len() as i64);
    let (mut value, mut exact) = (0i128, true);
    let mut digits = whole.bytes().chain(rest.bytes()).map(|digit| i128::from(digit - b'0'));
    let mut at = 0;
    loop {
        let digit = digits.next();
        match digit {
            Some(digit) if at >= point => exact &= digit == 0,
            Some(digit) => value = (value * 10 + digit).min(1 << 100),
            // Appends zeros up to the decimal point. The loop is short: it ends at once for 0, and at 2^100 for others.
            None if at < point && value > 0 && value < 1 << 100 => value *= 10,
            None => break,
        }
        at += 1;
    }
    let value = value.min(1 << 100);
    if minus { (if exact { -value } else { -value - 1 }, exact) } else { (value, exact) }
}

/// The type of sums and products without --as: 64 bits for integers and booleans, as in NumPy.
pub(super) fn widened(array: &Array, element: ElementType) -> ElementType {
    match element {
        _ if element.is_float() => element,
        ElementType::U8 if array.is_truth() => ElementType::I64,
        _ if element.is_signed() => ElementType::I64,
        _ => ElementType::U64,
    }
}

/// Runs an expression with `$T` bound to the Rust type of an [`ElementType`] that .npy files have: any but bf16.
macro_rules! with_number {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            oclprim::ElementType::F16 => {
                type $T = oclprim::f16;
                $body
            }
            oclprim::ElementType::F32 => {
                type $T = f32;
                $body
            }
            oclprim::ElementType::F64 => {
                type $T = f64;
                $body
            }
            oclprim::ElementType::Bf16 => unreachable!(".npy has no bf16"),
            integer => oclprim::with_integer!(integer, $T => $body, unreachable!("every type is listed")),
        }
    };
}
pub(super) use with_number;

/// Runs an expression with `$T` bound to the unsigned type of the size of an integer type; `$other` for floats.
macro_rules! with_bits {
    ($ty:expr, $T:ident => $body:expr, $other:expr) => {
        with_bits!(@ $ty, $T, $body, $other, 1 u8, 2 u16, 4 u32, 8 u64)
    };
    (@ $ty:expr, $T:ident, $body:expr, $other:expr, $($size:literal $bits:ty),*) => {
        match $ty {
            ty if ty.is_float() => $other,
            $( ty if ty.size() == $size => { type $T = $bits; $body } )*
            _ => unreachable!("integers have 1, 2, 4 or 8 bytes"),
        }
    };
}
pub(super) use with_bits;

/// Runs an expression with `$T` bound to the type of the elements and `$U` to the type of their sums; other pairs are
/// an error.
macro_rules! with_wider {
    // Integer sums and products wrap: signed and unsigned types give the same bits, so fewer types are compiled.
    (bits $pair:expr, $T:ident, $U:ident => $body:expr) => {
        with_wider!(@ $pair, without_sign($pair), $T, $U, $body,
            u8 u8, u16 u16, u32 u32, u64 u64, f16 f16, f32 f32, f64 f64,
            i8 i64, i16 i64, i32 i64, u8 u64, u16 u64, u32 u64, f16 f32, f16 f64, f32 f64,
            i8 f64, i16 f64, i32 f64, u8 f64, u16 f64, u32 f64)
    };
    ($pair:expr, $T:ident, $U:ident => $body:expr) => {
        with_wider!(@ $pair, $pair, $T, $U, $body,
            i8 i8, i16 i16, i32 i32, i64 i64, u8 u8, u16 u16, u32 u32, u64 u64, f16 f16, f32 f32, f64 f64,
            i8 i64, i16 i64, i32 i64, u8 u64, u16 u64, u32 u64, u8 i64, u16 i64, u32 i64, f16 f32, f16 f64, f32 f64,
            i8 f64, i16 f64, i32 f64, u8 f64, u16 f64, u32 f64)
    };
    (@ $pair:expr, $compiled:expr, $T:ident, $U:ident, $body:expr, $($from:ident $to:ident),*) => {
        match $compiled {
            $( (<$from as Element>::TYPE, <$to as Element>::TYPE) => {
                type $T = $from;
                type $U = $to;
                $body
            } )*
            _ => {
                let (element, wide) = $pair;
                Err(Stop::usage(format!("--as: sums of {element} in {wide} are not offered")))
            }
        }
    };
}
pub(super) use with_wider;

/// Replaces the types of elements and sums by types whose wrapped sums and products have the same bits. Integer types
/// become unsigned, unless signed elements are added in a wider type.
pub(super) fn without_sign((element, wide): (ElementType, ElementType)) -> (ElementType, ElementType) {
    use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
    match (element, wide) {
        (I8, I8) => (U8, U8),
        (I16, I16) => (U16, U16),
        (I32, I32) => (U32, U32),
        (I64, I64) => (U64, U64),
        (U8 | U16 | U32, I64) => (element, U64),
        pair => pair,
    }
}

/// Parses the argument of an option as a value of the type.
pub(super) fn parse<T: Element>(option: &str, text: &str) -> Result<T, Stop> {
    let wrong = |why: String| Err(Stop::usage(format!("{option}: `{text}` is not a value of type {}{why}", T::TYPE)));
    match neighbours::<T>(option, text)? {
        (Some(below), Some(above)) if below == above || T::is_nan(below) => Ok(below),
        (Some(_), Some(_)) if !T::TYPE.is_float() => wrong(String::new()),
        _ if T::TYPE.is_float() => wrong(format!(", whose largest is {}", number(largest::<T>()))),
        _ => wrong(format!(", which has {} to {}", T::LOWEST, T::HIGHEST)),
    }
}

/// Reads another array of numbers.
pub(super) fn second(path: &Path) -> Result<Array, Stop> {
    let array = read(path)?;
    element_of(path, &array, "the other array")?;
    Ok(array)
}

/// Returns the type of an array if it represents all values of the other array, such as edges. Otherwise returns f64 if
/// that represents all values of both arrays.
pub(super) fn common_type(
    (element, array): (ElementType, &Array),
    (path, other): (&Path, &Array),
) -> Result<ElementType, Stop> {
    let converts = |element| with_number!(element, T => other.exactly::<T>().map(drop));
    let Err(why) = converts(element) else { return Ok(element) };
    match (array.exactly::<f64>(), converts(ElementType::F64)) {
        (Ok(_), Ok(())) => Ok(ElementType::F64),
        (Err(also), Ok(())) => Err(of_file(path)(format!("{why}, and in the other array {also}"))),
        _ => Err(of_file(path)(why)),
    }
}

/// Reads flags, one for each element of `array`.
pub(super) fn flags(path: &Path, array: &Array) -> Result<Array, Stop> {
    let flags = read(path)?;
    if flags.size() != 1 {
        return Err(of_file(path)(format!("flags are bytes or booleans, not {}", flags.type_name())));
    }
    if flags.len() != array.len() {
        return Err(of_file(path)(format!("{} flags for {} elements", flags.len(), array.len())));
    }
    Ok(flags)
}
