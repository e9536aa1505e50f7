//! The reduction ladder: the kernels of `cl/ladder/reduce.cl`, then the crate's own.

use super::{Determinism, cpu};
use crate::{
    Buffer, Device, Element, ElementType, Error, Result,
    check::{Failure, bounds::sum_error, data::Data, poison, same},
    ladder::{
        Climb, Ladder, Model, Prepare, Request, Rung, Shared,
        model::{LANES, bank_conflicts, sectors},
    },
    op::{Sum, Usage},
    with_element,
};

/// The ladder's entry in the registry.
pub(crate) struct ReduceLadder;

/// Default work-group sizes of the kernels from chapters 3 and 5 of the book that `cl/ladder/reduce.cl` names.
const BLOCK_R: usize = 512;
const BLOCK_S: usize = 128;
/// The largest work-group size for which `cl/ladder/reduce.cl` has unrolled steps.
const MAX_BLOCK: usize = 8192;

/// Memory of a kernel's tree, which determines its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// In the input; the kernel gets a copy of it.
    InPlace,
    /// In local memory of the work-group's size.
    Local,
    /// In local memory that is an argument.
    LocalArgument,
    /// In registers, with one value per sub-group in local memory.
    Registers,
}

/// Work-items that take part in a step of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tree {
    /// Work-items 0, 2s, 4s, ... add the value at distance s.
    Neighbors,
    /// The same pairs, by work-items 0, 1, 2, ...
    NeighborsPacked,
    /// Work-items below s add the value at distance s.
    Halves,
}

/// A kernel of `cl/ladder/reduce.cl`.
#[derive(Debug)]
struct Kernel {
    name: &'static str,
    step: &'static str,
    block: usize,
    unroll: usize,
    memory: Memory,
    tree: Tree,
}

const fn kernel(
    name: &'static str,
    block: usize,
    unroll: usize,
    memory: Memory,
    tree: Tree,
    step: &'static str,
) -> Kernel {
    Kernel { name, step, block, unroll, memory, tree }
}

#[rustfmt::skip]
const KERNELS: [Kernel; 16] = {
    use {Memory::*, Tree::*};
    [
        kernel("neighbored", BLOCK_R, 1, InPlace, Neighbors,
            "in global memory, neighbours first: active work-items are ever further apart"),
        kernel("neighbored_less", BLOCK_R, 1, InPlace, NeighborsPacked,
            "the same pairs by the first work-items: some sub-groups are idle as a whole, instead of all in part"),
        kernel("interleaved", BLOCK_R, 1, InPlace, Halves,
            "the upper half onto the lower: neighbouring work-items access neighbouring elements"),
        kernel("unrolling2", BLOCK_R, 2, InPlace, Halves,
            "each work-item first adds 2 elements, a work-group apart: half the work-groups"),
        kernel("unrolling4", BLOCK_R, 4, InPlace, Halves,
            "4 elements per work-item: more loads in flight"),
        kernel("unrolling8", BLOCK_R, 8, InPlace, Halves,
            "8 elements per work-item"),
        kernel("unroll_warps8", BLOCK_R, 8, InPlace, Halves,
            "the last 6 steps wait for the sub-group only, if it is known to have 32 work-items"),
        kernel("complete_unroll8", BLOCK_R, 8, InPlace, Halves,
            "no loop left: each step has a test of the work-group size"),
        kernel("template_unroll8", BLOCK_R, 8, InPlace, Halves,
            "the work-group size is a constant: the compiler drops the tests"),
        kernel("gmem", BLOCK_S, 1, InPlace, Halves,
            "start of the second ladder: 1 element per work-item, unrolled, in global memory"),
        kernel("smem", BLOCK_S, 1, Memory::Local, Halves,
            "the tree in local memory: the input is read once and kept"),
        kernel("smem_dyn", BLOCK_S, 1, LocalArgument, Halves,
            "local memory sized by the host"),
        kernel("gmem_unroll", BLOCK_S, 4, InPlace, Halves,
            "the step gmem, but each work-item first adds 4 elements"),
        kernel("smem_unroll", BLOCK_S, 4, Memory::Local, Halves,
            "the step smem, but each work-item first adds 4 elements"),
        kernel("smem_unroll_dyn", BLOCK_S, 4, LocalArgument, Halves,
            "local memory sized by the host"),
        kernel("shuffle_xor", BLOCK_S, 1, Registers, Halves,
            "1 element per work-item; sub-groups exchange registers, then combine in local memory"),
    ]
};
/// Text of the step `shuffle_xor` on devices without sub-groups that fit the work-group.
const SHUFFLE_EMULATED: &str =
    "1 element per work-item; sub-groups are emulated in local memory, because the device has no fitting ones";

