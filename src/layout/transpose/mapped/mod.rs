//! Transposition of an expression in one pass ([`Device::transpose`](crate::Device::transpose)).
//!
//! ```
//! use oclprim::{Device, Source, op::Map};
//!
//! let device = Device::best()?;
//! let x = device.upload(&[0.5f32, -1.0, 2.0, 3.0, 4.0, 5.0])?;
//! let squares = device.transpose(x.map(Map::new(|x: f32| x * x, "x * x")), (2, 3))?;
//! assert_eq!(squares.to_vec()?, [0.25, 9.0, 1.0, 16.0, 4.0, 25.0]);
//! # Ok::<(), oclprim::Error>(())
//! ```
//!
//! | property | |
//! |---|---|
//! | work | one read of each array of the expression, and one write of each element; with [`Matrices`], one more pass |
//! | elements | an [`Element`](crate::Element) |
//! | determinism | same bits as the transpose of the array that [`Device::transform`](crate::Device::transform) writes |
//! | in place | no: inputs and output are distinct |
//! | scratch | none; with [`Matrices`], the elements of the expression |
//! | limits | any shape that fits the device |

#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::matrices::{Matrices, check_size};
use crate::{
    Device, ElementType, Output, Result,
    layout::permute,
    parallel,
    runtime::{Backend, apart},
    source::{Blocks, Expression, load::Load},
};

/// Elements of a task of a row or a column vector.
const TASK_CELLS: usize = parallel::SERIAL;

/// Transposes an expression whose elements have the type `element`. Compiled once for each type.
#[inline(never)]
pub(super) fn transpose<T: Pod + Send + Sync>(
    device: &Device,
    source: &dyn Expression<T>,
    element: ElementType,
    (rows, cols): (usize, usize),
    output: Output<'_, T>,
) -> Result<()> {
    let len = Matrices::from((rows, cols)).check_len(source.finite_len()?)?;
    check_size(size_of::<T>())?;
    output.expect_len(len, "transpose")?;
    match device.backend() {
        Backend::Cpu => {
            let output = output.host()?;
            source.read(&mut |values| if len > 0 { on_cpu(values, output, (rows, cols)) } else { Ok(()) })
        }
        Backend::OpenCl(device) => {
            let load = Load::of(source, device)?;
            let out = output.cl(device, false)?;
            apart(&load.inputs(), &[&out])?;
            load.run(device, source, len, &mut || gpu::transpose(device, element, &load, (rows, cols), &out))?;
            out.finish(device)
        }
    }
}

/// Computes elements as it reads them, and transposes the results. The loops over the matrix are compiled for each
/// element size, not for each type and expression.
fn on_cpu<T: Pod + Send + Sync>(values: &dyn Blocks<T>, output: &mut [T], (rows, cols): (usize, usize)) -> Result<()> {
    if rows == 1 || cols == 1 {
        parallel::chunks_mut(output, TASK_CELLS, &|chunk, part| values.block(chunk * TASK_CELLS, part));
        return Ok(());
    }
    let read = |from: usize, to: &mut [u8]| values.block(from, bytemuck::cast_slice_mut(to));
    let source = permute::cpu::Source { read: &read, fetch: &|_, _| {} };
    permute::cpu::turn_from(size_of::<T>(), (rows, cols), source, bytemuck::cast_slice_mut(output))
}
