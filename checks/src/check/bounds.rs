//! Bounds on the errors of sums and products.

use oclprim::{Determinism, Device, Element, ElementType};

use oclprim::internals::reduce::cpu;

/// The bound on the distance between a [`Determinism::Fast`] sum on a device and the [`Determinism::Fixed`] one.
///
/// # Errors
///
/// As [`Device::reduce`].
///
/// ```
/// use oclprim::{Determinism, Device, op::Sum};
/// use oclprim_checks::check::{data::Data, sum_bound};
///
/// let device = Device::best()?;
/// let x = Data::Random.generate::<f32>(10_000, 1);
/// let (fast, fixed) = (device.reduce_with(&x, Sum, Determinism::Fast)?, device.reduce(&x, Sum)?);
/// assert!(f64::from((fast - fixed).abs()) <= sum_bound(&device, &x)?);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn sum_bound<T: Element>(device: &Device, input: &[T]) -> oclprim::Result<f64> {
    let depth = sum_depth::<T>(device, input.len(), Determinism::Fast)?;
    Ok(sum_error(input, depth) + fixed_bound(input))
}

/// The bound on the error of the fixed tree's sum.
pub(crate) fn fixed_bound<T: Element>(input: &[T]) -> f64 {
    sum_error(input, fixed_depth::<T>(input.len()))
}

/// The additions that an element goes through at most, as [`Determinism`] states it.
pub(crate) fn sum_depth<T: Element>(device: &Device, n: usize, determinism: Determinism) -> oclprim::Result<f64> {
    let caps = device.capabilities()?.filter(|_| determinism == Determinism::Fast);
    Ok(caps.map_or(fixed_depth::<T>(n), |caps| {
        let tiles = n.div_ceil(cpu::tile::<T>()).max(1);
        16.0 * tiles.div_ceil(8 * (caps.compute_units as usize).max(1)) as f64 + 40.0
    }))
}

fn fixed_depth<T: Element>(n: usize) -> f64 {
    let (mut left, mut levels) = (n.div_ceil(cpu::tile::<T>()), 1.0);
    while left > 1 {
        left = left.div_ceil(cpu::tile::<T::Acc>());
        levels += 1.0;
    }
    28.0 * levels
}

/// The bound on the error of a sum of `n` elements that [`Determinism`] states, as a part of the sum of their sizes.
pub(crate) fn stated_bound<T: Element>(device: &Device, n: usize, determinism: Determinism) -> oclprim::Result<f64> {
    Ok(1.01 * sum_depth::<T>(device, n, determinism)? * unit::<T>() + narrowing::<T>())
}

/// The bound on the error of a sum in which each value passes through at most `depth` additions.
pub(crate) fn sum_error<T: Element>(input: &[T], depth: f64) -> f64 {
    let sizes = || input.iter().map(|x| x.to_f64().abs());
    // The reference's own rounding is that of n additions in f64.
    let part = (depth * unit::<T>() + input.len() as f64 * f64::EPSILON) * 1.01 + narrowing::<T>();
    let magnitude: f64 = sizes().sum();
    // What is beyond the range in all need not be so in part: no bound would allow every sum.
    if magnitude.is_finite() { magnitude * part } else { sizes().map(|size| size * part).sum() }
}

/// The rounding of one operation on floats of the accumulator's type.
pub(crate) fn unit<T: Element>() -> f64 {
    match T::Acc::TYPE {
        ElementType::F64 => f64::EPSILON / 2.0,
        _ => f64::from(f32::EPSILON) / 2.0,
    }
}

/// The rounding from the accumulator to the element.
pub(crate) fn narrowing<T: Element>() -> f64 {
    match T::TYPE {
        ElementType::F16 => f64::from(half::f16::EPSILON),
        ElementType::Bf16 => f64::from(half::bf16::EPSILON),
        _ => 0.0,
    }
}

/// The bound on the distance of two products of `n` elements, as a part of their value: each of the multiplications, in
/// whatever order, rounds once, and so does the result.
pub(crate) fn product_error<T: Element>(n: usize) -> f64 {
    2.0 * ((n as f64 * unit::<T>()).exp_m1() + narrowing::<T>())
}
