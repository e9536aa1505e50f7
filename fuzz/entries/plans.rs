//! Plans of every primitive: on any device, for any number of elements, they cover the input within the device's limits.

use std::fmt::Debug;

use arbitrary::{Result, Unstructured};
use oclprim::{
    Capabilities, Determinism, DeviceClass, Element, ElementType, Input, Layout, Order, ProgramSpec, Source,
    SubGroupBackend,
    internals::{
        histogram, iota,
        layout::{copy, permute, transpose},
        merge, op, random, reduce, scan, select, sort,
        source::load::Load,
        testing::accepted,
        topk, with_element,
    },
    op::{Max, Min, Op, Predicates, Sum},
    tuning::{self, Primitive, Tuned},
};

/// Limits of [`Capabilities`]; larger values of a driver are clamped.
const MAX_COMPUTE_UNITS: u32 = 1 << 16;
const MAX_WORK_GROUP: usize = 1 << 16;
const MAX_LOCAL_BYTES: usize = 1 << 30;
/// Number of elements of the largest input.
const MAX_ELEMENTS: usize = 1 << 48;
/// Number of elements up to which launches must fit every driver's limits.
const LARGE_ELEMENTS: usize = 1 << 34;
/// Largest number of work-groups of a launch on NVIDIA's GPUs.
const MAX_GROUPS: usize = (1 << 31) - 1;

/// A size up to `most`: small, near a power of two, or any.
fn size(u: &mut Unstructured, most: usize) -> Result<usize> {
    let size = match u.int_in_range(0..=7)? {
        0 => most,
        1 => u.int_in_range(0..=most)?,
        2 | 3 => u.int_in_range(0..=20_000)?,
        4 => u.int_in_range(0..=64)?,
        _ => ((1usize << u.int_in_range(0..=62)?) + u.int_in_range(0..=2)?).saturating_sub(1),
    };
    Ok(size.min(most))
}

fn capabilities(u: &mut Unstructured) -> Result<Capabilities> {
    let samples = Capabilities::samples();
    let mut caps = u.choose(&samples)?.1.clone();
    if u.ratio(1, 4)? {
        caps.class = *u.choose(&[DeviceClass::Cpu, DeviceClass::Gpu])?;
    }
    if u.ratio(1, 4)? {
        caps.sub_group = u.choose(&samples)?.1.sub_group;
    }
    if u.ratio(1, 2)? {
        caps.compute_units = size(u, MAX_COMPUTE_UNITS as usize)? as u32;
    }
    if u.ratio(1, 2)? {
        caps.max_work_group = size(u, MAX_WORK_GROUP)?.max(1);
    }
    if u.ratio(1, 2)? {
        caps.local_bytes = size(u, MAX_LOCAL_BYTES)?;
    }
    if u.ratio(1, 4)? {
        caps.global_bytes = u.arbitrary()?;
    }
    if u.ratio(1, 4)? {
        caps.max_allocation_bytes = u.arbitrary()?;
    }
    for flag in [
        &mut caps.fp64,
        &mut caps.int64_atomics,
        &mut caps.denormals,
        &mut caps.forward_progress,
        &mut caps.device_fence,
        &mut caps.checker,
        &mut caps.explicit_vectors,
    ] {
        *flag ^= u.ratio(1, 8)?;
    }
    Ok(caps)
}

/// The device and the input of a plan.
struct Given {
    caps: Tuned,
    n: usize,
    wide: bool,
    element: ElementType,
}

impl Given {
    fn wide(&self) -> impl Fn(usize) -> bool + use<> {
        let wide = self.wide;
        move |n| wide || n >= 1 << 31
    }

    /// The capabilities, with some values of a primitive's parameters.
    fn tuned(&self, u: &mut Unstructured, primitive: Primitive, bytes: usize) -> Result<Tuned> {
        let mut caps = self.caps.clone();
        if u.ratio(1, 3)? {
            for parameter in tuning::parameters(primitive, &self.caps, bytes) {
                caps = caps.choosing(parameter.name, *u.choose(&parameter.values)?);
            }
        }
        Ok(caps)
    }

    /// Asserts that a launch fits the device. Work-groups of several work-items use `local` bytes of local memory.
    fn fits(&self, plan: &dyn Debug, groups: usize, work_group: usize, local: usize) {
        let caps = &self.caps;
        let what = || format!("{} of {}: {plan:?} for {caps:?}", self.n, self.element);
        assert!(work_group > 0 && work_group <= caps.max_work_group, "a work-group of {work_group}, {}", what());
        assert!(work_group == 1 || local <= caps.local_bytes, "{local} bytes of local memory, {}", what());
        assert!(groups.checked_mul(work_group).is_some(), "{groups} groups, {}", what());
        let gpu = caps.class == DeviceClass::Gpu && caps.max_work_group >= 256 && caps.local_bytes >= 16 << 10;
        assert!(!gpu || self.n > LARGE_ELEMENTS || groups <= MAX_GROUPS, "{groups} groups, {}", what());
    }

    /// Asserts that `groups` work-groups of `each` elements cover `n` elements.
    fn covers(&self, plan: &dyn Debug, groups: usize, each: usize, n: usize) {
        let enough = groups.checked_mul(each).is_some_and(|all| all >= n);
        assert!(enough && groups > 0 || n == 0, "{groups} groups of {each} for {n}: {plan:?} for {:?}", self.caps);
    }

    /// Asserts that numbers fit in 32 bits, in which kernels take them.
    fn fit_32_bits(&self, plan: &dyn Debug, numbers: &[usize]) {
        let fit = numbers.iter().all(|&number| u32::try_from(number).is_ok());
        assert!(fit || self.n > LARGE_ELEMENTS, "{numbers:?} of {plan:?} for {} on {:?}", self.n, self.caps);
    }
}

