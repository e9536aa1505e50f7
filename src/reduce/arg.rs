//! Arg-min and arg-max: an extreme element and its index.

use super::{End, Extreme, cpu, statistics};
use crate::{Device, Element, Input, Output, Result, Scratch, Source, runtime::Backend};

/// # Arg-min and arg-max
///
/// These methods return an extreme element and its index. Module: [`reduce`](crate::reduce).
impl Device {
    /// Arg-min: the smallest element and its index.
    ///
    /// Ties yield the lowest index; -0 equals +0. If there is a NaN, the result is the first one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`](crate::ErrorKind::Empty) if there are no elements; else as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let least = Device::best()?.arg_min(&[3, 1, 2, 1])?;
    /// assert_eq!((least.index, least.value), (1, 1));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min<T: Element>(&self, input: impl Source<Item = T>) -> Result<Extreme<T>> {
        self.arg_reduce(input.held(self)?.input(), End::Min)
    }

    /// [`Device::arg_min`] into the single elements of `value` and `index`, which may be on the device.
    ///
    /// Waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an output does not
    /// have exactly one element.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[0.5f32, -1.0, 4.0])?;
    /// let (mut value, mut index) = (device.zeroed::<f32>(1)?, device.zeroed::<u64>(1)?);
    /// device.arg_min_into(&x, &mut value, &mut index)?;
    /// assert_eq!((value.to_vec()?, index.to_vec()?), (vec![-1.0], vec![1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_min_into<'b, 'c, T: Element>(
        &self,
        input: impl Source<Item = T>,
        value: impl Into<Output<'b, T>>,
        index: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.arg_reduce_into(input.held(self)?.input(), End::Min, value.into(), index.into(), &mut Scratch::new())
    }

    /// Arg-max: the largest element and its index.
    ///
    /// Ties yield the lowest index; -0 equals +0. If there is a NaN, the result is the first one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Empty`](crate::ErrorKind::Empty) if there are no elements; else as [`Device::reduce`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let most = Device::best()?.arg_max(&[0.5f32, 2.5, 2.5])?;
    /// assert_eq!((most.index, most.value), (1, 2.5));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max<T: Element>(&self, input: impl Source<Item = T>) -> Result<Extreme<T>> {
        self.arg_reduce(input.held(self)?.input(), End::Max)
    }

    /// [`Device::arg_max`] into the single elements of `value` and `index`, which may be on the device.
    ///
    /// Waits for the result only if an output is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::arg_min_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let (mut value, mut index) = ([0], [0]);
    /// Device::best()?.arg_max_into(&[3u8, 9, 9], &mut value, &mut index)?;
    /// assert_eq!((value, index), ([9], [1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn arg_max_into<'b, 'c, T: Element>(
        &self,
        input: impl Source<Item = T>,
        value: impl Into<Output<'b, T>>,
        index: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        self.arg_reduce_into(input.held(self)?.input(), End::Max, value.into(), index.into(), &mut Scratch::new())
    }

    fn arg_reduce<T: Element>(&self, input: Input<'_, T>, end: End) -> Result<Extreme<T>> {
        let (mut value, mut index) = ([T::ZERO], [0]);
        self.arg_reduce_into(input, end, (&mut value).into(), (&mut index).into(), &mut Scratch::new())?;
        Ok(Extreme { index: index[0] as usize, value: value[0] })
    }

    #[inline(never)]
    fn arg_reduce_into<T: Element>(
        &self,
        input: Input<'_, T>,
        end: End,
        value: Output<'_, T>,
        index: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        value.expect_len(1, end.name())?;
        index.expect_len(1, end.name())?;
        statistics::not_empty(&input, end.name())?;
        match self.backend() {
            Backend::Cpu => {
                let found = cpu::arg_reduce(input.host()?, end)?;
                value.host()?[0] = found.value;
                index.host()?[0] = found.index as u64;
            }
            Backend::OpenCl(device) => {
                statistics::gpu::extremes(device, statistics::gpu::Find::One(end), input, value, index, scratch)?;
            }
        }
        Ok(())
    }
}
