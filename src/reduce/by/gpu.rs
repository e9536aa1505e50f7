//! Reduction by a user-defined operator on OpenCL devices: the plan, then its launches.

use super::{LANES, rows};
use crate::{
    Result, Scratch,
    counted::{ClCount, length},
    op::gpu::{Form, program, work_group},
    runtime::{ClInput, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

/// A launch that reduces `n` elements or partials to `tiles` partials.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    pub program: ProgramSpec,
    pub n: usize,
    /// Binary logarithm of the number of elements of a partial that the launch reads; 0 for elements.
    pub log_each: u32,
    pub tiles: usize,
    pub groups: usize,
    pub work_group: usize,
    pub wide: bool,
}

/// The passes over n > 0 elements.
pub fn plan(n: usize, form: &Form, caps: &Tuned, wide: &dyn Fn(usize) -> bool) -> Result<Vec<Pass>> {
    let (max_groups, work_group) = (tuning::reduce(caps).max_groups, work_group(form, caps));
    let (mut passes, mut n, mut log_each) = (Vec::new(), n, 0);
    let tile = rows(form.size) * LANES;
    loop {
        let tiles = n.div_ceil(tile);
        let program = program(form, caps, work_group, wide(n))?;
        let groups = tiles.min(max_groups);
        passes.push(Pass { program, n, log_each, tiles, groups, work_group, wide: wide(n) });
        if tiles == 1 {
            return Ok(passes);
        }
        n = tiles;
        log_each += tile.ilog2();
    }
}

pub fn scratch_bytes(n: usize, size: usize) -> usize {
    let (mut n, mut all) = (n, 0usize);
    while n > 1 {
        n = n.div_ceil(rows(size) * LANES);
        all = all.saturating_add(if n > 1 { n.saturating_mul(size) } else { 0 });
    }
    all
}

/// Runs a reduction of all elements of `input`, or of as many as a count of type `form.count` says. `identity` is the result for
/// empty input.
///
/// The output may alias the input: the single work-group of the last launch reads all partials before it writes.
pub(crate) fn reduce(
    device: &ClDevice,
    form: &Form,
    identity: &[u8],
    (input, count): (&ClInput, Option<&ClCount>),
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    if input.len() == 0 {
        return out.set(device, identity);
    }
    let caps = device.capabilities_for(Primitive::Reduce, form.size, input.len())?;
    let plan = plan(input.len(), form, &caps, &|n| device.wide(n))?;
    let partials = scratch.cl(device, scratch_bytes(input.len(), form.size))?;
    let (mut from, mut from_offset, mut end) = (input.mem(), input.offset(), 0);
    for pass in &plan {
        let (to, to_offset) = if pass.tiles == 1 { (out.mem(), out.offset()) } else { (partials, end) };
        let launch = device.launch(&pass.program, "reduce_by_tiles")?.mem(from).scalar(from_offset as u64);
        length(launch, pass.n, pass.wide, count, pass.log_each)
            .mem(to)
            .scalar(to_offset as u64)
            .run([pass.groups, 1, 1], [pass.work_group, 1, 1])?;
        (from, from_offset) = (to, to_offset);
        end += pass.tiles;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Op, Sum};

    #[test]
    fn passes_end_in_one_partial_and_fit_the_scratch() {
        for (name, caps) in Tuned::samples() {
            for size in [1, 3, 4, 12, 64] {
                let form = Form { source: <Sum as Op<f32>>::source(), size, needs_fp64: false, count: None };
                for n in [1, 1024, 65_537, (1 << 32) + 1, 1 << 40, 1 << 48] {
                    let plan = plan(n, &form, &caps, &|n| n >= 1 << 31).unwrap();
                    assert_eq!(plan.last().map(|pass| pass.tiles), Some(1), "{name}: {n} of {size}");
                    let partials: usize = plan[..plan.len() - 1].iter().map(|pass| pass.tiles).sum();
                    assert_eq!(partials * size, scratch_bytes(n, size), "{name}: {n} of {size}");
                }
            }
        }
    }
}
