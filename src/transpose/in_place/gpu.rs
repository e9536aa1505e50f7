//! Transposition in place on OpenCL devices: the plan, then its launches.

use super::Steps;
use crate::{
    Result, Scratch,
    runtime::{
        Capabilities, ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, Launch},
    },
    tuning,
};

const TEXT: &str = include_str!("../../../cl/transpose_in_place.cl");

/// What every launch on a matrix of `n` columns has in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) work_group: usize,
    /// Side of a square matrix's tiles.
    pub(crate) side: usize,
    pub(crate) max_groups: usize,
    /// Elements of an item of a strip; 0 where the strip is shared out among few items.
    pub(crate) each: usize,
    pub(crate) wide: bool,
}

pub(crate) fn plan(cells: usize, size: usize, caps: &Capabilities, wide: impl Fn(usize) -> bool) -> Plan {
    let wide = wide(cells);
    let unit = tuning::unit(size);
    let params = tuning::in_place(caps, size);
    let program = ProgramSpec::new("transpose_in_place.cl", TEXT, caps)
        .define("UNIT", tuning::unit_type(unit))
        .define("UNITS", size / unit)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("WG", params.work_group)
        .define("SIDE", params.side);
    let each = if caps.class == DeviceClass::Cpu { 0 } else { 4 };
    Plan { program, work_group: params.work_group, side: params.side, max_groups: params.max_groups, each, wide }
}

impl Plan {
    /// The groups of a strip of so many elements, and the elements of an item.
    fn share(&self, cells: usize) -> (usize, usize) {
        let each = if self.each > 0 { self.each } else { cells.div_ceil(self.max_groups) };
        (cells.div_ceil(self.work_group * each), each)
    }
}

pub(super) fn transpose(
    device: &ClDevice,
    data: &ClInput,
    (rows, cols): (usize, usize),
    size: usize,
    scratch: &mut Scratch,
) -> Result<()> {
    if rows <= 1 || cols <= 1 {
        return Ok(());
    }
    let plan = plan(rows * cols, size, &*device.capabilities()?, |n| device.tuning().wide(n));
    if rows == cols {
        square(device, &plan, data, rows)
    } else {
        rectangle(device, &plan, data, &Steps::new(rows, cols), size, scratch)
    }
}

fn square(device: &ClDevice, plan: &Plan, data: &ClInput, n: usize) -> Result<()> {
    let tiles = n.div_ceil(plan.side);
    let pairs = tiles * (tiles + 1) / 2;
    let runs = plan.each == 0;
    let launch = device
        .launch(&plan.program, if runs { "turn_pairs" } else { "swap_tiles" })?
        .mem(data.mem())
        .scalar(data.offset() as u64)
        .offset(n as u64, plan.wide);
    let (launch, groups) = if runs {
        let run = pairs.div_ceil(plan.max_groups);
        (launch.offset(run as u64, plan.wide), pairs.div_ceil(run))
    } else {
        (launch, pairs.min(plan.max_groups))
    };
    launch.run([groups, 1, 1], [plan.work_group, 1, 1])
}

fn rectangle(
    device: &ClDevice,
    plan: &Plan,
    data: &ClInput,
    steps: &Steps,
    size: usize,
    scratch: &mut Scratch,
) -> Result<()> {
    let &Steps { m, n, c, a, b, inverse } = steps;
    let bytes = steps.scratch(size);
    let scratch = scratch.cl(device, bytes)?;
    let (wide, cells) = (plan.wide, bytes / size);
    let offset = |launch: Launch<'_>, numbers: &[usize]| {
        numbers.iter().fold(launch, |launch, &number| launch.offset(number as u64, wide))
    };
    let start = |name: &'static str, cells: usize, each: usize| -> Result<Launch<'_>> {
        let launch = device.launch(&plan.program, name)?.mem(data.mem()).scalar(data.offset() as u64).mem(scratch);
        Ok(offset(launch, &[cells, each]))
    };
    let columns = |rotate: bool| -> Result<()> {
        let strip = (cells / m).min(n);
        for first in (0..n).step_by(strip) {
            let width = strip.min(n - first);
            let (groups, each) = plan.share(m * width);
            let (grid, group) = ([groups, 1, 1], [plan.work_group, 1, 1]);
            offset(start("stage", m * width, each)?, &[n, first, width]).run(grid, group)?;
            let launch = offset(start("turn_columns", m * width, each)?, &[n, first, width, m, a, b]);
            launch.scalar(u32::from(rotate)).run(grid, group)?;
        }
        Ok(())
    };
    if c > 1 {
        columns(true)?;
    }
    let strip = (cells / n).min(m);
    for first in (0..m).step_by(strip) {
        let height = strip.min(m - first);
        let (groups, each) = plan.share(height * n);
        device.copy((data.mem(), data.byte_offset() + first * n * size), (scratch, 0), height * n * size)?;
        let launch = offset(start("turn_rows", height * n, each)?, &[n, first, m, b, c, inverse]);
        launch.run([groups, 1, 1], [plan.work_group, 1, 1])?;
    }
    columns(false)
}

/// The programs of a device, for compile-only checks.
pub(crate) fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
    let of_size = |size| [false, true].map(|wide| plan(100, size, caps, |_| wide).program);
    [1, 3, 4, 12, 16].into_iter().flat_map(of_size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_whole_rounds_of_the_group() {
        for (name, caps) in Capabilities::samples() {
            for size in 1..=16 {
                for local_bytes in [1024, 4096, caps.local_bytes] {
                    let plan = plan(1 << 20, size, &Capabilities { local_bytes, ..caps.clone() }, |_| false);
                    assert!((plan.side * plan.side).is_multiple_of(plan.work_group), "{name}: {size}");
                }
            }
        }
    }
}
