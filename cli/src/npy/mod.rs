//! Arrays in .npy files.

pub(crate) mod archive;
pub(crate) mod axes;
mod header;
pub(crate) mod mapped;

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use bytemuck::Pod;
use memmap2::Mmap;
use oclprim::{Device, Element, ElementType, Integer, with_element, with_integer};

use header::{Dtype, Header, Kind, Preamble};

/// Bytes of the first allocation for a stream, whose length is unknown.
const STEP: usize = 1 << 24;
/// Files whose arrays have at least this many bytes are mapped; to read fewer bytes costs less than a mapping.
const MAPPED: usize = 1 << 16;

/// An array in C order and in this machine's byte order.
#[derive(Debug)]
pub(crate) struct Array {
    dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    bytes: Held,
}

/// The bytes of an array, aligned for every element type.
#[derive(Debug)]
enum Held {
    Own(Bytes),
    /// The bytes of a file from an offset on.
    Mapped(Mmap, usize),
}

impl Held {
    fn get(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes.get(),
            Self::Mapped(map, start) => &map[*start..],
        }
    }

    /// Returns the bytes in writable memory.
    fn into_own(self) -> Result<Bytes, String> {
        match self {
            Self::Own(bytes) => Ok(bytes),
            Self::Mapped(..) => {
                let mut own = Bytes::default();
                own.grow(self.get().len())?;
                own.get_mut().copy_from_slice(self.get());
                Ok(own)
            }
        }
    }
}

/// Allocated memory, aligned to 16 bytes.
#[derive(Debug, Default)]
struct Bytes {
    units: Vec<u128>,
    len: usize,
}

impl Bytes {
    /// Appends bytes of value 0.
    fn grow(&mut self, more: usize) -> Result<(), String> {
        let len = self.len + more;
        let units = len.div_ceil(size_of::<u128>());
        self.units.try_reserve_exact(units - self.units.len()).map_err(|_| no_memory(len as u128))?;
        self.units.resize(units, 0);
        self.len = len;
        Ok(())
    }

    fn get(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.units)[..self.len]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.units)[..self.len]
    }
}

fn no_memory(bytes: u128) -> String {
    format!("there is no memory for {bytes} bytes")
}

/// Collects an iterator; an error if there is no memory for it.
pub(crate) fn collect<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    let bytes = values.len() as u128 * size_of::<T>() as u128;
    all.try_reserve_exact(values.len()).map_err(|_| no_memory(bytes))?;
    all.extend(values);
    Ok(all)
}

/// Reads until `buffer` is full or the input ends; returns the number of bytes.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, String> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(filled)
}

/// The size of an array in bytes; `None` if it overflows.
fn size_of_array(dtype: &Dtype, shape: &[usize]) -> Option<usize> {
    // Even if an axis is empty, the product of the others must not overflow.
    let mut lengths = shape.iter().filter(|&&n| n > 0);
    let bytes = lengths.try_fold(dtype.size, |product, &n| product.checked_mul(n))?;
    (bytes <= isize::MAX as usize).then_some(if shape.contains(&0) { 0 } else { bytes })
}

/// The header of a file, and the range of its array.
struct Front {
    header: Header,
    /// The array's offset in the file, and its size, in bytes.
    start: usize,
    bytes: usize,
}

impl Front {
    /// Reads the header from the start of a file. If `len` is known, the array must end exactly there.
    fn read(reader: &mut dyn Read, len: Option<u64>) -> Result<Self, String> {
        let mut start = [0; Preamble::MOST];
        let mut found = fill(reader, &mut start[..Preamble::LEAST])?;
        if Preamble::is_long(&start) {
            found += fill(reader, &mut start[found..])?;
        }
        let preamble = Preamble::parse(&start[..found])?;
        let mut text = vec![0; preamble.text];
        let found = fill(reader, &mut text)?;
        if found < preamble.text {
            return Err(format!("truncated: its header has {} bytes, the file has {found} of them", preamble.text));
        }
        let header = Header::parse(&preamble, &text)?;
        let (dtype, shape) = (&header.dtype, &header.shape);
        let bytes =
            size_of_array(dtype, shape).ok_or_else(|| format!("a shape of {shape:?} {dtype} overflows memory"))?;
        let front = Self { start: preamble.bytes + preamble.text, bytes, header };
        if let Some(len) = len {
            // This check precedes every allocation for a length that the header claims.
            let left = len.saturating_sub(front.start as u64);
            if left < bytes as u64 {
                return Err(front.truncated(left));
            }
            if left > bytes as u64 {
                return Err(format!("{} bytes follow the array", left - bytes as u64));
            }
        }
        Ok(front)
    }

