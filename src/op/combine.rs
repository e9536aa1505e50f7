//! The trait of all operators, and their usage.

use bytemuck::Pod;

use super::{Code, Determinism, Exact, Monoid, Op, Operator, Sum, monoid, sealed::Sealed};
#[allow(unused_imports, reason = "for the documentation")]
use crate::Device;
use crate::{Complex, Element, Error, Float, Result};

/// An operator over elements of type `T`, with its usage. It is a built-in operator such as [`Sum`](super::Sum), a
/// user's [`&Operator`](Operator), or what a method of [`Usage`] returns for one of these.
///
/// Only the crate implements this trait.
///
/// ```
/// use oclprim::{Device, Source, op::{Combine, ForScans, Max, Operator, Sum, Usage}};
///
/// fn last(device: &Device, x: &[u32], op: impl Combine<u32, Use: ForScans>) -> oclprim::Result<u32> {
///     Ok(device.scan(x, op)?.to_vec()?[x.len() - 1])
/// }
///
/// let (device, x) = (Device::best()?, [3, 9, 4]);
/// let union = Operator::new("union", 0u32, |a, b| a | b, "a | b");
/// assert_eq!((last(&device, &x, Sum)?, last(&device, &x, Max)?, last(&device, &x, &union)?), (16, 9, 15));
/// assert_eq!(last(&device, &x, Sum.exclusive())?, 12);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A closure alone is not an operator, because a device cannot run it. With the feature `macros`, `#[operator]`
/// translates a function; else [`Operator::new`] takes a closure together with an equal expression in OpenCL C.
///
/// ```compile_fail,E0277
/// oclprim::Device::cpu().reduce(&[1.0f32, 2.0], |a: f32, b: f32| a + b)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// [`exclusive`](Usage::exclusive) and [`reversed`](Usage::reversed) are for scans:
///
/// ```compile_fail,E0277
/// use oclprim::{Device, op::{Sum, Usage}};
///
/// Device::cpu().reduce(&[1.0f32, 2.0], Sum.reversed())?;
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operator over `{T}`",
    label = "expected `Sum`, `Product`, `Min` or `Max`; for integers also `And`, `Or` or `Xor`; or `&Operator<{T}, _>`",
    note = "for a function of the user, write `#[operator]`, with the feature `macros`, or make an operator with \
            `op::Operator::new(name, identity, closure, expression)`, and pass it by reference",
    note = "for a function of each element, pass the source `x.map(op::Map::new(closure, expression))` as the input"
)]
pub trait Combine<T: Pod>: Copy + Sealed {
    /// The primitives that take the operator: [`Anywhere`], [`InScans`] or [`InReductions`].
    type Use;
    #[doc(hidden)]
    type Core: Core<T>;

    /// The operator itself, and its usage.
    #[doc(hidden)]
    fn taken(self) -> (Self::Core, Scan<T>);
}

/// The type of the values that scans and reductions of groups combine: an [`Element`], a complex number, or a struct.
///
/// `#[derive(SharedType)]` implements the trait for a struct. For a struct whose OpenCL C text you pass to
/// [`Operator::of_struct`], implement the trait yourself. It needs no methods:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use oclprim::{Device, op::{Combinable, Operator}};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// #[repr(C)]
/// struct Span {
///     from: i32,
///     to: i32,
/// }
/// impl Combinable for Span {}
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
/// let hulls = Device::best()?.scan(&spans, &hull)?.to_vec()?;
/// assert_eq!(hulls, [Span { from: 3, to: 5 }, Span { from: -1, to: 5 }]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an element type nor a struct for devices",
    label = "expected `i8`..`i64`, `u8`..`u64`, `f16`, `bf16`, `f32`, `f64`, or a struct",
    note = "use `u8` (0 and 1) for `bool`, `u64` for `usize`, and `i64` for `isize`",
    note = "for a struct, write `#[derive(SharedType)]`, with the feature `macros`, or `impl op::Combinable for {Self} {{}}`"
)]
pub trait Combinable: Copy + Send + Sync + 'static {
    /// Calls the visitor's code for elements or for structs.
    #[doc(hidden)]
    fn by_type<V: ByType<Self>>(visitor: V) -> V::Output
    where
        Self: Pod,
    {
        visitor.structs()
    }
}

impl<T: Element> Combinable for T {
    fn by_type<V: ByType<T>>(visitor: V) -> V::Output {
        visitor.elements()
    }
}