/// Asserts that regions of scratch do not overlap. A region is the offset of its first byte, and the number of bytes
/// that it needs.
fn apart(plan: &dyn Debug, regions: &[(usize, usize)], end: usize) {
    let mut regions: Vec<_> = regions.iter().filter(|(_, bytes)| *bytes > 0).collect();
    regions.sort_unstable();
    let ends = regions.iter().skip(1).map(|region| region.0).chain([end]);
    for (&&(start, bytes), next) in regions.iter().zip(ends) {
        let fits = start.checked_add(bytes).is_some_and(|to| to <= next);
        assert!(fits && start.is_multiple_of(4), "{bytes} bytes at {start} before {next}: {plan:?}");
    }
}

/// The number that an option of a program defines.
fn defined(program: &ProgramSpec, name: &str) -> usize {
    let prefix = format!("-D{name}=");
    program.options.split(' ').find_map(|option| option.strip_prefix(&prefix)?.parse().ok()).unwrap_or(0)
}

fn element(u: &mut Unstructured) -> Result<ElementType> {
    u.choose(&ElementType::ALL).copied()
}

fn accumulator(element: ElementType) -> ElementType {
    with_element!(element, T => <<T as Element>::Acc as Element>::TYPE)
}

/// A size of elements that kernels move, in bytes.
fn bytes(u: &mut Unstructured) -> Result<usize> {
    Ok(*u.choose(&[1, 2, 3, 4, 6, 8, 12, 16])?)
}

fn reductions(u: &mut Unstructured, given: &Given) -> Result<()> {
    let caps = &given.tuned(u, Primitive::Reduce, given.element.size())?;
    let (n, element, acc, wide) = (given.n.max(1), given.element, accumulator(given.element), given.wide());
    let determinism = *u.choose(&[Determinism::Fixed, Determinism::Fast])?;
    let (source, aligned) = (<Sum as Op<u32>>::source(), u.arbitrary()?);
    let form = reduce::gpu::Form { element, acc, out: element, source: source.clone(), determinism, count: None };
    if let Some(plan) = accepted(reduce::gpu::plan(n, &form, reduce::gpu::Origin::Memory(aligned), caps, &wide)) {
        let (mut left, mut partials) = (n, 0);
        for pass in &plan.passes {
            assert!(pass.n == left && pass.groups <= pass.outputs, "{plan:?}");
            given.fits(&plan, pass.groups, pass.work_group, pass.work_group * acc.size());
            (left, partials) = (pass.outputs, partials + pass.outputs * acc.size());
        }
        assert!(left == 1 && partials - acc.size() <= plan.scratch_bytes, "{plan:?}");
    }
    use reduce::{exact::Store, gpu::Origin};
    let exact = reduce::gpu::Form { determinism: Determinism::Exact, ..form };
    if let Some(plan) = accepted(reduce::exact::plan(n, &exact, Store::Rounded, Origin::Memory(aligned), caps, wide(n)))
        && element.is_float()
    {
        given.fits(&plan, plan.groups, plan.work_group, 0);
        assert!(plan.groups > 0 && plan.groups < 1 << 15, "{plan:?}");
    }
    let bytes = *u.choose(&[1, 2, 4, 8])?;
    let plan = reduce::count::gpu::plan(n, bytes, aligned, caps, wide(n));
    given.fits(&plan, plan.groups, plan.work_group, 8 * plan.work_group);
    given.covers(&plan, plan.groups, plan.run, n);
    assert!((plan.groups - 1) * plan.run < n && 8 * plan.groups <= reduce::count::gpu::scratch_bytes(caps), "{plan:?}");

    use reduce::{End, statistics::gpu::Find};
    let find = *u.choose(&[Find::One(End::Min), Find::One(End::Max), Find::Both, Find::Moments])?;
    if let Some(plan) = accepted(reduce::statistics::gpu::plan(n, element, acc, find, aligned, caps, wide(n))) {
        given.fits(&plan, plan.groups, plan.work_group, 40 * plan.work_group);
        assert!(plan.groups <= n.div_ceil(plan.tile) && plan.groups > 0, "{plan:?}");
        assert!(plan.scratch_bytes >= 40 * plan.groups, "{plan:?}");
        given.fit_32_bits(&plan, &[plan.groups, plan.joins.last().copied().unwrap_or(0)]);
    }

    let size = u.int_in_range(1..=64)?;
    let form = op::gpu::Form { source: source.clone(), size, needs_fp64: u.arbitrary()?, count: None };
    if let Some(passes) = accepted(reduce::by::gpu::plan(n, &form, caps, &wide)) {
        let partials: usize = passes.iter().map(|pass| pass.tiles).sum();
        assert!((partials - 1) * size <= reduce::by::gpu::scratch_bytes(n, size), "{passes:?}");
        for pass in &passes {
            given.fits(&passes, pass.groups, pass.work_group, size * pass.work_group);
        }
    }

    let keys = u.choose(&[None, Some(ElementType::U8), Some(ElementType::U32), Some(ElementType::F64)]).copied()?;
    let offset = *u.choose(&[ElementType::U32, ElementType::U64])?;
    let counted = u.arbitrary()?;
    let form = reduce::segmented::gpu::Form { element, acc, out: element, source, offset, counted, keys };
    let segments = size_of_part(u, n)?;
    if let Some(plan) = accepted(reduce::segmented::gpu::plan(n, segments, &form, aligned, caps, &wide)) {
        given.fits(&plan, plan.prepare_groups.max(plan.tiles), plan.work_group, plan.work_group * (2 * acc.size() + 4));
        plan.levels.iter().for_each(|level| given.fits(&plan, level.groups, plan.work_group, 0));
        let nodes: usize = plan.levels.iter().map(|level| level.nodes).sum();
        assert!(nodes == plan.nodes && plan.scratch_bytes >= 8 * (plan.tiles + 1) + 16 * nodes, "{plan:?}");
    }
    let ends = *u.choose(&[reduce::Ends::Min, reduce::Ends::Max, reduce::Ends::Both])?;
    let form = reduce::segmented::extremes::gpu::Form { element, acc, ends, offset, counted };
    if let Some(plan) = accepted(reduce::segmented::extremes::gpu::plan(n, segments, &form, caps, &wide)) {
        given.fits(&plan, plan.split_groups.max(plan.tiles), plan.work_group, plan.work_group * form.item_bytes());
        given.covers(&plan, plan.tiles, plan.steps, n + segments + 1);
        plan.levels.iter().for_each(|level| given.fits(&plan, level.groups, plan.work_group, 0));
        assert!(plan.scratch_bytes >= 40 * plan.nodes + 8 * (plan.tiles + 1) && plan.steps < 0xfffe, "{plan:?}");
    }
    Ok(())
}

