//! The transposition ladder: the kernels of `cl/ladder/transpose.cl`, then the crate's own.

use std::cell::OnceCell;

use crate::{
    Buffer, Device, Element, Error, Result,
    check::{Failure, data::Data, poison, same},
    ladder::{
        Climb, GUARD, Ladder, Model, Request, Rung, Shared, intact,
        model::{LANES, bank_conflicts, sectors},
    },
    tuning::Tuned,
};

/// The ladder's entry in the registry.
pub(crate) struct TransposeLadder;

/// Largest number of work-groups in the grid's second dimension; the rest go to the third.
const MAX_GROUPS_Y: usize = 1 << 15;
/// Work-group sizes that the ladder takes.
const BLOCKS: std::ops::RangeInclusive<usize> = 32..=1024;
/// Side of the tiles of [`Way::Tile`].
const TILE: u64 = 32;

/// Access pattern of a kernel of `cl/ladder/transpose.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Work-item (x, y) moves `unroll` elements of a row, or of a column if `down`.
    Plain { down: bool, unroll: u64, diagonal: bool },
    /// A work-group moves `unroll` tiles of its size through local memory, whose rows are longer by `pad`.
    Through { unroll: u64, pad: u64 },
    /// A work-group moves a tile of 32 x 32, through local memory if there is a pitch. If `by_columns`, neighbouring
    /// work-items store a column of the tile, which is contiguous in the output.
    Tile { pitch: Option<u64>, by_columns: bool },
    /// Work-item i moves column i mod cols of four rows.
    Strip,
}

/// A kernel of `cl/ladder/transpose.cl`.
#[derive(Debug)]
struct Kernel {
    name: &'static str,
    step: &'static str,
    way: Way,
    /// Default work-group size, and the number of its work-items across.
    block: usize,
    across: usize,
    /// True if the matrix is transposed, false if it is copied.
    transposes: bool,
    /// True if local memory is an argument.
    argument: bool,
}

impl Kernel {
    const fn new(name: &'static str, way: Way, block: usize, across: usize, step: &'static str) -> Self {
        Self { name, step, way, block, across, transposes: true, argument: false }
    }

    const fn copy(self) -> Self {
        Self { transposes: false, ..self }
    }

    const fn argument(self) -> Self {
        Self { argument: true, ..self }
    }
}

const fn plain(down: bool, unroll: u64, diagonal: bool) -> Way {
    Way::Plain { down, unroll, diagonal }
}

