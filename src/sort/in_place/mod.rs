//! Sorts of keys in their own memory, [`Device::sort_in_place`]: for arrays beside which there is no room for another one.
//!
//! | property | |
//! |---|---|
//! | work | n log(n)² / 4 comparisons; with m = log2(n / tile) about m² / 8 + 3 m / 2 reads and writes of all keys. A tile is 4096 keys of 4 bytes on most GPUs, so that 2^28 of them are read and written 57 times, where [`sort`](crate::sort) does so four times |
//! | keys | as `sort`, by all bits. Equal keys are alike then, but for zeros and NaN: ascending, -0 comes before 0, and NaN are in an order of their bits, those with a sign last; descending, the other way round |
//! | determinism | everywhere: the result is a function of the input |
//! | scratch | none, on the CPU a stack for each thread |
//! | limits | any n that fits the device |
//!
//! A bitonic sort (Batcher 1968) that compares in one direction, and so takes any n; a launch does four distances with 16 keys in
//! registers, or all that are left in local memory. On the CPU it is quicksort in parallel.

#[cfg(feature = "opencl")]
#[doc(hidden)]
pub(crate) mod gpu;

use super::{Key, Order, cpu, keys::Keys};
use crate::{Device, Error, Output, Result, runtime::Backend};

impl Device {
    /// Puts keys in order where they are, with no memory beside them: slower than [`Device::sort`] for large n, which takes a second
    /// and a third array of n keys. Does not wait, unless `keys` is a host slice; that is sorted in a copy on the device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the order has not all bits of the keys;
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if it names bits that keys have not.
    ///
    /// ```
    /// use oclprim::{Device, Order};
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[2.5f32, -0.0, f32::NAN, 0.0, -1.0])?;
    /// device.sort_in_place(&mut x, Order::descending())?;
    /// assert!(x.to_vec()?[0].is_nan());
    /// assert_eq!(x.to_vec()?[1..], [2.5, 0.0, -0.0, -1.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sort_in_place<'a, T: Key>(&self, keys: impl Into<Output<'a, T>>, order: Order) -> Result<()> {
        self.sort_in_place_one(keys.into(), &order)
    }

    /// [`Device::sort_in_place`], built once for each type.
    #[inline(never)]
    fn sort_in_place_one<T: Key>(&self, data: Output<'_, T>, order: &Order) -> Result<()> {
        let keys = Keys::new::<T>(order)?;
        if !keys.whole() {
            let (some, all) = (&keys.bits, 8 * keys.bytes);
            let text = format!("sorting in place takes all {all} bits of keys, not bits {some:?}");
            return Err(Error::unsupported(text));
        }
        match self.backend() {
            Backend::Cpu => cpu::in_place(&keys, bytemuck::cast_slice_mut(data.host()?)),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let data = data.cl(device, true)?;
                gpu::run(device, &keys, &data)?;
                data.finish(device)?;
            }
        }
        Ok(())
    }
}