/// The input and its sum by the CPU, made when the first step is prepared.
struct Input<T> {
    host: Vec<T>,
    /// The CPU's sum, which is exact for integers.
    sum: T,
    /// For floats: the sum in f64.
    reference: f64,
}

impl<T: Element> Input<T> {
    fn new(n: usize) -> Result<Self> {
        let host = Data::Random.generate::<T>(n, n as u64);
        let sum = Device::cpu().reduce(&host, Sum)?;
        let reference = host.iter().map(|x| x.to_f64()).sum();
        Ok(Self { host, sum, reference })
    }

    /// Compares a sum in which each element passes through at most `depth` additions.
    fn verify(&self, got: T, depth: f64) -> Result<(), Failure> {
        if T::TYPE.is_float() {
            crate::check::close(got, self.reference, sum_error(&self.host, depth), "sum")
        } else {
            same(&[got], &[self.sum], "sum")
        }
    }
}

impl Ladder for ReduceLadder {
    fn name(&self) -> &'static str {
        "reduce"
    }

    fn rungs(&self, request: &Request, device: &Device) -> Result<Vec<Rung>> {
        let element = request.element;
        request.addressable(Some(request.n))?;
        if request.n == 0 {
            return Err(Error::invalid("the reduce ladder needs at least 1 element, got 0"));
        }
        if matches!(element, ElementType::F16 | ElementType::Bf16) {
            return Err(Error::invalid(format!(
                "the reduce ladder adds in its element type, and {element} is too coarse for that"
            )));
        }
        with_element!(element, T => steps::<T>(request, device))
    }
}

/// [`passes`] for one element type.
type Passes<'p> = dyn Fn(&Device, usize, Determinism) -> Result<(f64, Model)> + 'p;

fn steps<T: Element>(request: &Request, device: &Device) -> Result<Vec<Rung>> {
    let n = request.n;
    let shared = Shared::new(move || Input::<T>::new(n));
    let prepare = |kernel: &'static Kernel, block: usize| -> Box<Prepare> {
        let shared = shared.clone();
        Box::new(move |device| device::prepare(device, kernel, &shared, n, block))
    };
    let mut steps = kernel_steps(request, device, T::TYPE, &passes::<T>, &prepare)?;
    // For integers, `Fast` and `Fixed` are the same kernels.
    let own: &[(Determinism, &str, &str)] = if T::TYPE.is_float() {
        &[
            (Determinism::Fast, "reduce fast", "the crate's own: 64 KiB tiles, many per work-group, in any order"),
            (Determinism::Fixed, "reduce fixed", "the crate's default: a tree given by n, the same bits everywhere"),
        ]
    } else {
        &[(Determinism::Fast, "reduce", "the crate's own: 64 KiB tiles, many per work-group, 16-byte loads")]
    };
    let unavailable = lacks_fp64(T::TYPE, device)?;
    let runs_kernels = !device.is_cpu() && unavailable.is_none();
    for &(determinism, name, step) in own {
        let shared = shared.clone();
        steps.push(Rung {
            name,
            step,
            bytes: bytes(n, size_of::<T>()),
            model: if runs_kernels { Some(passes::<T>(device, n, determinism)?.1) } else { None },
            unavailable: unavailable.clone(),
            prepare: Box::new(move |device| prepare_own(device, &shared, n, determinism)),
        });
    }
    Ok(steps)
}

/// Bytes that a sum reads and writes: each element once, and the result.
fn bytes(n: usize, size: usize) -> u64 {
    (n as u64 + 1) * size as u64
}

fn lacks_fp64(element: ElementType, device: &Device) -> Result<Option<String>> {
    Ok(device.capabilities()?.and_then(|caps| caps.supports(element).err()).map(|error| error.to_string()))
}

/// Largest number of additions on the path of an element in the crate's own sum of `n` elements, and the sum's cost.
pub(super) fn passes<T: Element>(device: &Device, n: usize, determinism: Determinism) -> Result<(f64, Model)> {
    passes_of(device, n, &super::gpu::Form::of::<T, Sum>(determinism), (cpu::tile::<T>(), cpu::lanes::<T>()))
}

