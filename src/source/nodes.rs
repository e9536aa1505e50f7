//! Sources over sources.

use std::{
    marker::PhantomData,
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use bytemuck::Pod;

use super::{
    Blocks, Function, Narrow, Source, Values, finite, gpu,
    load::{self, Component, Index, Text, holds},
    outside,
    transform::Held,
};
use crate::{
    Device, Element, Error, Input, Integer, Result,
    op::{Arithmetic, Tested},
    runtime::opencl::ClDevice,
};

/// Mapped elements; see [`Source::map`].
#[derive(Clone, Copy, Debug)]
pub struct Map<S, F> {
    pub(super) source: S,
    pub(super) function: F,
}

pub(super) struct MapValues<'f, V, F> {
    values: V,
    function: &'f F,
}

impl<V: Values<Item: super::Item>, F: Function<V::Item>> Values for MapValues<'_, V, F> {
    type Item = F::Output;

    #[inline]
    fn at(&self, i: usize) -> F::Output {
        self.function.apply(self.values.at(i))
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = F::Output> + ExactSizeIterator {
        self.values.values(range).map(|x| self.function.apply(x))
    }

    fn checked(&self) -> Result<()> {
        self.values.checked()
    }
}

impl<S: Source<Item: super::Item>, F: Function<S::Item>> Source for Map<S, F> {
    type Item = F::Output;

    fn length(&self) -> Result<Option<usize>> {
        self.source.length()
    }

    fn host(&self) -> Result<impl Values<Item = F::Output>> {
        Ok(MapValues { values: self.source.host()?, function: &self.function })
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        text.declare::<S::Item>();
        let arguments = self.source.emit(text, index)?;
        Ok(vec![self.function.emit(text, &arguments)])
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.source.search(device, n)
    }
}

/// Tuples of elements; see [`Source::zip`] and [`zip`].
#[derive(Clone, Copy, Debug)]
pub struct Zip<S>(pub(super) S);

/// Tuples of elements of two to four sources: `(x[0], y[0], z[0]), (x[1], y[1], z[1]), ...`
///
/// ```
/// use oclprim::{Device, Source, op::{Map, Sum}, source::zip};
///
/// let (x, y, z) = (vec![1u32, 2], vec![3u32, 4], vec![5u32, 6]);
/// let volume = Map::new(|(a, b, c): (u32, u32, u32)| a * b * c, "a * b * c");
/// assert_eq!(Device::best()?.reduce(zip((&x, &y, &z)).map(volume), Sum)?, 63);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn zip<S>(sources: S) -> Zip<S>
where
    Zip<S>: Source,
{
    Zip(sources)
}

/// The common length of two sources.
fn joined(node: &str, one: Option<usize>, other: Option<usize>) -> Result<Option<usize>> {
    match (one, other) {
        (Some(n), Some(m)) if n != m => {
            Err(Error::invalid(format!("{node} needs sources of equal length, got {n} and {m} elements")))
        }
        (one, other) => Ok(one.or(other)),
    }
}

macro_rules! zips {
    ($($($name:ident $part:tt)*, $parts:tt;)*) => {
        $(
            impl<$($name: Values),*> Values for Zip<($($name,)*)> {
                type Item = ($($name::Item,)*);

                #[inline]
                fn at(&self, i: usize) -> Self::Item {
                    ($(self.0.$part.at(i),)*)
                }

                #[inline]
                fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = Self::Item> + ExactSizeIterator {
                    zips!(@iterate self range $parts)
                }

                fn checked(&self) -> Result<()> {
                    $(self.0.$part.checked()?;)*
                    Ok(())
                }
            }

            impl<$($name: Source),*> Source for Zip<($($name,)*)> {
                type Item = ($($name::Item,)*);

                fn length(&self) -> Result<Option<usize>> {
                    let mut length = None;
                    $(length = joined("zip", length, self.0.$part.length()?)?;)*
                    Ok(length)
                }

                fn host(&self) -> Result<impl Values<Item = Self::Item>> {
                    Ok(Zip(($(self.0.$part.host()?,)*)))
                }

                fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
                    let mut all = Vec::new();
                    $(all.extend(self.0.$part.emit(text, index)?);)*
                    Ok(all)
                }

                fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
                    $(self.0.$part.search(device, n)?;)*
                    Ok(())
                }
            }
        )*
    };
    (@iterate $this:ident $range:ident [0 1]) => {
        $this.0.0.values($range.clone()).zip($this.0.1.values($range))
    };
    (@iterate $this:ident $range:ident [0 1 2]) => {
        $this.0.0.values($range.clone()).zip($this.0.1.values($range.clone())).zip($this.0.2.values($range))
            .map(|((a, b), c)| (a, b, c))
    };
    (@iterate $this:ident $range:ident [0 1 2 3]) => {
        $this.0.0.values($range.clone()).zip($this.0.1.values($range.clone()))
            .zip($this.0.2.values($range.clone()).zip($this.0.3.values($range)))
            .map(|((a, b), (c, d))| (a, b, c, d))
    };
}
zips! {
    A 0 B 1, [0 1];
    A 0 B 1 C 2, [0 1 2];
    A 0 B 1 C 2 D 3, [0 1 2 3];
}

