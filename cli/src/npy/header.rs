//! The header of a .npy file: a Python dictionary of three keys.
//!
//! It is untrusted input. The parser accepts what numpy and other writers write, in one pass and without recursion.

use std::fmt;

/// NumPy's limit on the number of axes.
pub(crate) const MOST_AXES: usize = 64;
/// NumPy's limit on the bytes of a header.
const MOST_BYTES: u32 = 10_000;
const MAGIC: &[u8] = b"\x93NUMPY";
/// The offset of the data in a file is a multiple of this.
const ALIGNMENT: usize = 64;

/// The kind of a type, as in NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    Bytes,
    Text,
    Void,
    TimeDelta,
    Time,
}

/// The type of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dtype {
    pub(crate) kind: Kind,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// The unit of a time, as in `[ns]`.
    unit: String,
}

/// The types whose name is a word or a single letter. [`Dtype::by_letter`] parses names of a letter and a size.
const NAMES: [(&str, Kind, usize); 28] = [
    ("?", Kind::Bool, 1),
    ("b", Kind::Int, 1),
    ("B", Kind::Uint, 1),
    ("h", Kind::Int, 2),
    ("H", Kind::Uint, 2),
    ("i", Kind::Int, 4),
    ("I", Kind::Uint, 4),
    ("q", Kind::Int, 8),
    ("Q", Kind::Uint, 8),
    ("e", Kind::Float, 2),
    ("f", Kind::Float, 4),
    ("d", Kind::Float, 8),
    ("F", Kind::Complex, 8),
    ("D", Kind::Complex, 16),
    ("bool", Kind::Bool, 1),
    ("int8", Kind::Int, 1),
    ("int16", Kind::Int, 2),
    ("int32", Kind::Int, 4),
    ("int64", Kind::Int, 8),
    ("uint8", Kind::Uint, 1),
    ("uint16", Kind::Uint, 2),
    ("uint32", Kind::Uint, 4),
    ("uint64", Kind::Uint, 8),
    ("float16", Kind::Float, 2),
    ("float32", Kind::Float, 4),
    ("float64", Kind::Float, 8),
    ("complex64", Kind::Complex, 8),
    ("complex128", Kind::Complex, 16),
];

impl Dtype {
    /// Returns the type with the NumPy name `name`, and true if its byte order is not that of this machine.
    pub(crate) fn parse(name: &str) -> Result<(Self, bool), String> {
        let unknown = || format!("the type '{}' is unknown", brief(name));
        let little = match name.as_bytes().first() {
            Some(b'<') => Some(true),
            Some(b'>') => Some(false),
            _ => None,
        };
        let plain = name.strip_prefix(['<', '>', '=', '|']).unwrap_or(name);
        let dtype = match NAMES.iter().find(|(known, ..)| *known == plain) {
            Some(&(_, kind, size)) => Self { kind, size, unit: String::new() },
            None => Self::by_letter(plain, name).ok_or_else(unknown)??,
        };
        let swapped = little.is_some_and(|little| little != cfg!(target_endian = "little"));
        Ok((dtype, swapped))
    }

    /// The type of a letter and a size, such as `f8`; `None` if the name is not of this kind.
    fn by_letter(plain: &str, name: &str) -> Option<Result<Self, String>> {
        let letter = plain.chars().next()?;
        let rest = &plain[letter.len_utf8()..];
        if letter == 'O' {
            return Some(Err("holds Python objects, which only numpy can read".into()));
        }
        if plain.contains(',') || plain.contains('(') {
            return Some(Err(RECORDS.into()));
        }
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, unit) = rest.split_at(end);
        let number: usize = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let (kind, sizes): (_, &[usize]) = match letter {
            'b' => (Kind::Bool, &[1]),
            'i' => (Kind::Int, &[1, 2, 4, 8]),
            'u' => (Kind::Uint, &[1, 2, 4, 8]),
            'f' => (Kind::Float, &[2, 4, 8, 16]),
            'c' => (Kind::Complex, &[8, 16, 32]),
            'm' => (Kind::TimeDelta, &[8]),
            'M' => (Kind::Time, &[8]),
            'S' | 'a' => (Kind::Bytes, &[]),
            'U' => (Kind::Text, &[]),
            'V' => (Kind::Void, &[]),
            _ => return None,
        };
        let is_time = matches!(kind, Kind::Time | Kind::TimeDelta);
        let has_unit = unit.strip_prefix('[').and_then(|unit| unit.strip_suffix(']')).is_some_and(|unit| {
            !unit.is_empty() && unit.len() <= 32 && unit.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'/')
        });
        if !(unit.is_empty() || is_time && has_unit) {
            return None;
        }
        let size = number.checked_mul(if kind == Kind::Text { 4 } else { 1 })?;
        if sizes.is_empty() && size == 0 {
            return Some(Err(format!("elements of type '{}' have no size", brief(name))));
        }
        (sizes.is_empty() || sizes.contains(&size)).then(|| Ok(Self { kind, size, unit: unit.to_owned() }))
    }

    /// The number of bytes that are reversed as one unit if the byte order changes.
    pub(crate) fn scalar(&self) -> usize {
        match self.kind {
            Kind::Bool | Kind::Bytes | Kind::Void => 1,
            Kind::Complex => self.size / 2,
            Kind::Text => 4,
            Kind::Int | Kind::Uint | Kind::Float | Kind::TimeDelta | Kind::Time => self.size,
        }
    }
}

