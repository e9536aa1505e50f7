//! The operators of reductions and scans.
//!
//! An operator is associative up to rounding, and has an identity. In a reduction of all elements, or along axes, it is
//! also commutative. The operator computes in the accumulator of its element type: a sum of `f16` is computed in `f32`
//! and rounded once at the end.
//!
//! With the feature `macros`, a user writes an operator, an order or a function in Rust only: `#[operator]`, `#[order]`
//! and `map!` translate it. They do not cover everything, such as a vendor's builtin. For the rest, [`Operator::new`],
//! [`Less::new`] and [`Map::new`] take OpenCL C beside the Rust function.
//!
//! # Text is code
//!
//! [`Operator`], [`Less`] and [`Map`] take OpenCL C text from the user, and a driver compiles it. The code runs with
//! the rights of this process. It can read and write any address that the driver can, and may never end. The crate does
//! not check the text. The text must be a literal of the program, or the program must build it from values that it has
//! parsed, such as numbers. It must never contain text from a file, a network or a user who is not trusted with the
//! process.
//!
//! The constructors are safe functions all the same. The text is part of the program's source, like the Rust function
//! beside it. Only the author can check that the text accesses nothing but its arguments. The author promises this by
//! writing the text. An `unsafe` block around each literal would only repeat that promise.

mod combine;
mod complex;
mod condition;
mod determinism;
#[doc(hidden)]
pub(crate) mod gpu;
mod laws;
mod less;
mod operator;

use std::borrow::Cow;

pub use combine::{
    Anywhere, Combinable, Combine, ForReductions, ForScans, InReductions, InScan, InScans, Leveled, Mean, Own, Usage,
};
#[doc(hidden)]
pub use combine::{ByElement, ByType, Core, OfEither, Scan, Visit, in_scan};
pub use complex::{ComplexOperator, complex_product, complex_sum};
pub use condition::{
    Condition, EqualTo, Everywhere, ForPartitions, ForSelections, InPartitions, InSelections, NonZero, OfFlags, Tested,
    Unordered, UnstableTail,
};
#[doc(hidden)]
pub use condition::{Counts, Known, Predicates};
pub use determinism::Determinism;
#[doc(hidden)]
pub use determinism::Exact;
pub use laws::{laws, laws_by, ordered_laws_by};
#[doc(hidden)]
pub use less::Ranks;
pub use less::{Compare, Less};
pub use operator::Operator;
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    element::{Element, ElementType, Integer},
    runtime::Text,
};
pub use crate::{element::Arithmetic, runtime::Code};

mod sealed {
    pub trait Sealed {}
}

/// Difference: `a - b`, for [`Device::adjacent_difference`](crate::Device::adjacent_difference). It is not associative, so
/// reductions and scans do not take it.
///
/// ```
/// use oclprim::{Device, op::Difference};
///
/// assert_eq!(Device::best()?.adjacent_difference(&[3, 5, 4], Difference)?.to_vec()?, [3, 2, -1]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference;

/// A built-in operator as a run-time value.
///
/// ```
/// use oclprim::op::{Op, OpKind, Sum};
///
/// assert_eq!(<Sum as Op<f32>>::KIND, OpKind::Sum);
/// assert!(OpKind::ALL.iter().filter(|kind| kind.is_bitwise()).count() == 3);
/// assert_eq!((OpKind::Max.name(), OpKind::Max.rounds(), OpKind::Product.rounds()), ("max", false, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
#[non_exhaustive]
pub enum OpKind {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl OpKind {
    /// Every built-in operator.
    ///
    /// ```
    /// use oclprim::op::OpKind;
    ///
    /// assert_eq!(OpKind::ALL.iter().filter(|op| op.is_bitwise()).count(), 3);
    /// ```
    pub const ALL: [Self; 7] = [Self::Sum, Self::Product, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];

    /// The operator's name, such as `sum`.
    ///
    /// ```
    /// assert_eq!(oclprim::op::OpKind::Product.name(), "product");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        }
    }

    /// Returns whether the operator is defined for integers only.
    ///
    /// ```
    /// use oclprim::op::OpKind;
    ///
    /// assert!(OpKind::Xor.is_bitwise() && !OpKind::Max.is_bitwise());
    /// ```
    pub const fn is_bitwise(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }

    /// Returns whether the result of floats depends on the order of evaluation.
    ///
    /// ```
    /// use oclprim::op::OpKind;
    ///
    /// assert!(OpKind::Sum.rounds() && !OpKind::Max.rounds());
    /// ```
    pub const fn rounds(self) -> bool {
        matches!(self, Self::Sum | Self::Product)
    }
}

/// An operator for the CPU backend, built-in or the user's.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Monoid<U: Element, F> {
    #[doc(hidden)]
    pub identity: U::Acc,
    /// The result for an empty input.
    pub empty: U,
    /// True if results depend on the order of evaluation.
    pub ordered: bool,
    #[doc(hidden)]
    pub combine: F,
}

