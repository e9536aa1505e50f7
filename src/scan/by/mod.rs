//! Scan by a user-defined operator over structs: [`Device::scan`] with an [`Operator`], of whole inputs and of groups.
//!
//! | property | |
//! |---|---|
//! | work | about 3 n operations, two reads of the input |
//! | operator | associative, with an identity: [`Operator`]; it need not be commutative |
//! | determinism | same bits everywhere, if the operator rounds the same in Rust and in OpenCL C and, for floats, if the device keeps subnormals |
//! | scratch | at most two elements for each tile of at most 32 KiB |
//! | limits | structs of 1 to 64 bytes ([`Operator::MAX_BYTES`]), any n that fits the device |
//!
//! A reduction of structs in segments, by key or along axes is such a scan that writes only the last result of each
//! segment. A scan of lines whose elements are not contiguous copies them before the scan, and the results after it.
//!
//! The design is reduce-then-scan, as in [`scan`](crate::scan), with lanes of 8 contiguous elements. The aggregates of a
//! tile's lanes are scanned by Sklansky's tree in local memory, for elements of any size.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use super::{
    Scan,
    gpu::{Start, Starts, scan_any},
    segmented::Segments,
};
use crate::{
    Device, Input, Output, Result, Scratch,
    counted::Firsts,
    op::{Core, Operator},
    runtime::Backend,
};

/// Contiguous elements of a lane; as in `cl/scan_by.cl`.
pub const RUN: usize = 8;

/// The lanes of a tile of elements of `size` bytes, 1 to 64; as in `cl/scan_by.cl`.
pub const fn lanes(size: usize) -> usize {
    match size {
        0..=16 => 256,
        17..=32 => 128,
        _ => 64,
    }
}

impl Device {
    /// All scans of structs, compiled once for each operator. Without `parts`, an exclusive scan may have n + 1
    /// results. Only OpenCL devices read a count.
    #[inline(never)]
    pub(crate) fn scan_structs<T, F>(
        &self,
        op: &Operator<T, F>,
        (input, count): Firsts<'_, T>,
        parts: Option<Segments<'_>>,
        usage: Scan<T>,
        output: Output<'_, T>,
    ) -> Result<()>
    where
        T: Pod + Send + Sync,
        F: Fn(T, T) -> T + Sync,
    {
        op.exactly(usage.determinism)?;
        op.expect_size()?;
        match parts {
            None => usage.expect_outputs(input.len(), &output)?,
            Some(_) => output.expect_len(input.len(), "scan in segments")?,
        }
        match (self.backend(), parts) {
            (Backend::Cpu, None) => cpu::scan(op, input.host()?, &|_, _| {}, usage, output.host()?),
            (Backend::Cpu, Some(Segments::Cpu(mark))) => cpu::scan(op, input.host()?, &*mark, usage, output.host()?),
            (Backend::OpenCl(device), parts) => {
                let (heads, starts) = match parts {
                    Some(Segments::Cl(heads, starts)) => (Some(heads), starts),
                    _ => (None, Starts::None),
                };
                let form = gpu::Form::of(op, usage.reversed, heads);
                let (start, scratch) = (Start::of_struct(op.identity, usage), &mut Scratch::new());
                let input = (input.any(), starts);
                scan_any(device, &form, &start, input, count, output.any(), scratch)
            }
            (Backend::Cpu, Some(Segments::Cl(..))) => unreachable!("the same device made the segments"),
        }
    }

    /// Writes the aggregate of each segment. `parts` are offsets or rows on an OpenCL device.
    pub(crate) fn reduce_structs_of<T: Pod, F: Fn(T, T) -> T>(
        &self,
        op: &Operator<T, F>,
        input: Input<'_, T>,
        parts: Segments<'_>,
        output: Output<'_, T>,
    ) -> Result<()> {
        op.expect_size()?;
        let (Backend::OpenCl(device), Segments::Cl(heads, starts)) = (self.backend(), parts) else {
            unreachable!("the CPU backend takes the last results of a scan")
        };
        let form = gpu::Form::of(op, false, Some(heads));
        let start = Start::of_struct(op.identity, Scan::inclusive());
        gpu::reduce_segments(device, &form, &start, (input.any(), starts), output.any())
    }
}
