//! Operators that the user defines.

use std::fmt;

use bytemuck::Pod;

use super::{Code, Text};
use crate::{Element, ElementType, Error, Result};

/// A user's associative operator, given twice: as a Rust function, and as an OpenCL C expression over `a` and `b`.
///
/// [`Device::reduce`](crate::Device::reduce) takes an operator over any type. Reductions of groups, and
/// [`Device::scan`](crate::Device::scan), take an operator over a [`Combinable`](super::Combinable) type: an element type or
/// a struct. Reductions of all elements need a commutative operator, and so do those of element types along axes.
/// Segments, runs of keys and scans do not.
///
/// The caller promises that the operator is associative, and commutative where a reduction needs it. The caller also
/// promises that its identity is neutral, and that function and expression agree. [`op::laws`](crate::op::laws) checks
/// these promises on values; [`op::ordered_laws_by`](crate::op::ordered_laws_by) does not check commutativity. The
/// expression is compiled without fast math, and multiplications are not fused with additions.
///
/// ```
/// use oclprim::{Device, op::Operator};
///
/// let larger = Operator::new("larger", f32::NEG_INFINITY, |a: f32, b| a.max(b), "fmax(a, b)");
/// assert_eq!(Device::best()?.reduce(&[1.0, -3.0, 2.5], &larger)?, 2.5);
/// assert_eq!(larger.name(), "larger");
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Over a struct whose definition in OpenCL C has the same memory layout as in Rust:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use oclprim::{Device, op::Operator};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// #[repr(C)]
/// struct Span {
///     from: i32,
///     to: i32,
/// }
///
/// let hull = Operator::of_struct(
///     "hull",
///     "Span",
///     "typedef struct { int from, to; } Span;",
///     Span { from: i32::MAX, to: i32::MIN },
///     |a: Span, b: Span| Span { from: a.from.min(b.from), to: a.to.max(b.to) },
///     "(Span){ min(a.from, b.from), max(a.to, b.to) }",
/// );
/// let spans = [Span { from: 3, to: 5 }, Span { from: -1, to: 2 }];
/// assert_eq!(Device::best()?.reduce(&spans, &hull)?, Span { from: -1, to: 5 });
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone)]
pub struct Operator<T, F> {
    pub(crate) name: String,
    #[doc(hidden)]
    pub identity: T,
    #[doc(hidden)]
    pub combine: F,
    texts: Texts,
    pub(crate) needs_fp64: bool,
}

/// OpenCL C text of a user's function of `a` and `b`: the type and its definition, other functions, and the function's value.
#[derive(Clone)]
pub(super) struct Texts {
    pub(super) type_name: String,
    types: String,
    functions: String,
    pub(super) expression: String,
}

impl Texts {
    pub(super) fn new(type_name: &str, types: &str, expression: &str) -> Self {
        let [type_name, types, expression] = [type_name, types, expression].map(str::to_owned);
        Self { type_name, types, functions: String::new(), expression }
    }

    pub(super) fn with_functions(mut self, text: &str) -> Self {
        self.functions += text;
        self
    }

    /// The text of `expression ? a : b`.
    #[cfg(feature = "macros")]
    pub(super) fn choice(&self) -> Self {
        Self { expression: format!("({}) ? a : b", self.expression), ..self.clone() }
    }

    /// Text that precedes a kernel file: the function `name`, which returns a `result`, over elements of `size` bytes.
    /// `#line` numbers the lines as in the user's texts, and its file names contain `whose`. The text `more` comes
    /// after the function. The macros come last, since members of the user's struct may be named `T` or `T_BYTES`.
    pub(super) fn prelude(&self, whose: &str, size: usize, result: &str, name: &str, more: &str) -> String {
        let Self { type_name, types, functions, expression } = self;
        format!(
            "#ifdef HAS_FP64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n\
             #pragma OPENCL FP_CONTRACT OFF\n\
             #line 1 \"types of {whose}\"\n{types}\n\
             #line 1 \"size of {type_name} of {whose}\"\n\
             typedef char size_is_not_that_of_the_rust_type[sizeof({type_name}) == {size} ? 1 : -1];\n\
             #line 1 \"functions of {whose}\"\n{functions}\n\
             static inline {result} {name}(const {type_name} a, const {type_name} b)\n{{\nreturn\n\
             #line 1 \"{whose}\"\n{expression}\n;\n}}\n\
             {more}\
             #define T {type_name}\n#define T_BYTES {size}\n"
        )
    }
}

