//! Reduction by a user's operator: [`Device::reduce_by`].
//!
//! | property | |
//! |---|---|
//! | work | n operations and 255 for each tile, one read of the input |
//! | operator | associative and commutative, with an identity: [`Operator`]; [`op::laws`](crate::op::laws) tests these laws |
//! | determinism | same bits everywhere, if the operator rounds the same in Rust and in OpenCL C |
//! | scratch | an element for each tile of at most 64 KiB |
//! | limits | elements of 1 to 64 bytes ([`Operator::MAX_BYTES`]), any n that fits the device |
//!
//! The design is that of [`reduce`](crate::reduce), with the tree of lanes in local memory, for elements of any size.
//!
//! The order is fixed, as for [`Fixed`](crate::Determinism::Fixed) sums. A tile has 256 lanes. Each lane combines its
//! elements row by row; then neighbouring lanes combine in pairs. An operator may round. Results still have the same
//! bits everywhere, if its Rust function and its expression agree on any two elements. The operator must be
//! commutative, since neighbouring elements belong to different lanes.

#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::op::gpu::Form;
use crate::{Device, Input, Output, Result, Scratch, op::Operator, parallel, runtime::Backend};

#[doc(hidden)]
pub const LANES: usize = 256;

/// The rows of a tile of elements of `size` bytes, 1 to 64; as in `cl/reduce_by.cl`.
#[doc(hidden)]
pub const fn rows(size: usize) -> usize {
    let rows = 256 / size.next_power_of_two();
    if rows > 4 { rows } else { 4 }
}

/// # Reductions by a user's operator
///
/// These methods reduce by an [`Operator`], also over structs. Module: [`reduce::by`](crate::reduce::by).
impl Device {
    /// Reduction by a user's operator: `x[0] op ... op x[n - 1]`. The result for empty input is the operator's
    /// identity.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Build`](crate::ErrorKind::Build) if the operator's text does not compile; line numbers in the
    /// compiler's [log](crate::Error::build_log) refer to that text.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and `T` is `f64`, or if
    /// elements have more than [`MAX_BYTES`](Operator::MAX_BYTES).
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let saturating = Operator::new("saturating sum", 0u8, u8::saturating_add, "add_sat(a, b)");
    /// assert_eq!(Device::best()?.reduce_by(&[100, 100, 100], &saturating)?, 255);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by<'a, T, F>(&self, input: impl Into<Input<'a, T>>, op: &Operator<T, F>) -> Result<T>
    where
        T: Pod + Send + Sync,
        F: Fn(T, T) -> T + Sync,
    {
        let mut out = [op.identity];
        self.reduce_by_into(input, op, &mut out)?;
        Ok(out[0])
    }

    /// [`Device::reduce_by`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::reduce_by`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not
    /// have exactly one element.
    ///
    /// ```
    /// use oclprim::{Device, op::Operator};
    ///
    /// let device = Device::best()?;
    /// let union = Operator::new("union", 0u32, |a, b| a | b, "a | b");
    /// let x = device.upload(&[1u32, 2, 8])?;
    /// let mut out = device.zeroed::<u32>(1)?;
    /// device.reduce_by_into(&x, &union, &mut out)?;
    /// assert_eq!(out.to_vec()?, [11]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reduce_by_into<'a, 'b, T, F>(
        &self,
        input: impl Into<Input<'a, T>>,
        op: &Operator<T, F>,
        output: impl Into<Output<'b, T>>,
    ) -> Result<()>
    where
        T: Pod + Send + Sync,
        F: Fn(T, T) -> T + Sync,
    {
        self.reduce_by_one(input.into(), op, output.into(), &mut Scratch::new())
    }

    /// Body of [`Device::reduce_by_into`], compiled once for each set of types.
    #[inline(never)]
    fn reduce_by_one<T, F>(
        &self,
        input: Input<'_, T>,
        op: &Operator<T, F>,
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()>
    where
        T: Pod + Send + Sync,
        F: Fn(T, T) -> T + Sync,
    {
        output.expect_len(1, "reduce")?;
        op.expect_size()?;
        match self.backend() {
            Backend::Cpu => output.host()?[0] = on_cpu(input.host()?, op.identity, &op.combine)?,
            Backend::OpenCl(device) => {
                let (input, out) = (input.cl(device)?, output.cl(device, false)?);
                let form = Form { source: op.source(), size: size_of::<T>(), needs_fp64: op.needs_fp64 };
                gpu::reduce(device, &form, bytemuck::bytes_of(&op.identity), &input, &out, scratch)?;
                out.finish(device)?;
            }
        }
        Ok(())
    }
}

fn on_cpu<T: Copy + Send + Sync>(input: &[T], identity: T, combine: &(impl Fn(T, T) -> T + Sync)) -> Result<T> {
    let len = rows(size_of::<T>()) * LANES;
    let one = |tile: &[T]| {
        let mut lane = [identity; LANES];
        for row in tile.chunks(LANES) {
            for (lane, &x) in lane.iter_mut().zip(row) {
                *lane = combine(*lane, x);
            }
        }
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for k in 0..width {
                lane[k] = combine(lane[2 * k], lane[2 * k + 1]);
            }
        }
        lane[0]
    };
    let of = |x: &[T]| parallel::map(x.len().div_ceil(len), &|i| one(&x[i * len..x.len().min((i + 1) * len)]));
    let mut partials = of(input)?;
    while partials.len() > 1 {
        partials = of(&partials)?;
    }
    Ok(partials.first().copied().unwrap_or(identity))
}