/// A number from 1 to `most`.
fn size_of_part(u: &mut Unstructured, most: usize) -> Result<usize> {
    Ok(size(u, most)?.clamp(1, most.max(1)))
}

fn along_axes(u: &mut Unstructured, given: &Given) -> Result<()> {
    let (element, acc, aligned) = (given.element, accumulator(given.element), u.arbitrary()?);
    let caps = &given.tuned(u, Primitive::Reduce, element.size())?;
    let len = size_of_part(u, given.n)?;
    let rest = (given.n / len).max(1);
    let inner = size_of_part(u, rest)?;
    let shape = [rest / inner, len, inner];
    let wide = given.wide()(shape.iter().product());
    let source = <Sum as Op<u32>>::source();
    let form = scan::gpu::Form {
        element,
        acc,
        out: element,
        source: source.clone(),
        exact: u.arbitrary()?,
        reversed: u.arbitrary()?,
        heads: None,
        count: None,
    };
    let scanned = scan::axis::Shape { outer: shape[0], len, inner };
    if let Some(plan) = accepted(scan::axis::gpu::plan(&scanned, &form, aligned, caps, wide)) {
        assert!(plan.pieces >= 1 && plan.pieces <= inner && plan.chunks * scan::axis::CHUNK >= len, "{plan:?}");
        given.fits(&plan, plan.max_groups, plan.work_group, 0);
        let totals = shape[0] * inner * plan.stride * acc.size();
        assert!(plan.scratch_bytes >= totals, "{plan:?} for {scanned:?}");
    }
    let Some(mut layout) = accepted(Layout::contiguous(&shape)) else { return Ok(()) };
    if u.arbitrary()? {
        layout = layout.permute(&[2, 0, 1]).expect("a permutation");
    }
    let axis = u.int_in_range(0..=2)?;
    let lines = reduce::axis::Lines::of(&layout, axis).expect("an axis");
    let (len, outputs) = (layout.shape()[axis], layout.shape().iter().product::<usize>() / layout.shape()[axis]);
    let what = |plan: &dyn Debug| format!("{plan:?} for {layout:?} along {axis} on {caps:?}");
    let form = reduce::axis::gpu::Form { element, acc, out: element, source };
    if let Some(plan) = accepted(reduce::axis::gpu::plan(&lines, &form, [aligned, u.arbitrary()?], caps, wide)) {
        given.fits(&plan, plan.groups, plan.work_group, plan.work_group * acc.size());
        // Chunks have 512 elements.
        assert!(plan.run.is_power_of_two() && plan.parts * plan.run * 512 >= len, "{}", what(&plan));
        assert!((plan.parts - 1) * plan.run * 512 < len, "{}", what(&plan));
        assert!(plan.share <= plan.work_group && plan.share * plan.share_run >= plan.parts, "{}", what(&plan));
        assert!(plan.parts == 1 || plan.scratch_bytes >= outputs * plan.parts * acc.size(), "{}", what(&plan));
        given.fit_32_bits(&plan, &[plan.share]);
    }
    use reduce::axis::{extremes, moments};
    let ends = *u.choose(&[reduce::Ends::Min, reduce::Ends::Max, reduce::Ends::Both])?;
    let form = extremes::gpu::Form { element, acc, ends };
    if let Some(plan) = accepted(extremes::gpu::plan(&lines, &form, aligned, caps, wide)) {
        given.fits(&plan, plan.groups, plan.work_group, plan.work_group * (acc.size() + 4));
        given.covers(&plan, plan.parts, plan.run, len);
        given.covers(&plan, plan.groups / plan.parts, plan.columns, outputs);
        assert!((plan.parts - 1) * plan.run < len && plan.merged_columns > 0, "{}", what(&plan));
        assert!(plan.parts == 1 || plan.scratch_bytes >= 8 * outputs * plan.parts, "{}", what(&plan));
        given.fit_32_bits(&plan, &[plan.columns, plan.merged_columns]);
    }
    let form = moments::gpu::Form { element, acc };
    if let Some(plan) = accepted(moments::gpu::plan(&lines, &form, aligned, caps, wide)) {
        let bytes = if element.is_float() { 4 * acc.size() } else { 40 };
        given.fits(&plan, plan.groups, plan.work_group, plan.work_group * bytes);
        assert!(plan.run.is_power_of_two() && plan.parts * plan.run * plan.chunk >= len, "{}", what(&plan));
        given.covers(&plan, plan.groups / plan.parts, plan.columns, outputs);
        assert!(plan.parts == 1 || plan.scratch_bytes >= outputs * plan.parts * plan.quads * bytes, "{}", what(&plan));
        assert!(plan.columns > 0 && plan.joined_columns > 0 && plan.joined_each > 0, "{}", what(&plan));
        given.fit_32_bits(&plan, &[plan.columns, plan.joined_columns]);
    }
    let segments = size(u, given.n)?.max(1);
    let offset = *u.choose(&[ElementType::U32, ElementType::U64])?;
    if let Some(plan) =
        accepted(reduce::segmented::moments::gpu::plan(given.n.max(1), segments, &form, offset, caps, wide))
    {
        let bytes = if element.is_float() { 4 * acc.size() } else { 40 };
        given.fits(&plan, plan.groups.max(plan.part_groups).max(plan.tiles), plan.work_group, plan.work_group * bytes);
        assert!(plan.groups * (plan.work_group / plan.team) * plan.each >= segments, "{}", what(&plan));
        given.covers(&plan, plan.tiles, plan.part, given.n.max(1));
        assert!(plan.tiles == 1 || plan.scratch_bytes >= 16 * plan.tiles * bytes, "{}", what(&plan));
    }
    Ok(())
}

