//! Transposition on OpenCL devices: the plan, then its launch.

use crate::{
    Result,
    layout::permute::job::Axis,
    runtime::{
        ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("transpose.cl");

/// Shape and layout of the matrices: all that a plan depends on besides the device. Distances are in elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub rows: usize,
    pub cols: usize,
    /// Bytes of an element.
    pub size: usize,
    /// Leading dimensions of the input and of the output.
    pub ld_in: usize,
    pub ld_out: usize,
    /// Byte offset of the first element in the input's buffer, then in the output's.
    pub input: usize,
    pub output: usize,
    /// Offset of the first matrix in the input.
    pub first_in: usize,
    /// The axes of the batch, the innermost first.
    pub batch: Vec<Axis>,
}

impl Shape {
    /// Maximum number of axes of a batch.
    pub const MAX_BATCH: usize = 6;

    /// One matrix without gaps.
    pub fn dense(rows: usize, cols: usize, size: usize) -> Self {
        Self { rows, cols, size, ld_in: cols, ld_out: rows, input: 0, output: 0, first_in: 0, batch: Vec::new() }
    }

    fn count(&self) -> usize {
        self.batch.iter().map(|axis| axis.n).product()
    }

    /// One more than the highest offset on either side.
    fn end(&self) -> usize {
        let reaches = || self.batch.iter().map(Axis::reach);
        let from = reaches().map(|(from, _)| from.max(0) as usize).sum::<usize>();
        let to = reaches().map(|(_, to)| to.max(0) as usize).sum::<usize>();
        let input = self.first_in + (self.rows - 1) * self.ld_in + self.cols + from;
        input.max((self.cols - 1) * self.ld_out + self.rows + to)
    }

    /// True if each matrix and each row begins at a multiple of `bytes` bytes, on both sides.
    fn whole(&self, bytes: usize) -> bool {
        let from = self.batch.iter().map(|axis| axis.from.unsigned_abs()).chain([self.ld_in, self.first_in]);
        let from = from.fold(self.input, |bits, distance| bits | (distance * self.size));
        from.is_multiple_of(bytes) && self.whole_out(bytes)
    }

    /// [`Shape::whole`] for the output alone.
    fn whole_out(&self, bytes: usize) -> bool {
        let to = self.batch.iter().map(|axis| axis.to.unsigned_abs()).chain([self.ld_out]);
        to.fold(self.output, |bits, distance| bits | (distance * self.size)).is_multiple_of(bytes)
    }
}

/// The kernel of a launch, and its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    Blocks,
    Tiles {
        log_rows: u32,
        log_cols: u32,
    },
    /// `tall`: the matrix has few columns; otherwise it has few rows.
    Narrow {
        tall: bool,
    },
    Runs {
        run: usize,
    },
}

/// The launch that transposes at least two rows and two columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub kernel: Kernel,
    pub groups: usize,
    pub work_group: usize,
    pub wide: bool,
}

pub fn plan(shape: &Shape, caps: &Tuned, wide: impl Fn(usize) -> bool) -> Plan {
    let &Shape { rows, cols, size, .. } = shape;
    let count = shape.count();
    let wide = wide(shape.end().max(rows * cols * count));
    let params = tuning::transpose(caps, size);
    let (unit, (log_pad, pad)) = (tuning::unit(size), tuning::padding(size));
    let program = ProgramSpec::new("transpose.cl", TEXT, caps)
        .define("UNIT", tuning::unit_type(unit))
        .define("UNIT_BYTES", unit)
        .define("UNITS", size / unit)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" });
    if let Some((tall, short, work_group)) = narrow(shape, caps) {
        let program = program.define("WG", work_group).define("NARROW", short).unoptimised_on_a_checker(caps);
        let program = program.define("LOG_PAD", log_pad).define("PAD", pad);
        let chunks = rows.max(cols).div_ceil(work_group * 16 / size) * count;
        let groups = chunks.min(params.max_groups);
        return Plan { program, kernel: Kernel::Narrow { tall }, groups, work_group, wide };
    }
    let mut program = program.define("WG", params.work_group);
    if params.block > 0 {
        program = program.define("BLOCK", params.block).define("SIDE", params.side);
    }
    if caps.explicit_vectors && params.block.is_multiple_of(16) && size == unit {
        program = program.define("VECTORS", format!("{}16", tuning::unit_type(unit)));
    }
    if params.tile > 0 {
        program = program.define("TILE", params.tile).define("LOG_PAD", log_pad).define("PAD", pad);
    }
    let side = params.block * params.side;
    let (kernel, tiles) = if caps.class == DeviceClass::Cpu {
        let tiles = rows.div_ceil(side) * cols.div_ceil(side) * count;
        (Kernel::Runs { run: tiles.div_ceil(params.max_groups) }, tiles)
    } else if params.block > 0 && in_blocks(shape, params.block) && 2 * rows.min(cols) > side {
        (Kernel::Blocks, rows.div_ceil(side) * cols.div_ceil(side) * count)
    } else {
        let (log_rows, log_cols) = sides(rows, cols, params.tile.ilog2());
        let lead = lead(shape, (log_rows, log_cols), params.tile, caps);
        if lead > 0 {
            program = program.define("LEAD", lead).define("LOG_ROWS", log_rows).define("LOG_COLS", log_cols);
        }
        let down = (rows + lead.saturating_sub(1)).div_ceil(1 << log_rows);
        (Kernel::Tiles { log_rows, log_cols }, down * cols.div_ceil(1 << log_cols) * count)
    };
    let groups = match kernel {
        Kernel::Runs { run } => tiles.div_ceil(run),
        _ => tiles.min(params.max_groups),
    };
    Plan { program, kernel, groups, work_group: params.work_group, wide }
}

