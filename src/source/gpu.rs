//! Writes the elements of a source to memory on OpenCL devices.

use super::{
    Expression,
    load::{Load, Type},
    outside,
};
use crate::{
    ElementType, Integer, Result,
    counted::{ClCount, length, with_length},
    runtime::{ClInput, ClOutput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("transform.cl");
const SEVERAL: &str = kernel_text!("transform_several.cl");
/// Vectors of 16 bytes that a work-item writes on GPUs.
const EACH: usize = 4;
/// Indices per block of the search for the first one out of range.
const BLOCK: usize = 1 << 20;

/// A launch that writes n > 0 elements, or as many of them as a count in memory says.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    /// Contiguous elements of a work-item on CPU drivers; otherwise 0.
    pub run: usize,
    pub wide: bool,
}

/// The geometry is that of an iota, which writes as many elements. `count` is the type of the count in memory, if there is one.
pub fn plan(n: usize, load: &Load, count: Option<ElementType>, caps: &Tuned, wide: bool) -> Result<Plan> {
    let program = ProgramSpec::new("transform.cl", TEXT, caps);
    planned(with_length(program, count), n, load, caps, wide)
}

/// [`plan`] for elements that are tuples, with an output for each component. On GPUs its `run` is not 0, but the number
/// of elements that a work-group writes.
pub fn plan_several(n: usize, load: &Load, caps: &Tuned, wide: bool) -> Result<Plan> {
    let plan = planned(ProgramSpec::new("transform_several.cl", SEVERAL, caps), n, load, caps, wide)?;
    let run = if caps.class == DeviceClass::Cpu { plan.run } else { per_group(plan.work_group, load) };
    Ok(Plan { run, ..plan })
}

/// Elements that a work-group writes on GPUs.
fn per_group(work_group: usize, load: &Load) -> usize {
    work_group * EACH * load.ty().per_vector()
}

fn planned(program: ProgramSpec, n: usize, load: &Load, caps: &Tuned, wide: bool) -> Result<Plan> {
    let tuning::Iota { work_group, max_groups, min_run } = tuning::iota(caps);
    let program = match load.ty() {
        Type::Element(element) => {
            caps.supports(*element)?;
            program.element("T", *element).element("A", element.accumulator())
        }
        Type::Struct(of) => program.define("STRUCT", &of.name),
    };
    let program =
        program.define("WG", work_group).define("EACH", EACH).define("OFFSET_T", if wide { "ulong" } else { "uint" });
    let program = load.program(program, caps)?;
    let (run, groups) = match caps.class {
        DeviceClass::Cpu => {
            let run = n.div_ceil(max_groups).max(min_run);
            (run, n.div_ceil(run))
        }
        DeviceClass::Gpu => (0, n.div_ceil(per_group(work_group, load))),
    };
    Ok(Plan { program, groups, work_group, run, wide })
}

/// Writes each component of the elements to its output. All outputs have the same length.
pub(super) fn write_several(device: &ClDevice, load: &Load, outs: &[ClOutput<'_>]) -> Result<()> {
    let n = outs[0].len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Iota, load.ty().size(), n)?;
    let plan = plan_several(n, load, &caps, device.wide(n))?;
    let launch = load.arguments(device.launch(&plan.program, "transform_several")?);
    let launch = outs.iter().fold(launch, |launch, out| launch.mem(out.mem()).scalar(out.offset() as u64));
    let launch = launch.offset(n as u64, plan.wide).offset(plan.run as u64, plan.wide);
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

/// Writes the elements from index `first` on to `out`, whose elements have the type of the load. With a count, `first`
/// is 0, and the kernel writes as many elements as the count says.
pub(super) fn write(
    device: &ClDevice,
    load: &Load,
    first: usize,
    out: &ClInput,
    count: Option<&ClCount>,
) -> Result<()> {
    let n = out.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Iota, load.ty().size(), n)?;
    let plan = plan(n, load, count.map(ClCount::element), &caps, device.wide(first + n))?;
    let launch = load
        .arguments(device.launch(&plan.program, "transform")?)
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(first as u64, plan.wide);
    let launch = length(launch, n, plan.wide, count, 0);
    let launch = match caps.class {
        DeviceClass::Cpu => launch.offset(plan.run as u64, plan.wide),
        DeviceClass::Gpu => launch.scalar(u32::from(out.aligned())),
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

/// Returns an error if one of `n` indices is not below `len`. The error names the first such index.
pub(super) fn none_outside<I: Integer>(
    device: &ClDevice,
    indices: &dyn Expression<I>,
    n: usize,
    len: usize,
) -> Result<()> {
    let load = Load::of(indices, device)?;
    for first in (0..n).step_by(BLOCK) {
        let mut block = vec![I::ZERO; BLOCK.min(n - first)];
        let memory = ClInput::pooled(device, size_of_val(&block[..]), size_of::<I>())?;
        write(device, &load, first, &memory, None)?;
        device.read(memory.mem(), 0, bytemuck::cast_slice_mut(&mut block))?;
        let inside = |index: &I| usize::try_from(index.to_i128()).is_ok_and(|index| index < len);
        if let Some(k) = block.iter().position(|index| !inside(index)) {
            return Err(outside(first + k, block[k].to_i128(), len));
        }
    }
    Ok(())
}
