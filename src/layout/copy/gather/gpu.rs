//! Gather and scatter on OpenCL devices: the plan, then its launches.

use super::Way;
use crate::{
    Result,
    runtime::{AnyInput, AnyOutput, ClInput, DeviceClass, ProgramSpec, on_device, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("gather.cl");
/// Maximum units of one launch, so that 32-bit counters hold them.
const MAX_UNITS: usize = 1 << 31;

/// A launch over n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    /// Contiguous elements of a work-item on CPU drivers; otherwise 0.
    pub run: usize,
    /// Elements of the line before its first aligned group of four elements.
    pub head: usize,
    /// True if the indices of each group of four begin at a multiple of 16 bytes.
    pub whole: bool,
}

/// The plan for elements of `size` bytes and indices of `index_size` bytes. `begin` has the byte offsets of line and
/// indices.
pub fn plan(n: usize, size: usize, index_size: usize, begin: [usize; 2], caps: &Tuned) -> Plan {
    let params = tuning::gather(caps, size);
    let unit = tuning::unit(size).min(16);
    let program = ProgramSpec::new("gather.cl", TEXT, caps)
        .unoptimised_on_a_checker(caps)
        .define("UNIT", tuning::unit_type(unit))
        .define("UNIT_BYTES", unit)
        .define("PARTS", size / unit)
        .define("INDEX", if index_size == 4 { "uint" } else { "ulong" })
        .define("INDEX_BYTES", index_size);
    if caps.class == DeviceClass::Cpu {
        let run = n.div_ceil(params.max_groups).max(params.min_run);
        return Plan { program, groups: n.div_ceil(run), work_group: 1, run, head: 0, whole: false };
    }
    let tuning::Gather { work_group, each, .. } = params;
    let program = program.define("WG", work_group).define("EACH", each);
    if !matches!(size, 1 | 2 | 4) {
        let groups = (n * (size / unit)).div_ceil(work_group * each);
        return Plan { program, groups, work_group, run: 0, head: 0, whole: false };
    }
    let head = (begin[0].wrapping_neg() % (4 * size) / size).min(n);
    let whole = (begin[1] + head * index_size).is_multiple_of(16);
    let groups = ((n - head) / 4).div_ceil(work_group * each).max(1);
    Plan { program, groups, work_group, run: 0, head, whole }
}

/// Direction, bytes of an element, and bytes of an index.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub(crate) way: Way,
    pub size: usize,
    pub index_size: usize,
}

/// Enqueues the copy between `table` and `line`, and sets `outside`.
pub fn run(
    device: &ClDevice,
    form: Form,
    table: &ClInput,
    index: &ClInput,
    line: &ClInput,
    outside: &ClInput,
) -> Result<()> {
    let parts = form.size / tuning::unit(form.size).min(16);
    run_by(device, form, table, index, line, outside, (MAX_UNITS / parts.next_power_of_two()).max(1))
}