fn scans(u: &mut Unstructured, given: &Given) -> Result<()> {
    let (n, element, acc) = (given.n.max(1), given.element, accumulator(given.element));
    let caps = &given.tuned(u, Primitive::Scan, element.size())?;
    use scan::gpu::Heads;
    let heads = match u.int_in_range(0..=4)? {
        0 => None,
        1 => Some(Heads::Flags),
        2 => Some(Heads::Rows),
        3 => Some(Heads::Offsets(*u.choose(&[ElementType::U32, ElementType::U64])?)),
        _ => Some(Heads::Keys(self::element(u)?)),
    };
    let offsets = matches!(heads, Some(Heads::Offsets(_)));
    let form = scan::gpu::Form {
        element,
        acc,
        out: element,
        source: <Max as Op<u32>>::source(),
        exact: u.arbitrary()?,
        reversed: u.arbitrary()?,
        heads,
        count: None,
    };
    let wide = given.wide()(n);
    let Some(plan) = accepted(scan::gpu::plan(n, &form, [u.arbitrary()?, u.arbitrary()?], caps, wide)) else {
        return Ok(());
    };
    // If sub-groups shuffle, work-items exchange few values through local memory.
    let shuffles = matches!(caps.sub_group.backend, SubGroupBackend::Ptx | SubGroupBackend::Amd);
    let local = if shuffles { 8 * 2 * 64 } else { 8 * plan.work_group };
    given.fits(&plan, if plan.look_back { plan.tiles } else { plan.max_groups }, plan.work_group, local);
    assert!(plan.tiles > 0 && plan.tiles <= n, "{plan:?}");
    assert!(plan.tiles == 1 || plan.totals_bytes >= plan.tiles * acc.size(), "{plan:?}");
    assert!(plan.totals_bytes.is_multiple_of(8) && plan.totals_bytes <= plan.scratch_bytes, "{plan:?}");
    let ranks = if offsets { (plan.tiles + 1) * if wide { 8 } else { 4 } } else { 0 };
    apart(&plan, &[(0, plan.totals_bytes), (plan.totals_bytes, ranks)], plan.scratch_bytes);
    let segmented = form.heads.is_some();
    let promised = if segmented { scan::gpu::segments_scratch_bytes } else { scan::gpu::scratch_bytes };
    assert!(plan.scratch_bytes <= promised(n, element, acc), "{plan:?}");

    let (size, source) = (1 + n % 64, form.source.clone());
    let (reversed, count) = (form.reversed, form.count);
    let structs = scan::by::gpu::Form { source, size, needs_fp64: false, reversed, heads, count, ends: false };
    if let Some(plan) = accepted(scan::by::gpu::plan(n, &structs, true, caps, wide)) {
        let local = if plan.work_group > 1 { scan::by::lanes(size) * size } else { 0 };
        given.fits(&plan, plan.max_groups, plan.work_group, local);
        given.covers(&plan, plan.tiles, scan::by::lanes(size) * scan::by::RUN, n);
        assert!(plan.tiles == 1 || plan.totals_bytes >= plan.tiles * size, "{plan:?}");
        let ranks = if offsets { (plan.tiles + 1) * if wide { 8 } else { 4 } } else { 0 };
        apart(&plan, &[(0, plan.totals_bytes), (plan.totals_bytes, ranks)], plan.scratch_bytes);
    }
    Ok(())
}

fn selections(u: &mut Unstructured, given: &Given) -> Result<()> {
    use select::gpu::{Form, Marks};
    let (n, element) = (given.n.max(1), given.element);
    let value = if u.arbitrary()? { u.int_in_range(1..=64)? } else { 0 };
    let place = *u.choose(&[4, 8])?;
    let marks = match u.int_in_range(0..=3)? {
        0 => Marks::Flags,
        1 => Marks::By { element, predicates: Predicates::default() },
        2 => Marks::Heads(element),
        _ => Marks::NonTrivial(element),
    };
    let form = match u.int_in_range(0..=5)? {
        0 => Form::of(marks),
        1 => Form { classes: u.int_in_range(2..=3)?, ..Form::of(marks) },
        2 => Form { classes: 2, reversed: true, ..Form::of(marks) },
        3 => Form { unordered: true, ..Form::of(marks) },
        4 => Form { moved: false, places: true, lengths: u.arbitrary()?, place, ..Form::of(marks) },
        _ => Form { value, moved: u.arbitrary()?, place, ..Form::of(marks) },
    };
    let size = form.element().size();
    let caps = &given.tuned(u, Primitive::Select, size)?;
    let wide = given.wide()(n);
    if let Some(plan) = accepted(select::gpu::plan(n, &form, u.arbitrary()?, caps, wide)) {
        let local = plan.tile * if form.moved { size } else { 0 };
        given.fits(&plan, plan.groups, plan.work_group, local);
        given.covers(&plan, plan.tiles, plan.tile, n);
        assert!((plan.tiles - 1) * plan.tile < n && plan.groups <= plan.tiles, "{plan:?}");
        assert!(plan.stride >= if plan.things > 1 { plan.things } else { 0 }, "{plan:?}");
        let records = if form.lengths && !matches!(form.marks, Marks::NonTrivial(_)) { 24 * plan.tiles } else { 0 };
        apart(&plan, &[(0, 8 * plan.records), (8 * plan.records, records)], plan.scratch_bytes);
    }
    let (source, aligned) = (<Min as Op<u32>>::source(), u.arbitrary()?);
    let source = u.arbitrary::<bool>()?.then_some(&source);
    if let Some(plan) = accepted(select::adjacent::gpu::plan(n, element, source, aligned, caps, wide)) {
        given.fits(&plan, plan.groups, plan.work_group, 0);
        assert!(
            plan.groups > 0 && (plan.work_group > 1 || plan.groups * plan.run >= n || caps.class == DeviceClass::Gpu)
        );
    }
    Ok(())
}