impl Combinable for Complex<f32> {}
impl Combinable for Complex<f64> {}

/// Code that differs between elements and structs.
#[doc(hidden)]
pub trait ByType<T: Pod> {
    type Output;

    fn elements(self) -> Self::Output
    where
        T: Element;

    fn structs(self) -> Self::Output;
}

/// Code for operators over elements, and for a user-defined operator over structs.
#[doc(hidden)]
pub trait OfEither<T: Pod>: Sized {
    type Output;

    fn of_elements(self, op: impl Core<T>) -> Self::Output
    where
        T: Element;

    fn of_structs<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Self::Output;
}

/// The visitor that calls the code of an [`OfEither`].
#[doc(hidden)]
pub struct ByElement<E>(pub E);

impl<T: Combinable + Pod, E: OfEither<T>> Visit<T> for ByElement<E> {
    type Output = E::Output;

    fn built_in<O: Op<T>>(self, op: O) -> E::Output
    where
        T: Element,
    {
        self.0.of_elements(op)
    }

    fn users<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> E::Output {
        T::by_type(ByUser(self.0, op))
    }

    fn mean(self) -> E::Output
    where
        T: Float,
    {
        self.0.of_elements(Mean)
    }
}

struct ByUser<'o, T, F, E>(E, &'o Operator<T, F>);

impl<T: Pod, F: Fn(T, T) -> T + Sync, E: OfEither<T>> ByType<T> for ByUser<'_, T, F, E> {
    type Output = E::Output;

    fn elements(self) -> E::Output
    where
        T: Element,
    {
        self.0.of_elements(self.1)
    }

    fn structs(self) -> E::Output {
        self.0.of_structs(self.1)
    }
}

/// Marks operators that reductions and scans take.
#[derive(Clone, Copy, Debug)]
pub enum Anywhere {}

/// Marks operators that only scans take.
#[derive(Clone, Copy, Debug)]
pub enum InScans {}

/// Marks operators that only reductions take.
#[derive(Clone, Copy, Debug)]
pub enum InReductions {}

/// The marker types [`Combine::Use`] of the operators that a reduction takes.
#[diagnostic::on_unimplemented(
    message = "a reduction does not take this operator",
    note = "`exclusive`, `inclusive`, `reversed` and `starting` are for scans"
)]
pub trait ForReductions: Sealed {}
/// The marker types [`Combine::Use`] of the operators that a scan takes.
#[diagnostic::on_unimplemented(message = "a scan does not take this operator", note = "`Mean` is for reductions")]
pub trait ForScans: Sealed {}
impl Sealed for Anywhere {}
impl Sealed for InScans {}
impl Sealed for InReductions {}
impl ForReductions for Anywhere {}
impl ForReductions for InReductions {}
impl ForScans for Anywhere {}
impl ForScans for InScans {}

/// An operator without its usage. Code is compiled once for each of these, not for each usage.
#[doc(hidden)]
pub trait Core<T: Pod>: Copy {
    /// The result for empty input.
    fn of_nothing(self) -> T;

    /// The exact result at this level, a sum or a mean; `None` for the usual result. An error if the operator has no
    /// exact results.
    fn exactly(self, level: Determinism) -> Result<Option<Exact>>;

    /// The operator for the CPU backend, and its source for kernels with `cl/lib/op.cl`.
    #[expect(clippy::type_complexity, reason = "an alias cannot hold `impl Fn`")]
    fn parts(self) -> Result<(Monoid<T, impl Fn(T::Acc, T::Acc) -> T::Acc + Copy + Sync>, Code)>
    where
        T: Element;

    fn visit<V: Visit<T>>(self, visitor: V) -> V::Output;
}

/// Code that differs between built-in operators and those of the user.
#[doc(hidden)]
pub trait Visit<T: Pod> {
    type Output;

    fn built_in<O: Op<T>>(self, op: O) -> Self::Output
    where
        T: Element;

    fn users<F: Fn(T, T) -> T + Sync>(self, op: &Operator<T, F>) -> Self::Output;

    fn mean(self) -> Self::Output
    where
        T: Float;
}

