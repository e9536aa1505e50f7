//! Scans on OpenCL devices: the plan, then its launches.

use std::ops::Range;

use bytemuck::Pod;

use super::{Scan, cpu};
use crate::{
    Element, ElementType, Result, Scratch,
    counted::{self, ClCount, Count, arriving, length, with_length},
    lookback::{SPINS, TICKET_BYTES, levels},
    op::{Code, Monoid, Op, monoid},
    runtime::{
        AnyInput, AnyOutput, Arriving, ClInput, DeviceClass, ProgramSpec, SubGroupBackend, apart,
        opencl::{ClDevice, ClMem, Launch},
    },
    source::load::Load,
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("scan.cl");

/// Bytes of local memory that segments add to a scan. They are a bit for each byte of a tile, a word for each work-item,
/// and 8 bytes for each aggregate.
const HEAD_BYTES: usize = cpu::TILE_RUNS * 16 / 8 + 4 * 256 + 8 * (2 * cpu::CHUNKS + 8);

/// The source of segment heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heads {
    /// Keys of a type. A segment starts where a key differs from the one before it.
    Keys(ElementType),
    /// Flags. A segment starts where a byte is not 0.
    Flags,
    /// Offsets of a type.
    Offsets(ElementType),
    /// The common length of all segments.
    Rows,
}

/// The memory, or the length, that defines segment heads.
#[derive(Clone, Copy)]
pub enum Starts<M> {
    /// There are no segments.
    None,
    /// Keys or flags, one for each element.
    Beside(M),
    Offsets(M),
    Every(usize),
}

/// The operation and its types. The size, the initial value and whether the scan is inclusive are arguments of its
/// kernels.
#[derive(Clone, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    pub out: ElementType,
    pub source: Code,
    /// True if any order gives the same results.
    pub exact: bool,
    pub reversed: bool,
    /// The source of segment heads, if there are segments.
    pub heads: Option<Heads>,
    /// The type of the count in memory that is the number of elements; `None` if the host knows the number.
    pub count: Option<ElementType>,
}

impl Form {
    pub fn of<T: Element, U: Element, O: Op<U>>(reversed: bool) -> Self {
        Self::by::<T, U>((O::source(), !monoid::<U, O>().ordered), reversed)
    }

    /// A scan of `T` to `U` by any operator; `exact` means that any order gives the same results.
    pub fn by<T: Element, U: Element>((source, exact): (Code, bool), reversed: bool) -> Self {
        let (element, acc, out) = (T::TYPE, U::Acc::TYPE, U::TYPE);
        Self { element, acc, out, source, exact, reversed, heads: None, count: None }
    }

    /// The scan of as many elements as a count says.
    fn counted(&self, count: &ClCount) -> Self {
        Self { count: Some(count.element()), ..self.clone() }
    }
}

/// A scan of elements, or of structs.
pub(crate) trait Operation {
    /// Bytes of an element.
    fn size(&self) -> usize;

    fn reversed(&self) -> bool;

    /// The number that [`plan`](Self::plan) takes: `outputs`, the number of results, or `n`, that of the elements.
    fn outputs(&self, _n: usize, outputs: usize) -> usize {
        outputs
    }

    /// The launches of a scan with at least one result, as [`plan`] returns them.
    fn plan(&self, outputs: usize, aligned: [bool; 2], caps: &Tuned, wide: bool) -> Result<Plan>;

    /// Elements that a launch may take before later ones arrive: a tile, or all `n`. Kernels of segments have one launch.
    fn unit(&self, n: usize) -> usize {
        n
    }

    /// The same operation, for a number of elements that is a count in memory.
    fn of_count(&self, count: &ClCount) -> Box<dyn Operation>;

    /// Returns whether the number of elements is a count in memory.
    fn counts(&self) -> bool;
}

impl Operation for Form {
    fn size(&self) -> usize {
        self.element.size()
    }

    fn reversed(&self) -> bool {
        self.reversed
    }

    fn plan(&self, outputs: usize, aligned: [bool; 2], caps: &Tuned, wide: bool) -> Result<Plan> {
        plan(outputs, self, aligned, caps, wide)
    }