fn regions_of_sort(form: sort::gpu::Form, n: usize, plan: &sort::gpu::Plan) -> usize {
    let (at, offset) = (plan.scratch, if plan.wide { 8 } else { 4 });
    let (long, several) = (plan.long.unwrap_or(0), if form.passes > 1 { n } else { 0 });
    let segments = |bytes| if plan.long.is_some() { bytes } else { 0 };
    let regions = [
        (at.spare, several * form.key_bytes),
        (at.unwanted, if form.keys { 0 } else { several * form.key_bytes }),
        (at.values, several * form.value_bytes),
        (at.table, 256 * plan.groups * 4),
        (at.totals, 256 * offset * plan.long.unwrap_or(1)),
        (at.seen, if plan.look_back { 0 } else { plan.groups }),
        (at.codes, 4 * form.passes),
        (at.header, segments(64)),
        (at.bounds, 2 * offset * long),
        (at.parts, 8 * long),
        (at.owners, segments(4 * plan.groups)),
    ];
    apart(plan, &regions, at.end);
    at.end
}

fn sorts(u: &mut Unstructured, given: &Given) -> Result<()> {
    let n = given.n.max(1);
    let key_bytes = *u.choose(&[1, 2, 4, 8, 16])?;
    let value_bytes = *u.choose(&[0, 1, 2, 4, 8, 16])?;
    let passes = u.int_in_range(1..=key_bytes)?;
    let floats = matches!(key_bytes, 2 | 4 | 8) && u.arbitrary()?;
    let numbers = match floats {
        false => sort::keys::Numbers::Bits,
        true if u.arbitrary()? => sort::keys::Numbers::BiasedRanks,
        true => sort::keys::Numbers::Ranks,
    };
    let form = sort::gpu::Form { key_bytes, value_bytes, passes, keys: u.arbitrary()?, numbers };
    let caps = &given.tuned(u, Primitive::Sort, key_bytes)?;
    let wide = given.wide()(n);
    let plan = sort::gpu::plan(n, form, caps, wide);
    let tile = plan.tile * key_bytes.max(value_bytes);
    given.fits(&plan, plan.groups.max(plan.launched), plan.work_group, tile.max(4 * 256));
    given.fits(&plan, plan.counting, plan.offsets_work_group, 0);
    given.covers(&plan, plan.groups, plan.tiles * plan.tile, n);
    assert!((plan.groups - 1) * plan.tiles * plan.tile < n && plan.tile < 1 << 16, "{plan:?}");
    given.fit_32_bits(&plan, &[plan.groups, plan.tiles]);
    regions_of_sort(form, n, &plan);

    let plan = sort::in_place::gpu::plan(n, key_bytes, floats, caps, wide);
    let groups = n.div_ceil(1 << plan.tile_bits);
    given.fits(&plan, groups, plan.work_group, key_bytes << plan.tile_bits);
    assert!(plan.work_group == 1 || plan.work_group * 16 == 1 << plan.tile_bits, "{plan:?}");

    let offset = *u.choose(&[ElementType::U32, ElementType::U64])?;
    let plan = sort::segmented::gpu::plan(n, form, offset, caps, wide);
    given.fits(&plan, n.div_ceil(plan.window), plan.work_group, plan.tile * key_bytes);
    given.fits(&plan, plan.long.launched, plan.long.work_group, plan.long.tile * key_bytes.max(value_bytes));
    assert!(
        plan.window.is_multiple_of(32) && plan.window >= 32 && plan.window < plan.tile && plan.tile < 1 << 16,
        "{plan:?}"
    );
    given.fit_32_bits(&plan, &[n.div_ceil(plan.window), plan.listed, plan.long.groups, plan.long.long.unwrap_or(0)]);
    let end = regions_of_sort(form, n, &plan.long);
    let at = plan.long.scratch;
    let listed = plan.listed * if wide { 16 } else { 8 };
    apart(&plan, &[(at.header, 64), (at.heads, n.div_ceil(32) * 4), (at.listed, listed)], end);
    Ok(())
}

fn selections_by_rank(u: &mut Unstructured, given: &Given) -> Result<()> {
    use topk::gpu::{Form, Want};
    let bytes = *u.choose(&[1, 2, 4, 8])?;
    let caps = &given.tuned(u, Primitive::TopK, bytes)?;
    let floats = bytes > 1 && u.arbitrary()?;
    let keys = &sort::keys::Keys { bytes, flip: 0, always: 0, bits: 0..8 * bytes as u32, floats };
    let len = size_of_part(u, given.n)?;
    let ranks: Vec<u64> = (0..u.int_in_range(1..=4)?).map(|_| Ok(size(u, len - 1)? as u64)).collect::<Result<_>>()?;
    let (want, rows) = if u.arbitrary()? {
        (Want::Ranks(&ranks), ranks.len())
    } else {
        (Want::Keys { k: size_of_part(u, len)?, sorted: u.arbitrary()? }, (given.n / len).max(1))
    };
    let form = Form { keys, place_bytes: *u.choose(&[0, 4, 8])?, rows, len, want };
    let plan = topk::gpu::plan(&form, caps, given.wide()(len + 16));
    let what = || format!("{form:?}: {plan:?} for {caps:?}");
    let word = if bytes == 8 { 8 } else { 4 };
    let [sample, order, replicas] = ["SAMPLE", "ORDER", "REPLICAS"].map(|name| defined(&plan.program, name));
    let counts = (4 * replicas) << defined(&plan.program, "RADIX_BITS");
    given.fits(
        &plan,
        plan.batch * plan.parts.max(1),
        plan.work_group,
        (order * (word + 4)).max(sample * word + counts),
    );
    assert!(plan.batch > 0 && plan.batch <= rows, "{}", what());
    assert!(plan.parts == 0 || plan.parts * plan.share >= len + 16 / bytes - 1, "{}", what());
    assert!(plan.share.is_multiple_of(plan.tile) && plan.share <= 1 << 31, "{}", what());
    assert_eq!(plan.digits.iter().map(|digit| digit.1).sum::<usize>(), 8 * bytes, "{}", what());
    assert!(plan.pickers == 1 || plan.pickers * plan.work_group <= plan.capacity, "{}", what());
    given.fit_32_bits(&plan, &[plan.batch, plan.parts, plan.segments, plan.capacity]);
    let (at, parts) = (plan.regions, plan.parts);
    if parts > 0 {
        let regions = [
            (0, 64),
            (at.histogram, if plan.wide { 8 } else { 4 } << plan.digits[0].1),
            (at.classes, 16 * parts),
            (at.tallies, 8 * parts),
            (at.segment_counts, 4 * parts),
            (at.segments, 8 * plan.segments * parts),
            (at.keys, plan.capacity * bytes),
        ];
        apart(&plan, &regions, at.row);
    }
    apart(
        &plan,
        &[(0, plan.batch * at.row), (plan.spare_keys, plan.spare_places - plan.spare_keys)],
        plan.scratch_bytes,
    );
    Ok(())
}

