//! Exact sums on OpenCL devices: the plan, then its launches.

use super::{
    Determinism,
    gpu::{Form, Origin, Read},
};
use crate::{
    ElementType, ExactSum, Float, Output, Result,
    counted::{ClCount, length, with_length},
    op::Sum,
    runtime::{
        ClInput, DeviceClass, ProgramSpec,
        opencl::{ClDevice, ClMem},
    },
    source::{Erased, load::Load},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("reduce_exact.cl");
/// Additions to a word before its carry must be resolved; `MOST_ADDED` of `cl/lib/exact.cl`, which has the proof.
const MOST_ADDED: usize = 32_766;
/// Maximum work-groups that add to one accumulator, as `publish_exact` of `cl/lib/exact.cl` explains.
pub(super) const MOST_GROUPS: usize = (1 << 15) - 1;
/// Elements of a chunk on a work-item of a CPU driver.
const CPU_CHUNK: usize = 128;

/// Words of an accumulator, without its marks; `EXACT_WORDS` of `cl/lib/exact.cl`.
pub(super) const fn words(acc: ElementType) -> usize {
    if acc.needs_fp64() { 268 } else { 40 }
}

/// The launch that adds the elements to an accumulator, and the one that rounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub rounding: ProgramSpec,
    pub n: usize,
    pub groups: usize,
    pub work_group: usize,
    pub wide: bool,
    /// True for a last-block reduction: the work-group that finishes last rounds the sum.
    pub ends: bool,
}

/// The form in which a sum is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Store {
    /// The nearest float.
    Rounded,
    /// That many bytes of the integer in [`ExactSum::to_bytes`](crate::ExactSum::to_bytes).
    Bytes(usize),
}

impl Store {
    fn program(self, program: ProgramSpec) -> ProgramSpec {
        match self {
            Self::Rounded => program,
            Self::Bytes(bytes) => program.define("EXACT_BYTES", bytes),
        }
    }
}

/// The plan of an exact sum of n > 0 elements. `wide` is true for 64-bit offsets.
pub fn plan(n: usize, form: &Form, store: Store, from: Origin<'_>, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let (work_group, vector) = (params.work_group, 16 / form.element.size());
    let products = matches!(from, Origin::Source(load) if load.has_factors());
    let fits = |&replicas: &usize| 4 * words(form.acc) * (replicas + 1) + tuning::RESERVED_BYTES <= caps.local_bytes;
    // The number of copies of the accumulator in local memory. Work-items that add to different copies do not wait for
    // one another. With 32 copies for f64, an H200 runs sums of numbers of all exponents no faster than with 16.
    let usual: usize = match form.acc.needs_fp64() {
        false => 32,
        true if tuning::has_large_local_memory(caps) => 16,
        true => 8,
    };
    let halved =
        |most: usize| std::iter::successors(Some(most), |count| Some(count / 2)).take_while(|&count| count > 0);
    let replicas = halved(usual.min(work_group)).find(fits).unwrap_or(1);
    // Four loads of 16 bytes in flight.
    let loads = if products { 2 } else { 4 };
    let rows = if caps.class == DeviceClass::Cpu { CPU_CHUNK / vector } else { loads };
    let added = |rows: usize| 3 * rows * vector * (work_group / replicas);
    let rows = halved(rows).find(|&rows| added(rows) <= MOST_ADDED).unwrap_or(1);
    // All work-groups must run at once. For f32 and for products in f64, the registers of a compute unit hold only four or
    // five. H200, 2^28 elements, four and six groups for each unit: dot products of f32 take 489 and 529 µs. Sums of
    // f32 take 252 and 304 µs without f64, and 248 and 251 µs with it. Sums of f64 are faster with six groups.
    let is_large = if products { params.exact_f64 } else { !form.acc.needs_fp64() };
    let most = match caps.class {
        DeviceClass::Gpu if is_large => caps.chosen("max_groups", params.max_groups * 2 / 3),
        _ => params.max_groups,
    };
    let groups = n.div_ceil(rows * vector * work_group).min(most.max(1)).min(MOST_GROUPS);
    let program = ProgramSpec::with_sub_groups("reduce_exact.cl", TEXT, caps)
        .element("T", form.element)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", work_group)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("ROWS", rows)
        .define("REPLICAS", replicas)
        .flag("ALIGNED", matches!(from, Origin::Memory(true)) && caps.class == DeviceClass::Gpu)
        .flag("REGISTERS", params.exact_f64)
        .flag("FLUSHED", !caps.denormals)
        .flag("ONE_PASS", params.one_pass);
    let program = match from {
        Origin::Source(load) => load.with_factors(program.flag("SOURCE", true).flag("DOT", products), caps)?,
        Origin::Memory(_) => program,
    };
    let program = with_length(store.program(program), form.count);
    let rounding = ProgramSpec::new("reduce_exact.cl", TEXT, caps)
        .element("A", form.acc)
        .element("OUT", form.out)
        .define("WG", work_group);
    let rounding = store.program(rounding);
    Ok(Plan { program, rounding, n, groups, work_group, wide, ends: params.one_pass })
}