/// True if every block is aligned to its vectors on both sides.
fn in_blocks(shape: &Shape, block: usize) -> bool {
    shape.whole(block * shape.size) && shape.rows.is_multiple_of(block) && shape.cols.is_multiple_of(block)
}

/// The number of further input rows that each tile reads: `LEAD` of `cl/transpose.cl`. It is the number of elements in
/// a 32-byte memory sector if rows of the output are not aligned to sectors, else 0. The result is also 0 if rows of
/// the output have few tiles, since the additional reads would cost too much, or if local memory is too small.
fn lead(shape: &Shape, (log_rows, log_cols): (u32, u32), tile: usize, caps: &Tuned) -> usize {
    const SECTOR: usize = 32;
    let lead = SECTOR / shape.size;
    let many = shape.rows >> log_rows >= 8 && shape.cols >> log_cols >= 1;
    let fits = tuning::padded_bytes(tile + (lead << log_cols), shape.size) <= caps.local_bytes;
    if matches!(shape.size, 1 | 2 | 4 | 8) && many && fits && !shape.whole_out(SECTOR) { lead } else { 0 }
}

/// `(tall, short, work_group)` for a matrix with one short side of length `short`. `tall` is true if the matrix has few
/// columns.
fn narrow(shape: &Shape, caps: &Tuned) -> Option<(bool, usize, usize)> {
    let tall = shape.cols <= shape.rows;
    let (short, long) = if tall { (shape.cols, shape.rows) } else { (shape.rows, shape.cols) };
    let packed = if tall { shape.ld_in } else { shape.ld_out } == short;
    // Short rows have no gaps between them (`packed`), so their length need not be a multiple of 16 bytes.
    let lines =
        Shape { ld_in: shape.ld_in * usize::from(!tall), ld_out: shape.ld_out * usize::from(tall), ..shape.clone() };
    let whole = (long * shape.size).is_multiple_of(16) && lines.whole(16);
    let fits = caps.class == DeviceClass::Gpu && packed && whole;
    tuning::narrow(caps, shape.size, short, long).filter(|_| fits).map(|work_group| (tall, short, work_group))
}

/// Binary logarithms of the sides of a tile of `1 << log` elements: near a square, unless the matrix is narrower.
pub fn sides(rows: usize, cols: usize, log: u32) -> (u32, u32) {
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

/// Transposes one matrix without gaps.
pub fn transpose(
    device: &ClDevice,
    input: &ClInput,
    (rows, cols): (usize, usize),
    size: usize,
    output: &ClInput,
) -> Result<()> {
    let (from, to) = (input.byte_offset(), output.byte_offset());
    if rows <= 1 || cols <= 1 {
        // A row vector and a column vector have the same layout. The crate's copy serves here, since no driver's copy
        // is tested beyond 4 GiB.
        return crate::layout::copy::gpu::copy(device, (input.mem(), from), (output.mem(), to), rows * cols * size);
    }
    let shape = Shape { input: from, output: to, ..Shape::dense(rows, cols, size) };
    launch(device, &shape, input.mem(), output.mem())
}

/// Transposes matrices of at least two rows and two columns; `shape` has the offsets in both buffers.
pub fn launch(device: &ClDevice, shape: &Shape, input: &ClMem, output: &ClMem) -> Result<()> {
    let cells = shape.count() * shape.rows * shape.cols;
    let caps = device.capabilities_for(Primitive::Transpose, shape.size, cells)?;
    let plan = plan(shape, &caps, |n| device.wide(n));
    let &Shape { rows, cols, size, ld_in, ld_out, .. } = shape;
    let wide = plan.wide;
    let name = match plan.kernel {
        Kernel::Blocks => "transpose_blocks",
        Kernel::Tiles { .. } => "transpose_tiles",
        Kernel::Narrow { .. } => "transpose_narrow",
        Kernel::Runs { .. } => "transpose_runs",
    };
    let launch = device
        .launch(&plan.program, name)?
        .mem(input)
        .scalar((shape.input / size) as u64)
        .mem(output)
        .scalar((shape.output / size) as u64);
    let launch = if let Kernel::Narrow { tall } = plan.kernel {
        let (length, ld) = if tall { (rows, ld_out) } else { (cols, ld_in) };
        launch.offset(length as u64, wide).offset(ld as u64, wide).scalar(u32::from(tall))
    } else {
        let sides = launch.offset(rows as u64, wide).offset(cols as u64, wide);
        sides.offset(ld_in as u64, wide).offset(ld_out as u64, wide)
    };
    let launch = match plan.kernel {
        Kernel::Blocks | Kernel::Narrow { .. } => launch,
        Kernel::Tiles { log_rows, log_cols } => launch.scalar(log_rows).scalar(log_cols),
        Kernel::Runs { run } => launch.offset(run as u64, wide),
    };
    let launch = launch.offset(shape.count() as u64, wide).offset(shape.first_in as u64, wide);
    // Missing axes have length 1.
    let lengths = shape.batch.iter().map(|axis| axis.n as i64).chain(std::iter::repeat(1));
    let launch = launch.eight_offsets(wide, lengths);
    let launch = launch.eight_offsets(wide, shape.batch.iter().map(|axis| axis.from as i64));
    let launch = launch.eight_offsets(wide, shape.batch.iter().map(|axis| axis.to as i64));
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}