/// Products; see [`Source::times`].
#[derive(Clone, Copy, Debug)]
pub struct Times<X, Y>(pub(super) X, pub(super) Y);

fn product<T: Element>(x: T, y: T) -> T {
    T::narrow(x.widen().mul(y.widen()))
}

impl<X: Values<Item: Element>, Y: Values<Item = X::Item>> Values for Times<X, Y> {
    type Item = X::Item;

    #[inline]
    fn at(&self, i: usize) -> X::Item {
        product(self.0.at(i), self.1.at(i))
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = X::Item> + ExactSizeIterator {
        self.0.values(range.clone()).zip(self.1.values(range)).map(|(x, y)| product(x, y))
    }

    fn checked(&self) -> Result<()> {
        self.0.checked()?;
        self.1.checked()
    }

    fn factors(&self) -> Option<[&dyn Blocks<X::Item>; 2]> {
        Some([&self.0, &self.1])
    }
}

impl<X: Source<Item: Element>, Y: Source<Item = X::Item>> Source for Times<X, Y> {
    type Item = X::Item;

    fn length(&self) -> Result<Option<usize>> {
        joined("times", self.0.length()?, self.1.length()?)
    }

    fn host(&self) -> Result<impl Values<Item = X::Item>> {
        Ok(Times(self.0.host()?, self.1.host()?))
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let (x, y) = (self.0.emit(text, index)?, self.1.emit(text, index)?);
        Ok(vec![text.product(&load::only(x), &load::only(y), index)])
    }

    fn held_factors<'a>(&'a self, n: usize, device: &Device) -> Result<Option<[Held<'a, X::Item>; 2]>> {
        Ok(Some([self.0.erased().first(n, device)?, self.1.erased().first(n, device)?]))
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.0.search(device, n)?;
        self.1.search(device, n)
    }
}

/// Elements of another type; see [`Source::cast`].
#[derive(Clone, Copy, Debug)]
pub struct Cast<S, U>(S, PhantomData<fn() -> U>);

impl<S, U> Cast<S, U> {
    pub(super) fn new(source: S) -> Self {
        Self(source, PhantomData)
    }
}

impl<V: Values<Item: Element>, U: Element> Values for Cast<V, U> {
    type Item = U;

    #[inline]
    fn at(&self, i: usize) -> U {
        self.0.at(i).cast()
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = U> + ExactSizeIterator {
        self.0.values(range).map(Element::cast)
    }

    fn checked(&self) -> Result<()> {
        self.0.checked()
    }
}

impl<S: Source<Item: Element>, U: Element> Source for Cast<S, U> {
    type Item = U;

    fn length(&self) -> Result<Option<usize>> {
        self.0.length()
    }

    fn host(&self) -> Result<impl Values<Item = U>> {
        Ok(Cast::new(self.0.host()?))
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let all = self.0.emit(text, index)?;
        Ok(text.casts(all, U::TYPE))
    }

    fn plain<T: Pod>(&self) -> Option<Input<'_, T>> {
        if S::Item::TYPE == U::TYPE { self.0.plain() } else { None }
    }

    fn narrow(&self) -> Option<Narrow<'_>> {
        self.0.narrow().filter(|narrow| holds(U::TYPE, narrow.1))
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.0.search(device, n)
    }
}