#[rustfmt::skip]
const KERNELS: [Kernel; 23] = [
    Kernel::new("copy_row", plain(false, 1, false), 256, 16,
        "a copy along rows: the upper bound of the next steps, 16 x 16 work-items, 1 element each").copy(),
    Kernel::new("copy_col", plain(true, 1, false), 256, 16,
        "a copy along columns: neighbouring work-items are a row apart on both sides").copy(),
    Kernel::new("naive_row", plain(false, 1, false), 256, 16,
        "reads along rows, writes along columns"),
    Kernel::new("naive_col", plain(true, 1, false), 256, 16,
        "reads along columns with help from caches, writes along rows"),
    Kernel::new("unroll4_row", plain(false, 4, false), 256, 16,
        "naive_row with 4 elements per work-item: more accesses in flight"),
    Kernel::new("unroll4_col", plain(true, 4, false), 256, 16,
        "naive_col with 4 elements per work-item"),
    Kernel::new("diagonal_row", plain(false, 1, true), 256, 16,
        "naive_row with work-groups along diagonals: spreads accesses over the channels of old memories, no effect if addresses are hashed"),
    Kernel::new("diagonal_col", plain(true, 1, true), 256, 16,
        "naive_col with work-groups along diagonals"),
    Kernel::new("copy_gmem", plain(false, 1, false), 512, 32,
        "a copy again, the upper bound of the second ladder: 32 x 16 work-items").copy(),
    Kernel::new("naive_gmem", plain(false, 1, false), 512, 32,
        "naive_row with 32 work-items across"),
    Kernel::new("smem", Way::Through { unroll: 1, pad: 0 }, 512, 32,
        "through local memory: rows on both sides, at the price of bank conflicts"),
    Kernel::new("smem_pad", Way::Through { unroll: 1, pad: 2 }, 512, 32,
        "two columns of padding: fewer bank conflicts"),
    Kernel::new("smem_unroll_pad", Way::Through { unroll: 2, pad: 2 }, 512, 32,
        "two tiles per work-group: twice the accesses in flight"),
    Kernel::new("smem_unroll_pad_dyn", Way::Through { unroll: 2, pad: 2 }, 512, 32,
        "local memory sized by the host").argument(),
    Kernel::new("sycl_naive", Way::Strip, 256, 256,
        "start of the third ladder: a range of one dimension, 4 rows per work-item, no local memory"),
    Kernel::new("sycl_local_naive", Way::Tile { pitch: Some(32), by_columns: false }, 256, 32,
        "through a local tile of 32 x 32, still written along columns"),
    Kernel::new("sycl_local_coalesced", Way::Tile { pitch: Some(32), by_columns: true }, 256, 32,
        "the tile is read along its columns, so that the output is written along rows"),
    Kernel::new("sycl_local_pad", Way::Tile { pitch: Some(33), by_columns: true }, 256, 32,
        "33 columns: no bank conflicts"),
    Kernel::new("tile_copy", Way::Tile { pitch: None, by_columns: false }, 256, 32,
        "start of the fourth ladder: a copy, 32 x 8 work-items on tiles of 32 x 32").copy(),
    Kernel::new("tile_copy_shared", Way::Tile { pitch: Some(32), by_columns: false }, 256, 32,
        "the copy through local memory: the cost of the detour").copy(),
    Kernel::new("tile_naive", Way::Tile { pitch: None, by_columns: false }, 256, 32,
        "reads along rows, writes along columns, 4 elements per work-item"),
    Kernel::new("tile_coalesced", Way::Tile { pitch: Some(32), by_columns: true }, 256, 32,
        "through local memory: rows on both sides, 32 work-items in one bank"),
    Kernel::new("tile_no_conflicts", Way::Tile { pitch: Some(33), by_columns: true }, 256, 32,
        "33 columns: each work-item in its own bank"),
];

/// A matrix and the shape of a work-group.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    rows: u64,
    cols: u64,
    /// Work-items across and down.
    x: u64,
    y: u64,
}

/// Indices that a work-item accesses in the input, the output and local memory. It may store another element than it
/// loads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Move {
    load: Option<u64>,
    store: Option<u64>,
    /// Indices in local memory of the loaded and of the stored element.
    put: Option<u64>,
    get: Option<u64>,
}

impl Kernel {
    fn geometry(&self, (rows, cols): (usize, usize), block: usize) -> Geometry {
        let x = if self.way == Way::Strip { block } else { self.across };
        Geometry { rows: rows as u64, cols: cols as u64, x: x as u64, y: (block / x) as u64 }
    }

    /// Work-groups across and down.
    fn groups(&self, g: &Geometry) -> (u64, u64) {
        match self.way {
            Way::Plain { down: false, unroll, .. } | Way::Through { unroll, .. } => {
                (g.cols.div_ceil(unroll * g.x), g.rows.div_ceil(g.y))
            }
            Way::Plain { down: true, unroll, .. } => (g.rows.div_ceil(unroll * g.x), g.cols.div_ceil(g.y)),
            Way::Tile { .. } => (g.cols.div_ceil(TILE), g.rows.div_ceil(TILE)),
            Way::Strip => ((g.cols * g.rows.div_ceil(4)).div_ceil(g.x), 1),
        }
    }

    /// Elements that one work-item moves.
    fn unroll(&self, g: &Geometry) -> u64 {
        match self.way {
            Way::Plain { unroll, .. } | Way::Through { unroll, .. } => unroll,
            Way::Tile { .. } => TILE / g.y,
            Way::Strip => 4,
        }
    }

    /// Elements of local memory.
    fn local(&self, g: &Geometry) -> u64 {
        match self.way {
            Way::Through { unroll, pad } => g.y * (unroll * g.x + pad),
            Way::Tile { pitch: Some(pitch), .. } => TILE * pitch,
            _ => 0,
        }
    }