    fn unit(&self, n: usize) -> usize {
        if self.reversed || self.heads.is_some() { n } else { tile(self.element) }
    }

    fn of_count(&self, count: &ClCount) -> Box<dyn Operation> {
        Box::new(self.counted(count))
    }

    fn counts(&self) -> bool {
        self.count.is_some()
    }
}

/// Returns whether vectors are aligned. A reversed scan has its first vector at the end of the input. A count moves
/// this end, so no alignment is known then.
fn ends_or_starts_aligned(operation: &dyn Operation, place: &ClInput) -> bool {
    if operation.reversed() { !operation.counts() && place.ends_aligned() } else { place.aligned() }
}

/// The initial value, as the bytes of an accumulator and of an output, and whether the scan is inclusive.
pub struct Start {
    acc: Vec<u8>,
    out: Vec<u8>,
    inclusive: bool,
}

impl Start {
    pub fn of<U: Element, F>(op: &Monoid<U, F>, kind: Scan<U>) -> Self {
        let (acc, out) = kind.initial.map_or((op.identity, op.empty), |initial| (initial.widen(), initial));
        let [acc, out] = [bytemuck::bytes_of(&acc), bytemuck::bytes_of(&out)].map(<[u8]>::to_vec);
        Self { acc, out, inclusive: kind.initial.is_none() }
    }

    pub(crate) fn of_struct<T: Pod>(identity: T, kind: Scan<T>) -> Self {
        let initial = bytemuck::bytes_of(&kind.initial.unwrap_or(identity)).to_vec();
        Self { acc: initial.clone(), out: initial, inclusive: kind.initial.is_none() }
    }

    /// Writes the result of an empty input, the initial value, if there is room for it.
    pub(super) fn fill(&self, device: &ClDevice, out: &ClInput) -> Result<()> {
        if out.len() == 0 { Ok(()) } else { out.set(device, &self.out) }
    }

    /// Adds the accumulator and the flag as kernel arguments.
    pub fn put<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        launch.plain(&self.acc).scalar(u32::from(self.inclusive))
    }
}

/// The launches of a scan with at least one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub tiles: usize,
    /// Maximum number of work-groups. Each takes at least one tile.
    pub max_groups: usize,
    pub work_group: usize,
    pub wide: bool,
    /// Bytes of the aggregates. The rank of each tile among the offsets comes after them.
    pub totals_bytes: usize,
    pub scratch_bytes: usize,
    /// True if the scan uses decoupled look-back.
    pub look_back: bool,
    /// True if look-back can reuse the status words of an earlier launch, since the kernel uses no atomic tile counter.
    pub keeps_words: bool,
}

impl Plan {
    /// Launches without look-back. A partial has `bytes` bytes.
    pub(super) fn of_two_reads(
        program: ProgramSpec,
        tiles: usize,
        bytes: usize,
        (work_group, max_groups): (usize, usize),
        heads: Option<Heads>,
        wide: bool,
    ) -> Self {
        let totals_bytes = (levels(tiles).map(|(_, count)| count).sum::<usize>() * bytes).next_multiple_of(8);
        let scratch_bytes = totals_bytes + ranks_bytes(tiles, heads, wide);
        Self {
            program,
            tiles,
            max_groups,
            work_group,
            wide,
            totals_bytes,
            scratch_bytes,
            look_back: false,
            keeps_words: false,
        }
    }
}

/// Bytes of the ranks of tiles among the offsets of segments.
fn ranks_bytes(tiles: usize, heads: Option<Heads>, wide: bool) -> usize {
    if matches!(heads, Some(Heads::Offsets(_))) { (tiles + 1) * if wide { 8 } else { 4 } } else { 0 }
}