fn merges(u: &mut Unstructured, given: &Given) -> Result<()> {
    let n = given.n.max(1);
    let size = u.int_in_range(1..=64)?;
    let caps = &given.tuned(u, Primitive::Merge, size)?;
    let order = op::Compare::<u32>::source(&Order::ascending()).expect("the usual order");
    let values = if u.arbitrary()? { u.int_in_range(1..=64)? } else { 0 };
    let form = merge::gpu::Form { order, size, value_bytes: values };
    let wide = given.wide()(n);
    let check = |plan: &merge::gpu::Plan, more: usize| {
        let tile = plan.shape.tile();
        let sources = if form.value_bytes > 0 { 2 * tile } else { 0 };
        given.fits(
            plan,
            plan.groups,
            plan.shape.work_group,
            (tile + 1) * size + sources + more * plan.shape.work_group,
        );
        given.covers(plan, plan.tiles, tile, n);
        assert!((plan.tiles - 1) * tile < n && plan.groups <= plan.tiles && plan.tiles <= plan.room, "{plan:?}");
        // Kernels count tiles in 32 bits, for every size of input.
        assert!(u32::try_from(plan.tiles).is_ok(), "{plan:?} for {n} on {caps:?}");
    };
    if let Some(plan) = accepted(merge::gpu::plan(n, &form, caps, wide)) {
        check(&plan, 0);
    }
    let form = merge::gpu::Form { value_bytes: 0, ..form.clone() };
    let check = |plan: &merge::gpu::Plan, more: usize| {
        let tile = plan.shape.tile();
        given.fits(plan, plan.groups, plan.shape.work_group, (tile + 1) * size + more * plan.shape.work_group);
        given.covers(plan, plan.tiles, tile, n);
        assert!(u32::try_from(plan.tiles).is_ok(), "{plan:?} for {n} on {caps:?}");
    };
    use merge::set::SetOp::{Difference, Intersection, SymmetricDifference, Union};
    let set = *u.choose(&[Union, Intersection, Difference, SymmetricDifference])?;
    if let Some(plan) = accepted(merge::set::gpu::plan(set, n, &form, caps, wide)) {
        check(&plan, 8);
    }
    use merge::search::Bound;
    let bound = *u.choose(&[Bound::Lower, Bound::Upper])?;
    if let Some(plan) = accepted(merge::search::gpu::plan(bound, *u.choose(&[4, 8])?, n, &form, caps, wide)) {
        given.fits(&plan, plan.groups, plan.shape.work_group, size * defined(&plan.program, "PIVOTS"));
        assert!(defined(&plan.program, "PIVOTS") > 0 && defined(&plan.program, "EACH") > 0, "{plan:?}");
    }
    Ok(())
}

/// Largest number of samples of one launch.
const ROUND: usize = 1 << 31;

