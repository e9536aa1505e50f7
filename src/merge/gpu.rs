//! Merges on OpenCL devices: the plan, then its launches. Merge sorts and set operations use the plan, too.

use crate::{
    ElementType, Error, ErrorKind, Result, Scratch,
    counted::{self, ClCount, Count},
    op::Code,
    runtime::{
        AnyInput, AnyOutput, ClInput, DeviceClass, ProgramSpec, apart,
        opencl::{ClDevice, ClMem, Launch},
    },
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("merge.cl");

/// A merge without its size: order and element sizes.
#[derive(Clone, Debug)]
pub struct Form {
    /// The source of the comparator; true if it needs fp64.
    pub order: (Code, bool),
    pub size: usize,
    /// 0 without values.
    pub value_bytes: usize,
}

/// A work-group, and the elements per work-item in a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub work_group: usize,
    pub items: usize,
    /// Maximum registers per work-item, if the plan limits them.
    registers: Option<usize>,
}

impl Shape {
    pub fn tile(&self) -> usize {
        self.work_group * self.items
    }

    /// Bytes of local memory, if each work-item has `item_bytes` besides its elements.
    fn local_bytes(&self, form: &Form, item_bytes: usize) -> usize {
        let source = if form.value_bytes > 0 { 2 } else { 0 };
        (self.tile() + 1) * form.size + self.tile() * source + self.work_group * item_bytes + tuning::RESERVED_BYTES
    }
}

/// The shape for a device: one work-item if local memory is too small for more. `many` selects the parameters for large
/// merges.
pub fn shape(form: &Form, item_bytes: usize, many: bool, caps: &Tuned) -> Shape {
    let params = tuning::merge(caps);
    let single = tuning::merge(&caps.with(|facts| facts.class = DeviceClass::Cpu));
    let single = Shape { work_group: 1, items: single.items, registers: None };
    if caps.class == DeviceClass::Cpu {
        return single;
    }
    let (items, registers) = match form.value_bytes {
        0 if many => (params.most_items, params.most_registers),
        0 => (params.items, params.registers),
        _ => (params.items_with_values, None),
    };
    let items = (4 * items / form.size.max(4)).max(1) | 1;
    let groups = (5..=params.work_group.max(1).ilog2()).rev().map(|bits| 1 << bits);
    let mut shapes = groups.map(|work_group| Shape { work_group, items, registers });
    shapes.find(|shape| shape.local_bytes(form, item_bytes) <= caps.local_bytes).unwrap_or(single)
}

/// The tiles of n > 0 elements, and the program of a file that includes `cl/lib/merge.cl`.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub shape: Shape,
    pub tiles: usize,
    /// Tiles for which scratch has room: a number that never falls as n grows.
    pub room: usize,
    pub groups: usize,
    pub wide: bool,
}

impl Plan {
    /// Adds the macros of tiles and of the comparator to `program`.
    pub fn new(n: usize, form: &Form, program: ProgramSpec, shape: Shape, caps: &Tuned, wide: bool) -> Result<Self> {
        let (source, needs_fp64) = &form.order;
        if *needs_fp64 {
            caps.supports(ElementType::F64)?;
        }
        let program = program
            .define("WG", shape.work_group)
            .define("ITEMS", shape.items)
            .define("OFFSET_T", if wide { "ulong" } else { "uint" })
            .operator(source);
        let program = program.with(shape.registers.map(|registers| format!("-cl-nv-maxrregcount={registers}")));
        let tiles = n.div_ceil(shape.tile());
        // Kernels count tiles in 32 bits.
        if u32::try_from(tiles).is_err() {
            let message =
                format!("{n} elements take {tiles} tiles of {}, at most {} are possible", shape.tile(), u32::MAX);
            return Err(Error::new(ErrorKind::OutOfMemory, message));
        }
        Ok(Self { program, shape, tiles, room: tiles, groups: tiles.min(tuning::merge(caps).max_groups), wide })
    }

    pub fn offset_bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    pub fn local(&self) -> [usize; 3] {
        [self.shape.work_group, 1, 1]
    }

    /// The work-groups of a kernel with one work-item per tile.
    pub fn item_groups(&self) -> [usize; 3] {
        [self.tiles.div_ceil(self.shape.work_group).min(self.groups), 1, 1]
    }
}

