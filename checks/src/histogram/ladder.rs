//! The histogram ladder: the kernels of `cl/ladder/histogram.cl`, then the crate's own.

use super::{Accumulate, Bins, bins::OUTSIDE, shared::Zipf};
use crate::{
    Buffer, Device, Error, Integer, Result,
    check::{data::Rng, poison, same},
    ladder::{
        Climb, Distribution, Ladder, Model, Request, Rung, Shared,
        model::{LANES, bank_conflicts, sectors},
    },
    parallel, with_integer,
};

/// The ladder's entry in the registry.
pub(crate) struct HistogramLadder;

/// Default work-group size, as in the article whose kernels `cl/ladder/histogram.cl` contains.
const BLOCK: usize = 1024;

/// A step, by the memory in which its kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Global,
    Persist,
    /// In local memory, with one work-group per tile of samples.
    LocalFull,
    /// In local memory, with as many work-groups as run at a time.
    LocalCapped,
    Merge,
}

#[rustfmt::skip]
const STEPS: [(Step, &str, &str); 5] = [
    (Step::Global, "v1_global",
        "one sample per work-item, one atomic addition to global memory per sample"),
    (Step::Persist, "v1_persist",
        "the same with a cache hint: the L2 cache keeps the counters, the samples stream through"),
    (Step::LocalFull, "v2_local full grid",
        "each work-group counts in local memory, then adds its table to the global one; still one sample per work-item"),
    (Step::LocalCapped, "v2_local capped grid",
        "the same kernel with as many work-groups as run at a time: far fewer tables to add"),
    (Step::Merge, "v3_local + v3_merge",
        "the capped grid; work-groups write their tables, then a second kernel adds them without atomics"),
];

/// The samples, and their counts by the CPU.
struct Samples<T> {
    host: Vec<T>,
    counts: Vec<u32>,
    outside: [u64; OUTSIDE],
}

/// Function that draws the bin number of the next sample. It returns `bins` for a sample outside of the bins.
fn draw(distribution: Distribution, bins: usize, seed: u64) -> impl FnMut() -> usize {
    let (zipf, mut rng) = (Zipf::new(bins), Rng::new(seed));
    move || match distribution {
        Distribution::Uniform => rng.below(bins as u64) as usize,
        Distribution::Zipf => zipf.sample(&mut rng),
        Distribution::Constant => bins / 2,
        Distribution::Outside if rng.below(2) == 0 => bins,
        Distribution::Outside => rng.below(bins as u64) as usize,
    }
}

fn samples<T: Integer>(request: &Request) -> Result<Samples<T>> {
    let bins = request.bins as i128;
    let strangers = [-1, bins, T::LOWEST.to_i128(), T::HIGHEST.to_i128()];
    let mut host = vec![T::ZERO; request.n];
    parallel::chunks_mut(&mut host, 1 << 16, &|i, chunk| {
        let mut bin = draw(request.distribution, request.bins, i as u64);
        for (k, x) in chunk.iter_mut().enumerate() {
            let bin = bin() as i128;
            // In a narrow type, a value of `strangers` can be a bin's number. The CPU counts it in that bin, too.
            *x = T::from_i128(if bin < bins { bin } else { strangers[k % strangers.len()] });
        }
    });
    let mut counts = vec![0; request.bins];
    let mut outside = [0; OUTSIDE];
    Device::cpu().histogram_into(&host, &Bins::ids(request.bins)?, &mut counts, &mut outside, Accumulate::Overwrite)?;
    Ok(Samples { host, counts, outside })
}

impl Ladder for HistogramLadder {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn rungs(&self, request: &Request, device: &Device) -> Result<Vec<Rung>> {
        with_integer!(request.element, T => steps::<T>(request, device), {
            Err(Error::invalid(format!("the histogram ladder counts integers, not {}", request.element)))
        })
    }
}

fn steps<T: Integer>(request: &Request, device: &Device) -> Result<Vec<Rung>> {
    let (n, bins) = (request.n, request.bins);
    if n == 0 || n > u32::MAX as usize {
        return Err(Error::invalid(format!("the histogram ladder takes 1 to {} samples, not {n}", u32::MAX)));
    }
    Bins::<T>::ids(bins)?;
    if bins as i128 - 1 > T::HIGHEST.to_i128() {
        return Err(Error::invalid(format!("{} has too few values to number {bins} bins", T::TYPE)));
    }
    let shared = {
        let request = request.clone();
        Shared::new(move || samples::<T>(&request))
    };
    let bytes = (n * size_of::<T>() + bins * size_of::<u32>()) as u64;
    let mut steps = Vec::new();
    for (step, name, text) in STEPS {
        let (geometry, unavailable) = match kernels::geometry(step, request, device)? {
            Ok(geometry) => (geometry, None),
            Err(reason) => (kernels::Geometry::default(), Some(reason)),
        };
        let (shared, request) = (shared.clone(), request.clone());
        steps.push(Rung {
            name,
            step: text,
            bytes,
            model: unavailable.is_none().then(|| model::<T>(step, &request, geometry.groups)),
            unavailable,
            prepare: Box::new(move |device| kernels::prepare::<T>(device, step, &shared, &request)),
        });
    }
    let own = own_model::<T>(request, device)?;
    let request = request.clone();
    steps.push(Rung {
        name: "histogram",
        step: "the crate's own: 16-byte loads, several in flight; tables by lane, or ranges of bins that fit",
        bytes,
        model: own,
        unavailable: None,
        prepare: Box::new(move |device| prepare_own::<T>(device, &shared, &request)),
    });
    Ok(steps)
}

