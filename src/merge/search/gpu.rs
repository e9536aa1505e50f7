//! Searches on OpenCL devices: the plan, then its launches.

use super::Bound;
use crate::{
    Result,
    merge::gpu::{Form, Place, Plan, Shape, shape},
    runtime::{AnyInput, AnyOutput, ClInput, ProgramSpec, on_device, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("search.cl");
/// Maximum bytes of local memory for pivots.
const PIVOT_BYTES: usize = 8 << 10;
/// Maximum elements of one launch, which counts them in 32 bits.
const MAX_ELEMENTS: usize = 1 << 31;

/// Needles per work-item at a time.
fn each(shape: &Shape) -> usize {
    if shape.work_group == 1 { 8 } else { 4 }
}

/// The plan of a search in a range; `count` is the larger of the numbers of elements and needles.
pub fn plan(bound: Bound, place_bytes: usize, count: usize, form: &Form, caps: &Tuned, wide: bool) -> Result<Plan> {
    let shape = shape(form, 0, false, caps);
    let program = ProgramSpec::new("search.cl", TEXT, caps)
        .define("EACH", each(&shape))
        .define("PIVOTS", (PIVOT_BYTES / form.size).min(shape.tile()))
        .define("PLACE", if place_bytes == 4 { "uint" } else { "ulong" })
        .flag("UPPER", bound == Bound::Upper);
    Plan::new(count.max(1), form, program, shape, caps, wide)
}

/// Writes the lower or upper bound of each needle to `to`.
pub(crate) fn bounds(
    device: &ClDevice,
    bound: Bound,
    place_bytes: usize,
    form: &Form,
    inputs: [AnyInput<'_>; 2],
    to: AnyOutput<'_>,
) -> Result<()> {
    on_device(device, inputs, [(to, false)], |inputs, [to]| run(device, bound, place_bytes, form, inputs, to))
}

fn run(
    device: &ClDevice,
    bound: Bound,
    place_bytes: usize,
    form: &Form,
    [range, needles]: [&ClInput; 2],
    to: &ClInput,
) -> Result<()> {
    let (n, count) = (range.len(), needles.len());
    if count == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Merge, form.size, n.max(count))?;
    // The last work-group's share may reach beyond the last needle.
    let wide = device.wide(n.max(2 * count));
    let plan = plan(bound, place_bytes, n.max(count), form, &caps, wide)?;
    let tiles = count.div_ceil(each(&plan.shape) * plan.shape.work_group);
    let share = tiles.div_ceil(tuning::merge(&caps).max_search_groups);
    let launch = Place::of(range).add(device.launch(&plan.program, "search_bounds")?).offset(n as u64, wide);
    let launch = Place::of(needles).add(launch).offset(count as u64, wide);
    let launch = Place::of(to).add(launch).offset(share as u64, wide);
    launch.run([tiles.div_ceil(share), 1, 1], plan.local())
}

/// Writes the index of the first element that comes before its predecessor to `found`; `u64::MAX` if there is none.
pub(crate) fn first_unsorted(device: &ClDevice, form: &Form, range: AnyInput<'_>, found: AnyOutput<'_>) -> Result<()> {
    on_device(device, [range], [(found, false)], |[range], [found]| {
        first_unsorted_by(device, form, range, found, MAX_ELEMENTS)
    })
}

/// [`first_unsorted`] by launches over `most` elements each; `most` is a power of two.
fn first_unsorted_by(device: &ClDevice, form: &Form, range: &ClInput, found: &ClInput, most: usize) -> Result<()> {
    device.fill(found.mem(), found.byte_offset(), 8, &[0xFF; 8])?;
    let caps = device.capabilities_for(Primitive::Merge, form.size, range.len())?;
    let plan = plan(Bound::Lower, 4, range.len(), form, &caps, device.wide(range.len()))?;
    for start in (0..range.len()).step_by(most) {
        // The first element has no predecessor.
        let (first, end) = (start.max(1), range.len().min(start + most));
        if first >= end {
            continue;
        }
        let groups = (end - first).div_ceil(plan.shape.tile()).min(8 * tuning::merge(&caps).max_search_groups);
        let launch = Place::of(range).add(device.launch(&plan.program, "search_unsorted")?);
        let launch = Place::of(found).add(launch.scalar(first as u64).scalar((end - first) as u32));
        launch.run([groups, 1, 1], plan.local())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Input, Order, Output, op::Compare, runtime::Backend};

    #[test]
    fn every_launch_finds_the_first_unsorted_element() {
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let order = Compare::<u32>::source(&Order::ascending()).unwrap();
            let form = Form { order, size: 4, value_bytes: 0 };
            let mut x: Vec<u32> = (0..1000).collect();
            let mut found = device.zeroed::<u64>(1).unwrap();
            let mut find = |x: &[u32]| {
                let to = Output::from(&mut found).cl(cl, false).unwrap();
                first_unsorted_by(cl, &form, &Input::from(x).cl(cl).unwrap(), &to, 128).unwrap();
                to.finish(cl).unwrap();
                found.to_vec().unwrap()[0]
            };
            assert_eq!(find(&x), u64::MAX, "{info}");
            for wrong in [999, 513, 512, 511, 128, 127, 1] {
                x[wrong] = 0;
                x[wrong - 1] = 5000;
                assert_eq!(find(&x), wrong as u64, "{info}");
            }
        }
    }
}