/// The plan of a merge, or of the merges in a sort.
pub fn plan(n: usize, form: &Form, caps: &Tuned, wide: bool) -> Result<Plan> {
    let program = ProgramSpec::new("merge.cl", TEXT, caps);
    let program = match form.value_bytes {
        0 => program,
        bytes => {
            let unit = tuning::unit(bytes).min(16);
            let program = program.define("VALUE_BYTES", bytes).define("UNIT", tuning::unit_type(unit));
            program.define("PARTS", bytes / unit)
        }
    };
    // Large tiles are used if each compute unit gets at least two.
    let [usual, large] = [false, true].map(|many| shape(form, 0, many, caps));
    let many = n.div_ceil(large.tile()) >= 2 * caps.compute_units as usize;
    let plan = Plan::new(n, form, program, if many { large } else { usual }, caps, wide)?;
    Ok(Plan { room: n.div_ceil(usual.tile().min(large.tile())), ..plan })
}

/// Elements in device memory.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub mem: &'a ClMem,
    pub offset: usize,
}

impl<'a> Place<'a> {
    pub fn of(input: &'a ClInput) -> Self {
        Self { mem: input.mem(), offset: input.offset() }
    }

    pub(crate) fn add(self, launch: Launch<'_>) -> Launch<'_> {
        launch.mem(self.mem).scalar(self.offset as u64)
    }
}

/// The program of a merge. If `counts` has a type for a range, the length of that range is a count in memory, of this
/// type.
pub fn with_lengths(program: ProgramSpec, counts: [Option<ElementType>; 2]) -> ProgramSpec {
    let counts = ["LENGTH_A", "LENGTH_B"].into_iter().zip(counts);
    counts.fold(program, |program, (name, count)| match count {
        Some(count) => program.define(name, count.storage()),
        None => program,
    })
}

/// A range, its largest length, and the count in memory that is its length, if there is one.
pub(crate) type Length<'a> = (Place<'a>, usize, Option<&'a ClCount>);

/// A pass over all tiles. Merges `a` and `b`, or, if `shift` is not 0, pairs of sorted ranges of `a`.
pub(crate) struct Pass<'a> {
    pub a: Length<'a>,
    pub b: Length<'a>,
    pub shift: u32,
    pub to: Place<'a>,
    /// Values of `a`, values of `b`, and their output.
    pub values: Option<[Place<'a>; 3]>,
    /// One offset per tile.
    pub splits: Place<'a>,
}

impl Pass<'_> {
    pub(crate) fn run(&self, device: &ClDevice, plan: &Plan) -> Result<()> {
        device.build_ahead(&plan.program, &["merge_tiles", "merge_splits"])?;
        let range = |launch, (place, most, count): Length<'_>| {
            let launch = place.add(launch).offset(most as u64, plan.wide);
            count.into_iter().fold(launch, |launch, count| Place::of(count.place()).add(launch))
        };
        let ranges = |kernel| -> Result<_> {
            let launch = range(range(device.launch(&plan.program, kernel)?, self.a), self.b).scalar(self.shift);
            Ok(self.splits.add(launch.scalar(plan.tiles as u32)))
        };
        ranges("merge_splits")?.run(plan.item_groups(), plan.local())?;
        let launch = self.to.add(ranges("merge_tiles")?);
        let launch = self.values.iter().flatten().fold(launch, |launch, place| place.add(launch));
        launch.run([plan.groups, 1, 1], plan.local())
    }
}

/// Merges two ranges. `inputs` has the keys of both, then the values of both, if there are values. `outputs` has the
/// output of the keys, then that of the values. The length of a range may be a count.
pub(crate) fn merge(
    device: &ClDevice,
    form: &Form,
    (inputs, counts): (&[AnyInput<'_>], [Option<Count<'_>>; 2]),
    outputs: Vec<AnyOutput<'_>>,
    scratch: &mut Scratch,
) -> Result<()> {
    let keep = counts.iter().any(Option::is_some);
    let inputs = inputs.iter().map(|input| input.cl(device)).collect::<Result<Vec<_>>>()?;
    let outputs = outputs.into_iter().map(|output| output.cl(device, keep)).collect::<Result<Vec<_>>>()?;
    let outs: Vec<_> = outputs.iter().collect();
    let [first, second] = counts;
    let counts = [counted::on_device(device, first, &outs)?, counted::on_device(device, second, &outs)?];
    apart(&inputs.iter().collect::<Vec<_>>(), &outs)?;
    let values = match (&inputs[2..], &outs[1..]) {
        ([a, b], [to]) => Some([Place::of(a), Place::of(b), Place::of(to)]),
        _ => None,
    };
    run(device, form, ([&inputs[0], &inputs[1]], &counts), outs[0], values, scratch)?;
    outputs.into_iter().try_for_each(|output| output.finish(device))
}

