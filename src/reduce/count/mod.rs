//! Counting: how many elements are not zero ([`Device::count`]) or equal a value ([`Device::count_of`]).
//!
//! [`Device::any`] and [`Device::all`] test whether any or all elements are not zero. -0 is zero and equals +0. NaN is
//! not zero and equals no value.
//!
//! | property | |
//! |---|---|
//! | work | one read of the input and one comparison for each element, in `any` and `all` too |
//! | determinism | same bits everywhere: integers |
//! | scratch | 8 bytes for each work-group |
//! | limits | any n that fits the device |
//!
//! Elements are compared as bits, four 4-byte words at once. A comparison with 0 ignores the sign bit of floats, and
//! NaN never matches. For elements of 1 and 2 bytes, a carry into the high bit marks a difference, and the marks are
//! counted (Warren, Hacker's Delight). The work-group that finishes last adds the counts of all work-groups, or a
//! second launch does, as in [`reduce`](crate::reduce).

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::{Device, Element, Input, Output, Result, Scratch, Source, element, runtime::Backend};

/// A question about the elements that differ from `key` in a bit of `mask`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Question {
    /// The bits of an element, repeated over 8 bytes.
    key: u64,
    mask: u64,
    answer: Answer,
}

/// `ANSWER` of `cl/count.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Answer {
    Differing,
    Equal,
    Any,
    All,
}

impl Question {
    fn non_zero<T: Element>(answer: Answer) -> Self {
        let top = 1 << (8 * size_of::<T>() - 1);
        Self { key: 0, mask: repeated::<T>(if T::TYPE.is_float() { !top } else { !0 }), answer }
    }

    fn equal<T: Element>(value: T) -> Self {
        if value.is_nan() {
            return Self { key: 0, mask: 0, answer: Answer::Differing };
        }
        if value == T::ZERO {
            return Self::non_zero::<T>(Answer::Equal);
        }
        Self { key: repeated::<T>(element::bits(value)), mask: !0, answer: Answer::Equal }
    }
}

/// The low bits of `bits`, as many as `T` has, repeated over a word.
fn repeated<T>(bits: u64) -> u64 {
    let size = size_of::<T>();
    let one = bits.to_le_bytes();
    u64::from_le_bytes(std::array::from_fn(|i| one[i % size]))
}

/// # Counts
///
/// These methods count the elements that are not zero, or that equal a value. Module:
/// [`reduce::count`](crate::reduce::count).
impl Device {
    /// The number of elements that are not zero. NaN counts as nonzero, -0 as zero.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if the driver reports an error.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// assert_eq!(Device::best()?.count(&[0.5f32, 0.0, -0.0, f32::NAN])?, 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count<T: Element>(&self, input: impl Source<Item = T>) -> Result<usize> {
        let mut out = [0u64];
        self.count_into(input, &mut out)?;
        Ok(out[0] as usize)
    }

    /// [`Device::count`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `output` does not have
    /// exactly one element.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let mut found = device.zeroed::<u64>(1)?;
    /// device.count_into(&[3u8, 0, 7], &mut found)?;
    /// assert_eq!(found.to_vec()?, [2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count_into<'b, T: Element>(
        &self,
        input: impl Source<Item = T>,
        output: impl Into<Output<'b, u64>>,
    ) -> Result<()> {
        self.answer(
            input.held(self)?.input(),
            Question::non_zero::<T>(Answer::Differing),
            output.into(),
            &mut Scratch::new(),
        )
    }

    /// The number of elements that equal `value`, by `==`: -0 equals +0, and NaN equals no value.
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// assert_eq!(Device::best()?.count_of(&[3, 1, 3, -3], 3)?, 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count_of<T: Element>(&self, input: impl Source<Item = T>, value: T) -> Result<usize> {
        let mut out = [0u64];
        self.count_of_into(input, value, &mut out)?;
        Ok(out[0] as usize)
    }

    /// [`Device::count_of`] into the single element of `output`, which may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::count_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let mut found = [0];
    /// Device::best()?.count_of_into(&[0.0f64, -0.0], 0.0, &mut found)?;
    /// assert_eq!(found, [2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn count_of_into<'b, T: Element>(
        &self,
        input: impl Source<Item = T>,
        value: T,
        output: impl Into<Output<'b, u64>>,
    ) -> Result<()> {
        self.answer(input.held(self)?.input(), Question::equal(value), output.into(), &mut Scratch::new())
    }

    /// Returns whether any element is not zero; `false` for empty input. Always reads all elements.
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// assert!(Device::best()?.any(&[0u8, 0, 4])?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn any<T: Element>(&self, input: impl Source<Item = T>) -> Result<bool> {
        let mut out = [0u8];
        self.any_into(input, &mut out)?;
        Ok(out[0] != 0)
    }

    /// [`Device::any`] into the single element of `output`, as 0 or 1. The output may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::count_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let mut any = [7];
    /// Device::best()?.any_into(&[0i64; 3], &mut any)?;
    /// assert_eq!(any, [0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn any_into<'b, T: Element>(
        &self,
        input: impl Source<Item = T>,
        output: impl Into<Output<'b, u8>>,
    ) -> Result<()> {
        self.answer(input.held(self)?.input(), Question::non_zero::<T>(Answer::Any), output.into(), &mut Scratch::new())
    }

    /// Returns whether all elements are not zero; `true` for empty input. Always reads all elements.
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// assert!(!Device::best()?.all(&[1u8, 0, 4])?);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn all<T: Element>(&self, input: impl Source<Item = T>) -> Result<bool> {
        let mut out = [0u8];
        self.all_into(input, &mut out)?;
        Ok(out[0] != 0)
    }

    /// [`Device::all`] into the single element of `output`, as 0 or 1. The output may be on the device.
    ///
    /// Waits for the result only if `output` is a host slice, or if the input has a [gather](Source::gathered).
    ///
    /// # Errors
    ///
    /// Same as [`Device::count_into`].
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let mut all = [7];
    /// Device::best()?.all_into(&[2i64; 3], &mut all)?;
    /// assert_eq!(all, [1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn all_into<'b, T: Element>(
        &self,
        input: impl Source<Item = T>,
        output: impl Into<Output<'b, u8>>,
    ) -> Result<()> {
        self.answer(input.held(self)?.input(), Question::non_zero::<T>(Answer::All), output.into(), &mut Scratch::new())
    }

    /// Writes the answer to `output`. `R` is `u64` for counts, and `u8` for booleans.
    #[inline(never)]
    fn answer<T: Element, R: Pod + From<u8> + TryFrom<u64>>(
        &self,
        input: Input<'_, T>,
        question: Question,
        output: Output<'_, R>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(1, "count")?;
        match self.backend() {
            Backend::Cpu => {
                let answer = cpu::answer(input.host()?, question)?;
                output.host()?[0] = R::try_from(answer).unwrap_or(R::from(1));
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                gpu::answer(device, question, size_of::<T>(), &input, &output, scratch)?;
                output.finish(device)?;
            }
        }
        Ok(())
    }
}