/// The mean of floats, correctly rounded: the float nearest to the exact sum divided by the number of elements.
///
/// Its bits do not depend on the order of the elements. The [rules](crate::exact#special-values) for special values are
/// those of the sum. Products of [`times`](crate::Source::times) are added exactly, also in groups. The mean of an empty
/// input is NaN. Reductions take this operator, and scans do not. [`Device::mean`] takes any type, and rounds more than
/// once.
///
/// ```
/// use oclprim::{Device, Source, op::Mean};
///
/// let (device, x) = (Device::best()?, [1e30f32, 1.0, -1e30, 0.5]);
/// assert_eq!(device.reduce(&x, Mean)?, 0.375);
/// let means = device.reduce(x.segments(&[0u32, 3, 3, 4]), Mean)?.to_vec()?;
/// assert!(means[0] == 1.0 / 3.0 && means[1].is_nan() && means[2] == 0.5);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean;

impl Sealed for Mean {}

impl<T: Float> Combine<T> for Mean {
    type Use = InReductions;
    type Core = Self;

    fn taken(self) -> (Self, Scan<T>) {
        (self, Scan::inclusive())
    }
}

impl<T: Float> Core<T> for Mean {
    fn of_nothing(self) -> T {
        T::from_f64(f64::NAN)
    }

    fn exactly(self, _: Determinism) -> Result<Option<Exact>> {
        Ok(Some(Exact::Mean))
    }

    fn parts(self) -> Result<(Monoid<T, impl Fn(T::Acc, T::Acc) -> T::Acc + Copy + Sync>, Code)> {
        Ok((monoid::<T, Sum>(), <Sum as Op<T>>::source()))
    }

    fn visit<V: Visit<T>>(self, visitor: V) -> V::Output {
        visitor.mean()
    }
}

impl<T, F> Sealed for &Operator<T, F> {}

impl<T: Pod, F: Fn(T, T) -> T + Sync> Combine<T> for &Operator<T, F> {
    type Use = Anywhere;
    type Core = Self;

    fn taken(self) -> (Self, Scan<T>) {
        (self, Scan::inclusive())
    }
}

impl<T: Pod, F: Fn(T, T) -> T + Sync> Core<T> for &Operator<T, F> {
    fn of_nothing(self) -> T {
        self.identity
    }

    fn exactly(self, level: Determinism) -> Result<Option<Exact>> {
        match level {
            Determinism::Exact => {
                Err(Error::unsupported(format!("operator {} has no exact results; float sums have them", self.name)))
            }
            _ => Ok(None),
        }
    }

    fn parts(self) -> Result<(Monoid<T, impl Fn(T::Acc, T::Acc) -> T::Acc + Copy + Sync>, Code)>
    where
        T: Element,
    {
        // The accumulator is `T`. `source_over` returns an error if the operator's type in OpenCL C is another one.
        let combine = |a: T::Acc, b: T::Acc| (self.combine)(T::narrow(a), T::narrow(b)).widen();
        let source = self.source_over::<T>()?;
        let identity = self.identity;
        Ok((Monoid { identity: identity.widen(), empty: identity, ordered: true, combine }, source))
    }

    fn visit<V: Visit<T>>(self, visitor: V) -> V::Output {
        visitor.users(self)
    }
}

/// The usage of an operator: its level of determinism, and for scans the direction and the start.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan<T> {
    pub(crate) initial: Option<T>,
    #[doc(hidden)]
    pub reversed: bool,
    pub(crate) determinism: Determinism,
}

impl<T> Scan<T> {
    #[doc(hidden)]
    pub const fn inclusive() -> Self {
        Self { initial: None, reversed: false, determinism: Determinism::Fixed }
    }

