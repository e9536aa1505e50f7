//! Long rows on GPUs that do not lie alike within 16-byte words: each by its own words, as other copies.

use crate::{
    Result,
    copy::ranges,
    permute::job::{Axis, Job},
    runtime::{Capabilities, ClInput, DeviceClass, opencl::ClDevice},
};

/// Shorter rows leave most of a work-group idle.
const MIN_ROW: usize = 2048;
/// The most axes that the kernel takes.
const MAX_AXES: usize = 8;

/// Rows to be copied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    plan: ranges::gpu::Plan,
    /// Bytes of a row, and its tiles.
    bytes: usize,
    tiles: usize,
    rows: usize,
    /// The axes of rows, the innermost first: length, and bytes to the next.
    axes: Vec<(usize, isize, isize)>,
}

impl Rows {
    /// The rows of `job`, whose buffers' first elements are at the bytes `bases`, where they are worth it.
    pub(crate) fn of(job: &Job, bases: [usize; 2], caps: &Capabilities) -> Option<Self> {
        let (&Axis { n, from: 1, to: 1 }, outer) = job.axes.split_last()? else { return None };
        let bytes = n * job.size;
        let alike = || job.clone().widened(bases).size == Job::MAX_BYTES;
        if caps.class == DeviceClass::Cpu || bytes < MIN_ROW || outer.len() > MAX_AXES || alike() {
            return None;
        }
        let plan = ranges::gpu::plan(caps);
        let size = job.size as isize;
        let axes: Vec<_> = outer.iter().rev().map(|axis| (axis.n, axis.from * size, axis.to * size)).collect();
        let rows = outer.iter().map(|axis| axis.n).product();
        Some(Self { tiles: bytes.div_ceil(plan.tile), plan, bytes, rows, axes })
    }
}

/// Enqueues the copy of `rows`, of which the first lies at these bytes of the buffers.
pub(crate) fn copy(device: &ClDevice, rows: &Rows, input: (&ClInput, usize), output: (&ClInput, usize)) -> Result<()> {
    let mut axes = [[1u64; 8], [0; 8], [0; 8]];
    for (i, &(n, from, to)) in rows.axes.iter().enumerate() {
        (axes[0][i], axes[1][i], axes[2][i]) = (n as u64, from as u64, to as u64);
    }
    device
        .launch(&rows.plan.program, "copy_rows")?
        .mem(input.0.mem())
        .scalar(input.1 as u64)
        .mem(output.0.mem())
        .scalar(output.1 as u64)
        .scalar(rows.bytes as u64)
        .scalar(rows.tiles as u32)
        .scalar(rows.axes.len() as u32)
        .scalar(axes[0])
        .scalar(axes[1])
        .scalar(axes[2])
        .run([rows.rows * rows.tiles, 1, 1], [rows.plan.work_group, 1, 1])
}
