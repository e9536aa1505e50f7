//! Partitions: the elements that meet a condition, then the others, each in their order. Two conditions make three
//! parts.
//!
//! Work, scratch and limits are those of [`select`](crate::select). The input is read twice, since the offset of the
//! second part is known only when all elements are counted. With decoupled look-back, an
//! [`UnstableTail`](crate::op::UnstableTail) needs one read: it is written backwards from the end of the output, as CUB
//! does.
//!
//! The lengths of all parts but the last are a separate output.

use std::ops::Range;

use bytemuck::Pod;

use super::{Selectable, cpu, expect_values, gpu};
use crate::{
    Buffer, Device, Output, Result, Scratch,
    counted::{Firsts, on_device},
    op::{Condition, Counts, ForPartitions},
    runtime::{Backend, apart},
    source::Testable,
};

/// # Partitions
///
/// These methods return the selected elements first, then the others. Module:
/// [`select::partition`](crate::select::partition).
impl Device {
    /// Partition: the elements that meet a condition, then the others, and the length of the first part. Waits for the
    /// length.
    ///
    /// A pair of conditions makes three parts, and the call returns the lengths of the first two. The first part has
    /// the elements that meet the first condition. The second part has the other elements that meet the second
    /// condition, and the third part has the rest. Both conditions are evaluated for every element. Conditions may capture
    /// values, as in [`Device::select`].
    ///
    /// With [`UnstableTail`](crate::op::UnstableTail), the other elements are in reversed order. On GPUs this is
    /// faster, since the input is read once. [Values with flags](crate::Source::flagged) have two parts, each in its
    /// order. [Segments](crate::Source::segments) are partitioned separately, and the call returns a buffer of the lengths
    /// of their first parts: see [`segmented`](super::segmented).
    ///
    /// # Errors
    ///
    /// Same as [`Device::select`].
    ///
    /// ```
    /// use oclprim::{Device, Source, op::{Map, NonZero}};
    ///
    /// let device = Device::best()?;
    /// let negative = Map::new(|x: i32| x < 0, "x < 0");
    /// let (partitioned, count) = device.partition(&[3, -1, 4, -1, -5], &negative)?;
    /// assert_eq!((partitioned.to_vec()?, count), (vec![-1, -1, -5, 3, 4], 3));
    /// let (partitioned, counts) = device.partition(&[3, 0, -1, 0, 4], (&negative, NonZero))?;
    /// assert_eq!((partitioned.to_vec()?, counts), (vec![-1, 3, 4, 0, 0], [1, 2]));
    /// let (partitioned, count) = device.partition([5u32, 6, 7].flagged(&[0u8, 1, 1]), NonZero)?;
    /// assert_eq!((partitioned.to_vec()?, count), (vec![6, 7, 5], 2));
    /// let (partitioned, counts) = device.partition([3, -1, 4, -5].segments(&[0u32, 2, 4]), &negative)?;
    /// assert_eq!((partitioned.to_vec()?, counts.to_vec()?), (vec![-1, 3, -5, 4], vec![1, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn partition<I: Selectable<C>, C: Condition<I::Tested, Use: ForPartitions>>(
        &self,
        input: I,
        what: C,
    ) -> Result<I::Partitioned<C::Counts>> {
        input.partition(self, &what)
    }

    /// A buffer for `n` elements and the lengths of parts, which `partition` writes.
    pub(super) fn parts<T: Pod, N: Counts>(
        &self,
        n: usize,
        partition: impl FnOnce((Output<'_, T>, Output<'_, u64>)) -> Result<()>,
    ) -> Result<(Buffer<T>, N)> {
        let (mut output, mut counts) = (self.uninit(n)?, [0u64; 2]);
        partition((Output::from(&mut output), Output::from(&mut counts[..N::PARTS - 1])))?;
        Ok((output, N::of(&counts)))
    }

    /// [`Device::partition`] into a slice, buffer or view of the same length. `counts` has the lengths of all parts but the
    /// last. For segments it has the length of the first part of each.
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](crate::Source::gathered).
    /// For the first elements [by a count](crate::Source::take), the output has the length of the whole source. Its
    /// elements from the count on do not change.
    ///
    /// # Errors
    ///
    /// Same as [`Device::partition`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if the lengths
    /// differ, or if arguments overlap in imported OpenCL memory. The same error if `counts` has the wrong length: it
    /// needs one element, two for three parts, or one for each segment.
    ///
    /// ```
    /// use oclprim::{Device, op::Map};
    ///
    /// let device = Device::best()?;
    /// let odd = Map::new(|x: u8| x % 2 == 1, "x % 2 == 1");
    /// let (mut partitioned, mut count) = (device.zeroed::<u8>(4)?, device.zeroed::<u64>(1)?);
    /// device.partition_into(&[4u8, 7, 2, 1], &odd, &mut partitioned, &mut count)?;
    /// assert_eq!((partitioned.to_vec()?, count.to_vec()?), (vec![7, 1, 4, 2], vec![2]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn partition_into<'b, 'c, I: Selectable<C>, C: Condition<I::Tested, Use: ForPartitions>>(
        &self,
        input: I,
        what: C,
        output: impl Into<Output<'b, I::Item>>,
        counts: impl Into<Output<'c, u64>>,
    ) -> Result<()> {
        input.partition_into(self, &what, (output.into(), counts.into()))
    }

    /// Writes each element to its part.
    #[inline(never)]
    pub(super) fn part<T: Testable, C: Condition<T>>(
        &self,
        (input, length): Firsts<'_, T>,
        what: &C,
        output: Output<'_, T>,
        counts: Output<'_, u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        output.expect_len(input.len(), "a partition")?;
        counts.expect_len(C::Counts::PARTS - 1, "a partition's list of counts")?;
        expect_values::<T>()?;
        match self.backend() {
            Backend::Cpu => {
                let input = input.host()?;
                let items = |part: Range<usize>| input[part].iter().map(|&x| (what.part(x), x));
                let output = output.host()?;
                let found = if C::Counts::PARTS == 3 {
                    let [first, second, _] = cpu::parted::<_, _, _, 3>(input.len(), &items, &|x| x, &mut *output)?;
                    [first, second]
                } else {
                    cpu::parted::<_, _, _, 2>(input.len(), &items, &|x| x, &mut *output)?
                };
                if C::LOOSE {
                    self.reverse_in_place(&mut output[found[0]..])?;
                }
                counts.host()?.iter_mut().zip(found).for_each(|(count, total)| *count = total as u64);
                Ok(())
            }
            Backend::OpenCl(_) if const { T::ELEMENT.is_none() } => {
                let form = gpu::Form { reversed: C::LOOSE, ..gpu::Form::of_values(size_of::<T>(), C::Counts::PARTS) };
                self.move_structs(&form, (input, length), what, output, counts)
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, length.is_some())?);
                let counts = counts.cl(device, false)?;
                apart(&[&input], &[&output, &counts])?;
                let length = on_device(device, length, &[&output, &counts])?;
                let form =
                    gpu::Form { classes: C::Counts::PARTS, reversed: C::LOOSE, ..gpu::Form::of(gpu::Marks::by(what)) };
                let job = gpu::Job { out: Some(&output), length: length.as_ref(), ..gpu::Job::of(&input, &counts) };
                gpu::run(device, &form, &job, scratch)?;
                counts.finish(device)?;
                output.finish(device)
            }
        }
    }
}
