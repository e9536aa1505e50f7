//! Quantiles of groups: [`Device::quantile`] and [`Device::median`] of [`x.segments(&offsets)`](Source::segments) and of
//! [`view.along(axes)`](crate::NdView::along).
//!
//! | property | |
//! |---|---|
//! | work | a [sort of the segments](crate::sort::segmented), and two keys for each result; a copy of the lines, unless they follow one another in memory |
//! | result | the quantiles of each group in the order of the fractions, one group after another |
//! | values | as for a whole input; those of a group without keys are NaN for every element type |
//! | determinism | same bits everywhere, also on devices that lack fp64 or flush subnormals |
//! | scratch | the sorted keys, and the scratch of the sort |
//! | limits | any n and any number of groups that fit the device |
//!
//! One sort serves all fractions; a launch finds the quantiles of up to eight. A kernel computes the values between two
//! keys with integers. So it needs no fp64, and the host does not wait.

#[doc(hidden)]
pub(crate) mod gpu;

use super::{
    Divisible, Fractions, Interpolation,
    quantile::{allowed, between},
};
use crate::{
    Buffer, Device, Element, Error, Input, Offset, Order, Output, Result, Source, parallel,
    runtime::{Backend, extents_apart},
    segments::{Offsets, segments},
    source::{Along, Axes, Segments, Shaped},
};

/// Results of a task of the CPU backend.
const TASK: usize = 1 << 10;

/// The number of results.
fn results(groups: usize, fractions: usize) -> Result<usize> {
    groups.checked_mul(fractions).ok_or_else(|| {
        Error::invalid(format!("the results for {fractions} quantiles of {groups} groups overflow the address space"))
    })
}

impl<S: Source<Item: Element>, O: Source<Item: Offset>> Divisible for Segments<S, O> {
    type Quantiles<Q: Fractions> = Buffer<f64>;

    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Buffer<f64>> {
        let (keys, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        let (keys, offsets) = (keys.input(), offsets.input());
        device.check_segments(offsets, keys.len())?;
        let mut output = device.uninit(results(segments(offsets.len())?, q.list().len())?)?;
        device.quantiles_of_segments(keys, offsets, q.list(), how, Output::from(&mut output))?;
        Ok(output)
    }

    fn quantile_into(self, device: &Device, q: &[f64], how: Interpolation, output: Output<'_, f64>) -> Result<()> {
        let (keys, offsets) = (self.source.held(device)?, self.offsets.held(device)?);
        device.quantiles_of_segments(keys.input(), offsets.input(), q, how, output)
    }
}

impl<V: Shaped, A: Axes> Divisible for Along<V, A> {
    type Quantiles<Q: Fractions> = Buffer<f64>;

    fn quantile<Q: Fractions>(self, device: &Device, q: Q, how: Interpolation) -> Result<Buffer<f64>> {
        self.as_segments(device, "quantiles", |keys, offsets| {
            let mut output = device.uninit(results(offsets.len() - 1, q.list().len())?)?;
            device.quantiles_of_segments(keys, offsets, q.list(), how, Output::from(&mut output))?;
            Ok(output)
        })
    }

    fn quantile_into(self, device: &Device, q: &[f64], how: Interpolation, output: Output<'_, f64>) -> Result<()> {
        self.as_segments(device, "quantiles", |keys, offsets| {
            device.quantiles_of_segments(keys, offsets, q, how, output)
        })
    }
}

impl Device {
    /// The quantiles of segments, compiled once for each set of types.
    #[inline(never)]
    fn quantiles_of_segments<T: Element, C: Offset>(
        &self,
        keys: Input<'_, T>,
        offsets: Input<'_, C>,
        q: &[f64],
        how: Interpolation,
        output: Output<'_, f64>,
    ) -> Result<()> {
        output.expect_len(results(segments(offsets.len())?, q.len())?, "a selection of quantiles")?;
        allowed(q)?;
        extents_apart(&[keys.extent(), offsets.extent()], &[output.extent()])?;
        if output.is_empty() {
            return Ok(());
        }
        let mut own = None;
        let offsets = self.copied_once(offsets, &mut own)?;
        let mut sorted = self.temporary::<T>(keys.len())?;
        self.sort_into(keys.segments(offsets), Order::ascending(), &mut sorted)?;
        let sorted = Input::from(&sorted);
        match self.backend() {
            Backend::Cpu => on_the_cpu(sorted.host()?, Offsets::of(offsets.host()?), q, how, output.host()?),
            Backend::OpenCl(device) => {
                let (sorted, offsets, output) = (sorted.cl(device)?, offsets.cl(device)?, output.cl(device, false)?);
                gpu::pick(device, (&sorted, T::TYPE), (&offsets, C::TYPE), (q, how), &output)?;
                output.finish(device)
            }
        }
    }
}

/// Writes the quantiles of each group. The keys of the groups are sorted.
fn on_the_cpu<T: Element>(
    sorted: &[T],
    offsets: Offsets<'_>,
    q: &[f64],
    how: Interpolation,
    output: &mut [f64],
) -> Result<()> {
    let n = sorted.len();
    let quantile = |i: usize| {
        let (group, q) = (i / q.len(), q[i % q.len()]);
        let (start, end) = (offsets.get(group).min(n), offsets.get(group + 1).min(n));
        match sorted.get(start..end) {
            // NaN are sorted after all numbers.
            Some(keys @ [.., last]) if !last.is_nan() => {
                let (low, high, part) = how.place(keys.len(), q);
                between(keys[low], keys[high], part)
            }
            _ => f64::NAN,
        }
    };
    let task = |task: usize, output: &mut [f64]| {
        (task * TASK..).zip(output).for_each(|(i, value)| *value = quantile(i));
    };
    if output.len() <= TASK {
        task(0, output);
    } else {
        parallel::chunks_mut(output, TASK, &task);
    }
    Ok(())
}