/// The program with the options of segment heads.
pub(super) fn with_heads(program: ProgramSpec, heads: Option<Heads>) -> ProgramSpec {
    match heads {
        None => program,
        Some(Heads::Keys(key)) => {
            let infinity = key.infinity().map(|bits| format!("-DINFINITY_BITS={bits:#x}"));
            let program = program.flag("BY_KEYS", true).define("KEY", tuning::unit_type(key.size()));
            program.define("KEY_BYTES", key.size()).with(infinity)
        }
        Some(Heads::Flags) => program.flag("BY_FLAGS", true),
        Some(Heads::Offsets(offset)) => program.flag("BY_OFFSETS", true).define("S", offset.storage()),
        Some(Heads::Rows) => program.flag("BY_ROWS", true),
    }
}

/// Elements of a tile.
fn tile(element: ElementType) -> usize {
    cpu::TILE_RUNS * 16 / element.size()
}

/// Bytes of the aggregates of all levels. With look-back they are status words; else accumulators, with a word beside
/// each if there are segments.
fn totals_bytes(tiles: usize, acc: ElementType, segmented: bool, look_back: bool) -> usize {
    let totals = levels(tiles).map(|(_, count)| count).sum::<usize>();
    match (totals, look_back) {
        (0, _) => 0,
        (_, true) => TICKET_BYTES + totals * 8 * acc.size().div_ceil(4),
        (_, false) if segmented => totals * 2 * acc.size().max(4),
        (_, false) => totals * acc.size(),
    }
}

/// Upper bound on the scratch bytes of a scan with `outputs` results.
pub fn scratch_bytes(outputs: usize, element: ElementType, acc: ElementType) -> usize {
    totals_bytes(outputs.div_ceil(tile(element)), acc, false, true)
}

/// Upper bound on the scratch bytes of a segmented scan, or of a scan of rows, with `outputs` results. Only scans at
/// offsets need the 8 bytes for each tile.
pub fn segments_scratch_bytes(outputs: usize, element: ElementType, acc: ElementType) -> usize {
    scratch_bytes(outputs, element, acc) + 8 * (outputs.div_ceil(tile(element)) + 1)
}

/// `aligned` says whether elements and results, and whether the keys or flags of segments, are aligned.
pub fn plan(outputs: usize, form: &Form, aligned: [bool; 2], caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let segmented = form.heads.is_some();
    let params = tuning::scan(caps, if segmented { HEAD_BYTES } else { 0 });
    let many = params.work_group > 1;
    let look_back = many && caps.looks_back();
    let new = if params.shuffles { ProgramSpec::with_sub_groups } else { ProgramSpec::new };
    let program = new("scan.cl", TEXT, caps)
        .with(caps.fault())
        .element("T", form.element)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("LOOK_BACK", look_back)
        .flag("REVERSE", form.reversed)
        .flag("ALIGNED", aligned[0] && many)
        .flag("HEADS_ALIGNED", segmented && aligned[1] && many)
        .flag("EXACT", form.exact)
        // Oclgrind treats vectors that were stored to private memory as uninitialised.
        .flag("VECTORS", !form.exact && !segmented && caps.class == DeviceClass::Cpu && !caps.checker);
    let program = with_heads(program, form.heads);
    let program = with_length(program, form.count).operator(&form.source);
    let aside = params.aside && look_back && segmented && aligned[0] && form.element.size() >= 4;
    // The limits let as many work-groups as possible run on a multiprocessor, since the others run while one waits.
    let registers = match form.heads {
        None => params.registers,
        Some(_) if params.segment_registers > 0 => params.segment_registers,
        Some(_) if aside && form.acc.size() < 8 => 48,
        Some(Heads::Offsets(_) | Heads::Rows) if !aside => 80,
        Some(_) if form.acc.size() == 8 && !aside => 80,
        Some(_) => 64,
    };
    let limit = caps.ptx.then(|| format!("-cl-nv-maxrregcount={registers}"));
    let program = program.flag("ASIDE", aside).with(limit);
    let tiles = outputs.div_ceil(tile(form.element));
    let totals_bytes = totals_bytes(tiles, form.acc, segmented, look_back).next_multiple_of(8);
    Ok(Plan {
        program,
        tiles,
        max_groups: params.max_groups,
        work_group: params.work_group,
        wide,
        totals_bytes,
        scratch_bytes: totals_bytes + ranks_bytes(tiles, form.heads, wide),
        look_back,
        keeps_words: params.shuffles && caps.sub_group.backend == SubGroupBackend::Ptx,
    })
}

