//! Statistics on OpenCL devices: the plan, then its launches.

use super::StatisticsRecord;
use crate::{
    Element, ElementType, Input, Output, Result, Scratch,
    runtime::{Capabilities, ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    tuning,
};

const TEXT: &str = include_str!("../../../cl/statistics.cl");
/// Bytes of a tile, and records that a group merges; as in `cl/statistics.cl`.
const TILE_BYTES: usize = 16 * 4096;
const FAN: usize = 1024;

/// The bytes of a record of `cl/statistics.cl`.
fn record_bytes(element: ElementType, moments: bool) -> usize {
    let acc = if element == ElementType::F64 { 8 } else { 4 };
    40 + match (element.is_float(), moments) {
        (true, true) => 6 * acc,
        (true, false) => 2 * acc,
        (false, true) => 56,
        (false, false) => 16,
    }
}

/// The work-group, of which each item has a record and a place in local memory. The answers are the same with any.
fn work_group(element: ElementType, moments: bool, caps: &Capabilities) -> usize {
    tuning::work_group_of(tuning::reduce(caps).work_group, record_bytes(element, moments) + 4, caps)
}

/// The launches over n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) groups: usize,
    pub(crate) work_group: usize,
    /// How many records each merging launch starts from.
    pub(crate) merges: Vec<usize>,
    pub(crate) wide: bool,
    pub(crate) scratch_bytes: usize,
}

pub(crate) fn plan(
    n: usize,
    element: ElementType,
    acc: ElementType,
    moments: bool,
    aligned: bool,
    caps: &Capabilities,
    wide: bool,
) -> Result<Plan> {
    caps.supports(element)?;
    let (max_groups, work_group) = (tuning::reduce(caps).max_groups, work_group(element, moments, caps));
    let tiles = n.div_ceil(TILE_BYTES / element.size());
    let mut merges = vec![tiles];
    while merges[merges.len() - 1] > FAN {
        merges.push(merges[merges.len() - 1].div_ceil(FAN));
    }
    let program = ProgramSpec::new("statistics.cl", TEXT, &caps.without_sub_groups())
        .unoptimised_on_a_checker(caps)
        .with(element.options("T"))
        .with(acc.options("A"))
        .define("T_WORD", if element.is_signed() { "long" } else { "ulong" })
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("ALIGNED", aligned && caps.class == DeviceClass::Gpu)
        .flag("FLUSHED", element.is_float() && !caps.denormals)
        .flag("MOMENTS", moments);
    let records: usize = merges.iter().sum();
    Ok(Plan {
        program,
        groups: tiles.min(max_groups),
        work_group,
        merges,
        wide,
        scratch_bytes: records * record_bytes(element, moments),
    })
}

/// The most scratch that statistics of `n` elements take.
pub(super) fn scratch_bytes(n: usize, element: ElementType) -> usize {
    let mut records = n.div_ceil(TILE_BYTES / element.size());
    let mut all = records;
    while records > FAN {
        records = records.div_ceil(FAN);
        all += records;
    }
    all * record_bytes(element, true)
}

/// `input` is not empty. With moments `out` takes the words, else it takes the values, and `places` where they are.
fn run<T: Element>(
    device: &ClDevice,
    moments: bool,
    input: &ClInput,
    out: &ClInput,
    places: Option<&ClInput>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, caps) = (input.len(), device.capabilities()?);
    let plan = plan(n, T::TYPE, T::Acc::TYPE, moments, input.aligned(), &caps, device.tuning().wide(n))?;
    let out_offset = if moments { out.byte_offset() / 8 } else { out.offset() };
    launch(device, &plan, input, (out, out_offset), places.unwrap_or(out), scratch)
}

fn launch(
    device: &ClDevice,
    plan: &Plan,
    input: &ClInput,
    (out, out_offset): (&ClInput, usize),
    places: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let records = scratch.cl(device, plan.scratch_bytes)?;
    let local = [plan.work_group, 1, 1];
    device
        .launch(&plan.program, "statistics_tiles")?
        .mem(input.mem())
        .scalar(input.offset() as u64)
        .offset(input.len() as u64, plan.wide)
        .mem(records)
        .run([plan.groups, 1, 1], local)?;
    let mut from = 0;
    for (i, &count) in plan.merges.iter().enumerate() {
        device
            .launch(&plan.program, "statistics_records")?
            .mem(input.mem())
            .scalar(input.offset() as u64)
            .scalar(input.len() as u64)
            .mem(records)
            .scalar(from as u32)
            .scalar(count as u32)
            .mem(records)
            .scalar((from + count) as u32)
            .scalar(u32::from(i + 1 == plan.merges.len()))
            .mem(out.mem())
            .scalar(out_offset as u64)
            .mem(places.mem())
            .scalar(places.offset() as u64)
            .run([count.div_ceil(FAN), 1, 1], local)?;
        from += count;
    }
    Ok(())
}

pub(super) fn statistics<T: Element>(
    device: &ClDevice,
    input: Input<'_, T>,
    output: Output<'_, StatisticsRecord<T>>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (input, out) = (input.cl(device)?, output.cl(device, false)?);
    run::<T>(device, true, &input, &out, None, scratch)?;
    out.finish(device)
}

pub(super) fn min_max<T: Element>(
    device: &ClDevice,
    input: Input<'_, T>,
    values: Output<'_, T>,
    places: Output<'_, u64>,
    scratch: &mut Scratch,
) -> Result<()> {
    let (input, values, places) = (input.cl(device)?, values.cl(device, false)?, places.cl(device, false)?);
    values.apart(&places)?;
    run::<T>(device, false, &input, &values, Some(&places), scratch)?;
    values.finish(device)?;
    places.finish(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_fit_the_local_memory() {
        for (name, caps) in Capabilities::samples() {
            for local_bytes in [8 << 10, 16 << 10, caps.local_bytes] {
                let caps = Capabilities { local_bytes, ..caps.clone() };
                for element in ElementType::ALL.into_iter().filter(|element| caps.fp64 || !element.needs_fp64()) {
                    for moments in [false, true] {
                        let plan = plan(1 << 20, element, element, moments, true, &caps, false).unwrap();
                        let bytes = plan.work_group * (record_bytes(element, moments) + 4);
                        assert!(bytes <= local_bytes, "{name}: {bytes} of {local_bytes} for {element}");
                        let whole = plan.work_group == tuning::reduce(&caps).work_group;
                        assert!(whole || local_bytes < 32 << 10, "{name}: {element}");
                    }
                }
            }
        }
    }

    #[test]
    fn merges_end_in_one_record_within_the_scratch() {
        for (name, caps) in Capabilities::samples() {
            for n in [1, 16_384, 16_385, 1 << 24, (1 << 34) + 1] {
                for element in ElementType::ALL.into_iter().filter(|element| caps.fp64 || !element.needs_fp64()) {
                    let plan = plan(n, element, element, true, true, &caps, n >= 1 << 31).unwrap();
                    assert!(plan.merges.last().is_some_and(|&count| count <= FAN), "{name}: {n} of {element}");
                    assert!(plan.scratch_bytes <= scratch_bytes(n, element), "{name}: {n} of {element}");
                }
            }
        }
    }
}