/// `name` with spaces in place of the characters that would end a quoted string.
pub(super) fn quoted(name: &str) -> String {
    name.replace(['"', '\\', '\n', '\r'], " ")
}

impl<T: Pod, F: Fn(T, T) -> T> Operator<T, F> {
    /// Maximum bytes of an element: local memory holds one element per work-item.
    ///
    /// ```
    /// use oclprim::{Device, ErrorKind, op::Operator};
    ///
    /// let text = "typedef struct { uchar x[65]; } Long;";
    /// let first = Operator::of_struct("first", "Long", text, [0u8; 65], |a, _| a, "a");
    /// let error = Device::cpu().reduce(&[[1u8; 65]], &first).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Unsupported);
    /// ```
    pub const MAX_BYTES: usize = 64;

    /// An operator over an element type that OpenCL C computes in; `f16` and `bf16` are not such types.
    ///
    /// The driver compiles `expression` into this process, so it must never come from untrusted input. See
    /// [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let nearest = Operator::new("nearest to 0", u32::MAX, |a: u32, b: u32| a.min(b), "min(a, b)");
    /// assert_eq!(Device::best()?.reduce(&[7, 3, 9], &nearest)?, 3);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new(name: &str, identity: T, combine: F, expression: &str) -> Self
    where
        T: Element<Acc = T>,
    {
        let operator = Self::of_struct(name, T::TYPE.storage(), "", identity, combine, expression);
        Self { needs_fp64: T::TYPE.needs_fp64(), ..operator }
    }

