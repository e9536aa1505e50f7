//! Transposition in place on OpenCL devices: the plan, then its launches.

use super::{Steps, scratch_bytes};
use crate::{
    Result, Scratch,
    layout::transpose::gpu::{self as apart, Shape},
    runtime::{
        ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("transpose_in_place.cl");
/// Rows per work-item in a strip, as in `cl/transpose_in_place.cl`.
const EACH: usize = 8;

/// The common part of all launches on a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub class: DeviceClass,
    pub params: tuning::InPlace,
    pub wide: bool,
}

/// The work-groups of a launch, and the kernel's last argument.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Share {
    /// Rows, or pairs of tiles, per work-item.
    Run { groups: usize, run: usize },
    /// Binary logarithm of the columns per work-group.
    Columns { groups: usize, log: u32 },
}

pub fn plan(cells: usize, size: usize, caps: &Tuned, wide: impl Fn(usize) -> bool) -> Plan {
    let wide = wide(cells);
    let unit = tuning::unit(size);
    let params = tuning::in_place(caps, size);
    let program = ProgramSpec::new("transpose_in_place.cl", TEXT, caps)
        .define("UNIT", tuning::unit_type(unit))
        .define("UNIT_BYTES", unit)
        .define("UNITS", size / unit)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("WG", params.work_group)
        .define("TILE_SIDE", params.tile_side);
    let program =
        if params.block > 0 { program.define("BLOCK", params.block).define("SIDE", params.side) } else { program };
    Plan { program, class: caps.class, params, wide }
}

impl Plan {
    /// Contiguous runs of rows, or of pairs of tiles.
    fn runs(&self, n: usize) -> Share {
        let run = n.div_ceil(self.params.max_groups);
        Share::Run { groups: n.div_ceil(run), run }
    }

    /// The work-groups of a strip.
    fn strip(&self, rows: usize, width: usize) -> Share {
        if self.class == DeviceClass::Cpu {
            return self.runs(rows);
        }
        let log = width.next_power_of_two().min(self.params.work_group).ilog2();
        let (lanes, down) = (1 << log, (self.params.work_group >> log) * EACH);
        Share::Columns { groups: width.div_ceil(lanes) * rows.div_ceil(down), log }
    }

    /// The side of a square's tiles, and the kernel that swaps pairs of them.
    fn square(&self, n: usize, first_byte: usize, size: usize) -> (usize, &'static str) {
        let tuning::InPlace { block, side, tile_side, .. } = self.params;
        if self.class == DeviceClass::Cpu {
            (tile_side, "turn_pairs")
        } else if block > 0 && n.is_multiple_of(block) && first_byte.is_multiple_of(block * size) {
            (block * side, "swap_blocks")
        } else {
            (tile_side, "swap_tiles")
        }
    }
}

pub(crate) fn transpose(
    device: &ClDevice,
    data: &ClInput,
    (rows, cols): (usize, usize),
    size: usize,
    strip: usize,
    scratch: &mut Scratch,
) -> Result<()> {
    if rows <= 1 || cols <= 1 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Transpose, size, rows * cols)?;
    let plan = plan(rows * cols, size, &caps, |n| device.wide(n));
    if rows == cols {
        return square(device, &plan, data, rows, size);
    }
    let scratch = scratch.cl(device, scratch_bytes((rows, cols), size, strip))?;
    let bytes = rows * cols * size;
    if bytes <= strip {
        let shape = Shape { input: data.byte_offset(), ..Shape::dense(rows, cols, size) };
        apart::launch(device, &shape, data.mem(), scratch)?;
        return crate::layout::copy::gpu::copy(device, (scratch, 0), (data.mem(), data.byte_offset()), bytes);
    }
    rectangle(device, &plan, data, &Steps::new(rows, cols), size, strip, scratch)
}

