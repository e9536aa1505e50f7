//! Merge sorts on OpenCL devices: each tile is sorted, then pairs of sorted ranges are merged.

use crate::{
    Result, Scratch,
    merge::gpu::{Form, Pass, Place, Plan, plan},
    runtime::{AnyInput, AnyOutput, ClInput, on_device, opencl::ClDevice},
    tuning::Primitive,
};

/// Byte offsets of the regions in scratch.
struct Regions {
    spare: usize,
    values: usize,
    splits: usize,
    end: usize,
}

/// Number of merge passes until one run is left.
fn levels(plan: &Plan) -> u32 {
    plan.tiles.next_power_of_two().ilog2()
}

fn regions(n: usize, form: &Form, plan: &Plan) -> Regions {
    // A single work-item also needs the spare memory to sort its tile by merges.
    let spare = if levels(plan) > 0 || plan.shape.work_group == 1 { n } else { 0 };
    // `values` is a multiple of both 16 bytes and the size of a value.
    let values = (spare * form.size).next_multiple_of(16 * form.value_bytes.max(1));
    let splits = (values + spare * form.value_bytes).next_multiple_of(16);
    Regions { spare: 0, values, splits, end: splits + plan.room * plan.offset_bytes() }
}

/// Sorts a range.
pub(crate) fn sort(
    device: &ClDevice,
    form: &Form,
    from: AnyInput<'_>,
    to: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, [from], [(to, false)], |[from], [to]| run(device, form, from, to, None, scratch))
}

/// Sorts keys, and values with them.
pub(crate) fn sort_pairs(
    device: &ClDevice,
    form: &Form,
    inputs: [AnyInput<'_>; 2],
    outputs: [AnyOutput<'_>; 2],
    scratch: &mut Scratch,
) -> Result<()> {
    on_device(device, inputs, outputs.map(|output| (output, false)), |[from, values], [to, values_to]| {
        run(device, form, from, to, Some([values, values_to]), scratch)
    })
}

/// Sorts `from` into `to`, and the values with the keys.
fn run(
    device: &ClDevice,
    form: &Form,
    from: &ClInput,
    to: &ClInput,
    values: Option<[&ClInput; 2]>,
    scratch: &mut Scratch,
) -> Result<()> {
    let n = from.len();
    if n == 0 {
        return Ok(());
    }
    let plan = plan(n, form, &*device.capabilities_for(Primitive::Merge, form.size, n)?, device.wide(n))?;
    let at = regions(n, form, &plan);
    let mem = scratch.cl(device, at.end)?;
    let spare = Place { mem, offset: at.spare };
    let values_spare = Place { mem, offset: at.values / form.value_bytes.max(1) };
    let splits = Place { mem, offset: at.splits / plan.offset_bytes() };
    let (mut x, mut y) = (Place::of(to), spare);
    let (mut values_x, mut values_y) = (values.map_or(spare, |[_, to]| Place::of(to)), values_spare);
    let levels = levels(&plan);
    if levels % 2 == 1 {
        (x, y) = (y, x);
        (values_x, values_y) = (values_y, values_x);
    }
    let single = plan.shape.work_group == 1;
    if levels > 0 {
        device.build_ahead(&plan.program, &["merge_blocks", "merge_tiles", "merge_splits"])?;
    }
    let launch = Place::of(from).add(device.launch(&plan.program, "merge_blocks")?).offset(n as u64, plan.wide);
    let mut launch = x.add(launch.scalar(plan.tiles as u32));
    if single {
        launch = y.add(launch);
    }
    if let Some([from, _]) = values {
        launch = values_x.add(Place::of(from).add(launch));
        if single {
            launch = values_y.add(launch);
        }
    }
    launch.run([plan.groups, 1, 1], plan.local())?;
    for level in 0..levels {
        let values = values.map(|_| [values_x, values_x, values_y]);
        Pass { a: (x, n, None), b: (x, 0, None), shift: level + 1, to: y, values, splits }.run(device, &plan)?;
        (x, y) = (y, x);
        (values_x, values_y) = (values_y, values_x);
    }
    Ok(())
}
