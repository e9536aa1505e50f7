//! Reductions of converted elements. [`Device::reduce_as`] converts to a wider type, [`Device::map_reduce`] applies a
//! function, and [`Device::dot`] multiplies pairs.
//!
//! | property | |
//! |---|---|
//! | work | n conversions, functions or products and n - 1 operations; one read of each input |
//! | operator | as [`reduce`](crate::reduce), in the type of the result |
//! | determinism | as [`reduce`](crate::reduce), if a function of floats rounds the same in Rust and in OpenCL C: [`Map`] |
//! | scratch | at most n / 4,096 accumulators: [`Device::reduce_as_scratch`] |
//! | limits | any n that fits the device |
//!
//! The tree and the kernels are those of [`reduce`](crate::reduce). Elements are converted, mapped or multiplied in
//! registers, as in Thrust's `transform_reduce`.

use std::ops::Range;

use super::gpu::{self, Form, Take};
use super::{Determinism, cpu};
use crate::{
    Device, Element, Error, Input, Output, Result, Scratch,
    op::{Arithmetic, Map, Op, Sum},
    runtime::Backend,
};

/// # Reductions of converted elements
///
/// These methods convert, map or multiply the elements as they read them: `f(x[0]) op ... op f(x[n - 1])`. Module:
/// [`reduce::mapped`](crate::reduce::mapped).
impl Device {
    /// Reduction in a wider type, such as `i64` for `i32`: `U::from(x[0]) op ... op U::from(x[n - 1])`.
    ///
    /// Elements are converted as they are read, so the cost is that of [`Device::reduce`]. Float sums and products are
    /// [`Determinism::Fixed`], the same bits everywhere: the tree depends on n and both types.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let bytes = device.upload(&[200u8; 1000])?;
    /// let total: u64 = device.reduce_as(&bytes, Sum)?;
    /// assert_eq!(total, 200_000);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_as<'a, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: O,
    ) -> Result<U> {
        let mut out = [U::ZERO];
        self.reduce_as_into(input, op, Determinism::default(), &mut out, &mut Scratch::new())?;
        Ok(out[0])
    }

    /// [`Device::reduce_as`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_as`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not
    /// have exactly one element; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, Scratch, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let mut total = device.zeroed::<u64>(1)?;
    /// let mut scratch = Scratch::new();
    /// scratch.reserve(&device, device.reduce_as_scratch::<u8, u64>(1000))?;
    /// device.reduce_as_into(&[200u8; 1000], Sum, Determinism::Fixed, &mut total, &mut scratch)?;
    /// assert_eq!(total.to_vec()?, [200_000]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_as_into<'a, 'b, T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: O,
        determinism: Determinism,
        output: impl Into<Output<'b, U>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.reduce_as_one(input.into(), op, determinism, output.into(), scratch)
    }

    /// Body of [`Device::reduce_as_into`], compiled once for each set of types.
    #[inline(never)]
    fn reduce_as_one<T: Element, U: Element + From<T>, O: Op<U>>(
        &self,
        input: Input<'_, T>,
        _: O,
        determinism: Determinism,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "reduce")?;
        let exact = determinism.exact::<U, O>()?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let widen = |row: Range<usize>| input[row].iter().map(|&x| U::from(x).widen());
                output.host()?[0] = if exact {
                    cpu::exact_rows(input.len(), &widen)?
                } else {
                    cpu::reduce_rows::<T, U, O, _>(input.len(), &widen)?
                };
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = Form::into::<T, U, O>(determinism, Take::Elements);
                let (empty, input) = (O::empty(), input.any());
                gpu::reduce_form(device, &form, bytemuck::bytes_of(&empty), input, None, output.any(), scratch)
            }
        }
    }

    /// Reduction of mapped elements: `map(x[0]) op ... op map(x[n - 1])`. Float sums and products are
    /// [`Determinism::Fixed`]: same bits everywhere.
    ///
    /// The argument of the function has the type in which `T` is computed: `f32` for `f16` and `bf16`, else `T` itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it.
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects the expression; line numbers in the
    /// [log](crate::Error::build_log) refer to the expression.
    ///
    /// ```
    /// use oclprim::{Device, op::{Map, Sum}};
    ///
    /// let device = Device::best()?;
    /// let square = Map::new(|x: f32| x * x, "x * x");
    /// assert_eq!(device.map_reduce(&[1.0f32, -2.0, 3.0], &square, Sum)?, 14.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_reduce<'a, T: Element, R: Element<Acc = R>, F: Fn(T::Acc) -> R + Sync, O: Op<R>>(
        &self,
        input: impl Into<Input<'a, T>>,
        map: &Map<F>,
        op: O,
    ) -> Result<R> {
        let mut out = [R::ZERO];
        self.map_reduce_into(input, map, op, Determinism::default(), &mut out, &mut Scratch::new())?;
        Ok(out[0])
    }

    /// [`Device::map_reduce`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::map_reduce`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not
    /// have exactly one element; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// [`Exact`](Determinism::Exact) float products.
    ///
    /// ```
    /// use oclprim::{Determinism::Fixed, Device, Scratch, op::{Map, Max}};
    ///
    /// let device = Device::best()?;
    /// let mut size = device.zeroed::<f32>(1)?;
    /// let abs = Map::new(f32::abs, "fabs(x)");
    /// device.map_reduce_into(&[1.0f32, -2.0], &abs, Max, Fixed, &mut size, &mut Scratch::new())?;
    /// assert_eq!(size.to_vec()?, [2.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn map_reduce_into<'a, 'b, T: Element, R: Element<Acc = R>, F: Fn(T::Acc) -> R + Sync, O: Op<R>>(
        &self,
        input: impl Into<Input<'a, T>>,
        map: &Map<F>,
        op: O,
        determinism: Determinism,
        output: impl Into<Output<'b, R>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.map_reduce_one(input.into(), map, op, determinism, output.into(), scratch)
    }

    /// Body of [`Device::map_reduce_into`], compiled once for each set of types.
    #[inline(never)]
    fn map_reduce_one<T: Element, R: Element<Acc = R>, F: Fn(T::Acc) -> R + Sync, O: Op<R>>(
        &self,
        input: Input<'_, T>,
        map: &Map<F>,
        _: O,
        determinism: Determinism,
        output: Output<'_, R>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "reduce")?;
        let exact = determinism.exact::<R, O>()?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let values = |row: Range<usize>| input[row].iter().map(|x| (map.function)(x.widen()));
                output.host()?[0] = if exact {
                    cpu::exact_rows(input.len(), &values)?
                } else {
                    cpu::reduce_rows::<T, R, O, _>(input.len(), &values)?
                };
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = Form::into::<T, R, O>(determinism, Take::Mapped(map.prelude(T::Acc::TYPE, R::TYPE)));
                let (empty, input) = (O::empty(), input.any());
                gpu::reduce_form(device, &form, bytemuck::bytes_of(&empty), input, None, output.any(), scratch)
            }
        }
    }

    /// Dot product in a type that holds every value of `T`: `x[0] * y[0] + ... + x[n - 1] * y[n - 1]`. The sum is
    /// [`Determinism::Fixed`]: same bits everywhere.
    ///
    /// Products have the type of the result. They are exact if that type is wide enough, such as `i64` for `i32`, or
    /// `f32` for `f16`. Else they wrap or round. They are never fused with the addition. With
    /// [`Exact`](Determinism::Exact) all products are exact, and only their sum is rounded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the lengths differ;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a type needs it.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[100_000i32, 2, -3])?;
    /// let product: i64 = device.dot(&x, &[100_000, 5, 1])?;
    /// assert_eq!(product, 10_000_000_007);
    /// let length = device.dot::<_, f32>(&[3.0f32, 4.0], &[3.0, 4.0])?.sqrt();
    /// assert_eq!(length, 5.0);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn dot<'a, 'b, T: Element, U: Element + From<T>>(
        &self,
        x: impl Into<Input<'a, T>>,
        y: impl Into<Input<'b, T>>,
    ) -> Result<U> {
        let mut out = [U::ZERO];
        self.dot_into(x, y, Determinism::default(), &mut out, &mut Scratch::new())?;
        Ok(out[0])
    }

    /// [`Device::dot`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::dot`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not have
    /// exactly one element.
    ///
    /// ```
    /// use oclprim::{Determinism, Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let mut product = device.zeroed::<i64>(1)?;
    /// device.dot_into(&[1, 2, 3], &[4, 5, 6], Determinism::Fixed, &mut product, &mut Scratch::new())?;
    /// assert_eq!(product.to_vec()?, [32]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn dot_into<'a, 'b, 'c, T: Element, U: Element + From<T>>(
        &self,
        x: impl Into<Input<'a, T>>,
        y: impl Into<Input<'b, T>>,
        determinism: Determinism,
        output: impl Into<Output<'c, U>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.dot_one(x.into(), y.into(), determinism, output.into(), scratch)
    }

    /// Body of [`Device::dot_into`], compiled once for each set of types.
    #[inline(never)]
    fn dot_one<T: Element, U: Element + From<T>>(
        &self,
        x: Input<'_, T>,
        y: Input<'_, T>,
        determinism: Determinism,
        output: Output<'_, U>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "dot")?;
        if x.len() != y.len() {
            return Err(Error::invalid(format!(
                "a dot product needs arrays of one length, got {} and {} elements",
                x.len(),
                y.len()
            )));
        }
        let exact = determinism.exact::<U, Sum>()?;
        match self.backend() {
            Backend::Cpu => {
                let (x, y) = (x.host()?, y.host()?);
                let widen = |x: T| U::from(x).widen();
                let pairs =
                    |row: Range<usize>| x[row.clone()].iter().zip(&y[row]).map(move |(&x, &y)| [widen(x), widen(y)]);
                output.host()?[0] = if exact {
                    cpu::exact_products(x.len(), &pairs)?
                } else {
                    let values = |row| pairs(row).map(|[x, y]| x.mul(y));
                    cpu::reduce_rows::<T, U, Sum, _>(x.len(), &values)?
                };
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = Form::into::<T, U, Sum>(determinism, Take::Products);
                let (empty, x, y) = (U::ZERO, x.any(), Some(y.any()));
                gpu::reduce_form(device, &form, bytemuck::bytes_of(&empty), x, y, output.any(), scratch)
            }
        }
    }

    /// Upper bound on the scratch bytes of [`Device::reduce_as_into`], [`Device::map_reduce_into`] and
    /// [`Device::dot_into`], for `n` elements of type `T` and a result of type `U`.
    ///
    /// ```
    /// assert_eq!(oclprim::Device::cpu().reduce_as_scratch::<f32, f64>(1 << 20), 0);
    /// ```
    pub fn reduce_as_scratch<T: Element, U: Element>(&self, n: usize) -> usize {
        match self.backend() {
            Backend::Cpu => 0,
            Backend::OpenCl(_) => gpu::scratch_bytes::<T, U>(n),
        }
    }
}
