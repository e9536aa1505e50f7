//! Transposition of mapped elements in one pass ([`Device::transpose_map`]).
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of every element |
//! | elements | as for [`reduce`](crate::reduce); the result may have another type |
//! | determinism | same bits everywhere; for floats, if the device keeps subnormals, and for a custom function as its [`Map`](crate::op::Map) says |
//! | in place | no: input and output are distinct |
//! | scratch | none |
//! | limits | matrices without gaps between their rows; any shape that fits the device |

#[doc(hidden)]
pub(crate) mod gpu;

use super::validate;
use crate::{
    Buffer, Device, Element, Input, Output, Result,
    layout::permute,
    op::Mapping,
    parallel,
    runtime::{Backend, lines},
};

/// Elements of a task of a row or a column vector.
const TASK_CELLS: usize = parallel::SERIAL;

/// # Transpositions of mapped elements
///
/// These methods transpose a function of each element. Module: [`layout::transpose::mapped`](crate::layout::transpose::mapped).
impl Device {
    /// Transposed matrix of mapped elements: `out[c * rows + r] = map(input[r * cols + c])`.
    ///
    /// `map` converts to another type ([`Cast`](crate::op::Cast)), multiplies ([`Scale`](crate::op::Scale)), or calls a
    /// custom function ([`Map`](crate::op::Map)). The layout of both matrices is as in [`Device::transpose`].
    ///
    /// Does not wait for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `input` does not have `rows * cols` elements or
    /// that product overflows; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device lacks fp64 and a
    /// type needs it; [`ErrorKind::Build`](crate::ErrorKind::Build) if the driver rejects the custom expression; line
    /// numbers in the [log](crate::Error::build_log) refer to the expression;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device.
    ///
    /// ```
    /// use oclprim::{Device, f16, op::{Cast, Map, Scale}};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, -1.0, 2.0, 3.0, 4.0, 5.0])?;
    /// let halves = device.transpose_map::<f32, f16>(&x, 2, 3, &Cast)?;
    /// assert_eq!(halves.to_vec()?, [0.5, 3.0, -1.0, 4.0, 2.0, 5.0].map(f16::from_f32));
    /// let twice = device.transpose_map::<f32, i32>(&x, 2, 3, &Scale(2))?; // converted first
    /// assert_eq!(twice.to_vec()?, [0, 6, -2, 8, 4, 10]);
    /// let squares = device.transpose_map::<f32, f32>(&x, 2, 3, &Map::new(|x| x * x, "x * x"))?;
    /// assert_eq!(squares.to_vec()?, [0.25, 9.0, 1.0, 16.0, 4.0, 25.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_map<'a, T: Element, U: Element>(
        &self,
        input: impl Into<Input<'a, T>>,
        rows: usize,
        cols: usize,
        map: &impl Mapping<T, U>,
    ) -> Result<Buffer<U>> {
        let input = input.into();
        let mut output = self.uninit(validate(&input, rows, cols)?)?;
        self.transpose_map_into(input, rows, cols, map, &mut output)?;
        Ok(output)
    }

    /// [`Device::transpose_map`] into a buffer, a view or a slice of `rows * cols` elements.
    ///
    /// Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::transpose_map`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output`
    /// has the wrong length.
    ///
    /// ```
    /// use oclprim::{Device, op::Cast};
    ///
    /// let mut out = [0.0f64; 6];
    /// Device::cpu().transpose_map_into(&[1, 2, 3, 4, 5, 6], 2, 3, &Cast, &mut out)?;
    /// assert_eq!(out, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_map_into<'a, 'b, T: Element, U: Element>(
        &self,
        input: impl Into<Input<'a, T>>,
        rows: usize,
        cols: usize,
        map: &impl Mapping<T, U>,
        output: impl Into<Output<'b, U>>,
    ) -> Result<()> {
        self.transpose_map_one(input.into(), rows, cols, map, output.into())
    }

    /// Body of [`Device::transpose_map_into`], compiled once for each set of types.
    #[inline(never)]
    fn transpose_map_one<T: Element, U: Element>(
        &self,
        input: Input<'_, T>,
        rows: usize,
        cols: usize,
        map: &impl Mapping<T, U>,
        output: Output<'_, U>,
    ) -> Result<()> {
        let len = validate(&input, rows, cols)?;
        output.expect_len(len, "transpose")?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (input.host()?, output.host()?);
                if len > 0 {
                    on_cpu(input, output, (rows, cols), &|x| map.apply(x))?;
                }
            }
            Backend::OpenCl(device) => {
                let form = gpu::Form { from: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, prelude: map.prelude() };
                let factor = map.factor();
                gpu::transpose(device, &form, bytemuck::bytes_of(&factor), input.any(), (rows, cols), output.any())?;
            }
        }
        Ok(())
    }
}

/// Maps elements while it reads them, and transposes the results. The loops over matrices are compiled once per element
/// size, not once per type and map.
fn on_cpu<T: Element, U: Element>(
    input: &[T],
    output: &mut [U],
    (rows, cols): (usize, usize),
    map: &(impl Fn(T) -> U + Sync),
) -> Result<()> {
    let put = |from: usize, to: &mut [U]| to.iter_mut().zip(&input[from..]).for_each(|(to, &x)| *to = map(x));
    if rows == 1 || cols == 1 {
        parallel::chunks_mut(output, TASK_CELLS, &|chunk, part| put(chunk * TASK_CELLS, part));
        return Ok(());
    }
    let read = |from: usize, to: &mut [u8]| put(from, bytemuck::cast_slice_mut(to));
    let fetch = |from: usize, len: usize| lines::fetch(bytemuck::cast_slice(&input[from..from + len]));
    let source = permute::cpu::Source { read: &read, fetch: &fetch };
    permute::cpu::turn_from(size_of::<U>(), (rows, cols), source, bytemuck::cast_slice_mut(output))
}
