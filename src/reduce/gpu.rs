//! Reduction on OpenCL devices: the plan, then its launches.

use std::ops::Range;

use super::{
    Determinism,
    exact::{self, Store},
};
use crate::{
    Element, ElementType, Result, Scratch,
    counted::{ClCount, Count, apart_from, length, with_length},
    op::{Code, Op},
    runtime::{AnyInput, AnyOutput, Arriving, ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    source::load::Load,
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce.cl");
const SOURCE_TEXT: &str = kernel_text!("reduce_source.cl");
/// Bytes of a tile: rows times bytes of a row, as in `cl/reduce.cl` and `cpu.rs`.
const TILE_BYTES: usize = 16 * 4096;

/// The operation and its types, without the number of elements.
#[derive(Clone, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    /// The type of the result.
    pub out: ElementType,
    pub source: Code,
    pub determinism: Determinism,
    /// The type of the count in memory that is the number of elements; `None` if the host knows the number.
    pub count: Option<ElementType>,
}

impl Form {
    pub fn of<T: Element, O: Op<T>>(determinism: Determinism) -> Self {
        Self::into::<T, T, O>(determinism)
    }

    /// A reduction of `T` to `U`, in the accumulator of `U`.
    pub fn into<T: Element, U: Element, O: Op<U>>(determinism: Determinism) -> Self {
        // Only float sums and products depend on the order. All other operations use the fastest order.
        let rounds = O::KIND.rounds() && U::TYPE.is_float();
        let determinism = if rounds { determinism } else { Determinism::Fast };
        let source = O::source();
        Self { element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, source, determinism, count: None }
    }
}

/// A launch that reduces `n` elements or partials to `outputs` partials.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    pub program: ProgramSpec,
    pub kernel: &'static str,
    pub n: usize,
    /// Binary logarithm of the number of elements of a partial that the launch reads; 0 for elements.
    pub log_each: u32,
    pub groups: usize,
    pub work_group: usize,
    pub outputs: usize,
    pub wide: bool,
    /// True for a last-block reduction: the work-group that finishes last combines all partials, which fit one tile.
    pub ends: bool,
}

/// The passes of a reduction of n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub passes: Vec<Pass>,
    /// Bytes of the partials of all passes except the last.
    pub scratch_bytes: usize,
}

/// The input of a reduction, as far as the plan depends on it.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    /// Memory, and whether it starts at a multiple of 16 bytes.
    Memory(bool),
    Source(&'a Load),
}

pub fn plan(n: usize, form: &Form, from: Origin<'_>, caps: &Tuned, wide: &dyn Fn(usize) -> bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let fast = form.determinism == Determinism::Fast;
    let (mut passes, mut scratch_bytes) = (Vec::new(), 0);
    let (mut n, mut element, mut from, mut log_each) = (n, form.element, from, 0);
    loop {
        let tile = TILE_BYTES / element.size();
        let tiles = n.div_ceil(tile);
        let groups = tiles.min(params.max_groups);
        let outputs = if fast { groups } else { tiles };
        let last = outputs <= 1;
        let ends = params.one_pass && !last && outputs * form.acc.size() <= TILE_BYTES;
        let program = |name, text| {
            let program = ProgramSpec::with_sub_groups(name, text, caps)
                .element("T", element)
                .element("A", form.acc)
                .element("OUT", form.out)
                .define("WG", params.work_group)
                .define("OFFSET_T", if wide(n) { "ulong" } else { "uint" })
                .flag("FAST", fast)
                .flag("ONE_PASS", ends);
            with_length(program, form.count).operator(&form.source)
        };
        let (program, kernel) = match from {
            Origin::Source(load) => (load.program(program("reduce_source.cl", SOURCE_TEXT), caps)?, "reduce_source"),
            Origin::Memory(aligned) => {
                let program = program("reduce.cl", TEXT)
                    .flag("ALIGNED", aligned && caps.class == DeviceClass::Gpu)
                    .flag("VECTORS", caps.vectors_of(element));
                (program, "reduce_tiles")
            }
        };
        let (work_group, wide) = (params.work_group, wide(n));
        passes.push(Pass { program, kernel, n, log_each, groups, work_group, outputs, wide, ends });
        if last {
            return Ok(Plan { passes, scratch_bytes });
        }
        // The partials of each pass start at a multiple of 16 bytes.
        scratch_bytes += (outputs * form.acc.size()).next_multiple_of(16);
        log_each += tile.ilog2();
        (n, element, from) = (outputs, form.acc, Origin::Memory(true));
    }
}