/// Mean cost of requests of 32 samples. `cost` takes a function from a lane to its bin.
fn expected(request: &Request, cost: impl Fn(&dyn Fn(u64) -> u64) -> f64) -> f64 {
    const REQUESTS: usize = 1000;
    let mut bin = draw(request.distribution, request.bins, 1);
    let mut sum = 0.0;
    for _ in 0..REQUESTS {
        let lanes: Vec<u64> = (0..LANES).map(|_| bin() as u64).collect();
        sum += cost(&|lane| lanes[lane as usize]);
    }
    sum / REQUESTS as f64
}

/// Number of sectors of `count` contiguous elements of 4 bytes.
fn words(count: usize) -> f64 {
    count.div_ceil(8) as f64
}

/// Cost of a kernel of `cl/ladder/histogram.cl`. Lanes that add to one counter count as one access.
fn model<T>(step: Step, request: &Request, groups: usize) -> Model {
    let (n, slots) = (request.n, request.bins + 1);
    let mut model = Model { load_sectors: (n * size_of::<T>()).div_ceil(32) as f64, ..Model::default() };
    let zeroed = words(slots);
    match step {
        Step::Global | Step::Persist => {
            let touched = expected(request, |bin| sectors(4, |lane| Some(4 * bin(lane))));
            model.store_sectors = touched * n.div_ceil(LANES as usize) as f64 + zeroed;
        }
        Step::LocalFull | Step::LocalCapped => model.store_sectors = groups as f64 * words(slots) + zeroed,
        Step::Merge => {
            // Neighbouring work-items of the merging kernel read counters of different tables: one sector each.
            model.load_sectors += (groups * slots) as f64;
            model.store_sectors = groups as f64 * words(slots) + slots as f64;
        }
    }
    if !matches!(step, Step::Global | Step::Persist) {
        model.bank_conflicts = expected(request, |bin| bank_conflicts(|lane| Some(bin(lane))));
    }
    model
}

fn own_model<T: Integer>(request: &Request, device: &Device) -> Result<Option<Model>> {
    use super::gpu::{Form, Tables, plan};
    use crate::{ElementType, runtime::Backend};
    let Backend::OpenCl(cl) = device.backend() else { return Ok(None) };
    let (n, bins) = (request.n, request.bins);
    let plan = plan(n, Form::of(&Bins::<T>::ids(bins)?), ElementType::U32, &cl.capabilities()?.into(), usize::MAX)?;
    let slots = plan.table_count * (bins + OUTSIDE);
    // The counting kernel reads the samples and writes tables, and the merging kernel writes counters.
    let load_sectors = (n * size_of::<T>()).div_ceil(32) as f64;
    let mut model = Model { load_sectors, store_sectors: words(bins) + words(slots), bank_conflicts: 0.0 };
    match plan.tables {
        Tables::Local { ranges, replica_bits, .. } => {
            model.load_sectors = model.load_sectors * ranges as f64 + words(slots);
            let replicas = 1 << replica_bits;
            let word = |bin: u64, lane: u64| bin * replicas + lane % replicas;
            model.bank_conflicts = expected(request, |bin| bank_conflicts(|lane| Some(word(bin(lane), lane))));
        }
        // The kernels read the samples twice. They write and read the 16-bit number of each sample's bin within its
        // range. The model omits the extra cost of scattered stores.
        Tables::Partition(_) => {
            let numbers = n.div_ceil(16) as f64;
            model.load_sectors = 2.0 * model.load_sectors + numbers + words(slots);
            model.store_sectors += numbers;
        }
        Tables::Global => {
            let touched = expected(request, |bin| sectors(4, |lane| Some(4 * bin(lane))));
            model.load_sectors += words(slots);
            model.store_sectors += touched * n.div_ceil(LANES as usize) as f64;
        }
    }
    Ok(Some(model))
}

