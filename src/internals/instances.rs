//! Instances of generic functions that the library compiles itself.
//!
//! A generic function is compiled in the crate that calls it, at the optimisation level of that crate. If it is
//! `#[inline(never)]` and the library has the instance, the caller links the library's instance instead.
//! `oclprim-checks` and the program are compiled at a low optimisation level, for a short build. With the instances
//! below, both run the CPU backend as a user's release build does.
//!
//! The list contains the instances that benchmarks measure. Nothing calls these functions.

use crate::{
    Accumulate, Bins, Bound, Counter, Device, Element, Input, Key, NdView, NdViewMut, Offset, Order, Output, Philox,
    Result, SetOp, Source, Top, Weight, f16,
    op::{And, CapturingMap, Difference, Map, Max, Min, NonZero, Op, Operator, Or, Product, Sum, Xor},
    sort::Merging,
};

/// The predicate `x < limit` of the benchmarks of selections.
pub fn below<A: Element>(limit: u64) -> Map<impl Fn(A) -> bool + Sync> {
    let bound = A::from_f64(limit as f64);
    Map::new(move |x: A| x < bound, format!("x < {limit}"))
}

/// [`below`] with a captured limit.
pub fn below_captured<A: Element>(limit: u64) -> CapturingMap<impl Fn(A) -> bool + Sync> {
    let bound = A::from_f64(limit as f64);
    CapturingMap::of_one(move |x: A| x < bound, "x < c0", bound)
}

/// Arguments of one call.
struct Call<'a> {
    device: &'a Device,
}

fn input<'a, T: Element>() -> Input<'a, T> {
    Input::Host(&[])
}

fn output<'a, T: bytemuck::Pod>() -> Output<'a, T> {
    Output::Host(&mut [])
}

fn view<'a, T: Element>() -> Result<NdView<'a, T>> {
    input::<T>().nd(&[0, 0])
}