    #[doc(hidden)]
    pub const fn exclusive(initial: T) -> Self {
        Self { initial: Some(initial), reversed: false, determinism: Determinism::Fixed }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { reversed: !self.reversed, ..self }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn with(self, determinism: Determinism) -> Self {
        Self { determinism, ..self }
    }
}

/// Ways to use an operator: exact, in any order, exclusive, reversed.
///
/// Every operator has these methods. They compute nothing: errors come from the call that takes the operator.
///
/// ```
/// use oclprim::{Device, op::{Sum, Usage}};
///
/// let device = Device::best()?;
/// let x = device.upload(&[1e30f32, 1.0, -1e30])?;
/// assert_eq!((device.reduce(&x, Sum)?, device.reduce(&x, Sum.exact())?), (0.0, 1.0));
/// assert_eq!(device.scan(&x, Sum.exact().exclusive())?.to_vec()?, [0.0, 1e30, 1e30]);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub trait Usage: Copy {
    /// The operator at a level of determinism. Without this call the level is [`Determinism::Fixed`].
    ///
    /// The level does not affect integers, min and max. Scans, segments, runs of keys and axes have one order, so
    /// [`Fast`](Determinism::Fast) is the same as `Fixed` there. For a user-defined operator the two are always the same.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::{Sum, Usage}};
    ///
    /// let total = Device::best()?.reduce(&[0.5f32; 1000], Sum.with(Determinism::Fast))?;
    /// assert_eq!(total, 500.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn with(self, determinism: Determinism) -> Leveled<Self> {
        Leveled { op: self, determinism }
    }

    /// The operator with [`Determinism::Exact`]: each float sum is correctly rounded, for any order of the elements.
    ///
    /// A reduction adds the exact products of [`times`](crate::Source::times), also in groups. A scan rounds the
    /// products first. A call returns [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Product`](super::Product) over floats, for a user's operator, and for a float scan of groups.
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// assert_eq!(Device::best()?.reduce(&[1e100f64, 1.0, -1e100], Sum.exact())?, 1.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn exact(self) -> Leveled<Self> {
        self.with(Determinism::Exact)
    }

    /// The operator with [`Determinism::Fast`]: a float reduction of a whole input may use any order.
    ///
    /// ```
    /// use oclprim::{Device, op::{Product, Usage}};
    ///
    /// assert_eq!(Device::best()?.reduce(&[0.5f32, 8.0, -1.0], Product.fast())?, -4.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn fast(self) -> Leveled<Self> {
        self.with(Determinism::Fast)
    }

    /// Inclusive scan: `out[i] = x[0] op ... op x[i]`. A scan by a plain operator is inclusive, too. This method has
    /// the same return type as [`exclusive`](Self::exclusive), so a program can choose at run time.
    ///
    /// ```
    /// use oclprim::{Device, op::{Max, Usage}};
    ///
    /// for (exclusive, want) in [(false, [2, 7, 7]), (true, [i8::MIN, 2, 7])] {
    ///     let op = if exclusive { Max.exclusive() } else { Max.inclusive() };
    ///     assert_eq!(Device::best()?.scan(&[2i8, 7, 5], op)?.to_vec()?, want);
    /// }
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn inclusive(self) -> InScan<Self> {
        InScan { op: self, determinism: None, exclusive: false, start: Own, reversed: false }
    }

    /// Exclusive scan: `out[i] = x[0] op ... op x[i - 1]`. `out[0]` is the operator's result for empty input, unless
    /// [`starting`](InScan::starting) sets another start.
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3u32, 1, 4])?;
    /// assert_eq!(device.scan(&x, Sum.exclusive())?.to_vec()?, [0, 3, 4]);
    /// assert_eq!(device.scan(&x, Sum.exclusive().starting(10))?.to_vec()?, [10, 13, 14]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn exclusive(self) -> InScan<Self> {
        InScan { exclusive: true, ..self.inclusive() }
    }

    /// Scan from the last element to the first: `out[i] = x[n - 1] op ... op x[i]`.
    ///
    /// An exclusive scan may have one more result; see [`Device::scan_into`]. In a reversed scan, this result is the
    /// first element of the output: `start op x[n - 1] op ... op x[0]`.
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[3u32, 1, 4])?;
    /// assert_eq!(device.scan(&x, Sum.reversed())?.to_vec()?, [8, 5, 4]);
    /// assert_eq!(device.scan(&x, Sum.exclusive().reversed())?.to_vec()?, [5, 4, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    fn reversed(self) -> InScan<Self> {
        InScan { reversed: true, ..self.inclusive() }
    }
}

impl<T, F> Usage for &Operator<T, F> {}

/// An operator with a level of determinism; see [`Usage::with`].
#[derive(Clone, Copy, Debug)]
pub struct Leveled<O> {
    op: O,
    determinism: Determinism,
}

impl<O> Sealed for Leveled<O> {}
impl<O: Copy> Usage for Leveled<O> {}

impl<T: Pod, O: Combine<T>> Combine<T> for Leveled<O> {
    type Use = O::Use;
    type Core = O::Core;

    fn taken(self) -> (O::Core, Scan<T>) {
        let (op, usage) = self.op.taken();
        (op, usage.with(self.determinism))
    }
}