/// The crate's own histogram as a step.
fn prepare_own<T: Integer>(device: &Device, shared: &Shared<Samples<T>>, request: &Request) -> Result<Climb> {
    struct State<T: Integer> {
        device: Device,
        x: Buffer<T>,
        bins: Bins<T>,
        counts: Buffer<u32>,
        outside: Buffer<u64>,
    }
    let state = State {
        device: device.clone(),
        x: device.upload(&shared.get()?.host)?,
        bins: Bins::ids(request.bins)?,
        counts: device.uninit(request.bins)?,
        outside: device.uninit(OUTSIDE)?,
    };
    let shared = shared.clone();
    Ok(Climb::new(
        state,
        |state| {
            state.counts.fill(poison())?;
            state.outside.fill(poison())
        },
        |State { device, x, bins, counts, outside }| {
            device.histogram_into(&*x, bins, counts, outside, Accumulate::Overwrite)
        },
        move |state| {
            same(&state.counts.to_vec()?, &shared.get()?.counts, "counts")?;
            same(&state.outside.to_vec()?, &shared.get()?.outside, "outside")
        },
    ))
}

pub(super) mod kernels {
    //! Steps with kernels, on OpenCL devices.

    use super::*;
    use crate::{
        ElementType,
        ladder::{GUARD, intact},
        runtime::{Backend, Capabilities, DeviceClass, ProgramSpec, opencl::ClDevice},
    };

    use oclprim::internals::kernels::HISTOGRAM as TEXT;
    /// Work-group size of the merging kernel, as in the same article as [`BLOCK`].
    const MERGE_BLOCK: usize = 256;
    /// Work-items that a compute unit of a GPU runs at a time.
    const RESIDENT: usize = 2048;

    #[derive(Clone, Copy, Debug, Default)]
    pub(in crate::histogram) struct Geometry {
        block: usize,
        pub(super) groups: usize,
    }

    /// Geometry of a step, or the reason why it cannot run.
    pub(super) fn geometry(step: Step, request: &Request, device: &Device) -> Result<Result<Geometry, String>> {
        let Backend::OpenCl(cl) = device.backend() else { return Ok(Err("a kernel needs an OpenCL device".into())) };
        let caps = cl.capabilities()?;
        let most = 1 << caps.max_work_group.max(1).ilog2();
        let block = request.block.unwrap_or(BLOCK.min(most));
        if !block.is_power_of_two() || block > most {
            let text = format!("a block of {block} work-items: the histogram ladder takes powers of two up to {most}");
            return Err(Error::invalid(text));
        }
        let full = request.n.div_ceil(block);
        let units = caps.compute_units.max(1) as usize;
        let resident = if caps.class == DeviceClass::Cpu { 2 } else { (RESIDENT / block).max(1) };
        let capped = full.min(units * resident);
        let slots = request.bins + 1;
        if matches!(step, Step::LocalFull | Step::LocalCapped | Step::Merge) && 4 * slots > caps.local_bytes {
            let (needed, there) = (4 * slots, caps.local_bytes);
            return Ok(Err(format!("a table of {needed} bytes does not fit {there} bytes of local memory")));
        }
        if step == Step::Persist && !persists(&caps) {
            return Ok(Err("cache hints need inline PTX of compute capability 8.0 or later".into()));
        }
        let groups = if matches!(step, Step::LocalCapped | Step::Merge) { capped } else { full };
        Ok(Ok(Geometry { block, groups }))
    }

    fn persists(caps: &Capabilities) -> bool {
        caps.ptx && caps.compute_capability >= 80
    }

    fn program(element: ElementType, block: usize, bins: usize, caps: &Capabilities) -> ProgramSpec {
        let program = ProgramSpec::new("ladder/histogram.cl", TEXT, caps)
            .element("T", element)
            .element("A", element)
            .define("WG", block)
            .define("MERGE_WG", block.min(MERGE_BLOCK));
        if 4 * (bins + 1) <= caps.local_bytes { program.define("LOCAL_SLOTS", bins + 1) } else { program }
    }