    /// Accesses of work-item (lx, ly) of a work-group in its k-th round, by the kernels' own arithmetic.
    fn moves(&self, g: &Geometry, (gx, gy): (u64, u64), (lx, ly): (u64, u64), k: u64) -> Move {
        let inside = |r: u64, c: u64| r < g.rows && c < g.cols;
        let load = |r, c| inside(r, c).then(|| r * g.cols + c);
        let store = |r, c| match self.transposes {
            true => inside(r, c).then(|| c * g.rows + r),
            false => load(r, c),
        };
        let straight = |r, c| Move { load: load(r, c), store: store(r, c), put: None, get: None };
        match self.way {
            Way::Plain { down, unroll, diagonal } => {
                let (across, high) = self.groups(g);
                let (gx, gy) = match diagonal {
                    true => {
                        let b = gy * across + gx;
                        ((b / high + b % high) % across, b % high)
                    }
                    false => (gx, gy),
                };
                let (x, y) = (gx * unroll * g.x + lx + k * g.x, gy * g.y + ly);
                if down { straight(x, y) } else { straight(y, x) }
            }
            Way::Through { unroll, pad } => {
                let (r0, c0, pitch) = (gy * g.y, gx * unroll * g.x + k * g.x, unroll * g.x + pad);
                let item = ly * g.x + lx;
                let (across, down) = (item / g.y, item % g.y);
                let (load, store) = (load(r0 + ly, c0 + lx), store(r0 + down, c0 + across));
                let (put, get) = (ly * pitch + k * g.x + lx, down * pitch + k * g.x + across);
                Move { load, store, put: load.and(Some(put)), get: store.and(Some(get)) }
            }
            Way::Tile { pitch, by_columns } => {
                let (r0, c0, j) = (gy * TILE, gx * TILE, ly + k * g.y);
                let (r, c) = if by_columns { (lx, j) } else { (j, lx) };
                let (load, store) = (load(r0 + j, c0 + lx), store(r0 + r, c0 + c));
                let at = |position: Option<u64>, r, c| position.and(pitch).map(|pitch| r * pitch + c);
                Move { load, store, put: at(load, j, lx), get: at(store, r, c) }
            }
            Way::Strip => {
                let i = gx * g.x + lx;
                straight(i / g.cols * 4 + k, i % g.cols)
            }
        }
    }

    /// Cost of the matrix: that of one work-group inside of it, scaled to all elements.
    fn model(&self, g: &Geometry, size: u64) -> Model {
        let (across, down) = self.groups(g);
        let group = (Ord::min(1, across - 1), Ord::min(1, down - 1));
        let mut counter = Counter::default();
        for k in 0..self.unroll(g) {
            for warp in 0..(g.x * g.y).div_ceil(LANES) {
                let moves: Vec<Move> = (warp * LANES..(warp + 1) * LANES)
                    .map(|item| match item < g.x * g.y {
                        true => self.moves(g, group, (item % g.x, item / g.x), k),
                        false => Move::default(),
                    })
                    .collect();
                let bytes = |position: Option<u64>| position.map(|i| i * size);
                counter.load(size, |lane| bytes(moves[lane as usize].load));
                counter.store(size, |lane| bytes(moves[lane as usize].store));
                counter.local(size, |lane| bytes(moves[lane as usize].put));
                counter.local(size, |lane| bytes(moves[lane as usize].get));
            }
        }
        counter.model(g.rows * g.cols)
    }
}

/// Cost of some requests, and the number of elements that they move.
#[derive(Default)]
struct Counter {
    model: Model,
    moved: u64,
    requests: f64,
    conflicts: f64,
}

impl Counter {
    fn load(&mut self, bytes: u64, address: impl Fn(u64) -> Option<u64>) {
        self.moved += (0..LANES).filter(|&lane| address(lane).is_some()).count() as u64;
        self.model.load_sectors += sectors(bytes, address);
    }

    fn store(&mut self, bytes: u64, address: impl Fn(u64) -> Option<u64>) {
        self.model.store_sectors += sectors(bytes, address);
    }

