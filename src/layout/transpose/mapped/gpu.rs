//! Transposition of computed elements on OpenCL devices: the plan, then its launch.

use crate::{
    ElementType, Result,
    layout::transpose::gpu::sides,
    runtime::{ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    source::load::Load,
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("transpose_map.cl");
/// The side of a tile on CPU drivers, as in `cl/transpose_map.cl`.
const CPU_SIDE: usize = 128;

/// Blocks per side of a tile, and elements per side of a block.
const SIDE: usize = 16;
const BLOCK: usize = 4;

/// The kernel of a launch, and its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    Blocks,
    Tiles { log_rows: u32, log_cols: u32 },
    Runs { run: usize },
}

/// The launch over at least one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub kernel: Kernel,
    pub groups: usize,
    pub work_group: usize,
    pub wide: bool,
}

/// The plan for the elements of `load`. `in_blocks` is true if the output's offset is a multiple of a block's side.
pub fn plan(
    element: ElementType,
    load: &Load,
    (rows, cols): (usize, usize),
    in_blocks: bool,
    caps: &Tuned,
    wide: impl Fn(usize) -> bool,
) -> Result<Plan> {
    caps.supports(element)?;
    let wide = wide(rows * cols);
    let params = tuning::transpose(caps, element.size());
    let program = ProgramSpec::new("transpose_map.cl", TEXT, caps)
        .element("T", element)
        .element("A", element.accumulator())
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .unoptimised_on_a_checker(caps);
    let program = load.with_four(program, caps)?;
    if caps.class == DeviceClass::Cpu {
        let tiles = rows.div_ceil(CPU_SIDE) * cols.div_ceil(CPU_SIDE);
        let run = tiles.div_ceil(params.max_groups);
        return Ok(Plan { program, kernel: Kernel::Runs { run }, groups: tiles.div_ceil(run), work_group: 1, wide });
    }
    let (log_pad, pad) = tuning::padding(element.size());
    let program = program.define("TILE", params.tile).define("LOG_PAD", log_pad).define("PAD", pad);
    let side = SIDE * BLOCK;
    let fits = side * side * element.size() <= caps.local_bytes;
    let program = if fits { program.define("SIDE", SIDE) } else { program };
    let whole = in_blocks && rows.is_multiple_of(BLOCK) && cols.is_multiple_of(BLOCK);
    let (kernel, tiles) = if fits && whole && 2 * rows.min(cols) > side {
        (Kernel::Blocks, rows.div_ceil(side) * cols.div_ceil(side))
    } else {
        let (log_rows, log_cols) = sides(rows, cols, params.tile.ilog2());
        (Kernel::Tiles { log_rows, log_cols }, rows.div_ceil(1 << log_rows) * cols.div_ceil(1 << log_cols))
    };
    Ok(Plan { program, kernel, groups: tiles.min(params.max_groups), work_group: params.work_group, wide })
}

/// Transposes a matrix whose elements `load` computes.
pub(super) fn transpose(
    device: &ClDevice,
    element: ElementType,
    load: &Load,
    (rows, cols): (usize, usize),
    output: &ClInput,
) -> Result<()> {
    if rows * cols == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Transpose, element.size(), rows * cols)?;
    let in_blocks = output.offset().is_multiple_of(BLOCK);
    let plan = plan(element, load, (rows, cols), in_blocks, &caps, |n| device.wide(n))?;
    let name = match plan.kernel {
        Kernel::Blocks => "map_blocks",
        Kernel::Tiles { .. } => "map_tiles",
        Kernel::Runs { .. } => "map_runs",
    };
    let launch = load
        .arguments(device.launch(&plan.program, name)?)
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
