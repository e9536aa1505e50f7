//! Union, intersection and difference of sorted ranges: [`Device::set_operation`].
//!
//! | property | |
//! |---|---|
//! | work | two reads of each element, one write of each kept element; one more read if runs of equal elements fill whole tiles |
//! | elements, order | as for [`merge`](crate::merge) |
//! | equal elements | an element may occur m times in the first range and n times in the second. In the union it then occurs max(m, n) times, in the intersection min(m, n). In the difference it occurs max(m - n, 0) times, in the symmetric difference \|m - n\|. This is the rule of C++'s `std::set_union` and the other set algorithms |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | 16 or 32 bytes per tile |
//! | limits | any n that fits the device |
//!
//! The tiles are those of [`merge`](crate::merge). Equal elements of a range have ranks 0, 1, and so on. An element is
//! matched if the other range has an equal element of the same rank; the operation keeps or drops matched elements.
//! Binary searches and the steps of the merge find the match, so a tile may begin anywhere in a run of equals. The kept
//! elements are counted first, then written.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::form;
use crate::{Buffer, Device, Input, Output, Result, Scratch, counted::in_room, op::Compare, runtime::Backend};

/// A set operation on two sorted multisets. If an element occurs m times in a range and n times in the other, its last
/// `max(m - n, 0)` occurrences are the surplus.
///
/// ```
/// use oclprim::{Device, Order, SetOp};
///
/// let device = Device::best()?;
/// let (a, b) = (device.upload(&[1u8, 2, 2, 2, 5])?, device.upload(&[2u8, 2, 3])?);
/// let kept = |op| device.set_operation(&a, &b, op, Order::ascending())?.to_vec();
/// assert_eq!(kept(SetOp::Union)?, [1, 2, 2, 2, 3, 5]);
/// assert_eq!(kept(SetOp::Intersection)?, [2, 2]);
/// assert_eq!(kept(SetOp::Difference)?, [1, 2, 5]);
/// assert_eq!(kept(SetOp::SymmetricDifference)?, [1, 2, 3, 5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOp {
    /// All elements of the first range, and the surplus of the second.
    Union,
    /// The elements of the first range without its surplus: the first `min(m, n)` of its m equal elements.
    Intersection,
    /// The surplus of the first range.
    Difference,
    /// The surplus of the first range, and that of the second.
    SymmetricDifference,
}

impl SetOp {
    /// All operations.
    ///
    /// ```
    /// use oclprim::{Device, Order, SetOp};
    ///
    /// let device = Device::best()?;
    /// for op in SetOp::ALL {
    ///     let kept = device.set_operation(&[1, 2], &[2, 3], op, Order::ascending())?;
    ///     println!("{}: {:?}", op.name(), kept.to_vec()?);
    /// }
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const ALL: [Self; 4] = [Self::Union, Self::Intersection, Self::Difference, Self::SymmetricDifference];

    /// The operation's name, such as `union`.
    ///
    /// ```
    /// assert_eq!(oclprim::SetOp::SymmetricDifference.name(), "symmetric difference");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Union => "union",
            Self::Intersection => "intersection",
            Self::Difference => "difference",
            Self::SymmetricDifference => "symmetric difference",
        }
    }
}

