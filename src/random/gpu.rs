//! Random numbers on OpenCL devices: the plan, then its launch.

use super::{Draw, Philox};
use crate::{
    Element, ElementType, Output, Result,
    runtime::{ClInput, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("random.cl");

/// The properties of a random array that choose its program: element type and range, but neither size nor stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    pub element: ElementType,
    /// Bytes of the stream per element.
    pub draw: usize,
    pub range: bool,
}

impl Form {
    fn of<T: Element>(draw: &Draw<T>) -> Self {
        // Integers of one size share a program.
        let element = match T::TYPE {
            float if float.is_float() => float,
            integer => {
                [ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64][integer.size().ilog2() as usize]
            }
        };
        Self { element, draw: draw.bytes(), range: *draw != Draw::Whole }
    }
}

/// Position in the stream of the first 16-byte word that the output touches.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Start {
    /// Elements of that word before the output.
    pad: usize,
    /// The block in which the word begins, and its first byte in that block.
    block: u64,
    shift: usize,
}

impl Start {
    fn of(form: Form, offset: usize, skipped: u64) -> Self {
        let pad = offset % (16 / form.element.size());
        let byte = (i128::from(skipped) - pad as i128) * form.draw as i128;
        Self { pad, block: byte.div_euclid(16) as u64, shift: byte.rem_euclid(16) as usize }
    }
}

/// The launch that writes n > 0 elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub groups: usize,
    pub work_group: usize,
    /// Words of the output. `run` has the words per work-item if a work-group is one work-item.
    pub words: usize,
    pub run: usize,
    pub wide: bool,
}

pub fn plan(n: usize, form: Form, pad: usize, straddle: bool, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    let words = (n + pad).div_ceil(16 / form.element.size());
    let tuning::Random { work_group, max_groups, min_run } = tuning::random(caps);
    let (groups, run) = if work_group == 1 {
        let run = words.div_ceil(max_groups).max(min_run);
        (words.div_ceil(run), run)
    } else {
        let each = if straddle && form.draw == form.element.size() { work_group - 1 } else { work_group };
        (words.div_ceil(each).min(max_groups), 1)
    };
    let program = ProgramSpec::new("random.cl", TEXT, caps)
        .element("T", form.element)
        .element("A", form.element.accumulator())
        .element("OUT", form.element)
        .define("WG", work_group)
        .define("DRAW", form.draw)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .flag("RANGE", form.range)
        .flag("STRADDLE", straddle)
        .unoptimised_on_a_checker(caps);
    Ok(Plan { program, groups, work_group, words, run, wide })
}

pub(crate) fn fill<T: Element>(
    device: &ClDevice,
    numbers: Philox,
    draw: &Draw<T>,
    output: Output<'_, T>,
) -> Result<()> {
    let out = output.cl(device, false)?;
    let (form, mut range) = (Form::of(draw), Vec::new());
    match draw {
        Draw::Whole => {}
        Draw::Integers { lower, span } => range.extend([lower, span].map(|x| bytemuck::bytes_of(x).to_vec())),
        Draw::Floats { lower, width, scale, upper, last } => {
            range.extend([*lower, *width, *scale, *upper, last.widen()].map(|x| bytemuck::bytes_of(&x).to_vec()));
        }
    }
    launch(device, form, numbers, Start::of(form, out.offset(), numbers.skipped), &range, &out)?;
    out.finish(device)
}

/// `range` has the bytes of each argument that describes the range of values.
fn launch(
    device: &ClDevice,
    form: Form,
    numbers: Philox,
    start: Start,
    range: &[Vec<u8>],
    out: &ClInput,
) -> Result<()> {
    let n = out.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Random, form.element.size(), n)?;
    let plan = plan(n, form, start.pad, start.shift != 0, &caps, device.wide(n))?;
    let launch = device
        .launch(&plan.program, "random_words")?
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .offset(n as u64, plan.wide)
        .scalar(start.pad as u32)
        .offset(plan.words as u64, plan.wide)
        .offset(plan.run as u64, plan.wide)
        .scalar(start.block)
        .scalar(start.shift as u32)
        .scalar(numbers.stream)
        .scalar(numbers.seed);
    let launch = range.iter().fold(launch, |launch, bytes| launch.plain(bytes));
    launch.run([plan.groups, 1, 1], [plan.work_group, 1, 1])
}

/// All programs that plans for `caps` use.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    use ElementType::{Bf16, F16, F32, F64, U8, U16, U32, U64};
    let mut programs = Vec::new();
    for element in [U8, U16, U32, U64, F16, Bf16, F32, F64] {
        for (range, straddle, wide) in
            [(false, false, false), (false, true, true), (true, false, true), (true, true, false)]
        {
            let draw = match element {
                U64 if range => 16,
                U8 | U16 | U32 if range => 8,
                _ => element.size(),
            };
            let plan = plan(1 << 20, Form { element, draw, range }, 0, straddle && draw < 16, caps, wide);
            programs.extend(plan.map(|plan| plan.program));
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceClass, Tuning, runtime::Backend};

    #[test]
    fn plans_cover_every_word() {
        for (name, caps) in Tuned::samples() {
            for n in [1, 255, 256, 257, 1 << 20, (1 << 32) + 1, 1 << 40, 1 << 48] {
                let form = Form { element: ElementType::U32, draw: 4, range: false };
                let plan = plan(n, form, 3, true, &caps, n >= 1 << 31).unwrap();
                assert!(4 * plan.words >= n + 3, "{name}: {n}");
                assert!(plan.work_group > 1 || plan.groups * plan.run >= plan.words, "{name}: {n}");
            }
        }
    }

    #[test]
    fn the_first_word_has_its_block_and_shift() {
        let of = |element, draw| Form { element, draw, range: draw != 4 };
        assert_eq!(Start::of(of(ElementType::U32, 4), 4, 0), Start { pad: 0, block: 0, shift: 0 });
        assert_eq!(Start::of(of(ElementType::U32, 4), 1, 0), Start { pad: 1, block: u64::MAX, shift: 12 });
        assert_eq!(Start::of(of(ElementType::U32, 4), 3, 8), Start { pad: 3, block: 1, shift: 4 });
        assert_eq!(Start::of(of(ElementType::U8, 8), 5, 6), Start { pad: 5, block: 0, shift: 8 });
        assert_eq!(Start::of(of(ElementType::U64, 16), 1, u64::MAX), Start { pad: 1, block: u64::MAX - 1, shift: 0 });
    }

    /// The known answers of Random123. The test sets the block itself, since `Philox::skip` cannot reach two of these
    /// blocks with elements of 4 bytes.
    #[test]
    fn kernels_give_the_known_answers() {
        let form = Form { element: ElementType::U32, draw: 4, range: false };
        let answers = [
            (0, 0, 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            (u64::MAX, u64::MAX, u64::MAX, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                0x85a3_08d3_243f_6a88,
                0x0370_7344_1319_8a2e,
                0x299f_31d0_a409_3822,
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap();
            let as_gpu = device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
            for device in [device, as_gpu] {
                let Backend::OpenCl(cl) = device.backend() else { continue };
                for (block, stream, seed, want) in answers {
                    let mut words = device.zeroed::<u32>(4).unwrap();
                    let out = Output::from(&mut words).cl(cl, false).unwrap();
                    let start = Start { pad: 0, block, shift: 0 };
                    launch(cl, form, Philox::new(seed).stream(stream), start, &[], &out).unwrap();
                    out.finish(cl).unwrap();
                    assert_eq!(words.to_vec().unwrap(), want, "{info}");
                }
            }
        }
    }
}