fn histograms(u: &mut Unstructured, given: &Given) -> Result<()> {
    use histogram::gpu::{Form, Tables};
    let (n, element) = (given.n.max(1), given.element);
    let caps = &given.tuned(u, Primitive::Histogram, element.size())?;
    let counter = *u.choose(&[ElementType::U32, ElementType::U64])?;
    let most = histogram::bins::MAX_BINS;
    let form = Form { element, bins: size_of_part(u, most)?, map: u.int_in_range(0..=3)? };
    let slots = form.bins + histogram::bins::OUTSIDE;
    let what = |plan: &dyn Debug| format!("{plan:?} for {form:?} on {caps:?}");
    let merged = |merge: &histogram::gpu::Merge, slots: usize| {
        given.fits(merge, merge.groups, merge.work_group, 8 * merge.work_group);
        given.covers(merge, merge.groups, merge.slots, slots);
    };
    if let Some(plan) = accepted(histogram::gpu::plan(n, form, counter, caps, ROUND)) {
        let by_value = if plan.count.options.contains("-DBYTES") { 4 * 256 } else { 0 };
        let local = 4 * defined(&plan.count, "LOCAL_WORDS") + by_value;
        given.fits(&plan, plan.groups, plan.work_group, local);
        merged(&plan.merge, slots);
        assert!(plan.round > 0 && plan.round <= ROUND && plan.scratch_bytes <= 1 << 30, "{}", what(&plan));
        assert!(plan.scratch_bytes >= 4 * slots * plan.table_count, "{}", what(&plan));
        match &plan.tables {
            Tables::Local { range, ranges, replica_bits } => {
                let all = range * ranges >= slots && range * (ranges - 1) < slots && plan.groups == plan.table_count;
                let rows = if by_value > 0 { 256 } else { *range };
                assert!(all && 4 * (rows << replica_bits) <= caps.local_bytes, "{}", what(&plan));
            }
            Tables::Partition(part) => {
                let numbers = 2 * plan.round.min(n);
                given.fits(part, part.groups, part.work_group, 4 * (part.ranges + part.work_group));
                given.fits(part, part.count_groups, part.count_work_group, 4 << defined(&part.program, "RANGE_BITS"));
                assert!(part.groups > 0 && part.count_groups > 0, "{}", what(&plan));
                apart(&plan, &[(0, 4 * slots), (4 * part.numbers_at, numbers)], plan.scratch_bytes);
            }
            Tables::Global => assert!(plan.table_count > 0 && plan.table_count <= plan.groups, "{}", what(&plan)),
        }
    }
    // The counters of all groups fit a device.
    let groups = size(u, (1 << 40) / form.bins)?.max(1);
    let kind = *u.choose(&[
        histogram::groups::gpu::Kind::Lines,
        histogram::groups::gpu::Kind::Segments(ElementType::U32),
        histogram::groups::gpu::Kind::Segments(ElementType::U64),
    ])?;
    if let Some(plan) = accepted(histogram::groups::gpu::plan(n, (groups, kind), form, None, counter, caps, ROUND)) {
        let (words, rows) = (defined(&plan.count, "LOCAL_WORDS"), defined(&plan.count, "ROWS"));
        // Devices with less local memory than a table of three words have work-groups of one work-item in practice.
        given.fits(&plan, 1, plan.work_group, if plan.global { 0 } else { 4 * (words + rows + 2) });
        assert!(plan.parts > 0 && plan.rows > 0 && plan.rows <= rows, "{}", what(&plan));
        assert!((plan.range * plan.rows).max(plan.range << plan.replica_bits) <= words, "{}", what(&plan));
        let all = if plan.global { histogram::bins::OUTSIDE } else { slots };
        given.covers(&plan, plan.ranges, plan.range, all);
        let cost = n as u128 + groups as u128 * plan.row_cost as u128;
        assert!(cost.div_ceil(plan.parts as u128) <= ROUND as u128, "{}", what(&plan));
    }
    if let Some(plan) = accepted(histogram::groups::gpu::keys(n, kind, form, caps)) {
        given.fits(&plan, plan.groups, plan.work_group, 0);
        assert!(plan.groups > 0 && plan.run > 0, "{}", what(&plan));
    }
    let channels = u.int_in_range(1..=4)?;
    let bins = (0..u.int_in_range(1..=channels)?).map(|_| size_of_part(u, most)).collect::<Result<Vec<_>>>()?;
    let (pixels, types) = (n.min(ROUND) / channels, (element, counter));
    let plan = histogram::channels::gpu::plan(pixels.max(1), types, form.map, channels, &bins, u.arbitrary()?, caps);
    if let Some(plan) = accepted(plan) {
        given.fits(&plan, plan.groups, plan.work_group, 4 * defined(&plan.count, "LOCAL_WORDS"));
        assert!(plan.merges.len() == bins.len() && plan.table_count > 0, "{}", what(&plan));
        plan.merges.iter().zip(&bins).for_each(|(merge, bins)| merged(merge, bins + histogram::bins::OUTSIDE));
        let slots: usize = bins.iter().map(|bins| bins + histogram::bins::OUTSIDE).sum();
        assert!(plan.scratch_bytes >= 4 * slots * plan.table_count, "{}", what(&plan));
        given.fit_32_bits(&plan, &[plan.table_count]);
    }
    let weight = self::element(u)?;
    let form = histogram::weighted::gpu::Form { samples: form, weight, sum: weight };
    if let Some(plan) = accepted(histogram::weighted::gpu::plan(n, form, u.arbitrary()?, caps, given.wide()(n))) {
        let what = || format!("{plan:?} for {form:?} on {caps:?}");
        given.fits(&plan, plan.groups, plan.work_group, 4 * defined(&plan.count, "LOCAL_WORDS"));
        given.fits(&plan, plan.merge_groups, plan.merge_work_group, 16 * plan.merge_work_group);
        given.covers(&plan, plan.merge_groups, plan.merge_slots, plan.range);
        assert!(plan.range > 0 && plan.range <= slots && plan.table_count > 0, "{}", what());
        assert!(plan.table_count <= plan.groups, "{}", what());
        let words = 2 * plan.range * plan.table_count;
        apart(&plan, &[(0, 4 * plan.table_word), (4 * plan.table_word, 4 * words)], plan.scratch_bytes);
        given.fit_32_bits(&plan, &[plan.table_count, plan.merge_slots]);
    }
    Ok(())
}

fn transposes(u: &mut Unstructured, given: &Given) -> Result<()> {
    let bytes = bytes(u)?;
    let caps = &given.tuned(u, Primitive::Transpose, bytes)?;
    let rows = size_of_part(u, given.n)?;
    let rest = (given.n / rows).max(1);
    let cols = size_of_part(u, rest)?;
    let mut shape = transpose::gpu::Shape::dense(rows, cols, bytes);
    let unit = tuning::unit(bytes);
    shape.input = unit * u.int_in_range(0..=16)?;
    shape.output = unit * u.int_in_range(0..=16)?;
    let batch = rest / cols;
    if batch > 1 && u.arbitrary()? {
        let distance = (rows * cols) as isize;
        shape.batch.push(permute::job::Axis { n: batch, from: distance, to: distance });
    }
    let wide = given.wide();
    let plan = transpose::gpu::plan(&shape, caps, &wide);
    use transpose::gpu::Kernel;
    let local = match plan.kernel {
        Kernel::Runs { .. } => 0,
        Kernel::Blocks => (defined(&plan.program, "BLOCK") * defined(&plan.program, "SIDE")).pow(2) * bytes,
        Kernel::Tiles { .. } => tuning::padded_bytes(defined(&plan.program, "TILE"), bytes),
        Kernel::Narrow { .. } => {
            tuning::padded_bytes(plan.work_group * 16 / bytes * defined(&plan.program, "NARROW"), bytes)
        }
    };
    given.fits(&plan, plan.groups, plan.work_group, local);
    assert!(plan.groups > 0, "{plan:?}");

    let plan = transpose::in_place::gpu::plan(rows * cols, bytes, caps, &wide);
    let side = if caps.class == DeviceClass::Gpu { plan.params.tile_side } else { 0 };
    given.fits(&plan, plan.params.max_groups, plan.params.work_group, 2 * side * (side + 1) * bytes);

    let out = element(u)?;
    let load =
        with_element!(out, U => Load::without_device(&Input::<u8>::Host(&[]).cast::<U>(), true)).expect("a load");
    let plan = transpose::mapped::gpu::plan(out, &load, (rows, cols), u.arbitrary()?, caps, &wide);
    if let Some(plan) = accepted(plan) {
        let bytes = out.size();
        let local = match plan.kernel {
            transpose::mapped::gpu::Kernel::Runs { .. } => 0,
            // A tile has SIDE x SIDE blocks, and a block has 4 x 4 elements.
            transpose::mapped::gpu::Kernel::Blocks => (4 * defined(&plan.program, "SIDE")).pow(2) * bytes,
            _ => tuning::padded_bytes(defined(&plan.program, "TILE"), bytes),
        };
        given.fits(&plan, plan.groups, plan.work_group, local);
        assert!(plan.groups > 0, "{plan:?}");
    }
    Ok(())
}