/// The plan of a scan of a source without segments. `aligned` says whether results are.
pub fn plan_source(outputs: usize, form: &Form, load: &Load, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    let plan = plan(outputs, form, [aligned, true], caps, wide)?;
    Ok(Plan { program: load.program(plan.program.flag("SOURCE", true), caps)?, ..plan })
}

/// The input of a scan: memory, or a source and the number of its elements.
#[derive(Clone, Copy)]
enum Read<'j> {
    Memory(Arriving<'j>),
    Source(&'j Load, usize),
}

impl Read<'_> {
    fn len(self) -> usize {
        match self {
            Self::Memory(input) => input.len(),
            Self::Source(_, n) => n,
        }
    }
}

/// A scan with its arguments and its memory.
struct Job<'j> {
    device: &'j ClDevice,
    plan: &'j Plan,
    start: &'j Start,
    input: Read<'j>,
    out: &'j ClInput,
    starts: Starts<&'j ClInput>,
    count: Option<&'j ClCount>,
    memory: &'j ClMem,
}

/// Scans `input` to `out`, which may be the same memory. In an exclusive scan without segments and to other memory,
/// `out` may have one more element. This element receives `initial op aggregate`, where `aggregate` is that of the
/// whole input. With a count there are no segments. The scan then takes as many elements as the count says, and
/// elements of `out` after their results do not change.
pub(crate) fn scan(
    device: &ClDevice,
    operation: &dyn Operation,
    start: &Start,
    (input, starts): (Arriving<'_>, Starts<&ClInput>),
    count: Option<&ClCount>,
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let n = input.len();
    let outputs = operation.outputs(n, out.len());
    if n == 0 {
        return start.fill(device, out);
    }
    let counted = count.map(|count| operation.of_count(count));
    let operation = counted.as_deref().unwrap_or(operation);
    let caps = device.capabilities_for(Primitive::Scan, operation.size(), n)?;
    let aligned = |place: &ClInput| ends_or_starts_aligned(operation, place);
    // Offsets are not read in vectors, so one program serves all alignments.
    let (heads_aligned, most) = match starts {
        Starts::Beside(heads) => (aligned(heads), outputs),
        Starts::Offsets(offsets) => (true, outputs.max(offsets.len())),
        Starts::None | Starts::Every(_) => (true, outputs),
    };
    let aligned = [aligned(&input) && aligned(out), heads_aligned];
    let plan = operation.plan(outputs, aligned, &caps, device.wide(most))?;
    let memory = scratch.cl(device, plan.scratch_bytes)?;
    let job = Job { device, plan: &plan, start, input: Read::Memory(input), out, starts, count, memory };
    if let Starts::Offsets(offsets) = starts {
        job.ranks(offsets)?;
    }
    // A tile waits only for earlier tiles, so it may run before later elements arrive.
    if plan.look_back { job.look_back(operation.unit(n)) } else { job.reduce_then_scan() }
}

/// Scans the `n` elements of a source to `out`, as [`scan`] does.
pub(super) fn scan_load(
    device: &ClDevice,
    form: &Form,
    start: &Start,
    (load, n, count): (&Load, usize, Option<&ClCount>),
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    if n == 0 {
        return start.fill(device, out);
    }
    let counted = count.map(|count| form.counted(count));
    let form = counted.as_ref().unwrap_or(form);
    let caps = device.capabilities_for(Primitive::Scan, form.element.size(), n)?;
    let aligned = ends_or_starts_aligned(form, out);
    let plan = plan_source(out.len(), form, load, aligned, &caps, device.wide(out.len()))?;
    let memory = scratch.cl(device, plan.scratch_bytes)?;
    let (input, starts) = (Read::Source(load, n), Starts::None);
    let job = Job { device, plan: &plan, start, input, out, starts, count, memory };
    if plan.look_back { job.look_back(n) } else { job.reduce_then_scan() }
}

/// [`scan`] with arguments in any memory.
pub(crate) fn scan_any(
    device: &ClDevice,
    operation: &dyn Operation,
    start: &Start,
    (input, starts): (AnyInput<'_>, Starts<AnyInput<'_>>),
    count: Option<Count<'_>>,
    output: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    let given;
    let starts = match starts {
        Starts::None => Starts::None,
        Starts::Beside(heads) => {
            given = heads.cl(device)?;
            Starts::Beside(&given)
        }
        Starts::Offsets(offsets) => {
            given = offsets.cl(device)?;
            Starts::Offsets(&given)
        }
        Starts::Every(len) => Starts::Every(len),
    };
    let (input, host) = arriving(device, input, count)?;
    let output = output.cl(device, count.is_some())?;
    apart(&[&input], &[&output])?;
    let count = counted::on_device(device, count, &[&output])?;
    if let Starts::Beside(given) | Starts::Offsets(given) = starts {
        apart(&[given], &[&output])?;
    }
    scan(device, operation, start, (Arriving::new(&input, host), starts), count.as_ref(), &output, scratch)?;
    output.finish(device)
}

impl<'j> Job<'j> {
    /// The start of the ranks in scratch, in elements of their size.
    fn ranks_at(&self) -> u64 {
        (self.plan.totals_bytes / if self.plan.wide { 8 } else { 4 }) as u64
    }

    /// Computes which of the offsets are in each tile.
    fn ranks(&self, offsets: &ClInput) -> Result<()> {
        let Plan { program, tiles, wide, work_group, max_groups, .. } = self.plan;
        self.device
            .launch(program, "scan_ranks")?
            .mem(offsets.mem())
            .scalar(offsets.offset() as u64)
            .offset(offsets.len() as u64, *wide)
            .offset(self.input.len() as u64, *wide)
            .offset(*tiles as u64, *wide)
            .mem(self.memory)
            .scalar(self.ranks_at())
            .run([(tiles + 1).div_ceil(*work_group).min(*max_groups), 1, 1], [*work_group, 1, 1])
    }

    /// Adds the arguments that define segments.
    fn heads(&self, launch: Launch<'j>) -> Launch<'j> {
        let place = |launch: Launch<'j>, heads: &ClInput| launch.mem(heads.mem()).scalar(heads.offset() as u64);
        match self.starts {
            Starts::None => launch,
            Starts::Beside(heads) => place(launch, heads),
            Starts::Offsets(offsets) => place(launch, offsets).mem(self.memory).scalar(self.ranks_at()),
            Starts::Every(len) => launch.offset(len as u64, self.plan.wide),
        }
    }

    /// A launch with the first arguments of all kernels over elements and results.
    fn launch(&self, kernel: &'static str) -> Result<Launch<'j>> {
        let launch = self.device.launch(&self.plan.program, kernel)?;
        let launch = match self.input {
            Read::Memory(input) => launch.mem(input.mem()).scalar(input.offset() as u64),
            Read::Source(load, _) => load.arguments(launch),
        };
        Ok(length(launch, self.input.len(), self.plan.wide, self.count, 0))
    }

    fn launch_results(&self, kernel: &'static str, totals: &ClMem) -> Result<Launch<'j>> {
        let Self { plan, out, .. } = self;
        let launch = self.launch(kernel)?.mem(out.mem()).scalar(out.offset() as u64);
        let launch = launch.offset(out.len() as u64, plan.wide).mem(totals).offset(plan.tiles as u64, plan.wide);
        Ok(self.start.put(launch))
    }

    fn reduce_then_scan(&self) -> Result<()> {
        match self.input {
            Read::Memory(input) => input.arrive(self.device, input.len(), |_| self.reduce_and_scan()),
            Read::Source(..) => self.reduce_and_scan(),
        }
    }

    fn reduce_and_scan(&self) -> Result<()> {
        let Plan { program, tiles, wide, work_group, max_groups, .. } = self.plan;
        let items = [*work_group, 1, 1];
        let groups = |tiles: usize| [tiles.min(*max_groups), 1, 1];
        if *tiles > 1 {
            let launch = self.launch("scan_aggregates")?.mem(self.memory).offset(*tiles as u64 - 1, *wide);
            self.heads(launch).run(groups(tiles - 1), items)?;
        }
        for (level, (first, count)) in levels(*tiles).enumerate() {
            let launch = self
                .device
                .launch(program, "scan_spine")?
                .mem(self.memory)
                .offset(first as u64, *wide)
                .offset(count as u64, *wide)
                .offset((first + count) as u64, *wide);
            let launch = match self.count {
                Some(_) => length(launch, self.input.len(), *wide, self.count, 0)
                    .offset(self.out.len() as u64, *wide)
                    .scalar(level as u32),
                None => launch,
            };
            launch.run([count.div_ceil(32).div_ceil(*work_group), 1, 1], items)?;
        }
        self.heads(self.launch_results("scan_tiles", self.memory)?).run(groups(*tiles), items)
    }

    /// Scans with look-back. The elements may arrive in parts of whole units: a unit is a tile, or all elements.
    fn look_back(&self, unit: usize) -> Result<()> {
        let Self { plan, .. } = self;
        let (in_place, in_parts) = match self.input {
            Read::Memory(input) => (input.mem().as_ptr() == self.out.mem().as_ptr(), input.in_parts()),
            Read::Source(..) => (false, false),
        };
        // Between the launches of two parts, another thread could use kept words.
        let kept = if plan.keeps_words && !in_parts { self.device.words(plan.totals_bytes)? } else { None };
        let (words, turn) = kept.as_ref().map_or((self.memory, 1), |(words, turn)| (words, *turn));
        if kept.is_none() {
            self.device.fill(words, 0, plan.totals_bytes, &[0; 8])?;
        }
        let launch = |part: Range<usize>| {
            let end = if part.end == self.input.len() { plan.tiles } else { part.end / unit };
            let first = part.start / unit;
            let launch =
                self.launch_results("scan_look_back", words)?.scalar(u32::from(in_place)).scalar(SPINS).scalar(turn);
            self.heads(launch).after(first).run([end - first, 1, 1], [plan.work_group, 1, 1])
        };
        match self.input {
            Read::Memory(input) => input.arrive(self.device, unit, launch),
            Read::Source(_, n) => launch(0..n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Sum;

    #[test]
    fn plans_have_scratch_for_every_tile() {
        let form = Form::of::<u32, u64, Sum>(false);
        for (name, caps) in Tuned::samples() {
            for n in [1, 8192, 8193, 1 << 20, (1 << 32) + 1, 1 << 40, 1 << 48] {
                let plan = plan(n, &form, [true; 2], &caps, n >= 1 << 31).unwrap();
                assert!(plan.tiles * 8192 >= n && (plan.tiles - 1) * 8192 < n, "{name}: {n}");
                assert!(plan.tiles == 1 || plan.scratch_bytes >= 8 * plan.tiles, "{name}: {n}");
                assert!(plan.scratch_bytes <= scratch_bytes(n, ElementType::U32, ElementType::U64), "{name}: {n}");
                assert!(plan.work_group == 1 || plan.work_group >= 8, "{name}: {n}");
                let most = segments_scratch_bytes(n, ElementType::U32, ElementType::U64);
                let (keys, offsets) = (Heads::Keys(ElementType::U8), Heads::Offsets(ElementType::U64));
                for heads in [keys, Heads::Flags, offsets, Heads::Rows] {
                    let form = Form { heads: Some(heads), ..form.clone() };
                    let plan = super::plan(n, &form, [true; 2], &caps, n >= 1 << 31).unwrap();
                    assert!(plan.scratch_bytes <= most, "{name}: {n}, {heads:?}");
                }
            }
        }
    }

    #[test]
    fn levels_end_in_one_tile_group() {
        assert_eq!(levels(1).count(), 0);
        assert_eq!(levels(32).collect::<Vec<_>>(), [(0, 32)]);
        assert_eq!(levels(33).collect::<Vec<_>>(), [(0, 33), (33, 2)]);
        assert_eq!(levels(1 << 15).collect::<Vec<_>>(), [(0, 1 << 15), (1 << 15, 1 << 10), (33 << 10, 32)]);
    }
}
