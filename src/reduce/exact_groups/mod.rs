//! Exact sums by groups: of each segment, along an axis, of each run of equal keys.
//!
//! A group is a line in memory: a first element, a stride and a length. Its sum is that of [`exact`](crate::exact),
//! with the same rules for special values. The empty group has the sum +0. A mean is the sum divided by the length,
//! rounded once; the empty group has the mean NaN.
//!
//! # On a device
//!
//! A team of work-items takes a group, and its work-items take chunks of it. These three steps need only registers:
//!
//! 1. Each work-item adds its elements to a partial, without an error, or finds that they do not fit.
//! 2. The partials of the team are added as a tree, without an error, or do not fit.
//! 3. One work-item rounds the partial of the group with integers, and stores the result.
//!
//! A partial is one of two things. The tuning parameter `exact_f64` chooses.
//!
//! - **Two `f64`**, s + e. TwoSum adds a number to s, and its error to e. If the second addition has an error too, the
//!   number does not fit. A chunk of 2^k elements of `f32` is first added up in one `f64`. That sum is exact if the
//!   exponents of the chunk differ by at most 53 - 24 - k: see [`exact`](crate::exact#sums-of-chunks). So the test
//!   costs one subtraction for each chunk.
//! - **Integers**: digits in a window. Digit k has the weight 2^(32 k) above the bit position `low`, which the team
//!   derives from its first chunk. Numbers outside of the window do not fit.
//!
//! In most data, nearly all groups fit; in some, nearly none do. A group that does not fit gets an accumulator in local
//! memory. The work-group takes as many of these groups at once as have room, reads their elements again, and adds each
//! element with integers. So the slow path needs no second launch.
//!
//! **Long groups** are divided into parts, so that a few of them still fill the device. The sum
//! of a part is in an accumulator in local memory. It is added to the group's accumulator in global memory. A last
//! launch rounds the accumulators in global memory. The lengths of segments are on the device, so the first launch
//! lists the parts of long segments there. Without long ones, the other launches find an empty list.
//!
//! **Products** are exact integers, so their partials are always integers. A group has a first element and a stride for
//! each factor.
//!
//! **Along an axis**, neighbouring outputs may lie closer together in memory than neighbours on the axis. Neighbouring
//! work-items then take neighbouring outputs, and a team is a column of the work-group.

pub use crate::op::Exact;

impl Exact {
    /// The divisor of the sum of `len` elements.
    pub(crate) fn divisor(self, len: usize) -> u64 {
        match self {
            Self::Sum => 1,
            Self::Mean => len as u64,
        }
    }
}

pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