/// [`passes`] of an operation. `tile` and `lanes` are those of the CPU backend.
fn passes_of(
    device: &Device,
    n: usize,
    form: &super::gpu::Form,
    (tile, lanes): (usize, usize),
) -> Result<(f64, Model)> {
    let size = form.element.size();
    // An entry has the numbers of inputs and of outputs of a pass.
    let mut passes = Vec::new();
    let mut model = Model::default();
    if let (crate::runtime::Backend::OpenCl(cl), None) = (device.backend(), lacks_fp64(form.element, device)?) {
        let caps = crate::tuning::Tuned::from(cl.capabilities()?);
        let plan = super::gpu::plan(n, form, super::gpu::Origin::Memory(true), &caps, &|n| cl.wide(n))?;
        // The tree is the same in every work-group of every pass.
        let width = if caps.sub_group.backend.is_hardware() { caps.sub_group.width } else { 1 };
        model.bank_conflicts = tree_conflicts(plan.passes[0].work_group as u64, width.into(), form.acc.size() as u64);
        passes.extend(plan.passes.iter().map(|pass| (pass.n, pass.outputs)));
    }
    if passes.is_empty() {
        let mut left = n;
        while left > 1 || passes.is_empty() {
            passes.push((left, left.div_ceil(tile)));
            left = left.div_ceil(tile);
        }
    }
    let mut depth = 0.0;
    for (n, outputs) in passes {
        depth += (16 * n.div_ceil(tile).div_ceil(outputs) + lanes.ilog2() as usize) as f64;
        model.load_sectors += (n * size).div_ceil(32) as f64;
        model.store_sectors += outputs as f64;
    }
    Ok((depth, model))
}

/// Bank conflicts of `wg_reduce` in `cl/lib/workgroup.cl`. Every `width` work-items write one value to local memory,
/// where a tree combines neighbours first.
fn tree_conflicts(work_group: u64, width: u64, size: u64) -> f64 {
    let count = work_group / width;
    if work_group == 1 {
        return 0.0;
    }
    let mut counter = Counter::new(size, work_group);
    counter.local(&|i| (i % width == 0).then_some(i / width));
    let mut distance = 1;
    while distance < count {
        let d = distance;
        let own = |i: u64| Some(2 * d * i).filter(|&i| i + d < count);
        counter.local(&own);
        counter.local(&|i| own(i).map(|i| i + d));
        counter.local(&own);
        distance *= 2;
    }
    counter.local(&|i| (i == 0).then_some(0));
    counter.conflicts / counter.local_requests
}

/// The crate's own sum as a step.
fn prepare_own<T: Element>(
    device: &Device,
    shared: &Shared<Input<T>>,
    n: usize,
    determinism: Determinism,
) -> Result<Climb> {
    struct State<T: Element> {
        device: Device,
        x: Buffer<T>,
        out: Buffer<T>,
    }
    let (depth, _) = passes::<T>(device, n, determinism)?;
    let state = State { device: device.clone(), x: device.upload(&shared.get()?.host)?, out: device.uninit(1)? };
    let shared = shared.clone();
    Ok(Climb::new(
        state,
        |state| state.out.write(&[poison()]),
        move |State { device, x, out }| device.reduce_into(&*x, Sum.with(determinism), out),
        move |state| shared.get()?.verify(state.out.to_vec()?[0], depth),
    ))
}

/// The index of the element that a work-item accesses, if it accesses one.
type Access<'a> = dyn Fn(u64) -> Option<u64> + 'a;

/// Cost of a kernel by its access pattern.
struct Counter {
    size: u64,
    block: u64,
    model: Model,
    local_requests: f64,
    conflicts: f64,
}

impl Counter {
    fn new(size: u64, block: u64) -> Self {
        Self { size, block, model: Model::default(), local_requests: 0.0, conflicts: 0.0 }
    }