/// [`run`] with arguments in any memory: the input and the indices, then the output, and the index out of range.
pub(crate) fn run_any(
    device: &ClDevice,
    form: Form,
    inputs: [AnyInput<'_>; 2],
    [to, outside]: [AnyOutput<'_>; 2],
) -> Result<()> {
    on_device(device, inputs, [(to, true), (outside, false)], |[from, index], [to, outside]| match form.way {
        Way::Gather => run(device, form, from, index, to, outside),
        Way::Scatter => run(device, form, to, index, from, outside),
    })
}

/// [`run`] by launches over `most` elements each; `most` is a power of two.
fn run_by(
    device: &ClDevice,
    form: Form,
    table: &ClInput,
    index: &ClInput,
    line: &ClInput,
    outside: &ClInput,
    most: usize,
) -> Result<()> {
    device.fill(outside.mem(), outside.byte_offset(), 8, &[0xFF; 8])?;
    let Form { way, size, index_size } = form;
    let caps = device.capabilities_for(Primitive::Gather, size, index.len())?;
    for first in (0..index.len()).step_by(most) {
        let n = (index.len() - first).min(most);
        let begin = [line.byte_offset() + first * size, index.byte_offset() + first * index_size];
        let plan = plan(n, size, index_size, begin, &caps);
        let name = match (way, plan.run) {
            (Way::Gather, 0) => "gather",
            (Way::Scatter, 0) => "scatter",
            (Way::Gather, _) => "gather_runs",
            (Way::Scatter, _) => "scatter_runs",
        };
        let launch = device
            .launch(&plan.program, name)?
            .mem(table.mem())
            .scalar(table.offset() as u64)
            .scalar(table.len() as u64)
            .mem(index.mem())
            .scalar((index.offset() + first) as u64)
            .mem(line.mem())
            .scalar((line.offset() + first) as u64)
            .mem(outside.mem())
            .scalar(outside.offset() as u64)
            .scalar(first as u64)
            .scalar(n as u32);
        let launch = match plan.run {
            0 => launch.scalar(plan.head as u32).scalar(u32::from(plan.whole)),
            run => launch.scalar(run as u32),
        };
        launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])?;
    }
    Ok(())
}

/// All programs that plans for `caps` use, for elements of these sizes.
pub fn programs(caps: &Tuned, sizes: &[usize]) -> Vec<ProgramSpec> {
    let plans = sizes.iter().flat_map(|&size| [4, 8].map(|index_size| plan(1 << 20, size, index_size, [0, 0], caps)));
    plans.map(|plan| plan.program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Input, Output, runtime::Backend};

    #[test]
    fn plans_cover_every_element() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 3, 4, 255, 257, 1 << 20, 1 << 29] {
                for (size, index_size) in [(1, 4), (4, 4), (12, 8), (16, 8), (40, 4)] {
                    for begin in [[0, 0], [16, 8], [8, 8], [5 * size, 24]] {
                        let plan = plan(n, size, index_size, begin, &caps);
                        let all = plan.groups * plan.work_group * tuning::gather(&caps, size).each;
                        let (covered, edges) = match (plan.run, size) {
                            (0, 1 | 2 | 4) => (4 * all, plan.head + 3),
                            (0, _) => (all * tuning::unit(size) / size, 0),
                            (run, _) => (plan.groups * run, 0),
                        };
                        assert!(covered + edges >= n, "{name}: {n} of {size} bytes");
                        let aligned = (begin[0] + plan.head * size).is_multiple_of(4 * size);
                        assert!(plan.run > 0 || size > 4 || plan.head == n || aligned, "{name}: {n} of {size} bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn every_launch_finds_the_first_index_out_of_range() {
        for (place, info) in Device::list().iter().enumerate() {
            let device = Device::at(place).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let table: Vec<u32> = (0..100).map(|x| x * x).collect();
            let mut index: Vec<u32> = (0..1000).map(|i| i * 7 % 100).collect();
            let form = Form { way: Way::Gather, size: 4, index_size: 4 };
            let find = |index: &[u32], most| {
                let (mut line, mut outside) = (vec![1u32; index.len()], [0u64]);
                let (on_device, by) = (Input::from(&table).cl(cl).unwrap(), Input::from(index).cl(cl).unwrap());
                let out = Output::from(&mut line).cl(cl, true).unwrap();
                let found = Output::from(&mut outside).cl(cl, false).unwrap();
                run_by(cl, form, &on_device, &by, &out, &found, most).unwrap();
                out.finish(cl).unwrap();
                found.finish(cl).unwrap();
                let want: Vec<_> = index.iter().map(|&i| table.get(i as usize).copied().unwrap_or(1)).collect();
                assert_eq!(line, want, "{info}");
                outside[0]
            };
            assert_eq!(find(&index, 64), u64::MAX, "{info}");
            for wrong in [950, 700, 64, 63, 3] {
                index[wrong] = 100;
                assert_eq!([find(&index, 64), find(&index, 1 << 31)], [wrong as u64; 2], "{info}");
            }
        }
    }
}