/// # Set operations
///
/// These methods return the union, intersection or difference of two sorted ranges. Module:
/// [`merge::set`](crate::merge::set).
impl Device {
    /// The union, intersection, difference or symmetric difference of two sorted ranges, sorted. Waits for the number
    /// of elements; [`Device::set_operation_into`] need not.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`].
    ///
    /// ```
    /// use oclprim::{Device, SetOp, op::Less};
    ///
    /// let by_tens = Less::new("by tens", |a: &u32, b: &u32| a / 10 < b / 10, "a / 10 < b / 10");
    /// let common = Device::best()?.set_operation(&[11, 25, 31], &[20, 33, 34], SetOp::Intersection, &by_tens)?;
    /// assert_eq!(common.to_vec()?, [25, 31]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn set_operation<'a, 'b, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        a: impl Into<Input<'a, T>>,
        b: impl Into<Input<'b, T>>,
        op: SetOp,
        order: C,
    ) -> Result<Buffer<T>> {
        self.set_operation_one(op, a.into(), b.into(), &order)
    }

    /// Body of [`Device::set_operation`], compiled once per type and order.
    #[inline(never)]
    fn set_operation_one<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        op: SetOp,
        a: Input<'_, T>,
        b: Input<'_, T>,
        order: &C,
    ) -> Result<Buffer<T>> {
        match self.backend() {
            Backend::Cpu => {
                let kept = cpu::kept(op, a.host()?, b.host()?, &order.function()?)?;
                let mut output = self.uninit(kept.iter().map(Vec::len).sum())?;
                fill(&kept, Output::from(&mut output).host()?);
                Ok(output)
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                let (a, b, mut scratch) = (a.cl(device)?, b.cl(device)?, Scratch::new());
                if a.len() + b.len() == 0 {
                    return self.uninit(0);
                }
                let mut count = self.uninit::<u64>(1)?;
                let mut run = gpu::Run::new(op, device, &form, [&a, &b], &mut scratch)?;
                run.count(&*Output::from(&mut count).cl(device, false)?)?;
                let mut output = self.uninit(count.to_vec()?[0] as usize)?;
                run.write(&*Output::from(&mut output).cl(device, false)?)?;
                Ok(output)
            }
        }
    }

    /// [`Device::set_operation`] into a slice, buffer or view. The single element of `count` becomes the number of
    /// kept elements. Elements of `output` beyond that number do not change.
    ///
    /// If `output` is too short, it receives the first kept elements, and nothing is written beyond its end. If `count`
    /// is a host slice, the call waits and returns an error in this case. Otherwise the caller compares `count` with
    /// the length later.
    ///
    /// # Errors
    ///
    /// Same as [`Device::merge`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `count` does not
    /// have one element, or two arguments overlap in imported OpenCL memory. The same error if `count` is a host slice
    /// and `output` is too short.
    ///
    /// ```
    /// use oclprim::{Device, Order, SetOp};
    ///
    /// let device = Device::best()?;
    /// let (mut out, mut count) = (device.filled(4, 9u32)?, device.zeroed::<u64>(1)?);
    /// let order = Order::ascending();
    /// device.set_operation_into(&[1, 3, 5], &[3], SetOp::Difference, &order, &mut out, &mut count)?;
    /// assert_eq!((out.to_vec()?, count.to_vec()?), (vec![1, 5, 9, 9], vec![2]));
    ///
    /// let (mut out, mut count) = ([0u32; 2], [0u64]);
    /// let short = device.set_operation_into(&[1, 3, 5], &[4], SetOp::Union, &order, &mut out, &mut count);
    /// assert_eq!(short.unwrap_err().to_string(), "the union has 4 elements, the output has room for 2");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn set_operation_into<'a, 'b, 'c, 'd, T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        a: impl Into<Input<'a, T>>,
        b: impl Into<Input<'b, T>>,
        op: SetOp,
        order: C,
        output: impl Into<Output<'c, T>>,
        count: impl Into<Output<'d, u64>>,
    ) -> Result<()> {
        let output = output.into();
        in_room(op.name(), output.len(), count.into(), |count| {
            self.set_operation_to(op, [a.into(), b.into()], output, count, &order, &mut Scratch::new())
        })
    }

    /// Writes the elements that fit `output`, and sets `count`; compiled once per type and order.
    #[inline(never)]
    fn set_operation_to<T: Pod + Send + Sync, C: Compare<T>>(
        &self,
        op: SetOp,
        [a, b]: [Input<'_, T>; 2],
        output: Output<'_, T>,
        count: Output<'_, u64>,
        order: &C,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self.backend() {
            Backend::Cpu => {
                let kept = cpu::kept(op, a.host()?, b.host()?, &order.function()?)?;
                count.host()?[0] = kept.iter().map(Vec::len).sum::<usize>() as u64;
                fill(&kept, output.host()?);
                Ok(())
            }
            Backend::OpenCl(device) => {
                let form = form(order, 0)?;
                let (a, b) = (a.cl(device)?, b.cl(device)?);
                let (to, count) = (output.cl(device, true)?, count.cl(device, false)?);
                crate::runtime::apart(&[&a, &b], &[&to, &count])?;
                if a.len() + b.len() == 0 {
                    device.fill(count.mem(), count.byte_offset(), 8, &[0])?;
                } else {
                    let mut run = gpu::Run::new(op, device, &form, [&a, &b], scratch)?;
                    run.count(&count)?;
                    run.write(&to)?;
                }
                to.finish(device)?;
                count.finish(device)
            }
        }
    }
}

/// Copies the parts one after another until `output` is full.
fn fill<T: Copy>(parts: &[Vec<T>], output: &mut [T]) {
    let mut rest = output;
    for part in parts {
        let (to, more) = rest.split_at_mut(part.len().min(rest.len()));
        to.copy_from_slice(&part[..to.len()]);
        rest = more;
    }
}
