//! Selection on OpenCL devices: the plan, then its launches.

use std::sync::Arc;

use super::bounds;
use crate::{
    ElementType, Input, Result, Scratch,
    counted::{ClCount, length, with_length},
    keys::Keys,
    runtime::{
        ClInput, DeviceClass, ProgramSpec, SubGroupBackend,
        opencl::{ClDevice, ClMem, Launch},
    },
    sort::gpu::{self as sort, word},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("topk.cl");
/// Minimum listed keys that are written at a time, as in `cl/topk_bounds.cl`.
const FLUSH: usize = 1024;
/// Maximum keys that a tile lists one by one; at most the work-items of a work-group.
const FEW: usize = 64;
/// Keys of a tile of one work-item, as in `cl/lib/topk_row.cl`.
const TILE_ALONE: usize = 4096;
/// Minimum number of a row's keys for each sampled key.
const PIECE: usize = 64;
/// Maximum scratch bytes of the rows that are searched at a time.
const BATCH_BYTES: usize = 1 << 30;
/// Maximum number of these rows.
const BATCH_ROWS: usize = 1 << 22;

/// The keys, and the result that is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form<'a> {
    pub keys: &'a Keys,
    /// Bytes of an index; 0 if indices are not wanted.
    pub place_bytes: usize,
    pub rows: usize,
    pub len: usize,
    pub want: Want<'a>,
}

/// The result that is wanted for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want<'a> {
    /// The first `k` keys, at least one.
    Keys { k: usize, sorted: bool },
    /// The keys of these ranks, counted from 0. There is one row per rank, and each row is the whole input.
    Ranks(&'a [u64]),
}

impl Form<'_> {
    /// Keys from the start of a row to the start of the next one.
    fn stride(&self) -> usize {
        match self.want {
            Want::Keys { .. } => self.len,
            Want::Ranks(_) => 0,
        }
    }

    /// The capabilities of the device, with the tuning for this number of keys.
    fn capabilities(&self, device: &ClDevice) -> Result<Arc<Tuned>> {
        let n = self.stride().saturating_mul(self.rows.saturating_sub(1)).saturating_add(self.len);
        device.capabilities_for(Primitive::TopK, self.keys.bytes, n)
    }
}

/// The method that sorts the selected keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ordering {
    None,
    /// By one work-group, for this number of keys, a power of two.
    Group(usize),
    Sort,
}

/// Byte offsets of the regions in a row's scratch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regions {
    pub row: usize,
    pub histogram: usize,
    pub classes: usize,
    pub tallies: usize,
    pub segment_counts: usize,
    pub segments: usize,
    pub keys: usize,
    pub places: usize,
}

impl Regions {
    fn words(&self) -> [u64; 8] {
        let Self { row, histogram, classes, tallies, segment_counts, segments, keys, places } = *self;
        [row, histogram, classes, tallies, segment_counts, segments, keys, places].map(|at| at as u64)
    }
}

/// The launches of a selection from rows of n > 0 keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub tile: usize,
    /// Rows that are searched at a time.
    pub batch: usize,
    /// Work-groups of a row, and keys of each work-group. If `parts` is 0, one work-group processes the whole row.
    pub parts: usize,
    pub share: usize,
    /// True if the threshold has bounds. Each part then lists the keys between the bounds in at most `segments`
    /// segments, and all segments have at most `capacity` keys.
    pub pick: bool,
    /// Work-groups that read the sample of a row: one, or several if `one_pass` is true and there is a single row.
    pub pickers: usize,
    pub segments: usize,
    pub capacity: usize,
    /// The shift and the bits of each digit, from the most significant one on.
    pub digits: Vec<(usize, usize)>,
    pub regions: Regions,
    ordering: Ordering,
    /// Offsets in scratch of a batch's keys and indices before their sort.
    pub spare_keys: usize,
    pub spare_places: usize,
    pub scratch_bytes: usize,
    pub wide: bool,
    /// True if the last work-group of a row to finish does the work of a further launch: a last-block reduction.
    one_pass: bool,
}

/// 16-byte words of a work-item in a tile.
fn words(key_bytes: usize) -> usize {
    key_bytes.min(4)
}

