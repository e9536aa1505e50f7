//! Permutation: an N-dimensional array with its axes in another order.
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

use crate::{Buffer, Device, Error, Layout, NdView, NdViewMut, Result, runtime::Backend};
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

/// # Permutations of axes
///
/// These methods return an N-dimensional array with its axes in another order. Module: [`layout::permute`](crate::layout::permute).
impl Device {
    /// Array with permuted axes and without gaps: axis `k` of the result is axis `axes[k]` of `view`, as in NumPy's
    /// `transpose`.
    ///
    /// The view may be sliced, reversed or broadcast. Does not wait for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `axes` does not contain each axis once;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the elements are zero-sized;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the result does not fit the device.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let pixels = device.upload(&[1u8, 2, 3, 11, 12, 13, 21, 22, 23, 31, 32, 33])?; // 2 x 2 of three channels
    /// let planes = device.permute(pixels.nd(&[2, 2, 3])?, &[2, 0, 1])?;
    /// assert_eq!(planes.to_vec()?, [1, 11, 21, 31, 2, 12, 22, 32, 3, 13, 23, 33]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn permute<'a, T: Pod>(&self, view: impl Into<NdView<'a, T>>, axes: &[usize]) -> Result<Buffer<T>> {
        let view = view.into().permute(axes)?;
        let mut output = self.uninit(view.len())?;
        run(self, view, NdViewMut::new(&mut output, Layout::contiguous(view.shape())?)?)?;
        Ok(output)
    }

    /// [`Device::permute`] into a view that has the shape of the result.
    ///
    /// Gaps between the elements of the view do not change. Waits for the result only if `output` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::permute`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output` has
    /// another shape.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[1u32, 2, 3, 4])?;
    /// let mut out = device.zeroed::<u32>(8)?;
    /// device.permute_into(x.nd(&[2, 2])?, &[1, 0], out.nd_mut(&[2, 4])?.slice(1, 1..3)?)?;
    /// assert_eq!(out.to_vec()?, [0, 1, 3, 0, 0, 2, 4, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn permute_into<'a, 'b, T: Pod>(
        &self,
        view: impl Into<NdView<'a, T>>,
        axes: &[usize],
        output: impl Into<NdViewMut<'b, T>>,
    ) -> Result<()> {
        let (view, output) = (view.into().permute(axes)?, output.into());
        if view.shape() != output.shape() {
            return Err(Error::invalid(format!(
                "permute needs an output of shape {:?}, got {:?}",
                view.shape(),
                output.shape()
            )));
        }
        run(self, view, output)
    }
}
