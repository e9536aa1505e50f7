//! Permutation on OpenCL devices: the choice of a kernel for a job, and the launch of the general kernel.

use super::job::{Axis, Job};
use crate::{
    Result,
    layout::{
        copy::nd::gpu::{self as nd, Rows},
        transpose::gpu::{self as matrices, Shape},
    },
    runtime::{ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("permute.cl");
/// Maximum number of axes that kernels take.
const MAX_AXES: usize = 8;
/// Minimum elements of a matrix that fills a work-group's tile.
const TILE_CELLS: usize = 512;

/// The launch of a job that has at least one element and is not a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub job: Job,
    pub groups: usize,
    pub work_group: usize,
    /// Contiguous units per work-item; 0 if the work-items of a work-group interleave.
    pub run: usize,
    pub wide: bool,
}

/// The plan of a job; `bases` has the byte offsets of the buffers' first elements.
pub fn plan(job: Job, bases: [usize; 2], caps: &Tuned, wide: impl Fn(usize) -> bool) -> Plan {
    let job = job.widened(bases);
    let (from, to) = job.ends();
    let wide = wide(from.max(to).max(job.len()));
    let params = tuning::permute(caps, job.size);
    let program = ProgramSpec::new("permute.cl", TEXT, caps)
        .define("UNIT", tuning::unit_type(job.size))
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("WG", params.work_group)
        .define("EACH", params.each);
    let run = match caps.class {
        DeviceClass::Cpu => job.len().div_ceil(params.max_groups).max(params.min_run),
        DeviceClass::Gpu => 0,
    };
    let groups = job.len().div_ceil(if run > 0 { run } else { params.work_group * params.each });
    Plan { program, job, groups, work_group: params.work_group, run, wide }
}

/// `(magic, shift)` for which `i / n == mul_hi(i, magic) >> shift`, for n > 1 and i < 2^31, or i < 2^63 if `wide`.
fn magic(n: usize, wide: bool) -> (u64, u32) {
    let bits = (n - 1).ilog2() + 1;
    let power = if wide { 63 } else { 31 } + bits;
    (((1u128 << power) / n as u128 + 1) as u64, bits - 1)
}

/// Moves the elements of `input` to `output` as `job` describes. The caller has checked the job against both lengths.
pub fn permute(device: &ClDevice, job: Job, input: &ClInput, output: &ClInput) -> Result<()> {
    let bytes = job.len() * job.size;
    if bytes == 0 {
        return Ok(());
    }
    let bases = [input.byte_offset(), output.byte_offset()];
    if let [] | [Axis { from: 1, to: 1, .. }] = job.axes[..] {
        let (from, to) = (bases[0] + job.from * job.size, bases[1] + job.to * job.size);
        return crate::layout::copy::gpu::copy(device, (input.mem(), from), (output.mem(), to), bytes);
    }
    if let Some(turn) = job.turn() {
        let batch = job.batch(&turn);
        let fits = batch.is_empty() || turn.rows.n * turn.cols.n >= TILE_CELLS;
        if fits && batch.len() <= Shape::MAX_BATCH {
            let shape = Shape {
                rows: turn.rows.n,
                cols: turn.cols.n,
                size: job.size,
                ld_in: turn.rows.from as usize,
                ld_out: turn.cols.to as usize,
                input: bases[0],
                output: bases[1] + job.to * job.size,
                first_in: job.from,
                batch: batch.into_iter().rev().collect(),
            };
            return matrices::launch(device, &shape, input.mem(), output.mem());
        }
    }
    let caps = device.capabilities_for(Primitive::CopyRanges, 1, bytes)?;
    if let Some(rows) = Rows::of(&job, bases, &caps) {
        let (from, to) = (bases[0] + job.from * job.size, bases[1] + job.to * job.size);
        return nd::copy(device, &rows, (input, from), (output, to));
    }
    let caps = device.capabilities_for(Primitive::Permute, job.size, job.len())?;
    // Elements of several units add an axis, so there can be one axis too many.
    for part in job.widened(bases).split(MAX_AXES) {
        gather(device, plan(part, bases, &caps, |n| device.wide(n)), input, output)?;
    }
    Ok(())
}

/// Launches `permute_gather`, or `permute_runs` on CPU drivers, for a job of at most [`MAX_AXES`] axes.
fn gather(device: &ClDevice, plan: Plan, input: &ClInput, output: &ClInput) -> Result<()> {
    let Plan { program, job, groups, work_group, run, wide } = plan;
    let axes = || job.axes.iter().rev();
    let magics = || axes().map(|axis| magic(axis.n, wide));
    let mut shifts = [0u32; 8];
    shifts.iter_mut().zip(magics()).for_each(|(to, (_, shift))| *to = shift);
    let launch = device
        .launch(&program, if run > 0 { "permute_runs" } else { "permute_gather" })?
        .mem(input.mem())
        .scalar((input.byte_offset() / job.size) as u64)
        .mem(output.mem())
        .scalar((output.byte_offset() / job.size + job.to) as u64)
        .offset(job.len() as u64, wide);
    let launch = if run > 0 { launch.offset(run as u64, wide) } else { launch };
    let launch = launch.scalar(job.axes.len() as u32).offset(job.from as u64, wide);
    let launch = launch.eight_offsets(wide, axes().map(|axis| axis.n as i64));
    let launch = launch.eight_offsets(wide, magics().map(|(magic, _)| magic as i64)).scalar(shifts);
    let launch = launch.eight_offsets(wide, axes().map(|axis| axis.from as i64));
    let launch = launch.eight_offsets(wide, axes().map(|axis| axis.to as i64));
    launch.run([groups, 1, 1], [work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_numbers_divide() {
        for n in [2usize, 3, 4, 5, 7, 8, 9, 10, 255, 256, 257, 65_537, (1 << 30) - 1, 1 << 30, (1 << 31) - 1] {
            for wide in [false, true] {
                let (magic, shift) = magic(n, wide);
                let high = |i: u64| if wide { ((i as u128 * magic as u128) >> 64) as u64 } else { (i * magic) >> 32 };
                let last = if wide { (1 << 63) - 1 } else { (1 << 31) - 1u64 };
                assert!(wide || magic < 1 << 32);
                for i in [0, 1, n as u64 - 1, n as u64, n as u64 + 1, 2 * n as u64 - 1, last - 1, last, last / 2] {
                    let i = i.min(last);
                    assert_eq!(high(i) >> shift, i / n as u64, "{i} / {n}");
                }
            }
        }
    }

    #[test]
    fn plans_cover_every_unit() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 255, 257, 1 << 20, (1 << 32) + 1, 1 << 40, 1 << 48] {
                let axes = vec![Axis { n: 3, from: 1, to: 2 * n as isize }, Axis { n, from: 3, to: 2 }];
                let plan = plan(Job { size: 4, axes, from: 0, to: 0 }, [0, 0], &caps, |n| n >= 1 << 31);
                let each = if plan.run > 0 { plan.run } else { plan.work_group * caps_each(&plan) };
                assert!(plan.groups * each >= plan.job.len(), "{name}: {n}");
                assert_eq!(plan.wide, 6 * n >= 1 << 31, "{name}: {n}");
            }
        }
    }

    fn caps_each(plan: &Plan) -> usize {
        plan.program.defined("EACH").unwrap().parse().unwrap()
    }
}