    /// Calls `count` for the request of every 32 work-items of a work-group. Work-item i accesses element `at(i)`.
    fn warps(&self, at: &Access<'_>, count: &mut dyn FnMut(&Access<'_>)) {
        for warp in 0..self.block.div_ceil(LANES) {
            let lane = |lane: u64| Some(warp * LANES + lane).filter(|&item| item < self.block).and_then(at);
            if (0..LANES).any(|l| lane(l).is_some()) {
                count(&lane);
            }
        }
    }

    fn global(&self, at: &Access<'_>) -> f64 {
        let mut sum = 0.0;
        self.warps(at, &mut |lane| sum += sectors(self.size, |l| lane(l).map(|i| i * self.size)));
        sum
    }

    fn load(&mut self, at: &Access<'_>) {
        self.model.load_sectors += self.global(at);
    }

    fn store(&mut self, at: &Access<'_>) {
        self.model.store_sectors += self.global(at);
    }

    fn local(&mut self, at: &Access<'_>) {
        let (mut requests, mut conflicts) = (0.0, 0.0);
        let size = self.size;
        self.warps(at, &mut |lane| {
            if size <= 4 {
                requests += 1.0;
                conflicts += bank_conflicts(|l| lane(l).map(|i| i * size / 4));
            } else {
                // 8-byte accesses take 16 lanes at a time, two words per lane.
                for half in 0..2 {
                    requests += 1.0;
                    conflicts += bank_conflicts(|l| lane(16 * half + l / 2).map(|i| 2 * i + l % 2));
                }
            }
        });
        self.local_requests += requests;
        self.conflicts += conflicts;
    }

    /// Adds the cost of one work-group with `left` elements.
    fn group(&mut self, kernel: &Kernel, left: u64) {
        let block = self.block;
        let in_place = kernel.memory == Memory::InPlace;
        let count = if in_place { Ord::min(left, block) } else { block };
        if kernel.unroll > 1 || !in_place {
            for k in 0..kernel.unroll as u64 {
                self.load(&|i| Some(i + k * block).filter(|&i| i < left));
            }
            match kernel.memory {
                Memory::InPlace => self.store(&|i| Some(i).filter(|&i| i < count)),
                Memory::Local | Memory::LocalArgument => self.local(&Some),
                Memory::Registers => {}
            }
        }
        if kernel.memory == Memory::Registers {
            // In each round, every sub-group of 32 passes one value through local memory, until one value is left.
            let mut values = block.div_ceil(LANES);
            while values > 1 {
                self.local(&|i| Some(i / LANES).filter(|&j| i % LANES == 0 && j < values));
                self.local(&|i| Some(i).filter(|&i| i < values));
                values = values.div_ceil(LANES);
            }
        } else {
            let mut distance = 1;
            while distance < block {
                // The order of the steps does not change their total cost.
                let s = distance;
                let own = |i: u64| match kernel.tree {
                    Tree::Neighbors => Some(i).filter(|&i| i % (2 * s) == 0 && i + s < count),
                    Tree::NeighborsPacked => Some(2 * s * i).filter(|&i| i + s < count),
                    Tree::Halves => Some(i).filter(|&i| i < s && i + s < count),
                };
                let other = |i: u64| own(i).map(|i| i + s);
                if in_place {
                    self.load(&own);
                    self.load(&other);
                    self.store(&own);
                } else {
                    self.local(&own);
                    self.local(&other);
                    self.local(&own);
                }
                distance *= 2;
            }
            if in_place {
                self.load(&|i| (i == 0).then_some(0));
            } else {
                self.local(&|i| (i == 0).then_some(0));
            }
        }
        // The work-group stores its partial sum.
        self.model.store_sectors += 1.0;
    }
}

impl Kernel {
    fn groups(&self, n: usize, block: usize) -> usize {
        n.div_ceil(self.unroll * block)
    }

    /// Every full work-group costs the same; the last one may have fewer elements.
    fn model(&self, n: usize, block: usize, size: usize, second: Model) -> Model {
        let [mut full, mut short] = [0; 2].map(|_| Counter::new(size as u64, block as u64));
        let tile = self.unroll * block;
        if n >= tile {
            full.group(self, tile as u64);
        }
        if !n.is_multiple_of(tile) {
            short.group(self, (n % tile) as u64);
        }
        let times = (n / tile) as f64;
        let requests = full.local_requests * times + short.local_requests;
        // Bank conflicts count this kernel only; sectors also count `second`, the kernels that reduce its partial sums.
        let conflicts = full.conflicts * times + short.conflicts;
        Model {
            load_sectors: full.model.load_sectors * times + short.model.load_sectors + second.load_sectors,
            store_sectors: full.model.store_sectors * times + short.model.store_sectors + second.store_sectors,
            bank_conflicts: if requests > 0.0 { conflicts / requests } else { 0.0 },
        }
    }
}

use device::kernel_steps;

