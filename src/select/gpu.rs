//! Selections on OpenCL devices: the plan, then its launches.

use crate::{
    ElementType, Output, Result, Scratch,
    counted::{ClCount, Count, length, on_device, with_length},
    kept::COUNTERS_AT,
    lookback::{SPINS, TICKET_BYTES, levels},
    op::{Condition, EqualTo, Predicates, Tested},
    runtime::{
        AnyInput, AnyOutput, Arriving, ClInput, DeviceClass, ProgramSpec, SubGroupBackend, apart,
        opencl::{ClDevice, ClMem, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("select.cl");

/// Local memory that compilers add to the arrays of the kernels.
const RESERVED_BYTES: usize = 128;
/// Words of a record in `cl/lib/select.cl`.
const RECORD: usize = 3;

/// The rule that assigns elements to lists.
#[derive(Clone, Debug, PartialEq)]
pub enum Marks {
    /// Flags. An element is selected if its byte is not 0.
    Flags,
    /// Predicates of an element.
    By { element: ElementType, predicates: Predicates },
    /// The starts of runs of equal elements.
    Heads(ElementType),
    /// The starts and the ends of runs of at least two elements.
    NonTrivial(ElementType),
}

impl Marks {
    /// The elements that meet a condition, or the parts of two conditions. For structs, an earlier pass writes flags.
    pub fn by<T: Tested>(what: &impl Condition<T>) -> Self {
        match T::ELEMENT {
            Some(element) => Self::By { element, predicates: Predicates::of(element.accumulator(), what) },
            None => Self::Flags,
        }
    }

    /// The types and bytes of the values that predicates capture.
    fn captured(&self) -> &[(ElementType, [u8; 8])] {
        if let Self::By { predicates, .. } = self { &predicates.captured } else { &[] }
    }
}

/// The operation and its types, without the size.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    pub marks: Marks,
    /// The number of lists. One list drops the unselected elements; several lists contain all elements.
    pub classes: usize,
    /// True if the elements are written.
    pub moved: bool,
    /// Bytes of a value beside each element; 0 if there are no values.
    pub value: usize,
    /// True if indices are written.
    pub places: bool,
    /// True if lengths of runs are written.
    pub lengths: bool,
    /// Bytes of an index or length.
    pub place: usize,
    pub unordered: bool,
    /// True if the second of two lists is an unstable tail: written backwards from the end of the output.
    pub reversed: bool,
    /// The type of the count in memory that is the number of elements; `None` if the host knows the number.
    pub count: Option<ElementType>,
}

impl Form {
    /// A selection of elements to one list.
    pub fn of(marks: Marks) -> Self {
        Self {
            marks,
            classes: 1,
            moved: true,
            value: 0,
            places: false,
            lengths: false,
            place: 4,
            unordered: false,
            reversed: false,
            count: None,
        }
    }

    pub fn element(&self) -> ElementType {
        match self.marks {
            Marks::Flags => ElementType::U8,
            Marks::By { element, .. } | Marks::Heads(element) | Marks::NonTrivial(element) => element,
        }
    }

    /// A selection or partition of values of `bytes` bytes. A byte for each value is its flag or, with three lists, the
    /// number of its list.
    pub fn of_values(bytes: usize, classes: usize) -> Self {
        let marks = if classes == 3 { Marks::by::<u8>(&(EqualTo(0), EqualTo(1))) } else { Marks::Flags };
        Self { classes, moved: false, value: bytes, ..Self::of(marks) }
    }

    /// Bytes of what a selection moves: of a value if it moves only values, else of an element.
    fn moved_bytes(&self) -> usize {
        if self.value > 0 && !self.moved { self.value } else { self.element().size() }
    }

    /// Number of bit masks that encode an element's list.
    fn masks(&self) -> usize {
        if self.classes == 3 || matches!(self.marks, Marks::NonTrivial(_)) { 2 } else { 1 }
    }

    /// Returns whether kernels store 2-byte positions in a tile.
    fn positions(&self) -> bool {
        self.value > 0 || self.places || self.lengths
    }

    /// Number of lists that are counted over all tiles.
    pub fn counted(&self) -> usize {
        if self.classes == 3 { 2 } else { 1 }
    }

    /// Returns whether tiles need the lengths of the counted lists over the whole input.
    fn needs_all(&self) -> bool {
        self.classes > 1 && !self.reversed
    }

    /// Returns whether tiles record where their first and last runs start.
    fn records(&self) -> bool {
        self.lengths && !matches!(self.marks, Marks::NonTrivial(_))
    }
}

/// The method that computes each tile's offset in the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    LookBack,
    Counter,
    Spine,
}

/// The launches of a selection of n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub tiles: usize,
    /// Elements of a tile.
    pub tile: usize,
    pub groups: usize,
    /// Maximum work-groups of a kernel whose work-groups process several tiles.
    pub most: usize,
    pub way: Way,
    /// True if the last work-group to finish can store the lengths of all lists: a last-block reduction.
    pub one_pass: bool,
    /// True if look-back can reuse the status words of an earlier launch: no atomic tile counter is among them.
    pub keeps_words: bool,
    /// Elements of the multi-level scan: the counts of tiles.
    pub things: usize,
    /// Words of all levels of the scan, for each list that is counted.
    pub stride: usize,
    /// Index of the word at which records start.
    pub records: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
}