    /// Local memory serves 128 bytes at a time: half of the lanes for 8-byte accesses, a quarter for 16-byte ones.
    fn local(&mut self, bytes: u64, address: impl Fn(u64) -> Option<u64>) {
        let words = bytes.div_ceil(4);
        let lanes = LANES / words;
        for first in (0..LANES).step_by(lanes as usize) {
            if (first..first + lanes).any(|lane| address(lane).is_some()) {
                self.requests += 1.0;
                self.conflicts += bank_conflicts(|i| address(first + i / words).map(|at| at / 4 + i % words));
            }
        }
    }

    /// The counted cost, scaled from the counted loads to `n` loads. A load moves an element or a vector.
    fn model(self, n: u64) -> Model {
        let times = n as f64 / Ord::max(self.moved, 1) as f64;
        Model {
            load_sectors: self.model.load_sectors * times,
            store_sectors: self.model.store_sectors * times,
            bank_conflicts: if self.requests > 0.0 { self.conflicts / self.requests } else { 0.0 },
        }
    }
}

/// The matrix, and its transpose by the CPU.
struct Input<T> {
    matrix: Vec<T>,
    transposed: OnceCell<Vec<T>>,
}

impl<T: Element> Input<T> {
    fn new((rows, cols): (usize, usize)) -> Self {
        let matrix = Data::Random.generate(rows * cols, (rows * 31 + cols) as u64);
        Self { matrix, transposed: OnceCell::new() }
    }

    fn want(&self, (rows, cols): (usize, usize), transposes: bool) -> Result<&[T]> {
        if !transposes {
            return Ok(&self.matrix);
        }
        if self.transposed.get().is_none() {
            let mut transposed = vec![T::ZERO; self.matrix.len()];
            Device::cpu().transpose_into(&self.matrix, (rows, cols), &mut transposed)?;
            let _ = self.transposed.set(transposed);
        }
        Ok(self.transposed.get().expect("just set"))
    }
}

/// Data of a step, and the functions that all steps share.
struct State<T: Element> {
    shape: (usize, usize),
    input: Shared<Input<T>>,
    transposes: bool,
    x: Buffer<T>,
    /// True if the input was unchanged after a run.
    intact: bool,
    /// The output, and a guard after it.
    out: Buffer<T>,
    /// Host copy of `out`.
    found: Vec<T>,
}

impl<T: Element> State<T> {
    fn new(device: &Device, shared: &Shared<Input<T>>, shape: (usize, usize), transposes: bool) -> Result<Self> {
        let x = device.upload(&shared.get()?.matrix)?;
        let out = device.uninit(shape.0 * shape.1 + GUARD)?;
        Ok(Self { shape, input: shared.clone(), transposes, x, intact: false, out, found: Vec::new() })
    }

    /// Poisons the output, so that a run that leaves out elements does not pass with those of an earlier run.
    fn reset(&mut self) -> Result<()> {
        self.out.fill(poison())
    }

    fn verify(&mut self) -> Result<(), Failure> {
        let input = self.input.get()?;
        let n = input.matrix.len();
        if self.found.is_empty() {
            self.found = self.out.to_vec()?;
        } else {
            self.found.fill(T::ZERO);
            self.out.view(..)?.read(&mut self.found)?;
        }
        same(&self.found[..n], input.want(self.shape, self.transposes)?, "out")?;
        intact(&self.found[n..])?;
        // The input is compared once only, because matrices may have gigabytes.
        if !self.intact {
            self.found.fill(T::ZERO);
            self.x.view(..)?.read(&mut self.found[..n])?;
            same(&self.found[..n], &input.matrix, "in")?;
            self.intact = true;
        }
        Ok(())
    }

    fn into_case(self, run: impl FnMut(&mut Self) -> Result<()> + 'static) -> Climb {
        Climb::new(self, Self::reset, run, Self::verify)
    }
}

