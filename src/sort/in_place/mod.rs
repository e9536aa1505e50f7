//! Sort of keys in place ([`Device::sort_in_place`]), for arrays that leave no room for a second array.
//!
//! | property | |
//! |---|---|
//! | work | n log(n)² / 4 comparisons. With m = log2(n / tile), all keys are read and written about m² / 8 + 3 m / 2 times. On most GPUs, a tile is 4096 keys of 4 bytes. A sort in place then reads and writes 2^28 keys 57 times, and [`sort`](crate::sort) four times |
//! | keys | as for `sort`, by all bits. Equal keys are identical, except for zeros and NaN. Ascending, -0 comes before 0, and NaN are ordered by their bits, negative ones last. Descending reverses this |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | none; on the CPU, a stack per thread |
//! | limits | any n that fits the device |
//!
//! On a GPU this is a bitonic sort (Batcher 1968) that compares in one direction only, so any n works. A comparison has
//! a distance, that of its two keys. A launch compares at four distances, on 16 keys in registers, or at all remaining
//! distances in local memory. The CPU uses a parallel quicksort.

#[doc(hidden)]
pub(crate) mod gpu;

use super::{Key, Order, cpu};
use crate::keys::Keys;
use crate::{Device, Error, Output, Result, runtime::Backend};

/// # Sorts in place
///
/// This method sorts keys in place. Module: [`sort::in_place`](crate::sort::in_place).
impl Device {
    /// Sorts the keys in place, in `order`.
    ///
    /// Takes no memory besides the keys. For large n, this is slower than [`Device::sort`], which takes two more arrays
    /// of n keys. If `keys` is a host slice, a device sorts a copy, and the call waits for the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the order leaves out bits of the keys;
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the order selects bits that the keys do not have.
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

    /// Body of [`Device::sort_in_place`], compiled once per type.
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
            Backend::OpenCl(device) => {
                let data = data.cl(device, true)?;
                gpu::run(device, &keys, &data)?;
                data.finish(device)?;
            }
        }
        Ok(())
    }
}