    fn truncated(&self, found: u64) -> String {
        let Header { shape, dtype, .. } = &self.header;
        format!("truncated: {shape:?} {dtype} are {} bytes, the file has {found} of them", self.bytes)
    }

    /// Reads the bytes of the array; more bytes after them are an error.
    fn rest(&self, reader: &mut dyn Read, len: Option<u64>) -> Result<Bytes, String> {
        let mut bytes = Bytes::default();
        let step = if len.is_some() { self.bytes } else { STEP };
        while bytes.len < self.bytes {
            // The buffer doubles, so that all copies together take linear time.
            let from = bytes.len;
            bytes.grow(step.max(from).min(self.bytes - from))?;
            let found = from + fill(reader, &mut bytes.get_mut()[from..])?;
            if found < bytes.len {
                return Err(self.truncated(found as u64));
            }
        }
        if fill(reader, &mut [0])? > 0 {
            return Err("more bytes follow the array".into());
        }
        Ok(bytes)
    }

    /// The array of these bytes, in C order and in the byte order of this machine.
    fn array(&self, held: Held) -> Result<Array, String> {
        let Header { dtype, swapped, fortran, shape } = &self.header;
        let scalar = dtype.scalar();
        let (swapped, truth) = (*swapped && scalar > 1, dtype.kind == Kind::Bool);
        let mut held = held;
        if *fortran {
            held = in_c_order(held, dtype, shape)?;
        }
        if swapped || truth {
            let mut bytes = held.into_own()?;
            if swapped {
                bytes.get_mut().chunks_exact_mut(scalar).for_each(<[u8]>::reverse);
            }
            if truth {
                bytes.get_mut().iter_mut().for_each(|truth| *truth = u8::from(*truth != 0));
            }
            held = Held::Own(bytes);
        }
        Ok(Array { dtype: dtype.clone(), shape: shape.clone(), bytes: held })
    }
}