fn square(device: &ClDevice, plan: &Plan, data: &ClInput, n: usize, size: usize) -> Result<()> {
    let (side, name) = plan.square(n, data.byte_offset(), size);
    let tiles = n.div_ceil(side);
    let pairs = tiles * (tiles + 1) / 2;
    let launch = device.launch(&plan.program, name)?.mem(data.mem()).scalar(data.offset() as u64);
    let launch = launch.offset(n as u64, plan.wide).offset(pairs as u64, plan.wide);
    match plan.runs(pairs) {
        Share::Run { groups, run } if plan.class == DeviceClass::Cpu => {
            launch.offset(run as u64, plan.wide).run([groups, 1, 1], [plan.params.work_group, 1, 1])
        }
        _ => launch.run([pairs.min(plan.params.max_groups), 1, 1], [plan.params.work_group, 1, 1]),
    }
}

fn rectangle(
    device: &ClDevice,
    plan: &Plan,
    data: &ClInput,
    steps: &Steps,
    size: usize,
    strip: usize,
    scratch: &ClMem,
) -> Result<()> {
    let &Steps { m, n, c, a, b } = steps;
    let cells = scratch_bytes((m, n), size, strip) / size;
    // Every kernel of a strip takes its rows and its width, then up to four numbers.
    let launch = |name: &'static str, (rows, width): (usize, usize), numbers: &[usize]| -> Result<()> {
        let launch = device.launch(&plan.program, name)?.mem(data.mem()).scalar(data.offset() as u64).mem(scratch);
        let numbers = [rows, width].into_iter().chain(numbers.iter().copied());
        let launch = numbers.fold(launch, |launch, number| launch.offset(number as u64, plan.wide));
        let (launch, groups) = match plan.strip(rows, width) {
            Share::Run { groups, run } => (launch.offset(run as u64, plan.wide), groups),
            Share::Columns { groups, log } => (launch.scalar(log), groups),
        };
        launch.run([groups, 1, 1], [plan.params.work_group, 1, 1])
    };
    let columns = |div: usize, step: usize, a: usize| -> Result<()> {
        let strip = (cells / m).min(n);
        for first in (0..n).step_by(strip) {
            let shape = (m, strip.min(n - first));
            launch("stage_columns", shape, &[n, first, div])?;
            launch("put_columns", shape, &[n, first, step, a])?;
        }
        Ok(())
    };
    if c > 1 {
        columns(b, 1, m)?;
    }
    let strip = (cells / n).min(m);
    for first in (0..m).step_by(strip) {
        let height = strip.min(m - first);
        launch("spread_rows", (height, n), &[first, m, b])?;
        let to = data.byte_offset() + first * n * size;
        crate::layout::copy::gpu::copy(device, (scratch, 0), (data.mem(), to), height * n * size)?;
    }
    columns(1, n % m, a)
}

/// All programs that plans for `caps` use, for compile-only checks.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let of_size = |size| [false, true].map(|wide| plan(100, size, caps, |_| wide).program);
    [1, 2, 3, 4, 8, 12, 16].into_iter().flat_map(of_size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_multiples_of_the_work_group() {
        for (name, caps) in Tuned::samples() {
            for size in 1..=16 {
                for local_bytes in [1024, 4096, caps.local_bytes] {
                    let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                    let tuning::InPlace { work_group, block, side, tile_side, .. } = tuning::in_place(&caps, size);
                    assert!((tile_side * tile_side).is_multiple_of(work_group), "{name}: {size}");
                    assert!(block == 0 || (side * side).is_multiple_of(work_group), "{name}: {size}");
                    let tiles = 2 * tile_side * (tile_side + 1);
                    assert!(caps.class == DeviceClass::Cpu || tiles * size <= local_bytes, "{name}: {size}");
                }
            }
        }
    }

    #[test]
    fn plans_cover_every_strip() {
        for (name, caps) in Tuned::samples() {
            let plan = plan(1 << 20, 4, &caps, |_| false);
            for (rows, width) in [(1, 1), (2, 3), (1000, 1), (1, 1000), (257, 255), (10_000, 419)] {
                match plan.strip(rows, width) {
                    Share::Run { groups, run } => assert!(groups * run >= rows && (groups - 1) * run < rows, "{name}"),
                    Share::Columns { groups, log } => {
                        let cells = groups * plan.params.work_group * EACH;
                        assert!(cells >= rows * width && 1 << log <= plan.params.work_group, "{name}");
                    }
                }
            }
        }
    }
}