impl Ladder for TransposeLadder {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn rungs(&self, request: &Request, device: &Device) -> Result<Vec<Rung>> {
        let (rows, cols) = request.shape;
        request.addressable(rows.checked_mul(cols))?;
        if rows * cols == 0 {
            return Err(Error::invalid(format!("the transpose ladder needs 1 element at least, got {rows} x {cols}")));
        }
        if let Some(block) = request.block.filter(|block| !block.is_power_of_two() || !BLOCKS.contains(block)) {
            let (least, most) = (BLOCKS.start(), BLOCKS.end());
            return Err(Error::invalid(format!(
                "a block of {block} work-items: the transpose ladder takes powers of two from {least} to {most}"
            )));
        }
        // The kernels differ only in the element size.
        match request.element.size() {
            1 => steps::<u8>(request, device),
            2 => steps::<u16>(request, device),
            4 => steps::<u32>(request, device),
            _ => steps::<u64>(request, device),
        }
    }
}

fn steps<T: Element>(request: &Request, device: &Device) -> Result<Vec<Rung>> {
    let (shape, size) = (request.shape, size_of::<T>());
    let shared = Shared::new(move || Ok(Input::<T>::new(shape)));
    let bytes = 2 * (shape.0 * shape.1 * size) as u64;
    let most = device.capabilities()?.map_or(*BLOCKS.end(), |caps| caps.max_work_group);
    let most = 1 << most.max(1).ilog2();
    // One program has all families of kernels, each with a work-group size of its own.
    let blocks = KERNEL_BLOCKS.map(|block| request.block.unwrap_or(block.min(most)));
    let mut steps: Vec<Rung> = KERNELS
        .iter()
        .map(|kernel| {
            let block = request.block.unwrap_or(kernel.block.min(most));
            let geometry = kernel.geometry(shape, block.max(*BLOCKS.start()));
            let unavailable = if device.is_cpu() {
                Some("a kernel needs an OpenCL device".into())
            } else if block > most || most < *BLOCKS.start() {
                let least = block.max(*BLOCKS.start());
                Some(format!("needs work-groups of {least}, the device allows {most}"))
            } else {
                None
            };
            let shared = shared.clone();
            Rung {
                name: kernel.name,
                step: kernel.step,
                bytes,
                model: Some(kernel.model(&geometry, size as u64)),
                unavailable,
                prepare: Box::new(move |device| prepare_kernel(device, kernel, &shared, shape, geometry, blocks)),
            }
        })
        .collect();
    steps.push(Rung {
        name: "transpose",
        step: "the crate's own: blocks transposed in registers, accesses of 8 or 16 bytes, swizzled local memory",
        bytes,
        model: device.capabilities()?.and_then(|caps| own_model(&caps.into(), shape, size)),
        unavailable: None,
        prepare: Box::new(move |device| {
            let (device, state) = (device.clone(), State::new(device, &shared, shape, true)?);
            Ok(state.into_case(move |state| {
                let out = state.out.view_mut(..shape.0 * shape.1)?;
                device.transpose_into(&state.x, (shape.0, shape.1), out)
            }))
        }),
    });
    Ok(steps)
}

/// Work-group sizes of the families of `cl/ladder/transpose.cl`: BLOCK_PLAIN, BLOCK_LOCAL, BLOCK_TILE.
const KERNEL_BLOCKS: [usize; 3] = [256, 512, 256];

