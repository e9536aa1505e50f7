//! Strided copies of long rows on GPUs, unless all rows begin and end at multiples of 16 bytes on both sides. Each row
//! is copied like a range of [`copy`](crate::Device::copy): in 16-byte words that are aligned in the row's destination.

use crate::{
    Result,
    layout::{
        copy::ranges::gpu as ranges,
        permute::job::{Axis, Job},
    },
    runtime::{ClInput, DeviceClass, opencl::ClDevice},
    tuning::Tuned,
};

/// Minimum bytes of a row: in shorter rows, the bytes at the edges would cost too much.
const MIN_ROW: usize = 256;
/// Minimum work-items per row.
const MIN_LANES: usize = 8;
/// Maximum number of axes that the kernel takes.
const MAX_AXES: usize = 8;
/// Maximum number of tiles, including those that pad the last work-group, so that 32-bit counters hold it.
const MAX_TILES: usize = 1 << 31;

/// The rows of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    plan: ranges::Plan,
    /// Bytes of a row, tiles of a row, and work-items of a tile.
    bytes: usize,
    tiles: usize,
    lanes: usize,
    rows: usize,
    /// The axes of rows, the innermost first: length, and bytes between neighbours in source and destination.
    axes: Vec<(usize, isize, isize)>,
}

impl Rows {
    /// The rows of `job`; `None` if it is not faster to copy each row in words that are aligned for this row. `bases`
    /// has the byte offsets of the buffers' first elements.
    pub fn of(job: &Job, bases: [usize; 2], caps: &Tuned) -> Option<Self> {
        let (&Axis { n, from: 1, to: 1 }, outer) = job.axes.split_last()? else { return None };
        let bytes = n * job.size;
        let alike = || job.clone().widened(bases).size == Job::MAX_BYTES;
        if caps.class == DeviceClass::Cpu || bytes < MIN_ROW || outer.len() > MAX_AXES || alike() {
            return None;
        }
        let plan = ranges::plan(caps);
        let lane_bytes = plan.tile / plan.work_group;
        let lanes = bytes.div_ceil(lane_bytes).next_power_of_two().max(MIN_LANES).min(plan.work_group);
        let size = job.size as isize;
        let axes: Vec<_> = outer.iter().rev().map(|axis| (axis.n, axis.from * size, axis.to * size)).collect();
        let (rows, tiles) = (outer.iter().map(|axis| axis.n).product::<usize>(), bytes.div_ceil(lanes * lane_bytes));
        let all = rows.checked_mul(tiles)?.checked_next_multiple_of(plan.work_group / lanes)?;
        (all <= MAX_TILES).then_some(Self { plan, bytes, tiles, lanes, rows, axes })
    }

    fn groups(&self) -> usize {
        (self.rows * self.tiles).div_ceil(self.plan.work_group / self.lanes)
    }
}

/// Enqueues the copy of `rows`; the first row is at the given byte offsets of the buffers.
pub fn copy(device: &ClDevice, rows: &Rows, input: (&ClInput, usize), output: (&ClInput, usize)) -> Result<()> {
    let (mut lengths, mut from, mut to) = ([1u32; MAX_AXES], [0i64; MAX_AXES], [0i64; MAX_AXES]);
    for (i, axis) in rows.axes.iter().enumerate() {
        (lengths[i], from[i], to[i]) = (axis.0 as u32, axis.1 as i64, axis.2 as i64);
    }
    device
        .launch(&rows.plan.program, "copy_rows")?
        .mem(input.0.mem())
        .scalar(input.1 as u64)
        .mem(output.0.mem())
        .scalar(output.1 as u64)
        .scalar(rows.bytes as u64)
        .scalar(rows.rows as u32)
        .scalar(rows.tiles as u32)
        .scalar(rows.lanes.ilog2())
        .scalar(rows.axes.len() as u32)
        .scalar(lengths)
        .scalar(from)
        .scalar(to)
        .run([rows.groups(), 1, 1], [rows.plan.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_row() {
        for (name, caps) in Tuned::samples() {
            for bytes in [255, 256, 300, 2048, 5000, 20_000, 1 << 20, (1 << 32) + 1] {
                let pitch = bytes as isize + 1;
                let axes = vec![Axis { n: 77, from: pitch, to: pitch }, Axis { n: bytes, from: 1, to: 1 }];
                let rows = Rows::of(&Job { size: 1, axes, from: 0, to: 0 }, [0, 0], &caps);
                let Some(rows) = rows else {
                    assert!(caps.class == DeviceClass::Cpu || bytes < MIN_ROW, "{name}: {bytes}");
                    continue;
                };
                let Rows { plan, tiles, lanes, .. } = &rows;
                assert!(tiles * lanes * (plan.tile / plan.work_group) >= bytes, "{name}: {bytes}");
                assert!(rows.groups() * (plan.work_group / lanes) >= 77 * tiles, "{name}: {bytes}");
                assert!(lanes.is_power_of_two() && *lanes <= plan.work_group, "{name}: {lanes}");
            }
        }
    }
}