/// Steps with kernels, for the CPU backend. It has models of them, but cannot run them.
fn cpu_only(request: &Request, device: &Device, size: usize, passes: &Passes<'_>) -> Result<Vec<Rung>> {
    KERNELS
        .iter()
        .map(|kernel| {
            let block = request.block.unwrap_or(kernel.block);
            check_block(block, MAX_BLOCK)?;
            let second = passes(device, kernel.groups(request.n, block), Determinism::Fast)?.1;
            Ok(Rung {
                name: kernel.name,
                step: kernel.step,
                bytes: bytes(request.n, size),
                model: Some(kernel.model(request.n, block, size, second)),
                unavailable: Some("a kernel needs an OpenCL device".into()),
                prepare: Box::new(|_| Err(Error::unsupported("a kernel needs an OpenCL device"))),
            })
        })
        .collect()
}

fn check_block(block: usize, most: usize) -> Result<()> {
    if block.is_power_of_two() && (2..=most).contains(&block) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a block of {block} work-items: the reduce ladder takes powers of two from 2 to {most}"
    )))
}

pub(super) mod device {
    //! Steps with kernels, on OpenCL devices.

    use super::*;
    use crate::{
        ladder::{GUARD, intact},
        runtime::{Backend, Capabilities, ProgramSpec, SubGroup, SubGroupBackend, opencl::ClDevice},
    };

    use oclprim::internals::kernels::REDUCE as TEXT;

    /// Largest work-group size of the kernels on a device.
    fn most(caps: &Capabilities, size: usize) -> usize {
        // Local memory holds either a tree, or the words of emulated shuffles and a value for every two work-items.
        let local = caps.local_bytes / size.max(4 + size / 2);
        let most = caps.max_work_group.min(local).clamp(1, MAX_BLOCK);
        1 << most.ilog2()
    }

    /// Sub-groups for the kernels: those of the crate's own kernels, if they fit the work-group. If the crate's kernels
    /// use no sub-groups, such as on CPU drivers, the ladder takes sub-groups that passed the self-test. Otherwise it
    /// emulates them.
    fn sub_groups(caps: &Capabilities, block: usize) -> SubGroup {
        let fits = |group: &&SubGroup| {
            group.backend.is_hardware()
                && (2..=block).contains(&(group.width as usize))
                && block.is_multiple_of(group.width as usize)
        };
        let chosen = Some(&caps.sub_group).filter(fits);
        let passed = caps.sub_groups.iter().filter(|_| caps.sub_group.backend == SubGroupBackend::None).find(fits);
        let mut imitated = SubGroup::NONE;
        (imitated.backend, imitated.width) = (SubGroupBackend::Local, block.min(32) as u32);
        *chosen.or(passed).unwrap_or(&imitated)
    }

    /// One program for all kernels of a work-group size and type.
    fn program(element: ElementType, block: usize, wide: bool, caps: &Capabilities) -> ProgramSpec {
        let mut own = caps.clone();
        own.sub_group = sub_groups(caps, block);
        ProgramSpec::with_sub_groups("ladder/reduce.cl", TEXT, &own)
            .element("T", element)
            .element("A", element)
            .with(["-DOP_SUM"])
            .define("WG", block)
            .define("OFFSET_T", if wide { "ulong" } else { "uint" })
    }