/// Cost of the crate's own kernel for blocks or for tiles. `None` for other kernels, and if the driver copies the
/// matrix.
fn own_model(caps: &Tuned, (rows, cols): (usize, usize), size: usize) -> Option<Model> {
    use super::gpu::{self, Shape};
    if rows <= 1 || cols <= 1 {
        // The driver copies such a matrix.
        return None;
    }
    let plan = gpu::plan(&Shape::dense(rows, cols, size), caps, |_| false);
    let params = crate::tuning::transpose(caps, size);
    let (rows, cols, size) = (rows as u64, cols as u64, size as u64);
    let mut counter = Counter::default();
    // The model takes the second tile along each axis, or the first if it is the only one.
    let second = |extent: u64, side: u64| if extent > side { side } else { 0 };
    match plan.kernel {
        gpu::Kernel::Runs { .. } | gpu::Kernel::Narrow { .. } => None,
        gpu::Kernel::Blocks => {
            let (block, side) = (params.block as u64, params.side as u64);
            let (r0, c0) = (second(rows / block, side), second(cols / block, side));
            let bytes = block * size;
            let vector =
                |row: u64, of: u64, at: u64, pitch: u64| (row < of && at < pitch).then(|| (row * pitch + at) * bytes);
            for first in (0..side * side).step_by(LANES as usize) {
                for k in 0..block {
                    let cell = |lane| ((first + lane) / side, (first + lane) % side);
                    let load = |lane| {
                        let (r, c) = cell(lane);
                        vector((r0 + r) * block + k, rows, c0 + c, cols / block)
                    };
                    counter.load(bytes, load);
                    counter.local(bytes, |lane| {
                        let (r, c) = cell(lane);
                        load(lane).map(|_| ((c * block + k) * side + (r ^ c)) * bytes)
                    });
                }
            }
            for first in (0..side * block * side).step_by(LANES as usize) {
                let cell = |lane| ((first + lane) / side, (first + lane) % side);
                let store = |lane| {
                    let (line, r) = cell(lane);
                    vector(c0 * block + line, cols, r0 + r, rows / block)
                };
                counter.store(bytes, store);
                counter.local(bytes, |lane| {
                    let (line, r) = cell(lane);
                    store(lane).map(|_| (line * side + (r ^ (line / block))) * bytes)
                });
            }
            Some(counter.model(rows * cols / block))
        }
        gpu::Kernel::Tiles { log_rows, log_cols } => {
            let (log_pad, pad) = crate::tuning::padding(size as usize);
            let log_pad = Ord::max(log_pad, log_cols);
            let (r0, c0) = (second(rows, 1 << log_rows), second(cols, 1 << log_cols));
            let slot = |r: u64, c: u64| {
                let i = (r << log_cols) + c;
                (i + (i >> log_pad) * pad as u64) * size
            };
            for first in (0..params.tile as u64).step_by(LANES as usize) {
                let from = |lane| ((first + lane) >> log_cols, (first + lane) & ((1 << log_cols) - 1));
                let to = |lane| ((first + lane) & ((1 << log_rows) - 1), (first + lane) >> log_rows);
                let inside = |(r, c): (u64, u64)| (r0 + r < rows && c0 + c < cols).then_some((r, c));
                counter.load(size, |lane| inside(from(lane)).map(|(r, c)| ((r0 + r) * cols + c0 + c) * size));
                counter.local(size, |lane| inside(from(lane)).map(|(r, c)| slot(r, c)));
                counter.store(size, |lane| inside(to(lane)).map(|(r, c)| ((c0 + c) * rows + r0 + r) * size));
                counter.local(size, |lane| inside(to(lane)).map(|(r, c)| slot(r, c)));
            }
            Some(counter.model(rows * cols))
        }
    }
}

use device::prepare_kernel;

pub(super) mod device {
    //! Steps with kernels, on OpenCL devices.

    use super::*;
    use crate::runtime::{Backend, Capabilities, ProgramSpec, opencl::ClDevice};

    use oclprim::internals::kernels::TRANSPOSE as TEXT;

    /// One program for all kernels; only the element size matters.
    fn program(size: usize, blocks: [usize; 3], wide: bool, caps: &Capabilities) -> ProgramSpec {
        ProgramSpec::new("ladder/transpose.cl", TEXT, caps)
            .define("T", ["uchar", "ushort", "uint", "ulong"][size.ilog2() as usize])
            .define("OFFSET_T", if wide { "ulong" } else { "uint" })
            .define("BLOCK_PLAIN", blocks[0])
            .define("BLOCK_LOCAL", blocks[1])
            .define("BLOCK_TILE", blocks[2])
    }

