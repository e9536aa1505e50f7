//! Adjacent differences, [`Device::adjacent_difference`]: `out[i] = x[i] - x[i - 1]` by [`Difference`], or
//! `op(x[i], x[i - 1])` by a user-defined operator.
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
    op::{Code, Core, Difference, Operator},
    parallel,
    runtime::Backend,
    source::finite,
};

/// Elements of a task.
const TASK: usize = parallel::SERIAL;

/// The function that [`Device::adjacent_difference`] applies to an element and its predecessor:
/// [`Difference`], or a user-defined [`&Operator`](Operator).
///
/// The operator need not be associative, and its identity is not used. The crate alone implements this trait.
///
/// ```
/// use oclprim::{Device, op::Difference, select::adjacent::Adjacent};
///
/// fn steps(of: impl Adjacent<u8>) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.adjacent_difference(&[3u8, 5, 4], of)?.to_vec()
/// }
/// assert_eq!(steps(Difference)?, [3, 2, 255]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine neighbours of type `{T}`",
    label = "expected `op::Difference`, or `&Operator<{T}, _>`"
)]
pub trait Adjacent<T: Element> {
    /// The function for the CPU backend, and the code for kernels; `None` for differences.
    #[doc(hidden)]
    fn parts(&self) -> Result<(impl Fn(T, T) -> T + Sync, Option<Code>)>;
}

impl<T: Element> Adjacent<T> for Difference {
    fn parts(&self) -> Result<(impl Fn(T, T) -> T + Sync, Option<Code>)> {
        let negative = T::from_integer(-1);
        Ok((move |a: T, b: T| a.add(b.mul(negative)), None))
    }
}

impl<T: Element<Acc = T>, F: Fn(T, T) -> T + Sync> Adjacent<T> for &Operator<T, F> {
    fn parts(&self) -> Result<(impl Fn(T, T) -> T + Sync, Option<Code>)> {
        let (op, code) = Core::parts(*self)?;
        Ok((op.combine, Some(code)))
    }
}

/// # Adjacent differences
///
/// These methods combine each element with its predecessor: `out[i] = x[i] - x[i - 1]`. Module:
/// [`select::adjacent`](crate::select::adjacent).
impl Device {
    /// Adjacent differences: `out[0] = x[0]`, `out[i] = op(x[i], x[i - 1])`. For [`Difference`] that is `x[i] - x[i - 1]`:
    /// integers wrap; `f16` and `bf16` are rounded from `f32`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` needs it. For a
    /// user-defined operator, [`ErrorKind::Build`](crate::ErrorKind::Build) as in [`Device::reduce`], and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if its type in OpenCL C is not that of `T`.
    ///
    /// ```
    /// use oclprim::{Device, op::{Difference, Operator, Sum}};
    ///
    /// let device = Device::best()?;
    /// let steps = device.adjacent_difference(&[3u8, 5, 4], Difference)?;
    /// assert_eq!(steps.to_vec()?, [3, 2, 255]);
    /// assert_eq!(device.scan(&steps, Sum)?.to_vec()?, [3, 5, 4]);
    /// let distance = Operator::new("distance", 0i32, |a: i32, b| (a - b).abs(), "abs(a - b)");
    /// assert_eq!(device.adjacent_difference(&[-2, 5, 1], &distance)?.to_vec()?, [-2, 7, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn adjacent_difference<T: Element>(
        &self,
        input: impl Source<Item = T>,
        op: impl Adjacent<T>,
    ) -> Result<Buffer<T>> {
        let mut output = self.uninit(finite(&input)?)?;
        self.adjacent_difference_into(input, op, &mut output)?;
        Ok(output)
    }

    /// [`Device::adjacent_difference`] into a slice, buffer or view of the same length.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::adjacent_difference`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the
    /// lengths differ, or if the arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, op::Difference};
    ///
    /// let mut steps = [0.0f32; 3];
    /// Device::best()?.adjacent_difference_into(&[1.5f32, 2.0, 4.0], Difference, &mut steps)?;
    /// assert_eq!(steps, [1.5, 0.5, 2.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn adjacent_difference_into<'b, T: Element, A: Adjacent<T>>(
        &self,
        input: impl Source<Item = T>,
        op: A,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        self.adjacent(input.held(self)?.input(), &op, output.into())
    }

    /// Body of [`Device::adjacent_difference_into`], compiled once for each type and operator.
    #[inline(never)]
    fn adjacent<T: Element, A: Adjacent<T>>(&self, input: Input<'_, T>, op: &A, output: Output<'_, T>) -> Result<()> {
        let (combine, source) = op.parts()?;
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
                gpu::run(device, T::TYPE, source.as_ref(), &input, &output)?;
                output.finish(device)
            }
        }
    }
}
