//! Sum and product of complex numbers.

use std::ops::{Add, Mul};

use bytemuck::Pod;
use num_complex::Complex;

use super::Operator;
use crate::{ElementType, Float};

/// An operator over complex numbers. Complex numbers have no order, so there is no minimum or maximum.
///
/// ```
/// use oclprim::{Complex, Device, op::{ComplexOperator, complex_product, complex_sum}};
///
/// let operators: [ComplexOperator<f32>; 2] = [complex_sum(), complex_product()];
/// for operator in &operators {
///     println!("{}: {}", operator.name(), Device::best()?.reduce(&[Complex::new(0.0, 1.0); 3], operator)?);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub type ComplexOperator<T> = Operator<Complex<T>, fn(Complex<T>, Complex<T>) -> Complex<T>>;

/// Sum of complex numbers of `f32` or `f64`. To sum the two parts [exactly](super::Usage::exact), reduce them as floats
/// along an axis. The sum of an empty input has -0 in both parts, since only this value leaves every number unchanged.
///
/// ```
/// use oclprim::{Complex, Device, op::{complex_sum, Usage}};
///
/// let x = [Complex::new(1.0f32, 2.0), Complex::new(0.5, -3.0)];
/// assert_eq!(Device::best()?.reduce(&x, &complex_sum())?, Complex::new(1.5, -1.0));
///
/// // Each part is correctly rounded.
/// use oclprim::{Determinism, Layout, NdView, op::Sum};
/// let x = [Complex::new(1e30f32, 2.0), Complex::new(1.0, -3.0), Complex::new(-1e30, 1e-9)];
/// let parts = NdView::new(bytemuck::cast_slice::<_, f32>(&x), Layout::contiguous(&[x.len(), 2])?)?;
/// let sum = Device::best()?.reduce(parts.along(0), Sum.exact())?;
/// assert_eq!(sum.to_vec()?, [1.0, -1.0]);
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn complex_sum<T: Float<Acc = T>>() -> ComplexOperator<T>
where
    Complex<T>: Pod + Add<Output = Complex<T>>,
{
    over("complex sum", Complex::new(T::ADD_IDENTITY, T::ADD_IDENTITY), |a, b| a + b, |_| "a + b".into())
}

/// Product of complex numbers of `f32` or `f64`. The product of an empty input is 1.
///
/// A factor with the bits of 1 + 0i leaves the other factor unchanged, so a single number is its own product. The plain
/// formula, which other factors use, would turn 1 times ∞ + 0i into ∞ + NaN i.
///
/// ```
/// use oclprim::{Complex, Device, op::complex_product};
///
/// let x = [Complex::new(1.0f32, 2.0), Complex::new(0.5, -3.0)];
/// assert_eq!(Device::best()?.reduce(&x, &complex_product())?, Complex::new(6.5, -2.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn complex_product<T: Float<Acc = T>>() -> ComplexOperator<T>
where
    Complex<T>: Pod + Mul<Output = Complex<T>>,
{
    fn product<T: Float>(a: Complex<T>, b: Complex<T>) -> Complex<T>
    where
        Complex<T>: Mul<Output = Complex<T>>,
    {
        // Only 1 + 0i: a factor of 1 - 0i changes the signs of zeros.
        let is_one = |x: Complex<T>| x.re.same(T::ONE) && x.im.same(T::ZERO);
        match (is_one(a), is_one(b)) {
            (true, _) => b,
            (_, true) => a,
            _ => a * b,
        }
    }
    let text = |pair: &str| {
        let (bits, one) = if pair == "double2" { ("as_long", "1.0") } else { ("as_int", "1.0f") };
        let is_one = |x: &str| format!("{bits}({x}.x) == {bits}({one}) && {bits}({x}.y) == 0");
        let product = format!("({pair})(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)");
        format!("{} ? b : {} ? a : {product}", is_one("a"), is_one("b"))
    };
    over("complex product", Complex::new(T::ONE, T::ZERO), product, text)
}

fn over<T: Float<Acc = T>>(
    name: &str,
    identity: Complex<T>,
    combine: fn(Complex<T>, Complex<T>) -> Complex<T>,
    expression: impl Fn(&str) -> String,
) -> ComplexOperator<T>
where
    Complex<T>: Pod,
{
    let pair = if T::TYPE == ElementType::F64 { "double2" } else { "float2" };
    let mut operator = Operator::of_struct(name, pair, "", identity, combine, &expression(pair));
    operator.needs_fp64 = T::TYPE.needs_fp64();
    operator
}