impl Array {
    /// Reads a whole file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if path.as_os_str() == "-" {
            if TAKEN.swap(true, Ordering::Relaxed) {
                return Err("standard input is one array, which has been read already".into());
            }
            return Self::read(&mut io::stdin().lock(), None);
        }
        let text = |error: io::Error| error.to_string();
        let mut file = File::open(path).map_err(text)?;
        let metadata = file.metadata().map_err(text)?;
        if !metadata.is_file() {
            return Self::read(&mut file, None);
        }
        let len = metadata.len();
        let front = Front::read(&mut file, Some(len))?;
        // Other systems cannot replace a mapped file, but the output may replace the input.
        if cfg!(unix)
            && front.bytes >= MAPPED
            && front.start.is_multiple_of(align_of::<u128>())
            && let Ok(map) = mapped::map(path, &file, &metadata)
        {
            return front.array(Held::Mapped(map, front.start));
        }
        let bytes = front.rest(&mut file, Some(len))?;
        front.array(Held::Own(bytes))
    }

    /// Reads an array from `len` bytes; `None` reads to the end.
    pub(crate) fn read(reader: &mut dyn Read, len: Option<u64>) -> Result<Self, String> {
        let front = Front::read(reader, len)?;
        let bytes = front.rest(reader, len)?;
        front.array(Held::Own(bytes))
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.dtype.size
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.bytes.get().len() / self.dtype.size
    }

    /// An array of the same element type with other contents.
    pub(crate) fn like<'a, T: Pod>(&self, shape: &[usize], data: &'a [T]) -> Made<'a> {
        Made { dtype: self.dtype.clone(), shape: shape.to_vec(), bytes: bytemuck::cast_slice(data) }
    }

    /// The NumPy name of the element type, such as `<f4`.
    pub(crate) fn type_name(&self) -> String {
        self.dtype.to_string()
    }

    /// The NumPy name of the element type, with a description if the crate does not compute with it.
    pub(crate) fn type_in_words(&self) -> String {
        let name = self.type_name();
        let words = match self.dtype.kind {
            Kind::Complex => "complex numbers",
            Kind::Bytes | Kind::Text => "text",
            Kind::TimeDelta | Kind::Time => "times",
            Kind::Void => "raw bytes",
            Kind::Bool | Kind::Int | Kind::Uint | Kind::Float => return name,
        };
        format!("{words} ({name})")
    }

    /// Returns true for booleans: bytes that are 0 or 1.
    pub(crate) fn is_truth(&self) -> bool {
        self.dtype.kind == Kind::Bool
    }

    /// The crate's type for the elements, if it computes with them.
    pub(crate) fn element(&self) -> Option<ElementType> {
        Some(match (self.dtype.kind, self.dtype.size) {
            (Kind::Int, 1) => ElementType::I8,
            (Kind::Int, 2) => ElementType::I16,
            (Kind::Int, 4) => ElementType::I32,
            (Kind::Int, 8) => ElementType::I64,
            (Kind::Uint | Kind::Bool, 1) => ElementType::U8,
            (Kind::Uint, 2) => ElementType::U16,
            (Kind::Uint, 4) => ElementType::U32,
            (Kind::Uint, 8) => ElementType::U64,
            (Kind::Float, 2) => ElementType::F16,
            (Kind::Float, 4) => ElementType::F32,
            (Kind::Float, 8) => ElementType::F64,
            _ => return None,
        })
    }

    /// The crate's type for the parts of complex elements.
    pub(crate) fn complex(&self) -> Option<ElementType> {
        match (self.dtype.kind, self.dtype.size) {
            (Kind::Complex, 8) => Some(ElementType::F32),
            (Kind::Complex, 16) => Some(ElementType::F64),
            _ => None,
        }
    }

    /// The elements as `T`, which has their size, or as bytes.
    pub(crate) fn elements<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes.get())
    }

    /// Returns whether `U` has the value of each element.
    pub(crate) fn is_exact_in<U: Element>(&self) -> bool {
        let Some(element) = self.element() else { return false };
        with_element!(element, T => self.elements::<T>().iter().all(|&x| Number::of(x).exactly::<U>().is_some()))
    }

    /// The elements converted to `U`; an error if `U` lacks the value of an element.
    pub(crate) fn exactly<U: Element>(&self) -> Result<Cow<'_, [U]>, String> {
        let element = self.element().ok_or_else(|| format!("{} are not numbers", self.type_in_words()))?;
        if element == U::TYPE {
            return Ok(Cow::Borrowed(self.elements()));
        }
        with_element!(element, T => {
            let elements = self.elements::<T>();
            if let Some(i) = elements.iter().position(|&x| Number::of(x).exactly::<U>().is_none()) {
                return Err(format!("element {i} is {}, which no {} equals", number(elements[i]), U::TYPE));
            }
            Ok(Cow::Owned(collect(elements.iter().map(|&x| Number::of(x).exactly().unwrap_or(U::ZERO)))?))
        })
    }
}

