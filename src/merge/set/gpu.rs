//! Set operations on OpenCL devices: the kept elements of each tile are counted, then written.

use super::SetOp;
use crate::{
    Result, Scratch,
    merge::gpu::{Form, Place, Plan, shape},
    runtime::{
        ClInput, ProgramSpec,
        opencl::{ClDevice, Launch},
    },
    tuning::{Primitive, Tuned},
};

const TEXT: &str = kernel_text!("set.cl");
/// Bytes of local memory per work-item, besides its elements: a count, or a sum of counts.
const ITEM_BYTES: usize = 8;
/// Numbers per tile in scratch.
const NUMBERS: usize = 4;

pub fn plan(op: SetOp, n: usize, form: &Form, caps: &Tuned, wide: bool) -> Result<Plan> {
    let program = ProgramSpec::new("set.cl", TEXT, caps).define("SET", op as u32);
    Plan::new(n, form, program, shape(form, ITEM_BYTES, false, caps), caps, wide)
}

/// A set operation in progress.
pub struct Run<'a> {
    device: &'a ClDevice,
    plan: Plan,
    ranges: [&'a ClInput; 2],
    scratch: &'a mut Scratch,
}

impl<'a> Run<'a> {
    /// Starts an operation on ranges of n > 0 elements together.
    pub(crate) fn new(
        op: SetOp,
        device: &'a ClDevice,
        form: &Form,
        ranges: [&'a ClInput; 2],
        scratch: &'a mut Scratch,
    ) -> Result<Self> {
        let n = ranges[0].len() + ranges[1].len();
        let plan = plan(op, n, form, &*device.capabilities_for(Primitive::Merge, form.size, n)?, device.wide(n))?;
        Ok(Self { device, plan, ranges, scratch })
    }

    fn ranges(&mut self, kernel: &'static str) -> Result<Launch<'a>> {
        let launch = self.device.launch(&self.plan.program, kernel)?;
        let launch = self
            .ranges
            .iter()
            .fold(launch, |launch, range| Place::of(range).add(launch).offset(range.len() as u64, self.plan.wide));
        let launch = launch.scalar(self.plan.tiles as u32);
        Ok(launch.mem(self.scratch.cl(self.device, bytes(&self.plan))?))
    }

    fn tiles(&mut self, to: &ClInput, writes: u32) -> Result<()> {
        let launch = Place::of(to).add(self.ranges("set_tiles")?).offset(to.len() as u64, self.plan.wide);
        launch.scalar(writes).run([self.plan.groups, 1, 1], self.plan.local())
    }

    /// Writes the number of kept elements to the one element of `total`.
    pub fn count(&mut self, total: &ClInput) -> Result<()> {
        let (groups, local) = (self.plan.item_groups(), self.plan.local());
        self.device.build_ahead(&self.plan.program, &["set_tiles", "set_splits", "set_offsets"])?;
        self.ranges("set_splits")?.run(groups, local)?;
        // This launch writes no elements, so any buffer can be the output.
        let range = self.ranges[0];
        self.tiles(range, 0)?;
        let launch = self.device.launch(&self.plan.program, "set_offsets")?.scalar(self.plan.tiles as u32);
        let launch = launch.mem(self.scratch.cl(self.device, bytes(&self.plan))?);
        Place::of(total).add(launch).run([1, 1, 1], local)
    }

    /// Writes the kept elements, as many as `to` has. [`Run::count`] must come first.
    pub fn write(&mut self, to: &ClInput) -> Result<()> {
        self.tiles(to, 1)
    }
}

fn bytes(plan: &Plan) -> usize {
    NUMBERS * plan.tiles * plan.offset_bytes()
}
