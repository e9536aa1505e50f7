//! Stable sorts by any order: [`Device::sort`] by a user's [`Less`], also over structs, and by [`Merging`]. Keys may
//! have [values](crate::Source::with).
//!
//! | property | |
//! |---|---|
//! | work | n log n comparisons. First, tiles of a few thousand elements are sorted; then each pass merges pairs of sorted ranges. This sort and each pass read and write each element once |
//! | order | the order of [`sort`](crate::sort), or a custom order: [`Compare`]. Stable: equal elements keep their order |
//! | elements | integers and floats; with a custom order, any plain type of 1 to 64 bytes. Values: any plain type |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | n elements, n values, and 4 or 8 bytes per tile |
//! | limits | any n that fits the device |
//!
//! On a GPU, work-groups sort tiles in local memory. Each work-item sorts its own elements by odd-even transposition
//! (Knuth, volume 3, 5.3.4), and merges combine them. Then pairs of sorted ranges are merged as in
//! [`merge`](crate::merge). For elements in their natural order, the radix [`sort`](crate::sort) is faster.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::check_values;
use super::form;
#[allow(unused_imports, reason = "for the documentation")]
use crate::Order;
use crate::sort::expect_indices;
use crate::{
    Device, Input, Offset, Output, Result, Scratch,
    counted::{Count, Firsts},
    op::{Compare, Less},
    runtime::Backend,
};

/// An order by which keys of type `K` are sorted.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not sort `{K}`",
    label = "expected an `Order` for numbers, or a `&Less` for any plain type"
)]
pub trait Sorting<K: Pod + Send + Sync> {
    fn keys(&self, device: &Device, input: Firsts<'_, K>, output: Output<'_, K>) -> Result<()>;

    fn pairs<V: Pod + Send + Sync>(
        &self,
        device: &Device,
        inputs: (Firsts<'_, K>, Input<'_, V>),
        outputs: (Output<'_, K>, Output<'_, V>),
    ) -> Result<()>;

    fn indices<P: Offset>(&self, device: &Device, input: Firsts<'_, K>, output: Output<'_, P>) -> Result<()> {
        let n = input.0.len();
        output.expect_len(n, "an argsort")?;
        expect_indices::<P>(n)?;
        let mut keys = device.temporary(n)?;
        let indices = device.iota(n, P::ZERO, P::ONE)?;
        self.pairs(device, (input, Input::from(&indices)), (Output::from(&mut keys), output))
    }
}

/// A sort by merges, in any order: [`Compare`].
///
/// The result is the same as by the order alone. For an [`Order`], the sort is slower, and serves to test the sorts by
/// merges.
///
/// ```
/// use oclprim::{Device, Order, sort::Merging};
///
/// assert_eq!(Device::best()?.sort(&[5i32, -7, 3], Merging(Order::ascending()))?.to_vec()?, [-7, 3, 5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Merging<C>(
    /// The order.
    pub C,
);

impl<K: Pod + Send + Sync, C: Compare<K>> Sorting<K> for Merging<C> {
    fn keys(&self, device: &Device, input: Firsts<'_, K>, output: Output<'_, K>) -> Result<()> {
        device.merge_sort(input, output, &self.0, &mut Scratch::new())
    }

    fn pairs<V: Pod + Send + Sync>(
        &self,
        device: &Device,
        inputs: (Firsts<'_, K>, Input<'_, V>),
        outputs: (Output<'_, K>, Output<'_, V>),
    ) -> Result<()> {
        device.merge_sort_pairs(inputs, outputs, &self.0, &mut Scratch::new())
    }
}

impl<K: Pod + Send + Sync, F: Fn(&K, &K) -> bool + Sync> Sorting<K> for &Less<F> {
    fn keys(&self, device: &Device, input: Firsts<'_, K>, output: Output<'_, K>) -> Result<()> {
        device.merge_sort(input, output, *self, &mut Scratch::new())
    }

    fn pairs<V: Pod + Send + Sync>(
        &self,
        device: &Device,
        inputs: (Firsts<'_, K>, Input<'_, V>),
        outputs: (Output<'_, K>, Output<'_, V>),
    ) -> Result<()> {
        device.merge_sort_pairs(inputs, outputs, *self, &mut Scratch::new())
    }
}

/// Bodies of sorts by any order, compiled once for each set of types and order.
impl Device {
    #[inline(never)]
    fn merge_sort<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        (input, count): Firsts<'_, T>,
        output: Output<'_, T>,
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(input.len(), "a merge sort")?;
        let n = Count::known(count, self, input.len())?;
        let (input, output) = (input.part(0, n), output.part(0, n));
        match self.backend() {
            Backend::Cpu => {
                let less = order.function()?;
                cpu::sort::<T, ()>((input.host()?, &[]), (output.host()?, &mut []), &less)
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                gpu::sort(device, &form, input.any(), output.any(), scratch)
            }
        }
    }

    #[inline(never)]
    fn merge_sort_pairs<K: Pod + Send + Sync, V: Pod + Send + Sync, C: Compare<K>>(
        &self,
        ((keys, count), values): (Firsts<'_, K>, Input<'_, V>),
        (keys_out, values_out): (Output<'_, K>, Output<'_, V>),
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        check_values(keys.len(), values.len(), size_of::<V>(), "sorting")?;
        keys_out.expect_len(keys.len(), "a merge sort of keys")?;
        values_out.expect_len(keys.len(), "a merge sort of values")?;
        let n = Count::known(count, self, keys.len())?;
        let (keys, values) = (keys.part(0, n), values.part(0, n));
        let (keys_out, values_out) = (keys_out.part(0, n), values_out.part(0, n));
        match self.backend() {
            Backend::Cpu => {
                let (from, to) = ((keys.host()?, values.host()?), (keys_out.host()?, values_out.host()?));
                cpu::sort(from, to, &order.function()?)
            }
            Backend::OpenCl(device) => {
                let form = form(order, size_of::<V>())?;
                let (inputs, outputs) = ([keys.any(), values.any()], [keys_out.any(), values_out.any()]);
                gpu::sort_pairs(device, &form, inputs, outputs, scratch)
            }
        }
    }
}