impl Call<'_> {
    fn reduce<T: Element, O: Op<T> + Default>(&mut self) -> Result<()> {
        self.device.reduce_into(input::<T>(), O::default(), output())
    }

    fn reduce_as<T: Element, U: Element, O: Op<U> + Default>(&mut self) -> Result<()> {
        self.device.reduce_into(input::<T>().cast::<U>(), O::default(), output())
    }

    fn products<T: Element>(&mut self) -> Result<()> {
        let (x, y) = (input::<T>().cast::<T>(), input::<T>().cast::<T>());
        self.device.reduce_into(x.times(y), Sum, output())?;
        self.device.reduce_into(input::<T>().times(input()), Sum, output())
    }

    fn reduce_by<T: Element<Acc = T>>(&mut self, op: &Operator<T, fn(T, T) -> T>) -> Result<()> {
        let device = self.device;
        device.reduce_into(input::<T>(), op, output())?;
        device.reduce_into(view::<T>()?.along(0), op, output())?;
        device.reduce_into(input::<T>().segments(input::<u32>()), op, output())
    }

    fn map_reduce<T: Element<Acc = T>, R: Element<Acc = R>>(&mut self, map: Map<fn(T) -> R>) -> Result<()> {
        self.device.reduce_into(input::<T>().map(map), Sum, output())
    }

    fn lines<T: Element, U: Element + From<T>, O: Op<U> + Default>(&mut self) -> Result<()> {
        self.device.reduce_into(view::<T>()?.cast::<U>().along(0), O::default(), output())
    }

    fn segments<T: Element, O: Op<T> + Default>(&mut self) -> Result<()> {
        self.device.reduce_into(input::<T>().segments(input::<u32>()), O::default(), output())
    }

    /// Extremes, statistics and counts of the elements of one type.
    fn facts<T: Element>(&mut self) -> Result<()> {
        let device = self.device;
        device.arg_min_into(input::<T>(), output(), output())?;
        device.min_max_into(input::<T>(), output(), output())?;
        device.arg_min_into(view::<T>()?.along(0), output(), output())?;
        device.statistics_into(input::<T>(), output())?;
        device.moments_into(view::<T>()?.along(0), output())?;
        device.count_into(input::<T>(), NonZero, output())?;
        device.any_into(input::<T>(), NonZero, output())
    }

    fn scan<T: Element, O: Op<T> + Default>(&mut self) -> Result<()> {
        self.device.scan_into(input::<T>(), O::default(), output())
    }

    fn scan_axis<T: Element, O: Op<T> + Default>(&mut self) -> Result<()> {
        self.device.scan_into(view::<T>()?.along(0), O::default(), output())
    }

    /// Segmented scans: by keys of type `K`, at offsets of type `K`, and by flags.
    fn scan_segments<K: Offset, T: Element>(&mut self) -> Result<()> {
        let device = self.device;
        device.scan_into(input::<T>().by_key(input::<K>()), Sum, output())?;
        device.scan_into(input::<T>().segments(input::<K>()), Sum, output())?;
        device.scan_into(input::<T>().flagged(input::<u8>()), Sum, output())
    }

    fn select<T: Element>(&mut self) -> Result<()> {
        let (device, map) = (self.device, &below::<T::Acc>(0));
        device.select_into(input::<T>(), map, output(), output())
    }

    fn partition<T: Element>(&mut self) -> Result<()> {
        self.device.partition_into(input::<T>(), &below::<T::Acc>(0), output(), output())
    }

    fn runs<T: Element>(&mut self) -> Result<()> {
        let device = self.device;
        device.unique_into(input::<T>(), output(), output())?;
        device.run_length_encode_into(input::<T>(), output(), output::<u32>(), output())?;
        device.select_into(input::<T>().flagged(input::<u8>()), NonZero, output(), output())?;
        device.reduce_into(input::<f32>().by_key(input::<T>()), Sum, (output(), output(), output()))
    }

    fn sort<T: Element + Key>(&mut self) -> Result<()> {
        let (device, order) = (self.device, Order::ascending);
        device.sort_into(input::<T>(), order(), output())?;
        device.sort_into(input::<T>().with(input::<T>()), order(), (output(), output::<T>()))?;
        device.sort_into(input::<T>().with(input::<u32>()), order(), (output(), output::<u32>()))?;
        device.argsort_into(input::<T>(), order(), output::<u32>())?;
        device.sort_into(input::<T>().segments(input::<u32>()), order(), output())?;
        device.argsort_into(input::<T>().segments(input::<u32>()), order(), output::<u32>())?;
        device.top_k_into(input::<T>(), Top::largest(1), output())
    }

    fn merge<T: Element>(&mut self) -> Result<()> {
        let (device, order) = (self.device, Order::ascending);
        let pair = || input::<T>().with(input::<u32>());
        device.merge_into(input::<T>(), input(), order(), output())?;
        device.sort_into(input::<T>(), Merging(order()), output())?;
        device.merge_into(pair(), pair(), order(), (output(), output::<u32>()))?;
        device.sort_into(input::<T>().with(input::<u32>()), Merging(order()), (output(), output::<u32>()))?;
        device.search_into(input::<T>(), input(), Bound::Lower, order(), output::<u32>())?;
        device.first_unsorted_into(input::<T>(), order(), output())?;
        device.set_operation_into(input::<T>(), input(), SetOp::Union, order(), output(), output())
    }

    fn histogram<T: Element, C: Counter>(&mut self, bins: &Bins<T>) -> Result<()> {
        let (device, add) = (self.device, Accumulate::Add);
        device.histogram_into(input::<T>(), bins, output::<C>(), output(), add)?;
        device.histogram_into(input::<T>().segments(input::<u64>()), bins, output::<C>(), output(), add)?;
        device.histogram_into(input::<T>().channels(1), std::slice::from_ref(bins), output::<C>(), output(), add)
    }

    fn weighted<T: Element, W: Weight>(&mut self, bins: &Bins<T>) -> Result<()> {
        let weights = Input::<W>::Host(&[]);
        self.device.histogram_into(input::<T>().weighted(weights), bins, output(), output(), Accumulate::Add)
    }

    fn map_histogram<C: Counter>(&mut self, map: Map<fn(f32) -> f32>, bins: &Bins<f32>) -> Result<()> {
        let to = (output::<C>(), output());
        let samples = input::<f32>().map(map);
        self.device.histogram_into(samples, bins, to.0, to.1, Accumulate::Add)
    }

    fn transpose<T: Element, U: Element>(&mut self) -> Result<()> {
        self.device.transpose_into(input::<T>().cast::<U>(), (0, 0), output())
    }

    fn moved<T: Element>(&mut self) -> Result<()> {
        let device = self.device;
        device.copy(input::<T>(), output())?;
        device.gather_into(input::<T>(), input::<u32>(), output(), output())?;
        device.copy(view::<T>()?, NdViewMut::new(output::<T>(), crate::Layout::contiguous(&[0, 0])?)?)
    }

    fn made<T: Element>(&mut self) -> Result<()> {
        self.device.iota_into(T::ZERO, T::ONE, output())?;
        self.device.adjacent_difference_into(input::<T>(), Difference, output())?;
        self.device.random_into(Philox::new(0), output::<T>())
    }
}

