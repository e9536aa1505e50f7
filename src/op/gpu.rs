//! The program of a user-defined operator on OpenCL devices.

use crate::{
    ElementType, Result,
    counted::with_length,
    op::Code,
    runtime::{ProgramSpec, opencl::ClDevice},
    tuning::{self, Tuned},
};

const TEXT: &str = kernel_text!("reduce_by.cl");

/// The operation and its types, without the number of elements.
#[derive(Clone, Debug)]
pub struct Form {
    pub source: Code,
    pub size: usize,
    pub needs_fp64: bool,
    /// The type of the count in memory, if it is the number of elements of a reduction.
    pub count: Option<ElementType>,
}

/// Work-items of a work-group: local memory holds one element per work-item. The result of a reduction does not depend
/// on this number.
pub(crate) fn work_group(form: &Form, caps: &Tuned) -> usize {
    tuning::work_group_of(tuning::reduce(caps).work_group, form.size, caps)
}

/// The program of an operator, with the kernels of reductions and of [`pairs`].
pub(crate) fn program(form: &Form, caps: &Tuned, work_group: usize, wide: bool) -> Result<ProgramSpec> {
    if form.needs_fp64 {
        caps.supports(ElementType::F64)?;
    }
    let program = ProgramSpec::new("reduce_by.cl", TEXT, caps)
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" });
    Ok(with_length(program, form.count).operator(&form.source))
}

/// Applies the operator's text to each pair: `out[i] = op(a[i], b[i])`.
pub fn pairs(device: &ClDevice, form: &Form, a: &[u8], b: &[u8], out: &mut [u8]) -> Result<()> {
    let n = out.len() / form.size;
    let caps = Tuned::from(device.capabilities()?);
    let work_group = work_group(form, &caps);
    let program = program(form, &caps, work_group, device.wide(n))?;
    let [left, right, result] = [device.pooled(a.len())?, device.pooled(b.len())?, device.pooled(out.len())?];
    device.write(left.mem(), 0, a)?;
    device.write(right.mem(), 0, b)?;
    device
        .launch(&program, "combine_pairs")?
        .mem(left.mem())
        .mem(right.mem())
        .mem(result.mem())
        .scalar(n as u32)
        .run([n.div_ceil(work_group), 1, 1], [work_group, 1, 1])?;
    device.read(result.mem(), 0, out)
}
