//! Scans on OpenCL devices: the plan, then its launches.

use super::{Scan, cpu};
use crate::{
    Element, ElementType, Result, Scratch,
    op::{Monoid, Op, Source, monoid},
    runtime::{
        Capabilities, ClInput, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    tuning,
};

const TEXT: &str = include_str!("../../cl/scan.cl");

/// Looks at a total that is not there before it is computed: some milliseconds.
const SPINS: u32 = 1 << 13;
/// Bytes before the words of a look-back: the ticket's.
const TICKET_BYTES: usize = 16;

/// What a scan is of: everything but its size, where it starts and whether it is inclusive, which its kernels are told.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) element: ElementType,
    pub(crate) acc: ElementType,
    pub(crate) out: ElementType,
    pub(crate) source: Source,
    /// Whether any order gives the same results.
    pub(crate) exact: bool,
    pub(crate) reversed: bool,
    /// The function that is applied to each element: its prelude.
    pub(crate) map: Option<String>,
}

impl Form {
    pub(crate) fn of<T: Element, U: Element, O: Op<U>>(reversed: bool, map: Option<String>) -> Self {
        Self::by::<T, U>((O::source(), !monoid::<U, O>().ordered), reversed, map)
    }

    /// The same by any operator, and whether any order gives the same.
    pub(crate) fn by<T: Element, U: Element>(
        (source, exact): (Source, bool),
        reversed: bool,
        map: Option<String>,
    ) -> Self {
        Self { element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, source, exact, reversed, map }
    }
}

/// What the first result starts with: its bits as an accumulator, and as an output.
pub(crate) struct Start {
    acc: Vec<u8>,
    out: Vec<u8>,
    inclusive: bool,
}

impl Start {
    pub(crate) fn of<U: Element, F>(op: &Monoid<U, F>, kind: Scan<U>) -> Self {
        let (acc, out) = kind.initial.map_or((op.identity, op.empty), |initial| (initial.widen(), initial));
        let [acc, out] = [bytemuck::bytes_of(&acc), bytemuck::bytes_of(&out)].map(<[u8]>::to_vec);
        Self { acc, out, inclusive: kind.initial.is_none() }
    }
}

/// The launches of a scan with at least one result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) tiles: usize,
    /// Work-groups at most; each takes a tile at least.
    pub(crate) max_groups: usize,
    pub(crate) work_group: usize,
    pub(crate) wide: bool,
    pub(crate) scratch_bytes: usize,
    /// Whether tiles wait for the totals of those before them.
    pub(crate) look_back: bool,
}

/// Elements of a tile.
fn tile(element: ElementType) -> usize {
    cpu::TILE_RUNS * 16 / element.size()
}

/// Where the totals of each level of blocks of 32 start, and how many they are.
pub(crate) fn levels(tiles: usize) -> impl Iterator<Item = (usize, usize)> {
    let above = |&(first, count): &(usize, usize)| Some((first + count, count.div_ceil(32)));
    std::iter::successors(Some((0, tiles)), above).take_while(|&(_, count)| count > 1)
}

/// Bytes of the totals of all levels, as accumulators or as the words of a look-back.
fn totals_bytes(tiles: usize, acc: ElementType, look_back: bool) -> usize {
    let totals = levels(tiles).map(|(_, count)| count).sum::<usize>();
    match (totals, look_back) {
        (0, _) => 0,
        (_, true) => TICKET_BYTES + totals * 8 * acc.size().div_ceil(4),
        (_, false) => totals * acc.size(),
    }
}

/// The most scratch that a scan with as many results takes.
pub(crate) fn scratch_bytes(outputs: usize, element: ElementType, acc: ElementType) -> usize {
    totals_bytes(outputs.div_ceil(tile(element)), acc, true)
}

pub(crate) fn plan(outputs: usize, form: &Form, aligned: bool, caps: &Capabilities, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::scan(caps);
    let many = params.work_group > 1;
    let look_back = many && caps.forward_progress && caps.device_fence && caps.int64_atomics;
    let new = if params.shuffles { ProgramSpec::with_sub_groups } else { ProgramSpec::new };
    let program = new("scan.cl", TEXT, caps)
        .with(form.element.options("T"))
        .with(form.acc.options("A"))
        .with(form.out.options("OUT"))
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("LOOK_BACK", look_back)
        .flag("REVERSE", form.reversed)
        .flag("ALIGNED", aligned && many)
        .flag("EXACT", form.exact && !many)
        .operator(&form.source);
    let program = match &form.map {
        Some(prelude) => program.flag("MAPPED", true).prelude(prelude.clone()),
        None => program,
    };
    // More work-groups at a time hide the waiting of each.
    let registers = if form.acc.size() <= 4 { 64 } else { 80 };
    let limit = caps.ptx.then(|| format!("-cl-nv-maxrregcount={registers}"));
    let program = program.with(limit);
    let tiles = outputs.div_ceil(tile(form.element));
    Ok(Plan {
        program,
        tiles,
        max_groups: params.max_groups,
        work_group: params.work_group,
        wide,
        scratch_bytes: totals_bytes(tiles, form.acc, look_back),
        look_back,
    })
}

/// Scans `input` to `out`, which may be the same, and may have one element more for the total.
pub(super) fn scan(
    device: &ClDevice,
    form: &Form,
    start: &Start,
    input: &ClInput,
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, outputs) = (input.len(), out.len());
    if n == 0 {
        return device.fill(out.mem(), out.byte_offset(), outputs * start.out.len(), &start.out);
    }
    let caps = device.capabilities_for("scan", form.element.size(), n)?;
    let aligned =
        [input, out].into_iter().all(|place| if form.reversed { place.ends_aligned() } else { place.aligned() });
    let plan = plan(outputs, form, aligned, &caps, device.tuning().wide(outputs))?;
    let totals = scratch.cl(device, plan.scratch_bytes)?;
    if plan.look_back {
        look_back(device, &plan, start, input, out, totals, SPINS)
    } else {
        reduce_then_scan(device, &plan, start, input, out, totals)
    }
}