fn copies(u: &mut Unstructured, given: &Given) -> Result<()> {
    let (n, bytes, wide) = (given.n.max(1), bytes(u)?, given.wide());
    let [from, to] = [u.int_in_range(0..=1000)?, u.int_in_range(0..=1000)?];
    let plan = copy::gpu::plan(n, from, to, &given.tuned(u, Primitive::Copy, 1)?, &wide);
    given.fits(&plan, plan.groups, plan.work_group, 0);
    if let copy::gpu::Kernel::Runs { run } = plan.kernel {
        given.covers(&plan, plan.groups, run, n);
    }
    let plan = copy::ranges::gpu::plan(&given.tuned(u, Primitive::CopyRanges, 1)?);
    given.fits(&plan, 1, plan.work_group, 0);

    let caps = &given.tuned(u, Primitive::Reverse, bytes)?;
    for plan in [
        copy::reverse::gpu::plan(n, bytes, from * bytes, to * bytes, caps),
        copy::reverse::gpu::plan_swap(n.max(2), bytes, from * bytes, caps),
    ] {
        given.fits(&plan, plan.groups, plan.work_group, 0);
        assert!(plan.groups > 0, "{plan:?}");
    }
    let caps = &given.tuned(u, Primitive::Gather, bytes)?;
    let index = *u.choose(&[4, 8])?;
    // The number of elements of one launch fits in 32 bits.
    let part = n.min(1 << 29);
    let plan = copy::gather::gpu::plan(part, bytes, index, [from * bytes, to * index], caps);
    given.fits(&plan, plan.groups, plan.work_group, 0);
    given.fit_32_bits(&plan, &[plan.run, plan.head]);
    assert!(plan.run == 0 || plan.groups * plan.run >= part, "{plan:?}");
    Ok(())
}

fn others(u: &mut Unstructured, given: &Given) -> Result<()> {
    let (n, element, wide) = (given.n.max(1), given.element, given.wide());
    if let Some(plan) =
        accepted(iota::gpu::plan(n, element, &given.tuned(u, Primitive::Iota, element.size())?, wide(n)))
    {
        given.fits(&plan, plan.groups, plan.work_group, 0);
        given.covers(&plan, plan.groups, plan.work_group * plan.run, n);
    }
    let range = u.arbitrary()?;
    let draw = if range && !element.is_float() { 2 * element.size().max(4) } else { element.size() };
    let form = random::gpu::Form { element, draw, range };
    let pad = u.int_in_range(0..=16 / element.size() - 1)?;
    let caps = given.tuned(u, Primitive::Random, element.size())?;
    if let Some(plan) = accepted(random::gpu::plan(n, form, pad, u.arbitrary()?, &caps, wide(n))) {
        given.fits(&plan, plan.groups, plan.work_group, 16 * plan.work_group);
        assert!(plan.words * (16 / element.size()) >= n + pad && plan.groups > 0, "{plan:?}");
        assert!(
            plan.work_group > 1 || caps.class == DeviceClass::Gpu || plan.groups * plan.run >= plan.words,
            "{plan:?}"
        );
    }
    use permute::job::{Axis, Job};
    let bytes = bytes(u)?;
    let (mut axes, mut rest) = (Vec::new(), n);
    for _ in 0..u.int_in_range(1..=8)? {
        let len = size_of_part(u, rest)?;
        rest = (rest / len).max(1);
        axes.push(Axis { n: len, from: u.int_in_range(1..=8)?, to: u.int_in_range(1..=8)? });
    }
    let job = Job { size: bytes, axes, from: size(u, 1000)?, to: size(u, 1000)? };
    let bases = [bytes * u.int_in_range(0..=8)?, bytes * u.int_in_range(0..=8)?];
    let plan = permute::gpu::plan(job, bases, &given.tuned(u, Primitive::Permute, bytes)?, &wide);
    given.fits(&plan, plan.groups, plan.work_group, 0);
    assert!(plan.groups > 0, "{plan:?}");
    if plan.run > 0 {
        let units: usize = plan.job.axes.iter().map(|axis| axis.n).product();
        given.covers(&plan, plan.groups, plan.run, units);
    }
    Ok(())
}

fn tried(u: &mut Unstructured) -> Result<()> {
    let caps = capabilities(u)?.into();
    let given = Given { caps, n: size(u, MAX_ELEMENTS)?, wide: u.ratio(1, 8)?, element: element(u)? };
    let all = [
        reductions,
        along_axes,
        scans,
        selections,
        sorts,
        selections_by_rank,
        merges,
        histograms,
        transposes,
        copies,
        others,
    ];
    u.choose(&all)?(u, &given)
}

pub(crate) fn run(bytes: &[u8]) {
    let mut all = Unstructured::new(bytes);
    while !all.is_empty() && tried(&mut all).is_ok() {}
}