/// Bytes of local memory of the kernel that needs the most.
fn local_bytes(shape: &tuning::TopK, key_bytes: usize) -> usize {
    let word = if key_bytes == 8 { 8 } else { 4 };
    let counts = (4 * shape.replicas) << shape.digit_bits;
    let sums = 16 * (shape.work_group + 2 * 16 + 1) + 3 * 8;
    let tile = shape.work_group * words(key_bytes) * 16 / key_bytes;
    let start = shape.sample * word + counts + sums;
    let filter = 4 * (FLUSH + tile + 2 * FEW + 3) + sums + 16;
    start.max(filter).max(shape.order * (word + 4)) + tuning::RESERVED_BYTES
}

/// The expected share of a row's keys between the bounds: the largest share over all ranks.
fn between(form: &Form<'_>, sample: usize) -> f64 {
    let of = |k: f64| {
        let (low, high) = bounds(k, form.len as f64, sample as f64);
        (high.min(sample as f64) - low.max(0.0)) / sample as f64
    };
    match form.want {
        Want::Keys { k, .. } => of(k as f64),
        Want::Ranks(ranks) => ranks.iter().map(|&rank| of(rank as f64 + 1.0)).fold(0.0, f64::max),
    }
}

pub fn plan(form: &Form<'_>, caps: &Tuned, wide: bool) -> Plan {
    let &Form { keys: &Keys { bytes: key_bytes, floats, .. }, place_bytes, rows, len, want } = form;
    let shapes = tuning::top_k(caps);
    let fits = |shape: &&tuning::TopK| shape.work_group == 1 || local_bytes(shape, key_bytes) <= caps.local_bytes;
    let shape = *shapes.iter().find(fits).expect("the last shape always fits");
    let alone = shape.work_group == 1;
    // Without enough local memory, a work-group is one work-item.
    let single = alone.then(|| caps.with(|facts| facts.class = DeviceClass::Cpu));
    let caps = single.as_ref().unwrap_or(caps);
    let (offset, width) = (if wide { 8 } else { 4 }, 8 * key_bytes);
    let digit_bits = shape.digit_bits.min(width.max(shape.work_group.ilog2() as usize));
    let unrolled = !alone && matches!(caps.sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    // PoCL and Mesa compile barriers in branches wrongly, even if all work-items take the branch.
    let few = unrolled || !alone && caps.sub_group.backend == SubGroupBackend::Intel;
    let few = few && shape.work_group >= FEW;
    let one_pass = tuning::reduce(caps).one_pass;
    let word_keys = 16 / key_bytes;
    let tile_of = |words: usize| if alone { TILE_ALONE } else { shape.work_group * words * word_keys };
    let (large_tile, units) = (tile_of(words(key_bytes)), caps.compute_units.max(1) as usize);
    // One work-group processes a whole row if rows are short, or if there are enough rows of medium length.
    let whole = len <= 4 * large_tile || (len <= 64 * large_tile && rows >= 2 * units);
    let expected = between(form, shape.sample);
    let few_keys = rows.saturating_mul(len) / shape.each < shape.sample;
    let pick = !whole && !few_keys && len / shape.each.min(PIECE) >= shape.sample && expected <= 0.125;
    // If there are few keys, later reads hit the cache. Small tiles are then fast enough, and their kernels build
    // faster.
    let tile_words = if few_keys && !whole && !alone { 1 } else { words(key_bytes) };
    let tile = tile_of(tile_words);
    let program = ProgramSpec::new("topk.cl", TEXT, caps)
        .define("KEY", tuning::unit_type(key_bytes))
        .define("KEY_BYTES", key_bytes)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("FLOAT_KEYS", floats)
        .flag("WIDE", wide)
        .define("WG", shape.work_group)
        .define("ROWS", tile_words)
        .define("RADIX_BITS", digit_bits)
        .define("REPLICAS", shape.replicas)
        .define("SAMPLE", shape.sample)
        .define("ORDER", shape.order)
        .flag("UNROLLED", unrolled)
        .flag("ONE_PASS", one_pass)
        .define("PICK", u32::from(pick))
        .unoptimised_on_a_checker(caps);
    let program = if few { program.define("FEW", FEW) } else { program };
    let program = match place_bytes {
        0 => program,
        bytes => program.define("PLACE_BYTES", bytes).define("PLACE", tuning::unit_type(bytes)),
    };
    let digits: Vec<_> = (0..width.div_ceil(digit_bits))
        .map(|pass| {
            let left = width - pass * digit_bits;
            (left.saturating_sub(digit_bits), left.min(digit_bits))
        })
        .collect();

    let tiles = (len + word_keys - 1).div_ceil(tile);
    // Positions in a part have 32 bits.
    let parts = (shape.max_groups / rows).clamp(1, tiles).max(tiles.div_ceil((1 << 31) / tile));
    let share = tiles.div_ceil(parts) * tile;
    let parts = if whole { 0 } else { (tiles * tile).div_ceil(share) };

    let pickers = if pick && one_pass && rows == 1 { (shape.sample / shape.work_group).max(1) } else { 1 };
    // The picked keys use the memory of the listed keys.
    let room = if pickers > 1 { FLUSH.max(shape.sample) } else { FLUSH };
    let capacity = if pick { ((1.5 * expected * len as f64) as usize).min(len / 8).min(1 << 31) + room } else { 0 };
    let segments = if pick { share / FLUSH + 2 } else { 0 };
    let mut regions = Regions::default();
    if !whole {
        let mut region = |bytes: usize| {
            let start = regions.row;
            regions.row += bytes.next_multiple_of(16);
            start
        };
        region(8 * 8);
        let histogram = region(offset << digit_bits);
        let [classes, tallies, segment_counts] = [16 * parts, 8 * parts, 4 * parts].map(&mut region);
        let [segments, keys] = [8 * segments * parts, capacity * key_bytes].map(&mut region);
        let places = region(if place_bytes > 0 { capacity * offset } else { 0 });
        let row = regions.row;
        regions = Regions { row, histogram, classes, tallies, segment_counts, segments, keys, places };
    }
    let (ordering, spare) = match want {
        Want::Keys { k, sorted: true } if k > shape.order => (Ordering::Sort, 0),
        Want::Keys { k, sorted: true } if k > 1 => (Ordering::Group(k.next_power_of_two()), k),
        _ => (Ordering::None, 0),
    };
    // A `max_allocation_bytes` of 0 means that the limit is unknown.
    let limit = match caps.max_allocation_bytes {
        0 => BATCH_BYTES,
        most => BATCH_BYTES.min(usize::try_from(most).unwrap_or(usize::MAX)),
    };
    let row_bytes = regions.row + spare * (key_bytes + place_bytes);
    let batch = (limit.saturating_sub(16) / row_bytes.max(1)).clamp(1, BATCH_ROWS).min(rows);
    let spare_keys = batch * regions.row;
    let spare_places = spare_keys + (batch * spare * key_bytes).next_multiple_of(16);
    let scratch_bytes = spare_places + batch * spare * place_bytes;
    Plan {
        program,
        work_group: shape.work_group,
        tile,
        batch,
        parts,
        share,
        pick,
        pickers,
        segments,
        capacity,
        digits,
        regions,
        ordering,
        spare_keys,
        spare_places,
        scratch_bytes,
        wide,
        one_pass,
    }
}

impl Plan {
    /// The same plan, if `count` is the type of a count in memory that is the number of keys of the row.
    pub fn by_count(self, count: Option<ElementType>) -> Self {
        Self { program: with_length(self.program, count), ..self }
    }

    /// The kernels that select keys, or with `ranks` the keys of ranks.
    fn kernels(&self, ranks: bool, floats: bool) -> Vec<&'static str> {
        let mut kernels = Vec::new();
        if self.parts == 0 {
            kernels.push("topk_rows");
        } else {
            kernels.extend(self.pick.then_some("topk_filter"));
            kernels.push("topk_count");
            kernels.push(if ranks { "topk_values" } else { "topk_write" });
            kernels.extend(self.pick.then_some("topk_settle"));
            kernels.extend(tallies(ranks, floats).then_some("topk_tally"));
            kernels.push("topk_start");
            kernels.extend((!self.one_pass).then_some("topk_find"));
        }
        kernels.extend(matches!(self.ordering, Ordering::Group(_)).then_some("topk_order"));
        kernels
    }
}