/// The NumPy name, such as `<f4`, in the byte order of this machine.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match (self.scalar(), cfg!(target_endian = "little")) {
            (1, _) => '|',
            (_, true) => '<',
            (_, false) => '>',
        };
        let letter = match self.kind {
            Kind::Bool => 'b',
            Kind::Int => 'i',
            Kind::Uint => 'u',
            Kind::Float => 'f',
            Kind::Complex => 'c',
            Kind::Bytes => 'S',
            Kind::Text => 'U',
            Kind::Void => 'V',
            Kind::TimeDelta => 'm',
            Kind::Time => 'M',
        };
        let number = if self.kind == Kind::Text { self.size / 4 } else { self.size };
        write!(f, "{order}{letter}{number}{}", self.unit)
    }
}

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dtype: Dtype,
    /// True if the byte order is not that of this machine.
    pub(crate) swapped: bool,
    /// True for Fortran order: the first axis varies fastest.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
}

const RECORDS: &str = "holds records; save each field as an array of its own";

/// The bytes before the text of a header: magic, version, and the length of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preamble {
    /// The length of the preamble in bytes.
    pub(crate) bytes: usize,
    /// The length of the text after it, in bytes.
    pub(crate) text: usize,
    version: u8,
}

impl Preamble {
    /// The least and the greatest length of a preamble.
    pub(crate) const LEAST: usize = 10;
    pub(crate) const MOST: usize = 12;

    /// Returns true if a preamble that starts like this has [`Self::MOST`] bytes.
    pub(crate) fn is_long(start: &[u8]) -> bool {
        matches!(start.get(MAGIC.len()), Some(2..))
    }

    /// Parses the first bytes of a file, at most [`Preamble::MOST`].
    pub(crate) fn parse(start: &[u8]) -> Result<Self, String> {
        if !start.starts_with(MAGIC) {
            return Err("not a .npy file: it does not start with \\x93NUMPY".into());
        }
        let (text, version) = match start[MAGIC.len()..] {
            [1, 0, a, b, ..] => (u16::from_le_bytes([a, b]).into(), 1),
            [version @ (2 | 3), 0, a, b, c, d] => (u32::from_le_bytes([a, b, c, d]), version),
            [1..=3, 0, ..] | [] | [_] => {
                return Err(format!("not a .npy file: it ends within its first {} bytes", Self::MOST));
            }
            [major, minor, ..] => return Err(format!("its version is {major}.{minor}, expected 1.0, 2.0 or 3.0")),
        };
        if text > MOST_BYTES {
            return Err(format!("its header has {text} bytes, expected at most {MOST_BYTES}"));
        }
        Ok(Self { bytes: if version == 1 { Self::LEAST } else { Self::MOST }, text: text as usize, version })
    }
}

impl Header {
    /// Parses the text after `preamble`.
    pub(crate) fn parse(preamble: &Preamble, text: &[u8]) -> Result<Self, String> {
        // Versions 1 and 2 are Latin-1, version 3 is UTF-8; the parser accepts only ASCII.
        let mut reader = Reader { text, at: 0, long: preamble.version < 3 };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        reader.expect(b'{')?;
        while !reader.takes(b'}') {
            let key = reader.string()?;
            reader.expect(b':')?;
            let again = match key {
                "descr" => descr.replace(reader.dtype()?).is_some(),
                "fortran_order" => fortran.replace(reader.truth()?).is_some(),
                "shape" => shape.replace(reader.tuple()?).is_some(),
                _ => {
                    return Err(format!(
                        "its header has a key '{}' besides descr, fortran_order and shape",
                        brief(key)
                    ));
                }
            };
            if again {
                return Err(format!("its header has the key '{key}' twice"));
            }
            if !reader.takes(b',') {
                reader.expect(b'}')?;
                break;
            }
        }
        reader.spaces();
        if reader.at < text.len() {
            return Err(reader.wrong("the end"));
        }
        let missing = |key| move || format!("its header lacks the key '{key}'");
        let (dtype, swapped) = descr.ok_or_else(missing("descr"))?;
        let fortran = fortran.ok_or_else(missing("fortran_order"))?;
        let shape = shape.ok_or_else(missing("shape"))?;
        Ok(Self { dtype, swapped, fortran, shape })
    }

