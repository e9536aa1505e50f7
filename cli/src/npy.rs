//! Arrays in .npy files.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, Write},
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use bytemuck::Pod;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, WriteOptions, WriterBuilder};
use oclprim::ElementType;

use crate::output::{Stop, of_file};

/// An array in C order and in this machine's byte order.
pub(crate) struct Array {
    dtype: DType,
    pub(crate) shape: Vec<u64>,
    /// Bytes of one element.
    pub(crate) size: usize,
    bytes: Vec<u8>,
}

impl Array {
    /// Reads a whole file.
    pub(crate) fn read(path: &Path) -> Result<Self, Stop> {
        let wrong = |what: String| Stop::usage(format!("{}: {what}", path.display()));
        let file = File::open(path).map_err(of_file(path))?;
        let metadata = file.metadata().map_err(of_file(path))?;
        let mut reader = BufReader::new(file);
        let header = read_header(&mut reader).map_err(|error| {
            // Of a syntax error npyz shows the place, in a drawing of several lines.
            wrong(format!("not a .npy file: {}", error.to_string().lines().next().unwrap_or_default()))
        })?;
        let (dtype, shape) = (header.dtype(), header.shape().to_vec());
        if header.uses_pickled_array() {
            return Err(wrong("holds Python objects, which only numpy can read".into()));
        }
        let DType::Plain(ty) = &dtype else {
            return Err(wrong("holds records; save each field as an array of its own".into()));
        };
        if !matches!(ty.endianness(), Endianness::Irrelevant) && ty.endianness() != Endianness::of_machine() {
            let text = format!(
                "{} is in the other byte order; convert with array.astype(array.dtype.newbyteorder('='))",
                dtype_name(&dtype)
            );
            return Err(wrong(text));
        }
        if header.order() == Order::Fortran && shape.len() > 1 {
            return Err(wrong("is in Fortran order; convert with numpy.ascontiguousarray(array)".into()));
        }
        let size = dtype.num_bytes().filter(|&size| size > 0);
        let size = size.ok_or_else(|| wrong(format!("elements of type {} have no size", dtype_name(&dtype))))?;
        let elements = shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let expected = elements.and_then(|elements| elements.checked_mul(size as u64));
        let name = dtype_name(&dtype);
        let expected = expected.filter(|&bytes| bytes <= isize::MAX as u64);
        let expected = expected.ok_or_else(|| wrong(format!("a shape of {shape:?} {name} overflows memory")))?;
        let truncated =
            |found| wrong(format!("truncated: {shape:?} {name} are {expected} bytes, the file has {found} of them"));
        if metadata.is_file() {
            // Before anything is allocated for what a header merely claims.
            let left = metadata.len().saturating_sub(reader.stream_position().map_err(of_file(path))?);
            if left < expected {
                return Err(truncated(left));
            }
        }
        let mut bytes = Vec::new();
        reader.take(expected).read_to_end(&mut bytes).map_err(of_file(path))?;
        if (bytes.len() as u64) < expected {
            return Err(truncated(bytes.len() as u64));
        }
        Ok(Self { dtype, shape, size, bytes })
    }

    /// An array of the same element type with other contents.
    pub(crate) fn like<T: Pod>(&self, shape: &[usize], data: &[T]) -> Self {
        let shape = shape.iter().map(|&n| n as u64).collect();
        Self { dtype: self.dtype.clone(), shape, size: self.size, bytes: bytemuck::cast_slice(data).to_vec() }
    }

    /// An array of a type that numpy has a name for, such as `<u8`.
    pub(crate) fn of<T: Pod>(dtype: &str, shape: &[usize], data: &[T]) -> Self {
        let dtype = DType::Plain(dtype.parse().expect("a constant type"));
        let shape = shape.iter().map(|&n| n as u64).collect();
        Self { dtype, shape, size: size_of::<T>(), bytes: bytemuck::cast_slice(data).to_vec() }
    }

    /// The shape as Rust counts: a file that was read fits memory.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.shape.iter().map(|&n| n as usize).collect()
    }

    /// What numpy calls the element type, such as `<f4`.
    pub(crate) fn type_name(&self) -> String {
        dtype_name(&self.dtype)
    }

    /// The same behind what it means, where the crate does not compute with it.
    pub(crate) fn type_in_words(&self) -> String {
        let name = self.type_name();
        let DType::Plain(ty) = &self.dtype else { return name };
        let words = match ty.type_char() {
            TypeChar::Bool => return format!("truth values ({name}); convert with array.astype('u1')"),
            TypeChar::Complex => "complex numbers",
            TypeChar::ByteStr | TypeChar::UnicodeStr => "text",
            TypeChar::TimeDelta | TypeChar::DateTime => "times",
            _ => return name,
        };
        format!("{words} ({name})")
    }

    /// The crate's type for the elements, if it computes with them.
    pub(crate) fn element(&self) -> Option<ElementType> {
        let DType::Plain(ty) = &self.dtype else { return None };
        Some(match (ty.type_char(), self.size) {
            (TypeChar::Int, 1) => ElementType::I8,
            (TypeChar::Int, 2) => ElementType::I16,
            (TypeChar::Int, 4) => ElementType::I32,
            (TypeChar::Int, 8) => ElementType::I64,
            (TypeChar::Uint, 1) => ElementType::U8,
            (TypeChar::Uint, 2) => ElementType::U16,
            (TypeChar::Uint, 4) => ElementType::U32,
            (TypeChar::Uint, 8) => ElementType::U64,
            (TypeChar::Float, 2) => ElementType::F16,
            (TypeChar::Float, 4) => ElementType::F32,
            (TypeChar::Float, 8) => ElementType::F64,
            _ => return None,
        })
    }

    /// The crate's type for the parts of complex elements.
    pub(crate) fn complex(&self) -> Option<ElementType> {
        let DType::Plain(ty) = &self.dtype else { return None };
        match (ty.type_char(), self.size) {
            (TypeChar::Complex, 8) => Some(ElementType::F32),
            (TypeChar::Complex, 16) => Some(ElementType::F64),
            _ => None,
        }
    }

    /// The elements, of whose size `T` is.
    pub(crate) fn elements<T: Pod>(&self) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&self.bytes)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Stop> {
        let file = File::create(path).map_err(of_file(path))?;
        let header = WriteOptions::new_header_only().dtype(self.dtype.clone()).shape(&self.shape).writer(file);
        let mut file = header.write_header_only().map_err(of_file(path))?;
        file.write_all(&self.bytes).map_err(of_file(path))
    }
}

/// The header. npyz multiplies what it claims as the shape unchecked, which panics in a debug build.
fn read_header(reader: &mut impl Read) -> io::Result<NpyHeader> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let header = panic::catch_unwind(AssertUnwindSafe(|| NpyHeader::from_reader(reader)));
    panic::set_hook(hook);
    header.unwrap_or_else(|_| Err(io::Error::other("its shape overflows")))
}

fn dtype_name(dtype: &DType) -> String {
    dtype.descr().trim_matches('\'').to_owned()
}
