//! Bounds on the errors of sums and products.

use oclprim::{Determinism, Device, Element, ElementType};

use oclprim::internals::reduce::cpu;

/// Bound on `|fast - fixed|`, the distance between the [`Determinism::Fast`] and the [`Determinism::Fixed`] sum of
/// `input` on a device.
///
/// # Errors
///
/// The errors of [`Device::reduce`].
///
/// ```
/// use oclprim::{Determinism, Device, op::{Sum, Usage}};
/// use oclprim_checks::check::{data::Data, sum_bound};
///
/// let device = Device::best()?;
/// let x = Data::Random.generate::<f32>(10_000, 1);
/// let (fast, fixed) = (device.reduce(&x, Sum.fast())?, device.reduce(&x, Sum)?);
/// assert!(f64::from((fast - fixed).abs()) <= sum_bound(&device, &x)?);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn sum_bound<T: Element>(device: &Device, input: &[T]) -> oclprim::Result<f64> {
    let depth = sum_depth::<T>(device, input.len(), Determinism::Fast)?;
    Ok(sum_error(input, depth) + fixed_bound(input))
}

/// Bound on the error of a sum that the fixed tree computes.
pub(crate) fn fixed_bound<T: Element>(input: &[T]) -> f64 {
    sum_error(input, fixed_depth::<T>(input.len()))
}

/// Largest number of additions on the path of an element; [`Determinism`] documents it as `d`.
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

/// Bound that [`Determinism`] documents on the error of a sum of `n` elements, divided by the sum of their magnitudes.
pub(crate) fn stated_bound<T: Element>(device: &Device, n: usize, determinism: Determinism) -> oclprim::Result<f64> {
    Ok(1.01 * sum_depth::<T>(device, n, determinism)? * unit::<T>() + narrowing::<T>())
}

/// Bound on the error of a sum in which each value passes through at most `depth` additions.
pub(crate) fn sum_error<T: Element>(input: &[T], depth: f64) -> f64 {
    let sizes = || input.iter().map(|x| x.to_f64().abs());
    // The reference itself rounds in n additions of f64.
    let part = (depth * unit::<T>() + input.len() as f64 * f64::EPSILON) * 1.01 + narrowing::<T>();
    let magnitude: f64 = sizes().sum();
    // If the sum of magnitudes overflows, each magnitude is scaled first. An infinite bound would accept every sum.
    if magnitude.is_finite() { magnitude * part } else { sizes().map(|size| size * part).sum() }
}

/// Relative rounding error of one operation on floats of the accumulator's type.
pub(crate) fn unit<T: Element>() -> f64 {
    match T::Acc::TYPE {
        ElementType::F64 => f64::EPSILON / 2.0,
        _ => f64::from(f32::EPSILON) / 2.0,
    }
}

/// Relative rounding error of the conversion from the accumulator to the element.
pub(crate) fn narrowing<T: Element>() -> f64 {
    match T::TYPE {
        ElementType::F16 => f64::from(half::f16::EPSILON),
        ElementType::Bf16 => f64::from(half::bf16::EPSILON),
        _ => 0.0,
    }
}

/// Bound on the distance between two products of `n` elements, divided by their value. In any order, each
/// multiplication rounds once, and so does the result.
pub(crate) fn product_error<T: Element>(n: usize) -> f64 {
    2.0 * ((n as f64 * unit::<T>()).exp_m1() + narrowing::<T>())
}