/// An operator of a scan; see [`Usage::exclusive`]. `S` is the type of the start.
#[derive(Clone, Copy, Debug)]
pub struct InScan<O, S = Own> {
    op: O,
    determinism: Option<Determinism>,
    exclusive: bool,
    start: S,
    reversed: bool,
}

/// The start of a scan: the operator's result for empty input.
#[derive(Clone, Copy, Debug)]
pub struct Own;

impl<O, S> InScan<O, S> {
    /// Exclusive scan that starts with a value: `out[i] = start op x[0] op ... op x[i - 1]`, so `out[0] = start`.
    ///
    /// ```
    /// use oclprim::{Device, op::{Max, Usage}};
    ///
    /// let largest = Device::best()?.scan(&[2i8, 7, 5], Max.exclusive().starting(4))?;
    /// assert_eq!(largest.to_vec()?, [4, 4, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn starting<T: Pod>(self, start: T) -> InScan<O, T> {
        let Self { op, determinism, reversed, .. } = self;
        InScan { op, determinism, exclusive: true, start, reversed }
    }

    /// The scan at a level of determinism, as [`Usage::with`].
    ///
    /// ```
    /// use oclprim::{Determinism, Device, op::{Sum, Usage}};
    ///
    /// let sums = Device::best()?.scan(&[1e30f32, 1.0, -1e30], Sum.reversed().with(Determinism::Exact))?;
    /// assert_eq!(sums.to_vec()?, [1.0, -1e30, -1e30]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[must_use]
    pub fn with(self, determinism: Determinism) -> Self {
        Self { determinism: Some(determinism), ..self }
    }

    /// The scan with [`Determinism::Exact`], as [`Usage::exact`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// let sums = Device::best()?.scan(&[1e30f32, 1.0, -1e30], Sum.exclusive().exact().starting(0.5))?;
    /// assert_eq!(sums.to_vec()?, [0.5, 1e30, 1e30]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[must_use]
    pub fn exact(self) -> Self {
        self.with(Determinism::Exact)
    }

    /// The exclusive scan, as [`Usage::exclusive`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// assert_eq!(Device::best()?.scan(&[3u32, 1, 4], Sum.reversed().exclusive())?.to_vec()?, [5, 4, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// The scan in the other direction, as [`Usage::reversed`].
    ///
    /// ```
    /// use oclprim::{Device, op::{Sum, Usage}};
    ///
    /// assert_eq!(Device::best()?.scan(&[3u32, 1, 4], Sum.reversed().reversed())?.to_vec()?, [3, 4, 8]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { reversed: !self.reversed, ..self }
    }
}

/// The start of a scan.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a scan of `{T}` cannot start with a value of type `{Self}`",
    note = "the start has the elements' type; for results of another type, write `x.cast::<{Self}>()` as the input"
)]
pub trait Start<T>: Copy {
    fn or(self, own: T) -> T;
}

impl<T: Pod> Start<T> for T {
    fn or(self, _: T) -> T {
        self
    }
}

impl<T: Pod> Start<T> for Own {
    fn or(self, own: T) -> T {
        own
    }
}

impl<O, S> Sealed for InScan<O, S> {}

impl<T: Pod, O: Combine<T>, S: Start<T>> Combine<T> for InScan<O, S> {
    type Use = InScans;
    type Core = O::Core;

    fn taken(self) -> (O::Core, Scan<T>) {
        let (op, inner) = self.op.taken();
        let usage = Scan {
            initial: self.exclusive.then(|| self.start.or(op.of_nothing())),
            reversed: self.reversed,
            determinism: self.determinism.unwrap_or(inner.determinism),
        };
        (op, usage)
    }
}

/// An operator with a usage that a test chooses at run time.
#[doc(hidden)]
pub fn in_scan<T: Copy, O>(op: O, usage: Scan<T>) -> Chosen<O, T> {
    Chosen { op, usage }
}

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Chosen<O, T> {
    op: O,
    usage: Scan<T>,
}

impl<O, T> Sealed for Chosen<O, T> {}

impl<T: Pod, O: Combine<T>> Combine<T> for Chosen<O, T> {
    type Use = InScans;
    type Core = O::Core;

    fn taken(self) -> (O::Core, Scan<T>) {
        (self.op.taken().0, self.usage)
    }
}