    /// All programs that the ladder may build on such a device with its default work-group sizes.
    pub(in crate::layout::transpose) fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
        let blocks = KERNEL_BLOCKS.map(|block| block.min(1 << caps.max_work_group.max(32).ilog2()));
        let of_size = |size| [false, true].map(|wide| program(size, blocks, wide, caps));
        [1, 2, 4, 8].into_iter().flat_map(of_size).collect()
    }

    pub(super) fn prepare_kernel<T: Element>(
        device: &Device,
        kernel: &'static Kernel,
        shared: &Shared<Input<T>>,
        shape: (usize, usize),
        geometry: Geometry,
        blocks: [usize; 3],
    ) -> Result<Climb> {
        let Backend::OpenCl(cl) = device.backend() else {
            return Err(Error::unsupported("a kernel needs an OpenCL device"));
        };
        let (cl, wide) = (cl.clone(), cl.wide(shape.0 * shape.1));
        let program = program(size_of::<T>(), blocks, wide, &*cl.capabilities()?);
        let state = State::new(device, shared, shape, kernel.transposes)?;
        Ok(state.into_case(move |state| launch(&cl, &program, wide, kernel, &geometry, &state.x, &mut state.out)))
    }

    fn launch<T: Element>(
        cl: &ClDevice,
        program: &ProgramSpec,
        wide: bool,
        kernel: &Kernel,
        geometry: &Geometry,
        x: &Buffer<T>,
        out: &mut Buffer<T>,
    ) -> Result<()> {
        let (x, out) = (oclprim::View::from(x).cl(cl)?, crate::Output::from(out).cl(cl, false)?);
        let (across, down) = kernel.groups(geometry);
        let (across, down) = (across as usize, down as usize);
        let launch = cl
            .launch(program, kernel.name)?
            .mem(x.mem())
            .mem(out.mem())
            .offset(geometry.rows, wide)
            .offset(geometry.cols, wide);
        let bytes = kernel.local(geometry) as usize * size_of::<T>();
        let launch = if kernel.argument { launch.local(bytes) } else { launch };
        let groups = [across, down.min(MAX_GROUPS_Y), down.div_ceil(MAX_GROUPS_Y)];
        launch.run(groups, [geometry.x as usize, geometry.y as usize, 1])
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A kernel's work-items load and store the elements that its model predicts. So accesses that are coalesced in
        /// the model, as `models_show_the_effect_of_each_step` asserts, are coalesced on a device. Accesses of the
        /// original SYCL kernels were not: see B25 in `checks/tests/transpose.rs`.
        #[test]
        fn kernels_access_what_their_models_predict() {
            let shape = (70, 130);
            // A driver compiles each kernel separately, so `tiny` takes some kernels only.
            let tiny = std::env::var("OCLPRIM_TEST_LEVEL").as_deref() == Ok("tiny");
            for index in 1..Device::list().len() {
                let device = Device::at(index).unwrap();
                let Backend::OpenCl(cl) = device.backend() else { continue };
                let (caps, name) = (cl.capabilities().unwrap(), device.info());
                let most = 1 << caps.max_work_group.ilog2();
                if most < *BLOCKS.start() {
                    crate::check::log_skip(&name.to_string(), &format!("work-groups of {most}"));
                    continue;
                }
                let blocks = KERNEL_BLOCKS.map(|block| block.min(most));
                let program = program(4, blocks, false, &caps).flag("TRACE", true);
                let x = device.zeroed::<u32>(shape.0 * shape.1).unwrap();
                let tiles = |kernel: &&Kernel| !tiny || matches!(kernel.way, Way::Tile { .. });
                for kernel in KERNELS.iter().filter(tiles) {
                    let g = kernel.geometry(shape, kernel.block.min(most));
                    let mut out = device.filled(x.len(), poison::<u32>()).unwrap();
                    launch(cl, &program, false, kernel, &g, &x, &mut out).unwrap();
                    let got = out.to_vec().unwrap();
                    let (across, down) = kernel.groups(&g);
                    let (mut loads, mut stores) = (vec![None; x.len()], vec![None; x.len()]);
                    for item in 0..across * down * g.x * g.y {
                        let (group, local) = (item / (g.x * g.y), item % (g.x * g.y));
                        for k in 0..kernel.unroll(&g) {
                            let group = (group % across, group / across);
                            let step = kernel.moves(&g, group, (local % g.x, local / g.x), k);
                            step.load.into_iter().for_each(|at| loads[at as usize] = Some(item as u32));
                            step.store.into_iter().for_each(|at| stores[at as usize] = Some(item as u32));
                        }
                    }
                    for (i, &items) in got.iter().enumerate() {
                        let from = if kernel.transposes { i % shape.0 * shape.1 + i / shape.0 } else { i };
                        let (load, store) = (items & 0xFFFF, items >> 16);
                        let want = (loads[from], stores[i]);
                        assert_eq!((Some(load), Some(store)), want, "{name}: {} at {i}", kernel.name);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of the moves of all work-groups, one after another.
    fn simulate(kernel: &Kernel, shape: (usize, usize), block: usize) -> Vec<Option<u64>> {
        let g = kernel.geometry(shape, block);
        let (across, down) = kernel.groups(&g);
        let mut out = vec![None; shape.0 * shape.1];
        for group in 0..across * down {
            let group = (group % across, group / across);
            let mut local = vec![None; kernel.local(&g) as usize];
            let items: Vec<_> = (0..g.x * g.y).map(|i| (i % g.x, i / g.x)).collect();
            let all = || items.iter().flat_map(|&item| (0..kernel.unroll(&g)).map(move |k| (item, k)));
            for (item, k) in all() {
                let step = kernel.moves(&g, group, item, k);
                if let (Some(load), Some(put)) = (step.load, step.put) {
                    assert!(local[put as usize].replace(load).is_none(), "{}: local {put} written twice", kernel.name);
                }
            }
            for (item, k) in all() {
                let step = kernel.moves(&g, group, item, k);
                if let Some(store) = step.store {
                    let value = step.get.map_or(step.load, |get| local[get as usize]);
                    assert!(value.is_some(), "{}: {store} from an unwritten element", kernel.name);
                    let before = std::mem::replace(&mut out[store as usize], value);
                    assert!(before.is_none(), "{}: {store} written twice", kernel.name);
                }
            }
        }
        out
    }

    #[test]
    fn each_kernel_moves_every_element_once_on_any_grid() {
        for (rows, cols) in [(1, 1), (33, 70), (64, 64), (100, 17), (5, 300), (300, 5)] {
            for kernel in &KERNELS {
                for block in [32, kernel.block, 1024] {
                    let out = simulate(kernel, (rows, cols), block);
                    for (i, value) in out.into_iter().enumerate() {
                        let want = if kernel.transposes { i % rows * cols + i / rows } else { i };
                        assert_eq!(
                            value,
                            Some(want as u64),
                            "{} of {rows} x {cols} at {i}, block {block}",
                            kernel.name
                        );
                    }
                }
            }
        }
    }

    fn model(name: &str) -> Model {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name).expect("listed");
        kernel.model(&kernel.geometry((1024, 1024), kernel.block), 4)
    }

    #[test]
    fn models_show_the_effect_of_each_step() {
        let ideal = 1024.0 * 1024.0 / 8.0;
        assert_eq!((model("copy_row").load_sectors, model("copy_row").store_sectors), (ideal, ideal));
        assert_eq!((model("naive_gmem").load_sectors, model("naive_gmem").store_sectors), (ideal, 8.0 * ideal));
        assert_eq!(model("naive_col").store_sectors, ideal);
        assert_eq!((model("sycl_naive").load_sectors, model("sycl_naive").store_sectors), (ideal, 8.0 * ideal));
        for name in ["sycl_local_coalesced", "tile_coalesced"] {
            assert_eq!((model(name).load_sectors, model(name).store_sectors), (ideal, ideal));
            // In one of two requests, all lanes access one bank.
            assert_eq!(model(name).bank_conflicts, 15.5);
        }
        for name in ["sycl_local_pad", "tile_no_conflicts"] {
            assert_eq!(model(name).bank_conflicts, 0.0);
        }
        assert!(model("smem").bank_conflicts > model("smem_pad").bank_conflicts);
    }

    #[test]
    fn kernels_of_the_crate_have_few_bank_conflicts() {
        for (name, caps) in Tuned::samples() {
            for size in [1, 2, 4, 8, 16] {
                // Short rows of small elements share a few banks.
                for (shape, most) in [((1024, 1024), 0.0), ((1023, 1025), 0.0), ((3, 5000), 2.0), ((5000, 12), 2.0)] {
                    let conflicts = own_model(&caps, shape, size).map_or(0.0, |model| model.bank_conflicts);
                    assert!(conflicts <= most, "{name}: {size} bytes, {shape:?}: {conflicts} conflicts");
                }
            }
        }
    }
}
