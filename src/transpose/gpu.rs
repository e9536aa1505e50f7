//! Transposition on OpenCL devices: the plan, then its launch.

use crate::{
    Result,
    runtime::{Capabilities, ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning,
};

const TEXT: &str = include_str!("../../cl/transpose.cl");

/// A matrix and where it lies; everything that a plan depends on besides the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Byte offsets of the first elements.
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// How a tile is cut, as the last arguments of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kernel {
    Blocks,
    Tiles { log_rows: u32, log_cols: u32 },
    Runs { run: usize },
}

/// The launch that transposes at least two rows and two columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) kernel: Kernel,
    pub(crate) groups: usize,
    pub(crate) work_group: usize,
    pub(crate) wide: bool,
}

pub(crate) fn plan(shape: Shape, caps: &Capabilities, wide: bool) -> Plan {
    let Shape { rows, cols, size, .. } = shape;
    let params = tuning::transpose(caps, size);
    let (unit, (log_pad, pad)) = (tuning::unit(size), tuning::padding(size));
    let mut program = ProgramSpec::new("transpose.cl", TEXT, caps)
        .define("UNIT", ["uchar", "ushort", "uint", "ulong", "uint4"][unit.ilog2() as usize])
        .define("UNIT_BYTES", unit)
        .define("UNITS", size / unit)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("WG", params.work_group);
    if params.block > 0 {
        program = program.define("BLOCK", params.block).define("SIDE", params.side);
    }
    if params.tile > 0 {
        program = program.define("TILE", params.tile).define("LOG_PAD", log_pad).define("PAD", pad);
    }
    let side = params.block * params.side;
    let (kernel, tiles) = if caps.class == DeviceClass::Cpu {
        let tiles = rows.div_ceil(side) * cols.div_ceil(side);
        (Kernel::Runs { run: tiles.div_ceil(params.max_groups) }, tiles)
    } else if params.block > 0 && in_blocks(shape, params.block) && 2 * rows.min(cols) > side {
        (Kernel::Blocks, rows.div_ceil(side) * cols.div_ceil(side))
    } else {
        let (log_rows, log_cols) = sides(rows, cols, params.tile.ilog2());
        (Kernel::Tiles { log_rows, log_cols }, rows.div_ceil(1 << log_rows) * cols.div_ceil(1 << log_cols))
    };
    let groups = match kernel {
        Kernel::Runs { run } => tiles.div_ceil(run),
        _ => tiles.min(params.max_groups),
    };
    Plan { program, kernel, groups, work_group: params.work_group, wide }
}

/// Whether every block lies at a multiple of its vectors on both sides.
fn in_blocks(shape: Shape, block: usize) -> bool {
    let whole = |bytes: usize| bytes.is_multiple_of(block * shape.size);
    let Shape { rows, cols, size, input, output } = shape;
    whole(rows * size) && whole(cols * size) && whole(input) && whole(output)
}

/// The sides of a tile of `1 << log` elements: near a square, unless the matrix is narrower than that.
fn sides(rows: usize, cols: usize, log: u32) -> (u32, u32) {
    let bits = |n: usize| n.next_power_of_two().ilog2();
    let square = (log / 2, log - log / 2);
    if cols < 1 << square.1 {
        (log - bits(cols), bits(cols))
    } else if rows < 1 << square.0 {
        (bits(rows), log - bits(rows))
    } else {
        square
    }
}

pub(super) fn transpose(
    device: &ClDevice,
    input: &ClInput,
    (rows, cols): (usize, usize),
    size: usize,
    output: &ClInput,
) -> Result<()> {
    if rows <= 1 || cols <= 1 {
        // A vector lies in memory alike, whichever way it points. Not the driver's copy: beyond 4 GiB none of them is tested.
        let (from, to) = ((input.mem(), input.byte_offset()), (output.mem(), output.byte_offset()));
        return crate::copy::gpu::copy(device, from, to, rows * cols * size);
    }
    let shape = Shape { rows, cols, size, input: input.byte_offset(), output: output.byte_offset() };
    let caps = device.capabilities()?;
    let plan = plan(shape, &caps, device.tuning().wide(rows * cols));
    let name = match plan.kernel {
        Kernel::Blocks => "transpose_blocks",
        Kernel::Tiles { .. } => "transpose_tiles",
        Kernel::Runs { .. } => "transpose_runs",
    };
    let launch = device
        .launch(&plan.program, name)?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .mem(output.mem())
        .scalar(output.offset() as u64)
        .offset(rows as u64, plan.wide)
        .offset(cols as u64, plan.wide);
    let launch = match plan.kernel {
        Kernel::Blocks => launch,
        Kernel::Tiles { log_rows, log_cols } => launch.scalar(log_rows).scalar(log_cols),
        Kernel::Runs { run } => launch.offset(run as u64, plan.wide),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}