/// Returns whether `topk_tally` counts, for each part, the keys below and at the threshold. Ranks of integers need no
/// tally: the threshold's number determines the key.
fn tallies(ranks: bool, floats: bool) -> bool {
    !ranks || floats
}

/// Memory, and the index of the first element that is written there.
type To<'a> = (&'a ClMem, usize);

fn later((mem, first): To<'_>, by: usize) -> To<'_> {
    (mem, first + by)
}

/// The outputs of the selected keys and of their indices. Row r adds `r * step` to its indices.
#[derive(Clone, Copy)]
struct Taken<'a> {
    keys: To<'a>,
    places: Option<To<'a>>,
    step: usize,
}

/// Selects keys from `input`, whose rows `form` defines, into `out`, and their indices into `places`. Row r adds
/// `r * step` to its indices. With a count there is one row, whose length is the count. If it has fewer than k keys,
/// all of them are selected.
pub(crate) fn run(
    device: &ClDevice,
    form: &Form<'_>,
    input: (&ClInput, Option<&ClCount>),
    out: &ClInput,
    (places, step): (Option<&ClInput>, usize),
    scratch: &mut Scratch,
) -> Result<()> {
    let plan = plan(form, &*form.capabilities(device)?, device.wide(form.len + 16));
    let plan = plan.by_count(input.1.map(ClCount::element));
    planned(device, &plan, form, input, out, (places, step), scratch)
}

