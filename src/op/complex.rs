//! Sums and products of complex numbers.

use std::ops::{Add, Mul};

use bytemuck::Pod;
use num_complex::Complex;

use super::Operator;
use crate::{ElementType, Float};

/// An operator over complex numbers; they have no order, so that there is no smallest.
///
/// ```
/// use oclprim::{Complex, Device, op::{ComplexOperator, complex_product, complex_sum}};
///
/// let operators: [ComplexOperator<f32>; 2] = [complex_sum(), complex_product()];
/// for operator in &operators {
///     println!("{}: {}", operator.name(), Device::best()?.reduce_by(&[Complex::new(0.0, 1.0); 3], operator)?);
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub type ComplexOperator<T> = Operator<Complex<T>, fn(Complex<T>, Complex<T>) -> Complex<T>>;

/// The sum of complex numbers of `f32` or `f64`. The empty sum is 0, of which both parts are -0, as that alone changes no
/// other number.
///
/// ```
/// use oclprim::{Complex, Device, op::complex_sum};
///
/// let x = [Complex::new(1.0f32, 2.0), Complex::new(0.5, -3.0)];
/// assert_eq!(Device::best()?.reduce_by(&x, &complex_sum())?, Complex::new(1.5, -1.0));
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn complex_sum<T: Float<Acc = T>>() -> ComplexOperator<T>
where
    Complex<T>: Pod + Add<Output = Complex<T>>,
{
    over("complex sum", Complex::new(T::ADD_IDENTITY, T::ADD_IDENTITY), |a, b| a + b, |_| "a + b".into())
}

/// The product of complex numbers of `f32` or `f64`. The empty product is 1.
///
/// A factor of 1 + 0i leaves the other as it is, so that a single number is its own product; the formula alone, which
/// other factors go by, would make ∞ + NaN i of 1 times ∞ + 0i.
///
/// ```
/// use oclprim::{Complex, Device, op::complex_product};
///
/// let x = [Complex::new(1.0f32, 2.0), Complex::new(0.5, -3.0)];
/// assert_eq!(Device::best()?.reduce_by(&x, &complex_product())?, Complex::new(6.5, -2.0));
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
        // 1 + 0i alone: 1 - 0i changes signs of zeros.
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