/// The memory of an accumulator, which is 0 before the first launch.
enum Sums {
    Kept(ClMem),
    Pooled(ClInput),
}

impl Sums {
    fn mem(&self) -> &ClMem {
        match self {
            Self::Kept(mem) => mem,
            Self::Pooled(place) => place.mem(),
        }
    }
}

/// Writes the bytes of the exact sum of the elements of a source.
pub(super) fn bytes<T: Float>(device: &ClDevice, input: Erased<'_, T>, output: Output<'_, u8>) -> Result<()> {
    let form = Form::of::<T, Sum>(Determinism::Exact);
    let n = match &input {
        Erased::Memory(input) => input.len(),
        Erased::Expression(source) => source.finite_len()?,
    };
    if n == 0 {
        let output = output.cl(device, false)?;
        device.write(output.mem(), output.byte_offset(), &ExactSum::<T>::new().to_bytes())?;
        return output.finish(device);
    }
    let store = Store::Bytes(ExactSum::<T>::INTEGER_BYTES);
    let output = output.cl(device, false)?;
    let write = |read: Read<'_>| sum(device, &form, store, (read, None), &output);
    match input {
        Erased::Memory(input) => write(Read::Memory((&input.cl(device)?).into()))?,
        Erased::Expression(source) => {
            let load = Load::of(source, device)?;
            load.run(device, source, n, &mut || write(Read::Source(&load, n)))?;
        }
    }
    output.finish(device)
}