/// [`run`] with a given plan.
fn planned(
    device: &ClDevice,
    plan: &Plan,
    form: &Form<'_>,
    input: (&ClInput, Option<&ClCount>),
    out: &ClInput,
    (places, step): (Option<&ClInput>, usize),
    scratch: &mut Scratch,
) -> Result<()> {
    let (keys, key_bytes, place_bytes) = (form.keys, form.keys.bytes, form.place_bytes);
    let (Ordering::Sort, Want::Keys { k, .. }) = (plan.ordering, form.want) else {
        let mem = scratch.cl(device, plan.scratch_bytes)?;
        let places = places.map(|places| (places.mem(), places.offset()));
        return select(device, plan, form, input, mem, Taken { keys: (out.mem(), out.offset()), places, step });
    };
    let taken = form.rows * k;
    let spare = ClInput::pooled(device, taken * key_bytes, key_bytes)?;
    let spare_places = places.map(|_| ClInput::pooled(device, taken * place_bytes, place_bytes)).transpose()?;
    let mem = scratch.cl(device, plan.scratch_bytes)?;
    let at = spare_places.as_ref().map(|spare| (spare.mem(), 0));
    select(device, plan, form, input, mem, Taken { keys: (spare.mem(), 0), places: at, step })?;
    for first in (0..taken).step_by(k) {
        let from = spare_places.as_ref().map(|spare| spare.part(first, k));
        let to = places.map(|places| places.part(first, k));
        let values = from.as_ref().zip(to.as_ref());
        let values = values.map(|(from, to)| sort::Values { bytes: place_bytes, from: Some(from), to });
        let from = spare.part(first, k);
        let caps = sort::capabilities(device, keys, &from)?;
        sort::run(device, &caps, keys, (&from, input.1), Some(&out.part(first, k)), values, scratch)?;
    }
    Ok(())
}