/// Elements as the arguments of a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<S>(pub(crate) S);

impl<V: Values<Item: Tested>> Values for Arguments<V> {
    type Item = <V::Item as Tested>::Argument;

    #[inline]
    fn at(&self, i: usize) -> Self::Item {
        self.0.at(i).argument()
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = Self::Item> + ExactSizeIterator {
        self.0.values(range).map(Tested::argument)
    }

    fn checked(&self) -> Result<()> {
        self.0.checked()
    }
}

impl<S: Source<Item: Tested>> Source for Arguments<S> {
    type Item = <S::Item as Tested>::Argument;

    fn length(&self) -> Result<Option<usize>> {
        self.0.length()
    }

    fn host(&self) -> Result<impl Values<Item = Self::Item>> {
        Ok(Arguments(self.0.host()?))
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let all = self.0.emit(text, index)?;
        Ok(match S::Item::ELEMENT {
            Some(element) => text.casts(all, element.accumulator()),
            None => all,
        })
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.0.search(device, n)
    }
}

/// Bound on the indices of an endless table. Negative indices, as unsigned numbers, are not below it.
pub(super) const ENDLESS: usize = 1 << (usize::BITS - 1);

/// The bound on the indices of a table. Returns an error with the index `first()` if the table is empty, but there are
/// indices.
fn table_len(table: Result<Option<usize>>, indices: Result<Option<usize>>, first: &dyn Fn() -> i128) -> Result<usize> {
    let len = table?.unwrap_or(ENDLESS);
    if len == 0 && indices? != Some(0) {
        return Err(outside(0, first(), 0));
    }
    Ok(len)
}

/// Elements at given indices; see [`Source::gathered`].
#[derive(Clone, Copy, Debug)]
pub struct Gathered<S, I> {
    pub(super) table: S,
    pub(super) indices: I,
}

pub(super) struct GatheredValues<V, I> {
    table: V,
    indices: I,
    /// The length of the table, or [`ENDLESS`].
    len: usize,
    /// The first position of an index out of range that a thread found.
    wrong: AtomicUsize,
}

impl<V: Values, I: Values<Item: Integer>> GatheredValues<V, I> {
    #[inline]
    fn element(&self, position: usize, index: I::Item) -> V::Item {
        let at = usize::try_from(index.to_i128()).unwrap_or(usize::MAX);
        if at < self.len {
            return self.table.at(at);
        }
        self.wrong.fetch_min(position, Relaxed);
        self.table.at(0)
    }
}

impl<V: Values, I: Values<Item: Integer>> Values for GatheredValues<V, I> {
    type Item = V::Item;

    #[inline]
    fn at(&self, i: usize) -> V::Item {
        self.element(i, self.indices.at(i))
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = V::Item> + ExactSizeIterator {
        let first = range.start;
        self.indices.values(range).enumerate().map(move |(i, index)| self.element(first + i, index))
    }

    fn checked(&self) -> Result<()> {
        self.indices.checked()?;
        match self.wrong.load(Relaxed) {
            usize::MAX => self.table.checked(),
            position => Err(outside(position, self.indices.at(position).to_i128(), self.len)),
        }
    }
}

impl<S: Source, I: Source<Item: Integer>> Source for Gathered<S, I> {
    type Item = S::Item;

    fn length(&self) -> Result<Option<usize>> {
        self.table.length()?;
        self.indices.length()
    }

    fn host(&self) -> Result<impl Values<Item = S::Item>> {
        let (table, indices) = (self.table.host()?, self.indices.host()?);
        let len = table_len(self.table.length(), self.indices.length(), &|| indices.at(0).to_i128())?;
        Ok(GatheredValues { table, indices, len, wrong: AtomicUsize::new(usize::MAX) })
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let indices = self.indices.emit(text, index)?;
        let at = text.gathered(&load::only(indices), self.table.length(), self.indices.length())?;
        self.table.emit(text, &at)
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.indices.search(device, n)?;
        let len = self.table.length()?;
        gpu::none_outside(device, &self.indices, n, len.unwrap_or(ENDLESS))?;
        match len {
            Some(len) => self.table.search(device, len),
            // The inner gather is endless, so the search for its wrong index would have no end.
            None => Err(Error::invalid("an index of the inner of two gathers is out of range")),
        }
    }
}

/// Elements in reverse order; see [`Source::reversed`].
#[derive(Clone, Copy, Debug)]
pub struct Reversed<S>(pub(crate) S);

pub(super) struct ReversedValues<V> {
    values: V,
    len: usize,
}

impl<V: Values> Values for ReversedValues<V> {
    type Item = V::Item;

