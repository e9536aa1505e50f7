//! Permutation: an N-dimensional array with its axes in another order.
//!
//! [`Device::transform`] of an [`NdView`] allocates the result, and [`Device::copy`] writes it to an [`NdViewMut`].
//!
//! ```
//! use oclprim::Device;
//!
//! let device = Device::best()?;
//! let pixels = device.upload(&[1u8, 2, 3, 11, 12, 13, 21, 22, 23, 31, 32, 33])?; // 2 x 2 of three channels
//! let planes = device.transform(pixels.nd(&[2, 2, 3])?.permute(&[2, 0, 1])?)?;
//! assert_eq!(planes.to_vec()?, [1, 11, 21, 31, 2, 12, 22, 32, 3, 13, 23, 33]);
//! # Ok::<(), oclprim::Error>(())
//! ```
//!
//! | property | |
//! |---|---|
//! | work | one read and one write of every element |
//! | elements | any plain type; only its size counts |
//! | views | any: sliced, reversed or broadcast inputs; outputs with gaps, which do not change |
//! | determinism | same bits everywhere: elements are moved, not computed |
//! | scratch | none |
//! | limits | any shape that fits the device |
//!
//! Axes that stay neighbours are merged, as in cuTT (Hynninen and Lyakh, 2017) and TTLG (Vedurada and others, 2018).
//! Then most permutations of few axes are a copy, a transposition or a batch of transpositions. The other permutations
//! move element by element, or in units of up to 16 bytes if neighbours stay neighbours.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
#[doc(hidden)]
pub(crate) mod job;

use bytemuck::Pod;

use crate::{Buffer, Device, Error, Layout, NdView, NdViewMut, Result, runtime::Backend, source::Transformable};
use job::Job;

/// Moves the elements of `input` to `output`, which has the same shape.
pub(crate) fn run<T: Pod>(device: &Device, input: NdView<'_, T>, output: NdViewMut<'_, T>) -> Result<()> {
    let size = size_of::<T>();
    if size == 0 {
        return Err(Error::unsupported("elements must have at least 1 byte"));
    }
    let (input, from) = input.parts();
    let (output, to) = output.parts();
    let job = Job::new(size, &from, &to)?;
    match device.backend() {
        Backend::Cpu => {
            cpu::permute(&job, bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?))?;
        }
        Backend::OpenCl(device) => {
            let input = input.cl(device)?;
            let output = output.cl(device, !to.is_dense())?;
            crate::runtime::apart(&[&input], &[&output])?;
            gpu::permute(device, job, &input, &output)?;
            output.finish(device)?;
        }
    }
    Ok(())
}

impl<'a, T: Pod> Transformable for NdView<'a, T> {
    type Of = Buffer<T>;
    type Out<'o> = NdViewMut<'o, T>;

    fn transform(self, device: &Device) -> Result<Buffer<T>> {
        let mut output = device.uninit(self.len())?;
        let shape = Layout::contiguous(self.shape())?;
        run(device, self, NdViewMut::new(&mut output, shape)?)?;
        Ok(output)
    }

    fn transform_into(self, device: &Device, output: NdViewMut<'_, T>) -> Result<()> {
        device.copy(self, output)
    }
}
