//! Gather and scatter on OpenCL devices: the plan, then its launch.

use super::Way;
use crate::{
    Result,
    runtime::{Capabilities, ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning,
};

const TEXT: &str = include_str!("../../../cl/gather.cl");

/// The launch of a gather or scatter of n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) groups: usize,
    pub(crate) work_group: usize,
    /// Neighbours of one item on CPU drivers, else 0.
    pub(crate) run: usize,
    /// Indices before the first aligned one.
    pub(crate) head: usize,
    /// Whether four elements of the line can be moved in words.
    pub(crate) whole: bool,
}

/// The widest unit that divides an element of `size` bytes: its type and its bytes.
pub(in crate::copy) fn unit(size: usize) -> (&'static str, usize) {
    match size.trailing_zeros() {
        0 => ("uchar", 1),
        1 => ("ushort", 2),
        2 => ("uint", 4),
        3 => ("ulong", 8),
        _ => ("uint4", 16),
    }
}

/// The plan for elements of `size` bytes, indices of `index_size`, and the bytes at which indices and line begin.
pub(crate) fn plan(n: usize, size: usize, index_size: usize, begin: [usize; 2], caps: &Capabilities) -> Plan {
    let params = tuning::gather(caps, size);
    let (unit, unit_bytes) = unit(size);
    let program = ProgramSpec::new("gather.cl", TEXT, caps)
        .define("UNIT", unit)
        .define("UNIT_BYTES", unit_bytes)
        .define("PARTS", size / unit_bytes)
        .define("INDEX", if index_size == 4 { "uint" } else { "ulong" })
        .define("INDEX_BYTES", index_size);
    if caps.class == DeviceClass::Cpu {
        let run = n.div_ceil(params.max_groups).max(params.min_run);
        return Plan { program, groups: n.div_ceil(run), work_group: 1, run, head: 0, whole: false };
    }
    let program = program.define("WG", params.work_group).define("VECTORS", params.vectors);
    let head = (begin[0].wrapping_neg() % 16 / index_size).min(n);
    let whole = (begin[1] + head * size).is_multiple_of((4 * size).min(16));
    let groups = ((n - head) / 4).div_ceil(params.work_group * params.vectors).max(1);
    Plan { program, groups, work_group: params.work_group, run: 0, head, whole }
}

/// Enqueues the move between `table` and `line`, and sets `outside`.
pub(super) fn run(
    device: &ClDevice,
    way: Way,
    (size, index_size): (usize, usize),
    table: &ClInput,
    index: &ClInput,
    line: &ClInput,
    outside: &ClInput,
) -> Result<()> {
    device.fill(outside.mem(), outside.byte_offset(), 8, &[0; 8])?;
    let n = index.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities()?;
    let plan = plan(n, size, index_size, [index.byte_offset(), line.byte_offset()], &caps);
    let name = match (way, plan.run) {
        (Way::Gather, 0) => "gather",
        (Way::Scatter, 0) => "scatter",
        (Way::Gather, _) => "gather_runs",
        (Way::Scatter, _) => "scatter_runs",
    };
    let launch = device
        .launch(&plan.program, name)?
        .mem(table.mem())
        .scalar(table.offset() as u64)
        .scalar(table.len() as u64)
        .mem(index.mem())
        .scalar(index.offset() as u64)
        .scalar(n as u64)
        .mem(line.mem())
        .scalar(line.offset() as u64)
        .mem(outside.mem())
        .scalar(outside.offset() as u64);
    let launch = match plan.run {
        0 => launch.scalar(plan.head as u32).scalar(u32::from(plan.whole)),
        run => launch.scalar(run as u64),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

/// Every program of a device with these capabilities, for elements of these sizes.
pub(super) fn programs(caps: &Capabilities, sizes: &[usize]) -> Vec<ProgramSpec> {
    let plans = sizes.iter().flat_map(|&size| [4, 8].map(|index_size| plan(1 << 20, size, index_size, [0, 0], caps)));
    plans.map(|plan| plan.program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_index() {
        for (name, caps) in Capabilities::samples() {
            for n in [1, 3, 4, 255, 257, 1 << 20, (1 << 32) + 1] {
                for (size, index_size) in [(1, 4), (4, 4), (12, 8), (16, 8)] {
                    for begin in [[0, 0], [8, 16], [8, 8]] {
                        let plan = plan(n, size, index_size, begin, &caps);
                        let each = plan.run.max(4 * plan.work_group * tuning::gather(&caps, size).vectors);
                        let edges = if plan.run > 0 { 0 } else { plan.head + 3 };
                        assert!(plan.groups * each + edges >= n, "{name}: {n}");
                        assert!(
                            plan.run > 0 || plan.head == n || (begin[0] + plan.head * index_size).is_multiple_of(16)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn units_divide_elements() {
        for size in 1..=16 {
            let bytes = unit(size).1;
            assert!(size % bytes == 0 && size / bytes % 2 == 1, "{size}: {bytes}");
        }
    }
}
