//! Reduction by a user-defined operator: [`Device::reduce`] with an [`Operator`], also over structs.
//!
//! | property | |
//! |---|---|
//! | work | n operations and 255 for each tile, one read of the input |
//! | operator | associative and commutative, with an identity: [`Operator`]; [`op::laws`](crate::op::laws) tests these laws |
//! | determinism | same bits everywhere, if the operator rounds the same in Rust and in OpenCL C and, for floats, if the device keeps subnormals |
//! | scratch | an element for each tile of at most 64 KiB |
//! | limits | elements of 1 to 64 bytes ([`Operator::MAX_BYTES`]), any n that fits the device |
//!
//! The design is that of [`reduce`](crate::reduce), with the tree of lanes in local memory, for elements of any size.
//!
//! The order is fixed, as for [`Fixed`](crate::Determinism::Fixed) sums. A tile has 256 lanes. Each lane combines its
//! elements row by row; then neighbouring lanes combine in pairs. An operator may round. Results still have the same
//! bits everywhere, if its Rust function and its expression agree on any two elements. The operator must be
//! commutative, since neighbouring elements belong to different lanes.
//!
//! A reduction of structs in segments, by key or along axes is a [scan in segments](crate::scan::by) that writes only
//! the last result of each segment. The operator need not be commutative. The scan takes about 3 n operations. On the
//! CPU backend it writes all results, to temporary memory of n elements.

#[doc(hidden)]
pub(crate) mod gpu;
mod segments;

use bytemuck::Pod;

use crate::counted::{ClCount, Count, apart_from};
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

impl Device {
    /// [`Device::reduce_into`] by a user-defined operator, compiled once for each operator. Only OpenCL devices read a count.
    #[inline(never)]
    pub(super) fn reduce_of_user<T, F>(
        &self,
        (input, count): (Input<'_, T>, Option<Count<'_>>),
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
                let count = count.map(|count| count.cl(device)).transpose()?;
                apart_from(count.as_ref(), &[&out])?;
                let of = count.as_ref().map(ClCount::element);
                let form = Form { source: op.source(), size: size_of::<T>(), needs_fp64: op.needs_fp64, count: of };
                let identity = bytemuck::bytes_of(&op.identity);
                gpu::reduce(device, &form, identity, (&input, count.as_ref()), &out, scratch)?;
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