impl<U: Element, F> Monoid<U, F> {
    /// True if `ordered` is false for every operator with these types `U` and `F`. Code for ordered operators is then
    /// not compiled.
    ///
    /// No built-in operator of integers rounds. A built-in operator is a function item of size 0; a user-defined
    /// operator is held by reference.
    pub(crate) const NEVER_ORDERED: bool = size_of::<F>() == 0 && !U::TYPE.is_float();
}

/// The [`Monoid`] of a built-in operator.
#[doc(hidden)]
pub fn monoid<U: Element, O: Op<U>>() -> Monoid<U, impl Fn(U::Acc, U::Acc) -> U::Acc + Copy + Sync> {
    let ordered = O::KIND.rounds() && U::TYPE.is_float();
    Monoid { identity: O::identity(), empty: O::empty(), ordered, combine: O::combine }
}

/// A function of one element, in Rust and in OpenCL C. Kernels apply the function when they load an element.
///
/// The expression is over `x`, which has the element's type, or `float` for `f16` and `bf16`. Its value is converted to
/// the result type. The crate does not check that the expression computes the function. Floats have the same bits as on
/// the CPU if OpenCL C rounds every operation correctly. OpenCL C does so for `+`, `-`, `*`, `fma`, comparisons,
/// conversions and `f`-suffixed constants. A multiplication is fused with an addition only by `fma`.
///
/// ```
/// use oclprim::{Device, Source, op::{Map, Sum}};
///
/// let device = Device::best()?;
/// let samples = device.upload(&[1.0f32, -2.0, 3.5])?;
/// let above = Map::new(|x: f32| u64::from(x > 0.5), "x > 0.5f");
/// assert_eq!(device.reduce(samples.map(&above), Sum)?, 2);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Map<F> {
    pub(crate) function: F,
    pub(crate) text: MapText,
}

/// The OpenCL C text of a [`Map`]: an expression, and functions that it calls. It has no type parameter, so the code that
/// reads it is compiled once.
#[derive(Clone, Debug)]
pub(crate) struct MapText {
    expression: Cow<'static, str>,
    functions: String,
}

impl<F> Map<F> {
    /// A map from a Rust function and the same function in OpenCL C.
    ///
    /// The driver compiles `expression` into this process, so it must never come from untrusted input. See
    /// [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, Sum}};
    ///
    /// let square = Map::new(|x: f32| x * x, "x * x");
    /// assert_eq!(Device::best()?.reduce(vec![1.0f32, 2.0, 3.0].map(&square), Sum)?, 14.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new(function: F, expression: impl Into<Cow<'static, str>>) -> Self {
        Self { function, text: MapText { expression: expression.into(), functions: String::new() } }
    }

    /// The map with OpenCL C functions that its expression calls. Give the functions a prefix of your own.
    ///
    /// The driver compiles `text` into this process, so it must never come from untrusted input. See
    /// [text is code](crate::op#text-is-code).
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, Sum}};
    ///
    /// let text = "static inline float my_cube(float x) { return x * x * x; }";
    /// let cube = Map::new(|x: f32| x * x * x, "my_cube(x)").with_functions(text);
    /// assert_eq!(Device::best()?.reduce(vec![1.0f32, 2.0, 3.0].map(&cube), Sum)?, 36.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_functions(self, text: impl Into<String>) -> Self {
        Self { text: MapText { functions: text.into(), ..self.text }, ..self }
    }

    /// OpenCL C text of the function `mapped`, which `cl/lib/types.cl` calls.
    #[doc(hidden)]
    pub fn prelude(&self, from: ElementType, to: ElementType) -> String {
        self.text.prelude(from, to)
    }
}

impl MapText {
    /// The text of [`CapturingMap::number`].
    fn number(self) -> Self {
        Self { expression: format!("({}\n) != 0", self.expression).into(), ..self }
    }

    /// As [`Map::prelude`].
    pub(crate) fn prelude(&self, from: ElementType, to: ElementType) -> String {
        self.define("mapped", &parameters([from]), to.storage(), &self.functions)
    }

    /// The function that `cl/lib/select.cl` calls to test for the first kind of element (`kind` = 0) or the second
    /// (`kind` = 1). `captured` has the types of the values that it captures.
    fn of_kind(&self, kind: usize, from: ElementType, captured: impl Iterator<Item = ElementType>) -> String {
        let arguments = parameters([from].into_iter().chain(captured));
        self.define(["first_kind", "second_kind"][kind], &arguments, "bool", &self.functions)
    }