fn reduce_then_scan(
    device: &ClDevice,
    plan: &Plan,
    start: &Start,
    input: &ClInput,
    out: &ClInput,
    totals: &ClMem,
) -> Result<()> {
    let Plan { program, tiles, wide, .. } = plan;
    let items = [plan.work_group, 1, 1];
    let groups = |tiles: usize| [tiles.min(plan.max_groups), 1, 1];
    if *tiles > 1 {
        device
            .launch(program, "scan_totals")?
            .mem(input.mem())
            .scalar(input.offset() as u64)
            .offset(input.len() as u64, *wide)
            .mem(totals)
            .offset(*tiles as u64 - 1, *wide)
            .run(groups(tiles - 1), items)?;
    }
    for (first, count) in levels(*tiles) {
        device
            .launch(program, "scan_spine")?
            .mem(totals)
            .offset(first as u64, *wide)
            .offset(count as u64, *wide)
            .offset((first + count) as u64, *wide)
            .run([count.div_ceil(32).div_ceil(plan.work_group), 1, 1], items)?;
    }
    device
        .launch(program, "scan_tiles")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(input.len() as u64, *wide)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(out.len() as u64, *wide)
        .mem(totals)
        .offset(*tiles as u64, *wide)
        .plain(&start.acc)
        .scalar(u32::from(start.inclusive))
        .run(groups(*tiles), items)
}

fn look_back(
    device: &ClDevice,
    plan: &Plan,
    start: &Start,
    input: &ClInput,
    out: &ClInput,
    state: &ClMem,
    spins: u32,
) -> Result<()> {
    device.fill(state, 0, plan.scratch_bytes, &[0; 8])?;
    device
        .launch(&plan.program, "scan_look_back")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(input.len() as u64, plan.wide)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(out.len() as u64, plan.wide)
        .mem(state)
        .offset(plan.tiles as u64, plan.wide)
        .plain(&start.acc)
        .scalar(u32::from(start.inclusive))
        .scalar(u32::from(input.mem().as_ptr() == out.mem().as_ptr()))
        .scalar(spins)
        .run([plan.tiles, 1, 1], [plan.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Device, DeviceClass, Tuning,
        check::{data::Data, same},
        op::Sum,
        runtime::Backend,
    };

    /// Others do the work of tiles that publish nothing.
    fn with_silent_tiles<T: Element>(cl: &ClDevice, n: usize, what: &str) {
        let x: Vec<T> = Data::Random.generate(n, 3);
        let want = Device::cpu().inclusive_scan(&x, Sum).unwrap().to_vec().unwrap();
        let device = Device::from_cl(cl.clone());
        let (buffer, mut sums) = (device.upload(&x).unwrap(), device.zeroed::<T>(n).unwrap());
        let (input, out) = (crate::Input::from(&buffer).cl(cl), crate::Output::from(&mut sums).cl(cl, false));
        let (input, out) = (input.unwrap(), out.unwrap());
        let caps = cl.capabilities().unwrap();
        let mut plan = plan(n, &Form::of::<T, T, Sum>(false, None), true, &caps, false).unwrap();
        if !plan.look_back {
            crate::check::log_skip(what, "no look-back");
            return;
        }
        plan.program = plan.program.flag("STALL", true);
        let mut scratch = Scratch::new();
        let state = scratch.cl(cl, plan.scratch_bytes).unwrap();
        look_back(cl, &plan, &Start::of(&monoid::<T, Sum>(), Scan::inclusive()), &input, &out, state, 3).unwrap();
        out.finish(cl).unwrap();
        same(&sums.to_vec().unwrap(), &want, what).unwrap();
    }

    #[test]
    fn a_look_back_does_without_totals_that_do_not_come() {
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let device = device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            with_silent_tiles::<u32>(cl, 70 * 8192 + 5, &format!("{info}: u32"));
            with_silent_tiles::<f32>(cl, 70 * 8192 + 5, &format!("{info}: f32"));
            with_silent_tiles::<i64>(cl, 1100 * 4096 + 5, &format!("{info}: i64"));
        }
    }

    #[test]
    fn plans_have_scratch_for_every_tile() {
        let form = Form::of::<u32, u64, Sum>(false, None);
        for (name, caps) in Capabilities::samples() {
            for n in [1, 8192, 8193, 1 << 20, (1 << 32) + 1] {
                let plan = plan(n, &form, true, &caps, n >= 1 << 31).unwrap();
                assert!(plan.tiles * 8192 >= n && (plan.tiles - 1) * 8192 < n, "{name}: {n}");
                assert!(plan.tiles == 1 || plan.scratch_bytes >= 8 * plan.tiles, "{name}: {n}");
                assert!(plan.scratch_bytes <= scratch_bytes(n, ElementType::U32, ElementType::U64), "{name}: {n}");
                assert!(plan.work_group == 1 || plan.work_group >= 8, "{name}: {n}");
            }
        }
    }

    #[test]
    fn levels_end_in_a_block() {
        assert_eq!(levels(1).count(), 0);
        assert_eq!(levels(32).collect::<Vec<_>>(), [(0, 32)]);
        assert_eq!(levels(33).collect::<Vec<_>>(), [(0, 33), (33, 2)]);
        assert_eq!(levels(1 << 15).collect::<Vec<_>>(), [(0, 1 << 15), (1 << 15, 1 << 10), (33 << 10, 32)]);
    }
}