/// Makes the compiler build every instance.
pub fn compiled(device: &Device) -> Result<()> {
    macro_rules! each {
        ($call:ident, $name:ident: $(<$($ty:ty),+>),+) => { $( $call.$name::<$($ty),+>()?; )+ };
    }
    let call = &mut Call { device };
    each!(call, reduce: <i8, Sum>, <i16, Sum>, <i32, Sum>, <i64, Sum>, <u8, Sum>, <u16, Sum>, <u32, Sum>, <u64, Sum>);
    each!(call, reduce: <f16, Sum>, <f32, Sum>, <f64, Sum>, <f32, Product>, <i32, Min>, <f32, Min>, <f64, Min>);
    each!(call, reduce: <i32, Max>, <f32, Max>, <u32, And>, <u32, Or>, <u32, Xor>);
    each!(call, reduce_as: <u8, u32, Sum>, <i16, i64, Sum>, <i32, i64, Sum>, <f16, f32, Sum>, <i64, i64, Sum>);
    each!(call, reduce_as: <f32, f32, Sum>, <f64, f64, Sum>);
    each!(call, products: <f32>, <f64>);
    each!(call, lines: <f32, f32, Sum>, <i32, i32, Max>, <i32, i64, Sum>);
    each!(call, segments: <f32, Sum>, <i32, Max>, <i64, Sum>);
    each!(call, facts: <u8>, <i32>, <f32>, <f64>);
    call.reduce_by(&Operator::new("a + b", 0.0, (|a, b| a + b) as fn(f32, f32) -> f32, "a + b"))?;
    call.map_reduce::<f32, f32>(Map::new((|x| x) as fn(f32) -> f32, "x"))?;
    each!(call, scan: <u32, Sum>, <f32, Sum>, <u64, Sum>, <i32, Sum>, <i64, Sum>);
    each!(call, scan: <f64, Sum>, <f32, Max>);
    each!(call, scan_axis: <f32, Sum>, <u8, Max>);
    each!(call, scan_segments: <u32, u32>, <u32, f32>, <u64, u64>);
    each!(call, select: <u8>, <u32>, <u64>, <f32>);
    each!(call, partition: <u32>);
    each!(call, runs: <u32>);
    each!(call, sort: <u8>, <u32>, <u64>, <f32>);
    each!(call, merge: <u32>, <u64>, <f32>);
    let (ids, even) = (&Bins::ids(1)?, &Bins::even(0.0f32, 1.0, 1)?);
    call.histogram::<u8, u32>(&Bins::ids(1)?)?;
    call.histogram::<i32, u32>(ids)?;
    call.histogram::<f32, u32>(even)?;
    call.weighted::<f32, f32>(even)?;
    call.weighted::<f32, i32>(even)?;
    call.weighted::<f32, f64>(even)?;
    call.map_histogram::<u32>(Map::new((|x| x) as fn(f32) -> f32, "x"), even)?;
    each!(call, transpose: <f32, f16>, <f32, f32>);
    each!(call, moved: <u8>, <u32>, <u64>);
    each!(call, made: <u8>, <u32>, <u64>, <f32>, <f64>);
    Ok(())
}