/// The size of a work-group, and the vectors of a work-item in a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    work_group: usize,
    rows: usize,
    shuffles: bool,
}

/// The shape of a tile. `None` if one work-item processes a whole tile, or if local memory is too small for any shape.
fn shape(form: &Form, caps: &Tuned) -> Option<Shape> {
    let params = tuning::select(caps);
    if caps.class == DeviceClass::Cpu {
        return None;
    }
    let (size, width) = (form.element().size(), caps.sub_group.width as usize);
    let fixed = matches!(caps.sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    let groups = (5..=params.work_group.max(1).ilog2()).rev().map(|bits| 1 << bits);
    // Elements below 4 bytes make a vector more work, so a tile has half as many vectors.
    let most = if size < 4 { usize::max(params.rows / 2, 2) } else { params.rows };
    let rows = (1..=most.ilog2()).rev().map(|bits| 1 << bits);
    let mut shapes = groups.flat_map(|work_group| {
        let shuffles = fixed && caps.sub_group.ballot && work_group == 256 && (32..=64).contains(&width);
        rows.clone().map(move |rows| Shape { work_group, rows, shuffles })
    });
    shapes.find(|&Shape { work_group, rows, shuffles }| {
        let vectors = work_group * rows;
        let moved = if form.moved { 16 * (vectors + 1) } else { 0 };
        let pool = moved.max(if form.positions() { 2 * vectors * (16 / size) } else { 0 });
        let exchange = if shuffles { form.masks() * vectors / 8 } else { 4 * form.masks() * vectors };
        pool + exchange + RESERVED_BYTES <= caps.local_bytes
    })
}

pub fn plan(n: usize, form: &Form, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    let element = form.element();
    if let Marks::By { .. } = form.marks {
        caps.supports(element)?;
        form.marks.captured().iter().try_for_each(|(element, _)| caps.supports(*element))?;
    }
    let shape = shape(form, caps);
    // Without enough local memory, a work-group is one work-item.
    let single = caps.with(|facts| facts.class = DeviceClass::Cpu);
    let caps = if shape.is_some() { caps } else { &single };
    let params = tuning::select(caps);
    let way = if form.unordered && caps.int64_atomics {
        Way::Counter
    } else if shape.is_some() && caps.looks_back() {
        Way::LookBack
    } else {
        Way::Spine
    };
    let one_pass = way == Way::LookBack && form.needs_all() && tuning::ends_at_once(caps);
    let new = if shape.is_some_and(|shape| shape.shuffles) { ProgramSpec::with_sub_groups } else { ProgramSpec::new };
    let program = new("select.cl", TEXT, caps)
        .with(caps.fault())
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("CLASSES", form.classes)
        .flag("MOVE", form.moved)
        .flag("PLACES", form.places)
        .flag("LENGTHS", form.lengths)
        .flag("LOOK_BACK", way == Way::LookBack)
        .flag("UNORDERED", way == Way::Counter)
        .flag("REVERSED", form.reversed)
        .flag("ALIGNED", aligned && shape.is_some());
    let program = with_length(program, form.count);
    let program = if one_pass { program.flag("ONE_PASS", true).define("COUNTERS_AT", COUNTERS_AT) } else { program };
    let program = match &form.marks {
        Marks::Flags => program.element("T", element),
        Marks::By { predicates, .. } => {
            program.element("T", element).flag("PREDICATES", true).prelude(predicates.functions.clone())
        }
        Marks::Heads(_) | Marks::NonTrivial(_) => {
            let program = program.define("T", tuning::unit_type(element.size())).define("T_BYTES", element.size());
            let program = match element.infinity() {
                Some(bits) => program.define("INFINITY_BITS", format_args!("{bits:#x}")),
                None => program,
            };
            program.flag(if matches!(form.marks, Marks::Heads(_)) { "HEADS" } else { "NON_TRIVIAL" }, true)
        }
    };
    let program = if form.places || form.lengths {
        program.define("PLACE", if form.place == 8 { "ulong" } else { "uint" })
    } else {
        program
    };
    let program = match form.value {
        0 => program,
        bytes => {
            let unit = tuning::unit(bytes).min(16);
            program.define("VALUE", tuning::unit_type(unit)).define("VALUE_UNITS", bytes / unit)
        }
    };
    let (program, work_group, tile) = match shape {
        Some(Shape { work_group, rows, .. }) => {
            // The fewest registers that do not spill. A multiprocessor then holds six work-groups of 256 work-items at
            // 40 registers, four at 64, three at 80 and two at 128.
            let registers = match (form.masks(), form.classes) {
                (2, _) => 128,
                (_, 2) => params.partition_registers,
                _ if form.moved && way != Way::Spine => params.registers,
                _ => 80,
            };
            let limit = caps.ptx.then(|| format!("-cl-nv-maxrregcount={registers}"));
            let program = program.with(limit);
            (program.define("WG", work_group).define("ROWS", rows), work_group, work_group * rows * 16 / element.size())
        }
        None => (program.define("WG", 1), 1, n.div_ceil(params.max_groups).max(params.min_run)),
    };
    let tiles = n.div_ceil(tile);
    let groups = if way == Way::Spine { tiles.min(params.max_groups) } else { tiles };
    let things = tiles + usize::from(form.needs_all());
    let stride = levels(things).map(|(_, count)| count).sum();
    let found = match way {
        Way::LookBack if tiles > 1 => TICKET_BYTES / 8 + form.counted() * tiles,
        Way::Spine => form.counted() * stride,
        _ => 0,
    };
    let scratch_bytes = 8 * (found + if form.records() { RECORD * tiles } else { 0 });
    Ok(Plan {
        program,
        work_group,
        tiles,
        tile,
        groups,
        most: params.max_groups,
        way,
        one_pass,
        keeps_words: shape.is_some_and(|shape| shape.shuffles) && caps.sub_group.backend == SubGroupBackend::Ptx,
        things,
        stride,
        records: found,
        scratch_bytes,
        wide,
    })
}

/// The memory that a selection reads and writes.
#[derive(Clone, Copy)]
pub struct Job<'j> {
    pub input: Arriving<'j>,
    pub out: Option<&'j ClInput>,
    /// Values beside the elements, and their output.
    pub values: Option<(&'j ClInput, &'j ClInput)>,
    pub places: Option<&'j ClInput>,
    pub lengths: Option<&'j ClInput>,
    /// A word for each list that is counted.
    pub count: &'j ClInput,
    /// The count in memory that is the number of elements; `None` for an input that arrives in parts.
    pub(crate) length: Option<&'j ClCount>,
}