    /// The bytes before the data of an array in C order.
    pub(crate) fn write(dtype: &Dtype, shape: &[usize]) -> Vec<u8> {
        let lengths: Vec<_> = shape.iter().map(usize::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        let text =
            format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({}{comma}), }}", lengths.join(", "));
        // The longest shape has 64 lengths of 20 digits, which fit in version 1.
        let bytes = (Preamble::LEAST + text.len() + 1).next_multiple_of(ALIGNMENT);
        let mut header = MAGIC.to_vec();
        header.extend([1, 0]);
        header.extend(((bytes - Preamble::LEAST) as u16).to_le_bytes());
        header.extend(text.bytes());
        header.resize(bytes - 1, b' ');
        header.push(b'\n');
        header
    }
}

/// A parser of the literals in a header.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// True if integers may end with `L`, as in Python 2.
    long: bool,
}

impl<'a> Reader<'a> {
    fn spaces(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.spaces();
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let takes = self.peek() == Some(byte);
        self.at += usize::from(takes);
        takes
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.takes(byte) { Ok(()) } else { Err(self.wrong(&format!("`{}`", char::from(byte)))) }
    }

    fn wrong(&self, wanted: &str) -> String {
        let found = match self.text.get(self.at) {
            Some(byte) => format!("byte {} of its header is `{}`", self.at, byte.escape_ascii()),
            None => format!("its header ends at byte {}", self.at),
        };
        format!("not a .npy file: {found}, expected {wanted}")
    }

    /// Takes the bytes from here on, as long as `holds` returns true.
    fn run(&mut self, holds: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let run = &rest[..rest.iter().position(|&byte| !byte.is_ascii() || !holds(byte)).unwrap_or(rest.len())];
        self.at += run.len();
        str::from_utf8(run).unwrap_or_default()
    }

    /// Takes a string without escapes.
    fn string(&mut self) -> Result<&'a str, String> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.wrong("a string")),
        };
        self.at += 1;
        let string = self.run(|byte| byte != quote && byte != b'\\' && !byte.is_ascii_control());
        if self.text.get(self.at) != Some(&quote) {
            return Err(self.wrong("the end of a string"));
        }
        self.at += 1;
        Ok(string)
    }

    fn dtype(&mut self) -> Result<(Dtype, bool), String> {
        match self.peek() {
            // The fields of a record do not matter.
            Some(b'[' | b'(' | b'{') => Err(RECORDS.into()),
            _ => Dtype::parse(self.string()?),
        }
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.spaces();
        let start = self.at;
        match self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => {
                self.at = start;
                Err(self.wrong("True or False"))
            }
        }
    }

    /// Takes a tuple of lengths.
    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect(b'(')?;
        let mut lengths = Vec::new();
        while !self.takes(b')') {
            if lengths.len() == MOST_AXES {
                return Err(format!("its shape has more than {MOST_AXES} axes"));
            }
            lengths.push(self.length()?);
            if !self.takes(b',') {
                if self.peek() == Some(b')') && lengths.len() == 1 {
                    // Python's `(3)` is a number.
                    return Err(self.wrong("`,`"));
                }
                self.expect(b')')?;
                break;
            }
        }
        Ok(lengths)
    }

    fn length(&mut self) -> Result<usize, String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
            let digits = self.run(|byte| byte.is_ascii_digit());
            return Err(format!("its shape has a negative length, -{}", brief(digits)));
        }
        let start = self.at;
        let digits = self.run(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
            self.at = start;
            return Err(self.wrong("a length"));
        }
        if self.long && self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        digits.parse().map_err(|_| format!("its shape has a length of {}, which overflows", brief(digits)))
    }
}

/// An ASCII text, or the start of a long one.
fn brief(text: &str) -> String {
    match text.get(..40) {
        Some(start) if text.len() > 40 => format!("{start}… ({} characters)", text.len()),
        _ => text.into(),
    }
}