    /// An operator over a user's type. The type's name in OpenCL C is `type_name`, and the text `types` defines it. A
    /// kernel does not build if the type's size differs from that of `T`. `type_name` must not be a macro of the build
    /// or of a kernel file, such as `WG` or `TILE`. Nor may `type_name` be a variable of a kernel file, such as `pair`
    /// or `item`. No name in `types` may be a macro of a device; such macros start with `HAS_`, `SG_`, `PTX_`,
    /// `DEVICE_`, `INLINE_` or `EXPLICIT_`. Names such as `Span` avoid all of these.
    ///
    /// The driver compiles `type_name`, `types` and `expression` into this process, so they must never come from untrusted
    /// input. See [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let text = "typedef struct { uint x[2]; } Fraction;";
    /// let product = |a: [u32; 2], b: [u32; 2]| [a[0] * b[0], a[1] * b[1]];
    /// let literal = "(Fraction){{a.x[0] * b.x[0], a.x[1] * b.x[1]}}";
    /// let product = Operator::of_struct("product of fractions", "Fraction", text, [1, 1], product, literal);
    /// assert_eq!(Device::best()?.reduce(&[[1, 2], [3, 5]], &product)?, [3, 10]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn of_struct(name: &str, type_name: &str, types: &str, identity: T, combine: F, expression: &str) -> Self {
        let texts = Texts::new(type_name, types, expression);
        Self { name: quoted(name), identity, combine, texts, needs_fp64: false }
    }

    /// The operator, with OpenCL C functions that its expression calls. A kernel does not build if its file has a
    /// function of the same name, such as `join` or `push`. Give the functions a prefix of your own.
    ///
    /// The driver compiles `text` into this process, so it must never come from untrusted input. See
    /// [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// fn gcd(mut a: u32, mut b: u32) -> u32 {
    ///     while b != 0 {
    ///         (a, b) = (b, a % b);
    ///     }
    ///     a
    /// }
    ///
    /// let text = "uint gcd(uint a, uint b) { while (b != 0) { uint r = a % b; a = b; b = r; } return a; }";
    /// let divisor = Operator::new("gcd", 0u32, gcd, "gcd(a, b)").with_functions(text);
    /// assert_eq!(Device::best()?.reduce(&[12, 18, 30], &divisor)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_functions(self, text: &str) -> Self {
        Self { texts: self.texts.with_functions(text), ..self }
    }

    #[cfg(feature = "macros")]
    pub(super) fn of_texts(name: &str, identity: T, combine: F, texts: Texts, needs_fp64: bool) -> Self {
        Self { name: name.to_owned(), identity, combine, texts, needs_fp64 }
    }

    /// Sets whether a device needs fp64 for the operator.
    #[cfg(feature = "macros")]
    pub(crate) fn with_fp64(self, needs_fp64: bool) -> Self {
        Self { needs_fp64, ..self }
    }

    /// The operator's name, as it appears in the compiler's messages.
    ///
    /// ```
    /// let sum = oclprim::op::Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// assert_eq!(sum.name(), "saturating sum");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Text that precedes a kernel file.
    pub(crate) fn prelude(&self) -> String {
        let (type_name, size) = (&self.texts.type_name, size_of::<T>());
        let bytes = bytemuck::bytes_of(&self.identity);
        let scalar = ElementType::ALL.iter().any(|element| element.storage() == type_name && element.size() == size);
        let identity = if scalar {
            // Mesa 25 loses bytes of the union below.
            let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
            let unsigned = ["uchar", "ushort", "uint", "ulong"][size.ilog2() as usize];
            format!(
                "static inline {type_name} op_identity(void)\n{{\nreturn as_{type_name}(({unsigned}){bits:#x}UL);\n}}\n"
            )
        } else {
            let bytes = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
            format!(
                "static inline {type_name} op_identity(void)\n{{\n\
                 const union {{ uchar bytes[{size}]; {type_name} value; }} identity = {{ {{ {bytes} }} }};\n\
                 return identity.value;\n}}\n"
            )
        };
        self.texts.prelude(&format!("operator {}", self.name), size, type_name, "op_combine", &identity)
    }

    /// The operator's text for kernels with `cl/lib/op.cl`, over an element type.
    pub(super) fn source_over<U: Element>(&self) -> Result<Code> {
        let (name, ours, theirs) = (&self.name, U::TYPE.storage(), &self.texts.type_name);
        if theirs != ours || U::TYPE != U::Acc::TYPE {
            return Err(Error::invalid(format!(
                "operator {name} takes `{theirs}` in OpenCL C, but {} is `{ours}` there",
                U::TYPE
            )));
        }
        Ok(self.source())
    }

    /// The operator's text for kernels.
    #[doc(hidden)]
    pub fn source(&self) -> Code {
        Code(Text::Prelude(self.prelude()))
    }

    /// The device's result for each pair; `None` on the CPU backend.
    #[cfg(feature = "macros")]
    pub(crate) fn pairs(&self, device: &crate::Device, a: &[T], b: &[T]) -> Result<Option<Vec<T>>> {
        super::laws::on_device(device, self, a, b)
    }

    pub(crate) fn expect_size(&self) -> Result<()> {
        let (name, size, most) = (&self.name, size_of::<T>(), Self::MAX_BYTES);
        if (1..=most).contains(&size) {
            return Ok(());
        }
        Err(Error::unsupported(format!("operator {name} is over elements of {size} bytes; 1 to {most} are possible")))
    }
}

impl<T: fmt::Debug, F> fmt::Debug for Operator<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, identity, texts: Texts { expression, .. }, .. } = self;
        write!(f, "Operator({name}: {expression}, identity {identity:?})")
    }
}
