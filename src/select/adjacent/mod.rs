//! Adjacent differences: `out[i] = x[i] - x[i - 1]`, [`Device::adjacent_difference`]; or `op(x[i], x[i - 1])` by a
//! user's operator, [`Device::adjacent_difference_by`].
//!
//! | property | |
//! |---|---|
//! | work | n operations, one read of the input and one write |
//! | determinism | same bits everywhere; for floats, if the device keeps subnormals: each result is one operation |
//! | scratch | none |
//! | limits | any n that fits the device |
//!
//! The first element has no predecessor and is copied: `out[0] = x[0]`. So the inclusive scan of integer differences is
//! the input.

#[doc(hidden)]
pub(crate) mod gpu;

use crate::runtime::apart;
use crate::{
    Buffer, Device, Element, Input, Output, Result, Source,
    op::{Code, Core, Operator},
    parallel,
    runtime::Backend,
};

/// Elements of a task.
const TASK: usize = parallel::SERIAL;

/// # Adjacent differences
///
/// These methods combine each element with its predecessor: `out[i] = x[i] - x[i - 1]`. Module:
/// [`select::adjacent`](crate::select::adjacent).
impl Device {
    /// Adjacent differences: `out[0] = x[0]`, `out[i] = x[i] - x[i - 1]`. Integers wrap; `f16` and `bf16` are rounded
    /// from `f32`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it.
    ///
    /// ```
    /// use oclprim::{Device, op::Sum};
    ///
    /// let device = Device::best()?;
    /// let steps = device.adjacent_difference(&[3u8, 5, 4])?;
    /// assert_eq!(steps.to_vec()?, [3, 2, 255]);
    /// assert_eq!(device.scan(&steps, Sum)?.to_vec()?, [3, 5, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn adjacent_difference<T: Element>(&self, input: impl Source<Item = T>) -> Result<Buffer<T>> {
        let held = input.held(self)?;
        let input = held.input();
        let mut output = self.uninit(input.len())?;
        self.adjacent_difference_into(input, &mut output)?;
        Ok(output)
    }

    /// [`Device::adjacent_difference`] into a slice, buffer or view of the same length.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::adjacent_difference`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the
    /// lengths differ, or if the arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// let mut steps = [0.0f32; 3];
    /// oclprim::Device::best()?.adjacent_difference_into(&[1.5f32, 2.0, 4.0], &mut steps)?;
    /// assert_eq!(steps, [1.5, 0.5, 2.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn adjacent_difference_into<'b, T: Element>(
        &self,
        input: impl Source<Item = T>,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        self.adjacent_difference_one(input.held(self)?.input(), output.into())
    }

    /// Body of [`Device::adjacent_difference_into`], compiled once for each type.
    #[inline(never)]
    fn adjacent_difference_one<T: Element>(&self, input: Input<'_, T>, output: Output<'_, T>) -> Result<()> {
        let negative = T::from_integer(-1);
        let less = |a: T, b: T| a.add(b.mul(negative));
        self.adjacent((input, &less), None, output)
    }

    /// Adjacent differences by a user's operator: `out[0] = x[0]`, `out[i] = op(x[i], x[i - 1])`.
    ///
    /// The operator need not be associative, and its identity is not used.
    ///
    /// # Errors
    ///
    /// Same as [`Device::adjacent_difference`]; [`ErrorKind::Build`](crate::ErrorKind::Build) as [`Device::reduce`],
    /// and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the operator's type in OpenCL C is not that
    /// of `T`.
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let distance = Operator::new("distance", 0i32, |a: i32, b| (a - b).abs(), "abs(a - b)");
    /// let steps = Device::best()?.adjacent_difference_by(&[-2, 5, 1], &distance)?;
    /// assert_eq!(steps.to_vec()?, [-2, 7, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn adjacent_difference_by<T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Source<Item = T>,
        op: &Operator<T, F>,
    ) -> Result<Buffer<T>> {
        let held = input.held(self)?;
        let input = held.input();
        let mut output = self.uninit(input.len())?;
        self.adjacent_difference_by_into(input, op, &mut output)?;
        Ok(output)
    }

    /// [`Device::adjacent_difference_by`] into a slice, buffer or view. All else is as in
    /// [`Device::adjacent_difference_into`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::adjacent_difference_by`] and [`Device::adjacent_difference_into`].
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let saturating = Operator::new("saturating difference", 0u8, u8::saturating_sub, "sub_sat(a, b)");
    /// let mut steps = [0u8; 3];
    /// Device::best()?.adjacent_difference_by_into(&[3u8, 5, 4], &saturating, &mut steps)?;
    /// assert_eq!(steps, [3, 2, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn adjacent_difference_by_into<'b, T: Element<Acc = T>, F: Fn(T, T) -> T + Sync>(
        &self,
        input: impl Source<Item = T>,
        op: &Operator<T, F>,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        let (op, source) = op.parts()?;
        self.adjacent((input.held(self)?.input(), &op.combine), Some(&source), output.into())
    }

    #[inline(never)]
    fn adjacent<T: Element>(
        &self,
        (input, combine): (Input<'_, T>, &(impl Fn(T, T) -> T + Sync)),
        source: Option<&Code>,
        output: Output<'_, T>,
    ) -> Result<()> {
        output.expect_len(input.len(), "an adjacent difference")?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                parallel::chunks_mut(output.host()?, TASK, &|task, out| {
                    let first = task * TASK;
                    let input = &input[first.saturating_sub(1)..];
                    let (out, input) = match first {
                        0 => {
                            out[0] = input[0];
                            (&mut out[1..], input)
                        }
                        _ => (out, input),
                    };
                    out.iter_mut().zip(input.windows(2)).for_each(|(out, pair)| *out = combine(pair[1], pair[0]));
                });
                Ok(())
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                apart(&[&input], &[&output])?;
                gpu::run(device, T::TYPE, source, &input, &output)?;
                output.finish(device)
            }
        }
    }
}