/// Converts the bytes of an array from Fortran order to C order.
fn in_c_order(held: Held, dtype: &Dtype, shape: &[usize]) -> Result<Held, String> {
    if shape.iter().filter(|&&n| n != 1).count() < 2 {
        return Ok(held);
    }
    fn moved<T: Pod>(from: &[u8], to: &mut Bytes, shape: &[usize], order: &[usize]) -> oclprim::Result<()> {
        let (from, to) = (bytemuck::cast_slice::<u8, T>(from), bytemuck::cast_slice_mut::<u8, T>(to.get_mut()));
        axes::permute(&Device::cpu(), from, shape, order, to)
    }
    // In memory, an array in Fortran order is an array in C order with its axes reversed.
    let mut lying: Vec<_> = shape.iter().rev().copied().collect();
    let mut order: Vec<_> = (0..shape.len()).rev().collect();
    let unit = (1usize << dtype.size.trailing_zeros()).min(size_of::<u128>());
    if dtype.size > unit {
        // The units of an element become one more axis.
        order.push(lying.len());
        lying.push(dtype.size / unit);
    }
    let mut ordered = Bytes::default();
    let bytes = held.get();
    ordered.grow(bytes.len())?;
    let done = match unit {
        1 => moved::<u8>(bytes, &mut ordered, &lying, &order),
        2 => moved::<u16>(bytes, &mut ordered, &lying, &order),
        4 => moved::<u32>(bytes, &mut ordered, &lying, &order),
        8 => moved::<u64>(bytes, &mut ordered, &lying, &order),
        _ => moved::<u128>(bytes, &mut ordered, &lying, &order),
    };
    done.map_err(|error| error.to_string())?;
    Ok(Held::Own(ordered))
}

/// The value of an element of any type.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    fn of<T: Element>(x: T) -> Self {
        with_integer!(T::TYPE, I => Self::Integer(bytemuck::cast::<T, I>(x).to_i128()), Self::Float(x.to_f64()))
    }

    /// Returns the element of type `U` that has this value. All NaN are one value.
    fn exactly<U: Element>(self) -> Option<U> {
        with_integer!(U::TYPE, I => {
            let value = match self {
                Self::Integer(value) => value,
                // A larger value is beyond every integer type. So the cast never saturates.
                Self::Float(value) if value.trunc() == value && value.abs() < 1e30 => value as i128,
                Self::Float(_) => return None,
            };
            let integer = I::from_i128(value);
            (integer.to_i128() == value).then(|| bytemuck::cast(integer))
        }, {
            let value = match self {
                Self::Integer(value) if value as f64 as i128 == value => value as f64,
                Self::Integer(_) => return None,
                Self::Float(value) => value,
            };
            let float = U::from_f64(value);
            (float.to_f64() == value || value.is_nan()).then_some(float)
        })
    }
}

/// The shortest decimal digits that parse to the same value of the type.
pub(crate) fn number<T: Element>(value: T) -> String {
    let wide = value.to_f64();
    if !T::TYPE.is_float() {
        return value.to_string();
    }
    if !wide.is_finite() || wide == 0.0 {
        return format!("{wide}");
    }
    // Rust itself prints the shortest digits of f32 and f64.
    let scientific = match T::TYPE {
        ElementType::F64 => format!("{wide:e}"),
        ElementType::F32 => format!("{:e}", wide as f32),
        _ => {
            let same = |text: &String| text.parse().is_ok_and(|read| T::from_f64(read).to_f64() == wide);
            (0..17).map(|digits| format!("{wide:.digits$e}")).find(same).unwrap_or_else(|| format!("{wide:e}"))
        }
    };
    if (1e-5..1e16).contains(&wide.abs()) {
        // This prints the same digits without an exponent.
        scientific.parse::<f64>().map_or(scientific, |plain| plain.to_string())
    } else {
        scientific
    }
}

/// An array to write.
pub(crate) struct Made<'a> {
    dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> Made<'a> {
    /// An array of the type with this NumPy name, such as `<u8`.
    pub(crate) fn of<T: Pod>(dtype: &str, shape: &[usize], data: &'a [T]) -> Self {
        let (dtype, _) = Dtype::parse(dtype).expect("a constant type");
        Self { dtype, shape: shape.to_vec(), bytes: bytemuck::cast_slice(data) }
    }

    /// The NumPy name of the element type.
    pub(crate) fn type_name(&self) -> String {
        self.dtype.to_string()
    }

    /// The parts of the file: header and data.
    pub(crate) fn parts(&self) -> [Cow<'_, [u8]>; 2] {
        [Header::write(&self.dtype, &self.shape).into(), self.bytes.into()]
    }

    /// The number of bytes of the data.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}