/// Writes the sum of n > 0 summands to `out`, or of as many of them as a count says.
pub(super) fn sum(
    device: &ClDevice,
    form: &Form,
    store: Store,
    (read, count): (Read<'_>, Option<&ClCount>),
    out: &ClInput,
) -> Result<()> {
    let (n, from) = read.origin();
    let caps = device.capabilities_for(Primitive::Reduce, form.element.size(), n)?;
    let plan = plan(n, form, store, from, &caps, device.wide(n))?;
    let bytes = 4 * (words(form.acc) + 1);
    let ended = if plan.ends { device.ended()? } else { None };
    // A call of one launch leaves kept memory as it was. Between two launches of a call, another thread could use it.
    let kept = match &ended {
        Some(_) => device.kept_zeros("exact sum", 4 * (words(ElementType::F64) + 1))?,
        None => None,
    };
    let (ended, sums) = match (ended, kept) {
        (Some(ended), Some(sums)) => (Some(ended), Sums::Kept(sums)),
        _ => {
            let sums = ClInput::pooled(device, bytes, 4)?;
            device.fill(sums.mem(), 0, bytes, &[0; 4])?;
            (None, Sums::Pooled(sums))
        }
    };
    let launch = device.launch(&plan.program, "reduce_exact")?;
    let launch = match read {
        Read::Memory(input) => launch.mem(input.mem()).scalar(input.offset() as u64),
        Read::Source(load, _) => load.arguments(launch),
    };
    let launch = length(launch, n, plan.wide, count, 0).mem(sums.mem()).scalar(u32::from(ended.is_some()));
    let launch = if plan.ends {
        launch.mem(out.mem()).scalar(out.offset() as u64).mem(ended.as_ref().unwrap_or(out.mem()))
    } else {
        launch
    };
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])?;
    if ended.is_some() {
        return Ok(());
    }
    device
        .launch(&plan.rounding, "reduce_exact_round")?
        .mem(sums.mem())
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .run([1, 1, 1], [plan.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, Source};

    #[test]
    fn words_have_room_for_the_stated_additions_and_for_no_more() {
        // After a carry, a word is at most 2^16 + 1. The carry of the word below adds at most 2^15 + 1, and rounding
        // adds 2^15.
        let most = |additions: i64| (1 << 16) + 1 + additions * 0xffff + (1 << 16) + 1;
        assert!(most(MOST_ADDED as i64) <= i32::MAX.into());
        assert!(most(MOST_ADDED as i64 + 1) > i32::MAX.into());
        // Each work-group adds a word of at most 2^15 + 1 to the accumulator in global memory.
        assert!(MOST_GROUPS as i64 * ((1 << 15) + 1) < i32::MAX.into());
        let text =
            crate::runtime::ProgramSpec::new("reduce_exact.cl", TEXT, &crate::Capabilities::samples()[0].1).source();
        for line in
            [format!("#define MOST_ADDED {MOST_ADDED}"), format!("#define EXACT_WORDS {}", words(ElementType::F64))]
        {
            assert!(text.contains(&line), "{line}");
        }
    }

    #[test]
    fn plans_keep_the_bounds_of_their_kernels() {
        for (name, caps) in Tuned::samples() {
            for (local_bytes, max_work_group) in
                [(1024, 256), (4096, 256), (16 << 10, 16), (16 << 10, 1024), (160 << 10, 3), (160 << 10, 1024)]
            {
                let caps = caps.with(|facts| {
                    (facts.local_bytes, facts.max_work_group) = (local_bytes, max_work_group);
                });
                let (narrow, wide) = (Input::<f32>::Host(&[]), Input::<f64>::Host(&[]));
                let products = Load::without_device(&narrow.times(narrow), true).unwrap();
                let widened = Load::without_device(&narrow.cast::<f64>().times(narrow.cast()), true).unwrap();
                let wide = Load::without_device(&wide.times(wide), true).unwrap();
                for (form, origin) in [
                    (Form::of::<f32, Sum>(Determinism::Exact), Origin::Memory(true)),
                    (Form::into::<u8, f32, Sum>(Determinism::Exact), Origin::Memory(true)),
                    (Form::of::<f32, Sum>(Determinism::Exact), Origin::Source(&products)),
                    (Form::of::<f64, Sum>(Determinism::Exact), Origin::Source(&widened)),
                    (Form::of::<f64, Sum>(Determinism::Exact), Origin::Source(&wide)),
                    (Form::of::<f64, Sum>(Determinism::Exact), Origin::Memory(true)),
                ] {
                    let plan = match plan(1 << 33, &form, Store::Rounded, origin, &caps, true) {
                        Ok(plan) => plan,
                        Err(error) => {
                            assert!(form.acc.needs_fp64() && !caps.fp64, "{name}: {error}");
                            continue;
                        }
                    };
                    let defined = |name: &str| plan.program.defined(name).unwrap().parse::<usize>().unwrap();
                    let (rows, replicas) = (defined("ROWS"), defined("REPLICAS"));
                    let chunk = rows * 16 / form.element.size();
                    let what = format!("{name}, {local_bytes} bytes: {plan:?}");
                    // The lanes of a small work-group divide a chunk evenly.
                    assert!(plan.work_group >= 32 || chunk.is_multiple_of(chunk.min(8)), "{what}");
                    assert!(3 * chunk * (plan.work_group / replicas) <= MOST_ADDED, "{what}");
                    assert!(chunk <= 255 && replicas <= plan.work_group && plan.groups <= MOST_GROUPS, "{what}");
                    let bytes = 4 * words(form.acc) * (replicas + 1);
                    assert!(replicas == 1 || bytes + tuning::RESERVED_BYTES <= local_bytes, "{what}");
                }
            }
        }
    }
}
