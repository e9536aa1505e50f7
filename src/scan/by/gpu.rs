//! Scans of structs on OpenCL devices: the plan. The launches are those of all scans.

use bytemuck::Pod;

use super::{RUN, lanes};
use crate::{
    ElementType, Error, Result, Scratch,
    counted::{ClCount, with_length},
    op::{Code, Operator},
    runtime::{AnyInput, AnyOutput, Arriving, ClInput, ProgramSpec, opencl::ClDevice},
    scan::gpu::{Heads, Operation, Plan, Start, Starts, scan, with_heads},
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
    /// The type of the count in memory that is the number of elements; `None` if the host knows the number.
    pub count: Option<ElementType>,
    /// True for a reduction: only the last result of each segment is written. The heads are offsets or rows.
    pub ends: bool,
}

impl Form {
    pub fn of<T: Pod, F: Fn(T, T) -> T>(op: &Operator<T, F>, reversed: bool, heads: Option<Heads>) -> Self {
        let (source, size) = (op.source(), size_of::<T>());
        Self { source, size, needs_fp64: op.needs_fp64, reversed, heads, count: None, ends: false }
    }
}

impl Operation for Form {
    fn size(&self) -> usize {
        self.size
    }

    fn reversed(&self) -> bool {
        self.reversed
    }

    fn outputs(&self, n: usize, outputs: usize) -> usize {
        if self.ends { n } else { outputs }
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
    let local = lanes * partial + lanes * RUN / 8 + lanes;
    // The gap after a row: at least the alignment of elements, and at least 4 bytes.
    let gap = (form.size & form.size.wrapping_neg()).max(4);
    let stage = tuning::fits_locally(local + lanes * (RUN * form.size + gap) + 64, caps);
    let work_group = if tuning::fits_locally(local, caps) { tuning.work_group.min(lanes) } else { 1 };
    let program = ProgramSpec::new("scan_by.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("REVERSE", form.reversed)
        .flag("STAGED", work_group > 1 && stage)
        .flag("ENDS", form.ends)
        .flag("HEADS_ALIGNED", segmented && aligned);
    let program = with_length(with_heads(program, form.heads), form.count).operator(&form.source);
    let tiles = outputs.div_ceil(lanes * RUN);
    let plan = Plan::of_two_reads(program, tiles, partial, (work_group, tuning.max_groups), form.heads, wide);
    // The kernels of a reduction keep two ranks for each tile.
    let ends = if form.ends { plan.scratch_bytes - plan.totals_bytes } else { 0 };
    Ok(Plan { scratch_bytes: plan.scratch_bytes + ends, ..plan })
}

/// Writes the aggregate of each segment, or the identity if it is empty. Offsets or rows define the segments.
pub(crate) fn reduce_segments(
    device: &ClDevice,
    form: &Form,
    start: &Start,
    (input, starts): (AnyInput<'_>, Starts<AnyInput<'_>>),
    output: AnyOutput<'_>,
) -> Result<()> {
    let form = &Form { ends: true, ..form.clone() };
    let (input, output) = (input.cl(device)?, output.cl(device, false)?);
    crate::runtime::apart(&[&input], &[&output])?;
    let given;
    let starts = match starts {
        Starts::Offsets(offsets) => {
            given = offsets.cl(device)?;
            crate::runtime::apart(&[&given], &[&output])?;
            empty_segments(device, form, input.len(), &given, &output)?;
            Starts::Offsets(&given)
        }
        Starts::Every(len) => Starts::Every(len),
        Starts::None | Starts::Beside(_) => return Err(Error::unsupported("only offsets and rows number segments")),
    };
    if input.len() > 0 && output.len() > 0 {
        scan(device, form, start, (Arriving::from(&input), starts), None, &output, &mut Scratch::new())?;
    }
    output.finish(device)
}

/// Writes the identity for each empty segment of an input of n elements.
fn empty_segments(device: &ClDevice, form: &Form, n: usize, offsets: &ClInput, out: &ClInput) -> Result<()> {
    let segments = out.len();
    if segments == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Scan, form.size, n)?;
    let Plan { program, work_group, max_groups, wide, .. } =
        plan(n.max(1), form, true, &caps, device.wide(n.max(offsets.len())))?;
    device
        .launch(&program, "scan_ends")?
        .offset(n as u64, wide)
        .mem(offsets.mem())
        .scalar(offsets.offset() as u64)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(segments as u64, wide)
        .run([segments.div_ceil(work_group).min(max_groups), 1, 1], [work_group, 1, 1])
}
