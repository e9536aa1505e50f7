//! Transposition of mapped elements on OpenCL devices: the plan, then its launch.

use crate::{
    ElementType, Result,
    layout::transpose::gpu::sides,
    runtime::{AnyInput, AnyOutput, ClInput, DeviceClass, ProgramSpec, on_device, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = include_str!("../../../../cl/transpose_map.cl");
/// The side of a tile on CPU drivers, as in `cl/transpose_map.cl`.
const CPU_SIDE: usize = 128;

/// Blocks per side of a tile, and elements per side of a block.
const SIDE: usize = 16;
const BLOCK: usize = 4;

/// Element types, and the source of the custom function.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    pub from: ElementType,
    pub acc: ElementType,
    pub out: ElementType,
    pub prelude: Option<String>,
}

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

/// `in_blocks`: both offsets are multiples of a block's side.
pub fn plan(
    form: &Form,
    (rows, cols): (usize, usize),
    in_blocks: bool,
    caps: &Tuned,
    wide: impl Fn(usize) -> bool,
) -> Result<Plan> {
    for element in [form.from, form.acc, form.out] {
        caps.supports(element)?;
    }
    let wide = wide(rows * cols);
    let params = tuning::transpose(caps, form.acc.size());
    let program = ProgramSpec::new("transpose_map.cl", TEXT, caps)
        .element("T", form.from)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .unoptimised_on_a_checker(caps);
    let program = match &form.prelude {
        Some(prelude) => program.flag("MAPPED", true).prelude(prelude.clone()),
        None => program,
    };
    if caps.class == DeviceClass::Cpu {
        let tiles = rows.div_ceil(CPU_SIDE) * cols.div_ceil(CPU_SIDE);
        let run = tiles.div_ceil(params.max_groups);
        return Ok(Plan { program, kernel: Kernel::Runs { run }, groups: tiles.div_ceil(run), work_group: 1, wide });
    }
    let (log_pad, pad) = tuning::padding(form.acc.size());
    let program = program.define("TILE", params.tile).define("LOG_PAD", log_pad).define("PAD", pad);
    let side = SIDE * BLOCK;
    let fits = side * side * form.acc.size() <= caps.local_bytes;
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

/// Transposes and maps a matrix; `factor` has the bytes of an accumulator.
pub(crate) fn transpose(
    device: &ClDevice,
    form: &Form,
    factor: &[u8],
    input: AnyInput<'_>,
    shape: (usize, usize),
    output: AnyOutput<'_>,
) -> Result<()> {
    on_device(device, [input], [(output, false)], |[input], [output]| run(device, form, factor, input, shape, output))
}

fn run(
    device: &ClDevice,
    form: &Form,
    factor: &[u8],
    input: &ClInput,
    (rows, cols): (usize, usize),
    output: &ClInput,
) -> Result<()> {
    if rows * cols == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Transpose, form.acc.size(), rows * cols)?;
    let in_blocks = input.offset().is_multiple_of(BLOCK) && output.offset().is_multiple_of(BLOCK);
    let plan = plan(form, (rows, cols), in_blocks, &caps, |n| device.wide(n))?;
    let name = match plan.kernel {
        Kernel::Blocks => "map_blocks",
        Kernel::Tiles { .. } => "map_tiles",
        Kernel::Runs { .. } => "map_runs",
    };
    let launch = device
        .launch(&plan.program, name)?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .mem(output.mem())
        .scalar(output.offset() as u64)
        .offset(rows as u64, plan.wide)
        .offset(cols as u64, plan.wide)
        .plain(factor);
    let launch = match plan.kernel {
        Kernel::Blocks => launch,
        Kernel::Tiles { log_rows, log_cols } => launch.scalar(log_rows).scalar(log_cols),
        Kernel::Runs { run } => launch.offset(run as u64, plan.wide),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}
