//! Scans on OpenCL devices: the plan, then its launches.

use super::{Scan, cpu};
use crate::{
    Element, ElementType, Result, Scratch,
    op::{Op, Source},
    runtime::{Capabilities, ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning,
};

const TEXT: &str = include_str!("../../cl/scan.cl");

/// What a scan is of: everything but its size and its kind, which its kernels are told.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) element: ElementType,
    pub(crate) acc: ElementType,
    pub(crate) out: ElementType,
    pub(crate) source: Source,
    /// Whether any order gives the same results.
    pub(crate) exact: bool,
}

impl Form {
    pub(crate) fn of<T: Element, U: Element, O: Op<U>>() -> Self {
        let exact = !cpu::ordered::<U, O>();
        Self { element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, source: O::source(), exact }
    }
}

/// What the first result starts with: its bits as an accumulator, and as an output.
pub(crate) struct Start {
    acc: Vec<u8>,
    out: Vec<u8>,
    inclusive: bool,
}

impl Start {
    pub(crate) fn of<U: Element, O: Op<U>>(kind: Scan<U>) -> Self {
        let (acc, out, inclusive) = match kind {
            Scan::Inclusive => (O::identity(), O::empty(), true),
            Scan::Exclusive(initial) => (initial.widen(), initial, false),
        };
        Self { acc: bytemuck::bytes_of(&acc).to_vec(), out: bytemuck::bytes_of(&out).to_vec(), inclusive }
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
}

/// Elements of a tile.
fn tile(element: ElementType) -> usize {
    cpu::TILE_RUNS * 16 / element.size()
}

/// The scratch of a scan with as many results.
pub(crate) fn scratch_bytes(outputs: usize, element: ElementType, acc: ElementType) -> usize {
    match outputs.div_ceil(tile(element)) {
        0 | 1 => 0,
        tiles => tiles * acc.size(),
    }
}

pub(crate) fn plan(outputs: usize, form: &Form, aligned: bool, caps: &Capabilities, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::scan(caps);
    // Small work-groups, and those that would exchange through local memory anyway, have their tree there.
    let (sub_group, gpu) = (caps.sub_group, caps.class == DeviceClass::Gpu);
    let shuffles = gpu && sub_group.backend.is_hardware() && sub_group.width as usize <= params.work_group;
    let caps = if shuffles { caps.clone() } else { caps.without_sub_groups() };
    let program = ProgramSpec::new("scan.cl", TEXT, &caps)
        .with(form.element.options("T"))
        .with(form.acc.options("A"))
        .with(form.out.options("OUT"))
        .with([form.source.0.as_str()])
        .define("WG", params.work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("ALIGNED", aligned && gpu)
        .flag("EXACT", form.exact && !gpu);
    Ok(Plan {
        program,
        tiles: outputs.div_ceil(tile(form.element)),
        max_groups: params.max_groups,
        work_group: params.work_group,
        wide,
        scratch_bytes: scratch_bytes(outputs, form.element, form.acc),
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
    let caps = device.capabilities()?;
    let aligned = input.aligned() && out.aligned();
    let plan = plan(outputs, form, aligned, &caps, device.tuning().wide(outputs))?;
    let totals = scratch.cl(device, plan.scratch_bytes)?;
    let items = [plan.work_group, 1, 1];

    if plan.tiles > 1 {
        let whole = plan.tiles - 1;
        device
            .launch(&plan.program, "scan_totals")?
            .mem(input.mem())
            .scalar(input.offset() as u64)
            .offset(n as u64, plan.wide)
            .mem(totals)
            .offset(whole as u64, plan.wide)
            .run([whole.min(plan.max_groups), 1, 1], items)?;
        device
            .launch(&plan.program, "scan_spine")?
            .mem(totals)
            .offset(plan.tiles as u64, plan.wide)
            .plain(&start.acc)
            .run([1, 1, 1], items)?;
    }
    device
        .launch(&plan.program, "scan_tiles")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(n as u64, plan.wide)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(outputs as u64, plan.wide)
        .mem(totals)
        .offset(plan.tiles as u64, plan.wide)
        .plain(&start.acc)
        .scalar(u32::from(start.inclusive))
        .run([plan.tiles.min(plan.max_groups), 1, 1], items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Sum;

    #[test]
    fn plans_have_scratch_for_every_tile() {
        let form = Form::of::<u32, u64, Sum>();
        for (name, caps) in Capabilities::samples() {
            for n in [1, 4096, 4097, 1 << 20, (1 << 32) + 1] {
                let plan = plan(n, &form, true, &caps, n >= 1 << 31).unwrap();
                assert!(plan.tiles * 4096 >= n && (plan.tiles - 1) * 4096 < n, "{name}: {n}");
                assert!(plan.tiles == 1 || plan.scratch_bytes == 8 * plan.tiles, "{name}: {n}");
                assert!(plan.work_group <= 256, "{name}: {n}");
            }
        }
    }
}