/// All steps except the sort of many keys, one batch of rows after another.
fn select<'d>(
    device: &'d ClDevice,
    plan: &Plan,
    form: &Form<'_>,
    (input, count): (&ClInput, Option<&ClCount>),
    mem: &ClMem,
    to: Taken<'_>,
) -> Result<()> {
    let (keys, stride) = (form.keys, form.stride());
    let (k, ranks) = match form.want {
        Want::Keys { k, .. } => (k, None),
        // One key for each row.
        Want::Ranks(ranks) => (1, Some(Input::from(ranks).cl(device)?)),
    };
    let local = [plan.work_group, 1, 1];
    device.build_ahead(&plan.program, &plan.kernels(ranks.is_some(), keys.floats))?;
    for first in (0..form.rows).step_by(plan.batch) {
        let rows = plan.batch.min(form.rows - first);
        let (wanted, wanted_places) = (later(to.keys, first * k), to.places.map(|to| later(to, first * k)));
        let ((out, out_first), places) = match plan.ordering {
            Ordering::Group(_) => {
                let places = to.places.map(|_| (mem, plan.spare_places / form.place_bytes));
                ((mem, plan.spare_keys / keys.bytes), places)
            }
            _ => (wanted, wanted_places),
        };
        let with_rows = |kernel| -> Result<Launch<'d>> {
            let launch = device.launch(&plan.program, kernel)?.mem(input.mem());
            let launch = launch.scalar((input.offset() + first * stride) as u64);
            let launch = length(launch, form.len, plan.wide, count, 0);
            let launch = launch.scalar(stride as u64).mem(mem).scalar(plan.regions.words()).scalar(rows as u32);
            let launch = launch.scalar(plan.parts as u32).offset(plan.share as u64, plan.wide);
            Ok(word(word(launch, keys.flip, keys.bytes), keys.always, keys.bytes))
        };
        let with_ranks = |launch: Launch<'d>| match &ranks {
            Some(ranks) => launch.mem(ranks.mem()).scalar(first as u32 + 1),
            None => launch.mem(mem).scalar(0u32),
        };
        let with_out = |launch: Launch<'d>| {
            let launch = launch.scalar(k as u64).mem(out).scalar(out_first as u64);
            let (places, at) = places.unwrap_or((out, 0));
            launch.mem(places).scalar(at as u64).scalar((first * to.step) as u64).scalar(to.step as u64)
        };
        let (each, of_parts) = ([rows, 1, 1], [rows * plan.parts, 1, 1]);
        if plan.parts == 0 {
            with_out(with_ranks(with_rows("topk_rows")?)).run(each, local)?;
        } else {
            let launch = with_ranks(with_rows("topk_start")?.scalar(k as u64));
            if plan.one_pass {
                let ended = device.ended()?;
                let pickers = if ended.is_some() { plan.pickers } else { 1 };
                let launch = launch.scalar(pickers as u32).mem(ended.as_ref().unwrap_or(mem));
                launch.run([rows * pickers, 1, 1], local)?;
            } else {
                launch.run(each, local)?;
            }
            let segments = plan.segments as u32;
            if plan.pick {
                let launch = with_rows("topk_filter")?.scalar(segments);
                launch.scalar(plan.capacity as u32).run(of_parts, local)?;
                with_rows("topk_settle")?.run(each, local)?;
            }
            let exact = u32::from(ranks.is_some());
            for &(shift, bits) in &plan.digits {
                let (shift, bits) = (shift as u32, bits as u32);
                let launch = with_rows("topk_count")?.scalar(shift).scalar(bits);
                if plan.one_pass {
                    launch.scalar(exact).run(of_parts, local)?;
                } else {
                    launch.run(of_parts, local)?;
                    with_rows("topk_find")?.scalar(shift).scalar(bits).scalar(exact).run(each, local)?;
                }
            }
            if tallies(ranks.is_some(), keys.floats) {
                with_rows("topk_tally")?.scalar(segments).run(of_parts, local)?;
            }
            if ranks.is_some() {
                let groups = if keys.floats { of_parts } else { [rows.div_ceil(plan.work_group), 1, 1] };
                with_rows("topk_values")?.mem(out).scalar(out_first as u64).run(groups, local)?;
            } else {
                with_out(with_rows("topk_write")?.scalar(segments)).run(of_parts, local)?;
            }
        }
        if let Ordering::Group(most) = plan.ordering {
            let launch = device.launch(&plan.program, "topk_order")?.mem(mem).scalar(out_first as u64);
            let launch = length(launch.scalar(places.map_or(0, |(_, at)| at) as u64), k, plan.wide, count, 0);
            let launch = launch.scalar(most as u32);
            let launch = word(word(launch, keys.flip, keys.bytes), keys.always, keys.bytes);
            let (to, at) = wanted_places.unwrap_or((mem, 0));
            let launch = launch.mem(wanted.0).scalar(wanted.1 as u64).mem(to).scalar(at as u64);
            launch.run(each, local)?;
        }
    }
    Ok(())
}