/// Reduces elements in memory: all of them, or as many as a count says. `empty` is the result for empty input.
///
/// The output may alias the input: a work-group writes the output after all elements are read.
pub(super) fn reduce(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    (input, count): (AnyInput<'_>, Option<Count<'_>>),
    output: AnyOutput<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    let count = count.map(|count| count.cl(device)).transpose()?;
    let (input, host) = match form.determinism {
        _ if count.is_some() => (input.cl(device)?, None),
        Determinism::Exact => (input.cl(device)?, None),
        _ => input.arriving(device)?,
    };
    let output = output.cl(device, false)?;
    apart_from(count.as_ref(), &[&output])?;
    let read = Read::Memory(Arriving::new(&input, host));
    run(device, form, empty, (read, count.as_ref()), &output, scratch)?;
    output.finish(device)
}

/// Reduces the `n` elements that `load` loads, or as many of them as a count says.
pub(super) fn reduce_load(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    load: &Load,
    (n, count): (usize, Option<&ClCount>),
    output: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    // If any order is allowed, elements of a narrower type in memory take the kernels with a wide accumulator.
    if let Some(memory) = load.memory().filter(|_| form.determinism != Determinism::Fixed) {
        let form = Form { element: memory.1, ..form.clone() };
        run(device, &form, empty, (Read::Memory((&memory.0.part(0, n)).into()), count), output, scratch)
    } else {
        run(device, form, empty, (Read::Source(load, n), count), output, scratch)
    }
}

