//! Checks of the laws that a user-defined operator must obey in reductions.

use std::fmt::Debug;

use bytemuck::Pod;

use super::Operator;
use super::gpu;
use crate::runtime::Backend;
use crate::{Device, Error, Result, rng::Rng};

/// Checks an operator's laws on `values`. The identity must be neutral on both sides of each value. On 1000 random
/// triples of values, the operator must be associative and commutative. On an OpenCL device, the expression must give
/// the same results as the Rust function. Equal means equal bits; for an operator that rounds, use [`laws_by`].
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if a law does not hold, with the law, the values and
/// both results; [`ErrorKind::Build`](crate::ErrorKind::Build) if the text does not build.
///
/// ```
/// use oclprim::{Device, op::{Operator, laws}};
///
/// let device = Device::best()?;
/// let values: Vec<u32> = (0..50).map(|i| 0x9E37_79B9u32.wrapping_mul(i)).collect();
/// let good = Operator::new("union", 0u32, |a, b| a | b, "a | b");
/// assert!(laws(&device, &good, &values).is_ok());
/// let bad = Operator::new("difference", 0u32, u32::wrapping_sub, "a - b");
/// let error = laws(&device, &bad, &[5, 7]).unwrap_err();
/// assert_eq!(error.to_string(), "operator difference: the identity 0 with 5 gives 4294967291, not 5");
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn laws<T, F>(device: &Device, op: &Operator<T, F>, values: &[T]) -> Result<()>
where
    T: Pod + Debug,
    F: Fn(T, T) -> T,
{
    laws_by(device, op, values, |a, b| bytemuck::bytes_of(a) == bytemuck::bytes_of(b))
}

/// [`laws`] with the caller's definition of equality.
///
/// # Errors
///
/// Same as [`laws`].
///
/// ```
/// use oclprim::{Device, op::{Operator, laws_by}};
///
/// let either = Operator::new("either", 0.0f32, |a, b| a + b - a * b, "a + b - a * b");
/// let values: Vec<f32> = (0..50).map(|i| i as f32 / 50.0).collect();
/// laws_by(&Device::best()?, &either, &values, |a, b| (a - b).abs() < 1e-5)?;
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn laws_by<T, F>(device: &Device, op: &Operator<T, F>, values: &[T], equal: impl Fn(&T, &T) -> bool) -> Result<()>
where
    T: Pod + Debug,
    F: Fn(T, T) -> T,
{
    tried(device, op, values, equal, true)
}

/// [`laws_by`] without the check of commutativity, for operators of scans and segmented reductions.
///
/// # Errors
///
/// Same as [`laws`].
///
/// ```
/// use oclprim::{Device, op::{Operator, laws, ordered_laws_by}};
///
/// let last = Operator::new("last that is not 0", 0i32, |a, b| if b == 0 { a } else { b }, "b == 0 ? a : b");
/// let (device, values) = (Device::best()?, [0, 3, 7]);
/// ordered_laws_by(&device, &last, &values, i32::eq)?;
/// let error = laws(&device, &last, &values).unwrap_err();
/// assert!(error.to_string().contains("not commutative"), "{error}");
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn ordered_laws_by<T, F>(
    device: &Device,
    op: &Operator<T, F>,
    values: &[T],
    equal: impl Fn(&T, &T) -> bool,
) -> Result<()>
where
    T: Pod + Debug,
    F: Fn(T, T) -> T,
{
    tried(device, op, values, equal, false)
}

fn tried<T, F>(
    device: &Device,
    op: &Operator<T, F>,
    values: &[T],
    equal: impl Fn(&T, &T) -> bool,
    commutative: bool,
) -> Result<()>
where
    T: Pod + Debug,
    F: Fn(T, T) -> T,
{
    const TRIED: usize = 1000;
    op.expect_size()?;
    let (name, identity, combine) = (&op.name, op.identity, &op.combine);
    let wrong = |text: String| Err(Error::invalid(format!("operator {name}: {text}")));
    for &x in values {
        let (left, right) = (combine(identity, x), combine(x, identity));
        if !equal(&left, &x) {
            return wrong(format!("the identity {identity:?} with {x:?} gives {left:?}, not {x:?}"));
        }
        if !equal(&right, &x) {
            return wrong(format!("{x:?} with the identity {identity:?} gives {right:?}, not {x:?}"));
        }
    }
    if values.is_empty() {
        return Ok(());
    }
    let mut rng = Rng::new(values.len() as u64);
    let mut some = || values[rng.below(values.len() as u64) as usize];
    let (mut lefts, mut rights) = (vec![identity], vec![identity]);
    for _ in 0..TRIED {
        let (a, b, c) = (some(), some(), some());
        let (ab, ba) = (combine(a, b), combine(b, a));
        if commutative && !equal(&ab, &ba) {
            return wrong(format!("not commutative: {a:?} with {b:?} gives {ab:?}, {b:?} with {a:?} gives {ba:?}"));
        }
        let (left, right) = (combine(ab, c), combine(a, combine(b, c)));
        if !equal(&left, &right) {
            return wrong(format!(
                "not associative: ({a:?} op {b:?}) op {c:?} gives {left:?}, {a:?} op ({b:?} op {c:?}) gives {right:?}"
            ));
        }
        // Results of the operator become arguments as well.
        lefts.extend([a, ab]);
        rights.extend([b, c]);
    }
    let Some(got) = on_device(device, op, &lefts, &rights)? else { return Ok(()) };
    for ((&a, &b), got) in lefts.iter().zip(&rights).zip(&got) {
        let want = combine(a, b);
        if !equal(got, &want) {
            return wrong(format!("for {a:?} with {b:?} OpenCL C gives {got:?}, Rust gives {want:?}"));
        }
    }
    Ok(())
}

/// The device's result for each pair; `None` on the CPU backend.
pub(super) fn on_device<T: Pod, F: Fn(T, T) -> T>(
    device: &Device,
    op: &Operator<T, F>,
    a: &[T],
    b: &[T],
) -> Result<Option<Vec<T>>> {
    if let Backend::OpenCl(device) = device.backend() {
        let mut out = a.to_vec();
        let form = gpu::Form { source: op.source(), size: size_of::<T>(), needs_fp64: op.needs_fp64, count: None };
        let (a, b) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
        gpu::pairs(device, &form, a, b, bytemuck::cast_slice_mut(&mut out))?;
        return Ok(Some(out));
    }
    Ok(None)
}