impl<'j> Job<'j> {
    /// A job that writes only the count.
    pub fn of(input: impl Into<Arriving<'j>>, count: &'j ClInput) -> Self {
        Self { input: input.into(), out: None, values: None, places: None, lengths: None, count, length: None }
    }
}

/// Writes values to their lists, as [`Form::of_values`] describes them.
pub(super) fn move_values(
    device: &ClDevice,
    form: &Form,
    [values, lists]: [AnyInput<'_>; 2],
    length: Option<Count<'_>>,
    output: AnyOutput<'_>,
    counts: Output<'_, u64>,
) -> Result<()> {
    let (values, lists) = (values.cl(device)?, lists.cl(device)?);
    let (output, counts) = (output.cl(device, form.classes == 1 || length.is_some())?, counts.cl(device, false)?);
    apart(&[&values, &lists], &[&output, &counts])?;
    let length = on_device(device, length, &[&output, &counts])?;
    let job = Job { values: Some((&values, &output)), length: length.as_ref(), ..Job::of(&lists, &counts) };
    run(device, form, &job, &mut Scratch::new())?;
    counts.finish(device)?;
    output.finish(device)
}

/// Runs a selection. `form` determines which parts of the job are used.
pub(crate) fn run(device: &ClDevice, form: &Form, job: &Job<'_>, scratch: &mut Scratch) -> Result<()> {
    let n = job.input.len();
    let zero_counts = || device.fill(job.count.mem(), job.count.byte_offset(), 8 * form.counted(), &[0; 8]);
    if n == 0 {
        return zero_counts();
    }
    let counted = job.length.map(|length| Form { count: Some(length.element()), ..form.clone() });
    let form = counted.as_ref().unwrap_or(form);
    let caps = device.capabilities_for(Primitive::Select, form.moved_bytes(), n)?;
    let plan = plan(n, form, job.input.aligned(), &caps, device.wide(n))?;
    let mem = scratch.cl(device, plan.scratch_bytes)?;
    if plan.way == Way::Counter {
        zero_counts()?;
    }
    // For non-trivial runs, a tile also reads the first elements of the next tile, which may not have arrived.
    if plan.way == Way::LookBack && !form.needs_all() && !matches!(form.marks, Marks::NonTrivial(_)) {
        return launch(device, form, &plan, job, mem);
    }
    job.input.arrive(device, n, |_| launch(device, form, &plan, &Job { input: (&*job.input).into(), ..*job }, mem))
}

fn launch(device: &ClDevice, form: &Form, plan: &Plan, job: &Job<'_>, mem: &ClMem) -> Result<()> {
    let Plan { program, tiles, wide, .. } = plan;
    let (n, items, groups) = (job.input.len(), [plan.work_group, 1, 1], [plan.groups, 1, 1]);
    let of_input = |kernel| -> Result<_> {
        let launch = device.launch(program, kernel)?.mem(job.input.mem());
        let launch = length(launch.scalar(job.input.offset() as u64), n, *wide, job.length, 0);
        let captured = form.marks.captured().iter();
        Ok(captured.fold(launch, |launch, (element, bytes)| launch.plain(&bytes[..element.size()])))
    };
    let all = |kernel| -> Result<_> {
        let launch = outputs(of_input(kernel)?, form, plan, job, mem);
        Ok(launch.mem(job.count.mem()).scalar(job.count.offset() as u64))
    };
    let (count, tile) = (*tiles as u64, plan.tile as u64);
    // The kernel that computes the lengths of runs from the results of tiles.
    let ends = match form.marks {
        Marks::NonTrivial(_) => "select_run_ends",
        _ => "select_last_runs",
    };
    match plan.way {
        Way::LookBack => {
            if form.needs_all() || job.lengths.is_some() {
                let other = if form.needs_all() { "select_totals" } else { ends };
                device.build_ahead(program, &["select_look_back", other])?;
            }
            if form.needs_all() {
                let ended = if plan.one_pass { device.ended()? } else { None };
                if ended.is_none() {
                    device.fill(job.count.mem(), job.count.byte_offset(), 8 * form.counted(), &[0; 8])?;
                }
                let launch = of_input("select_totals")?.mem(job.count.mem()).scalar(job.count.offset() as u64);
                let launch = launch.offset(count, *wide);
                let launch = if plan.one_pass {
                    launch.scalar(u32::from(ended.is_some())).mem(ended.as_ref().unwrap_or(job.count.mem()))
                } else {
                    launch
                };
                launch.run([plan.groups.min(plan.most), 1, 1], items)?;
            }
            let bytes = TICKET_BYTES + 8 * form.counted() * tiles;
            // Between the launches of two parts, another thread could use kept words.
            let kept = if plan.keeps_words && !job.input.in_parts() { device.words(bytes)? } else { None };
            let (words, turn) = kept.as_ref().map_or((mem, 0), |(words, turn)| (words, *turn));
            if *tiles > 1 && kept.is_none() {
                device.fill(words, 0, bytes, &[0; 8])?;
            }
            // A tile waits only for earlier tiles, so it may run before later elements arrive.
            job.input.arrive(device, plan.tile, |part| {
                let (first, end) = (part.start / plan.tile, part.end.div_ceil(plan.tile));
                let launch = all("select_look_back")?.mem(words).offset(count, *wide).scalar(SPINS);
                launch.scalar(turn).after(first).run([end - first, 1, 1], items)
            })?;
        }
        Way::Counter => all("select_unordered")?.offset(count, *wide).offset(tile, *wide).run(groups, items)?,
        Way::Spine => {
            // With a length in memory, the multi-level scan reads a count for each tile. Without, no prefix needs the
            // last entry.
            let counted = if job.length.is_some() && plan.things > 1 { *tiles } else { plan.things - 1 };
            if counted > 0 {
                let launch = of_input("select_counts")?.mem(mem).scalar(plan.stride as u64);
                let launch = launch.offset(counted as u64, *wide).offset(tile, *wide);
                launch.run([counted.min(plan.groups), 1, 1], items)?;
            }
            for list in 0..form.counted() {
                for (first, count) in levels(plan.things) {
                    let first = list * plan.stride + first;
                    device
                        .launch(program, "select_spine")?
                        .mem(mem)
                        .offset(first as u64, *wide)
                        .offset(count as u64, *wide)
                        .offset((first + count) as u64, *wide)
                        .run([count.div_ceil(32).div_ceil(plan.work_group), 1, 1], items)?;
                }
            }
            let launch = all("select_tiles")?.mem(mem).scalar(plan.stride as u64);
            launch.offset(count, *wide).offset(tile, *wide).run(groups, items)?;
        }
    }
    match (&form.marks, job.lengths) {
        (Marks::NonTrivial(_), Some(lengths)) => {
            let places = job.places.unwrap_or(lengths);
            let groups = plan.groups.min(lengths.len().div_ceil(plan.work_group)).max(1);
            device
                .launch(program, ends)?
                .mem(job.count.mem())
                .scalar(job.count.offset() as u64)
                .mem(places.mem())
                .scalar(places.offset() as u64)
                .mem(lengths.mem())
                .scalar(lengths.offset() as u64)
                .scalar(lengths.len() as u64)
                .run([groups, 1, 1], items)
        }
        (_, Some(lengths)) => {
            let launch = device.launch(program, ends)?.mem(mem).scalar(plan.records as u64).offset(count, *wide);
            length(launch, n, *wide, job.length, 0)
                .mem(lengths.mem())
                .scalar(lengths.offset() as u64)
                .scalar(lengths.len() as u64)
                .run([tiles.div_ceil(plan.work_group), 1, 1], items)
        }
        _ => Ok(()),
    }
}

/// Adds the arguments of the outputs, in the kernels' order.
fn outputs<'d>(mut launch: Launch<'d>, form: &Form, plan: &Plan, job: &Job<'_>, mem: &ClMem) -> Launch<'d> {
    let place =
        |launch: Launch<'d>, at: &ClInput| launch.mem(at.mem()).scalar(at.offset() as u64).scalar(at.len() as u64);
    if let Some(out) = job.out {
        launch = place(launch, out);
    }
    if let Some((values, out)) = job.values {
        let units = form.value / tuning::unit(form.value).min(16);
        launch = launch.mem(values.mem()).scalar((values.offset() * units) as u64);
        launch = launch.mem(out.mem()).scalar((out.offset() * units) as u64).scalar(out.len() as u64);
    }
    if let Some(places) = job.places {
        launch = place(launch, places);
    }
    if let Some(lengths) = job.lengths {
        launch = place(launch, lengths);
        if form.records() {
            launch = launch.mem(mem).scalar(plan.records as u64);
        }
    }
    launch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Device, ErrorKind,
        op::{CapturingMap, Map},
        reduce::gpu::tests::ending,
    };

    #[test]
    fn captured_doubles_need_fp64() {
        let above = CapturingMap::of_one(|x: f32| f64::from(x) > 0.5, "x > c0", 0.5f64);
        let form = Form::of(Marks::by::<f32>(&above));
        for (name, caps) in Tuned::samples() {
            for fp64 in [false, true] {
                let caps = caps.with(|facts| facts.fp64 = fp64);
                let error = plan(1000, &form, true, &caps, false).err().map(|error| error.kind());
                assert_eq!(error, (!fp64).then_some(ErrorKind::Unsupported), "{name}");
            }
        }
    }

    #[test]
    fn last_block_reduction_counts_each_list() {
        let x: Vec<u32> = (0..100_003u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
        let low = Map::new(|x: u32| x < 4_000_000, "x < 4000000");
        let middle = Map::new(|x: u32| x < 9_000_000, "x < 9000000");
        for (name, cl) in ending() {
            let back = cl.capabilities().unwrap().looks_back();
            let device = Device::from_cl(cl.profiled().unwrap());
            // The first launch creates and fills memory that the queue keeps. The launches below must not fill it.
            device.partition(&x, &low).unwrap();
            device.take_timings().unwrap();
            for n in [1, 2000, x.len()] {
                // Twice: the second run relies on the zeros that the first one leaves.
                for _ in 0..2 {
                    let found = |device: &Device| {
                        let (two, of_two) = device.partition(&x[..n], &low).unwrap();
                        let (three, of_three) = device.partition(&x[..n], (&low, &middle)).unwrap();
                        (two.to_vec().unwrap(), of_two, three.to_vec().unwrap(), of_three)
                    };
                    assert!(found(&device) == found(&Device::cpu()), "{name}: {n}");
                }
                let names: Vec<_> = device.take_timings().unwrap().iter().map(|timing| timing.name).collect();
                let count = |name| names.iter().filter(|&&other| other == name).count();
                let keeps = cl.capabilities().unwrap().sub_group.backend == SubGroupBackend::Ptx;
                let fills = if keeps || n == 1 { 0 } else { 4 };
                assert!(
                    !back || count("select_totals") == 4 && count("clEnqueueFillBuffer") <= fills,
                    "{name}: {names:?}"
                );
            }
        }
    }
}