/// All programs for a device with these capabilities.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let mut programs = Vec::new();
    for (key_bytes, floats) in [(1, false), (2, false), (4, false), (8, false), (2, true), (4, true), (8, true)] {
        for place_bytes in [0, 4, 8] {
            for wide in [false, true] {
                let keys = &Keys { bytes: key_bytes, flip: 0, always: 0, bits: 0..8 * key_bytes as u32, floats };
                let want = Want::Keys { k: 7, sorted: true };
                // One work-group processes the first row. Many share the next two, with little local memory and with
                // much. The last row is sampled.
                for len in [1 << 10, 1 << 14, 1 << 16, 1 << 24] {
                    let program = plan(&Form { keys, place_bytes, rows: 1, len, want }, caps, wide).program;
                    if !programs.contains(&program) {
                        programs.push(program);
                    }
                }
                if key_bytes == 4 {
                    let count = Some(if wide { ElementType::U64 } else { ElementType::U32 });
                    let form = |len| Form { keys, place_bytes, rows: 1, len, want };
                    programs.extend([1 << 10, 1 << 24].map(|len| plan(&form(len), caps, wide).by_count(count).program));
                }
            }
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Order, Output, Source, Tuning, internals::data::Data, runtime::Backend};

    /// Returns whether keys were selected from the list, by the state of the first row in scratch. Otherwise the
    /// results are the same, but after more reads.
    fn in_list(cl: &ClDevice, scratch: &mut Scratch) -> bool {
        /// `IN_LIST` of `cl/lib/topk_row.cl`, and its byte offset in the state of a row.
        const IN_LIST: u64 = 8;
        const WAY: usize = 24;
        let mut way = [0; 8];
        cl.read(scratch.cl(cl, 1).unwrap(), WAY, &mut way).unwrap();
        u64::from_le_bytes(way) & IN_LIST != 0
    }

    #[test]
    fn bounds_leave_few_keys() {
        const N: usize = 300_007;
        let x: Vec<u32> = Data::Bits.generate(N, 3);
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let as_gpu = device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
            for device in [device, as_gpu] {
                let Backend::OpenCl(cl) = device.backend() else { continue };
                for order in [Order::ascending(), Order::descending()] {
                    let keys = &Keys::of(ElementType::U32, &order).unwrap();
                    let want = Want::Keys { k: 100, sorted: false };
                    let form = Form { keys, place_bytes: 0, rows: 1, len: N, want };
                    let (from, mut to) = (device.upload(&x).unwrap(), device.zeroed::<u32>(100).unwrap());
                    let input = Input::from(&from).cl(cl).unwrap();
                    let out = Output::from(&mut to).cl(cl, false).unwrap();
                    let mut scratch = Scratch::new();
                    let caps = Tuned::clone(&form.capabilities(cl).unwrap()).choosing("each", 64);
                    let plan = plan(&form, &caps, false);
                    planned(cl, &plan, &form, (&input, None), &out, (None, 0), &mut scratch).unwrap();
                    assert!(in_list(cl, &mut scratch), "{info}");
                }
            }
        }
    }

    #[test]
    fn rows_are_selected_batch_by_batch() {
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let as_gpu = device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
            for device in [device, as_gpu] {
                let Backend::OpenCl(cl) = device.backend() else { continue };
                let caps = Tuned::from(cl.capabilities().unwrap());
                for (rows, len, k) in [(10, 50, 5), (4, 20_011, 20)] {
                    let x: Vec<u32> = Data::Bits.generate(rows * len, 3);
                    for sorted in [false, true] {
                        let top = crate::Top::largest(k).in_rows(len);
                        let top = if sorted { top.sorted() } else { top };
                        let keys = &top.keys::<u32>().unwrap();
                        let form = top.form(keys, x.len(), 4).unwrap();
                        let plan = Plan { batch: 3, ..plan(&form, &caps, false) };
                        let from = device.upload(&x).unwrap();
                        let (mut best, mut places) = (vec![0u32; rows * k], vec![0u32; rows * k]);
                        let input = Input::from(&from).cl(cl).unwrap();
                        let out = Output::from(&mut best).cl(cl, false).unwrap();
                        let out_places = Output::from(&mut places).cl(cl, false).unwrap();
                        let mut scratch = Scratch::new();
                        planned(cl, &plan, &form, (&input, None), &out, (Some(&out_places), 0), &mut scratch).unwrap();
                        out.finish(cl).unwrap();
                        out_places.finish(cl).unwrap();
                        let want = Device::cpu().top_k(x.indexed::<u32>(), top).unwrap();
                        assert_eq!(best, want.0.to_vec().unwrap(), "{info}: {form:?}");
                        assert_eq!(places, want.1.to_vec().unwrap(), "{info}: {form:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn last_block_reduction_of_a_row_equals_further_launches() {
        let cpu = Device::cpu();
        for (name, cl) in crate::reduce::gpu::tests::ending() {
            let cl = &cl.profiled().unwrap();
            // With these values, rows have many parts and samples on any device.
            let caps = Tuned::from(cl.capabilities().unwrap()).with(|facts| facts.compute_units = 16);
            let caps = caps.choosing("each", 64);
            let launches = |plan: &Plan, form: &Form<'_>| {
                let mut each = vec!["topk_start"];
                each.extend(plan.pick.then_some(["topk_filter", "topk_settle"]).into_iter().flatten());
                each.extend(plan.digits.iter().map(|_| "topk_count"));
                each.extend_from_slice(match form.want {
                    Want::Keys { .. } => &["topk_tally", "topk_write"],
                    Want::Ranks(_) => &["topk_values"],
                });
                each.extend(matches!(plan.ordering, Ordering::Group(_)).then_some("topk_order"));
                each.repeat(form.rows.div_ceil(plan.batch))
            };
            for (rows, len, picks, wide) in
                [(1, 300_007, true, false), (3, 270_001, true, true), (5, 70_003, false, false)]
            {
                let random: Vec<u32> = Data::Bits.generate(rows * len, 3);
                let mut ascending = random.clone();
                ascending.sort_unstable();
                let two = random.iter().map(|x| x % 2).collect();
                for (data, x) in
                    [("random", random), ("equal", vec![7; rows * len]), ("two", two), ("ascending", ascending)]
                {
                    let input = Input::from(&x[..]).cl(cl).unwrap();
                    let what = format!("{name}: {rows} rows of {len}, {data}");
                    let planned = |form: &Form<'_>, out: &ClInput, places: Option<&ClInput>| {
                        let plan = Plan { batch: 2.min(form.rows), ..plan(form, &caps, wide) };
                        assert!(plan.one_pass && plan.pick == picks && plan.parts > 1, "{what}: {plan:?}");
                        assert_eq!(plan.pickers > 1, picks && form.rows == 1, "{what}: {plan:?}");
                        cl.take_timings().unwrap();
                        let mut scratch = Scratch::new();
                        planned(cl, &plan, form, (&input, None), out, (places, 0), &mut scratch).unwrap();
                        let names = cl.take_timings().unwrap().into_iter().map(|timing| timing.name);
                        let names: Vec<_> = names.filter(|name| name.starts_with("topk")).collect();
                        assert_eq!(names, launches(&plan, form), "{what}: {form:?}");
                        // A sort overwrites the scratch.
                        if picks && data == "random" && plan.ordering != Ordering::Sort {
                            assert!(in_list(cl, &mut scratch), "{what}: {form:?}");
                        }
                    };
                    for (k, sorted) in [(32, false), (32, true), (5000, false), (5000, true)] {
                        let top = crate::Top::smallest(k).in_rows(len);
                        let top = if sorted { top.sorted() } else { top };
                        let keys = &top.keys::<u32>().unwrap();
                        let form = top.form(keys, x.len(), 4).unwrap();
                        let (mut best, mut places) = (vec![0u32; rows * k], vec![0u32; rows * k]);
                        let out = Output::from(&mut best).cl(cl, false).unwrap();
                        let out_places = Output::from(&mut places).cl(cl, false).unwrap();
                        planned(&form, &out, Some(&out_places));
                        out.finish(cl).unwrap();
                        out_places.finish(cl).unwrap();
                        let want = cpu.top_k(x.indexed::<u32>(), top).unwrap();
                        assert_eq!(best, want.0.to_vec().unwrap(), "{what}: {form:?}");
                        assert_eq!(places, want.1.to_vec().unwrap(), "{what}: {form:?}");
                    }
                    if rows == 1 {
                        let ranks = [len / 20, 0, len / 30, len - 1, 100];
                        let mut want = vec![0; ranks.len()];
                        cpu.nth_element_into(&x, &ranks, &mut want).unwrap();
                        let ranks = ranks.map(|rank| rank as u64);
                        let keys = &Keys::of(ElementType::U32, &Order::ascending()).unwrap();
                        let form = Form { keys, place_bytes: 0, rows: ranks.len(), len, want: Want::Ranks(&ranks) };
                        let mut values = vec![0u32; ranks.len()];
                        let out = Output::from(&mut values).cl(cl, false).unwrap();
                        planned(&form, &out, None);
                        out.finish(cl).unwrap();
                        assert_eq!(values, want, "{what}: {form:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn nvidia_samples_only_many_keys() {
        let mut devices = 0;
        for (name, caps) in Tuned::samples().into_iter().filter(|(_, caps)| caps.ptx) {
            devices += 1;
            let keys = &Keys { bytes: 4, flip: 0, always: 0, bits: 0..32, floats: true };
            let whole = [(1, 1 << 20, false), (1, (1 << 22) - 1, false), (1, 1 << 22, true)];
            let rows = [(16, 1 << 17, false), (16, 1 << 18, true)];
            for (rows, len, pick) in whole.into_iter().chain(rows) {
                let form = |want| Form { keys, place_bytes: 4, rows, len, want };
                for want in [Want::Keys { k: 100, sorted: true }, Want::Ranks(&vec![len as u64 / 2; rows])] {
                    let plan = plan(&form(want), &caps, false);
                    assert_eq!(plan.pick, pick, "{name}: {:?}: {plan:?}", form(want));
                    assert_eq!(plan.tile, if pick { 4096 } else { 1024 }, "{name}: {plan:?}");
                    let kernels = plan.kernels(false, true);
                    assert_eq!(kernels.contains(&"topk_filter") || kernels.contains(&"topk_settle"), pick, "{name}");
                }
            }
        }
        assert!(devices > 0);
    }

    #[test]
    fn programs_are_those_of_all_plans() {
        let samples = Tuned::samples().into_iter();
        for (name, caps) in
            samples.flat_map(|(name, caps)| [(name, caps.with(|facts| facts.local_bytes = 12 << 10)), (name, caps)])
        {
            let programs = programs(&caps);
            for (rows, len) in
                [(1, 1), (3, 5000), (1, 20_000), (1, 300_007), (16, 1 << 18), (1, 1 << 25), (1000, 1 << 15)]
            {
                for (bytes, floats) in [(1, false), (2, true), (4, false), (8, true)] {
                    for (place_bytes, k) in [(0, 1), (4, usize::div_ceil(len, 2)), (8, 1)] {
                        let keys = &Keys { bytes, flip: 0, always: 0, bits: 0..8 * bytes as u32, floats };
                        let want = Want::Keys { k, sorted: false };
                        let form = Form { keys, place_bytes, rows, len, want };
                        assert!(programs.contains(&plan(&form, &caps, false).program), "{name}: {form:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn scratch_stays_within_limits() {
        let ranks = Want::Ranks(&[1 << 26; 16]);
        for (name, caps) in Tuned::samples() {
            for most in [0, 64 << 20, 1 << 30] {
                let caps = caps.with(|facts| facts.max_allocation_bytes = most);
                let limit = if most == 0 { BATCH_BYTES } else { most as usize };
                for (rows, len, k) in [(1 << 24, 100, 34), (1000, 1 << 22, 500), (1 << 23, 3000, 1), (16, 1 << 27, 0)] {
                    let want = if k == 0 { ranks } else { Want::Keys { k, sorted: true } };
                    let keys = &Keys { bytes: 4, flip: 0, always: 0, bits: 0..32, floats: false };
                    let plan = plan(&Form { keys, place_bytes: 4, rows, len, want }, &caps, false);
                    let what = format!("{name}, {most} bytes, {rows} rows of {len}: {plan:?}");
                    assert!(plan.batch == 1 || plan.scratch_bytes <= limit, "{what}");
                    assert!(plan.batch <= BATCH_ROWS, "{what}");
                }
            }
        }
    }

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [caps.local_bytes, 0, 4096, 12_288] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for (rows, len) in [(1, 1), (1, 70_000), (1, 1 << 28), (1000, 1000), (77, 1 << 20), (3, 1 << 33)] {
                    for (key_bytes, k) in [1, 2, 4, 8].into_iter().flat_map(|bytes| [(bytes, len / 3 + 1), (bytes, 1)])
                    {
                        let want = Want::Keys { k, sorted: rows > 1 };
                        let keys = &Keys { bytes: key_bytes, flip: 0, always: 0, bits: 0..8, floats: false };
                        let form = Form { keys, place_bytes: 4, rows, len, want };
                        let wide = len >= 1 << 31;
                        let plan = plan(&form, &caps, wide);
                        let what = format!("{name}, {local_bytes} bytes, {form:?}: {plan:?}");
                        assert!(plan.parts == 0 || plan.parts * plan.share >= len + 16 / key_bytes - 1, "{what}");
                        assert!(plan.share.is_multiple_of(plan.tile) && plan.share <= 1 << 31, "{what}");
                        assert!(plan.batch > 0 && plan.batch <= rows, "{what}");
                        assert!(plan.pickers == 1 || plan.pickers * plan.work_group <= plan.capacity, "{what}");
                        assert_eq!(plan.digits.iter().map(|digit| digit.1).sum::<usize>(), 8 * key_bytes, "{what}");
                        assert_eq!(plan.digits.last().unwrap().0, 0, "{what}");
                        assert!(plan.work_group <= caps.max_work_group, "{what}");
                        assert!(1 << plan.digits[0].1 >= plan.work_group || key_bytes == 1, "{what}");
                    }
                }
            }
        }
    }
}
