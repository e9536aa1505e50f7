//! Scans of structs on OpenCL devices: the plan. The launches are those of all scans.

use bytemuck::Pod;

use super::{RUN, lanes};
use crate::{
    ElementType, Result,
    counted::{ClCount, with_length},
    op::{Code, Operator},
    runtime::{ClInput, ProgramSpec, opencl::ClDevice},
    scan::gpu::{Heads, Operation, Plan, with_heads},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("scan_by.cl");

/// The operator, its type and the segments. All else is an argument of the kernels: n, the initial value, and whether
/// the scan is inclusive.
#[derive(Clone, Debug)]
pub struct Form {
    pub source: Code,
    /// Bytes of an element.
    pub size: usize,
    pub needs_fp64: bool,
    pub reversed: bool,
    /// The source of segment heads, if there are segments.
    pub heads: Option<Heads>,
    /// The type of the count in memory, if it is the number of elements.
    pub count: Option<ElementType>,
}

impl Form {
    pub fn of<T: Pod, F: Fn(T, T) -> T>(op: &Operator<T, F>, reversed: bool, heads: Option<Heads>) -> Self {
        Self { source: op.source(), size: size_of::<T>(), needs_fp64: op.needs_fp64, reversed, heads, count: None }
    }
}

impl Operation for Form {
    fn size(&self) -> usize {
        self.size
    }

    fn reversed(&self) -> bool {
        self.reversed
    }

    fn plan(&self, outputs: usize, [_, heads_aligned]: [bool; 2], caps: &Tuned, wide: bool) -> Result<Plan> {
        plan(outputs, self, heads_aligned, caps, wide)
    }

    fn of_count(&self, count: &ClCount) -> Box<dyn Operation> {
        Box::new(Self { count: Some(count.element()), ..self.clone() })
    }

    fn counts(&self) -> bool {
        self.count.is_some()
    }
}

/// The launches of a scan with at least one result. `aligned` says whether the keys or flags of segments are aligned.
pub fn plan(outputs: usize, form: &Form, aligned: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    if form.needs_fp64 {
        caps.supports(ElementType::F64)?;
    }
    let (tuning, lanes, segmented) = (tuning::reduce(caps), lanes(form.size), form.heads.is_some());
    // A partial has at most the size of two elements, or of an element and its flag.
    let partial = if segmented { 2 * form.size.next_power_of_two().max(4) } else { form.size };
    let local = lanes * partial + lanes * RUN / 8;
    let work_group = if tuning::fits_locally(local, caps) { tuning.work_group.min(lanes) } else { 1 };
    let program = ProgramSpec::new("scan_by.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("REVERSE", form.reversed)
        .flag("HEADS_ALIGNED", segmented && aligned);
    let program = with_length(with_heads(program, form.heads), form.count).operator(&form.source);
    Ok(Plan::of_two_reads(
        program,
        outputs.div_ceil(lanes * RUN),
        partial,
        (work_group, tuning.max_groups),
        form.heads,
        wide,
    ))
}

/// Writes the last result of each segment of `scanned`, the results of a scan; the identity for empty segments. The
/// heads of `form` are offsets.
pub(crate) fn last_of_segments(
    device: &ClDevice,
    form: &Form,
    scanned: &ClInput,
    offsets: &ClInput,
    out: &ClInput,
) -> Result<()> {
    let (n, segments) = (scanned.len(), out.len());
    if segments == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Scan, form.size, n)?;
    let Plan { program, work_group, max_groups, wide, .. } =
        plan(n.max(1), form, true, &caps, device.wide(n.max(offsets.len())))?;
    device
        .launch(&program, "scan_ends")?
        .mem(scanned.mem())
        .scalar(scanned.offset() as u64)
        .offset(n as u64, wide)
        .mem(offsets.mem())
        .scalar(offsets.offset() as u64)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(segments as u64, wide)
        .run([segments.div_ceil(work_group).min(max_groups), 1, 1], [work_group, 1, 1])
}
