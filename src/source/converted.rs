//! Elements of a type that is known at run time, converted to another type.

use std::{marker::PhantomData, ops::Range};

use bytemuck::{Pod, cast_slice};

use super::{
    Narrow, Source, Values,
    load::{Component, Index, Text, holds},
};
use crate::{Element, ElementType, Input, Result, runtime::opencl::ClDevice, with_element};

/// Elements in host memory, each cast to `U`. Their type is known at run time, so one type of source serves all of them.
#[derive(Clone, Copy, Debug)]
pub struct Converted<'a, U> {
    bytes: &'a [u8],
    element: ElementType,
    to: PhantomData<fn() -> U>,
}

impl<'a, U: Element> Converted<'a, U> {
    /// The elements of type `element` in `bytes`, which are aligned for it.
    pub fn new(bytes: &'a [u8], element: ElementType) -> Self {
        Self { bytes, element, to: PhantomData }
    }
}

/// The bytes as memory of elements of type `element`.
fn memory(bytes: &[u8], element: ElementType) -> Narrow<'_> {
    with_element!(element, T => Narrow(Input::<T>::Host(cast_slice(bytes)).any(), element))
}

fn convert<T: Element, U: Element>(from: &[T], to: &mut [U]) {
    for (to, x) in to.iter_mut().zip(from) {
        *to = x.cast();
    }
}

impl<U: Element> Values for Converted<'_, U> {
    type Item = U;

    fn at(&self, i: usize) -> U {
        let mut value = [U::ZERO];
        self.fill(i, &mut value);
        value[0]
    }

    fn values(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = U> + ExactSizeIterator {
        let mut values = vec![U::ZERO; range.len()];
        self.fill(range.start, &mut values);
        values.into_iter()
    }

    fn fill(&self, first: usize, out: &mut [U]) {
        with_element!(self.element, T => convert(&cast_slice::<u8, T>(self.bytes)[first..][..out.len()], out));
    }

    fn checked(&self) -> Result<()> {
        Ok(())
    }
}

impl<U: Element> Source for Converted<'_, U> {
    type Item = U;

    fn length(&self) -> Result<Option<usize>> {
        Ok(Some(self.bytes.len() / self.element.size()))
    }

    fn host(&self) -> Result<impl Values<Item = U>> {
        Ok(*self)
    }

    fn emit(&self, text: &mut Text<'_>, index: &Index) -> Result<Vec<Component>> {
        let Narrow(input, element) = memory(self.bytes, self.element);
        let all = text.elements_of(element.into(), input, index)?;
        Ok(text.casts(all, U::TYPE))
    }

    fn plain<T: Pod>(&self) -> Option<Input<'_, T>> {
        (self.element == U::TYPE).then(|| Input::<U>::Host(cast_slice(self.bytes)))?.of_type()
    }

    fn narrow(&self) -> Option<Narrow<'_>> {
        holds(U::TYPE, self.element).then(|| memory(self.bytes, self.element))
    }

    fn search(&self, _: &ClDevice, _: usize) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, op::Sum};

    #[test]
    fn converted_elements_equal_cast_elements() {
        let (cpu, x) = (Device::cpu(), [-3i16, 0, 300, i16::MAX]);
        let same = |converted: Converted<'_, u8>| {
            let want = cpu.transform(x.cast::<u8>()).unwrap().to_vec().unwrap();
            assert_eq!(cpu.transform(converted).unwrap().to_vec().unwrap(), want);
            assert_eq!(cpu.transform(converted.reversed().reversed()).unwrap().to_vec().unwrap(), want);
            assert_eq!((0..4).map(|i| converted.at(i)).collect::<Vec<_>>(), want);
        };
        same(Converted::new(cast_slice(&x), ElementType::I16));
        let wide = Converted::<f64>::new(cast_slice(&x), ElementType::I16);
        let products = wide.times((&x).cast());
        assert_eq!(cpu.reduce(products, Sum).unwrap(), x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>());
        assert_eq!(cpu.reduce(Converted::<i16>::new(cast_slice(&x), ElementType::I16), Sum).unwrap(), -32472);
    }

    #[test]
    fn elements_of_the_same_type_stay_in_memory() {
        let x = [1.5f32, 2.5];
        let source = Converted::<f32>::new(cast_slice(&x), ElementType::F32);
        assert!(source.plain::<f32>().is_some_and(|input| input.host().unwrap() == x));
        assert!(source.plain::<u32>().is_none() && source.narrow().is_some());
        let wider = Converted::<f64>::new(cast_slice(&x), ElementType::F32);
        assert!(wider.plain::<f64>().is_none() && wider.narrow().is_some());
        assert!(Converted::<i32>::new(cast_slice(&x), ElementType::F32).narrow().is_none());
    }
}
