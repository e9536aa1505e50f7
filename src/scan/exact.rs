//! Exact scans of floats: each prefix is correctly rounded. The rules for special values are those of [`exact`](crate::exact).
//!
//! On the CPU, threads compute the exact sums of blocks first, and then the prefixes in each block. A prefix
//! is a pair of `f64` while the second addition of TwoSum is exact, else an [`ExactSum`](crate::ExactSum).
//!
//! On a device, the algorithm is reduce-then-scan with accumulators. Within a tile, prefixes are integers of 64 or 128
//! bits, and each size has its own kernel; `cl/scan_exact.cl` has the algorithm.

use std::sync::{Mutex, PoisonError};

use super::{
    Scan,
    cpu::{Load, from, loaded, parts},
    gpu::Start,
};
use crate::{
    Element, ElementType, ExactSum, Float, Result, exact, memory, parallel,
    runtime::{
        ClInput, ProgramSpec,
        opencl::{ClDevice, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("scan_exact.cl");
const WIDE_TEXT: &str = kernel_text!("scan_exact_wide.cl");
/// Elements of a tile, and records of a group; as in `cl/lib/exact_scan.cl`.
const TILE: usize = 4096;
const LEVEL: usize = 64;
/// Elements of a block, and of a chunk. A block is the task of a thread. The prefixes of a chunk are pairs of `f64`, if
/// these are exact.
const BLOCK: usize = 128 * CHUNK;
const CHUNK: usize = exact::CHUNK;

/// Scans n elements of a float type. For other types nothing is compiled. If `out` has one more element, it receives
/// the initial value plus the sum of all elements.
pub(super) fn on_the_cpu<U: Element>(n: usize, load: &Load<'_, U>, kind: Scan<U>, out: &mut [U]) -> Result<()> {
    if const { !U::TYPE.is_float() } {
        unreachable!("exact scans are of floats");
    }
    if const { U::TYPE.needs_fp64() } {
        scan_in::<U, f64>(n, load, kind, out)
    } else {
        scan_in::<U, f32>(n, load, kind, out)
    }
}

fn scan_in<U: Element, F: Float>(n: usize, load: &Load<'_, U>, kind: Scan<U>, out: &mut [U]) -> Result<()> {
    let blocks = out.len().div_ceil(BLOCK);
    let elements = &*out;
    let sums = parallel::map(blocks.saturating_sub(1), &|block| {
        let (mut sum, mut room) = (ExactSum::<F>::new(), Vec::new());
        for first in (block * BLOCK..(block + 1) * BLOCK).step_by(CHUNK) {
            let values = loaded(load, first, CHUNK, from(elements, first, kind.reversed), &mut room);
            sum.add_slice(bytemuck::cast_slice(values));
        }
        sum
    })?;
    let mut sum = ExactSum::<F>::new();
    kind.initial.into_iter().for_each(|initial| sum.add(bytemuck::cast(initial.widen())));
    let mut prefixes = memory::with_capacity(blocks)?;
    prefixes.push(sum.clone());
    for block in &sums {
        sum.merge(block);
        prefixes.push(sum.clone());
    }
    let outputs = memory::collect(parts(out, BLOCK, kind.reversed).map(|(_, out)| Mutex::new(Some(out))))?;
    parallel::map(blocks, &|block| {
        let out = outputs[block].lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let (mut prefix, mut room) = (prefixes[block].clone(), Vec::new());
        let mut pair = prefix.pair();
        for (chunk, out) in parts(out, CHUNK, kind.reversed) {
            let first = block * BLOCK + chunk * CHUNK;
            let values = loaded(load, first, out.len().min(n - first), out, &mut room);
            let values: &[F] = bytemuck::cast_slice(values);
            let is_inclusive = kind.initial.is_none();
            let found = pair.and_then(|pair| chunk_of_pairs(values, pair, is_inclusive, out));
            if found.is_none() {
                if let Some(pair) = pair {
                    prefix = ExactSum::of_pair(pair);
                }
                chunk_of_sums(values, &mut prefix, is_inclusive, out);
            }
            pair = found.or_else(|| prefix.pair());
            if kind.reversed {
                out.reverse();
            }
        }
    })?;
    Ok(())
}

/// Writes the prefixes of a chunk, given its exclusive prefix as a pair of `f64`. Returns the prefix after the chunk,
/// or `None` if a prefix does not fit such a pair. The results are then invalid.
fn chunk_of_pairs<U: Element, F: Float>(
    values: &[F],
    [mut high, mut low]: [f64; 2],
    is_inclusive: bool,
    out: &mut [U],
) -> Option<[f64; 2]> {
    let mut fits = true;
    for (&x, out) in values.iter().zip(&mut *out) {
        let before = [high, low];
        let x = x.widen().to_f64();
        let (sum, error) = (high + x, exact::error_of(high, x));
        fits &= exact::error_of(low, error) == 0.0;
        (high, low) = (sum, low + error);
        *out = exact::nearest_of_pair(if is_inclusive { [high, low] } else { before });
    }
    if let Some(last) = out.get_mut(values.len()) {
        *last = exact::nearest_of_pair([high, low]);
    }
    // Infinities and NaN persist in `high`, so one test at the end suffices.
    (fits && high.is_finite()).then_some([high, low])
}

/// [`chunk_of_pairs`] for any prefix.
fn chunk_of_sums<U: Element, F: Float>(values: &[F], prefix: &mut ExactSum<F>, is_inclusive: bool, out: &mut [U]) {
    for (&x, out) in values.iter().zip(&mut *out) {
        if is_inclusive {
            prefix.add(x);
            *out = prefix.rounded();
        } else {
            *out = prefix.rounded();
            prefix.add(x);
        }
    }
    if let Some(last) = out.get_mut(values.len()) {
        *last = prefix.rounded();
    }
}

/// The types of a scan.
#[derive(Clone, Debug)]
pub struct Form {
    pub element: ElementType,
    pub acc: ElementType,
    pub out: ElementType,
    pub reversed: bool,
}

impl Form {
    pub fn of<T: Element, U: Element>(reversed: bool) -> Self {
        Self { element: T::TYPE, acc: U::Acc::TYPE, out: U::TYPE, reversed }
    }
}

/// The launches of a scan with at least one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Sums, records and narrow tiles.
    pub program: ProgramSpec,
    pub work_group: usize,
    /// Wide tiles: those that are not narrow, or all.
    pub wide_program: ProgramSpec,
    pub wide_work_group: usize,
    /// True if narrow tiles have a kernel of their own, which lists the wide ones.
    pub narrow: bool,
    /// Maximum number of work-groups.
    pub max_groups: usize,
    pub tiles: usize,
    /// Words of a record, and records of all levels.
    pub record: usize,
    pub records: usize,
    pub wide: bool,
}

impl Plan {
    pub fn programs(self) -> [ProgramSpec; 2] {
        [self.program, self.wide_program]
    }
}

/// The first record of each level, and the number of its records.
fn levels(tiles: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = (tiles > 1).then_some((0, tiles));
    std::iter::successors(first, |&(first, count)| (count > LEVEL).then(|| (first + count, count.div_ceil(LEVEL))))
}

pub fn plan(outputs: usize, form: &Form, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::scan(caps, 0);
    let (size, digits) = match form.acc.needs_fp64() {
        true => (8, ExactSum::<f64>::INTEGER_BYTES),
        false => (4, ExactSum::<f32>::INTEGER_BYTES),
    };
    let words = digits / 2;
    let fits = |bytes: usize| bytes + tuning::RESERVED_BYTES <= caps.local_bytes;
    let largest = |most: usize, bytes: &dyn Fn(usize) -> usize| {
        let mut work_group = 1 << params.work_group.min(most).ilog2();
        while work_group > 1 && !fits(bytes(work_group)) {
            work_group /= 2;
        }
        work_group
    };
    let tiles = outputs.div_ceil(TILE);
    // The number of accumulators to which the elements of a tile of f32 are added. On an H200, 16 are 2 to 4 % faster
    // than 8 or 32.
    let replicas = |work_group: usize| if size == 4 { work_group.min(16) } else { 0 };
    // The bytes of these accumulators and of the one for their sum. Each work-item also has a sum of 8 bytes, and a
    // word for sub-groups.
    let bytes_of_sums = |work_group: usize| 4 * words * (1 + replicas(work_group)) + 12 * work_group + 64;
    // H200, 2^26 f32: the tiles take 168 µs with 128 work-items, 190 with 256, and 286 with 512.
    let work_group = largest(128, &bytes_of_sums);
    // The kernel for narrow tiles also holds the elements, and one element of padding for each work-item. Elements of
    // f64 have 53 bits. This leaves too few bits of a 64-bit sum, so all tiles are wide. One tile alone is also wide,
    // since a single launch is faster.
    let bytes_of_tiles = 4 * words + 12 * work_group + 64 + 4 * (TILE + work_group);
    let narrow = size == 4 && tiles > 1 && fits(bytes_of_tiles);
    // The kernel for wide tiles holds two accumulators. For each work-item it holds its elements, one element of
    // padding, a sum of 20 bytes, and a mask.
    let items = 64 / size;
    let wide_bytes = |work_group: usize| 2 * 4 * words + work_group * ((items + 1) * size + 24) + 64;
    let wide_work_group = largest(TILE / items, &wide_bytes);
    let with_types = |program: ProgramSpec, work_group: usize| {
        program
            .element("T", form.element)
            .element("A", form.acc)
            .element("OUT", form.out)
            .define("WG", work_group)
            .define("OFFSET_T", if wide { "ulong" } else { "uint" })
            .flag("REVERSE", form.reversed)
            .flag("FLUSHED", !caps.denormals)
    };
    // Sub-groups are used only if all are full.
    let full = work_group.is_multiple_of(caps.sub_group.width as usize);
    let make = if full { ProgramSpec::with_sub_groups } else { ProgramSpec::new };
    let program = with_types(make("scan_exact.cl", TEXT, caps), work_group)
        .flag("NARROW", narrow)
        .define("SUM_REPLICAS", replicas(work_group));
    let wide_program = with_types(ProgramSpec::new("scan_exact_wide.cl", WIDE_TEXT, caps), wide_work_group)
        .define("ITEMS", items)
        .define("ROUNDS", TILE / (wide_work_group * items))
        .flag("LISTED", narrow);
    let records = levels(tiles).map(|(_, count)| count).sum();
    Ok(Plan {
        program,
        work_group,
        wide_program,
        wide_work_group,
        narrow,
        max_groups: params.max_groups,
        tiles,
        record: words + 1,
        records,
        wide,
    })
}

/// Scans `input`, which may be the memory of `out`. In an exclusive scan to other memory, `out` may have one more element.
pub(super) fn on_a_device(device: &ClDevice, form: &Form, start: &Start, input: &ClInput, out: &ClInput) -> Result<()> {
    let n = input.len();
    if n == 0 {
        return start.fill(device, out);
    }
    let caps = device.capabilities_for(Primitive::Scan, form.element.size(), n)?;
    let plan = plan(out.len(), form, &caps, device.wide(out.len()))?;
    let records = ClInput::pooled(device, 4 * plan.record * plan.records.max(1), 4)?;
    // The number of wide tiles, then their indices.
    let listed = ClInput::pooled(device, 4 * (1 + plan.tiles), 4)?;
    let (groups, local) = (|work: usize| [work.min(plan.max_groups), 1, 1], [plan.work_group, 1, 1]);
    let of_elements = |program, kernel| -> Result<Launch<'_>> {
        let launch = device.launch(program, kernel)?;
        Ok(launch.mem(input.mem()).scalar(input.offset() as u64).offset(n as u64, plan.wide))
    };
    if plan.tiles > 1 {
        of_elements(&plan.program, "scan_exact_sums")?
            .mem(records.mem())
            .offset(plan.tiles as u64 - 1, plan.wide)
            .mem(listed.mem())
            .run(groups(plan.tiles - 1), local)?;
    }
    for (first, count) in levels(plan.tiles) {
        device
            .launch(&plan.program, "scan_exact_spine")?
            .mem(records.mem())
            .offset(first as u64, plan.wide)
            .offset(count as u64, plan.wide)
            .offset((first + count) as u64, plan.wide)
            .run(groups(count.div_ceil(LEVEL)), local)?;
    }
    let of_tiles = |program, kernel| -> Result<Launch<'_>> {
        let launch = of_elements(program, kernel)?
            .mem(out.mem())
            .scalar(out.offset() as u64)
            .offset(out.len() as u64, plan.wide)
            .mem(records.mem())
            .offset(plan.tiles as u64, plan.wide)
            .mem(listed.mem());
        Ok(start.put(launch))
    };
    if plan.narrow {
        of_tiles(&plan.program, "scan_exact_tiles")?.run(groups(plan.tiles), local)?;
    }
    // If the list may be empty, launch few work-groups: each costs at least the time of an empty tile.
    let most = if plan.narrow { (plan.max_groups / 4).max(1) } else { plan.max_groups };
    of_tiles(&plan.wide_program, "scan_exact_wide_tiles")?
        .run([plan.tiles.min(most), 1, 1], [plan.wide_work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_keep_the_bounds_of_their_kernels() {
        for (name, caps) in Tuned::samples() {
            for (local_bytes, max_work_group) in [(4096, 256), (16 << 10, 16), (16 << 10, 1024), (160 << 10, 3)] {
                let caps = caps.with(|facts| {
                    (facts.local_bytes, facts.max_work_group) = (local_bytes, max_work_group);
                });
                for form in [Form::of::<f32, f32>(false), Form::of::<u8, f32>(true), Form::of::<f64, f64>(false)] {
                    for n in [1, TILE, TILE + 1, 1 << 31, 1 << 40] {
                        let plan = match plan(n, &form, &caps, n >= 1 << 31) {
                            Ok(plan) => plan,
                            Err(error) => {
                                assert!(form.acc.needs_fp64() && !caps.fp64, "{name}: {error}");
                                continue;
                            }
                        };
                        let defined = |name: &str| plan.wide_program.defined(name).unwrap().parse::<usize>().unwrap();
                        let what = format!("{name}, {local_bytes} bytes: {plan:?}");
                        assert_eq!(defined("WG") * defined("ITEMS") * defined("ROUNDS"), TILE, "{what}");
                        assert!(plan.wide_work_group <= max_work_group && defined("ITEMS") <= 32, "{what}");
                        assert!(plan.work_group <= max_work_group && TILE.is_multiple_of(plan.work_group), "{what}");
                        let bytes = 4 * (plan.record + TILE + 4 * plan.work_group);
                        assert!(!plan.narrow || bytes <= local_bytes, "{what}");
                        assert_eq!(plan.narrow, n > TILE && !form.acc.needs_fp64() && local_bytes > 64 << 10, "{what}");
                        let full = plan.work_group.is_multiple_of(caps.sub_group.width as usize);
                        assert!(full || plan.program.defined("SG_BACKEND") == Some("0"), "{what}");
                        assert!((plan.tiles - 1) * TILE < n && plan.tiles * TILE >= n, "{what}");
                        // The last level fits one group, so there are at most LEVEL^levels tiles.
                        let all: Vec<_> = levels(plan.tiles).collect();
                        assert!(all.last().is_none_or(|&(first, count)| {
                            count <= LEVEL && count > 1 && first + count == plan.records
                        }));
                        // A word of a record is at most 2^16 + 1. A word of a prefix is the sum of at most LEVEL - 1 of
                        // these at each level. The kernel requires it to be below 2^30.
                        assert!((all.len() * LEVEL) as i64 * ((1 << 16) + 1) + (1 << 17) < 1 << 30, "{what}");
                    }
                }
            }
        }
        let text = ProgramSpec::new("scan_exact.cl", TEXT, &crate::Capabilities::samples()[0].1).source();
        for line in [
            format!("#define TILE {TILE}"),
            format!("#define LOG_TILE {}", TILE.ilog2()),
            format!("#define LEVEL {LEVEL}"),
        ] {
            assert!(text.contains(&line), "{line}");
        }
        // Between carries, a word changes by each element of a tile and by up to two halves of a sum per round.
        assert!((TILE + 2 * TILE) as i64 * 0xffff + (1 << 17) < i32::MAX.into());
    }
}