/// The input of the first pass.
#[derive(Clone, Copy)]
pub(super) enum Read<'a> {
    Memory(Arriving<'a>),
    /// A source, and the number of its elements.
    Source(&'a Load, usize),
}

impl<'a> Read<'a> {
    /// The number of elements, and where they are.
    pub(super) fn origin(self) -> (usize, Origin<'a>) {
        match self {
            Self::Memory(input) => (input.len(), Origin::Memory(input.aligned())),
            Self::Source(load, n) => (n, Origin::Source(load)),
        }
    }
}

fn run(
    device: &ClDevice,
    form: &Form,
    empty: &[u8],
    (read, count): (Read<'_>, Option<&ClCount>),
    out: &ClInput,
    scratch: &mut Scratch,
) -> Result<()> {
    let (n, from) = read.origin();
    if n == 0 {
        return device.fill(out.mem(), out.byte_offset(), empty.len(), empty);
    }
    let counted;
    let form = match count {
        Some(count) => {
            counted = Form { count: Some(count.element()), ..form.clone() };
            &counted
        }
        None => form,
    };
    if form.determinism == Determinism::Exact {
        return exact::sum(device, form, Store::Rounded, (read, count), out);
    }
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    // The first pass of an input that arrives in parts has a launch for each part. So each tile has a partial, and
    // another launch combines them.
    let in_parts = matches!(read, Read::Memory(input) if input.in_parts());
    let fixed;
    let form = if in_parts {
        fixed = Form { determinism: Determinism::Fixed, ..form.clone() };
        &fixed
    } else {
        form
    };
    let plan = plan(n, form, from, &caps, &|n| device.wide(n))?;
    let partials = scratch.cl(device, plan.scratch_bytes)?;
    let (size, tile) = (form.acc.size(), TILE_BYTES / form.element.size());
    let ended = if !in_parts && plan.passes.iter().any(|pass| pass.ends) { device.ended()? } else { None };

    // The offset of the partials that the last pass wrote, in elements, and their end in bytes.
    let (mut written, mut end) = (0, 0);
    for (index, pass) in plan.passes.iter().enumerate() {
        let last = pass.outputs == 1;
        let end_here = pass.ends && ended.is_some();
        let (to, to_offset) = if last { (out.mem(), out.offset()) } else { (partials, end / size) };
        let last = if end_here { 2 } else { u32::from(last) };
        let part = |range: Range<usize>| {
            let launch = device.launch(&pass.program, pass.kernel)?;
            let launch = match read {
                Read::Source(load, _) if index == 0 => load.arguments(launch),
                Read::Memory(input) if index == 0 => {
                    launch.mem(input.mem()).scalar((input.offset() + range.start) as u64)
                }
                _ => launch.mem(partials).scalar(written as u64),
            };
            let to_offset = to_offset + range.start / tile;
            let launch = length(launch, range.len(), pass.wide, count, pass.log_each);
            let launch = launch.mem(to).scalar(to_offset as u64).scalar(last);
            let launch = if pass.ends {
                launch.mem(out.mem()).scalar(out.offset() as u64).mem(ended.as_ref().unwrap_or(out.mem()))
            } else {
                launch
            };
            // Later passes read partials, which have another type, so their tiles have another length.
            let groups = if index == 0 { pass.groups.min(range.len().div_ceil(tile)) } else { pass.groups };
            launch.run([groups, 1, 1], [pass.work_group, 1, 1])
        };
        match read {
            Read::Memory(input) if index == 0 => input.arrive(device, tile, part)?,
            _ => part(0..pass.n)?,
        }
        if end_here {
            break;
        }
        (written, end) = (to_offset, end + (pass.outputs * size).next_multiple_of(16));
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::{Form, Origin, plan};
    use crate::{
        Determinism, Device, Source,
        op::{Min, Sum},
        runtime::{Backend, Capabilities, DeviceClass, opencl::ClDevice},
        tuning::Tuned,
    };

    /// Devices that support a last-block reduction, in the geometry of a GPU, and their names.
    pub fn ending() -> Vec<(String, ClDevice)> {
        let mut found = Vec::new();
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let caps = cl.capabilities().unwrap();
            let count = found.len();
            for group in &caps.sub_groups {
                let class = DeviceClass::Gpu;
                let caps = Capabilities { class, sub_group: *group, ..caps.as_ref().clone() };
                if crate::tuning::reduce(&caps.clone().into()).one_pass {
                    found.push((info.to_string(), cl.with_capabilities(caps)));
                }
            }
            for refused in &caps.refused {
                crate::internals::testing::log_skip(
                    &format!("{info}, sub-groups {}", refused.backend.name()),
                    &refused.reason,
                );
            }
            if found.len() == count {
                crate::internals::testing::log_skip(&info.to_string(), "it does not support last-block reductions");
            }
        }
        found
    }

    #[test]
    fn last_block_reduction_equals_further_launches() {
        let x: Vec<f32> = (0..500_000).map(|i| (i % 1009) as f32 * 1e-3 - 0.5).collect();
        let bytes: Vec<u8> = (0..3_000_017).map(|i| (i % 251) as u8).collect();
        let cpu = Device::cpu();
        for (name, cl) in ending() {
            let device = Device::from_cl(cl.profiled().unwrap());
            for n in [1, 16_384, 16_385, 500_000] {
                let (x, bytes) = (&x[..n], &bytes[..6 * n]);
                let sums = [&device, &cpu].map(|device| device.reduce(x, Sum).unwrap().to_bits());
                assert_eq!(sums[0], sums[1], "{name}: {n}");
                let least = [&device, &cpu].map(|device| device.reduce(x, Min).unwrap());
                assert_eq!(least[0], least[1], "{name}: {n}");
                let totals = [&device, &cpu].map(|device| device.reduce(bytes.cast::<u64>(), Sum).unwrap());
                assert_eq!(totals[0], totals[1], "{name}: {n}");
                let found = [&device, &cpu].map(|device| {
                    let wide: Vec<i32> = bytes.iter().map(|&x| i32::from(x) - 100).collect();
                    let (low, ends) = (device.arg_min(x).unwrap(), device.min_max(bytes).unwrap());
                    let statistics = device.statistics(&wide).unwrap();
                    (device.count(bytes, crate::op::NonZero).unwrap(), low, ends, statistics)
                });
                assert_eq!(found[0], found[1], "{name}: {n}");
                let backwards = [&device, &cpu].map(|device| device.reduce(x.reversed(), Sum).unwrap().to_bits());
                assert_eq!(backwards[0], backwards[1], "{name}: {n}");
                assert_eq!(device.take_timings().unwrap().len(), 8, "{name}: {n}: launches");
            }
        }
    }

    /// Kernels compute the length of a later pass from a count of elements.
    #[test]
    fn the_length_of_each_pass_follows_from_the_number_of_elements() {
        for (name, caps) in Tuned::samples() {
            for determinism in [Determinism::Fixed, Determinism::Fast] {
                let form = Form::of::<f32, Sum>(determinism);
                let passes = |n| plan(n, &form, Origin::Memory(true), &caps, &|_| true).unwrap().passes;
                for capacity in [1, 16_384, 16_385, 1 << 28, (1 << 28) + 1, (1 << 40) + 1] {
                    for n in [1, 2, 16_385, 1 << 28, (1 << 28) + 1, capacity].into_iter().filter(|&n| n <= capacity) {
                        let found = passes(capacity).into_iter().map(|pass| pass.n.min(n.div_ceil(1 << pass.log_each)));
                        let own = passes(n).into_iter().map(|pass| pass.n).chain(std::iter::repeat(1));
                        let same = found.zip(own).all(|(found, own)| found == own);
                        assert!(same, "{name}: {n} of {capacity}, {}", determinism.name());
                    }
                }
            }
        }
    }
}