    /// All programs that the ladder may build with its default work-group size.
    pub(in crate::histogram) fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
        let block = BLOCK.min(1 << caps.max_work_group.max(1).ilog2());
        let integers = ElementType::ALL.into_iter().filter(|element| !element.is_float());
        integers.flat_map(|element| [256, 5 << 20].map(|bins| program(element, block, bins, caps))).collect()
    }

    struct State<T: Integer> {
        cl: ClDevice,
        step: Step,
        program: ProgramSpec,
        geometry: Geometry,
        n: usize,
        bins: usize,
        x: Buffer<T>,
        /// A counter per bin, one more for samples outside, then a guard. `tables` ends with a guard, too.
        counts: Buffer<u32>,
        tables: Buffer<u32>,
    }

    pub(super) fn prepare<T: Integer>(
        device: &Device,
        step: Step,
        shared: &Shared<Samples<T>>,
        request: &Request,
    ) -> Result<Climb> {
        let Backend::OpenCl(cl) = device.backend() else {
            return Err(Error::unsupported("a kernel needs an OpenCL device"));
        };
        let geometry = geometry(step, request, device)?.map_err(Error::unsupported)?;
        let (n, bins) = (request.n, request.bins);
        let tables = if step == Step::Merge { geometry.groups * (bins + 1) } else { 0 };
        let state = State::<T> {
            cl: cl.clone(),
            step,
            program: program(T::TYPE, geometry.block, bins, &*cl.capabilities()?),
            geometry,
            n,
            bins,
            x: device.upload(&shared.get()?.host)?,
            counts: device.uninit(bins + 1 + GUARD)?,
            tables: device.uninit(tables + GUARD)?,
        };
        let shared = shared.clone();
        let reset = |state: &mut State<T>| {
            state.tables.fill(poison())?;
            state.counts.fill(poison())
        };
        let verify = move |state: &mut State<T>| {
            let Samples { counts, outside, .. } = shared.get()?;
            let mut want = counts.clone();
            want.push(outside.iter().sum::<u64>() as u32);
            let counts = state.counts.to_vec()?;
            same(&counts[..bins + 1], &want, "counts")?;
            intact(&counts[bins + 1..])?;
            intact(&state.tables.view(tables..)?.to_vec()?)
        };
        Ok(Climb::new(state, reset, State::run, verify))
    }

    impl<T: Integer> State<T> {
        fn run(&mut self) -> Result<()> {
            let Self { cl, program, n, bins, .. } = self;
            let x = oclprim::View::from(&self.x).cl(cl)?;
            let counts = oclprim::View::from(&self.counts).cl(cl)?;
            let tables = oclprim::View::from(&self.tables).cl(cl)?;
            let Geometry { block, groups } = self.geometry;
            let (kernel, target) = match self.step {
                Step::Global => ("v1_global", &counts),
                Step::Persist => ("v1_persist", &counts),
                Step::LocalFull | Step::LocalCapped => ("v2_local", &counts),
                Step::Merge => ("v3_local", &tables),
            };
            if self.step != Step::Merge {
                cl.fill(counts.mem(), 0, 4 * (*bins + 1), &[0; 4])?;
            }
            cl.launch(program, kernel)?
                .mem(x.mem())
                .scalar(*n as u32)
                .scalar(*bins as u32)
                .mem(target.mem())
                .run([groups, 1, 1], [block, 1, 1])?;
            if self.step == Step::Merge {
                cl.launch(program, "v3_merge")?
                    .mem(tables.mem())
                    .scalar(groups as u32)
                    .scalar(*bins as u32)
                    .mem(counts.mem())
                    .run([*bins + 1, 1, 1], [block.min(MERGE_BLOCK), 1, 1])?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_counts_sectors_that_lanes_share_once() {
        let request = |distribution, bins| Request { n: 1 << 28, bins, distribution, ..Request::default() };
        let sectors = |distribution, bins| model::<i32>(Step::Global, &request(distribution, bins), 1).store_sectors;
        // With constant samples 32 lanes share one counter. With uniform samples 32 counters are nearly always in
        // different sectors. Zipf's law lies in between.
        let requests = (1u64 << 23) as f64;
        assert_eq!(sectors(Distribution::Constant, 256), requests + 33.0);
        let uniform = sectors(Distribution::Uniform, 5 << 20) / requests;
        assert!(uniform > 31.9 && uniform < 32.1, "{uniform}");
        let zipf = sectors(Distribution::Zipf, 5 << 20) / requests;
        assert!(zipf > 10.0 && zipf < 30.0, "{zipf}");
        assert_eq!(model::<i32>(Step::Merge, &request(Distribution::Constant, 256), 8).bank_conflicts, 0.0);
    }

    #[test]
    fn invalid_requests_are_refused() {
        let steps = |request: Request| HistogramLadder.rungs(&request, &Device::cpu()).map(|steps| steps.len());
        assert_eq!(steps(Request::default()).unwrap(), 6);
        // The kernels take sizes as 32-bit numbers.
        let (most, more) = (u32::MAX as usize, u32::MAX as usize + 1);
        assert!(steps(Request { n: most, ..Request::default() }).is_ok());
        for n in [0, more, more + 1000] {
            let error = steps(Request { n, ..Request::default() }).unwrap_err().to_string();
            assert_eq!(error, format!("the histogram ladder takes 1 to {most} samples, not {n}"));
        }
        assert!(steps(Request { bins: 257, element: crate::ElementType::U8, ..Request::default() }).is_err());
        assert!(steps(Request { element: crate::ElementType::F32, ..Request::default() }).is_err());
    }
}