    #[inline]
    fn at(&self, i: usize) -> V::Item {
        self.values.at(self.len - 1 - i)
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = V::Item> + ExactSizeIterator {
        self.values.values(self.len - range.end..self.len - range.start).rev()
    }

    fn checked(&self) -> Result<()> {
        self.values.checked()
    }
}

impl<S: Source> Source for Reversed<S> {
    type Item = S::Item;

    fn length(&self) -> Result<Option<usize>> {
        finite(&self.0).map(Some)
    }

    fn host(&self) -> Result<impl Values<Item = S::Item>> {
        Ok(ReversedValues { values: self.0.host()?, len: finite(&self.0)? })
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let at = text.reversed(index, finite(&self.0)?);
        self.0.emit(text, &at)
    }

    fn backwards(&self) -> Option<Input<'_, S::Item>>
    where
        S::Item: Pod,
    {
        self.0.plain()
    }

    fn search(&self, device: &ClDevice, _: usize) -> Result<()> {
        self.0.search(device, finite(&self.0)?)
    }
}

/// Every k-th element; see [`Source::strided`].
#[derive(Clone, Copy, Debug)]
pub struct Strided<S> {
    pub(super) source: S,
    pub(super) step: usize,
}

impl<V: Values> Values for Strided<V> {
    type Item = V::Item;

    #[inline]
    fn at(&self, i: usize) -> V::Item {
        self.source.at(i.wrapping_mul(self.step))
    }

    #[inline]
    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = V::Item> + ExactSizeIterator {
        range.map(|i| self.at(i))
    }

    fn checked(&self) -> Result<()> {
        self.source.checked()
    }
}

/// The length of a strided source: `length / step`, rounded up.
fn strided(length: Result<Option<usize>>, step: usize) -> Result<Option<usize>> {
    if step == 0 {
        return Err(Error::invalid("a stride is at least 1, got 0"));
    }
    Ok(length?.map(|n| n.div_ceil(step)))
}

impl<S: Source> Source for Strided<S> {
    type Item = S::Item;

    fn length(&self) -> Result<Option<usize>> {
        strided(self.source.length(), self.step)
    }

    fn host(&self) -> Result<impl Values<Item = S::Item>> {
        Ok(Strided { source: self.source.host()?, step: self.step })
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let at = text.strided(index, self.step);
        self.source.emit(text, &at)
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.source.search(device, n.saturating_sub(1).saturating_mul(self.step).saturating_add(1))
    }
}

/// The first elements; see [`Source::take`].
#[derive(Clone, Copy, Debug)]
pub struct Take<S> {
    pub(super) source: S,
    pub(super) len: usize,
}

/// The length of [`Take`]: `len`. Returns an error if the source has fewer elements.
fn taken(length: Result<Option<usize>>, len: usize) -> Result<Option<usize>> {
    match length? {
        Some(n) if n < len => Err(Error::invalid(format!("cannot take {len} elements of a source of {n}"))),
        _ => Ok(Some(len)),
    }
}

impl<S: Source> Source for Take<S> {
    type Item = S::Item;

    fn length(&self) -> Result<Option<usize>> {
        taken(self.source.length(), self.len)
    }

    fn host(&self) -> Result<impl Values<Item = S::Item>> {
        self.source.host()
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        self.source.emit(text, index)
    }

    fn plain<T: Pod>(&self) -> Option<Input<'_, T>> {
        self.source.plain().filter(|input| input.len() >= self.len).map(|input| input.part(0, self.len))
    }

    fn held_factors<'a>(&'a self, n: usize, device: &Device) -> Result<Option<[Held<'a, S::Item>; 2]>>
    where
        S::Item: Pod,
    {
        self.source.held_factors(n, device)
    }

    fn search(&self, device: &ClDevice, n: usize) -> Result<()> {
        self.source.search(device, n)
    }
}