/// Merges two ranges, and their values.
fn run(
    device: &ClDevice,
    form: &Form,
    ([a, b], counts): ([&ClInput; 2], &[Option<ClCount>; 2]),
    to: &ClInput,
    values: Option<[Place<'_>; 3]>,
    scratch: &mut Scratch,
) -> Result<()> {
    let n = a.len() + b.len();
    if n == 0 {
        return Ok(());
    }
    let plan = plan(n, form, &*device.capabilities_for(Primitive::Merge, form.size, n)?, device.wide(n))?;
    let [count_a, count_b] = counts.each_ref().map(Option::as_ref);
    let types = [count_a, count_b].map(|count| count.map(ClCount::element));
    let plan = Plan { program: with_lengths(plan.program, types), ..plan };
    let mem = scratch.cl(device, plan.room * plan.offset_bytes())?;
    let pass = Pass {
        a: (Place::of(a), a.len(), count_a),
        b: (Place::of(b), b.len(), count_b),
        shift: 0,
        to: Place::of(to),
        values,
        splits: Place { mem, offset: 0 },
    };
    pass.run(device, &plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Order, op::Compare};

    #[test]
    fn scratch_holds_the_tiles_of_every_tuning_value() {
        let order = Compare::<u32>::source(&Order::ascending()).unwrap();
        let form = Form { order, size: 4, value_bytes: 0 };
        for (name, caps) in Tuned::samples() {
            for parameter in tuning::parameters(Primitive::Merge, &caps, 4) {
                for value in parameter.values {
                    let caps = caps.clone().choosing(parameter.name, value);
                    let mut room = 0;
                    for n in [1, 1000, 70_001, 1 << 20, (1 << 28) + 1, 1 << 34] {
                        let plan = plan(n, &form, &caps, false).unwrap();
                        let what = format!("{name}, {} {value}, n = {n}: {plan:?}", parameter.name);
                        assert!(plan.tiles <= plan.room && room <= plan.room, "{what}");
                        room = plan.room;
                    }
                    // Set operations keep one bit per element of a work-item in a 32-bit word.
                    let usual = shape(&form, 0, false, &caps);
                    assert!(usual.work_group == 1 || usual.items <= 32, "{name}: {usual:?}");
                }
            }
        }
    }

    #[test]
    fn more_tiles_than_32_bits_count_are_an_error() {
        let order = Compare::<u32>::source(&Order::ascending()).unwrap();
        let form = Form { order, size: 4, value_bytes: 0 };
        for (name, caps) in Tuned::samples() {
            let tile = shape(&form, 0, true, &caps).tile();
            let most = tile * u32::MAX as usize;
            assert_eq!(plan(most, &form, &caps, true).unwrap().tiles, u32::MAX as usize, "{name}");
            assert_eq!(plan(most + 1, &form, &caps, true).unwrap_err().kind(), ErrorKind::OutOfMemory, "{name}");
        }
    }

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [caps.local_bytes, 0, 4096, 8192, 12_288] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for n in [1, 1000, 4097, (1 << 28) + 1, 1 << 33, 1 << 40, 1 << 48] {
                    for (size, value_bytes) in [(1, 0), (4, 0), (8, 4), (16, 3), (64, 16)] {
                        let order = Compare::<u32>::source(&Order::ascending()).unwrap();
                        let form = Form { order, size, value_bytes };
                        let Ok(plan) = plan(n, &form, &caps, n >= 1 << 31) else {
                            assert!(n >= 1 << 40, "{name}, {local_bytes} bytes, n = {n}");
                            continue;
                        };
                        let what = format!("{name}, {local_bytes} bytes, n = {n}, {size} and {value_bytes}: {plan:?}");
                        assert!(plan.tiles * plan.shape.tile() >= n && plan.shape.tile() <= 1 << 16, "{what}");
                        assert!((plan.tiles - 1) * plan.shape.tile() < n && plan.groups <= plan.tiles, "{what}");
                        if plan.shape.work_group > 1 {
                            assert!(plan.shape.local_bytes(&form, 0) <= local_bytes, "{what}");
                            assert!(
                                plan.shape.work_group <= caps.max_work_group && plan.shape.items % 2 == 1,
                                "{what}"
                            );
                        }
                    }
                }
            }
        }
    }
}