    /// The text of the function `name` for sources, which returns a `to`. `known` has the further functions that the
    /// program already contains.
    pub(crate) fn function(&self, name: &str, parameters: &str, to: &str, known: &mut Vec<String>) -> String {
        let functions = if known.contains(&self.functions) { "" } else { &self.functions };
        let text = self.define(name, parameters, to, functions);
        if !functions.is_empty() {
            known.push(self.functions.clone());
        }
        text
    }

    /// `#line` numbers the lines of the expression from 1, so that compiler messages match the user's text.
    fn define(&self, name: &str, arguments: &str, to: &str, functions: &str) -> String {
        let fp64 =
            "#ifdef HAS_FP64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n#pragma OPENCL FP_CONTRACT OFF\n";
        let text = &self.expression;
        format!(
            "{fp64}#line 1 \"functions\"\n{functions}\nstatic inline {to} {name}({arguments})\n{{\n    return\n#line 1 \"expression\"\n{text}\n    ;\n}}\n"
        )
    }
}

/// The names of a map's arguments in OpenCL C: `x`, or `a`, `b`, ..., `z`, `a_1`, `b_1`, ... for several components.
/// The names of captured values follow.
pub(crate) fn argument_names(components: usize, captured: usize) -> Vec<String> {
    let name = |k: usize| {
        let letter = char::from(b'a' + (k % 26) as u8);
        if k < 26 { letter.to_string() } else { format!("{letter}_{}", k / 26) }
    };
    let own = (0..components).map(|k| if components == 1 { "x".into() } else { name(k) });
    own.chain((0..captured).map(|k| format!("c{k}"))).collect()
}

/// The parameters of a function of one component: `x`, then the captured values.
fn parameters(types: impl IntoIterator<Item = ElementType>) -> String {
    let types: Vec<ElementType> = types.into_iter().collect();
    let names = argument_names(1, types.len() - 1);
    let all: Vec<String> = types.iter().zip(names).map(|(ty, name)| format!("{} {name}", ty.storage())).collect();
    all.join(", ")
}

/// A [`Map`] with values that the closure captures, as [`map!`](crate::map) returns it. The values are arguments of the
/// kernel, so another value needs no new build.
///
/// [`Source::map`](crate::Source::map) takes it. A capturing map to `bool` is a [`Condition`].
#[derive(Clone, Debug)]
pub struct CapturingMap<F> {
    pub(crate) map: Map<F>,
    /// The types of the values and their bytes.
    pub(crate) captured: Vec<(ElementType, [u8; 8])>,
}

impl<F> CapturingMap<F> {
    /// A map with one captured value, `c0` in its text.
    pub(crate) fn of_one<T: Element>(function: F, expression: &'static str, value: T) -> Self {
        let mut bytes = [0; 8];
        bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Self { map: Map::new(function, expression), captured: vec![(T::TYPE, bytes)] }
    }

    /// A map that captures nothing.
    fn of_none(map: Map<F>) -> Self {
        Self { map, captured: Vec::new() }
    }

    /// The map of a condition to 1 and 0.
    pub(crate) fn number<In, R: Element>(self) -> CapturingMap<impl Fn(In) -> R + Sync>
    where
        F: Fn(In) -> bool + Sync,
    {
        let Self { map: Map { function, text }, captured } = self;
        let map = Map { function: move |x| if function(x) { R::ONE } else { R::ZERO }, text: text.number() };
        CapturingMap { map, captured }
    }
}

/// A built-in operator over elements of type `T`: [`Sum`], [`Product`], [`Min`] or [`Max`]; for integers also [`And`], [`Or`] or
/// [`Xor`].
///
/// The trait is sealed. A user-defined operator is an [`Operator`]. The trait [`Combine`] covers both.
///
/// ```
/// use oclprim::{Device, op::{Max, Min, Op, Sum}};
///
/// fn range<T: oclprim::Integer>(device: &Device, x: &[T]) -> oclprim::Result<i128> {
///     Ok(device.reduce(x, Max)?.to_i128() - device.reduce(x, Min)?.to_i128())
/// }
///
/// assert_eq!(range(&Device::best()?, &[3u8, 250, 7])?, 247);
/// assert_eq!(<Sum as Op<f32>>::combine(1.0, 2.0), 3.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a built-in operator over `{T}`",
    label = "expected `Sum`, `Product`, `Min` or `Max`; for integers also `And`, `Or` or `Xor`"
)]
pub trait Op<T: Element>: Combine<T, Use = Anywhere, Core = Self> + Core<T> + Usage + Send + Sync {
    /// The operator as a run-time value.
    const KIND: OpKind;

    /// The neutral element: `combine(identity, x)` has the bits of `x`.
    fn identity() -> T::Acc;

    /// The operator itself.
    fn combine(a: T::Acc, b: T::Acc) -> T::Acc;

    /// The result for an empty input.
    fn empty() -> T {
        T::narrow(Self::identity())
    }