    /// All programs that the ladder may build on such a device with its default work-group sizes.
    pub(in crate::reduce) fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
        let mut programs = Vec::new();
        for element in ElementType::ALL {
            let narrow = matches!(element, ElementType::F16 | ElementType::Bf16);
            if narrow || caps.supports(element).is_err() {
                continue;
            }
            for block in [BLOCK_R, BLOCK_S] {
                let block = block.min(most(caps, element.size()));
                programs.extend([false, true].map(|wide| program(element, block, wide, caps)));
            }
        }
        programs
    }

    pub(super) fn kernel_steps(
        request: &Request,
        device: &Device,
        element: ElementType,
        passes: &Passes<'_>,
        prepare: &dyn Fn(&'static Kernel, usize) -> Box<Prepare>,
    ) -> Result<Vec<Rung>> {
        let size = element.size();
        let Backend::OpenCl(cl) = device.backend() else { return cpu_only(request, device, size, passes) };
        let (n, caps) = (request.n, cl.capabilities()?);
        let most = most(&caps, size);
        if let Some(block) = request.block {
            check_block(block, most)?;
        }
        if most < 2 {
            return Err(Error::unsupported(format!("the device has work-groups of {most}, the reduce ladder needs 2")));
        }
        let unavailable = lacks_fp64(element, device)?;
        let step = |kernel: &'static Kernel| {
            let block = request.block.unwrap_or(kernel.block.min(most));
            let emulated = kernel.memory == Memory::Registers && !sub_groups(&caps, block).backend.is_hardware();
            let second = passes(device, kernel.groups(n, block), Determinism::Fast)?.1;
            Ok(Rung {
                name: kernel.name,
                step: if emulated { SHUFFLE_EMULATED } else { kernel.step },
                bytes: bytes(n, size),
                model: Some(kernel.model(n, block, size, second)),
                unavailable: unavailable.clone(),
                prepare: prepare(kernel, block),
            })
        };
        KERNELS.iter().map(step).collect()
    }

    /// State of a step. The crate's own kernels reduce the partial sums, within the timed run.
    struct State<T: Element> {
        device: Device,
        cl: ClDevice,
        kernel: &'static Kernel,
        program: ProgramSpec,
        n: usize,
        block: usize,
        wide: bool,
        /// The input, and poison after its `n` elements, so that reads past the end show.
        x: Buffer<T>,
        /// Copy of `x` for kernels that reduce in place and destroy it.
        copy: Option<Buffer<T>>,
        /// The partial sums, and a guard after them.
        partials: Buffer<T>,
        out: Buffer<T>,
    }

    pub(super) fn prepare<T: Element>(
        device: &Device,
        kernel: &'static Kernel,
        shared: &Shared<Input<T>>,
        n: usize,
        block: usize,
    ) -> Result<Climb> {
        let Backend::OpenCl(cl) = device.backend() else {
            return Err(Error::unsupported("a kernel needs an OpenCL device"));
        };
        let caps = cl.capabilities()?;
        check_block(block, most(&caps, size_of::<T>()))?;
        let (wide, groups) = (cl.wide(n), kernel.groups(n, block));
        let all = n + kernel.unroll * block;
        let mut x = device.uninit(all)?;
        x.view_mut(..n)?.write(&shared.get()?.host)?;
        x.view_mut(n..)?.fill(poison())?;
        let state = State::<T> {
            device: device.clone(),
            cl: cl.clone(),
            kernel,
            program: program(T::TYPE, block, wide, &caps),
            n,
            block,
            wide,
            x,
            copy: if kernel.memory == Memory::InPlace { Some(device.uninit(all)?) } else { None },
            partials: device.uninit(groups + GUARD)?,
            out: device.uninit(1)?,
        };
        let depth = (kernel.unroll + block.ilog2() as usize) as f64 + passes::<T>(device, groups, Determinism::Fast)?.0;
        let shared = shared.clone();
        let verify = move |state: &mut State<T>| {
            shared.get()?.verify(state.out.to_vec()?[0], depth)?;
            intact(&state.partials.view(groups..)?.to_vec()?)
        };
        Ok(Climb::new(state, State::reset, State::run, verify))
    }

    impl<T: Element> State<T> {
        fn reset(&mut self) -> Result<()> {
            if let Some(copy) = &self.copy {
                let (from, to) = (oclprim::View::from(&self.x).cl(&self.cl)?, oclprim::View::from(copy).cl(&self.cl)?);
                self.cl.copy((from.mem(), 0), (to.mem(), 0), size_of::<T>() * self.x.len())?;
            }
            self.partials.fill(poison())?;
            self.out.fill(poison())
        }

        fn run(&mut self) -> Result<()> {
            let x = oclprim::View::from(self.copy.as_ref().unwrap_or(&self.x)).cl(&self.cl)?;
            let partials = oclprim::View::from(&self.partials).cl(&self.cl)?;
            let mut launch = self
                .cl
                .launch(&self.program, self.kernel.name)?
                .mem(x.mem())
                .offset(self.n as u64, self.wide)
                .mem(partials.mem())
                .scalar(self.block as u32);
            if self.kernel.memory == Memory::LocalArgument {
                launch = launch.local(size_of::<T>() * self.block);
            }
            launch.run([self.kernel.groups(self.n, self.block), 1, 1], [self.block, 1, 1])?;
            let partials = self.partials.view(..self.partials.len() - GUARD)?;
            self.device.reduce_into(partials, Sum.fast(), &mut self.out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tree_conflicts;

    #[test]
    fn trees_of_neighbours_have_bank_conflicts() {
        assert_eq!(tree_conflicts(1, 1, 4), 0.0);
        // Each of 8 sub-groups has one value, in a bank of its own.
        assert_eq!(tree_conflicts(256, 32, 4), 0.0);
        // Two requests write the 64 values, and one reads the result. Each of the 6 steps between has three requests.
        // In all steps except the last, a bank has two words.
        let requests = 2.0 + 3.0 * 6.0 + 1.0;
        assert_eq!(tree_conflicts(64, 1, 4), 3.0 * 5.0 / requests);
    }
}