    /// The operator in OpenCL C.
    fn source() -> Code {
        Code(Text::Option(match Self::KIND {
            OpKind::Sum => "OP_SUM",
            OpKind::Product => "OP_PRODUCT",
            OpKind::Min => "OP_MIN",
            OpKind::Max => "OP_MAX",
            OpKind::And => "OP_AND",
            OpKind::Or => "OP_OR",
            OpKind::Xor => "OP_XOR",
        }))
    }
}

macro_rules! op {
    ($(#[$doc:meta])* $name:ident, $bound:ident, $identity:expr, $combine:expr $(, $empty:expr)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl Usage for $name {}
        impl<T: Element> Combine<T> for $name where T::Acc: $bound {
            type Use = Anywhere;
            type Core = Self;
            fn taken(self) -> (Self, Scan<T>) { (self, Scan::inclusive()) }
        }
        impl<T: Element> Core<T> for $name where T::Acc: $bound {
            fn of_nothing(self) -> T { <Self as Op<T>>::empty() }
            fn exactly(self, level: Determinism) -> Result<Option<Exact>> {
                Ok(level.exact::<T, Self>()?.then_some(Exact::Sum))
            }
            fn parts(self) -> Result<(Monoid<T, impl Fn(T::Acc, T::Acc) -> T::Acc + Copy + Sync>, Code)> {
                Ok((monoid::<T, Self>(), <Self as Op<T>>::source()))
            }
            fn visit<V: Visit<T>>(self, visitor: V) -> V::Output { visitor.built_in(self) }
        }
        impl<T: Element> Op<T> for $name where T::Acc: $bound {
            const KIND: OpKind = OpKind::$name;
            #[inline]
            fn identity() -> T::Acc { $identity }
            #[inline]
            fn combine(a: T::Acc, b: T::Acc) -> T::Acc { $combine(a, b) }
            $( fn empty() -> T { $empty } )?
        }
    };
}

op!(
    /// Sum: `a + b`. Integers wrap; [`Determinism`] has the error bound of floats. The sum of an
    /// empty input is 0.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// assert_eq!((device.reduce(&[250u8, 10], Sum)?, device.reduce(&[0.0f32; 0], Sum)?), (4, 0.0));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Sum, Element, T::Acc::ADD_IDENTITY, T::Acc::add, T::ZERO
);
op!(
    /// Product: `a * b`. Integers wrap. The product of an empty input is 1.
    ///
    /// ```
    /// use oclprim::{Device, op::Product};
    ///
    /// let device = Device::best()?;
    /// assert_eq!((device.reduce(&[2i32, -3], Product)?, device.reduce(&[0u8; 0], Product)?), (-6, 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Product, Element, T::Acc::ONE, T::Acc::mul
);
op!(
    /// Minimum: `min(a, b)`; NaN if either is NaN; -0 is below +0. The minimum of an empty input is the type's highest
    /// value, for floats +infinity.
    ///
    /// ```
    /// use oclprim::{Device, op::Min};
    ///
    /// let device = Device::best()?;
    /// assert_eq!((device.reduce(&[2i32, -3], Min)?, device.reduce(&[0u8; 0], Min)?), (-3, 255));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Min, Element, T::Acc::HIGHEST, T::Acc::min
);
op!(
    /// Maximum: `max(a, b)`; NaN if either is NaN; -0 is below +0. The maximum of an empty input is the type's lowest
    /// value, for floats -infinity.
    ///
    /// ```
    /// use oclprim::{Device, op::Max};
    ///
    /// let device = Device::best()?;
    /// assert!(device.reduce(&[0.5f32, 2.0], Max)? == 2.0 && device.reduce(&[f32::NAN, 2.0], Max)?.is_nan());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Max, Element, T::Acc::LOWEST, T::Acc::max
);
op!(
    /// Bitwise and: `a & b`, for integers. The result for an empty input has all bits set.
    ///
    /// ```
    /// use oclprim::{Device, op::And};
    ///
    /// let device = Device::best()?;
    /// assert_eq!((device.reduce(&[6u8, 3], And)?, device.reduce(&[0u8; 0], And)?), (2, 255));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    And, Integer, T::Acc::ALL_ONES, T::Acc::and
);
op!(
    /// Bitwise or: `a | b`, for integers. The result for an empty input is 0.
    ///
    /// ```
    /// use oclprim::{Device, op::Or};
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.reduce(&[6u8, 3], Or)?, 7);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Or, Integer, T::Acc::ZERO, T::Acc::or
);
op!(
    /// Bitwise exclusive or: `a ^ b`, for integers. The result for an empty input is 0.
    ///
    /// ```
    /// use oclprim::{Device, op::Xor};
    ///
    /// let device = Device::best()?;
    /// assert_eq!(device.reduce(&[6u8, 3], Xor)?, 5);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    Xor, Integer, T::Acc::ZERO, T::Acc::xor
);
